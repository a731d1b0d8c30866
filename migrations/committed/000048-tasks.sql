--! Previous: sha1:a236ad3713f81f9ea699dca08b94c97e2fff1aaa
--! Hash: sha1:9bad63e4a694066890d5019853c9b35ab140bcbf
--! Message: tasks

-- Tasks.

select app_private.create_enum('task_type', 'The kind of a task.', array[
  ['TODO', 'Anything.'], ['CALL', 'A call.'], ['EMAIL', 'An e-mail.'], ['SMS', 'A text message.'],
  ['MEETING', 'A meeting.'], ['DOCUMENT', 'A document.'], ['PAYMENT', 'A payment.'],
  ['FOLLOW_UP', 'Getting back to somebody.']]);
select app_private.create_enum('task_status', 'How far a task is.', array[
  ['OPEN', 'Nobody has begun.'], ['IN_PROGRESS', 'Somebody works on it.'], ['WAITING', 'Waits for somebody else.'],
  ['COMPLETED', 'Done.'], ['CANCELLED', 'Not needed any more.']]);
select app_private.create_enum('task_priority', 'How urgent something is.', array[
  ['LOW', 'When there is time.'], ['MEDIUM', 'In turn.'], ['HIGH', 'Soon.'], ['URGENT', 'Now.']]);

create table app_public.tasks (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  project_id uuid,
  lead_id uuid,
  title app_public.short_text not null,
  description app_public.long_text,
  type app_public.task_type not null default 'TODO',
  status app_public.task_status not null default 'OPEN',
  status_changed_at timestamptz not null default now(),
  priority app_public.task_priority not null default 'MEDIUM',
  assignee_id uuid references app_public.users on delete set null,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  due_at timestamptz,
  started_at timestamptz,
  completed_at timestamptz,
  completed_by_id uuid references app_public.users on delete set null,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  buyer_id uuid,
  workflow_execution_id uuid references app_public.workflow_executions on delete set null,
  constraint tasks_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete cascade,
  constraint tasks_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint tasks_one_person check (num_nonnulls(lead_id, buyer_id) <= 1),
  constraint tasks_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete cascade
);
create index tasks_lead on app_public.tasks (lead_id, id desc) where deleted_at is null;
create index tasks_lead_open on app_public.tasks (lead_id) where deleted_at is null
  and status in ('OPEN', 'IN_PROGRESS', 'WAITING');
create index tasks_organization on app_public.tasks (organization_id, due_at, id) where deleted_at is null;
create index tasks_project on app_public.tasks (project_id, due_at, id) where deleted_at is null;
create index tasks_assignee on app_public.tasks (assignee_id, due_at, id) where deleted_at is null;
create index tasks_created_by on app_public.tasks (created_by_id);
create index tasks_completed_by on app_public.tasks (completed_by_id);
create index tasks_buyer on app_public.tasks (buyer_id, due_at, id) where deleted_at is null;
create index tasks_workflow_execution on app_public.tasks (workflow_execution_id)
  where workflow_execution_id is not null;
create index tasks_clock on app_public.tasks (due_at) where deleted_at is null;
alter table app_public.tasks enable row level security;
