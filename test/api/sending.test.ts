/**
 * Limits on mails to people outside of an organization, which are sent under the name of the service: few
 * mails, few recipients, and none before the sender is verified.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Email } from "postal-mime";
import type { Workflows } from "../../src/workflows/runner.ts";
import type { Person } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { createLead } from "../harness/portfolio.ts";
import { mutationOf } from "../harness/records.ts";
import { setConfirmed } from "../harness/signUp.ts";
import { until } from "../harness/until.ts";
import { visit } from "../harness/visit.ts";
import { startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";
import { createWorkflow, reaches, runWorkflows, start } from "../workflows/world.ts";

let world: World;
let outbox: Outbox;
let workflows: Workflows;
let people = 0;

beforeAll(async () => {
  [world, outbox] = await Promise.all([startWorld(), createOutbox()]);
  workflows = await runWorkflows(world);
  await sent();
});
afterAll(async () => {
  await workflows.stop();
  await world.stop();
  await outbox.remove();
});

const sql = async (text: string, values: unknown[] = []) => (await world.owner.query(text, values)).rows;
const sent = async (): Promise<Email[]> => {
  await runJobs(world.database.ownerUrl, outbox.provider);
  return outbox.take();
};
const recipients = (mails: Email[]) => mails.map(({ to }) => to![0]!.address);
const waiting = () =>
  sql(
    `select extract(epoch from run_at - now())::int as seconds from graphile_worker.jobs
     where task_identifier = 'workflow_mail__send' and run_at > now() order by run_at`,
  );
const forget = () =>
  sql(
    "delete from graphile_worker._private_jobs; truncate app_private.limit_uses, app_private.sending_counts, app_private.sending_changes",
  );
const grant = (mails: number) =>
  sql(
    `insert into app_private.sending_changes (organization_id, mails, reason) values ($1, $2, 'test')
     on conflict (organization_id) do update set mails = excluded.mails`,
    [world.harbour.id, mails],
  );
const confirm = (person: Person, isConfirmed: boolean) => setConfirmed(world.owner, person.id, isConfirmed);
const quotas = (person: Person) =>
  person
    .get(
      "query ($id: ID!) { organization(id: $id) { sendingQuotas { channel tier perDay used freesAt } } }",
      {
        id: world.harbour.id,
      },
    )
    .then(({ organization }) => organization?.sendingQuotas);
const letter = (config: Record<string, unknown> = {}) => [
  { type: "SEND_EMAIL", config: { subject: "Win", body: "Win.", ...config }, onError: "FAIL" },
];
const anyLead = (input: Record<string, unknown> = {}) =>
  createLead(world.owen, {
    projectId: world.project.id,
    name: "Victim",
    email: `victim.${++people}@elsewhere.example`,
    ...input,
  });
const press = (mail: Email, pattern: RegExp) =>
  visit(new URL(pattern.exec(mail.text!)![0], world.url), "POST");

test("inviting requires a confirmed email address", async () => {
  const { owen, harbour } = world;
  const invitation = { organizationId: harbour.id, email: "friend@elsewhere.example" };
  const { createOrganizationInvite: known } = await owen.get(mutationOf("createOrganizationInvite"), {
    input: invitation,
  });
  const buyerId = await createBuyer(owen, world.project, { email: "bea@elsewhere.example" });
  await sent();
  await confirm(owen, false);
  const operations: [string, Record<string, unknown>, string?][] = [
    ["createOrganizationInvite", { ...invitation, email: "other@elsewhere.example" }],
    ["resendOrganizationInvite", { id: known.id }],
    ["inviteBuyer", { buyerId }, ""],
    ["requestMailConsent", invitation, ""],
  ];
  for (const [name, input, selection] of operations)
    expect([name, await owen.refused(mutationOf(name, selection), { input })]).toEqual([
      name,
      expect.objectContaining({
        code: "FORBIDDEN",
        reason: "EMAIL_NOT_CONFIRMED",
        message: expect.stringMatching(/requestEmailVerification.*verifyEmail/),
      }),
    ]);
  expect(await sent()).toEqual([]);

  // By the operation that the message names.
  await owen.get(mutationOf("requestEmailVerification", ""), { input: {} });
  const [mail] = await sent();
  expect(recipients([mail!])).toEqual([owen.email]);
  const token = /^ {4}(\S{20,})$/m.exec(mail!.text!)![1];
  expect((await world.olga.refused(mutationOf("verifyEmail"), { input: { token } })).code).toBe(
    "BAD_USER_INPUT",
  );
  await owen.get(mutationOf("verifyEmail"), { input: { token } });
  await owen.get(mutationOf("inviteBuyer", ""), { input: { buyerId } });
  // The mail about the confirmation of the address is sent too.
  expect(recipients(await sent()).sort()).toEqual(["bea@elsewhere.example", owen.email]);
});

test("an organization without a confirmed owner cannot send to external recipients", async () => {
  const workflow = await createWorkflow(world, letter());
  await confirm(world.owen, false);
  const refused = await reaches(
    world.owen,
    await start(world.owen, workflow, (await anyLead()).id),
    "FAILED",
  );
  expect(refused.error).toMatch(/No owner of the organization has confirmed/);
  await confirm(world.owen, true);
  await reaches(world.owen, await start(world.owen, workflow, (await anyLead()).id), "COMPLETED");
  expect(await sent()).toHaveLength(1);
});

test("one address receives at most 20 mails a day from an organization, of all kinds; the others wait", async () => {
  await forget();
  const workflow = await createWorkflow(world, letter(), { reentry: "ALWAYS" });
  const { id } = await anyLead();
  await Promise.all(Array.from({ length: 25 }, () => start(world.owen, workflow, id)));
  const open = `select count(*)::int from app_public.workflow_executions where workflow_id = $1 and status <> 'COMPLETED'`;
  await until(
    () => sql(open, [workflow]),
    ([{ count }]) => count === 0,
  );
  expect(await sent()).toHaveLength(20);
  const later = await waiting();
  expect(later).toHaveLength(5);
  for (const { seconds } of later) expect(seconds).toBeGreaterThan(86_000);
  // A day later.
  await sql("update app_private.limit_uses set expires_at = expires_at - interval '1 day'");
  await sql("update graphile_worker._private_jobs set run_at = now()");
  expect(await sent()).toHaveLength(5);
});

test("the quota of the organization applies to mails and invitations, reports when it frees, and can be raised by an operator", async () => {
  await forget();
  await grant(3);
  const workflow = await createWorkflow(world, letter());
  const leads = await Promise.all(Array.from({ length: 5 }, () => anyLead()));
  for (const { id } of leads) await reaches(world.owen, await start(world.owen, workflow, id), "COMPLETED");
  expect(await sent()).toHaveLength(3);
  expect(await waiting()).toHaveLength(2);
  const full = { channel: "MAIL", tier: "OPERATOR", perDay: 3, used: 3, freesAt: expect.any(String) };
  for (const person of [world.owen, world.ada, world.max])
    expect(await quotas(person)).toEqual([
      full,
      { channel: "SMS", tier: "NEW", perDay: 20, used: 0, freesAt: null },
    ]);
  expect((await quotas(world.olga)) ?? null).toBeNull();
  const invitation = { organizationId: world.harbour.id, email: "late@elsewhere.example" };
  const refused = await world.owen.refused(mutationOf("createOrganizationInvite"), { input: invitation });
  expect(refused).toMatchObject({
    code: "RATE_LIMITED",
    limit: 3,
    message: expect.stringContaining("sendingQuotas"),
  });
  expect(refused.retryAfterSeconds).toBeGreaterThan(82_000);
  // Mails to members do not count.
  await reaches(
    world.owen,
    await start(
      world.owen,
      await createWorkflow(world, letter({ to: "MEMBER", memberId: world.max.id })),
      leads[0]!.id,
    ),
    "COMPLETED",
  );
  expect(recipients(await sent())).toEqual([world.max.email]);

  await grant(6);
  await sql("update graphile_worker._private_jobs set run_at = now()");
  expect(await sent()).toHaveLength(2);
  await world.owen.get(mutationOf("createOrganizationInvite"), { input: invitation });
  expect(await quotas(world.owen)).toMatchObject([{ perDay: 6, used: 6 }, {}]);
  // Counts older than 24 hours are no longer included.
  await sql("update app_private.sending_counts set hour = hour - interval '24 hours'");
  expect(await quotas(world.owen)).toMatchObject([{ used: 0, freesAt: null }, {}]);
  await sent();
});

test("concurrent mails never exceed the quota, and refused mails are returned to it", async () => {
  await forget();
  await grant(7);
  await sql("update app_private.sending_changes set messages = 5");
  const { id } = world.harbour;
  const reserve = async (n: number): Promise<number> =>
    (await sql("select app_private.reserve_mail($1, $2) as wait", [id, `r${n}@elsewhere.example`]))[0].wait;
  const waits = await Promise.all(Array.from({ length: 40 }, (_, n) => reserve(n)));
  expect(waits.filter((wait) => wait === 0)).toHaveLength(7);
  for (const wait of waits.filter((one) => one > 0)) expect(wait).toBeGreaterThan(82_000);
  // Waiting mails are not counted.
  expect(await sql("select count(*)::int as n from app_private.limit_uses")).toEqual([{ n: 14 }]);
  const taken = waits.indexOf(0);
  await sql("select app_private.return_mail($1, $2)", [id, `r${taken}@elsewhere.example`]);
  expect(await quotas(world.owen)).toMatchObject([{ used: 6, freesAt: null }, {}]);
  expect(await sql("select count(*)::int as n from app_private.limit_uses")).toEqual([{ n: 12 }]);
  expect(
    await Promise.all([reserve(50), reserve(51)]).then((all) => all.filter((wait) => wait === 0)),
  ).toHaveLength(1);
  const granted = await Promise.all(
    Array.from({ length: 12 }, () => sql("select app_private.reserve_sending($1, 'SMS', 2) as n", [id])),
  );
  expect(granted.map(([{ n }]) => n).sort()).toEqual([...Array.from({ length: 9 }, () => 0), 1, 2, 2]);
  await forget();
});

test("the quota grows with age, and with accepting payments", async () => {
  await forget();
  const tier = async (age: string) => {
    await sql("update app_public.organizations set inserted_at = now() - $2::interval where id = $1", [
      world.harbour.id,
      age,
    ]);
    return (await quotas(world.owen)).map(({ tier: name, perDay }: any) => [name, perDay]);
  };
  expect(await tier("40 days")).toEqual([
    ["MONTH", 10_000],
    ["MONTH", 1_000],
  ]);
  expect(await tier("8 days")).toEqual([
    ["WEEK", 2_000],
    ["WEEK", 200],
  ]);
  expect(await tier("0")).toEqual([
    ["NEW", 200],
    ["NEW", 20],
  ]);
  await sql(
    "insert into app_private.payments_accounts (organization_id, processor_id, status) values ($1, 'acct_1', 'ENABLED')",
    [world.harbour.id],
  );
  expect(await tier("0")).toEqual([
    ["PAYMENTS", 20_000],
    ["PAYMENTS", 2_000],
  ]);
  await sql("delete from app_private.payments_accounts");
});

test("an unknown address gets mails after its owner's consent, until they withdraw it", async () => {
  await forget();
  const email = "partner@elsewhere.example";
  const workflow = await createWorkflow(world, letter({ to: "ADDRESS", address: email }));
  const { id } = await anyLead();
  const write = async (status: string) => reaches(world.owen, await start(world.owen, workflow, id), status);
  const refusal = /of no lead, buyer or member, and its owner has not agreed: requestMailConsent asks/;
  expect((await write("FAILED")).error).toMatch(refusal);
  expect(await sent()).toEqual([]);
  const ask = { organizationId: world.harbour.id, email };
  const request = mutationOf("requestMailConsent", "");
  for (const [person, code] of [
    [world.anonymous, "UNAUTHENTICATED"],
    [world.olga, "FORBIDDEN"],
    [world.max, "FORBIDDEN"],
  ] as const)
    expect(["NOT_FOUND", code]).toContain((await person.refused(request, { input: ask })).code);
  for (let n = 0; n < 3; n++) await world.ada.get(request, { input: ask });
  const questions = await sent();
  expect(recipients(questions)).toEqual([email]);
  expect((await write("FAILED")).error).toMatch(refusal);
  await press(questions[0]!, /\/confirm\/\w+/);
  await write("COMPLETED");
  const [mail] = await sent();
  expect(recipients([mail!])).toEqual([email]);
  await press(mail!, /\/unsubscribe\/[\w.-]+/);
  expect((await write("FAILED")).error).toMatch(refusal);
});

test("HTML of an organization is reduced to text formatting", async () => {
  await forget();
  const html = `<html><head><style>p{display:none}</style><title>T</title></head><body onload="x()">
    <p style="color:red;position:fixed;display:none" onclick="x()">Hello {{ lead.name }}</p>
    <a href="javascript:x()">a</a><a href="https://ok.example/">b</a><img src="http://tracker.example/1.gif">
    <form action="https://evil.example"><input name="password"></form><iframe src="https://evil.example"></iframe>
    <script>x()</script><div style="display:none"><!-- `;
  const workflow = await createWorkflow(world, letter({ html }));
  const { id } = await anyLead({ name: "<b>Bobby</b>" });
  await reaches(world.owen, await start(world.owen, workflow, id), "COMPLETED");
  const [mail] = await sent();
  expect(mail!.html).toContain('<p style="color:red">Hello &lt;b&gt;Bobby&lt;/b&gt;</p>');
  expect(mail!.html).toContain('<a href="https://ok.example/">b</a>');
  for (const bad of [
    "script",
    "<form",
    "<input",
    "iframe",
    "position",
    "display",
    "tracker",
    "onclick",
    "<style",
    "<!--",
  ])
    expect([bad, mail!.html!.toLowerCase().includes(bad)]).toEqual([bad, false]);
  // The footer of the service is outside of all elements that the text opened.
  expect(mail!.html).toMatch(/<div><\/div>\s*<p><a href="https:\/\/plat\.example\/unsubscribe\//);
});

test("a user can create ten organizations a day, and the refusal has the time of the next one", async () => {
  await forget();
  const founder = await world.signUp("Many Founder");
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      founder.ask(mutationOf("createOrganization"), { input: { name: `Shell ${n}` } }),
    ),
  );
  const refused = answers.flatMap(({ errors }) => errors ?? []);
  expect(refused).toHaveLength(50);
  for (const { extensions } of refused)
    expect(extensions).toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: expect.any(Number) });
});

test("an organization's address for enquiries must consent before messages are forwarded to it", async () => {
  await forget();
  await sql("update app_public.projects set visibility = 'PUBLIC' where id = $1", [world.project.id]);
  const victim = "victim@elsewhere.example";
  await world.owen.get(mutationOf("updateOrganization"), { input: { id: world.harbour.id, email: victim } });
  const [questions, ...more] = await sent();
  expect([recipients([questions!]), questions!.subject, more]).toEqual([
    [victim],
    "Enquiries to Harbour Homes",
    [],
  ]);
  for (let n = 0; n < 3; n++)
    await world.anonymous.get(mutationOf("contactOrganization"), {
      input: { organizationId: world.harbour.id, name: "Vi", email: `vi${n}@example.com`, message: "Hello" },
    });
  expect(new Set(recipients(await sent()))).toEqual(new Set([world.owen.email]));
  await press(questions!, /\/confirm\/\w+/);
  await world.anonymous.get(mutationOf("contactOrganization"), {
    input: { organizationId: world.harbour.id, name: "Vi", email: "vi9@example.com", message: "Hello" },
  });
  expect(recipients(await sent())).toEqual([victim]);
});

test("an account with an unconfirmed address gets at most ten mails a day", async () => {
  await forget();
  await confirm(world.max, false);
  const workflow = await createWorkflow(world, letter({ to: "MEMBER", memberId: world.max.id }), {
    reentry: "ALWAYS",
  });
  const { id } = await anyLead();
  for (let n = 0; n < 12; n++) await reaches(world.owen, await start(world.owen, workflow, id), "COMPLETED");
  expect(await sent()).toHaveLength(10);
  await confirm(world.max, true);
  await sql("update graphile_worker._private_jobs set run_at = now()");
  expect(await sent()).toHaveLength(2);
});
