-- The same change for many leads: assignee, tags, status. Executed with the viewer's rights, so that policies and
-- grants decide for each lead; a refused lead does not affect the others.

comment on type app_public.update_leads_payload is 'Result of updating several leads.';
comment on column app_public.update_leads_payload.dry_run is
  E'@notNull\n\nTrue if nothing was changed, and the result shows what would happen.';
comment on column app_public.update_leads_payload.updated_count is E'@notNull\n\nNumber of updated leads.';
comment on column app_public.update_leads_payload.unchanged_count is
  E'@notNull\n\nNumber of leads that already had the values.';
comment on column app_public.update_leads_payload.refused_count is E'@notNull\n\nNumber of refused leads.';
comment on column app_public.update_leads_payload.rows is
  E'@notNull\n\nResult per lead, in the order of `ids`, or newest registration first.';

create function app_private.projects_with_part(user_id uuid, project_ids uuid[]) returns setof uuid
language sql stable security definer rows 10 set search_path = pg_catalog, pg_temp as $$
  select distinct p.project_id from app_public.organization_user_connections m
  join app_public.project_organizations p on p.organization_id = m.organization_id
  where m.user_id = projects_with_part.user_id and p.project_id = any (project_ids)
    and (p.role = 'OWNER' or app_private.affiliate_sells(p.role, p.permissions))
    and app_hidden.project_can(p.project_id, p.owner_id, 'lead.write')
$$;
comment on function app_private.projects_with_part(uuid, uuid[]) is
  'Those of the projects where the user is a member of an organization that sells, as far as the viewer may write '
  'leads there, as the check of assignees tells them too.';
grant execute on function app_private.projects_with_part to plat_user;

create function app_hidden.change_leads(ids uuid[], change jsonb, add_tags text[], remove_tags text[]) returns uuid[]
language plpgsql volatile as $$
declare
  -- Each tag once, in the order in which they came.
  tags constant text := '(select coalesce(array_agg(t.tag order by t.place), ''{}'') from (select x.tag, min(x.place) as
    place from unnest(l.tags::text[] || $3) with ordinality x (tag, place) where x.tag <> all ($4) group by x.tag) t)';
  changed uuid[];
  given_back uuid[];
begin
  -- Viewers who only see own leads can only return them, which removes the assignee.
  if change -> 'assignee_id' = 'null' then
    given_back := array(select l.id from app_public.leads l where l.id = any (ids)
      and l.assignee_id = app_public.current_user_id()
      and l.project_id = any ((select app_hidden.viewer_own_projects('lead.write'))::uuid[]));
    if given_back <> '{}' then
      if change - 'assignee_id' <> '{}' or cardinality(add_tags || remove_tags) > 0 then
        perform app_hidden.change_leads(given_back, change - 'assignee_id', add_tags, remove_tags);
      end if;
      perform app_private.give_back_leads(given_back);
      return given_back || app_hidden.change_leads(array(select i from unnest(ids) i where i <> all (given_back)),
        change, add_tags, remove_tags);
    end if;
  end if;
  execute format('with changed as (
      update app_public.leads l set %s where l.id = any ($1) and (%s) returning l.id)
    select coalesce(array_agg(c.id), ''{}'') from changed c',
    (select string_agg(format('%I = %s', m.name, m.value), ', ') from (
      select key as name, format('($2 ->> %L)::%s', key, format_type(a.atttypid, a.atttypmod)) as value
        from jsonb_object_keys(change) key
        join pg_attribute a on a.attrelid = 'app_public.leads'::regclass and a.attname = key
      union all select 'tags', tags where cardinality(add_tags || remove_tags) > 0) m),
    (select string_agg(format('l.%s is distinct from %s', m.name, m.value), ' or ') from (
      select quote_ident(key) as name, format('($2 ->> %L)::%s', key, format_type(a.atttypid, a.atttypmod)) as value
        from jsonb_object_keys(change) key
        join pg_attribute a on a.attrelid = 'app_public.leads'::regclass and a.attname = key
      union all select 'tags::text[]', tags where cardinality(add_tags || remove_tags) > 0) m))
    into changed using ids, change, add_tags, remove_tags;
  return changed;
end $$;
comment on function app_hidden.change_leads(uuid[], jsonb, text[], text[]) is
  'Changes those leads that the viewer may change and that are not so already, in one statement; answers which.';

create function app_public.update_leads(
  ids app_public.id_or_slug[] default null,
  filter app_public.leads_filter default null,
  assignee_id uuid default null,
  unassign boolean default null,
  add_tags app_public.tags default null,
  remove_tags app_public.tags default null,
  status app_public.lead_status default null,
  fallout_reason_id uuid default null,
  fallout_note app_public.long_text default null,
  dry_run boolean default null
) returns app_public.update_leads_payload
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  most constant int := 500;
  change constant jsonb := jsonb_strip_nulls(jsonb_build_object('status', status, 'assignee_id', assignee_id,
    'fallout_reason_id', fallout_reason_id, 'fallout_note', nullif(btrim(fallout_note), '')))
    || case when unassign then '{"assignee_id": null}'::jsonb else '{}' end;
  added constant text[] := array(select btrim(t) from unnest(add_tags::text[]) t);
  removed constant text[] := array(select btrim(t) from unnest(remove_tags::text[]) t);
  targets uuid[];
  open_targets uuid[];
  portions jsonb[];
  portion uuid[];
  done uuid[];
  changed uuid[] := '{}';
  errors jsonb := '{}';
  found_message text;
  found_details text;
  found_state text;
  violated text;
  result app_public.update_leads_payload;
begin
  perform app_hidden.require_viewer();
  if (ids is null) = (filter is null) then
    perform app_hidden.fail('BAD_USER_INPUT', 'Select the leads either by ids or by filter.',
      '{"field": "ids"}');
  end if;
  if change = '{}' and cardinality(added || removed) = 0 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify a field to change: assigneeId, unassign, addTags, removeTags, '
      'status, falloutReasonId or falloutNote.', '{"field": "status"}');
  end if;
  if unassign and assignee_id is not null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either assigneeId or unassign.', '{"field": "unassign"}');
  end if;
  if ids is not null then
    targets := array(select i.id from (select app_hidden.record_id('leads', g.id, 'ids') as id, min(g.place) as place
      from unnest(ids::text[]) with ordinality g (id, place) group by 1) i order by i.place limit most + 1);
  else
    targets := array(select l.id from app_public.leads l
      where l.id = any (array(select m from app_hidden.leads_of_filter(null, null, filter, 'filter') m limit most + 1))
      order by l.registered_at desc, l.id desc);
  end if;
  if cardinality(targets) > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'At most 500 leads can be changed at a time.',
      jsonb_build_object('limit', most, 'field', case when ids is null then 'filter' else 'ids' end));
  end if;
  result.dry_run := coalesce(dry_run, false);

  -- Checks for all leads together. In the order of ids, so that two of these wait for each other instead of locking
  -- each other out; a change of the assignee reaches the deals of a lead, which come before it.
  if change ? 'assignee_id' then
    perform app_hidden.lock_seen_leads(targets);
  end if;
  open_targets := array(select t.id from (select l.id from app_public.leads l where l.id = any (targets) order by l.id
    for no key update) t);
  select jsonb_object_agg(t.id, jsonb_build_object('code', p.code, 'field', p.field, 'message', p.message))
    into errors
    from unnest(targets) t (id)
    left join app_public.leads l on l.id = t.id
    cross join lateral (
      select 'NOT_FOUND' as code, 'ids' as field, 'There is no such lead.' as message where l.id is null
      union all
      select 'FORBIDDEN', null, 'You may not change this lead.' where l.id is not null and l.id <> all (open_targets)
      union all
      select 'INVALID_TRANSITION', 'status', format('The lead is %s and cannot become %s.', l.status, status)
        where status is not null and l.status <> status and not exists (select from app_hidden.transitions s
          where s.subject = 'lead' and s.from_state = l.status and s.to_state = status and not s.by_service)
      union all
      select 'BAD_USER_INPUT', app_hidden.camel(q.column_name), q.message from app_hidden.transition_requirements q
        where q.subject = 'lead' and q.to_state = status and to_jsonb(l) ->> q.column_name is null
          and change ->> q.column_name is null
      union all
      select 'BAD_USER_INPUT', 'assigneeId',
        'A lead can only be assigned to a member of an organization that sells in its project.'
        where assignee_id is not null and l.assignee_id is distinct from assignee_id
          and l.project_id <> all (array(select app_private.projects_with_part(assignee_id,
            array(select distinct a.project_id from app_public.leads a where a.id = any (targets)))))
      limit 1) p;
  errors := coalesce(errors, '{}');
  portions := array[to_jsonb(array(select t from unnest(targets) t where not errors ? t::text))];
  begin
    while cardinality(portions) > 0 loop
      portion := array(select jsonb_array_elements_text(portions[cardinality(portions)])::uuid);
      portions := trim_array(portions, 1);
      begin
        changed := changed || app_hidden.change_leads(portion, change, added, removed);
      exception when sqlstate 'PLAT0' or integrity_constraint_violation or insufficient_privilege then
        get stacked diagnostics found_state = returned_sqlstate, found_message = message_text,
          found_details = pg_exception_detail, violated = constraint_name;
        -- Bisects the list until each refused lead is separate.
        if cardinality(portion) > 1 then
          portions := portions || array[to_jsonb(portion[cardinality(portion) / 2 + 1:]),
            to_jsonb(portion[:cardinality(portion) / 2])];
        else
          errors := errors || jsonb_build_object(portion[1], case found_state
            when 'PLAT0' then jsonb_build_object('code', found_details::jsonb -> 'code',
              'field', found_details::jsonb -> 'field', 'message', found_message)
            when '42501' then '{"code": "FORBIDDEN", "message": "You may not make this change to the lead."}'
            else jsonb_build_object('code', 'CONFLICT', 'message', coalesce((select obj_description(c.oid, 'pg_class')
              from pg_class c where c.relname = violated limit 1),
                'The change conflicts with an existing record.')) end);
        end if;
      end;
    end loop;
    result.rows := array(
      select row(t.place - 1, null, case when e.code is not null then 'REFUSED' when t.id = any (changed)
          then 'UPDATED' else 'UNCHANGED' end, case when e.code is distinct from 'NOT_FOUND' then t.id end, false,
        e.code,
        case when e.code is null then '{}' else array[row(e.code, e.field, e.message)::app_public.lead_row_error] end,
        '{}')::app_public.lead_row_result
      from unnest(targets) with ordinality t (id, place)
      left join lateral jsonb_to_record(errors -> t.id::text) e (code text, field text, message text) on true
      order by t.place);
    select count(*) filter (where r.outcome = 'UPDATED'), count(*) filter (where r.outcome = 'UNCHANGED'),
        count(*) filter (where r.outcome = 'REFUSED')
      into result.updated_count, result.unchanged_count, result.refused_count from unnest(result.rows) r;
    if dry_run then
      raise exception 'dry run' using errcode = 'PLATD';
    end if;
  exception when sqlstate 'PLATD' then
    null; -- undone, what would have been is in the result
  end;
  return result;
end $$;
grant execute on function app_public.update_leads to plat_user, plat_anonymous;
comment on function app_public.update_leads is
  E'@arg ids Ids of the leads, at most 500. Set either this or `filter`.\n@arg filter Selects the leads, at most '
  '500. Set either this or `ids`.\n@arg assigneeId Id of the member to assign the leads to.\n@arg unassign Removes '
  'the assignee. Viewers who only see their own leads return them this way.\n@arg addTags Tags to add; existing '
  'ones stay.\n@arg removeTags Tags to remove; other ones stay.\n@arg status Status to set on each lead.\n@arg '
  'falloutReasonId Id of the fallout reason; required for the status LOST.\n@arg falloutNote Explanation of why '
  'the leads were lost, as free text.\n@arg dryRun If true, returns what would happen, and changes nothing.\n\n'
  'Applies the same change to up to 500 leads, each entirely or not at all. The result says for each whether it '
  'was updated, unchanged or refused, and why. Each updated lead causes one event.';
