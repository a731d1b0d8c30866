-- How many organizations the planner expects is declared for all tables that belong to one.

select app_private.declare_tenants();
