-- The fields of former records are described as the columns of their tables are.

select app_private.describe_as_of('unit_as_of', 'units');
select app_private.describe_as_of('reservation_as_of', 'reservations');
