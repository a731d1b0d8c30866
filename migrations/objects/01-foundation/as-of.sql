-- Records as they were at a time: the present row, with the changes of its later events undone. An event says of each
-- changed column what it was before, so nothing is stored for this. A column that was added since has the value that it
-- had before its first change; personal data that were erased are erased here as well.
--
-- Who may read which column is decided by the present row with the former value in it, as for events: a record that was
-- assigned to somebody else, or was for sale, does not show more of itself for that.

create function app_private.undone_changes(relation regclass, ids uuid[], at timestamptz)
returns table (record_id uuid, former jsonb)
language plpgsql stable as $$
#variable_conflict use_column
declare
  most_changes constant int := 20000;
  -- PERF: partitions from before that time are not read. The clock of a sandbox moves the times of events, not their
  -- ids.
  first_id constant uuid := app_hidden.first_id_of(least(greatest(undone_changes.at, '1970-01-02'), clock_timestamp()));
begin
  if undone_changes.at > clock_timestamp() then
    perform app_hidden.fail('BAD_USER_INPUT', 'The time must not be in the future.', '{"field": "at"}');
  elsif (select count(*) from (
      select from unnest(undone_changes.ids) i (id) join app_public.events e on e.subject_id = i.id and e.id >= first_id
        and e.occurred_at > undone_changes.at limit most_changes + 1) e) > most_changes then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'There were too many changes since that time; use a later time or a '
      'smaller page.', jsonb_build_object('field', 'at', 'limit', most_changes));
  elsif exists (select from unnest(undone_changes.ids) i (id) join app_public.events e on e.subject_id = i.id
      and e.occurred_at > undone_changes.at and e.id >= first_id and e.data = '{}') then
    perform app_hidden.fail('BAD_USER_INPUT',
      'Changes since that time are no longer retained; use a later time.', '{"field": "at"}');
  end if;
  -- PERF: for all records at once; the names of the columns are only looked up once.
  return query
    with names as materialized (
      select a.attname, app_hidden.camel(a.attname) as key from pg_attribute a
      where a.attrelid = undone_changes.relation and a.attnum > 0 and not a.attisdropped),
    -- Of several values of a field, the last one counts: that of its first change.
    first_changes as (
      select e.subject_id, jsonb_object_agg(c.key, c.value -> 0 order by e.id desc) as before
      from unnest(undone_changes.ids) i (id)
      join app_public.events e on e.subject_id = i.id and e.occurred_at > undone_changes.at and e.id >= first_id
      cross join lateral jsonb_each(e.changes) c
      group by e.subject_id)
    select i.id, coalesce(f.former, '{}') from unnest(undone_changes.ids) i (id)
    left join (select c.subject_id, jsonb_object_agg(n.attname, c.before -> n.key) as former
      from first_changes c join names n on c.before ? n.key group by c.subject_id) f on f.subject_id = i.id;
end $$;
comment on function app_private.undone_changes(regclass, uuid[], timestamptz) is
  'The columns of rows of a table that have changed after a time, with the values that they had then. Fails if the '
  'time is in the future, if it is followed by more events than are read at once, or if one of these has been emptied.';

create function app_private.shown_as_of(present anyelement, former jsonb, masked text[]) returns jsonb
language plpgsql stable as $$
declare
  was jsonb := to_jsonb(present);
  told present%type := present;
begin
  -- PERF: to fill a row checks the domains of all its columns.
  if former <> '{}' then
    was := to_jsonb(jsonb_populate_record(present, former));
    if former ?| masked then
      told := jsonb_populate_record(present, (select jsonb_object_agg(m, was -> m) from unnest(masked) m));
    end if;
  end if;
  return was || (select jsonb_object_agg(m, shown.value -> m)
    from (select to_jsonb(app_hidden.masked(told)) as value offset 0) shown cross join unnest(masked) m);
end $$;
comment on function app_private.shown_as_of(anyelement, jsonb, text[]) is
  'A row of a table with masked columns as it was, by its present state and former values, with what the viewer may '
  'know of the masked columns, which are given by name.';

create function app_private.describe_as_of(type_name text, table_name text) returns void
language plpgsql volatile as $$
declare
  attribute record;
begin
  for attribute in
    select t.attname, coalesce(d.text, case when c.attname is null
        then 'Id of the current record, for its query by id.' end) as text,
      case when t.attname in (regexp_replace(table_name, 's$', '_id'), 'project_id', 'status') then E'@notNull\n\n'
        else '' end as tags
    from pg_attribute t
    left join pg_attribute e on e.attrelid = format('app_public.%I', table_name)::regclass and not e.attisdropped
      and e.attname = 'effective_' || t.attname
    left join pg_attribute c on c.attrelid = format('app_public.%I', table_name)::regclass and not c.attisdropped
      and c.attname = coalesce(e.attname, t.attname)
    left join lateral (select regexp_replace(col_description(c.attrelid, c.attnum), '(^|\n)@[^\n]*|^\s+', '', 'g')
      as text) d on true
    where t.attrelid = format('app_public.%I', type_name)::regclass and t.attnum > 0 and not t.attisdropped
  loop
    execute format('comment on column app_public.%I.%I is %L', type_name, attribute.attname,
      attribute.tags || ltrim(attribute.text, E'\n'));
  end loop;
end $$;
comment on function app_private.describe_as_of(text, text) is
  'Gives the fields of a type of former rows the descriptions of the columns of their table.';
