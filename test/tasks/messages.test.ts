import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createMailProvider, type MailProvider } from "../../src/providers/mail/index.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";
import { answer, startSmtpServer } from "./smtp.ts";
import { createOutbox, runJobs, type Outbox } from "./worker.ts";

let database: TestDatabase;
let people: People;
let outbox: Outbox;
let ada: string, bob: string, mia: string, sam: string, homes: string;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  outbox = await createOutbox();
  ada = await people.person("Ada");
  bob = await people.person("Bob");
  mia = await people.person("Mia");
  sam = await people.person("Sam");
  homes = await people.organization("Homes", {
    [ada]: "OWNER",
    [bob]: "OWNER",
    [mia]: "MEMBER",
    [sam]: "MEMBER",
  });
});

afterAll(async () => {
  await people.end();
  await database.drop();
  await outbox.remove();
});

const run = (mail: MailProvider = outbox.provider) => runJobs(database.ownerUrl, mail);
const recipients = async () => (await outbox.take()).map(({ to }) => to![0]!.address).sort();

test("a message to an organization goes to its owners, or to its address", async () => {
  const contact = () =>
    people.as(
      mia,
      "select app_public.contact_organization($1, 'Vi', 'vi@example.com', E'Hello\\n<b>you</b>', '+1 416 555 0123')",
      [homes],
    );
  await contact();
  await run();
  const mails = await outbox.take();
  expect(mails.map(({ to }) => to![0]!.address).sort()).toEqual(["ada@example.com", "bob@example.com"]);
  expect(mails[0]).toMatchObject({
    subject: "Message from Vi to Homes",
    replyTo: [{ name: "Vi", address: "vi@example.com" }],
  });
  expect(mails[0]!.text).toContain("> Hello\n> <b>you</b>");
  expect(mails[0]!.text).toContain("Phone: +1 416 555 0123");
  expect(mails[0]!.html).toContain("Hello<br>&lt;b&gt;you&lt;/b&gt;");
  await people.owner.query("update app_public.organizations set email = 'desk@example.com' where id = $1", [
    homes,
  ]);
  await contact();
  await run();
  expect(await recipients()).toEqual(["desk@example.com"]);
  await people.owner.query("update app_public.organizations set email = null where id = $1", [homes]);
});

test("a try after a failure reaches those only who were not reached", async () => {
  await people.as(mia, "select app_public.contact_organization($1, 'Vi', 'vi@example.com', 'Again')", [
    homes,
  ]);
  const server = await startSmtpServer({
    onRcptTo: ({ address }, _session, done) =>
      done(address === "ada@example.com" ? answer(452, "full") : null),
  });
  const mail = createMailProvider({
    smtpUrl: `smtp://127.0.0.1:${server.port}`,
    dataDir: "",
    from: "plat@plat.example",
  });
  await run(mail);
  expect(server.mails.map(({ to }) => to)).toEqual([["bob@example.com"]]);
  await mail.close();
  await server.close();
  await people.owner.query(
    "select graphile_worker.reschedule_jobs(array(select id from graphile_worker._private_jobs), run_at => now())",
  );
  await run();
  expect(await recipients()).toEqual(["ada@example.com"]);
});

test("a message to the service goes to the operator", async () => {
  await people.as(null, "select app_public.contact_service('Vi', 'vi@example.com', 'Hello')");
  await run();
  expect(await outbox.take()).toMatchObject([
    { to: [{ address: "operator@plat.example" }], replyTo: [{ address: "vi@example.com" }] },
  ]);
});

test("a message to a sales office goes to members who want it and may see the lead", async () => {
  const notify = (user: string, settings: object) =>
    people.as(
      user,
      "select app_public.update_organization_notifications($1, jsonb_populate_record(null::app_public.notification_settings, $2))",
      [homes, settings],
    );
  await notify(ada, { contact_message: false, new_lead: false });
  await notify(bob, { contact_message: false });
  const { rows: projects } = await people.owner.query<{ id: string }>(
    "insert into app_public.projects (organization_id, title) values ($1, 'North') returning id",
    [homes],
  );
  const project = projects[0]!.id;
  const { rows: leads } = await people.owner.query<{ id: string }>(
    "insert into app_public.leads (organization_id, project_id, name, assignee_id) values ($1, $2, 'Vi', $3) returning id",
    [homes, project, sam],
  );
  const write = async (leadCreated: boolean) => {
    const { rows } = await people.owner.query<{ id: string }>(
      "insert into app_public.project_contact_messages (organization_id, project_id, lead_id, name, email, text, lead_created) values ($1, $2, $3, 'Vi', 'vi@example.com', 'Hello', $4) returning id",
      [homes, project, leads[0]!.id, leadCreated],
    );
    // Whether or not a trigger has enqueued it too: the key makes it one mail.
    await people.owner.query(
      "select app_private.add_job('contact_message__created', jsonb_build_object('id', $1::uuid))",
      [rows[0]!.id],
    );
    await run();
  };
  await write(true);
  const mails = await outbox.take();
  expect(mails.map(({ to }) => to![0]!.address).sort()).toEqual([
    "bob@example.com",
    "mia@example.com",
    "sam@example.com",
  ]);
  expect(mails[0]!.subject).toBe("New lead for North: Vi");
  expect(mails[0]!.headers.find(({ key }) => key === "list-unsubscribe")?.value).toContain(
    "mailto:operator@plat.example",
  );
  await write(false);
  expect(await recipients()).toEqual(["mia@example.com", "sam@example.com"]);

  await people.owner.query("update app_public.projects set lead_assignment = 'PRIVATE' where id = $1", [
    project,
  ]);
  await write(true);
  expect(await recipients()).toEqual(["bob@example.com", "sam@example.com"]);
});

test("a one-time code goes to the user's address, and once", async () => {
  const request = () => people.as(null, "select app_public.create_user_otp('mia@example.com') as done");
  expect(await request()).toEqual([{ done: true }]);
  await run();
  const [mail] = await outbox.take();
  expect(mail).toMatchObject({
    to: [{ address: "mia@example.com" }],
    subject: "Your code for a new password",
  });
  await run();
  expect(await outbox.take()).toEqual([]);
});
