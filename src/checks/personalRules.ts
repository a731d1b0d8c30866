import type { Rule } from "./rule.ts";

/**
 * Tables about people: leads, purchases and accounts, tables that refer to these by foreign keys, and tables with an email address or phone
 * number. And their columns that may contain text.
 */
const people = `
      with recursive links as (
        select c.conrelid as child, c.confrelid as parent, a.attname as name
        from pg_constraint c join lateral unnest(c.conkey, c.confkey) k (own, other) on true
        join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.own
        join pg_attribute p on p.attrelid = c.confrelid and p.attnum = k.other and p.attname = 'id'
        where c.contype = 'f'),
      hangs (oid) as (
        select unnest(array['app_public.leads', 'app_public.buyers']::regclass[])::oid
        union select l.child from hangs h join links l on l.parent = h.oid),
      about (oid) as (
        select oid from hangs
        union select 'app_public.users'::regclass
        union select l.child from links l where l.parent = 'app_public.users'::regclass and l.name = 'user_id'
        union select c.table_oid from columns c where c.type in ('app_public.email_address'::regtype, 'app_public.phone_number'::regtype)
          or c.type = 'text'::regtype and c.name in ('email', 'phone', 'recipient')),
      texts as (
        select c.* from columns c join about a on a.oid = c.table_oid join pg_type t on t.oid = c.type
        left join pg_type e on e.oid = t.typelem and t.typcategory = 'A'
        cross join lateral (select coalesce(nullif(t.typbasetype, 0), t.oid) as base) b
        where not c.generated and (t.typtype = 'c' or e.typtype = 'c'
          or b.base in ('text'::regtype, 'jsonb'::regtype, 'text[]'::regtype) and t.typname not in ('country_code', 'currency_code', 'language_code',
            'time_zone', 'slug', 'id_or_slug') and obj_description(t.oid, 'pg_type') !~ '(^|\\n)@enum' is not false))`;

/** Personal data must be declared, so that it can be erased. */
export const personalRules: Rule[] = [
  {
    name: "personal-column",
    why: "Erasing a person finds personal data by the comments of columns; an undeclared text would be kept.",
    query: `${people}
      select x.object, 'Write \`@personal\` into its comment if it may contain data of a person, \`@personal contract\` if the law requires it with '
        'contracts and payments, or \`@impersonal\` if it cannot contain any.' as write
      from texts x where pg_temp.tag(x.comment, 'personal') is null and pg_temp.tag(x.comment, 'impersonal') is null`,
  },
  {
    name: "personal-tag",
    why: "An unknown reason would keep personal data forever.",
    query: `
      select c.object, 'Write exactly one of \`@personal\`, \`@personal contract\`, \`@personal objection\` and \`@impersonal\`.' as write
      from columns c where pg_temp.tag(c.comment, 'personal') not in ('', 'contract', 'objection')
        or pg_temp.tag(c.comment, 'personal') is not null and pg_temp.tag(c.comment, 'impersonal') is not null`,
  },
];
