--! Previous: sha1:45d218d7bfae4954308ac0dad2f1888f6371f7b0
--! Hash: sha1:14541aadfa19221b3237d396951b46e1b008571b
--! Message: revisions-of-streams

-- Counts commits that changed a stream, with events or without: what was read at the same revision is as it was.
alter table app_private.event_counters add column if not exists revision bigint not null default 1;
