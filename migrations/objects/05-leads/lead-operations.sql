-- What calls, mails and appointments do to their lead, or to the lead that the buyer was:
--
--   the first outbound call, mail or agreed appointment   NEW → CONTACTED, firstResponseAt
--   messages, calls, appointments                         lastInteractionAt, which never goes back
--   a call with the outcome DO_NOT_CALL                   doNotContact
--
-- A call that was only queued, or failed or was given up before it rang through, reached nobody and does nothing.

comment on function app_hidden.fold(text) is 'Text for comparing: without case and accents.';

create function app_private.agent_for(organization_id uuid, agent app_public.agent_input, country text) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  found_id uuid;
  knows_all boolean := app_hidden.organization_can(organization_id, 'org.member')
    or app_hidden.organization_can(organization_id, 'lead.read');
begin
  if length(agent.name) > 300 or length(agent.brokerage) > 300 or length(agent.license_number) > 300 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Use at most 300 characters.',
      jsonb_build_object('field', case when length(agent.name) > 300 then 'agent.name'
      when length(agent.brokerage) > 300 then 'agent.brokerage' else 'agent.licenseNumber' end));
  end if;
  if agent.id is not null then
    select a.id into found_id from app_public.agents a where a.id = agent.id
      and a.organization_id = agent_for.organization_id and a.deleted_at is null
      and (knows_all or exists (select from app_public.leads l where l.agent_id = a.id
        and l.assignee_id = app_public.current_user_id() and l.deleted_at is null));
    if found_id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such agent.', '{"field": "agent.id"}');
    end if;
  elsif agent.email is not null then
    select a.id into found_id from app_public.agents a
      where a.organization_id = agent_for.organization_id and a.email = lower(agent.email) and a.deleted_at is null;
  end if;
  if found_id is not null then
    -- An affiliated organization can select an agent, but not change the owner's data about the agent.
    update app_public.agents a set
      name = coalesce(btrim(agent.name), a.name),
        phone = coalesce(app_hidden.to_e164(agent.phone, country, 'agent.phone'), a.phone),
      brokerage = coalesce(btrim(agent.brokerage), a.brokerage),
        license_number = coalesce(btrim(agent.license_number), a.license_number)
      where a.id = found_id and knows_all;
    return found_id;
  end if;
  if nullif(btrim(agent.name), '') is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'A new agent requires a name.', '{"field": "agent.name"}');
  end if;
  insert into app_public.agents (organization_id, name, email, phone, brokerage, license_number)
    values (agent_for.organization_id, btrim(agent.name), lower(agent.email),
      app_hidden.to_e164(agent.phone, country, 'agent.phone'),
      nullif(btrim(agent.brokerage), ''), nullif(btrim(agent.license_number), ''))
    on conflict do nothing returning id into found_id;
  return coalesce(found_id, app_private.agent_for(organization_id, agent, country));
end $$;
comment on function app_private.agent_for(uuid, app_public.agent_input, text) is
  'The agent that the input names, found or made; a phone number without a country code is one of the country.';

create function app_private.set_lead_agent(lead app_public.leads, agent app_public.agent_input) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.leads l set agent_id = case when agent is distinct from null
    then app_private.agent_for(lead.organization_id, agent,
      coalesce((select (p.address).country from app_public.projects p where p.id = lead.project_id), 'US')) end
    where l.id = lead.id;
end $$;

create function app_private.live_lead(project_id uuid, email text) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.id from app_public.leads l where l.project_id = $1 and l.email = lower(btrim($2)) and l.deleted_at is null
    and l.status not in ('LOST', 'UNQUALIFIED', 'CONVERTED')
    and app_hidden.project_can(l.project_id, l.organization_id, 'lead.write')
$$;

create function app_private.set_agent_of_lead(lead_id uuid, agent app_public.agent_input) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.set_lead_agent(l, agent) from app_public.leads l where l.id = lead_id
    and app_hidden.deal_can(l.organization_id, l.project_id, l.assignee_id, 'lead.write');
end $$;
comment on function app_private.set_agent_of_lead(uuid, app_public.agent_input) is
  'Sets or clears the agent of a lead that the viewer may update.';
grant execute on function app_private.set_agent_of_lead, app_private.live_lead to plat_user;

create function app_public.create_lead(
  input jsonb,
  agent app_public.agent_input default null,
  on_duplicate app_public.duplicate_policy default 'ERROR'
) returns app_public.leads
language plpgsql volatile as $$
declare
  lead app_public.leads;
  existing_id uuid;
  violated text;
begin
  perform app_hidden.require_viewer();
  begin
    lead := app_hidden.create_record(null::app_public.leads, input);
  exception when unique_violation then
    get stacked diagnostics violated = constraint_name;
    if violated <> 'leads_open_email' then
      raise;
    end if;
    existing_id := app_private.live_lead(app_hidden.record_id('projects', input ->> 'project_id', 'projectId'),
      input ->> 'email');
    select * into lead from app_public.leads l where l.id = existing_id;
    if coalesce(on_duplicate, 'ERROR') = 'ERROR' or lead.id is null then
      -- A lead of another assignee is unchanged: its id is returned if the viewer may see it.
      perform app_hidden.fail('CONFLICT', 'There is already a lead with this email address in the project.',
        jsonb_strip_nulls(jsonb_build_object('field', 'email', 'existingId', lead.id)));
    end if;
    if on_duplicate = 'MERGE' then
      lead := app_hidden.update_record(null::app_public.leads, jsonb_build_object('id', existing_id) || (
        select coalesce(jsonb_object_agg(i.key, i.value), '{}') from jsonb_each(input) i
        where i.key in ('phone', 'address', 'company', 'source_id', 'is_represented', 'metadata', 'assignee_id',
            'legal_name', 'preferred_language', 'budget_min', 'budget_max', 'preapproved')
          and i.value <> 'null' and to_jsonb(lead) ->> i.key is null));
    end if;
    return lead;
  end;
  -- After the policy, which determines whether the viewer may see anything of the project.
  if lead.source_id is null and lead.source is not null
    and not app_hidden.is_tracker_key(lead.project_id, lead.source) then
    perform app_hidden.refuse_unknown_source(lead.project_id, lead.source);
  end if;
  if agent is distinct from null then
    perform app_private.set_agent_of_lead(lead.id, agent);
    select * into lead from app_public.leads l where l.id = lead.id;
  end if;
  return lead;
end $$;
comment on function app_public.create_lead is $$
@arg agent The agent who introduced the lead.
@arg onDuplicate Action if the project already has an open lead with this email address. Default: ERROR.

Creates a lead. A person whose lead was closed (LOST, UNQUALIFIED or CONVERTED) can register
again; `person` links to the earlier records.
The sales team is not notified; contactProject does that. A source that the project does not have is refused;
contactProject keeps it as it was given.$$;

create function app_public.update_lead(input jsonb, agent app_public.agent_input default null) returns app_public.leads
language plpgsql volatile as $$
declare
  lead app_public.leads;
  gives_back boolean := false;
begin
  perform app_hidden.require_viewer();
  if input ?| '{assignee_id,email}' then
    perform app_hidden.lock_seen('app_public.leads', l.id) from app_public.leads l
      where l.id = app_hidden.record_id('leads', input ->> 'id');
    select * into lead from app_public.leads l where l.id = app_hidden.record_id('leads', input ->> 'id');
    gives_back := app_private.gives_back(lead.project_id, lead.assignee_id, 'lead.write',
      nullif(btrim(input ->> 'assignee_id'), ''));
  end if;
  lead := app_hidden.update_record(null::app_public.leads, case when gives_back then input - 'assignee_id' else input
    end);
  if input ? 'agent' then
    perform app_private.set_agent_of_lead(lead.id, agent);
    select * into lead from app_public.leads l where l.id = lead.id;
  end if;
  if gives_back then
    select g.* into lead from app_private.give_back_leads(array[lead.id]) g;
  end if;
  return lead;
end $$;
comment on function app_public.update_lead is $$
@arg agent The agent who introduced the lead; null for none.

Updates a lead. Viewers who only see their own leads return one with the `assigneeId` null: the lead and its deals
become unassigned, members who see all leads are notified, and the response is the last one in which the viewer
sees it.$$;
grant execute on function app_public.create_lead, app_public.update_lead to plat_user, plat_anonymous;

create function app_private.move_lead_source(source_id uuid, target_id uuid, out leads int, out buyers int)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  source app_public.lead_sources;
  target app_public.lead_sources;
begin
  select * into source from app_public.lead_sources s where s.id = source_id and s.deleted_at is null;
  if source is null or not app_hidden.organization_can(source.organization_id, 'project.manage') then
    perform app_hidden.refuse('lead_sources', 'delete');
  end if;
  select * into target from app_public.lead_sources s where s.id = target_id and s.project_id = source.project_id
    and s.id <> source.id and s.deleted_at is null;
  if target is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead source in this project.', '{"field": "reassignToId"}');
  end if;
  update app_public.leads l set source_id = target.id where l.source_id = source.id and l.deleted_at is null;
  get diagnostics leads = row_count;
  update app_public.buyers b set source_id = target.id where b.source_id = source.id and b.deleted_at is null;
  get diagnostics buyers = row_count;
  update app_public.trackers t set lead_source_id = target.id
    where t.lead_source_id = source.id and t.deleted_at is null;
end $$;
comment on function app_private.move_lead_source(uuid, uuid) is
  'Moves all records of a lead source to another one of the same project, including those that the viewer cannot '
  'see; returns the numbers of leads and purchases.';

create function app_private.uses_of_lead_source(source_id uuid, out leads int, out buyers int)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (select count(*)::int from app_public.leads l where l.source_id = s.id and l.deleted_at is null),
    (select count(*)::int from app_public.buyers b where b.source_id = s.id and b.deleted_at is null)
  from app_public.lead_sources s where s.id = source_id
    and app_hidden.organization_can(s.organization_id, 'project.manage')
$$;
comment on function app_private.uses_of_lead_source(uuid) is
  'How many leads and purchases have a lead source that the viewer manages; null of others.';
grant execute on function app_private.move_lead_source, app_private.uses_of_lead_source to plat_user;

create function app_public.delete_lead_source(id uuid,
  reassign_to_id uuid default null) returns app_public.delete_lead_source_payload
language plpgsql volatile as $$
declare
  source app_public.lead_sources;
  moved record;
  used record;
begin
  perform app_hidden.require_viewer();
  select * into source from app_public.lead_sources s where s.id = delete_lead_source.id;
  if source is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead source.', '{"field": "id"}');
  end if;
  select * into moved from (select 0 as leads, 0 as buyers) none;
  if reassign_to_id is not null then
    select * into moved from app_private.move_lead_source(source.id, reassign_to_id);
  elsif not source.is_system then
    select * into used from app_private.uses_of_lead_source(source.id);
    if used.leads + used.buyers > 0 then
      perform app_hidden.fail('CONFLICT',
        format('This lead source cannot be deleted because other records refer to it: %s. Use reassignToId to move '
          'them to another source.', concat_ws(' and ',
          case when used.leads > 0 then used.leads || case when used.leads = 1 then ' lead' else ' leads' end end,
          case when used.buyers > 0 then used.buyers || case when used.buyers = 1 then ' buyer' else ' buyers' end
            end)),
        jsonb_build_object('dependents', jsonb_build_object('leads', used.leads, 'buyers', used.buyers)));
    end if;
  end if;
  perform app_hidden.delete_record(null::app_public.lead_sources, source.id::text);
  return row(source.id, true, source.project_id, moved.leads, moved.buyers);
end $$;
comment on function app_public.delete_lead_source is $$
@arg reassignToId Lead source that leads, buyers and trackers are moved to. Required if the source has leads or buyers.

Deletes a lead source, after moving its leads, buyers and trackers to another one.$$;
grant execute on function app_public.delete_lead_source to plat_user, plat_anonymous;

-- Neither LIKE nor trigram operators are leakproof, so they use no index under row security. These functions search
-- first, among rows visible to the viewer, and leave the rest, such as deleted leads, to the policy.
create function app_private.find_leads(condition text) returns setof uuid
language plpgsql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[] := app_hidden.viewer_organizations('lead.read');
  projects uuid[] := app_hidden.viewer_projects('lead.read');
  own_projects uuid[] := app_hidden.viewer_own_projects('lead.read');
begin
  -- A literal, so that it is planned for its words: rare ones use the index, frequent ones do not.
  return query execute 'select l.id from app_public.leads l where l.organization_id = any ($1) and ' || condition || '
    and (l.organization_id = any ($2) or l.project_id = any ($3) or (l.assignee_id = $4 and l.project_id = any ($5)))'
    using organizations || array(select distinct p.organization_id from app_public.projects p
      where p.id = any (projects || own_projects)),
      organizations, projects, app_public.current_user_id(), own_projects;
end $$;
comment on function app_private.find_leads(text) is
  'Leads that the viewer sees and that meet a condition on l, which is SQL: callers quote what they put into it.';

create function app_hidden.matching_leads(query text) returns setof uuid
language sql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
  select app_private.find_texts('LEAD', 'lead.read', query, 'r.search_text')
$$;
comment on function app_hidden.matching_leads(text) is 'Leads that the viewer sees and that contain every word.';

create function app_hidden.leads_with_phone(phone text) returns setof uuid
language sql stable security definer rows 5 set search_path = pg_catalog, pg_temp as $$
  select app_private.find_leads(case
    when phone ~ '^\s*(\+|00)' then format('reverse(l.phone) = %L', reverse(app_hidden.to_e164(phone, null)))
    when phone !~ '[1-9]' then 'false'
    else format('reverse(l.phone) like %L', reverse(ltrim(regexp_replace(phone, '[^0-9]', '', 'g'), '0')) || '%') end)
$$;
comment on function app_hidden.leads_with_phone(text) is
  'Leads that the viewer sees and whose phone number is this one or ends in these digits.';

create function app_private.lead_interaction(lead_id uuid, at timestamptz, is_response boolean) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.lead_interactions(array[lead_id], at, is_response)
$$;
comment on function app_private.lead_interaction(uuid, timestamptz, boolean) is
  'Somebody of the team was in touch with the lead; is_response where the team turned to the lead, by a call, mail or '
  'appointment.';

comment on function app_private.live_lead(uuid,text) is
  E'@withoutViewer Callers may write leads of the project, where an address is in use once.\n\nThe lead of a project '
  'with an email address.';
