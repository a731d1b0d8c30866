-- A project belongs to one organization; others can be affiliated with it. Public projects are visible to everybody;
-- the viewer's portfolio consists of the projects that their organizations own or are affiliated with.

create policy everybody on app_public.projects for select to plat_anonymous
  using (deleted_at is null and visibility in ('PUBLIC', 'UNLISTED') and archived_at is null);
create policy portfolio_and_public on app_public.projects for select to plat_user
  using (deleted_at is null and (
    organization_id = any ((select app_hidden.viewer_organizations('project.read'))::uuid[])
    or id = any ((select app_hidden.viewer_projects('project.read'))::uuid[])
    or (visibility in ('PUBLIC', 'UNLISTED') and archived_at is null)
    or id = any (array(select app_hidden.viewer_purchase_projects()))));
create policy managers_insert on app_public.projects for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));
create policy managers_update on app_public.projects for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));
create policy managers_delete on app_public.projects for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));

select app_private.make_record('projects', 'project', 'project.manage', slug_from => 'title');
select app_private.make_state_machine('projects', 'project',
  steps => array[
    ['DRAFT', 'COMING_SOON'], ['COMING_SOON', 'PRESALE'], ['PRESALE', 'SELLING'], ['SELLING', 'PAUSED'],
    ['PAUSED', 'SELLING'],
    ['SELLING', 'SOLD_OUT'], ['PAUSED', 'SOLD_OUT'], ['SOLD_OUT', 'COMPLETED'],
    ['DRAFT', 'ARCHIVED'], ['COMING_SOON', 'ARCHIVED'], ['PRESALE', 'ARCHIVED'], ['SELLING', 'ARCHIVED'],
    ['PAUSED', 'ARCHIVED'],
    ['SOLD_OUT', 'ARCHIVED'], ['COMPLETED', 'ARCHIVED'],
    ['ARCHIVED', 'DRAFT'], ['ARCHIVED', 'COMING_SOON'], ['ARCHIVED', 'PRESALE'], ['ARCHIVED', 'SELLING'],
    ['ARCHIVED', 'PAUSED'],
    ['ARCHIVED', 'SOLD_OUT'], ['ARCHIVED', 'COMPLETED']],
  initial => array['DRAFT', 'COMING_SOON', 'PRESALE', 'SELLING', 'PAUSED', 'SOLD_OUT', 'COMPLETED']);
select app_private.make_searchable('projects', 'PROJECT', 'r.title',
  'concat_ws('' '', r.overview_headline, (r.address).thoroughfare, (r.address).locality, '
  '(r.address).administrative_area, (r.address).postal_code, r.overview)',
  project => 'r.id');

grant select on app_public.projects to plat_user, plat_anonymous;
grant insert (organization_id, title, slug, type, status, visibility, overview, overview_headline, design,
  design_heading, address, time_zone, currency, website_url, amenities, sales_start_date, completion_date,
  reservation_expiration, reservation_fee, cancellation_fee, rescission_days, sold_trigger, allow_multiple_offers,
  lead_assignment, hold_expiration, hold_expiration_limit, holds_per_person, holds_per_organization,
  public_reservations, public_reservation_fee_required, public_hold_expiration, metadata)
  on app_public.projects to plat_user;
grant update (title, slug, type, status, visibility, overview, overview_headline, design, design_heading, address,
  time_zone, website_url, amenities, sales_start_date, completion_date, reservation_expiration, reservation_fee,
  cancellation_fee, rescission_days, sold_trigger, allow_multiple_offers, lead_assignment, hold_expiration,
  hold_expiration_limit, holds_per_person, holds_per_organization, public_reservations,
  public_reservation_fee_required, public_hold_expiration, metadata) on app_public.projects to plat_user;
grant delete on app_public.projects to plat_user;

comment on table app_public.projects is $$
@portfolio project.read
@defaultOrder updated_at desc
@sort SERVICE_INDEX service_index desc
@sort UPDATED_AT updated_at desc
@sort TITLE title asc
@sort PRICE_ASC lowest_price(id) asc
@sort PRICE_DESC highest_price(id) desc
@sort NEWEST inserted_at desc
@sort DISTANCE distance asc, service_index desc
@formerFinder publicProject

A development of new homes.$$;
comment on column app_public.projects.organization_id is
  E'@filter organizationIds\n@formerFilter organizationId Removed after 2028-01-01.\n\n'
  'Id of the organization (tenant) that owns the project.';
comment on column app_public.projects.title is 'Display name, such as Harbour Lofts.';
comment on column app_public.projects.slug is 'Readable name for URLs, accepted wherever an id is.';
comment on column app_public.projects.status is E'@filter\n\nStage of the project, such as SELLING.';
comment on column app_public.projects.visibility is 'Who can find and see the project.';
comment on column app_public.projects.type is E'@filter\n\nKind of development.';
comment on column app_public.projects.overview is 'Public description, at most 1,500 characters.';
comment on column app_public.projects.overview_headline is 'Headline above the overview on the public page.';
comment on column app_public.projects.design is 'Public description of the design.';
comment on column app_public.projects.design_heading is 'Headline above the text about design on the public page.';
comment on column app_public.projects.address is 'Address of the site.';
comment on column app_public.projects.city is 'City of the address.';
comment on column app_public.projects.time_zone is
  'IANA time zone for deadlines of the project, such as America/Toronto.';
comment on column app_public.projects.currency is 'Currency of all amounts of the project.';
comment on column app_public.projects.website_url is 'Address of its website.';
comment on column app_public.projects.amenities is 'Shared amenities, such as a gym or garden.';
comment on column app_public.projects.sales_start_date is 'First day on which units are offered.';
comment on column app_public.projects.completion_date is 'Expected completion date.';
comment on column app_public.projects.archived_at is
  'When the project was archived (read-only and not public); null otherwise.';
comment on column app_public.projects.archived_from is E'@behavior -*\n\nThe status before it was archived.';
comment on column app_public.projects.reservation_expiration is
  E'@measures nothing\n\nDefault duration of a reservation in hours.';
comment on column app_public.projects.reservation_fee is
  E'@measures nothing\n\nReservation fee: a deposit of each new reservation, which counts towards the price.';
comment on column app_public.projects.cancellation_fee is E'@measures nothing\n\nCancellation fee of a reservation.';
comment on column app_public.projects.rescission_days is
  E'@measures nothing\n\nNumber of days within which a buyer may withdraw from a signed purchase.';
comment on column app_public.projects.sold_trigger is 'Event from which a unit counts as sold.';
comment on column app_public.projects.allow_multiple_offers is
  'Whether several buyers may negotiate about the same unit at the same time.';
comment on column app_public.projects.lead_assignment is 'How new leads are assigned.';
comment on column app_public.projects.hold_expiration is E'@measures nothing\n\nDefault duration of a hold in hours.';
comment on column app_public.projects.hold_expiration_limit is
  E'@measures nothing\n\n'
  'Maximum number of hours that one person may hold the same unit or lot, including extensions and renewed holds.';
comment on column app_public.projects.holds_per_person is
  E'@measures nothing\n\nMaximum number of simultaneous holds per person; 0 disables holds.';
comment on column app_public.projects.holds_per_organization is
  E'@measures nothing\n\nMaximum number of simultaneous holds per organization.';
comment on column app_public.projects.public_reservations is
  'Whether signed-in visitors can reserve homes themselves while the project is public and its status is PRESALE '
  'or SELLING.';
comment on column app_public.projects.public_reservation_fee_required is
  'Whether a visitor''s reservation expires after `publicHoldExpiration` hours unless the fee is paid. Has no '
  'effect without a fee.';
comment on column app_public.projects.public_hold_expiration is
  E'@measures nothing\n\nHours that a signed-in visitor may hold a home, to reserve it and pay the fee.';
comment on column app_public.projects.metadata is
  E'@masked\n\nArbitrary JSON for the organization''s own programs; not interpreted.';
comment on column app_public.projects.service_index is
  E'@measures ratio\n@secret\n\n'
  'Score from 0 to 100 of how well the project serves buyers; default order of `publicProjects`.';
comment on constraint projects_overview_length on app_public.projects is 'An overview has at most 1,500 characters.';
comment on constraint projects_reservation_expiration_range on app_public.projects is 'Must be from 1 to 8,760 hours.';
comment on constraint projects_hold_expiration_range on app_public.projects is 'Must be from 1 to 720 hours.';
comment on constraint projects_hold_expiration_limit_range on app_public.projects is 'Must be from 1 to 720 hours.';
comment on constraint projects_hold_expiration_within on app_public.projects is
  'A hold cannot last longer than holdExpirationLimit.';
comment on constraint projects_public_hold_expiration_range on app_public.projects is 'Must be from 1 to 72 hours.';
comment on constraint projects_holds_per_person_range on app_public.projects is 'Must be from 0 to 10,000 holds.';
comment on constraint projects_holds_per_organization_range on app_public.projects is 'Must be from 0 to 10,000 holds.';
comment on constraint projects_rescission_days_range on app_public.projects is 'Must be from 0 to 365 days.';
comment on constraint projects_dates_order on app_public.projects is
  'The completion date must not be before the start of sales.';
comment on constraint projects_organization_id_fkey on app_public.projects is
  E'@parent\n@backwardBehavior -*\n\nId of the organization (tenant) that owns the project.';
comment on index app_public.projects_slug is 'This slug is taken; choose another.';

create function app_private.tg_projects__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_hidden.currencies c where c.code = new.currency) then
    perform app_hidden.fail('BAD_USER_INPUT', 'This currency is unknown; use an ISO 4217 code, such as USD.',
      '{"field": "currency"}');
  end if;
  new.address := app_hidden.complete_address(new.address,
    (select (o.address).country from app_public.organizations o where o.id = new.organization_id));
  new.reservation_fee := app_hidden.to_money(new.reservation_fee, new.currency, 'reservationFee');
  new.cancellation_fee := app_hidden.to_money(new.cancellation_fee, new.currency, 'cancellationFee');
  if tg_op = 'UPDATE' then
    if old.status = 'ARCHIVED' and new.status = 'ARCHIVED'
      and to_jsonb(new) - '{service_index,city}'::text[] <> to_jsonb(old) - '{service_index,city}'::text[] then
      perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
    end if;
    if old.status = 'ARCHIVED' and new.status <> 'ARCHIVED' and new.status <> old.archived_from then
      perform app_hidden.fail('INVALID_TRANSITION',
        format('A paused project resumes with its previous status: %s.', old.archived_from),
        jsonb_build_object('from', 'ARCHIVED', 'to', new.status, 'field', 'status', 'allowedTransitions',
          jsonb_build_array(old.archived_from)));
    end if;
    if new.status = 'ARCHIVED' and old.status <> 'ARCHIVED' then
      new.archived_at := now();
      new.archived_from := old.status;
    elsif new.status <> 'ARCHIVED' then
      new.archived_at := null;
      new.archived_from := null;
    end if;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.projects
  for each row execute function app_private.tg_projects__prepare();

create function app_private.tg_projects__own() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
    values (new.id, new.organization_id, new.organization_id, 'OWNER');
  return null;
end $$;
create trigger _500_own after insert on app_public.projects for each row
  execute function app_private.tg_projects__own();

create function app_private.tg_projects__public_organization() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.organizations o set has_public_project = p.is_public
  from (select exists (select from app_public.projects p
      where p.organization_id = new.organization_id and p.visibility = 'PUBLIC' and p.archived_at is null
        and p.deleted_at is null) as is_public) p
  where o.id = new.organization_id and o.has_public_project <> p.is_public;
  return null;
end $$;
create trigger _510_public_organization after insert or update of visibility, status, deleted_at on app_public.projects
  for each row execute function app_private.tg_projects__public_organization();

comment on table app_private.project_record is
  'Holds no rows: the columns of a record of a project, for `create table ... (like app_private.project_record '
  'including all, ...)`.';

create function app_public.projects_metadata(p app_public.projects) returns jsonb
language sql stable as $$ select case when app_hidden.project_can(p.id, p.organization_id, 'project.read')
  then p.metadata end $$;
grant execute on function app_public.projects_metadata to plat_user, plat_anonymous;
comment on function app_public.projects_metadata is
  'Arbitrary JSON for the organization''s own programs; not interpreted; null for non-members.';

create function app_public.projects_allowed_transitions(p app_public.projects) returns app_public.transition[]
language sql stable as $$
  select case when p.status = 'ARCHIVED' then array[row(p.archived_from, true, '{}')::app_public.transition]
    else app_hidden.transitions_from('project', to_jsonb(p)) end
$$;
grant execute on function app_public.projects_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.projects_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';

create function app_public.public_projects(city text default null) returns setof app_public.projects
language sql stable as $$
  select p.* from app_hidden.masked_projects p
  where p.visibility = 'PUBLIC' and p.archived_at is null and p.deleted_at is null
    and (public_projects.city is null or lower(p.city) = lower(btrim(public_projects.city)))
$$;
grant execute on function app_public.public_projects to plat_user, plat_anonymous;
comment on function app_public.public_projects is $$
@arg city Only projects in this city, ignoring case.
@defaultSort SERVICE_INDEX

Public projects, best service index first; restricted fields are null without permission.$$;

create function app_public.projects_filter_query(p app_public.projects, value text) returns boolean
language sql stable as $$
  select lower(p.title) like '%' || regexp_replace(lower(btrim(value)), '([\\%_])', '\\\1', 'g') || '%'
    or lower(p.city) like '%' || regexp_replace(lower(btrim(value)), '([\\%_])', '\\\1', 'g') || '%'
$$;

create function app_public.projects_filter_archived(p app_public.projects, value boolean) returns boolean
language sql stable as $$ select (p.archived_at is not null) = value $$;

create function app_public.projects_filter_city(p app_public.projects, value text) returns boolean
language sql stable as $$ select lower(p.city) = lower(btrim(value)) $$;
grant execute on function app_public.projects_filter_query, app_public.projects_filter_archived,
  app_public.projects_filter_city to plat_user, plat_anonymous;
comment on function app_public.projects_filter_query is E'@filter query\n\nWords that occur in title or city.';
comment on function app_public.projects_filter_archived is
  E'@filter archived\n\nTrue: only archived projects. False: only projects that are not archived.';
comment on function app_public.projects_filter_city is E'@filter city\n\nCity of the address, ignoring case.';

create function app_private.tg_projects__lead_defaults() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_public.lead_sources (project_id, organization_id, name, code, category, is_system) values
    (new.id, new.organization_id, 'Website', 'WEB_DIRECT', 'WEBSITE', true),
    (new.id, new.organization_id, 'Walk-in', 'WALK_IN', 'WALK_IN', true),
    (new.id, new.organization_id, 'Phone', 'PHONE', 'PHONE', true),
    (new.id, new.organization_id, 'Referral', 'REFERRAL', 'REFERRAL', true),
    (new.id, new.organization_id, 'Agent', 'AGENT', 'AGENT', true),
    (new.id, new.organization_id, 'Other', 'OTHER', 'OTHER', true);
  insert into app_public.fallout_reasons (project_id, organization_id, name, category, sequence) values
    (new.id, new.organization_id, 'Price too high', 'PRICE', 1),
    (new.id, new.organization_id, 'No financing', 'FINANCING', 2),
    (new.id, new.organization_id, 'Bought elsewhere', 'COMPETITOR', 3),
    (new.id, new.organization_id, 'Does not answer', 'UNRESPONSIVE', 4),
    (new.id, new.organization_id, 'Other', 'OTHER', 5);
  return null;
end $$;
create trigger _520_lead_defaults after insert on app_public.projects for each row
  execute function app_private.tg_projects__lead_defaults();

create function app_public.projects_filter_price(p app_public.projects, value numrange) returns boolean
language sql stable as $$ select app_hidden.offers_price(p.id, value) $$;

create function app_public.projects_filter_bedrooms(p app_public.projects, value int4range) returns boolean
language sql stable as $$ select app_hidden.offers_bedrooms(p.id, value) $$;

create or replace trigger _900_touch before update on app_public.projects for each row
  when (old.service_index is not distinct from new.service_index)
  execute function app_private.tg_projects__touch();

comment on function app_public.projects_filter_price is
  E'@filter price\n\nProjects that have a unit for sale at a list price in this range. Both ends included.';
comment on function app_public.projects_filter_bedrooms is
  E'@filter bedrooms\n\n'
  'Projects that have a unit for sale with a number of bedrooms in this range. Both ends included.';

create function app_public.projects_avatar(p app_public.projects) returns setof app_public.project_avatars
language sql stable rows 1 as $$ select a.* from app_public.project_avatars a where a.project_id = p.id
  and a.deleted_at is null limit 1 $$;

create function app_public.projects_hero(p app_public.projects) returns setof app_public.project_images
language sql stable rows 1 as $$
  select i.* from app_public.project_images i where i.project_id = p.id and i.deleted_at is null
  order by i.category = 'HERO' desc, i.sequence, i.id limit 1
$$;

comment on function app_public.projects_avatar is 'Logo of the project.';
comment on function app_public.projects_hero is 'Main image: the first of category HERO, otherwise the first.';

create function app_public.projects_collections(p app_public.projects) returns setof app_public.project_collections
language sql stable as $$
  select c.* from app_public.project_collections c
  where c.organization_id = p.organization_id and p.id::text = any (c.project_ids::text[])
  order by c.sequence, c.id
$$;
comment on function app_public.projects_collections is
  'Project collections that contain it, as far as the viewer may see them.';

create function app_private.tg_projects__sales_office() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_public.sales_offices (project_id) values (new.id);
  return null;
end $$;
create trigger _530_sales_office after insert on app_public.projects for each row
  execute function app_private.tg_projects__sales_office();

create function app_private.place_project(project_id uuid, waits boolean default true) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  address app_public.address := (select p.address from app_public.projects p where p.id = project_id);
  area text := coalesce(btrim(address.administrative_area), '');
  place text := nullif(btrim(address.locality), '');
  lock bigint;
  found_id uuid;
begin
  delete from app_private.project_cities c where c.project_id = project_id;
  if place is null then
    return true;
  end if;
  for attempt in 1 .. 2 loop
    select c.id into found_id from app_private.cities c
      where c.country = address.country and app_hidden.fold(c.name) = app_hidden.fold(place)
        and app_hidden.fold(c.administrative_area) = app_hidden.fold(area);
    exit when found_id is not null or attempt = 2;
    -- Cities are shared by all organizations, so a transaction that adds one blocks others that add the same.
    lock := hashtextextended(concat_ws(' ', 'plat.city', address.country, app_hidden.fold(place),
      app_hidden.fold(area)), 0);
    if not waits and not pg_try_advisory_xact_lock(lock) then
      return false;
    end if;
    perform pg_advisory_xact_lock(lock) where waits;
    insert into app_private.cities (country, administrative_area, name) values (address.country, area, place)
      on conflict do nothing;
  end loop;
  insert into app_private.project_cities (project_id, city_id) values (project_id, found_id);
  return true;
end $$;
comment on function app_private.place_project(uuid, boolean) is
  'Says which city a project is in, by its address. Returns false if another transaction is adding that city; does '
  'not wait for it.';

create function app_private.tg_projects__city() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' or new.address is distinct from old.address then
    if not app_private.place_project(new.id, waits => false) then
      perform app_private.add_job('project__placed', jsonb_build_object('id', new.id));
    end if;
  end if;
  return null;
end $$;
create trigger _540_city after insert or update of address on app_public.projects
  for each row execute function app_private.tg_projects__city();

-- PERF: the result of viewer_sees, for functions that are called for each row of a list.
create function app_private.sees_project(project_id uuid) returns boolean
language sql stable as $$
  select exists (select from app_public.projects p where p.id = $1 and p.deleted_at is null
    and ((p.visibility in ('PUBLIC', 'UNLISTED') and p.archived_at is null)
      or p.organization_id = any ((select app_hidden.viewer_organizations('project.read'))::uuid[])
      or p.id = any ((select app_hidden.viewer_projects('project.read'))::uuid[])
      or p.id = any (array(select app_hidden.viewer_purchase_projects()))))
$$;
comment on function app_private.sees_project(uuid) is
  'Whether the viewer sees a project, for functions that run as the owner.';

create function app_public.projects_abstract(p app_public.projects) returns app_public.project_abstract
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.project_abstract_of(j) from app_public.projects j where j.id = p.id
    and app_private.sees_project(j.id) and j.id <> all (array(select app_hidden.viewer_bought_projects()))
$$;
grant execute on function app_public.projects_abstract to plat_user, plat_anonymous;
comment on function app_public.projects_abstract is
  'Summary of the units, such as how many are for sale; null for a buyer if the project is not public.';

create function app_private.tg_projects__search_public() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  everybody constant uuid := '00000000-0000-0000-0000-000000000000';
begin
  update app_private.search_texts t
    set scopes = case when new.visibility = 'PUBLIC' and new.archived_at is null
      then array_append(array_remove(t.scopes, everybody), everybody)
      else array_remove(t.scopes, everybody) end
    where (t.type = 'UNIT' and t.id in (select u.id from app_public.units u where u.project_id = new.id))
      or (t.type = 'FLOOR_PLAN' and t.id in (select f.id from app_public.floor_plans f where f.project_id = new.id));
  return null;
end $$;
comment on function app_private.tg_projects__search_public() is
  'What everybody sees of a project goes with the project.';
create trigger _540_search_public after update on app_public.projects for each row
  when ((old.visibility = 'PUBLIC' and old.archived_at is null) is distinct
    from (new.visibility = 'PUBLIC' and new.archived_at is null))
  execute function app_private.tg_projects__search_public();
grant execute on function app_private.place_project to plat_worker;
