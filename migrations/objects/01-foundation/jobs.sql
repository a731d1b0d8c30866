-- Side effects outside of a transaction are jobs, enqueued in the transaction: they are committed or rolled back with
-- it. In plpgsql, because the job runner creates its own tables.

create function app_private.job_context(organization_id uuid default null) returns jsonb
language sql stable as $$
  select case when c.of = '{}' then c.of else jsonb_build_object('context', c.of) end
  from (select jsonb_strip_nulls(jsonb_build_object('requestId', app_hidden.setting('request_id'),
    'traceparent', app_hidden.setting('traceparent'), 'organizationId', organization_id)) as of) c
$$;
comment on function app_private.job_context(uuid) is
  'Origin of a job for its payload, as far as known: {context: {requestId, traceparent, organizationId}}. The log, '
  'events and mails of the job bear the id; see src/worker.ts.';

create function app_private.job_flags(task text, organization_id uuid) returns text[]
language sql immutable as $$
  -- Other jobs are done at once, and use all slots.
  select case when task in ('export__requested', 'generation__sent', 'integration__retried',
      'organization_deletion__due', 'search__catch_up', 'workflow_mail__send')
    then array_remove(array['organization:' || organization_id,
      case when task in ('export__requested', 'organization_deletion__due', 'search__catch_up') then 'long' end], null)
    end
$$;
comment on function app_private.job_flags(text, uuid) is
  'What a job counts towards, as src/jobs/shares.ts reads it: its organization if it may wait for what that has set '
  'up, such as a mail server of a member, and the jobs that take minutes.';

create function app_private.note_dry_job(task text, payload jsonb, organization_id uuid, run_at timestamptz)
returns void
language sql volatile as $$
  -- Truncated if there are very many: a list that is rewritten for each takes longer and longer.
  select set_config('plat.dry_run_jobs', (n.noted || jsonb_build_object('task', task, 'id', payload ->> 'id',
      'organizationId', organization_id, 'runAt', run_at))::text, true)
  from (select coalesce(app_hidden.setting('dry_run_jobs'), '[]')::jsonb as noted) n
  where jsonb_array_length(n.noted) < 500
$$;
comment on function app_private.note_dry_job(text, jsonb, uuid, timestamptz) is
  'Notes for app_private.dry_run_effects a job that is not enqueued.';

create function app_private.add_job(task text, payload jsonb default '{}', run_at timestamptz default null,
  job_key text default null, queue_name text default null)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  organization constant uuid := app_private.organization_of_job(task, payload::json);
begin
  if app_private.is_dry_run() then
    perform app_private.note_dry_job(task, payload, organization, run_at);
    return;
  end if;
  perform graphile_worker.add_job(task, payload => (payload || app_private.job_context(organization))::json,
    run_at => run_at, job_key => job_key, queue_name => queue_name,
    flags => app_private.job_flags(task, organization));
end $$;
comment on function app_private.add_job(text, jsonb, timestamptz, text, text) is
  'Enqueues a task of src/tasks; a second job with the same key replaces the first while that still waits. Jobs of one '
  'queue run one at a time.';

create function app_private.tg__add_job() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.add_job(tg_argv[0], jsonb_build_object('id', new.id));
  return null;
end $$;
comment on function app_private.tg__add_job() is 'Row trigger that enqueues the task named by its argument with {id}.';

comment on table app_private.schema_objects is
  'Which states of the replaceable objects (migrations/objects) were brought into the database, the latest one last.';
