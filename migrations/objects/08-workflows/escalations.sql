-- Cases in which the service itself opens a ticket:
--
--   INVENTORY_CONFLICT  a home is claimed although another party relies on it: a reservation expired at the moment at
--                       which another claimed the home; an accepted offer lost its claim by expiry, and another claims
--                       the home; a reservation is refunded whose home belongs to another party by now
--   DUPLICATE_LEAD      two leads of a project have the same phone number, and different email addresses or none
--
-- Conflicts of a request are errors of the request, INVENTORY_UNAVAILABLE or CONFLICT, and open no ticket. Tickets
-- never name the other party, because their readers may not see it.

create function app_private.open_inventory_conflict(claim app_hidden.claims, subject_type text, subject_id uuid,
  lead_id uuid, what text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  home text := coalesce((select 'unit ' || coalesce(u.number, u.title, u.id::text) from app_public.units u
    where u.id = claim.unit_id),
    (select 'lot ' || l.number from app_public.lots l where l.id = claim.lot_id));
begin
  perform app_private.open_ticket('INVENTORY_CONFLICT', format('inventory:%s:%s', subject_id, claim.id),
    claim.organization_id,
    format('Somebody else has %s', home), '{RELEASE_CLAIM,DISMISS}', project_id => claim.project_id,
    description => format('%s Somebody else has %s now. RELEASE_CLAIM takes it from them, so that it is for sale '
      'again; DISMISS leaves it with them.', what, home),
    priority => 'HIGH', lead_id => lead_id, subject_type => subject_type, subject_id => subject_id,
    input => jsonb_build_object('claim_id', claim.id));
end $$;
comment on function app_private.open_inventory_conflict(app_hidden.claims, text, uuid, uuid, text) is
  'Opens a ticket because the claim has a home that the subject counts on.';

create function app_private.tg_claims__conflict() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  loser record;
begin
  if not exists (select from app_hidden.claims c where c.id = new.id and c.released_at is null) then
    return null;
  end if;
  -- Expired in this transaction, because this one replaced it: nobody had time to extend it.
  for loser in
    select r.id, r.number, r.lead_id from app_hidden.claims c join app_public.reservations r on r.id = c.subject_id
      and r.status = 'EXPIRED' and r.deleted_at is null
    where (c.unit_id = new.unit_id or (new.unit_id is null and c.lot_id = new.lot_id)) and c.id <> new.id
      and c.released_at >= now() and c.release_reason = 'EXPIRED' and c.subject_type = 'reservation'
      and not app_private.is_party_of_claim(new, r.lead_id)
  loop
    perform app_private.open_inventory_conflict(new, 'reservation', loser.id, loser.lead_id,
      format('Reservation %s ran out at the moment at which another took the home.', loser.number));
  end loop;
  -- An accepted offer holds the home for as long as a reservation lasts; without a purchase by then, others may take
  -- it.
  for loser in
    select n.id, n.lead_id from app_public.negotiations n
    join app_public.offers o on o.negotiation_id = n.id and o.status = 'ACCEPTED'
    join app_hidden.claims c on c.id = o.claim_id and c.released_at is not null and c.release_reason = 'EXPIRED'
    where n.unit_id = new.unit_id and n.status = 'ACCEPTED' and n.deleted_at is null
      and not app_private.claim_is_of(new, n)
      and not exists (select from app_public.leads l where l.id = n.lead_id
        and (l.deleted_at is not null or l.status in ('CONVERTED', 'LOST', 'UNQUALIFIED')))
      and not exists (select from app_public.buyers b where (b.id = n.buyer_id or b.lead_id = n.lead_id)
        and b.unit_id = n.unit_id and b.status = 'CANCELLED')
  loop
    perform app_private.open_inventory_conflict(new, 'negotiation', loser.id, loser.lead_id,
      'An offer was accepted, and no purchase followed in time.');
  end loop;
  return null;
end $$;
comment on function app_private.tg_claims__conflict() is
  'Opens a ticket where a home was taken that somebody else still counts on.';

create function app_private.is_party_of_claim(claim app_hidden.claims, lead_id uuid) returns boolean
language sql stable as $$
  select $2 is not null and exists (
    select from app_public.reservations r where r.id = claim.subject_id and r.lead_id = $2
    union all select from app_public.buyers b where b.id = claim.subject_id and b.lead_id = $2
    union all select from app_public.negotiations n where n.id = claim.subject_id and n.lead_id = $2
    union all select from app_public.unit_holds h where h.id = claim.subject_id and h.lead_id = $2)
$$;
comment on function app_private.is_party_of_claim(app_hidden.claims, uuid) is
  'Whether a claim is of this lead: of its reservation, purchase, accepted offer or hold.';

create function app_private.release_claim_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  claim app_hidden.claims;
begin
  select c.* into claim from app_hidden.claims c where c.id = (ticket.input ->> 'claim_id')::uuid;
  perform app_private.lock_inventory(claim.unit_id, claim.lot_id);
  select c.* into claim from app_hidden.claims c where c.id = claim.id and c.released_at is null;
  if claim.id is null then
    return true; -- nobody has it any more
  elsif claim.kind = 'PURCHASE' then
    perform app_hidden.fail('CONFLICT',
      'The home has been bought: cancel that purchase with updateBuyer, or dismiss this ticket.');
  elsif claim.subject_type = 'reservation' then
    perform app_private.end_reservation(claim.subject_id, 'CANCELLED',
      coalesce(ticket.note, 'The home was promised to somebody else.'));
  else
    perform app_private.release_claim(claim.id, 'CANCELLED');
  end if;
  return true;
end $$;
comment on function app_private.release_claim_by_ticket(app_public.escalation_tickets) is
  'Releases the home from its claimant: their reservation is CANCELLED. Not from a purchase.';

create function app_private.merge_leads_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if ticket.subject_type is distinct from 'lead' or ticket.lead_id is null or ticket.lead_id = ticket.subject_id then
    perform app_hidden.fail('CONFLICT', 'This ticket does not refer to two leads.');
  end if;
  -- Users with own leads only merge own leads; the first one was checked already.
  if app_public.current_user_id() is not null
    and not exists (select from app_public.leads l where l.id = ticket.subject_id and l.deleted_at is null
    and app_hidden.deal_can(l.organization_id, l.project_id, l.assignee_id, 'lead.write')) then
    perform app_hidden.fail('FORBIDDEN', 'You may not merge the other lead.', '{"permission": "lead.write"}');
  end if;
  perform app_private.merge_duplicates(ticket.lead_id, ticket.subject_id);
  return true;
end $$;
comment on function app_private.merge_leads_by_ticket(app_public.escalation_tickets) is
  'Makes the two leads of a ticket one.';
insert into app_hidden.ticket_actions (action, kind, permission, perform) values
  ('RELEASE_CLAIM', 'INVENTORY_CONFLICT', 'inventory.manage', 'app_private.release_claim_by_ticket'),
  ('MERGE', 'DUPLICATE_LEAD', 'lead.write', 'app_private.merge_leads_by_ticket');
