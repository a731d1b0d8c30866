-- The content of export files: no formulas whatever the separator, local times with their time zone, amounts with their
-- currency. Invalid combinations are refused when the export is requested.

create function app_hidden.csv_cell(value text) returns text
language plpgsql immutable parallel safe as $$
begin
  -- Programs with the semicolon as separator, as in locales with decimal commas, also begin a cell after it, and
  -- after each line break.
  value := regexp_replace(value, E'(^(?=[\\t\\n\\r])|(?:^|[;\\n\\r])(?=[=+@\uff1d\uff0b\uff0d\uff20-]))', E'\\1''',
    'g');
  return case when value ~ '[",\r\n]' then '"' || replace(value, '"', '""') || '"' else value end;
end $$;
comment on function app_hidden.csv_cell(text) is
  'A text with quotes, separators or line breaks in it as a cell of CSV.';

create function app_hidden.most_rows_of_export(subject text, format text) returns int
language sql immutable as $$
  select case when format = 'PDF' then case subject when 'FLOOR_PLANS' then 500 else 5000 end end
$$;
comment on function app_hidden.most_rows_of_export(text, text) is
  'Maximum number of rows in a file of the format; null for no limit.';

create function app_hidden.refuse_long_export(subject text, format text, organization_id uuid, project_id uuid,
  columns jsonb, filter jsonb, amount int default null) returns void
language plpgsql stable as $$
declare
  most constant int := app_hidden.most_rows_of_export(subject, format);
  query app_hidden.report_query;
begin
  if most is not null and amount is null then
    query := app_hidden.export_query(subject, format, organization_id, project_id, columns, filter, null);
    execute pg_catalog.format('select count(*) from (select from %s t where %s limit %s) t', query.relation,
      query.conditions, most + 1) into amount;
  end if;
  if amount > most then
    perform app_hidden.fail('LIMIT_EXCEEDED',
      pg_catalog.format('The export has more than %s rows, the maximum of this format; filter the rows, or choose '
        'another format.', most),
      jsonb_build_object('field', 'format', 'limit', most));
  end if;
end $$;
comment on function app_hidden.refuse_long_export(text, text, uuid, uuid, jsonb, jsonb, int) is
  'Refuses what has more rows, as the viewer sees them, than a file of the format can.';

create function app_hidden.open_export(id uuid) returns jsonb
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
    perform app_hidden.fail('FORBIDDEN',
      'The user who requested the export may no longer export from the organization.',
      '{"permission": "report.run"}');
  end if;
  query := app_hidden.export_query(chosen.subject, chosen.format, chosen.organization_id, chosen.project_id,
    chosen.columns, chosen.filter, chosen.sort, chosen.group_by);
  form := case chosen.format when 'JSONL' then 'json' when 'CSV' then 'text' else 'local' end;
  -- Text formats as lines.
  answer := case form
    when 'json' then 'row_to_json(a)::text || E''\n'''
    -- A lone empty cell is quoted, since readers pass over empty lines.
    when 'text' then (select format('coalesce(nullif(%s, ''''), ''""'')', string_agg(format(
          case when c.value ->> 'type' in ('ID', 'TEXT', 'ENUM', 'LIST', 'JSON')
            then 'coalesce(app_hidden.csv_text(a.%I), '''')' else 'coalesce(a.%I, '''')' end, c.value ->> 'name'),
        ' || '','' || ' order by c.place)) || ' || E''\r\n''' from jsonb_array_elements(query.columns)
          with ordinality c (value, place))
    else 'a.*' end;
  execute format('select count(*) from (select from %s t where %s%s) t', query.relation, query.conditions,
    app_hidden.report_groups(query)) into total;
  -- Fewer at the time of the request.
  perform app_hidden.refuse_long_export(chosen.subject, chosen.format, chosen.organization_id, chosen.project_id, null,
    null, total);
  open rows no scroll for execute format('select %s from (select %s%s from %s t where %s%s order by %s) a',
    answer, case when form <> 'local' then '' when query.group_by = '{}' then 't.id, ' else 'null::uuid as id, ' end,
    (select string_agg(format('%s as %I', app_hidden.report_value(query.expressions[c.place], c.value ->> 'type', form,
      query.time_zone), c.value ->> 'name'), ', ' order by c.place)
      from jsonb_array_elements(query.columns) with ordinality c (value, place)),
    query.relation, query.conditions, app_hidden.report_groups(query), app_hidden.report_order(query));
  return jsonb_build_object('columns', query.columns, 'total', total, 'permissions', query.permissions, 'timeZone',
    query.time_zone,
    'header', (select string_agg(app_hidden.csv_text(c.value ->> 'name'), ',' order by c.place)
      from jsonb_array_elements(query.columns) with ordinality c (value, place)),
    'rights', app_hidden.report_rights(chosen.organization_id, chosen.project_id,
      query.permissions || '{report.run}'::text[]));
end $$;
comment on function app_hidden.open_export(uuid) is
  'Opens the cursor export_rows with the rows of an export, as its requester: for CSV and JSONL as lines, else the id '
  'and the cells as text. Tells the columns, how many rows there are, and how far the rights reach.';
revoke execute on function app_hidden.open_export from plat_anonymous;

-- Of several projects, budgets without their currency say nothing.

