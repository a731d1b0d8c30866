--! Previous: sha1:244c6ec63d216029ca6937809f0e7f8c3b487b95
--! Hash: sha1:bc33cf03eb5af81c294a3d0826579535cbf5bb02
--! Message: answers-of-integrations

-- What is shown once, such as a secret, travels in the answer of an operation and nowhere else: said in one place for all of them.

create function app_hidden.answered(integration anyelement, attempt jsonb) returns anyelement
language sql stable as $$
  select jsonb_populate_record(integration, jsonb_build_object('config', to_jsonb(integration) -> 'config' || coalesce(attempt -> 'shown', '{}')))
$$;
comment on function app_hidden.answered(anyelement, jsonb) is 'An integration as the operation that connects it gives it, with what is shown once.';
grant execute on function app_hidden.answered to plat_user;

create or replace function app_public.create_organization_integration(organization_id app_public.id_or_slug, app_key text, attempt app_public.integration_attempt, name text default null,
  config jsonb default null, credentials app_public.integration_credentials default null) returns app_public.organization_integrations
language sql volatile as $$ select app_hidden.answered(i, attempt) from app_public.organization_integrations i where i.id = (attempt ->> 'id')::uuid $$;
create or replace function app_public.create_user_integration(app_key text, attempt app_public.integration_attempt, name text default null, config jsonb default null,
  credentials app_public.integration_credentials default null) returns app_public.user_integrations
language sql volatile as $$ select app_hidden.answered(i, attempt) from app_public.user_integrations i where i.id = (attempt ->> 'id')::uuid $$;
create or replace function app_public.refresh_organization_integration(id uuid, attempt app_public.integration_attempt) returns app_public.organization_integrations
language sql volatile as $$ select app_hidden.answered(i, attempt) from app_public.organization_integrations i where i.id = (attempt ->> 'id')::uuid $$;
create or replace function app_public.refresh_user_integration(id uuid, attempt app_public.integration_attempt) returns app_public.user_integrations
language sql volatile as $$ select app_hidden.answered(i, attempt) from app_public.user_integrations i where i.id = (attempt ->> 'id')::uuid $$;

create or replace function app_public.update_organization_integration(id uuid, attempt app_public.integration_attempt, name text default null, config jsonb default null,
  credentials app_public.integration_credentials default null) returns app_public.organization_integrations
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.require_integration('ORGANIZATION', (attempt ->> 'id')::uuid);
  update app_public.organization_integrations i set name = coalesce(app_hidden.checked(nullif(btrim(update_organization_integration.name), ''), 'app_public.short_text', 'name'), i.name)
    where i.id = (attempt ->> 'id')::uuid returning app_hidden.answered(i, attempt);
$$;
create or replace function app_public.update_user_integration(id uuid, attempt app_public.integration_attempt, name text default null, config jsonb default null,
  credentials app_public.integration_credentials default null) returns app_public.user_integrations
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.require_integration('USER', (attempt ->> 'id')::uuid);
  update app_public.user_integrations i set name = coalesce(app_hidden.checked(nullif(btrim(update_user_integration.name), ''), 'app_public.short_text', 'name'), i.name)
    where i.id = (attempt ->> 'id')::uuid returning app_hidden.answered(i, attempt);
$$;
