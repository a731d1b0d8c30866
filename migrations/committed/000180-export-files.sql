--! Previous: sha1:bc33cf03eb5af81c294a3d0826579535cbf5bb02
--! Hash: sha1:fa29d28062abb8a00d5f15182f745673074859bd
--! Message: export-files

-- What stands in files: no formula whatever separator a program takes, the zone of local times, amounts with their currency.

create or replace function app_hidden.csv_text(value text) returns text
language sql immutable parallel safe as $$
  -- An apostrophe in front says to spreadsheet programs that it is text; some read full-width signs too. A program that takes
  -- semicolons for separators, as it does where commas are decimal, also begins a cell behind them, and behind each line break.
  select app_hidden.csv_quoted(case
    when strpos(value, ';') > 0 or strpos(value, E'\n') > 0 or strpos(value, E'\r') > 0
      then regexp_replace(value, E'(^(?=[\\t\\n\\r])|(?:^|[;\\n\\r])(?=[=+@\uff1d\uff0b\uff0d\uff20-]))', E'\\1''', 'g')
    when value <> '' and strpos(E'=+-@\t\r\n\uff1d\uff0b\uff0d\uff20', left(value, 1)) > 0 then '''' || value
    else value end)
$$;

create or replace function app_hidden.open_export(id uuid, page_size int) returns jsonb
language plpgsql stable as $$
declare
  chosen app_public.exports;
  query app_hidden.report_query;
  total int;
  form text;
  answer text;
  rows refcursor := 'export_rows';
begin
  select * into chosen from app_public.exports e where e.id = open_export.id;
  if chosen.id is null then
    perform app_hidden.fail('FORBIDDEN', 'Whoever asked for it may not export from the organization any more.', '{"permission": "report.run"}');
  end if;
  query := app_hidden.export_query(chosen.subject, chosen.format, chosen.organization_id, chosen.project_id, chosen.columns, chosen.filter, chosen.sort);
  if page_size is not null then
    query.columns := jsonb_path_query_array(query.columns, format('$[0 to %s]', page_size - 1)::jsonpath);
  end if;
  form := case chosen.format when 'JSONL' then 'json' when 'CSV' then 'text' else 'local' end;
  -- Text formats as lines.
  answer := case form
    when 'json' then 'row_to_json(a)::text || E''\n'''
    -- A lone empty cell is quoted, since readers pass over empty lines.
    when 'text' then (select format('coalesce(nullif(%s, ''''), ''""'')', string_agg(format(
          case when c.value ->> 'type' in ('ID', 'TEXT', 'ENUM', 'LIST', 'JSON') then 'coalesce(app_hidden.csv_text(a.%I), '''')' else 'coalesce(a.%I, '''')' end, c.value ->> 'name'),
        ' || '','' || ' order by c.place)) || ' || E''\r\n''' from jsonb_array_elements(query.columns) with ordinality c (value, place))
    else 'a.*' end;
  execute format('select count(*) from %s t where %s', query.relation, query.conditions) into total;
  open rows no scroll for execute format('select %s from (select %s%s from %s t where %s order by %s) a',
    answer, case when form = 'local' then 't.id, ' else '' end,
    (select string_agg(format('%s as %I', app_hidden.report_value(query.expressions[c.place], c.value ->> 'type', form, query.time_zone), c.value ->> 'name'), ', ' order by c.place)
      from jsonb_array_elements(query.columns) with ordinality c (value, place)),
    query.relation, query.conditions, query.ordering);
  return jsonb_build_object('columns', query.columns, 'total', total, 'permissions', query.permissions, 'timeZone', query.time_zone,
    'header', (select string_agg(app_hidden.csv_text(c.value ->> 'name'), ',' order by c.place) from jsonb_array_elements(query.columns) with ordinality c (value, place)),
    'rights', app_hidden.report_rights(chosen.organization_id, chosen.project_id, query.permissions || '{report.run}'::text[]));
end $$;

-- Of several projects, budgets without their currency say nothing.
update app_hidden.report_columns set is_default = true where subject = 'LEADS' and name = 'currency';
