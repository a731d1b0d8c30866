-- Callbacks of the provider of text messages, after their signature was verified: delivery reports and replies. They
-- arrive at least once and in any order.

create function app_private.take_message_status(notice jsonb) returns void
language plpgsql volatile as $$
declare
  message app_private.text_messages;
begin
  update app_private.text_messages m set provider_id = notice ->> 'providerId', status = s.status,
    error = notice ->> 'error'
    from app_private.message_statuses s, app_private.message_statuses o
    where m.id = (notice ->> 'id')::uuid and coalesce(m.provider_id, notice ->> 'providerId') = notice ->> 'providerId'
      and s.status = notice ->> 'status' and o.status = m.status and s.rank > o.rank
    returning m.* into message;
  -- The step stays done, whatever the network says later: steps that follow can ask for the status.
  update app_public.workflow_step_runs r set output = r.output || jsonb_build_object('status', message.status),
    error = message.error
    where r.execution_id = message.execution_id and r.sequence = message.sequence and r.status = 'SUCCEEDED';
end $$;
comment on function app_private.take_message_status(jsonb) is
  'Notes how far a text message is, where that is further than was known, on it and on the run of its step: {id, '
  'providerId, status, error}.';

create function app_private.take_message_answer(notice jsonb) returns void
language plpgsql volatile as $$
declare
  sender text := notice ->> 'from';
  said text := coalesce(notice ->> 'meaning', (select w.meaning from app_private.message_words w
    where w.word = regexp_replace(app_hidden.fold(notice ->> 'text'), '[[:space:][:punct:]]+', '', 'g')));
begin
  insert into app_private.message_answers (id, number, meaning)
    values (notice ->> 'providerId', sender, said) on conflict do nothing;
  if not found then
    return;
  elsif said = 'STOP' then
    perform app_private.stop_numbers(array[sender], 'They answered STOP.');
  elsif said = 'START' then
    delete from app_private.stopped_numbers s where s.number = sender;
  elsif said is null and notice ->> 'text' ~ '\S' then
    insert into app_public.lead_notes (organization_id, project_id, lead_id, buyer_id, text)
      select e.organization_id, coalesce(b.project_id, l.project_id), case when b.id is null then l.id end, b.id,
        format(E'Text message from %s:\n%s', sender, btrim(left(notice ->> 'text', 10000), E' \n\r\t'))
      from app_private.text_messages m
      join app_public.workflow_executions e on e.id = m.execution_id
      left join app_public.leads l on l.id = m.lead_id and l.deleted_at is null
      left join app_public.buyers b on b.id = m.buyer_id and b.deleted_at is null
      where m.recipient = sender and m.provider_id is not null and num_nonnulls(l.id, b.id) > 0
      order by m.began_at desc, m.id desc limit 1;
  end if;
end $$;
comment on function app_private.take_message_answer(jsonb) is
  'Does what somebody answered: STOP and START decide whether their number is written to, anything else is a note on '
  'the lead or purchase that was last: {providerId, from, text, meaning}.';

create function app_private.take_message_notice(notice jsonb, request_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Also in archived projects.
  perform set_config('plat.clock', 'on', true), set_config('plat.channel', 'WEBHOOK', true),
    set_config('plat.request_id', coalesce(request_id, ''), true);
  if notice ? 'status' then
    perform app_private.take_message_status(notice);
  else
    perform app_private.take_message_answer(notice);
  end if;
  perform set_config('plat.clock', '', true), set_config('plat.channel', '', true),
    set_config('plat.request_id', '', true);
end $$;
comment on function app_private.take_message_notice(jsonb, text) is
  'Receives status notices from the provider of text messages.';
grant execute on function app_private.take_message_notice to plat_authenticator;
