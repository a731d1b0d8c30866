--! Previous: sha1:5758009962ed1706c3572ffc6a04cb8eb9707ced
--! Hash: sha1:dad53623d5f4c805dafbbab3f98b1b5e5486bc7c
--! Message: second-factor-reminders

-- Members whose time to get a second factor is nearly over are looked up every hour.

-- squawk-ignore require-concurrent-index-creation
create index organization_user_connections_second_factor_deadline
  on app_public.organization_user_connections (second_factor_due_at) where second_factor_due_at is not null;
