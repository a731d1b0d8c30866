--! Previous: sha1:5aa8199fe2d3e5d7ddf2ac6cd7238367d90ea7fe
--! Hash: sha1:3b5d58c7c3807b0ae9e067f2ee2fd796461c46db
--! Message: worker-connections

-- Workers and their connections that are gone: since when. What they held is free after a while, not at once.
alter table app_private.workers add column gone_at timestamptz;

create table app_private.worker_connections (
  -- Beyond the numbers of server processes, by which workers of former releases held what they held.
  id integer generated always as identity (start with 10000000) primary key,
  gone_at timestamptz
);
alter table app_private.worker_connections enable row level security;
