/** The contact form with the email address of another person changes neither the lead nor its consent. */
import { createHmac, hkdfSync } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { Email } from "postal-mime";
import { keepFormerLinkKeys } from "../../src/notifications/unsubscribeLinks.ts";
import type { Person } from "../harness/api.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { mutationOf } from "../harness/records.ts";
import { setConfirmed } from "../harness/signUp.ts";
import { visit as visitPage } from "../harness/visit.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

let world: Portfolio;
let outbox: Outbox;
let people = 0;

beforeAll(async () => {
  [world, outbox] = await Promise.all([startPortfolio(), createOutbox()]);
  await sent();
});
beforeEach(() => sql("truncate app_private.limit_uses"));
afterAll(async () => {
  await world.stop();
  await outbox.remove();
});

const sql = async (text: string, values: unknown[] = []) => (await world.owner.query(text, values)).rows;
const sent = async (): Promise<Email[]> => {
  await runJobs(world.database.ownerUrl, outbox.provider);
  return outbox.take();
};
const visit = (path: string, method = "GET", body?: string) =>
  visitPage(new URL(path, world.url), method, body);
const confirmation = (mail: Email | undefined) =>
  /https:\/\/plat\.example(\/confirm\/\w+)/.exec(mail?.text ?? "")?.[1] ?? "none";

/** A lead of the public project. */
async function known(input: Record<string, unknown> = {}) {
  const email = `known.${++people}@example.com`;
  const { id } = await createLead(world.owen, {
    projectId: world.park.id,
    name: "Lena Lead",
    email,
    ...input,
  });
  return { id, email };
}

const contact = (person: Person, input: Record<string, unknown>) =>
  person.ask(
    mutationOf(
      "contactProject",
      "{ id leadId leadCreated lead { id } mergedAt phone company agentName follow }",
    ),
    { input: { projectId: world.park.id, name: "Stra Nger", ...input } },
  );
const leadOf = (id: string) =>
  world.owen
    .get(
      `query ($id: ID!) { lead(id: $id) { phone company address { locality } isRepresented agent { name } subscribed unsubscribedAt
         messages { id phone company mergedAt follow } } }`,
      { id },
    )
    .then(({ lead }) => lead);
const withdrawn = (email: string) =>
  sql("select email from app_private.withdrawn_addresses where email = $1", [email]);
const unsubscribe = async (id: string) => {
  const [{ token }] = await sql("select app_private.sign_link('marketing', $1) as token", [id]);
  return visit(`/unsubscribe/${token}`, "POST", "List-Unsubscribe=One-Click");
};

const formFields = {
  phone: "+14165550199",
  company: "Evil Inc.",
  address: { locality: "Elsewhere", country: "CA" },
  isRepresented: true,
  agent: { name: "Mal Agent", email: "mal@agents.example", phone: "+1 416 555 0198" },
  follow: true,
};

test("a visitor with a lead's address changes neither the lead nor its consent; the owner of the address does", async () => {
  const { id, email } = await known();
  await unsubscribe(id);
  const before = await leadOf(id);
  const { data, errors } = await contact(world.anonymous, { email, ...formFields });
  expect(errors).toBeUndefined();
  const { messages, ...lead } = await leadOf(id);
  expect(lead).toEqual({ ...before, messages: undefined });
  expect(lead).toMatchObject({ phone: null, agent: null, subscribed: false });
  expect(messages).toEqual([
    {
      id: data.contactProject.id,
      phone: formFields.phone,
      company: formFields.company,
      mergedAt: null,
      follow: true,
    },
  ]);
  expect(await withdrawn(email)).toHaveLength(1);

  // One mail to the address, which asks for confirmation; opening its link changes nothing.
  const [mail, ...more] = await sent();
  expect([mail!.to![0]!.address, more]).toEqual([email, []]);
  expect(mail!.subject).toBe("Do you want to receive news from Harbour Homes?");
  const path = confirmation(mail);
  for (const method of ["GET", "HEAD", "GET"]) {
    const page = await visit(path, method);
    expect(page.status).toBe(200);
    expect(page.headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
    expect(page.text + page.headers.location).not.toContain("known");
  }
  expect((await visit(path)).text).toContain("News from Harbour Homes?");
  expect(await leadOf(id)).toMatchObject({ subscribed: false, phone: null });

  for (let times = 0; times < 2; times++) {
    const page = await visit(path, "POST");
    expect([page.status, page.text.includes("You will receive news from Harbour Homes")]).toEqual([
      200,
      true,
    ]);
  }
  expect(await leadOf(id)).toMatchObject({
    phone: formFields.phone,
    company: formFields.company,
    address: { locality: "Elsewhere" },
    isRepresented: true,
    agent: { name: "Mal Agent" },
    subscribed: true,
    unsubscribedAt: null,
    messages: [{ mergedAt: expect.any(String) }],
  });
  expect(await withdrawn(email)).toEqual([]);
  expect(
    await sql("select confirmed_at is not null as kept from app_private.consent_requests where email = $1", [
      email,
    ]),
  ).toEqual([{ kept: true }]);
  const [event] = await sql(
    "select actor_type, request_id from app_public.events where subject_id = $1 and changes ? 'subscribed' order by id desc limit 1",
    [id],
  );
  expect(event).toEqual({ actor_type: "SYSTEM", request_id: expect.any(String) });
});

test("a new lead receives no messages before its owner confirms, and a withdrawal remains in effect for later leads", async () => {
  const email = `new.${++people}@example.com`;
  await contact(world.anonymous, { email, ...formFields });
  const [{ id }] = await sql("select id from app_public.leads where email = $1", [email]);
  expect(await leadOf(id)).toMatchObject({
    phone: formFields.phone,
    agent: { name: "Mal Agent" },
    subscribed: false,
    messages: [{ mergedAt: expect.any(String) }],
  });
  await visit(confirmation((await sent())[0]), "POST");
  expect(await leadOf(id)).toMatchObject({ subscribed: true });
  await unsubscribe(id);
  await world.owen.get(mutationOf("deleteLead", "{ id }"), { input: { id } });
  await contact(world.anonymous, { email, follow: true });
  expect(await withdrawn(email)).toHaveLength(1);
});

test("responses and refusals do not reveal whether the address belongs to a lead", async () => {
  const { email } = await known();
  const fresh = () => `fresh.${++people}@example.com`;
  const masked = ({ data, errors }: Awaited<ReturnType<typeof contact>>) => {
    const { id, leadId, ...rest } = data.contactProject ?? {};
    return {
      same: leadId === id,
      rest,
      codes: errors?.map(({ message, extensions: { code, field } }) => ({ message, code, field })),
    };
  };
  for (const person of [world.anonymous, world.olga]) {
    const made = await contact(person, { email: fresh() });
    const merged = await contact(person, { email });
    expect(masked(merged)).toEqual(masked(made));
    expect(masked(merged)).toMatchObject({
      same: true,
      rest: { leadCreated: true, lead: null, mergedAt: null },
    });
    for (const wrong of [
      { agent: { email: "mal@agents.example" } },
      { agent: { id: "01890000-0000-7000-8000-000000000000" } },
      { agent: { name: "A", phone: "1" } },
      { phone: "12" },
      { company: "x".repeat(301) },
    ]) {
      const refused = masked(await contact(person, { email: fresh(), ...wrong }));
      expect(refused.codes).toHaveLength(1);
      expect(masked(await contact(person, { email, ...wrong }))).toEqual(refused);
    }
  }
  // The same statements, and the same rows written and rolled back.
  const statements = async (input: Record<string, unknown>) =>
    (await world.statements(() => contact(world.anonymous, input))).texts;
  expect(await statements({ email })).toEqual(await statements({ email: fresh() }));
  // The team sees it.
  expect((await contact(world.owen, { email })).data.contactProject).toMatchObject({
    leadCreated: false,
    lead: { id: expect.any(String) },
  });
});

test("only the team can accept data from a visitor without their consent", async () => {
  const { id, email } = await known();
  await unsubscribe(id);
  const { data } = await contact(world.anonymous, { email, ...formFields });
  const accept = mutationOf("acceptContactMessage", "{ id mergedAt lead { id } }");
  const input = { id: data.contactProject.id };
  expect((await world.anonymous.refused(accept, { input })).code).toBe("UNAUTHENTICATED");
  for (const person of [world.olga, world.bob])
    expect((await person.refused(accept, { input })).code).toBe("NOT_FOUND");
  expect((await world.max.get(accept, { input })).acceptContactMessage).toEqual({
    id: input.id,
    mergedAt: expect.any(String),
    lead: { id },
  });
  const accepted = await leadOf(id);
  expect(accepted).toMatchObject({
    phone: formFields.phone,
    agent: { name: "Mal Agent" },
    subscribed: false,
  });
  expect(accepted.unsubscribedAt).not.toBeNull();
  await world.owen.get(mutationOf("updateLead"), { input: { id, phone: null } });
  await world.ada.get(accept, { input });
  expect((await leadOf(id)).phone).toBeNull();
});

test("a signed-in user with that confirmed address needs no mail", async () => {
  await sent();
  const wanda = await world.signUp("Wanda Owner");
  const { id } = await createLead(world.owen, {
    projectId: world.park.id,
    name: "Wanda",
    email: wanda.email,
  });
  await unsubscribe(id);
  await setConfirmed(world.owner, wanda.id, false);
  await contact(wanda, { email: wanda.email, ...formFields });
  expect(await leadOf(id)).toMatchObject({ phone: null, subscribed: false });
  await setConfirmed(world.owner, wanda.id, true);
  await contact(wanda, { email: wanda.email, ...formFields });
  expect(await leadOf(id)).toMatchObject({ phone: formFields.phone, subscribed: true, unsubscribedAt: null });
  expect(await withdrawn(wanda.email!)).toEqual([]);
});

test("limits the number of requests, and ignores unknown and expired links", async () => {
  await sent();
  const { id, email } = await known();
  for (let n = 0; n < 5; n++) await contact(world.anonymous, { email, follow: true });
  const mails = await sent();
  expect(mails.map(({ to }) => to![0]!.address)).toEqual([email]);
  await sql("update app_private.consent_requests set expires_at = now() where email = $1", [email]);
  for (const path of [confirmation(mails[0]), "/confirm/unknown"])
    for (const method of ["GET", "POST"]) expect((await visit(path, method)).status).toBe(403);
  expect((await visit(confirmation(mails[0]), "DELETE")).status).toBe(405);
  expect(await leadOf(id)).toMatchObject({ subscribed: false });
});

test("all IPv6 addresses of one network count as one sender", async () => {
  await sql("insert into app_private.limit_changes values ('contact.network', 2, 'test')");
  const write = async (ip: string, n: number) => {
    const client = await world.owner.connect();
    try {
      await client.query("begin; set local role plat_anonymous");
      await client.query("select set_config('plat.ip', $1, true)", [ip]);
      await client.query("select app_public.contact_service('Vi', $1, 'Hello')", [`vi${n}@example.com`]);
      await client.query("commit");
    } finally {
      await client.query("rollback");
      client.release();
    }
  };
  for (const n of [1, 2]) await write(`2001:db8::${n}`, n);
  await expect(write("2001:db8::3", 3)).rejects.toThrow("Too many attempts");
  await write("2001:db8:0:1::1", 4);
  await sql("truncate app_private.limit_changes");
});

test("links to unsubscribe remain valid when keys of login tokens rotate, also those of former versions", async () => {
  const { id } = await known({ subscribed: true });
  const former = { secret: "a login key that is gone since, with 32 characters" };
  const key = Buffer.from(hkdfSync("sha256", former.secret, "", "plat unsubscribe links", 32));
  const text = `marketing.${id}`;
  const path = `/unsubscribe/${text}.${createHmac("sha256", key).update(text).digest("base64url")}`;
  expect((await visit(path, "POST", "List-Unsubscribe=One-Click")).status).toBe(403);
  for (let starts = 0; starts < 2; starts++) await keepFormerLinkKeys(world.database.ownerUrl, [former]);
  const [{ token }] = await sql("select app_private.sign_link('marketing', $1) as token", [id]);
  // A new key signs from now on, and the former one no longer signs.
  await sql("insert into app_private.link_keys default values");
  const [{ token: newer }] = await sql("select app_private.sign_link('marketing', $1) as token", [id]);
  expect(newer).not.toBe(token);
  for (const link of [path, `/unsubscribe/${token}`, `/unsubscribe/${newer}`]) {
    await sql("update app_public.leads set subscribed = true where id = $1", [id]);
    expect((await visit(link, "POST", "List-Unsubscribe=One-Click")).status).toBe(200);
    expect(await leadOf(id)).toMatchObject({ subscribed: false, unsubscribedAt: expect.any(String) });
  }
  expect(await sql("select signs, count(*)::int from app_private.link_keys group by 1 order by 1")).toEqual([
    { signs: false, count: 1 },
    { signs: true, count: 2 },
  ]);
});
