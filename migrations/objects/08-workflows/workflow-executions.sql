-- An execution of a workflow for one subject. PENDING → RUNNING ⇄ PAUSED → COMPLETED, FAILED; PENDING, RUNNING, PAUSED
-- → CANCELLED. A step's effect, its run and the move to the next step are one transaction: an execution is always
-- visible between two steps, where pausing and cancelling take effect. An execution keeps the revision of steps that it
-- started with.

comment on column app_private.workflow_batches.started_by_id is
  E'@inert Its executions act on behalf of the principal of the workflow.\n\n'
  'Id of the user who started it; null if its trigger did.';
comment on table app_private.workflow_batches is
  'A batch start: by whom, with which filter, the number of matches, and the number of started executions (the '
  'other subjects already have one).';

create policy readers on app_public.workflow_executions for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('workflow.read'))::uuid[])
    -- PERF: no look-up for viewers who see all of them.
    and ((organization_id = any ((select app_hidden.viewer_organizations('lead.read'))::uuid[])
        and organization_id = any ((select app_hidden.viewer_organizations('buyer.read'))::uuid[]))
      or (project_id = any ((select app_hidden.viewer_projects('lead.read'))::uuid[])
        and project_id = any ((select app_hidden.viewer_projects('buyer.read'))::uuid[]))
      or num_nonnulls(lead_id, buyer_id) = 0
      or (select true from app_public.leads l where l.id = lead_id)
      or (select true from app_public.buyers b where b.id = buyer_id)));

select app_private.make_record('workflow_executions', 'workflow_execution', 'workflow.run');
select app_private.make_state_machine('workflow_executions', 'workflow_execution',
  steps => array[
    ['PENDING', 'RUNNING', 'service'], ['RUNNING', 'PAUSED', 'hand'], ['PAUSED', 'RUNNING', 'hand'],
    ['RUNNING', 'COMPLETED', 'service'], ['RUNNING', 'FAILED', 'service'], ['PAUSED', 'FAILED', 'service'],
    ['PENDING', 'CANCELLED', 'hand'], ['RUNNING', 'CANCELLED', 'hand'], ['PAUSED', 'CANCELLED', 'hand']],
  -- An execution that must not be started, such as one of a recursive workflow, is stored as FAILED, with the reason.
  initial => array['PENDING', 'FAILED']);

grant select on app_public.workflow_executions to plat_user, plat_anonymous;

comment on constraint workflow_executions_context_size on app_public.workflow_executions is
  'context must be an object with at most 20,000 characters.';
comment on index app_public.workflow_executions_live is 'The workflow is already running for this subject.';

-- Before the triggers of events, which omit columns that only the engine uses.
comment on column app_public.workflow_executions.reentry is
  E'@secret\n@behavior -*\n\nWhether the workflow could be started again for the subject when this began.';
-- No constraint: an execution may outlive the row of its event.
comment on table app_public.workflow_executions is
  E'@defaultOrder id desc\n'
  '@foreignKey (trigger_event_id) references events (id)|@fieldName triggerEvent|@forwardDescription The event that '
  'started it; null if something else did.|@backwardBehavior -*\n\n'
  'One run of a workflow, for one record.';
comment on column app_public.workflow_executions.depth is
  E'@secret\n@behavior -*\n\nHow many executions led to this one, each through what the one before did.';
comment on column app_public.workflow_executions.current_step is
  E'@secret\n\n'
  'The next step, or the one that is waiting; for failed and cancelled executions the step at which they ended; '
  'null if completed.';
comment on column app_public.workflow_executions.attempts is
  E'@secret\n\nNumber of failed attempts of the current step.';
comment on column app_public.workflow_executions.scheduled_at is
  E'@secret\n\n'
  'When the current step is due; null while it waits only for an event, and after the execution has ended.';
comment on column app_public.workflow_executions.holder is
  E'@secret\n@behavior -*\n\nThe connection of the worker that carries out a step which takes time.';
comment on column app_public.workflow_executions.held_until is
  E'@secret\n@behavior -*\n\nUntil when that worker holds it.';
comment on column app_public.workflow_executions.deaths is
  E'@secret\n@behavior -*\n\nHow many processes died while they executed the current step.';
comment on column app_public.workflow_executions.context is
  E'@personal\n@secret\n\nData given at the start, available as `context` in conditions and templates of the steps.';
comment on column app_public.workflow_executions.workflow_id is 'The workflow that is being executed.';
comment on column app_public.workflow_executions.steps_revision is
  'Revision of the workflow''s steps that it executes.';
comment on column app_public.workflow_executions.subject_type is 'Type of the record that it runs for.';
comment on column app_public.workflow_executions.subject_id is 'Id of the related record.';
comment on column app_public.workflow_executions.lead_id is
  'Id of the lead that the execution runs for, or that its subject belongs to.';
comment on column app_public.workflow_executions.buyer_id is
  'Id of the purchase that the execution runs for, or that its subject belongs to.';
comment on column app_public.workflow_executions.batch_id is
  'Id shared by all executions that were started in one batch.';
comment on column app_public.workflow_executions.status is E'@filter\n\nCurrent status.';
comment on column app_public.workflow_executions.trigger_type is 'Kind of trigger that started it.';
comment on column app_public.workflow_executions.trigger_event_id is E'@behavior -*\n\nThe event that started it.';
comment on column app_public.workflow_executions.started_by_id is
  E'@inert An execution acts on behalf of the principal of its workflow.\n\n'
  'Id of the user who started it; null if its trigger did.';
comment on column app_public.workflow_executions.started_at is 'When the first step started; null until then.';
comment on column app_public.workflow_executions.paused_at is 'When the execution was last paused; null if never.';
comment on column app_public.workflow_executions.paused_by_id is 'User who last paused it; null if a failed step did.';
comment on column app_public.workflow_executions.pause_reason is
  E'@personal\n\nReason for the last pause; null if never paused.';
comment on column app_public.workflow_executions.resumed_at is 'When the execution was last resumed; null if never.';
comment on column app_public.workflow_executions.resume_at is 'When a paused execution resumes automatically.';
comment on column app_public.workflow_executions.completed_at is
  'When the execution ended, successfully or not; null until then.';
comment on column app_public.workflow_executions.cancelled_at is 'When it was cancelled; null otherwise.';
comment on column app_public.workflow_executions.cancel_reason is
  E'@personal\n\nReason for the cancellation, as free text.';
comment on column app_public.workflow_executions.error is
  E'@personal\n\nError that ended the execution; null otherwise.';
comment on constraint workflow_executions_workflow_id_fkey on app_public.workflow_executions is
  E'@fieldName workflow\n@backwardBehavior -*\n\nThe workflow.';
comment on constraint workflow_executions_lead_id_fkey on app_public.workflow_executions is
  E'@fieldName lead\n@foreignFieldName workflowExecutions\n@backwardDescription Workflow executions about the lead '
  'and its records, latest first.\n\n'
  'Id of the lead that the execution runs for, or that its subject belongs to.';
comment on constraint workflow_executions_buyer_id_fkey on app_public.workflow_executions is
  E'@fieldName buyer\n@foreignFieldName workflowExecutions\n@backwardDescription Workflow executions about the '
  'purchase, latest first.\n\n'
  'Id of the purchase that the execution runs for, or that its subject belongs to.';
comment on constraint workflow_executions_started_by_id_fkey on app_public.workflow_executions is
  E'@fieldName startedBy\n@backwardBehavior -*\n\nUser who started it; null if its trigger did.';
comment on constraint workflow_executions_paused_by_id_fkey on app_public.workflow_executions is
  E'@fieldName pausedBy\n@backwardBehavior -*\n\nUser who last paused it.';

create policy seers_of_execution on app_public.workflow_step_runs for select to plat_user
  using ((select true from app_public.workflow_executions e where e.id = execution_id));

grant select on app_public.workflow_step_runs to plat_user, plat_anonymous;

comment on table app_public.workflow_step_runs is
  E'@behavior -operation\n'
  '@defaultOrder sequence asc, attempt asc\n'
  '@partOf execution_id\n\n'
  'One attempt to run a step.';
comment on column app_public.workflow_step_runs.execution_id is E'@behavior -*\n\nThe execution.';
comment on column app_public.workflow_step_runs.step_id is E'@behavior -*\n\nThe step.';
comment on column app_public.workflow_step_runs.sequence is 'Position of the step in the workflow, from 1.';
comment on column app_public.workflow_step_runs.attempt is 'Number of the attempt, from 1.';
comment on column app_public.workflow_step_runs.status is 'Current status.';
comment on column app_public.workflow_step_runs.started_at is 'When it began.';
comment on column app_public.workflow_step_runs.finished_at is 'When it ended.';
comment on column app_public.workflow_step_runs.output is
  E'@personal\n\nOutput of the step, available to later steps as `steps.<sequence>`.';
comment on column app_public.workflow_step_runs.error is
  E'@personal\n\nError of a failed step, or reason why it was skipped; null otherwise.';
comment on column app_public.workflow_step_runs.error_code is
  E'@impersonal\n\n'
  'Code of that error if it has one, such as LIMIT_EXCEEDED for a step that exceeds its computing time.';
comment on constraint workflow_step_runs_execution_id_fkey on app_public.workflow_step_runs is
  E'@forwardBehavior -*\n@foreignFieldName steps\n@backwardDescription Step runs so far, in order; one per attempt '
  'of a step.\n\n'
  'The execution.';
comment on constraint workflow_step_runs_step_id_fkey on app_public.workflow_step_runs is
  E'@fieldName step\n@backwardBehavior -*\n\nThe step.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('workflow_execution', 'status', 'PAUSED', 'paused'), ('workflow_execution', 'status', 'COMPLETED', 'completed'),
  ('workflow_execution', 'status', 'FAILED', 'failed'), ('workflow_execution', 'status', 'CANCELLED', 'cancelled');

-- Starting.
create function app_private.distinct_pairs(ids uuid[], event_ids uuid[]) returns table (id uuid, event_id uuid)
language sql immutable as $$
  select distinct u.id, u.event_id from unnest(distinct_pairs.ids, distinct_pairs.event_ids) u (id, event_id)
$$;
comment on function app_private.distinct_pairs(uuid[], uuid[]) is
  'The elements of two arrays by their place, each pair once; the second may be null.';

create function app_private.workflow_subjects(subject_type text, ids uuid[], event_ids uuid[] default null)
returns table (id uuid, organization_id uuid, project_id uuid, lead_id uuid, buyer_id uuid, event_id uuid)
language plpgsql stable as $$
#variable_conflict use_column
begin
  -- PERF: each record is looked up by its id. Joined with the events afterwards, hundreds of thousands of subjects were
  -- compared with each other, because the planner expects few rows of a function.
  case subject_type
    when 'LEAD' then return query
      select l.id, l.organization_id, l.project_id, l.id, null::uuid, g.event_id
        from app_private.distinct_pairs(ids, event_ids) g join app_public.leads l on l.id = g.id
        where l.deleted_at is null;
    when 'BUYER' then return query
      select b.id, b.organization_id, b.project_id, b.lead_id, b.id, g.event_id
        from app_private.distinct_pairs(ids, event_ids) g join app_public.buyers b on b.id = g.id
        where b.deleted_at is null and b.status <> 'CANCELLED';
    when 'RESERVATION' then return query
      select r.id, r.organization_id, r.project_id, r.lead_id, r.purchase_id, g.event_id
        from app_private.distinct_pairs(ids, event_ids) g join app_public.reservations r on r.id = g.id
        where r.deleted_at is null;
    when 'UNIT' then return query
      select u.id, u.organization_id, u.project_id, null::uuid, null::uuid, g.event_id
        from app_private.distinct_pairs(ids, event_ids) g join app_public.units u on u.id = g.id
        where u.deleted_at is null;
    when 'APPOINTMENT' then return query
      select a.id, a.organization_id, a.project_id, a.lead_id, a.buyer_id, g.event_id
        from app_private.distinct_pairs(ids, event_ids) g join app_public.appointments a on a.id = g.id
        where a.deleted_at is null;
    else return query
      select t.id, t.organization_id, t.project_id, t.lead_id, t.buyer_id, g.event_id
        from app_private.distinct_pairs(ids, event_ids) g join app_public.tasks t on t.id = g.id
        where t.deleted_at is null;
  end case;
end $$;
comment on function app_private.workflow_subjects(text, uuid[], uuid[]) is
  'Those of the records that are still there: where they belong, the lead or purchase they are of, and the event '
  'beside them in event_ids. Workflows do not run for cancelled purchases.';

create function app_private.call_workflow_engine() returns void
language sql volatile as $$ select pg_notify('plat_workflows', '') $$;
comment on function app_private.call_workflow_engine() is 'Tells the workers, at commit, that executions are due.';

-- PERF: without sequential scans, since a table that grew a moment ago looks small to the planner.
create function app_private.has_execution(workflow_id uuid, subject_id uuid, live boolean) returns boolean
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return exists (select from app_public.workflow_executions x
    where x.workflow_id = has_execution.workflow_id and x.subject_id = has_execution.subject_id
      and (not live or x.status in ('PENDING', 'RUNNING', 'PAUSED')));
end $$;
comment on function app_private.has_execution(uuid, uuid, boolean) is
  'Whether a workflow has ever been started for a record; live: whether it runs for it.';

create function app_private.start_workflow_executions(
  workflow app_public.workflows, subject_ids uuid[], trigger_type text, trigger_event_id uuid default null,
    started_by uuid default null, context jsonb default null,
  depth int default 0, batch_id uuid default null, error text default null, event_ids uuid[] default null
) returns setof uuid
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  numbers_before text := coalesce(current_setting('plat.numbers_at_once', true), '');
  pause int := (select s.wait_seconds from app_public.workflow_steps s
    where s.workflow_id = workflow.id and s.revision = workflow.steps_revision and s.sequence = 1
      and s.type <> 'WAIT_FOR_EVENT');
begin
  -- PERF: thousands of events are numbered as they are written.
  if cardinality(subject_ids) > 1000 and not app_private.is_dry_run() then
    perform set_config('plat.numbers_at_once', 'on', true);
  end if;
  return query
    insert into app_public.workflow_executions as e (organization_id, project_id, workflow_id, steps_revision, reentry,
      subject_type, subject_id, lead_id, buyer_id,
      batch_id, depth, status, trigger_type, trigger_event_id, started_by_id, current_step, scheduled_at, error,
        completed_at, context)
    select workflow.organization_id, s.project_id, workflow.id, workflow.steps_revision, workflow.reentry,
      workflow.subject_type, s.id, s.lead_id, s.buyer_id,
      batch_id, depth, case when error is null then 'PENDING' else 'FAILED' end, trigger_type,
        coalesce(s.event_id, trigger_event_id), started_by, case when error is null then 1 end,
      case when error is null then now() + make_interval(secs => coalesce(pause, 0)) end, error, case
        when error is not null then now() end, context
    from app_private.workflow_subjects(workflow.subject_type, subject_ids, event_ids) s
    where s.organization_id = workflow.organization_id
      and (workflow.project_id is null or s.project_id = workflow.project_id)
      and not exists (select from app_public.projects p where p.id = s.project_id and p.archived_at is not null)
      and (error is not null or workflow.reentry = 'ALWAYS'
        or not app_private.has_execution(workflow.id, s.id, live => workflow.reentry <> 'NEVER'))
    order by s.id
    on conflict do nothing
    returning e.id;
  perform set_config('plat.numbers_at_once', numbers_before, true);
  if error is null then
    perform app_private.call_workflow_engine();
  end if;
end $$;
comment on function app_private.start_workflow_executions(app_public.workflows, uuid[], text, uuid, uuid, jsonb, int,
  uuid, text, uuid[]) is
  'Starts a workflow for those of the subjects that exist, belong to it and may run (again); returns the '
  'executions. With an error they are there as failed ones. event_ids: the event of each subject, beside it.';

create function app_public.workflow_executions_allowed_transitions(e app_public.workflow_executions) returns
  app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('workflow_execution', to_jsonb(e)) $$;
comment on function app_public.workflow_executions_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';
