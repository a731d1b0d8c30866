import { expect, test } from "@jest/globals";
import { anonymous, pgSettings, signedInSettings } from "../../src/auth/claims.ts";
import { createGate, GateFull } from "../../src/auth/gate.ts";

const facts = { requestId: "r-1", ip: "192.0.2.1", channel: "API" };
const known = { role: "plat_user", "plat.request_id": "r-1", "plat.ip": "192.0.2.1", "plat.channel": "API" };

test("no token acts as plat_anonymous, as nobody", () => {
  expect(pgSettings(anonymous, facts)).toEqual({ ...known, role: "plat_anonymous" });
});

test("a login token acts as its user, without restriction", () => {
  expect(pgSettings({ userId: "u", readOnly: false }, facts)).toEqual({ ...known, "plat.user_id": "u" });
});

test("every restriction of an access token reaches the database", () => {
  const claims = {
    userId: "u",
    tokenId: "t",
    readOnly: true,
    organizationId: "o",
    scopes: ["lead.read", "unit.*"],
  };
  expect(pgSettings(claims, facts)).toEqual({
    ...known,
    "plat.user_id": "u",
    "plat.token_id": "t",
    "plat.organization_id": "o",
    "plat.scopes": "lead.read,unit.*",
    transaction_read_only: "on",
  });
});

test("who signs in is free of the restrictions of the token that the request came with", () => {
  const claims = { userId: "u", tokenId: "t", readOnly: true, organizationId: "o", scopes: ["lead.read"] };
  expect(signedInSettings(pgSettings(claims, facts), "v")).toEqual({ ...known, "plat.user_id": "v" });
});

test("a list of no scopes is refused rather than read as no restriction", () => {
  expect(() => pgSettings({ userId: "u", readOnly: false, scopes: [] }, facts)).toThrow("no scope");
});

test("a gate runs so many at once, in order, frees the place of one that failed, and refuses a full queue", async () => {
  const gate = createGate(2, 3);
  const order: number[] = [];
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  let running = 0;
  let most = 0;
  const job = (n: number) =>
    gate(async () => {
      most = Math.max(most, ++running);
      order.push(n);
      await held;
      running--;
      if (n === 1) throw new Error("failed");
    });
  const jobs = [1, 2, 3, 4, 5].map(job);
  await expect(job(6)).rejects.toThrow(GateFull);
  release();
  const results = await Promise.allSettled(jobs);
  expect(results.map(({ status }) => status)).toEqual(["rejected", ...Array(4).fill("fulfilled")]);
  expect(order).toEqual([1, 2, 3, 4, 5]);
  expect(most).toBe(2);
  await expect(gate(async () => "free")).resolves.toBe("free");
});
