--! Previous: sha1:b13ca675bb136b92aef63f3bfebe2f726e51222a
--! Hash: sha1:1fbcf41cf2cf876e3ed5f0da8c0dd6c06107abc7
--! Message: users

-- People, their identities and passwords.

select app_private.create_enum('user_status', 'Whether a user can sign in.', array[
  ['INVITED', 'Has an invitation, but no account yet.'], ['ACTIVE', 'Can sign in.'],
  ['SUSPENDED', 'Cannot sign in for now.'], ['DEACTIVATED', 'Has left.']]);

create table app_public.users (
  id uuid primary key default uuidv7(),
  slug app_public.slug not null,
  first_name app_public.short_text,
  last_name app_public.short_text,
  title app_public.short_text,
  phone app_public.phone_number constraint users_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  time_zone app_public.time_zone not null default 'UTC',
  language app_public.language_code not null default 'en',
  status app_public.user_status not null default 'ACTIVE',
  email_verified_at timestamptz,
  last_login_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  password_changed_at timestamptz,
  avatar_url app_public.url
);
create unique index users_slug on app_public.users (slug);
alter table app_public.users enable row level security;

create table app_hidden.user_identities (
  user_id uuid primary key references app_public.users on delete cascade,
  email app_public.email_address not null constraint user_identities_email_lower check (email = lower(email)),
  username app_public.short_text constraint user_identities_username_format check (username ~
    '^[A-Za-z0-9][A-Za-z0-9._-]{1,49}$'),
  constraint user_identities_email unique (email)
);
create unique index user_identities_username on app_hidden.user_identities (lower(username));
alter table app_hidden.user_identities enable row level security;

create table app_private.user_passwords (
  user_id uuid primary key references app_public.users on delete cascade,
  password_hash text not null,
  session_epoch int not null default 1,
  changed_at timestamptz not null default now()
);
alter table app_private.user_passwords enable row level security;
