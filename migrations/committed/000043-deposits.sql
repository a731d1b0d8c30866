--! Previous: sha1:33d35af7cf423fae51cd9092cbae41d0d5b41c46
--! Hash: sha1:da8e07a523fbc215b024f84a8486db4d271a2ae8
--! Message: deposits

-- Deposits of leads and buyers.

select app_private.create_enum('deposit_status', 'What became of a deposit.', array[
  ['SCHEDULED', 'To be paid.'], ['INVOICED', 'Asked for.'], ['PROCESSING', 'The payment is on its way.'],
  ['PARTIALLY_PAID', 'Paid in part.'], ['PAID', 'Paid.'], ['RELEASED', 'Handed to the seller.'],
  ['REFUNDED', 'Given back.'], ['FORFEITED', 'Kept by the seller.'], ['WAIVED', 'Not asked for any more.'],
  ['CANCELLED', 'The deal fell through before it was paid.']]);
select app_private.create_enum('deposit_holder', 'Who holds a deposit.', array[
  ['ESCROW', 'An escrow agent.'], ['LAWYER', 'A lawyer.'], ['TITLE_COMPANY', 'A title company.'],
  ['BROKER', 'A broker.'], ['DEVELOPER', 'The developer.']]);
select app_private.create_enum('payment_method', 'How something is paid.', array[
  ['CARD', 'By card.'], ['ACH', 'By direct debit or credit through the Automated Clearing House.'],
  ['WIRE', 'By wire.'], ['CHEQUE', 'By cheque.'], ['CASH', 'In cash.'], ['BANK_TRANSFER', 'By bank transfer.'],
  ['OTHER', 'In another way.']]);

create table app_public.deposits (
  like app_private.project_record including all,
  lead_id uuid,
  buyer_id uuid,
  reservation_id uuid,
  milestone_id uuid,
  title app_public.short_text not null,
  status app_public.deposit_status not null default 'SCHEDULED',
  status_changed_at timestamptz not null default now(),
  sequence int not null,
  amount app_public.money constraint deposits_amount_some check (amount > 0),
  percent numeric constraint deposits_percent_range check (percent > 0 and percent <= 100 and scale(percent) <= 4),
  percent_base app_public.percent_base,
  amount_fixed app_public.money,
  amount_paid app_public.money not null default 0,
  currency app_public.currency_code not null,
  due_at date,
  due_rule app_public.deposit_due_rule,
  due_offset_days int,
  paid_at timestamptz,
  method app_public.payment_method,
  reference app_public.short_text,
  held_by app_public.deposit_holder not null default 'ESCROW',
  sent_to_holder_at timestamptz,
  released_at timestamptz,
  refunded_at timestamptz,
  forfeited_at timestamptz,
  invoice_number app_public.short_text,
  notes app_public.long_text,
  offer_id uuid,
  constraint deposits_one_value check (num_nonnulls(amount, percent) = 1),
  constraint deposits_percent_base check ((percent is null) = (percent_base is null)),
  constraint deposits_reservation_id_fkey foreign key (reservation_id, project_id)
    references app_public.reservations (id, project_id) on delete restrict,
  constraint deposits_milestone_id_fkey foreign key (milestone_id, project_id)
    references app_public.deposit_schedule_milestones (id, project_id) on delete set null (milestone_id),
  constraint deposits_offer_id_fkey foreign key (offer_id, project_id)
    references app_public.offers (id, project_id) on delete restrict,
  constraint deposits_in_project unique (id, project_id),
  constraint deposits_one_person check (num_nonnulls(lead_id, buyer_id) = 1),
  constraint deposits_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint deposits_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete restrict,
  constraint deposits_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete restrict
);
create index deposits_reservation on app_public.deposits (reservation_id, sequence, id) where deleted_at is null;
create index deposits_milestone on app_public.deposits (milestone_id) where deleted_at is null;
create index deposits_offer on app_public.deposits (offer_id, sequence, id) where deleted_at is null;
create index deposits_clock on app_public.deposits (due_at) where deleted_at is null;
create index deposits_buyer on app_public.deposits (buyer_id, sequence, id) where deleted_at is null;
create index deposits_lead on app_public.deposits (lead_id, sequence, id) where deleted_at is null;
create index deposits_project on app_public.deposits (project_id, sequence, id) where deleted_at is null;
alter table app_public.deposits enable row level security;
