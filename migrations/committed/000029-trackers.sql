--! Previous: sha1:4d2b76a5ef84f281a7b5c1ef916eb848b3c4d23e
--! Hash: sha1:2865c6ba4cb3749c0a3a63f02207c08b351b1762
--! Message: trackers

-- Trackers of marketing and their hits.

select app_private.create_enum('tracker_kind', 'What a tracker is.', array[
  ['LINK', 'A link.'], ['QR_CODE', 'A code to scan.'], ['PIXEL', 'A picture of one pixel in a mail or page.'],
  ['PHONE_NUMBER', 'A phone number.'], ['EMAIL_ADDRESS', 'An e-mail address.']]);

create table app_public.trackers (
  like app_private.project_record including all,
  name app_public.short_text not null,
  kind app_public.tracker_kind not null,
  key text not null,
  destination_url app_public.url,
  phone_number app_public.phone_number,
  lead_source_id uuid,
  campaign app_public.short_text,
  utm jsonb constraint trackers_utm_object check (jsonb_typeof(utm) = 'object' and length(utm::text) <= 2000),
  active boolean not null default true,
  unique (id, project_id),
  constraint trackers_lead_source_id_fkey foreign key (lead_source_id, project_id)
    references app_public.lead_sources (id, project_id) on delete set null (lead_source_id),
  constraint trackers_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create unique index trackers_key on app_public.trackers (key);
create index trackers_lead_source on app_public.trackers (lead_source_id) where deleted_at is null;
create index trackers_organization on app_public.trackers (organization_id, id desc) where deleted_at is null;
create index trackers_project on app_public.trackers (project_id, id desc) where deleted_at is null;
alter table app_public.trackers enable row level security;

-- Beside the tracker: who counts changes no record, no version, and writes no event.
create table app_private.tracker_hits (
  tracker_id uuid primary key references app_public.trackers on delete cascade,
  hit_count int not null default 0,
  last_hit_at timestamptz not null
) with (fillfactor = 50);
alter table app_private.tracker_hits enable row level security;
