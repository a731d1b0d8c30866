--! Previous: sha1:cbed17a57f451f814218fbbbc03d28fad0134976
--! Hash: sha1:ecaed216c24fe1e8a747da16fbaec141ec468d16
--! Message: offers

-- Offers and the responses to them.

select app_private.create_enum('offer_kind', 'Whether an offer answers another.', array[
  ['OFFER', 'Begins a round.'], ['COUNTER_OFFER', 'Answers the one before it.']]);
select app_private.create_enum('offer_status', 'What became of an offer.', array[
  ['PENDING', 'Waits for the answer of the other side.'], ['COUNTERED', 'Answered by another offer.'],
  ['ACCEPTED', 'Accepted.'], ['REJECTED', 'Rejected, or another offer on the unit was accepted.'],
  ['EXPIRED', 'Not answered in time.'], ['WITHDRAWN', 'Taken back by its side.']]);
select app_private.create_enum('offer_response_action', 'An answer to an offer.', array[
  ['ACCEPT', 'Takes it.'], ['REJECT', 'Declines it.']]);

create table app_public.offers (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  negotiation_id uuid not null,
  round int not null,
  sequence int not null,
  side app_public.party_side not null,
  kind app_public.offer_kind not null,
  status app_public.offer_status not null default 'PENDING',
  status_changed_at timestamptz not null default now(),
  price app_public.money not null,
  currency app_public.currency_code not null,
  delta numeric,
  closing_date date,
  earnest_money app_public.money,
  financing_type app_public.financing_type,
  financing_contingency boolean,
  amount_financed app_public.money,
  occupancy_type app_public.occupancy_type,
  occupancy_type_other app_public.short_text,
  requested_credits app_public.money,
  comments app_public.long_text,
  expires_at timestamptz not null,
  parent_id uuid,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  withdrawn_at timestamptz,
  manual boolean not null default false,
  legal_name app_public.short_text,
  unit_id uuid not null,
  lead_id uuid,
  buyer_id uuid,
  reservation_id uuid,
  assignee_id uuid references app_public.users on delete set null,
  claim_id uuid references app_hidden.claims on delete restrict,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  unique (id, project_id),
  constraint offers_place unique (negotiation_id, round, sequence),
  constraint offers_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint offers_negotiation_id_fkey foreign key (negotiation_id, project_id)
    references app_public.negotiations (id, project_id) on delete restrict,
  constraint offers_parent_id_fkey foreign key (parent_id, project_id)
    references app_public.offers (id, project_id) on delete restrict,
  constraint offers_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete restrict,
  constraint offers_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete restrict,
  constraint offers_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete restrict,
  constraint offers_reservation_id_fkey foreign key (reservation_id, project_id)
    references app_public.reservations (id, project_id) on delete restrict
);
create unique index offers_pending on app_public.offers (negotiation_id) where status = 'PENDING';
create unique index offers_accepted on app_public.offers (claim_id) where status = 'ACCEPTED';
create index offers_organization on app_public.offers (organization_id, inserted_at desc, id desc);
create index offers_organization_status on app_public.offers (organization_id, status, inserted_at desc, id desc);
create index offers_project on app_public.offers (project_id, inserted_at desc, id desc);
create index offers_project_status on app_public.offers (project_id, status, inserted_at desc, id desc);
create index offers_assignee on app_public.offers (assignee_id, project_id, inserted_at desc, id desc);
create index offers_assignee_status on app_public.offers (assignee_id, project_id, status, inserted_at desc, id desc);
create index offers_negotiation on app_public.offers (negotiation_id, id desc);
create index offers_unit on app_public.offers (unit_id, inserted_at desc, id desc);
create index offers_unit_pending on app_public.offers (unit_id) where status = 'PENDING';
create unique index offers_parent on app_public.offers (parent_id);
create index offers_lead on app_public.offers (lead_id);
create index offers_buyer on app_public.offers (buyer_id);
create index offers_reservation on app_public.offers (reservation_id);
create index offers_created_by on app_public.offers (created_by_id);
create index offers_claim on app_public.offers (claim_id) where claim_id is not null;
alter table app_public.offers enable row level security;

create table app_public.offer_responses (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  offer_id uuid not null,
  action app_public.offer_response_action not null,
  side app_public.party_side not null,
  manual boolean not null default false,
  comments app_public.long_text,
  fallout_reason_id uuid,
  responded_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint offer_responses_once unique (offer_id),
  constraint offer_responses_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint offer_responses_offer_id_fkey foreign key (offer_id, project_id)
    references app_public.offers (id, project_id) on delete restrict,
  constraint offer_responses_fallout_reason_id_fkey foreign key (fallout_reason_id, project_id)
    references app_public.fallout_reasons (id, project_id) on delete restrict
);
create index offer_responses_fallout_reason on app_public.offer_responses (fallout_reason_id);
create index offer_responses_responded_by on app_public.offer_responses (responded_by_id);
create index offer_responses_project on app_public.offer_responses (project_id);
alter table app_public.offer_responses enable row level security;

create type app_public.offer_terms as (
  id uuid, price app_public.money, currency app_public.currency_code, status app_public.offer_status,
    expires_at timestamptz, closing_date date,
  earnest_money app_public.money, financing_type app_public.financing_type, financing_contingency boolean,
    amount_financed app_public.money,
  occupancy_type app_public.occupancy_type, comments app_public.long_text, inserted_at timestamptz
);
