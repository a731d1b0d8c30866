-- Events as they are committed, for GET /events/stream (src/live). A process that has streams of an organization holds
-- a shared advisory lock for it; a commit with events of the organization notifies only where somebody holds one. The
-- process reads once for all streams whose viewers may do the same, as one of them: policies and masks hold as in the
-- feed. What it reads is complete up to a sequence, since those of an organization have no gaps and become visible in
-- their order.

-- PERF: few locks for any number of organizations; that two of them share one costs a notification now and then.
create function app_private.stream_lock(organization_id uuid) returns int
language sql immutable as $$ select hashtext(organization_id::text) & 1023 $$;
comment on function app_private.stream_lock(uuid) is
  'The number of the advisory lock that processes with streams of the organization share.';

create function app_private.listen_to_events(organization_id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select pg_advisory_lock_shared(7528005, app_private.stream_lock(organization_id))
$$;
comment on function app_private.listen_to_events(uuid) is
  'Has commits with events of the organization notify plat_events, with its id and the last sequence, as long as the '
  'connection lasts.';
create function app_private.unlisten_to_events(organization_id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select pg_advisory_unlock_shared(7528005, app_private.stream_lock(organization_id))
$$;
comment on function app_private.unlisten_to_events(uuid) is 'Takes one listen_to_events back.';

create function app_private.tg_event_batches__call_streams() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  number constant int := app_private.stream_lock(new.stream_id);
begin
  -- PERF: commits that notify are serialized, so only those with listeners do. The lock is released immediately:
  -- held to the end of the transaction it would have other writers take it for that of a listener.
  if pg_try_advisory_lock(7528005, number) then
    perform pg_advisory_unlock(7528005, number);
  else
    perform pg_notify('plat_events', format('%s %s', new.stream_id, app_private.last_sequence(new.stream_id)));
  end if;
  return null;
end $$;
create constraint trigger _620_call_streams after insert on app_private.event_batches
  deferrable initially deferred for each row execute function app_private.tg_event_batches__call_streams();

create function app_private.last_sequence(stream_id uuid) returns bigint
language sql stable as $$
  select coalesce((select c.last_sequence from app_private.event_counters c
    where c.stream_id = last_sequence.stream_id), 0)
$$;
comment on function app_private.last_sequence(uuid) is
  'The number up to which the statement that asks sees all events of a stream; 0 before the first.';

create function app_hidden.event_head(organization_id uuid) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.last_sequence(organization_id)
  where organization_id = any (app_hidden.viewer_organizations('org.member'))
    or organization_id = any (app_hidden.viewer_organizations('audit.read'))
    or exists (select from app_public.projects p where p.organization_id = event_head.organization_id
      and p.id = any (app_hidden.viewer_projects('project.read')))
$$;
comment on function app_hidden.event_head(uuid) is
  'The last sequence of an organization; null where the viewer has no part in it, neither as a member nor in one of '
  'its projects.';

create function app_hidden.event_message(e app_public.events, changes jsonb, data jsonb) returns text
language sql stable as $$
  select case when octet_length(whole.body::text) <= 262144 then whole.body::text
    else json_build_object('id', e.id, 'type', e.name, 'timestamp', e.occurred_at,
      'sequence', e.sequence::text, 'organizationId', e.organization_id, 'projectId', e.project_id, 'subjectType',
        e.subject_type, 'subjectId', e.subject_id,
      'truncated', true)::text end
  from (select json_build_object('id', e.id, 'type', e.name, 'timestamp', e.occurred_at, 'sequence', e.sequence::text,
    'organizationId', e.organization_id,
    'projectId', e.project_id, 'subjectType', e.subject_type, 'subjectId', e.subject_id, 'actorId', e.actor_id,
      'actorType', e.actor_type,
    'channel', e.channel, 'requestId', e.request_id,
    'changes', event_message.changes, 'data', event_message.data) as body
    -- Computed once: without the offset, each reference above would compute it again, including masks.
    offset 0) whole
$$;
comment on function app_hidden.event_message(app_public.events, jsonb, jsonb) is
  'Payload of an event for webhooks and streams, with the given changes and record. 256 KB at most: of a larger '
  'one all but the record itself, which the receiver reads from the API.';

-- SECURITY INVOKER: policies and masks are those of the viewer.
create function app_hidden.read_events(organization_id uuid, after_sequence bigint, most int)
returns table (sequence bigint, name text, project_id uuid, subject_type text, subject_id uuid,
  occurred_at timestamptz, message text, head bigint)
language sql stable rows 200 as $$
  with span as materialized (
    select h.head, least(h.head, after_sequence + most) as upto
    from app_hidden.event_head(read_events.organization_id) h (head)
    where h.head is not null
  ), told as materialized (
    select e.sequence, e.name, e.project_id, e.subject_type, e.subject_id, e.occurred_at,
      app_hidden.event_message(row(e.*)::app_public.events, e.changes, e.data) as message
    from span s
    join app_hidden.masked_events e on e.organization_id = read_events.organization_id
      and e.sequence > after_sequence and e.sequence <= s.upto
  ), measured as (
    select t.*, sum(octet_length(t.message)) over (order by t.sequence) - octet_length(t.message) as bytes_before
    from told t
  )
  select m.sequence, m.name, m.project_id, m.subject_type, m.subject_id, m.occurred_at, m.message, null::bigint
    from measured m where m.bytes_before < 500000
  union all
  select coalesce((select min(m.sequence) - 1 from measured m where m.bytes_before >= 500000), s.upto),
      null, null, null, null, null, null, s.head
    from span s
  order by 1, 8 nulls first
$$;
comment on function app_hidden.read_events(uuid, bigint, int) is
  'The events of an organization after a sequence that the viewer may read, as the policy of events says: of at '
  'most a number of sequence numbers, 500 kB or one event. The last row has no event but the head: up to its '
  'number that is all. Nothing where the viewer has no part in the organization.';

-- PERF: most of the time of a reading is the start of its plan and of a transaction. Within one statement, neither is
-- repeated for each viewer.
create function app_hidden.read_events_for(viewers jsonb, organization_id uuid, most int)
returns table (viewer int, sequence bigint, name text, project_id uuid, subject_type text, subject_id uuid,
  occurred_at timestamptz, message text, head bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  most_bytes constant int := 2000000;
  most_bytes_of_viewer constant int := 500000;
  bytes int := 0;
  bytes_of_viewer int;
  one record;
  newest bigint;
  upto bigint;
begin
  for one in select v.viewer, v.number::int from jsonb_array_elements(viewers) with ordinality v (viewer, number) loop
    exit when bytes > most_bytes;
    -- All of them: what one viewer is restricted to must not restrict the next.
    perform set_config(s.name, coalesce(one.viewer ->> s.name, ''), true)
      from unnest(array['plat.user_id', 'plat.token_id', 'plat.organization_id', 'plat.scopes']) s (name);
    viewer := one.number;
    newest := app_hidden.event_head(read_events_for.organization_id);
    upto := case when newest is not null then least(newest, (one.viewer ->> 'after')::bigint + most) end;
    bytes_of_viewer := 0;
    head := null;
    for sequence, name, project_id, subject_type, subject_id, occurred_at, message in
      select e.sequence, e.name, e.project_id, e.subject_type, e.subject_id, e.occurred_at,
        app_hidden.event_message(row(e.*)::app_public.events, e.changes, e.data)
      from app_hidden.seen_events e where e.organization_id = read_events_for.organization_id
        and e.sequence > (one.viewer ->> 'after')::bigint and e.sequence <= upto
      order by e.sequence
    loop
      if bytes_of_viewer >= most_bytes_of_viewer then
        upto := sequence - 1;
        exit;
      end if;
      bytes_of_viewer := bytes_of_viewer + octet_length(message);
      return next;
    end loop;
    bytes := bytes + bytes_of_viewer;
    return query select one.number, upto, null, null::uuid, null, null::uuid, null::timestamptz, null, newest;
  end loop;
end $$;
comment on function app_hidden.read_events_for(jsonb, uuid, int) is
  'read_events for several viewers, each by its settings and the sequence `after` that it has, by their places. A '
  'viewer without a part in the organization has one row of nulls; those behind 2 MB have none, and are read again.';

create function app_hidden.begin_stream(organization text, project text, out organization_id uuid,
  out project_id uuid, out head bigint)
language sql stable as $$
  select o.id, app_hidden.record_id('projects', project, 'projectId'), app_hidden.event_head(o.id)
  from app_hidden.record_id('organizations', organization, 'organizationId') o (id)
$$;
comment on function app_hidden.begin_stream(text, text) is
  'Organization and project of a stream by their ids or slugs, and the last sequence; that is null where the viewer '
  'has no part in the organization.';
grant execute on function app_hidden.event_head, app_hidden.event_message, app_hidden.read_events,
  app_hidden.read_events_for, app_hidden.begin_stream to plat_user;
revoke execute on function app_hidden.read_events, app_hidden.read_events_for, app_hidden.begin_stream
  from plat_anonymous;

-- Each process checks its streams twice a second, with one statement for all of them.
create function app_private.moved_streams(organization_ids uuid[], sequences bigint[]) returns setof uuid
language sql stable security definer rows 10 set search_path = pg_catalog, pg_temp as $$
  select g.id from unnest(organization_ids, sequences) g (id, sequence)
  where app_private.last_sequence(g.id) > g.sequence
$$;
comment on function app_private.moved_streams(uuid[], bigint[]) is
  'Those of some organizations that have events after these sequences: a notification of them may have been missed.';

create function app_private.changed_viewers(user_ids uuid[], session_ids uuid[], token_sha256s bytea[],
  versions text[]) returns table (number int, version text)
language sql stable security definer rows 10 set search_path = pg_catalog, pg_temp as $$
  with given as materialized (
    select g.* from unnest(user_ids, session_ids, token_sha256s, versions)
      with ordinality g (user_id, session_id, token_sha256, version, number)
  ), access as materialized (
    select u.user_id, concat_ws('.',
      (select coalesce(sum(v.version), 0) from app_private.access_versions v
        where v.party_id in (u.user_id, '00000000-0000-0000-0000-000000000000')
          or v.party_id in (select m.organization_id from app_public.organization_user_connections m
            where m.user_id = u.user_id)),
      (select count(*) from app_public.organization_user_connections m
        where m.user_id = u.user_id and m.second_factor_due_at <= now())) as version
    from (select distinct g.user_id from given g) u
  )
  select g.number::int, p.version from given g join access a on a.user_id = g.user_id
  cross join lateral (select case when app_private.token_holds(g.user_id, g.session_id, g.token_sha256)
    then a.version end as version) p
  where p.version is distinct from g.version
$$;
comment on function app_private.changed_viewers(uuid[], uuid[], bytea[], text[]) is
  E'@step The tokens were verified when their streams began.\n\nThose of some tokens, by their place, whose access is '
  'not of the version given, with its present version; null where the token has ended.';
grant execute on function app_private.listen_to_events, app_private.unlisten_to_events, app_private.moved_streams,
  app_private.changed_viewers to plat_authenticator;
-- A process that runs jobs as well listens on the connection of its background work.
grant execute on function app_private.listen_to_events, app_private.unlisten_to_events to plat_worker;

-- Tickets: pages of browsers open streams by an address alone, and a token does not belong into one.
comment on table app_private.stream_tickets is
  'Tickets that open one stream each, within a minute, with the token that each was asked for with.';

create function app_private.issue_stream_ticket(ticket_sha256 bytea, user_id uuid, session_id uuid,
  token_sha256 bytea, token_expires_at timestamptz) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  most constant int := 100;
  result timestamptz := least(now() + interval '1 minute', token_expires_at);
begin
  delete from app_private.stream_tickets t where t.expires_at < now();
  if (select count(*) from app_private.stream_tickets t where t.user_id = issue_stream_ticket.user_id) >= most then
    perform app_hidden.fail('RATE_LIMITED', 'There are too many tickets that were not used; try again in a minute.',
      '{"retryAfterSeconds": 60}');
  end if;
  insert into app_private.stream_tickets (ticket_sha256, user_id, session_id, token_sha256, token_expires_at,
      expires_at)
    values (ticket_sha256, user_id, session_id, token_sha256, token_expires_at, result);
  return result;
end $$;
comment on function app_private.issue_stream_ticket(bytea, uuid, uuid, bytea, timestamptz) is
  E'@step The token is verified.\n\nKeeps a ticket for the token, and returns until when it can be used: a minute.';

create function app_private.redeem_stream_ticket(ticket_sha256 bytea)
returns table (user_id uuid, session_id uuid, token_sha256 bytea, token_expires_at timestamptz)
language sql volatile security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  with taken as (
    delete from app_private.stream_tickets t where t.ticket_sha256 = redeem_stream_ticket.ticket_sha256 returning t.*)
  select t.user_id, t.session_id, t.token_sha256, t.token_expires_at from taken t where t.expires_at > now()
$$;
comment on function app_private.redeem_stream_ticket(bytea) is
  'The token that a ticket stands for, once; no row for one that is unknown, was used or has expired.';
grant execute on function app_private.issue_stream_ticket, app_private.redeem_stream_ticket to plat_authenticator;
