-- Escalation tickets: decisions that the service leaves to people. Code that encounters such a case opens a ticket with
-- the possible actions; a user chooses one, which is executed once, and its result is stored.
--
--   OPEN → RESOLVING → RESOLVED
--                    → FAILED, with the reason; nothing was done, and it can be resolved again
--   OPEN, FAILED → EXPIRED at dueAt
--
-- An action is a row of app_hidden.ticket_actions: a module adds a function and a row.

-- A ticket about a lead or purchase is visible to those who see that. The check is skipped for viewers who see all of
-- them.
create policy seers on app_public.escalation_tickets for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('workflow.read'))::uuid[]) and (
    (organization_id = any ((select app_hidden.viewer_organizations('lead.read'))::uuid[])
      and organization_id = any ((select app_hidden.viewer_organizations('buyer.read'))::uuid[]))
    -- PERF: looked up one by one; as `exists` it would be a set of all leads that the viewer sees.
    or ((lead_id is null or (select true from app_public.leads l where l.id = lead_id))
      and (buyer_id is null or (select true from app_public.buyers b where b.id = buyer_id)))));
create policy managers_update on app_public.escalation_tickets for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('workflow.manage'))::uuid[]));

select app_private.make_record('escalation_tickets', 'escalation_ticket', 'workflow.manage');
select app_private.make_state_machine('escalation_tickets', 'escalation_ticket',
  steps => array[
    ['OPEN', 'RESOLVING', 'service'], ['FAILED', 'RESOLVING', 'service'], ['RESOLVING', 'RESOLVED', 'service'],
    ['RESOLVING', 'FAILED', 'service'],
    ['OPEN', 'EXPIRED', 'service'], ['FAILED', 'EXPIRED', 'service']],
  initial => array['OPEN']);
select app_private.make_deadline('escalation_ticket', 'app_public.escalation_tickets', 'due_at',
  $$new.status in ('OPEN', 'FAILED')$$, '{status}',
  'app_private.expire_escalation_ticket(uuid)');

grant select on app_public.escalation_tickets to plat_user, plat_anonymous;
grant update (priority, assignee_id, due_at) on app_public.escalation_tickets to plat_user;

comment on table app_public.escalation_tickets is
  E'@defaultOrder opened_at desc\n\n'
  'A case that the service could not decide, and that a person resolves by choosing an action.';
comment on column app_public.escalation_tickets.cause is
  E'@impersonal\n@secret\n@behavior -*\n\nWhat it is about, as the service recognises it: one ticket is open for it '
  'at a time.';
comment on column app_public.escalation_tickets.input is
  E'@personal\n@secret\n@behavior -*\n\nWhat the actions need to know.';
comment on column app_public.escalation_tickets.status is E'@filter\n\nCurrent status.';
comment on column app_public.escalation_tickets.status_changed_at is 'When the status last changed.';
comment on column app_public.escalation_tickets.kind is E'@filter\n\nReason for the ticket.';
comment on column app_public.escalation_tickets.priority is E'@filter\n\nUrgency of the ticket.';
comment on column app_public.escalation_tickets.title is E'@personal\n\nSummary of what happened.';
comment on column app_public.escalation_tickets.description is E'@personal\n\nDetailed description of what happened.';
comment on column app_public.escalation_tickets.project_id is E'@filter projectIds\n\nThe project that it belongs to.';
comment on column app_public.escalation_tickets.lead_id is
  E'@filter leadIds\n@formerFilter leadId Removed after 2028-01-01.\n\nThe related lead.';
comment on column app_public.escalation_tickets.buyer_id is
  E'@filter buyerIds\n@formerFilter buyerId Removed after 2028-01-01.\n\nThe related purchase.';
comment on column app_public.escalation_tickets.subject_type is
  E'@impersonal\n\nType of the related record, such as reservation.';
comment on column app_public.escalation_tickets.subject_id is
  E'@filter subjectIds\n@formerFilter subjectId Removed after 2028-01-01.\n\nId of the related record.';
comment on column app_public.escalation_tickets.workflow_execution_id is
  E'@behavior -*\n\nThe workflow run that it is about.';
comment on column app_public.escalation_tickets.generation_id is E'@behavior -*\n\nThe related draft.';
comment on column app_public.escalation_tickets.available_actions is 'Actions that can resolve the ticket.';
comment on column app_public.escalation_tickets.action is
  'Action that resolved the ticket; final once it has succeeded.';
comment on column app_public.escalation_tickets.action_status is 'Progress of the action.';
comment on column app_public.escalation_tickets.action_error is
  E'@personal\n\nError message of the failed action; null otherwise.';
comment on column app_public.escalation_tickets.note is E'@personal\n\nComment on the decision.';
comment on column app_public.escalation_tickets.assignee_id is
  E'@filter assigneeIds\n\nThe team member who should resolve the ticket.';
comment on column app_public.escalation_tickets.opened_at is E'@filter\n\nWhen the service opened the ticket.';
comment on column app_public.escalation_tickets.due_at is
  E'@filter\n\nDeadline; an unresolved ticket becomes EXPIRED then.';
comment on column app_public.escalation_tickets.resolved_at is 'When the ticket was resolved; null until then.';
comment on column app_public.escalation_tickets.resolved_by_id is 'User who chose the action.';
comment on constraint escalation_tickets_organization_id_fkey on app_public.escalation_tickets is
  E'@parent\n'
  '@fieldName organization\n'
  '@foreignFieldName escalationTickets\n'
  '@backwardPermission org.member\n'
  '@backwardDescription Escalation tickets, open and decided, latest first; null for non-members.\n\n'
  'The organization.';
comment on constraint escalation_tickets_project_id_fkey on app_public.escalation_tickets is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint escalation_tickets_lead_id_fkey on app_public.escalation_tickets is
  E'@fieldName lead\n@backwardBehavior -*\n\nThe related lead.';
comment on constraint escalation_tickets_buyer_id_fkey on app_public.escalation_tickets is
  E'@fieldName buyer\n@backwardBehavior -*\n\nThe related purchase.';
comment on constraint escalation_tickets_assignee_id_fkey on app_public.escalation_tickets is
  E'@fieldName assignee\n@backwardBehavior -*\n\nThe team member who should resolve the ticket.';
comment on constraint escalation_tickets_resolved_by_id_fkey on app_public.escalation_tickets is
  E'@fieldName resolvedBy\n@backwardBehavior -*\n\nUser who chose the action.';
comment on constraint escalation_tickets_workflow_execution_id_fkey on app_public.escalation_tickets is
  E'@fieldName workflowExecution\n@foreignFieldName escalationTickets\n@backwardDescription Escalation tickets of '
  'the execution, latest first.\n\n'
  'The related workflow execution.';
comment on constraint escalation_tickets_generation_id_fkey on app_public.escalation_tickets is
  E'@fieldName generation\n@backwardBehavior -*\n\nThe related draft.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('escalation_ticket', 'status', 'RESOLVED', 'resolved'), ('escalation_ticket', 'status', 'FAILED', 'failed'),
  ('escalation_ticket', 'status', 'EXPIRED', 'expired');

create trigger _060_refuse_archived before insert or update or delete on app_public.escalation_tickets
  for each row execute function app_private.tg__refuse_archived();

create function app_private.tg_escalation_tickets__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.assignee_id is not null and (tg_op = 'INSERT' or new.assignee_id is distinct from old.assignee_id)
    and not exists (
    select from app_public.organization_user_connections m where m.user_id = new.assignee_id
      and m.organization_id = new.organization_id) then
    perform app_hidden.fail('BAD_USER_INPUT', 'A ticket can only be assigned to a member of the organization.',
      '{"field": "assigneeId"}');
  end if;
  if tg_op = 'UPDATE' and not coalesce(app_hidden.is_service(), false) then
    if old.status not in ('OPEN', 'FAILED') and row(old.priority, old.assignee_id, old.due_at) is distinct
      from row(new.priority, new.assignee_id, new.due_at) then
      perform app_hidden.fail('CONFLICT',
        format('This ticket is %s and can no longer be changed.', old.status), '{"field": "id"}');
    elsif new.due_at is distinct from old.due_at and new.due_at <= now() then
      perform app_hidden.fail('BAD_USER_INPUT', 'The due time of a ticket must be in the future.',
        '{"field": "dueAt"}');
    end if;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.escalation_tickets for each row
  execute function app_private.tg_escalation_tickets__prepare();

comment on table app_hidden.ticket_actions is
  'What an action of a ticket does, for tickets of a kind or, without one, of all others: `perform` is a function '
  'of the ticket that returns whether it is done, null for nothing to do; Requires `permission` in addition to '
  'workflow.run.';
comment on column app_hidden.ticket_actions.perform is
  'Such as app_private.reassign_by_ticket: takes the row of escalation_tickets, in which note, resolved_by_id and '
  'input are those of the resolution. An exception makes the ticket FAILED and undoes all changes. False means '
  'that it continues in the background, which ends with app_private.end_resolution(ticket id, error).';

insert into app_hidden.ticket_actions (action, permission, perform) values
  -- The decision is in the ticket and its event; a module that acts on it adds a row for its kind.
  ('APPROVE', null, null), ('REJECT', null, null), ('DISMISS', null, null),
  ('REASSIGN', 'lead.write', 'app_private.reassign_by_ticket');
