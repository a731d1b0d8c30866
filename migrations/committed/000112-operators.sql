--! Previous: sha1:6471a1f50ceaa2429bf8e44282c1595b3756e0df
--! Hash: sha1:e0b1d8e640b667f644fcf240bb60f30a9e278c74
--! Message: operators

-- Who looks after the service, and what they do with its jobs.

create table app_private.operators (
  user_id uuid primary key references app_public.users on delete cascade,
  granted_at timestamptz not null default now()
);
alter table app_private.operators enable row level security;

create table app_private.paused_tasks (
  task text primary key,
  reason app_public.long_text,
  paused_by_id uuid references app_public.users on delete set null,
  paused_at timestamptz not null default now()
);
create index paused_tasks_paused_by on app_private.paused_tasks (paused_by_id);
alter table app_private.paused_tasks enable row level security;

select app_private.create_enum('job_state', 'What becomes of a job next.', array[
  ['DUE', 'It runs as soon as a worker has time.'], ['SCHEDULED', 'It runs at runAt, such as a retry.'],
  ['PAUSED', 'It does not run until its task is resumed.'], ['RUNNING', 'A worker runs it.'],
  ['FAILED', 'It failed for the last time.'],
  ['SET_ASIDE', 'It is not run again by itself, because the process died twice during it.']]);

create type app_public.job as (
  id text, task text, state app_public.job_state, arguments jsonb, attempts int, max_attempts int, run_at timestamptz,
  started_at timestamptz, created_at timestamptz, updated_at timestamptz, last_error text, queue text, request_id text,
  organization_id uuid
);
create type app_public.job_task as (
  name text, due int, scheduled int, failed int, oldest_due_at timestamptz, last_scheduled_at timestamptz,
  paused_at timestamptz, pause_reason text
);
create type app_public.changed_jobs as (changed int, more boolean);
