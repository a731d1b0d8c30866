--! Previous: sha1:d5b8d5024acbb8f922815124cbdd0a6b17fc4f71
--! Hash: sha1:0817fa178785a031994ad1df6335e76c5ce16635
--! Message: reservations

-- Reservations and their documents.

create table app_public.reservations (
  like app_private.project_record including all,
  unit_id uuid,
  lot_id uuid,
  lead_id uuid,
  buyer_id uuid references app_public.users on delete set null,
  purchase_id uuid,
  user_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  assignee_id uuid references app_public.users on delete set null,
  status app_public.reservation_status not null default 'PENDING',
  status_changed_at timestamptz not null default now(),
  number text not null,
  buyer_legal_name app_public.short_text,
  price app_public.money not null,
  list_price_snapshot app_public.money not null,
  premium_snapshot app_public.money,
  fee app_public.money,
  cancellation_fee app_public.money,
  occupancy_type app_public.occupancy_type,
  occupancy_type_other app_public.short_text,
  financing_type app_public.financing_type,
  financing_contingency boolean,
  preapproved boolean,
  accepted_terms boolean not null,
  accepted_terms_at timestamptz,
  purchase_authorization boolean,
  expiration int not null constraint reservations_expiration_range check (expiration between 1 and 8760),
  expires_at timestamptz,
  extended_count int not null default 0,
  executed_at timestamptz,
  cancelled_at timestamptz,
  cancellation_reason app_public.long_text,
  fallout_reason_id uuid,
  refunded_at timestamptz,
  transaction_id app_public.short_text,
  notes app_public.long_text,
  metadata jsonb,
  currency app_public.currency_code not null,
  constraint reservations_one_thing check (num_nonnulls(unit_id, lot_id) = 1),
  constraint reservations_refunded check (status <> 'REFUNDED' or purchase_id is null),
  unique (id, project_id),
  constraint reservations_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete restrict,
  constraint reservations_lot_id_fkey foreign key (lot_id, project_id)
    references app_public.lots (id, project_id) on delete restrict,
  constraint reservations_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete restrict,
  constraint reservations_purchase_id_fkey foreign key (purchase_id, project_id)
    references app_public.buyers (id, project_id) on delete restrict,
  constraint reservations_fallout_reason_id_fkey foreign key (fallout_reason_id, project_id)
    references app_public.fallout_reasons (id, project_id) on delete restrict,
  constraint reservations_cancelled_for_a_reason check (status <> 'CANCELLED'
    or num_nonnulls(cancellation_reason, fallout_reason_id) > 0),
  constraint reservations_accepted_terms check (accepted_terms),
  constraint reservations_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict
);
create unique index reservations_number on app_public.reservations (project_id, number);
create index reservations_unit on app_public.reservations (unit_id, inserted_at desc, id desc) where deleted_at is null;
create index reservations_lot on app_public.reservations (lot_id, inserted_at desc, id desc) where deleted_at is null;
create index reservations_lead on app_public.reservations (lead_id, inserted_at desc, id desc) where deleted_at is null;
create index reservations_buyer on app_public.reservations (buyer_id) where deleted_at is null and buyer_id is not null;
create index reservations_purchase on app_public.reservations (purchase_id);
create index reservations_user on app_public.reservations (user_id);
create index reservations_fallout_reason on app_public.reservations (fallout_reason_id);
create unique index reservations_unit_open on app_public.reservations (unit_id) where deleted_at is null
  and status in ('PENDING', 'CONFIRMED') and unit_id is not null;
create unique index reservations_lot_open on app_public.reservations (lot_id) where deleted_at is null
  and status in ('PENDING', 'CONFIRMED') and lot_id is not null;
create index reservations_lead_open on app_public.reservations (lead_id) where deleted_at is null
  and status in ('PENDING', 'CONFIRMED');
create index reservations_organization_status
  on app_public.reservations (organization_id, status, inserted_at desc, id desc) where deleted_at is null;
create index reservations_project_status on app_public.reservations (project_id, status, inserted_at desc, id desc)
  where deleted_at is null;
create index reservations_assignee on app_public.reservations (assignee_id, project_id, inserted_at desc, id desc)
  where deleted_at is null;
create index reservations_organization on app_public.reservations (organization_id, inserted_at desc, id desc)
  where deleted_at is null;
create index reservations_project on app_public.reservations (project_id, inserted_at desc, id desc)
  where deleted_at is null;
alter table app_public.reservations enable row level security;

alter table app_public.buyers add constraint buyers_reservation_id_fkey
  foreign key (reservation_id, project_id) references app_public.reservations (id, project_id) on delete restrict;

create table app_private.reservation_counters (
  project_id uuid primary key references app_public.projects on delete cascade,
  last_number int not null
);
alter table app_private.reservation_counters enable row level security;

create table app_public.reservation_documents (
  like app_private.document_record including all,
  visible_to_buyer boolean not null default false,
  reservation_id uuid not null,
  constraint reservation_documents_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint reservation_documents_reservation_id_fkey foreign key (reservation_id, project_id)
    references app_public.reservations (id, project_id) on delete cascade,
  constraint reservation_documents_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create index reservation_documents_checksum on app_public.reservation_documents (checksum);
create index reservation_documents_documents on app_public.reservation_documents (reservation_id, id)
  where deleted_at is null;
create index reservation_documents_project on app_public.reservation_documents (project_id, id);
create index reservation_documents_uploaded_by on app_public.reservation_documents (uploaded_by_id);
alter table app_public.reservation_documents enable row level security;
