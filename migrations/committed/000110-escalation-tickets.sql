--! Previous: sha1:54ff5cc8b75e21cf545b3800b8cf55a7aa8aba7b
--! Hash: sha1:54bdefd51400bbc82ae3c33a4a2c0d4ca5770dd6
--! Message: escalation-tickets

-- Escalation tickets: what the service cannot decide by itself, for a person to decide. Whoever meets such a thing opens a
-- ticket with the actions that could end it; a person chooses one, which is executed once, and its outcome is kept.
--
--   OPEN → RESOLVING → RESOLVED
--                    → FAILED, with the reason; nothing was done, and it can be resolved again
--   OPEN, FAILED → EXPIRED at dueAt
--
-- An action is a row of app_hidden.ticket_actions: a chapter adds what it can do by a function and a row.

select app_private.create_enum('escalation_ticket_status', 'How far an escalation ticket is.', array[
  ['OPEN', 'Waits for somebody to decide.'], ['RESOLVING', 'The action was chosen and is being executed.'], ['RESOLVED', 'The action was executed.'],
  ['FAILED', 'The action could not be executed; choose again.'], ['EXPIRED', 'Nobody decided in time.']]);
select app_private.create_enum('escalation_kind', 'What an escalation ticket is about.', array[
  ['WORKFLOW_FAILURE', 'A step of a workflow failed.'], ['APPROVAL_REQUIRED', 'Something waits for approval.'],
  ['AI_LOW_CONFIDENCE', 'A draft of the drafting service needs a look.'], ['COMPLIANCE', 'Something may not be allowed.'],
  ['PAYMENT_DISPUTE', 'A payment is disputed.'], ['DUPLICATE_LEAD', 'Two leads may be one person.'],
  ['INVENTORY_CONFLICT', 'Two parties count on one home.'], ['NO_RESPONSE', 'Somebody was not answered, or did not answer.'],
  ['INTEGRATION_FAILURE', 'A connected application failed.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('escalation_action', 'What ends an escalation ticket.', array[
  ['APPROVE', 'Approves what waits.'], ['REJECT', 'Refuses what waits.'], ['RETRY', 'Tries again what failed.'], ['SKIP_STEP', 'Goes on without the step.'],
  ['RESUME_EXECUTION', 'Lets the workflow go on.'], ['CANCEL_EXECUTION', 'Ends the workflow.'],
  ['REASSIGN', 'Hands the lead or purchase to somebody else.'], ['MERGE', 'Makes two leads one.'],
  ['RELEASE_CLAIM', 'Takes the home from whoever has it, so that it is for sale again.'], ['SEND_DRAFT', 'Sends the draft.'],
  ['REFUND', 'Gives the money back.'], ['DISMISS', 'Does nothing.']]);
select app_private.create_enum('escalation_action_status', 'What became of the action of an escalation ticket.', array[
  ['PENDING', 'Not done yet.'], ['SUCCEEDED', 'Done.'], ['FAILED', 'Could not be done.']]);

create table app_public.escalation_tickets (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  project_id uuid,
  status app_public.escalation_ticket_status not null default 'OPEN',
  status_changed_at timestamptz not null default now(),
  kind app_public.escalation_kind not null,
  priority app_public.task_priority not null default 'MEDIUM',
  title app_public.short_text not null,
  description app_public.long_text,
  lead_id uuid,
  buyer_id uuid,
  subject_type text,
  subject_id uuid,
  workflow_execution_id uuid,
  generation_id uuid,
  available_actions app_public.escalation_action[] not null constraint escalation_tickets_actions check (cardinality(available_actions) > 0),
  action app_public.escalation_action,
  action_status app_public.escalation_action_status,
  action_error app_public.long_text,
  note app_public.long_text,
  assignee_id uuid references app_public.users on delete set null,
  opened_at timestamptz not null default now(),
  due_at timestamptz,
  resolved_at timestamptz,
  resolved_by_id uuid references app_public.users on delete set null,
  cause text not null,
  input jsonb not null default '{}',
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint escalation_tickets_action_chosen check ((action is null) = (action_status is null)),
  constraint escalation_tickets_subject check (num_nonnulls(subject_type, subject_id) in (0, 2)),
  constraint escalation_tickets_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete cascade,
  constraint escalation_tickets_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id) on delete set null (lead_id),
  constraint escalation_tickets_buyer_id_fkey foreign key (buyer_id, project_id) references app_public.buyers (id, project_id) on delete set null (buyer_id)
);
-- One cause, one ticket, for as long as nobody has decided.
create unique index escalation_tickets_cause on app_public.escalation_tickets (organization_id, cause) where status in ('OPEN', 'RESOLVING', 'FAILED');
create index escalation_tickets_organization on app_public.escalation_tickets (organization_id, opened_at desc, id desc);
create index escalation_tickets_organization_status on app_public.escalation_tickets (organization_id, status, opened_at desc, id desc);
create index escalation_tickets_project on app_public.escalation_tickets (project_id);
create index escalation_tickets_lead on app_public.escalation_tickets (lead_id);
create index escalation_tickets_buyer on app_public.escalation_tickets (buyer_id);
create index escalation_tickets_subject on app_public.escalation_tickets (subject_id);
create index escalation_tickets_workflow_execution on app_public.escalation_tickets (workflow_execution_id, id desc);
create index escalation_tickets_generation on app_public.escalation_tickets (generation_id);
create index escalation_tickets_assignee on app_public.escalation_tickets (assignee_id);
create index escalation_tickets_resolved_by on app_public.escalation_tickets (resolved_by_id);

alter table app_public.escalation_tickets enable row level security;
-- A ticket about a lead or purchase is seen by those who see that. Whoever sees all of them is not asked about each.
create policy seers on app_public.escalation_tickets for select to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('workflow.read'))) and (
    (lead_id is null and buyer_id is null)
    or organization_id = any (array(select app_hidden.viewer_organizations('lead.read')))
    -- PERF: looked up one by one; as `exists` it would be a set of all leads that the viewer sees.
    or ((lead_id is null or (select true from app_public.leads l where l.id = lead_id))
      and (buyer_id is null or (select true from app_public.buyers b where b.id = buyer_id)))));
create policy managers_update on app_public.escalation_tickets for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('workflow.manage'))));
grant select on app_public.escalation_tickets to plat_user, plat_anonymous, plat_worker;
grant update (priority, assignee_id, due_at) on app_public.escalation_tickets to plat_user;

comment on column app_public.escalation_tickets.cause is E'@secret\n@behavior -*\n\nWhat it is about, as the service recognises it: one ticket is open for it at a time.';
comment on column app_public.escalation_tickets.input is E'@secret\n@behavior -*\n\nWhat the actions need to know.';
insert into app_private.event_names (subject, column_name, value, name) values
  ('escalation_ticket', 'status', 'RESOLVED', 'resolved'), ('escalation_ticket', 'status', 'FAILED', 'failed'), ('escalation_ticket', 'status', 'EXPIRED', 'expired');
select app_private.make_record('escalation_tickets', 'escalation_ticket', 'workflow.manage');
create trigger _060_refuse_archived before insert or update or delete on app_public.escalation_tickets
  for each row execute function app_private.tg__refuse_archived();
select app_private.make_state_machine('escalation_tickets', 'escalation_ticket',
  steps => array[
    ['OPEN', 'RESOLVING', 'service'], ['FAILED', 'RESOLVING', 'service'], ['RESOLVING', 'RESOLVED', 'service'], ['RESOLVING', 'FAILED', 'service'],
    ['OPEN', 'EXPIRED', 'service'], ['FAILED', 'EXPIRED', 'service']],
  initial => array['OPEN']);

create function app_private.tg_escalation_tickets__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.assignee_id is not null and (tg_op = 'INSERT' or new.assignee_id is distinct from old.assignee_id) and not exists (
    select from app_public.organization_user_connections m where m.user_id = new.assignee_id and m.organization_id = new.organization_id) then
    perform app_hidden.fail('BAD_USER_INPUT', 'A ticket is assigned to a member of the organization.', '{"field": "assigneeId"}');
  end if;
  if tg_op = 'UPDATE' and not coalesce(app_hidden.is_service(), false) then
    if old.status not in ('OPEN', 'FAILED') and row(old.priority, old.assignee_id, old.due_at) is distinct from row(new.priority, new.assignee_id, new.due_at) then
      perform app_hidden.fail('CONFLICT', format('This ticket is %s; nothing about it is changed any more.', old.status), '{"field": "id"}');
    elsif new.due_at is distinct from old.due_at and new.due_at <= now() then
      perform app_hidden.fail('BAD_USER_INPUT', 'A ticket is due in the future.', '{"field": "dueAt"}');
    end if;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.escalation_tickets for each row execute function app_private.tg_escalation_tickets__prepare();

create function app_private.settle_escalation_ticket(ticket_id uuid) returns void
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
comment on function app_private.settle_escalation_ticket(uuid) is 'Ends a ticket that nobody decided in time.';
select app_private.make_deadline('escalation_ticket', 'app_public.escalation_tickets', 'due_at', $$new.status in ('OPEN', 'FAILED')$$, '{status}',
  'app_private.settle_escalation_ticket(uuid)');

--------------------------------------------------------------------------------------------------------
-- Actions.

create table app_hidden.ticket_actions (
  action app_public.escalation_action not null references app_public.escalation_action_values,
  kind app_public.escalation_kind references app_public.escalation_kind_values,
  permission text,
  perform text,
  unique nulls not distinct (action, kind)
);
create index ticket_actions_kind on app_hidden.ticket_actions (kind);
alter table app_hidden.ticket_actions enable row level security;
comment on table app_hidden.ticket_actions is
  'What an action of a ticket does, for tickets of a kind or, without one, of all others: `perform` is a function of the ticket that returns whether it is done, null for nothing to do; `permission` is needed beside workflow.run.';
comment on column app_hidden.ticket_actions.perform is
  'Such as app_private.reassign_by_ticket: takes the row of escalation_tickets, in which note, resolved_by_id and input are those of the resolution. What it raises makes the ticket FAILED, with nothing done; false says that it goes on elsewhere, which ends with app_private.end_resolution(ticket id, error).';

create function app_private.open_ticket(
  kind text, cause text, organization_id uuid, title text, available_actions text[],
  project_id uuid default null, description text default null, priority text default 'MEDIUM',
  lead_id uuid default null, buyer_id uuid default null, subject_type text default null, subject_id uuid default null,
  workflow_execution_id uuid default null, generation_id uuid default null, assignee_id uuid default null, due_at timestamptz default null,
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
    where not exists (select from app_hidden.ticket_actions t where t.action = a and (t.kind = open_ticket.kind or t.kind is null)) limit 1;
  if found then
    raise exception 'nothing performs the action % of tickets of the kind %', unknown, kind;
  end if;
  for attempt in 1 .. 3 loop
    select t.id into result from app_public.escalation_tickets t
      where t.organization_id = organization_id and t.cause = cause and t.status in ('OPEN', 'RESOLVING', 'FAILED');
    exit when found;
    -- What is found out in an archived project is for people too.
    perform set_config('plat.clock', 'on', true);
    insert into app_public.escalation_tickets (kind, cause, organization_id, project_id, title, description, priority, lead_id, buyer_id, subject_type, subject_id,
        workflow_execution_id, generation_id, available_actions, assignee_id, due_at, input)
      values (kind, cause, organization_id, project_id, left(btrim(title), 300), nullif(left(btrim(description), 20000), ''), coalesce(priority, 'MEDIUM'), lead_id, buyer_id,
        subject_type, subject_id, workflow_execution_id, generation_id, available_actions::app_public.escalation_action[],
        -- Whoever left meanwhile keeps no ticket from being opened.
        (select m.user_id from app_public.organization_user_connections m where m.organization_id = organization_id and m.user_id = assignee_id),
        due_at, coalesce(input, '{}'))
      on conflict do nothing returning id into result;
    perform set_config('plat.clock', clock, true);
    exit when result is not null;
  end loop;
  return result;
end $$;
comment on function app_private.open_ticket is
  'Opens an escalation ticket and returns its id; where one is open for the same cause in the organization, returns that one instead. The available actions are those of app_hidden.ticket_actions; input is what they need to know.';

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
      action_status = case when error is null then 'SUCCEEDED' else 'FAILED' end, action_error = nullif(left(btrim(error), 20000), ''),
      resolved_at = case when error is null then now() end
    where t.id = ticket_id and t.status = 'RESOLVING';
  ended := found;
  perform set_config('plat.clock', clock, true);
  perform set_config('plat.service', service, true);
  return ended;
end $$;
comment on function app_private.end_resolution(uuid, text) is
  'Ends the action of a ticket that is RESOLVING: it succeeded, or failed for the reason given. False, and nothing done, when it had ended already.';

create function app_private.resolve_ticket(ticket_id uuid, chosen text, note text, assignee_id uuid, expected_version int) returns app_public.escalation_tickets
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  ticket app_public.escalation_tickets;
  handler app_hidden.ticket_actions;
  message text;
  refusal text;
  done boolean := true;
begin
  -- One after the other: whoever comes second finds what the first one did.
  select t.* into ticket from app_public.escalation_tickets t where t.id = ticket_id for no key update;
  if not app_hidden.organization_can(ticket.organization_id, 'workflow.run') then
    perform app_hidden.fail('FORBIDDEN', 'Resolving a ticket takes the permission workflow.run.', '{"permission": "workflow.run"}');
  elsif chosen is null or chosen <> all (ticket.available_actions::text[]) then
    perform app_hidden.fail('BAD_USER_INPUT', format('This ticket is resolved by one of %s.', array_to_string(ticket.available_actions::text[], ', ')), '{"field": "action"}');
  end if;
  select a.* into handler from app_hidden.ticket_actions a where a.action = chosen and (a.kind = ticket.kind or a.kind is null) order by a.kind nulls last limit 1;
  if handler.permission is not null and not app_hidden.deal_can(ticket.organization_id, ticket.project_id,
      coalesce((select b.assignee_id from app_public.buyers b where b.id = ticket.buyer_id), (select l.assignee_id from app_public.leads l where l.id = ticket.lead_id)),
      handler.permission) then
    perform app_hidden.fail('FORBIDDEN', format('The action %s takes the permission %s.', chosen, handler.permission), jsonb_build_object('permission', handler.permission));
  end if;
  -- Chosen already: the same answer, without a second effect.
  if ticket.status in ('RESOLVING', 'RESOLVED') and ticket.action = chosen then
    return ticket;
  elsif ticket.status not in ('OPEN', 'FAILED') or ticket.due_at <= clock_timestamp() then
    perform app_hidden.fail('INVALID_TRANSITION', case when ticket.action is not null and ticket.status <> 'FAILED'
          then format('This ticket is %s by the action %s.', ticket.status, ticket.action) else 'This ticket is EXPIRED.' end,
      jsonb_build_object('from', case when ticket.due_at <= clock_timestamp() and ticket.status in ('OPEN', 'FAILED') then 'EXPIRED' else ticket.status end,
        'to', 'RESOLVING', 'field', 'action', 'allowedTransitions', jsonb_build_array()));
  elsif expected_version <> ticket.version then
    perform app_hidden.fail('VERSION_MISMATCH', 'Somebody else changed this record meanwhile; read it again and repeat your change.',
      jsonb_build_object('currentVersion', ticket.version));
  elsif assignee_id is not null and chosen <> 'REASSIGN' then
    perform app_hidden.fail('BAD_USER_INPUT', 'Only REASSIGN has an assignee.', '{"field": "assigneeId"}');
  end if;
  perform set_config('plat.service', 'on', true);
  update app_public.escalation_tickets t set status = 'RESOLVING', action = chosen, action_status = 'PENDING', action_error = null, note = resolve_ticket.note,
      resolved_by_id = app_public.current_user_id(),
      input = case when resolve_ticket.assignee_id is null then t.input - 'assignee_id' else t.input || jsonb_build_object('assignee_id', resolve_ticket.assignee_id) end
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
        -- What the caller did wrong is told to the caller; nothing was chosen then.
        if sqlstate = 'PLAT0' and refusal::jsonb ->> 'code' in ('BAD_USER_INPUT', 'FORBIDDEN', 'UNAUTHENTICATED', 'RATE_LIMITED') then
          raise;
        elsif sqlstate <> 'PLAT0' then
          raise warning 'action % of ticket % failed: %', chosen, ticket.id, message;
          message := 'This could not be done, and nothing was changed. Try again, or resolve the ticket in another way.';
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
comment on function app_private.resolve_ticket(uuid, text, text, uuid, int) is 'Resolves a ticket that the caller has seen as the viewer.';
grant execute on function app_private.resolve_ticket to plat_user;

create function app_public.resolve_escalation_ticket(id uuid, action app_public.escalation_action, note text default null, assignee_id uuid default null,
  expected_version int default null) returns app_public.escalation_tickets
language plpgsql volatile as $$
declare
  ticket_id uuid;
begin
  perform app_hidden.require_viewer();
  -- As the viewer: the policy says who sees it.
  select t.id into ticket_id from app_public.escalation_tickets t where t.id = resolve_escalation_ticket.id;
  if ticket_id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such escalation ticket.', '{"field": "id"}');
  end if;
  return app_private.resolve_ticket(ticket_id, action, app_hidden.checked(nullif(btrim(note), ''), 'app_public.long_text', 'note'), assignee_id, expected_version);
end $$;
grant execute on function app_public.resolve_escalation_ticket to plat_user, plat_anonymous;
comment on function app_public.resolve_escalation_ticket is $$
@arg action What is to be done: one of its availableActions.
@arg note A word about the decision.
@arg expectedVersion The version that was read; refused with VERSION_MISMATCH where somebody changed the ticket meanwhile.
@arg assigneeId With REASSIGN: who gets the lead or purchase; the assignee of the ticket where left out, else whoever resolves it.

Resolves an escalation ticket by one of its actions, which is executed once: the same action again gives the same answer, another one is refused. Where the action fails the ticket is FAILED, with the reason in actionError and nothing done, and can be resolved again. Takes the permission workflow.run, and what the action takes.$$;

create function app_private.reassign_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  wanted uuid := coalesce((ticket.input ->> 'assignee_id')::uuid, ticket.assignee_id, ticket.resolved_by_id);
begin
  if num_nonnulls(ticket.lead_id, ticket.buyer_id) = 0 then
    perform app_hidden.fail('CONFLICT', 'This ticket is about no lead or purchase that could be handed on.');
  elsif not exists (select from app_public.users u where u.id = wanted) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such user.', '{"field": "assigneeId"}');
  end if;
  if ticket.buyer_id is not null then
    perform app_private.lock_purchase(ticket.buyer_id);
    update app_public.buyers b set assignee_id = wanted where b.id = ticket.buyer_id and b.deleted_at is null and b.assignee_id is distinct from wanted;
  else
    perform app_private.lock_lead(ticket.lead_id);
    update app_public.leads l set assignee_id = wanted where l.id = ticket.lead_id and l.deleted_at is null and l.assignee_id is distinct from wanted;
  end if;
  return true;
end $$;
comment on function app_private.reassign_by_ticket(app_public.escalation_tickets) is 'Hands the purchase of a ticket, or its lead, to whom the resolution names.';

insert into app_hidden.ticket_actions (action, permission, perform) values
  -- What was decided is in the ticket and its event; a chapter that has something to do then adds a row for its kind.
  ('APPROVE', null, null), ('REJECT', null, null), ('DISMISS', null, null),
  ('REASSIGN', 'lead.write', 'app_private.reassign_by_ticket');

--------------------------------------------------------------------------------------------------------

comment on table app_public.escalation_tickets is E'@defaultOrder opened_at desc\n\nSomething that the service leaves to a person to decide.';
comment on column app_public.escalation_tickets.status is E'@filter\n\nHow far it is.';
comment on column app_public.escalation_tickets.status_changed_at is 'Since when it has its status.';
comment on column app_public.escalation_tickets.kind is E'@filter\n\nWhat it is about.';
comment on column app_public.escalation_tickets.priority is E'@filter\n\nHow urgent it is.';
comment on column app_public.escalation_tickets.title is 'What happened, in a line.';
comment on column app_public.escalation_tickets.description is 'What happened, at length.';
comment on column app_public.escalation_tickets.project_id is E'@filter projectIds\n\nThe project.';
comment on column app_public.escalation_tickets.lead_id is E'@filter leadId\n\nThe lead that it is about.';
comment on column app_public.escalation_tickets.buyer_id is E'@filter buyerId\n\nThe purchase that it is about.';
comment on column app_public.escalation_tickets.subject_type is 'The kind of record that it is about, such as reservation.';
comment on column app_public.escalation_tickets.subject_id is E'@filter subjectId\n\nThe record that it is about.';
comment on column app_public.escalation_tickets.workflow_execution_id is E'@behavior -*\n\nThe workflow run that it is about.';
comment on column app_public.escalation_tickets.generation_id is E'@behavior -*\n\nThe draft that it is about.';
comment on column app_public.escalation_tickets.available_actions is 'What it can be resolved by.';
comment on column app_public.escalation_tickets.action is 'What it was resolved by; once it succeeded, for good.';
comment on column app_public.escalation_tickets.action_status is 'What became of the action.';
comment on column app_public.escalation_tickets.action_error is 'Why the action failed.';
comment on column app_public.escalation_tickets.note is 'A word about the decision.';
comment on column app_public.escalation_tickets.assignee_id is E'@filter assigneeIds\n\nWho is to decide.';
comment on column app_public.escalation_tickets.opened_at is E'@filter\n\nWhen it was opened.';
comment on column app_public.escalation_tickets.due_at is E'@filter\n\nUntil when it can be resolved; then it is EXPIRED.';
comment on column app_public.escalation_tickets.resolved_at is 'When it was resolved.';
comment on column app_public.escalation_tickets.resolved_by_id is 'Who chose the action.';
comment on constraint escalation_tickets_organization_id_fkey on app_public.escalation_tickets is
  E'@parent\n@fieldName organization\n@foreignFieldName escalationTickets\n@backwardPermission org.member\n@backwardDescription What waits for a decision, or was decided, latest first; null for outsiders.\n\nThe organization.';
comment on constraint escalation_tickets_project_id_fkey on app_public.escalation_tickets is E'@fieldName project\n@backwardBehavior -*\n\nThe project.';
comment on constraint escalation_tickets_lead_id_fkey on app_public.escalation_tickets is E'@fieldName lead\n@backwardBehavior -*\n\nThe lead that it is about.';
comment on constraint escalation_tickets_buyer_id_fkey on app_public.escalation_tickets is E'@fieldName buyer\n@backwardBehavior -*\n\nThe purchase that it is about.';
comment on constraint escalation_tickets_assignee_id_fkey on app_public.escalation_tickets is E'@fieldName assignee\n@backwardBehavior -*\n\nWho is to decide.';
comment on constraint escalation_tickets_resolved_by_id_fkey on app_public.escalation_tickets is E'@fieldName resolvedBy\n@backwardBehavior -*\n\nWho chose the action.';
