--! Previous: sha1:9bad63e4a694066890d5019853c9b35ab140bcbf
--! Hash: sha1:25241669e1f8ee8a3c0a7aca41b2b14267b16acb
--! Message: workflow-engine

-- What executions wait for.

create table app_private.workflow_waits (
  execution_id uuid not null references app_public.workflow_executions on delete cascade,
  about uuid not null,
  event text not null,
  primary key (execution_id, about)
);
create index workflow_waits_about on app_private.workflow_waits (about);
alter table app_private.workflow_waits enable row level security;

create table app_private.workflow_wakeups (
  execution_id uuid not null references app_public.workflow_executions on delete cascade,
  event_id uuid not null,
  primary key (execution_id, event_id)
);
alter table app_private.workflow_wakeups enable row level security;

create type app_private.step_work as (execution_id uuid, attempt int, input jsonb);

create type app_private.step_outcome as (execution_id uuid, status text, output jsonb, error text, go_to int,
  until timestamptz);
