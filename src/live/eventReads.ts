/**
 * Database reads for streams: visible events, and changes of access. One small pool serves all streams of a process.
 */
import type { Pool } from "pg";
import { FairSemaphore } from "../admission/fairSemaphore.ts";
import { organizationParty, partyOf } from "../admission/party.ts";
import type { Logger } from "../base/log.ts";
import { pgSettings, type Claims } from "../database/claims.ts";
import { makeFusedAdaptor } from "../database/fusedAdaptor.ts";
import { makePool } from "../database/pool.ts";
import type { TokenFacts } from "../database/tokenCheck.ts";
import { Batch, type LiveEvent } from "./batch.ts";

/** Row of app_hidden.read_events. */
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

export class EventReads {
  readonly #pool: Pool;
  readonly #withPgClient: ReturnType<ReturnType<typeof makeFusedAdaptor>["createWithPgClient"]>;
  // One connection each, shared with the checks, so that one organization with many sets of claims does not block
  // another.
  readonly #lanes = {
    live: new FairSemaphore({ capacity: 1 }),
    behind: new FairSemaphore({ capacity: 1 }),
  };

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
   * if the viewer has lost access.
   */
  async events(
    claims: Claims,
    organizationId: string,
    { after, most, lane }: { after: number; most: number; lane: "live" | "behind" },
  ): Promise<Batch | undefined> {
    const party = lane === "live" ? organizationParty(organizationId) : partyOf(claims.userId, undefined);
    const rows = await this.#lanes[lane].run(party, () =>
      this.#asViewer<EventRow>(
        claims,
        "read_events",
        `select sequence, name, project_id, subject_type, subject_id, extract(epoch from occurred_at) * 1000, message, head
         from app_hidden.read_events($1, $2, $3)`,
        [organizationId, after, most],
      ),
    );
    return toBatch(after, rows);
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
    const { sessionId: _, ...rest } = claims;
    const settings = pgSettings({ ...rest, readOnly: true }, { requestId: "live", channel: "API" });
    const { rows } = await this.#withPgClient(settings, (client) =>
      client.query<Row>({ text, name, values, arrayMode: true } as never),
    );
    return rows as unknown as Row[];
  }
}

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
