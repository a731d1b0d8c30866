-- One stream of what happened: every change of a record writes an event in the same transaction. A statement writes
-- the events of all its rows at once, to pending_events; at commit each stream (an organization, or a user outside of
-- one) takes over and numbers its new events without gaps, so that the sequence follows the order of commits and each
-- event is written to its table, and to the indexes of that, once.
--
-- Many rows at once: what each row of a statement costs. No rule changes here; those that can be are conditions of
-- triggers or hold for all rows of a statement in one query.
--
-- PERF: the columns of a row become JSON as those of a subquery, in the order in which jsonb keeps them: their names
-- are known then and not looked at for each row, and there is no merging. A third less than jsonb_build_object takes
-- for 40 columns.

grant select on app_public.events to plat_user, plat_anonymous;

comment on column app_public.events.stream_id is
  E'@behavior -*\n\nThe stream that numbers the event: its organization, or its user.';
comment on column app_public.events.sequence is E'@behavior -*\n\nPlace in the stream.';
comment on column app_public.events.name is 'Event name, such as lead.created.';
comment on column app_public.events.dispatched_at is 'When the event was dispatched to webhooks and workflows.';
comment on column app_public.events.actor_type is 'Kind of actor that caused the event.';
comment on column app_public.events.channel is 'Channel through which the change was made.';
comment on column app_public.events.request_id is
  'Value of `X-Request-Id` of the request that made the change; null if a background job did.';
comment on column app_public.events.changes is
  E'@personal\n@masked\n\nThe changed fields: {field: [before, after]}; null for a new record.';
comment on column app_public.events.data is E'@personal\n@masked\n\nThe record after the change.';
comment on column app_public.events.archived_at is
  'When its content was moved to the archive, where `data` and `changes` are read from; null if it was not.';
comment on column app_public.events.transaction_id is E'@behavior -*\n\nThe transaction that wrote the event.';
comment on column app_public.events.organization_id is
  E'@filter organizationIds\n@formerFilter organizationId Removed after 2028-01-01.\n\n'
  'Id of the organization that the event belongs to; `sequence` counts within it.';
comment on column app_public.events.project_id is
  E'@filter projectIds\n@formerFilter projectId Removed after 2028-01-01.\n\n'
  'Id of the project that the changed record belongs to; null if it belongs to none.';
comment on column app_public.events.subject_type is E'@filter\n\nType of the changed record, such as lead.';
comment on column app_public.events.subject_id is
  E'@filter subjectIds\n@formerFilter subjectId Removed after 2028-01-01.\n\nId of the changed record.';
comment on column app_public.events.occurred_at is E'@filter\n\nWhen the transaction that made the change began.';
comment on column app_public.events.actor_id is E'@behavior -*\n\nThe user who caused it.';
comment on column app_public.events.caused_by_id is E'@behavior -*\n\nThe event that caused this one.';
comment on column app_public.events.workflow_depth is
  E'@behavior -*\n\nHow many executions of workflows led to the event, each through what the one before did.';

select app_private.describe_enum('events_sort', 'Named sort order of events, within each organization.', array[
  ['OLDEST', 'In the order in which they were committed.'],
  ['NEWEST', 'The last one that was committed first.']
]);

-- The policy of events shows more than the feed does, such as those of records of a project that one is affiliated
-- with, and the count of the feed counted them.
comment on table app_public.events is $$
@portfolio org.member
@publicRows
@defaultOrder organization_id asc, sequence asc
@sort OLDEST organization_id asc, sequence asc
@sort NEWEST organization_id desc, sequence desc
@foreignKey (organization_id) references organizations (id)|@fieldName organization|@backwardBehavior -*
@foreignKey (project_id) references projects (id)|@fieldName project|@backwardBehavior -*
@foreignKey (actor_id) references users (id)|@fieldName actor|@backwardBehavior -*
@foreignKey (caused_by_id) references events (id)|@fieldName causedBy|@backwardBehavior -*

An immutable record of one change. Events are never deleted; personal data in them can be erased (see `erasedAt`).$$;

comment on table app_private.event_counters is 'The last sequence number of each stream.';
comment on table app_private.event_batches is
  'The streams that the running transactions wrote to; empty when nothing runs.';
comment on table app_private.pending_events is
  'Events of the running transactions, which become rows of events at commit. Unlogged: nothing here outlives its '
  'transaction.';
comment on column app_private.pending_events.changes is '@personal';
comment on column app_private.pending_events.data is '@personal';
comment on table app_private.event_names is
  'Names of changes beyond created, updated, status_changed and deleted: a column that changed (to a value; an empty '
  'one: to null) and what that is called.';

create function app_private.tg_events__immutable() returns trigger
language plpgsql volatile as $$
declare
  unmoved app_public.events;
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  -- The clock of a sandbox. PERF: tens of thousands of rows at once, which take ten times as long as JSON.
  if tg_op = 'UPDATE' and app_private.is_turning() then
    unmoved := new;
    unmoved.occurred_at := old.occurred_at;
    unmoved.dispatched_at := old.dispatched_at;
    unmoved.erased_at := old.erased_at;
    unmoved.archived_at := old.archived_at;
    if unmoved *= old then
      return new;
    end if;
  end if;
  -- Personal data are replaced in place, and old content is archived; the event keeps its row and its number, and
  -- says so.
  if tg_op = 'UPDATE' and app_private.is_erasing() and to_jsonb(new) - array['data', 'changes', 'erased_at',
      'archived_at'] = to_jsonb(old) - array['data', 'changes', 'erased_at', 'archived_at'] then
    insert into app_private.event_batches (stream_id) values (new.stream_id) on conflict do nothing;
    return new;
  end if;
  raise exception 'events are never changed or deleted' using errcode = 'restrict_violation';
end $$;

create trigger _100_no_delete before delete on app_public.events
  for each row execute function app_private.tg_events__immutable();
create trigger _100_no_truncate before truncate on app_public.events
  for each statement execute function app_private.tg_events__immutable();

create function app_private.tg_event_batches__number() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  streams uuid[];
begin
  -- The first of the transaction's batches numbers them all.
  with done as (
    delete from app_private.event_batches b where b.transaction_id = pg_current_xact_id()::text::bigint
      returning b.stream_id)
  select array_agg(d.stream_id) into streams from done d;
  perform app_private.number_events();
  if app_private.is_dry_run() then
    return null;
  end if;
  -- Changes without an event count, too.
  insert into app_private.event_counters as c (stream_id, last_sequence, revision)
    select s.id, 0, 1 from unnest(streams) s (id)
    where not exists (select from app_private.event_counters n
      where n.stream_id = s.id and n.xmin = pg_current_xact_id()::xid)
      -- A stream begins with an event, and one without is being removed.
      and (s.id = '00000000-0000-0000-0000-000000000000'
        or exists (select from app_private.event_counters n where n.stream_id = s.id))
    order by s.id
    on conflict (stream_id) do update set revision = c.revision + 1;
  return null;
end $$;
create constraint trigger _500_number after insert on app_private.event_batches
  deferrable initially deferred for each row execute function app_private.tg_event_batches__number();

-- PERF: one expression, which PostgreSQL puts in the place of the call: there are thousands when all tables get their
-- triggers.
create function app_private.json_value(type oid, base_type oid, alias text, column_name name) returns text
language sql stable as $$
  -- In the format of the API: decimals and long numbers as text, times in UTC with Z.
  select case
    when type in ('numeric'::regtype, 'bigint'::regtype) or base_type = 'numeric'::regtype
      then format('%s.%I::text', alias, column_name)
    when type = 'timestamptz'::regtype
      then format('to_char(%s.%I at time zone ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"'')', alias, column_name)
    else format('%s.%I', alias, column_name) end
$$;

-- Events. PERF: keys in the order in which jsonb keeps them, in one call as long as 50 columns do, need no sorting and
-- merging: half the time. Changes are joined from those columns that changed, without a query per row.
create function app_private.column_json(relation oid, alias text, columns name[]) returns text
language sql stable as $$
  select '(select to_jsonb(d) from (select '
    || string_agg(format('%s as %I', app_private.json_value(k.atttypid, k.typbasetype, alias, k.attname), k.key),
      E',\n    ' order by length(k.key), k.key) || ') d)'
  from (
    select a.attname, a.atttypid, t.typbasetype, app_hidden.camel(a.attname) as key
    from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = relation and a.attname = any (columns)
  ) k
$$;
comment on function app_private.column_json(oid, text, name[]) is 'A row as JSON with the names of the API.';

create function app_private.event_statement(relation regclass, subject text, operation text,
  silent boolean default false) returns text
language plpgsql stable as $$
declare
  table_name text := (select relname from pg_class where oid = relation);
  column_names name[];
  columns_changed text;
  name_of_change text;
  stream text;
  plain text;
  told text := 'new_rows';
  of_type app_hidden.record_types;
begin
  select r.* into of_type from app_hidden.record_types r join pg_class c on c.relname = r.table_name
    where c.oid = relation;
  if of_type.other_party is not null then
    -- Records of two organizations have an event in both streams; only one if these are the same.
    told := format('(select r.*, p.party_id from new_rows r cross join lateral (select r.organization_id as party_id '
      'union select r.%I) p where p.party_id is not null)', of_type.other_party);
  elsif of_type.event_condition is not null then
    told := format('(select * from new_rows where %s)', of_type.event_condition);
  end if;
  -- Columns that only serve the machine stay out; so do those whose comment says @secret.
  select array_agg(a.attname order by a.attnum) into column_names from pg_attribute a
    where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attname not in ('version', 'updated_at')
      and coalesce(col_description(relation, a.attnum), '') !~ '@secret';
  stream := 'coalesce(' || concat_ws(', ', case when of_type.other_party is not null then 'n.party_id' end,
    case when table_name = 'organizations' then 'n.id' when 'organization_id' = any (column_names)
      then 'n.organization_id' end,
    case when 'user_id' = any (column_names) then 'n.user_id' end,
    'n.id') || ')';
  if silent then
    return format('insert into app_private.event_batches (stream_id)
      select distinct %s from %s n on conflict do nothing', stream,
      case when operation = 'delete' then replace(told, 'new_rows', 'old_rows') else told end);
  end if;
  if operation = 'update' then
    select string_agg(format('case when o.%1$I is distinct from n.%1$I then jsonb_build_object(%2$L, '
      'jsonb_build_array(%3$s, %4$s)) else ''{}'' end',
        a.attname, app_hidden.camel(a.attname), app_private.json_value(a.atttypid, t.typbasetype, 'o', a.attname),
          app_private.json_value(a.atttypid, t.typbasetype, 'n', a.attname)), E'\n    || ' order by a.attnum)
      into columns_changed from pg_attribute a join pg_type t on t.oid = a.atttypid
      where a.attrelid = relation and a.attname = any (column_names);
    select 'case when false then null '
      || coalesce(string_agg(format('when o.%1$I is distinct from n.%1$I%2$s then %3$L ', e.column_name,
        case when e.value = '' then format(' and n.%I is null', e.column_name)
          when e.value is not null then format(' and n.%I::text = %L', e.column_name, e.value) end, e.name), ''
          order by e.value nulls last), '')
      || case when 'deleted_at' = any (column_names)
        then 'when o.deleted_at is null and n.deleted_at is not null then ''deleted'' ' else '' end
      || case when 'status' = any (column_names) then 'when o.status is distinct from n.status then ''status_changed'' '
        else '' end
      || 'else ''updated'' end'
      into name_of_change from app_private.event_names e where e.subject = event_statement.subject
        and e.column_name = any (column_names);
  end if;
  -- The rows in the order in which they were written, those that changed in the order of ids.
  plain := format('insert into app_private.pending_events (stream_id, organization_id, project_id, name, subject_type,
    subject_id, actor_type, channel, request_id, caused_by_id, changes, data)
      select %s, %s, %s, %L || ''.'' || %s, %L, n.id, _actor_type, _channel, _request_id, _caused_by, %s, %s',
    stream,
    case when of_type.other_party is not null then 'n.party_id' when table_name = 'organizations' then 'n.id'
      when 'organization_id' = any (column_names) then 'n.organization_id' else 'null::uuid' end,
    case when 'project_id' = any (column_names) then 'n.project_id' when table_name = 'projects' then 'n.id'
      else 'null::uuid' end,
    subject,
    case operation when 'insert' then '''created''' when 'delete' then '''deleted''' else name_of_change end,
    subject,
    case when operation = 'update' then columns_changed else 'null::jsonb' end,
    app_private.column_json(relation, 'n', column_names));
  return case operation
    when 'insert' then format('
  -- PERF: if thousands of rows are written at the end of a transaction, they are numbered as they are written, which
  -- halves the work; the stream waits for the commit in either case.
  if app_hidden.setting(''numbers_at_once'') = ''on'' then
    _streams := array(select distinct %1$s from %3$s n limit 2);
    if cardinality(_streams) = 1 then
      perform app_private.number_events();
      _amount := (select count(*) from %3$s n);
      insert into app_private.event_counters as c (stream_id, last_sequence) values (_streams[1], _amount)
        on conflict (stream_id) do update set last_sequence = c.last_sequence + excluded.last_sequence,
          revision = c.revision + 1 returning last_sequence into _last;
      %4$s, _last - _amount + row_number() over () from %3$s n;
      insert into app_private.event_batches (stream_id) values (_streams[1]) on conflict do nothing;
      return null;
    end if;
  end if;
  with written as (%2$s from %3$s n returning stream_id)
  insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing',
    stream, plain, told, replace(replace(plain, 'app_private.pending_events', 'app_public.events'), 'changes, data)',
      'changes, data, sequence)'))
    when 'delete' then format('with written as (%s from %s n order by n.id returning stream_id)
  insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing',
    plain, replace(told, 'new_rows', 'old_rows'))
    -- PERF: a full join, which is never a nested loop. The plan is kept from the first statement, which mostly changed
    -- one row, and would compare each row of a later one with each.
    else format('with written as (%s from %s n full join old_rows o on o.id = n.id where case when n.id is null
      then false else row(%s) is distinct from row(%s) end order by n.id returning stream_id)
  insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing%s',
    plain, told,
      (select string_agg(format('o.%I', c), E',\n    ') from unnest(column_names) c),
      (select string_agg(format('n.%I', c), E',\n    ') from unnest(column_names) c),
      -- Secret columns have no events, but functions read them.
      (select format(';
  insert into app_private.event_batches (stream_id)
    select distinct %s from %s n full join old_rows o on o.id = n.id
    where case when n.id is null then false else row(%s) is distinct from row(%s) end
    on conflict do nothing', stream, told, string_agg(format('o.%I', a.attname), ', '),
          string_agg(format('n.%I', a.attname), ', '))
        from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
          and a.attgenerated = '' and a.attname <> all (column_names || '{version,updated_at}'::name[])
        having count(*) > 0))
    end;
end $$;
comment on function app_private.event_statement(regclass, text, text, boolean) is
  'The statement that writes one event per row of new_rows (and old_rows) of a table, by the columns that it has now; '
  'silent: only that their streams have changed.';

create function app_private.record_events(relation regclass, subject text) returns void
language plpgsql volatile as $$
declare
  table_name text := (select relname from pg_class where oid = relation);
  operation text;
begin
  -- PERF: a trigger function of the table's own keeps the plan of its statement; one for all tables would have to build
  -- and plan the statement each time, ten times as slow for a single row.
  foreach operation in array array['insert', 'update', 'delete'] loop
    execute format('create or replace function app_private.%I() returns trigger
      language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as %L',
      'tg_' || table_name || '__event_' || operation,
      format('
declare
  _actor_type text := coalesce(app_hidden.setting(''actor_type''),
    case when app_public.current_user_id() is null then ''SYSTEM'' when app_hidden.setting(''token_id'') is not null
      then ''ACCESS_TOKEN'' else ''USER'' end);
  _channel text := coalesce(app_hidden.setting(''channel''), ''SYSTEM'');
  _request_id text := app_hidden.setting(''request_id'');
  _caused_by uuid := app_hidden.setting(''caused_by'')::uuid;
  _streams uuid[];
  _amount bigint;
  _last bigint;
begin
  -- Erased values are not included.
  if app_private.is_erasing() then
    %s;
    return null;
  end if;
  %s;
  return null;
end', app_private.event_statement(relation, subject, operation, silent => true),
      app_private.event_statement(relation, subject, operation)));
    execute format('create or replace trigger %I after %s on %s %s for each statement execute function '
      'app_private.%I()',
      '_950_events_' || operation, operation, relation,
      case operation when 'insert' then 'referencing new table as new_rows' when 'delete'
        then 'referencing old table as old_rows'
        else 'referencing old table as old_rows new table as new_rows' end,
      'tg_' || table_name || '__event_' || operation);
  end loop;
end $$;
comment on function app_private.record_events(regclass, text) is
  'Lets a table join the stream of events, or brings its triggers up to the columns, @secret comments and event names '
  'that it has now.';

-- Masks. An event contains the whole record. For a masked column, readers get the result of its function for the
-- record with the value of the event. So there is one rule for the field and for its history.
create function app_private.mask_event(relation regclass) returns text[]
language plpgsql volatile as $$
declare
  table_name constant text := (select relname from pg_class where oid = relation);
  masked constant name[] := array(select a.attname from pg_attribute a where a.attrelid = relation and a.attnum > 0
    and not a.attisdropped and col_description(relation, a.attnum) ~ '(^|\n)@masked'
    and col_description(relation, a.attnum) !~ '@secret' order by a.attnum);
  members constant text[] := array(select app_hidden.camel(c) from unnest(masked) c);
  given text;
begin
  if masked = '{}' then
    return null;
  end if;
  -- Without such a function, nobody reads the column.
  select string_agg(format('
      || case when value ? %1$L and %2$s is distinct from r.%3$I then jsonb_build_object(%1$L, %2$s) else ''{}'' end',
      app_hidden.camel(c), case when p.oid is null then format('null::%s', format_type(a.atttypid, a.atttypmod))
        else format('app_public.%I(r)', p.proname) end, c), '')
    into given
    from unnest(masked) c join pg_attribute a on a.attrelid = relation and a.attname = c
    left join pg_proc p on p.pronamespace = 'app_public'::regnamespace and p.proname = table_name || '_' || c
      and p.pronargs = 1 and p.proargtypes[0] = (select reltype from pg_class where oid = relation);
  execute format('create or replace function app_hidden.%I(record_id uuid, value jsonb, record jsonb) returns jsonb
    language plpgsql stable as %L', table_name || '_event_value', format('
declare
  r %1$s;
begin
  if jsonb_strip_nulls(jsonb_build_object(%2$s)) = ''{}'' then
    return value;
  end if;
  -- With the rights of the viewer. If the record was deleted, or only auditors may read about it, the row is taken
  -- from the event.
  select %7$s into r from %1$s t where t.id = record_id;
  if r.id is null then
    r := jsonb_populate_record(null::%1$s, app_hidden.columns_of(%3$L, record));
  end if;
  r := jsonb_populate_record(r, jsonb_build_object(%4$s));
  return value%5$s;
exception when data_exception or integrity_constraint_violation then
  -- A value from before the type got its present limits.
  return value || jsonb_build_object(%6$s);
end ', relation,
    (select string_agg(format('%1$L, value -> %1$L', m), ', ') from unnest(members) m),
    relation::text,
    (select string_agg(format('%L, value -> %L', c, app_hidden.camel(c)), ', ') from unnest(masked) c),
    given,
    (select string_agg(format('%L, null', m), ', ') from unnest(members) m),
    app_hidden.row_columns(relation, 't')));
  execute format('grant execute on function app_hidden.%I to plat_user, plat_anonymous', table_name || '_event_value');
  return members;
end $$;
comment on function app_private.mask_event(regclass) is
  'Makes the function that gives the viewer what they may read of the masked columns in an event of a table; returns '
  'the names of these in the API, null where there are none.';

create function app_hidden.columns_of(relation regclass, record jsonb) returns jsonb
language sql stable as $$
  select jsonb_object_agg(a.attname, record -> app_hidden.camel(a.attname)) from pg_attribute a
    where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
$$;
comment on function app_hidden.columns_of(regclass, jsonb) is
  'A record by the names of its columns that an event has by the names of the API.';

create function app_private.make_event_triggers() returns void
language sql volatile as $$
  select app_private.record_events(format('app_public.%I', r.table_name)::regclass, r.subject)
    from app_hidden.record_types r order by r.table_name
$$;

create function app_private.make_event_masks() returns void
language plpgsql volatile as $$
declare
  record_type record;
  members text[];
  values_of text := '';
  members_of text := '';
begin
  for record_type in select * from app_hidden.record_types r order by r.table_name loop
    members := app_private.mask_event(format('app_public.%I', record_type.table_name)::regclass);
    if members is not null then
      members_of := members_of || format(E'\n    when %L then %L::text[]', record_type.subject, members);
      values_of := values_of || format(E'\n    when %L then app_hidden.%I(subject_id, value, record)',
        record_type.subject, record_type.table_name || '_event_value');
    end if;
  end loop;
  execute format('create or replace function app_hidden.masked_members(subject_type text) returns text[]
    language sql immutable parallel safe as %L', format(E'\n  select case subject_type%s end\n', members_of));
  execute format('create or replace function app_hidden.event_value(subject_type text, subject_id uuid, value jsonb,
    record jsonb) returns jsonb language sql stable as %L',
    format(E'\n  select case subject_type%s\n    else value end\n', values_of));
  comment on function app_hidden.masked_members(text) is
    'The members of an event''s record that are masked columns; null where none is.';
  comment on function app_hidden.event_value(text, uuid, jsonb, jsonb) is
    'Members of a record by the names of the API, as an event has them, with null for what the viewer may not read. '
    'record: the whole record of the event.';
  grant execute on function app_hidden.masked_members, app_hidden.event_value to plat_user, plat_anonymous;
end $$;

create function app_private.subject_condition(kind app_hidden.record_types, id text) returns text
language sql stable as $$
  -- As the viewer: the policy of the record's own table decides.
  select format('from app_public.%I r where r.id = %s', kind.table_name, id)
    || case when kind.event_permission is null then '' else format('
        and (r.organization_id = any ((select app_hidden.viewer_organizations(%1$L))::uuid[])
          or r.project_id = any ((select app_hidden.viewer_projects(%1$L))::uuid[]))', kind.event_permission) end
$$;
comment on function app_private.subject_condition(app_hidden.record_types, text) is
  'The query that finds the record that an event is about, where the viewer may see its events.';

create function app_private.make_event_readers() returns void
language plpgsql volatile as $$
declare
  branches text;
begin
  select string_agg(format('
    when %L then
      return exists (select %s);', r.subject, app_private.subject_condition(r, 'sees_subject.subject_id')), ''
      order by r.subject)
    into branches from app_hidden.record_types r;
  -- PERF: the function keeps a generic plan. A custom plan for each event would take ten times as long as the
  -- execution.
  execute format('create or replace function app_hidden.sees_subject(subject_type text, subject_id uuid) returns boolean
    language plpgsql stable set plan_cache_mode = force_generic_plan as %L', format('
begin
  case subject_type%s
    else
      return false;
  end case;
end ', branches));
  comment on function app_hidden.sees_subject(text, uuid) is
    'Whether the viewer may see the record that an event is about.';
  grant execute on function app_hidden.sees_subject to plat_user, plat_anonymous;
end $$;

-- A single policy, so that the record of an event is only read if the cheap conditions are false.
create function app_private.event_condition(of_subject text) returns text
language sql immutable as $$
  select format($c$organization_id = any (app_hidden.viewer_organizations('audit.read'))
    -- Outside of an organization, events are of the user alone: colleagues do not read when somebody signed in.
    or (((stream_id = app_public.current_user_id() and app_hidden.has_whole_account())
        or organization_id = any (app_hidden.viewer_organizations('org.member'))
        or project_id = any (app_hidden.viewer_projects('project.read')))
      -- Which mails a colleague gets is not for colleagues to read.
      and subject_type <> 'member'
      -- Each of two organizations reads its own copy of an event about both.
      and (subject_type not in ('affiliation', 'affiliation_invite')
        or organization_id = any (app_hidden.viewer_organizations('org.member')))
      and %s)$c$, of_subject)
$$;
comment on function app_private.event_condition(text) is
  'The condition under which a viewer sees an event, with the one about its subject.';

create function app_private.make_event_policy(joined text[]) returns void
language plpgsql volatile as $$
declare
  branches text;
begin
  -- PERF: a scalar subquery is answered by the key of the record, and its sets once for the statement. Written as
  -- exists, the planner would read all records of the kind into a hash table before the first event.
  select string_agg(format('
        when %L then (select true %s)', r.subject, app_private.subject_condition(r, 'events.subject_id')), ''
      order by array_position(joined, r.subject))
    into branches from app_hidden.record_types r where r.subject = any (joined);
  execute format('create policy auditors_and_seers_of_subject on app_public.events for select to plat_user
  using (%s)', regexp_replace(regexp_replace(app_private.event_condition(format('case subject_type%s
        else app_hidden.sees_subject(subject_type, subject_id) end', branches)),
      -- Once for the statement.
      'any \((app_hidden\.viewer_\w+\(''[\w.]+''\))\)', 'any ((select \1)::uuid[])', 'g'),
    '(app_public\.current_user_id|app_hidden\.has_whole_account)\(\)', '(select \1())', 'g'));
  comment on policy auditors_and_seers_of_subject on app_public.events is
    '@perRow Events are found by their index first; what of them is seen depends on the record that each is about.';
end $$;

create function app_private.make_event_view() returns void
language plpgsql volatile as $$
begin
  execute format('create function app_hidden.sees_event(organization_id uuid, stream_id uuid, project_id uuid,
    subject_type text, subject_id uuid) returns boolean
    language plpgsql stable as %L',
    format(E'\n#variable_conflict use_variable\nbegin\n  return %s;\nend ',
      app_private.event_condition('app_hidden.sees_subject(subject_type, subject_id)')));
  comment on function app_hidden.sees_event(uuid, uuid, uuid, text, uuid) is
    'Whether the viewer sees an event, as the policy of events says.';
  -- Like the view with the policy, but of all rows that the function lets through.
  execute format('create view app_hidden.seen_events with (security_barrier = true) as %s and app_hidden.sees_event(
    r.organization_id, r.stream_id, r.project_id, r.subject_type, r.subject_id)',
    rtrim(pg_get_viewdef('app_hidden.masked_events'::regclass), ';'));
  comment on view app_hidden.seen_events is
    E'@decides\n\nThe same rows as masked_events, for few events: each is looked up for itself, by a function, instead '
    'of by a policy, whose plan joins all kinds of records and takes half a millisecond to start.';
  revoke execute on function app_hidden.sees_event from plat_anonymous;
  grant execute on function app_hidden.sees_event to plat_user;
  grant select on app_hidden.seen_events to plat_user;
end $$;
comment on function app_private.make_event_view() is
  'Makes the view of the events that the viewer sees which is faster for few events than that with the policy.';
comment on function app_private.make_event_policy(text[]) is
  'Makes the policy of events. joined: the kinds of records that the query looks for itself; of all others it calls '
  'app_hidden.sees_subject for each event.';
comment on function app_private.make_event_readers() is
  'Makes the function that says of the events of all records whether the viewer may see what they are about.';
comment on function app_private.make_event_triggers() is
  'Gives all records the triggers that write their events.';
comment on function app_private.make_event_masks() is
  'Makes the functions that mask the events of all records for their readers.';

create function app_public.events_data(e app_public.events) returns jsonb
language sql stable as $$ select app_hidden.event_value(e.subject_type, e.subject_id, e.data, e.data) $$;
comment on function app_public.events_data is
  E'@notNull\n\nField values after the change; null for fields that the viewer may not read.';

create function app_public.events_changes(e app_public.events) returns jsonb
language sql stable as $$
  select case when e.changes ?| app_hidden.masked_members(e.subject_type)
    then app_hidden.event_changes(e.subject_type, e.subject_id, e.changes, e.data) else e.changes end
$$;
comment on function app_public.events_changes is
  'The changed fields that the viewer may read: {field: [before, after]}; null for a new record.';

create function app_hidden.event_changes(subject_type text, subject_id uuid, changes jsonb, record jsonb) returns jsonb
language sql stable as $$
  select changes - coalesce((
    select array_agg(given.key) from (
      select jsonb_object_agg(c.key, c.value -> 0) as before, jsonb_object_agg(c.key, c.value -> 1) as after
      from jsonb_each(changes) c where c.key = any (app_hidden.masked_members(subject_type))) pair
    cross join lateral (select app_hidden.event_value(subject_type, subject_id, pair.before, record) as before,
      app_hidden.event_value(subject_type, subject_id, pair.after, record) as after) seen
    cross join lateral jsonb_each(pair.before) given
    where seen.before -> given.key is distinct from given.value
      or seen.after -> given.key is distinct from pair.after -> given.key), '{}')
$$;
comment on function app_hidden.event_changes(text, uuid, jsonb, jsonb) is
  'The changes of an event without those whose value, before or after, the viewer may not read.';
grant execute on function app_public.events_data, app_public.events_changes, app_hidden.event_changes to plat_user,
  plat_anonymous;

create function app_public.events_sequence(e app_public.events) returns text
language sql stable as $$ select e.sequence::text $$;
grant execute on function app_public.events_sequence to plat_user, plat_anonymous;
comment on function app_public.events_sequence is
  E'@notNull\n\nStrictly increasing per organization, without gaps, in the order of commits.';

-- In SQL, so that it is inlined and the feed begins at its place in the index.
create function app_public.events_filter_after_sequence(e app_public.events, value text) returns boolean
language sql stable as $$ select e.sequence > app_hidden.to_sequence(value) $$;

create function app_public.events_filter_names(e app_public.events, value text[]) returns boolean
language sql stable as $$
  select e.name = any (value) or split_part(e.name, '.', 1) || '.*' = any (value) or '*' = any (value)
$$;
grant execute on function app_public.events_filter_after_sequence, app_public.events_filter_names to plat_user,
  plat_anonymous;
comment on function app_public.events_filter_after_sequence is
  E'@filter afterSequence\n\nOnly events after this sequence number.';
comment on function app_public.events_filter_names is
  E'@filter names\n\nEvent names, such as lead.created, or patterns, such as lead.* or *.';

create function app_private.take_numbers(stream_id uuid, amount bigint) returns bigint
language plpgsql volatile as $$
declare
  -- Above all numbers of streams, and of this transaction alone.
  provisional constant bigint := 4611686018427387904
    + ((pg_current_xact_id()::text::bigint & ((1::bigint << 40) - 1)) << 20);
  result bigint;
begin
  if app_private.is_dry_run() then
    -- The counter's row stays locked until the transaction ends, so a transaction without events must not lock it.
    return (select coalesce(max(e.sequence), provisional) + amount from app_public.events e
      where e.stream_id = take_numbers.stream_id and e.sequence > provisional and e.sequence < provisional + (1 << 20));
  end if;
  insert into app_private.event_counters as c (stream_id, last_sequence) values (stream_id, amount)
    on conflict on constraint event_counters_pkey do update
      set last_sequence = c.last_sequence + excluded.last_sequence, revision = c.revision + 1
    returning last_sequence into result;
  return result;
end $$;
comment on function app_private.take_numbers(uuid, bigint) is
  'Takes the given amount of numbers of a stream for its next events, and returns the last one. In a dry run they '
  'are provisional, and the stream is not locked.';

create function app_hidden.event_place(name text, subject_id uuid, id uuid) returns uuid
language sql stable as $$
  -- An id that was given, by a client or a move, was not made in this transaction.
  select case when name like '%.created' and subject_id < id
    and uuid_extract_timestamp(subject_id) >= date_trunc('milliseconds', now()) then subject_id else id end
$$;
comment on function app_hidden.event_place(text, uuid, uuid) is
  'Orders the events of this transaction, together with their ids. The creation of a record has the place of the '
  'record''s id, before all that its triggers have written until the event itself was written.';
grant execute on function app_hidden.event_place to plat_user;

create function app_private.number_events() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  batch record;
  last_number bigint;
begin
  -- In the order of streams: two transactions that write to the same two organizations take the counters in the same
  -- order.
  for batch in
    select p.stream_id, count(*) as amount from app_private.pending_events p
    where p.transaction_id = pg_current_xact_id()::text::bigint
    group by p.stream_id order by p.stream_id
  loop
    last_number := app_private.take_numbers(batch.stream_id, batch.amount);
    with taken as (
      delete from app_private.pending_events p where p.transaction_id = pg_current_xact_id()::text::bigint
        and p.stream_id = batch.stream_id returning p.*
    )
    insert into app_public.events (id, stream_id, organization_id, project_id, sequence, name, occurred_at,
      subject_type, subject_id, actor_id, actor_type, channel, request_id, changes, data, caused_by_id, transaction_id,
      workflow_depth)
      select t.id, t.stream_id, t.organization_id, t.project_id,
        last_number - batch.amount + row_number() over (order by t.place, t.id), t.name, t.occurred_at, t.subject_type,
        t.subject_id, t.actor_id, t.actor_type, t.channel, t.request_id, t.changes, t.data, t.caused_by_id,
        t.transaction_id, t.workflow_depth
      from (select e.*, app_hidden.event_place(e.name, e.subject_id, e.id) as place from taken e) t
      order by t.place, t.id;
  end loop;
end $$;
comment on function app_private.number_events() is
  'Numbers what the transaction has written to the streams of events so far; they wait for its end.';

create trigger _100_immutable before update of id, stream_id, organization_id, project_id, sequence, name, occurred_at,
  subject_type, subject_id, actor_id,
    actor_type, channel, request_id, changes, data, caused_by_id, transaction_id on app_public.events
  for each row execute function app_private.tg_events__immutable();

create function app_private.tg_events__wake() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- PERF: without anything that waits, the events need not be looked at.
  if not exists (select from app_private.workflow_waits) then
    return null;
  end if;
  insert into app_private.workflow_wakeups (execution_id, event_id)
    select distinct w.execution_id, n.id
    from new_rows n
    cross join lateral (values (n.subject_id), ((n.data ->> 'leadId')::uuid), ((n.data ->> 'buyerId')::uuid)) a (id)
    join app_private.workflow_waits w on w.about = a.id and app_hidden.event_matches(n.name, array[w.event])
    on conflict do nothing;
  if found then
    perform app_private.call_workflow_engine();
  end if;
  return null;
end $$;
create trigger _700_wake after insert on app_public.events referencing new table as new_rows for each statement
  execute function app_private.tg_events__wake();

create constraint trigger _610_call_triggers after insert on app_private.event_batches
  deferrable initially deferred for each row execute function app_private.tg_event_batches__call_triggers();
