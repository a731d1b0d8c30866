/** A worker in a process of its own, to be killed: `node workerProcess.ts <database> <folder of tasks>`. */
import pino from "pino";
import { startWorker } from "../../src/worker.ts";

const [connectionString, taskDirectory] = process.argv.slice(2) as [string, string];
await startWorker({ connectionString, taskDirectory, concurrency: 4, log: pino({ level: "silent" }) });
