/** Inputs that chance does not find: what the operation is about has to be in a state, or a text has a form of its own. */
import { randomBytes } from "node:crypto";
import { representative, type Payments } from "../harness/payments.ts";
import { mutationOf } from "../harness/records.ts";
import { password } from "../harness/signUp.ts";
import type { Player, Recipe } from "./fuzzer.ts";

const csv = (text: string) => `data:text/csv;name=fuzz.csv;base64,${Buffer.from(text).toString("base64")}`;
const name = () => `Fuzz ${randomBytes(4).toString("hex")}`;

export function recipes({ owner, harbour, project, quiet }: Payments): Record<string, Recipe> {
  /** Members from one row, found at random among those that the query gives for the party's organization. */
  const found =
    (query: string, more: (player: Player) => Record<string, unknown> = () => ({})): Recipe =>
    async (player) => {
      const { rows } = await owner.query<{ input: Record<string, unknown> }>(
        `with home as (select id from app_public.organizations where (name = 'Harbour Homes') = ($1 = 'Harbour') and kind is distinct from 'AGENCY')
         select to_json(r)::jsonb as input from (${query}) r order by random() limit 1`,
        [player.party],
      );
      // A member that is null there is left out.
      const input = Object.entries(rows[0]?.input ?? {}).map(([key, value]) => [key, value ?? undefined]);
      return { ...Object.fromEntries(input), ...more(player) };
    };
  const ofHome = "organization_id in (select id from home)";
  /** Runs something first as the same player, and goes on with the record that it gives. */
  const after =
    (field: string, input: Record<string, unknown>): Recipe =>
    async ({ person }) => {
      const { data } = await person.ask(mutationOf(field), { input });
      return { id: data?.[field]?.id };
    };
  /** A known secret in place of one that went out by mail. */
  const secret = (table: string, column: string, mine: string): Recipe => {
    return async ({ person }) => {
      const token = randomBytes(16).toString("hex");
      await owner.query(
        `update app_private.${table} set ${column} = sha256(convert_to($1, 'UTF8')) where ctid = (select t.ctid from app_private.${table} t where ${mine} order by random() limit 1)`,
        [token, ...(mine.includes("$2") ? [person.id] : [])],
      );
      return { token };
    };
  };
  const workflow = {
    name: "Fuzzed",
    subjectType: "LEAD",
    trigger: { type: "EVENT", event: "lead.created" },
    steps: [{ type: "ADD_TAG", config: { tag: "new" } }],
  };
  const withWorkflow: Recipe = () => ({ ...workflow, organizationId: harbour.id });
  const webhook = () => ({ url: "https://93.184.215.14/hook", events: ["lead.*"] });
  const card: Recipe = () => ({ token: "tok_visa" });
  const state = (status: string) =>
    found(
      `select id, null as "expectedVersion" from app_public.workflow_executions where status = '${status}' and ${ofHome}`,
    );
  const payment = found(
    "select id as \"depositId\", null as \"reservationId\", null as \"organizationId\", null as amount, null as currency from app_public.deposits where status in ('PENDING', 'DUE', 'OVERDUE')",
  );
  return {
    acceptBuyerInvite: secret("buyer_invite_tokens", "token_hash", "true"),
    acceptGeneration: found(
      `select id, null as "expectedVersion" from app_public.service_intelligence_generations where status = 'COMPLETED' and ${ofHome}`,
    ),
    acceptOrganizationInvite: secret("organization_invite_tokens", "token_hash", "true"),
    convertLead: found(
      `select l.id as "leadId", u.id as "unitId", null as "lotId", null as "expectedVersion" from app_public.leads l join app_public.units u using (project_id)
       where l.status not in ('CONVERTED', 'LOST') and u.status = 'AVAILABLE' and u.deleted_at is null and l.deleted_at is null and l.${ofHome}`,
    ),
    createLead: () => ({
      projectId: project.id,
      name: name(),
      email: undefined,
      source: undefined,
      sourceId: undefined,
    }),
    createOfferResponse: found(
      `select id as "offerId", null as "expectedVersion" from app_public.offers where status = 'PENDING' and ${ofHome}`,
    ),
    createOrganizationIntegration: () => ({
      organizationId: harbour.id,
      appKey: "calendar_feed",
      projectId: undefined,
    }),
    createOrganizationPaymentsRepresentative: () => ({
      ...representative,
      organizationId: harbour.id,
      email: `${name().replace(" ", ".").toLowerCase()}@example.com`,
    }),
    createPaymentIntent: payment,
    createProcessorCard: card,
    createProcessorCharge: payment,
    createReservation: found(
      `select u.id as "unitId", null as "lotId", l.id as "leadId", true as "acceptedTerms", null as status, null as expiration from app_public.units u
       join app_public.leads l using (project_id) where u.status = 'AVAILABLE' and u.deleted_at is null and l.status not in ('CONVERTED', 'LOST') and u.${ofHome}`,
    ),
    createUserIntegration: () => ({ appKey: "calendar_feed" }),
    createWebhook: () => ({ ...webhook(), organizationId: harbour.id, projectId: undefined }),
    createWorkflow: withWorkflow,
    createWorkflowExecution: found(
      `select w.id as "workflowId", l.id as "subjectId" from app_public.workflows w join app_public.leads l using (organization_id)
       where w.subject_type = 'LEAD' and w.status = 'ENABLED' and w.${ofHome}`,
    ),
    deleteProject: after("createProject", {
      organizationId: harbour.id,
      title: name(),
      status: "SELLING",
      currency: "CAD",
    }),
    deleteWorkflow: after("createWorkflow", { ...workflow, organizationId: harbour.id }),
    deleteWebhook: after("createWebhook", { ...webhook(), organizationId: harbour.id }),
    importBuyers: () => ({
      projectId: quiet.id,
      file: csv(`legal_name,price\n${name()},400000\n`),
      dryRun: false,
    }),
    importUnits: () => ({ projectId: quiet.id, file: csv(`unit_number\n${name()}\n`), dryRun: false }),
    login: ({ person }) => ({ username: person.email ?? "nobody@example.com", password }),
    pauseWorkflowExecution: state("RUNNING"),
    resumeWorkflowExecution: state("PAUSED"),
    resetPassword: async (player, ...rest) => ({
      ...(await secret("user_otps", "code_sha256", "true")(player, ...rest)),
      password,
    }),
    updatePassword: () => ({ currentPassword: password, newPassword: `${password} ${name()}` }),
    verifyEmail: secret("email_verifications", "code_sha256", "t.user_id = $2"),
    withdrawOffer: found(
      `select id, null as "expectedVersion" from app_public.offers where status = 'PENDING' and ${ofHome}`,
    ),
  };
}
