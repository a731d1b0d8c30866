--! Previous: sha1:8f9540ee9f1fa4ee2827408fe0398b28d591082d
--! Hash: sha1:131cbe3b53091487a29877df21d18b420e347758
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
