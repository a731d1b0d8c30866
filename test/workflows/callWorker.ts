/**
 * Workflows that call this machine, in a separate process that can be killed: `node callWorker.ts <database> <data
 * folder>`.
 */
import pino from "pino";
import { createCompute } from "../../src/compute/computePool.ts";
import { createSmsProvider } from "../../src/providers/sms/index.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { workerUrl } from "../../src/database/roles.ts";
import { startWorkflows } from "../../src/workflows/runner.ts";

const [connectionString, dataDir] = process.argv.slice(2) as [string, string];
const log = pino({ level: "silent" });
await startWorkflows({
  connectionString: workerUrl(connectionString),
  seal: createSeal([{ kid: "test", secret: "a key of the tests with at least 32 characters" }]),
  loopback: true,
  compute: createCompute({ log }),
  log,
  sms: createSmsProvider({ dataDir, baseUrl: "https://plat.example" }),
});
