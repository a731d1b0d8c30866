-- Integrations. An application is a row of the catalogue and a file of src/integrations/apps, named by its key. An
-- integration connects it with an organization or a user:
--
--   PENDING → ENABLED ⇄ DISABLED
--   PENDING, ENABLED → ERROR, after repeated failures; → ENABLED by a successful refresh
--
-- A successful refresh enables the integration, also if it was disabled; a failed one keeps the state and sets
-- lastError. Credentials are sealed with a key that the database never sees, and never shown again.

create policy members on app_public.integration_apps for select to plat_user using (true);

grant select on app_public.integration_apps to plat_user, plat_anonymous;

comment on table app_public.integration_apps is
  E'@behavior -*:list -*:connection\n\nAn application that an organization or user can connect.';
comment on column app_public.integration_apps.key is
  'Key that identifies the application, for creating an integration.';
comment on column app_public.integration_apps.name is 'Product name, for display.';
comment on column app_public.integration_apps.description is 'Type of effect, such as a refund or a change of status.';
comment on column app_public.integration_apps.category is 'Purpose of the application, such as CRM.';
comment on column app_public.integration_apps.scope is 'Whether organizations or users connect it.';
comment on column app_public.integration_apps.icon_url is 'Logo of the product, for display.';
comment on column app_public.integration_apps.auth_type is 'Authentication method.';
comment on column app_public.integration_apps.oauth_scopes is 'OAuth scopes that the user is asked to grant.';
comment on column app_public.integration_apps.config_schema is 'Format of the settings in `config`, as a JSON Schema.';
comment on column app_public.integration_apps.credentials_schema is
  'JSON Schema of the credentials; null if it needs none.';
comment on column app_public.integration_apps.documentation_url is 'URL of the setup guide.';
comment on column app_public.integration_apps.available is
  E'@runtime\n\n'
  'Whether it can be connected. Applications with OAuth 2 require that the operator has registered the service '
  'with them.';
comment on column app_public.integration_apps.connected_by is
  E'@behavior -*\n\n'
  'Further changes in the database when a connection changes: a function of the integration''s id, its status, and '
  'the result of the application''s code.';
comment on table app_private.integration is 'The columns that the integrations of organizations and of users share.';

create function app_hidden.viewer_integrator() returns uuid
language sql stable as $$
  select case when app_hidden.setting('organization_id') is null and app_hidden.setting('scopes') is null
    then app_public.current_user_id() end
$$;
comment on function app_hidden.viewer_integrator() is
  'The viewer as somebody with integrations of their own; null for a token of one organization, or with scopes.';

create policy admins on app_public.organization_integrations for select to plat_user
  using (deleted_at is null and organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]));

select app_private.make_record('organization_integrations', 'organization_integration', 'org.admin');
select app_private.make_state_machine(t.name, t.subject,
  steps => array[['PENDING', 'ENABLED', 'service'], ['PENDING', 'ERROR', 'service'], ['PENDING', 'DISABLED', 'hand'],
    ['ENABLED', 'DISABLED', 'hand'], ['ENABLED', 'ERROR', 'service'],
    ['ERROR', 'ENABLED', 'service'], ['ERROR', 'DISABLED', 'hand'], ['DISABLED', 'ENABLED', 'service']],
  initial => array['PENDING'])
from (values ('organization_integrations', 'organization_integration'),
  ('user_integrations', 'user_integration')) t (name, subject);

grant select on app_public.organization_integrations, app_public.user_integrations to plat_user, plat_anonymous;

create function app_private.organization_integration_lacks(i app_public.organization_integrations) returns text
language plpgsql stable as $$
declare
  sender app_public.webhooks;
begin
  if jsonb_typeof(i.config -> 'events') = 'array' then
    -- Permissions for the data that it sends, as for a webhook.
    sender.organization_id := i.organization_id;
    sender.events := array(select jsonb_array_elements_text(i.config -> 'events'));
    return app_private.webhook_lacks(sender);
  end if;
  return app_private.lacking_permission(i.organization_id, null, '{org.admin}');
end $$;
comment on function app_private.organization_integration_lacks(app_public.organization_integrations) is
  'A permission that the viewer lacks for what an integration of an organization does; null where they have all.';

create function app_private.user_integration_lacks(i app_public.user_integrations) returns text
language sql stable as $$
  select case when i.user_id is distinct from app_hidden.viewer_integrator() then 'org.admin' end
$$;
comment on function app_private.user_integration_lacks(app_public.user_integrations) is
  'Something where the viewer is not the user, or reaches only a part of their account; null where they may.';

create function app_private.suspend_organization_integration(id uuid, reason text) returns void
language sql volatile as $$
  update app_public.organization_integrations i set status = 'DISABLED', status_reason = reason
    where i.id = suspend_organization_integration.id and i.status <> 'DISABLED' and i.deleted_at is null;
  update app_private.integration_secrets s set next_refresh_at = null
    where s.integration_id = suspend_organization_integration.id;
  update app_public.webhooks w set status = 'DISABLED', disabled_reason = reason
    where w.integration_id = suspend_organization_integration.id and w.status <> 'DISABLED' and w.deleted_at is null;
  delete from app_private.oauth_attempts a where a.integration_id = suspend_organization_integration.id;
$$;
comment on function app_private.suspend_organization_integration(uuid, text) is
  'Disables an integration of an organization for the reason; a refresh enables it again.';

create function app_private.suspend_user_integration(id uuid, reason text) returns void
language sql volatile as $$
  update app_public.user_integrations i set status = 'DISABLED', status_reason = reason
    where i.id = suspend_user_integration.id and i.status <> 'DISABLED' and i.deleted_at is null;
  -- Its creator knows its credentials, such as the URL of a feed.
  update app_private.integration_secrets s set sealed = null, lookup = null, next_refresh_at = null
    where s.integration_id = suspend_user_integration.id;
  delete from app_private.oauth_attempts a where a.integration_id = suspend_user_integration.id;
$$;
comment on function app_private.suspend_user_integration(uuid, text) is
  'Disables an integration of a user for the reason, and forgets what it was let in by: a refresh gives a feed another '
  'address, other applications require their credentials again.';

select app_private.make_principal('app_public', 'organization_integrations', 'principal_id', 'integration', 'r.name',
  'r.deleted_at is null and r.status <> ''DISABLED''',
  'app_private.organization_integration_lacks(app_public.organization_integrations)',
  'app_private.suspend_organization_integration(uuid, text)',
  takes_over => 'row(old.principal_id, old.principal_token_id) is distinct from '
    'row(new.principal_id, new.principal_token_id)');
select app_private.make_principal('app_public', 'user_integrations', 'user_id', 'integration', 'r.name',
  'r.deleted_at is null and r.status <> ''DISABLED''',
  'app_private.user_integration_lacks(app_public.user_integrations)',
  'app_private.suspend_user_integration(uuid, text)',
  takes_over => 'old.principal_token_id is distinct from new.principal_token_id', organization => null);

comment on table app_public.organization_integrations is 'An application that an organization has connected.';
comment on column app_public.organization_integrations.principal_id is
  E'@behavior -*\n\nThe user on whose behalf it acts: who connected or refreshed it last.';
comment on constraint organization_integrations_principal_id_fkey on app_public.organization_integrations is
  E'@fieldName principal\n@backwardBehavior -*\n\n'
  'The user on whose behalf it acts, who connected or refreshed it last. It is disabled when that user can no '
  'longer administer the organization, or read what it sends.';
comment on column app_public.organization_integrations.connected_by_id is
  E'@behavior -*\n\nUser who connected the application.';
comment on constraint organization_integrations_connected_by_id_fkey on app_public.organization_integrations is
  E'@fieldName connectedBy\n@backwardBehavior -*\n\nUser who connected the application.';
comment on constraint organization_integrations_organization_id_fkey on app_public.organization_integrations is
  E'@parent\n@fieldName organization\n@foreignFieldName integrations\n@backwardPermission '
  'org.admin\n@backwardDescription Connected applications; null without the permission org.admin.\n\n'
  'The organization.';

create policy own on app_public.user_integrations for select to plat_user
  using (deleted_at is null and user_id = (select app_hidden.viewer_integrator()));

select app_private.make_record('user_integrations', 'user_integration');

comment on table app_public.user_integrations is 'An application that a user has connected.';
comment on constraint user_integrations_user_id_fkey on app_public.user_integrations is
  E'@fieldName user\n@backwardBehavior -*\n\nThe user who connected the application.';
comment on table app_private.integration_secrets is
  'Credentials of integrations, encrypted with a key that the database never sees; lookup is the SHA-256 of the '
  'identifier that inbound requests use.';
comment on table app_private.oauth_attempts is
  'Consents that were asked for: each is taken once, by the address that the provider leads back to.';
comment on column app_private.oauth_attempts.sealed_verifier is E'@impersonal\n\nA secret of the attempt, sealed.';

do $$
declare
  name text;
begin
  foreach name in array array['organization_integrations', 'user_integrations'] loop
    execute format('
      comment on column app_public.%1$I.app_id is %2$L;
      comment on column app_public.%1$I.name is E''@impersonal\n\nDisplay title.'';
      comment on column app_public.%1$I.status is ''Whether it can still be used.'';
      comment on column app_public.%1$I.status_reason is E''@impersonal\n\nReason for the current status.'';
      comment on column app_public.%1$I.config is %3$L;
      comment on column app_public.%1$I.external_account is
        E''@personal\n\nName of the connected account at the application.'';
      comment on column app_public.%1$I.connected_at is ''When the application was first connected; null until then.'';
      comment on column app_public.%1$I.last_refreshed_at is %4$L;
      comment on column app_public.%1$I.last_sync_at is %5$L;
      comment on column app_public.%1$I.last_error is %6$L;
      comment on column app_public.%1$I.request_key is %7$L;
      comment on constraint %8$I on app_public.%1$I is %9$L',
      name, E'@behavior -*\n\nThe application.',
      E'@impersonal\n\nSettings, without secrets. Values that are shown only once, such as `authorizationUrl`, '
      '`secret` or `feedUrl`, are only in the response of the mutation that created them.',
      E'@secret\n\nWhen the application last accepted the credentials.',
      E'@secret\n\nWhen data were last exchanged with the application; null if never.',
      E'@impersonal\n@secret\n\nLast error of the application; null once it works again.',
        E'@impersonal\n@secret\n@behavior -*\n\nThe request that made it.',
      name || '_app_id_fkey', E'@fieldName app\n@backwardBehavior -*\n\nThe application.');
  end loop;
end $$;

insert into app_private.event_names (subject, column_name, value, name) values
  ('organization_integration', 'status', 'ENABLED', 'enabled'), ('organization_integration', 'status', 'DISABLED',
    'disabled'), ('organization_integration', 'status', 'ERROR', 'failed'),
  ('user_integration', 'status', 'ENABLED', 'enabled'), ('user_integration', 'status', 'DISABLED', 'disabled'),
  ('user_integration', 'status', 'ERROR', 'failed');

-- A successful call is no change of the record, so that its version remains valid.
do $$
declare
  name text;
  columns constant text := 'row(%1$s.app_id, %1$s.name, %1$s.status, %1$s.status_reason, %1$s.config, '
    '%1$s.external_account, %1$s.connected_at, %1$s.deleted_at)';
begin
  foreach name in array array['organization_integrations', 'user_integrations'] loop
    execute format('create or replace trigger _900_touch before update on app_public.%I for each row when (%s is
      distinct from %s)
      execute function app_private.tg__touch()', name, format(columns, 'old'), format(columns, 'new'));
  end loop;
end $$;

create function app_public.organization_integrations_allowed_transitions(i app_public.organization_integrations) returns
  app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('organization_integration', to_jsonb(i)) $$;

create function app_public.user_integrations_allowed_transitions(i app_public.user_integrations) returns
  app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('user_integration', to_jsonb(i)) $$;
comment on function app_public.organization_integrations_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';
comment on function app_public.user_integrations_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';

create function app_public.integration_apps_installed(a app_public.integration_apps) returns boolean
language sql stable as $$
  select case a.scope when 'USER' then exists (select from app_public.user_integrations i where i.app_id = a.id
    and i.user_id = (select app_hidden.viewer_integrator()))
    else exists (select from app_public.organization_integrations i where i.app_id = a.id
      and i.organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[])) end
$$;
comment on function app_public.integration_apps_installed is
  E'@notNull\n\nWhether the viewer has connected it, or an organization that the viewer administers.';

create function app_public.organization_integration_apps() returns setof app_public.integration_apps
language sql stable rows 20 as $$ select a.* from app_public.integration_apps a where a.scope = 'ORGANIZATION'
  order by a.name, a.id $$;

create function app_public.user_integration_apps() returns setof app_public.integration_apps
language sql stable rows 20 as $$ select a.* from app_public.integration_apps a where a.scope = 'USER' order by a.name,
  a.id $$;
comment on function app_public.organization_integration_apps is
  E'@ordered\n\nApplications that organizations can connect, sorted by name.';
comment on function app_public.user_integration_apps is
  E'@ordered\n\nApplications that users can connect, sorted by name.';
grant execute on function app_public.organization_integrations_allowed_transitions,
  app_public.user_integrations_allowed_transitions, app_public.users_integrations,
  app_public.integration_apps_installed to plat_user, plat_anonymous;
grant execute on function app_public.organization_integration_apps, app_public.user_integration_apps to plat_user;

create function app_private.note_configured_apps(client text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_public.integration_apps a set available = client is not null where a.auth_type = 'OAUTH2'
    and a.available <> (client is not null)
$$;
comment on function app_private.note_configured_apps(text) is
  E'@step It is a setting of the operator.\n\nWhether the operator has registered the service where consents are '
  'given; null: nowhere.';
grant execute on function app_private.note_configured_apps to plat_authenticator;
