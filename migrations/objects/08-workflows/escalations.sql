-- Where the service itself meets what only a person can decide, and opens a ticket:
--
-- INVENTORY_CONFLICT a home is taken that somebody else still counts on: a reservation ran out at the very moment at
-- which
--                       another took the home; an accepted offer lost its claim to time, and another takes the home; a
--                       reservation is refunded whose home belongs to somebody else by now
--   DUPLICATE_LEAD      two leads of a project have one phone number, and different email addresses or none
--
-- What a caller meets is refused to the caller, with INVENTORY_UNAVAILABLE or CONFLICT, and is no ticket. Nothing that
-- a ticket says names the other party: not everybody who sees the one sees the other.

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
  -- Ran out in this transaction, since this one took its place: nobody had a moment to extend it.
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
  'Takes the home from whoever has it: their reservation is CANCELLED. Not from a purchase.';

create function app_private.merge_leads(kept_id uuid, gone_id uuid) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  service text := coalesce(current_setting('plat.service', true), '');
  kept app_public.leads;
  gone app_public.leads;
  reference record;
begin
  -- In the order of locks, of both at once.
  perform from app_public.reservations r where r.lead_id in (kept_id, gone_id) order by r.id for no key update;
  perform from app_public.negotiations n where n.lead_id in (kept_id, gone_id) order by n.id for no key update;
  perform from app_public.buyers b where b.lead_id in (kept_id, gone_id) order by b.id for no key update;
  perform from app_public.leads l where l.id in (kept_id, gone_id) order by l.id for no key update;
  -- A purchase keeps its lead, and what is open what is over; else the earlier one stays.
  select l.* into kept from app_public.leads l where l.id in (kept_id, gone_id) and l.deleted_at is null
    order by l.status = 'CONVERTED' desc, l.status in ('LOST', 'UNQUALIFIED'), l.id limit 1;
  select l.* into gone from app_public.leads l where l.id in (kept_id, gone_id) and l.deleted_at is null
    and l.id <> kept.id;
  if gone.id is null or gone.project_id <> kept.project_id then
    perform app_hidden.fail('CONFLICT', 'One of the two leads was deleted.');
  elsif exists (select from app_public.negotiations n join app_public.negotiations o on o.unit_id = n.unit_id
      where n.lead_id = kept.id and o.lead_id = gone.id and n.status not in ('ACCEPTED', 'CANCELLED')
        and o.status not in ('ACCEPTED', 'CANCELLED')
        and n.deleted_at is null and o.deleted_at is null) then
    perform app_hidden.fail('CONFLICT',
      'Both leads negotiate about the same unit; cancel one of the negotiations first.');
  end if;
  if (select count(*) from app_public.buyers b where b.lead_id in (kept.id, gone.id) and b.unit_id is null
    and b.lot_id is null and b.status <> 'CANCELLED' and b.deleted_at is null) > 1 then
    perform app_hidden.fail('CONFLICT',
      'Both leads have a purchase without a home; cancel or delete one of these purchases first.');
  end if;
  -- Whatever refers to the one refers to the other, whichever module made the reference.
  for reference in
    select c.conrelid::regclass as relation, a.attname as name,
      exists (select from pg_attribute d where d.attrelid = c.conrelid and d.attname = 'deleted_at'
        and not d.attisdropped) as is_soft
    from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
    where c.contype = 'f' and c.confrelid = 'app_public.leads'::regclass
    order by c.conrelid::regclass::text
  loop
    execute format('update %1$s set %2$I = $1 where %2$I = $2%3$s', reference.relation, reference.name,
      case when reference.is_soft then ' and deleted_at is null' else '' end) using kept.id, gone.id;
  end loop;
  -- The links in mails to the one lead to the other.
  insert into app_private.merged_leads (lead_id, into_id) values (gone.id, kept.id);
  perform set_config('plat.service', 'on', true);
  update app_public.leads l set deleted_at = now() where l.id = gone.id;
  update app_public.leads l set email = coalesce(l.email, gone.email), phone = coalesce(l.phone, gone.phone),
    address = case when l.address is distinct from null then l.address else gone.address end,
      company = coalesce(l.company, gone.company), preferred_language = coalesce(l.preferred_language,
        gone.preferred_language), legal_name = coalesce(l.legal_name, gone.legal_name),
      agent_id = coalesce(l.agent_id, gone.agent_id), is_represented = coalesce(l.is_represented, gone.is_represented),
        assignee_id = coalesce(l.assignee_id, gone.assignee_id),
      source = coalesce(l.source, gone.source), source_id = coalesce(l.source_id, gone.source_id),
        preapproved = coalesce(l.preapproved, gone.preapproved),
      -- Who withdrew as the one has withdrawn.
      subscribed = (l.subscribed or gone.subscribed) and l.unsubscribed_at is null and gone.unsubscribed_at is null,
      unsubscribed_at = greatest(l.unsubscribed_at, gone.unsubscribed_at), do_not_contact = l.do_not_contact
        or gone.do_not_contact,
      registered_at = least(l.registered_at, gone.registered_at),
        first_response_at = least(l.first_response_at, gone.first_response_at),
      last_interaction_at = greatest(l.last_interaction_at, gone.last_interaction_at),
      tags = coalesce((array(select distinct t from unnest(l.tags::text[] || gone.tags::text[]) t order by t))[1:50],
        '{}')
    where l.id = kept.id;
  perform set_config('plat.service', service, true);
  perform app_private.follow_deals(array[kept.id]);
  return kept.id;
end $$;
comment on function app_private.merge_leads(uuid, uuid) is
  'Makes two leads of a project one: a buyer, else an open one, else the earlier stays, gets whatever refers to the '
  'other and what it lacks itself; the other is deleted. Returns which stays.';

create function app_private.merge_leads_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if ticket.subject_type is distinct from 'lead' or ticket.lead_id is null or ticket.lead_id = ticket.subject_id then
    perform app_hidden.fail('CONFLICT', 'This ticket does not refer to two leads.');
  end if;
  -- Whoever works on own leads only merges own leads only; of the first one that was asked already.
  if app_public.current_user_id() is not null
    and not exists (select from app_public.leads l where l.id = ticket.subject_id and l.deleted_at is null
    and app_hidden.deal_can(l.organization_id, l.project_id, l.assignee_id, 'lead.write')) then
    perform app_hidden.fail('FORBIDDEN', 'You may not merge the other lead.', '{"permission": "lead.write"}');
  end if;
  perform app_private.merge_leads(ticket.lead_id, ticket.subject_id);
  return true;
end $$;
comment on function app_private.merge_leads_by_ticket(app_public.escalation_tickets) is
  'Makes the two leads of a ticket one.';
insert into app_hidden.ticket_actions (action, kind, permission, perform) values
  ('RELEASE_CLAIM', 'INVENTORY_CONFLICT', 'inventory.manage', 'app_private.release_claim_by_ticket'),
  ('MERGE', 'DUPLICATE_LEAD', 'lead.write', 'app_private.merge_leads_by_ticket');
