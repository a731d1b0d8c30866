import { expect, test } from "@jest/globals";
import { anonymous, pgSettings, signedInSettings } from "../../src/database/claims.ts";

const facts = { requestId: "r-1", ip: "192.0.2.1", channel: "API" };
const known = {
  role: "plat_user",
  "plat.request_id": "r-1",
  "plat.ip": "192.0.2.1",
  "plat.channel": "API",
  "plat.access": "",
};

test("without a token, the role is plat_anonymous", () => {
  expect(pgSettings(anonymous, facts)).toEqual({
    ...known,
    role: "plat_anonymous",
    statement_timeout: "8s",
  });
});

test("a login token acts as its user, without restriction", () => {
  const settings = pgSettings({ userId: "u", readOnly: false }, facts);
  expect(settings).toEqual({ ...known, "plat.user_id": "u" });
  expect(Object.keys(settings)).toHaveLength(6);
});

test("a session is passed to the database, an unknown address is not", () => {
  const { ip: _, ...unknown } = facts;
  const { "plat.ip": __, ...rest } = known;
  const settings = pgSettings({ userId: "u", sessionId: "s", readOnly: false }, unknown);
  expect(Object.entries(settings).toSorted()).toEqual(
    Object.entries({ ...rest, "plat.user_id": "u", "plat.session_id": "s" }).toSorted(),
  );
  expect(Object.keys(signedInSettings(settings, "v")).toSorted()).toEqual(
    ["plat.access", "plat.channel", "plat.request_id", "plat.user_id", "role"].toSorted(),
  );
});

test("every restriction of an access token is passed to the database", () => {
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

test("signing in is not limited by the restrictions of the token of the request", () => {
  const claims = { userId: "u", tokenId: "t", readOnly: true, organizationId: "o", scopes: ["lead.read"] };
  expect(signedInSettings(pgSettings(claims, facts), "v")).toEqual({ ...known, "plat.user_id": "v" });
});

test("an empty list of scopes is refused rather than read as no restriction", () => {
  expect(() => pgSettings({ userId: "u", readOnly: false, scopes: [] }, facts)).toThrow("no scope");
});
