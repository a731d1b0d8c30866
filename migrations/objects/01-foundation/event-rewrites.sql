-- Rewriting quarters of events. Retention empties old events and erasure replaces personal data, each with a smaller
-- version of the row; nothing is written to a quarter after its end that would use the space again. A quarter that
-- takes more than twice what its rows need is copied to a new table, which takes its place: readers find the same rows.
--
-- A trigger of the quarter notes which events change meanwhile. They are copied again before the exchange, and once
-- more within it, when nobody writes. Each step is a transaction that leaves what the next one continues from.

comment on table app_private.event_rewrites is
  'Quarters of events that were rewritten, and the one that is, without an end: up to which event it was copied, and '
  'whether that was the last.';
comment on table app_private.event_rewrite_changes is
  'Changes of events in the quarter that is being rewritten, which have to be copied again. One row for each: a change '
  'that found the row of an earlier one, and left it at that, would be lost if that was being copied.';

create function app_private.tg_events__note_change() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_private.event_rewrite_changes (event_id) values (coalesce(new.id, old.id));
  return null;
end $$;
comment on function app_private.tg_events__note_change() is
  'Notes the change of an event in a quarter that is being rewritten.';

create function app_private.is_wasteful(relation regclass, least_bytes bigint) returns boolean
language sql stable as $$
  -- The size of the rows according to the last analysis, with 28 bytes each for header and pointer.
  select c.reltuples >= 0 and pg_relation_size(c.oid) > greatest(least_bytes, 2 * c.reltuples * (28 + s.width))
  from pg_class c
  cross join lateral (select sum(s.avg_width * (1 - s.null_frac)) as width from pg_stats s
    where s.schemaname = c.relnamespace::regnamespace::text and s.tablename = c.relname) s
  where c.oid = relation and (c.reltuples = 0 or s.width is not null)
$$;
comment on function app_private.is_wasteful(regclass, bigint) is
  'Whether a table is larger than the given number of bytes and than twice what its rows need; null before its first '
  'analysis.';

create function app_private.shape_of(relation regclass) returns text
language sql stable as $$
  select concat_ws(E'\n',
    (select string_agg(format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum)
      from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped),
    (select string_agg(regexp_replace(pg_get_indexdef(i.indexrelid), 'INDEX \S+ ON \S+', ''), ', '
        order by regexp_replace(pg_get_indexdef(i.indexrelid), 'INDEX \S+ ON \S+', '') collate "C")
      from pg_index i where i.indrelid = relation))
$$;
comment on function app_private.shape_of(regclass) is
  'Columns and indexes of a table, for comparison: a migration may change events while a quarter is being rewritten.';

create function app_private.begin_event_rewrite(least_bytes bigint) returns text
language plpgsql volatile as $$
declare
  chosen record;
  name text;
begin
  select p.*, c.relname::text as name into chosen
    from app_private.event_partitions() p join pg_class c on c.oid = p.relation
    where p.ends_at < now() and app_private.is_wasteful(p.relation, least_bytes)
      -- At most once a month, whatever the statistics say.
      and not exists (select from app_private.event_rewrites r
        where r.partition_name = c.relname and r.ended_at > now() - interval '30 days')
    order by p.starts_at nulls first limit 1;
  if chosen.relation is null then
    return null;
  end if;
  name := chosen.name;
  execute format('create table app_partitions.%I (like %s including all,
      constraint partition_bounds check (%sid < %L))', name || '_rewrite', chosen.relation,
    coalesce('id >= ' || quote_literal(app_private.first_id(chosen.starts_at)) || ' and ', ''),
    app_private.first_id(chosen.ends_at));
  execute format('alter table app_partitions.%I enable row level security', name || '_rewrite');
  perform app_private.declare_tenants(format('app_partitions.%I', name || '_rewrite')::regclass);
  -- Waits for transactions that write to the quarter; later changes are recorded.
  execute format('create trigger _000_note_change after insert or update or delete on %s
    for each row execute function app_private.tg_events__note_change()', chosen.relation);
  delete from app_private.event_rewrite_changes;
  insert into app_private.event_rewrites (partition_name) values (name)
    on conflict (partition_name) do update set last_id = null, is_copied = false, ended_at = null;
  return format('%s is being rewritten', chosen.relation);
end $$;
comment on function app_private.begin_event_rewrite(bigint) is
  'Chooses a quarter that is to be rewritten, and makes the table that is to take its place.';

create function app_private.stop_event_rewrite(name text) returns text
language plpgsql volatile as $$
begin
  execute format('drop trigger if exists _000_note_change on app_partitions.%I', name);
  execute format('drop table if exists app_partitions.%I', name || '_rewrite');
  delete from app_private.event_rewrites r where r.partition_name = name;
  return format('the rewriting of %s begins again', name);
end $$;
comment on function app_private.stop_event_rewrite(text) is 'Takes back what a rewriting has done so far.';

create function app_private.copy_changed_events(name text, batch int) returns boolean
language plpgsql volatile as $$
declare
  ids uuid[];
  amount int;
begin
  -- Recorded changes that are visible here are committed, so their events are copied now; later changes are recorded
  -- again.
  with taken as (
    delete from app_private.event_rewrite_changes c where c.id in (
      select n.id from app_private.event_rewrite_changes n order by n.id limit batch) returning c.event_id)
  select array_agg(distinct t.event_id), count(*) into ids, amount from taken t;
  execute format('delete from app_partitions.%I e where e.id = any ($1)', name || '_rewrite') using ids;
  execute format('insert into app_partitions.%I select * from app_partitions.%I e where e.id = any ($1)',
    name || '_rewrite', name) using ids;
  return amount < batch;
end $$;
comment on function app_private.copy_changed_events(text, int) is
  'Copies events again that changed after they were copied; returns whether those were all.';

create function app_private.exchange_event_partition(name text, batch int) returns text
language plpgsql volatile as $$
declare
  missing bigint;
  bounds text;
begin
  -- Before the lock: it reads both.
  execute format('select (select count(*) from app_partitions.%I) - (select count(*) from app_partitions.%I)
    where not exists (select from app_private.event_rewrite_changes)', name, name || '_rewrite') into missing;
  if missing <> 0 then
    raise exception 'the copy of % lacks % events', name, missing;
  end if;
  lock table app_public.events in access exclusive mode;
  if not app_private.copy_changed_events(name, batch) then
    return format('%s is read again where it has changed', name);
  end if;
  select pg_get_expr(c.relpartbound, c.oid) into bounds from pg_class c
    where c.oid = format('app_partitions.%I', name)::regclass;
  execute format('alter table app_public.events detach partition app_partitions.%I', name);
  execute format('alter table app_partitions.%I rename to %I', name, name || '_former');
  execute format('alter table app_partitions.%I rename to %I', name || '_rewrite', name);
  -- The constraint implies the bounds, so PostgreSQL does not read the rows again.
  execute format('alter table app_public.events attach partition app_partitions.%I %s', name, bounds);
  execute format('alter table app_partitions.%I drop constraint partition_bounds', name);
  perform app_private.guard_event_partition(format('app_partitions.%I', name)::regclass);
  return format('%s was exchanged', name);
end $$;
comment on function app_private.exchange_event_partition(text, int) is
  'Has the copy of a quarter take its place, unless more than a batch of its events has changed.';

create function app_private.drop_former_partition(name text) returns text
language plpgsql volatile as $$
declare
  index_name text;
begin
  execute format('drop table app_partitions.%I', name || '_former');
  -- The next copy needs the names.
  for index_name in select i.indexrelid::regclass::text from pg_index i
    where i.indrelid = format('app_partitions.%I', name)::regclass and i.indexrelid::regclass::text ~ '_rewrite_'
  loop
    execute format('alter index %s rename to %I', index_name,
      replace(split_part(index_name, '.', 2), '_rewrite_', '_'));
  end loop;
  update app_private.event_rewrites r set ended_at = now() where r.partition_name = name;
  return format('%s was dropped as it was before', name);
end $$;
comment on function app_private.drop_former_partition(text) is 'Drops a quarter that was exchanged.';

create function app_private.rewrite_events(batch int default 10000, least_bytes bigint default 8388608) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
-- Writers wait for at most that long; the job retries.
set lock_timeout = '50ms' as $$
declare
  rewrite app_private.event_rewrites;
  name text;
  last uuid;
begin
  if not pg_try_advisory_xact_lock(7528006) then
    raise exception 'another process makes the partitions of events' using errcode = 'lock_not_available';
  end if;
  select r.* into rewrite from app_private.event_rewrites r where r.ended_at is null;
  name := rewrite.partition_name;
  if name is null then
    return app_private.begin_event_rewrite(least_bytes);
  elsif to_regclass(format('app_partitions.%I', name || '_former')) is not null then
    return app_private.drop_former_partition(name);
  elsif app_private.shape_of(format('app_partitions.%I', name)::regclass) is distinct from
    app_private.shape_of(to_regclass(format('app_partitions.%I', name || '_rewrite'))) then
    return app_private.stop_event_rewrite(name);
  elsif rewrite.is_copied then
    if not app_private.copy_changed_events(name, batch) then
      return format('%s is read again where it has changed', name);
    end if;
    return app_private.exchange_event_partition(name, batch);
  end if;
  execute format('with copied as (
      insert into app_partitions.%I select * from app_partitions.%I e where $1 is null or e.id > $1
        order by e.id limit $2 returning id)
    select max(c.id::text)::uuid from copied c', name || '_rewrite', name) into last using rewrite.last_id, batch;
  update app_private.event_rewrites r set last_id = coalesce(last, r.last_id), is_copied = last is null
    where r.partition_name = name;
  if last is null then
    execute format('analyze app_partitions.%I', name || '_rewrite');
  end if;
  return format('%s was copied %s', name, coalesce('up to ' || app_private.time_of_id(last::text), 'to its end'));
end $$;
grant execute on function app_private.rewrite_events to plat_worker;
comment on function app_private.rewrite_events(int, bigint) is
  'Takes one step towards rewriting the quarters of events that take more than twice the space that their rows need, '
  'in a transaction of its own, and tells which; null where nothing is to be done. Fails where a lock is not had at '
  'once; then it is called again.';
