--! Previous: sha1:54743426d7fb3a3f64ac41833c0da9284822952a
--! Hash: sha1:88580ab9a71c26b022a57bf8b2fa2f89b08b8de3
--! Message: appointments

-- Appointments with leads and buyers.

select app_private.create_enum('appointment_type', 'The kind of an appointment.', array[
  ['IN_PERSON_TOUR', 'A visit.'], ['VIRTUAL_TOUR', 'A visit by video.'], ['PHONE', 'A call.'],
  ['SALES_MEETING', 'A meeting about buying.'], ['DESIGN_STUDIO', 'Choosing options.'],
  ['CONTRACT_SIGNING', 'Signing the contract.'],
  ['PRE_DELIVERY_WALKTHROUGH', 'Looking at the home before it is handed over.'], ['CLOSING', 'The closing.'],
  ['OPEN_HOUSE', 'A place at an open house.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('appointment_status', 'What became of an appointment.', array[
  ['REQUESTED', 'Asked for.'], ['SCHEDULED', 'Agreed.'], ['CONFIRMED', 'Confirmed again.'],
  ['COMPLETED', 'Took place.'], ['NO_SHOW', 'They did not come.'],
  ['RESCHEDULED', 'Another appointment took its place.'], ['CANCELLED', 'Called off.']]);

create table app_public.appointments (
  like app_private.project_record including all,
  lead_id uuid,
  buyer_id uuid,
  assignee_id uuid references app_public.users on delete set null,
  type app_public.appointment_type not null,
  status app_public.appointment_status not null default 'SCHEDULED',
  status_changed_at timestamptz not null default now(),
  title app_public.short_text,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  time_zone app_public.time_zone not null,
  location app_public.short_text,
  video_url app_public.url,
  open_house_id uuid,
  host_id uuid references app_public.users on delete set null,
  notes app_public.long_text,
  outcome_note app_public.long_text,
  cancelled_at timestamptz,
  cancellation_reason app_public.long_text,
  constraint appointments_open_house_id_fkey foreign key (open_house_id, project_id)
    references app_public.open_houses (id, project_id) on delete set null (open_house_id),
  constraint appointments_order check (starts_at < ends_at),
  constraint appointments_host_free exclude using gist (host_id with =, tstzrange(starts_at, ends_at) with &&)
    where (deleted_at is null and host_id is not null and status in ('SCHEDULED', 'CONFIRMED')) deferrable,
  constraint appointments_one_person check (num_nonnulls(lead_id, buyer_id) = 1),
  constraint appointments_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint appointments_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete cascade,
  constraint appointments_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete cascade
);
create index appointments_organization_status
  on app_public.appointments (organization_id, status, starts_at desc, id desc) where deleted_at is null;
create index appointments_project_status on app_public.appointments (project_id, status, starts_at desc, id desc)
  where deleted_at is null;
create index appointments_host on app_public.appointments (host_id, starts_at desc, id desc) where deleted_at is null;
create index appointments_open_house on app_public.appointments (open_house_id) where deleted_at is null;
create index appointments_assignee on app_public.appointments (assignee_id, project_id, starts_at desc, id desc)
  where deleted_at is null;
create index appointments_buyer on app_public.appointments (buyer_id, starts_at desc, id desc) where deleted_at is null;
create index appointments_lead on app_public.appointments (lead_id, starts_at desc, id desc) where deleted_at is null;
create index appointments_organization on app_public.appointments (organization_id, starts_at desc, id desc)
  where deleted_at is null;
create index appointments_project on app_public.appointments (project_id, starts_at desc, id desc)
  where deleted_at is null;
alter table app_public.appointments enable row level security;
