-- The workflow engine. Workers process what is due, step by step of a workflow: all executions that wait for the same
-- step together, up to a batch. One transaction locks them (skipping those locked by others), applies the step to all
-- of them by the SQL function of its type, writes their runs, and moves them to the next step. A worker that dies
-- leaves nothing incomplete.
--
--   SQL       the function of the type does everything
--   COMPUTED  the worker claims executions, evaluates conditions and texts (src/compute), and completes them in another
--             transaction; no transaction is open in between
--   CALL      an external service is called: texts are evaluated first, then the worker claims the executions in one
--             transaction, calls, and stores the response in another one. The call of a worker that died is repeated,
--             with the same id
--
-- Claims of a worker are released as soon as its connection is gone. An execution during which that happened twice is
-- suspended: people decide. Pausing and cancelling take effect between two steps.

comment on table app_private.workflow_waits is
  'What executions wait for: an event of that name or form, of one of these records or of one that names it.';
comment on column app_private.workflow_waits.event is E'@impersonal\n\nThe name of the event.';
comment on table app_private.workflow_wakeups is
  'Events that may be what an execution waits for, written with the event; gone when they were looked at.';

insert into app_hidden.transitions (subject, from_state, to_state, by_service)
  values ('workflow_execution', 'PAUSED', 'COMPLETED', true);

comment on type app_private.step_work is 'An execution whose step is taken, and what its config came to.';

comment on type app_private.step_outcome is
  'Outcome of a step: SUCCEEDED, SKIPPED, FAILED, RUNNING (waits, until then) or PAUSED (done; a person has to '
  'decide). go_to is the step to continue with, if not the next one; 0 ends the execution.';

create function app_private.step_way(step app_public.workflow_steps) returns text
language sql immutable as $$
  select case when step.type in ('CALL_WEBHOOK', 'DRAFT_WITH_AI', 'SEND_SMS') then 'CALL'
    when step.type = 'BRANCH' or (step.type = 'WAIT' and step.config ? 'until')
      -- HTML is sanitised there too.
      or (step.config::text ~ '\{[{%]' or step.config ? 'html') and step.type <> 'WAIT_FOR_EVENT' then 'COMPUTED'
    else 'SQL' end
$$;
comment on function app_private.step_way(app_public.workflow_steps) is 'How a step is taken: SQL, COMPUTED or CALL.';

create function app_private.retry_step_after(attempt int) returns interval
language sql volatile as $$
  select (array['10 s', '1 min', '10 min', '1 h'])[attempt]::interval * (0.8 + 0.4 * random())
$$;
comment on function app_private.retry_step_after(int) is
  'Delay of a failed step before its next attempt, with 20 percent jitter; null if that was the last.';

create function app_private.act_as_workflow(depth int, trigger_event_id uuid) returns void
language plpgsql volatile as $$
begin
  perform set_config('plat.service', 'on', true), set_config('plat.actor_type', 'WORKFLOW', true),
    set_config('plat.channel', 'SYSTEM', true),
    set_config('plat.user_id', '', true), set_config('plat.workflow_depth', depth::text, true),
      set_config('plat.caused_by', coalesce(trigger_event_id::text, ''), true),
      set_config('plat.request_id', coalesce((select e.request_id from app_public.events e
        where e.id = trigger_event_id), app_hidden.setting('request_id'), ''), true);
end $$;
comment on function app_private.act_as_workflow(int, uuid) is
  'What the transaction does from here on is the doing of a workflow: its events say so, and how many executions led '
  'to it (plat.workflow_depth).';

-- Data of conditions and texts: records with the field names of the API.
create function app_private.record_json(table_name text) returns text
language sql stable as $$
  select string_agg(part, ' || ' order by chunk) from (
    select c.chunk, 'jsonb_build_object('
      || string_agg(format('%L, %s', c.name, case when c.type = 'timestamptz'::regtype
        then format('to_char(r.%I at time zone ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"'')', c.column_name)
          else format('r.%I', c.column_name) end), ', ') || ')' as part
    from (select k.*, (row_number() over (order by k.attnum) - 1) / 50 as chunk
      from app_private.record_columns(table_name) k) c
    group by c.chunk
  ) parts
$$;
comment on function app_private.record_json(text) is
  'SQL that makes JSON of a row `r` of a table, by the columns that it has now.';

create function app_private.add_records(data jsonb, table_name text, ids uuid[]) returns jsonb
language plpgsql stable as $$
declare
  found jsonb;
begin
  execute format('select jsonb_object_agg(r.id, %s%s) from app_public.%I r where r.id = any ($1)',
    app_private.record_json(table_name), case table_name
      when 'leads' then ' || app_private.names_in_texts(r.first_name, r.last_name, r.name, r.name)'
      when 'buyers' then ' || app_private.names_in_texts(r.first_name, r.last_name, r.legal_name, '
        'coalesce(r.legal_name, r.company, r.email))' else '' end, table_name) into found using ids;
  return data || coalesce(found, '{}');
end $$;

create function app_private.subject_data(subject_type text, ids uuid[],
  roots text[] default null) returns table (subject_id uuid, data jsonb)
language plpgsql stable rows 200 as $$
#variable_conflict use_column
declare
  of_type text := lower(subject_type);
  wanted constant text[] := coalesce(roots, '{subject,lead,buyer,reservation,unit,project,organization,assignee}');
  person boolean := wanted && '{lead,buyer,reservation,unit,assignee}';
  places jsonb;
  root record;
  records jsonb := '{}';
begin
  -- Which record each root is, for each subject.
  select jsonb_object_agg(s.id, jsonb_build_object('subject', s.id, 'project', s.project_id, 'organization',
    s.organization_id,
      'lead', coalesce(s.lead_id, b.lead_id, r.lead_id), 'buyer', b.id, 'reservation', r.id,
      'unit', case of_type when 'unit' then s.id else coalesce(r.unit_id, b.unit_id) end)) into places
    from app_private.workflow_subjects(subject_type, ids) s
    left join lateral (
      select x.id, x.lead_id, x.unit_id, x.reservation_id from app_public.buyers x
      where person and x.deleted_at is null
        and case when s.buyer_id is not null then x.id = s.buyer_id else x.lead_id = s.lead_id
          and x.status <> 'CANCELLED' end
      order by x.id desc limit 1) b on true
    left join lateral (
      select x.id, x.lead_id, x.unit_id from app_public.reservations x
      where person and x.id = case of_type when 'reservation' then s.id else b.reservation_id end
        and x.deleted_at is null) r on true;
  for root in
    select w.root, coalesce(w.table_name, app_private.subject_table(subject_type)) as table_name
      from app_hidden.workflow_roots w
    where w.root = any (wanted) and (w.table_name is not null or w.root = 'subject')
  loop
    records := jsonb_set(records, array[root.root], app_private.add_records('{}', root.table_name,
      array(select distinct (p.value ->> root.root)::uuid from jsonb_each(places) p
        where p.value ->> root.root is not null)));
  end loop;
  return query
    select p.key::uuid,
      (select coalesce(jsonb_object_agg(r.key, r.value -> (p.value ->> r.key)), '{}') from jsonb_each(records) r)
      || case when 'assignee' = any (wanted) then jsonb_build_object('assignee', (
          select jsonb_build_object('id', u.id, 'fullName', app_public.users_full_name(u), 'firstName',
              coalesce(u.first_name, app_public.users_full_name(u)),
            'lastName', u.last_name, 'title', u.title,
            'phone', u.phone, 'email', i.email)
          from app_public.users u
          -- The address of somebody of another organization is not for its texts.
          left join app_hidden.user_identities i on i.user_id = u.id and exists (
            select from app_public.organization_user_connections m where m.user_id = u.id
              and m.organization_id = (p.value ->> 'organization')::uuid)
            where u.id = app_private.assignee_of(of_type, p.key::uuid,
            (p.value ->> 'lead')::uuid, (p.value ->> 'buyer')::uuid))) else '{}' end
    from jsonb_each(places) p;
end $$;
comment on function app_private.subject_data(text, uuid[], text[]) is
  'Variables of conditions and texts for existing subjects, without event, steps, context and now: {subject, lead, '
  'buyer, reservation, unit, project, organization, assignee}, or those of it that are asked for.';

create function app_private.assignee_of(of_type text, subject_id uuid, lead_id uuid, buyer_id uuid) returns uuid
language sql stable as $$
  select coalesce(
    case of_type when 'task' then (select t.assignee_id from app_public.tasks t where t.id = subject_id)
      when 'appointment' then (select a.assignee_id from app_public.appointments a where a.id = subject_id)
      when 'reservation' then (select r.assignee_id from app_public.reservations r where r.id = subject_id) end,
    (select b.assignee_id from app_public.buyers b where b.id = buyer_id),
    (select l.assignee_id from app_public.leads l where l.id = lead_id))
$$;
comment on function app_private.assignee_of(text, uuid, uuid, uuid) is
  'Who works on a subject: its assignee, or that of its purchase or lead.';

create function app_private.event_json(e app_public.events) returns jsonb
language sql stable as $$
  select case when e.id is not null then jsonb_build_object('id', e.id, 'name', e.name, 'occurredAt',
    to_char(e.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'subjectType', e.subject_type, 'subjectId', e.subject_id, 'actorId', e.actor_id, 'actorType', e.actor_type,
      'channel', e.channel,
    'changes', case when app_public.current_user_id() is null then e.changes else app_public.events_changes(e) end,
    'data', case when app_public.current_user_id() is null then e.data else app_public.events_data(e) end) end
$$;
comment on function app_private.event_json(app_public.events) is 'An event as conditions and texts know it.';

create function app_private.execution_data(ids uuid[], step app_public.workflow_steps) returns table (execution_id uuid,
  data jsonb)
language plpgsql volatile rows 200 as $$
#variable_conflict use_column
declare
  -- PERF: only the records that the step speaks of.
  roots text[] := array(select r.root from app_hidden.workflow_roots r
    where step.config::text ~ ('\m' || r.root || '\M'));
  of_type text := (select w.subject_type from app_public.workflows w where w.id = step.workflow_id);
begin
  perform app_private.act_as_principal(w.principal_id, w.principal_token_id) from app_public.workflows w
    where w.id = step.workflow_id;
  return query
    select e.id, s.data || jsonb_build_object('context', coalesce(e.context, '{}'), 'now',
      to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
      || case when 'event' = any (roots) then jsonb_build_object('event',
        (select app_private.event_json(v) from app_public.events v where v.id = e.trigger_event_id)) else '{}' end
      || case when 'steps' = any (roots) then jsonb_build_object('steps', (
          select coalesce(jsonb_object_agg(r.sequence, r.output), '{}') from app_public.workflow_step_runs r
            where r.execution_id = e.id and r.status in ('SUCCEEDED', 'SKIPPED'))) else '{}' end
    from app_public.workflow_executions e
    join app_private.subject_data(of_type, array(select x.subject_id from app_public.workflow_executions x
      where x.id = any (ids)), roots) s on s.subject_id = e.subject_id
    where e.id = any (ids);
  perform app_private.set_claims('{}');
end $$;
comment on function app_private.execution_data(uuid[], app_public.workflow_steps) is
  'What the conditions and texts of a step know of each execution: as the principal of the workflow may read it.';

-- Taking a step.
create function app_private.due_workflow_steps() returns table (workflow_id uuid, steps_revision int, sequence int,
  way text, organization_id uuid)
language sql stable rows 10 security definer set search_path = pg_catalog, pg_temp as $$
  -- Along the index: as many looks as there are steps that something waits for, however many executions do.
  with recursive waiting as (
    (select e.workflow_id, e.steps_revision, e.current_step from app_public.workflow_executions e
      where e.status in ('PENDING', 'RUNNING') and e.holder is null and e.scheduled_at is not null
      order by e.workflow_id, e.steps_revision, e.current_step limit 1)
    union all
    select n.workflow_id, n.steps_revision, n.current_step from waiting w cross join lateral (
      select e.workflow_id, e.steps_revision, e.current_step from app_public.workflow_executions e
      where e.status in ('PENDING', 'RUNNING') and e.holder is null and e.scheduled_at is not null
        and (e.workflow_id, e.steps_revision, e.current_step) > (w.workflow_id, w.steps_revision, w.current_step)
      order by e.workflow_id, e.steps_revision, e.current_step limit 1) n
  )
  select w.workflow_id, w.steps_revision, w.current_step, app_private.step_way(s), s.organization_id from waiting w
  join app_public.workflow_steps s on s.workflow_id = w.workflow_id and s.revision = w.steps_revision
    and s.sequence = w.current_step
  where exists (select from app_public.workflow_executions e where e.workflow_id = w.workflow_id
    and e.steps_revision = w.steps_revision and e.current_step = w.current_step
    and e.status in ('PENDING', 'RUNNING') and e.holder is null and e.scheduled_at <= now())
$$;
comment on function app_private.due_workflow_steps() is 'The steps of workflows that are due for some execution.';

create function app_private.end_orphans(ids uuid[]) returns void
language plpgsql volatile as $$
declare
  gone record;
begin
  for gone in
    select case when p.archived_at is not null then 'The project is archived.'
        when o.deleted_at is not null then 'The organization was deleted.'
        when b.status = 'CANCELLED' then 'The purchase was cancelled.'
        else format('The %s was deleted.', lower(e.subject_type)) end as reason, array_agg(e.id) as ids
      from app_public.workflow_executions e
      join app_public.organizations o on o.id = e.organization_id
      left join app_public.projects p on p.id = e.project_id
      left join app_public.buyers b on b.id = e.buyer_id
      where e.id = any (ids) and (p.archived_at is not null or o.deleted_at is not null or b.status = 'CANCELLED'
        or not exists (
        select from app_private.workflow_subjects(e.subject_type, array[e.subject_id])))
      group by 1
  loop
    perform app_private.cancel_executions(gone.ids, gone.reason);
  end loop;
end $$;
comment on function app_private.end_orphans(uuid[]) is
  'Cancels executions whose subject no longer exists.';

create function app_private.due_executions(step app_public.workflow_steps, most int,
  ids uuid[] default null) returns setof app_public.workflow_executions
language sql volatile rows 200 as $$
  with due as (
    select e.* from app_public.workflow_executions e
    where e.workflow_id = step.workflow_id and e.steps_revision = step.revision and e.current_step = step.sequence
      and e.status in ('PENDING', 'RUNNING') and e.holder is null and e.scheduled_at <= now()
      and (ids is null or e.id = any (ids))
    order by e.scheduled_at limit most for no key update skip locked)
  -- A batch has executions of one depth, because its transaction determines the depth of the events it causes.
  select d.* from due d where d.depth = (select f.depth from due f order by f.id limit 1) order by d.id
$$;
comment on function app_private.due_executions(app_public.workflow_steps, int, uuid[]) is
  'Locks a batch of executions of the same depth with a due step; skips those that other workers have locked.';

create function app_private.begin_step(step app_public.workflow_steps,
  executions app_public.workflow_executions[]) returns boolean
language plpgsql volatile as $$
declare
  ids uuid[];
  cause uuid;
  workflow app_public.workflows;
  fault text;
begin
  select array_agg(e.id), case when count(distinct e.trigger_event_id) = 1 and count(*) = count(e.trigger_event_id)
    then min(e.trigger_event_id::text)::uuid end into ids, cause from unnest(executions) e;
  perform app_private.act_as_workflow(executions[1].depth + 1, cause);
  perform app_private.end_orphans(ids);
  update app_public.workflow_executions e set status = 'RUNNING', started_at = now() where e.id = any (ids)
    and e.status = 'PENDING';
  select w.* into workflow from app_public.workflows w where w.id = step.workflow_id;
  fault := app_private.act_for_workflow(workflow,
    app_private.step_permissions(step, workflow.subject_type, workflow.trigger ->> 'event'));
  perform app_private.set_claims('{}');
  if fault is null then
    return true;
  end if;
  update app_public.workflow_executions e set status = 'PAUSED', paused_at = now(), paused_by_id = null,
      pause_reason = fault || ' Enable the workflow again, then resume.', holder = null, held_until = null
    where e.id = any (ids) and e.status = 'RUNNING';
  perform app_private.review_principal('app_public.workflows', workflow.id);
  return false;
end $$;
comment on function app_private.begin_step(app_public.workflow_steps, app_public.workflow_executions[]) is
  'Attributes the rest of the transaction to these locked executions; cancels those whose subject no longer '
  'exists. Where the principal of the workflow may not do what the step takes, they are paused, and this is false.';

create function app_private.step_at(workflow_id uuid, steps_revision int,
  sequence int) returns app_public.workflow_steps
language sql stable as $$
  select s.* from app_public.workflow_steps s
  where s.workflow_id = $1 and s.revision = $2 and s.sequence = $3
$$;
comment on function app_private.step_at(uuid, int, int) is 'A step of a revision of a workflow.';

create function app_private.step_items(step app_public.workflow_steps,
  ids uuid[]) returns table (execution_id uuid, item text, step text)
language sql volatile rows 200 as $$
  select e.id, jsonb_build_object('executionId', e.id, 'attempt', e.attempts + 1, 'data', d.data)::text,
    -- Once: a config may be long.
    case when row_number() over () = 1 then
      jsonb_build_object('id', step.id, 'type', step.type, 'config', step.config)::text end
  from app_public.workflow_executions e
  join app_private.execution_data(ids, step) d on d.execution_id = e.id
  where e.id = any (ids)
$$;
comment on function app_private.step_items(app_public.workflow_steps, uuid[]) is
  'What computing a step for executions takes, as JSON texts: of each {executionId, attempt, data}, and with the first '
  'one the step, {id, type, config}.';

create function app_private.look_at_step(workflow_id uuid, steps_revision int, sequence int,
  most int) returns table (execution_id uuid, item text, step text)
language plpgsql volatile rows 200 security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  step_of app_public.workflow_steps := app_private.step_at(workflow_id, steps_revision, sequence);
  workflow app_public.workflows := (select w from app_public.workflows w where w.id = workflow_id);
  ids uuid[] := array(select e.id from app_public.workflow_executions e
    where e.workflow_id = workflow_id and e.steps_revision = steps_revision and e.current_step = sequence
      and e.status in ('PENDING', 'RUNNING') and e.holder is null and e.scheduled_at <= now()
    order by e.scheduled_at limit most);
begin
  -- Records that the principal may not read are omitted; take_workflow_step pauses the executions.
  if app_private.act_for_workflow(workflow, app_private.step_permissions(step_of, workflow.subject_type,
    workflow.trigger ->> 'event')) is not null then
    perform app_private.set_claims('{}');
    return query select i.id, null::text, null::text from unnest(ids) i (id);
    return;
  end if;
  perform app_private.set_claims('{}');
  return query
    select i.id, s.item, s.step from unnest(ids) i (id)
    left join app_private.step_items(step_of, ids) s on s.execution_id = i.id;
end $$;
comment on function app_private.look_at_step(uuid, int, int, int) is
  'What writing the texts of a call takes, for executions for which it is due; nothing is locked. Executions '
  'without a subject have no item.';

create function app_private.claim_step(workflow_id uuid, steps_revision int, sequence int, most int, holder int,
  lease interval) returns table (execution_id uuid, item text, step text)
language plpgsql volatile rows 200 security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  step_of app_public.workflow_steps := app_private.step_at(workflow_id, steps_revision, sequence);
  taken app_public.workflow_executions[];
  ids uuid[];
begin
  select array_agg(e order by e.id) into taken from app_private.due_executions(step_of, most) e;
  if taken is null then
    return;
  end if;
  if not app_private.begin_step(step_of, taken) then
    return;
  end if;
  with claimed as (
    update app_public.workflow_executions e set holder = holder, held_until = now() + lease
      where e.id in (select t.id from unnest(taken) t) and e.status = 'RUNNING'
      returning e.id)
  select array_agg(c.id) into ids from claimed c;
  return query select s.* from app_private.step_items(step_of, ids) s;
end $$;
comment on function app_private.claim_step(uuid, int, int, int, int, interval) is
  'Leases a batch of executions with a due computed step to a worker; returns the data to compute with.';

create function app_private.complete_step(step_id uuid, results jsonb, holder int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  held app_public.workflow_executions[];
begin
  -- Cancelled meanwhile, or leased by another worker: the outcome recorded there counts.
  select array_agg(x order by x.id) into held from (
    select e.* from app_public.workflow_executions e
    where e.id in (select (r ->> 'executionId')::uuid from jsonb_array_elements(results) r) and e.holder = holder
      and e.status in ('RUNNING', 'PAUSED')
    order by e.id for no key update) x;
  if held is null then
    return;
  end if;
  if not app_private.begin_step((select s from app_public.workflow_steps s where s.id = step_id), held) then
    return;
  end if;
  perform app_private.complete_workflow_step(step_id, (select jsonb_agg(r) from jsonb_array_elements(results) r
    where exists (select from app_public.workflow_executions e
      where e.id = (r ->> 'executionId')::uuid and e.holder = holder and e.status in ('RUNNING', 'PAUSED'))));
end $$;
comment on function app_private.complete_step(uuid, jsonb, int) is
  'Carries out a computed step for those of the executions that the worker still holds: [{executionId, attempt, input '
  '| error, code}].';

create function app_private.release_executions(ids uuid[], holder int) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_public.workflow_executions e set holder = null, held_until = null
    where e.id = any (ids) and e.holder = $2
$$;
comment on function app_private.release_executions(uuid[], int) is
  'Releases steps that a worker has leased and does not execute: they are due again.';

create function app_private.take_workflow_step(workflow_id uuid, steps_revision int, sequence int,
  most int, ids uuid[] default null) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  step app_public.workflow_steps := app_private.step_at(workflow_id, steps_revision, sequence);
  taken app_public.workflow_executions[];
  work app_private.step_work[];
begin
  if app_private.step_way(step) = 'CALL'
    and not pg_try_advisory_xact_lock_shared(app_private.workflow_lock(workflow_id)) then
    return null;
  end if;
  select array_agg(e order by e.id) into taken from app_private.due_executions(step, most, ids) e;
  if taken is null then
    return null;
  end if;
  if not app_private.begin_step(step, taken) then
    return '{}';
  end if;
  select array_agg(row(e.id, e.attempts + 1, step.config)::app_private.step_work order by e.id) into work
    from app_public.workflow_executions e where e.id in (select t.id from unnest(taken) t) and e.status = 'RUNNING';
  if work is null then
    return '{}';
  elsif app_private.step_way(step) = 'SQL' then
    perform app_private.perform_step(step, work);
    return '{}';
  end if;
  return jsonb_build_object('step', jsonb_build_object('id', step.id, 'type', step.type), 'runs', (
    select jsonb_agg(jsonb_build_object('executionId', w.execution_id, 'attempt', w.attempt,
        'call', jsonb_build_object('workflowId', workflow_id,
          'organizationId', e.organization_id, 'subjectType', e.subject_type, 'subjectId', e.subject_id,
          -- The same for each attempt.
          'messageId', md5(e.id || ' ' || step.sequence)::uuid, 'leadId', e.lead_id, 'requestedBy',
            coalesce(e.started_by_id, (select f.created_by_id from app_public.workflows f where f.id = workflow_id)),
            'webhookId', c.webhook_id, 'sealed', c.sealed, 'previousSealed', c.previous_sealed)))
      from unnest(work) w
      join app_public.workflow_executions e on e.id = w.execution_id
      left join app_private.call_secrets(step.organization_id, step.config ->> 'url') c on true));
end $$;
comment on function app_private.take_workflow_step(uuid, int, int, int, uuid[]) is
  'Runs due steps of a batch of the given executions: executes them in SQL where possible, otherwise returns the '
  'data for the external call. Null where nobody is due.';

create function app_private.complete_workflow_step(step_id uuid, results jsonb) returns void
language plpgsql volatile as $$
declare
  step app_public.workflow_steps := (select s from app_public.workflow_steps s where s.id = step_id);
  work app_private.step_work[];
  outcomes app_private.step_outcome[];
begin
  select array_agg(row((r ->> 'executionId')::uuid, (r ->> 'attempt')::int, r -> 'input')::app_private.step_work
    order by r ->> 'executionId') into work
    from jsonb_array_elements(results) r where r ? 'input';
  if work is not null then
    perform app_private.perform_step(step, work);
  end if;
  select array_agg(row((r ->> 'executionId')::uuid, (r ->> 'attempt')::int, null)::app_private.step_work),
      array_agg(row((r ->> 'executionId')::uuid, 'FAILED', null, r ->> 'error', null, null)::app_private.step_outcome)
        into work, outcomes
    from jsonb_array_elements(results) r where r ? 'error';
  if work is not null then
    perform app_private.record_outcomes(step, work, outcomes);
    update app_public.workflow_step_runs r set error_code = f ->> 'code' from jsonb_array_elements(results) f
      where f ? 'code' and r.execution_id = (f ->> 'executionId')::uuid and r.sequence = step.sequence
        and r.attempt = (f ->> 'attempt')::int;
  end if;
end $$;
comment on function app_private.complete_workflow_step(uuid, jsonb) is
  'Carries out a step for executions, each with what its config came to (input) or why it cannot be (error, code): '
  '[{executionId, attempt, input | error, code}].';

create function app_private.perform_step(step app_public.workflow_steps, work app_private.step_work[]) returns void
language plpgsql volatile as $$
declare
  outcomes app_private.step_outcome[];
  one app_private.step_work;
  violated text;
  message text;
  code text;
begin
  begin
    execute format('select array_agg(o) from app_private.%I($1, $2) o', 'step_' || lower(step.type)) into outcomes
      using step, work;
  exception
    when deadlock_detected or serialization_failure or query_canceled or admin_shutdown then
      raise;
    when others then
      -- One of many keeps the others from nothing.
      if cardinality(work) > 1 then
        foreach one in array work loop
          perform app_private.perform_step(step, array[one]);
        end loop;
        return;
      end if;
      get stacked diagnostics violated = constraint_name, code = pg_exception_detail;
      code := case when sqlstate = 'PLAT0' then code::jsonb ->> 'code' end;
      -- The error that a user would get for the same change.
      message := case when sqlstate = 'PLAT0' then sqlerrm else coalesce(
        (select obj_description(c.oid, 'pg_constraint') from pg_constraint c
          join pg_namespace n on n.oid = c.connamespace
          where c.conname = violated and n.nspname = 'app_public' limit 1),
        (select regexp_replace(obj_description(c.oid, 'pg_class'), '^(@[^\n]*\n)+\n?', '') from pg_class c
          join pg_namespace n on n.oid = c.relnamespace
          where c.relname = violated and n.nspname = 'app_public' limit 1)) end;
      if message is null then
        raise warning 'step % of execution % failed: % (%)', step.id, work[1].execution_id, sqlerrm, sqlstate;
        message := 'The service could not carry out this step.';
      end if;
      outcomes := array[row(work[1].execution_id, 'FAILED', null, message, null, null)::app_private.step_outcome];
  end;
  perform app_private.record_outcomes(step, work, outcomes);
  if code is not null then
    update app_public.workflow_step_runs r set error_code = code where r.execution_id = work[1].execution_id
      and r.sequence = step.sequence and r.attempt = work[1].attempt;
  end if;
end $$;
comment on function app_private.perform_step(app_public.workflow_steps, app_private.step_work[]) is
  'Calls the function of the step''s type, for all executions together or, if that fails, for each separately, and '
  'records the outcome.';

create function app_private.record_outcomes(step app_public.workflow_steps, work app_private.step_work[],
  outcomes app_private.step_outcome[]) returns void
language plpgsql volatile as $$
declare
  waiting uuid[];
  failed record;
begin
  insert into app_public.workflow_step_runs as r (execution_id, step_id, sequence, attempt, status, finished_at, output,
    error)
    select o.execution_id, step.id, step.sequence, w.attempt, case when o.status = 'FAILED' and step.on_error = 'SKIP'
      then 'SKIPPED' when o.status = 'PAUSED' then 'SUCCEEDED' else o.status end,
      case when o.status <> 'RUNNING' then now() end, o.output, o.error
    from unnest(outcomes) o join unnest(work) w on w.execution_id = o.execution_id
    on conflict on constraint workflow_step_runs_once do update
      set status = excluded.status, finished_at = excluded.finished_at, output = coalesce(excluded.output, r.output),
        error = excluded.error;
  -- On to the next step, or to the end.
  update app_public.workflow_executions e set
      status = case when n.id is null then 'COMPLETED' when o.status = 'PAUSED' then 'PAUSED' else e.status end,
      completed_at = case when n.id is null then now() end,
      paused_at = case when o.status = 'PAUSED' and n.id is not null then now() else e.paused_at end,
      paused_by_id = case when o.status = 'PAUSED' and n.id is not null then null else e.paused_by_id end,
      pause_reason = case when o.status = 'PAUSED' and n.id is not null then o.output ->> 'title'
        else e.pause_reason end,
      resume_at = case when n.id is null then null else e.resume_at end,
      current_step = n.sequence, attempts = 0, deaths = 0, holder = null, held_until = null,
      scheduled_at = case when n.id is not null then now() + make_interval(secs => coalesce(n.wait_seconds, 0)) end
    from unnest(outcomes) o
    left join app_public.workflow_steps n on n.workflow_id = step.workflow_id and n.revision = step.revision
      and n.sequence = coalesce(o.go_to, step.sequence + 1)
    where e.id = o.execution_id and (o.status in ('SUCCEEDED', 'SKIPPED', 'PAUSED')
      or (o.status = 'FAILED' and step.on_error = 'SKIP'));
  update app_public.workflow_executions e set scheduled_at = o.until, holder = null, held_until = null
    from unnest(outcomes) o where e.id = o.execution_id and o.status = 'RUNNING';
  if exists (select from unnest(outcomes) o where o.status = 'FAILED') and step.on_error <> 'SKIP' then
    update app_public.workflow_executions e set
        status = case when step.on_error = 'ESCALATE' then 'PAUSED' when step.on_error = 'RETRY' and p.pause is not null
          then e.status else 'FAILED' end,
        error = case when step.on_error = 'ESCALATE' or (step.on_error = 'RETRY' and p.pause is not null) then e.error
          else o.error end,
        completed_at = case when not (step.on_error = 'ESCALATE' or (step.on_error = 'RETRY' and p.pause is not null))
          then now() end,
        paused_at = case when step.on_error = 'ESCALATE' then now() else e.paused_at end,
        paused_by_id = case when step.on_error = 'ESCALATE' then null else e.paused_by_id end,
        pause_reason = case when step.on_error = 'ESCALATE' then
          left(format('Step %s failed: %s', step.sequence, o.error), 20000) else e.pause_reason end,
        scheduled_at = case when step.on_error = 'ESCALATE' then now() when step.on_error = 'RETRY'
          and p.pause is not null then now() + p.pause end,
        resume_at = null, attempts = w.attempt, holder = null, held_until = null
      from unnest(outcomes) o
      join unnest(work) w on w.execution_id = o.execution_id
      cross join lateral (select app_private.retry_step_after(w.attempt) as pause) p
      where e.id = o.execution_id and o.status = 'FAILED';
    if step.on_error = 'ESCALATE' then
      for failed in select o.execution_id, o.error from unnest(outcomes) o where o.status = 'FAILED'
        order by o.execution_id loop
        perform app_private.escalate_execution(failed.execution_id, step, failed.error);
      end loop;
    end if;
  end if;
  -- From the completion of the previous step on, no event for a WAIT_FOR_EVENT step is missed.
  select array_agg(e.id) into waiting from app_public.workflow_executions e
    join app_public.workflow_steps n on n.workflow_id = e.workflow_id and n.revision = e.steps_revision
      and n.sequence = e.current_step and n.type = 'WAIT_FOR_EVENT'
    where e.id = any (array(select o.execution_id from unnest(outcomes) o)) and e.current_step <> step.sequence
      and e.status in ('RUNNING', 'PAUSED');
  if waiting is not null then
    perform app_private.begin_waits(waiting);
  end if;
end $$;
comment on function app_private.record_outcomes(app_public.workflow_steps, app_private.step_work[],
  app_private.step_outcome[]) is
  'Writes the runs of a step, and moves each execution on: to the next step, to another attempt, or to its end.';

create function app_private.escalate_execution(execution_id uuid, step app_public.workflow_steps,
  error text) returns void
language plpgsql volatile as $$
begin
  perform app_private.open_execution_ticket(execution_id, step, 'WORKFLOW_FAILURE',
    format('%s: step %s failed', (select w.name from app_public.workflows w where w.id = step.workflow_id),
      step.sequence), error, 'HIGH',
    '{RETRY,SKIP_STEP,CANCEL_EXECUTION,DISMISS}');
end $$;
comment on function app_private.escalate_execution(uuid, app_public.workflow_steps, text) is
  'Asks people what is to become of an execution whose step failed.';

-- Calls: the executions are leased during the external call.
create function app_private.hold_executions(step_id uuid, works jsonb, holder int, lease interval) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  insert into app_public.workflow_step_runs as r (execution_id, step_id, sequence, attempt, status)
    select (w ->> 'executionId')::uuid, s.id, s.sequence, (w ->> 'attempt')::int, 'RUNNING'
    from jsonb_array_elements(works) w join app_public.workflow_steps s on s.id = step_id
    on conflict on constraint workflow_step_runs_once do update set started_at = now();
  update app_public.workflow_executions e set holder = holder, held_until = now() + lease
    from jsonb_array_elements(works) w where e.id = (w ->> 'executionId')::uuid;
end $$;
comment on function app_private.hold_executions(uuid, jsonb, int, interval) is
  'Leaves executions to a worker while it asks somebody outside on behalf of a step: [{executionId, attempt}].';

create function app_private.complete_call(step_id uuid, result jsonb, holder int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  execution app_public.workflow_executions;
begin
  select e.* into execution from app_public.workflow_executions e
    where e.id = (result ->> 'executionId')::uuid for no key update;
  -- Cancelled meanwhile, or leased by another worker: the outcome recorded there counts.
  if execution.holder is distinct from holder or execution.status not in ('RUNNING', 'PAUSED') then
    return false;
  end if;
  perform app_private.act_as_workflow(execution.depth + 1, execution.trigger_event_id);
  perform app_private.complete_workflow_step(step_id, jsonb_build_array(result));
  return true;
end $$;
comment on function app_private.complete_call(uuid, jsonb, int) is 'Brings in what came of a call.';

create function app_private.free_executions() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  most_deaths constant int := 2;
  amount int;
  one record;
begin
  -- An expired lease does not mean that its worker is dead.
  update app_public.workflow_executions e set holder = null, held_until = null,
      deaths = e.deaths + case when e.holder = any (array(select app_private.living_connections())) then 0 else 1 end
    where e.holder is not null and (e.held_until < now()
      or e.holder <> all (array(select app_private.living_connections())));
  get diagnostics amount = row_count;
  if amount = 0 then
    return 0;
  end if;
  for one in
    select e.id, e.attempts + 1 as attempt, e.depth, e.trigger_event_id, s as step
    from app_public.workflow_executions e
    join app_public.workflow_steps s on s.workflow_id = e.workflow_id and s.revision = e.steps_revision
      and s.sequence = e.current_step
    where e.deaths >= most_deaths and e.status = 'RUNNING' and e.holder is null
    order by e.id for no key update of e
  loop
    perform app_private.act_as_workflow(one.depth + 1, one.trigger_event_id);
    perform app_private.set_execution_aside(one.id, one.attempt, one.step);
  end loop;
  return amount;
end $$;
comment on function app_private.free_executions() is
  'Ends the hold of workers whose connection is gone: they died. A step at which two of them died is set aside. '
  'Returns how many were held.';

create function app_private.set_execution_aside(execution_id uuid, attempt int,
  step app_public.workflow_steps) returns void
language plpgsql volatile as $$
declare
  reason constant text := 'The service ended twice while it executed this step. It is not retried automatically: '
    'retry it, skip the step or cancel the execution.';
begin
  insert into app_public.workflow_step_runs as r (execution_id, step_id, sequence, attempt, status, finished_at, error,
    error_code)
    values (execution_id, step.id, step.sequence, attempt, 'FAILED', now(), reason, 'INTERNAL')
    on conflict on constraint workflow_step_runs_once do update set status = excluded.status,
      finished_at = excluded.finished_at, error = excluded.error, error_code = excluded.error_code;
  update app_public.workflow_executions e set status = 'PAUSED', paused_at = now(), paused_by_id = null,
      pause_reason = format('Step %s: %s', step.sequence, reason), resume_at = null, attempts = attempt, deaths = 0,
      scheduled_at = now()
    where e.id = execution_id;
  perform app_private.escalate_execution(execution_id, step, reason);
  raise warning 'JOB_SET_ASIDE: step % of execution % of organization % is set aside: its process died twice',
    step.sequence, execution_id, step.organization_id;
end $$;
comment on function app_private.set_execution_aside(uuid, int, app_public.workflow_steps) is
  'Pauses an execution whose step ended its process twice, and asks people what is to become of it.';

create function app_private.resume_due_executions() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  ids uuid[];
begin
  select array_agg(e.id) into ids from (
    select x.id from app_public.workflow_executions x where x.status = 'PAUSED' and x.resume_at <= now()
      order by x.resume_at limit 1000 for no key update skip locked) e;
  if ids is null then
    return 0;
  end if;
  perform set_config('plat.service', 'on', true);
  return (select count(*) from app_private.resume_executions(ids));
end $$;
comment on function app_private.resume_due_executions() is
  'Resumes executions whose `resumeAt` has passed. Returns how many.';

-- Waiting for events.
create function app_private.begin_waits(ids uuid[]) returns void
language plpgsql volatile as $$
begin
  insert into app_private.workflow_waits (execution_id, about, event)
    select e.id, a.id, s.config ->> 'event'
    from app_public.workflow_executions e
    join app_public.workflow_steps s on s.workflow_id = e.workflow_id and s.revision = e.steps_revision
      and s.sequence = e.current_step
    cross join lateral (select distinct x as id from unnest(array[e.subject_id, e.lead_id, e.buyer_id]) x
      where x is not null) a
    where e.id = any (ids)
    on conflict do nothing;
  insert into app_public.workflow_step_runs (execution_id, step_id, sequence, attempt, status, output)
    select e.id, s.id, s.sequence, e.attempts + 1, 'RUNNING',
      jsonb_build_object('event', s.config ->> 'event', 'until',
        now() + make_interval(secs => (s.config ->> 'timeoutSeconds')::float8))
    from app_public.workflow_executions e
    join app_public.workflow_steps s on s.workflow_id = e.workflow_id and s.revision = e.steps_revision
      and s.sequence = e.current_step
    where e.id = any (ids)
    on conflict do nothing;
  -- A transaction that was running at this moment did not see the wait: it is checked again a minute later.
  update app_public.workflow_executions e
    set scheduled_at = least((r.output ->> 'until')::timestamptz, now() + interval '1 minute')
    from app_public.workflow_step_runs r where e.id = any (ids) and r.execution_id = e.id
      and r.sequence = e.current_step and r.status = 'RUNNING';
end $$;
comment on function app_private.begin_waits(uuid[]) is 'Has executions wait for the event of their current step.';

create function app_private.look_back(ids uuid[]) returns void
language sql volatile as $$
  insert into app_private.workflow_wakeups (execution_id, event_id)
    select distinct w.execution_id, v.id
    from app_private.workflow_waits w
    join app_public.workflow_executions e on e.id = w.execution_id
    join app_public.workflow_step_runs r on r.execution_id = e.id and r.sequence = e.current_step
      and r.status = 'RUNNING'
    cross join lateral (select x.id from app_public.events x where x.subject_id = w.about
      and x.occurred_at >= r.started_at - interval '1 second'
      and app_hidden.event_matches(x.name, array[w.event])) v
    where w.execution_id = any (ids)
    on conflict do nothing
$$;
comment on function app_private.look_back(uuid[]) is
  'Finds what happened to the records that executions wait for since they do.';

create function app_private.wake_executions(most int, holder int, lease interval, except_of uuid[])
returns table (organization_id uuid, step_id uuid, execution_id uuid, attempt int, event_ids uuid[], item text)
language plpgsql volatile rows 200 security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  ids uuid[];
  decided uuid[];
  held uuid[];
  woken record;
begin
  -- Nothing waits for steps that have ended or continued.
  select array_agg(e.id) into ids from (
    select x.id from app_public.workflow_executions x where x.status <> 'PAUSED' and x.holder is null
      and x.organization_id <> all (except_of)
      and x.id in (select w.execution_id from app_private.workflow_wakeups w)
      order by x.id limit most for no key update skip locked) e;
  if ids is null then
    return;
  end if;
  perform app_private.end_orphans(ids);
  for woken in
    select s as step, array_agg(row(e.id, e.attempts + 1, s.config
      || jsonb_build_object('found', app_private.event_json(v) - 'data' - 'changes'))::app_private.step_work) as work,
        min(e.depth) as depth
      from app_public.workflow_executions e
      join app_public.workflow_steps s on s.workflow_id = e.workflow_id and s.revision = e.steps_revision
        and s.sequence = e.current_step and s.type = 'WAIT_FOR_EVENT'
      join lateral (select x.* from app_private.workflow_wakeups w join app_public.events x on x.id = w.event_id
        where w.execution_id = e.id order by x.id limit 1) v on true
      where e.id = any (ids) and e.status = 'RUNNING' and not s.config ? 'conditions'
      group by s, e.depth
  loop
    perform app_private.act_as_workflow(woken.depth + 1, null);
    perform app_private.perform_step(woken.step, woken.work);
  end loop;
  select array_agg(e.id) into held
    from app_public.workflow_executions e
    join app_public.workflow_steps s on s.workflow_id = e.workflow_id and s.revision = e.steps_revision
      and s.sequence = e.current_step and s.type = 'WAIT_FOR_EVENT'
    where e.id = any (ids) and e.status = 'RUNNING' and s.config ? 'conditions';
  update app_public.workflow_executions e set holder = holder, held_until = now() + lease where e.id = any (held);
  return query
    select e.organization_id, s.id, e.id, e.attempts + 1, v.ids, jsonb_build_object(
        'condition', s.config -> 'conditions', 'data', d.data, 'events', v.events)::text
      from app_public.workflow_executions e
      join app_public.workflow_steps s on s.workflow_id = e.workflow_id and s.revision = e.steps_revision
        and s.sequence = e.current_step
      cross join lateral app_private.execution_data(array[e.id], s) d
      cross join lateral (select array_agg(x.id order by x.id) as ids,
          jsonb_agg(app_private.event_json(x) order by x.id) as events
        from app_private.workflow_wakeups w join app_public.events x on x.id = w.event_id
        where w.execution_id = e.id) v
      where e.id = any (held) and v.ids is not null;
  -- complete_wakeups stores the decision: until then, another worker would evaluate it if this one dies.
  delete from app_private.workflow_wakeups w
    where w.execution_id = any (ids) and (held is null or w.execution_id <> all (held));
end $$;
comment on function app_private.wake_executions(int, int, interval, uuid[]) is
  'Looks at what happened for executions that wait, but of none of the organizations excepted: those without '
  'conditions continue; for the others it returns what the worker needs to decide: {condition, data, events}, with '
  'the ids of the events.';

create function app_private.complete_wakeups(results jsonb, holder int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  held uuid[];
  woken record;
begin
  -- A paused execution is checked when it resumes.
  held := array(select x.id from (
    select e.id from app_public.workflow_executions e
    where e.id in (select (r ->> 'executionId')::uuid from jsonb_array_elements(results) r)
      and e.holder = holder and e.status = 'RUNNING'
    order by e.id for no key update) x);
  delete from app_private.workflow_wakeups w
    using jsonb_array_elements(results) r cross join lateral jsonb_array_elements_text(r -> 'eventIds') v
    where w.execution_id = (r ->> 'executionId')::uuid and w.event_id = v::uuid and w.execution_id = any (held);
  update app_public.workflow_executions e set holder = null, held_until = null
    where e.id in (select (r ->> 'executionId')::uuid from jsonb_array_elements(results) r) and e.holder = holder;
  for woken in
    select (r ->> 'stepId')::uuid as step_id, e.depth, jsonb_agg(case when r ? 'error' then r
        else r || jsonb_build_object('input',
          s.config || jsonb_build_object('found', app_private.event_json(v) - 'data' - 'changes')) end) as results
      from jsonb_array_elements(results) r
      join app_public.workflow_executions e on e.id = (r ->> 'executionId')::uuid
      join app_public.workflow_steps s on s.id = (r ->> 'stepId')::uuid
      left join app_public.events v on v.id = (r ->> 'eventId')::uuid
      where e.id = any (held) and (r ? 'error' or v.id is not null)
      group by 1, 2
  loop
    perform app_private.act_as_workflow(woken.depth + 1, null);
    perform app_private.complete_workflow_step(woken.step_id, woken.results);
  end loop;
end $$;
comment on function app_private.complete_wakeups(jsonb, int) is
  'Records a worker''s decisions on events for executions that it holds: [{stepId, executionId, attempt, eventIds, '
  'eventId | error, code}]. Executions whose event occurred continue, the others keep waiting.';
grant execute on function app_private.claim_step, app_private.due_workflow_steps, app_private.free_executions,
  app_private.hold_executions, app_private.look_at_step, app_private.release_executions,
  app_private.resume_due_executions, app_private.complete_call, app_private.complete_step, app_private.complete_wakeups,
  app_private.take_workflow_step, app_private.wake_executions to plat_worker;
