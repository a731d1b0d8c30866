-- Phone calls with leads and buyers, recorded by the team or its telephone system.

-- Masked columns are declared first, because the generated lists depend on them.
comment on column app_public.phone_calls.recording_url is
  E'@personal\n@masked\n@secret\n\nURL of the recorded conversation.';
select app_private.make_deal_child('phone_calls', 'phone_call', 'phoneCalls', 'The calls, latest first',
  list_order => 'started_at desc, id desc');

grant insert (lead_id, buyer_id, direction, status, outcome, from_number, to_number, started_at, ended_at, notes,
  recording_url, tracker_id), update (status, outcome, ended_at, notes, recording_url), delete on app_public.phone_calls
  to plat_user;

comment on table app_public.phone_calls is 'A phone call with a lead or buyer.';
comment on column app_public.phone_calls.user_id is 'The team member who called, answered or logged the call.';
comment on column app_public.phone_calls.direction is 'Direction: inbound or outbound.';
comment on column app_public.phone_calls.status is 'Current status.';
comment on column app_public.phone_calls.outcome is
  'Result of the call. DO_NOT_CALL marks the lead as not to be contacted.';
comment on column app_public.phone_calls.from_number is
  E'@personal\n\nNumber of the caller. Default for inbound calls: the number of the lead or buyer.';
comment on column app_public.phone_calls.to_number is
  E'@personal\n\nNumber called. Default for outbound calls: the number of the lead or buyer.';
comment on column app_public.phone_calls.started_at is
  E'@insertOptional\n\nTime at which the call was placed or received.';
comment on column app_public.phone_calls.ended_at is 'Time at which the call ended; null while it is in progress.';
comment on column app_public.phone_calls.notes is E'@personal\n\nNotes about the call.';
comment on column app_public.phone_calls.tracker_id is 'The tracker whose number was called.';
comment on constraint phone_calls_order on app_public.phone_calls is 'A call must end after it starts.';
comment on constraint phone_calls_user_id_fkey on app_public.phone_calls is
  E'@fieldName user\n@backwardBehavior -*\n\nThe team member who called, answered or logged the call.';
comment on constraint phone_calls_tracker_id_fkey on app_public.phone_calls is
  E'@fieldName tracker\n@backwardBehavior -*\n\nThe tracker whose number was called.';

create function app_private.tg_phone_calls__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project_country text;
  theirs text;
begin
  if tg_op = 'INSERT' then
    project_country := (select coalesce((p.address).country, 'US') from app_public.projects p
      where p.id = new.project_id);
    theirs := coalesce((select l.phone from app_public.leads l where l.id = new.lead_id),
      (select b.phone from app_public.buyers b where b.id = new.buyer_id));
    new.from_number := coalesce(app_hidden.to_e164(new.from_number, project_country, 'fromNumber'), case
      when new.direction = 'INBOUND' then theirs end);
    new.to_number := coalesce(app_hidden.to_e164(new.to_number, project_country, 'toNumber'), case
      when new.direction = 'OUTBOUND' then theirs end);
    if new.started_at > now() + interval '1 minute' then
      perform app_hidden.fail('BAD_USER_INPUT', 'A call can only be recorded once it has started.',
        '{"field": "startedAt"}');
    end if;
    if new.tracker_id is not null and not exists (
      select from app_public.trackers t where t.id = new.tracker_id and t.project_id = new.project_id
        and t.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such tracker in this project.', '{"field": "trackerId"}');
    end if;
  end if;
  if new.ended_at < new.started_at then
    perform app_hidden.fail('BAD_USER_INPUT', 'A call must end after it starts.', '{"field": "endedAt"}');
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.phone_calls for each row
  execute function app_private.tg_phone_calls__prepare();

create function app_public.phone_calls_duration_seconds(c app_public.phone_calls) returns int
language sql stable as $$ select round(extract(epoch from c.ended_at - c.started_at))::int $$;

create function app_public.phone_calls_recording_url(c app_public.phone_calls) returns app_public.url
language sql stable as $$
  select case when c.recording_url is not null
    and app_hidden.project_can(c.project_id, c.organization_id, 'call.recording') then c.recording_url end
$$;
grant execute on function app_public.phone_calls_duration_seconds, app_public.phone_calls_recording_url to plat_user,
  plat_anonymous;
comment on function app_public.phone_calls_duration_seconds is 'Duration in seconds; null until the call has ended.';
comment on function app_public.phone_calls_recording_url is
  'URL of the recording; null without the permission call.recording.';

create function app_private.tg_phone_calls__lead() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  person uuid := coalesce(new.lead_id, (select b.lead_id from app_public.buyers b where b.id = new.buyer_id));
begin
  if person is null then
    return null;
  end if;
  if new.status not in ('QUEUED', 'FAILED', 'CANCELLED') then
    perform app_private.lead_interaction(person, new.started_at, new.direction = 'OUTBOUND');
  end if;
  if new.outcome = 'DO_NOT_CALL' then
    update app_public.leads l set do_not_contact = true where l.id = person and not l.do_not_contact
      and l.deleted_at is null;
  end if;
  return null;
end $$;
create trigger _500_lead_first after insert on app_public.phone_calls for each row
  execute function app_private.tg_phone_calls__lead();
create trigger _500_lead after update of status, outcome on app_public.phone_calls for each row
  when ((old.status, old.outcome) is distinct from (new.status, new.outcome))
    execute function app_private.tg_phone_calls__lead();
