/** The API under test as its process runs it: what a test file starts here shares the loaded modules with the file before. */
import pino from "pino";
import type { GraphQLSchema } from "postgraphile/graphql";
import { createLoginTokens } from "../../src/auth/loginToken.ts";
import { createCompute } from "../../src/compute/pool.ts";
import { serviceDeadlines } from "../../src/database/deadlines.ts";
import { makeFusedAdaptor } from "../../src/database/fusedAdaptor.ts";
import { startGraphql, type GraphqlInstance, type GraphqlOptions } from "../../src/service/startGraphql.ts";
import { createApp } from "../../src/http/app.ts";
import { listen } from "../../src/http/listen.ts";
import { Session } from "../../src/database/session.ts";
import { documentLookups, keptDocuments } from "../../src/http/plugins/QueryLimitsPlugin.ts";
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
  /** Whose X-Forwarded-* headers count; as express takes it. */
  trustProxy?: string[] | number | false;
  /** Whether it is in production; no by default. */
  production?: boolean;
  /** Whether the portal is served; no by default. */
  explorer?: boolean;
  /** Files lie there rather than in the folder. */
  s3?: S3Options;
  /** How long a statement waits until what is due is settled. */
  patienceMs?: number;
}

/** A provider of a test file fails with a class of its own realm: its failures become those that the API knows. */
const inThisRealm = ({ name, write }: DraftProvider): DraftProvider => ({
  name,
  write: (request) =>
    write(request).catch((error: DraftFailed) => {
      throw error.name === "DraftFailed"
        ? new DraftFailed(error.message, error.retryable, { ...error })
        : error;
    }),
});

const tokens = createLoginTokens(jwtKeys);

/** While it is on, what operations store is rolled back where it would be committed; they answer as if it were stored. */
export const dryRun = { on: false };
const { send } = Session.prototype;
Session.prototype.send = async function (this: Session, statements, arrayMode, behind) {
  if (!dryRun.on) return await send.call(this, statements, arrayMode, behind);
  const [{ text }] = statements as [{ text: string }];
  if (text === "commit")
    return { ...(await send.call(this, [{ text: "rollback" }], arrayMode)), command: "COMMIT" };
  if (text === "begin" || this.client.getTransactionStatus() !== "I")
    return await send.call(this, statements, arrayMode, behind);
  // A batch that is a transaction of its own becomes one that can be undone; in such a one nothing is prepared.
  try {
    const batch = [{ text: "begin" }, ...statements.map((one) => ({ text: one.text, values: one.values }))];
    return await send.call(this, batch, arrayMode);
  } finally {
    await send.call(this, [{ text: "rollback" }], arrayMode);
  }
};

/** What the API keeps of documents and their plans. */
export interface KeptDocuments {
  bytes: number;
  documents: number;
  /** Queries that were compiled in this process, so that they are answered without their plan. */
  compiled: number;
  /** Whether a plan goes with its document. */
  plansAreForgotten: boolean;
}

/** The text of a token that SQL has decided on, as the API gives it out. */
export const signLoginToken = (claims: string): string => tokens.sign(JSON.parse(claims));

/**
 * Serves a database over HTTPS on a port of its own.
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
): Promise<{ port: number; keptDocuments(): Promise<KeptDocuments>; stop(): Promise<void> }> {
  const log = pino({ level: process.env.TEST_LOG ?? "silent" });
  const compute = createCompute({ log });
  const graphql = await startGraphql({
    authenticatorUrl,
    // Enough for operations of one viewer that race each other: 40 % of them, and all but three are for operations.
    poolSize: 10,
    // Tests ask one after the other, and nobody else waits for them.
    introspectionHoldMs: 0,
    // Statements that tests count are those of their requests.
    usageDelayMs: 2 ** 31 - 1,
    // Whatever a test asks, its answer has to be the one that a compiled query would write from the same rows.
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
    keptDocuments: async () => {
      const schema = (await (graphql.transport.pgl as GraphqlInstance).getSchema()) as GraphQLSchema;
      const ofPlanner = schema.extensions.grafast as Record<PropertyKey, unknown>;
      const caches = Object.getOwnPropertySymbols(ofPlanner).map((name) => ofPlanner[name]);
      return {
        ...keptDocuments(schema),
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
