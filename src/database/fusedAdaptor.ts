import type { Pool } from "pg";
import type { WithPgClient } from "postgraphile/@dataplan/pg";
import {
  createWithPgClient as createStockWithPgClient,
  makePgService,
  type NodePostgresPgClient,
  type PgAdaptorSettings,
} from "postgraphile/adaptors/pg";
import { eventLoop } from "../admission/eventLoop.ts";
import type { FairSemaphore, Release } from "../admission/fairSemaphore.ts";
import type { Party } from "../admission/party.ts";
import { workOf } from "../admission/operationWork.ts";
import type { Deadlines } from "./deadlines.ts";
import { OperationTransaction } from "./operationTransaction.ts";
import { FusedClient } from "./fusedClient.ts";
import type { ChosenReplica, Replicas } from "./replicas.ts";
import { OrderedPool } from "./orderedPool.ts";
import { Session } from "./session.ts";
import { tracedClient } from "./statementTrace.ts";
import { RequestSettings } from "./requestSettings.ts";
import { connectionWaits, endTiming, startTiming } from "./timings.ts";

/** Options of the adaptor. */
export interface FusedAdaptorOptions {
  /** Prepared statements kept per connection. Default: 100; 0 disables them. */
  readonly preparedStatements?: number;
  /** Deadlines to expire before reads. Default: none. */
  readonly deadlines?: Deadlines;
  /** Fair queue for connections; without it, operations wait in the pool's own queue. */
  readonly connections?: FairSemaphore;
  /** Standbys that answer queries. Default: none. */
  readonly replicas?: Replicas | undefined;
}

/** The server that executes a statement. */
interface Server {
  readonly pool: Pool;
  readonly connections: FairSemaphore | undefined;
  readonly deadlines?: Deadlines | undefined;
  /** On a replica: the position that it has to replay first. */
  readonly notBefore?: string;
}

/** Waits for a share of the connections, if it is not free. */
const turn = (connections: FairSemaphore | undefined, party: Party): Release | undefined | Promise<Release> =>
  connections?.tryAcquire(party) ?? connections?.acquire(party);

/** Rows of this many bytes block the event loop noticeably when they are converted. */
const LARGE_BYTES = 32_768;

/**
 * An adaptor for PostGraphile's PostgreSQL service that needs one round trip per SQL step where the one that comes with it
 * needs four: `{ ...makePgService({ … }), adaptor: makeFusedAdaptor() }`.
 *
 * Settings and statement form one implicit transaction (see FusedQuery). It fails closed: when a setting is refused the
 * statement does not run. The answer comes after the commit. Statements of the SUPERUSER variant (watch mode's scripts) and
 * of the test settings with a client of their own go through the stock adaptor.
 */
export function makeFusedAdaptor({
  preparedStatements = 100,
  deadlines,
  connections,
  replicas,
}: FusedAdaptorOptions = {}) {
  const options = { preparedStatements, deadlines, connections, replicas };
  return {
    makePgService,
    createWithPgClient(
      settings: PgAdaptorSettings = {},
      variant?: string | null,
    ): WithPgClient<NodePostgresPgClient> {
      if (variant === "SUPERUSER" || settings.poolClient !== undefined) {
        return createStockWithPgClient(settings, variant);
      }
      if (settings.pool !== undefined) return makeWithPgClient(settings.pool, options);
      const { max = 10, connectionTimeoutMillis = 10_000 } = settings.poolConfig ?? {};
      const { connectionString } = settings;
      const pool = new OrderedPool({
        ...settings.poolConfig,
        connectionString,
        max,
        connectionTimeoutMillis,
      });
      pool.on("error", () => {});
      return makeWithPgClient(pool, options, () => pool.end());
    },
  };
}

function makeWithPgClient(
  pool: Pool,
  {
    preparedStatements,
    deadlines,
    connections,
    replicas,
  }: {
    preparedStatements: number;
    deadlines: Deadlines | undefined;
    connections: FairSemaphore | undefined;
    replicas: Replicas | undefined;
  },
  release: () => Promise<void> | void = () => {},
): WithPgClient<NodePostgresPgClient> {
  let released = false;
  return Object.assign(
    async <T>(
      pgSettings: Record<string, string | undefined> | null,
      use: (client: NodePostgresPgClient) => T | Promise<T>,
    ): Promise<T> => {
      // Created before a connection is taken: invalid settings must not cost one.
      const work = workOf(pgSettings);
      const trace = work?.trace;
      const callback: typeof use = trace ? (client) => use(tracedClient(client, trace)) : use;
      if (work?.heldTransaction instanceof OperationTransaction)
        return work.heldTransaction.run(
          { pool, deadlines, connections, preparedStatements },
          pgSettings,
          callback,
        );
      work?.throwFailure();
      const startedAt = startTiming(connectionWaits);
      let bytes = 0;
      const run = async (server: Server, settings: RequestSettings): Promise<T> => {
        const held = work && (await turn(server.connections, work.party));
        try {
          const connection = await server.pool.connect();
          endTiming(connectionWaits, startedAt, "operations");
          const session = Session.of(connection, preparedStatements);
          const client = new FusedClient(session, settings, pgSettings?.["role"] ?? "", server);
          client.work = work;
          session.meter = work && ((count) => ((bytes += count), work.read(count)));
          session.onNotice = work && (({ code }) => work.noticed(code));
          try {
            return await callback(client);
          } finally {
            await client.close();
            session.meter = undefined;
            session.onNotice = undefined;
            connection.release(!session.reusable);
          }
        } finally {
          held?.();
        }
      };
      const onPrimary = () => {
        if (replicas && work?.isQuery) replicas.reads.primary += 1;
        return run({ pool, connections, deadlines }, new RequestSettings(pgSettings, deadlines?.probe, work));
      };
      const onReplica = async ({ replica, position }: ChosenReplica): Promise<T> => {
        const { lsn: notBefore } = position;
        try {
          // Nothing expires here: what is due is left to the primary.
          const settings = new RequestSettings(pgSettings, deadlines?.probe, { notBefore: undefined });
          const server = { pool: replica.pool, connections: replica.connections, notBefore };
          const result = await run(server, settings);
          replicas!.reads.replica += 1;
          return result;
        } catch (error) {
          if (!replica.failed(error, position)) throw error;
        }
        work!.needsPrimary = true;
        work!.bytesRead -= bytes;
        bytes = 0;
        return onPrimary();
      };
      const chosen = work && replicas && (await replicas.choose(work));
      const result = await (chosen ? onReplica(chosen) : onPrimary());
      // Large results are converted in one go when they are handed over.
      if (work && bytes > LARGE_BYTES) await eventLoop.ready(work.party);
      return result;
    },
    {
      release() {
        if (released) throw new Error("Release called twice on the same withPgClient");
        released = true;
        return release();
      },
    },
  );
}
