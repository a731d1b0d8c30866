--! Previous: sha1:a2f3b09a9212cc953a47852ed032348ffe9bdc06
--! Hash: sha1:a497e5ccd817f7dddf89da001bb404790eeae750
--! Message: processor

-- The embedded sandbox processor, and what the processor has told.

create table app_private.sandbox_objects (
  id text primary key,
  kind text not null,
  data jsonb not null,
  position bigint generated always as identity
);
create index sandbox_objects_kind on app_private.sandbox_objects (kind, position);
create index sandbox_objects_of_payment on app_private.sandbox_objects ((data ->> 'payment_intent'), kind)
  where data ? 'payment_intent';
create index sandbox_objects_of_charge on app_private.sandbox_objects ((data ->> 'charge'), kind) where data ? 'charge';
create index sandbox_objects_due on app_private.sandbox_objects (((data ->> 'due')::numeric)) where data ? 'due';
alter table app_private.sandbox_objects enable row level security;

create table app_private.sandbox_requests (
  key text primary key,
  fingerprint text not null,
  status int not null,
  body jsonb not null,
  inserted_at timestamptz not null default now()
);
create index sandbox_requests_inserted_at on app_private.sandbox_requests (inserted_at);
alter table app_private.sandbox_requests enable row level security;

create table app_private.processor_events (
  id text primary key,
  type text not null,
  object_id text,
  account_id text,
  created_at timestamptz not null,
  received_at timestamptz not null default now(),
  handled_at timestamptz
);
create index processor_events_created_at on app_private.processor_events (created_at);
create index processor_events_received_at on app_private.processor_events (received_at);
alter table app_private.processor_events enable row level security;
