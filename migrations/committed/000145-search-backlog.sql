--! Previous: sha1:a865cb0eae68cb29fd735c02181a155efbe63514
--! Hash: sha1:07435a52ac824e706b953d3d205c63c7be57fc04
--! Message: search-backlog

-- Many records at once. The words of a record take longer to index than the record itself takes to write. A statement that adds
-- thousands leaves them for later: a job indexes them as soon as they are committed, and a search in their organization that
-- comes before it has that done first, as it would settle a deadline (000060).

create table app_private.search_backlog (
  id bigint generated always as identity primary key,
  type text not null,
  organization_id uuid not null,
  ids uuid[] not null
);
create index search_backlog_organization on app_private.search_backlog (organization_id, type);
alter table app_private.search_backlog enable row level security;
comment on table app_private.search_backlog is 'Records whose words are not indexed yet, some hundreds in a row.';

create function app_private.make_search_function(table_name text) returns void
language plpgsql volatile as $$
declare
  searchable app_private.searchable_tables;
  target text := format('insert into app_private.%I as t (id, type, organization_id, project_id, scopes, offered, is_deleted, names, more)', 'search_' || table_name);
begin
  select s.* into strict searchable from app_private.searchable_tables s where s.table_name = make_search_function.table_name;
  execute format($f$
    create or replace function app_private.%1$I() returns trigger
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $t$
    declare
      names text[];
    begin
      if tg_op = 'INSERT' then
        if (select count(*) from (select from added limit 1001) a) > 1000 then
          insert into app_private.search_backlog (type, organization_id, ids)
            select %2$L, a.organization_id, array_agg(a.id)
            from (select r.id, r.organization_id, row_number() over () / 500 as part from added r) a group by a.organization_id, a.part;
          perform app_private.add_job('search__catch_up', job_key => 'search__catch_up');
          return null;
        end if;
        with texts as (%3$s %4$s from added r returning t.names)
          select array_agg(t.names) into names from texts t;
      else
        with texts as (%3$s %4$s from (select new.*) r
          on conflict (id) do update set scopes = excluded.scopes, offered = excluded.offered, is_deleted = excluded.is_deleted, names = excluded.names, more = excluded.more
          returning t.names)
          select array_agg(t.names) into names from texts t;
      end if;
      perform app_private.learn_words(names);
      return null;
    end $t$ $f$, 'tg_' || table_name || '__search', searchable.type, target, searchable.texts);
  execute format('comment on function app_private.%I() is %L', 'tg_' || table_name || '__search', 'Keeps the words by which the records are found.');
end $$;
comment on function app_private.make_search_function(text) is 'Makes the trigger function that keeps the words of a table''s records.';

create or replace function app_private.make_searchable(table_name text, type text, names text, more text, assignee text default 'null::uuid',
  project text default 'r.project_id', offered text default 'true') returns void
language plpgsql volatile as $$
declare
  is_open text := 'select p.visibility = ''PUBLIC'' and p.archived_at is null from app_public.projects p where p.id = r.project_id';
  everybody text := case when table_name in ('floor_plans', 'units') then format('case when (%s) then ''00000000-0000-0000-0000-000000000000''::uuid end', is_open)
    when table_name = 'projects' then 'case when r.visibility = ''PUBLIC'' and r.archived_at is null then ''00000000-0000-0000-0000-000000000000''::uuid end'
    else 'null::uuid' end;
  watched text := format('row(%s, %s, %s, %s, r.deleted_at%s)', names, more, assignee, offered,
    case when table_name = 'projects' then ', r.visibility, r.archived_at' else '' end);
  texts text := format($s$
    select r.id, %L, r.organization_id, %s, array_remove(array[r.organization_id, %s, %s, %s], null), %s, r.deleted_at is not null,
      ' ' || app_hidden.search_text(%s) || ' ', app_hidden.search_text(%s) || ' '$s$, type, project, project, assignee, everybody, offered, names, more);
begin
  insert into app_private.searchable_tables (table_name, type, texts) values (table_name, type, texts);
  perform app_private.make_search_function(table_name);
  execute format('create trigger _530_search after insert on app_public.%I referencing new table as added
    for each statement execute function app_private.%I()', table_name, 'tg_' || table_name || '__search');
  execute format('create trigger _530_search_again after update on app_public.%I for each row when (%s is distinct from %s)
    execute function app_private.%I()', table_name, regexp_replace(watched, '\mr\.', 'old.', 'g'), regexp_replace(watched, '\mr\.', 'new.', 'g'),
    'tg_' || table_name || '__search');
end $$;
select app_private.make_search_function(s.table_name) from app_private.searchable_tables s;

create function app_private.catch_up_search(batch int default 1) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  part app_private.search_backlog;
  searchable app_private.searchable_tables;
  names text[];
  done int := 0;
begin
  if not exists (select from app_private.search_backlog) then
    return 0;
  end if;
  -- One at a time: whoever waits finds it done.
  perform pg_advisory_xact_lock(hashtextextended('plat.search_backlog', 0));
  while done < batch loop
    delete from app_private.search_backlog b where b.id = (select min(o.id) from app_private.search_backlog o) returning * into part;
    exit when not found;
    select s.* into strict searchable from app_private.searchable_tables s where s.type = part.type;
    -- A record that changed meanwhile is there already, with its newest words.
    execute format('with texts as (insert into app_private.%I as t (id, type, organization_id, project_id, scopes, offered, is_deleted, names, more)
        %s from app_public.%I r where r.id = any ($1) on conflict (id) do nothing returning t.names)
      select array_agg(t.names) from texts t', 'search_' || searchable.table_name, searchable.texts, searchable.table_name) into names using part.ids;
    perform app_private.learn_words(names);
    done := done + 1;
  end loop;
  return done;
end $$;
comment on function app_private.catch_up_search(int) is 'Indexes the words of some of the backlog, the oldest first; returns how many rows of it.';
grant execute on function app_private.catch_up_search to plat_worker;

create or replace function app_private.stop_when_due() returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if coalesce(current_setting('plat.behind', true), '') = 'on' then
    return;
  end if;
  if exists (select from app_hidden.deadlines d where d.due_at <= now()) then
    raise exception 'something is due; call app_private.settle_due() and try again' using errcode = 'PLAT1';
  end if;
  -- Whoever asks in this transaction knows what to do about PLAT1.
  perform set_config('plat.punctual', 'on', true);
end $$;

create or replace function app_private.settle_due(batch int default 50) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  due record;
  amount int := 0;
begin
  -- One at a time: whoever waits finds it settled.
  perform pg_advisory_xact_lock(hashtextextended('plat.deadlines', 0));
  for due in
    select d.kind, d.record_id, k.settle from app_hidden.deadlines d join app_private.deadline_kinds k on k.kind = d.kind
    where d.due_at <= clock_timestamp() order by d.due_at, d.kind, d.record_id limit batch
  loop
    begin
      execute format('select %s($1)', due.settle) using due.record_id;
      delete from app_hidden.deadlines d where d.kind = due.kind and d.record_id = due.record_id and d.due_at <= clock_timestamp();
    exception when deadlock_detected or serialization_failure then
      raise;
    when others then
      -- What cannot be settled must not keep everything else from being read; it is tried again, less and less often.
      raise warning 'deadline % of % cannot be settled: %', due.kind, due.record_id, sqlerrm;
      update app_hidden.deadlines d set failures = d.failures + 1, due_at = clock_timestamp() + least(power(2, d.failures), 60) * interval '1 minute'
        where d.kind = due.kind and d.record_id = due.record_id;
    end;
    amount := amount + 1;
  end loop;
  return amount + app_private.catch_up_search(10);
end $$;

create function app_private.stop_when_words_are_due(type text, organizations uuid[]) returns void
language plpgsql stable as $$
begin
  if app_hidden.setting('punctual') = 'on' and exists (select from app_private.search_backlog b
    where b.type = stop_when_words_are_due.type and b.organization_id = any (organizations)) then
    raise exception 'words are to be indexed; call app_private.settle_due() and try again' using errcode = 'PLAT1';
  end if;
end $$;
comment on function app_private.stop_when_words_are_due(text, uuid[]) is
  'Raises PLAT1 while records of these organizations wait to be indexed, for callers that settle what is due.';

create or replace function app_hidden.search_matches(words text[], types text[], only_project uuid, amount int) returns setof app_private.search_match
language plpgsql stable security definer rows 20 set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  scopes app_private.search_scope[] := array(select s from app_private.search_scopes(types, only_project) s);
  whole text[] := array(select '% ' || w || ' %' from unnest(words) with ordinality u (w, n) order by n);
  begun text[] := array(select app_private.search_pattern(w) from unnest(words) with ordinality u (w, n) order by n);
  readings text[][] := array[whole];
  matches app_private.search_match[] := '{}';
  found int := 0;
  step int;
begin
  perform app_private.stop_when_words_are_due(s.type, array_agg(s.organization_id)) from unnest(scopes) s group by s.type;
  for step in 1 .. 4 loop
    continue when step = 2 and cardinality(words) = 1;
    exit when found >= amount or (step = 4 and found >= 5);
    matches := matches || array(select m from app_private.search_reading(scopes,
      case when step = 4 then app_private.search_typos(words) else jsonb_build_array(jsonb_build_object('weight', 1, 'patterns',
        to_jsonb(case step when 1 then whole when 2 then whole[:cardinality(words) - 1] || begun[cardinality(words)] else begun end))) end,
      greatest(amount, 200)) m);
    select count(*) into found from (select distinct m.type, m.id from unnest(matches) m) m;
  end loop;
  return query select b.* from (select distinct on (m.type, m.id) m.* from unnest(matches) m order by m.type, m.id, m.score desc, m.words) b
    order by b.score desc, array_position(types, b.type), b.id limit amount;
end $$;

create or replace function app_private.find_texts(type text, permission text, words text, raw_text text) returns setof uuid
language plpgsql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[] := array(select app_hidden.viewer_organizations(permission));
  projects uuid[] := array(select app_hidden.viewer_projects(permission));
  own_projects uuid[] := array(select app_hidden.viewer_own_projects(permission));
  asked text[] := array(select w from regexp_split_to_table(app_hidden.fold(btrim(words)), '\s+') w where w <> '');
  -- Pieces of letters or of digits; a word of several is looked for in the record itself, too.
  pieces text[] := array(select distinct p from unnest(asked) w cross join lateral string_to_table(app_hidden.search_text(w), ' ') p where p <> '');
  condition text := concat(
    (select string_agg(format(' and t.names || t.more like %L', '%' || p || '%'), '') from unnest(pieces) p),
    (select format(' and exists (select from app_public.%I r where r.id = t.id and %s)', s.table_name,
        string_agg(format('%s like %L', raw_text, '%' || regexp_replace(w, '([\\%_])', '\\\1', 'g') || '%'), ' and '))
      from app_private.searchable_tables s, unnest(asked) w
      where s.type = find_texts.type and w <> app_hidden.search_text(w) group by s.table_name));
  organization uuid;
begin
  perform app_private.stop_when_words_are_due(type, organizations || array(select p.organization_id from app_public.projects p where p.id = any (projects || own_projects)));
  for organization in
    select unnest(organizations) union select p.organization_id from app_public.projects p where p.id = any (projects || own_projects)
  loop
    -- Written out, so that it is planned for its own words: a rare one by the index, a frequent one without.
    return query execute format('select t.id from app_private.search_texts t where t.type = %L and t.organization_id = %L', type, organization)
        || coalesce((select format(' and app_private.search_keys(t.type, t.organization_id, t.names, t.more) @> %L::text[]', array_agg(distinct k))
          from unnest(pieces) p cross join lateral unnest(app_private.search_key(app_private.search_realm(type, organization), '%' || p || '%')) k
          where p ~ '^[a-z0-9]{3,}$' having count(*) > 0), '')
        || condition
        || case when organization = any (organizations) then '' else ' and (t.project_id = any ($1) or (t.project_id = any ($2) and t.scopes @> array[$3]))' end
      using projects, own_projects, app_public.current_user_id();
  end loop;
end $$;
