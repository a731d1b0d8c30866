--! Previous: sha1:216746bdbf8ac1ddf4104150f563fdb6dd97c0d6
--! Hash: sha1:1157b2efb82db62ffad40e2bd920556ad5345676
--! Message: members

-- What the removal of a member returns.

create type app_public.remove_organization_member_payload as (
  organization app_public.organizations,
  "user" app_public.users,
  removed_projects app_public.projects[],
  reassigned_leads int
);
