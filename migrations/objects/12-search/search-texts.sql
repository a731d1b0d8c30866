-- The search index: for each searchable record, a row with its words, without case and accents, maintained by triggers
-- in the transaction of the change. It is a separate row, because changes of price or status do not affect it. No
-- foreign key, which would be checked for each row of an import; records are only soft-deleted.
--
-- One GIN index per kind of record contains the trigrams and the whole words of each row. Those of leads, buyers and
-- agents begin with the organization, so that other tenants are never scanned; the column scopes narrows the scan to
-- projects, to one assignee, or to public records.
--
-- Scripts without spaces have no word boundaries: each character is a word, so that family and given names are found
-- separately as well as together.

create function app_hidden.search_text(value text) returns text
language plpgsql immutable parallel safe as $$
declare
  is_wide constant boolean := octet_length(value) > length(value);
  -- Separators are named, not classes of characters, which depend on the locale of the database.
  words text := regexp_replace(app_hidden.fold(case when is_wide then normalize(value, NFKC) else value end),
    '[\u0001-/:-@\[-`{-\u00bf\u2000-\u206f\u3000-\u303f]+', ' ', 'g');
begin
  if is_wide then
    -- Kana, ideographs, Hangul syllables.
    words := regexp_replace(regexp_replace(words,
      '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af])', ' \1 ', 'g'), ' +',
      ' ', 'g');
  end if;
  words := btrim(words);
  return case when words ~ '[0-9][^0-9 ]|[^0-9 ][0-9]'
    then regexp_replace(words, '(?<=[0-9])(?=[^0-9 ])|(?<=[^0-9 ])(?=[0-9])', ' ', 'g') else words end;
end $$;

create function app_private.search_realm(type text, organization_id uuid) returns text
language sql immutable parallel safe as $$
  select case when type in ('LEAD', 'BUYER', 'BUYER_AGENT') then right(organization_id::text, 4) else '' end
$$;
comment on function app_private.search_realm(text, uuid) is
  'What the keys of a row begin with. Two organizations may share it: the condition on the organization decides, this '
  'only saves looking.';

comment on function app_private.search_keys(text, uuid, text, text) is
  'The keys of a row in the index: its trigrams; its whole words after an equals sign; of words in other scripts what '
  'they begin with, after a caret.';

comment on table app_private.search_projects is 'The words by which projects are found.';
comment on table app_private.search_floor_plans is 'The words by which floor plans are found.';
comment on table app_private.search_units is 'The words by which units are found.';
comment on table app_private.search_buyers is 'The words by which buyers are found.';
comment on table app_private.search_agents is 'The words by which agents are found.';
comment on table app_private.search_leads is 'The words by which leads are found.';

comment on table app_private.search_texts is 'The words by which records are found; of deleted records too.';
comment on column app_private.search_texts.scopes is
  'The organization, the project, the assignee; the nil uuid for what everybody sees of public projects.';
comment on column app_private.search_texts.offered is
  'Whether those see it who see the project only. Not indexed, so that a change of it is cheap.';
comment on column app_private.search_texts.is_deleted is
  'Whether the record is deleted: no search finds it, but a list of deleted ones does.';
comment on column app_private.search_texts.names is 'The words of what it is called, between spaces.';
comment on column app_private.search_texts.more is 'The words of its other fields, each with a space behind it.';
comment on table app_private.search_words is
  'Words of four letters and more that names have or once had. One may be there twice: it is not unique, so that '
  'nobody waits for another''s transaction.';

comment on function app_private.word_variants(text) is
  'A word, and each that it becomes without one letter: two words with one in common are a typing error apart.';

create function app_private.learn_words(names text[]) returns void
language plpgsql volatile as $$
declare
  -- PERF: most names are of words that are known.
  unknown constant text[] := array(
    select distinct w.word from unnest(names) n (name) cross join lateral string_to_table(n.name, ' ') w (word)
    where length(w.word) between 4 and 24 and w.word !~ '[0-9]'
      -- One look-up in the index for each, regardless of the planner's estimate of their number.
      and (select true from app_private.search_words k where k.word = w.word limit 1) is null);
begin
  if unknown <> '{}' then
    insert into app_private.search_words (word) select unnest(unknown);
  end if;
end $$;
comment on function app_private.learn_words(text[]) is 'Keeps the words of names that are not known yet.';

comment on table app_private.searchable_tables is
  'The tables whose records the search finds, with the query that makes the rows of search_texts of rows r.';

create function app_private.fill_search_texts() returns void
language plpgsql volatile as $$
declare
  searchable record;
begin
  for searchable in select * from app_private.searchable_tables loop
    execute format('delete from app_private.search_texts where type = %L', searchable.type);
    execute format('insert into app_private.search_texts (id, type, organization_id, project_id, scopes, offered,
      is_deleted, names, more) %s
      from app_public.%I r', searchable.texts, searchable.table_name);
  end loop;
  perform app_private.learn_words(array_agg(t.names)) from app_private.search_texts t;
end $$;
comment on function app_private.fill_search_texts() is
  'Recreates all rows of search_texts, after records were loaded without triggers.';

create function app_private.make_searchable(table_name text, type text, names text, more text,
  assignee text default 'null::uuid',
  project text default 'r.project_id', offered text default 'true') returns void
language plpgsql volatile as $$
declare
  is_open text := 'select p.visibility = ''PUBLIC'' and p.archived_at is null from app_public.projects p where p.id = '
    'r.project_id';
  everybody text := case when table_name in ('floor_plans', 'units')
    then format('case when (%s) then ''00000000-0000-0000-0000-000000000000''::uuid end', is_open)
    when table_name = 'projects' then
      'case when r.visibility = ''PUBLIC'' and r.archived_at is null '
      'then ''00000000-0000-0000-0000-000000000000''::uuid end'
    else 'null::uuid' end;
  watched text := format('row(%s, %s, %s, %s, r.deleted_at%s)', names, more, assignee, offered,
    case when table_name = 'projects' then ', r.visibility, r.archived_at' else '' end);
  texts text := format($s$
    select r.id, %L, r.organization_id, %s, array_remove(array[r.organization_id, %s, %s, %s], null), %s,
      r.deleted_at is not null,
      ' ' || app_hidden.search_text(%s) || ' ', app_hidden.search_text(%s) || ' '$s$, type, project, project, assignee,
        everybody, offered, names, more);
begin
  insert into app_private.searchable_tables (table_name, type, texts) values (table_name, type, texts);
  perform app_private.make_search_function(table_name, watched);
  execute format('create trigger _530_search after insert on app_public.%I referencing new table as new_rows
    for each statement execute function app_private.%I()', table_name, 'tg_' || table_name || '__search');
  execute format('create trigger _530_search_again after update on app_public.%I referencing old table as old_rows new
    table as new_rows for each statement execute function app_private.%I()', table_name,
    'tg_' || table_name || '__search');
end $$;
comment on function app_private.make_searchable(text, text, text, text, text, text, text) is
  'Makes records of a table (r) searchable, by SQL expressions for their title, further words, assignee, project, '
  'and whether viewers of the project can see them.';

comment on function app_hidden.search_text(text) is
  'The words of a text with a space between them, without case, accents and punctuation, cut where letters and digits '
  'meet, and after each letter of a script without spaces: A1203 is found by 1203 and as A-1203.';
