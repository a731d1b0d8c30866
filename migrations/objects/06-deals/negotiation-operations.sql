-- The party that has a unit.
create function app_private.claim_is_of(claim app_hidden.claims, negotiation app_public.negotiations) returns boolean
language sql stable as $$
  select coalesce(claim.subject_id in (negotiation.id, negotiation.reservation_id, negotiation.buyer_id), false)
    or exists (select from app_public.reservations r where r.id = claim.subject_id
      and (r.lead_id = negotiation.lead_id or r.purchase_id = negotiation.buyer_id))
    or exists (select from app_public.buyers b where b.id = claim.subject_id and b.lead_id = negotiation.lead_id)
    or exists (select from app_public.negotiations n where n.id = claim.subject_id
      and (n.lead_id = negotiation.lead_id or n.buyer_id = negotiation.buyer_id))
    or (claim.subject_type = 'unit_hold' and app_private.hold_is_of(claim.subject_id, negotiation.lead_id))
$$;
comment on function app_private.claim_is_of(app_hidden.claims, app_public.negotiations) is
  'Whether a claim belongs to the negotiating party: to their reservation, purchase, accepted offer or hold.';

create function app_private.negotiable_claim(negotiation app_public.negotiations, field text) returns app_hidden.claims
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  unit app_public.units;
  claim app_hidden.claims;
  mine app_hidden.claims;
begin
  select * into unit from app_public.units u where u.id = negotiation.unit_id and u.deleted_at is null;
  for claim in
    select c.* from app_hidden.claims c where c.released_at is null and (c.unit_id = unit.id or c.lot_id = unit.lot_id)
      order by c.id
  loop
    if app_hidden.claim_is_over(claim) then
      perform app_private.release_claim(claim.id, 'EXPIRED');
    elsif claim.unit_id = unit.id and app_private.claim_is_of(claim, negotiation) then
      mine := claim;
    else
      perform app_private.refuse_claimed(claim, field);
    end if;
  end loop;
  select * into unit from app_public.units u where u.id = negotiation.unit_id and u.deleted_at is null;
  if unit.id is null or unit.status in ('SOLD', 'CLOSED') or (mine.id is null and unit.status <> 'AVAILABLE') then
    perform app_hidden.fail('INVENTORY_UNAVAILABLE',
      format('This unit is not for sale: it is %s.', coalesce(unit.status, 'deleted')),
      jsonb_build_object('claimedUntil', null, 'field', field));
  end if;
  return mine;
end $$;
comment on function app_private.negotiable_claim(app_public.negotiations, text) is
  'The negotiating party''s claim on the unit, null for a free unit; refuses with INVENTORY_UNAVAILABLE units that '
  'are claimed by somebody else or not for sale.';

create function app_private.lock_negotiation(negotiation_id uuid) returns app_public.negotiations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  negotiation app_public.negotiations;
begin
  select * into negotiation from app_public.negotiations n where n.id = lock_negotiation.negotiation_id;
  perform app_private.lock_inventory(negotiation.unit_id, null);
  perform from app_public.reservations r where r.id = negotiation.reservation_id for no key update;
  select * into negotiation from app_public.negotiations n where n.id = lock_negotiation.negotiation_id
    and n.deleted_at is null for no key update;
  return negotiation;
end $$;
comment on function app_private.lock_negotiation(uuid) is
  'Locks the unit of a negotiation, then the negotiation, and returns its current row.';

create function app_public.update_negotiation(input jsonb) returns app_public.negotiations
language plpgsql volatile as $$
declare
  negotiation_id uuid;
begin
  perform app_hidden.require_viewer();
  if input ->> 'status' = 'CANCELLED' then
    select n.id into negotiation_id from app_public.negotiations n
      where n.id = app_hidden.record_id('negotiations', input ->> 'id');
    perform app_hidden.lock_seen('app_public.negotiations', negotiation_id);
  end if;
  return app_hidden.update_record(null::app_public.negotiations, input);
end $$;
grant execute on function app_public.update_negotiation to plat_user, plat_anonymous;
comment on function app_public.update_negotiation is
  'Updates a negotiation, or cancels it: the status CANCELLED requires a `cancellationReason` and withdraws the '
  'pending offer. Any other status is refused with INVALID_TRANSITION, because it follows from the offers. Omitted '
  'fields stay unchanged.';

create function app_private.end_negotiations(unit_id uuid default null, reservation_id uuid default null,
  buyer_id uuid default null, lead_id uuid default null,
  reason text default null) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  target uuid;
  amount int := 0;
begin
  for target in
    select n.id from app_public.negotiations n
    where (n.unit_id = end_negotiations.unit_id or n.reservation_id = end_negotiations.reservation_id
        or n.buyer_id = end_negotiations.buyer_id or n.lead_id = end_negotiations.lead_id)
      and n.status not in ('ACCEPTED', 'CANCELLED') and n.deleted_at is null
    order by n.lead_id nulls first, n.id
  loop
    perform set_config('plat.service', 'on', true);
    update app_public.negotiations n set status = 'CANCELLED', cancellation_reason = coalesce(reason, 'The deal ended.')
      where n.id = target and n.status not in ('ACCEPTED', 'CANCELLED');
    perform set_config('plat.service', before, true);
    amount := amount + 1;
  end loop;
  return amount;
end $$;
comment on function app_private.end_negotiations(uuid, uuid, uuid, uuid, text) is
  'Cancels the open negotiations about a unit, of a reservation, a buyer or a lead, as the service; their pending '
  'offers are WITHDRAWN. Acceptance is final. Returns how many. Callers hold the lock of the unit.';
