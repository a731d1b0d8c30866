import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { enrolled, type Authenticator } from "../harness/secondFactor.ts";
import { password } from "../harness/signUp.ts";
import { join, programOf, startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs } from "../tasks/worker.ts";

// An organization that requires a second factor of its members: after the grace period, members without one
// have no access to it, and the refusal has the reason.

let world: World;
let app: Authenticator;
let lead: string;

beforeAll(async () => {
  world = await startWorld();
  lead = await createIn(world.owen)("createLead", {
    projectId: world.project.id,
    name: "Lena Lead",
    email: "lena@example.com",
    assigneeId: world.max.id,
  });
  await createIn(world.owen)("createTask", { leadId: lead, title: "Call", assigneeId: world.max.id });
  await join(world, world.summit.id, world.ada, "MEMBER");
});
afterAll(() => world.stop());

const require = mutationOf(
  "updateOrganizationSecondFactor",
  "{ id secondFactorRequiredFrom secondFactorGraceDays }",
);
const requires = (who: Person, input: object) =>
  who.ask(require, { input: { organizationId: world.harbour.id, required: true, ...input } });
const dueOf = async (person: Person, organization = world.harbour.id) =>
  (
    await world.owner.query(
      "select second_factor_due_at as due from app_public.organization_user_connections where user_id = $1 and organization_id = $2",
      [person.id, organization],
    )
  ).rows[0].due as Date | null;
const daysUntil = (date: Date | string | null) =>
  Math.round((Number(new Date(date!)) - Date.now()) / 86_400_000);
/** Ends the grace period of all members. */
const later = () =>
  world.owner.query(
    "update app_public.organization_user_connections set second_factor_due_at = now() - interval '1 minute' where second_factor_due_at is not null",
  );
const refusal = { code: "FORBIDDEN", reason: "ORGANIZATION_REQUIRES_SECOND_FACTOR" };

test("only owners with a second factor can require it", async () => {
  expect((await requires(world.owen, {})).errors![0]!.extensions).toMatchObject({
    code: "FORBIDDEN",
    reason: "SECOND_FACTOR_REQUIRED",
  });
  app = await enrolled(world, world.owen);
  for (const [who, code] of [
    [world.ada, "FORBIDDEN"],
    [world.max, "FORBIDDEN"],
    [world.olga, "NOT_FOUND"],
    [world.anonymous, "UNAUTHENTICATED"],
    [await programOf(world, world.owen, { scopes: ["org.owner"] }), "FORBIDDEN"],
  ] as const)
    expect((await requires(who, {})).errors![0]!.extensions.code).toBe(code);
  expect((await requires(world.owen, { graceDays: 91 })).errors![0]!.extensions).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "graceDays",
  });
  expect(await dueOf(world.max)).toBeNull();
});

test("members without one have a grace period, and receive a mail", async () => {
  const outbox = await createOutbox();
  await runJobs(world.database.ownerUrl, outbox.provider);
  await outbox.take();
  const { data } = await requires(world.owen, { graceDays: 10 });
  expect(data.updateOrganizationSecondFactor).toMatchObject({ secondFactorGraceDays: 10 });
  expect(daysUntil(data.updateOrganizationSecondFactor.secondFactorRequiredFrom)).toBe(10);
  expect([await dueOf(world.owen), daysUntil(await dueOf(world.max))]).toEqual([null, 10]);
  await runJobs(world.database.ownerUrl, outbox.provider);
  const mails = await outbox.take();
  expect(mails.map(({ to, subject }) => [to![0]!.address, subject])).toEqual(
    [world.ada.email, world.max.email].map((to) => [to, "Harbour Homes requires a second factor"]),
  );
  // A day before its end, members without a second factor are reminded once.
  const remind = async () => {
    await world.owner.query("select app_private.add_job('second_factors__remind')");
    await runJobs(world.database.ownerUrl, outbox.provider);
    return (await outbox.take()).map(({ to, subject }) => [to![0]!.address, subject]);
  };
  const ends = (hours: number, who: Person) =>
    world.owner.query(
      "update app_public.organization_user_connections set second_factor_due_at = now() + make_interval(hours => $1) where user_id = $2 and organization_id = $3",
      [hours, who.id, world.harbour.id],
    );
  expect(await remind()).toEqual([]);
  await ends(25, world.ada);
  await ends(23, world.max);
  await world.owner.query("update app_public.users set language = 'es' where id = $1", [world.max.id]);
  expect(await remind()).toEqual([
    [world.max.email, "Harbour Homes: queda un día para obtener un segundo factor"],
  ]);
  expect(await remind()).toEqual([]);
  await ends(24, world.ada);
  await ends(-1, world.max);
  expect(await remind()).toEqual([
    [world.ada.email, "Harbour Homes: one day left to set up a second factor"],
  ]);
  await world.owner.query("update app_public.users set language = 'en' where id = $1", [world.max.id]);
  for (const who of [world.ada, world.max]) await ends(240, who);
  await outbox.remove();
  const { rows } = await world.owner.query(
    "select 1 from app_public.events where name = 'organization.second_factor_required' and organization_id = $1",
    [world.harbour.id],
  );
  expect(rows).toHaveLength(1);
  // Until then, nothing changes.
  expect((await world.max.get("{ leads { id } }")).leads).toEqual([{ id: lead }]);
  const own = "{ viewer { organizations { organizationName secondFactorDueAt } } }";
  expect((await world.max.get(own)).viewer.organizations).toEqual([
    { organizationName: "Harbour Homes", secondFactorDueAt: expect.any(String) },
  ]);
  // Deadlines are visible to administrators and the member; non-members do not see the requirement.
  const members = "query ($id: ID!) { organization(id: $id) { members { user { id } secondFactorDueAt } } }";
  const seenBy = async (who: Person) =>
    Object.fromEntries(
      (await who.get(members, { id: world.harbour.id })).organization.members.map((member: any) => [
        member.user.id,
        member.secondFactorDueAt !== null,
      ]),
    );
  const [owen, ada, max] = [world.owen.id!, world.ada.id!, world.max.id!];
  expect(await seenBy(world.owen)).toEqual({ [owen]: false, [ada]: true, [max]: true });
  expect(await seenBy(world.max)).toEqual({ [owen]: false, [ada]: false, [max]: true });
  await world.owner.query("update app_public.projects set visibility = 'PUBLIC' where id = $1", [
    world.project.id,
  ]);
  const outsiders =
    "query ($id: ID!) { organization(id: $id) { secondFactorRequiredFrom secondFactorGraceDays } }";
  for (const who of [world.olga, world.anonymous])
    expect((await who.get(outsiders, { id: world.harbour.id })).organization).toEqual({
      secondFactorRequiredFrom: null,
      secondFactorGraceDays: null,
    });
  await world.owner.query("update app_public.projects set visibility = 'PRIVATE' where id = $1", [
    world.project.id,
  ]);
});

test("refuses all requests after the grace period, with the reason", async () => {
  const program = await programOf(world, world.max, { name: "Script" });
  const scoped = await programOf(world, world.max, {
    scopes: ["lead.read"],
    organizationId: world.harbour.id,
  });
  await later();
  const queries = [
    "{ leads { id } }",
    "{ leadsConnection { nodes { id } } }",
    "{ leadsConnection { totalCount } }",
    "{ projects { id } }",
    `{ lead(id: "${lead}") { id } }`,
    `{ organization(id: "${world.harbour.id}") { id } }`,
    `{ mine: project(id: "${world.project.slug}") { id } }`,
    "query { ...all } fragment all on Query { ... on Query { events { id } } }",
    '{ search(query: "Lena") { __typename } }',
  ];
  for (const who of [world.max, program])
    for (const query of queries) {
      const { data, errors } = await who.ask(query);
      expect([query, data, errors]).toEqual([
        query,
        { [Object.keys(data)[0]!]: null },
        [
          expect.objectContaining({
            path: [Object.keys(data)[0]],
            extensions: expect.objectContaining(refusal),
          }),
        ],
      ]);
      expect(errors![0]!.message).toContain("enrollSecondFactor");
    }
  expect((await scoped.ask("{ leads { id } }")).errors![0]!.extensions).toMatchObject(refusal);
  const mutations: [string, object][] = [
    ["createLead", { projectId: world.project.id, name: "New" }],
    ["updateLead", { id: lead, company: "Mine" }],
    ["createProject", { organizationId: world.harbour.id, title: "Mine", currency: "CAD" }],
    ["createWebhook", { organizationId: world.harbour.id, url: "https://93.184.215.14/hook", events: ["*"] }],
  ];
  for (const [field, input] of mutations)
    expect(await world.max.refused(mutationOf(field, "{ id }"), { input })).toMatchObject(refusal);
  // Their own account remains accessible.
  expect(
    (await world.max.get("{ viewer { email organizations { role secondFactorDueAt } } }")).viewer,
  ).toEqual({
    email: world.max.email,
    organizations: [{ role: "MEMBER", secondFactorDueAt: expect.any(String) }],
  });
  expect(
    (await world.max.get("{ nearestCity { __typename } publicProjects { id } }")).publicProjects,
  ).toEqual([]);
  // Other viewers do not get this reason.
  expect(await world.olga.get(`{ lead(id: "${lead}") { id } leads { id } }`)).toEqual({
    lead: null,
    leads: [],
  });
  expect((await world.owen.get("{ leads { id } }")).leads).toEqual([{ id: lead }]);
});

test("of several organizations, the others remain accessible", async () => {
  const project = await createIn(world.olga)("createProject", {
    organizationId: world.summit.id,
    title: "Summit View",
    currency: "CAD",
  });
  expect((await world.ada.get("{ projects { id } }")).projects).toEqual([{ id: project }]);
  expect((await world.ada.get("{ leads { id } }")).leads).toEqual([]);
  const { data, errors } = await world.ada.ask(
    `{ lead(id: "${lead}") { id } project(id: "${project}") { id } }`,
  );
  expect(data).toEqual({ lead: null, project: { id: project } });
  expect(errors).toEqual([
    expect.objectContaining({ path: ["lead"], extensions: expect.objectContaining(refusal) }),
  ]);
  // A missing permission in an accessible organization is still reported.
  expect(
    await world.ada.refused(mutationOf("updateOrganization", "{ id }"), {
      input: { id: world.summit.id, name: "Mine" },
    }),
  ).toMatchObject({ ...refusal, message: expect.not.stringContaining("enrollSecondFactor") });
});

test("in SQL, refused members see the same rows as non-members", async () => {
  const client = await world.owner.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `select c.oid::regclass::text as name from pg_class c where c.relkind in ('r', 'p', 'v')
         and c.relnamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace)
         and has_any_column_privilege('plat_user', c.oid, 'select')`,
    );
    expect(tables.length).toBeGreaterThan(100);
    const reach = async (before: string) => {
      await client.query("begin");
      await client.query(before, [world.max.id, world.harbour.id]);
      await client.query("set local role plat_user; set local plat.deadlines_checked = 'on'");
      await client.query("select set_config('plat.user_id', $1, true)", [world.max.id]);
      const found: Record<string, number> = {};
      for (const { name } of tables) {
        const { rows } = await client.query(`select count(*)::int as count from ${name}`);
        found[name] = rows[0].count;
      }
      await client.query("rollback");
      return found;
    };
    const late = await reach("select $1::uuid, $2::uuid");
    const outside = await reach(
      "delete from app_public.organization_user_connections where user_id = $1 and organization_id = $2",
    );
    // Assignments end when a member leaves, and the events of the member remain.
    for (const name of [
      "app_public.organization_user_connections",
      "app_public.user_organization_connections",
      "app_hidden.masked_organization_user_connections",
    ]) {
      expect([name, late[name], outside[name]]).toEqual([name, 1, 0]);
      outside[name] = 1;
    }
    expect(late).toEqual(outside);
    const before = await reach(
      "update app_public.organization_user_connections set second_factor_due_at = null where user_id = $1 and organization_id = $2",
    );
    expect(before["app_public.leads"]).toBe(1);
    expect(before["app_public.tasks"]).toBe(1);
  } finally {
    client.release();
  }
});

test("every function that reads memberships of the viewer checks the requirement", async () => {
  const { rows } = await world.owner.query<{ name: string }>(
    `select p.oid::regprocedure::text as name from pg_proc p
     where p.pronamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace, 'app_private'::regnamespace)
       and p.prosrc ~ 'organization_user_connections' and p.prosrc !~ 'is_open\\('
       and p.prosrc ~ '\\mm\\.user_id = (app_public\\.current_user_id\\(\\)|\\(select app_public|viewer)'
     order by 1`,
  );
  expect(rows.map(({ name }) => name.replace(/\(.*/, ""))).toEqual([
    // Their own membership, and deadlines of records that others see.
    "app_hidden.own_organization_name",
    // Checks by itself whether one of the organizations requires a second factor.
    "app_private.look_at_viewers",
    "app_private.viewer_deadline_organizations",
    "app_public.create_access_token",
    "app_public.organizations_viewer_role",
    "app_public.update_organization_notifications",
  ]);
});

test("a second factor restores access immediately, and cannot be removed while it is required", async () => {
  const { next } = await enrolled(world, world.max);
  expect((await world.max.get("{ leads { id } }")).leads).toEqual([{ id: lead }]);
  expect(await dueOf(world.max)).toBeNull();
  const disable = mutationOf("disableSecondFactor", "{ id }");
  expect(
    await world.max.refused(disable, { input: { password, secondFactorCode: await next() } }),
  ).toMatchObject({ code: "CONFLICT", message: expect.stringContaining("Harbour Homes") });
});

test("administrators can remove a member's lost factor; the member is notified", async () => {
  const [nora, ned] = [await world.signUp("Nora New"), await world.signUp("Ned New")];
  await join(world, world.harbour.id, nora, "ADMIN");
  await join(world, world.harbour.id, ned, "MEMBER");
  // New members have the same grace period.
  expect(daysUntil(await dueOf(ned))).toBe(10);
  const ofNora = await enrolled(world, nora);
  await enrolled(world, ned);
  const reset = mutationOf(
    "resetMemberSecondFactor",
    "{ user { id } secondFactorDueAt secondFactorResetAt }",
  );
  const input = (user: Person, more: object = {}) => ({
    input: { organizationId: world.harbour.id, userId: user.id, password, ...more },
  });
  const code = async () => ({ secondFactorCode: await ofNora.next() });
  expect(
    await nora.refused(reset, input(ned, { ...(await code()), password: "a wrong password" })),
  ).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "password",
  });
  expect(await nora.refused(reset, input(ned))).toMatchObject({ reason: "SECOND_FACTOR_REQUIRED" });
  expect(await nora.refused(reset, input(world.owen, await code()))).toMatchObject({
    code: "FORBIDDEN",
    permission: "org.owner",
  });
  expect(await nora.refused(reset, input(nora, await code()))).toMatchObject({ code: "BAD_USER_INPUT" });
  for (const who of [world.max, ned]) expect((await who.refused(reset, input(nora))).code).toBe("FORBIDDEN");
  for (const who of [world.olga, world.anonymous])
    expect((await who.refused(reset, input(ned))).code).toBe(
      who === world.olga ? "NOT_FOUND" : "UNAUTHENTICATED",
    );
  // For a member of several organizations, one of them cannot reset the account to the others' harm.
  await join(world, world.summit.id, ned, "MEMBER");
  expect((await nora.refused(reset, input(ned, await code()))).code).toBe("CONFLICT");
  await world.owner.query(
    "delete from app_public.organization_user_connections where user_id = $1 and organization_id = $2",
    [ned.id, world.summit.id],
  );
  const { resetMemberSecondFactor: done } = await nora.get(reset, input(ned, await code()));
  expect(done).toMatchObject({ user: { id: ned.id }, secondFactorResetAt: expect.any(String) });
  expect(daysUntil(done.secondFactorDueAt)).toBe(10);
  expect((await ned.ask("{ viewer { id } }")).status).toBe(401);
  const login = await world.anonymous.ask(mutationOf("login", "{ token }"), {
    input: { username: ned.email, password },
  });
  expect(login.errors).toBeUndefined();
  expect((await nora.refused(reset, input(ned, await code()))).code).toBe("CONFLICT");
  const { rows } = await world.owner.query(
    "select payload -> 'facts' as facts from graphile_worker._private_jobs where payload ->> 'user_id' = $1 and payload ->> 'change' = 'SECOND_FACTOR_RESET'",
    [ned.id],
  );
  expect(rows).toEqual([{ facts: { name: "Nora New", organization: "Harbour Homes" } }]);
  const events = (
    await world.owner.query(
      "select actor_id from app_public.events where name = 'member.second_factor_reset' and organization_id = $1",
      [world.harbour.id],
    )
  ).rows;
  expect(events).toEqual([{ actor_id: nora.id }]);
});

test("when the requirement is removed, all members have access again", async () => {
  await later();
  await world.owen.get(require, { input: { organizationId: world.harbour.id, required: false } });
  expect(await dueOf(world.ada)).toBeNull();
  expect((await world.ada.get("{ leads { id } }")).leads).toEqual([{ id: lead }]);
  await world.owen.get(mutationOf("disableSecondFactor", "{ id }"), {
    input: { password, secondFactorCode: await app.next() },
  });
});
