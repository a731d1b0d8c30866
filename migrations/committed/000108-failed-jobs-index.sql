--! Previous: sha1:13be486afe99e5af2fae575810e1133bfe5fdf11
--! Hash: sha1:6ba81ba07027bd931242cdc737672183f63ac618
--! Message: failed-jobs-index

-- Jobs that failed for the last time are asked for by those who look after the service; few jobs ever enter this index.
-- squawk-ignore require-concurrent-index-creation
create index if not exists plat_failed_jobs on graphile_worker._private_jobs (id) where attempts >= max_attempts;
