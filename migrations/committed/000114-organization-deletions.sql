--! Previous: sha1:481d3de7194d05d2f631ef0818923e11a3a8a54f
--! Hash: sha1:10bc186e26bac8061997b7945cadbb7e8b26fabe
--! Message: organization-deletions

-- Deleting an organization: asked for, final after a while, then done in batches; and what the law keeps of it.

select app_private.create_enum('organization_deletion_status', 'How far the deletion of an organization is.', array[
  ['SCHEDULED', 'Until finalAt everything goes on as before, and an owner can cancel it.'],
  ['RUNNING', 'Its records are being removed; nobody can cancel it any more.'],
  ['COMPLETED', 'Nothing is left but what the law keeps, and the certificate is there.'],
  ['CANCELLED', 'It does not take place.']]);

create table app_public.organization_deletions (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  status app_public.organization_deletion_status not null default 'SCHEDULED',
  reason app_public.long_text,
  final_at timestamptz not null,
  expected jsonb not null default '[]',
  removed jsonb not null default '[]',
  kept jsonb not null default '[]',
  kept_until date,
  requested_by_id uuid references app_public.users on delete set null,
  cancelled_by_id uuid references app_public.users on delete set null,
  cancel_reason app_public.long_text,
  cancelled_at timestamptz,
  started_at timestamptz,
  completed_at timestamptz,
  checksum text,
  filename text not null default 'organization-deletion.pdf',
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz
);
create index organization_deletions_organization on app_public.organization_deletions (organization_id, id desc);
create unique index organization_deletions_one on app_public.organization_deletions (organization_id)
  where status in ('SCHEDULED', 'RUNNING');
create index organization_deletions_open on app_public.organization_deletions (final_at)
  where status in ('SCHEDULED', 'RUNNING');
create index organization_deletions_requested_by on app_public.organization_deletions (requested_by_id);
create index organization_deletions_cancelled_by on app_public.organization_deletions (cancelled_by_id);
create index organization_deletions_checksum on app_public.organization_deletions (checksum);
alter table app_public.organization_deletions enable row level security;

-- Who is told of it, also when nobody is a member any more.
create table app_private.deletion_readers (
  deletion_id uuid not null references app_public.organization_deletions on delete cascade,
  email text not null,
  organization text not null,
  primary key (deletion_id, email)
);
alter table app_private.deletion_readers enable row level security;

create table app_private.retained_records (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  relation text not null,
  record_id uuid not null,
  data jsonb not null,
  checksum text,
  kept_until date not null,
  constraint retained_records_once unique (relation, record_id)
);
create index retained_records_organization on app_private.retained_records (organization_id);
create index retained_records_checksum on app_private.retained_records (checksum) where checksum is not null;
create index retained_records_kept_until on app_private.retained_records (kept_until);
alter table app_private.retained_records enable row level security;
