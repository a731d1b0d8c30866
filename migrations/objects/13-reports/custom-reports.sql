-- Reports that an organization defines: columns of a subject, filtered, grouped, aggregated. The rows are read with the
-- viewer's rights; so a shared report shows each viewer what they may see.

comment on table app_private.report_runs is
  'When a report was looked at last, to the minute: apart from the record, so that looking is no change of it.';

create policy readers on app_public.custom_reports for select to plat_user
  using (deleted_at is null and organization_id = any ((select app_hidden.viewer_organizations('report.read'))::uuid[])
    and (created_by_id = (select app_public.current_user_id()) or visibility = 'ORGANIZATION'
      or (visibility = 'PROJECT' and exists (select from app_public.projects p where p.id = project_id))));
create policy managers_insert on app_public.custom_reports for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('report.manage'))::uuid[]));

-- Only its creator can see, change and delete a PRIVATE report.
create policy managers_update on app_public.custom_reports for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('report.manage'))::uuid[])
    and (created_by_id = (select app_public.current_user_id()) or visibility <> 'PRIVATE'))
  with check (organization_id = any ((select app_hidden.viewer_organizations('report.manage'))::uuid[]));
create policy managers_delete on app_public.custom_reports for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('report.manage'))::uuid[])
    and (created_by_id = (select app_public.current_user_id()) or visibility <> 'PRIVATE'));

select app_private.make_record('custom_reports', 'custom_report', 'report.manage');

grant select on app_public.custom_reports to plat_user, plat_anonymous;
grant insert (organization_id, project_id, name, description, kind, subject, columns, filter, group_by, chart,
  visibility), update (name, description, kind, columns, filter, group_by, chart, visibility), delete on
  app_public.custom_reports to plat_user;

comment on table app_public.custom_reports is 'A saved report of an organization, over its own records.';
comment on column app_public.custom_reports.organization_id is 'Id of the organization that the report is about.';
comment on column app_public.custom_reports.project_id is 'Id of the only project to include; null for all projects.';
comment on column app_public.custom_reports.name is 'Display title.';
comment on column app_public.custom_reports.description is 'Free-text description.';
comment on column app_public.custom_reports.kind is 'Purpose of the report, such as SALES.';
comment on column app_public.custom_reports.subject is 'Record type of the rows.';
comment on column app_public.custom_reports.columns is
  E'@insertOptional\n\n'
  'A list of column names, or of {column, aggregate, as} with the aggregate COUNT, COUNT_DISTINCT, SUM, AVERAGE, '
  'MIN or MAX. Default: the columns of the subject, or a count.';
comment on column app_public.custom_reports.filter is
  'Conditions on rows, all of which must be met: {column: value, list of values, {min, max}, {from, to}, '
  '{contains} or {empty}}.';
comment on column app_public.custom_reports.group_by is
  'Columns to group by. Dates and times can also be grouped by day, week, month, quarter or year in the time zone '
  'of the project or organization, such as insertedAt:month.';
comment on column app_public.custom_reports.chart is 'Chart that the report is displayed as.';
comment on column app_public.custom_reports.visibility is
  'Who can open the report. Each viewer sees only rows that they may see.';
comment on column app_public.custom_reports.created_by_id is
  E'@inert It is read by somebody, as they see the records.\n@behavior -*\n\nUser who created it.';
comment on constraint custom_reports_project_of_visibility on app_public.custom_reports is
  'A report with the visibility PROJECT requires a project.';
comment on constraint custom_reports_organization_id_fkey on app_public.custom_reports is
  E'@parent\n@fieldName organization\n@foreignFieldName customReports\n@backwardPermission '
  'org.member\n@backwardDescription Saved reports that the viewer can open; null for non-members.\n\n'
  'The organization.';
comment on constraint custom_reports_project_id_fkey on app_public.custom_reports is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint custom_reports_created_by_id_fkey on app_public.custom_reports is
  E'@fieldName createdBy\n@backwardBehavior -*\n\nUser who created it.';

create function app_hidden.refuse_report_kind(kind text) returns void
language plpgsql immutable as $$
begin
  if kind = 'COMMISSION' then
    perform app_hidden.refuse_report(
      'Reports of commissions are not supported; choose another kind, such as CUSTOM.', 'kind');
  end if;
end $$;
comment on function app_hidden.refuse_report_kind(text) is
  'Refuses a kind of report that is not offered: without commissions its rows would be those of something else.';

create function app_private.tg_custom_reports__check() returns trigger
language plpgsql volatile as $$
declare
  query app_hidden.report_query;
begin
  if not app_hidden.organization_can(new.organization_id, 'report.manage') then
    return new; -- the policy refuses it
  end if;
  if tg_op = 'INSERT' or new.kind <> old.kind then
    perform app_hidden.refuse_report_kind(new.kind);
  end if;
  if tg_op = 'UPDATE' and (old.columns, old.filter, old.group_by) is not distinct
    from (new.columns, new.filter, new.group_by) then
    return new;
  end if;
  if length(concat(new.columns, new.filter)) > 100000 then
    perform app_hidden.refuse_report('A report can have at most 100,000 characters.', 'filter');
  end if;
  new.group_by := coalesce(new.group_by, '{}');
  query := app_hidden.report_query(new.subject, new.organization_id, new.project_id, new.columns, new.filter,
    new.group_by);
  -- Omitted, the columns are those that the subject has by default today.
  new.columns := coalesce(new.columns, (select jsonb_agg(case when c.value ? 'aggregate'
    then jsonb_build_object('aggregate', c.value -> 'aggregate') else c.value -> 'name' end order by c.place)
    from jsonb_array_elements(query.columns) with ordinality c (value, place)));
  return new;
end $$;
create trigger _200_check before insert or update on app_public.custom_reports for each row
  execute function app_private.tg_custom_reports__check();

create function app_private.note_report_run(id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if current_setting('transaction_read_only') = 'on'
    or not app_private.viewer_sees('app_public.custom_reports', note_report_run.id) then
    return;
  end if;
  insert into app_private.report_runs as r (report_id, last_run_at) values (note_report_run.id, now())
    on conflict (report_id) do update set last_run_at = excluded.last_run_at
      where r.last_run_at < now() - interval '1 minute';
end $$;
comment on function app_private.note_report_run(uuid) is
  'Notes, to the minute, that a report was looked at by somebody who sees it.';
grant execute on function app_private.note_report_run to plat_user, plat_anonymous;

create function app_public.custom_reports_last_run_at(r app_public.custom_reports) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select n.last_run_at from app_private.report_runs n
  where n.report_id = r.id and r.organization_id = any ((select app_hidden.viewer_organizations('report.read'))::uuid[])
$$;

create function app_public.custom_reports_definition(r app_public.custom_reports) returns jsonb
language sql stable as $$
  select jsonb_build_object('subject', r.subject, 'columns', r.columns, 'filter', r.filter, 'groupBy', r.group_by,
    'chart', r.chart)
$$;

create function app_public.custom_reports_rows(r app_public.custom_reports, first int default null,
  after text default null) returns json
language plpgsql stable as $$
declare
  most constant int := 1000;
  amount constant int := coalesce(first, 100);
  query app_hidden.report_query;
  is_grouped boolean;
  cursor_text text;
  page_after jsonb;
  rows json;
  ends jsonb;
  has_more boolean;
begin
  if amount < 0 then
    perform app_hidden.refuse_report('first is zero or more.', 'first');
  elsif amount > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', format('first is %s at most; take further rows with after.', most),
      jsonb_build_object('field', 'first', 'limit', most));
  end if;
  perform app_hidden.refuse_report_kind(r.kind);
  query := app_hidden.report_query(r.subject, r.organization_id, r.project_id, r.columns, r.filter, r.group_by);
  is_grouped := query.group_by <> '{}';
  if after is not null then
    begin
      cursor_text := convert_from(decode(after, 'base64'), 'UTF8');
      page_after := cursor_text::jsonb;
      -- Of a page of groups how many went before; of one of rows, the last of them.
      if is_grouped then
        perform (page_after ->> 0)::int;
      else
        execute format('select from %s t where (t.%I, t.id) < (($1 ->> 0)::%s, ($1 ->> 1)::uuid) limit 0',
          query.relation, query.latest,
          (select format_type(a.atttypid, null) from pg_attribute a where a.attrelid = query.relation::regclass
            and a.attname = query.latest)) using page_after;
      end if;
    exception when data_exception then
      page_after := null;
    end;
    if page_after is null or jsonb_typeof(page_after) <> 'array'
      or jsonb_array_length(page_after) <> (case when is_grouped then 1 else 2 end) then
      perform app_hidden.refuse_report('Not a cursor of this report; use an endCursor that it returned.',
        'after');
    end if;
  end if;
  execute format('select coalesce(json_agg(p.answer) filter (where p.place <= %1$s), ''[]''), count(*) > %1$s,
    (array_agg(p.at order by p.place) filter (where p.place = %1$s))[1]
    from (select row_number() over () as place, p.at, row_to_json((select a from (select %2$s) a)) as answer from (
      select %3$s as at, %4$s from %5$s t where %6$s%7$s%8$s order by %9$s limit %10$s%11$s) p) p',
    amount,
    (select string_agg(format('p.%1$I', c.value ->> 'name'), ', ' order by c.place)
      from jsonb_array_elements(query.columns) with ordinality c (value, place)),
    case when is_grouped then 'null::jsonb' else format('jsonb_build_array(t.%I, t.id)', query.latest) end,
    (select string_agg(format('%s as %I', app_hidden.report_value(query.expressions[c.place], c.value ->> 'type',
      'json', query.time_zone), c.value ->> 'name'), ', ' order by c.place)
      from jsonb_array_elements(query.columns) with ordinality c (value, place)),
    query.relation, query.conditions,
    case when page_after is not null and not is_grouped
      then format(' and (t.%I, t.id) < (%L, %L::uuid)', query.latest, page_after ->> 0, page_after ->> 1) end,
    app_hidden.report_groups(query), app_hidden.report_order(query),
    amount + 1,
    case when is_grouped and page_after is not null then format(' offset %s', greatest(0, (page_after ->> 0)::int)) end)
    into rows, has_more, ends;
  perform app_private.note_report_run(r.id);
  return json_build_object('columns', query.columns, 'rows', rows, 'timeZone', query.time_zone, 'pageInfo',
    json_build_object('hasNextPage', has_more,
    'endCursor', case when json_array_length(rows) > 0 then replace(encode(convert_to((case when is_grouped
      then jsonb_build_array(coalesce((page_after ->> 0)::int, 0) + json_array_length(rows)) else ends end)::text,
        'UTF8'), 'base64'), E'\n', '') end));
end $$;
grant execute on function app_public.custom_reports_last_run_at, app_public.custom_reports_definition,
  app_public.custom_reports_rows to plat_user, plat_anonymous;
comment on function app_public.custom_reports_last_run_at is
  'When the rows were last viewed, to the minute; null if never.';
comment on function app_public.custom_reports_definition is E'@notNull\n\nDefinition of the report, as one object.';
comment on function app_public.custom_reports_rows is
  E'@notNull\n@arg first Number of rows, at most 1000. Default: 100.\n@arg after `endCursor` of the previous '
  'page.\n\n'
  'Current result, as far as the viewer may see it: {columns: [{name, type, aggregate}], rows: [{name: value}], '
  'timeZone, pageInfo: {hasNextPage, endCursor}}. Rows are ordered latest first; groups in the order of their '
  'values.';
