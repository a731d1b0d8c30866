-- Archives of old events. Before the content of events is emptied, a task writes it to the file store, as an object of
-- compressed lines of JSON, one for each event. The rows keep all else, and archived_at says that the rest is there.
--
-- The row of an object is written before the object, and counts once it has recorded_at: from then on the object has
-- the content of its events. A row without it is of an object that is being written, was left behind by a process that
-- died, or was replaced by another one: the object is discarded.
--
-- Erasures lock the archives of an organization as shared, archiving as its own: what is archived has been compared
-- with the events after the lock, so that no erasure is lost between reading and recording.

comment on table app_private.event_archives is
  'Objects of the file store with the content of old events, by their SHA-256: those of an organization from one '
  'sequence to another. Without recorded_at, an object is not part of the archive, or no longer.';
comment on column app_private.event_archives.amount is 'How many events it has.';
comment on column app_private.event_archives.filesize is 'Its size in bytes.';
comment on table app_private.archived_event_erasures is
  'Members of the record of archived events that are to be erased in their objects; until then, they are omitted from '
  'what is read of these.';
comment on column app_private.archived_event_erasures.members is E'@impersonal\n\nNames of fields.';

create trigger _500_let_go after delete on app_private.event_archives
  for each row execute function app_private.tg_event_archives__let_go();

create function app_private.tg_event_archives__let_go() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_private.stored_files f set check_at = now() where f.checksum = old.checksum;
  return null;
end $$;
comment on function app_private.tg_event_archives__let_go() is
  'Has the sweep of files delete the object of an archive whose row is deleted.';

create function app_private.lock_event_archives(organization_id uuid, shared boolean) returns void
language plpgsql volatile as $$
declare
  lock constant bigint := hashtextextended('plat.event archives ' || organization_id, 0);
begin
  if shared then
    perform pg_advisory_xact_lock_shared(lock);
  else
    perform pg_advisory_xact_lock(lock);
  end if;
end $$;
comment on function app_private.lock_event_archives(uuid, boolean) is
  'Locks the archives of an organization: shared by those that erase from events, alone for those that archive.';

create function app_private.event_lines(organization_id uuid, from_sequence bigint, to_sequence bigint)
returns table (sequence bigint, line text)
language sql stable rows 2000 as $$
  select e.sequence, json_build_object('sequence', e.sequence::text, 'id', e.id, 'name', e.name,
    'occurredAt', to_char(e.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'projectId', e.project_id, 'subjectType', e.subject_type, 'subjectId', e.subject_id, 'actorId', e.actor_id,
    'actorType', e.actor_type, 'channel', e.channel, 'requestId', e.request_id, 'causedById', e.caused_by_id,
    'changes', e.changes, 'data', e.data)::text
  from app_public.events e
  where e.organization_id = event_lines.organization_id and e.sequence >= event_lines.from_sequence
    and e.sequence <= event_lines.to_sequence
$$;
comment on function app_private.event_lines(uuid, bigint, bigint) is
  'Events of an organization as the lines of an object, which begin with the sequence.';

create function app_private.archiving_organizations(after_id uuid, batch int) returns setof uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select o.id from app_public.organizations o
  where (after_id is null or o.id > after_id) and o.deleted_at is null and o.archives_events
    and not exists (select from app_private.organization_moves m where m.organization_id = o.id)
  order by o.id limit batch
$$;
comment on function app_private.archiving_organizations(uuid, int) is
  'The next organizations whose events are archived, by id.';

create function app_private.next_event_archive(organization_id uuid, batch int, bytes int)
returns table (from_sequence bigint, to_sequence bigint, amount int, content text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  span record;
begin
  select s.* into span from app_public.organizations o
    cross join lateral app_private.emptied_span(o.id, o.event_retention_days, batch) s
    where o.id = next_event_archive.organization_id and o.archives_events and o.deleted_at is null;
  if span.to_sequence is null then
    return;
  end if;
  return query
    with lines as (
      select l.sequence, l.line, sum(octet_length(l.line)) over (order by l.sequence) - octet_length(l.line) as before
      from app_private.event_lines(next_event_archive.organization_id, span.from_sequence, span.to_sequence) l)
    select span.from_sequence, max(l.sequence), count(*)::int, string_agg(l.line || E'\n', '' order by l.sequence)
      from lines l where l.before < bytes having count(*) > 0;
end $$;
comment on function app_private.next_event_archive(uuid, int, int) is
  'The content of the next object of an organization: events that are old enough, and read by all who read them, at '
  'most a batch and not much more than the bytes; no row where there is none.';

create function app_private.announce_event_archive(organization_id uuid, from_sequence bigint, to_sequence bigint,
  amount int, checksum text, filesize int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_private.event_archives as a (organization_id, from_sequence, to_sequence, amount, checksum, filesize)
    values ($1, $2, $3, $4, $5, $6)
    on conflict on constraint event_archives_pkey do update set inserted_at = now();
  return app_private.register_file($5, 'application/gzip', $6);
end $$;
comment on function app_private.announce_event_archive(uuid, bigint, bigint, int, text, int) is
  'Says that an object of events is about to be stored; returns whether the store has it already.';

create function app_private.record_event_archive(checksum text, content_sha256 text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  archive app_private.event_archives;
  organization app_public.organizations;
  reached bigint;
  found_sha256 text;
begin
  select a.* into archive from app_private.event_archives a where a.checksum = record_event_archive.checksum;
  perform app_private.lock_event_archives(archive.organization_id, false);
  -- Discarded, or recorded by another process, before the lock.
  select a.* into archive from app_private.event_archives a where a.checksum = record_event_archive.checksum
    and a.recorded_at is null for update;
  select o.* into organization from app_public.organizations o where o.id = archive.organization_id;
  select r.sequence into reached from app_private.event_retention r
    where r.organization_id = archive.organization_id for update;
  select encode(sha256(convert_to(string_agg(l.line || E'\n', '' order by l.sequence), 'UTF8')), 'hex')
    into found_sha256 from app_private.event_lines(archive.organization_id, archive.from_sequence,
      archive.to_sequence) l;
  if (reached + 1 = archive.from_sequence and found_sha256 = content_sha256 and organization.archives_events
    and organization.deleted_at is null) is not true then
    return false;
  end if;
  perform app_private.set_erasing(true);
  update app_public.events e set data = '{}', changes = null, archived_at = now()
    where e.organization_id = archive.organization_id and e.sequence >= archive.from_sequence
      and e.sequence <= archive.to_sequence;
  perform app_private.set_erasing(false);
  update app_private.event_retention r set sequence = archive.to_sequence
    where r.organization_id = archive.organization_id;
  update app_private.event_archives a set recorded_at = now() where a.checksum = archive.checksum;
  perform app_private.file_is_stored(archive.checksum);
  return true;
end $$;
comment on function app_private.record_event_archive(text, text) is
  'Empties the events of an object that is stored; false, without a change, where they are no longer what it has, and '
  'where it was discarded.';

create function app_private.discard_event_archives(organization_id uuid, age interval) returns setof text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  discarded constant text[] := array(select a.checksum from app_private.event_archives a
    where a.organization_id = discard_event_archives.organization_id and a.recorded_at is null
      and a.inserted_at <= now() - age
    order by a.checksum limit 100 for update);
begin
  perform from app_private.stored_files f where f.checksum = any (discarded) order by f.checksum for update;
  delete from app_private.event_archives a where a.checksum = any (discarded);
  perform app_private.forget_files(discarded);
  return query select unnest(discarded);
end $$;
comment on function app_private.discard_event_archives(uuid, interval) is
  'Forgets objects of an organization that are not part of its archive, and are that old, and returns them; the caller '
  'deletes them from the store before the transaction commits.';

-- Reading.
create function app_private.archive_of_event(event_id uuid) returns table (sequence text, checksum text, filesize int)
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  select e.sequence::text, a.checksum, a.filesize
  from app_public.events e
  cross join lateral (
    select r.* from app_private.event_archives r
    where r.organization_id = e.organization_id and r.recorded_at is not null and r.from_sequence <= e.sequence
    order by r.from_sequence desc limit 1) a
  where e.id = event_id and e.archived_at is not null and a.to_sequence >= e.sequence
$$;
comment on function app_private.archive_of_event(uuid) is
  E'@withoutViewer It names an object, whose content is only read through functions that check the viewer.\n\n'
  'The object that has the content of an archived event; no row for other events.';

create function app_private.archived_content(event_id uuid, checksum text, line text)
returns table (data jsonb, changes jsonb)
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  select app_private.erase_members(v.value -> 'data', m.members),
    case when jsonb_typeof(v.value -> 'changes') = 'object'
      then app_private.erase_members(v.value -> 'changes', m.members) end
  from app_private.archive_of_event(event_id) a
  cross join lateral (select line::jsonb as value) v
  cross join lateral (select array(select distinct n.name from app_private.archived_event_erasures x
    cross join lateral unnest(x.members) n (name)
    where x.event_id = archived_content.event_id) as members) m
  where a.checksum = archived_content.checksum and v.value ->> 'id' = event_id::text
$$;
comment on function app_private.archived_content(uuid, text, text) is
  E'@withoutViewer It returns nothing but what is given to it.\n\n'
  'The content that an event has by its line of an object, without what has been erased since; no row where the object '
  'is no longer that of the event.';
grant execute on function app_private.archive_of_event, app_private.archived_content to plat_user;

create function app_hidden.event_archives(ids uuid[])
returns table (event_id uuid, sequence text, checksum text, filesize int)
language sql stable as $$
  select i.id, a.sequence, a.checksum, a.filesize
  from unnest(ids) i (id) cross join lateral app_private.archive_of_event(i.id) a
$$;
comment on function app_hidden.event_archives(uuid[]) is 'The objects that have the content of archived events.';

create function app_hidden.archived_contents(ids uuid[], checksums text[], lines text[])
returns table (event_id uuid, data jsonb, changes jsonb)
language sql stable as $$
  select e.id, app_hidden.event_value(e.subject_type, e.subject_id, c.data, c.data),
    case when c.changes ?| app_hidden.masked_members(e.subject_type)
      then app_hidden.event_changes(e.subject_type, e.subject_id, c.changes, c.data) else c.changes end
  from unnest(ids, checksums, lines) g (id, checksum, line)
  join app_hidden.masked_events e on e.id = g.id
  cross join lateral app_private.archived_content(g.id, g.checksum, g.line) c
$$;
comment on function app_hidden.archived_contents(uuid[], text[], text[]) is
  'What the viewer may read of the content of archived events, by their lines of these objects; no row for events that '
  'the viewer may not see, and where the object is no longer that of the event.';
revoke execute on function app_hidden.event_archives, app_hidden.archived_contents from plat_anonymous;
grant execute on function app_hidden.event_archives, app_hidden.archived_contents to plat_user;

create function app_private.archived_delivery(delivery_id uuid)
returns table (event_id uuid, sequence text, checksum text, filesize int)
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  select d.event_id, a.sequence, a.checksum, a.filesize from app_public.webhook_deliveries d
  cross join lateral app_private.archive_of_event(d.event_id) a where d.id = delivery_id
$$;
comment on function app_private.archived_delivery(uuid) is
  'The object that has the content of the archived event of a delivery.';

create function app_private.archived_delivery_body(delivery_id uuid, checksum text, line text) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  webhook app_public.webhooks;
  event app_public.events;
  content record;
  result text;
begin
  select w.* into webhook from app_public.webhook_deliveries d join app_public.webhooks w on w.id = d.webhook_id
    where d.id = delivery_id;
  select e.* into event from app_public.webhook_deliveries d join app_public.events e on e.id = d.event_id
    where d.id = delivery_id;
  select c.* into content from app_private.archived_content(event.id, checksum, line) c;
  if content.data is null or not app_private.act_as_principal(webhook.principal_id, webhook.principal_token_id) then
    perform app_private.set_claims('{}');
    return null;
  end if;
  event.data := content.data;
  event.changes := content.changes;
  result := app_private.webhook_body(event);
  perform app_private.set_claims('{}');
  return result;
end $$;
comment on function app_private.archived_delivery_body(uuid, text, text) is
  'What is sent of an archived event, by its line of this object, to a webhook whose principal may read it; null where '
  'the object is no longer that of the event, and where the principal has ended.';

-- Erasure.
create function app_private.erase_archived_events(ids uuid[], members text[], organization_id uuid) returns int
language plpgsql volatile as $$
declare
  amount int;
begin
  if members = '{}' then
    return 0;
  end if;
  with found as (
    -- The data are assigned, so that the revision of the stream counts it.
    update app_public.events e set data = e.data, erased_at = now()
      where e.subject_id = any (ids) and e.archived_at is not null
        and (erase_archived_events.organization_id is null
          or e.organization_id = erase_archived_events.organization_id)
    returning e.id, e.organization_id, e.sequence)
  insert into app_private.archived_event_erasures (event_id, organization_id, sequence, members)
    select f.id, f.organization_id, f.sequence, erase_archived_events.members from found f;
  get diagnostics amount = row_count;
  if amount > 0 then
    perform app_private.add_job('archived_events__erase', jsonb_build_object('organization_id', o.id),
        job_key => 'archived_events__erase ' || o.id)
      from (select distinct e.organization_id as id from app_public.events e
        where e.subject_id = any (ids) and e.archived_at is not null
          and (erase_archived_events.organization_id is null
            or e.organization_id = erase_archived_events.organization_id)) o;
  end if;
  return amount;
end $$;
comment on function app_private.erase_archived_events(uuid[], text[], uuid) is
  'Erases members from the record of archived events about some rows: at once for those who read them, and by a job in '
  'their objects; returns the number of events.';

create function app_private.archived_events_to_erase(after_id uuid, batch int) returns setof uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select distinct x.organization_id from app_private.archived_event_erasures x
  where after_id is null or x.organization_id > after_id order by 1 limit batch
$$;
comment on function app_private.archived_events_to_erase(uuid, int) is
  'The next organizations with archived events whose objects have what is to be erased, by id.';

create function app_private.archives_to_erase(organization_id uuid, erasure_id uuid, after_sequence bigint)
returns table (checksum text, filesize int, from_sequence bigint, to_sequence bigint, amount int)
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  select a.checksum, a.filesize, a.from_sequence, a.to_sequence, a.amount from app_private.event_archives a
  where a.organization_id = archives_to_erase.organization_id and a.recorded_at is not null
    and a.from_sequence > after_sequence
    -- Texts that name a person are anywhere.
    and (exists (select from app_private.erasure_texts t where t.erasure_id = archives_to_erase.erasure_id)
      or exists (select from app_private.archived_event_erasures x where x.organization_id = a.organization_id
        and x.sequence >= a.from_sequence and x.sequence <= a.to_sequence))
  order by a.from_sequence limit 1
$$;
comment on function app_private.archives_to_erase(uuid, uuid, bigint) is
  'The next object of an organization in which there may be something to erase: for an erasure of a person, or what '
  'was erased from archived events.';

create function app_private.erased_line(line text, members text[], pattern text) returns text
language sql stable as $$
  select json_object_agg(k.key, case when k.key not in ('changes', 'data') or json_typeof(k.value) <> 'object'
      then k.value else coalesce(regexp_replace(e.value::text, pattern, '[erased]', 'gi'), e.value::text)::json end
    order by k.place)::text
  from json_each(line::json) with ordinality k (key, value, place)
  cross join lateral (select case when json_typeof(k.value) = 'object'
    then app_private.erase_members(k.value::jsonb, members) end as value) e
$$;
comment on function app_private.erased_line(text, text[], text) is
  'A line of an object, with null in place of members of its record, and without texts of the pattern.';

create function app_private.erased_archive(checksum text, erasure_id uuid, content text)
returns table (erased text, sequences bigint[], applied uuid[], named int)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  archive app_private.event_archives;
  pattern text;
begin
  select a.* into strict archive from app_private.event_archives a where a.checksum = erased_archive.checksum;
  select app_private.text_pattern(t.texts) into pattern from app_private.erasure_texts t
    where t.erasure_id = erased_archive.erasure_id;
  return query
    with lines as materialized (
      select l.place, l.line, substring(l.line from '^\{ ?"sequence" : "(\d+)"')::bigint as sequence
      from string_to_table(rtrim(content, E'\n'), E'\n') with ordinality l (line, place)
    ), pending as materialized (
      select x.sequence, array_agg(x.id) as ids, array(select distinct n.name from
          app_private.archived_event_erasures y cross join lateral unnest(y.members) n (name)
          where y.organization_id = archive.organization_id and y.sequence = x.sequence) as members
      from app_private.archived_event_erasures x where x.organization_id = archive.organization_id
        and x.sequence >= archive.from_sequence and x.sequence <= archive.to_sequence
      group by x.sequence
    ), changed as materialized (
      select l.place, l.sequence, p.sequence is null as is_named,
        app_private.erased_line(l.line, coalesce(p.members, '{}'), pattern) as line
      from lines l left join pending p on p.sequence = l.sequence
      where p.sequence is not null or l.line ~* pattern
    )
    select string_agg(coalesce(c.line, l.line) || E'\n', '' order by l.place),
      array_agg(c.sequence) filter (where c.line <> l.line),
      coalesce((select array_agg(i.id) from pending p cross join lateral unnest(p.ids) i (id)), '{}'),
      (count(*) filter (where c.is_named and c.line <> l.line))::int
    from lines l left join changed c on c.place = l.place
    having bool_or(c.place is not null);
end $$;
comment on function app_private.erased_archive(text, uuid, text) is
  'The content of an object without what is to be erased from it, the sequences of the events that change, the '
  'erasures that this applies, and how many events only named the person; no row where nothing is to be erased.';

create function app_private.replace_event_archive(checksum text, new_checksum text, sequences bigint[],
  applied uuid[], erasure_id uuid, named int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  former app_private.event_archives;
begin
  select a.* into former from app_private.event_archives a where a.checksum = replace_event_archive.checksum;
  perform app_private.lock_event_archives(former.organization_id, false);
  -- Where there was nothing left to erase, it takes its own place.
  if not exists (select from app_private.event_archives a where a.checksum = former.checksum
      and a.recorded_at is not null)
    or new_checksum <> former.checksum and not exists (select from app_private.event_archives a
      where a.checksum = new_checksum and a.recorded_at is null for update)
    or exists (select from app_public.organizations o where o.id = former.organization_id
      and o.deleted_at is not null) then
    return false;
  end if;
  update app_private.event_archives a set recorded_at = null where a.checksum = former.checksum;
  update app_private.event_archives a set recorded_at = now() where a.checksum = new_checksum;
  perform app_private.file_is_stored(new_checksum);
  delete from app_private.archived_event_erasures x where x.id = any (applied);
  perform app_private.set_erasing(true);
  update app_public.events e set data = e.data, erased_at = now()
    where e.organization_id = former.organization_id and e.sequence = any (sequences) and e.archived_at is not null;
  perform app_private.set_erasing(false);
  if named > 0 then
    update app_public.erasures e set removed = e.removed || jsonb_build_object('record', 'events', 'count', named,
        'fields', '["texts that named the person"]'::jsonb)
      where e.id = replace_event_archive.erasure_id;
  end if;
  return true;
end $$;
comment on function app_private.replace_event_archive(text, text, bigint[], uuid[], uuid, int) is
  'Replaces an object by another one that is stored; the former one can then be discarded. False, without a change, '
  'where either was discarded.';

create function app_private.organization_of_erasure(erasure_id uuid) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select e.organization_id from app_public.erasures e where e.id = erasure_id
$$;
comment on function app_private.organization_of_erasure(uuid) is 'The organization of an erasure.';
grant execute on function app_private.archiving_organizations, app_private.next_event_archive,
  app_private.announce_event_archive, app_private.record_event_archive, app_private.discard_event_archives,
  app_private.archived_delivery, app_private.archived_delivery_body, app_private.archived_events_to_erase,
  app_private.archives_to_erase, app_private.erased_archive, app_private.replace_event_archive,
  app_private.organization_of_erasure to plat_worker;
