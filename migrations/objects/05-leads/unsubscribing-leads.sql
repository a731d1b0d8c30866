-- Unsubscribing from marketing mail: each mail has a link that withdraws the consent of its lead, without signing in.
-- It applies to all marketing mail of the organization to that address, for all leads with it, as the link says.

comment on table app_private.withdrawn_addresses is
  'The addresses that an organization must not write marketing mail to, kept apart from leads: a lead that is deleted '
  'and entered again, or a purchase without a lead, has withdrawn all the same.';
comment on column app_private.withdrawn_addresses.email is
  E'@personal objection\n\nKept after an erasure as well, so that nobody writes to it again.';

create function app_private.is_withdrawn(organization_id uuid, email text) returns boolean
language sql stable as $$
  select exists (select from app_private.withdrawn_addresses w where w.organization_id = $1 and w.email = lower($2))
$$;
comment on function app_private.is_withdrawn(uuid, text) is
  'Whether an organization must not write marketing mail to an address.';

-- The link in each mail. Its signature is verified before these functions are called, and they reveal nothing about
-- the lead.
create function app_private.marketing_sender(person_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select o.name from app_public.organizations o
  where o.deleted_at is null and o.id = coalesce((select l.organization_id from app_public.leads l where l.id = $1),
    (select b.organization_id from app_public.buyers b where b.id = $1),
    (select r.organization_id from app_private.consent_requests r where r.id = $1))
$$;
comment on function app_private.marketing_sender(uuid) is
  E'@step The link that names the lead or purchase is signed.\n\n'
  'The organization that sends marketing mail to a lead, or to a purchase without one, deleted or not; null if it '
  'no longer exists.';

create function app_private.withdraw_consent(person_id uuid, request_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  clock text := coalesce(current_setting('plat.clock', true), '');
  request text := coalesce(current_setting('plat.request_id', true), '');
  lead_ids uuid[] := array(select person_id union select m.into_id from app_private.merged_leads m
    where m.lead_id = person_id);
  organization uuid;
  addresses text[];
begin
  select p.organization_id, array_remove(array_agg(distinct lower(p.email)), null) into organization, addresses
    from (select l.organization_id, l.email::text from app_public.leads l where l.id = any (lead_ids)
      union all select b.organization_id, b.email::text from app_public.buyers b where b.id = person_id
      union all select r.organization_id, r.email from app_private.consent_requests r where r.id = person_id) p
    group by p.organization_id;
  if organization is null then
    return;
  end if;
  insert into app_private.withdrawn_addresses (organization_id, email) select organization, a from unnest(addresses) a
    order by a on conflict do nothing;
  update app_private.consent_requests r set confirmed_at = null where r.organization_id = organization
    and r.email = any (addresses) and r.purpose = 'RECIPIENT' and r.confirmed_at is not null;
  lead_ids := array(
    select l.id from app_public.leads l where l.id = any (array(
        select unnest(lead_ids) union select s.id from app_public.leads s where s.email = any (addresses)
          and s.organization_id = organization and s.deleted_at is null))
      and l.deleted_at is null and l.unsubscribed_at is null
    order by l.id for no key update);
  -- Consent can also be withdrawn in archived projects.
  perform set_config('plat.clock', 'on', true), set_config('plat.request_id', coalesce(request_id, ''), true);
  update app_public.leads l set subscribed = false, unsubscribed_at = now() where l.id = any (lead_ids);
  perform set_config('plat.clock', clock, true), set_config('plat.request_id', request, true);
end $$;
comment on function app_private.withdraw_consent(uuid, text) is
  E'@step The link, or the header of a mail, that names the lead or purchase is signed.\n\n'
  'Unsubscribes a lead (or a purchase without one) and all others with its address from marketing mail of an '
  'organization; idempotent.';
grant execute on function app_private.marketing_sender, app_private.withdraw_consent to plat_authenticator;

-- Which mails are marketing: those to leads and buyers, except notices about events in their own deal.
create function app_private.is_marketing(trigger_type text, event_id uuid) returns boolean
language sql stable as $$
  select trigger_type <> 'EVENT'
    or not exists (select from app_public.events e where e.id = event_id and e.subject_type in
    ('agreement', 'appointment', 'buyer', 'charge', 'deposit', 'negotiation', 'offer', 'offer_response',
      'personalization', 'reservation', 'reservation_document'))
$$;
comment on function app_private.is_marketing(text, uuid) is
  'Whether what an execution writes to its lead or buyer is marketing mail. It is not where an event of their own '
  'dealing started it, such as an appointment or a reservation.';

create function app_private.workflow_mail(execution_id uuid, sequence int)
returns table (key text, recipients text[], subject text, body text, html text, reply_to_name text,
  reply_to_address text, organization text, workflow text, to_team boolean,
  postal_address text, person_id uuid, organization_id uuid)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select format('workflow %s %s', e.id, r.sequence),
    -- Leads who have since asked not to be contacted, or unsubscribed, get none.
    case when exists (select from app_public.leads l where l.id = e.lead_id and l.do_not_contact
      and r.output -> 'to' ? l.email) then '{}'
      when n.person_id is not null and (exists (select from app_public.leads l
        where l.id = coalesce(e.lead_id, b.lead_id) and l.unsubscribed_at is not null)
        or app_private.is_withdrawn(e.organization_id, r.output -> 'to' ->> 0)) then '{}'
      when r.output ? 'users' then array(
        select i.email::text from jsonb_array_elements_text(r.output -> 'users') u
          join app_hidden.user_identities i on i.user_id = u::uuid
        join app_public.users x on x.id = i.user_id and x.status = 'ACTIVE' and x.deleted_at is null
        where exists (select from app_public.organization_user_connections m where m.user_id = i.user_id
          and m.organization_id in (select e.organization_id union select p.organization_id
            from app_public.project_organizations p where p.project_id = e.project_id))
        order by i.email)
      else array(select jsonb_array_elements_text(r.output -> 'to')) end,
    r.output ->> 'subject', r.output ->> 'body', r.output ->> 'html',
      coalesce(nullif(concat_ws(' ', a.first_name, a.last_name), ''), o.name), coalesce(i.email, o.email)::text,
      o.name::text, w.name::text,
    r.output ? 'users', app_hidden.address_line(o.address), n.person_id, o.id
  from app_public.workflow_step_runs r
  join app_public.workflow_executions e on e.id = r.execution_id
  join app_public.workflows w on w.id = e.workflow_id
  join app_public.organizations o on o.id = e.organization_id
  left join app_public.users a on a.id = app_private.assignee_of(lower(e.subject_type), e.subject_id, e.lead_id,
    e.buyer_id)
  left join app_hidden.user_identities i on i.user_id = a.id
  left join app_public.buyers b on b.id = e.buyer_id
  cross join lateral (
    select case when s.type = 'SEND_EMAIL' and coalesce(s.config ->> 'to', 'PERSON') = 'PERSON'
      and app_private.is_marketing(e.trigger_type, e.trigger_event_id)
      then coalesce(e.lead_id, b.lead_id, b.id)
      when s.type = 'SEND_EMAIL' and s.config ->> 'to' = 'ADDRESS'
      then app_private.agreed_recipient(e.organization_id, r.output -> 'to' ->> 0) end as person_id
    from app_public.workflow_steps s where s.id = r.step_id) n
  where r.execution_id = workflow_mail.execution_id and r.sequence = workflow_mail.sequence and r.status = 'SUCCEEDED'
$$;
comment on function app_private.workflow_mail(uuid, int) is
  'Message sent by a step, with the reply address: that of the assignee of the subject, or of the organization. '
  'person_id: of marketing mail, whose consent it rests on, a lead or a purchase without one.';

create function app_private.generation_mail(generation_id uuid, sender_id uuid)
returns table (recipient text, subject text, body text, sender text, reply_to text, organization text,
  postal_address text, lead_id uuid, organization_id uuid)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.email, g.subject, g.body, coalesce(nullif(concat_ws(' ', u.first_name, u.last_name), ''), o.name),
    coalesce(i.email, o.email), o.name, app_hidden.address_line(o.address), l.id,
    o.id
  from app_public.service_intelligence_generations g
  join app_public.leads l on l.id = g.lead_id and l.deleted_at is null and not l.do_not_contact and l.email is not null
  join app_public.organizations o on o.id = g.organization_id
  left join app_public.users u on u.id = generation_mail.sender_id
  left join app_hidden.user_identities i on i.user_id = u.id
  where g.id = generation_mail.generation_id and g.status = 'ACCEPTED' and g.deleted_at is null
    and app_private.owner_is_confirmed(o.id)
$$;
comment on function app_private.generation_mail(uuid, uuid) is
  'The mail of an accepted draft; null once its lead asked not to be contacted.';
grant execute on function app_private.generation_mail, app_private.workflow_mail to plat_worker;
