import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { extractText, getDocumentProxy } from "unpdf";
import { createFileStore, type FileStore } from "../../src/providers/files/index.ts";
import type { Person } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { tablesContaining } from "../harness/tablesContaining.ts";
import { cast, createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";
import { programOf } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

// Erasing a person: what is erased, what is kept, the certificate, and permissions.

let world: Portfolio;
let store: FileStore;
let outbox: Outbox;

beforeAll(async () => {
  world = await startPortfolio();
  store = createFileStore({ dataDir: world.dataDir });
  outbox = await createOutbox();
});
afterAll(async () => {
  await outbox.remove();
  await world.stop();
});

const erasing = `mutation ($input: ErasePersonInput!) { erasePerson(input: $input) {
  id status reason leadIds buyerIds removed kept keptUntil completedAt certificateUrl requestedBy { id } organization { id } } }`;
const erase = async (person: Person, input: Record<string, unknown>) =>
  (await person.get(erasing, { input })).erasePerson;
const work = () => runJobs(world.database.ownerUrl, outbox.provider, store);
/** Whether the store has the content. */
async function has(checksum: string): Promise<boolean> {
  const content = await store.get(checksum);
  content?.destroy();
  return content !== undefined;
}
const records = (parts: { record: string }[]) => parts.map(({ record }) => record).sort();

const email = "petra.plumtree@person.example";
const phone = "+14165550177";
const name = "Petra Plumtree";
const traces = [email, phone, name, "Plumtree"];

/** A person with all kinds of data that an organization can have of a lead. */
async function knowPetra() {
  const { owen, project, park, leads, owner } = world;
  const create = createIn(owen);
  const lead = await createLead(owen, {
    projectId: project.id,
    name,
    legalName: "Petra Anna Plumtree",
    email,
    phone,
    company: "Plumtree Ltd",
    address: { thoroughfare: "1 Plumtree Lane", locality: "Toronto", country: "CA" },
    tags: ["friend of plumtree"],
    metadata: { crm: { contact: name } },
  });
  const again = await createLead(owen, { projectId: park.id, name, email });
  const about = { leadId: lead.id };
  await create("createLeadNote", { ...about, text: `${name} wants two bedrooms; write to ${email}.` });
  await create("createLeadNote", {
    leadId: leads.open.id,
    text: `A friend of ${name}, who has the number ${phone}.`,
  });
  await create("createTask", { ...about, title: `Call ${name}`, description: `At ${phone}` });
  await create("createContact", { ...about, name: "Paul Plumtree", email: "paul@person.example" });
  await create("createAppointment", {
    ...about,
    type: "DESIGN_STUDIO",
    startsAt: "2031-05-01T15:00:00Z",
    endsAt: "2031-05-01T16:00:00Z",
    location: "1 Plumtree Lane",
    notes: `Meet ${name}`,
  });
  await create("createPhoneCall", {
    ...about,
    direction: "INBOUND",
    fromNumber: phone,
    startedAt: "2026-04-01T15:00:00Z",
    notes: `${name} called`,
  });
  await world.anonymous.get(
    `mutation ($input: ContactProjectInput!) { contactProject(input: $input) { lead { id } } }`,
    { input: { projectId: park.id, name, email, text: `I am ${name}.` } },
  );
  // A check constraint requires texts and facts while it is COMPLETED.
  const { suggestLeadEmail: draft } = await owen.get(
    `mutation ($input: SuggestLeadEmailInput!) { suggestLeadEmail(input: $input) { status subject body } }`,
    { input: { ...about, purpose: `To greet ${name}` } },
  );
  expect(draft).toMatchObject({ status: "COMPLETED", body: expect.stringContaining("Petra") });
  await owner.query(
    "insert into app_private.mail_deliveries (key, recipient, outcome) values ('petra', $1, 'SENT')",
    [email],
  );
  await work();
  return { lead, again };
}

describe("a lead", () => {
  let lead: { id: string };
  let again: { id: string };
  beforeAll(async () => {
    ({ lead, again } = await knowPetra());
  });

  test("requires the role of an owner or admin", async () => {
    const people = cast(world);
    const program = await programOf(world, world.owen, { scopes: ["lead.*"] });
    const codes: Record<string, string> = {};
    for (const [who, person] of Object.entries({ ...people, program })) {
      if (who === "owner" || who === "admin") continue;
      const refusal = await person.refused(erasing, { input: { leadId: lead.id } });
      codes[who] = refusal.permission ? `${refusal.code} ${refusal.permission}` : refusal.code;
    }
    expect(codes).toEqual({
      member: "FORBIDDEN privacy.erase",
      seller: "NOT_FOUND",
      builder: "NOT_FOUND",
      outsider: "NOT_FOUND",
      anonymous: "UNAUTHENTICATED",
      program: "FORBIDDEN privacy.erase",
    });
    expect(await world.owen.refused(erasing, { input: {} })).toMatchObject({ code: "BAD_USER_INPUT" });
    expect(await world.owen.refused(erasing, { input: { leadId: lead.id, buyerId: lead.id } })).toMatchObject(
      { code: "BAD_USER_INPUT" },
    );
  });

  test("a dry run shows what would be erased and changes nothing", async () => {
    const before = await tablesContaining(world.owner, traces);
    const effects = await erase(world.ada, { leadId: lead.id, dryRun: true });
    expect(effects.leadIds.toSorted()).toEqual([lead.id, again.id].toSorted());
    expect(records(effects.removed)).toEqual([
      "appointments",
      "contacts",
      "events",
      "leadNotes",
      "leads",
      "phoneCalls",
      "projectContactMessages",
      "serviceIntelligenceGenerations",
      "tasks",
    ]);
    expect(effects.kept).toEqual([]);
    expect(await tablesContaining(world.owner, traces)).toEqual(before);
    const { rows } = await world.owner.query("select from app_public.erasures");
    expect(rows).toHaveLength(0);
  });

  test("is in no table of the database; its events remain with their numbers, marked as erased", async () => {
    const { owner, harbour, ada, owen } = world;
    const sequences =
      "select array_agg(sequence order by sequence) as all from app_public.events where organization_id = $1";
    const { rows: before } = await owner.query(sequences, [harbour.id]);
    expect(Object.keys(await tablesContaining(owner, traces))).toEqual(
      expect.arrayContaining(["app_public.leads", "app_public.events", "app_public.lead_notes"]),
    );

    const effects = await erase(ada, { leadId: again.id, reason: "The person asked for it." });
    expect(effects).toMatchObject({
      status: "RUNNING",
      certificateUrl: null,
      requestedBy: { id: ada.id },
      organization: { id: harbour.id },
    });
    await work();
    expect(await tablesContaining(owner, traces)).toEqual({});

    const { rows: after } = await owner.query(sequences, [harbour.id]);
    expect(after[0].all.slice(0, before[0].all.length)).toEqual(before[0].all);
    const { rows: created } = await owner.query(
      "select data, erased_at from app_public.events where name = 'lead.created' and subject_id = $1",
      [lead.id],
    );
    expect(created).toEqual([
      {
        erased_at: expect.any(Date),
        data: expect.objectContaining({ id: lead.id, name: null, email: null }),
      },
    ]);
    // The rest of a text that named the person is kept.
    const { lead: friend } = await owen.get("query ($id: ID!) { lead(id: $id) { notes { text } } }", {
      id: world.leads.open.id,
    });
    expect(friend.notes).toEqual([{ text: "A friend of [erased], who has the number [erased]." }]);
    expect(await owen.get("query ($id: ID!) { lead(id: $id) { id } }", { id: lead.id })).toEqual({
      lead: null,
    });
  });

  test("leaves a certificate of what was erased, for those who could request it", async () => {
    const listing = `{ erasures { status completedAt certificateUrl removed kept leadIds } }`;
    const { erasures } = await world.owen.get(listing);
    expect(erasures).toEqual([
      expect.objectContaining({ status: "COMPLETED", completedAt: expect.any(String), kept: [] }),
    ]);
    const { rows } = await world.owner.query("select checksum from app_public.erasures");
    const content = await store.get(rows[0].checksum);
    const chunks: Buffer[] = [];
    for await (const chunk of content!) chunks.push(chunk as Buffer);
    const { text } = await extractText(await getDocumentProxy(new Uint8Array(Buffer.concat(chunks))), {
      mergePages: true,
    });
    expect(text).toContain("Certificate of erasure");
    expect(text).toContain("The person asked for it.");
    expect(text).toMatch(/leadNotes: 1/);
    expect(text).not.toMatch(/petra|plumtree/i);
    for (const [who, person] of Object.entries(cast(world))) {
      if (who === "owner" || who === "admin") continue;
      const seen = await person.sees(listing);
      expect([who, seen.erasures ?? []]).toEqual([who, []]);
    }
  });

  test("can become a lead again later, as a new person", async () => {
    const anew = await createLead(world.owen, { projectId: world.project.id, name, email });
    const { rows } = await world.owner.query("select person_id from app_public.leads where id = $1", [
      anew.id,
    ]);
    expect(rows).toHaveLength(1);
    await erase(world.owen, { leadId: anew.id });
    await work();
    expect(await tablesContaining(world.owner, traces)).toEqual({});
  });

  test("who has one name, and neither an address nor a number, is sought in no text", async () => {
    const { owen, project, owner } = world;
    const other = await createLead(owen, { projectId: project.id, name: "Cher" });
    await createIn(owen)("createAppointment", {
      leadId: world.leads.open.id,
      type: "DESIGN_STUDIO",
      startsAt: "2031-06-01T15:00:00Z",
      endsAt: "2031-06-01T16:00:00Z",
      notes: "Brings a friend",
    });
    const { id } = await erase(owen, { leadId: other.id });
    await work();
    const { rows } = await owner.query("select status, removed from app_public.erasures where id = $1", [id]);
    expect(rows).toEqual([
      {
        status: "COMPLETED",
        removed: [expect.objectContaining({ record: "leads" }), { record: "events", count: 1 }],
      },
    ]);
    const { rows: others } = await owner.query(
      "select notes from app_public.appointments where starts_at = '2031-06-01T15:00:00Z'",
    );
    expect(others).toEqual([{ notes: "Brings a friend" }]);
  });

  test("is sought in texts as whole words and whole addresses", async () => {
    const { owen, project, owner } = world;
    const other = await createLead(owen, { projectId: project.id, name: "Al Li", email: "jo@li.example" });
    const text = [
      "In real life, Kal Li and Al Lima. Others: banjo@li.example, ban.jo@li.example, jo@li.example.org",
      "Al Li called; al li's and Al Lis home. Write to jo@li.example.",
      "Al Li",
    ].join("\n");
    await createIn(owen)("createLeadNote", { leadId: world.leads.open.id, text });
    await erase(owen, { leadId: other.id });
    await work();
    const expected = [
      "In real life, Kal Li and Al Lima. Others: banjo@li.example, ban.jo@li.example, jo@li.example.org",
      "[erased] called; [erased]'s and [erased]s home. Write to [erased].",
      "[erased]",
    ].join("\n");
    const { rows } = await owner.query(
      "select text from app_public.lead_notes where text like 'In real life%'",
    );
    expect(rows).toEqual([{ text: expected }]);
    const { rows: events } = await owner.query(
      "select data ->> 'text' as text from app_public.events where name = 'lead_note.created' and data ->> 'text' like 'In real life%'",
    );
    expect(events).toEqual([{ text: expected }]);
  });
});

describe("a buyer", () => {
  const buyer = "bruno.bought@person.example";

  test("is refused during a purchase; afterwards contract data are kept for the retention period", async () => {
    const { owen, project, owner } = world;
    const purchase = await createBuyer(owen, project, {
      legalName: "Bruno Bought",
      firstName: "Bruno",
      lastName: "Bought",
      email: buyer,
      phone: "+14165550188",
    });
    await createIn(owen)("createLeadNote", {
      buyerId: purchase,
      text: "Bruno Bought pays by carrier pigeon.",
    });
    const page = `data:;name=pigeon.txt;base64,${Buffer.from("The contract of Bruno Bought.").toString("base64")}`;
    const document = await createIn(owen)("uploadBuyerDocument", {
      buyerId: purchase,
      category: "OTHER",
      file: page,
    });
    const { rows: files } = await owner.query<{ checksum: string }>(
      "select checksum from app_public.buyer_documents where id = $1",
      [document],
    );
    const content = files[0]!.checksum;
    expect(await has(content)).toBe(true);
    expect(await owen.refused(erasing, { input: { buyerId: purchase } })).toMatchObject({
      code: "CONFLICT",
      dependents: { buyers: 1 },
    });
    await owner.query(
      `begin; set local session_replication_role = 'replica';
       update app_public.buyers set status = 'CLOSED', closing_date = current_date, purchase_date = current_date where email = '${buyer}'; commit`,
    );
    const effects = await erase(owen, { buyerId: purchase });
    const until = new Date();
    until.setUTCFullYear(until.getUTCFullYear() + 10);
    expect(effects.keptUntil).toBe(until.toISOString().slice(0, 10));
    expect(effects.kept).toEqual([
      expect.objectContaining({ record: "buyerDocuments", fields: expect.arrayContaining(["checksum"]) }),
      expect.objectContaining({
        record: "buyers",
        count: 1,
        until: effects.keptUntil,
        fields: expect.arrayContaining(["legalName"]),
      }),
    ]);
    await work();
    expect(await tablesContaining(owner, [buyer, "+14165550188", "carrier pigeon"])).toEqual({});
    expect(Object.keys(await tablesContaining(owner, ["Bruno Bought"])).sort()).toEqual([
      "app_private.search_texts",
      "app_public.buyers",
      "app_public.events",
    ]);
    // Files of the contract are kept with it.
    expect(await has(content)).toBe(true);

    await owner.query(
      "update app_public.erasures set kept_until = current_date where kept_until is not null",
    );
    await owner.query(
      "update app_public.buyers set closing_date = current_date - interval '11 years', purchase_date = current_date - interval '11 years' where id = $1",
      [purchase],
    );
    await owner.query("select app_private.erase_expired_contracts(10)");
    await work();
    expect(await tablesContaining(owner, ["Bruno Bought", "pigeon.txt", content])).toEqual({});
    expect(await has(content)).toBe(false);
  });
});
