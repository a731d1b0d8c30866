--! Previous: sha1:5a14dfbf1432832759908cb996f30d23a63a9266
--! Hash: sha1:9884fd1207042cf4e222a14cefd4b3f1c92f8f41
--! Message: lots

-- Lots.

select app_private.create_enum('lot_status', 'How far the sale of a lot is.', array[
  ['UNRELEASED', 'Not offered yet; seen by the team only.'], ['AVAILABLE', 'For sale.'],
  ['HELD', 'Held for somebody for a short time.'], ['RESERVED', 'Has an active reservation.'],
  ['PENDING', 'An offer was accepted, or the purchase is not signed yet.'], ['SOLD', 'Sold.'],
  ['CLOSED', 'Handed over.'], ['OFF_MARKET', 'Not for sale now.']]);
select app_private.create_enum('lot_feature', 'What a lot is like.', array[
  ['CORNER', 'At a corner.'], ['CUL_DE_SAC', 'At the end of a street.'], ['WATERFRONT', 'At the water.'],
  ['GOLF_COURSE', 'At a golf course.'], ['PARK_VIEW', 'Looks on a park.'],
  ['WALKOUT', 'Basement with a door to the garden.'], ['WOODED', 'With trees.'], ['END_UNIT', 'At the end of a row.'],
  ['FLAT', 'Flat.'], ['SLOPED', 'On a slope.']]);

create table app_public.lots (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  title app_public.short_text not null,
  number app_public.short_text not null,
  block app_public.short_text,
  phase app_public.short_text,
  status app_public.lot_status not null default 'UNRELEASED',
  status_changed_at timestamptz not null default now(),
  price app_public.money,
  premium app_public.money,
  currency app_public.currency_code not null,
  address app_public.address,
  area_sqft int constraint lots_area_sqft_range check (area_sqft between 1 and 2000000000),
  orientation app_public.orientation,
  features app_public.lot_feature[] not null default '{}',
  parcel_number app_public.short_text,
  multi_unit boolean not null default false,
  metadata jsonb,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  constraint lots_priced check (status in ('UNRELEASED', 'OFF_MARKET') or price is not null),
  unique (id, project_id),
  constraint lots_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict
);
create unique index lots_number on app_public.lots (project_id, lower(number)) where deleted_at is null;
create index lots_project on app_public.lots (project_id, id) where deleted_at is null;
create index lots_organization on app_public.lots (organization_id, id) where deleted_at is null;
alter table app_public.lots enable row level security;
