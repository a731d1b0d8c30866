-- Accounts and signing in. Passwords are hashed and verified outside of the database, which does not support argon2id;
-- the database receives a hash, or the proof that a password matches. Everything else is decided here: rate limits of
-- attempts, and which login tokens are valid.

comment on domain app_public.new_password is E'@transform hashPassword\n\nA password to be set: 10 characters or more.';

comment on constraint new_password_hashed on domain app_public.new_password is
  'A password must have at least 10 characters.';

comment on domain app_public.password_proof is E'@transform provePassword\n\nThe password of an account.';

comment on constraint password_proof_hashed on domain app_public.password_proof is 'Not a valid password.';

comment on domain app_public.login_token is 'The claims of a login token; the API gives them out signed.';

comment on type app_public.authentication is
  E'@foreignKey (user_id) references users (id)|@fieldName user|@behavior -manyRelation:resource:list '
  '-manyRelation:resource:connection\n\n'
  'The result of signing in.';

comment on column app_public.authentication.token is
  E'@notNull\n\nLogin token (a JWT) for the header `Authorization: Bearer <token>`.';
comment on column app_public.authentication.token_type is E'@notNull\n\nAlways Bearer.';
comment on column app_public.authentication.expires_at is
  E'@notNull\n\n'
  'When the token expires. It is revoked earlier if its session ends: by logout, by a change of password, or if '
  'the user is suspended.';
comment on column app_public.authentication.user_id is E'@behavior -*\n\nWho signed in.';
comment on column app_public.authentication.session_id is
  E'@notNull\n\nId of the session of this token, for `logout`.';
comment on column app_public.authentication.refresh_token is
  'Token for `refreshSession`, which accepts it once; null for a login token of 30 days.';
comment on column app_public.authentication.refresh_expires_at is
  'When the refresh token expires if it is not used; null without one.';
comment on table app_private.user_networks is
  'From which networks a user signed in during the last 90 days; only their SHA-256 is kept.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('user', 'password_changed_at', null, 'password_changed'),
  ('user', 'last_login_at', null, 'signed_in');

create function app_private.network_of(ip text) returns text
language plpgsql immutable strict parallel safe as $$
declare
  address inet;
begin
  address := regexp_replace(ip, '^::ffff:(?=\d+\.)', '', 'i')::inet;
  -- An IPv6 subscriber usually has a /64 network.
  return case family(address) when 4 then host(address) else network(set_masklen(address, 64))::text end;
exception when invalid_text_representation then
  return null;
end $$;
comment on function app_private.network_of(text) is 'What counts as one address; null for what is none.';

create function app_private.account_named(name text) returns uuid
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- User names contain no @, email addresses do.
  if strpos(name, '@') > 0 then
    return (select i.user_id from app_hidden.user_identities i where i.email = lower(btrim(name)));
  end if;
  return (select i.user_id from app_hidden.user_identities i where lower(i.username) = lower(btrim(name)));
end $$;
comment on function app_private.account_named(text) is 'The user with this user name or email address, or null.';

-- An attacker who guesses passwords is locked out, but not the owner of the account: the limit of five failed
-- attempts is per account and network. Attempts from other networks have a slower limit, which does not apply to
-- networks from which the account has signed in during the last 90 days.
create function app_private.proof_limits(user_id uuid, name text, ip text)
returns table (key text, most int, within interval)
language sql stable as $$
  -- Unknown names are counted like known ones. The input is not stored, because it may be a password.
  select t.key, l.most, l.within
  from (select coalesce(user_id::text, encode(sha256(convert_to(lower(btrim(name)), 'UTF8')), 'hex')) as account,
    app_private.network_of(ip) as network) a
  cross join lateral (values
    ('login.network', 'login address ' || a.network),
    ('login.account_and_network', 'login ' || a.account || ' ' || coalesce(a.network, '-')),
    ('login.account', case when not app_private.is_known_network(user_id, a.network) then 'login ' || a.account end)
  ) t (name, key)
  cross join lateral app_private.limit_of(t.name) l
  where t.key is not null
$$;
comment on function app_private.proof_limits(uuid, text, text) is
  'What limits tries for the password of an account, or of a name that nobody has, from an address.';

create function app_private.is_known_network(user_id uuid, network text) returns boolean
language sql stable as $$
  select exists (select from app_private.user_networks n where n.user_id = $1
    and n.network_sha256 = sha256(convert_to($2, 'UTF8')) and n.last_at > now() - interval '90 days')
$$;
comment on function app_private.is_known_network(uuid, text) is
  'Whether the user signed in from there during the last 90 days.';

create function app_private.refuse_tries(wait int) returns void
language plpgsql volatile as $$
begin
  if wait > 0 then
    perform app_hidden.fail('RATE_LIMITED', format('Too many attempts. Wait %s seconds, or reset the password.', wait),
      jsonb_build_object('retryAfterSeconds', wait));
  end if;
end $$;

create function app_private.begin_proof(user_id uuid, name text, ip text) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.refuse_tries((select max(app_private.seconds_to_wait(l.key, l.most))
    from app_private.proof_limits(user_id, name, ip) l));
  return coalesce((select p.password_hash from app_private.user_passwords p where p.user_id = begin_proof.user_id),
    -- The hash of random bytes that were discarded: verifying a password against it takes as long, and fails.
    '$argon2id$v=19$m=19456,t=2,p=1$76fxRw2/IxZz60M/y0vPbQ$PY1uRWydRUPj0nfg8nwD4vY4GXoEhUU4j95Tc9DhWVg');
end $$;

create function app_private.record_proof(user_id uuid, name text, ip text, is_right boolean) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- A right one that comes after the limit is refused like a wrong one: guesses in parallel learn nothing more.
  perform app_private.refuse_tries((select max(app_private.take_use(l.key, l.most, l.within, not is_right))
    from app_private.proof_limits(user_id, name, ip) l));
end $$;

create function app_private.begin_login(username text, ip text) returns text
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.begin_proof(app_private.account_named(username), username, ip)
$$;

create function app_private.record_login(username text, ip text, is_right boolean) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.record_proof(app_private.account_named(username), username, ip, is_right)
$$;

create function app_private.begin_confirmation(user_id uuid, ip text) returns text
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.begin_proof(user_id, user_id::text, ip)
$$;

create function app_private.record_confirmation(user_id uuid, ip text, is_right boolean) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.record_proof(user_id, user_id::text, ip, is_right)
$$;
comment on function app_private.begin_login(text, text) is
  'The hash to verify a password with; counts nothing. RATE_LIMITED where there were too many wrong attempts.';
comment on function app_private.record_login(text, text, boolean) is
  'Counts a wrong password, in a transaction of its own; RATE_LIMITED where others have used the limit up meanwhile.';
comment on function app_private.begin_confirmation(uuid, text) is
  E'@step The user is the viewer, whose token is verified.\n\nLike begin_login, for a signed-in user who gives the '
  'password once more.';
comment on function app_private.record_confirmation(uuid, text, boolean) is
  E'@step The user is the viewer, whose token is verified.\n\nLike record_login, for a signed-in user who gives the '
  'password once more.';
grant execute on function app_private.begin_login, app_private.record_login, app_private.begin_confirmation,
  app_private.record_confirmation to plat_authenticator;

create function app_private.forgive_tries(user_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  network text := app_private.network_of(app_hidden.setting('ip'));
begin
  delete from app_private.limit_uses u where u.key = 'login ' || forgive_tries.user_id || ' ' || coalesce(network, '-');
  insert into app_private.user_networks as n (user_id, network_sha256)
    select forgive_tries.user_id, sha256(convert_to(network, 'UTF8')) where network is not null
    on conflict on constraint user_networks_pkey do update set last_at = now()
      where n.last_at < now() - interval '1 day';
end $$;
comment on function app_private.forgive_tries(uuid) is
  'After the right password: the wrong ones from the same network count no longer, and the network is known.';

-- New accounts. The limit is checked before the expensive hash, and every hash counts, even if no account was
-- created. Users who have created an account leave half of the common limit to others.
create function app_private.area_of(ip text) returns text
language sql immutable strict parallel safe as $$
  select network(set_masklen(n, case family(n) when 4 then 24 else 48 end))::text
  from (select app_private.network_of(ip)::inet as n) a
$$;
comment on function app_private.area_of(text) is
  'What is likely to be in one hand: the networks around an address. Null for what is none.';

create function app_private.sign_up_limits(ip text) returns table (key text, most int, within interval)
language sql stable as $$
  -- Materialized: whether there is a use, before this one is counted.
  with known as materialized (
    select a.area, app_private.seconds_to_wait(a.area, 1) > 0 as has_use
    from (select 'sign up area ' || app_private.area_of(ip) as area) a
  )
  select t.key, l.most, l.within
  from known
  cross join lateral (values ('sign_up.network', 'sign up ' || app_private.network_of(ip)),
    ('sign_up.area', known.area), ('sign_up.further', case when known.has_use then 'sign up further' end),
    ('sign_up.total', 'sign up')) t (name, key)
  cross join lateral app_private.limit_of(t.name) l
  where t.key is not null
$$;
comment on function app_private.sign_up_limits(text) is 'What limits new accounts from an address.';

create function app_private.refuse_sign_up(wait int) returns void
language plpgsql volatile as $$
begin
  if wait > 0 then
    perform app_hidden.fail('RATE_LIMITED', format('Too many new accounts at the moment. Wait %s seconds.', wait),
      jsonb_build_object('retryAfterSeconds', wait));
  end if;
end $$;

create function app_private.begin_sign_up(ip text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.refuse_sign_up((select max(app_private.seconds_to_wait(l.key, l.most))
    from app_private.sign_up_limits(ip) l));
end $$;
comment on function app_private.begin_sign_up(text) is
  'RATE_LIMITED where no further account may be made from there at the moment; counts nothing.';

create function app_private.count_sign_up(ip text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.refuse_sign_up((select max(app_private.take_use(l.key, l.most, l.within))
    from app_private.sign_up_limits(ip) l));
end $$;
comment on function app_private.count_sign_up(text) is 'Counts a new account, in a transaction of its own.';
grant execute on function app_private.begin_sign_up, app_private.count_sign_up to plat_authenticator;

-- The operations.
create policy self on app_hidden.duplicate_accounts for select to plat_user, plat_anonymous
  using (user_id = (select app_public.current_user_id()));
grant select on app_hidden.duplicate_accounts to plat_user, plat_anonymous;
comment on table app_hidden.duplicate_accounts is
  'What createAccount answered for an address that has an account: a user without identity and password, whom '
  'nobody can sign in as. It is deleted after an hour; the owner of the address is notified by mail.';

create function app_public.create_account(email app_public.email_address, password app_public.new_password,
  first_name text default null,
  last_name text default null, username text default null) returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  address text := lower(email);
  new_user app_public.users;
  violated text;
  is_new boolean;
begin
  if email is null or password is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'An account requires an email address and a password.',
      jsonb_build_object('field', case when email is null then 'email' else 'password' end));
  end if;
  perform app_hidden.refuse_bad_value(null::app_public.users,
    jsonb_build_object('first_name', first_name, 'last_name', last_name));
  -- The new user is the actor of the events.
  perform set_config('plat.user_id', uuidv7()::text, true);
  insert into app_public.users (id, first_name, last_name, password_changed_at, language)
    values (app_public.current_user_id(), first_name, last_name, now(),
      coalesce(app_hidden.setting('language'), 'en')) returning * into new_user;
  -- Only the owner of the address learns, by mail, whether it has an account: from here on both cases do the same,
  -- and the answer is the same.
  insert into app_hidden.user_identities (user_id, email, username) values (new_user.id, address, username)
    on conflict on constraint user_identities_email do nothing;
  is_new := found;
  if is_new then
    insert into app_private.user_passwords (user_id, password_hash) values (new_user.id, password);
  else
    if exists (select from app_hidden.user_identities i where lower(i.username) = lower(create_account.username)) then
      raise unique_violation using constraint = 'user_identities_username';
    end if;
    insert into app_hidden.duplicate_accounts (user_id, email, username) values (new_user.id, address, username);
  end if;
  perform app_private.request_verification(new_user.id);
  -- The code of the day. A user who signs in again gets no second one, which would invalidate the first before it is
  -- read.
  perform app_private.is_within_limit('verification.login', new_user.id::text);
  return app_hidden.masked(new_user);
exception
  when unique_violation then
    get stacked diagnostics violated = constraint_name;
    if violated = 'user_identities_username' then
      perform app_hidden.fail('CONFLICT', 'This user name is taken; choose another.', '{"field": "username"}');
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
  E'@withoutViewer For those who have no account.\n@becomes id\n@arg email Email address for codes and '
  'notifications; one account per address.\n@arg password 10 characters or more.\n@arg first_name Given name, such '
  'as Ada.\n@arg last_name Family name.\n@arg username A further name for signing in, without @.\n\n'
  'Creates a user account and sends a code for `verifyEmail` to its address. If the address already has an '
  'account, nothing is created and the mail says so. The response is the same, so it does not reveal who has an '
  'account. Signed-in viewers can call it too; their own account is not affected.';

create function app_public.login(username text, password app_public.password_proof, refreshable boolean default false,
  device app_public.session_device default null, second_factor_code app_public.second_factor_code default null)
returns app_public.authentication
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  account record;
  network constant text := app_private.network_of(app_hidden.setting('ip'));
begin
  select u.id, u.email_verified_at, u.last_login_at, p.session_epoch into account
    from app_private.user_passwords p join app_public.users u on u.id = p.user_id
    where u.id = app_private.account_named(username) and p.password_hash = password
      and u.status = 'ACTIVE' and u.deleted_at is null
    for no key update of u;
  if account.id is null then
    -- The same message for an unknown name, a wrong password and a user who may not sign in.
    perform app_hidden.fail('UNAUTHENTICATED',
      'The user name and the password do not match an account that can sign in.');
  end if;
  perform app_private.require_second_factor(account.id, second_factor_code, 'UNAUTHENTICATED', 'UNAUTHENTICATED');
  if account.last_login_at is not null and network is not null
    and not app_private.is_known_network(account.id, network) then
    perform app_private.tell_account(account.id, 'NEW_NETWORK', jsonb_build_object('device', device::text));
  end if;
  perform app_private.forgive_tries(account.id);
  perform set_config('plat.user_id', account.id::text, true);
  perform set_config('plat.token_id', '', true);
  update app_public.users u set last_login_at = now() where u.id = account.id;
  -- A user with an unconfirmed address gets a code once a day.
  if account.email_verified_at is null and app_private.is_within_limit('verification.login', account.id::text) then
    perform app_private.request_verification(account.id);
  end if;
  return app_private.open_session(account.id, account.session_epoch, refreshable, device);
end $$;
comment on function app_public.login is
  E'@withoutViewer For those who are to be signed in; the password says who it is.\n@becomes '
  'user_id\n@eachTime\n@arg username User name or email address.\n@arg password The password of the account.\n@arg '
  'refreshable If true, returns a token for 15 minutes and a refresh token, instead of a token for 30 days.\n@arg '
  'second_factor_code Current code of the authenticator app, or an unused recovery code; required if the account '
  'has a second factor.\n\n'
  'Exchanges a user name or email address and a password for a login token, which expires after 30 days. Refused '
  'with RATE_LIMITED after 5 failed attempts within 15 minutes for an account from one network, or 50 from a '
  'network; and after 50 in a day for an account from networks that it has never signed in from. For an account '
  'with a second factor, a correct password without a code is refused with UNAUTHENTICATED and the reason '
  'SECOND_FACTOR_REQUIRED; a wrong code, with the reason SECOND_FACTOR_WRONG.';
grant execute on function app_public.create_account, app_public.login to plat_user, plat_anonymous;
