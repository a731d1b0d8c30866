import type { ClientBase } from "pg";

/** `tag(comment, name)` is the text after `@name` in a comment, empty if nothing follows, null without the tag. */
const functions = `
-- PERF: an expression, which PostgreSQL puts in the place of the call.
create function pg_temp.tag(comment text, name text) returns text language sql immutable as $$
  select case when comment ~ ('(?:^|\\n)@' || name || '(?:[ \\t]+([^\\n]*))?(?=\\n|$)')
    then coalesce((regexp_match(comment, '(?:^|\\n)@' || name || '(?:[ \\t]+([^\\n]*))?(?=\\n|$)'))[1], '') end
$$;

-- A comment without its tags.
create function pg_temp.prose(comment text) returns text language sql immutable as $$
  select btrim(regexp_replace(comment, '^(\\s*@[^\\n]*(\\n|$))+', ''), E' \\n')
$$;
`;

/** The parts of the catalog that rules need, for our three schemas. */
const relations = {
  tables: `
    select c.oid, n.nspname as schema, c.relname as name, format('%I.%I', n.nspname, c.relname) as object, c.relkind as kind,
      c.relowner as owner, c.relacl as acl, c.relrowsecurity as row_security, obj_description(c.oid, 'pg_class') as comment,
      -- What create_enum makes: what each value means.
      c.relname like '%\\_values' and exists (select from pg_type t where t.typnamespace = c.relnamespace and t.typname = left(c.relname, -7)) as is_enum
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('app_public', 'app_hidden', 'app_private') and c.relkind in ('r', 'p') and not c.relispartition`,
  columns: `
    select t.oid as table_oid, t.schema, t.name as table_name, t.object as table_object, a.attnum as number, a.attname as name,
      format('%s.%I', t.object, a.attname) as object, a.atttypid as type, a.attnotnull as not_null, a.attgenerated <> '' as generated,
      col_description(t.oid, a.attnum) as comment,
      has_column_privilege('plat_user', t.oid, a.attnum, 'insert') or has_column_privilege('plat_user', t.oid, a.attnum, 'update') as writable
    from tables t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped`,
  functions: `
    select p.oid, n.nspname as schema, p.proname as name, p.oid::regprocedure::text as object, p.prosrc as source, p.prokind as kind,
      p.prosecdef as definer, p.provolatile as volatility, p.proconfig as settings, p.prorettype = 'trigger'::regtype as is_trigger,
      p.pronargs as argument_count, p.proargnames as argument_names, array(select unnest(p.proargtypes)) as argument_types, l.lanname as language,
      obj_description(p.oid, 'pg_proc') as comment,
      -- A field of the record that it takes, as PostGraphile has it.
      exists (select from pg_type t join pg_class c on c.oid = t.typrelid join pg_namespace cn on cn.oid = c.relnamespace
        where t.oid = p.proargtypes[0] and cn.nspname = 'app_public' and p.proname like replace(c.relname, '_', '\\_') || '\\_%') as is_field
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
    where n.nspname in ('app_public', 'app_hidden', 'app_private')`,
  // One row per table, role and granted privilege, on the table or on columns of it.
  granted: `
    select distinct t.oid as table_oid, t.object, coalesce(r.rolname, 'PUBLIC') as role, lower(a.privilege_type) as command
    from tables t
    cross join lateral (
      select * from aclexplode(t.acl)
      union all select x.* from pg_attribute c cross join lateral aclexplode(c.attacl) x where c.attrelid = t.oid and not c.attisdropped) a
    left join pg_roles r on r.oid = a.grantee
    where a.grantee <> t.owner`,
  // One row per policy, role and command that it is for.
  policies: `
    select p.oid, p.polrelid as table_oid, t.object, p.polname as name, p.polpermissive as permissive, r.rolname as role, c.command,
      pg_get_expr(p.polqual, p.polrelid) as qual, pg_get_expr(p.polwithcheck, p.polrelid) as with_check
    from pg_policy p join tables t on t.oid = p.polrelid
    join pg_roles r on r.oid = any (p.polroles)
    cross join lateral unnest(case p.polcmd when 'r' then array['select'] when 'a' then array['insert'] when 'w' then array['update']
      when 'd' then array['delete'] else array['select', 'insert', 'update', 'delete'] end) c (command)`,
  foreign_keys: `
    select k.oid, k.conname as name, k.conrelid as table_oid, t.schema, t.name as table_name, t.object, k.confrelid as referenced_oid,
      r.schema as referenced_schema, r.name as referenced_name, r.object as referenced, k.conkey as numbers, k.confkey as referenced_numbers,
      array(select a.attname from unnest(k.conkey) with ordinality u (n, i) join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.n order by i) as columns,
      array(select a.attname from unnest(k.confkey) with ordinality u (n, i) join pg_attribute a on a.attrelid = k.confrelid and a.attnum = u.n order by i)
        as referenced_columns
    from pg_constraint k join tables t on t.oid = k.conrelid join tables r on r.oid = k.confrelid
    where k.contype = 'f' and k.conparentid = 0`,
  // An index by its leading columns; an expression is null.
  indexes: `
    select i.indexrelid as oid, t.oid as table_oid, c.relname as name, i.indisunique as is_unique, i.indisprimary as is_primary,
      array(select a.attname from unnest(i.indkey::int2[]) with ordinality u (n, o) left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = u.n and u.n > 0
        where o <= i.indnkeyatts order by o) as columns,
      -- A lookup by key says neither whether a row is deleted nor, in words, that its key is not null.
      i.indpred is null or regexp_replace(pg_get_expr(i.indpred, i.indrelid), '\\(?(deleted_at IS NULL|\\w+ IS NOT NULL)\\)?( AND )?|[()]', '', 'g') = '' as is_whole,
      exists (select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')) as is_constraint,
      obj_description(i.indexrelid, 'pg_class') as comment
    from pg_index i join pg_class c on c.oid = i.indexrelid
    -- An index that each partition has of its own, such as one that is unique without the key of the partition, is seen on one of them.
    left join lateral (select p.inhparent from pg_inherits p where p.inhrelid = i.indrelid and not c.relispartition
      and not exists (select from pg_inherits s where s.inhparent = p.inhparent and s.inhrelid < p.inhrelid)) p on true
    join tables t on t.oid = coalesce(p.inhparent, i.indrelid)
    where i.indisvalid`,
};

/**
 * Creates temporary tables for the catalog on this connection, empty.
 * PERF: tables instead of views, because each rule would read the catalog again.
 */
export async function createSnapshot(client: ClientBase): Promise<void> {
  await client.query(functions);
  for (const [name, query] of Object.entries(relations))
    await client.query(`create temp table ${name} as ${query} with no data`);
}

/** Fills them with the current state. */
export async function readSnapshot(client: ClientBase): Promise<void> {
  const names = Object.keys(relations);
  await client.query(`truncate ${names.join(", ")}`);
  for (const [name, query] of Object.entries(relations))
    await client.query(`insert into ${name} ${query}; analyze ${name}`);
}
