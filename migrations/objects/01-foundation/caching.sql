-- Exact caching: whether a cached answer is still current, without executing the query again. Each commit that changes
-- a record increments the revision of its stream, with or without events; data read from a stream at a revision are
-- valid for as long as the revision does not change.

create function app_private.look_at_viewers(user_ids uuid[], session_ids uuid[], token_sha256s bytea[],
  organization_ids uuid[]) returns table (number int, own text, whole text, reached text)
language plpgsql volatile security definer rows 10 set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  -- Maximum number of streams that are checked.
  most_streams constant int := 20000;
  viewer record;
  access text;
  -- A database restored to an earlier time has another timeline, so its revisions are different.
  timeline constant text := case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
    end;
begin
  -- Before anything is read, so that whatever was committed until then is seen.
  reached := case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end;
  -- Records that are due must expire before anybody reads them.
  if exists (select from app_hidden.deadlines d where d.due_at <= now()) then
    return;
  end if;
  select case when count(*) <= most_streams then bit_xor(uuid_hash_extended(c.stream_id, c.revision))::text end
    into whole from (select * from app_private.event_counters limit most_streams + 1) c;
  for viewer in
    select v.user_id, v.session_id, v.token_sha256, v.organization_id, v.number
    from unnest(user_ids, session_ids, token_sha256s, organization_ids)
      with ordinality v (user_id, session_id, token_sha256, organization_id, number)
  loop
    if viewer.user_id is not null and (
      not app_private.token_holds(viewer.user_id, viewer.session_id, viewer.token_sha256)
      or exists (select from app_public.organization_user_connections m
        where m.user_id = viewer.user_id and m.second_factor_due_at <= now())) then
      continue;
    end if;
    select string_agg(format('%s %s', v.party_id, v.version), ',' order by v.party_id) into access
      from app_private.access_versions v
      where v.party_id in (viewer.user_id, '00000000-0000-0000-0000-000000000000')
        or v.party_id in (select m.organization_id from app_public.organization_user_connections m
          where m.user_id = viewer.user_id);
    perform app_private.set_claims(jsonb_build_object('user_id', viewer.user_id,
      'organization_id', viewer.organization_id));
    access := concat_ws(' ', timeline, access);
    select concat(access, '|', string_agg(format('%s %s', p.id, c.revision), ',' order by p.id)) into own
      from (select app_private.viewer_deadline_organizations() as id union select viewer.user_id) p
      left join app_private.event_counters c on c.stream_id = p.id;
    number := viewer.number;
    return query select number, own, whole || concat('|', access), reached;
  end loop;
  perform app_private.set_claims('{}');
end $$;
comment on function app_private.look_at_viewers(uuid[], uuid[], bytea[], uuid[]) is
  E'@step The tokens were verified when their requests came in.\n\nOf those viewers whose tokens hold without reserve, '
  'by their place: the revisions of the organizations that they have a part in (`own`) and of all streams (`whole`; '
  'null where there are too many), each with the versions of their access; and how far both reach in the log. No row '
  'while something is due.';
grant execute on function app_private.look_at_viewers to plat_authenticator;

-- Reads of tables other than records that change rarely.
create function app_private.tg__count_change() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- The argument is the column with the stream; without one, it has no stream.
  insert into app_private.event_batches (stream_id)
    values (case when tg_nargs = 0 then '00000000-0000-0000-0000-000000000000'
      else (to_jsonb(case when tg_op = 'DELETE' then old else new end) ->> tg_argv[0])::uuid end)
    on conflict do nothing;
  return null;
end $$;
comment on function app_private.tg__count_change() is
  'Has the commit count up the revision of a stream, by a row that is no record.';

create function app_private.what_is_read() returns table (name text, kind text, text text, is_definer boolean,
  is_counted boolean, is_constant boolean, is_private boolean)
language sql stable security definer rows 2000 set search_path = pg_catalog, pg_temp as $$
  with names as (
    select oid, nspname from pg_namespace where nspname in ('app_public', 'app_hidden', 'app_private')
  ), written as materialized (
    select distinct lower(m[1]) as name from pg_proc p join names n on n.oid = p.pronamespace
    cross join lateral regexp_matches(p.prosrc,
      '\m(?:insert\s+into|update|delete\s+from|merge\s+into|truncate)\s+(app_\w+\.\w+)', 'gi') m
  )
  select format('%s.%s', n.nspname, p.proname) as name, 'function' as kind,
    -- look_at_viewers checks data that depends on the clock.
    string_agg(case when obj_description(p.oid) ~ '@lookedAt' then '' else p.prosrc end, E'\n') as text,
    bool_or(p.prosecdef) as is_definer, false as is_counted, false as is_constant, false as is_private
  from pg_proc p join names n on n.oid = p.pronamespace where p.prorettype <> 'trigger'::regtype group by 1
  union all
  select format('%s.%s', n.nspname, c.relname), case when c.relkind in ('v', 'm') then 'view' else 'table' end,
    concat_ws(E'\n', case when c.relkind in ('v', 'm') then pg_get_viewdef(c.oid) end,
      (select string_agg(pg_get_expr(p.polqual, p.polrelid), E'\n') from pg_policy p
        where p.polrelid = c.oid and p.polcmd in ('r', '*'))),
    false,
    c.oid = 'app_public.events'::regclass
      or exists (select from app_hidden.record_types r where r.table_name = c.relname and n.nspname = 'app_public'
      and r.event_condition is null)
      and (select count(*) from pg_trigger t where t.tgrelid = c.oid and t.tgname like '\_950\_events\_%'
        and t.tgenabled = 'O') = 3
      -- For each row, after update and delete, and insert unless a record is inserted at the same time.
      or exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgenabled = 'O'
        and t.tgfoid = to_regproc('app_private.tg__count_change') and t.tgtype & 27 = 25
          and (t.tgtype & 4 = 4 or obj_description(c.oid) ~ '@insertedWithRecord')),
    not exists (select from written w where w.name = format('%s.%s', n.nspname, c.relname))
      and not exists (select from pg_roles r where r.rolname like 'plat\_%' and r.oid <> c.relowner and not r.rolsuper
        and (has_any_column_privilege(r.oid, c.oid, 'INSERT') or has_any_column_privilege(r.oid, c.oid, 'UPDATE')
          or has_table_privilege(r.oid, c.oid, 'DELETE'))),
    exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id' and a.attnotnull)
      -- Rows that belong to two organizations are visible to both.
      and not exists (select from app_hidden.record_types r where r.table_name = c.relname
        and r.other_party is not null)
      and not exists (select from pg_policy p where p.polrelid = c.oid and p.polcmd in ('r', '*')
        and (p.polroles = '{0}' or 'plat_anonymous'::regrole = any (p.polroles)))
  from pg_class c join names n on n.oid = c.relnamespace where c.relkind in ('r', 'p', 'v', 'm', 'f')
  order by name, kind
$$;
comment on function app_private.what_is_read() is
  'What a statement can read, for src/database/statementReads.ts: functions with their bodies, views with their '
  'definitions, tables with the conditions of their SELECT policies. is_counted: each change increments the revision '
  'of a stream; is_constant: nothing changes it; is_private: its rows belong to organizations, and visitors see none.';
grant execute on function app_private.what_is_read() to plat_authenticator;
