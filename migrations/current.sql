-- The language of an organization: of mails to people whose own is not known.

alter table app_public.organizations add column language app_public.language_code not null default 'en';
