/**
 * Determines the versions of the data that responses to viewers depend on. One statement runs at a time, for all
 * requests that arrived before it.
 */
import type { Pool } from "pg";
import type { Claims } from "./claims.ts";
import { parseLsn } from "./position.ts";
import type { TokenFacts } from "./tokenCheck.ts";

/** Versions of the data that a viewer's responses currently depend on; equal texts mean equal data. */
export interface DataVersion {
  /** Versions of the viewer's organizations and of the viewer. */
  readonly own: string;
  /** Version of everything; undefined if that is too expensive to determine. */
  readonly whole: string | undefined;
  /** WAL position up to which it is valid. */
  readonly reached: bigint;
}

interface Row {
  number: number;
  own: string;
  whole: string | null;
  reached: string;
}

interface PendingRead {
  readonly claims: Claims;
  readonly facts: TokenFacts | undefined;
  readonly outcome: PromiseWithResolvers<DataVersion | undefined>;
}

/** Viewers per statement. */
const MOST_VIEWERS = 50;

/** PERF: by identity, since the requests of a token that was looked up once share these. */
const keyOf = ({ claims, facts }: PendingRead): object => facts ?? claims;

export class DataVersions {
  readonly #pool: Pick<Pool, "query">;
  #waiting: PendingRead[] = [];
  #running = false;

  /** @param pool of plat_authenticator */
  constructor(pool: Pick<Pool, "query">) {
    this.#pool = pool;
  }

  /**
   * Includes everything committed before the call.
   * @param facts of the viewer's token; undefined for a visitor
   * @returns undefined if the token needs a full check, a deadline is due, or the database does not answer
   */
  read(claims: Claims, facts: TokenFacts | undefined): Promise<DataVersion | undefined> {
    const pending: PendingRead = { claims, facts, outcome: Promise.withResolvers() };
    this.#waiting.push(pending);
    if (!this.#running) this.#run().catch(pending.outcome.reject);
    return pending.outcome.promise;
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      const viewers = new Map<object, PendingRead[]>();
      const later: PendingRead[] = [];
      for (const pending of this.#waiting) {
        const key = keyOf(pending);
        const same = viewers.get(key);
        if (same) same.push(pending);
        else if (viewers.size < MOST_VIEWERS) viewers.set(key, [pending]);
        else later.push(pending);
      }
      this.#waiting = later;
      const groups = [...viewers.values()];
      const found = await this.#ask(groups.map(([first]) => first!)).catch(() => []);
      for (const [index, group] of groups.entries())
        for (const { outcome } of group) outcome.resolve(found[index]);
      // PERF: a statement costs as much as an answer; requests that have arrived meanwhile share the next one.
      if (this.#waiting.length > 0) await new Promise(setImmediate);
    }
    this.#running = false;
  }

  async #ask(viewers: readonly PendingRead[]): Promise<(DataVersion | undefined)[]> {
    const { rows } = await this.#pool.query<Row>({
      name: "look_at_viewers",
      text: "select number, own, whole, reached from app_private.look_at_viewers($1, $2, $3, $4)",
      values: [
        viewers.map(({ claims }) => claims.userId),
        viewers.map(({ facts }) => facts?.sessionId ?? null),
        viewers.map(({ facts }) => facts?.tokenSha256 ?? null),
        viewers.map(({ claims }) => claims.organizationId ?? null),
      ],
    });
    const versions: (DataVersion | undefined)[] = viewers.map(() => undefined);
    for (const { number, own, whole, reached } of rows)
      versions[number - 1] = { own, whole: whole ?? undefined, reached: parseLsn(reached) };
    return versions;
  }
}
