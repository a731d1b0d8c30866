/**
 * A payment processor for development and tests, in the process of the service: it implements the HTTP API of the real one at an address of
 * this machine, so that the same client is used for both. No money moves, and no card numbers are accepted.
 */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Pool } from "pg";
import { workPoolOf } from "../../../database/workConnections.ts";
import type { Logger } from "../../../base/log.ts";
import { Deliveries, type Endpoint } from "./deliveries.ts";
import { requests } from "./requests.ts";
import { sandboxRoutes } from "./routes.ts";

export interface SandboxOptions {
  /** The connection of plat_worker to the database that stores its state. */
  connectionString: string;
  /** Shared connections; its own by default. */
  pool?: Pick<Pool, "query" | "connect"> | undefined;
  /** The target of events; by default none, as long as another process delivers them. */
  endpoint?: Endpoint | undefined;
  port?: number;
  log: Pick<Logger, "debug" | "warn">;
}

export interface Sandbox {
  /** Its URL, without a trailing slash. */
  api: string;
  secretKey: string;
  /** Delivers what is due. */
  kick(): Promise<void>;
  /** Sets the target of events. */
  deliverTo(endpoint: Endpoint): void;
  stop(): Promise<void>;
}

/** Starts the sandbox on a local port. @param port 0 for any free port */
export async function startSandbox({
  connectionString,
  pool: shared,
  endpoint,
  port = 0,
  log,
}: SandboxOptions): Promise<Sandbox> {
  const pool = workPoolOf(shared, {
    connectionString,
    max: 1,
    applicationName: "plat-payments-sandbox",
    log,
  });
  const secretKey = `sk_test_sandbox${randomBytes(12).toString("hex")}`;
  const deliveries = new Deliveries(pool, endpoint, log);
  let api = "";
  const on = requests({ pool, secretKey, done: () => void deliveries.kick() });
  const app = sandboxRoutes({ pool, on, kick: () => deliveries.kick(), api: () => api });
  const server = createServer(app);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  }).catch(async (error) => {
    await pool.end();
    throw error;
  });
  api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  deliveries.kick().catch(() => {});
  return {
    api,
    secretKey,
    kick: () => deliveries.kick(),
    deliverTo: (next) => deliveries.deliverTo(next),
    async stop() {
      await deliveries.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await pool.end();
    },
  };
}
