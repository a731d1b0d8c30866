--! Previous: sha1:e46fd9249b63fa4835d42f0a2775c966e0165706
--! Hash: sha1:4ab431b4ac9fd1facac3e54766ffc5edab008b19
--! Message: claims

-- Holds, reservations and purchases that claim a unit or lot.

create table app_hidden.claims (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  unit_id uuid,
  lot_id uuid,
  kind text not null constraint claims_kind check (kind in ('HOLD', 'RESERVATION', 'PURCHASE')),
  subject_type text not null,
  subject_id uuid not null,
  unit_price app_public.money,
  lot_price app_public.money,
  claimed_at timestamptz not null default now(),
  claimed_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  expires_at timestamptz,
  released_at timestamptz,
  release_reason text,
  constraint claims_something check (unit_id is not null or lot_id is not null),
  constraint claims_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint claims_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete set null (unit_id),
  constraint claims_lot_id_fkey foreign key (lot_id, project_id)
    references app_public.lots (id, project_id) on delete set null (lot_id)
);
create unique index claims_unit on app_hidden.claims (unit_id) where released_at is null and unit_id is not null;
create unique index claims_lot on app_hidden.claims (lot_id) where released_at is null and lot_id is not null;
create index claims_subject on app_hidden.claims (subject_id) where released_at is null;
create index claims_expiring on app_hidden.claims (expires_at) where released_at is null and expires_at is not null;
create index claims_unit_history on app_hidden.claims (unit_id, id);
create index claims_lot_history on app_hidden.claims (lot_id, id);
create index claims_project on app_hidden.claims (project_id);
create index claims_claimed_by on app_hidden.claims (claimed_by_id);
alter table app_hidden.claims enable row level security;
