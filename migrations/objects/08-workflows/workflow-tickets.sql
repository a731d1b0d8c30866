-- Tickets of workflows. A failed step with ESCALATE, and a step of the type ESCALATE, open a ticket; the execution is
-- paused until the ticket is resolved, or the execution is resumed or cancelled.

create function app_private.open_execution_ticket(execution_id uuid, step app_public.workflow_steps, kind text,
  title text, description text, priority text,
  actions text[], assignee_id uuid default null, due_at timestamptz default null) returns uuid
language sql volatile as $$
  select app_private.open_ticket(kind, format('workflow execution %s, step %s', e.id, step.sequence), e.organization_id,
    left(title, 300), actions,
    project_id => e.project_id, description => description, priority => priority, lead_id => case
    when e.buyer_id is null then e.lead_id end, buyer_id => e.buyer_id,
    subject_type => lower(e.subject_type), subject_id => e.subject_id, workflow_execution_id => e.id,
    assignee_id => coalesce(assignee_id,
      app_private.assignee_of(lower(e.subject_type), e.subject_id, e.lead_id, e.buyer_id)), due_at => due_at,
    input => jsonb_build_object('sequence', step.sequence))
  from app_public.workflow_executions e where e.id = execution_id
$$;
comment on function app_private.open_execution_ticket(uuid, app_public.workflow_steps, text, text, text, text, text[],
  uuid, timestamptz) is
  'Opens a ticket about a step of an execution; the default assignee is that of the subject.';

-- Effect of a resolution.
create function app_private.execution_of_ticket(ticket app_public.escalation_tickets) returns
  app_public.workflow_executions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  execution app_public.workflow_executions;
begin
  select e.* into execution from app_public.workflow_executions e where e.id = ticket.workflow_execution_id for no key
    update;
  if execution.id is null then
    perform app_hidden.fail('CONFLICT', 'This ticket does not refer to a workflow execution.');
  end if;
  return execution;
end $$;
comment on function app_private.execution_of_ticket(app_public.escalation_tickets) is
  'The execution that a ticket is about, locked, so between two steps.';

create function app_private.require_failed_step(ticket app_public.escalation_tickets) returns
  app_public.workflow_executions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  execution app_public.workflow_executions := app_private.execution_of_ticket(ticket);
begin
  if execution.status <> 'PAUSED' or execution.current_step is distinct from (ticket.input ->> 'sequence')::int then
    perform app_hidden.fail('CONFLICT',
      format('The execution is %s and no longer waits at this step.', execution.status));
  end if;
  return execution;
end $$;
comment on function app_private.require_failed_step(app_public.escalation_tickets) is
  'The execution that waits at the step that the ticket is about; refuses one that has gone on.';

create function app_private.retry_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.resume_executions(array[(app_private.require_failed_step(ticket)).id]);
  return true;
end $$;

create function app_private.skip_step_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  execution app_public.workflow_executions := app_private.require_failed_step(ticket);
  step app_public.workflow_steps;
begin
  select s.* into step from app_public.workflow_steps s
    where s.workflow_id = execution.workflow_id and s.revision = execution.steps_revision
      and s.sequence = execution.current_step;
  perform set_config('plat.service', 'on', true);
  perform app_private.record_outcomes(step,
    array[row(execution.id, execution.attempts + 1, null)::app_private.step_work],
    array[row(execution.id, 'SKIPPED', null, 'Omitted, as an escalation ticket was resolved.', null,
      null)::app_private.step_outcome]);
  perform set_config('plat.service', before, true);
  perform app_private.resume_executions(array[execution.id]);
  return true;
end $$;

create function app_private.resume_execution_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  execution app_public.workflow_executions := app_private.execution_of_ticket(ticket);
begin
  -- If this was the last step, there is nothing to resume; a resumed execution continues.
  if execution.status in ('FAILED', 'CANCELLED') then
    perform app_hidden.fail('CONFLICT', format('The execution is %s.', execution.status));
  end if;
  perform app_private.resume_executions(array[execution.id]);
  return true;
end $$;

create function app_private.cancel_execution_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  execution app_public.workflow_executions := app_private.execution_of_ticket(ticket);
begin
  if execution.status in ('COMPLETED', 'FAILED') then
    perform app_hidden.fail('CONFLICT', format('The execution is already %s.', execution.status));
  end if;
  perform app_private.cancel_executions(array[execution.id],
    coalesce(ticket.note, 'Cancelled, as an escalation ticket was resolved.'));
  return true;
end $$;
comment on function app_private.retry_by_ticket(app_public.escalation_tickets) is
  'RETRY: takes the step again at which the execution waits.';
comment on function app_private.skip_step_by_ticket(app_public.escalation_tickets) is
  'SKIP_STEP: continues with the step after the one at which the execution waits.';
comment on function app_private.resume_execution_by_ticket(app_public.escalation_tickets) is
  'RESUME_EXECUTION: resumes the execution.';
comment on function app_private.cancel_execution_by_ticket(app_public.escalation_tickets) is
  'CANCEL_EXECUTION: ends the execution.';
insert into app_hidden.ticket_actions (action, kind, permission, perform) values
  ('RETRY', 'WORKFLOW_FAILURE', null, 'app_private.retry_by_ticket'),
  ('SKIP_STEP', 'WORKFLOW_FAILURE', null, 'app_private.skip_step_by_ticket'),
  ('RESUME_EXECUTION', null, null, 'app_private.resume_execution_by_ticket'),
  ('CANCEL_EXECUTION', null, null, 'app_private.cancel_execution_by_ticket');

-- Drafts are emails to leads.

