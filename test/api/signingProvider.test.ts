/**
 * Agreements signed at a provider: the integration, envelopes, notifications and failures, against a server that
 * implements its API over HTTPS.
 */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { createIn, mutationOf, type Create } from "../harness/records.ts";
import { upload } from "../harness/upload.ts";
import { startWorld, type World } from "../harness/world.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import {
  certificatePdf,
  signedPdf,
  startDocusignServer,
  type DocusignServer,
} from "../providers/docusignServer.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

let world: World;
let outbox: Outbox;
let owen: Person;
let create: Create;
let docusign: DocusignServer;
let purchase: string;
let integration: string;

const pdf = Buffer.from("%PDF-1.7\n% contract\n%%EOF\n");
const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const CONNECT = mutationOf("createOrganizationIntegration", "{ id status externalAccount lastError config }");
const ada = {
  name: "Ada Admin",
  email: "ada.seller@example.com",
  role: "SELLER_REPRESENTATIVE",
  sequence: 2,
};
const bea = { name: "Bea Buyer", email: "bea@example.com", role: "BUYER", sequence: 1 };

beforeAll(async () => {
  docusign = await startDocusignServer();
  world = await startWorld(undefined, { loopbackWebhooks: true });
  outbox = await createOutbox();
  owen = world.owen;
  create = createIn(owen);
  purchase = await createBuyer(owen, world.project);
});
afterAll(async () => {
  await outbox.remove();
  await world.stop();
  await docusign.close();
});
beforeEach(async () => {
  docusign.answers(/POST .*envelopes/, null);
  docusign.requests.length = 0;
  await world.owner.query("delete from app_private.limit_uses");
});

const connect = (more: { config?: object; credentials?: object } = {}) => ({
  organizationId: world.harbour.id,
  appKey: "docusign",
  config: { ...docusign.config, ...more.config },
  credentials: { ...docusign.credentials, ...more.credentials },
});
/** Runs all jobs, including postponed ones; returns the log. */
async function jobs(): Promise<string> {
  await world.owner.query(
    "update graphile_worker._private_jobs set run_at = now() where run_at > now() and attempts > 0",
  );
  const log = await runJobs(
    world.database.ownerUrl,
    outbox.provider,
    createFileStore({ dataDir: world.dataDir }),
  );
  return log.join("\n");
}
async function sent(signers = [bea, ada], input: Record<string, unknown> = {}) {
  const id = await create("createAgreement", {
    buyerId: purchase,
    type: "PURCHASE",
    title: "Contract",
    signingProvider: "DOCUSIGN",
    ...input,
  });
  const answer = await upload(
    world,
    owen,
    mutationOf("uploadAgreementFile"),
    { input: { agreementId: id, file: null } },
    { "variables.input.file": { bytes: pdf, name: "Vertrag Ü.pdf" } },
  );
  expect(answer.errors).toBeUndefined();
  const ids: string[] = [];
  for (const signer of signers)
    ids.push(await create("createAgreementSigner", { agreementId: id, ...signer }));
  await owen.get(mutationOf("updateAgreement"), { input: { id, status: "SENT" } });
  return { id, ids };
}
const read = async (id: string) =>
  (
    await owen.get(
      `query ($id: ID!) { agreement(id: $id) { status voidReason signers { name status signedAt declineReason signedFile { checksum } }
        files { kind checksum } trail { kind signerName checksum } } }`,
      { id },
    )
  ).agreement;
const noticeUrl = (path: string) => new URL(path, world.url).href;

test("an organization connects its account; errors are reported, and its key is never revealed", async () => {
  const of = async (more: object) =>
    (await owen.get(CONNECT, { input: connect(more) })).createOrganizationIntegration;
  expect(await of({ config: { accountId: "another" } })).toMatchObject({
    status: "PENDING",
    lastError: "The user of DocuSign has no account with this accountId.",
  });
  expect(await of({ credentials: { privateKey: "no key" } })).toMatchObject({
    status: "PENDING",
    lastError: "The private key is not valid PEM; enter it again.",
  });
  expect(await of({ credentials: { userId: "nobody" } })).toMatchObject({
    status: "PENDING",
    lastError: "DocuSign does not let the integration in (400, invalid_grant); look at its credentials.",
  });
  docusign.answers(
    /oauth\/token/,
    (_request, response) => void response.status(400).json({ error: "consent_required" }),
  );
  expect((await of({})).lastError).toContain("has not consented");
  docusign.answers(/oauth\/token/, null);
  expect(
    await owen.refused(CONNECT, { input: connect({ config: { server: "https://169.254.169.254" } }) }),
  ).toMatchObject({ code: "BAD_USER_INPUT", field: "config.server" });
  expect(await world.max.refused(CONNECT, { input: connect() })).toMatchObject({ code: "FORBIDDEN" });
  const made = await of({});
  expect(made).toMatchObject({ status: "ENABLED", externalAccount: "Harbour at DocuSign", lastError: null });
  integration = made.id;
  const { rows } = await world.owner.query(
    "select string_agg(s::text, ' ') as kept from app_private.integration_secrets s",
  );
  expect(rows[0].kept).not.toContain("PRIVATE KEY");
  expect(JSON.stringify(made)).not.toContain("PRIVATE KEY");
});

test("an agreement is sent there and updated by signed notifications, and its evidence is stored", async () => {
  const { id, ids } = await sent(undefined, {
    expiresAt: new Date(Date.now() + 5 * 86_400_000).toISOString(),
  });
  await jobs();
  const envelope = docusign.envelopes.at(-1)!;
  expect(envelope.document).toEqual(pdf);
  expect(envelope.definition).toMatchObject({
    status: "sent",
    emailSubject: "Please sign: Contract",
    documents: [{ documentId: "1", name: "Vertrag Ü.pdf", fileExtension: "pdf" }],
    recipients: {
      signers: [
        { email: bea.email, routingOrder: "1", customFields: [ids[0]] },
        { email: ada.email, routingOrder: "2", customFields: [ids[1]] },
      ],
    },
    notification: {
      reminders: { reminderEnabled: "true", reminderDelay: "3" },
      expirations: { expireAfter: "5" },
    },
    eventNotification: { url: `https://plat.example/webhooks/signing/${id}`, includeHMAC: "true" },
  });
  // The provider sends the mails.
  expect(await outbox.take()).toEqual([]);
  // It can no longer be signed or get another version here.
  const { agreement } = await owen.get("query ($id: ID!) { agreement(id: $id) { signers { id } } }", { id });
  expect(agreement.signers).toHaveLength(2);
  const again = await upload(
    world,
    owen,
    mutationOf("uploadAgreementFile"),
    { input: { agreementId: id, file: null } },
    { "variables.input.file": { bytes: pdf, name: "b.pdf" } },
  );
  expect(again.errors![0]!.extensions).toMatchObject({ code: "CONFLICT", field: "agreementId" });

  const notice = noticeUrl(`/webhooks/signing/${id}`);
  docusign.act(envelope, bea.email, "delivered");
  // A notification without a valid signature has no effect.
  expect(await docusign.notify(envelope, notice, "another key")).toBe(400);
  expect(await docusign.notify(envelope, noticeUrl("/webhooks/signing/nothing"))).toBe(400);
  await jobs();
  expect((await read(id)).status).toBe("SENT");
  expect(await docusign.notify(envelope, notice)).toBe(200);
  await jobs();
  expect((await read(id)).status).toBe("VIEWED");
  docusign.act(envelope, bea.email, "completed");
  for (let i = 0; i < 2; i += 1) expect(await docusign.notify(envelope, notice)).toBe(200);
  await jobs();
  const between = await read(id);
  expect(between).toMatchObject({
    status: "SIGNED",
    signers: [
      { status: "SIGNED", signedFile: { checksum: sha256(pdf) } },
      { status: "INVITED", signedFile: null },
    ],
  });
  docusign.act(envelope, ada.email, "completed");
  // If a notification is lost, the status is requested after an hour.
  await world.owner.query("select app_private.sync_envelopes(10)");
  await jobs();
  expect((await read(id)).status).toBe("SIGNED");
  await world.owner.query(
    "update app_private.agreement_envelopes set asked_at = now() - interval '61 minutes'",
  );
  await world.owner.query("select app_private.sync_envelopes(10)");
  await jobs();
  const done = await read(id);
  expect(done.status).toBe("EXECUTED");
  expect(done.files.map(({ kind, checksum }: any) => [kind, checksum]).sort()).toEqual([
    ["CERTIFICATE", sha256(certificatePdf)],
    ["DOCUMENT", sha256(pdf)],
    ["SIGNED", sha256(signedPdf)],
  ]);
  expect(done.trail.filter(({ kind }: any) => kind === "SIGNED")).toEqual([
    { kind: "SIGNED", signerName: bea.name, checksum: sha256(pdf) },
    { kind: "SIGNED", signerName: ada.name, checksum: sha256(pdf) },
  ]);
  // Ended envelopes are no longer requested.
  await world.owner.query(
    "update app_private.agreement_envelopes set asked_at = now() - interval '61 minutes'",
  );
  docusign.requests.length = 0;
  await world.owner.query("select app_private.sync_envelopes(10)");
  await jobs();
  expect(docusign.requests).toEqual([]);
});

test("declining or voiding is synchronized in both directions", async () => {
  const declined = await sent();
  await jobs();
  docusign.act(docusign.envelopes.at(-1)!, bea.email, "declined", "Too expensive.");
  await docusign.notify(docusign.envelopes.at(-1)!, noticeUrl(`/webhooks/signing/${declined.id}`));
  await jobs();
  expect(await read(declined.id)).toMatchObject({
    status: "DECLINED",
    signers: [{ status: "DECLINED", declineReason: "Too expensive." }, { status: "WAITING" }],
  });

  const voided = await sent();
  await jobs();
  await owen.get(mutationOf("remindAgreementSigner"), { input: { id: voided.ids[0] } });
  await jobs();
  const envelope = docusign.envelopes.at(-1)!;
  expect(envelope.resent).toBe(1);
  await owen.get(mutationOf("updateAgreement"), {
    input: { id: voided.id, status: "VOIDED", voidReason: "Wrong unit." },
  });
  await jobs();
  expect(envelope).toMatchObject({ status: "voided", voidedReason: "Wrong unit." });

  const there = await sent();
  await jobs();
  Object.assign(docusign.envelopes.at(-1)!, { status: "voided", voidedReason: "A mistake." });
  await docusign.notify(docusign.envelopes.at(-1)!, noticeUrl(`/webhooks/signing/${there.id}`));
  await jobs();
  expect(await read(there.id)).toMatchObject({ status: "VOIDED", voidReason: "At the provider: A mistake." });
  expect(await jobs()).not.toContain("error");
});

test("a lost response causes no second envelope, a failure is retried, and a refusal voids the agreement", async () => {
  const before = docusign.envelopes.length;
  // The request is accepted, but the connection breaks before the response.
  const lost = await sent();
  docusign.answers(/POST .*envelopes/, (request, response, goOn) => {
    docusign.answers(/POST .*envelopes/, null);
    response.json = () => {
      request.socket.destroy();
      return response;
    };
    goOn();
  });
  expect(await jobs()).toContain("DocuSign cannot be reached.");
  expect(docusign.envelopes).toHaveLength(before + 1);
  await jobs();
  expect(docusign.envelopes).toHaveLength(before + 1);
  expect((await read(lost.id)).status).toBe("SENT");
  const { rows } = await world.owner.query(
    "select envelope_id as id from app_private.agreement_envelopes where agreement_id = $1",
    [lost.id],
  );
  expect(rows).toEqual([{ id: docusign.envelopes.at(-1)!.envelopeId }]);

  const later = await sent();
  docusign.answers(
    /POST .*envelopes/,
    (_request, response) => void response.status(503).json({ errorCode: "OUT", message: "secret words" }),
  );
  const log = await jobs();
  expect(log).toContain("DocuSign takes nothing for now (503, OUT).");
  expect(log).not.toContain("secret words");
  docusign.answers(/POST .*envelopes/, null);
  await jobs();
  expect(docusign.envelopes).toHaveLength(before + 2);
  expect((await read(later.id)).status).toBe("SENT");

  const refused = await sent();
  docusign.answers(
    /POST .*envelopes/,
    (_request, response) =>
      void response.status(400).json({ errorCode: "PDF_VALIDATION_FAILED", message: "secret words" }),
  );
  await jobs();
  expect(await read(refused.id)).toMatchObject({
    status: "VOIDED",
    voidReason: "DocuSign refuses this (400, PDF_VALIDATION_FAILED).",
  });
});

test("an account with rejected credentials becomes ERROR with a ticket, and resumes after a refresh", async () => {
  const { id } = await sent();
  docusign.answers(
    /POST .*envelopes/,
    (_request, response) =>
      void response.status(401).json({ errorCode: "USER_AUTHENTICATION_FAILED", message: "secret" }),
  );
  for (let i = 0; i < 5; i += 1) await jobs();
  const { organizationIntegration } = await owen.get(
    "query ($id: ID!) { organizationIntegration(id: $id) { status lastError } }",
    { id: integration },
  );
  expect(organizationIntegration).toEqual({
    status: "ERROR",
    lastError:
      "DocuSign does not let the integration in (401, USER_AUTHENTICATION_FAILED); look at its credentials.",
  });
  docusign.answers(/POST .*envelopes/, null);
  await jobs();
  expect((await read(id)).status).toBe("SENT");
  await owen.get(mutationOf("refreshOrganizationIntegration"), { input: { id: integration } });
  await jobs();
  const { rows } = await world.owner.query(
    "select envelope_id is not null as sent from app_private.agreement_envelopes where agreement_id = $1",
    [id],
  );
  expect(rows).toEqual([{ sent: true }]);
});
