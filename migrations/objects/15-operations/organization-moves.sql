-- Moving an organization to another installation (src/cli/move). It is copied while its members work. Then it is
-- paused, for as long as it takes to copy what has changed since and to compare both sides:
--
--   (none) → PAUSED → SWITCHING → MOVED
--   PAUSED → (none), SWITCHING → (none): the move was given up, and nothing has changed
--
-- A pause needs no lock of writers: each commit that changes records counts up the counter of its stream, and a counter
-- that is closed refuses. At first it lets the engines finish what they have begun, as long as the command holds a
-- second lock. PAUSED only holds as long as the command that moves is connected; SWITCHING, in which the
-- other installation may have the organization already, until the command has found out.

comment on table app_private.organization_moves is
  'Organizations that are being moved to another installation, and the directory of those that have moved: where they '
  'are.';
comment on column app_private.organization_moves.url is 'The BASE_URL of the other installation.';
comment on column app_private.event_counters.is_closed is
  'Whether the stream takes nothing at the moment, because its organization is being moved.';

-- Answers depend on where an organization is.
create trigger _620_count after insert or update or delete on app_private.organization_moves
  for each row execute function app_private.tg__count_change();

create function app_private.move_lock(organization_id uuid) returns int
language sql immutable as $$ select hashtext(organization_id::text) $$;
comment on function app_private.move_lock(uuid) is
  'The number of the advisory lock that the command holds as long as it moves the organization.';

create function app_private.is_moving(organization_id uuid) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from app_private.organization_moves m where m.organization_id = is_moving.organization_id
    and (m.status = 'SWITCHING' or m.status = 'PAUSED'
      and app_private.holds_lock(7528006, app_private.move_lock(m.organization_id))))
$$;
comment on function app_private.is_moving(uuid) is
  'Whether an organization is paused by a command that is still connected, or is being switched to another '
  'installation.';

create function app_private.tg_event_counters__closed() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  is_moving boolean;
begin
  -- Transactions that waited for the counter until the organization had moved must not write here.
  if new.is_closed and not app_private.is_removing() then
    -- In this order: between both statements, a move can be completed, but not begin.
    is_moving := app_private.is_moving(new.stream_id);
    perform app_private.refuse_moved(new.stream_id);
    if is_moving then
      -- Work in progress of an engine is completed first.
      if current_setting('role') not in ('plat_user', 'plat_anonymous')
        and app_private.holds_lock(7528007, app_private.move_lock(new.stream_id)) then
        return new;
      end if;
      perform app_hidden.fail('UNAVAILABLE', 'The organization is moving to another server; nothing was changed. Try '
        'again in 2 s.', '{"retryAfterSeconds": 2}');
    end if;
    -- Left closed by a command that died before anything was moved.
    new.is_closed := false;
  end if;
  return new;
end $$;
create trigger _100_closed before update on app_private.event_counters for each row when (old.is_closed)
  execute function app_private.tg_event_counters__closed();

create function app_private.pause_for_move(organization_id uuid, url text) returns void
language plpgsql volatile as $$
#variable_conflict use_variable
begin
  insert into app_private.organization_moves as m (organization_id, slug, url, status)
    select o.id, o.slug, url, 'PAUSED' from app_public.organizations o where o.id = organization_id
    on conflict on constraint organization_moves_pkey do update
      set status = 'PAUSED', slug = excluded.slug, url = excluded.url, began_at = now(), ended_at = null;
  -- Waits for those that are about to commit.
  update app_private.event_counters c set is_closed = true where c.stream_id = organization_id;
end $$;
comment on function app_private.pause_for_move(uuid, text) is
  'Pauses an organization: from the commit on, its records do not change as long as the command that moves it is '
  'connected.';

create function app_private.give_up_move(organization_id uuid) returns void
language plpgsql volatile as $$
#variable_conflict use_variable
begin
  delete from app_private.organization_moves m where m.organization_id = organization_id and m.status <> 'MOVED';
  update app_private.event_counters c set is_closed = false where c.stream_id = organization_id and c.is_closed;
end $$;
comment on function app_private.give_up_move(uuid) is 'Ends the move of an organization, which stays where it is.';

create function app_private.put_aside_organization(organization_id uuid) returns void
language plpgsql volatile as $$
#variable_conflict use_variable
begin
  update app_private.organization_moves m set status = 'MOVED', ended_at = clock_timestamp()
    where m.organization_id = organization_id and m.status = 'SWITCHING';
  perform app_private.set_removing();
  perform app_private.end_organization_access(organization_id);
  -- Nothing expires and nothing is sent here any longer: the other installation does it.
  delete from app_hidden.deadlines d where d.organization_id = organization_id;
  delete from app_private.notification_progress p where p.organization_id = organization_id;
  delete from app_private.workflow_streams s where s.organization_id = organization_id;
  delete from app_private.search_backlog b where b.organization_id = organization_id;
  delete from app_private.task_digests t using app_public.organization_user_connections m
    where m.id = t.member_id and m.organization_id = organization_id;
end $$;
comment on function app_private.put_aside_organization(uuid) is
  'Ends an organization here that the other installation has: nobody gets in, nothing is found, nothing goes out. Its '
  'records stay until they are removed.';

create function app_private.end_move(organization_id uuid, visible_from timestamptz) returns boolean
language plpgsql volatile as $$
#variable_conflict use_variable
begin
  if exists (select from pg_stat_activity a
    where a.datname = current_database() and a.xact_start <= visible_from and a.pid <> pg_backend_pid()) then
    return false;
  end if;
  update app_private.event_counters c set is_closed = false where c.stream_id = organization_id and c.is_closed;
  return true;
end $$;
comment on function app_private.end_move(uuid, timestamptz) is
  'Opens the counter of an organization that has moved, once all transactions have ended that began before a time at '
  'which the move was committed, and so may write as if it had not moved: jobs that go through all organizations are '
  'not to fail for what is left of it. False: not yet.';

create function app_private.refuse_moved(organization_id uuid) returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  url constant text := (select m.url from app_private.organization_moves m
    where m.organization_id = refuse_moved.organization_id and m.status = 'MOVED');
begin
  if url is not null then
    perform app_hidden.fail('ORGANIZATION_MOVED', 'This organization is on another server; send the request to its '
      'url.', jsonb_build_object('url', url));
  end if;
end $$;
comment on function app_private.refuse_moved(uuid) is
  E'@withoutViewer Everybody may know on which server an organization is.\n\nRefuses with ORGANIZATION_MOVED '
  'and url for an organization that has moved to another installation.';
grant execute on function app_private.refuse_moved to plat_user, plat_anonymous;
