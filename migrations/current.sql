-- Mails about agreements: who wants those about the rest gets them too, until they switch them off.

alter type app_public.notification_settings add attribute agreement boolean;
alter table app_public.organization_user_connections alter column notifications
  set default row(true, true, true, true, true, true, true, true, true, true, true, true);
-- It is no change that a member has made: no version, no event.
alter table app_public.organization_user_connections disable trigger user;
update app_public.organization_user_connections m set notifications.agreement = true;
alter table app_public.organization_user_connections enable trigger user;
