--! Previous: sha1:7f38784292388a358e3b571720a50f7cdc83a83c
--! Hash: sha1:a15b1e3359b45c322dd59df88e03ecf13b5604c4
--! Message: buyers-and-reservations

-- Purchases with the invitations of their buyers, and reservations with their documents.

create table app_public.buyers (
  like app_private.project_record including all,
  lead_id uuid,
  user_id uuid references app_public.users on delete set null,
  unit_id uuid,
  lot_id uuid,
  reservation_id uuid,
  assignee_id uuid references app_public.users on delete set null,
  agent_id uuid,
  first_name app_public.short_text,
  last_name app_public.short_text,
  legal_name app_public.short_text,
  email app_public.email_address constraint buyers_email_lower check (email = lower(email)),
  phone app_public.phone_number constraint buyers_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  dob date,
  company app_public.short_text,
  preferred_language app_public.language_code,
  address app_public.address,
  status app_public.buyer_status not null default 'DRAFT',
  status_changed_at timestamptz not null default now(),
  source app_public.short_text,
  source_id uuid,
  occupancy_type app_public.occupancy_type,
  occupancy_type_other app_public.short_text,
  financing_type app_public.financing_type,
  financing_contingency boolean,
  amount_financed app_public.money,
  price app_public.money not null,
  contract_sent_at timestamptz,
  purchase_date date,
  rescission_ends_at timestamptz,
  purchase_firm_date date,
  estimated_closing_date date,
  closing_date date,
  cancellation_date date,
  cancellation_reason app_public.long_text,
  fallout_reason_id uuid,
  metadata jsonb,
  search_text text generated always as (app_hidden.fold(coalesce(first_name, '') || ' ' || coalesce(last_name, '')
    || ' ' || coalesce(legal_name, '')
    || ' ' || coalesce(email, '') || ' ' || coalesce(phone, '') || ' ' || coalesce(company, ''))) stored,
  currency app_public.currency_code not null,
  invited_at timestamptz,
  unique (id, project_id),
  constraint buyers_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete restrict,
  constraint buyers_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete restrict,
  constraint buyers_lot_id_fkey foreign key (lot_id, project_id)
    references app_public.lots (id, project_id) on delete restrict,
  constraint buyers_agent_id_fkey foreign key (agent_id, organization_id)
    references app_public.agents (id, organization_id) on delete restrict,
  constraint buyers_source_id_fkey foreign key (source_id, project_id)
    references app_public.lead_sources (id, project_id) on delete restrict,
  constraint buyers_fallout_reason_id_fkey foreign key (fallout_reason_id, project_id)
    references app_public.fallout_reasons (id, project_id) on delete restrict,
  constraint buyers_one_thing check (num_nonnulls(unit_id, lot_id) <= 1),
  constraint buyers_closing_order check (closing_date >= purchase_date),
  constraint buyers_reason check (status <> 'CANCELLED' or fallout_reason_id is not null),
  constraint buyers_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict
);

-- A home has one purchase in force, and a lead becomes a buyer once.
create unique index buyers_unit on app_public.buyers (unit_id) where deleted_at is null and status <> 'CANCELLED'
  and unit_id is not null;
create unique index buyers_lot on app_public.buyers (lot_id) where deleted_at is null and status <> 'CANCELLED'
  and lot_id is not null and unit_id is null;
create unique index buyers_lead on app_public.buyers (lead_id) where deleted_at is null and status <> 'CANCELLED'
  and lead_id is not null;
create index buyers_unit_history on app_public.buyers (unit_id, id desc);
create index buyers_lot_history on app_public.buyers (lot_id, id desc);
create index buyers_lead_history on app_public.buyers (lead_id, id desc);
create index buyers_user on app_public.buyers (user_id) where deleted_at is null and user_id is not null;
create index buyers_reservation on app_public.buyers (reservation_id);
create index buyers_agent on app_public.buyers (agent_id);
create index buyers_source on app_public.buyers (source_id);
create index buyers_fallout_reason on app_public.buyers (fallout_reason_id);

-- PERF: not by id, whose own index looks as good for a project until that project turns out to be a small one among
-- large ones.
create index buyers_organization_status on app_public.buyers (organization_id, status, inserted_at desc, id desc)
  where deleted_at is null;
create index buyers_project_status on app_public.buyers (project_id, status, inserted_at desc, id desc)
  where deleted_at is null;
create index buyers_email on app_public.buyers (project_id, email) where deleted_at is null and email is not null;
create index buyers_assignee on app_public.buyers (assignee_id, project_id, inserted_at desc, id desc)
  where deleted_at is null;
create index buyers_organization on app_public.buyers (organization_id, inserted_at desc, id desc)
  where deleted_at is null;
create index buyers_project on app_public.buyers (project_id, inserted_at desc, id desc) where deleted_at is null;
alter table app_public.buyers enable row level security;

create table app_hidden.buyer_invites (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  buyer_id uuid not null,
  email app_public.email_address not null constraint buyer_invites_email_lower check (email = lower(email)),
  message app_public.long_text,
  status app_public.invite_status not null default 'PENDING',
  invited_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  send_count int not null default 1,
  sent_at timestamptz,
  expires_at timestamptz not null default now() + interval '14 days',
  accepted_at timestamptz,
  accepted_by_id uuid references app_public.users on delete set null,
  inserted_at timestamptz not null default now(),
  constraint buyer_invites_accepted check ((status = 'ACCEPTED') = (accepted_at is not null)),
  constraint buyer_invites_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete cascade
);
create unique index buyer_invites_one_pending on app_hidden.buyer_invites (buyer_id) where status = 'PENDING';
create index buyer_invites_buyer on app_hidden.buyer_invites (buyer_id, id);
create index buyer_invites_invited_by on app_hidden.buyer_invites (invited_by_id);
create index buyer_invites_accepted_by on app_hidden.buyer_invites (accepted_by_id);
alter table app_hidden.buyer_invites enable row level security;

create table app_private.buyer_invite_tokens (
  invite_id uuid primary key references app_hidden.buyer_invites on delete cascade,
  token_hash bytea not null constraint buyer_invite_tokens_hash unique
);
alter table app_private.buyer_invite_tokens enable row level security;

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
