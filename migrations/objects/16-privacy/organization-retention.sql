-- Retention settings of organizations: for workflow executions with their step runs, text messages, and the content of
-- events. The event itself remains, with its number, its time and its subject; nothing is erased that a
-- webhook, workflow or notification has yet to read. A task processes the organizations once a day, in batches; another
-- one moves the content of events to the archive (event-archives.sql) where the organization does not have it erased.

comment on column app_public.organizations.execution_retention_days is
  E'@behavior -*\n\nNumber of days after which ended workflow executions are deleted.';
comment on column app_public.organizations.message_retention_days is
  E'@behavior -*\n\nAfter how many days text messages are deleted.';
comment on column app_public.organizations.event_retention_days is
  E'@behavior -*\n\nAfter how many days events are emptied.';
comment on column app_public.organizations.archives_events is
  E'@behavior -*\n\nWhether the content of old events is archived, not erased.';
comment on constraint organizations_execution_retention on app_public.organizations is
  'Must be from 30 to 36,500 days.';
comment on constraint organizations_message_retention on app_public.organizations is 'Must be from 30 to 36,500 days.';
comment on constraint organizations_event_retention on app_public.organizations is 'Must be from 365 to 36,500 days.';
comment on table app_private.event_retention is 'Up to which number the events of an organization are emptied.';

comment on type app_public.retention_settings is 'Retention settings of an organization.';
comment on column app_public.retention_settings.contract_years is
  E'@notNull\n\nNumber of years for which contracts and payments are retained when a person is erased.';
comment on column app_public.retention_settings.execution_days is
  E'@notNull\n\nNumber of days after which ended workflow executions are deleted, with their step runs.';
comment on column app_public.retention_settings.message_days is
  E'@notNull\n\nNumber of days after which text messages of workflows are deleted.';
comment on column app_public.retention_settings.event_days is
  E'@notNull\n\n'
  'Number of days after which the content of events is archived, or erased: see `archivesEvents`.';
comment on column app_public.retention_settings.archives_events is
  E'@notNull\n\n'
  'Whether the content of events is moved to the archive after `eventDays`, where the API reads it; `archivedAt` is '
  'set. Otherwise it is erased: they keep `sequence`, `name`, time and subject, and `erasedAt` is set.';

create function app_public.organizations_retention(o app_public.organizations) returns app_public.retention_settings
language sql stable as $$
  select (o.contract_retention_years, o.execution_retention_days, o.message_retention_days,
    o.event_retention_days, o.archives_events)::app_public.retention_settings
  where app_hidden.organization_can(o.id, 'org.member')
$$;
grant execute on function app_public.organizations_retention to plat_user, plat_anonymous;
comment on function app_public.organizations_retention is 'Retention settings; null for non-members.';

create function app_public.update_organization_retention(organization_id uuid, contract_years int default null,
  execution_days int default null, message_days int default null, event_days int default null,
  archives_events boolean default null)
returns app_public.retention_settings
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  result app_public.retention_settings;
begin
  perform app_hidden.require_organization(organization_id, 'privacy.erase');
  update app_public.organizations o set
      contract_retention_years = coalesce(contract_years, o.contract_retention_years),
      execution_retention_days = coalesce(execution_days, o.execution_retention_days),
      message_retention_days = coalesce(message_days, o.message_retention_days),
      event_retention_days = coalesce(event_days, o.event_retention_days),
      archives_events = coalesce(archives_events, o.archives_events)
    where o.id = organization_id
    returning o.contract_retention_years, o.execution_retention_days, o.message_retention_days,
      o.event_retention_days, o.archives_events into result;
  return result;
end $$;
grant execute on function app_public.update_organization_retention to plat_user, plat_anonymous;
comment on function app_public.update_organization_retention is $$
@arg organization_id Id of the organization, in which the viewer needs privacy.erase.
@arg contract_years Number of years for which contracts and payments are retained when a person is erased: 1 to 30.
@arg execution_days Number of days after which ended workflow executions are deleted: at least 30.
@arg message_days Number of days after which text messages are deleted: at least 30.
@arg event_days Number of days after which the content of events is archived or erased: at least 365.
@arg archives_events Whether the content of events is then archived, so that the API still reads it, or erased.

Sets the retention of finished records of an organization; omitted settings stay unchanged. Requires the permission
privacy.erase.$$;

create function app_private.sweep_executions(organization_id uuid, days int, batch int) returns int
language plpgsql volatile as $$
declare
  amount int;
begin
  -- Ids grow with time: the index on organization and id finds the oldest.
  delete from app_public.workflow_executions x where x.id in (
    select e.id from app_public.workflow_executions e where e.organization_id = sweep_executions.organization_id
      and e.id < uuidv7(make_interval(days => -days)) and e.status in ('COMPLETED', 'FAILED', 'CANCELLED')
    order by e.id limit batch for update skip locked);
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.sweep_executions(uuid, int, int) is
  'Deletes executions that ended more than the given number of days ago; returns their number.';

create function app_private.sweep_text_messages(organization_id uuid, days int, batch int) returns int
language plpgsql volatile as $$
declare
  amount int;
begin
  delete from app_private.text_messages m where m.id in (
    select t.id from app_private.text_messages t join app_public.workflow_executions x on x.id = t.execution_id
    where x.organization_id = sweep_text_messages.organization_id and t.began_at < now() - make_interval(days => days)
    limit batch for update of t skip locked);
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.sweep_text_messages(uuid, int, int) is
  'Deletes text messages older than the given number of days; returns their number.';

create function app_private.events_read(organization_id uuid) returns bigint
language sql stable as $$
  select least(
    (select c.last_sequence from app_private.event_counters c where c.stream_id = $1),
    (select p.last_sequence from app_private.notification_progress p where p.organization_id = $1),
    (select s.last_sequence from app_private.workflow_streams s where s.organization_id = $1),
    -- A disabled webhook continues from the present when it is enabled; for a paused one, events wait.
    (select min(p.last_sequence) from app_private.webhook_progress p join app_public.webhooks w on w.id = p.webhook_id
      where p.organization_id = $1 and w.status <> 'DISABLED' and w.deleted_at is null),
    (select min(r.next_sequence) - 1 from app_private.webhook_redeliveries r
      join app_public.webhooks w on w.id = r.webhook_id where w.organization_id = $1),
    (select min(e.sequence) - 1 from (
        select d.event_id from app_private.webhook_progress p
          join app_private.webhook_queue q on q.webhook_id = p.webhook_id
          join app_public.webhook_deliveries d on d.id = q.delivery_id where p.organization_id = $1
        union all
        select w.event_id from app_private.workflow_wakeups w
          join app_public.workflow_executions x on x.id = w.execution_id where x.organization_id = $1
        union all
        select i.event_id from app_public.organization_user_connections c
          join app_private.notification_mails m on m.member_id = c.id and m.closed_at is null
          join app_private.notification_items i on i.mail_id = m.id where c.organization_id = $1) w
      join app_public.events e on e.id = w.event_id))
$$;
comment on function app_private.events_read(uuid) is
  'The number up to which everything that reads the events of an organization has done so: webhooks with their '
  'deliveries, workflows, notifications.';

create function app_private.emptied_span(organization_id uuid, days int, batch int, out from_sequence bigint,
  out to_sequence bigint)
language plpgsql volatile as $$
declare
  before constant timestamptz := now() - make_interval(days => days);
  reached app_private.event_retention;
  upto bigint;
begin
  insert into app_private.event_retention as r (organization_id) values (emptied_span.organization_id)
    on conflict on constraint event_retention_pkey do update set sequence = r.sequence returning * into reached;
  -- Up to the first that is kept: an event may have begun before one with a smaller number.
  select coalesce(min(e.sequence) filter (where e.occurred_at >= before) - 1, max(e.sequence)) into upto
    from app_public.events e where e.organization_id = reached.organization_id and e.sequence > reached.sequence
      and e.sequence <= reached.sequence + batch;
  if upto > reached.sequence then
    upto := least(upto, app_private.events_read(reached.organization_id));
  end if;
  if upto > reached.sequence then
    from_sequence := reached.sequence + 1;
    to_sequence := upto;
  end if;
end $$;
comment on function app_private.emptied_span(uuid, int, int) is
  'The next events of an organization, at most a batch, that are older than the given number of days and that all '
  'readers have read, in order of sequence; null where there are none. Others that ask wait for the transaction.';

create function app_private.sweep_events(organization_id uuid, days int, batch int) returns int
language plpgsql volatile as $$
declare
  span constant record := app_private.emptied_span(organization_id, days, batch);
begin
  if span.to_sequence is null then
    return 0;
  end if;
  update app_public.events e set data = '{}', changes = null, erased_at = now()
    where e.organization_id = sweep_events.organization_id and e.sequence >= span.from_sequence
      and e.sequence <= span.to_sequence;
  update app_private.event_retention r set sequence = span.to_sequence
    where r.organization_id = sweep_events.organization_id;
  return span.to_sequence - span.from_sequence + 1;
end $$;
comment on function app_private.sweep_events(uuid, int, int) is
  'Erases the content of events older than the given number of days that all readers have read, in order of '
  'sequence; returns their number.';

create function app_private.sweep_organizations(after_id uuid, batch int) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 2000;
  organization app_public.organizations;
  is_left boolean := false;
begin
  perform app_private.set_erasing(true);
  for organization in select o.* from app_public.organizations o where after_id is null or o.id > after_id
    order by o.id limit batch
  loop
    is_left := app_private.sweep_executions(organization.id, organization.execution_retention_days, most) = most;
    is_left := app_private.sweep_text_messages(organization.id, organization.message_retention_days, most) = most
      or is_left;
    if not organization.archives_events then
      is_left := app_private.sweep_events(organization.id, organization.event_retention_days, most) = most or is_left;
    end if;
    -- Once more from the one before, in another transaction.
    exit when is_left;
    after_id := organization.id;
  end loop;
  perform app_private.set_erasing(false);
  return case when is_left then coalesce(after_id, '00000000-0000-0000-0000-000000000000')
    when organization.id is not null then after_id end;
end $$;
comment on function app_private.sweep_organizations(uuid, int) is
  'Applies the retention settings of organizations, one batch per kind of record; returns where to continue, null '
  'at the end.';
grant execute on function app_private.sweep_organizations to plat_worker;
