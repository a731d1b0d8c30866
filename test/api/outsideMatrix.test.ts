/**
 * Permissions for payments, integrations, search, reports, exports and drafts, and the values that each
 * viewer gets. The tables are the specification:
 *
 *   yes            the operation succeeds, or the record or value is visible
 *   3 · none       number of listed records · an empty list; "some" for events, whose number grows
 *   null           null without an error
 *   less           a value other than that of its author or the owner, such as only own rows or cards
 *   hidden         the record itself is not visible
 *   a code         refused with that code, without a trace: FORBID is FORBIDDEN, NOTFND is NOT_FOUND, UNAUTH is UNAUTHENTICATED
 *
 * owner, admin and member are of Harbour Homes, the former was an admin of it; the seller and the builder are members of
 * organizations affiliated with its project Harbour View; the buyer and the other buyer have purchases there; the outsider owns
 * Summit Sales. Access tokens of the owner: scoped is for leads and projects, reader is read-only, abroad is of the owner's other
 * organization. Leads of another member are in Quiet Quay, whose lead mode is PRIVATE.
 */
import { request } from "node:https";
import type { ClientBase } from "pg";
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
import { ask, readById, type Operation, outcome, outcomes, readMatrix, type Row } from "../harness/matrix.ts";
import { representative } from "../harness/payments.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { digest } from "../harness/expectUnchanged.ts";
import { startOutsideWorld, type OutsideWorld } from "./outsideMatrixWorld.ts";

/** Types of the area; every field that returns one must be in a table. */
const types =
  /^(Processor(Card|Charge|Refund)|PaymentIntent|OrganizationPaymentsRepresentative|IntegrationApp|(Organization|User)Integration|SearchResult|Custom(Report|Export)|Export|ServiceIntelligenceGeneration)$/;
/** Names of other operations and fields of the area. */
const area = /payment|processor|integration|^search$|export|customReport|generation|leadEmail$/i;
/** Tables of the area. */
const tables =
  /^(processor|payment|organization_payments|sandbox|integration|organization_integrations|user_integrations|oauth|report|custom_|export|service_intelligence|search)/;
/** Fields of other areas, with tests of their own. */
const elsewhere = [
  "AccessEnding.integrations", // accessEnding.test.ts
  "EscalationTicket.generation",
  "NotificationSettings.exportReady",
];

const operations = readMatrix(`
                                              | owner  | admin  | member | seller | builder | buyer  | other  | outsider | anonymous | former | scoped | reader | abroad
createProcessorCard                           | yes    | yes    | yes    | yes    | yes     | yes    | yes    | yes      | UNAUTH    | yes    | FORBID | FORBID | FORBID
updateProcessorCard of the buyer              | NOTFND | NOTFND | NOTFND | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
removeProcessorCard of the buyer              | NOTFND | NOTFND | NOTFND | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
removeProcessorCard, a guess                  | NOTFND | NOTFND | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
createPaymentIntent for the deposit           | yes    | yes    | FORBID | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
createPaymentIntent for the reservation       | yes    | yes    | FORBID | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
createPaymentIntent for the organization      | yes    | yes    | yes    | yes    | yes     | yes    | yes    | yes      | UNAUTH    | yes    | FORBID | FORBID | FORBID
createPaymentIntent with the buyer's card     | NOTFND | NOTFND | FORBID | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
createProcessorCharge with the buyer's card   | NOTFND | NOTFND | FORBID | NOTFND | NOTFND  | yes    | NOTFND | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | FORBID
refundProcessorCharge of the buyer            | yes    | yes    | NOTFND | NOTFND | NOTFND  | FORBID | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
refundProcessorCharge of the former           | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | FORBID | NOTFND | FORBID | NOTFND
updateProcessorCharge of the buyer            | yes    | yes    | NOTFND | NOTFND | NOTFND  | FORBID | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
createOrganizationPaymentsRepresentative      | yes    | yes    | FORBID | FORBID | FORBID  | FORBID | FORBID | FORBID   | UNAUTH    | FORBID | FORBID | FORBID | FORBID
updateOrganizationPaymentsRepresentative      | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
removeOrganizationPaymentsRepresentative      | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
createOrganizationIntegration                 | yes    | yes    | FORBID | FORBID | FORBID  | FORBID | FORBID | FORBID   | UNAUTH    | FORBID | FORBID | FORBID | FORBID
updateOrganizationIntegration                 | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
refreshOrganizationIntegration                | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
disableOrganizationIntegration                | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
deleteOrganizationIntegration                 | yes    | yes    | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
createUserIntegration                         | yes    | yes    | yes    | yes    | yes     | yes    | yes    | yes      | UNAUTH    | yes    | FORBID | FORBID | FORBID
updateUserIntegration of the member           | NOTFND | NOTFND | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
refreshUserIntegration of the member          | NOTFND | NOTFND | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
disableUserIntegration of the member          | NOTFND | NOTFND | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
deleteUserIntegration of the member           | NOTFND | NOTFND | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
createCustomReport                            | yes    | yes    | FORBID | FORBID | FORBID  | FORBID | FORBID | FORBID   | UNAUTH    | FORBID | FORBID | FORBID | FORBID
updateCustomReport of the organization        | yes    | yes    | FORBID | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
deleteCustomReport of the organization        | yes    | yes    | FORBID | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
updateCustomReport, private                   | yes    | NOTFND | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
deleteCustomReport, private                   | yes    | NOTFND | NOTFND | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
createCustomExport                            | yes    | yes    | FORBID | FORBID | FORBID  | FORBID | FORBID | FORBID   | UNAUTH    | FORBID | FORBID | FORBID | FORBID
updateCustomExport                            | yes    | yes    | FORBID | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
deleteCustomExport                            | yes    | yes    | FORBID | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
runCustomExport                               | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
exportCustomReport                            | yes    | yes    | yes    | NOTFND | NOTFND  | NOTFND | NOTFND | NOTFND   | UNAUTH    | NOTFND | NOTFND | FORBID | NOTFND
exportFloorPlans                              | yes    | yes    | yes    | FORBID | FORBID  | FORBID | FORBID | NOTFND   | UNAUTH    | NOTFND | FORBID | FORBID | NOTFND
exportOrganization                            | yes    | FORBID | FORBID | FORBID | FORBID  | FORBID | FORBID | FORBID   | UNAUTH    | FORBID | FORBID | FORBID | FORBID
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
OrganizationPaymentsRepresentative       | yes   | yes   | null   | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | null   | yes    | null
ProcessorCard PaymentIntent              | null  | null  | null   | null   | null    | yes   | null  | null     | UNAUTHENTICATED | null   | null   | null   | null
ProcessorCard:other PaymentIntent:other  | null  | null  | null   | null   | null    | null  | yes   | null     | UNAUTHENTICATED | null   | null   | null   | null
ProcessorCard:former PaymentIntent:former | null | null  | null   | null   | null    | null  | null  | null     | UNAUTHENTICATED | yes    | null   | null   | null
ProcessorCharge ProcessorRefund          | yes   | yes   | null   | null   | null    | yes   | null  | null     | UNAUTHENTICATED | null   | null   | yes    | null
ProcessorCharge:other                    | yes   | yes   | null   | null   | null    | null  | yes   | null     | UNAUTHENTICATED | null   | null   | yes    | null
ProcessorCharge:former                   | yes   | yes   | null   | null   | null    | null  | null  | null     | UNAUTHENTICATED | yes    | null   | yes    | null
OrganizationIntegration                  | yes   | yes   | null   | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | null   | yes    | null
UserIntegration                          | null  | null  | yes    | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | null   | null   | null
UserIntegration:former                   | null  | null  | null   | null   | null    | null  | null  | null     | UNAUTHENTICATED | yes    | null   | null   | null
IntegrationApp:crm_sync IntegrationApp:calendar_feed | yes | yes | yes | yes | yes   | yes   | yes   | yes      | UNAUTHENTICATED | yes    | yes    | yes    | yes
CustomReport:organization CustomReport:project | yes | yes | yes  | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | null   | yes    | null
CustomReport:private                     | yes   | null  | null   | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | null   | yes    | null
CustomReport:former                      | null  | null  | null   | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | null   | null   | null
CustomExport                             | yes   | yes   | yes    | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | null   | yes    | null
Export:member                            | yes   | yes   | yes    | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | null   | yes    | null
Export:owner Export:admin Export:former  | yes   | yes   | null   | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | null   | yes    | null
ServiceIntelligenceGeneration:unassigned | yes   | yes   | yes    | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | yes    | yes    | null
ServiceIntelligenceGeneration:former     | yes   | yes   | yes    | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | yes    | yes    | null
ServiceIntelligenceGeneration:sellers    | yes   | yes   | yes    | yes    | null    | null  | null  | null     | UNAUTHENTICATED | null   | yes    | yes    | null
ServiceIntelligenceGeneration:members    | yes   | yes   | yes    | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | yes    | yes    | null
ServiceIntelligenceGeneration:anothers   | yes   | yes   | null   | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | yes    | yes    | null
ServiceIntelligenceGeneration:buyers     | yes   | yes   | yes    | null   | null    | null  | null  | null     | UNAUTHENTICATED | null   | yes    | yes    | null
`).rows;

/** Fields that are not visible to everybody who sees the record; each other field is. */
const fields = readMatrix(`
                                         | owner | admin | member | seller | builder | buyer | other | outsider | anonymous | former | scoped | reader | abroad
ProcessorCharge*.fee ProcessorCharge*.net ProcessorCharge*.metadata | yes | yes | – | – | – | null  | null  | –       | –         | null   | –      | yes    | –
ProcessorCharge*.events                  | some  | some  | –      | –      | –       | none  | none  | –        | –         | none   | –      | some   | –
ProcessorCharge*.card                    | null  | null  | –      | –      | –       | less  | less  | –        | –         | less   | –      | null   | –
ProcessorCharge:former.user              | null  | null  | –      | –      | –       | –     | –     | –        | –         | less   | –      | null   | –
ProcessorRefund.note ProcessorRefund.createdBy | yes | yes | –  | –      | –       | null  | –     | –        | –         | –      | –      | yes    | –
IntegrationApp:crm_sync.installed        | yes   | yes   | less   | less   | less    | less  | less  | less     | –         | less   | less   | yes    | less
IntegrationApp:calendar_feed.installed   | yes   | yes   | less   | yes    | yes     | yes   | yes   | yes      | –         | less   | yes    | yes    | yes
CustomReport:organization.rows           | yes   | yes   | less   | –      | –       | –     | –     | –        | –         | –      | –      | yes    | –
CustomExport.exports                     | 4     | 4     | 1      | –      | –       | –     | –     | –        | –         | –      | –      | 4      | –
Export:owner.url                         | yes   | null  | –      | –      | –       | –     | –     | –        | –         | –      | –      | yes    | –
Export:admin.url                         | null  | yes   | –      | –      | –       | –     | –     | –        | –         | –      | –      | null   | –
Export:member.url                        | null  | null  | yes    | –      | –       | –     | –     | –        | –         | –      | –      | null   | –
ServiceIntelligenceGeneration:sellers.requestedBy | yes | yes | yes | yes | –   | –     | –     | –        | –         | –      | yes   | yes   | –
`).rows;

/** Lists, and fields of records of other areas. */
const reads = readMatrix(`
                                         | owner | admin | member | seller | builder | buyer  | other  | outsider | anonymous | former | scoped | reader | abroad
processorCharges                         | 3     | 3     | none   | none   | none    | 1      | 1      | none     | UNAUTHENTICATED | 1      | none   | 3      | none
processorChargesConnection               | 3     | 3     | none   | none   | none    | 1      | 1      | none     | UNAUTHENTICATED | 1      | none   | 3      | none
organizationIntegrationApps              | 3     | 3     | 3      | 3      | 3       | 3      | 3      | 3        | UNAUTHENTICATED | 3      | 3      | 3      | 3
userIntegrationApps                      | 3     | 3     | 3      | 3      | 3       | 3      | 3      | 3        | UNAUTHENTICATED | 3      | 3      | 3      | 3
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
Buyer.charges                            | 1     | 1     | none   | hidden | hidden  | 1      | hidden | hidden   | UNAUTHENTICATED | hidden | hidden | 1      | hidden
Reservation.charges                      | none  | none  | none   | hidden | hidden  | none   | hidden | hidden   | UNAUTHENTICATED | hidden | hidden | none   | hidden
Deposit.charge                           | yes   | yes   | null   | hidden | hidden  | yes    | hidden | hidden   | UNAUTHENTICATED | hidden | hidden | yes    | hidden
Lead.generations                         | 1     | 1     | 1      | 1      | hidden  | hidden | hidden | hidden   | UNAUTHENTICATED | hidden | 1      | 1      | hidden
User.cards of the buyer                  | none  | none  | none   | hidden | hidden  | 1      | hidden | hidden   | UNAUTHENTICATED | hidden | hidden | none   | hidden
User.integrations of the member          | none  | none  | 1      | hidden | hidden  | hidden | hidden | hidden   | UNAUTHENTICATED | hidden | none   | none   | hidden
`).rows;

/**
 * The outcome, after all operations, for a role without the permission: a deleted row of
 * app_private.role_permissions.
 */
const takenAway = readMatrix(`
                                                | admin finance.read  | admin finance.write | admin org.billing | admin org.admin | admin report.manage | member report.read | member report.run | member lead.read | member lead.write
ProcessorCharge                                 | null                | yes                 | yes               | yes             | yes                 | –                  | –                 | –                | –
processorCharges                                | none                | 5                   | 5                 | 5               | 5                   | –                  | –                 | –                | –
Project.charges                                 | null                | 3                   | 3                 | 3               | 3                   | –                  | –                 | –                | –
Deposit.charge                                  | null                | yes                 | yes               | yes             | yes                 | –                  | –                 | –                | –
refundProcessorCharge of the buyer              | NOTFND              | FORBID              | yes               | yes             | yes                 | –                  | –                 | –                | –
updateProcessorCharge of the buyer              | NOTFND              | FORBID              | yes               | yes             | yes                 | –                  | –                 | –                | –
createPaymentIntent for the deposit             | –                   | FORBID              | –                 | –               | –                   | –                  | –                 | –                | –
OrganizationPaymentsRepresentative              | yes                 | yes                 | null              | yes             | yes                 | –                  | –                 | –                | –
Organization.paymentsStatus                     | yes                 | yes                 | null              | yes             | yes                 | –                  | –                 | –                | –
createOrganizationPaymentsRepresentative        | yes                 | yes                 | FORBID            | yes             | yes                 | –                  | –                 | –                | –
updateOrganizationPaymentsRepresentative        | yes                 | yes                 | NOTFND            | yes             | yes                 | –                  | –                 | –                | –
OrganizationIntegration                         | yes                 | yes                 | yes               | null            | yes                 | –                  | –                 | –                | –
Organization.integrations                       | 1                   | 1                   | 1                 | null            | 1                   | –                  | –                 | –                | –
createOrganizationIntegration                   | yes                 | yes                 | yes               | FORBID          | yes                 | –                  | –                 | –                | –
refreshOrganizationIntegration                  | yes                 | yes                 | yes               | NOTFND          | yes                 | –                  | –                 | –                | –
createCustomReport                              | yes                 | yes                 | yes               | yes             | FORBID              | –                  | –                 | –                | –
updateCustomExport                              | yes                 | yes                 | yes               | yes             | FORBID              | –                  | –                 | –                | –
Export:owner                                    | yes                 | yes                 | yes               | yes             | null                | –                  | –                 | –                | –
cancelExport of the member                      | yes                 | yes                 | yes               | yes             | NOTFND              | yes                | NOTFND            | yes              | yes
CustomReport:organization                       | –                   | –                   | –                 | –               | yes                 | null               | yes               | yes              | yes
CustomExport                                    | –                   | –                   | –                 | –               | yes                 | null               | yes               | yes              | yes
runCustomExport                                 | –                   | –                   | –                 | –               | yes                 | NOTFND             | FORBID            | FORBID           | yes
exportFloorPlans                                | –                   | –                   | –                 | –               | yes                 | yes                | FORBID            | yes              | yes
Export:member                                   | –                   | –                   | –                 | –               | null                | yes                | null              | yes              | yes
search, an unassigned lead                      | –                   | –                   | –                 | –               | –                   | 1                  | 1                 | none             | 1
ServiceIntelligenceGeneration:unassigned        | –                   | –                   | –                 | –               | –                   | yes                | yes               | null             | yes
suggestLeadEmail, unassigned                    | –                   | –                   | –                 | –               | –                   | yes                | yes               | NOTFND           | FORBID
acceptGeneration, the seller's                  | –                   | –                   | –                 | –               | –                   | yes                | yes               | NOTFND           | FORBID
`);

/**
 * The count of each connection that is not empty for everybody, "many" for more than 50; aggregates refer to
 * these.
 */
const feeds = readMatrix(`
                                         | owner | admin | member | seller | builder | buyer | other | outsider | anonymous | former | scoped | reader | abroad
leadsConnection                          | 5     | 5     | 4      | 1      | none    | none  | none  | 1        | UNAUTHENTICATED | none   | 5      | 5      | none
buyersConnection                         | 3     | 3     | 3      | none   | none    | 2     | 1     | none     | UNAUTHENTICATED | none   | none   | 3      | none
reservationsConnection                   | 1     | 1     | 1      | none   | none    | 1     | none  | none     | UNAUTHENTICATED | none   | none   | 1      | none
unitHoldsConnection                      | 1     | 1     | 1      | none   | none    | none  | none  | none     | UNAUTHENTICATED | none   | none   | 1      | none
tasksConnection                          | none  | none  | none   | none   | none    | none  | none  | none     | UNAUTHENTICATED | none   | none   | none   | none
offersConnection                         | none  | none  | none   | none   | none    | none  | none  | none     | UNAUTHENTICATED | none   | none   | none   | none
organizationDeletionsConnection          | none  | none  | none   | none   | none    | none  | none  | none     | UNAUTHENTICATED | none   | none   | none   | none
appointmentsConnection                   | none  | none  | none   | none   | none    | none  | none  | none     | UNAUTHENTICATED | none   | none   | none   | none
projectsConnection                       | 3     | 3     | 3      | 1      | 1       | none  | none  | 1        | UNAUTHENTICATED | none   | 3      | 3      | none
unitsConnection                          | 1     | 1     | 1      | 1      | 1       | none  | none  | none     | none      | none   | 1      | 1      | none
eventsConnection                         | many  | many  | many   | 2      | 2       | none  | none  | 17       | UNAUTHENTICATED | none   | many   | many   | 3
erasuresConnection                       | none  | none  | none   | none   | none    | none  | none  | none     | UNAUTHENTICATED | none   | none   | none   | none
processorChargesConnection               | 3     | 3     | none   | none   | none    | 1     | 1     | none     | UNAUTHENTICATED | 1      | none   | 3      | none
`).rows;

/**
 * The number of rows of each table that a person can read or change in SQL with the role of the API.
 * Everything else is refused to everybody, for these tables and all others of the area.
 */
const inSql = readMatrix(`
                                                   | owner | admin | member  | seller  | builder | buyer   | other   | outsider | anonymous | former
app_public.processor_cards:select                  | none  | none  | none    | none    | none    | 1       | 1       | none     | none      | 1
app_public.payment_intents:select                  | none  | none  | none    | none    | none    | 1       | 1       | none     | none      | 1
app_public.processor_charges:select                | 3     | 3     | none    | none    | none    | 1       | 1       | none     | none      | 1
app_public.processor_charges:update                | 3     | 3     | none    | none    | none    | none    | none    | none     | refused   | none
app_public.processor_refunds:select                | 1     | 1     | none    | none    | none    | 1       | none    | none     | none      | none
app_public.organization_payments_representatives:select | 1 | 1    | none    | none    | none    | none    | none    | none     | none      | none
app_public.integration_apps:select                 | 6     | 6     | 6       | 6       | 6       | 6       | 6       | 6        | none      | 6
app_public.organization_integrations:select        | 1     | 1     | none    | none    | none    | none    | none    | none     | none      | none
app_public.user_integrations:select                | none  | none  | 1       | none    | none    | none    | none    | none     | none      | 1
app_public.custom_reports:select                   | 3     | 2     | 2       | none    | none    | none    | none    | none     | none      | none
app_public.custom_reports:insert                   | 1     | 1     | refused | refused | refused | refused | refused | refused  | refused   | refused
app_public.custom_reports:update                   | 3     | 2     | none    | none    | none    | none    | none    | none     | refused   | none
app_public.custom_reports:delete                   | 3     | 2     | none    | none    | none    | none    | none    | none     | refused   | none
app_public.custom_exports:select                   | 1     | 1     | 1       | none    | none    | none    | none    | none     | none      | none
app_public.custom_exports:insert                   | 1     | 1     | refused | refused | refused | refused | refused | refused  | refused   | refused
app_public.custom_exports:update                   | 1     | 1     | none    | none    | none    | none    | none    | none     | refused   | none
app_public.custom_exports:delete                   | 1     | 1     | none    | none    | none    | none    | none    | none     | refused   | none
app_public.exports:select                          | 4     | 4     | 1       | none    | none    | none    | none    | none     | none      | none
app_public.service_intelligence_generations:select | 6     | 6     | 5       | 1       | none    | none    | none    | none     | none      | none
`).rows;

const short = { FORBIDDEN: "FORBID", UNAUTHENTICATED: "UNAUTH", NOT_FOUND: "NOTFND" };
let world: OutsideWorld;
let schema: GraphQLSchema;

beforeAll(async () => {
  world = await startOutsideWorld();
  schema = buildClientSchema(await world.owen.get(getIntrospectionQuery()));
});
afterAll(() => world?.stop());

/** One row for each word of its name. */
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

/** Queries of the lists and of fields of records of other areas. */
function readers(): Record<string, Operation> {
  const { harbour, project, purchase, deposit, reservation, leads, bea, max } = world;
  const found = (query: string) => ask(`query ($query: String!) { search(query: $query) { id } }`, { query });
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
    "Project.charges": readById("project", project.id, "charges { id }"),
    "Buyer.charges": readById("buyer", purchase, "charges { id }"),
    "Reservation.charges": readById("reservation", reservation, "charges { id }"),
    "Deposit.charge": readById("deposit", deposit, "charge { id }"),
    "Lead.generations": readById("lead", leads.sams.id, "generations { id }"),
    "User.cards of the buyer": readById("user", bea.id!, "cards { id }"),
    "User.integrations of the member": readById("user", max.id!, "integrations { id }"),
  };
  for (const member of ["paymentsStatus", "paymentsRequirements"])
    tried[`Organization.${member}`] = readById("organization", harbour.id, member);
  for (const list of ["paymentsRepresentatives", "integrations", "customReports", "customExports", "exports"])
    tried[`Organization.${list}`] = readById("organization", harbour.id, `${list} { id }`);
  return tried;
}

describe("visibility", () => {
  test("records by id", async () => {
    const found: Row[] = [];
    for (const [operation, { finder, id }] of Object.entries(world.records))
      found.push({ operation, expected: await outcomes(world.people, readById(finder, id)) });
    expect(byName(found)).toEqual(byName(perWord(records)));
  });

  test("fields", async () => {
    const rows = new Map(perWord(fields).map((row) => [row.operation, row.expected]));
    const met = new Set<string>();
    const [found, wanted]: [Row[], Row[]] = [[], []];
    for (const [label, { finder, type, id, by }] of Object.entries(world.records)) {
      const whole = await everyField(schema, by, finder, type, id);
      // A report of a former member is invisible to everybody.
      if (!whole) continue;
      const [is, should]: [Map<string, Row>, Map<string, Row>] = [new Map(), new Map()];
      const of = (rowsOf: Map<string, Row>, field: string) => {
        if (!rowsOf.has(field)) rowsOf.set(field, { operation: `${label}.${field}`, expected: {} });
        return rowsOf.get(field)!.expected;
      };
      for (const [name, person] of Object.entries(world.people)) {
        const record = await everyField(schema, person, finder, type, id);
        // The visibility of the record is tested by another table.
        if (!record) continue;
        for (const [field, value] of Object.entries(whole)) {
          // Reading a report runs it.
          if (field === "lastRunAt") continue;
          const row = [`${label}.${field}`, `${type}*.${field}`, `*.${field}`].find((key) => rows.has(key));
          of(is, field)[name] = shown(record[field], value);
          of(should, field)[name] = row ? rows.get(row)![name]! : shown(value, value);
          if (row) met.add(row);
        }
      }
      found.push(...is.values());
      wanted.push(...should.values());
    }
    expect(byName(found)).toEqual(byName(wanted));
    expect([...rows.keys()].filter((name) => !met.has(name))).toEqual([]);
  });

  test("lists, and members of other records", async () => {
    const result: Row[] = [];
    for (const [operation, attempt] of Object.entries(readers()))
      result.push({ operation, expected: await outcomes(world.people, attempt) });
    expect(byName(result)).toEqual(byName(reads));
  });
});

describe("figures", () => {
  const leaves = (type: GraphQLObjectType) =>
    Object.values(type.getFields())
      .filter((field) => isLeafType(getNamedType(field.type)) && !isListType(getNullableType(field.type)))
      .map((field) => field.name);
  const typeOf = (type: GraphQLObjectType, field: string) =>
    getNamedType(type.getFields()[field]!.type) as GraphQLObjectType;
  const inOneForm = (value: unknown) =>
    value === null || typeof value === "boolean" || Number.isNaN(Number(value)) ? value : Number(value);
  /** Aggregates of the values that exist. */
  const figures: Record<string, (values: any[]) => unknown> = {
    sum: (values) => Math.round(100 * values.reduce((sum, value) => sum + Number(value), 0)) / 100,
    min: (values) => inOneForm(values.toSorted((a, b) => a - b || (a < b ? -1 : 1))[0] ?? null),
    max: (values) => inOneForm(values.toSorted((a, b) => b - a || (a < b ? 1 : -1))[0] ?? null),
    distinctCount: (values) => new Set(values.map((value) => JSON.stringify(value))).size,
  };

  test("of each connection are those of the records and values that each viewer sees", async () => {
    const counted: Row[] = [];
    const wrong: unknown[] = [];
    const connections = Object.values(schema.getQueryType()!.getFields()).filter(({ type }) => {
      const named = getNamedType(type);
      return isObjectType(named) && named.getFields().nodes;
    });
    for (const { name: operation, type } of connections) {
      const connection = getNamedType(type) as GraphQLObjectType;
      const aggregates = typeOf(connection, "aggregates");
      const sees = leaves(typeOf(connection, "nodes"));
      const members = Object.keys(figures)
        .filter((kind) => aggregates.getFields()[kind])
        .map((kind) => {
          const known = leaves(typeOf(aggregates, kind)).filter((member) => sees.includes(member));
          return [kind, known] as const;
        })
        .filter(([, known]) => known.length > 0);
      const values = [...new Set(members.flatMap(([, known]) => known))].filter((member) => member !== "id");
      const [groupBy] = connection.getFields().groupedAggregates!.args;
      const groups = (getNamedType(groupBy!.type) as GraphQLEnumType)
        .getValues()
        .map(({ name }) => name)
        // Months represent all truncations of times.
        .filter((name) => !/_TRUNCATED_TO_(?!MONTH)/.test(name));
      const row: Row = { operation, expected: {} };
      for (const [who, person] of Object.entries(world.people)) {
        const { list } =
          await person.sees(`{ list: ${operation}(first: 1000) { totalCount nodes { id ${values.join(" ")} }
          aggregates { ${members.map(([kind, known]) => `${kind} { ${known.join(" ")} }`).join(" ")} } } }`);
        row.expected[who] = !list
          ? "UNAUTHENTICATED"
          : list.totalCount > 50
            ? "many"
            : String(list.totalCount || "none");
        if (!list) continue;
        const of = (member: string): unknown[] => list.nodes.map((node: any) => node[member]);
        if (list.totalCount !== list.nodes.length)
          wrong.push([operation, who, list.totalCount, list.nodes.length]);
        for (const [kind, known] of members)
          for (const member of known) {
            const is = inOneForm(list.aggregates[kind][member]);
            const should = figures[kind]!(of(member).filter((value) => value !== null));
            if (is !== should) wrong.push([operation, who, kind, member, is, should]);
          }
        for (let from = 0; from < groups.length; from += 25) {
          const some = groups.slice(from, from + 25);
          const requests = some.map(
            (by) => `${by}: groupedAggregates(groupBy: [${by}]) { keys distinctCount { id } }`,
          );
          const grouped = (await person.get(`{ list: ${operation} { ${requests.join(" ")} } }`)).list;
          for (const by of some) {
            const sum = grouped[by].reduce(
              (all: number, group: any) => all + Number(group.distinctCount.id),
              0,
            );
            if (sum !== list.totalCount) wrong.push([operation, who, by, sum, list.totalCount]);
            const member = by.toLowerCase().replace(/_(\w)/g, (_match, letter) => letter.toUpperCase());
            if (!values.includes(member)) continue;
            const [is, should] = [grouped[by].map(({ keys: [key] }: any) => key), of(member)].map((keys) =>
              [...new Set(keys.map((key: unknown) => String(inOneForm(key))))].sort().join(),
            );
            if (is !== should) wrong.push([operation, who, by, is, should]);
          }
        }
      }
      counted.push(row);
    }
    expect(wrong).toEqual([]);
    // A connection that is empty for everybody is not in the table.
    const listed = new Set(feeds.map((row) => row.operation));
    const filled = counted.filter(
      ({ operation, expected }) =>
        listed.has(operation) || Object.values(expected).some((cell) => cell !== "none"),
    );
    expect(byName(filled)).toEqual(byName(feeds));
  });
});

describe("in SQL, as the role of the API", () => {
  /**
   * The outcome of a statement: the number of rows that it returns or has changed, or a refusal for lack of a
   * privilege.
   */
  async function attempt(client: ClientBase, person: Person, table: string, statement: string) {
    const role = `set local role ${person.id ? "plat_user" : "plat_anonymous"}`;
    await client.query(`savepoint attempt; ${role}`);
    try {
      const { rowCount, command } = await client.query(statement);
      if (command === "SELECT") return String(rowCount || "none");
      // Deleted rows are marked as deleted, so the table is compared with its previous rows.
      await client.query(
        `rollback to attempt; create temp table before as select t::text as row from ${table} t; ${role}`,
      );
      await client.query(statement);
      await client.query("reset role");
      const { rows } = await client.query(
        `select count(*) from (select t::text from ${table} t except select row from pg_temp.before) now`,
      );
      return rows[0].count === "0" ? "none" : (rows[0].count as string);
    } catch (error) {
      const { code } = error as { code: string };
      return code === "42501" ? "refused" : code;
    } finally {
      await client.query("rollback to attempt");
    }
  }

  test("policies alone determine which rows of each table can be read and changed", async () => {
    // A column of each table that can be set to its default, preferably one that the role may set.
    const { rows } = await world.owner.query<{ name: string; column: string }>(
      `select n.nspname || '.' || c.relname as name, (array_agg(a.attname order by has_column_privilege('plat_user', c.oid, a.attnum, 'update') desc, a.attnotnull))[1] as column
       from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where c.relkind in ('r', 'p') and n.nspname like 'app\\_%' and c.relname ~ $1 group by 1 order by 1`,
      [tables.source],
    );
    const home = `'${world.harbour.id}'`;
    const inserts: Record<string, string> = {
      "app_public.custom_reports": `(organization_id, name, subject, columns) values (${home}, 'New', 'LEADS', '["name"]')`,
      "app_public.custom_exports": `(organization_id, name, subject, format, columns) values (${home}, 'New', 'LEADS', 'CSV', '["name"]')`,
    };
    const updates: Record<string, string> = {
      "app_public.custom_reports": "name = 'Changed'",
      "app_public.custom_exports": "name = 'Changed'",
    };
    const found = new Map<string, Row>();
    const client = await world.owner.connect();
    try {
      for (const [who, person] of Object.entries(world.people)) {
        if (["scoped", "reader", "abroad"].includes(who)) continue;
        await client.query("begin");
        await client.query("select set_config('plat.user_id', $1, true)", [person.id ?? ""]);
        for (const { name, column } of rows)
          for (const statement of [
            // Tables of values are readable for everybody.
            ...(/_values$|report_(columns|subjects)$/.test(name) ? [] : [`select from ${name}`]),
            `insert into ${name} ${inserts[name] ?? "default values"}`,
            `update ${name} set ${updates[name] ?? `${column} = default`}`,
            `delete from ${name}`,
          ]) {
            const operation = `${name}:${/^\w+/.exec(statement)}`;
            if (!found.has(operation)) found.set(operation, { operation, expected: {} });
            found.get(operation)!.expected[who] = await attempt(client, person, name, statement);
          }
        await client.query("rollback");
      }
    } finally {
      client.release();
    }
    const closed = ({ expected }: Row) => Object.values(expected).every((cell) => cell === "refused");
    expect(byName([...found.values()].filter((row) => !closed(row)))).toEqual(byName(perWord(inSql)));
  });
});

test("a file URL grants access to no other file", async () => {
  const { records: kept, owen, ada } = world;
  const addressOf = async (person: Person, id: string) =>
    new URL((await person.get("query ($id: ID!) { export(id: $id) { url } }", { id })).export.url);
  const statusOf = ({ pathname, search }: URL) =>
    new Promise<number>((resolve, reject) => {
      request(new URL(pathname + search, world.url), { rejectUnauthorized: false }, (response) => {
        response.resume().on("end", () => resolve(response.statusCode!));
      })
        .on("error", reject)
        .end();
    });
  const [mine, theirs] = [
    await addressOf(owen, kept["Export:owner"]!.id),
    await addressOf(ada, kept["Export:admin"]!.id),
  ];
  expect(await statusOf(mine)).toBe(200);
  const bare = new URL(mine.pathname, mine);
  const crossed = new URL(`${theirs.pathname}${mine.search}`, mine);
  // In Base64, another last character may encode the same bytes.
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const changed = [...letters]
    .filter((letter) => !mine.href.endsWith(letter))
    .map((letter) => new URL(mine.href.replace(/.$/, letter)));
  for (const address of [bare, crossed, ...changed])
    expect([address.href, await statusOf(address)]).toEqual([address.href, 403]);
});

describe("operations", () => {
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
      // The sandbox sends events at any time.
      ...rows
        .filter((table) => tables.test(table.name) && !/^(sandbox_|processor_events)/.test(table.name))
        .map((table) => `${table.schema}.${table.name}`),
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
      "removeProcessorCard, a guess": () => ({ id: "00000000-0000-7000-8000-000000000000" }),
      "createPaymentIntent for the deposit": async () => ({
        depositId: await create("createDeposit", {
          buyerId: world.purchase,
          title: "Another",
          amount: "9.00",
        }),
        ...dollar,
      }),
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
      "updateProcessorCharge of the buyer": () => ({
        id: world.records.ProcessorCharge!.id,
        metadata: { n: ++serial },
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
      exportCustomReport: () => ({ id: world.records["CustomReport:organization"]!.id }),
      exportFloorPlans: () => ({ projectId: project.id }),
      exportOrganization: () => ({ organizationId: harbour.id }),
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

  /**
   * The number of requests that change something at the processor, and of requests to the URL of the
   * integration.
   */
  const requests = () =>
    [...world.calls].reduce(
      (sum, [method, count]) => (/^(read|events)/.test(method) ? sum : sum + count),
      world.receiver.messages.length,
    );
  /** Removes created records and uses of limits, which have tests of their own. */
  const tidy = () => {
    const made = Object.values(world.records).map(({ id }) => `'${id}'`);
    const others = `deleted_at is null and id not in (${made.join(", ")})`;
    return world.owner.query(`begin; set local plat.service = 'on'; delete from app_private.limit_uses;
      update app_public.exports set status = 'CANCELLED' where status in ('PENDING', 'PROCESSING');
      delete from app_public.organization_integrations where ${others};
      delete from app_public.user_integrations where ${others}; commit`);
  };

  test.each(operations)("$operation", async ({ operation, expected }) => {
    const document = mutationOf(/^\w+/.exec(operation)![0], "{ __typename }");
    const found: Record<string, string> = {};
    const state = async () => [requests(), await digest(world, ofArea)];
    // A state that is reused until somebody changes it.
    let before: unknown[] | null = null;
    for (const [who, person] of Object.entries(world.people)) {
      if (!before) await tidy();
      const made = inputs[operation]!(person);
      const input = await made;
      if (expected[who] !== "yes") before ??= await state();
      const answer = await person.ask(document, { input });
      found[who] = outcome(answer, short);
      const [error] = answer.errors ?? [];
      if (!error || !before) {
        before = null;
        continue;
      }
      expect([who, await state()]).toEqual([who, before]);
      if (made instanceof Promise) before = null;
      // A refusal names a sufficient permission and reveals nothing of the implementation; for a read-only
      // token, no permission is sufficient.
      const { code, permission } = error.extensions;
      expect(code === "FORBIDDEN" && who !== "reader" ? permission : "none.needed").toMatch(
        /^[a-z]+\.[a-z]+$/,
      );
      expect(error.message).not.toMatch(/policy|app_(public|hidden|private)|permission denied/);
    }
    expect(found).toEqual(expected);
  });

  test.each(takenAway.names)("without the permission: %s", async (column) => {
    const [role, permission] = column.split(" ") as ["admin" | "member", string];
    const person = world.people[role]!;
    const reading = readers();
    const away = [role.toUpperCase(), permission];
    const { rows } = await world.owner.query(
      "select reach from app_private.role_permissions where role = $1 and permission = $2 and not in_affiliated",
      away,
    );
    const found: Record<string, string> = {};
    const wanted: Record<string, string> = {};
    for (const { operation, expected } of takenAway.rows) {
      if (expected[column] === "–") continue;
      await tidy();
      const input = await inputs[operation]?.(person);
      const record = world.records[operation];
      await world.owner.query(
        "delete from app_private.role_permissions where role = $1 and permission = $2 and not in_affiliated",
        away,
      );
      const answer = input
        ? await person.ask(mutationOf(/^\w+/.exec(operation)![0], "{ __typename }"), { input })
        : await (reading[operation] ?? readById(record!.finder, record!.id))(person);
      await world.owner.query(
        "insert into app_private.role_permissions (role, permission, reach) values ($1, $2, $3)",
        [...away, rows[0].reach],
      );
      found[operation] = outcome(answer, short);
      wanted[operation] = expected[column]!;
    }
    expect(found).toEqual(wanted);
  });
});

test("the tables contain every operation, query and field of the area", () => {
  const ofArea = (parent: string) =>
    Object.values((schema.getType(parent) as GraphQLObjectType).getFields())
      .filter((field) => area.test(field.name) || types.test(getNamedType(field.type).name))
      .map((field) => field.name);
  const firstWord = ({ operation }: Row) => /^[\w.]+/.exec(operation)![0];
  expect(ofArea("Mutation").sort()).toEqual([...new Set(operations.map(firstWord))].sort());
  const requests = [
    ...Object.values(world.records).map(({ finder }) => finder),
    ...[...reads, ...feeds].map(firstWord),
  ];
  expect(ofArea("Query").filter((name) => !requests.includes(name))).toEqual([]);
  // Records of the area are compared field by field.
  const members = Object.values(schema.getTypeMap())
    .filter(
      (type): type is GraphQLObjectType =>
        isObjectType(type) && !/^(Query|Mutation|.*(Aggregates|Connection|Edge)|.*Payload)$/.test(type.name),
    )
    .filter((type) => !types.test(type.name))
    .flatMap((type) => ofArea(type.name).map((name) => `${type.name}.${name}`));
  expect(members.filter((name) => ![...reads.map(firstWord), ...elsewhere].includes(name))).toEqual([]);
  expect(new Set(Object.values(world.records).map(({ type }) => type)).size).toBe(
    Object.keys(schema.getTypeMap()).filter((name) => types.test(name) && name !== "SearchResult").length,
  );
});
