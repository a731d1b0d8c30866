--! Previous: sha1:461abbaf20ae8d4c4c1d84fb4828d84a52638821
--! Hash: sha1:d91d577ccf4b42755199f498b04b01101e7bd256
--! Message: many-rows

-- Many rows at once: what each row of a statement costs. No rule changes here; those that can be are conditions of triggers
-- or hold for all rows of a statement in one query.

--------------------------------------------------------------------------------------------------------
-- Events. PERF: keys in the order in which jsonb keeps them, in one call as long as 50 columns do, need no sorting and
-- merging: half the time. Changes are joined from those columns that changed, without a query per row.

create or replace function app_private.column_json(relation oid, alias text, columns name[]) returns text
language sql stable as $$
  select string_agg(part, ' || ' order by chunk) from (
    select c.chunk, 'jsonb_build_object(' || string_agg(format('%L, %s', c.key, app_private.json_value(relation, alias, c.name)), ', ' order by c.place) || ')' as part
    from (select k.name, k.key, k.place, (k.place - 1) / 50 as chunk
      from (select u.name, app_hidden.camel(u.name) as key, row_number() over (order by length(app_hidden.camel(u.name)), app_hidden.camel(u.name)) as place
        from unnest(columns) u (name)) k) c
    group by c.chunk
  ) parts
$$;
comment on function app_private.column_json(oid, text, name[]) is
  'A row as JSON with the names of the API, in groups of 50 columns, because a function takes 100 arguments at most.';

create function app_private.number_events() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  batch record;
  last_number bigint;
begin
  -- In the order of streams: two transactions that write to the same two organizations take the counters in the same order.
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
end $$;
comment on function app_private.number_events() is 'Numbers what the transaction has written to the streams of events so far; they wait for its end.';

create or replace function app_private.tg_event_batches__number() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- The first of the transaction's batches numbers them all.
  delete from app_private.event_batches b where b.transaction_id = pg_current_xact_id()::text::bigint;
  perform app_private.number_events();
  return null;
end $$;

-- PERF: by its columns, so that numbering does not compare whole events; an event is numbered once.
drop trigger _100_immutable on app_public.events;
create trigger _100_immutable before update of id, stream_id, organization_id, project_id, name, occurred_at, subject_type, subject_id, actor_id,
    actor_type, channel, request_id, changes, data, caused_by_id, transaction_id on app_public.events
  for each row execute function app_private.tg_events__immutable();
create trigger _110_numbered_once before update of sequence on app_public.events
  for each row when (old.sequence is not null and new.sequence is distinct from old.sequence) execute function app_private.tg_events__immutable();

create or replace function app_private.event_statement(relation regclass, subject text, operation text) returns text
language plpgsql stable as $$
declare
  table_name text := (select relname from pg_class where oid = relation);
  column_names name[];
  columns_changed text;
  name_of_change text;
  stream text;
  plain text;
begin
  -- Columns that only serve the machine stay out; so do those whose comment says @secret.
  select array_agg(a.attname order by a.attnum) into column_names from pg_attribute a
    where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attname not in ('version', 'updated_at')
      and coalesce(col_description(relation, a.attnum), '') !~ '@secret';
  stream := 'coalesce(' || concat_ws(', ',
    case when table_name = 'organizations' then 'n.id' when 'organization_id' = any (column_names) then 'n.organization_id' end,
    case when 'user_id' = any (column_names) then 'n.user_id' end,
    'n.id') || ')';
  if operation = 'update' then
    select string_agg(format('case when o.%1$I is distinct from n.%1$I then jsonb_build_object(%2$L, jsonb_build_array(%3$s, %4$s)) else ''{}'' end',
        a.name, app_hidden.camel(a.name), app_private.json_value(relation, 'o', a.name), app_private.json_value(relation, 'n', a.name)), ' || ')
      into columns_changed from unnest(column_names) a (name);
    select 'case when false then null ' || coalesce(string_agg(format('when o.%1$I is distinct from n.%1$I%2$s then %3$L ', e.column_name,
        case when e.value is not null then format(' and n.%I::text = %L', e.column_name, e.value) end, e.name), '' order by e.value nulls last), '')
      || case when 'deleted_at' = any (column_names) then 'when o.deleted_at is null and n.deleted_at is not null then ''deleted'' ' else '' end
      || case when 'status' = any (column_names) then 'when o.status is distinct from n.status then ''status_changed'' ' else '' end
      || 'else ''updated'' end'
      into name_of_change from app_private.event_names e where e.subject = event_statement.subject and e.column_name = any (column_names);
  end if;
  -- The rows in the order in which they were written, those that changed in the order of ids.
  plain := format('insert into app_public.events (stream_id, organization_id, project_id, name, subject_type, subject_id, actor_type, channel, request_id, caused_by_id, changes, data, sequence)
      select %s, %s, %s, %L || ''.'' || %s, %L, n.id, _actor_type, _channel, _request_id, _caused_by, %s, %s',
    stream,
    case when table_name = 'organizations' then 'n.id' when 'organization_id' = any (column_names) then 'n.organization_id' else 'null::uuid' end,
    case when 'project_id' = any (column_names) then 'n.project_id' when table_name = 'projects' then 'n.id' else 'null::uuid' end,
    subject,
    case operation when 'insert' then '''created''' when 'delete' then '''deleted''' else name_of_change end,
    subject,
    case when operation = 'update' then columns_changed else 'null::jsonb' end,
    app_private.column_json(relation, 'n', column_names));
  return case operation
    when 'insert' then format('
  -- PERF: whoever writes thousands of rows as the last thing of a transaction has them numbered as they are written, which
  -- is half the work; the stream waits for the end of the transaction either way.
  if app_hidden.setting(''numbers_at_once'') = ''on'' then
    _streams := array(select distinct %1$s from new_rows n limit 2);
    if cardinality(_streams) = 1 then
      perform app_private.number_events();
      _amount := (select count(*) from new_rows);
      insert into app_private.event_counters as c (stream_id, last_sequence) values (_streams[1], _amount)
        on conflict (stream_id) do update set last_sequence = c.last_sequence + excluded.last_sequence returning last_sequence into _last;
      %2$s, _last - _amount + row_number() over () from new_rows n;
      insert into app_private.event_batches (stream_id) values (_streams[1]) on conflict do nothing;
      return null;
    end if;
  end if;
  with written as (%2$s, null from new_rows n returning stream_id)
  insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing', stream, plain)
    when 'delete' then format('with written as (%s, null from old_rows n order by n.id returning stream_id)
  insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing', plain)
    else format('with written as (%s, null from new_rows n join old_rows o on o.id = n.id where row(%s) is distinct from row(%s) order by n.id returning stream_id)
  insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing', plain,
      (select string_agg(format('o.%I', c), ', ') from unnest(column_names) c), (select string_agg(format('n.%I', c), ', ') from unnest(column_names) c))
    end;
end $$;

create or replace function app_private.record_events(relation regclass, subject text) returns void
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
  _streams uuid[];
  _amount bigint;
  _last bigint;
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

--------------------------------------------------------------------------------------------------------
-- States. PERF: a trigger whose condition knows the states to begin in and what each state requires is called only where
-- something is to be decided. The conditions follow the rows of app_hidden.transitions and transition_requirements.

create function app_private.state_triggers(table_name text, subject text) returns void
language plpgsql volatile as $$
declare
  relation regclass := format('app_public.%I', table_name)::regclass;
  has_time boolean := exists (select from pg_attribute a where a.attrelid = relation and a.attname = 'status_changed_at' and not a.attisdropped);
  lacking text := coalesce((select string_agg(format('(new.status::text = %L and new.%I is null)', r.to_state, r.column_name), ' or ')
    from app_hidden.transition_requirements r where r.subject = state_triggers.subject), 'false');
  initial text[] := array(select t.to_state from app_hidden.transitions t
    where t.subject = state_triggers.subject and t.from_state is null and not t.by_service and t.permission is null);
begin
  execute format('create or replace trigger _300_state_first before insert on %s for each row
      when (new.status is null or new.status::text <> all (%L::text[]) or %s) execute function app_private.tg__state(%L, %L)',
    relation, initial, lacking, subject, has_time);
  execute format('create or replace trigger _300_state before update on %s for each row
      when (old.status is distinct from new.status or %s) execute function app_private.tg__state(%L, %L)', relation, lacking, subject, has_time);
end $$;
comment on function app_private.state_triggers(text, text) is 'Makes the triggers of a state machine, or brings them up to its present rows.';

create or replace function app_private.make_state_machine(table_name text, subject text, steps text[], initial text[], requirements text[] default '{}') returns void
language plpgsql volatile as $$
begin
  insert into app_hidden.transitions (subject, from_state, to_state) select subject, null, unnest(initial);
  insert into app_hidden.transitions (subject, from_state, to_state, by_service, permission)
    select subject, s.step[1], s.step[2], coalesce(s.step[3] = 'service', false), s.step[4]
    from (select array[steps[i][1], steps[i][2], steps[i][3], steps[i][4]] as step from generate_subscripts(steps, 1) i) s
    on conflict do nothing;
  insert into app_hidden.transition_requirements (subject, to_state, column_name, message)
    select subject, requirements[i][1], requirements[i][2], requirements[i][3] from generate_subscripts(requirements, 1) i;
  perform app_private.state_triggers(table_name, subject);
end $$;

create function app_private.refresh_states() returns void
language plpgsql volatile as $$
begin
  perform app_private.state_triggers(c.relname, r.subject)
    from app_hidden.record_types r
    join pg_class c on c.relname = r.table_name and c.relnamespace = 'app_public'::regnamespace
    join pg_trigger t on t.tgrelid = c.oid and t.tgname = '_300_state' and t.tgfoid = 'app_private.tg__state'::regproc;
end $$;
comment on function app_private.refresh_states() is 'Brings the triggers of all state machines up to date.';
create function app_private.tg__refresh_states() returns trigger
language plpgsql volatile as $$
begin
  perform app_private.refresh_states();
  return null;
end $$;
create trigger _500_refresh after insert or update or delete on app_hidden.transitions
  for each statement execute function app_private.tg__refresh_states();
create trigger _500_refresh after insert or update or delete on app_hidden.transition_requirements
  for each statement execute function app_private.tg__refresh_states();
select app_private.refresh_states();

--------------------------------------------------------------------------------------------------------
-- Units. A row that somebody creates is completed when it is inserted. A function of the service that inserts many completes
-- them itself, from one query; whoever it was, what was inserted is checked, all rows at once.

create or replace function app_private.tg_units__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  is_new constant boolean := tg_op = 'INSERT';
  archived_at timestamptz;
  zone text;
  country text;
begin
  if is_new then
    select p.organization_id, p.currency, p.archived_at, p.time_zone, (p.address).country
      into new.organization_id, new.currency, archived_at, zone, country from app_public.projects p where p.id = new.project_id;
    if archived_at is not null then
      perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; set its status back first.');
    end if;
  elsif (new.listing_date is null and new.status = 'AVAILABLE') or (new.address is distinct from null and (new.address).country is null) then
    select p.time_zone, (p.address).country into zone, country from app_public.projects p where p.id = new.project_id;
  end if;
  if new.address is distinct from null and (new.address).country is null then
    new.address.country := coalesce(country, 'US');
  end if;
  -- PERF: whatever is assigned has its domain checked once more, so only what changes is.
  if new.price is not null and (is_new or new.price is distinct from old.price) then
    new.price := app_hidden.to_money(new.price, new.currency, 'price');
  end if;
  if new.hoa_fee is not null and (is_new or new.hoa_fee is distinct from old.hoa_fee) then
    new.hoa_fee := app_hidden.to_money(new.hoa_fee, new.currency, 'hoaFee');
  end if;
  if new.price is null and new.status not in ('UNRELEASED', 'OFF_MARKET') then
    perform app_hidden.fail('BAD_USER_INPUT', 'A unit that is for sale needs a price.', '{"field": "price"}');
  end if;

  if new.lot_id is not null and (is_new or new.lot_id is distinct from old.lot_id) and not exists (
    select from app_public.lots l where l.id = new.lot_id and l.project_id = new.project_id and l.deleted_at is null) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lot in this project.', '{"field": "lotId"}');
  end if;
  if is_new or row(new.floor_plan_id, new.bedrooms, new.baths, new.half_baths, new.garage, new.sqft, new.hoa_fee, new.orientation)
    is distinct from row(old.floor_plan_id, old.bedrooms, old.baths, old.half_baths, old.garage, old.sqft, old.hoa_fee, old.orientation) then
    if new.floor_plan_id is null then
      select new.bedrooms, new.baths, new.half_baths, new.garage, new.sqft, new.hoa_fee, new.orientation
        into new.effective_bedrooms, new.effective_baths, new.effective_half_baths, new.effective_garage, new.effective_sqft, new.effective_hoa_fee,
          new.effective_orientation;
    else
      -- Locked, so that a change of the plan in another transaction is either seen here or reaches this row.
      select coalesce(new.bedrooms, f.bedrooms), coalesce(new.baths, f.baths), coalesce(new.half_baths, f.half_baths),
          coalesce(new.garage, f.garage), coalesce(new.sqft, f.sqft), coalesce(new.hoa_fee, f.hoa_fee), coalesce(new.orientation, f.orientation)
        into new.effective_bedrooms, new.effective_baths, new.effective_half_baths, new.effective_garage, new.effective_sqft, new.effective_hoa_fee,
          new.effective_orientation
        from app_public.floor_plans f where f.id = new.floor_plan_id and f.project_id = new.project_id and f.deleted_at is null for share;
      if not found then
        perform app_hidden.fail('NOT_FOUND', 'There is no such floor plan in this project.', '{"field": "floorPlanId"}');
      end if;
    end if;
  end if;

  if is_new or new.construction_status is distinct from old.construction_status then
    new.move_in_ready := new.construction_status in ('COMPLETED', 'DELIVERED');
  end if;
  if new.status = 'AVAILABLE' then
    if new.listing_date is null then
      new.listing_date := (now() at time zone zone)::date;
    end if;
    if new.original_list_price is null then
      new.original_list_price := new.price;
    end if;
  end if;
  if is_new or new.status is distinct from old.status then
    -- Days on market count while it is AVAILABLE or HELD.
    if new.status in ('AVAILABLE', 'HELD') then
      new.market_since := coalesce(new.market_since, now());
      new.market_before := coalesce(new.market_before, '0');
    elsif new.market_since is not null then
      new.market_before := new.market_before + (now() - new.market_since);
      new.market_since := null;
    end if;
    if new.status = 'SOLD' then
      new.sold_at := coalesce(new.sold_at, now());
      if new.sold_price is null then
        new.sold_price := new.price;
      end if;
    elsif new.status = 'CLOSED' then
      new.closed_at := coalesce(new.closed_at, now());
    elsif new.sold_at is not null then
      new.sold_at := null;
      new.sold_price := null;
    end if;
  end if;
  return new;
end $$;
drop trigger _050_organization on app_public.units;
drop trigger _200_prepare on app_public.units;
create trigger _200_prepare before update on app_public.units for each row execute function app_private.tg_units__prepare();
-- The roles of the API may not give the organization.
create trigger _200_prepare_first before insert on app_public.units for each row when (new.organization_id is null)
  execute function app_private.tg_units__prepare();

create function app_private.tg_units__check() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if exists (
    select from new_rows n
    join app_public.projects p on p.id = n.project_id
    left join app_hidden.currencies c on c.code = p.currency
    left join app_public.lots l on l.id = n.lot_id
    left join app_public.floor_plans f on f.id = n.floor_plan_id
    where p.archived_at is not null or n.currency <> p.currency or l.deleted_at is not null or f.deleted_at is not null
      or n.price <> round(n.price, coalesce(c.digits, 2)) or n.hoa_fee <> round(n.hoa_fee, coalesce(c.digits, 2)) or (n.address is distinct from null and (n.address).country is null)
      or row(n.effective_bedrooms, n.effective_baths, n.effective_half_baths, n.effective_garage, n.effective_sqft, n.effective_hoa_fee, n.effective_orientation)
        is distinct from row(coalesce(n.bedrooms, f.bedrooms), coalesce(n.baths, f.baths), coalesce(n.half_baths, f.half_baths), coalesce(n.garage, f.garage),
          coalesce(n.sqft, f.sqft), coalesce(n.hoa_fee, f.hoa_fee), coalesce(n.orientation, f.orientation))
      or n.move_in_ready <> (n.construction_status in ('COMPLETED', 'DELIVERED'))
      or (n.status = 'AVAILABLE' and (n.listing_date is null or n.original_list_price is null or n.market_since is null or n.market_before is null))
  ) then
    raise exception 'a unit was inserted past its rules' using errcode = 'assert_failure';
  end if;
  return null;
end $$;
create trigger _940_check after insert on app_public.units referencing new table as new_rows
  for each statement execute function app_private.tg_units__check();
