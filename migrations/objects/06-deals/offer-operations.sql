create function app_private.tg__final() returns trigger
language plpgsql volatile as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if tg_op = 'UPDATE' and app_private.is_erasing() then
    return new;
  end if;
  raise exception 'offers and answers are neither changed nor deleted' using errcode = 'restrict_violation';
end $$;
comment on function app_private.tg__final() is 'Refuses to change or delete immutable records.';

-- How an offer ends. Each of these is called under the lock of the unit.
create function app_private.end_offer(offer_id uuid, offer_status text, negotiation_status text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  negotiation_id uuid;
begin
  perform set_config('plat.service', 'on', true);
  update app_public.offers o set status = end_offer.offer_status where o.id = end_offer.offer_id
    and o.status = 'PENDING'
    returning o.negotiation_id into negotiation_id;
  update app_public.negotiations n set status = end_offer.negotiation_status where n.id = negotiation_id
    and n.status = 'ACTIVE';
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.end_offer(uuid, text, text) is
  'Ends a pending offer without agreement; its negotiation takes the status that matches.';

create function app_private.expire_offer(offer_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  negotiation app_public.negotiations;
  offer app_public.offers;
  reservation app_public.reservations;
begin
  negotiation := app_private.lock_negotiation((select o.negotiation_id from app_public.offers o
    where o.id = expire_offer.offer_id));
  select * into offer from app_public.offers o where o.id = expire_offer.offer_id and o.status = 'PENDING'
    and o.expires_at <= clock_timestamp();
  if offer.id is null then
    return;
  end if;
  -- Deadlines also expire in archived projects.
  perform set_config('plat.clock', 'on', true);
  perform app_private.end_offer(offer.id, 'EXPIRED', 'EXPIRED');
  -- The hours of the reservation count from the end of the offer, however late somebody looks.
  select * into reservation from app_public.reservations r where r.id = negotiation.reservation_id
    and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null;
  if reservation.id is not null then
    perform app_private.set_reservation_end(reservation,
      offer.expires_at + make_interval(hours => reservation.expiration), null);
  end if;
  perform set_config('plat.clock', '', true);
end $$;
comment on function app_private.expire_offer(uuid) is 'Expires an offer whose deadline has passed.';

create function app_private.accept_offer(offer app_public.offers, negotiation app_public.negotiations) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  claim app_hidden.claims := app_private.negotiable_claim(negotiation, 'offerId');
  other record;
begin
  if claim.subject_type = 'unit_hold' then
    perform app_private.take_over_hold(negotiation.unit_id, null, negotiation.lead_id, 'negotiation', negotiation.id);
    claim := null; -- it lasts longer than a hold
  end if;
  -- Without a reservation or purchase, the unit is claimed for the duration of a reservation of the
  -- project.
  claim := app_private.take_claim(negotiation.unit_id, null, coalesce(claim.kind, 'RESERVATION'),
    coalesce(claim.subject_type, 'negotiation'), coalesce(claim.subject_id, negotiation.id),
    case when claim.id is not null then claim.expires_at
      else now() + (select make_interval(hours => p.reservation_expiration) from app_public.projects p
        where p.id = negotiation.project_id) end,
    'PENDING');
  perform set_config('plat.service', 'on', true);
  update app_public.offers o set status = 'ACCEPTED', claim_id = claim.id where o.id = offer.id;
  update app_public.offers o set status = 'REJECTED' where o.unit_id = negotiation.unit_id and o.status = 'PENDING';
  update app_public.buyers b set price = offer.price where b.id = negotiation.buyer_id
    and b.status in ('DRAFT', 'OUT_FOR_SIGNATURE');
  -- In the order of leads, whose rows the steps lock.
  for other in
    select n.id from app_public.negotiations n where n.unit_id = negotiation.unit_id and n.status = 'ACTIVE'
      and n.deleted_at is null
    order by n.lead_id nulls first, n.id
  loop
    update app_public.negotiations n set status = case when n.id = negotiation.id then 'ACCEPTED' else 'REJECTED' end
      where n.id = other.id;
  end loop;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.accept_offer(app_public.offers, app_public.negotiations) is
  'Accepts a pending offer: the unit is PENDING under a claim that is taken or kept, every other pending offer on it '
  'is REJECTED, and by the steps of the negotiations the reservation has the price and lasts from now.';

create function app_private.require_floor_price(negotiation app_public.negotiations, price numeric,
  field text) returns void
language plpgsql stable as $$
begin
  if price < negotiation.floor_price and app_public.current_user_id() is not null
    and not app_hidden.project_can(negotiation.project_id, negotiation.organization_id, 'sale.strategy') then
    perform app_hidden.fail('FORBIDDEN', 'A price below the floor price requires the permission sale.strategy.',
      jsonb_build_object('permission', 'sale.strategy', 'field', field));
  end if;
end $$;
comment on function app_private.require_floor_price(app_public.negotiations, numeric, text) is
  'Refuses the seller a price below the floor price of the negotiation, unless they may set that.';

-- Operations. The sales team acts for either side (entries for the buyer are manual), a buyer for themselves.
create function app_private.begin_deal(negotiation_id uuid, field text, out sells boolean, out buys boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  negotiation app_public.negotiations;
begin
  perform app_hidden.require_viewer();
  select * into negotiation from app_public.negotiations n where n.id = begin_deal.negotiation_id
    and n.deleted_at is null;
  sells := app_hidden.deal_can(negotiation.organization_id, negotiation.project_id, negotiation.assignee_id,
    'sale.write');
  buys := coalesce(negotiation.id = any (array(select app_hidden.viewer_purchase_negotiations())), false);
  if not sells and not buys
    and not app_hidden.deal_can(negotiation.organization_id, negotiation.project_id, negotiation.assignee_id,
      'sale.read') then
    perform app_hidden.fail('NOT_FOUND',
      format('There is no such %s.', case field when 'negotiationId' then 'negotiation' else 'offer' end),
      jsonb_build_object('field', field));
  end if;
  if buys and not sells then
    perform set_config('plat.actor_type', 'BUYER', true);
  end if;
end $$;
comment on function app_private.begin_deal(uuid, text) is
  'The side for which the viewer may act in a negotiation; refuses viewers who cannot see it.';

create function app_private.require_side(side text, sells boolean, buys boolean, message text) returns void
language plpgsql stable as $$
begin
  if not (sells or (buys and side = 'BUYER')) then
    perform app_hidden.fail('FORBIDDEN', message, '{"permission": "sale.write"}');
  end if;
end $$;
comment on function app_private.require_side(text, boolean, boolean, text) is
  'Refuses to act for a side that is not the viewer''s: the team acts for both, a buyer for the buyer.';

create function app_public.create_offer(input jsonb) returns app_public.offers
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  negotiation uuid;
  countered uuid;
  rights record;
begin
  perform app_hidden.require_viewer();
  negotiation := app_hidden.record_id('negotiations', input ->> 'negotiation_id', 'negotiationId');
  select * into rights from app_private.begin_deal(negotiation, 'negotiationId');
  perform app_private.require_side(input ->> 'side', rights.sells, rights.buys,
    'You may make offers for the side of the buyer only.');
  -- Offers of other negotiations are as unknown as those that there are not.
  countered := app_hidden.record_id('offers', nullif(btrim(input ->> 'parent_id'), ''), 'parentId');
  if countered is not null and not exists (select from app_public.offers o
    where o.id = countered and o.negotiation_id = negotiation) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such offer.', '{"field": "parentId"}');
  end if;
  perform app_private.lock_negotiation(negotiation);
  return app_hidden.create_record(null::app_public.offers, input);
end $$;

create function app_public.withdraw_offer(id uuid) returns app_public.offers
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  offer app_public.offers;
  rights record;
begin
  select * into offer from app_public.offers o where o.id = withdraw_offer.id;
  select * into rights from app_private.begin_deal(offer.negotiation_id, 'id');
  perform app_private.require_side(offer.side, rights.sells, rights.buys,
    'Only the side that made an offer withdraws it.');
  perform app_private.lock_negotiation(offer.negotiation_id);
  perform app_private.require_pending(offer.id, 'WITHDRAWN');
  perform app_private.end_offer(offer.id, 'WITHDRAWN', 'OPEN');
  select * into offer from app_public.offers o where o.id = withdraw_offer.id;
  return offer;
end $$;

create function app_private.require_pending(offer_id uuid, wanted text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  offer app_public.offers;
begin
  select * into offer from app_public.offers o where o.id = require_pending.offer_id;
  -- After waiting for the lock, the offer may have expired.
  if offer.status = 'PENDING' and offer.expires_at <= clock_timestamp() then
    offer.status := 'EXPIRED';
  end if;
  if offer.status <> 'PENDING' then
    perform app_hidden.fail('INVALID_TRANSITION', format('This offer is %s, which is final.', offer.status),
      jsonb_build_object('from', offer.status, 'to', wanted, 'field', 'status', 'allowedTransitions',
        jsonb_build_array()));
  end if;
end $$;
comment on function app_private.require_pending(uuid, text) is 'Refuses to end an offer that has ended.';

create function app_public.create_offer_response(offer_id uuid, action app_public.offer_response_action,
  comments app_public.long_text default null,
  fallout_reason_id uuid default null) returns app_public.offer_responses
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  offer app_public.offers;
  negotiation app_public.negotiations;
  rights record;
  answering text;
  response app_public.offer_responses;
begin
  select * into offer from app_public.offers o where o.id = create_offer_response.offer_id;
  select * into rights from app_private.begin_deal(offer.negotiation_id, 'offerId');
  answering := case offer.side when 'BUYER' then 'SELLER' else 'BUYER' end;
  perform app_private.require_side(answering, rights.sells, rights.buys, 'Only the other side answers an offer.');
  if fallout_reason_id is not null then
    if create_offer_response.action <> 'REJECT' then
      perform app_hidden.fail('BAD_USER_INPUT', 'Only a rejection can have a fallout reason.',
        '{"field": "falloutReasonId"}');
    elsif not rights.sells or not exists (select from app_public.fallout_reasons f
        where f.id = create_offer_response.fallout_reason_id and f.project_id = offer.project_id
          and f.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such fallout reason in this project.',
        '{"field": "falloutReasonId"}');
    elsif not exists (select from app_public.fallout_reasons f
        where f.id = create_offer_response.fallout_reason_id and 'NEGOTIATION' = any (f.applies_to::text[])) then
      perform app_hidden.fail('BAD_USER_INPUT', 'This fallout reason does not apply to negotiations.',
        '{"field": "falloutReasonId"}');
    end if;
  end if;
  negotiation := app_private.lock_negotiation(offer.negotiation_id);
  perform app_private.require_pending(offer.id, case create_offer_response.action when 'ACCEPT' then 'ACCEPTED'
    else 'REJECTED' end);
  if answering = 'SELLER' and create_offer_response.action = 'ACCEPT' then
    perform app_private.require_floor_price(negotiation, offer.price, 'offerId');
  end if;
  insert into app_public.offer_responses (project_id, offer_id, action, side, manual, comments, fallout_reason_id)
    values (offer.project_id, offer.id, create_offer_response.action, answering, answering = 'BUYER'
      and not rights.buys,
      create_offer_response.comments, create_offer_response.fallout_reason_id)
    returning * into response;
  if create_offer_response.action = 'ACCEPT' then
    perform app_private.accept_offer(offer, negotiation);
  else
    perform app_private.end_offer(offer.id, 'REJECTED', 'REJECTED');
  end if;
  return response;
end $$;
grant execute on function app_public.create_offer, app_public.withdraw_offer, app_public.create_offer_response to
  plat_user, plat_anonymous;
comment on function app_public.create_offer is
  'Makes an offer in a negotiation, or counters the pending offer of the other side. The team can make offers for '
  'either side, a buyer only their own. The offer expires at `expiresAt`; if omitted, after `offerExpirationHours` '
  'of the negotiation.';
comment on function app_public.withdraw_offer is
  'Withdraws a pending offer. Only the side that made the offer can do so. The negotiation becomes OPEN.';
comment on function app_public.create_offer_response is
  E'@arg offerId Id of the pending offer.\n@arg action Whether the offer is accepted or rejected.\n@arg comments '
  'Comments for the other side.\n@arg falloutReasonId Id of a fallout reason of the project that applies to '
  'negotiations; only with REJECT.\n\n'
  'Accepts or rejects a pending offer; this is final. Only the side that did not make the offer can respond. The '
  'team responds for the seller and can record a buyer''s offline response. ACCEPT sets the unit to PENDING and '
  'rejects all other pending offers on it.';
