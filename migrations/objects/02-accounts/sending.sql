-- Mails and messages of an organization to external recipients are sent under the name of the service. A new
-- organization is unknown, so its quota is small; it grows with its age, or once it accepts payments, because the
-- payment processor has verified it. Messages above the quota wait; what a person requests interactively, such as an
-- invitation, is refused with the time at which the quota allows it. An operator grants more by a row of
-- app_private.sending_changes.

comment on table app_private.sending_tiers is
  'How much an organization may send to people outside of it within 24 hours, by its age and by whether it takes '
  'payments; the best that fits holds.';
comment on table app_private.sending_changes is
  'Quotas that the operator of this service has changed for an organization; null: that of its tier. No release '
  'changes these rows.';
comment on table app_private.sending_counts is
  'What an organization sent in an hour; of text messages, what was handed to the provider.';

insert into app_private.sending_tiers (name, from_age, takes_payments, mails, messages, description) values
  ('NEW', '0', false, 200, 20, 'From the first day.'),
  ('WEEK', '7 days', false, 2000, 200, 'After a week.'),
  ('MONTH', '30 days', false, 10000, 1000, 'After a month.'),
  ('PAYMENTS', '0', true, 20000, 2000, 'Once it takes payments: the processor knows who it is.');

comment on type app_public.sending_quota is
  'Limit on messages that an organization can send to external recipients within 24 hours.';
comment on column app_public.sending_quota.channel is E'@notNull\n\nChannel to which the limit applies.';
comment on column app_public.sending_quota.tier is
  E'@notNull\n\n'
  'Basis of the limit: NEW, WEEK or MONTH by the age of the organization, PAYMENTS if it accepts payments, '
  'OPERATOR if the operator of the service granted it.';
comment on column app_public.sending_quota.per_day is E'@notNull\n\nMaximum number of messages within 24 hours.';
comment on column app_public.sending_quota.used is
  E'@notNull\n\nNumber of messages sent during the last 24 hours, counted in whole hours.';
comment on column app_public.sending_quota.frees_at is
  'When the next message can be sent; null if one can be sent now.';

create function app_private.sending_quota(organization_id uuid, channel text) returns app_public.sending_quota
language sql stable as $$
  select row(channel, q.tier, q.per_day, u.used, case when u.used >= q.per_day then coalesce((
      -- The first hour after which enough of the last 24 has passed.
      select h.hour + interval '24 hours' from (select c.hour, sum(c.amount) over (order by c.hour) as freed
        from app_private.sending_counts c where c.organization_id = $1 and c.channel = $2 and c.hour > w.since) h
      where h.freed > u.used - q.per_day order by h.hour limit 1), now() + interval '24 hours') end
    )::app_public.sending_quota
  from (select date_trunc('hour', now()) - interval '24 hours' as since) w
  cross join lateral (select coalesce(sum(c.amount), 0)::int as used from app_private.sending_counts c
    where c.organization_id = $1 and c.channel = $2 and c.hour > w.since) u
  cross join lateral (
    select 'OPERATOR' as tier, case $2 when 'MAIL' then s.mails else s.messages end as per_day, 0 as place
      from app_private.sending_changes s where s.organization_id = $1
    union all
    select t.name, case $2 when 'MAIL' then t.mails else t.messages end, 1
      from app_private.sending_tiers t join app_public.organizations o on o.id = $1
      where o.inserted_at <= now() - t.from_age and (not t.takes_payments or exists (
        select from app_private.payments_accounts a where a.organization_id = o.id and a.status = 'ENABLED'))
    order by 3, 2 desc) q
  where q.per_day is not null
  order by q.place, q.per_day desc limit 1
$$;
comment on function app_private.sending_quota(uuid, text) is 'The quota of an organization as it is now.';

create function app_private.reserve_sending(organization_id uuid, channel text, wanted int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  quota app_public.sending_quota;
  granted int;
begin
  -- Serialized until the transaction ends, so that concurrent messages count.
  perform pg_advisory_xact_lock(hashtextextended('plat.sending ' || channel || ' ' || organization_id, 0));
  quota := app_private.sending_quota(organization_id, channel);
  granted := greatest(0, least(wanted, quota.per_day - quota.used));
  if granted > 0 then
    insert into app_private.sending_counts as c (organization_id, channel, hour, amount)
      values (reserve_sending.organization_id, reserve_sending.channel, date_trunc('hour', now()), granted)
      on conflict on constraint sending_counts_pkey do update set amount = c.amount + excluded.amount;
  end if;
  return granted;
end $$;
comment on function app_private.reserve_sending(uuid, text, int) is
  'Counts as much of what an organization wants to send as its quota has room for; returns how much.';

create function app_private.return_sending(organization_id uuid, channel text, amount int) returns void
language sql volatile as $$
  update app_private.sending_counts c set amount = greatest(0, c.amount - $3)
    where (c.organization_id, c.channel, c.hour) = (select l.organization_id, l.channel, l.hour
      from app_private.sending_counts l where l.organization_id = $1 and l.channel = $2 and l.amount >= $3
      order by l.hour desc limit 1)
$$;
comment on function app_private.return_sending(uuid, text, int) is 'Uncounts messages that were not sent.';

create function app_public.organizations_sending_quotas(o app_public.organizations) returns app_public.sending_quota[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not app_hidden.organization_can(o.id, 'org.member') then
    return null;
  end if;
  return array[app_private.sending_quota(o.id, 'MAIL'), app_private.sending_quota(o.id, 'SMS')];
end $$;
comment on function app_public.organizations_sending_quotas is
  'Limits and usage of messages to external recipients. Visible to members.';
grant execute on function app_public.organizations_sending_quotas to plat_user, plat_anonymous;

-- Sending to others requires a confirmed address.
create function app_hidden.require_confirmed_address() returns uuid
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer uuid := app_hidden.require_viewer();
begin
  if not exists (select from app_public.users u where u.id = viewer and u.email_verified_at is not null) then
    perform app_hidden.fail('FORBIDDEN',
      'Verify the email address of your account first: requestEmailVerification sends a code for verifyEmail.',
      '{"reason": "EMAIL_NOT_CONFIRMED"}');
  end if;
  return viewer;
end $$;
comment on function app_hidden.require_confirmed_address() is
  'The viewer; refuses accounts whose email address is not verified.';

create function app_private.owner_is_confirmed(organization_id uuid) returns boolean
language sql stable as $$
  select exists (select from app_public.organization_user_connections m
    join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
    where m.organization_id = $1 and m.role = 'OWNER' and u.email_verified_at is not null)
$$;
comment on function app_private.owner_is_confirmed(uuid) is
  'Whether an owner has confirmed the address of the account: without one, the organization sends nothing to people '
  'outside of it.';

-- Mail. It is counted before it is sent, and uncounted if the mail server refuses it.
create function app_private.mail_limits(organization_id uuid, recipient text)
returns table (key text, most int, within interval, is_outside boolean)
language sql stable as $$
  select t.name || ' ' || t.key, l.most, l.within, k.is_outside
  from (select encode(sha256(convert_to(lower(recipient), 'UTF8')), 'hex') as address) a
  cross join lateral (
    -- Of the team: of the organization, or of one that has a part in its projects.
    select u.email_verified_at is not null as is_confirmed, exists (
      select from app_public.organization_user_connections m where m.user_id = u.id
        and (m.organization_id = $1 or exists (select from app_public.project_organizations p
          where p.owner_id = $1 and p.organization_id = m.organization_id))) as is_team
    from app_hidden.user_identities i join app_public.users u on u.id = i.user_id where i.email = lower(recipient)
    union all select false, false
    limit 1) w
  cross join lateral (select not w.is_team as is_outside) k
  cross join lateral (values
    ('mail.unconfirmed_account', a.address, w.is_team and not w.is_confirmed),
    ('mail.recipient_and_organization', $1 || ' ' || a.address, not w.is_team),
    ('mail.recipient', a.address, not w.is_team)) t (name, key, holds)
  cross join lateral app_private.limit_of(t.name) l
  where t.holds
$$;
comment on function app_private.mail_limits(uuid, text) is
  'What limits mails of an organization to an address: none for a member who has confirmed it.';

create function app_private.reserve_mail(organization_id uuid, recipient text) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  wait int;
  is_outside boolean;
begin
  begin
    select coalesce(max(app_private.take_use(l.key, l.most, l.within)), 0), bool_or(l.is_outside) into wait, is_outside
      from app_private.mail_limits($1, $2) l;
    if wait = 0 and is_outside and app_private.reserve_sending($1, 'MAIL', 1) = 0 then
      wait := greatest(1, ceil(extract(epoch from (app_private.sending_quota($1, 'MAIL')).frees_at - now())));
    end if;
    if wait > 0 then
      raise 'There is no room: nothing is counted.';
    end if;
  exception when raise_exception then
    return wait;
  end;
  return 0;
end $$;
comment on function app_private.reserve_mail(uuid, text) is
  'Counts a mail of an organization that is about to be sent: 0, or the seconds to wait where there is no room for it. '
  'Two that are about to be sent at once both count. One whose process dies counts although it is sent again.';

create function app_private.return_mail(organization_id uuid, recipient text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.return_use(l.key) from app_private.mail_limits($1, $2) l;
  perform app_private.return_sending($1, 'MAIL', 1)
    where exists (select from app_private.mail_limits($1, $2) l where l.is_outside);
end $$;
comment on function app_private.return_mail(uuid, text) is
  'Uncounts a mail that the mail server refused.';

create function app_private.admit_invitation(organization_id uuid, recipient text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  quota app_public.sending_quota;
begin
  perform app_hidden.require_confirmed_address();
  perform app_private.rate_limit('invite.recipient', lower(recipient));
  if app_private.reserve_sending(organization_id, 'MAIL', 1) = 0 then
    quota := app_private.sending_quota(organization_id, 'MAIL');
    perform app_hidden.fail('RATE_LIMITED', format(
      'The organization has reached its limit of %s mails to external recipients in 24 hours; sendingQuotas shows '
        'when it can send again.', quota.per_day), jsonb_build_object('limit', quota.per_day, 'retryAfterSeconds',
      greatest(1, ceil(extract(epoch from quota.frees_at - now()))::int)));
  end if;
end $$;
comment on function app_private.admit_invitation(uuid, text) is
  'Refuses an invitation of somebody who has not confirmed their own address, or above the quota; counts it otherwise.';

create function app_private.postpone_job(task text, payload jsonb, seconds int) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  -- Not all at once when there is room again.
  select app_private.add_job($1, $2, now() + make_interval(secs => $3 + random() * 300))
$$;
comment on function app_private.postpone_job(text, jsonb, int) is 'Enqueues a job once more, for later.';
grant execute on function app_private.reserve_mail, app_private.return_mail, app_private.postpone_job to plat_worker;

-- Addresses that an organization may write to besides those of its leads, buyers and members.
create function app_private.agreed_recipient(organization_id uuid, email text) returns uuid
language sql stable as $$
  select r.id from app_private.consent_requests r
  where r.organization_id = $1 and r.email = lower($2) and r.purpose in ('RECIPIENT', 'MAILBOX')
    and r.confirmed_at is not null
  order by r.purpose desc limit 1
$$;
comment on function app_private.agreed_recipient(uuid, text) is
  'The request of consent by which the owner of an address agreed to mails of an organization, if they did.';

create function app_private.is_known_recipient(organization_id uuid, email text) returns boolean
language sql stable as $$
  select exists (select from app_public.leads l where l.organization_id = $1 and l.email = lower($2)
      and l.deleted_at is null)
    -- By project, as the index has it.
    or exists (select from app_public.projects p join app_public.buyers b on b.project_id = p.id
      where p.organization_id = $1 and b.email = lower($2) and b.deleted_at is null)
    or exists (select from app_hidden.user_identities i
      join app_public.organization_user_connections m on m.user_id = i.user_id and m.organization_id = $1
      where i.email = lower($2))
    or app_private.agreed_recipient($1, $2) is not null
$$;
comment on function app_private.is_known_recipient(uuid, text) is
  'Whether an organization may write to an address: of a lead, buyer or member of it, or of somebody who agreed.';

create function app_public.request_mail_consent(organization_id uuid, email app_public.email_address) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  host app_public.organizations;
begin
  perform app_hidden.require_organization(organization_id, 'org.admin');
  perform app_hidden.require_confirmed_address();
  if email is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'email is required.', '{"field": "email"}');
  end if;
  select o.* into host from app_public.organizations o where o.id = request_mail_consent.organization_id;
  perform app_private.request_consent(host.id, email, case when host.email = lower(request_mail_consent.email)
    then 'MAILBOX' else 'RECIPIENT' end);
  return true;
end $$;
comment on function app_public.request_mail_consent is
  E'@arg organization_id Id of the organization that asks for consent.\n@arg email Email address of the '
  'recipient.\n\n'
  'Asks the owner of an address by mail for consent to write to it or, for the organization''s own address for '
  'inquiries, to forward inquiries there; at most once a day. Workflows write only to leads, buyers, members and '
  'addresses that consented. Always returns true. Requires the role OWNER or ADMIN.';
grant execute on function app_public.request_mail_consent to plat_user, plat_anonymous;

create function app_private.tg_organizations__ask_mailbox() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not app_private.is_mailbox(new.id, new.email) then
    perform app_private.request_consent(new.id, new.email, 'MAILBOX');
  end if;
  return null;
end $$;
create trigger _500_ask_mailbox after insert or update of email on app_public.organizations for each row
  when (new.email is not null and new.deleted_at is null) execute function app_private.tg_organizations__ask_mailbox();

create function app_private.is_mailbox(organization_id uuid, email text) returns boolean
language sql stable as $$
  select exists (select from app_private.consent_requests r where r.organization_id = $1 and r.email = lower($2)
      and r.purpose = 'MAILBOX' and r.confirmed_at is not null)
    or exists (select from app_hidden.user_identities i
      join app_public.users u on u.id = i.user_id and u.email_verified_at is not null
      join app_public.organization_user_connections m on m.user_id = i.user_id and m.organization_id = $1
      where i.email = lower($2))
$$;
comment on function app_private.is_mailbox(uuid, text) is
  'Whether enquiries may be forwarded to an address: its owner agreed, or is a member who has confirmed it.';

revoke execute on function app_hidden.require_confirmed_address from plat_user, plat_anonymous;
