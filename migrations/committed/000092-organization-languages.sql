--! Previous: sha1:6cfc3cf6f6ba994cf0e1a0c86cf96a8c700ac19a
--! Hash: sha1:e0f9045804a731eeb4c8903754f23554bd3f08dd
--! Message: organization-languages

-- The language of an organization: of mails to people whose own is not known.

alter table app_public.organizations add column language app_public.language_code not null default 'en';
