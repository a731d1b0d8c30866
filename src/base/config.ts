import { accessSync, constants } from "node:fs";
import type { StreamLimits } from "./providerOptions.ts";
import { bareAddress } from "./mailAddress.ts";
import type { DraftOptions, OauthClientOptions, S3Options, TwilioAccount } from "./providerOptions.ts";
import { readSetting, type JwtKey, type SettingName } from "./settings.ts";

export type { JwtKey };
export type Mode = "all" | "api" | "worker" | "migrate";

/** Everything the process was told from outside. Frozen; nothing else reads the environment. */
export interface Config {
  readonly mode: Mode;
  readonly production: boolean;
  readonly port: number;
  readonly host: string;
  /** Without a trailing slash. Undefined when it has to be made from the port that was found (see `baseUrlAt`). */
  readonly baseUrl: string | undefined;
  readonly dataDir: string;
  /** Undefined means that nothing is archived. */
  readonly archive: { readonly folder: string; readonly timeoutSeconds: number } | undefined;
  /** Owner's connection; undefined means the embedded database. */
  readonly databaseUrl: string | undefined;
  readonly authenticatorUrl: string | undefined;
  readonly workerUrl: string | undefined;
  readonly demo: boolean;
  /** Files; undefined means the self-signed certificate in `dataDir`. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** As express takes it. */
  readonly trustProxy: string[] | number | false;
  /** Undefined means the key kept in `dataDir`. */
  readonly jwtKeys: readonly JwtKey[] | undefined;
  /** Undefined means the key kept in `dataDir`. */
  readonly secretKeys: readonly JwtKey[] | undefined;
  /** Whether secrets that earlier versions sealed are opened as long as the database says that there may be some. */
  readonly opensUnboundSecrets: boolean;
  /** Whether the addresses of webhooks may lead to this machine. */
  readonly loopbackWebhooks: boolean;
  /** Undefined means that no application that needs consent can be connected. */
  readonly oauth: OauthClientOptions | undefined;
  /** Undefined means drafts are composed from facts. */
  readonly ai: DraftOptions | undefined;
  readonly smtpUrl: string | undefined;
  /** Where text messages go. */
  readonly textMessages: "twilio" | "outbox" | "off";
  /** Undefined means text messages are written to `dataDir`. */
  readonly twilio: Readonly<TwilioAccount> | undefined;
  /** Undefined means files are kept in `dataDir`. */
  readonly s3: S3Options | undefined;
  /** Bytes. */
  readonly fileQuota: number;
  /** Undefined means the embedded sandbox. */
  readonly stripe:
    | {
        readonly secretKey: string;
        readonly webhookSecret: string | undefined;
        readonly api: string | undefined;
      }
    | undefined;
  /** A database of cities by IP address; undefined means the embedded one. */
  readonly geoipFile: string | undefined;
  readonly mailFrom: string;
  /** Without a name. */
  readonly operatorEmail: string;
  /** Without a trailing slash. Undefined means `baseUrl`. */
  readonly webUrl: string | undefined;
  /** Where the numbers of the process are read; undefined means beside the port. */
  readonly monitoring: { readonly host: string; readonly port: number } | "off" | undefined;
  /** How long requests are answered while a stop has begun. */
  readonly stopDelayMs: number;
  /** How long a stop may take after that. */
  readonly stopTimeoutMs: number;
  readonly logLevel: string;
  /** Milliseconds from which on the log tells of a statement; 0 tells of none. */
  readonly slowStatementMs: number;
  /** Undefined means that no traces are recorded. */
  readonly tracing:
    | {
        readonly endpoint: string;
        readonly headers: Readonly<Record<string, string>>;
        readonly ratio: number;
      }
    | undefined;
  readonly explorer: boolean;
  /** Whether documents that are not registered are refused. */
  readonly trustedDocumentsOnly: boolean;
  readonly apiProcesses: number;
  readonly poolSize: number;
  /** Bytes. */
  readonly documentBytes: number;
  readonly workerConcurrency: number;
  /** How many event streams there may be in one process. */
  readonly streamLimits: StreamLimits;
}

/** Settings that cannot be: its message has one sentence per line. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

const modes: Record<string, Mode> = {
  "--migrate-only": "migrate",
  "--api-only": "api",
  "--worker-only": "worker",
};

function readMode(argv: readonly string[], problems: string[]): Mode {
  for (const argument of argv)
    if (!(argument in modes))
      problems.push(`The argument ${argument} is unknown; there are ${Object.keys(modes).join(", ")}.`);
  const chosen = [...new Set(argv)].filter((argument) => argument in modes);
  if (chosen.length > 1) problems.push(`${chosen.join(" and ")} exclude each other.`);
  return modes[chosen[0] ?? ""] ?? "all";
}

function checkReadable(name: SettingName, file: string | undefined, problems: string[]): void {
  if (!file) return;
  try {
    accessSync(file, constants.R_OK);
  } catch {
    problems.push(`${name} names the file ${file}, which cannot be read.`);
  }
}

/**
 * Parses environment and arguments once.
 * @throws ConfigError with one sentence for each bad value, all at once.
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env, argv: readonly string[] = []): Config {
  const problems: string[] = [];
  const mode = readMode(argv, problems);
  const read = <N extends SettingName>(name: N) => readSetting(name, env, problems);
  // A setting with a default is only undefined when it was refused, and then nothing is returned.
  const must = <N extends SettingName>(name: N) => read(name)!;

  const databaseUrl = read("DATABASE_URL");
  const baseUrl = read("BASE_URL");
  const production =
    (read("NODE_ENV") ?? (databaseUrl || isPublic(baseUrl) ? "production" : "development")) === "production";
  const authenticatorUrl = read("AUTHENTICATOR_URL");
  const workerUrl = read("WORKER_URL");
  const jwtKeys = read("JWT_KEYS");
  const secretKeys = read("SECRET_KEYS");
  const mailFrom = must("MAIL_FROM");
  const cert = read("TLS_CERT");
  const key = read("TLS_KEY");
  const issuer = read("OIDC_ISSUER");
  const clientId = read("OIDC_CLIENT_ID");
  const clientSecret = read("OIDC_CLIENT_SECRET");
  const provider = read("AI_PROVIDER");
  const apiKey = read("AI_API_KEY");
  const model = read("AI_MODEL");
  const aiBaseUrl = read("AI_BASE_URL");
  const timeoutMs = must("AI_TIMEOUT") * 1000;
  const smtpUrl = read("SMTP_URL");
  const otlpEndpoint = read("OTEL_EXPORTER_OTLP_ENDPOINT");
  const mail = read("MAIL");
  const textMessages = read("TEXT_MESSAGES");
  const payments = read("PAYMENTS");
  const files = read("FILES");
  const loopbackWebhooks = must("LOOPBACK_WEBHOOKS");
  const trustProxy = must("TRUST_PROXY");
  const selfSigned = read("TLS") === "self-signed";
  const accountSid = read("TWILIO_ACCOUNT_SID");
  const authToken = read("TWILIO_AUTH_TOKEN");
  const sender = read("TWILIO_SENDER");
  const twilioApi = read("TWILIO_API");
  const bucket = read("S3_BUCKET");
  const endpoint = read("S3_ENDPOINT");
  const region = must("S3_REGION");
  const accessKeyId = read("S3_ACCESS_KEY_ID");
  const secretAccessKey = read("S3_SECRET_ACCESS_KEY");
  const stripeKey = read("STRIPE_SECRET_KEY");
  const webhookSecret = read("STRIPE_WEBHOOK_SECRET");
  const stripeApi = read("STRIPE_API");
  const archiveDir = read("ARCHIVE_DIR");
  const timeoutSeconds = must("ARCHIVE_TIMEOUT");
  const config: Config = {
    mode,
    production,
    port: must("PORT"),
    host: must("HOST"),
    baseUrl,
    dataDir: must("DATA_DIR"),
    archive: archiveDir ? Object.freeze({ folder: archiveDir, timeoutSeconds }) : undefined,
    databaseUrl,
    authenticatorUrl,
    workerUrl,
    demo: read("DEMO") ?? !(databaseUrl || production),
    tls: cert && key ? Object.freeze({ cert, key }) : undefined,
    trustProxy,
    jwtKeys: jwtKeys && Object.freeze(jwtKeys),
    secretKeys: secretKeys && Object.freeze(secretKeys),
    opensUnboundSecrets: read("UNBOUND_SECRETS") !== "refuse",
    loopbackWebhooks,
    oauth: issuer && clientId ? Object.freeze({ issuer, clientId, clientSecret }) : undefined,
    ai:
      provider && model
        ? Object.freeze({ provider, apiKey, model, baseUrl: aiBaseUrl, timeoutMs })
        : undefined,
    smtpUrl,
    textMessages: accountSid ? "twilio" : production && !textMessages ? "off" : "outbox",
    twilio:
      accountSid && authToken && sender
        ? Object.freeze({ accountSid, authToken, sender, api: twilioApi })
        : undefined,
    s3: bucket
      ? Object.freeze({
          bucket,
          region,
          endpoint,
          credentials: accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined,
        })
      : undefined,
    fileQuota: must("FILE_QUOTA") * 1_000_000_000,
    stripe: stripeKey ? Object.freeze({ secretKey: stripeKey, webhookSecret, api: stripeApi }) : undefined,
    geoipFile: read("GEOIP_FILE"),
    mailFrom,
    operatorEmail: read("OPERATOR_EMAIL") ?? (mailFrom && bareAddress(mailFrom)),
    webUrl: read("WEB_URL"),
    monitoring: read("MONITORING"),
    stopDelayMs: (read("STOP_DELAY") ?? (production ? 5 : 0)) * 1000,
    stopTimeoutMs: must("STOP_TIMEOUT") * 1000,
    logLevel: must("LOG_LEVEL"),
    slowStatementMs: must("SLOW_STATEMENT_MS"),
    tracing: otlpEndpoint
      ? Object.freeze({
          endpoint: otlpEndpoint,
          headers: read("OTEL_EXPORTER_OTLP_HEADERS") ?? {},
          ratio: must("OTEL_TRACES_SAMPLER_ARG"),
        })
      : undefined,
    trustedDocumentsOnly: read("TRUSTED_DOCUMENTS") === "only",
    explorer: read("EXPLORER") ?? !production,
    apiProcesses: must("API_PROCESSES"),
    poolSize: must("POOL_SIZE"),
    documentBytes: must("PLAN_CACHE_MB") * 1_000_000,
    workerConcurrency: must("WORKER_CONCURRENCY"),
    streamLimits: Object.freeze({
      total: must("STREAMS"),
      ofOrganization: must("STREAMS_PER_ORGANIZATION"),
      ofViewer: must("STREAMS_PER_VIEWER"),
      ofAddress: must("STREAMS_PER_ADDRESS"),
    }),
  };

  checkReadable("TLS_CERT", cert, problems);
  checkReadable("TLS_KEY", key, problems);
  checkReadable("GEOIP_FILE", config.geoipFile, problems);
  if (!cert !== !key) problems.push("TLS_CERT and TLS_KEY belong together: set both or neither.");
  if (!env.OIDC_ISSUER !== !clientId)
    problems.push("OIDC_ISSUER and OIDC_CLIENT_ID belong together: set both or neither.");
  if (clientSecret && !clientId) problems.push("OIDC_CLIENT_SECRET needs OIDC_ISSUER and OIDC_CLIENT_ID.");
  if (provider && !model) problems.push("AI_PROVIDER needs AI_MODEL, the model that writes drafts.");
  if (provider && !apiKey && (provider === "anthropic" || !aiBaseUrl))
    problems.push("AI_PROVIDER needs AI_API_KEY, the key for the provider.");
  if (!provider && (apiKey || model || aiBaseUrl))
    problems.push("AI_API_KEY, AI_MODEL and AI_BASE_URL need AI_PROVIDER.");
  if (!accessKeyId !== !secretAccessKey)
    problems.push("S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY belong together: set both or neither.");
  if (!bucket && (endpoint || accessKeyId)) problems.push("S3_ENDPOINT and S3_ACCESS_KEY_ID need S3_BUCKET.");
  const twilioSettings = ["TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_SENDER"] as const;
  if (new Set(twilioSettings.map((name) => !env[name]?.trim())).size > 1)
    problems.push(`${twilioSettings.join(", ")} belong together: set all or none.`);
  if (twilioApi && !env.TWILIO_ACCOUNT_SID) problems.push("TWILIO_API needs TWILIO_ACCOUNT_SID.");
  if (!env.STRIPE_SECRET_KEY && (webhookSecret || stripeApi))
    problems.push("STRIPE_WEBHOOK_SECRET and STRIPE_API need STRIPE_SECRET_KEY.");
  for (const [name, url] of Object.entries({ AUTHENTICATOR_URL: authenticatorUrl, WORKER_URL: workerUrl }))
    if (url && !env.DATABASE_URL) problems.push(`${name} needs DATABASE_URL beside it.`);
  if (databaseUrl && !authenticatorUrl && !env.AUTHENTICATOR_URL && !new URL(databaseUrl).password)
    problems.push("DATABASE_URL carries no password, so AUTHENTICATOR_URL has to say how the API logs in.");
  if (authenticatorUrl && !workerUrl && !env.WORKER_URL && !new URL(authenticatorUrl).password)
    problems.push(
      "AUTHENTICATOR_URL carries no password, so WORKER_URL has to say how background work logs in.",
    );
  for (const name of ["JWT_KEYS", "SECRET_KEYS"] as const)
    if (production && databaseUrl && !env[name] && mode !== "migrate")
      problems.push(
        `${name} is required in production with DATABASE_URL, so that all processes share the same keys.`,
      );
  if (production && mode !== "migrate") {
    // What looks real and is not: somebody has to say that it is wanted.
    const isLive = /^(sk|rk)_live_/.test(stripeKey ?? "");
    if (!isLive && payments !== "sandbox")
      problems.push(
        "STRIPE_SECRET_KEY has to be a live key in production, sk_live_… or rk_live_…; PAYMENTS=sandbox says that no money is to move.",
      );
    if (!env.SMTP_URL && mail !== "outbox")
      problems.push(
        "SMTP_URL is required in production; MAIL=outbox says that mail is to be written to files which nobody gets.",
      );
    if (!env.TLS_CERT && !env.TLS_KEY && !env.TRUST_PROXY && !selfSigned && mode !== "worker")
      problems.push(
        "TLS_CERT and TLS_KEY are required in production, or TRUST_PROXY where a proxy ends TLS; TLS=self-signed says that a certificate which nobody has signed will do.",
      );
    if ((mode === "api" || mode === "worker") && !env.S3_BUCKET && files !== "shared-folder")
      problems.push(
        `--${mode}-only requires S3_BUCKET in production, since other processes do not find files that this one keeps in DATA_DIR; FILES=shared-folder says that it is one folder for all of them.`,
      );
    if (loopbackWebhooks)
      problems.push(
        "LOOPBACK_WEBHOOKS is for development: in production it would let every user reach this machine.",
      );
  }
  if (/^(sk|rk)_live_/.test(stripeKey ?? "") && payments === "sandbox")
    problems.push("PAYMENTS=sandbox contradicts the live key of STRIPE_SECRET_KEY: take one of them away.");
  if (smtpUrl && mail === "outbox") problems.push("MAIL=outbox contradicts SMTP_URL: take one of them away.");
  if (mode !== "all" && !env.DATABASE_URL && mode !== "migrate")
    problems.push(`--${mode}-only needs DATABASE_URL: the embedded database belongs to one process.`);
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);
}

/** Whether the address is one that others than this machine's own users can know. */
function isPublic(address: string | undefined): boolean {
  if (address === undefined) return false;
  const { hostname } = new URL(address);
  return !/^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/** The address for links, once the port is known. */
export function baseUrlAt(config: Config, port: number): string {
  return config.baseUrl ?? `https://localhost${port === 443 ? "" : `:${port}`}`;
}
