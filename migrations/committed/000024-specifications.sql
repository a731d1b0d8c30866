--! Previous: sha1:a21b15d19882787d443639e78b92c8bce3dd57e4
--! Hash: sha1:ca776855d5f61c67757bfdaeed5c11b85ef3d276
--! Message: specifications

-- Categories, elements and options of what can be chosen for a home.

select app_private.create_enum('spec_selection_mode', 'How many options of an element a buyer takes.', array[
  ['SINGLE', 'One.'], ['MULTIPLE', 'Several.']]);
select app_private.create_enum('spec_option_tier', 'How an option is offered.', array[
  ['STANDARD', 'In the price of the home.'], ['UPGRADE', 'For its own price.'], ['CUSTOM', 'Made for one buyer.']]);
select app_private.create_enum('spec_option_kind', 'What an option changes.', array[
  ['STRUCTURAL', 'Walls, floors, openings.'], ['DESIGN', 'Surfaces and fixtures.'], ['APPLIANCE', 'Appliances.'],
  ['EXTERIOR', 'What is seen from outside.'], ['PACKAGE', 'Several at once.'], ['PARKING', 'Parking.'],
  ['STORAGE', 'Storage.'], ['OTHER', 'Anything else.']]);

create table app_public.spec_categories (
  like app_private.project_record including all,
  title app_public.short_text not null,
  description app_public.long_text,
  sequence int not null default 0,
  unique (id, project_id),
  constraint spec_categories_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index spec_categories_sequence on app_public.spec_categories (project_id, sequence, id) where deleted_at is null;
create index spec_categories_organization on app_public.spec_categories (organization_id, id desc)
  where deleted_at is null;
create index spec_categories_project on app_public.spec_categories (project_id, id desc) where deleted_at is null;
alter table app_public.spec_categories enable row level security;

create table app_public.spec_elements (
  like app_private.project_record including all,
  category_id uuid not null,
  title app_public.short_text not null,
  description app_public.long_text,
  sequence int not null default 0,
  selection_mode app_public.spec_selection_mode not null default 'SINGLE',
  required boolean not null default false,
  lock_phase app_public.unit_construction_status,
  unique (id, project_id),
  constraint spec_elements_category_id_fkey foreign key (category_id, project_id)
    references app_public.spec_categories (id, project_id) on delete restrict,
  constraint spec_elements_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index spec_elements_category on app_public.spec_elements (category_id, sequence, id) where deleted_at is null;
create index spec_elements_organization on app_public.spec_elements (organization_id, id desc) where deleted_at is null;
create index spec_elements_project on app_public.spec_elements (project_id, id desc) where deleted_at is null;
alter table app_public.spec_elements enable row level security;

create table app_public.spec_options (
  like app_private.project_record including all,
  element_id uuid not null,
  title app_public.short_text not null,
  description app_public.long_text,
  sku app_public.short_text,
  tier app_public.spec_option_tier not null default 'STANDARD',
  kind app_public.spec_option_kind not null default 'DESIGN',
  price app_public.money not null default 0,
  cost app_public.money,
  max_quantity int constraint spec_options_max_quantity_range check (max_quantity between 1 and 10000),
  active boolean not null default true,
  sequence int not null default 0,
  excluded_option_ids uuid[] not null default '{}'
  constraint spec_options_excluded_number check (cardinality(excluded_option_ids) <= 100),
  unique (id, project_id),
  constraint spec_options_element_id_fkey foreign key (element_id, project_id)
    references app_public.spec_elements (id, project_id) on delete restrict,
  constraint spec_options_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index spec_options_element on app_public.spec_options (element_id, sequence, id) where deleted_at is null;
create unique index spec_options_sku on app_public.spec_options (project_id, sku) where deleted_at is null
  and sku is not null;
create index spec_options_organization on app_public.spec_options (organization_id, id desc) where deleted_at is null;
create index spec_options_project on app_public.spec_options (project_id, id desc) where deleted_at is null;
alter table app_public.spec_options enable row level security;
