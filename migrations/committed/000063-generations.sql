--! Previous: sha1:0da46d66339739a39ee568ee431573d7ad18b90b
--! Hash: sha1:06a7134ae668f05ce6ff9ce9caf11c784ce0fe1a
--! Message: generations

-- Drafts that were generated.

select app_private.create_enum('generation_kind', 'What was drafted.', array[
  ['LEAD_EMAIL', 'An e-mail to a lead.'], ['LEAD_SMS', 'A text message to a lead.'],
  ['CALL_SUMMARY', 'The summary of a call.'], ['LISTING_TEXT', 'The text of a listing.']]);
select app_private.create_enum('generation_status', 'What became of a draft.', array[
  ['PENDING', 'Being written.'], ['COMPLETED', 'Written, and found to state nothing but facts.'],
  ['BLOCKED', 'Withheld: it must not be written, or stated what no fact supports; warnings say why.'],
  ['FAILED', 'The drafting service did not deliver; error says why.'],
  ['ACCEPTED', 'Taken by a person, who answers for it.'], ['DISCARDED', 'Not wanted.']]);
select app_private.create_enum('generation_tone', 'How a draft sounds.', array[
  ['NEUTRAL', 'Plain.'], ['FRIENDLY', 'Warm.'], ['FORMAL', 'Formal.'], ['CONCISE', 'As short as can be.']]);
create type app_public.generation_fact as (statement text, subject_type text, subject_id uuid, field text);

create table app_public.service_intelligence_generations (
  like app_private.project_record including all,
  lead_id uuid not null,
  kind app_public.generation_kind not null default 'LEAD_EMAIL',
  status app_public.generation_status not null default 'PENDING',
  status_changed_at timestamptz not null default now(),
  requested_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  subject app_public.short_text,
  body app_public.long_text,
  language app_public.language_code,
  tone app_public.generation_tone,
  purpose app_public.short_text,
  facts app_public.generation_fact[],
  warnings text[] not null default '{}',
  model app_public.short_text,
  error app_public.long_text,
  pending_until timestamptz not null default now() + interval '5 minutes',
  request_key bytea,
  constraint generations_text check (status not in ('COMPLETED', 'ACCEPTED')
    or (subject is not null and body is not null and facts is not null)),
  constraint generations_blocked check (status <> 'BLOCKED' or (body is null and cardinality(warnings) > 0)),
  constraint generations_failed check (status <> 'FAILED' or error is not null),
  constraint service_intelligence_generations_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint service_intelligence_generations_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete cascade
);
create index generations_lead on app_public.service_intelligence_generations (lead_id, id desc)
  where deleted_at is null;
create index generations_project on app_public.service_intelligence_generations (project_id, id desc);
create index generations_requested_by on app_public.service_intelligence_generations (requested_by_id);

-- A request that is repeated under its idempotency key does not ask the provider again.
create unique index generations_request on app_public.service_intelligence_generations (requested_by_id,
  request_key) nulls not distinct where request_key is not null;
alter table app_public.service_intelligence_generations enable row level security;

create domain app_public.composed_draft as jsonb;
