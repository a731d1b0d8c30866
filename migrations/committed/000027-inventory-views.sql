--! Previous: sha1:dfb74685309d4c3ce95cd77fb5905e1449f9b46e
--! Hash: sha1:6c8d5a4acec7c2efe24270d2e58c80bc50be07e0
--! Message: inventory-views

-- What is read of inventory: values as the viewer may see them, filters, history of prices, and the sums of a project.
-- PERF: a value that is null, or that everybody sees, is given without asking for permissions, which costs most of the time.

create function app_public.units_price(u app_public.units) returns app_public.money
language sql stable as $$
  select case when u.price is not null and (u.status = 'AVAILABLE' or app_hidden.project_can(u.project_id, u.organization_id, 'inventory.read')) then u.price end
$$;
create function app_public.units_original_list_price(u app_public.units) returns app_public.money
language sql stable as $$ select case when u.original_list_price is not null and app_hidden.project_can(u.project_id, u.organization_id, 'inventory.read') then u.original_list_price end $$;
create function app_public.units_sold_price(u app_public.units) returns app_public.money
language sql stable as $$ select case when u.sold_price is not null and app_hidden.project_can(u.project_id, u.organization_id, 'sale.read') then u.sold_price end $$;
create function app_public.units_metadata(u app_public.units) returns jsonb
language sql stable as $$ select case when u.metadata is not null and app_hidden.project_can(u.project_id, u.organization_id, 'inventory.read') then u.metadata end $$;
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
  select case when u.floor_plan_id is null then '{}' else jsonb_strip_nulls(jsonb_build_object('bedrooms', u.bedrooms, 'baths', u.baths, 'halfBaths', u.half_baths,
    'garage', u.garage, 'sqft', u.sqft, 'hoaFee', u.hoa_fee::text, 'orientation', u.orientation)) end
$$;
create function app_public.units_standard_status(u app_public.units) returns app_public.standard_status
language sql stable as $$
  select (case u.status when 'UNRELEASED' then 'COMING_SOON' when 'AVAILABLE' then 'ACTIVE' when 'HELD' then 'HOLD'
    when 'RESERVED' then 'ACTIVE_UNDER_CONTRACT' when 'PENDING' then 'PENDING' when 'SOLD' then 'PENDING' when 'CLOSED' then 'CLOSED'
    else 'WITHDRAWN' end)::app_public.standard_status
$$;
create function app_public.units_days_on_market(u app_public.units) returns int
language sql stable as $$
  select floor(extract(epoch from u.market_before + coalesce(now() - u.market_since, '0')) / 86400)::int
$$;
create function app_public.units_allowed_transitions(u app_public.units) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('unit', jsonb_build_object('status', u.status, 'price', u.price)) $$;

create function app_public.units_filter_price(u app_public.units, value numrange) returns boolean
language sql stable as $$ select app_public.units_price(u)::numeric <@ value $$;
create function app_public.units_filter_delivery_date(u app_public.units, value daterange) returns boolean
language sql stable as $$ select app_public.units_estimated_delivery_date(u) <@ value $$;
create function app_public.units_filter_query(u app_public.units, value text) returns boolean
language sql stable as $$
  select app_hidden.contains_words(concat_ws(' ', u.title, u.subtitle, u.number, u.building, u.mls_id, (u.address).thoroughfare), value)
$$;
create function app_public.floor_plans_price_min(f app_public.floor_plans) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- Whoever sees the plan sees its AVAILABLE units.
  select min(u.price) from app_public.units u where u.floor_plan_id = f.id and u.status = 'AVAILABLE' and u.deleted_at is null
$$;
create function app_public.floor_plans_available_count(f app_public.floor_plans) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::int from app_public.units u where u.floor_plan_id = f.id and u.status = 'AVAILABLE' and u.deleted_at is null
$$;
create function app_public.floor_plans_filter_price(f app_public.floor_plans, value numrange) returns boolean
language sql stable as $$ select coalesce(app_public.floor_plans_price_min(f), f.base_price) <@ value $$;

--------------------------------------------------------------------------------------------------------

create view app_public.price_changes with (security_invoker = true, security_barrier = true) as
  select e.id as event_id, e.subject_id, e.occurred_at as at, e.actor_id, (e.changes -> 'price' ->> 0)::numeric as "from",
    case when e.changes is null then e.data ->> 'price' else e.changes -> 'price' ->> 1 end::numeric as "to",
    null::text as reason, e.occurred_at as effective_at
  from app_public.events e
  where e.subject_type in ('unit', 'lot') and case when e.changes is null then e.data ->> 'price' else e.changes -> 'price' ->> 1 end is not null;
grant select on app_public.price_changes to plat_user, plat_anonymous;
comment on view app_public.price_changes is $$
@primaryKey event_id
@foreignKey (actor_id) references users (id)|@fieldName actor|@backwardBehavior -*

A change of a price.$$;
comment on column app_public.price_changes.event_id is E'@behavior -*\n\nThe event of the change.';
comment on column app_public.price_changes.subject_id is E'@behavior -*\n\nThe unit or lot.';
comment on column app_public.price_changes.at is E'@notNull\n\nWhen it was changed.';
comment on column app_public.price_changes.actor_id is E'@behavior -*\n\nWho changed it.';
comment on column app_public.price_changes."from" is 'The price before; null where there was none.';
comment on column app_public.price_changes."to" is E'@notNull\n\nThe price after.';
comment on column app_public.price_changes.reason is 'Why.';
comment on column app_public.price_changes.effective_at is E'@notNull\n\nSince when it holds.';
create function app_public.units_price_history(u app_public.units) returns setof app_public.price_changes
language sql stable rows 5 as $$ select c.* from app_public.price_changes c where c.subject_id = u.id order by c.event_id desc $$;
create function app_public.lots_price_history(l app_public.lots) returns setof app_public.price_changes
language sql stable rows 5 as $$ select c.* from app_public.price_changes c where c.subject_id = l.id order by c.event_id desc $$;

create function app_public.recently_sold_units() returns setof app_public.units
language sql stable rows 50 as $$
  select u.* from app_public.units u
  join app_public.projects p on p.id = u.project_id
  where u.sold_at is not null and u.deleted_at is null
    and (p.visibility = 'PUBLIC' or app_hidden.project_can(p.id, p.organization_id, 'project.read'))
  order by u.sold_at desc, u.id desc limit 50
$$;

--------------------------------------------------------------------------------------------------------

create type app_public.project_abstract as (
  units_total int, units_available int, units_reserved int, units_sold int, units_move_in_ready int, price_min numeric, price_max numeric,
  bedrooms_min int, bedrooms_max int, sqft_min int, sqft_max int, is_sold_out boolean
);
comment on type app_public.project_abstract is 'The units of a project in numbers: all of them for the team, the released ones for everybody else.';
comment on column app_public.project_abstract.units_total is E'@notNull\n\nHow many units there are.';
comment on column app_public.project_abstract.units_available is E'@notNull\n\nHow many are for sale.';
comment on column app_public.project_abstract.units_reserved is E'@notNull\n\nHow many are held, reserved or under contract.';
comment on column app_public.project_abstract.units_sold is E'@notNull\n\nHow many are sold or handed over.';
comment on column app_public.project_abstract.units_move_in_ready is E'@notNull\n\nHow many of those for sale are complete.';
comment on column app_public.project_abstract.price_min is 'Lowest price of those for sale.';
comment on column app_public.project_abstract.price_max is 'Highest price of those for sale.';
comment on column app_public.project_abstract.bedrooms_min is 'Fewest bedrooms.';
comment on column app_public.project_abstract.bedrooms_max is 'Most bedrooms.';
comment on column app_public.project_abstract.sqft_min is 'Smallest size in square feet.';
comment on column app_public.project_abstract.sqft_max is 'Largest size in square feet.';
comment on column app_public.project_abstract.is_sold_out is E'@notNull\n\nWhether there are units and all of them are sold.';

create function app_public.projects_abstract(p app_public.projects) returns app_public.project_abstract
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  sees_all boolean := app_hidden.project_can(p.id, p.organization_id, 'inventory.read');
  result app_public.project_abstract;
begin
  select count(*), count(*) filter (where u.status = 'AVAILABLE'), count(*) filter (where u.status in ('HELD', 'RESERVED', 'PENDING')),
      count(*) filter (where u.status in ('SOLD', 'CLOSED')), count(*) filter (where u.status = 'AVAILABLE' and u.move_in_ready),
      min(u.price) filter (where u.status = 'AVAILABLE'), max(u.price) filter (where u.status = 'AVAILABLE'),
      min(u.effective_bedrooms), max(u.effective_bedrooms), min(u.effective_sqft), max(u.effective_sqft),
      count(*) filter (where u.status in ('SOLD', 'CLOSED')) > 0 and bool_and(u.status in ('SOLD', 'CLOSED', 'OFF_MARKET'))
    into result
    from app_public.units u
    where u.project_id = p.id and u.deleted_at is null and (sees_all or u.status <> 'UNRELEASED');
  return result;
end $$;
grant execute on function app_public.projects_abstract to plat_user, plat_anonymous;
comment on function app_public.projects_abstract is 'Its units in numbers.';

-- AVAILABLE units of a project are seen by whoever sees the project.
create function app_hidden.offers_unit(project_id uuid, price numrange, bedrooms int4range) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from app_public.units u where u.project_id = $1 and u.status = 'AVAILABLE' and u.deleted_at is null
    and ($2 is null or u.price::numeric <@ $2) and ($3 is null or u.effective_bedrooms <@ $3))
$$;
create function app_hidden.lowest_price(project_id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(min(u.price), 'infinity') from app_public.units u where u.project_id = $1 and u.status = 'AVAILABLE' and u.deleted_at is null
$$;
create function app_hidden.highest_price(project_id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(max(u.price), '-1') from app_public.units u where u.project_id = $1 and u.status = 'AVAILABLE' and u.deleted_at is null
$$;
comment on function app_hidden.lowest_price(uuid) is 'Lowest price of the units for sale; projects without come last.';
comment on function app_hidden.highest_price(uuid) is 'Highest price of the units for sale; projects without come last.';
create function app_public.projects_filter_price(p app_public.projects, value numrange) returns boolean
language sql stable as $$ select app_hidden.offers_unit(p.id, value, null) $$;
create function app_public.projects_filter_bedrooms(p app_public.projects, value int4range) returns boolean
language sql stable as $$ select app_hidden.offers_unit(p.id, null, value) $$;

create function app_private.service_index(p app_public.projects) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- A quarter each: freshness over 60 days, completeness of the listing, units for sale (20 are plenty), and response to
  -- the leads of 90 days (an hour is best, three days are worst, half without leads).
  select round(25 * (
    greatest(0, 1 - extract(epoch from now() - greatest(p.updated_at, i.updated_at)) / (60 * 86400))
    + ((p.overview is not null)::int + (p.overview_headline is not null)::int + (p.design is not null)::int + (p.address is distinct from null)::int
      + (p.website_url is not null)::int + (cardinality(p.amenities) > 0)::int + (i.plans > 0)::int + (i.units > 0)::int) / 8.0
    + least(1, i.available / 20.0)
    + coalesce(greatest(0, least(1, 1 - (l.response - 3600) / (71 * 3600.0))), 0.5)))::int
  from (select max(u.updated_at) as updated_at, count(*) as units, count(*) filter (where u.status = 'AVAILABLE') as available,
      (select count(*) from app_public.floor_plans f where f.project_id = p.id and f.deleted_at is null and f.status <> 'DRAFT') as plans
    from app_public.units u where u.project_id = p.id and u.deleted_at is null and u.status <> 'UNRELEASED') i
  cross join (select avg(extract(epoch from coalesce(l.first_response_at, now()) - l.registered_at)) as response
    from app_public.leads l where l.project_id = p.id and l.deleted_at is null and l.registered_at > now() - interval '90 days') l
$$;
comment on function app_private.service_index(app_public.projects) is 'How well a project serves buyers now, 0 to 100.';

create function app_private.refresh_service_index(after uuid default null, batch int default 500) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  ids uuid[] := array(select p.id from app_public.projects p
    where (after is null or p.id > after) and p.deleted_at is null and p.archived_at is null order by p.id limit batch);
begin
  update app_public.projects p set service_index = s.value
    from (select q.id, app_private.service_index(q) as value from app_public.projects q where q.id = any (ids)) s
    where p.id = s.id and p.service_index <> s.value;
  return ids[batch];
end $$;
comment on function app_private.refresh_service_index(uuid, int) is
  'Computes the index of the next projects by id; returns the last one where there may be more.';
grant execute on function app_private.refresh_service_index to plat_worker;
-- A number of the service's own: it neither makes a new version nor an event.
drop trigger _900_touch on app_public.projects;
create trigger _900_touch before update on app_public.projects for each row
  when (old.service_index is not distinct from new.service_index) execute function app_private.tg__touch('city');
comment on column app_public.projects.service_index is E'@secret\n\nHow well it serves buyers, 0 to 100; the default order of publicProjects.';

--------------------------------------------------------------------------------------------------------

create domain app_public.units_filter as jsonb;
comment on domain app_public.units_filter is E'@inputType UnitsFilter\n\nWhich units; the filter of their lists.';

create function app_hidden.matching_units(project_id uuid, filter jsonb) returns setof uuid
language plpgsql stable rows 100 as $$
declare
  f jsonb := jsonb_strip_nulls(filter);
  -- $1 is the project, $2 the filter
  known constant jsonb := jsonb_build_object(
    'status', '$2 -> ''status'' ? u.status',
    'constructionStatus', '$2 -> ''constructionStatus'' ? u.construction_status',
    'floorPlanIds', '$2 -> ''floorPlanIds'' ? u.floor_plan_id::text',
    'lotIds', '$2 -> ''lotIds'' ? u.lot_id::text',
    'projectId', 'u.project_id = app_hidden.record_id(''projects'', $2 ->> ''projectId'', ''projectId'')',
    'price', 'app_public.units_price(u)::numeric <@ app_hidden.range_of(null::numrange, $2 -> ''price'' ->> ''min'', $2 -> ''price'' ->> ''max'')',
    'bedrooms', 'u.effective_bedrooms <@ app_hidden.range_of(null::int4range, $2 -> ''bedrooms'' ->> ''min'', $2 -> ''bedrooms'' ->> ''max'')',
    'baths', 'u.effective_baths <@ app_hidden.range_of(null::int4range, $2 -> ''baths'' ->> ''min'', $2 -> ''baths'' ->> ''max'')',
    'sqft', 'u.effective_sqft <@ app_hidden.range_of(null::int4range, $2 -> ''sqft'' ->> ''min'', $2 -> ''sqft'' ->> ''max'')',
    'level', 'u.level <@ app_hidden.range_of(null::int4range, $2 -> ''level'' ->> ''min'', $2 -> ''level'' ->> ''max'')',
    'deliveryDate', 'app_public.units_estimated_delivery_date(u) <@ app_hidden.range_of(null::daterange, $2 -> ''deliveryDate'' ->> ''from'', $2 -> ''deliveryDate'' ->> ''to'')',
    'updatedAt', 'u.updated_at <@ app_hidden.range_of(null::tstzrange, $2 -> ''updatedAt'' ->> ''from'', $2 -> ''updatedAt'' ->> ''to'')',
    'moveInReady', 'u.move_in_ready = ($2 ->> ''moveInReady'')::boolean',
    'isBmr', 'u.is_bmr = ($2 ->> ''isBmr'')::boolean',
    'query', 'app_public.units_filter_query(u, $2 ->> ''query'')');
  unknown text;
begin
  select k into unknown from jsonb_object_keys(f) k where not known ? k limit 1;
  if unknown is not null then
    perform app_hidden.fail('BAD_USER_INPUT', format('%s cannot select the units to change.', unknown), '{"field": "filter"}');
  end if;
  return query execute 'select u.id from app_public.units u where u.project_id = $1'
    || coalesce((select string_agg(' and ' || (known ->> k), '') from jsonb_object_keys(f) k), '') using project_id, f;
end $$;
comment on function app_hidden.matching_units(uuid, jsonb) is 'Units of a project that match a UnitsFilter as the viewer sees them; refuses members that it does not know.';

create function app_public.update_units(
  project_id uuid,
  ids app_public.id_or_slug[] default null,
  filter app_public.units_filter default null,
  status app_public.unit_status default null,
  price app_public.money default null,
  price_delta_percent numeric default null,
  construction_status app_public.unit_construction_status default null,
  estimated_delivery_date date default null,
  dry_run boolean default null
) returns app_public.units[]
language plpgsql volatile as $$
declare
  most constant int := 5000;
  project app_public.projects;
  targets uuid[];
  amount int;
  digits int;
  wanted text;
  result app_public.units[];
begin
  perform app_hidden.require_viewer();
  select * into project from app_public.projects p where p.id = update_units.project_id;
  if project.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  end if;
  if (ids is null) = (filter is null) then
    perform app_hidden.fail('BAD_USER_INPUT', 'Name the units by ids or by filter, one of the two.', '{"field": "ids"}');
  end if;
  if price is not null and price_delta_percent is not null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Give price or priceDeltaPercent, one of the two.', '{"field": "priceDeltaPercent"}');
  end if;
  if price_delta_percent <= -100 or price_delta_percent > 1000 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Give a percentage above -100, up to 1000.', '{"field": "priceDeltaPercent"}');
  end if;
  if coalesce(status, price::text, price_delta_percent::text, construction_status, estimated_delivery_date::text) is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Say what to change: status, price, priceDeltaPercent, constructionStatus or estimatedDeliveryDate.', '{"field": "status"}');
  end if;
  wanted := case when coalesce(status, price::text, price_delta_percent::text) is not null then 'inventory.manage' else 'construction.write' end;
  if not app_hidden.project_can(project.id, project.organization_id, wanted) then
    perform app_hidden.fail('FORBIDDEN', format('This takes the permission %s in the project.', wanted), jsonb_build_object('permission', wanted));
  end if;
  if ids is not null then
    targets := array(select distinct app_hidden.record_id('units', i, 'ids') from unnest(ids::text[]) i limit most + 1);
  else
    targets := array(select m from app_hidden.matching_units(project.id, filter) m limit most + 1);
  end if;
  if cardinality(targets) > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'At most 5,000 units are changed at a time.', jsonb_build_object('limit', most, 'field', case when ids is null then 'filter' else 'ids' end));
  end if;
  -- In the order of ids, so that two of these wait for each other instead of locking each other out.
  select count(*) into amount from (
    select from app_public.units u where u.id = any (targets) and u.project_id = project.id order by u.id for no key update) locked;
  if amount < cardinality(targets) then
    perform app_hidden.fail('NOT_FOUND', 'Some of these units are not in the project.', '{"field": "ids"}');
  end if;
  digits := coalesce((select c.digits from app_hidden.currencies c where c.code = project.currency), 2);
  begin
    with changed as (
      update app_public.units u set
        status = coalesce(update_units.status, u.status),
        -- numeric rounds a half away from zero; prices are not negative
        price = coalesce(update_units.price, round(u.price * (1 + coalesce(price_delta_percent, 0) / 100), digits)),
        construction_status = coalesce(update_units.construction_status, u.construction_status),
        estimated_delivery_date = coalesce(update_units.estimated_delivery_date, u.estimated_delivery_date)
      where u.id = any (targets)
      returning u as record, u.id)
    select coalesce(array_agg(c.record order by c.id), '{}') into result from changed c;
    if dry_run then
      raise exception 'dry run' using errcode = 'PLATD';
    end if;
  exception when sqlstate 'PLATD' then
    null; -- undone, what would have been is in the result
  end;
  return result;
end $$;
grant execute on function app_public.update_units to plat_user, plat_anonymous;
comment on function app_public.update_units is $$
@arg projectId The project of the units.
@arg ids The units; or give filter.
@arg filter Selects the units; or give ids.
@arg status New status.
@arg price New price of each.
@arg priceDeltaPercent Changes each price by so many percent, rounded half up: -2.5 lowers it by 2.5 percent. A unit without price stays so.
@arg constructionStatus New construction status.
@arg estimatedDeliveryDate New date of delivery.
@arg dryRun Nothing is kept; the answer shows the units as they would be.

Changes up to 5,000 units at once, all or none of them.$$;

--------------------------------------------------------------------------------------------------------

grant execute on function app_public.units_price, app_public.units_original_list_price, app_public.units_sold_price, app_public.units_metadata,
  app_public.units_estimated_delivery_date, app_public.units_ppsf, app_public.units_floor_plan_overrides, app_public.units_standard_status,
  app_public.units_days_on_market, app_public.units_allowed_transitions, app_public.units_filter_price, app_public.units_filter_delivery_date,
  app_public.units_filter_query, app_public.floor_plans_price_min, app_public.floor_plans_available_count, app_public.floor_plans_filter_price,
  app_public.units_price_history, app_public.lots_price_history, app_public.recently_sold_units, app_public.projects_filter_price,
  app_public.projects_filter_bedrooms to plat_user, plat_anonymous;
comment on function app_public.units_price is 'List price; outsiders see it while the unit is AVAILABLE.';
comment on function app_public.units_original_list_price is 'The first price it was listed at; null without the permission inventory.read.';
comment on function app_public.units_sold_price is 'What it was sold for; null without the permission sale.read.';
comment on function app_public.units_metadata is 'Free data of the organization''s own programs; null without the permission inventory.read.';
comment on function app_public.units_estimated_delivery_date is 'When it is expected to be handed over; the first of the month for outsiders.';
comment on function app_public.units_ppsf is 'Price per square foot.';
comment on function app_public.units_floor_plan_overrides is 'The values that the unit does not have from its floor plan.';
comment on function app_public.units_standard_status is E'@notNull\n\nThe status in the words of the RESO Data Dictionary.';
comment on function app_public.units_days_on_market is 'Whole days that it has been AVAILABLE or HELD; null when it never was.';
comment on function app_public.units_allowed_transitions is E'@notNull\n\nThe steps that the unit can take by hand from its status.';
comment on function app_public.units_price_history is E'@permission inventory.read\n@by subject_id\n\nIts prices, latest first; null without the permission inventory.read.';
comment on function app_public.lots_price_history is E'@permission inventory.read\n@by subject_id\n\nIts prices, latest first; null without the permission inventory.read.';
comment on function app_public.units_filter_price is E'@filter price\n\nPrice as the viewer sees it. Both ends included.';
comment on function app_public.units_filter_delivery_date is E'@filter deliveryDate\n\nExpected delivery as the viewer sees it. Both ends included.';
comment on function app_public.units_filter_query is E'@filter query\n\nWords in title, subtitle, number, building, MLS number or street.';
comment on function app_public.floor_plans_price_min is 'Lowest price of its units for sale.';
comment on function app_public.floor_plans_available_count is E'@notNull\n\nHow many of its units are for sale.';
comment on function app_public.floor_plans_filter_price is E'@filter price\n\nLowest price of its units for sale, else the base price. Both ends included.';
comment on function app_public.projects_filter_price is E'@filter price\n\nProjects with a unit for sale at such a price. Both ends included.';
comment on function app_public.projects_filter_bedrooms is E'@filter bedrooms\n\nProjects with a unit for sale with so many bedrooms. Both ends included.';
comment on function app_public.recently_sold_units is 'The last 50 sold units, of public projects and of the viewer''s own.';
comment on function app_public.units_events is E'@permission audit.read\n@by subject_id\n\nWhat happened to it, latest first; null without the permission audit.read.';
comment on table app_public.units is $$
@portfolio project.read
@publicRows
@connectionArgument projectId
@defaultOrder id asc
@filterLists status

A home that is sold.$$;
comment on column app_public.units.project_id is E'@filter projectId\n\nThe project.';
comment on column app_public.units.floor_plan_id is E'@filter floorPlanIds\n\nThe floor plan that it is built to.';
comment on column app_public.units.lot_id is E'@filter lotIds\n\nThe lot that it stands on.';
comment on column app_public.units.title is 'Name of the unit.';
comment on column app_public.units.number is 'Number, unique in the project.';
comment on column app_public.units.subtitle is 'Second line of the name.';
comment on column app_public.units.description is 'What the public reads about it.';
comment on column app_public.units.building is 'Building or tower.';
comment on column app_public.units.level is E'@filter\n\nFloor that it is on.';
comment on column app_public.units.phase is 'Phase of the project.';
comment on column app_public.units.status is E'@filter\n\nHow far its sale is.';
comment on column app_public.units.status_changed_at is 'Since when it has its status.';
comment on column app_public.units.price is E'@masked\n\nList price.';
comment on column app_public.units.original_list_price is E'@masked\n\nThe first price it was listed at.';
comment on column app_public.units.currency is 'Currency of its amounts: the one of the project.';
comment on column app_public.units.bedrooms is E'@masked\n\nBedrooms; null for those of the floor plan.';
comment on column app_public.units.baths is E'@masked\n\nFull bathrooms; null for those of the floor plan.';
comment on column app_public.units.half_baths is E'@masked\n\nBathrooms without bath or shower; null for those of the floor plan.';
comment on column app_public.units.garage is E'@masked\n\nCars that the garage holds; null for those of the floor plan.';
comment on column app_public.units.sqft is E'@masked\n\nSquare feet; null for those of the floor plan.';
comment on column app_public.units.hoa_fee is E'@masked\n\nMonthly fee of the owners'' association; null for the one of the floor plan.';
comment on column app_public.units.orientation is E'@masked\n\nThe side that it looks to; null for the one of the floor plan.';
comment on column app_public.units.effective_bedrooms is E'@secret\n@name bedrooms\n@filter bedrooms\n\nBedrooms: its own number, else that of the floor plan.';
comment on column app_public.units.effective_baths is E'@secret\n@name baths\n@filter baths\n\nFull bathrooms: its own number, else that of the floor plan.';
comment on column app_public.units.effective_half_baths is E'@secret\n@name half_baths\n\nBathrooms without bath or shower: its own number, else that of the floor plan.';
comment on column app_public.units.effective_garage is E'@secret\n@name garage\n\nCars that the garage holds: its own number, else that of the floor plan.';
comment on column app_public.units.effective_sqft is E'@secret\n@name sqft\n@filter sqft\n\nSquare feet: its own size, else that of the floor plan.';
comment on column app_public.units.effective_hoa_fee is E'@secret\n@name hoa_fee\n\nMonthly fee of the owners'' association: its own, else that of the floor plan.';
comment on column app_public.units.effective_orientation is E'@secret\n@name orientation\n\nThe side that it looks to: its own, else that of the floor plan.';
comment on column app_public.units.view is 'What is seen from it.';
comment on column app_public.units.address is 'Postal address.';
comment on column app_public.units.model is 'Whether it is a model home.';
comment on column app_public.units.is_spec is 'Whether it is built before it is sold.';
comment on column app_public.units.is_bmr is E'@filter\n\nWhether it is sold below market rate.';
comment on column app_public.units.is_furnished is 'Whether it is furnished.';
comment on column app_public.units.is_accessible is 'Whether it is accessible without steps.';
comment on column app_public.units.mls_id is 'Number in the multiple listing service.';
comment on column app_public.units.construction_status is E'@filter\n\nHow far its construction is.';
comment on column app_public.units.listing_date is 'Since when it is listed; set when it becomes AVAILABLE.';
comment on column app_public.units.estimated_delivery_date is E'@masked\n\nWhen it is expected to be handed over.';
comment on column app_public.units.move_in_ready is E'@filter\n\nWhether its construction is complete.';
comment on column app_public.units.sold_at is 'When it was sold; the order of recentlySoldUnits.';
comment on column app_public.units.sold_price is E'@masked\n\nWhat it was sold for.';
comment on column app_public.units.closed_at is 'When it was handed over.';
comment on column app_public.units.market_since is E'@secret\n@behavior -*\n\nSince when it is on the market; null when it is not.';
comment on column app_public.units.market_before is E'@secret\n@behavior -*\n\nHow long it was on the market before that.';
comment on column app_public.units.updated_at is E'@filter\n\nThe last change.';
comment on column app_public.units.metadata is E'@masked\n\nFree data of the organization''s own programs.';
comment on constraint units_project_id_fkey on app_public.units is
  E'@parent\n@fieldName project\n@foreignFieldName units\n@backwardDescription The units; those that are released for outsiders.\n\nThe project.';
comment on constraint units_floor_plan_id_fkey on app_public.units is
  E'@fieldName floorPlan\n@foreignFieldName units\n@backwardDescription The units that are built to it.\n\nThe floor plan that it is built to.';
comment on constraint units_lot_id_fkey on app_public.units is
  E'@fieldName lot\n@foreignFieldName units\n@backwardDescription The units that stand on it.\n\nThe lot that it stands on.';
