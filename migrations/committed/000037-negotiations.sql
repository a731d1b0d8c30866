--! Previous: sha1:a9cf92bb9d2dddb12140f0a3087a0170e115bf6d
--! Hash: sha1:cbed17a57f451f814218fbbbc03d28fad0134976
--! Message: negotiations

-- Negotiations.

create table app_public.negotiations (
  like app_private.project_record including all,
  unit_id uuid not null,
  lead_id uuid,
  buyer_id uuid,
  reservation_id uuid,
  assignee_id uuid references app_public.users on delete set null,
  status app_public.negotiation_status not null default 'OPEN',
  status_changed_at timestamptz not null default now(),
  round int not null default 1,
  turn app_public.party_side,
  list_price app_public.money not null,
  floor_price app_public.money,
  offer_expiration_hours int not null default 48 constraint negotiations_offer_expiration_hours_range check
    (offer_expiration_hours between 1 and 8760),
  opened_at timestamptz not null default now(),
  closed_at timestamptz,
  cancellation_reason app_public.long_text,
  notes app_public.long_text,
  currency app_public.currency_code not null,
  constraint negotiations_somebody check (num_nonnulls(lead_id, buyer_id) >= 1),
  unique (id, project_id),
  constraint negotiations_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete restrict,
  constraint negotiations_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete restrict,
  constraint negotiations_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete restrict,
  constraint negotiations_reservation_id_fkey foreign key (reservation_id, project_id)
    references app_public.reservations (id, project_id) on delete restrict,
  constraint negotiations_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict
);
create index negotiations_unit on app_public.negotiations (unit_id, id desc) where deleted_at is null;
create index negotiations_lead on app_public.negotiations (lead_id, id desc) where deleted_at is null;
create index negotiations_buyer on app_public.negotiations (buyer_id, id desc) where deleted_at is null;
create index negotiations_reservation on app_public.negotiations (reservation_id, id desc) where deleted_at is null;

-- Open: an offer may be made.
create unique index negotiations_open_lead on app_public.negotiations (unit_id, lead_id)
  where deleted_at is null and lead_id is not null and status not in ('ACCEPTED', 'CANCELLED');
create unique index negotiations_open_buyer on app_public.negotiations (unit_id, buyer_id)
  where deleted_at is null and buyer_id is not null and status not in ('ACCEPTED', 'CANCELLED');
create index negotiations_unit_active on app_public.negotiations (unit_id) where deleted_at is null
  and status = 'ACTIVE';
create index negotiations_assignee on app_public.negotiations (assignee_id, project_id, id desc)
  where deleted_at is null;
create index negotiations_organization on app_public.negotiations (organization_id, id desc) where deleted_at is null;
create index negotiations_project on app_public.negotiations (project_id, id desc) where deleted_at is null;
alter table app_public.negotiations enable row level security;
