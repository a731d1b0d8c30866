--! Previous: sha1:6f0fd483f73606f3d4324884176a0c61bd81bfe6
--! Hash: sha1:7b3d8fa62f98d92257cc16662d2c5ccd060cb550
--! Message: notifications

-- Which events tell whom by mail, and the mails.

-- No change of the members: they have not been asked.
create table app_private.notification_kinds (
  kind text primary key,
  place int not null unique,
  wait interval not null default '1 minute',
  name text not null,
  heading text not null
);
alter table app_private.notification_kinds enable row level security;

create table app_private.notification_rules (
  id int primary key generated always as identity,
  kind text not null references app_private.notification_kinds,
  events text[],
  changed text,
  wanted jsonb[],
  channels text[],
  permission text not null,
  audience text[] not null,
  else_team boolean not null default false,
  actor_too boolean not null default false,
  line text not null,
  details text,
  quote text
);
create index notification_rules_kind on app_private.notification_rules (kind);
alter table app_private.notification_rules enable row level security;

-- What waits to be sent.
create table app_private.notification_mails (
  id uuid primary key default uuidv7(),
  member_id uuid not null references app_public.organization_user_connections on delete cascade,
  kind text not null references app_private.notification_kinds,
  digest_on date,
  due_at timestamptz not null,
  closed_at timestamptz
);
create unique index notification_mails_open on app_private.notification_mails (member_id, kind) where closed_at is null
  and digest_on is null;
create index notification_mails_member on app_private.notification_mails (member_id);
create index notification_mails_kind on app_private.notification_mails (kind);
alter table app_private.notification_mails enable row level security;

create table app_private.notification_items (
  mail_id uuid not null references app_private.notification_mails on delete cascade,
  place bigint generated always as identity,
  rule_id int not null,
  event_id uuid,
  subject_type text not null,
  subject_id uuid not null,
  data jsonb,
  primary key (mail_id, place)
);
alter table app_private.notification_items enable row level security;

create table app_private.notification_progress (
  organization_id uuid primary key references app_public.organizations on delete cascade,
  last_sequence bigint not null
);
alter table app_private.notification_progress enable row level security;

create table app_private.team_messages (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  project_id uuid not null,
  lead_id uuid,
  data jsonb not null
);
create index team_messages_organization on app_private.team_messages (organization_id);
alter table app_private.team_messages enable row level security;

-- The tasks of the day: one mail a morning for each member who has any that are due.
create table app_private.task_digests (
  member_id uuid primary key references app_public.organization_user_connections on delete cascade,
  last_on date not null
);
alter table app_private.task_digests enable row level security;
