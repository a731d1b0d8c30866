import { expect, test } from "@jest/globals";
import { ConfigError, loadConfig } from "../../src/config.ts";
import { runToExit } from "../harness/service.ts";

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
  // An empty variable is what many tools write for an absent one.
  expect(loadConfig({ PORT: "", DATABASE_URL: " " })).toEqual(loadConfig({}));
});

test("defaults that follow from other settings", () => {
  const url = "postgres://owner:pw@db/plat";
  expect(loadConfig({ DATABASE_URL: url }).demo).toBe(false);
  expect(loadConfig({ DATABASE_URL: url, DEMO: "1" }).demo).toBe(true);
  expect(loadConfig({ NODE_ENV: "production" })).toMatchObject({ production: true, explorer: false });
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
  expect(loadConfig({ BASE_URL: "https://plat.example.com/" }).baseUrl).toBe("https://plat.example.com");
  expect(loadConfig({ JWT_KEYS: `a:${secret}, b:${secret}x` }).jwtKeys).toEqual([
    { kid: "a", secret },
    { kid: "b", secret: `${secret}x` },
  ]);
});

test.each([
  ["2", 2],
  ["loopback, 10.0.0.0/8,::1, fd00::/8", ["loopback", "10.0.0.0/8", "::1", "fd00::/8"]],
  ["off", false],
])("TRUST_PROXY %s is understood", (text, value) => {
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
    { DATABASE_URL: "postgres://u@h/d" },
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
  [{ DEMO: "maybe" }, "DEMO must be 1 (on) or 0 (off)."],
  [{ TLS_CERT: "package.json" }, "TLS_CERT and TLS_KEY belong together: set both or neither."],
  [{ JWT_KEYS: "a:short" }, "JWT_KEYS has a secret of less than 32 characters (key a)."],
  [{ JWT_KEYS: secret }, "JWT_KEYS must be a list of name:secret pairs, as in 2026a:secret,2025b:secret."],
  [{ JWT_KEYS: `a:${secret},a:${secret}` }, "JWT_KEYS has two keys of the same name."],
  [
    { NODE_ENV: "production", DATABASE_URL: "postgres://u:p@h/d", JWT_KEYS: `a:${secret}` },
    "SECRET_KEYS is required in production with DATABASE_URL, so that all processes share the same keys.",
  ],
  [
    { NODE_ENV: "production", DATABASE_URL: "postgres://u:p@h/d", SECRET_KEYS: `a:${secret}` },
    "JWT_KEYS is required in production with DATABASE_URL, so that all processes share the same keys.",
  ],
  [{ SMTP_URL: "mail.example.com" }, "SMTP_URL must be an address that starts with smtp:// or smtps://."],
  [
    { MAIL_FROM: "nobody" },
    "MAIL_FROM must be an e-mail address, with or without a name: Plat <sales@example.com>.",
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

test("a file that is not there is named", () => {
  expect(problems({ TLS_CERT: "/no/cert", TLS_KEY: "/no/key" })).toEqual([
    "TLS_CERT names the file /no/cert, which cannot be read.",
    "TLS_KEY names the file /no/key, which cannot be read.",
  ]);
});

test("arguments: one mode at most, none unknown", () => {
  const DATABASE_URL = "postgres://u:p@h/d";
  expect(loadConfig({ DATABASE_URL }, ["--worker-only"]).mode).toBe("worker");
  expect(loadConfig({}, ["--migrate-only"]).mode).toBe("migrate");
  expect(problems({ DATABASE_URL }, ["--api-only", "--worker-only"])).toEqual([
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
