import { ownObject, relationWord, schemas, tableKinds, withOptions } from "./catalogSql.ts";

/** Sequences of identity columns are told with their column. */
const sequences = `
  select 'sequence' as kind, 'sequence ' || s.name as identity, s.table as "on", s.definition, s.definition as "create",
    'drop sequence ' || s.name as "drop"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_sequence q on q.seqrelid = c.oid
  left join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')
    and d.refclassid = 'pg_class'::regclass and d.refobjsubid > 0
  left join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
  left join pg_class t on t.oid = d.refobjid left join pg_namespace tn on tn.oid = t.relnamespace
  cross join lateral (
    select format('%I.%I', n.nspname, c.relname) as name,
      case when t.oid is not null then format('%I.%I', tn.nspname, t.relname) end as table,
      concat('create ', case c.relpersistence when 'u' then 'unlogged ' end,
        format('sequence %I.%I as %s increment %s minvalue %s maxvalue %s start %s cache %s', n.nspname, c.relname,
          format_type(q.seqtypid, null), q.seqincrement, q.seqmin, q.seqmax, q.seqstart, q.seqcache),
        case when q.seqcycle then ' cycle' end) as definition) s
  where n.nspname in ${schemas} and c.relkind = 'S' and d.deptype is distinct from 'i' and ${ownObject("pg_class", "c.oid")}`;

/** Without its columns, which are objects of their own; only what makes a partitioned table needs those of its key. */
const tables = `
  select 'table' as kind, 'table ' || t.name as identity, null as "on", t.definition,
    case c.relkind when 'p' then replace(t.definition, ' () ', (
      select format(' (%s) ', string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', '
        order by a.attnum)) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
      else t.definition end as "create",
    'drop table ' || t.name as "drop"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  left join pg_inherits i on i.inhrelid = c.oid and c.relispartition
  left join pg_class p on p.oid = i.inhparent left join pg_namespace pn on pn.oid = p.relnamespace
  cross join lateral (
    select format('%I.%I', n.nspname, c.relname) as name, concat(
      'create ', case c.relpersistence when 'u' then 'unlogged ' end, format('table %I.%I ', n.nspname, c.relname),
      case when p.oid is not null
        then format('partition of %I.%I %s', pn.nspname, p.relname, pg_get_expr(c.relpartbound, c.oid)) else '()' end,
      case when c.relkind = 'p' then ' partition by ' || pg_get_partkeydef(c.oid) end,
      ${withOptions("c.reloptions")},
      case c.relreplident when 'f' then format('; alter table %I.%I replica identity full', n.nspname, c.relname)
        when 'n' then format('; alter table %I.%I replica identity nothing', n.nspname, c.relname)
        when 'i' then format('; alter table %I.%I replica identity using index %I', n.nspname, c.relname, (
          select r.relname from pg_index x join pg_class r on r.oid = x.indexrelid
          where x.indrelid = c.oid and x.indisreplident)) end) as definition) t
  where n.nspname in ${schemas} and c.relkind in ${tableKinds} and ${ownObject("pg_class", "c.oid")}`;

const identityOptions = `
  coalesce((select format(' (%s)', array_to_string(o.options, ' ')) from pg_sequence q
    join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = q.seqrelid and d.deptype = 'i'
      and d.refobjid = a.attrelid and d.refobjsubid = a.attnum
    cross join lateral (select array_remove(array[
      case when q.seqstart <> 1 then format('start %s', q.seqstart) end,
      case when q.seqincrement <> 1 then format('increment %s', q.seqincrement) end,
      case when q.seqmin <> 1 then format('minvalue %s', q.seqmin) end,
      case when q.seqmax <> case q.seqtypid when 'int2'::regtype then 32767 when 'int4'::regtype then 2147483647
        else 9223372036854775807 end then format('maxvalue %s', q.seqmax) end,
      case when q.seqcache <> 1 then format('cache %s', q.seqcache) end,
      case when q.seqcycle then 'cycle' end], null) as options) o
    where cardinality(o.options) > 0), '')`;

/** In the order of the table. */
const columns = `
  select 'column' as kind, format('column %s.%I', t.name, a.attname) as identity, t.name as "on",
    concat_ws('; ', d.definition, d.options) as definition,
    concat_ws('; ', format('alter table %s add column %s%s', t.name, case c.relkind when 'p' then 'if not exists ' end,
      d.definition), d.options) as "create",
    format('alter table %s drop column %I', t.name, a.attname) as "drop"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attislocal
  join pg_type y on y.oid = a.atttypid
  left join pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
  left join pg_collation l on l.oid = a.attcollation and a.attcollation <> y.typcollation
  left join pg_namespace ln on ln.oid = l.collnamespace
  cross join lateral (select format('%I.%I', n.nspname, c.relname) as name) t
  cross join lateral (
    select concat(quote_ident(a.attname), ' ', format_type(a.atttypid, a.atttypmod),
      case when a.attstorage <> y.typstorage then ' storage ' || case a.attstorage when 'p' then 'plain'
        when 'e' then 'external' when 'm' then 'main' else 'extended' end end,
      case a.attcompression when 'p' then ' compression pglz' when 'l' then ' compression lz4' end,
      case when l.oid is not null then format(' collate %I.%I', ln.nspname, l.collname) end,
      case when a.attgenerated <> '' then format(' generated always as (%s) %s', pg_get_expr(f.adbin, f.adrelid),
          case a.attgenerated when 's' then 'stored' else 'virtual' end)
        when f.oid is not null then ' default ' || pg_get_expr(f.adbin, f.adrelid) end,
      case a.attidentity when 'a' then ' generated always as identity' || ${identityOptions}
        when 'd' then ' generated by default as identity' || ${identityOptions} end,
      case when a.attnotnull then ' not null' end) as definition,
      case when a.attstattarget >= 0 or a.attoptions is not null then concat_ws('; ',
        case when a.attstattarget >= 0
          then format('alter table %s alter column %I set statistics %s', t.name, a.attname, a.attstattarget) end,
        case when a.attoptions is not null then format('alter table %s alter column %I set (%s)', t.name, a.attname,
          array_to_string(a.attoptions, ', ')) end) end as options) d
  where n.nspname in ${schemas} and c.relkind in ${tableKinds} and ${ownObject("pg_class", "c.oid")}
  order by n.nspname, c.relname, a.attnum`;

/** Of tables, but neither what a partition has from its table, nor constraint triggers, nor plain not-null constraints. */
const tableConstraints = `
  select 'constraint' as kind, format('constraint %I on %s', k.conname, t.name) as identity, t.name as "on",
    pg_get_constraintdef(k.oid) as definition,
    format('alter table %s add constraint %I %s', t.name, k.conname, pg_get_constraintdef(k.oid)) as "create",
    format('alter table %s drop constraint %I', t.name, k.conname) as "drop"
  from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
  cross join lateral (select format('%I.%I', n.nspname, c.relname) as name) t
  where n.nspname in ${schemas} and c.relkind in ${tableKinds} and k.contype not in ('t', 'n') and k.conislocal
    and k.conparentid = 0 and ${ownObject("pg_class", "c.oid")}`;

/**
 * A not-null constraint is told with its column; one that is not named as PostgreSQL names them, or is not valid, here
 * as well: made by renaming what the column has, removed by giving it the usual name again.
 */
const notNullConstraints = `
  select 'constraint' as kind, format('constraint %I on %s', k.conname, t.name) as identity, t.name as "on",
    pg_get_constraintdef(k.oid) as definition,
    format('alter table %s rename constraint %I to %I', t.name, t.usual, k.conname) as "create",
    case when k.conname = t.usual then format('alter table %s validate constraint %I', t.name, k.conname)
      else format('alter table %s rename constraint %I to %I', t.name, k.conname, t.usual) end as "drop"
  from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
  cross join lateral (select length(c.relname) as l, length(a.attname) as r) s
  -- The longer name is cut until table_column_not_null has 63 characters.
  cross join lateral (
    select format('%I.%I', n.nspname, c.relname) as name,
      left(c.relname, case when l + r <= 53 then l when r <= 26 then 53 - r when l <= 27 then l else 27 end) || '_' ||
      left(a.attname, case when l + r <= 53 then r when r <= 26 then r when l <= 27 then 53 - l else 26 end) ||
      '_not_null' as usual) t
  where n.nspname in ${schemas} and c.relkind in ${tableKinds} and k.contype = 'n' and k.conislocal
    and (k.conname <> t.usual or not k.convalidated) and ${ownObject("pg_class", "c.oid")}`;

const domainConstraints = `
  select 'constraint' as kind, format('constraint %I on domain %s', k.conname, t.name) as identity, t.name as "on",
    pg_get_constraintdef(k.oid) as definition,
    format('alter domain %s add constraint %I %s', t.name, k.conname, pg_get_constraintdef(k.oid)) as "create",
    format('alter domain %s drop constraint %I', t.name, k.conname) as "drop"
  from pg_constraint k join pg_type y on y.oid = k.contypid join pg_namespace n on n.oid = y.typnamespace
  cross join lateral (select format('%I.%I', n.nspname, y.typname) as name) t
  where n.nspname in ${schemas} and k.contype <> 'n' and ${ownObject("pg_type", "y.oid")}`;

/** Not those of constraints, nor those that a partition has from its table. */
const indexes = `
  select 'index' as kind, format('index %I.%I', n.nspname, i.relname) as identity,
    format('%I.%I', n.nspname, c.relname) as "on", d.definition, d.definition as "create",
    format('drop index %I.%I', n.nspname, i.relname) as "drop"
  from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class c on c.oid = x.indrelid
  join pg_namespace n on n.oid = i.relnamespace
  cross join lateral (
    select replace(pg_get_indexdef(i.oid), ' ON ONLY ', ' ON ') ||
      case when x.indisclustered then format('; alter table %I.%I cluster on %I', n.nspname, c.relname, i.relname) else '' end ||
      case when x.indisvalid then '' else ' -- not valid' end as definition) d
  where n.nspname in ${schemas} and c.relkind in ('r', 'p', 'm') and not i.relispartition
    and not exists (select from pg_constraint k where k.conindid = i.oid and k.contype in ('p', 'u', 'x'))
    and ${ownObject("pg_class", "c.oid")}`;

const rowSecurity = `
  select 'row security' as kind, 'row security on ' || t.name as identity, t.name as "on", t.definition,
    t.definition as "create",
    format('alter table %s disable row level security; alter table %1$s no force row level security', t.name) as "drop"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  cross join lateral (
    select format('%I.%I', n.nspname, c.relname) as name, concat_ws('; ',
      case when c.relrowsecurity then format('alter table %I.%I enable row level security', n.nspname, c.relname) end,
      case when c.relforcerowsecurity then format('alter table %I.%I force row level security', n.nspname, c.relname) end)
      as definition) t
  where n.nspname in ${schemas} and c.relkind in ${tableKinds} and (c.relrowsecurity or c.relforcerowsecurity)
    and ${ownObject("pg_class", "c.oid")}`;

const views = `
  select 'view' as kind, format('%s %s', v.word, v.name) as identity, null as "on",
    concat_ws('; ', v.definition, v.defaults) as definition, concat_ws('; ', v.definition, v.defaults) as "create",
    format('drop %s %s', v.word, v.name) as "drop"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  cross join lateral (
    select format('%I.%I', n.nspname, c.relname) as name, ${relationWord("c")} as word, concat('create ',
      case c.relkind when 'v' then 'or replace view ' else 'materialized view ' end,
      format('%I.%I', n.nspname, c.relname), ${withOptions("c.reloptions")}, E' as\\n',
      rtrim(pg_get_viewdef(c.oid), E'; \\n')) as definition,
      (select string_agg(format('alter view %I.%I alter column %I set default %s', n.nspname, c.relname, a.attname,
          pg_get_expr(f.adbin, f.adrelid)), '; ' order by a.attnum)
        from pg_attrdef f join pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
        where f.adrelid = c.oid) as defaults) v
  where n.nspname in ${schemas} and c.relkind in ('v', 'm') and ${ownObject("pg_class", "c.oid")}`;

/** Sequences, tables, columns, constraints, indexes, row security and views. */
export const structureQueries = [
  sequences,
  tables,
  columns,
  tableConstraints,
  notNullConstraints,
  domainConstraints,
  indexes,
  rowSecurity,
  views,
];
