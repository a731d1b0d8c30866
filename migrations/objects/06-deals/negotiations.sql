-- Negotiations: one lead or buyer and one unit; offers belong to a negotiation, and its status follows from them. The
-- trigger on the status implements the consequences: the reservation is paused while an offer is pending, the lead's
-- status follows, and pending offers are withdrawn when a negotiation is cancelled.
--
-- Changes of the negotiations of a unit are serialized by a lock on the unit.
--
-- Decisions:
-- - A negotiation is open, and the only one of its lead or buyer about the unit, until it is ACCEPTED or CANCELLED.
-- - A withdrawn offer leaves it OPEN, and ends a round.
-- - It requires a unit that is AVAILABLE or already theirs, and a lead that is neither LOST nor UNQUALIFIED.
-- - Viewers who may not read the floor price cannot read events of negotiations either, because these contain it.
-- - An accepted negotiation keeps its status when the deal is cancelled later; then a new one can be started.

select app_private.make_deal_table('negotiations', 'sale.read', 'sale.write', 'negotiations',
  'The negotiations, newest first',
  deletable => false, own => 'id = any (array(select app_hidden.viewer_purchase_negotiations()))');
-- An event holds floor price and notes.
select app_private.make_project_record('negotiations', 'negotiation', 'sale.write',
  event_permission => 'sale.strategy');

-- ACCEPTED, REJECTED and EXPIRED follow from the offers; a withdrawn offer leaves the negotiation
-- OPEN.
select app_private.make_state_machine('negotiations', 'negotiation',
  steps => array[
    ['OPEN', 'ACTIVE', 'service'], ['REJECTED', 'ACTIVE', 'service'], ['EXPIRED', 'ACTIVE', 'service'],
    ['ACTIVE', 'ACCEPTED', 'service'], ['ACTIVE', 'REJECTED', 'service'], ['ACTIVE', 'EXPIRED', 'service'],
    ['ACTIVE', 'OPEN', 'service'],
    ['OPEN', 'CANCELLED', 'hand'], ['ACTIVE', 'CANCELLED', 'hand'], ['REJECTED', 'CANCELLED', 'hand'],
    ['EXPIRED', 'CANCELLED', 'hand']],
  initial => array['OPEN'],
  requirements => array[['CANCELLED', 'cancellation_reason', 'Cancelling a negotiation requires a reason.']]);

grant select on app_public.negotiations to plat_user, plat_anonymous;
grant insert (unit_id, lead_id, buyer_id, reservation_id, floor_price, offer_expiration_hours, notes) on
  app_public.negotiations to plat_user;
grant update (status, floor_price, offer_expiration_hours, cancellation_reason, notes) on app_public.negotiations to
  plat_user;

comment on table app_public.negotiations is
  'The bargaining of a lead or buyer with the seller about a unit, in rounds of offers.';
comment on column app_public.negotiations.unit_id is 'The unit under negotiation.';
comment on column app_public.negotiations.lead_id is
  'The negotiating lead; omitted if the buyer or the reservation identifies the person.';
comment on column app_public.negotiations.buyer_id is 'Id of the buyer who negotiates.';
comment on column app_public.negotiations.reservation_id is
  'The lead''s reservation of the unit, whose deadline is suspended while an offer is pending. Default: looked up.';
comment on column app_public.negotiations.assignee_id is
  E'@secret\n@behavior -*\n\nThe member who has the lead or the purchase.';
comment on column app_public.negotiations.status is
  E'@filter\n\nStatus, derived from the offers. It can be set only to CANCELLED.';
comment on column app_public.negotiations.status_changed_at is 'When the status last changed.';
comment on column app_public.negotiations.round is
  'Round of offers. A new round starts after an offer is rejected, expired or withdrawn.';
comment on column app_public.negotiations.turn is 'Side that has to respond; null if no offer is pending.';
comment on column app_public.negotiations.list_price is 'List price of the unit when the negotiation was created.';
comment on column app_public.negotiations.currency is 'Currency of its amounts: the one of the project.';
comment on column app_public.negotiations.floor_price is
  E'@masked\n\n'
  'Lowest price that the seller would accept. Offers of the seller and acceptances below it, and reading it, '
  'require the permission sale.strategy.';
comment on column app_public.negotiations.offer_expiration_hours is
  'Hours after which an offer expires, if it has no `expiresAt`.';
comment on column app_public.negotiations.opened_at is 'When it began.';
comment on column app_public.negotiations.closed_at is
  'When it was accepted, rejected or cancelled, or its last offer expired; null while it is active.';
comment on column app_public.negotiations.notes is
  E'@personal\n@masked\n\nNotes of the seller. Requires the permission sale.strategy.';
comment on column app_public.negotiations.cancellation_reason is
  E'@personal\n@masked\n\nReason for the cancellation; required for the status CANCELLED.';
comment on constraint negotiations_somebody on app_public.negotiations is
  'Specify the lead or the buyer who negotiates.';
comment on constraint negotiations_offer_expiration_hours_range on app_public.negotiations is
  'Must be from 1 to 8,760 hours.';
comment on constraint negotiations_unit_id_fkey on app_public.negotiations is
  E'@fieldName unit\n@foreignFieldName negotiations\n@backwardPermission sale.read\n@backwardDescription '
  'Negotiations about the unit, newest first; null without the permission sale.read.\n\n'
  'The unit under negotiation.';
comment on constraint negotiations_lead_id_fkey on app_public.negotiations is
  E'@fieldName lead\n@foreignFieldName negotiations\n@backwardDescription The negotiations, newest first.\n\nThe lead '
  'who negotiates.';
comment on constraint negotiations_buyer_id_fkey on app_public.negotiations is
  E'@fieldName buyer\n@backwardBehavior -*\n\nId of the buyer who negotiates.';
comment on constraint negotiations_reservation_id_fkey on app_public.negotiations is
  E'@fieldName reservation\n@backwardBehavior -*\n\nThe lead''s or buyer''s reservation of the unit.';
comment on constraint negotiations_assignee_id_fkey on app_public.negotiations is
  E'@behavior -*\n@backwardBehavior -*\n\nThe member who has the deal.';
comment on index app_public.negotiations_open_lead is 'There is already a negotiation with this lead about the unit.';
comment on index app_public.negotiations_open_buyer is 'There is already a negotiation with this buyer about the unit.';

insert into app_hidden.column_permissions (table_name, column_name, permission)
  select 'negotiations', unnest(array['status', 'offer_expiration_hours', 'cancellation_reason']), 'sale.write';
create trigger _010_parent before insert on app_public.negotiations
  for each row execute function app_private.tg__parent_project('units', 'unit_id');
create trigger _040_columns before update on app_public.negotiations
  for each row execute function app_private.tg__column_permissions('sale.strategy');

create or replace trigger _900_touch before update on app_public.negotiations for each row
  execute function app_private.tg__touch('assignee_id');

create function app_private.tg_negotiations__open() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  unit app_public.units;
  reservation app_public.reservations;
  lead app_public.leads;
  buyer app_public.buyers;
  existing uuid;
begin
  if app_public.current_user_id() is not null
    and not app_hidden.project_can(new.project_id, new.organization_id, 'sale.write') then
    perform app_hidden.refuse('negotiations', 'create');
  end if;
  if num_nonnulls(new.floor_price, new.notes) > 0 and app_public.current_user_id() is not null
    and not app_hidden.project_can(new.project_id, new.organization_id, 'sale.strategy') then
    perform app_hidden.fail('FORBIDDEN', 'Floor price and notes require the permission sale.strategy.',
      jsonb_build_object('permission', 'sale.strategy', 'field', case when new.floor_price is not null then 'floorPrice'
        else 'notes' end));
  end if;
  perform app_private.lock_inventory(new.unit_id, null);
  select * into unit from app_public.units u where u.id = new.unit_id and u.deleted_at is null;

  -- The lead or buyer: as given, or that of the reservation.
  if new.reservation_id is not null then
    select * into reservation from app_public.reservations r where r.id = new.reservation_id and r.deleted_at is null;
    if reservation.project_id <> new.project_id or reservation.unit_id is distinct from new.unit_id then
      perform app_hidden.fail('BAD_USER_INPUT', 'This reservation is for another unit or lot.',
        '{"field": "reservationId"}');
    elsif reservation.status not in ('PENDING', 'CONFIRMED') then
      perform app_hidden.fail('CONFLICT', format('This reservation is %s.', reservation.status),
        '{"field": "reservationId"}');
    elsif new.lead_id <> reservation.lead_id or new.buyer_id <> reservation.purchase_id then
      perform app_hidden.fail('BAD_USER_INPUT', 'This reservation is for somebody else.', '{"field": "reservationId"}');
    end if;
    new.lead_id := coalesce(new.lead_id, case when new.buyer_id is null then reservation.lead_id end);
    new.buyer_id := coalesce(new.buyer_id, reservation.purchase_id);
  end if;
  if num_nonnulls(new.lead_id, new.buyer_id) = 0 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify the lead or the buyer who negotiates.', '{"field": "leadId"}');
  end if;
  if new.buyer_id is not null then
    select * into buyer from app_public.buyers b where b.id = new.buyer_id and b.deleted_at is null;
    if buyer.project_id <> new.project_id or buyer.unit_id <> new.unit_id then
      perform app_hidden.fail('BAD_USER_INPUT', 'This buyer belongs to another project or unit.',
        '{"field": "buyerId"}');
    elsif buyer.status in ('CANCELLED', 'CLOSED') then
      perform app_hidden.fail('CONFLICT', format('This purchase is %s.', buyer.status), '{"field": "buyerId"}');
    elsif new.lead_id <> buyer.lead_id then
      perform app_hidden.fail('BAD_USER_INPUT', 'The buyer was not converted from this lead.', '{"field": "leadId"}');
    end if;
    new.lead_id := coalesce(new.lead_id, buyer.lead_id);
  end if;
  if new.lead_id is not null then
    -- Locked, so that the lead is not handed over meanwhile.
    select * into lead from app_public.leads l where l.id = new.lead_id and l.deleted_at is null for share;
    if lead.project_id <> new.project_id then
      perform app_hidden.fail('BAD_USER_INPUT', 'This lead belongs to another project.', '{"field": "leadId"}');
    elsif lead.status in ('LOST', 'UNQUALIFIED') then
      perform app_hidden.fail('CONFLICT', format('This lead is %s; change it to an open status first.', lead.status),
        '{"field": "leadId"}');
    end if;
    if new.buyer_id is null and lead.status = 'CONVERTED' then
      select * into buyer from app_public.buyers b
        where b.lead_id = lead.id and b.unit_id = new.unit_id and b.status <> 'CANCELLED' and b.deleted_at is null;
      new.buyer_id := buyer.id;
    end if;
  end if;
  if new.reservation_id is null then
    select r.id into new.reservation_id from app_public.reservations r
      where r.unit_id = new.unit_id and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null
        and (r.lead_id = new.lead_id or r.purchase_id = new.buyer_id) order by r.id desc limit 1;
  end if;
  new.assignee_id := case when new.lead_id is not null then lead.assignee_id else buyer.assignee_id end;

  select n.id into existing from app_public.negotiations n
    where n.unit_id = new.unit_id and n.deleted_at is null and n.status not in ('ACCEPTED', 'CANCELLED')
      and (n.lead_id = new.lead_id or n.buyer_id = new.buyer_id) limit 1;
  if existing is not null then
    perform app_hidden.fail('CONFLICT', 'There is already a negotiation with this person about this unit.',
      jsonb_build_object('existingId', existing, 'field', case when new.buyer_id is not null then 'buyerId'
        else 'leadId' end));
  end if;
  perform app_private.negotiable_claim(new, 'unitId');
  new.currency := unit.currency;
  new.list_price := unit.price;
  return new;
end $$;
create trigger _200_open before insert on app_public.negotiations for each row
  execute function app_private.tg_negotiations__open();

create function app_private.tg_negotiations__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.floor_price is not null then
    new.floor_price := app_hidden.to_money(new.floor_price, new.currency, 'floorPrice');
  end if;
  if tg_op = 'INSERT' or new.status = old.status then
    return new;
  end if;
  if new.status = 'ACTIVE' and exists (select from app_public.negotiations n
      where n.unit_id = new.unit_id and n.status = 'ACTIVE' and n.deleted_at is null and n.id <> new.id)
    and not (select p.allow_multiple_offers from app_public.projects p where p.id = new.project_id) then
    perform app_hidden.fail('CONFLICT',
      'Another offer on this unit is pending; the project accepts one at a time.', '{"field": "negotiationId"}');
  end if;
  new.closed_at := case when new.status in ('ACCEPTED', 'REJECTED', 'EXPIRED', 'CANCELLED') then now() end;
  new.turn := case when new.status = 'ACTIVE' then new.turn end;
  return new;
end $$;
create trigger _250_prepare before insert or update on app_public.negotiations for each row
  execute function app_private.tg_negotiations__prepare();

create function app_private.tg_negotiations__effects() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  if new.status = 'CANCELLED' then
    perform set_config('plat.service', 'on', true);
    update app_public.offers o set status = 'WITHDRAWN' where o.negotiation_id = new.id and o.status = 'PENDING';
    perform set_config('plat.service', before, true);
  end if;
  if exists (select from app_public.reservations r where r.id = new.reservation_id
    and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null) then
    if new.status = 'ACTIVE' then
      perform app_private.pause_reservation(new.reservation_id);
    elsif new.status = 'ACCEPTED' then
      perform app_private.resume_reservation(new.reservation_id,
        (select o.price from app_public.offers o where o.negotiation_id = new.id and o.status = 'ACCEPTED'));
    elsif old.status = 'ACTIVE' then
      perform app_private.resume_reservation(new.reservation_id);
    end if;
  end if;
  if new.lead_id is not null then
    perform app_private.follow_deals(array[new.lead_id]);
  end if;
  return null;
end $$;
comment on function app_private.tg_negotiations__effects() is
  'Effects of a negotiation''s transition: on the pending offer, the deadline of the reservation, and the status '
  'of the lead.';
create trigger _500_effects after update of status on app_public.negotiations for each row
  when (old.status is distinct from new.status) execute function app_private.tg_negotiations__effects();

create function app_public.negotiations_floor_price(n app_public.negotiations) returns app_public.money
language sql stable as $$
  select case when n.floor_price is not null
    and app_hidden.project_can(n.project_id, n.organization_id, 'sale.strategy') then n.floor_price end
$$;

create function app_public.negotiations_notes(n app_public.negotiations) returns text
language sql stable as $$
  select case when n.notes is not null and app_hidden.project_can(n.project_id, n.organization_id, 'sale.strategy')
    then n.notes end
$$;

create function app_public.negotiations_allowed_transitions(n app_public.negotiations) returns app_public.transition[]
language sql stable as $$
  select app_hidden.transitions_from('negotiation',
    jsonb_build_object('status', n.status, 'cancellation_reason', n.cancellation_reason))
$$;

grant execute on function app_public.negotiations_floor_price, app_public.negotiations_notes,
  app_public.negotiations_allowed_transitions, app_public.reservations_negotiation, app_public.buyers_negotiations to
  plat_user, plat_anonymous;
comment on function app_public.negotiations_floor_price is
  'Lowest price that the seller would accept; null without the permission sale.strategy.';
comment on function app_public.negotiations_notes is 'Notes of the seller; null without the permission sale.strategy.';
comment on function app_public.negotiations_allowed_transitions is
  E'@notNull\n@reads cancellation_reason\n\nStatus transitions that the viewer can make; others follow from offers.';

comment on function app_public.negotiations_events is
  E'@permission sale.strategy\n'
  '@by subject_id\n\n'
  'Events of the record, latest first; null without the permission sale.strategy.';

create function app_private.tg_negotiations__parties_of_offers() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.offers o set lead_id = new.lead_id, buyer_id = new.buyer_id, reservation_id = new.reservation_id,
    assignee_id = new.assignee_id
    where o.negotiation_id = new.id;
  return null;
end $$;
comment on function app_private.tg_negotiations__parties_of_offers() is
  'Offers say again what their negotiation says, so that lists of them go along an index.';
create trigger _400_parties_of_offers after update of lead_id, buyer_id, reservation_id,
  assignee_id on app_public.negotiations for each row
  when (row(old.lead_id, old.buyer_id, old.reservation_id, old.assignee_id) is distinct
    from row(new.lead_id, new.buyer_id, new.reservation_id, new.assignee_id))
  execute function app_private.tg_negotiations__parties_of_offers();

create function app_public.negotiations_current_offer(n app_public.negotiations) returns setof app_public.offers
language sql stable rows 1 as $$
  select o.* from app_public.offers o where o.negotiation_id = n.id and o.status = 'PENDING' limit 1
$$;

create function app_public.negotiations_accepted_offer(n app_public.negotiations) returns setof app_public.offers
language sql stable rows 1 as $$
  select o.* from app_public.offers o where o.negotiation_id = n.id and o.status = 'ACCEPTED' limit 1
$$;

grant execute on function app_public.negotiations_current_offer, app_public.negotiations_accepted_offer,
  app_public.buyers_accepted_offer to plat_user, plat_anonymous;
comment on function app_public.negotiations_current_offer is 'The pending offer; null if there is none.';
comment on function app_public.negotiations_accepted_offer is 'The offer that both sides agreed on; null until then.';

create function app_public.negotiations_cancellation_reason(n app_public.negotiations) returns app_public.long_text
language sql stable as $$
  select case when n.cancellation_reason is not null
    and app_hidden.deal_can(n.organization_id, n.project_id, n.assignee_id, 'sale.read') then n.cancellation_reason end
$$;
comment on function app_public.negotiations_cancellation_reason is
  'Reason for the cancellation; null without the permission sale.read.';
