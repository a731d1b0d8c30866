--! Previous: sha1:99d2acaee77861968a44871d7d421d98031aa33a
--! Hash: sha1:ce97b3d8111a5e6976c091f1957f77c620938e8d
--! Message: access-versions

-- Versions of what permissions are found from: what was found is handed on until one of them grows.

create table app_private.access_versions (
  party_id uuid primary key,
  version bigint not null default 1
);
alter table app_private.access_versions enable row level security;
