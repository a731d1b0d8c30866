-- SEND_SMS. The provider supports no idempotency key, so that a message is recorded before it is submitted, and the
-- response after:
--
--   SENDING   recorded, with the text, before the call
--   WAITING   the provider certainly does not have it
--   ACCEPTED … REFUSED   the provider's result, from its response, and again from /webhooks/messages, by our id
--
-- A message found in SENDING waits for a minute, longer than a call can take; then the provider is queried for it
-- before it is sent again. The remaining risk: a provider that accepted a message and does not list it a minute later
-- gets it twice.

create function app_private.message_plans(step app_public.workflow_steps, work app_private.step_work[])
returns table (execution_id uuid, attempt int, message app_private.text_messages, result jsonb)
language sql stable rows 32 as $$
  -- The first that holds decides.
  select x.execution_id, x.attempt,
    row(coalesce(m.id, uuidv7()), x.execution_id, step.sequence, case when t.is_person then x.lead_id end, case
      when t.is_person then x.buyer_id end, u.id,
      n.number, x.input ->> 'body', 'SENDING', now(), null, null)::app_private.text_messages,
    case
      when m.provider_id is not null then jsonb_build_object('result', 'TAKEN', 'id', m.provider_id, 'status', m.status)
      when m.status = 'SENDING' and m.began_at > now() - interval '1 minute'
        then jsonb_build_object('result', 'WAIT', 'until', m.began_at + interval '1 minute')
      when m.status = 'SENDING' then jsonb_build_object('result', 'FIND', 'to', m.recipient, 'body', m.body, 'since',
        m.began_at)
      when t.is_person and o.is_sandbox then jsonb_build_object('result', 'SKIP', 'error',
        'A sandbox organization sends no text messages to leads and buyers.')
      when t.is_person and l.do_not_contact
        then jsonb_build_object('result', 'SKIP', 'error', 'The lead asked not to be contacted.')
      when t.is_person and case when b.id is null then l.deleted_at is not null else b.deleted_at is not null
        or b.status = 'CANCELLED' end then jsonb_build_object('result', 'SKIP', 'error', 'The lead or buyer is gone.')
      when exists (select from app_private.stopped_numbers s where s.number = n.number) then
        jsonb_build_object('result', 'SKIP', 'error', 'This number gets no more messages: it answered STOP.')
      when t.is_person and l.unsubscribed_at is not null
        and app_private.is_marketing(e.trigger_type, e.trigger_event_id) then
        jsonb_build_object('result', 'SKIP', 'error', 'They have unsubscribed from marketing messages.')
      when t.is_person and b.id is null and not l.subscribed and e.trigger_type in ('BATCH', 'SCHEDULE') then
        jsonb_build_object('result', 'SKIP', 'error', 'The lead does not follow marketing messages.')
      when n.number is null then jsonb_build_object('result', 'FAIL', 'error', case when t.is_person
        then 'The lead or buyer has no phone number.' else 'There is nobody with a phone number to write to.' end)
      when btrim(coalesce(x.input ->> 'body', '')) = ''
        then jsonb_build_object('result', 'FAIL', 'error', 'The text came out empty.')
      when app_hidden.message_segments(x.input ->> 'body') > r.most_segments then
        jsonb_build_object('result', 'FAIL', 'error',
          format('The text came out too long: %s segments, and it may take %s.',
          app_hidden.message_segments(x.input ->> 'body'), r.most_segments))
      -- Another attempt is for another number.
      when m.status = 'REFUSED' and m.recipient = n.number then jsonb_build_object('result', 'FAIL', 'error', m.error)
      when t.is_person and h.begin is not null then jsonb_build_object('result', 'WAIT', 'until', h.begin)
      else jsonb_build_object('result', 'SEND', 'to', n.number, 'body', x.input ->> 'body') end
  from app_private.step_people(work) x
  join app_public.workflow_executions e on e.id = x.execution_id
  join app_public.organizations o on o.id = x.organization_id
  cross join app_private.message_rules r
  cross join lateral (select coalesce(x.input ->> 'to', 'PERSON') = 'PERSON' as is_person) t
  left join app_private.text_messages m on m.execution_id = x.execution_id and m.sequence = step.sequence
  left join app_public.projects p on p.id = x.project_id
  left join app_public.buyers b on b.id = x.buyer_id
  left join app_public.leads l on l.id = coalesce(x.lead_id, b.lead_id)
  left join app_public.users u on u.id = case x.input ->> 'to' when 'MEMBER' then (x.input ->> 'memberId')::uuid
      when 'ASSIGNEE' then app_private.assignee_of(lower(x.subject_type), x.subject_id, x.lead_id, x.buyer_id) end
    and u.status = 'ACTIVE' and u.deleted_at is null
    and exists (select from app_public.organization_user_connections c where c.user_id = u.id
      and (c.organization_id = x.organization_id
      or c.organization_id in (select a.organization_id from app_public.project_organizations a
        where a.project_id = x.project_id)))
  cross join lateral (select case when t.is_person then coalesce(b.phone, l.phone) else u.phone end::text as number) n
  cross join lateral (select app_private.message_hours_begin(case when p.time_zone <> 'UTC' then p.time_zone
    else o.time_zone end) as begin) h
$$;
comment on function app_private.message_plans(app_public.workflow_steps, app_private.step_work[]) is
  'What is to become of the text message of a step for each execution: SEND or FIND at the provider, or an outcome '
  'without a call: TAKEN, WAIT, SKIP, FAIL.';

create function app_private.begin_messages(step_id uuid, results jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  step app_public.workflow_steps := (select s from app_public.workflow_steps s where s.id = step_id);
  home uuid := (select w.organization_id from app_public.workflows w where w.id = step.workflow_id);
  work app_private.step_work[];
  calls jsonb;
  granted int;
  unused int;
begin
  select array_agg(row((r ->> 'executionId')::uuid, (r ->> 'attempt')::int, r -> 'input')::app_private.step_work)
    into work
    from jsonb_array_elements(results) r where r ? 'input';
  -- Counted in advance; the unused part is subtracted below.
  granted := app_private.reserve_sending(home, 'SMS', coalesce(cardinality(work), 0));
  with planned as materialized (
    select p.*, p.result ->> 'result' = 'SEND' as sends from app_private.message_plans(step, work) p
  ), plans as materialized (
    -- Above the quota of the organization, or too many to one number: later.
    select p.execution_id, p.attempt, p.message, case
        when not p.sends then p.result
        when not app_private.owner_is_confirmed(home) then jsonb_build_object('result', 'FAIL', 'error',
          'No owner of the organization has confirmed the email address of their account: requestEmailVerification '
          'sends a code, verifyEmail takes it.')
        when row_number() over (partition by p.sends order by p.execution_id) > granted
          then jsonb_build_object('result', 'WAIT', 'until', coalesce(q.frees_at, now() + interval '1 hour'))
        when (select count(*) from app_private.text_messages m where m.recipient = (p.message).recipient
          and m.began_at > now() - l.within and m.id <> (p.message).id) >= l.most
          then jsonb_build_object('result', 'WAIT', 'until', now() + interval '1 hour')
        else p.result end as result
    from planned p
    cross join app_private.limit_of('sms.recipient') l
    cross join app_private.sending_quota(home, 'SMS') q
  ), noted as (
    insert into app_private.text_messages as m
      select (p.message).* from plans p where p.result ->> 'result' = 'SEND'
      on conflict on constraint text_messages_once do update set lead_id = excluded.lead_id,
        buyer_id = excluded.buyer_id, user_id = excluded.user_id,
        recipient = excluded.recipient, body = excluded.body, status = 'SENDING', began_at = excluded.began_at,
          error = null
  )
  select array_agg(row(p.execution_id, p.attempt,
    p.result)::app_private.step_work) filter (where p.result ->> 'result' not in ('SEND', 'FIND')),
      jsonb_object_agg(p.execution_id, p.result || jsonb_build_object('id', (p.message).id, 'known', (
        select coalesce(jsonb_agg(k.provider_id), '[]') from app_private.text_messages k
          where p.result ->> 'result' = 'FIND' and k.recipient = p.result ->> 'to'
            and k.provider_id is not null))) filter (where p.result ->> 'result' in ('SEND', 'FIND'))
    into work, calls from plans p;
  unused := granted - (select count(*) from jsonb_each(calls) c where c.value ->> 'result' = 'SEND');
  if unused > 0 then
    perform app_private.return_sending(home, 'SMS', unused);
  end if;
  if work is not null then
    perform app_private.perform_step(step, work);
  end if;
  perform app_private.complete_workflow_step(step_id,
    (select coalesce(jsonb_agg(r), '[]') from jsonb_array_elements(results) r where r ? 'error'));
  return coalesce(calls, '{}');
end $$;
comment on function app_private.begin_messages(uuid, jsonb) is
  'Notes the text messages of a step before they are handed over: [{executionId, attempt, input | error}]. Gives '
  '{executionId: {result: SEND | FIND, id, to, body, since, known}}; the other executions are completed. known: '
  'messages to that number that are not the one sought.';

create function app_private.stop_numbers(numbers text[], reason text) returns void
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  clock text := coalesce(current_setting('plat.clock', true), '');
  lead_ids uuid[];
begin
  insert into app_private.stopped_numbers (number, reason) select n, reason from unnest(numbers) n
    order by n on conflict do nothing;
  lead_ids := array(select l.id from app_public.leads l
    where l.id in (select m.lead_id from app_private.text_messages m where m.recipient = any (numbers))
      and l.phone = any (numbers) and l.subscribed and l.deleted_at is null
    order by l.id for no key update);
  -- Opting out also works in archived projects.
  perform set_config('plat.clock', 'on', true);
  update app_public.leads l set subscribed = false where l.id = any (lead_ids);
  perform set_config('plat.clock', clock, true);
end $$;
comment on function app_private.stop_numbers(text[], text) is
  'Text messages to these numbers stop, and their leads are unsubscribed from marketing messages.';
grant execute on function app_private.begin_messages to plat_worker;
