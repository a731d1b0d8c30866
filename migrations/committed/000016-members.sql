--! Previous: sha1:4765b7841635cdf732c4ff05d685afe8c95655d0
--! Hash: sha1:6067fabea29d397e6a4f0c8029a474c7e4bed6c7
--! Message: members

-- What the removal of a member returns.

create type app_public.remove_organization_member_payload as (
  organization app_public.organizations,
  "user" app_public.users,
  removed_projects app_public.projects[],
  reassigned_leads int
);
