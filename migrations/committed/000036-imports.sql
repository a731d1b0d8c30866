--! Previous: sha1:ea37dd41873c0203099955ee292ba420d2b01167
--! Hash: sha1:a9cf92bb9d2dddb12140f0a3087a0170e115bf6d
--! Message: imports

-- Imports from CSV: their columns, and what they return.

create table app_hidden.imports (
  operation text primary key,
  table_name text not null,
  permission text not null
);
alter table app_hidden.imports enable row level security;

create table app_hidden.import_columns (
  operation text not null references app_hidden.imports on delete cascade,
  position int not null,
  column_name text not null,
  type text,
  required boolean not null default false,
  spellings text[] not null default '{}',
  description text not null,
  primary key (operation, column_name),
  unique (operation, position)
);
alter table app_hidden.import_columns enable row level security;

-- What an import answers.
create type app_public.import_row_error as (row int, "column" text, code text, message text, value text);

create type app_public.import_units_payload as (
  dry_run boolean, created_count int, updated_count int, skipped_count int, failed_count int,
  errors app_public.import_row_error[], units app_public.units[]
);

create type app_public.import_buyers_payload as (
  dry_run boolean, created_count int, updated_count int, skipped_count int, failed_count int,
  errors app_public.import_row_error[], buyers app_public.buyers[]
);
