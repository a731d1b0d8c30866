-- Reading the stream: the change feed of the viewer's organizations, and the history of each record.

create function app_private.viewer_sees_subject(subject_type text, subject_id uuid) returns boolean
language plpgsql stable as $$
declare
  record_type app_hidden.record_types;
  result boolean;
begin
  select * into record_type from app_hidden.record_types r where r.subject = subject_type;
  if record_type.table_name is null
    or not app_private.viewer_sees(format('app_public.%I', record_type.table_name)::regclass, subject_id) then
    return false;
  elsif record_type.event_permission is null then
    return true;
  end if;
  execute format('select app_hidden.project_can(r.project_id, r.organization_id, $2) from app_public.%I r '
    'where r.id = $1', record_type.table_name) into result using subject_id, record_type.event_permission;
  return coalesce(result, false);
end $$;
comment on function app_private.viewer_sees_subject(text, uuid) is
  'What app_hidden.sees_subject says, also where policies do not apply, in functions that run as the owner.';

create function app_hidden.deleted_records(_type anyelement) returns setof anyelement
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  relation constant regclass := pg_typeof(_type)::text::regclass;
  masked constant text[] := app_hidden.masked_columns(relation);
begin
  -- PERF: masked once per row; selecting the columns one by one would mask all of them for each.
  return query execute format(
    'select %s from %s t %s where t.deleted_at is not null and t.organization_id = any ((select '
    'app_hidden.viewer_organizations(''org.admin''))::uuid[])%s',
    (select string_agg(format(case when a.attname <> all (masked) then 't.%I' else '(m.shown).%I' end, a.attname), ', '
        order by a.attnum)
      from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped),
    relation,
    case when masked <> '{}' then 'cross join lateral (select app_hidden.masked(t) as shown offset 0) m' end,
    -- A relation that is never null leads to a record that is not deleted.
    (select string_agg(format(' and exists (select from %s o where o.id = t.%I and o.deleted_at is null)',
        k.confrelid::regclass, a.attname), '')
      from pg_constraint k join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
      join pg_attribute d on d.attrelid = k.confrelid and d.attname = 'deleted_at'
      where k.conrelid = relation and k.contype = 'f'
        and obj_description(k.oid, 'pg_constraint') ~ '(^|\n)@notNull(\n|$)'));
end $$;
comment on function app_hidden.deleted_records(anyelement) is
  'Deleted rows of the organizations that the viewer administers; without those of deleted records where the relation '
  'to the record is tagged @notNull.';

create function app_hidden.to_sequence(value text) returns bigint
language plpgsql stable as $$
begin
  if value !~ '^[0-9]{1,18}$' then
    perform app_hidden.fail('BAD_USER_INPUT', 'A sequence must be a whole number, as a string.',
      '{"field": "afterSequence"}');
  end if;
  return value::bigint;
end $$;
comment on function app_hidden.to_sequence(text) is 'A sequence number as the API spells it.';

-- record.events for every record, called by make_record.
create function app_private.make_event_history(table_name text) returns void
language plpgsql volatile as $$
begin
  if to_regclass(format('app_public.%I', table_name)) is null then
    return;
  end if;
  -- The events of a webhook are those that it subscribes to.
  if table_name in ('users', 'webhooks') then
    return;
  end if;
  execute format(
    'create function app_public.%I(r app_public.%I) returns setof app_public.events language sql stable rows 20 as
     $f$ select e.* from app_hidden.masked_events e where %s $f$',
    table_name || '_events', table_name, case table_name
      when 'projects' then 'e.project_id = r.id and e.organization_id = r.organization_id order by e.sequence desc, '
        'e.id desc'
      when 'organizations' then 'e.organization_id = r.id order by e.sequence desc, e.id desc'
      else 'e.subject_id = r.id order by e.id desc' end);
  execute format('grant execute on function app_public.%I to plat_user, plat_anonymous', table_name || '_events');
  execute format('comment on function app_public.%I is %L', table_name || '_events',
    case table_name
      when 'projects' then E'@permission audit.read\n@by project_id\n\nEvents of the project and of its records, '
        'latest first; null without the permission audit.read.'
      when 'organizations' then E'@permission audit.read\n@by organization_id\n\nEvents of the organization, latest '
        'first; null without the permission audit.read.'
      else E'@ordered\n\nEvents of the record, latest first.' end);
end $$;

select app_private.make_event_history(r.table_name) from app_hidden.record_types r;
