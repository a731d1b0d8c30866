-- Leads from a program that identifies them by its own ids: a list at a time, repeatable. See lead-rows.sql for the
-- processing of entries.

comment on domain app_public.lead_entry is E'@inputType LeadEntryInput\n\nA lead of a list.';
comment on type app_public.lead_entry_input is
  'A lead from another system. For an existing lead, omitted fields stay unchanged and null clears a field.';
comment on column app_public.lead_entry_input.external_id is
  E'@notNull\n\nId of the lead in the external system; identifies the lead.';
comment on column app_public.lead_entry_input.name is 'Full name. Default for a new lead: first and last name.';
comment on column app_public.lead_entry_input.first_name is 'Given name, such as Ada.';
comment on column app_public.lead_entry_input.last_name is 'Family name.';
comment on column app_public.lead_entry_input.legal_name is 'Legal name, as on contracts.';
comment on column app_public.lead_entry_input.email is 'Email address; at most one open lead of a project has it.';
comment on column app_public.lead_entry_input.phone is 'Phone number in E.164, such as +14165550123.';
comment on column app_public.lead_entry_input.address is 'Postal address.';
comment on column app_public.lead_entry_input.company is 'Company that the person works or buys for.';
comment on column app_public.lead_entry_input.status is 'Sales stage of the lead. Default for a new lead: NEW.';
comment on column app_public.lead_entry_input.origin is
  'Channel through which the lead was created. Default for a new lead: INTEGRATION.';
comment on column app_public.lead_entry_input.source is
  'Code or name of a lead source of the project; any other refuses the row.';
comment on column app_public.lead_entry_input.source_id is 'Id of the lead source. Set either this or `source`.';
comment on column app_public.lead_entry_input.is_agent is 'Whether the lead is a real-estate agent.';
comment on column app_public.lead_entry_input.is_represented is 'Whether an agent represents the lead.';
comment on column app_public.lead_entry_input.subscribed is
  'Whether the lead is subscribed to marketing email. A lead who unsubscribed stays unsubscribed; the row has a '
  'warning then.';
comment on column app_public.lead_entry_input.do_not_contact is 'Whether the lead asked not to be contacted.';
comment on column app_public.lead_entry_input.preferred_language is 'Preferred language of emails, such as fr.';
comment on column app_public.lead_entry_input.assignee is
  'Email address of the member to assign the lead to. Set either this or `assigneeId`.';
comment on column app_public.lead_entry_input.assignee_id is 'The team member assigned to the lead.';
comment on column app_public.lead_entry_input.agent is
  'The agent who introduces the lead: an existing one by id or email address, or a new one; null for none.';
comment on column app_public.lead_entry_input.budget_min is 'Lower limit of the budget.';
comment on column app_public.lead_entry_input.budget_max is 'Upper limit of the budget.';
comment on column app_public.lead_entry_input.preapproved is 'Whether a lender has pre-approved the lead.';
comment on column app_public.lead_entry_input.registered_at is 'When the lead registered. Default for a new lead: now.';
comment on column app_public.lead_entry_input.fallout_reason_id is
  'Id of the fallout reason; required for the status LOST.';
comment on column app_public.lead_entry_input.fallout_note is 'Explanation of why the lead was lost, as free text.';
comment on column app_public.lead_entry_input.tags is 'Free-form tags; they replace those that the lead has.';
comment on column app_public.lead_entry_input.metadata is
  'Arbitrary JSON for the organization''s own programs; not interpreted.';

comment on type app_public.upsert_leads_payload is 'Result of creating or updating several leads.';
comment on column app_public.upsert_leads_payload.dry_run is
  E'@notNull\n\nTrue if nothing was changed, and the result shows what would happen.';
comment on column app_public.upsert_leads_payload.created_count is E'@notNull\n\nNumber of created leads.';
comment on column app_public.upsert_leads_payload.updated_count is E'@notNull\n\nNumber of updated leads.';
comment on column app_public.upsert_leads_payload.unchanged_count is
  E'@notNull\n\nNumber of leads that already matched their entry.';
comment on column app_public.upsert_leads_payload.refused_count is E'@notNull\n\nNumber of refused leads.';
comment on column app_public.upsert_leads_payload.rows is E'@notNull\n\nResult per entry, in order.';

create function app_private.add_lead_entries(entries jsonb[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  flat constant jsonb[] := array(select e - 'address' - 'agent' || case when jsonb_typeof(e -> 'address') = 'object'
      then e -> 'address' else '{}' end || case when jsonb_typeof(e -> 'agent') = 'object'
        then (select coalesce(jsonb_object_agg('agent' || upper(left(a.key, 1)) || substr(a.key, 2), a.value), '{}')
          from jsonb_each(jsonb_strip_nulls(e -> 'agent')) a)
      else '{}' end from unnest(entries) e);
  header constant text[] := array(select c.column_name from app_hidden.import_columns c
    where c.operation = 'importLeads' and (c.column_name = 'external_id' or exists (select from unnest(flat) e
      where e ? app_hidden.camel(c.column_name))) order by c.position);
begin
  perform app_private.open_import('importLeads', header);
  execute format('insert into pg_temp.import_rows (row, %s) select e.place - 1, %s from unnest($1) with ordinality e '
    '(value, place)', array_to_string(header, ', '),
    (select string_agg(case h
      when 'tags' then $tags$case when jsonb_typeof(e.value -> 'tags') = 'array'
        then array(select btrim(t) from jsonb_array_elements_text(e.value -> 'tags') t)::text end$tags$
      when 'metadata' then 'nullif((e.value -> ''metadata'')::text, ''null'')'
      else format('nullif(btrim(e.value ->> %L, E'' \t\n\r''), '''')', app_hidden.camel(h)) end, ', ' order by place)
      from unnest(header) with ordinality u (h, place))) using flat;
  create temp table import_cleared (row int not null, column_name text not null) on commit drop;
  insert into pg_temp.import_cleared
    select e.place - 1, c.column_name
    from unnest(flat, entries) with ordinality e (value, entry, place)
    cross join lateral jsonb_each(e.value || case when e.entry -> 'address' = 'null'
      then '{"address": null}'::jsonb else '{}' end || case when e.entry -> 'agent' = 'null'
      then '{"agentId": null}'::jsonb else '{}' end) m
    join lateral (select i.column_name from app_hidden.import_columns i where i.operation = 'importLeads'
        and app_hidden.camel(i.column_name) = m.key
      union all select 'address' where m.key = 'address'
      union all select 'assignee_id' where m.key = 'assignee'
      union all select 'source_id' where m.key = 'source') c on true
    where m.value = 'null' or (jsonb_typeof(m.value) = 'string' and btrim(m.value #>> '{}', E' \t\n\r') = '');
end $$;
comment on function app_private.add_lead_entries(jsonb[]) is
  'Creates the rows of a bulk operation: import_rows with the values of the entries, by position from 0, and '
  'import_cleared with fields that are set to null.';

create function app_private.write_leads(project_id uuid, system text, entries jsonb[], on_duplicate text,
  dry_run boolean) returns app_public.upsert_leads_payload
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  project app_public.projects;
  party uuid;
  result app_public.upsert_leads_payload;
begin
  select p.* into project from app_public.projects p where p.id = project_id and p.deleted_at is null;
  if project.id is null or not app_hidden.project_can(project.id, project.organization_id, 'lead.write') then
    perform app_hidden.fail('FORBIDDEN', 'This requires the permission lead.write in the project.',
      '{"permission": "lead.write"}');
  end if;
  if project.archived_at is not null then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  end if;
  party := (select o from app_private.viewer_parties(project.id) o limit 1);
  -- Lists of a system are serialized, so that each sees the leads of the previous one.
  perform pg_advisory_xact_lock(hashtextextended(format('plat.leads %s %s', party, system), 0));
  perform app_private.add_lead_entries(entries);
  insert into pg_temp.import_errors
    select r.row, 'external_id', 'BAD_USER_INPUT', 'externalId is required.', null
    from pg_temp.import_rows r where r.external_id is null;
  result.dry_run := coalesce(dry_run, false);
  begin
    perform app_private.judge_lead_rows(project, system, party, app_private.own_leads_only(project), on_duplicate,
      'INTEGRATION');
    perform app_private.write_lead_rows(project, system, party);
    result.rows := app_private.lead_row_results();
    select count(*) filter (where r.outcome = 'CREATED'), count(*) filter (where r.outcome = 'UPDATED'),
        count(*) filter (where r.outcome = 'UNCHANGED'), count(*) filter (where r.outcome = 'REFUSED')
      into result.created_count, result.updated_count, result.unchanged_count, result.refused_count
      from unnest(result.rows) r;
    if dry_run then
      raise exception 'dry run' using errcode = 'PLATD';
    end if;
  exception when sqlstate 'PLATD' then
    null; -- undone, what would have been is in the result
  end;
  return result;
end $$;
comment on function app_private.write_leads(uuid, text, jsonb[], text, boolean) is
  'upsertLeads for a viewer who was checked to see the project.';
grant execute on function app_private.write_leads to plat_user;

create function app_public.upsert_leads(project_id uuid, system app_public.system_name,
  leads app_public.lead_entry[], on_duplicate app_public.duplicate_policy default 'ERROR',
  dry_run boolean default null) returns app_public.upsert_leads_payload
language plpgsql volatile as $$
declare
  most constant int := 500;
begin
  perform app_hidden.require_viewer();
  if not exists (select from app_hidden.masked_projects p where p.id = upsert_leads.project_id) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  end if;
  if cardinality(leads) > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'A request can have at most 500 leads; send several requests.',
      jsonb_build_object('limit', most, 'field', 'leads'));
  end if;
  return app_private.write_leads(upsert_leads.project_id, upsert_leads.system, upsert_leads.leads::jsonb[],
    coalesce(upsert_leads.on_duplicate, 'ERROR'), upsert_leads.dry_run);
end $$;
grant execute on function app_public.upsert_leads to plat_user, plat_anonymous;
comment on function app_public.upsert_leads is
  E'@arg projectId Id of the project that all rows belong to.\n@arg system Name of the external system that the ids '
  'come from, such as crm; chosen by the client.\n@arg leads Entries, at most 500.\n@arg onDuplicate Action if no '
  'lead has the external id, but an open lead has the email address. Default: ERROR. With MERGE and '
  'RETURN_EXISTING that lead gets the external id.\n@arg dryRun If true, returns what would happen, and changes '
  'nothing.\n\n'
  'Creates or updates leads, identified by their ids in another system of the viewer''s organization: an unknown '
  'id creates a lead, a known one updates it. Each entry is applied entirely or refused with its errors, '
  'independently of the others. Requires the permission lead.write; viewers who only see their own leads can only '
  'update these. The sales team is not notified.';
