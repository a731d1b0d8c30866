-- The functions of create, update and delete are derived from the columns, keys and grants of all tables.

select app_private.make_record_functions();
