import type { OperationWork } from "../admission/operationWork.ts";
import { heldEvents, type DryRunFindings } from "./dryRun.ts";
import { OperationTransaction } from "./operationTransaction.ts";
import type { Session } from "./session.ts";

/** Events of a transaction that is about to be committed. */
export type ReviewedEvents = Pick<DryRunFindings, "events" | "moreEvents">;

/**
 * An operation that is committed only if its effects match what was approved, and otherwise rolled back. A response
 * stored under its idempotency key is returned to a retry, which has no effect.
 */
export class ReviewedTransaction extends OperationTransaction<ReviewedEvents> {
  override readonly isDry = false;
  readonly #judge: (events: ReviewedEvents) => void;
  readonly #isRepeat: () => boolean;

  /** @param judge throws if it must not be committed */
  constructor(work: OperationWork, judge: (events: ReviewedEvents) => void) {
    super(work);
    this.#judge = judge;
    this.#isRepeat = () => work.isReplayed;
  }

  protected override async finish(session: Session, failed: boolean): Promise<ReviewedEvents> {
    const events = await heldEvents(session);
    if (failed) return events;
    if (!this.#isRepeat()) this.#judge(events);
    await session.send([{ text: "commit" }], true);
    return events;
  }
}
