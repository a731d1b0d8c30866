--! Previous: sha1:4b6a4f41ad6b68c9b709ea48203f20850578aa44
--! Hash: sha1:2076a4ac8869637a16e1f24679bf01d1bb80e8b8
--! Message: processor-events

-- What the processor tells by itself. An event only says which object changed: whoever handles it asks for the present state, so
-- that events may come twice and in any order.

create table app_private.processor_events (
  id text primary key,
  type text not null,
  object_id text,
  account_id text,
  created_at timestamptz not null,
  received_at timestamptz not null default now(),
  handled_at timestamptz
);
create index processor_events_created_at on app_private.processor_events (created_at);
create index processor_events_received_at on app_private.processor_events (received_at);
alter table app_private.processor_events enable row level security;
comment on table app_private.processor_events is 'The events of the processor that were taken, by its ids, so that each is handled once.';

create function app_private.take_processor_event(event jsonb) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_private.processor_events (id, type, object_id, account_id, created_at)
    values (event ->> 'id', event ->> 'type', event ->> 'objectId', event ->> 'accountId', to_timestamp((event ->> 'created')::bigint))
    on conflict do nothing;
  if found then
    perform app_private.add_job('processor_event__taken', jsonb_build_object('id', event ->> 'id'), job_key => 'processor event ' || (event ->> 'id'));
  end if;
  return found;
end $$;
comment on function app_private.take_processor_event(jsonb) is 'Takes an event of the processor, once, and enqueues what follows from it.';
grant execute on function app_private.take_processor_event(jsonb) to plat_authenticator;

create function app_private.handled_processor_event(id text) returns void
language sql volatile as $$
  update app_private.processor_events e set handled_at = now() where e.id = $1
$$;

create function app_private.sweep_processor_events() returns timestamptz
language plpgsql volatile as $$
begin
  -- Longer than the processor repeats them, and than it lists them.
  delete from app_private.processor_events e where e.received_at < now() - interval '60 days';
  delete from app_private.sandbox_requests r where r.inserted_at < now() - interval '24 hours';
  return (select max(e.created_at) from app_private.processor_events e);
end $$;
comment on function app_private.sweep_processor_events() is 'Forgets old events; returns when the latest one that was taken was made.';
