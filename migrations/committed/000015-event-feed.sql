--! Previous: sha1:551315b2a6a498543c9b0d8472df0640c72c366a
--! Hash: sha1:9d60dcd60fe2690ad34f0863b483c2b5510dc41d
--! Message: event-feed

-- Reading the stream: the change feed of the viewer's organizations, and the history of each record.

create function app_hidden.sees_subject(subject_type text, subject_id uuid) returns boolean
language plpgsql stable as $$
declare
  result boolean;
begin
  if not exists (select from app_hidden.record_types r where r.subject = subject_type) then
    return false;
  end if;
  -- PERF: a function of each kind of record keeps its plan, which under a policy takes longer to make than to run.
  execute format('select app_hidden.%I($1)', 'sees_' || subject_type) into result using subject_id;
  return result;
end $$;
comment on function app_hidden.sees_subject(text, uuid) is 'Whether the viewer may see the record that an event is about.';

-- One policy, so that the record of an event is only asked for where the cheap answer is no.
create policy auditors_and_seers_of_subject on app_public.events for select to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('audit.read')))
    -- Outside of an organization, events are of the user alone: colleagues do not read when somebody signed in.
    or (((organization_id is null and stream_id = (select app_public.current_user_id()) and (select app_hidden.has_whole_account()))
        or organization_id = any (array(select app_hidden.viewer_organizations('org.member')))
        or project_id = any (array(select app_hidden.viewer_projects('project.read'))))
      -- Which mails a colleague gets is not for colleagues to read.
      and subject_type <> 'member' and app_hidden.sees_subject(subject_type, subject_id)));
grant select on app_public.events to plat_user, plat_anonymous, plat_worker;

create index events_organization on app_public.events (organization_id, sequence);

create function app_hidden.deleted_records(_type anyelement) returns setof anyelement
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query execute format(
    'select t.* from %s t where t.deleted_at is not null and t.organization_id = any (array(select app_hidden.viewer_organizations(''org.admin'')))',
    pg_typeof(_type)::text::regclass);
end $$;
comment on function app_hidden.deleted_records(anyelement) is 'Deleted rows of the organizations that the viewer administers.';

create function app_public.events_sequence(e app_public.events) returns text
language sql stable as $$ select e.sequence::text $$;
grant execute on function app_public.events_sequence to plat_user, plat_anonymous;
comment on function app_public.events_sequence is E'@notNull\n\nStrictly increasing per organization, without gaps, in the order of commits.';

create function app_hidden.to_sequence(value text) returns bigint
language plpgsql stable as $$
begin
  if value !~ '^[0-9]{1,18}$' then
    perform app_hidden.fail('BAD_USER_INPUT', 'A sequence is a whole number as text.', '{"field": "afterSequence"}');
  end if;
  return value::bigint;
end $$;
comment on function app_hidden.to_sequence(text) is 'A sequence number as the API spells it.';

-- In SQL, so that it is inlined and the feed begins at its place in the index.
create function app_public.events_filter_after_sequence(e app_public.events, value text) returns boolean
language sql stable as $$ select e.sequence > app_hidden.to_sequence(value) $$;
create function app_public.events_filter_names(e app_public.events, value text[]) returns boolean
language sql stable as $$
  select e.name = any (value) or split_part(e.name, '.', 1) || '.*' = any (value) or '*' = any (value)
$$;
grant execute on function app_public.events_filter_after_sequence, app_public.events_filter_names to plat_user, plat_anonymous;
comment on function app_public.events_filter_after_sequence is E'@filter afterSequence\n\nOnly events after this sequence number.';
comment on function app_public.events_filter_names is E'@filter names\n\nNames such as lead.created, lead.* or *.';

comment on column app_public.events.organization_id is E'@filter organizationId\n\nThe organization whose sequence the event is in.';
comment on column app_public.events.project_id is E'@filter projectId\n\nThe project of the record.';
comment on column app_public.events.subject_type is E'@filter\n\nThe kind of record that changed, such as lead.';
comment on column app_public.events.subject_id is E'@filter subjectId\n\nThe record that changed.';
comment on column app_public.events.occurred_at is E'@filter\n\nWhen the transaction of the change began.';
comment on column app_public.events.actor_id is E'@behavior -*\n\nThe user who caused it.';
comment on column app_public.events.caused_by_id is E'@behavior -*\n\nThe event that led to this one.';

comment on table app_public.events is $$
@portfolio org.member
@defaultOrder organization_id asc, sequence asc
@foreignKey (organization_id) references organizations (id)|@fieldName organization|@backwardBehavior -*
@foreignKey (project_id) references projects (id)|@fieldName project|@backwardBehavior -*
@foreignKey (actor_id) references users (id)|@fieldName actor|@backwardBehavior -*
@foreignKey (caused_by_id) references events (id)|@fieldName causedBy|@backwardBehavior -*

Something that happened to a record; never changed, never deleted.$$;

-- record.events for every record; tables of later chapters get theirs by make_record.
create function app_private.make_event_history(table_name text) returns void
language plpgsql volatile as $$
begin
  if to_regclass(format('app_public.%I', table_name)) is null then
    return;
  end if;
  -- As the viewer: the policy of the record's own table decides.
  execute format('create function app_hidden.%I(id uuid) returns boolean language plpgsql stable as
    $f$ begin return exists (select from app_public.%I r where r.id = $1); end $f$',
    'sees_' || (select r.subject from app_hidden.record_types r where r.table_name = $1), table_name);
  if table_name in ('users') then
    return;
  end if;
  execute format(
    'create function app_public.%I(r app_public.%I) returns setof app_public.events language sql stable rows 20 as
     $f$ select e.* from app_public.events e where %s $f$',
    table_name || '_events', table_name, case table_name
      when 'projects' then 'e.project_id = r.id and e.organization_id = r.organization_id order by e.sequence desc, e.id desc'
      when 'organizations' then 'e.organization_id = r.id order by e.sequence desc, e.id desc'
      else 'e.subject_id = r.id order by e.id desc' end);
  execute format('grant execute on function app_public.%I to plat_user, plat_anonymous', table_name || '_events');
  execute format('comment on function app_public.%I is %L', table_name || '_events',
    case when table_name in ('projects', 'organizations') then E'@permission audit.read\n@by ' || case table_name when 'projects' then 'project_id' else 'organization_id' end || E'\n\nWhat happened there, latest first; null without the permission audit.read.'
      else 'What happened to it, latest first.' end);
end $$;
select app_private.make_event_history(r.table_name) from app_hidden.record_types r;
