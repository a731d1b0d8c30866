--! Previous: sha1:206de7f19ec04bbecfec96509e4214f90806b4a7
--! Hash: sha1:28e06ef86e3ed65ce8d833cdb2d876c1ae1fc850
--! Message: webhooks-of-people

-- The webhook of an integration neither counts among those that people made, nor signs the calls of workflows.

create or replace function app_public.create_webhook(organization_id uuid, url app_public.webhook_url, events text[], secret app_public.fresh_secret, description text default null)
returns app_public.webhooks
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  most constant int := 50;
  home uuid := organization_id;
  result app_public.webhooks;
begin
  perform app_hidden.require_organization(home, 'org.admin');
  if url is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'url is required.', '{"field": "url"}');
  end if;
  -- Two at once must not both be the last one within the limit.
  perform from app_public.organizations o where o.id = home for no key update;
  if (select count(*) from app_public.webhooks w where w.organization_id = home and w.deleted_at is null and w.integration_id is null) >= most then
    perform app_hidden.fail('LIMIT_EXCEEDED', format('The organization has %s webhooks; delete some first.', most), jsonb_build_object('limit', most));
  end if;
  insert into app_public.webhooks (organization_id, url, events, description, secret_prefix)
    values (home, create_webhook.url, create_webhook.events,
      app_hidden.checked(nullif(btrim(create_webhook.description), ''), 'app_public.short_text', 'description'), left(create_webhook.secret ->> 'secret', 12))
    returning * into result;
  insert into app_private.webhook_secrets (webhook_id, sealed) values (result.id, create_webhook.secret ->> 'sealed');
  insert into app_private.webhook_progress (webhook_id, organization_id, last_sequence)
    values (result.id, home, coalesce((select c.last_sequence from app_private.event_counters c where c.stream_id = home), 0));
  -- The one look at it: it travels in the answer's row, never in the table.
  result.secret := create_webhook.secret ->> 'secret';
  return result;
end $$;

create or replace function app_private.call_secrets(organization_id uuid, url text) returns table (sealed text, previous_sealed text)
language sql stable as $$
  select s.sealed, case when s.previous_expires_at > now() then s.previous_sealed end
  from app_public.webhooks w join app_private.webhook_secrets s on s.webhook_id = w.id
  where w.organization_id = $1 and w.deleted_at is null and w.integration_id is null and lower(substring(w.url from '^https://[^/?#]*')) = lower(substring($2 from '^https://[^/?#]*'))
  order by w.url = $2 desc, w.id limit 1
$$;
