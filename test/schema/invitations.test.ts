import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, refusal, type People } from "../harness/people.ts";

let database: TestDatabase;
let people: People;
let ada: string, bob: string, mia: string, eve: string, nia: string;
let homes: string;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  ada = await people.person("Ada");
  bob = await people.person("Bob");
  mia = await people.person("Mia");
  eve = await people.person("Eve");
  nia = await people.person("Nia");
  homes = await people.organization("Homes", { [ada]: "OWNER", [bob]: "ADMIN", [mia]: "MEMBER" });
  await people.organization("Other", { [eve]: "OWNER" });
});

afterAll(async () => {
  await people.end();
  await database.drop();
});

interface Invite {
  id: string;
  status: string;
  send_count: number;
  expires_at: Date;
}

const invite = `select i.id, app_public.organization_invites_status(i) as status, i.role, i.email, i.send_count, i.expires_at
  from app_public.create_organization_invite($1, $2, $3) i`;
const accept = "select organization_id, user_id, role from app_public.accept_organization_invite($1)";
const unusable = {
  code: "BAD_USER_INPUT",
  field: "token",
  message: expect.stringContaining("unknown, used, expired or revoked"),
};

/** Executes the function of the task; returns the token for the mail. */
async function tokenOf({ id, send_count }: Invite): Promise<string | undefined> {
  const { rows } = await people.owner.query("select token from app_private.issue_invite_token($1, $2)", [
    id,
    send_count,
  ]);
  return rows[0]?.token;
}

async function invited(email: string, role = "MEMBER", by = ada): Promise<Invite> {
  const [made] = await people.as<Invite>(by, invite, [homes, email, role]);
  return made!;
}

test("owners and administrators invite, and only owners invite owners", async () => {
  expect(await invited("A1@Example.com", "ADMIN", bob)).toMatchObject({
    status: "PENDING",
    role: "ADMIN",
    email: "a1@example.com",
    send_count: 1,
  });
  expect(await invited("o1@example.com", "OWNER", ada)).toMatchObject({ role: "OWNER" });
  const call = (who: string | null, email: string, role: string | null = "MEMBER") =>
    refusal(people.as(who, invite, [homes, email, role]));
  expect(await call(bob, "o2@example.com", "OWNER")).toMatchObject({
    code: "FORBIDDEN",
    permission: "org.owner",
  });
  // An administrator cannot change an owner's offer either.
  expect(await call(bob, "o1@example.com")).toMatchObject({ code: "FORBIDDEN", permission: "org.owner" });
  expect(await call(mia, "x@example.com")).toMatchObject({ code: "FORBIDDEN", permission: "org.admin" });
  expect(await call(eve, "x@example.com")).toMatchObject({ code: "NOT_FOUND" });
  expect(await call(null, "x@example.com")).toMatchObject({ code: "UNAUTHENTICATED" });
  expect(await call(ada, "Mia@example.com")).toMatchObject({
    code: "CONFLICT",
    field: "email",
    existingId: expect.any(String),
  });
});

test("invitations are visible to owners and administrators only", async () => {
  const query = "select id from app_public.organization_invites";
  expect((await people.as(ada, query)).length).toBeGreaterThan(0);
  expect((await people.as(bob, query)).length).toBeGreaterThan(0);
  for (const who of [mia, eve, null]) expect(await people.as(who, query)).toEqual([]);
});

test("an address with a pending invitation gets it again, with a new token, also in parallel", async () => {
  const first = await invited("again@example.com");
  const token = await tokenOf(first);
  const second = await invited("Again@example.com", "ADMIN");
  expect(second).toMatchObject({ id: first.id, send_count: 2, role: "ADMIN" });
  expect(await tokenOf(first)).toBeUndefined();
  expect(await refusal(people.as(nia, accept, [token]))).toMatchObject(unusable);

  const both = await Promise.all([invited("both@example.com"), invited("both@example.com")]);
  expect(both[0]!.id).toBe(both[1]!.id);
  expect(both.map(({ send_count }) => send_count).sort()).toEqual([1, 2]);
});

test("the token is only stored as a hash, and is in no job", async () => {
  const made = await invited("hash@example.com");
  const token = (await tokenOf(made))!;
  expect(token).toMatch(/^plat_invite_[\w-]{43}$/);
  const { rows } = await people.owner.query(
    `select encode(t.token_hash, 'hex') as hash, j.payload
     from app_private.organization_invite_tokens t, graphile_worker._private_jobs j
     where t.invite_id = $1 and j.payload ->> 'id' = $1::text`,
    [made.id],
  );
  expect(rows).toEqual([
    {
      hash: createHash("sha256").update(token).digest("hex"),
      payload: { id: made.id, send_count: 1, context: { organizationId: expect.any(String) } },
    },
  ]);
});

test("only the invited address accepts, and only once", async () => {
  const made = await invited("nia@example.com", "ADMIN");
  const token = await tokenOf(made);
  expect(await refusal(people.as(null, accept, [token]))).toMatchObject({ code: "UNAUTHENTICATED" });
  expect(await refusal(people.as(eve, accept, [token]))).toMatchObject({ code: "FORBIDDEN" });
  expect(await refusal(people.as(nia, accept, [token], { scopes: "lead.read" }))).toMatchObject({
    code: "FORBIDDEN",
  });
  const attempts = await Promise.allSettled([
    people.as(nia, accept, [token]),
    people.as(nia, accept, [token]),
  ]);
  expect(attempts.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(attempts.find(({ status }) => status === "fulfilled")).toMatchObject({
    value: [{ organization_id: homes, user_id: nia, role: "ADMIN" }],
  });
  expect(await refusal(people.as(nia, accept, [token]))).toMatchObject(unusable);
  const [after] = await people.as(
    ada,
    "select i.*, app_public.organization_invites_status(i) as now from app_public.organization_invites i where id = $1",
    [made.id],
  );
  expect(after).toMatchObject({ now: "ACCEPTED", accepted_by_id: nia, accepted_at: expect.any(Date) });
  const { rows } = await people.owner.query(
    "select u.email_verified_at, m.invited_by_id from app_public.users u join app_public.organization_user_connections m on m.user_id = u.id where u.id = $1",
    [nia],
  );
  expect(rows).toEqual([{ email_verified_at: expect.any(Date), invited_by_id: ada }]);
});

test("unknown, expired and revoked tokens have the same refusal", async () => {
  const late = await people.person("Late");
  const made = await invited("late@example.com");
  const token = await tokenOf(made);
  for (const guess of ["", "plat_invite_", "x".repeat(10_000), null])
    expect(await refusal(people.as(late, accept, [guess]))).toMatchObject(unusable);

  await people.owner.query("update app_public.organization_invites set expires_at = now() where id = $1", [
    made.id,
  ]);
  expect(await refusal(people.as(late, accept, [token]))).toMatchObject(unusable);
  const status =
    "select app_public.organization_invites_status(i) as status from app_public.organization_invites i where id = $1";
  expect(await people.as(ada, status, [made.id])).toEqual([{ status: "EXPIRED" }]);
  expect(
    await refusal(people.as(ada, "select app_public.resend_organization_invite($1)", [made.id])),
  ).toMatchObject({ code: "CONFLICT" });

  const next = await invited("late@example.com");
  expect(next.id).not.toBe(made.id);
  const nextToken = await tokenOf(next);
  const revoke = "select revoked_at from app_public.revoke_organization_invite($1)";
  for (const who of [mia, eve])
    expect(await refusal(people.as(who, revoke, [next.id]))).toMatchObject({ code: "NOT_FOUND" });
  expect(await people.as(bob, revoke, [next.id])).toEqual([{ revoked_at: expect.any(Date) }]);
  expect(await refusal(people.as(late, accept, [nextToken]))).toMatchObject(unusable);
  expect(await refusal(people.as(bob, revoke, [next.id]))).toMatchObject({ code: "CONFLICT" });
});

test("sending again creates a new token; only owners can do so for an owner's invitation", async () => {
  const resend = "select id, send_count, expires_at from app_public.resend_organization_invite($1)";
  const made = await invited("slow@example.com", "OWNER");
  expect(await refusal(people.as(bob, resend, [made.id]))).toMatchObject({
    code: "FORBIDDEN",
    permission: "org.owner",
  });
  const [again] = await people.as<Invite>(ada, resend, [made.id]);
  expect(again).toMatchObject({ id: made.id, send_count: 2 });
  for (let n = 3; n <= 5; n++) await people.as(ada, resend, [made.id]);
  expect(await refusal(people.as(ada, resend, [made.id]))).toMatchObject({
    code: "RATE_LIMITED",
    retryAfterSeconds: expect.any(Number),
  });
});

test("every step writes an event of the organization", async () => {
  const { rows } = await people.owner.query<{ name: string }>(
    "select distinct name from app_public.events where organization_id = $1 and subject_type = 'organization_invite' order by name",
    [homes],
  );
  expect(rows.map(({ name }) => name)).toEqual([
    "organization_invite.created",
    "organization_invite.resent",
    "organization_invite.status_changed",
    "organization_invite.updated",
  ]);
});
