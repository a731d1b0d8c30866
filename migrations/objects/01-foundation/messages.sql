-- Messages of visitors that are forwarded by email, and the record of sent mails, which prevents a repeated job from
-- sending twice.

comment on table app_private.mail_deliveries is
  'Mails that a server took, or refused for good. The key names the mail (task, record, recipient); neither is tried '
  'again. No mail''s text is kept here.';
comment on column app_private.mail_deliveries.detail is E'@personal\n\nThe id the server gave, or why it refused.';
comment on column app_private.mail_deliveries.recipient is E'@personal\n\nWhom it went to.';
comment on column app_private.mail_deliveries.key is E'@impersonal\n\nWhich mail it was.';
comment on column app_private.mail_deliveries.outcome is E'@impersonal\n\nOutcome of the delivery.';

create function app_private.note_mail(key text, recipient text, outcome text, detail text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- No job lives that long: old rows are deleted as new ones arrive, so that addresses are not kept forever.
  delete from app_private.mail_deliveries d where d.ctid = any (array(
    select s.ctid from app_private.mail_deliveries s where s.at < now() - interval '90 days' limit 3 for
      update skip locked));
  insert into app_private.mail_deliveries (key, recipient, outcome, detail)
    values (note_mail.key, note_mail.recipient, note_mail.outcome, note_mail.detail)
    on conflict on constraint mail_deliveries_pkey do nothing;
end $$;
comment on function app_private.note_mail(text, text, text, text) is
  'Records the outcome of a mail; kept for 90 days.';

comment on table app_private.contact_messages is
  'What visitors wrote to an organization, or to the operator of the service (organization_id null).';
comment on column app_private.contact_messages.name is E'@personal\n\nWho wrote.';
comment on column app_private.contact_messages.email is E'@personal\n\nTheir address.';
comment on column app_private.contact_messages.phone is E'@personal\n\nTheir phone number.';
comment on column app_private.contact_messages.message is E'@personal\n\nText of the inquiry.';

create function app_private.take_contact_message(organization_id uuid, input jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  address text := lower(input ->> 'email');
  message app_private.contact_messages;
begin
  if organization_id is not null and not app_private.viewer_sees('app_public.organizations', organization_id) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such organization.', '{"field": "organizationId"}');
  end if;
  -- The refusals of bad values come before the count.
  message := app_hidden.create_record(null::app_private.contact_messages,
    input || jsonb_build_object('email', address, 'organization_id', organization_id));
  perform app_private.rate_limit('contact.network', app_private.network_of(app_hidden.setting('ip')));
  perform app_private.rate_limit('contact.sender', address);
  perform app_private.add_job(case when organization_id is null then 'service__contacted'
    else 'organization__contacted' end,
    jsonb_build_object('id', message.id));
end $$;
comment on function app_private.take_contact_message(uuid, jsonb) is
  'Keeps a message and enqueues the mail that forwards it; limited by network and sender.';
grant execute on function app_private.take_contact_message(uuid, jsonb) to plat_user, plat_anonymous;

create function app_public.contact_organization(
  organization_id uuid, name text, email app_public.email_address, message text,
    phone app_public.phone_number default null
) returns app_public.organizations
language plpgsql volatile as $$
declare
  result app_public.organizations;
begin
  -- As the viewer: anybody may write to an organization that they see.
  select o.* into result from app_hidden.masked_organizations o where o.id = contact_organization.organization_id;
  if result.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such organization.', '{"field": "organizationId"}');
  end if;
  perform app_private.take_contact_message(result.id,
    jsonb_build_object('name', name, 'email', email, 'message', message, 'phone', phone));
  return result;
end $$;
grant execute on function app_public.contact_organization to plat_user, plat_anonymous;
comment on function app_public.contact_organization is $$
@arg organization_id The organization that receives the message.
@arg name Name of the sender.
@arg email Email address for the reply.
@arg message The message, at most 20,000 characters.
@arg phone Phone number for the reply.

Forwards a message by email to the organization: to its address for inquiries if the owner of the address has
agreed through the link in a mail, otherwise to its owners.$$;

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
@arg name Name of the sender.
@arg email Email address for the reply.
@arg message The message, at most 20,000 characters.
@arg phone Phone number for the reply.

Sends a message by email to the operator of the service.$$;

-- Recipients of each mail, for the tasks.
create function app_private.owner_addresses(organization_id uuid) returns text[]
language sql stable as $$
  select coalesce(array_agg(i.email::text order by i.email), '{}')
  from app_public.organization_user_connections m
  join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
  join app_hidden.user_identities i on i.user_id = u.id
  where m.organization_id = $1 and m.role = 'OWNER'
$$;
comment on function app_private.owner_addresses(uuid) is 'The addresses of the owners of an organization.';

create function app_private.organization_mailboxes(organization_id uuid) returns setof text
language sql stable as $$
  select o.email::text from app_public.organizations o where o.id = organization_id and o.deleted_at is null
    and app_private.is_mailbox(o.id, o.email)
  union all
  select unnest(app_private.owner_addresses(o.id)) from app_public.organizations o
    where o.id = organization_mailboxes.organization_id and o.deleted_at is null
      and not coalesce(app_private.is_mailbox(o.id, o.email), false)
$$;
comment on function app_private.organization_mailboxes(uuid) is
  'Recipients of mail to an organization: its address for inquiries if the owner of that address consented, '
  'otherwise its owners.';

create function app_private.organization_message(id uuid)
returns table (name text, email text, phone text, message text, organization text, organization_id uuid,
  mailboxes text[])
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.name, c.email, c.phone, c.message, o.name, o.id, array(select app_private.organization_mailboxes(o.id))
  from app_private.contact_messages c join app_public.organizations o on o.id = c.organization_id
  where c.id = organization_message.id
$$;
comment on function app_private.organization_message(uuid) is
  'What a visitor wrote to an organization, and where it is forwarded to.';

create function app_private.service_message(id uuid)
returns table (name text, email text, phone text, message text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.name, c.email, c.phone, c.message from app_private.contact_messages c
  where c.id = service_message.id and c.organization_id is null
$$;
comment on function app_private.service_message(uuid) is 'What a visitor wrote to the operator of the service.';

create function app_private.mail_is_done(key text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from app_private.mail_deliveries d where d.key = mail_is_done.key)
$$;
comment on function app_private.mail_is_done(text) is
  'Whether a mail was taken, or refused for good: it is not sent again.';
grant execute on function app_private.note_mail, app_private.mail_is_done, app_private.organization_message,
  app_private.service_message to plat_worker;
