-- The built-in applications, and their database functions.

create function app_private.tg_webhook_health__of_integration() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.failure_count = 0 then
    update app_public.organization_integrations i set last_sync_at = now(), last_error = null
      where i.id = new.integration_id;
  elsif new.failure_count > old.failure_count then
    update app_public.organization_integrations i set last_error = format('The receiver did not take the last %s.',
        case new.failure_count when 1 then 'attempt' else new.failure_count || ' attempts' end)
          where i.id = new.integration_id;
  end if;
  return null;
end $$;

create function app_private.webhook_of_integration(integration_id uuid) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce((select w.id from app_public.webhooks w where w.integration_id = $1), md5('webhook of ' || $1)::uuid)
$$;
comment on function app_private.webhook_of_integration(uuid) is
  'The webhook that an integration goes out by, also before there is one: its secret is sealed first.';

create function app_private.connect_sync(integration_id uuid, extra jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  before text := coalesce(current_setting('plat.service', true), '');
  integration app_public.organization_integrations;
  webhook app_public.webhooks;
  wanted text[] := array(select jsonb_array_elements_text(extra -> 'events'));
  claims constant jsonb := app_private.claims();
  lacking text;
begin
  select i.* into integration from app_public.organization_integrations i where i.id = integration_id;
  select w.* into webhook from app_public.webhooks w where w.integration_id = integration_id;
  if webhook.id is null then
    insert into app_public.webhooks (id, organization_id, url, events, secret_prefix, integration_id, created_by_id,
      principal_id, principal_token_id)
      values (app_private.webhook_of_integration(integration_id), integration.organization_id, extra ->> 'url', wanted,
        extra ->> 'secretPrefix', integration_id,
        integration.connected_by_id, integration.principal_id, integration.principal_token_id) returning * into webhook;
    insert into app_private.webhook_secrets (webhook_id, sealed) values (webhook.id, extra ->> 'sealedSecret');
    insert into app_private.webhook_progress (webhook_id, organization_id, last_sequence, integration_id, mapping)
      values (webhook.id, integration.organization_id,
        coalesce((select c.last_sequence from app_private.event_counters c
          where c.stream_id = integration.organization_id), 0), integration_id, extra -> 'mapping');
    insert into app_private.webhook_health (webhook_id, organization_id, integration_id)
      values (webhook.id, integration.organization_id, integration_id);
  else
    -- By hand: one that was disabled begins with the present.
    perform set_config('plat.service', '', true);
    update app_public.webhooks w set url = extra ->> 'url', events = wanted, status = 'ENABLED',
        principal_id = integration.principal_id, principal_token_id = integration.principal_token_id
      where w.id = webhook.id returning * into webhook;
    perform set_config('plat.service', before, true);
    update app_private.webhook_progress p set mapping = extra -> 'mapping' where p.webhook_id = webhook.id;
    update app_private.webhook_health h set failure_count = 0, failing_since = null where h.webhook_id = webhook.id;
    -- The receiver works again: pending deliveries are attempted immediately.
    update app_private.webhook_queue q set due_at = now() where q.webhook_id = webhook.id and not q.leased
      and q.due_at > now();
    perform app_private.call_dispatchers(webhook.organization_id);
    -- One secret for as long as the integration lives.
    update app_private.webhook_secrets s set sealed = extra ->> 'sealedSecret' where s.webhook_id = webhook.id;
  end if;
  -- The connecting user must have read access to what it sends.
  perform app_private.act_as_principal(webhook.principal_id, webhook.principal_token_id);
  lacking := app_private.webhook_lacks(webhook);
  perform app_private.set_claims(claims);
  if lacking is not null then
    perform app_hidden.fail('FORBIDDEN',
      format('The integration would send events on your behalf, which requires the permission %s.', lacking),
      jsonb_build_object('permission', lacking));
  end if;
end $$;
comment on function app_private.connect_sync(uuid, jsonb) is
  'Creates or updates the webhook through which a sync is sent.';

create function app_private.are_event_names(names text[]) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$ select n from unnest(names) n
  where n is null or not app_private.is_event_name(n) limit 1 $$;
comment on function app_private.are_event_names(text[]) is
  'The first of the names that no event has; null where each has one.';
grant execute on function app_private.are_event_names to plat_authenticator;

create function app_private.claim_webhook_deliveries(batch int, lease interval, holder int)
returns table (delivery_id uuid, webhook_id uuid, attempt int, message_id uuid, url text, body text, sealed text,
  previous_sealed text, mapping jsonb, organization_id uuid, request_id text, is_archived boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  most_of_organization constant int := 64;
  work record;
  readable text[];
begin
  -- Leased first, then rendered with the current rights of each webhook's principal.
  for work in
    with recursive waiting (webhook_id) as (
      -- Along the index: as many steps as webhooks with something in the queue, however long that is.
      (select q.webhook_id from app_private.webhook_queue q order by q.webhook_id limit 1)
      union all
      select (select q.webhook_id from app_private.webhook_queue q where q.webhook_id > w.webhook_id
        order by q.webhook_id limit 1)
        from waiting w where w.webhook_id is not null
    ), receivers as materialized (
      select w.id, w.organization_id, w.status, (select count(*) from app_private.webhook_queue b
          where b.webhook_id = w.id and b.leased and b.due_at > now()) as busy
        from waiting join app_public.webhooks w on w.id = waiting.webhook_id and w.deleted_at is null
    ), organizations as (
      select r.organization_id as id, sum(r.busy) as busy from receivers r group by r.organization_id
    ), found as (
      select d.delivery_id, r.organization_id,
        row_number() over (partition by d.webhook_id order by d.due_at, d.delivery_id) as place
      from receivers r
      cross join lateral (
        select q.delivery_id, q.webhook_id, q.due_at from app_private.webhook_queue q
        where q.webhook_id = r.id and q.due_at <= now() and (r.status in ('ENABLED', 'FAILING') or q.is_test)
        order by q.due_at, q.delivery_id
        -- A few concurrent requests per receiver, one while it fails, so that a slow receiver does not use up all
        -- connections.
        limit greatest(0, case when r.status = 'FAILING' then 1 else 4 end - r.busy)
        for update of q skip locked
      ) d
    ), ranked as (
      -- Nor do many of one organization: the one with the fewest requests comes first.
      select f.delivery_id, o.busy
        + row_number() over (partition by f.organization_id order by f.place, f.delivery_id) as place
      from found f join organizations o on o.id = f.organization_id
    ), chosen as (
      select k.delivery_id from ranked k where k.place <= most_of_organization order by k.place, k.delivery_id
        limit batch
    ), leased as (
      update app_private.webhook_queue q set leased = true, holder = claim_webhook_deliveries.holder,
        due_at = now() + lease from chosen c where q.delivery_id = c.delivery_id
      returning q.delivery_id
    ), begun as (
      update app_public.webhook_deliveries d set attempt = d.attempt + 1 from leased l where d.id = l.delivery_id
      returning d.id, d.webhook_id, d.organization_id
    )
    select b.organization_id, w.principal_id, w.principal_token_id, array_agg(b.id) as ids
      from begun b join app_public.webhooks w on w.id = b.webhook_id
      group by b.organization_id, w.principal_id, w.principal_token_id
  loop
    if not app_private.act_as_principal(work.principal_id, work.principal_token_id)
      or not app_hidden.organization_can(work.organization_id, 'org.admin') then
      perform app_private.set_claims('{}');
      -- By a job: disabling a webhook locks it before its queue.
      perform app_private.add_job('principal__review', jsonb_build_object('webhookId', d.webhook_id),
        job_key => 'principal__review ' || d.webhook_id)
        from (select distinct d.webhook_id from app_public.webhook_deliveries d where d.id = any (work.ids)) d;
      update app_public.webhook_deliveries d set attempt = d.attempt - 1 where d.id = any (work.ids);
      update app_private.webhook_queue q set leased = false, holder = null, due_at = now() + interval '1 minute'
        where q.delivery_id = any (work.ids);
      continue;
    end if;
    readable := app_private.readable_subjects(work.organization_id);
    -- Records that the principal may not read, or that no longer exist.
    with unreadable as (
      update app_public.webhook_deliveries d set status = 'DISCARDED', next_attempt_at = null
        where d.id = any (work.ids) and d.event_id is not null and not exists (select from app_public.events e
          where e.id = d.event_id and (readable is null or e.subject_type = any (readable))) returning d.id
    )
    delete from app_private.webhook_queue q using unreadable u where q.delivery_id = u.id;
    return query
      with chosen as materialized (
        select d.id, d.webhook_id, d.event_id, d.attempt, d.inserted_at from app_public.webhook_deliveries d
        where d.id = any (work.ids) and d.status <> 'DISCARDED'
      ), bodies as materialized (
        -- Once for all webhooks that get the event: the same principal may read the same of it.
        select e.id, e.request_id, app_private.webhook_body(e) as body, e.archived_at is not null as is_archived
        from app_public.events e
        where e.id in (select c.event_id from chosen c)
      )
      select d.id, d.webhook_id, d.attempt, coalesce(b.id, d.id), w.url::text,
        case when b.id is not null then b.body
          else json_build_object('id', d.id, 'type', 'webhook.test', 'timestamp', d.inserted_at,
          'organizationId', work.organization_id, 'data', json_build_object('webhookId', d.webhook_id))::text end,
        s.sealed, case when s.previous_expires_at > now() then s.previous_sealed end, p.mapping, work.organization_id,
        b.request_id, coalesce(b.is_archived, false)
      from chosen d
      join app_public.webhooks w on w.id = d.webhook_id
      join app_private.webhook_secrets s on s.webhook_id = d.webhook_id
      left join app_private.webhook_progress p on p.webhook_id = d.webhook_id
      left join bodies b on b.id = d.event_id;
    perform app_private.set_claims('{}');
  end loop;
end $$;
comment on function app_private.claim_webhook_deliveries(int, interval, int) is
  'Leases due deliveries to the calling worker, fairly across organizations and their webhooks, with the payload that '
  'the principal of each webhook may read.';

-- Mail accounts.
create function app_private.mail_account(user_id uuid) returns table (id uuid, config jsonb, sealed text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select i.id, i.config, s.sealed from app_public.user_integrations i
  join app_public.integration_apps a on a.id = i.app_id and a.key = 'mail_account'
  join app_private.integration_secrets s on s.integration_id = i.id and s.sealed is not null
  join app_public.users u on u.id = i.user_id and u.status = 'ACTIVE' and u.deleted_at is null
  where i.user_id = mail_account.user_id and i.status = 'ENABLED' and i.deleted_at is null
    and app_private.token_ended(i.principal_token_id) is null
  order by i.id desc limit 1
$$;
comment on function app_private.mail_account(uuid) is
  'The mail account through which a user sends: the last one connected; none if none works.';

create function app_private.workflow_mail_sender(execution_id uuid) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.assignee_of(lower(e.subject_type), e.subject_id, e.lead_id, e.buyer_id)
    from app_public.workflow_executions e where e.id = execution_id
$$;
comment on function app_private.workflow_mail_sender(uuid) is
  'The user on whose behalf an execution sends mails: the assignee of its subject.';

create function app_private.note_synced(of_scope text, id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Once a minute is often enough to know that it lives.
  execute format('update app_public.%I i set last_sync_at = now(), last_error = null where i.id = $1 and (i.last_error '
    'is not null or coalesce(i.last_sync_at < now() - interval ''1 minute'', true))',
    app_private.integration_table(of_scope)) using id;
  update app_private.integration_secrets s set failure_count = 0 where s.integration_id = id and s.failure_count > 0;
end $$;
comment on function app_private.note_synced(text, uuid) is
  E'@step It is a job of the service.\n\nSomething went through an integration.';
grant execute on function app_private.note_synced to plat_authenticator;

-- Calendar feeds.
create function app_private.feed_of(lookup bytea) returns table (id uuid, user_id uuid, name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select i.id, i.user_id, i.name from app_private.integration_secrets s
  join app_public.user_integrations i on i.id = s.integration_id and i.status = 'ENABLED' and i.deleted_at is null
  join app_public.users u on u.id = i.user_id and u.status = 'ACTIVE' and u.deleted_at is null
  where s.lookup = feed_of.lookup and app_private.token_ended(i.principal_token_id) is null
$$;
comment on function app_private.feed_of(bytea) is 'Whose appointments a feed shows; none where it was disabled.';
grant execute on function app_private.feed_of to plat_authenticator;

create function app_hidden.calendar_appointments()
returns table (id uuid, version int, status text, type text, title text, person text, project text,
  starts_at timestamptz, ends_at timestamptz, time_zone text, location text, video_url text,
  inserted_at timestamptz, updated_at timestamptz)
language sql stable rows 500 as $$
  select a.id, a.version, a.status::text, a.type::text, a.title::text,
    coalesce((select l.name from app_public.leads l where l.id = a.lead_id),
      (select app_hidden.name_of_buyer(b.first_name, b.last_name, b.legal_name, b.company, b.email)
        from app_public.buyers b where b.id = a.buyer_id))::text,
    (select p.title from app_public.projects p where p.id = a.project_id)::text,
    a.starts_at, a.ends_at, a.time_zone::text, a.location::text, a.video_url::text, a.inserted_at, a.updated_at
  from app_public.appointments a
  where (a.host_id = (select app_public.current_user_id()) or a.assignee_id = (select app_public.current_user_id())
      or a.id = any (array(select app_hidden.viewer_purchase_appointments())))
    and a.deleted_at is null and a.starts_at > now() - interval '1 year'
  order by a.starts_at desc, a.id desc limit 2000
$$;
comment on function app_hidden.calendar_appointments() is
  'The appointments that the viewer hosts, works on or attends as a buyer, as far as they see them: of the last year '
  'and later, 2,000 at most.';
revoke execute on function app_hidden.calendar_appointments from plat_anonymous;
insert into app_public.integration_apps (key, name, description, category, scope, auth_type, oauth_scopes, available,
  connected_by, config_schema, credentials_schema) values
  ('calendar_feed', 'Calendar feed',
    'Your appointments in any calendar that subscribes to an iCalendar address. Whoever has the address can read it: '
    'disable or delete the feed to end it.',
    'CALENDAR', 'USER', 'NONE', '{}', true, null, '{"type": "object", "properties": {}, "additionalProperties": false}',
      null),
  ('mail_account', 'Mail account',
    'Sends mail to leads and buyers from your own address, through your own mail server.', 'EMAIL', 'USER', 'BASIC',
    '{}', true, null,
    '{"type": "object", "required": ["host", "from"], "additionalProperties": false, "properties": {
      "host": {"type": "string", "minLength": 1, "maxLength": 253, "description": "Name of the mail server."},
      "port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 587,
        "description": "587 or 2525 with STARTTLS, 465 with TLS."},
      "from": {"type": "string", "maxLength": 254, "pattern": "^[^\\s@<>,;\"]+@[^\\s@<>,;\"]+$",
        "description": "The address that mail comes from."},
      "fromName": {"type": "string", "maxLength": 100, "description": "The name beside it."}}}',
    '{"type": "object", "required": ["username", "password"], "additionalProperties": false, "properties": {
      "username": {"type": "string", "minLength": 1, "maxLength": 300},
      "password": {"type": "string", "minLength": 1, "maxLength": 1000}}}'),
  ('crm_sync', 'Outgoing sync', 'Sends what happens to another system, in that system''s own fields: signed, and at '
    'least once.', 'CRM', 'ORGANIZATION', 'WEBHOOK',
    '{}', true, 'app_private.connect_sync',
    '{"type": "object", "required": ["url", "events", "mapping"], "additionalProperties": false, "properties": {
      "url": {"type": "string", "minLength": 1, "maxLength": 2048,
        "description": "Where to: https, a public address."},
      "events": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "string", "maxLength": 100},
        "description": "Events such as lead.created, lead.* or *."},
      "mapping": {"type": "object", "minProperties": 1, "maxProperties": 100,
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 2000},
        "description": "Their field to one of an event, such as data.email, or '
        'to a Liquid template, such as {{ data.firstName | upcase }}."}}}', null),
  ('docusign', 'DocuSign', 'Has agreements signed at DocuSign: those whose signingProvider is DOCUSIGN.', 'E_SIGNATURE',
    'ORGANIZATION', 'API_KEY', '{}', true, null,
    '{"type": "object", "required": ["accountId"], "additionalProperties": false, "properties": {
      "accountId": {"type": "string", "minLength": 1, "maxLength": 100, "description": "The API account id."},
      "server": {"type": "string", "minLength": 1, "maxLength": 300, "pattern": "^https://[^/?#]+$",
        "default": "https://account.docusign.com",
        "description": "Where it lets in: https://account-d.docusign.com for an account of developers."}}}',
    '{"type": "object", "required": ["integrationKey", "userId", "privateKey", "webhookKey"],
      "additionalProperties": false, "properties": {
      "integrationKey": {"type": "string", "minLength": 1, "maxLength": 100,
        "description": "The integration key of your app there."},
      "userId": {"type": "string", "minLength": 1, "maxLength": 100,
        "description": "The user in whose name agreements are sent, who has consented to the app."},
      "privateKey": {"type": "string", "minLength": 1, "maxLength": 10000,
        "description": "The RSA key of the app, in PEM."},
      "webhookKey": {"type": "string", "minLength": 8, "maxLength": 500,
        "description": "The HMAC key of Connect, which its notices are signed with."}}}'),
  ('openid_account', 'OpenID Connect account',
    'Connects your account at the provider that the operator of the service has chosen.', 'OTHER', 'USER', 'OAUTH2',
    '{openid,email,offline_access}', false, null,
    '{"type": "object", "properties": {}, "additionalProperties": false}', null),
  ('openid_organization', 'OpenID Connect account of the organization',
    'Connects an account of the organization at the provider that the operator of the service has chosen.', 'OTHER',
    'ORGANIZATION', 'OAUTH2',
    '{openid,email,offline_access}', false, null, '{"type": "object", "properties": {}, "additionalProperties": false}',
      null);
grant execute on function app_private.claim_webhook_deliveries, app_private.mail_account, app_private.note_synced,
  app_private.workflow_mail_sender to plat_worker;
