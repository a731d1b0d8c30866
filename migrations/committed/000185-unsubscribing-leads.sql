--! Previous: sha1:8700b90986ddae412e0fce0ae31f8acfe0cc43d1
--! Hash: sha1:cadb847fba4cf205ed72561b38c7f16981f90158
--! Message: unsubscribing-leads

-- Marketing mail can be stopped by whoever gets it: each has a link that withdraws the consent of its lead, without signing in. It stops
-- the marketing mail of the whole organization to that address, whichever of its leads has it: that is what the link says.

alter table app_public.leads add column unsubscribed_at timestamptz,
  add constraint leads_subscription check (not subscribed or unsubscribed_at is null);
comment on column app_public.leads.unsubscribed_at is
  'When the lead withdrew from marketing mail, by the link in a mail or through the team; null once they follow it again, and for those who never did either.';
comment on constraint leads_subscription on app_public.leads is 'A lead follows marketing mail or has unsubscribed from it.';

select app_private.add_report_columns('LEADS', '{unsubscribed_at}');

create table app_private.withdrawn_addresses (
  organization_id uuid not null references app_public.organizations on delete cascade,
  email text not null,
  withdrawn_at timestamptz not null default now(),
  primary key (organization_id, email)
);
alter table app_private.withdrawn_addresses enable row level security;
comment on table app_private.withdrawn_addresses is
  'The addresses that an organization must not write marketing mail to, kept apart from leads: a lead that is deleted and entered again, or a purchase without a lead, has withdrawn all the same.';

create table app_private.merged_leads (
  lead_id uuid primary key references app_public.leads on delete cascade,
  into_id uuid not null references app_public.leads on delete cascade
);
create index merged_leads_into on app_private.merged_leads (into_id);
alter table app_private.merged_leads enable row level security;
comment on table app_private.merged_leads is 'Which lead another one became part of, and was deleted; always the one that lives.';

create function app_private.is_withdrawn(organization_id uuid, email text) returns boolean
language sql stable as $$
  select exists (select from app_private.withdrawn_addresses w where w.organization_id = $1 and w.email = lower($2))
$$;
comment on function app_private.is_withdrawn(uuid, text) is 'Whether an organization must not write marketing mail to an address.';

create function app_private.tg_leads__subscription() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'UPDATE' and old.subscribed = new.subscribed then
    return new;
  elsif tg_op = 'UPDATE' and not new.subscribed then
    new.unsubscribed_at := coalesce(new.unsubscribed_at, now());
  elsif tg_op = 'UPDATE' or (new.subscribed and new.origin = 'CONTACT_PROJECT') then
    new.unsubscribed_at := null;
    delete from app_private.withdrawn_addresses w where w.organization_id = new.organization_id and w.email = new.email;
  else
    -- Entering somebody once more is no consent of theirs.
    select w.withdrawn_at into new.unsubscribed_at from app_private.withdrawn_addresses w
      where w.organization_id = new.organization_id and w.email = new.email;
    new.subscribed := new.subscribed and new.unsubscribed_at is null;
  end if;
  return new;
end $$;
create trigger _220_subscription_first before insert on app_public.leads for each row when (new.email is not null) execute function app_private.tg_leads__subscription();
create trigger _220_subscription before update of subscribed on app_public.leads for each row execute function app_private.tg_leads__subscription();

--------------------------------------------------------------------------------------------------------
-- The link in each mail. Its signature was checked before these are asked, and they tell nothing about the lead.

create function app_private.marketing_sender(person_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select o.name from app_public.organizations o
  where o.deleted_at is null and o.id = coalesce((select l.organization_id from app_public.leads l where l.id = $1), (select b.organization_id from app_public.buyers b where b.id = $1))
$$;
comment on function app_private.marketing_sender(uuid) is 'Who writes marketing mail to a lead, or to a purchase without one, living or deleted; null where there is no such organization any more.';

create function app_private.withdraw_consent(person_id uuid, request_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  clock text := coalesce(current_setting('plat.clock', true), '');
  request text := coalesce(current_setting('plat.request_id', true), '');
  lead_ids uuid[] := array(select person_id union select m.into_id from app_private.merged_leads m where m.lead_id = person_id);
  organization uuid;
  addresses text[];
begin
  select p.organization_id, array_remove(array_agg(distinct lower(p.email)), null) into organization, addresses
    from (select l.organization_id, l.email::text from app_public.leads l where l.id = any (lead_ids)
      union all select b.organization_id, b.email::text from app_public.buyers b where b.id = person_id) p
    group by p.organization_id;
  if organization is null then
    return;
  end if;
  insert into app_private.withdrawn_addresses (organization_id, email) select organization, a from unnest(addresses) a order by a on conflict do nothing;
  lead_ids := array(
    select l.id from app_public.leads l where l.id = any (array(
        select unnest(lead_ids) union select s.id from app_public.leads s where s.email = any (addresses) and s.organization_id = organization and s.deleted_at is null))
      and l.deleted_at is null and l.unsubscribed_at is null
    order by l.id for no key update);
  -- Whoever withdraws is heard in archived projects too.
  perform set_config('plat.clock', 'on', true), set_config('plat.request_id', coalesce(request_id, ''), true);
  update app_public.leads l set subscribed = false, unsubscribed_at = now() where l.id = any (lead_ids);
  perform set_config('plat.clock', clock, true), set_config('plat.request_id', request, true);
end $$;
comment on function app_private.withdraw_consent(uuid, text) is
  'Stops the marketing mail of an organization to a lead (or a purchase without one) and to whoever else has its address; done again, it changes nothing.';
grant execute on function app_private.marketing_sender, app_private.withdraw_consent to plat_authenticator;

--------------------------------------------------------------------------------------------------------
-- Which mails are marketing: those to leads and buyers, but for what is said about a dealing of theirs because of what happened in it.

create function app_private.is_marketing(trigger_type text, event_id uuid) returns boolean
language sql stable as $$
  select trigger_type <> 'EVENT' or not exists (select from app_public.events e where e.id = event_id and e.subject_type in
    ('agreement', 'appointment', 'buyer', 'charge', 'deposit', 'negotiation', 'offer', 'offer_response', 'personalization', 'reservation', 'reservation_document'))
$$;
comment on function app_private.is_marketing(text, uuid) is
  'Whether what an execution writes to its lead or buyer is marketing mail. It is not where an event of their own dealing started it, such as an appointment or a reservation.';

create or replace function app_private.step_send_email(step app_public.workflow_steps, work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
declare
  mails jsonb;
  contacted uuid[];
begin
  select jsonb_agg(jsonb_build_object('executionId', m.execution_id, 'leadId', m.lead_id, 'to', m.recipient, 'failure', m.failure, 'refusal', m.refusal, 'isPerson', m.is_person,
      'mail', jsonb_build_object('to', jsonb_build_array(m.recipient), 'subject', m.input ->> 'subject', 'body', m.input ->> 'body') ||
        case when m.input ->> 'html' is not null then jsonb_build_object('html', m.input ->> 'html') else '{}' end))
    into mails
    from (
      select x.*, coalesce(x.input ->> 'to', 'PERSON') = 'PERSON' as is_person,
        case coalesce(x.input ->> 'to', 'PERSON') when 'PERSON' then coalesce(b.email, l.email) when 'ADDRESS' then x.input ->> 'address' else i.email end as recipient,
        case when coalesce(x.input ->> 'to', 'PERSON') <> 'PERSON' then null
          when p.do_not_contact then 'The lead asked not to be contacted.'
          when n.is_marketing and (p.unsubscribed_at is not null or app_private.is_withdrawn(x.organization_id, coalesce(b.email, l.email)))
            then 'They have unsubscribed from marketing mail.'
          when b.id is null and not l.subscribed and e.trigger_type in ('BATCH', 'SCHEDULE') then 'The lead does not follow marketing mail.' end as refusal,
        case when coalesce(x.input ->> 'to', 'PERSON') = 'PERSON' and coalesce(b.email, l.email) is null then 'The lead or buyer has no e-mail address.'
          when x.input ->> 'to' in ('ASSIGNEE', 'MEMBER') and i.email is null then 'There is nobody to write to.'
          when btrim(coalesce(x.input ->> 'subject', '')) = '' or btrim(coalesce(x.input ->> 'body', '')) = '' then 'The subject or the text of the mail came out empty.' end as failure
      from app_private.step_people(work) x
      join app_public.workflow_executions e on e.id = x.execution_id
      cross join lateral (select app_private.is_marketing(e.trigger_type, e.trigger_event_id) as is_marketing) n
      left join app_public.buyers b on b.id = x.buyer_id
      left join app_public.leads l on l.id = x.lead_id
      left join app_public.leads p on p.id = coalesce(x.lead_id, b.lead_id)
      left join app_hidden.user_identities i on i.user_id = case x.input ->> 'to' when 'MEMBER' then (x.input ->> 'memberId')::uuid
        when 'ASSIGNEE' then app_private.assignee_of(lower(x.subject_type), x.subject_id, x.lead_id, x.buyer_id) end) m;
  perform app_private.add_workflow_mails((select coalesce(jsonb_agg(jsonb_build_object('executionId', m -> 'executionId', 'sequence', step.sequence)), '[]')
    from jsonb_array_elements(mails) m where m ->> 'failure' is null and m ->> 'refusal' is null));
  contacted := array(select (m ->> 'leadId')::uuid from jsonb_array_elements(mails) m
    where m ->> 'failure' is null and m ->> 'refusal' is null and (m ->> 'isPerson')::boolean and m ->> 'leadId' is not null);
  if contacted <> '{}' then
    perform app_private.lead_interactions(contacted, now(), true);
  end if;
  return query
    select (m ->> 'executionId')::uuid,
      case when m ->> 'refusal' is not null then 'SKIPPED' when m ->> 'failure' is not null then 'FAILED' else 'SUCCEEDED' end,
      case when m ->> 'refusal' is null and m ->> 'failure' is null then m -> 'mail' end, coalesce(m ->> 'refusal', m ->> 'failure'), null::int, null::timestamptz
    from jsonb_array_elements(mails) m;
end $$;

drop function app_private.workflow_mail(uuid, int);
create function app_private.workflow_mail(execution_id uuid, sequence int)
returns table (key text, recipients text[], subject text, body text, html text, reply_to_name text, reply_to_address text, organization text, workflow text, to_team boolean,
  postal_address text, person_id uuid)
language sql stable as $$
  select format('workflow %s %s', e.id, r.sequence),
    -- Who asked since then not to be contacted, or not to get such mails, is not.
    case when exists (select from app_public.leads l where l.id = e.lead_id and l.do_not_contact and r.output -> 'to' ? l.email) then '{}'
      when n.person_id is not null and (exists (select from app_public.leads l where l.id = coalesce(e.lead_id, b.lead_id) and l.unsubscribed_at is not null)
        or app_private.is_withdrawn(e.organization_id, r.output -> 'to' ->> 0)) then '{}'
      when r.output ? 'users' then array(
        select i.email::text from jsonb_array_elements_text(r.output -> 'users') u join app_hidden.user_identities i on i.user_id = u::uuid
        join app_public.users x on x.id = i.user_id and x.status = 'ACTIVE' and x.deleted_at is null
        where exists (select from app_public.organization_user_connections m where m.user_id = i.user_id
          and m.organization_id in (select e.organization_id union select p.organization_id from app_public.project_organizations p where p.project_id = e.project_id))
        order by i.email)
      else array(select jsonb_array_elements_text(r.output -> 'to')) end,
    r.output ->> 'subject', r.output ->> 'body', r.output ->> 'html', coalesce(nullif(concat_ws(' ', a.first_name, a.last_name), ''), o.name), coalesce(i.email, o.email)::text, o.name::text, w.name::text,
    r.output ? 'users', app_hidden.address_line(o.address), n.person_id
  from app_public.workflow_step_runs r
  join app_public.workflow_executions e on e.id = r.execution_id
  join app_public.workflows w on w.id = e.workflow_id
  join app_public.organizations o on o.id = e.organization_id
  left join app_public.users a on a.id = app_private.assignee_of(lower(e.subject_type), e.subject_id, e.lead_id, e.buyer_id)
  left join app_hidden.user_identities i on i.user_id = a.id
  left join app_public.buyers b on b.id = e.buyer_id
  cross join lateral (
    select case when s.type = 'SEND_EMAIL' and coalesce(s.config ->> 'to', 'PERSON') = 'PERSON' and app_private.is_marketing(e.trigger_type, e.trigger_event_id)
      then coalesce(e.lead_id, b.lead_id, b.id) end as person_id
    from app_public.workflow_steps s where s.id = r.step_id) n
  where r.execution_id = workflow_mail.execution_id and r.sequence = workflow_mail.sequence and r.status = 'SUCCEEDED'
$$;
comment on function app_private.workflow_mail(uuid, int) is
  'What a step has sent, and whom an answer goes to: whoever works on the subject, or the organization. person_id: of marketing mail, whose consent it rests on, a lead or a purchase without one.';

drop function app_private.generation_mail(uuid, uuid);
create function app_private.generation_mail(generation_id uuid, sender_id uuid)
returns table (recipient text, subject text, body text, sender text, reply_to text, organization text, postal_address text, lead_id uuid)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.email, g.subject, g.body, coalesce(nullif(concat_ws(' ', u.first_name, u.last_name), ''), o.name), coalesce(i.email, o.email), o.name, app_hidden.address_line(o.address), l.id
  from app_public.service_intelligence_generations g
  join app_public.leads l on l.id = g.lead_id and l.deleted_at is null and not l.do_not_contact and l.email is not null
  join app_public.organizations o on o.id = g.organization_id
  left join app_public.users u on u.id = generation_mail.sender_id
  left join app_hidden.user_identities i on i.user_id = u.id
  where g.id = generation_mail.generation_id and g.status = 'ACCEPTED' and g.deleted_at is null
$$;
comment on function app_private.generation_mail(uuid, uuid) is 'The mail of an accepted draft; none once its lead is not to be contacted.';

create or replace function app_private.merge_leads(kept_id uuid, gone_id uuid) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  service text := coalesce(current_setting('plat.service', true), '');
  kept app_public.leads;
  gone app_public.leads;
  reference record;
begin
  -- In the order of locks, of both at once.
  perform from app_public.reservations r where r.lead_id in (kept_id, gone_id) order by r.id for no key update;
  perform from app_public.negotiations n where n.lead_id in (kept_id, gone_id) order by n.id for no key update;
  perform from app_public.buyers b where b.lead_id in (kept_id, gone_id) order by b.id for no key update;
  perform from app_public.leads l where l.id in (kept_id, gone_id) order by l.id for no key update;
  -- A purchase keeps its lead, and what is open what is over; else the earlier one stays.
  select l.* into kept from app_public.leads l where l.id in (kept_id, gone_id) and l.deleted_at is null
    order by l.status = 'CONVERTED' desc, l.status in ('LOST', 'UNQUALIFIED'), l.id limit 1;
  select l.* into gone from app_public.leads l where l.id in (kept_id, gone_id) and l.deleted_at is null and l.id <> kept.id;
  if gone.id is null or gone.project_id <> kept.project_id then
    perform app_hidden.fail('CONFLICT', 'One of the two leads is gone.');
  elsif gone.status = 'CONVERTED' then
    perform app_hidden.fail('CONFLICT', 'Both leads are buyers; cancel one of the purchases first.');
  elsif exists (select from app_public.negotiations n join app_public.negotiations o on o.unit_id = n.unit_id
      where n.lead_id = kept.id and o.lead_id = gone.id and n.status not in ('ACCEPTED', 'CANCELLED') and o.status not in ('ACCEPTED', 'CANCELLED')
        and n.deleted_at is null and o.deleted_at is null) then
    perform app_hidden.fail('CONFLICT', 'Both leads negotiate about the same unit; call one of the negotiations off first.');
  elsif kept.status = 'CONVERTED' and exists (select from app_public.reservations r
      where r.lead_id = gone.id and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null) then
    perform app_hidden.fail('CONFLICT', 'One of them is a buyer, the other has an open reservation; convert or cancel that first.');
  end if;
  -- Whatever refers to the one refers to the other, whichever chapter brought it.
  for reference in
    select c.conrelid::regclass as relation, a.attname as name,
      exists (select from pg_attribute d where d.attrelid = c.conrelid and d.attname = 'deleted_at' and not d.attisdropped) as is_soft
    from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
    where c.contype = 'f' and c.confrelid = 'app_public.leads'::regclass
    order by c.conrelid::regclass::text
  loop
    execute format('update %1$s set %2$I = $1 where %2$I = $2%3$s', reference.relation, reference.name,
      case when reference.is_soft then ' and deleted_at is null' else '' end) using kept.id, gone.id;
  end loop;
  -- The links in mails to the one lead to the other.
  insert into app_private.merged_leads (lead_id, into_id) values (gone.id, kept.id);
  perform set_config('plat.service', 'on', true);
  update app_public.leads l set deleted_at = now() where l.id = gone.id;
  update app_public.leads l set email = coalesce(l.email, gone.email), phone = coalesce(l.phone, gone.phone), address = case when l.address is distinct from null then l.address else gone.address end,
      company = coalesce(l.company, gone.company), preferred_language = coalesce(l.preferred_language, gone.preferred_language), legal_name = coalesce(l.legal_name, gone.legal_name),
      agent_id = coalesce(l.agent_id, gone.agent_id), is_represented = coalesce(l.is_represented, gone.is_represented), assignee_id = coalesce(l.assignee_id, gone.assignee_id),
      source = coalesce(l.source, gone.source), source_id = coalesce(l.source_id, gone.source_id), preapproved = coalesce(l.preapproved, gone.preapproved),
      -- Who withdrew as the one has withdrawn.
      subscribed = (l.subscribed or gone.subscribed) and l.unsubscribed_at is null and gone.unsubscribed_at is null,
      unsubscribed_at = greatest(l.unsubscribed_at, gone.unsubscribed_at), do_not_contact = l.do_not_contact or gone.do_not_contact,
      registered_at = least(l.registered_at, gone.registered_at), first_response_at = least(l.first_response_at, gone.first_response_at),
      last_interaction_at = greatest(l.last_interaction_at, gone.last_interaction_at),
      tags = coalesce((array(select distinct t from unnest(l.tags::text[] || gone.tags::text[]) t order by t))[1:50], '{}')
    where l.id = kept.id;
  perform set_config('plat.service', service, true);
  perform app_private.follow_deals(kept.id);
  return kept.id;
end $$;
