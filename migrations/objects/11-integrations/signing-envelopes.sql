-- Agreements that are signed at a provider: what is sent there (an envelope), and what the provider says of it. The
-- agreement
-- moves by what it says, in the same steps as one that is signed here.

comment on table app_private.agreement_envelopes is
  'What an agreement is called at its provider: transaction_id finds it again where nobody knows whether it was taken.';

create function app_private.signing_integration(organization_id uuid, app_key text) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select i.id from app_public.organization_integrations i
    join app_public.integration_apps a on a.id = i.app_id and a.key = signing_integration.app_key
  where i.organization_id = signing_integration.organization_id and i.status = 'ENABLED' and i.deleted_at is null
  order by i.id desc limit 1
$$;
comment on function app_private.signing_integration(uuid, text) is
  'What the organization has agreements signed by: the integration that it connected last; null where none works.';
