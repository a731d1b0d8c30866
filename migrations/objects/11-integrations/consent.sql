-- A consent URL can be forwarded, and the person who opens it consents for their own account. Therefore, the redirect
-- page names the account that will be connected, and asks for confirmation, before the consent is used.

create function app_private.open_consent(id uuid, user_id uuid) returns setof app_private.oauth_attempts
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  select a.* from app_private.oauth_attempts a
  where a.id = open_consent.id and a.user_id = open_consent.user_id and a.expires_at > now()
    -- The requester must still have access.
    and exists (select from app_public.users u where u.id = a.user_id and u.status = 'ACTIVE' and u.deleted_at is null)
    and (exists (select from app_public.user_integrations i where i.id = a.integration_id and i.user_id = a.user_id
      and i.deleted_at is null)
      or exists (select from app_public.organization_integrations i
        join app_public.organization_user_connections m on m.organization_id = i.organization_id
          and m.user_id = a.user_id and m.role in ('OWNER', 'ADMIN')
        where i.id = a.integration_id and i.deleted_at is null))
$$;
comment on function app_private.open_consent(uuid, uuid) is
  'A consent that can be taken; none where it was taken, is too late, or the user has lost the right.';

create function app_private.consent_facts(id uuid, user_id uuid) returns table (integration text, person text,
  email text, organization text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select f ->> 'name', app_public.users_full_name(u), i.email || case when u.email_verified_at is null
    then ', not confirmed' else '' end, o.name
  from app_private.open_consent(consent_facts.id, consent_facts.user_id) a
  cross join lateral app_private.integration_facts(a.scope, a.integration_id) f
  join app_public.users u on u.id = a.user_id
  left join app_hidden.user_identities i on i.user_id = u.id
  left join app_public.organizations o on a.scope = 'ORGANIZATION' and o.id = (f ->> 'ownerId')::uuid
$$;
comment on function app_private.consent_facts(uuid, uuid) is
  'The application and account that a user is asked to connect; no row if consent cannot be given.';
grant execute on function app_private.consent_facts to plat_authenticator;
