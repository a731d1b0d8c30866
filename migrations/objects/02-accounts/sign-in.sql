-- Accounts and signing in. Passwords are hashed and verified outside of the database, which has no argon2id; what
-- reaches it is a hash, or the proof that a password fits one. Everything else is decided here: who may try how
-- often, and which login tokens still count.

comment on domain app_public.new_password is E'@transform hashPassword\n\nA password to be set: 10 characters or more.';

comment on constraint new_password_hashed on domain app_public.new_password is 'A password has 10 characters or more.';

comment on domain app_public.password_proof is E'@transform provePassword\n\nThe password of an account.';

comment on constraint password_proof_hashed on domain app_public.password_proof is 'This is no password.';

comment on domain app_public.login_token is 'The claims of a login token; the API gives them out signed.';

comment on type app_public.authentication is
  E'@foreignKey (user_id) references users (id)|@fieldName user|@behavior -manyRelation:resource:list '
  '-manyRelation:resource:connection\n\n'
  'The result of signing in.';

comment on column app_public.authentication.token is E'@notNull\n\nSend it as "Authorization: Bearer <token>".';
comment on column app_public.authentication.token_type is E'@notNull\n\nAlways Bearer.';
comment on column app_public.authentication.expires_at is
  E'@notNull\n\nWhen the token ends by itself; it ends sooner when the password changes or the user is suspended.';
comment on column app_public.authentication.user_id is E'@behavior -*\n\nWho signed in.';
comment on table app_private.tries is
  'When something was tried lately, by what is limited: an account, an address, a mail.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('user', 'password_changed_at', null, 'password_changed'),
  ('user', 'last_login_at', null, 'signed_in');

create function app_private.count_try(key text, most int, within interval) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  recent timestamptz[];
  moment timestamptz;
begin
  insert into app_private.tries as t (key) values (count_try.key)
    on conflict on constraint tries_pkey do update set moments = t.moments
    returning t.moments into recent; -- the row is locked from here on
  moment := clock_timestamp();
  recent := array(select m from unnest(recent) m where m > moment - within order by m);
  if cardinality(recent) >= most then
    return greatest(1, ceil(extract(epoch from recent[cardinality(recent) - most + 1] + within - moment)));
  end if;
  update app_private.tries t set moments = recent || moment, last_at = moment where t.key = count_try.key;
  if random() < 0.01 then
    delete from app_private.tries t where t.key in (
      select o.key from app_private.tries o where o.last_at < moment - interval '1 day' limit 1000 for
        update skip locked);
  end if;
  return 0;
end $$;
comment on function app_private.count_try(text, int, interval) is
  'Counts a try; where the limit is reached already, counts nothing and returns the seconds to wait.';

create function app_private.network_of(ip text) returns text
language plpgsql immutable strict parallel safe as $$
declare
  address inet;
begin
  address := regexp_replace(ip, '^::ffff:(?=\d+\.)', '', 'i')::inet;
  -- Whoever has one IPv6 address has the 2^64 beside it.
  return case family(address) when 4 then host(address) else network(set_masklen(address, 64))::text end;
exception when invalid_text_representation then
  return null;
end $$;
comment on function app_private.network_of(text) is 'What counts as one address; null for what is none.';

create function app_private.account_named(name text) returns uuid
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- User names contain no @, e-mail addresses do.
  if strpos(name, '@') > 0 then
    return (select i.user_id from app_hidden.user_identities i where i.email = lower(btrim(name)));
  end if;
  return (select i.user_id from app_hidden.user_identities i where lower(i.username) = lower(btrim(name)));
end $$;
comment on function app_private.account_named(text) is 'The user with this user name or e-mail address, or null.';

create function app_private.begin_proof(user_id uuid, name text, ip text) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  wait int := 0;
begin
  -- The address first, always: two tries never wait for each other crosswise.
  if app_private.network_of(ip) is not null then
    wait := app_private.count_try('login address ' || app_private.network_of(ip), 50, '15 minutes');
  end if;
  if wait = 0 then
    -- A name that nobody has is counted like one that somebody has. What was typed is not kept: it may be a password.
    wait := app_private.count_try('login '
      || coalesce(user_id::text, encode(sha256(convert_to(lower(btrim(name)), 'UTF8')), 'hex')), 5, '15 minutes');
  end if;
  if wait > 0 then
    perform app_hidden.fail('RATE_LIMITED', format('Too many tries. Wait %s seconds, or reset the password.', wait),
      jsonb_build_object('retryAfterSeconds', wait));
  end if;
  return coalesce((select p.password_hash from app_private.user_passwords p where p.user_id = begin_proof.user_id),
    -- of random bytes that nobody kept: verifying against it takes as long, and fails
    '$argon2id$v=19$m=19456,t=2,p=1$76fxRw2/IxZz60M/y0vPbQ$PY1uRWydRUPj0nfg8nwD4vY4GXoEhUU4j95Tc9DhWVg');
end $$;

create function app_private.begin_login(username text, ip text) returns text
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.begin_proof(app_private.account_named(username), username, ip)
$$;

create function app_private.begin_confirmation(user_id uuid, ip text) returns text
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.begin_proof(user_id, user_id::text, ip)
$$;
comment on function app_private.begin_login(text, text) is
  'Counts a try to sign in as failed, in a transaction of its own, and returns the hash to verify the password with; '
  'RATE_LIMITED after 5 for an account or 50 from an address in 15 minutes.';
comment on function app_private.begin_confirmation(uuid, text) is
  'Like begin_login, for a signed-in user who gives the password once more.';
grant execute on function app_private.begin_login(text, text), app_private.begin_confirmation(uuid, text) to
  plat_authenticator;

create function app_private.forgive_tries(user_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  address text := app_private.network_of(app_hidden.setting('ip'));
begin
  -- This try was right, so it no longer counts against the address; others from there still do.
  update app_private.tries t set moments = trim_array(t.moments, 1)
    where t.key = 'login address ' || address and cardinality(t.moments) > 0;
  delete from app_private.tries t where t.key = 'login ' || forgive_tries.user_id;
end $$;

-- The operations.
create function app_public.create_account(email app_public.email_address, password app_public.new_password,
  first_name text default null,
  last_name text default null, username text default null) returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  new_user app_public.users;
  violated text;
begin
  if email is null or password is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'An account takes an e-mail address and a password.',
      jsonb_build_object('field', case when email is null then 'email' else 'password' end));
  end if;
  perform app_hidden.refuse_bad_value(null::app_public.users,
    jsonb_build_object('first_name', first_name, 'last_name', last_name));
  -- It is the new user who causes the events.
  perform set_config('plat.user_id', uuidv7()::text, true);
  insert into app_public.users (id, first_name, last_name, password_changed_at)
    values (app_public.current_user_id(), first_name, last_name, now()) returning * into new_user;
  insert into app_hidden.user_identities (user_id, email, username) values (new_user.id, lower(email), username);
  insert into app_private.user_passwords (user_id, password_hash) values (new_user.id, password);
  return new_user;
exception
  when unique_violation then
    get stacked diagnostics violated = constraint_name;
    if violated = 'user_identities_username' then
      perform app_hidden.fail('CONFLICT', 'This user name is taken; choose another.', '{"field": "username"}');
    elsif violated = 'user_identities_email' then
      perform app_hidden.fail('CONFLICT',
        'There is an account with this e-mail address already; sign in or reset its password.', '{"field": "email"}');
    end if;
    raise;
  when check_violation then
    get stacked diagnostics violated = constraint_name;
    if violated in ('user_identities_username_format', 'short_text_length') then
      perform app_hidden.fail('BAD_USER_INPUT',
        'A user name has 2 to 50 letters, digits, dots, hyphens and underscores, and no @.', '{"field": "username"}');
    end if;
    raise;
end $$;
comment on function app_public.create_account(app_public.email_address,app_public.new_password,text,text,text) is
  E'@withoutViewer For those who have no account.\n@becomes id\n@arg email Where codes and notifications go; one '
  'account per address.\n@arg password 10 characters or more.\n@arg first_name Given name.\n@arg last_name Family '
  'name.\n@arg username A further name for signing in, without @.\n\nCreates a user account. A viewer who is signed in '
  'may do so too; it changes nothing about their own.';

create function app_public.login(username text, password app_public.password_proof) returns app_public.authentication
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  account record;
  result app_public.authentication;
begin
  select u.id, p.session_epoch into account
    from app_private.user_passwords p join app_public.users u on u.id = p.user_id
    where u.id = app_private.account_named(username) and p.password_hash = password
      and u.status = 'ACTIVE' and u.deleted_at is null
    for no key update of u;
  if account.id is null then
    -- One sentence for an unknown name, a wrong password and a user who may not sign in.
    perform app_hidden.fail('UNAUTHENTICATED', 'The name and the password do not match an account that can sign in.');
  end if;
  perform app_private.forgive_tries(account.id);
  perform set_config('plat.user_id', account.id::text, true);
  perform set_config('plat.token_id', '', true);
  update app_public.users u set last_login_at = now() where u.id = account.id;
  result.user_id := account.id;
  result.token_type := 'Bearer';
  result.expires_at := date_trunc('second', now()) + interval '30 days';
  result.token := jsonb_build_object('sub', account.id, 'epoch', account.session_epoch,
    'iat', extract(epoch from date_trunc('second', now()))::bigint, 'exp',
      extract(epoch from result.expires_at)::bigint);
  return result;
end $$;
comment on function app_public.login(text,app_public.password_proof) is
  E'@withoutViewer For those who are to be signed in; the password says who it is.\n@becomes user_id\n@eachTime\n@arg '
  'username User name or e-mail address.\n@arg password The password of the account.\n\nExchanges a name and a '
  'password for a token, which ends after 30 days. RATE_LIMITED after 5 wrong tries for an account, or 50 from an '
  'address, within 15 minutes.';
grant execute on function app_public.create_account, app_public.login to plat_user, plat_anonymous;

create function app_private.authenticate_session(user_id uuid, session_epoch int, session_id uuid default null)
returns table (viewer_id uuid, token_id uuid, read_only boolean, organization_id uuid, scopes text[])
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  select u.id, null::uuid, false, null::uuid, null::text[]
  from app_public.users u join app_private.user_passwords p on p.user_id = u.id
  where u.id = authenticate_session.user_id
    and (p.session_epoch = authenticate_session.session_epoch
      or (p.kept_epoch = authenticate_session.session_epoch and p.kept_session = authenticate_session.session_id))
    and u.status = 'ACTIVE' and u.deleted_at is null
$$;
comment on function app_private.authenticate_session(uuid, int, uuid) is
  'Who signs in with a login token of this user, epoch and id; no row when access ended since, but for the session '
  'that was kept, or the user may not sign in.';
grant execute on function app_private.authenticate_session(uuid, int, uuid) to plat_authenticator;
