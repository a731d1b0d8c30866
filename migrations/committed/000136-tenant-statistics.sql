--! Previous: sha1:8bd8b671f976f3655a663fa7651edcee223df56b
--! Hash: sha1:9ab92e5edb54ab1dc7d9348865f4d227c8a533f8
--! Message: tenant-statistics

-- The planner expects thirty organizations in each table that has their column: records.sql says why. A number that is
-- declared counts from the next analysis on.
do $$
declare
  one record;
begin
  for one in
    select c.oid::regclass as relation, c.reltuples > 0 as has_statistics
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'r' and a.attname = 'organization_id' and not a.attisdropped and a.attoptions is null
      and c.relnamespace in ('app_public'::regnamespace, 'app_private'::regnamespace, 'app_partitions'::regnamespace)
    order by c.oid::regclass::text
  loop
    execute format('alter table %s alter column organization_id set (n_distinct = 30)', one.relation);
    if one.has_statistics then
      execute format('analyze %s (organization_id)', one.relation);
    end if;
  end loop;
end $$;
