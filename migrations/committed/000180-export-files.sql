--! Previous: sha1:b36a5563dde227ba4d7cf28ec47c10201bbec5eb
--! Hash: sha1:cf62ce6cd15211fb1ff87f021056a600cfe9c3ad
--! Message: export-files

-- What stands in files: no formula whatever separator a program takes, the zone of local times, amounts with their currency.
-- What cannot be a file is refused when it is asked for.

create function app_hidden.csv_cell(value text) returns text
language plpgsql immutable parallel safe as $$
begin
  -- A program that takes semicolons for separators, as it does where commas are decimal, also begins a cell behind them, and behind
  -- each line break.
  value := regexp_replace(value, E'(^(?=[\\t\\n\\r])|(?:^|[;\\n\\r])(?=[=+@\uff1d\uff0b\uff0d\uff20-]))', E'\\1''', 'g');
  return case when value ~ '[",\r\n]' then '"' || replace(value, '"', '""') || '"' else value end;
end $$;
comment on function app_hidden.csv_cell(text) is 'A text with quotes, separators or line breaks in it as a cell of CSV.';

create or replace function app_hidden.csv_text(value text) returns text
language sql immutable parallel safe as $$
  -- An apostrophe in front says to spreadsheet programs that it is text; some read full-width signs too.
  -- PERF: short enough to become part of the statement that calls it.
  select case when translate(value, E'",;\n\r', '') <> value then app_hidden.csv_cell(value)
    when value <> '' and strpos(E'=+-@\t\uff1d\uff0b\uff0d\uff20', left(value, 1)) > 0 then '''' || value
    else value end
$$;
drop function app_hidden.csv_quoted(text);

create function app_hidden.most_rows_of_export(subject text, format text) returns int
language sql immutable as $$
  select case when format = 'PDF' then case subject when 'FLOOR_PLANS' then 500 else 5000 end end
$$;
comment on function app_hidden.most_rows_of_export(text, text) is 'How many rows a file of the format can have; null for as many as there are.';

create function app_hidden.refuse_long_export(subject text, format text, organization_id uuid, project_id uuid, columns jsonb, filter jsonb, amount int default null) returns void
language plpgsql stable as $$
declare
  most constant int := app_hidden.most_rows_of_export(subject, format);
  query app_hidden.report_query;
begin
  if most is not null and amount is null then
    query := app_hidden.export_query(subject, format, organization_id, project_id, columns, filter, null);
    execute pg_catalog.format('select count(*) from (select from %s t where %s limit %s) t', query.relation, query.conditions, most + 1) into amount;
  end if;
  if amount > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', pg_catalog.format('These are more than %s rows, and a file of this format has no more; filter them, or choose another format.', most),
      jsonb_build_object('field', 'format', 'limit', most));
  end if;
end $$;
comment on function app_hidden.refuse_long_export(text, text, uuid, uuid, jsonb, jsonb, int) is 'Refuses what has more rows, as the viewer sees them, than a file of the format can.';

-- How many columns a page has room for is said here only, of those that were named and of those that are there by default.
create or replace function app_hidden.export_query(subject text, format text, organization_id uuid, project_id uuid, columns jsonb, filter jsonb, sort jsonb) returns app_hidden.report_query
language plpgsql stable as $$
declare
  most constant int := case when format = 'PDF' and subject <> 'FLOOR_PLANS' then 12 end;
  asked app_hidden.report_query;
begin
  asked := app_hidden.report_query(subject, organization_id, project_id, columns, filter, '{}', sort);
  if asked.group_by <> '{}' then
    perform app_hidden.refuse_report('An export has rows, not figures; make a report of it.', 'columns');
  elsif jsonb_array_length(columns) > most then
    perform app_hidden.refuse_report(format('A page has room for %s columns; name those that matter, or choose another format.', most), 'columns');
  end if;
  if most is not null then
    asked.columns := jsonb_path_query_array(asked.columns, format('$[0 to %s]', most - 1)::jsonpath);
  end if;
  return asked;
end $$;

create or replace function app_private.tg_custom_exports__check() returns trigger
language plpgsql volatile as $$
declare
  query app_hidden.report_query;
begin
  if tg_op = 'UPDATE' and (old.columns, old.filter, old.sort, old.format) is not distinct from (new.columns, new.filter, new.sort, new.format) then
    return new;
  end if;
  if not app_hidden.organization_can(new.organization_id, 'report.manage') then
    return new; -- the policy refuses it
  end if;
  if length(new.columns::text) + length(new.filter::text) + length(new.sort::text) > 100000 then
    perform app_hidden.refuse_report('An export has 100,000 characters at most.', 'filter');
  end if;
  query := app_hidden.export_query(new.subject, new.format, new.organization_id, new.project_id, new.columns, new.filter, new.sort);
  -- Left out, the columns are those that there are by default today.
  new.columns := coalesce(new.columns, jsonb_path_query_array(query.columns, '$[*].name'));
  return new;
end $$;

drop function app_hidden.open_export(uuid, int);
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
    perform app_hidden.fail('FORBIDDEN', 'Whoever asked for it may not export from the organization any more.', '{"permission": "report.run"}');
  end if;
  query := app_hidden.export_query(chosen.subject, chosen.format, chosen.organization_id, chosen.project_id, chosen.columns, chosen.filter, chosen.sort);
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
  -- Fewer when it was asked for.
  perform app_hidden.refuse_long_export(chosen.subject, chosen.format, chosen.organization_id, chosen.project_id, null, null, total);
  open rows no scroll for execute format('select %s from (select %s%s from %s t where %s order by %s) a',
    answer, case when form = 'local' then 't.id, ' else '' end,
    (select string_agg(format('%s as %I', app_hidden.report_value(query.expressions[c.place], c.value ->> 'type', form, query.time_zone), c.value ->> 'name'), ', ' order by c.place)
      from jsonb_array_elements(query.columns) with ordinality c (value, place)),
    query.relation, query.conditions, query.ordering);
  return jsonb_build_object('columns', query.columns, 'total', total, 'permissions', query.permissions, 'timeZone', query.time_zone,
    'header', (select string_agg(app_hidden.csv_text(c.value ->> 'name'), ',' order by c.place) from jsonb_array_elements(query.columns) with ordinality c (value, place)),
    'rights', app_hidden.report_rights(chosen.organization_id, chosen.project_id, query.permissions || '{report.run}'::text[]));
end $$;

comment on function app_hidden.open_export(uuid) is
  'Opens the cursor export_rows with the rows of an export, as its requester: for CSV and JSONL as lines, else the id and the cells as text. Tells the columns, how many rows there are, and how far the rights reach.';

create or replace function app_public.run_custom_export(id uuid) returns app_public.exports
language plpgsql volatile as $$
declare
  source app_public.custom_exports;
begin
  perform app_hidden.require_viewer();
  select * into source from app_public.custom_exports c where c.id = run_custom_export.id;
  if source.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such custom export.', '{"field": "id"}');
  end if;
  perform app_hidden.refuse_long_export(source.subject, source.format, source.organization_id, source.project_id, source.columns, source.filter);
  return app_private.request_export(source.organization_id, source.project_id, source.subject, source.format, source.columns, source.filter, source.sort, source.id, source.name);
end $$;

create or replace function app_public.export_floor_plans(project_id app_public.id_or_slug, format app_public.export_format default null, floor_plan_ids uuid[] default null)
returns app_public.exports
language plpgsql volatile as $$
#variable_conflict use_column
declare
  wanted constant text := coalesce(format, 'PDF');
  filter constant jsonb := case when floor_plan_ids is not null then jsonb_build_object('id', floor_plan_ids) end;
  chosen app_public.projects;
  missing int;
begin
  perform app_hidden.require_viewer();
  select * into chosen from app_public.projects p where p.id = app_hidden.record_id('projects', export_floor_plans.project_id, 'projectId');
  if chosen.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  elsif not app_hidden.organization_can(chosen.organization_id, 'report.run') then
    perform app_hidden.fail('FORBIDDEN', 'This takes the permission report.run in the organization of the project.', '{"permission": "report.run"}');
  end if;
  select i.place - 1 into missing from unnest(floor_plan_ids) with ordinality i (id, place)
    where not exists (select from app_public.floor_plans f where f.id = i.id and f.project_id = chosen.id) order by i.place limit 1;
  if found then
    perform app_hidden.fail('NOT_FOUND', 'There is no such floor plan in the project.', jsonb_build_object('field', 'floorPlanIds.' || missing));
  end if;
  perform app_hidden.refuse_long_export('FLOOR_PLANS', wanted, chosen.organization_id, chosen.id, null, filter);
  return app_private.request_export(chosen.organization_id, chosen.id, 'FLOOR_PLANS', wanted, null, filter, '["sequence", "id"]', null, chosen.slug || ' floor plans');
end $$;

-- Of several projects, budgets without their currency say nothing.
update app_hidden.report_columns set is_default = true where subject = 'LEADS' and name = 'currency';
