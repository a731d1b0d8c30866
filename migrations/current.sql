-- Enumerations are documented by describe_enum in the files of objects, so that their texts can be edited.

create or replace function app_private.add_enum_values(name text, value_list text[]) returns void
language plpgsql volatile as $$
declare
  all_values text;
begin
  -- Values alone; the first migrations passed pairs of value and description.
  if array_ndims(value_list) = 1 then
    value_list := (select array_agg(array[v.value, ''] order by v.n)
      from unnest(value_list) with ordinality v (value, n));
  end if;
  execute format('insert into app_public.%I (value, description) select v[1], v[2] from (
      select array[$1[i][1], $1[i][2]] as v from generate_subscripts($1, 1) i) pairs', name || '_values')
    using value_list;
  execute format('select string_agg(quote_literal(value), '', '') from app_public.%I', name || '_values')
    into all_values;
  execute format('alter domain app_public.%I drop constraint if exists %I', name, name || '_value');
  execute format('alter domain app_public.%I add constraint %I check (value in (%s))', name, name || '_value',
    all_values);
end $$;

create function app_private.create_enum(name text, value_list text[]) returns void
language sql volatile as $$ select app_private.create_enum(name, '', value_list) $$;
