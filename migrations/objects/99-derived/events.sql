-- What viewers may not read of events is derived from the @masked comments of the columns of all records, and the
-- masking functions.

select app_private.make_event_masks();

-- The visibility of events follows the policies of all record tables.
select app_private.make_event_readers();


-- The kinds with the most events. Checking one in the query takes about 10 µs per event, calling the function 40 to
-- 400 µs. Each further kind would delay each page of events by half a millisecond if it is planned for its values,
-- even without such events.
select app_private.make_event_policy(array['lead', 'unit', 'task', 'phone_call', 'lead_note', 'appointment',
  'workflow_execution']);
