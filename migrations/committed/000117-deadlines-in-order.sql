--! Previous: sha1:0dc3bfea1cae144c756b046240e4787c6a1b5675
--! Hash: sha1:7920407d770bf66351c067bac8baea1fd67ae9a2
--! Message: deadlines-in-order

-- In the order in which deadlines are settled: many that are due at one moment are not sorted for each batch. Few
-- rows: what has not ended yet.
-- squawk-ignore require-concurrent-index-creation
create index deadlines_in_order on app_hidden.deadlines (organization_id, due_at, kind, record_id);
-- squawk-ignore require-concurrent-index-deletion
drop index app_hidden.deadlines_organization;
