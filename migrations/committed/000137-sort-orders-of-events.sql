--! Previous: sha1:9ab92e5edb54ab1dc7d9348865f4d227c8a533f8
--! Hash: sha1:d27f6c132780164b105cc5af04f35a0766fd29c1
--! Message: sort-orders-of-events

-- Sort orders of the root list of events.
select app_private.create_enum('events_sort', array['OLDEST', 'NEWEST']);
