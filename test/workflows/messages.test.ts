import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { readdir, readFile, rm } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { Client } from "pg";
import { sendTextMessage, type Message } from "../../src/workflows/sendTextMessage.ts";
import type { Workflows } from "../../src/workflows/runner.ts";
import { startWorld, type World } from "../harness/world.ts";
import { notice, sidOf, startTwilioServer, type TwilioServer } from "../providers/twilioServer.ts";
import { killChild, startChild } from "../harness/child.ts";
import { until } from "../harness/until.ts";
import { createWorkflow, reaches, read, runWorkflows, start, type StepInput } from "./world.ts";

// Text messages of workflows: the real worker with the outbox, then with the real provider against a server
// that implements its API, including its notifications.

let world: World;
let server: TwilioServer;
let workflows: Workflows | undefined;

const sql = async (text: string, values: unknown[] = []): Promise<any[]> =>
  (await world.owner.query(text, values)).rows;
const hours = (opens: string, closes: string) =>
  sql("update app_private.message_rules set opens = $1, closes = $2", [opens, closes]);

beforeAll(async () => {
  server = await startTwilioServer();
  world = await startWorld(undefined, { sms: server.provider() });
  await hours("00:00", "24:00");
  await grantMessages(10_000);
  workflows = await runWorkflows(world);
});
afterAll(async () => {
  await workflows?.stop();
  await server?.close();
  await world?.stop();
});
beforeEach(() => server.answers((response, take) => response.status(201).json(take())));

/** The quota that an operator grants to the organization. */
const grantMessages = (messages: number) =>
  world.owner.query(
    `insert into app_private.sending_changes (organization_id, messages, reason) values ($1, $2, 'test')
     on conflict (organization_id) do update set messages = excluded.messages`,
    [world.harbour.id, messages],
  );

let numbers = 0;
const freshNumber = () => `+1416555${String(1000 + ++numbers)}`;

async function lead(rest: Record<string, unknown> = {}): Promise<{ id: string; phone: string }> {
  const { createLead } = await world.owen.get(
    "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id phone } }",
    { input: { projectId: world.project.id, name: "Lea Lead", phone: freshNumber(), ...rest } },
  );
  return createLead;
}
const update = (id: string, input: Record<string, unknown>) =>
  world.owen.get("mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }", {
    input: { id, ...input },
  });
const sms = (config: Record<string, unknown>, rest: Partial<StepInput> = {}): StepInput => ({
  type: "SEND_SMS",
  config: { body: "Hello {{ lead.name }}", ...config },
  ...rest,
});
const dueNow = async (id: string) => {
  await sql("update app_public.workflow_executions set scheduled_at = now() where id = $1", [id]);
  await sql("select app_private.call_workflow_engine()");
};
/** The last run of the first step, once it has the status. */
async function outcome(id: string, status: string): Promise<any> {
  const execution = await reaches(world.owen, id, (found) => found.steps.at(-1)?.status === status);
  return execution.steps.at(-1);
}
const sent = async (subject: string, steps: StepInput[] = [sms({}, { onError: "FAIL" })], rest = {}) =>
  start(world.owen, await createWorkflow(world, steps, rest), subject);

async function outbox(): Promise<string[]> {
  const folder = join(world.dataDir, "outbox");
  const names = await readdir(folder).catch(() => []);
  const texts: string[] = [];
  for (const name of names.sort()) {
    texts.push(await readFile(join(folder, name), "utf8"));
    await rm(join(folder, name));
  }
  return texts;
}

test("sends messages to the lead, the assignee or a member, and records them in the step run", async () => {
  await sql("update app_public.users set phone = '+14165559901' where id = $1", [world.max.id]);
  const { id, phone } = await lead({ phone: "(416) 555-0177", assigneeId: world.max.id });
  expect(phone).toBe("+14165550177");
  const execution = await sent(id, [
    sms({ body: "Hello {{ lead.name }}, it is {{ project.title }}." }),
    sms({ to: "ASSIGNEE", body: "{{ lead.name }} was told: {{ steps[1].body }}" }),
    sms({ to: "MEMBER", memberId: world.max.id, body: "Bonjour ✓" }),
  ]);
  const { steps } = await reaches(world.owen, execution, "COMPLETED");
  const text = "Hello Lea Lead, it is Harbour View.";
  expect(steps.map((run: any) => [run.status, run.output, run.error])).toEqual([
    [
      "SUCCEEDED",
      { messageId: expect.any(String), status: "SENT", to: phone, body: text, segments: 1 },
      null,
    ],
    // The number of a member is masked.
    [
      "SUCCEEDED",
      expect.objectContaining({ to: "…9901", toId: world.max.id, body: `Lea Lead was told: ${text}` }),
      null,
    ],
    ["SUCCEEDED", expect.objectContaining({ to: "…9901", body: "Bonjour ✓", segments: 1 }), null],
  ]);
  expect(await outbox()).toEqual([
    `To: ${phone}\n\n${text}\n`,
    `To: +14165559901\n\nLea Lead was told: ${text}\n`,
    "To: +14165559901\n\nBonjour ✓\n",
  ]);
  const found = await world.owen.get("query ($id: ID!) { lead(id: $id) { status firstResponseAt } }", { id });
  expect(found.lead).toEqual({ status: "CONTACTED", firstResponseAt: expect.any(String) });
  for (const stranger of [world.olga, world.anonymous])
    expect(
      (await stranger.ask("query ($id: ID!) { workflowExecution(id: $id) { id } }", { id: execution })).data
        ?.workflowExecution ?? null,
    ).toBeNull();
}, 30_000);

test("forbidden recipients get no message, and the step run has the reason", async () => {
  const [requested, silent, empty, long, gone, stopped] = await Promise.all([
    lead(),
    lead({ phone: null, email: "silent@example.com" }),
    lead(),
    lead(),
    lead(),
    lead(),
  ]);
  await update(requested.id, { doNotContact: true });
  await sql("insert into app_private.stopped_numbers (number, reason) values ($1, 'Test.')", [stopped.phone]);
  const task = async (leadId: string) =>
    (
      await world.owen.get("mutation ($input: CreateTaskInput!) { createTask(input: $input) { id } }", {
        input: { leadId, title: "Call" },
      })
    ).createTask.id;
  const taskOfGone = await task(gone.id);
  await sql("update app_public.leads set deleted_at = now() where id = $1", [gone.id]);
  const step = (config: Record<string, unknown>) => [sms(config, { onError: "FAIL" })];
  // A member who was suspended after the workflow was written.
  await sql("update app_public.users set phone = '+14165559902' where id = $1", [world.ada.id]);
  const toAda = await createWorkflow(world, step({ to: "MEMBER", memberId: world.ada.id }));
  await sql("update app_public.users set status = 'SUSPENDED' where id = $1", [world.ada.id]);
  const cases: [string, unknown[], Record<string, unknown>?, string?][] = [
    [await sent(requested.id), ["SKIPPED", "The lead asked not to be contacted."]],
    [await sent(silent.id), ["FAILED", "The lead or buyer has no phone number."]],
    [await sent(empty.id, step({ body: "{{ lead.company }}" })), ["FAILED", "The text came out empty."]],
    [
      await sent(long.id, step({ body: "{% for i in (1..100) %}0123456789{% endfor %}" })),
      ["FAILED", "The text came out too long: 7 segments, and it may take 6."],
    ],
    [await sent(stopped.id), ["SKIPPED", "This number gets no more messages: it answered STOP."]],
    [
      await sent(long.id, step({ to: "ASSIGNEE" })),
      ["FAILED", "There is nobody with a phone number to write to."],
    ],
    [await start(world.owen, toAda, long.id), ["FAILED", "There is nobody with a phone number to write to."]],
    [await sent(taskOfGone, undefined, { subjectType: "TASK" }), ["SKIPPED", "The lead or buyer is gone."]],
  ];
  for (const [id, [status, error]] of cases)
    expect(await outcome(id, status as string)).toMatchObject({ output: null, error });
  expect(await outbox()).toEqual([]);
}, 30_000);

test("segments are counted as by the networks", async () => {
  const [counted] = await sql(
    `select array_agg(app_hidden.message_segments(t) order by n) as segments from unnest($1::text[]) with ordinality x (t, n)`,
    [
      [
        ...["", "a".repeat(160), "à".repeat(161), "Ωß\n@".repeat(40), `${"a".repeat(159)}€`, "[".repeat(80)],
        ...[
          "a".repeat(918),
          "ê".repeat(70),
          "ê".repeat(71),
          "🏠".repeat(35),
          "🏠".repeat(36),
          `’${"a".repeat(401)}`,
        ],
      ],
    ],
  );
  expect(counted.segments).toEqual([1, 1, 2, 1, 2, 1, 6, 1, 2, 1, 2, 6]);
});

test("a process that was stopped between recording and calling sends nothing", async () => {
  const provider = server.provider();
  const one: Message = { result: "SEND", id: "1", to: freshNumber(), body: "Hello", known: [] };
  expect(await sendTextMessage(provider, one, performance.now() - 30_000)).toEqual({ result: "ABSENT" });
  expect(server.messages.filter(({ to }) => to === one.to)).toEqual([]);
  expect(await sendTextMessage(provider, one, performance.now())).toMatchObject({
    result: "TAKEN",
    status: "ACCEPTED",
  });
});

test("a batch of 1,000 leads sends to subscribers of marketing messages, about thirty with a few statements", async () => {
  await sql(
    `insert into app_public.leads (project_id, name, phone, subscribed)
     select $1, 'Many ' || n, '+1647' || (5550000 + n), n <= 100 from generate_series(1, 1000) n`,
    [world.project.id],
  );
  const workflow = await createWorkflow(world, [sms({})]);
  const statements: string[] = [];
  const plain = Client.prototype.query;
  Client.prototype.query = function (this: Client, ...given: any[]) {
    statements.push(String(given[0]?.text ?? given[0]));
    return (plain as any).apply(this, given);
  } as typeof plain;
  try {
    await world.owen.get("mutation ($input: BatchWorkflowInput!) { batchWorkflow(input: $input) { id } }", {
      input: { id: workflow, leadsFilter: { query: "Many" } },
    });
    await until(
      () =>
        sql(
          "select status::text, count(*)::int from app_public.workflow_executions where workflow_id = $1 group by 1",
          [workflow],
        ),
      (rows) => rows.length === 1 && rows[0].status === "COMPLETED" && rows[0].count === 1000,
    );
  } finally {
    Client.prototype.query = plain;
  }
  const count = (name: string) => statements.filter((text) => text.includes(name)).length;
  // One for each sent message, and for the others one for each batch of 32.
  expect(count("complete_call")).toBe(100);
  for (const name of ["begin_messages", "hold_executions"]) {
    expect(count(name)).toBeGreaterThanOrEqual(32);
    expect(count(name)).toBeLessThan(60);
  }
  expect(await outbox()).toHaveLength(100);
  const runs = await sql(
    `select r.status::text, r.error, count(*)::int from app_public.workflow_step_runs r
     join app_public.workflow_executions e on e.id = r.execution_id where e.workflow_id = $1 group by 1, 2 order by 3`,
    [workflow],
  );
  expect(runs).toEqual([
    { status: "SUCCEEDED", error: null, count: 100 },
    { status: "SKIPPED", error: "The lead does not follow marketing messages.", count: 900 },
  ]);
});

test("nobody gets messages at night; the step waits, and then checks the permissions again", async () => {
  const [waits, changes] = await Promise.all([lead(), lead({ assigneeId: world.max.id })]);
  // Around noon in the time zone of the organization, which applies if the project has none.
  const east = 12 - new Date().getUTCHours();
  const zoneOf = (offset: number) => `Etc/GMT${offset < 0 ? "+" : "-"}${Math.abs(offset)}`;
  const zone = zoneOf(east);
  await sql("update app_public.organizations set time_zone = $2 where id = $1", [world.harbour.id, zone]);
  const [{ soon }] = await sql("select (now() at time zone $1 + interval '2 minutes')::time::text as soon", [
    zone,
  ]);
  await hours(soon, "24:00");
  const executions = [await sent(waits.id), await sent(changes.id)];
  for (const id of executions) {
    const { output } = await outcome(id, "RUNNING");
    expect(Date.parse(output.until) - Date.now()).toBeLessThan(121_000);
    expect(Date.parse((await read(world.owen, id)).scheduledAt)).toBe(Date.parse(output.until));
  }
  // Messages to members are sent immediately.
  await outcome(await sent(changes.id, [sms({ to: "ASSIGNEE" })]), "SUCCEEDED");
  expect(await outbox()).toHaveLength(1);
  // In the project's own time zone it is an hour later, and day.
  await sql("update app_public.projects set time_zone = $2 where id = $1", [
    world.project.id,
    zoneOf(east + 1),
  ]);
  await outcome(await sent(changes.id), "SUCCEEDED");
  expect(await outbox()).toHaveLength(1);
  await sql("update app_public.projects set time_zone = 'UTC' where id = $1", [world.project.id]);
  await update(changes.id, { doNotContact: true });
  await hours("00:00", "24:00");
  for (const id of executions) await dueNow(id);
  await outcome(executions[0]!, "SUCCEEDED");
  expect(await outcome(executions[1]!, "SKIPPED")).toMatchObject({ attempt: 1 });
  expect(await outbox()).toEqual([`To: ${waits.phone}\n\nHello Lea Lead\n`]);
}, 30_000);

test("the real provider: permanent refusals, temporary failures, and unknown outcomes", async () => {
  await workflows!.stop();
  workflows = await runWorkflows(world, 10_000, server.provider({ timeoutMs: 500 }));
  const retry = [sms({}, { onError: "RETRY" })];

  // Permanent: not tried again, unless the number changes.
  const wrong = await lead();
  server.answers((response) => server.refusal(response, 400, 21211));
  const refused = await sent(wrong.id, retry);
  expect((await outcome(refused, "FAILED")).error).toMatch(/\(21211\): it is no phone number/);
  const before = server.attempts.length;
  await dueNow(refused);
  await reaches(world.owen, refused, (execution) => execution.steps.length === 2);
  expect(server.attempts).toHaveLength(before);
  server.answers((response, take) => response.status(201).json(take()));
  const right = freshNumber();
  await update(wrong.id, { phone: right });
  await dueNow(refused);
  expect((await outcome(refused, "SUCCEEDED")).output).toMatchObject({ to: right, status: "ACCEPTED" });

  // Its owner has replied STOP elsewhere: skipped, and further messages to the number are stopped.
  const stopped = await lead({ subscribed: true });
  const { createProject: old } = await world.owen.get(
    "mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }",
    {
      input: { organizationId: world.harbour.id, title: "Old", currency: "CAD", address: { country: "CA" } },
    },
  );
  const earlier = await lead({ subscribed: true, projectId: old.id, phone: stopped.phone });
  await outcome(await sent(earlier.id), "SUCCEEDED");
  await sql("update app_public.projects set archived_at = now() where id = $1", [old.id]);
  server.answers((response) => server.refusal(response, 400, 21610));
  expect((await outcome(await sent(stopped.id), "SKIPPED")).error).toMatch(/answered STOP/);
  expect(
    await sql("select distinct subscribed from app_public.leads where id = any ($1)", [
      [stopped.id, earlier.id],
    ]),
  ).toEqual([{ subscribed: false }]);

  // Busy: the step waits for the requested time, whatever its onError.
  const busy = await lead();
  server.answers((response) => {
    response.set("retry-after", "120");
    server.refusal(response, 429, 20429);
  });
  const waiting = await sent(busy.id, [sms({}, { onError: "SKIP" })]);
  const { output } = await outcome(waiting, "RUNNING").then((run) =>
    run.output ? run : reaches(world.owen, waiting, (e) => e.steps[0].output).then((e) => e.steps[0]),
  );
  expect(Date.parse(output.until) - Date.now()).toBeGreaterThan(100_000);
  server.answers((response, take) => response.status(201).json(take()));
  await dueNow(waiting);
  await outcome(waiting, "SUCCEEDED");

  // Accepted, but the response was lost: the message is found, and not sent again.
  const lost = await lead();
  server.answers((response, take) => {
    take();
    server.refusal(response, 500, 20500);
  });
  const found = await sent(lost.id, retry);
  expect((await outcome(found, "FAILED")).error).toMatch(/out of order/);
  server.answers((response, take) => response.status(201).json(take()));
  await dueNow(found);
  // Not before the provider could have listed it.
  const again = await reaches(world.owen, found, (execution) => execution.steps[1]?.output);
  expect(again.steps[1].status).toBe("RUNNING");
  const later = async (id: string) => {
    await sql(
      "update app_private.text_messages set began_at = began_at - interval '1 minute' where execution_id = $1",
      [id],
    );
    await dueNow(id);
  };
  await later(found);
  const done = await outcome(found, "SUCCEEDED");
  const listed = server.messages.filter(({ to }) => to === lost.phone);
  expect(listed.map(({ sid }) => sid)).toEqual([done.output.messageId]);

  // Not accepted: it is sent again.
  const unheard = await lead();
  server.answers((response) => response.status(201).send("<html>"));
  const resent = await sent(unheard.id, retry);
  await outcome(resent, "FAILED");
  server.answers((response, take) => response.status(201).json(take()));
  await later(resent);
  await outcome(resent, "SUCCEEDED");
  expect(server.messages.filter(({ to }) => to === unheard.phone)).toHaveLength(1);
});

test("a worker killed between the call and recording it: one message", async () => {
  await workflows!.stop();
  workflows = undefined;
  const { id: subject, phone } = await lead();
  const execution = await sent(subject);
  const taken = new Promise<void>((resolve) =>
    server.answers((_response, take) => {
      take();
      resolve();
    }),
  );
  const doomed = startChild(
    [join(import.meta.dirname, "smsWorker.ts"), world.database.ownerUrl, server.api],
    { stdio: "ignore" },
  );
  await taken;
  await killChild(doomed);
  server.answers((response, take) => response.status(201).json(take()));
  await sql(
    "update app_private.text_messages set began_at = began_at - interval '1 minute' where execution_id = $1",
    [execution],
  );
  workflows = await runWorkflows(world, 10_000, server.provider());
  const run = await outcome(execution, "SUCCEEDED");
  const listed = server.messages.filter(({ to }) => to === phone);
  expect(listed.map(({ sid }) => sid)).toEqual([run.output.messageId]);
  expect(run.attempt).toBe(1);
});

/** Sends a notification of the provider over HTTPS; returns the status. */
function tell({ path, body, signature }: ReturnType<typeof notice>, method = "POST"): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(path, world.url),
      {
        method,
        rejectUnauthorized: false,
        headers: {
          "content-type": "application/x-www-form-urlencoded",
          ...(signature && { "x-twilio-signature": signature }),
        },
      },
      (response) => response.resume().on("end", () => resolve(response.statusCode!)),
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
const answer = (from: string, text: string, sid = sidOf()) =>
  notice({ MessageSid: sid, From: from, To: "+14165550199", Body: text, NumMedia: "0" });

test("records message states in any order", async () => {
  const execution = await sent((await lead()).id);
  const { output } = await outcome(execution, "SUCCEEDED");
  const [{ id }] = await sql("select id from app_private.text_messages where execution_id = $1", [execution]);
  const status = async (word: string, rest: Record<string, string> = {}, sid = output.messageId) => {
    expect(await tell(notice({ MessageSid: sid, MessageStatus: word, ...rest }, id))).toBe(200);
    const { steps } = await read(world.owen, execution);
    return [steps[0].status, steps[0].output.status, steps[0].error];
  };
  expect(await status("sent")).toEqual(["SUCCEEDED", "SENT", null]);
  expect(await status("queued")).toEqual(["SUCCEEDED", "SENT", null]);
  // A notification for another message.
  expect(await status("delivered", {}, sidOf())).toEqual(["SUCCEEDED", "SENT", null]);
  const failed = [
    "SUCCEEDED",
    "UNDELIVERED",
    "The message was not delivered (30005): nobody has this number.",
  ];
  for (const word of ["undelivered", "undelivered", "sent"])
    expect(await status(word, { ErrorCode: "30005" })).toEqual(failed);
  expect((await read(world.owen, execution)).status).toBe("COMPLETED");

  // A notification that arrives before the response to the call completes the step of a dead worker.
  const early = await lead();
  let sid = "";
  server.answers((response, take) => {
    sid = take().sid;
    server.messages.pop();
    server.refusal(response, 500, 20500);
  });
  const open = await sent(early.id, [sms({}, { onError: "RETRY" })]);
  await outcome(open, "FAILED");
  const [{ id: overtaken }] = await sql("select id from app_private.text_messages where execution_id = $1", [
    open,
  ]);
  expect(await tell(notice({ MessageSid: sid, MessageStatus: "delivered" }, overtaken))).toBe(200);
  const before = server.attempts.length;
  await dueNow(open);
  expect((await outcome(open, "SUCCEEDED")).output).toMatchObject({ messageId: sid, status: "DELIVERED" });
  expect(server.attempts).toHaveLength(before);
}, 30_000);

test("STOP blocks a number for every organization, START permits it again, and neither is processed twice", async () => {
  const person = await lead({ subscribed: true });
  const stranger = await lead({
    subscribed: true,
    name: "Never written to",
    phone: person.phone,
    email: "n@example.com",
  });
  const moved = await lead({ subscribed: true, phone: person.phone, email: "moved@example.com" });
  for (const { id } of [person, moved]) await outcome(await sent(id), "SUCCEEDED");
  await update(moved.id, { phone: freshNumber() });
  const facts = async () => {
    const rows = await sql("select id, subscribed from app_public.leads where id = any ($1) order by id", [
      [person.id, stranger.id, moved.id],
    ]);
    const [{ stopped }] = await sql(
      "select exists (select from app_private.stopped_numbers where number = $1) as stopped",
      [person.phone],
    );
    return [rows.map((row) => row.subscribed), stopped];
  };

  // An unsigned notification has no effect.
  const stop = answer(person.phone, "  Stop! ");
  for (const forged of [
    { ...stop, signature: undefined as never },
    notice({ MessageSid: "SM1", From: person.phone, Body: "STOP" }, undefined, "guessed"),
    { ...stop, body: stop.body.replace("Stop", "STOP") },
  ])
    expect(await tell(forged)).toBe(400);
  expect(await tell(stop, "GET")).toBe(405);
  expect(await facts()).toEqual([[true, true, true], false]);

  await sql("update app_public.projects set archived_at = now() where id = $1", [world.project.id]);
  expect(await tell(stop)).toBe(200);
  await sql("update app_public.projects set archived_at = null where id = $1", [world.project.id]);
  expect(await facts()).toEqual([[false, true, true], true]);
  const { lead: history } = await world.owen.get(
    "query ($id: ID!) { lead(id: $id) { notes { id } events(first: 1) { name changes actorType channel requestId } } }",
    { id: person.id },
  );
  expect(history).toEqual({
    notes: [],
    events: [
      {
        name: "lead.updated",
        changes: expect.objectContaining({ subscribed: [true, false] }),
        actorType: "SYSTEM",
        channel: "WEBHOOK",
        requestId: expect.any(String),
      },
    ],
  });
  expect((await outcome(await sent(person.id), "SKIPPED")).error).toMatch(/answered STOP/);
  expect((await outcome(await sent(stranger.id), "SKIPPED")).error).toMatch(/answered STOP/);

  const begin = answer(person.phone, "START");
  expect(await tell(begin)).toBe(200);
  expect(await facts()).toEqual([[false, true, true], false]);
  // Both again, in any order.
  for (const repeated of [stop, begin, stop]) expect(await tell(repeated)).toBe(200);
  expect(await facts()).toEqual([[false, true, true], false]);
  // The number may receive messages again, but no marketing until the person subscribes again.
  expect((await outcome(await sent(person.id), "SKIPPED")).error).toMatch(/unsubscribed/);
  await update(person.id, { subscribed: true });
  await outcome(await sent(person.id), "SUCCEEDED");

  for (const word of ["unsubscribe", "Cancel.", "END", "quit", "ARRÊT", "stop all", "Opt-out"]) {
    await sql("delete from app_private.stopped_numbers");
    expect(await tell(answer(person.phone, word))).toBe(200);
    expect([word, (await facts())[1]]).toEqual([word, true]);
  }
  // The provider knows further words, and sends their meaning.
  await tell(notice({ MessageSid: sidOf(), From: person.phone, Body: "weiter", OptOutType: "START" }));
  expect((await facts())[1]).toBe(false);
}, 40_000);

test("any other reply is a note on the lead that last received a message, and nothing else", async () => {
  const first = await lead({ subscribed: true });
  const second = await lead({ phone: first.phone, email: "second@example.com" });
  for (const { id } of [first, second]) await outcome(await sent(id), "SUCCEEDED");
  const notes = async (id: string) =>
    (
      await world.owen.get("query ($id: ID!) { lead(id: $id) { notes { text author { id } visibility } } }", {
        id,
      })
    ).lead.notes;
  const text = "Please stop by tomorrow {{ lead.email }} <b>";
  const one = answer(first.phone, text);
  for (let n = 0; n < 2; n += 1) expect(await tell(one)).toBe(200);
  const note = (said: string) => ({
    text: `Text message from ${first.phone}:\n${said}`,
    author: null,
    visibility: "TEAM",
  });
  expect(await notes(second.id)).toEqual([note(text)]);
  // HELP is answered by the provider; a number without a message; an empty text.
  for (const [from, said] of [
    [first.phone, "Help"],
    [first.phone, "aide!"],
    [freshNumber(), "Who is this?"],
    [first.phone, " "],
  ] as const)
    expect(await tell(answer(from, said))).toBe(200);
  expect(await notes(second.id)).toHaveLength(1);
  expect(await notes(first.id)).toEqual([]);
  // The lead was merged into another one, or deleted.
  await sql("select app_private.merge_duplicates($1, $2)", [first.id, second.id]);
  expect(await tell(answer(first.phone, "Again"))).toBe(200);
  expect((await notes(first.id)).map((found: any) => found.text)).toContain(note("Again").text);
  await sql("update app_public.leads set deleted_at = now() where id = $1", [first.id]);
  const [{ n }] = await sql("select count(*)::int as n from app_public.lead_notes");
  expect(await tell(answer(first.phone, "Hello?"))).toBe(200);
  expect(await sql("select count(*)::int as n from app_public.lead_notes")).toEqual([{ n }]);
  // Replies are data: template syntax in them is not evaluated.
  expect(server.attempts.some(({ form }) => form.Body?.includes("second@example.com"))).toBe(false);
}, 30_000);

test("above the quota of the organization, and for too many to one number, messages wait", async () => {
  workflows ??= await runWorkflows(world);
  const workflow = await createWorkflow(
    world,
    [{ type: "SEND_SMS", config: { body: "Win." }, onError: "FAIL" }],
    { reentry: "ALWAYS" },
  );
  const status = (execution: string) =>
    until(
      () => read(world.owen, execution),
      (found) => found.status === "COMPLETED" || found.steps[0]?.output?.until !== undefined,
    ).then(({ status: now, scheduledAt }) => [now, scheduledAt]);
  const used = async () =>
    (
      await world.owen.get("query ($id: ID!) { organization(id: $id) { sendingQuotas { channel used } } }", {
        id: world.harbour.id,
      })
    ).organization.sendingQuotas[1].used;
  const before = await used();
  await grantMessages(before + 1);
  const first = await status(await start(world.owen, workflow, (await lead()).id));
  expect(first[0]).toBe("COMPLETED");
  expect(await used()).toBe(before + 1);
  const [second, until24h] = await status(await start(world.owen, workflow, (await lead()).id));
  expect(second).toBe("RUNNING");
  expect(Date.parse(until24h)).toBeGreaterThan(Date.now() + 82_000_000);
  await grantMessages(10_000);
  const { id } = await lead();
  for (let n = 0; n < 10; n++)
    expect((await status(await start(world.owen, workflow, id)))[0]).toBe("COMPLETED");
  expect((await status(await start(world.owen, workflow, id)))[0]).toBe("RUNNING");
});
