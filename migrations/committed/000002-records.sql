--! Previous: sha1:428f1f9443f9ae00f78101b2e1e07490ec817893
--! Hash: sha1:6c9adf2dd803d11a88965ac666b7cfd9163dae50
--! Message: records

-- What tables hold records, and the slugs that records had.

create table app_hidden.record_types (
  table_name text primary key,
  subject text not null unique,
  write_permission text,
  event_permission text,
  event_condition text
);
alter table app_hidden.record_types enable row level security;

-- Slugs: every slug a record ever had leads to it.
create table app_private.slugs (
  table_name text not null,
  slug app_public.slug not null,
  record_id uuid not null,
  primary key (table_name, slug)
);
alter table app_private.slugs enable row level security;

grant usage on schema app_private to plat_user, plat_anonymous; -- to call the definer functions that are granted
