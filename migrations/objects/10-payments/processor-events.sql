-- Events of the processor. An event only says which object changed: its handler reads the current state, so that events
-- may repeat and arrive in any order.

comment on table app_private.processor_events is
  'The events of the processor that were taken, by its ids, so that each is handled once.';

create function app_private.take_processor_event(event jsonb) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_private.processor_events (id, type, object_id, account_id, created_at)
    values (event ->> 'id', event ->> 'type', event ->> 'objectId', event ->> 'accountId',
      to_timestamp((event ->> 'created')::bigint))
    on conflict do nothing;
  if found then
    perform app_private.add_job('processor_event__taken', jsonb_build_object('id', event ->> 'id'),
      job_key => 'processor event ' || (event ->> 'id'));
  end if;
  return found;
end $$;
comment on function app_private.take_processor_event(jsonb) is
  'Takes an event of the processor, once, and enqueues what follows from it.';
grant execute on function app_private.take_processor_event(jsonb) to plat_authenticator;

create function app_private.subject_of_processor_event(id text) returns table (payment jsonb, account jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.payment_of_processor(e.object_id), app_private.account_to_sync(e.account_id)
  from app_private.processor_events e where e.id = subject_of_processor_event.id and e.handled_at is null
$$;
comment on function app_private.subject_of_processor_event(text) is
  'The payment or account that an event is about, nulls where it is none of ours; no row for one that is handled.';

create function app_private.handled_processor_event(id text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_private.processor_events e set handled_at = now() where e.id = $1
$$;

create function app_private.sweep_processor_events() returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Longer than the processor repeats them, and than it lists them.
  delete from app_private.processor_events e where e.received_at < now() - interval '60 days';
  delete from app_private.sandbox_requests r where r.inserted_at < now() - interval '24 hours';
  return (select max(e.created_at) from app_private.processor_events e);
end $$;
comment on function app_private.sweep_processor_events() is
  'Forgets old events; returns when the latest one that was taken was made.';
grant execute on function app_private.handled_processor_event, app_private.subject_of_processor_event,
  app_private.sweep_processor_events, app_private.take_processor_event to plat_worker;
