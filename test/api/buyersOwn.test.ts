/** Operations of a buyer who accepted an invitation: correcting contact details, and submitting proof of identity. */
import { get } from "node:https";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createBuyer, signUpBuyer } from "../harness/deals.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { digest } from "../harness/expectUnchanged.ts";
import { upload } from "../harness/upload.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;
let owen: Person;
let bea: Person;
let purchase: string;
let ben: Person;

beforeAll(async () => {
  world = await startPortfolio();
  ({ owen } = world);
  ({ person: bea, purchase } = await signUpBuyer(world));
  ({ person: ben } = await signUpBuyer(world, "Ben Buyer"));
});
afterAll(() => world.stop());

const contact = `id email phone preferredLanguage address { thoroughfare locality country } version`;
const correct = async (input: Record<string, unknown>, person = bea) =>
  (await person.get(mutationOf("updateBuyer", `{ ${contact} }`), { input: { id: purchase, ...input } }))
    .updateBuyer;
const tables = ["buyers", "leads", "buyer_documents", "events"].map((name) => `app_public.${name}`);
const untouchedBy = async <T>(work: () => Promise<T>): Promise<T> => {
  const before = await digest(world, tables);
  const result = await work();
  expect(await digest(world, tables)).toEqual(before);
  return result;
};
const refuse = (input: Record<string, unknown>, person = bea) =>
  untouchedBy(() => person.refused(mutationOf("updateBuyer"), { input: { id: purchase, ...input } }));

test("a buyer corrects contact details, and the team can read the former values", async () => {
  const corrected = await correct({
    phone: "416 555 0123",
    preferredLanguage: "fr",
    address: { thoroughfare: "5 New Street", locality: "Toronto", country: "CA" },
  });
  expect(corrected).toMatchObject({
    phone: "+14165550123",
    preferredLanguage: "fr",
    address: { thoroughfare: "5 New Street", locality: "Toronto", country: "CA" },
  });
  expect(await correct({ email: bea.email!.toUpperCase() })).toMatchObject({ email: bea.email });
  const { buyer } = await owen.get(
    "query ($id: ID!) { buyer(id: $id) { phone events(first: 2) { name actorType actor { id } changes } } }",
    { id: purchase },
  );
  expect(buyer.phone).toBe("+14165550123");
  expect(buyer.events).toMatchObject([
    { name: "buyer.updated", actorType: "BUYER", changes: { email: [null, bea.email] } },
    { name: "buyer.updated", actorType: "BUYER", changes: { phone: [null, "+14165550123"] } },
  ]);
  expect(await refuse({ phone: "1", expectedVersion: 1 })).toMatchObject({ code: expect.any(String) });
  expect(await refuse({ preferredLanguage: "en", expectedVersion: corrected.version - 1 })).toMatchObject({
    code: "VERSION_MISMATCH",
  });
  expect(await refuse({ phone: "nonsense" })).toMatchObject({ code: "BAD_USER_INPUT", field: "phone" });
});

test("a buyer cannot change other fields, or records of others", async () => {
  for (const input of [
    { status: "FIRM" },
    { price: 1 },
    { legalName: "Somebody Else" },
    { firstName: "Eve" },
    { dob: "1990-01-01" },
    { company: "Shell Inc." },
    { assigneeId: null },
    { metadata: {} },
    { agent: { name: "My Agent" } },
    { phone: "416 555 0199", price: 1 },
  ])
    expect([input, (await refuse(input)).code]).toEqual([input, "FORBIDDEN"]);
  expect(await refuse({ legalName: "Somebody Else" })).toMatchObject({ field: "legalName" });
  // Mails about the purchase are sent to a confirmed address of the buyer.
  for (const email of ["stranger@example.com", world.owen.email, null])
    expect(await refuse({ email })).toMatchObject({ code: "BAD_USER_INPUT", field: "email" });
  const reader = await programOf(world, bea, { scopes: ["project.read"] });
  for (const [person, code] of [
    [ben, "NOT_FOUND"],
    [world.olga, "NOT_FOUND"],
    [world.sam, "NOT_FOUND"],
    [reader, "NOT_FOUND"],
    [world.anonymous, "UNAUTHENTICATED"],
  ] as const)
    expect([code, (await refuse({ phone: "416 555 0100" }, person)).code]).toEqual([code, code]);
  // A member of the team who is a buyer keeps the permissions of the team.
  expect(await correct({ phone: "416 555 0111" }, world.max)).toMatchObject({ phone: "+14165550111" });
  const { person: cara, purchase: gone } = await signUpBuyer(world, "Cara Cancelled");
  const { falloutReasons } = (
    await owen.get("query ($id: ID!) { project(id: $id) { falloutReasons(first: 1) { id } } }", world.project)
  ).project;
  await owen.get(mutationOf("updateBuyer"), {
    input: { id: gone, status: "CANCELLED", falloutReasonId: falloutReasons[0].id },
  });
  expect(await refuse({ id: gone, phone: "416 555 0100" }, cara)).toMatchObject({ code: "CONFLICT" });
});

const pdf = Buffer.from("%PDF-1.7\n1 0 obj <<>> endobj\ntrailer <<>>\n%%EOF\n");
const uploading = `mutation ($input: UploadBuyerDocumentInput!) { uploadBuyerDocument(input: $input) {
  id url title category filename public checksum uploadedBy { id } buyer { id } } }`;
const send = (person: Person, input: Record<string, unknown> = {}, name = "passport.pdf") =>
  upload(
    world,
    person,
    uploading,
    { input: { buyerId: purchase, category: "IDENTITY", file: null, ...input } },
    { "variables.input.file": { bytes: pdf, name } },
  );
const listing = `query ($id: ID!) { buyer(id: $id) { documentsOnFile privateDocuments { id category filename url } } }`;
const codeOf = ({ errors }: { errors: { extensions: Record<string, unknown> }[] | undefined }) =>
  errors?.[0]?.extensions.code;
const download = (url: string) =>
  new Promise<{ status: number; body: string; disposition: string | undefined }>((resolve, reject) =>
    get(
      new URL(new URL(url).pathname + new URL(url).search, world.url),
      { rejectUnauthorized: false },
      (response) => {
        let body = "";
        response.on("data", (chunk) => (body += chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode!,
            body,
            disposition: response.headers["content-disposition"],
          }),
        );
      },
    ).on("error", reject),
  );

test("identity documents are visible to the buyer and with buyer.pii; others of the team only see that they exist", async () => {
  const identity = await send(bea, { title: "Passport" });
  expect(identity.errors).toBeUndefined();
  const document = identity.data.uploadBuyerDocument;
  expect(document).toMatchObject({
    title: "Passport",
    category: "IDENTITY",
    filename: "passport.pdf",
    public: false,
    buyer: { id: purchase },
  });
  const funds = (await send(bea, { category: "PROOF_OF_FUNDS" }, "bank.pdf")).data.uploadBuyerDocument;
  expect((await download(document.url)).body).toBe(pdf.toString());

  for (const person of [bea, owen, world.ada]) {
    const { buyer } = await person.get(listing, { id: purchase });
    expect(buyer.documentsOnFile).toEqual(["IDENTITY", "PROOF_OF_FUNDS"]);
    expect(buyer.privateDocuments.map(({ id }: { id: string }) => id).sort()).toEqual([
      document.id,
      funds.id,
    ]);
    const shown = buyer.privateDocuments.find(({ id }: { id: string }) => id === document.id);
    expect(await download(shown.url)).toMatchObject({
      status: 200,
      disposition: expect.stringContaining("attachment"),
    });
  }
  // A member who works on the purchase without buyer.pii.
  expect((await world.max.get(listing, { id: purchase })).buyer).toEqual({
    documentsOnFile: ["IDENTITY", "PROOF_OF_FUNDS"],
    privateDocuments: [],
  });
  const withoutPii = await programOf(world, owen, { scopes: ["buyer.read", "project.read", "audit.read"] });
  expect((await withoutPii.get(listing, { id: purchase })).buyer.privateDocuments).toEqual([]);
  const single = "query ($id: ID!) { buyerDocument(id: $id) { id filename } }";
  for (const person of [world.max, world.sam, world.bob, world.olga, ben, withoutPii])
    expect((await person.get(single, { id: document.id })).buyerDocument).toBeNull();
  expect((await world.anonymous.refused(single, { id: document.id })).code).toBe("UNAUTHENTICATED");
  for (const person of [ben, world.olga, world.sam])
    expect((await person.get(listing, { id: purchase })).buyer).toBeNull();
  // Events, webhooks and the search do not contain it either.
  const events = `query ($filter: EventsFilter) { events(filter: $filter) { subjectId } }`;
  const filter = { names: ["buyer_document.*"] };
  expect((await owen.get(events, { filter })).events).toHaveLength(2);
  for (const person of [withoutPii, bea]) expect((await person.get(events, { filter })).events).toEqual([]);

  // Without permission, the upload is refused before a byte is stored.
  for (const [person, code] of [
    [world.max, "FORBIDDEN"],
    [withoutPii, "FORBIDDEN"],
    [ben, "NOT_FOUND"],
    [world.olga, "NOT_FOUND"],
    [world.sam, "NOT_FOUND"],
    [world.anonymous, "UNAUTHENTICATED"],
  ] as const)
    expect([code, codeOf(await untouchedBy(() => send(person)))]).toEqual([code, code]);
  expect(codeOf(await untouchedBy(() => send(bea, { category: "BROCHURE" })))).toBe("BAD_USER_INPUT");
  const deletion = mutationOf("deleteBuyerDocument", "{ id deleted buyer { id } }");
  const byTeam = (await send(owen, { category: "PREAPPROVAL" }, "bank.pdf")).data.uploadBuyerDocument;
  for (const [person, id, code] of [
    [world.max, document.id, "NOT_FOUND"],
    [ben, document.id, "NOT_FOUND"],
    [world.olga, document.id, "NOT_FOUND"],
    [bea, byTeam.id, "FORBIDDEN"],
  ] as const)
    expect((await untouchedBy(() => person.refused(deletion, { input: { id } }))).code).toBe(code);
  expect((await bea.get(deletion, { input: { id: funds.id } })).deleteBuyerDocument).toEqual({
    id: funds.id,
    deleted: true,
    buyer: { id: purchase },
  });
  expect(
    (
      await bea.get(mutationOf("updateBuyerDocument", "{ title }"), {
        input: { id: document.id, title: "Passport, 2026" },
      })
    ).updateBuyerDocument,
  ).toEqual({ title: "Passport, 2026" });
  expect((await bea.get(listing, { id: purchase })).buyer.documentsOnFile).toEqual([
    "IDENTITY",
    "PREAPPROVAL",
  ]);
});

test("the assigned seller of another organization sees that documents exist, not which", async () => {
  const lead = await createLead(world.sam, { projectId: world.project.id, name: "Sasha" });
  const unitId = await createIn(owen)("createUnit", {
    projectId: world.project.id,
    title: "Theirs",
    status: "AVAILABLE",
    price: 1,
  });
  const theirs = (await world.sam.get(mutationOf("convertLead"), { input: { leadId: lead.id, unitId } }))
    .convertLead.id;
  expect(codeOf(await send(owen, { buyerId: theirs }))).toBeUndefined();
  expect((await world.sam.get(listing, { id: theirs })).buyer).toEqual({
    documentsOnFile: ["IDENTITY"],
    privateDocuments: [],
  });
  expect(codeOf(await untouchedBy(() => send(world.sam, { buyerId: theirs })))).toBe("FORBIDDEN");
  // Only the team uploads for a purchase without an account; nobody uploads for a cancelled one.
  const entered = await createBuyer(owen, world.project);
  expect(codeOf(await untouchedBy(() => send(bea, { buyerId: entered })))).toBe("NOT_FOUND");
});

test("a buyer has a daily upload limit and a total limit, without using the organization's quota; the team is not limited", async () => {
  const { person: dan, purchase: dans } = await signUpBuyer(world, "Dan Documents");
  const sendFor = (person: Person) => send(person, { buyerId: dans });
  expect(codeOf(await sendFor(dan))).toBeUndefined();
  await world.owner.query("insert into app_private.limit_changes values ('buyer.document', 1, 'A test.')");
  try {
    expect(codeOf(await untouchedBy(() => sendFor(dan)))).toBe("RATE_LIMITED");
    expect(codeOf(await sendFor(owen))).toBeUndefined();
  } finally {
    await world.owner.query("delete from app_private.limit_changes where name = 'buyer.document'");
  }
  // The maximum number of documents; deleted ones do not count.
  await world.owner.query(
    `insert into app_public.buyer_documents
       select (jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid(), 'deleted_at',
         case when n > 49 then now() end))).*
       from app_public.buyer_documents d, generate_series(1, 60) n where d.buyer_id = $1 and d.uploaded_by_id = $2`,
    [dans, dan.id],
  );
  const refused = await untouchedBy(() => sendFor(dan));
  expect(refused.errors?.[0]?.extensions).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 50, field: "file" });
  expect(codeOf(await sendFor(owen))).toBeUndefined();
});
