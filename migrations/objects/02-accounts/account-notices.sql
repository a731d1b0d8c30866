-- Mails about changes of an account, in case somebody else made them: sent by a job after the commit, to the address of
-- the account if it is confirmed.

create function app_private.tell_account(user_id uuid, change text, facts jsonb default '{}', email text default null)
returns void
language sql volatile as $$
  select app_private.add_job('account__changed', jsonb_strip_nulls(jsonb_build_object('user_id', $1, 'change', $2,
    'facts', $3, 'email', $4, 'at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'network', app_private.network_of(app_hidden.setting('ip')))))
$$;
comment on function app_private.tell_account(uuid, text, jsonb, text) is
  'Notifies the user by mail of a change of their account; at a former address, if one is given.';

create function app_private.account_notice(user_id uuid, former_email text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(former_email, i.email) from app_public.users u
  join app_hidden.user_identities i on i.user_id = u.id
  where u.id = $1 and u.email_verified_at is not null and u.deleted_at is null
$$;
comment on function app_private.account_notice(uuid, text) is
  'Email address for notices to the user; null if it is not verified.';
grant execute on function app_private.account_notice to plat_worker;
