-- The content of notification mails, fixed when they are closed; unsubscribing from a kind without signing in; and the
-- daily task digest.

create function app_private.close_notification_mail(id uuid, shown int default 25) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  mail app_private.notification_mails;
  reader record;
  item record;
  items app_private.notification_items[];
  happened jsonb;
  shown_data jsonb := '{}';
  seen bigint[] := '{}';
  hidden int := 0;
  amount int;
begin
  select m.* into mail from app_private.notification_mails m where m.id = close_notification_mail.id for update;
  if mail.id is null then
    return null;
  end if;
  select c.user_id, i.email, o.id as organization_id, o.name as organization, k.name as kind_name, k.heading into reader
    from app_public.organization_user_connections c
    join app_public.users u on u.id = c.user_id and u.status = 'ACTIVE' and u.deleted_at is null
    join app_hidden.user_identities i on i.user_id = u.id
    join app_public.organizations o on o.id = c.organization_id and o.deleted_at is null
    join app_private.notification_kinds k on k.kind = mail.kind
    where c.id = mail.member_id and to_jsonb(c.notifications) -> mail.kind = 'true';
  if reader.user_id is not null then
    update app_private.notification_mails m set closed_at = coalesce(m.closed_at, now()) where m.id = mail.id;
    select count(*) into amount from app_private.notification_items n where n.mail_id = mail.id;
    items := array(select n from app_private.notification_items n where n.mail_id = mail.id order by n.place
      limit 4 * shown);
    happened := (select jsonb_object_agg(i.place, jsonb_build_object('type', e.subject_type, 'id', e.subject_id,
      'data', coalesce(i.data, e.data))) from unnest(items) i left join app_public.events e on e.id = i.event_id);
    -- With the rights of the reader, so that current policies and masks apply to each record.
    perform app_private.set_claims(jsonb_build_object('user_id', reader.user_id));
    foreach item in array items loop
      exit when cardinality(seen) = shown;
      if app_private.viewer_sees_subject(item.subject_type, item.subject_id) then
        seen := seen || item.place;
        shown_data := shown_data || jsonb_build_object(item.place, (
          select app_hidden.event_value(h ->> 'type', (h ->> 'id')::uuid, h -> 'data', h -> 'data')
          from jsonb_extract_path(happened, item.place::text) h));
      else
        hidden := hidden + 1;
      end if;
    end loop;
    perform app_private.set_claims('{}');
  end if;
  if seen = '{}' then
    delete from app_private.notification_mails m where m.id = mail.id;
    return null;
  end if;
  return jsonb_build_object('to', reader.email, 'memberId', mail.member_id, 'organizationId', reader.organization_id,
    'kind', mail.kind, 'kindName',
    reader.kind_name, 'heading', reader.heading,
    'organization', reader.organization, 'isDigest', mail.digest_on is not null, 'count', amount - hidden,
    'requestIds', (select coalesce(jsonb_agg(r.request_id order by r.place), '[]') from (
      select e.request_id, min(n.place) as place from app_private.notification_items n
      join app_public.events e on e.id = n.event_id
      where n.mail_id = mail.id and n.place = any (seen) and e.request_id is not null group by e.request_id) r),
    'items', (
      select jsonb_agg(jsonb_build_object('line', r.line, 'details', r.details, 'quote', r.quote, 'data', told.data,
          'project', p.title, 'timeZone', coalesce(p.time_zone, (select o.time_zone from app_public.organizations o
            where o.id = e.organization_id), 'UTC'),
          'person', coalesce(l.name, b.legal_name, nullif(concat_ws(' ', b.first_name, b.last_name), '')),
          'home', coalesce('unit ' || (select u.number from app_public.units u
            where u.id = (told.data ->> 'unitId')::uuid),
            'lot ' || (select t.number from app_public.lots t where t.id = (told.data ->> 'lotId')::uuid)),
          'subjectType', n.subject_type, 'subjectId', n.subject_id) order by n.place)
      from app_private.notification_items n
      join app_private.notification_rules r on r.id = n.rule_id
      left join app_public.events e on e.id = n.event_id
      cross join lateral (select shown_data -> n.place::text as data) told
      left join app_public.projects p on p.id = coalesce(e.project_id, (n.data ->> 'projectId')::uuid)
      left join app_public.leads l on l.id = (told.data ->> 'leadId')::uuid
      left join app_public.buyers b on b.id = case when n.subject_type = 'buyer' then n.subject_id
        else (told.data ->> case when n.subject_type = 'reservation' then 'purchaseId' else 'buyerId' end)::uuid end
      where n.mail_id = mail.id and n.place = any (seen)));
end $$;
comment on function app_private.close_notification_mail(uuid, int) is
  'Determines the recipient and the content of a mail: its first items, up to the number to display, with their '
  'templates. Null if the mail is no longer needed, and therefore deleted: the recipient left, was suspended, '
  'unsubscribed, or can see none of the records.';

create function app_private.drop_notification_mail(id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  delete from app_private.notification_mails m where m.id = $1
$$;
comment on function app_private.drop_notification_mail(uuid) is 'Removes a mail that was sent.';

-- The link in each mail. Its signature is verified before these functions are called.
create function app_private.notification_choice(member_id uuid, kind text, out organization text, out kind_name text,
  out wanted boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select o.name, k.name, to_jsonb(m.notifications) -> k.kind = 'true'
  from app_public.organization_user_connections m
  join app_public.organizations o on o.id = m.organization_id and o.deleted_at is null
  join app_private.notification_kinds k on k.kind = notification_choice.kind
  where m.id = notification_choice.member_id
$$;
comment on function app_private.notification_choice(uuid, text) is
  'A member''s settings for a kind of mail; nulls if the membership has ended.';

create function app_private.unsubscribe(member_id uuid, kind text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_public.organization_user_connections m
    set notifications = jsonb_populate_record(m.notifications, jsonb_build_object(k.kind, false))
    from app_private.notification_kinds k
    where m.id = unsubscribe.member_id and k.kind = unsubscribe.kind and to_jsonb(m.notifications) -> k.kind = 'true'
$$;
comment on function app_private.unsubscribe(uuid, text) is
  'Switches one kind of mails off for a member, and changes nothing else; updateOrganizationNotifications switches it '
  'on again.';
grant execute on function app_private.notification_choice, app_private.unsubscribe to plat_authenticator;

comment on table app_private.task_digests is
  'The day, where the member is, for which the tasks were last put together.';

create function app_private.queue_task_digests(after_id uuid, batch int) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  last_id uuid;
begin
  with members as materialized (
    select m.id, m.user_id, m.organization_id, m.notifications from app_public.organization_user_connections m
    where after_id is null or m.id > after_id order by m.id limit batch
  ), morning as (
    -- The time zone of the member; by default, that of the organization.
    select m.*, z.today, (z.today + 1)::timestamp at time zone z.name as ends_at, z.name as zone
    from members m
    join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
    join app_public.organizations o on o.id = m.organization_id and o.deleted_at is null
    cross join lateral (select case when u.time_zone <> 'UTC' then u.time_zone else o.time_zone end as name) c
    cross join lateral (select c.name, (now() at time zone c.name)::date as today,
      extract(hour from now() at time zone c.name) as hour) z
    where to_jsonb(m.notifications) -> 'task' = 'true' and z.hour between 7 and 11
      and not exists (select from app_private.task_digests d where d.member_id = m.id and d.last_on >= z.today)
  ), due as (
    select m.id as member_id, m.today, m.zone, t.id, t.title, t.due_at, t.lead_id, t.buyer_id, t.project_id
    from morning m
    cross join lateral (
      select t.* from app_public.tasks t
      where t.assignee_id = m.user_id and t.deleted_at is null and t.due_at < m.ends_at
        and t.status in ('OPEN', 'IN_PROGRESS', 'WAITING')
        -- A task of another organization comes by the one that has a part in its project.
        and (t.organization_id = m.organization_id or (
          exists (select from app_public.project_organizations a where a.project_id = t.project_id
            and a.organization_id = m.organization_id)
          and not exists (select from app_public.organization_user_connections o
            where o.organization_id = t.organization_id and o.user_id = m.user_id)))
      order by t.due_at, t.id limit 200
    ) t
  ), noted as (
    insert into app_private.task_digests as d (member_id, last_on) select distinct member_id, today from due
      order by member_id
    on conflict (member_id) do update set last_on = excluded.last_on where d.last_on < excluded.last_on
    returning d.member_id, d.last_on
  ), mails as (
    insert into app_private.notification_mails (member_id, kind, digest_on, due_at) select n.member_id, 'task',
      n.last_on, now() from noted n
    returning id, member_id
  ), items as (
    insert into app_private.notification_items (mail_id, rule_id, subject_type, subject_id, data)
    select m.id, (select r.id from app_private.notification_rules r where r.kind = 'task' and r.events is null), 'task',
      d.id,
      jsonb_build_object('title', d.title, 'dueAt', d.due_at, 'overdue', d.due_at < now(), 'leadId', d.lead_id,
        'buyerId', d.buyer_id, 'projectId', d.project_id)
    from mails m join due d on d.member_id = m.member_id order by m.id, d.due_at, d.id
  )
  select m.id into last_id from members m order by m.id desc limit 1;
  return last_id;
end $$;
comment on function app_private.queue_task_digests(uuid, int) is
  'Queues notifications of due and overdue tasks for the next members for whom it is morning and who were not '
  'notified today; returns the last member of the batch, null at the end.';
grant execute on function app_private.close_notification_mail, app_private.drop_notification_mail,
  app_private.queue_task_digests to plat_worker;
