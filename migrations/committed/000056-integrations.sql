--! Previous: sha1:a497e5ccd817f7dddf89da001bb404790eeae750
--! Hash: sha1:f29e66455a4ed32d334bfb8ab81e1579bed26b21
--! Message: integrations

-- Applications, and who has connected them.

select app_private.create_enum('integration_status', 'Whether an integration works.', array[
  ['PENDING', 'Not connected yet; statusReason says what is missing.'], ['ENABLED', 'It works.'],
  ['DISABLED', 'Switched off by hand.'],
  ['ERROR', 'It failed again and again, or is not let in any more; refresh it once that is put right.']]);
select app_private.create_enum('integration_category', 'What an application is for.', array[
  ['EMAIL', 'Mail.'], ['CALENDAR', 'Appointments.'], ['E_SIGNATURE', 'Signing.'], ['PAYMENTS', 'Payments.'],
  ['ADVERTISING', 'Advertising.'], ['TELEPHONY', 'Phone calls.'], ['MESSAGING', 'Messages.'], ['ACCOUNTING', 'Books.'],
  ['ERP', 'Resources of the company.'], ['CRM', 'Customers.'], ['MLS', 'Listings.'], ['ANALYTICS', 'Figures.'],
  ['STORAGE', 'Files.'], ['CONSTRUCTION', 'Building.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('integration_scope', 'Whom an application is connected with.', array[
  ['ORGANIZATION', 'An organization, by those who administer it.'], ['USER', 'A user, by themselves.']]);
select app_private.create_enum('integration_auth_type', 'How an application is let in.', array[
  ['OAUTH2', 'By consent: OAuth 2, authorization code with PKCE.'], ['API_KEY', 'By a key.'],
  ['BASIC', 'By user name and password.'], ['WEBHOOK', 'By the signature of what it is sent.'],
  ['NONE', 'By nothing, or an address that nobody guesses.']]);

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
  connected_by text
);
alter table app_public.integration_apps enable row level security;

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

create table app_public.organization_integrations (
  like app_private.integration including all,
  organization_id uuid not null references app_public.organizations on delete cascade,
  connected_by_id uuid references app_public.users on delete set null,
  foreign key (app_id) references app_public.integration_apps,
  constraint organization_integrations_config_object check (jsonb_typeof(config) = 'object')
);
create index organization_integrations_organization on app_public.organization_integrations (organization_id, id)
  where deleted_at is null;
create index organization_integrations_connected_by on app_public.organization_integrations (connected_by_id);
create index organization_integrations_app on app_public.organization_integrations (app_id);
create unique index organization_integrations_request on app_public.organization_integrations (request_key);
alter table app_public.organization_integrations enable row level security;

create table app_public.user_integrations (
  like app_private.integration including all,
  user_id uuid not null references app_public.users on delete cascade,
  foreign key (app_id) references app_public.integration_apps,
  constraint user_integrations_config_object check (jsonb_typeof(config) = 'object')
);
create index user_integrations_user on app_public.user_integrations (user_id, id) where deleted_at is null;
create index user_integrations_app on app_public.user_integrations (app_id);
create unique index user_integrations_request on app_public.user_integrations (request_key);
alter table app_public.user_integrations enable row level security;

create table app_private.integration_secrets (
  integration_id uuid primary key,
  scope app_public.integration_scope not null,
  sealed text,
  lookup bytea unique,
  expires_at timestamptz,
  failure_count int not null default 0,
  next_refresh_at timestamptz
);
create index integration_secrets_next_refresh_at on app_private.integration_secrets (next_refresh_at)
  where next_refresh_at is not null;
alter table app_private.integration_secrets enable row level security;

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

create domain app_public.integration_credentials as jsonb;

create domain app_public.integration_attempt as jsonb;
