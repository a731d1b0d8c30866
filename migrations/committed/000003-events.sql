--! Previous: sha1:6c9adf2dd803d11a88965ac666b7cfd9163dae50
--! Hash: sha1:1b16b2dd99370e2938cf1a662073ced81368b5be
--! Message: events

-- The stream of events: every change of a record is one row, numbered within its organization.

select app_private.create_enum('actor_type', 'Who caused an event.', array[
  ['USER', 'A signed-in user.'], ['ACCESS_TOKEN', 'A program with an access token of a user.'],
  ['BUYER', 'A buyer on their own deal.'], ['WORKFLOW', 'A step of a workflow.'],
  ['INTEGRATION', 'A connected application.'], ['SYSTEM', 'The service itself, or a visitor without a token.'],
  ['AI', 'The drafting service.']]);
select app_private.create_enum('event_channel', 'The way a change came in; tells loops of synchronisation from people.',
  array[
  ['UI', 'A user interface.'], ['API', 'The GraphQL API.'], ['SYSTEM', 'The service itself.'],
  ['IMPORT', 'A file import.'], ['INTEGRATION', 'A connected application.'], ['WEBHOOK', 'An inbound webhook.']]);

create table app_public.events (
  id uuid primary key default uuidv7(),
  stream_id uuid not null,
  organization_id uuid,
  project_id uuid,
  sequence bigint,
  name text not null,
  occurred_at timestamptz not null default now(),
  dispatched_at timestamptz,
  subject_type text not null,
  subject_id uuid not null,
  actor_id uuid default app_public.current_user_id(),
  actor_type app_public.actor_type not null,
  channel app_public.event_channel not null,
  request_id text,
  changes jsonb,
  data jsonb not null,
  caused_by_id uuid,
  transaction_id bigint not null default pg_current_xact_id()::text::bigint,
  workflow_depth smallint default app_hidden.setting('workflow_depth')::smallint
);
create index events_unnumbered on app_public.events (transaction_id) where sequence is null;
create index events_subject on app_public.events (subject_id, id);
create index events_project on app_public.events (project_id, organization_id, sequence) where project_id is not null;
create unique index events_sequence on app_public.events (stream_id, sequence) where sequence is not null
  and organization_id is null;
create unique index events_organization on app_public.events (organization_id, sequence);
alter table app_public.events enable row level security;

create table app_private.event_counters (
  stream_id uuid primary key,
  last_sequence bigint not null
);
alter table app_private.event_counters enable row level security;

create table app_private.event_batches (
  transaction_id bigint not null default pg_current_xact_id()::text::bigint,
  stream_id uuid not null,
  primary key (transaction_id, stream_id)
);
alter table app_private.event_batches enable row level security;

create table app_private.event_names (
  subject text not null,
  column_name text not null,
  value text,
  name text not null,
  unique nulls not distinct (subject, column_name, value)
);
alter table app_private.event_names enable row level security;
