-- The permission that reading all records of a kind requires, derived from the policies of their tables: events are
-- only sent, and workflows only read and change records, for users who have it. Null if the policy depends on a parent
-- record: then only readers of the audit trail.

update app_hidden.record_types r set read_permissions = p.permissions
from (
  select c.tablename, array_agg(distinct m.permission[1] order by m.permission[1]) as permissions
  from pg_policies c
  cross join lateral regexp_matches(c.qual, 'viewer_organizations\(''([a-z.]+)''', 'g') m (permission)
  where c.schemaname = 'app_public' and c.cmd = 'SELECT' and 'plat_user' = any (c.roles)
  group by c.tablename
) p
where p.tablename = r.table_name;
update app_hidden.record_types r set read_permissions = r.read_permissions || r.event_permission
where r.event_permission <> all (r.read_permissions);
-- A viewer who can read all leads cannot necessarily read every note or report: some are visible to their author only.
-- Which mails a member gets is for that member.
update app_hidden.record_types r set read_permissions = '{audit.read}'
where r.table_name in ('lead_notes', 'custom_reports', 'organization_user_connections');
