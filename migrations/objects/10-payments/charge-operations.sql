create function app_hidden.viewer_charges() returns setof uuid
language plpgsql stable security definer rows 5 set search_path = pg_catalog, pg_temp as $$
begin
  if app_hidden.viewer_payer() is null then
    return;
  end if;
  return query
    -- Those of the viewer's own organizations are among theirs anyway.
    select c.id from app_public.processor_charges c where c.user_id = app_public.current_user_id()
      and c.organization_id <> all ((select app_hidden.viewer_organizations('finance.read'))::uuid[])
    union select c.id from app_public.processor_charges c
      where c.buyer_id = any (array(select app_hidden.viewer_purchases()))
    union select c.id from app_public.processor_charges c
      where c.lead_id = any (array(select app_hidden.viewer_purchase_leads()))
    union select c.id from app_public.processor_charges c
      where c.reservation_id = any (array(select app_hidden.viewer_purchase_reservations()));
end $$;
comment on function app_hidden.viewer_charges() is
  'The charges that the viewer paid, and those of the viewer''s own purchases, beside those of the viewer''s '
  'organizations.';
grant execute on function app_hidden.viewer_charges() to plat_user;

create function app_private.charge_status(c app_public.processor_charges, refunded numeric) returns text
language sql stable as $$
  select case when c.captured_at is null then c.status when c.dispute_status in ('OPEN', 'LOST') then 'DISPUTED'
    when refunded = c.amount then 'REFUNDED'
    when refunded > 0 then 'PARTIALLY_REFUNDED' else 'SUCCEEDED' end
$$;
comment on function app_private.charge_status(app_public.processor_charges, numeric) is
  'The status that disputes and so much refunded make of a charge that was paid.';

-- Beginning.
create function app_private.payment_facts(p app_public.payment_intents) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', p.id, 'processorId', p.processor_id, 'status', p.status, 'amount', p.amount::text,
    'currency', p.currency,
    'description', p.description, 'confirm', p.card_id is not null, 'open', p.status not in ('SUCCEEDED', 'CANCELED'),
    'customerId', k.processor_id, 'cardId', c.processor_id, 'accountId', a.processor_id, 'url', null,
    'metadata', jsonb_strip_nulls(jsonb_build_object('plat_payment', p.id, 'plat_organization', p.organization_id,
      'plat_project', p.project_id,
      'plat_reservation', p.reservation_id, 'plat_deposit', p.deposit_id)))
  from (select) x
  left join app_public.processor_cards c on c.id = p.card_id
  left join app_private.processor_customers k on k.user_id = c.user_id
  left join app_private.payments_accounts a on a.organization_id = p.organization_id
$$;
comment on function app_private.payment_facts(app_public.payment_intents) is
  'Data of a payment for the processor, and its status.';

create function app_private.amount_of_payment(input jsonb, currency text, field text default 'amount') returns numeric
language plpgsql stable as $$
declare
  amount numeric := app_hidden.to_money(app_hidden.checked(input ->> 'amount', 'app_public.money', field)::numeric,
    currency, field);
begin
  if amount <= 0 then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The amount must be greater than zero.', jsonb_build_object('field', field));
  elsif scale(amount) = 3 and amount <> round(amount, 2) then
    perform app_hidden.fail('BAD_USER_INPUT',
      format('Cards in %s can be charged to at most two decimal places; the third must be 0.', currency),
      jsonb_build_object('field', field));
  end if;
  return amount;
end $$;

create function app_hidden.begin_payment(operation text, input jsonb, repeat jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  payer uuid := app_hidden.require_payer();
  attempt record;
  intent app_public.payment_intents;
  card app_public.processor_cards;
  deposit app_public.deposits;
  reservation app_public.reservations;
  wanted_currency text := upper(nullif(btrim(input ->> 'currency'), ''));
  currencies text[];
  due numeric;
  taken numeric;
  is_own boolean;
  actor text := coalesce(current_setting('plat.actor_type', true), '');
begin
  attempt := app_private.claim_attempt(repeat);
  if attempt.answered then
    return '{"answered": true}';
  end if;
  if attempt.key is not null then
    select p.* into intent from app_public.payment_intents p
      where p.created_by_id = payer and p.attempt_key = attempt.key and p.inserted_at > now() - interval '24 hours'
        order by p.id desc limit 1;
    if intent.id is not null then
      return app_private.payment_facts(intent) || '{"answered": false}';
    end if;
  end if;
  perform app_private.rate_limit('payments', payer::text, 120, interval '10 minutes');

  -- The amount that is paid.
  if input ->> 'depositId' is not null then
    select d.* into deposit from app_public.deposits d
      where d.id = app_hidden.record_id('deposits', input ->> 'depositId', 'depositId')
        and d.deleted_at is null for no key update;
    is_own := coalesce(deposit.buyer_id = any (array(select app_hidden.viewer_purchases())), false)
      or coalesce(deposit.lead_id = any (array(select app_hidden.viewer_purchase_leads())), false)
      or coalesce(deposit.reservation_id = any (array(select app_hidden.viewer_purchase_reservations())), false);
    if deposit.id is null or not (is_own or app_hidden.deal_can(deposit.organization_id, deposit.project_id,
        app_private.assignee_of_deposit(deposit), 'sale.read')) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such deposit.', '{"field": "depositId"}');
    end if;
    intent.project_id := deposit.project_id;
    intent.reservation_id := deposit.reservation_id;
    intent.lead_id := deposit.lead_id;
    intent.buyer_id := deposit.buyer_id;
    intent.deposit_id := deposit.id;
    if input ->> 'reservationId' is not null and app_hidden.record_id('reservations', input ->> 'reservationId',
      'reservationId') is distinct from deposit.reservation_id then
      perform app_hidden.fail('BAD_USER_INPUT',
        'The deposit does not belong to this reservation; specify only one of them.',
        '{"field": "reservationId"}');
    end if;
  elsif input ->> 'reservationId' is not null then
    select r.* into reservation from app_public.reservations r
      where r.id = app_hidden.record_id('reservations', input ->> 'reservationId', 'reservationId')
        and r.deleted_at is null;
    is_own := reservation.id = any (array(select app_hidden.viewer_purchase_reservations()));
    if reservation.id is null or not (is_own or app_hidden.deal_can(reservation.organization_id, reservation.project_id,
      reservation.assignee_id, 'sale.read')) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such reservation.', '{"field": "reservationId"}');
    end if;
    intent.project_id := reservation.project_id;
    intent.reservation_id := reservation.id;
    intent.lead_id := reservation.lead_id;
    intent.buyer_id := reservation.purchase_id;
  elsif input ->> 'organizationId' is not null then
    intent.organization_id := app_hidden.record_id('organizations', input ->> 'organizationId', 'organizationId');
    if not exists (select from app_public.organizations o where o.id = intent.organization_id and o.deleted_at is null
        and (o.has_public_project or o.id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[]))) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such organization.', '{"field": "organizationId"}');
    end if;
    is_own := true;
  else
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify the deposit, the reservation or the organization that is paid.',
      '{"field": "depositId"}');
  end if;
  if intent.project_id is not null then
    select p.organization_id, array[p.currency::text] into intent.organization_id, currencies from app_public.projects p
      where p.id = intent.project_id;
    if input ->> 'organizationId' is not null and app_hidden.record_id('organizations', input ->> 'organizationId',
      'organizationId') <> intent.organization_id then
      perform app_hidden.fail('BAD_USER_INPUT', 'The selling organization receives this payment; omit organizationId.',
        '{"field": "organizationId"}');
    end if;
    if not is_own and not app_hidden.project_can(intent.project_id, intent.organization_id, 'finance.write') then
      perform app_hidden.fail('FORBIDDEN', 'This requires the permission finance.write, unless you are the buyer.',
        '{"permission": "finance.write"}');
    end if;
    if exists (select from app_public.projects p where p.id = intent.project_id and p.archived_at is not null) then
      perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
    end if;
  else
    currencies := array(select distinct p.currency::text from app_public.projects p
      where p.organization_id = intent.organization_id and p.archived_at is null and p.deleted_at is null);
  end if;

  intent.currency := coalesce(wanted_currency, case when cardinality(currencies) = 1 then currencies[1] end);
  if intent.currency is null or intent.currency <> all (currencies) then
    perform app_hidden.fail('BAD_USER_INPUT', case when cardinality(currencies) = 0
      then 'The organization has no project that can be paid for.'
      else format('This is paid in %s.', array_to_string(currencies, ' or ')) end, '{"field": "currency"}');
  end if;
  intent.amount := app_private.amount_of_payment(input, intent.currency);
  if not exists (select from app_private.payments_accounts a where a.organization_id = intent.organization_id
    and a.status = 'ENABLED') then
    perform app_hidden.fail('CONFLICT',
      'The organization cannot accept payments yet: add the representatives that the payment processor requires with '
      'createOrganizationPaymentsRepresentative.',
      '{"field": "organizationId"}');
  end if;
  -- A payer of a reservation pays its fee first.
  if reservation.id is not null then
    select d.* into deposit from app_public.deposits d
      where d.reservation_id = reservation.id and d.is_reservation_fee and d.deleted_at is null
        and d.status in ('SCHEDULED', 'INVOICED', 'PARTIALLY_PAID')
        and intent.amount <= app_private.deposit_due(d) - d.amount_paid + d.amount_refunded
      for no key update;
    intent.deposit_id := deposit.id;
  end if;
  if deposit.id is not null then
    due := app_private.deposit_due(deposit);
    taken := (select coalesce(sum(c.amount), 0) from app_public.processor_charges c where c.deposit_id = deposit.id
      and c.status in ('PENDING', 'REQUIRES_ACTION'));
    if deposit.status not in ('SCHEDULED', 'INVOICED', 'PROCESSING', 'PARTIALLY_PAID') then
      perform app_hidden.fail('CONFLICT', format('A deposit with the status %s does not accept payments.',
        deposit.status),
        '{"field": "depositId"}');
    elsif intent.amount > due - deposit.amount_paid + deposit.amount_refunded - taken then
      perform app_hidden.fail('BAD_USER_INPUT',
        format(
          'The amount exceeds what is still due, %s%s.', due - deposit.amount_paid + deposit.amount_refunded - taken,
        case when taken > 0 then format('; %s is already being paid', taken) else '' end), '{"field": "amount"}');
    end if;
  elsif reservation.id is not null then
    if reservation.status not in ('PENDING', 'CONFIRMED', 'CONVERTED') then
      perform app_hidden.fail('CONFLICT', format('A reservation with the status %s does not accept payments.',
        reservation.status),
        '{"field": "reservationId"}');
    elsif intent.amount > reservation.price then
      perform app_hidden.fail('BAD_USER_INPUT', format('The amount exceeds the price, %s.', reservation.price),
        '{"field": "amount"}');
    end if;
  end if;

  -- Whose card: nobody's but the viewer's own.
  if input ->> 'cardId' is not null or operation = 'createProcessorCharge' then
    select c.* into card from app_public.processor_cards c
      where c.user_id = payer and case when input ->> 'cardId' is null then c.is_default and c.removed_at is null
        else c.id = app_hidden.record_id('processor_cards', input ->> 'cardId', 'cardId') end;
    if card.id is null then
      if input ->> 'cardId' is null then
        perform app_hidden.fail('BAD_USER_INPUT', 'You have no card yet; add one with createProcessorCard.',
          '{"field": "cardId"}');
      end if;
      perform app_hidden.fail('NOT_FOUND', 'You have no such card.', '{"field": "cardId"}');
    elsif app_public.processor_cards_status(card) <> 'ACTIVE' then
      perform app_hidden.fail('CONFLICT',
        format('This card is %s; use another one.', app_public.processor_cards_status(card)), '{"field": "cardId"}');
    end if;
  end if;

  intent.user_id := case when is_own or card.id is not null then payer
    else coalesce((select b.user_id from app_public.buyers b where b.id = intent.buyer_id), payer) end;
  if is_own and intent.project_id is not null
    and not app_hidden.project_can(intent.project_id, intent.organization_id, 'sale.write') then
    perform set_config('plat.actor_type', 'BUYER', true);
  end if;
  insert into app_public.payment_intents (organization_id, project_id, reservation_id, deposit_id, lead_id, buyer_id,
    user_id, created_by_id, card_id, amount, currency, description,
      status, attempt_key)
    values (intent.organization_id, intent.project_id, intent.reservation_id, intent.deposit_id, intent.lead_id,
      intent.buyer_id, intent.user_id, payer, card.id, intent.amount,
      intent.currency, app_hidden.checked(nullif(btrim(input ->> 'description'), ''), 'app_public.short_text',
        'description'),
      case when card.id is null then 'REQUIRES_PAYMENT_METHOD' else 'REQUIRES_CONFIRMATION' end, attempt.key)
    returning * into intent;
  if card.id is not null then
    insert into app_public.processor_charges (intent_id, organization_id, project_id, reservation_id, deposit_id,
      lead_id, buyer_id, user_id, card_id, processor_id, amount, currency,
        card_brand, card_last4, description)
      values (intent.id, intent.organization_id, intent.project_id, intent.reservation_id, intent.deposit_id,
        intent.lead_id, intent.buyer_id, intent.user_id, card.id, 'plat_' || intent.id,
        intent.amount, intent.currency, card.brand, card.last4, intent.description);
  end if;
  perform set_config('plat.actor_type', actor, true);
  return app_private.payment_facts(intent) || '{"answered": false}';
end $$;
comment on function app_hidden.begin_payment(text, jsonb, jsonb) is
  'Checks a payment as the viewer and writes it down, before the processor is asked. A payment continues under the '
  'idempotency key that it started with.';
revoke execute on function app_hidden.begin_payment from plat_anonymous;

-- The response of the processor.
create function app_private.update_charge_status(id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.processor_charges c set status = app_private.charge_status(c, c.amount_refunded)
    where c.id = update_charge_status.id and c.status <> app_private.charge_status(c, c.amount_refunded);
end $$;
comment on function app_private.update_charge_status(uuid) is
  'Derives the status of a paid charge from its refunds and disputes.';

create function app_private.note_payment(id uuid, state jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  intent app_public.payment_intents;
  charge app_public.processor_charges;
  told jsonb := nullif(state -> 'charge', 'null');
  becomes text;
  service text := coalesce(current_setting('plat.service', true), '');
  refund jsonb;
begin
  select p.* into intent from app_public.payment_intents p where p.id = id for update;
  -- A payment may confirm the reservation, which precedes its deposit in the order of locks.
  perform app_private.lock_reservation(intent.reservation_id) where intent.reservation_id is not null;
  if intent.id is null or (intent.processor_id is not null and intent.processor_id <> state ->> 'id') then
    return '{"open": false}';
  end if;
  -- Money that moved is written down in archived projects too.
  perform set_config('plat.service', 'on', true), set_config('plat.clock', 'on', true);
  if state ->> 'clientSecret' is not null then
    insert into app_private.payment_intent_secrets as s (intent_id, client_secret)
      values (id, state ->> 'clientSecret') on conflict do nothing;
  end if;
  update app_public.payment_intents p set processor_id = state ->> 'id', next_action_url = case
    when state ->> 'status' = 'REQUIRES_ACTION' then state ->> 'nextActionUrl' end,
      status = case when p.status in ('SUCCEEDED', 'CANCELED') and state ->> 'status' <> 'SUCCEEDED' then p.status
        else state ->> 'status' end, updated_at = now()
    where p.id = id returning p.* into intent;

  if told is not null then
    select c.* into charge from app_public.processor_charges c
      where c.intent_id = id and (c.is_tentative or c.processor_id = told ->> 'id')
        order by c.processor_id = told ->> 'id' desc limit 1 for update;
    becomes := told ->> 'status';
    if charge.id is null then
      insert into app_public.processor_charges (intent_id, organization_id, project_id, reservation_id, deposit_id,
        lead_id, buyer_id, user_id, card_id, processor_id, payment_intent_id,
          amount, currency, description, status)
        values (intent.id, intent.organization_id, intent.project_id, intent.reservation_id, intent.deposit_id,
          intent.lead_id, intent.buyer_id, intent.user_id, intent.card_id,
          told ->> 'id', intent.processor_id, intent.amount, intent.currency, intent.description, 'PENDING')
        returning * into charge;
    end if;
  else
    select c.* into charge from app_public.processor_charges c where c.intent_id = id and c.is_tentative for update;
    becomes := case when state ->> 'status' = 'CANCELED' then 'CANCELLED' when state ->> 'status' = 'REQUIRES_ACTION'
      then 'REQUIRES_ACTION'
      when state ->> 'status' = 'REQUIRES_PAYMENT_METHOD' and state -> 'failure' <> 'null' then 'FAILED' end;
  end if;
  if charge.id is not null and (told is not null or becomes is not null) then
    -- A transition that does not exist was made before: this state is older than the stored one.
    if not exists (select from app_hidden.transitions t where t.subject = 'charge' and t.from_state = charge.status
      and t.to_state = becomes)
      or charge.status not in ('PENDING', 'REQUIRES_ACTION') then
      becomes := null;
    end if;
    update app_public.processor_charges c set
        processor_id = coalesce(told ->> 'id', case when c.is_tentative then intent.processor_id
          else c.processor_id end), payment_intent_id = intent.processor_id,
        is_tentative = c.is_tentative and told is null and coalesce(becomes, '') not in ('FAILED', 'CANCELLED'),
        status = coalesce(becomes, c.status),
        captured_at = case when becomes = 'SUCCEEDED' then coalesce((told ->> 'capturedAt')::timestamptz, now())
          else c.captured_at end,
        fee = coalesce((told ->> 'fee')::numeric, c.fee), net = coalesce((told ->> 'net')::numeric, c.net),
        method = coalesce(told ->> 'method', c.method), card_brand = coalesce(told ->> 'brand', c.card_brand),
          card_last4 = coalesce(told ->> 'last4', c.card_last4),
        statement_descriptor = coalesce(told ->> 'statementDescriptor', c.statement_descriptor),
          receipt_url = coalesce(told ->> 'receiptUrl', c.receipt_url),
        failure_code = case when becomes in ('FAILED', 'CANCELLED')
          then coalesce(told ->> 'failureCode', state -> 'failure' ->> 'code') else c.failure_code end,
        failure_message = case when becomes in ('FAILED', 'CANCELLED')
          then coalesce(told ->> 'failureMessage', state -> 'failure' ->> 'message') else c.failure_message end,
        disputed_at = coalesce(c.disputed_at, (told ->> 'disputedAt')::timestamptz),
        dispute_status = case when c.dispute_status in ('WON', 'LOST') then c.dispute_status
          else coalesce(told ->> 'disputeStatus', c.dispute_status) end
      where c.id = charge.id returning c.* into charge;
    for refund in select value from jsonb_array_elements(coalesce(told -> 'refunds', '[]')) loop
      perform app_private.apply_refund(charge, refund);
    end loop;
    perform app_private.update_charge_status(charge.id);
  end if;
  perform set_config('plat.service', service, true), set_config('plat.clock', '', true);
  return app_private.payment_facts(intent);
end $$;
comment on function app_private.note_payment(uuid, jsonb) is
  E'@step It is what the processor says of the payment.\n\nWrites down the state that a payment has at the processor: '
  'of its intent, its charge, refunds and disputes. Again, or an older state after a newer one, changes nothing.';

create function app_private.give_up_payment(id uuid, code text, message text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  service text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true), set_config('plat.clock', 'on', true);
  update app_public.payment_intents p set status = 'CANCELED', updated_at = now()
    where p.id = id and p.processor_id is null and p.status not in ('SUCCEEDED', 'CANCELED');
  if found then
    update app_public.processor_charges c set status = 'CANCELLED', is_tentative = false, failure_code = code,
      failure_message = message
      where c.intent_id = id and c.is_tentative;
  end if;
  perform set_config('plat.service', service, true), set_config('plat.clock', '', true);
end $$;
comment on function app_private.give_up_payment(uuid, text, text) is
  'Ends a payment that never came to be at the processor, or was never confirmed there.';

create function app_private.payment_of_processor(processor_id text) returns jsonb
language sql stable as $$
  select app_private.payment_facts(p) from app_public.payment_intents p where p.processor_id = $1
$$;
comment on function app_private.payment_of_processor(text) is
  'The payment that has that id at the processor; null for one that is not ours.';

create function app_private.disputed_charge(id uuid) returns table (intent uuid, charge text, payment text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.intent_id, c.processor_id, c.payment_intent_id from app_public.processor_charges c
  where c.id = disputed_charge.id
$$;
comment on function app_private.disputed_charge(uuid) is
  'A charge as its payment and as the processor know it, to accept its dispute.';

create function app_private.payments_to_reconcile(most int) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  (select app_private.payment_facts(p) || jsonb_build_object('kind', 'payment', 'abandon', p.card_id is not null
    and p.status in ('REQUIRES_CONFIRMATION', 'REQUIRES_PAYMENT_METHOD')
      or p.inserted_at < now() - interval '24 hours')
    from app_public.payment_intents p
    where p.status not in ('SUCCEEDED', 'CANCELED') and p.updated_at < now() - case when p.card_id is null
      or p.status = 'REQUIRES_ACTION' then interval '15 minutes' else interval '3 minutes' end
      and not (p.card_id is not null and p.status = 'REQUIRES_PAYMENT_METHOD'
        and p.inserted_at > now() - interval '24 hours')
    order by p.updated_at limit most)
  union all
  (select app_private.refund_facts(r) || '{"kind": "refund"}' from app_public.processor_refunds r
    where r.status in ('PENDING', 'REQUIRES_ACTION') and r.updated_at < now() - case when r.processor_id is null
      then interval '3 minutes' else interval '1 hour' end
    order by r.updated_at limit most)
  union all
  (select app_private.representative_facts(r) || '{"kind": "representative"}'
    from app_public.organization_payments_representatives r
    where r.processor_person_id is null and r.updated_at < now() - interval '3 minutes' order by r.updated_at
      limit most)
  union all
  -- Accounts of organizations are reported by events of the processor, if it can reach the service.
  (select app_private.account_to_sync(a.processor_id) || '{"kind": "account"}' from app_private.payments_accounts a
    where a.status in ('ONBOARDING', 'PENDING_VERIFICATION', 'RESTRICTED') and a.updated_at < now() - interval '1 hour'
      order by a.updated_at limit most)
$$;
comment on function app_private.payments_to_reconcile(int) is
  'Payments that were started a while ago and whose outcome is unknown; abandon: it was not confirmed and never '
  'will be.';

create function app_private.note_looked_at(kind text, id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  -- So that one whose state cannot be read does not delay the others.
  if kind = 'payment' then
    update app_public.payment_intents p set updated_at = now() where p.id = id;
  elsif kind = 'refund' then
    update app_public.processor_refunds r set updated_at = now() where r.id = id;
  elsif kind = 'account' then
    update app_private.payments_accounts a set updated_at = now() where a.organization_id = id;
  end if;
end $$;

grant execute on function app_private.note_payment, app_private.give_up_payment, app_private.note_refund to
  plat_authenticator;

create function app_public.create_processor_charge(made app_public.made_payment, amount app_public.money,
  card_id uuid default null, reservation_id uuid default null,
  deposit_id uuid default null, organization_id uuid default null, currency app_public.currency_code default null,
    description text default null)
returns app_public.processor_charges
language sql volatile as $$
  select c.* from app_hidden.masked_processor_charges c where c.intent_id = made::uuid order by c.id desc limit 1
$$;
comment on function app_public.create_processor_charge is $$
@deprecated Use `createPaymentIntent`. Removed after 2028-01-01.
@arg amount Amount in the currency of the payment.
@arg card_id A card of the viewer. Default: the viewer's default card.
@arg reservation_id Id of the reservation to pay for; null if the payment is for a deposit or for neither.
@arg deposit_id Id of the deposit to pay.
@arg organization_id Id of the organization that is paid, if the payment is neither for a deposit nor for a reservation.
@arg currency Currency of the project. Can be omitted if there is only one.
@arg description Text shown to the payer.

Charges a card of the viewer. If the bank refuses, the charge has the status FAILED and a `failureCode`.$$;

create function app_hidden.sees_finance(project_id uuid, organization_id uuid) returns boolean
language sql stable as $$
  select organization_id = any ((select app_hidden.viewer_organizations('finance.read'))::uuid[])
    or coalesce(project_id = any ((select app_hidden.viewer_projects('finance.read'))::uuid[]), false)
$$;
comment on function app_hidden.sees_finance(uuid, uuid) is
  'Whether the viewer sees the charges of the project, or of the organization if there is none, as one of its team.';
grant execute on function app_private.disputed_charge, app_private.give_up_payment, app_private.note_looked_at,
  app_private.note_payment, app_private.payments_to_reconcile to plat_worker;
