--! Previous: sha1:b97e9a6ba042a737f29dc00df77ba58aeb71f6c6
--! Hash: sha1:e3ba1a69c11583edd4e1f83c2fd868f935ae37dd
--! Message: metadata-of-charges

-- What the organization's own programs note about a charge, such as its number in the books: the one thing about a charge that is
-- written by hand. Where it stands, and how much it is, stays what the processor says.

create policy bookkeepers on app_public.processor_charges for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('finance.write')))
    or project_id = any (array(select app_hidden.viewer_projects('finance.write'))));
grant update (metadata) on app_public.processor_charges to plat_user;
create trigger _060_refuse_archived_metadata before update of metadata on app_public.processor_charges
  for each row execute function app_private.tg__refuse_archived();
