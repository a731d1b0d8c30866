--! Previous: sha1:1fbcf41cf2cf876e3ed5f0da8c0dd6c06107abc7
--! Hash: sha1:8c61b09832404b2c233e58777f69850bc8f30f16
--! Message: organizations

-- Organizations and their members.

select app_private.create_enum('organization_kind', 'What an organization does.', array[
  ['DEVELOPER', 'Develops projects.'], ['BUILDER', 'Builds homes.'], ['BROKERAGE', 'Brokers sales.'],
  ['AGENCY', 'Sells for others.'], ['MARKETING', 'Advertises.'], ['LENDER', 'Lends.'],
  ['TITLE_COMPANY', 'Insures titles.'], ['LAW_FIRM', 'Practises law.'], ['OTHER', 'Something else.']]);
create type app_public.notification_settings as (
  new_lead boolean,
  lead_assigned boolean,
  lead_note boolean,
  contact_message boolean,
  appointment boolean,
  reservation boolean,
  offer boolean,
  task boolean,
  escalation boolean,
  export_ready boolean,
  team_message boolean
);

create table app_public.organizations (
  id uuid primary key default uuidv7(),
  name app_public.short_text not null,
  slug app_public.slug not null,
  kind app_public.organization_kind not null default 'DEVELOPER',
  description app_public.long_text,
  email app_public.email_address,
  phone app_public.phone_number constraint organizations_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  website_url app_public.url,
  address app_public.address,
  time_zone app_public.time_zone not null default 'UTC',
  has_public_project boolean not null default false,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz
);
create unique index organizations_slug on app_public.organizations (slug);
alter table app_public.organizations enable row level security;

create table app_public.organization_user_connections (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  user_id uuid not null references app_public.users on delete restrict,
  role app_public.organization_role not null default 'MEMBER',
  title app_public.short_text,
  notifications app_public.notification_settings not null default row(true, true, true, true, true, true, true, true,
    true, true, true),
  joined_at timestamptz not null default now(),
  invited_by_id uuid references app_public.users on delete set null,
  last_active_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint organization_user_connections_once unique (organization_id, user_id)
);
create index organization_user_connections_user on app_public.organization_user_connections (user_id, organization_id);
create index organization_user_connections_invited_by on app_public.organization_user_connections (invited_by_id);
alter table app_public.organization_user_connections enable row level security;
