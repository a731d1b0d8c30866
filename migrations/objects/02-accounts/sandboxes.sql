-- Sandbox organizations are for trying out programs: everything works in them, and nothing leaves for leads or buyers.
-- Their owner can turn their clock forward. There is one clock for the whole database, now(), which policies, indexes
-- and jobs rely on; so turning the clock of a sandbox makes everything in it older: each date and time is moved into
-- the past by as much. What was to come within that time is due at once, in the order and with the effects that it
-- would have had.

comment on column app_public.organizations.is_sandbox is
  'Whether it is a sandbox for testing: it sends messages to its members only, its projects are never listed '
  'publicly, and its clock can be advanced (`advanceSandboxClock`). Cannot be changed after creation.';
comment on column app_public.organizations.clock_ahead_seconds is
  'Number of seconds by which the clock of a sandbox was advanced; 0 for other organizations.';
comment on constraint organizations_clock_of_sandboxes on app_public.organizations is
  'Only the clock of a sandbox organization can be advanced.';
insert into app_private.event_names (subject, column_name, value, name) values
  ('organization', 'clock_ahead_seconds', null, 'clock_advanced');

create function app_private.is_turning() returns boolean
language sql stable as $$ select coalesce(current_setting('plat.turning', true), '') = 'on' $$;
comment on function app_private.is_turning() is
  'Whether the clock of a sandbox is being advanced, which moves times of otherwise immutable records.';

create function app_private.clock_relations()
returns table (relation regclass, condition text, times name[], days name[])
language sql stable as $$
  with recursive owned as (
    -- Records of two organizations follow the clock of the owner of the project.
    select o.relation, format('t.%I = $1', coalesce(r.other_party, 'organization_id')) collate "C" as condition
      from app_private.organization_relations() o
      left join pg_class c on c.oid = o.relation and c.relnamespace = 'app_public'::regnamespace
      left join app_hidden.record_types r on r.table_name = c.relname
    union
    -- Tables without a column organization_id refer to one that has it.
    select k.conrelid::regclass, format('t.%I in (select t.%I from %s t where %s)', a.attname, f.attname, o.relation,
        o.condition)
      from owned o join pg_constraint k on k.confrelid = o.relation and k.contype = 'f' and k.confdeltype = 'c'
        and cardinality(k.conkey) = 1
      join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1] and a.attnotnull
      join pg_attribute f on f.attrelid = k.confrelid and f.attnum = k.confkey[1]
      where not exists (select from pg_attribute h where h.attrelid = k.conrelid and h.attname = 'organization_id'
        and not h.attisdropped)
  )
  select distinct on (o.relation) o.relation, o.condition, c.times, c.days
  from owned o
  cross join lateral (
    select
      coalesce(array_agg(a.attname order by a.attnum) filter (where b.type = 'timestamptz'::regtype), '{}') as times,
      coalesce(array_agg(a.attname order by a.attnum) filter (where b.type = 'date'::regtype), '{}') as days
    from pg_attribute a join pg_type t on t.oid = a.atttypid
    cross join lateral (select coalesce(nullif(t.typbasetype, 0), t.oid)::regtype as type) b
    where a.attrelid = o.relation and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      -- Birthdays are of no clock; when a row was changed is kept by a trigger.
      and a.attname not in ('dob', 'updated_at')) c
  where c.times || c.days <> '{}'
    -- Not moved: evidence of signatures; quotas, tokens and counters of the service, which are about real time;
    -- deadlines, which follow their records.
    and o.relation <> all (array['app_public.agreement_trail_entries', 'app_public.access_tokens',
      'app_private.access_token_secrets', 'app_private.sending_counts', 'app_private.sending_changes',
      'app_private.schema_usage', 'app_private.job_deaths', 'app_private.workflow_streams', 'app_hidden.deadlines',
      'app_public.workflow_steps']::regclass[])
  order by o.relation, length(o.condition)
$$;
comment on function app_private.clock_relations() is
  'The tables whose rows live by the clock of an organization ($1 in their condition), with their columns of times and '
  'of dates.';

create function app_private.age_organization(organization_id uuid, seconds int, days int) returns void
language plpgsql volatile as $$
declare
  updates text;
begin
  -- In one statement, which reads all rows as they were: times that triggers derive from those of other records are
  -- not moved twice.
  select string_agg(format('%I as (update %s t set %s where %s)', 'r' || r.relation::oid, r.relation, a.assignments,
      r.condition), E',\n  ' order by r.relation::text) into updates
    from app_private.clock_relations() r
    cross join lateral (select string_agg(s.assignment, ', ') as assignments from (
      select format('%1$I = t.%1$I - make_interval(secs => $2)', c) as assignment from unnest(r.times) c
      union all select format('%1$I = t.%1$I - $3', c) from unnest(r.days) c) s) a;
  perform app_private.set_erasing(true);
  perform set_config('plat.turning', 'on', true);
  execute 'with ' || updates || ' select' using organization_id, seconds, days;
  perform set_config('plat.turning', '', true);
  perform app_private.set_erasing(false);
end $$;
comment on function app_private.age_organization(uuid, int, int) is
  'Moves all times of an organization into the past by a number of seconds, and its dates by a number of days, '
  'without events.';

create function app_private.advance_jobs(organization_id uuid, seconds int) returns void
language plpgsql volatile as $$
begin
  perform graphile_worker.reschedule_jobs(array[j.id], run_at => j.run_at - make_interval(secs => seconds))
    from graphile_worker._private_jobs j
    where j.run_at > now() and j.locked_at is null and j.payload #>> '{context,organizationId}' = organization_id::text;
end $$;
comment on function app_private.advance_jobs(uuid, int) is
  'Moves scheduled jobs of an organization forward by a number of seconds.';

create function app_public.advance_sandbox_clock(organization_id uuid, seconds int) returns app_public.organizations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  most_seconds constant int := 366 * 86400;
  most_events constant int := 50000;
  result app_public.organizations;
  days int;
begin
  perform app_hidden.require_organization(organization_id, 'org.owner');
  -- It may rewrite all events of the sandbox: one at a time, whatever sandboxes somebody has.
  if not pg_try_advisory_xact_lock(hashtextextended('plat.clock ' || app_public.current_user_id(), 0)) then
    perform app_hidden.fail('RATE_LIMITED', 'You are turning a clock at the moment; try again when that is done.',
      '{"retryAfterSeconds": 5}');
  end if;
  perform app_private.rate_limit('sandbox.clock', app_public.current_user_id()::text);
  select o.* into result from app_public.organizations o where o.id = organization_id for no key update;
  if not result.is_sandbox then
    perform app_hidden.fail('CONFLICT', 'Only the clock of a sandbox organization can be advanced; create one with '
      'isSandbox of createOrganization.', '{"field": "organizationId"}');
  elsif seconds is null or seconds not between 1 and most_seconds then
    perform app_hidden.fail('BAD_USER_INPUT', 'Must be from 1 to 31,622,400 seconds (366 days).',
      '{"field": "seconds"}');
  elsif result.clock_ahead_seconds + seconds::bigint > 10 * most_seconds then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'The clock of a sandbox can be at most ten years ahead; create another '
      'sandbox.', '{"field": "seconds", "limit": 316224000}');
  elsif (select count(*) from (select from app_public.events e where e.organization_id = organization_id
      limit most_events + 1) e) > most_events then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'The clock can only be advanced while a sandbox has at most 50,000 '
      'events; create another sandbox.', '{"limit": 50000}');
  end if;
  -- Dates move when the clock passes midnight.
  days := (result.clock_ahead_seconds + seconds) / 86400 - result.clock_ahead_seconds / 86400;
  perform app_private.age_organization(organization_id, seconds, days);
  perform app_private.tell_clock_steps(organization_id, seconds);
  perform app_private.advance_jobs(organization_id, seconds);
  update app_public.organizations o set clock_ahead_seconds = o.clock_ahead_seconds + seconds
    where o.id = organization_id returning * into result;
  perform app_private.call_workflow_engine(), pg_notify('plat_triggers', 'SCHEDULE'),
    pg_notify('plat_webhooks', organization_id::text);
  return app_hidden.masked(result);
end $$;
grant execute on function app_public.advance_sandbox_clock to plat_user, plat_anonymous;
comment on function app_public.advance_sandbox_clock is $$
@eachTime
@arg organization_id The sandbox; the viewer must be its owner.
@arg seconds Number of seconds, up to 366 days. Dates without a time move by one day per midnight passed.

Advances the clock of a sandbox organization, by moving all its dates and times into the past. Everything due within
that time happens now: holds, reservations and offers expire, workflows continue, open houses start and end, and
members get reminders. Refused with CONFLICT for other organizations. Writes the event organization.clock_advanced.$$;

create function app_private.tg_projects__sandbox() returns trigger
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from app_public.organizations o where o.id = new.organization_id and o.is_sandbox) then
    perform app_hidden.fail('CONFLICT', 'Projects of a sandbox organization are never public; those that are UNLISTED '
      'can be read by anybody who has their address.', '{"field": "visibility"}');
  end if;
  return new;
end $$;
create trigger _210_sandbox before insert or update of visibility on app_public.projects
  for each row when (new.visibility = 'PUBLIC') execute function app_private.tg_projects__sandbox();

create function app_private.may_mail(organization_id uuid, recipient text, is_invitation boolean default false)
returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select not exists (select from app_public.organizations o where o.id = $1 and o.is_sandbox)
    or exists (select from app_hidden.user_identities i
      join app_public.organization_user_connections m on m.user_id = i.user_id and m.organization_id = $1
      where i.email = lower($2))
    or is_invitation and exists (select from app_public.organization_invites i
      where i.organization_id = $1 and i.email = lower($2) and i.status = 'PENDING')
$$;
grant execute on function app_private.may_mail to plat_worker;
comment on function app_private.may_mail(uuid, text, boolean) is
  'Whether mails of an organization are sent to an address: those of a sandbox only to its members, and invitations to '
  'become one.';
