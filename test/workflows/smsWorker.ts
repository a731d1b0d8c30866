/**
 * Workflows with the real text message provider, in a separate process that can be killed: `node smsWorker.ts
 * <database> <address of the API>`.
 */
import pino from "pino";
import { createCompute } from "../../src/compute/computePool.ts";
import { createTwilio } from "../../src/providers/sms/twilio.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { workerUrl } from "../../src/database/roles.ts";
import { startWorkflows } from "../../src/workflows/runner.ts";

const [connectionString, api] = process.argv.slice(2) as [string, string];
await startWorkflows({
  connectionString: workerUrl(connectionString),
  seal: createSeal([{ kid: "test", secret: "a key of the tests with at least 32 characters" }]),
  loopback: false,
  compute: createCompute({ log: pino({ level: "silent" }) }),
  log: pino({ level: "silent" }),
  sms: createTwilio({
    accountSid: "AC1",
    authToken: "token of the tests",
    sender: "+14165550199",
    api,
    baseUrl: "https://plat.example",
    notices: false,
  }),
});
