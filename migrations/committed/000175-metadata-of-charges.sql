--! Previous: sha1:a8b9d7ba41d4974f443f39d3c64153a72bfa2e77
--! Hash: sha1:3fa61ccafab05cf65b7556872c71d0fe5f32c17d
--! Message: metadata-of-charges

-- What the organization's own programs note about a charge, such as its number in the books: the one thing about a charge that is
-- written by hand. Where it stands, and how much it is, stays what the processor says.

create policy bookkeepers on app_public.processor_charges for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('finance.write')))
    or project_id = any (array(select app_hidden.viewer_projects('finance.write'))));
grant update (metadata) on app_public.processor_charges to plat_user;
create trigger _060_refuse_archived_metadata before update of metadata on app_public.processor_charges
  for each row execute function app_private.tg__refuse_archived();
