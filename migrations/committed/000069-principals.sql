--! Previous: sha1:6ab34688b2280322e45e5799b992d3df5e3407e8
--! Hash: sha1:d5c323e9adc9c58d6548e3d664f4d8d24865c355
--! Message: principals

-- In whose name things act: the user who answers for one, and the access token that they used. Their rights bound what
-- it does.
--
-- The tables have a few rows for each organization, and the new columns are empty: neither keys nor indexes take long.
-- squawk-ignore-file adding-foreign-key-constraint, require-concurrent-index-creation
create type app_public.principal_token as (id uuid, name text, prefix text, status app_public.access_token_status);

create table app_private.principal_tables (
  table_name text primary key,
  user_column text not null,
  organization_column text,
  kind text not null,
  title text not null,
  live text not null,
  lacks text not null,
  ends text not null
);
alter table app_private.principal_tables enable row level security;

alter table app_public.webhooks
  add column principal_id uuid constraint webhooks_principal_id_fkey references app_public.users on delete set null,
  add column principal_token_id uuid
    constraint webhooks_principal_token_id_fkey references app_public.access_tokens on delete set null;
create index webhooks_principal on app_public.webhooks (principal_id);
create index webhooks_principal_token on app_public.webhooks (principal_token_id);

alter table app_public.workflows
  add column disabled_reason text,
  add column principal_id uuid constraint workflows_principal_id_fkey references app_public.users on delete set null,
  add column principal_token_id uuid
    constraint workflows_principal_token_id_fkey references app_public.access_tokens on delete set null;
create index workflows_principal on app_public.workflows (principal_id);
create index workflows_principal_token on app_public.workflows (principal_token_id);

alter table app_public.organization_integrations
  add column principal_id uuid
    constraint organization_integrations_principal_id_fkey references app_public.users on delete set null,
  add column principal_token_id uuid
    constraint organization_integrations_principal_token_id_fkey references app_public.access_tokens on delete set null;
create index organization_integrations_principal on app_public.organization_integrations (principal_id);
create index organization_integrations_principal_token on app_public.organization_integrations (principal_token_id);

alter table app_public.user_integrations
  add column principal_token_id uuid
    constraint user_integrations_principal_token_id_fkey references app_public.access_tokens on delete set null;
create index user_integrations_principal_token on app_public.user_integrations (principal_token_id);

alter table app_public.organization_invites
  add column revoked_reason text,
  add column principal_token_id uuid
    constraint organization_invites_principal_token_id_fkey references app_public.access_tokens on delete set null;
create index organization_invites_principal_token on app_public.organization_invites (principal_token_id);

alter table app_hidden.buyer_invites
  add column principal_token_id uuid
    constraint buyer_invites_principal_token_id_fkey references app_public.access_tokens on delete set null;
create index buyer_invites_principal_token on app_hidden.buyer_invites (principal_token_id);

alter table app_public.exports
  add column principal_token_id uuid
    constraint exports_principal_token_id_fkey references app_public.access_tokens on delete set null;
create index exports_principal_token on app_public.exports (principal_token_id);
update app_public.exports e set principal_token_id = t.id
  from app_private.export_runs r join app_public.access_tokens t on t.id = r.token_id where r.export_id = e.id;

-- What is there was made by people who were not asked about their token: whoever made it answers for it, where they
-- still administer the organization, else its first owner.
create function pg_temp.answers_for(organization_id uuid, maker uuid) returns uuid language sql stable as $$
  select m.user_id from app_public.organization_user_connections m
  where m.organization_id = $1 and m.role in ('OWNER', 'ADMIN')
  order by m.user_id = maker desc, m.role = 'OWNER' desc, m.joined_at, m.id limit 1
$$;
update app_public.webhooks w set principal_id = pg_temp.answers_for(w.organization_id, w.created_by_id);
update app_public.workflows w set principal_id = pg_temp.answers_for(w.organization_id, w.created_by_id);
update app_public.organization_integrations i
  set principal_id = pg_temp.answers_for(i.organization_id, i.connected_by_id);
drop function pg_temp.answers_for(uuid, uuid);

alter table app_hidden.record_types add column read_permissions text[];
alter table app_hidden.workflow_step_types add column changes_records boolean not null default false;

-- What ends access to an account, and the one session that may go on.
alter table app_private.user_passwords add column kept_session uuid, add column kept_epoch int;

create type app_public.access_ending as (
  ended_at timestamptz, cause text, sessions boolean, access_tokens text[], integrations text[], automations text[],
  memberships text[]
);
create table app_private.access_endings (
  user_id uuid primary key references app_public.users on delete cascade,
  ending app_public.access_ending not null
);
alter table app_private.access_endings enable row level security;
