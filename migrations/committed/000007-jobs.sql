--! Previous: sha1:8c61b09832404b2c233e58777f69850bc8f30f16
--! Hash: sha1:d8d58a5dde180ec9be7edc06df6e29a04e13ca45
--! Message: jobs

-- What background work keeps: deadlines, scheduled events, retention, workers, sealed columns; and which objects the
-- database has.

create table app_private.schema_objects (
  hash text primary key,
  applied_at timestamptz not null default clock_timestamp()
);
alter table app_private.schema_objects enable row level security;

create table app_hidden.deadlines (
  kind text not null,
  record_id uuid not null,
  due_at timestamptz not null,
  failures int not null default 0,
  primary key (kind, record_id)
);
create index deadlines_due on app_hidden.deadlines (due_at);
alter table app_hidden.deadlines enable row level security;

create table app_private.deadline_kinds (
  kind text primary key,
  settle text not null
);
alter table app_private.deadline_kinds enable row level security;

create table app_private.workers (
  id text primary key,
  started_at timestamptz not null default now()
);
alter table app_private.workers enable row level security;

create table app_private.retention (
  relation text primary key,
  over text not null
);
alter table app_private.retention enable row level security;

create table app_private.clock_steps (
  subject text not null,
  name text not null,
  at text not null,
  near text not null,
  pending text not null,
  changes jsonb,
  told_at timestamptz not null default now(),
  told_id uuid not null default 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  primary key (subject, name)
);
alter table app_private.clock_steps enable row level security;

create table app_private.sealed_columns (
  relation text,
  name text,
  key text not null,
  primary key (relation, name)
);
alter table app_private.sealed_columns enable row level security;
