/** Reads the settings from the environment and the command line; nothing else reads the environment. */
import type { StreamLimits } from "./providerOptions.ts";
import { bareAddress } from "./mailAddress.ts";
import type { DraftOptions, OauthClientOptions, S3Options, TwilioAccount } from "./providerOptions.ts";
import { conflicts } from "./settingConflicts.ts";
import type { JwtKey } from "./settings.ts";
import { readSettings, type SettingsReader } from "./settingsReader.ts";

export type { JwtKey };
export type Mode = "all" | "api" | "worker" | "migrate";

/** The configuration of the process. Frozen; nothing else reads the environment. */
export interface Config {
  readonly mode: Mode;
  readonly production: boolean;
  readonly port: number;
  readonly host: string;
  /** Without a trailing slash. Undefined if it is derived from the port (see `baseUrlAt`). */
  readonly baseUrl: string | undefined;
  readonly dataDir: string;
  /** Undefined: no archiving. */
  readonly archive: { readonly folder: string; readonly timeoutSeconds: number } | undefined;
  /** Connection of the owner role to the server; undefined for the embedded database. */
  readonly databaseUrl: string | undefined;
  /** URL of a pooler, if there is one. */
  readonly poolerUrl: string | undefined;
  /** Standbys that answer queries. */
  readonly readDatabaseUrls: readonly string[];
  /** Whether the statements of the API have names, by which the server keeps them prepared. */
  readonly preparedStatements: boolean;
  readonly authenticatorUrl: string | undefined;
  readonly workerUrl: string | undefined;
  /** Prefix of the login roles that migrating creates. */
  readonly rolePrefix: string;
  readonly demo: boolean;
  /** Files; undefined for the self-signed certificate in `dataDir`. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** Passed to express as is. */
  readonly trustProxy: string[] | number | false;
  /** Undefined: the key kept in `dataDir`. */
  readonly jwtKeys: readonly JwtKey[] | undefined;
  /** Undefined: the key kept in `dataDir`. */
  readonly secretKeys: readonly JwtKey[] | undefined;
  /** Whether secrets sealed by earlier versions can be opened, as long as the database may contain some. */
  readonly opensUnboundSecrets: boolean;
  /** Whether webhook URLs may point to this machine. */
  readonly loopbackWebhooks: boolean;
  /** Undefined: applications that need consent cannot be connected. */
  readonly oauth: OauthClientOptions | undefined;
  /** Undefined: drafts are composed from facts. */
  readonly ai: DraftOptions | undefined;
  readonly smtpUrl: string | undefined;
  /** Destination of text messages. */
  readonly textMessages: "twilio" | "outbox" | "off";
  /** Undefined: text messages are written to `dataDir`. */
  readonly twilio: Readonly<TwilioAccount> | undefined;
  /** Undefined: files are stored in `dataDir`. */
  readonly s3: S3Options | undefined;
  /** Bytes. */
  readonly fileQuota: number;
  /** Undefined: the embedded sandbox. */
  readonly stripe:
    | {
        readonly secretKey: string;
        readonly webhookSecret: string | undefined;
        readonly api: string | undefined;
      }
    | undefined;
  /** A database of cities by IP address; undefined for the embedded one. */
  readonly geoipFile: string | undefined;
  readonly mailFrom: string;
  /** Address only, without a display name. */
  readonly operatorEmail: string;
  /** Without a trailing slash. Undefined: `baseUrl`. */
  readonly webUrl: string | undefined;
  /** Listener for metrics; undefined to serve them on the main port. */
  readonly monitoring: { readonly host: string; readonly port: number } | "off" | undefined;
  /** Milliseconds for which requests are still answered after shutdown has begun. */
  readonly stopDelayMs: number;
  /** Milliseconds that shutdown may take after that. */
  readonly stopTimeoutMs: number;
  readonly logLevel: string;
  /** Statements that take longer, in milliseconds, are logged; 0 disables it. */
  readonly slowStatementMs: number;
  /** Undefined: tracing is off. */
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
  /** Maximum number of event streams per process. */
  readonly streamLimits: StreamLimits;
}

/** Invalid settings. The message has one sentence per line. */
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

/**
 * Parses environment and arguments once.
 * @throws ConfigError with one sentence for each invalid value
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env, argv: readonly string[] = []): Config {
  const settings = readSettings(env);
  const { problems, read } = settings;
  const mode = readMode(argv, problems);
  const isServer = read("DATABASE_URL") !== undefined || isPublic(read("BASE_URL"));
  const production = (read("NODE_ENV") ?? (isServer ? "production" : "development")) === "production";
  const config: Config = {
    mode,
    production,
    ...addresses(settings),
    ...database(settings, production),
    ...secrets(settings),
    ...providers(settings, production),
    ...operation(settings, production),
    ...limits(settings),
  };
  problems.push(...conflicts(settings, { mode, production }));
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);
}

/** Listeners and public URLs. */
function addresses({ read, must }: SettingsReader) {
  const cert = read("TLS_CERT");
  const key = read("TLS_KEY");
  return {
    port: must("PORT"),
    host: must("HOST"),
    baseUrl: read("BASE_URL"),
    webUrl: read("WEB_URL"),
    tls: cert && key ? Object.freeze({ cert, key }) : undefined,
    trustProxy: must("TRUST_PROXY"),
  };
}

function database({ read, must }: SettingsReader, production: boolean) {
  const directUrl = read("DIRECT_DATABASE_URL");
  const databaseUrl = directUrl ?? read("DATABASE_URL");
  const folder = read("ARCHIVE_DIR");
  const timeoutSeconds = must("ARCHIVE_TIMEOUT");
  return {
    dataDir: must("DATA_DIR"),
    archive: folder ? Object.freeze({ folder, timeoutSeconds }) : undefined,
    databaseUrl,
    poolerUrl: directUrl && read("DATABASE_URL"),
    readDatabaseUrls: read("READ_DATABASE_URLS") ?? [],
    preparedStatements: must("PREPARED_STATEMENTS"),
    authenticatorUrl: read("AUTHENTICATOR_URL"),
    workerUrl: read("WORKER_URL"),
    rolePrefix: must("ROLE_PREFIX"),
    demo: read("DEMO") ?? !(databaseUrl || production),
  };
}

function secrets({ read }: SettingsReader) {
  const jwtKeys = read("JWT_KEYS");
  const secretKeys = read("SECRET_KEYS");
  return {
    jwtKeys: jwtKeys && Object.freeze(jwtKeys),
    secretKeys: secretKeys && Object.freeze(secretKeys),
    opensUnboundSecrets: read("UNBOUND_SECRETS") !== "refuse",
  };
}

/** External providers. */
function providers(settings: SettingsReader, production: boolean) {
  const { read, must } = settings;
  const issuer = read("OIDC_ISSUER");
  const clientId = read("OIDC_CLIENT_ID");
  const clientSecret = read("OIDC_CLIENT_SECRET");
  const mailFrom = must("MAIL_FROM");
  const stripeKey = read("STRIPE_SECRET_KEY");
  const webhookSecret = read("STRIPE_WEBHOOK_SECRET");
  const stripeApi = read("STRIPE_API");
  return {
    oauth: issuer && clientId ? Object.freeze({ issuer, clientId, clientSecret }) : undefined,
    ai: drafts(settings),
    smtpUrl: read("SMTP_URL"),
    mailFrom,
    operatorEmail: read("OPERATOR_EMAIL") ?? (mailFrom && bareAddress(mailFrom)),
    ...textMessages(settings, production),
    s3: store(settings),
    fileQuota: must("FILE_QUOTA") * 1_000_000_000,
    stripe: stripeKey ? Object.freeze({ secretKey: stripeKey, webhookSecret, api: stripeApi }) : undefined,
    geoipFile: read("GEOIP_FILE"),
    loopbackWebhooks: must("LOOPBACK_WEBHOOKS"),
  };
}

function drafts({ read, must }: SettingsReader): Config["ai"] {
  const provider = read("AI_PROVIDER");
  const model = read("AI_MODEL");
  const options = {
    apiKey: read("AI_API_KEY"),
    baseUrl: read("AI_BASE_URL"),
    timeoutMs: must("AI_TIMEOUT") * 1000,
  };
  return provider && model ? Object.freeze({ provider, model, ...options }) : undefined;
}

function textMessages(
  { read }: SettingsReader,
  production: boolean,
): Pick<Config, "textMessages" | "twilio"> {
  const accountSid = read("TWILIO_ACCOUNT_SID");
  const authToken = read("TWILIO_AUTH_TOKEN");
  const sender = read("TWILIO_SENDER");
  const api = read("TWILIO_API");
  return {
    textMessages: accountSid ? "twilio" : production && !read("TEXT_MESSAGES") ? "off" : "outbox",
    twilio:
      accountSid && authToken && sender ? Object.freeze({ accountSid, authToken, sender, api }) : undefined,
  };
}

function store({ read, must }: SettingsReader): Config["s3"] {
  const bucket = read("S3_BUCKET");
  const endpoint = read("S3_ENDPOINT");
  const region = must("S3_REGION");
  const accessKeyId = read("S3_ACCESS_KEY_ID");
  const secretAccessKey = read("S3_SECRET_ACCESS_KEY");
  const credentials = accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined;
  return bucket ? Object.freeze({ bucket, region, endpoint, credentials }) : undefined;
}

/** Observability and shutdown. */
function operation({ read, must }: SettingsReader, production: boolean) {
  const endpoint = read("OTEL_EXPORTER_OTLP_ENDPOINT");
  const headers = read("OTEL_EXPORTER_OTLP_HEADERS") ?? {};
  const ratio = must("OTEL_TRACES_SAMPLER_ARG");
  return {
    monitoring: read("MONITORING"),
    stopDelayMs: (read("STOP_DELAY") ?? (production ? 5 : 0)) * 1000,
    stopTimeoutMs: must("STOP_TIMEOUT") * 1000,
    logLevel: must("LOG_LEVEL"),
    slowStatementMs: must("SLOW_STATEMENT_MS"),
    tracing: endpoint ? Object.freeze({ endpoint, headers, ratio }) : undefined,
    explorer: read("EXPLORER") ?? !production,
  };
}

function limits({ read, must }: SettingsReader) {
  return {
    trustedDocumentsOnly: read("TRUSTED_DOCUMENTS") === "only",
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
}

/** Whether the address is reachable from outside this machine. */
function isPublic(address: string | undefined): boolean {
  if (address === undefined) return false;
  const { hostname } = new URL(address);
  return !/^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/** Base URL for links, once the port is known. */
export function baseUrlAt(config: Config, port: number): string {
  return config.baseUrl ?? `https://localhost${port === 443 ? "" : `:${port}`}`;
}
