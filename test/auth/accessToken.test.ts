import { expect, test } from "@jest/globals";
import { crc32 } from "node:zlib";
import { accessTokenSha256, isAccessToken } from "../../src/auth/accessToken.ts";
import { createAuthenticator } from "../../src/auth/authenticate.ts";

/** Created by app_private.create_access_token; the token was never in use. */
const token = "plat_oZwgQtRhH5k7rWbnuj9NX8c22mMiQNaY2jjoCK";

test("a token with its checksum is valid", () => {
  expect(isAccessToken(token)).toBe(true);
});

test("any changed, swapped, missing or added character is detected", () => {
  for (let at = 5; at < token.length; at++) {
    const other = token[at] === "x" ? "y" : "x";
    expect(isAccessToken(token.slice(0, at) + other + token.slice(at + 1))).toBe(false);
    expect(isAccessToken(token.slice(0, at) + token.slice(at + 1))).toBe(false);
    expect(isAccessToken(`${token.slice(0, at)}x${token.slice(at)}`)).toBe(false);
    const swapped = token.slice(0, at) + (token[at + 1] ?? "") + token[at] + token.slice(at + 2);
    expect(isAccessToken(swapped)).toBe(swapped === token);
  }
});

test.each(["", "plat_", token.toUpperCase(), `${token}\n`, ` ${token}`, token.replace("plat_", "PLAT_")])(
  "%p is not an access token",
  (text) => expect(isAccessToken(text)).toBe(false),
);

test("only the SHA-256 is stored", () => {
  expect(accessTokenSha256("abc").toString("hex")).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
  expect(crc32("123456789").toString(16)).toBe("cbf43926");
});

test.each([
  ["Bearer plat_mistyped", "misspelled"],
  [`Bearer ${token}x`, "misspelled"],
  ["Bearer x.y.z", "unknown"],
  [`Bearer ${"x".repeat(5000)}`, "Not a token of this service"],
  ["Bearer ", "header"],
  ["Bearer", "header"],
  ["", "header"],
  ["Basic eDp5", "header"],
  ["Bearer a b", "header"],
])("Authorization: %p is refused without a query", async (header, sentence) => {
  // A pool that refuses all queries; no database responds.
  const pool = { query: () => Promise.reject(new Error("asked")) } as never;
  const authenticate = createAuthenticator({ pool, keys: [{ kid: "k", secret: "s".repeat(32) }] });
  await expect(authenticate(header)).rejects.toMatchObject({
    code: "UNAUTHENTICATED",
    message: expect.stringContaining(sentence),
  });
});

test("no header is an anonymous viewer", async () => {
  const pool = { query: () => Promise.reject(new Error("asked")) } as never;
  const authenticate = createAuthenticator({ pool, keys: [{ kid: "k", secret: "s".repeat(32) }] });
  expect(await authenticate(undefined)).toEqual({ claims: { userId: null, readOnly: false } });
});
