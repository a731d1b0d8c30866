--! Previous: sha1:88bac2760cfc6a9ec656022fedbd4a420c834d50
--! Hash: sha1:6ccfef6719363a4b23d8f17984b7d00d1cd39877
--! Message: projects

-- A project belongs to one organization; others can be affiliated with it. Public ones are seen by everybody, the
-- viewer's portfolio is what their organizations own or are affiliated with.

select app_private.create_enum('project_status', 'How far a project is.', array[
  ['DRAFT', 'Being prepared.'], ['COMING_SOON', 'Announced.'], ['PRESALE', 'Selling before release.'], ['SELLING', 'Selling.'],
  ['PAUSED', 'Sales are paused.'], ['SOLD_OUT', 'Everything is sold.'], ['COMPLETED', 'Everything is handed over.'],
  ['ARCHIVED', 'Read-only and not public.']]);
select app_private.create_enum('project_visibility', 'Who finds a project.', array[
  ['PRIVATE', 'The portfolio only.'], ['UNLISTED', 'Everybody who knows its address; in no list.'], ['PUBLIC', 'Everybody.']]);
select app_private.create_enum('project_type', 'What is built.', array[
  ['CONDOMINIUM', 'Apartments.'], ['TOWNHOME', 'Townhomes.'], ['SINGLE_FAMILY', 'Detached homes.'], ['MIXED_USE', 'Homes and commerce.'],
  ['MASTER_PLANNED', 'A whole neighbourhood.'], ['LAND', 'Lots.'], ['COMMERCIAL', 'Commerce.']]);
select app_private.create_enum('sold_trigger', 'When a unit counts as sold.', array[
  ['SIGNED', 'When the purchase is signed.'], ['FIRM', 'When the purchase is firm.']]);
select app_private.create_enum('lead_assignment_mode', 'Who works on a new lead.', array[
  ['MANUAL', 'Whoever is chosen.'], ['ROUND_ROBIN', 'The members in turn.'], ['PRIVATE', 'Whoever brings it; members see their own leads only.']]);
select app_private.create_enum('projects_sort', 'An order of projects.', array[
  ['SERVICE_INDEX', 'Best service index first.'], ['UPDATED_AT', 'Last updated first.'], ['TITLE', 'By title.'],
  ['PRICE_ASC', 'Cheapest first.'], ['PRICE_DESC', 'Dearest first.'], ['DISTANCE', 'Nearest to the viewer first.'], ['NEWEST', 'Newest first.']]);

create table app_public.projects (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete restrict,
  title app_public.short_text not null,
  slug app_public.slug not null,
  status app_public.project_status not null default 'DRAFT',
  visibility app_public.project_visibility not null default 'PRIVATE',
  type app_public.project_type not null default 'CONDOMINIUM',
  overview app_public.long_text constraint projects_overview_length check (length(overview) <= 1500),
  overview_headline app_public.short_text,
  design app_public.long_text,
  design_heading app_public.short_text,
  address app_public.address,
  time_zone app_public.time_zone not null default 'UTC',
  currency app_public.currency_code not null default 'USD',
  website_url app_public.url,
  amenities app_public.tags not null default '{}',
  sales_start_date date,
  completion_date date,
  archived_at timestamptz,
  archived_from app_public.project_status,
  service_index int not null default 0 check (service_index between 0 and 100),
  reservation_expiration int not null default 48 constraint projects_reservation_expiration_range check (reservation_expiration between 1 and 8760),
  reservation_fee app_public.money,
  cancellation_fee app_public.money,
  rescission_days int not null default 0 constraint projects_rescission_days_range check (rescission_days between 0 and 365),
  sold_trigger app_public.sold_trigger not null default 'SIGNED',
  allow_multiple_offers boolean not null default false,
  lead_assignment app_public.lead_assignment_mode not null default 'MANUAL',
  metadata jsonb,
  city text generated always as ((address).locality) stored,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  constraint projects_dates_order check (completion_date >= sales_start_date),
  unique (id, organization_id)
);
comment on constraint projects_overview_length on app_public.projects is 'An overview has 1,500 characters at most.';
comment on constraint projects_reservation_expiration_range on app_public.projects is 'Give 1 to 8,760 hours.';
comment on constraint projects_rescission_days_range on app_public.projects is 'Give 0 to 365 days.';
comment on constraint projects_dates_order on app_public.projects is 'The completion date lies before the start of sales.';
create unique index projects_slug on app_public.projects (slug);
create index projects_organization on app_public.projects (organization_id, updated_at desc, id desc) where deleted_at is null;
create index projects_public on app_public.projects (service_index desc, id desc)
  where deleted_at is null and visibility = 'PUBLIC' and archived_at is null;

create table app_public.project_organizations (
  id uuid primary key default uuidv7(),
  project_id uuid not null,
  owner_id uuid not null,
  organization_id uuid not null references app_public.organizations on delete restrict,
  role app_public.project_organization_role not null,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint project_organizations_once unique (project_id, organization_id),
  constraint project_organizations_project_id_fkey foreign key (project_id, owner_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint project_organizations_one_owner check ((role = 'OWNER') = (organization_id = owner_id))
);
create index project_organizations_organization on app_public.project_organizations (organization_id, project_id);
comment on column app_public.project_organizations.owner_id is E'@behavior -*\n\nThe organization that owns the project.';

--------------------------------------------------------------------------------------------------------

alter table app_public.projects enable row level security;
create policy everybody on app_public.projects for select to plat_anonymous
  using (deleted_at is null and visibility in ('PUBLIC', 'UNLISTED') and archived_at is null);
create policy portfolio_and_public on app_public.projects for select to plat_user
  using (deleted_at is null and (
    organization_id = any (array(select app_hidden.viewer_organizations('project.read')))
    or id = any (array(select app_hidden.viewer_projects('project.read')))
    or (visibility in ('PUBLIC', 'UNLISTED') and archived_at is null)));
create policy managers_insert on app_public.projects for insert to plat_user
  with check (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))));
create policy managers_update on app_public.projects for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))))
  with check (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))));
create policy managers_delete on app_public.projects for delete to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('project.manage'))));
grant select on app_public.projects to plat_user, plat_anonymous, plat_worker;
grant insert (organization_id, title, slug, type, status, visibility, overview, overview_headline, design, design_heading, address, time_zone,
  currency, website_url, amenities, sales_start_date, completion_date, reservation_expiration, reservation_fee, cancellation_fee,
  rescission_days, sold_trigger, allow_multiple_offers, lead_assignment, metadata) on app_public.projects to plat_user;
grant update (title, slug, type, status, visibility, overview, overview_headline, design, design_heading, address, time_zone,
  website_url, amenities, sales_start_date, completion_date, reservation_expiration, reservation_fee, cancellation_fee,
  rescission_days, sold_trigger, allow_multiple_offers, lead_assignment, metadata) on app_public.projects to plat_user;
grant delete on app_public.projects to plat_user;

alter table app_public.project_organizations enable row level security;
create policy portfolio on app_public.project_organizations for select to plat_user
  using (owner_id = any (array(select app_hidden.viewer_organizations('project.read')))
    or project_id = any (array(select app_hidden.viewer_projects('project.read'))));
grant select on app_public.project_organizations to plat_user, plat_anonymous, plat_worker;

select app_private.make_record('projects', 'project', 'project.manage', slug_from => 'title');
select app_private.make_record('project_organizations', 'affiliation', 'project.manage');
select app_private.make_state_machine('projects', 'project',
  steps => array[
    ['DRAFT', 'COMING_SOON'], ['COMING_SOON', 'PRESALE'], ['PRESALE', 'SELLING'], ['SELLING', 'PAUSED'], ['PAUSED', 'SELLING'],
    ['SELLING', 'SOLD_OUT'], ['PAUSED', 'SOLD_OUT'], ['SOLD_OUT', 'COMPLETED'],
    ['DRAFT', 'ARCHIVED'], ['COMING_SOON', 'ARCHIVED'], ['PRESALE', 'ARCHIVED'], ['SELLING', 'ARCHIVED'], ['PAUSED', 'ARCHIVED'],
    ['SOLD_OUT', 'ARCHIVED'], ['COMPLETED', 'ARCHIVED'],
    ['ARCHIVED', 'DRAFT'], ['ARCHIVED', 'COMING_SOON'], ['ARCHIVED', 'PRESALE'], ['ARCHIVED', 'SELLING'], ['ARCHIVED', 'PAUSED'],
    ['ARCHIVED', 'SOLD_OUT'], ['ARCHIVED', 'COMPLETED']],
  initial => array['DRAFT', 'COMING_SOON', 'PRESALE', 'SELLING', 'PAUSED', 'SOLD_OUT', 'COMPLETED']);

--------------------------------------------------------------------------------------------------------

create function app_private.tg_projects__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_hidden.currencies c where c.code = new.currency) then
    perform app_hidden.fail('BAD_USER_INPUT', 'This currency is unknown; give a code of ISO 4217, such as USD.', '{"field": "currency"}');
  end if;
  new.address := app_hidden.complete_address(new.address,
    (select (o.address).country from app_public.organizations o where o.id = new.organization_id));
  new.reservation_fee := app_hidden.to_money(new.reservation_fee, new.currency, 'reservationFee');
  new.cancellation_fee := app_hidden.to_money(new.cancellation_fee, new.currency, 'cancellationFee');
  if tg_op = 'UPDATE' then
    if old.status = 'ARCHIVED' and new.status = 'ARCHIVED' and to_jsonb(new) - '{service_index,city}'::text[] <> to_jsonb(old) - '{service_index,city}'::text[] then
      perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; set its status back first.');
    end if;
    if old.status = 'ARCHIVED' and new.status <> 'ARCHIVED' and new.status <> old.archived_from then
      perform app_hidden.fail('INVALID_TRANSITION', format('The project comes back to where it was: %s.', old.archived_from),
        jsonb_build_object('from', 'ARCHIVED', 'to', new.status, 'field', 'status', 'allowedTransitions', jsonb_build_array(old.archived_from)));
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

-- Here because the countries come after organizations and users.
create function app_private.tg_organizations__prepare() returns trigger
language plpgsql volatile as $$
begin
  new.address := app_hidden.complete_address(new.address, null);
  new.phone := app_hidden.to_e164(new.phone, (new.address).country);
  new.email := lower(new.email);
  return new;
end $$;
create trigger _200_prepare before insert or update of address, phone, email on app_public.organizations
  for each row execute function app_private.tg_organizations__prepare();

create function app_private.tg_users__prepare() returns trigger
language plpgsql volatile as $$
begin
  new.phone := app_hidden.to_e164(new.phone, null);
  return new;
end $$;
create trigger _200_prepare before insert or update of phone on app_public.users
  for each row execute function app_private.tg_users__prepare();

create function app_private.tg_projects__own() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
    values (new.id, new.organization_id, new.organization_id, 'OWNER');
  return null;
end $$;
create trigger _500_own after insert on app_public.projects for each row execute function app_private.tg_projects__own();

create function app_private.tg_projects__public_organization() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.organizations o set has_public_project = p.is_public
  from (select exists (select from app_public.projects p
      where p.organization_id = new.organization_id and p.visibility = 'PUBLIC' and p.archived_at is null and p.deleted_at is null) as is_public) p
  where o.id = new.organization_id and o.has_public_project <> p.is_public;
  return null;
end $$;
create trigger _510_public_organization after insert or update of visibility, status, deleted_at on app_public.projects
  for each row execute function app_private.tg_projects__public_organization();

create function app_private.tg__refuse_archived() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  touched record := case when tg_op = 'DELETE' then old else new end;
begin
  if exists (select from app_public.projects p where p.id = touched.project_id and p.archived_at is not null) then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; set its status back first.');
  end if;
  return touched;
end $$;
comment on function app_private.tg__refuse_archived() is 'Refuses writes of rows of an archived project.';

create function app_private.tg__project_organization() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  is_archived boolean;
begin
  select p.organization_id, p.archived_at is not null into new.organization_id, is_archived
    from app_public.projects p where p.id = new.project_id;
  if is_archived then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; set its status back first.');
  end if;
  return new;
end $$;
comment on function app_private.tg__project_organization() is
  'The organization of a new row is that of its project, which must not be archived: both in one look-up.';

create function app_private.make_project_record(table_name text, subject text, write_permission text) returns void
language plpgsql volatile as $$
begin
  execute format('create trigger _050_organization before insert on app_public.%I for each row execute function app_private.tg__project_organization()', table_name);
  execute format('create trigger _060_refuse_archived before update or delete on app_public.%I for each row execute function app_private.tg__refuse_archived()', table_name);
  perform app_private.make_record(table_name, subject, write_permission);
end $$;
comment on function app_private.make_project_record(text, text, text) is
  'make_record for a table with project_id and organization_id: the organization follows the project, archived projects are read-only.';

-- The plain case in one line: a table that has nothing but its own columns beside these, one permission to read and one to write.
create table app_private.project_record (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz
);
alter table app_private.project_record enable row level security;
comment on table app_private.project_record is
  'Holds no rows: the columns of a record of a project, for `create table ... (like app_private.project_record including all, ...)`.';

create function app_private.make_project_table(table_name text, subject text, read_permission text, write_permission text) returns void
language plpgsql volatile as $$
declare
  readers text := format('organization_id = any (array(select app_hidden.viewer_organizations(%1$L)))
    or project_id = any (array(select app_hidden.viewer_projects(%1$L)))', read_permission);
  writers text := format('organization_id = any (array(select app_hidden.viewer_organizations(%1$L)))
    or project_id = any (array(select app_hidden.viewer_projects(%1$L)))', write_permission);
begin
  execute format('alter table app_public.%I add constraint %I foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade', table_name, table_name || '_project_id_fkey');
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_project_id_fkey', table_name, format(
    E'@parent\n@fieldName project\n@foreignFieldName %s\n@backwardPermission %s\n@backwardDescription The %s; null without the permission %2$s.\n\nThe project.',
    app_hidden.camel(table_name), read_permission, replace(table_name, '_', ' ')));
  execute format('create index %I on app_public.%I (organization_id, id desc) where deleted_at is null', table_name || '_organization', table_name);
  execute format('create index %I on app_public.%I (project_id, id desc) where deleted_at is null', table_name || '_project', table_name);
  execute format('alter table app_public.%I enable row level security', table_name);
  execute format('create policy readers on app_public.%I for select to plat_user using (deleted_at is null and (%s))', table_name, readers);
  execute format('create policy writers_insert on app_public.%I for insert to plat_user with check (%s)', table_name, writers);
  execute format('create policy writers_update on app_public.%I for update to plat_user using (%s)', table_name, writers);
  execute format('create policy writers_delete on app_public.%I for delete to plat_user using (%s)', table_name, writers);
  execute format('grant select on app_public.%I to plat_user, plat_anonymous, plat_worker', table_name);
  perform app_private.make_project_record(table_name, subject, write_permission);
end $$;
comment on function app_private.make_project_table(text, text, text, text) is
  'Makes a table like app_private.project_record all it takes to be served: foreign key, indexes, row security by two permissions, and make_project_record.';

--------------------------------------------------------------------------------------------------------

create function app_public.projects_metadata(p app_public.projects) returns jsonb
language sql stable as $$ select case when app_hidden.project_can(p.id, p.organization_id, 'project.read') then p.metadata end $$;
grant execute on function app_public.projects_metadata to plat_user, plat_anonymous;
comment on function app_public.projects_metadata is 'Free data of the organization''s own programs; null for outsiders.';

create function app_public.projects_allowed_transitions(p app_public.projects) returns app_public.transition[]
language sql stable as $$
  select case when p.status = 'ARCHIVED' then array[row(p.archived_from, true, '{}')::app_public.transition]
    else app_hidden.transitions_from('project', to_jsonb(p)) end
$$;
grant execute on function app_public.projects_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.projects_allowed_transitions is E'@notNull\n\nThe steps that the project can take from its status.';

create function app_public.organizations_projects(o app_public.organizations) returns setof app_public.projects
language sql stable as $$
  select p.* from app_public.projects p
  where p.organization_id = o.id and (p.visibility = 'PUBLIC' or app_hidden.project_can(p.id, p.organization_id, 'project.read'))
  order by p.updated_at desc, p.id desc
$$;
grant execute on function app_public.organizations_projects to plat_user, plat_anonymous;
comment on function app_public.organizations_projects is 'The projects of the organization that the viewer may see, last updated first.';

create function app_public.public_projects(city text default null) returns setof app_public.projects
language sql stable as $$
  select p.* from app_public.projects p
  where p.visibility = 'PUBLIC' and p.archived_at is null and p.deleted_at is null
    and (public_projects.city is null or lower(p.city) = lower(btrim(public_projects.city)))
$$;
grant execute on function app_public.public_projects to plat_user, plat_anonymous;
comment on function app_public.public_projects is $$
@arg city Only projects in this city.

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
grant execute on function app_public.projects_filter_query, app_public.projects_filter_archived, app_public.projects_filter_city to plat_user, plat_anonymous;
comment on function app_public.projects_filter_query is E'@filter query\n\nWords in title or city.';
comment on function app_public.projects_filter_archived is E'@filter archived\n\nOnly archived projects, or only others.';
comment on function app_public.projects_filter_city is E'@filter city\n\nThe city, whatever the case.';

comment on table app_public.projects is $$
@portfolio project.read
@sort SERVICE_INDEX service_index desc
@sort UPDATED_AT updated_at desc
@sort TITLE title asc
@sort PRICE_ASC lowest_price(id) asc
@sort PRICE_DESC highest_price(id) desc
@sort NEWEST inserted_at desc
@sort DISTANCE distance asc, service_index desc
@formerFinder publicProject

A development of new homes that an organization sells.$$;
comment on column app_public.projects.organization_id is E'@filter organizationId\n\nThe organization that owns it.';
comment on column app_public.projects.title is 'Name of the project.';
comment on column app_public.projects.slug is 'Readable name in addresses; accepted as id.';
comment on column app_public.projects.status is E'@filter\n\nHow far the project is.';
comment on column app_public.projects.visibility is 'Who finds it.';
comment on column app_public.projects.type is E'@filter\n\nWhat is built.';
comment on column app_public.projects.overview is 'What the public reads, 1,500 characters at most.';
comment on column app_public.projects.overview_headline is 'Headline of the overview.';
comment on column app_public.projects.design is 'What the public reads about the design.';
comment on column app_public.projects.design_heading is 'Headline of the design.';
comment on column app_public.projects.address is 'Where it is built.';
comment on column app_public.projects.city is 'City of the address.';
comment on column app_public.projects.time_zone is 'Time zone in which its deadlines count, such as America/Toronto.';
comment on column app_public.projects.currency is 'Currency of all its amounts.';
comment on column app_public.projects.website_url is 'Address of its website.';
comment on column app_public.projects.amenities is 'What residents share, such as gym or garden.';
comment on column app_public.projects.sales_start_date is 'When sales begin.';
comment on column app_public.projects.completion_date is 'When it is expected to be complete.';
comment on column app_public.projects.archived_at is 'Since when it is archived: read-only and not public.';
comment on column app_public.projects.archived_from is E'@behavior -*\n\nThe status before it was archived.';
comment on column app_public.projects.service_index is 'How well it serves buyers, 0 to 100; the default order of publicProjects.';
comment on column app_public.projects.reservation_expiration is 'Hours that a reservation lasts.';
comment on column app_public.projects.reservation_fee is 'What a reservation costs.';
comment on column app_public.projects.cancellation_fee is 'What is kept when a reservation is cancelled.';
comment on column app_public.projects.rescission_days is 'Days within which a buyer may withdraw from a signed purchase.';
comment on column app_public.projects.sold_trigger is 'When a unit counts as sold.';
comment on column app_public.projects.allow_multiple_offers is 'Whether several buyers may negotiate for one unit at a time.';
comment on column app_public.projects.lead_assignment is 'Who works on a new lead.';
comment on column app_public.projects.metadata is E'@masked\n\nFree data of the organization''s own programs.';
comment on constraint projects_organization_id_fkey on app_public.projects is E'@parent\n@backwardBehavior -*\n\nThe organization that owns it.';

comment on table app_public.project_organizations is 'An organization that has a part in a project.';
comment on column app_public.project_organizations.role is 'What it does there.';
comment on constraint project_organizations_project_id_fkey on app_public.project_organizations is
  E'@fieldName project\n@foreignFieldName organizations\n@backwardDescription The organizations with a part in the project; empty for outsiders.\n\nThe project.';
comment on constraint project_organizations_organization_id_fkey on app_public.project_organizations is E'@backwardBehavior -*\n\nThe organization.';
