-- A worker that was killed leaves its jobs locked, and with a job its whole named queue; the job runner itself frees
-- them after four hours. So each worker holds a lock on a connection of its own for as long as it lives: where that is
-- gone, so is the worker, and whoever looks frees what it held. Nothing is written while all of them live.

comment on table app_private.workers is
  'The workers that run, and those that ended and were not noticed yet; the id is what the job runner locks jobs with.';

create function app_private.worker_begins(worker_id text) returns void
language plpgsql volatile as $$
begin
  -- Shared, because the connection before may still be there where the network lost it.
  perform pg_advisory_lock_shared(7528003, hashtext(worker_id));
  insert into app_private.workers (id) values (worker_id) on conflict do nothing;
end $$;
comment on function app_private.worker_begins(text) is 'Says that a worker lives, for as long as the connection does.';

create function app_private.free_jobs_of_dead_workers(everywhere boolean) returns int
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
comment on function app_private.free_jobs_of_dead_workers(boolean) is
  'Frees the jobs and queues that dead workers hold; `everywhere`: of those too who never said that they live. Returns '
  'how many jobs.';
