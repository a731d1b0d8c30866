--! Previous: sha1:b334c0a244a29105fbe18a326052b086837775e9
--! Hash: sha1:a21b15d19882787d443639e78b92c8bce3dd57e4
--! Message: inventory-files

-- Images, drawings and documents of floor plans, lots and units.

create table app_public.floor_plan_images (
  like app_private.image_record including all,
  floor_plan_id uuid not null,
  constraint floor_plan_images_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint floor_plan_images_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete cascade,
  constraint floor_plan_images_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create index floor_plan_images_checksum on app_public.floor_plan_images (checksum);
create index floor_plan_images_images on app_public.floor_plan_images (floor_plan_id, sequence, id)
  where deleted_at is null;
create index floor_plan_images_project on app_public.floor_plan_images (project_id, id);
create index floor_plan_images_uploaded_by on app_public.floor_plan_images (uploaded_by_id);
alter table app_public.floor_plan_images enable row level security;

create table app_public.floor_plan_elevation_images (
  like app_private.image_record including all,
  elevation app_public.short_text not null default 'A',
  price_delta numeric(14, 2),
  floor_plan_id uuid not null,
  constraint floor_plan_elevation_images_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint floor_plan_elevation_images_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete cascade,
  constraint floor_plan_elevation_images_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create index floor_plan_elevation_images_checksum on app_public.floor_plan_elevation_images (checksum);
create index floor_plan_elevation_images_elevation_images
  on app_public.floor_plan_elevation_images (floor_plan_id, sequence, id) where deleted_at is null;
create index floor_plan_elevation_images_project on app_public.floor_plan_elevation_images (project_id, id);
create index floor_plan_elevation_images_uploaded_by on app_public.floor_plan_elevation_images (uploaded_by_id);
alter table app_public.floor_plan_elevation_images enable row level security;

create table app_public.floor_plan_drawings (
  like app_private.image_record including all,
  level int constraint floor_plan_drawings_level_range check (level between -20 and 200),
  mirrored boolean not null default false,
  floor_plan_id uuid not null,
  constraint floor_plan_drawings_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint floor_plan_drawings_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete cascade,
  constraint floor_plan_drawings_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create index floor_plan_drawings_checksum on app_public.floor_plan_drawings (checksum);
create index floor_plan_drawings_drawings on app_public.floor_plan_drawings (floor_plan_id, sequence, id)
  where deleted_at is null;
create index floor_plan_drawings_project on app_public.floor_plan_drawings (project_id, id);
create index floor_plan_drawings_uploaded_by on app_public.floor_plan_drawings (uploaded_by_id);
alter table app_public.floor_plan_drawings enable row level security;

create table app_public.floor_plan_documents (
  like app_private.document_record including all,
  floor_plan_id uuid not null,
  constraint floor_plan_documents_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint floor_plan_documents_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete cascade,
  constraint floor_plan_documents_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create index floor_plan_documents_checksum on app_public.floor_plan_documents (checksum);
create index floor_plan_documents_documents on app_public.floor_plan_documents (floor_plan_id, id)
  where deleted_at is null;
create index floor_plan_documents_project on app_public.floor_plan_documents (project_id, id);
create index floor_plan_documents_uploaded_by on app_public.floor_plan_documents (uploaded_by_id);
alter table app_public.floor_plan_documents enable row level security;

create table app_public.lot_images (
  like app_private.image_record including all,
  lot_id uuid not null,
  constraint lot_images_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint lot_images_lot_id_fkey foreign key (lot_id, project_id)
    references app_public.lots (id, project_id) on delete cascade,
  constraint lot_images_uploaded_by_id_fkey foreign key (uploaded_by_id) references app_public.users on delete set null
);
create index lot_images_checksum on app_public.lot_images (checksum);
create index lot_images_images on app_public.lot_images (lot_id, sequence, id) where deleted_at is null;
create index lot_images_project on app_public.lot_images (project_id, id);
create index lot_images_uploaded_by on app_public.lot_images (uploaded_by_id);
alter table app_public.lot_images enable row level security;

create table app_public.unit_images (
  like app_private.image_record including all,
  construction_status app_public.unit_construction_status,
  unit_id uuid not null,
  constraint unit_images_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint unit_images_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete cascade,
  constraint unit_images_uploaded_by_id_fkey foreign key (uploaded_by_id) references app_public.users on delete set null
);
create index unit_images_checksum on app_public.unit_images (checksum);
create index unit_images_images on app_public.unit_images (unit_id, sequence, id) where deleted_at is null;
create index unit_images_project on app_public.unit_images (project_id, id);
create index unit_images_uploaded_by on app_public.unit_images (uploaded_by_id);
alter table app_public.unit_images enable row level security;
