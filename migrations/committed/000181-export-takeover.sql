--! Previous: sha1:cf62ce6cd15211fb1ff87f021056a600cfe9c3ad
--! Hash: sha1:8700b90986ddae412e0fce0ae31f8acfe0cc43d1
--! Message: export-takeover

-- An export whose worker died is taken over as soon as its job is free, not when the lease is over: a worker that says that it
-- lives can be seen to be dead.

alter table app_private.export_runs add column holder text;
comment on column app_private.export_runs.holder is
  'The job runner''s worker that has the lease, where it said that it lives; of others only the end of the lease tells.';

create function app_private.worker_lives(id text) returns boolean
language sql stable as $$
  select exists (select from pg_locks l where l.locktype = 'advisory' and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.classid = 7528003 and l.objid = ((hashtext(worker_lives.id)::bigint + 4294967296) % 4294967296)::oid and l.objsubid = 2)
$$;
comment on function app_private.worker_lives(text) is 'Whether the worker said that it lives, and still does.';

create or replace function app_private.free_jobs_of_dead_workers(everywhere boolean) returns int
language plpgsql volatile as $$
declare
  suspects text[] := array(select w.id from app_private.workers w);
  dead text[];
  amount int;
begin
  -- Those who were killed before they could say that they live. Asked once, at a start: it reads all jobs.
  if everywhere then
    suspects := suspects || array(
      select j.locked_by from graphile_worker._private_jobs j where j.locked_by is not null
      union select q.locked_by from graphile_worker._private_job_queues q where q.locked_by is not null);
  end if;
  dead := array(select distinct s from unnest(suspects) s where not app_private.worker_lives(s));
  if dead = '{}' then
    return 0;
  end if;
  amount := (select count(*) from graphile_worker._private_jobs j where j.locked_by = any (dead));
  perform graphile_worker.force_unlock_workers(dead);
  delete from app_private.workers w where w.id = any (dead);
  return amount;
end $$;

drop function app_private.start_export(uuid);
create function app_private.start_export(id uuid, holder text) returns table (worker uuid, requested_by_id uuid, token_id uuid, token_organization_id uuid, token_scopes text,
  subject text, format text, filename text, stale_key text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  most constant int := 5;
  chosen app_public.exports;
  run app_private.export_runs;
begin
  select * into chosen from app_public.exports e where e.id = start_export.id and e.status in ('PENDING', 'PROCESSING') for no key update;
  if chosen.id is null then
    return;
  end if;
  select * into run from app_private.export_runs r where r.export_id = chosen.id for update;
  if run.lease_until > clock_timestamp() and (run.holder is null or app_private.worker_lives(run.holder)) then
    perform app_private.add_job('export__requested', jsonb_build_object('id', chosen.id), run.lease_until, 'export ' || chosen.id);
    return;
  elsif run.attempts >= most then
    perform app_private.step_export(chosen.id, 'FAILED', 'The export broke off several times.');
    return;
  end if;
  stale_key := run.file_key;
  update app_private.export_runs r set worker = gen_random_uuid(), attempts = r.attempts + 1, lease_until = clock_timestamp() + interval '1 minute', rows_done = 0,
      rows_total = null, holder = case when app_private.worker_lives(start_export.holder) then start_export.holder end
    where r.export_id = chosen.id returning * into run;
  perform app_private.step_export(chosen.id, 'PROCESSING');
  return query select run.worker, chosen.requested_by_id, run.token_id, run.token_organization_id, run.token_scopes, chosen.subject::text, chosen.format::text, chosen.filename, stale_key;
end $$;
comment on function app_private.start_export(uuid, text) is
  'Hands an export to a worker, which the job runner knows as `holder`; no row where there is nothing to do, or another one is at it, in which case it looks again later.';
