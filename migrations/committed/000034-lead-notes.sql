--! Previous: sha1:a15b1e3359b45c322dd59df88e03ecf13b5604c4
--! Hash: sha1:27d292c82f9103c27e7c61752af1f5c3df44d1ca
--! Message: lead-notes

-- Notes on leads and buyers.

create table app_public.lead_notes (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  lead_id uuid,
  text app_public.long_text not null,
  pinned boolean not null default false,
  visibility app_public.note_visibility not null default 'TEAM',
  author_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  edited_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz,
  buyer_id uuid,
  constraint lead_notes_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete cascade,
  constraint lead_notes_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint lead_notes_one_person check (num_nonnulls(lead_id, buyer_id) = 1),
  constraint lead_notes_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete cascade
);
create index lead_notes_lead on app_public.lead_notes (lead_id, pinned desc, id desc) where deleted_at is null;
create index lead_notes_author on app_public.lead_notes (author_id);
create index lead_notes_buyer on app_public.lead_notes (buyer_id, pinned desc, id desc) where deleted_at is null;
create index lead_notes_project on app_public.lead_notes (project_id, id desc) where deleted_at is null;
alter table app_public.lead_notes enable row level security;
