-- Rate limits. A limit of n uses has n slots for each key (a network, an email address, a user); a use occupies a slot
-- until its window ends. Concurrent uses do not wait for each other: the slot of an uncommitted use is skipped, and
-- counts as occupied.

comment on table app_private.limit_uses is
  'Uses of limits that count still, by what is limited and whom, mostly as SHA-256.';

comment on table app_private.limits is
  'What strangers, users and organizations may do how often. To change one for a service, insert a row into '
  'app_private.limit_changes.';
comment on table app_private.limit_changes is
  'Limits that the operator of this service has changed: the name of one of app_private.limits, how many from now on, '
  'and why. No release changes these rows.';

insert into app_private.limits (name, most, within, description) values
  ('login.account_and_network', 5, '15 minutes', 'Wrong passwords for an account from one network.'),
  ('login.network', 50, '15 minutes', 'Wrong passwords from one network, whatever the account.'),
  ('login.account', 50, '24 hours',
    'Wrong passwords for an account from networks that it has not signed in from during the last 90 days.'),
  ('mail.unconfirmed_account', 10, '24 hours',
    'Mails to the address of an account that has not confirmed it; further ones are not sent.'),
  ('mail.recipient_and_organization', 20, '24 hours',
    'Mails of one organization to one address outside of it; further ones wait.'),
  ('mail.recipient', 60, '24 hours', 'Mails of all organizations to one address outside of them; further ones wait.'),
  ('sms.recipient', 10, '24 hours', 'Text messages to one number; further ones wait.'),
  ('invite.recipient', 10, '24 hours', 'Invitations of all organizations to one address.'),
  ('invite.organization', 200, '1 hour', 'Invitations to an organization.'),
  ('invite.address', 5, '1 hour', 'Invitations to an organization for one address.'),
  ('invite.buyers', 1000, '1 hour', 'Invitations of an organization to its buyers.'),
  ('invite.buyer', 5, '1 hour', 'Invitations of one buyer.'),
  ('invite.buyer_address', 10, '1 hour', 'Invitations of an organization to buyers with one address.'),
  ('invite.affiliates', 100, '1 hour', 'Invitations of an organization to have a part in its projects.'),
  ('invite.affiliate', 50, '24 hours', 'Invitations of one organization or address to projects of another one.'),
  ('organization.user', 10, '24 hours', 'Organizations that one user founds.'),
  ('sandbox.clock', 600, '1 hour', 'Turns of the clocks of the sandboxes of one user.'),
  ('verification.login', 1, '24 hours',
    'Codes sent because somebody signed in without having confirmed the address of the account.'),
  ('sign_up.network', 120, '1 hour', 'New accounts from one network.'),
  ('sign_up.area', 480, '1 hour',
    'New accounts from one area: the networks whose IPv4 addresses begin with the same 24 bits, or IPv6 with 48.'),
  ('sign_up.total', 120, '1 minute', 'New accounts from everywhere together.'),
  ('sign_up.further', 60, '1 minute',
    'New accounts from all areas together that have made one within the hour: the rest is for areas that have not.'),
  ('otp.network', 60, '1 hour', 'One-time codes asked for from one network.'),
  ('otp.account', 5, '1 hour', 'One-time codes for one account; further ones are quietly not sent.'),
  ('verification.account', 5, '1 hour', 'Codes that a user asks for to confirm the address of the account.'),
  ('verification.address', 5, '24 hours',
    'Mails to one address because somebody made an account with it; further ones are quietly not sent.'),
  ('second_factor.hour', 10, '1 hour', 'Wrong codes of the second factor of an account, for each way to give one.'),
  ('second_factor.day', 30, '24 hours', 'Wrong codes of the second factor of an account, for each way to give one.'),
  ('second_factor.notice', 1, '24 hours', 'Mails that tell the user of wrong codes of their second factor.'),
  ('email_change.account', 5, '1 hour', 'Changes of the email address that a user asks for.'),
  ('consent.address', 3, '24 hours',
    'Mails that ask the owner of an address for consent, for all organizations; further ones are quietly not sent.'),
  ('consent.address_and_organization', 1, '24 hours',
    'Mails that ask the owner of an address for consent to the mails of one organization.'),
  ('signing.code', 5, '1 hour', 'One-time codes for one signer of an agreement.'),
  ('signing.network', 60, '1 hour', 'One-time codes for signers of agreements, asked for from one network.'),
  ('signing.try', 15, '24 hours', 'Wrong one-time codes of one signer of an agreement.'),
  ('signing.reminder', 3, '24 hours', 'Reminders of one signer of an agreement.'),
  ('session.refresh', 60, '1 hour', 'Refreshes of one session.'),
  ('buyer.change', 300, '1 hour', 'Changes that a buyer makes to their own personalizations.'),
  ('buyer.document', 30, '24 hours', 'Private documents that a buyer uploads.'),
  ('contact.network', 20, '1 hour', 'Messages to organizations and to the operator from one network.'),
  ('contact.sender', 5, '1 hour', 'Messages to organizations and to the operator from one email address.'),
  ('visitor_hold.person', 2, '1 hour',
    'Homes that a visitor holds or reserves for themselves, within publicHoldExpiration of the project.'),
  ('visitor_hold.network', 10, '1 hour', 'The same of all visitors from one network.'),
  ('visitor_reservation.person', 2, '48 hours',
    'Reservations without a fee that a visitor makes for themselves, within reservationExpiration of the project.'),
  ('visitor_reservation.network', 10, '48 hours', 'The same of all visitors from one network.'),
  ('contact_project.network', 60, '1 hour', 'Messages to projects from one network.'),
  ('contact_project.sender', 10, '1 hour', 'Messages to a project from one email address.');

create function app_private.limit_of(name text) returns table (most int, within interval)
language sql stable rows 1 as $$
  select coalesce((select c.most from app_private.limit_changes c where c.name = l.name), l.most), l.within
  from app_private.limits l where l.name = limit_of.name
$$;
comment on function app_private.limit_of(text) is 'A limit as it holds for this service.';

create function app_private.limit_key(name text, key text) returns text
language sql immutable as $$ select name || ' ' || encode(sha256(convert_to(key, 'UTF8')), 'hex') $$;
comment on function app_private.limit_key(text, text) is 'What the uses of a limit by somebody are kept under.';

create function app_private.seconds_to_wait(key text, most int) returns int
language sql volatile as $$
  select coalesce((select greatest(1, ceil(extract(epoch from u.expires_at - clock_timestamp())))::int
    from app_private.limit_uses u where u.key = seconds_to_wait.key and u.expires_at > clock_timestamp()
    order by u.expires_at desc offset greatest(most, 1) - 1 limit 1), 0)
$$;
comment on function app_private.seconds_to_wait(text, int) is
  'How long until there is room for one more use: seconds, 0 for at once. Counts nothing.';

create function app_private.take_use(key text, most int, within interval, counts boolean default true) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  wait int := app_private.seconds_to_wait(take_use.key, most);
  free int;
  name bigint;
begin
  if wait > 0 or most < 1 then
    return greatest(wait, 1);
  end if;
  for free in
    select s from generate_series(1, most) s
    where not exists (select from app_private.limit_uses u
      where u.key = take_use.key and u.slot = s and u.expires_at > clock_timestamp()) order by s
  loop
    name := hashtextextended('plat.limit ' || free || ' ' || take_use.key, 0);
    -- A check without a use takes a shared lock, so that it only conflicts with concurrent uses of the slot.
    continue when not case when counts then pg_try_advisory_xact_lock(name)
      else pg_try_advisory_xact_lock_shared(name) end;
    -- Its previous owner may have committed since the check above.
    continue when exists (select from app_private.limit_uses u
      where u.key = take_use.key and u.slot = free and u.expires_at > clock_timestamp());
    if counts then
      insert into app_private.limit_uses (key, slot, expires_at)
        values (take_use.key, free, clock_timestamp() + within)
        on conflict on constraint limit_uses_pkey do update set expires_at = excluded.expires_at;
    end if;
    return 0;
  end loop;
  return greatest(1, app_private.seconds_to_wait(take_use.key, most));
end $$;
comment on function app_private.take_use(text, int, interval, boolean) is
  'Counts a use, unless counts is false: 0, or the seconds to wait where there is no room for it. Never waits for '
  'another transaction: what that one has counted counts here at once, also where it is rolled back later.';

create function app_private.return_use(key text) returns void
language sql volatile as $$
  delete from app_private.limit_uses u where u.ctid = (select l.ctid from app_private.limit_uses l
    where l.key = return_use.key order by l.expires_at desc limit 1 for update skip locked)
$$;
comment on function app_private.return_use(text) is 'Takes a use back, such as one for what was not done after all.';

create function app_private.rate_limit(name text, key text) returns void
language sql volatile as $$
  select app_private.rate_limit(name, key, l.most, l.within) from app_private.limit_of(name) l
$$;
comment on function app_private.rate_limit(text, text) is 'Like the one below, with a limit of app_private.limits.';

create function app_private.is_within_limit(name text, key text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (select app_private.take_use(app_private.limit_key(name, key), l.most, l.within) = 0
    from app_private.limit_of(name) l);
end $$;
comment on function app_private.is_within_limit(text, text) is
  'Counts one use by the key if the limit permits it: for limits that must not be revealed.';

create function app_private.rate_limit(bucket text, key text, max int, per interval) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  wait int;
begin
  if key is null then
    return;
  end if;
  wait := app_private.take_use(app_private.limit_key(bucket, key), max, per);
  if wait > 0 then
    perform app_hidden.fail('RATE_LIMITED', 'Too many attempts; wait a little and try again.',
      jsonb_build_object('retryAfterSeconds', wait));
  end if;
end $$;
comment on function app_private.rate_limit(text, text, int, interval) is
  'Counts one use of the bucket by the key and refuses it with RATE_LIMITED when there were max uses within the window '
  'before. A null key is not limited. What the transaction rolls back was not counted; so a use that failed for '
  'another reason is free.';
