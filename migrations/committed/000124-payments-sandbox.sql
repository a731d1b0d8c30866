--! Previous: sha1:e3c3c03db93ea289a3e66042d9eb12b55f02e200
--! Hash: sha1:4b6a4f41ad6b68c9b709ea48203f20850578aa44
--! Message: payments-sandbox

-- What the sandbox processor remembers, so that it survives restarts and several processes have one: its objects as the API of
-- the real one shows them, what it answered under which idempotency key, and the events that it still has to deliver. Nothing else
-- of the database reads these tables.

create table app_private.sandbox_objects (
  id text primary key,
  kind text not null,
  data jsonb not null,
  position bigint generated always as identity
);
create index sandbox_objects_kind on app_private.sandbox_objects (kind, position);
create index sandbox_objects_of_payment on app_private.sandbox_objects ((data ->> 'payment_intent'), kind) where data ? 'payment_intent';
create index sandbox_objects_of_charge on app_private.sandbox_objects ((data ->> 'charge'), kind) where data ? 'charge';
create index sandbox_objects_due on app_private.sandbox_objects (((data ->> 'due')::numeric)) where data ? 'due';
alter table app_private.sandbox_objects enable row level security;
comment on table app_private.sandbox_objects is 'The objects of the sandbox processor.';

create table app_private.sandbox_requests (
  key text primary key,
  fingerprint text not null,
  status int not null,
  body jsonb not null,
  inserted_at timestamptz not null default now()
);
create index sandbox_requests_inserted_at on app_private.sandbox_requests (inserted_at);
alter table app_private.sandbox_requests enable row level security;
comment on table app_private.sandbox_requests is 'What the sandbox processor answered under idempotency keys.';
