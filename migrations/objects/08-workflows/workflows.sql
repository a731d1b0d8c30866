-- Workflows: automations of an organization. A trigger starts an execution for a record (the subject), which runs the
-- steps. DRAFT → ENABLED ⇄ DISABLED → ARCHIVED; only enabled ones can be started; running executions continue in any
-- state. Steps are immutable: new steps are a new revision, and an execution keeps the one that it started with.

create policy readers on app_public.workflows for select to plat_user
  using (deleted_at is null
    and organization_id = any ((select app_hidden.viewer_organizations('workflow.read'))::uuid[]));
create policy managers_delete on app_public.workflows for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('workflow.manage'))::uuid[]));

select app_private.make_record('workflows', 'workflow', 'workflow.manage');
select app_private.make_state_machine('workflows', 'workflow',
  steps => array[['DRAFT', 'ENABLED'], ['ENABLED', 'DISABLED'], ['DISABLED', 'ENABLED'], ['DISABLED', 'ARCHIVED']],
  initial => array['DRAFT']);

grant select on app_public.workflows to plat_user, plat_anonymous;

-- The grants are the input types; there is no policy to write by, since operations check the definition first.
grant insert (organization_id, project_id, name, description, subject_type, trigger, conditions, reentry),
  update (name, description, trigger, conditions, reentry), delete on app_public.workflows to plat_user;

comment on table app_public.workflows is
  'An automation: a sequence of steps that runs for a record when an event occurs, on a schedule or on request.';
comment on column app_public.workflows.project_id is
  E'@filter projectIds\n\nId of the project whose records it runs for; null for all records of the organization.';
comment on column app_public.workflows.name is 'Display title.';
comment on column app_public.workflows.description is 'Free-text description of the purpose.';
comment on column app_public.workflows.status is
  E'@filter\n\nStatus of the workflow; only ENABLED workflows are started.';
comment on column app_public.workflows.subject_type is E'@filter\n\nRecord type that executions run for.';
comment on column app_public.workflows.trigger is 'The trigger: {type, event, schedule, timeZone, filter}.';
comment on column app_public.workflows.trigger_type is E'@filter\n\nKind of the trigger.';
comment on column app_public.workflows.conditions is
  'Condition on the record, in JSON Logic; the trigger only starts the workflow if it is met.';
comment on column app_public.workflows.reentry is 'Whether the workflow may be started again for the same record.';
comment on column app_public.workflows.steps_revision is
  'Incremented when the steps are replaced; executions keep the revision that they started with.';
comment on column app_public.workflows.created_by_id is 'User who created it.';
comment on column app_public.workflows.principal_id is
  'The user on whose behalf the workflow acts, with that user''s permissions.';
comment on constraint workflows_principal_id_fkey on app_public.workflows is
  E'@fieldName principal\n@backwardBehavior -*\n\n'
  'The user on whose behalf it acts, who last created, changed or enabled it. Every step reads and changes only '
  'what that user may; the workflow is disabled when they can no longer manage workflows.';
comment on column app_public.workflows.disabled_reason is 'Reason why it is disabled; null if it is not disabled.';
comment on column app_public.workflows.enabled_at is 'When the workflow was last enabled; null if never.';
comment on column app_public.workflows.disabled_at is 'When the workflow was last disabled; null if never.';
comment on constraint workflows_organization_id_fkey on app_public.workflows is
  E'@parent\n'
  '@fieldName organization\n'
  '@foreignFieldName workflows\n'
  '@backwardPermission org.member\n'
  '@backwardDescription Workflows of the organization; null for non-members.\n\n'
  'The organization.';
comment on constraint workflows_project_id_fkey on app_public.workflows is
  E'@fieldName project\n@backwardBehavior -*\n\n'
  'Id of the project whose records it runs for; null for all records of the organization.';
comment on constraint workflows_created_by_id_fkey on app_public.workflows is
  E'@fieldName createdBy\n@backwardBehavior -*\n\nUser who created it.';

create policy readers on app_public.workflow_steps for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('workflow.read'))::uuid[]));

grant select on app_public.workflow_steps to plat_user, plat_anonymous;

comment on table app_public.workflow_steps is
  E'@behavior -operation\n\nOne action of a workflow; executions run them in order of `sequence`.';
comment on column app_public.workflow_steps.workflow_id is E'@behavior -*\n\nThe workflow.';
comment on column app_public.workflow_steps.organization_id is E'@behavior -*\n\nThe organization.';
comment on column app_public.workflow_steps.revision is
  E'@behavior -*\n\nThe revision of the steps that it belongs to.';
comment on column app_public.workflow_steps.sequence is 'Position among the steps, starting at 1.';
comment on column app_public.workflow_steps.type is 'Type of effect, such as a refund or a change of status.';
comment on column app_public.workflow_steps.name is 'Display title.';
comment on column app_public.workflow_steps.config is 'Configuration of the step; its fields depend on the type.';
comment on column app_public.workflow_steps.wait_seconds is
  'Delay in seconds: the duration of a WAIT, or the delay before another step.';
comment on column app_public.workflow_steps.checks is
  E'@behavior -*\n\nWhat reading its templates and addresses came to, by their path: the variables of each.';
comment on column app_public.workflow_steps.on_error is 'Action if the step fails.';
comment on constraint workflow_steps_wait on app_public.workflow_steps is
  'Must be at most 31,536,000 seconds (one year).';
comment on constraint workflow_steps_workflow_id_fkey on app_public.workflow_steps is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe workflow.';

create trigger _060_refuse_archived before insert or update or delete on app_public.workflows for each row
  execute function app_private.tg__refuse_archived();

insert into app_private.event_names (subject, column_name, value, name) values
  ('workflow', 'status', 'ENABLED', 'enabled'), ('workflow', 'status', 'DISABLED', 'disabled'),
  ('workflow', 'status', 'ARCHIVED', 'archived');

create function app_private.tg_workflow_steps__immutable() returns trigger
language plpgsql volatile as $$
begin
  raise exception 'steps of a workflow are never changed; write a new revision' using errcode = 'restrict_violation';
end $$;
create trigger _100_immutable before update on app_public.workflow_steps for each row
  execute function app_private.tg_workflow_steps__immutable();

create function app_private.tg_workflows__times() returns trigger
language plpgsql volatile as $$
begin
  if new.status = 'ENABLED' then
    new.enabled_at := now();
    new.disabled_reason := null;
  elsif new.status = 'DISABLED' then
    new.disabled_at := now();
    new.disabled_reason := coalesce(nullif(new.disabled_reason, old.disabled_reason), 'Disabled by hand.');
  end if;
  return new;
end $$;
create trigger _400_times before update on app_public.workflows for each row
  when (old.status is distinct from new.status) execute function app_private.tg_workflows__times();

-- Fields.
create function app_public.workflows_enabled(w app_public.workflows) returns boolean
language sql stable as $$ select w.status = 'ENABLED' $$;

create function app_public.workflows_steps(w app_public.workflows) returns setof app_public.workflow_steps
language sql stable rows 10 as $$
  select s.* from app_public.workflow_steps s where s.workflow_id = w.id and s.revision = w.steps_revision
    order by s.sequence
$$;

create function app_public.workflows_allowed_transitions(w app_public.workflows) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('workflow', to_jsonb(w)) $$;
grant execute on function app_public.workflows_enabled, app_public.workflows_steps,
  app_public.workflows_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.workflows_enabled is
  E'@notNull\n\nWhether the status is ENABLED.';
comment on function app_public.workflows_steps is E'@ordered\n\nSteps of the current revision, in order.';
comment on function app_public.workflows_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';

-- Fields.
create function app_public.workflows_executions(w app_public.workflows,
  status app_public.workflow_execution_status[] default null)
returns setof app_public.workflow_executions
language sql stable rows 100 as $$
  select e.* from app_public.workflow_executions e
  where e.workflow_id = w.id and ($2 is null or e.status::text = any ($2::text[])) order by e.id desc
$$;

create function app_public.workflows_counts(w app_public.workflows) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(jsonb_object_agg(v.value, (
      select count(*) from app_public.workflow_executions e where e.workflow_id = w.id and e.status = v.value)), '{}')
  from app_public.workflow_execution_status_values v
  where exists (select from app_public.workflows k where k.id = w.id
    and k.organization_id = any ((select app_hidden.viewer_organizations('workflow.read'))::uuid[]))
$$;

grant execute on function app_public.workflows_executions, app_public.workflows_counts,
  app_public.workflow_executions_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.workflows_executions is
  E'@arg status Only executions that are in one of these states.\n\nExecutions, latest first.';
comment on function app_public.workflows_counts is E'@notNull\n\nNumber of executions by status.';

create function app_private.tg_workflows__follow() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  present bigint;
begin
  if new.status <> 'ENABLED' or new.deleted_at is not null then
    delete from app_private.workflow_triggers t where t.workflow_id = new.id;
    delete from app_private.workflow_runs r where r.workflow_id = new.id;
  elsif new.trigger_type in ('EVENT', 'SCHEDULE') then
    -- From now on: earlier events do not count, not even those of the same transaction.
    present := coalesce((select c.last_sequence from app_private.event_counters c
      where c.stream_id = new.organization_id), 0)
      + (select count(*) from app_private.pending_events e where e.transaction_id = pg_current_xact_id()::text::bigint
        and e.stream_id = new.organization_id);
    insert into app_private.workflow_triggers as t (workflow_id, organization_id, from_sequence)
      values (new.id, new.organization_id, present)
      on conflict (workflow_id) do update set from_sequence = excluded.from_sequence, next_run_at = null, error = null;
    insert into app_private.workflow_streams (organization_id, last_sequence)
      values (new.organization_id, present) on conflict do nothing;
    perform pg_notify('plat_triggers', new.trigger_type);
  else
    delete from app_private.workflow_triggers t where t.workflow_id = new.id;
  end if;
  return null;
end $$;
create trigger _700_follow after update on app_public.workflows for each row
  when (old.status is distinct from new.status or old.trigger is distinct from new.trigger or old.deleted_at is distinct
    from new.deleted_at)
  execute function app_private.tg_workflows__follow();

create function app_private.tg_workflows__keep_history() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if exists (select from app_public.workflow_executions e where e.workflow_id = old.id) then
    perform app_hidden.fail('CONFLICT',
      'This workflow cannot be deleted because it has executions; disable and archive it instead.', '{"field": "id"}');
  end if;
  return old;
end $$;
create trigger _800_keep_history before delete on app_public.workflows for each row
  execute function app_private.tg_workflows__keep_history();

-- Fields.
create function app_public.workflows_last_run_at(w app_public.workflows) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select e.inserted_at from app_public.workflow_executions e
  where e.workflow_id = w.id and e.organization_id = any ((select
    app_hidden.viewer_organizations('workflow.read'))::uuid[]) order by e.id desc limit 1
$$;

create function app_public.workflows_next_run_at(w app_public.workflows) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select t.next_run_at from app_private.workflow_triggers t
  where t.workflow_id = w.id and t.organization_id = any ((select
    app_hidden.viewer_organizations('workflow.read'))::uuid[])
$$;

create function app_public.workflows_trigger_error(w app_public.workflows) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select t.error from app_private.workflow_triggers t
  where t.workflow_id = w.id and t.organization_id = any ((select
    app_hidden.viewer_organizations('workflow.read'))::uuid[])
$$;
grant execute on function app_public.workflows_last_run_at, app_public.workflows_next_run_at,
  app_public.workflows_trigger_error to plat_user, plat_anonymous;
comment on function app_public.workflows_last_run_at is 'When an execution was last started; null if never.';
comment on function app_public.workflows_next_run_at is
  'Next scheduled start; null if the trigger is not a SCHEDULE or the workflow is not enabled.';
comment on function app_public.workflows_trigger_error is
  'Last problem of the trigger since the workflow was enabled, with its time, such as a loop, a limit or a skipped '
  'record; null if there was none.';

create function app_private.tg_workflow_steps__segments() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  body text := new.config ->> 'body';
  -- The minimum length of a template; conditions and loops determine the length when it is rendered.
  amount int := case when body !~ '\{%'
    then app_hidden.message_segments(regexp_replace(body, '\{\{.*?\}\}', '', 'g')) end;
  most int := (select r.most_segments from app_private.message_rules r);
begin
  if amount > most then
    perform app_private.refuse_definition(format('steps[%s].config.body', new.sequence - 1),
      format('the text has %s segments, and at most %s are allowed: %s.', amount, most,
      'about 153 characters each, 67 where one of them is beyond the GSM alphabet, such as an emoji'));
  end if;
  return new;
end $$;
comment on function app_private.tg_workflow_steps__segments() is 'Refuses a text message that cannot but be too long.';
create trigger _200_segments before insert on app_public.workflow_steps for each row
  when (new.type = 'SEND_SMS' and jsonb_typeof(new.config -> 'body') = 'string')
    execute function app_private.tg_workflow_steps__segments();
