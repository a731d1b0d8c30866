/** Headers to claims: what is refused without asking the database, what is asked, and what an answer stands for. */
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { createAuthenticator } from "../../src/auth/authenticate.ts";
import { loadJwtKeys, loadSeal } from "../../src/auth/keys.ts";
import { createLoginTokens } from "../../src/auth/loginToken.ts";
import type { Config } from "../../src/config.ts";
import { scripted } from "../http/scripted.ts";

const keys = [{ kid: "k", secret: "a".repeat(40) }];
const now = Math.floor(Date.now() / 1000);
const sub = "0199f3a0-0000-7000-8000-000000000001";
const sid = "0199f3a0-0000-7000-8000-000000000002";
const login = createLoginTokens(keys).sign({ sub, epoch: 3, iat: now, exp: now + 60, sid });
/** Given out before sessions had rows. */
const former = createLoginTokens(keys).sign({ sub, epoch: 3, iat: now, exp: now + 60 });
const { jti } = createLoginTokens(keys).verify(former);
/** The example of the documentation of access tokens: its checksum is right. */
const access = "plat_oZwgQtRhH5k7rWbnuj9NX8c22mMiQNaY2jjoCK";
const row = {
  viewer_id: sub,
  token_id: null as string | null,
  read_only: false,
  organization_id: null as string | null,
  scopes: null as string[] | null,
};

function authenticator(rows: unknown[] | Error = [row]) {
  const { pool, asked } = scripted([[/authenticate/, rows]]);
  const find = createAuthenticator({ pool, keys });
  return { authenticate: async (header?: string, ip?: string) => (await find(header, ip)).claims, asked };
}
const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => "accepted",
    (error) => [error.code, error.status, error.message],
  );

test("without a header nobody is asked", async () => {
  const { authenticate, asked } = authenticator();
  expect(await authenticate(undefined)).toEqual({ userId: null, readOnly: false });
  expect(asked).toEqual([]);
});

test("a login token is looked up by its user, epoch and session", async () => {
  const { authenticate, asked } = authenticator();
  const text = "select * from app_private.authenticate_session($1, $2, $3, $4, $5, to_timestamp($6))";
  expect(await authenticate(`bearer   ${login}`, "192.0.2.1")).toEqual({
    userId: sub,
    readOnly: false,
    sessionId: sid,
  });
  expect(await authenticate(`Bearer ${former}`)).toEqual({ userId: sub, readOnly: false, sessionId: jti });
  expect(asked).toEqual([
    [text, sub, 3, sid, true, "192.0.2.1", now + 60],
    [text, sub, 3, jti, false, null, now + 60],
  ]);
});

test("an access token is looked up by its hash, and brings its restrictions", async () => {
  const found = { ...row, token_id: "t1", read_only: true, organization_id: "o1", scopes: ["lead.read"] };
  const { authenticate, asked } = authenticator([found]);
  const claims = await authenticate(`Bearer ${access}`).catch((error) => error);
  if (claims instanceof Error) throw claims;
  expect(claims).toEqual({
    userId: sub,
    readOnly: true,
    tokenId: "t1",
    organizationId: "o1",
    scopes: ["lead.read"],
  });
  expect(asked).toEqual([
    ["select * from app_private.authenticate_access_token($1)", createHash("sha256").update(access).digest()],
  ]);
});

test.each(["Basic x", "Bearer", "Bearer ", "Bearer a b", "xBearer a", ` Bearer ${login}`, ""])(
  "the header %j is refused for its form",
  async (header) => {
    const { authenticate, asked } = authenticator();
    expect(await refusal(authenticate(header))).toEqual([
      "UNAUTHENTICATED",
      401,
      "The Authorization header has to be: Bearer, a space, and the token.",
    ]);
    expect(asked).toEqual([]);
  },
);

test("a token of more than 2,000 characters is not looked at", async () => {
  const { authenticate } = authenticator();
  expect(await refusal(authenticate(`Bearer ${"a".repeat(2001)}`))).toEqual([
    "UNAUTHENTICATED",
    401,
    "Not a token of this service.",
  ]);
  expect((await refusal(authenticate(`Bearer ${"a".repeat(2000)}`)))[2]).toBe(
    "The token is unknown; sign in again.",
  );
});

test("a mistyped access token is told apart from one that has ended", async () => {
  const { authenticate, asked } = authenticator([]);
  expect(await refusal(authenticate(`Bearer ${access.slice(0, -1)}x`))).toEqual([
    "UNAUTHENTICATED",
    401,
    "This access token is mistyped or incomplete.",
  ]);
  expect(asked).toEqual([]);
  const ended = [
    "UNAUTHENTICATED",
    401,
    "The token has ended: it is unknown, expired or revoked. Sign in again.",
  ];
  expect(await refusal(authenticate(`Bearer ${access}`))).toEqual(ended);
  expect(await refusal(authenticate(`Bearer ${login}`))).toEqual(ended);
});

test("a look-up that fails is a fault of ours: 503 where the database cannot be reached", async () => {
  const lost = authenticator(new Error("Connection terminated unexpectedly"));
  expect((await refusal(lost.authenticate(`Bearer ${login}`))).slice(0, 2)).toEqual(["UNAVAILABLE", 503]);
  const broken = authenticator(
    Object.assign(new Error("no such function"), { code: "42883", severity: "ERROR" }),
  );
  expect((await refusal(broken.authenticate(`Bearer ${login}`))).slice(0, 2)).toEqual(["INTERNAL", 500]);
});

test("keys are those of the settings, or ones of our own that are kept", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "plat-keys-"));
  const kept = async (name: string) => (await readFile(join(dataDir, name), "utf8")).trim();
  const log = { warn() {} } as never;
  try {
    const given = [{ kid: "2026", secret: "b".repeat(40) }];
    expect(await loadJwtKeys({ dataDir, jwtKeys: given } as unknown as Config)).toBe(given);
    const own = await loadJwtKeys({ dataDir } as Config);
    expect(own).toEqual([{ kid: "local", secret: await kept("jwt.key") }]);
    expect(await loadJwtKeys({ dataDir } as Config)).toEqual(own);
    // The database is asked about former secrets only where these may be opened.
    const settings = { dataDir, secretKeys: undefined, opensUnboundSecrets: false } as Config;
    const seal = await loadSeal(settings, "postgres://nowhere", log);
    expect(await kept("secrets.key")).not.toBe(await kept("jwt.key"));
    const bound = { table: "t", column: "c", id: sub } as never;
    const sealed = seal.seal("secret", bound);
    const again = await loadSeal(settings, "postgres://nowhere", log);
    expect(again.open(sealed, bound)).toBe("secret");
    const others = await loadSeal({ ...settings, secretKeys: given } as never, "postgres://nowhere", log);
    expect(() => others.open(sealed, bound)).toThrow(
      "The key local that a secret was sealed with is missing.",
    );
  } finally {
    await rm(dataDir, { recursive: true });
  }
});
