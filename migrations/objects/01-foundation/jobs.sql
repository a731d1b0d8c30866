-- What must happen outside of a transaction is a job, written inside of it: it commits or vanishes with the change.
-- plpgsql, because the tables of the job runner are made by the runner itself.

create function app_private.job_context(organization_id uuid default null) returns jsonb
language sql stable as $$
  select case when c.of = '{}' then c.of else jsonb_build_object('context', c.of) end
  from (select jsonb_strip_nulls(jsonb_build_object('requestId', app_hidden.setting('request_id'),
    'traceparent', app_hidden.setting('traceparent'), 'organizationId', organization_id)) as of) c
$$;
comment on function app_private.job_context(uuid) is
  'What the payload of a job says of whoever has asked for it: {context: {requestId, traceparent, '
  'organizationId}}, as far as it is '
  'known. The log, events and mails of the job bear the id; see src/worker.ts.';

create function app_private.add_job(task text, payload jsonb default '{}', run_at timestamptz default null,
  job_key text default null)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform graphile_worker.add_job(task, payload => (payload || app_private.job_context(
    app_private.organization_of_job(task, payload::json)))::json, run_at => run_at,
    job_key => job_key);
end $$;
comment on function app_private.add_job(text, jsonb, timestamptz, text) is
  'Enqueues a task of src/tasks; a second job with the same key replaces the first while that still waits.';

create function app_private.tg__add_job() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.add_job(tg_argv[0], jsonb_build_object('id', new.id));
  return null;
end $$;
comment on function app_private.tg__add_job() is 'Row trigger that enqueues the task named by its argument with {id}.';

comment on table app_private.schema_objects is
  'Which states of the replaceable objects (migrations/objects) were brought into the database, the latest one last.';
