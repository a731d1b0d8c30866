import type { OperationWork } from "../admission/operationWork.ts";
import { heldEvents, type DryRunFindings } from "./dryRunTransaction.ts";
import { OperationTransaction } from "./operationTransaction.ts";
import type { Session } from "./session.ts";

/** Events of a transaction that is about to be committed. */
export type ReviewedEvents = Pick<DryRunFindings, "events" | "moreEvents">;

/**
 * A mutation that is committed only if its effects match what was approved, and otherwise rolled back. A response
 * stored under its idempotency key is returned to a retry, which has no effect.
 *
 * The events are read in a savepoint in which they have provisional numbers, as in a dry run. The savepoint is rolled
 * back, so the counter of the organization is locked by the commit only, and other writers do not wait for the
 * review. The fields of the response are read after the commit, as those of every mutation.
 */
export class ReviewedTransaction extends OperationTransaction<ReviewedEvents> {
  override readonly isDry = false;
  readonly #judge: (events: ReviewedEvents) => void;
  readonly #work: OperationWork;
  #committed: ReviewedEvents | undefined;

  /** @param judge throws if it must not be committed */
  constructor(work: OperationWork, judge: (events: ReviewedEvents) => void) {
    super(work);
    this.#judge = judge;
    this.#work = work;
  }

  override async keep(session: Session): Promise<void> {
    const hasWritten = { text: "select pg_catalog.pg_current_xact_id_if_assigned() is not null" };
    const [[isWrite]] = (await session.send([hasWritten], true)).rows as [[boolean]];
    if (!isWrite) return super.keep(session);
    await session.send(
      [
        { text: "savepoint of_review" },
        { text: "select pg_catalog.set_config('plat.dry_run', 'on', true)" },
        { text: "set constraints all immediate" },
      ],
      true,
    );
    const { events, moreEvents } = await heldEvents(session);
    await session.send([{ text: "rollback to savepoint of_review" }], true);
    await this.#commit(session, { events, moreEvents });
    // Further statements only read the fields of the response. They use connections of their own.
    this.#work.heldTransaction = undefined;
    this.end().catch(() => {});
  }

  /** @returns the events if it was committed */
  override async end(failed = true): Promise<ReviewedEvents | undefined> {
    const found = await super.end(failed);
    return this.#committed ?? found;
  }

  /** If no statement wrote anything, there are no events. */
  protected override async finish(session: Session, failed: boolean): Promise<ReviewedEvents | undefined> {
    if (!failed) await this.#commit(session, { events: [], moreEvents: 0 });
    return this.#committed;
  }

  async #commit(session: Session, events: ReviewedEvents): Promise<void> {
    if (!this.#work.isReplayed) this.#judge(events);
    await session.send([{ text: "commit" }], true);
    this.#committed = events;
  }
}
