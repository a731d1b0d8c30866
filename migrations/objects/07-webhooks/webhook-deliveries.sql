-- Webhook deliveries. A commit with events of an organization with webhooks notifies the workers. A worker fans the
-- stream out: each webhook has a cursor, moved in the transaction that writes the deliveries up to it, so that no event
-- is lost or duplicated when a process dies. Each delivery is a row of the queue, leased to the worker that sends it;
-- the lease of a dead worker ends. The consequences of an attempt are decided here.
--
-- PENDING → SUCCEEDED, RETRYING; RETRYING → SUCCEEDED, FAILED after the last retry; DISCARDED if the webhook is
-- disabled or deleted.

comment on table app_private.webhook_queue is
  'The deliveries that are not over. While a worker sends a delivery, it is leased to the worker''s connection '
  '(holder). If the connection or the lease ends, it is due again for any worker.';
comment on table app_private.webhook_redeliveries is
  'Ranges of the stream to redeliver, with their progress.';

create policy admins on app_public.webhook_deliveries for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]));

grant select on app_public.webhook_deliveries to plat_user, plat_anonymous;

comment on table app_public.webhook_deliveries is
  E'@behavior -operation\n'
  '@defaultOrder id desc\n'
  -- No constraint: a delivery may outlive the row of its event.
  '@foreignKey (event_id) references events (id)|@fieldName event|@forwardDescription The delivered event; null for '
  'a test.'
  '|@backwardBehavior -*\n\n'
  'The delivery of one event to a webhook, with the latest response of the receiver.';
comment on column app_public.webhook_deliveries.webhook_id is E'@behavior -*\n\nThe webhook.';
comment on column app_public.webhook_deliveries.organization_id is E'@behavior -*\n\nThe organization.';
comment on column app_public.webhook_deliveries.event_id is E'@behavior -*\n\nThe delivered event; null for a test.';
comment on column app_public.webhook_deliveries.attempt is 'Number of attempts so far.';
comment on column app_public.webhook_deliveries.status is 'Current status.';
comment on column app_public.webhook_deliveries.response_status is
  'HTTP status of the last response; null if there was none.';
comment on column app_public.webhook_deliveries.response_body is
  E'@personal\n\nBeginning of the last response body, or why there was no response.';
comment on column app_public.webhook_deliveries.duration_ms is 'Duration of the last attempt in milliseconds.';
comment on column app_public.webhook_deliveries.next_attempt_at is
  'When the next attempt is due; null if there is none.';
comment on constraint webhook_deliveries_organization_id_fkey on app_public.webhook_deliveries is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe organization.';
comment on constraint webhook_deliveries_webhook_id_fkey on app_public.webhook_deliveries is
  E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe webhook.';

-- The stream calls the workers.
create function app_private.call_dispatchers(organization_id uuid) returns void
language plpgsql volatile as $$
begin
  perform pg_notify('plat_webhooks', organization_id::text);
end $$;
comment on function app_private.call_dispatchers(uuid) is
  'Tells the workers, at commit, that there is something to send.';

create function app_private.tg_event_batches__announce() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- PERF: commits that notify take turns, so only those do that somebody waits for.
  if exists (select from app_private.webhook_progress p where p.organization_id = new.stream_id) then
    perform app_private.call_dispatchers(new.stream_id);
  end if;
  return null;
end $$;
create constraint trigger _600_announce after insert on app_private.event_batches
  deferrable initially deferred for each row execute function app_private.tg_event_batches__announce();

-- Effect of a webhook's status on pending deliveries.
create function app_private.discard_deliveries(webhook_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  delete from app_private.webhook_redeliveries r where r.webhook_id = discard_deliveries.webhook_id;
  with gone as (delete from app_private.webhook_queue q where q.webhook_id = discard_deliveries.webhook_id
    returning q.delivery_id)
  update app_public.webhook_deliveries d set status = 'DISCARDED', next_attempt_at = null from gone
    where d.id = gone.delivery_id;
end $$;
comment on function app_private.discard_deliveries(uuid) is 'Discards pending deliveries of a webhook.';

create function app_private.review_sender(webhook app_public.webhooks) returns void
language sql volatile as $$
  select app_private.review_principal(case when webhook.integration_id is null then 'app_public.webhooks'
    else 'app_public.organization_integrations' end, coalesce(webhook.integration_id, webhook.id))
$$;
comment on function app_private.review_sender(app_public.webhooks) is
  'Suspends a webhook, or the integration that it belongs to, where its principal has ended.';

create function app_private.review_webhook(id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.review_sender(w) from app_public.webhooks w
  where w.id = review_webhook.id and w.deleted_at is null
$$;
comment on function app_private.review_webhook(uuid) is
  'Suspends a webhook, or the integration that it belongs to, where its principal has ended.';

create function app_private.disabled_webhook(id uuid)
returns table (url text, reason text, organization text, owners text[])
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select w.url, w.disabled_reason, o.name, app_private.owner_addresses(o.id)
  from app_public.webhooks w join app_public.organizations o on o.id = w.organization_id and o.deleted_at is null
  where w.id = disabled_webhook.id and w.integration_id is null and w.status = 'DISABLED' and w.deleted_at is null
$$;
comment on function app_private.disabled_webhook(uuid) is
  'Notice to the owners about a webhook that the service disabled; none if it was enabled since.';

-- Fanning out.
create function app_private.make_deliveries(webhook app_public.webhooks, after_sequence bigint,
  to_sequence bigint) returns void
language plpgsql volatile as $$
declare
  readable text[];
begin
  if not app_private.act_as_principal(webhook.principal_id, webhook.principal_token_id)
    or not app_hidden.organization_can(webhook.organization_id, 'org.admin') then
    perform app_private.set_claims('{}');
    perform app_private.review_sender(webhook);
    return;
  end if;
  readable := app_private.readable_subjects(webhook.organization_id);
  perform app_private.set_claims('{}');
  with wanted as (
    select e.id, e.sequence from app_public.events e
    where e.organization_id = webhook.organization_id and e.sequence > after_sequence and e.sequence <= to_sequence
      and app_hidden.event_matches(e.name, webhook.events) and (readable is null or e.subject_type = any (readable))
      -- Events about a webhook caused by its deliveries are not delivered to it.
      and e.subject_id <> webhook.id
  ), made as (
    insert into app_public.webhook_deliveries (organization_id, webhook_id, event_id, next_attempt_at)
      select webhook.organization_id, webhook.id, w.id, now() from wanted w order by w.sequence returning id
  ), dispatched as (
    update app_public.events e set dispatched_at = now() from wanted w where e.id = w.id and e.dispatched_at is null
  )
  insert into app_private.webhook_queue (delivery_id, webhook_id) select m.id, webhook.id from made m;
end $$;
comment on function app_private.make_deliveries(app_public.webhooks, bigint, bigint) is
  'Queues the events of a range that a webhook wants and its principal may read.';

create function app_private.locked_webhook_progress(webhook_id uuid) returns app_private.webhook_progress
language sql volatile set lock_timeout = '50ms' as $$
  select p from app_private.webhook_progress p where p.webhook_id = locked_webhook_progress.webhook_id
  for no key update
$$;
comment on function app_private.locked_webhook_progress(uuid) is
  'Locks the cursor of a webhook and returns it; lock_not_available where another transaction holds it for 50 ms.';

create function app_private.fan_out_webhooks(batch int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  webhook app_public.webhooks;
  behind record;
  progress app_private.webhook_progress;
  redelivery record;
  upto bigint;
  more boolean := false;
begin
  -- One process at a time; the one that holds it was notified too.
  if not pg_try_advisory_xact_lock(7528000002) then
    return false;
  end if;
  -- In batches, so that no webhook and no organization keeps the others waiting.
  for behind in
    select p.webhook_id, c.last_sequence as last_written from app_private.webhook_progress p
    join app_private.event_counters c on c.stream_id = p.organization_id and c.last_sequence > p.last_sequence
    join app_public.webhooks w on w.id = p.webhook_id and w.status in ('ENABLED', 'FAILING') and w.deleted_at is null
    order by p.webhook_id
  loop
    begin
      progress := app_private.locked_webhook_progress(behind.webhook_id);
    exception when lock_not_available then
      -- Its holder, such as an ending attempt, does not notify when it is released.
      more := true;
      continue;
    end;
    continue when progress.webhook_id is null or progress.last_sequence >= behind.last_written;
    select w.* into webhook from app_public.webhooks w where w.id = progress.webhook_id;
    upto := least(behind.last_written, progress.last_sequence + batch);
    perform app_private.make_deliveries(webhook, progress.last_sequence, upto);
    update app_private.webhook_progress p set last_sequence = upto where p.webhook_id = webhook.id;
    more := more or upto < behind.last_written;
  end loop;
  for redelivery in
    select r.id, r.webhook_id, r.next_sequence, r.to_sequence from app_private.webhook_redeliveries r
    join app_public.webhooks w on w.id = r.webhook_id and w.status in ('ENABLED', 'FAILING') and w.deleted_at is null
    order by r.id for update of r skip locked
  loop
    select w.* into webhook from app_public.webhooks w where w.id = redelivery.webhook_id;
    upto := least(redelivery.to_sequence, redelivery.next_sequence + batch - 1);
    perform app_private.make_deliveries(webhook, redelivery.next_sequence - 1, upto);
    if upto < redelivery.to_sequence then
      update app_private.webhook_redeliveries r set next_sequence = upto + 1 where r.id = redelivery.id;
      more := true;
    else
      delete from app_private.webhook_redeliveries r where r.id = redelivery.id;
    end if;
  end loop;
  return more;
end $$;
comment on function app_private.fan_out_webhooks(int) is
  'Creates deliveries for new events, at most one batch per webhook; returns whether there are more, also for '
  'webhooks whose cursor is locked.';

-- Sending: claim, send, record the attempt.
create function app_private.webhook_body(e app_public.events) returns text
language sql stable as $$
  select app_hidden.event_message(e,
    case when app_public.current_user_id() is null then e.changes else app_public.events_changes(e) end,
    case when app_public.current_user_id() is null then e.data else app_public.events_data(e) end)
$$;
comment on function app_private.webhook_body(app_public.events) is
  'What is sent of an event: of its record what the viewer may read.';

create function app_private.free_webhook_deliveries() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  amount int;
begin
  update app_private.webhook_queue q set leased = false, holder = null, due_at = now()
    where q.leased and q.holder <> all (array(select app_private.living_connections()));
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.free_webhook_deliveries() is
  'Ends the leases of workers whose connection is gone: they died. Returns how many.';

create function app_private.retry_pause(attempt int) returns interval
language sql volatile as $$
  select (array['5 s', '5 min', '30 min', '2 h', '5 h', '10 h', '14 h', '20 h',
    '24 h'])[attempt]::interval * (0.8 + 0.4 * random())
$$;
comment on function app_private.retry_pause(int) is
  'Delay after that attempt, with 20 percent jitter; null if it was the last.';

create function app_private.disable_webhook(webhook_id uuid, reason text) returns void
language plpgsql volatile as $$
begin
  update app_public.webhooks w set status = 'DISABLED', disabled_reason = reason where w.id = webhook_id
    and w.status <> 'DISABLED' and w.deleted_at is null;
  if found then
    perform app_private.add_job('webhook__disabled', jsonb_build_object('id', webhook_id));
  end if;
end $$;
comment on function app_private.disable_webhook(uuid, text) is
  'Disables a webhook for the given reason, and notifies the owners.';

create function app_private.record_webhook_delivery(delivery_id uuid, attempt int, response_status int,
  response_body text, duration_ms int, retry_after int)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  before text := coalesce(current_setting('plat.service', true), '');
  queued app_private.webhook_queue;
  health app_private.webhook_health;
  webhook app_public.webhooks;
  took boolean := coalesce(response_status between 200 and 299, false);
  next_at timestamptz;
begin
  -- Webhook before queue, in the same lock order as disabling.
  select w.* into webhook from app_public.webhooks w
    where w.id = (select d.webhook_id from app_public.webhook_deliveries d where d.id = delivery_id) for no key update;
  -- Leased by another worker meanwhile, or discarded: the outcome recorded there counts.
  select q.* into queued from app_private.webhook_queue q
    join app_public.webhook_deliveries d on d.id = q.delivery_id and d.attempt = record_webhook_delivery.attempt
    where q.delivery_id = record_webhook_delivery.delivery_id for update of q;
  if queued.delivery_id is null then
    return;
  end if;
  perform set_config('plat.service', 'on', true);
  if not took and not queued.is_test and response_status is distinct from 410 then
    next_at := now() + app_private.retry_pause(attempt);
    if next_at is not null and retry_after is not null then
      next_at := greatest(next_at, now() + make_interval(secs => least(retry_after, 86400)));
    end if;
  end if;
  update app_public.webhook_deliveries d
    set status = case when took then 'SUCCEEDED' when next_at is not null then 'RETRYING' else 'FAILED' end,
      response_status = record_webhook_delivery.response_status, response_body = record_webhook_delivery.response_body,
      duration_ms = record_webhook_delivery.duration_ms, next_attempt_at = next_at
    where d.id = delivery_id;
  if next_at is null then
    delete from app_private.webhook_queue q where q.delivery_id = record_webhook_delivery.delivery_id;
  else
    update app_private.webhook_queue q set leased = false, holder = null, due_at = next_at
      where q.delivery_id = record_webhook_delivery.delivery_id;
  end if;
  update app_private.webhook_health h set last_delivery_at = now(),
      failure_count = case when took then 0 when queued.is_test then h.failure_count else h.failure_count + 1 end,
      failing_since = case when took then null when queued.is_test then h.failing_since
        else coalesce(h.failing_since, now()) end
    where h.webhook_id = webhook.id returning h.* into health;
  if took and webhook.status = 'FAILING' then
    update app_public.webhooks w set status = 'ENABLED' where w.id = webhook.id;
  elsif not took and not queued.is_test then
    if response_status = 410 then
      perform app_private.disable_webhook(webhook.id, 'The receiver answered 410: it is gone for good.');
    elsif health.failing_since <= now() - interval '5 days' then
      perform app_private.disable_webhook(webhook.id, 'Nothing was taken for five days.');
    elsif health.failure_count >= 3 and webhook.status = 'ENABLED' then
      update app_public.webhooks w set status = 'FAILING' where w.id = webhook.id;
    end if;
  end if;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.record_webhook_delivery(uuid, int, int, text, int, int) is
  'What follows an attempt: success, a later retry, the end, and what that means for the webhook. A null status is no '
  'answer.';

create function app_private.record_webhook_deliveries(delivery_ids uuid[], attempts int[], response_statuses int[],
  response_bodies text[], durations_ms int[]) returns uuid[]
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  free uuid[];
  others uuid[];
begin
  perform set_config('plat.service', 'on', true);
  -- Webhook before queue, in the same lock order as disabling; a locked one does not block others.
  select coalesce(array_agg(w.id), '{}') into free from (
    select w.id from app_public.webhooks w
    where w.status <> 'FAILING' and w.id = any (array(
      select d.webhook_id from app_public.webhook_deliveries d where d.id = any (delivery_ids)))
    order by w.id for no key update skip locked) w;
  with given as (
    select * from unnest(delivery_ids, attempts, response_statuses, response_bodies, durations_ms)
      g (id, attempt, status, body, duration)
  ), over as (
    delete from app_private.webhook_queue q using given g, app_public.webhook_deliveries d
      where q.delivery_id = g.id and q.webhook_id = any (free)
        -- Leased by another worker meanwhile, or discarded: the outcome recorded there counts.
        and d.id = g.id and d.attempt = g.attempt
    returning q.delivery_id, q.webhook_id
  ), noted as (
    update app_public.webhook_deliveries d set status = 'SUCCEEDED', response_status = g.status, response_body = g.body,
        duration_ms = g.duration, next_attempt_at = null
      from over o join given g on g.id = o.delivery_id where d.id = o.delivery_id
  )
  update app_private.webhook_health h set last_delivery_at = now(), failure_count = 0, failing_since = null
    where h.webhook_id in (select o.webhook_id from over o);
  select coalesce(array_agg(d.id), '{}') into others from app_public.webhook_deliveries d
    where d.id = any (delivery_ids) and d.webhook_id <> all (free);
  perform set_config('plat.service', before, true);
  return others;
end $$;
comment on function app_private.record_webhook_deliveries(uuid[], int[], int[], text[], int[]) is
  'Records successful attempts, in bulk. Returns those of webhooks that somebody else has locked or whose status '
  'changes with it: record_webhook_delivery is for these.';

create function app_private.refuse_webhook_secret(delivery_id uuid, attempt int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform app_private.record_webhook_delivery(delivery_id, attempt, null,
    'Its webhook has a secret that is not its own.', 0, null);
  perform set_config('plat.service', 'on', true);
  perform app_private.disable_webhook(d.webhook_id,
    'The secret that it signs with was changed outside of the service, or is that of another webhook: rotate the '
    'secret, then enable it.') from app_public.webhook_deliveries d where d.id = refuse_webhook_secret.delivery_id;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.refuse_webhook_secret(uuid, int) is
  'What follows where the secret of a webhook is not the one that was sealed for it: nothing is sent, and the webhook '
  'is disabled.';

create function app_private.sweep_webhook_deliveries(batch int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  amount int;
begin
  delete from app_public.webhook_deliveries d where d.id = any (array(
    select s.id from app_public.webhook_deliveries s where s.inserted_at < now() - interval '30 days'
      and not exists (select from app_private.webhook_queue q where q.delivery_id = s.id)
    order by s.inserted_at limit batch for update skip locked));
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.sweep_webhook_deliveries(int) is
  'Deletes old finished deliveries, at most a batch; returns their number.';

-- Operations.
create function app_public.send_test_webhook(id uuid) returns app_public.webhook_deliveries
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  webhook app_public.webhooks := app_private.require_webhook(send_test_webhook.id);
  result app_public.webhook_deliveries;
begin
  perform app_private.rate_limit('webhook.test', webhook.id::text, 30, interval '1 minute');
  insert into app_public.webhook_deliveries (organization_id, webhook_id, next_attempt_at)
    values (webhook.organization_id, webhook.id, now()) returning * into result;
  insert into app_private.webhook_queue (delivery_id, webhook_id, is_test) values (result.id, webhook.id, true);
  perform app_private.call_dispatchers(webhook.organization_id);
  return result;
end $$;
comment on function app_public.send_test_webhook is
  'Sends the event webhook.test to a webhook once, regardless of its status. The delivery shows the result. '
  'Requires the permission org.admin.';

create function app_public.redeliver_events(id uuid, from_sequence text,
  to_sequence text default null) returns app_public.webhooks
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  webhook app_public.webhooks := app_private.require_webhook(redeliver_events.id);
  last_sequence bigint := coalesce((select c.last_sequence from app_private.event_counters c
    where c.stream_id = webhook.organization_id), 0);
  first_wanted bigint;
  last_wanted bigint;
begin
  if from_sequence is null or from_sequence !~ '^[0-9]{1,18}$' or from_sequence::bigint not between 1 and last_sequence
    then
    perform app_hidden.fail('BAD_USER_INPUT', format(
      'Specify a sequence number from 1 to %s, as a string.', last_sequence),
      '{"field": "fromSequence"}');
  end if;
  first_wanted := from_sequence::bigint;
  if to_sequence is not null and (to_sequence !~ '^[0-9]{1,18}$' or to_sequence::bigint not between first_wanted
    and last_sequence) then
    perform app_hidden.fail('BAD_USER_INPUT', format(
      'Specify a sequence number from %s to %s, as a string.', first_wanted,
      last_sequence), '{"field": "toSequence"}');
  end if;
  last_wanted := coalesce(to_sequence::bigint, last_sequence);
  if webhook.status = 'DISABLED' then
    perform app_hidden.fail('CONFLICT', 'This webhook is disabled; enable it first.', '{"field": "id"}');
  end if;
  insert into app_private.webhook_redeliveries (webhook_id, next_sequence, to_sequence)
    values (webhook.id, first_wanted, last_wanted);
  perform app_private.call_dispatchers(webhook.organization_id);
  return webhook;
end $$;
comment on function app_public.redeliver_events is
  E'@arg from_sequence Sequence number of the first event.\n@arg to_sequence Sequence number of the last event. '
  'Default: the latest event.\n\n'
  'Redelivers events of a range of sequence numbers that the webhook subscribes to. Events keep their ids. '
  'Requires the permission org.admin.';
grant execute on function app_public.send_test_webhook, app_public.redeliver_events to plat_user, plat_anonymous;
grant execute on function app_private.disabled_webhook, app_private.fan_out_webhooks,
  app_private.free_webhook_deliveries, app_private.refuse_webhook_secret, app_private.review_webhook,
  app_private.record_webhook_deliveries, app_private.record_webhook_delivery,
  app_private.sweep_webhook_deliveries to plat_worker;
