-- Counts commits that changed a stream, with events or without: what was read at the same revision is as it was.
alter table app_private.event_counters add column if not exists revision bigint not null default 1;
