import type { Rule } from "./rule.ts";

/** Columns of every record; src/plugins/OutputShapesPlugin.ts describes them. */
const shared =
  "('id', 'organization_id', 'project_id', 'user_id', 'inserted_at', 'updated_at', 'version', 'deleted_at')";

/** Comments: the documentation of the API, and its error messages. */
export const commentRules: Rule[] = [
  {
    name: "comment-table",
    why: "The comment of a table is the description of its type.",
    query: `
      select object, format('Write \`comment on table %s is ''…'';\`: one sentence that says what a row is.', object) as write
      from tables where coalesce(pg_temp.prose(comment), '') = ''
      union all
      select c.oid::regclass::text, format('Write \`comment on view %s is ''…'';\`: one sentence that says what a row is.', c.oid::regclass)
      from pg_class c where c.relkind in ('v', 'm') and c.relnamespace::regnamespace::text in ('app_public', 'app_hidden', 'app_private')
        and coalesce(pg_temp.prose(obj_description(c.oid, 'pg_class')), '') = ''`,
  },
  {
    name: "comment-column",
    why: "The comment of a column is the description of its field.",
    query: `
      select format('%s.%I', c.oid::regclass, a.attname) as object, format('Write \`comment on column %s.%I is ''…'';\`.', c.oid::regclass, a.attname) as write
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p', 'v', 'c') and c.relname not like '%\\_values'
        and a.attname not in ${shared} and coalesce(pg_temp.prose(col_description(c.oid, a.attnum)), '') = ''
        and coalesce(col_description(c.oid, a.attnum), '') !~ '@behavior -\\*'`,
  },
  {
    name: "comment-function",
    why: "The comment of a function is the description of its operation or field.",
    query: `
      select object, format('Write \`comment on function %s is ''…'';\`.', object) as write
      from functions where schema = 'app_public' and coalesce(pg_temp.prose(comment), '') = ''`,
  },
  {
    name: "comment-argument",
    why: "The comment of a function describes its arguments.",
    // The record of a field, the input of an operation, an id, and values of the service need no description; a filter has its own.
    query: `
      select f.object || ' ' || a.name as object, format('Write \`@arg %s …\` into the comment of %s with its purpose.', a.name, f.object) as write
      from functions f
      cross join lateral unnest(f.argument_names[:f.argument_count], f.argument_types) with ordinality a (name, type, position)
      join pg_type t on t.oid = a.type
      where f.schema = 'app_public' and not f.is_trigger and pg_temp.tag(f.comment, 'filter') is null and pg_temp.tag(f.comment, 'behavior') is distinct from '-*'
        and not (a.position = 1 and (f.is_field or a.name = 'input')) and a.name !~ '(^|_)id$'
        and pg_temp.tag(obj_description(t.oid, 'pg_type'), 'given') is null
        and not exists (select from regexp_matches(f.comment, '(?:^|\\n)@arg (\\w+) \\S', 'g') told
          where lower(replace(told[1], '_', '')) = replace(a.name, '_', ''))`,
  },
  {
    name: "comment-measure",
    why: "The kind of measure determines which aggregates are meaningful.",
    // Columns of records that have aggregates. Versions are the same everywhere, and the tag of a domain applies to
    // all of its columns.
    query: `
      with portfolios as (select c.oid, c.reltype from pg_class c where c.relnamespace = 'app_public'::regnamespace
          and pg_temp.tag(obj_description(c.oid, 'pg_class'), 'portfolio') is not null),
        numbers as (
          select format('%s.%I', c.oid::regclass, a.attname) as object, format('column %s.%I', c.oid::regclass, a.attname) as what, a.atttypid as type,
            coalesce(col_description(c.oid, a.attnum), '') as comment
          from portfolios c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attname <> 'version'
          union all
          select f.object, 'function ' || f.object, p.prorettype, coalesce(f.comment, '')
          from functions f join pg_proc p on p.oid = f.oid join portfolios c on c.reltype = f.argument_types[1]
          where f.is_field and not p.proretset and pg_temp.tag(f.comment, 'filter') is null)
      select n.object, format('Write \`@measures quantity\`, \`ratio\`, \`rank\` or \`nothing\` into the comment of %s (docs/comments.md).', n.what) as write
      from numbers n join pg_type t on t.oid = n.type
      where t.typcategory = 'N' and coalesce(pg_temp.tag(n.comment, 'measures'), pg_temp.tag(obj_description(t.oid, 'pg_type'), 'measures'), '')
          not in ('quantity', 'ratio', 'rank', 'nothing')
        and n.comment <> '' and n.comment !~ '(^|\\n)@(behavior -\\*|masked|writeOnly)'`,
  },
  {
    name: "comment-type",
    why: "The comment of a domain or composite type is the description of its scalar, enumeration or input.",
    query: `
      select format('%s.%I', n.nspname, t.typname) as object, format('Write \`comment on %s %s.%I is ''…'';\`.',
        case t.typtype when 'd' then 'domain' else 'type' end, n.nspname, t.typname) as write
      from pg_type t join pg_namespace n on n.oid = t.typnamespace left join pg_class c on c.oid = t.typrelid
      where n.nspname = 'app_public' and (t.typtype = 'd' or c.relkind = 'c') and coalesce(pg_temp.prose(obj_description(t.oid, 'pg_type')), '') = ''`,
  },
  {
    name: "comment-check",
    why: "The comment of a check is the error message when it refuses a value.",
    // Inputs for its columns. The message of a scalar's check says what is valid (further checks concern the stored format); a domain of
    // an enumeration lists its values.
    query: `
      select t.object || '.' || k.conname as object, format('Write \`comment on constraint %I on %s is ''…'';\`: which values are valid.', k.conname, t.object) as write
      from pg_constraint k join tables t on t.oid = k.conrelid
      where k.contype in ('c', 'x') and coalesce(obj_description(k.oid, 'pg_constraint'), '') = ''
        and exists (select from columns c where c.table_oid = t.oid and c.number = any (k.conkey) and c.writable
          and (cardinality(k.conkey) > 1 or pg_temp.tag(obj_description(c.type, 'pg_type'), 'scalar') is null))
      union all
      select format('%s.%I.%I', n.nspname, t.typname, k.conname),
        format('Write \`comment on constraint %I on domain %s.%I is ''…'';\`: which values are valid.', k.conname, n.nspname, t.typname)
      from pg_constraint k join pg_type t on t.oid = k.contypid join pg_namespace n on n.oid = t.typnamespace
      where n.nspname = 'app_public' and coalesce(obj_description(k.oid, 'pg_constraint'), '') = '' and k.contype = 'c'
        and pg_temp.tag(obj_description(t.oid, 'pg_type'), 'enum') is null`,
  },
  {
    name: "comment-unique",
    why: "The comment of a unique index or constraint is the error message when such a record already exists.",
    // Inputs for its columns; an index that begins with the id is the target of a foreign key.
    query: `
      select t.object || '.' || i.name as object, format('Write \`comment on %s is ''There is … already.'';\`.',
        case when i.is_constraint then format('constraint %I on %s', i.name, t.object) else format('index %s.%I', t.schema, i.name) end) as write
      from indexes i join tables t on t.oid = i.table_oid join pg_index x on x.indexrelid = i.oid
      where i.is_unique and not i.is_primary and i.columns[1] is distinct from 'id'
        and coalesce(case when i.is_constraint
          then (select obj_description(k.oid, 'pg_constraint') from pg_constraint k where k.conindid = i.oid and k.contype in ('u', 'x')) else i.comment end, '') = ''
        and exists (select from columns c where c.table_oid = t.oid and c.writable
          and (c.name = any (i.columns) or pg_get_expr(x.indexprs, x.indrelid) ~ ('\\y' || c.name || '\\y')))`,
  },
  {
    name: "comment-foreign-key",
    why: "The comment of a foreign key describes the field that leads to the other record, and names the list on it.",
    query: `
      select k.object || '.' || k.name as object, format('Write \`comment on constraint %I on %s is E''@backwardBehavior -*\\n\\n…'';\`: what the other record is to it.',
        k.name, k.object) as write
      from foreign_keys k join pg_constraint c on c.oid = k.oid
      where k.schema = 'app_public' and k.referenced_schema = 'app_public' and coalesce(obj_description(k.oid, 'pg_constraint'), '') = ''`,
  },
];
