-- A workflow may do what its principal may: read the records of its conditions and texts, and change those of its
-- steps, all in the organization or project of the workflow. This is checked when it is created, changed or enabled,
-- when a trigger starts it, and at every step.

create function app_private.subject_permissions(subject_type text, changes boolean) returns text[]
language sql stable as $$
  select array(select distinct p.permission from app_hidden.record_types r
    cross join lateral unnest(case when changes then r.read_permissions || r.write_permission
      else r.read_permissions end) p (permission)
    -- Records related to a person are read and changed with the same permission as the person.
    where r.subject = any (array[lower(subject_type)] || case
        when not changes or subject_type = 'UNIT' then '{}'::text[]
        when subject_type = 'LEAD' then '{lead}' else '{lead, buyer}' end)
      and p.permission is not null
    order by p.permission)
$$;
comment on function app_private.subject_permissions(text, boolean) is
  'What it takes to read the subjects of workflows of a kind; with `changes`, to change them and the people they are '
  'of.';

create function app_private.definition_permissions(definition jsonb, event text) returns text[]
language sql stable as $$
  select array(select distinct p.permission from app_hidden.workflow_roots r
    left join app_hidden.record_types t on t.table_name = r.table_name
      or (r.root = 'event' and t.subject = split_part(event, '.', 1))
    cross join lateral unnest(case
      when t.table_name is not null then coalesce(t.read_permissions, '{audit.read}') when r.root = 'event'
        then '{audit.read}'
      when r.root = 'assignee' then '{org.member}' else '{}' end::text[]) p (permission)
    where definition::text ~ ('\m' || r.root || '\M') order by p.permission)
$$;
comment on function app_private.definition_permissions(jsonb, text) is
  'What it takes to read the records that a condition or the config of a step speaks of.';

create function app_private.step_permissions(step app_public.workflow_steps, subject_type text, event text)
returns text[]
language sql stable as $$
  select '{workflow.manage}'::text[]
    || app_private.subject_permissions(subject_type, (select t.changes_records from app_hidden.workflow_step_types t
      where t.type = step.type))
    -- Where a step names the record that it changes, that one.
    || case when step.config ->> 'record' in ('LEAD', 'BUYER')
      then app_private.subject_permissions(step.config ->> 'record', true) else '{}' end
    || app_private.definition_permissions(step.config, case when step.type = 'WAIT_FOR_EVENT'
      then step.config ->> 'event' else event end)
$$;
comment on function app_private.step_permissions(app_public.workflow_steps, text, text) is
  'What it takes to have a step done.';

create function app_private.trigger_permissions(w app_public.workflows) returns text[]
language sql stable as $$
  select '{workflow.manage}'::text[] || app_private.subject_permissions(w.subject_type, false)
    || app_private.definition_permissions(w.conditions, w.trigger ->> 'event')
$$;
comment on function app_private.trigger_permissions(app_public.workflows) is
  'What it takes to have subjects selected by the trigger and conditions of a workflow.';

create function app_private.workflow_lacks(w app_public.workflows) returns text
language sql stable as $$
  select app_private.lacking_permission(w.organization_id, w.project_id, app_private.trigger_permissions(w)
    || coalesce((select array_agg(distinct p.permission) from app_public.workflow_steps s
      cross join lateral unnest(app_private.step_permissions(s, w.subject_type, w.trigger ->> 'event')) p (permission)
      where s.workflow_id = w.id and s.revision = w.steps_revision), '{}'))
$$;
comment on function app_private.workflow_lacks(app_public.workflows) is
  'A permission that the viewer lacks for what a workflow does; null where they may do all of it.';

create function app_private.suspend_workflow(id uuid, reason text) returns void
language sql volatile as $$
  update app_public.workflows w set status = 'DISABLED', disabled_reason = reason
    where w.id = suspend_workflow.id and w.status = 'ENABLED' and w.deleted_at is null
$$;
comment on function app_private.suspend_workflow(uuid, text) is
  'Disables a workflow for the reason; running executions pause before their next step.';

select app_private.make_principal('app_public', 'workflows', 'principal_id', 'workflow', 'r.name',
  'r.deleted_at is null and r.status = ''ENABLED''', 'app_private.workflow_lacks(app_public.workflows)',
  'app_private.suspend_workflow(uuid, text)',
  takes_over => 'old.trigger is distinct from new.trigger or old.conditions is distinct from new.conditions '
    'or old.steps_revision <> new.steps_revision or (new.status = ''ENABLED'' and old.status <> ''ENABLED'')');

create function app_private.act_for_workflow(workflow app_public.workflows, permissions text[]) returns text
language plpgsql volatile as $$
declare
  lacking text;
begin
  if not app_private.act_as_principal(workflow.principal_id, workflow.principal_token_id) then
    return app_private.principal_ended(workflow.principal_id, workflow.principal_token_id);
  end if;
  lacking := app_private.lacking_permission(workflow.organization_id, workflow.project_id, permissions);
  return case when lacking is not null
    then format('Whoever answers for the workflow does not have the permission %s.', lacking) end;
end $$;
comment on function app_private.act_for_workflow(app_public.workflows, text[]) is
  'Acts as the principal of a workflow, until set_claims; says why the principal may not do what takes the '
  'permissions, null where they may.';
