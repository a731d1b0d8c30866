-- Masked columns. The roles of the API may not read them: if a table has masked columns, the roles are granted the
-- others, and the view app_hidden.masked_<table>. It has all columns of the table; the value of a masked one is what
-- its function `<table>_<column>` returns for the viewer. The view belongs to plat_masker, who may read whole rows and
-- is subject to the policies of plat_user, so that it has the rows that the viewer sees.

create function app_hidden.masked_columns(relation regclass) returns name[]
language sql stable as $$
  -- PERF: all comments of the table at once; a look-up for each column takes four times as long.
  select array(select a.attname from pg_description d
    join pg_attribute a on a.attrelid = d.objoid and a.attnum = d.objsubid
    where d.objoid = relation and d.classoid = 'pg_class'::regclass and d.objsubid > 0 and not a.attisdropped
    and d.description ~ '(^|\n)@masked\y' order by a.attnum)
$$;
comment on function app_hidden.masked_columns(regclass) is 'The columns of a table whose comment says @masked.';

create function app_hidden.row_columns(relation regclass, alias text, reads text[] default '{}') returns text
language sql stable as $$
  select string_agg(case when col_description(relation, a.attnum) ~ '(^|\n)@masked\y'
      and a.attname <> all (coalesce(reads, '{}'))
      then format('null::%s', format_type(a.atttypid, a.atttypmod)) else format('%s.%I', alias, a.attname) end,
    ', ' order by a.attnum)
  from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
$$;
comment on function app_hidden.row_columns(regclass, text, text[]) is
  'The columns of a table as SQL makes a row of it without reading what is masked, but for `reads`.';

create function app_hidden.source_of(relation regclass) returns text
language sql stable as $$
  select case when app_hidden.masked_columns(relation) = '{}' then format('%I.%I', n.nspname, c.relname)
    else format('app_hidden.%I', 'masked_' || c.relname) end
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = relation
$$;
comment on function app_hidden.source_of(regclass) is
  'Where the roles of the API read the rows of a table from: the table, or the view that masks.';

create function app_hidden.readable_source(relation regclass) returns text
language sql stable as $$
  select case when has_table_privilege(relation, 'select') then relation::text
    else coalesce(to_regclass(format('app_hidden.%I', 'masked_' || c.relname)), relation)::text end
  from pg_class c where c.oid = relation
$$;
comment on function app_hidden.readable_source(regclass) is
  'Relation from which the caller reads whole rows of a table: the table for the service, the masked view for the '
  'roles of the API, if there is one.';

create function app_hidden.of_masked(relation regclass, expression text, alias text default 't') returns text
language plpgsql stable as $$
declare
  prefix constant text := (select c.relname || '_' from pg_class c where c.oid = relation);
  masked constant name[] := app_hidden.masked_columns(relation);
  name text;
  reads text[];
begin
  if masked = '{}' then
    return expression;
  end if;
  for name in select distinct m[1] from regexp_matches(expression, 'app_public\.(\w+)\(' || alias || '\)', 'g') m loop
    reads := (select string_to_array(substring(obj_description(p.oid) from '(?:^|\n)@reads ([^\n]*)'), ' ')
      from pg_proc p where p.pronamespace = 'app_public'::regnamespace and p.proname = name);
    expression := replace(expression, format('app_public.%s(%s)', name, alias),
      case when name = any (select prefix || m from unnest(masked) m)
        then format('%s.%s', alias, substr(name, length(prefix) + 1))
        else format('app_public.%s(row(%s)::%s)', name, app_hidden.row_columns(relation, alias, reads), relation) end);
  end loop;
  return expression;
end $$;
comment on function app_hidden.of_masked(regclass, text, text) is
  'An expression over a row of a table, as it is asked of a row of the view that masks: columns in place of the '
  'functions that mask, and for other functions a row without what is masked.';

create function app_private.mask_of_view(mask regprocedure) returns text
language sql stable as $$
  -- Functions are only called for values that depend on more than the row.
  select case when l.lanname = 'sql' and not p.prosecdef and b.expression !~* '\y(from|select)\y'
      then format('(%s)::%s', app_private.asked_once(b.expression), format_type(p.prorettype, null))
    else format('%s(r)', p.oid::regproc) end
  from pg_proc p join pg_language l on l.oid = p.prolang
  cross join lateral (select regexp_replace(regexp_replace(regexp_replace(p.prosrc, '\s+', ' ', 'g'), '^ ?select ', ''),
    '\y' || p.proargnames[1] || '\.', 'r.', 'g') as expression) b
  where p.oid = mask
$$;
comment on function app_private.mask_of_view(regprocedure) is
  'What a function that masks gives of the row r, for a view. PERF: its expression stands there itself, with '
  'conditions that are asked once.';

create function app_private.make_masked_view(table_name text) returns void
language plpgsql volatile as $$
declare
  relation constant regclass := format('app_public.%I', table_name)::regclass;
  view_name constant text := format('app_hidden.%I', 'masked_' || table_name);
  masked constant name[] := app_hidden.masked_columns(relation);
  role text;
  of_row text;
  granted text;
  shown text;
begin
  select string_agg(case when a.attname <> all (masked) then format('r.%I', a.attname)
      when p.oid is not null then format('%s(r)', p.oid::regproc)
      else format('null::%s', format_type(a.atttypid, a.atttypmod)) end, ', ' order by a.attnum),
    string_agg(case when not has_column_privilege('plat_user', relation, a.attnum, 'select')
        then format('null::%s as %I', format_type(a.atttypid, a.atttypmod), a.attname)
      when a.attname <> all (masked) then format('r.%I', a.attname)
      when p.oid is not null then format('%s as %I', app_private.mask_of_view(p.oid), a.attname)
      else format('null::%s as %I', format_type(a.atttypid, a.atttypmod), a.attname) end, ', ' order by a.attnum)
    into of_row, shown
    from pg_attribute a
    left join pg_proc p on p.pronamespace = 'app_public'::regnamespace and p.proname = table_name || '_' || a.attname
      and p.pronargs = 1 and p.proargtypes[0] = (select reltype from pg_class where oid = relation)
      and a.attname = any (masked)
    where a.attrelid = relation and a.attnum > 0 and not a.attisdropped;
  -- Visitors see the rows of policies for visitors only; without one, they see none.
  execute format('create view %s as select %s from %s r%s', view_name, shown, relation,
    case when not exists (select from pg_policy p where p.polrelid = relation and p.polcmd in ('r', '*')
      and p.polroles && array[0::oid, 'plat_anonymous'::regrole]) then ' where current_user <> ''plat_anonymous'''
    else '' end);
  execute format('alter view %s owner to plat_masker', view_name);
  execute format('comment on view %s is %L', view_name,
    format('The rows of app_public.%s that the viewer sees, with what they may know of the masked columns.',
      table_name));
  execute format('create function app_hidden.masked(r %1$s) returns %1$s language sql stable as %2$L', relation,
    format(E'\n  select row(%s)::%s\n', of_row, relation));
  -- For functions that run as their owner; viewers read the view.
  execute format('revoke execute on function app_hidden.masked(%s) from plat_user, plat_anonymous', relation);
  execute format('comment on function app_hidden.masked(%s) is %L', relation,
    'The row with what the viewer may know of its masked columns: what a function that runs as its owner returns.');
  foreach role in array array['plat_user', 'plat_anonymous'] loop
    continue when not has_any_column_privilege(role, relation, 'select');
    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) into granted from pg_attribute a
      where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attname <> all (masked)
      and has_column_privilege(role, relation, a.attnum, 'select');
    execute format('revoke select on %s from %I', relation, role);
    execute format('grant select (%s) on %s to %I', granted, relation, role);
    execute format('grant select on %s to %I', view_name, role);
  end loop;
  execute format('grant select on %s to plat_masker', relation);
end $$;
comment on function app_private.make_masked_view(text) is
  'Takes the masked columns of a table from the roles of the API and gives them the view that masks instead.';

create function app_private.make_masked_views() returns void
language sql volatile as $$
  select app_private.make_masked_view(c.relname) from pg_class c
  where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p')
    and app_hidden.masked_columns(c.oid) <> '{}'
    and to_regclass(format('app_hidden.%I', 'masked_' || c.relname)) is null
  order by c.relname
$$;
comment on function app_private.make_masked_views() is
  'make_masked_view for each table that has masked columns and no such view.';
