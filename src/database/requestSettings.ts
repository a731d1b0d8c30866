import { checkOf, type TokenCheck } from "./tokenCheck.ts";
import { REACHED_COLUMN, requirePosition } from "./position.ts";
import type { Stale } from "./deadlines.ts";
import { wantsCustomPlan } from "./customPlan.ts";
import { makeSetter, type PgSettings, type Setter, type SetterCheck } from "./serverSettings.ts";

/** Requirements on the position of the data that are read. */
export interface PositionRequirement {
  /** Minimum position. Default: any. */
  readonly notBefore: string | undefined;
}

/** The setting that ignores deadlines. */
export const staleReads = (stale: Stale | undefined) => (stale ? { "plat.stale_reads": stale } : {});

/** The settings of an operation with its token check. */
export class RequestSettings {
  readonly check: TokenCheck | undefined;
  readonly #settings: PgSettings | null;
  readonly #probe: string | undefined;
  readonly #position: PositionRequirement | undefined;
  #setter: Setter | null;

  /**
   * @param probe as in makeSetter
   * @param position if given, the last column of the setter's row is the position that the following statements reach
   */
  constructor(settings: PgSettings | null, probe?: string, position?: PositionRequirement) {
    this.check = checkOf(settings);
    this.#settings = settings;
    this.#probe = probe;
    this.#position = position;
    this.#setter = this.#make(settings);
  }

  /**
   * Setter for a statement; "" for statements that are not known yet.
   * @param stale see afterExpiry
   */
  setterFor(text: string, stale?: Stale): Setter | null {
    const isPlanned = wantsCustomPlan(text);
    if (this.#setter === null || !(isPlanned || stale)) return this.#setter;
    return this.#make({
      ...this.#settings,
      ...(isPlanned && { plan_cache_mode: "force_custom_plan" }),
      ...staleReads(stale),
    });
  }

  /** Rebuilds the setter from the current settings. */
  remake(): void {
    this.#setter = this.#make(this.#settings);
  }

  #make(settings: PgSettings | null): Setter | null {
    return makeSetter(settings, this.#probe, this.#check, this.#position && REACHED_COLUMN);
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
