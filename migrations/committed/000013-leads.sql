--! Previous: sha1:f83a4c9e48ed8e9e165cdb083a067f7caddb2622
--! Hash: sha1:978938d50f9c236ce2e562c35f31e407bb01896f
--! Message: leads

-- Leads with their agents, sources, reasons of fallout, contact messages and withdrawn addresses.

select app_private.create_enum('lead_status', 'How far a lead is.', array[
  ['NEW', 'Nobody has been in touch yet.'], ['CONTACTED', 'Somebody has been in touch.'],
  ['COLD', 'Unlikely to buy soon.'], ['WARM', 'Interested.'], ['HOT', 'Wants to buy.'],
  ['NEGOTIATING', 'Has an active negotiation.'], ['RESERVED', 'Has an active reservation.'],
  ['CONVERTED', 'Became a buyer.'], ['LOST', 'Will not buy; has a fallout reason.'], ['UNQUALIFIED', 'Cannot buy.']]);
select app_private.create_enum('lead_origin', 'The technical way in.', array[
  ['WEB_FORM', 'A form on a website.'], ['CONTACT_PROJECT', 'The contact form of the project.'], ['API', 'A program.'],
  ['IMPORT', 'A file.'], ['MANUAL', 'Entered by hand.'], ['PHONE', 'A call.'],
  ['WALK_IN', 'A visit to the sales office.'], ['OPEN_HOUSE', 'An open house.'], ['REFERRAL', 'A referral.'],
  ['AGENT_PORTAL', 'An agent.'], ['INTEGRATION', 'A connected application.'], ['MARKETPLACE', 'A marketplace.']]);
select app_private.create_enum('lead_source_category', 'The kind of a lead source.', array[
  ['WEBSITE', 'Own website.'], ['PORTAL', 'Listing portal.'], ['SEARCH_ADS', 'Search advertising.'],
  ['SOCIAL', 'Social media.'], ['EMAIL', 'E-mail.'], ['REFERRAL', 'Referral.'], ['AGENT', 'Agent.'],
  ['SIGNAGE', 'Signs.'], ['EVENT', 'Event.'], ['PRINT', 'Print.'], ['PHONE', 'Phone.'], ['WALK_IN', 'Walk-in.'],
  ['OTHER', 'Something else.']]);
select app_private.create_enum('fallout_subject', 'What can fall through.', array[
  ['LEAD', 'A lead.'], ['RESERVATION', 'A reservation.'], ['NEGOTIATION', 'A negotiation.'], ['BUYER', 'A purchase.']]);
select app_private.create_enum('fallout_category', 'The kind of a fallout reason.', array[
  ['PRICE', 'Price.'], ['FINANCING', 'Financing.'], ['LOCATION', 'Location.'], ['LAYOUT', 'Layout.'],
  ['TIMING', 'Timing.'], ['COMPETITOR', 'Bought elsewhere.'], ['UNRESPONSIVE', 'Does not answer.'],
  ['RESCISSION', 'Withdrew in the rescission period.'], ['DEFAULT', 'Did not fulfil the contract.'],
  ['DUPLICATE', 'Known already.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('note_visibility', 'Who reads a note.', array[
  ['TEAM', 'Everybody who sees the lead.'], ['ASSIGNEE', 'Its author and whoever the lead is assigned to.'],
  ['ORGANIZATION', 'Members of the organization only.']]);
select app_private.create_enum('duplicate_policy', 'What to do with a lead that is there already.', array[
  ['MERGE', 'Fill what is empty in the existing lead and return it.'],
  ['RETURN_EXISTING', 'Return the existing lead unchanged.'], ['ERROR', 'Refuse with CONFLICT and existingId.']]);
create type app_public.agent_input as (
  id uuid, name text, email app_public.email_address, phone app_public.phone_number, brokerage text, license_number text
);

create function app_hidden.fold(value text) returns text
language sql immutable parallel safe as $$ select lower(public.unaccent('public.unaccent', value)) $$;

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
create unique index agents_email on app_public.agents (organization_id, email) where deleted_at is null
  and email is not null;
create index agents_name on app_public.agents (organization_id, lower(name), id) where deleted_at is null;
alter table app_public.agents enable row level security;

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
  constraint lead_sources_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create unique index lead_sources_code on app_public.lead_sources (project_id, code) where deleted_at is null;
alter table app_public.lead_sources enable row level security;

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
  constraint fallout_reasons_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create unique index fallout_reasons_name on app_public.fallout_reasons (project_id, lower(name))
  where deleted_at is null;
alter table app_public.fallout_reasons enable row level security;

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
  search_text text generated always as (app_hidden.fold(name || ' ' || coalesce(email, '') || ' ' || coalesce(phone, '')
    || ' ' || coalesce(company, ''))) stored,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  status_before_deal app_public.lead_status,
  unsubscribed_at timestamptz,
  constraint leads_budget_order check (budget_max >= budget_min),
  unique (id, project_id),
  constraint leads_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint leads_source_id_fkey foreign key (source_id, project_id)
    references app_public.lead_sources (id, project_id) on delete restrict,
  constraint leads_fallout_reason_id_fkey foreign key (fallout_reason_id, project_id)
    references app_public.fallout_reasons (id, project_id) on delete restrict,
  constraint leads_agent_id_fkey foreign key (agent_id, organization_id)
    references app_public.agents (id, organization_id) on delete restrict,
  constraint leads_subscription check (not subscribed or unsubscribed_at is null)
);
create unique index leads_live_email on app_public.leads (project_id, email) where deleted_at is null
  and email is not null;
create index leads_organization on app_public.leads (organization_id, registered_at desc, id desc)
  where deleted_at is null;
create index leads_organization_status on app_public.leads (organization_id, status, registered_at desc, id desc)
  where deleted_at is null;
create index leads_project on app_public.leads (project_id, registered_at desc, id desc) where deleted_at is null;
create index leads_project_status on app_public.leads (project_id, status, registered_at desc, id desc)
  where deleted_at is null;
create index leads_assignee on app_public.leads (assignee_id, project_id, registered_at desc, id desc)
  where deleted_at is null;
create index leads_email on app_public.leads (email) where deleted_at is null and email is not null;
create index leads_phone on app_public.leads (reverse(phone) text_pattern_ops) where phone is not null;
create index leads_source on app_public.leads (source_id) where deleted_at is null;
create index leads_fallout_reason on app_public.leads (fallout_reason_id) where deleted_at is null;
create index leads_agent on app_public.leads (agent_id, registered_at desc, id desc) where deleted_at is null;
create index leads_source_code on app_public.leads (project_id, source) where deleted_at is null and source is not null;
alter table app_public.leads enable row level security;

create type app_public.delete_lead_source_payload as (id uuid, deleted boolean, project_id uuid, reassigned_leads int);

create table app_public.project_contact_messages (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  lead_id uuid not null,
  lead_created boolean not null,
  name app_public.short_text not null,
  email app_public.email_address not null,
  phone app_public.phone_number,
  company app_public.short_text,
  text app_public.long_text,
  address app_public.address,
  source app_public.short_text,
  is_agent boolean,
  is_represented boolean,
  agent_name app_public.short_text,
  metadata jsonb constraint project_contact_messages_metadata_size check (length(metadata::text) <= 20000),
  user_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint project_contact_messages_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint project_contact_messages_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete cascade
);
create index project_contact_messages_lead on app_public.project_contact_messages (lead_id, id desc);
create index project_contact_messages_project on app_public.project_contact_messages (project_id, id desc);
create index project_contact_messages_user on app_public.project_contact_messages (user_id);
alter table app_public.project_contact_messages enable row level security;

create table app_private.lead_turns (
  project_id uuid primary key references app_public.projects on delete cascade,
  user_id uuid not null
);
alter table app_private.lead_turns enable row level security;

create table app_private.withdrawn_addresses (
  organization_id uuid not null references app_public.organizations on delete cascade,
  email text not null,
  withdrawn_at timestamptz not null default now(),
  primary key (organization_id, email)
);
alter table app_private.withdrawn_addresses enable row level security;

create table app_private.merged_leads (
  lead_id uuid primary key references app_public.leads on delete cascade,
  into_id uuid not null references app_public.leads on delete cascade
);
create index merged_leads_into on app_private.merged_leads (into_id);
alter table app_private.merged_leads enable row level security;
