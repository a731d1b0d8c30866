import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createFileStore, type FileStore } from "../../src/providers/files/index.ts";
import { noProcessor, ProcessorRefusal, type PaymentProcessor } from "../../src/providers/payments/index.ts";
import type { Person } from "../harness/api.ts";
import { createTestDatabase, poolOf } from "../harness/database.ts";
import { createBuyer } from "../harness/deals.ts";
import { tablesContaining } from "../harness/tablesContaining.ts";
import { cast, createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";
import { password } from "../harness/signUp.ts";
import { affiliate, programOf } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

// Deleting an organization: who requests and cancels it, who is notified, what is deleted, what is retained
// by law, and that data of others are kept.

let world: Portfolio;
let store: FileStore;
let outbox: Outbox;
/** The content of a document of a purchase, and of a picture of a project. */
let content: string;
let picture: string;

/** Accounts that the processor was asked to close, and the reason if it refuses. */
const closed: string[] = [];
let refusal: ProcessorRefusal | undefined;
const closeAccount = async (id: string) => {
  closed.push(id);
  if (refusal) throw refusal;
};
const processor = new Proxy(noProcessor, {
  get: (target, name: keyof PaymentProcessor) => (name === "closeAccount" ? closeAccount : target[name]),
});

const requesting = `mutation ($input: RequestOrganizationDeletionInput!) { requestOrganizationDeletion(input: $input) {
  id status reason finalAt expected kept keptUntil requestedBy { id } organization { id } } }`;
const cancelling = `mutation ($input: CancelOrganizationDeletionInput!) { cancelOrganizationDeletion(input: $input) {
  id status cancelReason cancelledBy { id } } }`;
const listing = `{ organizationDeletions { status removed kept keptUntil completedAt certificateUrl organization { id } } }`;
const work = async () => {
  await world.owner.query(
    "select graphile_worker.reschedule_jobs(array(select id from graphile_worker._private_jobs), now())",
  );
  return runJobs(world.database.ownerUrl, outbox.provider, store, processor);
};
const request = (person: Person, rest: Record<string, unknown> = {}) =>
  person.get(requesting, { input: { organizationId: world.harbour.id, password, ...rest } });
const pass = (days: number) =>
  world.owner.query(
    "update app_public.organization_deletions set final_at = final_at - make_interval(hours => $1) where status = 'SCHEDULED'",
    [days * 24 + 1],
  );
const remind = async () => {
  await world.owner.query("select app_private.add_job('organization_deletions__remind')");
  await work();
  const mails = (await outbox.take()).map((mail) => [mail.to![0]!.address, mail.subject!]);
  return mails.filter(([, subject]) => subject!.startsWith("Harbour Homes "));
};
async function has(checksum: string): Promise<boolean> {
  const found = await store.get(checksum);
  found?.destroy();
  return found !== undefined;
}

beforeAll(async () => {
  world = await startPortfolio();
  store = createFileStore({ dataDir: world.dataDir });
  outbox = await createOutbox();
  const { owen, olga, project, harbour, owner, max } = world;
  const create = createIn(owen);
  const lead = await createLead(owen, {
    projectId: project.id,
    name: "Harriet Harbourlead",
    email: "harriet@harbour.example",
  });
  await create("createLeadNote", { leadId: lead.id, text: "Harriet likes harbours." });
  const purchase = await createBuyer(owen, project, {
    legalName: "Bruno Bought",
    email: "bruno@harbour.example",
    phone: "+14165550188",
  });
  const file = `data:;name=deed.txt;base64,${Buffer.from("The deed of Bruno Bought.").toString("base64")}`;
  await create("uploadBuyerDocument", { buyerId: purchase, category: "OTHER", file });
  ({ checksum: content } = (await owner.query("select checksum from app_public.buyer_documents")).rows[0]);
  await create("uploadProjectDocument", {
    projectId: project.id,
    file: `data:;name=plan.txt;base64,${Buffer.from("The plan of Harbour View.").toString("base64")}`,
  });
  ({ checksum: picture } = (await owner.query("select checksum from app_public.project_documents")).rows[0]);
  // Harbour Homes is affiliated with a project of another organization, which shares records with it.
  await affiliate(world, world.peak, harbour, "SELLER");
  await createLead(olga, { projectId: world.peak.id, name: "Shared Shirley", assigneeId: max.id });
  await work();
  await outbox.take();
});
afterAll(async () => {
  await outbox.remove();
  await world.stop();
});

test("only owners can request it, signed in and with their password, if nothing is in progress", async () => {
  const { owen, ada, harbour, owner } = world;
  const input = { organizationId: harbour.id, password };
  const program = await programOf(world, owen, { scopes: ["org.owner", "org.member"] });
  const codes: Record<string, unknown> = {};
  for (const [who, person] of Object.entries({ ...cast(world), program })) {
    const refused = await person.refused(requesting, { input });
    codes[who] = refused.permission ? `${refused.code} ${refused.permission}` : refused.code;
  }
  expect(codes).toEqual({
    owner: "CONFLICT",
    admin: "FORBIDDEN org.owner",
    member: "FORBIDDEN org.owner",
    seller: "FORBIDDEN org.owner",
    builder: "FORBIDDEN org.owner",
    outsider: "FORBIDDEN org.owner",
    anonymous: "UNAUTHENTICATED",
    program: "FORBIDDEN",
  });
  expect(await owen.refused(requesting, { input })).toMatchObject({ dependents: { buyers: 1 } });
  await owner.query(
    `begin; set local session_replication_role = 'replica';
     update app_public.buyers set status = 'CLOSED', closing_date = current_date, purchase_date = current_date; commit`,
  );
  expect(await owen.refused(requesting, { input: { ...input, password: "another password" } })).toMatchObject(
    {
      code: "BAD_USER_INPUT",
      field: "password",
    },
  );
  expect(await ada.refused(cancelling, { input: { organizationId: harbour.id } })).toMatchObject({
    code: "FORBIDDEN",
  });
});

test("can be previewed, requested and cancelled; all owners are notified, and members see the date", async () => {
  const { owen, mia, harbour, owner, max } = world;
  const preview = (await request(owen, { dryRun: true })).requestOrganizationDeletion;
  expect(preview.expected).toEqual(
    expect.arrayContaining([
      { record: "leads", count: 5 },
      { record: "projects", count: 3 },
      { record: "projectDocuments", count: 1 },
    ]),
  );
  expect(preview.kept.map(({ record }: { record: string }) => record)).toEqual([
    "buyerDocuments",
    "buyers",
    "projects",
  ]);
  expect((await owen.get(listing)).organizationDeletions).toEqual([]);

  const { requestOrganizationDeletion: requested } = await request(owen, { reason: "We close." });
  expect(requested).toMatchObject({ status: "SCHEDULED", reason: "We close.", requestedBy: { id: owen.id } });
  expect(Date.parse(requested.finalAt) - Date.now()).toBeGreaterThan(29.9 * 86_400_000);
  expect(await owen.refused(requesting, { input: { organizationId: harbour.id, password } })).toMatchObject({
    code: "CONFLICT",
  });
  expect(await remind()).toEqual([[owen.email, "Harbour Homes will be deleted"]]);
  expect(await remind()).toEqual([]);
  const reading = "query ($id: ID!) { organization(id: $id) { deletionAt deletions { id } } }";
  const seen = async (person: Person) => (await person.sees(reading, { id: harbour.id })).organization;
  expect(await seen(owen)).toEqual({ deletionAt: requested.finalAt, deletions: [{ id: requested.id }] });
  expect(await seen(mia)).toEqual({ deletionAt: requested.finalAt, deletions: null });
  expect((await seen(world.sam))?.deletionAt ?? null).toBeNull();
  const { owner: asker, ...rest } = cast(world);
  expect((await asker!.get(listing)).organizationDeletions).toHaveLength(1);
  for (const [who, person] of Object.entries(rest))
    expect([who, (await person.sees(listing)).organizationDeletions ?? []]).toEqual([who, []]);

  // The organization can be used meanwhile.
  await createLead(owen, { projectId: world.project.id, name: "Late Larry" });
  // Another owner cancels the deletion.
  await owner.query("update app_public.organization_user_connections set role = 'OWNER' where user_id = $1", [
    max.id,
  ]);
  const { cancelOrganizationDeletion: cancelled } = await max.get(cancelling, {
    input: { organizationId: harbour.id, reason: "We go on." },
  });
  expect(cancelled).toMatchObject({
    status: "CANCELLED",
    cancelReason: "We go on.",
    cancelledBy: { id: max.id },
  });
  expect((await remind()).sort()).toEqual(
    [owen.email, max.email].sort().map((email) => [email, "Harbour Homes will not be deleted"]),
  );
  expect(await owen.refused(cancelling, { input: { organizationId: harbour.id } })).toMatchObject({
    code: "NOT_FOUND",
  });
  expect(await seen(owen)).toMatchObject({ deletionAt: null });
  const { rows } = await owner.query(
    "select name from app_public.events where subject_type = 'organization_deletion' order by sequence",
  );
  expect(rows.map(({ name }) => name)).toEqual([
    "organization_deletion.created",
    "organization_deletion.cancelled",
  ]);
});

test("sends reminders a week and a day before, and is abandoned if something is in progress at the end", async () => {
  const { owen, max, owner } = world;
  await request(owen);
  await remind();
  await pass(23);
  const both = (subject: string) => [owen.email, max.email].sort().map((email) => [email, subject]);
  expect((await remind()).sort()).toEqual(both("Harbour Homes will be deleted within a week"));
  await pass(6);
  expect((await remind()).sort()).toEqual(both("Harbour Homes will be deleted within a day"));
  expect(await remind()).toEqual([]);
  await owner.query(
    "begin; set local session_replication_role = 'replica'; update app_public.buyers set status = 'DRAFT'; commit",
  );
  await pass(1);
  await remind();
  const { rows: given } = await owner.query(
    "select status, cancel_reason from app_public.organization_deletions order by id desc limit 1",
  );
  expect(given).toEqual([
    {
      status: "CANCELLED",
      cancel_reason: expect.stringMatching(/^Open deals of this organization involve others/),
    },
  ]);
  await owner.query(
    "begin; set local session_replication_role = 'replica'; update app_public.buyers set status = 'CLOSED'; commit",
  );
});

test("waits while the processor does not close the account, and notifies the owners by a ticket", async () => {
  const { owen, mia, olga, anonymous, harbour, owner } = world;
  await owner.query(
    "insert into app_private.payments_accounts (organization_id, processor_id) values ($1, 'acct_harbour')",
    [harbour.id],
  );
  refusal = new ProcessorRefusal(
    "There are 12.00 CAD on it.",
    "balance_not_zero",
    undefined,
    false,
    undefined,
  );
  await request(owen);
  await pass(30);
  const due = async () => {
    await owner.query("select app_private.add_job('organization_deletions__remind')");
    await work();
    await work();
    const { rows } = await owner.query(
      "select status, final_at > now() + interval '23 hours' as later from app_public.organization_deletions order by id desc limit 1",
    );
    return rows[0];
  };
  expect(await due()).toEqual({ status: "SCHEDULED", later: true });
  const asking =
    "query ($id: ID!) { organization(id: $id) { escalationTickets { title status priority description } } }";
  const tickets = async (person: Person) =>
    (await person.sees(asking, { id: harbour.id })).organization?.escalationTickets;
  const ticket = {
    title: "The payment account cannot be closed, so the organization is not deleted yet",
    status: "OPEN",
    priority: "URGENT",
    description: expect.stringMatching(
      /^The payment processor says: There are 12\.00 CAD on it\. Have what is on/,
    ),
  };
  expect(await tickets(owen)).toEqual([ticket]);
  for (const person of [mia, olga, anonymous])
    expect((await tickets(person)) ?? []).not.toContainEqual({ title: ticket.title });
  // A day later, there is still one ticket.
  await pass(1);
  expect(await due()).toMatchObject({ status: "SCHEDULED" });
  expect(await tickets(owen)).toEqual([ticket]);
  expect(closed).toEqual(["acct_harbour", "acct_harbour"]);
  await owen.get(cancelling, { input: { organizationId: harbour.id } });
  await remind();
  await outbox.take();
  refusal = undefined;
  closed.length = 0;
});

test("deletes all data except for those retained by law; other organizations keep theirs, and people their accounts", async () => {
  const { owen, max, olga, sam, harbour, summit, owner, peak } = world;
  const traces = ["harriet", "harbour homes", "harbour view", harbour.slug, "late larry", "deed of"];
  // Rows of other organizations and of people.
  const others = async () => {
    const { rows: tables } = await owner.query(
      `select c.oid::regclass::text as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id'
       where c.relkind in ('r', 'p') and c.relnamespace = 'app_public'::regnamespace and c.relname not in ('project_organizations', 'events') order by 1`,
    );
    const { rows } = await owner.query(
      `${tables.map(({ name }) => `select '${name}' as name, count(*)::int as amount from ${name} where organization_id = $1`).join(" union all ")}
       union all select 'users', count(*)::int from app_public.users order by 1`,
      [summit.id],
    );
    return rows;
  };
  // Events in several partitions, so that rows of different organizations have equal ctids.
  const { rows: partitions } = await owner.query(
    "select starts_at from app_private.event_partitions() where starts_at is not null order by starts_at",
  );
  const move = (organization: string, partition: number, share: number) =>
    owner.query(
      `begin; set local session_replication_role = 'replica';
       update app_public.events set id = uuidv7('${partitions[partition].starts_at.toISOString()}'::timestamptz + interval '9 days' - clock_timestamp())
         where organization_id = '${organization}' and sequence % ${share} = 0;
       commit`,
    );
  await move(summit.id, 0, 1);
  await move(harbour.id, 1, 3);
  const events = async (organization: string) =>
    (
      await owner.query(
        "select array_agg(id order by id) as ids from app_public.events where organization_id = $1",
        [organization],
      )
    ).rows[0].ids as string[];
  const eventsOfOthers = await events(summit.id);
  await request(owen);
  const before = await others();
  await remind();
  await pass(30);
  await outbox.take();
  const log: string[] = [];
  await owner.query("select app_private.add_job('organization_deletions__remind')");
  for (let runs = 0; runs < 3; runs++) log.push(...(await work()));
  expect(log.filter((line) => /^(error|warn)/i.test(line))).toEqual([]);
  // Once before the deletion, and once to verify it.
  expect(closed).toEqual(["acct_harbour", "acct_harbour"]);
  const mails = (await outbox.take()).map((mail) => [mail.to![0]!.address, mail.subject]);
  expect(mails.sort()).toEqual(
    [owen.email, max.email].sort().map((email) => [email, "Harbour Homes was deleted"]),
  );

  const { rows: left } = await owner.query(
    "select name, slug, email, deleted_at from app_public.organizations where id = $1",
    [harbour.id],
  );
  expect(left).toEqual([
    {
      name: "Deleted organization",
      slug: `deleted-${harbour.id}`,
      email: null,
      deleted_at: expect.any(Date),
    },
  ]);
  expect(await events(summit.id)).toEqual(expect.arrayContaining(eventsOfOthers));
  // Rows that still contain its id describe the deletion, are retained by law, or are events of other
  // organizations with whose projects it was affiliated.
  expect(Object.keys(await tablesContaining(owner, [harbour.id])).sort()).toEqual([
    "app_private.access_versions",
    "app_private.retained_records",
    "app_private.slugs",
    "app_public.events",
    "app_public.organization_deletions",
    "app_public.organizations",
  ]);
  const { rows: streams } = await owner.query(
    "select e.stream_id from app_public.events e where e.stream_id = $1 or e.organization_id = $1",
    [harbour.id],
  );
  expect(streams).toEqual([]);
  expect(Object.keys(await tablesContaining(owner, traces)).sort()).toEqual([
    "app_private.deletion_readers",
    "app_private.retained_records",
  ]);
  expect(await others()).toEqual(before);
  expect(
    (await olga.get("query ($id: ID!) { project(id: $id) { title leads { name } } }", { id: peak.id }))
      .project,
  ).toMatchObject({ title: "Summit Peak", leads: expect.arrayContaining([{ name: "Shared Shirley" }]) });
  expect(await has(picture)).toBe(false);
  expect(await has(content)).toBe(true);

  // Nobody has access; people keep their other access, and the requester has the certificate.
  for (const person of [owen, max, sam, olga, world.anonymous])
    expect(
      (await person.sees("query ($id: ID!) { organization(id: $id) { id } }", { id: harbour.id }))
        .organization ?? null,
    ).toBeNull();
  expect((await max.get("{ viewer { organizations { organizationName } } }")).viewer.organizations).toEqual(
    [],
  );
  const { organizationDeletions: seen } = await owen.get(listing);
  expect(seen[0]).toMatchObject({
    status: "COMPLETED",
    organization: null,
    certificateUrl: expect.any(String),
    kept: expect.arrayContaining([expect.objectContaining({ record: "buyers", count: 1 })]),
    removed: expect.arrayContaining([
      { record: "leads", count: 6 },
      { record: "projects", count: 3 },
    ]),
  });
  for (const person of [max, olga, sam])
    expect((await person.get(listing)).organizationDeletions).toEqual([]);
  const { rows: kept } = await owner.query(
    "select relation, data ->> 'legal_name' as name, data ? 'email' as email, kept_until > now() + interval '9 years' as later from app_private.retained_records order by 1",
  );
  expect(kept).toEqual([
    { relation: "app_public.buyer_documents", name: null, email: false, later: true },
    { relation: "app_public.buyers", name: "Bruno Bought", email: false, later: true },
    { relation: "app_public.projects", name: null, email: false, later: true },
  ]);

  // At the end of the retention period, these are deleted as well.
  await owner.query("update app_private.retained_records set kept_until = current_date");
  await owner.query("update app_private.stored_files set check_at = now()");
  await owner.query("select app_private.add_job('retention__sweep')");
  await work();
  await owner.query("select app_private.add_job('files__sweep')");
  await work();
  expect(Object.keys(await tablesContaining(owner, ["Bruno Bought"]))).toEqual([]);
  expect(await has(content)).toBe(false);
});

test("any organization can be deleted: each of the demo, while the others keep all of theirs", async () => {
  const database = await createTestDatabase("demo");
  const owner = poolOf(database.ownerUrl, 2);
  try {
    const { rows: organizations } = await owner.query<{ id: string }>(
      "select id from app_public.organizations order by id",
    );
    const { rows: tables } = await owner.query<{ name: string }>(
      "select relation as name from app_private.removed_relations() relation",
    );
    const counts = tables.map(
      ({ name }) =>
        `select '${name}' as name, organization_id as id, count(*)::int as amount from ${name} group by 2`,
    );
    // Shared events, deliveries and affiliations belong to both.
    const shared = [
      "app_public.project_organizations",
      "app_public.project_organization_invites",
      "app_public.events",
    ];
    const rowsOf = async (): Promise<{ name: string; id: string; amount: number }[]> =>
      (await owner.query(`${counts.join(" union all ")} order by 1, 2`)).rows;
    for (const { id } of organizations) {
      const before = await rowsOf();
      await owner.query(
        `begin; set local session_replication_role = 'replica';
         update app_public.buyers set status = 'CLOSED'; update app_public.reservations set status = 'EXPIRED';
         update app_public.processor_charges set status = 'SUCCEEDED';
         insert into app_public.organization_deletions (organization_id, final_at) values ('${id}', now()); commit`,
      );
      await owner.query(
        "delete from graphile_worker._private_jobs; select app_private.queue_due_deletions()",
      );
      await runJobs(database.ownerUrl, outbox.provider, store);
      const { rows } = await owner.query(
        "select d.status, (select t.identifier || j.last_error from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id where j.last_error is not null limit 1) as error from app_public.organization_deletions d where d.organization_id = $1",
        [id],
      );
      expect(rows).toEqual([{ status: "COMPLETED", error: null }]);
      const others = (all: typeof before) =>
        all.filter((row) => row.id !== id && row.id !== null && !shared.includes(row.name));
      const after = await rowsOf();
      expect(after.filter((row) => row.id === id)).toEqual([]);
      expect(others(after)).toEqual(others(before));
    }
  } finally {
    await owner.end();
    await database.drop();
  }
});
