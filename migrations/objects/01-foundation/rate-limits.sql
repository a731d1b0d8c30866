-- How often somebody may do something, whatever it is: one row per bucket and key remembers the recent times.

comment on table app_private.rate_limits is
  'The times within the window at which a key (an address, an e-mail address, a user) used a bucket; keys are kept as '
  'SHA-256.';

comment on table app_private.limits is
  'What strangers, users and organizations may do how often. To change one for a service, insert a row into '
  'app_private.limit_changes.';
comment on table app_private.limit_changes is
  'Limits that the operator of this service has changed: the name of one of app_private.limits, how many from now on, '
  'and '
  'why. No release changes these rows.';

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
  ('organization.user', 10, '24 hours', 'Organizations that one user founds.'),
  ('verification.login', 1, '24 hours',
    'Codes sent because somebody signed in without having confirmed the address of the account.'),
  ('sign_up.network', 120, '1 hour', 'New accounts from one network.'),
  ('sign_up.total', 120, '1 minute', 'New accounts from all networks together.'),
  ('otp.network', 60, '1 hour', 'One-time codes asked for from one network.'),
  ('otp.account', 5, '1 hour', 'One-time codes for one account; further ones are quietly not sent.'),
  ('verification.account', 5, '1 hour', 'Codes that a user asks for to confirm the address of the account.'),
  ('verification.address', 5, '24 hours',
    'Mails to one address because somebody made an account with it; further ones are quietly not sent.'),
  ('consent.address', 3, '24 hours',
    'Mails that ask the owner of an address for consent, for all organizations; further ones are quietly not sent.'),
  ('consent.address_and_organization', 1, '24 hours',
    'Mails that ask the owner of an address for consent to the mails of one organization.'),
  ('contact.network', 20, '1 hour', 'Messages to organizations and to the operator from one network.'),
  ('contact.sender', 5, '1 hour', 'Messages to organizations and to the operator from one e-mail address.'),
  ('contact_project.network', 60, '1 hour', 'Messages to projects from one network.'),
  ('contact_project.sender', 10, '1 hour', 'Messages to a project from one e-mail address.');

create function app_private.limit_of(name text) returns table (most int, within interval)
language sql stable rows 1 as $$
  select coalesce((select c.most from app_private.limit_changes c where c.name = l.name), l.most), l.within
  from app_private.limits l where l.name = limit_of.name
$$;
comment on function app_private.limit_of(text) is 'A limit as it holds for this service.';

create function app_private.rate_limit(name text, key text) returns void
language sql volatile as $$
  select app_private.rate_limit(name, key, l.most, l.within) from app_private.limit_of(name) l
$$;
comment on function app_private.rate_limit(text, text) is 'Like the one below, with a limit of app_private.limits.';

create function app_private.is_within_limit(name text, key text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (select app_private.count_try(name || ' ' || encode(sha256(convert_to(key, 'UTF8')), 'hex'), l.most, l.within)
    = 0 from app_private.limit_of(name) l);
end $$;
comment on function app_private.is_within_limit(text, text) is
  'Counts one use by the key, where there is room for it: for limits that must not be told.';

create function app_private.rate_limit(bucket text, key text, max int, per interval) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  moment timestamptz;
  recent timestamptz[];
  hash bytea := sha256(convert_to(key, 'UTF8'));
begin
  if key is null then
    return;
  end if;
  -- Keys that are not seen any more go as new ones come, so that no job has to clear up.
  delete from app_private.rate_limits r where r.ctid = any (array(
    select s.ctid from app_private.rate_limits s where s.expires_at < now() limit 3 for update skip locked));
  insert into app_private.rate_limits as r (bucket, key_hash, hits, expires_at) values (bucket, hash, '{}', now() + per)
    on conflict on constraint rate_limits_pkey do update set expires_at = excluded.expires_at
    returning r.hits into recent;
  -- From here on the row is ours until the end of the transaction: parallel calls count one after the other.
  moment := clock_timestamp();
  recent := array(select hit from unnest(recent) hit where hit > moment - per order by hit);
  if cardinality(recent) >= max then
    perform app_hidden.fail('RATE_LIMITED', 'Too many tries; wait a little and try again.', jsonb_build_object(
      'retryAfterSeconds', greatest(1,
        ceil(extract(epoch from recent[cardinality(recent) - max + 1] + per - moment))::int)));
  end if;
  update app_private.rate_limits r set hits = recent || moment, expires_at = moment + per
    where r.bucket = bucket and r.key_hash = hash;
end $$;
comment on function app_private.rate_limit(text, text, int, interval) is
  'Counts one use of the bucket by the key and refuses it with RATE_LIMITED when there were max uses within the window '
  'before. A null key is not limited. What the transaction rolls back was not counted; so a use that failed for '
  'another reason is free.';
