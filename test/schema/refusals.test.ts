/**
 * Checks of functions that no test of operations triggers: the record is deleted, belongs to something else, has
 * expired, or exceeds a limit. Each case brings a row of the demo into such a state, and calls the function as a
 * viewer who must be refused; internal functions are called with the claims of their viewer. All changes are rolled
 * back.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Client, type DatabaseError } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

interface Refusal {
  /** The local part of the viewer's address; the service itself if omitted. */
  as?: string;
  /** Scopes of the viewer's access token. */
  scopes?: string;
  /** Statements that prepare the rows, executed without triggers. */
  given?: string;
  call: string;
  /** A part of the message. */
  says: string;
}

let database: TestDatabase;
let client: Client;

beforeAll(async () => {
  database = await createTestDatabase("demo");
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(`create schema refusals; grant usage on schema refusals to plat_user;
    create view refusals.ids as select
      (select id from app_public.organizations where slug like 'larkfield%') as home,
      (select id from app_public.organizations where slug like 'quayside%') as sellers,
      (select id from app_public.projects where title = 'Larkfield Gardens') as project,
      (select id from app_public.projects where title = 'The Foundry Lofts') as private_project,
      (select id from app_public.agreements) as agreement,
      (select e.id from app_public.workflow_executions e order by e.id limit 1) as execution,
      (select l.id from app_public.leads l join app_public.projects p on p.id = l.project_id where p.title = 'Larkfield Gardens'
        and l.status = 'NEW' and l.deleted_at is null order by l.id limit 1) as lead,
      (select l.id from app_public.leads l join app_public.projects p on p.id = l.project_id where p.title = 'Larkfield Gardens'
        and l.status = 'NEW' and l.deleted_at is null order by l.id offset 1 limit 1) as other_lead,
      (select b.id from app_public.buyers b join app_public.projects p on p.id = b.project_id where p.title = 'Larkfield Gardens'
        and b.user_id is null and b.status <> 'CANCELLED' order by b.id limit 1) as purchase,
      (select d.id from app_public.deposits d join app_public.projects p on p.id = d.project_id where p.title = 'Larkfield Gardens'
        and d.reservation_id is null order by d.id limit 1) as deposit,
      (select r.id from app_public.reservations r join app_public.projects p on p.id = r.project_id where p.title = 'Larkfield Gardens'
        and r.deleted_at is null order by r.id limit 1) as reservation,
      (select u.id from app_public.units u join app_public.projects p on p.id = u.project_id where p.title = 'Larkfield Gardens'
        and u.status = 'AVAILABLE' order by u.id limit 1) as unit,
      (select id from app_public.workflows where status = 'ENABLED' order by id limit 1) as workflow,
      '00000000-0000-0000-0000-000000000001'::uuid as nothing;
    grant select on refusals.ids to plat_user;`);
  // The rows of a case stay the same, whatever it changes.
  await client.query(
    "create table refusals.named as table refusals.ids; drop view refusals.ids; alter table refusals.named rename to ids; grant select on refusals.ids to plat_user",
  );
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** The refusal of the call; null if it succeeds. */
async function refusalOf({ as, scopes, given, call }: Refusal): Promise<string | null> {
  await client.query("begin");
  try {
    if (given)
      await client.query(
        `set local session_replication_role = replica; ${given}; set local session_replication_role = origin`,
      );
    if (as)
      await client.query(
        "select set_config('plat.user_id', (select user_id::text from app_hidden.user_identities where email = $1), true)",
        [`${as}@plat.example`],
      );
    if (scopes)
      await client.query(
        "select set_config('plat.scopes', $1, true), set_config('plat.token_id', gen_random_uuid()::text, true)",
        [scopes],
      );
    // Functions that users may not execute are called by definers on their behalf.
    if (as && !/app_private\./.test(call)) await client.query("set local role plat_user");
    await client.query(`select ${call} from refusals.ids`);
    return null;
  } catch (error) {
    return (error as DatabaseError).message;
  } finally {
    await client.query("rollback");
  }
}

function refuses(refusals: Record<string, Refusal>): void {
  test.each(Object.entries(refusals))("%s", async (_, refusal) => {
    expect(await refusalOf(refusal)).toContain(refusal.says);
  });
}

/** A row of a table with only these values. */
const row = (table: string, values: string) =>
  `jsonb_populate_record(null::${table}, jsonb_build_object(${values}))`;
const ticket = (values = "") => row("app_public.escalation_tickets", values);
const inExecution = (status: string) =>
  `alter table app_public.workflow_executions drop constraint if exists workflow_executions_ended;
   update app_public.workflow_executions set status = '${status}' where id = (select execution from refusals.ids)`;

describe("actions of tickets", () => {
  refuses({
    "a decided dispute cannot be accepted": {
      call: `app_private.accept_dispute_by_ticket(${ticket("'subject_id', nothing")})`,
      says: "The bank has already decided.",
    },
    "an ended execution cannot be cancelled": {
      given: inExecution("COMPLETED"),
      call: `app_private.cancel_execution_by_ticket(${ticket("'workflow_execution_id', execution")})`,
      says: "The execution is already COMPLETED.",
    },
    "a ticket without an execution cannot act on one": {
      call: `app_private.execution_of_ticket(${ticket()})`,
      says: "This ticket does not refer to a workflow execution.",
    },
    "a failed execution cannot be resumed": {
      given: inExecution("FAILED"),
      call: `app_private.resume_execution_by_ticket(${ticket("'workflow_execution_id', execution")})`,
      says: "The execution is FAILED.",
    },
    "a step can only be retried if its execution waits at it": {
      given: inExecution("RUNNING"),
      call: `app_private.require_failed_step(${ticket("'workflow_execution_id', execution, 'input', '{\"sequence\": 1}'::jsonb")})`,
      says: "no longer waits at this step",
    },
    "a lead cannot be merged with itself": {
      call: `app_private.merge_leads_by_ticket(${ticket("'subject_type', 'lead', 'subject_id', lead, 'lead_id', lead")})`,
      says: "This ticket does not refer to two leads.",
    },
    "a ticket without a lead or purchase cannot be reassigned": {
      call: `app_private.reassign_by_ticket(${ticket()})`,
      says: "no lead or purchase that could be reassigned",
    },
    "the new assignee must exist": {
      call: `app_private.reassign_by_ticket(${ticket("'lead_id', lead, 'assignee_id', nothing")})`,
      says: "There is no such user.",
    },
    "a purchased home cannot be released": {
      call: `app_private.release_claim_by_ticket(${ticket(
        "'input', jsonb_build_object('claim_id', (select c.id from app_hidden.claims c where c.kind = 'PURCHASE' and c.released_at is null limit 1))",
      )})`,
      says: "The home has been bought",
    },
    "a deleted integration cannot be retried": {
      call: `app_private.retry_integration_by_ticket(${ticket("'subject_id', nothing")})`,
      says: "The integration was deleted",
    },
    "a ticket without a draft cannot send one": {
      call: `app_private.send_draft_by_ticket(${ticket()})`,
      says: "This ticket does not refer to a draft.",
    },
    "a deleted draft cannot be sent": {
      call: "app_private.send_generation(nothing, nothing)",
      says: "There is no such draft.",
    },
    "a ticket of another organization is unknown": {
      as: "sofia",
      given: `insert into app_public.escalation_tickets (id, organization_id, kind, title, cause, available_actions)
        select nothing, home, (select value from app_public.escalation_kind_values order by 1 limit 1), 'Ticket', 'ticket', '{DISMISS}' from refusals.ids`,
      call: "app_private.resolve_ticket(nothing, 'DISMISS', null, null, null)",
      says: "There is no such ticket.",
    },
  });
});

describe("merged and converted leads", () => {
  const bothNegotiate = `update app_public.negotiations n set lead_id = x.lead, unit_id = i.unit, status = 'OPEN'
    from refusals.ids i, (select n.id, (array[i.lead, i.other_lead])[row_number() over (order by n.id)] as lead
      from app_public.negotiations n, refusals.ids i order by n.id limit 2) x where x.id = n.id`;
  /** The lead, of the seller, was merged into the other one. */
  const merged = (moved: string, other = "assignee_id = null") => `
    update app_public.leads l set deleted_at = now(), merged_into_id = i.other_lead, assignee_id =
      (select user_id from app_hidden.user_identities where email = 'sofia@plat.example') from refusals.ids i where l.id = i.lead;
    update app_public.leads l set ${other} from refusals.ids i where l.id = i.other_lead;
    insert into app_private.merged_leads (lead_id, into_id, direct_into_id, merged_at, filled, new_tags, facts, moved)
      select lead, other_lead, other_lead, now(), '{}', '{}', '{}', ${moved} from refusals.ids`;
  refuses({
    "a deleted lead cannot be merged": {
      call: "app_private.merge_duplicates(lead, nothing)",
      says: "One of the two leads was deleted.",
    },
    "two leads that negotiate for one unit cannot be merged": {
      given: bothNegotiate,
      call: "app_private.merge_duplicates(lead, other_lead)",
      says: "Both leads negotiate about the same unit",
    },
    "two leads with purchases without a home cannot be merged": {
      given: `update app_public.buyers b set lead_id = x.lead, unit_id = null, lot_id = null, deleted_at = null
        from (select b.id, (array[i.lead, i.other_lead])[row_number() over (order by b.id)] as lead
          from app_public.buyers b, refusals.ids i where b.status <> 'CANCELLED' order by b.id limit 2) x where x.id = b.id`,
      call: "app_private.merge_duplicates(lead, other_lead)",
      says: "Both leads have a purchase without a home",
    },
    "a merged lead cannot be separated from one that the viewer may not change": {
      as: "sofia",
      given: merged("'{}'", "assignee_id = null"),
      call: "app_private.unmerge_lead(lead)",
      says: "There is no such lead.",
    },
    "a merged lead cannot be separated from a deleted one": {
      as: "demo",
      given: merged("'{}'", "deleted_at = now()"),
      call: "app_private.unmerge_lead(lead)",
      says: "The lead that it was merged into has been deleted.",
    },
    "a merged lead cannot be separated without a record of what moved": {
      as: "demo",
      given: merged("null"),
      call: "app_private.unmerge_lead(lead)",
      says: "This lead was merged by an earlier version",
    },
    "a purchase cannot be cancelled if its lead has a reservation and the person registered again": {
      given: `update app_public.leads l set status = 'CONVERTED', email = 'twice@example.com' from refusals.ids i where l.id = i.lead;
        update app_public.leads l set email = 'twice@example.com' from refusals.ids i where l.id = i.other_lead;
        update app_public.buyers b set lead_id = i.lead from refusals.ids i where b.id = i.purchase;
        update app_public.reservations r set lead_id = i.lead, deleted_at = null, status = 'PENDING' from refusals.ids i
          where r.id = (select min(id::text)::uuid from app_public.reservations)`,
      call: "app_private.reopen_lead((select b from app_public.buyers b where b.id = purchase))",
      says: "The lead of this purchase has an open reservation",
    },
    "a purchase is of either a unit or a lot": {
      as: "demo",
      call: "app_private.convert_lead(lead, null, unit, unit, null, null, null, null)",
      says: "Specify the unit or the lot, not both.",
    },
    "a purchase needs a price": {
      as: "demo",
      given:
        "alter table app_public.units drop constraint units_priced; update app_public.units u set price = null where u.id = (select unit from refusals.ids)",
      call: "app_private.convert_lead(lead, null, unit, null, null, null, null, null)",
      says: "No price is known; specify one.",
    },
    "converting a lead requires buyer.write": {
      as: "demo",
      scopes: "org.member,lead.read,lead.write",
      call: "app_private.convert_lead(lead, null, unit, null, 1, null, null, null)",
      says: "This requires the permission buyer.write.",
    },
    "leads cannot be written in an archived project": {
      as: "demo",
      given: "update app_public.projects set archived_at = now()",
      call: "app_private.write_leads(project, 'crm', '{}', 'ERROR', false)",
      says: "This project is archived and read-only",
    },
    "purchases cannot be cancelled in an archived project": {
      as: "demo",
      given: "update app_public.projects set archived_at = now()",
      call: "app_private.cancel_buyer(purchase, '{}')",
      says: "This project is archived and read-only",
    },
    "a deposit can be listed only once": {
      given: "update app_public.deposits set status = 'PAID', amount_paid = 1, amount_refunded = 0",
      call: `app_private.returns_of_cancellation(array[deposit],
        jsonb_build_object('returns', jsonb_build_array(jsonb_build_object('deposit_id', deposit), jsonb_build_object('deposit_id', deposit))), 0)`,
      says: "List each deposit only once.",
    },
    "a visitor can only reserve if the fee can be paid": {
      as: "sofia",
      given: `delete from app_public.organization_user_connections; update app_public.users set email_verified_at = now();
        update app_public.projects p set public_reservations = true, public_reservation_fee_required = true, reservation_fee = 100
          from refusals.ids i where p.id = i.project`,
      call: "app_private.reserve_as_visitor(jsonb_build_object('unit_id', unit))",
      says: "The fee of this reservation cannot be paid here yet",
    },
    "holding a home requires the permission to sell it": {
      as: "sofia",
      given:
        "delete from app_public.project_organizations a using refusals.ids i where a.organization_id = i.sellers",
      // The refusal does not reveal for whom it is held.
      call: "app_public.create_unit_hold(jsonb_build_object('unit_id', (select u.id from app_public.units u where u.project_id = project and u.status = 'SOLD' limit 1)))",
      says: "You may not create this unit hold.",
    },
    "creating a hold directly requires the permission to sell the home": {
      as: "sofia",
      given: `update app_public.units u set status = 'SOLD' from refusals.ids i where u.id = i.unit;
        delete from app_public.project_organizations a using refusals.ids i where a.organization_id = i.sellers`,
      call: "app_hidden.create_record(null::app_public.unit_holds, jsonb_build_object('unit_id', unit))",
      says: "You may not create this unit hold.",
    },
    "an agent that the organization does not have is unknown": {
      as: "demo",
      call: `app_private.agent_for(home, ${row("app_public.agent_input", "'id', nothing")}, 'CA')`,
      says: "There is no such agent.",
    },
    "the brokerage of an agent has a maximum length": {
      as: "demo",
      call: `app_private.check_agent(home, ${row("app_public.agent_input", "'name', 'Ann', 'brokerage', repeat('x', 301)")}, 'CA')`,
      says: "Use at most 300 characters.",
    },
    "the lead of a draft must exist": {
      call: "app_private.begin_lead_email_for(nothing)",
      says: "There is no such lead.",
    },
    "the lead source of a message must belong to the project": {
      as: "demo",
      call: "app_private.take_project_message(project, jsonb_build_object('source_id', nothing), null)",
      says: "There is no such lead source in this project.",
    },
    "a deleted lead source cannot be deleted again": {
      as: "demo",
      call: "app_public.delete_lead_source(nothing)",
      says: "There is no such lead source.",
    },
    "inviting a buyer requires buyer.write": {
      as: "sofia",
      given: "update app_public.buyers b set assignee_id = null from refusals.ids i where b.id = i.purchase",
      call: "app_private.invite_buyer(purchase, 'bea@example.com', null)",
      says: "There is no such buyer.",
    },
    "inviting a buyer without an email address requires one": {
      as: "demo",
      given: "update app_public.buyers b set email = null where b.id = (select purchase from refusals.ids)",
      call: "app_private.invite_buyer(purchase, null, null)",
      says: "The buyer has no email address; specify one.",
    },
  });
});

describe("conditions of the caller are checked again by the function that acts", () => {
  refuses({
    "a message to a private project": {
      as: "sofia",
      given:
        "delete from app_public.project_organizations a using refusals.ids i where a.organization_id = i.sellers",
      call: "app_private.take_project_message(private_project, '{}', null)",
      says: "There is no such project.",
    },
    "a message to a private project, by its operation": {
      as: "sofia",
      given:
        "delete from app_public.project_organizations a using refusals.ids i where a.organization_id = i.sellers",
      call: "app_public.contact_project(private_project, 'Sofia', 'sofia@example.com')",
      says: "There is no such project.",
    },
    "a message to an organization that is not visible to visitors": {
      as: "sofia",
      given: `update app_public.organizations set has_public_project = false;
        delete from app_public.project_organizations a using refusals.ids i where a.organization_id = i.sellers`,
      call: "app_private.take_contact_message(home, '{}')",
      says: "There is no such organization.",
    },
    "moving the leads of a source requires the permission to manage the project": {
      as: "mei",
      call: "app_private.move_lead_source((select s.id from app_public.lead_sources s where s.organization_id = home and not s.is_system limit 1), nothing)",
      says: "You may not",
    },
    "an execution of another organization": {
      as: "sofia",
      call: "app_private.require_execution(execution)",
      says: "There is no such workflow execution.",
    },
    "running an execution requires workflow.run": {
      as: "demo",
      scopes: "org.member,workflow.read,lead.read,buyer.read,sale.read",
      call: "app_private.require_execution(execution)",
      says: "workflow.run",
    },
    "running a workflow requires workflow.run": {
      as: "demo",
      scopes: "org.member,workflow.read",
      call: "app_private.require_workflow(workflow, 'id')",
      says: "This requires the permission workflow.run",
    },
    "changing a price by a percentage requires inventory.read": {
      as: "demo",
      scopes: "project.read,inventory.manage",
      call: "app_public.update_units(project, ids => array[unit::text]::app_public.id_or_slug[], price_delta_percent => 5)",
      says: "A change by percentage requires the permission inventory.read",
    },
    "an unknown execution": {
      as: "demo",
      call: "app_hidden.see_execution(nothing)",
      says: "There is no such workflow execution.",
    },
    "an export whose requester left": {
      as: "demo",
      call: "app_hidden.open_export(nothing)",
      says: "may no longer export from the organization",
    },
    "a table with policies in an unsupported form": {
      given: "create policy restricting on app_public.tasks as restrictive for select using (true)",
      call: "app_private.viewer_sees('app_public.tasks', nothing)",
      says: "have a form that viewer_reaches does not read",
    },
    "an unknown column of reports": {
      call: "app_private.add_report_columns('LEADS', '{nothing}', '{}', '{}')",
      says: "there is no column or function nothing",
    },
    "a report with more rows than the format permits": {
      as: "demo",
      given: `create or replace function app_hidden.most_rows_of_export(subject text, format text) returns int language sql immutable as 'select 1';
        insert into app_public.custom_reports (id, organization_id, name, subject, columns, created_by_id)
          select nothing, home, 'Leads', 'LEADS', '["name"]', u.user_id from refusals.ids, app_hidden.user_identities u where u.email = 'demo@plat.example'`,
      call: "app_public.export_custom_report(nothing, 'PDF')",
      says: "The export has more than 1 rows",
    },
    "tables that refer to each other cannot be emptied in order": {
      given: `create table app_private.hens (id uuid primary key, organization_id uuid, egg_id uuid);
        create table app_private.eggs (id uuid primary key, organization_id uuid, hen_id uuid references app_private.hens);
        alter table app_private.hens add foreign key (egg_id) references app_private.eggs`,
      call: "app_private.organization_relations()",
      says: "These tables refer to each other",
    },
    "an export of an organization whose requester left": {
      as: "demo",
      call: "app_hidden.open_organization_export(nothing)",
      says: "may no longer export the organization",
    },
    "an import into a project of others": {
      as: "sofia",
      call: "app_hidden.begin_import('importUnits', private_project::text, '{}')",
      says: "There is no such project.",
    },
    "an import into an archived project": {
      as: "demo",
      given: "update app_public.projects set archived_at = now()",
      call: "app_private.start_import('importLeads', project)",
      says: "This project is archived and read-only",
    },
    "a report with more values than a condition can have": {
      call: `app_hidden.report_condition(${row("app_hidden.report_columns", "'name', 'id', 'type', 'ID'")},
        (select jsonb_agg(gen_random_uuid()) from generate_series(1, 1001)), 'filter.id')`,
      says: "Use at most 1000 values.",
    },
    "exchanging a partition with an incomplete copy": {
      given: `create table app_partitions.quarter as select 1 as id; create table app_partitions.quarter_rewrite (id int);
        delete from app_private.event_rewrite_changes`,
      call: "app_private.exchange_event_partition('quarter', 1)",
      says: "the copy of quarter lacks 1 events",
    },
    "a report with an order that names no column": {
      as: "demo",
      call: `app_hidden.report_query('LEADS', home, null, '["status"]', '{}', '{}', '[1]')`,
      says: 'Must be the name of a column, or {"column": …, "direction": …}.',
    },
    "a description of an enumeration that omits values": {
      call: `app_private.describe_enum('lead_origin', 'Where leads come from.', array[array['PHONE', 'By phone.']])`,
      says: "The enumeration lead_origin has the values",
    },
    "the floor plans of a public project of others": {
      as: "sofia",
      call: "app_public.export_floor_plans(project::text)",
      says: "This requires the permission report.run in the organization of the project.",
    },
  });

  test("an agreement that was voided at its provider is voided", async () => {
    await client.query("begin");
    try {
      await client.query(
        'select app_private.follow_envelope(agreement, \'{"status": "VOIDED"}\') from refusals.ids',
      );
      const { rows } = await client.query("select status, void_reason from app_public.agreements");
      expect(rows).toEqual([{ status: "VOIDED", void_reason: "It was voided at the provider." }]);
    } finally {
      await client.query("rollback");
    }
  });

  test("an unknown record type is visible to nobody", async () => {
    const { rows } = await client.query(
      "select app_hidden.sees_subject('nothing', gen_random_uuid()) as sees",
    );
    expect(rows).toEqual([{ sees: false }]);
  });
});

describe("signed agreements", () => {
  const file = `insert into app_public.agreement_files (id, organization_id, project_id, agreement_id, file, filename, filemime, filesize, checksum, number)
    select nothing, a.organization_id, a.project_id, a.id, jsonb_build_object('checksum', repeat('a', 64), 'filename', 'a.pdf'), 'a.pdf', 'application/pdf', 1, repeat('a', 64), `;
  const signer = (
    status: string,
  ) => `insert into app_public.agreement_signers (id, organization_id, project_id, agreement_id, role, name, email, status)
    select nothing, a.organization_id, a.project_id, a.id, 'BUYER', 'Bea', 'bea@example.com', '${status}' from app_public.agreements a, refusals.ids`;
  const agreement = (change: string) => `update app_public.agreements a set ${change}`;
  const call = "app_private.require_turn(nothing)";
  refuses({
    "an agreement that is signed at a provider": {
      given: `${signer("INVITED")}; ${agreement("signing_provider = 'DOCUSIGN'")}`,
      call,
      says: "This agreement is signed at its provider",
    },
    "an expired agreement": {
      given: `${signer("INVITED")}; ${agreement("expires_at = now() - interval '1 second'")}`,
      call,
      says: "The time to sign this agreement has expired",
    },
    "a second signature of a signer": {
      given: `alter table app_public.agreement_signers drop constraint agreement_signers_signed_file; ${signer("SIGNED")}`,
      call,
      says: "You have already signed this agreement.",
    },
    "a signature before those of earlier signers": {
      given: signer("WAITING"),
      call,
      says: "Other signers sign first",
    },
    "a signature in an archived project": {
      given: `${signer("INVITED")}; update app_public.projects set archived_at = now()`,
      call,
      says: "This project is archived and read-only",
    },
    "a code for another version": {
      given: `${signer("INVITED")}; insert into app_private.agreement_codes (signer_id, file_id, channel, proof, proof_expires_at)
        select nothing, nothing, 'EMAIL', nothing, now() + interval '1 hour' from refusals.ids`,
      call: `app_private.take_proof(row(null, ${row("app_public.agreement_signers", "'id', nothing")},
        ${row("app_public.agreement_files", "'id', lead")})::app_private.turn, nothing::text)`,
      says: "The document has changed since the code was sent",
    },
    "a change of the provider after sending": {
      as: "demo",
      call: "app_hidden.update_record(null::app_public.agreements, jsonb_build_object('id', agreement, 'signing_provider', 'DOCUSIGN'))",
      says: "The signing provider can only be changed while the agreement is a draft.",
    },
    "sending to a provider without signers": {
      as: "demo",
      given: agreement("signing_provider = 'DOCUSIGN', status = 'DRAFT', sent_at = null, viewed_at = null"),
      call: "app_hidden.update_record(null::app_public.agreements, jsonb_build_object('id', agreement, 'status', 'SENT'))",
      says: "There are no signers yet",
    },
    "more than 20 signers": {
      as: "demo",
      given: `${agreement("status = 'DRAFT'")}; ${signer("WAITING").replace("select nothing", "select gen_random_uuid()")}, generate_series(1, 20)`,
      call: "app_hidden.create_record(null::app_public.agreement_signers, jsonb_build_object('agreement_id', agreement, 'role', 'BUYER', 'name', 'Bea', 'email', 'b@example.com'))",
      says: "An agreement can have at most 20 signers.",
    },
    "a change of a signer of an agreement at a provider": {
      as: "demo",
      given: `${signer("INVITED")}; ${agreement("signing_provider = 'DOCUSIGN'")}`,
      call: "app_hidden.update_record(null::app_public.agreement_signers, jsonb_build_object('id', nothing, 'name', 'Ben'))",
      says: "The signers of an agreement at a provider cannot be changed",
    },
    "a code by text message for a signer without a phone number": {
      as: "sofia",
      given: `${signer("INVITED")}; update app_public.users set email_verified_at = now();
        update app_public.agreement_signers s set email = 'sofia@plat.example' from refusals.ids where s.id = nothing`,
      call: "app_public.request_signing_code(nothing, null, 'SMS')",
      says: "This signer has no phone number",
    },
    "more than 100 versions": {
      as: "demo",
      given: `${agreement("status = 'DRAFT'")}; ${file} 100 from app_public.agreements a, refusals.ids`,
      call: `app_hidden.create_record(null::app_public.agreement_files, jsonb_build_object('agreement_id', agreement,
        'file', jsonb_build_object('checksum', repeat('0', 64), 'filename', 'b.pdf')))`,
      says: "An agreement can have at most 100 versions",
    },
  });
});

describe("payments", () => {
  const pay = (operation: string, input: string) =>
    `app_hidden.begin_payment('${operation}', jsonb_build_object(${input}), null)`;
  const takesPayments = `insert into app_private.payments_accounts (organization_id, processor_id, status) select home, 'account', 'ENABLED' from refusals.ids`;
  const cards = (
    amount: number,
  ) => `insert into app_public.processor_cards (id, user_id, processor_id, brand, last4, exp_month, exp_year, funding, fingerprint, is_default)
    select case n when 1 then nothing else gen_random_uuid() end, (select user_id from app_hidden.user_identities where email = 'demo@plat.example'), 'card ' || n, 'VISA', '4242', 1, 2099, 'CREDIT', 'f' || n, n = 1
    from generate_series(1, ${amount}) n, refusals.ids`;
  const people = (
    amount: number,
  ) => `insert into app_public.organization_payments_representatives (id, organization_id, kind, first_name, last_name, email)
    select case n when 1 then nothing else gen_random_uuid() end, home, (select value from app_public.representative_kind_values order by 1 desc limit 1), 'Rita', 'Reyes', 'r' || n || '@example.com' from generate_series(1, ${amount}) n, refusals.ids`;
  refuses({
    "a user has at most 50 cards": {
      as: "demo",
      given: cards(50),
      call: "app_hidden.begin_card(null)",
      says: "You have reached the limit of 50 cards; remove one first.",
    },
    "the default card cannot be unset": {
      as: "demo",
      given: cards(1),
      call: "app_public.update_processor_card(nothing, false)",
      says: "The default card cannot be unset; make another card the default instead.",
    },
    "an organization has at most 50 representatives": {
      as: "demo",
      given: people(50),
      call: `app_hidden.begin_representative('createOrganizationPaymentsRepresentative', jsonb_build_object('organizationId', home,
        'kind', (select value from app_public.representative_kind_values order by 1 desc limit 1), 'firstName', 'Rita', 'lastName', 'Reyes', 'email', 'another@example.com'), null)`,
      says: "The organization has reached the limit of 50 representatives",
    },
    "a sandbox organization accepts no real payments": {
      as: "demo",
      given: "update app_public.organizations set is_sandbox = true",
      call: `app_hidden.begin_representative('createOrganizationPaymentsRepresentative', jsonb_build_object('organizationId', home), null, true)`,
      says: "A sandbox organization takes no real payments",
    },
    "a lost update of a representative is refused": {
      as: "demo",
      given: people(1),
      call: `app_hidden.begin_representative('updateOrganizationPaymentsRepresentative',
        jsonb_build_object('id', nothing, 'expectedVersion', 7, 'firstName', 'Rosa'), null)`,
      says: "Somebody else has changed this record since you read it",
    },
    "the deposit must belong to the given reservation": {
      as: "demo",
      call: pay("createPaymentIntent", "'depositId', deposit, 'reservationId', nothing, 'amount', 1"),
      says: "The deposit does not belong to this reservation",
    },
    "an invisible organization cannot be paid": {
      as: "sofia",
      given: `update app_public.organizations set has_public_project = false;
        delete from app_public.project_organizations a using refusals.ids i where a.organization_id = i.sellers`,
      call: pay("createPaymentIntent", "'organizationId', home, 'amount', 1"),
      says: "There is no such organization.",
    },
    "payments in an archived project are refused": {
      as: "demo",
      given: "update app_public.projects set archived_at = now()",
      call: pay("createPaymentIntent", "'depositId', deposit, 'amount', 1"),
      says: "This project is archived and read-only",
    },
    "a payment of a reservation requires that the payer may see it": {
      as: "sofia",
      given: `${takesPayments}; update app_public.reservations set assignee_id = null, buyer_id = null`,
      call: pay("createPaymentIntent", "'reservationId', reservation, 'amount', 1"),
      says: "There is no such reservation.",
    },
    "a payment of a reservation cannot exceed its price": {
      as: "demo",
      given: takesPayments,
      call: pay(
        "createPaymentIntent",
        "'reservationId', (select r.id from app_public.reservations r where r.project_id = project and r.status in ('PENDING', 'CONFIRMED', 'CONVERTED') limit 1), 'amount', 99999999",
      ),
      says: "The amount exceeds the price",
    },
    "a payment without a card requires one": {
      as: "demo",
      given: `${takesPayments}; update app_public.deposits d set status = 'SCHEDULED', amount_paid = 0, amount_refunded = 0 from refusals.ids i where d.id = i.deposit`,
      call: pay("createProcessorCharge", "'depositId', deposit, 'amount', 1"),
      says: "You have no card yet",
    },
  });
});

describe("integrations and files", () => {
  refuses({
    "connecting an application of an organization requires org.admin": {
      as: "mei",
      call: "app_hidden.offered_app('ORGANIZATION', home::text, 'docusign', null)",
      says: "org.admin",
    },
    "so does starting its consent": {
      as: "mei",
      call: "app_hidden.begin_integration('ORGANIZATION', home, 'docusign', 'Signing', '{}', 'key')",
      says: "org.admin",
    },
    "users can only connect their own accounts": {
      as: "mei",
      call: "app_hidden.begin_integration('USER', nothing, 'google_calendar', 'Calendar', '{}', 'key')",
      says: "Users can only connect their own accounts.",
    },
    "a restricted token cannot connect the user's own applications": {
      as: "demo",
      scopes: "org.admin",
      call: "app_hidden.offered_app('USER', null, (select a.key from app_public.integration_apps a where a.scope = 'USER' limit 1), null)",
      says: "This access token cannot manage your personal integrations",
    },
    "an application that the operator has not registered is unavailable": {
      as: "demo",
      given: "update app_public.integration_apps set available = false",
      call: "app_hidden.offered_app('ORGANIZATION', home::text, (select a.key from app_public.integration_apps a where a.scope = 'ORGANIZATION' limit 1), null)",
      says: "This application is not available here",
    },
    "storing credentials requires the permission in the organization": {
      as: "mei",
      given: `insert into app_public.organization_integrations (id, app_id, name, organization_id)
        select nothing, (select a.id from app_public.integration_apps a where a.scope = 'ORGANIZATION' limit 1), 'Signing', home from refusals.ids`,
      call: "app_hidden.keep_credentials('ORGANIZATION', nothing, 'sealed')",
      says: "integration",
    },
    "an organization has a limit of integrations": {
      as: "demo",
      given: `insert into app_public.organization_integrations (app_id, name, organization_id)
        select a.id, 'Signing ' || n, home from generate_series(1, 100) n, refusals.ids,
          lateral (select a.id from app_public.integration_apps a where a.scope = 'ORGANIZATION' limit 1) a`,
      call: "app_hidden.begin_integration('ORGANIZATION', home, (select a.key from app_public.integration_apps a where a.scope = 'ORGANIZATION' and a.available limit 1), 'Signing', '{}', 'key')",
      says: "integrations is reached; delete one first.",
    },
    "uploads to an unknown record type are refused": {
      as: "demo",
      call: "app_hidden.may_upload('nothing', '{}')",
      says: "Nothing says who may upload to nothing.",
    },
    "a project without an avatar": {
      as: "demo",
      call: "app_public.delete_project_avatar(project)",
      says: "or it has no avatar",
    },
    "an organization without an avatar": {
      as: "demo",
      call: "app_public.delete_organization_avatar(home)",
      says: "This organization has no avatar.",
    },
    "the avatar of an organization, by a member": {
      as: "mei",
      call: "app_public.delete_organization_avatar(home)",
      says: "org.owner",
    },
    "the sales office of an unknown project": {
      as: "demo",
      call: "app_public.update_sales_office('{}', nothing, null)",
      says: "There is no such project.",
    },
    "a webhook without a URL": {
      as: "demo",
      call: "app_public.create_webhook(home, null, '{*}', null)",
      says: "url is required.",
    },
    "a draft that failed at the provider": {
      as: "demo",
      given: `insert into app_public.service_intelligence_generations (id, organization_id, project_id, lead_id, requested_by_id, status, error)
        select nothing, home, project, lead, (select user_id from app_hidden.user_identities where email = 'demo@plat.example'), 'FAILED', 'The provider is down.' from refusals.ids`,
      call: "app_public.suggest_lead_email(lead, jsonb_build_object('id', nothing))",
      says: "The provider is down.",
    },
    "a deleted draft": {
      as: "demo",
      call: "app_public.suggest_lead_email(lead, jsonb_build_object('id', nothing))",
      says: "There is no such lead.",
    },
  });
});

describe("options of a personalization", () => {
  const choose = (values: string) =>
    `app_hidden.choose_options(nothing, array[${row("app_public.personalization_selection_input", values)}])`;
  refuses({
    "an unknown option": {
      as: "demo",
      call: choose("'option_id', nothing"),
      says: "There is no such option in the project of the unit.",
    },
    "a quantity above the limit": {
      as: "demo",
      call: choose("'option_id', (select o.id from app_public.spec_options o limit 1), 'quantity', 10001"),
      says: "A quantity must be greater than 0 and at most 10,000.",
    },
  });
});

describe("written records", () => {
  const create = (table: string, values: string) =>
    `app_hidden.create_record(null::app_public.${table}, jsonb_build_object(${values}))`;
  const update = (table: string, values: string) =>
    `app_hidden.update_record(null::app_public.${table}, jsonb_build_object(${values}))`;
  const personalization = `insert into app_public.personalizations (id, organization_id, project_id, unit_id, title, status)
    select nothing, home, project, unit, 'Kitchen', 'DRAFT' from refusals.ids`;
  const promotion = (id: string) => `insert into app_public.promotions
      (id, organization_id, project_id, title, kind, applies_to, amount, status, stackable, starts_at)
    select ${id}, home, project, 'Spring', 'PRICE_REDUCTION', 'PROJECT', 1000, 'ACTIVE', false, now() from refusals.ids`;
  const credit = (id: string) =>
    create(
      "personalization_credits",
      `'personalization_id', nothing, 'title', 'Spring', 'amount', 1, 'promotion_id', ${id}`,
    );
  refuses({
    "the lot of a claim must exist": {
      call: "app_private.take_claim(null, nothing, 'HOLD', 'unit_hold', nothing)",
      says: "There is no such lot.",
    },
    "a home cannot be claimed without its lot": {
      given: `update app_public.units u set lot_id = (select l.id from app_public.lots l limit 1)
        from refusals.ids i where u.id = i.unit; update app_public.lots set deleted_at = now()`,
      call: "app_private.take_claim(unit, null, 'HOLD', 'unit_hold', nothing)",
      says: "The unit was moved to another lot concurrently",
    },
    "a reservation is of either a unit or a lot": {
      as: "demo",
      call: create("reservations", "'lead_id', lead"),
      says: "Specify either the unit or the lot.",
    },
    "the unit of a reservation must exist": {
      given: "update app_public.units u set deleted_at = now() from refusals.ids i where u.id = i.unit",
      call: create("reservations", "'lead_id', lead, 'unit_id', unit"),
      says: "There is no such unit.",
    },
    "the lead of a reservation must exist": {
      given: "update app_public.leads l set deleted_at = now() from refusals.ids i where l.id = i.lead",
      call: create("reservations", "'lead_id', lead, 'unit_id', unit"),
      says: "There is no such lead",
    },
    "a reservation can only be converted with its lead": {
      given:
        "select set_config('plat.service', 'on', true); update app_public.reservations set purchase_id = null, status = 'CONFIRMED'",
      call: update(
        "reservations",
        "'id', (select r.id from app_public.reservations r where r.deleted_at is null limit 1), 'status', 'CONVERTED'",
      ),
      says: "Use convertLead to convert a reservation to a purchase.",
    },
    "the reservation of a purchase must belong to the project": {
      call: create(
        "buyers",
        "'project_id', private_project, 'first_name', 'Bea', 'reservation_id', (select r.id from app_public.reservations r where r.project_id = project limit 1)",
      ),
      says: "There is no such reservation in this project.",
    },
    "the assignee of a purchase must sell in the project": {
      call: update(
        "buyers",
        "'id', purchase, 'assignee_id', (select user_id from app_hidden.user_identities where email = 'laura@plat.example')",
      ),
      says: "A purchase can only be assigned to a member of an organization that sells in its project.",
    },
    "a closed purchase needs a closing date": {
      as: "demo",
      given:
        "update app_public.buyers b set status = 'CLOSED', purchase_date = '2026-01-05', closing_date = '2026-01-05' from refusals.ids i where b.id = i.purchase",
      call: update("buyers", "'id', purchase, 'closing_date', null"),
      says: "closingDate may not be null",
    },
    "documents cannot be added to a cancelled purchase": {
      as: "demo",
      given:
        "alter table app_public.buyers drop constraint buyers_reason; update app_public.buyers b set status = 'CANCELLED' from refusals.ids i where b.id = i.purchase",
      call: create(
        "buyer_documents",
        "'buyer_id', purchase, 'file', jsonb_build_object('checksum', repeat('0', 64), 'filename', 'b.pdf')",
      ),
      says: "This purchase was cancelled.",
    },
    "buyers cannot be invited in an archived project": {
      as: "demo",
      given: "update app_public.projects set archived_at = now()",
      call: "app_public.invite_buyer(purchase, 'bea@example.com', null)",
      says: "This project is archived and read-only",
    },
    "the lead of a negotiation must be that of its purchase": {
      as: "demo",
      given:
        "update app_public.buyers b set lead_id = i.lead, unit_id = i.unit, status = 'FIRM' from refusals.ids i where b.id = i.purchase",
      call: create("negotiations", "'unit_id', unit, 'buyer_id', purchase, 'lead_id', other_lead"),
      says: "The buyer was not converted from this lead.",
    },
    "the purchase of a personalization must belong to the project of its unit": {
      as: "demo",
      given:
        "update app_public.buyers b set project_id = i.private_project from refusals.ids i where b.id = i.purchase",
      call: create("personalizations", "'unit_id', unit, 'buyer_id', purchase, 'title', 'Kitchen'"),
      says: "There is no such buyer in the project of the unit.",
    },
    "the category of a discount must belong to the project": {
      as: "demo",
      given: `${personalization}; update app_public.spec_categories set project_id = i.private_project from refusals.ids i`,
      call: create(
        "personalization_discounts",
        "'personalization_id', nothing, 'title', 'Spring', 'percent', 1, 'category_id', (select c.id from app_public.spec_categories c limit 1)",
      ),
      says: "There is no such category in the project.",
    },
    "the promotion of a credit must belong to the project": {
      as: "demo",
      given: `${personalization}; ${promotion("lead")}; update app_public.promotions set project_id = i.private_project from refusals.ids i`,
      call: credit("lead"),
      says: "There is no such promotion in the project.",
    },
    "a promotion cannot be combined with another": {
      as: "demo",
      given: `${personalization}; ${promotion("lead")}; insert into app_public.personalization_credits
        (id, organization_id, project_id, personalization_id, title, amount, promotion_id)
          select unit, home, project, nothing, 'Spring', 1, lead from refusals.ids`,
      call: credit("lead"),
      says: "This promotion cannot be combined with another one.",
    },
    "a promotion cannot begin with the status ENDED": {
      as: "demo",
      call: create(
        "promotions",
        "'project_id', project, 'title', 'Spring', 'kind', 'PRICE_REDUCTION', 'amount', 1, 'status', 'ENDED'",
      ),
      says: "A new record cannot have the initial status ENDED.",
    },
    "a promotion cannot list more than 5,000 homes": {
      as: "demo",
      call: create(
        "promotions",
        `'project_id', project, 'title', 'Spring', 'kind', 'PRICE_REDUCTION', 'amount', 1, 'applies_to', 'UNITS',
          'unit_ids', (select jsonb_agg(gen_random_uuid()) from generate_series(1, 5001))`,
      ),
      says: "A promotion can list at most 5,000 records",
    },
    "the options that an option excludes must belong to the project": {
      as: "demo",
      given: `update app_public.spec_options o set project_id = i.private_project from refusals.ids i
        where o.id <> (select min(id::text)::uuid from app_public.spec_options)`,
      call: update(
        "spec_options",
        `'id', (select min(id::text) from app_public.spec_options), 'excluded_option_ids',
          (select jsonb_build_array(max(id::text)) from app_public.spec_options)`,
      ),
      says: "There is no such option in this project.",
    },
    "a task needs a record that it is for": {
      as: "demo",
      call: create("tasks", "'title', 'Call'"),
      says: "Specify the lead, the buyer, the project or the organization that the task is for.",
    },
    "units cannot be added to an archived project": {
      as: "demo",
      given: "update app_public.projects set archived_at = now()",
      call: create("units", "'project_id', project, 'number', 'X1'"),
      says: "This project is archived and read-only",
    },
    "the organization of an agent must exist": {
      given:
        "update app_public.organizations o set deleted_at = now() from refusals.ids i where o.id = i.home",
      call: create("agents", "'organization_id', home, 'name', 'Ann'"),
      says: "There is no such organization.",
    },
    "a slug that a concurrent transaction takes is taken": {
      as: "demo",
      given:
        "create or replace function app_private.takes_slug(table_name text, slug text) returns boolean language sql as 'select false'",
      call: update("projects", "'id', project, 'slug', 'another-slug'"),
      says: "This slug is taken; choose another.",
    },
    "a collection cannot have more than 1,000 projects": {
      as: "demo",
      call: create(
        "project_collections",
        "'organization_id', home, 'title', 'All', 'project_ids', (select jsonb_agg(gen_random_uuid()) from generate_series(1, 1001))",
      ),
      says: "A collection can have at most 1,000 projects.",
    },
    "an affiliation cannot get the role of the owner": {
      as: "demo",
      call: update(
        "project_organizations",
        "'id', (select a.id from app_public.project_organizations a where a.organization_id = sellers and a.project_id = project), 'role', 'OWNER'",
      ),
      says: "The role of the owner of a project cannot be changed.",
    },
    "a report cannot have more than 100,000 characters": {
      as: "demo",
      call: create(
        "custom_reports",
        "'organization_id', home, 'title', 'Long', 'subject', 'LEADS', 'columns', '[]'::jsonb, 'filter', jsonb_build_object('name', repeat('x', 100000))",
      ),
      says: "A report can have at most 100,000 characters.",
    },
    "an export cannot have more than 100,000 characters": {
      as: "demo",
      call: create(
        "custom_exports",
        "'organization_id', home, 'title', 'Long', 'subject', 'LEADS', 'format', 'CSV', 'columns', '[]'::jsonb, 'filter', jsonb_build_object('name', repeat('x', 100000))",
      ),
      says: "An export can have at most 100,000 characters.",
    },
  });
});

describe("executions of workflows", () => {
  const work = (input: string) => `array[row(execution, 1, ${input}::jsonb)::app_private.step_work]`;
  const step = (config: string) => row("app_public.workflow_steps", `'config', '${config}'::jsonb`);
  const aboutNobody = "update app_public.workflow_executions set lead_id = null, buyer_id = null";
  refuses({
    "a context must be an object": {
      as: "demo",
      call: "app_public.create_workflow_execution(workflow, lead, '[]')",
      says: "context must be an object with at most 20,000 characters.",
    },
    "executions cannot be started in an archived project": {
      as: "demo",
      given:
        "update app_public.workflows w set project_id = i.project from refusals.ids i where w.id = i.workflow; update app_public.projects set archived_at = now()",
      call: "app_public.create_workflow_execution(workflow, lead)",
      says: "The project of this workflow is archived",
    },
    "a batch has a maximum number of subjects": {
      as: "demo",
      given:
        "create or replace function app_hidden.most_subjects_of_batch() returns int language sql immutable parallel safe as 'select 1'",
      call: "app_public.batch_workflow(workflow, array[lead, other_lead]::text[]::app_public.id_or_slug[])",
      says: "A batch can have at most 150,000 subjects.",
    },
    "a subject without a lead cannot be tagged": {
      given: aboutNobody,
      call: `app_private.change_tags(null, ${work('\'{"tag": "new"}\'')}, true)`,
      says: "There is no lead to tag.",
    },
    "an empty tag cannot be added": {
      given: "update app_public.workflow_executions e set lead_id = i.lead from refusals.ids i",
      call: `app_private.change_tags(null, ${work('\'{"tag": " "}\'')}, true)`,
      says: "The tag is empty after evaluation.",
    },
    "a read-only field cannot be set": {
      call: `app_private.step_update_field(${step('{"record": "LEAD", "field": "organizationId"}')}, ${work("'{\"value\": 1}'")})`,
      says: "organizationId is not a field that can be set.",
    },
    "a field of a missing record cannot be set": {
      given: aboutNobody,
      call: `app_private.step_update_field(${step('{"record": "LEAD", "field": "company"}')}, ${work('\'{"value": "Plat"}\'')})`,
      says: "There is no lead here.",
    },
    "an unavailable step type is refused": {
      given: "update app_hidden.workflow_step_types set refusal = 'is not offered here.'",
      call: `app_private.check_step(${row("app_public.workflow_steps", "'type', 'STOP', 'sequence', 1, 'config', '{}'::jsonb")}, '{"subjectType": "LEAD"}')`,
      says: "is not offered here.",
    },
    "a URL from a template must start with https": {
      call: `app_private.check_step(${row(
        "app_public.workflow_steps",
        "'type', 'CALL_WEBHOOK', 'sequence', 1, 'config', '{\"url\": \"http://example.com\"}'::jsonb",
      )}, '{"subjectType": "LEAD", "steps": 1}')`,
      says: "must be a URL that starts with https://.",
    },
    "at most 100 values can be selected": {
      call: `app_private.subject_filter(jsonb_build_object('status', (select jsonb_agg('NEW'::text) from generate_series(1, 101))),
        'filter', '{"subjectType": "LEAD"}')`,
      says: "must have at most 100 values.",
    },
    "a temporary error is retried": {
      call: "app_private.set_aside(workflow, '40001', 'could not serialize')",
      says: "could not serialize",
    },
  });
});

describe("accounts and organizations", () => {
  refuses({
    "a code for a new password that was never sent": {
      call: "app_private.begin_reset('never sent')",
      says: "code",
    },
    "a new password that is missing": {
      as: "demo",
      call: "app_public.update_password(null, null)",
      says: "A password must have at least 10 characters.",
    },
    "a new password that is missing, by mail": {
      call: "app_public.reset_password('token', null, null)",
      says: "A password must have at least 10 characters.",
    },
    "enrolling a second factor without the password": {
      as: "demo",
      given: "update app_public.users set email_verified_at = now()",
      call: "app_public.enroll_second_factor('$argon2id$wrong', '{}')",
      says: "This is not the password of your account.",
    },
    "recovery codes without the password": {
      as: "demo",
      call: "app_public.renew_recovery_codes('$argon2id$wrong', null)",
      says: "This is not the password of your account.",
    },
    "recovery codes without a second factor": {
      as: "demo",
      call: "app_public.renew_recovery_codes((select password_hash from app_private.user_passwords where user_id = app_public.current_user_id()), null) /* app_private. */",
      says: "Your account has no second factor.",
    },
    "the second factor of a non-member": {
      as: "demo",
      call: "app_public.reset_member_second_factor(home, nothing, null, null)",
      says: "This organization has no such member.",
    },
    "a task of the service, by a user who is not an operator": {
      as: "demo",
      call: "app_private.task_named('nothing')",
      says: "operator",
    },
    "more jobs than one call can change": {
      as: "demo",
      call: "app_private.jobs_to_change(array(select n::text from generate_series(1, app_private.jobs_at_once() + 1) n), null, null, null, null, home)",
      says: "At most 1000 ids can be given.",
    },
    "jobs before an invalid id": {
      as: "demo",
      call: "app_public.jobs(organization_id => home::text, before_id => 'nothing', most => 10)",
      says: "Specify the id of a job.",
    },
    "the deletion of a deleted organization": {
      given:
        "update app_public.organizations o set deleted_at = now() from refusals.ids i where o.id = i.home",
      call: "app_private.schedule_organization_deletion(home, 'Closed', false)",
      says: "There is no such organization.",
    },
    "an organization that has moved to another installation": {
      given: `insert into app_private.organization_moves (organization_id, slug, status, url) select home, 'larkfield', 'MOVED', 'https://plat.example' from refusals.ids`,
      as: "demo",
      call: "app_hidden.record_id('organizations', home::text)",
      says: "This organization is on another server",
    },
    "the clock of a sandbox with more than 50,000 events": {
      as: "demo",
      given: `update app_public.organizations set is_sandbox = true;
        insert into app_public.events (stream_id, organization_id, sequence, name, subject_type, subject_id, data, actor_type, channel)
          select home, home, 1000000 + n, 'lead.updated', 'lead', lead, '{}', 'USER', 'API' from generate_series(1, 50001) n, refusals.ids`,
      call: "app_public.advance_sandbox_clock(home, 1)",
      says: "The clock can only be advanced while a sandbox has at most 50,000 events",
    },
    "creating an organization with a token requires org.admin": {
      as: "demo",
      scopes: "org.member,project.manage",
      call: "app_public.create_organization('Another')",
      says: "This access token cannot create organizations",
    },
    "a restricted token cannot revoke tokens that it did not create": {
      as: "demo",
      scopes: "org.member",
      given: `insert into app_public.access_tokens (id, user_id, name, prefix) select nothing, user_id, 'Other', 'plat_x'
        from refusals.ids, app_hidden.user_identities where email = 'demo@plat.example'`,
      call: "app_public.revoke_access_token(nothing)",
      says: "There is no such access token.",
    },
    "an invitation with too long a message": {
      as: "demo",
      call: "app_public.create_organization_invite(home, 'bea@example.com', 'MEMBER', repeat('x', 2001))",
      says: "A message can have at most 2,000 characters.",
    },
    "more sessions than can be ended at once": {
      as: "demo",
      call: "app_public.logout(array(select gen_random_uuid() from generate_series(1, 101)))",
      says: "At most 100 sessions can be ended at a time.",
    },
    "more tickets of streams than a user can have": {
      given: `insert into app_private.stream_tickets (ticket_sha256, user_id, token_sha256, expires_at)
        select sha256(n::text::bytea), user_id, 'x', now() + interval '1 minute' from generate_series(1, 100) n, app_hidden.user_identities where email = 'demo@plat.example'`,
      call: "app_private.issue_stream_ticket('x', (select user_id from app_hidden.user_identities where email = 'demo@plat.example'), null, null, now() + interval '1 hour')",
      says: "There are too many tickets that were not used",
    },
    "a sandbox clock more than ten years ahead": {
      as: "demo",
      given: "update app_public.organizations set is_sandbox = true, clock_ahead_seconds = 3660 * 86400",
      call: "app_public.advance_sandbox_clock(home, 1)",
      says: "The clock of a sandbox can be at most ten years ahead",
    },
    "a secret that was made for another webhook": {
      as: "demo",
      given: `insert into app_public.webhooks (id, organization_id, url, events, status, secret_prefix)
        select nothing, home, 'https://example.com', '{lead.*}', 'ENABLED', 'whsec_' from refusals.ids`,
      call: "app_public.rotate_webhook_secret(nothing, jsonb_build_object('webhook', home))",
      says: "Use the id exactly as the API returned it.",
    },
    "a second request to delete an organization": {
      as: "demo",
      given: `insert into app_public.organization_deletions (organization_id, requested_by_id, final_at)
        select home, (select user_id from app_hidden.user_identities where email = 'demo@plat.example'), now() + interval '1 day' from refusals.ids`,
      call: "app_public.request_organization_deletion(home, (select password_hash from app_private.user_passwords where user_id = app_public.current_user_id())) /* app_private. */",
      says: "The deletion of the organization has already been requested.",
    },
    "a missing value for whether a second factor is required": {
      as: "demo",
      call: "app_public.update_organization_second_factor(home, null, null)",
      says: "required is required.",
    },
  });
});

describe("a purchase to which its buyer is invited", () => {
  refuses({
    "cannot be accepted after its sender has left": {
      as: "sofia",
      given: `update app_public.users set email_verified_at = now();
        insert into app_hidden.buyer_invites (id, organization_id, project_id, buyer_id, email, invited_by_id)
          select nothing, b.organization_id, b.project_id, b.id, 'sofia@plat.example', (select m.user_id from app_public.organization_user_connections m
            where m.organization_id = home and m.role = 'OWNER') from refusals.ids join app_public.buyers b on b.id = purchase;
        insert into app_private.buyer_invite_tokens (invite_id, token_hash) select nothing, sha256('token') from refusals.ids;
        delete from app_public.organization_user_connections m using refusals.ids i where m.organization_id = i.home`,
      call: "app_public.accept_buyer_invite('token')",
      says: "The sender of this invitation may no longer invite to the purchase",
    },
  });
});

describe("affiliations with projects", () => {
  const offer = (values: string) =>
    `app_public.create_project_organization(project_id => project, ${values})`;
  const invite = `insert into app_public.project_organization_invites (id, project_id, owner_id, organization_id, role, invited_by_id)
    select nothing, private_project, home, sellers, 'SELLER', (select m.user_id from app_public.organization_user_connections m
      where m.organization_id = home and m.role = 'OWNER') from refusals.ids`;
  refuses({
    "are offered to either an organization or an email address": {
      as: "demo",
      call: offer("role => 'SELLER', organization_id => sellers, email => 'sales@example.com'"),
      says: "Specify either an organization or an email address.",
    },
    "need a role": {
      as: "demo",
      call: offer("role => null, organization_id => sellers"),
      says: "role is required.",
    },
    "cannot have the role OWNER": {
      as: "demo",
      call: offer("role => 'OWNER', organization_id => sellers"),
      says: "A project has only one owner; use another role.",
    },
    "have a maximum length of the message": {
      as: "demo",
      call: offer("role => 'SELLER', organization_id => sellers, message => repeat('x', 2001)"),
      says: "A message can have at most 2,000 characters.",
    },
    "are answered with either the id or the token": {
      as: "sofia",
      call: "app_public.accept_project_organization_invite(null, null, null)",
      says: "Specify either the id of the invitation or the token of its mail.",
    },
    "have a maximum length of the reason": {
      as: "sofia",
      given: invite,
      call: "app_public.decline_project_organization_invite(nothing, null, repeat('x', 2001))",
      says: "Specify a reason of at most 2,000 characters.",
    },
    "can only be accepted by the invited organization": {
      as: "sofia",
      given: invite,
      call: "app_public.accept_project_organization_invite(nothing, null, home)",
      says: "Another organization was invited.",
    },
    "can only be accepted once": {
      as: "sofia",
      given: `${invite}; insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
        select private_project, home, sellers, 'SELLER' from refusals.ids on conflict do nothing`,
      call: "app_public.accept_project_organization_invite(nothing, null, null)",
      says: "The organization already takes part in the project.",
    },
    "cannot be accepted after their sender has left": {
      as: "sofia",
      given: `${invite}; delete from app_public.organization_user_connections m using refusals.ids i where m.organization_id = i.home and m.role = 'OWNER'`,
      call: "app_public.accept_project_organization_invite(nothing, null, null)",
      says: "The sender of this invitation may no longer invite to the project",
    },
  });
});
