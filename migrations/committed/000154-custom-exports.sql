--! Previous: sha1:03e02b6f3d87f5583adaa7771a5836d63a60df6f
--! Hash: sha1:0236c99c38acb733b37b4b05059bd1d2112146fd
--! Message: custom-exports

-- Exports that an organization puts together once and runs again and again.

select app_private.create_enum('export_format', 'The kind of file that an export is.', array[
  ['CSV', 'Text with commas, in UTF-8 with a byte order mark.'], ['XLSX', 'A workbook for spreadsheet programs.'], ['JSONL', 'One JSON object per line.'],
  ['PDF', 'Pages to print: a page for each floor plan, a table for anything else.']]);

create table app_public.custom_exports (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  project_id uuid,
  name app_public.short_text not null,
  description app_public.long_text,
  subject app_public.report_subject not null,
  format app_public.export_format not null,
  columns jsonb not null,
  filter jsonb,
  sort jsonb,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  constraint custom_exports_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete cascade,
  unique (id, organization_id)
);
create index custom_exports_organization on app_public.custom_exports (organization_id, id) where deleted_at is null;
create index custom_exports_project on app_public.custom_exports (project_id);
create index custom_exports_created_by on app_public.custom_exports (created_by_id);

alter table app_public.custom_exports enable row level security;
create policy readers on app_public.custom_exports for select to plat_user
  using (deleted_at is null and organization_id = any (array(select app_hidden.viewer_organizations('report.read'))));
create policy managers_insert on app_public.custom_exports for insert to plat_user
  with check (organization_id = any (array(select app_hidden.viewer_organizations('report.manage'))));
create policy managers_update on app_public.custom_exports for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('report.manage'))));
create policy managers_delete on app_public.custom_exports for delete to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('report.manage'))));
grant select on app_public.custom_exports to plat_user, plat_anonymous, plat_worker;
grant insert (organization_id, project_id, name, description, subject, format, columns, filter, sort),
  update (name, description, format, columns, filter, sort), delete on app_public.custom_exports to plat_user;

select app_private.make_record('custom_exports', 'custom_export', 'report.manage');

create function app_hidden.export_query(subject text, format text, organization_id uuid, project_id uuid, columns jsonb, filter jsonb, sort jsonb) returns app_hidden.report_query
language plpgsql stable as $$
declare
  most_of_pages constant int := 12;
  asked app_hidden.report_query;
begin
  asked := app_hidden.report_query(subject, organization_id, project_id, columns, filter, '{}', sort);
  if asked.group_by <> '{}' then
    perform app_hidden.refuse_report('An export has rows, not figures; make a report of it.', 'columns');
  elsif format = 'PDF' and subject <> 'FLOOR_PLANS' and columns is not null and jsonb_array_length(columns) > most_of_pages then
    perform app_hidden.refuse_report(format('A page has room for %s columns; name those that matter, or choose another format.', most_of_pages), 'columns');
  end if;
  return asked;
end $$;
comment on function app_hidden.export_query(text, text, uuid, uuid, jsonb, jsonb, jsonb) is 'What an export asks for, in SQL, as the viewer; refuses what no file of the format can hold.';

create function app_private.tg_custom_exports__check() returns trigger
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
  -- Left out, the columns are those that the subject has by default today; on paper the first of them.
  new.columns := coalesce(new.columns, (select jsonb_agg(c.value -> 'name' order by c.place)
    from jsonb_array_elements(query.columns) with ordinality c (value, place) where c.place <= 12 or new.format <> 'PDF' or new.subject = 'FLOOR_PLANS'));
  return new;
end $$;
create trigger _200_check before insert or update on app_public.custom_exports for each row execute function app_private.tg_custom_exports__check();

comment on table app_public.custom_exports is 'An export that an organization put together; runCustomExport makes a file of it.';
comment on column app_public.custom_exports.organization_id is 'The organization whose records it has.';
comment on column app_public.custom_exports.project_id is 'The only project whose records it has.';
comment on column app_public.custom_exports.name is 'What people call it, and its files.';
comment on column app_public.custom_exports.description is 'What it is about.';
comment on column app_public.custom_exports.subject is 'What its rows are.';
comment on column app_public.custom_exports.format is 'The kind of file.';
comment on column app_public.custom_exports.columns is E'@insertOptional\n\nA list of names of columns, or of {column, as}; those of the subject where left out.';
comment on column app_public.custom_exports.filter is 'Which rows: {column: value, list of values, {min, max}, {from, to}, {contains} or {empty}}; all of them hold.';
comment on column app_public.custom_exports.sort is 'In which order: a list of names of columns, or of {column, direction}; the latest first where left out.';
comment on column app_public.custom_exports.created_by_id is E'@behavior -*\n\nWho created it.';
comment on constraint custom_exports_organization_id_fkey on app_public.custom_exports is
  E'@parent\n@fieldName organization\n@foreignFieldName customExports\n@backwardPermission org.member\n@backwardDescription The exports that the organization put together; null for outsiders.\n\nThe organization.';
comment on constraint custom_exports_project_id_fkey on app_public.custom_exports is E'@fieldName project\n@backwardBehavior -*\n\nThe project.';
comment on constraint custom_exports_created_by_id_fkey on app_public.custom_exports is E'@fieldName createdBy\n@backwardBehavior -*\n\nWho created it.';
