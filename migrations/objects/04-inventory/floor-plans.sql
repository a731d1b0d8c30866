-- Floor plans: the designs of units. What inventory has in common comes first: its enumerations, the columns that a
-- narrower permission may change, and who reads its events.

create function app_private.tg__column_permissions() returns trigger
language plpgsql volatile as $$
declare
  changed text[];
  refused text;
  -- PERF: evaluated once per statement instead of once per row; cached for this viewer and token in this transaction.
  known constant text := concat_ws(' ', tg_argv[0], old.organization_id, app_public.current_user_id(),
    app_hidden.setting('organization_id'), app_hidden.setting('scopes'));
begin
  -- Applies to writes with the viewer's rights; functions of the service check themselves.
  if current_user <> 'plat_user' or app_hidden.setting('may_change_all') = known then
    return new;
  end if;
  if app_hidden.organization_can(old.organization_id, tg_argv[0]) then
    perform set_config('plat.may_change_all', known, true);
    return new;
  end if;
  select array_agg(n.key order by n.key) into changed from jsonb_each(to_jsonb(new)) n
    join jsonb_each(to_jsonb(old)) o on o.key = n.key
    where n.value <> o.value and has_column_privilege(tg_relid, n.key, 'update');
  select c.name into refused from unnest(changed) c (name)
    where not exists (select from app_hidden.column_permissions p
      where p.table_name = tg_table_name and p.column_name = c.name
        and app_hidden.project_can(old.project_id, old.organization_id, p.permission))
    limit 1;
  if refused is not null then
    perform app_hidden.fail('FORBIDDEN', format('You may not change %s of this %s.', app_hidden.camel(refused),
      replace(app_hidden.subject(tg_table_name), '_', ' ')),
      jsonb_build_object('permission', tg_argv[0], 'field', app_hidden.camel(refused)));
  end if;
  return new;
end $$;
comment on function app_private.tg__column_permissions() is
  'Restricts viewers without the permission of the argument to the columns that app_hidden.column_permissions allows.';

create policy team_and_public on app_public.floor_plans for select to plat_user
  using (deleted_at is null and (
    organization_id = any ((select app_hidden.viewer_organizations('inventory.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('inventory.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('construction.write'))::uuid[])
    or id = any (array(select app_hidden.viewer_purchase_floor_plans()))
    or (status <> 'DRAFT' and project_id <> all (array(select app_hidden.viewer_bought_projects()))
      and (select true from app_public.projects p where p.id = project_id))));
create policy everybody on app_public.floor_plans for select to plat_anonymous
  using (deleted_at is null and status <> 'DRAFT' and (select true from app_public.projects p where p.id = project_id));
create policy managers_insert on app_public.floor_plans for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('inventory.manage'))::uuid[]));
create policy managers_update on app_public.floor_plans for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('inventory.manage'))::uuid[]));
create policy managers_delete on app_public.floor_plans for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('inventory.manage'))::uuid[]));

select app_private.make_project_record('floor_plans', 'floor_plan', 'inventory.manage',
  event_permission => 'inventory.read');
select app_private.make_searchable('floor_plans', 'FLOOR_PLAN', 'concat_ws('' '', r.title, r.code)',
  'concat_ws('' '', r.subtitle, r.description)',
  offered => 'r.status <> ''DRAFT''');

grant select on app_public.floor_plans to plat_user, plat_anonymous;
grant insert (project_id, title, subtitle, code, description, status, home_type, base_price, bedrooms, bedrooms_max,
  baths, half_baths, garage, stories, sqft, sqft_max, balcony_sqft, hoa_fee, orientation, sequence, tour_url, metadata)
  on app_public.floor_plans to plat_user;
grant update (title, subtitle, code, description, status, home_type, base_price, bedrooms, bedrooms_max, baths,
  half_baths, garage, stories, sqft, sqft_max, balcony_sqft, hoa_fee, orientation, sequence, tour_url, metadata), delete
  on app_public.floor_plans to plat_user;

comment on table app_public.floor_plans is
  E'@defaultOrder sequence asc, id asc\n\nThe design that units are built to, with rooms, area and base price.';
comment on column app_public.floor_plans.title is 'Display name, such as The Maple.';
comment on column app_public.floor_plans.subtitle is 'Subtitle, shown below the title.';
comment on column app_public.floor_plans.code is 'Short name, unique in the project.';
comment on column app_public.floor_plans.description is 'Description for the public page.';
comment on column app_public.floor_plans.status is E'@filter\n\nWhether the plan is offered.';
comment on column app_public.floor_plans.home_type is E'@filter\n\nKind of the home.';
comment on column app_public.floor_plans.base_price is 'Price that units of this plan start at.';
comment on column app_public.floor_plans.bedrooms is 'Number of bedrooms; the minimum if the plan has variants.';
comment on column app_public.floor_plans.bedrooms_max is 'Maximum number of bedrooms, if the plan has variants.';
comment on column app_public.floor_plans.baths is 'Number of full bathrooms.';
comment on column app_public.floor_plans.half_baths is 'Number of half bathrooms (without bath or shower).';
comment on column app_public.floor_plans.garage is 'Number of cars that fit in the garage.';
comment on column app_public.floor_plans.stories is 'Number of floors of the home.';
comment on column app_public.floor_plans.sqft is 'Area in square feet; the minimum if the plan has variants.';
comment on column app_public.floor_plans.sqft_max is 'Maximum area in square feet, if the plan has variants.';
comment on column app_public.floor_plans.balcony_sqft is 'Area of the balcony in square feet.';
comment on column app_public.floor_plans.hoa_fee is 'Monthly fee of the homeowners'' association (HOA).';
comment on column app_public.floor_plans.orientation is 'Compass direction that it faces.';
comment on column app_public.floor_plans.sequence is 'Position in the list; lowest first.';
comment on column app_public.floor_plans.tour_url is 'URL of a virtual tour.';
comment on column app_public.floor_plans.metadata is
  E'@masked\n\nArbitrary JSON for the organization''s own programs; not interpreted.';
comment on constraint floor_plans_bedrooms_range on app_public.floor_plans is 'Must be from 0 to 99 bedrooms.';
comment on constraint floor_plans_bedrooms_max_range on app_public.floor_plans is 'Must be from 0 to 99 bedrooms.';
comment on constraint floor_plans_baths_range on app_public.floor_plans is 'Must be from 0 to 99 baths.';
comment on constraint floor_plans_half_baths_range on app_public.floor_plans is 'Must be from 0 to 99 half baths.';
comment on constraint floor_plans_garage_range on app_public.floor_plans is 'Must be from 0 to 99 cars.';
comment on constraint floor_plans_stories_range on app_public.floor_plans is 'Must be from 0 to 200 stories.';
comment on constraint floor_plans_sqft_range on app_public.floor_plans is 'Must be from 1 to 10,000,000 square feet.';
comment on constraint floor_plans_sqft_max_range on app_public.floor_plans is
  'Must be from 1 to 10,000,000 square feet.';
comment on constraint floor_plans_balcony_sqft_range on app_public.floor_plans is
  'Must be from 0 to 10,000,000 square feet.';
comment on constraint floor_plans_bedrooms_order on app_public.floor_plans is
  'The maximum number of bedrooms must not be below the minimum.';
comment on constraint floor_plans_sqft_order on app_public.floor_plans is
  'The maximum size must not be below the minimum.';
comment on constraint floor_plans_project_id_fkey on app_public.floor_plans is
  E'@parent\n'
  '@fieldName project\n'
  '@foreignFieldName floorPlans\n'
  '@backwardDescription Floor plans, in display order; for non-members only those on offer.\n\n'
  'The project that it belongs to.';
comment on index app_public.floor_plans_code is 'There is already a floor plan with this code.';

create function app_private.project_currency(project_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select p.currency from app_public.projects p where p.id = $1
$$;

create function app_private.tg_floor_plans__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' or new.base_price is distinct from old.base_price then
    new.base_price := app_hidden.to_money(new.base_price, app_private.project_currency(new.project_id), 'basePrice');
  end if;
  if tg_op = 'INSERT' or new.hoa_fee is distinct from old.hoa_fee then
    new.hoa_fee := app_hidden.to_money(new.hoa_fee, app_private.project_currency(new.project_id), 'hoaFee');
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.floor_plans for each row
  execute function app_private.tg_floor_plans__prepare();

create function app_hidden.contains_words(texts text, words text) returns boolean
language sql stable as $$
  select bool_and(app_hidden.fold(texts) like '%' || regexp_replace(word, '([\\%_])', '\\\1', 'g') || '%')
  from regexp_split_to_table(app_hidden.fold(btrim(words)), '\s+') word
$$;
comment on function app_hidden.contains_words(text, text) is
  'Whether a text has every word, whatever case and accents.';

create function app_hidden.range_of(_type anyrange, low text, high text) returns anyrange
language plpgsql stable as $$
declare
  result _type%type;
begin
  -- Both ends are included, but the end of a time; one that is null is open. A range the wrong way round holds nothing.
  execute format('select case when $1::%1$s > $2::%1$s then ''empty'' else %2$s($1::%1$s, $2::%1$s, %3$L) end',
      (select format_type(r.rngsubtype, null) from pg_range r where r.rngtypid = pg_typeof(_type)), pg_typeof(_type),
      case when pg_typeof(_type) = 'tstzrange'::regtype then '[)' else '[]' end)
    into result using low, high;
  return result;
end $$;
comment on function app_hidden.range_of(anyrange, text, text) is 'The range that an input such as IntRange means.';

create function app_public.floor_plans_metadata(f app_public.floor_plans) returns jsonb
language sql stable as $$ select case when f.metadata is not null
  and app_hidden.project_can(f.project_id, f.organization_id, 'inventory.read') then f.metadata end $$;

create function app_public.floor_plans_filter_bedrooms(f app_public.floor_plans, value int4range) returns boolean
language sql stable as $$ select int4range(f.bedrooms, coalesce(f.bedrooms_max, f.bedrooms), '[]') && value
  and f.bedrooms is not null $$;

create function app_public.floor_plans_filter_sqft(f app_public.floor_plans, value int4range) returns boolean
language sql stable as $$ select int4range(f.sqft, coalesce(f.sqft_max, f.sqft), '[]') && value
  and f.sqft is not null $$;

create function app_public.floor_plans_filter_query(f app_public.floor_plans, value text) returns boolean
language sql stable as $$ select app_hidden.contains_words(concat_ws(' ', f.title, f.subtitle, f.code), value) $$;
grant execute on function app_public.floor_plans_metadata, app_public.floor_plans_filter_bedrooms,
  app_public.floor_plans_filter_sqft, app_public.floor_plans_filter_query to plat_user, plat_anonymous;
comment on function app_public.floor_plans_metadata is
  'Arbitrary JSON for the organization''s own programs; not interpreted; null without the permission inventory.read.';
comment on function app_public.floor_plans_filter_bedrooms is
  E'@filter bedrooms\n\nFloor plans that are available with a number of bedrooms in this range. Both ends included.';
comment on function app_public.floor_plans_filter_sqft is
  E'@filter sqft\n\nFloor plans that are available with an area in square feet in this range. Both ends included.';
comment on function app_public.floor_plans_filter_query is
  E'@filter query\n\nWords that occur in title, subtitle or code.';
comment on function app_public.floor_plans_events is
  E'@permission audit.read\n'
  '@by subject_id\n\n'
  'Events of the record, latest first; null without the permission audit.read.';

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

-- The numbers that are of units which such a buyer does not see.
create function app_private.sees_units_of_plan(floor_plan_id uuid) returns boolean
language sql stable as $$
  select app_private.sees_project(f.project_id)
    and f.project_id <> all (array(select app_hidden.viewer_bought_projects()))
  from app_public.floor_plans f where f.id = $1
$$;
comment on function app_private.sees_units_of_plan(uuid) is
  'Whether the viewer sees the units of a floor plan that are for sale.';

create function app_public.floor_plans_price_min(f app_public.floor_plans) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- Viewers of the plan see its AVAILABLE units, except for those who only see it as a buyer.
  select min(u.price) from app_public.units u where u.floor_plan_id = f.id and u.status = 'AVAILABLE'
    and u.deleted_at is null and (select app_private.sees_units_of_plan(f.id))
$$;

create function app_public.floor_plans_available_count(f app_public.floor_plans) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::int from app_public.units u where u.floor_plan_id = f.id and u.status = 'AVAILABLE'
    and u.deleted_at is null and (select app_private.sees_units_of_plan(f.id))
$$;

create function app_public.floor_plans_filter_price(f app_public.floor_plans, value numrange) returns boolean
language sql stable as $$ select coalesce(app_public.floor_plans_price_min(f), f.base_price) <@ value $$;

comment on function app_public.floor_plans_price_min is
  'Lowest list price of its units with the status AVAILABLE; null if there is none.';
comment on function app_public.floor_plans_available_count is
  E'@notNull\n\nNumber of units of this plan that are for sale.';
comment on function app_public.floor_plans_filter_price is
  E'@filter price\n\nLowest price of its units for sale, otherwise `basePrice`. Both ends included.';

comment on function app_private.project_currency(uuid) is
  'The currency of a project.';

create function app_private.currency_for_viewer(project_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select p.currency from app_public.projects p where p.id = $1 and app_private.has_part_in(p.id)
$$;
comment on function app_private.currency_for_viewer(uuid) is
  'Currency of a project that the viewer takes part in, for amounts of its records.';
grant execute on function app_private.currency_for_viewer to plat_user, plat_anonymous;
