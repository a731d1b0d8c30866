/** Combinations of settings that are refused, and settings that production requires. Each finding says what to do. */
import { accessSync, constants } from "node:fs";
import type { Mode } from "./config.ts";
import type { SettingName } from "./settings.ts";
import type { SettingsReader } from "./settingsReader.ts";

/** Purpose of a start. */
interface Start {
  mode: Mode;
  production: boolean;
}

/** Messages for all settings that conflict or are missing for this kind of start. */
export function* conflicts(settings: SettingsReader, start: Start): Generator<string> {
  yield* unreadableFiles(settings);
  yield* incomplete(settings);
  yield* databaseConflicts(settings, start);
  if (start.production && start.mode !== "migrate") yield* missingInProduction(settings, start);
  yield* contradictions(settings, start);
}

function* unreadableFiles({ read }: SettingsReader): Generator<string> {
  const files: SettingName[] = ["TLS_CERT", "TLS_KEY", "GEOIP_FILE"];
  for (const name of files) {
    const file = read(name) as string | undefined;
    try {
      if (file) accessSync(file, constants.R_OK);
    } catch {
      yield `${name} names the file ${file}, which cannot be read.`;
    }
  }
}

/** Settings that require others. */
function* incomplete({ env, read }: SettingsReader): Generator<string> {
  if (!read("TLS_CERT") !== !read("TLS_KEY"))
    yield "TLS_CERT and TLS_KEY belong together: set both or neither.";
  if (!env.OIDC_ISSUER !== !read("OIDC_CLIENT_ID"))
    yield "OIDC_ISSUER and OIDC_CLIENT_ID belong together: set both or neither.";
  if (read("OIDC_CLIENT_SECRET") && !read("OIDC_CLIENT_ID"))
    yield "OIDC_CLIENT_SECRET needs OIDC_ISSUER and OIDC_CLIENT_ID.";
  const provider = read("AI_PROVIDER");
  if (provider && !read("AI_MODEL")) yield "AI_PROVIDER needs AI_MODEL, the model that writes drafts.";
  if (provider && !read("AI_API_KEY") && (provider === "anthropic" || !read("AI_BASE_URL")))
    yield "AI_PROVIDER needs AI_API_KEY, the key for the provider.";
  if (!provider && (read("AI_API_KEY") || read("AI_MODEL") || read("AI_BASE_URL")))
    yield "AI_API_KEY, AI_MODEL and AI_BASE_URL need AI_PROVIDER.";
  if (!read("S3_ACCESS_KEY_ID") !== !read("S3_SECRET_ACCESS_KEY"))
    yield "S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY belong together: set both or neither.";
  if (!read("S3_BUCKET") && (read("S3_ENDPOINT") || read("S3_ACCESS_KEY_ID")))
    yield "S3_ENDPOINT and S3_ACCESS_KEY_ID need S3_BUCKET.";
  const twilio = ["TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_SENDER"] as const;
  if (new Set(twilio.map((name) => !env[name]?.trim())).size > 1)
    yield `${twilio.join(", ")} belong together: set all or none.`;
  if (read("TWILIO_API") && !env.TWILIO_ACCOUNT_SID) yield "TWILIO_API needs TWILIO_ACCOUNT_SID.";
  if (!env.STRIPE_SECRET_KEY && (read("STRIPE_WEBHOOK_SECRET") || read("STRIPE_API")))
    yield "STRIPE_WEBHOOK_SECRET and STRIPE_API need STRIPE_SECRET_KEY.";
}

function* databaseConflicts({ env, read }: SettingsReader, { mode, production }: Start): Generator<string> {
  const directUrl = read("DIRECT_DATABASE_URL");
  const databaseUrl = directUrl ?? read("DATABASE_URL");
  const authenticatorUrl = read("AUTHENTICATOR_URL");
  for (const name of [
    "DIRECT_DATABASE_URL",
    "READ_DATABASE_URLS",
    "AUTHENTICATOR_URL",
    "WORKER_URL",
  ] as const)
    if (read(name) && !env.DATABASE_URL) yield `${name} needs DATABASE_URL beside it.`;
  if (env.ROLE_PREFIX?.trim() && !env.DATABASE_URL)
    yield "ROLE_PREFIX needs DATABASE_URL beside it: the embedded database has one installation.";
  if (databaseUrl && !authenticatorUrl && !env.AUTHENTICATOR_URL && !new URL(databaseUrl).password)
    yield `${directUrl ? "DIRECT_DATABASE_URL" : "DATABASE_URL"} carries no password, so AUTHENTICATOR_URL has to say how the API logs in.`;
  for (const name of ["DATABASE_URL", "AUTHENTICATOR_URL"] as const)
    if (directUrl && new URL(read(name) ?? directUrl).searchParams.has("options") && read(name))
      yield `${name} has options, which a pooler hands on to nobody: set them for the role with "alter role".`;
  if (authenticatorUrl && !read("WORKER_URL") && !env.WORKER_URL && !new URL(authenticatorUrl).password)
    yield "AUTHENTICATOR_URL carries no password, so WORKER_URL has to say how background work logs in.";
  for (const name of ["JWT_KEYS", "SECRET_KEYS"] as const)
    if (production && databaseUrl && !env[name] && mode !== "migrate")
      yield `${name} is required in production with DATABASE_URL, so that all processes share the same keys.`;
}

const isLive = (stripeKey: string | undefined): boolean => /^(sk|rk)_live_/.test(stripeKey ?? "");

/** Substitutes for real services, which production must enable explicitly. */
function* missingInProduction({ env, read }: SettingsReader, { mode }: Start): Generator<string> {
  if (!isLive(read("STRIPE_SECRET_KEY")) && read("PAYMENTS") !== "sandbox")
    yield "STRIPE_SECRET_KEY has to be a live key in production, sk_live_… or rk_live_…; PAYMENTS=sandbox says that no money is to move.";
  if (!env.SMTP_URL && read("MAIL") !== "outbox")
    yield "SMTP_URL is required in production; MAIL=outbox says that mail is to be written to files which nobody gets.";
  const selfSigned = read("TLS") === "self-signed";
  if (!env.TLS_CERT && !env.TLS_KEY && !env.TRUST_PROXY && !selfSigned && mode !== "worker")
    yield "TLS_CERT and TLS_KEY are required in production, or TRUST_PROXY where a proxy ends TLS; TLS=self-signed says that a certificate which nobody has signed will do.";
  if ((mode === "api" || mode === "worker") && !env.S3_BUCKET && read("FILES") !== "shared-folder")
    yield `--${mode}-only requires S3_BUCKET in production, since other processes do not find files that this one keeps in DATA_DIR; FILES=shared-folder says that it is one folder for all of them.`;
  if (read("LOOPBACK_WEBHOOKS"))
    yield "LOOPBACK_WEBHOOKS is for development: in production it would let every user reach this machine.";
}

function* contradictions({ env, read }: SettingsReader, { mode }: Start): Generator<string> {
  if (isLive(read("STRIPE_SECRET_KEY")) && read("PAYMENTS") === "sandbox")
    yield "PAYMENTS=sandbox contradicts the live key of STRIPE_SECRET_KEY: take one of them away.";
  if (read("SMTP_URL") && read("MAIL") === "outbox")
    yield "MAIL=outbox contradicts SMTP_URL: take one of them away.";
  if (mode !== "all" && !env.DATABASE_URL && mode !== "migrate")
    yield `--${mode}-only needs DATABASE_URL: the embedded database belongs to one process.`;
}
