-- Retention: a row says how long the rows of a table are kept; one job an hour deletes what has expired, in batches
-- of a transaction each.

comment on table app_private.retention is
  'Tables whose rows are deleted once a condition holds for them; it should follow an index.';

insert into app_private.retention (relation, over) values
  ('app_private.mail_deliveries', 'at < now() - interval ''90 days'''),
  ('app_private.limit_uses', 'expires_at < now()'),
  ('app_private.consent_requests', 'confirmed_at is null and expires_at < now()'),
  ('app_private.sending_counts', 'hour < now() - interval ''2 days'''),
  ('app_private.user_otps', 'expires_at < now()'),
  ('app_private.email_verifications', 'expires_at < now()'),
  ('app_private.email_changes', 'expires_at < now()'),
  ('app_private.email_change_stops', 'expires_at < now()'),
  ('app_private.former_emails', 'until < now()'),
  ('app_private.second_factors', 'confirmed_at is null and inserted_at < now() - interval ''1 hour'''),
  -- A login token that names its session is refused without it, too; an earlier one must find that its session ended.
  ('app_private.sessions', 'expires_at < now() or (ended_at < now() - interval ''1 day'' and not is_adopted)'),
  ('app_private.user_networks', 'last_at < now() - interval ''90 days'''),
  ('app_hidden.duplicate_accounts', 'inserted_at < now() - interval ''2 hours'''),
  ('app_public.users', 'deleted_at is null and id = any (array(select d.user_id from app_hidden.duplicate_accounts d '
    'where d.inserted_at < now() - interval ''1 hour''))'),
  -- The invitation is kept; the link in its mail becomes invalid.
  ('app_private.organization_invite_tokens',
    'exists (select from app_public.organization_invites i where i.id = invite_id and (i.status <> ''PENDING'' or '
    'i.expires_at < now() - interval ''30 days''))'),
  ('app_private.buyer_invite_tokens',
    'exists (select from app_hidden.buyer_invites i where i.id = invite_id and (i.status <> ''PENDING'' or '
    'i.expires_at < now() - interval ''30 days''))'),
  -- Jobs that failed permanently a month ago; the job runner keeps them forever, and each poll scans them.
  ('graphile_worker._private_jobs',
    'attempts >= max_attempts and locked_at is null and updated_at < now() - interval ''30 days''');

create function app_private.retained_relations() returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.relation::text from app_private.retention r order by r.relation
$$;
comment on function app_private.retained_relations() is 'Tables whose rows are deleted after their retention period.';

create function app_private.sweep_retention(relation text, batch int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  rule app_private.retention;
  amount int;
begin
  select r.* into strict rule from app_private.retention r where r.relation = sweep_retention.relation;
  execute format('delete from %1$s where ctid = any (array(select ctid from %1$s where %2$s limit $1 for update skip '
    'locked))', rule.relation, rule.over)
    using batch;
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.sweep_retention(text, int) is
  'Deletes rows of a table whose retention period has passed, at most a batch; returns their number.';
grant execute on function app_private.retained_relations, app_private.sweep_retention to plat_worker;
