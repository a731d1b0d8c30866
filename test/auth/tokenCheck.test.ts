/** The token check that is sent with statements: its query, and when it causes a single new lookup. */
import { expect, test } from "@jest/globals";
import { checkOf, TokenCheck, withCheck } from "../../src/database/tokenCheck.ts";

const facts = { userId: "u1", sessionId: "s1", tokenSha256: Buffer.from("t") };
const access = { settings: { "plat.access": "x" }, parties: ["u1", "o1"], version: "7" };
const claims = { userId: "u1", readOnly: true };

function checked(given: typeof access | undefined = access) {
  const lookUps: boolean[] = [];
  const renewed: unknown[] = [];
  const check = new TokenCheck(facts, given, async (refused) => {
    lookUps.push(refused);
    return claims;
  });
  check.onRenewed = (found) => renewed.push(found);
  return { check, lookUps, renewed };
}

/** The expression with its parameters replaced by their values. */
function carriedBy(check: TokenCheck) {
  const values: unknown[] = [];
  const expression = check.carried!.expression((value) => `$${values.push(value)}`);
  return { expression, values, settings: check.carried!.settings };
}

test("statements contain the results of looking up the token and its access", () => {
  expect(carriedBy(checked().check)).toEqual({
    expression: "app_private.stop_when_outdated($1, $2, $3, $4, $5)",
    values: ["u1", "s1", facts.tokenSha256, access.parties, "7"],
    settings: access.settings,
  });
  const without = new TokenCheck(facts, undefined, async () => claims);
  expect(carriedBy(without)).toMatchObject({
    values: ["u1", "s1", facts.tokenSha256, null, null],
    settings: {},
  });
});

test("a refused token is looked up once per request", async () => {
  const { check, lookUps, renewed } = checked();
  await Promise.all([check.renew(), check.renew()]);
  await check.renew();
  await check.complete();
  expect(lookUps).toEqual([true]);
  expect(renewed).toEqual([claims]);
  expect(check.carried).toBeUndefined();
});

test("every operation checks its token by a statement or a look-up", async () => {
  const carrying = checked();
  carrying.check.passed();
  await carrying.check.complete();
  expect(carrying.lookUps).toEqual([]);
  expect(carrying.check.carried).toBeDefined();

  const unasked = checked();
  await unasked.check.complete();
  await unasked.check.complete();
  expect(unasked.lookUps).toEqual([false]);
  expect(unasked.check.carried).toBeUndefined();

  // A check that is refused after another has succeeded is waited for.
  let end!: (found: typeof claims) => void;
  const slow = new TokenCheck(facts, access, () => new Promise((resolve) => (end = resolve)));
  slow.passed();
  const renewal = slow.renew();
  let isComplete = false;
  const completion = slow.complete().then(() => (isComplete = true));
  await Promise.resolve();
  expect(isComplete).toBe(false);
  end(claims);
  await Promise.all([renewal, completion]);
});

test("a failed look-up fails for all that wait for it", async () => {
  const failure = new Error("The token has ended.");
  const check = new TokenCheck(facts, access, () => Promise.reject(failure));
  await expect(check.renew()).rejects.toBe(failure);
  await expect(check.complete()).rejects.toBe(failure);
});

test("settings contain the check, and are equal without one", () => {
  const { check } = checked();
  const settings = { role: "plat_user" };
  expect(withCheck(settings, undefined)).toBe(settings);
  expect(checkOf(settings)).toBeUndefined();
  const known = withCheck(settings, check);
  expect(checkOf(known)).toBe(check);
  expect(Object.keys(known)).toEqual(["role"]);
  expect([checkOf(null), checkOf(undefined)]).toEqual([undefined, undefined]);
});
