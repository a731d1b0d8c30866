--! Previous: sha1:38560f35d030fe470088e34ef2545749d7411f86
--! Hash: sha1:45d218d7bfae4954308ac0dad2f1888f6371f7b0
--! Message: words-of-enumerations

update app_public.step_run_status_values set description = 'Omitted, since the step did not apply.'
  where value = 'SKIPPED';

-- The usual spelling.
do $$
declare
  enumeration regclass;
begin
  for enumeration in select c.oid from pg_class c where c.relnamespace = 'app_public'::regnamespace and c.relkind = 'r'
    and c.relname like '%\_values' loop
    execute format('update %s set description = replace(replace(description, ''e-mail'', ''email''), ''E-mail'', '
      '''Email'') where description ~* ''e-mail''', enumeration);
  end loop;
end $$;
