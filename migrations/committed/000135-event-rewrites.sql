--! Previous: sha1:52978970997ecb87911cf8260304575f09793805
--! Hash: sha1:8bd8b671f976f3655a663fa7651edcee223df56b
--! Message: event-rewrites

-- Quarters of events are rewritten once they take far more space than their rows need: event-rewrites.sql.
create table app_private.event_rewrites (
  partition_name text primary key,
  last_id uuid,
  is_copied boolean not null default false,
  ended_at timestamptz
);
alter table app_private.event_rewrites enable row level security;
create table app_private.event_rewrite_changes (
  id bigint generated always as identity primary key,
  event_id uuid not null
);
alter table app_private.event_rewrite_changes enable row level security;
