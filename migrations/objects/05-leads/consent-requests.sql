-- Double opt-in: consent of the owner of an email address, by a link in a mail. Until its owner opens the link and
-- confirms, nothing changes. Consent is kept, because a sender has to prove it.
--
--   NEWS        a visitor asked for news of an organization, over a contact form
--   MAILBOX     an organization entered it as its address for enquiries
--   RECIPIENT   an organization wants to write to it by a workflow, and it is no lead, buyer or member

comment on table app_private.consent_requests is
  'Whether the owner of an address agreed to mails of an organization, and when; only the SHA-256 of the link''s '
  'token is kept.';
comment on column app_private.consent_requests.expires_at is 'Until when it can be confirmed.';
comment on column app_private.consent_requests.email is E'@personal\n\nThe address that was asked.';
comment on column app_private.consent_requests.purpose is E'@impersonal\n\nPurpose of the request.';

create function app_private.request_consent(organization_id uuid, email text, purpose text,
  message_id uuid default null) returns void
language plpgsql volatile as $$
#variable_conflict use_column
declare
  request_id uuid;
begin
  insert into app_private.consent_requests as r (organization_id, email, purpose, message_id)
    values (request_consent.organization_id, lower(request_consent.email), request_consent.purpose,
      request_consent.message_id)
    on conflict (organization_id, email, purpose) where message_id is null
    do update set expires_at = excluded.expires_at where r.confirmed_at is null
    returning r.id into request_id;
  if request_id is not null then
    perform app_private.add_job('consent__requested', jsonb_build_object('id', request_id),
      job_key => 'consent__requested ' || request_id);
  end if;
end $$;
comment on function app_private.request_consent(uuid, text, text, uuid) is
  'Asks the owner of an address by mail; nothing where they have agreed before.';

create function app_private.issue_consent_token(request_id uuid)
returns table (token text, email text, purpose text, organization_id uuid, organization text, project text,
  expires_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  request app_private.consent_requests;
  secret text := app_private.random_text(43);
begin
  select r.* into request from app_private.consent_requests r where r.id = issue_consent_token.request_id
    and r.confirmed_at is null and r.expires_at > now() and app_private.owner_is_confirmed(r.organization_id)
    for update;
  -- Limited silently: the requester learns nothing, and the address is not flooded.
  if request.id is null or not app_private.is_within_limit('consent.address_and_organization',
      request.organization_id || ' ' || request.email)
    or not app_private.is_within_limit('consent.address', request.email) then
    return;
  end if;
  update app_private.consent_requests r set token_sha256 = sha256(convert_to(secret, 'UTF8')) where r.id = request.id;
  return query
    select secret, request.email, request.purpose, o.id, o.name::text, p.title::text, request.expires_at
    from app_public.organizations o
    left join app_public.project_contact_messages m on m.id = request.message_id
    left join app_public.projects p on p.id = m.project_id
    where o.id = request.organization_id and o.deleted_at is null;
end $$;
comment on function app_private.issue_consent_token(uuid) is
  'A new token for a request of consent and what its mail says; replaces the former token; nothing where there is '
  'nothing to send, or too much was sent to the address already.';
grant execute on function app_private.issue_consent_token(uuid) to plat_worker;

create function app_private.consent_question(token text, out purpose text, out organization text,
  out is_confirmed boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.purpose, o.name, r.confirmed_at is not null
  from app_private.consent_requests r join app_public.organizations o on o.id = r.organization_id and o.deleted_at is
    null
  where r.token_sha256 = sha256(convert_to(left(token, 200), 'UTF8')) and (r.confirmed_at is not null or r.expires_at >
    now())
$$;
comment on function app_private.consent_question(text) is
  'Request that a link makes to the owner of an address; nulls if it is unknown or expired.';

create function app_private.follow_news(lead_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  clock text := coalesce(current_setting('plat.clock', true), '');
begin
  -- Their word is heard in archived projects too. The trigger of the lead lifts a withdrawal.
  perform set_config('plat.clock', 'on', true);
  update app_public.leads l set subscribed = true where l.id = follow_news.lead_id and l.deleted_at is null
    and not l.subscribed;
  perform set_config('plat.clock', clock, true);
end $$;
comment on function app_private.follow_news(uuid) is
  'Has a lead follow marketing mail. Callers know that the owner of the address wants it.';

create function app_private.confirm_consent(token text, request_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  request app_private.consent_requests;
  message app_public.project_contact_messages;
  before text := coalesce(current_setting('plat.request_id', true), '');
begin
  select r.* into request from app_private.consent_requests r
    where r.token_sha256 = sha256(convert_to(left(token, 200), 'UTF8')) and r.confirmed_at is null
      and r.expires_at > now() for update;
  if request.id is null then
    return;
  end if;
  perform set_config('plat.request_id', coalesce(confirm_consent.request_id, ''), true),
    set_config('plat.clock', 'on', true);
  update app_private.consent_requests r set confirmed_at = now() where r.id = request.id;
  update app_public.project_contact_messages m set confirmed_at = now() where m.id = request.message_id
    returning * into message;
  if request.purpose = 'RECIPIENT' then
    delete from app_private.withdrawn_addresses w where w.organization_id = request.organization_id
      and w.email = request.email;
  elsif message.id is not null then
    perform app_private.follow_news(message.lead_id);
    if message.merged_at is null then
      perform app_private.merge_message(message);
    end if;
  end if;
  perform set_config('plat.request_id', before, true), set_config('plat.clock', '', true);
end $$;
comment on function app_private.confirm_consent(text, text) is
  'Does what the owner of an address agreed to; done again, it changes nothing.';
grant execute on function app_private.consent_question, app_private.confirm_consent to plat_authenticator;
