-- The functions behind create, update and delete follow the columns, keys and grants of all tables.

select app_private.make_record_functions();
