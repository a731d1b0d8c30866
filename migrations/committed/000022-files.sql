--! Previous: sha1:4ab431b4ac9fd1facac3e54766ffc5edab008b19
--! Hash: sha1:b334c0a244a29105fbe18a326052b086837775e9
--! Message: files

-- Stored files, the columns that tables of images and documents have, and the files of organizations and projects.

select app_private.create_enum('image_category', 'What a picture shows.', array[
  ['HERO', 'The picture that stands for the whole.'], ['EXTERIOR', 'The outside.'], ['INTERIOR', 'The inside.'],
  ['AMENITY', 'What residents share.'], ['RENDERING', 'Drawn, not photographed.'],
  ['CONSTRUCTION', 'How far the building is.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('document_category', 'What a document is.', array[
  ['BROCHURE', 'A brochure.'], ['PRICE_LIST', 'Prices.'], ['DISCLOSURE', 'What the law has the seller tell.'],
  ['CONTRACT', 'A contract.'], ['ADDENDUM', 'An addition to a contract.'], ['FLOOR_PLAN', 'A floor plan.'],
  ['SPECIFICATION', 'What is built in.'], ['WARRANTY', 'A warranty.'],
  ['PROOF_OF_FUNDS', 'Shows that a buyer can pay.'], ['PREAPPROVAL', 'A lender''s promise.'],
  ['IDENTITY', 'Shows who somebody is.'], ['BUILD_ORDER', 'What is ordered from the builder.'],
  ['OTHER', 'Something else.']]);

-- The tag @transform names the kind: the API stores the content and hands over {checksum, filename}. A caller cannot
-- write that object: the scalar takes parts of a multipart request and data URIs only.
create domain app_public.image_upload as jsonb;

create domain app_public.document_upload as jsonb;

create domain app_public.data_upload as jsonb;

create domain app_public.file_address as jsonb;

create table app_private.stored_files (
  checksum text primary key check (checksum ~ '^[0-9a-f]{64}$'),
  filemime text not null,
  filesize int not null check (filesize > 0),
  width int,
  height int,
  is_stored boolean not null default false,
  check_at timestamptz not null default now() + interval '1 day'
);
create index stored_files_check_at on app_private.stored_files (check_at);
alter table app_private.stored_files enable row level security;

create table app_private.file_tables (
  table_name text primary key
);
alter table app_private.file_tables enable row level security;

-- What a table of files has. They hold no rows.
create table app_private.document_record (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  file app_public.document_upload not null,
  title app_public.short_text,
  description app_public.long_text,
  category app_public.document_category not null default 'OTHER',
  public boolean not null default false,
  filename text not null,
  filemime text not null,
  filesize int not null,
  checksum text not null,
  uploaded_by_id uuid default app_public.current_user_id(),
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz
);
alter table app_private.document_record enable row level security;

create table app_private.image_record (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  file app_public.image_upload not null,
  title app_public.short_text,
  alt app_public.short_text,
  sequence int not null constraint image_sequence_range check (sequence between 0 and 1000000),
  filename text not null,
  filemime text not null,
  filesize int not null,
  width int,
  height int,
  checksum text not null,
  uploaded_by_id uuid default app_public.current_user_id(),
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz
);
alter table app_private.image_record enable row level security;

-- Files of organizations and projects.
create table app_public.organization_avatars (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  file app_public.image_upload not null,
  title app_public.short_text,
  alt app_public.short_text,
  sequence int not null constraint image_sequence_range check (sequence between 0 and 1000000),
  filename text not null,
  filemime text not null,
  filesize int not null,
  width int,
  height int,
  checksum text not null,
  uploaded_by_id uuid default app_public.current_user_id(),
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  constraint organization_avatars_organization_id_fkey foreign key (organization_id)
    references app_public.organizations on delete cascade,
  constraint organization_avatars_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create unique index organization_avatars_avatar on app_public.organization_avatars (organization_id)
  where deleted_at is null;
create index organization_avatars_checksum on app_public.organization_avatars (checksum);
create index organization_avatars_uploaded_by on app_public.organization_avatars (uploaded_by_id);
alter table app_public.organization_avatars enable row level security;

create table app_public.project_avatars (
  like app_private.image_record including all,
  constraint project_avatars_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint project_avatars_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create unique index project_avatars_avatar on app_public.project_avatars (project_id) where deleted_at is null;
create index project_avatars_checksum on app_public.project_avatars (checksum);
create index project_avatars_project on app_public.project_avatars (project_id, id);
create index project_avatars_uploaded_by on app_public.project_avatars (uploaded_by_id);
alter table app_public.project_avatars enable row level security;

create table app_public.project_images (
  like app_private.image_record including all,
  category app_public.image_category not null default 'OTHER',
  spec_option_ids uuid[] not null default '{}'
  constraint project_images_spec_options_number check (cardinality(spec_option_ids) <= 100),
  constraint project_images_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint project_images_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create index project_images_checksum on app_public.project_images (checksum);
create index project_images_images on app_public.project_images (project_id, sequence, id) where deleted_at is null;
create index project_images_project on app_public.project_images (project_id, id);
create index project_images_uploaded_by on app_public.project_images (uploaded_by_id);
alter table app_public.project_images enable row level security;

create table app_public.project_documents (
  like app_private.document_record including all,
  constraint project_documents_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint project_documents_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create index project_documents_checksum on app_public.project_documents (checksum);
create index project_documents_documents on app_public.project_documents (project_id, id) where deleted_at is null;
create index project_documents_project on app_public.project_documents (project_id, id);
create index project_documents_uploaded_by on app_public.project_documents (uploaded_by_id);
alter table app_public.project_documents enable row level security;

create table app_public.site_plans (
  like app_private.image_record including all,
  is_primary boolean not null default false,
  phase app_public.short_text,
  constraint site_plans_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint site_plans_uploaded_by_id_fkey foreign key (uploaded_by_id) references app_public.users on delete set null
);
create index site_plans_checksum on app_public.site_plans (checksum);
create index site_plans_project on app_public.site_plans (project_id, id);
create index site_plans_site_plans on app_public.site_plans (project_id, sequence, id) where deleted_at is null;
create index site_plans_uploaded_by on app_public.site_plans (uploaded_by_id);
alter table app_public.site_plans enable row level security;

create type app_public.delete_organization_avatar_payload as (id uuid, deleted boolean, organization_id uuid);

create type app_public.delete_project_avatar_payload as (id uuid, deleted boolean, project_id uuid);
