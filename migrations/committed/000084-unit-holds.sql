--! Previous: sha1:639e9bffad9bd6587bed0a6bc80214b4184fe192
--! Hash: sha1:97663fbdd0142f815a69bcea6fd6ae772b08c057
--! Message: unit-holds

-- Holds: short claims of units and lots by whoever sells, and how long and how many of them a project allows.

select app_private.create_enum('unit_hold_status', 'What became of a hold.', array[
  ['ACTIVE', 'The unit or lot is kept.'], ['CONVERTED', 'It became a reservation, a purchase or an accepted offer.'],
  ['EXPIRED', 'Its time ran out.'], ['RELEASED', 'It was given back.']]);

alter table app_public.projects
  add column hold_expiration int not null default 24
    constraint projects_hold_expiration_range check (hold_expiration between 1 and 720),
  add column hold_expiration_limit int not null default 72
    constraint projects_hold_expiration_limit_range check (hold_expiration_limit between 1 and 720)
    constraint projects_hold_expiration_within check (hold_expiration <= hold_expiration_limit),
  add column holds_per_person int not null default 5
    constraint projects_holds_per_person_range check (holds_per_person between 0 and 10000),
  add column holds_per_organization int not null default 20
    constraint projects_holds_per_organization_range check (holds_per_organization between 0 and 10000);

create table app_public.unit_holds (
  like app_private.project_record including all,
  unit_id uuid,
  lot_id uuid,
  lead_id uuid,
  user_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  holder_organization_id uuid references app_public.organizations on delete set null,
  assignee_id uuid references app_public.users on delete set null,
  status app_public.unit_hold_status not null default 'ACTIVE',
  status_changed_at timestamptz not null default now(),
  expiration int not null constraint unit_holds_expiration_range check (expiration between 1 and 720),
  held_since timestamptz not null default now(),
  expires_at timestamptz not null,
  extended_count int not null default 0,
  notes app_public.long_text,
  constraint unit_holds_one_thing check (num_nonnulls(unit_id, lot_id) = 1),
  constraint unit_holds_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete cascade,
  constraint unit_holds_lot_id_fkey foreign key (lot_id, project_id)
    references app_public.lots (id, project_id) on delete cascade,
  constraint unit_holds_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete set null (lead_id),
  constraint unit_holds_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict
);
create index unit_holds_unit on app_public.unit_holds (unit_id, inserted_at desc, id desc) where deleted_at is null;
create index unit_holds_lot on app_public.unit_holds (lot_id, inserted_at desc, id desc) where deleted_at is null;
create index unit_holds_lead on app_public.unit_holds (lead_id, inserted_at desc, id desc) where deleted_at is null;
create index unit_holds_user on app_public.unit_holds (user_id, project_id);
create index unit_holds_holder_organization on app_public.unit_holds (holder_organization_id, project_id);
create index unit_holds_organization_status
  on app_public.unit_holds (organization_id, status, inserted_at desc, id desc) where deleted_at is null;
create index unit_holds_project_status on app_public.unit_holds (project_id, status, inserted_at desc, id desc)
  where deleted_at is null;
create index unit_holds_assignee on app_public.unit_holds (assignee_id, project_id, inserted_at desc, id desc)
  where deleted_at is null;
create index unit_holds_organization on app_public.unit_holds (organization_id, inserted_at desc, id desc)
  where deleted_at is null;
create index unit_holds_project on app_public.unit_holds (project_id, inserted_at desc, id desc)
  where deleted_at is null;
alter table app_public.unit_holds enable row level security;

create type app_public.delete_unit_hold_payload as (id uuid, deleted boolean, unit_id uuid, lot_id uuid);
