-- Converting a lead to a buyer: its reservation, or an available unit or lot, becomes its purchase. Once for each home:
-- a repeated or concurrent request returns the existing purchase. A lead that buys another home is converted again,
-- with that home specified: it is CONVERTED since the first time, and counts once. Only cancelling its purchases undoes
-- a conversion.

create function app_private.convert_lead(lead_id uuid, reservation_id uuid, unit_id uuid, lot_id uuid,
  price numeric, legal_name text,
  purchase_date date, estimated_closing_date date) returns app_public.buyers
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  lead app_public.leads;
  permission text;
  reservation app_public.reservations;
  candidates uuid[];
  rescission_ends_at timestamptz;
  asking numeric := price;
  existing_id uuid;
  result app_public.buyers;
begin
  select * into lead from app_public.leads l where l.id = convert_lead.lead_id
    and app_private.viewer_sees('app_public.leads', l.id);
  if lead.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead.', '{"field": "leadId"}');
  end if;
  foreach permission in array array['lead.write', 'buyer.write'] loop
    if not app_hidden.project_can(lead.project_id, lead.organization_id, permission) then
      perform app_hidden.fail('FORBIDDEN', format('This requires the permission %s.', permission),
        jsonb_build_object('permission', permission));
    end if;
  end loop;
  if num_nonnulls(unit_id, lot_id) > 1 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify the unit or the lot, not both.', '{"field": "lotId"}');
  elsif unit_id is not null and not exists (select from app_public.units u where u.id = convert_lead.unit_id
    and u.project_id = lead.project_id and app_private.viewer_sees('app_public.units', u.id)) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such unit in this project.', '{"field": "unitId"}');
  elsif lot_id is not null and not exists (select from app_public.lots l where l.id = convert_lead.lot_id
    and l.project_id = lead.project_id and app_private.viewer_sees('app_public.lots', l.id)) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lot in this project.', '{"field": "lotId"}');
  elsif reservation_id is not null and not exists (
    select from app_public.reservations r where r.id = convert_lead.reservation_id and r.project_id = lead.project_id
      and app_private.viewer_sees('app_public.reservations', r.id)) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such reservation in this project.', '{"field": "reservationId"}');
  end if;
  select app_private.rescission_end(coalesce(purchase_date, (now() at time zone p.time_zone)::date), p.rescission_days,
    p.time_zone) into rescission_ends_at from app_public.projects p where p.id = lead.project_id;
  if reservation_id is null then
    candidates := array(select r.id from app_public.reservations r
      where r.lead_id = lead.id and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null
        and (convert_lead.unit_id is null or r.unit_id = convert_lead.unit_id)
          and (convert_lead.lot_id is null or r.lot_id = convert_lead.lot_id)
      order by r.id);
    if cardinality(candidates) > 1 and num_nonnulls(unit_id, lot_id) = 0 then
      perform app_hidden.fail('BAD_USER_INPUT',
        'The lead has several active reservations; specify which one becomes the purchase.',
        '{"field": "reservationId"}');
    end if;
  end if;
  select * into reservation from app_public.reservations r
    where r.id = coalesce(convert_lead.reservation_id, candidates[1]) and r.deleted_at is null;

  -- From here on, concurrent conversions of this lead, or claims on the same home, wait.
  perform app_private.lock_deal(coalesce(unit_id, reservation.unit_id), coalesce(lot_id, reservation.lot_id),
    reservation.id, null);
  select * into lead from app_public.leads l where l.id = lead.id for no key update;
  select b.id into existing_id from app_public.buyers b where b.lead_id = lead.id and b.status <> 'CANCELLED'
    and b.deleted_at is null and (num_nonnulls(convert_lead.reservation_id, convert_lead.unit_id, convert_lead.lot_id,
        reservation.id) = 0
      or b.unit_id = coalesce(convert_lead.unit_id, reservation.unit_id)
      or b.lot_id = coalesce(convert_lead.lot_id, reservation.lot_id))
    order by b.id desc limit 1;
  -- A request that is sent twice does not buy the next home.
  if not found and num_nonnulls(convert_lead.reservation_id, convert_lead.unit_id, convert_lead.lot_id) = 0 then
    select b.id into existing_id from app_public.buyers b where b.lead_id = lead.id and b.status <> 'CANCELLED'
      and b.deleted_at is null order by b.id desc limit 1;
  end if;
  if existing_id is not null then
    perform app_hidden.fail('CONFLICT', 'This lead is already a buyer; specify the reservation, unit or lot of '
      'another home that they buy.', jsonb_build_object('field', 'leadId', 'existingId', existing_id));
  end if;
  if num_nonnulls(unit_id, lot_id, reservation.id) = 0 then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The lead has no active reservation; specify the unit or the lot that they buy.', '{"field": "unitId"}');
  end if;
  if asking is null then
    asking := coalesce(reservation.price,
      -- Accepted offers without a reservation, while they are in effect.
      (select o.price from app_public.offers o join app_hidden.claims c on c.id = o.claim_id
        where o.lead_id = lead.id and o.unit_id = convert_lead.unit_id and o.status = 'ACCEPTED'
          and c.released_at is null),
      (select u.price from app_public.units u where u.id = convert_lead.unit_id),
      (select l.price from app_public.lots l where l.id = convert_lead.lot_id));
    if asking is null then
      perform app_hidden.fail('BAD_USER_INPUT', 'No price is known; specify one.', '{"field": "price"}');
    end if;
  end if;

  perform set_config('plat.service', 'on', true);
  update app_public.leads l set status = 'CONVERTED', status_before_deal = coalesce(l.status_before_deal, l.status)
    where l.id = lead.id and l.status <> 'CONVERTED';
  perform set_config('plat.service', before, true);
  insert into app_public.buyers (project_id, lead_id, reservation_id, unit_id, lot_id, price, legal_name, purchase_date,
    estimated_closing_date, status)
    values (lead.project_id, lead.id, reservation.id, coalesce(unit_id, reservation.unit_id),
      coalesce(lot_id, reservation.lot_id), asking, legal_name,
      purchase_date, estimated_closing_date, case when rescission_ends_at > now() then 'IN_REVIEW'
        when reservation.financing_contingency then 'CONDITIONAL' else 'FIRM' end)
    returning * into result;
  return app_hidden.masked(result);
end $$;
comment on function app_private.convert_lead(uuid, uuid, uuid, uuid, numeric, text, date, date) is
  'Makes a purchase of a lead that the viewer may convert.';
grant execute on function app_private.convert_lead to plat_user;

create function app_public.convert_lead(lead_id uuid, reservation_id uuid default null, unit_id uuid default null,
  lot_id uuid default null,
  price app_public.money default null, legal_name text default null, purchase_date date default null,
    estimated_closing_date date default null)
returns app_public.buyers
language plpgsql volatile as $$
begin
  perform app_hidden.require_viewer();
  return app_private.convert_lead(lead_id, reservation_id, unit_id, lot_id, price,
    app_hidden.checked(nullif(btrim(legal_name), ''), 'app_public.short_text', 'legalName'), purchase_date,
      estimated_closing_date);
end $$;
grant execute on function app_public.convert_lead to plat_user, plat_anonymous;
comment on function app_public.convert_lead is
  E'@arg leadId Id of the lead who buys.\n@arg reservationId The reservation that becomes the purchase. Default: '
  'the active reservation of the lead.\n@arg unitId The unit to buy, if the lead has not reserved one.\n@arg lotId '
  'The lot to buy, if the lead has not reserved one.\n@arg price Purchase price. Default: the price of the '
  'reservation or accepted offer, otherwise the list price.\n@arg legalName Legal name, as on the contract.\n@arg '
  'purchaseDate Day on which the last party signed the contract. Default: today.\n@arg estimatedClosingDate '
  'Expected closing date.\n\n'
  'Converts a lead into a buyer. The purchase is IN_REVIEW during the rescission period; without one, it is '
  'CONDITIONAL or FIRM. To record several homes for one lead, convert it once per home, each time with '
  '`reservationId`, `unitId` or `lotId`. Refused with CONFLICT and `existingId` if the lead already bought that '
  'home, or was converted before and no home is given.';
