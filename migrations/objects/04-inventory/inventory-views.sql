-- Computed fields of inventory: values that the viewer may see, filters, price history, and the totals of a project.
-- PERF: a value that is null, or that everybody sees, is returned without checking permissions, which takes most of the
-- time.
--
-- Optimized for lists at 10,000 projects and 1,000,000 units: whether the viewer may see a value, and what a project
-- offers.

create view app_public.price_changes with (security_barrier = true) as
  select e.id as event_id, e.subject_id, e.occurred_at as at, e.actor_id,
    (seen.changes -> 'price' ->> 0)::numeric as "from",
    case when e.changes is null then seen.data ->> 'price' else seen.changes -> 'price' ->> 1 end::numeric as "to",
    null::text as reason, e.occurred_at as effective_at
  from app_public.events e
  -- PERF: permissions are only checked for events that contain a price.
  cross join lateral (select case when e.changes is null then app_public.events_data(e) end as data,
    app_public.events_changes(e) as changes offset 0) seen
  where current_user <> 'plat_anonymous' and e.subject_type in ('unit', 'lot')
    and case when e.changes is null then e.data ->> 'price'
    else e.changes -> 'price' ->> 1 end is not null
    and case when e.changes is null then seen.data ->> 'price' else seen.changes -> 'price' ->> 1 end is not null;

alter view app_public.price_changes owner to plat_masker;
grant select on app_public.price_changes to plat_user, plat_anonymous;

comment on view app_public.price_changes is $$
@primaryKey event_id
@foreignKey (actor_id) references users (id)|@fieldName actor|@backwardBehavior -*

A change of the list price of a unit or lot.$$;

comment on column app_public.price_changes.event_id is E'@behavior -*\n\nThe event of the change.';
comment on column app_public.price_changes.subject_id is E'@behavior -*\n\nThe unit or lot.';
comment on column app_public.price_changes.at is E'@notNull\n\nWhen the change was made.';
comment on column app_public.price_changes.actor_id is E'@behavior -*\n\nWho changed it.';
comment on column app_public.price_changes."from" is 'Previous price; null if there was none.';
comment on column app_public.price_changes."to" is E'@notNull\n\nPrice after the change.';
comment on column app_public.price_changes.reason is 'Reason, as free text.';
comment on column app_public.price_changes.effective_at is E'@notNull\n\nWhen the price took effect.';

create function app_public.recently_sold_units() returns setof app_public.units
language sql stable rows 50 as $$
  select u.* from app_hidden.masked_units u
  join app_public.projects p on p.id = u.project_id
  where u.sold_at is not null and u.deleted_at is null
    and (p.visibility = 'PUBLIC' or app_hidden.project_can(p.id, p.organization_id, 'project.read'))
  order by u.sold_at desc, u.id desc limit 50
$$;

comment on type app_public.project_abstract is
  'Unit counts of a project: all units for the team, released ones for everybody else.';

comment on column app_public.project_abstract.units_total is E'@notNull\n\nTotal number of units.';
comment on column app_public.project_abstract.units_available is E'@notNull\n\nNumber of units for sale.';
comment on column app_public.project_abstract.units_reserved is
  E'@notNull\n\nNumber of units that are held, reserved or under contract.';
comment on column app_public.project_abstract.units_sold is E'@notNull\n\nNumber of units sold or handed over.';
comment on column app_public.project_abstract.units_move_in_ready is
  E'@notNull\n\nNumber of units for sale whose construction is complete.';
comment on column app_public.project_abstract.price_min is 'Lowest list price of units for sale.';
comment on column app_public.project_abstract.price_max is 'Highest list price of units for sale.';
comment on column app_public.project_abstract.bedrooms_min is 'Lowest number of bedrooms of a unit.';
comment on column app_public.project_abstract.bedrooms_max is 'Highest number of bedrooms of a unit.';
comment on column app_public.project_abstract.sqft_min is 'Smallest area of a unit in square feet.';
comment on column app_public.project_abstract.sqft_max is 'Largest area of a unit in square feet.';
comment on column app_public.project_abstract.is_sold_out is
  E'@notNull\n\nWhether the project has units and all of them are sold.';

create function app_private.project_abstract_of(p app_public.projects) returns app_public.project_abstract
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  sees_all boolean := app_hidden.project_can(p.id, p.organization_id, 'inventory.read');
  result app_public.project_abstract;
begin
  select count(*), count(*) filter (where u.status = 'AVAILABLE'),
    count(*) filter (where u.status in ('HELD', 'RESERVED', 'PENDING')),
      count(*) filter (where u.status in ('SOLD', 'CLOSED')),
        count(*) filter (where u.status = 'AVAILABLE' and u.move_in_ready),
      min(u.price) filter (where u.status = 'AVAILABLE'), max(u.price) filter (where u.status = 'AVAILABLE'),
      min(u.effective_bedrooms), max(u.effective_bedrooms), min(u.effective_sqft), max(u.effective_sqft),
      count(*) filter (where u.status in ('SOLD', 'CLOSED')) > 0
        and bool_and(u.status in ('SOLD', 'CLOSED', 'OFF_MARKET'))
    into result
    from app_public.units u
    where u.project_id = p.id and u.deleted_at is null and (sees_all or u.status <> 'UNRELEASED');
  return result;
end $$;
comment on function app_private.project_abstract_of(app_public.projects) is 'Its units in numbers.';

create function app_hidden.lowest_price(project_id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(min(u.price), 'infinity') from app_public.units u where u.project_id = $1 and u.status = 'AVAILABLE'
    and u.deleted_at is null
$$;

create function app_hidden.highest_price(project_id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(max(u.price), '-1') from app_public.units u where u.project_id = $1 and u.status = 'AVAILABLE'
    and u.deleted_at is null
$$;
comment on function app_hidden.lowest_price(uuid) is
  E'@withoutViewer Only orders and filters of lists call it, for projects that the viewer sees, and of those they '
  'see what is for sale; asking once more takes a list of 10,000 three times as long.\n\n'
  'Lowest price of the units for sale; projects without come last.';
comment on function app_hidden.highest_price(uuid) is
  E'@withoutViewer Only orders and filters of lists call it, for projects that the viewer sees, and of those they '
  'see what is for sale; asking once more takes a list of 10,000 three times as long.\n\n'
  'Highest price of the units for sale; projects without come last.';

create function app_private.service_index(p app_public.projects) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- A quarter each: freshness over 60 days, completeness of the listing, units for sale (20 are plenty), and response
  -- to the latest 1,000 leads of 90 days (an hour is best, three days are worst, half without leads).
  select round(25 * (
    greatest(0, 1 - extract(epoch from now() - greatest(p.updated_at, i.updated_at)) / (60 * 86400))
    + ((p.overview is not null)::int + (p.overview_headline is not null)::int + (p.design is not null)::int + (p.address
      is distinct from null)::int
      + (p.website_url is not null)::int + (cardinality(p.amenities) > 0)::int + (i.plans > 0)::int + (i.units >
        0)::int) / 8.0
    + least(1, i.available / 20.0)
    + coalesce(greatest(0, least(1, 1 - (l.response - 3600) / (71 * 3600.0))), 0.5)))::int
  from (select max(u.updated_at) as updated_at, count(*) as units,
    count(*) filter (where u.status = 'AVAILABLE') as available,
      (select count(*) from app_public.floor_plans f where f.project_id = p.id and f.deleted_at is null
        and f.status <> 'DRAFT') as plans
    from app_public.units u where u.project_id = p.id and u.deleted_at is null and u.status <> 'UNRELEASED') i
  cross join (select avg(extract(epoch from coalesce(r.first_response_at, now()) - r.registered_at)) as response
    from (select l.first_response_at, l.registered_at from app_public.leads l
      where l.project_id = p.id and l.deleted_at is null and l.registered_at > now() - interval '90 days'
      order by l.registered_at desc, l.id desc limit 1000) r) l
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

create function app_private.tg_projects__service_index() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.service_index := app_private.service_index(new);
  return new;
end $$;
-- A new or changed project is ranked immediately; freshness, units and response times follow with the job. After
-- _900_touch, whose moment counts for freshness.
create trigger _950_service_index_of_new before insert on app_public.projects
  for each row execute function app_private.tg_projects__service_index();
create trigger _950_service_index before update on app_public.projects
  for each row when (old.service_index is not distinct from new.service_index and new.archived_at is null
    and new.deleted_at is null) execute function app_private.tg_projects__service_index();

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
    'price', 'u.price::numeric <@ app_hidden.range_of(null::numrange, $2 -> ''price'' ->> ''min'', '
      '$2 -> ''price'' ->> ''max'')',
    'bedrooms', 'u.effective_bedrooms <@ app_hidden.range_of(null::int4range, $2 -> ''bedrooms'' ->> ''min'', $2 '
      '-> ''bedrooms'' ->> ''max'')',
    'baths', 'u.effective_baths <@ app_hidden.range_of(null::int4range, $2 -> ''baths'' ->> ''min'', $2 -> ''baths'' '
      '->> ''max'')',
    'sqft', 'u.effective_sqft <@ app_hidden.range_of(null::int4range, $2 -> ''sqft'' ->> ''min'', $2 -> ''sqft'' '
      '->> ''max'')',
    'level', 'u.level <@ app_hidden.range_of(null::int4range, $2 -> ''level'' ->> ''min'', $2 -> ''level'' '
      '->> ''max'')',
    'deliveryDate', 'u.estimated_delivery_date <@ app_hidden.range_of(null::daterange, $2 '
      '-> ''deliveryDate'' ->> ''from'', $2 -> ''deliveryDate'' ->> ''to'')',
    'updatedAt', 'u.updated_at <@ app_hidden.range_of(null::tstzrange, $2 -> ''updatedAt'' ->> ''from'', $2 '
      '-> ''updatedAt'' ->> ''to'')',
    'moveInReady', 'u.move_in_ready = ($2 ->> ''moveInReady'')::boolean',
    'isBmr', 'u.is_bmr = ($2 ->> ''isBmr'')::boolean',
    'query', format('app_public.units_filter_query(row(%s)::app_public.units, $2 ->> ''query'')',
      app_hidden.row_columns('app_public.units', 'u')));
  unknown text;
begin
  select k into unknown from jsonb_object_keys(f) k where not known ? k limit 1;
  if unknown is not null then
    perform app_hidden.fail('BAD_USER_INPUT', format('%s cannot be used to select the units to change.', unknown),
      '{"field": "filter"}');
  end if;
  return query execute 'select u.id from app_hidden.masked_units u where u.project_id = $1'
    || coalesce((select string_agg(' and ' || (known ->> k), '') from jsonb_object_keys(f) k), '') using project_id, f;
end $$;
comment on function app_hidden.matching_units(uuid, jsonb) is
  'Units of a project that match a UnitsFilter as the viewer sees them; refuses members that it does not know.';

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
  changed uuid[];
  result app_public.units[];
begin
  perform app_hidden.require_viewer();
  select p.* into project from app_hidden.masked_projects p where p.id = update_units.project_id;
  if project.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  end if;
  if (ids is null) = (filter is null) then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either ids or filter.',
      '{"field": "ids"}');
  end if;
  if price is not null and price_delta_percent is not null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either price or priceDeltaPercent.',
      '{"field": "priceDeltaPercent"}');
  end if;
  if price_delta_percent <= -100 or price_delta_percent > 1000 then
    perform app_hidden.fail('BAD_USER_INPUT', 'A percentage must be greater than -100 and at most 1000.',
      '{"field": "priceDeltaPercent"}');
  end if;
  if coalesce(status, price::text, price_delta_percent::text, construction_status, estimated_delivery_date::text)
    is null then
    perform app_hidden.fail('BAD_USER_INPUT',
      'Specify a field to change: status, price, priceDeltaPercent, constructionStatus or estimatedDeliveryDate.',
      '{"field": "status"}');
  end if;
  wanted := case when coalesce(status, price::text, price_delta_percent::text) is not null then 'inventory.manage'
    else 'construction.write' end;
  if not app_hidden.project_can(project.id, project.organization_id, wanted) then
    perform app_hidden.fail('FORBIDDEN', format('This requires the permission %s in the project.', wanted),
      jsonb_build_object('permission', wanted));
  end if;
  -- A price that results from a percentage would reveal it.
  if price_delta_percent is not null
    and not app_hidden.project_can(project.id, project.organization_id, 'inventory.read') then
    perform app_hidden.fail('FORBIDDEN', 'A change by percentage requires the permission inventory.read in the '
      'project.',
      '{"permission": "inventory.read"}');
  end if;
  if ids is not null then
    targets := array(select distinct app_hidden.record_id('units', i, 'ids') from unnest(ids::text[]) i limit most + 1);
  else
    targets := array(select m from app_hidden.matching_units(project.id, filter) m limit most + 1);
  end if;
  if cardinality(targets) > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'At most 5,000 units can be changed at a time.',
      jsonb_build_object('limit', most, 'field', case when ids is null then 'filter' else 'ids' end));
  end if;
  -- In the order of ids, so that two of these wait for each other instead of locking each other out.
  select count(*) into amount from (
    select from app_public.units u where u.id = any (targets) and u.project_id = project.id order by u.id for no key
      update) locked;
  if amount < cardinality(targets) then
    perform app_hidden.fail('NOT_FOUND', 'Some of these units do not belong to the project.', '{"field": "ids"}');
  end if;
  digits := coalesce((select c.digits from app_hidden.currencies c where c.code = project.currency), 2);
  begin
    -- Omitted columns are not read: a viewer who may change some columns cannot necessarily read the others.
    execute format('with changed as (
        update app_public.units u set %s from app_hidden.masked_units v where v.id = u.id and u.id = any ($1)
        returning u.id)
      select coalesce(array_agg(c.id), ''{}'') from changed c', concat_ws(', ',
      case when status is not null then 'status = $2' end,
      case when price is not null then 'price = $3'
        -- numeric rounds a half away from zero; prices are not negative
        when price_delta_percent is not null then 'price = round(v.price * (1 + $4 / 100), $5)' end,
      case when construction_status is not null then 'construction_status = $6' end,
      case when estimated_delivery_date is not null then 'estimated_delivery_date = $7' end))
      into changed using targets, status, price, price_delta_percent, digits, construction_status,
        estimated_delivery_date;
    select coalesce(array_agg(row(v.*)::app_public.units order by v.id), '{}') into result
      from app_hidden.masked_units v where v.id = any (changed);
    if dry_run then
      raise exception 'dry run' using errcode = 'PLATD';
    end if;
  exception when sqlstate 'PLATD' then
    null; -- undone, what would have been is in the result
  end;
  return result;
end $$;
grant execute on function app_public.update_units to plat_user, plat_anonymous;
comment on function app_public.update_units is
  E'@arg projectId Id of the project that all units belong to.\n@arg ids Ids of the units. Set either this or '
  '`filter`.\n@arg filter Selects the units. Set either this or `ids`.\n@arg status Status to set on each '
  'lead.\n@arg price New list price of each unit.\n@arg priceDeltaPercent Changes each list price by a percentage, '
  'rounded half up; -2.5 lowers it by 2.5 percent. Units without a price stay without.\n@arg constructionStatus '
  'Construction phase to set.\n@arg estimatedDeliveryDate New expected handover date.\n@arg dryRun If true, '
  'returns the units as they would be, and changes nothing.\n\n'
  'Changes up to 5,000 units at once, all or none of them.';

comment on function app_public.recently_sold_units is
  'The 50 units that were sold last, in public projects and in the viewer''s portfolio.';
comment on function app_public.units_events is
  E'@permission audit.read\n'
  '@by subject_id\n\n'
  'Events of the record, latest first; null without the permission audit.read.';

-- By plpgsql, which keeps its plan, and by the ends of the range, which an index knows.
create function app_hidden.offers_price(project_id uuid, price numrange) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return exists (select from app_public.units u where u.project_id = $1 and u.status = 'AVAILABLE'
    and u.deleted_at is null
    and u.price >= coalesce(lower($2), 0) and u.price <= coalesce(upper($2), 'infinity') and not isempty($2));
end $$;

create function app_hidden.offers_bedrooms(project_id uuid, bedrooms int4range) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- The upper end of a range of whole numbers is the first that is not in it.
  return exists (select from app_public.units u where u.project_id = $1 and u.status = 'AVAILABLE'
    and u.deleted_at is null
    and u.effective_bedrooms >= coalesce(lower($2), 0) and u.effective_bedrooms < coalesce(upper($2), 2147483647)
      and not isempty($2));
end $$;

comment on function app_hidden.offers_price(uuid,numrange) is
  E'@withoutViewer Only orders and filters of lists call it, for projects that the viewer sees, and of those they '
  'see what is for sale; asking once more takes a list of 10,000 three times as long.\n\n'
  'Whether a project has a unit for sale at a price in the range; everyone who sees the project sees these units.';
comment on function app_hidden.offers_bedrooms(uuid,int4range) is
  E'@withoutViewer Only orders and filters of lists call it, for projects that the viewer sees, and of those they '
  'see what is for sale; asking once more takes a list of 10,000 three times as long.\n\n'
  'Whether a project has a unit for sale with a number of bedrooms in the range.';
