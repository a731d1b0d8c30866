--! Previous: sha1:01a8b31d2eea614d7c59f56d1154ae768e81400e
--! Hash: sha1:4eaa494bd86cac8bc380f6ac2f1283d6a35769c8
--! Message: workflows

-- Workflows and their steps.

select app_private.create_enum('workflow_status', 'Whether a workflow is started.', array[
  ['DRAFT', 'Not started yet: it is being written.'], ['ENABLED', 'Started by its trigger, by hand and in batches.'],
  ['DISABLED', 'Not started; executions that have begun go on.'],
  ['ARCHIVED', 'Not started any more, and not changed.']]);
select app_private.create_enum('workflow_trigger_type', 'What starts a workflow.', array[
  ['EVENT', 'Something that happens.'], ['SCHEDULE', 'The clock.'], ['MANUAL', 'A person.'],
  ['BATCH', 'A person or program, for many subjects at once.'], ['API', 'A program.']]);
select app_private.create_enum('workflow_subject', 'The kind of record that a workflow is about.', array[
  ['LEAD', 'A lead.'], ['BUYER', 'A purchase.'], ['RESERVATION', 'A reservation.'], ['UNIT', 'A unit.'],
  ['APPOINTMENT', 'An appointment.'], ['TASK', 'A task.']]);
select app_private.create_enum('workflow_reentry', 'Whether a workflow may be started again for a subject.', array[
  ['NEVER', 'A subject goes through it once.'], ['AFTER_COMPLETION', 'Again when the execution before is over.'],
  ['ALWAYS', 'Again at any time, also while another execution is under way.']]);
select app_private.create_enum('workflow_step_type', 'What a step does.', array[
  ['SEND_EMAIL', 'Sends an e-mail.'], ['SEND_SMS', 'Sends a text message.'], ['CREATE_TASK', 'Creates a task.'],
  ['CREATE_NOTE', 'Writes a note.'], ['ASSIGN', 'Assigns the lead or the purchase to a member.'],
  ['UPDATE_FIELD', 'Changes a field.'], ['ADD_TAG', 'Adds a tag.'], ['REMOVE_TAG', 'Removes a tag.'],
  ['WAIT', 'Waits for a time.'], ['WAIT_FOR_EVENT', 'Waits for something to happen.'],
  ['BRANCH', 'Goes on here or there, by a condition.'], ['CALL_WEBHOOK', 'Calls an address.'],
  ['NOTIFY_TEAM', 'Tells members of the team.'], ['DRAFT_WITH_AI', 'Has a message drafted.'],
  ['ESCALATE', 'Opens an escalation ticket.'], ['STOP', 'Ends the execution.']]);
select app_private.create_enum('step_error_policy', 'What follows when a step fails.', array[
  ['RETRY', 'It is tried again a few times; then the execution fails.'],
  ['SKIP', 'The execution goes on with the next step.'], ['FAIL', 'The execution fails.'],
  ['ESCALATE', 'An escalation ticket is opened; the execution waits for its resolution.']]);

create table app_public.workflows (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  project_id uuid,
  name app_public.short_text not null,
  description app_public.long_text,
  status app_public.workflow_status not null default 'DRAFT',
  subject_type app_public.workflow_subject not null,
  trigger jsonb not null,
  trigger_type app_public.workflow_trigger_type not null generated always as (trigger ->> 'type') stored,
  conditions jsonb,
  reentry app_public.workflow_reentry not null default 'AFTER_COMPLETION',
  steps_revision int not null default 1,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  enabled_at timestamptz,
  disabled_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  unique (id, organization_id),
  constraint workflows_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index workflows_organization on app_public.workflows (organization_id, id desc) where deleted_at is null;
create index workflows_enabled on app_public.workflows (organization_id) where status = 'ENABLED'
  and deleted_at is null;
create index workflows_project on app_public.workflows (project_id);
create index workflows_created_by on app_public.workflows (created_by_id);
alter table app_public.workflows enable row level security;

create table app_public.workflow_steps (
  id uuid primary key default uuidv7(),
  workflow_id uuid not null,
  organization_id uuid not null,
  revision int not null,
  sequence int not null constraint workflow_steps_sequence check (sequence > 0),
  type app_public.workflow_step_type not null,
  name app_public.short_text,
  config jsonb not null default '{}',
  wait_seconds int constraint workflow_steps_wait check (wait_seconds between 0 and 31536000),
  on_error app_public.step_error_policy not null default 'RETRY',
  checks jsonb not null default '{}',
  constraint workflow_steps_once unique (workflow_id, revision, sequence),
  constraint workflow_steps_workflow_id_fkey foreign key (workflow_id, organization_id)
    references app_public.workflows (id, organization_id) on delete cascade
);
create index workflow_steps_workflow on app_public.workflow_steps (workflow_id, organization_id);
alter table app_public.workflow_steps enable row level security;
