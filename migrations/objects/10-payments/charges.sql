-- Charges and refunds. Money moves at the processor, and is recorded before and after:
--
--   begin_payment commits the payment intent and its charge, PENDING → the processor is called → note_payment stores
--                 the response
--   begin_refund  commits the refund, PENDING, which reduces the refundable amount → likewise → note_refund
--
-- An interruption is reconciled by the next request with the idempotency key, an event of the processor, or the job
-- payments__reconcile. All of them read the current state of the processor's object, so their order and number do not
-- matter. An intent is created at the processor first, and confirmed when its id is stored: every possible charge is
-- known, and unconfirmed intents move no money.
--
-- Charge: PENDING → REQUIRES_ACTION → SUCCEEDED, FAILED, CANCELLED; SUCCEEDED → PARTIALLY_REFUNDED → REFUNDED, and back
-- if a refund fails later; → DISPUTED, and back if the bank decides for the seller. Only the service makes these
-- transitions.
--
-- Metadata of a charge, such as its number in the accounts, is all that clients can write. Status and amount come from
-- the processor.

comment on table app_private.payment_intent_secrets is
  'What the client of a payer completes a payment with; good for that one payment.';

create policy finance on app_public.processor_charges for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('finance.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('finance.read'))::uuid[])
    or user_id = (select app_hidden.viewer_payer())
    or buyer_id = any (array(select app_hidden.viewer_purchases()))
    or lead_id = any (array(select app_hidden.viewer_purchase_leads()))
    or reservation_id = any (array(select app_hidden.viewer_purchase_reservations())));

select app_private.make_record('processor_charges', 'charge', 'finance.write',
  event_permission => 'finance.read');
select app_private.make_state_machine('processor_charges', 'charge',
  steps => array[
    ['PENDING', 'REQUIRES_ACTION', 'service'], ['PENDING', 'SUCCEEDED', 'service'], ['PENDING', 'FAILED', 'service'],
    ['PENDING', 'CANCELLED', 'service'],
    ['REQUIRES_ACTION', 'SUCCEEDED', 'service'], ['REQUIRES_ACTION', 'FAILED', 'service'],
    ['REQUIRES_ACTION', 'CANCELLED', 'service'],
    ['SUCCEEDED', 'PARTIALLY_REFUNDED', 'service'], ['SUCCEEDED', 'REFUNDED', 'service'],
    ['SUCCEEDED', 'DISPUTED', 'service'],
    ['PARTIALLY_REFUNDED', 'REFUNDED', 'service'], ['PARTIALLY_REFUNDED', 'SUCCEEDED', 'service'],
    ['PARTIALLY_REFUNDED', 'DISPUTED', 'service'],
    ['REFUNDED', 'PARTIALLY_REFUNDED', 'service'], ['REFUNDED', 'SUCCEEDED', 'service'],
    ['REFUNDED', 'DISPUTED', 'service'],
    ['DISPUTED', 'SUCCEEDED', 'service'], ['DISPUTED', 'PARTIALLY_REFUNDED', 'service'],
    ['DISPUTED', 'REFUNDED', 'service']],
  initial => array['PENDING', 'REQUIRES_ACTION', 'SUCCEEDED', 'FAILED']);

create policy bookkeepers on app_public.processor_charges for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('finance.write'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('finance.write'))::uuid[]));

grant select on app_public.processor_charges to plat_user, plat_anonymous;
grant update (metadata) on app_public.processor_charges to plat_user;

comment on table app_public.processor_charges is $$
@portfolio finance.read
@ownFinder viewer_charges
@subject charge
@filterLists status

A charge to a payment card.$$;
comment on column app_public.processor_charges.intent_id is E'@behavior -*\n\nThe payment that it is of.';
comment on column app_public.processor_charges.organization_id is
  E'@filter organizationIds\n@formerFilter organizationId Removed after 2028-01-01.\n\n'
  'Id of the organization that is paid.';
comment on column app_public.processor_charges.project_id is E'@filter projectIds\n\nThe project that it belongs to.';
comment on column app_public.processor_charges.reservation_id is
  E'@filter reservationIds\n@formerFilter reservationId Removed after 2028-01-01.\n\n'
  'The reservation that it pays for; null if it pays for something else.';
comment on column app_public.processor_charges.deposit_id is
  E'@filter depositIds\n@formerFilter depositId Removed after 2028-01-01.\n\n'
  'The deposit that it pays; null if it pays for something else.';
comment on column app_public.processor_charges.lead_id is
  E'@behavior -*\n\nThe lead whose deposit or reservation it is.';
comment on column app_public.processor_charges.buyer_id is
  E'@filter buyerIds\n\nId of the purchase that the charge pays for.';
comment on column app_public.processor_charges.card_id is
  'The saved card that was charged; null if the card was not saved.';
comment on column app_public.processor_charges.processor_id is
  E'@impersonal\n\n'
  'Id at the processor; until it is known, the id of the payment or the idempotency key of the request.';
comment on column app_public.processor_charges.is_tentative is
  E'@secret\n@behavior -*\n\nWhether the processor has not made the charge yet.';
comment on column app_public.processor_charges.payment_intent_id is
  E'@impersonal\n\nId that the payment processor assigned to the payment intent.';
comment on column app_public.processor_charges.status is E'@filter\n\nCurrent status.';
comment on column app_public.processor_charges.status_changed_at is 'When the status last changed.';
comment on column app_public.processor_charges.amount is 'Amount in the currency of the payment.';
comment on column app_public.processor_charges.deposit_amount is
  E'@behavior -*\n@secret\n\nPart of it that paid its deposit; the rest exceeded the amount due.';
comment on column app_public.processor_charges.amount_refunded is 'Total amount refunded.';
comment on column app_public.processor_charges.amount_refunding is E'@secret\n\nAmount of pending refunds.';
comment on column app_public.processor_charges.fee is E'@masked\n\nFee of the payment processor.';
comment on column app_public.processor_charges.net is E'@masked\n\nAmount that remains for the organization.';
comment on column app_public.processor_charges.currency is 'ISO 4217 code, such as USD.';
comment on column app_public.processor_charges.method is 'How the payer paid, such as CARD.';
comment on column app_public.processor_charges.card_brand is 'Card network, such as VISA.';
comment on column app_public.processor_charges.card_last4 is
  E'@personal contract\n\nLast four digits of the card number.';
comment on column app_public.processor_charges.description is E'@personal contract\n\nText shown to the payer.';
comment on column app_public.processor_charges.statement_descriptor is
  E'@impersonal\n\nText on the cardholder''s statement.';
comment on column app_public.processor_charges.receipt_url is
  E'@personal contract\n\nPage of the processor with the receipt for the payer; null if there is none.';
comment on column app_public.processor_charges.failure_code is
  E'@impersonal\n\nReason code of the processor, such as card_declined; null unless the status is FAILED.';
comment on column app_public.processor_charges.failure_message is
  E'@impersonal\n\nExplanation of the failure, to show to the payer; null unless the status is FAILED.';
comment on column app_public.processor_charges.captured_at is 'When the amount was captured; null until then.';
comment on column app_public.processor_charges.last_refunded_at is 'Time of the latest refund.';
comment on column app_public.processor_charges.disputed_at is
  'When the cardholder disputed the charge; null if not disputed.';
comment on column app_public.processor_charges.dispute_status is
  E'@impersonal\n\nOutcome of the dispute: OPEN, WON or LOST; null if it is not disputed.';
comment on column app_public.processor_charges.metadata is
  E'@personal contract\n@masked\n\nArbitrary JSON for the organization''s own programs; not interpreted.';
comment on constraint processor_charges_refunds_within on app_public.processor_charges is
  'Refunds cannot exceed the charge.';
comment on constraint processor_charges_card_id_fkey on app_public.processor_charges is
  E'@fieldName card\n@backwardBehavior -*\n\nThe card; null for all but its user.';
comment on constraint processor_charges_organization_id_fkey on app_public.processor_charges is
  E'@fieldName organization\n@backwardBehavior -*\n\nThe organization that receives the money.';
comment on constraint processor_charges_user_id_fkey on app_public.processor_charges is
  E'@fieldName user\n@backwardBehavior -*\n\nThe user who paid.';
comment on constraint processor_charges_intent_id_fkey on app_public.processor_charges is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe payment.';
comment on constraint processor_charges_project_id_fkey on app_public.processor_charges is
  E'@parent\n'
  '@fieldName project\n'
  '@foreignFieldName charges\n'
  '@backwardPermission finance.read\n'
  '@backwardDescription Card charges; null without the permission finance.read.\n\n'
  'The project that it belongs to.';
comment on constraint processor_charges_reservation_id_fkey on app_public.processor_charges is
  E'@fieldName reservation\n'
  '@foreignFieldName charges\n'
  '@backwardDescription Card charges for it, which its reversal does not refund. Without the permission '
  'finance.read, only the viewer''s own charges.\n\n'
  'The reservation.';
comment on constraint processor_charges_deposit_id_fkey on app_public.processor_charges is
  E'@fieldName deposit\n@backwardBehavior -*\n\nThe deposit.';
comment on constraint processor_charges_lead_id_fkey on app_public.processor_charges is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe lead.';
comment on constraint processor_charges_buyer_id_fkey on app_public.processor_charges is
  E'@fieldName buyer\n@backwardBehavior -*\n\nThe purchase.';

create trigger _060_refuse_archived before insert on app_public.processor_charges for each row
  execute function app_private.tg__refuse_archived();

insert into app_private.event_names (subject, column_name, value, name) values
  ('charge', 'status', 'REQUIRES_ACTION', 'requires_action'), ('charge', 'status', 'FAILED', 'failed'),
  ('charge', 'status', 'CANCELLED', 'cancelled'),
  ('charge', 'status', 'DISPUTED', 'disputed'), ('charge', 'captured_at', null, 'succeeded'),
  ('charge', 'last_refunded_at', null, 'refunded');

create function app_private.tg_processor_charges__keep() returns trigger
language plpgsql volatile as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  raise exception 'charges are never deleted, nor is what they are about changed' using errcode = 'restrict_violation';
end $$;
create trigger _100_keep before delete on app_public.processor_charges for each row
  execute function app_private.tg_processor_charges__keep();
create trigger _100_same before update on app_public.processor_charges for each row
  when (row(old.id, old.intent_id, old.organization_id, old.project_id, old.reservation_id, old.deposit_id, old.lead_id,
    old.user_id, old.amount, old.currency)
    is distinct from row(new.id, new.intent_id, new.organization_id, new.project_id, new.reservation_id, new.deposit_id,
      new.lead_id, new.user_id, new.amount, new.currency))
  execute function app_private.tg_processor_charges__keep();

create function app_private.tg_processor_charges__begin() returns trigger
language plpgsql volatile as $$
begin
  -- Nothing yet, with the digits of the currency.
  new.amount_refunded := new.amount - new.amount;
  new.amount_refunding := new.amount - new.amount;
  return new;
end $$;
create trigger _200_begin before insert on app_public.processor_charges for each row
  execute function app_private.tg_processor_charges__begin();

comment on domain app_public.made_payment is
  E'@transform payment\n@given\n\nThe payment requested from the processor.';

comment on domain app_public.made_refund is
  E'@transform refund\n@given\n\nThe charge of the refund requested from the processor.';

create function app_public.processor_charges_amount_refundable(c app_public.processor_charges) returns app_public.money
language sql stable as $$
  select case when c.status in ('SUCCEEDED', 'PARTIALLY_REFUNDED')
    then c.amount - c.amount_refunded - c.amount_refunding else c.amount - c.amount end
$$;

create function app_public.processor_charges_fee(c app_public.processor_charges) returns app_public.money
language sql stable as $$ select case when c.fee is not null
  and app_hidden.sees_finance(c.project_id, c.organization_id) then c.fee end $$;

create function app_public.processor_charges_net(c app_public.processor_charges) returns numeric
language sql stable as $$ select case when c.net is not null
  and app_hidden.sees_finance(c.project_id, c.organization_id) then c.net end $$;

create function app_public.processor_charges_metadata(c app_public.processor_charges) returns jsonb
language sql stable as $$ select case when c.metadata is not null
  and app_hidden.sees_finance(c.project_id, c.organization_id) then c.metadata end $$;

create function app_public.processor_charges_allowed_transitions(c app_public.processor_charges) returns
  app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('charge', jsonb_build_object('status', c.status)) $$;

comment on function app_public.processor_charges_amount_refundable is E'@notNull\n\nAmount that can still be refunded.';
comment on function app_public.processor_charges_fee is
  'Fee of the payment processor; null without the permission finance.read.';
comment on function app_public.processor_charges_net is
  E'@measures quantity\n\nAmount after fees and refunds; null without the permission finance.read.';
comment on function app_public.processor_charges_metadata is
  'Arbitrary JSON for the organization''s own programs; not interpreted; null without the permission finance.read.';
comment on function app_public.processor_charges_allowed_transitions is
  E'@notNull\n\nAlways empty: the status follows from payment and refunds.';

create function app_private.tg_processor_charges__follow() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  service text := coalesce(current_setting('plat.service', true), '');
  clock text := coalesce(current_setting('plat.clock', true), '');
  given_back numeric := case when tg_op = 'UPDATE'
    then app_private.deposit_given_back(new) - app_private.deposit_given_back(old) else 0 end;
begin
  if tg_op = 'UPDATE' and new.status = old.status and given_back = 0 then
    return null;
  end if;
  perform set_config('plat.service', 'on', true);
  if new.deposit_id is not null then
    if given_back <> 0 then
      update app_public.deposits d
        set amount_refunded = greatest(0, least(d.amount_paid, d.amount_refunded + given_back))
        where d.id = new.deposit_id and d.deleted_at is null;
    elsif new.status in ('PENDING', 'REQUIRES_ACTION') then
      update app_public.deposits d set status = 'PROCESSING', method = 'CARD'
        where d.id = new.deposit_id and d.status in ('SCHEDULED', 'INVOICED') and d.deleted_at is null;
    elsif new.status in ('FAILED', 'CANCELLED') then
      update app_public.deposits d set status = 'INVOICED'
        where d.id = new.deposit_id and d.status = 'PROCESSING' and d.deleted_at is null and d.amount_paid = 0
          and not exists (select from app_public.processor_charges c where c.deposit_id = d.id
            and c.status in ('PENDING', 'REQUIRES_ACTION'));
    elsif new.status = 'SUCCEEDED' and (tg_op = 'INSERT' or old.captured_at is null) then
      perform app_private.pay_deposit(new);
    end if;
  end if;
  perform set_config('plat.service', service, true), set_config('plat.clock', clock, true);
  return null;
end $$;
create trigger _500_follow after insert or update of status, amount_refunded, dispute_status
  on app_public.processor_charges for each row execute function app_private.tg_processor_charges__follow();

create function app_private.tg_processor_charges__dispute() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.open_ticket('PAYMENT_DISPUTE', 'dispute:' || new.id, new.organization_id,
    format('A payment of %s %s is disputed', new.amount, new.currency),
    '{REFUND,DISMISS}', project_id => new.project_id, priority => 'HIGH', lead_id => case when new.buyer_id is null
      then new.lead_id end, buyer_id => new.buyer_id,
    subject_type => 'charge', subject_id => new.id,
    description => 'The holder of the card contests the payment at the bank. Answer at the payment processor in time, '
      'or accept the dispute: the payer then gets the money back.');
  return null;
end $$;
create trigger _510_dispute after update of status on app_public.processor_charges for each row
  when (new.status = 'DISPUTED' and old.status <> 'DISPUTED' and new.dispute_status = 'OPEN')
    execute function app_private.tg_processor_charges__dispute();

create trigger _060_refuse_archived_metadata before update of metadata on app_public.processor_charges
  for each row execute function app_private.tg__refuse_archived();
