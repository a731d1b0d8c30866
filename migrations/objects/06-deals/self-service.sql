-- Reservations by visitors: users without an organization in the project, in a public project that allows it
-- (publicReservations).
--
--   createUnitHold     holds the home for publicHoldExpiration hours, to complete the form; creates or finds their lead
--   createReservation  converts the hold, or claims the home directly. If the project requires the fee first
--                      (publicReservationFeeRequired), it expires with the hold unless the fee is paid
--   the fee is paid    CONFIRMED, and expires after the hours of the project, as if the team had confirmed it
--
-- Against hoarding: the email address must be confirmed, a person and a network can hold few homes at a time (limits
-- visitor_hold.* and visitor_reservation.*), and a released home cannot be held again by the same person for a day.
-- Units that are not public or not released appear as unknown; in a project that does not allow it, the operation is
-- refused like others of the sales team.

create function app_hidden.viewer_holds() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
begin
  if app_public.current_user_id() is null or app_hidden.setting('organization_id') is not null
    or not app_hidden.scopes_allow('purchase.own') then
    return;
  end if;
  return query select h.id from app_public.unit_holds h where h.user_id = app_public.current_user_id()
    and h.is_self_service and h.deleted_at is null;
end $$;
comment on function app_hidden.viewer_holds() is
  'The holds that the viewer made as a visitor. A token with scopes needs purchase.own.';
grant execute on function app_hidden.viewer_holds to plat_user, plat_anonymous;

create function app_hidden.home_of(input jsonb, out unit_id uuid, out lot_id uuid, out field text, out project_id uuid,
  out organization_id uuid)
language plpgsql stable as $$
begin
  unit_id := app_hidden.record_id('units', nullif(btrim(input ->> 'unit_id'), ''), 'unitId');
  lot_id := app_hidden.record_id('lots', nullif(btrim(input ->> 'lot_id'), ''), 'lotId');
  if num_nonnulls(unit_id, lot_id) <> 1 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either the unit or the lot.', '{"field": "unitId"}');
  end if;
  field := case when unit_id is not null then 'unitId' else 'lotId' end;
  select p.project_id, p.organization_id into project_id, organization_id from (
    select u.project_id, u.organization_id from app_public.units u where u.id = unit_id
    union all select l.project_id, l.organization_id from app_public.lots l where l.id = lot_id) p;
end $$;
comment on function app_hidden.home_of(jsonb) is
  'The unit or lot that an input names, and its project where the viewer sees it.';
grant execute on function app_hidden.home_of to plat_user, plat_anonymous;

create function app_private.project_for_visitor(unit_id uuid, lot_id uuid) returns app_public.projects
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select p.* from app_public.projects p
  where p.id = (select u.project_id from app_public.units u
      where u.id = $1 and u.status <> 'UNRELEASED' and u.deleted_at is null
    union all select l.project_id from app_public.lots l
      where l.id = $2 and l.status <> 'UNRELEASED' and l.deleted_at is null)
    and p.public_reservations and p.visibility in ('PUBLIC', 'UNLISTED') and p.status in ('PRESALE', 'SELLING')
    and p.archived_at is null and p.deleted_at is null
    and app_public.current_user_id() is not null and app_hidden.setting('organization_id') is null
    and app_hidden.scopes_allow('purchase.own')
$$;
comment on function app_private.project_for_visitor(uuid, uuid) is
  'The project of a unit or lot where the viewer may reserve it as a visitor; null otherwise.';

create function app_private.limit_visitor(name text, hours int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  part text;
begin
  foreach part in array '{person,network}'::text[] loop
    perform app_private.rate_limit(name || '.' || part, case part when 'person' then app_public.current_user_id()::text
        else app_private.network_of(app_hidden.setting('ip')) end, l.most, make_interval(hours => limit_visitor.hours))
      from app_private.limit_of(name || '.' || part) l;
  end loop;
end $$;
comment on function app_private.limit_visitor(text, int) is
  'Counts a visitor''s hold of a number of hours, per person and per network; refuses more than the limits with '
  'RATE_LIMITED.';

create function app_private.admit_visitor(project app_public.projects, unit_id uuid, lot_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  former timestamptz;
begin
  select max(f.ended_at) into former from (
    select h.status_changed_at as ended_at from app_public.unit_holds h
      where h.user_id = app_public.current_user_id() and h.is_self_service and h.status in ('EXPIRED', 'RELEASED')
        and (h.unit_id = admit_visitor.unit_id or h.lot_id = admit_visitor.lot_id)
    union all
    select r.status_changed_at from app_public.reservations r
      where r.buyer_id = app_public.current_user_id() and r.is_self_service and r.status in ('EXPIRED', 'CANCELLED')
        and (r.unit_id = admit_visitor.unit_id or r.lot_id = admit_visitor.lot_id)) f;
  if former > clock_timestamp() - interval '24 hours' then
    perform app_hidden.fail('CONFLICT',
      format('You have recently had this %s; it is open to others until %s.',
        case when admit_visitor.unit_id is not null then 'unit' else 'lot' end,
        to_char((former + interval '24 hours') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
      jsonb_build_object('field', case when admit_visitor.unit_id is not null then 'unitId' else 'lotId' end));
  end if;
  perform app_private.limit_visitor('visitor_hold', project.public_hold_expiration);
end $$;
comment on function app_private.admit_visitor(app_public.projects, uuid, uuid) is
  'Refuses a visitor who released the home within the last day, or has reached the limit of holds.';

create function app_private.refuse_team_fields(input jsonb) returns void
language plpgsql stable as $$
begin
  if coalesce(input ->> 'status', 'PENDING') <> 'PENDING'
    or jsonb_strip_nulls(input) ?| array['lead_id', 'expiration', 'notes', 'metadata'] then
    perform app_hidden.fail('FORBIDDEN',
      'Only the sales team can set the lead or buyer, the expiry, the confirmation and the notes of a reservation.',
      '{"permission": "sale.write"}');
  end if;
end $$;
comment on function app_private.refuse_team_fields(jsonb) is
  'Refuses in the input of somebody who holds or reserves for themselves what the sales team decides.';

create function app_private.lead_of_visitor(project app_public.projects) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  account record;
  found_id uuid;
begin
  select i.email, u.first_name, u.last_name, u.phone,
      coalesce(nullif(app_public.users_full_name(u), ''), split_part(i.email, '@', 1)) as name
    into account from app_public.users u join app_hidden.user_identities i on i.user_id = u.id
    where u.id = app_public.current_user_id();
  loop
    select l.id into found_id from app_public.leads l
      where l.project_id = project.id and l.email = account.email and l.deleted_at is null
        and l.status not in ('LOST', 'UNQUALIFIED', 'CONVERTED')
      order by l.id desc limit 1;
    exit when found_id is not null;
    begin
      found_id := (app_hidden.create_record(null::app_public.leads, jsonb_strip_nulls(jsonb_build_object(
        'project_id', project.id, 'name', account.name, 'first_name', account.first_name,
        'last_name', account.last_name, 'email', account.email, 'phone', account.phone, 'origin', 'RESERVATION',
        'source', 'WEB_DIRECT', 'source_id', (select s.id from app_public.lead_sources s
          where s.project_id = project.id and s.code = 'WEB_DIRECT' and s.deleted_at is null),
        'last_interaction_at', now())))).id;
      exit;
    exception when unique_violation then
      null; -- made meanwhile: it is the one
    end;
  end loop;
  return found_id;
end $$;
comment on function app_private.lead_of_visitor(app_public.projects) is
  'The open lead of a project that has the confirmed address of the viewer; made if there is none.';

create function app_private.hold_as_visitor(input jsonb) returns app_public.unit_holds
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project app_public.projects := app_private.project_for_visitor((input ->> 'unit_id')::uuid,
    (input ->> 'lot_id')::uuid);
  result app_public.unit_holds;
  before text := coalesce(current_setting('plat.actor_type', true), '');
begin
  if project.id is null then
    return null;
  end if;
  perform app_hidden.require_confirmed_address();
  perform app_private.refuse_team_fields(input);
  perform app_private.admit_visitor(project, (input ->> 'unit_id')::uuid, (input ->> 'lot_id')::uuid);
  perform set_config('plat.actor_type', 'BUYER', true);
  result := app_hidden.create_record(null::app_public.unit_holds, jsonb_build_object('unit_id', input ->> 'unit_id',
    'lot_id', input ->> 'lot_id', 'lead_id', app_private.lead_of_visitor(project), 'is_self_service', true));
  perform set_config('plat.actor_type', before, true);
  return app_hidden.masked(result);
end $$;
comment on function app_private.hold_as_visitor(jsonb) is
  'Holds a unit or lot for the viewer as a visitor; null where the project does not allow it.';

create function app_private.reserve_as_visitor(input jsonb) returns app_public.reservations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project app_public.projects := app_private.project_for_visitor((input ->> 'unit_id')::uuid,
    (input ->> 'lot_id')::uuid);
  result app_public.reservations;
  before text := coalesce(current_setting('plat.actor_type', true), '');
begin
  if project.id is null then
    return null;
  end if;
  perform app_hidden.require_confirmed_address();
  perform app_private.refuse_team_fields(input);
  if app_private.wants_fee_first(project) and not exists (select from app_private.payments_accounts a
    where a.organization_id = project.organization_id and a.status = 'ENABLED') then
    perform app_hidden.fail('CONFLICT',
      'The fee of this reservation cannot be paid here yet; contact the sales office.');
  end if;
  -- Units that they already hold were counted before.
  if not exists (select from app_public.unit_holds h where h.id = any (array(select app_hidden.viewer_holds()))
    and h.status = 'ACTIVE' and h.expires_at > clock_timestamp()
    and (h.unit_id = (input ->> 'unit_id')::uuid or h.lot_id = (input ->> 'lot_id')::uuid)) then
    perform app_private.admit_visitor(project, (input ->> 'unit_id')::uuid, (input ->> 'lot_id')::uuid);
  end if;
  if not app_private.wants_fee_first(project) then
    perform app_private.limit_visitor('visitor_reservation', project.reservation_expiration);
  end if;
  perform set_config('plat.actor_type', 'BUYER', true);
  result := app_hidden.create_record(null::app_public.reservations, input || jsonb_build_object('buyer_id',
    app_public.current_user_id(), 'lead_id', app_private.lead_of_visitor(project), 'is_self_service', true));
  perform set_config('plat.actor_type', before, true);
  return app_hidden.masked(result);
end $$;
comment on function app_private.reserve_as_visitor(jsonb) is
  'Reserves a unit or lot for the viewer as a visitor; null where the project does not allow it.';
grant execute on function app_private.hold_as_visitor, app_private.reserve_as_visitor to plat_user;

create function app_private.wants_fee_first(project app_public.projects) returns boolean
language sql stable as $$
  select project.public_reservation_fee_required and coalesce(project.reservation_fee, 0) > 0
$$;
comment on function app_private.wants_fee_first(app_public.projects) is
  'Whether a visitor''s reservation lasts only if its fee is paid in time.';

create function app_private.tg_deposits__confirm() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  reservation app_public.reservations := app_private.lock_reservation(new.reservation_id);
begin
  if reservation.is_self_service and reservation.status = 'PENDING' then
    perform set_config('plat.service', 'on', true);
    update app_public.reservations r set status = 'CONFIRMED' where r.id = reservation.id;
    perform set_config('plat.service', before, true);
  end if;
  return null;
end $$;
comment on function app_private.tg_deposits__confirm() is
  'A visitor''s reservation is confirmed when its fee is paid, or waived.';
create trigger _600_confirm after update on app_public.deposits for each row
  when (old.status is distinct from new.status and new.is_reservation_fee and new.status in ('PAID', 'WAIVED'))
  execute function app_private.tg_deposits__confirm();

create function app_public.create_unit_hold(input jsonb) returns app_public.unit_holds
language plpgsql volatile as $$
declare
  home record;
  result app_public.unit_holds;
begin
  perform app_hidden.require_viewer();
  select * into home from app_hidden.home_of(input);
  if not app_hidden.project_can(home.project_id, home.organization_id, 'sale.write') then
    result := app_private.hold_as_visitor(input || jsonb_build_object('unit_id', home.unit_id, 'lot_id', home.lot_id));
    if result.id is not null then
      return result;
    elsif home.project_id is not null then
      perform app_hidden.refuse('unit_holds', 'create');
    end if;
  end if;
  return app_hidden.create_record(null::app_public.unit_holds, input);
end $$;
comment on function app_public.create_unit_hold is
  'Holds a unit or a lot for a short time, during which nobody else can reserve it. In a project that allows it '
  '(`publicReservations`), signed-in users can hold one for themselves for `publicHoldExpiration` hours.';
grant execute on function app_public.create_unit_hold to plat_user, plat_anonymous;
