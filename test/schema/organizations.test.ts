import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, refusal, type People } from "../harness/people.ts";

let database: TestDatabase;
let people: People;
let ada: string, bob: string, mia: string, eve: string;
let homes: string, other: string;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  [ada, bob, mia, eve] = [
    await people.person("Ada"),
    await people.person("Bob"),
    await people.person("Mia"),
    await people.person("Eve"),
  ];
  homes = await people.organization("Homes", { [ada]: "OWNER", [bob]: "ADMIN", [mia]: "MEMBER" });
  other = await people.organization("Other", { [eve]: "OWNER" });
});

afterAll(async () => {
  await people.end();
  await database.drop();
});

describe("create_organization", () => {
  const create =
    "select * from app_public.create_organization(name => $1, description => '  ', email => 'Desk@Example.com')";

  test("makes its creator the owner", async () => {
    const [made] = await people.as<{ id: string; slug: string; email: string; description: null }>(
      mia,
      create,
      [" New Homes "],
    );
    expect(made).toMatchObject({
      name: "New Homes",
      slug: "new-homes",
      kind: "DEVELOPER",
      description: null,
      time_zone: "UTC",
    });
    expect(made!.email).toBe("desk@example.com");
    const members = await people.as(
      mia,
      "select user_id, role from app_public.organization_user_connections where organization_id = $1",
      [made!.id],
    );
    expect(members).toEqual([{ user_id: mia, role: "OWNER" }]);
  });

  test("refuses visitors, a missing name, a taken slug and a restricted token", async () => {
    expect(await refusal(people.as(null, create, ["X"]))).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(await refusal(people.as(mia, create, [null]))).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "name",
    });
    expect(
      await refusal(people.as(mia, "select app_public.create_organization('Homes', slug => 'homes')")),
    ).toMatchObject({
      code: "CONFLICT",
      field: "slug",
    });
    expect(await refusal(people.as(mia, create, ["X"], { organization_id: homes }))).toMatchObject({
      code: "FORBIDDEN",
    });
    expect(await refusal(people.as(mia, create, ["X"], { scopes: "lead.read" }))).toMatchObject({
      code: "FORBIDDEN",
    });
  });
});

describe("update_organization_member_role", () => {
  const change = "select role from app_public.update_organization_member_role($1, $2, $3)";

  test("is limited to owners", async () => {
    expect(await people.as(ada, change, [homes, mia, "ADMIN"])).toEqual([{ role: "ADMIN" }]);
    await people.as(ada, change, [homes, mia, "MEMBER"]);
    for (const who of [bob, mia])
      expect(await refusal(people.as(who, change, [homes, mia, "OWNER"]))).toMatchObject({
        code: "FORBIDDEN",
        permission: "org.owner",
      });
    expect(await refusal(people.as(eve, change, [homes, mia, "MEMBER"]))).toMatchObject({
      code: "NOT_FOUND",
    });
    expect(await refusal(people.as(null, change, [homes, mia, "MEMBER"]))).toMatchObject({
      code: "UNAUTHENTICATED",
    });
    expect(await refusal(people.as(ada, change, [homes, eve, "MEMBER"]))).toMatchObject({
      code: "NOT_FOUND",
      field: "userId",
    });
    expect(await refusal(people.as(ada, change, [homes, mia, null]))).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "role",
    });
  });

  test("keeps the last owner", async () => {
    expect(await refusal(people.as(ada, change, [homes, ada, "MEMBER"]))).toMatchObject({ code: "CONFLICT" });
    expect(
      await refusal(people.as(ada, "select app_public.remove_organization_member($1, $2)", [homes, ada])),
    ).toMatchObject({
      code: "CONFLICT",
    });
  });

  test("keeps one of two owners who demote each other concurrently", async () => {
    for (let round = 0; round < 5; round++) {
      const shared = await people.organization("Shared", { [ada]: "OWNER", [bob]: "OWNER" });
      const answers = await Promise.allSettled([
        people.as(ada, change, [shared, bob, "MEMBER"]),
        people.as(bob, change, [shared, ada, "MEMBER"]),
      ]);
      expect(answers.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      const { rows } = await people.owner.query(
        "select count(*)::int as owners from app_public.organization_user_connections where organization_id = $1 and role = 'OWNER'",
        [shared],
      );
      expect(rows).toEqual([{ owners: 1 }]);
    }
  });
});

describe("remove_organization_member", () => {
  const remove = `select (organization).id as organization, ("user").id as "user", reassigned_leads as leads,
    array(select p.title::text from unnest(removed_projects) p) as projects from app_public.remove_organization_member($1, $2)`;

  test("unassigns the member's leads", async () => {
    const { rows } = await people.owner.query<{ id: string }>(
      "insert into app_public.projects (organization_id, title) values ($1, 'North'), ($1, 'South') returning id",
      [homes],
    );
    await people.owner.query(
      "insert into app_public.leads (organization_id, project_id, name, assignee_id) values ($1, $2, 'One', $3), ($1, $2, 'Two', $3), ($1, $2, 'Three', $4)",
      [homes, rows[0]!.id, mia, bob],
    );
    for (const [who, code] of [
      [bob, "FORBIDDEN"],
      [mia, "FORBIDDEN"],
      [eve, "NOT_FOUND"],
      [null, "UNAUTHENTICATED"],
    ] as const)
      expect(await refusal(people.as(who, remove, [homes, mia]))).toMatchObject({ code });
    expect(await people.as(ada, remove, [homes, mia])).toEqual([
      { organization: homes, user: mia, leads: 2, projects: ["North"] },
    ]);
    expect(await people.as(mia, "select from app_public.organizations where id = $1", [homes])).toEqual([]);
    expect(await refusal(people.as(ada, remove, [homes, mia]))).toMatchObject({ code: "NOT_FOUND" });
    await people.owner.query(
      "insert into app_public.organization_user_connections (organization_id, user_id) values ($1, $2)",
      [homes, mia],
    );
  });
});

describe("update_organization_notifications", () => {
  const change = `select to_jsonb(notifications) as n from app_public.update_organization_notifications($1,
    jsonb_populate_record(null::app_public.notification_settings, $2))`;

  test("changes the given fields of the viewer's own settings", async () => {
    const [first] = await people.as<{ n: object }>(mia, change, [homes, { task: false }]);
    expect(first!.n).toMatchObject({ task: false, new_lead: true, offer: true });
    const [second] = await people.as<{ n: object }>(mia, change, [homes, { task: true, offer: false }]);
    expect(second!.n).toMatchObject({ task: true, new_lead: true, offer: false });
    const untouched = await people.as(
      ada,
      "select to_jsonb(notifications) as n from app_public.user_organization_connections where organization_id = $1",
      [homes],
    );
    expect(untouched).toMatchObject([{ n: { offer: true } }]);
  });

  test("refuses non-members", async () => {
    expect(await refusal(people.as(eve, change, [homes, {}]))).toMatchObject({ code: "NOT_FOUND" });
    await people.owner.query("update app_public.organizations set has_public_project = true where id = $1", [
      homes,
    ]);
    expect(await refusal(people.as(eve, change, [homes, {}]))).toMatchObject({
      code: "FORBIDDEN",
      permission: "org.member",
    });
    await people.owner.query("update app_public.organizations set has_public_project = false where id = $1", [
      homes,
    ]);
    expect(await refusal(people.as(null, change, [homes, {}]))).toMatchObject({ code: "UNAUTHENTICATED" });
  });
});

describe("contact_organization and contact_service", () => {
  beforeEach(() =>
    people.owner.query("delete from graphile_worker._private_jobs; delete from app_private.limit_uses"),
  );

  const contact = "select id from app_public.contact_organization($1, 'Vi', $2, 'Hello')";
  const jobs = async (task: string) =>
    (
      await people.owner.query(
        "select payload from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = $1",
        [task],
      )
    ).rows;

  test("reach organizations that are visible to the sender", async () => {
    expect(await people.as(mia, contact, [homes, "Vi@Example.com"])).toEqual([{ id: homes }]);
    expect(await refusal(people.as(null, contact, [homes, "vi@example.com"]))).toMatchObject({
      code: "NOT_FOUND",
    });
    expect(await refusal(people.as(mia, contact, [other, "vi@example.com"]))).toMatchObject({
      code: "NOT_FOUND",
    });
    await people.owner.query("update app_public.organizations set has_public_project = true where id = $1", [
      other,
    ]);
    expect(await people.as(null, contact, [other, "vi@example.com"])).toEqual([{ id: other }]);
    expect(await jobs("organization__contacted")).toHaveLength(2);
  });

  test("refuse invalid values, and keep the text out of the job", async () => {
    const write = "select app_public.contact_service($1, $2, $3) as done";
    expect(await refusal(people.as(null, write, ["", "v@example.com", "Hi"]))).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "name",
    });
    expect(await refusal(people.as(null, write, ["V", null, "Hi"]))).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "email",
    });
    expect(await refusal(people.as(null, write, ["V", "v@example.com", "x".repeat(20_001)]))).toMatchObject({
      field: "message",
    });
    expect(await people.as(null, write, ["V", "v@example.com", "Hi"])).toEqual([{ done: true }]);
    expect(await jobs("service__contacted")).toEqual([{ payload: { id: expect.any(String) } }]);
  });

  test("count by sender and by network, also in parallel", async () => {
    const write = "select app_public.contact_service('V', $1, 'Hi')";
    const attempts = await Promise.allSettled(
      Array.from({ length: 12 }, () => people.as(null, write, ["flood@example.com"])),
    );
    expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    const refused = await refusal(people.as(null, write, ["Flood@example.com"]));
    expect(refused.code).toBe("RATE_LIMITED");
    expect(refused.retryAfterSeconds).toBeGreaterThan(3000);
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(3600);

    for (let n = 0; n < 20; n++) await people.as(null, write, [`v${n}@example.com`], { ip: "192.0.2.1" });
    expect(await refusal(people.as(null, write, ["v99@example.com"], { ip: "192.0.2.1" }))).toMatchObject({
      code: "RATE_LIMITED",
    });
    await people.as(null, write, ["v99@example.com"], { ip: "192.0.2.2" });
  });

  test("permit the sender again after the window", async () => {
    const write = "select app_public.contact_service('V', 'flood@example.com', 'Hi')";
    for (let n = 0; n < 5; n++) await people.as(null, write);
    expect(await refusal(people.as(null, write))).toMatchObject({ code: "RATE_LIMITED" });
    await people.owner.query("update app_private.limit_uses set expires_at = expires_at - interval '1 hour'");
    await people.as(null, write);
    // The slot is used again; a job deletes the other expired ones.
    const { rows } = await people.owner.query(
      `select count(*) filter (where expires_at > now())::int as held, count(*)::int as slots from app_private.limit_uses
       where key = app_private.limit_key('contact.sender', 'flood@example.com')`,
    );
    expect(rows).toEqual([{ held: 1, slots: 5 }]);
  });
});
