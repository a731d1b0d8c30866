-- Exports: files of records. PENDING → PROCESSING (by a job) → COMPLETED → EXPIRED after a week, when the file is
-- deleted; FAILED; CANCELLED by a user, or because the requester lost access. The job reads with the requester's rights
-- and token scopes; these are stored, and the file is only accessible to viewers who have them.
--
-- An export of a dead worker is taken over as soon as its job is released, not when the lease expires: the death of a
-- worker with a heartbeat is visible.

comment on table app_private.export_runs is
  'What the work on an export needs, apart from the record, so that progress is no change of it: what the token in use '
  'was restricted to, how far rights reached when it was read, who works on it until when, and where the file lies.';
comment on column app_private.export_runs.holder is
  'The worker that holds the lease, if it reports its liveness; for others only the end of the lease shows that '
  'they died.';

create policy requesters_and_managers on app_public.exports for select to plat_user
  using ((requested_by_id = (select app_public.current_user_id())
    and organization_id = any ((select app_hidden.viewer_organizations('report.run'))::uuid[]))
    or organization_id = any ((select app_hidden.viewer_organizations('report.manage'))::uuid[]));

select app_private.make_record('exports', 'export', 'report.run');
select app_private.make_state_machine('exports', 'export',
  steps => array[
    ['PENDING', 'PROCESSING', 'service'], ['PROCESSING', 'COMPLETED', 'service'], ['COMPLETED', 'EXPIRED', 'service'],
    ['PENDING', 'FAILED', 'service'],
    ['PROCESSING', 'FAILED', 'service'], ['PENDING', 'CANCELLED', 'hand'], ['PROCESSING', 'CANCELLED', 'hand']],
  initial => array['PENDING']);
select app_private.make_deadline('export', 'app_public.exports', 'expires_at', 'new.status = ''COMPLETED''', '{status}',
  'app_private.expire_export(uuid)');

grant select on app_public.exports to plat_user, plat_anonymous;

comment on table app_public.exports is
  E'@defaultOrder id desc\n\nA file of the records that the requesting user may see.';
comment on column app_public.exports.custom_export_id is
  E'@behavior -*\n\nThe saved definition that it was written from.';
comment on column app_public.exports.custom_report_id is E'@behavior -*\n\nThe report whose figures it has.';
comment on column app_public.exports.group_by is 'Grouping of the report; null for an export of rows.';
comment on column app_public.exports.subject is 'Record type of the rows.';
comment on column app_public.exports.format is 'File format.';
comment on column app_public.exports.columns is 'Requested columns; null for the default columns of the subject.';
comment on column app_public.exports.filter is 'Requested conditions on rows; null for all rows.';
comment on column app_public.exports.sort is 'Requested sort order; null for the default.';
comment on column app_public.exports.status is 'Current status.';
comment on column app_public.exports.status_changed_at is 'When the status last changed.';
comment on column app_public.exports.row_count is 'Number of rows in the file; null until it is written.';
comment on column app_public.exports.filename is 'Filename for downloads.';
comment on column app_public.exports.filesize is 'Size in bytes.';
comment on column app_public.exports.checksum is 'SHA-256 of the file, in hexadecimal digits.';
comment on column app_public.exports.requested_by_id is E'@behavior -*\n\nUser who requested it.';
comment on column app_public.exports.started_at is 'When a worker started writing the file.';
comment on column app_public.exports.completed_at is 'When the file was ready for download; null until then.';
comment on column app_public.exports.expires_at is 'When the file will be deleted.';
comment on column app_public.exports.error is 'Reason why the export failed; null unless the status is FAILED.';
comment on constraint exports_organization_id_fkey on app_public.exports is
  E'@fieldName organization\n'
  '@foreignFieldName exports\n'
  '@backwardPermission org.member\n'
  '@backwardDescription Exports requested by the viewer, or by anybody with the permission report.manage, latest '
  'first; null for non-members.\n\n'
  'The organization.';
comment on constraint exports_project_id_fkey on app_public.exports is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint exports_custom_export_id_fkey on app_public.exports is
  E'@fieldName customExport\n@foreignFieldName exports\n@backwardDescription Files written from it that the viewer '
  'may see, latest first.\n\n'
  'The saved definition that it was written from.';
comment on constraint exports_custom_report_id_fkey on app_public.exports is
  E'@fieldName customReport\n@foreignFieldName exports\n@backwardDescription Files written from the report that the '
  'viewer may see, latest first.\n\n'
  'The report that was exported; null if the viewer may not see it.';
comment on constraint exports_requested_by_id_fkey on app_public.exports is
  E'@fieldName requestedBy\n@backwardBehavior -*\n\nUser who requested it.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('export', 'status', 'COMPLETED', 'completed'), ('export', 'status', 'FAILED', 'failed'),
  ('export', 'status', 'CANCELLED', 'cancelled'),
  ('export', 'status', 'EXPIRED', 'expired');

create function app_private.export_lacks(e app_public.exports) returns text
language sql stable as $$ select app_private.lacking_permission(e.organization_id, e.project_id, '{report.run}') $$;
comment on function app_private.export_lacks(app_public.exports) is
  'A permission that the viewer lacks to have an export written; null where they may. What is in it is what they see.';

create function app_private.suspend_export(id uuid, reason text) returns void
language sql volatile as $$ select app_private.step_export(suspend_export.id, 'CANCELLED', reason) $$;
comment on function app_private.suspend_export(uuid, text) is 'Cancels an export for the reason.';

select app_private.make_principal('app_public', 'exports', 'requested_by_id', 'export', 'r.filename',
  'r.status in (''PENDING'', ''PROCESSING'')', 'app_private.export_lacks(app_public.exports)',
  'app_private.suspend_export(uuid, text)');

create trigger _505_next_exports after update of status on app_public.exports for each row
  when (old.status in ('PENDING', 'PROCESSING') and new.status not in ('PENDING', 'PROCESSING'))
  execute function app_private.tg_exports__next();

create trigger _500_run after insert on app_public.exports for each row
  execute function app_private.tg__add_job('export__requested');

create function app_private.step_export(id uuid, status text, error text default null) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.exports e set status = step_export.status, error = step_export.error,
      started_at = case when step_export.status = 'PROCESSING' then now() else e.started_at end
    where e.id = step_export.id and e.status <> step_export.status;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.step_export(uuid, text, text) is 'Takes an export into another state, as the service.';

create function app_private.expire_export(id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.step_export(expire_export.id, 'EXPIRED');
  -- One key for each organization: a key is locked until the transaction that enqueues under it ends.
  perform app_private.add_job('exports__sweep', job_key => 'exports__sweep ' || e.organization_id)
    from app_public.exports e where e.id = expire_export.id;
end $$;

-- Queueing. Within an organization, the requesters take turns; organizations do not wait for each other.
create function app_private.export_limits(out of_person int, out of_organization int, out waiting_of_person int,
  out waiting_of_organization int)
language sql immutable as $$ select 3, 10, 30, 100 $$;
comment on function app_private.export_limits() is
  'Maximum number of exports written at the same time, per person and per organization, and of unfinished exports '
  'altogether.';

create function app_private.export_queue(organization_id uuid) returns table (id uuid, place int, starts boolean)
language sql stable as $$
  with unfinished as (
    select e.id, e.status, count(*) filter (where e.status = 'PROCESSING') over (partition by e.requested_by_id)
        + count(*) filter (where e.status = 'PENDING') over (partition by e.requested_by_id order by e.id) as turn,
      count(*) filter (where e.status = 'PROCESSING') over () as being_written
    from app_public.exports e
    where e.organization_id = export_queue.organization_id and e.status in ('PENDING', 'PROCESSING')
  ), waiting as (
    select u.id, row_number() over (order by u.turn > l.of_person, u.turn, u.id)::int as place, u.turn, u.being_written,
      l.of_person, l.of_organization
    from unfinished u cross join app_private.export_limits() l where u.status = 'PENDING'
  )
  select w.id, w.place, w.turn <= w.of_person and w.being_written + w.place <= w.of_organization from waiting w
$$;
comment on function app_private.export_queue(uuid) is
  'Queued exports of an organization, with their position and whether they may start now; users with fewer running '
  'exports come first.';

create function app_private.tg_exports__next() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- After concurrent requests for a slot, which then see that one has ended.
  perform pg_advisory_xact_lock(hashtextextended('plat.exports ' || new.organization_id, 0));
  perform app_private.add_job('export__requested', jsonb_build_object('id', q.id), job_key => 'export ' || q.id)
    from app_private.export_queue(new.organization_id) q where q.starts;
  return null;
end $$;
comment on function app_private.tg_exports__next() is 'Starts the next exports in the queue when one has ended.';

-- Asking for one.
create function app_private.request_export(
  organization_id uuid, project_id uuid, subject text, format text, columns jsonb, filter jsonb, sort jsonb,
    custom_export_id uuid, name text, group_by text[] default null, custom_report_id uuid default null)
returns app_public.exports
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  most constant record := app_private.export_limits();
  viewer constant uuid := app_hidden.require_viewer();
  running record;
  result app_public.exports;
begin
  perform app_hidden.require_organization(organization_id, 'report.run');
  if subject = 'ORGANIZATION' then
    perform app_hidden.require_organization(organization_id, 'org.owner');
  else
    perform app_hidden.export_query(subject, format, organization_id, project_id, columns, filter, sort, group_by);
  end if;
  -- Serialized: two concurrent calls must not both be the last one within the limit.
  perform pg_advisory_xact_lock(hashtextextended('plat.exports ' || organization_id, 0));
  select count(*) filter (where e.requested_by_id = viewer) as of_person, count(*) as of_organization into running
    from app_public.exports e where e.organization_id = request_export.organization_id
      and e.status in ('PENDING', 'PROCESSING');
  if running.of_person >= most.waiting_of_person or running.of_organization >= most.waiting_of_organization then
    perform app_hidden.fail('RATE_LIMITED',
      format('%s of your exports and %s of the organization are queued or running, the limits being %s and %s. Wait '
        'for one to finish, or cancel one.',
        running.of_person, running.of_organization, most.waiting_of_person, most.waiting_of_organization),
      '{"retryAfterSeconds": 15}');
  end if;
  perform app_private.rate_limit('export', viewer::text, 60, '1 hour');
  insert into app_public.exports (organization_id, project_id, custom_export_id, subject, format, columns, filter, sort,
    requested_by_id, filename, group_by, custom_report_id)
    values (organization_id, project_id, custom_export_id, subject, format, columns, nullif(filter, 'null'),
      nullif(sort, 'null'), viewer,
      coalesce(nullif(app_hidden.slugify(name), ''),
        (select s.filename from app_hidden.report_subjects s where s.subject = request_export.subject))
        || to_char(now() at time zone 'UTC', '-YYYY-MM-DD.') || lower(format), group_by, custom_report_id)
    returning * into result;
  insert into app_private.export_runs (export_id, token_id, token_organization_id, token_scopes)
    values (result.id, app_hidden.setting('token_id')::uuid, app_hidden.setting('organization_id')::uuid,
      app_hidden.setting('scopes'));
  return result;
end $$;
comment on function app_private.request_export(uuid, uuid, text, text, jsonb, jsonb, jsonb, uuid, text, text[], uuid) is
  'Queues an export for the viewer, with the permissions of their token; refuses data that they may not see, and '
  'too many queued exports.';
grant execute on function app_private.request_export to plat_user;

create function app_public.run_custom_export(id uuid) returns app_public.exports
language plpgsql volatile as $$
declare
  source app_public.custom_exports;
begin
  perform app_hidden.require_viewer();
  select * into source from app_public.custom_exports c where c.id = run_custom_export.id;
  if source.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such custom export.', '{"field": "id"}');
  end if;
  perform app_hidden.refuse_long_export(source.subject, source.format, source.organization_id, source.project_id,
    source.columns, source.filter);
  return app_private.request_export(source.organization_id, source.project_id, source.subject, source.format,
    source.columns, source.filter, source.sort, source.id, source.name);
end $$;

create function app_public.export_custom_report(id uuid, format app_public.export_format default null)
returns app_public.exports
language plpgsql volatile as $$
declare
  wanted constant text := coalesce(format, 'CSV');
  source app_public.custom_reports;
begin
  perform app_hidden.require_viewer();
  select * into source from app_public.custom_reports r where r.id = export_custom_report.id;
  if source.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such custom report.', '{"field": "id"}');
  end if;
  perform app_hidden.refuse_report_kind(source.kind);
  if source.group_by = '{}' and not jsonb_path_exists(source.columns, '$[*].aggregate') then
    perform app_hidden.refuse_long_export(source.subject, wanted, source.organization_id, source.project_id,
      source.columns, source.filter);
  end if;
  return app_private.request_export(source.organization_id, source.project_id, source.subject, wanted, source.columns,
    source.filter, null, null, source.name, source.group_by, source.id);
end $$;
grant execute on function app_public.export_custom_report to plat_user, plat_anonymous;
comment on function app_public.export_custom_report is
  E'@arg id Id of the report whose rows are written to a file.\n@arg format File format. Default: CSV.\n\n'
  'Exports the rows of a report, as far as the viewer may see them, to a file. The file is written in the '
  'background: `url` of the export is set once its status is COMPLETED.';

create function app_public.export_floor_plans(project_id app_public.id_or_slug,
  format app_public.export_format default null, floor_plan_ids uuid[] default null)
returns app_public.exports
language plpgsql volatile as $$
#variable_conflict use_column
declare
  wanted constant text := coalesce(format, 'PDF');
  filter constant jsonb := case when floor_plan_ids is not null then jsonb_build_object('id', floor_plan_ids) end;
  chosen app_public.projects;
  missing int;
begin
  perform app_hidden.require_viewer();
  select p.* into chosen from app_hidden.masked_projects p
    where p.id = app_hidden.record_id('projects', export_floor_plans.project_id, 'projectId');
  if chosen.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  elsif not app_hidden.organization_can(chosen.organization_id, 'report.run') then
    perform app_hidden.fail('FORBIDDEN', 'This requires the permission report.run in the organization of the project.',
      '{"permission": "report.run"}');
  end if;
  select i.place - 1 into missing from unnest(floor_plan_ids) with ordinality i (id, place)
    where not exists (select from app_public.floor_plans f where f.id = i.id and f.project_id = chosen.id)
      order by i.place limit 1;
  if found then
    perform app_hidden.fail('NOT_FOUND', 'There is no such floor plan in the project.',
      jsonb_build_object('field', 'floorPlanIds.' || missing));
  end if;
  perform app_hidden.refuse_long_export('FLOOR_PLANS', wanted, chosen.organization_id, chosen.id, null, filter);
  return app_private.request_export(chosen.organization_id, chosen.id, 'FLOOR_PLANS', wanted, null, filter,
    '["sequence", "id"]', null, chosen.slug || ' floor plans');
end $$;

create function app_public.export_plans(project_id app_public.id_or_slug, format app_public.export_format default null,
  floor_plan_ids uuid[] default null)
returns app_public.exports
language sql volatile as $$
  select e.* from app_public.export_floor_plans(export_plans.project_id, export_plans.format,
    export_plans.floor_plan_ids) e
$$;

create function app_public.cancel_export(id uuid) returns app_public.exports
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  result app_public.exports;
begin
  perform app_hidden.require_viewer();
  select * into result from app_public.exports e where e.id = cancel_export.id and (
      (e.requested_by_id = app_public.current_user_id()
        and e.organization_id = any ((select app_hidden.viewer_organizations('report.run'))::uuid[]))
      or e.organization_id = any ((select app_hidden.viewer_organizations('report.manage'))::uuid[])) for no key update;
  if result.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such export.', '{"field": "id"}');
  end if;
  update app_public.exports e set status = 'CANCELLED' where e.id = result.id and e.status <> 'CANCELLED'
    returning * into result;
  return coalesce(result, (select e from app_public.exports e where e.id = cancel_export.id));
end $$;
grant execute on function app_public.run_custom_export, app_public.export_floor_plans, app_public.export_plans,
  app_public.cancel_export to plat_user, plat_anonymous;

create function app_hidden.csv_text(value text) returns text
language sql immutable parallel safe as $$
  -- An apostrophe in front says to spreadsheet programs that it is text; some read full-width signs too.
  -- PERF: short enough to become part of the statement that calls it.
  select case when translate(value, E'",;\n\r', '') <> value then app_hidden.csv_cell(value)
    when value <> '' and strpos(E'=+-@\t\uff1d\uff0b\uff0d\uff20', left(value, 1)) > 0 then '''' || value
    else value end
$$;
comment on function app_hidden.csv_text(text) is
  'A text as a cell of CSV by RFC 4180, which no spreadsheet program takes for a formula.';

create function app_hidden.export_lines(most int) returns table (lines text, row_count int)
language plpgsql volatile as $$
declare
  rows refcursor := 'export_rows';
  line text;
  parts text[] := '{}';
begin
  -- PERF: one text for many rows; as a row each they are a hundred times the work, and garbage, for the service.
  for i in 1 .. most loop
    fetch rows into line;
    exit when not found;
    parts := parts || line;
  end loop;
  return query select array_to_string(parts, ''), cardinality(parts);
end $$;
comment on function app_hidden.export_lines(int) is
  'The next lines of the cursor that open_export opened for CSV or JSONL, as one text.';
revoke execute on function app_hidden.export_lines from plat_anonymous;

create function app_hidden.floor_plan_pictures(floor_plan_ids uuid[], most int) returns table (floor_plan_id uuid,
  checksum text)
language sql stable as $$
  select p.id, p.checksum from unnest(floor_plan_ids) f (id), lateral (
    select f.id, x.checksum from (
      select 1 as kind, d.sequence, d.id, d.checksum from app_public.floor_plan_drawings d where d.floor_plan_id = f.id
      union all select 2, i.sequence, i.id, i.checksum from app_public.floor_plan_images i
        where i.floor_plan_id = f.id) x
    order by x.kind, x.sequence, x.id limit most) p
$$;
comment on function app_hidden.floor_plan_pictures(uuid[], int) is
  'The contents of the first pictures of floor plans, drawings before others.';
revoke execute on function app_hidden.floor_plan_pictures from plat_anonymous;

create function app_private.note_export(id uuid, worker uuid, total int, permissions text[], rights text[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_private.export_runs r set rows_total = total, permissions = note_export.permissions,
    rights = note_export.rights
    where r.export_id = note_export.id and r.worker = note_export.worker
$$;
comment on function app_private.note_export(uuid, uuid, int, text[], text[]) is
  'Keeps how many rows an export has, and how far rights reached when they were read.';

create function app_private.export_goes_on(id uuid, worker uuid, rows_done int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  run app_private.export_runs;
  chosen app_public.exports;
  may boolean;
begin
  select * into chosen from app_public.exports e where e.id = export_goes_on.id for no key update;
  update app_private.export_runs r set rows_done = export_goes_on.rows_done,
    lease_until = clock_timestamp() + interval '1 minute'
    where r.export_id = chosen.id and r.worker = export_goes_on.worker returning * into run;
  if run.export_id is null or chosen.status <> 'PROCESSING' then
    return false;
  end if;
  perform set_config('plat.user_id', chosen.requested_by_id::text, true),
    set_config('plat.token_id', coalesce(run.token_id::text, ''), true),
    set_config('plat.organization_id', coalesce(run.token_organization_id::text, ''), true),
      set_config('plat.scopes', coalesce(run.token_scopes, ''), true);
  may := exists (select from app_public.users u where u.id = chosen.requested_by_id and u.status = 'ACTIVE'
    and u.deleted_at is null)
    and app_private.token_ended(run.token_id) is null
    and app_hidden.organization_can(chosen.organization_id, 'report.run')
    and (run.rights is null or app_hidden.report_rights_hold(run.rights, chosen.organization_id, chosen.project_id,
      run.permissions || '{report.run}'::text[]));
  -- From here on it is the service again that acts.
  perform set_config('plat.user_id', '', true), set_config('plat.token_id', '', true),
    set_config('plat.organization_id', '', true), set_config('plat.scopes', '', true);
  if not may then
    perform app_private.step_export(chosen.id, 'CANCELLED', 'Whoever asked for it may not see it any more.');
  end if;
  return may;
end $$;
comment on function app_private.export_goes_on(uuid, uuid, int) is
  'Records the progress of an export; returns whether to continue: it is not cancelled, no other worker has it, '
  'and the requester may still see the data. A right that is lost cancels it.';

create function app_private.keep_export_file(id uuid, worker uuid, file_key text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_private.export_runs r set file_key = keep_export_file.file_key where r.export_id = keep_export_file.id
    and r.worker = keep_export_file.worker
$$;
comment on function app_private.keep_export_file(uuid, uuid, text) is
  'Says where the file of an export will lie, before it does: so that it is removed, whatever happens.';

create function app_private.finish_export(id uuid, worker uuid, row_count int, filesize int,
  checksum text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  lifetime constant interval := '7 days';
begin
  if not app_private.export_goes_on(finish_export.id, finish_export.worker, finish_export.row_count) then
    return false;
  end if;
  perform set_config('plat.service', 'on', true);
  update app_public.exports e set status = 'COMPLETED', row_count = finish_export.row_count,
    filesize = finish_export.filesize, checksum = finish_export.checksum,
      completed_at = now(), expires_at = now() + lifetime
    where e.id = finish_export.id;
  perform set_config('plat.service', '', true);
  update app_private.export_runs r set lease_until = null where r.export_id = finish_export.id;
  return true;
end $$;
comment on function app_private.finish_export(uuid, uuid, int, int, text) is
  'Makes an export COMPLETED; returns false if it was cancelled or taken over, so that the file is discarded.';

create function app_private.give_up_export(id uuid, worker uuid, status text, error text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  perform from app_public.exports e where e.id = give_up_export.id and e.status = 'PROCESSING' for no key update;
  if found and exists (select from app_private.export_runs r where r.export_id = give_up_export.id
    and r.worker = give_up_export.worker) then
    if status is null then
      -- A stop of the service is no failed attempt.
      update app_private.export_runs r set lease_until = now(), attempts = r.attempts - case
        when give_up_export.error is null then 1 else 0 end where r.export_id = give_up_export.id;
    else
      perform app_private.step_export(give_up_export.id, give_up_export.status, give_up_export.error);
    end if;
  end if;
end $$;
comment on function app_private.give_up_export(uuid, uuid, text, text) is
  'Ends the work on an export: as FAILED or CANCELLED, or without a status, so that another worker starts over '
  'immediately.';

create function app_private.sweep_exports(batch int) returns setof text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- An export without progress for a while has lost its job; the next worker starts over.
  perform app_private.add_job('export__requested', jsonb_build_object('id', e.id), null, 'export ' || e.id)
    from app_public.exports e join app_private.export_runs r on r.export_id = e.id
    where e.status in ('PENDING', 'PROCESSING')
      and coalesce(r.lease_until, e.inserted_at) < now() - interval '5 minutes';
  return query
    with due as (
      -- PERF: (… offset 0) begins with the files that there are, a week's, not with all exports that ever were.
      select r.export_id, r.file_key from app_private.export_runs r
      cross join lateral (select from app_public.exports e where e.id = r.export_id
        and e.status in ('EXPIRED', 'FAILED', 'CANCELLED') offset 0) e
      where r.file_key is not null and coalesce(r.lease_until < now(), true)
      limit batch for update of r skip locked)
    update app_private.export_runs r set file_key = null from due where r.export_id = due.export_id
      returning due.file_key;
end $$;
comment on function app_private.sweep_exports(int) is
  'Removes the references to files of expired exports and returns them; the caller deletes the files from the '
  'store before the transaction commits. Exports whose job is lost get another.';

-- Fields.
create function app_private.export_file(id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- A file contains data that its requester could see at that time, with the token they used. Viewers with fewer
  -- permissions get no URL.
  select r.file_key from app_public.exports e join app_private.export_runs r on r.export_id = e.id
  where e.id = export_file.id and e.status = 'COMPLETED' and e.expires_at > now()
    and e.requested_by_id = app_public.current_user_id()
    and app_hidden.report_rights_hold(r.rights, e.organization_id, e.project_id,
      r.permissions || '{report.run}'::text[])
$$;
comment on function app_private.export_file(uuid) is
  'Where the file of an export lies; null for everybody but the requester, and for them too when their rights have '
  'become less.';
grant execute on function app_private.export_file to plat_user, plat_anonymous;

create function app_public.exports_url(e app_public.exports) returns app_public.file_address
language plpgsql stable as $$
declare
  key text;
begin
  if app_public.current_user_id() is null or e.status <> 'COMPLETED' then
    return null;
  end if;
  key := app_private.export_file(e.id);
  return case when key is not null then app_hidden.file_address('exports', e.id, key, e.filename, false, true) end;
end $$;

create function app_public.exports_progress(e app_public.exports) returns double precision
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select case when e.status in ('COMPLETED', 'EXPIRED') then 1
    else coalesce((select round(least(0.99, r.rows_done / greatest(r.rows_total, 1)::numeric), 2)
    from app_private.export_runs r where r.export_id = e.id
      and e.organization_id = any ((select app_hidden.viewer_organizations('report.run'))::uuid[])), 0) end
$$;

create function app_public.exports_queue_position(e app_public.exports) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select q.place from app_private.export_queue(e.organization_id) q
  where q.id = e.id and e.status = 'PENDING'
    and e.organization_id = any ((select app_hidden.viewer_organizations('report.run'))::uuid[])
$$;

create function app_public.exports_allowed_transitions(e app_public.exports) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('export', to_jsonb(e)) $$;

grant execute on function app_public.exports_url, app_public.exports_progress, app_public.exports_queue_position,
  app_public.exports_allowed_transitions,
  app_public.custom_exports_last_export to plat_user, plat_anonymous;
comment on function app_public.exports_url is
  'Download URL, valid for a few minutes; only for the user who requested the export.';
comment on function app_public.exports_progress is E'@notNull\n\nShare of the work that is done, from 0 to 1.';
comment on function app_public.exports_queue_position is
  'Position in the organization''s queue of exports while it is PENDING; 1 is next. Users take turns.';
comment on function app_public.exports_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make; others happen automatically.';

comment on function app_public.run_custom_export is
  E'@arg id The saved definition: columns, filter and format.\n\n'
  'Exports the records that a saved definition selects. The file is ready when the status of the export is COMPLETED; '
  'it contains what the viewer may see. Requires the permission report.run.';
comment on function app_public.export_floor_plans is
  E'@arg project_id Id or slug of the project.\n@arg format File format. Default: PDF, with one page per plan and '
  'its images.\n@arg floor_plan_ids Ids of floor plans, to export only these.\n\n'
  'Exports the floor plans of a project to a file. The file is ready when the status of the export is COMPLETED. '
  'Requires the permission report.run.';
comment on function app_public.export_plans is $$
@deprecated Use `exportFloorPlans`. Removed after 2028-01-01.
@arg project_id Id or slug of the project.
@arg format File format. Default: PDF, with one page per plan and its images.
@arg floor_plan_ids Ids of floor plans, to export only these.

Same as `exportFloorPlans`.$$;
comment on function app_public.cancel_export is
  E'@arg id Id of an export that is PENDING or PROCESSING.\n\n'
  'Cancels an export that is not ready yet: the viewer''s own, or any of the organization with the permission '
  'report.manage.';

create function app_private.expire_before_export(id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.expire_deadlines(e.organization_id, true) from app_public.exports e
  where e.id = expire_before_export.id
$$;
comment on function app_private.expire_before_export(uuid) is
  'Settles what is due in the organization of an export, so that its rows are those that a reader finds.';

create function app_private.start_export(id uuid, holder text) returns table (worker uuid, organization_id uuid,
  requested_by_id uuid, token_id uuid, token_organization_id uuid, token_scopes text,
  subject text, is_report boolean, format text, filename text, stale_key text, slug text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  most constant int := 5;
  chosen app_public.exports;
  run app_private.export_runs;
begin
  select * into chosen from app_public.exports e where e.id = start_export.id
    and e.status in ('PENDING', 'PROCESSING') for no key update;
  if chosen.id is null then
    return;
  end if;
  if chosen.status = 'PENDING' then
    -- Serialized: two concurrent calls must not both take the last slot.
    perform pg_advisory_xact_lock(hashtextextended('plat.exports ' || chosen.organization_id, 0));
    -- It starts when another one ends and its turn has come.
    if not (select q.starts from app_private.export_queue(chosen.organization_id) q where q.id = chosen.id) then
      return;
    end if;
  end if;
  select * into run from app_private.export_runs r where r.export_id = chosen.id for update;
  if run.lease_until > clock_timestamp() and (run.holder is null or app_private.worker_lives(run.holder)) then
    perform app_private.add_job('export__requested', jsonb_build_object('id', chosen.id), run.lease_until,
      'export ' || chosen.id);
    return;
  elsif run.attempts >= most then
    perform app_private.step_export(chosen.id, 'FAILED', 'The export broke off several times.');
    return;
  end if;
  stale_key := run.file_key;
  update app_private.export_runs r set worker = gen_random_uuid(), attempts = r.attempts + 1,
    lease_until = clock_timestamp() + interval '1 minute', rows_done = 0,
      rows_total = null, holder = case when app_private.worker_lives(start_export.holder) then start_export.holder end
    where r.export_id = chosen.id returning * into run;
  perform app_private.step_export(chosen.id, 'PROCESSING');
  return query select run.worker, chosen.organization_id, chosen.requested_by_id, run.token_id,
    run.token_organization_id, run.token_scopes,
    chosen.subject::text, chosen.group_by is not null, chosen.format::text, chosen.filename, stale_key,
    (select o.slug::text from app_public.organizations o where o.id = chosen.organization_id);
end $$;
comment on function app_private.start_export(uuid, text) is
  'Hands an export to a worker, which the job runner knows as `holder`; no row where there is nothing to do, or '
  'another one is at it, in which case it looks again later.';
grant execute on function app_private.export_goes_on, app_private.start_export, app_private.note_export,
  app_private.keep_export_file, app_private.finish_export, app_private.give_up_export, app_private.expire_before_export,
  app_private.sweep_exports to plat_worker;
