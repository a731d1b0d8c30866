--! Previous: sha1:74fd138560138d087a2fa6f357607c7a2df18388
--! Hash: sha1:6471a1f50ceaa2429bf8e44282c1595b3756e0df
--! Message: webhook-health

-- How webhooks fare, apart from how far they have come in the stream: who notes an attempt waits for nobody who moves
-- the cursor.

create table app_private.webhook_health (
  webhook_id uuid primary key references app_public.webhooks (id) on delete cascade,
  organization_id uuid not null references app_public.organizations (id) on delete cascade,
  integration_id uuid references app_public.organization_integrations (id) on delete cascade,
  failure_count int not null default 0,
  failing_since timestamptz,
  last_delivery_at timestamptz
);
create index webhook_health_organization on app_private.webhook_health (organization_id);
create index webhook_health_integration on app_private.webhook_health (integration_id) where integration_id is not null;
alter table app_private.webhook_health enable row level security;
insert into app_private.webhook_health (webhook_id, organization_id, integration_id, failure_count, failing_since,
  last_delivery_at)
  select p.webhook_id, p.organization_id, p.integration_id, p.failure_count, p.failing_since, p.last_delivery_at
  from app_private.webhook_progress p;
drop trigger if exists _700_of_integration on app_private.webhook_progress;
drop function if exists app_private.tg_webhook_progress__of_integration();
-- No client reads them: they are in app_private.
alter table app_private.webhook_progress
  -- squawk-ignore ban-drop-column
  drop column failure_count, drop column failing_since, drop column last_delivery_at;
