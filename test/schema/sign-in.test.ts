import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { accessTokenSha256, isAccessToken } from "../../src/auth/accessToken.ts";
import { pgSettings, type Claims } from "../../src/database/claims.ts";
import { createTestDatabase, poolOf, type TestDatabase } from "../harness/database.ts";

const hash = (seed: string) =>
  `$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$${Buffer.from(seed).toString("base64url").replace(/[-_]/g, "x")}`;
const oldHash = hash("the old password");
const newHash = hash("the new password");

let database: TestDatabase;
let owner: Pool;
let api: Pool;
const people: Record<string, string> = {};

beforeAll(async () => {
  database = await createTestDatabase();
  owner = poolOf(database.ownerUrl, 4);
  api = poolOf(database.authenticatorUrl, 20);
  for (const name of ["ada", "bob", "eve", "sam"]) people[name] = await signUp(name);
  // Ada and Bob share an organization; Eve belongs to neither.
  await owner.query(
    `with o as (insert into app_public.organizations (name) values ('Acme') returning id)
     insert into app_public.organization_user_connections (organization_id, user_id, role)
     select o.id, u.id, 'OWNER' from o, unnest($1::uuid[]) u (id)`,
    [[people.ada, people.bob]],
  );
});

afterAll(async () => {
  await api.end();
  await owner.end();
  await database.drop();
});

const nobody: Claims = { userId: null, readOnly: false };
const as = (name: string): Claims => ({ userId: people[name]!, readOnly: false });

/** Executes one statement as the API does for these claims, in a separate transaction. */
async function run<T = Record<string, unknown>>(
  claims: Claims,
  text: string,
  values: unknown[] = [],
): Promise<T[]> {
  const client = await api.connect();
  try {
    await client.query("begin");
    for (const [name, value] of Object.entries(
      pgSettings(claims, { requestId: "r", ip: "192.0.2.1", channel: "API" }),
    ))
      await client.query("select set_config($1, $2, true)", [name, value]);
    const { rows } = await client.query(text, values);
    await client.query("commit");
    return rows as T[];
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

/** The code and details of an error that are returned to the client. */
async function refusal(answer: Promise<unknown>): Promise<Record<string, unknown>> {
  const error = await answer.then(
    () => new Error("was not refused"),
    (reason: Error & { code?: string; detail?: string }) => reason,
  );
  if ((error as { code?: string }).code !== "PLAT0") throw error;
  return { ...JSON.parse((error as { detail: string }).detail), message: error.message };
}

async function signUp(name: string, email = `${name}@example.com`): Promise<string> {
  const [row] = await run<{ id: string }>(
    nobody,
    "select id from app_public.create_account($1, $2, $3, 'Test', $4)",
    [email, oldHash, name, name],
  );
  return row!.id;
}

const login = (username: string, proof: string) =>
  run<{ token: Record<string, unknown>; token_type: string; user_id: string }>(
    nobody,
    "select * from app_public.login($1, $2)",
    [username, proof],
  );
const begin = (username: string, ip: string | null) =>
  api.query<{ hash: string }>("select app_private.begin_login($1, $2) as hash", [username, ip]);
const settle = (username: string, ip: string | null, isRight: boolean) =>
  api.query("select app_private.record_login($1, $2, $3)", [username, ip, isRight]);
/** A completed attempt with a wrong password. */
async function wrong(username: string, ip: string | null): Promise<void> {
  await begin(username, ip);
  await settle(username, ip, false);
}
const session = async (name: string, epoch: number) =>
  (await api.query("select * from app_private.authenticate_session($1, $2)", [people[name], epoch])).rows;
const bearer = async (token: string) =>
  (await api.query("select * from app_private.authenticate_access_token($1)", [accessTokenSha256(token)]))
    .rows;
const jobsOf = async (task: string): Promise<number> =>
  (await one("select count(*)::int from graphile_worker.jobs where task_identifier = $1", [task])).count;
const one = async (text: string, values: unknown[] = []) => (await owner.query(text, values)).rows[0];

describe("secrets are inaccessible", () => {
  test.each([
    "user_passwords",
    "user_otps",
    "limit_uses",
    "access_token_secrets",
    "email_verifications",
    "user_networks",
    "limits",
    "limit_changes",
  ])("app_private.%s", async (table) => {
    const text = `select * from app_private.${table}`;
    for (const claims of [nobody, as("ada")])
      await expect(run(claims, text)).rejects.toMatchObject({ code: "42501" });
    await expect(api.query(text)).rejects.toMatchObject({ code: "42501" });
  });

  test.each([
    "app_private.begin_login('ada', null)",
    "app_private.record_login('ada', null, true)",
    "app_private.begin_confirmation(null, null)",
    "app_private.record_confirmation(null, null, true)",
    "app_private.begin_sign_up(null)",
    "app_private.count_sign_up(null)",
    "app_private.begin_reset('')",
    "app_private.issue_verification(null)",
    "app_private.authenticate_session(null, 1)",
    "app_private.authenticate_access_token('')",
    "app_private.issue_user_otp(null)",
    "app_private.set_password(null, '')",
    "app_private.forgive_tries(null)",
    "app_private.take_use('', 1, '1 hour')",
    "app_private.is_within_limit('otp.account', '')",
    "app_private.account_named('ada')",
    "app_private.begin_proof(null, '', null)",
  ])("viewers cannot call %s", async (call) => {
    for (const claims of [nobody, as("ada")])
      await expect(run(claims, `select ${call}`)).rejects.toMatchObject({ code: "42501" });
  });

  test.each([
    "app_private.issue_user_otp(null)",
    "app_private.set_password(null, '')",
    "app_private.account_named('ada')",
  ])("the API's own connection cannot call %s", async (call) => {
    await expect(api.query(`select ${call}`)).rejects.toMatchObject({ code: "42501" });
  });

  test("an unhashed password is never stored", async () => {
    const plain = "correct horse battery";
    await expect(
      run(nobody, "select app_public.create_account('p@example.com', $1)", [plain]),
    ).rejects.toMatchObject({ code: "23514", constraint: "new_password_hashed" });
    await expect(login("ada", plain)).rejects.toMatchObject({
      code: "23514",
      constraint: "password_proof_hashed",
    });
    await expect(
      run(as("ada"), "select app_public.update_password($1, $2)", [oldHash, plain]),
    ).rejects.toMatchObject({ code: "23514" });
  });
});

describe("create_account", () => {
  test("stores the email address in lower case, visible to the user only", async () => {
    people.new = await signUp("newcomer", "New.User@Example.COM");
    const emails = (claims: Claims) =>
      run(claims, "select email from app_hidden.user_identities where user_id = $1", [people.new]);
    expect(await emails(as("new"))).toEqual([{ email: "new.user@example.com" }]);
    expect(await emails(as("eve"))).toEqual([]);
    expect(await emails(nobody)).toEqual([]);
    expect(await run(nobody, "select id from app_public.users")).toEqual([]);
  });

  test("writes an event of the new user, by the new user, without a secret", async () => {
    const event = await one(
      "select * from app_public.events where subject_id = $1 and name = 'user.created'",
      [people.ada],
    );
    expect(event).toMatchObject({ actor_id: people.ada, actor_type: "USER", stream_id: people.ada });
    expect(JSON.stringify(event.data)).not.toMatch(/argon2|example\.com/);
  });

  test.each([
    [
      "a taken user name for a taken address",
      ["ADA@example.com", "ada"],
      { code: "CONFLICT", field: "username" },
    ],
    [
      "a user name with @ for a taken address",
      ["ADA@example.com", "x@y"],
      { code: "BAD_USER_INPUT", field: "username" },
    ],
    ["the same user name in other case", ["x@example.com", "ADA"], { code: "CONFLICT", field: "username" }],
    ["a user name with @", ["x@example.com", "x@y"], { code: "BAD_USER_INPUT", field: "username" }],
    [
      "a user name of 51 characters",
      ["x@example.com", "x".repeat(51)],
      { code: "BAD_USER_INPUT", field: "username" },
    ],
    ["no address", [null, null], { code: "BAD_USER_INPUT", field: "email" }],
  ])("refuses %s", async (_name, [email, username], error) => {
    const answer = run(nobody, "select app_public.create_account($1, $2, username => $3)", [
      email,
      oldHash,
      username,
    ]);
    expect(await refusal(answer)).toMatchObject(error);
  });

  test("for an existing address the response is the same, and cannot be used to sign in", async () => {
    const ask = async (email: string, username: string) => {
      const before = await jobsOf("user__verification_requested");
      const [{ id }] = (await run<{ id: string }>(
        nobody,
        `select (app_public.create_account($1, $2, 'Grace', 'H', $3)).id`,
        [email, oldHash, username],
      )) as [{ id: string }];
      const self: Claims = { userId: id, readOnly: false };
      const [seen] = await run(
        self,
        "select u.status, u.version, u.email_verified_at, u.last_login_at, app_public.users_email(u) as email, app_public.users_username(u) as username, app_public.users_full_name(u) as name from app_public.viewer() u where u.id = $1",
        [id],
      );
      const events = (
        await owner.query("select name from app_public.events where subject_id = $1 order by name", [id])
      ).rows;
      return { id, seen, events, jobs: (await jobsOf("user__verification_requested")) - before };
    };
    const made = await ask("made@example.com", "grace1");
    const duplicate = await ask("ADA@example.com", "grace2");
    expect(made.jobs).toBe(1);
    expect(duplicate).toEqual({
      ...made,
      id: duplicate.id,
      seen: { ...made.seen, email: "ada@example.com", username: "grace2" },
    });
    expect((await login("ada", oldHash))[0]!.user_id).toBe(people.ada);
    await expect(login("grace2", oldHash)).rejects.toThrow("do not match");
    await expect(run(as("eve"), "select * from app_hidden.duplicate_accounts")).resolves.toEqual([]);
    // The mail to its owner has no code; the other mail has one.
    const issue = async (id: string) =>
      (await owner.query("select email, code from app_private.issue_verification($1)", [id])).rows;
    expect(await issue(duplicate.id)).toEqual([{ email: "ada@example.com", code: null }]);
    expect(await issue(made.id)).toEqual([{ email: "made@example.com", code: expect.any(String) }]);
    for (let n = 0; n < 6; n++) await issue(duplicate.id);
    expect(await issue(duplicate.id)).toEqual([]);
  });

  test("of ten concurrent ones with one address, one succeeds", async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) =>
        run(nobody, "select app_public.create_account($1, $2)", [
          n % 2 ? "Race@example.com" : "race@example.com",
          oldHash,
        ]),
      ),
    );
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(10);
    expect(
      await one("select count(*)::int from app_hidden.user_identities where email = 'race@example.com'"),
    ).toEqual({ count: 1 });
    expect(
      await one("select count(*)::int from app_hidden.duplicate_accounts where email = 'race@example.com'"),
    ).toEqual({ count: 9 });
  });

  test("a signed-in viewer may create another account", async () => {
    await expect(
      run(as("ada"), "select app_public.create_account('second@example.com', $1)", [oldHash]),
    ).resolves.toHaveLength(1);
  });
});

describe("login", () => {
  test("by user name or address, in any case", async () => {
    for (const name of ["ada", "ADA", "ada@example.com", " Ada@Example.com "]) {
      const [answer] = await login(name, oldHash);
      expect(answer).toMatchObject({
        token_type: "Bearer",
        user_id: people.ada,
        token: { sub: people.ada, epoch: 1 },
      });
    }
    const token = (await login("ada", oldHash))[0]!.token as { iat: number; exp: number };
    expect(token.exp - token.iat).toBe(30 * 86_400);
  });

  test("an unknown name, a wrong password and a user who may not sign in have the same refusal", async () => {
    await owner.query("update app_public.users set status = 'SUSPENDED' where id = $1", [people.sam]);
    const answers = await Promise.all([
      refusal(login("nobody", "")),
      refusal(login("nobody", oldHash)),
      refusal(login("ada", "")),
      refusal(login("ada", newHash)),
      refusal(login("sam", oldHash)),
      refusal(login("", "")),
    ]);
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toMatchObject({ code: "UNAUTHENTICATED" });
    await owner.query("update app_public.users set status = 'ACTIVE' where id = $1", [people.sam]);
  });

  test("sets last_login_at and writes an event", async () => {
    await login("bob", oldHash);
    expect(await one("select last_login_at from app_public.users where id = $1", [people.bob])).toMatchObject(
      {
        last_login_at: expect.any(Date),
      },
    );
    expect(
      await one("select actor_id from app_public.events where subject_id = $1 and name = 'user.signed_in'", [
        people.bob,
      ]),
    ).toEqual({
      actor_id: people.bob,
    });
  });
});

describe("attempts", () => {
  beforeEach(() => owner.query("truncate app_private.limit_uses, app_private.user_networks"));
  const home = "198.51.100.20";

  test.each(["eve", "unknown name", "nobody@example.com"])(
    "5 for %s, and the sixth is refused",
    async (name) => {
      for (let n = 0; n < 5; n++) await wrong(name, home);
      const error = await refusal(begin(name.toUpperCase(), home));
      expect(error).toMatchObject({ code: "RATE_LIMITED" });
      expect(error.retryAfterSeconds).toBeGreaterThan(0);
      expect(error.retryAfterSeconds).toBeLessThanOrEqual(900);
    },
  );

  test("unfinished ones do not count: a hundred that began, and were refused by the semaphore", async () => {
    await Promise.all(Array.from({ length: 100 }, () => begin("eve", home)));
    expect(await one("select count(*)::int from app_private.limit_uses")).toEqual({ count: 0 });
    await settle("eve", home, true);
    expect(await login("eve", oldHash)).toHaveLength(1);
  });

  test("guessing locks out the network of the attacker, not the owner of the account", async () => {
    for (let n = 0; n < 5; n++) await wrong("eve", "203.0.113.66");
    await expect(begin("eve", "203.0.113.66")).rejects.toThrow("Too many attempts");
    await begin("eve", home);
    await settle("eve", home, true);
  });

  test("guessing from many networks has a slower limit, except for networks that the account has used", async () => {
    // run() signs in from 192.0.2.1.
    await login("eve", oldHash);
    for (let n = 0; n < 50; n++) await wrong("eve", `203.0.113.${n}`);
    const error = await refusal(begin("eve", home));
    expect(error).toMatchObject({ code: "RATE_LIMITED" });
    expect(error.retryAfterSeconds).toBeGreaterThan(86_000);
    await begin("eve", "192.0.2.1");
    await settle("eve", "192.0.2.1", true);
    // A network is known for one account, for 90 days.
    await owner.query("update app_private.user_networks set last_at = now() - interval '91 days'");
    await expect(begin("eve", "192.0.2.1")).rejects.toThrow("Too many attempts");
  });

  test("user name and address count for one account; a refused attempt does not extend the wait", async () => {
    for (const name of ["eve", "eve@example.com", "EVE", "Eve@example.com", "eve"]) await wrong(name, home);
    await expect(begin("eve@example.com", home)).rejects.toThrow("Too many attempts");
    const moments = () =>
      one(
        "select array_agg(expires_at order by slot) as moments from app_private.limit_uses where key = $1",
        [`login ${people.eve} ${home}`],
      );
    const before = await moments();
    expect(before.moments).toHaveLength(5);
    await expect(begin("eve", home)).rejects.toThrow("Too many attempts");
    await expect(settle("eve", home, false)).rejects.toThrow("Too many attempts");
    expect(await moments()).toEqual(before);
  });

  test("exactly 5 of 100 concurrent attempts for one account are evaluated", async () => {
    await Promise.all(Array.from({ length: 100 }, () => begin("eve", home)));
    const answers = await Promise.allSettled(Array.from({ length: 100 }, () => settle("eve", home, false)));
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    await expect(settle("eve", home, true)).rejects.toThrow("Too many attempts");
  });

  test("exactly 50 of 100 concurrent attempts from one address are evaluated", async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 100 }, (_, n) => settle(`name ${n}`, "198.51.100.7", false)),
    );
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(50);
    await expect(begin("another", "198.51.100.8")).resolves.toBeDefined();
    await expect(begin("another", "::ffff:198.51.100.7")).rejects.toThrow("Too many attempts");
  });

  test("the IPv6 addresses of one network count as one, and no address as none", async () => {
    for (let n = 0; n < 50; n++) await wrong(`name ${n}`, `2001:db8::${n}`);
    await expect(begin("x", "2001:db8::ffff:1")).rejects.toThrow("Too many attempts");
    await expect(begin("x", "2001:db8:0:1::1")).resolves.toBeDefined();
    for (const ip of [null, "", "unknown", "1.2.3"]) await expect(begin("x", ip)).resolves.toBeDefined();
  });

  test("every limit by address counts by network", async () => {
    const { rows } = await owner.query(
      `select p.oid::regprocedure::text as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where n.nspname like 'app\\_%' and p.prosrc ~ 'setting\\(''ip''\\)' and p.prosrc !~ 'network_of\\(app_hidden.setting\\(''ip''\\)\\)'
         -- It limits nothing: where a signer signs from is kept as it is.
         and p.proname <> 'note_trail'`,
    );
    expect(rows).toEqual([]);
  });

  test("attempts are forgotten after 15 minutes, one by one", async () => {
    for (let n = 0; n < 5; n++) await wrong("eve", home);
    await owner.query(
      "update app_private.limit_uses set expires_at = expires_at - interval '15 minutes' where slot = 1",
    );
    await wrong("eve", home);
    await expect(begin("eve", home)).rejects.toThrow("Too many attempts");
  });

  test("the right password resets the account's count for its network, and none of other accounts", async () => {
    await wrong("bob", "192.0.2.1");
    for (let n = 0; n < 4; n++) await wrong("eve", "192.0.2.1");
    await wrong("eve", "192.0.2.2");
    await login("eve", oldHash);
    const keys = (
      await owner.query("select key, count(*)::int as n from app_private.limit_uses group by key")
    ).rows;
    expect(Object.fromEntries(keys.map(({ key, n }) => [key, n]))).toMatchObject({
      "login address 192.0.2.1": 5,
      [`login ${people.bob} 192.0.2.1`]: 1,
      [`login ${people.eve} 192.0.2.2`]: 1,
    });
    expect(keys.map(({ key }) => key)).not.toContain(`login ${people.eve} 192.0.2.1`);
  });

  test("an unknown name gets a hash with the same parameters, and the entered name is not stored", async () => {
    const { rows } = await begin("my secret phrase", home);
    expect(rows[0]!.hash.split("$").slice(0, 4)).toEqual(oldHash.split("$").slice(0, 4));
    await settle("my secret phrase", home, false);
    expect(JSON.stringify((await owner.query("select * from app_private.limit_uses")).rows)).not.toContain(
      "secret",
    );
  });

  test("confirming with the current password counts for the same account", async () => {
    for (let n = 0; n < 5; n++)
      await api.query("select app_private.record_confirmation($1, $2, false)", [people.eve, home]);
    await expect(begin("eve", home)).rejects.toThrow("Too many attempts");
    await expect(
      api.query("select app_private.begin_confirmation($1, $2)", [people.eve, home]),
    ).rejects.toThrow("Too many attempts");
  });

  test("an operator changes a limit by a row", async () => {
    await owner.query(
      "insert into app_private.limit_changes values ('login.account_and_network', 7, 'A school with one network')",
    );
    for (let n = 0; n < 7; n++) await wrong("eve", home);
    await expect(begin("eve", home)).rejects.toThrow("Too many attempts");
    await owner.query("truncate app_private.limit_changes");
  });
});

describe("new accounts", () => {
  const beginSignUp = (ip: string) => api.query("select app_private.begin_sign_up($1)", [ip]);
  const count = (ip: string) => api.query("select app_private.count_sign_up($1)", [ip]);
  const limits = (network: number, total: number) =>
    owner.query(
      `truncate app_private.limit_uses, app_private.limit_changes;
       insert into app_private.limit_changes values ('sign_up.network', ${network}, 'test'), ('sign_up.total', ${total}, 'test')`,
    );
  afterAll(() => owner.query("truncate app_private.limit_changes"));

  test("are limited by network, and a check counts nothing", async () => {
    await limits(2, 100);
    for (let n = 0; n < 9; n++) await beginSignUp("2001:db8::1");
    for (const ip of ["2001:db8::1", "2001:db8::2"]) await count(ip);
    const error = await refusal(beginSignUp("2001:db8::3"));
    expect(error).toMatchObject({ code: "RATE_LIMITED" });
    expect(error.retryAfterSeconds).toBeGreaterThan(3500);
    await expect(count("2001:db8::4")).rejects.toThrow("Too many new accounts");
    await beginSignUp("2001:db8:0:1::1");
  });

  test("are limited in total, over all networks, for a short time", async () => {
    await limits(100, 3);
    for (let n = 0; n < 3; n++) await count(`198.51.100.${n}`);
    const error = await refusal(count("203.0.113.9"));
    expect(error).toMatchObject({ code: "RATE_LIMITED" });
    expect(error.retryAfterSeconds).toBeLessThanOrEqual(60);
  });

  test("alternate: areas that have created one leave room for those that have not", async () => {
    await limits(100, 6);
    await owner.query(
      "insert into app_private.limit_changes values ('sign_up.further', 2, 'test'), ('sign_up.area', 4, 'test')",
    );
    const from = async (...ips: string[]) => {
      for (const ip of ips) await count(ip);
    };
    // The first sign-up of an area does not count as a further one; the next two do.
    await from("198.51.100.1", "198.51.100.2", "2001:db8:7:1::1");
    await from("2001:db8:7:2::1");
    for (const ip of ["198.51.100.3", "2001:db8:7:3::1"])
      expect(await refusal(count(ip))).toMatchObject({ code: "RATE_LIMITED" });
    await from("203.0.113.1", "192.0.2.1");
    await expect(count("2001:db8:8::1")).rejects.toThrow("Too many new accounts");
    // A minute later, up to the limit of an area.
    await owner.query(
      "update app_private.limit_uses set expires_at = now() where key in ('sign up', 'sign up further')",
    );
    await from("198.51.100.3", "198.51.100.4");
    await owner.query(
      "update app_private.limit_uses set expires_at = now() where key in ('sign up', 'sign up further')",
    );
    const error = await refusal(beginSignUp("198.51.100.5"));
    expect(error.retryAfterSeconds).toBeGreaterThan(3500);
    await from("2001:db8:7:9::1", "203.0.114.1");
  });
});

describe("verify_email", () => {
  test("the first login after signing up does not request a second code, which would invalidate the first", async () => {
    const id = (
      await run<{ id: string }>(nobody, "select (app_public.create_account($1, $2)).id", [
        "nell@example.com",
        oldHash,
      ])
    )[0]!.id;
    // If the job that mails the first is running or done, another one would be added.
    await owner.query("delete from graphile_worker._private_jobs where payload->>'user_id' = $1", [id]);
    const before = await jobsOf("user__verification_requested");
    await login("nell@example.com", oldHash);
    expect(await jobsOf("user__verification_requested")).toBe(before);
    await owner.query("delete from app_private.limit_uses");
    await login("nell@example.com", oldHash);
    expect(await jobsOf("user__verification_requested")).toBe(before + 1);
  });

  const issue = async (id: string) =>
    (await owner.query<{ code: string }>("select * from app_private.issue_verification($1)", [id])).rows[0];
  const verify = (claims: Claims, code: string) =>
    run<{ email_verified_at: Date }>(claims, "select * from app_public.verify_email($1)", [code]);

  test("requires the code of the mail and the account: neither alone confirms an address", async () => {
    people.vera = await signUp("vera");
    const first = (await issue(people.vera))!;
    const { code } = (await issue(people.vera))!;
    expect(JSON.stringify(await one("select * from app_private.email_verifications"))).not.toContain(code);
    for (const [claims, given] of [
      [as("eve"), code],
      [as("vera"), first.code],
      [as("vera"), ""],
    ] as const)
      expect(await refusal(verify(claims, given))).toMatchObject({ code: "BAD_USER_INPUT", field: "token" });
    expect(await refusal(verify(nobody, code))).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(await refusal(verify({ ...as("vera"), scopes: ["org.admin"] }, code))).toMatchObject({
      code: "FORBIDDEN",
    });
    expect(await verify(as("vera"), ` ${code} `)).toEqual([
      expect.objectContaining({ email_verified_at: expect.any(Date) }),
    ]);
    expect(await refusal(verify(as("vera"), code))).toMatchObject({ code: "BAD_USER_INPUT" });
    expect(await issue(people.vera)).toBeUndefined();
    expect(await refusal(run(as("vera"), "select app_public.request_email_verification()"))).toMatchObject({
      code: "CONFLICT",
    });
  });

  test("a code expires after a day, and requests for another are limited", async () => {
    people.vic = await signUp("vic");
    const { code } = (await issue(people.vic))!;
    await owner.query("update app_private.email_verifications set expires_at = now()");
    expect(await refusal(verify(as("vic"), code))).toMatchObject({ code: "BAD_USER_INPUT" });
    const ask = () => run(as("vic"), "select app_public.request_email_verification() as sent");
    for (let n = 0; n < 5; n++) expect(await ask()).toEqual([{ sent: true }]);
    expect(await refusal(ask())).toMatchObject({
      code: "RATE_LIMITED",
      retryAfterSeconds: expect.any(Number),
    });
  });
});

describe("update_password", () => {
  test("requires the current password, and ends the former login tokens", async () => {
    const change = (from: string, to: string) =>
      run(as("eve"), "select app_public.update_password($1, $2)", [from, to]);
    expect(await session("eve", 1)).toHaveLength(1);
    expect(await refusal(change("", newHash))).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "currentPassword",
    });
    expect(await refusal(change(newHash, newHash))).toMatchObject({ field: "currentPassword" });
    await change(oldHash, newHash);
    expect(await session("eve", 1)).toHaveLength(0);
    expect(await session("eve", 2)).toHaveLength(1);
    await expect(login("eve", oldHash)).rejects.toThrow("do not match");
    expect((await login("eve", newHash))[0]!.token).toMatchObject({ epoch: 2 });
    await change(newHash, oldHash);
  });

  test("requires a signed-in viewer with an unrestricted token", async () => {
    const text = "select app_public.update_password($1, $2)";
    expect(await refusal(run(nobody, text, [oldHash, newHash]))).toMatchObject({ code: "UNAUTHENTICATED" });
    const scoped = { ...as("ada"), tokenId: people.ada!, scopes: ["lead.read"] };
    expect(await refusal(run(scoped, text, [oldHash, newHash]))).toMatchObject({ code: "FORBIDDEN" });
  });
});

describe("update_user", () => {
  const update = (name: string, input: object) =>
    run(as(name), "select * from app_public.update_user($1)", [input]);

  test("changes the viewer, by id or slug, including the user name", async () => {
    const [row] = await update("ada", {
      id: people.ada,
      title: "Manager",
      phone: "+1 (416) 555-0123",
      username: " Ada.L ",
    });
    expect(row).toMatchObject({ title: "Manager", phone: "+14165550123" });
    expect(await login("ada.l", oldHash)).toHaveLength(1);
    await update("ada", { id: row!.slug, username: "ada", title: null });
    expect(await one("select title from app_public.users where id = $1", [people.ada])).toEqual({
      title: null,
    });
  });

  test("a new user name raises the version, once", async () => {
    const { version } = await one("select version from app_public.users where id = $1", [people.bob]);
    const [row] = await update("bob", { id: people.bob, username: "bobby", expected_version: version });
    expect(row!.version).toBe(version + 1);
    expect(
      await refusal(update("bob", { id: people.bob, username: "bob", expected_version: version })),
    ).toMatchObject({
      code: "VERSION_MISMATCH",
      currentVersion: version + 1,
    });
    await update("bob", { id: people.bob, username: "bob" });
  });

  test.each([
    ["a colleague", { id: "bob" }, { code: "FORBIDDEN" }],
    ["a stranger", { id: "eve" }, { code: "NOT_FOUND" }],
    ["somebody who does not exist", { id: "00000000-0000-7000-8000-000000000000" }, { code: "NOT_FOUND" }],
    ["an unknown slug", { id: "no-such-slug" }, { code: "NOT_FOUND" }],
    ["a taken user name", { id: "ada", username: "BOB" }, { code: "CONFLICT", field: "username" }],
    [
      "a user name that looks like an address",
      { id: "ada", username: "a@b" },
      { code: "BAD_USER_INPUT", field: "username" },
    ],
    [
      "a phone number without country code",
      { id: "ada", phone: "416 555 0123" },
      { code: "BAD_USER_INPUT", field: "phone" },
    ],
    [
      "an invalid time zone",
      { id: "ada", time_zone: "Mars/Base" },
      { code: "BAD_USER_INPUT", field: "timeZone" },
    ],
    [
      "null where there must be a value",
      { id: "ada", time_zone: null },
      { code: "BAD_USER_INPUT", field: "timeZone" },
    ],
  ])("refuses %s", async (_name, input, error) => {
    expect(
      await refusal(update("ada", { title: "X", ...input, id: people[input.id] ?? input.id })),
    ).toMatchObject(error);
  });

  test("no statement of the viewer changes rows of others", async () => {
    for (const other of ["bob", "eve"]) {
      expect(
        await run(as("ada"), "update app_public.users set title = 'X' where id = $1 returning id", [
          people[other],
        ]),
      ).toEqual([]);
      expect(
        await run(
          as("ada"),
          "update app_hidden.user_identities set username = 'x' where user_id = $1 returning user_id",
          [people[other]],
        ),
      ).toEqual([]);
    }
    for (const column of ["status", "email_verified_at", "last_login_at", "password_changed_at", "version"])
      await expect(run(as("ada"), `update app_public.users set ${column} = null`)).rejects.toMatchObject({
        code: "42501",
      });
    await expect(
      run(as("ada"), "update app_hidden.user_identities set email = 'x@example.com'"),
    ).rejects.toMatchObject({ code: "42501" });
  });
});

describe("one-time codes", () => {
  const request = async (email: string) =>
    (await run<{ sent: boolean }>(nobody, "select app_public.create_user_otp($1) as sent", [email]))[0]!.sent;
  const issue = async (name: string) =>
    (
      await owner.query<{ email: string; code: string }>("select * from app_private.issue_user_otp($1)", [
        people[name],
      ])
    ).rows;
  const reset = (code: string, password = newHash) =>
    run(nobody, "select * from app_public.reset_password($1, $2)", [code, password]);
  beforeEach(() =>
    owner.query(
      "delete from app_private.user_otps; delete from app_private.limit_uses; delete from graphile_worker._private_jobs",
    ),
  );

  test("with or without an account, work and response are the same; a code is only created for an account", async () => {
    const work = async (email: string, user: string) => {
      await owner.query("delete from app_private.limit_uses; delete from graphile_worker._private_jobs");
      for (let n = 0; n < 7; n++) expect(await request(email)).toBe(true);
      const { rows } = await owner.query(
        "select payload ->> 'user_id' as user_id, revision from graphile_worker._private_jobs",
      );
      expect(rows).toEqual([{ user_id: expect.stringMatching(user), revision: 4 }]);
      const uses = await owner.query(
        "select count(*)::int as n from app_private.limit_uses where key like 'otp.account %'",
      );
      expect(uses.rows).toEqual([{ n: 5 }]);
      return (await owner.query("select * from app_private.issue_user_otp($1)", [rows[0].user_id])).rows;
    };
    expect(await work("EVE@example.com", people.eve!)).toHaveLength(1);
    expect(await work("nobody@example.com", "-")).toEqual([]);
  });

  test("an invalid code is refused before its password is hashed, and the check uses nothing up", async () => {
    const beginReset = (code: string) => api.query("select app_private.begin_reset($1)", [code]);
    const [first] = await issue("eve");
    for (let n = 0; n < 3; n++) await beginReset(` ${first!.code} `);
    for (const code of ["", "unknown"])
      expect(await refusal(beginReset(code))).toMatchObject({ code: "BAD_USER_INPUT", field: "token" });
    await reset(first!.code, oldHash);
    expect(await refusal(beginReset(first!.code))).toMatchObject({ code: "BAD_USER_INPUT" });
  });

  test("requests are limited by network, over all addresses", async () => {
    await owner.query("insert into app_private.limit_changes values ('otp.network', 3, 'test')");
    await owner.query("truncate app_private.limit_uses");
    for (let n = 0; n < 3; n++) await request(`n${n}@example.com`);
    expect(await refusal(request("eve@example.com"))).toMatchObject({ code: "RATE_LIMITED" });
    await owner.query("truncate app_private.limit_changes, app_private.limit_uses");
  });

  test("a code works once, confirms the address, ends login tokens and access tokens", async () => {
    const [token] = await run<{ token: string }>(
      as("eve"),
      "select t.token from app_public.create_access_token('ci') t",
    );
    const { session_epoch } = await one(
      "select session_epoch from app_private.user_passwords where user_id = $1",
      [people.eve],
    );
    const [first] = await issue("eve");
    expect(first!.email).toBe("eve@example.com");
    expect(JSON.stringify(await one("select * from app_private.user_otps"))).not.toContain(first!.code);
    const [user] = await reset(` ${first!.code} `);
    expect(user).toMatchObject({ id: people.eve, email_verified_at: expect.any(Date) });
    expect(await session("eve", session_epoch)).toHaveLength(0);
    expect(await bearer(token!.token)).toHaveLength(0);
    expect(await login("eve", newHash)).toHaveLength(1);
    expect(await refusal(reset(first!.code))).toMatchObject({ code: "BAD_USER_INPUT", field: "token" });
  });

  test("used, replaced, expired, unknown, and of a suspended user: one refusal", async () => {
    const [used] = await issue("eve");
    await reset(used!.code);
    const [replaced] = await issue("eve");
    const [expired] = await issue("bob");
    await owner.query("update app_private.user_otps set expires_at = now() where user_id = $1", [people.bob]);
    const [suspended] = await issue("sam");
    await owner.query("update app_public.users set status = 'SUSPENDED' where id = $1", [people.sam]);
    const [last] = await issue("eve");
    const answers = [];
    for (const code of [used!.code, replaced!.code, expired!.code, suspended!.code, "", "x".repeat(10_000)])
      answers.push(JSON.stringify(await refusal(reset(code))));
    expect(new Set(answers).size).toBe(1);
    expect(await issue("sam")).toEqual([]);
    await owner.query("update app_public.users set status = 'ACTIVE' where id = $1", [people.sam]);
    await reset(last!.code, oldHash);
  });

  test("of ten concurrent uses, one succeeds", async () => {
    const [code] = await issue("eve");
    const answers = await Promise.allSettled(Array.from({ length: 10 }, () => reset(code!.code, oldHash)));
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("a changed password invalidates an open code", async () => {
    const [first] = await issue("eve");
    await reset(first!.code, oldHash);
    const [code] = await issue("eve");
    await run(as("eve"), "select app_public.update_password($1, $2)", [oldHash, oldHash]);
    await expect(reset(code!.code)).rejects.toThrow("unknown, used or older");
  });
});

describe("access tokens", () => {
  interface Created {
    id: string;
    token: string;
    prefix: string;
    scopes: string[];
    organization_id: string | null;
    expires_at: Date | null;
  }
  const create = async (claims: Claims, members: Record<string, unknown> = {}): Promise<Created> => {
    const given = { name: "ci", ...members };
    const list = Object.keys(given).map((name, n) => `${name} => $${n + 1}`);
    const [row] = await run<Created>(
      claims,
      `select t.* from app_public.create_access_token(${list}) t`,
      Object.values(given),
    );
    return row!;
  };
  const revoke = (claims: Claims, id: string) =>
    run<{ revoked_at: Date }>(claims, "select * from app_public.revoke_access_token($1)", [id]);
  /** Claims as authentication determines them for a token. */
  const claimsOf = async (token: string): Promise<Claims> => {
    const [row] = await bearer(token);
    return {
      userId: row.viewer_id,
      tokenId: row.token_id,
      readOnly: row.read_only,
      ...(row.organization_id && { organizationId: row.organization_id }),
      ...(row.scopes && { scopes: row.scopes }),
    };
  };
  const acme = async () =>
    (await one("select id from app_public.organizations where name = 'Acme'")).id as string;
  const soon = (minutes: number) => new Date(Date.now() + minutes * 60_000);

  test("the token is shown once, has format and checksum, and is stored as SHA-256 only", async () => {
    const made = await create(as("ada"));
    expect(isAccessToken(made.token)).toBe(true);
    expect(made.token.startsWith(made.prefix)).toBe(true);
    expect(made.prefix).toHaveLength(11);
    const [again] = await run(as("ada"), "select t.token from app_public.access_tokens t where id = $1", [
      made.id,
    ]);
    expect(again).toEqual({ token: null });
    for (const table of ["app_public.access_tokens", "app_private.access_token_secrets", "app_public.events"])
      expect(JSON.stringify((await owner.query(`select * from ${table}`)).rows)).not.toContain(
        made.token.slice(11),
      );
    expect(
      (await one("select token_sha256 from app_private.access_token_secrets where token_id = $1", [made.id]))
        .token_sha256,
    ).toEqual(accessTokenSha256(made.token));
  });

  test("authenticates its user until it expires, is revoked, or the user is suspended", async () => {
    const made = await create(as("ada"), { expires_at: soon(5) });
    expect(await bearer(made.token)).toEqual([
      {
        viewer_id: people.ada,
        token_id: made.id,
        read_only: false,
        organization_id: null,
        scopes: null,
        second_factor_withholds: null,
      },
    ]);
    const status = async () =>
      (
        await run<{ status: string }>(
          as("ada"),
          "select app_public.access_tokens_status(t) as status from app_public.access_tokens t where id = $1",
          [made.id],
        )
      )[0]!.status;
    await owner.query("update app_public.users set status = 'SUSPENDED' where id = $1", [people.ada]);
    expect(await bearer(made.token)).toEqual([]);
    await owner.query("update app_public.users set status = 'ACTIVE' where id = $1", [people.ada]);
    expect(await status()).toBe("ACTIVE");
    await owner.query("update app_public.access_tokens set expires_at = now() where id = $1", [made.id]);
    expect(await bearer(made.token)).toEqual([]);
    expect(await status()).toBe("EXPIRED");
    await revoke(as("ada"), made.id);
    expect(await status()).toBe("REVOKED");
    expect(
      await one("select name from app_public.events where subject_id = $1 order by id desc limit 1", [
        made.id,
      ]),
    ).toEqual({ name: "access_token.revoked" });
  });

  test("revoking again changes nothing", async () => {
    const made = await create(as("ada"));
    const [first] = await revoke(as("ada"), made.id);
    const [second] = await revoke(as("ada"), made.id);
    expect(second!.revoked_at).toEqual(first!.revoked_at);
    expect(await bearer(made.token)).toEqual([]);
  });

  test("nobody sees or revokes those of others", async () => {
    const made = await create(as("ada"));
    for (const name of ["bob", "eve"]) {
      expect(
        await run(as(name), "select id from app_public.access_tokens where user_id = $1", [people.ada]),
      ).toEqual([]);
      expect(await refusal(revoke(as(name), made.id))).toMatchObject({ code: "NOT_FOUND", field: "id" });
      expect(
        (
          await run(
            as(name),
            "select app_public.access_tokens_last_used_at(t) as at from (select ($1::uuid, $2::uuid, null, null, 'x', null, 'x', '{}', false, null, null, now(), now(), 1, 'API')::app_public.access_tokens as t) x",
            [made.id, people.ada],
          )
        )[0],
      ).toEqual({ at: null });
    }
    expect(await refusal(revoke(nobody, made.id))).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(await refusal(create(nobody))).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(await run(nobody, "select id from app_public.access_tokens")).toEqual([]);
    for (const text of [
      "insert into app_public.access_tokens default values",
      "update app_public.access_tokens set read_only = false",
      "delete from app_public.access_tokens",
    ])
      await expect(run(as("ada"), text)).rejects.toMatchObject({ code: "42501" });
    expect(await bearer(made.token)).toHaveLength(1);
  });

  test.each([
    [
      "a scope that is not a permission",
      { scopes: ["lead.read", "lead.fly"] },
      { code: "BAD_USER_INPUT", field: "scopes" },
    ],
    ["all of no kind", { scopes: ["nothing.*"] }, { code: "BAD_USER_INPUT", field: "scopes" }],
    ["all of everything", { scopes: ["*"] }, { code: "BAD_USER_INPUT", field: "scopes" }],
    ["a list in one scope", { scopes: ["lead.read,org.owner"] }, { code: "BAD_USER_INPUT", field: "scopes" }],
    ["null as scope", { scopes: [null] }, { code: "BAD_USER_INPUT", field: "scopes" }],
    ["no scope", { scopes: [] }, { code: "BAD_USER_INPUT", field: "scopes" }],
    ["the past", { expires_at: new Date(0) }, { code: "BAD_USER_INPUT", field: "expiresAt" }],
    ["infinity", { expires_at: "infinity" }, { code: "BAD_USER_INPUT", field: "expiresAt" }],
    ["no name", { name: null }, { code: "BAD_USER_INPUT", field: "name" }],
    ["a blank name", { name: "  " }, { code: "BAD_USER_INPUT", field: "name" }],
    ["a name of 301 characters", { name: "x".repeat(301) }, { code: "BAD_USER_INPUT", field: "name" }],
    [
      "an unknown organization",
      { organization_id: "00000000-0000-7000-8000-000000000000" },
      { code: "NOT_FOUND", field: "organizationId" },
    ],
  ])("refuses %s", async (_name, members, error) => {
    expect(await refusal(create(as("ada"), members))).toMatchObject(error);
  });

  test("another's organization is refused like an unknown one", async () => {
    const foreign = await refusal(create(as("eve"), { organization_id: await acme() }));
    expect(foreign).toEqual(await refusal(create(as("eve"), { organization_id: people.eve })));
  });

  test("a read-only token writes nothing", async () => {
    const claims = await claimsOf((await create(as("ada"), { read_only: true })).token);
    expect(claims.readOnly).toBe(true);
    expect(await run(claims, "select id from app_public.viewer()")).toEqual([{ id: people.ada }]);
    for (const text of [
      "select app_public.create_access_token('x')",
      `select app_public.revoke_access_token('${claims.tokenId}')`,
      `select app_public.update_user('{"id": "${people.ada}", "title": "X"}')`,
      "select app_public.create_user_otp('ada@example.com')",
      "update app_public.users set title = 'X'",
    ])
      await expect(run(claims, text)).rejects.toMatchObject({ code: "25006" });
  });

  test("a restricted token cannot create one with more permissions, for another organization or for longer", async () => {
    const organizationId = await acme();
    const limits = {
      scopes: ["lead.read", "inventory.*"],
      organization_id: organizationId,
      expires_at: soon(10),
    };
    const parent = await create(as("ada"), limits);
    const claims = await claimsOf(parent.token);
    expect(claims).toMatchObject({ organizationId, scopes: ["inventory.*", "lead.read"] });

    const child = await create(claims);
    expect(child).toMatchObject({
      organization_id: organizationId,
      scopes: parent.scopes,
      expires_at: parent.expires_at,
    });
    expect(await create(claims, { scopes: ["inventory.read"], expires_at: soon(5) })).toMatchObject({
      scopes: ["inventory.read"],
    });

    for (const scopes of [["lead.*"], ["lead.write"], ["lead.read", "org.owner"]])
      expect(await refusal(create(claims, { scopes }))).toMatchObject({ code: "FORBIDDEN" });
    expect(await refusal(create(claims, { expires_at: soon(60) }))).toMatchObject({
      code: "FORBIDDEN",
      field: "expiresAt",
    });
    const other = await one("insert into app_public.organizations (name) values ('Other') returning id");
    await owner.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, 'OWNER')",
      [other.id, people.ada],
    );
    expect(await refusal(create(claims, { organization_id: other.id }))).toMatchObject({ code: "NOT_FOUND" });

    // It sees itself and the tokens that it created, and ends with them.
    const own = await run(claims, "select id from app_public.access_tokens");
    expect(own).toHaveLength(3);
    const unrelated = await create(as("ada"));
    expect(await refusal(revoke(claims, unrelated.id))).toMatchObject({ code: "NOT_FOUND" });
    expect(
      await refusal(run(claims, "select app_public.update_user($1)", [{ id: people.ada, title: "X" }])),
    ).toMatchObject({ code: "FORBIDDEN" });
    await revoke(as("ada"), parent.id);
    expect(await bearer(child.token)).toEqual([]);
    expect(await bearer(unrelated.token)).toHaveLength(1);
  });

  test("the time of last use is stored by the minute, and does not change the record's version", async () => {
    const made = await create(as("ada"));
    const used = async () =>
      (
        await run<{ at: Date | null }>(
          as("ada"),
          "select app_public.access_tokens_last_used_at(t) as at from app_public.access_tokens t where id = $1",
          [made.id],
        )
      )[0]!.at;
    expect(await used()).toBeNull();
    await Promise.all(Array.from({ length: 10 }, () => bearer(made.token)));
    const at = await used();
    expect(at!.getTime() % 60_000).toBe(0);
    const row = () =>
      one(
        "select xmin from app_private.access_token_secrets where token_id = $1 and last_used_at > now() - interval '2 minutes'",
        [made.id],
      );
    expect(await row()).toBeDefined();
    expect(await one("select version from app_public.access_tokens where id = $1", [made.id])).toEqual({
      version: 1,
    });
    expect(await one("select count(*)::int from app_public.events where subject_id = $1", [made.id])).toEqual(
      { count: 1 },
    );
  });

  test("at most 100 are valid, also with concurrent creation", async () => {
    const results = await Promise.allSettled(Array.from({ length: 110 }, () => create(as("sam"))));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(100);
    expect(await refusal(create(as("sam")))).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 100 });
    await owner.query("update app_public.access_tokens set expires_at = now() where user_id = $1", [
      people.sam,
    ]);
    await expect(create(as("sam"))).resolves.toBeDefined();
  });
});

test("a login token ends with the user", async () => {
  const { session_epoch: epoch } = await one(
    "select session_epoch from app_private.user_passwords where user_id = $1",
    [people.sam],
  );
  expect(await session("sam", epoch)).toHaveLength(1);
  for (const status of ["SUSPENDED", "DEACTIVATED", "INVITED"]) {
    await owner.query("update app_public.users set status = $2 where id = $1", [people.sam, status]);
    expect(await session("sam", epoch)).toEqual([]);
  }
  await owner.query("update app_public.users set status = 'ACTIVE', deleted_at = now() where id = $1", [
    people.sam,
  ]);
  expect(await session("sam", epoch)).toEqual([]);
});
