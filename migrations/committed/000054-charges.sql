--! Previous: sha1:6a5b942cff2096a06891ec7d77edc61f43c90bcb
--! Hash: sha1:a2f3b09a9212cc953a47852ed032348ffe9bdc06
--! Message: charges

-- Payment intents, charges and refunds.

select app_private.create_enum('charge_status', 'What became of a charge.', array[
  ['PENDING', 'The processor has not decided yet.'],
  ['REQUIRES_ACTION', 'The holder of the card has to confirm it at the bank.'], ['SUCCEEDED', 'Paid.'],
  ['FAILED', 'Refused; failureCode says why.'], ['CANCELLED', 'Given up before it was paid.'],
  ['PARTIALLY_REFUNDED', 'Given back in part.'], ['REFUNDED', 'Given back.'],
  ['DISPUTED', 'The holder of the card contests it at the bank.']]);
select app_private.create_enum('payment_intent_status', 'How far a payment is.', array[
  ['REQUIRES_PAYMENT_METHOD', 'It waits for a card: the first, or another after a refusal.'],
  ['REQUIRES_CONFIRMATION', 'It is not confirmed yet.'],
  ['REQUIRES_ACTION', 'The payer has to confirm it at the bank; see nextActionUrl.'],
  ['PROCESSING', 'The processor has not decided yet.'], ['REQUIRES_CAPTURE', 'Granted, but not taken.'],
  ['SUCCEEDED', 'Paid.'], ['CANCELED', 'Given up.']]);
select app_private.create_enum('refund_status', 'What became of a refund.', array[
  ['PENDING', 'On its way.'], ['REQUIRES_ACTION', 'The payer has to do something to get it.'],
  ['SUCCEEDED', 'Given back.'], ['FAILED', 'It could not be given back.'], ['CANCELLED', 'Given up.']]);
select app_private.create_enum('refund_reason', 'Why money is given back.', array[
  ['REQUESTED_BY_CUSTOMER', 'The payer asked for it.'], ['RESERVATION_REFUNDED', 'The reservation was refunded.'],
  ['DUPLICATE', 'It was paid twice, or more than was due.'], ['FRAUDULENT', 'Somebody else''s card.'],
  ['OTHER', 'Another reason.']]);

create table app_public.payment_intents (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete restrict,
  project_id uuid,
  reservation_id uuid,
  deposit_id uuid,
  lead_id uuid,
  buyer_id uuid,
  user_id uuid not null references app_public.users on delete restrict,
  created_by_id uuid not null default app_public.current_user_id() references app_public.users on delete restrict,
  card_id uuid,
  amount app_public.money not null check (amount > 0),
  currency app_public.currency_code not null,
  description app_public.short_text,
  status app_public.payment_intent_status not null,
  processor_id text unique,
  next_action_url app_public.url,
  attempt_key text,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint payment_intents_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint payment_intents_card_of_payer foreign key (card_id, user_id)
    references app_public.processor_cards (id, user_id) on delete restrict,
  constraint payment_intents_of_project check (project_id is not null
    or num_nonnulls(reservation_id, deposit_id, lead_id, buyer_id) = 0),
  unique (id, user_id)
);
create index payment_intents_project on app_public.payment_intents (project_id, organization_id);
create index payment_intents_organization on app_public.payment_intents (organization_id);
create index payment_intents_user on app_public.payment_intents (user_id, attempt_key);
create index payment_intents_created_by on app_public.payment_intents (created_by_id, attempt_key);
create index payment_intents_card on app_public.payment_intents (card_id, user_id);
create index payment_intents_open on app_public.payment_intents (updated_at)
  where status not in ('SUCCEEDED', 'CANCELED');
alter table app_public.payment_intents enable row level security;

create table app_private.payment_intent_secrets (
  intent_id uuid primary key references app_public.payment_intents on delete cascade,
  client_secret text not null
);
alter table app_private.payment_intent_secrets enable row level security;

create table app_public.processor_charges (
  id uuid primary key default uuidv7(),
  intent_id uuid not null,
  organization_id uuid not null references app_public.organizations on delete restrict,
  project_id uuid,
  reservation_id uuid,
  deposit_id uuid,
  lead_id uuid,
  buyer_id uuid,
  user_id uuid not null references app_public.users on delete restrict,
  card_id uuid,
  processor_id text not null constraint processor_charges_once unique,
  is_tentative boolean not null default true,
  payment_intent_id text,
  status app_public.charge_status not null default 'PENDING',
  status_changed_at timestamptz not null default now(),
  amount app_public.money not null check (amount > 0),
  amount_refunded app_public.money not null default 0,
  amount_refunding app_public.money not null default 0,
  fee app_public.money,
  net numeric,
  currency app_public.currency_code not null,
  method app_public.payment_method not null default 'CARD',
  card_brand app_public.card_brand,
  card_last4 text,
  description app_public.short_text,
  statement_descriptor text,
  receipt_url app_public.url,
  failure_code text,
  failure_message text,
  captured_at timestamptz,
  last_refunded_at timestamptz,
  disputed_at timestamptz,
  dispute_status text check (dispute_status in ('OPEN', 'WON', 'LOST')),
  metadata jsonb,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint processor_charges_refunds_within check (amount_refunded + amount_refunding <= amount),
  constraint processor_charges_intent_id_fkey foreign key (intent_id, user_id)
    references app_public.payment_intents (id, user_id) on delete restrict,
  constraint processor_charges_card_id_fkey foreign key (card_id, user_id)
    references app_public.processor_cards (id, user_id) on delete restrict,
  constraint processor_charges_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint processor_charges_reservation_id_fkey foreign key (reservation_id, project_id)
    references app_public.reservations (id, project_id) on delete restrict,
  constraint processor_charges_deposit_id_fkey foreign key (deposit_id, project_id)
    references app_public.deposits (id, project_id) on delete restrict,
  constraint processor_charges_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete restrict,
  constraint processor_charges_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete restrict,
  constraint processor_charges_of_project check (project_id is not null
    or num_nonnulls(reservation_id, deposit_id, lead_id, buyer_id) = 0),
  unique (id, organization_id)
);
create index processor_charges_organization on app_public.processor_charges (organization_id, id desc);
create index processor_charges_organization_status on app_public.processor_charges (organization_id, status, id desc);
create index processor_charges_project on app_public.processor_charges (project_id, id desc);
create index processor_charges_user on app_public.processor_charges (user_id, id desc);
create index processor_charges_intent on app_public.processor_charges (intent_id, id desc);
create unique index processor_charges_tentative on app_public.processor_charges (intent_id) where is_tentative;
create index processor_charges_reservation on app_public.processor_charges (reservation_id, id desc)
  where reservation_id is not null;
create index processor_charges_deposit on app_public.processor_charges (deposit_id, id desc)
  where deposit_id is not null;
create index processor_charges_lead on app_public.processor_charges (lead_id, id desc) where lead_id is not null;
create index processor_charges_buyer on app_public.processor_charges (buyer_id, id desc) where buyer_id is not null;
create index processor_charges_card on app_public.processor_charges (card_id, user_id) where card_id is not null;
alter table app_public.processor_charges enable row level security;

create table app_public.processor_refunds (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  charge_id uuid not null,
  amount app_public.money not null check (amount > 0),
  status app_public.refund_status not null default 'PENDING',
  reason app_public.refund_reason not null default 'REQUESTED_BY_CUSTOMER',
  note app_public.long_text,
  processor_id text constraint processor_refunds_once unique,
  failure_message text,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete restrict,
  attempt_key text,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint processor_refunds_charge_id_fkey foreign key (charge_id, organization_id)
    references app_public.processor_charges (id, organization_id) on delete restrict
);
create index processor_refunds_charge on app_public.processor_refunds (charge_id, id);
create index processor_refunds_created_by on app_public.processor_refunds (created_by_id, attempt_key);
create index processor_refunds_open on app_public.processor_refunds (updated_at)
  where status in ('PENDING', 'REQUIRES_ACTION');
alter table app_public.processor_refunds enable row level security;

-- Operations.
create domain app_public.made_payment as text;

create domain app_public.made_refund as text;
