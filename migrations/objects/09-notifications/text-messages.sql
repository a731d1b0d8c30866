-- Text messages: the state of each, numbers that have opted out, and the rules of carriers, as rows.

comment on table app_private.message_rules is
  'When text messages go to leads and buyers, by the clock of the project, and of how many segments one may be. One '
  'row.';

insert into app_private.message_rules (opens, closes, most_segments) values ('08:00', '21:00', 6);

comment on table app_private.message_words is
  'Answers of one word that the networks know, without case, accents, spaces and punctuation. HELP is answered by the '
  'provider.';

insert into app_private.message_words (word, meaning) values
  ('stop', 'STOP'), ('stopall', 'STOP'), ('unsubscribe', 'STOP'), ('cancel', 'STOP'), ('end', 'STOP'), ('quit', 'STOP'),
  ('revoke', 'STOP'), ('optout', 'STOP'), ('arret', 'STOP'),
  ('start', 'START'), ('unstop', 'START'), ('help', 'HELP'), ('aide', 'HELP');

comment on table app_private.message_statuses is
  'How far a text message is. Notices of the provider arrive in any order, so they only raise the rank.';

insert into app_private.message_statuses (status, rank, description) values
  ('SENDING', 0, 'Handed to the provider, who has not answered: it may have it.'),
  ('WAITING', 0, 'The provider does not have it.'),
  ('ACCEPTED', 1, 'The provider has it.'), ('SENT', 2, 'The network has it.'), ('DELIVERED', 3, 'It is on the phone.'),
  ('UNDELIVERED', 3, 'The network could not deliver it.'), ('FAILED', 3, 'The provider could not send it.'),
  ('REFUSED', 3, 'The provider will never take it.');

comment on table app_private.stopped_numbers is
  'Numbers that answered STOP, or that the provider says did: nobody is written to there, whatever the organization, '
  'since all write from one sender.';
comment on column app_private.stopped_numbers.number is
  E'@personal objection\n\nKept after an erasure as well, so that nobody writes to it again.';
comment on column app_private.stopped_numbers.reason is E'@impersonal\n\nHow it was stopped.';
comment on table app_private.text_messages is
  'The text message of a step of an execution: one, however often the step is tried. It is SENDING from before the '
  'provider is called.';
comment on column app_private.text_messages.recipient is E'@personal\n\nThe number that it goes to.';
comment on column app_private.text_messages.body is E'@personal\n\nWhat it says.';
comment on column app_private.text_messages.error is E'@personal\n\nWhy it was not sent.';
comment on column app_private.text_messages.status is E'@impersonal\n\nCurrent status.';
comment on column app_private.text_messages.provider_id is E'@impersonal\n\nWhat the provider calls it.';
comment on table app_private.message_answers is
  'The answers that were taken, by the ids of the provider, so that each is taken once. Their texts are notes.';
comment on column app_private.message_answers.number is E'@personal\n\nUser who answered.';
comment on column app_private.message_answers.id is E'@impersonal\n\nWhat the provider calls it.';
comment on column app_private.message_answers.meaning is E'@impersonal\n\nPurpose of the request.';

insert into app_private.retention (relation, over)
  values ('app_private.message_answers', 'received_at < now() - interval ''90 days''');

create function app_hidden.message_segments(body text) returns int
language sql immutable parallel safe as $$
  -- 7 bits a character where the alphabet of GSM 03.38 has all of them, those of its extension twice; else 16, beyond
  -- U+FFFF twice.
  select case when is_gsm then case when units <= 160 then 1 else ceil(units / 153.0) end else case when units <= 70
    then 1 else ceil(units / 67.0) end end::int
  from (select translate(body, E'@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ '
    '!"#¤%&''()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑܧ¿abcdefghijklmnopqrstuvwxyzäöñüà^{}\\[~]|€',
    '') = '' as is_gsm) a
  cross join lateral (select length(body) + case when is_gsm then regexp_count(body, '[\^{}\\\[~\]|€]')
    else regexp_count(body, '[\U00010000-\U0010FFFF]') end as units) u
$$;
comment on function app_hidden.message_segments(text) is 'How many segments the networks send a text in, and charge.';

create function app_private.message_hours_begin(time_zone text) returns timestamptz
language sql stable as $$
  select case when c.clock::time < r.opens then c.clock::date + r.opens
    when c.clock::time >= r.closes then c.clock::date + 1 + r.opens end at time zone time_zone
  from app_private.message_rules r cross join lateral (select now() at time zone time_zone as clock) c
$$;
comment on function app_private.message_hours_begin(text) is
  'When people in a time zone may be written to again; null: now.';

revoke execute on function app_hidden.message_segments from plat_user, plat_anonymous;
