--! Previous: sha1:06a7134ae668f05ce6ff9ce9caf11c784ce0fe1a
--! Hash: sha1:448b89162c40adef3a4408631a7c65b5afdc7ee5
--! Message: escalation-tickets

-- What a person has to decide.

select app_private.create_enum('escalation_ticket_status', 'How far an escalation ticket is.', array[
  ['OPEN', 'Waits for somebody to decide.'], ['RESOLVING', 'The action was chosen and is being executed.'],
  ['RESOLVED', 'The action was executed.'], ['FAILED', 'The action could not be executed; choose again.'],
  ['EXPIRED', 'Nobody decided in time.']]);
select app_private.create_enum('escalation_kind', 'What an escalation ticket is about.', array[
  ['WORKFLOW_FAILURE', 'A step of a workflow failed.'], ['APPROVAL_REQUIRED', 'Something waits for approval.'],
  ['AI_LOW_CONFIDENCE', 'A draft of the drafting service needs a look.'],
  ['COMPLIANCE', 'Something may not be allowed.'], ['PAYMENT_DISPUTE', 'A payment is disputed.'],
  ['DUPLICATE_LEAD', 'Two leads may be one person.'], ['INVENTORY_CONFLICT', 'Two parties count on one home.'],
  ['NO_RESPONSE', 'Somebody was not answered, or did not answer.'],
  ['INTEGRATION_FAILURE', 'A connected application failed.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('escalation_action', 'What ends an escalation ticket.', array[
  ['APPROVE', 'Approves what waits.'], ['REJECT', 'Refuses what waits.'], ['RETRY', 'Tries again what failed.'],
  ['SKIP_STEP', 'Goes on without the step.'], ['RESUME_EXECUTION', 'Lets the workflow go on.'],
  ['CANCEL_EXECUTION', 'Ends the workflow.'], ['REASSIGN', 'Hands the lead or purchase to somebody else.'],
  ['MERGE', 'Makes two leads one.'],
  ['RELEASE_CLAIM', 'Takes the home from whoever has it, so that it is for sale again.'],
  ['SEND_DRAFT', 'Sends the draft.'], ['REFUND', 'Gives the money back.'], ['DISMISS', 'Does nothing.']]);
select app_private.create_enum('escalation_action_status', 'What became of the action of an escalation ticket.', array[
  ['PENDING', 'Not done yet.'], ['SUCCEEDED', 'Done.'], ['FAILED', 'Could not be done.']]);

create table app_public.escalation_tickets (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  project_id uuid,
  status app_public.escalation_ticket_status not null default 'OPEN',
  status_changed_at timestamptz not null default now(),
  kind app_public.escalation_kind not null,
  priority app_public.task_priority not null default 'MEDIUM',
  title app_public.short_text not null,
  description app_public.long_text,
  lead_id uuid,
  buyer_id uuid,
  subject_type text,
  subject_id uuid,
  workflow_execution_id uuid,
  generation_id uuid,
  available_actions app_public.escalation_action[] not null constraint escalation_tickets_actions check
    (cardinality(available_actions) > 0),
  action app_public.escalation_action,
  action_status app_public.escalation_action_status,
  action_error app_public.long_text,
  note app_public.long_text,
  assignee_id uuid references app_public.users on delete set null,
  opened_at timestamptz not null default now(),
  due_at timestamptz,
  resolved_at timestamptz,
  resolved_by_id uuid references app_public.users on delete set null,
  cause text not null,
  input jsonb not null default '{}',
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint escalation_tickets_action_chosen check ((action is null) = (action_status is null)),
  constraint escalation_tickets_subject check (num_nonnulls(subject_type, subject_id) in (0, 2)),
  constraint escalation_tickets_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint escalation_tickets_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete set null (lead_id),
  constraint escalation_tickets_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete set null (buyer_id),
  constraint escalation_tickets_workflow_execution_id_fkey foreign key (workflow_execution_id)
    references app_public.workflow_executions on delete set null,
  constraint escalation_tickets_generation_id_fkey
  foreign key (generation_id) references app_public.service_intelligence_generations on delete set null
);

-- One cause, one ticket, for as long as nobody has decided.
create unique index escalation_tickets_cause on app_public.escalation_tickets (organization_id, cause)
  where status in ('OPEN', 'RESOLVING', 'FAILED');
create index escalation_tickets_organization
  on app_public.escalation_tickets (organization_id, opened_at desc, id desc);
create index escalation_tickets_organization_status
  on app_public.escalation_tickets (organization_id, status, opened_at desc, id desc);
create index escalation_tickets_project on app_public.escalation_tickets (project_id);
create index escalation_tickets_lead on app_public.escalation_tickets (lead_id);
create index escalation_tickets_buyer on app_public.escalation_tickets (buyer_id);
create index escalation_tickets_subject on app_public.escalation_tickets (subject_id);
create index escalation_tickets_workflow_execution on app_public.escalation_tickets (workflow_execution_id, id desc);
create index escalation_tickets_generation on app_public.escalation_tickets (generation_id);
create index escalation_tickets_assignee on app_public.escalation_tickets (assignee_id);
create index escalation_tickets_resolved_by on app_public.escalation_tickets (resolved_by_id);
alter table app_public.escalation_tickets enable row level security;

-- Actions.
create table app_hidden.ticket_actions (
  action app_public.escalation_action not null references app_public.escalation_action_values,
  kind app_public.escalation_kind references app_public.escalation_kind_values,
  permission text,
  perform text,
  unique nulls not distinct (action, kind)
);
create index ticket_actions_kind on app_hidden.ticket_actions (kind);
alter table app_hidden.ticket_actions enable row level security;
