-- The effects of step types, a function each: app_private.step_<type>(step, work) executes it for all executions
-- together and returns the result of each. If it raises an error, the step is repeated for each execution separately.

create function app_private.step_people(work app_private.step_work[])
returns table (execution_id uuid, organization_id uuid, project_id uuid, subject_type text, subject_id uuid,
  lead_id uuid, buyer_id uuid, attempt int, input jsonb)
language sql stable as $$
  select e.id, e.organization_id, e.project_id, e.subject_type::text, e.subject_id, e.lead_id, e.buyer_id, w.attempt,
    w.input
  from unnest(work) w join app_public.workflow_executions e on e.id = w.execution_id
$$;
comment on function app_private.step_people(app_private.step_work[]) is
  'The executions of a step with what they are about.';

create function app_private.lead_interactions(lead_ids uuid[], at timestamptz, is_response boolean) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- Nothing that is to come has happened yet.
  happened constant timestamptz := least(at, now());
begin
  -- In the order of ids, so that two of these wait for each other instead of locking each other out.
  perform from app_public.leads l where l.id = any (lead_ids) order by l.id for no key update;
  update app_public.leads l set
      last_interaction_at = greatest(l.last_interaction_at, happened),
      first_response_at = case when is_response then coalesce(l.first_response_at, greatest(happened, l.registered_at))
        else l.first_response_at end,
      status = case when is_response and l.status = 'NEW' then 'CONTACTED' else l.status end,
      status_before_deal = case when is_response and l.status_before_deal = 'NEW' then 'CONTACTED'
        else l.status_before_deal end
    where l.id = any (lead_ids) and l.deleted_at is null
      and (l.last_interaction_at is null or l.last_interaction_at < happened
        or (is_response and (l.first_response_at is null or l.status = 'NEW' or l.status_before_deal = 'NEW')));
end $$;
comment on function app_private.lead_interactions(uuid[], timestamptz, boolean) is
  'Somebody of the team was in touch with the leads; is_response where the team turned to the lead, by a call, mail or '
  'appointment.';

-- Mail. The step writes what is sent and a job; the job sends it under a key that names execution and step, so that no
-- attempt makes a second mail. Leads who asked not to be contacted get none, and batches and schedules only write to
-- leads who are subscribed to marketing mail. Such steps are SKIPPED, not FAILED.
create function app_private.add_workflow_mails(works jsonb) returns void
language plpgsql volatile as $$
begin
  perform graphile_worker.add_jobs(array(
    select row('workflow_mail__send', (w || app_private.job_context())::json, null, null, null, null, null,
        app_private.job_flags('workflow_mail__send', e.organization_id))::graphile_worker.job_spec
      from jsonb_array_elements(works) w
      join app_public.workflow_executions e on e.id = (w ->> 'executionId')::uuid));
end $$;
comment on function app_private.add_workflow_mails(jsonb) is 'Enqueues the mails of steps: [{executionId, sequence}].';

create function app_private.step_send_email(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
declare
  mails jsonb;
  contacted uuid[];
begin
  select jsonb_agg(jsonb_build_object('executionId', m.execution_id, 'leadId', m.lead_id, 'to', m.recipient, 'failure',
    m.failure, 'refusal', m.refusal, 'isPerson', m.is_person,
      'mail', jsonb_build_object('to', jsonb_build_array(m.recipient), 'subject', m.input ->> 'subject', 'body',
        m.input ->> 'body') ||
        case when m.input ->> 'html' is not null then jsonb_build_object('html', m.input ->> 'html') else '{}' end))
    into mails
    from (
      select x.*, coalesce(x.input ->> 'to', 'PERSON') = 'PERSON' as is_person,
        case coalesce(x.input ->> 'to', 'PERSON') when 'PERSON' then coalesce(b.email, l.email) when 'ADDRESS'
          then x.input ->> 'address' else i.email end as recipient,
        case when coalesce(x.input ->> 'to', 'PERSON') <> 'PERSON' then null
          when p.do_not_contact then 'The lead asked not to be contacted.'
          when n.is_marketing and (p.unsubscribed_at is not null
            or app_private.is_withdrawn(x.organization_id, coalesce(b.email, l.email)))
            then 'They have unsubscribed from marketing mail.'
          when b.id is null and not l.subscribed and e.trigger_type in ('BATCH', 'SCHEDULE')
            then 'The lead does not follow marketing mail.' end as refusal,
        case when coalesce(x.input ->> 'to', 'PERSON') = 'PERSON' and coalesce(b.email, l.email) is null
          then 'The lead or buyer has no email address.'
          when x.input ->> 'to' in ('ASSIGNEE', 'MEMBER') and i.email is null then 'There is nobody to write to.'
          when coalesce(x.input ->> 'to', 'PERSON') in ('PERSON', 'ADDRESS') and not w.may_send then
            'No owner of the organization has confirmed the email address of their account: requestEmailVerification '
            'sends a code, verifyEmail takes it.'
          when x.input ->> 'to' = 'ADDRESS'
            and not app_private.is_known_recipient(x.organization_id, x.input ->> 'address') then
            'This address is of no lead, buyer or member, and its owner has not agreed: requestMailConsent asks.'
          when btrim(coalesce(x.input ->> 'subject', '')) = '' or btrim(coalesce(x.input ->> 'body', '')) = ''
            then 'The subject or the text of the mail came out empty.' end as failure
      from app_private.step_people(work) x
      join app_public.workflow_executions e on e.id = x.execution_id
      cross join lateral (select app_private.is_marketing(e.trigger_type, e.trigger_event_id) as is_marketing) n
      cross join lateral (select app_private.owner_is_confirmed(x.organization_id) as may_send) w
      left join app_public.buyers b on b.id = x.buyer_id
      left join app_public.leads l on l.id = x.lead_id
      left join app_public.leads p on p.id = coalesce(x.lead_id, b.lead_id)
      left join app_hidden.user_identities i on i.user_id = case x.input ->> 'to' when 'MEMBER'
        then (x.input ->> 'memberId')::uuid
        when 'ASSIGNEE' then app_private.assignee_of(lower(x.subject_type), x.subject_id, x.lead_id, x.buyer_id) end) m;
  perform app_private.add_workflow_mails((select coalesce(jsonb_agg(jsonb_build_object('executionId',
    m -> 'executionId', 'sequence', step.sequence)), '[]')
    from jsonb_array_elements(mails) m where m ->> 'failure' is null and m ->> 'refusal' is null));
  contacted := array(select (m ->> 'leadId')::uuid from jsonb_array_elements(mails) m
    where m ->> 'failure' is null and m ->> 'refusal' is null and (m ->> 'isPerson')::boolean
      and m ->> 'leadId' is not null);
  if contacted <> '{}' then
    perform app_private.lead_interactions(contacted, now(), true);
  end if;
  return query
    select (m ->> 'executionId')::uuid,
      case when m ->> 'refusal' is not null then 'SKIPPED' when m ->> 'failure' is not null then 'FAILED'
        else 'SUCCEEDED' end,
      case when m ->> 'refusal' is null and m ->> 'failure' is null then m -> 'mail' end,
        coalesce(m ->> 'refusal', m ->> 'failure'), null::int, null::timestamptz
    from jsonb_array_elements(mails) m;
end $$;

-- The team is notified by the settings of its members.
create function app_private.step_notify_team(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
declare
  mails jsonb;
  title text := coalesce((select w.name from app_public.workflows w where w.id = step.workflow_id), '');
begin
  if step.config ->> 'to' = 'TEAM'
    and not exists (select from app_private.step_people(work) x where x.project_id is null) then
    perform app_private.notify_team(x.project_id, x.lead_id, coalesce(nullif(btrim(x.input ->> 'subject'), ''), title),
      x.input ->> 'message') from app_private.step_people(work) x;
    return query select x.execution_id, 'SUCCEEDED', jsonb_build_object('subject',
      coalesce(nullif(btrim(x.input ->> 'subject'), ''), title), 'body', x.input ->> 'message'),
      null::text, null::int, null::timestamptz from app_private.step_people(work) x;
    return;
  end if;
  -- Users by id: when the mail is sent, recipients are those who are still in the team.
  select jsonb_agg(jsonb_build_object('executionId', x.execution_id, 'mail',
    jsonb_build_object('subject', coalesce(nullif(btrim(x.input ->> 'subject'), ''), title),
      'body', x.input ->> 'message', 'users', case coalesce(x.input ->> 'to', 'ASSIGNEE')
        when 'MEMBERS' then x.input -> 'memberIds'
        when 'ASSIGNEE' then to_jsonb(array_remove(array[app_private.assignee_of(lower(x.subject_type), x.subject_id,
          x.lead_id, x.buyer_id)], null))
        else (select coalesce(jsonb_agg(m.user_id), '[]') from app_public.organization_user_connections m
          where m.organization_id = x.organization_id) end)))
    into mails
    from app_private.step_people(work) x;
  perform app_private.add_workflow_mails((select coalesce(jsonb_agg(jsonb_build_object('executionId',
    m -> 'executionId', 'sequence', step.sequence)), '[]')
    from jsonb_array_elements(mails) m where m -> 'mail' -> 'users' <> '[]'));
  return query
    select (m ->> 'executionId')::uuid, case when m -> 'mail' -> 'users' = '[]' then 'SKIPPED' else 'SUCCEEDED' end,
      case when m -> 'mail' -> 'users' <> '[]' then m -> 'mail' end, case when m -> 'mail' -> 'users' = '[]'
        then 'There is nobody to tell.' end, null::int, null::timestamptz
    from jsonb_array_elements(mails) m;
end $$;

create function app_private.note_workflow_mail(execution_id uuid, sequence int) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_public.workflow_step_runs r set error = d.detail
  from app_private.mail_deliveries d
  where r.execution_id = note_workflow_mail.execution_id and r.sequence = note_workflow_mail.sequence
    and r.status = 'SUCCEEDED'
    and d.outcome = 'REFUSED' and d.key like format('workflow %s %s', r.execution_id, r.sequence) || '%'
$$;
comment on function app_private.note_workflow_mail(uuid, int) is
  'Records in a step run that the mail server finally refused its mail.';

-- Tasks and notes.
create function app_private.step_create_task(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
begin
  return query
    with wanted as materialized (
      select x.*, uuidv7() as task_id from app_private.step_people(work) x
    ), made as (
      insert into app_public.tasks (id, organization_id, project_id, lead_id, buyer_id, title, description, type,
        priority, assignee_id, due_at, workflow_execution_id)
      select x.task_id, x.organization_id, x.project_id, case when x.buyer_id is null then x.lead_id end, x.buyer_id,
        app_hidden.checked(left(btrim(x.input ->> 'title'), 300), 'app_public.short_text', 'title'),
          nullif(btrim(x.input ->> 'description'), ''),
        coalesce(x.input ->> 'type', 'TODO'), coalesce(x.input ->> 'priority', 'MEDIUM'),
        case coalesce(x.input ->> 'assignee', 'ASSIGNEE') when 'MEMBER' then (x.input ->> 'memberId')::uuid
          when 'ASSIGNEE' then app_private.assignee_of(lower(x.subject_type), x.subject_id, x.lead_id, x.buyer_id) end,
        now() + make_interval(secs => (x.input ->> 'dueInSeconds')::float8), x.execution_id
      from wanted x
    )
    select x.execution_id, 'SUCCEEDED', jsonb_build_object('taskId', x.task_id), null::text, null::int,
      null::timestamptz from wanted x;
end $$;

create function app_private.step_create_note(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
begin
  return query
    with wanted as materialized (
      select x.*, uuidv7() as note_id from app_private.step_people(work) x
    ), made as (
      insert into app_public.lead_notes (id, organization_id, project_id, lead_id, buyer_id, text, pinned, visibility)
      select x.note_id, x.organization_id, x.project_id, case when x.buyer_id is null then x.lead_id end, x.buyer_id,
        app_hidden.checked(left(btrim(x.input ->> 'text'), 20000), 'app_public.long_text', 'text'),
          coalesce((x.input ->> 'pinned')::boolean, false), coalesce(x.input ->> 'visibility', 'TEAM')
      from wanted x where num_nonnulls(x.lead_id, x.buyer_id) > 0
    )
    select x.execution_id, case when num_nonnulls(x.lead_id, x.buyer_id) > 0 then 'SUCCEEDED' else 'FAILED' end,
      case when num_nonnulls(x.lead_id, x.buyer_id) > 0 then jsonb_build_object('noteId', x.note_id) end,
      case when num_nonnulls(x.lead_id, x.buyer_id) = 0
        then 'There is neither a lead nor a purchase to write a note on.' end, null::int, null::timestamptz
    from wanted x;
end $$;

-- Changes of records.
create function app_private.lock_subjects(table_name text, ids uuid[]) returns void
language plpgsql volatile as $$
declare
  one uuid;
begin
  -- Records of a purchase before it, in the common lock order; others by id.
  if table_name = 'buyers' then
    for one in select i from unnest(ids) i order by i loop
      perform app_private.lock_purchase(one);
    end loop;
  else
    execute format('select from app_public.%I r where r.id = any ($1) order by r.id for no key update', table_name)
      using ids;
  end if;
end $$;
comment on function app_private.lock_subjects(text, uuid[]) is 'Locks the records that a step changes.';

create function app_private.step_assign(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
declare
  one record;
  assignee uuid;
begin
  perform app_private.lock_subjects('buyers',
    array(select distinct x.buyer_id from app_private.step_people(work) x where x.buyer_id is not null));
  perform app_private.lock_subjects('leads', array(select distinct x.lead_id from app_private.step_people(work) x
    where x.buyer_id is null and x.lead_id is not null));
  if step.config ->> 'to' = 'MEMBER' then
    assignee := (step.config ->> 'memberId')::uuid;
    update app_public.buyers b set assignee_id = assignee
      where b.id in (select x.buyer_id from app_private.step_people(work) x) and b.assignee_id is distinct
        from assignee;
    update app_public.leads l set assignee_id = assignee
      where l.id in (select x.lead_id from app_private.step_people(work) x where x.buyer_id is null)
        and l.assignee_id is distinct from assignee;
  end if;
  for one in select * from app_private.step_people(work) x order by x.execution_id loop
    if num_nonnulls(one.lead_id, one.buyer_id) = 0 then
      return next row(one.execution_id, 'FAILED', null, 'There is neither a lead nor a purchase to assign.', null,
        null)::app_private.step_outcome;
      continue;
    elsif step.config ->> 'to' = 'NEXT_IN_TURN' then
      assignee := app_private.next_in_turn(one.project_id);
      if assignee is null then
        return next row(one.execution_id, 'FAILED', null, 'The project has no members who take turns.', null,
          null)::app_private.step_outcome;
        continue;
      elsif one.buyer_id is not null then
        update app_public.buyers b set assignee_id = assignee where b.id = one.buyer_id and b.assignee_id is distinct
          from assignee;
      else
        update app_public.leads l set assignee_id = assignee where l.id = one.lead_id and l.assignee_id is distinct
          from assignee;
      end if;
    end if;
    return next row(one.execution_id, 'SUCCEEDED', jsonb_build_object('assigneeId', assignee), null, null,
      null)::app_private.step_outcome;
  end loop;
end $$;

create function app_private.step_update_field(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
declare
  record text := coalesce(step.config ->> 'record', 'SUBJECT');
  table_of text := case record when 'LEAD' then 'leads' when 'BUYER' then 'buyers'
    else app_private.subject_table((select w.subject_type from app_public.workflows w
      where w.id = step.workflow_id)) end;
  relation regclass := format('app_public.%I', table_of)::regclass;
  column_of name;
  change record;
  value_list jsonb;
begin
  select a.attname into column_of from pg_attribute a
    where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
      and app_hidden.camel(a.attname) = step.config ->> 'field'
      and has_column_privilege('plat_user', a.attrelid, a.attnum, 'UPDATE');
  if column_of is null then
    perform app_hidden.fail('BAD_USER_INPUT', format('%s is not a field that can be set.', step.config ->> 'field'));
  end if;
  perform app_private.lock_subjects(table_of, array(
    select distinct case record when 'LEAD' then x.lead_id when 'BUYER' then x.buyer_id else x.subject_id end
      from app_private.step_people(work) x));
  -- With the rights of the principal: state transitions apply to workflows as well.
  perform set_config('plat.service', '', true);
  -- PERF: all records that get the same value are updated by one statement.
  for change in
    select x.input -> 'value' as value, array_agg(x.execution_id) as executions,
        array_remove(array_agg(case record when 'LEAD' then x.lead_id when 'BUYER' then x.buyer_id
          else x.subject_id end), null) as ids
      from app_private.step_people(work) x group by 1
  loop
    if cardinality(change.ids) < cardinality(change.executions) then
      perform app_hidden.fail('CONFLICT', format('There is no %s here.', lower(record)));
    end if;
    execute format('select app_hidden.clean_values(null::%s, $1)', relation) into value_list
      using jsonb_build_object(column_of, change.value);
    execute format('select app_hidden.refuse_bad_value(null::%s, $1)', relation) using value_list;
    execute format('update %1$s r set %2$I = (jsonb_populate_record(null::%1$s, $1)).%2$I where r.id = any ($2) and '
      'r.deleted_at is null', relation, column_of) using value_list, change.ids;
    return query select e, 'SUCCEEDED', jsonb_build_object('field', step.config ->> 'field', 'value', change.value),
      null::text, null::int, null::timestamptz
      from unnest(change.executions) e;
  end loop;
  perform set_config('plat.service', 'on', true);
end $$;

create function app_private.change_tags(step app_public.workflow_steps, work app_private.step_work[],
  adds boolean) returns setof app_private.step_outcome
language plpgsql volatile as $$
declare
  change record;
begin
  if exists (select from app_private.step_people(work) x where x.lead_id is null
    or btrim(coalesce(x.input ->> 'tag', '')) = '') then
    perform app_hidden.fail('CONFLICT', case when exists (select from app_private.step_people(work) x
      where x.lead_id is null) then 'There is no lead to tag.' else 'The tag is empty after evaluation.' end);
  end if;
  perform app_private.lock_subjects('leads', array(select distinct x.lead_id from app_private.step_people(work) x));
  for change in
    select btrim(x.input ->> 'tag') as tag, array_agg(x.lead_id) as leads, array_agg(x.execution_id) as executions
      from app_private.step_people(work) x group by 1
  loop
    if adds then
      update app_public.leads l set tags = array_append(l.tags::text[], change.tag) where l.id = any (change.leads)
        and change.tag <> all (l.tags::text[]);
    else
      update app_public.leads l set tags = array_remove(l.tags::text[], change.tag) where l.id = any (change.leads)
        and change.tag = any (l.tags::text[]);
    end if;
    return query select e, 'SUCCEEDED', jsonb_build_object('tag', change.tag), null::text, null::int, null::timestamptz
      from unnest(change.executions) e;
  end loop;
end $$;
comment on function app_private.change_tags(app_public.workflow_steps, app_private.step_work[], boolean) is
  'Adds a tag to the leads of executions, or removes it.';

create function app_private.step_add_tag(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language sql volatile as $$ select * from app_private.change_tags(step, work, true) $$;

create function app_private.step_remove_tag(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language sql volatile as $$ select * from app_private.change_tags(step, work, false) $$;

-- The way of an execution.
create function app_private.step_wait(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
begin
  -- waitSeconds have passed before the step is due. With `until` it is looked up when the step begins.
  return query
    select x.execution_id,
      case when not step.config ? 'until' or u.until <= now() then 'SUCCEEDED' when u.until is null then 'FAILED'
        else 'RUNNING' end,
      case when u.until is not null then jsonb_build_object('until',
        to_char(u.until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) end,
      case when step.config ? 'until' and u.until is null then format('%s has no value.', step.config ->> 'until') end,
        null::int, u.until
    from app_private.step_people(work) x
    left join app_public.projects p on p.id = x.project_id
    cross join lateral (select case
      when x.input ->> 'until' ~ '^\d{4}-\d\d-\d\d$'
        then ((x.input ->> 'until')::date)::timestamp at time zone coalesce(p.time_zone, 'UTC')
      else (x.input ->> 'until')::timestamptz end + make_interval(secs => coalesce((step.config ->>
        'offsetSeconds')::float8, 0)) as until) u;
end $$;

create function app_private.step_wait_for_event(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
declare
  fresh uuid[];
  over uuid[];
  waiting uuid[];
begin
  -- It has come.
  over := array(select w.execution_id from unnest(work) w where w.input ? 'found');
  return query select w.execution_id, 'SUCCEEDED', jsonb_build_object('event', w.input -> 'found', 'timedOut', false),
    null::text, null::int, null::timestamptz
    from unnest(work) w where w.input ? 'found';
  -- The first step of a workflow begins here.
  fresh := array(select w.execution_id from unnest(work) w where not w.input ? 'found' and not exists (
    select from app_public.workflow_step_runs r where r.execution_id = w.execution_id and r.sequence = step.sequence
      and r.status = 'RUNNING'));
  if fresh <> '{}' then
    perform app_private.begin_waits(fresh);
    return query select e.id, 'RUNNING', null::jsonb, null::text, null::int, e.scheduled_at
      from app_public.workflow_executions e where e.id = any (fresh);
  end if;
  -- It has ended, or is checked again.
  over := over || array(
    select w.execution_id from unnest(work) w
      join app_public.workflow_step_runs r on r.execution_id = w.execution_id and r.sequence = step.sequence
        and r.status = 'RUNNING'
      where not w.input ? 'found' and w.execution_id <> all (fresh) and (r.output ->> 'until')::timestamptz <= now()
        and not exists (select from app_private.workflow_wakeups k where k.execution_id = w.execution_id));
  waiting := array(select w.execution_id from unnest(work) w where w.execution_id <> all (fresh)
    and w.execution_id <> all (over));
  return query
    select w.execution_id, 'SUCCEEDED', jsonb_build_object('event', null, 'timedOut', true), null::text,
      case step.config ->> 'onTimeout' when 'STOP' then 0 when 'CONTINUE' then null
        else (step.config ->> 'onTimeout')::int end, null::timestamptz
    from unnest(work) w where w.execution_id = any (over) and not w.input ? 'found';
  perform app_private.look_back(waiting);
  return query
    select w.execution_id, 'RUNNING', null::jsonb, null::text, null::int,
      greatest((r.output ->> 'until')::timestamptz, now() + interval '1 second')
    from unnest(work) w join app_public.workflow_step_runs r on r.execution_id = w.execution_id
      and r.sequence = step.sequence and r.status = 'RUNNING'
    where w.execution_id = any (waiting);
  delete from app_private.workflow_waits x where x.execution_id = any (over);
end $$;

create function app_private.step_branch(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language sql volatile as $$
  select w.execution_id, 'SUCCEEDED', jsonb_build_object('result', w.input -> 'result'), null::text,
    (step.config ->> case when (w.input ->> 'result')::boolean then 'then' else 'else' end)::int, null::timestamptz
  from unnest(work) w
$$;

create function app_private.step_stop(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language sql volatile as $$
  select w.execution_id, 'SUCCEEDED', case when step.config ? 'reason'
    then jsonb_build_object('reason', step.config -> 'reason') end, null::text, 0, null::timestamptz from unnest(work) w
$$;

-- Steps that call external services.
create function app_private.step_call_webhook(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language sql volatile as $$
  select w.execution_id, case when (w.input ->> 'status')::int between 200 and 299 then 'SUCCEEDED' else 'FAILED' end,
    w.input - 'failure', case when (w.input ->> 'status')::int between 200 and 299 then null
      else coalesce(w.input ->> 'failure', format('The receiver answered %s.', w.input ->> 'status')) end, null::int,
        null::timestamptz
  from unnest(work) w
$$;

create function app_private.call_secrets(organization_id uuid, url text) returns table (webhook_id uuid,
  sealed text, previous_sealed text)
language sql stable as $$
  select w.id, s.sealed, case when s.previous_expires_at > now() then s.previous_sealed end
  from app_public.webhooks w join app_private.webhook_secrets s on s.webhook_id = w.id
  where w.organization_id = $1 and w.deleted_at is null and w.integration_id is null
    and lower(substring(w.url from '^https://[^/?#]*')) = lower(substring($2 from '^https://[^/?#]*'))
  order by w.url = $2 desc, w.id limit 1
$$;
comment on function app_private.call_secrets(uuid, text) is
  'Signing secret of a workflow call: that of a webhook of the organization with the same host.';

create function app_private.step_send_sms(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
declare
  stopped text[];
begin
  update app_private.text_messages m set
      provider_id = coalesce(m.provider_id, case when w.input ->> 'result' = 'TAKEN' then w.input ->> 'id' end),
      status = case when s.rank > o.rank or (s.rank = 0 and o.rank = 0) then s.status else m.status end,
      error = case when m.provider_id is null then w.input ->> 'error' else m.error end
    from unnest(work) w, app_private.message_statuses s, app_private.message_statuses o
    where m.execution_id = w.execution_id and m.sequence = step.sequence and o.status = m.status
      and s.status = case w.input ->> 'result' when 'TAKEN' then w.input ->> 'status' when 'REFUSED' then 'REFUSED'
        when 'STOPPED' then 'REFUSED'
        when 'UNKNOWN' then 'SENDING' when 'BUSY' then 'WAITING' when 'ABSENT' then 'WAITING' when 'UNTAKEN'
          then 'WAITING' end;
  select array_agg(distinct m.recipient) into stopped from unnest(work) w
    join app_private.text_messages m on m.execution_id = w.execution_id and m.sequence = step.sequence
    where w.input ->> 'result' = 'STOPPED';
  if stopped is not null then
    perform app_private.stop_numbers(stopped, 'The provider says so.');
  end if;
  perform app_private.lead_interactions(array_agg(m.lead_id), now(), true)
    from unnest(work) w join app_private.text_messages m on m.execution_id = w.execution_id
      and m.sequence = step.sequence
    where w.input ->> 'result' = 'TAKEN' and m.lead_id is not null having count(*) > 0;
  return query
    select w.execution_id, k.status,
      case k.status when 'SUCCEEDED' then jsonb_build_object('messageId', m.provider_id, 'status', m.status, 'body',
        m.body, 'segments', app_hidden.message_segments(m.body)) ||
          -- Viewers of the execution see the number of its lead; that of a member is private.
          case when m.user_id is null then jsonb_build_object('to', m.recipient)
            else jsonb_build_object('to', '…' || right(m.recipient, 4), 'toId', m.user_id) end
        when 'RUNNING' then jsonb_build_object('until',
          to_char(k.until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) end,
      case when k.status <> 'RUNNING' then coalesce(w.input ->> 'error', m.error) end, null::int, k.until
    from unnest(work) w
    left join app_private.text_messages m on m.execution_id = w.execution_id and m.sequence = step.sequence
    cross join lateral (select
      case w.input ->> 'result' when 'TAKEN' then 'SUCCEEDED' when 'SKIP' then 'SKIPPED' when 'STOPPED' then 'SKIPPED'
        when 'WAIT' then 'RUNNING' when 'ABSENT' then 'RUNNING' when 'BUSY' then 'RUNNING' else 'FAILED' end as status,
      case w.input ->> 'result' when 'WAIT' then (w.input ->> 'until')::timestamptz when 'ABSENT' then now()
        when 'BUSY' then now() + make_interval(secs => (w.input ->> 'seconds')::float8) end as until) k;
end $$;

create function app_private.step_draft_with_ai(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language sql volatile as $$
  -- A draft that was blocked is one too: later steps ask for its status.
  select w.execution_id, 'SUCCEEDED', w.input, null::text, null::int, null::timestamptz from unnest(work) w
$$;

create function app_private.step_escalate(step app_public.workflow_steps,
  work app_private.step_work[]) returns setof app_private.step_outcome
language plpgsql volatile as $$
begin
  return query
    select w.execution_id, 'PAUSED', jsonb_build_object('title', t.title, 'ticketId',
      app_private.open_execution_ticket(w.execution_id, step, coalesce(w.input ->> 'kind', 'OTHER'),
        t.title, w.input ->> 'description', coalesce(w.input ->> 'priority', 'MEDIUM'),
          '{RESUME_EXECUTION,CANCEL_EXECUTION,DISMISS}', (w.input ->> 'memberId')::uuid,
        now() + make_interval(secs => (w.input ->> 'dueInSeconds')::float8))), null::text, null::int, null::timestamptz
    from unnest(work) w
    cross join lateral (select coalesce(nullif(btrim(w.input ->> 'title'), ''), 'Please decide') as title) t;
end $$;

do $$
declare
  type text;
begin
  for type in select lower(v.value) from app_public.workflow_step_type_values v loop
    execute format('comment on function app_private.%I(app_public.workflow_steps, app_private.step_work[]) is %L',
      'step_' || type,
      format('Carries out steps of the type %s.', upper(type)));
  end loop;
end $$;
grant execute on function app_private.note_workflow_mail to plat_worker;
