import type { Rule } from "./rule.ts";

/** Tables: their names, row security and tenant. */
export const tableRules: Rule[] = [
  {
    name: "table-row-security",
    why: "Without row security a grant shows the rows of all tenants.",
    query: `
      select object, format('Write \`alter table %s enable row level security;\` below its create table.', object) as write
      from tables where not row_security`,
  },
  {
    name: "table-name",
    why: "Names are the API: the type and its operations are derived from the name of the table.",
    query: `
      select object, 'Rename it: names of tables are in plural and snake_case, such as floor_plans.' as write
      from tables where schema = 'app_public' and (name !~ '^[a-z][a-z0-9]*(_[a-z0-9]+)*$' or name !~ 's$')`,
  },
  {
    name: "table-tenant",
    why: "The tenant must be a column of the row, because policies, indexes and foreign keys use it.",
    // A table has no tenant if it is a catalogue (nobody writes it through the API, and it refers to no row of a tenant), if it belongs
    // to a user, or if it is the tenant or the user.
    query: `
      select t.object, format('Add \`organization_id uuid not null\` to it, with a foreign key that has it; or, if its rows are parts of '
        'another record and deleted with it, write \`@partOf column\` into its comment, with the column that refers to that record.') as write
      from tables t
      where t.schema = 'app_public' and not t.is_enum and t.name not in ('organizations', 'users')
        and not exists (select from columns c where c.table_oid = t.oid and (c.name = 'organization_id' or c.name = 'user_id' and c.not_null))
        and (exists (select from columns c where c.table_oid = t.oid and c.writable)
          or exists (select from granted g where g.table_oid = t.oid and g.command = 'delete')
          or exists (select from foreign_keys k join columns c on c.table_oid = k.referenced_oid and c.name in ('organization_id', 'project_id')
            where k.table_oid = t.oid)
          or exists (select from foreign_keys k where k.table_oid = t.oid and k.referenced_name = 'organizations'))
        and not exists (select from foreign_keys k join pg_constraint o on o.oid = k.oid and o.confdeltype = 'c'
          where k.table_oid = t.oid and k.columns[1] = pg_temp.tag(t.comment, 'partOf'))`,
  },
  {
    name: "table-tenant-index",
    why: "Every query starts with the tenant; without its index, each reads the rows of all tenants.",
    // Records that are only listed on another record are found by its foreign key.
    query: `
      select t.object, format('Write \`create index %I on %s (organization_id, id);\`, with the columns of its default order instead of id.',
        t.name || '_organization', t.object) as write
      from tables t join columns c on c.table_oid = t.oid and c.name = 'organization_id'
      where t.schema = 'app_public'
        and not exists (select from indexes i where i.table_oid = t.oid and i.is_whole
          and (i.columns[1] = 'organization_id' or pg_temp.tag(t.comment, 'portfolio') is null
            and exists (select from foreign_keys k where k.table_oid = t.oid and i.columns[1] = any (k.columns))))`,
  },
  {
    name: "table-key",
    why: "Without a key, a row is not a record of the API, and duplicates remain unnoticed.",
    query: `
      select t.object, 'Give it a primary key: \`id uuid primary key default uuidv7()\`.' as write
      from tables t
      where t.schema = 'app_public' and not exists (select from indexes i where i.table_oid = t.oid and i.is_primary)`,
  },
  {
    name: "partition-alike",
    why: "A partition can be accessed directly in its schema, without the policies of the partitioned table; and an index that one partition lacks is missing for its rows.",
    query: `
      with parts as (select i.inhparent, c.oid, format('%s', c.oid::regclass) as object, c.relrowsecurity, c.relacl, c.relowner,
          array(select regexp_replace(pg_get_indexdef(x.indexrelid), 'INDEX \\S+ ON \\S+', 'INDEX') from pg_index x where x.indrelid = c.oid order by 1) as indexes
        from pg_inherits i join pg_class c on c.oid = i.inhrelid and c.relkind = 'r' join tables t on t.oid = i.inhparent)
      select object, format('Write \`alter table %s enable row level security;\` and grant nothing on it.', object) as write from parts p
      where not p.relrowsecurity or exists (select from aclexplode(p.relacl) g where g.grantee <> p.relowner)
      union all
      select p.object, format('Give it the indexes of %s.', f.object) from parts p
      join lateral (select * from parts o where o.inhparent = p.inhparent order by o.oid limit 1) f on f.indexes <> p.indexes`,
  },
  {
    name: "rows-of-partitions",
    why: "A ctid is only unique within a partition: with several partitions, a statement changes the wrong row.",
    query: `
      select f.object, 'Identify rows by their key, or by \`tableoid\` and \`ctid\`.' as write from functions f
      where f.source ~ '\\mctid\\M' and f.source !~ '\\mtableoid\\M' and exists (select from tables t where t.kind = 'p' and f.source ~ (t.object || '\\M'))
      union all
      select r.relation, 'Write a function that deletes its rows by their key: app_private.sweep_retention uses their ctid.'
      from app_private.retention r join tables t on t.object = r.relation where t.kind = 'p'`,
  },
  {
    name: "index-twice",
    why: "Each index is written with every row; an index that is the prefix of another one is redundant.",
    query: `
      select distinct t.schema || '.' || i.name as object, format('Drop it: %I has the same columns%s.', o.name,
        case when cardinality(o.columns) > cardinality(i.columns) then ' and more' else '' end) as write
      from indexes i join tables t on t.oid = i.table_oid join indexes o on o.table_oid = i.table_oid and o.oid <> i.oid
      join pg_index a on a.indexrelid = i.oid join pg_index b on b.indexrelid = o.oid
      where not i.is_unique and array_position(i.columns, null) is null and o.columns[:cardinality(i.columns)] = i.columns
        and (cardinality(o.columns) > cardinality(i.columns) or o.is_unique or o.oid < i.oid)
        and pg_get_expr(a.indpred, a.indrelid) is not distinct from pg_get_expr(b.indpred, b.indrelid)
        and a.indnatts = a.indnkeyatts
        and (select relam from pg_class where oid = i.oid) = (select relam from pg_class where oid = o.oid)
        -- Nobody pages by it in another order.
        and (array(select unnest(a.indoption::int2[])))[:cardinality(i.columns)] = (array(select unnest(b.indoption::int2[])))[:cardinality(i.columns)]`,
  },
  {
    name: "column-reg-type",
    why: "pg_upgrade refuses columns with the object id of a function, which changes in the next version.",
    query: `
      select object, format('Change its type to text, and cast it where it is called: \`%I::regproc\`.', name) as write
      from columns where type in ('regproc'::regtype, 'regprocedure'::regtype, 'regoper'::regtype, 'regoperator'::regtype,
        'regconfig'::regtype, 'regdictionary'::regtype, 'regnamespace'::regtype, 'regcollation'::regtype)`,
  },
];
