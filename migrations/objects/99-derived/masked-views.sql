-- What the roles of the API read of tables with masked columns follows the comments of the columns, the functions that
-- mask, and the policies and grants of all tables.

select app_private.make_masked_views();
