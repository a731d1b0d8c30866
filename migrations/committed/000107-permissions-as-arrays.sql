--! Previous: sha1:86d342f88f902307ea7e53bc9421534c0b3c72c3
--! Hash: sha1:13be486afe99e5af2fae575810e1133bfe5fdf11
--! Message: permissions-as-arrays

-- The sets of permissions are arrays now. What stands in their former form goes with them, and is made again.

do $$
declare
  former regprocedure;
begin
  for former in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'app_hidden'::regnamespace and p.proretset
      and p.proname in ('viewer_organizations', 'viewer_projects', 'viewer_own_projects', 'organizations_where',
        'projects_where')
  loop
    execute format('drop function %s cascade', former);
  end loop;
end $$;
