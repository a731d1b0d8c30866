-- Versions of what permissions are found from: what was found is handed on until one of them grows.

create table app_private.access_versions (
  party_id uuid primary key,
  version bigint not null default 1
);
alter table app_private.access_versions enable row level security;
