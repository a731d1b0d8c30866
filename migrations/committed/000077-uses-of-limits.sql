--! Previous: sha1:31713afee4f7e748aec3eef78a6ba68ddad8da91
--! Hash: sha1:59046240bc41e336b863911cb4c3efeaff95a865
--! Message: uses-of-limits

-- Uses of limits: a row for each, so that who counts one does not wait for who counts another.
create table app_private.limit_uses (
  key text not null,
  slot int not null,
  expires_at timestamptz not null,
  primary key (key, slot)
);
create index limit_uses_expires_at on app_private.limit_uses (expires_at);
alter table app_private.limit_uses enable row level security;

insert into app_private.limit_uses (key, slot, expires_at)
  select r.bucket || ' ' || encode(r.key_hash, 'hex'), row_number() over (partition by r.bucket, r.key_hash order by h),
    -- The last use was a window ago when the row expires.
    h + (r.expires_at - (select max(m) from unnest(r.hits) m))
    from app_private.rate_limits r cross join lateral unnest(r.hits) h
  union all
  select t.key, row_number() over (partition by t.key order by m), m + case
      when t.key = 'sign up' then interval '1 minute'
      when t.key like 'login address %' or t.key ~ '^login \S+ \S+$' then interval '15 minutes'
      when t.key like 'login %' then interval '24 hours'
      else coalesce((select l.within from app_private.limits l where l.name = split_part(t.key, ' ', 1)),
        interval '1 hour') end
    from app_private.tries t cross join lateral unnest(t.moments) m
  on conflict do nothing;
delete from app_private.limit_uses where expires_at < now();
-- Only functions know them, which are replaced with this migration.
-- squawk-ignore ban-drop-table
drop table app_private.rate_limits, app_private.tries;
