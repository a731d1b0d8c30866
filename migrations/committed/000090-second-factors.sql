--! Previous: sha1:acb57c3afccbc1ccdd0d4ae82d9342dcef2b54e0
--! Hash: sha1:6267807a52cee91f5965ce2574c6dd8378314d29
--! Message: second-factors

-- A second factor for signing in: one-time codes by RFC 6238, and recovery codes.

create domain app_public.second_factor_code as text
  constraint second_factor_code_proved check (value ~ '^(step:[0-9]{1,12}:[0-9a-f]{64}|code:[0-9a-f]{64}|wrong)$');
create domain app_public.fresh_totp_secret as jsonb;

create type app_public.second_factor as (enabled_at timestamptz, recovery_codes_left int);
create type app_public.second_factor_enrollment as (secret text, uri text, expires_at timestamptz);
create type app_public.recovery_codes as (codes text[]);

create table app_private.second_factors (
  user_id uuid primary key references app_public.users on delete cascade,
  sealed text not null,
  last_step bigint,
  confirmed_at timestamptz,
  inserted_at timestamptz not null default now()
);
create index second_factors_open on app_private.second_factors (inserted_at) where confirmed_at is null;
alter table app_private.second_factors enable row level security;

create table app_private.recovery_codes (
  code_sha256 bytea primary key,
  user_id uuid not null references app_public.users on delete cascade,
  used_at timestamptz
);
create index recovery_codes_user on app_private.recovery_codes (user_id);
alter table app_private.recovery_codes enable row level security;

-- Its texts were bound to their rows from the first one on.
insert into app_private.bound_columns (relation, name, since)
  values ('app_private.second_factors', 'sealed', '-infinity');
