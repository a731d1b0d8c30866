--! Previous: sha1:1a42f1eb746bab97886d90c041f98ddb749834d1
--! Hash: sha1:acb57c3afccbc1ccdd0d4ae82d9342dcef2b54e0
--! Message: bulk-leads

-- Leads in bulk: the ids by which programs of an organization know leads, and what the operations take and answer.

create table app_private.lead_external_ids (
  organization_id uuid not null,
  system text not null,
  external_id text not null,
  lead_id uuid not null,
  project_id uuid not null,
  constraint lead_external_ids_pkey primary key (organization_id, system, external_id),
  constraint lead_external_ids_organization_id_fkey foreign key (organization_id)
    references app_public.organizations (id) on delete cascade,
  constraint lead_external_ids_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete cascade
);
create index lead_external_ids_lead on app_private.lead_external_ids (lead_id, project_id);
alter table app_private.lead_external_ids enable row level security;

create domain app_public.system_name as text
  constraint system_name_format check (value ~ '^[a-z0-9][a-z0-9._-]{0,49}$');
create domain app_public.external_id as text
  constraint external_id_length check (length(value) between 1 and 200);

create type app_public.lead_external_id as (system app_public.system_name, external_id app_public.external_id);

select app_private.create_enum('lead_row_outcome', 'What became of a row.', array[
  ['CREATED', 'A new lead.'], ['UPDATED', 'The lead was changed.'],
  ['UNCHANGED', 'The lead is as the row says, or was left as it is.'],
  ['REFUSED', 'Nothing was done; errors say why.']]);

create type app_public.lead_row_error as (
  code text, field text, message text
);
create type app_public.lead_row_result as (
  "position" int, external_id app_public.external_id, outcome app_public.lead_row_outcome, lead_id uuid,
  is_duplicate boolean, code text, errors app_public.lead_row_error[], warnings text[]
);

create type app_public.import_leads_payload as (
  dry_run boolean, created_count int, updated_count int, skipped_count int, failed_count int, duplicate_count int,
  errors app_public.import_row_error[], rows app_public.lead_row_result[], leads app_public.leads[]
);
create type app_public.upsert_leads_payload as (
  dry_run boolean, created_count int, updated_count int, unchanged_count int, refused_count int,
  rows app_public.lead_row_result[]
);
create type app_public.update_leads_payload as (
  dry_run boolean, updated_count int, unchanged_count int, refused_count int, rows app_public.lead_row_result[]
);

create type app_public.lead_entry_input as (
  external_id app_public.external_id, name app_public.short_text, first_name app_public.short_text,
  last_name app_public.short_text, legal_name app_public.short_text, email app_public.email_address,
  phone app_public.phone_number, address app_public.address, company app_public.short_text,
  status app_public.lead_status, origin app_public.lead_origin, source app_public.short_text, source_id uuid,
  is_agent boolean, is_represented boolean, subscribed boolean, do_not_contact boolean,
  preferred_language app_public.language_code, assignee text, assignee_id uuid,
  budget_min app_public.money, budget_max app_public.money, preapproved boolean,
  registered_at timestamptz, fallout_reason_id uuid, fallout_note app_public.long_text,
  tags app_public.tags, metadata jsonb
);
create domain app_public.lead_entry as jsonb;
