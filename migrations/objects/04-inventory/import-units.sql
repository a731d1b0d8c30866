-- Imports: rows of a CSV file become records of a project. The columns of a file, with their spellings, are data; a
-- cell is validated by the type and the checks of its column. The API parses the file and passes its rows
-- (begin_import, add_import_rows) in the transaction of the operation, which then processes all of them together.
--
-- PERF: avoids costs per row or statement that an import of many rows would pay without benefit.

create policy everybody on app_hidden.imports for select to plat_user, plat_anonymous using (true);

grant select on app_hidden.imports to plat_user, plat_anonymous;

comment on table app_hidden.imports is
  'The operations that import rows into projects: into which table, and the permission that it takes.';

create policy everybody on app_hidden.import_columns for select to plat_user, plat_anonymous using (true);

grant select on app_hidden.import_columns to plat_user, plat_anonymous;

comment on table app_hidden.import_columns is
  'The columns of an import, besides its name in the API under these spellings; type where it is not that of the '
  'table''s column of this name.';

create function app_private.spelling(name text) returns text
language sql stable strict parallel safe as $$
  -- Headers are compared without case, accents, spaces and points.
  select regexp_replace(lower(public.unaccent(name)), '[^a-z0-9#%]', '', 'g')
$$;

create function app_private.import_type(column_of app_hidden.import_columns) returns text
language sql stable as $$
  select coalesce(column_of.type, (select format_type(a.atttypid, null)
    from app_hidden.imports i join pg_attribute a on a.attrelid = format('app_public.%I', i.table_name)::regclass
      and a.attname = column_of.column_name
    where i.operation = column_of.operation))
$$;

-- Not in SQL, because the planner would try to inline each call in each statement, which takes longer than processing
-- the rows.
create function app_hidden.plain_number(value text) returns text
language plpgsql immutable strict parallel safe as $$
declare
  -- Number formats of spreadsheets: a currency sign, and groups of thousands separated by comma, point or space.
  digits constant text := regexp_replace(value, '^(-?)\s*[$€£]|\s*[$€£]$|(?<=\d)[\s\u00a0\u202f](?=\d{3})', '\1', 'g');
begin
  return case
    when digits ~ '^-?\d{1,3}(,\d{3})+(\.\d+)?$' then replace(digits, ',', '')
    when digits ~ '^-?\d{1,3}(\.\d{3})+,\d+$' then replace(replace(digits, '.', ''), ',', '.')
    when digits ~ '^-?\d+,\d{1,2}$' then replace(digits, ',', '.')
    when digits ~ '^-?\d+(\.\d+)?$' then digits
    else value end;
end $$;
comment on function app_hidden.plain_number(text) is
  'A number as SQL reads it, from one as spreadsheets write it; anything else stays as it is.';

-- Rows on their way in. The tables live as long as the transaction.
create function app_private.open_import(operation text, header text[]) returns text[]
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  columns text[];
  twice text[];
  missing text[];
begin
  select array_agg(c.column_name order by h.position) into columns
    from unnest(header) with ordinality as h (name, position)
    left join app_hidden.import_columns c on c.operation = open_import.operation
      and app_private.spelling(h.name) = any (array(select app_private.spelling(s)
        from unnest(c.spellings || c.column_name) s));
  select array_agg(header[p]) into twice from generate_subscripts(columns, 1) p
    where columns[p] = (select c from unnest(columns) c where c is not null group by c having count(*) > 1 limit 1);
  if twice is not null then
    perform app_hidden.fail('BAD_USER_INPUT',
      format('The columns %s have the same meaning; remove all but one.', array_to_string(twice, ', ')),
      jsonb_build_object('field', 'file', 'row', 1, 'columns', to_jsonb(twice)));
  end if;
  select array_agg(app_hidden.camel(c.column_name) order by c.position) into missing from app_hidden.import_columns c
    where c.operation = open_import.operation and c.required
      and c.column_name <> all (coalesce(array_remove(columns, null), '{}'));
  if missing is not null then
    perform app_hidden.fail('BAD_USER_INPUT',
      format('The first row has no column %s. It must contain the column names, separated by commas or semicolons.',
        array_to_string(missing, ', ')),
      jsonb_build_object('field', 'file', 'row', 1, 'columns', to_jsonb(missing)));
  end if;
  execute format('create temp table import_rows (row int not null, surplus text, %s) on commit drop',
    (select string_agg(format('%I text', c.column_name), ', ' order by c.position) from app_hidden.import_columns c
      where c.operation = open_import.operation));
  create temp table import_errors (row int not null, column_name text, code text not null, message text not null,
    value text) on commit drop;
  create temp table import_header on commit drop as
    select columns[p] as column_name, header[p] as name from generate_subscripts(columns, 1) p
      where columns[p] is not null;
  -- A file with many rows may take longer than the usual statement timeout.
  perform set_config('statement_timeout', '300s', true);
  perform set_config('plat.imported_rows', '', true);
  return columns;
end $$;
comment on function app_private.open_import(text,text[]) is
  E'@withoutViewer Makes temporary tables only, for an import whose operation has asked.\n\nMakes room for the rows of '
  'an import; refuses a header that lacks what is required.';

create function app_hidden.require_import(operation text, project text) returns app_public.projects
language plpgsql volatile as $$
declare
  import app_hidden.imports;
  found_project app_public.projects;
begin
  perform app_hidden.require_viewer();
  select * into import from app_hidden.imports i where i.operation = require_import.operation;
  select * into found_project from app_hidden.masked_projects p
    where p.id = app_hidden.record_id('projects', project, 'projectId');
  if found_project.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  end if;
  if not app_hidden.project_can(found_project.id, found_project.organization_id, import.permission) then
    perform app_hidden.fail('FORBIDDEN', format('This requires the permission %s in the project.', import.permission),
      jsonb_build_object('permission', import.permission));
  end if;
  if found_project.archived_at is not null then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  end if;
  return found_project;
end $$;
comment on function app_hidden.require_import(text, text) is
  'The project that the viewer imports into; refuses who may not.';

create function app_hidden.begin_import(operation text, project text, header text[]) returns text[]
language plpgsql volatile as $$
begin
  perform app_hidden.require_import(operation, project);
  return app_private.open_import(operation, header);
end $$;
comment on function app_hidden.begin_import(text, text, text[]) is
  'Begins an import into a project, as the viewer; answers which column each name of the header stands for, null for '
  'one that is ignored.';

create function app_hidden.add_import_rows(operation text, columns text[], rows jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 200000;
  amount constant int := coalesce(app_hidden.setting('imported_rows')::int, 0) + jsonb_array_length(rows);
  expressions text;
begin
  if amount > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'A file can have at most 200,000 rows; split it.',
      jsonb_build_object('limit', most, 'field', 'file'));
  end if;
  perform set_config('plat.imported_rows', amount::text, true);
  -- PERF: converts all cells in one pass, and reads each cell of a row once.
  select string_agg(case
      when t.typcategory = 'N' then format('case when pg_input_is_valid(%1$I, ''numeric'') then %1$I else '
        'app_hidden.plain_number(%1$I) end', p.name)
      when coalesce(obj_description(t.oid, 'pg_type'), '') ~ '^@enum '
        then format('upper(translate(%I, '' -'', ''__''))', p.name)
      -- Lists of words; SQL arrays are not accepted in files.
      when t.typcategory = 'A' then format('(select array_agg(btrim(w))::text from regexp_split_to_table(%I, ''[,;]'') w
        where btrim(w) <> '''')', p.name)
      else format('%I', p.name) end, ', ' order by p.position)
    into expressions
    from unnest(columns) with ordinality as p (name, position)
    join app_hidden.import_columns c on c.operation = add_import_rows.operation and c.column_name = p.name
    join pg_type t on t.oid = app_private.import_type(c)::regtype;
  execute format('insert into pg_temp.import_rows (row, surplus, %s) select row, surplus, %s
      from (select (r ->> 0)::int as row, r ->> 1 as surplus, %s from jsonb_array_elements($1) r offset 0) cells',
    (select string_agg(format('%I', c), ', ' order by p) from unnest(columns) with ordinality as u (c, p)), expressions,
    (select string_agg(format('r ->> %s as %I', p + 1, c), ', ' order by p) from unnest(columns)
      with ordinality as u (c, p))) using rows;
end $$;
comment on function app_hidden.add_import_rows(text,text[],jsonb) is
  E'@withoutViewer Writes the temporary table of the caller''s own import only.\n\nAdds rows to the import that was '
  'begun: each is [place in the file, cells beyond the header, cells of the columns …].';

create function app_private.input_message(value text, type text) returns text
language plpgsql stable as $$
declare
  of_type pg_type;
  enumeration text;
  message text;
begin
  select t.* into of_type from pg_type t where t.oid = type::regtype;
  enumeration := substring(obj_description(of_type.oid, 'pg_type') from '^@enum (\w+)');
  if enumeration is not null then
    execute format('select string_agg(e.value, '', '' order by e.value) from app_public.%I e', enumeration)
      into message;
    return 'Use one of ' || message || '.';
  end if;
  select obj_description(c.oid, 'pg_constraint') into message from pg_constraint c
    where c.contypid = of_type.oid
      and c.conname = substring((select e.message from pg_input_error_info(value, type) e) from '"([^"]+)"$');
  return coalesce(message, case coalesce(nullif(of_type.typbasetype, 0), of_type.oid)
    when 'int'::regtype then 'Must be a whole number.'
    when 'numeric'::regtype then 'Must be a number such as 425000.00.'
    when 'boolean'::regtype then 'Must be yes or no.'
    when 'date'::regtype then 'Must be a date such as 2027-05-31.'
    else 'This value has the wrong format.' end);
end $$;
comment on function app_private.input_message(text, text) is 'Why a type does not take a value, for the caller.';

create function app_private.check_import_rows(operation text) returns void
language plpgsql volatile as $$
declare
  part record;
begin
  -- PERF: without it, the planner underestimates the number of rows.
  analyze pg_temp.import_rows (row);
  insert into pg_temp.import_errors select r.row, null, 'BAD_USER_INPUT', 'This row has more cells than the header.',
    r.surplus
    from pg_temp.import_rows r where r.surplus is not null;
  for part in
    select c.column_name, c.required, app_private.import_type(c) as type,
      (app_private.import_type(c)::regtype = 'date'::regtype) as is_date,
      (select string_agg(format('when not %s then %L', pg_get_expr(k.conbin, k.conrelid),
        obj_description(k.oid, 'pg_constraint')), ' ')
        from pg_constraint k join pg_attribute a on a.attrelid = k.conrelid and a.attname = c.column_name
        where k.conrelid = format('app_public.%I', i.table_name)::regclass and k.contype = 'c'
          and k.conkey = array[a.attnum]) as checks
    from app_hidden.import_columns c join app_hidden.imports i using (operation) join pg_temp.import_header h
      using (column_name)
    where c.operation = check_import_rows.operation order by c.position
  loop
    if part.required then
      execute format('insert into pg_temp.import_errors select r.row, %1$L, ''BAD_USER_INPUT'', %2$L, null from '
        'pg_temp.import_rows r where r.%1$I is null',
        part.column_name, format('%s is required.', app_hidden.camel(part.column_name)));
    end if;
    execute format('insert into pg_temp.import_errors
      select c.row, %1$L, ''BAD_USER_INPUT'', coalesce(c.message, app_private.input_message(c.cell, %2$L)),
        left(c.cell, 200)
      from (select v.row, v.cell, v.ok, %3$s as message
        from (select k.row, k.cell, k.ok, case when k.ok then k.cell::%2$s end as %1$I
          from (select r.row, r.%1$I as cell, pg_input_is_valid(r.%1$I, %2$L)%4$s as ok from pg_temp.import_rows r
            where r.%1$I is not null offset 0) k) v) c
      where not c.ok or c.message is not null',
      part.column_name, part.type, coalesce('case ' || part.checks || ' end', 'null::text'),
      -- Other date formats are ambiguous or relative: 3/4 is March or April, and "tomorrow" is not a date.
      case when part.is_date then format(' and r.%I ~ ''^\d{4}-\d\d-\d\d$''', part.column_name) else '' end);
  end loop;
  -- Validation continues without them, so that all errors of a row are reported.
  for part in select distinct e.column_name from pg_temp.import_errors e where e.column_name is not null loop
    execute format('update pg_temp.import_rows r set %1$I = null from pg_temp.import_errors e where e.row = r.row and '
      'e.column_name = %1$L and r.%1$I is not null', part.column_name);
  end loop;
end $$;
comment on function app_private.check_import_rows(text) is
  'Notes what is wrong with cells: required and empty, not of its type, refused by a check of the table''s column; and '
  'empties them, so that the rest of their row can be looked at.';

create function app_private.check_import_states(subject text) returns void
language plpgsql volatile as $$
declare
  requirement app_hidden.transition_requirements;
begin
  insert into pg_temp.import_errors
    select r.row, 'status', 'INVALID_TRANSITION', case when r.existing_id is null
      then format('The %s cannot have the initial status %s.', replace(subject, '_', ' '), r.status)
        else format('The %s is %s and cannot become %s.', replace(subject, '_', ' '), r.status_before, r.status) end,
          r.status
    from pg_temp.import_ready r
    where r.status is distinct from r.status_before and not exists (select from app_hidden.transitions t
      where t.subject = check_import_states.subject and t.from_state is not distinct from r.status_before
        and t.to_state = r.status
        and not t.by_service and t.permission is null)
      and not exists (select from pg_temp.import_errors e where e.row = r.row and e.column_name = 'status');
  for requirement in select * from app_hidden.transition_requirements q where q.subject = check_import_states.subject
    loop
    execute format('insert into pg_temp.import_errors select r.row, %1$L, ''BAD_USER_INPUT'', %2$L, null from '
      'pg_temp.import_ready r where r.status = %3$L and r.%1$I is null and not exists (select from '
      'pg_temp.import_errors e where e.row = r.row and e.column_name = %1$L)',
      requirement.column_name, requirement.message, requirement.to_state);
  end loop;
end $$;
comment on function app_private.check_import_states(text) is
  'Notes which rows of import_ready (row, existing_id, status_before, status …) would take a step that is not there, '
  'or lack what their state requires.';

comment on type app_public.import_row_error is 'An error in a row of an imported file.';

comment on column app_public.import_row_error.row is
  E'@notNull\n\nRow number in the file, from 1; row 1 contains the column names.';
comment on column app_public.import_row_error."column" is
  'Name of the column as in the file; null if the error concerns the whole row.';
comment on column app_public.import_row_error.code is
  E'@notNull\n\nError code, such as BAD_USER_INPUT.';
comment on column app_public.import_row_error.message is
  E'@notNull\n\nError message: what is wrong and how to correct it.';
comment on column app_public.import_row_error.value is 'Value of the cell, at most 200 characters.';

create function app_private.import_errors() returns app_public.import_row_error[]
language plpgsql volatile as $$
begin
  return array(select row(e.row, coalesce(h.name, app_hidden.camel(e.column_name)), e.code, e.message,
    e.value)::app_public.import_row_error
    from pg_temp.import_errors e left join pg_temp.import_header h using (column_name) order by e.row, h.name, e.code
      limit 1000);
end $$;
comment on function app_private.import_errors() is 'What is wrong with the rows of the import, the first 1,000.';

-- Units.
insert into app_hidden.imports (operation, table_name, permission) values ('importUnits', 'units', 'inventory.manage');
insert into app_hidden.import_columns (operation, position, column_name, type, required, spellings, description)
  select 'importUnits', row_number() over (), c.* from (values
    ('number', null, true, '{Unit #,Unit,Unit No,Unit Number,Suite,Suite #,No,#}'::text[],
      'Number, unique in the project: which unit it is.'),
    ('title', null, false, '{Name,Unit Name}', 'Name. Default: made from the number of a new unit.'),
    ('subtitle', null, false, '{}', 'Subtitle, shown below the title.'),
    ('description', null, false, '{Remarks,Public Remarks}', 'Description for the public page.'),
    ('floor_plan', 'app_public.short_text', false, '{Plan,Plan Code,Plan Name,Layout}',
      'Code or title of a floor plan of the project.'),
    ('lot', 'app_public.short_text', false, '{Lot #,Lot No,Lot Number}', 'Number of a lot of the project.'),
    ('building', null, false, '{Bldg,Tower}', 'Building or tower.'),
    ('level', null, false, '{Floor,Storey,Story}', 'Floor that the unit is on.'),
    ('phase', null, false, '{Release}', 'Phase of the project.'),
    ('status', null, false, '{Unit Status,Availability}',
      'UNRELEASED, AVAILABLE or OFF_MARKET. Default: UNRELEASED.'),
    ('price', null, false, '{List Price,Asking Price}', 'List price.'),
    ('hoa_fee', null, false, '{HOA,HOA Fees,HOA Dues,Maintenance Fee,Condo Fee,Strata Fee}',
      'Monthly fee of the homeowners'' association (HOA).'),
    ('bedrooms', null, false, '{Beds,Bed,BR}', 'Bedrooms. Default: those of the floor plan.'),
    ('baths', null, false, '{Bath,Bathrooms,Full Baths}', 'Number of full bathrooms.'),
    ('half_baths', null, false, '{Half Bath,Powder Rooms}', 'Number of half bathrooms (without bath or shower).'),
    ('garage', null, false, '{Garage Spaces,Parking}', 'Number of cars that fit in the garage.'),
    ('sqft', null, false, '{Square Feet,Area,Living Area,Size}', 'Square feet.'),
    ('orientation', null, false, '{Exposure,Facing}', 'N, NE, E, SE, S, SW, W or NW.'),
    ('view', null, false, '{Views}', 'View from the unit.'),
    ('thoroughfare', 'app_public.short_text', false, '{Street,Address,Street Address}', 'Street and number.'),
    ('premise', 'app_public.short_text', false, '{}', 'Apartment or suite.'),
    ('locality', 'app_public.short_text', false, '{City,Town}', 'City.'),
    ('administrative_area', 'app_public.short_text', false, '{State,Province,Region}', 'State or province.'),
    ('postal_code', 'app_public.short_text', false, '{Zip,Zip Code,Postcode}', 'Postal code.'),
    ('country', 'app_public.country_code', false, '{}',
      'Country by ISO 3166-1, such as CA. Default: the one of the project.'),
    ('model', null, false, '{Model Home}', 'yes or no: whether it is a model home.'),
    ('is_spec', null, false, '{Spec,Spec Home,Quick Move-in,Inventory Home}',
      'yes or no: whether it is built before it is sold.'),
    ('is_bmr', null, false, '{BMR,Below Market Rate}', 'yes or no: whether it is sold below market rate.'),
    ('is_furnished', null, false, '{Furnished}', 'yes or no.'),
    ('is_accessible', null, false, '{Accessible}', 'yes or no: accessible without steps.'),
    ('mls_id', null, false, '{MLS,MLS #,MLS Number}', 'Listing id in the multiple listing service (MLS).'),
    ('construction_status', null, false, '{Construction,Stage}', 'How far its construction is, such as FRAMING.'),
    ('listing_date', null, false, '{Listed,List Date}', 'Since when it is listed, such as 2027-05-31.'),
    ('estimated_delivery_date', null, false,
      '{Delivery,Delivery Date,Estimated Delivery,Occupancy,Occupancy Date,Completion Date}',
      'Expected handover date.')
  ) as c (column_name, type, required, spellings, description);

comment on type app_public.import_units_payload is 'Result of an import of units.';

comment on column app_public.import_units_payload.dry_run is
  E'@notNull\n\nTrue if nothing was changed, and the result shows what would happen.';
comment on column app_public.import_units_payload.created_count is E'@notNull\n\nNumber of created units.';
comment on column app_public.import_units_payload.updated_count is E'@notNull\n\nNumber of updated units.';
comment on column app_public.import_units_payload.skipped_count is
  E'@notNull\n\n'
  'Number of rows without effect, because the unit exists and `updateExisting` is false, or because it already '
  'matches the row.';
comment on column app_public.import_units_payload.failed_count is E'@notNull\n\nNumber of refused rows.';
comment on column app_public.import_units_payload.errors is 'Errors of refused rows, in order; at most 1,000.';
comment on column app_public.import_units_payload.units is
  'Created and updated units, in file order; at most 1,000.';

create function app_private.start_import(operation text, project_id uuid) returns app_public.projects
language plpgsql volatile as $$
declare
  project app_public.projects;
  permission constant text := (select i.permission from app_hidden.imports i
    where i.operation = start_import.operation);
begin
  perform app_hidden.require_viewer();
  select * into project from app_public.projects p where p.id = start_import.project_id and p.deleted_at is null;
  if project.id is null or not app_hidden.organization_can(project.organization_id, permission) then
    perform app_hidden.fail('FORBIDDEN', format('This requires the permission %s in the project.', permission),
      jsonb_build_object('permission', permission));
  end if;
  if project.archived_at is not null then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  end if;
  perform set_config('plat.channel', 'IMPORT', true);
  -- Imports of a project are serialized, so that each sees the units of the previous one.
  perform pg_advisory_xact_lock(hashtextextended(operation || ' ' || project.id, 0));
  return project;
end $$;
comment on function app_private.start_import(text, uuid) is
  'The project that an operation imports into, locked against other imports of the operation; refuses who lacks the '
  'permission, and archived projects.';

create function app_public.import_units(project_id uuid, file app_public.data_upload, dry_run boolean default null,
  update_existing boolean default null)
returns app_public.import_units_payload
-- PERF: a table that grew a moment ago looks small to the planner, which then compares each row with each.
language plpgsql volatile security definer set search_path = pg_catalog,
  pg_temp set enable_nestloop = off set work_mem = '64MB' as $$
#variable_conflict use_column
declare
  project app_public.projects;
  digits int;
  existing uuid[];
  result app_public.import_units_payload;
begin
  project := app_private.start_import('importUnits', project_id);
  digits := coalesce((select c.digits from app_hidden.currencies c where c.code = project.currency), 2);
  result.dry_run := coalesce(dry_run, false);
  perform app_private.check_import_rows('importUnits');

  insert into pg_temp.import_errors
    select d.row, 'number', 'CONFLICT', format('Row %s already has this number.', d.first_row), d.number
    from (select r.row, r.number, first_value(r.row) over (partition by lower(r.number) order by r.row) as first_row
      from pg_temp.import_rows r where r.number is not null) d
    where d.row <> d.first_row;
  create temp table import_plans on commit drop as
    select n.name, min(n.id::text)::uuid as id, count(*) as amount from (
      select lower(f.code) as name, f.id from app_public.floor_plans f where f.project_id = project.id
        and f.deleted_at is null and f.code is not null
      union all
      select lower(f.title), f.id from app_public.floor_plans f where f.project_id = project.id and f.deleted_at is null
        and lower(f.title) not in (select lower(c.code) from app_public.floor_plans c where c.project_id = project.id
          and c.deleted_at is null and c.code is not null)
    ) n group by n.name;
  insert into pg_temp.import_errors
    select r.row, 'floor_plan', case when p.amount > 1 then 'CONFLICT' else 'NOT_FOUND' end,
      case when p.amount > 1 then 'Several floor plans of the project have this title; use the code instead.'
        else 'There is no such floor plan in this project.' end,
      left(r.floor_plan, 200)
    from pg_temp.import_rows r left join pg_temp.import_plans p on p.name = lower(r.floor_plan)
    where r.floor_plan is not null and p.amount is distinct from 1;
  insert into pg_temp.import_errors
    select r.row, 'lot', 'NOT_FOUND', 'There is no such lot in this project.', left(r.lot, 200)
    from pg_temp.import_rows r
    where r.lot is not null and not exists (select from app_public.lots l
      where l.project_id = project.id and l.deleted_at is null and lower(l.number) = lower(r.lot));

  -- The resulting values of each unit: those of the file, otherwise the existing ones. New ids follow the order of
  -- the file.
  create temp table import_ready on commit drop as
    select r.row, uuidv7() as new_id, u.id as existing_id, u.version as version_before, u.status as status_before,
      u.lot_id as lot_before, r.number,
      coalesce(r.title, u.title, left('Unit ' || r.number, 300)) as title,
      coalesce(r.subtitle, u.subtitle) as subtitle,
      coalesce(r.description, u.description) as description,
      coalesce(p.id, u.floor_plan_id) as floor_plan_id,
      coalesce(l.id, u.lot_id) as lot_id,
      coalesce(r.building, u.building) as building,
      coalesce(r.level::int, u.level) as level,
      coalesce(r.phase, u.phase) as phase,
      coalesce(r.status, u.status, 'UNRELEASED') as status,
      coalesce(r.price::numeric, u.price) as price,
      coalesce(r.hoa_fee::numeric, u.hoa_fee) as hoa_fee,
      coalesce(r.bedrooms::int, u.bedrooms) as bedrooms,
      coalesce(r.baths::int, u.baths) as baths,
      coalesce(r.half_baths::int, u.half_baths) as half_baths,
      coalesce(r.garage::int, u.garage) as garage,
      coalesce(r.sqft::int, u.sqft) as sqft,
      coalesce(r.orientation, u.orientation) as orientation,
      coalesce(r.view, u.view) as view,
      case when num_nonnulls(r.thoroughfare, r.premise, r.locality, r.administrative_area, r.postal_code, r.country) = 0
        then u.address
        else row(coalesce(r.thoroughfare, (u.address).thoroughfare), coalesce(r.premise, (u.address).premise),
          coalesce(r.locality, (u.address).locality),
          coalesce(r.administrative_area, (u.address).administrative_area),
            coalesce(r.postal_code, (u.address).postal_code),
          coalesce(r.country, (u.address).country, (project.address).country, 'US'), (u.address).latitude,
            (u.address).longitude)::app_public.address end as address,
      coalesce(r.model::boolean, u.model, false) as model,
      coalesce(r.is_spec::boolean, u.is_spec, false) as is_spec,
      coalesce(r.is_bmr::boolean, u.is_bmr, false) as is_bmr,
      coalesce(r.is_furnished::boolean, u.is_furnished, false) as is_furnished,
      coalesce(r.is_accessible::boolean, u.is_accessible, false) as is_accessible,
      coalesce(r.mls_id, u.mls_id) as mls_id,
      coalesce(r.construction_status, u.construction_status, 'NOT_STARTED') as construction_status,
      coalesce(r.listing_date::date, u.listing_date) as listing_date,
      coalesce(r.estimated_delivery_date::date, u.estimated_delivery_date) as estimated_delivery_date
    from pg_temp.import_rows r
    left join pg_temp.import_plans p on p.name = lower(r.floor_plan)
    left join app_public.lots l on l.project_id = project.id and l.deleted_at is null and lower(l.number) = lower(r.lot)
    left join app_public.units u on u.project_id = project.id and u.deleted_at is null
      and lower(u.number) = lower(r.number)
    order by r.row;
  -- PERF: as a list, units are looked up by key; a join would read all units of everybody.
  existing := array(select r.existing_id from pg_temp.import_ready r where r.existing_id is not null);
  if not coalesce(update_existing, false) then
    delete from pg_temp.import_ready r where r.existing_id is not null
      and not exists (select from pg_temp.import_errors e where e.row = r.row);
    get diagnostics result.skipped_count = row_count;
    delete from pg_temp.import_ready r where r.existing_id is not null;
  else
    delete from pg_temp.import_ready r using app_public.units u where u.id = r.existing_id and u.id = any (existing) and
      row(r.title, r.subtitle, r.description, r.floor_plan_id, r.lot_id, r.building, r.level, r.phase, r.status,
        r.price, r.hoa_fee, r.bedrooms, r.baths,
        r.half_baths, r.garage, r.sqft, r.orientation, r.view, r.address, r.model, r.is_spec, r.is_bmr, r.is_furnished,
          r.is_accessible, r.mls_id,
        r.construction_status, r.listing_date, r.estimated_delivery_date)
      is not distinct from row(u.title, u.subtitle, u.description, u.floor_plan_id, u.lot_id, u.building, u.level,
        u.phase, u.status, u.price, u.hoa_fee,
        u.bedrooms, u.baths, u.half_baths, u.garage, u.sqft, u.orientation, u.view, u.address, u.model, u.is_spec,
          u.is_bmr, u.is_furnished, u.is_accessible,
        u.mls_id, u.construction_status, u.listing_date, u.estimated_delivery_date)
      and not exists (select from pg_temp.import_errors e where e.row = r.row);
    get diagnostics result.skipped_count = row_count;
  end if;
  -- No row is locked during validation, and unchanged rows are never locked. Plans before units, because changing a
  -- plan locks these as well.
  perform from app_public.floor_plans f where f.id in (select r.floor_plan_id from pg_temp.import_ready r)
    order by f.id for share;
  existing := array(select r.existing_id from pg_temp.import_ready r where r.existing_id is not null);
  perform from app_public.units u where u.id = any (existing)
    order by u.id for no key update;
  insert into pg_temp.import_errors
    select r.row, null, 'CONFLICT', 'Somebody else changed this unit at the same time; import the row again.',
      r.number
    from pg_temp.import_ready r join app_public.units u on u.id = r.existing_id and u.id = any (existing)
    where u.version <> r.version_before or u.deleted_at is not null;

  insert into pg_temp.import_errors
    select r.row, a.name, 'BAD_USER_INPUT',
      format('%s can have at most %s decimal places.', project.currency, digits), a.amount::text
    from pg_temp.import_ready r cross join lateral (values ('price', r.price), ('hoa_fee', r.hoa_fee)) a (name, amount)
      where a.amount <> round(a.amount, digits);
  perform app_private.check_import_states('unit');
  insert into pg_temp.import_errors
    select r.row, case when r.status <> r.status_before then 'status' else 'lot' end,
      case when r.status <> r.status_before then 'INVENTORY_UNAVAILABLE' else 'CONFLICT' end,
      case when r.status <> r.status_before then 'This unit is claimed.' else 'A claimed unit stays on its lot.' end,
        null
    from pg_temp.import_ready r join app_hidden.claims c on c.unit_id = r.existing_id
      and c.unit_id = any (existing) and c.released_at is null
    where ((r.status <> r.status_before and not app_hidden.claim_is_over(c)) or r.lot_id is distinct from r.lot_before)
      and not exists (select from pg_temp.import_errors e where e.row = r.row and e.column_name in ('status', 'lot'));
  delete from pg_temp.import_ready r using pg_temp.import_errors e where e.row = r.row;
  select count(distinct e.row) into result.failed_count from pg_temp.import_errors e;
  result.errors := app_private.import_errors();

  begin
    update app_public.units u set title = r.title, subtitle = r.subtitle, description = r.description,
      floor_plan_id = r.floor_plan_id, lot_id = r.lot_id,
        building = r.building, level = r.level, phase = r.phase, status = r.status, price = r.price,
          hoa_fee = r.hoa_fee, bedrooms = r.bedrooms,
        baths = r.baths, half_baths = r.half_baths, garage = r.garage, sqft = r.sqft, orientation = r.orientation,
          view = r.view, address = r.address,
        model = r.model, is_spec = r.is_spec, is_bmr = r.is_bmr, is_furnished = r.is_furnished,
          is_accessible = r.is_accessible, mls_id = r.mls_id,
        construction_status = r.construction_status, listing_date = r.listing_date,
          estimated_delivery_date = r.estimated_delivery_date
      from pg_temp.import_ready r where u.id = r.existing_id and u.id = any (existing);
    get diagnostics result.updated_count = row_count;
    -- With all columns, so that rows need not be completed one by one. PERF: the last change numbers the events of
    -- all, once; none are numbered for a change that is rolled back. Other writers of the organization only wait for
    -- the last one.
    perform set_config('plat.numbers_at_once', case when dry_run or app_private.is_dry_run() then '' else 'on' end,
      true);
    insert into app_public.units (id, project_id, organization_id, currency, number, title, subtitle, description,
      floor_plan_id, lot_id, building, level,
        phase, status, price, hoa_fee, bedrooms, baths, half_baths, garage, sqft, orientation, view, address, model,
          is_spec, is_bmr, is_furnished,
        is_accessible, mls_id, construction_status, listing_date, estimated_delivery_date, effective_bedrooms,
          effective_baths, effective_half_baths,
        effective_garage, effective_sqft, effective_hoa_fee, effective_orientation, move_in_ready, original_list_price,
          market_since, market_before)
      select r.new_id, project.id, project.organization_id, project.currency, r.number, r.title, r.subtitle,
        r.description,
        r.floor_plan_id, r.lot_id, r.building,
        r.level, r.phase, r.status, round(r.price, digits), round(r.hoa_fee, digits), r.bedrooms, r.baths, r.half_baths,
          r.garage, r.sqft, r.orientation,
        r.view, r.address, r.model, r.is_spec, r.is_bmr, r.is_furnished, r.is_accessible, r.mls_id,
          r.construction_status,
        coalesce(r.listing_date, case when r.status = 'AVAILABLE'
          then (now() at time zone project.time_zone)::date end), r.estimated_delivery_date,
        coalesce(r.bedrooms, f.bedrooms), coalesce(r.baths, f.baths), coalesce(r.half_baths, f.half_baths),
          coalesce(r.garage, f.garage),
        coalesce(r.sqft, f.sqft), coalesce(round(r.hoa_fee, digits), f.hoa_fee), coalesce(r.orientation, f.orientation),
        r.construction_status in ('COMPLETED', 'DELIVERED'), case when r.status = 'AVAILABLE'
          then round(r.price, digits) end,
        case when r.status = 'AVAILABLE' then now() end, case when r.status = 'AVAILABLE' then interval '0' end
      from pg_temp.import_ready r left join app_public.floor_plans f on f.id = r.floor_plan_id
      where r.existing_id is null order by r.row;
    get diagnostics result.created_count = row_count;
    perform set_config('plat.numbers_at_once', '', true);
    -- PERF: with LIMIT, each row is one look-up by id, whatever the statistics of a growing table are. Otherwise, the
    -- planner chooses the wrong index of a project's units.
    result.units := array(select u.record
      from (select r.row, coalesce(r.existing_id, r.new_id) as id from pg_temp.import_ready r
        order by r.row limit 1000) r
      cross join lateral (select u as record from app_public.units u where u.id = r.id limit 1) u
      order by r.row);
    if dry_run then
      raise exception 'dry run' using errcode = 'PLATD';
    end if;
  exception when sqlstate 'PLATD' then
    null; -- undone, what would have been is in the result
  end;
  return result;
end $$;
grant execute on function app_public.import_units to plat_user, plat_anonymous;
comment on function app_public.import_units is
  E'@arg projectId Id of the project that all rows belong to.\n@arg file CSV file in UTF-8, separated by '
  'commas or semicolons, with column names in the first row. At most 50 MB and 200,000 rows.\n@arg dryRun If true, '
  'returns what would happen, and changes nothing.\n@arg updateExisting Updates existing units, matched by number; '
  'empty cells change nothing. If false, existing units stay unchanged.\n\n'
  'Imports units from CSV: applies valid rows and reports errors of the others.';
grant execute on function app_private.open_import to plat_user;
revoke execute on function app_hidden.begin_import, app_hidden.add_import_rows from plat_anonymous;
comment on domain app_public.data_upload is
  E'@scalar Upload\n@transform loadRows\n\nA CSV file: a part of a GraphQL multipart request, or a data URI such as '
  'data:text/csv;base64,…';

revoke execute on function app_hidden.plain_number from plat_user, plat_anonymous;
