create policy payer on app_public.payment_intents for select to plat_user
  using (user_id = (select app_hidden.viewer_payer()) or created_by_id = (select app_hidden.viewer_payer()));

grant select on app_public.payment_intents to plat_user, plat_anonymous;

comment on table app_public.payment_intents is 'A card payment, from its start to the charge.';
comment on column app_public.payment_intents.organization_id is E'@behavior -*\n\nWho is paid.';
comment on column app_public.payment_intents.project_id is E'@behavior -*\n\nThe project that it belongs to.';
comment on column app_public.payment_intents.reservation_id is E'@behavior -*\n\nThe reservation that it is for.';
comment on column app_public.payment_intents.deposit_id is E'@behavior -*\n\nThe deposit that it is for.';
comment on column app_public.payment_intents.lead_id is E'@behavior -*\n\nThe lead whose deposit or reservation it is.';
comment on column app_public.payment_intents.buyer_id is
  E'@behavior -*\n\nThe purchase whose deposit or reservation it is.';
comment on column app_public.payment_intents.created_by_id is
  E'@inert Written on behalf of the payer, who confirms the payment.\n@behavior -*\n\nUser who requested it.';
comment on column app_public.payment_intents.card_id is E'@behavior -*\n\nThe card that was named.';
comment on column app_public.payment_intents.user_id is E'@behavior -*\n\nWho pays.';
comment on column app_public.payment_intents.amount is 'Amount in the currency of the payment.';
comment on column app_public.payment_intents.currency is 'ISO 4217 code, such as USD.';
comment on column app_public.payment_intents.description is E'@personal contract\n\nText shown to the payer.';
comment on column app_public.payment_intents.status is 'Current status.';
comment on column app_public.payment_intents.processor_id is
  E'@impersonal\n\nId that the payment processor assigned.';
comment on column app_public.payment_intents.next_action_url is
  E'@impersonal\n\nURL at which the payer confirms the payment with the bank, while the status is REQUIRES_ACTION.';
comment on column app_public.payment_intents.attempt_key is
  E'@impersonal\n@behavior -*\n\nIdempotency key of the request.';
comment on constraint payment_intents_organization_id_fkey on app_public.payment_intents is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nWho is paid.';
comment on constraint payment_intents_project_id_fkey on app_public.payment_intents is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint payment_intents_user_id_fkey on app_public.payment_intents is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nWho pays.';
comment on constraint payment_intents_created_by_id_fkey on app_public.payment_intents is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nUser who requested it.';
comment on constraint payment_intents_card_of_payer on app_public.payment_intents is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe card.';

create function app_public.create_payment_intent(made app_public.made_payment, amount app_public.money,
  reservation_id uuid default null, deposit_id uuid default null,
  organization_id uuid default null, currency app_public.currency_code default null, card_id uuid default null,
    description text default null)
returns app_public.payment_intents
language sql volatile as $$
  select p from app_public.payment_intents p where p.id = made::uuid
$$;
comment on function app_public.create_payment_intent is
  E'@arg amount Amount in the currency of the payment.\n@arg reservation_id Id of the reservation to pay for; null '
  'if the payment is for a deposit or for neither.\n@arg deposit_id Id of the deposit to pay.\n@arg '
  'organization_id Id of the organization that is paid, if the payment is neither for a deposit nor for a '
  'reservation.\n@arg currency Currency of the project. Can be omitted if there is only one.\n@arg card_id Id of a '
  'card of the viewer, which is charged immediately. If omitted, the client completes the payment with '
  '`clientSecret`.\n@arg description Text shown to the payer.\n\n'
  'Starts a card payment. If a card is given, it is charged immediately. The status is then SUCCEEDED; '
  'REQUIRES_ACTION if the payer must confirm at `nextActionUrl`; or REQUIRES_PAYMENT_METHOD with a FAILED charge '
  'if the bank declined. Buyers can pay their own deposits and reservations; others require the permission '
  'finance.write.';

create function app_public.payment_intents_client_secret(p app_public.payment_intents) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select s.client_secret from app_private.payment_intent_secrets s
  where s.intent_id = p.id and app_hidden.viewer_payer() in (p.user_id, p.created_by_id)
$$;

create function app_public.payment_intents_charge(p app_public.payment_intents)
  returns setof app_public.processor_charges
language sql stable rows 1 as $$
  select c.* from app_hidden.masked_processor_charges c where c.intent_id = p.id order by c.id desc limit 1
$$;

grant execute on function app_public.create_payment_intent, app_public.create_processor_charge,
  app_public.refund_processor_charge, app_public.payment_intents_client_secret, app_public.payment_intents_charge,
  app_public.processor_charges_amount_refundable, app_public.processor_charges_fee, app_public.processor_charges_net,
  app_public.processor_charges_metadata, app_public.processor_charges_allowed_transitions,
  app_public.processor_refunds_note, app_public.deposits_charge, app_public.buyers_charges to plat_user, plat_anonymous;
comment on function app_public.payment_intents_client_secret is
  E'@notNull\n\nSecret for the processor''s client library, which completes the payment on the payer''s device.';
comment on function app_public.payment_intents_charge is 'The latest charge; null until a card was charged.';
