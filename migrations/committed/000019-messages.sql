--! Previous: sha1:88ce120e9e9e9095ea57513d37ca7c867d26ed7c
--! Hash: sha1:b7241261051a43022355c577d091fe9774cf6294
--! Message: messages

-- Messages of visitors that are forwarded by e-mail, and the record of mails that keeps a job that runs twice from
-- sending twice.

create table app_private.mail_deliveries (
  key text primary key,
  recipient text not null,
  outcome text not null check (outcome in ('SENT', 'REFUSED')),
  detail text,
  at timestamptz not null default now()
);
create index mail_deliveries_at on app_private.mail_deliveries (at);
alter table app_private.mail_deliveries enable row level security;
comment on table app_private.mail_deliveries is
  'Mails that a server took, or refused for good. The key names the mail (task, record, recipient); neither is tried again. No mail''s text is kept here.';
comment on column app_private.mail_deliveries.detail is 'The id the server gave, or why it refused.';

create function app_private.note_mail(key text, recipient text, outcome text, detail text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- No job lives that long: old notes go as new ones come, so that addresses are not kept for ever.
  delete from app_private.mail_deliveries d where d.ctid = any (array(
    select s.ctid from app_private.mail_deliveries s where s.at < now() - interval '90 days' limit 3 for update skip locked));
  insert into app_private.mail_deliveries (key, recipient, outcome, detail)
    values (note_mail.key, note_mail.recipient, note_mail.outcome, note_mail.detail)
    on conflict on constraint mail_deliveries_pkey do nothing;
end $$;
comment on function app_private.note_mail(text, text, text, text) is 'Notes what became of a mail; the note is kept for 90 days.';

create table app_private.contact_messages (
  id uuid primary key default uuidv7(),
  organization_id uuid references app_public.organizations on delete cascade,
  name app_public.short_text not null,
  email app_public.email_address not null,
  phone app_public.phone_number,
  message app_public.long_text not null,
  user_id uuid default app_public.current_user_id(),
  inserted_at timestamptz not null default now()
);
create index contact_messages_organization on app_private.contact_messages (organization_id, id);
alter table app_private.contact_messages enable row level security;
comment on table app_private.contact_messages is 'What visitors wrote to an organization, or to the operator of the service (organization_id null).';

create function app_private.take_contact_message(organization_id uuid, input jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  address text := lower(input ->> 'email');
  message app_private.contact_messages;
begin
  -- The refusals of bad values come before the count.
  message := app_hidden.create_record(null::app_private.contact_messages,
    input || jsonb_build_object('email', address, 'organization_id', organization_id));
  perform app_private.rate_limit('contact.ip', app_hidden.setting('ip'), 20, interval '1 hour');
  perform app_private.rate_limit('contact.email', address, 5, interval '1 hour');
  perform app_private.add_job(case when organization_id is null then 'service__contacted' else 'organization__contacted' end,
    jsonb_build_object('id', message.id));
end $$;
comment on function app_private.take_contact_message(uuid, jsonb) is
  'Keeps a message and enqueues the mail that forwards it; at most 20 an hour from one network address and 5 from one sender.';
grant execute on function app_private.take_contact_message(uuid, jsonb) to plat_user, plat_anonymous;

create function app_public.contact_organization(
  organization_id uuid, name text, email app_public.email_address, message text, phone app_public.phone_number default null
) returns app_public.organizations
language plpgsql volatile as $$
declare
  result app_public.organizations;
begin
  -- As the viewer: anybody may write to an organization that they see.
  select o.* into result from app_public.organizations o where o.id = contact_organization.organization_id;
  if result.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such organization.', '{"field": "organizationId"}');
  end if;
  perform app_private.take_contact_message(result.id,
    jsonb_build_object('name', name, 'email', email, 'message', message, 'phone', phone));
  return result;
end $$;
grant execute on function app_public.contact_organization to plat_user, plat_anonymous;
comment on function app_public.contact_organization is $$
@arg organization_id The organization.
@arg name Who writes.
@arg email Where the answer goes.
@arg message What they want to say, 20,000 characters at most.
@arg phone Where to call back.

Forwards a message by e-mail to the organization: to its address for enquiries, or to its owners where it has none.$$;

create function app_public.contact_service(
  name text, email app_public.email_address, message text, phone app_public.phone_number default null
) returns boolean
language plpgsql volatile as $$
begin
  perform app_private.take_contact_message(null,
    jsonb_build_object('name', name, 'email', email, 'message', message, 'phone', phone));
  return true;
end $$;
grant execute on function app_public.contact_service to plat_user, plat_anonymous;
comment on function app_public.contact_service is $$
@arg name Who writes.
@arg email Where the answer goes.
@arg message What they want to say, 20,000 characters at most.
@arg phone Where to call back.

Sends a message to the operator of the service.$$;

--------------------------------------------------------------------------------------------------------
-- Who gets which mail; read by the tasks.

create function app_private.organization_mailboxes(organization_id uuid) returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select o.email::text from app_public.organizations o where o.id = organization_id and o.deleted_at is null and o.email is not null
  union all
  select i.email::text from app_public.organizations o
    join app_public.organization_user_connections m on m.organization_id = o.id and m.role = 'OWNER'
    join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
    join app_hidden.user_identities i on i.user_id = u.id
    where o.id = organization_mailboxes.organization_id and o.deleted_at is null and o.email is null
$$;
comment on function app_private.organization_mailboxes(uuid) is 'Where mail to an organization goes: its address, or its owners'' where it has none.';

create function app_private.contact_message_recipients(message_id uuid) returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Those who want to know and may see the lead: in a project with private leads, members read of their own only.
  return query
    select distinct i.email::text
    from app_public.project_contact_messages c
    join app_public.projects p on p.id = c.project_id and p.deleted_at is null
    left join app_public.leads l on l.id = c.lead_id
    join app_public.organization_user_connections m on m.organization_id = p.organization_id
    join app_private.role_permissions r on r.role = m.role and r.permission = 'lead.read' and not r.in_affiliated
    join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
    join app_hidden.user_identities i on i.user_id = u.id
    where c.id = message_id
      and ((m.notifications).contact_message or ((m.notifications).new_lead and c.lead_created))
      and (r.reach = 'ALL' or (r.reach = 'OWN_WHERE_PRIVATE' and (p.lead_assignment <> 'PRIVATE' or l.assignee_id = m.user_id)));
end $$;
comment on function app_private.contact_message_recipients(uuid) is 'The members who are told of a message to a project''s sales office.';
