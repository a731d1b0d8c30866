-- The triggers that check that parents are not deleted are derived from the foreign keys of all records.

select app_private.make_parent_checks();
