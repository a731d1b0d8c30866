--! Previous: sha1:034dcbb4086c0185612399dd84e198bf5677fef0
--! Hash: sha1:aba67683f777f253043b530df28dea8794d77cf4
--! Message: members

-- What the removal of a member returns.

create type app_public.remove_organization_member_payload as (
  organization app_public.organizations,
  "user" app_public.users,
  removed_projects app_public.projects[],
  reassigned_leads int
);
