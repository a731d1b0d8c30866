-- Claims: who has a unit or lot. One table for holds, reservations and purchases, so that a unique index makes two
-- claims on one home impossible. A claim on a unit also claims its lot, unless several units share it.
--
-- An expired claim is released by the transaction of the next one, so correctness does not depend on a job; the job
-- only updates statuses earlier. Triggers of reservations and purchases on this table define the consequences of a
-- release.

select app_private.make_deadline('claim', 'app_hidden.claims', 'expires_at', 'new.released_at is null', '{released_at}',
  'app_private.expire_claim(uuid)', 'app_private.expire_claims(uuid[])');

comment on table app_hidden.claims is
  'Who has, or had, a unit or lot: for what, at which listed price, until when. Not read by the roles of the API.';
comment on column app_hidden.claims.subject_id is 'The reservation, purchase or other record that has the claim.';
comment on column app_hidden.claims.unit_price is
  'The list price when the claim was taken; it is listed at it again when the claim ends.';
comment on column app_hidden.claims.lot_price is 'The same for the lot.';

create function app_hidden.claim_is_over(claim app_hidden.claims) returns boolean
language sql stable as $$
  -- Compared with the clock, because a transaction that waited for a lock began before the claim.
  select claim.expires_at is not null and claim.expires_at <= clock_timestamp()
$$;

create function app_private.refuse_claimed(claim app_hidden.claims, field text default null) returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_hidden.fail('INVENTORY_UNAVAILABLE',
    format('This %s is claimed%s.', case when claim.unit_id is not null then 'unit' else 'lot' end,
      case when claim.expires_at is not null
        then ' until ' || to_char(claim.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') else '' end),
    jsonb_build_object('claimedUntil', to_char(claim.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
      || case when field is not null then jsonb_build_object('field', field) else '{}' end);
end $$;
comment on function app_private.refuse_claimed(app_hidden.claims, text) is
  'Refuses with INVENTORY_UNAVAILABLE and claimedUntil.';

create function app_private.set_inventory(claims app_hidden.claims[], status text,
  restore_price boolean default false, sold_price numeric default null, at timestamptz default null) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.units u set status = set_inventory.status,
      price = case when restore_price then claim.unit_price else u.price end,
      sold_price = case when set_inventory.status = 'SOLD' then coalesce(set_inventory.sold_price, u.price)
        else u.sold_price end,
      sold_at = case when set_inventory.status = 'SOLD' then coalesce(set_inventory.at, u.sold_at) else u.sold_at end,
      closed_at = case when set_inventory.status = 'CLOSED' then coalesce(set_inventory.at, u.closed_at)
        else u.closed_at end
    from unnest(claims) claim
    where u.id = claim.unit_id and u.deleted_at is null
      and u.status in ('AVAILABLE', 'HELD', 'RESERVED', 'PENDING', 'SOLD', 'CLOSED');
  -- A lot that is sold with a home only is not for sale itself, and stays so.
  update app_public.lots l set status = set_inventory.status, price = case when restore_price then claim.lot_price
    else l.price end
    from unnest(claims) claim
    where l.id = claim.lot_id and l.deleted_at is null
      and l.status in ('AVAILABLE', 'HELD', 'RESERVED', 'PENDING', 'SOLD', 'CLOSED');
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.set_inventory(app_hidden.claims[], text, boolean, numeric, timestamptz) is
  'Sets the status of the units and lots of claims, as the service; optionally restores their list price. at: when '
  'they were sold or closed, if not now.';

create function app_private.release_claim(claim_id uuid, reason text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  claim app_hidden.claims;
begin
  select * into claim from app_hidden.claims c where c.id = claim_id;
  -- The same order of locks as in take_claim: lot, unit, claim.
  perform from app_public.lots l where l.id = claim.lot_id for no key update;
  perform from app_public.units u where u.id = claim.unit_id for no key update;
  update app_hidden.claims c set released_at = clock_timestamp(), release_reason = reason where c.id = claim_id
    and c.released_at is null returning * into claim;
  if not found then
    return false; -- it belongs to somebody else by now, who is not touched
  end if;
  perform app_private.set_inventory(array[claim], 'AVAILABLE', restore_price => true);
  return true;
end $$;
comment on function app_private.release_claim(uuid, text) is
  'Ends a claim: the unit and lot are AVAILABLE again at the price they were listed at. False, and nothing done, when '
  'it had ended already.';

create function app_private.take_claim(
  unit_id uuid, lot_id uuid, kind text, subject_type text, subject_id uuid, expires_at timestamptz default null,
    status text default null
) returns app_hidden.claims
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  unit app_public.units;
  lot app_public.lots;
  claim app_hidden.claims;
  mine app_hidden.claims;
  claims_lot uuid := lot_id;
  new_status text := coalesce(status, case kind when 'HOLD' then 'HELD' when 'RESERVATION' then 'RESERVED'
    else 'PENDING' end);
begin
  if (unit_id is null) = (lot_id is null) then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either the unit or the lot.', '{"field": "unitId"}');
  end if;
  if unit_id is not null then
    claims_lot := (select u.lot_id from app_public.units u where u.id = take_claim.unit_id);
  end if;
  -- Serialized, so that the second caller sees the result of the first. A lot with several units is shared by their
  -- claims.
  select * into lot from app_public.lots l where l.id = claims_lot and l.deleted_at is null;
  if take_claim.unit_id is not null and lot.multi_unit then
    perform from app_public.lots l where l.id = claims_lot for share;
  else
    perform from app_public.lots l where l.id = claims_lot for no key update;
  end if;
  select * into lot from app_public.lots l where l.id = claims_lot and l.deleted_at is null;
  if take_claim.unit_id is not null then
    select * into unit from app_public.units u where u.id = take_claim.unit_id and u.deleted_at is null for no key
      update;
    if unit.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such unit.', '{"field": "unitId"}');
    end if;
    if unit.lot_id is distinct from lot.id and unit.lot_id is not null then
      perform app_hidden.fail('CONFLICT', 'The unit was moved to another lot concurrently; try again.',
        '{"field": "unitId"}');
    end if;
  elsif lot.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lot.', '{"field": "lotId"}');
  end if;

  for claim in
    select c.* from app_hidden.claims c
    where c.released_at is null and (c.unit_id = unit.id or c.lot_id = lot.id
      -- A lot with several units cannot be claimed as a whole while one of the units is claimed.
      or (take_claim.unit_id is null and lot.multi_unit
        and c.unit_id in (select u.id from app_public.units u where u.lot_id = lot.id)))
    order by c.id
  loop
    if claim.subject_id = take_claim.subject_id
      and (claim.unit_id = unit.id or (unit.id is null and claim.unit_id is null)) then
      mine := claim;
    elsif app_hidden.claim_is_over(claim) then
      perform app_private.release_claim(claim.id, 'EXPIRED');
    else
      perform app_private.refuse_claimed(claim, case when take_claim.unit_id is not null then 'unitId'
        else 'lotId' end);
    end if;
  end loop;

  if mine.id is not null then
    update app_hidden.claims c set kind = take_claim.kind, expires_at = take_claim.expires_at where c.id = mine.id
      returning * into mine;
    perform app_private.set_inventory(array[mine], new_status);
    return mine;
  end if;
  select * into unit from app_public.units u where u.id = unit.id;
  select * into lot from app_public.lots l where l.id = lot.id;
  if coalesce(unit.status, lot.status) <> 'AVAILABLE' then
    perform app_hidden.fail('INVENTORY_UNAVAILABLE', format('This %s is not for sale: it is %s.',
        case when unit.id is not null then 'unit' else 'lot' end, coalesce(unit.status, lot.status)),
      jsonb_build_object('claimedUntil', null, 'field', case when unit.id is not null then 'unitId' else 'lotId' end));
  end if;
  begin
    insert into app_hidden.claims (organization_id, project_id, unit_id, lot_id, kind, subject_type, subject_id,
      unit_price, lot_price, expires_at)
      values (coalesce(unit.organization_id, lot.organization_id), coalesce(unit.project_id, lot.project_id), unit.id,
        case when unit.id is null or not lot.multi_unit then lot.id end, take_claim.kind, take_claim.subject_type,
          take_claim.subject_id,
        unit.price, lot.price, take_claim.expires_at)
      returning * into mine;
  exception when unique_violation then
    select * into claim from app_hidden.claims c where c.released_at is null
      and (c.unit_id = unit.id or c.lot_id = lot.id) limit 1;
    perform app_private.refuse_claimed(claim, case when unit.id is not null then 'unitId' else 'lotId' end);
  end;
  perform app_private.set_inventory(array[mine], new_status);
  return mine;
end $$;
comment on function app_private.take_claim(uuid, uuid, text, text, uuid, timestamptz, text) is
  'Claims a unit or a lot for a subject and gives it its status (HELD, RESERVED or PENDING by the kind, or the one '
  'named). A subject that has the claim already changes its kind and end. Refuses with INVENTORY_UNAVAILABLE and '
  'claimedUntil. Callers check permissions.';

create function app_private.active_claim(subject_id uuid) returns app_hidden.claims
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.* from app_hidden.claims c where c.subject_id = $1 and c.released_at is null order by c.id desc limit 1
$$;
comment on function app_private.active_claim(uuid) is
  'The claim that a reservation, purchase or other record has; null when it has none.';

create function app_private.tg__claimed() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  claim app_hidden.claims;
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if coalesce(app_hidden.is_service(), false) then
    return case when tg_op = 'DELETE' then old else new end;
  end if;
  if tg_table_name = 'units' then
    select * into claim from app_hidden.claims c where c.unit_id = old.id and c.released_at is null;
  else
    select * into claim from app_hidden.claims c
      where c.released_at is null and (c.lot_id = old.id
        or c.unit_id in (select u.id from app_public.units u where u.lot_id = old.id)) order by c.lot_id limit 1;
  end if;
  if claim.id is null then
    return case when tg_op = 'DELETE' then old else new end;
  end if;
  if tg_op = 'DELETE' then
    if app_hidden.claim_is_over(claim) then
      perform app_private.release_claim(claim.id, 'EXPIRED');
      return old;
    end if;
    perform app_hidden.fail('CONFLICT',
      format('This %s cannot be deleted while it is claimed.', app_hidden.subject(tg_table_name)),
      jsonb_build_object('dependents', jsonb_build_object('claims', 1)));
  end if;
  if new.status is distinct from old.status and (tg_table_name = 'units' or claim.lot_id is not null)
    and not app_hidden.claim_is_over(claim) then
    perform app_private.refuse_claimed(claim, 'status');
  end if;
  if tg_table_name = 'units' and to_jsonb(new) -> 'lot_id' <> to_jsonb(old) -> 'lot_id' then
    perform app_hidden.fail('CONFLICT', 'A claimed unit stays on its lot.', '{"field": "lotId"}');
  elsif tg_table_name = 'lots' and to_jsonb(new) -> 'multi_unit' <> to_jsonb(old) -> 'multi_unit' then
    perform app_hidden.fail('CONFLICT', 'The lot or a unit on it is claimed.', '{"field": "multiUnit"}');
  end if;
  return new;
end $$;
comment on function app_private.tg__claimed() is
  'Refuses what contradicts a claim: deletion, a status by hand, another lot.';

create trigger _500_reservation after update on app_hidden.claims
  referencing old table as old_rows new table as new_rows for each statement
  execute function app_private.tg_claims__reservation();

-- At the end of the transaction: a claim is created before its reservation or purchase.
create constraint trigger _700_conflict after insert on app_hidden.claims
  deferrable initially deferred for each row execute function app_private.tg_claims__conflict();

revoke execute on function app_hidden.claim_is_over from plat_user, plat_anonymous;
