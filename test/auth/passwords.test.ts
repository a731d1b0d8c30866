/** Verifying passwords: refusals before hashing, queries of the database, and counting of failed attempts. */
import { hash, verify } from "@node-rs/argon2";
import { expect, test } from "@jest/globals";
import {
  argon2Parameters,
  hashPassword,
  provePassword,
  type TransformContext,
} from "../../src/operations/inputs/passwords.ts";
import { passwordHashes, visitorHashes } from "../../src/admission/semaphores.ts";
import { scriptedDatabase } from "../http/scriptedDatabase.ts";

const good = "correct horse battery staple";
const viewer = { userId: "u1", readOnly: false };
const nobody = { userId: null, readOnly: false };

function context(answers: Parameters<typeof scriptedDatabase>[0] = [], more: Partial<TransformContext> = {}) {
  const { pool, queries } = scriptedDatabase(answers);
  const given: TransformContext = {
    pool,
    claims: nobody,
    ip: "203.0.113.7",
    member: "password",
    operation: "login",
    input: { username: "Ada" },
    ...more,
  };
  return { given, queries };
}
const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => "accepted",
    (error) => [error.code, error.extensions?.field, error.message],
  );

test.each([
  [
    "createAccount",
    [
      ["select app_private.begin_sign_up($1)", "203.0.113.7"],
      ["select app_private.count_sign_up($1)", "203.0.113.7"],
    ],
  ],
  ["resetPassword", [["select app_private.begin_reset($1)", "7"]]],
  ["updatePassword", []],
])("%s hashes a password with argon2id, after a query of the database", async (operation, statements) => {
  const { given, queries } = context([], { operation, input: { token: 7 } });
  const hashed = await hashPassword(good, given);
  expect(hashed).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect(await verify(hashed, good)).toBe(true);
  expect(queries).toEqual(statements);
});

test("a sign-up that the database refuses is neither hashed nor counted", async () => {
  const failure = new Error("Too many.");
  const signUp = context([[/begin_sign_up/, failure]], { operation: "createAccount" });
  await expect(hashPassword(good, signUp.given)).rejects.toBe(failure);
  expect(signUp.queries).toHaveLength(1);
  const reset = context([[/begin_reset/, failure]], { operation: "resetPassword" });
  await expect(hashPassword(good, reset.given)).rejects.toBe(failure);
});

test("an unknown address is null", async () => {
  const { given, queries } = context([], { operation: "createAccount", ip: undefined });
  await hashPassword(good, given);
  expect(queries.map(([, ip]) => ip)).toEqual([null, null]);
});

test("ten characters are accepted, nine are refused; a character of several bytes counts once", async () => {
  const { given, queries } = context([], { operation: "updatePassword", member: "newPassword" });
  expect(await hashPassword("0123456789", given)).toMatch(/^\$argon2id/);
  const short = ["BAD_USER_INPUT", "newPassword", "A password must have at least 10 characters."];
  expect(await refusal(hashPassword("012345678", given))).toEqual(short);
  expect(await refusal(hashPassword("😀".repeat(9), given))).toEqual(short);
  expect(await hashPassword("😀".repeat(10), given)).toMatch(/^\$argon2id/);
  const account = context([], { operation: "createAccount" });
  await refusal(hashPassword("012345678", account.given));
  expect([...queries, ...account.queries]).toEqual([]);
});

test("a thousand bytes are accepted, one more is refused", async () => {
  const { given } = context([], { operation: "updatePassword" });
  expect(await hashPassword("a".repeat(1000), given)).toMatch(/^\$argon2id/);
  const long = ["BAD_USER_INPUT", "password", "A password can have at most 1,000 bytes."];
  expect(await refusal(hashPassword("a".repeat(1001), given))).toEqual(long);
  // 500 characters of two bytes, and one more.
  expect(await refusal(hashPassword("ä".repeat(501), given))).toEqual(long);
  expect(await refusal(provePassword("a".repeat(1001), context().given))).toEqual(long);
});

test("two Unicode normalizations are one password", async () => {
  const composed = "Zürich-Café".normalize("NFC");
  const decomposed = composed.normalize("NFD");
  const { given } = context([], { operation: "updatePassword" });
  const stored = await hashPassword(decomposed, given);
  expect(await verify(stored, composed)).toBe(true);
  const login = context([[/begin_login/, [{ hash: stored }]]]);
  expect(await provePassword(decomposed, login.given)).toBe(stored);
});

test("a sign-in counts its attempt after the password was checked, whether it is right or wrong", async () => {
  const stored = await hash(good, argon2Parameters);
  const { given, queries } = context([[/begin_login/, [{ hash: stored }]]]);
  expect(await provePassword(good, given)).toBe(stored);
  expect(await provePassword(`${good}!`, given)).toBe("");
  expect(queries).toEqual([
    ["select app_private.begin_login($1, $2) as hash", "Ada", "203.0.113.7"],
    ["select app_private.record_login($1, $2, $3)", "Ada", "203.0.113.7", true],
    ["select app_private.begin_login($1, $2) as hash", "Ada", "203.0.113.7"],
    ["select app_private.record_login($1, $2, $3)", "Ada", "203.0.113.7", false],
  ]);
});

test("a confirming password is that of the viewer, who must be signed in", async () => {
  const stored = await hash(good, argon2Parameters);
  const update = { operation: "updatePassword", claims: viewer, ip: undefined, input: {} };
  const { given, queries } = context([[/begin_confirmation/, [{ hash: stored }]]], update);
  expect(await provePassword(good, given)).toBe(stored);
  expect(queries).toEqual([
    ["select app_private.begin_confirmation($1, $2) as hash", "u1", null],
    ["select app_private.record_confirmation($1, $2, $3)", "u1", null, true],
  ]);
  const stranger = context([], { ...update, claims: nobody });
  expect(await refusal(provePassword(good, stranger.given))).toEqual([
    "UNAUTHENTICATED",
    undefined,
    'Sign in first: send the header "Authorization: Bearer <token>".',
  ]);
  expect(stranger.queries).toEqual([]);
});

test("a new password that is too short does not count as an attempt", async () => {
  const { given, queries } = context([], {
    operation: "updatePassword",
    claims: viewer,
    input: { newPassword: "short" },
  });
  expect(await refusal(provePassword(good, given))).toEqual([
    "BAD_USER_INPUT",
    "newPassword",
    "A password must have at least 10 characters.",
  ]);
  expect(queries).toEqual([]);
});

test("a sign-in that the database refuses does not count as an attempt", async () => {
  const failure = new Error("Locked.");
  const { given, queries } = context([[/begin_login/, failure]]);
  await expect(provePassword(good, given)).rejects.toBe(failure);
  expect(queries).toHaveLength(1);
});

test("twenty attempts of one network wait, and further ones are refused with a delay; other networks are not affected", async () => {
  const stored = await hash(good, argon2Parameters);
  const { given } = context([[/begin_login/, [{ hash: stored }]]]);
  const flood = await Promise.allSettled(Array.from({ length: 30 }, () => provePassword(good, given)));
  const refused = flood.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
  expect(refused).toHaveLength(30 - 22);
  expect(refused[0]!.reason).toMatchObject({
    code: "RATE_LIMITED",
    extensions: { retryAfterSeconds: 1 },
  });
});

test("visitors from any number of networks share one hash at a time, so that sign-ins do not wait for them", async () => {
  const stored = await hash(good, argon2Parameters);
  const signIn = context([[/begin_login/, [{ hash: stored }]]], { ip: "198.51.100.1" });
  const strangers = Array.from({ length: 8 }, (_, n) => {
    const operation = n % 2 === 0 ? "createAccount" : "resetPassword";
    return hashPassword(good, context([], { operation, ip: `203.0.113.${n}` }).given);
  });
  const most = { ofStrangers: 0, waiting: 0, inAll: 0 };
  const state = { isOver: false };
  const all = Promise.all([...strangers, provePassword(good, signIn.given)]).finally(
    () => (state.isOver = true),
  );
  while (!state.isOver) {
    most.ofStrangers = Math.max(most.ofStrangers, visitorHashes.numbers.held);
    most.waiting = Math.max(most.waiting, passwordHashes.numbers.waiting);
    most.inAll = Math.max(most.inAll, passwordHashes.numbers.held);
    await new Promise(setImmediate);
  }
  await all;
  expect(most).toEqual({ ofStrangers: 1, waiting: 0, inAll: 2 });
});
