-- All data of an organization as one archive: a file of JSON lines for each kind of record, and the files. It is an
-- export like others: written in the background, with the requester's rights, and the same access to its URL. New
-- tables are included automatically: by their column organization_id, or by the key of their parent.

create function app_private.exported_tables(organization_id uuid)
returns table (name text, relation text, source text, condition text, cells text)
language sql stable as $$
  select app_hidden.camel(c.relname), c.oid::regclass::text, s.source, w.condition, (
      select app_private.column_json(c.oid, 't', array_agg(a.attname order by a.attnum)) from pg_attribute a
      where a.attrelid = s.source::regclass and a.attnum > 0 and not a.attisdropped
        and has_column_privilege('plat_user', a.attrelid, a.attnum, 'select')
        -- Only data that the API serves: no write-only, derived or hidden columns, except for keys.
        and not exists (select from pg_attribute b
          cross join lateral (select coalesce(col_description(c.oid, b.attnum), '') as said) d
          where b.attrelid = c.oid and b.attname = a.attname and (b.attgenerated <> ''
            or d.said ~ '(^|\n)@(secret|writeOnly)'
            or (d.said ~ '(^|\n)@behavior -[*]' and a.attname !~ '_id$'))))
  from pg_class c
  cross join lateral (select app_hidden.source_of(c.oid::regclass) as source) s
  cross join lateral (select quote_literal(organization_id) || '::uuid' as id) o
  left join lateral (
    select format('t.%I in (select p.id from %s p where p.organization_id = %s)', f.attname,
        app_hidden.source_of(k.confrelid::regclass), o.id) as condition
      from pg_constraint k
      join pg_attribute f on f.attrelid = c.oid and f.attnum = k.conkey[1]
      join pg_attribute p on p.attrelid = k.confrelid and p.attname = 'organization_id' and not p.attisdropped
      join pg_class r on r.oid = k.confrelid and r.relnamespace = 'app_public'::regnamespace
      where k.conrelid = c.oid and k.contype = 'f' and k.confdeltype = 'c' order by k.conname limit 1) parent on true
  cross join lateral (select case
    when c.relname = 'organizations' then format('t.id = %s', o.id)
    when c.relname = 'users' then format('t.id in (select m.user_id from app_public.organization_user_connections m '
      'where m.organization_id = %s)', o.id)
    when exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id'
      and not a.attisdropped) then format('t.organization_id = %s', o.id) || case when exists (
        select from pg_attribute a where a.attrelid = c.oid and a.attname = 'owner_id' and not a.attisdropped)
        -- Records shared with other organizations.
        then format(' or t.owner_id = %s', o.id) else '' end
    else parent.condition end as condition) w
  where c.relkind in ('r', 'p') and not c.relispartition
    and c.relnamespace = 'app_public'::regnamespace and w.condition is not null
    and has_any_column_privilege('plat_user', s.source::regclass, 'select')
$$;
comment on function app_private.exported_tables(uuid) is
  'The tables of an archive of an organization: where the rows are read from, which they are, and each as JSON.';

create function app_private.organization_export_plan(organization_id uuid)
returns table (name text, source text, condition text, cells text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select e.name, e.source, e.condition, e.cells from app_private.exported_tables(organization_id) e order by e.name
$$;
comment on function app_private.organization_export_plan(uuid) is
  E'@withoutViewer It returns statements, not data; they run with the rights of the viewer.\n\n'
  'The statements that an archive of an organization is read by.';
grant execute on function app_private.organization_export_plan to plat_user;

create function app_private.organization_file_plan(organization_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select string_agg(format('select %L as record, t.id, t.checksum::text as checksum, t.filename::text as filename from '
      '%s t where (%s) and t.checksum is not null', e.name, e.source, e.condition), ' union all ' order by e.name)
  from app_private.exported_tables(organization_id) e
  join app_private.file_tables f on format('app_public.%I', f.table_name)::regclass::text = e.relation
  where (select count(*) from pg_attribute a where a.attrelid = e.source::regclass
    and a.attname in ('checksum', 'filename') and has_column_privilege('plat_user', a.attrelid, a.attnum, 'select')) = 2
$$;
comment on function app_private.organization_file_plan(uuid) is
  E'@withoutViewer It returns a statement, not data; it runs with the rights of the viewer.\n\n'
  'The statement that the files of an organization are found by.';
grant execute on function app_private.organization_file_plan to plat_user;

create function app_hidden.open_organization_archive(organization_id uuid, files boolean) returns jsonb
language plpgsql stable as $$
declare
  one record;
  amount int;
  total int := 0;
  tables jsonb := '[]';
begin
  -- Null if the viewer can no longer see the export.
  if app_hidden.organization_can(organization_id, 'org.owner') is not true then
    perform app_hidden.fail('FORBIDDEN', 'The user who requested the archive may no longer export the organization.',
      '{"permission": "org.owner"}');
  end if;
  for one in select p.* from app_private.organization_export_plan(open_organization_archive.organization_id) p loop
    execute format('select count(*) from %s t where %s', one.source, one.condition) into amount;
    total := total + amount;
    if amount > 0 then
      tables := tables || jsonb_build_object('name', one.name, 'count', amount, 'statement',
        format('select %s::text as line from %s t where %s', one.cells, one.source, one.condition));
    end if;
  end loop;
  return jsonb_build_object('columns', '[]'::jsonb, 'header', '', 'total', total, 'timeZone', 'UTC',
    'permissions', array['org.owner'], 'tables', tables, 'rights', app_hidden.report_rights(organization_id,
      null, array['org.owner', 'report.run']),
    'files', case when files then app_private.organization_file_plan(organization_id) end);
end $$;
revoke execute on function app_hidden.open_organization_archive from plat_anonymous;
comment on function app_hidden.open_organization_archive(uuid, boolean) is
  'Content of an organization''s archive, as the viewer sees it: per record type the number of records and the '
  'statement that returns them as JSON; and the statement for its files, null if they are excluded.';

create function app_hidden.open_organization_export(id uuid) returns jsonb
language sql stable as $$
  select app_hidden.open_organization_archive(e.organization_id, coalesce(e.filter ->> 'files' = 'true', false))
  from (values (open_organization_export.id)) given (id) left join app_public.exports e on e.id = given.id
$$;
comment on function app_hidden.open_organization_export(uuid) is
  'What the archive is made of that an export is for; see open_organization_archive.';
revoke execute on function app_hidden.open_organization_export from plat_anonymous;

create function app_public.export_organization(organization_id uuid, files boolean default true)
returns app_public.exports
language plpgsql volatile as $$
begin
  perform app_hidden.require_viewer();
  perform app_hidden.require_organization(organization_id, 'org.owner');
  return app_private.request_export(organization_id, null, 'ORGANIZATION', 'ZIP', null,
    jsonb_build_object('files', coalesce(files, true)), null, null,
    (select o.slug::text from app_public.organizations o where o.id = export_organization.organization_id));
end $$;
grant execute on function app_public.export_organization to plat_user, plat_anonymous;
comment on function app_public.export_organization is $$
@arg organization_id Id of the organization; the viewer must be an owner.
@arg files Whether the archive includes the contents of files. Default: true.

Exports all data of an organization to one archive (ZIP): a JSON Lines file per record type, as the viewer may see
it, the files, and a manifest with counts. `url` of the export is set once it is COMPLETED. An archive is at most 2
GB; for more, export without files, or have the operator run `npm run organizations -- export SLUG --to FILE`.
Requires the permissions org.owner and report.run.$$;
