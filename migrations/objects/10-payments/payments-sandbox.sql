-- The state of the sandbox processor, so that it survives restarts and is shared by processes: its objects as in the
-- real API, responses by idempotency key, and undelivered events. Nothing else in the database reads these tables.

comment on table app_private.sandbox_objects is
  E'@worker It stands for a party outside of the service.\n\nThe objects of the sandbox processor.';
comment on table app_private.sandbox_requests is
  E'@worker It stands for a party outside of the service.\n\nWhat the sandbox processor answered under idempotency '
  'keys.';

-- Like an external system, it is only used by the client of the processor.
create policy sandbox on app_private.sandbox_objects to plat_worker using (true);
create policy sandbox on app_private.sandbox_requests for select to plat_worker using (true);
create policy sandbox_insert on app_private.sandbox_requests for insert to plat_worker with check (true);
grant select, insert, update, delete on app_private.sandbox_objects to plat_worker;
grant select, insert on app_private.sandbox_requests to plat_worker;
