--! Previous: sha1:e45caff602ea20de00937b0570f16cee773b693e
--! Hash: sha1:6a5b942cff2096a06891ec7d77edc61f43c90bcb
--! Message: payments-accounts

-- Accounts of organizations at the payment processor and their representatives.

select app_private.create_enum('payments_account_status', 'Whether an organization can take payments.', array[
  ['NOT_STARTED', 'Nobody has named a representative yet.'], ['ONBOARDING', 'The processor wants to know more.'],
  ['PENDING_VERIFICATION', 'The processor looks at what it was told.'], ['ENABLED', 'It takes payments.'],
  ['RESTRICTED', 'The processor takes no more payments until it knows more.'],
  ['DISABLED', 'The processor closed the account.']]);
select app_private.create_enum('representative_kind', 'What a representative is to the organization.', array[
  ['AUTHORIZED_REPRESENTATIVE', 'May act for it; each organization has one.'],
  ['BENEFICIAL_OWNER', 'Owns 25 percent of it or more.'], ['DIRECTOR', 'Directs it.'], ['EXECUTIVE', 'Manages it.']]);
select app_private.create_enum('representative_status', 'Whether the processor knows a representative.', array[
  ['UNVERIFIED', 'Not looked at yet.'], ['PENDING', 'The processor looks at it.'], ['VERIFIED', 'Verified.'],
  ['REQUIREMENTS_DUE', 'The processor wants more; see requirements.'],
  ['REJECTED', 'The processor could not verify them.']]);

create table app_private.payments_accounts (
  organization_id uuid primary key references app_public.organizations on delete cascade,
  processor_id text not null unique,
  status app_public.payments_account_status not null default 'ONBOARDING',
  requirements text[] not null default '{}',
  updated_at timestamptz not null default now()
);
alter table app_private.payments_accounts enable row level security;

create table app_public.organization_payments_representatives (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  kind app_public.representative_kind not null,
  first_name app_public.short_text not null,
  last_name app_public.short_text not null,
  email app_public.email_address not null check (email = lower(email)),
  phone app_public.phone_number constraint representatives_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  dob date,
  title app_public.short_text,
  ownership_percent numeric constraint representatives_ownership_percent_range
    check (ownership_percent > 0 and ownership_percent <= 100 and scale(ownership_percent) <= 4),
  address app_public.address,
  status app_public.representative_status not null default 'UNVERIFIED',
  requirements text[] not null default '{}',
  processor_person_id text unique,
  verified_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint representatives_owner_of_a_quarter check (kind <> 'BENEFICIAL_OWNER'
    or coalesce(ownership_percent, 0) >= 25)
);
create index organization_payments_representatives_organization
  on app_public.organization_payments_representatives (organization_id, id);
create unique index representatives_one_authorized on app_public.organization_payments_representatives (organization_id)
  where kind = 'AUTHORIZED_REPRESENTATIVE' and status <> 'REJECTED';
create index representatives_unknown_to_the_processor on app_public.organization_payments_representatives (updated_at)
  where processor_person_id is null;
alter table app_public.organization_payments_representatives enable row level security;

create domain app_public.told_representative as text;
