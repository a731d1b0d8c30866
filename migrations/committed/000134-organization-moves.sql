--! Previous: sha1:1900d0cca1345dfe9a42a67a10519e4d93f6a56a
--! Hash: sha1:52978970997ecb87911cf8260304575f09793805
--! Message: organization-moves

-- Organizations that move, or have moved, to another installation: no reference, since the entry outlives the rows.
create table if not exists app_private.organization_moves (
  organization_id uuid primary key,
  slug text not null,
  url text not null,
  status text not null constraint organization_moves_status check (status in ('PAUSED', 'SWITCHING', 'MOVED')),
  began_at timestamptz not null default now(),
  ended_at timestamptz
);
alter table app_private.organization_moves enable row level security;

alter table app_private.event_counters add column if not exists is_closed boolean not null default false;

insert into app_private.error_codes (code, description) values
  ('ORGANIZATION_MOVED', 'The organization is on another server, whose address is in url.')
  on conflict do nothing;
