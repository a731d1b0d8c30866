-- Deadlines: what ends by itself, and when. Statuses are columns, so that lists, filters and indexes know nothing of
-- clocks; in exchange nobody reads one that time has overtaken: each statement of the API asks first whether something
-- is due (stop_when_due) and, if so, is run again after that was settled (settle_due). A job settles too, so that
-- events and mails do not wait for a reader.

comment on table app_hidden.deadlines is
  'What ends by itself and has not ended yet: one row per record and kind. Kept by the triggers that make_deadline '
  'makes.';
comment on table app_private.deadline_kinds is
  'The function that settles what is due, of each kind; it takes the id of the record.';

create function app_private.make_deadline(kind text, relation regclass, due_column text, pending text,
  depends_on text[], settle regprocedure) returns void
language plpgsql volatile as $$
declare
  function_name text := format('tg_%s__deadline', kind);
  columns text := (select string_agg(quote_ident(c), ', ') from unnest(depends_on || due_column) c);
begin
  insert into app_private.deadline_kinds (kind, settle) values (make_deadline.kind, settle::regproc::text);
  execute format('create function app_private.%I() returns trigger
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as %L', function_name, format('
begin
  if new.%1$I is not null and (%2$s) then
    insert into app_hidden.deadlines (kind, record_id, due_at) values (%3$L, new.id, new.%1$I)
      on conflict (kind, record_id) do update set due_at = excluded.due_at, failures = 0;
  elsif tg_op = ''UPDATE'' then
    delete from app_hidden.deadlines d where d.kind = %3$L and d.record_id = new.id;
  end if;
  return null;
end', due_column, pending, kind));
  execute format('create trigger %I after insert on %s for each row when (new.%I is not null) execute function '
    'app_private.%I()',
    '_600_deadline_' || kind, relation, due_column, function_name);
  execute format('create trigger %I after update of %s on %s for each row when (%s) execute function app_private.%I()',
    '_600_deadline_again_' || kind, columns, relation,
    (select string_agg(format('old.%1$I is distinct from new.%1$I', c), ' or ')
      from unnest(depends_on || due_column) c), function_name);
end $$;
comment on function app_private.make_deadline(text, regclass, text, text, text[], regprocedure) is
  'Lets records of a table end by themselves: at the time in due_column, as long as the condition on `new` holds, '
  'which depends on the columns named; the function settles it, given the id.';

-- A long way behind, such as after days without the service, nobody waits until all of it is settled: who has waited
-- long enough (plat.behind) reads what is there, and what acts on a claim or offer looks at the clock itself.
create function app_private.stop_when_due() returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if coalesce(current_setting('plat.behind', true), '') = 'on' then
    return;
  end if;
  if exists (select from app_hidden.deadlines d where d.due_at <= now()) then
    raise exception 'something is due; call app_private.settle_due() and try again' using errcode = 'PLAT1';
  end if;
  -- Whoever asks in this transaction knows what to do about PLAT1.
  perform set_config('plat.punctual', 'on', true);
end $$;
comment on function app_private.stop_when_due() is 'Raises PLAT1 while something is due and not settled.';

create function app_private.settle_due(batch int default 50) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  due record;
  amount int := 0;
begin
  -- One at a time: whoever waits finds it settled.
  perform pg_advisory_xact_lock(hashtextextended('plat.deadlines', 0));
  for due in
    select d.kind, d.record_id, k.settle from app_hidden.deadlines d
      join app_private.deadline_kinds k on k.kind = d.kind
    where d.due_at <= clock_timestamp() order by d.due_at, d.kind, d.record_id limit batch
  loop
    begin
      execute format('select %s($1)', due.settle) using due.record_id;
      delete from app_hidden.deadlines d where d.kind = due.kind and d.record_id = due.record_id
        and d.due_at <= clock_timestamp();
    exception when deadlock_detected or serialization_failure then
      raise;
    when others then
      -- What cannot be settled must not keep everything else from being read; it is tried again, less and less often.
      raise warning 'deadline % of % cannot be settled: %', due.kind, due.record_id, sqlerrm;
      update app_hidden.deadlines d set failures = d.failures + 1,
        due_at = clock_timestamp() + least(power(2, d.failures), 60) * interval '1 minute'
        where d.kind = due.kind and d.record_id = due.record_id;
    end;
    amount := amount + 1;
  end loop;
  return amount + app_private.catch_up_search(10);
end $$;
comment on function app_private.settle_due(int) is 'Settles what is due, the oldest first; returns how many.';
grant execute on function app_private.stop_when_due(), app_private.settle_due(int) to plat_authenticator;
grant execute on function app_private.settle_due(int) to plat_worker;

-- Time goes on in archived projects too.
create function app_private.settle_claim(claim_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform set_config('plat.clock', 'on', true);
  perform app_private.release_claim(claim_id, 'EXPIRED');
  perform set_config('plat.clock', '', true);
end $$;
