-- The position of an answer: the location in the write-ahead log up to which its data are complete. Everything
-- committed and acknowledged at a position is in every answer with this position or a later one.

create function app_private.require_position(at_least pg_lsn) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if pg_is_in_recovery() then
    if at_least > pg_last_wal_replay_lsn() then
      perform app_hidden.fail('UNAVAILABLE', 'The data is not available at this position yet; try again in a second.',
        jsonb_build_object('retryAfterSeconds', 1));
    end if;
  elsif at_least > pg_current_wal_insert_lsn() then
    perform app_hidden.fail('BAD_USER_INPUT', 'This position was returned before the data was restored from a '
      'backup. Read again without it.', jsonb_build_object('field', 'extensions.position'));
  end if;
end $$;
comment on function app_private.require_position(pg_lsn) is
  E'@step Asked for ahead of a statement, in its own round trip.\n\nRefuses a statement whose data would not reach a '
  'position of the write-ahead log. The primary has all there are, so that one beyond them was never given by it.';
grant execute on function app_private.require_position to plat_authenticator;
