--! Previous: sha1:7b3d8fa62f98d92257cc16662d2c5ccd060cb550
--! Hash: sha1:e45caff602ea20de00937b0570f16cee773b693e
--! Message: cards

-- Customers and cards at the payment processor.

select app_private.create_enum('card_brand', 'Whose card it is.', array[
  ['VISA', 'Visa.'], ['MASTERCARD', 'Mastercard.'], ['AMEX', 'American Express.'], ['DISCOVER', 'Discover.'],
  ['DINERS', 'Diners Club.'], ['JCB', 'JCB.'], ['UNIONPAY', 'UnionPay.'], ['UNKNOWN', 'Another one.']]);
select app_private.create_enum('card_funding', 'Where the money of a card comes from.', array[
  ['CREDIT', 'Credit.'], ['DEBIT', 'An account.'], ['PREPAID', 'It was paid in before.'],
  ['UNKNOWN', 'Nobody knows.']]);
select app_private.create_enum('card_status', 'Whether a card can be charged.', array[
  ['ACTIVE', 'It can.'], ['EXPIRED', 'Its last month is over.'], ['REMOVED', 'Its user removed it.']]);
create domain app_public.card_token as text;

create table app_private.processor_customers (
  user_id uuid primary key references app_public.users on delete cascade,
  processor_id text not null unique
);
alter table app_private.processor_customers enable row level security;

create table app_public.processor_cards (
  id uuid primary key default uuidv7(),
  user_id uuid not null references app_public.users on delete cascade,
  processor_id text not null constraint processor_cards_once unique,
  brand app_public.card_brand not null,
  last4 text not null constraint processor_cards_last4_format check (last4 ~ '^[0-9]{4}$'),
  exp_month int not null check (exp_month between 1 and 12),
  exp_year int not null check (exp_year between 2000 and 9999),
  funding app_public.card_funding not null,
  holder_name app_public.short_text,
  country app_public.country_code,
  fingerprint text not null,
  is_default boolean not null default false,
  removed_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint processor_cards_of_user unique (id, user_id)
);
create unique index processor_cards_default on app_public.processor_cards (user_id) where is_default
  and removed_at is null;
create index processor_cards_user on app_public.processor_cards (user_id, id desc);
alter table app_public.processor_cards enable row level security;
