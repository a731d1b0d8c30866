-- A worker that was killed leaves its jobs locked, and with a job its whole named queue; the job runner itself frees
-- them after four hours. So each worker holds a lock on a connection of its own for as long as it lives: where that is
-- gone, so is the worker, and whoever looks frees what it held. Nothing is written while all of them live.

comment on table app_private.workers is
  'The workers that run, and those that ended and were not noticed yet; the id is what the job runner locks jobs with.';

create function app_private.worker_begins(worker_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Shared, because the connection before may still be there where the network lost it.
  perform pg_advisory_lock_shared(7528003, hashtext(worker_id));
  insert into app_private.workers (id) values (worker_id) on conflict do nothing;
end $$;
comment on function app_private.worker_begins(text) is 'Says that a worker lives, for as long as the connection does.';

create function app_private.worker_ends(worker_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform graphile_worker.force_unlock_workers(array[worker_id]);
  delete from app_private.workers w where w.id = worker_id;
end $$;
comment on function app_private.worker_ends(text) is
  'Says that a worker has stopped: what it still holds is free, and nobody has to notice that it is gone.';

create function app_private.organization_of_job(task text, payload json) returns uuid
language plpgsql stable as $$
declare
  id uuid;
  organization uuid;
  source text;
begin
  id := coalesce(payload ->> 'organization_id', payload ->> 'id')::uuid;
  if payload ->> 'organization_id' is not null then
    return id;
  end if;
  select r.table_name into source from app_hidden.record_types r
    join pg_attribute a on a.attrelid = to_regclass(format('app_public.%I', r.table_name))
      and a.attname = 'organization_id' and not a.attisdropped
    where r.subject = split_part(task, '__', 1);
  if found and id is not null then
    execute format('select t.organization_id from app_public.%I t where t.id = $1', source) into organization using id;
  end if;
  return organization;
exception when invalid_text_representation then
  return null;
end $$;
comment on function app_private.organization_of_job(text, json) is
  'The organization that a job is about, where its payload or the record that it names tells.';

create function app_private.free_jobs_of_dead_workers(everywhere boolean)
returns table (job_id bigint, task text, organization_id uuid, deaths int, ticket uuid)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  most_deaths constant int := 2;
  suspects text[] := array(select w.id from app_private.workers w);
  dead text[];
  held bigint[];
begin
  -- Those who were killed before they could say that they live. Asked once, at a start: it reads all jobs.
  if everywhere then
    suspects := suspects || array(
      select j.locked_by from graphile_worker._private_jobs j where j.locked_by is not null
      union select q.locked_by from graphile_worker._private_job_queues q where q.locked_by is not null);
    delete from app_private.job_deaths d
      where d.key is null and not exists (select from graphile_worker._private_jobs j where j.id = d.job_id);
  end if;
  dead := array(select distinct s from unnest(suspects) s where not app_private.worker_lives(s));
  if dead = '{}' then
    return;
  end if;
  held := array(select j.id from graphile_worker._private_jobs j where j.locked_by = any (dead));
  perform graphile_worker.force_unlock_workers(dead);
  delete from app_private.workers w where w.id = any (dead);
  insert into app_private.job_deaths as d (identity, job_id, key, task, organization_id)
    select coalesce(j.key, j.id::text), j.id, j.key, t.identifier,
      app_private.organization_of_job(t.identifier, j.payload)
    from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id
    where j.id = any (held)
    on conflict (identity) do update set deaths = d.deaths + 1, job_id = excluded.job_id, last_died_at = now(),
      set_aside_at = case when d.deaths + 1 >= most_deaths then coalesce(d.set_aside_at, now()) end;
  perform graphile_worker.permanently_fail_jobs(array[d.job_id],
      format('JOB_SET_ASIDE: the process died %s times during this job. Release it with: '
        'select app_private.release_job(''%s'')', d.deaths, d.id))
    from app_private.job_deaths d where d.job_id = any (held) and d.set_aside_at is not null;
  return query select d.job_id, d.task, d.organization_id, d.deaths::int,
      case when d.set_aside_at is not null then d.id end
    from app_private.job_deaths d where d.job_id = any (held);
end $$;
comment on function app_private.free_jobs_of_dead_workers(boolean) is
  'Frees the jobs and queues that dead workers hold; `everywhere`: of those too who never said that they live. A job '
  'at which its process died for the second time is set aside under a ticket, and is not run again until that is '
  'released. Returns those jobs.';

create function app_private.deadly_keys() returns table (key text, ticket uuid)
language sql stable rows 10 security definer set search_path = pg_catalog, pg_temp as $$
  select d.key, case when d.set_aside_at is not null then d.id end from app_private.job_deaths d
  where d.key is not null
$$;
comment on function app_private.deadly_keys() is
  'The keys of jobs during which their process died; with a ticket where the job is set aside: whoever adds a job '
  'under such a key again, such as the clock, adds what is set aside.';

create function app_private.note_job_done(key text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  delete from app_private.job_deaths d where d.identity = $1 and d.set_aside_at is null
$$;
comment on function app_private.note_job_done(text) is
  'Forgets that processes died during a job: it was done.';

create function app_private.release_job(ticket uuid) returns text
language plpgsql volatile as $$
declare
  released app_private.job_deaths;
begin
  delete from app_private.job_deaths d where d.id = ticket and d.set_aside_at is not null returning * into released;
  if released.id is null then
    return 'No job is set aside under this ticket.';
  end if;
  perform graphile_worker.reschedule_jobs(array[released.job_id], run_at => now(), attempts => 0);
  return format('%s (job %s) runs again.', released.task, released.job_id);
end $$;
comment on function app_private.release_job(uuid) is
  'For operators: lets a job that was set aside because its process died twice run again. Says what became of it.';

comment on table app_private.job_deaths is
  'Jobs during which their process died: how often, and since when they are set aside. The id is the ticket that the '
  'log tells.';
grant execute on function app_private.deadly_keys, app_private.free_jobs_of_dead_workers, app_private.note_job_done,
  app_private.worker_begins, app_private.worker_ends to plat_worker;
