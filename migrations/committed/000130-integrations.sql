--! Previous: sha1:368cfe340efb4f6b4d418b9c0d9ee689a8374d62
--! Hash: sha1:88d87c8e85dc3605b244ab5a478e29bef5baae08
--! Message: integrations

-- Connected applications. An application is a row of the catalogue and a file of src/integrations/apps, named by its key. An
-- integration connects one of them with an organization or with a user:
--
--   PENDING → ENABLED ⇄ DISABLED
--   PENDING, ENABLED → ERROR, where it failed again and again; → ENABLED by a refresh that succeeds
--
-- A refresh that succeeds enables, also what was disabled; one that fails keeps the state and says why in lastError. What an
-- application knows them by is sealed with a key that the database never sees, and never shown again.

select app_private.create_enum('integration_status', 'Whether an integration works.', array[
  ['PENDING', 'Not connected yet; statusReason says what is missing.'], ['ENABLED', 'It works.'], ['DISABLED', 'Switched off by hand.'],
  ['ERROR', 'It failed again and again, or is not let in any more; refresh it once that is put right.']]);
select app_private.create_enum('integration_category', 'What an application is for.', array[
  ['EMAIL', 'Mail.'], ['CALENDAR', 'Appointments.'], ['E_SIGNATURE', 'Signing.'], ['PAYMENTS', 'Payments.'], ['ADVERTISING', 'Advertising.'],
  ['TELEPHONY', 'Phone calls.'], ['MESSAGING', 'Messages.'], ['ACCOUNTING', 'Books.'], ['ERP', 'Resources of the company.'], ['CRM', 'Customers.'],
  ['MLS', 'Listings.'], ['ANALYTICS', 'Figures.'], ['STORAGE', 'Files.'], ['CONSTRUCTION', 'Building.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('integration_scope', 'Whom an application is connected with.', array[
  ['ORGANIZATION', 'An organization, by those who administer it.'], ['USER', 'A user, by themselves.']]);
select app_private.create_enum('integration_auth_type', 'How an application is let in.', array[
  ['OAUTH2', 'By consent: OAuth 2, authorization code with PKCE.'], ['API_KEY', 'By a key.'], ['BASIC', 'By user name and password.'],
  ['WEBHOOK', 'By the signature of what it is sent.'], ['NONE', 'By nothing, or an address that nobody guesses.']]);

create table app_public.integration_apps (
  id uuid primary key default uuidv7(),
  key text not null unique check (key ~ '^[a-z][a-z0-9_]{1,60}$'),
  name app_public.short_text not null,
  description app_public.long_text,
  category app_public.integration_category not null,
  scope app_public.integration_scope not null,
  icon_url app_public.url,
  auth_type app_public.integration_auth_type not null,
  oauth_scopes text[] not null default '{}',
  config_schema jsonb,
  credentials_schema jsonb,
  documentation_url app_public.url,
  available boolean not null,
  connected_by regproc
);
alter table app_public.integration_apps enable row level security;
create policy members on app_public.integration_apps for select to plat_user using (true);
grant select on app_public.integration_apps to plat_user, plat_anonymous, plat_worker;
comment on table app_public.integration_apps is E'@behavior -*:list -*:connection\n\nAn application that can be connected.';
comment on column app_public.integration_apps.key is 'What it is named by at creation.';
comment on column app_public.integration_apps.name is 'Its name.';
comment on column app_public.integration_apps.description is 'What it does.';
comment on column app_public.integration_apps.category is 'What it is for.';
comment on column app_public.integration_apps.scope is 'Whether organizations or users connect it.';
comment on column app_public.integration_apps.icon_url is 'Its picture.';
comment on column app_public.integration_apps.auth_type is 'How it is let in.';
comment on column app_public.integration_apps.oauth_scopes is 'What the user is asked to consent to.';
comment on column app_public.integration_apps.config_schema is 'What its config is made of, as JSON Schema.';
comment on column app_public.integration_apps.credentials_schema is 'What its credentials are made of, as JSON Schema; null where it takes none.';
comment on column app_public.integration_apps.documentation_url is 'Where to read more.';
comment on column app_public.integration_apps.available is 'Whether it can be connected: one with OAuth 2 can as soon as the operator has registered the service there.';
comment on column app_public.integration_apps.connected_by is
  E'@behavior -*\n\nWhat else becomes of a connection in the database: a function of the integration''s id, status and what the file of the application gave.';

create table app_private.integration (
  id uuid primary key default uuidv7(),
  app_id uuid not null,
  name app_public.short_text not null,
  status app_public.integration_status not null default 'PENDING',
  status_reason text,
  config jsonb not null default '{}',
  external_account text,
  connected_at timestamptz,
  last_refreshed_at timestamptz,
  last_sync_at timestamptz,
  last_error text,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  request_key text
);
alter table app_private.integration enable row level security;
comment on table app_private.integration is 'The columns that the integrations of organizations and of users share.';

create table app_public.organization_integrations (
  like app_private.integration including all,
  organization_id uuid not null references app_public.organizations on delete cascade,
  connected_by_id uuid references app_public.users on delete set null,
  foreign key (app_id) references app_public.integration_apps
);
create table app_public.user_integrations (
  like app_private.integration including all,
  user_id uuid not null references app_public.users on delete cascade,
  foreign key (app_id) references app_public.integration_apps
);
create index organization_integrations_organization on app_public.organization_integrations (organization_id, id) where deleted_at is null;
create index organization_integrations_connected_by on app_public.organization_integrations (connected_by_id);
create index organization_integrations_app on app_public.organization_integrations (app_id);
create unique index organization_integrations_request on app_public.organization_integrations (request_key);
create index user_integrations_user on app_public.user_integrations (user_id, id) where deleted_at is null;
create index user_integrations_app on app_public.user_integrations (app_id);
create unique index user_integrations_request on app_public.user_integrations (request_key);

create function app_hidden.viewer_integrator() returns uuid
language sql stable as $$
  select case when app_hidden.setting('organization_id') is null and app_hidden.setting('scopes') is null then app_public.current_user_id() end
$$;
comment on function app_hidden.viewer_integrator() is 'The viewer as somebody with integrations of their own; null for a token of one organization, or with scopes.';

alter table app_public.organization_integrations enable row level security;
alter table app_public.user_integrations enable row level security;
create policy admins on app_public.organization_integrations for select to plat_user
  using (deleted_at is null and organization_id = any (array(select app_hidden.viewer_organizations('org.admin'))));
create policy own on app_public.user_integrations for select to plat_user
  using (deleted_at is null and user_id = (select app_hidden.viewer_integrator()));
create policy worker on app_public.organization_integrations for select to plat_worker using (true);
create policy worker on app_public.user_integrations for select to plat_worker using (true);
grant select on app_public.organization_integrations, app_public.user_integrations to plat_user, plat_anonymous, plat_worker;

create table app_private.integration_secrets (
  integration_id uuid primary key,
  scope app_public.integration_scope not null,
  sealed text,
  lookup bytea unique,
  expires_at timestamptz,
  failure_count int not null default 0,
  next_refresh_at timestamptz
);
create index integration_secrets_next_refresh_at on app_private.integration_secrets (next_refresh_at) where next_refresh_at is not null;
alter table app_private.integration_secrets enable row level security;
comment on table app_private.integration_secrets is
  'What integrations are let in by, sealed with a key that the database never sees; lookup is the SHA-256 of what a caller names it by.';

create table app_private.oauth_attempts (
  id uuid primary key default uuidv7(),
  integration_id uuid not null,
  scope app_public.integration_scope not null,
  user_id uuid not null references app_public.users on delete cascade,
  sealed_verifier text not null,
  expires_at timestamptz not null default now() + interval '15 minutes'
);
create index oauth_attempts_user on app_private.oauth_attempts (user_id);
create index oauth_attempts_integration on app_private.oauth_attempts (integration_id);
alter table app_private.oauth_attempts enable row level security;
comment on table app_private.oauth_attempts is 'Consents that were asked for: each is taken once, by the address that the provider leads back to.';

comment on table app_public.organization_integrations is 'An application that an organization has connected.';
comment on table app_public.user_integrations is 'An application that a user has connected.';
do $$
declare
  name text;
begin
  foreach name in array array['organization_integrations', 'user_integrations'] loop
    execute format('
      comment on column app_public.%1$I.app_id is %2$L;
      comment on column app_public.%1$I.name is ''What it is called.'';
      comment on column app_public.%1$I.status is ''Whether it works.'';
      comment on column app_public.%1$I.status_reason is ''Why it has this status.'';
      comment on column app_public.%1$I.config is %3$L;
      comment on column app_public.%1$I.external_account is ''What it is connected with, as the application calls it.'';
      comment on column app_public.%1$I.connected_at is ''When it was connected first.'';
      comment on column app_public.%1$I.last_refreshed_at is %4$L;
      comment on column app_public.%1$I.last_sync_at is %5$L;
      comment on column app_public.%1$I.last_error is %6$L;
      comment on column app_public.%1$I.request_key is %7$L;
      comment on constraint %8$I on app_public.%1$I is %9$L;
      alter table app_public.%1$I add constraint %10$I check (jsonb_typeof(config) = ''object'')',
      name, E'@behavior -*\n\nThe application.',
      'How it is set up, without anything secret. What is shown once, such as authorizationUrl, secret or feedUrl, is in the answer of the operation only.',
      E'@secret\n\nWhen the application let it in last.', E'@secret\n\nWhen something went through it last.',
      E'@secret\n\nWhat went wrong last; null once it works again.', E'@secret\n@behavior -*\n\nThe request that made it.',
      name || '_app_id_fkey', E'@fieldName app\n@backwardBehavior -*\n\nThe application.', name || '_config_object');
  end loop;
end $$;
comment on column app_public.organization_integrations.connected_by_id is E'@behavior -*\n\nWho connected it.';
comment on constraint organization_integrations_connected_by_id_fkey on app_public.organization_integrations is
  E'@fieldName connectedBy\n@backwardBehavior -*\n\nWho connected it.';
comment on constraint organization_integrations_organization_id_fkey on app_public.organization_integrations is
  E'@parent\n@fieldName organization\n@foreignFieldName integrations\n@backwardPermission org.admin\n@backwardDescription The applications that it has connected; null without the permission org.admin.\n\nThe organization.';
comment on constraint user_integrations_user_id_fkey on app_public.user_integrations is E'@fieldName user\n@backwardBehavior -*\n\nWhose it is.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('organization_integration', 'status', 'ENABLED', 'enabled'), ('organization_integration', 'status', 'DISABLED', 'disabled'), ('organization_integration', 'status', 'ERROR', 'failed'),
  ('user_integration', 'status', 'ENABLED', 'enabled'), ('user_integration', 'status', 'DISABLED', 'disabled'), ('user_integration', 'status', 'ERROR', 'failed');
select app_private.make_record('organization_integrations', 'organization_integration', 'org.admin');
select app_private.make_record('user_integrations', 'user_integration');
select app_private.make_state_machine(t.name, t.subject,
  steps => array[['PENDING', 'ENABLED', 'service'], ['PENDING', 'ERROR', 'service'], ['PENDING', 'DISABLED', 'hand'], ['ENABLED', 'DISABLED', 'hand'], ['ENABLED', 'ERROR', 'service'],
    ['ERROR', 'ENABLED', 'service'], ['ERROR', 'DISABLED', 'hand'], ['DISABLED', 'ENABLED', 'service']],
  initial => array['PENDING'])
from (values ('organization_integrations', 'organization_integration'), ('user_integrations', 'user_integration')) t (name, subject);
-- That something went through is no change of the record: whoever read it may still change it.
do $$
declare
  name text;
  columns constant text := 'row(%1$s.app_id, %1$s.name, %1$s.status, %1$s.status_reason, %1$s.config, %1$s.external_account, %1$s.connected_at, %1$s.deleted_at)';
begin
  foreach name in array array['organization_integrations', 'user_integrations'] loop
    execute format('create or replace trigger _900_touch before update on app_public.%I for each row when (%s is distinct from %s)
      execute function app_private.tg__touch()', name, format(columns, 'old'), format(columns, 'new'));
  end loop;
end $$;

create function app_public.organization_integrations_allowed_transitions(i app_public.organization_integrations) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('organization_integration', to_jsonb(i)) $$;
create function app_public.user_integrations_allowed_transitions(i app_public.user_integrations) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('user_integration', to_jsonb(i)) $$;
comment on function app_public.organization_integrations_allowed_transitions is E'@notNull\n\nThe steps that the integration can take from its status.';
comment on function app_public.user_integrations_allowed_transitions is E'@notNull\n\nThe steps that the integration can take from its status.';

create function app_public.users_integrations(u app_public.users) returns setof app_public.user_integrations
language sql stable rows 5 as $$
  select i.* from app_public.user_integrations i where i.user_id = u.id and i.deleted_at is null order by i.id desc
$$;
comment on function app_public.users_integrations is E'@ordered\n\nThe applications that they have connected, latest first; each sees their own only.';

create function app_public.integration_apps_installed(a app_public.integration_apps) returns boolean
language sql stable as $$
  select case a.scope when 'USER' then exists (select from app_public.user_integrations i where i.app_id = a.id and i.user_id = (select app_hidden.viewer_integrator()))
    else exists (select from app_public.organization_integrations i where i.app_id = a.id
      and i.organization_id = any (array(select app_hidden.viewer_organizations('org.admin')))) end
$$;
comment on function app_public.integration_apps_installed is
  E'@notNull\n\nWhether the viewer has connected it, or an organization that the viewer administers.';

create function app_public.organization_integration_apps() returns setof app_public.integration_apps
language sql stable rows 20 as $$ select a.* from app_public.integration_apps a where a.scope = 'ORGANIZATION' order by a.name, a.id $$;
create function app_public.user_integration_apps() returns setof app_public.integration_apps
language sql stable rows 20 as $$ select a.* from app_public.integration_apps a where a.scope = 'USER' order by a.name, a.id $$;
comment on function app_public.organization_integration_apps is E'@ordered\n\nThe applications that organizations can connect; none without signing in.';
comment on function app_public.user_integration_apps is E'@ordered\n\nThe applications that users can connect; none without signing in.';
grant execute on function app_public.organization_integrations_allowed_transitions, app_public.user_integrations_allowed_transitions, app_public.users_integrations,
  app_public.integration_apps_installed, app_public.organization_integration_apps, app_public.user_integration_apps to plat_user, plat_anonymous;

create function app_private.note_configured_apps(client text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_public.integration_apps a set available = client is not null where a.auth_type = 'OAUTH2' and a.available <> (client is not null)
$$;
comment on function app_private.note_configured_apps(text) is 'Whether the operator has registered the service where consents are given; null: nowhere.';
grant execute on function app_private.note_configured_apps to plat_authenticator;
