-- The conditions of the triggers of state machines are derived from the transitions and requirements that all files
-- declare.

select app_private.make_state_triggers();
