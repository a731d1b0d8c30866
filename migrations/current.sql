-- Which parts of the schema an organization's programs use, as schema coordinates: what a change of the schema would
-- break for it.

create table app_private.schema_usage (
  organization_id uuid not null references app_public.organizations (id) on delete cascade,
  coordinate text not null,
  last_used_on date not null,
  primary key (organization_id, coordinate)
);
create index schema_usage_last_used_on on app_private.schema_usage (last_used_on);
alter table app_private.schema_usage enable row level security;

create type app_public.schema_usage as (coordinate text, last_used_on date);
