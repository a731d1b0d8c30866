-- Calls to an application are split into steps, while no transaction is open (src/integrations): a begin_… function
-- checks with the viewer's rights and commits the request; the application is called; note_connected or note_failed
-- stores the result. The operation itself only returns the record.
--
-- What is shown once, such as a secret, is only part of the answer of an operation: declared in one place for all of
-- them.

comment on domain app_public.integration_credentials is
  E'@inputType JSON\n@transform hideCredentials\n\nWhat an application lets the caller in by: kept sealed, and never '
  'shown again.';

comment on domain app_public.integration_attempt is
  E'@transform connectIntegration\n@given\n\nWhat came of connecting: the record, and what is shown once.';

create function app_private.integration_table(scope text) returns text
language sql immutable as $$ select case scope when 'ORGANIZATION' then 'organization_integrations' when 'USER'
  then 'user_integrations' end $$;
comment on function app_private.integration_table(text) is 'Where the integrations of a scope are.';

create function app_private.lock_integration(of_scope text, id uuid) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  result jsonb;
begin
  -- Webhook before integration, as a delivery does.
  perform from app_public.webhooks w where w.integration_id = lock_integration.id for no key update;
  execute format('select to_jsonb(i) from app_public.%I i where i.id = $1 and i.deleted_at is null for no key update',
    app_private.integration_table(of_scope))
    into result using id;
  return result;
end $$;
comment on function app_private.lock_integration(text, uuid) is
  'An integration that is not deleted, locked until the transaction ends; null if there is none.';

create function app_private.require_integration(of_scope text, id uuid) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  result jsonb;
begin
  perform app_hidden.require_viewer();
  result := app_private.lock_integration(of_scope, id);
  if result is null or not coalesce(case of_scope when 'USER'
    then (result ->> 'user_id')::uuid = app_hidden.viewer_integrator()
      else (result ->> 'organization_id')::uuid
        = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]) end,
        false) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such integration.', '{"field": "id"}');
  end if;
  return result;
end $$;
comment on function app_private.require_integration(text, uuid) is
  'An integration of the viewer''s or of an organization that they administer, locked; refuses any other.';

create function app_private.integration_facts(of_scope text, id uuid) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  result jsonb;
begin
  execute format('select jsonb_build_object(''id'', i.id, ''scope'', $2, ''name'', i.name, ''status'', i.status,
    ''config'', i.config, ''sealed'', s.sealed, ''webhookId'', app_private.webhook_of_integration(i.id),
      ''ownerId'', i.%I, ''version'', i.version, ''app'', jsonb_build_object(''key'', a.key, ''name'', a.name,
        ''authType'', a.auth_type, ''available'', a.available,
        ''oauthScopes'', to_jsonb(a.oauth_scopes), ''configSchema'', a.config_schema, ''credentialsSchema'',
          a.credentials_schema))
    from app_public.%I i join app_public.integration_apps a on a.id = i.app_id left
      join app_private.integration_secrets s on s.integration_id = i.id
    where i.id = $1 and i.deleted_at is null', case of_scope when 'USER' then 'user_id' else 'organization_id' end,
      app_private.integration_table(of_scope))
    into result using id, of_scope;
  return result;
end $$;
comment on function app_private.integration_facts(text, uuid) is
  E'@step The viewer was asked for by integration_to_connect, or it is a job of the service.\n\nAn integration, its '
  'application and what it is let in by, sealed.';
grant execute on function app_private.integration_facts to plat_authenticator;

create function app_hidden.offered_app(of_scope text, organization_id text, app_key text, repeat jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer uuid := app_hidden.require_viewer();
  home uuid;
  app app_public.integration_apps;
  attempt record;
begin
  if of_scope = 'ORGANIZATION' then
    home := app_hidden.record_id('organizations', organization_id, 'organizationId');
    perform app_hidden.require_organization(home, 'org.admin');
  elsif app_hidden.viewer_integrator() is null then
    perform app_hidden.fail('FORBIDDEN',
      'This access token cannot manage your personal integrations; sign in to connect one.',
      '{"permission": "org.admin"}');
  end if;
  select a.* into app from app_public.integration_apps a where a.key = lower(btrim(app_key)) and a.scope = of_scope;
  if app.id is null then
    perform app_hidden.fail('NOT_FOUND', format('There is no such application; %s lists them.',
      case of_scope when 'USER' then 'userIntegrationApps' else 'organizationIntegrationApps' end),
        '{"field": "appKey"}');
  elsif not app.available then
    perform app_hidden.fail('CONFLICT',
      'This application is not available here: the operator has not registered the service there.',
      '{"field": "appKey"}');
  end if;
  attempt := app_private.claim_attempt(repeat);
  return jsonb_build_object('answered', attempt.answered, 'requestKey', attempt.key, 'ownerId', coalesce(home, viewer),
    'userId', viewer, 'appId', app.id,
    'app', jsonb_build_object('key', app.key, 'name', app.name, 'authType', app.auth_type, 'available', app.available,
      'oauthScopes', to_jsonb(app.oauth_scopes),
      'configSchema', app.config_schema, 'credentialsSchema', app.credentials_schema));
end $$;
comment on function app_hidden.offered_app(text, text, text, jsonb) is
  'An application that the viewer may connect, with the organization or for themselves.';
revoke execute on function app_hidden.offered_app from plat_anonymous;

create function app_hidden.begin_integration(of_scope text, owner_id uuid, app_key text, name text, config jsonb,
  request_key text) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  most int := case of_scope when 'USER' then 20 else 50 end;
  owner_column text := case of_scope when 'USER' then 'user_id' else 'organization_id' end;
  target text := app_private.integration_table(of_scope);
  viewer uuid := app_hidden.require_viewer();
  app app_public.integration_apps;
  held int;
  result uuid;
begin
  if of_scope = 'ORGANIZATION' then
    perform app_hidden.require_organization(owner_id, 'org.admin');
    perform from app_public.organizations o where o.id = owner_id for no key update;
  elsif owner_id is distinct from app_hidden.viewer_integrator() then
    perform app_hidden.fail('FORBIDDEN', 'Users can only connect their own accounts.', '{"permission": "org.admin"}');
  else
    perform pg_advisory_xact_lock(hashtextextended('plat.integrations ' || owner_id, 0));
  end if;
  select a.* into app from app_public.integration_apps a where a.key = app_key and a.scope = of_scope and a.available;
  -- Begun before with the same idempotency key, and not completed: continue.
  execute format('select i.id from app_public.%I i where i.request_key = $1', target) into result using request_key;
  if result is null then
    perform app_private.rate_limit('integrations', viewer::text, 60, interval '1 hour');
    execute format('select count(*) from app_public.%I i where i.%I = $1 and i.deleted_at is null', target,
      owner_column) into held using owner_id;
    if held >= most then
      perform app_hidden.fail('LIMIT_EXCEEDED', format(
        'The limit of %s integrations is reached; delete one first.', most),
        jsonb_build_object('limit', most));
    end if;
    execute format('insert into app_public.%I (app_id, name, config, request_key, %I %s) values ($1, $2, $3, $4, $5 '
      '%s) returning id', target, owner_column,
        case of_scope when 'ORGANIZATION' then ', connected_by_id' end, case of_scope when 'ORGANIZATION'
          then ', $6' end)
      into result using app.id, coalesce(app_hidden.checked(nullif(btrim(name), ''), 'app_public.short_text', 'name'),
        app.name), coalesce(config, '{}'), request_key, owner_id, viewer;
    insert into app_private.integration_secrets (integration_id, scope) values (result, of_scope);
  end if;
  return app_private.integration_facts(of_scope, result);
end $$;
comment on function app_hidden.begin_integration(text, uuid, text, text, jsonb, text) is
  'Makes an integration that waits to be connected.';
revoke execute on function app_hidden.begin_integration from plat_anonymous;

create function app_hidden.keep_credentials(of_scope text, id uuid, sealed text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.require_integration(of_scope, id);
  update app_private.integration_secrets s set sealed = keep_credentials.sealed
    where s.integration_id = keep_credentials.id and s.sealed is null;
end $$;
comment on function app_hidden.keep_credentials(text, uuid, text) is
  'Keeps what an integration that was just made is let in by: sealed for its id, and so after it.';
revoke execute on function app_hidden.keep_credentials from plat_anonymous;

create function app_hidden.integration_to_connect(of_scope text, id uuid, repeat jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  attempt record;
begin
  perform app_private.require_integration(of_scope, id);
  -- The user who connects it again becomes its principal.
  if of_scope = 'ORGANIZATION' then
    update app_public.organization_integrations i set principal_id = app_public.current_user_id(),
        principal_token_id = app_hidden.setting('token_id')::uuid
      where i.id = integration_to_connect.id;
  else
    update app_public.user_integrations i set principal_token_id = app_hidden.setting('token_id')::uuid
      where i.id = integration_to_connect.id;
  end if;
  attempt := app_private.claim_attempt(repeat);
  if not attempt.answered then
    perform app_private.rate_limit('integrations', app_public.current_user_id()::text, 60, interval '1 hour');
  end if;
  return app_private.integration_facts(of_scope, id)
    || jsonb_build_object('answered', attempt.answered, 'userId', app_public.current_user_id());
end $$;
comment on function app_hidden.integration_to_connect(text, uuid, jsonb) is
  'An integration that the viewer may refresh or change.';
revoke execute on function app_hidden.integration_to_connect from plat_anonymous;

create function app_private.note_connected(of_scope text, id uuid, config jsonb, sealed text, lookup bytea,
  expires_at timestamptz, external_account text, pending text, extra jsonb)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  present jsonb := app_private.lock_integration(of_scope, id);
  apply text;
begin
  if present is null then
    return;
  end if;
  perform set_config('plat.service', 'on', true);
  execute format('update app_public.%I i set status = case when $2 is null then ''ENABLED'' when i.status = ''DISABLED''
    then ''DISABLED'' else i.status end,
      status_reason = $2, config = coalesce($3, i.config), external_account = coalesce($4, i.external_account),
      connected_at = case when $2 is null then coalesce(i.connected_at, now()) else i.connected_at end,
      last_refreshed_at = case when $2 is null then now() else i.last_refreshed_at end,
        last_error = case when $2 is null then null else i.last_error end
    where i.id = $1', app_private.integration_table(of_scope)) using id, pending, config, left(external_account, 300);
  -- Before it ends: with a tenth of its time left, and five minutes at least.
  update app_private.integration_secrets s set sealed = note_connected.sealed,
    lookup = coalesce(note_connected.lookup, s.lookup), expires_at = note_connected.expires_at, failure_count = 0,
      next_refresh_at = case when pending is null
        then note_connected.expires_at - greatest(interval '5 minutes', (note_connected.expires_at - now()) / 10) end
    where s.integration_id = id;
  select a.connected_by into apply from app_public.integration_apps a where a.id = (present ->> 'app_id')::uuid;
  if apply is not null and pending is null then
    execute format('select %s($1, $2)', apply::regproc) using id, extra;
  end if;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.note_connected(text, uuid, jsonb, text, bytea, timestamptz, text, text, jsonb) is
  E'@step The viewer was asked for by integration_to_connect, or it is a job of the service.\n\nWrites down that an '
  'application let an integration in, which enables it; or, with pending, what is still missing.';

create function app_private.note_failed(of_scope text, id uuid, message text, is_final boolean,
  drop_credentials boolean, by_service boolean) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  present jsonb := app_private.lock_integration(of_scope, id);
  most constant int := 5;
  failures int;
begin
  if present is null then
    return;
  end if;
  update app_private.integration_secrets s set sealed = case when drop_credentials then null else s.sealed end,
      failure_count = s.failure_count + case when by_service then 1 else 0 end,
      next_refresh_at = case when drop_credentials then null when by_service
        then now() + interval '1 minute' * power(2, least(s.failure_count, 8)) else s.next_refresh_at end
    where s.integration_id = id returning s.failure_count into failures;
  perform set_config('plat.service', 'on', true);
  execute format('update app_public.%I i set last_error = $2 where i.id = $1', app_private.integration_table(of_scope))
    using id, left(message, 1000);
  -- If a user refreshes it, the response says why it failed; if the service does, somebody must be
  -- notified.
  if by_service and (is_final or failures >= most) and present ->> 'status' in ('ENABLED', 'PENDING') then
    perform app_private.fail_integration(of_scope, id, message);
  end if;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.note_failed(text, uuid, text, boolean, boolean, boolean) is
  E'@step The viewer was asked for by integration_to_connect, or it is a job of the service.\n\n'
  'Records a failed authentication of an integration: the status stays, unless the failure is permanent or the '
  'fifth one of the service.';

create function app_private.fail_integration(of_scope text, id uuid, message text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  integration app_public.organization_integrations;
begin
  perform set_config('plat.service', 'on', true);
  execute format('update app_public.%I i set status = ''ERROR'', status_reason = $2, last_error = $2 where i.id = $1 '
    'and i.status in (''ENABLED'', ''PENDING'')',
    app_private.integration_table(of_scope)) using id, left(message, 1000);
  update app_private.integration_secrets s set next_refresh_at = null where s.integration_id = id;
  -- Personal integrations concern only their user, who sees the problem in the status.
  select i.* into integration from app_public.organization_integrations i where i.id = fail_integration.id
    and i.status = 'ERROR';
  if integration.id is not null then
    perform app_private.open_ticket('INTEGRATION_FAILURE', 'integration:' || id, integration.organization_id,
      format('%s does not work any more', left(integration.name, 200)),
      '{RETRY,DISMISS}', description => message, priority => 'HIGH', subject_type => 'organization_integration',
        subject_id => id);
  end if;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.fail_integration(text, uuid, text) is
  'Stops using an integration until somebody refreshes it; for one of an organization, opens a ticket.';
grant execute on function app_private.note_connected, app_private.note_failed to plat_authenticator;

create function app_private.retry_integration_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_public.organization_integrations i where i.id = ticket.subject_id
    and i.deleted_at is null) then
    perform app_hidden.fail('CONFLICT', 'The integration was deleted; dismiss the ticket.');
  end if;
  perform app_private.add_job('integration__retried',
    jsonb_build_object('id', ticket.subject_id, 'ticketId', ticket.id, 'organization_id', ticket.organization_id));
  return false;
end $$;
comment on function app_private.retry_integration_by_ticket(app_public.escalation_tickets) is
  'Has an integration refreshed, which ends the ticket.';
insert into app_hidden.ticket_actions (action, kind, permission, perform)
  values ('RETRY', 'INTEGRATION_FAILURE', 'org.admin', 'app_private.retry_integration_by_ticket');

create function app_private.due_integrations(batch int) returns table (id uuid, scope text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- An attempt is valid for ten minutes.
  return query update app_private.integration_secrets s set next_refresh_at = now() + interval '10 minutes'
    where s.integration_id = any (array(select d.integration_id from app_private.integration_secrets d
      where d.next_refresh_at <= now()
      order by d.next_refresh_at limit batch for update skip locked))
    returning s.integration_id, s.scope::text;
end $$;
comment on function app_private.due_integrations(int) is 'Takes integrations whose credentials end soon.';

create function app_private.begin_consent(of_scope text, integration_id uuid, user_id uuid, id uuid,
  sealed_verifier text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  delete from app_private.oauth_attempts a where a.expires_at < now()
    or a.integration_id = begin_consent.integration_id;
  insert into app_private.oauth_attempts (id, scope, integration_id, user_id, sealed_verifier)
    values (begin_consent.id, of_scope, begin_consent.integration_id, begin_consent.user_id,
      begin_consent.sealed_verifier);
end $$;

create function app_private.take_consent(id uuid, user_id uuid) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  attempt app_private.oauth_attempts;
begin
  delete from app_private.oauth_attempts a using app_private.open_consent(take_consent.id, take_consent.user_id) o
    where a.id = o.id returning a.* into attempt;
  if not found then
    return null;
  end if;
  return app_private.integration_facts(attempt.scope, attempt.integration_id)
    || jsonb_build_object('userId', attempt.user_id, 'attemptId', attempt.id, 'sealedVerifier',
      attempt.sealed_verifier);
end $$;
comment on function app_private.begin_consent(text, uuid, uuid, uuid, text) is
  E'@step The user is the viewer, asked for by integration_to_connect.\n\nRemembers that a user was sent to give '
  'consent, for a quarter of an hour; the latest counts.';
comment on function app_private.take_consent(uuid, uuid) is
  'The integration that a consent is for, once; null where it was taken, is too late, or the user has lost the right.';
grant execute on function app_private.begin_consent, app_private.take_consent to plat_authenticator;

create function app_public.create_organization_integration(organization_id app_public.id_or_slug, app_key text,
  attempt app_public.integration_attempt, name text default null,
  config jsonb default null, credentials app_public.integration_credentials default null) returns
    app_public.organization_integrations
language sql volatile as $$ select app_hidden.answered(i, attempt) from app_public.organization_integrations i
  where i.id = (attempt ->> 'id')::uuid $$;

create function app_public.create_user_integration(app_key text, attempt app_public.integration_attempt,
  name text default null, config jsonb default null,
  credentials app_public.integration_credentials default null) returns app_public.user_integrations
language sql volatile as $$ select app_hidden.answered(i, attempt) from app_public.user_integrations i
  where i.id = (attempt ->> 'id')::uuid $$;

create function app_public.refresh_organization_integration(id uuid,
  attempt app_public.integration_attempt) returns app_public.organization_integrations
language sql volatile as $$ select app_hidden.answered(i, attempt) from app_public.organization_integrations i
  where i.id = (attempt ->> 'id')::uuid $$;

create function app_public.refresh_user_integration(id uuid,
  attempt app_public.integration_attempt) returns app_public.user_integrations
language sql volatile as $$ select app_hidden.answered(i, attempt) from app_public.user_integrations i
  where i.id = (attempt ->> 'id')::uuid $$;

create function app_public.update_organization_integration(id uuid, attempt app_public.integration_attempt,
  name text default null, config jsonb default null,
  credentials app_public.integration_credentials default null) returns app_public.organization_integrations
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.require_integration('ORGANIZATION', (attempt ->> 'id')::uuid);
  update app_public.organization_integrations i
    set name = coalesce(app_hidden.checked(nullif(btrim(update_organization_integration.name), ''),
    'app_public.short_text', 'name'), i.name)
    where i.id = (attempt ->> 'id')::uuid returning app_hidden.answered(i, attempt);
$$;

create function app_public.update_user_integration(id uuid, attempt app_public.integration_attempt,
  name text default null, config jsonb default null,
  credentials app_public.integration_credentials default null) returns app_public.user_integrations
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.require_integration('USER', (attempt ->> 'id')::uuid);
  update app_public.user_integrations i
    set name = coalesce(app_hidden.checked(nullif(btrim(update_user_integration.name), ''), 'app_public.short_text',
    'name'), i.name)
    where i.id = (attempt ->> 'id')::uuid returning app_hidden.answered(i, attempt);
$$;

create function app_private.end_integration(of_scope text, id uuid, reason text, is_deleted boolean) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  present jsonb := app_private.require_integration(of_scope, id);
  why text := coalesce(app_hidden.checked(nullif(btrim(reason), ''), 'app_public.short_text', 'reason'),
    'Disabled by hand.');
begin
  if is_deleted then
    execute format('update app_public.%I i set deleted_at = now() where i.id = $1',
      app_private.integration_table(of_scope)) using id;
    delete from app_private.integration_secrets s where s.integration_id = end_integration.id;
    delete from app_private.oauth_attempts a where a.integration_id = end_integration.id;
    update app_public.webhooks w set deleted_at = now() where w.integration_id = end_integration.id
      and w.deleted_at is null;
  elsif present ->> 'status' <> 'DISABLED' then
    execute format('update app_public.%I i set status = ''DISABLED'', status_reason = $2 where i.id = $1',
      app_private.integration_table(of_scope)) using id, why;
    update app_private.integration_secrets s set next_refresh_at = null where s.integration_id = end_integration.id;
    update app_public.webhooks w set status = 'DISABLED', disabled_reason = why
      where w.integration_id = end_integration.id and w.status <> 'DISABLED' and w.deleted_at is null;
  end if;
end $$;
comment on function app_private.end_integration(text, uuid, text, boolean) is
  'Switches an integration off, or deletes it, with what it is let in by.';

create function app_public.disable_organization_integration(id uuid,
  reason text default null) returns app_public.organization_integrations
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.end_integration('ORGANIZATION', disable_organization_integration.id, reason, false);
  select i.* from app_public.organization_integrations i where i.id = disable_organization_integration.id;
$$;

create function app_public.disable_user_integration(id uuid,
  reason text default null) returns app_public.user_integrations
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.end_integration('USER', disable_user_integration.id, reason, false);
  select i.* from app_public.user_integrations i where i.id = disable_user_integration.id;
$$;

create function app_public.delete_organization_integration(id uuid) returns app_public.organization_integrations
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.end_integration('ORGANIZATION', delete_organization_integration.id, null, true);
  select i.* from app_public.organization_integrations i where i.id = delete_organization_integration.id;
$$;

create function app_public.delete_user_integration(id uuid) returns app_public.user_integrations
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.end_integration('USER', delete_user_integration.id, null, true);
  select i.* from app_public.user_integrations i where i.id = delete_user_integration.id;
$$;
grant execute on function app_public.create_organization_integration, app_public.create_user_integration,
  app_public.refresh_organization_integration, app_public.refresh_user_integration,
  app_public.update_organization_integration, app_public.update_user_integration,
  app_public.disable_organization_integration, app_public.disable_user_integration,
  app_public.delete_organization_integration, app_public.delete_user_integration to plat_user, plat_anonymous;
comment on function app_public.create_organization_integration is
  E'@arg organization_id Id of the organization that connects the application.\n@arg app_key `key` of the '
  'application, from `organizationIntegrationApps`.\n@arg name Display name. Default: the name of the '
  'application.\n@arg config Configuration, according to `configSchema` of the application.\n@arg credentials '
  'Credentials, according to `credentialsSchema` of the application. Stored encrypted and never returned.\n\n'
  'Connects an application to an organization. The integration is ENABLED if authentication succeeds immediately; '
  'otherwise it is PENDING, and `statusReason` or `lastError` explains why. For OAuth 2, open '
  '`config.authorizationUrl` of the result to give consent. Requires the permission org.admin.';
comment on function app_public.create_user_integration is
  E'@arg app_key `key` of the application, from `userIntegrationApps`.\n@arg name Display name. Default: the name '
  'of the application.\n@arg config Configuration, according to `configSchema` of the application.\n@arg '
  'credentials Credentials, according to `credentialsSchema` of the application. Stored encrypted and never '
  'returned.\n\n'
  'Connects an application for the viewer. The integration is ENABLED if authentication succeeds immediately; '
  'otherwise it is PENDING, and `statusReason` or `lastError` explains why. For OAuth 2, open '
  '`config.authorizationUrl` of the result to give consent.';
comment on function app_public.refresh_organization_integration is
  'Authenticates with the application again. If that succeeds, the integration is ENABLED, even if it was '
  'disabled. If it fails, the status stays, `lastError` explains why, and the mutation is refused with '
  'PROVIDER_ERROR. Requires the permission org.admin.';
comment on function app_public.refresh_user_integration is
  'Authenticates with the application again. If that succeeds, the integration is ENABLED, even if it was '
  'disabled. If it fails, the status stays, `lastError` explains why, and the mutation is refused with '
  'PROVIDER_ERROR.';
comment on function app_public.update_organization_integration is
  E'@arg name Display title.\n@arg config New settings; replace the previous ones completely.\n@arg credentials '
  'Credentials for the application; replace the previous ones.\n\n'
  'Updates an integration of an organization. New config or credentials only take effect if the application '
  'accepts them. Requires the permission org.admin.';
comment on function app_public.update_user_integration is
  E'@arg name Display title.\n@arg config New settings; replace the previous ones completely.\n@arg credentials '
  'Credentials for the application; replace the previous ones.\n\n'
  'Updates an integration of the viewer. New config or credentials only take effect if the application accepts '
  'them.';
comment on function app_public.disable_organization_integration is
  E'@arg reason Reason, shown as `statusReason`.\n\n'
  'Disables an integration of an organization. `refreshOrganizationIntegration` enables it again. Requires the '
  'permission org.admin.';
comment on function app_public.disable_user_integration is
  E'@arg reason Reason, shown as `statusReason`.\n\n'
  'Disables an integration of the viewer. `refreshUserIntegration` enables it again.';
comment on function app_public.delete_organization_integration is
  'Deletes an integration of an organization and its credentials. Requires the permission org.admin.';
comment on function app_public.delete_user_integration is 'Deletes an integration of the viewer and its credentials.';

create function app_hidden.answered(integration anyelement, attempt jsonb) returns anyelement
language sql stable as $$
  select jsonb_populate_record(integration,
    jsonb_build_object('config', to_jsonb(integration) -> 'config' || coalesce(attempt -> 'shown', '{}')))
$$;
comment on function app_hidden.answered(anyelement, jsonb) is
  'An integration as returned by the mutation that connects it, with values that are shown only once.';
grant execute on function app_hidden.answered to plat_user;
grant execute on function app_private.due_integrations, app_private.integration_facts, app_private.note_connected,
  app_private.note_failed to plat_worker;
