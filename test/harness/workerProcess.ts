/**
 * A worker in a separate process, to be killed: `node workerProcess.ts <database> <folder of tasks> [<data folder>]`.
 */
import pino from "pino";
import { makePool } from "../../src/database/pool.ts";
import { authenticatorUrl, workerUrl } from "../../src/database/roles.ts";
import { incomingFolder } from "../../src/providers/files/incoming.ts";
import { taskContext, type TaskContext } from "../../src/jobs/context.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import { startWorker } from "../../src/worker.ts";

const [connectionString, taskDirectory, dataDir] = process.argv.slice(2) as [string, string, string?];
/** The dependencies of tasks that write files. */
const viewers = makePool({ connectionString: authenticatorUrl(connectionString), max: 2 });
const files = dataDir && {
  viewersOf: () => viewers,
  incomingFolder: incomingFolder(dataDir),
  fileStore: createFileStore({ dataDir }),
};
await startWorker({
  connectionString: workerUrl(connectionString),
  taskDirectory,
  concurrency: 4,
  log: pino({ level: "silent" }),
  lookEveryMs: 200,
  presets: files ? [taskContext(files as unknown as TaskContext)] : [],
});
