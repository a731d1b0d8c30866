--! Previous: sha1:473aa3c4054acd99cdd61a9325a4c381e4f0c33d
--! Hash: sha1:f4ca04c02719ed2ba8399a01528c65658ac8a71b
--! Message: lean-imports

-- PERF: what an import of many rows pays for each row, or for each statement, without getting anything for it.

-- Not in SQL: the planner would take each call of each statement apart to see whether it can be inlined, which takes longer than
-- the rows of the statement.
create or replace function app_hidden.plain_number(value text) returns text
language plpgsql immutable strict parallel safe as $$
declare
  -- What spreadsheets make of a number: a currency sign, and groups of thousands by comma, point or space.
  digits constant text := regexp_replace(value, '^(-?)\s*[$€£]|\s*[$€£]$|(?<=\d)[\s\u00a0\u202f](?=\d{3})', '\1', 'g');
begin
  return case
    when digits ~ '^-?\d{1,3}(,\d{3})+(\.\d+)?$' then replace(digits, ',', '')
    when digits ~ '^-?\d{1,3}(\.\d{3})+,\d+$' then replace(replace(digits, '.', ''), ',', '.')
    when digits ~ '^-?\d+,\d{1,2}$' then replace(digits, ',', '.')
    when digits ~ '^-?\d+(\.\d+)?$' then digits
    else value end;
end $$;

create or replace function app_hidden.add_import_rows(operation text, columns text[], rows jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 200000;
  amount constant int := coalesce(app_hidden.setting('imported_rows')::int, 0) + jsonb_array_length(rows);
  expressions text;
begin
  if amount > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'A file has 200,000 rows at most; split it.', jsonb_build_object('limit', most, 'field', 'file'));
  end if;
  perform set_config('plat.imported_rows', amount::text, true);
  -- PERF: one pass makes cells what their type reads, and takes each cell out of its row once.
  select string_agg(case
      when t.typcategory = 'N' then format('case when pg_input_is_valid(%1$I, ''numeric'') then %1$I else app_hidden.plain_number(%1$I) end', p.name)
      when coalesce(obj_description(t.oid, 'pg_type'), '') ~ '^@enum ' then format('upper(translate(%I, '' -'', ''__''))', p.name)
      else format('%I', p.name) end, ', ' order by p.position)
    into expressions
    from unnest(columns) with ordinality as p (name, position)
    join app_hidden.import_columns c on c.operation = add_import_rows.operation and c.column_name = p.name
    join pg_type t on t.oid = app_private.import_type(c)::regtype;
  execute format('insert into pg_temp.import_rows (row, surplus, %s) select row, surplus, %s
      from (select (r ->> 0)::int as row, r ->> 1 as surplus, %s from jsonb_array_elements($1) r offset 0) cells',
    (select string_agg(format('%I', c), ', ' order by p) from unnest(columns) with ordinality as u (c, p)), expressions,
    (select string_agg(format('r ->> %s as %I', p + 1, c), ', ' order by p) from unnest(columns) with ordinality as u (c, p))) using rows;
end $$;

-- Within an organization the sequence is that of its stream, so one index serves both; the other is left to streams of users.
drop index app_public.events_sequence, app_public.events_organization;
create unique index events_sequence on app_public.events (stream_id, sequence) where sequence is not null and organization_id is null;
create unique index events_organization on app_public.events (organization_id, sequence);
