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

-- A separate statement before the others of a batch, so that these see everything replayed before its end.
create function app_private.await_replay(at_least pg_lsn, patience interval default '20 ms') returns void
language plpgsql volatile as $$
declare
  until constant timestamptz := clock_timestamp() + patience;
begin
  while pg_is_in_recovery() and pg_last_wal_replay_lsn() < at_least and clock_timestamp() < until loop
    perform pg_sleep(0.0005);
  end loop;
  if not pg_is_in_recovery() or pg_last_wal_replay_lsn() < at_least then
    raise exception 'the replica has not replayed this position; ask the primary' using errcode = 'PLAT4';
  end if;
end $$;
comment on function app_private.await_replay(pg_lsn, interval) is
  E'@step Asked for ahead of a query on a read replica, in the same round trip.\n\nWaits until a position of the '
  'write-ahead log has been replayed. Raises PLAT4 if that takes too long, or the server is no standby.';
grant execute on function app_private.await_replay to plat_authenticator;
