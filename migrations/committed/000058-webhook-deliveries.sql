--! Previous: sha1:05c3163c049f8e3e3f2c8c401f2409246831402d
--! Hash: sha1:517f300e804c1fcec420d6da5a2dbadb61212f96
--! Message: webhook-deliveries

-- Deliveries of events to webhooks.

select app_private.create_enum('webhook_delivery_status', 'What became of a delivery.', array[
  ['PENDING', 'Not tried yet.'], ['SUCCEEDED', 'The receiver took it: it answered 2xx.'],
  ['RETRYING', 'Not taken so far; it is tried again.'], ['FAILED', 'Not taken, and not tried again.'],
  ['DISCARDED', 'Not tried again because the webhook was disabled or deleted.']]);

create table app_public.webhook_deliveries (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  webhook_id uuid not null references app_public.webhooks on delete cascade,
  event_id uuid references app_public.events,
  attempt int not null default 0,
  status app_public.webhook_delivery_status not null default 'PENDING',
  response_status int,
  response_body text,
  duration_ms int,
  next_attempt_at timestamptz,
  inserted_at timestamptz not null default now()
);
create index webhook_deliveries_webhook on app_public.webhook_deliveries (webhook_id, id);
create index webhook_deliveries_status on app_public.webhook_deliveries (webhook_id, status, id);
create index webhook_deliveries_event on app_public.webhook_deliveries (event_id);
create index webhook_deliveries_organization on app_public.webhook_deliveries (organization_id);
create index webhook_deliveries_inserted_at on app_public.webhook_deliveries (inserted_at);
alter table app_public.webhook_deliveries enable row level security;

create table app_private.webhook_queue (
  delivery_id uuid primary key references app_public.webhook_deliveries on delete cascade,
  webhook_id uuid not null references app_public.webhooks on delete cascade,
  due_at timestamptz not null default now(),
  leased boolean not null default false,
  holder int,
  is_test boolean not null default false
);
create index webhook_queue_due on app_private.webhook_queue (webhook_id, due_at, delivery_id);
create index webhook_queue_leased on app_private.webhook_queue (webhook_id) where leased;
alter table app_private.webhook_queue enable row level security;

create table app_private.webhook_redeliveries (
  id uuid primary key default uuidv7(),
  webhook_id uuid not null references app_public.webhooks on delete cascade,
  next_sequence bigint not null,
  to_sequence bigint not null
);
create index webhook_redeliveries_webhook on app_private.webhook_redeliveries (webhook_id);
alter table app_private.webhook_redeliveries enable row level security;
