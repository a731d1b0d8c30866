--! Previous: sha1:e45de2c34ea4e41fb52f6d3f4a4c03374e63fc8b
--! Hash: sha1:05d7eb7c4142db758e025b2042ff9a3764ad3d00
--! Message: floor-plans

-- Floor plans: the designs that units are built to. What inventory has in common comes first: its enumerations, which
-- columns a narrower permission may change, and who reads its events.

select app_private.create_enum('home_type', 'The kind of a home.', array[
  ['CONDO', 'An apartment.'], ['TOWNHOME', 'A townhome.'], ['DETACHED', 'A detached home.'], ['SEMI_DETACHED', 'One half of two homes.'],
  ['DUPLEX', 'Two homes in one house.'], ['LOFT', 'A loft.'], ['PENTHOUSE', 'A penthouse.'], ['LIVE_WORK', 'A home with a workplace.'],
  ['LOT', 'Land alone.'], ['COMMERCIAL', 'Commerce.']]);
select app_private.create_enum('floor_plan_status', 'How far a floor plan is.', array[
  ['DRAFT', 'Being prepared; seen by the team only.'], ['ACTIVE', 'Offered.'], ['SOLD_OUT', 'Every unit is sold.'], ['RETIRED', 'Not offered any more.']]);
select app_private.create_enum('orientation', 'The side that something looks to.', array[
  ['N', 'North.'], ['NE', 'North-east.'], ['E', 'East.'], ['SE', 'South-east.'], ['S', 'South.'], ['SW', 'South-west.'], ['W', 'West.'], ['NW', 'North-west.']]);

create table app_hidden.column_permissions (
  table_name text not null,
  column_name text not null,
  permission text not null,
  primary key (table_name, column_name, permission)
);
alter table app_hidden.column_permissions enable row level security;
create policy everybody on app_hidden.column_permissions for select to plat_user, plat_anonymous, plat_worker using (true);
grant select on app_hidden.column_permissions to plat_user, plat_anonymous, plat_worker;
comment on table app_hidden.column_permissions is
  'Columns that a permission narrower than the one of the table lets somebody change.';

create function app_private.tg__column_permissions() returns trigger
language plpgsql volatile as $$
declare
  changed text[];
  refused text;
  -- PERF: asked once per statement of many rows, not once per row; known for this viewer and token in this transaction.
  known constant text := concat_ws(' ', tg_argv[0], old.organization_id, app_public.current_user_id(), app_hidden.setting('organization_id'), app_hidden.setting('scopes'));
begin
  -- Whoever writes as the viewer; the functions of the service answer for themselves.
  if current_user <> 'plat_user' or app_hidden.setting('may_change_all') = known then
    return new;
  end if;
  if app_hidden.organization_can(old.organization_id, tg_argv[0]) then
    perform set_config('plat.may_change_all', known, true);
    return new;
  end if;
  select array_agg(n.key order by n.key) into changed from jsonb_each(to_jsonb(new)) n join jsonb_each(to_jsonb(old)) o on o.key = n.key
    where n.value <> o.value and has_column_privilege(tg_relid, n.key, 'update');
  select c.name into refused from unnest(changed) c (name)
    where not exists (select from app_hidden.column_permissions p
      where p.table_name = tg_table_name and p.column_name = c.name and app_hidden.project_can(old.project_id, old.organization_id, p.permission))
    limit 1;
  if refused is not null then
    perform app_hidden.fail('FORBIDDEN', format('You may not change %s of this %s.', app_hidden.camel(refused), replace(app_hidden.subject(tg_table_name), '_', ' ')),
      jsonb_build_object('permission', tg_argv[0], 'field', app_hidden.camel(refused)));
  end if;
  return new;
end $$;
comment on function app_private.tg__column_permissions() is
  'Lets whoever lacks the permission of the argument change only the columns that app_hidden.column_permissions allows.';

-- An event holds the whole record. Of records that show less to some than to others, it is read with a permission.
alter table app_hidden.record_types add column event_permission text;
comment on column app_hidden.record_types.event_permission is
  'What reading the events of these records takes, where the records themselves are seen by more people.';

create or replace function app_hidden.sees_subject(subject_type text, subject_id uuid) returns boolean
language plpgsql stable as $$
declare
  record_type app_hidden.record_types;
  result boolean;
begin
  select * into record_type from app_hidden.record_types r where r.subject = subject_type;
  if record_type.table_name is null then
    return false;
  end if;
  -- As the viewer: the policy of the record's own table decides.
  execute format('select exists (select from app_public.%I r where r.id = $1%s)', record_type.table_name,
    case when record_type.event_permission is not null
      then format(' and app_hidden.project_can(r.project_id, r.organization_id, %L)', record_type.event_permission) else '' end)
    into result using subject_id;
  return result;
end $$;
comment on function app_hidden.sees_subject(text, uuid) is 'Whether the viewer may see the record that an event is about.';

--------------------------------------------------------------------------------------------------------

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
  constraint floor_plans_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete restrict
);
comment on constraint floor_plans_bedrooms_range on app_public.floor_plans is 'Give 0 to 99 bedrooms.';
comment on constraint floor_plans_bedrooms_max_range on app_public.floor_plans is 'Give 0 to 99 bedrooms.';
comment on constraint floor_plans_baths_range on app_public.floor_plans is 'Give 0 to 99 baths.';
comment on constraint floor_plans_half_baths_range on app_public.floor_plans is 'Give 0 to 99 half baths.';
comment on constraint floor_plans_garage_range on app_public.floor_plans is 'Give room for 0 to 99 cars.';
comment on constraint floor_plans_stories_range on app_public.floor_plans is 'Give 0 to 200 stories.';
comment on constraint floor_plans_sqft_range on app_public.floor_plans is 'Give 1 to 10,000,000 square feet.';
comment on constraint floor_plans_sqft_max_range on app_public.floor_plans is 'Give 1 to 10,000,000 square feet.';
comment on constraint floor_plans_balcony_sqft_range on app_public.floor_plans is 'Give 0 to 10,000,000 square feet.';
comment on constraint floor_plans_bedrooms_order on app_public.floor_plans is 'The highest number of bedrooms is below the lowest.';
comment on constraint floor_plans_sqft_order on app_public.floor_plans is 'The largest size is below the smallest.';
create unique index floor_plans_code on app_public.floor_plans (project_id, lower(code)) where deleted_at is null and code is not null;
comment on index app_public.floor_plans_code is 'There is a floor plan with this code already.';
create index floor_plans_project on app_public.floor_plans (project_id, sequence, id) where deleted_at is null;
create index floor_plans_organization on app_public.floor_plans (organization_id, id) where deleted_at is null;

-- The team sees everything; whoever sees the project sees what is offered there.
-- PERF: (select true …) looks each project up by its id; exists (…) may be planned as a hash of all projects there are.
alter table app_public.floor_plans enable row level security;
create policy team_and_public on app_public.floor_plans for select to plat_user
  using (deleted_at is null and (
    organization_id = any (array(select app_hidden.viewer_organizations('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('construction.write')))
    or (status <> 'DRAFT' and (select true from app_public.projects p where p.id = project_id))));
create policy everybody on app_public.floor_plans for select to plat_anonymous
  using (deleted_at is null and status <> 'DRAFT' and (select true from app_public.projects p where p.id = project_id));
create policy managers_insert on app_public.floor_plans for insert to plat_user
  with check (organization_id = any (array(select app_hidden.viewer_organizations('inventory.manage'))));
create policy managers_update on app_public.floor_plans for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('inventory.manage'))));
create policy managers_delete on app_public.floor_plans for delete to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('inventory.manage'))));
grant select on app_public.floor_plans to plat_user, plat_anonymous, plat_worker;
grant insert (project_id, title, subtitle, code, description, status, home_type, base_price, bedrooms, bedrooms_max, baths, half_baths, garage,
  stories, sqft, sqft_max, balcony_sqft, hoa_fee, orientation, sequence, tour_url, metadata) on app_public.floor_plans to plat_user;
grant update (title, subtitle, code, description, status, home_type, base_price, bedrooms, bedrooms_max, baths, half_baths, garage,
  stories, sqft, sqft_max, balcony_sqft, hoa_fee, orientation, sequence, tour_url, metadata), delete on app_public.floor_plans to plat_user;

select app_private.make_project_record('floor_plans', 'floor_plan', 'inventory.manage');
update app_hidden.record_types set event_permission = 'inventory.read' where table_name = 'floor_plans';

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
create trigger _200_prepare before insert or update on app_public.floor_plans for each row execute function app_private.tg_floor_plans__prepare();

create function app_hidden.contains_words(texts text, words text) returns boolean
language sql stable as $$
  select bool_and(app_hidden.fold(texts) like '%' || regexp_replace(word, '([\\%_])', '\\\1', 'g') || '%')
  from regexp_split_to_table(app_hidden.fold(btrim(words)), '\s+') word
$$;
comment on function app_hidden.contains_words(text, text) is 'Whether a text has every word, whatever case and accents.';

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
language sql stable as $$ select case when f.metadata is not null and app_hidden.project_can(f.project_id, f.organization_id, 'inventory.read') then f.metadata end $$;
create function app_public.floor_plans_filter_bedrooms(f app_public.floor_plans, value int4range) returns boolean
language sql stable as $$ select int4range(f.bedrooms, coalesce(f.bedrooms_max, f.bedrooms), '[]') && value and f.bedrooms is not null $$;
create function app_public.floor_plans_filter_sqft(f app_public.floor_plans, value int4range) returns boolean
language sql stable as $$ select int4range(f.sqft, coalesce(f.sqft_max, f.sqft), '[]') && value and f.sqft is not null $$;
create function app_public.floor_plans_filter_query(f app_public.floor_plans, value text) returns boolean
language sql stable as $$ select app_hidden.contains_words(concat_ws(' ', f.title, f.subtitle, f.code), value) $$;
grant execute on function app_public.floor_plans_metadata, app_public.floor_plans_filter_bedrooms, app_public.floor_plans_filter_sqft,
  app_public.floor_plans_filter_query to plat_user, plat_anonymous;
comment on function app_public.floor_plans_metadata is 'Free data of the organization''s own programs; null without the permission inventory.read.';
comment on function app_public.floor_plans_filter_bedrooms is E'@filter bedrooms\n\nBedrooms: plans that come with such a number. Both ends included.';
comment on function app_public.floor_plans_filter_sqft is E'@filter sqft\n\nSquare feet: plans that come in such a size. Both ends included.';
comment on function app_public.floor_plans_filter_query is E'@filter query\n\nWords in title, subtitle or code.';
comment on function app_public.floor_plans_events is E'@permission audit.read\n@by subject_id\n\nWhat happened to it, latest first; null without the permission audit.read.';

comment on table app_public.floor_plans is E'@defaultOrder sequence asc, id asc\n\nA design that units are built to.';
comment on column app_public.floor_plans.title is 'Name of the plan.';
comment on column app_public.floor_plans.subtitle is 'Second line of the name.';
comment on column app_public.floor_plans.code is 'Short name, unique in the project.';
comment on column app_public.floor_plans.description is 'What the public reads about it.';
comment on column app_public.floor_plans.status is E'@filter\n\nWhether it is offered.';
comment on column app_public.floor_plans.home_type is E'@filter\n\nKind of the home.';
comment on column app_public.floor_plans.base_price is 'Price that units of this plan begin at.';
comment on column app_public.floor_plans.bedrooms is 'Bedrooms; the fewest where the plan has variants.';
comment on column app_public.floor_plans.bedrooms_max is 'The most bedrooms.';
comment on column app_public.floor_plans.baths is 'Full bathrooms.';
comment on column app_public.floor_plans.half_baths is 'Bathrooms without bath or shower.';
comment on column app_public.floor_plans.garage is 'Cars that the garage holds.';
comment on column app_public.floor_plans.stories is 'Stories.';
comment on column app_public.floor_plans.sqft is 'Square feet; the smallest where the plan has variants.';
comment on column app_public.floor_plans.sqft_max is 'The largest size in square feet.';
comment on column app_public.floor_plans.balcony_sqft is 'Square feet of the balcony.';
comment on column app_public.floor_plans.hoa_fee is 'Monthly fee of the owners'' association.';
comment on column app_public.floor_plans.orientation is 'The side that it looks to.';
comment on column app_public.floor_plans.sequence is 'Place in the list.';
comment on column app_public.floor_plans.tour_url is 'Address of a virtual tour.';
comment on column app_public.floor_plans.metadata is E'@masked\n\nFree data of the organization''s own programs.';
comment on constraint floor_plans_project_id_fkey on app_public.floor_plans is
  E'@parent\n@fieldName project\n@foreignFieldName floorPlans\n@backwardDescription The floor plans, in their order; those that are offered for outsiders.\n\nThe project.';
