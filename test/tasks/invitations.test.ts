import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { createMailProvider, type MailProvider } from "../../src/providers/mail/index.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";
import { answer, startSmtpServer } from "./smtp.ts";
import { createOutbox, runJobs, type Outbox } from "./worker.ts";

let database: TestDatabase;
let people: People;
let outbox: Outbox;
let ada: string, homes: string;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  outbox = await createOutbox();
  ada = await people.person("Ada");
  homes = await people.organization("Homes <b>", { [ada]: "OWNER" });
});

afterAll(async () => {
  await people.end();
  await database.drop();
  await outbox.remove();
});

beforeEach(async () => {
  await people.owner.query("delete from graphile_worker._private_jobs");
  await outbox.take();
});

const invite = async (email: string): Promise<string> => {
  const [made] = await people.as<{ id: string }>(
    ada,
    "select id from app_public.create_organization_invite($1, $2, message => E'Join us\\nsoon')",
    [homes, email],
  );
  return made!.id;
};
const run = (mail: MailProvider = outbox.provider) => runJobs(database.ownerUrl, mail);
const accept = (who: string, token: string) =>
  people.as(who, "select organization_id from app_public.accept_organization_invite($1)", [token]);
const tokenIn = (text: string) => /#invite=(plat_invite_[\w-]{43})$/m.exec(text)![1]!;

test("the mail has the link for joining", async () => {
  const id = await invite("mia@example.com");
  const log = await run();
  const mails = await outbox.take();
  expect(mails).toMatchObject([
    {
      to: [{ address: "mia@example.com" }],
      subject: "Invitation to join Homes <b>",
      text: expect.stringContaining("Ada Test invites you to join Homes <b> as a member."),
    },
  ]);
  expect(mails[0]!.text).toContain("> Join us\n> soon");
  expect(mails[0]!.html).toContain("Homes &lt;b&gt;");
  const token = tokenIn(mails[0]!.text!);
  expect(log.join("\n")).not.toContain(token);
  const mia = await people.person("Mia");
  expect(await accept(mia, token)).toEqual([{ organization_id: homes }]);
  const { rows } = await people.owner.query(
    "select name from app_public.events where subject_id = $1 order by id",
    [id],
  );
  expect(rows.map(({ name }) => name)).toEqual([
    "organization_invite.created",
    "organization_invite.sent",
    "organization_invite.status_changed",
  ]);
});

test("a job that runs twice sends one mail", async () => {
  const id = await invite("twice@example.com");
  await run();
  const [mail] = await outbox.take();
  await people.owner.query(
    "select app_private.add_job('organization_invite__created', jsonb_build_object('id', $1::uuid, 'send_count', 1))",
    [id],
  );
  await run();
  expect(await outbox.take()).toEqual([]);
  const twice = await people.person("Twice");
  await accept(twice, tokenIn(mail!.text!));
});

test("after revoking and sending again, only the last link is mailed", async () => {
  const id = await invite("gone@example.com");
  await people.as(ada, "select app_public.revoke_organization_invite($1)", [id]);
  await invite("anew@example.com");
  await invite("anew@example.com");
  await run();
  expect((await outbox.take()).map(({ to }) => to![0]!.address)).toEqual(["anew@example.com"]);
});

test("a mail that the server defers is sent later, with a valid token", async () => {
  let attempts = 0;
  const server = await startSmtpServer({
    onRcptTo: (_a, _s, done) => done(attempts++ === 0 ? answer(451, "later") : null),
  });
  const mail = createMailProvider({
    smtpUrl: `smtp://127.0.0.1:${server.port}`,
    dataDir: "",
    from: "plat@plat.example",
  });
  await invite("later@example.com");
  await run(mail);
  const { rows } = await people.owner.query<{ id: string; last_error: string }>(
    "select id, last_error from graphile_worker._private_jobs where attempts = 1 and locked_at is null",
  );
  expect(rows).toHaveLength(1);
  expect(rows[0]!.last_error).toContain("did not take the mail now (EENVELOPE, RCPT TO, 451)");
  await people.owner.query("select graphile_worker.reschedule_jobs(array[$1::bigint], run_at => now())", [
    rows[0]!.id,
  ]);
  await run(mail);
  expect(server.mails).toHaveLength(1);
  const later = await people.person("Later");
  await accept(later, tokenIn(server.mails[0]!.email.text!));
  await mail.close();
  await server.close();
});

test("a nonexistent mailbox is recorded and not tried again", async () => {
  const server = await startSmtpServer({ onRcptTo: (_a, _s, done) => done(answer(550, "no such user")) });
  const mail = createMailProvider({
    smtpUrl: `smtp://127.0.0.1:${server.port}`,
    dataDir: "",
    from: "plat@plat.example",
  });
  await invite("nobody@example.com");
  const log = await run(mail);
  expect(log.filter((line) => line.startsWith("warning"))).toEqual([
    expect.stringContaining("refused this mail for good"),
  ]);
  expect(log.join("\n")).not.toContain("nobody@example.com");
  const { rows } = await people.owner.query(
    "select outcome, detail from app_private.mail_deliveries where recipient = 'nobody@example.com'",
  );
  expect(rows).toEqual([{ outcome: "REFUSED", detail: expect.stringContaining("550") }]);
  expect((await people.owner.query("select from graphile_worker._private_jobs")).rowCount).toBe(0);
  await mail.close();
  await server.close();
});

test("records of mails are deleted after 90 days", async () => {
  await people.owner.query("update app_private.mail_deliveries set at = now() - interval '91 days'");
  await invite("fresh@example.com");
  await run();
  await outbox.take();
  const old = () =>
    people.owner.query("select from app_private.mail_deliveries where at < now() - interval '90 days'");
  const before = (await old()).rowCount!;
  await invite("fresher@example.com");
  await run();
  await outbox.take();
  expect((await old()).rowCount).toBe(Math.max(0, before - 3));
});

test("an invalid payload fails the job and sends nothing", async () => {
  await people.owner.query("select app_private.add_job('organization_invite__created', '{\"id\": \"x\"}')");
  await run();
  expect(await outbox.take()).toEqual([]);
  const { rows } = await people.owner.query("select last_error from graphile_worker._private_jobs");
  expect(rows).toEqual([{ last_error: expect.stringContaining("The job's payload has no id.") }]);
});
