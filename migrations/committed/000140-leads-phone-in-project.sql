--! Previous: sha1:967b8e225fd760334f7df170b7086855ef66398b
--! Hash: sha1:964405fc223662bfa19ae91f6f4a762be7ffa6ae
--! Message: leads-phone-in-project

-- Leads with the same phone number are looked for within a project. By the index of phone numbers of all organizations,
-- a number that many leads have, such as a placeholder, made each further lead read all of them.
-- Changes of leads wait while it is made: some seconds for a million of them.
-- squawk-ignore require-concurrent-index-creation
create index leads_phone_in_project on app_public.leads ((project_id::text || ' ' || phone::text))
  where deleted_at is null and phone is not null;
