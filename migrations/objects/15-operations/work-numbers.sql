-- Amounts of pending work, for monitoring. Each number is read from an index and counts up to a limit, so that
-- monitoring a full queue is no load itself.

create function app_private.counted_at_most() returns int
language sql immutable as $$ select 100000 $$;
comment on function app_private.counted_at_most() is
  'Where numbers for monitoring stop counting: beyond it they say this many.';

create function app_private.job_numbers() returns table (metric text, label text, value double precision)
language sql stable rows 300 security definer set search_path = pg_catalog, pg_temp as $$
  with waiting as (
    select w.task_id, count(*) filter (where w.run_at <= now()) as due,
      count(*) filter (where w.run_at > now()) as later,
      min(w.run_at) filter (where w.run_at <= now()) as oldest
    from (select j.task_id, j.run_at from graphile_worker._private_jobs j where j.is_available = true
      order by j.priority, j.run_at limit app_private.counted_at_most()) w
    group by w.task_id
  ), failed as (
    select f.task_id, count(*) as amount
    from (select j.task_id from graphile_worker._private_jobs j where j.attempts >= j.max_attempts
      and j.locked_at is null limit app_private.counted_at_most()) f
    group by f.task_id
  )
  select n.metric, t.identifier, n.value from graphile_worker._private_tasks t
    left join waiting w on w.task_id = t.id
    left join failed f on f.task_id = t.id
    cross join lateral (values ('jobs_due', coalesce(w.due, 0)::double precision),
      ('jobs_scheduled', coalesce(w.later, 0)), ('jobs_failed', coalesce(f.amount, 0)),
      ('job_oldest_due_seconds', coalesce(extract(epoch from now() - w.oldest), 0))) n (metric, value)
$$;
comment on function app_private.job_numbers() is
  'How many jobs of each task are due, wait for their time, or failed for the last time, and for how many seconds the '
  'oldest has been due.';

create function app_private.stream_numbers() returns table (metric text, label text, value double precision)
language sql stable rows 10 security definer set search_path = pg_catalog, pg_temp as $$
  with behind as (
    select c.reader, c.organization_id, c.last_sequence, e.last_sequence - c.last_sequence as amount from (
      select 'webhooks' as reader, p.organization_id, p.last_sequence from app_private.webhook_progress p
        join app_public.webhooks w on w.id = p.webhook_id and w.status in ('ENABLED', 'FAILING')
          and w.deleted_at is null
      union all select 'workflows', s.organization_id, s.last_sequence from app_private.workflow_streams s
      union all select 'notifications', p.organization_id, p.last_sequence from app_private.notification_progress p) c
    join app_private.event_counters e on e.stream_id = c.organization_id and e.last_sequence > c.last_sequence
    limit 10000
  ), oldest as (
    select b.reader, min(e.occurred_at) as occurred_at from behind b
    cross join lateral (select e.occurred_at from app_public.events e
      where e.organization_id = b.organization_id and e.sequence > b.last_sequence order by e.sequence limit 1) e
    group by b.reader
  )
  select n.metric, r.reader, n.value from (values ('webhooks'), ('workflows'), ('notifications')) r (reader)
    left join (select b.reader, sum(b.amount) as amount from behind b group by b.reader) a on a.reader = r.reader
    left join oldest o on o.reader = r.reader
    cross join lateral (values ('events_unread', coalesce(a.amount, 0)::double precision),
      ('event_oldest_unread_seconds', coalesce(extract(epoch from now() - o.occurred_at), 0))) n (metric, value)
$$;
comment on function app_private.stream_numbers() is
  'Number of events that the stream readers have not read yet, and the age of the oldest in seconds.';

create function app_private.backlog_numbers() returns table (metric text, label text, value double precision)
language sql stable rows 20 security definer set search_path = pg_catalog, pg_temp as $$
  select n.* from (
    select count(*) filter (where not q.leased) as waiting, count(*) filter (where q.leased) as leased,
      min(q.due_at) filter (where not q.leased and q.due_at <= now()) as oldest
    from (select q.leased, q.due_at from app_private.webhook_queue q limit app_private.counted_at_most()) q) q
    cross join lateral (values ('webhook_deliveries', 'waiting', q.waiting::double precision),
      ('webhook_deliveries', 'sending', q.leased),
      ('webhook_delivery_oldest_due_seconds', '', coalesce(extract(epoch from now() - q.oldest), 0))) n
  union all
  select n.* from (
    select sum(least(d.amount, 10000)) as due, min(d.oldest) as oldest from app_private.due_workflow_steps() s
    cross join lateral (select count(*) as amount, min(e.scheduled_at) as oldest from (
      select e.scheduled_at from app_public.workflow_executions e where e.workflow_id = s.workflow_id
        and e.steps_revision = s.steps_revision and e.current_step = s.sequence
        and e.status in ('PENDING', 'RUNNING') and e.holder is null and e.scheduled_at <= now()
      order by e.scheduled_at limit 10000) e) d) w
    cross join lateral (values ('workflow_executions_due', '', coalesce(w.due, 0)::double precision),
      ('workflow_execution_oldest_due_seconds', '', coalesce(extract(epoch from now() - w.oldest), 0))) n
  union all
  select n.* from (
    select count(*) filter (where e.status = 'PENDING') as pending,
      count(*) filter (where e.status = 'PROCESSING') as processing,
      min(e.status_changed_at) filter (where e.status = 'PENDING') as oldest
    from (select e.status, e.status_changed_at from app_public.exports e where e.status in ('PENDING', 'PROCESSING')
      limit app_private.counted_at_most()) e) x
    cross join lateral (values ('exports', 'pending', x.pending::double precision),
      ('exports', 'processing', x.processing),
      ('export_oldest_pending_seconds', '', coalesce(extract(epoch from now() - x.oldest), 0))) n
  union all
  select n.* from (
    select count(*) as amount, min(m.due_at) filter (where m.due_at <= now()) as oldest
    from (select m.due_at from app_private.notification_mails m where m.closed_at is null and m.digest_on is null
      limit app_private.counted_at_most()) m) m
    cross join lateral (values ('notification_mails_open', '', m.amount::double precision),
      ('notification_mail_oldest_due_seconds', '', coalesce(extract(epoch from now() - m.oldest), 0))) n
  union all
  select n.* from (
    select count(*) as amount, min(d.due_at) as oldest from (select d.due_at from app_hidden.deadlines d
      where d.due_at <= now() order by d.due_at limit app_private.counted_at_most()) d) d
    cross join lateral (values ('deadlines_due', '', d.amount::double precision),
      ('deadline_oldest_due_seconds', '', coalesce(extract(epoch from now() - d.oldest), 0))) n
  union all
  select 'workers', '', count(*)::double precision from app_private.workers w where app_private.worker_lives(w.id)
  union all
  select 'jobs_set_aside', '', count(*)::double precision from app_private.job_deaths d where d.set_aside_at is not null
$$;
comment on function app_private.backlog_numbers() is
  'How many deliveries, executions of workflows, exports, mails of notifications and deadlines wait, and for how many '
  'seconds the oldest has been due; how many workers live, and how many jobs are set aside.';

create function app_private.server_numbers() returns table (metric text, label text, value double precision)
language sql stable rows 10 security definer set search_path = pg_catalog, pg_temp as $$
  -- Without the right to read statistics of others, the lag is unknown and omitted.
  select 'replication_lag_seconds', r.application_name || ' ' || coalesce(r.client_addr::text, 'local'),
    extract(epoch from coalesce(r.replay_lag, '0'))::double precision
  from pg_stat_replication r where r.state = 'streaming' and r.replay_lsn is not null
  union all
  (select 'replication_slot_retained_bytes', s.slot_name::text, pg_wal_lsn_diff(pg_current_wal_lsn(),
    s.restart_lsn)::double precision
  from pg_replication_slots s where s.restart_lsn is not null and not pg_is_in_recovery() limit 20)
  union all
  select n.* from pg_stat_archiver a
    cross join lateral (values ('archived_segments', '', a.archived_count::double precision),
      ('archive_failures', '', a.failed_count),
      ('archive_last_success_timestamp_seconds', '', extract(epoch from a.last_archived_time)),
      ('archive_failing', '', case when a.last_failed_time > coalesce(a.last_archived_time, '-infinity') then 1
        else 0 end)) n (metric, label, value)
  where current_setting('archive_mode') <> 'off'
  union all
  select 'database_connections', '', count(*)::double precision from pg_stat_activity a
    where a.backend_type = 'client backend'
  union all
  select 'database_connections_limit', '', current_setting('max_connections')::double precision
$$;
comment on function app_private.server_numbers() is
  'How far standbys and replication slots are behind, whether the log is archived, and how many connections the server '
  'has.';

create function app_private.work_numbers() returns table (metric text, label text, value double precision)
language sql stable rows 300 security definer set search_path = pg_catalog, pg_temp as $$
  select * from app_private.job_numbers()
  union all select * from app_private.stream_numbers()
  union all select * from app_private.backlog_numbers()
  union all select * from app_private.server_numbers()
$$;
comment on function app_private.work_numbers() is
  E'@step Has no arguments and returns no records: only counts and ages, which change from second to second.\n\n'
  'Metrics of pending work, over all processes: names without their prefix, and at most one label.';
grant execute on function app_private.work_numbers to plat_authenticator;
