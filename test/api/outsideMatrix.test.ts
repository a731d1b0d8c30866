/**
 * Who may do what with payments, integrations, search, reports, exports and drafts, and which figures each gets of what they
 * see. The tables are the specification:
 *
 *   yes            the operation goes through; the record, the value is seen
 *   3 · none       that many records are listed · an empty list; of events, which there are ever more of, "some"
 *   null           null without an error
 *   less           another value than whoever sees all of it, such as only their own rows
 *   hidden         not even the record around it is seen
 *   a code         refused with it, without a trace: FORBID is FORBIDDEN, NOTFND is NOT_FOUND, UNAUTH is UNAUTHENTICATED
 *
 * owner, admin and member are of Harbour Homes, the former was an admin of it; the seller and the builder are members of
 * organizations affiliated with its project Harbour View; the buyer and the other buyer have purchases there; the outsider owns
 * Summit Sales. Programs of the owner's: scoped is for leads and projects, reader only reads, abroad is of the owner's other
 * organization. Leads of another member are in Quiet Quay, whose lead mode is PRIVATE.
 */
import { request } from "node:https";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  buildClientSchema,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  type GraphQLEnumType,
  type GraphQLObjectType,
  type GraphQLSchema,
  isLeafType,
  isListType,
  isObjectType,
} from "graphql";
import type { Person } from "../harness/api.ts";
import { everyField, shown } from "../harness/fields.ts";
import { ask, look, type Operation, outcome, outcomes, readMatrix, type Row } from "../harness/matrix.ts";
import { representative } from "../harness/payments.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { digest } from "../harness/untouched.ts";
import { startOutsideWorld, type OutsideWorld } from "./outsideMatrixWorld.ts";

/** Types of the area: what gives one has to stand in a table. */
const types =
  /^(Processor(Card|Charge|Refund)|PaymentIntent|OrganizationPaymentsRepresentative|IntegrationApp|(Organization|User)Integration|SearchResult|Custom(Report|Export)|Export|ServiceIntelligenceGeneration)$/;
/** What else belongs to it, by name. */
const area = /payment|processor|integration|^search$|export|customReport|generation|leadEmail$/i;
/** Tables of the area. */
const tables =
  /^(processor|payment|organization_payments|sandbox|integration|organization_integrations|user_integrations|oauth|report|custom_|export|service_intelligence|search)/;
/** Of other areas, with tests of their own. */
const elsewhere = ["EscalationTicket.generation"];

const operations = readMatrix(`
                                              | owner  | admin  | member | seller | builder | buyer  | other  | outsider | anonymous | former | scoped | reader | abroad
createProcessorCard                           | yes    | yes    | yes    | yes    | yes     | yes    | yes    | yes      | UNAUTH    | yes    | FORBID | FORBID | FORBID
updateProcessorCard of the buyer              | NOTFND | NOTFND | NOTFND | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
removeProcessorCard of the buyer              | NOTFND | NOTFND | NOTFND | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
createPaymentIntent for the deposit           | yes    | yes    | FORBID | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
createPaymentIntent for the reservation       | yes    | yes    | FORBID | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
createPaymentIntent for the organization      | yes    | yes    | yes    | yes    | yes     | yes    | yes    | yes      | UNAUTH    | yes    | FORBID | FORBID | FORBID
createPaymentIntent with the buyer's card     | NOTFND | NOTFND | FORBID | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
createProcessorCharge with the buyer's card   | NOTFND | NOTFND | FORBID | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
refundProcessorCharge of the buyer            | yes    | yes    | NOTFND | NOTFND | NOTFND  | FORBID | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
refundProcessorCharge of the former           | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | FORBID | NOTFND | FORBID | NOTFND
createOrganizationPaymentsRepresentative      | yes    | yes    | FORBID | FORBID | FORBID  | FORBID | FORBID | FORBID   | UNAUTH    | FORBID | FORBID | FORBID | FORBID
updateOrganizationPaymentsRepresentative      | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
removeOrganizationPaymentsRepresentative      | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
createOrganizationIntegration                 | yes    | yes    | FORBID | FORBID | FORBID  | FORBID | FORBID | FORBID   | UNAUTH    | FORBID | FORBID | FORBID | FORBID
updateOrganizationIntegration                 | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
refreshOrganizationIntegration                | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
disableOrganizationIntegration                | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
deleteOrganizationIntegration                 | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
createUserIntegration                         | yes    | yes    | yes    | yes    | yes     | yes    | yes    | yes      | UNAUTH    | yes    | FORBID | FORBID | FORBID
updateUserIntegration of the member           | NOTFND | NOTFND | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | NOTFND | NOTFND
refreshUserIntegration of the member          | NOTFND | NOTFND | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | NOTFND | NOTFND
disableUserIntegration of the member          | NOTFND | NOTFND | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | NOTFND | NOTFND
deleteUserIntegration of the member           | NOTFND | NOTFND | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | NOTFND | NOTFND
createCustomReport                            | yes    | yes    | FORBID | FORBID | FORBID  | FORBID | FORBID | FORBID   | UNAUTH    | FORBID | FORBID | FORBID | FORBID
updateCustomReport of the organization        | yes    | yes    | FORBID | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
deleteCustomReport of the organization        | yes    | yes    | FORBID | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
updateCustomReport, private                   | yes    | NOTFND | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
deleteCustomReport, private                   | yes    | NOTFND | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
createCustomExport                            | yes    | yes    | FORBID | FORBID | FORBID  | FORBID | FORBID | FORBID   | UNAUTH    | FORBID | FORBID | FORBID | FORBID
updateCustomExport                            | yes    | yes    | FORBID | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
deleteCustomExport                            | yes    | yes    | FORBID | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
runCustomExport                               | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
exportFloorPlans                              | yes    | yes    | yes    | FORBID | FORBID  | FORBID | FORBID | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
exportPlans                                   | yes    | yes    | yes    | FORBID | FORBID  | FORBID | FORBID | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
cancelExport of the member                    | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
cancelExport of the admin                     | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
suggestLeadEmail, unassigned                  | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
suggestLeadEmail, the seller's                | yes    | yes    | yes    | yes    | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
suggestLeadEmail, the member's, private       | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
suggestLeadEmail, another's, private          | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
suggestLeadEmail, the buyer's                 | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
acceptGeneration, the seller's                | yes    | yes    | yes    | yes    | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
acceptGeneration, another's, private          | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
acceptGeneration, the buyer's                 | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
discardGeneration, the seller's               | yes    | yes    | yes    | yes    | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
discardGeneration, another's, private         | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
`).rows;

/** Each record by its id. */
const records = readMatrix(`
                                         | owner | admin | member | seller | builder | buyer | other | outsider | anonymous | former | scoped | reader | abroad
OrganizationPaymentsRepresentative       | yes   | yes   | null   | null   | null    | null  | null  | null     | null      | null   | null   | yes    | null
ProcessorCard PaymentIntent              | null  | null  | null   | null   | null    | yes   | null  | null     | null      | null   | null   | null   | null
ProcessorCard:other PaymentIntent:other  | null  | null  | null   | null   | null    | null  | yes   | null     | null      | null   | null   | null   | null
ProcessorCard:former PaymentIntent:former | null | null  | null   | null   | null    | null  | null  | null     | null      | yes    | null   | null   | null
ProcessorCharge ProcessorRefund          | yes   | yes   | null   | null   | null    | yes   | null  | null     | null      | null   | null   | yes    | null
ProcessorCharge:other                    | yes   | yes   | null   | null   | null    | null  | yes   | null     | null      | null   | null   | yes    | null
ProcessorCharge:former                   | yes   | yes   | null   | null   | null    | null  | null  | null     | null      | yes    | null   | yes    | null
OrganizationIntegration                  | yes   | yes   | null   | null   | null    | null  | null  | null     | null      | null   | null   | yes    | null
UserIntegration                          | null  | null  | yes    | null   | null    | null  | null  | null     | null      | null   | null   | null   | null
UserIntegration:former                   | null  | null  | null   | null   | null    | null  | null  | null     | null      | yes    | null   | null   | null
IntegrationApp:crm_sync IntegrationApp:calendar_feed | yes | yes | yes | yes | yes   | yes   | yes   | yes      | null      | yes    | yes    | yes    | yes
CustomReport:organization CustomReport:project | yes | yes | yes  | null   | null    | null  | null  | null     | null      | null   | null   | yes    | null
CustomReport:private                     | yes   | null  | null   | null   | null    | null  | null  | null     | null      | null   | null   | yes    | null
CustomReport:former                      | null  | null  | null   | null   | null    | null  | null  | null     | null      | null   | null   | null   | null
CustomExport                             | yes   | yes   | yes    | null   | null    | null  | null  | null     | null      | null   | null   | yes    | null
Export:member                            | yes   | yes   | yes    | null   | null    | null  | null  | null     | null      | null   | null   | yes    | null
Export:owner Export:admin Export:former  | yes   | yes   | null   | null   | null    | null  | null  | null     | null      | null   | null   | yes    | null
ServiceIntelligenceGeneration:unassigned | yes   | yes   | yes    | null   | null    | null  | null  | null     | null      | null   | yes    | yes    | null
ServiceIntelligenceGeneration:former     | yes   | yes   | yes    | null   | null    | null  | null  | null     | null      | null   | yes    | yes    | null
ServiceIntelligenceGeneration:sellers    | yes   | yes   | yes    | yes    | null    | null  | null  | null     | null      | null   | yes    | yes    | null
ServiceIntelligenceGeneration:members    | yes   | yes   | yes    | null   | null    | null  | null  | null     | null      | null   | yes    | yes    | null
ServiceIntelligenceGeneration:anothers   | yes   | yes   | null   | null   | null    | null  | null  | null     | null      | null   | yes    | yes    | null
ServiceIntelligenceGeneration:buyers     | yes   | yes   | yes    | null   | null    | null  | null  | null     | null      | null   | yes    | yes    | null
`).rows;

/** Fields that not everybody has who sees the record; each other field is the same for all of them. */
const fields = readMatrix(`
                                         | owner | admin | member | seller | builder | buyer | other | outsider | anonymous | former | scoped | reader | abroad
`).rows;

/** Lists, and members of records of other areas. */
const reads = readMatrix(`
                                         | owner | admin | member | seller | builder | buyer  | other  | outsider | anonymous | former | scoped | reader | abroad
processorCharges                         | 3     | 3     | none   | none   | none    | 1      | 1      | none     | none      | 1      | none   | 3      | none
processorChargesConnection               | 3     | 3     | none   | none   | none    | 1      | 1      | none     | none      | 1      | none   | 3      | none
organizationIntegrationApps              | 2     | 2     | 2      | 2      | 2       | 2      | 2      | 2        | none      | 2      | 2      | 2      | 2
userIntegrationApps                      | 3     | 3     | 3      | 3      | 3       | 3      | 3      | 3        | none      | 3      | 3      | 3      | 3
search, an unassigned lead               | 1     | 1     | 1      | none   | none    | none   | none   | none     | none      | none   | 1      | 1      | none
search, the seller's lead                | 1     | 1     | 1      | 1      | none    | none   | none   | none     | none      | none   | 1      | 1      | none
search, another's lead, private          | 1     | 1     | none   | none   | none    | none   | none   | none     | none      | none   | 1      | 1      | none
search, a foreign lead                   | none  | none  | none   | none   | none    | none   | none   | 1        | none      | none   | none   | none   | none
search, the other's purchase             | 1     | 1     | 1      | none   | none    | none   | 1      | none     | none      | none   | none   | 1      | none
search, a public project                 | 1     | 1     | 1      | 1      | 1       | 1      | 1      | 1        | 1         | 1      | 1      | 1      | 1
search, the project                      | 1     | 1     | 1      | 1      | 1       | 1      | 1      | none     | none      | none   | 1      | 1      | none
Organization.paymentsStatus              | yes   | yes   | null   | null   | null    | null   | null   | null     | null      | null   | null   | yes    | null
Organization.paymentsRequirements        | none  | none  | null   | null   | null    | null   | null   | null     | null      | null   | null   | none   | null
Organization.paymentsRepresentatives     | 1     | 1     | null   | null   | null    | null   | null   | null     | null      | null   | null   | 1      | null
Organization.integrations                | 1     | 1     | null   | null   | null    | null   | null   | null     | null      | null   | null   | 1      | null
Organization.customReports               | 3     | 2     | 2      | null   | null    | null   | null   | null     | null      | null   | none   | 3      | null
Organization.customExports               | 1     | 1     | 1      | null   | null    | null   | null   | null     | null      | null   | none   | 1      | null
Organization.exports                     | 4     | 4     | 1      | null   | null    | null   | null   | null     | null      | null   | none   | 4      | null
Project.charges                          | 1     | 1     | null   | null   | null    | null   | null   | hidden   | hidden    | hidden | null   | 1      | hidden
Buyer.charges                            | 1     | 1     | none   | hidden | hidden  | 1      | hidden | hidden   | hidden    | hidden | hidden | 1      | hidden
Reservation.charges                      | none  | none  | none   | hidden | hidden  | none   | hidden | hidden   | hidden    | hidden | hidden | none   | hidden
Deposit.charge                           | yes   | yes   | null   | hidden | hidden  | yes    | hidden | hidden   | hidden    | hidden | hidden | yes    | hidden
Lead.generations                         | 1     | 1     | 1      | 1      | hidden  | hidden | hidden | hidden   | hidden    | hidden | 1      | 1      | hidden
User.cards of the buyer                  | none  | none  | none   | hidden | hidden  | 1      | hidden | hidden   | hidden    | hidden | hidden | none   | hidden
User.integrations of the member          | none  | none  | 1      | hidden | hidden  | hidden | hidden | hidden   | hidden    | hidden | none   | none   | hidden
`).rows;

const short = { FORBIDDEN: "FORBID", UNAUTHENTICATED: "UNAUTH", NOT_FOUND: "NOTFND" };
let world: OutsideWorld;
let schema: GraphQLSchema;

beforeAll(async () => {
  world = await startOutsideWorld();
  schema = buildClientSchema(await world.owen.get(getIntrospectionQuery()));
}, 60_000);
afterAll(() => world?.stop());

/** A row per word of its name. */
const perWord = (rows: Row[]): Row[] =>
  rows.flatMap(({ operation, expected }) =>
    operation.split(/\s+/).map((word) => ({ operation: word, expected })),
  );
/** Rows by name, so that a difference shows the row. */
const byName = (rows: Row[]) =>
  Object.fromEntries(
    rows.map(({ operation, expected }) => [
      operation,
      Object.keys(world.people)
        .filter((name) => expected[name] !== undefined)
        .map((name) => `${name}: ${expected[name]}`)
        .join(" | "),
    ]),
  );

describe("what is seen", () => {
  test("records by id", async () => {
    const found: Row[] = [];
    for (const [operation, { finder, id }] of Object.entries(world.records))
      found.push({ operation, expected: await outcomes(world.people, look(finder, id)) });
    expect(byName(found)).toEqual(byName(perWord(records)));
  });

  test("fields", async () => {
    const rows = new Map(perWord(fields).map((row) => [row.operation, row.expected]));
    const met = new Set<string>();
    const [found, wanted]: [Row[], Row[]] = [[], []];
    for (const [label, { finder, type, id, by }] of Object.entries(world.records)) {
      const whole = await everyField(schema, by, finder, type, id);
      // A report of somebody who left is seen by nobody.
      if (!whole) continue;
      const [is, should]: [Map<string, Row>, Map<string, Row>] = [new Map(), new Map()];
      const of = (rowsOf: Map<string, Row>, field: string) => {
        if (!rowsOf.has(field)) rowsOf.set(field, { operation: `${label}.${field}`, expected: {} });
        return rowsOf.get(field)!.expected;
      };
      for (const [name, person] of Object.entries(world.people)) {
        const record = await everyField(schema, person, finder, type, id);
        // Who sees the record is another table.
        if (!record) continue;
        for (const [field, value] of Object.entries(whole)) {
          const row = [`${label}.${field}`, `${type}*.${field}`, `*.${field}`].find((key) => rows.has(key));
          of(is, field)[name] = shown(record[field], value);
          of(should, field)[name] = row && value !== null ? rows.get(row)![name]! : shown(value, value);
          if (row && value !== null) met.add(row);
        }
      }
      found.push(...is.values());
      wanted.push(...should.values());
    }
    if (process.env.DEBUG_FIELDS) {
      const [x, y] = [byName(found), byName(wanted)];
      const { writeFileSync } = await import("node:fs");
      writeFileSync(
        "/tmp/fields.txt",
        Object.keys(x)
          .filter((k) => x[k] !== y[k])
          .map((k) => `${k}\n   is ${x[k]}\n   sh ${y[k]}`)
          .join("\n"),
      );
    }
    expect(byName(found)).toEqual(byName(wanted));
    expect([...rows.keys()].filter((name) => !met.has(name))).toEqual([]);
  });

  test("lists, and members of other records", async () => {
    const { harbour, project, purchase, deposit, reservation, leads, bea, max } = world;
    const found = (query: string) =>
      ask(`query ($query: String!) { search(query: $query) { id } }`, { query });
    const tried: Record<string, Operation> = {
      processorCharges: ask("{ processorCharges { id } }"),
      processorChargesConnection:
        ask(`{ processorChargesConnection { totalCount nodes { id } aggregates { distinctCount { id } }
        groupedAggregates(groupBy: [STATUS]) { distinctCount { id } } } }`),
      organizationIntegrationApps: ask("{ organizationIntegrationApps { id } }"),
      userIntegrationApps: ask("{ userIntegrationApps { id } }"),
      "search, an unassigned lead": found("Open Ollie"),
      "search, the seller's lead": found("Sams Sally"),
      "search, another's lead, private": found("Mias Manny"),
      "search, a foreign lead": found("Foreign Fay"),
      "search, the other's purchase": found("Ben Buyer"),
      "search, a public project": found("Public Park"),
      "search, the project": found("Harbour View"),
      "Project.charges": look("project", project.id, "charges { id }"),
      "Buyer.charges": look("buyer", purchase, "charges { id }"),
      "Reservation.charges": look("reservation", reservation, "charges { id }"),
      "Deposit.charge": look("deposit", deposit, "charge { id }"),
      "Lead.generations": look("lead", leads.sams.id, "generations { id }"),
      "User.cards of the buyer": look("user", bea.id!, "cards { id }"),
      "User.integrations of the member": look("user", max.id!, "integrations { id }"),
    };
    for (const member of ["paymentsStatus", "paymentsRequirements"])
      tried[`Organization.${member}`] = look("organization", harbour.id, member);
    for (const list of [
      "paymentsRepresentatives",
      "integrations",
      "customReports",
      "customExports",
      "exports",
    ])
      tried[`Organization.${list}`] = look("organization", harbour.id, `${list} { id }`);
    const result: Row[] = [];
    for (const [operation, attempt] of Object.entries(tried))
      result.push({ operation, expected: await outcomes(world.people, attempt) });
    expect(byName(result)).toEqual(byName(reads));
  });
});

describe("what is done", () => {
  let ofArea: string[];
  let inputs: Record<string, (person: Person) => Promise<unknown> | unknown>;
  let serial = 0;
  const name = () => `Name ${++serial}`;

  beforeAll(async () => {
    const { harbour, project, deposit, reservation, owen, ada, max, bea, leads, leadOfBuyer } = world;
    const { rows } = await world.owner.query<{ schema: string; name: string }>(
      "select schemaname as schema, tablename as name from pg_tables where schemaname like 'app\\_%'",
    );
    ofArea = [
      ...rows.filter(({ name }) => tables.test(name)).map(({ schema, name }) => `${schema}.${name}`),
      "app_public.events",
      "app_public.deposits",
    ];
    const create = createIn(owen);
    const custom = { organizationId: harbour.id, name: "New", subject: "LEADS" };
    const another = async () =>
      (
        await world.owner.query(
          `insert into app_public.organization_payments_representatives (organization_id, kind, first_name, last_name, email)
           values ($1, 'DIRECTOR', 'Dora', 'Director', 'dora' || random() || '@harbour.example') returning id`,
          [harbour.id],
        )
      ).rows[0].id as string;
    const exportOf = async (person: Person) =>
      (await person.get(mutationOf("runCustomExport"), { input: { id: world.records.CustomExport!.id } }))
        .runCustomExport.id;
    const draft = async (leadId: string) =>
      (await owen.get(mutationOf("suggestLeadEmail"), { input: { leadId } })).suggestLeadEmail.id;
    const card = { cardId: world.records.ProcessorCard!.id };
    const dollar = { amount: "1.00" };
    inputs = {
      createProcessorCard: () => ({ token: "tok_visa" }),
      "updateProcessorCard of the buyer": () => ({ id: card.cardId, holderName: name() }),
      "removeProcessorCard of the buyer": async () => ({
        id: await create("createProcessorCard", { token: "tok_visa" }, bea),
      }),
      "createPaymentIntent for the deposit": () => ({ depositId: deposit, ...dollar }),
      "createPaymentIntent for the reservation": () => ({ reservationId: reservation, ...dollar }),
      "createPaymentIntent for the organization": () => ({
        organizationId: harbour.id,
        currency: "CAD",
        ...dollar,
      }),
      "createPaymentIntent with the buyer's card": () => ({ depositId: deposit, ...card, ...dollar }),
      "createProcessorCharge with the buyer's card": () => ({ depositId: deposit, ...card, ...dollar }),
      "refundProcessorCharge of the buyer": () => ({
        chargeId: world.records.ProcessorCharge!.id,
        ...dollar,
      }),
      "refundProcessorCharge of the former": () => ({
        chargeId: world.records["ProcessorCharge:former"]!.id,
        ...dollar,
      }),
      createOrganizationPaymentsRepresentative: () => ({
        organizationId: harbour.id,
        ...representative,
        kind: "DIRECTOR",
        email: `director${++serial}@harbour.example`,
      }),
      updateOrganizationPaymentsRepresentative: async () => ({ id: await another(), title: name() }),
      removeOrganizationPaymentsRepresentative: async () => ({ id: await another() }),
      createOrganizationIntegration: () => world.sync(),
      updateOrganizationIntegration: () => ({ id: world.records.OrganizationIntegration!.id, name: name() }),
      refreshOrganizationIntegration: () => ({ id: world.records.OrganizationIntegration!.id }),
      disableOrganizationIntegration: async () => ({
        id: await create("createOrganizationIntegration", world.sync()),
      }),
      deleteOrganizationIntegration: async () => ({
        id: await create("createOrganizationIntegration", world.sync()),
      }),
      createUserIntegration: () => ({ appKey: "calendar_feed" }),
      "updateUserIntegration of the member": () => ({ id: world.records.UserIntegration!.id, name: name() }),
      "refreshUserIntegration of the member": () => ({ id: world.records.UserIntegration!.id }),
      "disableUserIntegration of the member": async () => ({
        id: await create("createUserIntegration", { appKey: "calendar_feed" }, max),
      }),
      "deleteUserIntegration of the member": async () => ({
        id: await create("createUserIntegration", { appKey: "calendar_feed" }, max),
      }),
      createCustomReport: () => custom,
      "updateCustomReport of the organization": () => ({
        id: world.records["CustomReport:organization"]!.id,
        name: name(),
      }),
      "deleteCustomReport of the organization": async () => ({
        id: await create("createCustomReport", { ...custom, visibility: "ORGANIZATION" }),
      }),
      "updateCustomReport, private": () => ({ id: world.records["CustomReport:private"]!.id, name: name() }),
      "deleteCustomReport, private": async () => ({ id: await create("createCustomReport", custom) }),
      createCustomExport: () => ({ ...custom, format: "CSV" }),
      updateCustomExport: () => ({ id: world.records.CustomExport!.id, name: name() }),
      deleteCustomExport: async () => ({
        id: await create("createCustomExport", { ...custom, format: "CSV" }),
      }),
      runCustomExport: () => ({ id: world.records.CustomExport!.id }),
      exportFloorPlans: () => ({ projectId: project.id }),
      exportPlans: () => ({ projectId: project.id }),
      "cancelExport of the member": async () => ({ id: await exportOf(max) }),
      "cancelExport of the admin": async () => ({ id: await exportOf(ada) }),
      "acceptGeneration, the seller's": async () => ({ id: await draft(leads.sams.id) }),
      "acceptGeneration, another's, private": async () => ({ id: await draft(leads.mias.id) }),
      "acceptGeneration, the buyer's": async () => ({ id: await draft(leadOfBuyer) }),
      "discardGeneration, the seller's": async () => ({ id: await draft(leads.sams.id) }),
      "discardGeneration, another's, private": async () => ({ id: await draft(leads.mias.id) }),
    };
    for (const [whose, leadId] of Object.entries({
      unassigned: leads.open.id,
      "the seller's": leads.sams.id,
      "the member's, private": leads.maxs.id,
      "another's, private": leads.mias.id,
      "the buyer's": leadOfBuyer,
    }))
      inputs[`suggestLeadEmail, ${whose}`] = () => ({ leadId });
  });

  /** What was asked of the processor, and of the address of the integration. */
  const asked = () =>
    [...world.calls.values()].reduce((sum, count) => sum + count, world.receiver.messages.length);

  test.each(operations)("$operation", async ({ operation, expected }) => {
    // Neither are there too many tries, nor do too many exports wait.
    await world.owner.query(`delete from app_private.rate_limits; begin; set local plat.service = 'on';
      update app_public.exports set status = 'CANCELLED' where status in ('PENDING', 'PROCESSING'); commit`);
    const document = mutationOf(/^\w+/.exec(operation)![0], "{ __typename }");
    const found: Record<string, string> = {};
    for (const [who, person] of Object.entries(world.people)) {
      const input = await inputs[operation]!(person);
      const before = [asked(), await digest(world, ofArea)];
      const answer = await person.ask(document, { input });
      if (answer.errors) {
        expect([who, asked(), await digest(world, ofArea)]).toEqual([who, ...before]);
        const { code, permission } = answer.errors[0]!.extensions;
        // A refusal says which permission would do, and nothing of how it is kept.
        expect(code === "FORBIDDEN" ? permission : "none.needed").toMatch(/^[a-z]+\.[a-z]+$/);
        expect(answer.errors[0]!.message).not.toMatch(/policy|app_(public|hidden|private)|permission denied/);
      }
      found[who] = outcome(answer, short);
      if (/export/i.test(operation))
        await world.owner.query(`begin; set local plat.service = 'on';
          update app_public.exports set status = 'CANCELLED' where status in ('PENDING', 'PROCESSING'); commit`);
    }
    expect(found).toEqual(expected);
  });
});

describe("figures", () => {
  const connections = () =>
    Object.values(schema.getQueryType()!.getFields())
      .filter((field) => field.name.endsWith("Connection"))
      .map((field) => ({
        name: field.name,
        connection: getNamedType(field.type) as GraphQLObjectType,
        isOfProject: field.args.some((arg) => arg.name === "projectId"),
      }));
  const leaves = (type: GraphQLObjectType) =>
    Object.values(type.getFields())
      .filter((field) => isLeafType(getNamedType(field.type)) && !isListType(getNullableType(field.type)))
      .map((field) => field.name);
  const typeOf = (type: GraphQLObjectType, field: string) => getNamedType(type.getFields()[field]!.type);

  test("of each connection are those of the records and values that each sees", async () => {
    const counts: Record<string, Record<string, number>> = {};
    for (const { name, connection } of connections()) {
      const node = typeOf(connection, "nodes") as GraphQLObjectType;
      const sees = new Set(leaves(node));
      const aggregates =
        connection.getFields().aggregates && (typeOf(connection, "aggregates") as GraphQLObjectType);
      if (!aggregates) continue;
      const kinds = ["sum", "min", "max", "distinctCount"].filter((kind) => aggregates.getFields()[kind]);
      const members = (kind: string) =>
        leaves(typeOf(aggregates, kind) as GraphQLObjectType).filter((member) => sees.has(member));
      const grouping = connection
        .getFields()
        .groupedAggregates!.args.find((arg) => arg.name === "groupBy")!.type;
      const groups = (getNamedType(grouping) as GraphQLEnumType).getValues().map((value) => value.name);
      const all = [...new Set(kinds.flatMap(members))];
      for (const [who, person] of Object.entries(world.people)) {
        const { list } =
          await person.get(`{ list: ${name}(first: 1000) { totalCount nodes { id ${all.join(" ")} }
          aggregates { ${kinds.map((kind) => `${kind} { ${members(kind).join(" ")} }`).join(" ")} } } }`);
        (counts[name] ??= {})[who] = list.totalCount;
        const values = (member: string) =>
          list.nodes.map((row: any) => row[member]).filter((value: unknown) => value !== null);
        for (const kind of kinds)
          for (const member of members(kind))
            expect([name, who, kind, member, figure(list.aggregates[kind][member])]).toEqual([
              name,
              who,
              kind,
              member,
              figureOf(kind, values(member)),
            ]);
        for (let from = 0; from < groups.length; from += 25) {
          const some = groups.slice(from, from + 25);
          const answer = await person.get(
            `{ list: ${name} { ${some
              .map(
                (group) => `${group}: groupedAggregates(groupBy: [${group}]) { keys distinctCount { id } }`,
              )
              .join(" ")} } }`,
          );
          for (const group of some) {
            const sum = answer.list[group].reduce(
              (total: number, row: any) => total + Number(row.distinctCount.id),
              0,
            );
            expect([name, who, group, sum]).toEqual([name, who, group, list.totalCount]);
          }
        }
      }
    }
    expect(counts).toEqual({});
  });

  const figure = (value: unknown) => (value === null || Number.isNaN(Number(value)) ? value : Number(value));
  const figureOf = (kind: string, values: any[]) => {
    const numbers = values.map(Number);
    if (kind === "distinctCount") return new Set(values.map((value) => JSON.stringify(value))).size;
    if (kind === "sum") return Math.round(numbers.reduce((sum, value) => sum + value, 0) * 100) / 100;
    if (values.length === 0) return null;
    if (numbers.some(Number.isNaN)) return values.toSorted().at(kind === "min" ? 0 : -1);
    return kind === "min" ? Math.min(...numbers) : Math.max(...numbers);
  };
});
