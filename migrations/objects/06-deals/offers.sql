-- Offers and their answers. Within a round the sides alternate: answering with another offer makes the previous one
-- COUNTERED. An offer ends once; afterwards, neither offers nor answers can be changed or deleted.
--
-- An accepted offer is in force as long as the claim on the unit that it took or kept. A unit has one such claim, and a
-- claim one accepted offer.
--
-- Decisions:
-- - Any side starts a round. Between rounds, nobody's answer is pending.
-- - The team also enters offers and answers for the buyer (manual), because most buyers are not users; but never
--   answers an offer of the same side. A buyer who is a user can only act for their own side.
-- - Below the floor price, an offer of the seller or an acceptance requires the permission sale.strategy: FORBIDDEN
--   without it.
-- - Acceptance without reservation or purchase claims the unit for the duration of a reservation in the project.
-- - The accepted price also applies to a purchase that is not signed yet.
-- - While a unit belongs to another party, offers on it are neither made nor accepted; pending ones can be rejected, or
--   expire.

create policy sellers on app_public.offers for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('sale.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('sale.read'))::uuid[])
    or (assignee_id = (select app_public.current_user_id())
      and project_id = any ((select app_hidden.viewer_own_projects('sale.read'))::uuid[]))
    or negotiation_id = any (array(select app_hidden.viewer_purchase_negotiations())));

select app_private.make_project_record('offers', 'offer', 'sale.write');
select app_private.make_state_machine('offers', 'offer',
  steps => array[['PENDING', 'COUNTERED', 'service'], ['PENDING', 'ACCEPTED', 'service'],
    ['PENDING', 'REJECTED', 'service'],
    ['PENDING', 'EXPIRED', 'service'], ['PENDING', 'WITHDRAWN', 'service']],
  initial => array['PENDING']);
select app_private.make_deadline('offer', 'app_public.offers', 'expires_at', 'new.status = ''PENDING''', '{status}',
  'app_private.expire_offer(uuid)');

grant select on app_public.offers to plat_user, plat_anonymous;

-- No policy lets anybody insert: create_offer does, and these are its members.
grant insert (negotiation_id, side, price, parent_id, closing_date, earnest_money, financing_type,
  financing_contingency, amount_financed, occupancy_type, requested_credits, comments, expires_at) on app_public.offers
  to plat_user;

comment on index app_public.offers_pending is 'There is already a pending offer in this negotiation.';
comment on index app_public.offers_accepted is 'An offer on this unit has already been accepted.';

comment on table app_public.offers is E'@implements OfferTerms\n\nAn offer or counter-offer in a negotiation.';
comment on column app_public.offers.assignee_id is
  E'@secret\n@behavior -*\n\nThe member who has the lead or the purchase.';
comment on column app_public.offers.claim_id is
  E'@secret\n@behavior -*\n\nThe claim on the unit that the accepted offer took or kept; it is in force as long as '
  'that is.';
comment on column app_public.offers.number is
  E'@impersonal\n@insertOptional\n\nNumber in the project, such as O-000042.';
comment on table app_private.offer_counters is 'The last number of an offer of each project.';
comment on column app_public.offers.negotiation_id is
  'Id of the negotiation in whose current round the offer is made.';
comment on column app_public.offers.round is 'Round of the negotiation, from 1.';
comment on column app_public.offers.sequence is 'Position in the round, from 1.';
comment on column app_public.offers.side is 'Side that makes the offer.';
comment on column app_public.offers.kind is 'Whether the offer starts a round or counters another offer.';
comment on column app_public.offers.status is 'Current status. Every status but PENDING is final.';
comment on column app_public.offers.status_changed_at is 'When the status last changed.';
comment on column app_public.offers.price is 'Offered purchase price, zero or more.';
comment on column app_public.offers.currency is 'Currency of its amounts: the one of the project.';
comment on column app_public.offers.delta is 'Difference to the price of the previous offer; null for the first offer.';
comment on column app_public.offers.closing_date is 'Proposed closing date.';
comment on column app_public.offers.earnest_money is
  'Earnest money: the deposit that the buyer offers as a sign of good faith.';
comment on column app_public.offers.financing_type is 'How the buyer finances the purchase.';
comment on column app_public.offers.financing_contingency is 'Whether the purchase is conditional on financing.';
comment on column app_public.offers.amount_financed is 'Part of the price that is financed by a loan.';
comment on column app_public.offers.occupancy_type is
  'Intended use of the home. Default: that of the reservation or purchase.';
comment on column app_public.offers.occupancy_type_other is
  E'@personal contract\n\nIntended use in words, if `occupancyType` is OTHER.';
comment on column app_public.offers.requested_credits is
  'Credits that the buyer requests from the seller towards closing costs.';
comment on column app_public.offers.comments is E'@personal\n\nComments for the other side.';
comment on column app_public.offers.expires_at is
  E'@insertOptional\n\nDeadline for the response of the other side; the offer is EXPIRED afterwards.';
comment on column app_public.offers.parent_id is
  'Id of the offer that it counters; must be the pending one, which is the default.';
comment on column app_public.offers.created_by_id is
  E'@inert An offer triggers no action.\n\nThe user who created it.';
comment on column app_public.offers.withdrawn_at is 'When the offer was withdrawn; null otherwise.';
comment on column app_public.offers.manual is 'Whether the team entered the offer on behalf of the buyer.';
comment on column app_public.offers.legal_name is
  E'@personal contract\n\nLegal name of the buyer at the time of the offer.';
comment on column app_public.offers.unit_id is E'@behavior -*\n\nThe unit.';
comment on column app_public.offers.lead_id is E'@behavior -*\n\nThe lead.';
comment on column app_public.offers.buyer_id is E'@behavior -*\n\nThe buyer.';
comment on column app_public.offers.reservation_id is E'@behavior -*\n\nThe reservation.';
comment on constraint offers_project_id_fkey on app_public.offers is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint offers_negotiation_id_fkey on app_public.offers is
  E'@parent\n@fieldName negotiation\n@foreignFieldName offers\n@backwardDescription The offers, latest first.\n\nThe '
  'negotiation.';
comment on constraint offers_parent_id_fkey on app_public.offers is
  E'@fieldName parent\n@backwardBehavior -*\n\nThe offer that it counters.';
comment on constraint offers_created_by_id_fkey on app_public.offers is
  E'@fieldName createdBy\n@backwardBehavior -*\n\nThe user who created it.';
comment on constraint offers_unit_id_fkey on app_public.offers is E'@behavior -*\n@backwardBehavior -*\n\nThe unit.';
comment on constraint offers_lead_id_fkey on app_public.offers is E'@behavior -*\n@backwardBehavior -*\n\nThe lead.';
comment on constraint offers_buyer_id_fkey on app_public.offers is E'@behavior -*\n@backwardBehavior -*\n\nThe buyer.';
comment on constraint offers_reservation_id_fkey on app_public.offers is
  E'@behavior -*\n@backwardBehavior -*\n\nThe reservation.';
comment on constraint offers_assignee_id_fkey on app_public.offers is
  E'@behavior -*\n@backwardBehavior -*\n\nThe member who has the deal.';
comment on constraint offers_place on app_public.offers is
  'There is already another offer in this round; read the negotiation again and repeat your change.';
comment on index app_public.offers_parent is 'This offer already has a counter-offer.';

create policy sellers on app_public.offer_responses for select to plat_user
  using ((select true from app_public.offers o where o.id = offer_id));

select app_private.make_project_record('offer_responses', 'offer_response', 'sale.write');

grant select on app_public.offer_responses to plat_user, plat_anonymous;

comment on table app_public.offer_responses is 'The response to an offer: acceptance or rejection. It is final.';
comment on column app_public.offer_responses.offer_id is 'Id of the offer that was answered.';
comment on column app_public.offer_responses.action is 'Whether the offer was accepted or rejected.';
comment on column app_public.offer_responses.side is 'Side that responded: the one that did not make the offer.';
comment on column app_public.offer_responses.manual is
  'Whether the team entered the response on behalf of the buyer.';
comment on column app_public.offer_responses.comments is E'@personal\n\nComments for the other side.';
comment on column app_public.offer_responses.fallout_reason_id is
  'Id of the fallout reason; null if the offer was accepted.';
comment on column app_public.offer_responses.responded_by_id is 'User who answered.';
comment on constraint offer_responses_once on app_public.offer_responses is 'This offer has already been answered.';
comment on constraint offer_responses_project_id_fkey on app_public.offer_responses is
  E'@behavior -*\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint offer_responses_offer_id_fkey on app_public.offer_responses is
  E'@parent\n@fieldName offer\n@foreignFieldName response\n@backwardDescription The response of the other side; '
  'null until there is one.\n\n'
  'The offer.';
comment on constraint offer_responses_fallout_reason_id_fkey on app_public.offer_responses is
  E'@fieldName falloutReason\n@backwardBehavior -*\n\n'
  'Reason for the rejection; null if the offer was accepted, or the viewer may not see it.';
comment on constraint offer_responses_responded_by_id_fkey on app_public.offer_responses is
  E'@fieldName respondedBy\n@backwardBehavior -*\n\nUser who answered.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('offer', 'status', 'COUNTERED', 'countered'), ('offer', 'status', 'ACCEPTED', 'accepted'),
  ('offer', 'status', 'REJECTED', 'rejected'),
  ('offer', 'status', 'EXPIRED', 'expired'), ('offer', 'status', 'WITHDRAWN', 'withdrawn');

create trigger _100_final before update on app_public.offers for each row
  when ((old.claim_id is not null and old.claim_id is distinct from new.claim_id)
    or row(old.id, old.organization_id, old.project_id, old.number, old.negotiation_id, old.round, old.sequence,
      old.side, old.kind, old.price, old.currency, old.delta,
      old.closing_date, old.earnest_money, old.financing_type, old.financing_contingency, old.amount_financed,
        old.occupancy_type, old.occupancy_type_other,
      old.requested_credits, old.comments, old.expires_at, old.parent_id, old.manual, old.legal_name, old.unit_id,
        old.inserted_at)
    is distinct from row(new.id, new.organization_id, new.project_id, new.number, new.negotiation_id, new.round,
      new.sequence,
      new.side, new.kind, new.price, new.currency, new.delta,
      new.closing_date, new.earnest_money, new.financing_type, new.financing_contingency, new.amount_financed,
        new.occupancy_type, new.occupancy_type_other,
      new.requested_credits, new.comments, new.expires_at, new.parent_id, new.manual, new.legal_name, new.unit_id,
        new.inserted_at))
  execute function app_private.tg__final();
create trigger _100_no_delete before delete on app_public.offers for each row execute function app_private.tg__final();
create trigger _100_no_truncate before truncate on app_public.offers for each statement
  execute function app_private.tg__final();
create trigger _100_final before update on app_public.offer_responses for each row
  when (row(old.id, old.organization_id, old.project_id, old.offer_id, old.action, old.side, old.manual, old.comments,
    old.fallout_reason_id, old.inserted_at)
    is distinct from row(new.id, new.organization_id, new.project_id, new.offer_id, new.action, new.side, new.manual,
      new.comments, new.fallout_reason_id, new.inserted_at))
  execute function app_private.tg__final();
create trigger _100_no_delete before delete on app_public.offer_responses for each row
  execute function app_private.tg__final();
create trigger _100_no_truncate before truncate on app_public.offer_responses for each statement
  execute function app_private.tg__final();

create or replace trigger _900_touch before update on app_public.offers for each row
  execute function app_private.tg__touch('assignee_id');

create function app_private.tg_offers__make() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  negotiation app_public.negotiations := app_private.lock_negotiation(new.negotiation_id);
  pending app_public.offers;
begin
  select * into pending from app_public.offers o where o.negotiation_id = negotiation.id and o.status = 'PENDING';
  if pending.expires_at <= clock_timestamp() then
    perform app_private.expire_offer(pending.id);
    pending := null;
    select * into negotiation from app_public.negotiations n where n.id = negotiation.id;
  end if;
  if negotiation.status in ('ACCEPTED', 'CANCELLED') then
    perform app_hidden.fail('INVALID_TRANSITION',
      format('This negotiation is %s; it accepts no further offers.', negotiation.status),
      jsonb_build_object('from', negotiation.status, 'to', 'ACTIVE', 'field', 'negotiationId', 'allowedTransitions',
        jsonb_build_array()));
  elsif pending.side = new.side then
    perform app_hidden.fail('CONFLICT', 'An offer of this side is pending; the other side must answer it first.',
      jsonb_build_object('field', 'side', 'existingId', pending.id));
  elsif new.parent_id <> pending.id or (new.parent_id is not null and pending.id is null) then
    perform app_hidden.fail('CONFLICT', 'That offer is not pending in this negotiation, so it cannot be countered.',
      jsonb_strip_nulls(jsonb_build_object('field', 'parentId', 'existingId', pending.id)));
  elsif new.expires_at <= now() then
    perform app_hidden.fail('BAD_USER_INPUT', 'The expiry of an offer must be in the future.',
      '{"field": "expiresAt"}');
  elsif new.expires_at > now() + interval '1 year' then
    perform app_hidden.fail('BAD_USER_INPUT', 'An offer can be valid for at most a year.', '{"field": "expiresAt"}');
  end if;
  perform app_private.negotiable_claim(negotiation, 'negotiationId');
  new.price := app_hidden.to_money(new.price, negotiation.currency, 'price');
  new.earnest_money := app_hidden.to_money(new.earnest_money, negotiation.currency, 'earnestMoney');
  new.amount_financed := app_hidden.to_money(new.amount_financed, negotiation.currency, 'amountFinanced');
  new.requested_credits := app_hidden.to_money(new.requested_credits, negotiation.currency, 'requestedCredits');
  if new.side = 'SELLER' then
    perform app_private.require_floor_price(negotiation, new.price, 'price');
  end if;

  new.project_id := negotiation.project_id;
  new.currency := negotiation.currency;
  new.unit_id := negotiation.unit_id;
  new.lead_id := negotiation.lead_id;
  new.buyer_id := negotiation.buyer_id;
  new.reservation_id := negotiation.reservation_id;
  new.assignee_id := negotiation.assignee_id;
  new.parent_id := pending.id;
  new.kind := case when pending.id is null then 'OFFER' else 'COUNTER_OFFER' end;
  new.round := negotiation.round + case when pending.id is null and exists (
    select from app_public.offers o where o.negotiation_id = negotiation.id) then 1 else 0 end;
  new.sequence := coalesce(pending.sequence, 0) + 1;
  new.delta := new.price - (select o.price from app_public.offers o where o.negotiation_id = negotiation.id
    order by o.round desc, o.sequence desc limit 1);
  new.expires_at := coalesce(new.expires_at, now() + make_interval(hours => negotiation.offer_expiration_hours));
  new.manual := new.side = 'BUYER' and app_public.current_user_id() is not null
    and not negotiation.id = any (array(select app_hidden.viewer_purchase_negotiations()));
  select coalesce(r.buyer_legal_name, b.legal_name, nullif(concat_ws(' ', b.first_name, b.last_name), ''), l.legal_name,
    l.name),
      coalesce(new.occupancy_type, r.occupancy_type, b.occupancy_type),
      case when coalesce(new.occupancy_type, 'OTHER') = 'OTHER'
        then coalesce(r.occupancy_type_other, b.occupancy_type_other) end
    into new.legal_name, new.occupancy_type, new.occupancy_type_other
    from (select) one
    left join app_public.reservations r on r.id = negotiation.reservation_id
    left join app_public.buyers b on b.id = negotiation.buyer_id
    left join app_public.leads l on l.id = negotiation.lead_id;

  perform set_config('plat.service', 'on', true);
  update app_public.offers o set status = 'COUNTERED' where o.id = pending.id;
  perform set_config('plat.service', before, true);
  return new;
end $$;
create trigger _010_make before insert on app_public.offers for each row execute function app_private.tg_offers__make();
create trigger _800_number before insert on app_public.offers for each row
  execute function app_private.tg__number('O', 'offer_counters');

create function app_private.tg_offers__withdrawn() returns trigger
language plpgsql volatile as $$
begin
  new.withdrawn_at := now();
  return new;
end $$;
create trigger _200_withdrawn before update on app_public.offers for each row
  when (new.status = 'WITHDRAWN' and old.status <> 'WITHDRAWN') execute function app_private.tg_offers__withdrawn();

create function app_private.tg_offers__activate() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.negotiations n set status = 'ACTIVE', round = new.round, turn = case new.side when 'BUYER'
    then 'SELLER' else 'BUYER' end
    where n.id = new.negotiation_id;
  perform set_config('plat.service', before, true);
  return null;
end $$;
create trigger _500_activate after insert on app_public.offers for each row
  execute function app_private.tg_offers__activate();

create function app_private.tg_offers__deposits() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.deposits d set offer_id = new.id
    where (d.lead_id = new.lead_id or d.buyer_id = new.buyer_id or d.buyer_id = (select b.id from app_public.buyers b
        where b.lead_id = new.lead_id and b.unit_id = new.unit_id and b.status <> 'CANCELLED' and b.deleted_at is null))
      and d.offer_id is null and (d.reservation_id is null or d.reservation_id = new.reservation_id)
      and d.deleted_at is null and d.status not in ('CANCELLED', 'WAIVED', 'REFUNDED')
      -- Not payments of the lead for another home that they bought.
      and coalesce((select b.unit_id = new.unit_id from app_public.buyers b
        where b.id = app_hidden.purchase_of_lead(d.lead_id, d.reservation_id)), true);
  return null;
end $$;
comment on function app_private.tg_offers__deposits() is
  'Links the buyer''s deposits to the accepted offer.';
create trigger _500_deposits after update of status on app_public.offers for each row
  when (new.status = 'ACCEPTED' and old.status <> 'ACCEPTED') execute function app_private.tg_offers__deposits();
