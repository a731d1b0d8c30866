--! Previous: sha1:1eaaf47cd5a77ba460574e572dd3be16caf0e054
--! Hash: sha1:967b8e225fd760334f7df170b7086855ef66398b
--! Message: event-archives

-- Archives of old events: their content as lines of JSON in the file store, before the rows are emptied. A row is
-- written before its object is stored; recorded_at is null until the object has taken the place of the content, and
-- again once another object has replaced it.
create table if not exists app_private.event_archives (
  checksum text primary key,
  organization_id uuid not null references app_public.organizations on delete cascade,
  from_sequence bigint not null,
  to_sequence bigint not null,
  amount int not null,
  filesize int not null,
  inserted_at timestamptz not null default now(),
  recorded_at timestamptz,
  constraint event_archives_span check (from_sequence > 0 and to_sequence >= from_sequence)
);
create unique index if not exists event_archives_recorded on app_private.event_archives
  (organization_id, from_sequence) where recorded_at is not null;
create index if not exists event_archives_organization on app_private.event_archives (organization_id);
alter table app_private.event_archives enable row level security;

-- Values of archived events that are to be erased from their objects.
create table if not exists app_private.archived_event_erasures (
  id uuid primary key default uuidv7(),
  event_id uuid not null,
  organization_id uuid not null references app_public.organizations on delete cascade,
  sequence bigint not null,
  members text[] not null
);
create index if not exists archived_event_erasures_event on app_private.archived_event_erasures (event_id);
create index if not exists archived_event_erasures_organization on app_private.archived_event_erasures
  (organization_id, sequence);
alter table app_private.archived_event_erasures enable row level security;

alter table app_public.events add column if not exists archived_at timestamptz;

-- Organizations that have chosen how long the content of their events is kept asked for it to be erased.
do $$
begin
  if not exists (select from pg_attribute a where a.attrelid = 'app_public.organizations'::regclass
    and a.attname = 'archives_events') then
    alter table app_public.organizations add column archives_events boolean not null default true;
    -- Without triggers: it is no change of a record.
    alter table app_public.organizations alter column archives_events type boolean
      using event_retention_days = 2555;
    alter type app_public.retention_settings add attribute archives_events boolean;
  end if;
end $$;
