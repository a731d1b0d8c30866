import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { cast, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";
import { createWorkflow, reaches, runWorkflows, start } from "../workflows/world.ts";

// How long an organization keeps ended records: its settings, permissions for them, and the daily sweep.

let world: Portfolio;
beforeAll(async () => {
  world = await startPortfolio();
});
afterAll(() => world.stop());

const setting = `mutation ($input: UpdateOrganizationRetentionInput!) { updateOrganizationRetention(input: $input) {
  contractYears executionDays messageDays eventDays archivesEvents } }`;
const reading = `query ($id: ID!) { organization(id: $id) { retention { contractYears executionDays messageDays eventDays archivesEvents } } }`;
const defaults = {
  contractYears: 10,
  executionDays: 730,
  messageDays: 730,
  eventDays: 2555,
  archivesEvents: true,
};

/** Executes the task until nothing is left to do. */
async function sweep(batch = 20): Promise<number> {
  let calls = 0;
  for (let last: string | null = null; ; calls++) {
    const { rows }: { rows: { last: string | null }[] } = await world.owner.query(
      "select app_private.sweep_organizations($1, $2) as last",
      [last, batch],
    );
    last = rows[0]!.last;
    if (last === null) return calls;
  }
}

test("has defaults that members can read; owners and admins change them within limits", async () => {
  const { harbour, owen, ada } = world;
  const input = { organizationId: harbour.id, executionDays: 30 };
  const codes: Record<string, unknown> = {};
  for (const [who, person] of Object.entries(cast(world))) {
    const { organization } = await person.sees(reading, { id: harbour.id });
    const answer = who === "owner" || who === "admin" ? undefined : await person.refused(setting, { input });
    codes[who] = [organization?.retention?.contractYears ?? null, answer?.code ?? "OK"];
  }
  expect(codes).toEqual({
    owner: [10, "OK"],
    admin: [10, "OK"],
    member: [10, "FORBIDDEN"],
    seller: [null, "FORBIDDEN"],
    builder: [null, "FORBIDDEN"],
    outsider: [null, "FORBIDDEN"],
    anonymous: [null, "UNAUTHENTICATED"],
  });
  expect((await ada.get(setting, { input })).updateOrganizationRetention).toEqual({
    ...defaults,
    executionDays: 30,
  });
  for (const wrong of [{ executionDays: 29 }, { messageDays: 0 }, { eventDays: 364 }, { contractYears: 0 }])
    expect(await owen.refused(setting, { input: { organizationId: harbour.id, ...wrong } })).toMatchObject({
      code: "BAD_USER_INPUT",
    });
  expect((await owen.get(reading, { id: harbour.id })).organization.retention).toMatchObject({
    executionDays: 30,
  });
});

test("empties old events and deletes old executions of this organization only, in batches", async () => {
  const { owner, harbour, summit, owen } = world;
  await createIn(owen)("createLeadNote", { leadId: world.leads.open.id, text: "Fresh." });
  await owner.query(
    `begin; set local session_replication_role = 'replica';
     update app_public.events set occurred_at = now() - interval '500 days' where name <> 'lead_note.created';
     commit`,
  );
  const emptied = async (id: string) =>
    (
      await owner.query(
        `select count(*) filter (where data = '{}' and changes is null and erased_at is not null)::int as empty, count(*)::int as all,
           max(sequence)::int as last from app_public.events where organization_id = $1`,
        [id],
      )
    ).rows[0];
  const before = await emptied(harbour.id);
  await sweep();
  expect(await emptied(harbour.id)).toEqual(before);
  await owen.get(setting, { input: { organizationId: harbour.id, eventDays: 365, archivesEvents: false } });

  // Events with pending readers are kept: notifications, a paused webhook, a waiting delivery.
  const empty = async () => {
    await sweep();
    return (await emptied(harbour.id)).empty;
  };
  expect(await empty()).toBe(0);
  await owner.query("select app_private.skip_notifications()");
  const webhook = await createIn(owen)("createWebhook", {
    organizationId: harbour.id,
    url: "https://93.184.215.14/hook",
    events: ["lead.*"],
  });
  const readUpTo = (sequence: number) =>
    owner.query("update app_private.webhook_progress set last_sequence = $1", [sequence]);
  await readUpTo(2);
  expect(await empty()).toBe(2);
  await owen.get("mutation ($id: ID!) { updateWebhook(input: { id: $id, status: PAUSED }) { id } }", {
    id: webhook,
  });
  await readUpTo(4);
  expect(await empty()).toBe(4);
  await readUpTo(1000);
  await owner.query(
    `with made as (
       insert into app_public.webhook_deliveries (organization_id, webhook_id, event_id)
       select organization_id, $1, id from app_public.events where organization_id = $2 and sequence = 7 returning id)
     insert into app_private.webhook_queue (delivery_id, webhook_id) select id, $1 from made`,
    [webhook, harbour.id],
  );
  expect(await empty()).toBe(6);
  await owner.query("delete from app_private.webhook_queue");
  await sweep(1);
  const after = await emptied(harbour.id);
  // The change of the setting, the webhook and the note wrote recent events.
  expect(after).toEqual({ all: before.all + 3, last: before.last + 3, empty: before.all - 1 });
  expect((await emptied(summit.id)).empty).toBe(0);
  await sweep();
  expect(await emptied(harbour.id)).toEqual(after);
  // Readers see that the events existed, and when they were emptied.
  const { events } = await owen.get(
    "query ($id: ID!) { events(filter: { organizationId: $id }, first: 1) { name data changes erasedAt } }",
    { id: harbour.id },
  );
  expect(events).toEqual([
    { name: "organization.created", data: {}, changes: null, erasedAt: expect.any(String) },
  ]);
});

test("deletes ended executions with their step runs and text messages, and keeps recent and running ones", async () => {
  const { owner, harbour, owen } = world;
  await owner.query("update app_private.message_rules set opens = '00:00', closes = '24:00'");
  const [lead, other] = [
    await createIn(owen)("createLead", { projectId: world.project.id, name: "Sid", phone: "+14165550123" }),
    await createIn(owen)("createLead", { projectId: world.project.id, name: "Sue", phone: "+14165550124" }),
  ];
  const textWorkflow = await createWorkflow(world, [
    { type: "SEND_SMS", config: { body: "Hello {{ lead.name }}" }, onError: "FAIL" },
  ]);
  const waiting = await createWorkflow(world, [
    { type: "SEND_SMS", config: { body: "Later, {{ lead.name }}" }, waitSeconds: 3600 },
  ]);
  const [old, aged, fresh] = [
    await start(owen, textWorkflow, lead),
    await start(owen, textWorkflow, world.leads.open.id),
    await start(owen, textWorkflow, other),
  ];
  const going = await start(owen, waiting, lead);
  const workflows = await runWorkflows(world);
  try {
    for (const id of [old, aged, fresh])
      await reaches(owen, id, ({ status }) => ["COMPLETED", "FAILED"].includes(status));
  } finally {
    await workflows.stop();
  }
  const left = async () =>
    (
      await owner.query(
        `select (select count(*) from app_public.workflow_executions)::int as executions,
           (select count(distinct execution_id) from app_public.workflow_step_runs where execution_id <> $1)::int as runs,
           (select array_agg(recipient order by recipient) from app_private.text_messages) as messages`,
        [going],
      )
    ).rows[0];
  expect(await left()).toEqual({
    executions: 4,
    runs: 3,
    messages: ["+14165550123", "+14165550124"],
  });
  // The ids of executions contain the time of their start.
  const age = (id: string, days: number) =>
    owner.query(
      `do $do$ declare k record; aged constant uuid := uuidv7(interval '-${days} days'); begin
         set local session_replication_role = 'replica';
         update app_public.workflow_executions set id = aged where id = '${id}';
         for k in select c.conrelid::regclass as child, a.attname from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
           where c.confrelid = 'app_public.workflow_executions'::regclass and c.contype = 'f'
         loop execute format('update %s set %I = $1 where %I = $2', k.child, k.attname, k.attname) using aged, '${id}'::uuid; end loop;
       end $do$`,
    );
  await age(old, 31);
  await age(aged, 29);
  await age(going, 31);
  await owen.get(setting, { input: { organizationId: harbour.id, executionDays: 30 } });
  await sweep();
  expect(await left()).toEqual({ executions: 3, runs: 2, messages: ["+14165550124"] });

  // Text messages have a setting of their own, so they can be deleted before their execution.
  await owner.query("update app_private.text_messages set began_at = now() - interval '31 days'");
  await sweep();
  expect((await left()).messages).toHaveLength(1);
  await owen.get(setting, { input: { organizationId: harbour.id, messageDays: 30 } });
  await sweep();
  expect(await left()).toEqual({ executions: 3, runs: 2, messages: null });
}, 30_000);
