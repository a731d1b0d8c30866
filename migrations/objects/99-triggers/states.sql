-- The conditions of the triggers of state machines follow the steps and requirements that all files declare.

select app_private.make_state_triggers();
