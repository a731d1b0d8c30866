--! Previous: sha1:cadb847fba4cf205ed72561b38c7f16981f90158
--! Hash: sha1:2d7ec19154f0676e52179a0eff3f8194567b8633
--! Message: hidden-webhooks

-- The webhook of an integration is what people see of that integration, nothing else: it has no events of its own, which would tell of it
-- to whoever takes all of them. What happens to the integration is told as before.

alter table app_hidden.record_types add column event_condition text;
comment on column app_hidden.record_types.event_condition is 'Which rows have events, as a condition on their columns; all where it is null.';
update app_hidden.record_types set event_condition = 'integration_id is null' where table_name = 'webhooks';

create or replace function app_private.event_statement(relation regclass, subject text, operation text) returns text
language plpgsql stable as $$
declare
  table_name text := (select relname from pg_class where oid = relation);
  column_names name[];
  columns_changed text;
  name_of_change text;
  stream text;
  plain text;
  told text := coalesce((select format('(select * from new_rows where %s)', r.event_condition) from app_hidden.record_types r
    where r.table_name = (select relname from pg_class where oid = relation) and r.event_condition is not null), 'new_rows');
begin
  -- Columns that only serve the machine stay out; so do those whose comment says @secret.
  select array_agg(a.attname order by a.attnum) into column_names from pg_attribute a
    where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attname not in ('version', 'updated_at')
      and coalesce(col_description(relation, a.attnum), '') !~ '@secret';
  stream := 'coalesce(' || concat_ws(', ',
    case when table_name = 'organizations' then 'n.id' when 'organization_id' = any (column_names) then 'n.organization_id' end,
    case when 'user_id' = any (column_names) then 'n.user_id' end,
    'n.id') || ')';
  if operation = 'update' then
    select string_agg(format('case when o.%1$I is distinct from n.%1$I then jsonb_build_object(%2$L, jsonb_build_array(%3$s, %4$s)) else ''{}'' end',
        a.name, app_hidden.camel(a.name), app_private.json_value(relation, 'o', a.name), app_private.json_value(relation, 'n', a.name)), ' || ')
      into columns_changed from unnest(column_names) a (name);
    select 'case when false then null ' || coalesce(string_agg(format('when o.%1$I is distinct from n.%1$I%2$s then %3$L ', e.column_name,
        case when e.value is not null then format(' and n.%I::text = %L', e.column_name, e.value) end, e.name), '' order by e.value nulls last), '')
      || case when 'deleted_at' = any (column_names) then 'when o.deleted_at is null and n.deleted_at is not null then ''deleted'' ' else '' end
      || case when 'status' = any (column_names) then 'when o.status is distinct from n.status then ''status_changed'' ' else '' end
      || 'else ''updated'' end'
      into name_of_change from app_private.event_names e where e.subject = event_statement.subject and e.column_name = any (column_names);
  end if;
  -- The rows in the order in which they were written, those that changed in the order of ids.
  plain := format('insert into app_public.events (stream_id, organization_id, project_id, name, subject_type, subject_id, actor_type, channel, request_id, caused_by_id, changes, data, sequence)
      select %s, %s, %s, %L || ''.'' || %s, %L, n.id, _actor_type, _channel, _request_id, _caused_by, %s, %s',
    stream,
    case when table_name = 'organizations' then 'n.id' when 'organization_id' = any (column_names) then 'n.organization_id' else 'null::uuid' end,
    case when 'project_id' = any (column_names) then 'n.project_id' when table_name = 'projects' then 'n.id' else 'null::uuid' end,
    subject,
    case operation when 'insert' then '''created''' when 'delete' then '''deleted''' else name_of_change end,
    subject,
    case when operation = 'update' then columns_changed else 'null::jsonb' end,
    app_private.column_json(relation, 'n', column_names));
  return case operation
    when 'insert' then format('
  -- PERF: whoever writes thousands of rows as the last thing of a transaction has them numbered as they are written, which
  -- is half the work; the stream waits for the end of the transaction either way.
  if app_hidden.setting(''numbers_at_once'') = ''on'' then
    _streams := array(select distinct %1$s from %3$s n limit 2);
    if cardinality(_streams) = 1 then
      perform app_private.number_events();
      _amount := (select count(*) from %3$s n);
      insert into app_private.event_counters as c (stream_id, last_sequence) values (_streams[1], _amount)
        on conflict (stream_id) do update set last_sequence = c.last_sequence + excluded.last_sequence returning last_sequence into _last;
      %2$s, _last - _amount + row_number() over () from %3$s n;
      insert into app_private.event_batches (stream_id) values (_streams[1]) on conflict do nothing;
      return null;
    end if;
  end if;
  with written as (%2$s, null from %3$s n returning stream_id)
  insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing', stream, plain, told)
    when 'delete' then format('with written as (%s, null from %s n order by n.id returning stream_id)
  insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing', plain, replace(told, 'new_rows', 'old_rows'))
    else format('with written as (%s, null from %s n join old_rows o on o.id = n.id where row(%s) is distinct from row(%s) order by n.id returning stream_id)
  insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing', plain, told,
      (select string_agg(format('o.%I', c), ', ') from unnest(column_names) c), (select string_agg(format('n.%I', c), ', ') from unnest(column_names) c))
    end;
end $$;
