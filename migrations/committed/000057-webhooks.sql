--! Previous: sha1:f29e66455a4ed32d334bfb8ab81e1579bed26b21
--! Hash: sha1:05c3163c049f8e3e3f2c8c401f2409246831402d
--! Message: webhooks

-- Webhooks, their secrets and progress.

select app_private.create_enum('webhook_status', 'Whether events are sent to a webhook.', array[
  ['ENABLED', 'Events are sent.'], ['DISABLED', 'Events are neither sent nor kept for later.'],
  ['PAUSED', 'Events wait until it is enabled again.'],
  ['FAILING', 'Events are sent, but the last ones were not taken.']]);
create domain app_public.webhook_url as app_public.url
  constraint webhook_url_https check (value ~* '^https://');

create domain app_public.fresh_secret as jsonb;

create table app_public.webhooks (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  url app_public.webhook_url not null,
  description app_public.short_text,
  events text[] not null,
  status app_public.webhook_status not null default 'ENABLED',
  secret text constraint webhooks_secret_is_not_kept check (secret is null),
  secret_prefix text not null,
  previous_secret_expires_at timestamptz,
  disabled_reason text,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  integration_id uuid references app_public.organization_integrations on delete cascade
);
create index webhooks_organization on app_public.webhooks (organization_id, id) where deleted_at is null;
create index webhooks_created_by on app_public.webhooks (created_by_id);
create unique index webhooks_integration on app_public.webhooks (integration_id);
alter table app_public.webhooks enable row level security;

create table app_private.webhook_secrets (
  webhook_id uuid primary key references app_public.webhooks on delete cascade,
  sealed text not null,
  previous_sealed text,
  previous_expires_at timestamptz
);
alter table app_private.webhook_secrets enable row level security;

create table app_private.webhook_progress (
  webhook_id uuid primary key references app_public.webhooks on delete cascade,
  organization_id uuid not null references app_public.organizations on delete cascade,
  last_sequence bigint not null,
  failure_count int not null default 0,
  failing_since timestamptz,
  last_delivery_at timestamptz,
  integration_id uuid references app_public.organization_integrations on delete cascade,
  mapping jsonb
);
create index webhook_progress_organization on app_private.webhook_progress (organization_id);
create index webhook_progress_integration on app_private.webhook_progress (integration_id)
  where integration_id is not null;
alter table app_private.webhook_progress enable row level security;
