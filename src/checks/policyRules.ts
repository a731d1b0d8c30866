import type { Rule } from "./rule.ts";

/** Policies: each evaluates its conditions once per statement. */
export const policyRules: Rule[] = [
  {
    name: "policy-role",
    why: "A policy for PUBLIC applies to every future role.",
    query: `
      select t.object || ' ' || p.polname as object, 'Name its roles: \`to plat_user\`, or \`to plat_user, plat_anonymous\`.' as write
      from pg_policy p join tables t on t.oid = p.polrelid where 0 = any (p.polroles)`,
  },
  {
    name: "policy-identity",
    why: "The viewer is the same for all rows; outside of a sub-select, the function is called for each row.",
    query: `
      select distinct t.object || ' ' || p.polname as object,
        format('Write \`(select %s.%s(…))\` instead of the bare call, or \`any (array(select …))\` if it returns several.', f.schema, f.name) as write
      from pg_policy p join tables t on t.oid = p.polrelid
      join policy_calls c on c.policy = p.oid and c.per_row and c.constant join functions f on f.oid = c.callee`,
  },
  {
    name: "policy-per-row",
    why: "A function that is called for each row takes seconds, a single call takes almost no time.",
    // For reads; a write touches few rows, which have already been found.
    query: `
      select p.object || ' ' || p.name as object,
        format('Do not call %s%s for each row: compare a column with \`any (array(select …))\` over a function with constant arguments, '
          'such as app_hidden.viewer_organizations, or write \`@perRow …\` into the comment of the policy with the reason.',
          case when f.definer then 'the definer function ' when f.volatility = 'v' then 'the volatile function ' else '' end, f.object) as write
      from policies p
      join policy_calls c on c.policy = p.oid and c.per_row and not c.constant join functions f on f.oid = c.callee
      -- A plain expression is inlined.
      where p.role = 'plat_user' and p.command = 'select' and coalesce(pg_temp.tag(obj_description(p.oid, 'pg_policy'), 'perRow'), '') = ''
        and (f.definer or f.volatility = 'v' or f.language <> 'sql' or f.source ~* '\\yselect\\y.*\\yselect\\y'
        or exists (select from calls where caller = f.oid))`,
  },
  {
    name: "policy-volatile",
    why: "A volatile function in a policy is called for each row, and may change data.",
    query: `
      select p.object || ' ' || p.name as object, format('Declare %s stable, or call another.', f.object) as write
      from (select distinct oid, object, name from policies) p
      join policy_calls c on c.policy = p.oid join functions f on f.oid = c.callee
      where f.volatility = 'v' and not c.per_row`,
  },
  {
    name: "policy-index",
    why: "A policy that compares a column without an index reads the whole table.",
    query: `
      select distinct p.object || '.' || m[1] as object, format('Write \`create index %I on %s (%I);\`: the policy %I compares it.',
        t.name || '_' || regexp_replace(m[1], '_id$', ''), t.object, m[1], p.name) as write
      from policies p join tables t on t.oid = p.table_oid
      cross join lateral regexp_matches(regexp_replace(p.qual, '\\y\\w+\\.(?=\\w+ )', '', 'g'), '\\(\\y(\\w+) = (?:ANY )?\\(', 'g') m
      join columns c on c.table_oid = t.oid and c.name = m[1]
      where p.command = 'select' and m[1] <> 'organization_id' and pg_temp.tag(t.comment, 'portfolio') is not null
        and not exists (select from indexes i where i.table_oid = t.oid and i.columns[1] = m[1])`,
  },
  {
    name: "type-enum",
    why: "The operators of PostgreSQL's enums are not leakproof: under row security, no filter on one uses an index.",
    query: `
      select format('%s.%I', n.nspname, t.typname) as object,
        format('Write \`select app_private.create_enum(%L, …);\` instead of create type: its values are text.', t.typname) as write
      from pg_type t join pg_namespace n on n.oid = t.typnamespace
      where t.typtype = 'e' and n.nspname in ('app_public', 'app_hidden', 'app_private')`,
  },
];
