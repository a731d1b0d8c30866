import { createHmac, generateKeyPairSync } from "node:crypto";
import { expect, jest, test } from "@jest/globals";
import jwt from "jsonwebtoken";
import { createLoginTokens, type LoginTokenClaims } from "../../src/auth/loginToken.ts";

const now = Math.floor(Date.now() / 1000);
const claims: LoginTokenClaims = {
  sub: "0199f3a0-0000-7000-8000-000000000001",
  epoch: 3,
  iat: now,
  exp: now + 30 * 86_400,
};
const current = { kid: "2026a", secret: "a".repeat(40) };
const previous = { kid: "2025b", secret: "b".repeat(40) };
const tokens = createLoginTokens([current, previous]);
const options = { issuer: "plat", audience: "plat", keyid: current.kid } as const;

/** The code of the refusal. */
function verdict(token: string): unknown {
  try {
    tokens.verify(token);
    return "accepted";
  } catch (error) {
    return (error as { code?: string }).code;
  }
}
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const parts = (token: string) => token.split(".") as [string, string, string];

test("a signed token verifies to the same claims", () => {
  expect(tokens.verify(tokens.sign(claims))).toEqual({ ...claims, jti: expect.any(String) });
});

test("a token names its session, by a UUID", () => {
  const sid = "0199f3a0-0000-7000-8000-000000000002";
  expect(tokens.verify(tokens.sign({ ...claims, sid }))).toMatchObject({ sid });
  for (const wrong of ["x", 7, [sid]])
    expect(
      verdict(jwt.sign({ ...claims, sid: wrong }, current.secret, { ...options, algorithm: "HS256" })),
    ).toBe("UNAUTHENTICATED");
});

test("a token from before sessions had ids is valid; the first epoch is 0", () => {
  const former = jwt.sign({ ...claims, epoch: 0 }, current.secret, { ...options, algorithm: "HS256" });
  expect(Object.entries(tokens.verify(former))).toEqual(Object.entries({ ...claims, epoch: 0 }));
});

test("a payload that is a string is refused; reasons are only returned for expired tokens", () => {
  const text = jwt.sign("text", current.secret, { keyid: current.kid, algorithm: "HS256" });
  for (const token of [text, "x"])
    expect(() => tokens.verify(token)).toThrow("The token is unknown; sign in again.");
});

test("a token that was verified before is refused from the second in which it expires", () => {
  const token = tokens.sign({ ...claims, exp: now + 60 });
  expect(verdict(token)).toBe("accepted");
  jest.useFakeTimers({ now: (now + 59) * 1000, doNotFake: ["nextTick"] });
  try {
    expect(verdict(token)).toBe("accepted");
    jest.setSystemTime((now + 60) * 1000);
    expect(() => tokens.verify(token)).toThrow("The token has expired; sign in again.");
    expect(() => tokens.verify(token)).toThrow("The token has expired; sign in again.");
  } finally {
    jest.useRealTimers();
  }
});

test("a verified token does not validate another one", () => {
  const token = tokens.sign(claims);
  expect(verdict(token)).toBe("accepted");
  const [head, payload, signature] = parts(token);
  const changed = encode({ ...jwt.decode(token, { json: true }), epoch: 4 });
  expect(verdict([head, changed, signature].join("."))).toBe("UNAUTHENTICATED");
  expect(verdict([head, payload, signature.replace(/^./, (c) => (c === "A" ? "B" : "A"))].join("."))).toBe(
    "UNAUTHENTICATED",
  );
});

test("two tokens of the same second differ", () => {
  expect(tokens.sign(claims)).not.toBe(tokens.sign(claims));
});

test("the first key signs, an older one still verifies, a retired one does not", () => {
  const older = createLoginTokens([previous]).sign(claims);
  expect(jwt.decode(tokens.sign(claims), { complete: true })?.header.kid).toBe("2026a");
  expect(tokens.verify(older)).toMatchObject(claims);
  expect(() => createLoginTokens([current]).verify(older)).toThrow(
    expect.objectContaining({ code: "UNAUTHENTICATED" }),
  );
});

test("a key with the same name and another secret verifies no former token", () => {
  const before = createLoginTokens([{ ...current, secret: "c".repeat(40) }]).sign(claims);
  expect(verdict(before)).toBe("UNAUTHENTICATED");
});

test("at least one key is needed", () => {
  expect(() => createLoginTokens([])).toThrow("at least one key");
});

test.each(["none", "None", "NONE", "nOnE"])("algorithm %s is refused", (alg) => {
  const payload = encode({ ...claims, iss: "plat", aud: "plat" });
  expect(verdict(`${encode({ alg, typ: "JWT", kid: current.kid })}.${payload}.`)).toBe("UNAUTHENTICATED");
  expect(
    verdict(`${encode({ alg, typ: "JWT", kid: current.kid })}.${payload}.${parts(tokens.sign(claims))[2]}`),
  ).toBe("UNAUTHENTICATED");
});

test.each(["HS384", "HS512"] as const)("algorithm %s with the right secret is refused", (algorithm) => {
  expect(verdict(jwt.sign({ ...claims }, current.secret, { ...options, algorithm }))).toBe("UNAUTHENTICATED");
});

test("RS256 with a key pair of the client is refused, also with the key in the header", () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  expect(verdict(jwt.sign({ ...claims }, privateKey, { ...options, algorithm: "RS256" }))).toBe(
    "UNAUTHENTICATED",
  );
  const header = { alg: "RS256", kid: current.kid, jwk: publicKey.export({ format: "jwk" }) };
  expect(verdict(jwt.sign({ ...claims }, privateKey, { ...options, algorithm: "RS256", header }))).toBe(
    "UNAUTHENTICATED",
  );
});

test("a header that says RS256 over an HMAC signature is refused", () => {
  const [, payload] = parts(tokens.sign(claims));
  const signed = `${encode({ alg: "RS256", typ: "JWT", kid: current.kid })}.${payload}`;
  expect(
    verdict(`${signed}.${createHmac("sha256", current.secret).update(signed).digest("base64url")}`),
  ).toBe("UNAUTHENTICATED");
});

test("a tampered payload, header or signature is refused", () => {
  const [header, payload, signature] = parts(tokens.sign(claims));
  const other = encode({ ...claims, sub: claims.sub.replace(/1$/, "2"), iss: "plat", aud: "plat" });
  expect(verdict(`${header}.${other}.${signature}`)).toBe("UNAUTHENTICATED");
  expect(verdict(`${encode({ alg: "HS256", typ: "JWT", kid: previous.kid })}.${payload}.${signature}`)).toBe(
    "UNAUTHENTICATED",
  );
  expect(verdict(`${header}.${payload}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`)).toBe(
    "UNAUTHENTICATED",
  );
  expect(verdict(`${header}.${payload}.`)).toBe("UNAUTHENTICATED");
});

test("an expired token is refused with the reason", () => {
  const token = tokens.sign({ ...claims, iat: now - 100, exp: now - 1 });
  expect(verdict(token)).toBe("UNAUTHENTICATED");
  expect(() => tokens.verify(token)).toThrow("expired");
});

test("an expired token with a wrong signature is refused without that reason", () => {
  const forged = createLoginTokens([{ ...current, secret: "d".repeat(40) }]).sign({
    ...claims,
    exp: now - 1,
  });
  expect(() => tokens.verify(forged)).toThrow("unknown");
});

test.each([
  ["no key id", { keyid: "" }],
  ["an unknown key id", { keyid: "2024c" }],
  ["a key id that is a member of every object", { keyid: "constructor" }],
  ["another issuer", { issuer: "other" }],
  ["another audience", { audience: "other" }],
])("%s is refused", (_name, change) => {
  expect(
    verdict(jwt.sign({ ...claims }, current.secret, { ...options, algorithm: "HS256", ...change })),
  ).toBe("UNAUTHENTICATED");
});

test.each([
  { sub: "ada" },
  { sub: undefined },
  { epoch: undefined },
  { epoch: "3" },
  { epoch: 1.5 },
  { epoch: -1 },
  { exp: undefined },
  { jti: "session" },
  { jti: `${claims.sub}x` },
  { sub: `x${claims.sub}` },
  { sub: `${claims.sub}x` },
])("claims with %p are refused, even when signed", (change) => {
  const payload = JSON.parse(JSON.stringify({ ...claims, ...change }));
  expect(verdict(jwt.sign(payload, current.secret, { ...options, algorithm: "HS256" }))).toBe(
    "UNAUTHENTICATED",
  );
});

test.each(["", ".", "..", "a.b.c", "e30.e30.e30", "\u0000", `${encode({ kid: current.kid })}.!.x`])(
  "%p is refused",
  (token) => expect(verdict(token)).toBe("UNAUTHENTICATED"),
);
