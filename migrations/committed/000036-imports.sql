--! Previous: sha1:f1a5f391e6f3cd5e9a6e6be898ac7cfa3e00a66e
--! Hash: sha1:d5b8d5024acbb8f922815124cbdd0a6b17fc4f71
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
