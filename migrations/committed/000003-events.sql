--! Previous: sha1:ddff8452fd4716d7702457833ee7701a267e1667
--! Hash: sha1:a9d1d12a8af6cb92cbe307d2f4f72b5117e024e2
--! Message: events

-- One stream of what happened: every change of a record writes an event in the same transaction. A statement writes
-- the events of all its rows at once; at commit each stream (an organization, or a user outside of one) numbers its
-- new events without gaps, so that the sequence follows the order of commits.

select app_private.create_enum('actor_type', 'Who caused an event.', array[
  ['USER', 'A signed-in user.'], ['ACCESS_TOKEN', 'A program with an access token of a user.'],
  ['BUYER', 'A buyer on their own deal.'], ['WORKFLOW', 'A step of a workflow.'],
  ['INTEGRATION', 'A connected application.'], ['SYSTEM', 'The service itself, or a visitor without a token.'],
  ['AI', 'The drafting service.']]);
select app_private.create_enum('event_channel', 'The way a change came in; tells loops of synchronisation from people.', array[
  ['UI', 'A user interface.'], ['API', 'The GraphQL API.'], ['SYSTEM', 'The service itself.'],
  ['IMPORT', 'A file import.'], ['INTEGRATION', 'A connected application.'], ['WEBHOOK', 'An inbound webhook.']]);

create table app_public.events (
  id uuid primary key default uuidv7(),
  stream_id uuid not null,
  organization_id uuid,
  project_id uuid,
  sequence bigint,
  name text not null,
  occurred_at timestamptz not null default now(),
  dispatched_at timestamptz,
  subject_type text not null,
  subject_id uuid not null,
  actor_id uuid default app_public.current_user_id(),
  actor_type app_public.actor_type not null,
  channel app_public.event_channel not null,
  request_id text,
  changes jsonb,
  data jsonb not null,
  caused_by_id uuid,
  transaction_id bigint not null default pg_current_xact_id()::text::bigint
);
create unique index events_sequence on app_public.events (stream_id, sequence) where sequence is not null;
create index events_unnumbered on app_public.events (transaction_id) where sequence is null;
create index events_subject on app_public.events (subject_id, id);
create index events_project on app_public.events (project_id, organization_id, sequence) where project_id is not null;
alter table app_public.events enable row level security;
comment on table app_public.events is E'@behavior -insert -update -delete\n\nSomething that happened to a record; never changed, never deleted.';
comment on column app_public.events.stream_id is E'@behavior -*\n\nThe stream that numbers the event: its organization, or its user.';
comment on column app_public.events.sequence is E'@behavior -*\n\nPlace in the stream.';
comment on column app_public.events.name is 'What happened, such as lead.created.';
comment on column app_public.events.occurred_at is 'When the transaction of the change began.';
comment on column app_public.events.dispatched_at is 'When the event was handed to webhooks and workflows.';
comment on column app_public.events.subject_type is 'The kind of record that changed, such as lead.';
comment on column app_public.events.subject_id is 'The record that changed.';
comment on column app_public.events.actor_type is 'Who caused it.';
comment on column app_public.events.channel is 'The way the change came in.';
comment on column app_public.events.request_id is 'The X-Request-Id of the request.';
comment on column app_public.events.changes is 'The changed fields: {field: [before, after]}; null for a new record.';
comment on column app_public.events.data is 'The record after the change.';
comment on column app_public.events.transaction_id is E'@behavior -*\n\nThe transaction that wrote the event.';

create table app_private.event_counters (
  stream_id uuid primary key,
  last_sequence bigint not null
);
alter table app_private.event_counters enable row level security;
comment on table app_private.event_counters is 'The last sequence number of each stream.';

create table app_private.event_batches (
  transaction_id bigint not null default pg_current_xact_id()::text::bigint,
  stream_id uuid not null,
  primary key (transaction_id, stream_id)
);
alter table app_private.event_batches enable row level security;
comment on table app_private.event_batches is 'The streams that the running transactions wrote to; empty when nothing runs.';

create table app_private.event_names (
  subject text not null,
  column_name text not null,
  value text,
  name text not null,
  unique nulls not distinct (subject, column_name, value)
);
alter table app_private.event_names enable row level security;
comment on table app_private.event_names is
  'Names of changes beyond created, updated, status_changed and deleted: a column that changed (to a value) and what that is called.';

create function app_private.tg_events__immutable() returns trigger
language plpgsql volatile as $$
begin
  raise exception 'events are never changed or deleted' using errcode = 'restrict_violation';
end $$;
-- PERF: a condition of the trigger costs next to nothing for the rows that are only numbered or dispatched.
create trigger _100_immutable before update on app_public.events for each row
  when (
    (old.sequence is not null and new.sequence is distinct from old.sequence)
    or row(old.id, old.stream_id, old.organization_id, old.project_id, old.name, old.occurred_at, old.subject_type, old.subject_id, old.actor_id,
      old.actor_type, old.channel, old.request_id, old.changes, old.data, old.caused_by_id, old.transaction_id)
      is distinct from row(new.id, new.stream_id, new.organization_id, new.project_id, new.name, new.occurred_at, new.subject_type, new.subject_id, new.actor_id,
      new.actor_type, new.channel, new.request_id, new.changes, new.data, new.caused_by_id, new.transaction_id))
  execute function app_private.tg_events__immutable();
create trigger _100_no_delete before delete on app_public.events
  for each row execute function app_private.tg_events__immutable();
create trigger _100_no_truncate before truncate on app_public.events
  for each statement execute function app_private.tg_events__immutable();

--------------------------------------------------------------------------------------------------------

create function app_private.tg_event_batches__number() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  batch record;
  amount bigint;
  last_number bigint;
begin
  -- The first of the transaction's batches numbers them all, in the order of streams: two transactions that write to
  -- the same two organizations take the counters in the same order.
  for batch in
    delete from app_private.event_batches b where b.transaction_id = pg_current_xact_id()::text::bigint returning b.stream_id
  loop
    null;
  end loop;
  for batch in
    select e.stream_id, count(*) as amount from app_public.events e
    where e.transaction_id = pg_current_xact_id()::text::bigint and e.sequence is null
    group by e.stream_id order by e.stream_id
  loop
    insert into app_private.event_counters as c (stream_id, last_sequence) values (batch.stream_id, batch.amount)
      on conflict (stream_id) do update set last_sequence = c.last_sequence + excluded.last_sequence
      returning last_sequence into last_number;
    update app_public.events e set sequence = last_number - batch.amount + numbered.position
    from (
      select n.id, row_number() over (order by n.id) as position from app_public.events n
      where n.transaction_id = pg_current_xact_id()::text::bigint and n.sequence is null and n.stream_id = batch.stream_id
    ) numbered
    where e.id = numbered.id;
  end loop;
  return null;
end $$;
create constraint trigger _500_number after insert on app_private.event_batches
  deferrable initially deferred for each row execute function app_private.tg_event_batches__number();

create function app_private.json_value(relation oid, alias text, column_name name) returns text
language sql stable as $$
  -- As the API gives it: decimals and long numbers as text, times in UTC with Z.
  select case
    when a.atttypid in ('numeric'::regtype, 'bigint'::regtype) or t.typbasetype = 'numeric'::regtype then format('%s.%I::text', alias, column_name)
    when a.atttypid = 'timestamptz'::regtype then format('to_char(%s.%I at time zone ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"'')', alias, column_name)
    else format('%s.%I', alias, column_name) end
  from pg_attribute a join pg_type t on t.oid = a.atttypid where a.attrelid = relation and a.attname = column_name
$$;

create function app_private.column_json(relation oid, alias text, columns name[]) returns text
language sql stable as $$
  -- A row as JSON with the names of the API, in groups of 40 columns, because a function takes 100 arguments at most.
  select string_agg(part, ' || ') from (
    select 'jsonb_build_object(' || string_agg(format('%L, %s', app_hidden.camel(c.name), app_private.json_value(relation, alias, c.name)), ', ') || ')' as part
    from (select name, (position - 1) / 40 as chunk from unnest(columns) with ordinality as u (name, position)) c
    group by c.chunk
  ) parts
$$;

create function app_private.event_statement(relation regclass, subject text, operation text) returns text
language plpgsql stable as $$
declare
  table_name text := (select relname from pg_class where oid = relation);
  column_names name[];
  columns_changed text;
  name_of_change text;
  stream text;
  project text;
begin
  -- Columns that only serve the machine stay out; so do those whose comment says @secret.
  select array_agg(a.attname order by a.attnum) into column_names from pg_attribute a
    where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attname not in ('version', 'updated_at')
      and coalesce(col_description(relation, a.attnum), '') !~ '@secret';
  project := case when 'project_id' = any (column_names) then 'n.project_id' when table_name = 'projects' then 'n.id' else 'null::uuid' end;
  stream := 'coalesce(' || concat_ws(', ',
    case when table_name = 'organizations' then 'n.id' when 'organization_id' = any (column_names) then 'n.organization_id' end,
    case when 'user_id' = any (column_names) then 'n.user_id' end,
    'n.id') || ')';
  if operation = 'update' then
    select string_agg(format('case when o.%1$I is distinct from n.%1$I then %2$s end', a.name,
        format('jsonb_build_object(%L, jsonb_build_array(%s, %s))', app_hidden.camel(a.name),
          app_private.json_value(relation, 'o', a.name), app_private.json_value(relation, 'n', a.name))), ', ')
      into columns_changed from unnest(column_names) a (name);
    select 'case when false then null ' || coalesce(string_agg(format('when o.%1$I is distinct from n.%1$I%2$s then %3$L ', e.column_name,
        case when e.value is not null then format(' and n.%I::text = %L', e.column_name, e.value) end, e.name), '' order by e.value nulls last), '')
      || case when 'deleted_at' = any (column_names) then 'when o.deleted_at is null and n.deleted_at is not null then ''deleted'' ' else '' end
      || case when 'status' = any (column_names) then 'when o.status is distinct from n.status then ''status_changed'' ' else '' end
      || 'else ''updated'' end'
      into name_of_change from app_private.event_names e where e.subject = event_statement.subject and e.column_name = any (column_names);
  end if;
  return format(
    'with written as (
      insert into app_public.events (stream_id, organization_id, project_id, name, subject_type, subject_id, actor_type, channel, request_id, caused_by_id, changes, data)
      select %1$s, %2$s, %3$s, %4$L || ''.'' || %5$s, %4$L, n.id, _actor_type, _channel, _request_id, _caused_by, %6$s, %7$s
      from %8$s
      order by n.id
      returning stream_id)
    insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing',
    stream,
    case when table_name = 'organizations' then 'n.id' when 'organization_id' = any (column_names) then 'n.organization_id' else 'null::uuid' end,
    project,
    subject,
    case operation when 'insert' then '''created''' when 'delete' then '''deleted''' else name_of_change end,
    case when operation = 'update' then format('(select jsonb_object_agg(c.key, c.value) from unnest(array[%s]) parts (part), jsonb_each(parts.part) c)', columns_changed)
      else 'null::jsonb' end,
    app_private.column_json(relation, 'n', column_names),
    case operation when 'insert' then 'new_rows n' when 'delete' then 'old_rows n'
      else format('new_rows n join old_rows o on o.id = n.id where row(%s) is distinct from row(%s)',
        (select string_agg(format('o.%I', c), ', ') from unnest(column_names) c), (select string_agg(format('n.%I', c), ', ') from unnest(column_names) c)) end);
end $$;
comment on function app_private.event_statement(regclass, text, text) is
  'The statement that writes one event per row of new_rows (and old_rows) of a table, by the columns that it has now.';

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
    case when app_public.current_user_id() is null then ''SYSTEM'' when app_hidden.setting(''token_id'') is not null then ''ACCESS_TOKEN'' else ''USER'' end);
  _channel text := coalesce(app_hidden.setting(''channel''), ''SYSTEM'');
  _request_id text := app_hidden.setting(''request_id'');
  _caused_by uuid := app_hidden.setting(''caused_by'')::uuid;
begin
  %s;
  return null;
end', app_private.event_statement(relation, subject, operation)));
    execute format('create or replace trigger %I after %s on %s %s for each statement execute function app_private.%I()',
      '_950_events_' || operation, operation, relation,
      case operation when 'insert' then 'referencing new table as new_rows' when 'delete' then 'referencing old table as old_rows'
        else 'referencing old table as old_rows new table as new_rows' end,
      'tg_' || table_name || '__event_' || operation);
  end loop;
end $$;
comment on function app_private.record_events(regclass, text) is
  'Lets a table join the stream of events, or brings its triggers up to the columns, @secret comments and event names that it has now.';

create function app_private.refresh_events() returns void
language plpgsql volatile as $$
declare
  record_type record;
begin
  for record_type in select * from app_hidden.record_types loop
    perform app_private.record_events(format('app_public.%I', record_type.table_name)::regclass, record_type.subject);
  end loop;
end $$;
comment on function app_private.refresh_events() is 'Brings the event triggers of all records up to date; runs after each migration.';
