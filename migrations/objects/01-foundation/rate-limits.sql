-- How often somebody may do something, whatever it is: one row per bucket and key remembers the recent times.

comment on table app_private.rate_limits is
  'The times within the window at which a key (an address, an e-mail address, a user) used a bucket; keys are kept as '
  'SHA-256.';

create function app_private.rate_limit(bucket text, key text, max int, per interval) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  moment timestamptz;
  recent timestamptz[];
  hash bytea := sha256(convert_to(key, 'UTF8'));
begin
  if key is null then
    return;
  end if;
  -- Keys that are not seen any more go as new ones come, so that no job has to clear up.
  delete from app_private.rate_limits r where r.ctid = any (array(
    select s.ctid from app_private.rate_limits s where s.expires_at < now() limit 3 for update skip locked));
  insert into app_private.rate_limits as r (bucket, key_hash, hits, expires_at) values (bucket, hash, '{}', now() + per)
    on conflict on constraint rate_limits_pkey do update set expires_at = excluded.expires_at
    returning r.hits into recent;
  -- From here on the row is ours until the end of the transaction: parallel calls count one after the other.
  moment := clock_timestamp();
  recent := array(select hit from unnest(recent) hit where hit > moment - per order by hit);
  if cardinality(recent) >= max then
    perform app_hidden.fail('RATE_LIMITED', 'Too many tries; wait a little and try again.', jsonb_build_object(
      'retryAfterSeconds', greatest(1,
        ceil(extract(epoch from recent[cardinality(recent) - max + 1] + per - moment))::int)));
  end if;
  update app_private.rate_limits r set hits = recent || moment, expires_at = moment + per
    where r.bucket = bucket and r.key_hash = hash;
end $$;
comment on function app_private.rate_limit(text, text, int, interval) is
  'Counts one use of the bucket by the key and refuses it with RATE_LIMITED when there were max uses within the window '
  'before. A null key is not limited. What the transaction rolls back was not counted; so a use that failed for '
  'another reason is free.';
