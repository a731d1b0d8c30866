--! Previous: sha1:27d292c82f9103c27e7c61752af1f5c3df44d1ca
--! Hash: sha1:ea37dd41873c0203099955ee292ba420d2b01167
--! Message: lease-permits

-- Lease permits.

select app_private.create_enum('lease_permit_status', 'What became of a lease permit.', array[
  ['AVAILABLE', 'Nobody has it.'], ['RESERVED', 'Kept for somebody.'], ['ISSUED', 'Somebody has it.'],
  ['EXPIRED', 'Its time is over.'], ['REVOKED', 'It was taken back.']]);

create table app_public.lease_permits (
  like app_private.project_record including all,
  title app_public.short_text not null,
  number app_public.short_text,
  status app_public.lease_permit_status not null default 'AVAILABLE',
  price app_public.money,
  issued_on date,
  expires_on date,
  notes app_public.long_text,
  unit_id uuid,
  buyer_id uuid,
  constraint lease_permits_order check (issued_on <= expires_on),
  unique (id, project_id),
  constraint lease_permits_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete restrict,
  constraint lease_permits_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete restrict,
  constraint lease_permits_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create unique index lease_permits_number on app_public.lease_permits (project_id, number) where deleted_at is null
  and number is not null;
create unique index lease_permits_unit on app_public.lease_permits (unit_id)
  where deleted_at is null and unit_id is not null and status not in ('EXPIRED', 'REVOKED');
create index lease_permits_of_unit on app_public.lease_permits (unit_id) where unit_id is not null;
create index lease_permits_buyer on app_public.lease_permits (buyer_id) where buyer_id is not null;
create index lease_permits_organization on app_public.lease_permits (organization_id, id desc) where deleted_at is null;
create index lease_permits_project on app_public.lease_permits (project_id, id desc) where deleted_at is null;
alter table app_public.lease_permits enable row level security;
