-- Reservations: temporary claims on a unit or lot. A reservation and its claim begin and end together, and share the
-- deadline of the claim: after it, the transaction that releases the claim (expire_claim, or the next claim) also ends
-- the reservation.
--
-- Decisions:
-- - The initial price is the list price; the premium of the lot is stored separately, and can be included by changing
--   the price while the reservation is open.
-- - A lead that is LOST or UNQUALIFIED cannot reserve, and cannot become either with an open reservation. A CONVERTED
--   one can reserve another home, and remains CONVERTED.
-- - There are no reservations while the sales of the project are PAUSED.
-- - Buyers reserve and cancel for themselves in a project where they have a purchase in force, and visitors in a
--   project that allows it (self-service.sql); all other changes require the sales team.
-- - An open negotiation about a reservation is cancelled with it if that is cancelled or refunded, but not when it
--   expires.
-- - A reservation whose purchase is CLOSED cannot be refunded: the home keeps its owner.

select app_private.make_deal_table('reservations', 'sale.read', 'sale.write', 'reservations',
  'The reservations, newest first',
  deletable => false,
  own => 'id = any (array(select app_hidden.viewer_purchase_reservations()))');
select app_private.make_project_record('reservations', 'reservation', 'sale.write',
  event_permission => 'sale.read');
select app_private.make_state_machine('reservations', 'reservation',
  steps => array[
    ['PENDING', 'CONFIRMED', 'hand'], ['PENDING', 'CONVERTED', 'service'], ['CONFIRMED', 'CONVERTED', 'service'],
    ['PENDING', 'EXPIRED', 'service'], ['CONFIRMED', 'EXPIRED', 'service'],
    ['PENDING', 'CANCELLED', 'hand'], ['CONFIRMED', 'CANCELLED', 'hand'],
    ['PENDING', 'REFUNDED', 'hand'], ['CONFIRMED', 'REFUNDED', 'hand'], ['CONVERTED', 'REFUNDED', 'hand'],
    ['EXPIRED', 'REFUNDED', 'hand'],
    ['CANCELLED', 'REFUNDED', 'hand']],
  initial => array['PENDING', 'CONFIRMED']);

grant select on app_public.reservations to plat_user, plat_anonymous;
grant insert (lead_id, unit_id, lot_id, accepted_terms, status, buyer_legal_name, occupancy_type, occupancy_type_other,
  financing_type, financing_contingency, preapproved, purchase_authorization, transaction_id, expiration, notes,
  metadata), update (status, price, expiration, buyer_legal_name, occupancy_type, occupancy_type_other, financing_type,
  financing_contingency, preapproved, purchase_authorization, transaction_id, cancelled_at, cancellation_reason,
  fallout_reason_id, notes, metadata) on app_public.reservations to plat_user;

comment on table app_public.reservations is $$
@portfolio sale.read
@ownFinder viewer_purchase_reservations
@defaultOrder inserted_at desc
@defaultFirst 1000
@filterLists status

An exclusive claim of a lead or buyer on a unit or lot.$$;
comment on column app_public.reservations.project_id is E'@filter projectIds\n\nThe project that it belongs to.';
comment on column app_public.reservations.unit_id is E'@filter\n\nId of the unit. Set either this or `lotId`.';
comment on column app_public.reservations.lot_id is E'@filter\n\nId of the lot. Set either this or `unitId`.';
comment on column app_public.reservations.lead_id is E'@filter\n\nId of the lead who reserves.';
comment on column app_public.reservations.buyer_id is 'Id of the buyer, if they made the reservation themselves.';
comment on column app_public.reservations.purchase_id is
  'Id of the purchase that it became; null before conversion and after REFUNDED.';
comment on column app_public.reservations.assignee_id is 'Id of the responsible member: the assignee of the lead.';
comment on column app_public.reservations.status is E'@filter\n\nCurrent status.';
comment on column app_public.reservations.status_changed_at is 'When the status last changed.';
comment on column app_public.reservations.number is
  E'@impersonal\n@insertOptional\n\nNumber in the project, such as R-000042.';
comment on column app_public.reservations.buyer_legal_name is
  E'@personal contract\n\nLegal name of the buyer, as on the contract.';
comment on column app_public.reservations.price is
  E'@insertOptional\n\n'
  'Price of the home or land: the list price when the reservation was created, or the price agreed since.';
comment on column app_public.reservations.list_price_snapshot is
  E'@insertOptional\n\nList price when the reservation was created; never changes.';
comment on column app_public.reservations.premium_snapshot is
  'Lot premium when the reservation was created; never changes.';
comment on column app_public.reservations.currency is 'Currency of its amounts: the one of the project.';
comment on column app_public.reservations.fee is
  'Reservation fee of the project at the time of the reservation; paid as `feeDeposit`.';
comment on column app_public.reservations.cancellation_fee is
  'Cancellation fee of the project at the time of the reservation.';
comment on column app_public.reservations.occupancy_type is 'Intended use of the home.';
comment on column app_public.reservations.occupancy_type_other is
  E'@personal\n\nIntended use in words, if `occupancyType` is OTHER.';
comment on column app_public.reservations.financing_type is 'How the buyer finances the purchase.';
comment on column app_public.reservations.financing_contingency is 'Whether the purchase depends on financing.';
comment on column app_public.reservations.preapproved is 'Whether a lender has pre-approved the buyer.';
comment on column app_public.reservations.accepted_terms is 'Consent of the buyer to the terms; must be true.';
comment on column app_public.reservations.accepted_terms_at is 'When the buyer consented to the terms.';
comment on column app_public.reservations.purchase_authorization is 'Whether the buyer authorizes the purchase.';
comment on column app_public.reservations.expiration is
  E'@measures ratio\n@insertOptional\n\n'
  'Duration in hours, 1 to 8,760; `reservationExpiration` of the project if omitted. In an update, counted from '
  'now.';
comment on column app_public.reservations.expires_at is
  E'@filter\n\nDeadline of the reservation; null while a negotiation is active, and after conversion into a purchase.';
comment on column app_public.reservations.extended_count is E'@measures quantity\n\nNumber of times it was extended.';
comment on column app_public.reservations.executed_at is 'When the sales team confirmed it; null until then.';
comment on column app_public.reservations.cancelled_at is 'When it was cancelled; null otherwise.';
comment on column app_public.reservations.fallout_reason_id is
  'Id of the fallout reason. The status CANCELLED requires this or `cancellationReason`.';
comment on column app_public.reservations.refunded_at is 'When it was reversed (REFUNDED); null otherwise.';
comment on column app_public.reservations.is_self_service is
  'Whether a signed-in user created it for themselves, in a project with `publicReservations`. Paying the fee '
  'confirms it.';
comment on column app_public.reservations.transaction_id is
  E'@personal contract\n\nReference of the fee payment, if it was made outside of this service.';
comment on column app_public.reservations.notes is
  E'@personal\n@masked\n\nInternal notes of the sales team; never visible to the buyer.';
comment on column app_public.reservations.metadata is
  E'@personal\n@masked\n\nArbitrary JSON for the organization''s own programs; not interpreted.';
comment on column app_public.reservations.inserted_at is
  E'@filter\n\nWhen the reservation was created. Lists are sorted by it, latest first.';
comment on column app_public.reservations.cancellation_reason is
  E'@personal\n@masked\n\nReason for the cancellation, in words.';
comment on constraint reservations_one_thing on app_public.reservations is 'Specify either the unit or the lot.';
comment on constraint reservations_refunded on app_public.reservations is
  'A refunded reservation cannot have a purchase.';
comment on constraint reservations_expiration_range on app_public.reservations is 'Must be from 1 to 8,760 hours.';
comment on constraint reservations_cancelled_for_a_reason on app_public.reservations is
  'Cancelling a reservation requires a cancellationReason or a falloutReasonId.';
comment on constraint reservations_accepted_terms on app_public.reservations is
  'A reservation requires consent to its terms.';
comment on constraint reservations_unit_id_fkey on app_public.reservations is
  E'@fieldName unit\n@foreignFieldName reservations\n@backwardPermission sale.read\n@backwardDescription '
  'Reservations, including ended ones, newest first; null without the permission sale.read.\n\n'
  'The unit.';
comment on constraint reservations_lot_id_fkey on app_public.reservations is
  E'@fieldName lot\n@foreignFieldName reservations\n@backwardPermission sale.read\n@backwardDescription '
  'Reservations, including ended ones, newest first; null without the permission sale.read.\n\n'
  'The lot.';
comment on constraint reservations_lead_id_fkey on app_public.reservations is
  E'@fieldName lead\n@foreignFieldName reservations\n@backwardDescription The reservations, newest first.\n\n'
  'Id of the lead who reserves.';
comment on constraint reservations_buyer_id_fkey on app_public.reservations is
  E'@fieldName buyer\n@backwardBehavior -*\n\nId of the buyer, if they made the reservation themselves.';
comment on constraint reservations_purchase_id_fkey on app_public.reservations is
  E'@fieldName purchase\n@backwardBehavior -*\n\n'
  'Id of the purchase that it became; null before conversion and after REFUNDED.';
comment on constraint reservations_user_id_fkey on app_public.reservations is
  E'@fieldName user\n@backwardBehavior -*\n\nUser who entered the reservation.';
comment on constraint reservations_assignee_id_fkey on app_public.reservations is
  E'@fieldName assignee\n@backwardBehavior -*\n\nThe responsible member.';
comment on constraint reservations_fallout_reason_id_fkey on app_public.reservations is
  E'@fieldName falloutReason\n@backwardBehavior -*\n\nReason why the reservation fell through.';
comment on index app_public.reservations_unit_open is 'This unit is already reserved.';
comment on index app_public.reservations_lot_open is 'This lot is already reserved.';
comment on table app_private.reservation_counters is 'The last number of a reservation of each project.';

create function app_private.tg_reservations__about() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lead_status text;
begin
  if num_nonnulls(new.unit_id, new.lot_id) <> 1 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either the unit or the lot.', '{"field": "unitId"}');
  end if;
  new.project_id := coalesce((select u.project_id from app_public.units u where u.id = new.unit_id
    and u.deleted_at is null),
    (select l.project_id from app_public.lots l where l.id = new.lot_id and l.deleted_at is null));
  if new.project_id is null then
    perform app_hidden.fail('NOT_FOUND',
      format('There is no such %s.', case when new.unit_id is not null then 'unit' else 'lot' end),
      jsonb_build_object('field', case when new.unit_id is not null then 'unitId' else 'lotId' end));
  end if;
  -- The viewer's hold for a lead becomes a reservation of that lead.
  new.lead_id := coalesce(new.lead_id, (app_private.active_hold(new.unit_id, new.lot_id, null)).lead_id);
  if new.lead_id is not null and not exists (
    select from app_public.leads l where l.id = new.lead_id and l.project_id = new.project_id and l.deleted_at is null)
      then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead in this project.', '{"field": "leadId"}');
  end if;
  return new;
end $$;
comment on function app_private.tg_reservations__about() is
  'The project of a reservation is that of its unit or lot, which the lead must be of too.';
create trigger _010_about before insert on app_public.reservations for each row
  execute function app_private.tg_reservations__about();

insert into app_private.event_names (subject, column_name, value, name) values
  ('reservation', 'status', 'CONFIRMED', 'confirmed'), ('reservation', 'status', 'CONVERTED', 'converted'),
  ('reservation', 'status', 'EXPIRED', 'expired'), ('reservation', 'status', 'CANCELLED', 'cancelled'),
  ('reservation', 'status', 'REFUNDED', 'refunded'), ('reservation', 'extended_count', null, 'extended');

create function app_private.tg_reservations__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  applies boolean;
  is_open boolean;
begin
  if tg_op = 'INSERT' then
    if new.accepted_terms is distinct from true then
      perform app_hidden.fail('BAD_USER_INPUT',
        'A reservation requires consent to its terms: acceptedTerms must be true.', '{"field": "acceptedTerms"}');
    end if;
    new.accepted_terms_at := now();
    new.executed_at := case when new.status = 'CONFIRMED' then now() end;
    -- The assignee is that of the lead; without a lead, the creator, or the assignee of the buyer who created it.
    new.assignee_id := case when new.lead_id is not null
      then (select l.assignee_id from app_public.leads l where l.id = new.lead_id)
      when new.buyer_id is not null then new.assignee_id else new.user_id end;
    return new;
  end if;

  if row(new.number, new.project_id, new.unit_id, new.lot_id, new.currency, new.list_price_snapshot,
      new.premium_snapshot)
    is distinct from row(old.number, old.project_id, old.unit_id, old.lot_id, old.currency, old.list_price_snapshot,
      old.premium_snapshot)
    or new.accepted_terms_at is distinct from old.accepted_terms_at and not app_private.is_turning() then
    perform app_hidden.fail('CONFLICT',
      'The unit or lot, the number and the original list price of a reservation cannot be changed.');
  end if;
  is_open := old.status in ('PENDING', 'CONFIRMED');
  if new.price is distinct from old.price then
    if not is_open then
      perform app_hidden.fail('CONFLICT',
        format('The price of a reservation with the status %s can no longer be changed.', old.status),
          '{"field": "price"}');
    end if;
    new.price := app_hidden.to_money(new.price, new.currency, 'price');
  end if;
  if new.fallout_reason_id is not null and new.fallout_reason_id is distinct from old.fallout_reason_id then
    select 'RESERVATION' = any (r.applies_to::text[]) into applies from app_public.fallout_reasons r
      where r.id = new.fallout_reason_id and r.project_id = new.project_id and r.deleted_at is null;
    if applies is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such fallout reason in this project.',
        '{"field": "falloutReasonId"}');
    elsif not applies then
      perform app_hidden.fail('BAD_USER_INPUT', 'This fallout reason does not apply to reservations.',
        '{"field": "falloutReasonId"}');
    end if;
  end if;
  if new.cancelled_at is distinct from old.cancelled_at
    and (new.status <> 'CANCELLED' or new.cancelled_at > now() + interval '1 minute') then
    perform app_hidden.fail('BAD_USER_INPUT', case when new.status <> 'CANCELLED'
      then 'Only a cancelled reservation can have a cancellation time.'
      else 'The cancellation time of a reservation cannot be in the future.' end, '{"field": "cancelledAt"}');
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.reservations for each row
  execute function app_private.tg_reservations__prepare();

-- In an update, the hours count from now, even if their number is unchanged.
create function app_private.tg_reservations__extend() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Compared with the clock, because a transaction that waited for a lock began before the end.
  if old.status not in ('PENDING', 'CONFIRMED') or old.expires_at <= clock_timestamp() then
    perform app_hidden.fail('CONFLICT', 'This reservation has ended and cannot be extended; create a new one.',
      '{"field": "expiration"}');
  end if;
  new.extended_count := old.extended_count + 1;
  -- While a negotiation is active, it has no deadline; its hours start when the negotiation ends.
  if old.expires_at is not null then
    new.expires_at := now() + make_interval(hours => new.expiration);
    update app_hidden.claims c set expires_at = new.expires_at where c.subject_id = new.id and c.released_at is null
      and c.kind = 'RESERVATION';
  end if;
  return new;
end $$;
create trigger _250_extend before update of expiration on app_public.reservations for each row
  execute function app_private.tg_reservations__extend();

create function app_private.tg_reservations__refuse_repeat() returns trigger
language plpgsql volatile as $$
begin
  perform app_hidden.fail('INVALID_TRANSITION', 'This reservation has already been refunded.',
    '{"from": "REFUNDED", "to": "REFUNDED", "field": "status", "allowedTransitions": []}');
  return null;
end $$;
create trigger _290_refuse_repeat before update of status on app_public.reservations for each row
  when (old.status = 'REFUNDED' and new.status = 'REFUNDED')
    execute function app_private.tg_reservations__refuse_repeat();

create function app_private.tg_reservations__take() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project record;
  claim app_hidden.claims;
begin
  select p.status, p.currency, p.reservation_expiration, p.reservation_fee, p.cancellation_fee into project
    from app_public.projects p where p.id = new.project_id;
  if project.status = 'PAUSED' then
    perform app_hidden.fail('CONFLICT', 'Sales of this project are paused; no reservations are accepted.');
  end if;
  new.expiration := coalesce(new.expiration, project.reservation_expiration);
  if new.expiration not between 1 and 8760 then -- before the time is computed, which has an end
    perform app_hidden.fail('BAD_USER_INPUT', 'Must be from 1 to 8,760 hours.', '{"field": "expiration"}');
  end if;
  new.expires_at := now() + make_interval(hours => new.expiration);
  -- A visitor has as long as the hold to pay the fee; then its hours begin.
  if new.is_self_service and (select app_private.wants_fee_first(p) from app_public.projects p
    where p.id = new.project_id) then
    new.expires_at := coalesce((app_private.active_hold(new.unit_id, new.lot_id, new.lead_id)).expires_at,
      now() + (select make_interval(hours => p.public_hold_expiration) from app_public.projects p
        where p.id = new.project_id));
  end if;
  perform app_private.take_over_hold(new.unit_id, new.lot_id, new.lead_id, 'reservation', new.id);
  claim := app_private.take_claim(new.unit_id, new.lot_id, 'RESERVATION', 'reservation', new.id, new.expires_at);
  new.currency := project.currency;
  new.fee := project.reservation_fee;
  new.cancellation_fee := project.cancellation_fee;
  new.list_price_snapshot := case when new.unit_id is not null then claim.unit_price else claim.lot_price end;
  new.premium_snapshot := (select l.premium from app_public.lots l
    where l.id = coalesce(new.lot_id, (select u.lot_id from app_public.units u where u.id = new.unit_id)));
  new.price := new.list_price_snapshot;
  return new;
end $$;
comment on function app_private.tg_reservations__take() is
  'Claims the unit or lot for a new reservation, and keeps what is listed and agreed on in the project at this moment.';
create trigger _400_take before insert on app_public.reservations for each row
  execute function app_private.tg_reservations__take();
create trigger _800_number before insert on app_public.reservations for each row
  execute function app_private.tg__number('R', 'reservation_counters');

create function app_private.tg_reservations__step() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.status = 'CONFIRMED' then
    new.executed_at := coalesce(new.executed_at, now());
    if new.is_self_service and new.expires_at is not null then
      new.expires_at := now() + make_interval(hours => new.expiration);
      update app_hidden.claims c set expires_at = new.expires_at
        where c.subject_id = new.id and c.released_at is null and c.kind = 'RESERVATION';
    end if;
  elsif new.status = 'CONVERTED' then
    if new.purchase_id is null then
      perform app_hidden.fail('CONFLICT', 'Use convertLead to convert a reservation to a purchase.',
        '{"field": "status"}');
    end if;
    new.expires_at := null;
  elsif new.status = 'CANCELLED' then
    if num_nonnulls(new.cancellation_reason, new.fallout_reason_id) = 0 then
      perform app_hidden.fail('BAD_USER_INPUT',
        'Cancelling a reservation requires a cancellationReason or a falloutReasonId.',
        '{"field": "cancellationReason"}');
    end if;
    new.cancelled_at := coalesce(new.cancelled_at, now());
  elsif new.status = 'REFUNDED' then
    if exists (select from app_public.buyers b where b.id = old.purchase_id and b.status = 'CLOSED') then
      perform app_hidden.fail('CONFLICT', 'The purchase is closed; its reservation can no longer be refunded.',
        '{"field": "status"}');
    end if;
    new.refunded_at := now();
    new.purchase_id := null;
  end if;
  return new;
end $$;
create trigger _400_step before update of status on app_public.reservations for each row
  when (old.status is distinct from new.status) execute function app_private.tg_reservations__step();

create function app_private.tg_reservations__begin() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lead record;
begin
  perform app_private.follow_deals(array[new.lead_id]);
  -- Locked by now, so it cannot change; a new assignee has the reservation.
  select l.status, l.deleted_at, l.assignee_id into lead from app_public.leads l where l.id = new.lead_id;
  update app_public.reservations r set assignee_id = lead.assignee_id where r.id = new.id
    and r.assignee_id is distinct from lead.assignee_id;
  if lead.deleted_at is not null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead in this project.', '{"field": "leadId"}');
  elsif lead.status in ('LOST', 'UNQUALIFIED') then
    perform app_hidden.fail('CONFLICT', format('This lead is %s; change its status first.', lead.status),
      '{"field": "leadId"}');
  end if;
  return null;
end $$;
comment on function app_private.tg_reservations__begin() is
  'What follows when a lead reserves: the status of the lead, and who works on the reservation.';
create trigger _400_begin after insert on app_public.reservations for each row when (new.lead_id is not null)
  execute function app_private.tg_reservations__begin();

-- PERF: once for all reservations of a statement: many end at one moment.
create function app_private.tg_reservations__follow() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  ended record;
  claim app_hidden.claims;
begin
  -- In the order of locks: claim, negotiation, purchase, lead. An expired claim ends its reservation.
  for ended in
    select n.id, n.status, n.cancellation_reason, n.fallout_reason_id, o.purchase_id
    from new_rows n full join old_rows o using (id)
    where case when n.status in ('EXPIRED', 'CANCELLED', 'REFUNDED') then n.status is distinct from o.status
        else false end
      and (n.status <> 'EXPIRED' or exists (select from app_hidden.claims c where c.subject_id = n.id
        and c.released_at is null))
    order by n.id
  loop
    claim := app_private.active_claim(ended.id);
    if claim.id is not null then
      perform app_private.release_claim(claim.id, ended.status);
    end if;
    if ended.status <> 'EXPIRED' and exists (select from app_public.negotiations n
      where n.reservation_id = ended.id and n.status in ('OPEN', 'ACTIVE', 'REJECTED', 'EXPIRED')
        and n.deleted_at is null) then
      perform app_private.end_negotiations(reservation_id => ended.id,
        reason => format('The reservation was %s.', lower(ended.status)));
    end if;
    if ended.status = 'REFUNDED' and exists (select from app_public.buyers b where b.id = ended.purchase_id
      and b.status <> 'CANCELLED') then
      perform app_private.cancel_purchase(ended.purchase_id,
        coalesce(ended.cancellation_reason, 'The reservation was refunded.'), ended.fallout_reason_id);
    end if;
  end loop;
  perform app_private.follow_deals(array(
    select distinct n.lead_id from new_rows n full join old_rows o using (id)
      where case when n.lead_id is null then false else n.status is distinct from o.status end));
  return null;
end $$;
comment on function app_private.tg_reservations__follow() is
  'What follows when reservations change their status: the claims of those that ended, the negotiations about them, '
  'the purchases of refunded ones, the status of the leads.';
create trigger _400_follow after update on app_public.reservations
  referencing old table as old_rows new table as new_rows for each statement
  execute function app_private.tg_reservations__follow();

create function app_public.reservations_total_contract_price(r app_public.reservations) returns app_public.money
language sql stable as $$ select r.price + app_private.options_total(r.unit_id, r.lead_id, r.purchase_id) $$;

create function app_public.reservations_ppsf(r app_public.reservations) returns numeric
language sql stable as $$
  select round(r.price / nullif(case when r.unit_id is not null
    then (select u.effective_sqft from app_public.units u where u.id = r.unit_id)
    else (select l.area_sqft from app_public.lots l where l.id = r.lot_id) end, 0), 2)
$$;

create function app_public.reservations_notes(r app_public.reservations) returns app_public.long_text
language sql stable as $$
  select case when r.notes is not null
    and app_hidden.deal_can(r.organization_id, r.project_id, r.assignee_id, 'sale.read') then r.notes end
$$;

create function app_public.reservations_metadata(r app_public.reservations) returns jsonb
language sql stable as $$
  select case when r.metadata is not null
    and app_hidden.deal_can(r.organization_id, r.project_id, r.assignee_id, 'sale.read') then r.metadata end
$$;

create function app_public.reservations_allowed_transitions(r app_public.reservations) returns app_public.transition[]
language plpgsql stable as $$
declare
  steps app_public.transition[] := app_hidden.transitions_from('reservation', jsonb_build_object('status', r.status));
  as_buyer boolean := app_hidden.is_viewers_reservation(r.id)
    and not app_hidden.deal_can(r.organization_id, r.project_id, r.assignee_id, 'sale.write');
begin
  if not as_buyer and (r.status not in ('PENDING', 'CONFIRMED')
    or num_nonnulls(r.cancellation_reason, r.fallout_reason_id) > 0) then
    return steps;
  end if;
  return array(
    select case when t."to" = 'CANCELLED' and num_nonnulls(r.cancellation_reason, r.fallout_reason_id) = 0
      then row(t."to", false, array['cancellationReason'])::app_public.transition else t end
    from unnest(steps) t
    where not as_buyer or (t."to" = 'CANCELLED' and r.buyer_id = app_public.current_user_id()) order by t."to");
end $$;

grant execute on function app_public.reservations_total_contract_price, app_public.reservations_ppsf,
  app_public.reservations_notes, app_public.reservations_metadata, app_public.reservations_allowed_transitions,
  app_public.units_active_reservation, app_public.users_reservations to plat_user, plat_anonymous;
comment on function app_public.reservations_total_contract_price is
  E'@notNull\n\n`price` plus the total of the personalization.';
comment on function app_public.reservations_ppsf is
  E'@measures ratio\n\nPrice per square foot: of the home, or of the land for a lot.';
comment on function app_public.reservations_notes is 'Internal notes of the sales team; null for the buyer.';
comment on function app_public.reservations_metadata is
  'Arbitrary JSON for the organization''s own programs; not interpreted; null for the buyer.';
comment on function app_public.reservations_allowed_transitions is
  E'@notNull\n'
  '@reads cancellation_reason\n\n'
  'Status transitions that the viewer can make; others happen automatically.';

create function app_public.reservations_negotiation(r app_public.reservations) returns setof app_public.negotiations
language sql stable rows 1 as $$
  select n.* from app_hidden.masked_negotiations n
  where n.reservation_id = r.id and n.deleted_at is null order by n.id desc
    limit 1
$$;
comment on function app_public.reservations_negotiation is 'The latest negotiation of the reserved unit.';

create function app_private.tg_reservations__conflict() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  refunded record;
  claim app_hidden.claims;
begin
  for refunded in
    select n.id, n.number, n.unit_id, n.lot_id, n.lead_id from new_rows n full join old_rows o using (id)
      where case when n.status = 'REFUNDED' then o.status <> 'REFUNDED' else false end order by n.id
  loop
    select c.* into claim from app_hidden.claims c
      where c.released_at is null and (c.unit_id = refunded.unit_id
        or (refunded.unit_id is null and c.unit_id is null and c.lot_id = refunded.lot_id))
        and not app_hidden.claim_is_over(c);
    if claim.id is not null and not app_private.is_party_of_claim(claim, refunded.lead_id) then
      perform app_private.open_inventory_conflict(claim, 'reservation', refunded.id, refunded.lead_id,
        format('Reservation %s was refunded, but its home was not offered again.', refunded.number));
    end if;
  end loop;
  return null;
end $$;
comment on function app_private.tg_reservations__conflict() is
  'Opens a ticket where a reservation is refunded whose home belongs to somebody else.';

-- After _400_follow, which releases the remaining claims.
create trigger _700_conflict after update on app_public.reservations
  referencing old table as old_rows new table as new_rows for each statement
  execute function app_private.tg_reservations__conflict();

create function app_public.reservations_cancellation_reason(r app_public.reservations) returns app_public.long_text
language sql stable as $$
  select case when r.cancellation_reason is not null and (app_hidden.deal_can(r.organization_id, r.project_id,
    r.assignee_id, 'sale.read')
    or app_private.is_reason_of_buyer(r.id, r.cancellation_reason)) then r.cancellation_reason end
$$;
comment on function app_public.reservations_cancellation_reason is
  'Reason for the cancellation, as free text. Visible to the buyer if they cancelled it themselves.';
grant execute on function app_public.reservations_cancellation_reason, app_public.negotiations_cancellation_reason,
  app_private.is_reason_of_buyer to plat_user, plat_anonymous;
