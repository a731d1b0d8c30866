--! Previous: sha1:255fcf5519baf2ffa3bf879d3af7a3cb39056b44
--! Hash: sha1:31713afee4f7e748aec3eef78a6ba68ddad8da91
--! Message: bound-secrets

-- Sealed texts are bound to their rows: which columns have no other left.
create table app_private.bound_columns (
  relation text not null,
  name text not null,
  since timestamptz not null default now(),
  primary key (relation, name)
);
alter table app_private.bound_columns enable row level security;
