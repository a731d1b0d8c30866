/** Starts the API under test in the realm of the process, so that test files share its loaded modules. */
import pino from "pino";
import type { GraphQLSchema } from "postgraphile/graphql";
import { eventLoop } from "../../src/admission/eventLoop.ts";
import { createLoginTokens } from "../../src/auth/loginToken.ts";
import { createCompute } from "../../src/compute/computePool.ts";
import { serviceDeadlines } from "../../src/database/deadlines.ts";
import { makeFusedAdaptor } from "../../src/database/fusedAdaptor.ts";
import { startGraphql, type GraphqlInstance, type GraphqlOptions } from "../../src/service/startGraphql.ts";
import { createApp } from "../../src/http/app.ts";
import { listen } from "../../src/http/listen.ts";
import { Session } from "../../src/database/session.ts";
import { documentLookups, documentCache } from "../../src/http/plugins/QueryLimitsPlugin.ts";
import { DraftFailed, type DraftProvider } from "../../src/providers/drafts/index.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import type { S3Options } from "../../src/base/providerOptions.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { baseUrl, jwtKeys, secretKeys } from "./api.ts";
import { testCertificate } from "./certificate.ts";
import { sharedSchema } from "./sharedSchema.ts";

export { buildAhead, keepReading } from "./sharedSchema.ts";
export { createIntegrations } from "../../src/integrations/integrations.ts";
export { createSeal };
export { ProcessorFailure } from "../../src/providers/payments/index.ts";
export { createStripeProcessor } from "../../src/providers/payments/stripe.ts";

export interface HostOptions extends Partial<
  Pick<
    GraphqlOptions,
    | "adaptor"
    | "fileQuota"
    | "location"
    | "loopbackWebhooks"
    | "payments"
    | "poolSize"
    | "drafts"
    | "oauth"
    | "sms"
    | "streamLimits"
    | "trustedDocumentsOnly"
    | "usageDelayMs"
  >
> {
  /** Trusted proxies for X-Forwarded-* headers, in the format of express. */
  trustProxy?: string[] | number | false;
  /** Whether it runs in production mode. Default: no. */
  production?: boolean;
  /** Whether the portal is served. Default: no. */
  explorer?: boolean;
  /** A file store that replaces the folder. */
  s3?: S3Options;
  /** How long a statement waits for the expiry of due records. */
  patienceMs?: number;
}

/**
 * Errors of a provider from a test file have the class of its realm; they are converted to those of the realm of the
 * API.
 */
const inThisRealm = ({ name, write }: DraftProvider): DraftProvider => ({
  name,
  write: (request) =>
    write(request).catch((error: DraftFailed) => {
      throw error.name === "DraftFailed"
        ? new DraftFailed(error.message, error.retryable, { ...error })
        : error;
    }),
});

// PERF: documents of tests are new, and planned by code that is not optimized yet, so long ones would make those after them wait. For how
// long is tested in test/limits/eventLoop.test.ts.
eventLoop.charge = () => 0;

const tokens = createLoginTokens(jwtKeys);

/** While enabled, operations are rolled back instead of committed, and respond as if they were committed. */
export const dryRun = { on: false };
const { send } = Session.prototype;
Session.prototype.send = async function (this: Session, statements, arrayMode, behind) {
  if (!dryRun.on) return await send.call(this, statements, arrayMode, behind);
  const [{ text }] = statements as [{ text: string }];
  if (text === "commit")
    return { ...(await send.call(this, [{ text: "rollback" }], arrayMode)), command: "COMMIT" };
  if (text === "begin" || this.client.getTransactionStatus() !== "I")
    return await send.call(this, statements, arrayMode, behind);
  // A batch that is a transaction becomes one that is rolled back. In such a batch, nothing is prepared.
  try {
    const batch = [{ text: "begin" }, ...statements.map((one) => ({ text: one.text, values: one.values }))];
    return await send.call(this, batch, arrayMode);
  } finally {
    await send.call(this, [{ text: "rollback" }], arrayMode);
  }
};

/** The cache of documents and plans of the API. */
export interface DocumentCache {
  bytes: number;
  documents: number;
  /** Compiled queries of this process, which are executed without a plan. */
  compiled: number;
  /** Whether the plan of a document is removed from the cache together with it. */
  plansAreForgotten: boolean;
}

/** Signs a token that SQL has determined, like the API. */
export const signLoginToken = (claims: string): string => tokens.sign(JSON.parse(claims));

/**
 * Serves a database over HTTPS on a free port.
 * @param isClone whether the database was cloned from the migrated one and is unchanged.
 */
export async function serve(
  authenticatorUrl: string,
  isClone: boolean,
  dataDir: string,
  {
    trustProxy = false,
    production = false,
    explorer = false,
    patienceMs,
    drafts,
    s3,
    ...options
  }: HostOptions,
): Promise<{ port: number; documentCache(): Promise<DocumentCache>; stop(): Promise<void> }> {
  const log = pino({ level: process.env.TEST_LOG ?? "silent" });
  const compute = createCompute({ log });
  const graphql = await startGraphql({
    authenticatorUrl,
    // Enough for concurrent operations of one viewer: they get 40 %, and all but three connections are for operations.
    poolSize: 10,
    // Tests send requests one after the other, and no other client waits.
    introspectionHoldMs: 0,
    // Tests only count statements of their requests.
    usageDelayMs: 2 ** 31 - 1,
    // For each request of a test, the response must equal the one that a compiled query writes from the same rows.
    compileAtOnce: true,
    onMismatch: (document, planned, written) => {
      throw new Error(`${document}\nis compiled to\n${written}\nbut its plan answers\n${planned}`);
    },
    jwtKeys,
    seal: createSeal(secretKeys, { log }),
    fileStore: createFileStore({ dataDir, s3 }),
    dataDir,
    baseUrl,
    compute,
    log,
    instance: await sharedSchema(authenticatorUrl, isClone),
    ...(patienceMs !== undefined && {
      adaptor: makeFusedAdaptor({ deadlines: { ...serviceDeadlines, patienceMs } }),
    }),
    ...(drafts && { drafts: inThisRealm(drafts) }),
    ...options,
  });
  const app = createApp({
    config: { production, trustProxy, explorer },
    log,
    ...graphql.transport,
  });
  const { cert, key } = await testCertificate();
  const listening = await listen(app, { port: 0, host: "127.0.0.1", cert, key });
  return {
    port: listening.port,
    documentCache: async () => {
      const schema = (await (graphql.transport.pgl as GraphqlInstance).getSchema()) as GraphQLSchema;
      const ofPlanner = schema.extensions.grafast as Record<PropertyKey, unknown>;
      const caches = Object.getOwnPropertySymbols(ofPlanner).map((name) => ofPlanner[name]);
      return {
        ...documentCache(schema),
        compiled: documentLookups.compiled,
        plansAreForgotten: caches.some((cache) => cache instanceof WeakMap),
      };
    },
    stop: async () => {
      graphql.drain();
      await listening.close(1000);
      await graphql.release();
      await compute.stop();
    },
  };
}
