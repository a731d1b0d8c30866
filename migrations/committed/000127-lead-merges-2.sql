--! Previous: sha1:81e3d7fbafb7133563c2487177ccc426ee6345cb
--! Hash: sha1:0be24b03226b6ed3a736c02cf06e340e32d97b35
--! Message: lead-merges-2

-- The reference of merged leads, in a transaction of its own so that leads stay readable.

alter table app_public.leads validate constraint leads_merged_into_id_fkey;
-- squawk-ignore require-concurrent-index-creation
create index leads_merged_into on app_public.leads (merged_into_id) where merged_into_id is not null;
