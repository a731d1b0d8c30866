/** createX (or uploadX) has all input fields of updateX, except for the listed ones, each with its reason. */
import { expect, test } from "@jest/globals";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { buildSchema, isInputObjectType, type GraphQLSchema } from "graphql";

const ends = "What ended it is told with the change of its status; no record begins ended.";

/** Fields of updateX that createX lacks. */
const exceptions: Record<string, Record<string, string>> = {
  Agreement: { voidReason: ends },
  Appointment: { cancellationReason: ends, outcomeNote: "What came of it is known when it is over." },
  Buyer: { cancellationReason: ends, falloutReasonId: ends },
  Deposit: {
    status: "A deposit begins as SCHEDULED; it is paid by what is noted afterwards.",
    amountPaid: "Nothing is paid of a deposit that is just asked for.",
    amountRefunded: "Nothing is paid of a deposit that is just asked for.",
    sentToHolderAt: "Nothing is paid of a deposit that is just asked for.",
  },
  Lead: { falloutReasonId: ends, falloutNote: ends },
  Negotiation: { status: "A negotiation begins as OPEN.", cancellationReason: ends },
  OpenHouse: { status: "It follows from the times; by hand it is only called off." },
  Personalization: {
    status: "A personalization begins as DRAFT.",
    selectionsChangedAt: "It follows from the choice of options.",
  },
  ProcessorCharge: { metadata: "createProcessorCharge is deprecated and stays as it is." },
  ProjectOrganization: {
    handOver: "Nothing is open with the people of an organization that is just taken on.",
    assigneeId: "Nothing is open with the people of an organization that is just taken on.",
  },
  Reservation: {
    cancelledAt: ends,
    cancellationReason: ends,
    falloutReasonId: ends,
    price: "A reservation begins at the list price, which it keeps a snapshot of.",
  },
  Task: { status: "A task begins as OPEN." },
  Webhook: { status: "A webhook begins as ENABLED." },
};

/** For types with updateX and without createX, what creates the records. */
const madeElsewhere: Record<string, string> = {
  EscalationTicket: "The service opens tickets.",
  Leads: "It changes leads that createLead, upsertLeads or importLeads made.",
  OrganizationMemberRole: "Members join by an invitation, which names the role.",
  OrganizationNotifications: "Everybody who joins has the default notifications.",
  OrganizationRetention: "They are settings of the organization, which begins with the defaults.",
  OrganizationSecondFactor: "It is a setting of the organization, which begins without it.",
  Password: "createAccount takes the first password.",
  SalesOffice: "The first update makes it: a project has one.",
  Units: "It changes units that createUnit or importUnits made.",
  User: "createAccount is a short form; the rest is filled in signed in.",
};

const named = (schema: GraphQLSchema) =>
  new Map(
    Object.values(schema.getTypeMap())
      .filter(isInputObjectType)
      .map((type) => [type.name, Object.keys(type.getFields())]),
  );

test("every create operation has the fields of its update operation", async () => {
  const inputs = named(
    buildSchema(await readFile(join(import.meta.dirname, "../../schema.graphql"), "utf8")),
  );
  const missing: Record<string, string[]> = {};
  const without: string[] = [];
  for (const [name, members] of inputs) {
    const subject = /^Update(\w+)Input$/.exec(name)?.[1];
    if (!subject) continue;
    const creates = inputs.get(`Create${subject}Input`) ?? inputs.get(`Upload${subject}Input`);
    if (!creates) without.push(subject);
    const own = new Set([...(creates ?? members), "id", "expectedVersion"]);
    const lacking = members.filter((member) => !own.has(member));
    if (lacking.length > 0) missing[subject] = lacking.toSorted();
  }
  expect(inputs.size).toBeGreaterThan(100);
  // In both directions: an unnecessary exception must be removed from the list.
  expect(missing).toEqual(
    Object.fromEntries(
      Object.entries(exceptions).map(([subject, members]) => [subject, Object.keys(members).toSorted()]),
    ),
  );
  expect(without.toSorted()).toEqual(Object.keys(madeElsewhere).toSorted());
});
