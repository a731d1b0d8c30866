-- The subjects of reports and exports, and their columns. Both are data: a report names columns, and unknown names are
-- refused. The expressions are only defined here; input of clients only becomes part of a statement as a quoted value.

create policy everybody on app_hidden.report_subjects for select to plat_user, plat_anonymous using (true);

grant select on app_hidden.report_subjects to plat_user, plat_anonymous;

comment on table app_hidden.report_subjects is
  'What reports and exports can be about: the table, the permissions that decide which of its rows somebody sees '
  '(without the first there is nothing to see), and the column, never null, by which the latest row comes first.';

create policy everybody on app_hidden.report_columns for select to plat_user, plat_anonymous using (true);

grant select on app_hidden.report_columns to plat_user, plat_anonymous;

comment on table app_hidden.report_columns is
  'The columns of each subject by their names in the API. The expression refers to the row t; permission is '
  'required in addition to that of the subject. Groupable ones can be grouped by, aggregatable ones summed.';

-- Most columns are those of the table: their types and words are known, and a masked one is read through its function.
create function app_private.report_type(type oid) returns text
language sql stable as $$
  select case
    when coalesce(obj_description(t.oid, 'pg_type'), '') ~ '^@enum ' then 'ENUM'
    when t.oid = 'app_public.money'::regtype then 'MONEY'
    else case b.typname when 'uuid' then 'ID' when 'numeric' then 'DECIMAL' when 'int4' then 'INTEGER' when 'int8'
      then 'INTEGER' when 'bool' then 'BOOLEAN'
      when 'date' then 'DATE' when 'timestamptz' then 'DATETIME' when 'jsonb' then 'JSON' else case
        when b.typcategory = 'A' then 'LIST' else 'TEXT' end end end
  from pg_type t join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid) where t.oid = report_type.type
$$;

create function app_private.add_report_column(
  subject text, name text, expression text, sql_type text, description text, permission text default null,
    is_default boolean default false)
returns void
language sql volatile as $$
  insert into app_hidden.report_columns (subject, position, name, expression, type, sql_type, permission, is_default,
    description)
    values (subject, coalesce((select max(c.position) + 1 from app_hidden.report_columns c
      where c.subject = add_report_column.subject), 1), name, expression,
      app_private.report_type(sql_type::regtype), sql_type, permission, is_default, description)
$$;
comment on function app_private.add_report_column(text, text, text, text, text, text, boolean) is
  'Adds a column to a subject: an expression over the row t of its table, under a name of the API.';

create function app_private.add_report_columns(subject text, columns text[], defaults text[] default '{}',
  permissions jsonb default '{}') returns void
language plpgsql volatile as $$
declare
  relation regclass := (select format('app_public.%I', s.table_name) from app_hidden.report_subjects s
    where s.subject = add_report_columns.subject);
  table_name text := (select c.relname from pg_class c where c.oid = relation);
  name text;
  attribute pg_attribute;
  computed pg_proc;
  said text;
begin
  foreach name in array columns loop
    select a.* into attribute from pg_attribute a where a.attrelid = relation and a.attname = name
      and not a.attisdropped;
    select p.* into computed from pg_proc p
      where p.pronamespace = 'app_public'::regnamespace and p.proname = table_name || '_' || name and p.pronargs = 1
        and (attribute.attnum is null
          or coalesce(col_description(relation, attribute.attnum), '') ~ '@(masked|writeOnly)');
    said := coalesce(obj_description(computed.oid, 'pg_proc'), col_description(relation, attribute.attnum), case name
      when 'id' then 'The id; sorts by time of creation.' when 'inserted_at' then 'When it was created.'
        when 'updated_at' then 'When it was last changed.'
      when 'project_id' then 'The id of the project.' end);
    if said is null then
      raise exception 'there is no column or function % of %, or it has no comment', name, relation;
    end if;
    perform app_private.add_report_column(subject, app_hidden.camel(coalesce(substring(said from '@name (\w+)'), name)),
      case when computed.oid is not null then format('app_public.%I(t)', computed.proname)
        else format('t.%I', name) end,
      coalesce(computed.prorettype, attribute.atttypid)::regtype::text,
        regexp_replace(btrim(said, E' \n'), '^(@[^\n]*\n)*\n*', ''),
      permissions ->> name, name = any (defaults));
  end loop;
end $$;
comment on function app_private.add_report_columns(text, text[], text[], jsonb) is
  'Adds columns of its table to a subject, masked and computed ones through their functions; their comments are '
  'the descriptions.';

create function app_private.add_report_subject(subject text, table_name text, permissions text[], filename text,
  latest text default 'id') returns void
language sql volatile as $$
  insert into app_hidden.report_subjects (subject, table_name, permissions, filename, latest)
    values (subject, table_name, permissions, filename, latest)
$$;
comment on function app_private.add_report_subject(text, text, text[], text, text) is
  'Lets reports and exports be about the rows of a table of app_public.';

create function app_private.add_report_people(subject text, columns text[], defaults text[] default '{}') returns void
language plpgsql volatile as $$
declare
  name text;
begin
  foreach name in array columns loop
    perform app_private.add_report_column(subject, app_hidden.camel(name),
      format('(select coalesce(nullif(concat_ws('' '', x.first_name, x.last_name), ''''), x.slug) from '
        'app_public.users x where x.id = t.%I)', name || '_id'), 'text',
      format('Name of the %s.', case name when 'created_by' then 'person who created it' when 'completed_by'
        then 'person who did it'
        when 'approved_by' then 'person who approved it' when 'user' then 'member' when 'actor'
          then 'person who caused it' else replace(name, '_', ' ') end),
      null, name = any (defaults));
  end loop;
end $$;
comment on function app_private.add_report_people(text, text[], text[]) is
  'Adds columns with the names of people to a subject, by ids in its table.';

create function app_private.add_report_links(subject text, links text[], defaults text[] default '{}') returns void
language plpgsql volatile as $$
begin
  perform app_private.add_report_column(subject, l.name, format('(select %s from %s x where x.id = t.%I)',
    app_hidden.of_masked(l.relation, l.expression, 'x'), app_hidden.source_of(l.relation), l.key), l.type,
      l.description, l.permission, l.name = any (defaults))
    from (select links[i][1] as name, links[i][2] as key, format('app_public.%I', links[i][3])::regclass as relation,
      links[i][4] as expression,
      links[i][5] as type, links[i][6] as description,
        nullif(links[i][7], '') as permission from generate_subscripts(links, 1) i order by i) l;
end $$;
comment on function app_private.add_report_links(text, text[], text[]) is
  'Adds columns of other records to a subject: {name, column with its id, table, expression over x, type, '
  'description, permission}. Null for viewers who may not see the other record.';
