-- What the roles of the API read of tables with masked columns is derived from the comments of the columns, the masking
-- functions, and the policies and grants of all tables.

select app_private.make_masked_views();
select app_private.make_event_view();
