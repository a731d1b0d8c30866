-- Starting, pausing, resuming and cancelling executions. Members run workflows for the records that they see.

create function app_private.require_workflow(id uuid, field text) returns app_public.workflows
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  workflow app_public.workflows;
begin
  perform app_hidden.require_viewer();
  select w.* into workflow from app_public.workflows w where w.id = require_workflow.id and w.deleted_at is null
    and w.organization_id = any ((select app_hidden.viewer_organizations('workflow.read'))::uuid[]);
  if workflow.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such workflow.', jsonb_build_object('field', field));
  end if;
  perform app_hidden.require_organization(workflow.organization_id, 'workflow.run');
  return workflow;
end $$;
comment on function app_private.require_workflow(uuid, text) is 'The workflow; refuses viewers who may not run it.';

create function app_private.require_enabled_workflow(id uuid, field text) returns app_public.workflows
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  workflow app_public.workflows := app_private.require_workflow(id, field);
begin
  if workflow.status <> 'ENABLED' then
    perform app_hidden.fail('CONFLICT', format('This workflow is %s; only ENABLED workflows can be started.',
      workflow.status), jsonb_build_object('field', field));
  end if;
  if exists (select from app_public.projects p where p.id = workflow.project_id and p.archived_at is not null) then
    perform app_hidden.fail('PROJECT_ARCHIVED',
      'The project of this workflow is archived and read-only; change its status first.');
  end if;
  return workflow;
end $$;
comment on function app_private.require_enabled_workflow(uuid, text) is
  'The workflow; refuses viewers who may not run it, and workflows that are not ENABLED.';
grant execute on function app_private.require_enabled_workflow(uuid, text) to plat_user, plat_anonymous;

create function app_hidden.visible_subjects(subject_type text, ids uuid[]) returns setof uuid
language plpgsql stable rows 100 as $$
begin
  -- As the viewer: the policies of the tables say which.
  return query execute format('select r.id from app_public.%I r where r.id = any ($1) and r.deleted_at is null',
    case subject_type when 'LEAD' then 'leads' when 'BUYER' then 'buyers' when 'RESERVATION' then 'reservations'
      when 'UNIT' then 'units'
      when 'APPOINTMENT' then 'appointments' else 'tasks' end) using ids;
end $$;
comment on function app_hidden.visible_subjects(text, uuid[]) is 'Those of the records that the viewer sees.';

-- One subject.
create function app_private.begin_execution(workflow_id uuid, subject_id uuid,
  context jsonb) returns app_public.workflow_executions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  workflow app_public.workflows := app_private.require_enabled_workflow(workflow_id, 'workflowId');
  started uuid;
  result app_public.workflow_executions;
  existing app_public.workflow_executions;
  subject record;
begin
  select s.*, p.archived_at is not null as is_archived into subject
    from app_private.workflow_subjects(workflow.subject_type, array[subject_id]) s
      left join app_public.projects p on p.id = s.project_id;
  if subject.id is null then
    perform app_hidden.fail('CONFLICT', 'This purchase is cancelled; no workflow can be started for it.',
      '{"field": "subjectId"}');
  elsif subject.organization_id <> workflow.organization_id or subject.project_id is distinct
    from coalesce(workflow.project_id, subject.project_id) then
    perform app_hidden.fail('BAD_USER_INPUT', 'The workflow does not apply to records of this project.',
      '{"field": "subjectId"}');
  elsif subject.is_archived then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  end if;
  select s into started from app_private.start_workflow_executions(workflow, array[subject_id],
    case when app_hidden.setting('token_id') is null then 'MANUAL' else 'API' end, null, app_public.current_user_id(),
      context) s;
  select e.* into result from app_public.workflow_executions e where e.id = started;
  if result.id is null then
    select e.* into existing from app_public.workflow_executions e where e.workflow_id = workflow.id
      and e.subject_id = subject_id order by e.id desc limit 1;
    perform app_hidden.fail('CONFLICT', case when existing.status in ('PENDING', 'RUNNING', 'PAUSED')
      then 'The workflow is already running for this subject.'
        else 'The workflow has already run for this subject and does not allow another run.' end,
      jsonb_strip_nulls(jsonb_build_object('field', 'subjectId', 'existingId', existing.id)));
  end if;
  return result;
end $$;
comment on function app_private.begin_execution(uuid, uuid, jsonb) is
  'Starts a workflow for one subject, which the caller was seen to see.';
grant execute on function app_private.begin_execution(uuid, uuid, jsonb) to plat_user;

create function app_public.create_workflow_execution(workflow_id uuid, subject_id uuid,
  context jsonb default null) returns app_public.workflow_executions
language plpgsql volatile as $$
declare
  workflow app_public.workflows := app_private.require_enabled_workflow(workflow_id, 'workflowId');
begin
  if context is not null and (jsonb_typeof(context) <> 'object' or length(context::text) > 20000) then
    perform app_hidden.fail('BAD_USER_INPUT', 'context must be an object with at most 20,000 characters.',
      '{"field": "context"}');
  end if;
  if subject_id is null or not exists (select
    from app_hidden.visible_subjects(workflow.subject_type, array[subject_id])) then
    perform app_hidden.fail('NOT_FOUND', format('There is no such %s.', lower(workflow.subject_type)),
      '{"field": "subjectId"}');
  end if;
  return app_private.begin_execution(workflow.id, subject_id, context);
end $$;
comment on function app_public.create_workflow_execution is
  E'@arg workflow_id Id of the workflow; its status must be ENABLED.\n@arg subject_id Id of the record to run for, '
  'of the workflow''s `subjectType`.\n@arg context Data for conditions and templates of the steps, available as '
  '`context`.\n\n'
  'Starts a workflow for a record, regardless of its trigger and conditions. Refused with CONFLICT and '
  '`existingId` if `reentry` does not allow it. Requires the permission workflow.run.';

comment on domain app_public.leads_filter is E'@inputType LeadsFilter\n\nWhich leads; the filter of their lists.';

create function app_hidden.leads_of_filter(organization_id uuid, project_id uuid, filter jsonb, field text)
returns setof uuid
language plpgsql stable rows 1000 as $$
declare
  f jsonb := jsonb_strip_nulls(filter);
  -- $1 is the organization, $2 the filter, $3 the project
  known constant jsonb := jsonb_build_object(
    'status', '$2 -> ''status'' ? l.status',
    'projectIds', 'l.project_id = any (array(select app_hidden.record_id(''projects'', i, $4) '
      'from jsonb_array_elements_text($2 -> ''projectIds'') i))',
    'assigneeIds', '$2 -> ''assigneeIds'' ? l.assignee_id::text',
    'leadSourceIds', '$2 -> ''leadSourceIds'' ? l.source_id::text',
    'unassigned', '(l.assignee_id is null) = ($2 ->> ''unassigned'')::boolean',
    'origin', '$2 -> ''origin'' ? l.origin',
    'tags', 'l.tags::text[] && array(select jsonb_array_elements_text($2 -> ''tags''))',
    'email', 'app_public.leads_filter_email(l, $2 ->> ''email'')',
    'phone', 'app_public.leads_filter_phone(l, $2 ->> ''phone'')',
    'query', 'app_public.leads_filter_query(l, $2 ->> ''query'')',
    'isAgent', 'l.is_agent = ($2 ->> ''isAgent'')::boolean',
    'externalId', 'app_public.leads_filter_external_id(l, $2 ->> ''externalId'')',
    'hasOpenTask', 'app_public.leads_filter_has_open_task(l, ($2 ->> ''hasOpenTask'')::boolean)',
    'registeredAt', 'l.registered_at <@ app_hidden.range_of(null::tstzrange, $2 -> ''registeredAt'' ->> ''from'', $2 '
      '-> ''registeredAt'' ->> ''to'')',
    'updatedAt', 'l.updated_at <@ app_hidden.range_of(null::tstzrange, $2 -> ''updatedAt'' ->> ''from'', $2 '
      '-> ''updatedAt'' ->> ''to'')',
    'lastInteractionAt', 'l.last_interaction_at <@ app_hidden.range_of(null::tstzrange, $2 -> ''lastInteractionAt'' '
      '->> ''from'', $2 -> ''lastInteractionAt'' ->> ''to'')',
    'includeDeleted', '($2 ->> ''includeDeleted'')::boolean is not null');
  unknown text;
begin
  select k into unknown from jsonb_object_keys(f) k where not known ? k or (k = 'includeDeleted' and (f ->> k)::boolean)
    limit 1;
  if unknown is not null then
    perform app_hidden.fail('BAD_USER_INPUT', format('%s cannot be used to select leads for this.', unknown),
      jsonb_build_object('field', field || '.' || unknown));
  end if;
  return query execute 'select l.id from app_public.leads l where ($1 is null or l.organization_id = $1) '
    'and ($3 is null or l.project_id = $3)'
    || coalesce((select string_agg(' and ' || (known ->> k), '') from jsonb_object_keys(f) k), '')
      using organization_id, f, project_id, field || '.projectIds';
end $$;
comment on function app_hidden.leads_of_filter(uuid, uuid, jsonb, text) is
  'Leads of an organization, of its project, or of all where neither is given, that match a LeadsFilter as the viewer '
  'sees them; refuses members that it does not know.';

create function app_private.begin_batch(workflow_id uuid, subject_ids uuid[], filter jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  workflow app_public.workflows := app_private.require_enabled_workflow(workflow_id, 'id');
  batch_id uuid;
  amount int;
begin
  insert into app_private.workflow_batches (workflow_id, started_by_id, filter, matched)
    values (workflow.id, app_public.current_user_id(), filter, cardinality(subject_ids)) returning id into batch_id;
  select count(*) into amount from app_private.start_workflow_executions(workflow, subject_ids, 'BATCH', null,
    app_public.current_user_id(), batch_id => batch_id);
  update app_private.workflow_batches b set started = amount where b.id = batch_id;
end $$;
comment on function app_private.begin_batch(uuid, uuid[], jsonb) is
  'Starts a workflow for all of the subjects, which the caller was seen to see.';
grant execute on function app_private.begin_batch(uuid, uuid[], jsonb) to plat_user;

create function app_hidden.most_subjects_of_batch() returns int
language sql immutable parallel safe as $$ select 150000 $$;
comment on function app_hidden.most_subjects_of_batch() is 'How many subjects a batch of a workflow can have.';

create function app_public.batch_workflow(id uuid, subject_ids app_public.id_or_slug[] default null,
  leads_filter app_public.leads_filter default null)
returns app_public.workflows
language plpgsql volatile as $$
declare
  most constant int := app_hidden.most_subjects_of_batch();
  workflow app_public.workflows := app_private.require_enabled_workflow(batch_workflow.id, 'id');
  given uuid[];
  targets uuid[];
begin
  if num_nonnulls(subject_ids, leads_filter) <> 1 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either subjectIds or leadsFilter.',
      '{"field": "subjectIds"}');
  end if;
  if leads_filter is not null then
    if workflow.subject_type <> 'LEAD' then
      perform app_hidden.fail('BAD_USER_INPUT',
        format('This workflow runs for subjects of the kind %s; list them in subjectIds.', workflow.subject_type),
        '{"field": "leadsFilter"}');
    end if;
    targets := array(select m from app_hidden.leads_of_filter(workflow.organization_id, workflow.project_id,
      leads_filter, 'leadsFilter') m limit most + 1);
  else
    if exists (select from unnest(subject_ids::text[]) i
      where i !~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$') then
      perform app_hidden.fail('BAD_USER_INPUT', 'One of these is not a valid id; use the ids that the API returned, '
        'UUIDs.',
        '{"field": "subjectIds"}');
    end if;
    given := array(select distinct i::uuid from unnest(subject_ids::text[]) i);
    targets := array(select v from app_hidden.visible_subjects(workflow.subject_type, given) v);
    if cardinality(targets) < cardinality(given) then
      perform app_hidden.fail('NOT_FOUND', format('%s of these subjects do not exist.',
        cardinality(given) - cardinality(targets)), '{"field": "subjectIds"}');
    end if;
  end if;
  if cardinality(targets) > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'A batch can have at most 150,000 subjects.',
      jsonb_build_object('limit', most, 'field', case when leads_filter is null then 'subjectIds'
        else 'leadsFilter' end));
  end if;
  perform app_private.begin_batch(workflow.id, targets, leads_filter);
  select w.* into workflow from app_public.workflows w where w.id = workflow.id;
  return workflow;
end $$;
comment on function app_public.batch_workflow is
  E'@arg id Id of the workflow; its status must be ENABLED.\n@arg subject_ids Ids of the records to start '
  'executions for, at most 150,000.\n@arg leads_filter Selects the leads to start executions for, among those that '
  'the viewer can see.\n\n'
  'Starts a workflow for many records at once. Records of other projects, and records that `reentry` excludes, are '
  'skipped. Requires the permission workflow.run.';

-- Pausing, resuming, cancelling. A lock on the row of an execution is held only between two steps. A step that
-- calls somebody outside takes longer than a transaction: its worker holds the execution, by an advisory lock of
-- its connection.
create function app_private.execution_lock(id uuid) returns bigint
language sql immutable as $$ select hashtextextended('plat.workflow_execution ' || id, 0) $$;
comment on function app_private.execution_lock(uuid) is
  'The advisory lock held while a long step of the execution runs.';

create function app_private.workflow_lock(id uuid) returns bigint
language sql immutable as $$ select hashtextextended('plat.workflow ' || id, 0) $$;
comment on function app_private.workflow_lock(uuid) is
  'The advisory lock that a worker shares while it leases executions of the workflow for a long step; cancelling '
  'all of them takes it exclusively.';

create function app_private.require_execution(id uuid) returns app_public.workflow_executions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  execution app_public.workflow_executions;
begin
  if not app_private.viewer_sees('app_public.workflow_executions', id) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such workflow execution.', '{"field": "id"}');
  end if;
  perform app_hidden.require_organization(e.organization_id, 'workflow.run') from app_public.workflow_executions e
    where e.id = require_execution.id;
  select e.* into execution from app_public.workflow_executions e where e.id = require_execution.id for no key update;
  return execution;
end $$;
comment on function app_private.require_execution(uuid) is
  'The execution, locked, hence between two steps; refuses viewers who cannot see it or may not run its workflow.';

create function app_private.require_step_of_execution(execution app_public.workflow_executions,
  wanted text) returns void
language plpgsql stable as $$
begin
  if not exists (select from app_hidden.transitions t where t.subject = 'workflow_execution'
    and t.from_state = execution.status and t.to_state = wanted and not t.by_service) then
    perform app_hidden.fail('INVALID_TRANSITION',
      format('A workflow execution with the status %s cannot become %s.', execution.status, wanted),
      jsonb_build_object('from', execution.status, 'to', wanted, 'field', 'status', 'allowedTransitions', (
        select coalesce(jsonb_agg(t.to_state order by t.to_state), '[]') from app_hidden.transitions t
        where t.subject = 'workflow_execution' and t.from_state = execution.status and not t.by_service)));
  end if;
end $$;
comment on function app_private.require_step_of_execution(app_public.workflow_executions, text) is
  'Refuses a step by hand that the states do not list, also one to where the execution is already.';

create function app_private.pause_execution(id uuid, reason text,
  resume_at timestamptz) returns app_public.workflow_executions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  execution app_public.workflow_executions := app_private.require_execution(id);
begin
  perform app_private.require_step_of_execution(execution, 'PAUSED');
  update app_public.workflow_executions e set status = 'PAUSED', paused_at = now(),
    paused_by_id = app_public.current_user_id(), pause_reason = reason, resume_at = resume_at
    where e.id = execution.id returning e.* into execution;
  return execution;
end $$;

create function app_private.resume_executions(ids uuid[]) returns setof app_public.workflow_executions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query
    update app_public.workflow_executions e set status = 'RUNNING', resumed_at = now(), resume_at = null
      where e.id = any (ids) and e.status = 'PAUSED' returning e.*;
  perform app_private.call_workflow_engine();
end $$;
comment on function app_private.resume_executions(uuid[]) is 'Resumes those of the executions that are paused.';

create function app_private.resume_execution(id uuid) returns app_public.workflow_executions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  execution app_public.workflow_executions := app_private.require_execution(id);
begin
  perform app_private.require_step_of_execution(execution, 'RUNNING');
  select r.* into execution from app_private.resume_executions(array[execution.id]) r;
  return execution;
end $$;

create function app_private.cancel_executions(ids uuid[], reason text) returns setof app_public.workflow_executions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- First, so that the following statements see the changes of earlier holders of the locks.
  perform from app_public.workflow_executions e where e.id = any (ids) order by e.id for no key update;
  return query
    with cancelled as (
      update app_public.workflow_executions e set status = 'CANCELLED', cancelled_at = now(), cancel_reason =
        left(reason, 20000), scheduled_at = null, resume_at = null,
          holder = null, held_until = null
        where e.id = any (ids) and e.status in ('PENDING', 'RUNNING', 'PAUSED')
        returning e.*
    ), waiting as (
      delete from app_private.workflow_waits w where w.execution_id = any (ids)
    ), given_up as (
      update app_public.workflow_step_runs r set status = 'CANCELLED', finished_at = now() from cancelled c
        where r.execution_id = c.id and r.status = 'RUNNING'
    )
    select c.* from cancelled c;
end $$;
comment on function app_private.cancel_executions(uuid[], text) is 'Cancels those of the executions that are not over.';

create function app_private.cancel_execution(id uuid, reason text) returns app_public.workflow_executions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  execution app_public.workflow_executions;
begin
  -- Before the row, as its worker does: when this returns, no external call is in progress. A call of its worker may
  -- take longer than a lock is waited for otherwise.
  perform set_config('lock_timeout', '20s', true);
  perform pg_advisory_xact_lock(app_private.execution_lock(id));
  execution := app_private.require_execution(id);
  perform app_private.require_step_of_execution(execution, 'CANCELLED');
  select c.* into execution from app_private.cancel_executions(array[execution.id], reason) c;
  return execution;
end $$;
grant execute on function app_private.pause_execution, app_private.resume_execution, app_private.cancel_execution to
  plat_user;
comment on function app_private.pause_execution(uuid, text, timestamptz) is
  'Pauses an execution that the viewer was seen to see.';
comment on function app_private.resume_execution(uuid) is 'Resumes an execution that the viewer was seen to see.';
comment on function app_private.cancel_execution(uuid, text) is 'Cancels an execution that the viewer was seen to see.';

create function app_hidden.see_execution(id uuid) returns uuid
language plpgsql stable as $$
begin
  perform app_hidden.require_viewer();
  if not exists (select from app_public.workflow_executions e where e.id = see_execution.id) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such workflow execution.', '{"field": "id"}');
  end if;
  return see_execution.id;
end $$;
comment on function app_hidden.see_execution(uuid) is 'The id of an execution; refuses a viewer who does not see it.';

create function app_public.pause_workflow_execution(id uuid, reason text default null,
  resume_at timestamptz default null) returns app_public.workflow_executions
language plpgsql volatile as $$
begin
  perform app_hidden.see_execution(pause_workflow_execution.id);
  if resume_at <= now() or resume_at > now() + interval '5 years' then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The time at which an execution resumes must be in the future, within five years.',
      '{"field": "resumeAt"}');
  end if;
  return app_private.pause_execution(pause_workflow_execution.id,
    app_hidden.checked(nullif(btrim(reason), ''), 'app_public.long_text', 'reason'), resume_at);
end $$;
comment on function app_public.pause_workflow_execution is $$
@arg id Id of the execution; its status must be RUNNING.
@arg reason Reason, as free text.
@arg resume_at When it resumes automatically. Default: when a user resumes it.

Pauses an execution; a step that is running finishes first. Requires the permission workflow.run.$$;

create function app_public.resume_workflow_execution(id uuid) returns app_public.workflow_executions
language plpgsql volatile as $$
begin
  perform app_hidden.see_execution(resume_workflow_execution.id);
  return app_private.resume_execution(resume_workflow_execution.id);
end $$;
comment on function app_public.resume_workflow_execution is
  E'@arg id Id of the execution; its status must be PAUSED.\n\n'
  'Resumes a paused execution. Steps that became due in the meantime run immediately; a failed step is retried. '
  'Requires the permission workflow.run.';

create function app_public.cancel_workflow_execution(id uuid,
  reason text default null) returns app_public.workflow_executions
language plpgsql volatile as $$
begin
  perform app_hidden.see_execution(cancel_workflow_execution.id);
  return app_private.cancel_execution(cancel_workflow_execution.id,
    app_hidden.checked(nullif(btrim(reason), ''), 'app_public.long_text', 'reason'));
end $$;
comment on function app_public.cancel_workflow_execution is
  E'@arg id Id of the execution; its status must be PENDING, RUNNING or PAUSED.\n@arg reason Reason, as free '
  'text.\n\n'
  'Stops an execution for good. When the mutation returns, no step is running and no further step will start. '
  'Requires the permission workflow.run.';

comment on type app_public.cancel_workflow_executions_payload is
  E'@foreignKey (workflow_id) references workflows(id)|@fieldName workflow|@forwardDescription The workflow.\n\n'
  'Result of cancelling the executions of a workflow.';

comment on column app_public.cancel_workflow_executions_payload.workflow_id is E'@behavior -*\n\nThe workflow.';
comment on column app_public.cancel_workflow_executions_payload.cancelled_count is
  E'@notNull\n\nNumber of cancelled executions, including those that the viewer may not see.';
comment on column app_public.cancel_workflow_executions_payload.cancelled_at is
  E'@behavior -*\n\nTime of the cancellation.';

create function app_public.cancel_workflow_executions_payload_executions(p
  app_public.cancel_workflow_executions_payload) returns setof app_public.workflow_executions
language sql stable rows 100 as $$
  select e.* from app_public.workflow_executions e
  where e.workflow_id = p.workflow_id and e.status = 'CANCELLED' and e.cancelled_at = p.cancelled_at order by e.id desc
$$;
comment on function app_public.cancel_workflow_executions_payload_executions is
  E'@ordered\n@behavior -queryField\n\nCancelled executions that the viewer may see, latest first.';

create function app_public.cancel_workflow_executions(workflow_id uuid,
  reason text default null) returns app_public.cancel_workflow_executions_payload
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  workflow app_public.workflows := app_private.require_workflow(workflow_id, 'workflowId');
  ids uuid[];
  amount int;
  rest int;
  held uuid;
begin
  reason := app_hidden.checked(nullif(btrim(reason), ''), 'app_public.long_text', 'reason');
  -- Those of others: of leads that are not the viewer's to see.
  if not app_hidden.organization_can(workflow.organization_id, 'workflow.manage')
    and not app_hidden.organization_can(workflow.organization_id, 'lead.read') then
    perform app_hidden.fail('FORBIDDEN',
      'This requires the permission workflow.manage, because some of the executions concern leads that are not '
      'assigned to you.',
      '{"permission": "workflow.manage"}');
  end if;
  -- From here on, no worker leases one of them for a call. (Locking a row that turns out to be leased would delay its
  -- holder.)
  perform set_config('lock_timeout', '20s', true);
  perform pg_advisory_xact_lock(app_private.workflow_lock(workflow.id));
  ids := array(select e.id from app_public.workflow_executions e where e.workflow_id = workflow.id
    and e.status in ('PENDING', 'RUNNING', 'PAUSED') and e.holder is null
    order by e.id for no key update);
  select count(*) into amount from app_private.cancel_executions(ids, reason);
  -- Waits for executions that a worker holds: when this returns, no external call is in progress.
  for held in
    select e.id from app_public.workflow_executions e where e.workflow_id = workflow.id
      and e.status in ('PENDING', 'RUNNING', 'PAUSED') order by e.id
  loop
    perform pg_advisory_xact_lock(app_private.execution_lock(held));
    select count(*) into rest from app_private.cancel_executions(array[held], reason);
    amount := amount + rest;
  end loop;
  return row(workflow.id, amount, now());
end $$;
comment on function app_public.cancel_workflow_executions is
  E'@arg workflow_id Id of the workflow whose executions are cancelled.\n@arg reason Reason, as free text.\n\n'
  'Cancels all executions of a workflow that are PENDING, RUNNING or PAUSED. When the mutation returns, no step is '
  'running and no further step will start. Requires the permission workflow.run.';
grant execute on function app_public.create_workflow_execution, app_public.batch_workflow,
  app_public.pause_workflow_execution, app_public.resume_workflow_execution, app_public.cancel_workflow_execution,
  app_public.cancel_workflow_executions, app_public.cancel_workflow_executions_payload_executions to plat_user,
  plat_anonymous;
grant execute on function app_private.execution_lock to plat_worker;
