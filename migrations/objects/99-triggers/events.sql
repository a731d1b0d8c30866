-- The triggers that write events follow the columns, the @secret comments and the names of events of all records, so
-- they are made when everything else stands.

select app_private.make_event_triggers();
