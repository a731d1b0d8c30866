import type { Rule } from "./rule.ts";

/** Functions that call app_public.current_user_id(), directly or indirectly. */
const asks = `
      with recursive asks as (
        select oid from functions where object = 'app_public.current_user_id()'
        union select c.caller from asks a join calls c on c.callee = a.oid),
      masked as (
        select c.*, t.reltype as row_type from columns c join pg_class t on t.oid = c.table_oid
        where c.schema = 'app_public' and pg_temp.tag(c.comment, 'masked') is not null)`;

/** Masks: restricted values are only read through a function that checks access, on every path. */
export const maskRules: Rule[] = [
  {
    name: "masked-grant",
    why: "SQL that runs as a role of the API reads everything that is granted to it, without masks.",
    query: `
      select m.object, format('Revoke the grant to %s: \`select app_private.make_masked_view(%L);\` does so and creates the masking view.',
        string_agg(r.role, ' and ' order by r.role), m.table_name) as write
      from columns m cross join unnest(array['plat_anonymous', 'plat_authenticator', 'plat_user']) r (role)
      where m.schema = 'app_public' and pg_temp.tag(m.comment, 'masked') is not null and has_column_privilege(r.role, m.table_oid, m.number, 'select')
      group by m.object, m.table_name`,
  },
  {
    name: "masked-row",
    why: "The roles of the API may not read whole rows of a table with masked columns, so the call would be refused.",
    query: `
      with masked as (
        select t.name, t.object from tables t
        where t.schema = 'app_public' and exists (select from columns m where m.table_oid = t.oid and pg_temp.tag(m.comment, 'masked') is not null)),
      -- PERF: few functions name the table at all, and an expression is compiled for each pair.
      named as materialized (
        select t.name, t.object as table_object, f.object, f.source
        from masked t join functions f on not f.definer and not f.is_trigger and strpos(f.source, 'app_public.' || t.name) > 0
          and (f.schema = 'app_public' or has_function_privilege('plat_user', f.oid, 'execute')))
      select distinct object, format('Read from app_hidden.masked_%s, which masks, or list the columns of %s that it reads.', name, table_object) as write
      from named
      where source ~ ('\\yselect \\*( into \\w+)?\\s+from app_public\\.' || name || '\\y')
        or exists (select from regexp_matches(source, '\\y(?:from|join)\\s+app_public\\.' || name || '\\s+(?:as\\s+)?(\\w+)', 'g') alias
          where source ~ ('\\yselect\\y(?:(?!\\yfrom\\y).)*\\y' || alias[1] || '(?:\\.\\*|\\y(?!\\.))(?:(?!\\yfrom\\y).)*\\yfrom\\y(?:(?!\\yselect\\y|;).)*app_public\\.'
            || name || '\\s+(?:as\\s+)?' || alias[1] || '\\y'))`,
  },
  {
    name: "masked-result",
    why: "A security definer function reads whole rows, and each column of its result is readable.",
    query: `
      select f.object, format('Return \`app_hidden.masked(…)\` of the row: %s has masked columns.', t.object) as write
      from functions f join pg_proc p on p.oid = f.oid join pg_type y on y.oid = p.prorettype
      join tables t on t.oid = coalesce(nullif(y.typrelid, 0), (select e.typrelid from pg_type e where e.oid = y.typelem and y.typcategory = 'A'))
      where f.definer and (has_function_privilege('plat_user', f.oid, 'execute') or has_function_privilege('plat_anonymous', f.oid, 'execute'))
        and exists (select from columns m where m.table_oid = t.oid and pg_temp.tag(m.comment, 'masked') is not null)
        and f.source !~ 'app_hidden\\.masked(_\\w+)?\\y'`,
  },
  {
    name: "masked-reads",
    why: "A function of a row gets null for masked columns, unless it declares that it reads them.",
    query: `
      with masked as (select * from columns c where c.schema = 'app_public' and pg_temp.tag(c.comment, 'masked') is not null)
      select f.object, format('Write \`@reads %s\` into its comment: it receives the masked value.', m.name) as write
      from functions f join masked m on true join pg_class t on t.oid = m.table_oid and f.argument_types[1] = t.reltype
      where f.schema = 'app_public' and not exists (select from masked k where k.table_oid = m.table_oid and f.name = k.table_name || '_' || k.name)
        and f.source ~ ('\\y' || f.argument_names[1] || '\\.' || m.name || '\\y|\\y' || m.table_name || '_' || m.name || '\\(' || f.argument_names[1] || '\\)')
        and m.name <> all (string_to_array(coalesce(pg_temp.tag(f.comment, 'reads'), ''), ' '))`,
  },
  {
    name: "masked-column",
    why: "Restricted values must be read through a function that checks access.",
    query: `
      select c.object, format('Write \`@masked\` into its comment and a function %s_%s(%s) that returns null without the permission.',
        c.table_name, c.name, c.table_object) as write
      from columns c
      where c.schema = 'app_public' and pg_temp.prose(c.comment) ~* '\\m(null (for|to) (those|outsiders|others|members)|null without|without the permission)'
        and pg_temp.tag(c.comment, 'masked') is null and pg_temp.tag(c.comment, 'writeOnly') is null`,
  },
  {
    name: "masked-function",
    why: "A masked column is only readable through its function.",
    query: `${asks}
      select m.object, format('Write \`create function %s.%I(%s) …\` with a grant, which checks the viewer, and returns null without permission; '
          'or tag the column \`@writeOnly\`, if it is not secret.',
        m.schema, m.table_name || '_' || m.name, m.table_object) as write
      from masked m
      where not exists (select from functions f join asks a on a.oid = f.oid where f.schema = 'app_public' and f.argument_count = 1
        and f.argument_types[1] = m.row_type and f.name = m.table_name || '_' || m.name)`,
  },
  {
    name: "masked-leak",
    why: "A function that returns a masked column to everybody bypasses the mask.",
    // Whether a value is null is not a secret, and functions tagged @reads receive what the viewer may know. Definer functions have
    // their own rule.
    query: `${asks}
      select distinct f.object, format('Check the permission, as %2$s_%3$s does: it reads the masked column %1$s.', m.object, m.table_name, m.name) as write
      from functions f join masked m on true
      where f.volatility <> 'v' and not f.definer and has_function_privilege('plat_user', f.oid, 'execute')
        and m.name <> all (string_to_array(coalesce(pg_temp.tag(f.comment, 'reads'), ''), ' ')) and f.name <> m.table_name || '_' || m.name
          and not exists (select from asks a where a.oid = f.oid)
        -- PERF: each pair has a regular expression of its own, to compile which takes longer than to look for the name.
        and position(m.name in lower(f.source)) > 0
        and (f.argument_types[1] = m.row_type and f.source ~* ('\\y' || f.argument_names[1] || '\\.' || m.name || '\\y(?! is (not )?null)')
          or exists (select from regexp_matches(f.source, '\\yapp_public\\.' || m.table_name || '\\s+(?:as\\s+)?(\\w+)', 'g') alias
            where f.source ~* ('\\y' || alias[1] || '\\.' || m.name || '\\y(?! is (not )?null)')))`,
  },
  {
    name: "masked-list",
    why: "A value can be determined by filtering or sorting by it repeatedly.",
    query: `
      select m.object, format('Remove \`@%s\` from its comment: the value is masked. A function \`%s_filter_…\` that checks the permission may filter by it.',
        tag, m.table_name) as write
      from columns m cross join unnest(array['filter', 'indexed']) tag
      where pg_temp.tag(m.comment, 'masked') is not null and pg_temp.tag(m.comment, tag) is not null
      union all
      select t.object, format('Remove %I from \`@%s\`: it is masked.', c.name, tag[1])
      from tables t join columns c on c.table_oid = t.oid and pg_temp.tag(c.comment, 'masked') is not null
      cross join lateral regexp_matches(t.comment, '(?:^|\\n)@(sort|defaultOrder|filterLists)[ \\t]+([^\\n]*)', 'g') tag
      where tag[2] ~ ('\\y' || c.name || '\\y')`,
  },
  {
    name: "masked-search",
    why: "Finding a record by a word reveals that the record contains it.",
    query: `
      select m.object, format('Remove it from \`make_searchable(%L, …)\`: it is masked.', m.table_name) as write
      from columns m join app_private.searchable_tables s on s.table_name = m.table_name
      where m.schema = 'app_public' and pg_temp.tag(m.comment, 'masked') is not null and s.texts ~ ('\\yr\\.' || m.name || '\\y')`,
  },
  {
    name: "masked-report",
    why: "Access to reports and exports is decided by the permissions of the viewer, for each column.",
    query: `
      select format('app_hidden.report_columns %s.%s', r.subject, r.name) as object,
        format('Read %s through app_public.%I.', m.object, m.table_name || '_' || m.name) as write
      from app_hidden.report_columns r join app_hidden.report_subjects s using (subject)
      join columns m on m.schema = 'app_public' and pg_temp.tag(m.comment, 'masked') is not null
      where m.table_name = s.table_name and r.expression ~ ('\\yt\\.' || m.name || '\\y')
        or exists (select from regexp_matches(r.expression, '\\yapp_public\\.' || m.table_name || '\\s+(\\w+)', 'g') alias
          where r.expression ~ ('\\y' || alias[1] || '\\.' || m.name || '\\y'))`,
  },
  {
    name: "masked-view",
    why: "A view returns what it reads to everybody who may read the view.",
    // Whole rows that it reads, such as the argument of a masking function, count as reading all columns in the catalog.
    // A view may also select what the view that masks selects, with other conditions.
    query: `
      select distinct v.oid::regclass::text as object, format('Read the masked column %s through app_public.%I.', m.object, m.table_name || '_' || m.name) as write
      from columns m join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = m.table_oid and d.refobjsubid = m.number
      join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
      join pg_class v on v.oid = r.ev_class and v.relkind in ('v', 'm')
      where pg_temp.tag(m.comment, 'masked') is not null and v.oid is distinct from to_regclass(format('app_hidden.%I', 'masked_' || m.table_name))
        and pg_get_viewdef(v.oid) !~ ('\\y' || m.table_name || '_' || m.name || '\\(')
        and split_part(pg_get_viewdef(v.oid), 'WHERE', 1)
          is distinct from split_part(pg_get_viewdef(to_regclass(format('app_hidden.%I', 'masked_' || m.table_name))), 'WHERE', 1)`,
  },
];
