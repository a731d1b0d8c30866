-- State machines as data. One table declares the transitions; the trigger that refuses all others, the field
-- allowedTransitions and the documentation use it.

create policy everybody on app_hidden.transitions for select to plat_user, plat_anonymous using (true);

grant select on app_hidden.transitions to plat_user, plat_anonymous;

comment on table app_hidden.transitions is
  'The steps of each state machine; from_state null is a state to begin in; by_service steps are taken by the service '
  'only.';

create policy everybody on app_hidden.transition_requirements for select to plat_user, plat_anonymous
  using (true);

grant select on app_hidden.transition_requirements to plat_user, plat_anonymous;

comment on table app_hidden.transition_requirements is 'What must be filled in before a record may enter a state.';

comment on type app_public.transition is
  'A transition to another status that the viewer can make with an update mutation.';

comment on column app_public.transition."to" is E'@notNull\n\nStatus after the transition.';
comment on column app_public.transition.allowed is
  E'@notNull\n\nWhether the transition is possible now. If not, see `blockedBy`.';
comment on column app_public.transition.blocked_by is E'@notNull\n\nNames of the fields that must be set first.';

create function app_hidden.transitions_from(subject text, record_now jsonb) returns app_public.transition[]
language sql stable as $$
  select coalesce(array_agg(row(t.to_state, b.fields = '{}', b.fields)::app_public.transition order by t.to_state),
    '{}')
  from app_hidden.transitions t
  cross join lateral (
    select coalesce(array_agg(app_hidden.camel(r.column_name) order by r.column_name), '{}') as fields
    from app_hidden.transition_requirements r
    where r.subject = t.subject and r.to_state = t.to_state and record_now ->> r.column_name is null
  ) b
  where t.subject = $1 and t.from_state = record_now ->> 'status' and not t.by_service
$$;
comment on function app_hidden.transitions_from(text, jsonb) is 'The steps by hand from the present state of a record.';

create function app_hidden.is_service() returns boolean
language sql stable as $$ select app_hidden.setting('service') = 'on' $$;

create function app_private.refuse_missing(subject text, state text, record_now jsonb) returns void
language plpgsql stable as $$
declare
  requirement app_hidden.transition_requirements;
begin
  select * into requirement from app_hidden.transition_requirements r
    where r.subject = refuse_missing.subject and r.to_state = state and record_now ->> r.column_name is null
      order by r.column_name limit 1;
  if found then
    perform app_hidden.fail('BAD_USER_INPUT', requirement.message,
      jsonb_build_object('field', app_hidden.camel(requirement.column_name)));
  end if;
end $$;
comment on function app_private.refuse_missing(text, text, jsonb) is
  'Refuses a record that lacks what its state requires, on the way into the state and as long as it is there.';

create function app_private.tg__state() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  subject text := tg_argv[0];
  step record;
  state_before text;
begin
  -- Referenced rows are deleted first.
  if tg_op = 'UPDATE' and app_private.is_removing() then
    return new;
  end if;
  if tg_op = 'UPDATE' then
    if new.status is not distinct from old.status then
      if exists (select from app_hidden.transition_requirements r where r.subject = tg_argv[0]
        and r.to_state = new.status) then
        perform app_private.refuse_missing(subject, new.status, to_jsonb(new));
      end if;
      return new;
    end if;
    state_before := old.status;
  end if;
  -- Not "is not distinct from", which reaches no index.
  if state_before is null then
    select t.by_service, t.permission,
        exists (select from app_hidden.transition_requirements r where r.subject = tg_argv[0]
          and r.to_state = new.status) as has_requirements
      into step from app_hidden.transitions t where t.subject = tg_argv[0] and t.from_state is null
        and t.to_state = new.status;
  else
    select t.by_service, t.permission,
        exists (select from app_hidden.transition_requirements r where r.subject = tg_argv[0]
          and r.to_state = new.status) as has_requirements
      into step from app_hidden.transitions t where t.subject = tg_argv[0] and t.from_state = state_before
        and t.to_state = new.status;
  end if;
  if step is null or (step.by_service and not coalesce(app_hidden.is_service(), false)) then
    perform app_hidden.fail('INVALID_TRANSITION',
      case when tg_op = 'INSERT' then format('The %s cannot have the initial status %s.', replace(subject, '_', ' '),
        new.status)
        when step.by_service then format('Only the service can set the %s to %s.', replace(subject, '_', ' '),
          new.status)
        else format('The %s is %s and cannot become %s.', replace(subject, '_', ' '), state_before, new.status) end,
      jsonb_build_object('from', state_before, 'to', new.status, 'field', 'status', 'allowedTransitions', (
        select coalesce(jsonb_agg(t.to_state order by t.to_state), '[]') from app_hidden.transitions t
        where t.subject = tg_argv[0] and t.from_state is not distinct from state_before and not t.by_service)));
  end if;
  if step.permission is not null and app_public.current_user_id() is not null
    and not coalesce(app_hidden.is_service(), false)
    and not app_hidden.project_can((to_jsonb(new) ->> 'project_id')::uuid, (to_jsonb(new) ->> 'organization_id')::uuid,
      step.permission) then
    perform app_hidden.fail('FORBIDDEN', format('This transition requires the permission %s.', step.permission),
      jsonb_build_object('permission', step.permission));
  end if;
  if step.has_requirements then
    perform app_private.refuse_missing(subject, new.status, to_jsonb(new));
  end if;
  if tg_argv[1]::boolean then
    new.status_changed_at := now();
  end if;
  return new;
end $$;
comment on function app_private.tg__state() is
  'Refuses steps that app_hidden.transitions does not list; the arguments are the subject and whether the table has '
  'status_changed_at.';

create function app_private.make_state_machine(table_name text, subject text, steps text[], initial text[],
  requirements text[] default '{}') returns void
language plpgsql volatile as $$
begin
  insert into app_hidden.transitions (subject, from_state, to_state) select subject, null, unnest(initial);
  insert into app_hidden.transitions (subject, from_state, to_state, by_service, permission)
    select subject, s.step[1], s.step[2], coalesce(s.step[3] = 'service', false), s.step[4]
    from (select array[steps[i][1], steps[i][2], steps[i][3], steps[i][4]] as step
      from generate_subscripts(steps, 1) i) s
    on conflict do nothing;
  insert into app_hidden.transition_requirements (subject, to_state, column_name, message)
    select subject, requirements[i][1], requirements[i][2], requirements[i][3]
      from generate_subscripts(requirements, 1) i;
  perform app_private.state_triggers(table_name, subject);
end $$;
comment on function app_private.make_state_machine(text, text, text[], text[], text[]) is
  'Gives a table with a status its machine: steps are {from, to, hand|service, permission}, requirements are {to, '
  'column, message}.';

-- PERF: the trigger has a condition with the initial states and the requirements of each state, so that it is only
-- called if there is something to check. The conditions follow the rows of app_hidden.transitions and
-- transition_requirements.
create function app_private.state_triggers(table_name text, subject text) returns void
language plpgsql volatile as $$
declare
  relation regclass := format('app_public.%I', table_name)::regclass;
  has_time boolean := exists (select from pg_attribute a where a.attrelid = relation and a.attname = 'status_changed_at'
    and not a.attisdropped);
  lacking text := coalesce((select string_agg(format('(new.status::text = %L and new.%I is null)', r.to_state,
    r.column_name), ' or ')
    from app_hidden.transition_requirements r where r.subject = state_triggers.subject), 'false');
  initial text[] := array(select t.to_state from app_hidden.transitions t
    where t.subject = state_triggers.subject and t.from_state is null and not t.by_service and t.permission is null);
begin
  execute format('create or replace trigger _300_state_first before insert on %s for each row
      when (new.status is null or new.status::text <> all (%L::text[])
        or %s) execute function app_private.tg__state(%L, %L)',
    relation, initial, lacking, subject, has_time);
  execute format('create or replace trigger _300_state before update on %s for each row
      when (old.status is distinct from new.status or %s) execute function app_private.tg__state(%L, %L)', relation,
        lacking, subject, has_time);
end $$;
comment on function app_private.state_triggers(text, text) is
  'Makes the triggers of a state machine, or brings them up to its present rows.';

create function app_private.make_state_triggers() returns void
language plpgsql volatile as $$
begin
  perform app_private.state_triggers(c.relname, r.subject)
    from app_hidden.record_types r
    join pg_class c on c.relname = r.table_name and c.relnamespace = 'app_public'::regnamespace
    join pg_trigger t on t.tgrelid = c.oid and t.tgname = '_300_state' and t.tgfoid = 'app_private.tg__state'::regproc;
end $$;
comment on function app_private.make_state_triggers() is
  'Brings the triggers of all state machines up to the rows of app_hidden.transitions and transition_requirements.';

revoke execute on function app_hidden.is_service from plat_user, plat_anonymous;
