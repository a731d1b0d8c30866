
-- Sealed texts are bound to their rows: which columns have no other left.
create table app_private.bound_columns (
  relation text not null,
  name text not null,
  since timestamptz not null default now(),
  primary key (relation, name)
);
alter table app_private.bound_columns enable row level security;
