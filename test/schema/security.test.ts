import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { readChapters } from "../../src/database/committed.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople } from "../harness/people.ts";

// What holds for every table and function of the database, whoever adds one: a new one that breaks a rule fails here.

let database: TestDatabase;
let owner: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Pool({ connectionString: database.ownerUrl, max: 2 });
});
afterAll(async () => {
  await owner.end();
  await database.drop();
});

/** The first column of each row. */
async function column(query: string): Promise<string[]> {
  const { rows } = await owner.query({ text: query, rowMode: "array" });
  return rows.map(([value]) => String(value));
}

const ours = "('app_public', 'app_hidden', 'app_private')";
const functions = `pg_proc p join pg_namespace n on n.oid = p.pronamespace and n.nspname in ${ours}`;
const tables = `pg_class c join pg_namespace n on n.oid = c.relnamespace and n.nspname in ${ours}`;

test("every table has row security", async () => {
  expect(
    await column(
      `select c.oid::regclass from ${tables} where c.relkind in ('r', 'p') and not c.relrowsecurity`,
    ),
  ).toEqual([]);
});

test("every view reads with the rights of whoever asks, behind a barrier where it leaves rows out", async () => {
  // A view of all rows hides none by itself; the policies of its table are a barrier of their own.
  expect(
    await column(`select c.oid::regclass from ${tables} where c.relkind = 'v'
      and not coalesce(c.reloptions @> '{security_invoker=true}', false)`),
  ).toEqual([]);
  expect(
    await column(`select c.oid::regclass from ${tables} where c.relkind = 'v'
      and pg_get_viewdef(c.oid) ~* '\\y(where|join|having|limit|union|intersect|except)\\y'
      and not coalesce(c.reloptions @> '{security_barrier=true}', false)`),
  ).toEqual([]);
});

test("every policy names its roles", async () => {
  expect(
    await column(
      `select tablename || '.' || policyname from pg_policies where schemaname in ${ours} and 'public' = any (roles)`,
    ),
  ).toEqual([]);
});

test("who asks is asked once per statement: identity in a policy stands in a sub-select", async () => {
  const bare = await column(
    `select p.tablename || '.' || p.policyname from pg_policies p, unnest(array[p.qual, p.with_check]) expression
     where p.schemaname in ${ours}
       and regexp_replace(expression, 'SELECT [^()]*(\\([^()]*\\)[^()]*)*', '', 'gi') ~ 'current_user_id|viewer_|colleague_ids'`,
  );
  expect(bare).toEqual([]);
});

test("definer functions pin search_path, and nothing else does, since that prevents inlining", async () => {
  expect(
    await column(`select p.oid::regprocedure from ${functions}
      where p.prosecdef <> coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false)`),
  ).toEqual([]);
});

test("every function states its volatility", async () => {
  // VOLATILE is the default, so a text is asked for what was written.
  const stated = /\b(immutable|stable|volatile)\b/i;
  const unstated: string[] = [];
  for (const { file, body } of await readChapters())
    for (const [, name, head] of body.matchAll(
      /create (?:or replace )?function ([\w.%]+)([\s\S]*?)\bas\s+\$/gi,
    ))
      if (!stated.test(head!)) unstated.push(`${file}: ${name}`);
  expect(unstated).toEqual([]);
});

test("columns to insert and update are granted one by one", async () => {
  expect(
    await column(`select table_name || ' ' || privilege_type || ' to ' || grantee from information_schema.role_table_grants
      where table_schema in ${ours} and grantee in ('plat_user', 'plat_anonymous', 'PUBLIC')
        and privilege_type not in ('SELECT', 'DELETE')`),
  ).toEqual([]);
  expect(
    await column(`select distinct table_name from information_schema.role_column_grants
      where table_schema in ${ours} and grantee in ('plat_anonymous', 'PUBLIC') and privilege_type <> 'SELECT'`),
  ).toEqual([]);
});

test("no role of the API reads or writes a table of app_private", async () => {
  expect(
    await column(`select c.oid::regclass from ${tables}, unnest(array['plat_user', 'plat_anonymous', 'plat_authenticator']) role
      where n.nspname = 'app_private' and c.relkind in ('r', 'p')
        and has_any_column_privilege(role, c.oid, 'select, insert, update, references')`),
  ).toEqual([]);
});

test("the API's own role can become its two roles, and owns and creates nothing", async () => {
  expect(
    await column(`select b.rolname from pg_auth_members m join pg_roles a on a.oid = m.member join pg_roles b on b.oid = m.roleid
      where a.rolname = 'plat_authenticator' order by 1`),
  ).toEqual(["plat_anonymous", "plat_user"]);
  expect(
    await column(`select rolname from pg_roles where rolname in ('plat_authenticator', 'plat_user', 'plat_anonymous')
      and (rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication)`),
  ).toEqual([]);
  expect(
    await column(`select n.nspname || ' ' || role from pg_namespace n, unnest(array['plat_authenticator', 'plat_user', 'plat_anonymous']) role
      where has_schema_privilege(role, n.oid, 'create') and n.nspname not like 'pg\\_temp%'`),
  ).toEqual([]);
});

/**
 * Reviewed, each of them: what somebody without a token may call. A function belongs here when it refuses them itself
 * (an operation that asks for the viewer), or when its answer is theirs to know.
 */
const callableByAnybody = {
  operations: [
    "accept_buyer_invite",
    "accept_generation",
    "accept_organization_invite",
    "archive_workflow",
    "batch_workflow",
    "cancel_export",
    "cancel_workflow_execution",
    "cancel_workflow_executions",
    "contact_organization",
    "contact_project",
    "contact_service",
    "convert_lead",
    "create_account",
    "create_buyer",
    "create_lead",
    "create_offer",
    "create_offer_response",
    "create_organization",
    "create_organization_integration",
    "create_organization_invite",
    "create_organization_payments_representative",
    "create_payment_intent",
    "create_personalization",
    "create_processor_card",
    "create_processor_charge",
    "create_reservation",
    "create_user_integration",
    "create_user_otp",
    "create_webhook",
    "create_workflow",
    "create_workflow_execution",
    "delete_lead_source",
    "delete_organization_avatar",
    "delete_organization_integration",
    "delete_project_avatar",
    "delete_user_integration",
    "disable_organization_integration",
    "disable_user_integration",
    "disable_workflow",
    "discard_generation",
    "enable_workflow",
    "export_floor_plans",
    "export_plans",
    "invite_buyer",
    "login",
    "pause_workflow_execution",
    "redeliver_events",
    "refresh_organization_integration",
    "refresh_user_integration",
    "refund_processor_charge",
    "remove_organization_member",
    "remove_organization_payments_representative",
    "remove_processor_card",
    "resend_organization_invite",
    "reset_password",
    "resolve_escalation_ticket",
    "resume_workflow_execution",
    "revoke_organization_invite",
    "rotate_webhook_secret",
    "run_custom_export",
    "send_test_webhook",
    "suggest_lead_email",
    "update_appointment",
    "update_buyer",
    "update_lead",
    "update_negotiation",
    "update_organization_integration",
    "update_organization_member_role",
    "update_organization_notifications",
    "update_organization_payments_representative",
    "update_personalization",
    "update_processor_card",
    "update_reservation",
    "update_sales_office",
    "update_units",
    "update_user_integration",
    "update_workflow",
    "withdraw_offer",
  ],
  reads: [
    "binding_offers_filter_side",
    "binding_offers_loan_to_value",
    "binding_offers_purchase_price_balance",
    "binding_offers_total_contract_price",
    "buyers_accepted_offer",
    "buyers_allowed_transitions",
    "buyers_cancellation_reason",
    "buyers_charges",
    "buyers_dob",
    "buyers_documents",
    "buyers_filter_query",
    "buyers_full_name",
    "buyers_metadata",
    "buyers_negotiations",
    "buyers_net_purchase_price",
    "buyers_net_purchase_price_balance",
    "buyers_personalization",
    "buyers_ppsf",
    "cancel_workflow_executions_payload_executions",
    "current_user_id",
    "custom_exports_last_export",
    "custom_reports_definition",
    "custom_reports_last_run_at",
    "custom_reports_rows",
    "deposits_charge",
    "events_filter_after_sequence",
    "events_filter_names",
    "events_sequence",
    "exports_allowed_transitions",
    "exports_progress",
    "exports_url",
    "fallout_reasons_usage_count",
    "floor_plans_available_count",
    "floor_plans_filter_bedrooms",
    "floor_plans_filter_price",
    "floor_plans_filter_query",
    "floor_plans_filter_sqft",
    "floor_plans_metadata",
    "floor_plans_price_min",
    "integration_apps_installed",
    "lead_sources_lead_count",
    "leads_allowed_transitions",
    "leads_buyer",
    "leads_filter_email",
    "leads_filter_has_open_task",
    "leads_filter_phone",
    "leads_filter_query",
    "leads_filter_unassigned",
    "lease_permits_allowed_transitions",
    "lots_allowed_transitions",
    "lots_buyer",
    "lots_filter_phase",
    "lots_filter_price",
    "lots_filter_query",
    "lots_metadata",
    "lots_premium",
    "lots_price",
    "lots_price_history",
    "nearest_city",
    "negotiations_accepted_offer",
    "negotiations_allowed_transitions",
    "negotiations_cancellation_reason",
    "negotiations_current_offer",
    "negotiations_floor_price",
    "negotiations_notes",
    "open_houses_status",
    "organization_integration_apps",
    "organization_integrations_allowed_transitions",
    "organization_invites_projects",
    "organization_invites_status",
    "organization_payments_representatives_dob",
    "organizations_address",
    "organizations_avatar",
    "organizations_email",
    "organizations_payments_requirements",
    "organizations_payments_status",
    "organizations_phone",
    "organizations_projects",
    "organizations_viewer_role",
    "payment_intents_charge",
    "payment_intents_client_secret",
    "personalization_credits_currency",
    "personalization_discounts_amount",
    "personalization_discounts_currency",
    "personalization_selections_locked",
    "personalization_selections_total",
    "personalization_selections_unit_price",
    "personalizations_allowed_transitions",
    "personalizations_credits_total",
    "personalizations_currency",
    "personalizations_discounts_total",
    "personalizations_selections_total",
    "personalizations_total",
    "personalizations_warnings",
    "processor_cards_status",
    "processor_charges_allowed_transitions",
    "processor_charges_amount_refundable",
    "processor_charges_fee",
    "processor_charges_metadata",
    "processor_charges_net",
    "processor_refunds_note",
    "project_collections_cover",
    "project_collections_projects",
    "project_images_spec_options",
    "projects_abstract",
    "projects_allowed_transitions",
    "projects_avatar",
    "projects_collections",
    "projects_filter_archived",
    "projects_filter_bedrooms",
    "projects_filter_city",
    "projects_filter_price",
    "projects_filter_query",
    "projects_hero",
    "projects_metadata",
    "promotions_floor_plans",
    "promotions_lots",
    "promotions_status",
    "promotions_units",
    "public_project",
    "public_projects",
    "recently_sold_units",
    "reservations_allowed_transitions",
    "reservations_cancellation_reason",
    "reservations_metadata",
    "reservations_negotiation",
    "reservations_notes",
    "reservations_ppsf",
    "reservations_total_contract_price",
    "search",
    "service_intelligence_generations_allowed_transitions",
    "spec_elements_standard_option",
    "spec_options_cost",
    "spec_options_currency",
    "tasks_allowed_transitions",
    "tasks_is_overdue",
    "trackers_hit_count",
    "trackers_last_hit_at",
    "trackers_lead_count",
    "units_active_reservation",
    "units_allowed_transitions",
    "units_buyer",
    "units_days_on_market",
    "units_estimated_delivery_date",
    "units_filter_delivery_date",
    "units_filter_price",
    "units_filter_query",
    "units_floor_plan_overrides",
    "units_lease_permit",
    "units_metadata",
    "units_original_list_price",
    "units_ppsf",
    "units_price",
    "units_price_history",
    "units_promotions",
    "units_sold_price",
    "units_standard_status",
    "user_integration_apps",
    "user_integrations_allowed_transitions",
    "users_cards",
    "users_email",
    "users_email_verified_at",
    "users_full_name",
    "users_integrations",
    "users_last_login_at",
    "users_permissions",
    "users_reservations",
    "users_username",
    "viewer",
    "webhooks_allowed_transitions",
    "webhooks_deliveries",
    "webhooks_failure_count",
    "webhooks_last_delivery_at",
    "workflow_executions_allowed_transitions",
    "workflows_allowed_transitions",
    "workflows_counts",
    "workflows_enabled",
    "workflows_executions",
    "workflows_last_run_at",
    "workflows_next_run_at",
    "workflows_steps",
    "workflows_trigger_error",
  ],
  /** Called by invoker functions of the API with what they have checked; the API shows none of them. */
  internals: [
    "construction_has_come_to",
    "discount_amount",
    "is_reason_of_buyer",
    "personalization_sums",
    "personalization_total",
    "project_currency",
    "require_enabled_workflow",
    "require_workflow",
    "slug_owner",
    "take_contact_message",
    "take_project_message",
  ],
};

test("what a visitor without a token may call was reviewed", async () => {
  const callable = `${functions} where has_function_privilege('plat_anonymous', p.oid, 'execute')`;
  const names = (schema: string, condition: string) =>
    column(
      `select p.proname from ${callable} and n.nspname = '${schema}' and ${condition} order by p.proname collate "C"`,
    );
  expect(await names("app_public", "p.provolatile = 'v'")).toEqual(callableByAnybody.operations);
  // The histories that make_event_history makes read the events as the viewer.
  const histories = "(select r.table_name || '_events' from app_hidden.record_types r)";
  // The addresses that make_file_table makes are of a row that the viewer sees.
  const addresses = `(select t.table_name || end_of_name from app_private.file_tables t, unnest(array['_url', '_thumbnail_url']) end_of_name)`;
  expect(
    await names(
      "app_public",
      `p.provolatile <> 'v' and p.proname not in ${histories} and p.proname not in ${addresses}`,
    ),
  ).toEqual(callableByAnybody.reads);
  expect(await names("app_private", "true")).toEqual(callableByAnybody.internals);
});

test("definer functions that roles of the API may call beside the operations were reviewed", async () => {
  const called = await column(
    `select n.nspname || '.' || p.proname from ${functions} where p.prosecdef and has_function_privilege('plat_user', p.oid, 'execute')
       and not (n.nspname = 'app_public' and p.provolatile = 'v') order by (n.nspname || '.' || p.proname) collate "C"`,
  );
  expect(called).toEqual([
    "app_hidden.add_import_rows",
    "app_hidden.begin_card",
    "app_hidden.begin_integration",
    "app_hidden.begin_payment",
    "app_hidden.begin_refund",
    "app_hidden.begin_representative",
    "app_hidden.claim_answer",
    "app_hidden.colleague_ids",
    "app_hidden.deleted_records",
    "app_hidden.highest_price",
    "app_hidden.integration_to_connect",
    "app_hidden.keep_answer",
    "app_hidden.known_scope",
    "app_hidden.leads_with_phone",
    "app_hidden.lowest_price",
    "app_hidden.matching_buyers",
    "app_hidden.matching_leads",
    "app_hidden.offered_app",
    "app_hidden.offers_bedrooms",
    "app_hidden.offers_price",
    "app_hidden.project_can",
    "app_hidden.project_distances",
    "app_hidden.project_today",
    "app_hidden.report_can",
    "app_hidden.report_rights",
    "app_hidden.search_matches",
    "app_hidden.units_with_words",
    "app_hidden.viewer_assigned_buyers",
    "app_hidden.viewer_bought_projects",
    "app_hidden.viewer_charges",
    "app_hidden.viewer_counterparts",
    "app_hidden.viewer_deal_agents",
    "app_hidden.viewer_organizations",
    "app_hidden.viewer_own_projects",
    "app_hidden.viewer_projects",
    "app_hidden.viewer_purchase_appointments",
    "app_hidden.viewer_purchase_floor_plans",
    "app_hidden.viewer_purchase_leads",
    "app_hidden.viewer_purchase_lots",
    "app_hidden.viewer_purchase_negotiations",
    "app_hidden.viewer_purchase_offers",
    "app_hidden.viewer_purchase_projects",
    "app_hidden.viewer_purchase_reservations",
    "app_hidden.viewer_purchase_units",
    "app_hidden.viewer_purchases",
    "app_private.begin_batch",
    "app_private.begin_execution",
    "app_private.cancel_as_buyer",
    "app_private.cancel_execution",
    "app_private.convert_lead",
    "app_private.discount_amount",
    "app_private.export_file",
    "app_private.fail_lead_email",
    "app_private.invite_buyer",
    "app_private.is_reason_of_buyer",
    "app_private.known_generation",
    "app_private.live_lead",
    "app_private.lock_lead",
    "app_private.lock_lead_or_buyer",
    "app_private.lock_negotiation",
    "app_private.lock_purchase",
    "app_private.lock_reservation",
    "app_private.note_report_run",
    "app_private.open_import",
    "app_private.pause_execution",
    "app_private.personalization_sums",
    "app_private.personalization_total",
    "app_private.project_currency",
    "app_private.request_export",
    "app_private.require_enabled_workflow",
    "app_private.require_workflow",
    "app_private.reserve_as_buyer",
    "app_private.resolve_ticket",
    "app_private.resume_execution",
    "app_private.set_buyer_agent",
    "app_private.set_lead_agent",
    "app_private.slug_owner",
    "app_private.start_generation",
    "app_private.take_contact_message",
    "app_private.take_project_message",
    "app_public.access_tokens_last_used_at",
    "app_public.buyers_net_purchase_price_balance",
    "app_public.custom_reports_last_run_at",
    "app_public.deposits_amount_due",
    "app_public.exports_progress",
    "app_public.floor_plans_available_count",
    "app_public.floor_plans_price_min",
    "app_public.nearest_city",
    "app_public.organizations_payments_requirements",
    "app_public.organizations_payments_status",
    "app_public.payment_intents_client_secret",
    "app_public.projects_abstract",
    "app_public.trackers_hit_count",
    "app_public.trackers_last_hit_at",
    "app_public.trackers_lead_count",
    "app_public.users_permissions",
    "app_public.webhooks_failure_count",
    "app_public.webhooks_last_delivery_at",
    "app_public.workflows_counts",
    "app_public.workflows_last_run_at",
    "app_public.workflows_next_run_at",
    "app_public.workflows_trigger_error",
  ]);
});

test("every table, column, type and function of the API, and every internal table, says what it is", async () => {
  expect(
    await column(
      `select c.oid::regclass from ${tables} where c.relkind in ('r', 'p', 'v') and obj_description(c.oid, 'pg_class') is null`,
    ),
  ).toEqual([]);
  // What every record has is described in one place for all: src/plugins/OutputShapesPlugin.ts.
  const shared =
    "('id', 'organization_id', 'project_id', 'user_id', 'inserted_at', 'updated_at', 'version', 'deleted_at')";
  expect(
    await column(`select c.relname || '.' || a.attname from ${tables} join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where n.nspname = 'app_public' and c.relkind in ('r', 'p', 'v', 'c') and c.relname not like '%\\_values'
        and a.attname not in ${shared} and col_description(c.oid, a.attnum) is null`),
  ).toEqual([]);
  expect(
    await column(
      `select p.oid::regprocedure from ${functions} where n.nspname = 'app_public' and obj_description(p.oid, 'pg_proc') is null`,
    ),
  ).toEqual([]);
  expect(
    await column(`select t.typname from pg_type t where t.typnamespace = 'app_public'::regnamespace and t.typtype = 'd'
      and obj_description(t.oid, 'pg_type') is null`),
  ).toEqual([]);
});

test("colleagues do not read a user's own history: when they signed in, when the password changed", async () => {
  const people = createPeople(database.ownerUrl);
  try {
    const [ann, ben] = [await people.person("ann"), await people.person("ben")];
    await people.organization("Pair", { [ann]: "OWNER", [ben]: "OWNER" });
    await owner.query("update app_public.users set last_login_at = now() where id = $1", [ben]);
    const history = (viewer: string, settings = {}) =>
      people.as<{ name: string }>(
        viewer,
        "select name from app_public.events where subject_type = 'user' and subject_id = $1 order by id",
        [ben],
        settings,
      );
    expect(await people.as(ann, "select from app_public.users where id = $1", [ben])).toHaveLength(1);
    expect(await history(ann)).toEqual([]);
    expect(await history(ben)).toEqual([{ name: "user.created" }, { name: "user.signed_in" }]);
    expect(await history(ben, { scopes: "lead.read" })).toEqual([]);
  } finally {
    await people.end();
  }
});
