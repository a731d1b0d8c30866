import { ownObject, schemas } from "./catalogSql.ts";

const extensions = `
  select 'extension' as kind, format('extension %I', e.extname) as identity, null as "on",
    format('create extension if not exists %I with schema %I', e.extname, n.nspname) as definition,
    format('create extension if not exists %I with schema %I', e.extname, n.nspname) as "create",
    format('drop extension %I', e.extname) as "drop"
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace
  where e.extname <> 'plpgsql'`;

const schemaObjects = `
  select 'schema' as kind, format('schema %I', n.nspname) as identity, null as "on",
    format('create schema %I', n.nspname) as definition, format('create schema %I', n.nspname) as "create",
    format('drop schema %I', n.nspname) as "drop"
  from pg_namespace n where n.nspname in ${schemas}`;

const compositeTypes = `
  select 'type' as kind, 'type ' || t.name as identity, null as "on", d.definition, d.definition as "create",
    'drop type ' || t.name as "drop"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  cross join lateral (select format('%I.%I', n.nspname, c.relname) as name) t
  cross join lateral (
    select format(E'create type %s as (\\n%s\\n)', t.name, string_agg(format('  %I %s%s', a.attname,
      format_type(a.atttypid, a.atttypmod), case when a.attcollation <> y.typcollation
        then (select format(' collate %I.%I', cn.nspname, l.collname) from pg_collation l
          join pg_namespace cn on cn.oid = l.collnamespace where l.oid = a.attcollation) end), E',\\n'
      order by a.attnum)) as definition
    from pg_attribute a join pg_type y on y.oid = a.atttypid
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) d
  where n.nspname in ${schemas} and c.relkind = 'c' and ${ownObject("pg_class", "c.oid")}`;

const enumTypes = `
  select 'type' as kind, 'type ' || d.name as identity, null as "on", d.definition, d.definition as "create",
    'drop type ' || d.name as "drop"
  from pg_type t join pg_namespace n on n.oid = t.typnamespace
  cross join lateral (
    select format('%I.%I', n.nspname, t.typname) as name, format('create type %I.%I as enum (%s)', n.nspname, t.typname,
      (select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder) from pg_enum e
       where e.enumtypid = t.oid)) as definition) d
  where n.nspname in ${schemas} and t.typtype = 'e' and ${ownObject("pg_type", "t.oid")}`;

const domains = `
  select 'domain' as kind, 'domain ' || d.name as identity, null as "on", d.definition, d.definition as "create",
    'drop domain ' || d.name as "drop"
  from pg_type t join pg_namespace n on n.oid = t.typnamespace join pg_type b on b.oid = t.typbasetype
  left join pg_collation l on l.oid = t.typcollation and t.typcollation <> b.typcollation
  left join pg_namespace ln on ln.oid = l.collnamespace
  cross join lateral (
    select format('%I.%I', n.nspname, t.typname) as name, concat(
      format('create domain %I.%I as %s', n.nspname, t.typname, format_type(t.typbasetype, t.typtypmod)),
      case when l.oid is not null then format(' collate %I.%I', ln.nspname, l.collname) end,
      case when t.typdefault is not null then ' default ' || coalesce(pg_get_expr(t.typdefaultbin, 0), quote_literal(t.typdefault)) end,
      case when t.typnotnull then ' not null' end) as definition) d
  where n.nspname in ${schemas} and t.typtype = 'd' and ${ownObject("pg_type", "t.oid")}`;

/** Extensions, schemas, composite types, enumerations and domains; constraints of domains are with those of tables. */
export const typeQueries = [extensions, schemaObjects, compositeTypes, enumTypes, domains];
