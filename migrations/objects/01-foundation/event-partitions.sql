-- Partitions of the stream of events, by time: a calendar quarter each. The partition of an event follows from its id,
-- which begins with the time; the first one begins before all ids, and the last one ends after all, so that an event
-- always has its place, whatever the clock says and whenever the job ran last. The job gives the last partition its end
-- while it is still empty, and makes the next.
--
-- Numbers are unique within a partition by its index, and among partitions because they come from one counter per
-- stream, whose row is locked until the commit (app_private.number_events).

create function app_private.event_partitions()
returns table (relation regclass, starts_at timestamptz, ends_at timestamptz)
language sql stable as $$
  select c.oid::regclass, app_private.time_of_id(b.bounds[1]), app_private.time_of_id(b.bounds[2])
  from pg_inherits i join pg_class c on c.oid = i.inhrelid and not i.inhdetachpending
  cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \((.*?)\) TO \((.*?)\)') b (bounds)
  where i.inhparent = 'app_public.events'::regclass
  order by 2 nulls first
$$;
comment on function app_private.event_partitions() is
  'The partitions of events, oldest first: from when, null for the first, and up to when, null for the last.';

create function app_private.time_of_id(bound text) returns timestamptz
language sql immutable as $$
  select case when bound not in ('MINVALUE', 'MAXVALUE')
    then to_timestamp(('x' || left(replace(trim(both '''' from bound), '-', ''), 12))::bit(48)::bigint / 1000.0) end
$$;
comment on function app_private.time_of_id(text) is
  'The time that an id begins with, as the bound of a partition is written; null for a bound that is open.';

create function app_private.quarter_after(at timestamptz) returns timestamptz
language sql immutable as $$
  select (date_trunc('quarter', at at time zone 'UTC') + interval '3 months') at time zone 'UTC'
$$;
comment on function app_private.quarter_after(timestamptz) is 'When the quarter after that of a time begins, in UTC.';

create function app_private.first_id(at timestamptz) returns uuid
language sql immutable as $$
  select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
comment on function app_private.first_id(timestamptz) is 'The id that all ids of a time follow.';

create function app_private.create_event_partition(starts_at timestamptz) returns regclass
language plpgsql volatile as $$
declare
  name constant text := 'events_' || to_char(starts_at at time zone 'UTC', 'YYYY"q"Q');
begin
  execute format('create table app_partitions.%1$I (like app_public.events including defaults including storage);
    create unique index %2$I on app_partitions.%1$I (organization_id, sequence);
    create unique index %3$I on app_partitions.%1$I (stream_id, sequence) where sequence is not null
      and organization_id is null;
    alter table app_partitions.%1$I enable row level security', name, name || '_organization', name || '_sequence');
  perform app_private.declare_tenants(format('app_partitions.%I', name)::regclass);
  perform app_private.guard_event_partition(format('app_partitions.%I', name)::regclass);
  return format('app_partitions.%I', name)::regclass;
end $$;
comment on function app_private.create_event_partition(timestamptz) is
  'Makes the table of the partition that begins then, with the indexes that say that numbers are unique.';

create function app_private.guard_event_partition(relation regclass) returns void
language plpgsql volatile as $$
begin
  -- Triggers of rows come with the whole.
  execute format('create or replace trigger _100_no_truncate before truncate on %s
    for each statement execute function app_private.tg_events__immutable()', relation);
end $$;
comment on function app_private.guard_event_partition(regclass) is
  'Has a partition refuse to be emptied, as events do.';

create function app_private.make_event_partitions() returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
-- Writers wait for at most that long; the job retries.
set lock_timeout = '50ms' as $$
declare
  -- The quarter after the current one exists as well.
  wanted constant timestamptz := app_private.quarter_after(app_private.quarter_after(now()));
  -- Until the end is reached, the next steps have to be taken: from the constraint on, nothing later is taken in.
  margin constant interval := interval '100 days';
  tail record;
  ends_at timestamptz;
  last_id uuid;
  is_bounded boolean;
  bound timestamptz;
  following regclass;
begin
  if not pg_try_advisory_xact_lock(7528006) then
    raise exception 'another process makes the partitions of events' using errcode = 'lock_not_available';
  end if;
  select p.* into strict tail from app_private.event_partitions() p where p.ends_at is null;
  if tail.starts_at >= wanted then
    return null;
  end if;
  execute format('select e.id from %s e order by e.id desc limit 1', tail.relation) into last_id;
  ends_at := app_private.quarter_after(greatest(tail.starts_at,
    case when tail.starts_at is null or tail.starts_at < now()
      then now() + case when last_id is not null then margin else interval '0' end end,
    app_private.time_of_id(last_id::text)));
  if last_id is not null then
    -- A constraint that holds already spares reading the rows under the lock of the whole table.
    select k.convalidated, app_private.time_of_id(substring(pg_get_constraintdef(k.oid) from '< ''([0-9a-f-]{36})'))
      into is_bounded, bound from pg_constraint k where k.conrelid = tail.relation and k.conname = 'partition_end';
    if bound < now() + interval '1 day' then
      execute format('alter table %s drop constraint partition_end', tail.relation);
      return format('%s has no end yet', tail.relation);
    elsif is_bounded is null then
      execute format('alter table %s add constraint partition_end check (%sid < %L) not valid', tail.relation,
        coalesce('id >= ' || quote_literal(app_private.first_id(tail.starts_at)) || ' and ', ''),
        app_private.first_id(ends_at));
      return format('%s ends at %s', tail.relation, ends_at);
    elsif not is_bounded then
      execute format('alter table %s validate constraint partition_end', tail.relation);
      return format('%s was read', tail.relation);
    end if;
    ends_at := bound;
  end if;
  following := app_private.create_event_partition(ends_at);
  lock table app_public.events in access exclusive mode;
  execute format('alter table app_public.events detach partition %s', tail.relation);
  execute format('alter table app_public.events attach partition %s for values from (%s) to (%L)', tail.relation,
    coalesce(quote_literal(app_private.first_id(tail.starts_at)), 'minvalue'), app_private.first_id(ends_at));
  execute format('alter table app_public.events attach partition %s for values from (%L) to (maxvalue)', following,
    app_private.first_id(ends_at));
  execute format('alter table %s drop constraint if exists partition_end', tail.relation);
  perform app_private.tidy_event_partition(tail.relation), app_private.guard_event_partition(tail.relation);
  return format('%s ended', tail.relation);
end $$;
grant execute on function app_private.make_event_partitions to plat_worker;
comment on function app_private.make_event_partitions() is
  'Takes one step towards the partitions that are needed, in a transaction of its own, and tells which; null where '
  'nothing is to be done. Fails where a lock is not had at once; then it is called again.';

create function app_private.tidy_event_partition(relation regclass) returns void
language plpgsql volatile as $$
declare
  one record;
begin
  for one in select p.polname from pg_policy p where p.polrelid = relation loop
    execute format('drop policy %I on %s', one.polname, relation);
  end loop;
  for one in select distinct g.grantee::regrole as role from pg_class c, aclexplode(c.relacl) g
    where c.oid = relation and g.grantee <> c.relowner
    union select distinct g.grantee::regrole from pg_class c join pg_attribute a on a.attrelid = c.oid
      cross join lateral aclexplode(a.attacl) g where c.oid = relation and g.grantee <> c.relowner
  loop
    execute format('revoke all on %s from %s', relation, one.role);
  end loop;
end $$;
comment on function app_private.tidy_event_partition(regclass) is
  'Takes policies and grants from the table that all events were in before there were partitions: those of '
  'app_public.events hold.';

create function app_private.analyze_partitioned() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
  relation regclass;
begin
  -- Autovacuum analyzes partitions only, but joins are planned with the statistics of the whole table.
  for relation in select c.oid::regclass from pg_class c where c.relkind = 'p'
    and c.relnamespace in ('app_public'::regnamespace, 'app_private'::regnamespace) order by c.oid::regclass::text
  loop
    execute format('analyze only %s', relation);
  end loop;
end $$;
grant execute on function app_private.analyze_partitioned to plat_worker;
comment on function app_private.analyze_partitioned() is
  'Brings what the planner knows of tables with partitions up to date, from samples of their rows.';

do $$
begin
  while app_private.make_event_partitions() is not null loop end loop;
end $$;
