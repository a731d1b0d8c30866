-- Jobs for operators and owners of organizations. The tables belong to the job runner and are not exposed; these
-- functions return all jobs to operators, and those of the organization to an owner.

comment on table app_private.paused_tasks is
  'Tasks whose jobs no worker takes until they are resumed.';

create function app_private.masked_arguments(payload jsonb) returns jsonb
language sql immutable as $$
  select regexp_replace(payload::text,
    '("[^"\\]*(?:password|secret|token|authorization|cookie|otp|code)[^"\\]*": *)"(?:[^"\\]|\\.)*"',
    '\1"[redacted]"', 'gi')::jsonb
$$;
comment on function app_private.masked_arguments(jsonb) is
  'The arguments of a job without what opens a door: texts of members whose name speaks of a secret.';

create function app_private.jobs_organization(organization_id uuid) returns uuid
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_hidden.require_viewer();
  if organization_id is not null then
    if not app_hidden.is_operator() then
      perform app_hidden.require_organization(organization_id, 'org.owner');
    end if;
  elsif not app_hidden.is_operator() then
    perform app_hidden.fail('FORBIDDEN', 'Only operators of the service see the jobs of all organizations; specify '
      'an organization that you own.', '{"field": "organizationId"}');
  end if;
  return organization_id;
end $$;
comment on function app_private.jobs_organization(uuid) is
  'The organization whose jobs are meant, null for all; refuses a viewer who may not see them.';

create function app_private.chosen_jobs(ids text[], task text, state text, created_before timestamptz, arguments jsonb,
  organization_id uuid, before bigint, most int) returns setof app_public.job
language sql stable rows 50 security definer set search_path = pg_catalog, pg_temp as $$
  select j.id::text, t.identifier, s.state::app_public.job_state, app_private.masked_arguments(j.payload::jsonb),
    j.attempts::int, j.max_attempts::int, j.run_at, j.locked_at, j.created_at, j.updated_at,
    left(app_private.masked_arguments(to_jsonb(j.last_error)) #>> '{}', 2000), q.queue_name,
    j.payload #>> '{context,requestId}', (j.payload #>> '{context,organizationId}')::uuid
  from (
    -- Only the latest ones are searched: a filter must not read the entire history.
    (select f.* from graphile_worker._private_jobs f where chosen_jobs.state = 'FAILED'
      and f.attempts >= f.max_attempts and (before is null or f.id < before)
      order by f.id desc limit app_private.counted_at_most())
    union all
    (select a.* from graphile_worker._private_jobs a where chosen_jobs.state is distinct from 'FAILED'
      and (before is null or a.id < before) order by a.id desc limit app_private.counted_at_most())) j
  join graphile_worker._private_tasks t on t.id = j.task_id
  left join graphile_worker._private_job_queues q on q.id = j.job_queue_id
  cross join lateral (select case
    when j.locked_at is not null then 'RUNNING'
    when j.attempts >= j.max_attempts then case when exists (select from app_private.job_deaths d
      where d.job_id = j.id and d.set_aside_at is not null) then 'SET_ASIDE' else 'FAILED' end
    when exists (select from app_private.paused_tasks p where p.task = t.identifier) then 'PAUSED'
    when j.run_at > now() then 'SCHEDULED' else 'DUE' end as state) s
  where (chosen_jobs.ids is null or j.id::text = any (chosen_jobs.ids))
    and (chosen_jobs.task is null or t.identifier = chosen_jobs.task)
    and (chosen_jobs.state is null or s.state = chosen_jobs.state)
    and (chosen_jobs.created_before is null or j.created_at < chosen_jobs.created_before)
    and (chosen_jobs.arguments is null or app_private.masked_arguments(j.payload::jsonb) @> chosen_jobs.arguments)
    and (chosen_jobs.organization_id is null
      or j.payload #>> '{context,organizationId}' = chosen_jobs.organization_id::text)
  order by j.id desc limit most
$$;
comment on function app_private.chosen_jobs(text[], text, text, timestamptz, jsonb, uuid, bigint, int) is
  'Jobs that match, the latest first; of all organizations where none is named. The caller has checked that the '
  'viewer may see them.';

create function app_public.jobs(task text default null, state app_public.job_state default null,
  created_before timestamptz default null, arguments jsonb default null,
  organization_id app_public.id_or_slug default null, before_id text default null, most int default 50)
  returns app_public.job[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  organization constant uuid := app_hidden.record_id('organizations', jobs.organization_id, 'organizationId');
begin
  perform app_private.jobs_organization(organization);
  if before_id !~ '^[0-9]{1,18}$' then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify the id of a job.', '{"field": "beforeId"}');
  elsif most is null or most not between 1 and 200 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Must be from 1 to 200.', '{"field": "most"}');
  end if;
  return array(select c from app_private.chosen_jobs(null, jobs.task, jobs.state, jobs.created_before, jobs.arguments,
    organization, before_id::bigint, most) c);
end $$;

create function app_public.job_tasks() returns app_public.job_task[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.require_operator();
  return array(
    select row(t.identifier, max(n.value) filter (where n.metric = 'jobs_due'),
      max(n.value) filter (where n.metric = 'jobs_scheduled'), max(n.value) filter (where n.metric = 'jobs_failed'),
      now() - make_interval(secs => nullif(max(n.value) filter (where n.metric = 'job_oldest_due_seconds'), 0)),
      (select c.last_execution from graphile_worker._private_known_crontabs c where c.identifier = t.identifier),
      p.paused_at, p.reason)::app_public.job_task
    from graphile_worker._private_tasks t
    left join app_private.job_numbers() n on n.label = t.identifier
    left join app_private.paused_tasks p on p.task = t.identifier
    group by t.identifier, p.paused_at, p.reason order by t.identifier);
end $$;

-- Changes. Each call changes a limited number of jobs, and returns whether there are more.
create function app_private.jobs_at_once() returns int
language sql immutable as $$ select 1000 $$;
comment on function app_private.jobs_at_once() is 'How many jobs one call changes at most.';

create function app_private.jobs_to_change(ids text[], task text, state text, created_before timestamptz,
  arguments jsonb, organization_id uuid) returns bigint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.jobs_organization(jobs_to_change.organization_id);
  if num_nonnulls(ids, task, state, created_before, arguments) = 0 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Select the jobs by ids, task, state, createdBefore or arguments.',
      '{"field": "ids"}');
  elsif cardinality(ids) > app_private.jobs_at_once() then
    perform app_hidden.fail('LIMIT_EXCEEDED', format('At most %s ids can be given.', app_private.jobs_at_once()),
      jsonb_build_object('field', 'ids', 'limit', app_private.jobs_at_once()));
  end if;
  return array(select c.id::bigint from app_private.chosen_jobs(ids, task, state, created_before, arguments,
    organization_id, null, app_private.counted_at_most()) c where c.state <> 'RUNNING');
end $$;
comment on function app_private.jobs_to_change(text[], text, text, timestamptz, jsonb, uuid) is
  'The ids of the jobs that match and do not run; refuses who may not change them, and a filter that names nothing.';

create function app_private.note_job_change(name text, organization_id uuid, data jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  stream uuid := coalesce(organization_id, app_public.current_user_id());
begin
  insert into app_private.pending_events (stream_id, organization_id, name, subject_type, subject_id, actor_type,
    channel, request_id, data)
    values (stream, organization_id, 'job.' || note_job_change.name, 'job', uuidv7(),
      case when app_hidden.setting('token_id') is null then 'USER' else 'ACCESS_TOKEN' end,
      coalesce(app_hidden.setting('channel'), 'SYSTEM'), app_hidden.setting('request_id'),
      jsonb_strip_nulls(note_job_change.data));
  insert into app_private.event_batches (stream_id) values (stream) on conflict do nothing;
end $$;
comment on function app_private.note_job_change(text, uuid, jsonb) is
  'Writes the event of what somebody did with jobs: in the stream of the organization, or of the operator.';

create function app_public.retry_jobs(ids text[] default null, task text default null,
  state app_public.job_state default null, created_before timestamptz default null, arguments jsonb default null,
  organization_id uuid default null) returns app_public.changed_jobs
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  chosen bigint[] := app_private.jobs_to_change(ids, task, state, created_before, arguments, organization_id);
  result app_public.changed_jobs;
begin
  -- Those that would not run now by themselves.
  chosen := array(select j.id from graphile_worker._private_jobs j where j.id = any (chosen) and j.locked_at is null
    and (j.attempts >= j.max_attempts or j.run_at > now()) order by j.id limit app_private.jobs_at_once() + 1);
  result.more := cardinality(chosen) > app_private.jobs_at_once();
  chosen := chosen[:app_private.jobs_at_once()];
  delete from app_private.job_deaths d where d.job_id = any (chosen);
  select count(*) into result.changed
    from graphile_worker.reschedule_jobs(chosen, run_at => now(), attempts => 0);
  if result.changed > 0 then
    perform app_private.note_job_change('retried', organization_id, jsonb_build_object('changed', result.changed,
      'jobs', to_jsonb(chosen[:100]), 'task', task, 'state', state));
  end if;
  return result;
end $$;

create function app_public.discard_jobs(ids text[] default null, task text default null,
  state app_public.job_state default null, created_before timestamptz default null, arguments jsonb default null,
  organization_id uuid default null) returns app_public.changed_jobs
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  chosen bigint[] := app_private.jobs_to_change(ids, task, state, created_before, arguments, organization_id);
  result app_public.changed_jobs;
begin
  result.more := cardinality(chosen) > app_private.jobs_at_once();
  chosen := chosen[:app_private.jobs_at_once()];
  delete from app_private.job_deaths d where d.job_id = any (chosen);
  select count(*) into result.changed from graphile_worker.complete_jobs(chosen);
  if result.changed > 0 then
    perform app_private.note_job_change('discarded', organization_id, jsonb_build_object('changed', result.changed,
      'jobs', to_jsonb(chosen[:100]), 'task', task, 'state', state));
  end if;
  return result;
end $$;

create function app_public.reschedule_jobs(run_at timestamptz, ids text[] default null, task text default null,
  state app_public.job_state default null, created_before timestamptz default null, arguments jsonb default null,
  organization_id uuid default null) returns app_public.changed_jobs
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  chosen bigint[] := app_private.jobs_to_change(ids, task, state, created_before, arguments, organization_id);
  result app_public.changed_jobs;
begin
  if reschedule_jobs.run_at is null or reschedule_jobs.run_at > now() + interval '1 year' then
    perform app_hidden.fail('BAD_USER_INPUT', 'The time must be within a year.', '{"field": "runAt"}');
  end if;
  chosen := array(select j.id from graphile_worker._private_jobs j where j.id = any (chosen) and j.locked_at is null
    and (j.attempts >= j.max_attempts or j.run_at <> reschedule_jobs.run_at)
    order by j.id limit app_private.jobs_at_once() + 1);
  result.more := cardinality(chosen) > app_private.jobs_at_once();
  chosen := chosen[:app_private.jobs_at_once()];
  delete from app_private.job_deaths d where d.job_id = any (chosen);
  select count(*) into result.changed
    from graphile_worker.reschedule_jobs(chosen, run_at => reschedule_jobs.run_at, attempts => 0);
  if result.changed > 0 then
    perform app_private.note_job_change('rescheduled', organization_id, jsonb_build_object('changed', result.changed,
      'jobs', to_jsonb(chosen[:100]), 'task', task, 'state', state, 'runAt', reschedule_jobs.run_at));
  end if;
  return result;
end $$;

create function app_private.task_named(name text) returns app_public.job_task
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  result app_public.job_task;
begin
  perform app_private.require_operator();
  select t.* into result from unnest(app_public.job_tasks()) t where t.name = task_named.name;
  if result.name is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such task.', '{"field": "task"}');
  end if;
  return result;
end $$;
comment on function app_private.task_named(text) is 'A task; refuses who is no operator, and names of none.';

create function app_public.pause_task(task text, reason text default null) returns app_public.job_task
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  paused app_public.job_task := app_private.task_named(pause_task.task);
begin
  if paused.paused_at is null then
    insert into app_private.paused_tasks (task, reason, paused_by_id)
      values (pause_task.task, pause_task.reason, app_public.current_user_id()) on conflict do nothing;
    perform app_private.note_job_change('task_paused', null, jsonb_build_object('task', pause_task.task, 'reason',
      pause_task.reason));
    perform pg_notify('plat_paused_tasks', '');
  end if;
  return app_private.task_named(pause_task.task);
end $$;

create function app_public.resume_task(task text) returns app_public.job_task
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  paused app_public.job_task := app_private.task_named(resume_task.task);
begin
  if paused.paused_at is not null then
    delete from app_private.paused_tasks p where p.task = resume_task.task;
    perform app_private.note_job_change('task_resumed', null, jsonb_build_object('task', resume_task.task));
    perform pg_notify('plat_paused_tasks', '');
  end if;
  return app_private.task_named(resume_task.task);
end $$;

create function app_private.paused_task_ids() returns int[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select array(select t.id from app_private.paused_tasks p join graphile_worker._private_tasks t
    on t.identifier = p.task)
$$;
comment on function app_private.paused_task_ids() is 'The tasks whose jobs no worker takes at the moment.';

comment on type app_public.job is 'A background job: one entry of the job queue.';
comment on column app_public.job.id is E'@notNull\n\nNumber of the job in the queue.';
comment on column app_public.job.task is E'@notNull\n\nName of the task that it runs, such as export__requested.';
comment on column app_public.job.state is E'@notNull\n\nScheduling state of the job.';
comment on column app_public.job.arguments is 'Arguments of the job; secrets are masked.';
comment on column app_public.job.attempts is E'@notNull\n\nNumber of attempts so far.';
comment on column app_public.job.max_attempts is E'@notNull\n\nMaximum number of attempts.';
comment on column app_public.job.run_at is E'@notNull\n\nEarliest time at which it runs.';
comment on column app_public.job.started_at is 'When the current run started; null if it is not running.';
comment on column app_public.job.created_at is E'@notNull\n\nWhen it was queued.';
comment on column app_public.job.updated_at is E'@notNull\n\nWhen a worker last changed it.';
comment on column app_public.job.last_error is 'Error of the last failed attempt; secrets are masked.';
comment on column app_public.job.queue is 'Queue whose jobs run one at a time; null if the job is in none.';
comment on column app_public.job.request_id is '`X-Request-Id` of the request that caused it; null if no request did.';
comment on column app_public.job.organization_id is
  E'@behavior -*\n\nThe organization that it is done for, where one is.';
comment on type app_public.job_task is 'A task: the code that runs jobs of one kind, with counts of its jobs.';
comment on column app_public.job_task.name is E'@notNull\n\nIdentifier as in the logs, such as `export__requested`.';
comment on column app_public.job_task.due is E'@notNull\n\nNumber of jobs that run as soon as a worker is free.';
comment on column app_public.job_task.scheduled is E'@notNull\n\nNumber of jobs scheduled for later.';
comment on column app_public.job_task.failed is E'@notNull\n\nNumber of jobs whose last attempt failed.';
comment on column app_public.job_task.oldest_due_at is 'Due time of the oldest due job; null if none is due.';
comment on column app_public.job_task.last_scheduled_at is 'When its schedule last queued a job; null if it has none.';
comment on column app_public.job_task.paused_at is 'When the task was paused; null if it is not paused.';
comment on column app_public.job_task.pause_reason is
  'Reason for the pause, as the operator gave it; null if not paused.';
comment on type app_public.changed_jobs is 'Result of an operation on jobs.';
comment on column app_public.changed_jobs.changed is E'@notNull\n\nNumber of changed jobs, at most 1,000 per request.';
comment on column app_public.changed_jobs.more is
  E'@notNull\n\nWhether more jobs match; repeat the mutation to change them, too.';
comment on function app_public.jobs is
  E'@notNull\n@arg task Only jobs of this task, such as export__requested.\n@arg state Only jobs in this state, '
  'such as FAILED.\n@arg created_before Only jobs queued before this time.\n@arg arguments Only jobs whose '
  'arguments contain these properties.\n@arg organization_id Id or slug of an organization, for its jobs only; '
  'required for owners, omitted by operators.\n@arg before_id Id of the last job of the previous page.\n@arg most '
  'Maximum number of jobs, up to 200.\n\n'
  'Background jobs, latest first: all for operators of the service, those of the organization for its owners. A '
  'filter searches the latest 100,000.';
comment on function app_public.job_tasks is
  E'@notNull\n\nTasks of the job queue, with the number of waiting jobs of each. For operators of the service.';
comment on function app_public.retry_jobs is
  E'@arg ids Ids of jobs, at most 1,000.\n@arg task Only jobs of this task, such as export__requested.\n@arg state '
  'Only jobs in this state, such as FAILED.\n@arg created_before Only jobs queued before this time.\n@arg '
  'arguments Only jobs whose arguments contain these properties.\n@arg organization_id Only jobs of this '
  'organization; required for owners, omitted by operators.\n\n'
  'Runs failed or scheduled jobs now, and resets their attempts. For operators of the service, and for owners of '
  'the organization (permission org.owner).';
comment on function app_public.discard_jobs is
  E'@arg ids Ids of jobs, at most 1,000.\n@arg task Only jobs of this task, such as export__requested.\n@arg state '
  'Only jobs in this state, such as FAILED.\n@arg created_before Only jobs queued before this time.\n@arg '
  'arguments Only jobs whose arguments contain these properties.\n@arg organization_id Only jobs of this '
  'organization; required for owners, omitted by operators.\n\n'
  'Deletes jobs that are not running, without executing them. For operators of the service, and for owners of the '
  'organization (permission org.owner).';
comment on function app_public.reschedule_jobs is
  E'@arg run_at New earliest time of execution.\n@arg ids Ids of jobs, at most 1,000.\n@arg task Only jobs of this '
  'task, such as export__requested.\n@arg state Only jobs in this state, such as FAILED.\n@arg created_before Only '
  'jobs queued before this time.\n@arg arguments Only jobs whose arguments contain these properties.\n@arg '
  'organization_id Only jobs of this organization; required for owners, omitted by operators.\n\n'
  'Reschedules jobs that are not running, and resets their attempts. For operators of the service, and for owners '
  'of the organization (permission org.owner).';
comment on function app_public.pause_task is
  E'@arg task Name of the task, such as export__requested.\n@arg reason Reason for the pause, shown to other '
  'operators of the service.\n\n'
  'Pauses a task: workers start no further jobs of it until it is resumed. Running jobs continue. For operators of '
  'the service.';
comment on function app_public.resume_task is
  E'@arg task Name of the task, such as export__requested.\n\n'
  'Resumes a paused task: workers start its jobs again. For operators of the service.';
grant execute on function app_public.jobs, app_public.job_tasks to plat_user;
grant execute on function app_public.retry_jobs, app_public.discard_jobs, app_public.reschedule_jobs,
  app_public.pause_task, app_public.resume_task to plat_user, plat_anonymous;
grant execute on function app_private.paused_task_ids to plat_worker;
