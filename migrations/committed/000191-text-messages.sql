--! Previous: sha1:812b7bff726a0273e23358f5de741650aff99b15
--! Hash: sha1:4fa72311b7517d34f04b826426b4726c8fc136ee
--! Message: text-messages

-- Text messages: what is known of each, whom nobody may write to any more, and the rules of the trade, as rows.

create table app_private.message_rules (
  opens time not null,
  closes time not null,
  most_segments int not null,
  constraint message_rules_hours check (opens < closes)
);
create unique index message_rules_one on app_private.message_rules ((true));
alter table app_private.message_rules enable row level security;
comment on table app_private.message_rules is
  'When text messages go to leads and buyers, by the clock of the project, and of how many segments one may be. One row.';
insert into app_private.message_rules (opens, closes, most_segments) values ('08:00', '21:00', 6);

create table app_private.message_words (
  word text primary key,
  meaning text not null constraint message_words_meaning check (meaning in ('STOP', 'START', 'HELP'))
);
alter table app_private.message_words enable row level security;
comment on table app_private.message_words is
  'Answers of one word that the networks know, without case, accents, spaces and punctuation. HELP is answered by the provider.';
insert into app_private.message_words (word, meaning) values
  ('stop', 'STOP'), ('stopall', 'STOP'), ('unsubscribe', 'STOP'), ('cancel', 'STOP'), ('end', 'STOP'), ('quit', 'STOP'), ('revoke', 'STOP'), ('optout', 'STOP'), ('arret', 'STOP'),
  ('start', 'START'), ('unstop', 'START'), ('help', 'HELP'), ('aide', 'HELP');

create table app_private.message_statuses (
  status text primary key,
  rank int not null,
  description text not null
);
alter table app_private.message_statuses enable row level security;
comment on table app_private.message_statuses is
  'How far a text message is. What the provider tells by itself comes in any order: it leads to a higher rank only.';
insert into app_private.message_statuses (status, rank, description) values
  ('SENDING', 0, 'Handed to the provider, who has not answered: it may have it.'), ('WAITING', 0, 'The provider does not have it.'),
  ('ACCEPTED', 1, 'The provider has it.'), ('SENT', 2, 'The network has it.'), ('DELIVERED', 3, 'It is on the phone.'),
  ('UNDELIVERED', 3, 'The network could not deliver it.'), ('FAILED', 3, 'The provider could not send it.'), ('REFUSED', 3, 'The provider will never take it.');

create table app_private.stopped_numbers (
  number text primary key,
  reason text not null,
  stopped_at timestamptz not null default now()
);
alter table app_private.stopped_numbers enable row level security;
comment on table app_private.stopped_numbers is
  'Numbers that answered STOP, or that the provider says did: nobody is written to there, whatever the organization, since all write from one sender.';

create table app_private.text_messages (
  id uuid primary key default uuidv7(),
  execution_id uuid not null references app_public.workflow_executions on delete cascade,
  sequence int not null,
  lead_id uuid references app_public.leads on delete cascade,
  buyer_id uuid references app_public.buyers on delete cascade,
  user_id uuid references app_public.users on delete cascade,
  recipient text not null constraint text_messages_e164 check (recipient ~ '^\+[1-9][0-9]{6,14}$'),
  body text not null,
  status text not null default 'SENDING' references app_private.message_statuses,
  began_at timestamptz not null default now(),
  provider_id text constraint text_messages_provider_id unique,
  error text,
  constraint text_messages_once unique (execution_id, sequence),
  constraint text_messages_one_recipient check ((num_nonnulls(lead_id, buyer_id) > 0) <> (user_id is not null))
);
create index text_messages_recipient on app_private.text_messages (recipient, id desc);
create index text_messages_lead on app_private.text_messages (lead_id) where lead_id is not null;
create index text_messages_buyer on app_private.text_messages (buyer_id) where buyer_id is not null;
create index text_messages_user on app_private.text_messages (user_id) where user_id is not null;
alter table app_private.text_messages enable row level security;
comment on table app_private.text_messages is
  'The text message of a step of an execution: one, however often the step is tried. It is SENDING from before the provider is called.';

create table app_private.message_answers (
  id text primary key,
  number text not null,
  meaning text,
  received_at timestamptz not null default now()
);
create index message_answers_received_at on app_private.message_answers (received_at);
alter table app_private.message_answers enable row level security;
comment on table app_private.message_answers is 'The answers that were taken, by the ids of the provider, so that each is taken once. Their texts are notes.';
insert into app_private.retention (relation, over) values ('app_private.message_answers', 'received_at < now() - interval ''90 days''');

--------------------------------------------------------------------------------------------------------

create function app_hidden.message_segments(body text) returns int
language sql immutable parallel safe as $$
  -- 7 bits a character where the alphabet of GSM 03.38 has all of them, those of its extension twice; else 16, beyond U+FFFF twice.
  select case when is_gsm then case when units <= 160 then 1 else ceil(units / 153.0) end else case when units <= 70 then 1 else ceil(units / 67.0) end end::int
  from (select translate(body, E'@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&''()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑܧ¿abcdefghijklmnopqrstuvwxyzäöñüà^{}\\[~]|€', '') = '' as is_gsm) a
  cross join lateral (select length(body) + case when is_gsm then regexp_count(body, '[\^{}\\\[~\]|€]') else regexp_count(body, '[\U00010000-\U0010FFFF]') end as units) u
$$;
comment on function app_hidden.message_segments(text) is 'How many segments the networks send a text in, and charge.';

create function app_private.message_hours_begin(time_zone text) returns timestamptz
language sql stable as $$
  select case when c.clock::time < r.opens then c.clock::date + r.opens
    when c.clock::time >= r.closes then c.clock::date + 1 + r.opens end at time zone time_zone
  from app_private.message_rules r cross join lateral (select now() at time zone time_zone as clock) c
$$;
comment on function app_private.message_hours_begin(text) is 'When people in a time zone may be written to again; null: now.';

create function app_private.tg_workflow_steps__segments() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  body text := new.config ->> 'body';
  -- What a template certainly says; how long a condition or a loop makes it is known when it is sent.
  amount int := case when body !~ '\{%' then app_hidden.message_segments(regexp_replace(body, '\{\{.*?\}\}', '', 'g')) end;
  most int := (select r.most_segments from app_private.message_rules r);
begin
  if amount > most then
    perform app_private.refuse_definition(format('steps[%s].config.body', new.sequence - 1), format('the text takes %s segments and may take %s: %s.', amount, most,
      'about 153 characters each, 67 where one of them is beyond the GSM alphabet, such as an emoji'));
  end if;
  return new;
end $$;
comment on function app_private.tg_workflow_steps__segments() is 'Refuses a text message that cannot but be too long.';
create trigger _200_segments before insert on app_public.workflow_steps for each row
  when (new.type = 'SEND_SMS' and jsonb_typeof(new.config -> 'body') = 'string') execute function app_private.tg_workflow_steps__segments();

update app_hidden.workflow_step_types set refusal = null where type = 'SEND_SMS';
update app_hidden.workflow_step_members set position = 3, description = 'The text, of 6 segments at most.' where type = 'SEND_SMS' and name = 'body';
insert into app_hidden.workflow_step_members (type, position, name, kind, required, choices, with_name, with_value, description) values
  ('SEND_SMS', 1, 'to', 'choice', false, '{PERSON,ASSIGNEE,MEMBER}', null, null, 'Who gets it: the lead or buyer (where left out), whoever works on them, or a member.'),
  ('SEND_SMS', 2, 'memberId', 'member', false, null, 'to', 'MEMBER', 'The member.');
