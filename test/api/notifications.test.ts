/** Notification mails to members: recipients, number of mails, and unsubscribing. */
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Email } from "postal-mime";
import { createMailProvider, type MailProvider } from "../../src/providers/mail/index.ts";
import { type Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { createBuyer } from "../harness/deals.ts";
import { negotiate } from "../harness/negotiations.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { type Create, createIn, mutationOf } from "../harness/records.ts";
import { visit as visitPage } from "../harness/visit.ts";
import { answer, startSmtpServer } from "../tasks/smtp.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

let world: Portfolio;
let outbox: Outbox;
let owen: Person, ada: Person, max: Person, mia: Person, sam: Person;
let create: Create;

beforeAll(async () => {
  [world, outbox] = await Promise.all([startPortfolio(), createOutbox()]);
  ({ owen, ada, max, mia, sam } = world);
  create = createIn(owen);
  await sql("update app_public.projects set visibility = 'PUBLIC'");
  await run();
});
afterAll(async () => {
  await world.stop();
  await outbox.remove();
});

const sql = async (text: string, values: unknown[] = []) => (await world.owner.query(text, values)).rows;

/** Processes all pending events. */
async function read(batch = 1000): Promise<void> {
  for (let more = true; more;)
    more = (await sql("select app_private.fan_out_notifications($1) as more", [batch]))[0].more;
}

/** Makes waiting mails and retries due. */
const makeDue = () =>
  sql(
    "select graphile_worker.reschedule_jobs(array(select id from graphile_worker._private_jobs), run_at => now())",
  );

/** Processes pending events, makes the mails due, and returns the sent ones. */
async function run(mail: MailProvider = outbox.provider): Promise<Email[]> {
  await read();
  await makeDue();
  await runJobs(world.database.ownerUrl, mail);
  return outbox.take();
}

const readers = (mails: Email[]) => mails.map((mail) => mail.to![0]!.address!).sort();
/** The mail to one of the recipients. */
const mailTo = (person: Person, mails: Email[]) =>
  mails.find((mail) => mail.to![0]!.address === person.email);
const of = (...people: Person[]) => people.map(({ email }) => email!).sort();
const header = (mail: Email, name: string) => mail.headers.find(({ key }) => key === name)?.value;

const headers = (mail: Email, name: string) =>
  mail.headers.filter(({ key }) => key === name).map(({ value }) => value);
/** The ids of the requests that created leads of that name. */
const requestsOf = async (name: string): Promise<string[]> =>
  (
    await sql(
      "select request_id from app_public.events where name = 'lead.created' and data ->> 'name' = $1",
      [name],
    )
  ).map(({ request_id }) => request_id);

const change = (field: string, input: Record<string, unknown>, person = owen) => {
  return person.get(mutationOf(field), { input });
};
const choose = (person: Person, notifications: Record<string, boolean>, organization = world.harbour) =>
  change("updateOrganizationNotifications", { organizationId: organization.id, notifications }, person);
const contact = (project: { id: string }, name: string, text?: string) =>
  change(
    "contactProject",
    { projectId: project.id, name, email: `${name.toLowerCase()}@visitors.example`, text },
    world.anonymous,
  );

test("changes by members notify nobody; a visitor's message notifies the team, and can be replied to", async () => {
  const lead = await create("createLead", { projectId: world.project.id, name: "Lena", assigneeId: max.id });
  await create("createLeadNote", { leadId: lead, text: "Likes gardens." });
  expect(await run()).toEqual([]);

  await choose(ada, { newLead: false });
  await contact(world.project, "Vi", "Is <b>12</b> free?");
  const mails = await run();
  // A seller of another organization sees only assigned leads, and a builder none. Ada has enabled messages,
  // and this is one too.
  expect(readers(mails)).toEqual(of(owen, ada, max, mia));
  const mail = mailTo(owen, mails);
  expect(mail).toMatchObject({
    subject: "Vi is a new lead for Harbour View",
    replyTo: [{ name: "Vi", address: "vi@visitors.example" }],
  });
  expect(mail!.text).toMatch(
    /https:\/\/plat\.example\/#lead=[0-9a-f-]{36}\n[^]*vi@visitors\.example\n[^]*> Is <b>12<\/b> free\?/,
  );
  expect(mail!.html).toContain("Is &lt;b&gt;12&lt;/b&gt; free?");
  expect(mailTo(ada, mails)!.subject).toBe("Vi contacted the sales office of Harbour View");
  const requests = await requestsOf("Vi");
  expect(requests).toHaveLength(1);
  for (const each of mails) expect(headers(each, "x-request-id")).toEqual(requests);
  // Processing the same events again sends nothing.
  expect(await run()).toEqual([]);

  await choose(ada, { contactMessage: false });
  await choose(max, { newLead: false, contactMessage: false });
  await contact(world.project, "Vi", "Hello?");
  const again = await run();
  expect(readers(again)).toEqual(of(owen, mia));
  expect(again[0]!.subject).toBe("Vi contacted the sales office of Harbour View");
  await choose(ada, { newLead: true, contactMessage: true });
  await choose(max, { newLead: true, contactMessage: true });
});

test("a hundred leads in a minute are one mail per recipient, in any number of batches", async () => {
  for (const name of ["Una", "Ugo"]) await contact(world.project, name, "One of many");
  await read();
  await sql(
    `with l as (insert into app_public.leads (organization_id, project_id, name, email, origin)
       select $1, $2, 'Visitor ' || n, 'visitor' || n || '@visitors.example', 'CONTACT_PROJECT' from generate_series(1, 98) n returning *)
     insert into app_public.project_contact_messages (organization_id, project_id, lead_id, lead_created, name, email)
       select organization_id, project_id, id, true, name, email from l`,
    [world.harbour.id, world.project.id],
  );
  await read(30);
  const mails = await run();
  expect(readers(mails)).toEqual(of(owen, ada, max, mia));
  for (const mail of mails) {
    expect(mail.subject).toBe("100 new leads at Harbour Homes");
    expect(mail.text).toContain("Una is a new lead for Harbour View");
    expect(mail.text).toContain("And 75 more.");
    expect(mail.replyTo).toBeUndefined();
    // Each request id once.
    expect(headers(mail, "x-request-id")).toEqual([
      ...(await requestsOf("Una")),
      ...(await requestsOf("Ugo")),
    ]);
  }
});

test("only active members who may see the record, except for the actor, receive mails", async () => {
  // Private leads: owners, admins and the assignee.
  await contact(world.quiet, "Pia");
  expect(readers(await run())).toEqual(of(owen, ada));
  const [{ id: pia }] = await sql("select id from app_public.leads where name = 'Pia'");
  await change("updateLead", { id: pia, assigneeId: max.id });
  const [assigned, ...others] = await run();
  expect([assigned!.to![0]!.address, assigned!.subject, others]).toEqual([
    max.email,
    "Pia is now your lead in Quiet Quay",
    [],
  ]);
  await contact(world.quiet, "Pia", "Again");
  expect(readers(await run())).toEqual(of(owen, ada, max));

  // A seller's own leads, with the settings of the seller's organization.
  const sams = world.leads.sams.id;
  const samsTask = (title: string) =>
    sql("insert into app_public.tasks (lead_id, title, assignee_id) values ($1, $2, $3)", [
      sams,
      title,
      sam.id,
    ]);
  await samsTask("Call back");
  const [task] = await run();
  expect([task!.to![0]!.address, task!.subject]).toEqual([
    sam.email,
    expect.stringMatching(/^New task for you: Call back \(/),
  ]);
  await choose(sam, { task: false }, world.sisters);
  await samsTask("Call back");
  expect(await run()).toEqual([]);
  await choose(sam, { task: true }, world.sisters);

  // The actor is not notified, nor members who left, were suspended or lost access to the record before the
  // mail was sent.
  await create("createTask", { organizationId: world.harbour.id, title: "Mine", assigneeId: owen.id });
  const task2 = await create("createTask", {
    organizationId: world.harbour.id,
    title: "Max's",
    assigneeId: max.id,
  });
  await create("createTask", { organizationId: world.harbour.id, title: "Mia's", assigneeId: mia.id });
  await samsTask("Sam's");
  await read();
  expect(await sql("select from app_private.notification_mails")).toHaveLength(3);
  await change("deleteTask", { id: task2 });
  await sql("update app_public.users set status = 'SUSPENDED' where id = $1", [mia.id]);
  await sql("update app_public.leads set assignee_id = null where id = $1", [sams]);
  expect(await run()).toEqual([]);
  await contact(world.project, "Zoe");
  expect(readers(await run())).toEqual(of(owen, ada, max));
  await sql("update app_public.users set status = 'ACTIVE' where id = $1", [mia.id]);
  await contact(world.project, "Zed");
  await read();
  await owen.get(
    `mutation ($o: ID!, $u: ID!) { removeOrganizationMember(input: { organizationId: $o, userId: $u }) { reassignedLeads } }`,
    { o: world.harbour.id, u: mia.id },
  );
  expect(readers(await run())).toEqual(of(owen, ada, max));
});

test("deals: appointments notify participants; reservations, offers and incoming notes notify the team", async () => {
  const table = negotiate(world);
  const lead = await table.lead({ assigneeId: max.id });
  const appointment = await create("createAppointment", {
    leadId: lead,
    type: "SALES_MEETING",
    hostId: ada.id,
    startsAt: "2031-01-01T15:00:00Z",
    endsAt: "2031-01-01T16:00:00Z",
    timeZone: "America/Toronto",
  });
  let mails = await run();
  expect(readers(mails)).toEqual(of(ada, max));
  expect(mails[0]!.subject).toMatch(
    /^Appointment with Lena Lead \d+ on 1 January 2031 at 10:00 \(America\/Toronto\), scheduled$/,
  );
  await change(
    "updateAppointment",
    { id: appointment, startsAt: "2031-01-01T14:00:00Z", endsAt: "2031-01-01T15:00:00Z" },
    ada,
  );
  mails = await run();
  expect([readers(mails), mails[0]!.subject]).toEqual([
    of(max),
    expect.stringContaining("moved to 1 January 2031 at 09:00"),
  ]);

  const unit = await table.unit({ number: "12" });
  const reservation = await create("createReservation", { leadId: lead, unitId: unit, acceptedTerms: true });
  mails = await run();
  expect(readers(mails)).toEqual(of(ada, max));
  expect(mails[0]!.subject).toMatch(
    /^Reservation \S+ of unit 12 in Harbour View for Lena Lead \d+, pending$/,
  );
  await change("updateReservation", { id: reservation, status: "CONFIRMED" }, ada);
  expect(readers(await run())).toEqual(of(owen, max));

  const negotiation = await table.negotiation();
  const offer = await table.offer(negotiation, "BUYER", 390_000);
  await table.answer(offer, "ACCEPT", ada);
  mails = await run();
  expect(readers(mails)).toEqual(of(owen, ada, max));
  expect(mailTo(max, mails)!.subject).toBe("2 updates on offers at Harbour Homes");
  expect(mailTo(owen, mails)!.subject).toMatch(/^Offer of CAD\s390,000\.00 for .*accepted$/);
  expect(mailTo(ada, mails)!.subject).toMatch(/^Lena Lead \d+ offers CAD\s390,000\.00 for /);

  const buyer = await createBuyer(owen, world.project, { assigneeId: ada.id });
  await sql(
    `insert into app_public.lead_notes (organization_id, project_id, lead_id, buyer_id, text)
     values ($1, $2, $3, null, 'Opened the mail.'), ($1, $2, null, $4, 'Paid.')`,
    [world.harbour.id, world.project.id, lead, buyer],
  );
  mails = await run();
  expect(readers(mails)).toEqual(of(ada, max));
  expect(mails.map(({ subject }) => subject).sort()).toEqual([
    "A note on Bea Buyer in Harbour View",
    expect.stringMatching(/^A note on Lena Lead/),
  ]);
});

test("a workflow notifies the team of a project, or of its lead the viewers", async () => {
  const tell = (project: { id: string }, lead: string | null, subject: string, link: string | null = null) =>
    sql("select app_private.notify_team($1, $2, $3, 'Look at <this>.', $4)", [
      project.id,
      lead,
      subject,
      link,
    ]);
  await tell(world.project, null, "Stock is low", "https://homes.example/stock");
  await tell(world.project, null, "Stock is very low", "javascript:alert(1)");
  const mails = await run();
  expect(readers(mails)).toEqual(of(owen, ada, max));
  expect(mails[0]!.subject).toBe("2 messages of workflows at Harbour Homes");
  expect(mails[0]!.html).toContain('href="https://homes.example/stock"');
  expect(mails[0]!.html).not.toContain("javascript:");
  expect(mails[0]!.text).toContain("> Look at <this>.");
  await tell(world.quiet, world.leads.mias.id, "A quiet lead");
  expect(readers(await run())).toEqual(of(owen, ada));
  await choose(owen, { teamMessage: false });
  await tell(world.quiet, null, "Everybody");
  expect(readers(await run())).toEqual(of(ada, max));
});

test("a new kind of record is one row: escalations and exports", async () => {
  const event = (name: string, data: object, actor: string | null = null) =>
    sql(
      // Any record that the recipients can see stands for the new kind.
      `with e as (insert into app_private.pending_events (stream_id, organization_id, name, subject_type, subject_id, actor_id, actor_type, channel, data)
         values ($1, $1, $2, 'organization', $1, $3, 'SYSTEM', 'SYSTEM', $4) returning stream_id)
       insert into app_private.event_batches (stream_id) select stream_id from e`,
      [world.harbour.id, name, actor, data],
    );
  await event("escalation_ticket.created", {
    title: "Card refused",
    description: "Twice.",
    assigneeId: null,
  });
  await event("export.completed", { filename: "leads.csv", requestedById: max.id }, max.id);
  await read();
  expect(
    await sql(
      "select kind, due_at <= now() as now, count(*)::int from app_private.notification_mails group by 1, 2 order by 1",
    ),
  ).toEqual([
    { kind: "escalation", now: false, count: 2 },
    { kind: "export_ready", now: true, count: 1 },
  ]);
  const mails = await run();
  expect(readers(mails)).toEqual(of(owen, ada, max));
  expect(mails.map(({ subject }) => subject).sort()).toEqual([
    "Escalation: Card refused",
    "Escalation: Card refused",
    "Your export leads.csv is ready",
  ]);
});

test("a crash at any moment loses and repeats nothing", async () => {
  // While events are processed: the cursor and its results are one transaction.
  await contact(world.project, "Kim");
  const client = await world.owner.connect();
  await client.query("begin; select app_private.fan_out_notifications(1000); rollback");
  client.release();
  await read();
  await read();
  // While mail is sent, after the server accepted it and before that was stored: the same mail under the same
  // id, without later events.
  const server = await startSmtpServer();
  const smtp = createMailProvider({
    smtpUrl: `smtp://127.0.0.1:${server.port}`,
    dataDir: "",
    from: "plat@plat.example",
  });
  let deaths = 0;
  const dying: MailProvider = {
    close: async () => {},
    send: async (message) => {
      await smtp.send(message);
      if (++deaths <= 3) throw new Error("killed");
      return { id: "taken" };
    },
  };
  await makeDue();
  await runJobs(world.database.ownerUrl, dying);
  await contact(world.project, "Kai");
  await read();
  await makeDue();
  await runJobs(world.database.ownerUrl, smtp);
  const mails = server.mails.map(({ email, raw }) => ({
    to: email.to![0]!.address!,
    id: email.messageId,
    raw,
    text: email.text!,
  }));
  for (const person of [owen, ada, max]) {
    const mine = mails.filter((mail) => mail.to === person.email);
    expect(new Set(mine.map(({ id }) => id)).size).toBe(2);
    expect(mine.filter(({ text }) => text.includes("Kim is a new lead"))).toHaveLength(2);
    expect(mine.filter(({ text }) => text.includes("Kai is a new lead"))).toHaveLength(1);
    const [first, second] = mine.filter(({ text }) => text.includes("Kim is a new lead"));
    expect([second!.id, second!.text]).toEqual([first!.id, first!.text]);
  }
  // RFC 8058, as transmitted.
  expect(mails[0]!.raw).toMatch(
    /^List-Unsubscribe:\s+<https:\/\/plat\.example\/unsubscribe\/new_lead\.\S+>\r?$/m,
  );
  expect(mails[0]!.raw).toMatch(/^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r?$/m);
  await smtp.close();
  await server.close();

  // A temporary refusal by the server is retried; a permanent one is not.
  const moody = await startSmtpServer({
    onRcptTo: ({ address }, _session, done) =>
      done(
        address === owen.email
          ? answer(452, "full")
          : address === ada.email
            ? answer(550, "no such mailbox")
            : null,
      ),
  });
  const mail = createMailProvider({
    smtpUrl: `smtp://127.0.0.1:${moody.port}`,
    dataDir: "",
    from: "plat@plat.example",
  });
  await contact(world.project, "Kit");
  await run(mail);
  await mail.close();
  await moody.close();
  expect(moody.mails.map(({ to }) => to[0])).toEqual([max.email]);
  expect(readers(await run())).toEqual([owen.email]);
});

test("concurrent processing and sending lose and repeat nothing", async () => {
  for (const name of ["Abe", "Abi", "Abo"]) {
    await contact(world.project, name);
    await Promise.all([
      read(),
      read(),
      makeDue().then(() => runJobs(world.database.ownerUrl, outbox.provider)),
    ]);
  }
  // The mail sent meanwhile, and the rest.
  const texts = (await run()).filter((mail) => readers([mail])[0] === max.email).map(({ text }) => text!);
  for (const name of ["Abe", "Abi", "Abo"])
    expect(texts.join().split(`${name} is a new lead`)).toHaveLength(2);
  expect(await sql("select from app_private.notification_mails")).toEqual([]);
});

/** The response to a browser or mail program. */
const visit = (path: string, method?: string, body?: string) =>
  visitPage(new URL(path, world.url), method, body);

test("the link in a mail unsubscribes from its kind only, after confirmation", async () => {
  await sql("update app_public.organizations set name = 'Harbour <Homes>' where id = $1", [world.harbour.id]);
  await contact(world.project, "Liv");
  const mail = mailTo(max, await run())!;
  const link = header(mail, "list-unsubscribe")!.slice(1, -1);
  expect(mail.text).toContain(link);
  const { pathname } = new URL(link);
  const chosen = async () =>
    (
      await sql(
        "select to_jsonb(notifications) as n from app_public.organization_user_connections where user_id = $1",
        [max.id],
      )
    )[0].n;
  const before = await chosen();

  for (const method of ["GET", "HEAD", "GET"]) {
    const page = await visit(pathname, method);
    expect(page.status).toBe(200);
    expect(page.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": expect.stringMatching(
        /default-src 'none'.*form-action 'self'.*frame-ancestors 'none'/,
      ),
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
      "x-frame-options": "DENY",
    });
    // The response to HEAD differs only by the missing body.
    expect(
      page.text.includes(
        'Emails about new leads from Harbour &lt;Homes&gt;</h1>\n<form method="post"><button>',
      ),
    ).toBe(method === "GET");
  }
  expect(await chosen()).toEqual(before);

  // The signature is for this member and kind; other methods and parts of the token are refused.
  const token = pathname.split("/")[2]!;
  const [kind, member, signature] = token.split(".");
  for (const forged of [
    `offer.${member}.${signature}`,
    `${kind}.${world.harbour.id}.${signature}`,
    `${kind}.${member}.${"A".repeat(43)}`,
    `${kind}.${member}`,
    "x",
    `${kind}.${member}.${createHmac("sha256", "a key of somebody else").update(`${kind}.${member}`).digest("base64url")}`,
  ])
    expect((await visit(`/unsubscribe/${forged}`, "POST")).status).toBe(403);
  expect((await visit(pathname, "DELETE")).status).toBe(405);
  expect((await world.person(token).ask("{ viewer { id } }")).errors![0]!.extensions.code).toBe(
    "UNAUTHENTICATED",
  );
  expect(await chosen()).toEqual(before);

  for (const body of ["List-Unsubscribe=One-Click", undefined, undefined]) {
    const done = await visit(pathname, "POST", body);
    expect([done.status, done.headers.location]).toEqual([200, undefined]);
    expect(done.text).toContain("No more emails about new leads from Harbour &lt;Homes&gt;");
    expect(await chosen()).toEqual({ ...before, new_lead: false });
  }
  await contact(world.project, "Lou");
  const still = mailTo(max, await run());
  expect(still!.subject).toBe("Lou contacted the sales office of Harbour View");
  await choose(max, { newLead: true });
  expect(await chosen()).toEqual(before);
  // A mail that is already queued is not sent either.
  await contact(world.project, "Leo");
  await read();
  await visit(pathname, "POST");
  expect(readers(await run())).toEqual(of(owen, ada));
  await choose(max, { newLead: true });

  const [unknown] = await sql("select app_private.sign_link('new_lead', $1) as token", [world.harbour.id]);
  const gone = await visit(`/unsubscribe/${unknown.token}`, "POST");
  expect([gone.status, gone.text.includes("You do not receive these emails")]).toEqual([200, true]);
});

test("tasks due today are sent once a day, in the morning of the member", async () => {
  // At noon UTC, some time zones have morning and others night.
  const [{ morning, night }] = await sql(
    `select (select name from pg_timezone_names where name ~ '^Etc/GMT' and extract(hour from now() at time zone name) = 8 limit 1) as morning,
       (select name from pg_timezone_names where name ~ '^Etc/GMT' and extract(hour from now() at time zone name) = 3 limit 1) as night`,
  );
  const zone = (person: Person, name: string) =>
    sql("update app_public.users set time_zone = $2 where id = $1", [person.id, name]);
  await zone(max, morning);
  await zone(owen, morning);
  await zone(ada, night);
  await zone(sam, morning);
  await sql("update app_public.leads set assignee_id = $1 where id = $2", [sam.id, world.leads.sams.id]);
  expect(readers(await run())).toEqual(of(sam));
  const at = (sign: string, hours: number) =>
    sql(`select now() ${sign} make_interval(hours => $1) as at`, [hours]).then(([row]) => row.at);
  for (const person of [max, ada])
    await create(
      "createTask",
      {
        organizationId: world.harbour.id,
        title: "Order keys",
        assigneeId: person.id,
        dueAt: await at("-", 30),
      },
      person,
    );
  await create(
    "createTask",
    { organizationId: world.harbour.id, title: "Call the bank", assigneeId: max.id, dueAt: await at("+", 1) },
    max,
  );
  await create(
    "createTask",
    { organizationId: world.harbour.id, title: "Next week", assigneeId: max.id, dueAt: await at("+", 170) },
    max,
  );
  const done = await create(
    "createTask",
    { organizationId: world.harbour.id, title: "Done", assigneeId: max.id, dueAt: await at("-", 1) },
    max,
  );
  await change("updateTask", { id: done, status: "COMPLETED" }, max);
  await create(
    "createTask",
    { leadId: world.leads.sams.id, title: "Visit", assigneeId: sam.id, dueAt: await at("+", 1) },
    sam,
  );
  expect(await run()).toEqual([]);

  const digest = async () => {
    await sql("select app_private.add_job('tasks__digest')");
    return run();
  };
  const mails = await digest();
  expect(readers(mails)).toEqual(of(max, sam));
  const mine = mailTo(max, mails)!;
  expect(mine.subject).toBe("Your tasks at Harbour <Homes> for today: 2");
  expect(mine.text).toMatch(/Order keys, was due [^]*Call the bank, due /);
  expect(mine.text).not.toMatch(/Next week|Done/);
  expect(header(mine, "list-unsubscribe")).toContain("/unsubscribe/task.");
  expect(await digest()).toEqual([]);
  // Again on the next day, if still subscribed.
  await sql("update app_private.task_digests set last_on = last_on - 1");
  await choose(sam, { task: false }, world.sisters);
  expect(readers(await digest())).toEqual(of(max));
  await zone(ada, morning);
  expect(readers(await digest())).toEqual(of(ada));
});

test("an expired hold notifies its holder; a released one does not", async () => {
  await run();
  const unit = () =>
    create("createUnit", {
      projectId: world.project.id,
      title: "Held",
      number: `H${++held}`,
      status: "AVAILABLE",
      price: 1,
    });
  let held = 0;
  const createAs = createIn(max);
  await createAs("createUnitHold", { unitId: await unit(), leadId: world.leads.open.id, expiration: 1 });
  const given = await createAs("createUnitHold", { unitId: await unit(), expiration: 1 });
  await max.get(mutationOf("deleteUnitHold", "{ id }"), { input: { id: given } });
  expect(await run()).toEqual([]);
  await passTime(world.owner, "2 hours");
  await max.get("{ unitHolds { id } }");
  const mails = await run();
  expect(readers(mails)).toEqual(of(max));
  expect(mails[0]!.text).toMatch(/Your hold of unit H1 in Harbour View for .+ expired/);
});
