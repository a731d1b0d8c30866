-- Jobs that failed for the last time are asked for by those who look after the service; few jobs ever enter this index.
-- squawk-ignore require-concurrent-index-creation
create index if not exists plat_failed_jobs on graphile_worker._private_jobs (id) where attempts >= max_attempts;
