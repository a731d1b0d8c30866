--! Previous: sha1:509462de5ecaac428efa2c40a1620ee819ed14b8
--! Hash: sha1:639e9bffad9bd6587bed0a6bc80214b4184fe192
--! Message: several-homes

-- One person buys several homes: a lead becomes several purchases, one who was closed may register anew, and whoever it
-- is has one identity in the organization. Of the address only its digest is kept.

create table app_public.persons (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  email_digest bytea,
  constraint persons_pkey primary key (id),
  constraint persons_id_organization_id_key unique (id, organization_id),
  constraint persons_organization_id_fkey foreign key (organization_id)
    references app_public.organizations (id) on delete cascade
);
create unique index persons_email on app_public.persons (organization_id, email_digest);
alter table app_public.persons enable row level security;

alter table app_public.leads add column person_id uuid;
alter table app_public.buyers add column person_id uuid;

alter table app_public.leads disable trigger user;
alter table app_public.buyers disable trigger user;
insert into app_public.persons (organization_id, email_digest)
  select k.organization_id, sha256(convert_to(lower(k.email), 'UTF8'))
  from (select l.organization_id, l.email from app_public.leads l
    union select b.organization_id, b.email from app_public.buyers b where b.lead_id is null) k
  where k.email is not null;
update app_public.leads l set person_id = p.id from app_public.persons p
  where p.organization_id = l.organization_id and p.email_digest = sha256(convert_to(lower(l.email), 'UTF8'));
update app_public.leads l set person_id = gen_random_uuid() where l.email is null;
insert into app_public.persons (id, organization_id)
  select l.person_id, l.organization_id from app_public.leads l where l.email is null;
update app_public.buyers b set person_id = l.person_id from app_public.leads l where l.id = b.lead_id;
update app_public.buyers b set person_id = p.id from app_public.persons p
  where b.lead_id is null and p.organization_id = b.organization_id
    and p.email_digest = sha256(convert_to(lower(b.email), 'UTF8'));
update app_public.buyers b set person_id = gen_random_uuid() where b.lead_id is null and b.email is null;
insert into app_public.persons (id, organization_id)
  select b.person_id, b.organization_id from app_public.buyers b where b.lead_id is null and b.email is null;
alter table app_public.leads enable trigger user;
alter table app_public.buyers enable trigger user;

-- The rows above are locked until this is committed anyway.
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table app_public.leads add constraint leads_person_id_fkey foreign key (person_id, organization_id)
  references app_public.persons (id, organization_id) on delete restrict;
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table app_public.buyers add constraint buyers_person_id_fkey foreign key (person_id, organization_id)
  references app_public.persons (id, organization_id) on delete restrict;
-- squawk-ignore require-concurrent-index-creation
create index leads_person on app_public.leads (person_id, id desc);
-- squawk-ignore require-concurrent-index-creation
create index buyers_person on app_public.buyers (person_id, id desc);

-- An address is in use once among the leads of a project that are open.
-- squawk-ignore require-concurrent-index-creation
create unique index leads_open_email on app_public.leads (project_id, email) where deleted_at is null
  and email is not null and status not in ('LOST', 'UNQUALIFIED', 'CONVERTED');
-- squawk-ignore require-concurrent-index-deletion
drop index app_public.leads_live_email;
-- A lead has one purchase at most for which there is no home yet; others are told apart by their homes.
-- squawk-ignore require-concurrent-index-creation
create unique index buyers_lead_without_home on app_public.buyers (lead_id) where deleted_at is null
  and status <> 'CANCELLED' and lead_id is not null and unit_id is null and lot_id is null;
-- squawk-ignore require-concurrent-index-deletion
drop index app_public.buyers_lead;
