/**
 * An upgrade of a data folder with the reduced schema, in a separate process that can be killed: `node
 * upgradeChild.ts <data folder> <server>`. Prints the current step on stdout.
 */
import { onConnection } from "../../src/database/onConnection.ts";
import { upgradeDataDir } from "../../src/database/upgradeDataDir.ts";
import { reduced } from "./upgradeWorld.ts";

const [dataDir, server] = process.argv.slice(2) as [string, string];
await upgradeDataDir({
  dataDir,
  server,
  migrate: (url) => onConnection(url, (client) => client.query(reduced)),
  tell: (what) => process.stdout.write(`${what}\n`),
  evenSame: true,
});
