-- Tasks of members: for a lead, in a project, or for the organization.

select app_private.make_record('tasks', 'task', 'lead.write');
select app_private.make_state_machine('tasks', 'task',
  steps => array[
    ['OPEN', 'IN_PROGRESS'], ['IN_PROGRESS', 'OPEN'], ['IN_PROGRESS', 'WAITING'], ['WAITING', 'IN_PROGRESS'],
    ['OPEN', 'COMPLETED'], ['IN_PROGRESS', 'COMPLETED'], ['WAITING', 'COMPLETED'], ['COMPLETED', 'OPEN'],
    ['OPEN', 'CANCELLED'], ['IN_PROGRESS', 'CANCELLED'], ['WAITING', 'CANCELLED']],
  initial => array['OPEN']);
select app_private.make_buyer_list('tasks', 'tasks', 'Tasks about the buyer, earliest due date first',
  'due_at asc, id asc');

grant select on app_public.tasks to plat_user, plat_anonymous;
grant insert (lead_id, organization_id, project_id, title, description, type, priority, assignee_id, due_at) on
  app_public.tasks to plat_user;
grant update (title, description, type, status, priority, assignee_id, due_at) on app_public.tasks to plat_user;
grant delete on app_public.tasks to plat_user;
grant insert (buyer_id) on app_public.tasks to plat_user;

comment on table app_public.tasks is $$
@portfolio lead.read
@portfolioAlso org.member lead_id buyer_id
@ownFinder viewer_tasks_of_deals
@defaultOrder due_at asc, id asc
@filterLists status

A task for a member of the team.$$;
comment on column app_public.tasks.created_by_id is E'@inert A task triggers no action.\n\nUser who created it.';
comment on column app_public.tasks.completed_by_id is 'User who completed it.';
comment on column app_public.tasks.project_id is E'@filter projectIds\n\nThe project that it belongs to.';
comment on column app_public.tasks.lead_id is E'@filter\n\nThe related lead.';
comment on column app_public.tasks.title is E'@personal\n\nSummary of the task, in one line.';
comment on column app_public.tasks.description is E'@personal\n\nDetailed description of the task.';
comment on column app_public.tasks.type is E'@filter\n\nKind of the task.';
comment on column app_public.tasks.status is E'@filter\n\nCurrent status.';
comment on column app_public.tasks.status_changed_at is 'When the status last changed.';
comment on column app_public.tasks.priority is E'@filter\n\nUrgency of the task.';
comment on column app_public.tasks.assignee_id is
  E'@filter assigneeIds\n\nThe team member who has to do the task; the creator if omitted.';
comment on column app_public.tasks.due_at is E'@filter\n\nDeadline; an open task is overdue after it.';
comment on column app_public.tasks.started_at is 'When work on the task started; null until then.';
comment on column app_public.tasks.completed_at is 'When the task was completed; null until then.';
comment on column app_public.tasks.buyer_id is E'@filter\n\nThe related purchase.';
comment on column app_public.tasks.organization_id is
  E'@filter organizationIds\n@insertOptional\n\n'
  'Id of the organization; required if no lead, buyer or project is given.';
comment on column app_public.tasks.workflow_execution_id is E'@behavior -*\n\nThe execution that created it.';
comment on constraint tasks_organization_id_fkey on app_public.tasks is
  E'@fieldName organization\n'
  '@foreignFieldName tasks\n'
  '@backwardPermission org.member\n'
  '@backwardDescription Tasks of the organization, earliest due date first; null for non-members.\n\n'
  'The organization.';
comment on constraint tasks_project_id_fkey on app_public.tasks is
  E'@parent\n@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint tasks_lead_id_fkey on app_public.tasks is
  E'@fieldName lead\n@foreignFieldName tasks\n@backwardDescription Tasks about the lead.\n\nThe related lead.';
comment on constraint tasks_assignee_id_fkey on app_public.tasks is
  E'@fieldName assignee\n@backwardBehavior -*\n\nThe team member who has to do the task.';
comment on constraint tasks_created_by_id_fkey on app_public.tasks is
  E'@fieldName createdBy\n@backwardBehavior -*\n\nThe user who created the task.';
comment on constraint tasks_completed_by_id_fkey on app_public.tasks is
  E'@fieldName completedBy\n@backwardBehavior -*\n\nThe user who completed the task.';
comment on constraint tasks_one_person on app_public.tasks is 'Specify the lead or the buyer, not both.';
comment on constraint tasks_buyer_id_fkey on app_public.tasks is
  E'@fieldName buyer\n@backwardBehavior -*\n\nThe related purchase.';
comment on constraint tasks_workflow_execution_id_fkey on app_public.tasks is
  E'@fieldName workflowExecution\n@backwardBehavior -*\n\n'
  'The workflow execution that created the task; null if a user created it.';

create function app_private.tg_tasks__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    if num_nonnulls(new.lead_id, new.buyer_id) > 1 then
      perform app_hidden.fail('BAD_USER_INPUT', 'Specify the lead or the buyer, not both.', '{"field": "buyerId"}');
    elsif new.lead_id is not null then
      select l.project_id, l.organization_id into new.project_id, new.organization_id from app_public.leads l
        where l.id = new.lead_id;
    elsif new.buyer_id is not null then
      select b.project_id, b.organization_id into new.project_id, new.organization_id from app_public.buyers b
        where b.id = new.buyer_id;
    elsif new.project_id is not null then
      select p.organization_id into new.organization_id from app_public.projects p where p.id = new.project_id;
    elsif new.organization_id is null then
      perform app_hidden.fail('BAD_USER_INPUT',
        'Specify the lead, the buyer, the project or the organization that the task is for.',
        '{"field": "organizationId"}');
    end if;
  end if;
  if new.assignee_id is not null and (tg_op = 'INSERT' or new.assignee_id is distinct from old.assignee_id)
    and not exists (
    select from app_public.organization_user_connections m
    where m.user_id = new.assignee_id
      and (m.organization_id = new.organization_id
        or m.organization_id in (select p.organization_id from app_public.project_organizations p
          where p.project_id = new.project_id))) then
    perform app_hidden.fail('BAD_USER_INPUT',
      'A task can only be assigned to a member of the organization, or of one that takes part in the project.',
      '{"field": "assigneeId"}');
  end if;
  -- The default assignee is the creator; for a task of a workflow, the one that its step defines. Viewers who may not
  -- create it are refused.
  if tg_op = 'INSERT' and new.assignee_id is null and app_public.current_user_id() is not null
    and not coalesce(app_hidden.is_service(), false) then
    new.assignee_id := app_public.current_user_id();
  end if;
  if tg_op = 'UPDATE' and new.status is distinct from old.status then
    new.started_at := case when new.status = 'OPEN' then null else coalesce(new.started_at, now()) end;
    new.completed_at := case when new.status = 'COMPLETED' then now() end;
    new.completed_by_id := case when new.status = 'COMPLETED' then app_public.current_user_id() end;
  end if;
  return new;
end $$;
create trigger _010_prepare before insert or update on app_public.tasks for each row
  execute function app_private.tg_tasks__prepare();
create trigger _060_refuse_archived before insert or update or delete on app_public.tasks for each row
  execute function app_private.tg__refuse_archived();

create function app_public.tasks_is_overdue(t app_public.tasks) returns boolean
language sql stable as $$ select t.due_at is not null and t.due_at < now()
  and t.status not in ('COMPLETED', 'CANCELLED') $$;

create function app_hidden.end_of_viewers_day() returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (date_trunc('day', now() at time zone z.name) + interval '1 day') at time zone z.name
  from (select coalesce((select u.time_zone::text from app_public.users u where u.id = app_public.current_user_id()),
    'UTC') as name) z
$$;
comment on function app_hidden.end_of_viewers_day() is 'When the day ends where the viewer is.';

-- In SQL and without a query, so that they are inlined.
create function app_public.tasks_filter_mine(t app_public.tasks, value boolean) returns boolean
language sql stable as $$
  select case when value then t.assignee_id = app_public.current_user_id()
    else t.assignee_id is distinct from app_public.current_user_id() end
$$;
create function app_public.tasks_filter_open(t app_public.tasks, value boolean) returns boolean
language sql stable as $$
  select case when value then t.status in ('OPEN', 'IN_PROGRESS', 'WAITING')
    else t.status in ('COMPLETED', 'CANCELLED') end
$$;
create function app_public.tasks_filter_overdue(t app_public.tasks, value boolean) returns boolean
language sql stable as $$
  select case when value then t.due_at < now() and t.status in ('OPEN', 'IN_PROGRESS', 'WAITING')
    else t.due_at is null or t.due_at >= now() or t.status in ('COMPLETED', 'CANCELLED') end
$$;
create function app_public.tasks_filter_due(t app_public.tasks, value boolean) returns boolean
language sql stable as $$
  select case when value then t.due_at < app_hidden.end_of_viewers_day()
      and t.status in ('OPEN', 'IN_PROGRESS', 'WAITING')
    else t.due_at is null or t.due_at >= app_hidden.end_of_viewers_day() or t.status in ('COMPLETED', 'CANCELLED') end
$$;
grant execute on function app_public.tasks_filter_mine, app_public.tasks_filter_open, app_public.tasks_filter_overdue,
  app_public.tasks_filter_due to plat_user, plat_anonymous;
comment on function app_public.tasks_filter_mine is
  E'@filter mine\n\nTrue: only tasks assigned to the viewer. False: only other tasks.';
comment on function app_public.tasks_filter_open is
  E'@filter open\n'
  '@impliesList status OPEN,IN_PROGRESS,WAITING\n\n'
  'True: only open tasks. False: only completed and cancelled tasks.';
comment on function app_public.tasks_filter_overdue is
  E'@filter overdue\n'
  '@impliesList status OPEN,IN_PROGRESS,WAITING\n\n'
  'True: only open tasks whose due time has passed. False: all other tasks.';
comment on function app_public.tasks_filter_due is
  E'@filter due\n@impliesList status OPEN,IN_PROGRESS,WAITING\n\n'
  'True: only open tasks that are due today, in the viewer''s time zone, or overdue. False: all other tasks.';

create function app_hidden.viewer_tasks_of_deals() returns setof uuid
language plpgsql stable security definer rows 100 set search_path = pg_catalog, pg_temp as $$
declare
  projects constant uuid[] := app_hidden.viewer_own_projects('lead.read');
begin
  return query
    select t.id from app_public.leads l join app_public.tasks t on t.lead_id = l.id and t.deleted_at is null
      where l.assignee_id = app_public.current_user_id() and l.project_id = any (projects) and l.deleted_at is null
    union
    select t.id from app_hidden.viewer_assigned_buyers('buyer.read') b
      join app_public.tasks t on t.buyer_id = b and t.deleted_at is null;
end $$;
comment on function app_hidden.viewer_tasks_of_deals() is
  'Tasks about leads and purchases assigned to the viewer, if they see only their own, regardless of the assignee '
  'of the task.';

create function app_public.tasks_allowed_transitions(t app_public.tasks) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('task', to_jsonb(t)) $$;

grant execute on function app_public.tasks_is_overdue, app_public.tasks_allowed_transitions,
  app_public.leads_filter_has_open_task to plat_user, plat_anonymous;
comment on function app_public.tasks_is_overdue is
  E'@notNull\n\nWhether the due date has passed and the task is not completed.';
comment on function app_public.tasks_allowed_transitions is E'@notNull\n\nStatus transitions that the viewer can make.';

do $$
declare
  -- Team members who see the lead or purchase can work on its tasks.
  condition constant text := $s$case
    when num_nonnulls(lead_id, buyer_id) > 0 then %s
    else organization_id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[]) and %s end$s$;
  seers constant text := format(condition, app_private.deal_child_condition('tasks', 'lead.read', 'buyer.read'),
    'true');
  workers constant text := format(condition, app_private.deal_child_condition('tasks', 'lead.write', 'buyer.write'),
    '(select app_hidden.scopes_allow(''lead.write''))');
begin
  execute format('create policy seers on app_public.tasks for select to plat_user using (deleted_at is null and %s)',
    seers);
  execute format('create policy workers_insert on app_public.tasks for insert to plat_user with check (%s)', workers);
  execute format('create policy workers_update on app_public.tasks for update to plat_user using (%s)', workers);
  execute format('create policy workers_delete on app_public.tasks for delete to plat_user
    using ((created_by_id = (select app_public.current_user_id())
      or organization_id = any ((select app_hidden.viewer_organizations(''org.admin''))::uuid[])) and %s)', workers);
end $$;
