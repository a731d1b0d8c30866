--! Previous: sha1:e0b1d8e640b667f644fcf240bb60f30a9e278c74
--! Hash: sha1:481d3de7194d05d2f631ef0818923e11a3a8a54f
--! Message: connection-ids

-- Beyond all numbers of processes: what workers of former releases hold by such a number is not taken for the
-- connection of another one.
alter table app_private.worker_connections alter column id restart with 1073741824;
