/**
 * Records the outcome of attempts. Successes that end while a transaction is running are recorded together in the
 * next one. Other outcomes are recorded one by one, as is the rest of a failed group.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Pool } from "pg";
import { retryDuringOutages } from "../database/outages.ts";
import type { Logger } from "../base/log.ts";
import type { PostResult } from "../network/publicPost.ts";

/** An attempt at a delivery. */
export interface Attempt {
  delivery_id: string;
  attempt: number;
}

interface Waiting {
  of: Attempt;
  result: PostResult;
  noted: PromiseWithResolvers<void>;
}

/** Records the result of an attempt; throws if that fails. */
export type RecordAttempt = (of: Attempt, result: PostResult) => Promise<void>;

/** Maximum number of attempts per statement. */
const GROUP = 256;
/**
 * Maximum number of concurrent statements that record single attempts: they may wait for a lock, and other work needs
 * the remaining connections.
 */
const SINGLE_AT_A_TIME = 2;

/** @param pool has more connections than are used for single attempts */
export function makeRecorder(pool: Pick<Pool, "query">, log: Logger): RecordAttempt {
  const group: Waiting[] = [];
  const single: Waiting[] = [];
  let isGrouping = false;
  let singles = 0;
  /** A group belongs to several requests, so it has no work context. */
  const ofNobody = AsyncLocalStorage.snapshot();

  // Failures are reported to the callers; a rejection here would be a bug.
  const report = (error: unknown) =>
    log.error({ event: "webhook.record_failed", err: error }, "Recording webhook deliveries failed.");

  async function noteGroup(ended: Waiting[]): Promise<void> {
    const answers = ended.map(({ result }) => result.answer!);
    const { rows } = await retryDuringOutages(() =>
      pool.query<{ left: string[] }>({
        name: "record_webhook_deliveries",
        text: `select app_private.record_webhook_deliveries($1, $2, $3, $4, $5) as "left"`,
        values: [
          ended.map(({ of }) => of.delivery_id),
          ended.map(({ of }) => of.attempt),
          answers.map(({ status }) => status),
          answers.map(({ text }) => text),
          ended.map(({ result }) => result.durationMs),
        ],
      }),
    );
    const left = new Set(rows[0]!.left);
    for (const one of ended) {
      if (left.has(one.of.delivery_id)) alone(one);
      else one.noted.resolve();
    }
  }

  async function noteGroups(): Promise<void> {
    isGrouping = true;
    // Deferred by one turn of the event loop, so that attempts that end at the same moment are grouped.
    await new Promise(setImmediate);
    while (group.length > 0) {
      const ended = group.splice(0, GROUP);
      await noteGroup(ended).catch((error: unknown) => {
        log.warn(
          { event: "webhook.record_failed", err: error },
          "Recording webhook deliveries in a batch failed; recording each separately.",
        );
        ended.forEach(alone);
      });
    }
    isGrouping = false;
  }

  function alone(one: Waiting): void {
    single.push(one);
    if (singles < SINGLE_AT_A_TIME) noteSingles().catch(report);
  }

  async function noteSingles(): Promise<void> {
    singles += 1;
    for (let one = single.shift(); one; one = single.shift()) {
      const { of, result, noted } = one;
      await retryDuringOutages(() =>
        pool.query("select app_private.record_webhook_delivery($1, $2, $3, $4, $5, $6)", [
          of.delivery_id,
          of.attempt,
          result.answer?.status ?? null,
          result.answer?.text ?? result.failure,
          result.durationMs,
          result.answer?.retryAfter ?? null,
        ]),
      ).then(() => noted.resolve(), noted.reject);
    }
    singles -= 1;
  }

  return (of, result) => {
    const one = { of, result, noted: Promise.withResolvers<void>() };
    const { answer } = result;
    if (answer && answer.status >= 200 && answer.status <= 299) {
      group.push(one);
      if (!isGrouping) ofNobody(noteGroups).catch(report);
    } else {
      alone(one);
    }
    return one.noted.promise;
  };
}
