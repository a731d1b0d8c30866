-- Events that only depend on time: an open house begins, a promotion ends, a deposit is due or overdue. No record
-- changes then, because its fields are computed from the current time. A job writes these events each minute, from
-- where it stopped; each kind is a row here. What was already over when it was recorded has no event.

comment on table app_private.clock_steps is
  'Time-based events, and the time up to which each was written: `at` is the moment, of the record n and its '
  'project p; `near` is true between $1 and $2 at least, along an index; `pending` for which records.';
comment on column app_private.clock_steps.told_at is E'@runtime\n\nUp to which time events were written.';
comment on column app_private.clock_steps.told_id is
  E'@runtime\n\nThe last record of that time whose event was written.';

create function app_private.make_clock_step(subject text, name text, at text, near text, pending text,
  changes jsonb default null) returns void
language plpgsql volatile as $$
begin
  insert into app_private.clock_steps (subject, name, at, near, pending, changes)
    values (subject, name, at, near, pending, changes);
  -- A name that webhooks and workflows may ask for.
  insert into app_private.event_names (subject, column_name, value, name) values (subject, 'clock', name, name);
end $$;
comment on function app_private.make_clock_step(text, text, text, text, text, jsonb) is
  'Has an event written when the clock has come to a moment of a record.';

create function app_private.clock_step_names() returns table (subject text, name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select s.subject::text, s.name::text from app_private.clock_steps s order by s.subject, s.name
$$;
comment on function app_private.clock_step_names() is 'The steps that the clock makes.';

create function app_private.write_clock_step(step app_private.clock_steps, from_at timestamptz, from_id uuid,
  upto timestamptz, batch int, organization_id uuid default null)
returns table (amount int, last_at timestamptz, last_id uuid)
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  relation regclass := (select format('app_public.%I', r.table_name)::regclass from app_hidden.record_types r
    where r.subject = step.subject);
  columns name[];
begin
  select array_agg(a.attname order by a.attnum) into columns from pg_attribute a
    where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attname not in ('version', 'updated_at')
      and coalesce(col_description(relation, a.attnum), '') !~ '@secret';
  execute format($sql$
    with due as (
      select n.id, (%2$s) as at from %1$s n left join app_public.projects p on p.id = n.project_id
      where (%3$s) and (%4$s) and n.deleted_at is null and p.archived_at is null%6$s
        and ((%2$s), n.id) > ($1, $3) and (%2$s) <= $2
      order by 2, 1 limit $4
    ), written as (
      insert into app_private.pending_events (stream_id, organization_id, project_id, name, subject_type, subject_id,
        actor_type, channel, changes, data)
      select n.organization_id, n.organization_id, n.project_id, $5 || '.' || $6, $5, n.id, 'SYSTEM', 'SYSTEM', $7,
        (%5$s) || case when $7 ? 'status' then jsonb_build_object('status', $7 -> 'status' -> 1) else '{}' end
      from due join %1$s n on n.id = due.id order by due.at, due.id
      returning stream_id
    ), batches as (
      insert into app_private.event_batches (stream_id) select distinct stream_id from written on conflict do nothing
    )
    select count(*), max(d.at), (array_agg(d.id order by d.at desc, d.id desc))[1] from due d$sql$,
    relation, step.at, step.near, step.pending, app_private.column_json(relation, 'n', columns),
    case when organization_id is not null then ' and n.organization_id = $8' end)
    into amount, last_at, last_id
    using from_at, upto, from_id, batch, step.subject, step.name, step.changes, organization_id;
  return next;
end $$;
comment on function app_private.write_clock_step(app_private.clock_steps, timestamptz, uuid, timestamptz, int, uuid) is
  'Writes the events of a step whose moment is after from_at (for records of that moment: after from_id) and not after '
  'upto, at most a batch of them; returns how many, and the last one.';

create function app_private.tell_clock_step(subject text, name text, batch int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  step app_private.clock_steps;
  upto constant timestamptz := now();
  told record;
begin
  -- One process at a time; a second one has nothing to do.
  select s.* into step from app_private.clock_steps s where s.subject = subject and s.name = name for
    update skip locked;
  if step.subject is null then
    return 0;
  end if;
  select t.* into told from app_private.write_clock_step(step, step.told_at, step.told_id, upto, batch) t;
  update app_private.clock_steps s set told_at = case when told.amount = batch then told.last_at else upto end,
      told_id = case when told.amount = batch then told.last_id else 'ffffffff-ffff-ffff-ffff-ffffffffffff' end
    where s.subject = subject and s.name = name;
  return told.amount;
end $$;
comment on function app_private.tell_clock_step(text, text, int) is
  'Writes time-based events of a step that have become due since the last run, at most a batch; returns their number.';

create function app_private.tell_clock_steps(organization_id uuid, seconds int) returns void
language plpgsql volatile as $$
declare
  step app_private.clock_steps;
begin
  -- Locked, so that no other transaction writes the events of the step.
  for step in select s.* from app_private.clock_steps s order by s.subject, s.name for no key update loop
    perform app_private.write_clock_step(step, step.told_at - make_interval(secs => seconds),
      'ffffffff-ffff-ffff-ffff-ffffffffffff', step.told_at, null, organization_id);
  end loop;
end $$;
comment on function app_private.tell_clock_steps(uuid, int) is
  'Writes the time-based events of an organization whose clock was advanced by a number of seconds.';

select app_private.make_clock_step('open_house', 'started', 'n.starts_at', 'n.starts_at between $1 and $2',
  $$n.status = 'SCHEDULED'$$, '{"status": ["SCHEDULED", "ACTIVE"]}');
select app_private.make_clock_step('open_house', 'ended', 'n.ends_at', 'n.ends_at between $1 and $2',
  $$n.status = 'SCHEDULED'$$, '{"status": ["ACTIVE", "ENDED"]}');
select app_private.make_clock_step('promotion', 'started', 'n.starts_at', 'n.starts_at between $1 and $2',
  $$n.status = 'ACTIVE' and (n.ends_at is null or n.ends_at > n.starts_at)$$, '{"status": ["SCHEDULED", "ACTIVE"]}');
select app_private.make_clock_step('promotion', 'ended', 'n.ends_at', 'n.ends_at between $1 and $2',
  $$n.status in ('ACTIVE', 'PAUSED')$$, '{"status": ["ACTIVE", "ENDED"]}');

-- A day of the project's calendar begins up to 14 hours before, and ends up to 12 hours after, that of UTC.
select app_private.make_clock_step('deposit', 'due', 'n.due_at::timestamp at time zone p.time_zone',
  'n.due_at between ($1 - interval ''2 days'')::date and ($2 + interval ''2 days'')::date',
    $$n.status in ('SCHEDULED', 'INVOICED', 'PROCESSING', 'PARTIALLY_PAID')$$);
select app_private.make_clock_step('deposit', 'overdue', '(n.due_at + 1)::timestamp at time zone p.time_zone',
  'n.due_at between ($1 - interval ''3 days'')::date and ($2 + interval ''2 days'')::date',
    $$n.status in ('SCHEDULED', 'INVOICED', 'PROCESSING', 'PARTIALLY_PAID')$$);
select app_private.make_clock_step('task', 'overdue', 'n.due_at', 'n.due_at between $1 and $2',
  $$n.status in ('OPEN', 'IN_PROGRESS', 'WAITING')$$);
grant execute on function app_private.clock_step_names, app_private.tell_clock_step to plat_worker;
