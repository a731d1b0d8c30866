--! Previous: sha1:740c1de2216e3b43979c1bb1a44eae0bdefb89d2
--! Hash: sha1:551315b2a6a498543c9b0d8472df0640c72c366a
--! Message: leads

-- Leads: people who may buy. Where they came from, why they were lost, who brings them, and the notes on them.

select app_private.create_enum('lead_status', 'How far a lead is.', array[
  ['NEW', 'Nobody has been in touch yet.'], ['CONTACTED', 'Somebody has been in touch.'], ['COLD', 'Unlikely to buy soon.'],
  ['WARM', 'Interested.'], ['HOT', 'Wants to buy.'], ['NEGOTIATING', 'Has an active negotiation.'], ['RESERVED', 'Has an active reservation.'],
  ['CONVERTED', 'Became a buyer.'], ['LOST', 'Will not buy; has a fallout reason.'], ['UNQUALIFIED', 'Cannot buy.']]);
select app_private.create_enum('lead_origin', 'The technical way in.', array[
  ['WEB_FORM', 'A form on a website.'], ['CONTACT_PROJECT', 'The contact form of the project.'], ['API', 'A program.'], ['IMPORT', 'A file.'],
  ['MANUAL', 'Entered by hand.'], ['PHONE', 'A call.'], ['WALK_IN', 'A visit to the sales office.'], ['OPEN_HOUSE', 'An open house.'],
  ['REFERRAL', 'A referral.'], ['AGENT_PORTAL', 'An agent.'], ['INTEGRATION', 'A connected application.'], ['MARKETPLACE', 'A marketplace.']]);
select app_private.create_enum('lead_source_category', 'The kind of a lead source.', array[
  ['WEBSITE', 'Own website.'], ['PORTAL', 'Listing portal.'], ['SEARCH_ADS', 'Search advertising.'], ['SOCIAL', 'Social media.'], ['EMAIL', 'E-mail.'],
  ['REFERRAL', 'Referral.'], ['AGENT', 'Agent.'], ['SIGNAGE', 'Signs.'], ['EVENT', 'Event.'], ['PRINT', 'Print.'], ['PHONE', 'Phone.'],
  ['WALK_IN', 'Walk-in.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('fallout_subject', 'What can fall through.', array[
  ['LEAD', 'A lead.'], ['RESERVATION', 'A reservation.'], ['NEGOTIATION', 'A negotiation.'], ['BUYER', 'A purchase.']]);
select app_private.create_enum('fallout_category', 'The kind of a fallout reason.', array[
  ['PRICE', 'Price.'], ['FINANCING', 'Financing.'], ['LOCATION', 'Location.'], ['LAYOUT', 'Layout.'], ['TIMING', 'Timing.'],
  ['COMPETITOR', 'Bought elsewhere.'], ['UNRESPONSIVE', 'Does not answer.'], ['RESCISSION', 'Withdrew in the rescission period.'],
  ['DEFAULT', 'Did not fulfil the contract.'], ['DUPLICATE', 'Known already.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('note_visibility', 'Who reads a note.', array[
  ['TEAM', 'Everybody who sees the lead.'], ['ASSIGNEE', 'Its author and whoever the lead is assigned to.'], ['ORGANIZATION', 'Members of the organization only.']]);
select app_private.create_enum('duplicate_policy', 'What to do with a lead that is there already.', array[
  ['MERGE', 'Fill what is empty in the existing lead and return it.'], ['RETURN_EXISTING', 'Return the existing lead unchanged.'],
  ['ERROR', 'Refuse with CONFLICT and existingId.']]);

create type app_public.agent_input as (
  id uuid, name text, email app_public.email_address, phone app_public.phone_number, brokerage text, license_number text
);
comment on type app_public.agent_input is 'An agent: an existing one by id, or one to find by e-mail or make.';
comment on column app_public.agent_input.id is 'An existing agent.';
comment on column app_public.agent_input.name is 'Full name.';
comment on column app_public.agent_input.email is 'E-mail address; an agent of the organization with it is taken.';
comment on column app_public.agent_input.phone is 'Phone number.';
comment on column app_public.agent_input.brokerage is 'Brokerage the agent works for.';
comment on column app_public.agent_input.license_number is 'Number of the licence.';

create table app_public.agents (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  name app_public.short_text not null,
  email app_public.email_address constraint agents_email_lower check (email = lower(email)),
  phone app_public.phone_number constraint agents_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  brokerage app_public.short_text,
  license_number app_public.short_text,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  unique (id, organization_id)
);
create unique index agents_email on app_public.agents (organization_id, email) where deleted_at is null and email is not null;

create table app_public.lead_sources (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  name app_public.short_text not null,
  code text not null constraint lead_sources_code_format check (code ~ '^[A-Z][A-Z0-9_]{0,49}$'),
  category app_public.lead_source_category not null default 'OTHER',
  is_system boolean not null default false,
  active boolean not null default true,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  unique (id, project_id),
  constraint lead_sources_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete cascade
);
create unique index lead_sources_code on app_public.lead_sources (project_id, code) where deleted_at is null;
comment on constraint lead_sources_code_format on app_public.lead_sources is 'A code has upper-case letters, digits and underscores, such as WEB_DIRECT.';
comment on index app_public.lead_sources_code is 'There is a lead source with this code already.';

create table app_public.fallout_reasons (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  name app_public.short_text not null,
  applies_to app_public.fallout_subject[] not null default '{LEAD,RESERVATION,NEGOTIATION,BUYER}'
    constraint fallout_reasons_applies_to_some check (cardinality(applies_to) > 0),
  category app_public.fallout_category not null default 'OTHER',
  active boolean not null default true,
  sequence int not null default 0,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  unique (id, project_id),
  constraint fallout_reasons_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete cascade
);
create unique index fallout_reasons_name on app_public.fallout_reasons (project_id, lower(name)) where deleted_at is null;
comment on constraint fallout_reasons_applies_to_some on app_public.fallout_reasons is 'Name at least one thing that the reason applies to.';
comment on index app_public.fallout_reasons_name is 'There is a fallout reason with this name already.';

create function app_hidden.fold(value text) returns text
language sql immutable parallel safe as $$ select lower(public.unaccent('public.unaccent', value)) $$;
comment on function app_hidden.fold(text) is 'Text for comparing: without case and accents.';

create table app_public.leads (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  name app_public.short_text not null,
  first_name app_public.short_text,
  last_name app_public.short_text,
  legal_name app_public.short_text,
  email app_public.email_address constraint leads_email_lower check (email = lower(email)),
  phone app_public.phone_number constraint leads_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  address app_public.address,
  company app_public.short_text,
  preferred_language app_public.language_code,
  status app_public.lead_status not null default 'NEW',
  status_changed_at timestamptz not null default now(),
  tags app_public.tags not null default '{}',
  origin app_public.lead_origin not null default 'API',
  source app_public.short_text,
  source_id uuid,
  is_agent boolean not null default false,
  is_represented boolean,
  agent_id uuid,
  assignee_id uuid references app_public.users on delete set null,
  subscribed boolean not null default false,
  do_not_contact boolean not null default false,
  registered_at timestamptz not null default now(),
  first_response_at timestamptz,
  last_interaction_at timestamptz,
  budget_min app_public.money,
  budget_max app_public.money,
  preapproved boolean,
  fallout_reason_id uuid,
  fallout_note app_public.long_text,
  lost_at timestamptz,
  converted_at timestamptz,
  metadata jsonb,
  search_text text generated always as (app_hidden.fold(name || ' ' || coalesce(email, '') || ' ' || coalesce(phone, '') || ' ' || coalesce(company, ''))) stored,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  constraint leads_budget_order check (budget_max >= budget_min),
  unique (id, project_id),
  constraint leads_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete restrict,
  constraint leads_source_id_fkey foreign key (source_id, project_id) references app_public.lead_sources (id, project_id) on delete restrict,
  constraint leads_fallout_reason_id_fkey foreign key (fallout_reason_id, project_id) references app_public.fallout_reasons (id, project_id) on delete restrict,
  constraint leads_agent_id_fkey foreign key (agent_id, organization_id) references app_public.agents (id, organization_id) on delete restrict
);
comment on constraint leads_budget_order on app_public.leads is 'The highest budget is below the lowest.';
create unique index leads_live_email on app_public.leads (project_id, email) where deleted_at is null and email is not null;
comment on index app_public.leads_live_email is 'There is a lead with this e-mail address in the project already.';
create index leads_organization on app_public.leads (organization_id, registered_at desc, id desc) where deleted_at is null;
create index leads_organization_status on app_public.leads (organization_id, status, registered_at desc, id desc) where deleted_at is null;
create index leads_project on app_public.leads (project_id, registered_at desc, id desc) where deleted_at is null;
create index leads_project_status on app_public.leads (project_id, status, registered_at desc, id desc) where deleted_at is null;
create index leads_assignee on app_public.leads (assignee_id, project_id, registered_at desc, id desc) where deleted_at is null;
create index leads_email on app_public.leads (email) where deleted_at is null and email is not null;
create index leads_phone on app_public.leads (reverse(phone) text_pattern_ops) where phone is not null;
create index leads_source on app_public.leads (source_id) where deleted_at is null;
create index leads_fallout_reason on app_public.leads (fallout_reason_id) where deleted_at is null;
create index leads_agent on app_public.leads (agent_id, registered_at desc, id desc) where deleted_at is null;
create index leads_search on app_public.leads using gin (organization_id, search_text gin_trgm_ops);

create table app_public.lead_notes (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  lead_id uuid not null,
  text app_public.long_text not null,
  pinned boolean not null default false,
  visibility app_public.note_visibility not null default 'TEAM',
  author_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  edited_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  constraint lead_notes_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id) on delete cascade,
  constraint lead_notes_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete cascade
);
create index lead_notes_lead on app_public.lead_notes (lead_id, pinned desc, id desc) where deleted_at is null;
create index lead_notes_author on app_public.lead_notes (author_id);

--------------------------------------------------------------------------------------------------------

alter table app_public.agents enable row level security;
alter table app_public.lead_sources enable row level security;
create policy sellers on app_public.lead_sources for select to plat_user
  using (deleted_at is null and (organization_id = any (array(select app_hidden.viewer_organizations('lead.read')))
    or organization_id = any (array(select app_hidden.viewer_organizations('project.manage')))
    or project_id = any (array(select app_hidden.viewer_projects('lead.read')))
    or project_id = any (array(select app_hidden.viewer_own_projects('lead.read')))));
create policy managers_insert on app_public.lead_sources for insert to plat_user
  with check (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))));
create policy managers_update on app_public.lead_sources for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))));
create policy managers_delete on app_public.lead_sources for delete to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))));
grant select on app_public.lead_sources to plat_user, plat_anonymous, plat_worker;
grant insert (project_id, name, code, category, active), update (name, category, active), delete on app_public.lead_sources to plat_user;

alter table app_public.fallout_reasons enable row level security;
create policy sellers on app_public.fallout_reasons for select to plat_user
  using (deleted_at is null and (organization_id = any (array(select app_hidden.viewer_organizations('lead.read')))
    or organization_id = any (array(select app_hidden.viewer_organizations('project.manage')))
    or project_id = any (array(select app_hidden.viewer_projects('lead.read')))
    or project_id = any (array(select app_hidden.viewer_own_projects('lead.read')))));
create policy managers_insert on app_public.fallout_reasons for insert to plat_user
  with check (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))));
create policy managers_update on app_public.fallout_reasons for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))));
create policy managers_delete on app_public.fallout_reasons for delete to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))));
grant select on app_public.fallout_reasons to plat_user, plat_anonymous, plat_worker;
grant insert (project_id, name, applies_to, category, active, sequence), update (name, applies_to, category, active, sequence), delete
  on app_public.fallout_reasons to plat_user;

alter table app_public.leads enable row level security;
create policy sellers on app_public.leads for select to plat_user
  using (deleted_at is null and (
    organization_id = any (array(select app_hidden.viewer_organizations('lead.read')))
    or project_id = any (array(select app_hidden.viewer_projects('lead.read')))
    or (assignee_id = (select app_public.current_user_id()) and project_id = any (array(select app_hidden.viewer_own_projects('lead.read'))))));
create policy sellers_insert on app_public.leads for insert to plat_user
  with check (organization_id = any (array(select app_hidden.viewer_organizations('lead.write')))
    or project_id = any (array(select app_hidden.viewer_projects('lead.write')))
    or (assignee_id = (select app_public.current_user_id()) and project_id = any (array(select app_hidden.viewer_own_projects('lead.write')))));
create policy sellers_update on app_public.leads for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('lead.write')))
    or project_id = any (array(select app_hidden.viewer_projects('lead.write')))
    or (assignee_id = (select app_public.current_user_id()) and project_id = any (array(select app_hidden.viewer_own_projects('lead.write')))));
create policy sellers_delete on app_public.leads for delete to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('lead.write')))
    or project_id = any (array(select app_hidden.viewer_projects('lead.write')))
    or (assignee_id = (select app_public.current_user_id()) and project_id = any (array(select app_hidden.viewer_own_projects('lead.write')))));
grant select on app_public.leads to plat_user, plat_anonymous, plat_worker;
grant insert (project_id, name, email, phone, address, status, source, source_id, company, is_agent, is_represented, subscribed, assignee_id,
  registered_at, tags, metadata) on app_public.leads to plat_user;
grant update (name, first_name, last_name, legal_name, email, phone, address, status, source_id, company, is_agent, is_represented, subscribed,
  do_not_contact, preferred_language, assignee_id, budget_min, budget_max, preapproved, fallout_reason_id, fallout_note, tags, metadata)
  on app_public.leads to plat_user;
grant delete on app_public.leads to plat_user;

-- Members know the agents of their organization; who has a part in its projects knows those of the leads they see.
create policy sellers on app_public.agents for select to plat_user
  using (deleted_at is null and (organization_id = any (array(select app_hidden.viewer_organizations('org.member')))
    or organization_id = any (array(select app_hidden.viewer_organizations('lead.read')))
    or exists (select from app_public.leads l where l.agent_id = agents.id)));
grant select on app_public.agents to plat_user, plat_anonymous, plat_worker;

alter table app_public.lead_notes enable row level security;
create policy readers on app_public.lead_notes for select to plat_user
  using (deleted_at is null
    and exists (select from app_public.leads l where l.id = lead_id)
    and (visibility = 'TEAM'
      or author_id = (select app_public.current_user_id())
      or (visibility = 'ORGANIZATION' and organization_id = any (array(select app_hidden.viewer_organizations('org.member'))))
      or (visibility = 'ASSIGNEE' and exists (select from app_public.leads l where l.id = lead_id and l.assignee_id = (select app_public.current_user_id())))));
-- Own leads need no condition of their own here: nobody sees others where own ones are all that one may write to.
create policy writers_insert on app_public.lead_notes for insert to plat_user
  with check (author_id = (select app_public.current_user_id()) and exists (select from app_public.leads l where l.id = lead_id)
    and (organization_id = any (array(select app_hidden.viewer_organizations('lead.write')))
      or project_id = any (array(select app_hidden.viewer_projects('lead.write')))
      or project_id = any (array(select app_hidden.viewer_own_projects('lead.write')))));
create policy writers_update on app_public.lead_notes for update to plat_user
  using ((author_id = (select app_public.current_user_id()) or organization_id = any (array(select app_hidden.viewer_organizations('org.admin'))))
    and (organization_id = any (array(select app_hidden.viewer_organizations('lead.write')))
      or project_id = any (array(select app_hidden.viewer_projects('lead.write')))
      or project_id = any (array(select app_hidden.viewer_own_projects('lead.write')))));
create policy writers_delete on app_public.lead_notes for delete to plat_user
  using ((author_id = (select app_public.current_user_id()) or organization_id = any (array(select app_hidden.viewer_organizations('org.admin'))))
    and (organization_id = any (array(select app_hidden.viewer_organizations('lead.write')))
      or project_id = any (array(select app_hidden.viewer_projects('lead.write')))
      or project_id = any (array(select app_hidden.viewer_own_projects('lead.write')))));
grant select on app_public.lead_notes to plat_user, plat_anonymous, plat_worker;
grant insert (lead_id, text, pinned, visibility), update (text, pinned, visibility), delete on app_public.lead_notes to plat_user;

select app_private.make_record('agents', 'agent', 'lead.write');
select app_private.make_project_record('lead_sources', 'lead_source', 'project.manage');
select app_private.make_project_record('fallout_reasons', 'fallout_reason', 'project.manage');
select app_private.make_project_record('leads', 'lead', 'lead.write');
select app_private.make_project_record('lead_notes', 'lead_note', 'lead.write');

-- Open states among each other by hand; LOST and UNQUALIFIED and back; CONVERTED by the service.
select app_private.make_state_machine('leads', 'lead',
  steps => (
    with open_states (state) as (select unnest(array['NEW', 'CONTACTED', 'COLD', 'WARM', 'HOT', 'NEGOTIATING', 'RESERVED'])),
    all_steps as (
      select a.state as from_state, b.state as to_state, 'hand' as how from open_states a, open_states b where a.state <> b.state
      union all select state, ended, 'hand' from open_states, unnest(array['LOST', 'UNQUALIFIED']) ended
      union all select ended, state, 'hand' from open_states, unnest(array['LOST', 'UNQUALIFIED']) ended
      union all select state, 'CONVERTED', 'service' from open_states
    )
    select array_agg(array[from_state, to_state, how]) from all_steps),
  initial => array['NEW', 'CONTACTED', 'COLD', 'WARM', 'HOT'],
  requirements => array[['LOST', 'fallout_reason_id', 'A lead that is lost needs a fallout reason.']]);

--------------------------------------------------------------------------------------------------------

create function app_private.tg_leads__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project_country text;
  project_currency text;
  applies boolean;
begin
  select coalesce((p.address).country, 'US'), p.currency into project_country, project_currency
    from app_public.projects p where p.id = new.project_id;
  -- PERF: whatever is assigned has its domain checked once more, so only what changes is.
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
    perform app_hidden.fail('BAD_USER_INPUT', 'A lead cannot be registered in the future.', '{"field": "registeredAt"}');
  end if;
  -- PERF: a condition with a query in it is run as one, whatever comes before it; so the cheap ones stand around it.
  -- Who sees own leads only keeps the lead they bring.
  if tg_op = 'INSERT' and new.assignee_id is null and app_public.current_user_id() is not null and not coalesce(app_hidden.is_service(), false) then
    if new.project_id = any (array(select app_hidden.viewer_own_projects('lead.write'))) then
      new.assignee_id := app_public.current_user_id();
    end if;
  end if;
  if new.assignee_id is not null and (tg_op = 'INSERT' or new.assignee_id is distinct from old.assignee_id) then
    if not exists (
      select from app_public.organization_user_connections m
      join app_public.project_organizations p on p.organization_id = m.organization_id
      where m.user_id = new.assignee_id and p.project_id = new.project_id) then
      perform app_hidden.fail('BAD_USER_INPUT', 'A lead is assigned to a member of an organization of its project.', '{"field": "assigneeId"}');
    end if;
  end if;
  if new.fallout_reason_id is not null and (tg_op = 'INSERT' or new.fallout_reason_id is distinct from old.fallout_reason_id) then
    select 'LEAD' = any (r.applies_to::text[]) into applies from app_public.fallout_reasons r
      where r.id = new.fallout_reason_id and r.project_id = new.project_id and r.deleted_at is null;
    if applies is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such fallout reason in this project.', '{"field": "falloutReasonId"}');
    elsif not applies then
      perform app_hidden.fail('BAD_USER_INPUT', 'This fallout reason does not apply to leads.', '{"field": "falloutReasonId"}');
    end if;
  end if;
  if new.source_id is not null and (tg_op = 'INSERT' or new.source_id is distinct from old.source_id) then
    select s.code into new.source from app_public.lead_sources s
      where s.id = new.source_id and s.project_id = new.project_id and s.deleted_at is null;
    if not found then
      perform app_hidden.fail('NOT_FOUND', 'There is no such lead source in this project.', '{"field": "sourceId"}');
    end if;
  elsif tg_op = 'INSERT' and new.source is not null then
    select s.id into new.source_id from app_public.lead_sources s
      where s.project_id = new.project_id and s.code = upper(new.source) and s.deleted_at is null;
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
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.leads for each row execute function app_private.tg_leads__prepare();

create function app_private.tg_lead_notes__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.lead_id is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Give the lead that the note is about.', '{"field": "leadId"}');
  end if;
  if tg_op = 'INSERT' then
    select l.project_id, l.organization_id into new.project_id, new.organization_id from app_public.leads l where l.id = new.lead_id;
  elsif new.text is distinct from old.text then
    new.edited_at := now();
  end if;
  return new;
end $$;
create trigger _010_prepare before insert or update on app_public.lead_notes for each row execute function app_private.tg_lead_notes__prepare();

create function app_private.tg_lead_sources__keep_system() returns trigger
language plpgsql volatile as $$
begin
  if old.is_system then
    perform app_hidden.fail('CONFLICT', 'This lead source belongs to every project and cannot be deleted; switch it off with active: false.');
  end if;
  return old;
end $$;
create trigger _200_keep_system before delete on app_public.lead_sources for each row execute function app_private.tg_lead_sources__keep_system();

create function app_private.tg_lead_sources__code() returns trigger
language plpgsql volatile as $$
begin
  if new.code is null then
    new.code := left(btrim(upper(regexp_replace(app_hidden.fold(new.name), '[^a-z0-9]+', '_', 'g')), '_'), 50);
    if new.code !~ '^[A-Z]' then
      new.code := left('SOURCE_' || new.code, 50);
    end if;
  end if;
  return new;
end $$;
create trigger _200_code before insert on app_public.lead_sources for each row execute function app_private.tg_lead_sources__code();

create function app_private.tg_projects__lead_defaults() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_public.lead_sources (project_id, organization_id, name, code, category, is_system) values
    (new.id, new.organization_id, 'Website', 'WEB_DIRECT', 'WEBSITE', true),
    (new.id, new.organization_id, 'Walk-in', 'WALK_IN', 'WALK_IN', true),
    (new.id, new.organization_id, 'Phone', 'PHONE', 'PHONE', true),
    (new.id, new.organization_id, 'Referral', 'REFERRAL', 'REFERRAL', true),
    (new.id, new.organization_id, 'Agent', 'AGENT', 'AGENT', true),
    (new.id, new.organization_id, 'Other', 'OTHER', 'OTHER', true);
  insert into app_public.fallout_reasons (project_id, organization_id, name, category, sequence) values
    (new.id, new.organization_id, 'Price too high', 'PRICE', 1),
    (new.id, new.organization_id, 'No financing', 'FINANCING', 2),
    (new.id, new.organization_id, 'Bought elsewhere', 'COMPETITOR', 3),
    (new.id, new.organization_id, 'Does not answer', 'UNRESPONSIVE', 4),
    (new.id, new.organization_id, 'Other', 'OTHER', 5);
  return null;
end $$;
create trigger _520_lead_defaults after insert on app_public.projects for each row execute function app_private.tg_projects__lead_defaults();

--------------------------------------------------------------------------------------------------------

create function app_private.agent_for(organization_id uuid, agent app_public.agent_input, country text) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  found_id uuid;
  knows_all boolean := app_hidden.organization_can(organization_id, 'org.member') or app_hidden.organization_can(organization_id, 'lead.read');
begin
  if length(agent.name) > 300 or length(agent.brokerage) > 300 or length(agent.license_number) > 300 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Give 300 characters at most.', jsonb_build_object('field', case when length(agent.name) > 300 then 'agent.name'
      when length(agent.brokerage) > 300 then 'agent.brokerage' else 'agent.licenseNumber' end));
  end if;
  if agent.id is not null then
    select a.id into found_id from app_public.agents a where a.id = agent.id and a.organization_id = agent_for.organization_id and a.deleted_at is null
      and (knows_all or exists (select from app_public.leads l where l.agent_id = a.id and l.assignee_id = app_public.current_user_id() and l.deleted_at is null));
    if found_id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such agent.', '{"field": "agent.id"}');
    end if;
  elsif agent.email is not null then
    select a.id into found_id from app_public.agents a
      where a.organization_id = agent_for.organization_id and a.email = lower(agent.email) and a.deleted_at is null;
  end if;
  if found_id is not null then
    -- An affiliated organization names an agent, it does not change what the owner knows about them.
    update app_public.agents a set
      name = coalesce(btrim(agent.name), a.name), phone = coalesce(app_hidden.to_e164(agent.phone, country, 'agent.phone'), a.phone),
      brokerage = coalesce(btrim(agent.brokerage), a.brokerage), license_number = coalesce(btrim(agent.license_number), a.license_number)
      where a.id = found_id and knows_all;
    return found_id;
  end if;
  if nullif(btrim(agent.name), '') is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'A new agent needs a name.', '{"field": "agent.name"}');
  end if;
  insert into app_public.agents (organization_id, name, email, phone, brokerage, license_number)
    values (agent_for.organization_id, btrim(agent.name), lower(agent.email), app_hidden.to_e164(agent.phone, country, 'agent.phone'),
      nullif(btrim(agent.brokerage), ''), nullif(btrim(agent.license_number), ''))
    on conflict do nothing returning id into found_id;
  return coalesce(found_id, app_private.agent_for(organization_id, agent, country));
end $$;
comment on function app_private.agent_for(uuid, app_public.agent_input, text) is
  'The agent that the input names, found or made; a phone number without a country code is one of the country.';

create function app_private.set_lead_agent(lead app_public.leads, agent app_public.agent_input) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Only for leads that the viewer has just written: the callers did so as the viewer.
  update app_public.leads l set agent_id = case when agent is distinct from null then app_private.agent_for(lead.organization_id, agent,
      coalesce((select (p.address).country from app_public.projects p where p.id = lead.project_id), 'US')) end
    where l.id = lead.id;
end $$;

create function app_private.live_lead(project_id uuid, email text) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.id from app_public.leads l where l.project_id = $1 and l.email = lower(btrim($2)) and l.deleted_at is null
$$;
grant execute on function app_private.set_lead_agent, app_private.live_lead to plat_user;

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
    if violated <> 'leads_live_email' then
      raise;
    end if;
    existing_id := app_private.live_lead(app_hidden.record_id('projects', input ->> 'project_id', 'projectId'), input ->> 'email');
    select * into lead from app_public.leads l where l.id = existing_id;
    if coalesce(on_duplicate, 'ERROR') = 'ERROR' or lead.id is null then
      -- Somebody else's lead stays theirs: its id is told to those who may see it.
      perform app_hidden.fail('CONFLICT', 'There is a lead with this e-mail address in the project already.',
        jsonb_strip_nulls(jsonb_build_object('field', 'email', 'existingId', lead.id)));
    end if;
    if on_duplicate = 'MERGE' then
      lead := app_hidden.update_record(null::app_public.leads, jsonb_build_object('id', existing_id) || (
        select coalesce(jsonb_object_agg(i.key, i.value), '{}') from jsonb_each(input) i
        where i.key in ('phone', 'address', 'company', 'source_id', 'is_represented', 'metadata', 'assignee_id')
          and i.value <> 'null' and to_jsonb(lead) ->> i.key is null));
    end if;
    return lead;
  end;
  if agent is distinct from null then
    perform app_private.set_lead_agent(lead, agent);
    select * into lead from app_public.leads l where l.id = lead.id;
  end if;
  return lead;
end $$;
comment on function app_public.create_lead is $$
@arg agent The agent who brings the lead.
@arg onDuplicate What to do when the project has a lead with this e-mail address; ERROR where left out.

Creates a lead. The sales team is not notified; contactProject does that.$$;

create function app_public.update_lead(input jsonb, agent app_public.agent_input default null) returns app_public.leads
language plpgsql volatile as $$
declare
  lead app_public.leads;
begin
  perform app_hidden.require_viewer();
  lead := app_hidden.update_record(null::app_public.leads, input);
  if input ? 'agent' then
    perform app_private.set_lead_agent(lead, agent);
    select * into lead from app_public.leads l where l.id = lead.id;
  end if;
  return lead;
end $$;
comment on function app_public.update_lead is $$
@arg agent The agent who brings the lead; null for none.

Changes a lead.$$;
grant execute on function app_public.create_lead, app_public.update_lead to plat_user, plat_anonymous;

create type app_public.delete_lead_source_payload as (id uuid, deleted boolean, project_id uuid, reassigned_leads int);
comment on type app_public.delete_lead_source_payload is E'@foreignKey (project_id) references projects (id)|@fieldName project\n\nWhat deleting a lead source did.';
comment on column app_public.delete_lead_source_payload.id is E'@notNull\n\nThe deleted lead source.';
comment on column app_public.delete_lead_source_payload.deleted is E'@notNull\n\nWhether it is deleted.';
comment on column app_public.delete_lead_source_payload.project_id is E'@behavior -*\n\nIts project.';
comment on column app_public.delete_lead_source_payload.reassigned_leads is E'@notNull\n\nHow many leads moved to the other source.';

create function app_public.delete_lead_source(id uuid, reassign_to_id uuid default null) returns app_public.delete_lead_source_payload
language plpgsql volatile as $$
declare
  source app_public.lead_sources;
  target app_public.lead_sources;
  amount int := 0;
begin
  perform app_hidden.require_viewer();
  select * into source from app_public.lead_sources s where s.id = delete_lead_source.id;
  if source is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead source.', '{"field": "id"}');
  end if;
  if reassign_to_id is not null then
    if not app_hidden.organization_can(source.organization_id, 'project.manage') then
      perform app_hidden.refuse('lead_sources', 'delete');
    end if;
    select * into target from app_public.lead_sources s where s.id = reassign_to_id and s.project_id = source.project_id and s.id <> source.id;
    if target is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such lead source in this project.', '{"field": "reassignToId"}');
    end if;
    update app_public.leads l set source_id = target.id where l.source_id = source.id;
    get diagnostics amount = row_count;
  elsif app_hidden.organization_can(source.organization_id, 'project.manage') and not source.is_system then
    select count(*) into amount from app_public.leads l where l.source_id = source.id;
    if amount > 0 then
      perform app_hidden.fail('CONFLICT', format('This lead source cannot be deleted because of what depends on it: %s. Give reassignToId to move them to another source.',
        amount || case when amount = 1 then ' lead' else ' leads' end), jsonb_build_object('dependents', jsonb_build_object('leads', amount)));
    end if;
  end if;
  perform app_hidden.delete_record(null::app_public.lead_sources, source.id::text);
  return row(source.id, true, source.project_id, amount);
end $$;
comment on function app_public.delete_lead_source is $$
@arg reassignToId Leads of the deleted source move there; without it, a source with leads is not deleted.

Deletes a lead source.$$;
grant execute on function app_public.delete_lead_source to plat_user, plat_anonymous;

--------------------------------------------------------------------------------------------------------

-- Neither LIKE nor a trigram is leakproof, so under row security they reach no index: these look first, among what the
-- viewer sees, and leave the rest, such as deleted leads, to the policy.
create function app_private.find_leads(condition text) returns setof uuid
language plpgsql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[] := array(select app_hidden.viewer_organizations('lead.read'));
  projects uuid[] := array(select app_hidden.viewer_projects('lead.read'));
  own_projects uuid[] := array(select app_hidden.viewer_own_projects('lead.read'));
begin
  -- Written out, so that it is planned for its own words: a rare one by the index, a frequent one without.
  return query execute 'select l.id from app_public.leads l where l.organization_id = any ($1) and ' || condition || '
    and (l.organization_id = any ($2) or l.project_id = any ($3) or (l.assignee_id = $4 and l.project_id = any ($5)))'
    using organizations || array(select distinct p.organization_id from app_public.projects p where p.id = any (projects || own_projects)),
      organizations, projects, app_public.current_user_id(), own_projects;
end $$;
comment on function app_private.find_leads(text) is
  'Leads that the viewer sees and that meet a condition on l, which is SQL: callers quote what they put into it.';

create function app_hidden.matching_leads(query text) returns setof uuid
language sql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
  select app_private.find_leads((
    select coalesce(string_agg(format('l.search_text like %L', '%' || regexp_replace(word, '([\\%_])', '\\\1', 'g') || '%'), ' and '), 'true')
    from regexp_split_to_table(app_hidden.fold(btrim(query)), '\s+') word))
$$;
comment on function app_hidden.matching_leads(text) is 'Leads that the viewer sees and that contain every word.';

create function app_hidden.leads_with_phone(phone text) returns setof uuid
language sql stable security definer rows 5 set search_path = pg_catalog, pg_temp as $$
  select app_private.find_leads(case
    when phone ~ '^\s*(\+|00)' then format('reverse(l.phone) = %L', reverse(app_hidden.to_e164(phone, null)))
    when phone !~ '[1-9]' then 'false'
    else format('reverse(l.phone) like %L', reverse(ltrim(regexp_replace(phone, '[^0-9]', '', 'g'), '0')) || '%') end)
$$;
comment on function app_hidden.leads_with_phone(text) is 'Leads that the viewer sees and whose phone number is this one or ends in these digits.';

create function app_public.leads_filter_query(l app_public.leads, value text) returns boolean
language sql stable as $$ select l.id = any (array(select app_hidden.matching_leads(value))) $$;
create function app_public.leads_filter_unassigned(l app_public.leads, value boolean) returns boolean
language sql stable as $$ select (l.assignee_id is null) = value $$;
create function app_public.leads_filter_email(l app_public.leads, value text) returns boolean
language sql stable as $$ select l.email = lower(btrim(value)) $$;
create function app_public.leads_filter_phone(l app_public.leads, value text) returns boolean
language sql stable as $$ select l.id = any (array(select app_hidden.leads_with_phone(value))) $$;
grant execute on function app_public.leads_filter_query, app_public.leads_filter_unassigned, app_public.leads_filter_email,
  app_public.leads_filter_phone to plat_user, plat_anonymous;
comment on function app_public.leads_filter_query is E'@filter query\n@finder matching_leads\n\nWords in name, e-mail address, phone number or company.';
comment on function app_public.leads_filter_unassigned is E'@filter unassigned\n\nOnly leads that nobody works on, or only the others.';
comment on function app_public.leads_filter_email is E'@filter email\n\nThe e-mail address, whatever the case.';
comment on function app_public.leads_filter_phone is E'@filter phone\n@finder leads_with_phone\n\nThe phone number, or its last digits.';

create function app_public.leads_allowed_transitions(l app_public.leads) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('lead', to_jsonb(l)) $$;
create function app_public.lead_sources_lead_count(s app_public.lead_sources) returns int
language sql stable as $$ select count(*)::int from app_public.leads l where l.source_id = s.id $$;
create function app_public.fallout_reasons_usage_count(r app_public.fallout_reasons) returns int
language sql stable as $$ select count(*)::int from app_public.leads l where l.fallout_reason_id = r.id $$;
grant execute on function app_public.leads_allowed_transitions, app_public.lead_sources_lead_count, app_public.fallout_reasons_usage_count
  to plat_user, plat_anonymous;
comment on function app_public.leads_allowed_transitions is E'@notNull\n\nThe steps that the lead can take from its status.';
comment on function app_public.lead_sources_lead_count is E'@notNull\n\nHow many leads that the viewer sees came from it.';
comment on function app_public.fallout_reasons_usage_count is E'@notNull\n\nHow many records that the viewer sees fell through for it.';

comment on table app_public.agents is 'An agent who represents leads and buyers.';
comment on column app_public.agents.name is 'Full name.';
comment on column app_public.agents.email is 'E-mail address.';
comment on column app_public.agents.phone is 'Phone number.';
comment on column app_public.agents.brokerage is 'Brokerage the agent works for.';
comment on column app_public.agents.license_number is 'Number of the licence.';
comment on constraint agents_organization_id_fkey on app_public.agents is E'@behavior -*\n\nThe organization that knows the agent.';

comment on table app_public.lead_sources is 'Where the leads of a project come from.';
comment on column app_public.lead_sources.name is 'Name of the source.';
comment on column app_public.lead_sources.code is E'@insertOptional\n\nStable code, upper snake case, unique in the project; made from the name where left out.';
comment on column app_public.lead_sources.category is 'Kind of the source.';
comment on column app_public.lead_sources.is_system is 'Belongs to every project and cannot be deleted.';
comment on column app_public.lead_sources.active is 'Whether it is offered for new leads.';
comment on constraint lead_sources_project_id_fkey on app_public.lead_sources is
  E'@parent\n@fieldName project\n@foreignFieldName leadSources\n@backwardPermission lead.read\n@backwardDescription Where leads come from; null without the permission lead.read.\n\nThe project.';

comment on table app_public.fallout_reasons is 'Why leads, reservations, negotiations and purchases of a project fall through.';
comment on column app_public.fallout_reasons.name is 'Name of the reason.';
comment on column app_public.fallout_reasons.applies_to is 'What can fall through for it.';
comment on column app_public.fallout_reasons.category is 'Kind of the reason.';
comment on column app_public.fallout_reasons.active is 'Whether it is offered.';
comment on column app_public.fallout_reasons.sequence is 'Place in the list.';
comment on constraint fallout_reasons_project_id_fkey on app_public.fallout_reasons is
  E'@parent\n@fieldName project\n@foreignFieldName falloutReasons\n@backwardPermission lead.read\n@backwardDescription Why deals fall through; null without the permission lead.read.\n\nThe project.';

comment on table app_public.leads is $$
@portfolio lead.read
@defaultOrder registered_at desc
@filterLists status

A person who may buy.$$;
comment on column app_public.leads.project_id is E'@filter projectIds\n\nThe project.';
comment on column app_public.leads.name is 'Full name as given.';
comment on column app_public.leads.first_name is 'Given name.';
comment on column app_public.leads.last_name is 'Family name.';
comment on column app_public.leads.legal_name is 'Name for contracts.';
comment on column app_public.leads.email is 'E-mail address; at most one lead of a project has it.';
comment on column app_public.leads.phone is 'Phone number.';
comment on column app_public.leads.address is 'Postal address.';
comment on column app_public.leads.company is 'Company.';
comment on column app_public.leads.preferred_language is 'Language to write in.';
comment on column app_public.leads.status is E'@filter\n\nHow far the lead is.';
comment on column app_public.leads.status_changed_at is 'Since when it has its status.';
comment on column app_public.leads.tags is E'@filter\n\nFree words.';
comment on column app_public.leads.origin is E'@filter\n\nThe technical way in.';
comment on column app_public.leads.source is 'Code of the source, such as WEB_DIRECT.';
comment on column app_public.leads.source_id is E'@filter leadSourceIds\n\nThe lead source.';
comment on column app_public.leads.is_agent is E'@filter\n\nWhether the lead is an agent.';
comment on column app_public.leads.is_represented is 'Whether an agent represents the lead.';
comment on column app_public.leads.assignee_id is E'@filter assigneeIds\n\nThe member who works on the lead.';
comment on column app_public.leads.agent_id is 'The agent who brings the lead.';
comment on column app_public.leads.fallout_reason_id is 'Why the lead was lost; required for the status LOST.';
comment on column app_public.leads.subscribed is 'Whether the lead follows marketing mail.';
comment on column app_public.leads.do_not_contact is 'Whether the lead asked not to be contacted.';
comment on column app_public.leads.registered_at is E'@filter\n\nWhen the lead registered; the order of leads. May precede insertedAt.';
comment on column app_public.leads.updated_at is E'@filter\n\nThe last change.';
comment on column app_public.leads.first_response_at is 'The first contact by the sales team.';
comment on column app_public.leads.last_interaction_at is E'@filter\n\nThe last message, call or appointment.';
comment on column app_public.leads.budget_min is 'Lowest budget.';
comment on column app_public.leads.budget_max is 'Highest budget.';
comment on column app_public.leads.preapproved is 'Whether a lender approved the lead.';
comment on column app_public.leads.fallout_note is 'Why the lead was lost, in words.';
comment on column app_public.leads.lost_at is 'When the lead was lost.';
comment on column app_public.leads.converted_at is 'When the lead became a buyer.';
comment on column app_public.leads.metadata is 'Free data of the organization''s own programs.';
comment on column app_public.leads.search_text is E'@secret\n@behavior -*\n\nFor searching.';
comment on constraint leads_project_id_fkey on app_public.leads is
  E'@parent\n@fieldName project\n@foreignFieldName leads\n@backwardPermission lead.read\n@backwardDescription The leads, newest registration first; null without the permission lead.read.\n\nThe project.';
comment on constraint leads_source_id_fkey on app_public.leads is E'@fieldName leadSource\n@backwardBehavior -*\n\nThe source as the project defines it.';
comment on constraint leads_fallout_reason_id_fkey on app_public.leads is E'@fieldName falloutReason\n@backwardBehavior -*\n\nWhy the lead was lost.';
comment on constraint leads_agent_id_fkey on app_public.leads is E'@fieldName agent\n@foreignFieldName leads\n@backwardDescription The leads that the agent brings.\n\nThe agent who brings the lead.';
comment on constraint leads_assignee_id_fkey on app_public.leads is E'@fieldName assignee\n@backwardBehavior -*\n\nThe member who works on the lead.';

comment on table app_public.lead_notes is E'@defaultOrder pinned desc, id desc\n\nA note on a lead.';
comment on column app_public.lead_notes.lead_id is E'@insertOptional\n\nThe lead.';
comment on column app_public.lead_notes.text is 'What it says.';
comment on column app_public.lead_notes.pinned is 'Whether it stays on top.';
comment on column app_public.lead_notes.visibility is 'Who reads it.';
comment on column app_public.lead_notes.author_id is 'Who wrote it.';
comment on column app_public.lead_notes.edited_at is 'When its text was last changed.';
comment on constraint lead_notes_lead_id_fkey on app_public.lead_notes is E'@fieldName lead\n@foreignFieldName notes\n@backwardDescription The notes, pinned first, then newest first.\n\nThe lead.';
comment on constraint lead_notes_project_id_fkey on app_public.lead_notes is E'@behavior -*\n\nThe project.';
comment on constraint lead_notes_author_id_fkey on app_public.lead_notes is E'@fieldName author\n@backwardBehavior -*\n\nWho wrote it.';
