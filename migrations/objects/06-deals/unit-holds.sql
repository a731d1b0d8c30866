-- Holds: sellers keep a unit or lot for a short time, for example while a customer decides. A hold has a claim and
-- shares its deadline: after it, the transaction that releases the claim (expire_claim, or the next claim) also ends
-- the hold.
--
--   ACTIVE → CONVERTED   the holder, or the seller of its lead, reserves, sells or accepts an offer
--          → EXPIRED     at expires_at
--          → RELEASED    by deleteUnitHold, or by a ticket
--
-- Decisions:
-- - The default duration is set in the project. The total, including extensions and repeated holds of the same person,
--   is limited by the project; then the home must be free for the same time before that person can hold it again.
--   Otherwise, nobody would have to reserve.
-- - The project limits the homes that a person, and an organization, can hold at a time.
-- - A hold for a lead can only become a reservation of that lead, by its seller; one without a lead, a reservation by
--   its holder.
-- - There are no holds while the sales of the project are PAUSED, or for a lead that is LOST or UNQUALIFIED.

select app_private.make_deal_table('unit_holds', 'sale.read', 'sale.write', 'unitHolds', 'The holds, newest first',
  own => 'id = any (array(select app_hidden.viewer_holds()))', deletable => false);
select app_private.make_project_record('unit_holds', 'unit_hold', 'sale.write', event_permission => 'sale.read');
select app_private.make_state_machine('unit_holds', 'unit_hold',
  steps => array[
    ['ACTIVE', 'CONVERTED', 'service'], ['ACTIVE', 'EXPIRED', 'service'], ['ACTIVE', 'RELEASED', 'service']],
  initial => array['ACTIVE']);

grant select on app_public.unit_holds to plat_user, plat_anonymous;
grant insert (unit_id, lot_id, lead_id, expiration, notes), update (lead_id, expiration, notes)
  on app_public.unit_holds to plat_user;

comment on table app_public.unit_holds is $$
@portfolio sale.read
@ownFinder viewer_holds
@defaultOrder inserted_at desc
@filterLists status

A short-term exclusive claim on a unit or lot, without a reservation.$$;
comment on column app_public.unit_holds.project_id is E'@filter projectIds\n\nThe project that it belongs to.';
comment on column app_public.unit_holds.unit_id is E'@filter\n\nId of the unit. Set either this or `lotId`.';
comment on column app_public.unit_holds.lot_id is E'@filter\n\nId of the lot. Set either this or `unitId`.';
comment on column app_public.unit_holds.lead_id is
  E'@filter\n\nId of the lead that the unit is held for; null if it is held for nobody in particular.';
comment on column app_public.unit_holds.user_id is E'@filter userIds\n\nUser who created the hold.';
comment on column app_public.unit_holds.holder_organization_id is
  E'@behavior -*\n\nThe organization that the holder sells for.';
comment on column app_public.unit_holds.assignee_id is
  'Responsible member: the assignee of the lead, otherwise the holder.';
comment on column app_public.unit_holds.status is E'@filter\n\nCurrent status.';
comment on column app_public.unit_holds.status_changed_at is 'When the status last changed.';
comment on column app_public.unit_holds.expiration is
  E'@measures ratio\n@insertOptional\n\n'
  'Duration in hours; `holdExpiration` of the project if omitted. In an update, counted from now.';
comment on column app_public.unit_holds.held_since is
  'When the same person first held it; `holdExpirationLimit` of the project counts from then.';
comment on column app_public.unit_holds.expires_at is E'@filter\n\nDeadline; the unit or lot is released then.';
comment on column app_public.unit_holds.extended_count is E'@measures quantity\n\nNumber of times it was extended.';
comment on column app_public.unit_holds.is_self_service is
  'Whether a signed-in user created it for themselves, in a project with `publicReservations`.';
comment on column app_public.unit_holds.held_price is
  'List price when the hold was created, used if it becomes a reservation; null for older holds.';
comment on column app_public.unit_holds.notes is E'@personal\n@masked\n\nInternal notes of the sales team.';
comment on column app_public.unit_holds.inserted_at is
  E'@filter\n\nWhen the hold was created. Lists are sorted by it, latest first.';
comment on constraint unit_holds_one_thing on app_public.unit_holds is 'Specify either the unit or the lot.';
comment on constraint unit_holds_expiration_range on app_public.unit_holds is 'Must be from 1 to 720 hours.';
comment on constraint unit_holds_unit_id_fkey on app_public.unit_holds is
  E'@fieldName unit\n@foreignFieldName holds\n@backwardPermission sale.read\n@backwardDescription Holds, including '
  'ended ones, newest first; null without the permission sale.read.\n\n'
  'The unit.';
comment on constraint unit_holds_lot_id_fkey on app_public.unit_holds is
  E'@fieldName lot\n@foreignFieldName holds\n@backwardPermission sale.read\n@backwardDescription Holds, including '
  'ended ones, newest first; null without the permission sale.read.\n\n'
  'The lot.';
comment on constraint unit_holds_lead_id_fkey on app_public.unit_holds is
  E'@fieldName lead\n'
  '@foreignFieldName holds\n'
  '@backwardDescription The holds, newest first.\n\n'
  'The lead that the hold is for.';
comment on constraint unit_holds_user_id_fkey on app_public.unit_holds is
  E'@fieldName user\n@backwardBehavior -*\n\nUser who created the hold.';
comment on constraint unit_holds_holder_organization_id_fkey on app_public.unit_holds is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe organization that the holder sells for.';
comment on constraint unit_holds_assignee_id_fkey on app_public.unit_holds is
  E'@fieldName assignee\n@backwardBehavior -*\n\nThe responsible member.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('unit_hold', 'status', 'CONVERTED', 'converted'), ('unit_hold', 'status', 'EXPIRED', 'expired'),
  ('unit_hold', 'status', 'RELEASED', 'released'), ('unit_hold', 'extended_count', null, 'extended');

create function app_private.tg_unit_holds__about() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
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
  return new;
end $$;
comment on function app_private.tg_unit_holds__about() is 'The project of a hold is that of its unit or lot.';
create trigger _010_about before insert on app_public.unit_holds for each row
  execute function app_private.tg_unit_holds__about();

create function app_private.assignee_of_hold(lead_assignee_id uuid, is_self_service boolean, user_id uuid) returns uuid
language sql immutable as $$
  select coalesce(lead_assignee_id, case when not is_self_service then user_id end)
$$;
comment on function app_private.assignee_of_hold(uuid, boolean, uuid) is
  'The assignee of a hold: that of its lead, else the member who made it.';

create function app_private.tg_unit_holds__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lead app_public.leads;
begin
  if new.lead_id is null or (tg_op = 'UPDATE' and new.lead_id is not distinct from old.lead_id) then
    if tg_op = 'INSERT' or new.lead_id is distinct from old.lead_id then
      new.assignee_id := app_private.assignee_of_hold(null, new.is_self_service, new.user_id);
    end if;
    return new;
  end if;
  select l.* into lead from app_public.leads l where l.id = new.lead_id and l.project_id = new.project_id
    and l.deleted_at is null;
  if lead.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead in this project.', '{"field": "leadId"}');
  elsif lead.status in ('LOST', 'UNQUALIFIED') and new.status = 'ACTIVE' then
    perform app_hidden.fail('CONFLICT', format('This lead is %s; change its status first.', lead.status),
      '{"field": "leadId"}');
  end if;
  new.assignee_id := app_private.assignee_of_hold(lead.assignee_id, new.is_self_service, new.user_id);
  return new;
end $$;
comment on function app_private.tg_unit_holds__prepare() is
  'The lead of a hold belongs to the same project; the assignee of the lead is responsible for the hold.';
create trigger _200_prepare before insert or update of lead_id on app_public.unit_holds for each row
  execute function app_private.tg_unit_holds__prepare();

-- The organization of the holder: that of the project before an affiliated one.
create function app_private.selling_organization(project_id uuid) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.organization_id
  from app_public.organization_user_connections m
  join app_public.project_organizations p on p.organization_id = m.organization_id and p.project_id = $1
  where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
    and (app_hidden.setting('organization_id') is null
      or m.organization_id = app_hidden.setting('organization_id')::uuid)
    and exists (select from app_private.role_permissions r where r.permission = 'sale.write'
      and r.role = case when p.role = 'OWNER' then m.role else p.role end and r.in_affiliated = (p.role <> 'OWNER')
      and (p.permissions is null or r.permission = any (p.permissions)))
  order by p.role = 'OWNER' desc, m.organization_id limit 1
$$;
comment on function app_private.selling_organization(uuid) is
  'The organization that the viewer sells homes of a project for; null where they may not.';

create function app_private.require_fewer_holds(hold app_public.unit_holds) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project record;
  own int;
  of_organization int;
begin
  if hold.user_id is null or hold.is_self_service then
    return; -- by the service, or by a visitor, who has limits of their own
  end if;
  -- Serialized until the end of the transaction, so that concurrent ones are both counted.
  perform pg_advisory_xact_lock(hashtextextended('plat.holds ' || hold.project_id, 0));
  select p.holds_per_person, p.holds_per_organization into project from app_public.projects p
    where p.id = hold.project_id;
  select count(*) filter (where h.user_id = hold.user_id),
      count(*) filter (where h.holder_organization_id = hold.holder_organization_id)
    into own, of_organization
    from app_public.unit_holds h
    where h.project_id = hold.project_id and h.status = 'ACTIVE' and h.deleted_at is null and h.id <> hold.id
      and h.expires_at > clock_timestamp();
  if own >= project.holds_per_person then
    perform app_hidden.fail('LIMIT_EXCEEDED', case when project.holds_per_person = 0
      then 'This project does not offer holds; reserve instead.'
      else format('You hold %s homes of this project, the maximum per person (holdsPerPerson); reserve one, or '
        'release one with deleteUnitHold.', own) end,
      jsonb_build_object('limit', project.holds_per_person));
  elsif of_organization >= project.holds_per_organization then
    perform app_hidden.fail('LIMIT_EXCEEDED',
      format('Your organization holds %s homes of this project, the maximum per organization (holdsPerOrganization); '
        'reserve one, or release one with deleteUnitHold.', of_organization),
      jsonb_build_object('limit', project.holds_per_organization));
  end if;
end $$;
comment on function app_private.require_fewer_holds(app_public.unit_holds) is
  'Refuses a hold of a person, or of an organization, that has as many in the project as it allows.';

create function app_private.hold_until(hold app_public.unit_holds) returns timestamptz
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  most constant interval := make_interval(hours => (select case when hold.is_self_service
    then p.public_hold_expiration else p.hold_expiration_limit end from app_public.projects p
    where p.id = hold.project_id));
  until_when constant timestamptz := clock_timestamp() + make_interval(hours => hold.expiration);
  last_moment constant timestamptz := hold.held_since + most;
begin
  if last_moment <= clock_timestamp() then
    perform app_hidden.fail('CONFLICT',
      format('You have held this %s for as long as the project allows (holdExpirationLimit); reserve it, or try '
        'again later.', case when hold.unit_id is not null then 'unit' else 'lot' end),
      '{"field": "expiration"}');
  elsif until_when > last_moment + interval '1 second' then
    perform app_hidden.fail('BAD_USER_INPUT',
      format('The project allows at most %s hours (holdExpirationLimit)%s.', extract(epoch from most)::int / 3600,
        case when clock_timestamp() - hold.held_since > interval '1 minute'
          then format(', which end at %s',
            to_char(last_moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) else '' end),
      '{"field": "expiration"}');
  end if;
  return least(until_when, last_moment);
end $$;
comment on function app_private.hold_until(app_public.unit_holds) is
  'When a hold ends whose hours count from now; refused where that is later than the project allows.';

create function app_private.tg_unit_holds__take() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project record;
  claim app_hidden.claims;
  former app_public.unit_holds;
begin
  -- Viewers whom the policy will refuse learn nothing about claims.
  if app_public.current_user_id() is not null and not coalesce(app_hidden.is_service(), false)
    and not new.is_self_service
    and not app_hidden.deal_can(new.organization_id, new.project_id, new.assignee_id, 'sale.write') then
    new.expires_at := now();
    new.expiration := coalesce(new.expiration, 1);
    return new;
  end if;
  select p.status, case when new.is_self_service then p.public_hold_expiration else p.hold_expiration end
      as hold_expiration, make_interval(hours => p.hold_expiration_limit) as most into project
    from app_public.projects p where p.id = new.project_id;
  if project.status = 'PAUSED' then
    perform app_hidden.fail('CONFLICT', 'Sales of this project are paused; no holds are accepted.');
  end if;
  new.expiration := coalesce(new.expiration, project.hold_expiration);
  new.holder_organization_id := case when not new.is_self_service
    then app_private.selling_organization(new.project_id) end;
  perform app_private.lock_inventory(new.unit_id, new.lot_id);
  -- A repeated hold within the maximum duration continues the previous one.
  select h.* into former from app_public.unit_holds h
    where (h.unit_id = new.unit_id or h.lot_id = new.lot_id) and h.user_id = new.user_id
      and h.is_self_service = new.is_self_service and h.status in ('EXPIRED', 'RELEASED')
      and h.status_changed_at > now() - project.most and not new.is_self_service
    order by h.inserted_at desc, h.id desc limit 1;
  new.held_since := coalesce(former.held_since, clock_timestamp());
  new.expires_at := app_private.hold_until(new);
  claim := app_private.take_claim(new.unit_id, new.lot_id, 'HOLD', 'unit_hold', new.id, new.expires_at);
  new.held_price := case when new.unit_id is not null then claim.unit_price else claim.lot_price end;
  perform app_private.require_fewer_holds(new);
  return new;
end $$;
comment on function app_private.tg_unit_holds__take() is 'Claims the unit or lot for a new hold.';
create trigger _400_take before insert on app_public.unit_holds for each row
  execute function app_private.tg_unit_holds__take();

-- In an update, the hours count from now, even if their number is unchanged.
create function app_private.tg_unit_holds__extend() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Compared with the clock, because a transaction that waited for a lock began before the end.
  if old.status <> 'ACTIVE' or old.expires_at <= clock_timestamp() then
    perform app_hidden.fail('CONFLICT', 'This hold has ended and cannot be extended; create a new one.',
      '{"field": "expiration"}');
  end if;
  new.expires_at := app_private.hold_until(new);
  new.extended_count := old.extended_count + 1;
  update app_hidden.claims c set expires_at = new.expires_at where c.subject_id = new.id and c.released_at is null;
  return new;
end $$;
create trigger _250_extend before update of expiration on app_public.unit_holds for each row
  execute function app_private.tg_unit_holds__extend();

create function app_private.end_hold(hold_id uuid, status text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.unit_holds h set status = end_hold.status where h.id = hold_id and h.status = 'ACTIVE';
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.end_hold(uuid, text) is 'Ends an active hold whose claim has ended or gone over.';

create function app_private.tg_claims__hold() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.end_hold(new.subject_id, case when new.release_reason = 'EXPIRED' then 'EXPIRED'
    else 'RELEASED' end);
  return null;
end $$;
comment on function app_private.tg_claims__hold() is 'Releasing a claim ends its hold, regardless of who released it.';
create trigger _510_hold after update of released_at on app_hidden.claims for each row
  when (old.released_at is null and new.released_at is not null and new.subject_type = 'unit_hold')
  execute function app_private.tg_claims__hold();

create function app_private.hold_is_of(hold_id uuid, lead_id uuid) returns boolean
language sql stable as $$
  select exists (select from app_public.unit_holds h where h.id = $1 and (h.lead_id = $2
    or (app_public.current_user_id() in (h.user_id, h.assignee_id) and (h.lead_id is null or $2 is null))))
$$;
comment on function app_private.hold_is_of(uuid, uuid) is
  'Whether a hold is replaced by a claim that the viewer takes for a lead, or for nobody in particular: it is for '
  'that lead, or it is the viewer''s own and for no other lead.';

create function app_private.active_hold(unit_id uuid, lot_id uuid, lead_id uuid) returns app_public.unit_holds
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select h.* from app_hidden.claims c join app_public.unit_holds h on h.id = c.subject_id
  where c.released_at is null and c.subject_type = 'unit_hold' and not app_hidden.claim_is_over(c)
    and (c.unit_id = $1 or ($1 is null and c.unit_id is null and c.lot_id = $2))
    and app_private.hold_is_of(h.id, $3)
$$;
comment on function app_private.active_hold(uuid, uuid, uuid) is
  'The hold of a unit or lot that a claim of the viewer for the lead replaces; null if there is none.';

create function app_private.take_over_hold(unit_id uuid, lot_id uuid, lead_id uuid, subject_type text,
  subject_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  hold app_public.unit_holds;
begin
  perform app_private.lock_inventory(take_over_hold.unit_id, take_over_hold.lot_id);
  hold := app_private.active_hold(take_over_hold.unit_id, take_over_hold.lot_id, take_over_hold.lead_id);
  if hold.id is not null then
    update app_hidden.claims c set subject_type = take_over_hold.subject_type, subject_id = take_over_hold.subject_id
      where c.subject_id = hold.id and c.released_at is null;
    perform app_private.end_hold(hold.id, 'CONVERTED');
  end if;
end $$;
comment on function app_private.take_over_hold(uuid, uuid, uuid, text, uuid) is
  'Releases the claim of a hold for the reservation, purchase or negotiation that replaces it and calls take_claim '
  'next; does nothing without such a hold.';

create function app_public.update_unit_hold(input jsonb) returns app_public.unit_holds
language plpgsql volatile as $$
begin
  perform app_hidden.require_viewer();
  perform app_hidden.lock_seen('app_public.unit_holds', app_hidden.record_id('unit_holds', input ->> 'id'));
  if input ? 'lead_id' and exists (select from app_public.unit_holds h
    where h.id = app_hidden.record_id('unit_holds', input ->> 'id') and h.status <> 'ACTIVE') then
    perform app_hidden.fail('CONFLICT', 'This hold has ended; create a new one.', '{"field": "leadId"}');
  end if;
  return app_hidden.update_record(null::app_public.unit_holds, input);
end $$;
comment on function app_public.update_unit_hold is
  'Updates a hold: restarts its deadline (`expiration`), within `holdExpirationLimit` of the project, or sets its '
  'lead. Omitted fields stay unchanged.';

create function app_private.release_hold(hold_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  hold app_public.unit_holds;
  before text := coalesce(current_setting('plat.actor_type', true), '');
begin
  select h.* into hold from app_public.unit_holds h where h.id = release_hold.hold_id;
  if not app_hidden.deal_can(hold.organization_id, hold.project_id, hold.assignee_id, 'sale.write') then
    if coalesce(hold.id <> all (array(select app_hidden.viewer_holds())), true) then
      perform app_hidden.refuse('unit_holds', 'delete');
    end if;
    perform set_config('plat.actor_type', 'BUYER', true);
  end if;
  perform app_private.lock_inventory(hold.unit_id, hold.lot_id);
  select h.* into hold from app_public.unit_holds h where h.id = hold.id and h.deleted_at is null for no key update;
  if hold.status is distinct from 'ACTIVE' then
    perform app_hidden.fail('CONFLICT', format('This hold has ended: it is %s.', coalesce(hold.status, 'deleted')),
      '{"field": "id"}');
  end if;
  perform app_private.release_claim((app_private.active_claim(hold.id)).id, 'RELEASED');
  update app_public.unit_holds h set deleted_at = now() where h.id = hold.id;
  perform set_config('plat.actor_type', before, true);
end $$;
comment on function app_private.release_hold(uuid) is
  'Releases a unit or lot that the viewer, or somebody of their team, holds.';

create function app_public.delete_unit_hold(id uuid) returns app_public.delete_unit_hold_payload
language plpgsql volatile as $$
declare
  hold app_public.unit_holds;
begin
  perform app_hidden.require_viewer();
  select h.* into hold from app_hidden.masked_unit_holds h where h.id = delete_unit_hold.id;
  if hold.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such hold.', '{"field": "id"}');
  end if;
  perform app_private.release_hold(hold.id);
  return row(hold.id, true, hold.unit_id, hold.lot_id);
end $$;
comment on function app_public.delete_unit_hold is
  E'@arg id Id of an ACTIVE hold.\n\n'
  'Releases a hold: the unit or lot becomes AVAILABLE. Refused with CONFLICT if the hold has already ended.';
comment on type app_public.delete_unit_hold_payload is
  E'@foreignKey (unit_id) references units (id)|@fieldName unit\n'
  '@foreignKey (lot_id) references lots (id)|@fieldName lot\n\n'
  'Result of `deleteUnitHold`.';
comment on column app_public.delete_unit_hold_payload.id is
  E'@notNull\n\nId of the released hold, for clients to remove it from their cache.';
comment on column app_public.delete_unit_hold_payload.deleted is
  E'@notNull\n\nAlways true; a refused deletion is an error.';
comment on column app_public.delete_unit_hold_payload.unit_id is E'@behavior -*\n\nThe unit that it was of.';
comment on column app_public.delete_unit_hold_payload.lot_id is E'@behavior -*\n\nThe lot that it was of.';

create function app_public.unit_holds_notes(h app_public.unit_holds) returns app_public.long_text
language sql stable as $$
  select case when h.notes is not null
    and app_hidden.deal_can(h.organization_id, h.project_id, h.assignee_id, 'sale.read') then h.notes end
$$;
comment on function app_public.unit_holds_notes is 'Internal notes of the sales team; null for everybody else.';

create function app_public.units_active_hold(u app_public.units) returns setof app_public.unit_holds
language sql stable rows 1 as $$
  select h.* from app_hidden.masked_unit_holds h where h.unit_id = u.id and h.status = 'ACTIVE'
    and h.deleted_at is null limit 1
$$;
comment on function app_public.units_active_hold is 'The active hold; null without the permission sale.read.';

create function app_public.lots_active_hold(l app_public.lots) returns setof app_public.unit_holds
language sql stable rows 1 as $$
  select h.* from app_hidden.masked_unit_holds h where h.lot_id = l.id and h.status = 'ACTIVE'
    and h.deleted_at is null limit 1
$$;
comment on function app_public.lots_active_hold is 'The active hold; null without the permission sale.read.';

grant execute on function app_private.release_hold to plat_user;
grant execute on function app_public.update_unit_hold, app_public.delete_unit_hold, app_public.unit_holds_notes,
  app_public.units_active_hold, app_public.lots_active_hold to plat_user, plat_anonymous;
