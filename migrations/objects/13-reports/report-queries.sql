-- Translates the definition of a report or export into SQL: names are looked up in app_hidden.report_columns, values
-- are validated by the type of their column and quoted. The statement runs with the viewer's rights, so that row
-- security applies; a column that requires a permission that they lack is refused, with its path as `field`.

comment on type app_hidden.report_query is 'The SQL of a report or export.';

create function app_hidden.report_can(organization_id uuid, project_id uuid, permission text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select organization_id = any ((select app_hidden.viewer_organizations(permission))::uuid[])
    or exists (select from app_public.projects p
      where p.id = any ((select
          app_hidden.viewer_projects(permission) || app_hidden.viewer_own_projects(permission))::uuid[])
        and p.organization_id = report_can.organization_id and p.id = coalesce(report_can.project_id, p.id))
$$;
comment on function app_hidden.report_can(uuid, uuid, text) is
  'Whether the viewer has the permission somewhere in the organization, or in the one project of it; row security says '
  'how far it reaches.';

create function app_hidden.report_rights(organization_id uuid, project_id uuid, permissions text[]) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg(p.permission || '@' || r.reach order by 1), '{}') from unnest(permissions) p (permission),
    lateral (
    select 'organization' as reach
      where organization_id = any ((select app_hidden.viewer_organizations(p.permission))::uuid[])
    union all select 'project ' || j.id from app_public.projects j
      where j.id = any ((select app_hidden.viewer_projects(p.permission))::uuid[])
      and j.organization_id = report_rights.organization_id and j.id = coalesce(report_rights.project_id, j.id)
    union all select 'own ' || j.id from app_public.projects j
      where j.id = any ((select app_hidden.viewer_own_projects(p.permission))::uuid[])
      and j.organization_id = report_rights.organization_id and j.id = coalesce(report_rights.project_id, j.id)) r
$$;
comment on function app_hidden.report_rights(uuid, uuid, text[]) is
  'Scope of the viewer''s permissions in an organization, to compare with an earlier state.';

create function app_hidden.report_rights_hold(before text[], organization_id uuid, project_id uuid,
  permissions text[]) returns boolean
language sql stable as $$
  select not exists (select from unnest(before) r (token)
    where r.token <> all (n.now) and split_part(r.token, '@', 1) || '@organization' <> all (n.now)
      and (r.token !~ '@own ' or replace(r.token, '@own ', '@project ') <> all (n.now)))
  from (select app_hidden.report_rights(organization_id, project_id, permissions) as now) n
$$;
comment on function app_hidden.report_rights_hold(text[], uuid, uuid, text[]) is
  'Whether the viewer may still see everything that they could see when report_rights returned `before`.';

create function app_hidden.refuse_report(message text, field text, more jsonb default '{}') returns void
language plpgsql stable as $$
begin
  perform app_hidden.fail('BAD_USER_INPUT', message, jsonb_build_object('field', field) || more);
end $$;

create function app_hidden.report_column(subject text, name text, field text, organization_id uuid,
  project_id uuid) returns app_hidden.report_columns
language plpgsql stable as $$
declare
  result app_hidden.report_columns;
begin
  select c.* into result from app_hidden.report_columns c where c.subject = report_column.subject
    and c.name = report_column.name;
  if result.name is null then
    perform app_hidden.refuse_report(format('%s have no column %s; they have %s.', subject,
      left(coalesce(name, 'null'), 100), (select string_agg(c.name, ', ' order by c.position)
      from app_hidden.report_columns c where c.subject = report_column.subject)), field);
  end if;
  if result.permission is not null and not app_hidden.report_can(organization_id, project_id, result.permission) then
    perform app_hidden.fail('FORBIDDEN', format('The column %s requires the permission %s.', name, result.permission),
      jsonb_build_object('permission', result.permission, 'field', field));
  end if;
  result.expression := app_hidden.of_masked((select format('app_public.%I', s.table_name)::regclass
    from app_hidden.report_subjects s where s.subject = report_column.subject), result.expression);
  return result;
end $$;
comment on function app_hidden.report_column(text, text, text, uuid, uuid) is
  'The column of that name; refuses one that does not exist, or that the viewer may not see.';

create function app_hidden.report_literal(wanted app_hidden.report_columns, value jsonb, field text) returns text
language plpgsql stable as $$
declare
  text_value text := value #>> '{}';
  allowed text;
  is_right boolean;
begin
  is_right := case wanted.type
    when 'BOOLEAN' then jsonb_typeof(value) = 'boolean'
    when 'INTEGER' then jsonb_typeof(value) in ('number', 'string') and text_value ~ '^-?\d{1,15}$'
    when 'DECIMAL' then jsonb_typeof(value) in ('number', 'string') and text_value ~ '^-?\d{1,30}(\.\d{1,20})?$'
    when 'MONEY' then jsonb_typeof(value) in ('number', 'string') and text_value ~ '^-?\d{1,30}(\.\d{1,20})?$'
    when 'DATE' then jsonb_typeof(value) = 'string' and text_value ~ '^\d{4}-\d\d-\d\d$'
      and pg_input_is_valid(text_value, 'date')
    when 'DATETIME' then jsonb_typeof(value) = 'string'
      and text_value ~* '^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$'
      and pg_input_is_valid(text_value, 'timestamptz')
    when 'ID' then jsonb_typeof(value) = 'string' and text_value ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    when 'ENUM' then jsonb_typeof(value) = 'string' and pg_input_is_valid(text_value, wanted.sql_type)
    else jsonb_typeof(value) = 'string' and length(text_value) <= 1000 end;
  if not coalesce(is_right, false) then
    if wanted.type = 'ENUM' then
      execute format('select string_agg(e.value, '', '' order by e.value) from app_public.%I e',
        substring(obj_description(wanted.sql_type::regtype, 'pg_type') from '^@enum (\w+)')) into allowed;
    end if;
    perform app_hidden.refuse_report(case wanted.type
        when 'BOOLEAN' then 'Must be true or false.' when 'INTEGER' then 'Must be a whole number.' when 'DATE'
          then 'Must be a date such as 2027-05-31.'
        when 'DECIMAL' then 'Must be a number such as "425000.00".'
        when 'MONEY' then 'Must be a number such as "425000.00".'
        when 'DATETIME' then 'Must be a time in RFC 3339, such as 2026-11-21T12:00:00Z.' when 'ID'
          then 'Must be an id that the API returned, a UUID.'
        when 'ENUM' then 'Use one of ' || allowed || '.' else 'Must be a text of at most 1,000 characters.' end, field);
  end if;
  return case when wanted.sql_type like '%email_address' then lower(text_value) else text_value end;
end $$;
comment on function app_hidden.report_literal(app_hidden.report_columns, jsonb, text) is
  'A value of a filter as text that the type of the column takes.';

create function app_hidden.report_condition(wanted app_hidden.report_columns, value jsonb, field text) returns text
language plpgsql stable as $$
declare
  most constant int := 1000;
  bounds constant text[] := case when wanted.type in ('INTEGER', 'DECIMAL', 'MONEY') then '{min, max}'
    when wanted.type in ('DATE', 'DATETIME') then '{from, to}'
    when wanted.type = 'TEXT' then '{contains}' else '{}' end::text[] || '{empty}'::text[];
  member record;
  array_type constant text := case wanted.type when 'ID' then 'uuid[]' else 'text[]' end;
  given text[];
  parts text[] := '{}';
begin
  if jsonb_typeof(value) = 'object' then
    for member in select m.key, m.value, field || '.' || m.key as field from jsonb_each(value) m loop
      if member.key <> all (bounds) then
        perform app_hidden.refuse_report(format('A condition on %s accepts %s.', wanted.name,
          array_to_string(bounds, ', ')), left(member.field, 200));
      end if;
      continue when jsonb_typeof(member.value) = 'null';
      if member.key = 'empty' then
        if jsonb_typeof(member.value) <> 'boolean' then
          perform app_hidden.refuse_report('Must be true or false.', member.field);
        end if;
        parts := parts || format('%s is %s', wanted.expression, case when member.value = 'true' then 'null'
          else 'not null' end);
      elsif member.key = 'contains' then
        parts := parts || format('strpos(lower(%s), lower(%L)) > 0', wanted.expression,
          app_hidden.report_literal(wanted, member.value, member.field));
      else
        parts := parts || format('%s %s %L::%s', wanted.expression,
          case when member.key in ('min', 'from') then '>=' when wanted.type = 'DATETIME' then '<' else '<=' end,
          app_hidden.report_literal(wanted, member.value, member.field),
          case wanted.type when 'DATE' then 'date' when 'DATETIME' then 'timestamptz' else 'numeric' end);
      end if;
    end loop;
    return coalesce(nullif(array_to_string(parts, ' and '), ''), 'true');
  end if;
  if wanted.type = 'JSON' then
    perform app_hidden.refuse_report(format('%s cannot be filtered by.', wanted.name), field);
  end if;
  if jsonb_typeof(value) = 'array' then
    if jsonb_array_length(value) > most then
      perform app_hidden.refuse_report(format('Use at most %s values.', most), field);
    end if;
    select coalesce(array_agg(app_hidden.report_literal(wanted, e.value, field || '.' || (e.place - 1))
      order by e.place), '{}') into given
      from jsonb_array_elements(value) with ordinality e (value, place);
  else
    given := array[app_hidden.report_literal(wanted, value, field)];
  end if;
  return case
    when wanted.type = 'LIST' then format('%s::text[] && %L::text[]', wanted.expression, given)
    when wanted.type in ('ID', 'TEXT', 'ENUM') then format('%s = any (%L::%s)', wanted.expression, given, array_type)
    else format('%s = any (%L::%s[])', wanted.expression, given,
      case wanted.type when 'BOOLEAN' then 'boolean' when 'DATE' then 'date' when 'DATETIME' then 'timestamptz'
        else 'numeric' end) end;
end $$;
comment on function app_hidden.report_condition(app_hidden.report_columns, jsonb, text) is
  'A member of a filter in SQL: a value, any of a list, a range {min, max} or {from, to}, {contains}, {empty}.';

create function app_hidden.report_value(expression text, type text, form text, time_zone text) returns text
language sql immutable as $$
  -- As the API returns it: decimals as text, times in UTC with Z. Spreadsheets know no zones: theirs are
  -- local.
  select case
    when type in ('MONEY', 'DECIMAL') then format('(%s)::text', expression)
    when type = 'DATETIME' and form = 'local'
      then format('to_char((%s) at time zone %L, ''YYYY-MM-DD"T"HH24:MI:SS'')', expression, time_zone)
    when type = 'DATETIME' then format('to_char((%s) at time zone ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'')',
      expression)
    when type = 'LIST' and form <> 'json' then format('array_to_string((%s)::text[], '', '')', expression)
    when form = 'json' then expression
    else format('(%s)::text', expression) end
$$;
comment on function app_hidden.report_value(text, text, text, text) is
  'The SQL expression for an output value: as a JSON property, as text, or as text with local times.';

create function app_hidden.report_query(
  subject text, organization_id uuid, project_id uuid, columns jsonb, filter jsonb, group_by text[] default '{}',
    sort jsonb default null)
returns app_hidden.report_query
language plpgsql stable as $$
#variable_conflict use_variable
declare
  most constant int := 60;
  units constant text[] := '{day, week, month, quarter, year}';
  source app_hidden.report_subjects;
  result app_hidden.report_query;
  wanted app_hidden.report_columns;
  item record;
  unit text;
  aggregate text;
  name text;
  money_at text;
  sql text;
  grouped text[] := '{}';
begin
  select s.* into source from app_hidden.report_subjects s where s.subject = report_query.subject;
  if source.subject is null or to_regclass('app_public.' || source.table_name) is null then
    perform app_hidden.refuse_report(format('There are no reports about %s.', subject), 'subject');
  end if;
  if not app_hidden.report_can(organization_id, project_id, source.permissions[1]) then
    perform app_hidden.fail('FORBIDDEN', format(
      'The columns %s require the permission %s.', subject, source.permissions[1]),
      jsonb_build_object('permission', source.permissions[1], 'field', 'subject'));
  end if;
  result.relation := app_hidden.source_of(format('app_public.%I', source.table_name)::regclass);
  result.permissions := source.permissions;
  result.latest := source.latest;
  result.time_zone := coalesce((select p.time_zone from app_public.projects p where p.id = project_id),
    (select o.time_zone from app_public.organizations o where o.id = organization_id), 'UTC');
  result.columns := '[]';
  result.expressions := '{}';
  result.group_by := '{}';

  -- Columns of the grouping come first.
  for item in select g.name, 'groupBy.' || (g.place - 1) as field from unnest(group_by) with ordinality g (name, place)
    loop
    unit := substring(item.name from ':(.*)$');
    wanted := app_hidden.report_column(subject, split_part(item.name, ':', 1), item.field, organization_id, project_id);
    if not wanted.groupable then
      perform app_hidden.refuse_report(format('%s cannot be grouped by.', wanted.name), item.field);
    elsif unit is not null and (wanted.type not in ('DATE', 'DATETIME') or unit <> all (units)) then
      perform app_hidden.refuse_report(format('Days and times can be grouped by %s, such as insertedAt:month.',
        array_to_string(units, ', ')), item.field);
    elsif item.name = any (grouped) then
      perform app_hidden.refuse_report(format('%s is already used for grouping.', item.name), item.field);
    end if;
    sql := case when unit is null then wanted.expression when wanted.type = 'DATE'
      then format('date_trunc(%L, (%s)::timestamp)::date', unit, wanted.expression)
      else format('date_trunc(%L, (%s) at time zone %L)::date', unit, wanted.expression, result.time_zone) end;
    grouped := grouped || item.name;
    result.permissions := result.permissions || wanted.permission;
    result.group_by := result.group_by || sql;
    result.expressions := result.expressions || sql;
    result.columns := result.columns
      || jsonb_build_object('name', item.name, 'type', case when unit is null then wanted.type else 'DATE' end);
  end loop;

  if columns is null then
    columns := case when cardinality(group_by) > 0 then '[{"aggregate": "COUNT"}]' else (
      select coalesce(jsonb_agg(c.name order by c.position), '[]') from app_hidden.report_columns c
        where c.subject = report_query.subject and c.is_default
        and (c.permission is null or app_hidden.report_can(organization_id, project_id, c.permission))) end;
  end if;
  if jsonb_typeof(columns) <> 'array' or (jsonb_array_length(columns) = 0 and grouped = '{}')
    or jsonb_array_length(columns) > most then
    perform app_hidden.refuse_report(format('Must be a list of 1 to %s columns, such as ["status", {"column": "price", '
      '"aggregate": "SUM"}].', most), 'columns');
  end if;
  for item in select e.value, 'columns.' || (e.place - 1) as field from jsonb_array_elements(columns)
    with ordinality e (value, place) loop
    if jsonb_typeof(item.value) = 'string' then
      item.value := jsonb_build_object('column', item.value);
    elsif jsonb_typeof(item.value) <> 'object' or item.value - '{column, aggregate, as}'::text[] <> '{}' then
      perform app_hidden.refuse_report(
        'A column must be a name, or {"column": …, "aggregate": …, "as": …}.', item.field);
    end if;
    aggregate := item.value ->> 'aggregate';
    if aggregate is null and item.value ->> 'column' = any (grouped) and not item.value ? 'as' then
      continue;
    elsif aggregate <> all ('{COUNT, COUNT_DISTINCT, SUM, AVERAGE, MIN, MAX}'::text[]) then
      perform app_hidden.refuse_report('An aggregate must be COUNT, COUNT_DISTINCT, SUM, AVERAGE, MIN or MAX.',
        item.field || '.aggregate');
    elsif aggregate = 'COUNT' and not item.value ? 'column' then
      wanted := null;
      wanted.type := 'INTEGER';
      sql := 'count(*)';
    else
      wanted := app_hidden.report_column(subject, item.value ->> 'column', item.field || case
        when item.value - 'column' <> '{}' then '.column' else '' end, organization_id, project_id);
      if aggregate in ('SUM', 'AVERAGE') and not wanted.aggregatable or aggregate in ('MIN', 'MAX')
        and wanted.type not in ('INTEGER', 'DECIMAL', 'MONEY', 'DATE', 'DATETIME')
        or aggregate = 'COUNT_DISTINCT' and not wanted.groupable then
        perform app_hidden.refuse_report(format('%s has no %s.', wanted.name, aggregate), item.field || '.aggregate');
      end if;
      if aggregate is not null and wanted.type = 'MONEY' and aggregate not in ('COUNT', 'COUNT_DISTINCT') then
        money_at := coalesce(money_at, item.field);
      end if;
      sql := case aggregate when 'COUNT' then format('count(%s)', wanted.expression) when 'COUNT_DISTINCT'
        then format('count(distinct %s)', wanted.expression)
        when 'SUM' then format('sum((%s)::%s)', wanted.expression, case wanted.type when 'INTEGER' then 'bigint'
          else 'numeric' end)
        when 'AVERAGE' then format('round(avg(%1$s), %2$s)', wanted.expression,
          case wanted.type when 'INTEGER' then '2' when 'MONEY' then format('max(scale(%s))', wanted.expression)
            else format('greatest(2, max(scale(%s)))', wanted.expression) end)
        when 'MIN' then format('min(%s)', wanted.expression) when 'MAX' then format('max(%s)', wanted.expression)
          else wanted.expression end;
      wanted.type := case when aggregate in ('COUNT', 'COUNT_DISTINCT') then 'INTEGER' when aggregate = 'AVERAGE'
        and wanted.type = 'INTEGER' then 'DECIMAL' else wanted.type end;
      result.permissions := result.permissions || wanted.permission;
    end if;
    name := coalesce(item.value ->> 'as', case when aggregate is null then wanted.name when wanted.name is null
      then 'count'
      else app_hidden.camel(lower(aggregate)) || upper(left(wanted.name, 1)) || substr(wanted.name, 2) end);
    if octet_length(name) not between 1 and 60 or name ~ '[[:cntrl:]]' then
      perform app_hidden.refuse_report('A name must have 1 to 60 characters.', item.field || '.as');
    elsif result.columns @> jsonb_build_array(jsonb_build_object('name', name)) then
      perform app_hidden.refuse_report(format('There are two columns %s; rename one of them with "as".', name),
        item.field);
    end if;
    result.columns := result.columns
      || jsonb_strip_nulls(jsonb_build_object('name', name, 'type', wanted.type, 'aggregate', aggregate));
    result.expressions := result.expressions || sql;
  end loop;
  -- If there are aggregates, all other columns are grouped by.
  if grouped <> '{}' or result.columns @? '$[*].aggregate' then
    for item in select 'columns.' || (e.place - 1) as field, e.value from jsonb_array_elements(columns)
      with ordinality e (value, place)
      where coalesce(e.value ->> 'aggregate', '') = '' and coalesce(e.value ->> 'column',
        e.value #>> '{}') <> all (grouped) or (not e.value ? 'aggregate' and e.value ? 'as') loop
      perform app_hidden.refuse_report('Columns that are not grouped must be aggregates, such as {"column": '
        '"price", "aggregate": "SUM"}.', item.field);
    end loop;
    if result.group_by = '{}' then
      result.group_by := '{()}';
    end if;
  end if;
  if money_at is not null and 'currency' <> all (grouped)
    and (select count(distinct p.currency) > 1 from app_public.projects p
    where p.organization_id = report_query.organization_id and p.id = coalesce(report_query.project_id, p.id)) then
    perform app_hidden.refuse_report('The projects have several currencies: group by currency, or specify a project.',
      money_at);
  end if;

  result.conditions := format('t.organization_id = %L', organization_id)
    || case when project_id is null then '' else format(' and t.project_id = %L', project_id) end
    || case when exists (select from pg_attribute a where a.attrelid = result.relation::regclass
      and a.attname = 'deleted_at') then ' and t.deleted_at is null' else '' end;
  if filter is not null and jsonb_typeof(filter) not in ('object', 'null') then
    perform app_hidden.refuse_report('A filter must be an object of columns and conditions, such as {"status": '
      '["NEW"], "insertedAt": {"from": "2026-01-01T00:00:00Z"}}.', 'filter');
  elsif jsonb_typeof(filter) = 'object' then
    for item in select m.key, m.value, left('filter.' || m.key, 200) as field from jsonb_each(filter) m loop
      wanted := app_hidden.report_column(subject, item.key, item.field, organization_id, project_id);
      result.permissions := result.permissions || wanted.permission;
      if jsonb_typeof(item.value) <> 'null' then
        result.conditions := result.conditions || ' and '
          || app_hidden.report_condition(wanted, item.value, item.field);
      end if;
    end loop;
  end if;

  if jsonb_typeof(sort) <> 'null' then
    if jsonb_typeof(sort) <> 'array' or jsonb_array_length(sort) > 10 then
      perform app_hidden.refuse_report('Must be a list of at most 10 columns, such as ["status", {"column": "price", '
        '"direction": "DESC"}].', 'sort');
    end if;
    for item in select e.value, 'sort.' || (e.place - 1) as field from jsonb_array_elements(sort)
      with ordinality e (value, place) loop
      if jsonb_typeof(item.value) = 'string' then
        item.value := jsonb_build_object('column', item.value);
      elsif jsonb_typeof(item.value) <> 'object' or item.value - '{column, direction}'::text[] <> '{}' then
        perform app_hidden.refuse_report('Must be the name of a column, or {"column": …, "direction": …}.', item.field);
      end if;
      if coalesce(item.value ->> 'direction', 'ASC') <> all ('{ASC, DESC}'::text[]) then
        perform app_hidden.refuse_report('A direction must be ASC or DESC.', item.field || '.direction');
      end if;
      wanted := app_hidden.report_column(subject, item.value ->> 'column', item.field, organization_id, project_id);
      if not wanted.groupable then
        perform app_hidden.refuse_report(format('%s cannot be sorted by.', wanted.name), item.field);
      end if;
      result.permissions := result.permissions || wanted.permission;
      result.ordering := concat_ws(', ', result.ordering, wanted.expression || case
        when item.value ->> 'direction' = 'DESC' then ' desc' else '' end || ' nulls last');
    end loop;
  end if;
  if result.group_by = '{}' then
    result.ordering := concat_ws(', ', result.ordering, format('t.%I desc', source.latest), case
      when source.latest <> 'id' then 't.id desc' end);
  end if;
  result.permissions := array(select distinct p from unnest(result.permissions) p where p is not null order by p);
  return result;
end $$;
comment on function app_hidden.report_query(text, uuid, uuid, jsonb, jsonb, text[], jsonb) is
  'The SQL of a report or export, as the viewer; refuses unknown columns, invalid conditions, and columns that the '
  'viewer may not see.';

revoke execute on function app_hidden.report_rights_hold from plat_user, plat_anonymous;
