-- Long-lived tokens for programs. A token has the rights of its user within its restrictions; it is shown once, and
-- only its SHA-256 is stored, in a table that the API cannot read.

comment on table app_private.access_token_secrets is
  'What proves an access token, and when it was last used: apart from the record, so that its use is no change of it.';

create function app_hidden.has_whole_account() returns boolean
language sql stable parallel safe as $$
  select app_hidden.setting('scopes') is null and app_hidden.setting('organization_id') is null
$$;

create function app_hidden.require_whole_account() returns uuid
language plpgsql stable as $$
begin
  perform app_hidden.require_viewer();
  if not app_hidden.has_whole_account() then
    perform app_hidden.fail('FORBIDDEN',
      'An access token with scopes or for one organization may not change the account; sign in instead.');
  end if;
  return app_public.current_user_id();
end $$;
comment on function app_hidden.require_whole_account() is
  'The viewer; refuses an access token that was restricted to scopes or an organization.';

create policy own on app_public.access_tokens for select to plat_user
  using (user_id = (select app_public.current_user_id()) and ((select app_hidden.has_whole_account())
    or id = (select app_hidden.setting('token_id')::uuid)
      or parent_id = (select app_hidden.setting('token_id')::uuid)));

select app_private.make_record('access_tokens', 'access_token');

grant select on app_public.access_tokens to plat_user, plat_anonymous;

comment on table app_public.access_tokens is
  'A long-lived bearer token for programs that call the API on behalf of a user.';
comment on column app_public.access_tokens.user_id is E'@behavior -*\n\nWhose token it is.';
comment on column app_public.access_tokens.organization_id is E'@behavior -*\n\nThe only organization it works in.';
comment on column app_public.access_tokens.parent_id is
  E'@behavior -*\n\nThe token that created it, and takes it along when revoked.';
comment on column app_public.access_tokens.name is E'@impersonal\n\nName that describes the purpose of the token.';
comment on column app_public.access_tokens.token is
  E'@impersonal\n\nThe token itself. Only the response of `createAccessToken` contains it; null afterwards.';
comment on column app_public.access_tokens.prefix is
  E'@impersonal\n\nFirst characters of the token, to identify it in lists.';
comment on column app_public.access_tokens.scopes is
  E'@impersonal\n\n'
  'Permissions that the token is restricted to, such as lead.read or lead.*. Empty if it has all permissions of '
  'its user.';
comment on column app_public.access_tokens.audience is 'Endpoint that accepts the token.';
comment on column app_public.access_tokens.read_only is 'Whether mutations are refused with this token.';
comment on column app_public.access_tokens.expires_at is 'When the token expires; null if it does not expire.';
comment on column app_public.access_tokens.revoked_at is 'When the token was revoked; null if not revoked.';
comment on column app_public.access_tokens.updated_at is E'@behavior -*\n\nWhen the record was last changed.';
comment on column app_public.access_tokens.version is E'@behavior -*\n\nGrows with every change.';
comment on constraint access_tokens_user_id_fkey on app_public.access_tokens is
  E'@foreignFieldName accessTokens\n'
  '@forwardBehavior -*\n'
  '@backwardDescription Access tokens; empty except for the user.\n\n'
  'The user.';
comment on constraint access_tokens_organization_id_fkey on app_public.access_tokens is
  E'@backwardBehavior -*\n\n'
  'The only organization that the token can access; null if it covers all organizations of its user.';
comment on constraint access_tokens_token_is_not_kept on app_public.access_tokens is 'Tokens must not be stored.';
comment on constraint access_tokens_parent_id_fkey on app_public.access_tokens is
  E'@behavior -*\n@forwardBehavior -*\n@backwardBehavior -*\n\nThe token that created it.';

insert into app_private.event_names (subject, column_name, value, name)
  values ('access_token', 'revoked_at', null, 'revoked');

create function app_public.access_tokens_status(t app_public.access_tokens) returns app_public.access_token_status
language sql stable as $$
  select (case when t.revoked_at is not null then 'REVOKED' when t.expires_at <= now() then 'EXPIRED'
    else 'ACTIVE' end)::app_public.access_token_status
$$;

create function app_public.access_tokens_last_used_at(t app_public.access_tokens) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select s.last_used_at from app_private.access_token_secrets s
  where s.token_id = t.id and t.user_id = (select app_public.current_user_id())
$$;
grant execute on function app_public.access_tokens_status, app_public.access_tokens_last_used_at to plat_user,
  plat_anonymous;
comment on function app_public.access_tokens_status is E'@notNull\n\nWhether it is in use, and if not, why.';
comment on function app_public.access_tokens_last_used_at is
  'When the token was last used, to the minute; null if never.';

create function app_private.random_text(size int) returns text
language plpgsql volatile as $$
declare
  alphabet constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  bytes bytea;
  result text := '';
begin
  while length(result) < size loop
    bytes := public.gen_random_bytes(size);
    for i in 0 .. size - 1 loop
      -- Bytes over 247 would make the first letters likelier.
      if get_byte(bytes, i) < 248 then
        result := result || substr(alphabet, get_byte(bytes, i) % 62 + 1, 1);
      end if;
    end loop;
  end loop;
  return left(result, size);
end $$;
comment on function app_private.random_text(int) is 'Letters and digits from a cryptographic source, 5.95 bits each.';

create function app_private.token_checksum(body text) returns text
language plpgsql immutable strict parallel safe as $$
declare
  alphabet constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  rest bigint := crc32(convert_to(body, 'UTF8'));
  result text := '';
begin
  for i in 1 .. 6 loop
    result := substr(alphabet, (rest % 62)::int + 1, 1) || result;
    rest := rest / 62;
  end loop;
  return result;
end $$;
comment on function app_private.token_checksum(text) is
  'CRC-32 of the rest of an access token as six letters and digits, so that a mistyped one is refused without a '
  'look-up, and scanners for leaked secrets know ours.';

create function app_hidden.known_scope(scope text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- No role includes purchase.own: buyers have it.
  select exists (select from app_private.role_permissions r
    where scope in (r.permission, split_part(r.permission, '.', 1) || '.*'))
    or scope in ('purchase.own', 'purchase.*')
$$;

create function app_public.create_access_token(name text, scopes text[] default null, read_only boolean default false,
  organization_id uuid default null, expires_at timestamptz default null,
  audience app_public.token_audience default null) returns app_public.access_tokens
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  viewer_id uuid := app_hidden.require_viewer();
  most constant int := 100;
  own app_public.access_tokens;
  body text := 'plat_' || app_private.random_text(32);
  secret text := body || app_private.token_checksum(body);
  result app_public.access_tokens;
  wrong text;
  ended text;
begin
  -- Serialized with concurrent revocations, and so that two concurrent calls cannot both be the last one within the
  -- limit.
  perform from app_public.users u where u.id = viewer_id for no key update;
  select * into own from app_public.access_tokens t where t.id = app_hidden.setting('token_id')::uuid;
  ended := app_private.token_ended(own.id);
  if ended is not null then
    perform app_hidden.fail('UNAUTHENTICATED', ended);
  end if;
  if coalesce(length(btrim(name)), 0) not between 1 and 300 then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The name of a token must have 1 to 300 characters.', '{"field": "name"}');
  end if;
  if cardinality(scopes) = 0 then
    perform app_hidden.fail('BAD_USER_INPUT',
      'Specify at least one scope, or omit scopes to grant everything that you may do.', '{"field": "scopes"}');
  end if;
  select s into wrong from unnest(scopes) s where s is null or not app_hidden.known_scope(s) limit 1;
  if found then
    perform app_hidden.fail('BAD_USER_INPUT',
      format('There is no permission %s; scopes are permissions such as lead.read, or lead.* for all of one kind.',
      coalesce(left(wrong, 100), 'null')), '{"field": "scopes"}');
  end if;
  if not isfinite(expires_at) or expires_at <= now() then
    perform app_hidden.fail('BAD_USER_INPUT', 'The expiry must be in the future.',
      '{"field": "expiresAt"}');
  end if;

  -- A token cannot create a token with more permissions or a later expiry than its own.
  if own.audience = 'MCP' and audience = 'API' then
    perform app_hidden.fail('FORBIDDEN', 'A token for /mcp can only create tokens for /mcp.', '{"field": "audience"}');
  end if;
  audience := coalesce(audience, own.audience, 'API');
  if app_hidden.setting('scopes') is not null then
    scopes := coalesce(scopes, own.scopes);
    -- "lead.*" is covered by "lead.*" only, "lead.read" by both.
    select s into wrong from unnest(scopes) s where not app_hidden.scopes_allow(s) limit 1;
    if found then
      perform app_hidden.fail('FORBIDDEN', format(
        'The token of this request does not have the scope %s itself.', wrong),
        jsonb_build_object('permission', wrong));
    end if;
  end if;
  organization_id := coalesce(organization_id, app_hidden.setting('organization_id')::uuid);
  if organization_id is not null
    and (organization_id <> coalesce(app_hidden.setting('organization_id')::uuid, organization_id)
    or not exists (select from app_public.organization_user_connections m
      join app_public.organizations o on o.id = m.organization_id
      where m.user_id = viewer_id and m.organization_id = create_access_token.organization_id and o.deleted_at is null))
        then
    perform app_hidden.fail('NOT_FOUND', 'You do not belong to such an organization.', '{"field": "organizationId"}');
  end if;
  if own.expires_at is not null then
    if expires_at > own.expires_at then
      perform app_hidden.fail('FORBIDDEN',
        'The new token must not expire later than the token of this request.', '{"field": "expiresAt"}');
    end if;
    expires_at := coalesce(expires_at, own.expires_at);
  end if;

  if (select count(*) from app_public.access_tokens t where t.user_id = viewer_id and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > now())) >= most then
    perform app_hidden.fail('LIMIT_EXCEEDED', format(
      'You have reached the limit of %s active access tokens; revoke one first.', most),
      jsonb_build_object('limit', most));
  end if;
  insert into app_public.access_tokens (user_id, organization_id, parent_id, name, prefix, scopes, read_only,
    audience, expires_at)
    values (viewer_id, organization_id, own.id, btrim(name), left(secret, 11),
      coalesce((select array_agg(distinct s order by s) from unnest(scopes) s), '{}'), coalesce(read_only, false),
        audience, expires_at)
    returning * into result;
  insert into app_private.access_token_secrets (token_id, token_sha256)
    values (result.id, sha256(convert_to(secret, 'UTF8')));
  perform app_private.tell_account(viewer_id, 'ACCESS_TOKEN_CREATED', jsonb_build_object('name', result.name));
  -- The one look at it: it travels in the answer's row, never in the table.
  result.token := secret;
  return result;
end $$;
comment on function app_public.create_access_token is $$
@arg name Name that describes the purpose of the token.
@arg scopes Permissions that the token is restricted to, such as lead.*. Default: all permissions of the user.
@arg read_only Whether mutations are refused with this token.
@arg organization_id Id of the only organization that the token can access. Default: all organizations of the user.
@arg expires_at When the token expires. It does not expire if omitted.
@arg audience Endpoint that accepts the token; the other one refuses it. Default: API.

Creates a long-lived bearer token for programs. Only this response contains it, in the field `token`.$$;

create function app_private.revoke_access_tokens(ids uuid[]) returns text[]
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  with recursive family as (
    select t.id from app_public.access_tokens t where t.id = any (ids)
    union
    select t.id from app_public.access_tokens t join family f on t.parent_id = f.id
  ), revoked as (
    update app_public.access_tokens t set revoked_at = now() from family f where t.id = f.id and t.revoked_at is null
    returning t.name, t.id
  )
  select coalesce(array_agg(r.name order by r.id), '{}') from revoked r
$$;
comment on function app_private.revoke_access_tokens(uuid[]) is
  'Ends access tokens with all that were created through them; returns the names of those that still worked.';

create function app_public.revoke_access_token(id uuid) returns app_public.access_tokens
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  viewer_id uuid := app_hidden.require_viewer();
  own_id uuid := app_hidden.setting('token_id')::uuid;
  result app_public.access_tokens;
begin
  -- Waits for concurrent creations through it, which are revoked too.
  perform from app_public.users u where u.id = viewer_id for no key update;
  select * into result from app_public.access_tokens t where t.id = revoke_access_token.id and t.user_id = viewer_id
    and (app_hidden.has_whole_account() or own_id in (t.id, t.parent_id));
  if result.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such access token.', '{"field": "id"}');
  end if;
  perform app_private.revoke_access_tokens(array[result.id]);
  select * into result from app_public.access_tokens t where t.id = revoke_access_token.id;
  return result;
end $$;
comment on function app_public.revoke_access_token is
  'Revokes an access token of the viewer immediately, with the tokens created through it; revoking it again has no '
  'effect. Webhooks, workflows, integrations, invitations and exports that act on their behalf are suspended, and '
  'the owners are notified by mail; users with the permissions can enable them again.';
grant execute on function app_public.create_access_token, app_public.revoke_access_token to plat_user, plat_anonymous;

create function app_private.authenticate_access_token(token_sha256 bytea, audience text default 'API')
returns table (viewer_id uuid, token_id uuid, read_only boolean, organization_id uuid, scopes text[],
  second_factor_withholds text)
language plpgsql volatile security definer rows 1 set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  used timestamptz;
begin
  select u.id, t.id, t.read_only, t.organization_id, nullif(t.scopes, '{}'), s.last_used_at,
      case when exists (select from app_public.organization_user_connections m where m.user_id = u.id
        and m.second_factor_due_at <= now()) then app_private.second_factor_withholds(u.id, t.organization_id) end
    into viewer_id, token_id, read_only, organization_id, scopes, used, second_factor_withholds
    from app_private.access_token_secrets s
    join app_public.access_tokens t on t.id = s.token_id
    join app_public.users u on u.id = t.user_id
    where s.token_sha256 = authenticate_access_token.token_sha256
      and t.audience = authenticate_access_token.audience::app_public.token_audience
      and t.revoked_at is null and (t.expires_at is null or t.expires_at > now())
      -- A token lives no longer than the one that created it.
      and (t.parent_id is null or app_private.token_ended(t.parent_id) is null)
      and u.status = 'ACTIVE' and u.deleted_at is null;
  if not found then
    return;
  end if;
  if used is null or used < date_trunc('minute', now()) then
    -- One of many concurrent requests records it; the others do not wait. On a read-only server, reads remain
    -- possible.
    begin
      update app_private.access_token_secrets s set last_used_at = date_trunc('minute', now())
        where s.token_id = (select l.token_id from app_private.access_token_secrets l
          where l.token_id = authenticate_access_token.token_id for update skip locked);
    exception when read_only_sql_transaction or disk_full then null;
    end;
  end if;
  return next;
end $$;
comment on function app_private.authenticate_access_token(bytea, text) is
  'Who and what an access token with this SHA-256 stands for; no row when it is unknown, expired or revoked, or its '
  'user may not sign in.';
grant execute on function app_private.authenticate_access_token(bytea, text) to plat_authenticator;

create function app_private.is_access_token_of(token_sha256 bytea, audience text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from app_private.access_token_secrets s
    join app_public.access_tokens t on t.id = s.token_id
    join app_public.users u on u.id = t.user_id
    where s.token_sha256 = is_access_token_of.token_sha256
      and t.audience = is_access_token_of.audience::app_public.token_audience
      and app_private.token_ended(t.id) is null and u.status = 'ACTIVE' and u.deleted_at is null)
$$;
comment on function app_private.is_access_token_of(bytea, text) is
  'Whether an access token with this SHA-256 works for the audience. A token that is refused elsewhere is not used.';
grant execute on function app_private.is_access_token_of to plat_authenticator;

comment on function app_hidden.known_scope(text) is
  E'@withoutViewer All permissions are documented publicly.\n\n'
  'Whether there is such a permission, or group of them, for an access token.';

revoke execute on function app_hidden.known_scope from plat_user, plat_anonymous;
