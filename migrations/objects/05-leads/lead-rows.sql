-- Bulk changes of leads, from a file (importLeads) or a list (upsertLeads). Each row creates or changes a lead
-- completely or not at all, and its errors are recorded. Rows are validated and written together, with the same number
-- of statements for one as for 200,000; only if a validated row is refused, by a trigger or by a concurrent change, its
-- neighbours are written in smaller batches until it is isolated.
--
-- A row belongs to the lead with its external id, else to the open lead with its email address.

comment on type app_public.lead_row_error is 'An error that refused a row.';
comment on column app_public.lead_row_error.code is E'@notNull\n\nError code, such as BAD_USER_INPUT.';
comment on column app_public.lead_row_error.field is
  'The field or column concerned; null if the error concerns the whole row.';
comment on column app_public.lead_row_error.message is
  E'@notNull\n\nError message: what is wrong and how to correct it.';
comment on type app_public.lead_row_result is
  E'@foreignKey (lead_id) references leads (id)|@fieldName lead|@behavior -manyRelation:resource:list '
  '-manyRelation:resource:connection\n\n'
  'Result of one lead or row of a bulk operation.';
comment on column app_public.lead_row_result."position" is
  E'@notNull\n\n'
  'Position of the row: from 0 in a list; in a file its row number, where row 1 contains the column names.';
comment on column app_public.lead_row_result.external_id is 'External id in the row; null if it has none.';
comment on column app_public.lead_row_result.outcome is
  E'@notNull\n\nWhether a lead was created, updated, left unchanged or refused.';
comment on column app_public.lead_row_result.lead_id is
  'Id of the created or matched lead; null if the viewer may not see it, and for leads that a dry run would create.';
comment on column app_public.lead_row_result.is_duplicate is
  E'@notNull\n\nWhether an open lead already had the email address of the row, without this external id.';
comment on column app_public.lead_row_result.code is 'Code of the first error; null if there is none.';
comment on column app_public.lead_row_result.errors is E'@notNull\n\nErrors of a refused row.';
comment on column app_public.lead_row_result.warnings is
  E'@notNull\n\nValues that were ignored although the row is valid, and why.';
comment on column app_private.lead_external_ids.system is
  E'@impersonal\n@impersonal\n\nThe system that knows the lead by the id.';
comment on column app_private.lead_external_ids.external_id is E'@personal\n@personal\n\nThe id.';
comment on constraint lead_external_ids_pkey on app_private.lead_external_ids is
  'Another lead already has this external id.';

create function app_private.lead_row_columns() returns table (name name, type text, required boolean)
language sql stable as $$
  select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
  from app_hidden.import_columns c
  join pg_attribute a on a.attrelid = 'app_public.leads'::regclass and a.attname = c.column_name
  where c.operation = 'importLeads' order by c.position
$$;
comment on function app_private.lead_row_columns() is
  'The columns of leads that a row may fill by their own names; assignee, address and external id go other ways.';

create function app_private.note_refusal(rows int[], state text, message text, details text, violated text)
returns void
language plpgsql volatile as $$
declare
  of_caller constant jsonb := case when state = 'PLAT0' then details::jsonb else '{}' end;
begin
  insert into pg_temp.import_errors
    select r, (select c.column_name from app_hidden.import_columns c where c.operation = 'importLeads'
        and app_hidden.camel(c.column_name) = of_caller ->> 'field'),
      coalesce(of_caller ->> 'code', case when state = '23514' then 'BAD_USER_INPUT' else 'CONFLICT' end),
      case when state = 'PLAT0' then message else coalesce(
        (select obj_description(c.oid, 'pg_constraint') from pg_constraint c where c.conname = violated
          and obj_description(c.oid, 'pg_constraint') is not null limit 1),
        (select obj_description(c.oid, 'pg_class') from pg_class c where c.relname = violated limit 1),
        'This row conflicts with an existing record.') end, null
    from unnest(rows) r;
end $$;
comment on function app_private.note_refusal(int[], text, text, text, text) is
  'Notes for rows of an import what the database refused them with.';

create function app_private.next_turns(project_id uuid, amount int) returns uuid[]
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  members constant uuid[] := app_private.turn_takers(project_id);
  latest app_private.lead_turns;
  before int;
begin
  if members is null or amount < 1 then
    return '{}';
  end if;
  -- Bulk assignments wait for each other; single leads do not, and may repeat a turn.
  perform pg_advisory_xact_lock(hashtextextended('plat.turns ' || project_id, 0));
  select t.* into latest from app_private.lead_turns t where t.project_id = project_id order by t.turn desc limit 1;
  before := (select count(*) from unnest(members) m where m <= latest.user_id);
  insert into app_private.lead_turns (project_id, turn, user_id) values (project_id,
    coalesce(latest.turn, 0) + amount, members[(before + amount - 1) % cardinality(members) + 1]);
  delete from app_private.lead_turns t where t.id = any (array(select o.id from app_private.lead_turns o
    where o.project_id = project_id and o.turn < latest.turn - 50 for update skip locked));
  return array(select members[(before + place - 1) % cardinality(members) + 1] from generate_series(1, amount) place);
end $$;
comment on function app_private.next_turns(uuid, int) is
  'Takes the next members for a number of leads from the round robin of the project, in order.';

create function app_private.find_row_agents(organization_id uuid, country text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  named record;
  found_id uuid;
  message text;
  details text;
begin
  create temp table import_agents (row int not null, agent_id uuid not null) on commit drop;
  -- Each agent once, however many leads they bring.
  for named in
    select array_agg(r.row) as rows, row(r.agent_id::uuid, r.agent_name, r.agent_email, r.agent_phone,
      r.agent_brokerage, r.agent_license_number)::app_public.agent_input as agent
    from pg_temp.import_rows r
    where num_nonnulls(r.agent_id, r.agent_name, r.agent_email, r.agent_phone, r.agent_brokerage,
        r.agent_license_number) > 0
      and not exists (select from pg_temp.import_errors e where e.row = r.row)
    group by r.agent_id, r.agent_name, r.agent_email, r.agent_phone, r.agent_brokerage, r.agent_license_number
    order by min(lower(r.agent_email)), min(r.row)
  loop
    begin
      found_id := app_private.agent_for(organization_id, named.agent, country);
      insert into pg_temp.import_agents (row, agent_id) select n, found_id from unnest(named.rows) n;
    exception when sqlstate 'PLAT0' then
      get stacked diagnostics message = message_text, details = pg_exception_detail;
      insert into pg_temp.import_errors
        select n, (select c.column_name from app_hidden.import_columns c where c.operation = 'importLeads'
            and replace(c.column_name, '_', '') = lower(replace(details::jsonb ->> 'field', '.', ''))),
          details::jsonb ->> 'code', message, null from unnest(named.rows) n;
    end;
  end loop;
end $$;
comment on function app_private.find_row_agents(uuid, text) is
  'Finds the agents whom the rows of import_rows name, or makes them: import_agents says whose each row is.';

create function app_private.judge_lead_rows(project app_public.projects, system text, party uuid, own_only boolean,
  on_duplicate text, default_origin text) returns void
-- PERF: a table that grew a moment ago looks small to the planner, which then compares each row with each.
language plpgsql volatile security definer set search_path = pg_catalog,
  pg_temp set enable_nestloop = off set work_mem = '64MB' as $$
declare
  viewer constant uuid := app_public.current_user_id();
  home_country constant text := coalesce((project.address).country, 'US');
  digits constant int := coalesce((select c.digits from app_hidden.currencies c where c.code = project.currency), 2);
  sources constant text := (select string_agg(s.code, ', ' order by s.code) from app_public.lead_sources s
    where s.project_id = project.id and s.deleted_at is null and s.active);
  today constant date := (now() at time zone project.time_zone)::date;
begin
  perform app_private.check_import_rows('importLeads');
  insert into pg_temp.import_errors
    select d.row, d.column_name, 'CONFLICT', format('Row %s already has this %s.', d.first_row,
      case d.column_name when 'email' then 'email address' else 'external id' end), left(d.value, 200)
    from (select r.row, k.column_name, k.value, first_value(r.row) over (partition by k.column_name, k.value
        order by r.row) as first_row
      from pg_temp.import_rows r
      cross join lateral (values ('email', lower(r.email)), ('external_id', r.external_id)) k (column_name, value)
      where k.value is not null) d
    where d.row <> d.first_row;
  insert into pg_temp.import_errors
    select r.row, 'phone', 'BAD_USER_INPUT', 'Not a valid phone number; use one such as +1 416 555 0123.',
      left(r.phone, 200)
    from pg_temp.import_rows r where r.phone is not null and app_private.try_e164(r.phone, home_country) is null
      and not exists (select from pg_temp.import_errors e where e.row = r.row and e.column_name = 'phone');
  insert into pg_temp.import_errors
    select r.row, a.name, 'BAD_USER_INPUT', format('%s can have at most %s decimal places.', project.currency,
      digits), a.amount
    from pg_temp.import_rows r
    cross join lateral (values ('budget_min', r.budget_min), ('budget_max', r.budget_max)) a (name, amount)
    where pg_input_is_valid(a.amount, 'numeric') and case when pg_input_is_valid(a.amount, 'numeric')
      then a.amount::numeric <> round(a.amount::numeric, digits) end;
  insert into pg_temp.import_errors
    select r.row, 'registered_at', 'BAD_USER_INPUT', case when r.registered_at ~ '^\d{4}-\d\d-\d\d'
        then 'The registration date of a lead cannot be in the future.'
        else 'Must be a time such as 2027-05-31 or 2027-05-31T10:15:00Z.' end, left(r.registered_at, 200)
    from pg_temp.import_rows r
    where pg_input_is_valid(r.registered_at, 'timestamptz') and (r.registered_at !~ '^\d{4}-\d\d-\d\d'
      or case when pg_input_is_valid(r.registered_at, 'timestamptz')
        then r.registered_at::timestamptz > case when length(r.registered_at) = 10 then today + interval '1 day'
          else now() + interval '1 minute' end end);

  -- References of rows other than by id.
  create temp table import_sources on commit drop as
    select d.source as name, coalesce(n.id, t.lead_source_id) as id, case when n.id is null then t.key end as key
    from (select distinct r.source from pg_temp.import_rows r where r.source is not null) d
    cross join lateral app_private.lead_source_named(project.id, d.source) n (id)
    cross join lateral app_private.tracker_with_key(project.id, d.source) t;
  insert into pg_temp.import_errors
    select r.row, 'source', 'BAD_USER_INPUT', format('There is no such lead source in this project. %s',
      coalesce('Use one of ' || sources || ', or create the source with createLeadSource.',
        'Create it with createLeadSource.')),
      left(r.source, 200)
    from pg_temp.import_rows r join pg_temp.import_sources s on s.name = r.source
    where num_nonnulls(s.id, s.key) = 0;
  insert into pg_temp.import_errors
    select r.row, k.column_name, 'NOT_FOUND', format('There is no such %s in this project.', k.kind), left(k.value, 200)
    from pg_temp.import_rows r
    cross join lateral (
      select 'source_id' as column_name, 'lead source' as kind, r.source_id as value
        where r.source_id is not null and r.source_id not in (select s.id::text from app_public.lead_sources s
          where s.project_id = project.id and s.deleted_at is null)
      union all select 'fallout_reason_id', 'fallout reason', r.fallout_reason_id
        where r.fallout_reason_id is not null and r.fallout_reason_id not in (select f.id::text
          from app_public.fallout_reasons f where f.project_id = project.id and f.deleted_at is null
            and 'LEAD' = any (f.applies_to::text[]))) k
    where pg_input_is_valid(k.value, 'uuid');
  create temp table import_assignees on commit drop as
    select distinct i.email::text as email, i.user_id
    from app_hidden.user_identities i
    join app_public.organization_user_connections m on m.user_id = i.user_id
    join app_public.project_organizations p on p.organization_id = m.organization_id and p.project_id = project.id
      and (p.role = 'OWNER' or app_private.affiliate_sells(p.role, p.permissions));
  insert into pg_temp.import_errors
    select r.row, k.column_name, 'NOT_FOUND',
      'There is no such member in the organizations that sell in the project.', left(k.value, 200)
    from pg_temp.import_rows r
    cross join lateral (select 'assignee' as column_name, r.assignee as value
        where r.assignee is not null
          and lower(r.assignee) not in (select a.email from pg_temp.import_assignees a)
      union all select 'assignee_id', r.assignee_id
        where r.assignee_id is not null
          and r.assignee_id not in (select a.user_id::text from pg_temp.import_assignees a)) k
    where not exists (select from pg_temp.import_errors e where e.row = r.row and e.column_name = k.column_name);
  insert into pg_temp.import_errors
    select r.row, 'assignee', 'BAD_USER_INPUT', 'Specify the assignee by email address or id, not both.', null
    from pg_temp.import_rows r where num_nonnulls(r.assignee, r.assignee_id) = 2;
  insert into pg_temp.import_errors
    select r.row, 'source', 'BAD_USER_INPUT', 'Specify the source by code or id, not both.', null
    from pg_temp.import_rows r where num_nonnulls(r.source, r.source_id) = 2;

  -- The lead of each row, and the permitted action.
  create temp table import_leads on commit drop as
    select r.row, l.id, by_id.lead_id is not null as is_linked, by_id.lead_id is not null and by_id.project_id
        <> project.id as is_elsewhere,
      l.id is not null and (not own_only or coalesce(l.assignee_id = viewer, false)) as is_seen,
      l.id is not null and by_id.lead_id is null and exists (select from app_private.lead_external_ids o
        where o.lead_id = l.id and o.organization_id = party and o.system = judge_lead_rows.system) as has_other,
      case when by_id.lead_id is not null then 'SET' else on_duplicate end as mode
    from pg_temp.import_rows r
    -- PERF: by their keys, and LIMIT makes each one look-up in its index: a join would read all leads of everybody.
    -- OFFSET fences the address in, so that its index finds them and not one of the project, which looks short.
    left join lateral (select x.lead_id, x.project_id from app_private.lead_external_ids x
      where x.organization_id = party and x.system = judge_lead_rows.system and x.external_id = r.external_id
      limit 1) by_id on true
    left join lateral (select x.id from (select e.id, e.project_id, e.status from app_public.leads e
        where e.email = lower(r.email) and e.deleted_at is null offset 0) x
      where by_id.lead_id is null and x.project_id = project.id
        and x.status not in ('LOST', 'UNQUALIFIED', 'CONVERTED') limit 1) by_email on true
    left join lateral (select x.id, x.assignee_id from app_public.leads x
      where x.id = coalesce(by_id.lead_id, by_email.id) and x.deleted_at is null limit 1) l on true;
  analyze pg_temp.import_leads;
  create temp table import_existing on commit drop as
    select l.* from (select distinct i.id from pg_temp.import_leads i) m
    cross join lateral (select x.* from app_public.leads x where x.id = m.id limit 1) l;
  analyze pg_temp.import_existing;
  insert into pg_temp.import_errors
    select m.row, case when m.is_linked then 'external_id' else 'email' end, 'CONFLICT', case
        when m.is_elsewhere then 'The lead with this external id is in another project.'
        when m.is_linked then 'The lead with this external id belongs to somebody else.'
        when m.has_other and m.is_seen and r.external_id is not null
          then 'The lead with this email address already has another external id.'
        else 'There is already an open lead with this email address in the project.' end, null
    from pg_temp.import_leads m join pg_temp.import_rows r using (row)
    where m.is_elsewhere or (m.id is not null and not m.is_seen) or (m.id is not null and not m.is_linked
      and (m.mode = 'ERROR' or (m.has_other and r.external_id is not null)));
  insert into pg_temp.import_errors
    select r.row, 'name', 'BAD_USER_INPUT', 'name is required; give it, or first and last name.', null
    from pg_temp.import_rows r join pg_temp.import_leads m using (row)
    where m.id is null and num_nonnulls(r.name, r.first_name, r.last_name) = 0;
  insert into pg_temp.import_errors
    select c.row, c.column_name, 'BAD_USER_INPUT',
      format('%s may not be null; omit it to keep the current value.', app_hidden.camel(c.column_name)), null
    from pg_temp.import_cleared c join pg_temp.import_leads m using (row)
    join app_private.lead_row_columns() k on k.name = c.column_name and k.required
    where m.id is not null and m.mode = 'SET';
  -- Nobody may assign a lead that they could not see afterwards.
  insert into pg_temp.import_errors
    select r.row, case when r.assignee_id is null then 'assignee' else 'assignee_id' end, 'FORBIDDEN',
      'You only see your own leads in this project, so you cannot assign leads to others.', null
    from pg_temp.import_rows r where own_only and num_nonnulls(r.assignee, r.assignee_id) > 0
      and not exists (select from pg_temp.import_assignees a where a.user_id = viewer
        and (a.email = lower(r.assignee) or a.user_id::text = r.assignee_id))
    union all
    select c.row, 'assignee_id', 'FORBIDDEN', 'Use updateLeads with unassign to return leads.', null
    from pg_temp.import_cleared c join pg_temp.import_leads m using (row)
    where own_only and c.column_name = 'assignee_id' and m.id is not null;

  perform app_private.find_row_agents(project.organization_id, home_country);
  -- The resulting values of each lead: those of the row, otherwise the existing ones.
  execute format($build$
    create temp table import_ready on commit drop as
      select m.row, uuidv7() as new_id, m.id as existing_id, m.mode, m.is_linked, r.external_id, l.version as
        version_before, l.status::text as status_before, '{}'::text[] as warnings, %s,
        case when m.id is not null and m.mode = 'RETURN_EXISTING' then l.address
          when 'address' = any (c.names) and m.mode = 'SET' then null
          when num_nonnulls(r.thoroughfare, r.premise, r.locality, r.administrative_area, r.postal_code, r.country) = 0
            or (m.mode = 'MERGE' and l.address is distinct from null) then l.address
          else row(%s, coalesce(r.country, (l.address).country, $1), (l.address).latitude,
            (l.address).longitude)::app_public.address end as address
      from (select x.row, x.external_id, %s, x.thoroughfare, x.premise, x.locality, x.administrative_area,
          x.postal_code, x.country
        from pg_temp.import_rows x
        left join pg_temp.import_sources s on s.name = x.source
        left join pg_temp.import_assignees a on a.email = lower(x.assignee)
        where not exists (select from pg_temp.import_errors e where e.row = x.row)) r
      join pg_temp.import_leads m using (row)
      left join (select k.row, array_agg(k.column_name) as names from pg_temp.import_cleared k group by k.row) c
        on c.row = m.row
      left join pg_temp.import_existing l on l.id = m.id $build$,
    (select string_agg(case
        when k.required then format('case when m.id is not null and m.mode in (''MERGE'', ''RETURN_EXISTING'') then '
          'l.%1$I else coalesce(r.%1$I::%2$s, l.%1$I%3$s) end as %1$I', k.name, k.type, case k.name
            when 'status' then ', ''NEW''' when 'origin' then ', ' || quote_literal(default_origin)
            when 'tags' then ', ''{}''' when 'registered_at' then ', now()' when 'name' then '' else ', false' end)
        else format('case when m.id is not null and m.mode = ''RETURN_EXISTING'' then l.%1$I
          when m.mode = ''MERGE'' then coalesce(l.%1$I, r.%1$I::%2$s)
          when %1$L = any (c.names) then null else coalesce(r.%1$I::%2$s, l.%1$I) end as %1$I', k.name, k.type) end,
        E',\n        ')
      from app_private.lead_row_columns() k),
    (select string_agg(
        format('case when %1$L = any (c.names) then null else coalesce(r.%1$I, (l.address).%1$I) end', a), ', ')
      from unnest('{thoroughfare,premise,locality,administrative_area,postal_code}'::text[]) a),
    (select string_agg(format('%s as %I', case k.name
        when 'name' then 'coalesce(x.name, case when num_nonnulls(x.first_name, x.last_name) > 0 and not exists ('
          'select from pg_temp.import_leads o where o.row = x.row and o.id is not null) '
          'then concat_ws('' '', x.first_name, x.last_name) end)'
        when 'email' then 'lower(x.email)'
        when 'phone' then 'app_private.try_e164(x.phone, $1)'
        when 'agent_id' then '(select g.agent_id::text from pg_temp.import_agents g where g.row = x.row)'
        when 'source' then 's.key'
        when 'source_id' then 'coalesce(x.source_id, s.id::text)'
        when 'assignee_id' then 'coalesce(x.assignee_id, a.user_id::text)'
        when 'registered_at' then 'case when length(x.registered_at) = 10 then least(now(), '
          '(x.registered_at::date)::timestamp at time zone $2)::text else x.registered_at end'
        else format('x.%I', k.name) end, k.name), ', ')
      from app_private.lead_row_columns() k)) using home_country, project.time_zone;
  create unique index on pg_temp.import_ready (row);
  analyze pg_temp.import_ready;
  -- Names derived from the full name follow it, as in an update of a single lead.
  update pg_temp.import_ready r
    set (first_name, last_name) = (select s.given, s.family from app_hidden.split_name(r.name) s)
    from pg_temp.import_existing l
    where l.id = r.existing_id and l.name <> r.name
      and row(r.first_name, r.last_name)::text = row(l.first_name, l.last_name)::text
      and row(l.first_name, l.last_name)::text = app_hidden.split_name(l.name)::text;
  -- An import does not subscribe people again who have unsubscribed from marketing mail.
  update pg_temp.import_ready r set subscribed = false, warnings = array[
    'The lead has unsubscribed from marketing mail, and an import cannot change that: subscribed was ignored.']
    where r.subscribed and (exists (select from pg_temp.import_existing l where l.id = r.existing_id
        and l.unsubscribed_at is not null)
      or exists (select from app_private.withdrawn_addresses w where w.organization_id = project.organization_id
        and w.email = r.email));
  create temp table import_same on commit drop as select null::int as row where false;
  execute format('insert into pg_temp.import_same select r.row from pg_temp.import_ready r
    join pg_temp.import_existing l on l.id = r.existing_id
    where row(r.address, %s) is not distinct from row(l.address, %s)',
    (select string_agg(format('r.%I', k.name), ', ') from app_private.lead_row_columns() k),
    (select string_agg(format('l.%I', k.name), ', ') from app_private.lead_row_columns() k));
  perform app_private.check_import_states('lead');
  insert into pg_temp.import_errors
    select r.row, 'budget_max', 'BAD_USER_INPUT',
      'The maximum budget must not be below the minimum.', r.budget_max::text
    from pg_temp.import_ready r where r.budget_max < r.budget_min;
  insert into pg_temp.import_errors
    select r.row, 'email', 'CONFLICT', 'There is already an open lead with this email address in the project.', r.email
    from pg_temp.import_ready r
    cross join lateral (select from (select e.id, e.project_id, e.status from app_public.leads e
        where e.email = r.email and e.deleted_at is null offset 0) l
      where l.project_id = project.id and l.status not in ('LOST', 'UNQUALIFIED', 'CONVERTED') and l.id <> r.existing_id
      limit 1) other
    where r.is_linked and r.status not in ('LOST', 'UNQUALIFIED', 'CONVERTED');
  delete from pg_temp.import_ready r using pg_temp.import_errors e where e.row = r.row;
  if own_only then
    update pg_temp.import_ready r set assignee_id = viewer where r.existing_id is null;
  elsif project.lead_assignment = 'ROUND_ROBIN' then
    update pg_temp.import_ready r set assignee_id = t.user_id
      from (select n.row, row_number() over (order by n.row) as place from pg_temp.import_ready n
        where n.existing_id is null and n.assignee_id is null) n
      join unnest(app_private.next_turns(project.id, (select count(*)::int from pg_temp.import_ready c
        where c.existing_id is null and c.assignee_id is null))) with ordinality t (user_id, place) using (place)
      where r.row = n.row;
  end if;
end $$;
comment on function app_private.judge_lead_rows(app_public.projects, text, uuid, boolean, text, text) is
  'Fills import_ready from the valid rows of import_rows, with the resulting lead; import_same contains those that '
  'change nothing. own_only: the viewer works on own leads only; on_duplicate: policy for leads found by email '
  'address, as for createLead, or SET: the row updates it.';

create function app_private.write_lead_rows(project app_public.projects, system text, party uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  columns constant text := (select string_agg(format('%I', k.name), ', ') from app_private.lead_row_columns() k);
  first_rows int[];
  last_rows int[];
  first_row int;
  last_row int;
  middle int;
  state text;
  message text;
  details text;
  violated text;
begin
  -- Two of these wait for each other instead of locking each other out.
  perform app_private.lock_leads(array(select r.existing_id from pg_temp.import_ready r
    where r.existing_id is not null and not exists (select from pg_temp.import_same s where s.row = r.row)));
  insert into pg_temp.import_errors
    select r.row, null, 'CONFLICT', 'Somebody else changed this lead at the same time; send the row again.', null
    from pg_temp.import_ready r join app_public.leads l on l.id = r.existing_id
    where (l.version <> r.version_before or l.deleted_at is not null)
      and not exists (select from pg_temp.import_same s where s.row = r.row);
  delete from pg_temp.import_ready r using pg_temp.import_errors e where e.row = r.row;
  select array[min(r.row)], array[max(r.row)] into first_rows, last_rows from pg_temp.import_ready r;
  perform set_config('plat.leads_at_once', 'on', true);
  while cardinality(array_remove(first_rows, null)) > 0 loop
    first_row := first_rows[cardinality(first_rows)];
    last_row := last_rows[cardinality(last_rows)];
    first_rows := trim_array(first_rows, 1);
    last_rows := trim_array(last_rows, 1);
    begin
      -- By address, which is also the order of locks with concurrent imports of the same people. Persons are
      -- determined for all rows together; leads without an address get a new person.
      insert into app_public.persons (organization_id, email_digest)
        select project.organization_id, sha256(convert_to(lower(r.email), 'UTF8')) from pg_temp.import_ready r
        where r.existing_id is null and r.email is not null and r.row between first_row and last_row
        order by r.email, r.row
        on conflict do nothing;
      execute format('insert into app_public.leads (id, project_id, address, person_id, %1$s)
        select r.new_id, $1, r.address, (select p.id from app_public.persons p where p.organization_id = $4
          and p.email_digest = sha256(convert_to(lower(r.email), ''UTF8''))), %1$s from pg_temp.import_ready r
        where r.existing_id is null and r.row between $2 and $3 order by r.email, r.row', columns)
        using project.id, first_row, last_row, project.organization_id;
      execute format('update app_public.leads l set (address, %1$s) = row(r.address, %2$s)
        from pg_temp.import_ready r where l.id = r.existing_id and r.row between $1 and $2
          and not exists (select from pg_temp.import_same s where s.row = r.row)', columns,
        (select string_agg(format('r.%I', k.name), ', ') from app_private.lead_row_columns() k))
        using first_row, last_row;
      insert into app_private.lead_external_ids (organization_id, system, external_id, lead_id, project_id)
        select party, write_lead_rows.system, r.external_id, coalesce(r.existing_id, r.new_id), project.id
        from pg_temp.import_ready r
        where r.external_id is not null and not r.is_linked and r.row between first_row and last_row
        order by r.external_id;
    exception when sqlstate 'PLAT0' or integrity_constraint_violation then
      get stacked diagnostics state = returned_sqlstate, message = message_text, details = pg_exception_detail,
        violated = constraint_name;
      if first_row = last_row then
        perform app_private.note_refusal(array[first_row], state, message, details, violated);
        delete from pg_temp.import_ready r where r.row = first_row;
      else
        select r.row into middle from pg_temp.import_ready r where r.row between first_row and last_row order by r.row
          offset (select count(*) / 2 from pg_temp.import_ready n where n.row between first_row and last_row) limit 1;
        first_rows := first_rows || array[middle, first_row];
        last_rows := last_rows || array[last_row, (select max(r.row) from pg_temp.import_ready r
          where r.row between first_row and middle - 1)];
      end if;
    end;
  end loop;
  perform set_config('plat.leads_at_once', '', true);
end $$;
comment on function app_private.write_lead_rows(app_public.projects, text, uuid) is
  'Writes the rows of import_ready, together if none is refused; refused rows are recorded in import_errors and '
  'removed.';

create function app_private.lead_row_results(most int default null) returns app_public.lead_row_result[]
language plpgsql volatile as $$
begin
  return array(
    select row(i.row, i.external_id, case when e.code is not null then 'REFUSED'
        when r.existing_id is null then 'CREATED' when s.row is not null then 'UNCHANGED' else 'UPDATED' end,
      case when e.code is null then coalesce(r.existing_id, r.new_id) when m.is_seen then m.id end,
      coalesce(m.id is not null and not m.is_linked and m.is_seen, false), e.code, coalesce(e.errors, '{}'),
      coalesce(r.warnings, '{}'))::app_public.lead_row_result
    from pg_temp.import_rows i
    left join pg_temp.import_ready r using (row)
    left join pg_temp.import_leads m using (row)
    left join pg_temp.import_same s using (row)
    left join (select x.row, (array_agg(x.code order by x.column_name nulls last, x.code))[1] as code,
        array_agg(row(x.code, app_hidden.camel(x.column_name), x.message)::app_public.lead_row_error
          order by x.column_name nulls last, x.code) as errors
      from pg_temp.import_errors x group by x.row) e using (row)
    order by i.row limit most);
end $$;
comment on function app_private.lead_row_results(int) is
  'Results of the rows of the import, in order, up to a limit.';

create function app_private.own_leads_only(project app_public.projects) returns boolean
language sql stable as $$
  select not coalesce(project.organization_id = any ((select app_hidden.viewer_organizations('lead.write'))::uuid[])
    or project.id = any ((select app_hidden.viewer_projects('lead.write'))::uuid[]), false)
$$;
comment on function app_private.own_leads_only(app_public.projects) is
  'Whether of the leads of a project the viewer, who may enter some, changes those assigned to them only.';
