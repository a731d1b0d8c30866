-- Principals. What is created once and acts later (a webhook, a workflow, an integration, an export, an invitation …)
-- has a principal: the responsible user, and the access token that they used. It can only do what these two could do at
-- that moment: permissions are checked when it is created or changed, and again at every run. Changing its content
-- makes the viewer its principal.
--
-- When the principal ends (the token is revoked or expires, the user leaves, is suspended or loses the role),
-- everything that depends on it is suspended, with a visible reason, an event and a mail to the owners; a user with the
-- permissions can enable it again and becomes its principal.
--
-- app_private.make_principal declares a table. A check of the schema finds tables without it.

comment on type app_public.principal_token is
  'The access token with which a record was created, for viewers who can see the record.';
comment on column app_public.principal_token.id is E'@notNull\n\nId of the access token, as listed for its user.';
comment on column app_public.principal_token.name is E'@notNull\n\nName given by its user.';
comment on column app_public.principal_token.prefix is E'@notNull\n\nFirst characters of the token, to recognize it.';
comment on column app_public.principal_token.status is E'@notNull\n\nWhether the token is still accepted.';

comment on table app_private.principal_tables is
  'The tables whose rows act in somebody''s name: the columns of the user and of the organization, what people call a '
  'row and its kind (SQL over the row r), which rows act (a condition), the function that says what permission the '
  'viewer lacks for a row, and the one that suspends it for a reason.';

-- Claims of the acting viewer, from the settings of the transaction.
create function app_private.claims() returns jsonb
language sql stable as $$
  select jsonb_build_object('user_id', app_hidden.setting('user_id'), 'token_id', app_hidden.setting('token_id'),
    'organization_id', app_hidden.setting('organization_id'), 'scopes', app_hidden.setting('scopes'))
$$;
comment on function app_private.claims() is 'Who acts in this transaction at the moment, for set_claims.';

create function app_private.set_claims(claims jsonb) returns void
language sql volatile as $$
  select set_config('plat.' || c.name, coalesce(claims ->> c.name, ''), true)
  from unnest('{user_id, token_id, organization_id, scopes, access}'::text[]) c (name)
$$;
comment on function app_private.set_claims(jsonb) is
  'Says who acts from here on; the role stays, so row security is not what decides.';

create function app_private.token_ended(token_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with recursive family as (
    select t.id, t.parent_id, t.name, t.revoked_at, t.expires_at from app_public.access_tokens t
      where t.id = token_ended.token_id
    union all
    select t.id, t.parent_id, t.name, t.revoked_at, t.expires_at from family f
      join app_public.access_tokens t on t.id = f.parent_id
  )
  select case when f.revoked_at is not null then format('The access token "%s" was revoked.', f.name)
    else format('The access token "%s" has expired.', f.name) end
  from family f where f.revoked_at is not null or f.expires_at <= now() limit 1
$$;
comment on function app_private.token_ended(uuid) is
  'Reason why an access token is no longer accepted, possibly because of the token that created it; null while it '
  'is accepted.';

create function app_private.principal_ended(user_id uuid, token_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select case when not exists (select from app_public.users u where u.id = principal_ended.user_id
      and u.status = 'ACTIVE' and u.deleted_at is null)
    then coalesce((select format('%s cannot sign in any more.', app_public.users_full_name(u)) from app_public.users u
      where u.id = principal_ended.user_id), 'Whoever answered for it is gone.')
    else app_private.token_ended(principal_ended.token_id) end
$$;
comment on function app_private.principal_ended(uuid, uuid) is
  'Reason why records that this user created with this access token no longer have a valid principal; null while '
  'they have.';

create function app_private.act_as_principal(user_id uuid, token_id uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  ended constant boolean := app_private.principal_ended(act_as_principal.user_id, act_as_principal.token_id)
    is not null;
begin
  perform app_private.set_claims(case when ended then '{}' else (
    select jsonb_build_object('user_id', u.id, 'token_id', t.id, 'organization_id', t.organization_id,
      'scopes', array_to_string(nullif(t.scopes, '{}'), ','))
    from (values (act_as_principal.user_id)) u (id)
    left join app_public.access_tokens t on t.id = act_as_principal.token_id) end);
  return not ended;
end $$;
comment on function app_private.act_as_principal(uuid, uuid) is
  'Lets the functions that ask for permissions answer for this user and token until set_claims; where they have ended, '
  'for nobody. Returns whether they act.';

create function app_private.lacking_permission(organization_id uuid, project_id uuid, permissions text[]) returns text
language sql stable as $$
  select p from unnest(permissions) with ordinality n (p, place)
  where not app_hidden.organization_can(lacking_permission.organization_id, n.p)
    and (lacking_permission.project_id is null
      or lacking_permission.project_id <> all ((select app_hidden.viewer_projects(n.p))::uuid[]))
  order by n.place limit 1
$$;
comment on function app_private.lacking_permission(uuid, uuid, text[]) is
  'The first of the permissions that the viewer does not have in all records of the organization, or of the project '
  'where one is named; null where they have all.';

-- Declaring.
create function app_private.tg__principal() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  used constant uuid := app_hidden.setting('token_id')::uuid;
  lacking text;
begin
  -- Automatic changes keep the existing principal.
  if app_public.current_user_id() is null then
    return new;
  end if;
  if used is not null then
    -- Waits for a concurrent revocation, or makes it wait.
    perform from app_public.access_tokens t where t.id = used for share;
    if app_private.token_ended(used) is not null then
      perform app_hidden.fail('UNAUTHENTICATED', app_private.token_ended(used));
    end if;
  end if;
  new := jsonb_populate_record(new, jsonb_build_object(tg_argv[0], app_public.current_user_id(),
    'principal_token_id', used));
  execute format('select %s($1)', tg_argv[1]) into lacking using new;
  if lacking is not null then
    perform app_hidden.fail('FORBIDDEN',
      format('It would act on your behalf, which requires the permission %s.', lacking),
      jsonb_build_object('permission', lacking));
  end if;
  return new;
end $$;
comment on function app_private.tg__principal() is
  'Makes the viewer, with the token in use, the principal of the row, and refuses who lacks a permission for what it '
  'does. Arguments: the column of the user, the function that says what is lacking.';

create function app_private.make_principal(table_schema text, table_name text, user_column text, kind text, title text,
  live text, lacks regprocedure, ends regprocedure, takes_over text default null,
  organization text default 'organization_id', reads_token text default 'true')
returns void
language plpgsql volatile as $$
declare
  relation constant regclass := format('%I.%I', table_schema, table_name)::regclass;
begin
  insert into app_private.principal_tables (table_name, user_column, organization_column, kind, title, live, lacks,
    ends)
    values (relation::text, user_column, organization, kind, title, live, lacks::regproc::text, ends::regproc::text);
  execute format('create trigger _150_principal before insert on %s for each row execute function '
    'app_private.tg__principal(%L, %L)', relation, user_column, lacks::regproc::text);
  if takes_over is not null then
    execute format('create trigger _150_principal_again before update on %s for each row when (%s) execute function '
      'app_private.tg__principal(%L, %L)', relation, takes_over, user_column, lacks::regproc::text);
  end if;
  if table_schema = 'app_public' then
    execute format('create function app_public.%I(r app_public.%I) returns app_public.principal_token
      language sql stable security definer set search_path = pg_catalog, pg_temp as
      $f$ select row(t.id, t.name::text, t.prefix, app_public.access_tokens_status(t))::app_public.principal_token
        from app_public.access_tokens t where t.id = r.principal_token_id
          -- For the row itself: viewers who see it may see its principal.
          and exists (select from %s c where c.id = r.id and c.principal_token_id = t.id) and %s $f$',
      table_name || '_principal_token', table_name, relation, reads_token);
    execute format('grant execute on function app_public.%I to plat_user, plat_anonymous',
      table_name || '_principal_token');
    execute format('comment on function app_public.%I is %L', table_name || '_principal_token',
      E'@withoutViewer It names the token of a row that the viewer has seen.\n\nThe access token with which it was '
      'created or taken over; its permissions limit it, and its revocation ends it. Null if a signed-in user did so.');
    execute format('comment on column %s.principal_token_id is %L', relation,
      E'@behavior -*\n\nThe access token with which it was created or taken over.');
    execute format('comment on constraint %I on %s is %L', table_name || '_principal_token_id_fkey', relation,
      E'@behavior -*\n@forwardBehavior -*\n@backwardBehavior -*\n\nThe access token with which it was created.');
  end if;
end $$;
comment on function app_private.make_principal(text, text, text, text, text, text, regprocedure, regprocedure, text,
  text, text) is
  'Declares that rows of a table act in somebody''s name: the column of the user beside principal_token_id, what '
  'people call a row (SQL over r), which rows act, what permission the viewer lacks for a row (null: none), what '
  'suspends a row for a reason, and which changes (over old and new) make the viewer its principal. reads_token: '
  'whether the viewer reads which token it was (over r), where others see the row, too.';

-- Ending.
create function app_private.suspend(relation text, id uuid, reason text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  kept constant text := coalesce(current_setting('plat.service', true), '');
  acting app_private.principal_tables := (select t from app_private.principal_tables t where t.table_name = relation);
begin
  perform set_config('plat.service', 'on', true);
  execute format('select %s($1, $2)', acting.ends) using id, reason;
  perform set_config('plat.service', kept, true);
end $$;
comment on function app_private.suspend(text, uuid, text) is 'Suspends what acted in somebody''s name, for the reason.';

create function app_private.tell_suspended(suspended jsonb) returns void
language sql volatile as $$
  select app_private.add_job('principal__ended', jsonb_build_object('organizationId', s.organization_id,
    'suspended', s.items))
  from (select i ->> 'organizationId' as organization_id, jsonb_agg(i - 'organizationId' order by i ->> 'kind') as items
    from jsonb_array_elements(suspended) i where i ->> 'organizationId' is not null group by 1) s
$$;
comment on function app_private.tell_suspended(jsonb) is
  'Notifies the owners of what was suspended: [{organizationId, kind, title, reason}].';

create function app_private.suspension_notice(organization_id uuid) returns table (organization text, owners text[])
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select o.name, app_private.owner_addresses(o.id) from app_public.organizations o
  where o.id = suspension_notice.organization_id and o.deleted_at is null
$$;
comment on function app_private.suspension_notice(uuid) is
  'Recipients of notices about suspended records of an organization.';
grant execute on function app_private.suspension_notice to plat_worker;

create function app_private.principal_fault(relation text, id uuid) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  acting app_private.principal_tables := (select t from app_private.principal_tables t where t.table_name = relation);
  before constant jsonb := app_private.claims();
  principal record;
  lacking text;
begin
  execute format('select r.%I as user_id, r.principal_token_id as token_id from %s r where r.id = $1',
    acting.user_column, acting.table_name) into principal using id;
  if app_private.principal_ended(principal.user_id, principal.token_id) is not null then
    return app_private.principal_ended(principal.user_id, principal.token_id);
  end if;
  perform app_private.act_as_principal(principal.user_id, principal.token_id);
  execute format('select %s(r) from %s r where r.id = $1', acting.lacks, acting.table_name) into lacking using id;
  perform app_private.set_claims(before);
  return case when lacking is not null
    then format('Whoever answers for it does not have the permission %s any more.', lacking) end;
end $$;
comment on function app_private.principal_fault(text, uuid) is
  'Why a row may not act: its principal has ended, or lacks a permission; null where it may.';

create function app_private.review_rows(acting app_private.principal_tables, ids uuid[], because text) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  result jsonb := '[]';
  one record;
  reason text;
begin
  for one in execute format('select r.id, %s as organization_id, (%s)::text as title from %s r where r.id = any ($1) '
      'and (%s) order by r.id', coalesce('r.' || acting.organization_column, 'null::uuid'), acting.title,
      acting.table_name, acting.live) using ids
  loop
    reason := coalesce(because, app_private.principal_fault(acting.table_name, one.id));
    if reason is not null then
      perform app_private.suspend(acting.table_name, one.id, reason);
      result := result || jsonb_build_object('organizationId', one.organization_id, 'kind', acting.kind,
        'title', one.title, 'reason', reason);
    end if;
  end loop;
  return result;
end $$;
comment on function app_private.review_rows(app_private.principal_tables, uuid[], text) is
  'Suspends those of the rows whose principal has ended or lacks a permission, or all of them where a reason is given; '
  'returns what it suspended.';

create function app_private.review_principal(relation text, id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.tell_suspended(app_private.review_rows(t, array[review_principal.id], null))
  from app_private.principal_tables t where t.table_name = relation
$$;
comment on function app_private.review_principal(text, uuid) is
  'Suspends a row whose principal has ended or lacks a permission, and notifies the owners.';

create function app_private.review_principals(of_user uuid, in_organization uuid default null,
  because text default null) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  acting app_private.principal_tables;
  ids uuid[];
  suspended jsonb := '[]';
begin
  for acting in select * from app_private.principal_tables t order by t.table_name loop
    execute format('select array_agg(r.id) from %s r where r.%I = $1 and (%s) and ($2 is null or %s = $2) and '
      '($3 is null or r.principal_token_id is null)', acting.table_name, acting.user_column, acting.live,
      coalesce('r.' || acting.organization_column, 'null::uuid')) into ids using of_user, in_organization, because;
    if ids is not null then
      suspended := suspended || app_private.review_rows(acting, ids, because);
    end if;
  end loop;
  perform app_private.tell_suspended(suspended);
  return suspended;
end $$;
comment on function app_private.review_principals(uuid, uuid, text) is
  'Suspends records whose principal the user is (in an organization) and that exceed their permissions; with a '
  'reason, all that they created without an access token. Notifies the owners, and returns what it suspended.';

create function app_private.tg_access_tokens__review() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  ended uuid;
begin
  for ended in select distinct n.user_id from new_rows n full join old_rows o on o.id = n.id
    where case when n.revoked_at is not null then o.revoked_at is null else false end
  loop
    perform app_private.review_principals(ended);
  end loop;
  return null;
end $$;
create trigger _800_review after update on app_public.access_tokens
  referencing old table as old_rows new table as new_rows for each statement
  execute function app_private.tg_access_tokens__review();

create function app_private.expire_access_token(id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.review_principals(t.user_id) from app_public.access_tokens t where t.id = expire_access_token.id
$$;
comment on function app_private.expire_access_token(uuid) is 'Suspends what an access token made that has expired.';
select app_private.make_deadline('access_token', 'app_public.access_tokens', 'expires_at', 'new.revoked_at is null',
  '{revoked_at}', 'app_private.expire_access_token(uuid)');

create function app_private.tg_members__review() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.review_principals(old.user_id, old.organization_id);
  return null;
end $$;
create trigger _800_review after delete on app_public.organization_user_connections for each row
  execute function app_private.tg_members__review();
create trigger _800_review_role after update on app_public.organization_user_connections for each row
  when (old.role is distinct from new.role) execute function app_private.tg_members__review();

create function app_private.tg_users__review() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.review_principals(new.id);
  return null;
end $$;
create trigger _800_review after update on app_public.users for each row
  when (old.status is distinct from new.status or old.deleted_at is distinct from new.deleted_at)
  execute function app_private.tg_users__review();

-- Invitations and roles.
create function app_private.role_lacks(organization_id uuid, role text, beside text default null) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.permission from app_private.role_permissions r
  where r.role = role_lacks.role and not r.in_affiliated
    and not exists (select from app_private.role_permissions b where b.role = role_lacks.beside and not b.in_affiliated
      and b.permission = r.permission)
    and not app_hidden.organization_can(role_lacks.organization_id, r.permission)
  order by r.permission <> 'org.owner', r.permission limit 1
$$;
comment on function app_private.role_lacks(uuid, text, text) is
  'A permission that a role gives, beyond another one, and that the viewer does not have in the organization; null '
  'where the viewer may give the role.';

create function app_private.require_role_within(organization_id uuid, role text, beside text default null) returns void
language plpgsql stable as $$
declare
  lacking constant text := app_private.role_lacks(organization_id, role, beside);
begin
  if lacking is not null then
    perform app_hidden.fail('FORBIDDEN',
      format('The role %s includes the permission %s, which you cannot grant because your token does not have it.',
        role, lacking), jsonb_build_object('permission', lacking));
  end if;
end $$;
comment on function app_private.require_role_within(uuid, text, text) is
  'Refuses viewers who would grant somebody a permission that they do not have themselves, or that their token lacks.';
