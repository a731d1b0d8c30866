-- The vocabulary of workflows, as rows: the config fields of each step type, the operators of conditions, the variables
-- of conditions and templates. Definitions are validated against them before they are stored; errors have a path. The
-- service parses what SQL cannot (Liquid templates, cron expressions, URLs) and passes its findings: `checks`.

create function app_private.record_columns(table_name text) returns table (name text, column_name name, type oid,
  description text, attnum smallint)
language sql stable as $$
  select app_hidden.camel(a.attname), a.attname, case when t.typtype = 'd' then coalesce(b.typbasetype, t.typbasetype)
    else a.atttypid end,
    regexp_replace(coalesce(col_description(a.attrelid, a.attnum), ''), '^(@[^\n]*\n)+\n?', ''), a.attnum
  from pg_attribute a join pg_type t on t.oid = a.atttypid
  left join pg_type b on b.oid = t.typbasetype and b.typtype = 'd'
  where a.attrelid = to_regclass(format('app_public.%I', table_name)) and a.attnum > 0 and not a.attisdropped
    and a.attname <> 'search_text'
    and coalesce(col_description(a.attrelid, a.attnum), '') !~ '@secret'
$$;
comment on function app_private.record_columns(text) is
  'The columns of a table that events and workflows tell of, with their base types.';

create function app_private.workflow_variables() returns table (root text, name text, type text, description text)
language sql stable as $$
  select r.root, c.name, case when c.type = 'timestamptz'::regtype then 'time' when c.type = 'date'::regtype then 'day'
      when c.type in ('numeric'::regtype, 'int'::regtype, 'bigint'::regtype, 'double precision'::regtype,
        'smallint'::regtype) then 'number'
      when c.type = 'boolean'::regtype then 'boolean' when c.type = 'jsonb'::regtype then 'JSON'
      when t.typcategory = 'A' then 'list' when t.typcategory = 'C' then 'object' else 'text' end, c.description
  from app_hidden.workflow_roots r cross join lateral app_private.record_columns(r.table_name) c
    join pg_type t on t.oid = c.type
  where r.table_name is not null
  union all
  values ('assignee', 'id', 'text', 'Id.'), ('assignee', 'fullName', 'text', 'First and last name.'),
    ('assignee', 'firstName', 'text', 'First name.'),
    ('assignee', 'lastName', 'text', 'Last name.'), ('assignee', 'title', 'text', 'Title.'),
    ('assignee', 'phone', 'text', 'Phone number in E.164, such as +14165550123.'),
    ('assignee', 'email', 'text', 'Email address; null where they are of another organization.'),
    ('event', 'id', 'text', 'Id.'), ('event', 'name', 'text', 'Event name, such as lead.created.'),
    ('event', 'occurredAt', 'time', 'When the event occurred.'),
    ('event', 'subjectType', 'text', 'The kind of record that changed.'),
    ('event', 'subjectId', 'text', 'The record that changed.'),
    ('event', 'actorId', 'text', 'The user who caused it.'), ('event', 'actorType', 'text',
      'Kind of actor that caused the event.'),
    ('event', 'channel', 'text', 'Channel through which the change was made.'),
    ('event', 'changes', 'JSON', 'The changed fields: event.changes.status.0 before, event.changes.status.1 after.'),
    ('event', 'data', 'JSON', 'The record after the change; decimals are texts there.')
$$;
comment on function app_private.workflow_variables() is 'What conditions and templates can read of each record.';

create function app_private.subject_table(subject_type text) returns text
language sql stable as $$ select r.table_name from app_hidden.record_types r where r.subject = lower(subject_type) $$;
comment on function app_private.subject_table(text) is
  'The table of the records that a workflow of that kind is about.';

create function app_private.refuse_definition(path text, message text) returns void
language plpgsql volatile as $$
begin
  perform app_hidden.fail('BAD_USER_INPUT', format('%s: %s', path, message), jsonb_build_object('field', path));
end $$;
comment on function app_private.refuse_definition(text, text) is
  'Refuses a definition because of what stands at the path.';

-- `scope` lists where a variable is available: {subjectType, event, sequence, organizationId, projectId,
-- steps}.
create function app_private.check_variable(path text[], at text, scope jsonb) returns void
language plpgsql stable as $$
declare
  table_of text;
  type text;
  names text;
  known record;
begin
  if exists (select from unnest(path) p where p in ('__proto__', 'constructor', 'prototype')) then
    perform app_private.refuse_definition(at, 'there is no such variable.');
  end if;
  select r.* into known from app_hidden.workflow_roots r where r.root = path[1];
  if not found then
    select string_agg(r.root, ', ' order by r.position) into names from app_hidden.workflow_roots r;
    perform app_private.refuse_definition(at,
      format('there is no variable %s; use one of %s.', left(path[1], 50), names));
  end if;
  if known.root = 'steps' then
    if scope ->> 'sequence' is null then
      perform app_private.refuse_definition(at, 'results of steps are only available in later steps.');
    elsif coalesce(path[2], '') !~ '^[0-9]{1,3}$' or path[2]::int not between 1 and (scope ->> 'sequence')::int - 1 then
      perform app_private.refuse_definition(at, 'must refer to the sequence of an earlier step.');
    end if;
  elsif known.root = 'event' and scope ->> 'event' is null then
    perform app_private.refuse_definition(at, 'there is no event, because no event starts this workflow.');
  elsif known.root = 'event' and path[2] in ('data', 'changes') and path[3] is not null and scope ->> 'event' <> '*'
    then
    select r.table_name into table_of from app_hidden.record_types r
      where r.subject = split_part(scope ->> 'event', '.', 1);
    if not exists (select from app_private.record_columns(table_of) c where c.name = path[3]) then
      perform app_private.refuse_definition(at,
        format('the record of %s has no field %s.', scope ->> 'event', left(path[3], 50)));
    end if;
  elsif known.root not in ('context', 'now') and path[2] is not null then
    table_of := coalesce(known.table_name, case when known.root = 'subject'
      then app_private.subject_table(scope ->> 'subjectType') end);
    if table_of is not null then
      select t.typcategory::text || coalesce('.' || nullif(t.typrelid, 0), '') || case when c.type = 'jsonb'::regtype
        then 'J' else '' end into type
        from app_private.record_columns(table_of) c join pg_type t on t.oid = c.type where c.name = path[2];
    else
      select case v.type when 'JSON' then 'J' else 'S' end into type from app_private.workflow_variables() v
        where v.root = known.root and v.name = path[2];
    end if;
    if type is null then
      perform app_private.refuse_definition(at, format('%s has no field %s.', known.root, left(path[2], 50)));
    elsif path[3] is not null and type !~ 'J' and not (type ~ '^A' and path[3] ~ '^([0-9]+|size|first|last)$')
      and not (type = 'S' and path[3] = 'size')
      and not (type ~ '^C' and exists (select from pg_attribute a where a.attrelid = split_part(type, '.', 2)::oid
        and app_hidden.camel(a.attname) = path[3])) then
      perform app_private.refuse_definition(at, format('%s.%s has no %s.', known.root, path[2], left(path[3], 50)));
    end if;
  elsif known.root = 'now' and path[2] is not null then
    perform app_private.refuse_definition(at, 'now is a time and has no fields.');
  end if;
end $$;
comment on function app_private.check_variable(text[], text, jsonb) is
  'Refuses a variable that conditions and templates of that scope cannot have.';

create function app_private.check_condition(rule jsonb, at text, scope jsonb, depth int default 0,
  of_element boolean default false) returns void
language plpgsql stable as $$
declare
  op text;
  known app_hidden.workflow_operators;
  args jsonb;
  place text;
  wanted jsonb;
  position int := 0;
begin
  if depth = 0 then
    if jsonb_typeof(rule) <> 'object' then
      perform app_private.refuse_definition(at,
        'must be a condition in JSON Logic, such as {"==": [{"var": "lead.status"}, "NEW"]}.');
    elsif length(rule::text) > 20000 then
      perform app_private.refuse_definition(at, 'a condition must have at most 20,000 characters.');
    end if;
  elsif depth > 20 then
    perform app_private.refuse_definition(at, 'a condition must have at most 20 levels.');
  end if;
  if jsonb_typeof(rule) = 'array' then
    for wanted in select e from jsonb_array_elements(rule) e loop
      perform app_private.check_condition(wanted, format('%s[%s]', at, position), scope, depth + 1, of_element);
      position := position + 1;
    end loop;
    return;
  elsif jsonb_typeof(rule) <> 'object' then
    return;
  end if;
  if (select count(*) from jsonb_object_keys(rule)) <> 1 then
    perform app_private.refuse_definition(at, 'an object of a condition must have exactly one key, the operator.');
  end if;
  select k into op from jsonb_object_keys(rule) k;
  place := at || '.' || left(op, 50);
  select * into known from app_hidden.workflow_operators o where o.operator = op;
  if not found then
    perform app_private.refuse_definition(place, format('there is no such operator; use one of %s.',
      (select string_agg(o.operator, ' ' order by o.operator) from app_hidden.workflow_operators o)));
  end if;
  args := case when jsonb_typeof(rule -> op) = 'array' then rule -> op else jsonb_build_array(rule -> op) end;
  if jsonb_array_length(args) not between known.least and known.most then
    perform app_private.refuse_definition(place, case when known.least = known.most
      then format('takes %s arguments.', known.least)
      else format('takes %s to %s arguments.', known.least, known.most) end);
  end if;
  if op in ('var', 'missing') then
    for wanted in select e.value from jsonb_array_elements(args) with ordinality e (value, n) where op = 'missing'
      or e.n = 1 loop
      if jsonb_typeof(wanted) not in ('string', 'number') or (wanted #>> '{}') !~ '^([A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*)?$'
        or (not of_element and wanted = '""') then
        perform app_private.refuse_definition(place, 'must be a variable, such as lead.status.');
      elsif of_element then
        continue when (wanted #>> '{}') !~ '(__proto__|constructor|prototype)';
        perform app_private.refuse_definition(place, 'there is no such variable.');
      end if;
      perform app_private.check_variable(string_to_array(wanted #>> '{}', '.'), place, scope);
    end loop;
    if op = 'var' and jsonb_typeof(args -> 1) in ('object', 'array') then
      perform app_private.refuse_definition(place,
        'the default of a variable must be a string, a number, true, false or null.');
    end if;
  elsif jsonb_typeof(rule -> op) <> 'array' then
    perform app_private.check_condition(rule -> op, place, scope, depth + 1, of_element);
  else
    for wanted in select e from jsonb_array_elements(args) e loop
      perform app_private.check_condition(wanted, format('%s[%s]', place, position), scope, depth + 1, of_element
        or (op in ('some', 'all', 'none') and position = 1));
      position := position + 1;
    end loop;
  end if;
end $$;
comment on function app_private.check_condition(jsonb, text, jsonb, int, boolean) is
  'Refuses JSON Logic beyond the operators and variables there are; in the second argument of some, all and none, '
  'variables are of the element.';

create function app_private.check_template(value jsonb, most int, at text, scope jsonb, checks jsonb) returns void
language plpgsql stable as $$
declare
  found jsonb;
  variable jsonb;
begin
  if jsonb_typeof(value) <> 'string' or btrim(value #>> '{}') = '' then
    perform app_private.refuse_definition(at, 'must be a string.');
  elsif length(value #>> '{}') > most then
    perform app_private.refuse_definition(at, format('must have at most %s characters.', most));
  elsif (value #>> '{}') !~ '\{[{%]' then
    return;
  end if;
  found := checks -> at;
  if found is null or found ? 'fault' then
    perform app_private.refuse_definition(at, coalesce(found ->> 'fault', 'this template was not checked.'));
  end if;
  for variable in select v from jsonb_array_elements(found -> 'variables') v loop
    perform app_private.check_variable(array(select v from jsonb_array_elements_text(variable) v), at, scope);
  end loop;
end $$;
comment on function app_private.check_template(jsonb, int, text, jsonb, jsonb) is
  'Refuses what is no text, what the service could not read as a template, and unknown variables in it.';

create function app_private.check_templates(value jsonb, most int, at text, scope jsonb, checks jsonb,
  depth int default 0) returns void
language plpgsql stable as $$
declare
  member record;
begin
  if depth = 0 and length(value::text) > most then
    perform app_private.refuse_definition(at, format('must have at most %s characters.', most));
  elsif depth > 10 then
    perform app_private.refuse_definition(at, 'must have at most 10 levels.');
  end if;
  case jsonb_typeof(value)
    when 'string' then
      if (value #>> '{}') <> '' then
        perform app_private.check_template(value, most, at, scope, checks);
      end if;
    when 'object' then
      for member in select key, o.value from jsonb_each(value) o loop
        perform app_private.check_templates(member.value, most, at || '.' || left(member.key, 50), scope, checks,
          depth + 1);
      end loop;
    when 'array' then
      for member in select n - 1 as n, a.value from jsonb_array_elements(value) with ordinality a (value, n) loop
        perform app_private.check_templates(member.value, most, format('%s[%s]', at, member.n), scope, checks,
          depth + 1);
      end loop;
    else null;
  end case;
end $$;
comment on function app_private.check_templates(jsonb, int, text, jsonb, jsonb, int) is
  'check_template for every text in a JSON value.';

create function app_private.check_event(value jsonb, at text, scope jsonb, waits boolean default false) returns void
language plpgsql stable as $$
declare
  wanted text := value #>> '{}';
  about text[] := array[lower(scope ->> 'subjectType')];
begin
  -- A WAIT_FOR_EVENT step also receives events of the lead and the purchase.
  if waits and about[1] <> 'unit' then
    about := array[about[1], 'lead', 'buyer'];
  end if;
  if jsonb_typeof(value) is distinct from 'string' or wanted = '*' or not app_private.is_event_name(wanted) then
    perform app_private.refuse_definition(at,
      format('there is no event %s; use one such as lead.created, or lead.* for all events of a lead.',
      left(coalesce(value #>> '{}', 'null'), 100)));
  elsif split_part(wanted, '.', 1) <> all (about) and not exists (
    select from app_hidden.record_types r cross join lateral app_private.record_columns(r.table_name) c
    where r.subject = split_part(wanted, '.', 1) and c.name in (select app_hidden.camel(a || '_id') from unnest(about) a
      where not waits or a in ('lead', 'buyer'))) then
    perform app_private.refuse_definition(at,
      format('%s says nothing of the %s, which this workflow is about.', wanted, about[1]));
  end if;
end $$;
comment on function app_private.check_event(jsonb, text, jsonb, boolean) is
  'Refuses what is no event of the subject, or of a record that names it.';

create function app_private.check_user(value jsonb, at text, scope jsonb) returns void
language plpgsql stable as $$
begin
  if jsonb_typeof(value) <> 'string'
    or (value #>> '{}') !~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' or not exists (
    select from app_public.organization_user_connections m where m.user_id = (value #>> '{}')::uuid
      and (m.organization_id = (scope ->> 'organizationId')::uuid
        or m.organization_id in (select p.organization_id from app_public.project_organizations p
          where p.project_id = (scope ->> 'projectId')::uuid))) then
    perform app_private.refuse_definition(at, 'must be the id of a member of the organization.');
  end if;
end $$;
comment on function app_private.check_user(jsonb, text, jsonb) is
  'Refuses viewers who are members neither of the organization nor of one affiliated with the project of the '
  'workflow.';

create function app_private.check_value(table_name text, column_name name, value jsonb, at text,
  scope jsonb) returns void
language plpgsql stable as $$
declare
  message text;
  referenced record;
  is_there boolean;
begin
  begin
    execute format('select app_hidden.refuse_bad_value(null::app_public.%I, $1)', table_name)
      using jsonb_build_object(column_name, value);
  exception when sqlstate 'PLAT0' then
    get stacked diagnostics message = message_text;
    perform app_private.refuse_definition(at, message);
  end;
  select c.relname, c.oid into referenced from pg_constraint f join pg_class c on c.oid = f.confrelid
    join pg_attribute a on a.attrelid = f.conrelid and a.attnum = f.conkey[1]
    where f.contype = 'f' and f.conrelid = format('app_public.%I', table_name)::regclass
      and a.attname = check_value.column_name;
  if not found or jsonb_typeof(value) = 'null' then
    return;
  elsif referenced.relname = 'users' then
    perform app_private.check_user(value, at, scope);
    return;
  end if;
  execute format('select exists (select from app_public.%1$I r where r.id = $1 and %2$s)', referenced.relname,
      case when referenced.relname = 'organizations' then 'r.id = $2' else 'r.organization_id = $2' end
      || case when exists (select from pg_attribute a where a.attrelid = referenced.oid and a.attname = 'project_id')
        then ' and ($3 is null or r.project_id = $3)' else '' end
      || case when exists (select from pg_attribute a where a.attrelid = referenced.oid and a.attname = 'deleted_at')
        then ' and r.deleted_at is null' else '' end)
    into is_there using (value #>> '{}')::uuid, (scope ->> 'organizationId')::uuid, (scope ->> 'projectId')::uuid;
  if not is_there then
    perform app_private.refuse_definition(at, format('there is no such %s.', app_hidden.subject(referenced.relname)));
  end if;
end $$;
comment on function app_private.check_value(text, name, jsonb, text, jsonb) is
  'Refuses a value that the column does not take, and the id of a record that is not one of the organization, or of '
  'the project of the workflow.';

create function app_private.subject_filter(filter jsonb, at text, scope jsonb) returns text
language plpgsql stable as $$
declare
  table_of text := app_private.subject_table(scope ->> 'subjectType');
  member record;
  wanted jsonb;
  clauses text := '';
begin
  if jsonb_typeof(filter) <> 'object' then
    perform app_private.refuse_definition(at, 'must be an object, such as {"status": ["NEW"]}.');
  end if;
  for member in
    select f.key, f.value, c.column_name, c.type, t.typelem from jsonb_each(jsonb_strip_nulls(filter)) f
    left join app_private.record_columns(table_of) c on c.name = f.key
    left join pg_type t on t.oid = c.type
  loop
    if member.column_name is null or member.type <> all (array['text', 'uuid', 'boolean', 'text[]']::regtype[]) then
      perform app_private.refuse_definition(at || '.' || left(member.key, 50),
        format('cannot be used to select the %s; use one of %s.', lower(scope ->> 'subjectType'),
        (select string_agg(c.name, ', ' order by c.name) from app_private.record_columns(table_of) c
          where c.type = any (array['text', 'uuid', 'boolean', 'text[]']::regtype[]))));
    end if;
    wanted := case when jsonb_typeof(member.value) = 'array' then member.value else jsonb_build_array(member.value) end;
    if jsonb_array_length(wanted) > 100 then
      perform app_private.refuse_definition(at || '.' || member.key, 'must have at most 100 values.');
    end if;
    -- Checked when it is written: members who have left since, and deleted records, select nothing.
    for i in 0 .. case when scope ? 'organizationId' then jsonb_array_length(wanted) else 0 end - 1 loop
      perform app_private.check_value(table_of, member.column_name, case when member.typelem <> 0
        then jsonb_build_array(wanted -> i) else wanted -> i end,
        case when jsonb_typeof(member.value) = 'array' then format('%s.%s[%s]', at, member.key, i)
          else at || '.' || member.key end, scope);
    end loop;
    clauses := clauses || format(' and s.%I %s %L::%s', member.column_name, case when member.typelem <> 0 then '&&'
      else '= any (' end,
      array(select w from jsonb_array_elements_text(wanted) w), case when member.typelem <> 0 then 'text[]'
        else format_type(member.type, null) || '[])' end);
  end loop;
  return clauses;
end $$;
comment on function app_private.subject_filter(jsonb, text, jsonb) is
  'The filter of a trigger as a condition on the subject `s`: {"status": ["NEW"]}, any of the values of each member; '
  'refuses others than texts, ids, booleans and tags.';

create function app_private.check_trigger(trigger jsonb, scope jsonb, checks jsonb) returns void
language plpgsql stable as $$
declare
  type text := trigger ->> 'type';
  wrong text;
begin
  if jsonb_typeof(trigger) is distinct from 'object' then
    perform app_private.refuse_definition('trigger',
      'must be an object, such as {"type": "EVENT", "event": "lead.created"}.');
  elsif jsonb_typeof(trigger -> 'type') is distinct from 'string'
    or type not in (select v.value from app_public.workflow_trigger_type_values v) then
    perform app_private.refuse_definition('trigger.type',
      format('must be one of %s.', (select string_agg(v.value, ', ') from app_public.workflow_trigger_type_values v)));
  end if;
  select k into wrong from jsonb_object_keys(trigger) k
    where k not in ('type') and not (type in ('EVENT', 'SCHEDULE') and k = 'filter')
      and not (type = 'EVENT' and k = 'event')
      and not (type = 'SCHEDULE' and k in ('schedule', 'timeZone')) limit 1;
  if found then
    perform app_private.refuse_definition('trigger.' || left(wrong, 50),
      format('a trigger of type %s has no such field.', type));
  end if;
  if type = 'EVENT' then
    perform app_private.check_event(trigger -> 'event', 'trigger.event', scope);
  elsif type = 'SCHEDULE' then
    if jsonb_typeof(trigger -> 'schedule') is distinct from 'string' then
      perform app_private.refuse_definition('trigger.schedule',
        'must be a cron expression: minute, hour, day of the month, month, day of the week, such as "0 9 * * 1-5".');
    elsif trigger ? 'timeZone' and (jsonb_typeof(trigger -> 'timeZone') <> 'string'
      or not app_hidden.names_time_zone(trigger ->> 'timeZone')) then
      perform app_private.refuse_definition('trigger.timeZone',
        'this time zone is unknown; use a name of the IANA database, such as America/Toronto.');
    elsif checks -> 'trigger.schedule' is null or checks -> 'trigger.schedule' ? 'fault' then
      perform app_private.refuse_definition('trigger.schedule',
        coalesce(checks -> 'trigger.schedule' ->> 'fault', 'this cron expression was not checked.'));
    end if;
  end if;
  if trigger ? 'filter' then
    perform app_private.subject_filter(trigger -> 'filter', 'trigger.filter', scope);
  end if;
end $$;
comment on function app_private.check_trigger(jsonb, jsonb, jsonb) is 'Refuses a trigger that cannot be.';

create function app_private.check_step(step app_public.workflow_steps, scope jsonb) returns void
language plpgsql stable as $$
declare
  base text := format('steps[%s]', step.sequence - 1);
  kind record;
  member record;
  at text;
  value jsonb;
  wrong text;
  target int;
  table_of text;
  of_column record;
begin
  scope := scope || jsonb_build_object('sequence', step.sequence);
  select t.* into kind from app_hidden.workflow_step_types t where t.type = step.type;
  if kind.refusal is not null then
    perform app_private.refuse_definition(base || '.type', kind.refusal);
  elsif kind.subjects is not null and scope ->> 'subjectType' <> all (kind.subjects) then
    perform app_private.refuse_definition(base || '.type',
      format('requires a lead or buyer, which the %s does not have.', lower(scope ->> 'subjectType')));
  elsif jsonb_typeof(step.config) <> 'object' then
    perform app_private.refuse_definition(base || '.config', 'must be an object.');
  end if;
  if step.type = 'WAIT' and num_nonnulls(step.wait_seconds, step.config -> 'until') <> 1 then
    perform app_private.refuse_definition(base || '.waitSeconds', 'a WAIT has either waitSeconds or config.until.');
  elsif step.type = 'WAIT' and step.wait_seconds is not null and step.config ? 'offsetSeconds' then
    perform app_private.refuse_definition(base || '.config.offsetSeconds', 'is only allowed with until.');
  elsif step.type = 'WAIT_FOR_EVENT' and step.wait_seconds is not null then
    perform app_private.refuse_definition(base || '.waitSeconds', 'WAIT_FOR_EVENT has config.timeoutSeconds instead.');
  elsif step.type = 'WAIT' and step.wait_seconds = 0 then
    perform app_private.refuse_definition(base || '.waitSeconds', 'must be from 1 to 31,536,000 seconds (one year).');
  end if;
  select k into wrong from jsonb_object_keys(step.config) k
    where not exists (select from app_hidden.workflow_step_members m where m.type = step.type and m.name = k) limit 1;
  if found then
    perform app_private.refuse_definition(format('%s.config.%s', base, left(wrong, 50)),
      format('the config of %s has no such field; it has %s.', step.type,
      coalesce((select string_agg(m.name, ', ' order by m.position) from app_hidden.workflow_step_members m
        where m.type = step.type), 'none')));
  end if;
  for member in select m.* from app_hidden.workflow_step_members m where m.type = step.type order by m.position loop
    at := format('%s.config.%s', base, member.name);
    value := step.config -> member.name;
    if member.with_name is not null then
      if coalesce(step.config ->> member.with_name, '') <> member.with_value then
        if value is not null then
          perform app_private.refuse_definition(at,
            format('is only allowed with %s: %s.', member.with_name, member.with_value));
        end if;
        continue;
      elsif value is null then
        perform app_private.refuse_definition(at,
          format('is required with %s: %s.', member.with_name, member.with_value));
      end if;
    elsif value is null then
      if member.required then
        perform app_private.refuse_definition(at, 'is required.');
      end if;
      continue;
    end if;
    case member.kind
      when 'text' then
        if jsonb_typeof(value) <> 'string' or length(value #>> '{}') not between 1 and member.most then
          perform app_private.refuse_definition(at, format('must be a string of at most %s characters.', member.most));
        end if;
      when 'template' then
        perform app_private.check_template(value, member.most, at, scope, step.checks);
      when 'templates' then
        if jsonb_typeof(value) <> 'object' then
          perform app_private.refuse_definition(at, 'must be an object.');
        end if;
        perform app_private.check_templates(value, member.most, at, scope, step.checks);
      when 'integer' then
        if jsonb_typeof(value) <> 'number' or (value #>> '{}')::numeric not between member.least and member.most
          or (value #>> '{}')::numeric % 1 <> 0 then
          perform app_private.refuse_definition(at,
            format('must be a whole number from %s to %s.', member.least, member.most));
        end if;
      when 'boolean' then
        if jsonb_typeof(value) <> 'boolean' then
          perform app_private.refuse_definition(at, 'must be true or false.');
        end if;
      when 'choice' then
        if jsonb_typeof(value) <> 'string' or value #>> '{}' <> all (member.choices) then
          perform app_private.refuse_definition(at,
            format('must be one of %s.', array_to_string(member.choices, ', ')));
        end if;
      when 'member' then
        perform app_private.check_user(value, at, scope);
      when 'members' then
        if jsonb_typeof(value) <> 'array' or jsonb_array_length(value) not between member.least and member.most then
          perform app_private.refuse_definition(at, format('must list %s to %s members.', member.least, member.most));
        end if;
        for i in 0 .. jsonb_array_length(value) - 1 loop
          perform app_private.check_user(value -> i, format('%s[%s]', at, i), scope);
        end loop;
      when 'email' then
        if jsonb_typeof(value) <> 'string'
          or (value #>> '{}') !~ '^[^\s@"<>(),;:\\\[\]]+@[^\s@"<>(),;:\\\[\]]+\.[^\s@"<>(),;:\\\[\]]{2,}$'
          or length(value #>> '{}') > 254 then
          perform app_private.refuse_definition(at, 'must be an email address, such as ada@example.com.');
        end if;
      when 'url' then
        if jsonb_typeof(value) <> 'string' or (value #>> '{}') !~* '^https://' or length(value #>> '{}') > member.most
          then
          perform app_private.refuse_definition(at, 'must be a URL that starts with https://.');
        elsif step.checks -> at is null or step.checks -> at ? 'fault' then
          perform app_private.refuse_definition(at,
            coalesce(step.checks -> at ->> 'fault', 'this URL was not checked.'));
        end if;
      when 'event' then
        perform app_private.check_event(value, at, scope, true);
      when 'condition' then
        perform app_private.check_condition(value, at, case when step.type = 'WAIT_FOR_EVENT'
          then scope || jsonb_build_object('event', step.config -> 'event') else scope end);
      when 'sequence', 'timeout' then
        continue when member.kind = 'timeout' and value in ('"CONTINUE"', '"STOP"');
        if jsonb_typeof(value) <> 'number' or (value #>> '{}')::numeric % 1 <> 0 then
          perform app_private.refuse_definition(at, case member.kind when 'timeout'
            then 'must be CONTINUE, STOP or the sequence of a later step.'
            else 'must be the sequence of a later step.' end);
        elsif (value #>> '{}')::numeric <= step.sequence then
          perform app_private.refuse_definition(at,
            format('step %s does not come later than step %s, so this would be a cycle.', value #>> '{}',
            step.sequence));
        elsif (value #>> '{}')::numeric > (scope ->> 'steps')::int then
          perform app_private.refuse_definition(at,
            format('there is no step %s; the last one is %s.', value #>> '{}', scope ->> 'steps'));
        end if;
      when 'time' then
        if jsonb_typeof(value) <> 'string' or (value #>> '{}') !~ '^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)+$' then
          perform app_private.refuse_definition(at,
            'must be a variable that is a time, such as reservation.expiresAt.');
        end if;
        perform app_private.check_variable(string_to_array(value #>> '{}', '.'), at, scope);
        if split_part(value #>> '{}', '.', 1) not in ('context', 'steps', 'event') and not exists (
          select from app_private.record_columns(coalesce((select r.table_name from app_hidden.workflow_roots r
            where r.root = split_part(value #>> '{}', '.', 1)),
            app_private.subject_table(scope ->> 'subjectType'))) c
          where c.name = split_part(value #>> '{}', '.', 2) and c.type in ('timestamptz'::regtype, 'date'::regtype))
            then
          perform app_private.refuse_definition(at, format('%s is no time.', value #>> '{}'));
        end if;
      when 'field' then
        table_of := case coalesce(step.config ->> 'record', 'SUBJECT') when 'LEAD' then 'leads' when 'BUYER'
          then 'buyers' else app_private.subject_table(scope ->> 'subjectType') end;
        if step.config ->> 'record' in ('LEAD', 'BUYER') and scope ->> 'subjectType' = 'UNIT' then
          perform app_private.refuse_definition(base || '.config.record', 'a unit has neither a lead nor a buyer.');
        end if;
        select a.attname, a.attnotnull into of_column from pg_attribute a
          where a.attrelid = format('app_public.%I', table_of)::regclass and a.attnum > 0 and not a.attisdropped
            and app_hidden.camel(a.attname) = value #>> '{}'
            and has_column_privilege('plat_user', a.attrelid, a.attnum, 'UPDATE');
        if not found then
          perform app_private.refuse_definition(at, format('this field cannot be set; use one of %s.',
            (select string_agg(app_hidden.camel(a.attname), ', ' order by a.attname)
            from pg_attribute a where a.attrelid = format('app_public.%I', table_of)::regclass and a.attnum > 0
              and not a.attisdropped and has_column_privilege('plat_user', a.attrelid, a.attnum, 'UPDATE'))));
        end if;
      when 'value' then
        if jsonb_typeof(value) = 'string' and (value #>> '{}') ~ '\{[{%]' then
          perform app_private.check_template(value, member.most, at, scope, step.checks);
        elsif value = 'null' and of_column.attnotnull then
          perform app_private.refuse_definition(at, 'this field cannot be null.');
        else
          perform app_private.check_value(table_of, of_column.attname, value, at, scope);
        end if;
    end case;
  end loop;
  if step.type = 'SEND_EMAIL' and scope ->> 'subjectType' = 'UNIT'
    and coalesce(step.config ->> 'to', 'PERSON') in ('PERSON', 'ASSIGNEE') then
    perform app_private.refuse_definition(base || '.config.to',
      'a unit has neither a lead nor an assignee; write to a member or an address.');
  end if;
end $$;
comment on function app_private.check_step(app_public.workflow_steps, jsonb) is 'Refuses a step that cannot be.';

create function app_private.check_workflow(workflow app_public.workflows, checks jsonb) returns void
language plpgsql stable as $$
declare
  step app_public.workflow_steps;
  scope jsonb := jsonb_build_object('subjectType', workflow.subject_type, 'organizationId', workflow.organization_id,
    'projectId', workflow.project_id);
  lacking text;
begin
  perform app_private.check_trigger(workflow.trigger, scope, checks);
  scope := scope || jsonb_build_object('event', workflow.trigger -> 'event',
    'steps', (select count(*) from app_public.workflow_steps s where s.workflow_id = workflow.id
      and s.revision = workflow.steps_revision));
  if workflow.conditions is not null then
    perform app_private.check_condition(workflow.conditions, 'conditions', scope);
  end if;
  for step in select s.* from app_public.workflow_steps s where s.workflow_id = workflow.id
    and s.revision = workflow.steps_revision order by s.sequence loop
    perform app_private.check_step(step, scope);
  end loop;
  lacking := app_private.workflow_lacks(workflow);
  if lacking is not null then
    perform app_hidden.fail('FORBIDDEN',
      format('The workflow would act on your behalf, which requires the permission %s.', lacking),
      jsonb_build_object('permission', lacking));
  end if;
end $$;
comment on function app_private.check_workflow(app_public.workflows, jsonb) is
  'Refuses a workflow, as it was written, that cannot be, or that does what the viewer may not.';

comment on domain app_public.workflow_checks is
  E'@transform workflowChecks\n@given\n\nWhat the service read of a definition that SQL cannot: templates, cron line '
  'and addresses, by their path.';

comment on type app_public.workflow_step_input is
  'One action of a workflow, in its order; `type` decides which fields apply.';

comment on column app_public.workflow_step_input.type is
  E'@notNull\n\nType of effect, such as a refund or a change of status.';
comment on column app_public.workflow_step_input.name is 'Display title.';
comment on column app_public.workflow_step_input.config is 'Configuration of the step; its fields depend on the type.';
comment on column app_public.workflow_step_input.wait_seconds is
  'Delay in seconds: the duration of a WAIT, or the delay before another step.';
comment on column app_public.workflow_step_input.on_error is 'Action if the step fails. Default: RETRY.';

create function app_private.require_managed_workflow(id uuid) returns app_public.workflows
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  workflow app_public.workflows;
begin
  perform app_hidden.require_viewer();
  select w.* into workflow from app_public.workflows w where w.id = require_managed_workflow.id and w.deleted_at is null
    and w.organization_id = any ((select app_hidden.viewer_organizations('workflow.read'))::uuid[]) for no key update;
  if workflow.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such workflow.', '{"field": "id"}');
  end if;
  perform app_hidden.require_organization(workflow.organization_id, 'workflow.manage');
  return workflow;
end $$;
comment on function app_private.require_managed_workflow(uuid) is
  'The workflow, locked; refuses viewers who may not change it.';

create function app_private.write_steps(workflow app_public.workflows, steps app_public.workflow_step_input[],
  checks jsonb) returns void
language plpgsql volatile as $$
declare
  most constant int := 100;
begin
  if coalesce(cardinality(steps), 0) not between 1 and most then
    perform app_private.refuse_definition('steps', format('must have 1 to %s steps.', most));
  end if;
  for i in 1 .. cardinality(steps) loop
    -- Before the constraint of the table, so that the error has a path.
    if steps[i].wait_seconds is not null and steps[i].wait_seconds not between 0 and 31536000 then
      perform app_private.refuse_definition(format('steps[%s].waitSeconds', i - 1),
        'must be from 1 to 31,536,000 seconds (one year).');
    elsif length(btrim(steps[i].name)) > 300 then
      perform app_private.refuse_definition(format('steps[%s].name', i - 1), 'must have 1 to 300 characters.');
    end if;
  end loop;
  insert into app_public.workflow_steps (workflow_id, organization_id, revision, sequence, type, name, config,
    wait_seconds, on_error, checks)
    select workflow.id, workflow.organization_id, workflow.steps_revision, s.n, s.type, nullif(btrim(s.name), ''),
      -- A member that is null is as if omitted, but the value that a field is set to.
      case when jsonb_typeof(s.config) = 'object'
        then coalesce((select jsonb_object_agg(c.key, c.value) from jsonb_each(s.config) c
        where c.value <> 'null' or (s.type = 'UPDATE_FIELD' and c.key = 'value')), '{}')
          else coalesce(s.config, '{}') end,
      s.wait_seconds, coalesce(s.on_error, 'RETRY'),
      coalesce((select jsonb_object_agg(c.key, c.value) from jsonb_each(checks) c
        where c.key like format('steps[%s].%%', s.n - 1)), '{}')
    from unnest(steps) with ordinality s (type, name, config, wait_seconds, on_error, n);
end $$;
comment on function app_private.write_steps(app_public.workflows, app_public.workflow_step_input[], jsonb) is
  'Writes the steps of the present revision.';

create function app_public.create_workflow(input jsonb, steps app_public.workflow_step_input[],
  checks app_public.workflow_checks) returns app_public.workflows
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 500;
  home uuid := app_hidden.record_id('organizations', input ->> 'organization_id', 'organizationId');
  result app_public.workflows;
begin
  perform app_hidden.require_organization(home, 'workflow.manage');
  if input ->> 'project_id' is not null and not exists (
    select from app_public.projects p where p.id = app_hidden.record_id('projects', input ->> 'project_id', 'projectId')
      and p.organization_id = home and p.deleted_at is null) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project in this organization.', '{"field": "projectId"}');
  end if;
  -- Two concurrent calls must not both be the last one within the limit.
  perform from app_public.organizations o where o.id = home for no key update;
  if (select count(*) from app_public.workflows w where w.organization_id = home and w.deleted_at is null) >= most then
    perform app_hidden.fail('LIMIT_EXCEEDED', format('The limit of %s workflows is reached; delete one first.', most),
      jsonb_build_object('limit', most));
  end if;
  if input -> 'trigger' is not null then
    perform app_private.check_trigger(input -> 'trigger',
      jsonb_build_object('subjectType', input ->> 'subject_type', 'organizationId', home), checks);
  end if;
  result := app_hidden.create_record(null::app_public.workflows, input);
  perform app_private.write_steps(result, steps, checks);
  perform app_private.check_workflow(result, checks);
  return result;
end $$;
comment on function app_public.create_workflow is
  E'@arg steps Steps in order of execution, from 1 to 100.\n\n'
  'Creates a workflow as a draft; `enableWorkflow` activates it. An invalid definition is refused, and `field` of '
  'the error is the path, such as steps[2].config.then. Requires the permission workflow.manage and the '
  'permissions for what the workflow reads and changes.';

create function app_public.update_workflow(input jsonb, checks app_public.workflow_checks,
  steps app_public.workflow_step_input[] default null) returns app_public.workflows
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  workflow app_public.workflows;
  result app_public.workflows;
begin
  perform app_hidden.require_viewer();
  workflow := app_private.require_managed_workflow(app_hidden.record_id('workflows', input ->> 'id'));
  if workflow.status = 'ARCHIVED' then
    perform app_hidden.fail('CONFLICT', 'This workflow is archived and can no longer be changed.', '{"field": "id"}');
  end if;
  if jsonb_typeof(input -> 'trigger') <> 'null' then
    perform app_private.check_trigger(input -> 'trigger',
      jsonb_build_object('subjectType', workflow.subject_type, 'organizationId', workflow.organization_id,
      'projectId', workflow.project_id), checks);
  end if;
  result := app_hidden.update_record(null::app_public.workflows,
    input || case when steps is null then '{}'
      else jsonb_build_object('steps_revision', workflow.steps_revision + 1) end);
  if steps is not null then
    perform app_private.write_steps(result, steps, checks);
  end if;
  -- Stored lines were valid when they were written.
  perform app_private.check_workflow(result, '{"trigger.schedule": {}}' || checks);
  return result;
end $$;
comment on function app_public.update_workflow is $$
@arg steps Replaces the steps for executions that start from now on; running executions keep the previous ones.

Updates a workflow. Omitted fields stay unchanged. Requires the permission workflow.manage and the permissions for
what it reads and changes: after a change of its definition, it acts on behalf of the viewer.$$;

create function app_private.set_workflow_status(id uuid, status text) returns app_public.workflows
language plpgsql volatile as $$
declare
  workflow app_public.workflows := app_private.require_managed_workflow(id);
begin
  -- Also to where it is already.
  perform app_private.require_step('workflow', workflow.status, set_workflow_status.status);
  if set_workflow_status.status = 'ENABLED' then
    -- Members may have left meanwhile, and records been deleted.
    perform app_private.check_workflow(workflow, '{"trigger.schedule": {}}');
  end if;
  update app_public.workflows w set status = set_workflow_status.status where w.id = workflow.id
    returning w.* into workflow;
  return workflow;
end $$;
comment on function app_private.set_workflow_status(uuid, text) is 'Takes a step of the workflow by hand.';

create function app_public.enable_workflow(id uuid) returns app_public.workflows
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.set_workflow_status(id, 'ENABLED') $$;

create function app_public.disable_workflow(id uuid) returns app_public.workflows
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.set_workflow_status(id, 'DISABLED') $$;

create function app_public.archive_workflow(id uuid) returns app_public.workflows
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.set_workflow_status(id, 'ARCHIVED') $$;
comment on function app_public.enable_workflow is
  'Enables a workflow: from now on it can be started by its trigger, manually and in batches, and acts on behalf '
  'of the viewer. Earlier events do not start it. Requires workflow.manage and the permissions for everything that '
  'the workflow reads and changes.';
comment on function app_public.disable_workflow is
  'Disables a workflow: it is no longer started. Running executions continue. Requires the permission '
  'workflow.manage.';
comment on function app_public.archive_workflow is
  'Archives a disabled workflow: it can no longer be started or changed. Requires the permission workflow.manage.';
grant execute on function app_public.create_workflow, app_public.update_workflow, app_public.enable_workflow,
  app_public.disable_workflow, app_public.archive_workflow to plat_user, plat_anonymous;
