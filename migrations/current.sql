

-- Members whose time to get a second factor is nearly over are looked up every hour.

-- squawk-ignore require-concurrent-index-creation
create index organization_user_connections_second_factor_deadline
  on app_public.organization_user_connections (second_factor_due_at) where second_factor_due_at is not null;
