--! Previous: sha1:58af57730cea70feb577497ffdb29382ac095f17
--! Hash: sha1:d2c615f11058a1089b45235ac115b623fcdbfd46
--! Message: projects

-- Projects and the organizations that take part in them.

select app_private.create_enum('project_status', 'How far a project is.', array[
  ['DRAFT', 'Being prepared.'], ['COMING_SOON', 'Announced.'], ['PRESALE', 'Selling before release.'],
  ['SELLING', 'Selling.'], ['PAUSED', 'Sales are paused.'], ['SOLD_OUT', 'Everything is sold.'],
  ['COMPLETED', 'Everything is handed over.'], ['ARCHIVED', 'Read-only and not public.']]);
select app_private.create_enum('project_visibility', 'Who finds a project.', array[
  ['PRIVATE', 'The portfolio only.'], ['UNLISTED', 'Everybody who knows its address; in no list.'],
  ['PUBLIC', 'Everybody.']]);
select app_private.create_enum('project_type', 'What is built.', array[
  ['CONDOMINIUM', 'Apartments.'], ['TOWNHOME', 'Townhomes.'], ['SINGLE_FAMILY', 'Detached homes.'],
  ['MIXED_USE', 'Homes and commerce.'], ['MASTER_PLANNED', 'A whole neighbourhood.'], ['LAND', 'Lots.'],
  ['COMMERCIAL', 'Commerce.']]);
select app_private.create_enum('sold_trigger', 'When a unit counts as sold.', array[
  ['SIGNED', 'When the purchase is signed.'], ['FIRM', 'When the purchase is firm.']]);
select app_private.create_enum('lead_assignment_mode', 'Who works on a new lead.', array[
  ['MANUAL', 'Whoever is chosen.'], ['ROUND_ROBIN', 'The members in turn.'],
  ['PRIVATE', 'Whoever brings it; members see their own leads only.']]);
select app_private.create_enum('projects_sort', 'An order of projects.', array[
  ['SERVICE_INDEX', 'Best service index first.'], ['UPDATED_AT', 'Last updated first.'], ['TITLE', 'By title.'],
  ['PRICE_ASC', 'Cheapest first.'], ['PRICE_DESC', 'Dearest first.'],
  ['DISTANCE', 'Nearest to the viewer first, whose place their IP address tells, by the city of the project; by '
    'service index where that tells nothing.'],
  ['NEWEST', 'Newest first.']]);

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
  reservation_expiration int not null default 48 constraint projects_reservation_expiration_range check
    (reservation_expiration between 1 and 8760),
  reservation_fee app_public.money,
  cancellation_fee app_public.money,
  rescission_days int not null default 0 constraint projects_rescission_days_range check (rescission_days between 0
    and 365),
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
create unique index projects_slug on app_public.projects (slug);
create index projects_organization on app_public.projects (organization_id, updated_at desc, id desc)
  where deleted_at is null;
create index projects_public on app_public.projects (service_index desc, id desc)
  where deleted_at is null and visibility = 'PUBLIC' and archived_at is null;
alter table app_public.projects enable row level security;

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
alter table app_public.project_organizations enable row level security;

-- The plain case in one line: a table that has nothing but its own columns beside these, one permission to read and one
-- to write.
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
