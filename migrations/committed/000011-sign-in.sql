--! Previous: sha1:d2c615f11058a1089b45235ac115b623fcdbfd46
--! Hash: sha1:71082a585b50d699d68bc0e4c308054297e9f44c
--! Message: sign-in

-- Failed sign-ins and one-time passwords.

-- What stands in for a password. The checks fail closed: a password that nobody has transformed is refused.
create domain app_public.new_password as text
  constraint new_password_hashed check (value ~
    '^\$argon2id\$v=19\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$');

create domain app_public.password_proof as text
  constraint password_proof_hashed check (value = '' or value ~ '^\$argon2id\$');

create domain app_public.login_token as jsonb;

create type app_public.authentication as (
  token app_public.login_token,
  token_type text,
  expires_at timestamptz,
  user_id uuid
);

-- Tries: the moments of the last ones under a key, in one row, so that parallel tries wait for each other and count.
create table app_private.tries (
  key text primary key,
  moments timestamptz[] not null default '{}',
  last_at timestamptz not null default now()
);
create index tries_last_at on app_private.tries (last_at);
alter table app_private.tries enable row level security;

create table app_private.user_otps (
  user_id uuid primary key references app_public.users on delete cascade,
  code_sha256 bytea not null unique,
  expires_at timestamptz not null
);
create index user_otps_expires_at on app_private.user_otps (expires_at);
alter table app_private.user_otps enable row level security;
