--! Previous: sha1:87614cd3f4cf0748d764c9412ccf2ee7988be6de
--! Hash: sha1:f22f3772a21751d3bcf3b504d35d985447d1a232
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
