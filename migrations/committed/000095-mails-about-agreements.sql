--! Previous: sha1:aa550ddb3d90381332428f88ce3e3696889978f3
--! Hash: sha1:1d9df822d97745907d9ada12c6a5ac4c7a4b8c33
--! Message: mails-about-agreements

-- Mails about agreements: who wants those about the rest gets them too, until they switch them off.

alter type app_public.notification_settings add attribute agreement boolean;
alter table app_public.organization_user_connections alter column notifications
  set default row(true, true, true, true, true, true, true, true, true, true, true, true);
-- It is no change that a member has made: no version, no event.
alter table app_public.organization_user_connections disable trigger user;
update app_public.organization_user_connections m set notifications.agreement = true;
alter table app_public.organization_user_connections enable trigger user;
