/**
 * Reads from the catalog what the GraphQL schema is built from: the exposed schemas, what their columns and functions
 * refer to, and of each object the columns that a plugin reads. PERF: the stock query reads all schemas with the
 * sources of functions and the expressions of policies, indexes and constraints, ten times as much. Reading and parsing
 * it was a third of a start.
 */
import type { SQLRawValue } from "postgraphile/pg-sql2";

/** Rows in the shape of the catalog, as one JSON text named `introspection`. @param schemas that are exposed */
export const introspectionQuery = (schemas: readonly string[]): { text: string; values: SQLRawValue[] } => ({
  text,
  values: [schemas as string[]],
});

const text = `
with recursive
  exposed as (
    select oid from pg_namespace where nspname = any ($1::text[])
  ),
  procs as (
    select oid as _id, oid, proname, pronamespace, proowner, prolang, prorows, proisstrict, proretset,
      provolatile, pronargs, pronargdefaults, prorettype, proargtypes, proallargtypes, proargmodes,
      proargnames, proacl
    from pg_proc
    where pronamespace in (select oid from exposed) and prorettype <> 'trigger'::regtype
  ),
  -- Relations, and the types that they and the functions refer to: arrays and domains lead to further types.
  used (relation, type) as (
    select oid, reltype from pg_class where relnamespace in (select oid from exposed) and relkind in ('r', 'p', 'v', 'm', 'f', 'c')
    union
    select 0::oid, type from procs, unnest(coalesce(proallargtypes, proargtypes::oid[]) || prorettype) type
    union
    select next.*
    from used, lateral (
      select 0::oid, atttypid from pg_attribute where attrelid = used.relation and attnum > 0 and not attisdropped
      union all
      select typrelid, linked.type
      from pg_type, unnest(array[typelem, typbasetype]) linked (type)
      where oid = used.type and (typrelid <> 0 or linked.type <> 0)
    ) next
  ),
  classes as (
    select oid as _id, oid, relname, relnamespace, reltype, reloftype, relowner, relam, relkind, relpersistence,
      relispartition, relacl, pg_relation_is_updatable(oid, true)::bit(8)::int4 as updatable_mask
    from pg_class
    where oid in (select relation from used)
  ),
  attributes as (
    select attrelid, attname, atttypid, attnum, atttypmod, attnotnull, atthasdef, attidentity, attgenerated, attisdropped, attacl
    from pg_attribute
    where attrelid in (select _id from classes) and attnum > 0
  ),
  constraints as (
    select oid as _id, oid, conname, connamespace, contype, condeferrable, condeferred, conrelid, contypid, confrelid, conkey,
      confkey
    from pg_constraint
    where conrelid in (select _id from classes)
      and (contype in ('p', 'u') or contype = 'f' and confrelid in (select _id from classes))
  ),
  all_types (type) as (
    select type from used
    union
    select typarray from pg_type where oid in (select type from used)
    union
    select t.oid
    from pg_type t left join pg_type element on element.oid = t.typelem
    where t.typnamespace = 'pg_catalog'::regnamespace and t.typrelid = 0 and coalesce(element.typrelid, 0) = 0
  ),
  types as (
    select oid as _id, oid, typname, typnamespace, typowner, typtype, typcategory, typrelid, typelem, typarray, typdelim, typnotnull,
      typbasetype, typtypmod, typdefault
    from pg_type
    where oid in (select type from all_types)
  ),
  descriptions as (
    select *
    from pg_description
    where classoid = 'pg_class'::regclass and objoid in (select _id from classes)
      or classoid = 'pg_proc'::regclass and objoid in (select _id from procs)
      or classoid = 'pg_type'::regclass and objoid in (select _id from types)
      or classoid = 'pg_constraint'::regclass and objoid in (select _id from constraints)
      or classoid = 'pg_namespace'::regclass
  )
select json_build_object(
  'database', (select row_to_json(d) from (select oid as _id, * from pg_database where datname = current_database()) d),
  'namespaces', (
    select json_agg(row_to_json(n) order by nspname)
    from (select oid as _id, * from pg_namespace where nspname <> 'information_schema') n
  ),
  'classes', coalesce((select json_agg(row_to_json(classes) order by relnamespace, relname) from classes), '[]'),
  'attributes', coalesce((select json_agg(row_to_json(attributes) order by attrelid, attnum) from attributes), '[]'),
  'constraints', coalesce(
    (select json_agg(row_to_json(constraints) order by connamespace, conrelid, conname) from constraints),
    '[]'
  ),
  'procs', coalesce(
    (
      select json_agg(row_to_json(procs) order by pronamespace, proname, pg_get_function_identity_arguments(_id))
      from procs
    ),
    '[]'
  ),
  'roles', (select json_agg(row_to_json(r) order by rolname) from (select oid as _id, * from pg_roles) r),
  'auth_members', coalesce(
    (select json_agg(row_to_json(m) order by roleid, member, grantor) from pg_auth_members m),
    '[]'
  ),
  'types', (select json_agg(row_to_json(types) order by typnamespace, typname) from types),
  'enums', coalesce(
    (
      select json_agg(row_to_json(e) order by enumtypid, enumsortorder)
      from (select oid as _id, * from pg_enum where enumtypid in (select _id from types)) e
    ),
    '[]'
  ),
  'extensions', coalesce(
    (select json_agg(row_to_json(e) order by extname) from (select oid as _id, * from pg_extension) e),
    '[]'
  ),
  'indexes', coalesce(
    (
      select json_agg(row_to_json(i) order by indrelid, indexrelid)
      from (
        select indexrelid, indrelid, indkey, indoption
        from pg_index
        where indrelid in (select _id from classes)
      ) i
    ),
    '[]'
  ),
  'inherits', coalesce(
    (
      select json_agg(row_to_json(i) order by inhrelid, inhseqno)
      from pg_inherits i
      where inhrelid in (select _id from classes)
    ),
    '[]'
  ),
  'languages', (select json_agg(row_to_json(l) order by lanname) from (select oid as _id, * from pg_language) l),
  'policies', coalesce(
    (
      select json_agg(row_to_json(p) order by polrelid, polname)
      from (
        select oid, polname, polrelid, polcmd, polpermissive, polroles
        from pg_policy
        where polrelid in (select _id from classes)
      ) p
    ),
    '[]'
  ),
  'ranges', coalesce(
    (
      select json_agg(row_to_json(r) order by rngtypid) from pg_range r where rngtypid in (select _id from types)
    ),
    '[]'
  ),
  -- What belongs to an extension is not exposed.
  'depends', coalesce(
    (
      select json_agg(row_to_json(d))
      from pg_depend d
      where deptype = 'e'
        and (
          classid = 'pg_class'::regclass and objid in (select _id from classes)
          or classid = 'pg_proc'::regclass and objid in (select _id from procs)
        )
    ),
    '[]'
  ),
  'descriptions', coalesce(
    (select json_agg(row_to_json(descriptions) order by objoid, classoid, objsubid) from descriptions),
    '[]'
  ),
  'am', (select json_agg(row_to_json(a) order by amname) from (select oid as _id, * from pg_am) a),
  'catalog_by_oid', (
    select json_object_agg(oid::text, relname)
    from pg_class
    where relnamespace = 'pg_catalog'::regnamespace and relkind = 'r'
  ),
  'current_user', current_user,
  'pg_version', version(),
  'introspection_version', 1
)::text as introspection`;
