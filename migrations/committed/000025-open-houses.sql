--! Previous: sha1:ca776855d5f61c67757bfdaeed5c11b85ef3d276
--! Hash: sha1:436ddc648092d351fa1ad6b330f397ef18f85307
--! Message: open-houses

-- Open houses.

select app_private.create_enum('open_house_status', 'Whether an open house is on.', array[
  ['SCHEDULED', 'To come.'], ['ACTIVE', 'Now.'], ['ENDED', 'Over.'], ['CANCELED', 'Called off.']]);
select app_private.create_enum('open_house_format', 'How an open house is held.', array[
  ['IN_PERSON', 'On site.'], ['VIRTUAL', 'By video.'], ['HYBRID', 'On site and by video.'],
  ['BROKER_PREVIEW', 'For agents.']]);

create table app_public.open_houses (
  like app_private.project_record including all,
  title app_public.short_text,
  description app_public.long_text,
  status app_public.open_house_status not null default 'SCHEDULED',
  format app_public.open_house_format not null default 'IN_PERSON',
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  time_zone app_public.time_zone not null,
  address app_public.address,
  video_url app_public.url,
  host_id uuid references app_public.users on delete set null,
  capacity int constraint open_houses_capacity_range check (capacity between 1 and 100000),
  rsvp_required boolean not null default false,
  public boolean not null default true,
  constraint open_houses_order check (starts_at < ends_at),
  constraint open_houses_kept_status check (status in ('SCHEDULED', 'CANCELED')),
  unique (id, project_id),
  constraint open_houses_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index open_houses_starts_at on app_public.open_houses (project_id, starts_at desc, id desc)
  where deleted_at is null;
create index open_houses_host on app_public.open_houses (host_id);
create index open_houses_clock_start on app_public.open_houses (starts_at) where deleted_at is null;
create index open_houses_clock_end on app_public.open_houses (ends_at) where deleted_at is null;
create index open_houses_organization on app_public.open_houses (organization_id, id desc) where deleted_at is null;
create index open_houses_project on app_public.open_houses (project_id, id desc) where deleted_at is null;
alter table app_public.open_houses enable row level security;
