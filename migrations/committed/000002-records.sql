--! Previous: sha1:f94614c298500d988e6549b3bc9c479a7dcf62f0
--! Hash: sha1:6cac56955528f7d6430732dbc9ba5c73c67c1f27
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
