--! Previous: sha1:97663fbdd0142f815a69bcea6fd6ae772b08c057
--! Hash: sha1:dd9337e891c03d33d00230137f773fdb6a89b905
--! Message: email-changes

-- Changes of the e-mail address of an account, which both addresses confirm.

create type app_public.email_change as (
  email app_public.email_address,
  is_confirmed boolean,
  is_former_confirmed boolean,
  requested_at timestamptz,
  expires_at timestamptz
);

create table app_private.email_changes (
  user_id uuid primary key references app_public.users on delete cascade,
  email text not null constraint email_changes_email_lower check (email = lower(email)),
  code_sha256 bytea unique,
  confirmed_at timestamptz,
  former_code_sha256 bytea unique,
  former_confirmed_at timestamptz,
  requested_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '1 day'
);
create index email_changes_expires_at on app_private.email_changes (expires_at);
alter table app_private.email_changes enable row level security;

create table app_private.email_change_stops (
  token_sha256 bytea primary key,
  user_id uuid not null references app_public.users on delete cascade,
  expires_at timestamptz not null
);
create index email_change_stops_user on app_private.email_change_stops (user_id);
create index email_change_stops_expires_at on app_private.email_change_stops (expires_at);
alter table app_private.email_change_stops enable row level security;

create table app_private.former_emails (
  user_id uuid not null references app_public.users on delete cascade,
  email text not null constraint former_emails_email_lower check (email = lower(email)),
  until timestamptz not null,
  primary key (user_id, email)
);
create index former_emails_until on app_private.former_emails (until);
alter table app_private.former_emails enable row level security;
