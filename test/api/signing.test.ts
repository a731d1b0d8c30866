/**
 * Embedded signing of agreements: versions of the document, order of signers, one-time codes, and the evidence that
 * is kept.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { get, request } from "node:https";
import { join as joinPath } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { createBuyer, invite } from "../harness/deals.ts";
import { cast, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn, mutationOf, type Create } from "../harness/records.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { upload } from "../harness/upload.ts";
import { programOf } from "../harness/world.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import { localize } from "../../src/messages/recognize.ts";
import { certificatePages } from "../../src/pdf/certificatePages.ts";
import { extractText, getDocumentProxy } from "unpdf";
import { createSmsProvider } from "../../src/providers/sms/index.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

let world: Portfolio;
let outbox: Outbox;
let owen: Person;
let create: Create;
let bea: Person;
let purchase: string;

beforeAll(async () => {
  world = await startPortfolio();
  outbox = await createOutbox();
  owen = world.owen;
  create = createIn(owen);
  bea = await world.signUp("Bea Buyer");
  purchase = await createBuyer(owen, world.project, { legalName: "Bea Buyer" });
  await invite(world, purchase, bea);
});
afterAll(async () => {
  await outbox.remove();
  await world.stop();
});
// Resets rate limits, as if each test ran on another day.
beforeEach(async () => {
  await world.owner.query("delete from app_private.limit_uses");
  await world.owner.query("select app_private.skip_notifications()");
});

const pdf = (text: string): Buffer => Buffer.from(`%PDF-1.7\n% ${text}\n%%EOF\n`);
const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

const UPLOAD = mutationOf("uploadAgreementFile", "{ id number kind checksum voidSignatures sentAt url }");
async function uploadFile(agreementId: string, text: string, input: object = {}, person = owen) {
  const answer = await upload(
    world,
    person,
    UPLOAD,
    { input: { agreementId, file: null, ...input } },
    { "variables.input.file": { bytes: pdf(text), name: `${text}.pdf`, type: "application/pdf" } },
  );
  return { file: answer.data?.uploadAgreementFile, error: answer.errors?.[0] };
}

interface Asked {
  role?: string;
  name: string;
  email: string;
  sequence?: number;
  phone?: string;
}

/** An agreement with its first version and signers; returns their ids by name. */
async function prepare(signers: Asked[], input: Record<string, unknown> = {}) {
  const id = await create("createAgreement", {
    buyerId: purchase,
    type: "PURCHASE",
    title: "Contract of 12B",
    ...input,
  });
  const { file, error } = await uploadFile(id, "first");
  expect(error).toBeUndefined();
  const ids: Record<string, string> = {};
  for (const signer of signers)
    ids[signer.name] = await create("createAgreementSigner", { agreementId: id, role: "BUYER", ...signer });
  return { id, file, ids };
}

const send = (id: string, person = owen) =>
  person.get(mutationOf("updateAgreement", "{ id status }"), { input: { id, status: "SENT" } });

async function sent(signers: Asked[], input: Record<string, unknown> = {}) {
  const prepared = await prepare(signers, input);
  await send(prepared.id);
  return prepared;
}

const jobs = () =>
  runJobs(
    world.database.ownerUrl,
    outbox.provider,
    createFileStore({ dataDir: world.dataDir }),
    undefined,
    undefined,
    undefined,
    undefined,
    createSmsProvider({ textMessages: "outbox", dataDir: world.dataDir, baseUrl: "https://plat.example" }),
  );

/** Runs the jobs; returns the latest mail by recipient. */
async function mails(): Promise<Record<string, { subject: string; text: string }>> {
  await jobs();
  const all = await outbox.take();
  return Object.fromEntries(
    all.map(({ to, subject, text }) => [to![0]!.address!, { subject: subject!, text: text! }]),
  );
}
const tokenIn = (text: string): string => /\/sign\/(agreement\.\S+)$/m.exec(text)![1]!;
const codeIn = (text: string): string => /^\s*(\d{6})$/m.exec(text)![1]!;

const requested = `{ title status signerName signerStatus canSign fileId fileNumber checksum url certificateUrl consentText codeSentTo signedAt organizationName projectTitle }`;
const REQUEST = `query ($signerId: ID, $token: String) { signingRequest(signerId: $signerId, token: $token) ${requested} }`;
const CODE = mutationOf("requestSigningCode", requested);
const SIGN = mutationOf("signAgreement", requested);
const DECLINE = mutationOf("declineAgreement", requested);

/** Requests a code and returns it. */
async function code(person: Person, who: { signerId?: string; token?: string }, address: string) {
  await person.get(CODE, { input: who });
  const mail = (await mails())[address]!;
  return codeIn(mail.text);
}
async function sign(person: Person, who: { signerId?: string; token?: string }, address: string) {
  const input = { ...who, code: await code(person, who, address), consent: true };
  return (await person.get(SIGN, { input })).signAgreement;
}

const AGREEMENT = `query ($id: ID!) { agreement(id: $id) { status sentAt viewedAt signedAt executedAt declinedAt
  files { id kind number checksum sentAt url }
  signers { name role status sequence email phone signedAt declineReason signedFile { number } }
  trail { kind signerName checksum ipAddress userAgent sentTo consentText note } } }`;
const read = async (id: string, person = owen) => (await person.get(AGREEMENT, { id })).agreement;

const download = (url: string): Promise<{ status: number; bytes: Buffer }> => {
  const { pathname, search } = new URL(url);
  const { port } = new URL(world.url);
  return new Promise((resolve, reject) =>
    get(`https://127.0.0.1:${port}${pathname}${search}`, { rejectUnauthorized: false }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode!, bytes: Buffer.concat(parts) }));
    }).on("error", reject),
  );
};

/** The page of a link, or the response to one of its buttons. */
const page = (
  token: string,
  form?: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Record<string, any>; text: string }> =>
  new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(`/sign/${token}`, world.url),
      {
        method: form ? "POST" : "GET",
        rejectUnauthorized: false,
        agent: false,
        headers: { ...(form && { "content-type": "application/x-www-form-urlencoded" }), ...headers },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, text }));
      },
    );
    outgoing.on("error", reject);
    outgoing.end(form ? new URLSearchParams(form).toString() : undefined);
  });

const cora = { name: "Cora Co", email: "cora@example.com", role: "CO_BUYER" };

test("the buyer signs while signed in; with one signer there is no PARTIALLY_SIGNED, and the evidence is stored", async () => {
  const { id, ids, file } = await sent([{ name: "Bea Buyer", email: bea.email! }]);
  const who = { signerId: ids["Bea Buyer"]! };
  const requests = (await bea.get("{ signingRequests { signerId title canSign } }")).signingRequests;
  expect(requests).toContainEqual({ signerId: who.signerId, title: "Contract of 12B", canSign: true });
  const { signingRequest } = await bea.get(REQUEST, who);
  expect(signingRequest).toMatchObject({
    status: "SENT",
    signerStatus: "INVITED",
    canSign: true,
    fileNumber: 1,
    checksum: sha256(pdf("first")),
    organizationName: "Harbour Homes",
    projectTitle: "Harbour View",
    codeSentTo: null,
  });
  expect((await download(signingRequest.url)).bytes).toEqual(pdf("first"));

  const invitation = (await mails())[bea.email!]!;
  expect(invitation.subject).toBe("Please sign: Contract of 12B");
  const opened = (await bea.get(CODE, { input: who })).requestSigningCode;
  expect(opened).toMatchObject({ status: "VIEWED", signerStatus: "VIEWED" });
  const value = codeIn((await mails())[bea.email!]!.text);
  expect((await bea.get(REQUEST, who)).signingRequest.codeSentTo).toBe(`b…@${bea.email!.split("@")[1]}`);
  // Only a hash of the code is stored.
  const { rows: kept } = await world.owner.query(
    "select c::text as row from app_private.agreement_codes c where c.signer_id = $1",
    [who.signerId],
  );
  expect(kept[0].row).not.toContain(value);

  // Without consent, for another version, or with another signer's code: refused without an effect.
  const input = { ...who, code: value, consent: true };
  expect(await bea.refused(SIGN, { input: { ...input, consent: false } })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "consent",
  });
  expect(
    await bea.refused(SIGN, { input: { ...input, fileId: "00000000-0000-7000-8000-000000000000" } }),
  ).toMatchObject({ code: "CONFLICT", field: "fileId" });
  const answer = (await bea.get(SIGN, { input: { ...input, fileId: file.id } })).signAgreement;
  expect(answer).toMatchObject({ status: "SIGNED", signerStatus: "SIGNED", canSign: false });

  const agreement = await read(id);
  expect(agreement).toMatchObject({
    status: "SIGNED",
    signers: [{ status: "SIGNED", signedFile: { number: 1 }, email: bea.email }],
  });
  const kinds = agreement.trail.map((entry: any) => entry.kind);
  expect(kinds).toEqual(["SENT", "INVITED", "VIEWED", "CODE_SENT", "SIGNED", "COMPLETED"]);
  expect(agreement.trail[4]).toEqual({
    kind: "SIGNED",
    signerName: "Bea Buyer",
    checksum: sha256(pdf("first")),
    ipAddress: expect.stringMatching(/127\.0\.0\.1$/),
    userAgent: null,
    sentTo: bea.email,
    consentText: signingRequest.consentText,
    note: null,
  });
  const { rows: events } = await world.owner.query(
    "select name, actor_type, actor_id from app_public.events where subject_id = any ($1) and name like '%signed' order by sequence",
    [[id, who.signerId]],
  );
  expect(events).toEqual([
    { name: "agreement_signer.signed", actor_type: "BUYER", actor_id: bea.id },
    { name: "agreement.signed", actor_type: "BUYER", actor_id: bea.id },
  ]);
  // It cannot be signed again.
  expect(await bea.refused(CODE, { input: who })).toMatchObject({ code: "CONFLICT" });

  // The certificate is created by a job, and a mail contains its URL.
  const done = (await mails())[bea.email!]!;
  expect(done.subject).toBe("Signed by everybody: Contract of 12B");
  const { certificateUrl, url } = (await bea.get(REQUEST, { token: tokenIn(done.text) })).signingRequest;
  const certificate = await download(certificateUrl);
  expect(certificate.bytes.subarray(0, 5).toString()).toBe("%PDF-");
  expect((await download(url)).bytes).toEqual(pdf("first"));
  const { files } = await read(id, bea);
  expect(files.map(({ kind, checksum }: any) => [kind, checksum]).sort()).toEqual([
    ["CERTIFICATE", sha256(certificate.bytes)],
    ["DOCUMENT", sha256(pdf("first"))],
  ]);
  // If the job is executed again, it creates no second certificate.
  await world.owner.query("select app_private.add_job('agreement__completed', $1)", [JSON.stringify({ id })]);
  expect(await mails()).toEqual({});
  expect((await read(id)).files).toHaveLength(2);
});

test("signers sign in order, also without an account; the seller countersigns", async () => {
  const { id, ids } = await sent([
    { name: "Bea Buyer", email: bea.email!, sequence: 1 },
    { ...cora, sequence: 1 },
    { name: "Walt Witness", email: "walt@example.com", role: "WITNESS", sequence: 2 },
    { name: "Ada Admin", email: world.ada.email!, role: "SELLER_REPRESENTATIVE", sequence: 3 },
  ]);
  const statuses = async () =>
    (await read(id)).signers.map(({ name, status }: any) => `${name.split(" ")[0]} ${status}`);
  expect(await statuses()).toEqual(["Bea INVITED", "Cora INVITED", "Walt WAITING", "Ada WAITING"]);
  const first = await mails();
  expect(Object.keys(first).sort()).toEqual([bea.email, cora.email].sort());
  const token = tokenIn(first[cora.email]!.text);

  // Ada is a member, but cannot sign before her turn either.
  expect(await world.ada.refused(CODE, { input: { signerId: ids["Ada Admin"] } })).toMatchObject({
    code: "NOT_FOUND",
  });
  await sign(world.anonymous, { token }, cora.email);
  expect((await read(id)).status).toBe("PARTIALLY_SIGNED");
  await sign(bea, { signerId: ids["Bea Buyer"]! }, bea.email!);
  expect(await statuses()).toEqual(["Bea SIGNED", "Cora SIGNED", "Walt INVITED", "Ada WAITING"]);
  const second = await mails();
  expect(Object.keys(second)).toEqual(["walt@example.com"]);
  await sign(world.anonymous, { token: tokenIn(second["walt@example.com"]!.text) }, "walt@example.com");
  expect((await read(id)).status).toBe("SIGNED");
  // Statuses that result from signing cannot be set manually.
  expect(
    await owen.refused(mutationOf("updateAgreement"), { input: { id, status: "EXECUTED" } }),
  ).toMatchObject({ code: "CONFLICT", field: "status" });
  await sign(world.ada, { signerId: ids["Ada Admin"]! }, world.ada.email!);
  const agreement = await read(id);
  expect(agreement.status).toBe("EXECUTED");
  expect(agreement.executedAt).not.toBeNull();
  const { rows } = await world.owner.query(
    "select name from app_public.events where subject_id = $1 and name <> 'agreement.updated' order by sequence",
    [id],
  );
  expect(rows.map(({ name }) => name)).toEqual([
    "agreement.created",
    "agreement.sent",
    // VIEWED, PARTIALLY_SIGNED.
    "agreement.status_changed",
    "agreement.status_changed",
    "agreement.signed",
    "agreement.executed",
  ]);
  const last = await mails();
  expect(Object.keys(last)).toHaveLength(4);
});

test("a new version can be uploaded before any signature, later only by discarding the signatures", async () => {
  const { id, ids, file } = await sent([{ name: "Bea Buyer", email: bea.email! }, cora]);
  const tokens = await mails();
  const token = tokenIn(tokens[cora.email]!.text);
  const old = await code(world.anonymous, { token }, cora.email);
  const second = await uploadFile(id, "second");
  expect(second.file).toMatchObject({ number: 2, voidSignatures: false, sentAt: expect.any(String) });
  // The code was for the previous version.
  expect(await world.anonymous.refused(SIGN, { input: { token, code: old, consent: true } })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "code",
  });
  expect(Object.keys(await mails()).sort()).toEqual([bea.email, cora.email].sort());
  await sign(world.anonymous, { token }, cora.email);
  expect(
    await bea.refused(SIGN, {
      input: { signerId: ids["Bea Buyer"], code: "000000", consent: true, fileId: file.id },
    }),
  ).toMatchObject({ code: "CONFLICT", field: "fileId" });

  expect((await uploadFile(id, "third")).error).toMatchObject({
    extensions: { code: "CONFLICT", field: "voidSignatures", signatures: 1 },
  });
  const { file: third } = await uploadFile(id, "third", { voidSignatures: true });
  expect(third).toMatchObject({ number: 3, voidSignatures: true });
  const agreement = await read(id);
  expect(agreement).toMatchObject({ status: "SENT", signedAt: null });
  expect(agreement.signers.map((s: any) => [s.status, s.signedAt, s.signedFile])).toEqual([
    ["INVITED", null, null],
    ["INVITED", null, null],
  ]);
  // The former signature stays in the trail, with the checksum of its document.
  expect(agreement.trail.find((entry: any) => entry.kind === "SIGNED").checksum).toBe(sha256(pdf("second")));
  expect(agreement.trail.at(-1)).toMatchObject({
    kind: "REPLACED",
    note: expect.stringContaining("given up"),
  });
  await mails();
  await sign(world.anonymous, { token }, cora.email);
  await sign(bea, { signerId: ids["Bea Buyer"]! }, bea.email!);
  expect((await read(id)).status).toBe("SIGNED");
  expect((await uploadFile(id, "fourth", { voidSignatures: true })).error).toMatchObject({
    extensions: { code: "CONFLICT", field: "agreementId" },
  });
  // Sent files cannot be deleted, nor can signers of a sent agreement.
  expect(
    await owen.refused(mutationOf("deleteAgreementFile", "{ id }"), { input: { id: file.id } }),
  ).toMatchObject({
    code: "CONFLICT",
  });
  expect(
    await owen.refused(mutationOf("deleteAgreementSigner", "{ id }"), { input: { id: ids["Cora Co"] } }),
  ).toMatchObject({ code: "CONFLICT" });
  await mails();
});

test("a signer declines with a code and a reason, which ends it for everybody", async () => {
  const { id, ids } = await sent([{ name: "Bea Buyer", email: bea.email! }, cora]);
  const token = tokenIn((await mails())[cora.email]!.text);
  const value = await code(world.anonymous, { token }, cora.email);
  expect(
    await world.anonymous.refused(DECLINE, { input: { token, code: value, reason: " " } }),
  ).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "reason",
  });
  const input = { token, code: value, reason: "The price is wrong." };
  expect((await world.anonymous.get(DECLINE, { input })).declineAgreement).toMatchObject({
    status: "DECLINED",
    signerStatus: "DECLINED",
    url: null,
  });
  const agreement = await read(id);
  expect(agreement).toMatchObject({ status: "DECLINED", declinedAt: expect.any(String) });
  expect(agreement.signers[1]).toMatchObject({ status: "DECLINED", declineReason: "The price is wrong." });
  expect(agreement.trail.at(-1)).toMatchObject({ kind: "DECLINED", note: "The price is wrong." });
  expect(await bea.refused(CODE, { input: { signerId: ids["Bea Buyer"] } })).toMatchObject({
    code: "CONFLICT",
    message: "This agreement has ended (DECLINED).",
  });
  // The purchase has no assignee, so the team is notified.
  await world.owner.query("select app_private.fan_out_notifications(1000)");
  await world.owner.query(
    "update graphile_worker._private_jobs set run_at = now() where task_id = (select id from graphile_worker._private_tasks where identifier = 'notification_mail__due')",
  );
  const notified = await mails();
  expect(notified[bea.email!]!.subject).toBe("Signature no longer required: Contract of 12B");
  for (const person of [owen, world.max])
    expect(notified[person.email!]!.text).toContain("Contract of 12B of Bea Buyer in Harbour View, declined");
  expect(notified[world.sam.email!]).toBeUndefined();
});

test("the page of the link shows the document; its buttons send a code, sign and decline", async () => {
  const { id } = await sent([cora, { name: "Dan Co", email: "dan@example.com", role: "CO_BUYER" }]);
  const invited = await mails();
  const token = tokenIn(invited[cora.email]!.text);
  const shown = await page(token);
  expect(shown).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } });
  expect(shown.text).toContain("<h1>Contract of 12B</h1>");
  expect(shown.text).toContain("Harbour Homes, Harbour View · Cora Co");
  expect(shown.text).toContain(`SHA-256: ${sha256(pdf("first"))}`);
  const [, address] = /<a href="([^"]+)">first.pdf, version 1<\/a>/.exec(shown.text)!;
  expect((await download(address!.replaceAll("&amp;", "&"))).bytes).toEqual(pdf("first"));
  const german = { "accept-language": "de-CH, en;q=0.5" };
  expect((await page(token, undefined, german)).text).toMatch(
    /<html lang="de">[^]*Lesen Sie es zuerst[^]*first.pdf, Version 1<[^]*Mir einen Code senden/,
  );
  // Opening the page, as mail scanners do, changes nothing.
  expect((await read(id)).status).toBe("SENT");
  expect(shown.text).not.toContain('name="consent"');

  const answer = await page(token, { action: "code" });
  expect(answer.text).toContain("A code was sent to c…@example.com.");
  const value = codeIn((await mails())[cora.email]!.text);
  const form = { action: "sign", code: value, consent: "yes", file: (await read(id)).files[0].id };
  const wrong = await page(token, { ...form, code: "none" });
  expect(wrong.status).toBe(400);
  expect(wrong.text).toContain("This code is wrong.");
  const wrongInGerman = await page(token, { ...form, code: "none" }, german);
  expect(wrongInGerman.text).toMatch(/role="alert"><strong>[^<]*Code/);
  expect(wrongInGerman.text).not.toContain("This code is wrong");
  const without = await page(token, { ...form, consent: "" });
  expect([without.status, without.text]).toEqual([400, expect.stringContaining("Signing requires consent")]);
  const signed = await page(token, form, { "user-agent": "Browser/1" });
  expect(signed.status).toBe(200);
  expect(signed.text).toContain("You have signed it. You will receive an email when everybody has.");
  expect(signed.text).not.toContain("<form");
  const { trail } = await read(id);
  expect(trail.find((entry: any) => entry.kind === "SIGNED")).toMatchObject({
    signerName: "Cora Co",
    userAgent: "Browser/1",
    ipAddress: expect.stringMatching(/127\.0\.0\.1$/),
  });

  const other = tokenIn(invited["dan@example.com"]!.text);
  await page(other, { action: "code" });
  const code2 = codeIn((await mails())["dan@example.com"]!.text);
  const declined = await page(other, { action: "decline", code: code2, reason: "No <b>." });
  expect(declined.text).toContain("It was declined by a signer");
  expect((await read(id)).status).toBe("DECLINED");
  expect((await page(token)).text).not.toContain("first.pdf");
  expect((await page("agreement.forged")).status).toBe(404);
  expect((await page(token, { action: "other" })).status).toBe(400);
  expect((await page(token, { action: "decline", reason: "x".repeat(20_000) })).status).toBe(413);
  await mails();
});

describe("a code", () => {
  test("has five attempts, which count although their transaction is rolled back", async () => {
    const { ids } = await sent([{ name: "Bea Buyer", email: bea.email! }]);
    const who = { signerId: ids["Bea Buyer"]! };
    await mails();
    expect(await bea.refused(SIGN, { input: { ...who, code: "123456", consent: true } })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "code",
      message: expect.stringContaining("no valid code"),
    });
    const right = await code(bea, who, bea.email!);
    const wrong = right === "000000" ? "000001" : "000000";
    // Parallel attempts do not exceed the limit.
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => bea.refused(SIGN, { input: { ...who, code: wrong, consent: true } })),
    );
    expect(
      answers
        .map(({ triesLeft }) => triesLeft)
        .filter((left) => left !== undefined)
        .sort(),
    ).toEqual([0, 1, 2, 3, 4]);
    expect(await bea.refused(SIGN, { input: { ...who, code: right, consent: true } })).toMatchObject({
      code: "BAD_USER_INPUT",
      message: expect.stringContaining("no valid code"),
    });
    // For all codes of a day together, fifteen attempts.
    for (let round = 0; round < 2; round += 1) {
      await code(bea, who, bea.email!);
      for (let i = 0; i < 5; i += 1)
        await bea.refused(SIGN, { input: { ...who, code: "none", consent: true } });
    }
    const last = await code(bea, who, bea.email!);
    expect(await bea.refused(SIGN, { input: { ...who, code: last, consent: true } })).toMatchObject({
      code: "RATE_LIMITED",
      retryAfterSeconds: expect.any(Number),
    });
  });

  test("is valid for ten minutes, and five are sent within an hour", async () => {
    const { ids } = await sent([{ name: "Bea Buyer", email: bea.email! }]);
    const who = { signerId: ids["Bea Buyer"]! };
    await mails();
    const value = await code(bea, who, bea.email!);
    await world.owner.query(
      "update app_private.agreement_codes set expires_at = expires_at - interval '10 minutes' where signer_id = $1",
      [who.signerId],
    );
    expect(await bea.refused(SIGN, { input: { ...who, code: value, consent: true } })).toMatchObject({
      code: "BAD_USER_INPUT",
    });
    for (let i = 0; i < 4; i += 1) await bea.get(CODE, { input: who });
    expect(await bea.refused(CODE, { input: who })).toMatchObject({ code: "RATE_LIMITED" });
    await mails();
  });

  test("is sent as a text message if the signer has a number", async () => {
    const { id, ids } = await sent([{ name: "Bea Buyer", email: bea.email!, phone: "416 555 0123" }, cora]);
    await mails();
    const who = { signerId: ids["Bea Buyer"]! };
    const speak = (language: string) =>
      world.owner.query("update app_public.users set language = $2 where id = $1", [bea.id, language]);
    await speak("de");
    await bea.get(CODE, { input: { ...who, channel: "SMS" } });
    expect(await mails()).toEqual({});
    await speak("en");
    expect((await bea.get(REQUEST, who)).signingRequest.codeSentTo).toBe("… 23");
    const entry = (await read(id)).trail.at(-1);
    expect(entry).toMatchObject({ kind: "CODE_SENT", sentTo: "+14165550123" });
    const { readdir } = await import("node:fs/promises");
    const folder = joinPath(world.dataDir, "outbox");
    const [file] = (await readdir(folder)).filter((name) => name.endsWith(".txt"));
    const text = await readFile(joinPath(folder, file!), "utf8");
    const input = {
      ...who,
      code: /^(\d{6}) ist Ihr Code, um "Contract of 12B"/m.exec(text)![1]!,
      consent: true,
    };
    expect((await bea.get(SIGN, { input })).signAgreement.status).toBe("PARTIALLY_SIGNED");
    expect(
      await owen.refused(mutationOf("createAgreementSigner"), {
        input: { agreementId: id, role: "WITNESS", name: "X", email: "x@example.com" },
      }),
    ).toMatchObject({ code: "CONFLICT", field: "agreementId" });
  });

  test("a repeated request under its idempotency key is not a second signature", async () => {
    const { id, ids } = await sent([{ name: "Bea Buyer", email: bea.email! }]);
    const who = { signerId: ids["Bea Buyer"]! };
    await mails();
    const input = { ...who, code: await code(bea, who, bea.email!), consent: true };
    const headers = { "idempotency-key": `sign ${id}` };
    const [one, two] = [
      await bea.ask(SIGN, { input }, { headers }),
      await bea.ask(SIGN, { input }, { headers }),
    ];
    expect(one.errors).toBeUndefined();
    expect(two.data.signAgreement.signedAt).toBe(one.data.signAgreement.signedAt);
    expect((await read(id)).trail.filter((entry: any) => entry.kind === "SIGNED")).toHaveLength(1);
    await mails();
  });
});

test("reminders are sent automatically and manually, only to signers who have not signed", async () => {
  const { id, ids } = await sent([{ name: "Bea Buyer", email: bea.email! }, cora], { reminderDays: 2 });
  await mails();
  await sign(bea, { signerId: ids["Bea Buyer"]! }, bea.email!);
  await mails();
  const remind = { input: { id: ids["Cora Co"] } };
  const REMIND = mutationOf("remindAgreementSigner", "{ id remindedAt }");
  expect((await owen.get(REMIND, remind)).remindAgreementSigner.remindedAt).not.toBeNull();
  const reminder = (await mails())[cora.email]!;
  expect(reminder.subject).toBe("Reminder: please sign: Contract of 12B");
  expect(await owen.refused(REMIND, { input: { id: ids["Bea Buyer"] } })).toMatchObject({ code: "CONFLICT" });
  for (let i = 0; i < 2; i += 1) await owen.get(REMIND, remind);
  expect(await owen.refused(REMIND, remind)).toMatchObject({ code: "RATE_LIMITED" });
  await mails();

  // Automatically every two days, at most three times.
  await world.owner.query("delete from app_private.limit_uses");
  const due = () =>
    world.owner.query(
      "update graphile_worker._private_jobs set run_at = now() where key = 'agreement_signer__reminded ' || $1::text",
      [ids["Cora Co"]],
    );
  let sentMails = 0;
  // The first one is skipped after a manual reminder.
  for (let i = 0; i < 6; i += 1) {
    await world.owner.query("delete from app_private.limit_uses");
    await due();
    sentMails += Object.keys(await mails()).filter((to) => to === cora.email).length;
  }
  expect(sentMails).toBe(3);
  expect(
    (await read(id)).trail.filter((e: any) => e.kind === "REMINDED" && e.note === "by itself"),
  ).toHaveLength(3);
});

test("a change of a signer's address invalidates the former link and code", async () => {
  const { id, ids } = await sent([{ name: "Bea Buyer", email: bea.email! }, cora]);
  const token = tokenIn((await mails())[cora.email]!.text);
  const value = await code(world.anonymous, { token }, cora.email);
  const update = mutationOf("updateAgreementSigner", "{ id email }");
  expect(await owen.refused(update, { input: { id: ids["Cora Co"], role: "WITNESS" } })).toMatchObject({
    code: "CONFLICT",
    field: "role",
  });
  await owen.get(update, { input: { id: ids["Cora Co"], email: "cora.new@example.com" } });
  expect(await world.anonymous.refused(SIGN, { input: { token, code: value, consent: true } })).toMatchObject(
    { code: "NOT_FOUND", field: "token" },
  );
  const fresh = tokenIn((await mails())["cora.new@example.com"]!.text);
  await sign(world.anonymous, { token: fresh }, "cora.new@example.com");
  expect(await owen.refused(update, { input: { id: ids["Cora Co"], name: "Cora Cheat" } })).toMatchObject({
    code: "CONFLICT",
  });
  expect((await read(id)).trail.some((entry: any) => entry.kind === "CHANGED")).toBe(true);
  await mails();
});

test("expires, can be voided, and stops in an archived project; links become invalid", async () => {
  const soon = new Date(Date.now() + 86_400_000).toISOString();
  const { id } = await sent([cora], { expiresAt: soon });
  const token = tokenIn((await mails())[cora.email]!.text);
  await passTime(world.owner, "2 days");
  await world.owner.query("update app_hidden.deadlines set due_at = due_at - interval '2 days'");
  expect(await world.anonymous.refused(CODE, { input: { token } })).toMatchObject({ code: "CONFLICT" });
  expect((await read(id)).status).toBe("EXPIRED");
  expect((await world.anonymous.get(REQUEST, { token })).signingRequest).toMatchObject({
    canSign: false,
    url: null,
  });
  expect((await mails())[cora.email]!.text).toContain("was not signed in time");

  const other = await sent([cora]);
  const second = tokenIn((await mails())[cora.email]!.text);
  await owen.get(mutationOf("updateAgreement"), {
    input: { id: other.id, status: "VOIDED", voidReason: "Wrong unit." },
  });
  expect(await world.anonymous.refused(CODE, { input: { token: second } })).toMatchObject({
    code: "CONFLICT",
    message: "This agreement has ended (VOIDED).",
  });
  expect((await mails())[cora.email]!.text).toContain("> Wrong unit.");
  await passTime(world.owner, "91 days");
  expect(await world.anonymous.refused(REQUEST, { token: second })).toMatchObject({
    code: "NOT_FOUND",
    field: "token",
  });
});

test("refuses to send incomplete agreements, and files that are not PDF", async () => {
  const id = await create("createAgreement", { buyerId: purchase, type: "NDA", title: "Secret" });
  await create("createAgreementSigner", { agreementId: id, role: "BUYER", name: "Bea", email: bea.email! });
  const update = mutationOf("updateAgreement");
  expect(await owen.refused(update, { input: { id, status: "SENT" } })).toMatchObject({
    code: "CONFLICT",
    field: "status",
    message: expect.stringContaining("uploadAgreementFile"),
  });
  const answer = await upload(
    world,
    owen,
    UPLOAD,
    { input: { agreementId: id, file: null } },
    { "variables.input.file": { bytes: Buffer.from("a,b\n1,2\n"), name: "x.csv", type: "text/csv" } },
  );
  expect(answer.errors![0]!.extensions).toMatchObject({ code: "UNSUPPORTED_FILE", field: "file" });
  const { file } = await uploadFile(id, "draft");
  await owen.get(update, { input: { id, signingProvider: "DOCUSIGN" } });
  expect(await owen.refused(update, { input: { id, status: "SENT" } })).toMatchObject({
    code: "CONFLICT",
    field: "signingProvider",
  });
  await owen.get(update, { input: { id, signingProvider: "EMBEDDED" } });
  // The buyer sees neither the draft nor its file.
  expect((await bea.get("query ($id: ID!) { agreement(id: $id) { id } }", { id })).agreement).toBeNull();
  expect(
    (await bea.get("query ($id: ID!) { agreementFile(id: $id) { id } }", { id: file.id })).agreementFile,
  ).toBeNull();
  await owen.get(mutationOf("deleteAgreementFile", "{ id }"), { input: { id: file.id } });
  await owen.get(mutationOf("deleteAgreement", "{ id }"), { input: { id } });
  // An agreement without signers is tracked manually.
  const paper = await create("createAgreement", { buyerId: purchase, type: "NDA", title: "PdfLayout" });
  for (const status of ["SENT", "SIGNED", "EXECUTED"])
    expect(
      (await owen.get(mutationOf("updateAgreement", "{ status }"), { input: { id: paper, status } }))
        .updateAgreement.status,
    ).toBe(status);
  expect((await uploadFile(paper, "scan")).file).toMatchObject({ number: 1 });
});

test("visibility and permissions", async () => {
  const { id, ids } = await sent([{ name: "Bea Buyer", email: bea.email! }, cora], {});
  const ben = await world.signUp("Ben Buyer");
  const other = await createBuyer(owen, world.project, { legalName: "Ben Buyer" });
  await invite(world, other, ben);
  const carl = await world.signUp("Carl Cosigner");
  await create("createAgreement", { buyerId: other, type: "NDA", title: "Ben's", status: "SENT" });
  const { ids: carls } = await sent([{ name: "Carl", email: carl.email!, role: "CO_BUYER" }]);
  await mails();
  const { rows: carlsAgreement } = await world.owner.query(
    "select agreement_id as id from app_public.agreement_signers where id = $1",
    [carls.Carl],
  );
  const people = {
    ...cast(world, { bea, ben, carl }),
    token: await programOf(world, owen, { scopes: ["lead.read"] }),
  };
  const seen: Record<string, unknown> = {};
  for (const [name, person] of Object.entries(people)) {
    const answer = await person.ask(AGREEMENT, { id });
    const agreement = answer.data?.agreement;
    seen[name] = agreement
      ? {
          emails: agreement.signers.map((s: any) => s.email !== null),
          addresses: agreement.trail.some((e: any) => e.sentTo !== null),
          files: agreement.files.length,
        }
      : (answer.errors?.[0]?.extensions.code ?? null);
  }
  const whole = { emails: [true, true], addresses: true, files: 1 };
  expect(seen).toEqual({
    owner: whole,
    admin: whole,
    member: { ...whole, addresses: false },
    seller: null,
    builder: null,
    // Viewers do not see the other addresses of codes, or the network addresses of signers.
    bea: { emails: [true, false], addresses: false, files: 1 },
    ben: null,
    carl: null,
    outsider: null,
    anonymous: "UNAUTHENTICATED",
    token: null,
  });
  // A co-buyer with an account sees the agreement, and nothing else of the deal.
  const own = await carl.get(
    "query ($id: ID!) { agreement(id: $id) { title buyer { id } project { id } files { url } signers { name email } events { id } } }",
    { id: carlsAgreement[0].id },
  );
  expect(own.agreement).toMatchObject({
    title: "Contract of 12B",
    buyer: null,
    project: null,
    files: [{ url: expect.any(String) }],
    signers: [{ name: "Carl", email: carl.email }],
    events: [],
  });

  // Only the signer can sign, not others who see the agreement.
  const signerId = ids["Cora Co"];
  for (const person of [owen, world.max, bea, ben, world.olga])
    expect(await expectUnchanged(world, () => person.refused(CODE, { input: { signerId } }))).toMatchObject({
      code: "NOT_FOUND",
      field: "signerId",
    });
  expect(await world.anonymous.refused(CODE, { input: { signerId } })).toMatchObject({
    code: "UNAUTHENTICATED",
  });
  expect(await world.anonymous.refused(CODE, { input: { token: "agreement.nonsense" } })).toMatchObject({
    code: "NOT_FOUND",
    field: "token",
  });
  expect(await bea.refused(CODE, { input: {} })).toMatchObject({ code: "BAD_USER_INPUT", field: "signerId" });
  // Access tokens with other scopes, or for one organization, cannot sign for their user.
  for (const input of [{ scopes: ["lead.read"] }, { readOnly: true }]) {
    const robot = await programOf(world, bea, input);
    const answer = await robot.refused(CODE, { input: { signerId: ids["Bea Buyer"] } });
    expect(["NOT_FOUND", "FORBIDDEN"]).toContain(answer.code);
  }
  // Only the sales team writes signers and files.
  const draft = await create("createAgreement", { buyerId: purchase, type: "NDA", title: "Draft" });
  for (const person of [bea, world.sam, world.bob, world.olga]) {
    const signer = { agreementId: draft, role: "BUYER", name: "Mallory", email: "mallory@example.com" };
    expect(
      await expectUnchanged(world, () =>
        person.refused(mutationOf("createAgreementSigner"), { input: signer }),
      ),
    ).toMatchObject({
      code: "NOT_FOUND",
    });
    expect((await uploadFile(draft, "mine", {}, person)).error!.extensions.code).toBe("NOT_FOUND");
    expect(
      await expectUnchanged(world, () =>
        person.refused(mutationOf("remindAgreementSigner", "{ id }"), { input: { id: signerId } }),
      ),
    ).toMatchObject({ code: person === bea ? "FORBIDDEN" : "NOT_FOUND" });
  }
  expect(
    await expectUnchanged(world, () =>
      bea.refused(mutationOf("updateAgreementSigner"), {
        input: { id: ids["Bea Buyer"], name: "Queen Bea" },
      }),
    ),
  ).toMatchObject({ code: "FORBIDDEN" });
  expect((await uploadFile(id, "mine", {}, bea)).error!.extensions.code).toBe("FORBIDDEN");
  // The trail cannot be changed, not even by the owner of the database.
  await expect(
    world.owner.query("update app_public.agreement_trail_entries set note = 'x' where agreement_id = $1", [
      id,
    ]),
  ).rejects.toThrow(/never changed/);
  await expect(
    world.owner.query("delete from app_public.agreement_trail_entries where agreement_id = $1", [id]),
  ).rejects.toThrow(/never changed/);
});

test("a certificate contains roles and the trail, in the language of the organization", async () => {
  const { rows } = await world.owner.query(
    "select description from app_public.agreement_signer_role_values union all select description from app_public.agreement_trail_kind_values",
  );
  expect(rows.length).toBeGreaterThan(15);
  for (const { description } of rows)
    for (const language of ["fr", "de", "es"] as const)
      expect(localize(description, language, "mails").message).not.toBe(description);
  const facts = {
    title: "Contract",
    agreementId: "1",
    agreementNumber: "A-000001",
    organization: "Acme",
    project: "Tower",
    timeZone: "Europe/Zurich",
    filename: "a.pdf",
    filesize: 1234,
    checksum: "00",
    number: 1,
    signers: [],
    trail: [],
  };
  const text = async (language: string) => {
    const paper = new Uint8Array(await certificatePages({ ...facts, language }));
    return (await extractText(await getDocumentProxy(paper), { mergePages: true })).text;
  };
  const english = await text("en");
  for (const line of ["Certificate of signatures", "a.pdf, version 1, 1,234 bytes", "Agreement: A-000001, 1"])
    expect(english).toContain(line);
  const german = await text("de");
  for (const line of [
    "Zertifikat der Unterschriften",
    "a.pdf, Version 1, 1.234 Bytes",
    "Vertrag: A-000001, 1",
  ])
    expect(german).toContain(line);
});
