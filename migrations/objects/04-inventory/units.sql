-- Units: the homes for sale. Values that a unit does not define come from its floor plan; the row stores both the given
-- value (bedrooms) and the effective one (effective_bedrooms), so that lists filter and sort by the latter with an
-- index.

create policy team_and_public on app_public.units for select to plat_user
  using (deleted_at is null and (
    organization_id = any ((select app_hidden.viewer_organizations('inventory.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('inventory.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('construction.write'))::uuid[])
    or id = any (array(select app_hidden.viewer_purchase_units()))
    or (status <> 'UNRELEASED' and project_id <> all (array(select app_hidden.viewer_bought_projects()))
      and (select true from app_public.projects p where p.id = project_id))));
create policy everybody on app_public.units for select to plat_anonymous
  using (deleted_at is null and status <> 'UNRELEASED'
    and (select true from app_public.projects p where p.id = project_id));
create policy managers_insert on app_public.units for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('inventory.manage'))::uuid[]));

-- For users who may only change some columns, app_private.tg__column_permissions refuses the others.
create policy team_update on app_public.units for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('inventory.describe'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('construction.write'))::uuid[]));
create policy managers_delete on app_public.units for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('inventory.manage'))::uuid[]));

select app_private.make_record('units', 'unit', 'inventory.manage', event_permission => 'inventory.read');
select app_private.make_state_machine('units', 'unit', steps => app_private.inventory_steps(),
  initial => array['UNRELEASED', 'AVAILABLE', 'OFF_MARKET'],
  requirements => array[['AVAILABLE', 'price', 'A unit that is for sale must have a price.']]);
select app_private.make_searchable('units', 'UNIT', 'concat_ws('' '', r.title, r.number)',
  'concat_ws('' '', r.subtitle, r.building, r.mls_id, (r.address).thoroughfare)',
    offered => 'r.status <> ''UNRELEASED''');

grant select on app_public.units to plat_user, plat_anonymous;
grant insert (project_id, title, number, subtitle, description, floor_plan_id, lot_id, building, level, phase, status,
  price, hoa_fee, bedrooms, baths, half_baths, garage, sqft, orientation, view, address, model, is_spec, is_bmr,
  is_furnished, is_accessible, mls_id, construction_status, listing_date, estimated_delivery_date, metadata) on
  app_public.units to plat_user;
grant update (title, number, subtitle, description, floor_plan_id, lot_id, building, level, phase, status, price,
  hoa_fee, bedrooms, baths, half_baths, garage, sqft, orientation, view, address, model, is_spec, is_bmr, is_furnished,
  is_accessible, mls_id, construction_status, listing_date, estimated_delivery_date, metadata), delete on
  app_public.units to plat_user;

comment on table app_public.units is $$
@portfolio project.read
@publicRows
@connectionArgument projectId
@defaultOrder id asc
@filterLists status

A home for sale.$$;
comment on column app_public.units.project_id is
  E'@filter projectIds\n@formerFilter projectId Removed after 2028-01-01.\n\nThe project that it belongs to.';
comment on column app_public.units.floor_plan_id is
  E'@filter floorPlanIds\n\nId of the floor plan that the unit is built to.';
comment on column app_public.units.lot_id is E'@filter lotIds\n\nId of the lot on which the unit is built.';
comment on column app_public.units.title is 'Display name, such as Suite 1204.';
comment on column app_public.units.number is 'Number, unique in the project.';
comment on column app_public.units.subtitle is 'Subtitle, shown below the title.';
comment on column app_public.units.description is 'Description for the public page.';
comment on column app_public.units.building is 'Building or tower.';
comment on column app_public.units.level is E'@measures rank\n@filter\n\nFloor that the unit is on.';
comment on column app_public.units.phase is 'Phase of the project.';
comment on column app_public.units.status is E'@filter\n\nSales status.';
comment on column app_public.units.status_changed_at is 'When the status last changed.';
comment on column app_public.units.price is E'@masked\n\nList price in the currency of the project.';
comment on column app_public.units.original_list_price is
  E'@masked\n\nList price when the unit first became AVAILABLE.';
comment on column app_public.units.currency is 'Currency of its amounts: the one of the project.';
comment on column app_public.units.bedrooms is E'@writeOnly\n\nNumber of bedrooms; null for those of the floor plan.';
comment on column app_public.units.baths is
  E'@writeOnly\n\nNumber of full bathrooms; null for those of the floor plan.';
comment on column app_public.units.half_baths is
  E'@writeOnly\n\nNumber of half bathrooms (without bath or shower); null for those of the floor plan.';
comment on column app_public.units.garage is
  E'@writeOnly\n\nNumber of cars that fit in the garage; null for those of the floor plan.';
comment on column app_public.units.sqft is E'@writeOnly\n\nArea in square feet; null for that of the floor plan.';
comment on column app_public.units.hoa_fee is
  E'@writeOnly\n\nMonthly fee of the homeowners'' association (HOA); null for the one of the floor plan.';
comment on column app_public.units.orientation is
  E'@writeOnly\n\nCompass direction that it faces; null for the one of the floor plan.';
comment on column app_public.units.effective_bedrooms is
  E'@measures quantity\n@secret\n@name bedrooms\n@filter bedrooms\n\n'
  'Number of bedrooms; inherited from the floor plan if not set.';
comment on column app_public.units.effective_baths is
  E'@measures quantity\n@secret\n@name baths\n@filter baths\n\n'
  'Number of full bathrooms; inherited from the floor plan if not set.';
comment on column app_public.units.effective_half_baths is
  E'@measures quantity\n@secret\n@name half_baths\n\n'
  'Number of half bathrooms (without bath or shower); inherited from the floor plan if not set.';
comment on column app_public.units.effective_garage is
  E'@measures quantity\n@secret\n@name garage\n\nNumber of garage spaces; inherited from the floor plan if not set.';
comment on column app_public.units.effective_sqft is
  E'@measures quantity\n@secret\n@name sqft\n@filter sqft\n\n'
  'Area in square feet; inherited from the floor plan if not set.';
comment on column app_public.units.effective_hoa_fee is
  E'@secret\n@name hoa_fee\n\n'
  'Monthly fee of the homeowners'' association (HOA); inherited from the floor plan if not set.';
comment on column app_public.units.effective_orientation is
  E'@secret\n@name orientation\n\nDirection that it faces; inherited from the floor plan if not set.';
comment on column app_public.units.view is 'Surroundings visible from the windows, such as Lake or Courtyard.';
comment on column app_public.units.address is 'Postal address.';
comment on column app_public.units.model is 'Whether it is a model home.';
comment on column app_public.units.is_spec is 'Whether it is a spec home: built before it is sold.';
comment on column app_public.units.is_bmr is E'@filter\n\nWhether it is sold below market rate.';
comment on column app_public.units.is_furnished is 'Whether the home is sold with furniture.';
comment on column app_public.units.is_accessible is 'Whether it is accessible without steps.';
comment on column app_public.units.mls_id is 'Listing id in the multiple listing service (MLS).';
comment on column app_public.units.construction_status is
  E'@filter\n\nConstruction phase that the builder has reached.';
comment on column app_public.units.listing_date is 'Listing date; set when the unit becomes AVAILABLE.';
comment on column app_public.units.estimated_delivery_date is E'@masked\n\nExpected handover date.';
comment on column app_public.units.move_in_ready is E'@filter\n\nWhether construction is complete.';
comment on column app_public.units.sold_at is
  'When the unit was sold; null until then. `recentlySoldUnits` is sorted by it.';
comment on column app_public.units.sold_price is E'@masked\n\nSale price, as agreed in the purchase.';
comment on column app_public.units.closed_at is 'Date of handover to the buyer.';
comment on column app_public.units.market_since is
  E'@secret\n@behavior -*\n\nSince when it is on the market; null when it is not.';
comment on column app_public.units.market_before is
  E'@secret\n@behavior -*\n\nHow long it was on the market before that.';
comment on column app_public.units.updated_at is E'@filter\n\nWhen the record was last changed.';
comment on column app_public.units.metadata is
  E'@masked\n\nArbitrary JSON for the organization''s own programs; not interpreted.';
comment on constraint units_level_range on app_public.units is 'The level must be from -20 to 300.';
comment on constraint units_bedrooms_range on app_public.units is 'Must be from 0 to 99 bedrooms.';
comment on constraint units_baths_range on app_public.units is 'Must be from 0 to 99 baths.';
comment on constraint units_half_baths_range on app_public.units is 'Must be from 0 to 99 half baths.';
comment on constraint units_garage_range on app_public.units is 'Must be from 0 to 99 cars.';
comment on constraint units_sqft_range on app_public.units is 'Must be from 1 to 10,000,000 square feet.';
comment on constraint units_priced on app_public.units is 'A unit that is for sale must have a price.';
comment on constraint units_project_id_fkey on app_public.units is
  E'@parent\n'
  '@fieldName project\n'
  '@foreignFieldName units\n'
  '@backwardDescription Units; for non-members only released ones.\n\n'
  'The project that it belongs to.';
comment on constraint units_floor_plan_id_fkey on app_public.units is
  E'@fieldName floorPlan\n@foreignFieldName units\n@backwardDescription Units built to this plan.\n\n'
  'Id of the floor plan that the unit is built to.';
comment on constraint units_lot_id_fkey on app_public.units is
  E'@fieldName lot\n@foreignFieldName units\n@backwardDescription Units that are built on the lot.\n\n'
  'Id of the lot on which the unit is built.';
comment on index app_public.units_number is 'There is already a unit with this number in the project.';

insert into app_hidden.column_permissions (table_name, column_name, permission)
  select 'units', unnest(array['title', 'subtitle', 'description', 'view', 'orientation', 'metadata']),
    'inventory.describe'
  union all select 'units', unnest(array['construction_status', 'estimated_delivery_date']), 'construction.write';
create trigger _060_refuse_archived before update or delete on app_public.units
  for each row execute function app_private.tg__refuse_archived();

insert into app_private.event_names (subject, column_name, value, name) values ('unit', 'price', null, 'price_changed');

create trigger _040_columns before update on app_public.units for each row
  execute function app_private.tg__column_permissions('inventory.manage');

-- Units. A row that somebody creates is completed when it is inserted. Functions of the service that insert many
-- rows complete them in one query; inserted rows are checked together in any case.
create function app_private.tg_units__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  is_new constant boolean := tg_op = 'INSERT';
  archived_at timestamptz;
  zone text;
  country text;
begin
  if is_new then
    select p.organization_id, p.currency, p.archived_at, p.time_zone, (p.address).country
      into new.organization_id, new.currency, archived_at, zone, country from app_public.projects p
        where p.id = new.project_id;
    if archived_at is not null then
      perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
    end if;
  elsif (new.listing_date is null and new.status = 'AVAILABLE')
    or (new.address is distinct from null and (new.address).country is null) then
    select p.time_zone, (p.address).country into zone, country from app_public.projects p where p.id = new.project_id;
  end if;
  if new.address is distinct from null and (new.address).country is null then
    new.address.country := coalesce(country, 'US');
  end if;
  -- PERF: assigning a column checks its domain again, so only changed columns are assigned.
  if new.price is not null and (is_new or new.price is distinct from old.price) then
    new.price := app_hidden.to_money(new.price, new.currency, 'price');
  end if;
  if new.hoa_fee is not null and (is_new or new.hoa_fee is distinct from old.hoa_fee) then
    new.hoa_fee := app_hidden.to_money(new.hoa_fee, new.currency, 'hoaFee');
  end if;
  if new.price is null and new.status not in ('UNRELEASED', 'OFF_MARKET') then
    perform app_hidden.fail('BAD_USER_INPUT', 'A unit that is for sale must have a price.', '{"field": "price"}');
  end if;

  if new.lot_id is not null and (is_new or new.lot_id is distinct from old.lot_id) and not exists (
    select from app_public.lots l where l.id = new.lot_id and l.project_id = new.project_id and l.deleted_at is null)
      then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lot in this project.', '{"field": "lotId"}');
  end if;
  if is_new or row(new.floor_plan_id, new.bedrooms, new.baths, new.half_baths, new.garage, new.sqft, new.hoa_fee,
    new.orientation)
    is distinct from row(old.floor_plan_id, old.bedrooms, old.baths, old.half_baths, old.garage, old.sqft, old.hoa_fee,
      old.orientation) then
    if new.floor_plan_id is null then
      select new.bedrooms, new.baths, new.half_baths, new.garage, new.sqft, new.hoa_fee, new.orientation
        into new.effective_bedrooms, new.effective_baths, new.effective_half_baths, new.effective_garage,
          new.effective_sqft, new.effective_hoa_fee,
          new.effective_orientation;
    else
      -- Locked, so that a change of the plan in another transaction is either seen here or reaches this row.
      select coalesce(new.bedrooms, f.bedrooms), coalesce(new.baths, f.baths), coalesce(new.half_baths, f.half_baths),
          coalesce(new.garage, f.garage), coalesce(new.sqft, f.sqft), coalesce(new.hoa_fee, f.hoa_fee),
            coalesce(new.orientation, f.orientation)
        into new.effective_bedrooms, new.effective_baths, new.effective_half_baths, new.effective_garage,
          new.effective_sqft, new.effective_hoa_fee,
          new.effective_orientation
        from app_public.floor_plans f where f.id = new.floor_plan_id and f.project_id = new.project_id
          and f.deleted_at is null for share;
      if not found then
        perform app_hidden.fail('NOT_FOUND', 'There is no such floor plan in this project.',
          '{"field": "floorPlanId"}');
      end if;
    end if;
  end if;

  if is_new or new.construction_status is distinct from old.construction_status then
    new.move_in_ready := new.construction_status in ('COMPLETED', 'DELIVERED');
  end if;
  if new.status = 'AVAILABLE' then
    if new.listing_date is null then
      new.listing_date := (now() at time zone zone)::date;
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

create trigger _310_claimed before update on app_public.units for each row
  when (old.status is distinct from new.status or old.lot_id is distinct from new.lot_id)
    execute function app_private.tg__claimed();

create trigger _300_claimed before delete on app_public.units for each row execute function app_private.tg__claimed();

create function app_public.units_price(u app_public.units) returns app_public.money
language sql stable as $$
  select case when u.price is not null and (u.status = 'AVAILABLE' or app_hidden.project_can(u.project_id,
    u.organization_id, 'inventory.read')) then u.price end
$$;

create function app_public.units_original_list_price(u app_public.units) returns app_public.money
language sql stable as $$ select case when u.original_list_price is not null
  and app_hidden.project_can(u.project_id, u.organization_id, 'inventory.read') then u.original_list_price end $$;

create function app_public.units_sold_price(u app_public.units) returns app_public.money
language sql stable as $$ select case when u.sold_price is not null
  and app_hidden.project_can(u.project_id, u.organization_id, 'sale.read') then u.sold_price end $$;

create function app_public.units_metadata(u app_public.units) returns jsonb
language sql stable as $$ select case when u.metadata is not null
  and app_hidden.project_can(u.project_id, u.organization_id, 'inventory.read') then u.metadata end $$;

create function app_public.units_estimated_delivery_date(u app_public.units) returns date
language sql stable as $$
  select case
    when u.estimated_delivery_date is null then null
    when app_hidden.project_can(u.project_id, u.organization_id, 'inventory.read')
      or app_hidden.project_can(u.project_id, u.organization_id, 'construction.write') then u.estimated_delivery_date
    else date_trunc('month', u.estimated_delivery_date)::date end
$$;

create function app_public.units_ppsf(u app_public.units) returns numeric
language sql stable as $$ select round(app_public.units_price(u) / nullif(u.effective_sqft, 0), 2) $$;

create function app_public.units_floor_plan_overrides(u app_public.units) returns jsonb
language sql stable as $$
  select case when u.floor_plan_id is null then '{}'
    else jsonb_strip_nulls(jsonb_build_object('bedrooms', u.bedrooms, 'baths', u.baths, 'halfBaths', u.half_baths,
    'garage', u.garage, 'sqft', u.sqft, 'hoaFee', u.hoa_fee::text, 'orientation', u.orientation)) end
$$;

create function app_public.units_standard_status(u app_public.units) returns app_public.standard_status
language sql stable as $$
  select (case u.status when 'UNRELEASED' then 'COMING_SOON' when 'AVAILABLE' then 'ACTIVE' when 'HELD' then 'HOLD'
    when 'RESERVED' then 'ACTIVE_UNDER_CONTRACT' when 'PENDING' then 'PENDING' when 'SOLD' then 'PENDING' when 'CLOSED'
      then 'CLOSED'
    else 'WITHDRAWN' end)::app_public.standard_status
$$;

create function app_public.units_days_on_market(u app_public.units) returns int
language sql stable as $$
  select floor(extract(epoch from u.market_before + coalesce(now() - u.market_since, '0')) / 86400)::int
$$;

create function app_public.units_allowed_transitions(u app_public.units) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('unit',
  jsonb_build_object('status', u.status, 'price', u.price)) $$;

create function app_public.units_filter_price(u app_public.units, value numrange) returns boolean
language sql stable as $$ select coalesce(u.price::numeric <@ value, false) $$;

create function app_public.units_filter_delivery_date(u app_public.units, value daterange) returns boolean
language sql stable as $$ select u.estimated_delivery_date <@ value $$;

create function app_public.units_filter_query(u app_public.units, value text) returns boolean
language sql stable as $$
  select app_hidden.contains_words(concat_ws(' ', u.title, u.subtitle, u.number, u.building, u.mls_id,
    (u.address).thoroughfare), value)
$$;

create function app_public.units_price_history(u app_public.units) returns setof app_public.price_changes
language sql stable rows 5 as $$ select c.* from app_public.price_changes c where c.subject_id = u.id
  order by c.event_id desc $$;

grant execute on function app_public.units_price, app_public.units_original_list_price, app_public.units_sold_price,
  app_public.units_metadata, app_public.units_estimated_delivery_date, app_public.units_ppsf,
  app_public.units_floor_plan_overrides, app_public.units_standard_status, app_public.units_days_on_market,
  app_public.units_allowed_transitions, app_public.units_filter_price, app_public.units_filter_delivery_date,
  app_public.units_filter_query, app_public.floor_plans_price_min, app_public.floor_plans_available_count,
  app_public.floor_plans_filter_price, app_public.units_price_history, app_public.lots_price_history,
  app_public.recently_sold_units, app_public.projects_filter_price, app_public.projects_filter_bedrooms to plat_user,
  plat_anonymous;
comment on function app_public.units_price is
  'List price in the currency of the project. Visible to non-members while the unit is AVAILABLE.';
comment on function app_public.units_original_list_price is
  'List price when the unit first became AVAILABLE; null without the permission inventory.read.';
comment on function app_public.units_sold_price is
  'Sale price, as agreed in the purchase; null without the permission sale.read.';
comment on function app_public.units_metadata is
  'Arbitrary JSON for the organization''s own programs; not interpreted; null without the permission inventory.read.';
comment on function app_public.units_estimated_delivery_date is
  'Expected handover date; for non-members the first of that month.';
comment on function app_public.units_ppsf is E'@measures ratio\n@reads price\n\nPrice per square foot.';
comment on function app_public.units_floor_plan_overrides is 'Fields whose values differ from the floor plan.';
comment on function app_public.units_standard_status is
  E'@notNull\n\nListing status as defined by the RESO Data Dictionary, derived from `status`.';
comment on function app_public.units_days_on_market is
  E'@measures ratio\n\nNumber of full days on the market (AVAILABLE or HELD); null if it never was.';
comment on function app_public.units_allowed_transitions is
  E'@notNull\n@reads price\n\nStatus transitions that the viewer can make; others follow from deals.';
comment on function app_public.units_price_history is
  E'@permission inventory.read\n@by subject_id\n\n'
  'Price changes, latest first; null without the permission inventory.read.';

comment on function app_public.units_filter_price is
  E'@filter price\n@reads price\n\nPrice as the viewer sees it. Both ends included.';
comment on function app_public.units_filter_delivery_date is
  E'@filter deliveryDate\n@reads estimated_delivery_date\n\nExpected delivery as the viewer sees it. Both ends '
  'included.';

create trigger _200_prepare before update on app_public.units for each row
  execute function app_private.tg_units__prepare();

-- The roles of the API may not give the organization.
create trigger _200_prepare_first before insert on app_public.units for each row when (new.organization_id is null)
  execute function app_private.tg_units__prepare();

create function app_private.tg_units__check() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if exists (
    select from new_rows n
    join app_public.projects p on p.id = n.project_id
    left join app_hidden.currencies c on c.code = p.currency
    left join app_public.lots l on l.id = n.lot_id
    left join app_public.floor_plans f on f.id = n.floor_plan_id
    where p.archived_at is not null or n.currency <> p.currency or l.deleted_at is not null or f.deleted_at is not null
      or n.price <> round(n.price, coalesce(c.digits, 2)) or n.hoa_fee <> round(n.hoa_fee, coalesce(c.digits, 2))
        or (n.address is distinct from null and (n.address).country is null)
      or row(n.effective_bedrooms, n.effective_baths, n.effective_half_baths, n.effective_garage, n.effective_sqft,
        n.effective_hoa_fee, n.effective_orientation)
        is distinct from row(coalesce(n.bedrooms, f.bedrooms), coalesce(n.baths, f.baths),
          coalesce(n.half_baths, f.half_baths), coalesce(n.garage, f.garage),
          coalesce(n.sqft, f.sqft), coalesce(n.hoa_fee, f.hoa_fee), coalesce(n.orientation, f.orientation))
      or n.move_in_ready <> (n.construction_status in ('COMPLETED', 'DELIVERED'))
      or (n.status = 'AVAILABLE' and (n.listing_date is null or n.original_list_price is null or n.market_since is null
        or n.market_before is null))
  ) then
    raise exception 'a unit was inserted past its rules' using errcode = 'assert_failure';
  end if;
  return null;
end $$;
create trigger _940_check after insert on app_public.units referencing new table as new_rows
  for each statement execute function app_private.tg_units__check();

create function app_public.units_promotions(u app_public.units) returns setof app_public.promotions
language sql stable rows 3 as $$
  select p.* from app_public.promotions p
  where p.project_id = u.project_id and p.deleted_at is null and app_public.promotions_status(p) = 'ACTIVE'
    and (p.applies_to = 'PROJECT' or exists (select from app_hidden.promotion_targets t
      where t.promotion_id = p.id and (t.unit_id = u.id or t.lot_id = u.lot_id or t.floor_plan_id = u.floor_plan_id)))
  order by p.starts_at desc, p.id desc
$$;
comment on function app_public.units_promotions is
  E'@ordered\n\n'
  'Running promotions for this unit, its lot, its floor plan or the entire project; non-members see the public '
  'ones.';

create function app_public.units_lease_permit(u app_public.units) returns setof app_public.lease_permits
language sql stable rows 1 as $$
  select l.* from app_public.lease_permits l
  where l.unit_id = u.id and l.deleted_at is null and l.status not in ('EXPIRED', 'REVOKED')
  limit 1
$$;
grant execute on function app_public.units_lease_permit to plat_user, plat_anonymous;
comment on function app_public.units_lease_permit is
  'The lease permit in effect: neither expired nor revoked; null without the permission inventory.manage.';

comment on function app_public.units_filter_query is
  E'@filter query\n@finder units_with_words\n\n'
  'Words that occur in title, subtitle, number, building, MLS number or street.';

create function app_public.units_active_reservation(u app_public.units) returns setof app_public.reservations
language sql stable rows 1 as $$
  select r.* from app_hidden.masked_reservations r where r.unit_id = u.id and r.status in ('PENDING', 'CONFIRMED')
    and r.deleted_at is null limit 1
$$;
comment on function app_public.units_active_reservation is
  'The active reservation; null without the permission sale.read.';

create function app_public.units_buyer(u app_public.units) returns setof app_public.buyers
language sql stable rows 1 as $$
  select b.* from app_hidden.masked_buyers b where b.unit_id = u.id and b.deleted_at is null and b.status <> 'CANCELLED'
  limit 1
$$;
comment on function app_public.units_buyer is 'The active purchase; null without the permission buyer.read.';
