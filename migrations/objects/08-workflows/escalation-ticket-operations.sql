create function app_private.expire_escalation_ticket(ticket_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.clock', 'on', true);
  perform set_config('plat.service', 'on', true);
  update app_public.escalation_tickets t set status = 'EXPIRED'
    where t.id = ticket_id and t.status in ('OPEN', 'FAILED') and t.due_at <= clock_timestamp();
  perform set_config('plat.service', before, true);
  perform set_config('plat.clock', '', true);
end $$;
comment on function app_private.expire_escalation_ticket(uuid) is 'Ends a ticket that nobody decided in time.';

create function app_private.open_ticket(
  kind text, cause text, organization_id uuid, title text, available_actions text[],
  project_id uuid default null, description text default null, priority text default 'MEDIUM',
  lead_id uuid default null, buyer_id uuid default null, subject_type text default null, subject_id uuid default null,
  workflow_execution_id uuid default null, generation_id uuid default null, assignee_id uuid default null,
    due_at timestamptz default null,
  input jsonb default '{}'
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  clock text := coalesce(current_setting('plat.clock', true), '');
  unknown text;
  result uuid;
begin
  select a into unknown from unnest(available_actions) a
    where not exists (select from app_hidden.ticket_actions t where t.action = a
      and (t.kind = open_ticket.kind or t.kind is null)) limit 1;
  if found then
    raise exception 'nothing performs the action % of tickets of the kind %', unknown, kind;
  end if;
  for attempt in 1 .. 3 loop
    select t.id into result from app_public.escalation_tickets t
      where t.organization_id = organization_id and t.cause = cause and t.status in ('OPEN', 'RESOLVING', 'FAILED');
    exit when found;
    -- Tickets can be opened in archived projects, too.
    perform set_config('plat.clock', 'on', true);
    insert into app_public.escalation_tickets (kind, cause, organization_id, project_id, title, description, priority,
      lead_id, buyer_id, subject_type, subject_id,
        workflow_execution_id, generation_id, available_actions, assignee_id, due_at, input)
      values (kind, cause, organization_id, project_id, left(btrim(title), 300),
        nullif(left(btrim(description), 20000), ''), coalesce(priority, 'MEDIUM'), lead_id, buyer_id,
        subject_type, subject_id, workflow_execution_id, generation_id,
          available_actions::app_public.escalation_action[],
        -- A former member must not prevent a ticket.
        (select m.user_id from app_public.organization_user_connections m where m.organization_id = organization_id
          and m.user_id = assignee_id),
        due_at, coalesce(input, '{}'))
      on conflict do nothing returning id into result;
    perform set_config('plat.clock', clock, true);
    exit when result is not null;
  end loop;
  return result;
end $$;
comment on function app_private.open_ticket is
  'Opens an escalation ticket and returns its id; where one is open for the same cause in the organization, returns '
  'that one instead. The available actions are those of app_hidden.ticket_actions; input is what they need to know.';

create function app_private.end_resolution(ticket_id uuid, error text default null) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  service text := coalesce(current_setting('plat.service', true), '');
  clock text := coalesce(current_setting('plat.clock', true), '');
  ended boolean;
begin
  perform set_config('plat.service', 'on', true);
  perform set_config('plat.clock', 'on', true);
  update app_public.escalation_tickets t set status = case when error is null then 'RESOLVED' else 'FAILED' end,
      action_status = case when error is null then 'SUCCEEDED' else 'FAILED' end,
        action_error = nullif(left(btrim(error), 20000), ''),
      resolved_at = case when error is null then now() end
    where t.id = ticket_id and t.status = 'RESOLVING';
  ended := found;
  perform set_config('plat.clock', clock, true);
  perform set_config('plat.service', service, true);
  return ended;
end $$;
comment on function app_private.end_resolution(uuid, text) is
  'Ends the action of a ticket that is RESOLVING: it succeeded, or failed for the reason given. False, and nothing '
  'done, when it had ended already.';

create function app_private.resolve_ticket(ticket_id uuid, chosen text, note text, assignee_id uuid,
  expected_version int) returns app_public.escalation_tickets
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  ticket app_public.escalation_tickets;
  handler app_hidden.ticket_actions;
  message text;
  refusal text;
  done boolean := true;
begin
  -- Serialized: a second request finds the result of the first.
  if not app_private.viewer_sees('app_public.escalation_tickets', ticket_id) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such ticket.', '{"field": "id"}');
  end if;
  select t.* into ticket from app_public.escalation_tickets t where t.id = ticket_id for no key update;
  if not app_hidden.organization_can(ticket.organization_id, 'workflow.run') then
    perform app_hidden.fail('FORBIDDEN', 'Resolving a ticket requires the permission workflow.run.',
      '{"permission": "workflow.run"}');
  elsif chosen is null or chosen <> all (ticket.available_actions::text[]) then
    perform app_hidden.fail('BAD_USER_INPUT', format('This ticket can only be resolved by one of these actions: %s.',
      array_to_string(ticket.available_actions::text[], ', ')), '{"field": "action"}');
  end if;
  select a.* into handler from app_hidden.ticket_actions a where a.action = chosen
    and (a.kind = ticket.kind or a.kind is null) order by a.kind nulls last limit 1;
  if handler.permission is not null and not app_hidden.deal_can(ticket.organization_id, ticket.project_id,
      coalesce((select b.assignee_id from app_public.buyers b where b.id = ticket.buyer_id),
        (select l.assignee_id from app_public.leads l where l.id = ticket.lead_id)),
      handler.permission) then
    perform app_hidden.fail('FORBIDDEN', format('The action %s requires the permission %s.', chosen,
      handler.permission),
      jsonb_build_object('permission', handler.permission));
  end if;
  -- Chosen already: the same answer, without a second effect.
  if ticket.status in ('RESOLVING', 'RESOLVED') and ticket.action = chosen then
    return ticket;
  elsif ticket.status not in ('OPEN', 'FAILED') or ticket.due_at <= clock_timestamp() then
    perform app_hidden.fail('INVALID_TRANSITION', case when ticket.action is not null and ticket.status <> 'FAILED'
          then format('This ticket is %s by the action %s.', ticket.status, ticket.action)
            else 'This ticket is EXPIRED.' end,
      jsonb_build_object('from', case when ticket.due_at <= clock_timestamp() and ticket.status in ('OPEN', 'FAILED')
        then 'EXPIRED' else ticket.status end,
        'to', 'RESOLVING', 'field', 'action', 'allowedTransitions', jsonb_build_array()));
  elsif expected_version <> ticket.version then
    perform app_hidden.fail('VERSION_MISMATCH',
      'Somebody else has changed this record since you read it; read it again and repeat your change.',
      jsonb_build_object('currentVersion', ticket.version));
  elsif assignee_id is not null and chosen <> 'REASSIGN' then
    perform app_hidden.fail('BAD_USER_INPUT', 'Only REASSIGN accepts an assignee.', '{"field": "assigneeId"}');
  end if;
  perform set_config('plat.service', 'on', true);
  update app_public.escalation_tickets t set status = 'RESOLVING', action = chosen, action_status = 'PENDING',
    action_error = null, note = resolve_ticket.note,
      resolved_by_id = app_public.current_user_id(),
      input = case when resolve_ticket.assignee_id is null then t.input - 'assignee_id'
        else t.input || jsonb_build_object('assignee_id', resolve_ticket.assignee_id) end
    where t.id = ticket.id returning t.* into ticket;
  perform set_config('plat.service', before, true);
  if handler.perform is not null then
    begin
      execute format('select %s($1)', handler.perform) into done using ticket;
    exception
      when deadlock_detected or serialization_failure then
        raise;
      when others then
        get stacked diagnostics message = message_text, refusal = pg_exception_detail;
        -- Errors of the viewer's input are returned; no action was chosen then.
        if sqlstate = 'PLAT0' and refusal::jsonb ->> 'code' in ('BAD_USER_INPUT', 'FORBIDDEN', 'UNAUTHENTICATED',
          'RATE_LIMITED') then
          raise;
        elsif sqlstate <> 'PLAT0' then
          raise warning 'action % of ticket % failed: %', chosen, ticket.id, message;
          message := 'This could not be done, and nothing was changed. Try again, or resolve the ticket in another '
            'way.';
        end if;
        done := null;
    end;
  end if;
  if coalesce(done, true) then
    perform app_private.end_resolution(ticket.id, case when done is null then message end);
  end if;
  select t.* into ticket from app_public.escalation_tickets t where t.id = ticket.id;
  return ticket;
end $$;
comment on function app_private.resolve_ticket(uuid, text, text, uuid, int) is
  'Resolves a ticket that the caller has seen as the viewer.';
grant execute on function app_private.resolve_ticket to plat_user;

create function app_public.resolve_escalation_ticket(id uuid, action app_public.escalation_action,
  note text default null, assignee_id uuid default null,
  expected_version int default null) returns app_public.escalation_tickets
language plpgsql volatile as $$
declare
  ticket_id uuid;
begin
  perform app_hidden.require_viewer();
  -- With the rights of the viewer: the policy determines its visibility.
  select t.id into ticket_id from app_public.escalation_tickets t where t.id = resolve_escalation_ticket.id;
  if ticket_id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such escalation ticket.', '{"field": "id"}');
  end if;
  return app_private.resolve_ticket(ticket_id, action,
    app_hidden.checked(nullif(btrim(note), ''), 'app_public.long_text', 'note'), assignee_id, expected_version);
end $$;
grant execute on function app_public.resolve_escalation_ticket to plat_user, plat_anonymous;
comment on function app_public.resolve_escalation_ticket is
  E'@arg action The action to execute: one of `availableActions`.\n'
  '@arg note Comment on the decision.\n'
  '@arg expectedVersion The `version` that the client read. If the ticket has changed since, the mutation is refused '
  'with VERSION_MISMATCH.\n'
  '@arg assigneeId With REASSIGN: the member who gets the lead or purchase. Default: the assignee of the ticket, '
  'otherwise the viewer.\n\n'
  'Resolves an escalation ticket by one of its actions, which is executed once: repeating the same action returns '
  'the same result, another action is refused. If the action fails, nothing is changed, the ticket becomes FAILED '
  'with the reason in `actionError`, and it can be resolved again. Requires the permission workflow.run, and those '
  'of the action.';

create function app_private.reassign_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  wanted uuid := coalesce((ticket.input ->> 'assignee_id')::uuid, ticket.assignee_id, ticket.resolved_by_id);
begin
  if num_nonnulls(ticket.lead_id, ticket.buyer_id) = 0 then
    perform app_hidden.fail('CONFLICT', 'This ticket refers to no lead or purchase that could be reassigned.');
  elsif not exists (select from app_public.users u where u.id = wanted) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such user.', '{"field": "assigneeId"}');
  end if;
  if ticket.buyer_id is not null then
    perform app_private.lock_purchase(ticket.buyer_id);
    update app_public.buyers b set assignee_id = wanted where b.id = ticket.buyer_id and b.deleted_at is null
      and b.assignee_id is distinct from wanted;
  else
    perform app_private.lock_lead(ticket.lead_id);
    update app_public.leads l set assignee_id = wanted where l.id = ticket.lead_id and l.deleted_at is null
      and l.assignee_id is distinct from wanted;
  end if;
  return true;
end $$;
comment on function app_private.reassign_by_ticket(app_public.escalation_tickets) is
  'Hands the purchase of a ticket, or its lead, to whom the resolution names.';
grant execute on function app_private.end_resolution to plat_worker;
