/**
 * Notes what became of attempts: those that ended while others were noted are noted together, so that many cost one transaction. What
 * is not a plain success is noted by itself, as is what is left of a group.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Pool } from "pg";
import { throughOutages } from "../database/outages.ts";
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

/** Notes the result of an attempt; throws where that is not possible. */
export type RecordAttempt = (of: Attempt, result: PostResult) => Promise<void>;

/** Attempts of one statement at most. */
const GROUP = 256;
/** Statements at a time that note single attempts: they may wait for a lock, and the other connections are for others. */
const SINGLE_AT_A_TIME = 2;

/** @param pool has more connections than note single attempts at a time */
export function makeRecorder(pool: Pick<Pool, "query">, log: Logger): RecordAttempt {
  const group: Waiting[] = [];
  const single: Waiting[] = [];
  let isGrouping = false;
  let singles = 0;
  /** A group is of several requests, and of the work of none. */
  const ofNobody = AsyncLocalStorage.snapshot();

  // Whatever fails is told to whoever waits for it; this would be a fault in here.
  const report = (error: unknown) =>
    log.error({ event: "webhook.record_failed", err: error }, "Recording webhook deliveries failed.");

  async function noteGroup(ended: Waiting[]): Promise<void> {
    const answers = ended.map(({ result }) => result.answer!);
    const { rows } = await throughOutages(() =>
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
    // A turn of the event loop later: what ended in the same moment is of the group.
    await new Promise(setImmediate);
    while (group.length > 0) {
      const ended = group.splice(0, GROUP);
      await noteGroup(ended).catch((error: unknown) => {
        log.warn(
          { event: "webhook.record_failed", err: error },
          "Recording webhook deliveries together failed; recording each by itself.",
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
      await throughOutages(() =>
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
