import { ownObject, routineWord, schemas, signature } from "./catalogSql.ts";
import { schemaOwner } from "./roles.ts";

/**
 * One source of access control lists: the object as statements name it, the class of its default, its owner. `word`
 * is the keyword between ON and the name; `place` is the object that the privileges belong to.
 */
const sources = `
  select 'schema ' || quote_ident(n.nspname) as target, quote_ident(n.nspname) as place, null as column, n.nspacl as acl,
    acldefault('n', n.nspowner) as usual, n.nspowner as owner
  from pg_namespace n where n.nspname in ${schemas}
  union all
  select case c.relkind when 'S' then 'sequence ' else '' end || format('%I.%I', n.nspname, c.relname),
    format('%I.%I', n.nspname, c.relname), null, c.relacl,
    acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner), c.relowner
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ${schemas} and c.relkind in ('r', 'p', 'v', 'm', 'S') and ${ownObject("pg_class", "c.oid")}
  union all
  select format('%I.%I', n.nspname, c.relname), format('%I.%I', n.nspname, c.relname), quote_ident(a.attname), a.attacl,
    null, c.relowner
  from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ${schemas} and a.attacl is not null and not a.attisdropped and ${ownObject("pg_class", "c.oid")}
  union all
  select format('%s %s', replace(${routineWord("p")}, 'aggregate', 'function'), ${signature("p", "n")}),
    ${signature("p", "n")}, null, p.proacl, acldefault('f', p.proowner), p.proowner
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname in ${schemas} and ${ownObject("pg_proc", "p.oid")}
  union all
  select format('%s %I.%I', case t.typtype when 'd' then 'domain' else 'type' end, n.nspname, t.typname),
    format('%I.%I', n.nspname, t.typname), null, t.typacl, acldefault('T', t.typowner), t.typowner
  from pg_type t join pg_namespace n on n.oid = t.typnamespace
  where n.nspname in ${schemas} and t.typtype in ('c', 'd', 'e') and ${ownObject("pg_type", "t.oid")}`;

/**
 * A privilege beyond PostgreSQL's default is a grant; a removed default privilege is a revoke. Privileges of the
 * owner are omitted, unless removed.
 */
const grants = `
  with lists as (${sources}),
  given as (
    select l.target, l.place, l.column, l.owner, g.grantee, g.privilege_type as privilege, bool_or(g.is_grantable) as grantable
    from lists l cross join lateral aclexplode(l.acl) g
    where l.acl is not null and g.grantee <> l.owner group by 1, 2, 3, 4, 5, 6),
  usual as (
    select l.target, l.place, l.column, l.owner, g.grantee, g.privilege_type as privilege
    from lists l cross join lateral aclexplode(l.usual) g where l.acl is not null),
  differing as (
    select 'grant' as verb, 'to' as preposition, g.* from given g
    where not exists (select from usual u where u.target = g.target and u.grantee = g.grantee
      and u.privilege = g.privilege and g.column is null and not g.grantable)
    union all
    select 'revoke', 'from', u.*, false from usual u
    join lists l on l.target = u.target and l.column is not distinct from u.column
    where not exists (select from aclexplode(l.acl) g where g.grantee = u.grantee and g.privilege_type = u.privilege))
  select 'grant' as kind, s.statement as identity, d.place as "on",
    s.statement || s.option as definition, s.statement || s.option as "create",
    case d.verb when 'grant' then format('revoke %s on %s from %s', s.privilege, d.target, s.role)
      else format('grant %s on %s to %s', s.privilege, d.target, s.role) end as "drop"
  from differing d left join pg_roles r on r.oid = d.grantee
  cross join lateral (
    select lower(d.privilege) || coalesce(' (' || d.column || ')', '') as privilege, case when d.grantee = d.owner
      then 'current_user' else coalesce(quote_ident(r.rolname), 'public') end as role) p
  cross join lateral (
    select p.*, format('%s %s on %s %s %s', d.verb, p.privilege, d.target, d.preposition, p.role) as statement,
      case when d.grantable then ' with grant option' else '' end as option) s`;

/** Compared with the built-in defaults; for new objects of the owner, everywhere or in one schema. */
const defaultPrivileges = `
  with lists as (
    select d.defaclobjtype as type, n.nspname as schema, d.defaclrole as owner, d.defaclacl as acl, case when n.oid is null
      then acldefault(case d.defaclobjtype when 'S' then 's' else d.defaclobjtype end, d.defaclrole) end as usual
    from pg_default_acl d left join pg_namespace n on n.oid = d.defaclnamespace
    where n.oid is null or n.nspname in ${schemas}),
  differing as (
    select 'grant' as verb, l.*, g.grantee, g.privilege_type as privilege, g.is_grantable as grantable
    from lists l cross join lateral aclexplode(l.acl) g
    where not exists (select from aclexplode(l.usual) u where u.grantee = g.grantee and u.privilege_type = g.privilege_type)
    union all
    select 'revoke', l.*, u.grantee, u.privilege_type, false from lists l cross join lateral aclexplode(l.usual) u
    where not exists (select from aclexplode(l.acl) g where g.grantee = u.grantee and g.privilege_type = u.privilege_type))
  select 'default privileges' as kind, s.prefix || s.done as identity, null as "on",
    s.prefix || s.done || s.option as definition, s.prefix || s.done || s.option as "create", s.prefix || s.undone as "drop"
  from differing d left join pg_roles r on r.oid = d.grantee join pg_roles o on o.oid = d.owner
  cross join lateral (
    select lower(d.privilege) as privilege,
      case d.type when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions' when 'T' then 'types'
        when 'n' then 'schemas' else 'large objects' end as objects,
      case when d.grantee = d.owner then 'current_user' else coalesce(quote_ident(r.rolname), 'public') end as role) p
  cross join lateral (
    select concat('alter default privileges ', case when o.rolname not in (current_user, '${schemaOwner}') then format('for role %I ', o.rolname) end,
        case when d.schema is not null then format('in schema %I ', d.schema) end) as prefix,
      case d.verb when 'grant' then format('grant %s on %s to %s', p.privilege, p.objects, p.role)
        else format('revoke %s on %s from %s', p.privilege, p.objects, p.role) end as done,
      case d.verb when 'grant' then format('revoke %s on %s from %s', p.privilege, p.objects, p.role)
        else format('grant %s on %s to %s', p.privilege, p.objects, p.role) end as undone,
      case when d.grantable then ' with grant option' else '' end as option) s`;

/** Grants, revoked defaults and default privileges. */
export const privilegeQueries = [grants, defaultPrivileges];
