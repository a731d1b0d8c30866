--! Previous: sha1:88580ab9a71c26b022a57bf8b2fa2f89b08b8de3
--! Hash: sha1:33d35af7cf423fae51cd9092cbae41d0d5b41c46
--! Message: phone-calls

-- Phone calls with leads and buyers.

select app_private.create_enum('phone_call_direction', 'Who called.', array[
  ['INBOUND', 'The lead or buyer.'], ['OUTBOUND', 'The team.']]);
select app_private.create_enum('phone_call_status', 'How far a call is, or how it ended.', array[
  ['QUEUED', 'To be dialled.'], ['RINGING', 'It rings.'], ['IN_PROGRESS', 'They talk.'], ['COMPLETED', 'Over.'],
  ['BUSY', 'The line was busy.'], ['NO_ANSWER', 'Nobody answered.'], ['FAILED', 'There was no connection.'],
  ['CANCELLED', 'Given up before it was answered.'], ['MISSED', 'Nobody of the team answered.']]);
select app_private.create_enum('phone_call_outcome', 'What came of a call.', array[
  ['CONNECTED', 'They talked.'], ['LEFT_VOICEMAIL', 'A message on the voicemail.'],
  ['LEFT_LIVE_MESSAGE', 'A message with somebody else.'], ['NO_ANSWER', 'Nobody answered.'],
  ['BUSY', 'The line was busy.'], ['WRONG_NUMBER', 'Somebody else''s number.'], ['BAD_NUMBER', 'Nobody''s number.'],
  ['CALLBACK_REQUESTED', 'Wants to be called back.'], ['INTERESTED', 'Is interested.'],
  ['NOT_INTERESTED', 'Is not interested.'], ['APPOINTMENT_SET', 'An appointment was agreed.'],
  ['DO_NOT_CALL', 'Does not want to be contacted; the lead is marked so.'], ['OTHER', 'Something else.']]);

create table app_public.phone_calls (
  like app_private.project_record including all,
  lead_id uuid,
  buyer_id uuid,
  user_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  direction app_public.phone_call_direction not null,
  status app_public.phone_call_status not null default 'COMPLETED',
  outcome app_public.phone_call_outcome,
  from_number app_public.phone_number constraint phone_calls_from_number_e164 check (from_number ~
    '^\+[1-9][0-9]{6,14}$'),
  to_number app_public.phone_number constraint phone_calls_to_number_e164 check (to_number ~ '^\+[1-9][0-9]{6,14}$'),
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  notes app_public.long_text,
  recording_url app_public.url,
  tracker_id uuid,
  constraint phone_calls_order check (ended_at >= started_at),
  constraint phone_calls_tracker_id_fkey foreign key (tracker_id, project_id)
    references app_public.trackers (id, project_id) on delete set null (tracker_id),
  constraint phone_calls_one_person check (num_nonnulls(lead_id, buyer_id) = 1),
  constraint phone_calls_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint phone_calls_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete cascade,
  constraint phone_calls_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete cascade
);
create index phone_calls_user on app_public.phone_calls (user_id);
create index phone_calls_tracker on app_public.phone_calls (tracker_id) where deleted_at is null;
create index phone_calls_buyer on app_public.phone_calls (buyer_id, started_at desc, id desc) where deleted_at is null;
create index phone_calls_lead on app_public.phone_calls (lead_id, started_at desc, id desc) where deleted_at is null;
create index phone_calls_project on app_public.phone_calls (project_id, started_at desc, id desc)
  where deleted_at is null;
alter table app_public.phone_calls enable row level security;
