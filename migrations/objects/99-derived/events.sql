-- What viewers may not read of events is derived from the @masked comments of the columns of all records, and the
-- masking functions.

select app_private.make_event_masks();

-- Who may see an event follows the policies of the tables of all records.
select app_private.make_event_readers();


-- The kinds that have most events. One that the query looks for itself takes some 10 µs an event, the function 40 to
-- 400 µs. Each further kind would make each page of events begin half a millisecond later where it is planned for its
-- values, whether or not it has such events.
select app_private.make_event_policy(array['lead', 'unit', 'task', 'phone_call', 'lead_note', 'appointment',
  'workflow_execution']);
