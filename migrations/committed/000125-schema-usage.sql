--! Previous: sha1:85cfb9b6a32ff562735d0b37a84c2dc3d5aba801
--! Hash: sha1:5aab09d1665deae1373ec4ee1d667b394847014c
--! Message: schema-usage

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
