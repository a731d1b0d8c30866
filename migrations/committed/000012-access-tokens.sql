--! Previous: sha1:71082a585b50d699d68bc0e4c308054297e9f44c
--! Hash: sha1:f83a4c9e48ed8e9e165cdb083a067f7caddb2622
--! Message: access-tokens

-- Long-lived tokens of users for programs.

select app_private.create_enum('access_token_status', 'Whether an access token works.', array[
  ['ACTIVE', 'It works.'], ['EXPIRED', 'Its time is over.'], ['REVOKED', 'It was revoked.']]);

create table app_public.access_tokens (
  id uuid primary key default uuidv7(),
  user_id uuid not null references app_public.users on delete cascade,
  organization_id uuid references app_public.organizations on delete cascade,
  parent_id uuid references app_public.access_tokens on delete cascade,
  name app_public.short_text not null,
  token text constraint access_tokens_token_is_not_kept check (token is null),
  prefix text not null,
  scopes text[] not null default '{}',
  read_only boolean not null default false,
  expires_at timestamptz,
  revoked_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1
);
create index access_tokens_user on app_public.access_tokens (user_id, id);
create index access_tokens_organization on app_public.access_tokens (organization_id);
create index access_tokens_parent on app_public.access_tokens (parent_id);
alter table app_public.access_tokens enable row level security;

create table app_private.access_token_secrets (
  token_id uuid primary key references app_public.access_tokens on delete cascade,
  token_sha256 bytea not null unique,
  last_used_at timestamptz
);
alter table app_private.access_token_secrets enable row level security;
