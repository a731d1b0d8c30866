-- What the sandbox processor remembers, so that it survives restarts and several processes have one: its objects as the
-- API of the real one shows them, what it answered under which idempotency key, and the events that it still has to
-- deliver. Nothing else of the database reads these tables.

comment on table app_private.sandbox_objects is 'The objects of the sandbox processor.';
comment on table app_private.sandbox_requests is 'What the sandbox processor answered under idempotency keys.';
