-- What viewers may not read of events follows the @masked comments of the columns of all records, and the functions
-- that mask.

select app_private.make_event_masks();
