--! Previous: sha1:2a0338b2b03a61f75b7ab5d8b3ab021f7ed4b71c
--! Hash: sha1:0da46d66339739a39ee568ee431573d7ad18b90b
--! Message: exports

-- Exports to files.

select app_private.create_enum('export_status', 'How far an export is.', array[
  ['PENDING', 'It waits for its turn.'], ['PROCESSING', 'It is being written.'], ['COMPLETED', 'The file is there.'],
  ['FAILED', 'There is no file; error says why.'], ['CANCELLED', 'It was stopped.'],
  ['EXPIRED', 'The file was there, and is removed.']]);

create table app_public.exports (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  project_id uuid,
  custom_export_id uuid,
  subject app_public.report_subject not null,
  format app_public.export_format not null,
  columns jsonb,
  filter jsonb,
  sort jsonb,
  status app_public.export_status not null default 'PENDING',
  status_changed_at timestamptz not null default now(),
  row_count int,
  filename text not null,
  filesize int,
  checksum text,
  requested_by_id uuid references app_public.users on delete set null,
  started_at timestamptz,
  completed_at timestamptz,
  expires_at timestamptz,
  error text,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint exports_custom_export_id_fkey foreign key (custom_export_id, organization_id)
    references app_public.custom_exports (id, organization_id) on delete set null (custom_export_id),
  constraint exports_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index exports_organization on app_public.exports (organization_id, id desc);
create index exports_project on app_public.exports (project_id);
create index exports_custom_export on app_public.exports (custom_export_id, id desc);
create index exports_requested_by on app_public.exports (requested_by_id);
create index exports_unfinished on app_public.exports (organization_id, requested_by_id)
  where status in ('PENDING', 'PROCESSING');
alter table app_public.exports enable row level security;

create table app_private.export_runs (
  export_id uuid primary key references app_public.exports on delete cascade,
  token_id uuid,
  token_organization_id uuid,
  token_scopes text,
  permissions text[],
  rights text[],
  worker uuid,
  attempts int not null default 0,
  lease_until timestamptz,
  rows_done int not null default 0,
  rows_total int,
  file_key text,
  holder text
);
create index export_runs_file on app_private.export_runs (export_id) where file_key is not null;
alter table app_private.export_runs enable row level security;
