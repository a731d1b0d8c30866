import type { Rule } from "./rule.ts";

/** Names of internal objects, so that they are easy to find. */
export const nameRules: Rule[] = [
  {
    name: "trigger-name",
    why: "Triggers run in the order of their names: the number determines the position.",
    query: `
      select t.object || ' ' || g.tgname as object,
        'Name it _NNN_name: a number from 100 to 899 for its place in the order of execution; see the other triggers of the table.' as write
      from pg_trigger g join tables t on t.oid = g.tgrelid where not g.tgisinternal and g.tgname !~ '^_\\d{3}_[a-z][a-z0-9_]*$'`,
  },
  {
    name: "trigger-function-name",
    why: "The name shows that the function is not called directly.",
    query: `
      select object, 'Name it tg_<table>__<task>, or tg__<task> if several tables use it.' as write
      from functions where is_trigger and (schema <> 'app_private' or name !~ '^tg_([a-z][a-z0-9_]*_)?_[a-z]')`,
  },
  {
    name: "filter-ids",
    why: "One term for one concept: the filter by id is a list of ids for every record type.",
    query: `
      select c.object, format('Write \`@filter %s\`%s.', regexp_replace(given, 'Ids?$', '') || 'Ids', case when given ~ 'Id$'
          then format(', and \`@formerFilter %s Removed after …\` if that was served', given) else '' end) as write
      from columns c cross join lateral (select pg_temp.tag(c.comment, 'filter') as given) n
      where c.schema = 'app_public' and c.type = 'uuid'::regtype and given <> '' and given !~ 'Ids$'`,
  },
];
