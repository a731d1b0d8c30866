-- Notification mails for members, by their settings. They read the event stream: each organization has a cursor, moved
-- in the transaction that writes the consequences of the events up to it, so that nothing is lost or sent twice when a
-- process dies. Which event notifies whom is data (notification_rules), so that a new kind of record is one more row.
--
--   event → rule → recipients: members who want that kind, may see the record, are active, and did not cause it
--         → an item of the one open mail that a recipient has of the kind; it is sent a minute after it was opened
--
-- So a hundred leads in a minute are one mail. Changes that a person makes through the API (createLead, createLeadNote)
-- notify nobody.

comment on column app_public.notification_settings.team_message is
  E'@notNull\n\nWhether to notify the member of messages that workflows send to the team.';
comment on column app_public.notification_settings.lead_note is
  E'@notNull\n\n'
  'Whether to notify the member of notes that a workflow or a connected application adds to their leads. Notes '
  'entered by users cause no notification.';
comment on column app_public.notification_settings.agreement is
  E'@notNull\n\nWhether to notify the member when an agreement is signed by everyone, declined, or expires.';
comment on table app_private.notification_kinds is
  'The members of NotificationSettings, as columns of the type: how long a mail waits for further items, what the kind '
  'is called ("mails about …"), and the heading of a mail with several. Of two kinds with the same event, a reader '
  'gets the first by place.';

insert into app_private.notification_kinds (kind, place, wait, name, heading) values
  ('new_lead', 1, '1 minute', 'new leads', 'new leads'),
  ('contact_message', 2, '1 minute', 'messages to the sales office', 'messages to the sales office'),
  ('lead_assigned', 3, '1 minute', 'leads assigned to you', 'leads assigned to you'),
  ('lead_note', 4, '1 minute', 'notes on your leads', 'notes on your leads'),
  ('appointment', 5, '1 minute', 'appointments', 'updates on appointments'),
  ('reservation', 6, '1 minute', 'reservations', 'updates on reservations'),
  ('offer', 7, '1 minute', 'offers', 'updates on offers'),
  ('task', 8, '1 minute', 'tasks', 'tasks for you'),
  ('escalation', 9, '1 minute', 'escalations', 'escalations'),
  -- The requester waits for it.
  ('export_ready', 10, '0', 'exports', 'exports'),
  ('team_message', 11, '1 minute', 'messages of workflows', 'messages of workflows'),
  ('agreement', 12, '1 minute', 'agreements', 'updates on agreements');

comment on table app_private.notification_rules is
  'Which events tell whom. events: names such as lead.created or lead.*, null for what the service itself says; '
  'changed: only where this field changed; wanted: only where the record has the members of one of these; '
  'channels: only what came in by them. permission: what the reader needs for the record; audience: TEAM '
  '(everybody who has it), ASSIGNEE (who is assigned the lead or purchase), or fields of the record that hold a '
  'user; else_team: the team where those name nobody; actor_too: also the user who caused it. line, details, '
  'quote: what one item says, as Liquid templates over data (the record), person (the lead or buyer), home (the '
  'unit or lot), project, timeZone.';

insert into app_private.notification_rules (kind, events, changed, wanted, channels, permission, audience, else_team,
  actor_too, line, details, quote) values
  ('new_lead', '{contact_message.created}', null, '{"{\"leadCreated\": true}"}', null, 'lead.read', '{TEAM}', false,
    false,
    '{{ data.name }} is a new lead for {{ project }}',
      '{{ data.email }}{% if data.phone %}, {{ data.phone }}{% endif %}', '{{ data.text }}'),
  ('new_lead', '{lead.created}', null,
    array['{"origin": "WEB_FORM"}', '{"origin": "AGENT_PORTAL"}', '{"origin": "INTEGRATION"}',
      '{"origin": "MARKETPLACE"}', '{"origin": "OPEN_HOUSE"}']::jsonb[],
    '{SYSTEM,INTEGRATION,WEBHOOK}', 'lead.read', '{TEAM}', false, false,
    '{{ data.name }} is a new lead for {{ project }}',
      '{{ data.email }}{% if data.phone %}, {{ data.phone }}{% endif %}', null),
  ('new_lead', '{lead.created}', null, '{"{\"origin\": \"RESERVATION\"}"}', null, 'lead.read', '{TEAM}', false, false,
    '{{ data.name }} is a new lead for {{ project }}, who holds or reserves a home',
      '{{ data.email }}{% if data.phone %}, {{ data.phone }}{% endif %}', null),
  ('contact_message', '{contact_message.created}', null, null, null, 'lead.read', '{TEAM}', false, false,
    '{{ data.name }} contacted the sales office of {{ project }}',
      '{{ data.email }}{% if data.phone %}, {{ data.phone }}{% endif %}', '{{ data.text }}'),
  ('lead_assigned', '{lead.*}', 'assigneeId', null, null, 'lead.read', '{assigneeId}', false, false,
    '{{ data.name }} is now your lead in {{ project }}', null, null),
  ('lead_note', '{lead_note.created}', null, null, '{SYSTEM,INTEGRATION,WEBHOOK}', 'lead.read', '{ASSIGNEE}', false,
    false,
    'A note on {{ person }} in {{ project }}', null, '{{ data.text }}'),
  ('appointment', '{appointment.created,appointment.scheduled,appointment.confirmed,appointment.rescheduled,'
    'appointment.cancelled}', null, null, null,
    'lead.read', '{hostId,ASSIGNEE}', true, false,
    'Appointment with {{ person }} on {{ data.startsAt | when: data.timeZone }}, {{ data.status | words }}', null,
      null),
  ('appointment', '{appointment.updated}', 'startsAt', null, null, 'lead.read', '{hostId,ASSIGNEE}', true, false,
    'Appointment with {{ person }} moved to {{ data.startsAt | when: data.timeZone }}', null, null),
  ('appointment', '{appointment.updated}', 'hostId', null, null, 'lead.read', '{hostId}', false, false,
    'You receive {{ person }} on {{ data.startsAt | when: data.timeZone }}', null, null),
  ('reservation', '{reservation.created,reservation.confirmed,reservation.converted,reservation.expired,'
    'reservation.cancelled,reservation.refunded}', null, null, null,
    'sale.read', '{TEAM}', false, false,
    'Reservation {{ data.number }} of {{ home }} in {{ project }}{% if person %} for {{ person }}{% endif %}, {{ '
    'data.status | words }}', null, null),
  ('reservation', '{reservation.extended}', null, null, null, 'sale.read', '{TEAM}', false, false,
    'Reservation {{ data.number }} of {{ home }} in {{ project }}{% if person %} for {{ person }}{% endif %}, extended '
    'to {{ data.expiresAt | when: timeZone }}', null, null),
  ('reservation', '{buyer.status_changed}', 'status', '{"{\"status\": \"CANCELLED\"}"}', null, 'buyer.read', '{TEAM}',
    false, false,
    'Purchase{% if home %} of {{ home }}{% endif %} in {{ project }}{% if person %} by {{ person }}{% endif %}, '
    'cancelled', null, null),
  ('reservation', '{unit_hold.expired}', null, null, null, 'sale.read', '{userId}', false, false,
    'Your hold of {{ home }} in {{ project }}{% if person %} for {{ person }}{% endif %} expired', null, null),
  ('offer', '{offer.created}', null, null, null, 'sale.read', '{TEAM}', false, false,
    '{% if data.side == "BUYER" %}{{ person | default: "The buyer" }} offers{% else %}The seller asks{% endif %} {{ '
    'data.price | money: data.currency }} for {{ home }} in {{ project }}', null, null),
  ('offer', '{offer.accepted,offer.rejected,offer.expired,offer.withdrawn}', null, null, null, 'sale.read', '{TEAM}',
    false, false,
    'Offer of {{ data.price | money: data.currency }} for {{ home }} in {{ project }}{% if person %} ({{ person }}){% '
    'endif %}, {{ data.status | words }}', null, null),
  ('agreement', '{agreement.signed,agreement.executed,agreement.declined,agreement.expired}', null, null, null,
    'lead.read', '{ASSIGNEE}', true, false,
    '{{ data.title }} of {{ person }} in {{ project }}, {{ data.status | words }}', null, null),
  -- A task without a lead or purchase is for members only, others for all viewers of the record.
  ('task', '{task.created}', null, '{"{\"leadId\": null, \"buyerId\": null}"}', null, 'org.member', '{assigneeId}',
    false, false,
    'New task for you: {{ data.title }}{% if data.dueAt %}, due {{ data.dueAt | when: timeZone }}{% endif %}', null,
      null),
  ('task', '{task.created}', null, null, null, 'lead.read', '{assigneeId}', false, false,
    'New task for you: {{ data.title }}{% if person %} ({{ person }}){% endif %}{% if data.dueAt %}, due {{ '
    'data.dueAt | when: timeZone }}{% endif %}', null, null),
  ('task', '{task.*}', 'assigneeId', '{"{\"leadId\": null, \"buyerId\": null}"}', null, 'org.member', '{assigneeId}',
    false, false,
    'Task assigned to you: {{ data.title }}{% if data.dueAt %}, due {{ data.dueAt | when: timeZone }}{% endif %}', null,
      null),
  ('task', '{task.*}', 'assigneeId', null, null, 'lead.read', '{assigneeId}', false, false,
    'Task assigned to you: {{ data.title }}{% if person %} ({{ person }}){% endif %}{% if data.dueAt %}, due {{ '
    'data.dueAt | when: timeZone }}{% endif %}', null, null),
  ('task', null, null, null, null, 'org.member', '{}', false, false,
    '{{ data.title }}{% if person %} ({{ person }}){% endif %}, {% if data.overdue %}was due{% else %}due{% endif %} '
    '{{ data.dueAt | when: timeZone }}', null, null),
  ('escalation', '{escalation_ticket.created}', null, null, null, 'workflow.read', '{assigneeId}', false, false,
    'Escalation: {{ data.title }}{% if project %}, {{ project }}{% endif %}', null, '{{ data.description }}'),
  ('escalation', '{escalation_ticket.created}', null, '{"{\"assigneeId\": null}"}', null, 'workflow.manage', '{TEAM}',
    false, false,
    'Escalation: {{ data.title }}{% if project %}, {{ project }}{% endif %}', null, '{{ data.description }}'),
  ('export_ready', '{export.completed}', null, null, null, 'org.member', '{requestedById}', false, true,
    'Your export {{ data.filename }} is ready', null, null),
  ('team_message', null, null, null, null, 'org.member', '{TEAM}', false, true, '{{ data.subject }}', null,
    '{{ data.text }}'),
  ('team_message', null, null, null, null, 'lead.read', '{TEAM}', false, true, '{{ data.subject }}', null,
    '{{ data.text }}');

-- Visibility of all records of a statement at once; the policies give the same answer for each viewer.
create function app_private.people_who_see(organization_id uuid, project_id uuid, assignee_id uuid, permission text)
returns table (member_id uuid, user_id uuid, notifications app_public.notification_settings)
language sql stable as $$
  select m.id, m.user_id, m.notifications
  from app_public.organization_user_connections m
  join app_private.role_permissions r on r.role = m.role and r.permission = $4 and not r.in_affiliated
  where m.organization_id = $1
    and (r.reach = 'ALL' or m.user_id = $3
      or (r.reach = 'OWN_WHERE_PRIVATE'
        and exists (select from app_public.projects p where p.id = $2 and p.lead_assignment <> 'PRIVATE')))
  union all
  -- Members of the organization itself are notified as such, or not at all.
  select m.id, m.user_id, m.notifications
  from app_private.affiliate_permissions a
  join app_public.organization_user_connections m on m.organization_id = a.organization_id
  where a.project_id = $2 and a.permission = $4 and (a.reach = 'ALL' or m.user_id = $3)
    and not exists (select from app_public.organization_user_connections o where o.organization_id = $1
      and o.user_id = m.user_id)
$$;
comment on function app_private.people_who_see(uuid, uuid, uuid, text) is
  'The members who have the permission for a record: of its organization, and of those with a part in its project. '
  'assignee_id: who is assigned its lead or purchase.';

comment on table app_private.notification_mails is
  'Mails that were not sent yet. A member has one open mail of each kind, which takes further items until it is '
  'closed: what it says is fixed then, however often it is tried. Apart from those, the tasks of a day (digest_on).';
comment on table app_private.notification_items is
  'Content of a mail: an event, or data that the service added.';
comment on column app_private.notification_items.data is E'@personal\n\nWhat the mail says of it.';
comment on column app_private.notification_items.subject_type is E'@impersonal\n\nThe kind of record.';

create function app_private.tg_notification_mails__enqueue() returns trigger
language plpgsql volatile as $$
begin
  if exists (select from new_rows) then
    perform graphile_worker.add_jobs((
      select array_agg(jsonb_populate_record(null::graphile_worker.job_spec, jsonb_build_object(
        'identifier', 'notification_mail__due', 'payload', jsonb_build_object('id', n.id), 'run_at', n.due_at)))
          from new_rows n));
  end if;
  return null;
end $$;
create trigger _500_enqueue after insert on app_private.notification_mails
  referencing new table as new_rows for each statement execute function app_private.tg_notification_mails__enqueue();

comment on table app_private.notification_progress is
  'How far the notifications have come in the stream of each organization.';
comment on table app_private.team_messages is
  'Messages of workflows to the team that are not turned into notifications yet. A table of its own, so that '
  'parallel steps do not wait for each other''s mails.';
comment on column app_private.team_messages.data is E'@personal\n\nWhat it says.';

create function app_private.notify_team(project_id uuid, lead_id uuid, subject text, text text,
  link text default null) returns void
language plpgsql volatile as $$
begin
  insert into app_private.team_messages (organization_id, project_id, lead_id, data)
    select p.organization_id, p.id, notify_team.lead_id,
      jsonb_build_object('subject', left(notify_team.subject, 300), 'text', left(notify_team.text, 20000),
        'link', case when notify_team.link ~ '^https?://' then notify_team.link end, 'projectId', p.id, 'leadId',
          notify_team.lead_id)
    from app_public.projects p where p.id = notify_team.project_id and p.deleted_at is null;
end $$;
comment on function app_private.notify_team(uuid, uuid, text, text, text) is
  'notify_team(project_id, lead_id, subject, text, link): notifies the team of a project by mail: members of its '
  'organization; with a lead (null for none), those who may see it, and its assignee. subject and text are plain '
  'text, link an address that starts with https:// or http:// (otherwise: the lead, or the project). Part of the '
  'caller''s transaction; messages of a minute are one mail for each reader.';

-- From the stream to the mails.
create function app_private.add_notifications(organization_id uuid, after_sequence bigint, to_sequence bigint,
  messages int) returns void
language plpgsql volatile as $$
begin
  with taken as (
    delete from app_private.team_messages m where m.id = any (array(
      select t.id from app_private.team_messages t where t.organization_id = add_notifications.organization_id
        order by t.id limit messages))
    returning m.*
  ), happened as (
    select e.id, e.sequence, e.id as event_id, e.project_id, e.subject_type, e.subject_id, e.data,
      null::jsonb as own_data, e.actor_id, r as rule
    from app_public.events e
    join app_private.notification_rules r on app_hidden.event_matches(e.name, r.events)
      and (r.changed is null or e.changes ? r.changed)
      and (r.wanted is null or e.data @> any (r.wanted))
      and (r.channels is null or e.channel = any (r.channels))
    where e.organization_id = add_notifications.organization_id and e.sequence > after_sequence
      and e.sequence <= to_sequence
    union all
    select t.id, null, null, t.project_id, case when t.lead_id is null then 'project' else 'lead' end,
      coalesce(t.lead_id, t.project_id), '{}', t.data, null, r
    from taken t
    join app_private.notification_rules r on r.kind = 'team_message' and r.permission = case when t.lead_id is null
      then 'org.member' else 'lead.read' end
  ), told as materialized (
    select h.*,
      coalesce(
        (select l.assignee_id from app_public.leads l where l.id = case when h.subject_type = 'lead' then h.subject_id
          else (h.data ->> 'leadId')::uuid end),
        -- The buyer of a reservation is a user; its purchase is elsewhere.
        (select b.assignee_id from app_public.buyers b where b.id = case when h.subject_type = 'buyer' then h.subject_id
          else (h.data ->> case when h.subject_type = 'reservation' then 'purchaseId' else 'buyerId' end)::uuid end),
        case when h.subject_type in ('reservation', 'unit_hold') then (h.data ->> 'assigneeId')::uuid end)
        as assignee_id
    from happened h
  ), named as materialized (
    -- Users named by the record, if the rule uses them; null for the team.
    select t.*, case when 'TEAM' = any ((t.rule).audience) then null else array(
        select case when a.field = 'ASSIGNEE' then t.assignee_id else (t.data ->> a.field)::uuid end
          from unnest((t.rule).audience) a (field)) end as users,
      dense_rank() over (order by t.project_id, t.assignee_id, (t.rule).permission) as circle
    from told t
  ), circles as materialized (
    -- PERF: visibility is evaluated once for all events of a project and assignee.
    select c.circle, s.member_id, s.user_id, to_jsonb(s.notifications) as wants
    from (select distinct n.circle, n.project_id, n.assignee_id, (n.rule).permission from named n) c
    cross join lateral app_private.people_who_see(add_notifications.organization_id, c.project_id, c.assignee_id,
      c.permission) s
    join app_public.users u on u.id = s.user_id and u.status = 'ACTIVE' and u.deleted_at is null
  ), chosen as materialized (
    -- Once for each event and reader, however many rules and memberships lead there.
    select distinct on (n.id, s.user_id) n.sequence, n.id, s.member_id, k.kind, k.wait, (n.rule).id as rule_id,
      n.event_id, n.subject_type, n.subject_id, n.own_data
    from named n
    join app_private.notification_kinds k on k.kind = (n.rule).kind
    join circles s on s.circle = n.circle
    where (n.users is null or s.user_id = any (n.users) or ((n.rule).else_team and num_nonnulls(variadic n.users) = 0))
      and (s.user_id is distinct from n.actor_id or (n.rule).actor_too)
      and s.wants -> k.kind = 'true'
    order by n.id, s.user_id, k.place, s.member_id, (n.rule).id
  ), opened as (
    insert into app_private.notification_mails as m (member_id, kind, due_at)
    select c.member_id, c.kind, now() + min(c.wait) from chosen c group by c.member_id, c.kind order by c.member_id,
      c.kind
    -- Changes nothing but keeps the mail open until the items are in it.
    on conflict (member_id, kind) where closed_at is null and digest_on is null do update set due_at = m.due_at
    returning m.id, m.member_id, m.kind
  )
  insert into app_private.notification_items (mail_id, rule_id, event_id, subject_type, subject_id, data)
    select o.id, c.rule_id, c.event_id, c.subject_type, c.subject_id, c.own_data
    from chosen c join opened o on o.member_id = c.member_id and o.kind = c.kind
    order by c.sequence, c.id;
end $$;
comment on function app_private.add_notifications(uuid, bigint, bigint, int) is
  'Writes the notifications for the events of a range and for a number of messages to the team.';

create function app_private.fan_out_notifications(batch int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  progress record;
  upto bigint;
  amount bigint := 0;
  more boolean := false;
begin
  -- One process at a time.
  if not pg_try_advisory_xact_lock(7528000012) then
    return false;
  end if;
  -- At random, so that a flood in one organization does not keep the others waiting.
  for progress in
    select p.organization_id, p.last_sequence, coalesce(c.last_sequence, 0) as last_written,
      exists (select from app_private.team_messages t where t.organization_id = p.organization_id) as has_messages
    from app_private.notification_progress p left join app_private.event_counters c on c.stream_id = p.organization_id
    where c.last_sequence > p.last_sequence
      or p.organization_id in (select t.organization_id from app_private.team_messages t)
    order by random()
  loop
    if amount >= batch then
      return true;
    end if;
    upto := least(progress.last_written, progress.last_sequence + batch);
    perform app_private.add_notifications(progress.organization_id, progress.last_sequence, upto, batch);
    update app_private.notification_progress p set last_sequence = upto
      where p.organization_id = progress.organization_id and p.last_sequence <> upto;
    amount := amount + upto - progress.last_sequence;
    more := more or upto < progress.last_written
      or (progress.has_messages and exists (select from app_private.team_messages t
        where t.organization_id = progress.organization_id));
  end loop;
  return more;
end $$;
comment on function app_private.fan_out_notifications(int) is
  'Turns new events into notifications, one batch per transaction; returns whether there are more.';

create function app_private.skip_notifications() returns void
language sql volatile as $$
  update app_private.notification_progress p set last_sequence = c.last_sequence
    from app_private.event_counters c where c.stream_id = p.organization_id
$$;
comment on function app_private.skip_notifications() is
  'Leaves all that was written so far untold, as after loading the demo.';
grant execute on function app_private.fan_out_notifications to plat_worker;
