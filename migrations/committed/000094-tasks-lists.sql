--! Previous: sha1:e237a81326ec82dfcb3e7b8e7606f2214f60456d
--! Hash: sha1:aa550ddb3d90381332428f88ce3e3696889978f3
--! Message: tasks-lists

-- Tasks across the portfolio: by organization and by project, each with a status, and those that are about nobody.

-- squawk-ignore require-concurrent-index-creation
create index tasks_organization_status on app_public.tasks (organization_id, status, due_at, id)
  where deleted_at is null;
-- squawk-ignore require-concurrent-index-creation
create index tasks_project_status on app_public.tasks (project_id, status, due_at, id) where deleted_at is null;
-- squawk-ignore require-concurrent-index-creation
create index tasks_organization_alone on app_public.tasks (organization_id, due_at, id)
  where deleted_at is null and lead_id is null and buyer_id is null;
