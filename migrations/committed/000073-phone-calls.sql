--! Previous: sha1:3c73ac8cab146495dcafda2adbbef3df7bc76762
--! Hash: sha1:586883204b728aa33e211750354f0a088209648c
--! Message: phone-calls

-- Phone calls with leads and buyers, as the team or its telephone system writes them down.

select app_private.create_enum('phone_call_direction', 'Who called.', array[
  ['INBOUND', 'The lead or buyer.'], ['OUTBOUND', 'The team.']]);
select app_private.create_enum('phone_call_status', 'How far a call is, or how it ended.', array[
  ['QUEUED', 'To be dialled.'], ['RINGING', 'It rings.'], ['IN_PROGRESS', 'They talk.'], ['COMPLETED', 'Over.'], ['BUSY', 'The line was busy.'],
  ['NO_ANSWER', 'Nobody answered.'], ['FAILED', 'There was no connection.'], ['CANCELLED', 'Given up before it was answered.'], ['MISSED', 'Nobody of the team answered.']]);
select app_private.create_enum('phone_call_outcome', 'What came of a call.', array[
  ['CONNECTED', 'They talked.'], ['LEFT_VOICEMAIL', 'A message on the voicemail.'], ['LEFT_LIVE_MESSAGE', 'A message with somebody else.'],
  ['NO_ANSWER', 'Nobody answered.'], ['BUSY', 'The line was busy.'], ['WRONG_NUMBER', 'Somebody else''s number.'], ['BAD_NUMBER', 'Nobody''s number.'],
  ['CALLBACK_REQUESTED', 'Wants to be called back.'], ['INTERESTED', 'Is interested.'], ['NOT_INTERESTED', 'Is not interested.'],
  ['APPOINTMENT_SET', 'An appointment was agreed.'], ['DO_NOT_CALL', 'Does not want to be contacted; the lead is marked so.'], ['OTHER', 'Something else.']]);

create table app_public.phone_calls (
  like app_private.project_record including all,
  lead_id uuid,
  buyer_id uuid,
  user_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  direction app_public.phone_call_direction not null,
  status app_public.phone_call_status not null default 'COMPLETED',
  outcome app_public.phone_call_outcome,
  from_number app_public.phone_number constraint phone_calls_from_number_e164 check (from_number ~ '^\+[1-9][0-9]{6,14}$'),
  to_number app_public.phone_number constraint phone_calls_to_number_e164 check (to_number ~ '^\+[1-9][0-9]{6,14}$'),
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  notes app_public.long_text,
  recording_url app_public.url,
  tracker_id uuid,
  constraint phone_calls_order check (ended_at >= started_at),
  constraint phone_calls_tracker_id_fkey foreign key (tracker_id, project_id) references app_public.trackers (id, project_id) on delete set null (tracker_id)
);
comment on constraint phone_calls_order on app_public.phone_calls is 'A call ends after it starts.';
create index phone_calls_user on app_public.phone_calls (user_id);
create index phone_calls_tracker on app_public.phone_calls (tracker_id) where deleted_at is null;
select app_private.make_deal_child('phone_calls', 'phone_call', 'phoneCalls', 'The calls, latest first', list_order => 'started_at desc, id desc');
grant insert (lead_id, buyer_id, direction, status, outcome, from_number, to_number, started_at, ended_at, notes, recording_url, tracker_id),
  update (status, outcome, ended_at, notes, recording_url), delete on app_public.phone_calls to plat_user;

create function app_private.tg_phone_calls__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project_country text;
  theirs text;
begin
  if tg_op = 'INSERT' then
    project_country := (select coalesce((p.address).country, 'US') from app_public.projects p where p.id = new.project_id);
    theirs := coalesce((select l.phone from app_public.leads l where l.id = new.lead_id), (select b.phone from app_public.buyers b where b.id = new.buyer_id));
    new.from_number := coalesce(app_hidden.to_e164(new.from_number, project_country, 'fromNumber'), case when new.direction = 'INBOUND' then theirs end);
    new.to_number := coalesce(app_hidden.to_e164(new.to_number, project_country, 'toNumber'), case when new.direction = 'OUTBOUND' then theirs end);
    if new.started_at > now() + interval '1 minute' then
      perform app_hidden.fail('BAD_USER_INPUT', 'A call is written down once it has begun.', '{"field": "startedAt"}');
    end if;
    if new.tracker_id is not null and not exists (
      select from app_public.trackers t where t.id = new.tracker_id and t.project_id = new.project_id and t.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such tracker in this project.', '{"field": "trackerId"}');
    end if;
  end if;
  if new.ended_at < new.started_at then
    perform app_hidden.fail('BAD_USER_INPUT', 'A call ends after it starts.', '{"field": "endedAt"}');
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.phone_calls for each row execute function app_private.tg_phone_calls__prepare();

create function app_public.phone_calls_duration_seconds(c app_public.phone_calls) returns int
language sql stable as $$ select round(extract(epoch from c.ended_at - c.started_at))::int $$;
create function app_public.phone_calls_recording_url(c app_public.phone_calls) returns app_public.url
language sql stable as $$
  select case when c.recording_url is not null and app_hidden.project_can(c.project_id, c.organization_id, 'call.recording') then c.recording_url end
$$;
grant execute on function app_public.phone_calls_duration_seconds, app_public.phone_calls_recording_url to plat_user;
comment on function app_public.phone_calls_duration_seconds is 'How long it took, in seconds; null as long as it has no end.';
comment on function app_public.phone_calls_recording_url is 'Where the recording is; null without the permission call.recording.';

comment on table app_public.phone_calls is 'A phone call with a lead or buyer.';
comment on column app_public.phone_calls.user_id is 'Who of the team called, answered, or wrote it down.';
comment on column app_public.phone_calls.direction is 'Who called.';
comment on column app_public.phone_calls.status is 'How far it is, or how it ended.';
comment on column app_public.phone_calls.outcome is 'What came of it; DO_NOT_CALL marks the lead as not to be contacted.';
comment on column app_public.phone_calls.from_number is 'The number that called; that of the lead or buyer for an inbound call where left out.';
comment on column app_public.phone_calls.to_number is 'The number that was called; that of the lead or buyer for an outbound call where left out.';
comment on column app_public.phone_calls.started_at is E'@insertOptional\n\nWhen it began.';
comment on column app_public.phone_calls.ended_at is 'When it ended.';
comment on column app_public.phone_calls.notes is 'What was said.';
comment on column app_public.phone_calls.recording_url is E'@masked\n@secret\n\nWhere the recording is.';
comment on column app_public.phone_calls.tracker_id is 'The tracker whose number was called.';
comment on constraint phone_calls_user_id_fkey on app_public.phone_calls is E'@fieldName user\n@backwardBehavior -*\n\nWho of the team called, answered, or wrote it down.';
comment on constraint phone_calls_tracker_id_fkey on app_public.phone_calls is E'@fieldName tracker\n@backwardBehavior -*\n\nThe tracker whose number was called.';
