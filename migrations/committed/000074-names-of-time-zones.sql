--! Previous: sha1:5a6eb3117c7a07277f323a9679cd8c091652d955
--! Hash: sha1:1ca6b99cab8d77a5ec3f4777e6a40ed3ed2e2090
--! Message: names-of-time-zones

-- PostgreSQL reads "UTC+5" as POSIX does, five hours behind, and "PST" as an abbreviation: neither is a name of the
-- IANA database. Rows that hold one keep it until somebody sets another.
create function app_hidden.names_time_zone(name text) returns boolean
language plpgsql immutable strict parallel safe as $$
begin
  if name !~ '^(UTC|GMT|Etc/GMT[+-]\d{1,2}|[A-Z][A-Za-z_]+(/[A-Z][A-Za-z_-]*){1,2})$' then return false; end if;
  perform timezone(name, timestamptz 'epoch');
  return true;
exception when invalid_parameter_value then
  return false;
end $$;
alter domain app_public.time_zone drop constraint time_zone_known;
-- squawk-ignore ban-alter-domain-with-add-constraint
alter domain app_public.time_zone add constraint time_zone_known check (app_hidden.names_time_zone(value)) not valid;
drop function app_hidden.is_time_zone(text);
