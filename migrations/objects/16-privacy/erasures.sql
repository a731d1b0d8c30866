-- Erases a person: leads, purchases and agents, with all related data of the organization. One transaction erases
-- their
-- records, including the events about them, which keep their position and number; then a job redacts texts that name
-- them elsewhere, deletes the files, and writes the certificate.
--
--   RUNNING → COMPLETED
--
-- Contracts and payments are kept for the organization's contract_retention_years, and then erased automatically.

create policy erasers on app_public.erasures for select to plat_user
  using (deleted_at is null
    and organization_id = any ((select app_hidden.viewer_organizations('privacy.erase'))::uuid[]));
grant select on app_public.erasures to plat_user, plat_anonymous;
select app_private.make_record('erasures', 'erasure', 'privacy.erase');
insert into app_private.file_tables (table_name) values ('erasures');
insert into app_private.event_names (subject, column_name, value, name) values
  ('erasure', 'status', 'COMPLETED', 'completed');

comment on table app_public.erasures is $$
@portfolio privacy.erase
@behavior -operation

The record of an erasure of personal data: what was removed, what is retained, and why.$$;
comment on column app_public.erasures.organization_id is E'@behavior -*\n\nThe organization.';
comment on column app_public.erasures.status is 'Current status.';
comment on column app_public.erasures.reason is 'Reason given in the request, without names.';
comment on column app_public.erasures.lead_ids is 'Ids of the leads of the person.';
comment on column app_public.erasures.buyer_ids is 'Ids of the purchases of the person.';
comment on column app_public.erasures.agent_id is E'@behavior -*\n\nThe agent, where it was one.';
comment on column app_public.erasures.removed is
  'Erased data: {record, count, fields} for each kind of record, and counts of events, texts, files and exports.';
comment on column app_public.erasures.kept is
  'Retained data: {record, count, fields, reason, until} for each kind of record.';
comment on column app_public.erasures.kept_until is
  'When retained contracts and payments of the person are erased; null if none are retained.';
comment on column app_public.erasures.requested_by_id is
  E'@inert Only names the user who requested it.\n@behavior -*\n\nWho asked.';
comment on column app_public.erasures.completed_at is 'When the certificate was written.';
comment on column app_public.erasures.checksum is E'@behavior -*\n\nSHA-256 of the certificate.';
comment on column app_public.erasures.filename is E'@behavior -*\n\nThe name of the certificate.';
comment on constraint erasures_organization_id_fkey on app_public.erasures is
  E'@fieldName organization\n'
  '@foreignFieldName erasures\n'
  '@backwardPermission privacy.erase\n'
  '@backwardDescription Erasures of personal data, latest first; null without the permission privacy.erase.\n\n'
  'The organization.';
comment on constraint erasures_requested_by_id_fkey on app_public.erasures is
  E'@fieldName requestedBy\n@backwardBehavior -*\n\nUser who requested it.';
comment on table app_private.erasure_texts is
  'Names and addresses by which texts about a person are found, until the erasure has processed them.';
comment on column app_public.organizations.contract_retention_years is
  E'@behavior -*\n\nNumber of years for which contracts and payments are retained when a person is erased.';
comment on constraint organizations_contract_retention on app_public.organizations is 'Must be from 1 to 30 years.';
comment on column app_public.events.erased_at is
  'When personal data in the event were replaced by null, or its content was erased; null if neither was.';

create function app_public.erasures_certificate_url(e app_public.erasures) returns app_public.file_address
language sql stable as $$
  select case when e.checksum is not null
    then app_hidden.file_address('erasures', e.id, e.checksum, e.filename, false, true) end
$$;
grant execute on function app_public.erasures_certificate_url to plat_user, plat_anonymous;
comment on function app_public.erasures_certificate_url is
  'Download URL of the certificate (PDF), valid for a few minutes; null until it is written.';

create function app_private.erase_rows(scope jsonb, kept_until date, out removed jsonb, out kept jsonb)
language plpgsql volatile as $$
declare
  one record;
  ids uuid[];
  amount int;
  erased text[];
begin
  removed := '[]';
  kept := '[]';
  for one in
    select p.relation, c.relname, c.relnamespace = 'app_public'::regnamespace as is_public,
      coalesce(array_agg(p.name order by p.name) filter (where p.kept = '' or (p.kept = 'contract' and kept_until is
        null)),
        '{}') as gone,
      coalesce(array_agg(p.name order by p.name) filter (where p.kept = 'contract' and kept_until is not null), '{}')
        as stay
    from app_private.personal_columns() p join pg_class c on c.oid = p.relation
    where scope ? p.relation::text group by p.relation, c.relname, c.relnamespace order by p.relation::text
  loop
    ids := app_private.ids_in(scope, one.relation);
    if one.is_public and one.gone <> '{}' then
      execute format('update %s t set %s where t.id = any ($1) and row(%s) is distinct from row(%s)', one.relation,
        (select string_agg(format('%I = %s', g, app_private.erased_value(one.relation, g)), ', ') from
          unnest(one.gone) g),
        (select string_agg(format('t.%I', g), ', ') from unnest(one.gone) g),
        (select string_agg(app_private.erased_value(one.relation, g), ', ') from unnest(one.gone) g)) using ids;
      get diagnostics amount = row_count;
    elsif not one.is_public then
      execute format('delete from %s t where t.id = any ($1)', one.relation) using ids;
      get diagnostics amount = row_count;
    end if;
    erased := array(select app_hidden.camel(g) from unnest(one.gone) g);
    if amount > 0 and one.gone <> '{}' then
      removed := removed || jsonb_build_object('record', app_hidden.camel(one.relname), 'count', amount, 'fields',
        erased);
    end if;
    if one.stay <> '{}' then
      kept := kept || jsonb_build_object('record', app_hidden.camel(one.relname), 'count', cardinality(ids), 'fields',
        array(select app_hidden.camel(s) from unnest(one.stay) s),
        'reason', 'Contracts and payments are kept as long as the law asks for.', 'until', kept_until);
    end if;
  end loop;
  -- Related rows without an id.
  for one in select e.child, e.name, e.parent, c.relname from app_private.erasure_edges() e
    join pg_class c on c.oid = e.child
    where not e.has_id and scope ? e.parent::text and exists (select from app_private.personal_columns(e.child))
  loop
    execute format('delete from %s t where t.%I = any ($1)', one.child, one.name)
      using app_private.ids_in(scope, one.parent);
    get diagnostics amount = row_count;
    if amount > 0 then
      removed := removed || jsonb_build_object('record', app_hidden.camel(one.relname), 'count', amount);
    end if;
  end loop;
end $$;
comment on function app_private.erase_rows(jsonb, date) is
  'Replaces the personal data in the rows of a scope, and those of contracts unless they are retained; returns '
  'what was removed and what is retained.';

create function app_private.erase_events_of(relation regclass, ids uuid[], kept_until date,
  organization_id uuid default null) returns int
language plpgsql volatile as $$
declare
  members constant text[] := array(select app_hidden.camel(p.name) from app_private.personal_columns(relation) p
    where p.kept = '' or (p.kept = 'contract' and kept_until is null));
  amount int;
begin
  -- An event that is archived meanwhile is erased as an archived one.
  perform app_private.lock_event_archives(o.id, true) from (
    select distinct e.organization_id as id from app_public.events e where e.subject_id = any (ids)
      and e.organization_id is not null and (erase_events_of.organization_id is null
        or e.organization_id = erase_events_of.organization_id) order by 1) o;
  update app_public.events e set data = app_private.erase_members(e.data, members),
      changes = app_private.erase_members(e.changes, members), erased_at = now()
    where e.subject_id = any (ids) and (e.data ?| members or e.changes ?| members)
      and (erase_events_of.organization_id is null or e.organization_id = erase_events_of.organization_id);
  get diagnostics amount = row_count;
  return amount + app_private.erase_archived_events(ids, members, organization_id);
end $$;
comment on function app_private.erase_events_of(regclass, uuid[], date, uuid) is
  'Replaces the personal data in events about rows of a table, in one organization or in all; returns the number '
  'of events.';

create function app_private.erase_events(organization_id uuid, scope jsonb, kept_until date) returns int
language plpgsql volatile as $$
declare
  one record;
  total int := 0;
begin
  for one in
    select distinct p.relation from app_private.personal_columns() p where scope ? p.relation::text
  loop
    total := total + app_private.erase_events_of(one.relation, app_private.ids_in(scope, one.relation), kept_until,
      organization_id);
  end loop;
  -- Responses of webhook receivers may repeat the data.
  update app_public.webhook_deliveries d set response_body = null
    where d.organization_id = erase_events.organization_id and d.response_body is not null and d.event_id in (
      select e.id from app_public.events e, jsonb_each(scope) s, jsonb_array_elements_text(s.value) i (id)
      where e.subject_id = i.id::uuid);
  return total;
end $$;
comment on function app_private.erase_events(uuid, jsonb, date) is
  'Replaces the personal data in events about the rows of a scope, which keep their position in the stream; '
  'returns the number of events.';

create function app_private.erase_effects(organization_id uuid, scope jsonb, kept_until date) returns jsonb
language plpgsql volatile as $$
declare
  all_ids constant uuid[] := array(select i.id::uuid from jsonb_each(scope) s, jsonb_array_elements_text(s.value) i
    (id));
  leads constant uuid[] := app_private.ids_in(scope, 'app_public.leads');
  result jsonb := '[]';
  amount int;
  one record;
begin
  delete from app_private.notification_items n where n.subject_id = any (all_ids);
  delete from app_private.team_messages m where m.lead_id = any (leads);
  update app_public.leads l set subscribed = false, do_not_contact = true where l.id = any (leads);
  update app_public.persons p set email_digest = null where p.id in (
    select l.person_id from app_public.leads l where l.id = any (leads)
    union select b.person_id from app_public.buyers b where b.id = any (app_private.ids_in(scope,
      'app_public.buyers')));
  if kept_until is null then
    update app_public.buyers b set user_id = null where b.id = any (app_private.ids_in(scope, 'app_public.buyers'));
  end if;
  perform app_private.cancel_executions(array(select x.id from app_public.workflow_executions x
    where x.id = any (app_private.ids_in(scope, 'app_public.workflow_executions')) and x.completed_at is null
      and x.cancelled_at is null), 'The data of the person were erased.');
  -- Files of which nothing stays: the job that writes the certificate deletes their contents.
  for one in select t.table_name, format('app_public.%I', t.table_name)::regclass as relation
    from app_private.file_tables t where scope ? format('app_public.%I', t.table_name)::regclass::text
  loop
    execute format('update %s t set deleted_at = coalesce(t.deleted_at, now()) where t.id = any ($1) and t.checksum = '
      '''Erased''', one.relation) using app_private.ids_in(scope, one.relation);
    get diagnostics amount = row_count;
    if amount > 0 then
      result := result || jsonb_build_object('record', 'files', 'count', amount);
    end if;
  end loop;
  -- Records that are only about the person are removed from lists; deals remain in statistics, without a name.
  for one in select r.relation from unnest(array['app_public.lead_notes', 'app_public.tasks', 'app_public.appointments',
      'app_public.phone_calls', 'app_public.service_intelligence_generations', 'app_public.agents']::regclass[])
      r (relation) where scope ? r.relation::text
  loop
    execute format('update %s t set deleted_at = now() where t.id = any ($1) and t.deleted_at is null', one.relation)
      using app_private.ids_in(scope, one.relation);
  end loop;
  update app_public.leads l set deleted_at = now() where l.id = any (leads) and l.deleted_at is null
    and not scope ?| array['app_public.reservations', 'app_public.negotiations', 'app_public.offers',
      'app_public.buyers', 'app_public.agreements', 'app_public.deposits', 'app_public.processor_charges'];
  return result;
end $$;
comment on function app_private.erase_effects(uuid, jsonb, date) is
  'Further effects of an erasure: messages to the person stop, their workflow executions end, their files are '
  'deleted; returns the files.';

create function app_private.end_exports(organization_id uuid) returns int
language plpgsql volatile as $$
declare
  amount int;
begin
  -- Files of records that were written before name the person too; those that are being written may.
  perform app_private.step_export(e.id, case e.status when 'COMPLETED' then 'EXPIRED' else 'CANCELLED' end,
      case when e.status <> 'COMPLETED' then 'The data of a person were erased meanwhile; ask for it again.' end)
    from app_public.exports e where e.organization_id = end_exports.organization_id
      and e.status in ('PENDING', 'PROCESSING', 'COMPLETED');
  get diagnostics amount = row_count;
  if amount > 0 then
    perform app_private.add_job('exports__sweep', job_key => 'exports__sweep ' || end_exports.organization_id);
  end if;
  return amount;
end $$;
comment on function app_private.end_exports(uuid) is
  'Schedules deletion of the files of all exports of an organization, and cancels exports in progress; returns '
  'their number.';

create function app_private.check_files(scope jsonb) returns void
language plpgsql volatile as $$
declare
  one record;
begin
  for one in select format('app_public.%I', t.table_name)::regclass as relation from app_private.file_tables t
    where scope ? format('app_public.%I', t.table_name)::regclass::text
  loop
    execute format('update app_private.stored_files s set check_at = now() from %s t
      where t.id = any ($1) and s.checksum = t.checksum', one.relation)
      using app_private.ids_in(scope, one.relation);
  end loop;
  perform app_private.add_job('files__sweep');
end $$;
comment on function app_private.check_files(jsonb) is
  'Schedules immediate deletion of file contents in a scope that no other row refers to.';
