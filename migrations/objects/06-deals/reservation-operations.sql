-- A new assignee gets the records of the lead: these are locked before the lead, as everywhere.
create function app_private.lock_lead(lead_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from app_public.reservations r where r.lead_id = lock_lead.lead_id order by r.id for no key update;
  perform from app_public.negotiations n where n.lead_id = lock_lead.lead_id order by n.id for no key update;
  perform from app_public.buyers b where b.lead_id = lock_lead.lead_id order by b.id for no key update;
  perform from app_public.leads l where l.id = lock_lead.lead_id for no key update;
end $$;
comment on function app_private.lock_lead(uuid) is
  'Locks a lead and, before it, its deals.';

create function app_private.lock_leads(ids uuid[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from app_public.reservations r where r.lead_id = any (ids) order by r.id for no key update;
  perform from app_public.negotiations n where n.lead_id = any (ids) order by n.id for no key update;
  perform from app_public.buyers b where b.lead_id = any (ids) order by b.id for no key update;
  perform from app_public.leads l where l.id = any (ids) order by l.id for no key update;
end $$;
comment on function app_private.lock_leads(uuid[]) is
  'Locks leads and, before them, their deals; each in the order of ids.';

create function app_hidden.lock_seen_leads(ids uuid[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.lock_leads(array(select l.id from app_public.leads l where l.id = any (ids)
    and l.deleted_at is null and app_hidden.deal_can(l.organization_id, l.project_id, l.assignee_id, 'lead.write')));
end $$;
comment on function app_hidden.lock_seen_leads(uuid[]) is
  'Locks those of the leads that the viewer may write, and their deals, in the order of locks.';

create function app_hidden.lock_seen(relation regclass, id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if id is null or not app_private.viewer_sees(relation, id) then
    return;
  end if;
  case relation::text
    when 'app_public.leads' then perform app_private.lock_lead(id);
    when 'app_public.buyers' then perform app_private.lock_purchase(id);
    when 'app_public.reservations' then perform app_private.lock_reservation(id);
    when 'app_public.unit_holds' then
      perform app_private.lock_inventory(h.unit_id, h.lot_id) from app_public.unit_holds h where h.id = lock_seen.id;
    when 'app_public.negotiations' then perform app_private.lock_negotiation(id);
    when 'app_public.appointments' then
      perform app_private.lock_lead_or_buyer(a.lead_id, a.buyer_id) from app_public.appointments a
        where a.id = lock_seen.id;
  end case;
end $$;
comment on function app_hidden.lock_seen(regclass, uuid) is
  'Locks a record that the viewer can see, in the order of locks; returns nothing for others.';

-- Functions for other modules. Callers follow the order of locks: they must not hold locks of a negotiation, offer,
-- purchase or lead.
create function app_private.lock_reservation(reservation_id uuid) returns app_public.reservations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  reservation app_public.reservations;
begin
  select * into reservation from app_public.reservations r where r.id = reservation_id;
  perform app_private.lock_inventory(reservation.unit_id, reservation.lot_id);
  select * into reservation from app_public.reservations r where r.id = reservation_id for no key update;
  return reservation;
end $$;
comment on function app_private.lock_reservation(uuid) is
  'Locks a reservation and what it is about, in the order of locks, and returns it as it is now.';

create function app_private.end_reservation(reservation_id uuid, status text, reason text default null,
  fallout_reason_id uuid default null) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  reservation app_public.reservations := app_private.lock_reservation(reservation_id);
  before text := coalesce(current_setting('plat.service', true), '');
begin
  if reservation.id is null or reservation.status not in ('PENDING', 'CONFIRMED') then
    return false;
  end if;
  perform set_config('plat.service', 'on', true);
  update app_public.reservations r set status = end_reservation.status,
    cancellation_reason = coalesce(reason, r.cancellation_reason),
      fallout_reason_id = coalesce(end_reservation.fallout_reason_id, r.fallout_reason_id)
    where r.id = reservation.id;
  perform set_config('plat.service', before, true);
  return true;
end $$;
comment on function app_private.end_reservation(uuid, text, text, uuid) is
  'Ends an open reservation, as EXPIRED or CANCELLED: its claim is released and its lead follows. Returns false '
  'and changes nothing if it has ended.';

create function app_private.set_reservation_end(reservation app_public.reservations, expires_at timestamptz,
  price numeric) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_hidden.claims c set expires_at = set_reservation_end.expires_at
    where c.subject_id = reservation.id and c.released_at is null and c.kind = 'RESERVATION'
      and c.expires_at is distinct from set_reservation_end.expires_at;
  update app_public.reservations r set expires_at = set_reservation_end.expires_at,
    price = coalesce(set_reservation_end.price, r.price)
    where r.id = reservation.id and (r.expires_at is distinct from set_reservation_end.expires_at or r.price is distinct
      from coalesce(set_reservation_end.price, r.price));
end $$;
comment on function app_private.set_reservation_end(app_public.reservations, timestamptz, numeric) is
  'Sets the same deadline for an open reservation and its claim, and the price if one is given.';

create function app_private.pause_reservation(reservation_id uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  reservation app_public.reservations := app_private.lock_reservation(reservation_id);
begin
  if reservation.id is null or reservation.status not in ('PENDING', 'CONFIRMED') then
    return false;
  elsif reservation.expires_at <= clock_timestamp() then
    perform app_private.end_reservation(reservation.id, 'EXPIRED');
    return false;
  end if;
  perform app_private.set_reservation_end(reservation, null, null);
  return true;
end $$;
comment on function app_private.pause_reservation(uuid) is
  'Lets an open reservation last as long as a negotiation about it is active. Returns false if it has ended.';

create function app_private.resume_reservation(reservation_id uuid, price numeric default null) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  reservation app_public.reservations := app_private.lock_reservation(reservation_id);
begin
  if reservation.id is null or reservation.status not in ('PENDING', 'CONFIRMED') then
    return false;
  end if;
  perform app_private.set_reservation_end(reservation, now() + make_interval(hours => reservation.expiration),
    resume_reservation.price);
  return true;
end $$;
comment on function app_private.resume_reservation(uuid, numeric) is
  'Lets the hours of an open reservation count from now on, at the price that was agreed on where one is given. '
  'Returns false if it has ended.';

create function app_private.tg_claims__reservation() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  ended constant uuid[] := array(select n.subject_id from new_rows n full join old_rows o using (id)
    where case when n.released_at is not null and n.subject_type = 'reservation' and n.release_reason = 'EXPIRED'
      then o.released_at is null else false end);
begin
  if ended = '{}' then
    return null;
  end if;
  -- The release of the claims has locked their homes.
  perform from app_public.reservations r where r.id = any (ended) order by r.id for no key update;
  perform set_config('plat.service', 'on', true);
  update app_public.reservations r set status = 'EXPIRED'
    where r.id = any (ended) and r.status in ('PENDING', 'CONFIRMED');
  perform set_config('plat.service', before, true);
  return null;
end $$;
comment on function app_private.tg_claims__reservation() is
  'An expired claim ends its reservation, regardless of who released it.';

create function app_hidden.deal_can(organization_id uuid, project_id uuid, assignee_id uuid,
  permission text) returns boolean
language sql stable as $$
  select coalesce(organization_id = any ((select app_hidden.viewer_organizations(permission))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects(permission))::uuid[])
    or (assignee_id = (select app_public.current_user_id())
      and project_id = any ((select app_hidden.viewer_own_projects(permission))::uuid[])), false)
$$;
comment on function app_hidden.deal_can(uuid, uuid, uuid, text) is
  'Whether the viewer has the permission for a deal, as one of the sales team: the same as the policies of '
  'make_deal_table.';

create function app_private.reserve_as_buyer(input jsonb) returns app_public.reservations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  purchase app_public.buyers;
  result app_public.reservations;
  before text := coalesce(current_setting('plat.actor_type', true), '');
begin
  select b.* into purchase from app_public.buyers b
    where b.id = any (array(select app_hidden.viewer_purchases())) and b.status <> 'CANCELLED'
      and b.project_id in (
        select u.project_id from app_public.units u where u.id = (input ->> 'unit_id')::uuid
          and u.status <> 'UNRELEASED' and u.deleted_at is null
        union all select l.project_id from app_public.lots l where l.id = (input ->> 'lot_id')::uuid
          and l.status <> 'UNRELEASED' and l.deleted_at is null)
    order by b.id desc limit 1;
  if purchase.id is null then
    return null;
  end if;
  perform app_private.refuse_team_fields(input);
  perform set_config('plat.actor_type', 'BUYER', true);
  result := app_hidden.create_record(null::app_public.reservations,
    input || jsonb_build_object('buyer_id', app_public.current_user_id(),
    'assignee_id', purchase.assignee_id,
    'lead_id', (select l.id from app_public.leads l where l.id = purchase.lead_id and l.deleted_at is null
      and l.status not in ('LOST', 'UNQUALIFIED'))));
  perform set_config('plat.actor_type', before, true);
  return app_hidden.masked(result);
end $$;
comment on function app_private.reserve_as_buyer(jsonb) is
  'Reserves for the viewer as a buyer, assigned to the assignee of their purchase in the project; null for viewers '
  'without one.';

create function app_private.cancel_as_buyer(input jsonb) returns app_public.reservations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  reservation app_public.reservations := app_private.lock_reservation((input ->> 'id')::uuid);
  before text := coalesce(current_setting('plat.actor_type', true), '');
begin
  if reservation.buyer_id is distinct from app_public.current_user_id() or app_public.current_user_id() is null
    or reservation.id <> all (array(select app_hidden.viewer_purchase_reservations()))
    or input ->> 'status' is distinct from 'CANCELLED'
      or input - '{id,status,cancellation_reason,expected_version}'::text[] <> '{}' then
    perform app_hidden.fail('FORBIDDEN',
      'Buyers can only cancel their own reservation, with a reason; the sales team changes everything else.',
      '{"permission": "sale.write"}');
  end if;
  perform set_config('plat.actor_type', 'BUYER', true);
  reservation := app_hidden.update_record(null::app_public.reservations, input);
  perform set_config('plat.actor_type', before, true);
  return app_hidden.masked(reservation);
end $$;
comment on function app_private.cancel_as_buyer(jsonb) is 'Cancels a reservation that the viewer made as a buyer.';

grant execute on function app_private.reserve_as_buyer, app_private.cancel_as_buyer to plat_user;

create function app_public.create_reservation(input jsonb) returns app_public.reservations
language plpgsql volatile as $$
declare
  home record;
  result app_public.reservations;
begin
  perform app_hidden.require_viewer();
  select * into home from app_hidden.home_of(input);
  if app_hidden.project_can(home.project_id, home.organization_id, 'sale.write') then
    return app_hidden.create_record(null::app_public.reservations, input);
  end if;
  result := app_private.reserve_as_buyer(input || jsonb_build_object('unit_id', home.unit_id, 'lot_id', home.lot_id));
  if result.id is null then
    result := app_private.reserve_as_visitor(input
      || jsonb_build_object('unit_id', home.unit_id, 'lot_id', home.lot_id));
  end if;
  if result.id is not null then
    return result;
  elsif home.project_id is null then
    perform app_hidden.fail('NOT_FOUND',
      format('There is no such %s.', case when home.unit_id is not null then 'unit' else 'lot' end),
      jsonb_build_object('field', home.field));
  end if;
  perform app_hidden.refuse('reservations', 'create');
  return null;
end $$;
comment on function app_public.create_reservation is
  E'Reserves a unit or a lot exclusively until the reservation ends. Nobody is charged. Signed-in buyers can '
  'reserve for themselves in projects where they have a purchase; so can any signed-in user in a public project '
  'that allows it (`publicReservations`), where paying the fee confirms the reservation.';

create function app_public.update_reservation(input jsonb) returns app_public.reservations
language plpgsql volatile as $$
declare
  reservation app_public.reservations;
begin
  perform app_hidden.require_viewer();
  select r.* into reservation from app_hidden.masked_reservations r
    where r.id = app_hidden.record_id('reservations', input ->> 'id');
  if reservation.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such reservation.', '{"field": "id"}');
  elsif not app_hidden.deal_can(reservation.organization_id, reservation.project_id, reservation.assignee_id,
    'sale.write') then
    if reservation.buyer_id = app_public.current_user_id() then
      return app_private.cancel_as_buyer(input || jsonb_build_object('id', reservation.id));
    end if;
    perform app_hidden.refuse('reservations', 'change');
  end if;
  perform app_hidden.lock_seen('app_public.reservations', reservation.id);
  return app_hidden.update_record(null::app_public.reservations, input);
end $$;
comment on function app_public.update_reservation is
  E'Updates a reservation: confirms it, cancels it with a reason, restarts its deadline (`expiration`), or reverses '
  'it. The status REFUNDED cancels the purchase and offers the unit or lot again at its original list price; '
  'charges are refunded separately with `refundProcessorCharge`. Omitted fields stay unchanged.';
grant execute on function app_public.create_reservation, app_public.update_reservation to plat_user, plat_anonymous;

create function app_private.personalization_total(unit_id uuid, lead_id uuid, buyer_id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(sum((app_private.personalization_sums(p)).total), 0) from app_public.personalizations p
  where p.unit_id = $1 and (p.lead_id = $2 or p.buyer_id = $3) and p.status in ('APPROVED', 'SIGNED', 'LOCKED')
    and p.deleted_at is null
$$;
comment on function app_private.personalization_total(uuid,uuid,uuid) is
  'What the options chosen for a unit by a lead or buyer come to.';

create function app_private.options_total(unit_id uuid, lead_id uuid, buyer_id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(sum((app_private.personalization_sums(p)).total), 0) from app_public.personalizations p
  where p.unit_id = $1 and (p.lead_id = $2 or p.buyer_id = $3) and p.status in ('APPROVED', 'SIGNED', 'LOCKED')
    and p.deleted_at is null and app_private.sees_personalization(p)
$$;
comment on function app_private.options_total(uuid, uuid, uuid) is
  'What the options chosen for a unit by a lead or buyer come to, of deals that the viewer has a part in.';
grant execute on function app_private.options_total to plat_user, plat_anonymous;

-- PERF: checking whether the viewer is its buyer takes a tenth of checking whether they work on it, and most viewers
-- are not buyers.
create function app_hidden.is_viewers_reservation(reservation_id uuid) returns boolean
language plpgsql stable as $$ begin return reservation_id = any (array(select
  app_hidden.viewer_purchase_reservations())); end $$;
comment on function app_hidden.is_viewers_reservation(uuid) is 'Whether the viewer sees the reservation as its buyer.';
