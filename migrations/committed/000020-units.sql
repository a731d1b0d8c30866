--! Previous: sha1:9884fd1207042cf4e222a14cefd4b3f1c92f8f41
--! Hash: sha1:e46fd9249b63fa4835d42f0a2775c966e0165706
--! Message: units

-- Units: the homes that are sold.

select app_private.create_enum('unit_status', 'How far the sale of a unit is.', array[
  ['UNRELEASED', 'Not offered yet; seen by the team only.'], ['AVAILABLE', 'For sale.'],
  ['HELD', 'Held for somebody for a short time.'], ['RESERVED', 'Has an active reservation.'],
  ['PENDING', 'An offer was accepted, or the purchase is not signed yet.'], ['SOLD', 'Sold.'],
  ['CLOSED', 'Handed over.'], ['OFF_MARKET', 'Not for sale now.']]);
select app_private.create_enum('unit_construction_status', 'How far the construction of a unit is, in order.', array[
  ['NOT_STARTED', 'Nothing has begun.'], ['PERMITTED', 'The permit is there.'], ['SITE_WORK', 'The site is prepared.'],
  ['FOUNDATION', 'Foundation.'], ['FRAMING', 'Framing.'], ['ROUGH_IN', 'Pipes and wires.'],
  ['INSULATION', 'Insulation.'], ['DRYWALL', 'Drywall.'], ['INTERIOR_FINISHES', 'Interior finishes.'],
  ['EXTERIOR_FINISHES', 'Exterior finishes.'], ['FINAL_INSPECTION', 'Final inspection.'], ['COMPLETED', 'Complete.'],
  ['DELIVERED', 'Handed over to its buyer.']]);
select app_private.create_enum('standard_status', 'The status of a listing in the words of the RESO Data Dictionary.',
  array[
  ['ACTIVE', 'For sale.'], ['ACTIVE_UNDER_CONTRACT', 'For sale, with an accepted reservation.'],
  ['CANCELED', 'The listing was cancelled.'], ['CLOSED', 'Closed.'],
  ['COMING_SOON', 'Will be for sale.'], ['DELETE', 'Is to be removed.'], ['EXPIRED', 'The listing is over.'],
  ['HOLD', 'Held for a short time.'],
  ['INCOMPLETE', 'Being prepared.'], ['PENDING', 'Under contract.'], ['WITHDRAWN', 'Not for sale now.']]);

create table app_public.units (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  floor_plan_id uuid,
  lot_id uuid,
  title app_public.short_text not null,
  number app_public.short_text,
  subtitle app_public.short_text,
  description app_public.long_text,
  building app_public.short_text,
  level int constraint units_level_range check (level between -20 and 300),
  phase app_public.short_text,
  status app_public.unit_status not null default 'UNRELEASED',
  status_changed_at timestamptz not null default now(),
  price app_public.money,
  original_list_price app_public.money,
  currency app_public.currency_code not null,
  bedrooms int constraint units_bedrooms_range check (bedrooms between 0 and 99),
  baths int constraint units_baths_range check (baths between 0 and 99),
  half_baths int constraint units_half_baths_range check (half_baths between 0 and 99),
  garage int constraint units_garage_range check (garage between 0 and 99),
  sqft int constraint units_sqft_range check (sqft between 1 and 10000000),
  hoa_fee app_public.money,
  orientation app_public.orientation,
  effective_bedrooms int,
  effective_baths int,
  effective_half_baths int,
  effective_garage int,
  effective_sqft int,
  effective_hoa_fee app_public.money,
  effective_orientation app_public.orientation,
  view app_public.short_text,
  address app_public.address,
  model boolean not null default false,
  is_spec boolean not null default false,
  is_bmr boolean not null default false,
  is_furnished boolean not null default false,
  is_accessible boolean not null default false,
  mls_id app_public.short_text,
  construction_status app_public.unit_construction_status not null default 'NOT_STARTED',
  listing_date date,
  estimated_delivery_date date,
  move_in_ready boolean not null default false,
  sold_at timestamptz,
  sold_price app_public.money,
  closed_at timestamptz,
  market_since timestamptz,
  market_before interval,
  metadata jsonb,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  constraint units_priced check (status in ('UNRELEASED', 'OFF_MARKET') or price is not null),
  unique (id, project_id),
  constraint units_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint units_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete restrict,
  constraint units_lot_id_fkey foreign key (lot_id, project_id)
    references app_public.lots (id, project_id) on delete restrict
);
create unique index units_number on app_public.units (project_id, lower(number)) where deleted_at is null
  and number is not null;
create index units_organization on app_public.units (organization_id, id) where deleted_at is null;
create index units_organization_status on app_public.units (organization_id, status, id) where deleted_at is null;
create index units_project on app_public.units (project_id, id) where deleted_at is null;
create index units_project_status on app_public.units (project_id, status, id) where deleted_at is null;
create index units_floor_plan on app_public.units (floor_plan_id, id) where deleted_at is null;
create index units_floor_plan_available on app_public.units (floor_plan_id, price) where deleted_at is null
  and status = 'AVAILABLE';
create index units_lot on app_public.units (lot_id, id) where deleted_at is null;
create index units_sold on app_public.units (sold_at desc, id desc) where deleted_at is null and sold_at is not null;
create index units_project_available on app_public.units (project_id, price) include (effective_bedrooms)
  where deleted_at is null and status = 'AVAILABLE';
alter table app_public.units enable row level security;

create type app_public.project_abstract as (
  units_total int, units_available int, units_reserved int, units_sold int, units_move_in_ready int, price_min numeric,
    price_max numeric,
  bedrooms_min int, bedrooms_max int, sqft_min int, sqft_max int, is_sold_out boolean
);

create domain app_public.units_filter as jsonb;
