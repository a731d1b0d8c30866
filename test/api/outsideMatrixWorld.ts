/**
 * The records of the permission matrix of external services: payments, integrations, reports, exports and drafts of
 * Harbour Homes and its project Harbour View.
 */
import type { Person } from "../harness/api.ts";
import { createBuyer, invite } from "../harness/deals.ts";
import { representative, startPayments, type Payments } from "../harness/payments.ts";
import { cast, createLead } from "../harness/portfolio.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { join, programOf } from "../harness/world.ts";
import { createOutbox, runJobs } from "../tasks/worker.ts";
import { startReceiver, type Receiver } from "../webhooks/receiver.ts";
import { createFileStore } from "../../src/providers/files/index.ts";

export interface MatrixRecord {
  finder: string;
  type: string;
  id: string;
  /** A person who sees all of it. */
  by: Person;
}

export interface OutsideWorld extends Payments {
  people: Record<string, Person>;
  receiver: Receiver;
  /** By their names in the tables. */
  records: Record<string, MatrixRecord>;
  /** The lead for which drafts are requested. */
  leadOfBuyer: string;
  deposit: string;
  /** A reservation of the buyer. */
  reservation: string;
  /** Input that creates an integration with a CRM. */
  sync(): Record<string, unknown>;
}

export async function startOutsideWorld(): Promise<OutsideWorld> {
  const receiver = await startReceiver();
  const world = await startPayments(undefined, { loopbackWebhooks: true });
  const { owen, ada, max, sam, mia, bea, ben, project, harbour, leads } = world;
  const create = createIn(owen);
  const run = async (person: Person, field: string, input: Record<string, unknown>, selection?: string) =>
    (await person.get(mutationOf(field, selection), { input }))[field];
  const records: OutsideWorld["records"] = {};
  const keep = (label: string, id: string, by = owen) => {
    const type = label.split(":")[0]!;
    records[label] = { type, finder: type[0]!.toLowerCase() + type.slice(1), id, by };
    return id;
  };

  // An ADMIN who left after all records had been created.
  const flo = await world.signUp("Flo Former");
  await join(world, harbour.id, flo, "ADMIN");

  // Payments of the buyer, partly refunded, and of the other buyer.
  const { id: rita } = await run(owen, "createOrganizationPaymentsRepresentative", {
    organizationId: harbour.id,
    ...representative,
  });
  keep("OrganizationPaymentsRepresentative", rita);
  const card = async (person: Person) =>
    (await run(person, "createProcessorCard", { token: "tok_visa" })).id as string;
  keep("ProcessorCard", await card(bea), bea);
  keep("ProcessorCard:other", await card(ben), ben);
  keep("ProcessorCard:former", await card(flo), flo);
  const deposit = await create("createDeposit", {
    buyerId: world.purchase,
    title: "Deposit",
    amount: "500.00",
  });
  const pay = async (person: Person, label: string, input: Record<string, unknown>) => {
    const made = await run(
      person,
      "createPaymentIntent",
      { amount: "100.00", cardId: records[`ProcessorCard${label}`]!.id, ...input },
      "{ id charge { id } }",
    );
    keep(`PaymentIntent${label}`, made.id, person);
    return keep(`ProcessorCharge${label}`, made.charge.id);
  };
  const charge = await pay(bea, "", { depositId: deposit });
  const toOrganization = { organizationId: harbour.id, currency: "CAD" };
  await pay(ben, ":other", toOrganization);
  await pay(flo, ":former", toOrganization);
  const { refunds } = await run(
    owen,
    "refundProcessorCharge",
    { chargeId: charge, amount: "1", note: "For the team." },
    "{ refunds { id } }",
  );
  keep("ProcessorRefund", refunds[0].id);
  await world.owner.query(`update app_public.processor_charges set metadata = '{"a": 1}'`);
  const unitId = await create("createUnit", {
    projectId: project.id,
    title: "Home",
    status: "AVAILABLE",
    price: "400000",
  });
  const reservation = await create("createReservation", { unitId, acceptedTerms: true }, bea);
  const lotId = await create("createLot", {
    projectId: project.id,
    number: "1",
    status: "AVAILABLE",
    price: "90000",
  });
  await create("createUnitHold", { lotId });

  // Integrations.
  const sync = () => ({
    organizationId: harbour.id,
    appKey: "crm_sync",
    config: { url: receiver.url, events: ["lead.created"], mapping: { mail: "data.email" } },
  });
  keep("OrganizationIntegration", await create("createOrganizationIntegration", sync()));
  keep("UserIntegration", await create("createUserIntegration", { appKey: "calendar_feed" }, max), max);
  keep(
    "UserIntegration:former",
    await create("createUserIntegration", { appKey: "calendar_feed" }, flo),
    flo,
  );
  for (const key of ["crm_sync", "calendar_feed"]) {
    const { rows } = await world.owner.query("select id from app_public.integration_apps where key = $1", [
      key,
    ]);
    keep(`IntegrationApp:${key}`, rows[0].id);
  }

  // Reports and exports of leads; their contents have tests of their own.
  const report = (label: string, person: Person, more: Record<string, unknown> = {}) =>
    create(
      "createCustomReport",
      { organizationId: harbour.id, name: label, subject: "LEADS", columns: ["name"], filter: {}, ...more },
      person,
    ).then((id) => keep(`CustomReport:${label}`, id, person));
  await report("organization", owen, { visibility: "ORGANIZATION", chart: "TABLE", description: "All." });
  await report("project", owen, { visibility: "PROJECT", projectId: project.id });
  await report("private", owen, { visibility: "PRIVATE" });
  await report("former", flo, { visibility: "PRIVATE" });
  const all = { organizationId: harbour.id, name: "All", subject: "LEADS", format: "CSV", columns: ["name"] };
  const custom = keep("CustomExport", await create("createCustomExport", all));
  const outbox = await createOutbox();
  for (const [label, person] of Object.entries({ owner: owen, admin: ada, member: max, former: flo }))
    keep(`Export:${label}`, (await run(person, "runCustomExport", { id: custom })).id, person);
  await runJobs(world.database.ownerUrl, outbox.provider, createFileStore(world), world.processor);
  await outbox.remove();
  await world.settle();

  // Drafts to leads of each seller.
  const { id: leadOfBuyer } = await createLead(owen, { projectId: project.id, name: "Bea as a lead" });
  await invite(world, await createBuyer(owen, project, { leadId: leadOfBuyer }), bea);
  for (const [label, leadId, person] of [
    ["unassigned", leads.open.id, owen],
    ["sellers", leads.sams.id, sam],
    ["members", leads.maxs.id, max],
    ["anothers", leads.mias.id, mia],
    ["buyers", leadOfBuyer, owen],
    ["former", leads.open.id, flo],
  ] as const) {
    const { id } = await run(person, "suggestLeadEmail", { leadId });
    keep(`ServiceIntelligenceGeneration:${label}`, id);
  }

  const { id: second } = await run(owen, "createOrganization", { name: "Second Shore" });
  await run(
    owen,
    "removeOrganizationMember",
    { organizationId: harbour.id, userId: flo.id },
    "{ __typename }",
  );
  return {
    ...world,
    people: {
      ...cast(world, { buyer: bea, other: ben }),
      former: flo,
      // Access tokens of the owner: one with scopes of other areas, a read-only one, one for the owner's
      // other organization.
      scoped: await programOf(world, owen, { scopes: ["lead.read", "project.read", "org.member"] }),
      reader: await programOf(world, owen, { readOnly: true }),
      abroad: await programOf(world, owen, { organizationId: second }),
    },
    receiver,
    records,
    leadOfBuyer,
    deposit,
    reservation,
    sync,
    async stop() {
      await world.stop();
      await receiver.close();
    },
  };
}
