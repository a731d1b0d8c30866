-- Deadlines: what expires, and when. Statuses are columns, so that lists, filters and indexes do not depend on the
-- clock. Nevertheless, nobody reads an expired status: each statement of the API first checks whether something is due
-- (raise_when_due) and, if so, is repeated after it has been expired (expire_deadlines). A job does the same, so that
-- events and mails do not wait for a reader.
--
-- Organizations never wait for each other. A transaction expires what is due in one organization; if the viewer is not
-- a member of it, this takes a few milliseconds at most and waits for no lock. Rows that another transaction has locked
-- are skipped for half a second, and read as they are.

comment on table app_hidden.deadlines is
  'What ends by itself and has not ended yet: one row per record and kind. Kept by the triggers that make_deadline '
  'makes.';
comment on column app_hidden.deadlines.organization_id is
  'The organization that the record belongs to; the nil UUID where that is not known.';
comment on table app_private.deadline_kinds is
  'The function that expires what is due, of each kind; it takes the id of the record. settle_many, where there is '
  'one, takes the ids of many, and returns those that it expired.';

create function app_private.make_deadline(kind text, relation regclass, due_column text, pending text,
  depends_on text[], expire regprocedure, expire_many regprocedure default null) returns void
language plpgsql volatile as $$
declare
  function_name text := format('tg_%s__deadline', kind);
  columns text := (select string_agg(quote_ident(c), ', ') from unnest(depends_on || due_column) c);
begin
  insert into app_private.deadline_kinds (kind, settle, settle_many)
    values (make_deadline.kind, expire::regproc::text, expire_many::regproc::text);
  execute format('create function app_private.%I() returns trigger
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as %L', function_name, format('
begin
  if new.%1$I is not null and (%2$s) then
    insert into app_hidden.deadlines (kind, record_id, organization_id, due_at)
      values (%3$L, new.id, coalesce(new.organization_id, ''00000000-0000-0000-0000-000000000000''), new.%1$I)
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
comment on function app_private.make_deadline(text, regclass, text, text, text[], regprocedure, regprocedure) is
  'Lets records of a table end by themselves: at the time in due_column, as long as the condition on `new` holds, '
  'which depends on the columns named; the function `expire` does it, given the id. `expire_many`, given ids, '
  'expires those that nobody has locked in as few statements as one, and returns their ids.';

create function app_private.viewer_deadline_organizations() returns setof uuid
language sql stable security definer rows 5 set search_path = pg_catalog, pg_temp as $$
  select m.organization_id from app_public.organization_user_connections m
    where m.user_id = app_public.current_user_id()
  union
  select p.owner_id from app_public.organization_user_connections m
    join app_public.project_organizations p on p.organization_id = m.organization_id
    where m.user_id = app_public.current_user_id()
  union
  select b.organization_id from app_public.buyers b
    where b.id = any (array(select app_hidden.viewer_purchases()))
$$;
comment on function app_private.viewer_deadline_organizations() is
  'The organizations that the viewer has a part in: as a member, by a project that one is affiliated with, as a buyer.';

-- After a long backlog, such as after days without the service, readers do not wait until all of it has expired.
-- After the maximum wait (plat.stale_reads), they read the current rows; operations on a claim or offer check the
-- clock themselves.
create function app_private.raise_when_due() returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  stale constant text := coalesce(current_setting('plat.stale_reads', true), '');
  organizations uuid[];
  organization uuid;
begin
  if stale = 'on' then
    return;
  end if;
  if exists (select from app_hidden.deadlines d where d.due_at <= now()) then
    organizations := array(select app_private.viewer_deadline_organizations());
    organization := (select d.organization_id from app_hidden.deadlines d
      where d.organization_id = any (organizations) and d.due_at <= now() order by d.due_at limit 1);
    if organization is not null then
      perform app_private.raise_due(organization, true);
    elsif stale <> 'others' then
      perform app_private.raise_due((select d.organization_id from app_hidden.deadlines d where d.due_at <= now()
        order by d.due_at limit 1), false);
    end if;
  end if;
  -- The caller in this transaction handles PLAT1.
  perform set_config('plat.deadlines_checked', 'on', true);
end $$;
comment on function app_private.raise_when_due() is
  'Raises PLAT1 while something is due and has not expired, in an organization of the viewer first. The setting '
  'plat.stale_reads leaves out the organizations that the viewer has no part in (`others`) or all (`on`).';

create function app_private.raise_due(organization_id uuid, own boolean) returns void
language plpgsql stable as $$
begin
  raise exception 'something is due; call app_private.expire_deadlines() and try again' using errcode = 'PLAT1',
    detail = jsonb_build_object('organizationId', organization_id, 'own', own);
end $$;
comment on function app_private.raise_due(uuid, boolean) is
  'Raises PLAT1 with {organizationId, own}: in which organization something is due, and whether the viewer '
  'has a part in it.';

create function app_private.expire_deadlines(organization_id uuid, own boolean, batch int default 20,
  longest interval default null) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  lock constant bigint := hashtextextended('plat.deadlines ' || organization_id, 0);
  -- Bounds how long others wait for this transaction.
  until_when constant timestamptz := clock_timestamp() + coalesce(longest, case when own then interval '300 ms'
    else interval '20 ms' end);
  due record;
  expired uuid[];
  amount int := 0;
  locked int := 0;
  due_before timestamptz;
begin
  if app_private.is_moving(organization_id) then
    return -1;
  end if;
  -- Serialized for each organization: a second transaction finds it expired.
  if own then
    begin
      perform set_config('lock_timeout', '1s', true);
      perform pg_advisory_xact_lock(lock);
    exception when lock_not_available then
      return -1;
    end;
  elsif not pg_try_advisory_xact_lock(lock) then
    return -1;
  end if;
  perform set_config('lock_timeout', case when own then '25ms' else '2ms' end, true);
  -- PERF: a constant bounds the scan of the index; clock_timestamp() would filter all deadlines of the organization.
  due_before := clock_timestamp();
  -- PERF: many that end at one moment take as many statements as one. Where one of them cannot be expired, none is:
  -- they are taken one by one.
  for due in
    select k.kind, k.settle_many, array_agg(d.record_id order by d.record_id) as ids
    from (select d.kind, d.record_id from app_hidden.deadlines d
      where d.organization_id = organization_id and d.due_at <= due_before
      order by d.due_at, d.kind, d.record_id limit batch for no key update of d skip locked) d
    join app_private.deadline_kinds k on k.kind = d.kind and k.settle_many is not null
    group by k.kind, k.settle_many having count(*) > 1
  loop
    begin
      execute format('select %s($1)', due.settle_many) into expired using due.ids;
      delete from app_hidden.deadlines d where d.kind = due.kind and d.record_id = any (expired)
        and d.due_at <= clock_timestamp();
      amount := amount + cardinality(expired);
    exception when others then
      null;
    end;
  end loop;
  for due in
    select d.kind, d.record_id, k.settle from app_hidden.deadlines d
      join app_private.deadline_kinds k on k.kind = d.kind
    where d.organization_id = organization_id and d.due_at <= due_before
    order by d.due_at, d.kind, d.record_id limit batch - amount for no key update of d skip locked
  loop
    exit when clock_timestamp() > until_when and amount > 0;
    begin
      execute format('select %s($1)', due.settle) using due.record_id;
      delete from app_hidden.deadlines d where d.kind = due.kind and d.record_id = due.record_id
        and d.due_at <= clock_timestamp();
      amount := amount + 1;
    exception when lock_not_available or deadlock_detected or serialization_failure then
      -- Somebody works on it, and may for long: until they are done it is read as it was.
      update app_hidden.deadlines d set due_at = clock_timestamp() + interval '500 ms'
        where d.kind = due.kind and d.record_id = due.record_id;
      locked := locked + 1;
    when others then
      -- A record that cannot be expired must not block other reads; it is retried with increasing intervals.
      raise warning 'deadline % of % cannot be expired: %', due.kind, due.record_id, sqlerrm;
      update app_hidden.deadlines d set failures = d.failures + 1,
        due_at = clock_timestamp() + least(power(2, d.failures), 60) * interval '1 minute'
        where d.kind = due.kind and d.record_id = due.record_id;
      amount := amount + 1;
    end;
    exit when clock_timestamp() > until_when;
  end loop;
  -- Also for changes at the end of the transaction.
  perform set_config('lock_timeout', case when own then '1s' else '20ms' end, true);
  if own then
    amount := amount + app_private.catch_up_search(10, organization_id);
  end if;
  if amount + locked = 0 and exists (select from app_hidden.deadlines d
    where d.organization_id = organization_id and d.due_at <= now()) then
    return -1;
  end if;
  return amount;
end $$;
comment on function app_private.expire_deadlines(uuid, boolean, int, interval) is
  'Expires what is due in an organization, the oldest first, for no longer than that: 300 ms, or 20 where it is '
  'not the viewer''s own. Returns how many; what is locked is put off. Negative if it should not be waited for, '
  'because others have locked the due rows, or the organization is being moved.';

create function app_private.expire_due(batch int default 200) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  organization uuid;
  expired int;
  due_before constant timestamptz := clock_timestamp();
begin
  -- At random, so that a flood in one organization does not keep the others waiting.
  for organization in
    select o.organization_id from (select distinct d.organization_id from app_hidden.deadlines d
      where d.due_at <= due_before) o order by random()
  loop
    expired := app_private.expire_deadlines(organization, true, batch, interval '2 s');
    if expired > 0 then
      return expired;
    end if;
  end loop;
  return 0;
end $$;
comment on function app_private.expire_due(int) is
  'Expires some of what is due in one organization; returns how many, 0 when nothing is left but what is locked.';
grant execute on function app_private.raise_when_due(), app_private.expire_deadlines(uuid, boolean, int, interval)
  to plat_authenticator;
grant execute on function app_private.expire_due(int) to plat_worker;

-- Deadlines also expire in archived projects.
create function app_private.expire_claim(claim_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform set_config('plat.clock', 'on', true);
  perform app_private.release_claim(claim_id, 'EXPIRED');
  perform set_config('plat.clock', '', true);
end $$;

create function app_private.expire_claims(claim_ids uuid[]) returns uuid[]
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- In the order of locks: lot, unit, lead, its reservation, claim. Rows locked by others are skipped.
  free_lots constant uuid[] := array(select l.id from app_public.lots l
    where l.id = any (array(select c.lot_id from app_hidden.claims c where c.id = any (claim_ids)))
    order by l.id for no key update skip locked);
  free_units constant uuid[] := array(select u.id from app_public.units u
    where u.id = any (array(select c.unit_id from app_hidden.claims c where c.id = any (claim_ids)))
    order by u.id for no key update skip locked);
  subjects constant uuid[] := array(select c.subject_id from app_hidden.claims c where c.id = any (claim_ids));
  free_leads constant uuid[] := array(select l.id from app_public.leads l
    where l.id = any (array(select r.lead_id from app_public.reservations r where r.id = any (subjects)))
    order by l.id for no key update skip locked);
  free_reservations constant uuid[] := array(select r.id from app_public.reservations r where r.id = any (subjects)
    and (r.lead_id is null or r.lead_id = any (free_leads)) order by r.id for no key update skip locked);
  free_claims constant uuid[] := array(select c.id from app_hidden.claims c
    where c.id = any (claim_ids) and c.released_at is null
      and (c.lot_id is null or c.lot_id = any (free_lots)) and (c.unit_id is null or c.unit_id = any (free_units))
      and (c.subject_type <> 'reservation' or c.subject_id = any (free_reservations))
    order by c.id for no key update skip locked);
  claims app_hidden.claims[];
begin
  perform set_config('plat.clock', 'on', true);
  with released as (
    update app_hidden.claims c set released_at = clock_timestamp(), release_reason = 'EXPIRED'
      where c.id = any (free_claims) returning c.*
  )
  select array_agg(r::app_hidden.claims order by r.id) into claims from released r;
  perform app_private.set_inventory(claims, 'AVAILABLE', restore_price => true);
  perform set_config('plat.clock', '', true);
  return free_claims;
end $$;
comment on function app_private.expire_claims(uuid[]) is
  'Releases all expired claims together, as expire_claim does for one; skips claims that others have locked. '
  'Returns the ids of the released ones.';
