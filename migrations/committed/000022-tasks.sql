--! Previous: sha1:e8a18f8900d5610a76260eef8e53c15c990b0a01
--! Hash: sha1:e45de2c34ea4e41fb52f6d3f4a4c03374e63fc8b
--! Message: tasks

-- What people have to do: for a lead, in a project, or for the organization alone.

select app_private.create_enum('task_type', 'The kind of a task.', array[
  ['TODO', 'Anything.'], ['CALL', 'A call.'], ['EMAIL', 'An e-mail.'], ['SMS', 'A text message.'], ['MEETING', 'A meeting.'],
  ['DOCUMENT', 'A document.'], ['PAYMENT', 'A payment.'], ['FOLLOW_UP', 'Getting back to somebody.']]);
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
  constraint tasks_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id) on delete cascade,
  constraint tasks_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete cascade
);
create index tasks_lead on app_public.tasks (lead_id, id desc) where deleted_at is null;
create index tasks_lead_open on app_public.tasks (lead_id) where deleted_at is null and status in ('OPEN', 'IN_PROGRESS', 'WAITING');
create index tasks_organization on app_public.tasks (organization_id, due_at, id) where deleted_at is null;
create index tasks_project on app_public.tasks (project_id, due_at, id) where deleted_at is null;
create index tasks_assignee on app_public.tasks (assignee_id, due_at, id) where deleted_at is null;
create index tasks_created_by on app_public.tasks (created_by_id);
create index tasks_completed_by on app_public.tasks (completed_by_id);

alter table app_public.tasks enable row level security;
create policy seers on app_public.tasks for select to plat_user
  using (deleted_at is null and case
    when lead_id is not null then exists (select from app_public.leads l where l.id = lead_id)
    else organization_id = any (array(select app_hidden.viewer_organizations('org.member'))) end);
create policy workers_insert on app_public.tasks for insert to plat_user
  with check (case
    when lead_id is not null then exists (select from app_public.leads l where l.id = lead_id)
    else organization_id = any (array(select app_hidden.viewer_organizations('org.member'))) end);
create policy workers_update on app_public.tasks for update to plat_user
  using (case
    when lead_id is not null then exists (select from app_public.leads l where l.id = lead_id)
    else organization_id = any (array(select app_hidden.viewer_organizations('org.member'))) end);
create policy workers_delete on app_public.tasks for delete to plat_user
  using (created_by_id = (select app_public.current_user_id()) or organization_id = any (array(select app_hidden.viewer_organizations('org.admin'))));
grant select on app_public.tasks to plat_user, plat_anonymous, plat_worker;
grant insert (lead_id, organization_id, project_id, title, description, type, priority, assignee_id, due_at) on app_public.tasks to plat_user;
grant update (title, description, type, status, priority, assignee_id, due_at) on app_public.tasks to plat_user;
grant delete on app_public.tasks to plat_user;

--------------------------------------------------------------------------------------------------------

create function app_private.tg_tasks__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    if new.lead_id is not null then
      select l.project_id, l.organization_id into new.project_id, new.organization_id from app_public.leads l where l.id = new.lead_id;
    elsif new.project_id is not null then
      select p.organization_id into new.organization_id from app_public.projects p where p.id = new.project_id;
    elsif new.organization_id is null then
      perform app_hidden.fail('BAD_USER_INPUT', 'Name the lead, the project or the organization that the task is for.', '{"field": "organizationId"}');
    end if;
  end if;
  if new.assignee_id is not null and (tg_op = 'INSERT' or new.assignee_id is distinct from old.assignee_id) and not exists (
    select from app_public.organization_user_connections m
    where m.user_id = new.assignee_id
      and (m.organization_id = new.organization_id
        or m.organization_id in (select p.organization_id from app_public.project_organizations p where p.project_id = new.project_id))) then
    perform app_hidden.fail('BAD_USER_INPUT', 'A task is assigned to a member of the organization, or of one with a part in the project.', '{"field": "assigneeId"}');
  end if;
  if tg_op = 'UPDATE' and new.status is distinct from old.status then
    new.started_at := case when new.status = 'OPEN' then null else coalesce(new.started_at, now()) end;
    new.completed_at := case when new.status = 'COMPLETED' then now() end;
    new.completed_by_id := case when new.status = 'COMPLETED' then app_public.current_user_id() end;
  end if;
  return new;
end $$;
create trigger _010_prepare before insert or update on app_public.tasks for each row execute function app_private.tg_tasks__prepare();
create trigger _060_refuse_archived before insert or update or delete on app_public.tasks for each row execute function app_private.tg__refuse_archived();
select app_private.make_record('tasks', 'task', 'lead.write');
select app_private.make_state_machine('tasks', 'task',
  steps => array[
    ['OPEN', 'IN_PROGRESS'], ['IN_PROGRESS', 'OPEN'], ['IN_PROGRESS', 'WAITING'], ['WAITING', 'IN_PROGRESS'],
    ['OPEN', 'COMPLETED'], ['IN_PROGRESS', 'COMPLETED'], ['WAITING', 'COMPLETED'], ['COMPLETED', 'OPEN'],
    ['OPEN', 'CANCELLED'], ['IN_PROGRESS', 'CANCELLED'], ['WAITING', 'CANCELLED']],
  initial => array['OPEN']);

create function app_public.tasks_is_overdue(t app_public.tasks) returns boolean
language sql stable as $$ select t.due_at is not null and t.due_at < now() and t.status not in ('COMPLETED', 'CANCELLED') $$;
create function app_public.tasks_allowed_transitions(t app_public.tasks) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('task', to_jsonb(t)) $$;
create function app_public.leads_filter_has_open_task(l app_public.leads, value boolean) returns boolean
language sql stable as $$
  select exists (select from app_public.tasks t
    where t.lead_id = l.id and t.deleted_at is null and t.status in ('OPEN', 'IN_PROGRESS', 'WAITING')) = value
$$;
grant execute on function app_public.tasks_is_overdue, app_public.tasks_allowed_transitions, app_public.leads_filter_has_open_task
  to plat_user, plat_anonymous;
comment on function app_public.tasks_is_overdue is E'@notNull\n\nWhether it is due and not done.';
comment on function app_public.tasks_allowed_transitions is E'@notNull\n\nThe steps that the task can take from its status.';
comment on function app_public.leads_filter_has_open_task is E'@filter hasOpenTask\n\nOnly leads with something to do, or only the others.';

comment on table app_public.tasks is E'@defaultOrder due_at asc, id asc\n\nSomething to do.';
comment on column app_public.tasks.created_by_id is 'Who created it.';
comment on column app_public.tasks.completed_by_id is 'Who completed it.';
comment on column app_public.tasks.organization_id is E'@insertOptional\n\nThe organization; needed where neither a lead nor a project is named.';
comment on column app_public.tasks.project_id is 'The project.';
comment on column app_public.tasks.lead_id is 'The lead that it is about.';
comment on column app_public.tasks.title is 'What to do, in a line.';
comment on column app_public.tasks.description is 'What to do, at length.';
comment on column app_public.tasks.type is 'Kind of the task.';
comment on column app_public.tasks.status is 'How far it is.';
comment on column app_public.tasks.status_changed_at is 'Since when it has its status.';
comment on column app_public.tasks.priority is 'How urgent it is.';
comment on column app_public.tasks.assignee_id is 'Who does it.';
comment on column app_public.tasks.due_at is 'Until when.';
comment on column app_public.tasks.started_at is 'When somebody began.';
comment on column app_public.tasks.completed_at is 'When it was done.';
comment on constraint tasks_organization_id_fkey on app_public.tasks is
  E'@fieldName organization\n@foreignFieldName tasks\n@backwardPermission org.member\n@backwardDescription What there is to do, what is due first comes first; null for outsiders.\n\nThe organization.';
comment on constraint tasks_project_id_fkey on app_public.tasks is E'@parent\n@fieldName project\n@backwardBehavior -*\n\nThe project.';
comment on constraint tasks_lead_id_fkey on app_public.tasks is
  E'@fieldName lead\n@foreignFieldName tasks\n@backwardDescription What there is to do for the lead.\n\nThe lead that it is about.';
comment on constraint tasks_assignee_id_fkey on app_public.tasks is E'@fieldName assignee\n@backwardBehavior -*\n\nWho does it.';
comment on constraint tasks_created_by_id_fkey on app_public.tasks is E'@fieldName createdBy\n@backwardBehavior -*\n\nWho wrote it down.';
comment on constraint tasks_completed_by_id_fkey on app_public.tasks is E'@fieldName completedBy\n@backwardBehavior -*\n\nWho did it.';

--------------------------------------------------------------------------------------------------------

create function app_public.users_permissions(u app_public.users, project_id app_public.id_or_slug default null) returns text[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  project uuid := app_hidden.record_id('projects', users_permissions.project_id, 'projectId');
begin
  -- What somebody else may do is not told.
  if u.id is distinct from app_public.current_user_id() then
    return '{}';
  end if;
  return array(
    select distinct r.permission from app_private.role_permissions r
    where case when project is null then exists (select from app_hidden.viewer_organizations(r.permission))
      else exists (select from app_public.projects p where p.id = project and p.deleted_at is null
        and app_hidden.project_can(p.id, p.organization_id, r.permission)) end
    order by r.permission);
end $$;
grant execute on function app_public.users_permissions to plat_user, plat_anonymous;
comment on function app_public.users_permissions is $$
@notNull
@arg projectId Only what holds in this project; without it, what holds in at least one organization.

What the viewer may do; empty for other users.$$;
