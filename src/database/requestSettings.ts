import { checkOf, type TokenCheck } from "../auth/tokenCheck.ts";
import { isPlannedForValues } from "./planMark.ts";
import { makeSetter, type PgSettings, type Setter } from "./settings.ts";

/** The settings of an operation with the check of its token. */
export class RequestSettings {
  readonly check: TokenCheck | undefined;
  readonly #settings: PgSettings | null;
  readonly #probe: string | undefined;
  #setter: Setter | null;

  /** @param probe as makeSetter takes it */
  constructor(settings: PgSettings | null, probe?: string) {
    this.check = checkOf(settings);
    this.#settings = settings;
    this.#probe = probe;
    this.#setter = makeSetter(settings, probe, this.check?.carried);
  }

  /** What puts the settings in place for a statement. */
  setterFor(text: string): Setter | null {
    if (this.#setter === null || !isPlannedForValues(text)) return this.#setter;
    return makeSetter(
      { ...this.#settings, plan_cache_mode: "force_custom_plan" },
      this.#probe,
      this.check?.carried,
    );
  }

  /** What puts them in place for statements that are not known yet. */
  get setter(): Setter | null {
    return this.#setter;
  }

  /** Makes the setter again from what the settings have become. */
  remake(): void {
    this.#setter = makeSetter(this.#settings, this.#probe, this.check?.carried);
  }
}
