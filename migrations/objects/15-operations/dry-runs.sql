-- The effects of a transaction that is rolled back: its events as the viewer reads them, and their consequences.
-- src/database/dryRunTransaction.ts reads them at the end of such a transaction.

create function app_private.dry_run_events() returns table (id uuid, organization_id uuid, sequence bigint, name text)
language sql stable rows 20 security definer set search_path = pg_catalog, pg_temp as $$
  -- PERF: the ids begin with the time, so that no other events are read than those since the transaction began.
  select e.id, e.organization_id, e.sequence, e.name from app_public.events e
  where e.id >= app_hidden.first_id_of(now()) and e.transaction_id = pg_current_xact_id()::text::bigint
$$;
comment on function app_private.dry_run_events() is 'The events that this transaction has written.';

create function app_hidden.first_id_of(at timestamptz) returns uuid
language sql stable as $$
  -- A clock that was set back a little must not hide anything.
  select (lpad(to_hex(greatest((extract(epoch from at) * 1000)::bigint - 1000, 0)), 12, '0') || repeat('0', 20))::uuid
$$;
comment on function app_hidden.first_id_of(timestamptz) is 'An id that is smaller than all that are made from then on.';
grant execute on function app_hidden.first_id_of to plat_user;

create function app_hidden.dry_run_events(most int) returns jsonb
language sql stable as $$
  select jsonb_build_object(
    'events', coalesce(jsonb_agg(jsonb_build_object('name', e.name, 'subjectType', e.subject_type,
      'subjectId', e.subject_id, 'organizationId', e.organization_id, 'projectId', e.project_id,
      'changes', e.changes, 'data', e.data) order by e.place) filter (where e.place <= most), '[]'),
    'seen', coalesce(jsonb_agg(e.id) filter (where e.place <= most), '[]'),
    'moreEvents', count(*) filter (where e.place > most))
  from (
    select m.*, row_number() over (order by app_hidden.event_place(m.name, m.subject_id, m.id), m.id) as place
    from app_hidden.masked_events m
    where m.id >= app_hidden.first_id_of(now()) and m.transaction_id = pg_current_xact_id()::text::bigint) e
$$;
comment on function app_hidden.dry_run_events(int) is
  'Events written by this transaction, as the viewer may read them: a limited number with their ids, and the '
  'number of further ones.';
grant execute on function app_hidden.dry_run_events to plat_user;

create function app_private.dry_run_workflows(organization_ids uuid[], seen jsonb) returns jsonb
language plpgsql volatile as $$
declare
  workflow app_public.workflows;
  range record;
  wanted jsonb;
  result jsonb := '[]';
begin
  for range in
    select e.organization_id, min(e.sequence) as first, least(max(e.sequence), min(e.sequence) + 499) as last
    from app_private.dry_run_events() e where e.organization_id = any (organization_ids) group by 1
  loop
    for workflow in
      select w.* from app_public.workflows w
      where w.organization_id = range.organization_id and w.status = 'ENABLED' and w.deleted_at is null
        and w.trigger_type = 'EVENT'
    loop
      begin
        wanted := app_private.trigger_candidates(workflow, range.first - 1, range.last);
      exception when others then
        continue; -- it is set aside when it is started by such an event, and says why
      end;
      result := result || coalesce((
        select jsonb_agg(c || jsonb_build_object('organizationId', range.organization_id, 'name', workflow.name,
          'event', (select e.name from app_public.events e where e.id = (c ->> 'eventId')::uuid)))
        from jsonb_array_elements(wanted) c where seen ? (c ->> 'eventId')), '[]');
    end loop;
  end loop;
  return result;
end $$;
comment on function app_private.dry_run_workflows(uuid[], jsonb) is
  'The workflows of these organizations that the events of this transaction would start: id, name, event, subject, and '
  'the condition that is still to be evaluated, with its data.';

create function app_private.dry_run_effects(seen jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  viewer constant uuid := app_public.current_user_id();
  before constant jsonb := app_private.claims();
  member_of constant uuid[] := app_hidden.find_viewer_organizations('org.member');
  admin_of constant uuid[] := app_hidden.find_viewer_organizations('org.admin');
  runner_of constant uuid[] := app_hidden.find_viewer_organizations('workflow.read');
  range record;
  webhook app_public.webhooks;
  workflows jsonb;
begin
  -- Done as it would be after the commit, and rolled back with all of it.
  for range in
    select e.organization_id, min(e.sequence) as first, least(max(e.sequence), min(e.sequence) + 499) as last
    from app_private.dry_run_events() e where e.organization_id = any (member_of || admin_of) group by 1
  loop
    if range.organization_id = any (member_of) then
      perform app_private.add_notifications(range.organization_id, range.first - 1, range.last, 0);
    end if;
    for webhook in
      select w.* from app_public.webhooks w where w.organization_id = range.organization_id
        and w.organization_id = any (admin_of) and w.status in ('ENABLED', 'FAILING') and w.deleted_at is null
    loop
      perform app_private.make_deliveries(webhook, range.first - 1, range.last);
    end loop;
  end loop;
  workflows := app_private.dry_run_workflows(runner_of, seen);
  perform app_private.set_claims(before);
  return jsonb_build_object(
    'jobs', (select coalesce(jsonb_agg(jsonb_strip_nulls(j - 'organizationId')), '[]')
      from jsonb_array_elements(coalesce(app_hidden.setting('dry_run_jobs'), '[]')::jsonb) j
      where (j ->> 'organizationId')::uuid = any (member_of) or j ->> 'id' = viewer::text),
    'notifications', (select coalesce(jsonb_agg(jsonb_build_object('kind', n.kind, 'members', n.members)
        order by n.kind), '[]')
      from (select m.kind, count(distinct m.member_id) as members
        from app_public.organization_user_connections c
        join app_private.notification_mails m on m.member_id = c.id and m.closed_at is null
        join app_private.notification_items i on i.mail_id = m.id
        join app_private.dry_run_events() e on e.id = i.event_id
        where c.organization_id = any (member_of) group by m.kind) n),
    'webhooks', (select coalesce(jsonb_agg(jsonb_build_object('id', d.webhook_id, 'url', d.url, 'events', d.names)
        order by d.webhook_id), '[]')
      from (select d.webhook_id, w.url, jsonb_agg(e.name order by e.sequence) as names
        from app_private.dry_run_events() e join app_public.webhook_deliveries d on d.event_id = e.id
        join app_public.webhooks w on w.id = d.webhook_id group by d.webhook_id, w.url) d),
    'workflows', workflows);
end $$;
comment on function app_private.dry_run_effects(jsonb) is
  'Effects that the events of this transaction would have, and jobs that it would enqueue, limited to '
  'organizations in which the viewer may see them. Fans out webhooks and notifications to tell: only for a '
  'transaction that is rolled back.';
grant execute on function app_private.dry_run_effects to plat_authenticator;
