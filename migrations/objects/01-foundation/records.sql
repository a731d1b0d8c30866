-- What all records have in common: id or slug, version, time stamps, soft deletion, and the three statements of the
-- generated operations create, update and delete. app_private.make_record declares a table.

create policy everybody on app_hidden.record_types for select to plat_user, plat_anonymous using (true);

grant select on app_hidden.record_types to plat_user, plat_anonymous;

comment on table app_hidden.record_types is
  'The tables of app_public that hold records: how events and messages call one, and the permission that changes it.';
comment on column app_hidden.record_types.event_permission is
  'What reading the events of these records takes, where the records themselves are seen by more people.';
comment on column app_hidden.record_types.read_permissions is
  'What reading all of these records of an organization takes, all of them together; null: audit.read.';
comment on column app_hidden.record_types.event_condition is
  'Which rows have events, as a condition on their columns; all where it is null.';
comment on column app_hidden.record_types.other_party is
  'The column of a second organization that each event is written for, too.';

create function app_hidden.subject(table_name text) returns text
language sql stable as $$
  select coalesce((select replace(r.subject, '_', ' ') from app_hidden.record_types r where r.table_name = $1),
    'record')
$$;

comment on table app_private.slugs is
  E'@insertedWithRecord\n\nPresent and former slugs; a record keeps those it once had.';
create trigger _950_changes after update or delete on app_private.slugs
  for each row execute function app_private.tg__count_change();

create function app_hidden.slugify(name text) returns text
language sql stable strict as $$
  select left(btrim(regexp_replace(lower(public.unaccent(name)), '[^a-z0-9]+', '-', 'g'), '-'), 80)
$$;

create function app_private.takes_slug(table_name text, slug text) returns boolean
language sql volatile as $$
  select pg_try_advisory_xact_lock(hashtextextended('plat.slug ' || table_name || ' ' || lower(slug), 0))
$$;
comment on function app_private.takes_slug(text, text) is
  'Whether no other transaction is taking the slug, which is then this one''s to take until it ends.';

create function app_private.tg__slug() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  base text;
  candidate text;
  taken_by uuid;
begin
  if tg_op = 'UPDATE' and new.slug is not distinct from old.slug then
    return new;
  end if;
  -- Slugs are unique across organizations, so a concurrent use of the same slug is not waited for.
  if new.slug is not null then
    if not app_private.takes_slug(tg_table_name, new.slug) then
      perform app_hidden.fail('CONFLICT', 'This slug is taken; choose another.', '{"field": "slug"}');
    end if;
    insert into app_private.slugs (table_name, slug, record_id) values (tg_table_name, new.slug, new.id)
      on conflict do nothing;
    select record_id into taken_by from app_private.slugs where table_name = tg_table_name and slug = new.slug;
    if taken_by <> new.id then
      perform app_hidden.fail('CONFLICT', 'This slug is taken; choose another.', '{"field": "slug"}');
    end if;
    return new;
  end if;
  -- tg_argv[0]: the column to make a slug from.
  base := app_hidden.slugify(to_jsonb(new) ->> tg_argv[0]);
  if base is null or base = '' or not base ~ '[a-z0-9]' then
    base := app_hidden.subject(tg_table_name);
  end if;
  candidate := base;
  for attempt in 1 .. 50 loop
    begin
      if app_private.takes_slug(tg_table_name, candidate) then
        insert into app_private.slugs (table_name, slug, record_id) values (tg_table_name, candidate, new.id)
          on conflict do nothing;
        if found then
          new.slug := candidate;
          return new;
        end if;
      end if;
    exception when check_violation then
      base := app_hidden.subject(tg_table_name); -- the name itself looks like an id
    end;
    candidate := base || '-' || case when attempt < 9 then (attempt + 1)::text
      else substr(md5(random()::text), 1, 8) end;
  end loop;
  perform app_hidden.fail('CONFLICT', 'No free slug was found for this name; specify one.', '{"field": "slug"}');
end $$;

create function app_private.slug_owner(table_name text, slug text) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select s.record_id from app_private.slugs s where s.table_name = $1 and s.slug = lower($2)
$$;

grant execute on function app_private.slug_owner(text, text) to plat_user, plat_anonymous;

create function app_hidden.has_slug(table_name text) returns boolean
language sql immutable parallel safe as $$
  select table_name in ('projects', 'organizations', 'users')
$$;

create function app_hidden.record_id(table_name text, id text, field text default 'id') returns uuid
language plpgsql stable as $$
declare
  result uuid;
begin
  if id is null then
    return null;
  end if;
  if id ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then
    result := id::uuid;
  elsif not app_hidden.has_slug(table_name) then
    perform app_hidden.fail('BAD_USER_INPUT', 'Not a valid id; use the id that the API returned, a UUID.',
      jsonb_build_object('field', field));
  elsif length(id) > 100 then
    perform app_hidden.fail('BAD_USER_INPUT', 'This is neither an id nor a slug; a slug has 100 characters at most.',
      jsonb_build_object('field', field));
  else
    -- The nil UUID is no record: an unknown slug ends like an unknown id.
    result := coalesce(app_private.slug_owner(table_name, id), '00000000-0000-0000-0000-000000000000');
  end if;
  if table_name = 'organizations' then
    perform app_private.refuse_moved(result);
  end if;
  return result;
end $$;
comment on function app_hidden.record_id(text, text, text) is
  'The id behind an id or, where the table has slugs, a present or former slug. Refuses an organization that has moved '
  'to another installation.';

-- Version, time stamps, soft deletion.
create function app_private.tg__touch() returns trigger
language plpgsql volatile as $$
begin
  -- The arguments: columns that do not count.
  if (tg_nargs = 0 and new is distinct from old)
    or (tg_nargs > 0 and to_jsonb(new) - tg_argv <> to_jsonb(old) - tg_argv) then
    new.version := old.version + 1;
    new.updated_at := now();
  end if;
  return new;
end $$;

create function app_private.make_touch(relation regclass) returns void
language plpgsql volatile as $$
declare
  computed constant text := (select string_agg(format('
  old.%I := null;', a.attname), '' order by a.attnum) from pg_attribute a
    where a.attrelid = relation and a.attgenerated <> '' and not a.attisdropped);
  function_name text := 'tg__touch';
begin
  if computed is not null then
    function_name := format('tg_%s__touch', (select c.relname from pg_class c where c.oid = relation));
    execute format('create function app_private.%I() returns trigger language plpgsql volatile as %L', function_name,
      format('
begin
  -- Generated columns are not there yet.%s
  if new is distinct from old then
    new.version := old.version + 1;
    new.updated_at := now();
  end if;
  return new;
end ', computed));
  end if;
  execute format('create trigger _900_touch before update on %s for each row execute function app_private.%I()',
    relation, function_name);
end $$;
comment on function app_private.make_touch(regclass) is
  'Makes the trigger that counts the version of a changed row and says when it changed.';

create function app_private.tg__soft_delete() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  dependent record;
  amount bigint;
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  -- A transaction that adds a reference to it holds a weaker lock, which this one waits for; later ones wait for
  -- this one and then find the record deleted (make_parent_checks).
  execute format('select from %s where id = $1 for update', tg_relid::regclass) using old.id;
  -- A foreign key that restricts deletion restricts soft deletion, too; one that cascades deletes its rows as well.
  for dependent in
    select c.conrelid::regclass as relation, r.relname, a.attname, c.confdeltype,
      exists (select from pg_attribute d where d.attrelid = c.conrelid and d.attname = 'deleted_at') as is_soft
    from pg_constraint c
    join pg_class r on r.oid = c.conrelid
    join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
    where c.contype = 'f' and c.confrelid = tg_relid and c.confdeltype in ('r', 'a', 'c')
  loop
    if dependent.confdeltype = 'c' then
      if dependent.is_soft then
        execute format('update %s set deleted_at = now() where %I = $1 and deleted_at is null', dependent.relation,
          dependent.attname)
          using old.id;
      end if;
    else
      execute format('select count(*) from (select from %s where %I = $1 %s limit 1000) x', dependent.relation,
        dependent.attname,
        case when dependent.is_soft then 'and deleted_at is null' else '' end) into amount using old.id;
      if amount > 0 then
        perform app_hidden.fail('CONFLICT',
          format('This %s cannot be deleted because other records refer to it: %s %s. Move or delete them first.',
            app_hidden.subject(tg_table_name),
            amount, case when amount = 1 then app_hidden.subject(dependent.relname)
              else replace(dependent.relname, '_', ' ') end),
          jsonb_build_object('dependents', jsonb_build_object(app_hidden.camel(dependent.relname), amount)));
      end if;
    end if;
  end loop;
  execute format('update %s set deleted_at = now() where id = $1 and deleted_at is null', tg_relid::regclass)
    using old.id;
  return null;
end $$;

create function app_private.make_parent_checks() returns void
language plpgsql volatile as $$
declare
  child record;
  function_name text;
begin
  -- PERF: a sub-select for each row is a look-up by key whatever the planner thought of the first statement.
  for child in
    select r.oid::regclass as relation, r.relname,
      string_agg(format('when exists (select from new_rows n where (select p.deleted_at from %s p where p.id = n.%I) '
        'is not null) then %L', k.confrelid::regclass, a.attname, p.relname || ' ' || a.attname), E'\n      '
        order by a.attnum) as of_all,
      string_agg(format('when (select p.deleted_at from %s p where p.id = new.%I) is not null then %L',
        k.confrelid::regclass, a.attname, p.relname || ' ' || a.attname), E'\n      ' order by a.attnum) as of_one,
      string_agg(distinct format('%I', a.attname), ', ') as columns,
      string_agg(distinct format('old.%1$I is distinct from new.%1$I', a.attname), ' or ') as moved
    from pg_constraint k
    join pg_class r on r.oid = k.conrelid
    join pg_class p on p.oid = k.confrelid
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
    where k.contype = 'f' and k.confdeltype in ('r', 'a', 'c')
      -- Records that viewers create. Records of the service, such as a payment or an execution, may be added later.
      and r.relnamespace = 'app_public'::regnamespace and has_any_column_privilege('plat_user', r.oid, 'insert')
      and exists (select from pg_trigger t where t.tgrelid = k.confrelid and t.tgname = '_900_soft_delete')
    group by r.oid, r.relname
  loop
    function_name := format('tg_%s__parents', child.relname);
    execute format('create function app_private.%I() returns trigger
      language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as %L', function_name, format('
declare
  gone text;
begin
  if tg_level = ''STATEMENT'' then
    gone := case
      %s end;
  else
    gone := case
      %s end;
  end if;
  if gone is not null then
    perform app_private.refuse_gone(split_part(gone, '' '', 1), split_part(gone, '' '', 2));
  end if;
  return null;
end', child.of_all, child.of_one));
    execute format('comment on function app_private.%I() is %L', function_name,
      'Refuses a row of a record that was deleted meanwhile.');
    execute format('create trigger _970_parents after insert on %s referencing new table as new_rows
      for each statement execute function app_private.%I()', child.relation, function_name);
    execute format('create trigger _970_parents_again after update of %s on %s for each row when (%s)
      execute function app_private.%I()', child.columns, child.relation, child.moved, function_name);
  end loop;
end $$;
comment on function app_private.make_parent_checks() is
  'Makes the triggers that look, when the foreign keys have locked what they refer to, whether it has been deleted by '
  'somebody else at the same time: a deleted record keeps its row and its keys.';

create function app_private.refuse_gone(table_name text, column_name text) returns void
language plpgsql volatile as $$
begin
  -- All rows are deleted.
  if app_private.is_removing() then
    return;
  end if;
  perform app_hidden.fail('NOT_FOUND',
    format('There is no such %s.', replace(app_hidden.subject(table_name), '_', ' ')),
    jsonb_build_object('field', app_hidden.camel(column_name)));
end $$;

-- The statements behind create, update and delete. They run with the rights of the viewer: grants determine the
-- columns, policies the rows. In addition, refusals get a message with the reason.
create function app_hidden.bad_values(_type anyelement, input jsonb) returns jsonb
language plpgsql stable as $$
declare
  member record;
  checked_by record;
  row_of_one _type%type;
  is_bad boolean;
  message text;
  domain_name text;
  constraint_name text;
  result jsonb := '[]';
begin
  for member in select key, value from jsonb_each(input) loop
    begin
      message := null;
      row_of_one := jsonb_populate_record(_type, jsonb_build_object(member.key, member.value));
      -- The table's check for this column alone.
      for checked_by in
        select k.oid, pg_get_expr(k.conbin, k.conrelid) as condition from pg_constraint k
          join pg_attribute a on a.attrelid = k.conrelid and k.conkey = array[a.attnum]
          where k.conrelid = pg_typeof(_type)::text::regclass and k.contype = 'c' and a.attname = member.key
      loop
        execute format('select not (%s) from (select ($1).*) given', checked_by.condition) into is_bad using row_of_one;
        if is_bad then
          message := coalesce(obj_description(checked_by.oid, 'pg_constraint'), 'The value is not allowed here.');
          exit;
        end if;
      end loop;
    exception when data_exception or check_violation or program_limit_exceeded then
      get stacked diagnostics domain_name = pg_datatype_name, constraint_name = constraint_name;
      select obj_description(c.oid, 'pg_constraint') into message
        from pg_constraint c join pg_type t on t.oid = c.contypid
        where c.conname = constraint_name and t.typname = domain_name;
      message := coalesce(message, 'This value has the wrong format.');
    end;
    if message is not null then
      result := result || jsonb_build_object('path', app_hidden.camel(member.key), 'message', message);
    end if;
  end loop;
  return result;
end $$;
comment on function app_hidden.bad_values(anyelement, jsonb) is
  'The members of input that the type of their column, or a check of this column alone, does not take, each with the '
  'sentence for the caller.';

create function app_hidden.refuse_fields(fields jsonb) returns void
language plpgsql stable as $$
begin
  if fields <> '[]' then
    perform app_hidden.fail('BAD_USER_INPUT', fields -> 0 ->> 'message',
      jsonb_build_object('field', fields -> 0 -> 'path', 'fields', fields));
  end if;
end $$;
comment on function app_hidden.refuse_fields(jsonb) is
  'Refuses bad members of an input, all at once: each with its path and message; the first is that of the error.';

create function app_hidden.refuse_bad_value(_type anyelement, input jsonb) returns void
language sql stable as $$ select app_hidden.refuse_fields(app_hidden.bad_values(_type, input)) $$;
comment on function app_hidden.refuse_bad_value(anyelement, jsonb) is
  'Refuses an input whose members their columns do not take, with all of these members; nothing where they all do.';

create function app_hidden.value_fault(value text, type regtype) returns text
language sql stable as $$
  select case when not pg_input_is_valid(value, type::text) then
    coalesce((select obj_description(c.oid, 'pg_constraint') from pg_constraint c where c.contypid = type
      and c.conname = substring((select e.message from pg_input_error_info(value, type::text) e) from '"([^"]+)"$')),
      'This value has the wrong format.') end
$$;
comment on function app_hidden.value_fault(text, regtype) is
  'Why a type does not take a value, for the caller; null where it does.';

create function app_hidden.checked(value text, type regtype, field text, others jsonb default '[]') returns text
language plpgsql stable as $$
declare
  fault constant text := app_hidden.value_fault(value, type);
  faults jsonb := '[]';
begin
  if fault is null and others = '[]' then
    return value;
  elsif fault is not null then
    faults := jsonb_build_array(jsonb_build_object('path', field, 'message', fault));
  end if;
  perform app_hidden.refuse_fields(faults
    || coalesce((select jsonb_agg(jsonb_build_object('path', o.field, 'message', o.fault))
      from (select e ->> 'field' as field, app_hidden.value_fault(e ->> 'value', (e ->> 'type')::regtype) as fault
        from jsonb_array_elements(others) e) o where o.fault is not null), '[]'));
  return value;
end $$;
comment on function app_hidden.checked(text, regtype, text, jsonb) is
  'The value, where the type takes it; the operations of functions use it, so that a refusal names the argument, and '
  'all other bad ones among {field, value, type}.';

create function app_hidden.clean_text(value jsonb) returns jsonb
language sql immutable parallel safe as $$
  -- PERF: one expression, which PostgreSQL puts in the place of the call, as that of clean_value.
  select case when jsonb_typeof(value) = 'string'
    then coalesce(to_jsonb(nullif(btrim(value #>> '{}', E' \t\n\r'), '')), 'null') else value end
$$;
comment on function app_hidden.clean_text(jsonb) is 'A member of an input: text trimmed, empty text null.';

create function app_hidden.clean_members(value jsonb) returns jsonb
language sql immutable parallel safe as $$
  select coalesce(jsonb_object_agg(m.key, app_hidden.clean_text(m.value)), '{}') from jsonb_each(value) m
$$;

create function app_hidden.clean_value(value jsonb, is_json boolean) returns jsonb
language sql immutable parallel safe as $$
  select case when jsonb_typeof(value) = 'object' and not is_json then app_hidden.clean_members(value)
    else app_hidden.clean_text(value) end
$$;
comment on function app_hidden.clean_value(jsonb, boolean) is
  'A member of an input, or the members of an object, with text trimmed and empty text null; what a column of JSON '
  'holds is the caller''s own.';

create function app_hidden.refuse_unknown(table_name text, column_name text) returns void
language plpgsql stable as $$
begin
  perform app_hidden.fail('NOT_FOUND', format('There is no such %s.', app_hidden.subject(table_name)),
    jsonb_build_object('field', app_hidden.camel(column_name)));
end $$;

create function app_hidden.refuse(table_name text, what text) returns void
language plpgsql volatile as $$
begin
  perform app_hidden.require_viewer();
  perform app_hidden.fail('FORBIDDEN', format('You may not %s this %s.', what, app_hidden.subject(table_name)),
    jsonb_strip_nulls(jsonb_build_object('permission',
      (select r.write_permission from app_hidden.record_types r where r.table_name = $1))));
end $$;

create function app_hidden.refuse_anonymous() returns void
language plpgsql stable as $$
begin
  -- By role, not by viewer: the service and its functions write without one.
  if current_user = 'plat_anonymous' then
    perform app_hidden.require_viewer();
  end if;
end $$;
comment on function app_hidden.refuse_anonymous() is
  'Refuses a request without a token before it learns whether a record exists.';

create function app_hidden.read_whole(_type anyelement, id uuid) returns anyelement
language plpgsql stable as $$
begin
  execute format('select * from %s where id = $1', pg_typeof(_type)::text::regclass) into _type using id;
  return _type;
end $$;
comment on function app_hidden.read_whole(anyelement, uuid) is
  'The row of a table with an id, for those who read whole rows of the table.';

create function app_hidden.insert_columns(given anyelement, value_list jsonb) returns uuid
language plpgsql volatile as $$
declare
  relation constant regclass := pg_typeof(given)::text::regclass;
  column_list text;
  value_texts text;
  result uuid;
begin
  select string_agg(quote_ident(key), ', '), string_agg('($1).' || quote_ident(key), ', ') into column_list, value_texts
    from jsonb_object_keys(value_list) key;
  if column_list is null then
    execute format('insert into %s default values returning id', relation) into result;
  else
    execute format('insert into %s (%s) select %s returning id', relation, column_list, value_texts) into result
      using given;
  end if;
  return result;
end $$;
comment on function app_hidden.insert_columns(anyelement, jsonb) is
  'Inserts those columns of a row that value_list names, as the viewer; returns its id.';

create function app_hidden.create_record(_type anyelement, input jsonb) returns anyelement
language plpgsql volatile as $$
declare
  value_list jsonb;
  row_in _type%type;
  is_row boolean := false;
  missing text;
  record_id uuid;
begin
  perform app_hidden.refuse_anonymous();
  -- Null is as if omitted; nulls inside of a JSON value are the caller's own.
  select coalesce(jsonb_object_agg(key, value), '{}') into value_list
    from jsonb_each(app_hidden.clean_values(_type, input)) where value <> 'null';
  row_in := jsonb_populate_record(_type, value_list);
  is_row := true;
  record_id := app_hidden.insert_record(row_in, value_list);
  return app_hidden.read_record(_type, record_id);
exception
  when check_violation then
    perform app_hidden.refuse_bad_value(_type, value_list);
    raise;
  when data_exception or program_limit_exceeded then
    if not is_row and value_list is not null then
      perform app_hidden.refuse_bad_value(_type, value_list);
    end if;
    raise;
  when insufficient_privilege then
    perform app_hidden.refuse((select c.relname from pg_class c where c.oid = pg_typeof(_type)::text::regclass),
      'create');
  when not_null_violation then
    get stacked diagnostics missing = column_name;
    perform app_hidden.fail('BAD_USER_INPUT', format('%s is required.', app_hidden.camel(missing)),
      jsonb_build_object('field', app_hidden.camel(missing)));
end $$;
comment on function app_hidden.create_record(anyelement, jsonb) is
  'Inserts the given columns as the viewer and returns the row.';

create function app_hidden.update_record(_type anyelement, input jsonb) returns anyelement
language plpgsql volatile as $$
declare
  relation regclass := pg_typeof(_type)::text::regclass;
  table_name text := (select relname from pg_class where oid = relation);
  record_id uuid;
  expected int := (input ->> 'expected_version')::int;
  value_list jsonb;
  missing jsonb;
  column_name text;
  updated_id uuid;
  row_before _type%type;
  row_in _type%type;
begin
  perform app_hidden.refuse_anonymous();
  record_id := app_hidden.record_id(table_name, input ->> 'id');
  row_before := app_hidden.read_record(_type, record_id);
  if row_before is null then
    perform app_hidden.fail('NOT_FOUND', format('There is no such %s.', app_hidden.subject(table_name)),
      '{"field": "id"}');
  end if;
  value_list := app_hidden.clean_values(_type, input - 'id');
  -- Before any trigger makes something of the null.
  if jsonb_path_exists(value_list, '$.* ? (@ == null)') then
    select jsonb_agg(jsonb_build_object('path', app_hidden.camel(a.attname),
        'message', format('%s may not be null; omit it to keep the current value.', app_hidden.camel(a.attname)))
        order by a.attnum) into missing
      from pg_attribute a where a.attrelid = relation and a.attnotnull and value_list -> a.attname = 'null';
    if missing is not null then
      perform app_hidden.refuse_fields(missing || app_hidden.bad_values(row_before, jsonb_strip_nulls(value_list)));
    end if;
  end if;
  begin
    -- Over the present row, so that members of an address that were omitted stay as they are.
    row_in := jsonb_populate_record(row_before, value_list);
  exception when data_exception or check_violation or program_limit_exceeded then
    perform app_hidden.refuse_bad_value(row_before, value_list);
    raise;
  end;
  execute format('update %s set %s where id = $1%s returning id', relation,
    coalesce((select string_agg(format('%1$I = ($2).%1$I', key), ', ') from jsonb_object_keys(value_list) key),
      -- nothing given: a column that the viewer may update stays as it is, so that policies and the version are checked
      -- all the same
      (select format('%1$I = %1$I', a.attname) from pg_attribute a where a.attrelid = relation and a.attnum > 0
        and not a.attisdropped
        and has_column_privilege(relation, a.attnum, 'update') and has_column_privilege(relation, a.attnum, 'select')
        order by a.attnum limit 1),
      'id = id'),
    case when expected is not null then ' and version = $3' else '' end)
    into updated_id using record_id, row_in, expected;
  if updated_id is null then
    row_before := app_hidden.read_record(_type, record_id);
    if expected <> (to_jsonb(row_before) ->> 'version')::int then
      perform app_hidden.fail('VERSION_MISMATCH',
        'Somebody else has changed this record since you read it; read it again and repeat your change.',
        jsonb_build_object('currentVersion', (to_jsonb(row_before) ->> 'version')::int));
    end if;
    perform app_hidden.refuse(table_name, 'change');
  end if;
  return app_hidden.read_record(_type, record_id);
exception
  when check_violation then
    perform app_hidden.refuse_bad_value(row_before, value_list);
    raise;
  when insufficient_privilege then
    perform app_hidden.refuse(table_name, 'change');
  when not_null_violation then
    get stacked diagnostics column_name = column_name;
    perform app_hidden.fail('BAD_USER_INPUT', format('%s may not be null.', app_hidden.camel(column_name)),
      jsonb_build_object('field', app_hidden.camel(column_name)));
end $$;
comment on function app_hidden.update_record(anyelement, jsonb) is
  'Updates the given columns of the row input.id as the viewer and returns the row; input.expected_version guards '
  'against lost updates.';

create function app_hidden.delete_record(_type anyelement, id text) returns anyelement
language plpgsql volatile as $$
declare
  relation regclass := pg_typeof(_type)::text::regclass;
  table_name text := (select relname from pg_class where oid = relation);
  record_id uuid;
  still_there boolean;
  row_before _type%type;
begin
  perform app_hidden.refuse_anonymous();
  record_id := app_hidden.record_id(table_name, id);
  row_before := app_hidden.read_record(_type, record_id);
  if row_before is null then
    perform app_hidden.fail('NOT_FOUND', format('There is no such %s.', app_hidden.subject(table_name)),
      '{"field": "id"}');
  end if;
  execute format('delete from %s where id = $1', relation) using record_id;
  execute format('select exists (select from %s where id = $1)', relation) into still_there using record_id;
  if still_there then
    perform app_hidden.refuse(table_name, 'delete');
  end if;
  return row_before;
exception when insufficient_privilege then
  perform app_hidden.refuse(table_name, 'delete');
end $$;
comment on function app_hidden.delete_record(anyelement, text) is
  'Deletes the row as the viewer and returns it as it was.';

create function app_hidden.seen_nodes(ids uuid[]) returns table(id uuid, table_name text)
language plpgsql stable as $$
declare
  of_table record;
begin
  for of_table in
    select n.table_name as name, array_agg(n.id) as ids from app_hidden.node_tables(ids) n group by n.table_name
  loop
    -- As the viewer.
    return query execute format('select r.id, %1$L from app_public.%1$I r where r.id = any ($1)', of_table.name)
      using of_table.ids;
  end loop;
end $$;
comment on function app_hidden.seen_nodes(uuid[]) is
  'Of which tables the records with these ids are, of those that the viewer sees.';

-- The checks of create, update and delete are generated for each table, so that their statements are planned once per
-- connection and do not read the catalog.
create function app_private.make_record_functions() returns void
language plpgsql volatile as $$
declare
  -- Columns that viewers insert; the service inserts the others with insert_columns.
  of_table record;
begin
  for of_table in
    select c.oid::regclass as relation, c.relname,
      app_hidden.masked_columns(c.oid) <> '{}' as is_masked,
      (select array_agg(a.attname order by a.attname) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0
        and not a.attisdropped) as column_names,
      coalesce((select 'c.key in (' || string_agg(quote_literal(a.attname), ', ' order by a.attname) || ')'
        from pg_attribute a
        where a.attrelid = c.oid and not a.attisdropped and a.atttypid = 'jsonb'::regtype), 'false') as is_json,
      i.column_names as inserted, i.column_list, i.value_list,
      (select string_agg(format('
  if result ->> %1$L is not null then
    result := jsonb_set(result, array[%1$L], to_jsonb(app_hidden.record_id(%2$L, result ->> %1$L, %3$L)));
    if not exists (select from %4$s r where r.%5$I = (result ->> %1$L)::uuid) then
      perform app_hidden.refuse_unknown(%2$L, %1$L);
    end if;
  end if;', f.attname, f.relname, app_hidden.camel(f.attname), f.referenced, f.key), '' order by length(f.attname),
          f.attname, f.relname)
        from (
          select distinct a.attname, r.relname, r.oid::regclass as referenced, t.attname as key
          from pg_constraint k
          join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
          join pg_class r on r.oid = k.confrelid
          join pg_attribute t on t.attrelid = k.confrelid and t.attnum = k.confkey[1]
          where k.conrelid = c.oid and k.contype = 'f'
        ) f) as resolved
    from pg_class c
    left join lateral (
      select array_agg(a.attname order by a.attname) as column_names,
        string_agg(quote_ident(a.attname), ', ' order by a.attnum) as column_list,
        string_agg(case when d.adbin is null then format('given.%I', a.attname)
          else format('coalesce(given.%I, %s)', a.attname, pg_get_expr(d.adbin, d.adrelid)) end, ', '
          order by a.attnum) as value_list
      from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity = ''
        and has_column_privilege('plat_user', c.oid, a.attnum, 'insert')
    ) i on true
    where c.relkind in ('r', 'p') and not c.relispartition and (c.oid = 'app_private.contact_messages'::regclass
      or c.relnamespace = 'app_public'::regnamespace and (has_any_column_privilege('plat_user', c.oid, 'insert, update')
        or has_table_privilege('plat_user', c.oid, 'delete')
        or exists (select from app_hidden.record_types r where r.table_name = c.relname)))
    order by c.oid::regclass::text
  loop
    execute format('create or replace function app_hidden.clean_values(_type %s, input jsonb) returns jsonb
      language plpgsql stable as %L', of_table.relation, format('
declare
  result jsonb := (select coalesce(jsonb_object_agg(c.key, app_hidden.clean_value(c.value, %s)), ''{}'')
    from jsonb_each(input) c where c.key = any (%L));
begin%s
  return result;
end ', of_table.is_json, of_table.column_names, of_table.resolved));
    execute format('create or replace function app_hidden.read_record(_type %1$s, id uuid) returns %1$s
      language plpgsql stable as %2$L', of_table.relation, case when of_table.is_masked then format('
begin
  -- The roles of the API read the view that masks.
  if has_table_privilege(%1$L, ''select'') then
    return app_hidden.read_whole(_type, id);
  end if;
  select * into _type from app_hidden.%2$I r where r.id = read_record.id;
  return _type;
end ', of_table.relation, 'masked_' || of_table.relname) else format('
begin
  select * into _type from %1$s r where r.id = read_record.id;
  return _type;
end ', of_table.relation) end);
    execute format('create or replace function app_hidden.insert_record(given %s, value_list jsonb) returns uuid
      language plpgsql volatile as %L', of_table.relation, case when of_table.inserted is null then '
begin
  return app_hidden.insert_columns(given, value_list);
end ' else format('
declare
  result uuid;
begin
  if value_list - %L::text[] <> ''{}'' then
    return app_hidden.insert_columns(given, value_list);
  end if;
  insert into %s (%s)
    values (%s)
    returning id into result;
  return result;
end ', of_table.inserted, of_table.relation, of_table.column_list, of_table.value_list) end);
  end loop;
  execute format('create or replace function app_hidden.node_tables(ids uuid[]) returns table(id uuid, table_name text)
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp as %L', format('
begin
  return query %s;
end ', (select string_agg(format('select r.id, %L from %s r where r.id = any (ids)', c.relname, c.oid::regclass),
      ' union all ' order by c.relname)
    from pg_class c join pg_index i on i.indrelid = c.oid and i.indisprimary
    join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0] and a.attname = 'id'
      and a.atttypid = 'uuid'::regtype
    where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'app_public'::regnamespace
      and has_any_column_privilege('plat_user', c.oid, 'select'))));
  comment on function app_hidden.node_tables(uuid[]) is
    E'@withoutViewer It gives the name of a table; seen_nodes gives it to those who see the record.\n\nOf which tables '
    'the records with these ids are, whoever may see them.';
end $$;
comment on function app_private.make_record_functions() is
  'Makes node_tables, and for each table that viewers write: clean_values, the members of an input that are columns, '
  'text trimmed, empty text null, ids and slugs resolved to records that the viewer sees; read_record, the row with an '
  'id as far as the viewer reads it; and insert_record, which inserts the given columns of a row.';

create function app_private.make_record(table_name text, subject text, write_permission text default null,
  slug_from text default null, event_permission text default null, event_condition text default null,
  other_party name default null)
returns void
language plpgsql volatile as $$
declare
  relation regclass := format('app_public.%I', table_name)::regclass;
begin
  insert into app_hidden.record_types (table_name, subject, write_permission, event_permission, event_condition,
    other_party)
    values (table_name, subject, write_permission, event_permission, event_condition, other_party);
  if slug_from is not null then
    execute format('create trigger _100_slug before insert or update on %s for each row execute function '
      'app_private.tg__slug(%L)', relation, slug_from);
  end if;
  perform app_private.make_touch(relation);
  if exists (select from pg_attribute where attrelid = relation and attname = 'deleted_at') then
    execute format('create trigger _900_soft_delete before delete on %s for each row execute function '
      'app_private.tg__soft_delete()', relation);
  end if;
  perform app_private.make_event_history(table_name);
end $$;
comment on function app_private.make_record is
  'Makes a table of app_public a record: version, time stamps, soft deletion, slug and events. event_permission: what '
  'reading its events takes, where that is more than seeing the record; event_condition: which rows webhooks learn of; '
  'other_party: the column of another organization that gets the events, too.';

comment on function app_private.slug_owner(text,text) is
  E'@withoutViewer Slugs are public: URLs contain them. Whether the viewer sees the record is asked with its id.\n\n'
  'The record behind a present or former slug.';

revoke execute on function app_hidden.slugify from plat_user, plat_anonymous;

create function app_private.declare_tenants(relation regclass default null) returns void
language plpgsql volatile as $$
declare
  one regclass;
begin
  for one in
    select c.oid from pg_class c join pg_attribute a on a.attrelid = c.oid
    where (relation is null or c.oid = relation) and c.relkind = 'r' and a.attname = 'organization_id'
      and not a.attisdropped and a.attoptions is null
      and c.relnamespace in ('app_public'::regnamespace, 'app_private'::regnamespace, 'app_partitions'::regnamespace)
    order by c.oid::regclass::text
  loop
    execute format('alter table %s alter column organization_id set (n_distinct = 30)', one);
  end loop;
end $$;
comment on function app_private.declare_tenants(regclass) is
  'Has the planner expect thirty organizations in each table that has their column, or in one table. A plan serves '
  'every organization, whatever its share of the rows. If the planner expected fewer, it would read the rows of all '
  'organizations in order to count the few of one; if it expected many, it would sort all rows of one for each page.';
