--! Previous: sha1:766ac7260d6c537c374cfe5817f1d2b5ddf84641
--! Hash: sha1:b6fab9ea3a13eb57817c25bfc7b3b4679298e4d9
--! Message: required-second-factors

-- Organizations that require a second factor of their members.

alter table app_public.organizations
  add column second_factor_required_from timestamptz,
  add column second_factor_grace_days int not null default 7
    constraint organizations_second_factor_grace check (second_factor_grace_days >= 0);

-- Kept with the membership, since every permission is looked up there.
alter table app_public.organization_user_connections
  add column second_factor_due_at timestamptz,
  add column second_factor_reset_at timestamptz;
-- squawk-ignore require-concurrent-index-creation
create index organization_user_connections_second_factor_due on app_public.organization_user_connections (user_id)
  where second_factor_due_at is not null;
