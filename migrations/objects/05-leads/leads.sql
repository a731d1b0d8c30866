-- Leads: people who may buy; their sources, agents, fallout reasons and notes.
--
-- Notes and tasks can belong to a lead or to a purchase. Buyers read neither.

comment on type app_public.agent_input is
  'An agent: an existing one by `id`, or one that is looked up by `email` and created if there is none.';

comment on column app_public.agent_input.id is 'An existing agent.';
comment on column app_public.agent_input.name is 'Full name.';
comment on column app_public.agent_input.email is
  'Email address. An existing agent of the organization with this address is reused.';
comment on column app_public.agent_input.phone is 'Phone number in E.164, such as +14165550123.';
comment on column app_public.agent_input.brokerage is 'Name of the brokerage that the agent works for.';
comment on column app_public.agent_input.license_number is 'Licence number of the agent.';

create policy sellers on app_public.leads for select to plat_user
  using (deleted_at is null and (
    organization_id = any ((select app_hidden.viewer_organizations('lead.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('lead.read'))::uuid[])
    or (assignee_id = (select app_public.current_user_id())
      and project_id = any ((select app_hidden.viewer_own_projects('lead.read'))::uuid[]))));
create policy sellers_insert on app_public.leads for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('lead.write'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('lead.write'))::uuid[])
    or (assignee_id = (select app_public.current_user_id())
      and project_id = any ((select app_hidden.viewer_own_projects('lead.write'))::uuid[])));
create policy sellers_update on app_public.leads for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('lead.write'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('lead.write'))::uuid[])
    or (assignee_id = (select app_public.current_user_id())
      and project_id = any ((select app_hidden.viewer_own_projects('lead.write'))::uuid[])));
create policy sellers_delete on app_public.leads for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('lead.write'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('lead.write'))::uuid[])
    or (assignee_id = (select app_public.current_user_id())
      and project_id = any ((select app_hidden.viewer_own_projects('lead.write'))::uuid[])));

select app_private.make_project_record('leads', 'lead', 'lead.write');

-- Manual transitions between open states, and to LOST and UNQUALIFIED and back; CONVERTED by the service.
select app_private.make_state_machine('leads', 'lead',
  steps => (
    with open_states (state) as (select unnest(array['NEW', 'CONTACTED', 'COLD', 'WARM', 'HOT', 'NEGOTIATING',
      'RESERVED'])),
    all_steps as (
      select a.state as from_state, b.state as to_state, 'hand' as how from open_states a, open_states b
        where a.state <> b.state
      union all select state, ended, 'hand' from open_states, unnest(array['LOST', 'UNQUALIFIED']) ended
      union all select ended, state, 'hand' from open_states, unnest(array['LOST', 'UNQUALIFIED']) ended
      union all select state, 'CONVERTED', 'service' from open_states
    )
    select array_agg(array[from_state, to_state, how]) from all_steps),
  initial => array['NEW', 'CONTACTED', 'COLD', 'WARM', 'HOT'],
  requirements => array[['LOST', 'fallout_reason_id', 'A lost lead requires a fallout reason.']]);
select app_private.make_searchable('leads', 'LEAD', 'concat_ws('' '', r.name, r.legal_name)',
  'concat_ws('' '', r.first_name, r.last_name, r.email, r.phone, r.company)', assignee => 'r.assignee_id');

grant select on app_public.leads to plat_user, plat_anonymous;
grant insert (project_id, name, first_name, last_name, legal_name, email, phone, address, status, origin, source,
  source_id, company, is_agent, is_represented, subscribed, do_not_contact, preferred_language, assignee_id,
  budget_min, budget_max, preapproved, registered_at, tags, metadata) on app_public.leads to plat_user;
grant update (name, first_name, last_name, legal_name, email, phone, address, status, source_id, company, is_agent,
  is_represented, subscribed, do_not_contact, preferred_language, assignee_id, budget_min, budget_max, preapproved,
  fallout_reason_id, fallout_note, tags, metadata) on app_public.leads to plat_user;
grant delete on app_public.leads to plat_user;

comment on table app_public.leads is $$
@portfolio lead.read
@defaultOrder registered_at desc
@filterLists status

A person who is interested in a project.$$;
comment on column app_public.leads.project_id is E'@filter projectIds\n\nThe project that it belongs to.';
comment on column app_public.leads.name is E'@personal\n\nFull name as given.';
comment on column app_public.leads.first_name is
  E'@personal\n\nGiven name, such as Ada. Derived from the full name if both names are omitted.';
comment on column app_public.leads.last_name is
  E'@personal\n\nFamily name. Derived from the full name if both names are omitted.';
comment on column app_public.leads.legal_name is E'@personal\n\nLegal name, as on contracts.';
comment on column app_public.leads.email is E'@personal\n\nEmail address; at most one open lead of a project has it.';
comment on column app_public.leads.phone is E'@personal\n\nPhone number in E.164, such as +14165550123.';
comment on column app_public.leads.address is E'@personal\n\nPostal address.';
comment on column app_public.leads.company is E'@personal\n\nCompany that the person works or buys for.';
comment on column app_public.leads.preferred_language is 'Preferred language of emails, such as fr.';
comment on column app_public.leads.status is E'@filter\n\nStage of the lead in the sales process.';
comment on column app_public.leads.status_changed_at is 'When the status last changed.';
comment on column app_public.leads.tags is E'@personal\n@filter\n\nFree-form tags.';
comment on column app_public.leads.origin is E'@filter\n\nChannel through which the lead was created. Default: API.';
comment on column app_public.leads.source is
  E'@impersonal\n\n'
  'Code of the source, such as WEB_DIRECT, or the key of a tracker. `createLead` accepts the code or name of a '
  'lead source of the project, or the key of one of its trackers; any other value is refused, and the error lists '
  'the valid ones.';
comment on column app_public.leads.source_id is
  E'@filter leadSourceIds\n\nThe `LeadSource` through which the person found the project, such as a portal.';
comment on column app_public.leads.is_agent is E'@filter\n\nWhether the lead is a real-estate agent.';
comment on column app_public.leads.is_represented is 'Whether an agent represents the lead.';
comment on column app_public.leads.assignee_id is E'@filter assigneeIds\n\nThe team member assigned to the lead.';
comment on column app_public.leads.agent_id is 'The agent who introduced the lead.';
comment on column app_public.leads.fallout_reason_id is 'Id of the fallout reason; required for the status LOST.';
comment on column app_public.leads.subscribed is 'Whether the lead is subscribed to marketing email.';
comment on column app_public.leads.do_not_contact is 'Whether the lead asked not to be contacted.';
comment on column app_public.leads.registered_at is
  E'@filter\n\nWhen the lead registered; may be earlier than `insertedAt`. Lists are sorted by it, latest first.';
comment on column app_public.leads.updated_at is E'@filter\n\nWhen the record was last changed.';
comment on column app_public.leads.first_response_at is
  'When the sales team first contacted the lead; null until then.';
comment on column app_public.leads.last_interaction_at is
  E'@filter\n\nWhen the last message, call or appointment took place; null if none did.';
comment on column app_public.leads.budget_min is 'Lower limit of the budget.';
comment on column app_public.leads.budget_max is 'Upper limit of the budget.';
comment on column app_public.leads.preapproved is 'Whether a lender has pre-approved the lead.';
comment on column app_public.leads.fallout_note is E'@personal\n\nFallout reason of the lost lead, in words.';
comment on column app_public.leads.lost_at is 'When the lead was lost; null otherwise.';
comment on column app_public.leads.converted_at is 'When the lead became a buyer; null until then.';
comment on column app_public.leads.metadata is
  E'@personal\n\nArbitrary JSON for the organization''s own programs; not interpreted.';
comment on column app_public.leads.search_text is E'@secret\n@behavior -*\n\nFor searching.';
comment on column app_public.leads.status_before_deal is
  E'@secret\n@behavior -*\n\nThe status before the reservation or negotiation that it has now.';
comment on column app_public.leads.unsubscribed_at is
  'When the lead unsubscribed from marketing email, by link or through the team; null if they did not, or '
  'subscribed again.';
comment on constraint leads_budget_order on app_public.leads is 'The maximum budget must not be below the minimum.';
comment on constraint leads_project_id_fkey on app_public.leads is
  E'@parent\n@fieldName project\n@foreignFieldName leads\n@backwardPermission lead.read\n@backwardDescription The '
  'leads, newest registration first; null without the permission lead.read.\n\nThe project that it belongs to.';
comment on constraint leads_source_id_fkey on app_public.leads is
  E'@fieldName leadSource\n@backwardBehavior -*\n\nThe lead source of the project.';
comment on constraint leads_fallout_reason_id_fkey on app_public.leads is
  E'@fieldName falloutReason\n@backwardBehavior -*\n\nFallout reason of the lost lead.';
comment on constraint leads_agent_id_fkey on app_public.leads is
  E'@fieldName agent\n'
  '@foreignFieldName leads\n'
  '@backwardDescription Leads that the agent represents.\n\n'
  'The agent who introduced the lead.';
comment on constraint leads_assignee_id_fkey on app_public.leads is
  E'@fieldName assignee\n@backwardBehavior -*\n\nThe team member assigned to the lead.';
comment on constraint leads_subscription on app_public.leads is
  'A lead cannot both subscribe to and unsubscribe from marketing mail.';
comment on index app_public.leads_open_email is
  'There is already an open lead with this email address in the project.';

create function app_private.tg_leads__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project_country text;
  project_currency text;
  assignment text;
  applies boolean;
begin
  -- PERF: one function for all facts that a lead needs, so that the project is read once.
  select coalesce((p.address).country, 'US'), p.currency, p.lead_assignment
    into project_country, project_currency, assignment
    from app_public.projects p where p.id = new.project_id;
  if tg_op = 'INSERT' and num_nonnulls(new.first_name, new.last_name) = 0 then
    select n.given, n.family into new.first_name, new.last_name from app_hidden.split_name(new.name) n;
  elsif tg_op = 'UPDATE' and new.name <> old.name
    and row(new.first_name, new.last_name)::text = row(old.first_name, old.last_name)::text
    and row(old.first_name, old.last_name)::text = app_hidden.split_name(old.name)::text then
    -- They were taken from the name, so they follow it.
    select n.given, n.family into new.first_name, new.last_name from app_hidden.split_name(new.name) n;
  end if;
  -- PERF: assigning a column checks its domain again, so only changed columns are assigned.
  if new.email <> lower(new.email) then
    new.email := lower(new.email);
  end if;
  if new.phone is not null and (tg_op = 'INSERT' or new.phone is distinct from old.phone) then
    new.phone := app_hidden.to_e164(new.phone, coalesce(project_country, 'US'));
  end if;
  if new.address is distinct from null then
    new.address := app_hidden.complete_address(new.address, project_country);
  end if;
  if new.budget_min is not null then
    new.budget_min := app_hidden.to_money(new.budget_min, project_currency, 'budgetMin');
  end if;
  if new.budget_max is not null then
    new.budget_max := app_hidden.to_money(new.budget_max, project_currency, 'budgetMax');
  end if;
  if new.registered_at > now() + interval '1 minute' then
    perform app_hidden.fail('BAD_USER_INPUT', 'The registration date of a lead cannot be in the future.',
      '{"field": "registeredAt"}');
  end if;
  -- PERF: a condition that contains a query is evaluated as one, regardless of what precedes it, so the cheap
  -- conditions surround it. Viewers who only see own leads keep the leads that they create. For lists, the assignees
  -- are determined by the statement.
  if tg_op = 'INSERT' and new.assignee_id is null and app_public.current_user_id() is not null
    and not coalesce(app_hidden.is_service(), false) and app_hidden.setting('leads_at_once') is null then
    -- PERF: a viewer who may write all leads of the organization has no project with own leads only; checking that
    -- takes a fifth of the time.
    if new.organization_id <> all (app_hidden.viewer_organizations('lead.write')) then
      if new.project_id = any ((select app_hidden.viewer_own_projects('lead.write'))::uuid[]) then
        new.assignee_id := app_public.current_user_id();
      end if;
    end if;
  end if;
  if new.assignee_id is not null and (tg_op = 'INSERT' or new.assignee_id is distinct from old.assignee_id) then
    if not app_private.sells_in(new.assignee_id, new.project_id, locks => true) then
      perform app_hidden.fail('BAD_USER_INPUT',
        'A lead can only be assigned to a member of an organization that sells in its project.',
          '{"field": "assigneeId"}');
    end if;
  end if;
  if new.fallout_reason_id is not null
    and (tg_op = 'INSERT' or new.fallout_reason_id is distinct from old.fallout_reason_id) then
    select 'LEAD' = any (r.applies_to::text[]) into applies from app_public.fallout_reasons r
      where r.id = new.fallout_reason_id and r.project_id = new.project_id and r.deleted_at is null;
    if applies is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such fallout reason in this project.',
        '{"field": "falloutReasonId"}');
    elsif not applies then
      perform app_hidden.fail('BAD_USER_INPUT', 'This fallout reason does not apply to leads.',
        '{"field": "falloutReasonId"}');
    end if;
  end if;
  if new.source_id is not null and (tg_op = 'INSERT' or new.source_id is distinct from old.source_id) then
    select s.code into new.source from app_public.lead_sources s
      where s.id = new.source_id and s.project_id = new.project_id and s.deleted_at is null;
    if not found then
      perform app_hidden.fail('NOT_FOUND', 'There is no such lead source in this project.', '{"field": "sourceId"}');
    end if;
  elsif tg_op = 'INSERT' and new.source is not null then
    new.source_id := app_private.lead_source_named(new.project_id, new.source);
    if new.source_id is not null then
      select s.code into new.source from app_public.lead_sources s where s.id = new.source_id;
    else
      -- The key of a tracker stays, for it to be counted by.
      new.source_id := (app_private.tracker_with_key(new.project_id, new.source)).lead_source_id;
    end if;
  end if;
  if tg_op = 'INSERT' or new.status is distinct from old.status then
    if new.status = 'LOST' or new.lost_at is not null then
      new.lost_at := case when new.status = 'LOST' then now() end;
    end if;
    if new.status = 'CONVERTED' then
      new.converted_at := now();
    end if;
    if new.status = 'CONTACTED' and new.first_response_at is null then
      new.first_response_at := now();
    end if;
  end if;
  if tg_op = 'INSERT' then
    if new.person_id is null then
      new.person_id := app_private.person_of(new.organization_id, new.email);
    end if;
    -- Entering a person again is not a consent of that person.
    if new.email is not null then
      select w.withdrawn_at into new.unsubscribed_at from app_private.withdrawn_addresses w
        where w.organization_id = new.organization_id and w.email = new.email;
      new.subscribed := new.subscribed and new.unsubscribed_at is null;
    end if;
    -- Last, because a lead stays with viewers who only see own leads.
    if new.assignee_id is null and assignment = 'ROUND_ROBIN' then
      new.assignee_id := app_private.next_in_turn(new.project_id);
    end if;
    return new;
  end if;
  if new.email is distinct from old.email then
    new.person_id := coalesce(app_private.other_person(old, new), new.person_id);
  end if;
  if new.subscribed <> old.subscribed then
    if new.subscribed then
      new.unsubscribed_at := null;
      delete from app_private.withdrawn_addresses w
        where w.organization_id = new.organization_id and w.email = new.email;
    else
      new.unsubscribed_at := coalesce(new.unsubscribed_at, now());
    end if;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.leads for each row
  execute function app_private.tg_leads__prepare();

comment on type app_public.delete_lead_source_payload is
  E'@foreignKey (project_id) references projects (id)|@fieldName project\n\n'
  'Result of `deleteLeadSource`, with the number of reassigned records.';

comment on column app_public.delete_lead_source_payload.id is
  E'@notNull\n\nId of the removed record, for clients to remove it from their cache.';
comment on column app_public.delete_lead_source_payload.deleted is
  E'@notNull\n\nAlways true; a refused deletion is an error.';
comment on column app_public.delete_lead_source_payload.project_id is
  E'@behavior -*\n\nThe project that the schedule belongs to.';
comment on column app_public.delete_lead_source_payload.reassigned_buyers is
  E'@notNull\n\nNumber of buyers moved to the other source.';
comment on column app_public.delete_lead_source_payload.reassigned_leads is
  E'@notNull\n\nNumber of leads moved to the other source.';

create function app_public.leads_filter_query(l app_public.leads, value text) returns boolean
language sql stable as $$ select l.id = any (array(select app_hidden.matching_leads(value))) $$;

create function app_public.leads_filter_unassigned(l app_public.leads, value boolean) returns boolean
language sql stable as $$ select (l.assignee_id is null) = value $$;

create function app_public.leads_filter_email(l app_public.leads, value text) returns boolean
language sql stable as $$ select l.email = lower(btrim(value)) $$;

create function app_public.leads_filter_phone(l app_public.leads, value text) returns boolean
language sql stable as $$ select l.id = any (array(select app_hidden.leads_with_phone(value))) $$;
grant execute on function app_public.leads_filter_query, app_public.leads_filter_unassigned,
  app_public.leads_filter_email, app_public.leads_filter_phone to plat_user, plat_anonymous;
comment on function app_public.leads_filter_query is
  E'@filter query\n@finder matching_leads\n\nFull-text search in name, email address, phone number and company.';
comment on function app_public.leads_filter_unassigned is
  E'@filter unassigned\n\nTrue: only unassigned leads. False: only assigned leads.';
comment on function app_public.leads_filter_email is E'@filter email\n\nEmail address, compared case-insensitively.';
comment on function app_public.leads_filter_phone is
  E'@filter phone\n@finder leads_with_phone\n\nPhone number or its last digits.';

create function app_public.leads_allowed_transitions(l app_public.leads) returns app_public.transition[]
language plpgsql stable as $$
begin
  -- PERF: only checked for leads that are RESERVED; other changes get the error of the transition.
  if l.status <> 'RESERVED' or not exists (
    select from app_public.reservations r where r.lead_id = l.id and r.status in ('PENDING', 'CONFIRMED')
      and r.deleted_at is null) then
    return app_hidden.transitions_from('lead', to_jsonb(l));
  end if;
  return array(
    select case when t."to" in ('LOST', 'UNQUALIFIED')
      then row(t."to", false, t.blocked_by || 'reservations'::text)::app_public.transition else t end
    from unnest(app_hidden.transitions_from('lead', to_jsonb(l))) t order by t."to");
end $$;
grant execute on function app_public.leads_allowed_transitions, app_public.lead_sources_lead_count,
  app_public.fallout_reasons_usage_count to plat_user, plat_anonymous;
comment on function app_public.leads_allowed_transitions is E'@notNull\n\nStatus transitions that the viewer can make.';

create function app_public.leads_filter_has_open_task(l app_public.leads, value boolean) returns boolean
language sql stable as $$
  select exists (select from app_public.tasks t
    where t.lead_id = l.id and t.deleted_at is null and t.status in ('OPEN', 'IN_PROGRESS', 'WAITING')) = value
$$;
comment on function app_public.leads_filter_has_open_task is
  E'@filter hasOpenTask\n\nTrue: only leads with an open task. False: only leads without one.';

-- PERF: for all leads of a statement at once; the tables of deals have triggers that run for each statement.
create function app_private.hand_over_leads(lead_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  deal_table text;
  assignee text;
begin
  for deal_table in
    select t.table_name from app_private.deal_tables t
    where exists (select from pg_attribute a where a.attrelid = format('app_public.%I', t.table_name)::regclass
      and a.attname = 'lead_id' and not a.attisdropped)
    order by t.table_name
  loop
    assignee := case when deal_table = 'unit_holds'
      then 'app_private.assignee_of_hold(l.assignee_id, d.is_self_service, d.user_id)' else 'l.assignee_id' end;
    execute format('update app_public.%I d set assignee_id = %s from app_public.leads l
      where d.lead_id = any ($1) and l.id = d.lead_id and d.assignee_id is distinct from %2$s
        and d.deleted_at is null', deal_table, assignee) using lead_ids;
  end loop;
end $$;
comment on function app_private.hand_over_leads(uuid[]) is
  'Hands what belongs to leads over to their assignees.';

create function app_private.tg_leads__hand_over() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- PERF: no join, whose plan would stay that of the first statement, for one row.
  handed constant uuid[] := array(select c.id from (select n.id, n.assignee_id from new_rows n
    except select o.id, o.assignee_id from old_rows o) c);
begin
  if handed <> '{}' then
    perform app_private.hand_over_leads(handed);
  end if;
  return null;
end $$;
comment on function app_private.tg_leads__hand_over() is
  'Hands what belongs to leads over to their new assignees.';
create trigger _400_assignee after update on app_public.leads referencing old table as old_rows new table as new_rows
  for each statement execute function app_private.tg_leads__hand_over();

create function app_private.tg_leads__reserved() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  amount int := (select count(*) from app_public.reservations r where r.lead_id = new.id
    and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null);
begin
  if amount > 0 then
    perform app_hidden.fail('CONFLICT',
      format('A lead with an open reservation cannot become %s; cancel the reservation first.', new.status),
      jsonb_build_object('field', 'status', 'dependents', jsonb_build_object('reservations', amount)));
  end if;
  return new;
end $$;
create trigger _310_reserved before update of status on app_public.leads for each row
  when (old.status is distinct from new.status and new.status in ('LOST', 'UNQUALIFIED'))
    execute function app_private.tg_leads__reserved();

create function app_public.leads_buyer(l app_public.leads) returns setof app_public.buyers
language sql stable rows 1 as $$
  select b.* from app_hidden.masked_buyers b where b.lead_id = l.id and b.deleted_at is null and b.status <> 'CANCELLED'
    order by b.id desc limit 1
$$;
comment on function app_public.leads_buyer is
  'Purchase that the lead was converted into; the latest one if there are several. `purchases` contains all.';

-- Deferred for all writers: a converted lead has a purchase in force at the end of the transaction.
create function app_private.tg_leads__has_purchase() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from app_public.leads l where l.id = new.id and l.status = 'CONVERTED' and l.deleted_at is null)
    and not exists (select from app_public.buyers b where b.lead_id = new.id and b.status <> 'CANCELLED'
      and b.deleted_at is null) then
    perform app_hidden.fail('CONFLICT', 'Use convertLead to convert a lead to a buyer.',
      '{"field": "status"}');
  end if;
  return null;
end $$;
create constraint trigger _910_has_purchase after insert or update of status on app_public.leads
  deferrable initially deferred for each row when (new.status = 'CONVERTED')
    execute function app_private.tg_leads__has_purchase();

-- Two leads that may be one person.
create function app_private.note_duplicate(lead app_public.leads) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  -- A number that many leads have, such as that of an office, says nothing.
  most constant int := 3;
  -- PERF: by its index, also while the table has just grown, and no further than to the last one that is needed.
  others uuid[] := array(
    select s.id from app_public.leads s
    where s.project_id::text || ' ' || s.phone::text = lead.project_id::text || ' ' || lead.phone::text
      and s.phone is not null and s.id <> lead.id and s.deleted_at is null
      -- A person who registers again after closing is recognized.
      and not (s.status in ('LOST', 'UNQUALIFIED', 'CONVERTED') and s.person_id = lead.person_id) limit most + 1);
  other uuid := (select min(id::text)::uuid from unnest(others) id);
  pair text := format('duplicate_lead:%s:%s', least(other, lead.id), greatest(other, lead.id));
begin
  if cardinality(others) between 1 and most
    -- A user has already decided that these two are different people.
    and not exists (select from app_public.escalation_tickets t where t.lead_id in (other, lead.id) and t.cause = pair)
      then
    perform app_private.open_ticket('DUPLICATE_LEAD', pair, lead.organization_id, 'Two leads may be one person',
      '{MERGE,DISMISS}', project_id => lead.project_id,
      description => 'Another lead of the project has the same phone number. MERGE makes them one: the earlier lead '
        'gets the records of the later one, and its own missing values.',
      priority => 'LOW', lead_id => least(other, lead.id), subject_type => 'lead',
      subject_id => greatest(other, lead.id));
  end if;
end $$;
comment on function app_private.note_duplicate(app_public.leads) is
  'Opens a ticket where another lead of the project has the phone number of this one.';

-- PERF: of many at once, only those are looked at whose number another lead has.
create function app_private.tg_leads__duplicates() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  lead app_public.leads;
begin
  for lead in
    select n.* from new_rows n where n.phone is not null and (select true from app_public.leads l
      where l.project_id::text || ' ' || l.phone::text = n.project_id::text || ' ' || n.phone::text
        and l.phone is not null and l.deleted_at is null and l.id <> n.id limit 1)
  loop
    perform app_private.note_duplicate(lead);
  end loop;
  return null;
end $$;
comment on function app_private.tg_leads__duplicates() is
  'Opens tickets for new leads whose phone number another lead of the project has.';
create trigger _700_duplicate_first after insert on app_public.leads referencing new table as new_rows
  for each statement execute function app_private.tg_leads__duplicates();

create function app_private.tg_leads__duplicate() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.note_duplicate(new);
  return null;
end $$;
create trigger _700_duplicate after update of phone on app_public.leads for each row
  when (new.phone is not null and old.phone is distinct from new.phone and new.deleted_at is null)
    execute function app_private.tg_leads__duplicate();

