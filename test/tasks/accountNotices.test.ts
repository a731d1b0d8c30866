import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";
import { createOutbox, runJobs, type Outbox } from "./worker.ts";

// Mails about changes of an account: one for each change, to a confirmed address of its user.

let database: TestDatabase;
let people: People;
let outbox: Outbox;
let mia: string;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  outbox = await createOutbox();
  mia = await people.person("Mia");
});
afterAll(async () => {
  await people.end();
  await database.drop();
  await outbox.remove();
});

const tell = (change: string, facts: object = {}, former: string | null = null) =>
  people.owner.query("select app_private.tell_account($1, $2, $3, $4)", [mia, change, facts, former]);
const confirmed = (isConfirmed: boolean) =>
  people.owner.query(
    "update app_public.users set email_verified_at = case when $2 then now() end where id = $1",
    [mia, isConfirmed],
  );

test("each change has a mail with the event, the time and instructions", async () => {
  await confirmed(true);
  const facts = { device: "curl", name: "Build", email: "new@example.com", left: 7, organization: "Homes" };
  // The changes that SQL reports, so that each has its mail.
  const { rows } = await people.owner.query<{ change: string }>(
    `select distinct m[1] as change from pg_proc p,
       regexp_matches(p.prosrc, '(?:tell_account|remove_second_factor)\\([^'']*''([A-Z_]+)''', 'g') m
     where p.pronamespace in ('app_public'::regnamespace, 'app_private'::regnamespace) order by 1`,
  );
  const changes = rows.map(({ change }) => change);
  expect(changes.length).toBeGreaterThanOrEqual(13);
  for (const change of changes) await tell(change, facts);
  await runJobs(database.ownerUrl, outbox.provider);
  const mails = await outbox.take();
  expect(mails).toHaveLength(changes.length);
  expect(new Set(mails.map(({ subject }) => subject)).size).toBe(changes.length);
  for (const { to, text } of mails) {
    expect(to).toMatchObject([{ address: "mia@example.com" }]);
    expect(text).toMatch(/When: .* UTC/);
    expect(text).not.toMatch(/undefined|\{\w*\}/);
  }
  const all = mails.map(({ text }) => text).join("\n");
  for (const fact of ["curl", '“Build”|"Build"', "new@example.com", "7 are left", "Homes"])
    expect(all).toMatch(new RegExp(fact));
  // If the job is executed again, no mail is sent twice.
  await runJobs(database.ownerUrl, outbox.provider);
  expect(await outbox.take()).toEqual([]);
});

test("notifies a former address if given, and never an unconfirmed one", async () => {
  await tell("EMAIL_CHANGED", { email: "new@example.com" }, "former@example.com");
  await runJobs(database.ownerUrl, outbox.provider);
  expect((await outbox.take()).map(({ to }) => to![0]!.address)).toEqual(["former@example.com"]);
  await confirmed(false);
  await tell("PASSWORD_CHANGED");
  await runJobs(database.ownerUrl, outbox.provider);
  expect(await outbox.take()).toEqual([]);
});
