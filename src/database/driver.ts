/**
 * Private parts of node-postgres that this service uses: several statements in one write (src/database/fusedQuery.ts)
 * and timeouts (src/database/client.ts). The version is therefore pinned in package.json and checked at start.
 */
import { createRequire } from "node:module";
import pg, { Client } from "pg";

/** The version that was reviewed and tested. */
export const DRIVER_VERSION = "8.23.1";

/** Members of the driver that are checked. */
export interface Driver {
  readonly version: string;
  readonly utils: object;
  /** A client that is not connected. */
  readonly client: object;
}

/** Methods that custom queries use. */
const WIRE = ["sendCopyFail", "on", "off"];
const STREAM = ["writable", "write", "destroy", "prependListener", "bytesRead"];

/** The driver that is installed. */
export function installedDriver(): Driver {
  const require = createRequire(import.meta.url);
  const { version } = require("pg/package.json") as { version: string };
  const { utils } = pg as unknown as { utils: object };
  return { version, utils, client: new Client() };
}

/**
 * Called at start: an unsupported driver would send half a batch, or wait forever.
 * @throws Error with a message for the user if something is missing
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
