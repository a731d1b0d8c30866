/** Facts about calling operations that the schema does not contain, for test/browser/operationExamples.ts. */
import { until } from "../harness/until.ts";
import type { Ask, Hint } from "./operationExamples.ts";

type Lookup = { query: string; path: string };

/**
 * Records of the demo that most operations accept, by type, and records in certain states, by names of their
 * own.
 */
export const records: Readonly<Record<string, Lookup>> = {
  // The oldest leads, because a workflow of the demo changes new ones.
  Lead: inProject("leads(first: 3, filter: { status: [NEW] }, orderBy: [REGISTERED_AT_ASC])", "leads.0.id"),
  OtherLead: inProject(
    "leads(first: 3, filter: { status: [NEW] }, orderBy: [REGISTERED_AT_ASC])",
    "leads.1.id",
  ),
  FreeUnit: inProject("units(first: 1, filter: { status: [AVAILABLE] })", "units.*.id"),
  NewUnit: inProject("units(first: 1, orderBy: [ID_DESC])", "units.*.id"),
  NewFalloutReason: inProject("falloutReasons(first: 1, orderBy: [ID_DESC])", "falloutReasons.*.id"),
  NewFloorPlan: inProject("floorPlans(first: 1, orderBy: [ID_DESC])", "floorPlans.*.id"),
  NewSpecCategory: inProject("specCategories(first: 1, orderBy: [ID_DESC])", "specCategories.*.id"),
  NewSpecElement: {
    query:
      '{ project(id: "larkfield-gardens") { specCategories { elements(first: 1, orderBy: [ID_DESC]) { id } } } }',
    path: "project.specCategories.*.elements.*.id",
  },
  OtherProjectOrganization: inProject("organizations(first: 1, orderBy: [ID_DESC])", "organizations.*.id"),
  Organization: { query: '{ organization(id: "larkfield-homes") { id } }', path: "organization.id" },
  NewLeadSource: inProject("leadSources(first: 1, orderBy: [ID_DESC])", "leadSources.*.id"),
  NewAgreement: {
    query:
      '{ project(id: "larkfield-gardens") { leads(first: 3, filter: { status: [NEW] }, orderBy: [REGISTERED_AT_ASC]) { agreements(first: 1, orderBy: [ID_DESC]) { id } } } }',
    path: "project.leads.*.agreements.*.id",
  },
  Buyer: {
    query: "{ buyers(first: 20, filter: { status: [IN_REVIEW, CONDITIONAL, FIRM] }) { id } }",
    path: "buyers.*.id",
  },
  OtherBuyer: {
    query: "{ buyers(first: 20, filter: { status: [IN_REVIEW, CONDITIONAL, FIRM] }) { id } }",
    path: "buyers.1.id",
  },
  PendingOffer: {
    query: "{ offers(first: 1, filter: { status: [PENDING] }) { id side } }",
    path: "offers.*.id",
  },
  OpenNegotiation: {
    query: "{ projects(first: 20) { negotiations(first: 20, filter: { status: [OPEN] }) { id } } }",
    path: "projects.*.negotiations.*.id",
  },
  Member: {
    query: `{ organization(id: "larkfield-homes") { members(first: 20, orderBy: [ID_ASC]) { user { id } } } }`,
    path: "organization.members.2.user.id",
  },
  ProjectOfUnits: { query: '{ project(id: "larkfield-gardens") { id } }', path: "project.id" },
  User: { query: "{ viewer { id } }", path: "viewer.id" },
  Event: { query: "{ events(first: 1, orderBy: [ID_ASC]) { id } }", path: "events.*.id" },
  Webhook: {
    query: `{ organization(id: "larkfield-homes") { webhooks(first: 1) { id } } }`,
    path: "organization.webhooks.*.id",
  },
  EnabledWorkflow: {
    query: `{ organization(id: "larkfield-homes") { workflows(first: 1, filter: { status: [ENABLED] }) { id } } }`,
    path: "organization.workflows.*.id",
  },
  DraftWorkflow: {
    query: `{ organization(id: "larkfield-homes") { workflows(first: 1, filter: { status: [DRAFT, DISABLED] }) { id } } }`,
    path: "organization.workflows.*.id",
  },
  LeadWorkflow: {
    query: `{ organization(id: "larkfield-homes") { workflows(first: 1, filter: { status: [ENABLED], subjectType: [LEAD] }) { id } } }`,
    path: "organization.workflows.*.id",
  },
  CustomExport: {
    query: `{ organization(id: "larkfield-homes") { customExports(first: 1) { id } } }`,
    path: "organization.customExports.*.id",
  },
  CustomReport: {
    query: `{ organization(id: "larkfield-homes") { customReports(first: 1) { id } } }`,
    path: "organization.customReports.*.id",
  },
  EscalationTicket: {
    query: `{ organization(id: "larkfield-homes") { escalationTickets(first: 1) { id } } }`,
    path: "organization.escalationTickets.*.id",
  },
  OrganizationIntegration: {
    query: `{ organization(id: "larkfield-homes") { integrations(first: 1) { id } } }`,
    path: "organization.integrations.*.id",
  },
  Export: {
    query: `{ organization(id: "larkfield-homes") { exports(first: 1) { id } } }`,
    path: "organization.exports.*.id",
  },
  RunningExecution: execution("RUNNING"),
  PausedExecution: execution("PAUSED"),
  OrganizationUserConnection: {
    query: `{ organization(id: "larkfield-homes") { members(first: 1, orderBy: [ID_ASC]) { id } } }`,
    path: "organization.members.*.id",
  },
  UserOrganizationConnection: {
    query: "{ viewer { organizations(first: 1) { id } } }",
    path: "viewer.organizations.*.id",
  },
  SpecOption: {
    query:
      '{ project(id: "larkfield-gardens") { specCategories { elements { options(first: 1) { id } } } } }',
    path: "project.specCategories.*.elements.*.options.*.id",
  },
  WebhookDelivery: {
    query: `{ organization(id: "larkfield-homes") { webhooks(first: 5) { deliveries(first: 1) { id } } } }`,
    path: "organization.webhooks.*.deliveries.*.id",
  },
  OrganizationInvite: {
    query: `{ organization(id: "larkfield-homes") { invites(first: 1) { id } } }`,
    path: "organization.invites.*.id",
  },
  UserIntegration: {
    query: "{ viewer { integrations(first: 1) { id } } }",
    path: "viewer.integrations.*.id",
  },
  AccessToken: { query: "{ viewer { accessTokens(first: 1) { id } } }", path: "viewer.accessTokens.*.id" },
  ProcessorCharge: {
    query: "{ processorCharges(first: 1, orderBy: [ID_DESC]) { id } }",
    path: "processorCharges.*.id",
  },
};

/** An execution of a workflow with this status. */
function execution(status: string): Lookup {
  return {
    query: `{ organization(id: "larkfield-homes") { workflows(first: 5, orderBy: [ID_DESC]) { executions(first: 5, filter: { status: [${status}] }) { id } } } }`,
    path: "organization.workflows.*.executions.*.id",
  };
}

/** A record of the project with most of the demo data. */
function inProject(list: string, path: string): Lookup {
  return { query: `{ project(id: "larkfield-gardens") { ${list} { id } } }`, path: `project.${path}` };
}

const csv = (text: string) => `data:text/csv;base64,${Buffer.from(text).toString("base64")}`;
const lead = { leadId: "$Lead" };
const unknownToken = { token: "0000000000000000" };
const ofMail = { token: "the code of the mail" };
const password = "demo-password";
const refused = (title: string, input?: Record<string, unknown>): Hint => ({
  title: `Refused: ${title}`,
  input,
});

export const hints: Readonly<Record<string, Hint>> = {
  acceptBuyerInvite: {
    title: "As the invited person, with the code of the mail",
    as: "laura@plat.example",
    input: ofMail,
    fill: async ({ mailed }) => ({ token: await mailed("laura@plat.example", /#purchase=([\w-]+)/) }),
  },
  acceptOrganizationInvite: {
    title: "As the invited person, with the code of the mail",
    as: "laura@plat.example",
    input: ofMail,
    fill: async ({ mailed }) => ({ token: await mailed("laura@plat.example", /#invite=([\w-]+)/) }),
  },
  resetPassword: {
    title: "With the code of the mail",
    input: { ...ofMail, password: "a new password" },
    fill: async ({ mailed }) => ({ token: await mailed("jonas@plat.example", /\b([A-Za-z0-9]{24})\b/) }),
  },
  verifyEmail: refused("a code that is in no mail", unknownToken),
  confirmEmailChange: refused("a code that is in no mail", unknownToken),
  updatePassword: {
    as: "mei@plat.example",
    input: { currentPassword: password, newPassword: "a new password", keepSession: true },
  },
  refreshSession: refused("a token that is unknown", { refreshToken: "0000000000000000" }),
  removeOrganizationMember: { input: { userId: "$Member" } },
  updateOrganizationMemberRole: { input: { userId: "$Member", role: "ADMIN" } },
  batchWorkflow: { input: { id: "$LeadWorkflow", subjectIds: ["$Lead", "$OtherLead"] } },
  convertLead: { input: { unitId: "$FreeUnit" } },
  createAccount: {
    input: {
      email: "robin.vale@example.com",
      password: "a long password",
      firstName: "Robin",
      lastName: "Vale",
    },
  },
  createAgreement: { input: { ...lead, type: "PURCHASE" } },
  createAppointment: { input: { ...lead, type: "IN_PERSON_TOUR" } },
  createContact: { input: lead },
  createDeposit: { input: { buyerId: "$Buyer", amount: "5000.00", dueAt: "2031-05-04" } },
  createDepositScheduleMilestone: { input: { percent: "5", dueOffsetDays: 30 } },
  createLeadNote: { input: lead },
  createNegotiation: { input: { unitId: "$FreeUnit", ...lead } },
  createOffer: { input: { negotiationId: "$OpenNegotiation", price: "690000.00", side: "SELLER" } },
  createOfferResponse: { input: { offerId: "$PendingOffer", action: "REJECT" } },
  withdrawOffer: { input: { id: "$PendingOffer" } },
  createPhoneCall: { input: { ...lead, direction: "OUTBOUND" } },
  createPromotion: { input: { kind: "PRICE_REDUCTION", amount: "5000.00" } },
  createReservation: { input: { unitId: "$FreeUnit", ...lead } },
  createUnitHold: { input: { unitId: "$FreeUnit", ...lead } },
  createTask: { input: { ...lead, title: "Call back" } },
  createWebhook: {
    input: { url: "https://crm.example.com/plat", events: ["lead.created"] },
    fill: async ({ receiver }) => ({ url: receiver }),
  },
  eventsConnection: { variables: { filter: { names: ["project.created"] } } },
  createWorkflow: {
    input: {
      name: "Welcome",
      subjectType: "LEAD",
      trigger: { type: "EVENT", event: "lead.created" },
      steps: [{ type: "CREATE_TASK", config: { title: "Call {{ lead.name }}", type: "CALL" } }],
    },
  },
  createWorkflowExecution: { input: { workflowId: "$LeadWorkflow", subjectId: "$Lead" } },
  enableWorkflow: { input: { id: "$DraftWorkflow" } },
  disableWorkflow: { input: { id: "$EnabledWorkflow" } },
  archiveWorkflow: { input: { id: "$DraftWorkflow" } },
  deleteLead: { input: { id: "$OtherLead" } },
  inviteBuyer: { input: { buyerId: "$OtherBuyer" } },
  deleteUnit: { input: { id: "$NewUnit" } },
  deleteWorkflow: { input: { id: "$DraftWorkflow" } },
  deleteSpecCategory: { input: { id: "$NewSpecCategory" } },
  deleteSpecElement: { input: { id: "$NewSpecElement" } },
  deleteProjectOrganization: { input: { id: "$OtherProjectOrganization" } },
  updateProjectOrganization: { input: { id: "$OtherProjectOrganization", role: "AGENCY" } },
  deleteFalloutReason: { input: { id: "$NewFalloutReason" } },
  deleteFloorPlan: { input: { id: "$NewFloorPlan" } },
  deleteLeadSource: { input: { id: "$NewLeadSource" } },
  deleteAgreement: { input: { id: "$NewAgreement" } },
  createAgreementSigner: { input: { agreementId: "$NewAgreement" } },
  uploadAgreementFile: { input: { agreementId: "$NewAgreement" } },
  runCustomExport: { input: { id: "$CustomExport" } },
  exportCustomReport: { input: { id: "$CustomReport" } },
  sendTestWebhook: { input: { id: "$Webhook" } },
  cancelBuyer: { input: { id: "$Buyer", falloutReasonId: "$FalloutReason" } },
  unitAsOf: { variables: { id: "$FreeUnit", at: "2026-01-01T00:00:00Z" } },
  reservationAsOf: { variables: { id: "$Reservation", at: "2026-01-01T00:00:00Z" } },
  explainAccess: {
    variables: { userId: "$Member", organizationId: "$Organization", type: "Lead", id: "$Lead" },
  },
  node: { variables: { id: "$Lead" } },
  nodes: { variables: { ids: ["$Lead", "$FreeUnit"] } },
  userOrganizationConnection: {
    variables: { id: "$UserOrganizationConnection" },
  },
  organizationUserConnection: {
    variables: { id: "$OrganizationUserConnection" },
  },
  publicProject: { variables: { id: "larkfield-gardens" } },
  search: { variables: { query: "Larkfield" } },
  unitsAsOf: { variables: { at: "2026-01-01T00:00:00Z", projectId: "$ProjectOfUnits" } },
  updateUnits: { input: { ids: ["$FreeUnit"], priceDeltaPercent: "1.5" } },
  updateLeads: { input: { ids: ["$Lead", "$OtherLead"], addTags: ["open house"] } },
  mergeLeads: { input: { ids: ["$OtherLead"], intoId: "$Lead" } },
  upsertLeads: {
    input: {
      system: "crm",
      leads: [{ externalId: "1", name: "Robin Vale", email: "robin.vale@example.com" }],
    },
  },
  erasePerson: { input: { ...lead } },
  importUnits: { input: { file: csv("Unit #,Price,Beds\n901,650000,2\n902,abc,1\n") } },
  importBuyers: { input: { file: csv("Name,Email,Price\nRobin Vale,robin.vale@example.com,650000\n") } },
  importLeads: { input: { file: csv("Name,Email\nRobin Vale,robin.vale@example.com\n") } },
  createProjectOrganization: { input: { email: "sales@agency.example.com", role: "AGENCY" } },
  createUserIntegration: { input: { appKey: "calendar_feed" } },
  createOrganizationIntegration: {
    selection: "{ id status name }",
    input: {
      appKey: "crm_sync",
      config: {
        url: "https://crm.example.com/plat",
        events: ["lead.created"],
        mapping: { type: "event.name", lead: "data.lead.id" },
      },
    },
    fill: async ({ receiver }) => ({
      config: {
        url: receiver,
        events: ["lead.created"],
        mapping: { type: "event.name", lead: "data.lead.id" },
      },
    }),
  },
  createOrganizationPaymentsRepresentative: {
    input: {
      kind: "DIRECTOR",
      title: "Finance",
      dob: "1981-11-02",
      address: {
        thoroughfare: "40 Lark Lane",
        locality: "Toronto",
        administrativeArea: "ON",
        postalCode: "M5V 1A1",
        country: "CA",
      },
    },
  },
  cancelWorkflowExecution: { input: { id: "$RunningExecution" } },
  pauseWorkflowExecution: { input: { id: "$RunningExecution" } },
  resumeWorkflowExecution: { input: { id: "$PausedExecution" } },
  resolveEscalationTicket: { input: { action: "DISMISS" } },
  jobs: { variables: { organizationId: "$Organization", most: 2 } },
  discardJobs: { input: { organizationId: "larkfield-homes", task: "webhook__dispatch" } },
  retryJobs: { input: { organizationId: "larkfield-homes", task: "webhook__dispatch" } },
  rescheduleJobs: { input: { organizationId: "larkfield-homes", task: "webhook__dispatch" } },
  createProcessorCard: { input: { token: "tok_visa" } },
  createPaymentIntent: { input: { amount: "150.00", organizationId: "larkfield-homes" } },
  createProcessorCharge: { input: { amount: "150.00", organizationId: "larkfield-homes" } },
  refundProcessorCharge: { input: { amount: "50.00" } },
  redeliverEvents: { input: { fromSequence: "1" } },
  requestOrganizationDeletion: { input: { password } },
  eraseAccount: refused("the last owner of an organization", { password }),
};

/** Operations to execute before the examples, for records of types that the demo lacks. */
export const preparations: readonly string[] = [
  "createCustomExport",
  "createCustomReport",
  "createAccessToken",
  "createOrganizationInvite",
  "createWebhook",
  "createPersonalizationDiscount",
  "createFalloutReason",
  "createFloorPlan",
  "createLeadSource",
  "createUnit",
  "createAgreement",
  "createWorkflow",
  "createUnitHold",
  "createProjectOrganization",
  "createAgreementSigner",
  "createSpecElement",
  "createSpecCategory",
  "sendTestWebhook",
  "runCustomExport",
];

/** Brings records into states that require several operations. */
export async function prepareStates(ask: Ask): Promise<void> {
  const change = async (operation: string, input: object, selection = "{ id }"): Promise<any> => {
    const type = `${operation.charAt(0).toUpperCase()}${operation.slice(1)}Input`;
    const query = `mutation ($input: ${type}!) { ${operation}(input: $input) ${selection} }`;
    const { data, errors } = await ask({ query, variables: { input } });
    if (errors) throw new Error(`${operation}: ${errors[0].message}`);
    return data[operation];
  };
  const organizationId = "larkfield-homes";
  const background = `{ organization(id: "${organizationId}") {
    exports(first: 5) { status } webhooks(first: 5) { deliveries(first: 5) { status } } } }`;
  await until(
    () => ask({ query: background }),
    ({ data: { organization } }) =>
      organization.exports.every(({ status }: { status: string }) => status === "COMPLETED") &&
      JSON.stringify(organization.webhooks).includes("SUCCEEDED"),
  );
  await change("createOrganizationInvite", { organizationId, email: "laura@plat.example", role: "MEMBER" });
  const { data } = await ask({
    query: `{ buyers(first: 5, filter: { status: [IN_REVIEW, CONDITIONAL, FIRM] }) { id }
      project(id: "larkfield-gardens") { leads(first: 3, filter: { status: [NEW] }, orderBy: [REGISTERED_AT_ASC]) { id } } }`,
  });
  const { leads } = data.project;
  await change("inviteBuyer", { buyerId: data.buyers[2].id, email: "laura@plat.example" }, "");
  await change("createUserOtp", { email: "jonas@plat.example" }, "");

  /** Starts a workflow for leads, and waits until its executions have the status. */
  const start = async (name: string, steps: object[], subjects: { id: string }[], status: string) => {
    const { id } = await change("createWorkflow", {
      organizationId,
      name,
      subjectType: "LEAD",
      trigger: { type: "MANUAL" },
      steps,
    });
    await change("enableWorkflow", { id });
    for (const { id: subjectId } of subjects)
      await change("createWorkflowExecution", { workflowId: id, subjectId });
    const query = `{ workflow(id: "${id}") { executions { id status } } }`;
    const { data: begun } = await until(
      () => ask({ query }),
      (answer) => answer.data.workflow.executions.every((one: { status: string }) => one.status === status),
    );
    return begun.workflow.executions as { id: string }[];
  };
  const nurture = [
    { type: "ADD_TAG", config: { tag: "nurture" } },
    { type: "WAIT", waitSeconds: 2_592_000 },
  ];
  const [first] = await start("A month later", nurture, leads.slice(0, 2), "RUNNING");
  await change("pauseWorkflowExecution", { id: first!.id });
  await until(
    () => ask({ query: execution("PAUSED").query }),
    (answer) => JSON.stringify(answer.data).includes(first!.id),
  );
  const approval = [
    { type: "ESCALATE", config: { title: "Approve the discount", kind: "APPROVAL_REQUIRED" } },
  ];
  await start("Discounts", approval, leads.slice(0, 1), "COMPLETED");
}
