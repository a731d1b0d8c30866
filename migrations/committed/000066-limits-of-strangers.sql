--! Previous: sha1:80cb648a049c67638ed3254d0170ae8f5c3f17da
--! Hash: sha1:154eab7667c58a2761303ef9aeb91bfdfd3287d4
--! Message: limits-of-strangers

-- What strangers may do how often, and what an account that is not theirs answers.

create table app_private.limits (
  name text primary key,
  most int not null constraint limits_most check (most > 0),
  within interval not null constraint limits_within check (within > interval '0'),
  description text not null
);
alter table app_private.limits enable row level security;

create table app_private.limit_changes (
  name text primary key,
  most int not null constraint limit_changes_most check (most > 0),
  reason text not null,
  inserted_at timestamptz not null default now()
);
alter table app_private.limit_changes enable row level security;

create table app_private.user_networks (
  user_id uuid not null references app_public.users on delete cascade,
  network_sha256 bytea not null,
  last_at timestamptz not null default now(),
  primary key (user_id, network_sha256)
);
create index user_networks_last_at on app_private.user_networks (last_at);
alter table app_private.user_networks enable row level security;

create table app_hidden.duplicate_accounts (
  user_id uuid primary key references app_public.users on delete cascade,
  email app_public.email_address not null,
  username app_public.short_text constraint user_identities_username_format check (username ~
    '^[A-Za-z0-9][A-Za-z0-9._-]{1,49}$'),
  inserted_at timestamptz not null default now()
);
create index duplicate_accounts_inserted_at on app_hidden.duplicate_accounts (inserted_at);
alter table app_hidden.duplicate_accounts enable row level security;

create table app_private.email_verifications (
  user_id uuid primary key references app_public.users on delete cascade,
  code_sha256 bytea not null unique,
  expires_at timestamptz not null
);
create index email_verifications_expires_at on app_private.email_verifications (expires_at);
alter table app_private.email_verifications enable row level security;
