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

test("a token is cached for a minute after its look-up", () => {
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

test("an expired token is not in the cache, from its last second on", () => {
  const known = new KnownTokens();
  known.keep("a", { ...token, expiresAt: at(20) / 1000 });
  expect(known.find("a", at(19.999))).toBeDefined();
  expect(known.find("a", at(20))).toBeUndefined();
  expect(known.find("a", at(21))).toBeUndefined();
});

test("a look-up with the same result within the minute does not affect requests in progress", () => {
  const known = new KnownTokens();
  known.keep("a", token);
  const before = known.find("a")!;
  known.keep("a", { ...token });
  expect(known.find("a")).toBe(before);
  known.keepAccess("a", before, access("x"));
  expect(known.find("a")!.access).toEqual(access("x"));
});

test("a look-up with another result keeps the access, which has versions of its own", () => {
  const known = new KnownTokens();
  known.keep("a", token);
  const before = known.find("a")!;
  known.keepAccess("a", before, access("x"));
  known.keep("a", { ...token, claims: { ...claims, readOnly: true } });
  const after = known.find("a")!;
  expect(after).not.toBe(before);
  expect(after).toMatchObject({ claims: { readOnly: true }, access: access("x") });
  // Access that was read for the former version of the token is discarded.
  known.keepAccess("a", before, access("y"));
  expect(after.access).toEqual(access("x"));
  jest.setSystemTime(at(70));
  known.keep("a", after);
  expect(known.find("a")).toMatchObject({ minute: minute + 1, access: access("x") });
});

test("that there is no access to pass is forgotten with the next look-up", () => {
  const known = new KnownTokens();
  known.keep("a", token);
  known.keepAccess("a", known.find("a")!, null);
  expect(known.find("a")!.access).toBeNull();
  jest.setSystemTime(at(70));
  known.keep("a", token);
  expect(known.find("a")!.access).toBeUndefined();
});

test("the 10,000 most recently used tokens are cached", () => {
  const known = new KnownTokens();
  for (let n = 0; n < 10_000; n++) known.keep(`k${n}`, token);
  expect(known.find("k0")).toBeDefined();
  known.keep("one more", token);
  expect(known.find("k1")).toBeUndefined();
  for (const key of ["k0", "k2", "k9999", "one more"]) expect(known.find(key)).toBeDefined();
});

test("up to 20,000,000 characters of access are cached, of the most recently used tokens", () => {
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
  // Replaced by a smaller one, and then by none.
  keepLarge("a", 1000);
  known.keepAccess("a", known.find("a")!, null);
  keepLarge("c", 10_000_000);
  expect(["a", "b", "c"].filter((key) => known.find(key))).toEqual(["a", "b", "c"]);
  // Removed tokens no longer count.
  known.forget("c");
  keepLarge("d", 10_000_000);
  expect(["a", "b", "d"].filter((key) => known.find(key))).toEqual(["a", "b", "d"]);
  // After a look-up with another result, the kept access counts once.
  known.keep("d", { ...token, expiresAt: at(60) / 1000 });
  expect(["a", "b", "d"].filter((key) => known.find(key))).toEqual(["a", "b", "d"]);
  keepLarge("e", 1);
  expect(["a", "b", "d", "e"].filter((key) => known.find(key))).toEqual(["d", "e"]);
});

test("the access of a token that was looked up again meanwhile counts for nothing", () => {
  const known = new KnownTokens();
  known.keep("a", token);
  const before = known.find("a")!;
  known.keep("a", { ...token, claims: { ...claims, readOnly: true } });
  known.keepAccess("a", before, access("x".repeat(20_000_001)));
  expect(known.find("a")).toMatchObject({ claims: { readOnly: true }, access: undefined });
  expect(before.access).toBeUndefined();
});
