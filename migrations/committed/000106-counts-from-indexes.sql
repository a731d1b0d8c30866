--! Previous: sha1:3b5d58c7c3807b0ae9e067f2ee2fd796461c46db
--! Hash: sha1:86d342f88f902307ea7e53bc9421534c0b3c72c3
--! Message: counts-from-indexes

-- What is counted under row security is read from the index alone: it holds what the policy asks about.

-- squawk-ignore require-concurrent-index-creation
create index leads_organization_by_status on app_public.leads (organization_id, status, registered_at desc, id desc)
  include (project_id, assignee_id) where deleted_at is null;
-- squawk-ignore require-concurrent-index-creation
create index leads_project_by_status on app_public.leads (project_id, status, registered_at desc, id desc)
  include (organization_id, assignee_id) where deleted_at is null;
-- squawk-ignore require-concurrent-index-deletion
drop index app_public.leads_organization_status;
-- squawk-ignore require-concurrent-index-deletion
drop index app_public.leads_project_status;
