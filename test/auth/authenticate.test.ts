/** From the Authorization header to claims: refusals without a query, the queries, and the claims. */
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { createAuthenticator } from "../../src/auth/authenticate.ts";
import { loadJwtKeys, loadSeal } from "../../src/auth/authKeys.ts";
import { createLoginTokens } from "../../src/auth/loginToken.ts";
import type { Config } from "../../src/base/config.ts";
import { scriptedDatabase } from "../http/scriptedDatabase.ts";

const keys = [{ kid: "k", secret: "a".repeat(40) }];
const now = Math.floor(Date.now() / 1000);
const sub = "0199f3a0-0000-7000-8000-000000000001";
const sid = "0199f3a0-0000-7000-8000-000000000002";
const login = createLoginTokens(keys).sign({ sub, epoch: 3, iat: now, exp: now + 60, sid });
/** Issued before sessions were stored. */
const former = createLoginTokens(keys).sign({ sub, epoch: 3, iat: now, exp: now + 60 });
const { jti } = createLoginTokens(keys).verify(former);
/** The example in the documentation of access tokens, with a valid checksum. */
const access = "plat_oZwgQtRhH5k7rWbnuj9NX8c22mMiQNaY2jjoCK";
const row = {
  viewer_id: sub,
  token_id: null as string | null,
  read_only: false,
  organization_id: null as string | null,
  scopes: null as string[] | null,
};

function authenticator(rows: unknown[] | Error = [row]) {
  const { pool, queries } = scriptedDatabase([[/authenticate/, rows]]);
  const find = createAuthenticator({ pool, keys });
  return { authenticate: async (header?: string, ip?: string) => (await find(header, ip)).claims, queries };
}
const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => "accepted",
    (error) => [error.code, error.status, error.message],
  );

test("a request without a header needs no look-up", async () => {
  const { authenticate, queries } = authenticator();
  expect(await authenticate(undefined)).toEqual({ userId: null, readOnly: false });
  expect(queries).toEqual([]);
});

test("a login token is looked up by its user, epoch and session", async () => {
  const { authenticate, queries } = authenticator();
  const text = "select * from app_private.authenticate_session($1, $2, $3, $4, $5, to_timestamp($6))";
  expect(await authenticate(`bearer   ${login}`, "192.0.2.1")).toEqual({
    userId: sub,
    readOnly: false,
    sessionId: sid,
  });
  expect(await authenticate(`Bearer ${former}`)).toEqual({ userId: sub, readOnly: false, sessionId: jti });
  expect(queries).toEqual([
    [text, sub, 3, sid, true, "192.0.2.1", now + 60],
    [text, sub, 3, jti, false, null, now + 60],
  ]);
});

test("an access token is looked up by its hash, and returns its restrictions", async () => {
  const found = { ...row, token_id: "t1", read_only: true, organization_id: "o1", scopes: ["lead.read"] };
  const { authenticate, queries } = authenticator([found]);
  const claims = await authenticate(`Bearer ${access}`).catch((error) => error);
  if (claims instanceof Error) throw claims;
  expect(claims).toEqual({
    userId: sub,
    readOnly: true,
    tokenId: "t1",
    organizationId: "o1",
    scopes: ["lead.read"],
  });
  expect(queries).toEqual([
    ["select * from app_private.authenticate_access_token($1)", createHash("sha256").update(access).digest()],
  ]);
});

test.each(["Basic x", "Bearer", "Bearer ", "Bearer a b", "xBearer a", ` Bearer ${login}`, ""])(
  "the malformed header %j is refused",
  async (header) => {
    const { authenticate, queries } = authenticator();
    expect(await refusal(authenticate(header))).toEqual([
      "UNAUTHENTICATED",
      401,
      "The Authorization header must have the form: Bearer <token>.",
    ]);
    expect(queries).toEqual([]);
  },
);

test("a token of more than 2,000 characters is not parsed", async () => {
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

test("distinguishes a misspelled access token from an expired one", async () => {
  const { authenticate, queries } = authenticator([]);
  expect(
    await refusal(authenticate(`Bearer ${access.slice(0, -1)}${access.endsWith("x") ? "y" : "x"}`)),
  ).toEqual(["UNAUTHENTICATED", 401, "This access token is misspelled or incomplete."]);
  expect(queries).toEqual([]);
  const ended = ["UNAUTHENTICATED", 401, "The token is unknown, expired or revoked; sign in again."];
  expect(await refusal(authenticate(`Bearer ${access}`))).toEqual(ended);
  expect(await refusal(authenticate(`Bearer ${login}`))).toEqual(ended);
});

test("a failed look-up is an internal error: 503 if the database is unreachable", async () => {
  const lost = authenticator(new Error("Connection terminated unexpectedly"));
  expect((await refusal(lost.authenticate(`Bearer ${login}`))).slice(0, 2)).toEqual(["UNAVAILABLE", 503]);
  const broken = authenticator(
    Object.assign(new Error("no such function"), { code: "42883", severity: "ERROR" }),
  );
  expect((await refusal(broken.authenticate(`Bearer ${login}`))).slice(0, 2)).toEqual(["INTERNAL", 500]);
});

test("keys are those of the settings, otherwise generated and stored", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "plat-keys-"));
  const kept = async (name: string) => (await readFile(join(dataDir, name), "utf8")).trim();
  const log = { warn() {} } as never;
  try {
    const given = [{ kid: "2026", secret: "b".repeat(40) }];
    expect(await loadJwtKeys({ dataDir, jwtKeys: given } as unknown as Config)).toBe(given);
    const own = await loadJwtKeys({ dataDir } as Config);
    expect(own).toEqual([{ kid: "local", secret: await kept("jwt.key") }]);
    expect(await loadJwtKeys({ dataDir } as Config)).toEqual(own);
    // The database is only asked for former secrets if they may be opened.
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

const accessRow = { access: "a", classes: ["one", "two"], parties: [sub], version: "7" };

/** Also with look-ups of access; calls are recorded by the names of functions. */
function carrying(rows: unknown[] = [row], found: unknown[] | Error = [accessRow]) {
  const given = { rows };
  const { pool, queries } = scriptedDatabase([[/access_of/, found]]);
  const find = createAuthenticator({
    pool: {
      query: async (statement: { text: string; values: unknown[] }) =>
        statement.text.includes("access_of")
          ? pool.query(statement)
          : (queries.push([statement.text, ...statement.values]), { rows: given.rows }),
    } as never,
    keys,
  });
  const calls = () => queries.splice(0).map(([text]) => /app_private\.(\w+)/.exec(text)![1]);
  return { find, queries, calls, given };
}
const carriedBy = (check: { carried: any }) => {
  const values: unknown[] = [];
  check.carried.expression((value: unknown) => `$${values.push(value)}`);
  return { values, settings: check.carried.settings };
};
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a token that is used again within the minute is checked together with the statements of the request", async () => {
  const { find, calls, queries } = carrying();
  const header = `Bearer ${login}`;
  expect(await find(header, "192.0.2.1", true)).not.toHaveProperty("check");
  expect(calls()).toEqual(["authenticate_session"]);
  const second = await find(header, "192.0.2.1", true);
  expect(second.claims).toEqual({ userId: sub, readOnly: false, sessionId: sid });
  expect(carriedBy(second.check!)).toEqual({ values: [sub, sid, null, null, null], settings: {} });
  expect(queries.map(([text]) => text)).toEqual([
    "select access, classes, parties, version from app_private.access_of($1, $2, $3)",
  ]);
  expect(queries[0]!.slice(1)).toEqual([sub, null, null]);
  queries.length = 0;
  await settled();
  const third = await find(header, "192.0.2.1", true);
  expect(carriedBy(third.check!)).toEqual({
    values: [sub, sid, null, [sub], "7"],
    settings: {
      "plat.access": "a",
      "plat.access_": "{}|{}|{}|{}|{}",
      "plat.access_1": "one",
      "plat.access_2": "two",
    },
  });
  expect(calls()).toEqual([]);
  // For requests that do not send the check, the token is looked up.
  expect(await find(header, "192.0.2.1")).not.toHaveProperty("check");
  expect(calls()).toEqual(["authenticate_session"]);
});

test("access tokens are checked with their restrictions", async () => {
  const restricted = { ...row, token_id: "t1", organization_id: "o1", scopes: ["lead.read"] };
  const { find, queries } = carrying([restricted], [{ ...accessRow, classes: null }]);
  await find(`Bearer ${access}`, undefined, true);
  queries.length = 0;
  const { check } = await find(`Bearer ${access}`, undefined, true);
  const sha256 = createHash("sha256").update(access).digest();
  expect(carriedBy(check!).values).toEqual([sub, null, sha256, null, null]);
  expect(queries[0]!.slice(1)).toEqual([sub, "o1", ["lead.read"]]);
  await settled();
  const again = await find(`Bearer ${access}`, undefined, true);
  expect(carriedBy(again.check!).settings).toEqual({ "plat.access": "a", "plat.access_": "{}|{}|{}|{}|{}" });
});

test("access that is too large or cannot be read is not passed", async () => {
  const large = carrying([row], [{ ...accessRow, access: null }]);
  const failing = carrying([row], new Error("gone"));
  for (const { find, calls } of [large, failing]) {
    await find(`Bearer ${login}`, undefined, true);
    await find(`Bearer ${login}`, undefined, true);
    await settled();
    calls();
    expect(carriedBy((await find(`Bearer ${login}`, undefined, true)).check!).settings).toEqual({});
  }
  // A failed look-up is retried; that it is too large is cached for a minute.
  expect([large.calls(), failing.calls()]).toEqual([[], ["access_of"]]);
});

test("a token with withheld access, or without a row, is looked up each time", async () => {
  const withheld = carrying([{ ...row, second_factor_withholds: "SOME" }]);
  for (let n = 0; n < 2; n++)
    expect(await withheld.find(`Bearer ${login}`, undefined, true)).toEqual({
      claims: { userId: sub, readOnly: false, sessionId: sid, secondFactorWithholds: "SOME" },
      facts: { userId: sub, sessionId: sid, tokenSha256: null },
    });
  expect(withheld.calls()).toEqual(["authenticate_session", "authenticate_session"]);
  // Cached before, and withheld from now on.
  const later = carrying();
  await later.find(`Bearer ${login}`, undefined, true);
  later.given.rows = [{ ...row, second_factor_withholds: "ALL" }];
  await later.find(`Bearer ${login}`);
  later.calls();
  expect(await later.find(`Bearer ${login}`, undefined, true)).not.toHaveProperty("check");
  expect(later.calls()).toEqual(["authenticate_session"]);
});

test("after a refused statement, the token is looked up and removed from the cache", async () => {
  const { find, calls, given } = carrying();
  const header = `Bearer ${login}`;
  await find(header, undefined, true);
  const { check } = await find(header, undefined, true);
  await settled();
  calls();
  // A look-up in advance does not include the access.
  await check!.complete();
  expect(calls()).toEqual(["authenticate_session"]);
  const kept = await find(header, undefined, true);
  expect(carriedBy(kept.check!).settings).toHaveProperty(["plat.access"], "a");
  await kept.check!.renew();
  calls();
  const renewed = await find(header, undefined, true);
  expect(carriedBy(renewed.check!).settings).toEqual({});
  await settled();
  calls();
  given.rows = [];
  const ended = "The token is unknown, expired or revoked; sign in again.";
  await expect((await find(header, undefined, true)).check!.renew()).rejects.toThrow(ended);
  await expect(find(header, undefined, true)).rejects.toThrow(ended);
});

test("long-running work is checked again without the text of its token", async () => {
  const { find, queries, calls, given } = carrying();
  expect(await find.bearer(undefined, undefined)).toBeUndefined();
  const bearer = await find.bearer(`Bearer ${login}`, "192.0.2.1");
  expect(bearer).toEqual({
    claims: { userId: sub, readOnly: false, sessionId: sid },
    facts: { userId: sub, sessionId: sid, tokenSha256: null },
    expiresAt: now + 60,
  });
  queries.length = 0;
  expect(await find.again(bearer!.facts, "192.0.2.1")).toEqual(bearer!.claims);
  expect(queries.map(([, ...values]) => values)).toEqual([[sub, 0, sid, true, "192.0.2.1", null]]);
  queries.length = 0;
  const tokenSha256 = Buffer.from("hash");
  given.rows = [{ ...row, token_id: "t1" }];
  expect(await find.again({ userId: sub, sessionId: null, tokenSha256 })).toEqual({
    userId: sub,
    readOnly: false,
    tokenId: "t1",
  });
  expect(queries).toEqual([["select * from app_private.authenticate_access_token($1)", tokenSha256]]);
  expect(calls()).toEqual(["authenticate_access_token"]);
});

test.each(["57014", "55P03"])("a look-up that takes too long (%s) can be retried later", async (code) => {
  const slow = authenticator(Object.assign(new Error("canceled"), { code, severity: "ERROR" }));
  expect((await refusal(slow.authenticate(`Bearer ${login}`))).slice(0, 2)).toEqual(["UNAVAILABLE", 503]);
});
