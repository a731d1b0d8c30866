--! Previous: sha1:ce97b3d8111a5e6976c091f1957f77c620938e8d
--! Hash: sha1:9d42bd540599d13fda9b32d606875a8abbc10d58
--! Message: worker-connections

-- Workers and their connections that are gone: since when. What they held is free after a while, not at once.
alter table app_private.workers add column gone_at timestamptz;

create table app_private.worker_connections (
  -- Beyond the numbers of server processes, by which workers of former releases held what they held.
  id integer generated always as identity (start with 10000000) primary key,
  gone_at timestamptz
);
alter table app_private.worker_connections enable row level security;
