/** Verifying codes of second factors: the account that is queried, valid codes, and counting of failed attempts. */
import { createHash } from "node:crypto";
import { hash } from "@node-rs/argon2";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import {
  argon2Parameters,
  provePassword,
  type TransformContext,
} from "../../src/operations/inputs/passwords.ts";
import { freshTotpSecret, proveSecondFactor } from "../../src/operations/inputs/secondFactor.ts";
import { newTotpSecret, totpCode, totpStep } from "../../src/auth/totp.ts";
import { createSeal, SealFault, secretOfSecondFactor } from "../../src/secrets/seal.ts";
import { scriptedDatabase } from "../http/scriptedDatabase.ts";

const seal = createSeal([{ kid: "k", secret: "s".repeat(40) }]);
const secret = newTotpSecret();
const factor = { user_id: "u1", sealed: seal.seal(secret, secretOfSecondFactor("u1")) };
const viewer = { userId: "u1", readOnly: false };
const nobody = { userId: null, readOnly: false };
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const password = "correct horse battery staple";

beforeEach(
  () => void jest.useFakeTimers({ now: 1_780_000_000_000, doNotFake: ["nextTick", "setImmediate"] }),
);
afterEach(() => void jest.useRealTimers());

async function verify(
  code: string,
  more: Partial<TransformContext> = {},
  { factors = [factor] as unknown[], given = password } = {},
) {
  const stored = await hash(password, argon2Parameters);
  const { pool, queries } = scriptedDatabase([
    [/begin_second_factor/, factors],
    [/begin_login|begin_confirmation/, [{ hash: stored }]],
  ]);
  const context: TransformContext = {
    pool,
    claims: viewer,
    member: "code",
    operation: "disableSecondFactor",
    input: {},
    ...more,
  };
  if (given && ("password" in context.input || "currentPassword" in context.input))
    await provePassword(given, { ...context, member: "password" });
  queries.length = 0;
  return { proof: await proveSecondFactor(seal)(code, context), queries };
}

const now = () => totpStep();
const step = () => `step:${now()}:${sha256(factor.sealed)}`;

test("a code of the authenticator app is verified by its time step and the secret used", async () => {
  const { proof, queries } = await verify(totpCode(secret, now()));
  expect(proof).toBe(step());
  expect(queries).toEqual([
    ["select * from app_private.begin_second_factor($1, $2)", "VIEWER", "u1"],
    ["select app_private.record_second_factor($1, $2, $3)", "VIEWER", "u1", proof],
  ]);
});

test("spaces and hyphens do not matter", async () => {
  const code = totpCode(secret, now());
  expect((await verify(` ${code.slice(0, 3)} ${code.slice(3, 4)}-${code.slice(4)} `)).proof).toBe(step());
});

test.each([
  ["0123-4567-89ab-cdef", "0123456789abcdef"],
  ["GHJK MNPQ RSTV WXYZ", "ghjkmnpqrstvwxyz"],
  ["ooOO-iIlL-0000-0000", "0000111100000000"],
])("the recovery code %s is identified by its hash, in any spelling", async (given, kept) => {
  expect((await verify(given)).proof).toBe(`code:${sha256(kept)}`);
});

test.each([
  "",
  "12345",
  "1234567",
  "12345a",
  "u123456789abcdef",
  "0123456789abcde",
  "0123456789abcdef0",
  "!0123456789abcdef",
])("%j is wrong, and counts as an attempt", async (wrong) => {
  const { proof, queries } = await verify(wrong);
  expect(proof).toBe("wrong");
  expect(queries.at(-1)).toEqual([
    "select app_private.record_second_factor($1, $2, $3)",
    "VIEWER",
    "u1",
    "wrong",
  ]);
});

test("a code of another time is wrong, and counts as an attempt", async () => {
  const { proof, queries } = await verify(totpCode(secret, now() + 1000));
  expect(proof).toBe("wrong");
  expect(queries).toHaveLength(2);
});

test("a wrong or unverified password reveals nothing about the second factor", async () => {
  for (const given of ["", "a wrong password"])
    for (const input of [{ password: "x", username: "ada" }, { currentPassword: "x" }]) {
      const operation = "password" in input ? "login" : "updatePassword";
      expect(await verify(totpCode(secret, now()), { operation, input }, { given })).toEqual({
        proof: "wrong",
        queries: [],
      });
    }
});

test("the right password checks the second factor of the account", async () => {
  const input = { username: "ada", password };
  const { proof, queries } = await verify(totpCode(secret, now()), {
    claims: nobody,
    operation: "login",
    input,
  });
  expect(proof).toBe(step());
  expect(queries.map(([, ...values]) => values)).toEqual([
    ["LOGIN", "ada"],
    ["LOGIN", "ada", proof],
  ]);
  const confirmed = await verify(totpCode(secret, now()), {
    operation: "updatePassword",
    input: { currentPassword: password },
  });
  expect(confirmed.queries[0]!.slice(1)).toEqual(["VIEWER", "u1"]);
});

test("a password reset is authenticated by the token of the mail, not by the new password", async () => {
  const { proof, queries } = await verify(
    totpCode(secret, now()),
    { claims: nobody, operation: "resetPassword", input: { token: 7, password: "new" } },
    { given: "" },
  );
  expect(proof).toBe(step());
  expect(queries[0]!.slice(1)).toEqual(["RESET", "7"]);
});

test("visitors are not checked, and no code is used without a second factor", async () => {
  expect(await verify(totpCode(secret, now()), { claims: nobody })).toEqual({ proof: "wrong", queries: [] });
  const { proof, queries } = await verify(totpCode(secret, now()), {}, { factors: [] });
  expect(proof).toBe("wrong");
  expect(queries).toHaveLength(1);
});

test("a new secret is sealed for the viewer; a visitor gets none", async () => {
  const fresh = (claims: typeof viewer | typeof nobody) =>
    freshTotpSecret(seal)(undefined, { context: { claims } } as never) as { secret: string; sealed: string };
  const made = fresh(viewer);
  expect(seal.open(made.sealed, secretOfSecondFactor("u1"))).toBe(made.secret);
  expect(made.secret).toMatch(/^[A-Z2-7]{32}$/);
  expect(() => seal.open(made.sealed, secretOfSecondFactor("u2"))).toThrow(SealFault);
  expect(fresh(viewer).secret).not.toBe(made.secret);
  expect(fresh(nobody)).toEqual({});
});
