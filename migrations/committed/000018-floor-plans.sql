--! Previous: sha1:62016000d434d6269bf2f5816e8903ee0d1d8234
--! Hash: sha1:5a14dfbf1432832759908cb996f30d23a63a9266
--! Message: floor-plans

-- Floor plans.

select app_private.create_enum('home_type', 'The kind of a home.', array[
  ['CONDO', 'An apartment.'], ['TOWNHOME', 'A townhome.'], ['DETACHED', 'A detached home.'],
  ['SEMI_DETACHED', 'One half of two homes.'], ['DUPLEX', 'Two homes in one house.'], ['LOFT', 'A loft.'],
  ['PENTHOUSE', 'A penthouse.'], ['LIVE_WORK', 'A home with a workplace.'], ['LOT', 'Land alone.'],
  ['COMMERCIAL', 'Commerce.']]);
select app_private.create_enum('floor_plan_status', 'How far a floor plan is.', array[
  ['DRAFT', 'Being prepared; seen by the team only.'], ['ACTIVE', 'Offered.'], ['SOLD_OUT', 'Every unit is sold.'],
  ['RETIRED', 'Not offered any more.']]);
select app_private.create_enum('orientation', 'The side that something looks to.', array[
  ['N', 'North.'], ['NE', 'North-east.'], ['E', 'East.'], ['SE', 'South-east.'], ['S', 'South.'], ['SW', 'South-west.'],
  ['W', 'West.'], ['NW', 'North-west.']]);

create table app_hidden.column_permissions (
  table_name text not null,
  column_name text not null,
  permission text not null,
  primary key (table_name, column_name, permission)
);
alter table app_hidden.column_permissions enable row level security;

create table app_public.floor_plans (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  title app_public.short_text not null,
  subtitle app_public.short_text,
  code app_public.short_text,
  description app_public.long_text,
  status app_public.floor_plan_status not null default 'DRAFT',
  home_type app_public.home_type not null default 'CONDO',
  base_price app_public.money,
  bedrooms int constraint floor_plans_bedrooms_range check (bedrooms between 0 and 99),
  bedrooms_max int constraint floor_plans_bedrooms_max_range check (bedrooms_max between 0 and 99),
  baths int constraint floor_plans_baths_range check (baths between 0 and 99),
  half_baths int constraint floor_plans_half_baths_range check (half_baths between 0 and 99),
  garage int constraint floor_plans_garage_range check (garage between 0 and 99),
  stories numeric constraint floor_plans_stories_range check (stories between 0 and 200),
  sqft int constraint floor_plans_sqft_range check (sqft between 1 and 10000000),
  sqft_max int constraint floor_plans_sqft_max_range check (sqft_max between 1 and 10000000),
  balcony_sqft int constraint floor_plans_balcony_sqft_range check (balcony_sqft between 0 and 10000000),
  hoa_fee app_public.money,
  orientation app_public.orientation,
  sequence int not null default 0,
  tour_url app_public.url,
  metadata jsonb,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  constraint floor_plans_bedrooms_order check (bedrooms_max >= bedrooms),
  constraint floor_plans_sqft_order check (sqft_max >= sqft),
  unique (id, project_id),
  constraint floor_plans_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict
);
create unique index floor_plans_code on app_public.floor_plans (project_id, lower(code)) where deleted_at is null
  and code is not null;
create index floor_plans_project on app_public.floor_plans (project_id, sequence, id) where deleted_at is null;
create index floor_plans_organization on app_public.floor_plans (organization_id, id) where deleted_at is null;

-- The team sees everything; whoever sees the project sees what is offered there.
-- PERF: (select true …) looks each project up by its id; exists (…) may be planned as a hash of all projects there are.
alter table app_public.floor_plans enable row level security;
