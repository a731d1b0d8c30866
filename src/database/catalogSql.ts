/**
 * Building blocks of the catalog queries. All name schemas `n` and compare by oid, so that nothing depends on a
 * search path.
 */

/** The schemas that are read. */
export const schemas = "('app_public', 'app_hidden', 'app_private')";

/** Whether an object was not brought by an extension. */
export const ownObject = (catalog: string, oid: string): string =>
  `not exists (select from pg_depend e where e.classid = '${catalog}'::regclass and e.objid = ${oid} and e.deptype = 'e')`;

/** A function with its argument types, as `drop function` expects it: `app_public.f(uuid, text)`. */
export const signature = (proc: string, namespace: string): string =>
  `format('%I.%I(%s)', ${namespace}.nspname, ${proc}.proname, (
    select string_agg(format_type(a.type, null), ', ' order by a.n)
    from unnest(${proc}.proargtypes::oid[]) with ordinality as a (type, n)))`;

/** SQL keyword for a function's kind. */
export const routineWord = (proc: string): string =>
  `case ${proc}.prokind when 'p' then 'procedure' when 'a' then 'aggregate' else 'function' end`;

/** SQL keyword for a relation's kind. */
export const relationWord = (relation: string): string =>
  `case ${relation}.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence'
    when 'i' then 'index' when 'I' then 'index' else 'table' end`;

/** Options as `(a=b, c=d)` with a space before, or nothing. */
export const withOptions = (options: string): string =>
  `coalesce((select format(' with (%s)', string_agg(format('%I=%s', o.option_name, case
      when o.option_value ~ '^[a-z0-9_.]+$' then o.option_value else quote_literal(o.option_value) end),
    ', ' order by o.option_name collate "C")) from pg_options_to_table(${options}) o having count(*) > 0), '')`;

/** Tables proper and partitioned ones; with columns of their own or of the table that they are a partition of. */
export const tableKinds = "('r', 'p')";

/** Objects that no query covers: better to fail than to miss them. */
export const unknownObjectsQuery = `
  select pg_describe_object(d.classid, d.objid, 0) as name
  from pg_depend d join pg_namespace n on n.oid = d.refobjid
  where d.refclassid = 'pg_namespace'::regclass and n.nspname in ${schemas}
    and d.classid not in ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass, 'pg_constraint'::regclass,
      'pg_default_acl'::regclass)
    and not exists (select from pg_depend e where e.classid = d.classid and e.objid = d.objid and e.deptype = 'e')
  union all
  select format('rule %I on %I.%I', r.rulename, n.nspname, c.relname)
  from pg_rewrite r join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ${schemas} and r.rulename <> '_RETURN'
  union all
  select format('foreign table %I.%I', n.nspname, c.relname)
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ${schemas} and c.relkind = 'f'
  union all
  select format('range type or base type %I.%I', n.nspname, t.typname)
  from pg_type t join pg_namespace n on n.oid = t.typnamespace
  where n.nspname in ${schemas} and (t.typtype in ('r', 'm') or t.typtype = 'b' and t.typelem = 0)
    and ${ownObject("pg_type", "t.oid")}
  union all
  select format('event trigger %I', t.evtname) from pg_event_trigger t where ${ownObject("pg_event_trigger", "t.oid")}
  order by 1`;
