/** Refresh tokens: their format, and the report of a reused one in a separate transaction. */
import { createHash } from "node:crypto";
import { expect, test } from "@jest/globals";
import { proveRefreshToken } from "../../src/operations/inputs/refreshTokens.ts";
import { scriptedDatabase } from "../http/scriptedDatabase.ts";

const token = `plat_refresh_${"aB3".repeat(14)}Z`;

test("a refresh token is identified by its hash, which is sent to the database first", async () => {
  const { pool, queries } = scriptedDatabase([]);
  const sha256 = createHash("sha256").update(token).digest();
  expect(await proveRefreshToken(` ${token}\n`, { pool })).toBe(sha256.toString("hex"));
  expect(queries).toEqual([["select app_private.begin_refresh($1)", sha256]]);
});

test.each(["", token.slice(1), token.slice(0, -1), `${token}a`, `x${token}`, `${token.slice(0, -1)}-`])(
  "%j is not a refresh token, and no query is sent",
  async (wrong) => {
    const { pool, queries } = scriptedDatabase([]);
    await expect(proveRefreshToken(wrong, { pool })).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: "Not a valid refresh token; sign in again.",
    });
    expect(queries).toEqual([]);
  },
);

test("the database's refusal is returned", async () => {
  const failure = new Error("The session has ended.");
  const { pool } = scriptedDatabase([[/begin_refresh/, failure]]);
  await expect(proveRefreshToken(token, { pool })).rejects.toBe(failure);
});
