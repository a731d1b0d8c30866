-- Units as they were at a time: one, or the price list of a project.

create function app_private.units_at(ids uuid[], at timestamptz) returns setof app_public.unit_as_of
language sql stable as $$
  with former as materialized (
    select u.id, app_private.shown_as_of(u, c.former, (select app_hidden.masked_columns('app_public.units'))) as value
    from app_public.units u
    join app_private.undone_changes('app_public.units', units_at.ids, units_at.at) c on c.record_id = u.id
    -- PERF: so that the index is used.
    where u.id = any (units_at.ids)),
  -- The plans that these units were built to then, as those were then.
  former_plans as (
    select plan.* from (select array(select distinct (f.value ->> 'floor_plan_id')::uuid from former f
      where f.value ->> 'floor_plan_id' is not null) as ids) built
    join app_public.floor_plans p on p.id = any (built.ids)
    join app_private.undone_changes('app_public.floor_plans', built.ids, units_at.at) c on c.record_id = p.id
    cross join lateral jsonb_populate_record(p, c.former) plan)
  select s.* from former was
  left join former_plans plan on plan.id = (was.value ->> 'floor_plan_id')::uuid
  cross join lateral jsonb_populate_record(null::app_public.unit_as_of, was.value || jsonb_build_object(
    'unit_id', was.id,
    'bedrooms', coalesce((was.value ->> 'bedrooms')::int, plan.bedrooms),
    'baths', coalesce((was.value ->> 'baths')::int, plan.baths),
    'half_baths', coalesce((was.value ->> 'half_baths')::int, plan.half_baths),
    'garage', coalesce((was.value ->> 'garage')::int, plan.garage),
    'sqft', coalesce((was.value ->> 'sqft')::int, plan.sqft),
    'hoa_fee', coalesce((was.value ->> 'hoa_fee')::numeric, plan.hoa_fee),
    'orientation', coalesce(was.value ->> 'orientation', plan.orientation::text))) s
  order by was.id
$$;
comment on function app_private.units_at(uuid[], timestamptz) is
  'Units that the viewer sees as they were at a time at which they existed, with what the viewer may know of them.';

create function app_public.unit_as_of(id uuid, at timestamptz) returns app_public.unit_as_of
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- Only for records that the viewer may see, because the error reveals whether changes since that time are stored.
  select s.* from app_private.units_at(array(select u.id from app_public.units u where u.id = unit_as_of.id
    and u.inserted_at <= unit_as_of.at and app_private.viewer_sees_subject('unit', u.id)), unit_as_of.at) s
$$;
comment on function app_public.unit_as_of is $$
@arg id Id of the unit; the viewer must be able to see it now.
@arg at Point in time, not in the future. A change counts from the start of its transaction.

A unit as it was at a given time, reconstructed from its events; null if it did not exist yet, if the viewer cannot
see it now, or without the permission inventory.read. Fails with BAD_USER_INPUT if changes since that time are no
longer kept (see `Organization.retention`).$$;

create function app_public.units_as_of(
  project_id app_public.id_or_slug, at timestamptz, page_size int default 100, page_start int default 0)
returns setof app_public.unit_as_of
language sql stable rows 100 security definer set search_path = pg_catalog, pg_temp as $$
  -- PERF: only the units of the page are reconstructed.
  select s.* from app_private.units_at(array(
    select u.id from app_public.projects p join app_public.units u on u.project_id = p.id and u.deleted_at is null
      and u.inserted_at <= units_as_of.at
    where p.id = app_hidden.record_id('projects', units_as_of.project_id, 'projectId')
      and p.deleted_at is null
      and app_hidden.project_can(p.id, p.organization_id, 'inventory.read')
    order by u.id limit units_as_of.page_size offset units_as_of.page_start), units_as_of.at) s
$$;
comment on function app_public.units_as_of is $$
@paged
@arg project_id Id or slug of the project whose units are reconstructed.
@arg at Point in time, not in the future. A change counts from the start of its transaction.
@arg page_size Number of units.
@arg page_start Number of units before the page.

Units of a project as they were at a given time, such as for a former price list. Excludes units that did not exist
yet or were deleted since; empty without the permission inventory.read.$$;
grant execute on function app_public.unit_as_of, app_public.units_as_of to plat_user;

comment on type app_public.unit_as_of is
  'A unit as it was at a given time. Fields that the viewer may not read now are null.';
