--! Previous: sha1:6ba81ba07027bd931242cdc737672183f63ac618
--! Hash: sha1:987914ad0ea01006f006d2c46149f5ec0eedb40f
--! Message: erasures-and-retention

-- Erasure of the data of a person: what was removed, what stays, and the certificate that says so.

select app_private.create_enum('erasure_status', 'How far an erasure is.', array[
  ['RUNNING', 'The person''s records are erased; other texts that name them, and their files, are being gone through.'],
  ['COMPLETED', 'The certificate is there.']]);

create table app_public.erasures (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  status app_public.erasure_status not null default 'RUNNING',
  reason app_public.long_text,
  lead_ids uuid[] not null default '{}',
  buyer_ids uuid[] not null default '{}',
  agent_id uuid,
  removed jsonb not null default '[]',
  kept jsonb not null default '[]',
  kept_until date,
  requested_by_id uuid references app_public.users on delete set null,
  completed_at timestamptz,
  checksum text,
  filename text not null default 'erasure.pdf',
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz
);
create index erasures_organization on app_public.erasures (organization_id, id desc);
create index erasures_requested_by on app_public.erasures (requested_by_id);
create index erasures_checksum on app_public.erasures (checksum);
create index erasures_kept on app_public.erasures (kept_until) where kept_until is not null;
alter table app_public.erasures enable row level security;

create table app_private.erasure_texts (
  erasure_id uuid primary key references app_public.erasures on delete cascade,
  texts text[] not null
);
alter table app_private.erasure_texts enable row level security;

alter table app_public.events add column erased_at timestamptz;

alter table app_public.organizations
  add column contract_retention_years int not null default 10
    constraint organizations_contract_retention check (contract_retention_years between 1 and 30);

-- How long an organization keeps what is over.
alter table app_public.organizations
  add column execution_retention_days int not null default 730
    constraint organizations_execution_retention check (execution_retention_days between 30 and 36500),
  add column message_retention_days int not null default 730
    constraint organizations_message_retention check (message_retention_days between 30 and 36500),
  add column event_retention_days int not null default 2555
    constraint organizations_event_retention check (event_retention_days between 365 and 36500);

create type app_public.retention_settings as (
  contract_years int,
  execution_days int,
  message_days int,
  event_days int
);

-- Up to which event of an organization the content was emptied.
create table app_private.event_retention (
  organization_id uuid primary key references app_public.organizations on delete cascade,
  sequence bigint not null default 0
);
alter table app_private.event_retention enable row level security;
