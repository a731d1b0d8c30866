/** Inputs that chance does not find: what the operation is about has to be in a state, or a text has a form of its own. */
import { createHash, randomBytes } from "node:crypto";
import { representative, type Payments } from "../harness/payments.ts";
import { mutationOf } from "../harness/records.ts";
import { password } from "../harness/signUp.ts";
import type { Player, Recipe } from "./fuzzer.ts";

const csv = (text: string) => `data:text/csv;name=fuzz.csv;base64,${Buffer.from(text).toString("base64")}`;
const name = () => `Fuzz ${randomBytes(4).toString("hex")}`;

export function recipes({ owner, owen, harbour, project, quiet }: Payments): Record<string, Recipe> {
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
  /** A secret that only a mail told, with a row of its own: the statement's $1 is its hash, $2 the player. */
  const secret =
    (statement: string, more: Record<string, unknown> = {}): Recipe =>
    async ({ person }) => {
      const token = randomBytes(16).toString("hex");
      if (person.id) await owner.query(statement, [createHash("sha256").update(token).digest(), person.id]);
      return { token, ...more };
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
    acceptBuyerInvite: secret(
      `insert into app_private.buyer_invite_tokens (invite_id, token_hash)
       select i.id, $1 from app_hidden.buyer_invites i where $2::uuid is not null order by i.id desc limit 1
       on conflict (invite_id) do update set token_hash = excluded.token_hash`,
    ),
    acceptGeneration: found(
      `select id, null as "expectedVersion" from app_public.service_intelligence_generations where status = 'COMPLETED' and ${ofHome}`,
    ),
    // Who accepts has the address of the invitation: the newcomer, so that outsiders stay outside.
    acceptOrganizationInvite: async (player) => {
      if (player.name !== "newcomer") return {};
      await owen.ask(mutationOf("createOrganizationInvite"), {
        input: { organizationId: harbour.id, email: player.person.email, role: "MEMBER" },
      });
      return secret(
        `insert into app_private.organization_invite_tokens (invite_id, token_hash)
         select i.id, $1 from app_public.organization_invites i join app_hidden.user_identities u on u.email = i.email and u.user_id = $2
         where i.status = 'PENDING' limit 1
         on conflict (invite_id) do update set token_hash = excluded.token_hash`,
      )(player);
    },
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
    resetPassword: secret(
      `insert into app_private.user_otps (user_id, code_sha256, expires_at) values ($2, $1, now() + interval '10 minutes')
       on conflict (user_id) do update set code_sha256 = excluded.code_sha256, expires_at = excluded.expires_at`,
      { password },
    ),
    updatePassword: () => ({ currentPassword: password, newPassword: `${password} ${name()}` }),
    verifyEmail: secret(
      `insert into app_private.email_verifications (user_id, code_sha256, expires_at) values ($2, $1, now() + interval '10 minutes')
       on conflict (user_id) do update set code_sha256 = excluded.code_sha256, expires_at = excluded.expires_at`,
    ),
    withdrawOffer: found(
      `select id, null as "expectedVersion" from app_public.offers where status = 'PENDING' and ${ofHome}`,
    ),
  };
}
