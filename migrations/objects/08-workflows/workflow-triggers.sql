-- Triggers of workflows. Events: a commit with events of an organization with workflows notifies the workers; one of
-- them claims the stream of the organization, reads from its cursor, has conditions evaluated (src/compute) without an
-- open transaction, and starts executions in the transaction that moves the cursor, so that no event is lost or counted
-- twice when a process dies. Schedules: a due cron expression selects its subjects once, and they are started in
-- batches; however long no worker ran, it is due once.
--
-- Loops are limited. Events know how many executions caused them; beyond the fifth, a workflow is not started but
-- leaves a failed execution with the reason, as it does for the eleventh start for a subject within an hour. Triggers
-- of an organization can start 10,000 executions a minute; the rest waits for the next minute, which
-- Workflow.triggerError reports. Starts by people and programs are not limited.

comment on table app_private.workflow_streams is
  'How far the workflows of an organization have come in its stream, and how many executions their triggers started in '
  'that minute.';
comment on table app_private.workflow_triggers is
  'What only serves the triggers of enabled workflows: since when they count, when they are due, and why they did not '
  'start something.';
comment on table app_private.workflow_runs is
  'Lines of the clock that were due and whose subjects are not all started.';
comment on table app_private.workflow_run_subjects is 'The subjects that are still to be started.';

create function app_private.tg_event_batches__call_triggers() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- PERF: commits that notify take turns, so only those do that somebody waits for.
  if exists (select from app_public.workflows w where w.organization_id = new.stream_id and w.status = 'ENABLED'
    and w.deleted_at is null and w.trigger_type = 'EVENT') then
    perform pg_notify('plat_triggers', 'EVENT');
  end if;
  return null;
end $$;

-- Within bounds.
create function app_private.start_within_bounds(workflow app_public.workflows, subject_ids uuid[], event_ids uuid[],
  depth int) returns int
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  deepest constant int := 5;
  most_an_hour constant int := 10;
  too_often uuid[];
  of_those uuid[];
  amount int;
begin
  -- Events of the execution have a depth of one more than the event that started it.
  perform set_config('plat.workflow_depth', (depth + 1)::text, true),
    set_config('plat.caused_by', case when cardinality(event_ids) = 1 then event_ids[1]::text else '' end, true),
    set_config('plat.request_id', coalesce((select e.request_id from app_public.events e
      where cardinality(event_ids) = 1 and e.id = event_ids[1]), app_hidden.setting('request_id'), ''), true);
  if depth > deepest then
    -- Only once: the consequences of the refusal carry no information.
    if depth = deepest + 1 then
      perform app_private.start_workflow_executions(workflow, subject_ids, 'EVENT', depth => depth,
        event_ids => event_ids,
        error => format('Not started: %s executions led to this one, each through what the one before did. Narrow the '
          'conditions of the workflow.', depth));
      perform app_private.note_trigger_error(workflow.id,
        'It leads to itself, or to another that leads to it; the sixth execution in a row was not started.');
    end if;
    return 0;
  end if;
  if event_ids is not null then
    select array_agg(w.subject_id), array_agg(w.event_id) into too_often, of_those
      from (select g.*, row_number() over (partition by g.subject_id order by g.event_id) as n
        from unnest(subject_ids, event_ids) g (subject_id, event_id)) w
      where w.n + (select count(*) from (select from app_public.workflow_executions e where e.subject_id = w.subject_id
        and e.workflow_id = workflow.id
        and e.inserted_at > now() - interval '1 hour' limit most_an_hour) x) > most_an_hour;
    if too_often is not null then
      select array_agg(g.subject_id), array_agg(g.event_id) into subject_ids, event_ids
        from unnest(subject_ids, event_ids) g (subject_id, event_id) where g.event_id <> all (of_those);
      -- Once an hour for each.
      select array_agg(g.subject_id), array_agg(g.event_id) into too_often, of_those
        from (select distinct on (t.subject_id) t.* from unnest(too_often, of_those) t (subject_id, event_id)
          order by t.subject_id, t.event_id) g
        where not exists (select from app_public.workflow_executions e where e.subject_id = g.subject_id
          and e.workflow_id = workflow.id
          and e.status = 'FAILED' and e.started_at is null and e.inserted_at > now() - interval '1 hour');
    end if;
  end if;
  select count(*) into amount from app_private.start_workflow_executions(workflow, subject_ids, case
    when event_ids is null then 'SCHEDULE' else 'EVENT' end,
    depth => depth, event_ids => event_ids) where subject_ids is not null;
  if too_often is not null then
    perform app_private.start_workflow_executions(workflow, too_often, 'EVENT', depth => depth, event_ids => of_those,
      error => format('Not started: the workflow was started for this subject %s times within an hour. Narrow its '
        'conditions.', most_an_hour));
    perform app_private.note_trigger_error(workflow.id,
      format('It was to be started more than %s times within an hour for the same subject.', most_an_hour));
  end if;
  return amount;
end $$;
comment on function app_private.start_within_bounds(app_public.workflows, uuid[], uuid[], int) is
  'Starts workflows by trigger, for subjects with their events or by schedule. Loops, and too many starts for a '
  'subject, leave a FAILED execution with the reason. Returns how many were started.';

create function app_private.note_trigger_error(workflow_id uuid, error text) returns void
language sql volatile as $$
  update app_private.workflow_triggers t set error = to_char(now() at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC": ')
    || $2 where t.workflow_id = $1
$$;
comment on function app_private.note_trigger_error(uuid, text) is
  'Says why a trigger did not start something; shown as Workflow.triggerError.';

create function app_private.set_aside(workflow_id uuid, state text, message text) returns void
language plpgsql volatile as $$
begin
  -- Temporary failures are retried: broken connections, deadlocks, lack of disk space, a shutdown of the server.
  if left(state, 2) in ('08', '40', '53', '55', '57', '58', 'XX') then
    raise exception using errcode = state, message = message;
  end if;
  raise warning 'workflow % could not be started: % (%)', workflow_id, message, state;
  perform app_private.note_trigger_error(workflow_id, case when state = 'PLAT0' then message
    else 'The service could not start it.' end);
end $$;
comment on function app_private.set_aside(uuid, text, text) is
  'An error when a workflow is started is recorded and does not block other workflows.';

create function app_private.starts_left(stream app_private.workflow_streams) returns int
language sql stable as $$
  select 10000 - case when stream.minute >= date_trunc('minute', now()) then stream.started else 0 end
$$;
comment on function app_private.starts_left(app_private.workflow_streams) is
  'How many executions the triggers of an organization may still start in this minute.';

create function app_private.count_starts(organization_id uuid, amount int) returns void
language plpgsql volatile as $$
declare
  stream app_private.workflow_streams;
begin
  update app_private.workflow_streams s set minute = greatest(s.minute, date_trunc('minute', now())),
      started = case when s.minute >= date_trunc('minute', now()) then s.started else 0 end + amount
    where s.organization_id = count_starts.organization_id returning s.* into stream;
  if app_private.starts_left(stream) <= 0 then
    perform app_private.note_trigger_error(t.workflow_id,
      'The organization has had the 10,000 starts of a minute: what comes next waits for the next minute.')
      from app_private.workflow_triggers t where t.organization_id = count_starts.organization_id;
  end if;
end $$;
comment on function app_private.count_starts(uuid, int) is
  'Counts starts against the minute, and says so when they are used up.';

-- Events.
create function app_private.event_subject(e app_public.events, subject_type text) returns uuid
language sql stable as $$
  select case when e.subject_type = lower($2) then e.subject_id else (e.data ->> (lower($2) || 'Id'))::uuid end
$$;
comment on function app_private.event_subject(app_public.events, text) is
  'The subject that an event is of: its own record, or the one that its record names.';

create function app_private.condition_data(workflow app_public.workflows, ids uuid[]) returns table (subject_id uuid,
  data jsonb)
language sql stable rows 200 as $$
  -- PERF: only the records that the conditions speak of.
  select d.subject_id, d.data || jsonb_build_object('context', '{}'::jsonb, 'now',
    to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
  from app_private.subject_data(workflow.subject_type, ids,
    array(select r.root from app_hidden.workflow_roots r where workflow.conditions::text ~ ('\m' || r.root || '\M'))) d
$$;
comment on function app_private.condition_data(app_public.workflows, uuid[]) is
  'What the conditions of a trigger know of subjects, but for the event.';

create function app_private.selected_subjects(workflow app_public.workflows, ids uuid[] default null) returns setof uuid
language plpgsql stable rows 200 as $$
begin
  return query execute format('select s.id from app_public.%I s where s.organization_id = $1 and s.deleted_at is null '
    'and ($2 is null or s.project_id = $2)%s%s',
      app_private.subject_table(workflow.subject_type), case when ids is not null then ' and s.id = any ($3)' end,
      app_private.subject_filter(coalesce(workflow.trigger -> 'filter', '{}'), 'trigger.filter',
        jsonb_build_object('subjectType', workflow.subject_type)))
    using workflow.organization_id, workflow.project_id, ids;
end $$;
comment on function app_private.selected_subjects(app_public.workflows, uuid[]) is
  'The subjects that the filter of a trigger selects, of all or of those given.';

create function app_private.holder_lives(holder int, held_until timestamptz) returns boolean
language sql stable as $$
  select holder is not null and held_until >= now()
    and holder in (select app_private.living_connections())
$$;
comment on function app_private.holder_lives(int, timestamptz) is
  'Whether a worker holds something: its connection is there, and its lease is not over.';

create function app_private.trigger_candidates(workflow app_public.workflows, after_sequence bigint,
  to_sequence bigint) returns jsonb
language plpgsql volatile as $$
declare
  wanted jsonb;
  fault text;
begin
  with of_event as (
    select e.id, e.sequence, app_private.event_subject(e, workflow.subject_type) as subject_id
    from app_public.events e
    where e.organization_id = workflow.organization_id and e.sequence > after_sequence
      and e.sequence <= to_sequence
      and e.sequence > (select t.from_sequence from app_private.workflow_triggers t
        where t.workflow_id = workflow.id)
      and app_hidden.event_matches(e.name, array[workflow.trigger ->> 'event'])
  )
  select jsonb_agg(jsonb_build_object('sequence', w.sequence, 'eventId', w.id, 'workflowId', workflow.id,
    'subjectId', w.subject_id)) into wanted
    from of_event w where w.subject_id in (select i from app_private.selected_subjects(workflow,
      array(select x.subject_id from of_event x where x.subject_id is not null)) i);
  if wanted is not null then
    fault := app_private.act_for_workflow(workflow, app_private.trigger_permissions(workflow));
    if fault is not null then
      perform app_private.set_claims('{}');
      perform app_private.review_principal('app_public.workflows', workflow.id);
      wanted := null;
    end if;
  end if;
  if wanted is not null and workflow.conditions is not null then
    -- PERF: the event only where the conditions speak of it.
    select jsonb_agg(c || jsonb_build_object('condition', workflow.conditions, 'data', d.data
        || case when workflow.conditions::text ~ '\mevent\M'
          then jsonb_build_object('event', app_private.event_json(e)) else '{}' end)) into wanted
      from jsonb_array_elements(wanted) c
      join app_private.condition_data(workflow, array(select (x ->> 'subjectId')::uuid
        from jsonb_array_elements(wanted) x)) d on d.subject_id = (c ->> 'subjectId')::uuid
      join app_public.events e on e.id = (c ->> 'eventId')::uuid;
  end if;
  perform app_private.set_claims('{}');
  return wanted;
end $$;
comment on function app_private.trigger_candidates(app_public.workflows, bigint, bigint) is
  'What events of a range a workflow would be started by, and for which subjects, with its conditions and what these '
  'are about; null for none. Nobody acts afterwards.';

create function app_private.claim_events(batch int, holder int, lease interval, except_of uuid[])
returns table (organization_id uuid, from_sequence bigint, upto bigint, candidates jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  stream app_private.workflow_streams;
  workflow app_public.workflows;
  last_written bigint;
  result jsonb := '[]';
  wanted jsonb;
begin
  select s.* into stream from app_private.workflow_streams s
    join app_private.event_counters c on c.stream_id = s.organization_id and c.last_sequence > s.last_sequence
    where app_private.starts_left(s) > 0 and s.organization_id <> all (except_of)
      and not app_private.holder_lives(s.holder, s.held_until)
    -- A busy organization lets the others go first.
    order by app_private.starts_left(s) desc limit 1 for no key update of s skip locked;
  if not found then
    return;
  end if;
  update app_private.workflow_streams s set holder = claim_events.holder, held_until = now() + lease
    where s.organization_id = stream.organization_id;
  select least(c.last_sequence, stream.last_sequence + batch) into last_written from app_private.event_counters c
    where c.stream_id = stream.organization_id;
  for workflow in
    select w.* from app_public.workflows w
    where w.organization_id = stream.organization_id and w.status = 'ENABLED' and w.deleted_at is null
      and w.trigger_type = 'EVENT'
  loop
    begin
      wanted := app_private.trigger_candidates(workflow, stream.last_sequence, last_written);
    exception when others then
      perform app_private.set_claims('{}');
      wanted := null;
      perform app_private.set_aside(workflow.id, sqlstate, sqlerrm);
    end;
    result := result || coalesce(wanted, '[]');
  end loop;
  return query select stream.organization_id, stream.last_sequence, last_written, result;
end $$;
comment on function app_private.claim_events(int, int, interval, uuid[]) is
  'Leases the event stream of an organization with unread events (except the given ones) to a worker; returns what '
  'the events could start, at most one batch. Nothing where there is nothing.';

create function app_private.start_by_events(organization_id uuid, upto bigint, starts jsonb, refused jsonb,
  holder int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  home constant uuid := organization_id;
  reached bigint;
  started int := 0;
  wanted record;
begin
  perform from app_private.workflow_streams s where s.organization_id = home and s.holder = start_by_events.holder
    for no key update;
  if not found then
    return; -- another worker has read on
  end if;
  perform app_private.note_trigger_error((r ->> 'workflowId')::uuid, r ->> 'error')
    from jsonb_array_elements(refused) r;
  -- Events above the limit are read in the next minute; an event is never split.
  select coalesce((select (s ->> 'sequence')::bigint from jsonb_array_elements(starts) s order by 1
      offset greatest(app_private.starts_left(w) - 1, 0) limit 1), upto) into reached
    from app_private.workflow_streams w where w.organization_id = home;
  -- Serialized with disabling one of them.
  perform from app_public.workflows w
    where w.id in (select (s ->> 'workflowId')::uuid from jsonb_array_elements(starts) s) order by w.id for share;
  for wanted in
    select w as workflow, coalesce(e.workflow_depth, 0) as depth, array_agg((s ->> 'subjectId')::uuid
      order by e.sequence) as subject_ids, array_agg(e.id order by e.sequence) as event_ids
    from jsonb_array_elements(starts) s
    join app_public.events e on e.id = (s ->> 'eventId')::uuid and e.sequence <= reached
    join app_public.workflows w on w.id = (s ->> 'workflowId')::uuid and w.status = 'ENABLED' and w.deleted_at is null
    -- Its trigger may have changed since these were read.
    join app_private.workflow_triggers t on t.workflow_id = w.id and t.from_sequence < e.sequence
    group by w.id, 2 order by w.id, 2
  loop
    begin
      started := started + app_private.start_within_bounds(wanted.workflow, wanted.subject_ids, wanted.event_ids,
        wanted.depth);
    exception when others then
      perform app_private.set_aside((wanted.workflow).id, sqlstate, sqlerrm);
    end;
  end loop;
  update app_public.events e set dispatched_at = now()
    where e.id in (select (s ->> 'eventId')::uuid from jsonb_array_elements(starts) s
      where (s ->> 'sequence')::bigint <= reached) and e.dispatched_at is null;
  perform app_private.count_starts(home, started);
  update app_private.workflow_streams s set last_sequence = reached, holder = null, held_until = null
    where s.organization_id = home;
end $$;
comment on function app_private.start_by_events(uuid, bigint, jsonb, jsonb, int) is
  'Starts what the conditions let through, [{sequence, eventId, workflowId, subjectId}], notes why others were not, '
  '[{workflowId, error}], and moves the cursor of the organization, where the worker still holds it.';

create function app_private.release_stream(organization_id uuid, holder int) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_private.workflow_streams s set holder = null, held_until = null
    where s.organization_id = $1 and s.holder = $2
$$;
comment on function app_private.release_stream(uuid, int) is 'Releases the stream that a worker does not read.';

-- The clock.
create function app_private.schedules() returns table (organization_id uuid, workflow_id uuid, schedule text,
  time_zone text, due_at timestamptz)
language sql stable rows 10 as $$
  select w.organization_id, w.id, w.trigger ->> 'schedule', coalesce(w.trigger ->> 'timeZone', p.time_zone,
    o.time_zone), t.next_run_at
  from app_private.workflow_triggers t
  join app_public.workflows w on w.id = t.workflow_id and w.trigger_type = 'SCHEDULE'
  join app_public.organizations o on o.id = w.organization_id
  left join app_public.projects p on p.id = w.project_id
$$;
comment on function app_private.schedules() is
  'The schedules of workflows, and when they are due next; null: not known yet.';

create function app_private.due_schedules() returns table (organization_id uuid, workflow_id uuid, schedule text,
  time_zone text, was_due_at timestamptz)
language sql stable rows 10 security definer set search_path = pg_catalog, pg_temp as $$
  select s.* from app_private.schedules() s
  where s.due_at is null or s.due_at <= now()
  order by s.due_at nulls first limit 100
$$;
comment on function app_private.due_schedules() is
  'The workflows whose line is due, or of which nobody has found out when it is.';

create function app_private.run_schedule(workflow_id uuid, next_run_at timestamptz, was_due_at timestamptz,
  schedule text default null, time_zone text default null) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  workflow app_public.workflows;
  is_due boolean;
  run uuid;
  fault text;
begin
  select t.next_run_at is not null into is_due from app_private.workflow_triggers t
    where t.workflow_id = run_schedule.workflow_id and t.next_run_at is not distinct from was_due_at
    for no key update skip locked;
  if not found then
    return; -- another process has it
  end if;
  -- Workers of former releases do not say which schedule they have read.
  if run_schedule.schedule is not null and not exists (
    select from app_private.schedules() s where s.workflow_id = run_schedule.workflow_id
      and s.schedule = run_schedule.schedule and s.time_zone is not distinct from run_schedule.time_zone) then
    return; -- the schedule was changed meanwhile, and is read again
  end if;
  select w.* into workflow from app_public.workflows w where w.id = run_schedule.workflow_id;
  if run_schedule.next_run_at is null then
    perform app_private.note_trigger_error(workflow.id,
      'The line of the clock, or its time zone, cannot be read any more.');
  end if;
  update app_private.workflow_triggers t set next_run_at = coalesce(run_schedule.next_run_at, now() + interval '1 day')
    where t.workflow_id = workflow.id;
  if not is_due then
    return;
  elsif exists (select from app_private.workflow_runs r where r.workflow_id = workflow.id) then
    perform app_private.note_trigger_error(workflow.id, 'The run before was not over; this one was omitted.');
    return;
  end if;
  fault := app_private.act_for_workflow(workflow, app_private.trigger_permissions(workflow));
  perform app_private.set_claims('{}');
  if fault is not null then
    perform app_private.review_principal('app_public.workflows', workflow.id);
    return;
  end if;
  begin
    insert into app_private.workflow_runs (workflow_id) values (workflow.id) returning id into run;
    insert into app_private.workflow_run_subjects (run_id, subject_id) select run, s
      from app_private.selected_subjects(workflow) s;
  exception when others then
    perform app_private.set_aside(workflow.id, sqlstate, sqlerrm);
  end;
end $$;
comment on function app_private.run_schedule(uuid, timestamptz, timestamptz, text, text) is
  'Selects the subjects of a line that is due, and says when it is due next; once for each time at which it was due.';

create function app_private.claim_run(batch int, holder int, lease interval, except_of uuid[])
returns table (run_id uuid, organization_id uuid, workflow_id uuid, subject_ids uuid[], items jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  run app_private.workflow_runs;
  workflow app_public.workflows;
  ids uuid[];
  most int;
  found_data jsonb;
  fault text;
begin
  select r.* into run from app_private.workflow_runs r
    join app_public.workflows w on w.id = r.workflow_id
    join app_private.workflow_streams s on s.organization_id = w.organization_id
    where app_private.starts_left(s) > 0 and w.organization_id <> all (except_of)
      and not app_private.holder_lives(r.holder, r.held_until)
    order by r.id limit 1 for update of r skip locked;
  if not found then
    return;
  end if;
  select w.* into workflow from app_public.workflows w where w.id = run.workflow_id;
  select app_private.starts_left(s) into most from app_private.workflow_streams s
    where s.organization_id = workflow.organization_id;
  ids := array(select s.subject_id from app_private.workflow_run_subjects s where s.run_id = run.id
    order by s.subject_id limit least(batch, most));
  fault := app_private.act_for_workflow(workflow, app_private.trigger_permissions(workflow));
  if fault is not null then
    perform app_private.set_claims('{}');
    perform app_private.review_principal('app_public.workflows', workflow.id);
    return;
  end if;
  if workflow.conditions is not null then
    begin
      select coalesce(jsonb_agg(jsonb_build_object('subjectId', d.subject_id, 'condition', workflow.conditions, 'data',
        d.data)), '[]') into found_data
        from app_private.condition_data(workflow, ids) d;
    exception when others then
      perform app_private.set_aside(workflow.id, sqlstate, sqlerrm);
      found_data := '[]';
    end;
  end if;
  perform app_private.set_claims('{}');
  update app_private.workflow_runs r set holder = claim_run.holder, held_until = now() + lease where r.id = run.id;
  return query select run.id, workflow.organization_id, workflow.id, ids, found_data;
end $$;
comment on function app_private.claim_run(int, int, interval, uuid[]) is
  'Leaves the next subjects of a line that was due to a worker, but of none of the organizations excepted; with items, '
  '[{subjectId, condition, data}], where the workflow has conditions.';

create function app_private.start_run(run_id uuid, subject_ids uuid[], chosen uuid[], error text,
  holder int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  run app_private.workflow_runs;
begin
  select r.* into run from app_private.workflow_runs r where r.id = run_id and r.holder = holder for update;
  if not found then
    return; -- another worker has it
  end if;
  -- Against other runs of the organization, which count against the same minute.
  perform from app_private.workflow_streams s join app_public.workflows w on w.organization_id = s.organization_id
    where w.id = run.workflow_id for no key update of s;
  if error is not null then
    perform app_private.note_trigger_error(run.workflow_id, error);
  end if;
  if chosen <> '{}' then
    perform app_private.start_by_schedule(run.workflow_id, chosen);
  end if;
  delete from app_private.workflow_run_subjects s where s.run_id = run_id and s.subject_id = any (subject_ids);
  if exists (select from app_private.workflow_run_subjects s where s.run_id = run_id) then
    update app_private.workflow_runs r set holder = null, held_until = null where r.id = run_id;
  else
    delete from app_private.workflow_runs r where r.id = run_id;
  end if;
end $$;
comment on function app_private.start_run(uuid, uuid[], uuid[], text, int) is
  'Starts workflows for the chosen subjects of a batch, records why others were skipped, and completes the batch.';

create function app_private.release_run(run_id uuid, holder int) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_private.workflow_runs r set holder = null, held_until = null where r.id = $1 and r.holder = $2
$$;
comment on function app_private.release_run(uuid, int) is 'Releases the run that a worker does not process.';

create function app_private.start_by_schedule(workflow_id uuid, subject_ids uuid[]) returns void
language plpgsql volatile as $$
declare
  workflow app_public.workflows;
begin
  select w.* into workflow from app_public.workflows w where w.id = start_by_schedule.workflow_id
    and w.status = 'ENABLED' and w.deleted_at is null for share;
  if workflow.id is not null then
    begin
      perform app_private.count_starts(workflow.organization_id,
        app_private.start_within_bounds(workflow, subject_ids, null, 0));
    exception when others then
      perform app_private.set_aside(workflow.id, sqlstate, sqlerrm);
    end;
  end if;
end $$;
comment on function app_private.start_by_schedule(uuid, uuid[]) is 'Starts what the clock and the conditions want.';
grant execute on function app_private.claim_events, app_private.claim_run, app_private.due_schedules,
  app_private.release_run, app_private.release_stream, app_private.run_schedule, app_private.start_by_events,
  app_private.start_run to plat_worker;
