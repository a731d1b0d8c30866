--! Previous: sha1:05a4f00afeb0d96041337ef5ff9a4880d32171fc
--! Hash: sha1:2a0338b2b03a61f75b7ab5d8b3ab021f7ed4b71c
--! Message: custom-reports

-- Reports and exports that users define.

create table app_public.custom_reports (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  project_id uuid,
  name app_public.short_text not null,
  description app_public.long_text,
  kind app_public.report_kind not null default 'CUSTOM',
  subject app_public.report_subject not null,
  columns jsonb not null,
  filter jsonb,
  group_by text[] not null default '{}',
  chart app_public.chart_type,
  visibility app_public.report_visibility not null default 'PRIVATE',
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  constraint custom_reports_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint custom_reports_project_of_visibility check (visibility <> 'PROJECT' or project_id is not null)
);
create index custom_reports_organization on app_public.custom_reports (organization_id, id) where deleted_at is null;
create index custom_reports_project on app_public.custom_reports (project_id);
create index custom_reports_created_by on app_public.custom_reports (created_by_id);
alter table app_public.custom_reports enable row level security;

create table app_private.report_runs (
  report_id uuid primary key references app_public.custom_reports on delete cascade,
  last_run_at timestamptz not null
);
alter table app_private.report_runs enable row level security;

select app_private.create_enum('export_format', 'The kind of file that an export is.', array[
  ['CSV', 'Text with commas, in UTF-8 with a byte order mark.'], ['XLSX', 'A workbook for spreadsheet programs.'],
  ['JSONL', 'One JSON object per line.'],
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
  constraint custom_exports_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  unique (id, organization_id)
);
create index custom_exports_organization on app_public.custom_exports (organization_id, id) where deleted_at is null;
create index custom_exports_project on app_public.custom_exports (project_id);
create index custom_exports_created_by on app_public.custom_exports (created_by_id);
alter table app_public.custom_exports enable row level security;
