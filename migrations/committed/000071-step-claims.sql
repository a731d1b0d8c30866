--! Previous: sha1:1e1640792ed4e716697573588fb05bce3d16839a
--! Hash: sha1:3e0cdef5d9be5d576a9ac0aad7db61b88ec6b14a
--! Message: step-claims

-- Whoever computes holds what it computes for, rather than a transaction.
alter table app_public.workflow_executions add column deaths smallint not null default 0;
alter table app_public.workflow_step_runs add column error_code text;
alter table app_private.workflow_streams add column holder integer, add column held_until timestamptz;
alter table app_private.workflow_runs add column holder integer, add column held_until timestamptz;

-- Jobs during which their process died.
create table app_private.job_deaths (
  id uuid primary key default uuidv7(),
  identity text not null unique,
  job_id bigint not null,
  key text,
  task text not null,
  organization_id uuid,
  deaths smallint not null default 1,
  set_aside_at timestamptz,
  last_died_at timestamptz not null default now()
);
alter table app_private.job_deaths enable row level security;
