--! Previous: sha1:295f4acffb2abb3a6ea538eea9ed0bf8776b4e6d
--! Hash: sha1:a236ad3713f81f9ea699dca08b94c97e2fff1aaa
--! Message: workflow-executions

-- Executions of workflows and what became of each step.

select app_private.create_enum('workflow_execution_status', 'How far an execution of a workflow is.', array[
  ['PENDING', 'Nothing is done yet.'], ['RUNNING', 'Some steps are done, or it waits.'],
  ['PAUSED', 'No further step is taken until it is resumed.'], ['COMPLETED', 'All steps are done.'],
  ['FAILED', 'A step failed, and the execution with it.'], ['CANCELLED', 'No further step is taken.']]);
select app_private.create_enum('step_run_status', 'What became of a step.', array[
  ['PENDING', 'Not begun.'], ['RUNNING', 'Under way, or waiting.'], ['SUCCEEDED', 'Done.'], ['FAILED', 'Not done.'],
  ['SKIPPED', 'Left out.'], ['CANCELLED', 'Given up with the execution.']]);

create table app_private.workflow_batches (
  id uuid primary key default uuidv7(),
  workflow_id uuid not null references app_public.workflows on delete cascade,
  started_by_id uuid references app_public.users on delete set null,
  filter jsonb,
  matched int not null default 0,
  started int not null default 0,
  inserted_at timestamptz not null default now()
);
create index workflow_batches_workflow on app_private.workflow_batches (workflow_id, id);
create index workflow_batches_started_by on app_private.workflow_batches (started_by_id);
alter table app_private.workflow_batches enable row level security;

create table app_public.workflow_executions (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid,
  workflow_id uuid not null,
  steps_revision int not null,
  reentry app_public.workflow_reentry not null,
  subject_type app_public.workflow_subject not null,
  subject_id uuid not null,
  lead_id uuid references app_public.leads on delete cascade,
  buyer_id uuid references app_public.buyers on delete cascade,
  batch_id uuid,
  depth int not null default 0,
  status app_public.workflow_execution_status not null default 'PENDING',
  trigger_type app_public.workflow_trigger_type not null,
  trigger_event_id uuid references app_public.events,
  started_by_id uuid references app_public.users on delete set null,
  current_step int,
  attempts int not null default 0,
  scheduled_at timestamptz,
  holder int,
  held_until timestamptz,
  started_at timestamptz,
  paused_at timestamptz,
  paused_by_id uuid references app_public.users on delete set null,
  pause_reason app_public.long_text,
  resumed_at timestamptz,
  resume_at timestamptz,
  completed_at timestamptz,
  cancelled_at timestamptz,
  cancel_reason app_public.long_text,
  error text,
  context jsonb constraint workflow_executions_context_size check (jsonb_typeof(context) = 'object'
    and length(context::text) <= 20000),
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint workflow_executions_workflow_id_fkey foreign key (workflow_id, organization_id)
    references app_public.workflows (id, organization_id) on delete cascade
);
create unique index workflow_executions_live on app_public.workflow_executions (workflow_id, subject_id)
  where reentry <> 'ALWAYS' and status in ('PENDING', 'RUNNING', 'PAUSED');
create index workflow_executions_workflow on app_public.workflow_executions (workflow_id, id desc);
create index workflow_executions_workflow_status on app_public.workflow_executions (workflow_id, status, id desc);
create index workflow_executions_subject on app_public.workflow_executions (subject_id, workflow_id, id desc);
create index workflow_executions_lead on app_public.workflow_executions (lead_id, id desc) where lead_id is not null;
create index workflow_executions_buyer on app_public.workflow_executions (buyer_id, id desc) where buyer_id is not null;
create index workflow_executions_trigger_event on app_public.workflow_executions (trigger_event_id)
  where trigger_event_id is not null;
create index workflow_executions_started_by on app_public.workflow_executions (started_by_id)
  where started_by_id is not null;
create index workflow_executions_paused_by on app_public.workflow_executions (paused_by_id)
  where paused_by_id is not null;

-- What the engine looks at: what is due, step by step; what somebody holds; what resumes by itself.
create index workflow_executions_due
  on app_public.workflow_executions (workflow_id, steps_revision, current_step, scheduled_at)
  where status in ('PENDING', 'RUNNING') and holder is null and scheduled_at is not null;
create index workflow_executions_held on app_public.workflow_executions (holder) where holder is not null;
create index workflow_executions_resuming on app_public.workflow_executions (resume_at) where status = 'PAUSED'
  and resume_at is not null;

-- Who sees executions: whoever reads workflows, of those about people only where they see the lead or the purchase.
alter table app_public.workflow_executions enable row level security;

create table app_public.workflow_step_runs (
  id uuid primary key default uuidv7(),
  execution_id uuid not null references app_public.workflow_executions on delete cascade,
  step_id uuid not null references app_public.workflow_steps on delete cascade,
  sequence int not null,
  attempt int not null,
  status app_public.step_run_status not null,
  started_at timestamptz default now(),
  finished_at timestamptz,
  output jsonb,
  error text,
  constraint workflow_step_runs_once unique (execution_id, sequence, attempt)
);
create index workflow_step_runs_step on app_public.workflow_step_runs (step_id);
alter table app_public.workflow_step_runs enable row level security;
