-- Appointments of leads and buyers, across portfolios.
--
--   REQUESTED → SCHEDULED → CONFIRMED → COMPLETED, NO_SHOW; before its end → RESCHEDULED, CANCELLED
--
-- RESCHEDULED ends an appointment that another one replaces: the record documents the original agreement, the new one
-- is valid. To correct a time only, change startsAt and endsAt. A host has one appointment at a time among those that
-- are SCHEDULED or CONFIRMED; a request blocks nobody.

-- Masked columns are declared first, because the generated lists depend on them.
comment on column app_public.appointments.notes is E'@personal\n@masked\n\nInternal notes for the team.';
comment on column app_public.appointments.outcome_note is E'@personal\n@masked\n\nOutcome, as noted by the team.';
select app_private.make_deal_child('appointments', 'appointment', 'appointments', 'The appointments, latest first',
  list_order => 'starts_at desc, id desc',
  own => 'true', has_assignee => true);
select app_private.make_state_machine('appointments', 'appointment',
  steps => array[
    ['REQUESTED', 'SCHEDULED'], ['SCHEDULED', 'CONFIRMED'], ['CONFIRMED', 'COMPLETED'], ['CONFIRMED', 'NO_SHOW'],
    ['REQUESTED', 'RESCHEDULED'], ['SCHEDULED', 'RESCHEDULED'], ['CONFIRMED', 'RESCHEDULED'],
    ['REQUESTED', 'CANCELLED'], ['SCHEDULED', 'CANCELLED'], ['CONFIRMED', 'CANCELLED']],
  initial => array['REQUESTED', 'SCHEDULED', 'CONFIRMED']);

grant insert (lead_id, buyer_id, type, status, title, starts_at, ends_at, time_zone, location, video_url, open_house_id,
  host_id, notes), update (type, status, title, starts_at, ends_at, time_zone, location, video_url, open_house_id,
  host_id, notes, outcome_note, cancellation_reason), delete on app_public.appointments to plat_user;

comment on table app_public.appointments is $$
@portfolio lead.read
@ownFinder viewer_purchase_appointments
@defaultOrder starts_at desc
@defaultFirst 1000
@filterLists status

An appointment with a lead or buyer.$$;
comment on column app_public.appointments.project_id is E'@filter projectIds\n\nThe project that it belongs to.';
comment on column app_public.appointments.type is E'@filter\n\nKind of the appointment.';
comment on column app_public.appointments.status is E'@filter\n\nCurrent status.';
comment on column app_public.appointments.status_changed_at is 'When the status last changed.';
comment on column app_public.appointments.title is E'@personal\n\nDisplay title.';
comment on column app_public.appointments.starts_at is
  E'@filter\n\nStart of the appointment. Lists are sorted by it, latest first.';
comment on column app_public.appointments.ends_at is 'Scheduled end, after `startsAt`.';
comment on column app_public.appointments.time_zone is
  E'@insertOptional\n\nIANA time zone in which the time was agreed; the time zone of the project if omitted.';
comment on column app_public.appointments.location is
  E'@personal\n\nPlace of the appointment, if not the sales office.';
comment on column app_public.appointments.video_url is E'@personal\n\nURL of the video meeting.';
comment on column app_public.appointments.open_house_id is 'The open house at which the appointment reserves a place.';
comment on column app_public.appointments.host_id is
  E'@filter hostIds\n\nThe team member who hosts the appointment. Appointments of the same host cannot overlap.';
comment on column app_public.appointments.cancelled_at is 'When it was cancelled; null otherwise.';
comment on column app_public.appointments.cancellation_reason is
  E'@personal\n\nExplanation of the cancellation, as free text; null unless cancelled.';
comment on constraint appointments_order on app_public.appointments is 'An appointment must end after it starts.';
comment on constraint appointments_host_free on app_public.appointments is
  'The host has another appointment at this time.';
comment on constraint appointments_open_house_id_fkey on app_public.appointments is
  E'@fieldName openHouse\n@backwardBehavior -*\n\nThe open house at which the appointment reserves a place.';
comment on constraint appointments_host_id_fkey on app_public.appointments is
  E'@fieldName host\n@backwardBehavior -*\n\nThe team member who hosts the appointment.';
comment on constraint appointments_assignee_id_fkey on app_public.appointments is
  E'@behavior -*\n\nWho is assigned the lead or the purchase.';

create function app_hidden.viewer_purchase_appointments() returns setof uuid
language sql stable security definer rows 5 set search_path = pg_catalog, pg_temp as $$
  select a.id from app_public.appointments a where a.buyer_id = any (array(select app_hidden.viewer_purchases()))
    and a.deleted_at is null
  union all
  select a.id from app_public.appointments a where a.lead_id = any (array(select app_hidden.viewer_purchase_leads()))
    and a.deleted_at is null
$$;
grant execute on function app_hidden.viewer_purchase_appointments() to plat_user;
comment on function app_hidden.viewer_purchase_appointments() is 'The appointments of the viewer''s own purchases.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('appointment', 'status', 'SCHEDULED', 'scheduled'), ('appointment', 'status', 'CONFIRMED', 'confirmed'),
  ('appointment', 'status', 'COMPLETED', 'completed'),
  ('appointment', 'status', 'NO_SHOW', 'no_show'), ('appointment', 'status', 'RESCHEDULED', 'rescheduled'),
  ('appointment', 'status', 'CANCELLED', 'cancelled');

create function app_private.tg_appointments__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  other app_public.appointments;
begin
  if new.time_zone is null then
    new.time_zone := (select p.time_zone from app_public.projects p where p.id = new.project_id);
  end if;
  if new.starts_at >= new.ends_at then
    perform app_hidden.fail('BAD_USER_INPUT', 'An appointment must end after it starts.', '{"field": "endsAt"}');
  end if;
  if new.host_id is not null and (tg_op = 'INSERT' or new.host_id is distinct from old.host_id)
    and not app_private.has_part(new.host_id, new.project_id) then
    perform app_hidden.fail('BAD_USER_INPUT', 'The host must be a member of an organization that takes part in the '
      'project.',
      '{"field": "hostId"}');
  end if;
  if new.open_house_id is not null and (tg_op = 'INSERT' or new.open_house_id is distinct from old.open_house_id)
    and not exists (
    select from app_public.open_houses o where o.id = new.open_house_id and o.project_id = new.project_id
      and o.deleted_at is null) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such open house in this project.', '{"field": "openHouseId"}');
  end if;
  if tg_op = 'INSERT' or new.status is distinct from old.status then
    new.cancelled_at := case when new.status = 'CANCELLED' then now() end;
  end if;
  if new.host_id is null or new.deleted_at is not null or new.status not in ('SCHEDULED', 'CONFIRMED')
    or (tg_op = 'UPDATE' and old.status in ('SCHEDULED', 'CONFIRMED')
      and (old.host_id, old.starts_at, old.ends_at) is not distinct from (new.host_id, new.starts_at, new.ends_at)) then
    return new;
  end if;
  -- Serialized for each host, so that the second request gets an error with the conflicting appointment.
  perform pg_advisory_xact_lock(hashtextextended('plat.host ' || new.host_id, 0));
  select * into other from app_public.appointments a
    where a.host_id = new.host_id and a.deleted_at is null and a.status in ('SCHEDULED', 'CONFIRMED') and a.id <> new.id
      and tstzrange(a.starts_at, a.ends_at) && tstzrange(new.starts_at, new.ends_at)
    order by a.starts_at limit 1;
  if other.id is not null then
    perform app_hidden.fail('CONFLICT', 'The host has another appointment at this time.',
      jsonb_strip_nulls(jsonb_build_object('field', 'hostId', 'existingId',
      case when app_hidden.deal_can(other.organization_id, other.project_id, other.assignee_id,
        case when other.lead_id is not null then 'lead.read' else 'buyer.read' end) then other.id end)));
  end if;
  return new;
end $$;
create trigger _400_prepare before insert or update on app_public.appointments for each row
  execute function app_private.tg_appointments__prepare();

-- Handing a deal over locks the purchase or lead and then its appointments; so does a change of an appointment, which
-- may change its lead.
create function app_public.update_appointment(input jsonb) returns app_public.appointments
language plpgsql volatile as $$
begin
  perform app_hidden.require_viewer();
  -- Of appointments that the viewer sees only.
  perform app_hidden.lock_seen('app_public.appointments', a.id) from app_public.appointments a
    where a.id = app_hidden.record_id('appointments', input ->> 'id');
  return app_hidden.update_record(null::app_public.appointments, input);
end $$;
grant execute on function app_public.update_appointment to plat_user, plat_anonymous;
comment on function app_public.update_appointment is 'Changes an appointment. Omitted fields stay unchanged.';

-- Internal notes of the team are hidden from the buyer, who sees the appointment.
create function app_public.appointments_notes(a app_public.appointments) returns app_public.long_text
language sql stable as $$
  select case when a.notes is not null and app_hidden.deal_can(a.organization_id, a.project_id, a.assignee_id,
    case when a.lead_id is not null then 'lead.read' else 'buyer.read' end) then a.notes end
$$;

create function app_public.appointments_outcome_note(a app_public.appointments) returns app_public.long_text
language sql stable as $$
  select case when a.outcome_note is not null and app_hidden.deal_can(a.organization_id, a.project_id, a.assignee_id,
    case when a.lead_id is not null then 'lead.read' else 'buyer.read' end) then a.outcome_note end
$$;

create function app_public.appointments_sales_office(a app_public.appointments) returns setof app_public.sales_offices
language sql stable rows 1 as $$
  select o.* from app_public.sales_offices o
  where o.project_id = a.project_id and a.location is null and a.type not in ('VIRTUAL_TOUR', 'PHONE')
  limit 1
$$;

create function app_public.appointments_allowed_transitions(a app_public.appointments) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('appointment', jsonb_build_object('status', a.status)) $$;
grant execute on function app_public.appointments_notes, app_public.appointments_outcome_note,
  app_public.appointments_sales_office, app_public.appointments_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.appointments_notes is 'Internal notes for the team; null for the buyer.';
comment on function app_public.appointments_outcome_note is 'Outcome, as noted by the team; null for the buyer.';
comment on function app_public.appointments_sales_office is
  'The sales office, where the appointment takes place unless it has a `location` or is by phone or video.';
comment on function app_public.appointments_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';

create function app_private.tg_appointments__lead() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  person uuid := coalesce(new.lead_id, (select b.lead_id from app_public.buyers b where b.id = new.buyer_id));
begin
  -- A request counts as an interaction of the lead; agreeing or proposing as one of the team. A completed appointment
  -- counts at its time.
  if person is not null and new.status in ('REQUESTED', 'SCHEDULED', 'CONFIRMED', 'COMPLETED') then
    perform app_private.lead_interaction(person, case when new.status = 'COMPLETED' then new.ends_at else now() end,
      new.status <> 'REQUESTED');
  end if;
  return null;
end $$;
create trigger _500_lead_first after insert on app_public.appointments for each row
  execute function app_private.tg_appointments__lead();
create trigger _500_lead after update of status on app_public.appointments for each row
  when (old.status is distinct from new.status) execute function app_private.tg_appointments__lead();

-- Visitors see no appointments, and so no figures of their notes either, rather than a refusal.
grant execute on function app_public.appointments_notes, app_public.appointments_outcome_note to plat_anonymous;
