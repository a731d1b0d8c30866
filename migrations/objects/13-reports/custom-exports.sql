-- Exports that an organization defines once and runs repeatedly.

create policy readers on app_public.custom_exports for select to plat_user
  using (deleted_at is null
    and organization_id = any ((select app_hidden.viewer_organizations('report.read'))::uuid[]));
create policy managers_insert on app_public.custom_exports for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('report.manage'))::uuid[]));
create policy managers_update on app_public.custom_exports for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('report.manage'))::uuid[]));
create policy managers_delete on app_public.custom_exports for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('report.manage'))::uuid[]));

select app_private.make_record('custom_exports', 'custom_export', 'report.manage');

grant select on app_public.custom_exports to plat_user, plat_anonymous;
grant insert (organization_id, project_id, name, description, subject, format, columns, filter, sort),
  update (name, description, format, columns, filter, sort), delete on app_public.custom_exports to plat_user;

comment on table app_public.custom_exports is
  'A saved definition of an export; `runCustomExport` writes a file from it.';
comment on column app_public.custom_exports.organization_id is
  'Id of the organization that owns the definition and the exported records.';
comment on column app_public.custom_exports.project_id is 'Id of the only project to include; null for all projects.';
comment on column app_public.custom_exports.name is 'Display title; the exported files are named after it.';
comment on column app_public.custom_exports.description is 'Free-text description.';
comment on column app_public.custom_exports.subject is 'Record type of the rows.';
comment on column app_public.custom_exports.format is 'File format.';
comment on column app_public.custom_exports.columns is
  E'@insertOptional\n\nA list of column names, or of {column, as}. Default: the columns of the subject.';
comment on column app_public.custom_exports.filter is
  'Conditions on rows, all of which must be met: {column: value, list of values, {min, max}, {from, to}, '
  '{contains} or {empty}}.';
comment on column app_public.custom_exports.sort is
  'Sort order: a list of column names, or of {column, direction}. Default: latest first.';
comment on column app_public.custom_exports.created_by_id is
  E'@inert It is run by somebody, as they see the records.\n@behavior -*\n\nUser who created it.';
comment on constraint custom_exports_organization_id_fkey on app_public.custom_exports is
  E'@parent\n@fieldName organization\n@foreignFieldName customExports\n@backwardPermission '
  'org.member\n@backwardDescription Saved definitions of exports; null for non-members.\n\n'
  'The organization.';
comment on constraint custom_exports_project_id_fkey on app_public.custom_exports is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint custom_exports_created_by_id_fkey on app_public.custom_exports is
  E'@fieldName createdBy\n@backwardBehavior -*\n\nUser who created it.';

-- The only check of the number of columns that a page has space for, for selected and for default columns.
create function app_hidden.export_query(subject text, format text, organization_id uuid, project_id uuid, columns jsonb,
  filter jsonb, sort jsonb, group_by text[] default null) returns app_hidden.report_query
language plpgsql stable as $$
declare
  most constant int := case when format = 'PDF' and (subject <> 'FLOOR_PLANS' or group_by is not null)
    then 12 end;
  asked app_hidden.report_query;
begin
  if format = 'ZIP' then
    perform app_hidden.refuse_report('Only exportOrganization creates archives; choose another format.', 'format');
  end if;
  asked := app_hidden.report_query(subject, organization_id, project_id, columns, filter, coalesce(group_by, '{}'),
    sort);
  if asked.group_by <> '{}' and group_by is null then
    perform app_hidden.refuse_report(
      'An export contains rows, not aggregates; create a report instead, and export that.',
      'columns');
  elsif jsonb_array_length(columns) > most then
    perform app_hidden.refuse_report(format('A page can have at most %s columns; select fewer, or choose another '
      'format.', most), 'columns');
  end if;
  if most is not null then
    asked.columns := jsonb_path_query_array(asked.columns, format('$[0 to %s]', most - 1)::jsonpath);
  end if;
  return asked;
end $$;
comment on function app_hidden.export_query(text, text, uuid, uuid, jsonb, jsonb, jsonb, text[]) is
  'The SQL of an export, as the viewer; refuses what a file of the format cannot contain. group_by: of a report, '
  'whose figures it has; null for an export of rows.';

create function app_hidden.report_groups(query app_hidden.report_query) returns text
language sql immutable as $$
  select case when query.group_by <> '{}' then ' group by ' || array_to_string(query.group_by, ', ') else '' end
$$;
comment on function app_hidden.report_groups(app_hidden.report_query) is
  'What the rows of a report are grouped by, as a clause of SQL; empty where it has rows.';

create function app_hidden.report_order(query app_hidden.report_query) returns text
language sql immutable as $$
  select case when query.group_by = '{}' then query.ordering
    else coalesce((select string_agg(g.expression || ' nulls last', ', ' order by g.place)
      from unnest(query.group_by) with ordinality g (expression, place) where g.expression <> '()'), '1') end
$$;
comment on function app_hidden.report_order(app_hidden.report_query) is
  'In which order the rows or groups of a report come, in SQL.';

create function app_private.tg_custom_exports__check() returns trigger
language plpgsql volatile as $$
declare
  query app_hidden.report_query;
begin
  if tg_op = 'UPDATE' and (old.columns, old.filter, old.sort, old.format) is not distinct
    from (new.columns, new.filter, new.sort, new.format) then
    return new;
  end if;
  if not app_hidden.organization_can(new.organization_id, 'report.manage') then
    return new; -- the policy refuses it
  end if;
  if length(concat(new.columns, new.filter, new.sort)) > 100000 then
    perform app_hidden.refuse_report('An export can have at most 100,000 characters.', 'filter');
  end if;
  query := app_hidden.export_query(new.subject, new.format, new.organization_id, new.project_id, new.columns,
    new.filter, new.sort);
  -- Omitted, the columns are those that there are by default today.
  new.columns := coalesce(new.columns, jsonb_path_query_array(query.columns, '$[*].name'));
  return new;
end $$;
create trigger _200_check before insert or update on app_public.custom_exports for each row
  execute function app_private.tg_custom_exports__check();

create function app_public.custom_exports_last_export(c app_public.custom_exports) returns setof app_public.exports
language sql stable rows 1 as $$ select e.* from app_public.exports e where e.custom_export_id = c.id order by e.id desc
  limit 1 $$;
comment on function app_public.custom_exports_last_export is
  'The latest file written from it that the viewer may see.';
