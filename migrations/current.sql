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
