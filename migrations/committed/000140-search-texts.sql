--! Previous: sha1:28e06ef86e3ed65ce8d833cdb2d876c1ae1fc850
--! Hash: sha1:0ca335256f35a7f68e3bc4283c5c1630cbf430f4
--! Message: search-texts

-- What the search finds: beside each record that it finds, a row with its words, without case and accents, kept by triggers
-- in the transaction of the change. It stands beside the record, not in it: a change of price or status has nothing to do
-- with it. No foreign key, which would be asked for each row of an import; a record is never deleted but softly.
--
-- One GIN index per kind of record holds, of each row, the trigrams of its text and its whole words. Those of leads, buyers
-- and agents begin with the organization, so that nothing of another one is ever looked at; the column scopes narrows what is
-- looked at to projects, to one assignee, or to what everybody may see.

select app_private.create_enum('search_result_type', 'What was found.', array[
  ['PROJECT', 'A project.'], ['FLOOR_PLAN', 'A floor plan.'], ['UNIT', 'A unit.'], ['BUYER', 'A purchase.'], ['BUYER_AGENT', 'An agent who represents buyers.'],
  ['LEAD', 'A lead.']]);

create function app_hidden.search_text(value text) returns text
language plpgsql immutable parallel safe as $$
declare
  -- Separators are named, not classes of characters, which depend on the locale of the database.
  words text := btrim(regexp_replace(app_hidden.fold(case when octet_length(value) > length(value) then normalize(value, NFKC) else value end),
    '[\u0001-/:-@\[-`{-\u00bf\u2000-\u206f\u3000-\u303f]+', ' ', 'g'));
begin
  return case when words ~ '[0-9][^0-9 ]|[^0-9 ][0-9]' then regexp_replace(words, '(?<=[0-9])(?=[^0-9 ])|(?<=[^0-9 ])(?=[0-9])', ' ', 'g') else words end;
end $$;
comment on function app_hidden.search_text(text) is
  'The words of a text with a space between them, without case, accents and punctuation, and cut where letters and digits meet: A1203 is found by 1203 and as A-1203.';

create function app_private.search_realm(type text, organization_id uuid) returns text
language sql immutable parallel safe as $$
  select case when type in ('LEAD', 'BUYER', 'BUYER_AGENT') then right(organization_id::text, 4) else '' end
$$;
comment on function app_private.search_realm(text, uuid) is
  'What the keys of a row begin with. Two organizations may share it: the condition on the organization decides, this only saves looking.';

create function app_private.search_keys(type text, organization_id uuid, names text, more text) returns text[]
language plpgsql immutable parallel safe as $$
declare
  realm text := app_private.search_realm(type, organization_id);
  texts text := btrim(names || more);
  keys text[];
begin
  -- PERF: functions on whole texts rather than a query over words; this runs for each row of an import.
  keys := string_to_array(realm || array_to_string(public.show_trgm(texts), '|' || realm) || '|' || realm || '=' || replace(texts, ' ', '|' || realm || '='), '|');
  -- Whether a letter of another script has trigrams depends on the locale of the database.
  if octet_length(texts) > length(texts) then
    keys := keys || array(select realm || '^' || left(w, n) from string_to_table(texts, ' ') w cross join generate_series(1, 6) n
      where octet_length(w) > length(w) and n <= length(w));
  end if;
  return keys;
end $$;
comment on function app_private.search_keys(text, uuid, text, text) is
  'The keys of a row in the index: its trigrams; its whole words after an equals sign; of words in other scripts what they begin with, after a caret.';

create table app_private.search_texts (
  id uuid not null,
  type text not null,
  organization_id uuid not null,
  project_id uuid,
  scopes uuid[] not null,
  offered boolean not null,
  is_deleted boolean not null,
  names text not null,
  more text not null
) partition by list (type);
do $$
declare
  part record;
begin
  for part in select * from (values ('projects', 'PROJECT'), ('floor_plans', 'FLOOR_PLAN'), ('units', 'UNIT'), ('buyers', 'BUYER'), ('agents', 'BUYER_AGENT'),
      ('leads', 'LEAD')) v (name, type) loop
    execute format('create table app_private.%I partition of app_private.search_texts for values in (%L)', 'search_' || part.name, part.type);
    -- PERF: of the id alone, in each partition: a key with the type in it looks, to a planner without statistics, as good as the words.
    execute format('alter table app_private.%I add primary key (id)', 'search_' || part.name);
    execute format('alter table app_private.%I enable row level security', 'search_' || part.name);
    execute format('comment on table app_private.%I is %L', 'search_' || part.name, 'The words by which ' || replace(part.name, '_', ' ') || ' are found.');
  end loop;
end $$;
alter table app_private.search_texts enable row level security;
comment on table app_private.search_texts is 'The words by which records are found; of deleted records too.';
comment on column app_private.search_texts.scopes is
  'The organization, the project, the assignee; the nil uuid for what everybody sees of public projects.';
comment on column app_private.search_texts.offered is 'Whether those see it who see the project only. Not indexed, so that a change of it is cheap.';
comment on column app_private.search_texts.is_deleted is 'Whether the record is deleted: no search finds it, but a list of deleted ones does.';
comment on column app_private.search_texts.names is 'The words of what it is called, between spaces.';
comment on column app_private.search_texts.more is 'The words of its other fields, each with a space behind it.';

-- The words of names, for those who mistype them: each by itself and with each one of its letters left out.
create table app_private.search_words (
  word text not null
);
alter table app_private.search_words enable row level security;
comment on table app_private.search_words is
  'Words of four letters and more that names have or once had. One may be there twice: it is not unique, so that nobody waits for another''s transaction.';
create function app_private.word_variants(word text) returns text[]
language sql immutable parallel safe as $$
  select array_agg(distinct left(word, i) || substr(word, i + 2)) || word from generate_series(0, length(word) - 1) i
$$;
comment on function app_private.word_variants(text) is 'A word, and each that it becomes without one letter: two words with one in common are a typing error apart.';
create index search_words_word on app_private.search_words (word);

--------------------------------------------------------------------------------------------------------

create function app_private.learn_words(names text[]) returns void
language sql volatile as $$
  insert into app_private.search_words (word)
    select distinct w.word from unnest(names) n (name) cross join lateral string_to_table(n.name, ' ') w (word)
    where length(w.word) between 4 and 24 and w.word !~ '[0-9]' and not exists (select from app_private.search_words k where k.word = w.word)
$$;
comment on function app_private.learn_words(text[]) is 'Keeps the words of names that are not known yet.';

create table app_private.searchable_tables (
  table_name text primary key,
  type text not null unique,
  texts text not null
);
alter table app_private.searchable_tables enable row level security;
comment on table app_private.searchable_tables is 'The tables whose records the search finds, with the query that makes the rows of search_texts of rows r.';

create function app_private.fill_search_texts() returns void
language plpgsql volatile as $$
declare
  searchable record;
begin
  for searchable in select * from app_private.searchable_tables loop
    execute format('delete from app_private.search_texts where type = %L', searchable.type);
    execute format('insert into app_private.search_texts (id, type, organization_id, project_id, scopes, offered, is_deleted, names, more) %s
      from app_public.%I r', searchable.texts, searchable.table_name);
  end loop;
  perform app_private.learn_words(array_agg(t.names)) from app_private.search_texts t;
end $$;
comment on function app_private.fill_search_texts() is 'Makes all rows of search_texts anew: after records were loaded without triggers.';

create function app_private.make_searchable(table_name text, type text, names text, more text, assignee text default 'null::uuid',
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
  target text := 'insert into app_private.search_' || table_name || ' as t (id, type, organization_id, project_id, scopes, offered, is_deleted, names, more)';
begin
  execute format($f$
    create function app_private.%1$I() returns trigger
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $t$
    declare
      names text[];
    begin
      if tg_op = 'INSERT' then
        with texts as (%2$s %3$s from added r returning t.names)
          select array_agg(t.names) into names from texts t;
      else
        with texts as (%2$s %3$s from (select new.*) r
          on conflict (id) do update set scopes = excluded.scopes, offered = excluded.offered, is_deleted = excluded.is_deleted, names = excluded.names, more = excluded.more
          returning t.names)
          select array_agg(t.names) into names from texts t;
      end if;
      perform app_private.learn_words(names);
      return null;
    end $t$ $f$, 'tg_' || table_name || '__search', target, texts);
  execute format('comment on function app_private.%I() is %L', 'tg_' || table_name || '__search', 'Keeps the words by which the records are found.');
  execute format('create trigger _530_search after insert on app_public.%I referencing new table as added
    for each statement execute function app_private.%I()', table_name, 'tg_' || table_name || '__search');
  execute format('create trigger _530_search_again after update on app_public.%I for each row when (%s is distinct from %s)
    execute function app_private.%I()', table_name, regexp_replace(watched, '\mr\.', 'old.', 'g'), regexp_replace(watched, '\mr\.', 'new.', 'g'),
    'tg_' || table_name || '__search');
  insert into app_private.searchable_tables (table_name, type, texts) values (table_name, type, texts);
end $$;
comment on function app_private.make_searchable(text, text, text, text, text, text, text) is
  'Has the search find the records of a table, r: by SQL for what they are called, for further words, for who works on them, for the project, and for whether whoever sees the project sees them.';

select app_private.make_searchable('projects', 'PROJECT', 'r.title',
  'concat_ws('' '', r.overview_headline, (r.address).thoroughfare, (r.address).locality, (r.address).administrative_area, (r.address).postal_code, r.overview)',
  project => 'r.id');
select app_private.make_searchable('floor_plans', 'FLOOR_PLAN', 'concat_ws('' '', r.title, r.code)', 'concat_ws('' '', r.subtitle, r.description)',
  offered => 'r.status <> ''DRAFT''');
select app_private.make_searchable('units', 'UNIT', 'concat_ws('' '', r.title, r.number)',
  'concat_ws('' '', r.subtitle, r.building, r.mls_id, (r.address).thoroughfare)', offered => 'r.status <> ''UNRELEASED''');
select app_private.make_searchable('buyers', 'BUYER', 'concat_ws('' '', r.first_name, r.last_name, r.legal_name)',
  'concat_ws('' '', r.email, r.phone, r.company)', assignee => 'r.assignee_id');
select app_private.make_searchable('agents', 'BUYER_AGENT', 'r.name', 'concat_ws('' '', r.brokerage, r.license_number, r.email, r.phone)',
  project => 'null::uuid');
select app_private.make_searchable('leads', 'LEAD', 'concat_ws('' '', r.name, r.legal_name)',
  'concat_ws('' '', r.first_name, r.last_name, r.email, r.phone, r.company)', assignee => 'r.assignee_id');
select app_private.fill_search_texts();
-- PERF: what was just written waits in a list, which makes an import four times as fast; each search reads it, so it is short.
create index search_texts_keys on app_private.search_texts using gin (scopes, app_private.search_keys(type, organization_id, names, more))
  with (fastupdate = on, gin_pending_list_limit = 1024);
create index search_words_variants on app_private.search_words using gin (app_private.word_variants(word)) with (fastupdate = on, gin_pending_list_limit = 256);

create function app_private.tg_projects__search_public() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  everybody constant uuid := '00000000-0000-0000-0000-000000000000';
begin
  update app_private.search_texts t
    set scopes = case when new.visibility = 'PUBLIC' and new.archived_at is null then array_append(array_remove(t.scopes, everybody), everybody)
      else array_remove(t.scopes, everybody) end
    where (t.type = 'UNIT' and t.id in (select u.id from app_public.units u where u.project_id = new.id))
      or (t.type = 'FLOOR_PLAN' and t.id in (select f.id from app_public.floor_plans f where f.project_id = new.id));
  return null;
end $$;
comment on function app_private.tg_projects__search_public() is 'What everybody sees of a project goes with the project.';
create trigger _540_search_public after update on app_public.projects for each row
  when ((old.visibility = 'PUBLIC' and old.archived_at is null) is distinct from (new.visibility = 'PUBLIC' and new.archived_at is null))
  execute function app_private.tg_projects__search_public();
