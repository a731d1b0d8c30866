--! Previous: sha1:6768a163a6636fdd2530ce9bfda4bce7f39c3268
--! Hash: sha1:e2190824a134d571d37360d06fc4a8156e0d651f
--! Message: pending-events

-- Events of running transactions, so that those of the stream are written once, with their numbers.
create unlogged table if not exists app_private.pending_events (
  id uuid not null default uuidv7(),
  stream_id uuid not null,
  organization_id uuid,
  project_id uuid,
  name text not null,
  occurred_at timestamptz not null default now(),
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
create index if not exists pending_events_transaction on app_private.pending_events (transaction_id, stream_id);
alter table app_private.pending_events enable row level security;
-- squawk-ignore require-concurrent-index-deletion
drop index if exists app_public.events_unnumbered;
