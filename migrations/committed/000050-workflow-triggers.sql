--! Previous: sha1:25241669e1f8ee8a3c0a7aca41b2b14267b16acb
--! Hash: sha1:6f0fd483f73606f3d4324884176a0c61bd81bfe6
--! Message: workflow-triggers

-- What starts workflows, and how far each stream of events was read.

create table app_private.workflow_streams (
  organization_id uuid primary key references app_public.organizations on delete cascade,
  last_sequence bigint not null,
  minute timestamptz not null default date_trunc('minute', now()),
  started int not null default 0
);
alter table app_private.workflow_streams enable row level security;

create table app_private.workflow_triggers (
  workflow_id uuid primary key references app_public.workflows on delete cascade,
  organization_id uuid not null references app_public.organizations on delete cascade,
  from_sequence bigint not null,
  next_run_at timestamptz,
  error text
);
create index workflow_triggers_organization on app_private.workflow_triggers (organization_id);
alter table app_private.workflow_triggers enable row level security;

create table app_private.workflow_runs (
  id uuid primary key default uuidv7(),
  workflow_id uuid not null references app_public.workflows on delete cascade
);
create index workflow_runs_workflow on app_private.workflow_runs (workflow_id);
alter table app_private.workflow_runs enable row level security;

create table app_private.workflow_run_subjects (
  run_id uuid not null references app_private.workflow_runs on delete cascade,
  subject_id uuid not null,
  primary key (run_id, subject_id)
);
alter table app_private.workflow_run_subjects enable row level security;
