import { checkOf, type TokenCheck } from "./tokenCheck.ts";
import { REACHED, requirePosition } from "./position.ts";
import type { Stale } from "./deadlines.ts";
import { isPlannedForValues } from "./planMark.ts";
import { makeSetter, type PgSettings, type Setter, type SetterCheck } from "./serverSettings.ts";

/** What is wanted of the position in the log of what is read. */
export interface PositionWish {
  /** The least that is acceptable; any where omitted. */
  readonly notBefore: string | undefined;
}

/** The setting that leaves deadlines out. */
export const staleReads = (stale: Stale | undefined) => (stale ? { "plat.stale_reads": stale } : {});

/** The settings of an operation with the check of its token. */
export class RequestSettings {
  readonly check: TokenCheck | undefined;
  readonly #settings: PgSettings | null;
  readonly #probe: string | undefined;
  readonly #position: PositionWish | undefined;
  #setter: Setter | null;

  /**
   * @param probe as makeSetter takes it
   * @param position where given, the last column of the setter's row is the position that what follows it reaches
   */
  constructor(settings: PgSettings | null, probe?: string, position?: PositionWish) {
    this.check = checkOf(settings);
    this.#settings = settings;
    this.#probe = probe;
    this.#position = position;
    this.#setter = this.#make(settings);
  }

  /**
   * What puts the settings in place for a statement; "" stands for those that are not known yet.
   * @param stale see afterExpiry
   */
  setterFor(text: string, stale?: Stale): Setter | null {
    const isPlanned = isPlannedForValues(text);
    if (this.#setter === null || !(isPlanned || stale)) return this.#setter;
    return this.#make({
      ...this.#settings,
      ...(isPlanned && { plan_cache_mode: "force_custom_plan" }),
      ...staleReads(stale),
    });
  }

  /** Makes the setter again from what the settings have become. */
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
