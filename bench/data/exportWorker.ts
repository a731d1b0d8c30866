/** A process that only runs jobs that are due, and then prints its peak memory in bytes. */
import { createFileStore } from "../../src/providers/files/index.ts";
import { createOutbox, runJobs } from "../../test/tasks/worker.ts";

const [ownerUrl, dataDir] = process.argv.slice(2) as [string, string];
const outbox = await createOutbox();
const log = await runJobs(ownerUrl, outbox.provider, createFileStore({ dataDir }));
await outbox.remove();
const failed = log.filter((line) => line.startsWith("error"));
if (failed.length > 0) throw new Error(failed.join("\n"));
console.log(process.resourceUsage().maxRSS * 1024);
