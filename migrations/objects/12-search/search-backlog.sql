-- Bulk changes. Indexing the words of a record takes longer than writing the record. A statement that adds or changes
-- thousands of records defers it: a job indexes them after the commit, and a search in their organization that comes
-- earlier indexes them first, like a due deadline (01-foundation/deadlines.sql).

comment on table app_private.search_backlog is 'Records whose words are not indexed yet, some hundreds in a row.';

create function app_private.make_search_function(table_name text, watched text) returns void
language plpgsql volatile as $$
declare
  searchable app_private.searchable_tables;
  target text := format('insert into app_private.%I as t (id, type, organization_id, project_id, scopes, offered, '
    'is_deleted, names, more)', 'search_' || table_name);
begin
  select s.* into strict searchable from app_private.searchable_tables s
    where s.table_name = make_search_function.table_name;
  execute format($f$
    create or replace function app_private.%1$I() returns trigger
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $t$
    declare
      names text[];
      changed uuid[];
      amount int;
    begin
      -- PERF: EXCEPT, as a join would keep the plan of the first statement, which mostly changed one row, and compare
      -- each row with each.
      if tg_op = 'UPDATE' then
        changed := array(select c.id from (select r.id, %5$s from new_rows r
          except select r.id, %5$s from old_rows r) c);
        amount := cardinality(changed);
      else
        amount := (select count(*) from (select from new_rows limit 1001) a);
      end if;
      if amount = 0 then
        return null;
      elsif amount > 1000 then
        -- Existing entries are not changed.
        delete from app_private.%6$I t where t.id = any (changed);
        insert into app_private.search_backlog (type, organization_id, ids)
          select %2$L, a.organization_id, array_agg(a.id)
          from (select r.id, r.organization_id, row_number() over () / 500 as part from new_rows r
            where changed is null or coalesce(r.id in (select unnest(changed)), false)) a
            group by a.organization_id, a.part;
        -- One key for each organization: a key is locked until the transaction that enqueues under it ends.
        perform app_private.add_job('search__catch_up', job_key => 'search__catch_up ' || a.organization_id)
          from (select distinct r.organization_id from new_rows r) a;
        return null;
      end if;
      with texts as (%3$s %4$s from new_rows r where changed is null or r.id = any (changed)
        on conflict (id) do update set scopes = excluded.scopes, offered = excluded.offered,
          is_deleted = excluded.is_deleted, names = excluded.names, more = excluded.more
        returning t.names)
        select array_agg(t.names) into names from texts t;
      perform app_private.learn_words(names);
      return null;
    end $t$ $f$, 'tg_' || table_name || '__search', searchable.type, target, searchable.texts, watched,
    'search_' || table_name);
  execute format('comment on function app_private.%I() is %L', 'tg_' || table_name || '__search',
    'Keeps the words by which the records are found.');
end $$;
comment on function app_private.make_search_function(text, text) is
  'Makes the trigger function that keeps the words of a table''s records r; watched: what of one they are made of.';

create function app_private.catch_up_search(batch int default 1, organization_id uuid default null) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  part app_private.search_backlog;
  searchable app_private.searchable_tables;
  names text[];
  done int := 0;
begin
  while done < batch loop
    delete from app_private.search_backlog b where b.id = (select o.id from app_private.search_backlog o
        where organization_id is null or o.organization_id = organization_id order by o.id limit 1
        for update skip locked)
      returning * into part;
    exit when not found;
    select s.* into strict searchable from app_private.searchable_tables s where s.type = part.type;
    -- A record that changed meanwhile has already been indexed with its newest words.
    execute format('with texts as (insert into app_private.%I as t (id, type, organization_id, project_id, scopes,
      offered, is_deleted, names, more)
        %s from app_public.%I r where r.id = any ($1) on conflict (id) do nothing returning t.names)
      select array_agg(t.names) from texts t', 'search_' || searchable.table_name, searchable.texts,
        searchable.table_name) into names using part.ids;
    perform app_private.learn_words(names);
    done := done + 1;
  end loop;
  if done = 0 and organization_id is not null then
    -- Another transaction is indexing; waiting is enough.
    perform from app_private.search_backlog b where b.organization_id = organization_id order by b.id limit 1
      for update;
  end if;
  return done;
end $$;
comment on function app_private.catch_up_search(int, uuid) is
  'Indexes the words of some of the backlog, of one organization or of all, the oldest first; returns how many rows of '
  'it. What others are indexing is left to them; for one organization it waits for them, no longer than lock_timeout.';
grant execute on function app_private.catch_up_search to plat_worker;

create function app_private.stop_when_words_are_due(type text, organizations uuid[]) returns void
language plpgsql stable as $$
declare
  organization uuid;
begin
  if app_hidden.setting('deadlines_checked') = 'on' then
    organization := (select b.organization_id from app_private.search_backlog b
      where b.type = stop_when_words_are_due.type and b.organization_id = any (organizations) order by b.id limit 1);
    if organization is not null then
      perform app_private.raise_due(organization, true);
    end if;
  end if;
end $$;
comment on function app_private.stop_when_words_are_due(text, uuid[]) is
  'Raises PLAT1 while records of these organizations wait to be indexed, for callers that have what is due expire.';
