-- Deposits: payments of a lead or buyer before closing, an amount or a percentage of the price.
--
--   SCHEDULED → INVOICED → PROCESSING → PARTIALLY_PAID → PAID; (partially) paid → RELEASED, REFUNDED, FORFEITED
--   unpaid → WAIVED, CANCELLED
--
-- Recording a payment (amountPaid) makes the deposit PARTIALLY_PAID or PAID, from any status. amountPaid only
-- increases: refunds are a separate amount (amountRefunded), which makes a PAID deposit PARTIALLY_PAID again, and
-- REFUNDED when everything is refunded. Refunds of its charges update it automatically. Sellers create and invoice
-- deposits; payments, releases, refunds, forfeitures and waivers require the permission finance.write. Whether a
-- deposit is overdue is computed on read from the date in the project.
--
-- A reservation has its deposits from the beginning: its fee, if any, and the ON_RESERVATION milestones of the
-- project's schedule. They belong to its lead; for a reservation without a lead, they belong to it alone, and to its
-- purchase once there is one. When it ends without a purchase, unpaid deposits are CANCELLED; paid ones remain until
-- they are refunded, and count for the lead's next purchase.
--
-- A deposit of a lead or buyer belongs to their accepted offer, also if that is accepted later, unless it names another
-- one of theirs.

-- Masked columns are declared first, because the generated lists depend on them.
comment on column app_public.deposits.notes is E'@personal\n@masked\n\nInternal notes for the team.';
select app_private.make_deal_child('deposits', 'deposit', 'deposits', 'The deposits, in order',
  list_order => 'sequence asc, id asc',
  lead_read => 'sale.read', lead_write => 'sale.write', buyer_read => 'sale.read', buyer_write => 'sale.write',
  own => 'true', of_lead => 'b.id = app_hidden.purchase_of_lead(c.lead_id, c.reservation_id)');
create or replace trigger _010_deal before insert on app_public.deposits for each row
  execute function app_private.tg__deal_child('reservation');

-- The user who reserved sees the deposits; sellers with own leads only see those of their own reservations without a
-- lead.
create policy own_reservations on app_public.deposits for select to plat_user
  using (deleted_at is null and (reservation_id = any (array(select app_hidden.viewer_purchase_reservations()))
    or (lead_id is null and buyer_id is null
      and project_id = any ((select app_hidden.viewer_own_projects('sale.read'))::uuid[])
      and (select r.assignee_id from app_public.reservations r
        where r.id = reservation_id) = (select app_public.current_user_id()))));
create policy own_reservations_insert on app_public.deposits for insert to plat_user
  with check (lead_id is null and buyer_id is null
    and project_id = any ((select app_hidden.viewer_own_projects('sale.write'))::uuid[])
    and (select r.assignee_id from app_public.reservations r
      where r.id = reservation_id) = (select app_public.current_user_id()));
create policy own_reservations_update on app_public.deposits for update to plat_user
  using (lead_id is null and buyer_id is null
    and project_id = any ((select app_hidden.viewer_own_projects('sale.write'))::uuid[])
    and (select r.assignee_id from app_public.reservations r
      where r.id = reservation_id) = (select app_public.current_user_id()));
create policy own_reservations_delete on app_public.deposits for delete to plat_user
  using (lead_id is null and buyer_id is null
    and project_id = any ((select app_hidden.viewer_own_projects('sale.write'))::uuid[])
    and (select r.assignee_id from app_public.reservations r
      where r.id = reservation_id) = (select app_public.current_user_id()));
select app_private.make_state_machine('deposits', 'deposit',
  steps => array[
    ['SCHEDULED', 'INVOICED', 'hand', null], ['INVOICED', 'PROCESSING', 'hand', null],
    ['PROCESSING', 'PARTIALLY_PAID', 'hand', 'finance.write'], ['PROCESSING', 'PAID', 'hand', 'finance.write'],
    ['PARTIALLY_PAID', 'PAID', 'hand', 'finance.write'],
    ['SCHEDULED', 'PARTIALLY_PAID', 'service', null], ['SCHEDULED', 'PAID', 'service', null],
    ['INVOICED', 'PARTIALLY_PAID', 'service', null], ['INVOICED', 'PAID', 'service', null],
    ['PARTIALLY_PAID', 'RELEASED', 'hand', 'finance.write'], ['PARTIALLY_PAID', 'REFUNDED', 'hand', 'finance.write'],
    ['PARTIALLY_PAID', 'FORFEITED', 'hand', 'finance.write'],
    ['PAID', 'PARTIALLY_PAID', 'service', null], ['REFUNDED', 'PARTIALLY_PAID', 'service', null],
    ['REFUNDED', 'PAID', 'service', null],
    ['PAID', 'RELEASED', 'hand', 'finance.write'], ['PAID', 'REFUNDED', 'hand', 'finance.write'],
    ['PAID', 'FORFEITED', 'hand', 'finance.write'],
    ['SCHEDULED', 'WAIVED', 'hand', 'finance.write'], ['INVOICED', 'WAIVED', 'hand', 'finance.write'],
    ['PROCESSING', 'WAIVED', 'hand', 'finance.write'],
    ['SCHEDULED', 'CANCELLED', 'hand', null], ['INVOICED', 'CANCELLED', 'hand', null],
    ['PROCESSING', 'CANCELLED', 'hand', null]],
  initial => array['SCHEDULED']);

grant insert (lead_id, buyer_id, reservation_id, milestone_id, title, sequence, amount, percent, percent_base, due_at,
  held_by, method, reference, invoice_number, notes), update (status, title, sequence, amount_paid, due_at, held_by,
  method, reference, sent_to_holder_at, invoice_number, notes), delete on app_public.deposits to plat_user;
grant update (amount_refunded) on app_public.deposits to plat_user;
grant insert (offer_id) on app_public.deposits to plat_user;

comment on table app_public.deposits is
  E'@defaultOrder sequence asc, id asc\n'
  '@foreignKey (offer_id) references binding_offers (id)|@forwardBehavior -*|@foreignFieldName '
  'deposits|@backwardDescription Deposits of the lead or buyer who made the offer, in order.\n\n'
  'A payment of a lead or buyer before closing.';
comment on column app_public.deposits.reservation_id is
  'Id of the reservation that the deposit belongs to. If it has no lead, omit `leadId` and `buyerId`.';
comment on column app_public.deposits.is_reservation_fee is
  'Whether it is the fee of a reservation, created together with it.';
comment on constraint deposits_one_person on app_public.deposits is
  'Specify either the lead or the buyer, or a reservation that has neither.';
comment on index app_public.deposits_reservation_fee is 'The fee of this reservation already has a deposit.';
comment on column app_public.deposits.milestone_id is
  'Milestone of the project''s deposit schedule. Supplies the amount or percentage and the due date if they are '
  'omitted.';
comment on column app_public.deposits.title is E'@impersonal\n\nDisplay title.';
comment on column app_public.deposits.status is 'Current status.';
comment on column app_public.deposits.status_changed_at is 'When the status last changed.';
comment on column app_public.deposits.sequence is
  E'@insertOptional\n\nPosition among the deposits of the deal. Appended at the end if omitted.';
comment on column app_public.deposits.amount is 'Fixed amount. Set either this or `percent`.';
comment on column app_public.deposits.percent is 'Percentage of `percentBase`. Set either this or `amount`.';
comment on column app_public.deposits.percent_base is
  'Amount that the percentage is calculated from. Default: PURCHASE_PRICE. Null with a fixed amount.';
comment on column app_public.deposits.amount_fixed is
  E'@behavior -*\n\nAmount due, fixed when payment was requested or made.';
comment on column app_public.deposits.amount_paid is 'Total amount received.';
comment on column app_public.deposits.amount_refunded is 'Amount refunded so far, including refunds of its charges.';
comment on column app_public.deposits.amount_to_return is
  'Amount still to be returned by wire or cheque; reduced when `amountRefunded` is recorded.';
comment on column app_public.deposits.return_requested_at is
  E'@filter\n\nWhen a cancellation of the purchase last marked part of the deposit to be returned; null if never.';
comment on column app_public.deposits.currency is 'The currency of the project.';
comment on column app_public.deposits.due_at is
  'Due date: to be paid by the end of this day, in the time zone of the project.';
comment on column app_public.deposits.due_rule is E'@behavior -*\n\nThe rule of the schedule that its day follows.';
comment on column app_public.deposits.due_offset_days is
  E'@behavior -*\n\nNumber of days after the event that `dueRule` names.';
comment on column app_public.deposits.paid_at is 'When the deposit was paid in full; null until then.';
comment on column app_public.deposits.method is 'Payment method, such as WIRE or CARD.';
comment on column app_public.deposits.reference is
  E'@personal contract\n\nReference of the payment, such as a cheque or wire number.';
comment on column app_public.deposits.held_by is 'Party that holds the deposit, such as an escrow agent.';
comment on column app_public.deposits.sent_to_holder_at is 'When the payment was forwarded to the holder.';
comment on column app_public.deposits.released_at is 'When the deposit was released to the seller; null until then.';
comment on column app_public.deposits.refunded_at is 'When the deposit was refunded; null until then.';
comment on column app_public.deposits.forfeited_at is 'When the deposit was forfeited to the seller; null otherwise.';
comment on column app_public.deposits.invoice_number is
  E'@personal contract\n\nReference of the invoice in the accounting of the seller.';
comment on column app_public.deposits.offer_id is
  'Id of the offer that the deposit belongs to. Default: the accepted offer.';
comment on constraint deposits_amount_some on app_public.deposits is 'The amount must be greater than zero.';
comment on constraint deposits_percent_range on app_public.deposits is
  'A percentage must be greater than 0 and at most 100, with at most 4 decimal places.';
comment on constraint deposits_one_value on app_public.deposits is 'Specify either an amount or a percentage.';
comment on constraint deposits_return_within on app_public.deposits is
  'The amount to return cannot exceed the amount paid minus refunds.';
comment on constraint deposits_refunded_within on app_public.deposits is
  'Refunds cannot exceed the amount paid.';
comment on constraint deposits_reservation_id_fkey on app_public.deposits is
  E'@fieldName reservation\n@foreignFieldName deposits\n@backwardDescription Deposits, in order of `sequence`.\n\n'
  'The reservation that it belongs to.';
comment on constraint deposits_milestone_id_fkey on app_public.deposits is
  E'@fieldName milestone\n@backwardBehavior -*\n\nThe milestone of the deposit schedule.';
comment on constraint deposits_project_id_fkey on app_public.deposits is
  E'@parent\n@fieldName project\n@foreignFieldName deposits\n@backwardPermission finance.read\n@backwardDescription '
  'Deposits of all leads and buyers; null without the permission finance.read.\n\n'
  'The project that it belongs to.';
comment on constraint deposits_offer_id_fkey on app_public.deposits is
  E'@fieldName offer\n@backwardBehavior -*\n\nThe offer that it belongs to.';
comment on constraint deposits_percent_base on app_public.deposits is
  'A percentage requires its base, and only a percentage can have one.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('deposit', 'return_requested_at', null, 'return_requested');
insert into app_private.event_names (subject, column_name, value, name)
  select 'deposit', 'status', s, lower(s)
    from unnest(array['INVOICED', 'PAID', 'RELEASED', 'REFUNDED', 'FORFEITED', 'WAIVED', 'CANCELLED']) s;

create function app_public.deposits_amount_due(d app_public.deposits) returns app_public.money
language sql stable as $$
  select coalesce(d.amount_fixed, d.amount,
    app_hidden.round_money(coalesce(app_private.price_of_deposit(d.id), 0) * d.percent / 100, d.currency))
$$;

create function app_private.deposit_due(d app_public.deposits) returns numeric
language sql stable as $$
  select coalesce(d.amount_fixed, d.amount,
    app_hidden.round_money(coalesce(app_private.deposit_price(d), 0) * d.percent / 100, d.currency))
$$;
comment on function app_private.deposit_due(app_public.deposits) is
  'Amount due of a deposit, regardless of the viewer.';

create function app_private.assignee_of_deposit(d app_public.deposits) returns uuid
language sql stable as $$
  select case when d.lead_id is not null then (select l.assignee_id from app_public.leads l where l.id = d.lead_id)
    when d.buyer_id is not null then (select b.assignee_id from app_public.buyers b where b.id = d.buyer_id)
    else (select r.assignee_id from app_public.reservations r where r.id = d.reservation_id) end
$$;
comment on function app_private.assignee_of_deposit(app_public.deposits) is
  'The member who works on the deal of a deposit.';

create function app_private.price_of_deposit(id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.deposit_price(d) from app_public.deposits d where d.id = $1
    and (app_hidden.deal_can(d.organization_id, d.project_id, app_private.assignee_of_deposit(d), 'sale.read')
      or d.reservation_id = any (array(select app_hidden.viewer_purchase_reservations()))
      or d.buyer_id = any (array(select app_hidden.viewer_purchases()))
      or d.lead_id = any (array(select app_hidden.viewer_purchase_leads())))
$$;
comment on function app_private.price_of_deposit(uuid) is
  'What the percentage of a deposit is of, where the viewer sees the deposit; null otherwise.';
grant execute on function app_private.price_of_deposit to plat_user, plat_anonymous;
comment on function app_public.deposits_amount_due(app_public.deposits) is
  E'@notNull\n\n'
  'Amount to pay: `amount`, or `percent` of the current price, rounded half up. Fixed once payment was requested '
  'or made.';

create function app_public.deposits_is_overdue(d app_public.deposits) returns boolean
language sql stable as $$
  select d.due_at is not null and d.status in ('SCHEDULED', 'INVOICED', 'PROCESSING', 'PARTIALLY_PAID')
    and d.due_at < app_hidden.project_today(d.project_id)
$$;
comment on function app_public.deposits_is_overdue is
  E'@notNull\n\n'
  'Whether the due date has passed, in the time zone of the project, and the deposit is not paid in full.';

create function app_private.tg_deposits__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  milestone app_public.deposit_schedule_milestones;
  due numeric;
  result text;
begin
  if tg_op = 'INSERT' then
    if exists (select from app_public.buyers b where b.id = new.buyer_id and b.status = 'CANCELLED') then
      perform app_hidden.fail('CONFLICT', 'This purchase was cancelled.', '{"field": "buyerId"}');
    end if;
    new.currency := (select p.currency from app_public.projects p where p.id = new.project_id);
    if new.milestone_id is not null then
      select * into milestone from app_public.deposit_schedule_milestones m where m.id = new.milestone_id
        and m.project_id = new.project_id and m.deleted_at is null;
      if milestone.id is null then
        perform app_hidden.fail('NOT_FOUND', 'There is no such milestone in the deposit schedule of this project.',
          '{"field": "milestoneId"}');
      end if;
      if num_nonnulls(new.amount, new.percent) = 0 then
        new.amount := milestone.amount;
        new.percent := milestone.percent;
        new.percent_base := coalesce(new.percent_base, milestone.percent_base);
      end if;
      if new.due_at is null then
        new.due_rule := case when milestone.due_rule <> 'FIXED_DATE' then milestone.due_rule end;
        new.due_offset_days := milestone.due_offset_days;
        new.due_at := case when milestone.due_rule = 'FIXED_DATE'
          then milestone.due_date + coalesce(milestone.due_offset_days, 0)
          else app_private.deposit_due_date(new) end;
      end if;
    end if;
    if num_nonnulls(new.amount, new.percent) <> 1 then
      perform app_hidden.fail('BAD_USER_INPUT', 'Specify either an amount or a percentage.',
        jsonb_build_object('field', case when new.amount is null then 'amount' else 'percent' end));
    end if;
    new.amount := app_hidden.to_money(new.amount, new.currency, 'amount');
    new.amount_paid := app_hidden.to_money(new.amount_paid, new.currency, 'amountPaid');
    new.amount_refunded := app_hidden.to_money(new.amount_refunded, new.currency, 'amountRefunded');
    new.amount_to_return := app_hidden.to_money(new.amount_to_return, new.currency, 'amountToReturn');
    new.percent_base := case when new.percent is not null then coalesce(new.percent_base, 'PURCHASE_PRICE') end;
    if new.reservation_id is not null and not exists (
      select from app_public.reservations r left join app_public.buyers b on b.id = new.buyer_id
      where r.id = new.reservation_id and r.deleted_at is null
        and (num_nonnulls(new.lead_id, new.buyer_id) = 0 or r.lead_id = new.lead_id or r.purchase_id = b.id
          or r.id = b.reservation_id or r.lead_id = b.lead_id)) then
      perform app_hidden.fail('BAD_USER_INPUT', 'The reservation does not belong to this lead or buyer.',
        '{"field": "reservationId"}');
    end if;
    if new.percent is not null and app_private.deposit_price(new) is null then
      perform app_hidden.fail('BAD_USER_INPUT',
        'The percentage requires a price: specify an amount, or reserve a home first.',
        '{"field": "percent"}');
    end if;
    -- One after the other on each deal, so that each has its place.
    perform from app_public.buyers b where b.id = new.buyer_id for no key update;
    perform from app_public.leads l where l.id = new.lead_id for no key update;
    new.sequence := coalesce(new.sequence, milestone.sequence,
      (select coalesce(max(d.sequence), 0) + 1 from app_public.deposits d
      where (d.lead_id = new.lead_id or d.buyer_id = new.buyer_id
        or (num_nonnulls(new.lead_id, new.buyer_id) = 0 and d.reservation_id = new.reservation_id))
        and d.deleted_at is null));
    return new;
  end if;

  if new.due_at is distinct from old.due_at and not coalesce(app_hidden.is_service(), false) then
    new.due_rule := null; -- set by hand: it follows the purchase no more
  end if;
  if new.status <> old.status and not coalesce(app_hidden.is_service(), false) then
    perform app_private.require_step('deposit', old.status, new.status);
  end if;
  due := app_private.deposit_due(old);
  if row(new.amount_paid, new.amount_refunded) <> row(old.amount_paid, old.amount_refunded)
    and not coalesce(app_hidden.is_service(), false) and app_public.current_user_id() is not null
    and not app_hidden.project_can(new.project_id, new.organization_id, 'finance.write') then
    perform app_hidden.fail('FORBIDDEN', 'This requires the permission finance.write.',
      jsonb_build_object('permission', 'finance.write', 'field',
        case when new.amount_paid <> old.amount_paid then 'amountPaid' else 'amountRefunded' end));
  end if;
  if new.amount_paid <> old.amount_paid then
    new.amount_paid := app_hidden.to_money(new.amount_paid, new.currency, 'amountPaid');
    if old.status not in ('SCHEDULED', 'INVOICED', 'PROCESSING', 'PARTIALLY_PAID') then
      perform app_hidden.fail('CONFLICT', format('A deposit with the status %s does not accept payments.', old.status),
        '{"field": "amountPaid"}');
    elsif new.amount_paid < old.amount_paid then
      perform app_hidden.fail('BAD_USER_INPUT',
        'amountPaid cannot decrease; record refunds with amountRefunded.', '{"field": "amountPaid"}');
    elsif new.amount_paid - old.amount_refunded > due then
      perform app_hidden.fail('BAD_USER_INPUT', format('The amount exceeds the amount due, %s.',
        due + old.amount_refunded),
        '{"field": "amountPaid"}');
    end if;
  end if;
  if new.amount_refunded <> old.amount_refunded then
    new.amount_refunded := app_hidden.to_money(new.amount_refunded, new.currency, 'amountRefunded');
    if not coalesce(app_hidden.is_service(), false) then
      if old.status not in ('PARTIALLY_PAID', 'PAID') then
        perform app_hidden.fail('CONFLICT', format('A deposit with the status %s cannot be refunded.', old.status),
          '{"field": "amountRefunded"}');
      elsif new.amount_refunded < old.amount_refunded then
        perform app_hidden.fail('BAD_USER_INPUT',
          'amountRefunded cannot decrease; record new payments with amountPaid.', '{"field": "amountRefunded"}');
      end if;
    end if;
    if new.amount_refunded > new.amount_paid then
      perform app_hidden.fail('BAD_USER_INPUT', format('The amount exceeds the amount paid, %s.', new.amount_paid),
        '{"field": "amountRefunded"}');
    end if;
  end if;
  -- A manual refund requires an amount to return, and cannot exceed the rest.
  new.amount_to_return := app_hidden.round_money(case when new.status in ('RELEASED', 'FORFEITED', 'REFUNDED') then 0
    else greatest(0, least(new.amount_to_return - case when coalesce(app_hidden.is_service(), false) then 0
      else new.amount_refunded - old.amount_refunded end, new.amount_paid - new.amount_refunded)) end, new.currency);
  if row(new.amount_paid, new.amount_refunded) <> row(old.amount_paid, old.amount_refunded) then
    -- Amounts that were released to the seller or forfeited remain; a refund reduces them.
    result := case when new.amount_refunded = new.amount_paid then 'REFUNDED'
      when old.status in ('RELEASED', 'FORFEITED') then old.status
      when new.amount_paid - new.amount_refunded >= due then 'PAID' else 'PARTIALLY_PAID' end;
    if new.status not in (old.status, result) then
      perform app_hidden.fail('BAD_USER_INPUT', format('With this amount, the status of the deposit is %s.', result),
        '{"field": "status"}');
    end if;
    if new.status = old.status and result <> old.status and not coalesce(app_hidden.is_service(), false) then
      -- A step of the service, from here to _310_paid.
      perform set_config('plat.service', 'on', true), set_config('plat.deposit_paid', 'on', true);
    end if;
    new.status := result;
  elsif new.status = 'PAID' and old.status in ('PROCESSING', 'PARTIALLY_PAID') then
    new.amount_paid := due + old.amount_refunded;
  elsif new.status = 'PARTIALLY_PAID' and old.status = 'PROCESSING' then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify the amount that was paid.', '{"field": "amountPaid"}');
  elsif new.status = 'REFUNDED' and old.status <> 'REFUNDED' then
    new.amount_refunded := new.amount_paid;
  end if;
  if new.status <> old.status then
    -- Once payment was requested or made, the amount no longer follows the price.
    if new.percent is not null and old.status = 'SCHEDULED' and new.status not in ('WAIVED', 'CANCELLED') then
      new.amount_fixed := due;
    end if;
    new.paid_at := case when new.status = 'PAID' then now() else old.paid_at end;
    new.released_at := case when new.status = 'RELEASED' then now() end;
    new.refunded_at := case when new.status = 'REFUNDED' then now() end;
    new.forfeited_at := case when new.status = 'FORFEITED' then now() end;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.deposits for each row
  execute function app_private.tg_deposits__prepare();

create function app_private.tg_deposits__paid() returns trigger
language plpgsql volatile as $$
begin
  if app_hidden.setting('deposit_paid') = 'on' then
    perform set_config('plat.service', '', true), set_config('plat.deposit_paid', '', true);
  end if;
  return new;
end $$;
create trigger _310_paid before update of amount_paid, amount_refunded on app_public.deposits for each row
  execute function app_private.tg_deposits__paid();

create function app_private.tg_deposits__keep() returns trigger
language plpgsql volatile as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if old.status not in ('SCHEDULED', 'WAIVED', 'CANCELLED') then
    perform app_hidden.fail('CONFLICT', format('A deposit with the status %s cannot be deleted.', old.status));
  end if;
  return old;
end $$;
create trigger _200_keep before delete on app_public.deposits for each row
  execute function app_private.tg_deposits__keep();

create function app_public.deposits_notes(d app_public.deposits) returns app_public.long_text
language sql stable as $$ select case when d.notes is not null
  and app_hidden.project_can(d.project_id, d.organization_id, 'sale.read') then d.notes end $$;

create function app_public.deposits_allowed_transitions(d app_public.deposits) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('deposit', jsonb_build_object('status', d.status)) $$;
grant execute on function app_public.deposits_amount_due, app_hidden.project_today, app_public.deposits_is_overdue,
  app_public.deposits_notes, app_public.deposits_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.deposits_notes is 'Internal notes for the team; null for the buyer.';
comment on function app_public.deposits_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';

create function app_private.tg_deposits__offer() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.offer_id is null then
    select o.id into new.offer_id from app_public.offers o
      where o.status = 'ACCEPTED' and (o.reservation_id = new.reservation_id or new.reservation_id is null)
        and app_private.is_deposit_of(new, o)
        and (o.lead_id = new.lead_id or o.buyer_id = new.buyer_id
          or o.lead_id = (select b.lead_id from app_public.buyers b where b.id = new.buyer_id))
      order by o.id desc limit 1;
  elsif not coalesce((select app_private.is_deposit_of(new, o) from app_public.offers o where o.id = new.offer_id),
    false) then
    perform app_hidden.fail('BAD_USER_INPUT', 'The offer does not belong to this lead or buyer.',
      '{"field": "offerId"}');
  end if;
  return new;
end $$;
create trigger _210_offer before insert on app_public.deposits for each row
  execute function app_private.tg_deposits__offer();

create function app_public.deposits_charge(d app_public.deposits) returns setof app_public.processor_charges
language sql stable rows 1 as $$
  select c.* from app_hidden.masked_processor_charges c where c.deposit_id = d.id
  order by c.status in ('FAILED', 'CANCELLED'), c.id desc limit 1
$$;
comment on function app_public.deposits_charge is
  'The latest charge that paid it; null without the permission finance.read, except for the buyer.';
