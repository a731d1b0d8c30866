--! Previous: sha1:f4ca04c02719ed2ba8399a01528c65658ac8a71b
--! Hash: sha1:a34af442455ebc8f7dbf95ab568ffcf56df700f3
--! Message: workflows

-- What an organization has done by itself: a trigger starts an execution for a record (the subject), which goes through the
-- steps. DRAFT → ENABLED ⇄ DISABLED → ARCHIVED; only enabled ones are started, by whatever; running executions go on in any
-- state. Steps are never changed: new steps are a new revision, and an execution keeps the one that it began with.

select app_private.create_enum('workflow_status', 'Whether a workflow is started.', array[
  ['DRAFT', 'Not started yet: it is being written.'], ['ENABLED', 'Started by its trigger, by hand and in batches.'],
  ['DISABLED', 'Not started; executions that have begun go on.'], ['ARCHIVED', 'Not started any more, and not changed.']]);
select app_private.create_enum('workflow_trigger_type', 'What starts a workflow.', array[
  ['EVENT', 'Something that happens.'], ['SCHEDULE', 'The clock.'], ['MANUAL', 'A person.'],
  ['BATCH', 'A person or program, for many subjects at once.'], ['API', 'A program.']]);
select app_private.create_enum('workflow_subject', 'The kind of record that a workflow is about.', array[
  ['LEAD', 'A lead.'], ['BUYER', 'A purchase.'], ['RESERVATION', 'A reservation.'], ['UNIT', 'A unit.'], ['APPOINTMENT', 'An appointment.'], ['TASK', 'A task.']]);
select app_private.create_enum('workflow_reentry', 'Whether a workflow may be started again for a subject.', array[
  ['NEVER', 'A subject goes through it once.'], ['AFTER_COMPLETION', 'Again when the execution before is over.'],
  ['ALWAYS', 'Again at any time, also while another execution is under way.']]);
select app_private.create_enum('workflow_step_type', 'What a step does.', array[
  ['SEND_EMAIL', 'Sends an e-mail.'], ['SEND_SMS', 'Sends a text message.'], ['CREATE_TASK', 'Creates a task.'], ['CREATE_NOTE', 'Writes a note.'],
  ['ASSIGN', 'Assigns the lead or the purchase to a member.'], ['UPDATE_FIELD', 'Changes a field.'], ['ADD_TAG', 'Adds a tag.'], ['REMOVE_TAG', 'Removes a tag.'],
  ['WAIT', 'Waits for a time.'], ['WAIT_FOR_EVENT', 'Waits for something to happen.'], ['BRANCH', 'Goes on here or there, by a condition.'],
  ['CALL_WEBHOOK', 'Calls an address.'], ['NOTIFY_TEAM', 'Tells members of the team.'], ['DRAFT_WITH_AI', 'Has a message drafted.'],
  ['ESCALATE', 'Opens an escalation ticket.'], ['STOP', 'Ends the execution.']]);
select app_private.create_enum('step_error_policy', 'What follows when a step fails.', array[
  ['RETRY', 'It is tried again a few times; then the execution fails.'], ['SKIP', 'The execution goes on with the next step.'],
  ['FAIL', 'The execution fails.'], ['ESCALATE', 'An escalation ticket is opened; the execution waits for its resolution.']]);

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
  constraint workflows_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete cascade
);
create index workflows_organization on app_public.workflows (organization_id, id desc) where deleted_at is null;
create index workflows_enabled on app_public.workflows (organization_id) where status = 'ENABLED' and deleted_at is null;
create index workflows_project on app_public.workflows (project_id);
create index workflows_created_by on app_public.workflows (created_by_id);

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
  constraint workflow_steps_workflow_id_fkey foreign key (workflow_id, organization_id) references app_public.workflows (id, organization_id) on delete cascade
);
create index workflow_steps_workflow on app_public.workflow_steps (workflow_id, organization_id);

alter table app_public.workflows enable row level security;
create policy readers on app_public.workflows for select to plat_user
  using (deleted_at is null and organization_id = any (array(select app_hidden.viewer_organizations('workflow.read'))));
create policy managers_delete on app_public.workflows for delete to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('workflow.manage'))));
grant select on app_public.workflows to plat_user, plat_anonymous, plat_worker;
-- The grants are the input types; there is no policy to write by, since operations check the definition first.
grant insert (organization_id, project_id, name, description, subject_type, trigger, conditions, reentry),
  update (name, description, trigger, conditions, reentry), delete on app_public.workflows to plat_user;

alter table app_public.workflow_steps enable row level security;
create policy readers on app_public.workflow_steps for select to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('workflow.read'))));
grant select on app_public.workflow_steps to plat_user, plat_anonymous, plat_worker;

create trigger _060_refuse_archived before insert or update or delete on app_public.workflows for each row execute function app_private.tg__refuse_archived();
select app_private.make_record('workflows', 'workflow', 'workflow.manage');
select app_private.make_state_machine('workflows', 'workflow',
  steps => array[['DRAFT', 'ENABLED'], ['ENABLED', 'DISABLED'], ['DISABLED', 'ENABLED'], ['DISABLED', 'ARCHIVED']],
  initial => array['DRAFT']);
insert into app_private.event_names (subject, column_name, value, name) values
  ('workflow', 'status', 'ENABLED', 'enabled'), ('workflow', 'status', 'DISABLED', 'disabled'), ('workflow', 'status', 'ARCHIVED', 'archived');

create function app_private.tg_workflow_steps__immutable() returns trigger
language plpgsql volatile as $$
begin
  raise exception 'steps of a workflow are never changed; write a new revision' using errcode = 'restrict_violation';
end $$;
create trigger _100_immutable before update on app_public.workflow_steps for each row execute function app_private.tg_workflow_steps__immutable();

create function app_private.tg_workflows__times() returns trigger
language plpgsql volatile as $$
begin
  if new.status = 'ENABLED' then
    new.enabled_at := now();
  elsif new.status = 'DISABLED' then
    new.disabled_at := now();
  end if;
  return new;
end $$;
create trigger _400_times before update on app_public.workflows for each row when (old.status is distinct from new.status) execute function app_private.tg_workflows__times();

--------------------------------------------------------------------------------------------------------
-- Fields.

create function app_public.workflows_enabled(w app_public.workflows) returns boolean
language sql stable as $$ select w.status = 'ENABLED' $$;
create function app_public.workflows_steps(w app_public.workflows) returns setof app_public.workflow_steps
language sql stable rows 10 as $$
  select s.* from app_public.workflow_steps s where s.workflow_id = w.id and s.revision = w.steps_revision order by s.sequence
$$;
create function app_public.workflows_allowed_transitions(w app_public.workflows) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('workflow', to_jsonb(w)) $$;
grant execute on function app_public.workflows_enabled, app_public.workflows_steps, app_public.workflows_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.workflows_enabled is E'@notNull\n\nWhether it is started.';
comment on function app_public.workflows_steps is E'@ordered\n\nThe steps of the present revision, in their order.';
comment on function app_public.workflows_allowed_transitions is E'@notNull\n\nThe steps that the workflow can take from its status.';

comment on table app_public.workflows is 'What is done by itself when something happens, at a time, or on request: steps that each subject goes through.';
comment on column app_public.workflows.project_id is E'@filter projectIds\n\nThe project whose records it is about; null for all of the organization.';
comment on column app_public.workflows.name is 'What people call it.';
comment on column app_public.workflows.description is 'What it is for.';
comment on column app_public.workflows.status is E'@filter\n\nWhether it is started.';
comment on column app_public.workflows.subject_type is E'@filter\n\nThe kind of record that an execution is about.';
comment on column app_public.workflows.trigger is 'What starts it: {type, event, schedule, timeZone, filter}.';
comment on column app_public.workflows.trigger_type is E'@filter\n\nThe kind of trigger.';
comment on column app_public.workflows.conditions is 'What must hold of a subject for its trigger to start it: JSON Logic.';
comment on column app_public.workflows.reentry is 'Whether a subject may go through it again.';
comment on column app_public.workflows.steps_revision is 'Grows when the steps are replaced; executions keep the revision that they started with.';
comment on column app_public.workflows.created_by_id is 'Who created it.';
comment on column app_public.workflows.enabled_at is 'When it was enabled last.';
comment on column app_public.workflows.disabled_at is 'When it was disabled last.';
comment on constraint workflows_organization_id_fkey on app_public.workflows is
  E'@parent\n@fieldName organization\n@foreignFieldName workflows\n@backwardPermission org.member\n@backwardDescription What is done by itself; null for outsiders.\n\nThe organization.';
comment on constraint workflows_project_id_fkey on app_public.workflows is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project whose records it is about; null for all of the organization.';
comment on constraint workflows_created_by_id_fkey on app_public.workflows is E'@fieldName createdBy\n@backwardBehavior -*\n\nWho created it.';

comment on table app_public.workflow_steps is E'@behavior -operation\n\nA step of a workflow.';
comment on column app_public.workflow_steps.workflow_id is E'@behavior -*\n\nThe workflow.';
comment on column app_public.workflow_steps.organization_id is E'@behavior -*\n\nThe organization.';
comment on column app_public.workflow_steps.revision is E'@behavior -*\n\nThe revision of the steps that it belongs to.';
comment on column app_public.workflow_steps.sequence is 'Its place among the steps, from 1.';
comment on column app_public.workflow_steps.type is 'What it does.';
comment on column app_public.workflow_steps.name is 'What people call it.';
comment on column app_public.workflow_steps.config is 'How it does it; the members depend on the type.';
comment on column app_public.workflow_steps.wait_seconds is 'How long it waits, in seconds: a WAIT in all, another step before it begins.';
comment on column app_public.workflow_steps.checks is E'@behavior -*\n\nWhat reading its templates and addresses came to, by their path: the variables of each.';
comment on column app_public.workflow_steps.on_error is 'What follows when it fails.';
comment on constraint workflow_steps_wait on app_public.workflow_steps is 'Give at most 31,536,000 seconds (a year).';
comment on constraint workflow_steps_workflow_id_fkey on app_public.workflow_steps is E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe workflow.';
