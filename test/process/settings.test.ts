import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { ConfigError, loadConfig } from "../../src/base/config.ts";
import { loadOrCreateSecret } from "../../src/secrets/loadOrCreateSecret.ts";
import { createSmsProvider } from "../../src/providers/sms/index.ts";
import { runToExit, temporaryFolder } from "../harness/service.ts";

const secret = "0123456789abcdef0123456789abcdef";

function problems(env: NodeJS.ProcessEnv, argv: string[] = []): readonly string[] {
  try {
    loadConfig(env, argv);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems;
  }
}

test("an empty environment gives the documented defaults", () => {
  expect(loadConfig({})).toMatchObject({
    mode: "all",
    production: false,
    port: 8443,
    host: "127.0.0.1",
    demo: true,
    explorer: true,
    trustProxy: false,
    poolSize: 10,
  });
  expect(Object.isFrozen(loadConfig({}))).toBe(true);
  // Many tools write an empty variable for an absent one.
  expect(loadConfig({ PORT: "", DATABASE_URL: " " })).toEqual(loadConfig({}));
});

/** Settings without which production would refuse to start. */
const named = { PAYMENTS: "sandbox", MAIL: "outbox", TLS: "self-signed" };
const keys = { JWT_KEYS: `a:${secret}`, SECRET_KEYS: `a:${secret}` };

describe("production", () => {
  const real = {
    ...keys,
    STRIPE_SECRET_KEY: "sk_live_1",
    SMTP_URL: "smtps://mail.example.com",
    TRUST_PROXY: "loopback",
  };

  test.each<[string, NodeJS.ProcessEnv, boolean]>([
    ["no settings, the embedded database", {}, false],
    ["an external database", { DATABASE_URL: "postgres://u:p@h/d" }, true],
    ["a public address", { BASE_URL: "https://sales.example.com" }, true],
    ["an address of this machine", { BASE_URL: "https://localhost:8443" }, false],
    ["an address of this machine, by number", { BASE_URL: "https://127.0.0.1:8443" }, false],
    ["a database, by a developer", { DATABASE_URL: "postgres://u:p@h/d", NODE_ENV: "development" }, false],
    ["the embedded database, with NODE_ENV=production", { NODE_ENV: "production" }, true],
  ])("is derived from %s", (_what, env, production) => {
    expect(loadConfig({ ...real, ...env }).production).toBe(production);
  });

  const payments =
    "STRIPE_SECRET_KEY has to be a live key in production, sk_live_… or rk_live_…; PAYMENTS=sandbox says that no money is to move.";
  const mail =
    "SMTP_URL is required in production; MAIL=outbox says that mail is to be written to files which nobody gets.";
  const tls =
    "TLS_CERT and TLS_KEY are required in production, or TRUST_PROXY where a proxy ends TLS; TLS=self-signed says that a certificate which nobody has signed will do.";

  test.each<[NodeJS.ProcessEnv, string[]]>([
    [{}, [payments, mail, tls]],
    [{ PAYMENTS: "sandbox" }, [mail, tls]],
    [{ MAIL: "outbox", TLS: "self-signed" }, [payments]],
    // Nobody pays with test cards.
    [{ STRIPE_SECRET_KEY: "sk_test_1", MAIL: "outbox", TLS: "self-signed" }, [payments]],
    [{ STRIPE_SECRET_KEY: "rk_test_1", ...named }, []],
    [{ STRIPE_SECRET_KEY: "rk_live_1", MAIL: "outbox", TLS: "self-signed" }, []],
    [{ ...named, TLS: "", TLS_CERT: "package.json", TLS_KEY: "package.json" }, []],
    [
      { ...named, LOOPBACK_WEBHOOKS: "1" },
      ["LOOPBACK_WEBHOOKS is for development: in production it would let every user reach this machine."],
    ],
    [
      { ...named, STRIPE_SECRET_KEY: "sk_live_1" },
      ["PAYMENTS=sandbox contradicts the live key of STRIPE_SECRET_KEY: take one of them away."],
    ],
    [
      { ...named, SMTP_URL: "smtp://mail.example.com" },
      ["MAIL=outbox contradicts SMTP_URL: take one of them away."],
    ],
  ])("with %j requires the settings for real use", (env, sentences) => {
    expect(problems({ NODE_ENV: "production", ...env })).toEqual(sentences);
  });

  test("concurrent processes report their data folders", () => {
    const one = { NODE_ENV: "production", DATABASE_URL: "postgres://u:p@h/d", ...real };
    for (const mode of ["--api-only", "--worker-only"]) {
      expect(problems(one, [mode])).toEqual([
        `${mode} requires S3_BUCKET in production, since other processes do not find files that this one keeps in DATA_DIR; FILES=shared-folder says that it is one folder for all of them.`,
      ]);
      expect(problems({ ...one, FILES: "shared-folder" }, [mode])).toEqual([]);
      expect(problems({ ...one, S3_BUCKET: "files" }, [mode])).toEqual([]);
    }
  });

  test("starts with real settings, and migrates without them", () => {
    expect(problems({ NODE_ENV: "production", DATABASE_URL: "postgres://u:p@h/d", ...real })).toEqual([]);
    expect(problems({ DATABASE_URL: "postgres://u:p@h/d" }, ["--migrate-only"])).toEqual([]);
  });
});

test.each([
  ["127.0.0.1:9000", { host: "127.0.0.1", port: 9000 }],
  ["[::1]:0", { host: "::1", port: 0 }],
  ["off", "off"],
])("MONITORING %s is accepted", (text, value) => {
  expect(loadConfig({ MONITORING: text }).monitoring).toEqual(value);
});

test("a file without a secret is not used as one", async () => {
  await using folder = await temporaryFolder();
  const made = await loadOrCreateSecret(folder.path, "jwt.key");
  expect(made).toMatch(/^[\w-]{43}$/);
  expect(await loadOrCreateSecret(folder.path, "jwt.key")).toBe(made);
  for (const [text, what] of [
    ["", "it is empty"],
    [" \n", "it is empty"],
    ["short\n", "it is shorter than 32 characters"],
  ] as const) {
    await writeFile(join(folder.path, "jwt.key"), text);
    await expect(loadOrCreateSecret(folder.path, "jwt.key")).rejects.toThrow(what);
    // It is not changed, because a backup may replace it.
    expect(await readFile(join(folder.path, "jwt.key"), "utf8")).toBe(text);
  }
});

test("if text messages are disabled, none counts as sent", async () => {
  const sms = createSmsProvider({ textMessages: "off", dataDir: "/nonexistent", baseUrl: "https://h" });
  await expect(sms.send({ id: "1", to: "+14165550123", body: "Hi" })).rejects.toThrow(/not set up/);
});

test("defaults that depend on other settings", () => {
  const url = "postgres://owner:pw@db/plat";
  const trial = { NODE_ENV: "development" };
  expect(loadConfig({ ...trial, DATABASE_URL: url }).demo).toBe(false);
  expect(loadConfig({ ...trial, DATABASE_URL: url, DEMO: "1" }).demo).toBe(true);
  expect(loadConfig({ NODE_ENV: "production", ...named })).toMatchObject({
    production: true,
    explorer: false,
    demo: false,
    textMessages: "off",
  });
  expect(loadConfig({ NODE_ENV: "production", ...named, DEMO: "1" }).demo).toBe(true);
  expect(loadConfig({}).textMessages).toBe("outbox");
  expect(loadConfig({ MAIL_FROM: "Plat <a@b.example>" }).operatorEmail).toBe("a@b.example");
  expect(
    loadConfig({ OPERATOR_EMAIL: "Desk <d@b.example>", WEB_URL: "https://w.example/app/" }),
  ).toMatchObject({
    operatorEmail: "d@b.example",
    webUrl: "https://w.example/app",
  });
  const twilio = { TWILIO_ACCOUNT_SID: "AC1", TWILIO_AUTH_TOKEN: "t", TWILIO_SENDER: "+14165550199" };
  expect(loadConfig({ ...twilio, TWILIO_API: "https://sms.example.com/" }).twilio).toEqual({
    accountSid: "AC1",
    authToken: "t",
    sender: "+14165550199",
    api: "https://sms.example.com",
  });
  expect(loadConfig({}).twilio).toBeUndefined();
  expect(loadConfig({ ...trial, BASE_URL: "https://plat.example.com/" }).baseUrl).toBe(
    "https://plat.example.com",
  );
  expect(loadConfig({ JWT_KEYS: `a:${secret}, b:${secret}x` }).jwtKeys).toEqual([
    { kid: "a", secret },
    { kid: "b", secret: `${secret}x` },
  ]);
});

test.each([
  ["2", 2],
  ["loopback, 10.0.0.0/8,::1, fd00::/8", ["loopback", "10.0.0.0/8", "::1", "fd00::/8"]],
  ["off", false],
])("TRUST_PROXY %s is accepted", (text, value) => {
  expect(loadConfig({ TRUST_PROXY: text }).trustProxy).toEqual(value);
});

const refused: [NodeJS.ProcessEnv, string][] = [
  [{ PORT: "65536" }, "PORT must be a whole number from 0 to 65535."],
  [{ PORT: "80a" }, "PORT must be a whole number from 0 to 65535."],
  [{ HOST: "a b" }, "HOST must be an IP address or a host name."],
  [{ BASE_URL: "http://plat.example.com" }, "BASE_URL must be an address that starts with https://."],
  [{ BASE_URL: "https://h/?a=b" }, "BASE_URL must be an origin with an optional path, nothing else."],
  [
    { DATABASE_URL: "mysql://h/d" },
    "DATABASE_URL must be an address that starts with postgres:// or postgresql://.",
  ],
  [{ DATABASE_URL: "postgres://u:p@h" }, "DATABASE_URL must name a database, as in postgres://host/name."],
  [
    { NODE_ENV: "development", DATABASE_URL: "postgres://u@h/d" },
    "DATABASE_URL carries no password, so AUTHENTICATOR_URL has to say how the API logs in.",
  ],
  [
    { TWILIO_ACCOUNT_SID: "AC1" },
    "TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN, TWILIO_SENDER belong together: set all or none.",
  ],
  [
    { TWILIO_AUTH_TOKEN: "t", TWILIO_SENDER: "+14165550199" },
    "TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN, TWILIO_SENDER belong together: set all or none.",
  ],
  [
    { TWILIO_ACCOUNT_SID: "AC1/../AC2", TWILIO_AUTH_TOKEN: "t", TWILIO_SENDER: "+14165550199" },
    "TWILIO_ACCOUNT_SID must be the SID of an account, such as AC0123….",
  ],
  [
    { TWILIO_ACCOUNT_SID: "AC1", TWILIO_AUTH_TOKEN: "t", TWILIO_SENDER: "4165550199" },
    "TWILIO_SENDER must be a number such as +14165550123, or a messaging service, MG and 32 characters.",
  ],
  [{ TWILIO_API: "https://sms.example.com" }, "TWILIO_API needs TWILIO_ACCOUNT_SID."],
  [{ AUTHENTICATOR_URL: "postgres://u:p@h/d" }, "AUTHENTICATOR_URL needs DATABASE_URL beside it."],
  [{ WORKER_URL: "postgres://u:p@h/d" }, "WORKER_URL needs DATABASE_URL beside it."],
  [
    {
      NODE_ENV: "development",
      DATABASE_URL: "postgres://u@h/d",
      AUTHENTICATOR_URL: "postgres://plat_authenticator@h/d",
    },
    "AUTHENTICATOR_URL carries no password, so WORKER_URL has to say how background work logs in.",
  ],
  [{ MONITORING: "9000" }, "MONITORING must be host:port, as in 127.0.0.1:9464, or off."],
  [{ PAYMENTS: "real" }, "PAYMENTS must be one of sandbox."],
  [{ DEMO: "maybe" }, "DEMO must be 1 (on) or 0 (off)."],
  [{ TLS_CERT: "package.json" }, "TLS_CERT and TLS_KEY belong together: set both or neither."],
  [{ JWT_KEYS: "a:short" }, "JWT_KEYS has a secret of less than 32 characters (key a)."],
  [{ JWT_KEYS: secret }, "JWT_KEYS must be a list of name:secret pairs, as in 2026a:secret,2025b:secret."],
  [{ JWT_KEYS: `a:${secret},a:${secret}` }, "JWT_KEYS has two keys of the same name."],
  [
    { ...named, DATABASE_URL: "postgres://u:p@h/d", JWT_KEYS: `a:${secret}` },
    "SECRET_KEYS is required in production with DATABASE_URL, so that all processes share the same keys.",
  ],
  [
    { ...named, DATABASE_URL: "postgres://u:p@h/d", SECRET_KEYS: `a:${secret}` },
    "JWT_KEYS is required in production with DATABASE_URL, so that all processes share the same keys.",
  ],
  [{ SMTP_URL: "mail.example.com" }, "SMTP_URL must be an address that starts with smtp:// or smtps://."],
  [
    { MAIL_FROM: "nobody" },
    "MAIL_FROM must be an email address, with or without a name: Plat <sales@example.com>.",
  ],
  [{ AI_PROVIDER: "oracle" }, "AI_PROVIDER must be one of openai, anthropic."],
  [{ AI_PROVIDER: "openai", AI_API_KEY: "k" }, "AI_PROVIDER needs AI_MODEL, the model that writes drafts."],
  [{ AI_PROVIDER: "openai", AI_MODEL: "m" }, "AI_PROVIDER needs AI_API_KEY, the key for the provider."],
  [
    { AI_PROVIDER: "anthropic", AI_MODEL: "m", AI_BASE_URL: "http://localhost:1" },
    "AI_PROVIDER needs AI_API_KEY, the key for the provider.",
  ],
  [{ AI_MODEL: "m" }, "AI_API_KEY, AI_MODEL and AI_BASE_URL need AI_PROVIDER."],
  [{ AI_TIMEOUT: "0" }, "AI_TIMEOUT must be a whole number from 1 to 100."],
  [{ LOG_LEVEL: "loud" }, "LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent."],
  [{ POOL_SIZE: "1" }, "POOL_SIZE must be a whole number from 2 to 500."],
];

test.each(refused)("%j is refused", (env, sentence) => {
  expect(problems(env)).toEqual([sentence]);
});

test("a local endpoint for drafts needs no key", () => {
  const { ai } = loadConfig({ AI_PROVIDER: "OpenAI", AI_MODEL: "m", AI_BASE_URL: "http://localhost:1/v1" });
  expect(ai).toMatchObject({ provider: "openai", apiKey: undefined, timeoutMs: 30_000 });
  expect(loadConfig({}).ai).toBeUndefined();
});

test.each(["true", "10.0.0.0/33", "example.com", "10.0.0.0/", "1.2.3.4,,"])(
  "TRUST_PROXY %s is refused",
  (text) => {
    expect(problems({ TRUST_PROXY: text })).toEqual([
      "TRUST_PROXY must be a number of proxies or a list of addresses, networks (10.0.0.0/8) and loopback, linklocal, uniquelocal.",
    ]);
  },
);

test("a missing file is named", () => {
  expect(problems({ TLS_CERT: "/no/cert", TLS_KEY: "/no/key" })).toEqual([
    "TLS_CERT names the file /no/cert, which cannot be read.",
    "TLS_KEY names the file /no/key, which cannot be read.",
  ]);
});

test("arguments: at most one mode, and no unknown ones", () => {
  const DATABASE_URL = "postgres://u:p@h/d";
  const NODE_ENV = "development";
  expect(loadConfig({ NODE_ENV, DATABASE_URL }, ["--worker-only"]).mode).toBe("worker");
  expect(loadConfig({}, ["--migrate-only"]).mode).toBe("migrate");
  expect(problems({ NODE_ENV, DATABASE_URL }, ["--api-only", "--worker-only"])).toEqual([
    "--api-only and --worker-only exclude each other.",
  ]);
  expect(problems({}, ["--help"])).toEqual([
    "The argument --help is unknown; there are --migrate-only, --api-only, --worker-only.",
  ]);
  expect(problems({}, ["--api-only"])).toEqual([
    "--api-only needs DATABASE_URL: the embedded database belongs to one process.",
  ]);
});

test("the service prints every problem and starts nothing", async () => {
  const exit = await runToExit({ env: { PORT: "x", LOG_LEVEL: "loud", DATA_DIR: "/nonexistent/data" } });
  expect(exit).toEqual({
    code: 1,
    signal: null,
    stdout: "",
    stderr:
      "PORT must be a whole number from 0 to 65535.\n" +
      "LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent.\n",
  });
});
