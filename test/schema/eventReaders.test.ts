/** Visibility of events by kind of viewer, also after permissions have changed since the event. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";

let database: TestDatabase;
let people: People;
let organization: string;
/** Users of the demo by their user name or address. */
const users: Record<string, string> = {};

beforeAll(async () => {
  database = await createTestDatabase("demo");
  people = createPeople(database.ownerUrl);
  const { rows } = await people.owner.query<{ id: string; email: string }>(
    "select u.id, i.email from app_public.users u join app_hidden.user_identities i on i.user_id = u.id",
  );
  for (const { id, email } of rows) users[email.split("@", 1)[0]!] = id;
  organization = (await one("select id from app_public.organizations where slug = 'larkfield-homes'")).id;
}, 120_000);
afterAll(async () => {
  await people.end();
  await database.drop();
});

const one = async (text: string, values: unknown[] = []) => (await people.owner.query(text, values)).rows[0];

interface Viewer {
  name: string;
  settings?: Record<string, string>;
}
const viewers: Viewer[] = [
  ...["demo", "amir", "mei", "jonas", "sofia", "laura"].map((name) => ({ name })),
  {
    name: "demo",
    settings: { token_id: "00000000-0000-7000-8000-000000000001", scopes: "org.member,inventory.read" },
  },
  {
    name: "demo",
    settings: { token_id: "00000000-0000-7000-8000-000000000001", scopes: "org.member,lead.read,sale.read" },
  },
  {
    name: "mei",
    settings: { token_id: "00000000-0000-7000-8000-000000000001", scopes: "org.member,buyer.read" },
  },
];

/** The number of readable events by record type. */
type Seen = Record<string, number>;
async function seen(
  viewer: string | null,
  settings: Record<string, string> = {},
  where = "true",
): Promise<Seen> {
  const rows = await people.as<{ kind: string; n: number }>(
    viewer && users[viewer]!,
    `select subject_type as kind, count(*)::int as n from app_hidden.masked_events where ${where} group by 1 order by 1`,
    [],
    settings,
  );
  return Object.fromEntries(rows.map(({ kind, n }) => [kind, n]));
}

/**
 * For each viewer, the ids of the events that the policy permits, and of those for which the function for
 * single events returns true.
 */
async function compare(): Promise<void> {
  const client = await people.owner.connect();
  const ids = async ({ name, settings = {} }: Viewer) => {
    await client.query("savepoint viewer");
    await client.query("select set_config('plat.' || s.key, s.value, true) from json_each_text($1) s", [
      JSON.stringify({ user_id: users[name], ...settings }),
    ]);
    await client.query("set local role plat_user");
    const { rows } = await client.query<{ id: string }>("select id from app_public.events order by id");
    await client.query("rollback to viewer");
    return rows.map(({ id }) => id);
  };
  try {
    await client.query("begin");
    const joined: string[][] = [];
    for (const viewer of viewers) joined.push(await ids(viewer));
    await client.query("drop policy auditors_and_seers_of_subject on app_public.events");
    // All types except for one without events here.
    await client.query("select app_private.make_event_policy(array['tracker'])");
    for (const [n, viewer] of viewers.entries()) expect(joined[n]).toEqual(await ids(viewer));
    expect(joined[0]!.length).toBeGreaterThan(100);
  } finally {
    await client.query("rollback");
    client.release();
  }
}

const all = (kind: string, where = "true") =>
  one(
    `select count(*)::int as n from app_public.events where organization_id = $1 and subject_type = '${kind}' and ${where}`,
    [organization],
  ).then(({ n }) => n as number);

describe("each viewer reads", () => {
  test("the same events, whether the policy joins a type or calls the function for each event", compare);

  test("as an owner or admin, all of the organization", async () => {
    for (const name of ["demo", "amir"])
      expect(await seen(name, {}, `organization_id = '${organization}'`)).toMatchObject({
        lead: await all("lead"),
        unit: await all("unit"),
        member: await all("member"),
      });
  });

  test("as a member, those of visible records", async () => {
    const events = await seen("mei", {}, `organization_id = '${organization}'`);
    expect(events.unit).toBe(await all("unit"));
    expect(events.lead).toBeGreaterThan(0);
    for (const kind of ["member", "organization_invite", "negotiation", "charge"])
      expect(events).not.toHaveProperty(kind);
  });

  test("as a member of an agency, those of own leads and of the inventory of the project", async () => {
    const events = await seen("sofia", {}, `organization_id = '${organization}'`);
    expect(events.lead ?? 0).toBeLessThan(await all("lead"));
    for (const kind of ["member", "task", "organization_invite", "charge"])
      expect(events).not.toHaveProperty(kind);
  });

  test("with a restricted token, those within its scopes", async () => {
    const { settings } = viewers[6]!;
    const events = await seen("demo", settings, `organization_id = '${organization}'`);
    expect(events.unit).toBe(await all("unit"));
    for (const kind of ["lead", "buyer", "reservation", "charge", "member"])
      expect(events).not.toHaveProperty(kind);
  });

  test("as a buyer, or without a token, none of the organization", async () => {
    expect(await seen("laura", {}, `organization_id = '${organization}'`)).toEqual({});
    await expect(people.as(null, "select id from app_public.events")).resolves.toEqual([]);
  });
});

describe("when permissions change after an event was written,", () => {
  test("the events of a lead follow its assignee", async () => {
    const lead = await one(
      `select l.id, l.assignee_id from app_public.leads l where l.assignee_id = $1 and l.deleted_at is null limit 1`,
      [users.sofia],
    );
    const where = `subject_id = '${lead.id}'`;
    expect((await seen("sofia", {}, where)).lead).toBeGreaterThan(0);
    await people.owner.query("update app_public.leads set assignee_id = $2 where id = $1", [
      lead.id,
      users.mei,
    ]);
    expect(await seen("sofia", {}, where)).toEqual({});
    expect((await seen("mei", {}, where)).lead).toBeGreaterThan(0);
    await people.owner.query("update app_public.leads set assignee_id = $2 where id = $1", [
      lead.id,
      users.sofia,
    ]);
    expect((await seen("sofia", {}, where)).lead).toBeGreaterThan(0);
  });

  test("those of a deleted record are visible to readers of the audit trail", async () => {
    const { id } = await one(
      "select id from app_public.leads where organization_id = $1 and deleted_at is null and status = 'NEW' limit 1",
      [organization],
    );
    const where = `subject_id = '${id}'`;
    expect((await seen("mei", {}, where)).lead).toBeGreaterThan(0);
    await people.owner.query("delete from app_public.leads where id = $1", [id]);
    expect(await seen("mei", {}, where)).toEqual({});
    expect((await seen("demo", {}, where)).lead).toBeGreaterThan(1);
  });

  test("those of others' leads become invisible to a member when the project becomes private", async () => {
    const { id } = await one(
      `select p.id from app_public.projects p where p.organization_id = $1 and p.lead_assignment <> 'PRIVATE'
         and exists (select from app_public.leads l where l.project_id = p.id and l.assignee_id is distinct from $2 and l.deleted_at is null) limit 1`,
      [organization, users.mei],
    );
    const others = `subject_type = 'lead' and project_id = '${id}' and subject_id in (select id from app_public.leads where assignee_id is distinct from '${users.mei}')`;
    const own = `subject_type = 'lead' and project_id = '${id}' and subject_id in (select id from app_public.leads where assignee_id = '${users.mei}')`;
    const before = await seen("mei", {}, own);
    expect((await seen("mei", {}, others)).lead).toBeGreaterThan(0);
    await people.owner.query("update app_public.projects set lead_assignment = 'PRIVATE' where id = $1", [
      id,
    ]);
    expect(await seen("mei", {}, others)).toEqual({});
    expect(await seen("mei", {}, own)).toEqual(before);
  });

  test("an agency whose affiliation ends reads none", async () => {
    const where = `organization_id = '${organization}' and project_id is not null`;
    expect(await seen("sofia", {}, where)).toMatchObject({
      lead: expect.any(Number),
      unit: expect.any(Number),
    });
    await people.owner.query(
      `update app_public.leads set assignee_id = null where organization_id = $1 and assignee_id in (
         select m.user_id from app_public.organization_user_connections m where m.organization_id <> $1)`,
      [organization],
    );
    await people.owner.query(
      "delete from app_public.project_organizations where owner_id = $1 and organization_id <> $1",
      [organization],
    );
    expect(await seen("sofia", {}, where)).toEqual({});
  });

  test("a member who becomes an admin reads all, and none after leaving", async () => {
    const where = `organization_id = '${organization}'`;
    const role = (name: string) =>
      people.owner.query(
        "update app_public.organization_user_connections set role = $3 where organization_id = $1 and user_id = $2",
        [organization, users.jonas, name],
      );
    await role("ADMIN");
    expect((await seen("jonas", {}, where)).member).toBe(await all("member"));
    await role("MEMBER");
    expect(await seen("jonas", {}, where)).not.toHaveProperty("member");
    await people.owner.query(
      "delete from app_public.organization_user_connections where organization_id = $1 and user_id = $2",
      [organization, users.jonas],
    );
    expect(await seen("jonas", {}, where)).toEqual({});
  });

  test("the policy and the function agree on each event", compare);
});
