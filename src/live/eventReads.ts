/**
 * Database reads for streams: visible events, and changes of access. One small pool serves all streams of a process.
 */
import type { Pool } from "pg";
import { FairSemaphore } from "../admission/fairSemaphore.ts";
import { organizationParty, partyOf } from "../admission/party.ts";
import type { Logger } from "../base/log.ts";
import { pgSettings, type Claims } from "../database/claims.ts";
import { makeFusedAdaptor } from "../database/fusedAdaptor.ts";
import { isOutage } from "../database/outages.ts";
import { makePool } from "../database/pool.ts";
import type { TokenFacts } from "../database/tokenCheck.ts";
import { Batch, type LiveEvent } from "./batch.ts";

/** Row of app_hidden.read_events; the last one of a viewer has no event, but the head. */
type EventRow = [
  sequence: string,
  name: string,
  projectId: string | null,
  subjectType: string,
  subjectId: string,
  occurredAt: string,
  message: string | null,
  head: string | null,
];

/** Start position of a stream. */
export interface StreamStart {
  readonly organizationId: string;
  readonly projectId: string | undefined;
  readonly head: number;
}

/** A request for live events. */
interface WaitingRead {
  readonly claims: Claims;
  readonly after: number;
  readonly most: number;
  resolve(batch: Batch | undefined): void;
  reject(error: unknown): void;
}

/**
 * Sets of claims per statement. The results of one statement are delivered while the next is executed, so more per
 * statement delay the first readers, and fewer repeat the start of a transaction.
 */
const GROUP = 8;

/** Columns of EventRow. */
const COLUMNS =
  "sequence, name, project_id, subject_type, subject_id, extract(epoch from occurred_at) * 1000, message, head";

export class EventReads {
  readonly #pool: Pool;
  readonly #withPgClient: ReturnType<ReturnType<typeof makeFusedAdaptor>["createWithPgClient"]>;
  // One connection each, shared with the checks, so that one organization with many sets of claims does not block
  // another.
  readonly #lanes = {
    live: new FairSemaphore({ capacity: 1 }),
    behind: new FairSemaphore({ capacity: 1 }),
  };
  /** Requests for live events, by organization. */
  readonly #waiting = new Map<string, WaitingRead[]>();

  /** @param connectionString of plat_authenticator */
  constructor(connectionString: string, log: Logger) {
    this.#pool = makePool({
      connectionString,
      max: 2,
      applicationName: "plat-live",
      genericPlans: true,
      onError: (error) =>
        log.warn(
          { event: "database.connection_lost", err: error },
          "A database connection was lost; the pool opens another one.",
        ),
    });
    this.#withPgClient = makeFusedAdaptor().createWithPgClient({ pool: this.#pool });
  }

  /** Start position of a stream for an organization, by id or slug; undefined if the viewer has no access. */
  async begin(
    claims: Claims,
    organization: string,
    project: string | undefined,
  ): Promise<StreamStart | undefined> {
    const [row] = await this.#asViewer<[string | null, string | null, string | null]>(
      claims,
      "begin_stream",
      "select organization_id, project_id, head from app_hidden.begin_stream($1, $2)",
      [organization, project ?? null],
    );
    const [organizationId, projectId, head] = row!;
    if (organizationId === null || head === null) return undefined;
    return { organizationId, projectId: projectId ?? undefined, head: Number(head) };
  }

  /**
   * The visible events of an organization after a sequence number, from a range with a maximum length; undefined
   * if the viewer has lost access. On the lane `live`, simultaneous requests share statements.
   */
  async events(
    claims: Claims,
    organizationId: string,
    { after, most, lane }: { after: number; most: number; lane: "live" | "behind" },
  ): Promise<Batch | undefined> {
    if (lane === "live")
      return new Promise((resolve, reject) => {
        const one = { claims, after, most, resolve, reject };
        const waiting = this.#waiting.get(organizationId);
        if (waiting) return void waiting.push(one);
        this.#waiting.set(organizationId, [one]);
        this.#readWaiting(organizationId).catch(reject);
      });
    return this.#lanes.behind.run(partyOf(claims.userId, undefined), async () => {
      const rows = await this.#asViewer<EventRow>(
        claims,
        "read_events",
        `select ${COLUMNS} from app_hidden.read_events($1, $2, $3)`,
        [organizationId, after, most],
      );
      return toBatch(after, rows);
    });
  }

  /** Serves all requests for live events of an organization, also those that arrive meanwhile. */
  async #readWaiting(organizationId: string): Promise<void> {
    // All sets of claims ask in the same turn of the event loop.
    await Promise.resolve();
    const waiting = this.#waiting.get(organizationId)!;
    while (waiting.length > 0)
      await this.#lanes.live.run(organizationParty(organizationId), () =>
        this.#readGroup(organizationId, waiting),
      );
    this.#waiting.delete(organizationId);
  }

  async #readGroup(organizationId: string, waiting: WaitingRead[]): Promise<void> {
    const most = waiting[0]!.most;
    const group = waiting.splice(0, GROUP);
    try {
      const batches = await this.#read(organizationId, group, most);
      waiting.unshift(...group.slice(batches.length));
      // The next statement is sent before the results of this one are delivered.
      setImmediate(() => batches.forEach((batch, index) => group[index]!.resolve(batch)));
    } catch (error) {
      if (group.length === 1 || isOutage(error)) return group.forEach(({ reject }) => reject(error));
      // What fails for one viewer must not stop the others.
      for (const one of group)
        await this.#read(organizationId, [one], most).then(([batch]) => one.resolve(batch), one.reject);
    }
  }

  /** The events for the first viewers of a group: all of them unless the events are large. */
  async #read(
    organizationId: string,
    group: readonly WaitingRead[],
    most: number,
  ): Promise<(Batch | undefined)[]> {
    const viewers = group.map(({ claims, after }) => ({ ...settingsOf(claims), after }));
    const rows = await this.#asViewer<[viewer: number, ...EventRow]>(
      group[0]!.claims,
      "read_events_for",
      `select viewer, ${COLUMNS} from app_hidden.read_events_for($1, $2, $3)`,
      [JSON.stringify(viewers), organizationId, most],
    );
    const byViewer: EventRow[][] = [];
    for (const [viewer, ...row] of rows) (byViewer[viewer - 1] ??= []).push(row);
    const known: { rows: readonly EventRow[]; batch: Batch }[] = [];
    return byViewer.map((found, index) => {
      const { after } = group[index]!;
      // Most viewers see the same: what is derived from a batch is shared as well.
      const same = known.find(({ rows: others, batch }) => batch.after === after && areEqual(others, found));
      if (same) return same.batch;
      const batch = found[0]![0] === null ? undefined : toBatch(after, found);
      if (batch) known.push({ rows: found, batch });
      return batch;
    });
  }

  /**
   * The tokens whose access version has changed, by position (from 1), with the new version; null if the token has
   * expired.
   * @param versions as returned before; empty to determine it again
   */
  async changed(
    of: readonly TokenFacts[],
    versions: readonly string[],
  ): Promise<readonly { number: number; version: string | null }[]> {
    const { rows } = await this.#pool.query<{ number: number; version: string | null }>({
      name: "changed_viewers",
      text: "select * from app_private.changed_viewers($1, $2, $3, $4)",
      values: [
        of.map(({ userId }) => userId),
        of.map(({ sessionId }) => sessionId),
        of.map(({ tokenSha256 }) => tokenSha256),
        versions,
      ],
    });
    return rows;
  }

  /** Organizations with events after their positions. */
  async moved(positions: ReadonlyMap<string, number>): Promise<string[]> {
    const { rows } = await this.#pool.query<{ id: string }>({
      name: "moved_streams",
      text: "select app_private.moved_streams($1, $2) as id",
      values: [[...positions.keys()], [...positions.values()]],
    });
    return rows.map(({ id }) => id);
  }

  end(): Promise<void> {
    return this.#pool.end();
  }

  async #asViewer<Row>(claims: Claims, name: string, text: string, values: unknown[]): Promise<Row[]> {
    const { rows } = await this.#withPgClient(settingsOf(claims), (client) =>
      client.query<Row>({ text, name, values, arrayMode: true } as never),
    );
    return rows as unknown as Row[];
  }
}

/** Settings of a read for these claims. Sessions of a user see the same. */
function settingsOf(claims: Claims): Record<string, string> {
  const { sessionId: _, ...rest } = claims;
  return pgSettings({ ...rest, readOnly: true }, { requestId: "live", channel: "API" });
}

const areEqual = (some: readonly EventRow[], others: readonly EventRow[]): boolean =>
  some.length === others.length &&
  some.every((row, index) => row.every((value, column) => value === others[index]![column]));

function toBatch(after: number, rows: readonly EventRow[]): Batch | undefined {
  const mark = rows.at(-1);
  if (!mark) return undefined;
  const events = rows
    .slice(0, -1)
    .map(([sequence, name, projectId, subjectType, subjectId, occurredAt, message]): LiveEvent => ({
      sequence: Number(sequence),
      name,
      projectId,
      subjectType,
      subjectId,
      occurredAt: Number(occurredAt),
      message: message!,
    }));
  return new Batch(after, Number(mark[0]), Number(mark[7]), events);
}
