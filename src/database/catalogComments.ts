import { ownObject, relationWord, routineWord, schemas, signature } from "./catalogSql.ts";

/** Kinds of objects with comments: class, object, part, name in statements, and owning object. */
const targets = `
  select 'pg_namespace'::regclass as class, n.oid as object, 0 as part, 'schema ' || quote_ident(n.nspname) as target,
    quote_ident(n.nspname) as place
  from pg_namespace n where n.nspname in ${schemas}
  union all
  select 'pg_class'::regclass, c.oid, 0, format('%s %I.%I', case c.relkind when 'c' then 'type' else ${relationWord("c")} end,
    n.nspname, c.relname), format('%I.%I', n.nspname, coalesce(t.relname, c.relname))
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  left join pg_index x on x.indexrelid = c.oid left join pg_class t on t.oid = x.indrelid
  where n.nspname in ${schemas} and ${ownObject("pg_class", "c.oid")}
  union all
  select 'pg_class'::regclass, c.oid, a.attnum, format('column %I.%I.%I', n.nspname, c.relname, a.attname),
    format('%I.%I', n.nspname, c.relname)
  from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ${schemas} and a.attnum > 0 and not a.attisdropped and ${ownObject("pg_class", "c.oid")}
  union all
  select 'pg_type'::regclass, t.oid, 0, format('%s %I.%I', case t.typtype when 'd' then 'domain' else 'type' end, n.nspname,
    t.typname), format('%I.%I', n.nspname, t.typname)
  from pg_type t join pg_namespace n on n.oid = t.typnamespace
  where n.nspname in ${schemas} and ${ownObject("pg_type", "t.oid")}
  union all
  select 'pg_proc'::regclass, p.oid, 0, format('%s %s', ${routineWord("p")}, ${signature("p", "n")}), ${signature("p", "n")}
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname in ${schemas} and ${ownObject("pg_proc", "p.oid")}
  union all
  select 'pg_constraint'::regclass, k.oid, 0, format('constraint %I on %s%I.%I', k.conname,
    case when t.oid is not null then 'domain ' else '' end, n.nspname, coalesce(c.relname, t.typname)),
    format('%I.%I', n.nspname, coalesce(c.relname, t.typname))
  from pg_constraint k left join pg_class c on c.oid = k.conrelid left join pg_type t on t.oid = k.contypid
  join pg_namespace n on n.oid = coalesce(c.relnamespace, t.typnamespace)
  where n.nspname in ${schemas}
  union all
  select 'pg_policy'::regclass, p.oid, 0, format('policy %I on %I.%I', p.polname, n.nspname, c.relname),
    format('%I.%I', n.nspname, c.relname)
  from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ${schemas}
  union all
  select 'pg_trigger'::regclass, t.oid, 0, format('trigger %I on %I.%I', t.tgname, n.nspname, c.relname),
    format('%I.%I', n.nspname, c.relname)
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ${schemas}`;

const comments = `
  with targets as (${targets})
  select 'comment' as kind, 'comment on ' || t.target as identity, t.place as "on", d.description as definition,
    format('comment on %s is %L', t.target, d.description) as "create", format('comment on %s is null', t.target) as "drop"
  from pg_description d join targets t on t.class = d.classoid and t.object = d.objoid and t.part = d.objsubid`;

/** Comments on all objects that the catalog covers. */
export const commentQueries = [comments];
