/**
 * What the service needs of node-postgres that its interface does not promise: several statements in one write (src/database/fusedQuery.ts), and
 * deadlines on silence (src/database/client.ts). So the version is pinned in package.json, and a start says what is missing.
 */
import { createRequire } from "node:module";
import pg, { Client } from "pg";

/** The version that was read and tested. */
export const DRIVER_VERSION = "8.23.1";

/** Whatever of the driver is looked at. */
export interface Driver {
  readonly version: string;
  readonly utils: object;
  /** A client that is not connected. */
  readonly client: object;
}

/** What a query of one's own writes with, in the order of the protocol. */
const WIRE = ["parse", "bind", "describe", "execute", "close", "sync", "sendCopyFail", "on", "off"];
const STREAM = ["cork", "uncork", "destroy", "prependListener", "bytesRead"];

/** The driver that is installed. */
export function installedDriver(): Driver {
  const require = createRequire(import.meta.url);
  const { version } = require("pg/package.json") as { version: string };
  const { utils } = pg as unknown as { utils: object };
  return { version, utils, client: new Client() };
}

/**
 * For a start: a driver of another kind would send half a batch, or wait for ever.
 * @throws Error with a sentence for the user where something is missing
 */
export function requireDriver(driver = installedDriver()): void {
  const { connection } = driver.client as { connection?: object };
  const { stream } = (connection ?? {}) as { stream?: object };
  const missing = [
    ...lacking(driver.utils, "utils", ["prepareValue"]),
    ...lacking(driver.client, "Client", ["getTransactionStatus", "getTypeParser"]),
    ...lacking(connection, "Client.connection", WIRE),
    ...lacking(stream, "Client.connection.stream", STREAM),
  ];
  if (missing.length > 0)
    throw new Error(
      `This version needs pg ${DRIVER_VERSION}; pg ${driver.version} is installed and has no ${missing.join(", ")}: run \`npm ci\`.`,
    );
}

function lacking(object: object | undefined, name: string, keys: readonly string[]): string[] {
  return keys.filter((key) => !(key in (object ?? {}))).map((key) => `${name}.${key}`);
}
