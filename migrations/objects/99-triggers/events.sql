-- The triggers that write events are derived from the columns, the @secret comments and the event names of all records,
-- so they are created last.

select app_private.make_event_triggers();
