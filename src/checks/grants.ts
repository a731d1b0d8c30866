import type { Rule } from "./rule.ts";

/** Grants and policies: one without the other does nothing, or refuses what was meant to work. */
export const grantRules: Rule[] = [
  {
    name: "table-grant",
    why: "A table of app_public that nobody may read is neither a type nor a list of the API.",
    query: `
      select t.object, format('Write \`grant select on %s to plat_user, plat_anonymous, plat_worker;\`, or create it in app_private.', t.object) as write
      from tables t
      where t.schema = 'app_public'
        and not exists (select from granted g where g.table_oid = t.oid and g.role = 'plat_user' and g.command = 'select')`,
  },
  {
    name: "policy-missing",
    why: "A grant without a policy reads no rows and refuses every write.",
    // Visitors and the jobs hold SELECT everywhere, so that they read no rows rather than get an error. An INSERT or UPDATE
    // that is granted for the members of an operation's input is carried out by that operation: a function with that input.
    query: `
      select g.object || ' ' || g.command as object,
        format('Write \`create policy … on %s for %s to %s %s (…);\`, or take the grant away.', g.object, g.command, g.role,
          case g.command when 'insert' then 'with check' else 'using' end) as write
      from granted g join tables t on t.oid = g.table_oid
      where (g.role = 'plat_user' or g.role = 'plat_anonymous' and g.command <> 'select')
        and not exists (select from policies p where p.table_oid = g.table_oid and p.role = g.role and p.command = g.command and p.permissive)
        and not (g.command in ('insert', 'update') and exists (select from functions f join pg_proc p on p.oid = f.oid
          join pg_type r on r.oid = p.prorettype and r.typrelid = g.table_oid
          where f.schema = 'app_public' and f.volatility = 'v' and f.argument_names[1] = 'input'
            and f.name like case g.command when 'insert' then 'create\\_%' else 'update\\_%' end))`,
  },
  {
    name: "policy-without-grant",
    why: "A policy for a command that its role may not carry out reads as if it were allowed.",
    query: `
      select p.object || ' ' || p.name as object, case
          when p.command in ('insert', 'update') then format('Write \`grant %s (column, …) on %s to %s;\`, or drop the policy.', p.command, p.object, p.role)
          else format('Write \`grant %s on %s to %s;\`, or drop the policy.', p.command, p.object, p.role) end as write
      from policies p
      where p.role <> 'plat_worker' and not exists (select from granted g where g.table_oid = p.table_oid and g.role = p.role and g.command = p.command)`,
  },
  {
    name: "function-grant",
    why: "A function of app_public that the viewer may not call is neither an operation nor a field.",
    query: `
      select f.object, format('Write \`grant execute on function %s to plat_user, plat_anonymous;\`, or create it in app_private.', f.object) as write
      from functions f where f.schema = 'app_public' and not has_function_privilege('plat_user', f.oid, 'execute')`,
  },
  {
    name: "function-public",
    why: "What PUBLIC may call, everybody may who logs in, whatever is granted to whom.",
    query: `
      select f.object, format('Write \`revoke all on function %s from public;\`.', f.object) as write
      from functions f join pg_proc p on p.oid = f.oid
      where f.definer and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)`,
  },
];
