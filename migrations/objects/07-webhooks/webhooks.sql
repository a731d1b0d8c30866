-- Webhooks: URLs that receive an organization's events. ENABLED ⇄ PAUSED (events wait); three consecutive failures make
-- it FAILING, a success ENABLED again; five days with failures only, or a response 410, make it DISABLED (waiting
-- events are discarded, the owners get a mail). A webhook that is enabled again starts with new events; redeliverEvents
-- sends older ones.
--
-- The webhook of an integration neither counts towards the limit of webhooks, nor signs the calls of workflows. It is
-- hidden behind the integration and has no events of its own, which recipients of all events would receive; the
-- integration has its usual events.

comment on domain app_public.webhook_url is
  E'@scalar URL\n@transform publicAddress\n\nAn address that starts with https:// and is reachable in public.';

comment on constraint webhook_url_https on domain app_public.webhook_url is
  'The URL must start with https://.';

comment on domain app_public.fresh_secret is
  E'@transform freshSecret\n@given\n\nA secret that the service has just made: itself to be shown once, and sealed to '
  'be kept by its webhook alone: the one that is given, or one to be made with the id of the seed.';

comment on table app_private.webhook_secrets is
  'The secrets that sign, sealed with a key that the database never sees.';
comment on table app_private.webhook_progress is
  'How far each webhook has come in the stream of its organization, and the mapping of its integration.';
comment on table app_private.webhook_health is
  'Results of the attempts of each webhook. Separate from the webhook, so that a delivery does not change it, and '
  'from its position in the stream, so that recording an attempt does not wait for the dispatcher.';

create policy admins on app_public.webhooks for select to plat_user
  using (deleted_at is null and integration_id is null
    and organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]));
create policy admins_update on app_public.webhooks for update to plat_user
  using (integration_id is null
    and organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]));
create policy admins_delete on app_public.webhooks for delete to plat_user
  using (integration_id is null
    and organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]));

select app_private.make_record('webhooks', 'webhook', 'org.admin', event_condition => 'integration_id is null');
select app_private.make_state_machine('webhooks', 'webhook',
  steps => array[
    ['ENABLED', 'PAUSED', 'hand'], ['FAILING', 'PAUSED', 'hand'], ['PAUSED', 'ENABLED', 'hand'],
    ['DISABLED', 'ENABLED', 'hand'], ['FAILING', 'ENABLED', 'hand'],
    ['ENABLED', 'DISABLED', 'hand'], ['PAUSED', 'DISABLED', 'hand'], ['FAILING', 'DISABLED', 'hand'],
    ['ENABLED', 'FAILING', 'service']],
  initial => array['ENABLED']);

grant select on app_public.webhooks to plat_user, plat_anonymous;
grant update (url, description, events, status), delete on app_public.webhooks to plat_user;

comment on table app_public.webhooks is 'A URL that events of an organization are sent to.';
comment on column app_public.webhooks.url is 'URL to send events to: https, publicly reachable, port 443 or 8443.';
comment on column app_public.webhooks.description is 'Free-text description of the purpose.';
comment on column app_public.webhooks.events is
  'Names or patterns of the events to send, such as lead.created, unit.* or *.';
comment on column app_public.webhooks.status is 'Whether events are sent.';
comment on column app_public.webhooks.secret is
  E'@secret\n\n'
  'Signing secret. Only the responses of `createWebhook` and `rotateWebhookSecret` contain it; null otherwise.';
comment on column app_public.webhooks.secret_prefix is 'First characters of the secret, to identify it.';
comment on column app_public.webhooks.previous_secret_expires_at is
  'When requests stop being signed with the previous secret as well; null if there is none.';
comment on column app_public.webhooks.disabled_reason is 'Reason why it is disabled.';
comment on column app_public.webhooks.created_by_id is 'User who created it.';
comment on column app_public.webhooks.principal_id is
  'The user on whose behalf events are sent; only events that this user may read are sent.';
comment on constraint webhooks_principal_id_fkey on app_public.webhooks is
  E'@fieldName principal\n@backwardBehavior -*\n\n'
  'The user on whose behalf events are sent, who last created, changed or enabled the webhook. Only what that user '
  'may read is sent, and nothing once they can no longer administer the organization.';
comment on column app_public.webhooks.integration_id is
  E'@secret\n@behavior -*\n\nThe integration that it belongs to, which is what people see of it.';
comment on constraint webhooks_secret_is_not_kept on app_public.webhooks is 'Secrets must not be stored.';
comment on constraint webhooks_organization_id_fkey on app_public.webhooks is
  E'@parent\n'
  '@fieldName organization\n'
  '@foreignFieldName webhooks\n'
  '@backwardPermission org.admin\n'
  '@backwardDescription Webhooks of the organization; null without the permission org.admin.\n\n'
  'The organization.';
comment on constraint webhooks_created_by_id_fkey on app_public.webhooks is
  E'@fieldName createdBy\n@backwardBehavior -*\n\nUser who created it.';
comment on constraint webhooks_integration_id_fkey on app_public.webhooks is E'@behavior -*\n\nThe integration.';

-- Whose they are. Only events that the principal may read are sent: those with permission to read the audit trail,
-- or all records of the event's type.
create function app_private.readable_subjects(organization_id uuid) returns text[]
language sql stable as $$
  select case when not app_hidden.organization_can(readable_subjects.organization_id, 'audit.read') then array(
    select r.subject from app_hidden.record_types r
    where r.read_permissions <@ array(select p.permission
      from (select distinct unnest(t.read_permissions) as permission from app_hidden.record_types t) p
      where app_hidden.organization_can(readable_subjects.organization_id, p.permission))) end
$$;
comment on function app_private.readable_subjects(uuid) is
  'The kinds of records of which the viewer may read every event of the organization; null: all there are.';

create function app_private.webhook_lacks(w app_public.webhooks) returns text
language plpgsql stable as $$
begin
  if not app_hidden.organization_can(w.organization_id, 'org.admin') then
    return 'org.admin';
  elsif app_hidden.organization_can(w.organization_id, 'audit.read') then
    return null;
  end if;
  return (select p.permission from app_hidden.record_types r
    cross join lateral unnest(coalesce(r.read_permissions, '{audit.read}')) p (permission)
    where ('*' = any (w.events) or r.subject in (select split_part(e, '.', 1) from unnest(w.events) e))
      and not app_hidden.organization_can(w.organization_id, p.permission)
    order by p.permission = 'audit.read', p.permission limit 1);
end $$;
comment on function app_private.webhook_lacks(app_public.webhooks) is
  'A permission that the viewer lacks for the events that a webhook is to have; null where they may read them all.';

create function app_private.suspend_webhook(id uuid, reason text) returns void
language sql volatile as $$
  update app_public.webhooks w set status = 'DISABLED', disabled_reason = reason
    where w.id = suspend_webhook.id and w.status <> 'DISABLED' and w.deleted_at is null
$$;
comment on function app_private.suspend_webhook(uuid, text) is 'Disables a webhook for the reason.';

select app_private.make_principal('app_public', 'webhooks', 'principal_id', 'webhook', 'r.url',
  'r.deleted_at is null and r.integration_id is null and r.status <> ''DISABLED''',
  'app_private.webhook_lacks(app_public.webhooks)', 'app_private.suspend_webhook(uuid, text)',
  takes_over => 'old.url is distinct from new.url or old.events is distinct from new.events '
    'or (new.status = ''ENABLED'' and old.status in (''DISABLED'', ''PAUSED''))');

-- Which events.
create function app_private.is_event_name(name text) returns boolean
language sql stable as $$
  select name = '*' or exists (
    select from app_hidden.record_types r
    where r.subject = split_part(name, '.', 1) and (
      split_part(name, '.', 2) in ('*', 'created', 'updated', 'deleted')
      or (split_part(name, '.', 2) = 'status_changed' and exists (select from pg_attribute a
        where a.attrelid = to_regclass(format('app_public.%I', r.table_name)) and a.attname = 'status'
          and not a.attisdropped))
      or exists (select from app_private.event_names e where e.subject = r.subject and e.name = split_part($1, '.', 2)))
    and name = r.subject || '.' || split_part(name, '.', 2))
$$;
comment on function app_private.is_event_name(text) is
  'Whether there are events of that name, or of that form: lead.created, lead.* or *.';

create function app_hidden.event_matches(name text, wanted text[]) returns boolean
language sql immutable as $$
  select name = any (wanted) or split_part(name, '.', 1) || '.*' = any (wanted) or '*' = any (wanted)
$$;
comment on function app_hidden.event_matches(text, text[]) is 'Whether an event is among those wanted.';

create function app_private.tg_webhooks__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  wrong text;
begin
  if tg_op = 'INSERT' or new.events is distinct from old.events then
    if coalesce(cardinality(new.events), 0) not between 1 and 100 then
      perform app_hidden.fail('BAD_USER_INPUT', 'List 1 to 100 events, such as lead.created, unit.* or *.',
        '{"field": "events"}');
    end if;
    select coalesce(left(e, 100), 'null') into wrong from unnest(new.events) e where e is null
      or not app_private.is_event_name(e) limit 1;
    if found then
      perform app_hidden.fail('BAD_USER_INPUT',
        format('There is no event %s; use events such as lead.created, unit.* or *.', wrong), '{"field": "events"}');
    end if;
    new.events := array(select distinct e from unnest(new.events) e order by e);
  end if;
  if tg_op = 'UPDATE' and new.status is distinct from old.status then
    new.disabled_reason := case when new.status = 'DISABLED'
      then coalesce(nullif(new.disabled_reason, old.disabled_reason), 'Disabled by hand.') end;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.webhooks for each row
  execute function app_private.tg_webhooks__prepare();

-- Fields.
create function app_public.webhooks_failure_count(w app_public.webhooks) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select p.failure_count from app_private.webhook_health p
  where p.webhook_id = w.id and p.organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[])
$$;

create function app_public.webhooks_last_delivery_at(w app_public.webhooks) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select p.last_delivery_at from app_private.webhook_health p
  where p.webhook_id = w.id and p.organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[])
$$;

create function app_public.webhooks_allowed_transitions(w app_public.webhooks) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('webhook', to_jsonb(w)) $$;
grant execute on function app_public.webhooks_failure_count, app_public.webhooks_last_delivery_at,
  app_public.webhooks_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.webhooks_failure_count is E'@notNull\n\nNumber of consecutive failed attempts.';
comment on function app_public.webhooks_last_delivery_at is 'When the last attempt was made, successful or not.';
comment on function app_public.webhooks_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';

-- Operations.
create function app_private.require_webhook(id uuid) returns app_public.webhooks
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  webhook app_public.webhooks;
begin
  perform app_hidden.require_viewer();
  select w.* into webhook from app_public.webhooks w where w.id = require_webhook.id and w.deleted_at is null
    and w.integration_id is null
    and w.organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]) for no key update;
  if webhook.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such webhook.', '{"field": "id"}');
  end if;
  return webhook;
end $$;
comment on function app_private.require_webhook(uuid) is
  'The webhook, locked; refuses viewers who do not administer its organization.';

create function app_public.create_webhook(organization_id uuid, url app_public.webhook_url, events text[],
  secret app_public.fresh_secret, description text default null)
returns app_public.webhooks
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  most constant int := 50;
  home uuid := organization_id;
  result app_public.webhooks;
begin
  perform app_hidden.require_organization(home, 'org.admin');
  if url is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'url is required.', '{"field": "url"}');
  end if;
  -- Two concurrent calls must not both be the last one within the limit.
  perform from app_public.organizations o where o.id = home for no key update;
  if (select count(*) from app_public.webhooks w where w.organization_id = home and w.deleted_at is null
    and w.integration_id is null) >= most then
    perform app_hidden.fail('LIMIT_EXCEEDED', format('The limit of %s webhooks is reached; delete one first.', most),
      jsonb_build_object('limit', most));
  end if;
  insert into app_public.webhooks (id, organization_id, url, events, description, secret_prefix)
    values (app_private.seeded_id(create_webhook.secret ->> 'seed'), home, create_webhook.url, create_webhook.events,
      app_hidden.checked(nullif(btrim(create_webhook.description), ''), 'app_public.short_text', 'description'),
        left(create_webhook.secret ->> 'secret', 12))
    returning * into result;
  insert into app_private.webhook_secrets (webhook_id, sealed) values (result.id, create_webhook.secret ->> 'sealed');
  insert into app_private.webhook_progress (webhook_id, organization_id, last_sequence)
    values (result.id, home, coalesce((select c.last_sequence from app_private.event_counters c
      where c.stream_id = home), 0));
  insert into app_private.webhook_health (webhook_id, organization_id) values (result.id, home);
  -- The one look at it: it travels in the answer's row, never in the table.
  result.secret := create_webhook.secret ->> 'secret';
  return result;
end $$;
comment on function app_public.create_webhook is
  E'@arg organization_id Id of the organization whose events are sent.\n@arg url URL to send events to: https, '
  'publicly reachable, port 443 or 8443.\n@arg events Names of the events to send, such as lead.created, unit.* or '
  '*.\n@arg description Free-text description of the purpose.\n\n'
  'Creates a webhook, which sends events of an organization to a URL from now on. Only this response contains '
  '`secret`, with which requests are signed. Requires org.admin, and either audit.read or permission to read all '
  'records that the events are about.';

create function app_public.rotate_webhook_secret(id uuid, secret app_public.fresh_secret,
  grace_hours int default 24) returns app_public.webhooks
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  webhook app_public.webhooks := app_private.require_webhook(rotate_webhook_secret.id);
  hours int := coalesce(grace_hours, 24);
  ends timestamptz;
begin
  if hours not between 0 and 720 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Must be from 0 to 720 hours.', '{"field": "graceHours"}');
  elsif rotate_webhook_secret.secret ->> 'webhook' is distinct from webhook.id::text then
    perform app_hidden.fail('BAD_USER_INPUT', 'Use the id exactly as the API returned it.', '{"field": "id"}');
  end if;
  ends := case when hours > 0 then now() + make_interval(hours => hours) end;
  update app_private.webhook_secrets s
    set previous_sealed = case when hours > 0 then s.sealed end, previous_expires_at = ends,
      sealed = rotate_webhook_secret.secret ->> 'sealed'
    where s.webhook_id = webhook.id;
  update app_public.webhooks w set secret_prefix = left(rotate_webhook_secret.secret ->> 'secret', 12),
    previous_secret_expires_at = ends
    where w.id = webhook.id returning w.* into webhook;
  webhook.secret := rotate_webhook_secret.secret ->> 'secret';
  return webhook;
end $$;
comment on function app_public.rotate_webhook_secret is $$
@arg grace_hours Number of hours for which requests are also signed with the old secret: 0 to 720. Default: 24.

Replaces the signing secret of a webhook. Only this response contains the new `secret`. Requires the permission
org.admin.$$;
grant execute on function app_public.create_webhook, app_public.rotate_webhook_secret to plat_user, plat_anonymous;

create function app_public.webhooks_deliveries(w app_public.webhooks,
  status app_public.webhook_delivery_status default null)
returns setof app_public.webhook_deliveries
language sql stable rows 100 as $$
  select d.* from app_public.webhook_deliveries d
  where d.webhook_id = w.id and ($2 is null or d.status = $2) order by d.id desc
$$;
grant execute on function app_public.webhooks_deliveries to plat_user, plat_anonymous;

create function app_private.tg_webhooks__follow() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.deleted_at is not null or new.status = 'DISABLED' then
    perform app_private.discard_deliveries(new.id);
    if new.deleted_at is not null then
      delete from app_private.webhook_progress p where p.webhook_id = new.id;
      delete from app_private.webhook_health h where h.webhook_id = new.id;
      delete from app_private.webhook_secrets s where s.webhook_id = new.id;
    end if;
  elsif new.url is distinct from old.url or (new.status = 'ENABLED' and not coalesce(app_hidden.is_service(), false))
    then
    -- By a user: the receiver is said to work, or was replaced, so pending deliveries are attempted
    -- immediately.
    update app_private.webhook_health h set failure_count = 0, failing_since = null where h.webhook_id = new.id;
    if old.status = 'DISABLED' then
      update app_private.webhook_progress p
        set last_sequence = coalesce((select c.last_sequence from app_private.event_counters c
          where c.stream_id = new.organization_id), 0)
        where p.webhook_id = new.id;
    end if;
    update app_private.webhook_queue q set due_at = now() where q.webhook_id = new.id and not q.leased
      and q.due_at > now();
    perform app_private.call_dispatchers(new.organization_id);
  end if;
  return null;
end $$;
create trigger _700_follow after update on app_public.webhooks for each row
  when (old.status is distinct from new.status or old.url is distinct from new.url or old.deleted_at is distinct
    from new.deleted_at) execute function app_private.tg_webhooks__follow();

comment on function app_public.webhooks_deliveries is
  E'@arg status Only deliveries with this outcome.\n\nDeliveries, latest first; kept for 30 days.';

create trigger _700_of_integration after update on app_private.webhook_health for each row
  when (new.integration_id is not null and new.last_delivery_at is distinct from old.last_delivery_at)
    execute function app_private.tg_webhook_health__of_integration();

create function app_private.tg_webhooks__of_integration() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Disabled by the service: if a user disables it, the integration is disabled already.
  if app_hidden.is_service() and exists (select from app_public.organization_integrations i
    where i.id = new.integration_id and i.status = 'ENABLED') then
    perform app_private.fail_integration('ORGANIZATION', new.integration_id, new.disabled_reason);
  end if;
  return null;
end $$;
create trigger _710_of_integration after update on app_public.webhooks for each row
  when (new.integration_id is not null and new.status = 'DISABLED' and old.status <> 'DISABLED'
    and new.deleted_at is null)
  execute function app_private.tg_webhooks__of_integration();

revoke execute on function app_hidden.event_matches from plat_user, plat_anonymous;
