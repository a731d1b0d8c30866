--! Previous: sha1:0be24b03226b6ed3a736c02cf06e340e32d97b35
--! Hash: sha1:acb675685223b486a733f1c86b7e7ba9b6473cf4
--! Message: sandboxes

-- Sandbox organizations: for trying out programs. Their owner can turn their clock forward.
alter table app_public.organizations
  add column if not exists is_sandbox boolean not null default false,
  add column if not exists clock_ahead_seconds integer not null default 0;
alter table app_public.organizations drop constraint if exists organizations_clock_of_sandboxes;
alter table app_public.organizations add constraint organizations_clock_of_sandboxes
  check (clock_ahead_seconds = 0 or is_sandbox and clock_ahead_seconds > 0) not valid;
