/**
 * `npm run backup`: copies database, files and keys into ARCHIVE_DIR, whether the service is running or not.
 *
 * `--keep 7` removes all but the last seven backups of this data folder, and files that only those needed; `--list` lists the backups;
 * `--verify` reads all backups back, and compares each file with the server's checksum.
 */
import { parseArgs } from "node:util";
import { allBackups, openSeries, type ArchivedBackup } from "../database/backupSeries.ts";
import { takeBackup } from "../backup/takeBackup.ts";
import { withDatabase } from "../database/running.ts";
import { readBackup } from "../backup/verifyBackup.ts";
import { loadConfig, type Config } from "../base/config.ts";
import { createFileStore } from "../providers/files/index.ts";
import { progress } from "./progress.ts";
import { ignoreClosedOutput } from "./ignoreClosedOutput.ts";

ignoreClosedOutput();

const { tell, end } = progress();
try {
  const { values } = parseArgs({
    options: { keep: { type: "string" }, list: { type: "boolean" }, verify: { type: "boolean" } },
  });
  // Only the settings that are needed to access the data.
  const config = loadConfig(process.env, ["--migrate-only"]);
  if (!config.archive) throw new Error("ARCHIVE_DIR is not set; set it to the folder for backups.");
  if (values.keep !== undefined && !/^[1-9]\d{0,4}$/.test(values.keep))
    throw new Error("--keep needs the number of backups to keep, at least 1.");
  if (values.list || values.verify) await show(config.archive.folder, values.verify ?? false);
  else await back(config, config.archive.folder, values.keep === undefined ? undefined : Number(values.keep));
} catch (error) {
  end();
  const { code, message } = error as NodeJS.ErrnoException;
  console.error(
    code === "ENOSPC"
      ? "The disk of ARCHIVE_DIR or DATA_DIR is full: free some space and run the command again. The incomplete backup is removed by the next one."
      : message,
  );
  process.exitCode = 1;
}

async function back(config: Config, archive: string, keep: number | undefined): Promise<void> {
  const { dataDir, s3, databaseUrl } = config;
  await withDatabase(config, async (loginUrl) => {
    const series = await openSeries(archive, dataDir, {});
    const store = createFileStore({ s3, dataDir });
    const made = await takeBackup({
      loginUrl,
      embedded: !databaseUrl,
      archive,
      series,
      dataDir,
      store,
      keep,
      onProgress: tell,
    });
    await store.close();
    end();
    console.log(`${line(made)}, ${made.contents} contents of files`);
    if (made.missing.length > 0)
      throw new Error(
        `The backup is complete, but the store of files lacks ${made.missing.length} contents to which the database refers; the first is ${made.missing[0]}.`,
      );
  });
}

async function show(archive: string, verify: boolean): Promise<void> {
  const backups = await allBackups(archive);
  if (backups.length === 0) console.log(`There is no complete backup in ${archive}.`);
  for (const backup of backups) {
    if (verify) await readBackup(backup.folder);
    console.log(`${line(backup)}${verify ? ", read back without a difference" : ""}`);
  }
}

function line({ folder, facts }: ArchivedBackup): string {
  return `${facts.finishedAt}  ${folder}  ${Math.ceil(facts.bytes / 2 ** 20)} MiB`;
}
