import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { startApi, type Api } from "../harness/api.ts";

let server: Api;

beforeAll(async () => {
  server = await startApi();
  for (const name of ["ada", "bob", "eve"]) await signUp(name);
});

afterAll(() => server.stop());

const api = {
  async send(source: string, token?: string) {
    const who = token === undefined ? server.anonymous : server.person(token);
    const { status, data, errors = [] } = await who.ask(source);
    return {
      status,
      data,
      errors: errors.map(({ message, extensions }): Record<string, any> => ({ ...extensions, message })),
    };
  },
};
/** The response to an ended token. */
const ended = { status: 401, errors: [expect.objectContaining({ code: "UNAUTHENTICATED" })] };

const password = "correct horse battery";
const text = JSON.stringify;

async function signUp(name: string) {
  const input = `{ email: "${name}@Example.com", password: ${text(password)}, firstName: "${name}", username: "${name}" }`;
  return api.send(`mutation { createAccount(input: ${input}) { id email username fullName status } }`);
}

const loginDocument = (name: string, secret = password, fields = "token") =>
  `mutation { login(input: { username: ${text(name)}, password: ${text(secret)} }) { ${fields} } }`;
const login = async (name: string, secret = password) =>
  (await api.send(loginDocument(name, secret))).data.login.token as string;
const userId = async (name: string) =>
  (await server.owner.query("select user_id from app_hidden.user_identities where username = $1", [name]))
    .rows[0].user_id as string;

describe("createAccount", () => {
  test("shows the new user their own email address and user name", async () => {
    const { data, errors } = await signUp("grace");
    expect(errors).toEqual([]);
    expect(data.createAccount).toMatchObject({
      email: "grace@example.com",
      username: "grace",
      fullName: "grace",
      status: "ACTIVE",
    });
    const { rows } = await server.owner.query("select password_hash from app_private.user_passwords");
    for (const row of rows) expect(row.password_hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  });

  test.each([
    ["9 characters", "123456789"],
    ["5 characters of two units each", "👩👩👩👩👩"],
    ["1,001 bytes", "x".repeat(1001)],
  ])("refuses a password of %s", async (_name, secret) => {
    const input = `{ email: "short@example.com", password: ${text(secret)} }`;
    const { errors } = await api.send(`mutation { createAccount(input: ${input}) { id } }`);
    expect(errors).toEqual([expect.objectContaining({ code: "BAD_USER_INPUT", field: "password" })]);
  });

  test("responds equally for an address that has an account, with the same statements", async () => {
    const ask = async (email: string, username: string) => {
      const { result, count, texts } = await server.statements(() =>
        api.send(
          `mutation { createAccount(input: { email: "${email}", password: ${text(password)}, lastName: "Same", username: "${username}" }) {
            email username fullName firstName lastName status version emailVerifiedAt lastLoginAt permissions deletedAt
            organizations { id } accessTokens { id } purchases { id } } }`,
        ),
      );
      const { email: shown, username: name, ...rest } = result.data.createAccount;
      expect([shown, name]).toEqual([email.toLowerCase(), username]);
      return { rest, errors: result.errors, count, texts };
    };
    const made = await ask("fresh@example.com", "fresh");
    expect(made.errors).toEqual([]);
    expect(await ask("ADA@example.com", "dup")).toEqual(made);
    expect((await api.send(loginDocument("dup"))).errors).toEqual([
      expect.objectContaining({ code: "UNAUTHENTICATED" }),
    ]);
    await login("ada");
    await server.owner.query("truncate app_private.limit_uses");
  });

  test("200 concurrent attempts from one network do not block others, and respect the queue limit", async () => {
    const flood = Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        api.send(
          `mutation { createAccount(input: { email: "flood${n}@example.com", password: ${text(password)} }) { id } }`,
        ),
      ),
    );
    // Meanwhile the right password is accepted, and wrong attempts are not counted.
    for (let n = 0; n < 6; n++) expect(await login("bob")).toEqual(expect.any(String));
    const answers = await flood;
    const refused = answers.flatMap(({ errors }) => errors);
    expect(refused.length).toBeGreaterThan(60);
    for (const error of refused)
      expect(error).toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: expect.any(Number) });
    const { rows } = await server.owner.query(
      "select key from app_private.limit_uses where key like 'login %'",
    );
    expect(rows).toEqual([]);
    await server.owner.query("truncate app_private.limit_uses");
  });
});

describe("login", () => {
  test("returns a token for 30 days, and the user with own fields", async () => {
    const { data } = await api.send(
      loginDocument("ada@EXAMPLE.com", password, "token tokenType expiresAt user { id email lastLoginAt }"),
    );
    expect(data.login).toMatchObject({
      tokenType: "Bearer",
      user: { id: await userId("ada"), email: "ada@example.com", lastLoginAt: expect.any(String) },
    });
    expect(Math.round((Date.parse(data.login.expiresAt) - Date.now()) / 86_400_000)).toBe(30);
    const viewer = await api.send("{ viewer { email } }", data.login.token);
    expect(viewer.data).toEqual({ viewer: { email: "ada@example.com" } });
  });

  test("viewer is null without a token", async () => {
    expect(await api.send("{ viewer { id } }")).toEqual({ status: 200, data: { viewer: null }, errors: [] });
  });

  test("a password is not trimmed, and its Unicode normalization does not matter", async () => {
    const input = `{ email: "z@example.com", password: "  Ame\u0301lie 12  ", username: "zoe" }`;
    await api.send(`mutation { createAccount(input: ${input}) { id } }`);
    expect((await api.send(loginDocument("zoe", "Amélie 12"))).errors).toHaveLength(1);
    expect((await api.send(loginDocument("zoe", "  Amélie 12  "))).errors).toEqual([]);
  });

  test("each alias counts as an attempt", async () => {
    const aliases = Array.from(
      { length: 30 },
      (_, n) => `a${n}: login(input: { username: "eve", password: "wrong ${n}" }) { token }`,
    );
    const { data, errors } = await api.send(`mutation { ${aliases.join(" ")} }`);
    expect(new Set(Object.values(data))).toEqual(new Set([null]));
    const codes = errors.map(({ code }) => code);
    expect(codes.filter((code) => code === "UNAUTHENTICATED")).toHaveLength(5);
    expect(codes.filter((code) => code === "RATE_LIMITED")).toHaveLength(25);
    expect(errors.at(-1)!.retryAfterSeconds).toBeGreaterThan(0);
  });

  test("an unknown name has the same response and limit as a known one", async () => {
    const tries = async (name: string) => {
      const answers = [];
      for (let n = 0; n < 6; n++) {
        const { errors } = await api.send(loginDocument(name, "wrong password"));
        answers.push(
          errors.map(({ code, message }) => ({ code, message: String(message).replace(/\d+/, "N") })),
        );
      }
      return answers;
    };
    expect(await tries("nobody")).toEqual(await tries("bob"));
    await server.owner.query("truncate app_private.limit_uses");
  });

  test("the result of signing in applies to its own field; the next one uses the token of the request", async () => {
    const token = await login("ada");
    const { data, errors } = await api.send(
      `mutation {
        login(input: { username: "bob", password: ${text(password)} }) { user { email } }
        mine: updateUser(input: { id: "${await userId("ada")}", title: "Manager" }) { email title }
        theirs: updateUser(input: { id: "${await userId("bob")}", title: "Manager" }) { id }
      }`,
      token,
    );
    expect(data).toEqual({
      login: { user: { email: "bob@example.com" } },
      mine: { email: "ada@example.com", title: "Manager" },
      theirs: null,
    });
    expect(errors).toEqual([expect.objectContaining({ code: "NOT_FOUND" })]);
  });

  test("without a token, signing in gives the next field no access", async () => {
    const { data, errors } = await api.send(
      `mutation {
        login(input: { username: "bob", password: ${text(password)} }) { tokenType }
        createAccessToken(input: { name: "x" }) { token }
      }`,
    );
    expect(data).toEqual({ login: { tokenType: "Bearer" }, createAccessToken: null });
    expect(errors).toEqual([expect.objectContaining({ code: "UNAUTHENTICATED" })]);
  });
});

describe("updatePassword", () => {
  const change = (token: string, from: string, to: string) =>
    api.send(
      `mutation { updatePassword(input: { currentPassword: ${text(from)}, newPassword: ${text(to)} }) { email } }`,
      token,
    );

  test("ends the current token and keeps access tokens", async () => {
    await signUp("hal");
    const token = await login("hal");
    const made = await api.send(`mutation { createAccessToken(input: { name: "ci" }) { token } }`, token);
    const { data } = await change(token, password, "another password");
    expect(data).toEqual({ updatePassword: { email: "hal@example.com" } });
    expect(await api.send("{ viewer { id } }", token)).toMatchObject(ended);
    const viewer = await api.send("{ viewer { email } }", made.data.createAccessToken.token);
    expect(viewer.data).toEqual({ viewer: { email: "hal@example.com" } });
    expect((await api.send(loginDocument("hal"))).errors).toHaveLength(1);
    await login("hal", "another password");
  });

  test("refuses a wrong current and a too short new password; only the first counts as an attempt", async () => {
    await signUp("ivy");
    const token = await login("ivy");
    for (let n = 0; n < 6; n++)
      expect((await change(token, password, "short")).errors).toEqual([
        expect.objectContaining({ code: "BAD_USER_INPUT", field: "newPassword" }),
      ]);
    for (let n = 0; n < 5; n++)
      expect((await change(token, "wrong password", "another password")).errors).toEqual([
        expect.objectContaining({ code: "BAD_USER_INPUT", field: "currentPassword" }),
      ]);
    expect((await change(token, password, "another password")).errors).toEqual([
      expect.objectContaining({ code: "RATE_LIMITED" }),
    ]);
  });
});

test("resetPassword accepts the code of createUserOtp, once, and returns the user", async () => {
  const token = await login("ada");
  expect((await api.send(`mutation { createUserOtp(input: { email: "ada@example.com" }) }`)).data).toEqual({
    createUserOtp: true,
  });
  const { rows } = await server.owner.query("select code from app_private.issue_user_otp($1)", [
    await userId("ada"),
  ]);
  const reset = `mutation { resetPassword(input: { token: "${rows[0].code}", password: ${text(password)} }) { email emailVerifiedAt } }`;
  expect((await api.send(reset)).data.resetPassword).toEqual({
    email: "ada@example.com",
    emailVerifiedAt: expect.any(String),
  });
  expect(await api.send("{ viewer { id } }", token)).toMatchObject(ended);
  expect((await api.send(reset)).errors).toEqual([
    expect.objectContaining({ code: "BAD_USER_INPUT", field: "token" }),
  ]);
});

test("an access token is shown once, listed for its user only, and invalid when revoked", async () => {
  const token = await login("ada");
  const made = await api.send(
    `mutation { createAccessToken(input: { name: "ci", readOnly: true }) { id token prefix status scopes } }`,
    token,
  );
  const created = made.data.createAccessToken;
  expect(created).toMatchObject({ status: "ACTIVE", scopes: [], prefix: created.token.slice(0, 11) });
  const list = await api.send(
    "{ viewer { email accessTokens { id name token lastUsedAt } } }",
    created.token,
  );
  expect(list.data.viewer).toEqual({
    email: "ada@example.com",
    accessTokens: [{ id: created.id, name: "ci", token: null, lastUsedAt: expect.any(String) }],
  });
  const revoke = `mutation { revokeAccessToken(input: { id: "${created.id}" }) { status revokedAt } }`;
  expect((await api.send(revoke, created.token)).errors).toEqual([
    expect.objectContaining({ code: "FORBIDDEN" }),
  ]);
  expect((await api.send(revoke, await login("bob"))).errors).toEqual([
    expect.objectContaining({ code: "NOT_FOUND" }),
  ]);
  expect((await api.send(revoke)).errors).toEqual([expect.objectContaining({ code: "UNAUTHENTICATED" })]);
  expect((await api.send(revoke, token)).data.revokeAccessToken).toEqual({
    status: "REVOKED",
    revokedAt: expect.any(String),
  });
  expect(await api.send("{ viewer { id } }", created.token)).toMatchObject(ended);
});
