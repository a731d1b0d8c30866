import type { Pool } from "pg";
import type { WithPgClient } from "postgraphile/@dataplan/pg";
import {
  createWithPgClient as createStockWithPgClient,
  makePgService,
  type NodePostgresPgClient,
  type PgAdaptorSettings,
} from "postgraphile/adaptors/pg";
import { eventLoop } from "../admission/eventLoop.ts";
import type { FairSemaphore } from "../admission/fairSemaphore.ts";
import { workOf } from "../admission/operationWork.ts";
import type { Deadlines } from "./deadlines.ts";
import { OperationTransaction } from "./operationTransaction.ts";
import { FusedClient } from "./fusedClient.ts";
import { OrderedPool } from "./orderedPool.ts";
import { Session } from "./session.ts";
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
}

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
}: FusedAdaptorOptions = {}) {
  const options = { preparedStatements, deadlines, connections };
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
  }: {
    preparedStatements: number;
    deadlines: Deadlines | undefined;
    connections: FairSemaphore | undefined;
  },
  release: () => Promise<void> | void = () => {},
): WithPgClient<NodePostgresPgClient> {
  let released = false;
  return Object.assign(
    async <T>(
      pgSettings: Record<string, string | undefined> | null,
      callback: (client: NodePostgresPgClient) => T | Promise<T>,
    ): Promise<T> => {
      // Created before a connection is taken: invalid settings must not cost one.
      const work = workOf(pgSettings);
      if (work?.heldTransaction instanceof OperationTransaction)
        return work.heldTransaction.run(
          { pool, deadlines, connections, preparedStatements },
          pgSettings,
          callback,
        );
      const settings = new RequestSettings(pgSettings, deadlines?.probe, work);
      work?.throwFailure();
      const startedAt = startTiming(connectionWaits);
      const held = work && (await connections?.acquire(work.party));
      let bytes = 0;
      let result: T;
      try {
        const connection = await pool.connect();
        endTiming(connectionWaits, startedAt, "operations");
        const session = Session.of(connection, preparedStatements);
        const client = new FusedClient(session, settings, pgSettings?.["role"] ?? "", deadlines);
        client.work = work;
        session.meter = work && ((count) => ((bytes += count), work.read(count)));
        session.onNotice = work && (({ code }) => work.noticed(code));
        try {
          result = await callback(client);
        } finally {
          await client.close();
          session.meter = undefined;
          session.onNotice = undefined;
          connection.release(!session.reusable);
        }
      } finally {
        held?.();
      }
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
