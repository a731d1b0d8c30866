--! Previous: sha1:e583a3ab8d2608c2dfc0a766ffa6234c1a8ee759
--! Hash: sha1:0c892afe8752884b9c23aeefb7f87b87eefdd902
--! Message: units

-- Units: the homes that are sold. What a unit does not say itself it has from its floor plan; both stand in the row, what
-- was given (bedrooms) and what holds (effective_bedrooms), so that lists filter and sort by what holds along an index.

select app_private.create_enum('unit_status', 'How far the sale of a unit is.', array[
  ['UNRELEASED', 'Not offered yet; seen by the team only.'], ['AVAILABLE', 'For sale.'], ['HELD', 'Held for somebody for a short time.'],
  ['RESERVED', 'Has an active reservation.'], ['PENDING', 'An offer was accepted, or the purchase is not signed yet.'], ['SOLD', 'Sold.'],
  ['CLOSED', 'Handed over.'], ['OFF_MARKET', 'Not for sale now.']]);
select app_private.create_enum('unit_construction_status', 'How far the construction of a unit is, in order.', array[
  ['NOT_STARTED', 'Nothing has begun.'], ['PERMITTED', 'The permit is there.'], ['SITE_WORK', 'The site is prepared.'], ['FOUNDATION', 'Foundation.'],
  ['FRAMING', 'Framing.'], ['ROUGH_IN', 'Pipes and wires.'], ['INSULATION', 'Insulation.'], ['DRYWALL', 'Drywall.'],
  ['INTERIOR_FINISHES', 'Interior finishes.'], ['EXTERIOR_FINISHES', 'Exterior finishes.'], ['FINAL_INSPECTION', 'Final inspection.'],
  ['COMPLETED', 'Complete.'], ['DELIVERED', 'Handed over to its buyer.']]);
select app_private.create_enum('standard_status', 'The status of a listing in the words of the RESO Data Dictionary.', array[
  ['ACTIVE', 'For sale.'], ['ACTIVE_UNDER_CONTRACT', 'For sale, with an accepted reservation.'], ['CANCELED', 'The listing was cancelled.'], ['CLOSED', 'Closed.'],
  ['COMING_SOON', 'Will be for sale.'], ['DELETE', 'Is to be removed.'], ['EXPIRED', 'The listing is over.'], ['HOLD', 'Held for a short time.'],
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
  constraint units_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete restrict,
  constraint units_floor_plan_id_fkey foreign key (floor_plan_id, project_id) references app_public.floor_plans (id, project_id) on delete restrict,
  constraint units_lot_id_fkey foreign key (lot_id, project_id) references app_public.lots (id, project_id) on delete restrict
);
comment on constraint units_level_range on app_public.units is 'Give a level between -20 and 300.';
comment on constraint units_bedrooms_range on app_public.units is 'Give 0 to 99 bedrooms.';
comment on constraint units_baths_range on app_public.units is 'Give 0 to 99 baths.';
comment on constraint units_half_baths_range on app_public.units is 'Give 0 to 99 half baths.';
comment on constraint units_garage_range on app_public.units is 'Give room for 0 to 99 cars.';
comment on constraint units_sqft_range on app_public.units is 'Give 1 to 10,000,000 square feet.';
comment on constraint units_priced on app_public.units is 'A unit that is for sale needs a price.';
create unique index units_number on app_public.units (project_id, lower(number)) where deleted_at is null and number is not null;
comment on index app_public.units_number is 'There is a unit with this number in the project already.';
create index units_organization on app_public.units (organization_id, id) where deleted_at is null;
create index units_organization_status on app_public.units (organization_id, status, id) where deleted_at is null;
create index units_project on app_public.units (project_id, id) where deleted_at is null;
create index units_project_status on app_public.units (project_id, status, id) where deleted_at is null;
create index units_floor_plan on app_public.units (floor_plan_id, id) where deleted_at is null;
create index units_floor_plan_available on app_public.units (floor_plan_id, price) where deleted_at is null and status = 'AVAILABLE';
create index units_project_available on app_public.units (project_id, price) where deleted_at is null and status = 'AVAILABLE';
create index units_lot on app_public.units (lot_id, id) where deleted_at is null;
create index units_sold on app_public.units (sold_at desc, id desc) where deleted_at is null and sold_at is not null;

alter table app_public.units enable row level security;
create policy team_and_public on app_public.units for select to plat_user
  using (deleted_at is null and (
    organization_id = any (array(select app_hidden.viewer_organizations('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('construction.write')))
    or (status <> 'UNRELEASED' and (select true from app_public.projects p where p.id = project_id))));
create policy everybody on app_public.units for select to plat_anonymous
  using (deleted_at is null and status <> 'UNRELEASED' and (select true from app_public.projects p where p.id = project_id));
create policy managers_insert on app_public.units for insert to plat_user
  with check (organization_id = any (array(select app_hidden.viewer_organizations('inventory.manage'))));
-- Who may change only some columns is refused the others by app_private.tg__column_permissions.
create policy team_update on app_public.units for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('inventory.describe')))
    or project_id = any (array(select app_hidden.viewer_projects('construction.write'))));
create policy managers_delete on app_public.units for delete to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('inventory.manage'))));
grant select on app_public.units to plat_user, plat_anonymous, plat_worker;
grant insert (project_id, title, number, subtitle, description, floor_plan_id, lot_id, building, level, phase, status, price, hoa_fee, bedrooms, baths,
  half_baths, garage, sqft, orientation, view, address, model, is_spec, is_bmr, is_furnished, is_accessible, mls_id, construction_status,
  listing_date, estimated_delivery_date, metadata) on app_public.units to plat_user;
grant update (title, number, subtitle, description, floor_plan_id, lot_id, building, level, phase, status, price, hoa_fee, bedrooms, baths,
  half_baths, garage, sqft, orientation, view, address, model, is_spec, is_bmr, is_furnished, is_accessible, mls_id, construction_status,
  listing_date, estimated_delivery_date, metadata), delete on app_public.units to plat_user;
insert into app_hidden.column_permissions (table_name, column_name, permission)
  select 'units', unnest(array['title', 'subtitle', 'description', 'view', 'orientation', 'metadata']), 'inventory.describe'
  union all select 'units', unnest(array['construction_status', 'estimated_delivery_date']), 'construction.write';

select app_private.make_project_record('units', 'unit', 'inventory.manage');
update app_hidden.record_types set event_permission = 'inventory.read' where table_name = 'units';
insert into app_private.event_names (subject, column_name, value, name) values ('unit', 'price', null, 'price_changed');
select app_private.make_state_machine('units', 'unit', steps => app_private.inventory_steps(),
  initial => array['UNRELEASED', 'AVAILABLE', 'OFF_MARKET'],
  requirements => array[['AVAILABLE', 'price', 'A unit that is for sale needs a price.']]);
create trigger _040_columns before update on app_public.units for each row execute function app_private.tg__column_permissions('inventory.manage');

--------------------------------------------------------------------------------------------------------

create function app_private.tg_units__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project record;
  plan_bedrooms int;
  plan_baths int;
  plan_half_baths int;
  plan_garage int;
  plan_sqft int;
  plan_hoa_fee numeric;
  plan_orientation text;
  is_new boolean := tg_op = 'INSERT';
begin
  if is_new or (new.address is distinct from null and (new.address).country is null) or (new.listing_date is null and new.status = 'AVAILABLE') then
    select p.currency, p.time_zone, (p.address).country as country into project from app_public.projects p where p.id = new.project_id;
  end if;
  if is_new then
    new.currency := project.currency;
  end if;
  if new.address is distinct from null and (new.address).country is null then
    new.address.country := coalesce(project.country, 'US');
  end if;
  -- PERF: whatever is assigned has its domain checked once more, so only what changes is.
  if new.price is not null and (is_new or new.price is distinct from old.price) then
    new.price := app_hidden.to_money(new.price, new.currency, 'price');
  end if;
  if new.hoa_fee is not null and (is_new or new.hoa_fee is distinct from old.hoa_fee) then
    new.hoa_fee := app_hidden.to_money(new.hoa_fee, new.currency, 'hoaFee');
  end if;
  if new.price is null and new.status not in ('UNRELEASED', 'OFF_MARKET') then
    perform app_hidden.fail('BAD_USER_INPUT', 'A unit that is for sale needs a price.', '{"field": "price"}');
  end if;

  if new.lot_id is not null and (is_new or new.lot_id is distinct from old.lot_id) and not exists (
    select from app_public.lots l where l.id = new.lot_id and l.project_id = new.project_id and l.deleted_at is null) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lot in this project.', '{"field": "lotId"}');
  end if;
  if is_new or row(new.floor_plan_id, new.bedrooms, new.baths, new.half_baths, new.garage, new.sqft, new.hoa_fee, new.orientation)
    is distinct from row(old.floor_plan_id, old.bedrooms, old.baths, old.half_baths, old.garage, old.sqft, old.hoa_fee, old.orientation) then
    if new.floor_plan_id is not null then
      -- Locked, so that a change of the plan in another transaction is either seen here or reaches this row.
      select f.bedrooms, f.baths, f.half_baths, f.garage, f.sqft, f.hoa_fee, f.orientation
        into plan_bedrooms, plan_baths, plan_half_baths, plan_garage, plan_sqft, plan_hoa_fee, plan_orientation
        from app_public.floor_plans f where f.id = new.floor_plan_id and f.project_id = new.project_id and f.deleted_at is null for share;
      if not found then
        perform app_hidden.fail('NOT_FOUND', 'There is no such floor plan in this project.', '{"field": "floorPlanId"}');
      end if;
    end if;
    new.effective_bedrooms := coalesce(new.bedrooms, plan_bedrooms);
    new.effective_baths := coalesce(new.baths, plan_baths);
    new.effective_half_baths := coalesce(new.half_baths, plan_half_baths);
    new.effective_garage := coalesce(new.garage, plan_garage);
    new.effective_sqft := coalesce(new.sqft, plan_sqft);
    new.effective_hoa_fee := coalesce(new.hoa_fee, plan_hoa_fee);
    new.effective_orientation := coalesce(new.orientation, plan_orientation);
  end if;

  if is_new or new.construction_status is distinct from old.construction_status then
    new.move_in_ready := new.construction_status in ('COMPLETED', 'DELIVERED');
  end if;
  if new.status = 'AVAILABLE' then
    if new.listing_date is null then
      new.listing_date := (now() at time zone project.time_zone)::date;
    end if;
    if new.original_list_price is null then
      new.original_list_price := new.price;
    end if;
  end if;
  if is_new or new.status is distinct from old.status then
    -- Days on market count while it is AVAILABLE or HELD.
    if new.status in ('AVAILABLE', 'HELD') then
      new.market_since := coalesce(new.market_since, now());
      new.market_before := coalesce(new.market_before, '0');
    elsif new.market_since is not null then
      new.market_before := new.market_before + (now() - new.market_since);
      new.market_since := null;
    end if;
    if new.status = 'SOLD' then
      new.sold_at := coalesce(new.sold_at, now());
      if new.sold_price is null then
        new.sold_price := new.price;
      end if;
    elsif new.status = 'CLOSED' then
      new.closed_at := coalesce(new.closed_at, now());
    elsif new.sold_at is not null then
      new.sold_at := null;
      new.sold_price := null;
    end if;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.units for each row execute function app_private.tg_units__prepare();

create function app_private.tg_floor_plans__units() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.units u set
    effective_bedrooms = coalesce(u.bedrooms, new.bedrooms), effective_baths = coalesce(u.baths, new.baths),
    effective_half_baths = coalesce(u.half_baths, new.half_baths), effective_garage = coalesce(u.garage, new.garage),
    effective_sqft = coalesce(u.sqft, new.sqft), effective_hoa_fee = coalesce(u.hoa_fee, new.hoa_fee),
    effective_orientation = coalesce(u.orientation, new.orientation)
  where u.floor_plan_id = new.id;
  return null;
end $$;
create trigger _500_units after update on app_public.floor_plans for each row
  when (row(old.bedrooms, old.baths, old.half_baths, old.garage, old.sqft, old.hoa_fee, old.orientation)
    is distinct from row(new.bedrooms, new.baths, new.half_baths, new.garage, new.sqft, new.hoa_fee, new.orientation))
  execute function app_private.tg_floor_plans__units();
