--! Previous: sha1:5aab09d1665deae1373ec4ee1d667b394847014c
--! Hash: sha1:81e3d7fbafb7133563c2487177ccc426ee6345cb
--! Message: lead-merges

-- Merged leads can be separated again: a lead names the one that it was merged into, and what the merge changed is
-- kept.

alter table app_public.leads add column merged_into_id uuid;
alter table app_public.leads add constraint leads_merged_into_id_fkey foreign key (merged_into_id, project_id)
  references app_public.leads (id, project_id) on delete set null (merged_into_id) not valid;

-- Merges of earlier versions have none of these, and cannot be undone.
alter table app_private.merged_leads
  add column direct_into_id uuid,
  add column merged_at timestamptz,
  add column filled text[],
  add column new_tags int[],
  add column facts jsonb,
  add column moved jsonb;
