/** Where a token is accepted, what is known of the token of a connection, and tokens of what outlives a request. */
import { createHash } from "node:crypto";
import { afterEach, expect, jest, test } from "@jest/globals";
import { createAuthenticator } from "../../src/auth/authenticate.ts";
import { createLoginTokens } from "../../src/auth/loginToken.ts";
import { authentications } from "../../src/admission/semaphores.ts";
import { partyOf } from "../../src/admission/party.ts";
import { scriptedDatabase } from "../http/scriptedDatabase.ts";

const keys = [{ kid: "k", secret: "a".repeat(40) }];
const now = Math.floor(Date.now() / 1000);
const sub = "0199f3a0-0000-7000-8000-000000000001";
const sid = "0199f3a0-0000-7000-8000-000000000002";
const login = createLoginTokens(keys).sign({ sub, epoch: 3, iat: now, exp: now + 3_600, sid });
const otherLogin = createLoginTokens(keys).sign({ sub, epoch: 4, iat: now, exp: now + 3_600, sid });
/** The example in the documentation of access tokens, with a valid checksum. */
const access = "plat_oZwgQtRhH5k7rWbnuj9NX8c22mMiQNaY2jjoCK";
const sha256 = createHash("sha256").update(access).digest();
const session = { viewer_id: sub, token_id: null, read_only: false, organization_id: null, scopes: null };
const accessToken = { ...session, token_id: "t1" };

function authenticator(audience: "API" | "MCP" | undefined, rows: unknown[], isOf: unknown[] | Error = []) {
  const { pool, queries } = scriptedDatabase([
    [/is_access_token_of/, isOf],
    [/authenticate_/, rows],
  ]);
  return { authenticate: createAuthenticator({ pool, keys, ...(audience && { audience }) }), queries };
}
afterEach(() => void jest.restoreAllMocks());

const refusal = (promise: Promise<unknown>) => promise.catch((error) => [error.code, error.message]);

test("tokens of agents are looked up as such, and their claims say so", async () => {
  const { authenticate, queries } = authenticator("MCP", [accessToken]);
  const { claims, facts } = await authenticate(`Bearer ${access}`);
  expect(claims).toEqual({ userId: sub, readOnly: false, tokenId: "t1", isAgent: true });
  expect(facts).toEqual({ userId: sub, sessionId: null, tokenSha256: sha256 });
  expect(await authenticate.again(facts!)).toEqual(claims);
  const text = "select * from app_private.authenticate_access_token($1, 'MCP')";
  expect(queries).toEqual([
    [text, sha256],
    [text, sha256],
  ]);
});

test("a login token is not for agents, which needs no look-up", async () => {
  const { authenticate, queries } = authenticator("MCP", [session]);
  expect(await refusal(authenticate(`Bearer ${login}`))).toEqual([
    "UNAUTHENTICATED",
    "Agents require an access token for MCP: createAccessToken with audience: MCP.",
  ]);
  expect(queries).toEqual([]);
});

test.each([
  ["MCP", "API", "Agents require an access token for MCP: createAccessToken with audience: MCP."],
  ["API", "MCP", "This access token is for agents and only accepted at /mcp; create one with audience: API."],
  [
    undefined,
    "MCP",
    "This access token is for agents and only accepted at /mcp; create one with audience: API.",
  ],
] as const)("a token at %s that is for %s is refused with the reason", async (audience, other, message) => {
  const { authenticate, queries } = authenticator(audience, [], [{ is_of: true }]);
  expect(await refusal(authenticate(`Bearer ${access}`))).toEqual(["UNAUTHENTICATED", message]);
  expect(queries[1]).toEqual(["select app_private.is_access_token_of($1, $2) as is_of", sha256, other]);
});

test.each<[string, unknown[]]>([
  ["no", [{ is_of: false }]],
  ["nothing", []],
])("a token that is for no audience, of which the database says %s, is unknown", async (_, isOf) => {
  const { authenticate } = authenticator("API", [], isOf);
  expect(await refusal(authenticate(`Bearer ${access}`))).toEqual([
    "UNAUTHENTICATED",
    "The token is unknown, expired or revoked; sign in again.",
  ]);
});

test("whether a token is for another audience may be unknown as well", async () => {
  const { authenticate } = authenticator("API", [], new Error("Connection terminated unexpectedly"));
  expect(((await refusal(authenticate(`Bearer ${access}`))) as string[])[0]).toBe("UNAVAILABLE");
});

test("a session has one audience, and is not asked for another", async () => {
  const { authenticate, queries } = authenticator("API", [], [{ is_of: true }]);
  expect(await refusal(authenticate(`Bearer ${login}`))).toEqual([
    "UNAUTHENTICATED",
    "The token is unknown, expired or revoked; sign in again.",
  ]);
  expect(queries).toHaveLength(1);
});

test("of a connection, the token is known after a look-up, and read again if the header changes", async () => {
  const { authenticate } = authenticator("API", [session]);
  // Within one minute of the clock.
  jest.spyOn(Date, "now").mockReturnValue(now * 1_000);
  const connection = {};
  expect(authenticate.known(undefined, undefined, connection)).toEqual({
    claims: { userId: null, readOnly: false },
  });
  expect(authenticate.known(`Bearer ${login}`, undefined, connection)).toBeUndefined();
  await authenticate(`Bearer ${login}`);
  const known = authenticate.known(`Bearer ${login}`, undefined, connection);
  expect(known).toMatchObject({
    claims: { userId: sub, sessionId: sid },
    facts: { userId: sub, sessionId: sid, tokenSha256: null },
    check: expect.anything(),
  });
  expect(authenticate.known(`Bearer ${otherLogin}`, undefined, connection)).toBeUndefined();
  expect(authenticate.known(`Bearer ${login}`, undefined, connection)?.claims).toEqual(known!.claims);
  expect(authenticate.known(`Bearer ${login}`, undefined, {})?.claims).toEqual(known!.claims);
  expect(() => authenticate.known("Basic x", undefined, connection)).toThrow(
    "The Authorization header must have the form: Bearer <token>.",
  );
});

test("a token that a look-up does not find is known no longer", async () => {
  jest.spyOn(Date, "now").mockReturnValue(now * 1_000);
  const rows: unknown[] = [session];
  const { authenticate } = authenticator("API", rows);
  await authenticate(`Bearer ${login}`);
  expect(authenticate.known(`Bearer ${login}`, undefined, {})).toBeDefined();
  rows.length = 0;
  expect(await refusal(authenticate(`Bearer ${login}`))).toContain("UNAUTHENTICATED");
  expect(authenticate.known(`Bearer ${login}`, undefined, {})).toBeUndefined();
});

test("the bearer of a token is looked up each time, with its expiry; nobody bears none", async () => {
  const { authenticate, queries } = authenticator("API", [session]);
  expect(await authenticate.bearer(undefined, undefined)).toBeUndefined();
  for (let n = 0; n < 2; n += 1)
    expect(await authenticate.bearer(`Bearer ${login}`, "192.0.2.1")).toMatchObject({
      claims: { userId: sub, sessionId: sid },
      facts: { userId: sub, sessionId: sid },
      expiresAt: now + 3_600,
    });
  expect(queries.map(([, ...values]) => values)).toEqual([
    [sub, 3, sid, true, "192.0.2.1", now + 3_600],
    [sub, 3, sid, true, "192.0.2.1", now + 3_600],
  ]);
});

test("a look-up waits for its turn, and a visitor needs none", async () => {
  const { authenticate } = authenticator("API", [session]);
  const stranger = partyOf(null, "192.0.2.1");
  const held = [1, 2, 3, 4].map(() => authentications.tryAcquire(stranger)!);
  let isFound = false;
  const found = authenticate(`Bearer ${login}`, "192.0.2.1").then(() => (isFound = true));
  expect(authentications.numbers).toEqual({ held: 4, waiting: 1 });
  await authenticate(undefined, "192.0.2.1");
  expect(isFound).toBe(false);
  for (const release of held) release();
  expect(await found).toBe(true);
  expect(authentications.numbers).toEqual({ held: 0, waiting: 0 });
});
