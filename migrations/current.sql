-- Workers and their connections that are gone: since when. What they held is free after a while, not at once.
alter table app_private.workers add column gone_at timestamptz;

create table app_private.worker_connections (
  -- Beyond the numbers of server processes, by which workers of former releases held what they held.
  id integer generated always as identity (start with 10000000) primary key,
  gone_at timestamptz
);
alter table app_private.worker_connections enable row level security;
