--! Previous: sha1:eddaf7eede499c3479a6737583cdc00165978d4e
--! Hash: sha1:1a42f1eb746bab97886d90c041f98ddb749834d1
--! Message: cancelled-purchases

-- A purchase is cancelled with what it takes along, which is told before. What was not paid by card goes back by hand:
-- how much is to be given back of a deposit, since when.

select app_private.create_enum('cancellation_effect_kind', 'What cancelling a purchase does to a record.', array[
  ['CHANGED', 'It gets another status.'],
  ['REFUND', 'Money of a charge goes back to the card that it was paid with.'],
  ['RETURN', 'Money of a deposit is to be given back by wire or cheque; updateDeposit says when that is done.'],
  ['KEPT', 'It stays as it is, or so much of it stays with the seller.']]);

create type app_public.cancel_buyer_refund_input as (charge_id uuid, amount app_public.money);
create type app_public.cancel_buyer_return_input as (deposit_id uuid, amount app_public.money);
create type app_public.cancellation_effect as (
  kind app_public.cancellation_effect_kind, record_type text, record_id uuid, title text, status_before text,
  status_after text, amount app_public.money, reason text);
create type app_public.cancel_buyer_payload as (
  buyer_id uuid, dry_run boolean, refund_total app_public.money, return_total app_public.money,
  kept_total app_public.money, currency app_public.currency_code, effects app_public.cancellation_effect[]);

alter table app_public.deposits
  add column amount_to_return app_public.money not null default 0,
  add column return_requested_at timestamptz;
-- Nothing, with the digits of the currency.
alter table app_public.deposits disable trigger user;
update app_public.deposits d set amount_to_return = d.amount_paid - d.amount_paid;
alter table app_public.deposits enable trigger user;
alter table app_public.deposits add constraint deposits_return_within
  check (amount_to_return between 0 and amount_paid - amount_refunded) not valid;
