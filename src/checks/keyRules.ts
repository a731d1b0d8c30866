import type { Rule } from "./rule.ts";

/** Foreign keys: each has an index and includes the tenant. */
export const keyRules: Rule[] = [
  {
    name: "foreign-key-index",
    why: "Without an index, deleting the referenced record and listing its records read the whole table.",
    // By columns besides the tenant. Rows with a text key are look-up tables of a migration, which nobody deletes.
    query: `
      select k.object || '.' || k.name as object,
        format('Write \`create index %I on %s (%I);\`.', k.table_name || '_' || regexp_replace(lead.name, '_id$', ''), k.object, lead.name) as write
      from foreign_keys k
      cross join lateral (select c as name from unnest(k.columns, k.referenced_columns) with ordinality u (c, there, i)
        order by there in ('organization_id', 'project_id', 'user_id'), i limit 1) lead
      join columns r on r.table_oid = k.referenced_oid and r.number = k.referenced_numbers[1]
      where r.type <> 'text'::regtype
        and not exists (select from indexes i where i.table_oid = k.table_oid and i.is_whole
          and i.columns[:array_position(i.columns, lead.name)] <@ k.columns)`,
  },
  {
    name: "foreign-key-tenant",
    why: "A foreign key by id alone allows references between tenants, and reveals whether an id exists.",
    // If the row always has the tenant and the other table has a key with it, or if viewers write the column themselves.
    query: `
      select k.object || '.' || k.name as object,
        format('Include the tenant: \`foreign key (%s, %s) references %s (%s, %s)\`%s.', array_to_string(k.columns, ', '), tenant.name,
          k.referenced, array_to_string(k.referenced_columns, ', '), tenant.name,
          case when not tenant.has_key then format(', which requires \`unique (%s, %s)\` there', array_to_string(k.referenced_columns, ', '), tenant.name) else '' end)
          as write
      from foreign_keys k
      cross join lateral (
        select c.name, c.not_null, exists (select from indexes i where i.table_oid = k.referenced_oid and i.is_unique and i.is_whole
            and i.columns @> (k.referenced_columns || c.name) and (k.referenced_columns || c.name) @> i.columns) as has_key
        from columns c join columns r on r.table_oid = k.referenced_oid and r.name = c.name
        where c.table_oid = k.table_oid and c.name in ('project_id', 'organization_id')
        order by 3 desc, c.name = 'project_id' desc limit 1) tenant
      where k.schema in ('app_public', 'app_hidden') and not k.columns && array['organization_id', 'project_id', 'user_id']::name[]
        and (tenant.has_key and tenant.not_null
          or exists (select from columns c where c.table_oid = k.table_oid and c.name = any (k.columns) and c.writable))`,
  },
  {
    name: "tenant-foreign-key",
    why: "A project or organization without a foreign key may not exist, or belong to another tenant.",
    // Records whose comments refer to them, as in events, are kept after the referenced record.
    query: `
      select c.object, case c.name
          when 'project_id' then format('Write \`constraint %I foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete cascade\`.',
            t.name || '_project_id_fkey')
          else format('Write \`constraint %I foreign key (organization_id) references app_public.organizations on delete cascade\`.', t.name || '_organization_id_fkey') end as write
      from tables t join columns c on c.table_oid = t.oid and c.not_null and c.name in ('project_id', 'organization_id')
      where t.schema = 'app_public' and not exists (select from foreign_keys k where k.table_oid = t.oid and c.name = any (k.columns))
        and coalesce(t.comment, '') !~ ('@foreignKey \\(' || c.name)`,
  },
  {
    name: "relation-not-null",
    why: "If a non-null field is null, its record is missing from the answer; a nullable field must be handled by every client.",
    // Security definer functions return rows whatever the viewer sees, unless they check first; so do their callers.
    query: `
      with recursive definers as (
        select f.oid, f.oid as maker from functions f where f.definer
        union select c.caller, d.maker from definers d join calls c on c.callee = d.oid),
      made as (
        select distinct t.oid as table_oid from tables t join pg_class c on c.oid = t.oid join pg_proc p on p.prorettype = c.reltype
        join definers d on d.oid = p.oid join pg_proc m on m.oid = d.maker and m.prorettype = p.prorettype
          and position(format('viewer_sees(%L', t.object) in m.prosrc) = 0
        where p.pronamespace = 'app_public'::regnamespace),
      relations as (
        select k.object || '.' || k.name as object, obj_description(k.oid, 'pg_constraint') as comment, k.object as table_object, k.name,
          s.number is not null and m.table_oid is null and c.not_null as is_seen
        from foreign_keys k
        join columns c on c.table_oid = k.table_oid and c.name = k.columns[1]
        left join sights s on s.table_oid = k.table_oid and s.seen = k.referenced_oid and s.number = c.number
        left join made m on m.table_oid = k.table_oid
        where k.schema = 'app_public')
      select object, case when is_seen
          then 'Write \`@notNull\` into the comment of the constraint: every viewer of the row sees the referenced record.'
          else 'Remove \`@notNull\` from the comment of the constraint, or let each read policy check \`(select true from … where id = …)\`, '
            'and no function with more rights return the row: the referenced record may be invisible to the viewer.' end as write
      from relations
      where is_seen <> (pg_temp.tag(comment, 'notNull') is not null)
        and pg_temp.tag(comment, 'forwardBehavior') is distinct from '-*' and pg_temp.tag(comment, 'behavior') is distinct from '-*'`,
  },
];
