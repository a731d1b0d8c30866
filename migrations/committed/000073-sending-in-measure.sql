--! Previous: sha1:bad0e68c00eadf35d964e34c0a953080d705c80d
--! Hash: sha1:5a6eb3117c7a07277f323a9679cd8c091652d955
--! Message: sending-in-measure

-- How much organizations may send to people outside of them.

create table app_private.sending_tiers (
  name text primary key,
  from_age interval not null,
  takes_payments boolean not null default false,
  mails int not null constraint sending_tiers_mails check (mails > 0),
  messages int not null constraint sending_tiers_messages check (messages > 0),
  description text not null
);
alter table app_private.sending_tiers enable row level security;

create table app_private.sending_changes (
  organization_id uuid primary key references app_public.organizations on delete cascade,
  mails int constraint sending_changes_mails check (mails >= 0),
  messages int constraint sending_changes_messages check (messages >= 0),
  reason text not null,
  inserted_at timestamptz not null default now()
);
alter table app_private.sending_changes enable row level security;

create table app_private.sending_counts (
  organization_id uuid not null references app_public.organizations on delete cascade,
  channel text not null constraint sending_counts_channel check (channel in ('MAIL', 'SMS')),
  hour timestamptz not null,
  amount int not null,
  primary key (organization_id, channel, hour)
);
create index sending_counts_hour on app_private.sending_counts (hour);
alter table app_private.sending_counts enable row level security;

select app_private.create_enum('sending_channel', 'What is sent.', array[
  ['MAIL', 'E-mail.'], ['SMS', 'Text messages.']]);

create type app_public.sending_quota as (
  channel app_public.sending_channel, tier text, per_day int, used int, frees_at timestamptz
);

-- Addresses for enquiries that are in use are not asked again.
insert into app_private.consent_requests (organization_id, email, purpose, confirmed_at)
  select o.id, lower(o.email), 'MAILBOX', now() from app_public.organizations o
  where o.email is not null and o.deleted_at is null
  on conflict do nothing;
