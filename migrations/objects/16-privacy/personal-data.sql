-- Personal data are declared in comments of columns:
--
--   @personal            erased with the person
--   @personal contract   kept for the legal retention period of contracts and payments, then erased
--   @personal objection  kept, because it prohibits contacting the person
--   @impersonal          a text without personal data
--
-- `npm run check` requires one of these for every text column of a table about people, so that erasure covers new
-- tables.

create function app_private.personal_columns(relation regclass default null)
returns table (relation regclass, name name, kept text)
language sql stable as $$
  select c.oid::regclass, a.attname, coalesce(tag[1], '')
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join pg_description d on d.classoid = 'pg_class'::regclass and d.objoid = c.oid and d.objsubid = a.attnum
  cross join lateral regexp_match(d.description, '(?:^|\n)@personal(?:[ \t]+(\w+))?(?=\n|$)') tag
  where c.relkind in ('r', 'p') and not c.relispartition
    and tag is not null and (personal_columns.relation is null or c.oid = personal_columns.relation)
  order by c.oid::regclass::text, a.attnum
$$;
comment on function app_private.personal_columns(regclass) is
  'Columns with personal data, by their comments, of one table or of all; kept: the reason for retention, empty if '
  'none.';

create function app_private.erased_value(relation regclass, name name) returns text
language sql stable as $$
  select case
    when not a.attnotnull and e.value <> 'null'
      then format('case when t.%I is not null then %s end', a.attname, e.value)
    else e.value end
  from pg_attribute a join pg_type t on t.oid = a.atttypid
    cross join lateral (select coalesce(nullif(t.typbasetype, 0), t.oid) as base, a.attnotnull or exists (
      -- A check that wants a value, in some state of the record, also wants one after the erasure.
      select from pg_constraint k where k.conrelid = relation and k.contype = 'c' and a.attnum = any (k.conkey)
        and pg_get_constraintdef(k.oid) ~ format('\m%s IS NOT NULL|\mnum_nonnulls\(', a.attname)) as is_wanted) b
    cross join lateral (select case
      when b.base = 'jsonb'::regtype and b.is_wanted then '''{}''::jsonb'
      when b.base = 'jsonb'::regtype then 'null'
      when b.is_wanted and t.typname = 'email_address' then '''erased-'' || t.id || ''@erased.invalid'''
      when b.is_wanted and format_type(b.base, -1) like '%[]' then format('''{}''::%s', format_type(b.base, -1))
      when b.is_wanted and t.typname = 'slug' then '''erased-'' || t.id'
      -- Not null, even in a nullable column: a status may require a reason.
      when b.is_wanted or t.typname = 'long_text' then '''Erased'''
      else 'null' end as value) e
  where a.attrelid = relation and a.attname = erased_value.name
$$;
comment on function app_private.erased_value(regclass, name) is
  'SQL expression for the value of a column of a row t after its person was erased; it passes every check that the '
  'former value passed.';

create function app_private.erase_members(value jsonb, members text[]) returns jsonb
language sql immutable as $$
  select value || coalesce((select jsonb_object_agg(m, null) from unnest(members) m where value ? m), '{}')
$$;
comment on function app_private.erase_members(jsonb, text[]) is
  'A record of an event, or its changes, with null in place of members.';

create function app_private.is_erasing() returns boolean
language sql stable as $$ select coalesce(current_setting('plat.erasing', true), '') = 'on' $$;
comment on function app_private.is_erasing() is
  'Whether personal data is being erased: otherwise immutable values can then be replaced, and events do not '
  'contain the previous values.';

create function app_private.set_erasing(erasing boolean) returns void
language plpgsql volatile as $$
begin
  -- Texts that the transaction has written so far are erased, too.
  if erasing then
    perform app_private.number_events();
  end if;
  perform set_config('plat.erasing', case when erasing then 'on' else '' end, true);
  perform set_config('plat.service', case when erasing then 'on' else '' end, true);
  perform set_config('plat.clock', case when erasing then 'on' else '' end, true);
end $$;
comment on function app_private.set_erasing(boolean) is
  'Switches erasure mode on or off, in which archived projects and final states do not refuse changes.';
