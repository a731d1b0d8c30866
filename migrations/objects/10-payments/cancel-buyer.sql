-- Cancelling a purchase with its related records: the home is for sale again, the lead open, negotiations and workflows
-- end, unpaid deposits are cancelled (buyers.sql); and, as the viewer chooses, charges are refunded, deposits paid in
-- another way are marked to be returned, or forfeited, agreements voided, personalizations, tasks and appointments
-- cancelled, lease permits released, and its reservation undone. All of it is one transaction. A preview executes it
-- and rolls it back (dryRun), so the two cannot differ.
--
-- Refunds are recorded in the transaction, which reduces the refundable amount of the charge, and sent to the processor
-- afterwards by processor_refund__owed, with the key of the refund; payments__reconcile finds those whose job died.
--
-- If everything is returned (refundCharges, returnDeposits), the cancellation fee that applied at the reservation is
-- retained, unless it is waived; explicit amounts are used unchanged.

comment on type app_public.cancel_buyer_refund_input is
  'Part of a charge that is refunded when a purchase is cancelled.';
comment on column app_public.cancel_buyer_refund_input.charge_id is E'@notNull\n\nId of a charge of the purchase.';
comment on column app_public.cancel_buyer_refund_input.amount is
  'Amount in the currency of the charge. Default: everything that can be refunded.';
comment on type app_public.cancel_buyer_return_input is
  'Amount of a deposit that is returned by other means than to a card when a purchase is cancelled.';
comment on column app_public.cancel_buyer_return_input.deposit_id is E'@notNull\n\nId of a deposit of the purchase.';
comment on column app_public.cancel_buyer_return_input.amount is
  'Amount in the currency of the project. Default: everything that was paid by other means than card.';
comment on type app_public.cancellation_effect is
  'Effect of cancelling a purchase on one record, which may also stay unchanged.';
comment on column app_public.cancellation_effect.kind is
  E'@notNull\n\nType of effect, such as a refund or a change of status.';
comment on column app_public.cancellation_effect.record_type is
  E'@notNull\n\nKind of record, named as in events, such as unit, deposit or charge.';
comment on column app_public.cancellation_effect.record_id is
  E'@notNull\n\nIdentifies the changed record within its `recordType`.';
comment on column app_public.cancellation_effect.title is 'Display title of the record.';
comment on column app_public.cancellation_effect.status_before is E'@notNull\n\nPrevious status, such as RESERVED.';
comment on column app_public.cancellation_effect.status_after is
  E'@notNull\n\nStatus after the cancellation; that of a charge changes later, when the processor has refunded it.';
comment on column app_public.cancellation_effect.amount is
  'Amount that is returned, or that the seller keeps; null if no money is involved.';
comment on column app_public.cancellation_effect.reason is
  'Reason why the record stays unchanged; null if the input asked for that.';
comment on type app_public.cancel_buyer_payload is
  E'@foreignKey (buyer_id) references buyers (id)|@fieldName buyer|@forwardDescription The purchase after the '
  'mutation.\n\n'
  'Effects of cancelling a purchase, actual or planned.';
comment on column app_public.cancel_buyer_payload.buyer_id is E'@behavior -*\n\nThe purchase.';
comment on column app_public.cancel_buyer_payload.dry_run is
  E'@notNull\n\nTrue if nothing was changed, and the result shows what would happen.';
comment on column app_public.cancel_buyer_payload.refund_total is E'@notNull\n\nAmount refunded to cards.';
comment on column app_public.cancel_buyer_payload.return_total is E'@notNull\n\nAmount to be returned by other means.';
comment on column app_public.cancel_buyer_payload.kept_total is
  E'@notNull\n\nPaid amount that the seller keeps, as far as the viewer may see it.';
comment on column app_public.cancel_buyer_payload.currency is E'@notNull\n\nThe currency of the project.';
comment on column app_public.cancel_buyer_payload.effects is
  E'@notNull\n\nEffect on each related record, including those that stay unchanged.';

create function app_private.charges_of_purchase(purchase app_public.buyers) returns setof app_public.processor_charges
language sql stable as $$
  select c.* from app_public.processor_charges c where c.id in (
    select k.id from app_public.processor_charges k where k.buyer_id = purchase.id
    union select k.id from app_public.processor_charges k where k.reservation_id = purchase.reservation_id
    union select k.id from app_public.processor_charges k where k.lead_id = purchase.lead_id
      and app_hidden.purchase_of_lead(k.lead_id, k.reservation_id) = purchase.id)
$$;
comment on function app_private.charges_of_purchase(app_public.buyers) is
  'The charges of a purchase: its own, those of its reservation, and those of its lead that count for it.';

create function app_private.deposits_of_purchase(purchase app_public.buyers) returns setof app_public.deposits
language sql stable as $$
  select d.* from app_public.deposits d where d.deleted_at is null and (d.buyer_id = purchase.id
    or (d.lead_id = purchase.lead_id and app_hidden.purchase_of_lead(d.lead_id, d.reservation_id) = purchase.id))
$$;
comment on function app_private.deposits_of_purchase(app_public.buyers) is
  'The deposits of a purchase, and those of its lead that count for it.';

create function app_private.records_of_purchase(purchase app_public.buyers, charge_ids uuid[], deposit_ids uuid[])
returns table (place int, record_type text, record_id uuid, title text, status text, is_open boolean)
language sql stable as $$
  select 1, 'buyer', b.id, app_hidden.name_of_buyer(b.first_name, b.last_name, b.legal_name, b.company, b.email),
    b.status::text, true from app_public.buyers b where b.id = purchase.id
  union all select 2, 'unit', u.id, u.title, u.status, true from app_public.units u where u.id = purchase.unit_id
  union all select 3, 'lot', l.id, l.title, l.status, true from app_public.lots l
    where l.id in (purchase.lot_id, (select u.lot_id from app_public.units u where u.id = purchase.unit_id))
  union all select 4, 'lead', l.id, l.name, l.status, true from app_public.leads l where l.id = purchase.lead_id
  union all select 5, 'reservation', r.id, r.number, r.status, r.status = 'CONVERTED' from app_public.reservations r
    where r.id = purchase.reservation_id and r.deleted_at is null
  union all select 6, 'negotiation', n.id, u.title, n.status, n.status in ('OPEN', 'ACTIVE')
    from app_public.negotiations n join app_public.units u on u.id = n.unit_id
    where n.buyer_id = purchase.id and n.deleted_at is null
  union all select 7, 'deposit', d.id, d.title, d.status, false from app_public.deposits d
    where d.id = any (deposit_ids)
  union all select 8, 'charge', c.id, c.description, c.status, false from app_public.processor_charges c
    where c.id = any (charge_ids) and app_hidden.sees_finance(c.project_id, c.organization_id)
  union all select 9, 'agreement', a.id, a.title, a.status,
      a.status in ('DRAFT', 'SENT', 'VIEWED', 'PARTIALLY_SIGNED', 'SIGNED', 'EXECUTED')
    from app_public.agreements a where a.buyer_id = purchase.id and a.deleted_at is null
  union all select 10, 'personalization', p.id, p.title, p.status, p.status not in ('CANCELLED', 'SUPERSEDED')
    from app_public.personalizations p
    where (p.buyer_id = purchase.id or (p.lead_id = purchase.lead_id and p.unit_id = purchase.unit_id))
      and p.deleted_at is null
  union all select 11, 'task', t.id, t.title, t.status, t.status in ('OPEN', 'IN_PROGRESS', 'WAITING')
    from app_public.tasks t where t.buyer_id = purchase.id and t.deleted_at is null
  union all select 12, 'appointment', a.id, a.title, a.status, a.status in ('REQUESTED', 'SCHEDULED', 'CONFIRMED')
    from app_public.appointments a where a.buyer_id = purchase.id and a.deleted_at is null
  union all select 13, 'lease_permit', l.id, l.title, l.status, l.status in ('RESERVED', 'ISSUED')
    from app_public.lease_permits l where l.buyer_id = purchase.id and l.deleted_at is null
  union all select 14, 'workflow_execution', e.id, w.name, e.status, false
    from app_public.workflow_executions e join app_public.workflows w on w.id = e.workflow_id
    where e.buyer_id = purchase.id
$$;
comment on function app_private.records_of_purchase(app_public.buyers, uuid[], uuid[]) is
  'Records that cancelling a purchase with these charges and deposits may change, in the order of the result; '
  'is_open: whether to list the record even if it stays unchanged.';

create function app_private.can_step(subject text, from_state text, to_state text) returns boolean
language sql stable as $$
  select exists (select from app_hidden.transitions t where t.subject = $1 and t.from_state = $2 and t.to_state = $3
    and not t.by_service)
$$;
comment on function app_private.can_step(text, text, text) is 'Whether the states list a step by hand.';

create function app_private.refunds_of_cancellation(charge_ids uuid[], input jsonb, to_keep numeric) returns numeric
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  note constant text := 'The purchase was cancelled.';
  charge app_public.processor_charges;
  wanted jsonb;
  place int := 0;
  rest numeric;
  kept numeric;
  refund app_public.processor_refunds;
begin
  if coalesce((input ->> 'refund_charges')::boolean, false) then
    for charge in select c.* from app_public.processor_charges c
      where c.id = any (charge_ids) and c.status in ('SUCCEEDED', 'PARTIALLY_REFUNDED')
      order by c.reservation_id is null, c.id
    loop
      rest := charge.amount - charge.amount_refunded - charge.amount_refunding;
      kept := least(to_keep, rest);
      to_keep := to_keep - kept;
      if rest > kept then
        refund := app_private.open_refund(charge.id, jsonb_build_object('amount', rest - kept, 'note', note));
        perform app_private.add_job('processor_refund__owed', jsonb_build_object('id', refund.id));
      end if;
    end loop;
    return to_keep;
  end if;
  for wanted in select value from jsonb_array_elements(coalesce(nullif(input -> 'refunds', 'null'), '[]')) loop
    if coalesce((wanted ->> 'charge_id')::uuid = any (charge_ids), false) is false then
      perform app_hidden.fail('NOT_FOUND', 'There is no such charge of this purchase.',
        jsonb_build_object('field', format('refunds.%s.chargeId', place)));
    end if;
    refund := app_private.open_refund((wanted ->> 'charge_id')::uuid, wanted || jsonb_build_object('note', note),
      path => format('refunds.%s.', place));
    perform app_private.add_job('processor_refund__owed', jsonb_build_object('id', refund.id));
    place := place + 1;
  end loop;
  return to_keep;
end $$;
comment on function app_private.refunds_of_cancellation(uuid[], jsonb, numeric) is
  'Writes the refunds down that cancelling a purchase brings about, and has them made; of all charges as much as '
  'to_keep stays. Returns what of that was not found. Callers have checked finance.write.';

create function app_private.returns_of_cancellation(deposit_ids uuid[], input jsonb, to_keep numeric) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  all_of_it constant boolean := coalesce((input ->> 'return_deposits')::boolean, false);
  deposit record;
  wanted jsonb;
  place int := -1;
  returned numeric;
  kept numeric;
  seen uuid[] := '{}';
begin
  for wanted in select value from jsonb_array_elements(case when all_of_it
    then (select coalesce(jsonb_agg(jsonb_build_object('deposit_id', d.id) order by d.sequence, d.id), '[]')
      from app_public.deposits d where d.id = any (deposit_ids) and d.status in ('PARTIALLY_PAID', 'PAID'))
    else coalesce(nullif(input -> 'returns', 'null'), '[]') end)
  loop
    place := place + 1;
    select d.id, d.status, d.currency, d.amount_to_return, d.amount_paid - d.amount_refunded - d.amount_to_return
        - coalesce(sum(c.amount_refunding), 0) as most,
      d.amount_paid - d.amount_refunded - d.amount_to_return
        - coalesce(sum(c.deposit_amount - app_private.deposit_given_back(c)), 0) as otherwise_paid into deposit
      from app_public.deposits d
      left join app_public.processor_charges c on c.deposit_id = d.id and c.captured_at is not null
      where d.id = any (deposit_ids) and d.id = (wanted ->> 'deposit_id')::uuid
      group by d.id, d.status, d.currency, d.amount_to_return, d.amount_paid, d.amount_refunded;
    if deposit.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such deposit of this purchase.',
        jsonb_build_object('field', format('returns.%s.depositId', place)));
    elsif deposit.status not in ('PARTIALLY_PAID', 'PAID') then
      perform app_hidden.fail('CONFLICT', format('A deposit with the status %s cannot be refunded.', deposit.status),
        jsonb_build_object('field', format('returns.%s.depositId', place)));
    elsif deposit.id = any (seen) then
      perform app_hidden.fail('BAD_USER_INPUT', 'List each deposit only once.',
        jsonb_build_object('field', format('returns.%s.depositId', place)));
    end if;
    seen := seen || deposit.id;
    returned := coalesce(app_hidden.to_money((wanted ->> 'amount')::numeric, deposit.currency,
      format('returns.%s.amount', place)), greatest(0, least(deposit.most, deposit.otherwise_paid)));
    if all_of_it then
      kept := least(to_keep, returned);
      to_keep := to_keep - kept;
      returned := returned - kept;
      continue when returned = 0;
    elsif returned <= 0 then
      perform app_hidden.fail('BAD_USER_INPUT', case when wanted ->> 'amount' is null
          then
            'This deposit was paid by card: refund its charge, or specify the amount that is returned in another way.'
          else 'The amount must be greater than zero.' end,
        jsonb_build_object('field', format('returns.%s.amount', place)));
    elsif returned > deposit.most then
      perform app_hidden.fail('BAD_USER_INPUT', format('The amount exceeds the refundable amount, %s.', deposit.most),
        jsonb_build_object('field', format('returns.%s.amount', place)));
    end if;
    update app_public.deposits d set amount_to_return = d.amount_to_return + returned, return_requested_at = now()
      where d.id = deposit.id;
  end loop;
end $$;
comment on function app_private.returns_of_cancellation(uuid[], jsonb, numeric) is
  'Marks what of the deposits of a purchase is to be refunded manually; of all of them, to_keep is retained. '
  'Callers have checked finance.write.';

create function app_private.told_cancellation(purchase app_public.buyers, before jsonb, charge_ids uuid[],
  deposit_ids uuid[]) returns app_public.cancel_buyer_payload
language plpgsql stable as $$
declare
  sees_charges constant boolean := app_hidden.sees_finance(purchase.project_id, purchase.organization_id);
  result app_public.cancel_buyer_payload;
begin
  with former as (
    select r.* from jsonb_to_recordset(before) r (place int, record_type text, record_id uuid, title text, status text,
      is_open boolean, moved numeric)
  ), present as (
    select f.*, coalesce(r.status, (select l.status from app_public.lease_permits l where l.id = f.record_id), f.status)
      as status_after
    from former f left join app_private.records_of_purchase(purchase, charge_ids, deposit_ids) r using (record_id)
  ), money as (
    -- For deposits, only amounts paid otherwise than by card: the rest is listed with the charges.
    select c.id, c.amount_refunding as moved, app_public.processor_charges_amount_refundable(c) as rest,
      case when c.status = 'DISPUTED' then 'The charge is disputed; the bank decides the outcome.' end as reason
      from app_public.processor_charges c where c.id = any (charge_ids) and sees_charges
    union all
    select d.id, d.amount_to_return, case when d.status in ('PARTIALLY_PAID', 'PAID', 'RELEASED', 'FORFEITED')
        then d.amount_paid - d.amount_refunded - d.amount_to_return
          - coalesce((select sum(c.deposit_amount - app_private.deposit_given_back(c))
            from app_public.processor_charges c where c.deposit_id = d.id and c.captured_at is not null), 0) end,
        case when d.status = 'RELEASED' then 'It was released to the seller.' end
      from app_public.deposits d where d.id = any (deposit_ids)
  ), told as (
    select p.place, p.record_id, 1 as part, 'CHANGED' as kind, p.record_type, p.title, p.status, p.status_after,
      null::numeric as amount, null as reason from present p where p.status <> p.status_after
    union all
    select p.place, p.record_id, 2, case p.record_type when 'charge' then 'REFUND' else 'RETURN' end, p.record_type,
      p.title, p.status, p.status_after, m.moved - p.moved, null
      from present p join money m on m.id = p.record_id where m.moved > p.moved
    union all
    select p.place, p.record_id, 3, 'KEPT', p.record_type, p.title, p.status, p.status_after, m.rest, m.reason
      from present p join money m on m.id = p.record_id where m.rest > 0 or m.reason is not null
    union all
    select p.place, p.record_id, 3, 'KEPT', p.record_type, p.title, p.status, p.status_after, null, case
        when p.record_type = 'agreement' and not app_private.can_step('agreement', p.status, 'VOIDED')
          then 'It has been executed; another agreement is required to end it.'
        when p.record_type = 'personalization' and not app_private.can_step('personalization', p.status, 'CANCELLED')
          then 'It has been signed.'
        when p.record_type = 'lease_permit' then 'It has been issued; revoke it with updateLeasePermit.'
        when p.record_type = 'lead' then 'The lead has another purchase, or was not converted to this one.' end
      from present p where p.status = p.status_after and p.is_open
  )
  select array_agg(row(t.kind, t.record_type, t.record_id, t.title, t.status, t.status_after, t.amount, t.reason
      )::app_public.cancellation_effect order by t.place, t.record_id, t.part),
    coalesce(sum(t.amount) filter (where t.kind = 'REFUND'), 0),
    coalesce(sum(t.amount) filter (where t.kind = 'RETURN'), 0),
    coalesce(sum(t.amount) filter (where t.kind = 'KEPT'), 0)
    into result.effects, result.refund_total, result.return_total, result.kept_total from told t;
  result.buyer_id := purchase.id;
  result.dry_run := false;
  result.currency := purchase.currency;
  result.refund_total := app_hidden.round_money(result.refund_total, purchase.currency);
  result.return_total := app_hidden.round_money(result.return_total, purchase.currency);
  result.kept_total := app_hidden.round_money(result.kept_total, purchase.currency);
  return result;
end $$;
comment on function app_private.told_cancellation(app_public.buyers, jsonb, uuid[], uuid[]) is
  'Changes of the records of a purchase since `before`, as the viewer may read them. Charges are listed for '
  'viewers who may read the finances of the project.';

create function app_private.cancel_buyer(buyer_id uuid, input jsonb) returns app_public.cancel_buyer_payload
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  purchase app_public.buyers;
  reason text := app_hidden.checked(nullif(btrim(input ->> 'cancellation_reason'), ''), 'app_public.long_text',
    'cancellationReason');
  why text;
  moves_money constant boolean := coalesce((input ->> 'refund_charges')::boolean, false)
    or coalesce((input ->> 'return_deposits')::boolean, false)
    or coalesce((input ->> 'forfeit_deposits')::boolean, false)
    or jsonb_array_length(coalesce(nullif(input -> 'refunds', 'null'), '[]')) > 0
    or jsonb_array_length(coalesce(nullif(input -> 'returns', 'null'), '[]')) > 0;
  permission text;
  clash record;
  charge_ids uuid[];
  deposit_ids uuid[];
  before jsonb;
  to_keep numeric;
  result app_public.cancel_buyer_payload;
begin
  select b.* into purchase from app_public.buyers b where b.id = buyer_id and b.deleted_at is null;
  foreach permission in array array['buyer.write', 'sale.write'] loop
    if not app_hidden.deal_can(purchase.organization_id, purchase.project_id, purchase.assignee_id, permission) then
      perform app_hidden.fail('FORBIDDEN', format('This requires the permission %s.', permission),
        jsonb_build_object('permission', permission));
    end if;
  end loop;
  if moves_money and not app_hidden.project_can(purchase.project_id, purchase.organization_id, 'finance.write') then
    perform app_hidden.fail('FORBIDDEN', 'Refunding, returning and forfeiting require the permission finance.write.',
      '{"permission": "finance.write"}');
  elsif exists (select from app_public.projects p where p.id = purchase.project_id and p.archived_at is not null) then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  end if;
  for clash in select m.message, m.named from (values
      ('refund_charges', 'refunds', 'Either refund all charges or list some, not both.'),
      ('return_deposits', 'returns', 'Either return all deposits or list some, not both.')) m (whole, named, message)
    where (input ->> m.whole)::boolean and jsonb_array_length(coalesce(nullif(input -> m.named, 'null'), '[]')) > 0
  loop
    perform app_hidden.fail('BAD_USER_INPUT', clash.message, jsonb_build_object('field', clash.named));
  end loop;
  if greatest(jsonb_array_length(coalesce(nullif(input -> 'refunds', 'null'), '[]')),
    jsonb_array_length(coalesce(nullif(input -> 'returns', 'null'), '[]'))) > 100 then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'At most 100 charges and 100 deposits can be listed.', '{"limit": 100}');
  end if;

  -- In the order of locks; charges before their deposits, as payments have it.
  perform app_private.lock_purchase(buyer_id);
  select b.* into purchase from app_public.buyers b where b.id = buyer_id;
  perform app_private.require_step('buyer', purchase.status, 'CANCELLED');
  perform from app_public.processor_charges c
    where c.id in (select k.id from app_private.charges_of_purchase(purchase) k) order by c.id for no key update;
  perform from app_public.deposits d
    where d.id in (select k.id from app_private.deposits_of_purchase(purchase) k) order by d.id for no key update;
  -- Determined in advance, because payments of the lead count for another purchase afterwards.
  charge_ids := array(select c.id from app_private.charges_of_purchase(purchase) c);
  deposit_ids := array(select d.id from app_private.deposits_of_purchase(purchase) d);
  before := (select jsonb_agg(to_jsonb(r) || jsonb_build_object('moved', coalesce(
      (select c.amount_refunding from app_public.processor_charges c where c.id = r.record_id),
      (select d.amount_to_return from app_public.deposits d where d.id = r.record_id))))
    from app_private.records_of_purchase(purchase, charge_ids, deposit_ids) r);
  begin
    perform app_hidden.update_record(null::app_public.buyers, jsonb_build_object('id', buyer_id, 'status', 'CANCELLED',
      'fallout_reason_id', input -> 'fallout_reason_id', 'cancellation_reason', reason)
      || jsonb_strip_nulls(jsonb_build_object('expected_version', input -> 'expected_version')));
    why := coalesce(reason, (select r.name from app_public.fallout_reasons r join app_public.buyers b
      on b.fallout_reason_id = r.id where b.id = buyer_id));
    to_keep := case when coalesce((input ->> 'waive_cancellation_fee')::boolean, false) then 0
      else coalesce((select r.cancellation_fee from app_public.reservations r where r.id = purchase.reservation_id), 0)
      end;
    to_keep := app_private.refunds_of_cancellation(charge_ids, input, to_keep);
    perform app_private.returns_of_cancellation(deposit_ids, input, to_keep);
    if coalesce((input ->> 'forfeit_deposits')::boolean, false) then
      update app_public.deposits d set status = 'FORFEITED'
        where d.id = any (deposit_ids) and d.status in ('PARTIALLY_PAID', 'PAID') and d.amount_to_return = 0
          and not exists (select from app_public.processor_charges c where c.deposit_id = d.id
            and c.amount_refunding > 0);
    end if;
    if coalesce((input ->> 'void_agreements')::boolean, true) then
      update app_public.agreements a set status = 'VOIDED', void_reason = coalesce(a.void_reason, why)
        where a.buyer_id = purchase.id and a.deleted_at is null
          and app_private.can_step('agreement', a.status, 'VOIDED');
    end if;
    if coalesce((input ->> 'cancel_personalizations')::boolean, true) then
      update app_public.personalizations p set status = 'CANCELLED'
        where (p.buyer_id = purchase.id or (p.lead_id = purchase.lead_id and p.unit_id = purchase.unit_id))
          and p.deleted_at is null and app_private.can_step('personalization', p.status, 'CANCELLED');
    end if;
    if coalesce((input ->> 'cancel_tasks')::boolean, true) then
      update app_public.tasks t set status = 'CANCELLED' where t.buyer_id = purchase.id and t.deleted_at is null
        and app_private.can_step('task', t.status, 'CANCELLED');
    end if;
    if coalesce((input ->> 'cancel_appointments')::boolean, true) then
      update app_public.appointments a set status = 'CANCELLED',
          cancellation_reason = coalesce(a.cancellation_reason, 'The purchase was cancelled.')
        where a.buyer_id = purchase.id and a.deleted_at is null
          and app_private.can_step('appointment', a.status, 'CANCELLED');
    end if;
    -- An unissued permit is released for another home; an issued one must be revoked.
    update app_public.lease_permits l set status = 'AVAILABLE', buyer_id = null
      where l.buyer_id = purchase.id and l.status = 'RESERVED' and l.deleted_at is null;
    if coalesce((input ->> 'refund_reservation')::boolean, true) then
      update app_public.reservations r set status = 'REFUNDED' where r.id = purchase.reservation_id
        and r.status = 'CONVERTED' and r.deleted_at is null;
    end if;

    result := app_private.told_cancellation(purchase, before, charge_ids, deposit_ids);
    if coalesce((input ->> 'dry_run')::boolean, false) then
      raise exception 'dry run' using errcode = 'PLATD';
    end if;
  exception when sqlstate 'PLATD' then
    result.dry_run := true; -- undone, what would have been is in the result
  end;
  return result;
end $$;
comment on function app_private.cancel_buyer(uuid, jsonb) is
  'Cancels a purchase that the viewer sees, as they may; see cancelBuyer.';
grant execute on function app_private.cancel_buyer to plat_user;

create function app_public.cancel_buyer(id uuid, fallout_reason_id uuid, cancellation_reason text default null,
  dry_run boolean default false, refund_charges boolean default false,
  refunds app_public.cancel_buyer_refund_input[] default null, return_deposits boolean default false,
  returns app_public.cancel_buyer_return_input[] default null, forfeit_deposits boolean default false,
  waive_cancellation_fee boolean default false, void_agreements boolean default true,
  cancel_personalizations boolean default true, cancel_tasks boolean default true,
  cancel_appointments boolean default true, refund_reservation boolean default true,
  expected_version int default null) returns app_public.cancel_buyer_payload
language plpgsql volatile as $$
declare
  buyer_id uuid;
begin
  perform app_hidden.require_viewer();
  select b.id into buyer_id from app_hidden.masked_buyers b where b.id = cancel_buyer.id;
  if buyer_id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such buyer.', '{"field": "id"}');
  end if;
  return app_private.cancel_buyer(buyer_id, jsonb_build_object('fallout_reason_id', fallout_reason_id,
    'cancellation_reason', cancellation_reason, 'dry_run', dry_run, 'refund_charges', refund_charges,
    'refunds', to_jsonb(refunds), 'return_deposits', return_deposits, 'returns', to_jsonb(returns),
    'forfeit_deposits', forfeit_deposits, 'waive_cancellation_fee', waive_cancellation_fee,
    'void_agreements', void_agreements, 'cancel_personalizations', cancel_personalizations,
    'cancel_tasks', cancel_tasks, 'cancel_appointments', cancel_appointments,
    'refund_reservation', refund_reservation, 'expected_version', expected_version));
end $$;
grant execute on function app_public.cancel_buyer to plat_user, plat_anonymous;
comment on function app_public.cancel_buyer is
  E'@arg id The purchase.\n@arg falloutReasonId Id of a fallout reason of the project.\n@arg cancellationReason '
  'Explanation of the cancellation, as free text.\n@arg dryRun If true, returns what would happen, and changes '
  'nothing.\n@arg refundCharges Refunds everything that can be refunded to cards, less the cancellation fee. '
  'Default: false.\n@arg refunds Charges to refund, with amounts; at most 100. Cannot be combined with '
  '`refundCharges`.\n@arg returnDeposits Marks all deposits paid by other means than card to be returned, less the '
  'part of the cancellation fee that was not deducted from charges. Default: false.\n@arg returns Deposits to '
  'return by other means than card, with amounts; at most 100. Cannot be combined with `returnDeposits`.\n@arg '
  'forfeitDeposits Marks paid deposits as FORFEITED to the seller, unless part of them is returned. Default: '
  'false.\n@arg waiveCancellationFee Charges no cancellation fee. Default: false.\n@arg voidAgreements Voids '
  'agreements of the purchase that are not executed. Default: true.\n@arg cancelPersonalizations Cancels '
  'personalizations that are not signed. Default: true.\n@arg cancelTasks Cancels open tasks of the purchase. '
  'Default: true.\n@arg cancelAppointments Cancels the appointments of the purchase. Default: true.\n@arg '
  'refundReservation Reverses the reservation of the purchase, which becomes REFUNDED. Default: true.\n@arg '
  'expectedVersion The `version` of the purchase that the client read. If it has changed since, the mutation is '
  'refused.\n\n'
  'Cancels a purchase and its related records in one transaction; `dryRun` only reports what would happen. The '
  'home becomes AVAILABLE, the lead is open again if it has no other purchase, negotiations and running workflows '
  'end, and unpaid deposits are cancelled. Requires buyer.write and sale.write, and finance.write if money moves. '
  'Refused with INVALID_TRANSITION if the purchase is already cancelled or closed. Card refunds are completed by '
  'the payment processor shortly afterwards.';
