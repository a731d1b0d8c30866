-- What the API's roles read of tables with masked columns follows the comments of the columns, the functions that mask
-- and the grants of all tables.

select app_private.make_masked_view(c.relname) from pg_class c
where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p')
  and app_hidden.masked_columns(c.oid) <> '{}'
order by c.relname;
