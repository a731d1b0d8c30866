import type { Rule } from "./rule.ts";

/** Grants and policies: one without the other has no effect, or refuses what should work. */
export const grantRules: Rule[] = [
  {
    name: "table-grant",
    why: "A table or view of app_public that nobody may read is neither a type nor a list of the API. From a view that visitors may read they get no rows, rather than an error.",
    query: `
      select distinct c.oid::regclass::text as object,
        format('Write \`grant select on %s to plat_user, plat_anonymous;\`, or create it in app_private.', c.oid::regclass) as write
      from pg_class c cross join unnest(array['plat_user', 'plat_anonymous']) r (name)
      where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition
        and (c.relkind = 'v' or r.name = 'plat_user') and not has_any_column_privilege(r.name, c.oid, 'select')`,
  },
  {
    name: "policy-missing",
    why: "A grant without a policy reads no rows and refuses every write.",
    // Visitors have SELECT everywhere, so that they read no rows rather than get an error. An INSERT or UPDATE granted for the fields of
    // an operation's input is executed by a function with that input.
    query: `
      select g.object || ' ' || g.command as object,
        format('Write \`create policy … on %s for %s to %s %s (…);\`, or revoke the grant.', g.object, g.command, g.role,
          case g.command when 'insert' then 'with check' else 'using' end) as write
      from granted g join tables t on t.oid = g.table_oid
      where g.command in ('select', 'insert', 'update', 'delete') and (g.role in ('plat_user', 'plat_worker') or g.role = 'plat_anonymous' and g.command <> 'select')
        and not exists (select from policies p where p.table_oid = g.table_oid and p.role = g.role and p.command = g.command and p.permissive)
        and not (g.command in ('insert', 'update') and exists (select from functions f join pg_proc p on p.oid = f.oid
          join pg_type r on r.oid = p.prorettype and r.typrelid = g.table_oid
          where f.schema = 'app_public' and f.volatility = 'v' and f.argument_names[1] = 'input'
            and f.name like case g.command when 'insert' then 'create\\_%' else 'update\\_%' end))`,
  },
  {
    name: "policy-without-grant",
    why: "A policy for a command that its role may not execute looks as if the command were allowed.",
    query: `
      select p.object || ' ' || p.name as object, case
          when p.command in ('insert', 'update') then format('Write \`grant %s (column, …) on %s to %s;\`, or drop the policy.', p.command, p.object, p.role)
          else format('Write \`grant %s on %s to %s;\`, or drop the policy.', p.command, p.object, p.role) end as write
      from policies p
      where not exists (select from granted g where g.table_oid = p.table_oid and g.role = p.role and g.command = p.command)`,
  },
  {
    name: "grant-columns",
    why: "The columns of grants of INSERT and UPDATE are the fields of the input; a grant on the whole table includes the tenant and the version.",
    query: `
      select t.object, format('Write \`grant %s (column, …) on %s to plat_user;\` with the columns that clients set, instead of the whole table.',
        lower(a.privilege_type), t.object) as write
      from tables t cross join lateral aclexplode(t.acl) a
      where a.grantee <> t.owner and a.privilege_type not in ('SELECT', 'DELETE')
        and (a.grantee = 0 or a.grantee in ('plat_user'::regrole, 'plat_anonymous'::regrole))`,
  },
  {
    name: "grant-anonymous",
    why: "Visitors only read tables; functions handle their input, such as messages.",
    query: `
      select object, format('Revoke \`%s\` from %s, and write a function for the input of visitors.', command, role) as write
      from granted where role in ('plat_anonymous', 'PUBLIC') and command <> 'select'`,
  },
  {
    name: "grant-private",
    why: "app_private contains secrets and internals, which only functions with the privileges of their owner read.",
    query: `
      select distinct g.object, format('Revoke the grant from %s, and write a definer function that returns what viewers may see.', g.role) as write
      from granted g join tables t on t.oid = g.table_oid
      where t.schema = 'app_private' and g.role in ('plat_user', 'plat_anonymous', 'plat_authenticator', 'PUBLIC')`,
  },
  {
    name: "view-invoker",
    why: "By default, a view reads with the privileges of its owner, and bypasses all policies.",
    // plat_masker is subject to the policies of plat_user.
    query: `
      select c.oid::regclass::text as object, 'Write \`with (security_invoker = true)\` after its name, or \`@decides\` in its comment if its condition decides which rows the viewer sees.' as write
      from pg_class c where c.relkind = 'v' and c.relowner <> 'plat_masker'::regrole and coalesce(obj_description(c.oid, 'pg_class'), '') !~ '(^|\\n)@decides\\y' and c.relnamespace::regnamespace::text in ('app_public', 'app_hidden', 'app_private')
        and not coalesce(c.reloptions @> '{security_invoker=true}', false)`,
  },
  {
    name: "view-barrier",
    why: "A condition of the caller may be evaluated before that of the view, and reveal rows that the view omits.",
    // A view of all rows hides none itself; the policies of its table apply as well.
    query: `
      select c.oid::regclass::text as object, 'Write \`with (security_invoker = true, security_barrier = true)\` after its name, because it filters rows.' as write
      from pg_class c where c.relkind = 'v' and pg_get_viewdef(c.oid) !~ 'WHERE \\(CURRENT_USER <> ''plat_anonymous''::name\\);$' and c.relnamespace::regnamespace::text in ('app_public', 'app_hidden', 'app_private')
        and pg_get_viewdef(c.oid) ~* '\\y(where|join|having|limit|union|intersect|except)\\y'
        and not coalesce(c.reloptions @> '{security_barrier=true}', false)`,
  },
  {
    name: "function-grant",
    why: "A function that viewers may not call is neither an operation nor a field. For visitors, a field without the grant is an error instead of an empty list, and a mutation explains how to sign in. A query granted to visitors is public.",
    query: `
      select f.object, format('Write \`grant execute on function %s to plat_user, plat_anonymous;\`, or create it in app_private.', f.object) as write
      from functions f
      where f.schema = 'app_public'
        and not (has_function_privilege('plat_user', f.oid, 'execute') and (has_function_privilege('plat_anonymous', f.oid, 'execute')
          or f.volatility <> 'v' and not exists (select from pg_proc p join pg_type t on t.oid = p.proargtypes[0] where p.oid = f.oid and t.typtype = 'c')))`,
  },
  {
    name: "function-grant-missing",
    why: "A function fails halfway if it calls, with the viewer's privileges, another one that the viewer may not call.",
    query: `
      select f.object || ' ' || r.role as object, format('Write \`grant execute on function %s to %s;\`: a policy or function that runs with the rights of %s calls it.',
        f.object, r.role, r.role) as write
      from reached r join functions f using (oid)
      where not f.is_trigger and not has_function_privilege(r.role, f.oid, 'execute')`,
  },
  {
    name: "service-grant",
    why: "The service logs in as roles that have no privileges besides grants.",
    query: `
      select f.object, format('Write \`grant execute on function %s to %s;\`: the sources of the service call it.', f.object,
        case when f.schema = 'app_hidden' then 'plat_user'
          when exists (select from worker_mentions m where m.callee = f.oid) then 'plat_worker' else 'plat_authenticator' end) as write
      from functions f
      where f.oid in (select callee from service_calls) and case f.schema
        when 'app_hidden' then not has_function_privilege('plat_user', f.oid, 'execute')
        -- What does not run as its owner is for whoever migrates.
        else f.definer and not has_function_privilege('plat_worker', f.oid, 'execute') and not has_function_privilege('plat_authenticator', f.oid, 'execute')
          and not has_function_privilege('plat_user', f.oid, 'execute') end`,
  },
  {
    name: "function-public",
    why: "Every login may call a function that is granted to PUBLIC, regardless of other grants.",
    query: `
      select f.object, format('Write \`revoke all on function %s from public;\`.', f.object) as write
      from functions f join pg_proc p on p.oid = f.oid
      where f.definer and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)`,
  },
];
