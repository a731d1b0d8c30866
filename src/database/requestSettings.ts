import { checkOf, type TokenCheck } from "./tokenCheck.ts";
import { REACHED, requirePosition } from "./position.ts";
import { isPlannedForValues } from "./planMark.ts";
import { makeSetter, type PgSettings, type Setter, type SetterCheck } from "./serverSettings.ts";

/** Requirements on the position of the data that are read. */
export interface PositionWish {
  /** Minimum position. Default: any. */
  readonly notBefore: string | undefined;
}

/** The settings of an operation with its token check. */
export class RequestSettings {
  readonly check: TokenCheck | undefined;
  readonly #settings: PgSettings | null;
  readonly #probe: string | undefined;
  readonly #position: PositionWish | undefined;
  #setter: Setter | null;

  /**
   * @param probe as in makeSetter
   * @param position if given, the last column of the setter's row is the position that the following statements reach
   */
  constructor(settings: PgSettings | null, probe?: string, position?: PositionWish) {
    this.check = checkOf(settings);
    this.#settings = settings;
    this.#probe = probe;
    this.#position = position;
    this.#setter = this.#make(settings);
  }

  /** Setter for a statement. */
  setterFor(text: string): Setter | null {
    if (this.#setter === null || !isPlannedForValues(text)) return this.#setter;
    return this.#make({ ...this.#settings, plan_cache_mode: "force_custom_plan" });
  }

  /** Setter for statements that are not known yet. */
  get setter(): Setter | null {
    return this.#setter;
  }

  /** Rebuilds the setter from the current settings. */
  remake(): void {
    this.#setter = this.#make(this.#settings);
  }

  #make(settings: PgSettings | null): Setter | null {
    return makeSetter(settings, this.#probe, this.#check, this.#position && REACHED);
  }

  get #check(): SetterCheck | undefined {
    const carried = this.check?.carried;
    const notBefore = this.#position?.notBefore;
    if (notBefore === undefined) return carried;
    return {
      settings: carried?.settings ?? {},
      expression: (parameter) =>
        [requirePosition(parameter(notBefore)), carried?.expression(parameter)].filter(Boolean).join(", "),
    };
  }
}
