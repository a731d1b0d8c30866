/**
 * `npm run restore`: restores the state of a point in time from the archive ARCHIVE_DIR into the empty folder
 * DATA_DIR.
 * `--at 2026-11-21T14:03Z` is the point in time. Default: the end of the archive. `--into` names another folder than
 * DATA_DIR. `--backup` is the folder of the backup to begin with. Default: the last one before that time. `--cluster`
 * only unpacks the cluster of the database, for a separate server.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { restoreCluster, restoreDataDir, type RestoreOptions } from "../backup/restoreDataDir.ts";
import { loadConfig } from "../base/config.ts";
import { createFileStore } from "../providers/files/index.ts";
import { progress } from "./progress.ts";
import { ignoreClosedOutput } from "./ignoreClosedOutput.ts";

ignoreClosedOutput();

const { tell, end } = progress();
try {
  const { values } = parseArgs({
    options: {
      at: { type: "string" },
      into: { type: "string" },
      backup: { type: "string" },
      cluster: { type: "boolean" },
    },
  });
  const config = loadConfig(process.env, ["--migrate-only"]);
  if (!config.archive) throw new Error("ARCHIVE_DIR is not set; set it to the folder of the archive.");
  const into = values.into === undefined ? config.dataDir : resolve(values.into);
  const store = createFileStore({ s3: config.s3, dataDir: into });
  const options: RestoreOptions = {
    archive: config.archive.folder,
    at: values.at === undefined ? undefined : moment(values.at),
    backup: values.backup === undefined ? undefined : resolve(values.backup),
    into,
    store,
    onProgress: tell,
  };
  if (!values.cluster) {
    const { backup, lastChange, missing } = await restoreDataDir(options);
    end();
    console.log(
      `Restored into ${into} from ${backup.folder}${lastChange ? `; the last change is of ${lastChange.toISOString()}` : ""}. Start it with DATA_DIR=${into}.`,
    );
    if (missing.length > 0)
      throw new Error(`The archive lacks ${missing.length} contents of files; the first is ${missing[0]}.`);
  } else {
    const { backup } = await restoreCluster(options);
    end();
    console.log(
      `Unpacked into ${into} from ${backup.folder}, of PostgreSQL ${backup.facts.serverVersion}. Give the folder to the user of your server ` +
        `and start that on it: it applies the changes in ${into}.wal, which can be removed then. Keys are in ${backup.folder}/keys, files in ${config.archive.folder}/files.`,
    );
  }
  await store.close();
} catch (error) {
  end();
  console.error((error as Error).message);
  process.exitCode = 1;
}

function moment(text: string): Date {
  // Without a time zone, the time would differ between machines.
  const date = new Date(text);
  if (!/T.*(Z|[+-]\d\d:?\d\d)$/.test(text) || Number.isNaN(date.getTime()))
    throw new Error("--at needs a time with its offset, such as 2026-11-21T14:03Z.");
  return date;
}
