-- The triggers that look whether parents are still there follow the foreign keys of all records.

select app_private.make_parent_checks();
