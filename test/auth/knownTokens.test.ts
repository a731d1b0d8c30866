/** Cache of recently looked-up tokens: its duration, its contents, and its size. */
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { KnownTokens, minuteOf } from "../../src/auth/knownTokens.ts";
import type { Access } from "../../src/database/tokenCheck.ts";

const minute = 29_000_000;
const at = (seconds: number) => minute * 60_000 + seconds * 1000;
const claims = { userId: "u1", readOnly: false };
const facts = { userId: "u1", sessionId: "s1", tokenSha256: null };
const token = { claims, facts, expiresAt: undefined };
const access = (text: string): Access => ({
  settings: { "plat.access": text },
  parties: ["u1"],
  version: "1",
});

beforeEach(() => void jest.useFakeTimers({ now: at(10) }));
afterEach(() => void jest.useRealTimers());

test("a token is known within the minute of its look-up", () => {
  const known = new KnownTokens();
  expect(known.find("a")).toBeUndefined();
  known.keep("a", token);
  expect(minuteOf(at(10))).toBe(minute);
  expect(known.find("a")).toEqual({ ...token, minute, access: undefined });
  expect(known.find("a", at(59.999))).toBeDefined();
  expect(known.find("a", at(60))).toBeUndefined();
  expect(known.find("a", at(-1))).toBeUndefined();
  expect(known.find("b")).toBeUndefined();
  known.forget("a");
  known.forget("a");
  expect(known.find("a")).toBeUndefined();
});

test("a token that has expired is not known, from its second on", () => {
  const known = new KnownTokens();
  known.keep("a", { ...token, expiresAt: at(20) / 1000 });
  expect(known.find("a", at(19.999))).toBeDefined();
  expect(known.find("a", at(20))).toBeUndefined();
  expect(known.find("a", at(21))).toBeUndefined();
});

test("a look-up that finds the same within the minute leaves what is on its way", () => {
  const known = new KnownTokens();
  known.keep("a", token);
  const before = known.find("a")!;
  known.keep("a", { ...token });
  expect(known.find("a")).toBe(before);
  known.keepAccess("a", before, access("x"));
  expect(known.find("a")!.access).toEqual(access("x"));
});

test("a look-up that finds something else keeps the access, which has versions of its own", () => {
  const known = new KnownTokens();
  known.keep("a", token);
  const before = known.find("a")!;
  known.keepAccess("a", before, access("x"));
  known.keep("a", { ...token, claims: { ...claims, readOnly: true } });
  const after = known.find("a")!;
  expect(after).not.toBe(before);
  expect(after).toMatchObject({ claims: { readOnly: true }, access: access("x") });
  // What was asked for with the token as it was is of no use.
  known.keepAccess("a", before, access("y"));
  expect(after.access).toEqual(access("x"));
  jest.setSystemTime(at(70));
  known.keep("a", after);
  expect(known.find("a")).toMatchObject({ minute: minute + 1, access: access("x") });
});

test("that there is no access to hand on is forgotten with the next look-up", () => {
  const known = new KnownTokens();
  known.keep("a", token);
  known.keepAccess("a", known.find("a")!, null);
  expect(known.find("a")!.access).toBeNull();
  jest.setSystemTime(at(70));
  known.keep("a", token);
  expect(known.find("a")!.access).toBeUndefined();
});

test("10,000 tokens are known, those used last", () => {
  const known = new KnownTokens();
  for (let n = 0; n < 10_000; n++) known.keep(`k${n}`, token);
  expect(known.find("k0")).toBeDefined();
  known.keep("one more", token);
  expect(known.find("k1")).toBeUndefined();
  for (const key of ["k0", "k2", "k9999", "one more"]) expect(known.find(key)).toBeDefined();
});

test("access of 20,000,000 characters is kept, of the tokens used last", () => {
  const known = new KnownTokens();
  const keepLarge = (key: string, characters: number) => {
    known.keep(key, token);
    known.keepAccess(key, known.find(key)!, {
      settings: { a: "x".repeat(characters - 1), b: "y" },
      parties: [],
      version: "1",
    });
  };
  keepLarge("a", 10_000_000);
  keepLarge("b", 10_000_000);
  expect([known.find("a"), known.find("b")].every(Boolean)).toBe(true);
  // Less in place of what it had, and nothing in place of that.
  keepLarge("a", 1000);
  known.keepAccess("a", known.find("a")!, null);
  keepLarge("c", 10_000_000);
  expect(["a", "b", "c"].filter((key) => known.find(key))).toEqual(["a", "b", "c"]);
  // What is forgotten counts no more.
  known.forget("c");
  keepLarge("d", 10_000_000);
  expect(["a", "b", "d"].filter((key) => known.find(key))).toEqual(["a", "b", "d"]);
  // A look-up that finds something else counts what it keeps once.
  known.keep("d", { ...token, expiresAt: at(60) / 1000 });
  expect(["a", "b", "d"].filter((key) => known.find(key))).toEqual(["a", "b", "d"]);
  keepLarge("e", 1);
  expect(["a", "b", "d", "e"].filter((key) => known.find(key))).toEqual(["d", "e"]);
});
