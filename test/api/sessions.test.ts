import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { AskOptions, Person } from "../harness/api.ts";
import { mutationOf } from "../harness/records.ts";
import { password } from "../harness/signUp.ts";
import { programOf, startWorld, type World } from "../harness/world.ts";

// Sessions: each is visible to its user only, who can end it; reuse of a refresh token ends the session.

let world: World;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

interface Tokens {
  token: string;
  sessionId: string;
  expiresAt: string;
  refreshToken: string | null;
  refreshExpiresAt: string | null;
  user: { email: string };
}

const fields = "{ token tokenType expiresAt sessionId refreshToken refreshExpiresAt user { email } }";
const login = async (person: Person, input: object = {}, options?: AskOptions): Promise<Tokens> => {
  const answer = await world.anonymous.ask(
    mutationOf("login", fields),
    { input: { username: person.email, password, ...input } },
    options,
  );
  expect(answer.errors).toBeUndefined();
  return answer.data.login;
};
const refresh = mutationOf("refreshSession", fields);
const refreshed = async (refreshToken: string | null): Promise<Tokens> =>
  (await world.anonymous.get(refresh, { input: { refreshToken } })).refreshSession;
const notRefreshed = async (refreshToken: string | null): Promise<string> =>
  (await world.anonymous.refused(refresh, { input: { refreshToken } })).code;
const works = async (token: string): Promise<boolean> =>
  (await world.person(token).ask("{ viewer { id } }")).status === 200;
const sessionsOf = async (token: string): Promise<any[]> =>
  (
    await world
      .person(token)
      .get(
        "{ viewer { sessions { id device network lastNetwork createdAt lastUsedAt expiresAt isCurrent isRefreshable } } }",
      )
  ).viewer.sessions;
const logout = (token: string, input: object = {}) =>
  world.person(token).ask(mutationOf("logout", "{ id sessions { id } }"), { input });
const jobs = async (change: string, id: string | null) =>
  (
    await world.owner.query(
      `select 1 from graphile_worker._private_jobs where payload ->> 'change' = $1 and payload ->> 'user_id' = $2`,
      [change, id],
    )
  ).rowCount;
/** Moves a timestamp of a session back. */
const ago = (column: string, interval: string, sessionId: string) =>
  world.owner.query(
    column.startsWith("r.")
      ? `update app_private.refresh_tokens r set ${column.slice(2)} = ${column} - $1::interval where session_id = $2`
      : `update app_private.sessions set ${column} = ${column} - $1::interval where id = $2`,
    [interval, sessionId],
  );

test("each sign-in is a session, with its program, address, times and whether it is current", async () => {
  const person = await world.signUp("Sue Sessions");
  const first = await login(person, {}, { headers: { "user-agent": "curl/8.5.0" } });
  const second = await login(
    person,
    {},
    { headers: { "user-agent": "Mozilla/5.0 (Windows NT 10.0; rv:132.0) Gecko/20100101 Firefox/132.0" } },
  );
  const sessions = await sessionsOf(second.token);
  expect(sessions).toHaveLength(3);
  const shown = Object.fromEntries(sessions.map((session) => [session.id, session]));
  expect(shown[second.sessionId]).toEqual({
    id: second.sessionId,
    device: "Firefox on Windows",
    network: "127.0.0.1",
    lastNetwork: "127.0.0.1",
    createdAt: expect.any(String),
    lastUsedAt: expect.any(String),
    expiresAt: second.expiresAt,
    isCurrent: true,
    isRefreshable: false,
  });
  expect(shown[first.sessionId]).toMatchObject({ device: "curl", lastUsedAt: null, isCurrent: false });
  expect([second.refreshToken, second.refreshExpiresAt]).toEqual([null, null]);
  // For an access token no session is current, and a restricted one sees none.
  const program = await programOf(world, person, { name: "Script" });
  expect((await sessionsOf(program.token!)).map(({ isCurrent }) => isCurrent)).toEqual([false, false, false]);
  const restricted = await programOf(world, person, { scopes: ["org.member"] });
  expect(await sessionsOf(restricted.token!)).toEqual([]);
});

test("other users cannot see or end them", async () => {
  const before = await sessionsOf(world.ada.token!);
  const document = "query ($id: ID!) { user(id: $id) { id sessions { id } } }";
  expect((await world.owen.get(document, { id: world.ada.id })).user).toEqual({
    id: world.ada.id,
    sessions: [],
  });
  const { errors } = await logout(world.owen.token!, { sessionIds: [before[0].id] });
  expect(errors![0]!.extensions).toMatchObject({ code: "NOT_FOUND", field: "sessionIds" });
  expect(await works(world.ada.token!)).toBe(true);
  expect((await world.anonymous.refused(mutationOf("logout", "{ id }"), { input: {} })).code).toBe(
    "UNAUTHENTICATED",
  );
  const restricted = await programOf(world, world.ada, { scopes: ["lead.read"] });
  expect((await logout(restricted.token!, { others: true })).errors![0]!.extensions.code).toBe("FORBIDDEN");
  const program = await programOf(world, world.ada, {});
  expect((await logout(program.token!)).errors![0]!.extensions).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "sessionIds",
  });
});

test("logout ends the current session, another one, or all others, immediately", async () => {
  const person = await world.signUp("Lou Logout");
  const [one, two, three, four] = [
    await login(person),
    await login(person, { refreshable: true }),
    await login(person),
    await login(person),
  ];
  // The current session.
  const answer = await logout(one.token);
  expect(answer.errors).toBeUndefined();
  expect(answer.data.logout.id).toBe(person.id);
  expect((await world.person(one.token).ask("{ viewer { id } }")).errors![0]!.extensions.code).toBe(
    "UNAUTHENTICATED",
  );
  // Another session, with its refresh token.
  await logout(three.token, { sessionIds: [two.sessionId] });
  expect([await works(two.token), await works(three.token)]).toEqual([false, true]);
  expect(await notRefreshed(two.refreshToken)).toBe("UNAUTHENTICATED");
  // All others, but no access tokens.
  const program = await programOf(world, person, { name: "Script" });
  expect((await logout(four.token, { others: true })).data.logout.sessions).toEqual([{ id: four.sessionId }]);
  expect(await Promise.all([person.token!, three.token, four.token, program.token!].map(works))).toEqual([
    false,
    false,
    true,
    true,
  ]);
  // Again, from the remaining session, and from a later one.
  const five = await login(person);
  await logout(four.token, { others: true });
  expect([await works(five.token), await works(four.token)]).toEqual([false, true]);
  // With an access token, all of them.
  await logout(program.token!, { others: true });
  expect([await works(four.token), await works(program.token!)]).toEqual([false, true]);
});

test("a token from before sessions were stored works, gets a row at its first use, and can be ended", async () => {
  const person = await world.signUp("Fay Former");
  const host = await (globalThis.platHost?.() ?? import("../harness/host.ts"));
  const now = Math.floor(Date.now() / 1000);
  const former = (epoch: number) =>
    host.signLoginToken(JSON.stringify({ sub: person.id, epoch, iat: now, exp: now + 600 }));
  const [used, unused, wrong] = [former(1), former(1), former(2)];
  expect([await works(used), await works(used), await works(wrong)]).toEqual([true, true, false]);
  const [session] = (await sessionsOf(used)).filter(({ isCurrent }) => isCurrent);
  expect(session).toMatchObject({
    device: null,
    network: null,
    lastNetwork: "127.0.0.1",
    expiresAt: new Date((now + 600) * 1000).toISOString().replace(".000Z", ".000000Z"),
  });
  await logout(person.token!, { others: true });
  expect([await works(used), await works(unused), await works(person.token!)]).toEqual([false, false, true]);
  // A token with an unknown session, or another user's, is refused whatever its epoch.
  for (const sid of ["0199f3a0-0000-7000-8000-000000000009", session.id])
    expect(
      await works(
        host.signLoginToken(JSON.stringify({ sub: world.owen.id, epoch: 1, iat: now, exp: now + 600, sid })),
      ),
    ).toBe(false);
});

test("the time of use of a session is updated at most once a minute", async () => {
  const person = await world.signUp("Max Minute");
  const { token } = await login(person);
  await sessionsOf(token);
  const version = async () =>
    (
      await world.owner.query("select xmin::text from app_private.sessions where user_id = $1 order by id", [
        person.id,
      ])
    ).rows;
  const before = await version();
  await sessionsOf(token);
  expect(await version()).toEqual(before);
});

test("a refreshable sign-in has a short-lived token, and a refresh token that can be used once", async () => {
  const person = await world.signUp("Rae Refresh");
  const first = await login(person, { refreshable: true });
  const minutes = (tokens: Tokens) => Math.round((Date.parse(tokens.expiresAt) - Date.now()) / 60_000);
  const days = (tokens: Tokens) =>
    Math.round((Date.parse(tokens.refreshExpiresAt!) - Date.now()) / 86_400_000);
  expect(first.refreshToken).toMatch(/^plat_refresh_[0-9A-Za-z]{43}$/);
  expect([minutes(first), days(first)]).toEqual([15, 14]);
  const second = await refreshed(first.refreshToken);
  expect(second).toMatchObject({ sessionId: first.sessionId, user: { email: person.email } });
  expect(second.refreshToken).not.toBe(first.refreshToken);
  expect([minutes(second), days(second)]).toEqual([15, 14]);
  expect([await works(first.token), await works(second.token)]).toEqual([true, true]);
  expect((await sessionsOf(second.token)).filter(({ isRefreshable }) => isRefreshable)).toMatchObject([
    { id: first.sessionId, isCurrent: true },
  ]);
  // It is not stored as plain text, and not accepted as a bearer token.
  const { rows } = await world.owner.query(
    "select encode(token_sha256, 'hex') as kept, used_at is not null as used from app_private.refresh_tokens where session_id = $1 order by issued_at",
    [first.sessionId],
  );
  expect(rows.map(({ used }) => used)).toEqual([true, false]);
  expect(await works(second.refreshToken!)).toBe(false);
  expect(await notRefreshed(rows[1].kept)).toBe("UNAUTHENTICATED");
  expect(await notRefreshed(`plat_refresh_${"x".repeat(43)}`)).toBe("UNAUTHENTICATED");
});

test("reuse of a refresh token ends its session, including the later token", async () => {
  const person = await world.signUp("Tia Thief");
  const other = await login(person);
  const stolen = await login(person, { refreshable: true });
  const owners = await refreshed(stolen.refreshToken);
  const later = await refreshed(owners.refreshToken);
  expect(await notRefreshed(stolen.refreshToken)).toBe("UNAUTHENTICATED");
  expect(await Promise.all([stolen, owners, later].map(({ token }) => works(token)))).toEqual([
    false,
    false,
    false,
  ]);
  expect(await notRefreshed(later.refreshToken)).toBe("UNAUTHENTICATED");
  expect(await works(other.token)).toBe(true);
  expect(await jobs("SESSION_COPIED", person.id)).toBe(1);
  // The mail is sent once, also after further reuse.
  await notRefreshed(stolen.refreshToken);
  expect(await jobs("SESSION_COPIED", person.id)).toBe(1);
});

test("a lost response is repeated for half a minute, and the lost tokens become invalid", async () => {
  const person = await world.signUp("Lea Lost");
  const first = await login(person, { refreshable: true });
  const lost = await refreshed(first.refreshToken);
  const again = await refreshed(first.refreshToken);
  expect(again.refreshToken).not.toBe(lost.refreshToken);
  const next = await refreshed(again.refreshToken);
  expect(await works(next.token)).toBe(true);
  // Use of the invalidated token is reuse: it was copied.
  expect(await notRefreshed(lost.refreshToken)).toBe("UNAUTHENTICATED");
  expect(await works(next.token)).toBe(false);
  // Later, it no longer counts as a lost response.
  const late = await login(person, { refreshable: true });
  await refreshed(late.refreshToken);
  await ago("r.used_at", "31 seconds", late.sessionId);
  expect(await notRefreshed(late.refreshToken)).toBe("UNAUTHENTICATED");
  expect(await works(late.token)).toBe(false);
});

test("of many concurrent uses of one refresh token, at most one token remains valid", async () => {
  const person = await world.signUp("Pam Parallel");
  const first = await login(person, { refreshable: true });
  await Promise.all(
    Array.from({ length: 8 }, () =>
      world.anonymous.ask(refresh, { input: { refreshToken: first.refreshToken } }),
    ),
  );
  const { rows } = await world.owner.query(
    "select count(*)::int from app_private.refresh_tokens where session_id = $1 and used_at is null",
    [first.sessionId],
  );
  expect(rows[0].count).toBeLessThanOrEqual(1);
});

test("a refreshable session ends when it is idle, and after 90 days in any case", async () => {
  const person = await world.signUp("Ida Idle");
  const idle = await login(person, { refreshable: true });
  await ago("r.expires_at", "14 days", idle.sessionId);
  expect(await notRefreshed(idle.refreshToken)).toBe("UNAUTHENTICATED");
  expect((await sessionsOf(person.token!)).map(({ id }) => id)).not.toContain(idle.sessionId);
  const old = await login(person, { refreshable: true });
  await ago("expires_at", "89 days 23 hours 59 minutes", old.sessionId);
  const last = await refreshed(old.refreshToken);
  expect(Date.parse(last.expiresAt) - Date.now()).toBeLessThan(61_000);
  expect(Date.parse(last.refreshExpiresAt!) - Date.now()).toBeLessThan(61_000);
  await ago("expires_at", "1 minute", old.sessionId);
  expect([await notRefreshed(last.refreshToken), await works(last.token)]).toEqual([
    "UNAUTHENTICATED",
    false,
  ]);
});

test("a change of the password and a suspension end refreshing, too", async () => {
  const person = await world.signUp("Pia Password");
  const phone = await login(person, { refreshable: true });
  await person.get(mutationOf("updatePassword", "{ id }"), {
    input: { currentPassword: password, newPassword: "another horse battery", keepSession: true },
  });
  expect(await notRefreshed(phone.refreshToken)).toBe("UNAUTHENTICATED");
  expect(await works(person.token!)).toBe(true);
  expect(await jobs("PASSWORD_CHANGED", person.id)).toBe(1);
  const kept = await login(person, { refreshable: true, password: "another horse battery" });
  await world.owner.query("update app_public.users set status = 'SUSPENDED' where id = $1", [person.id]);
  expect(await notRefreshed(kept.refreshToken)).toBe("UNAUTHENTICATED");
});

test("a user has at most 100 sessions: the least recently used one ends", async () => {
  const person = await world.signUp("Cy Crowded");
  await world.owner.query(
    `insert into app_private.sessions (user_id, expires_at, last_used_at)
     select $1, now() + interval '1 day', now() + make_interval(secs => n) from generate_series(1, 99) n`,
    [person.id],
  );
  const { token } = await login(person);
  expect(await sessionsOf(token)).toHaveLength(100);
  expect(await works(person.token!)).toBe(false);
});

test("stores 100 ended sessions, in addition to those from before tokens named them", async () => {
  const person = await world.signUp("Ed Ended");
  await world.owner.query(
    `insert into app_private.sessions (user_id, expires_at, ended_at, is_adopted)
     select $1, now() + interval '1 day', now() - make_interval(secs => n), n > 110 from generate_series(1, 115) n`,
    [person.id],
  );
  const ended = async (isAdopted: boolean) =>
    (
      await world.owner.query(
        "select from app_private.sessions where user_id = $1 and ended_at is not null and is_adopted = $2",
        [person.id, isAdopted],
      )
    ).rowCount;
  expect(await ended(false)).toBe(110);
  await login(person);
  expect([await ended(false), await ended(true)]).toEqual([100, 5]);
});

test("limits refreshes of a session per hour", async () => {
  const person = await world.signUp("Rae Rapid");
  const first = await login(person, { refreshable: true });
  const second = await refreshed(first.refreshToken);
  await world.owner.query("insert into app_private.limit_changes values ('session.refresh', 1, 'A test.')");
  const { code, retryAfterSeconds } = await world.anonymous.refused(refresh, {
    input: { refreshToken: second.refreshToken },
  });
  expect(code).toBe("RATE_LIMITED");
  expect(retryAfterSeconds).toBeGreaterThan(0);
  await world.owner.query("delete from app_private.limit_changes where name = 'session.refresh'");
  const third = await refreshed(second.refreshToken);
  expect(await works(third.token)).toBe(true);
});
