--! Previous: sha1:943554c48f82575631a46be362dc31479aad5101
--! Hash: sha1:509462de5ecaac428efa2c40a1620ee819ed14b8
--! Message: sessions

-- Sessions: what each sign-in opened, and the tokens that keep one open.

create domain app_public.session_device as text;
create domain app_public.refresh_token_proof as text
  constraint refresh_token_proof_hashed check (value ~ '^[0-9a-f]{64}$');

alter type app_public.authentication
  add attribute session_id uuid,
  add attribute refresh_token text,
  add attribute refresh_expires_at timestamptz;

create type app_public.session as (
  id uuid,
  device text,
  network text,
  last_network text,
  created_at timestamptz,
  last_used_at timestamptz,
  expires_at timestamptz,
  is_current boolean,
  is_refreshable boolean
);

create table app_private.sessions (
  id uuid primary key default uuidv7(),
  user_id uuid not null references app_public.users on delete cascade,
  device text constraint sessions_device check (length(device) between 1 and 200),
  network text,
  last_network text,
  is_refreshable boolean not null default false,
  is_adopted boolean not null default false,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  expires_at timestamptz not null,
  ended_at timestamptz
);
create index sessions_user on app_private.sessions (user_id);
create index sessions_expires_at on app_private.sessions (expires_at);
create index sessions_ended_at on app_private.sessions (ended_at) where ended_at is not null;
alter table app_private.sessions enable row level security;

create table app_private.refresh_tokens (
  token_sha256 bytea primary key,
  session_id uuid not null references app_private.sessions on delete cascade,
  successor_sha256 bytea,
  issued_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz
);
create index refresh_tokens_session on app_private.refresh_tokens (session_id);
alter table app_private.refresh_tokens enable row level security;

-- Sessions that outlived a change of the password have rows of their own from now on.
insert into app_private.sessions (id, user_id, expires_at, is_adopted)
  select distinct on (p.kept_session) p.kept_session, p.user_id, now() + interval '30 days', true
  from app_private.user_passwords p where p.kept_session is not null;
-- Nothing but functions that are replaced with this migration reads them.
-- squawk-ignore ban-drop-column
alter table app_private.user_passwords drop column kept_session, drop column kept_epoch;
