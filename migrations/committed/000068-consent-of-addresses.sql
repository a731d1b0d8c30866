--! Previous: sha1:e1f06c35d180ff65d93125aa6132841eac433c4b
--! Hash: sha1:6ab34688b2280322e45e5799b992d3df5e3407e8
--! Message: consent-of-addresses

-- Links that work without signing in, and the consent of whoever owns an address.

create table app_private.link_keys (
  id uuid primary key default uuidv7(),
  key bytea not null default public.gen_random_bytes(32) unique constraint link_keys_length check (length(key) >= 32),
  signs boolean not null default true,
  inserted_at timestamptz not null default now()
);
alter table app_private.link_keys enable row level security;

alter table app_public.project_contact_messages
  add column agent app_public.agent_input,
  add column follow boolean,
  add column merged_at timestamptz,
  add column confirmed_at timestamptz;

create table app_private.consent_requests (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  email text not null constraint consent_requests_email_lower check (email = lower(email)),
  purpose text not null constraint consent_requests_purpose check (purpose in ('NEWS', 'MAILBOX', 'RECIPIENT')),
  message_id uuid references app_public.project_contact_messages on delete cascade,
  token_sha256 bytea unique,
  expires_at timestamptz not null default now() + interval '7 days',
  confirmed_at timestamptz,
  inserted_at timestamptz not null default now(),
  constraint consent_requests_message check ((purpose = 'NEWS') = (message_id is not null))
);
create unique index consent_requests_once on app_private.consent_requests (organization_id, email, purpose)
  where message_id is null;
create index consent_requests_organization on app_private.consent_requests (organization_id);
create index consent_requests_message on app_private.consent_requests (message_id) where message_id is not null;
create index consent_requests_expires_at on app_private.consent_requests (expires_at) where confirmed_at is null;
alter table app_private.consent_requests enable row level security;

-- What was taken over before, as it was until now.
update app_public.project_contact_messages m set merged_at = m.inserted_at;
