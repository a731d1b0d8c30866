import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createMailProvider, type MailProvider } from "../../src/providers/mail/index.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";
import { answer, startSmtpServer } from "./smtp.ts";
import { createOutbox, runJobs, type Outbox } from "./worker.ts";

let database: TestDatabase;
let people: People;
let outbox: Outbox;
let mia: string, homes: string;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  outbox = await createOutbox();
  const ada = await people.person("Ada");
  const bob = await people.person("Bob");
  mia = await people.person("Mia");
  homes = await people.organization("Homes", {
    [ada]: "OWNER",
    [bob]: "OWNER",
    [mia]: "MEMBER",
  });
});

afterAll(async () => {
  await people.end();
  await database.drop();
  await outbox.remove();
});

const run = (mail: MailProvider = outbox.provider) => runJobs(database.ownerUrl, mail);
const recipients = async () => (await outbox.take()).map(({ to }) => to![0]!.address).sort();

test("a message to an organization is sent to its owners, or to its address", async () => {
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
  // The owner of the address is asked for consent; until then, the owners of the organization receive the
  // messages of visitors.
  const [question, ...forwarded] = (await outbox.take()).sort((a, b) => (a.subject! < b.subject! ? -1 : 1));
  expect([question!.to![0]!.address, question!.subject]).toEqual(["desk@example.com", "Enquiries to Homes"]);
  expect(forwarded.map(({ to }) => to![0]!.address).sort()).toEqual(["ada@example.com", "bob@example.com"]);
  const [, token] = /\/confirm\/(\w+)/.exec(question!.text!)!;
  await people.owner.query("select app_private.confirm_consent($1, null)", [token]);
  await contact();
  await run();
  expect(await recipients()).toEqual(["desk@example.com"]);
  await people.owner.query("update app_public.organizations set email = null where id = $1", [homes]);
});

test("a retry after a failure only sends to the remaining recipients", async () => {
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

test("a message to the service is sent to the operator", async () => {
  await people.as(null, "select app_public.contact_service('Vi', 'vi@example.com', 'Hello')");
  await run();
  expect(await outbox.take()).toMatchObject([
    { to: [{ address: "operator@plat.example" }], replyTo: [{ address: "vi@example.com" }] },
  ]);
});

test("a one-time code is sent to the user's address, once", async () => {
  const request = () => people.as(null, "select app_public.create_user_otp('mia@example.com') as done");
  expect(await request()).toEqual([{ done: true }]);
  await run();
  const [mail] = await outbox.take();
  expect(mail).toMatchObject({
    to: [{ address: "mia@example.com" }],
    subject: "Your password reset code",
  });
  await run();
  expect(await outbox.take()).toEqual([]);
});
