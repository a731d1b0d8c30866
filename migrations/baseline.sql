--! Replaces: 000195-search-ideographs.sql sha1:42724f867062e4fa58eda91a04ebbc85f7a7d9fb
--! Through: 000065-text-messages.sql sha1:80cb648a049c67638ed3254d0170ae8f5c3f17da
-- The chain of migrations was written anew once, before the first release. A database that the last version before made
-- has the same tables, but for what follows; functions, policies, triggers, grants and comments are reconciled anyway.

create table app_private.schema_objects (
  hash text primary key,
  applied_at timestamptz not null default clock_timestamp()
);
alter table app_private.schema_objects enable row level security;

create index lead_notes_project on app_public.lead_notes (project_id, id desc) where deleted_at is null;
create index offers_claim on app_public.offers (claim_id) where claim_id is not null;

alter table app_public.organization_avatars
  rename constraint image_record_id_not_null to organization_avatars_id_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_organization_id_not_null to organization_avatars_organization_id_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_file_not_null to organization_avatars_file_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_sequence_not_null to organization_avatars_sequence_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_filename_not_null to organization_avatars_filename_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_filemime_not_null to organization_avatars_filemime_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_filesize_not_null to organization_avatars_filesize_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_checksum_not_null to organization_avatars_checksum_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_inserted_at_not_null to organization_avatars_inserted_at_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_updated_at_not_null to organization_avatars_updated_at_not_null;
alter table app_public.organization_avatars
  rename constraint image_record_version_not_null to organization_avatars_version_not_null;

-- Files belong to a record of their own project.
alter table app_public.floor_plan_images
  drop constraint floor_plan_images_floor_plan_id_fkey,
  add constraint floor_plan_images_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete cascade;
alter table app_public.floor_plan_elevation_images
  drop constraint floor_plan_elevation_images_floor_plan_id_fkey,
  add constraint floor_plan_elevation_images_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete cascade;
alter table app_public.floor_plan_drawings
  drop constraint floor_plan_drawings_floor_plan_id_fkey,
  add constraint floor_plan_drawings_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete cascade;
alter table app_public.floor_plan_documents
  drop constraint floor_plan_documents_floor_plan_id_fkey,
  add constraint floor_plan_documents_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete cascade;
alter table app_public.lot_images
  drop constraint lot_images_lot_id_fkey,
  add constraint lot_images_lot_id_fkey foreign key (lot_id, project_id)
    references app_public.lots (id, project_id) on delete cascade;
alter table app_public.unit_images
  drop constraint unit_images_unit_id_fkey,
  add constraint unit_images_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete cascade;
alter table app_public.reservation_documents
  drop constraint reservation_documents_reservation_id_fkey,
  add constraint reservation_documents_reservation_id_fkey foreign key (reservation_id, project_id)
    references app_public.reservations (id, project_id) on delete cascade;

-- A regproc would keep pg_upgrade from moving the database.
alter table app_public.integration_apps alter column connected_by type text;
