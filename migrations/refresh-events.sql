-- After each migration: the triggers of events follow columns, comments and names of events.
select app_private.refresh_events();
