import type { Rule } from "./rule.ts";

/** Those functions that reach app_public.current_user_id(), by themselves or by what they call. */
const asks = `
      with recursive asks as (
        select oid from functions where object = 'app_public.current_user_id()'
        union select c.caller from asks a join calls c on c.callee = a.oid),
      masked as (
        select c.*, t.reltype as row_type from columns c join pg_class t on t.oid = c.table_oid
        where c.schema = 'app_public' and pg_temp.tag(c.comment, 'masked') is not null)`;

/** Masks: what only some may read is read through a function that asks, by whatever way. */
export const maskRules: Rule[] = [
  {
    name: "masked-column",
    why: "What only some may read has to be read through a function that asks.",
    query: `
      select c.object, format('Write \`@masked\` into its comment and a function %s_%s(%s) that gives null without the permission.',
        c.table_name, c.name, c.table_object) as write
      from columns c
      where c.schema = 'app_public' and pg_temp.prose(c.comment) ~* '\\m(null (for|to) (those|outsiders|others|members)|null without|without the permission)'
        and pg_temp.tag(c.comment, 'masked') is null and pg_temp.tag(c.comment, 'writeOnly') is null`,
  },
  {
    name: "masked-function",
    why: "A masked column is read through its function, and nobody reads it without one.",
    query: `${asks}
      select m.object, format('Write \`create function %s.%I(%s) …\` with a grant, which asks who reads, and gives null to those who may not; '
          'or tag the column \`@writeOnly\`, where it is no secret.',
        m.schema, m.table_name || '_' || m.name, m.table_object) as write
      from masked m
      where not exists (select from functions f join asks a on a.oid = f.oid where f.schema = 'app_public' and f.argument_count = 1
        and f.argument_types[1] = m.row_type and f.name = m.table_name || '_' || m.name)`,
  },
  {
    name: "masked-leak",
    why: "A function that gives a masked column to everybody undoes the mask.",
    // Whether one is null is no secret, and a transition may require it. What a definer reads is its own rule.
    query: `${asks}
      select distinct f.object, format('It reads the masked column %s: let it ask for the permission, as %s_%s does.', m.object, m.table_name, m.name) as write
      from functions f join masked m on true
      where f.volatility <> 'v' and not f.definer and has_function_privilege('plat_user', f.oid, 'execute')
        and f.name <> m.table_name || '_allowed_transitions' and f.name <> m.table_name || '_' || m.name
          and not exists (select from asks a where a.oid = f.oid)
        -- PERF: each pair has a regular expression of its own, to compile which takes longer than to look for the name.
        and position(m.name in lower(f.source)) > 0
        and (f.argument_types[1] = m.row_type and f.source ~* ('\\y' || f.argument_names[1] || '\\.' || m.name || '\\y(?! is (not )?null)')
          or exists (select from regexp_matches(f.source, '\\yapp_public\\.' || m.table_name || '\\s+(?:as\\s+)?(\\w+)', 'g') alias
            where f.source ~* ('\\y' || alias[1] || '\\.' || m.name || '\\y(?! is (not )?null)')))`,
  },
  {
    name: "masked-list",
    why: "Whoever may filter or sort by a value finds it out by asking often enough.",
    query: `
      select m.object, format('Take \`@%s\` out of its comment: the value is masked. A function \`%s_filter_…\` that asks for the permission may filter by it.',
        tag, m.table_name) as write
      from columns m cross join unnest(array['filter', 'indexed']) tag
      where pg_temp.tag(m.comment, 'masked') is not null and pg_temp.tag(m.comment, tag) is not null
      union all
      select t.object, format('Take %I out of \`@%s\`: it is masked.', c.name, tag[1])
      from tables t join columns c on c.table_oid = t.oid and pg_temp.tag(c.comment, 'masked') is not null
      cross join lateral regexp_matches(t.comment, '(?:^|\\n)@(sort|defaultOrder|filterLists)[ \\t]+([^\\n]*)', 'g') tag
      where tag[2] ~ ('\\y' || c.name || '\\y')`,
  },
  {
    name: "masked-search",
    why: "Whoever finds a record by a word knows that it has the word.",
    query: `
      select m.object, format('Leave it out of \`make_searchable(%L, …)\`: it is masked.', m.table_name) as write
      from columns m join app_private.searchable_tables s on s.table_name = m.table_name
      where m.schema = 'app_public' and pg_temp.tag(m.comment, 'masked') is not null and s.texts ~ ('\\yr\\.' || m.name || '\\y')`,
  },
  {
    name: "masked-report",
    why: "Reports and exports are read by those whose own rights decide, column by column.",
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
    why: "A view gives what it reads to whoever may read the view.",
    // What it reads of whole rows, such as the argument of a masking function, the catalog books on all columns of the table.
    query: `
      select distinct v.oid::regclass::text as object, format('It reads the masked column %s: read it through app_public.%I.', m.object, m.table_name || '_' || m.name) as write
      from columns m join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = m.table_oid and d.refobjsubid = m.number
      join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
      join pg_class v on v.oid = r.ev_class and v.relkind in ('v', 'm')
      where pg_temp.tag(m.comment, 'masked') is not null and pg_get_viewdef(v.oid) !~ ('\\y' || m.table_name || '_' || m.name || '\\(')`,
  },
];
