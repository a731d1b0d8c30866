-- A worker that is killed leaves its jobs locked, and with a job its whole named queue; the job runner itself frees
-- them after four hours. Therefore, each worker holds a lock on a separate connection while it lives. Connections can
-- also break while their process lives: when the lock is gone, other workers record the time, and free the jobs if it
-- has not come back in time. Nothing is written while all workers live.

create function app_private.worker_grace() returns interval
language sql stable as $$
  select coalesce(nullif(current_setting('plat.worker_grace', true), ''), '15 s')::interval
$$;
comment on function app_private.worker_grace() is
  'How long a worker, or a connection of one, may be gone until what it holds is anybody''s: 15 seconds, unless '
  '`plat.worker_grace` says otherwise.';

create function app_private.holds_lock(class int, number int) returns boolean
language sql stable as $$
  select exists (select from pg_locks l where l.locktype = 'advisory'
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.classid = holds_lock.class::oid and l.objid = ((number::bigint + 4294967296) % 4294967296)::oid
    and l.objsubid = 2)
$$;
comment on function app_private.holds_lock(int, int) is 'Whether anybody holds the advisory lock.';

comment on table app_private.workers is
  'The workers that run, and those that ended and were not noticed yet, with the time since when their connection is '
  'gone; the id is what the job runner locks jobs with.';

create function app_private.worker_begins(worker_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Shared, because the connection before may still be there where the network lost it.
  perform pg_advisory_lock_shared(7528003, hashtext(worker_id));
  insert into app_private.workers as w (id) values (worker_id)
    on conflict (id) do update set gone_at = null where w.gone_at is not null;
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

create function app_private.worker_lives(id text) returns boolean
language sql stable as $$
  select exists (select from app_private.workers w where w.id = worker_lives.id
    and (w.gone_at is null or w.gone_at > now() - app_private.worker_grace()))
$$;
comment on function app_private.worker_lives(text) is
  'Whether the worker said that it lives, and has not been gone for too long.';

comment on table app_private.worker_connections is
  'Connections by which the engines of webhooks and workflows are known to live, with the time since when they are '
  'gone; the id is what they hold deliveries, executions and streams by, and remains after a reconnect.';

create function app_private.connection_begins(id int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  if id is null then
    insert into app_private.worker_connections default values returning worker_connections.id into id;
  else
    insert into app_private.worker_connections as c (id) overriding system value values (id)
      on conflict on constraint worker_connections_pkey do update set gone_at = null where c.gone_at is not null;
  end if;
  perform pg_advisory_lock_shared(7528004, id);
  return id;
end $$;
comment on function app_private.connection_begins(int) is
  'Says that a connection of a worker is there, for as long as the session is: a new one, or the one of that id, '
  'which was reopened. Returns its id.';

create function app_private.connection_ends(id int) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  delete from app_private.worker_connections c where c.id = connection_ends.id
$$;
comment on function app_private.connection_ends(int) is
  'Says that a worker needs a connection no more: it holds nothing.';

create function app_private.note_gone_connections() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- PERF: read once, not for each connection.
  held constant oid[] := array(select l.objid from pg_locks l where l.locktype = 'advisory' and l.objsubid = 2
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.classid = 7528004::oid);
begin
  -- One that was opened while this read the locks is not gone. A time in the future was recorded before the clock was
  -- set back.
  update app_private.worker_connections c set gone_at = case when not c.id::oid = any (held) then now() end
    where case when c.id::oid = any (held) then c.gone_at is not null else coalesce(c.gone_at > now(), true) end;
  -- An abandoned one no longer blocks anything.
  delete from app_private.worker_connections c where c.gone_at < now() - app_private.worker_grace() - interval '1 hour';
  return (select count(*) from app_private.worker_connections c
    where c.gone_at is null or c.gone_at > now() - app_private.worker_grace());
end $$;
comment on function app_private.note_gone_connections() is
  'Notes since when connections of workers are gone. Returns how many are there, or may come back.';

create function app_private.living_connections() returns setof int
language sql stable rows 20 as $$
  select c.id from app_private.worker_connections c
    where c.gone_at is null or c.gone_at > now() - app_private.worker_grace()
  -- Workers of former releases held by the number of their server process.
  union all select a.pid from pg_stat_activity a where a.datname = current_database()
$$;
comment on function app_private.living_connections() is
  'The ids of the connections whose worker lives: those that are there, or have not been gone for too long.';

create function app_private.due_jobs(most int) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::int
    from (select from graphile_worker._private_jobs j where j.is_available and j.run_at <= now() limit most) due
$$;
comment on function app_private.due_jobs(int) is
  'How many jobs wait to be run now, counted up to a limit.';

create function app_private.organization_of_job(task text, payload json) returns uuid
language plpgsql stable as $$
declare
  id uuid;
  organization uuid;
  source text;
begin
  organization := coalesce(payload #>> '{context,organizationId}', payload ->> 'organization_id')::uuid;
  if organization is not null then
    return organization;
  end if;
  id := (payload ->> 'id')::uuid;
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
  dead text[];
  held bigint[];
begin
  -- Workers that were killed before they could record that they live. Checked once, at a start, because it reads all
  -- jobs.
  if everywhere then
    insert into app_private.workers (id)
      select j.locked_by from graphile_worker._private_jobs j where j.locked_by is not null
      union select q.locked_by from graphile_worker._private_job_queues q where q.locked_by is not null
      on conflict do nothing;
    delete from app_private.job_deaths d
      where d.key is null and not exists (select from graphile_worker._private_jobs j where j.id = d.job_id);
  end if;
  -- One that reconnected while this looked is not gone. A time in the future was recorded before the clock was set
  -- back.
  update app_private.workers w set gone_at = case when not l.held then now() end
    from (select o.id, app_private.holds_lock(7528003, hashtext(o.id)) as held from app_private.workers o offset 0) l
    where l.id = w.id and case when l.held then w.gone_at is not null else coalesce(w.gone_at > now(), true) end;
  dead := array(select w.id from app_private.workers w where w.gone_at <= now() - app_private.worker_grace()
    and not app_private.holds_lock(7528003, hashtext(w.id)));
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

create function app_private.free_lost_jobs(worker_id text, held bigint[]) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  -- Younger ones may be on their way.
  latest constant timestamptz := now() - interval '20 s';
  amount int;
begin
  update graphile_worker._private_job_queues q set locked_by = null, locked_at = null
    where q.locked_by = worker_id and q.locked_at not between latest and clock_timestamp() and not exists (
      select from graphile_worker._private_jobs j where j.job_queue_id = q.id and j.id = any (held));
  update graphile_worker._private_jobs j
    set locked_by = null, locked_at = null, attempts = greatest(j.attempts - 1, 0)
    where j.locked_by = worker_id and j.locked_at not between latest and clock_timestamp() and j.id <> all (held);
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.free_lost_jobs(text, bigint[]) is
  'Frees the jobs that a living worker was given and never heard of, as its connection broke before the answer: those '
  'that it holds and does not know of. Returns how many.';

create function app_private.follow_clock() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- Servers that agree to the second do not differ by more.
  latest constant timestamptz := now() + interval '1 minute';
  amount int;
begin
  update graphile_worker._private_jobs j set run_at = now() + greatest(interval '0', j.run_at - q.at),
      created_at = least(j.created_at, now()), updated_at = now()
    from (select j.id, greatest(j.created_at, j.updated_at) as at from graphile_worker._private_jobs j) q
    where q.id = j.id and q.at > latest and j.locked_at is null;
  get diagnostics amount = row_count;
  update app_private.webhook_queue q set due_at = now() from app_public.webhook_deliveries d
    where d.id = q.delivery_id and d.inserted_at > latest and q.due_at > latest and not q.leased;
  return amount;
end $$;
comment on function app_private.follow_clock() is
  'Has jobs and deliveries that were queued before the clock was set back wait for as long as they would have, rather '
  'than until the clock comes there again. Reads all jobs; returns how many it moved.';

create function app_private.deadly_keys() returns table (key text, ticket uuid)
language sql stable rows 10 security definer set search_path = pg_catalog, pg_temp as $$
  select d.key, case when d.set_aside_at is not null then d.id end from app_private.job_deaths d
  where d.key is not null
$$;
comment on function app_private.deadly_keys() is
  'The keys of jobs during which their process died; with a ticket where the job is set aside: a job that is added '
  'again under such a key, such as a scheduled one, is set aside as well.';

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
  'For operators: releases a job that was set aside because its process crashed twice; returns the outcome as a '
  'sentence.';

comment on table app_private.job_deaths is
  'Jobs during which their process died: how often, and since when they are set aside. The id is the ticket that the '
  'log tells.';
grant execute on function app_private.connection_begins, app_private.connection_ends, app_private.deadly_keys,
  app_private.due_jobs, app_private.follow_clock, app_private.free_jobs_of_dead_workers, app_private.free_lost_jobs,
  app_private.note_gone_connections,
  app_private.note_job_done, app_private.worker_begins, app_private.worker_ends to plat_worker;
