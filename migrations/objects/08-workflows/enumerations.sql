-- Enumerations of workflows, executions and escalations.

select app_private.describe_enum('workflow_status', 'Whether a workflow starts new executions.', array[
  ['DRAFT', 'In preparation; starts no executions.'],
  ['ENABLED', 'Starts executions by its trigger, by `createWorkflowExecution` and by `batchWorkflow`.'],
  ['DISABLED', 'Starts no new executions; running ones continue.'],
  ['ARCHIVED', 'Starts no executions; read-only.']
]);

select app_private.describe_enum('workflow_trigger_type',
  'Condition or person that starts executions of a workflow.', array[
  ['EVENT', 'An event of the subject, such as `lead.created`.'],
  ['SCHEDULE', 'A schedule, such as every Monday at 9 a.m.'],
  ['MANUAL', 'A user.'],
  ['BATCH', '`batchWorkflow`, for many subjects at once.'],
  ['API', 'A request of a program.']
]);

select app_private.describe_enum('workflow_subject', 'Record type that a workflow runs for.', array[
  ['LEAD', 'A person interested in a project.'],
  ['BUYER', 'A purchase.'],
  ['RESERVATION', 'A buyer''s claim on a unit.'],
  ['UNIT', 'A home for sale.'],
  ['APPOINTMENT', 'A scheduled meeting with a lead or buyer.'],
  ['TASK', 'Work assigned to a member.']
]);

select app_private.describe_enum('workflow_reentry', 'Whether a workflow can start again for the same subject.', array[
  ['NEVER', 'Only once per subject.'],
  ['AFTER_COMPLETION', 'Once the previous execution has ended.'],
  ['ALWAYS', 'At any time, even while another execution is running.']
]);

select app_private.describe_enum('workflow_step_type', 'Action of a workflow step.', array[
  ['SEND_EMAIL', 'Sends a mail to the lead, the buyer, a member or a given address.'],
  ['SEND_SMS', 'Sends a text message.'],
  ['CREATE_TASK', 'Creates a task for a member of the team.'],
  ['CREATE_NOTE', 'Adds a note to the lead.'],
  ['ASSIGN', 'Assigns the lead or purchase to a member.'],
  ['UPDATE_FIELD', 'Sets a field of the subject.'],
  ['ADD_TAG', 'Adds a tag to the subject.'],
  ['REMOVE_TAG', 'Removes a tag from the subject.'],
  ['WAIT', 'Pauses the execution until a time, or for a duration.'],
  ['WAIT_FOR_EVENT', 'Pauses the execution until an event occurs.'],
  ['BRANCH', 'Continues at one of two steps, depending on a condition.'],
  ['CALL_WEBHOOK', 'Sends an HTTP request.'],
  ['NOTIFY_TEAM', 'Notifies members of the team.'],
  ['DRAFT_WITH_AI', 'Generates a draft of a message for review.'],
  ['ESCALATE', 'Opens an escalation ticket.'],
  ['STOP', 'Ends the execution.']
]);

select app_private.describe_enum('step_error_policy', 'What happens when a workflow step fails.', array[
  ['RETRY', 'Retries the step several times; then fails the execution.'],
  ['SKIP', 'Continues with the next step.'],
  ['FAIL', 'Ends the execution as `FAILED`.'],
  ['ESCALATE', 'Opens an escalation ticket; the execution waits for its resolution.']
]);

select app_private.describe_enum('workflow_execution_status', 'Progress of a workflow execution.', array[
  ['PENDING', 'Created; no step has run yet.'],
  ['RUNNING', 'A step is running, or waits for a time or an event.'],
  ['PAUSED', 'No further step runs until the execution is resumed.'],
  ['COMPLETED', 'Reached its end.'],
  ['FAILED', 'Ended by an error; see `error`.'],
  ['CANCELLED', 'Cancelled; cannot be resumed.']
]);

select app_private.describe_enum('step_run_status', 'Outcome of a step run.', array[
  ['PENDING', 'Not started.'],
  ['RUNNING', 'Executing, or waiting for a time or an event.'],
  ['SUCCEEDED', 'Executed.'],
  ['FAILED', 'The last attempt failed.'],
  ['SKIPPED', 'Not executed: there was nothing to do, or its error policy or a person skipped it.'],
  ['CANCELLED', 'Cancelled with the execution.']
]);

select app_private.describe_enum('escalation_ticket_status', 'Progress of an escalation ticket.', array[
  ['OPEN', 'Awaits a decision.'],
  ['RESOLVING', 'An action was chosen and is being executed.'],
  ['RESOLVED', 'The action was executed.'],
  ['FAILED', 'The action failed; the ticket can be resolved again.'],
  ['EXPIRED', 'The deadline passed without a decision.']
]);

select app_private.describe_enum('escalation_kind', 'Reason for an escalation ticket.', array[
  ['WORKFLOW_FAILURE', 'A workflow step failed.'],
  ['APPROVAL_REQUIRED', 'A request awaits approval.'],
  ['AI_LOW_CONFIDENCE', 'A generated draft needs review.'],
  ['COMPLIANCE', 'Something may violate a rule or law.'],
  ['PAYMENT_DISPUTE', 'A payment is disputed at the bank.'],
  ['DUPLICATE_LEAD', 'Two leads may be the same person.'],
  ['INVENTORY_CONFLICT', 'Two parties claim the same unit.'],
  ['NO_RESPONSE', 'A person has not been answered in time, or has not answered.'],
  ['INTEGRATION_FAILURE', 'A connected application failed.'],
  ['OTHER', 'A reason that is not listed here.']
]);

select app_private.describe_enum('escalation_action', 'Decision that resolves an escalation ticket.', array[
  ['APPROVE', 'Approves the pending request.'],
  ['REJECT', 'Rejects the pending request.'],
  ['RETRY', 'Retries the failed operation.'],
  ['SKIP_STEP', 'Continues the workflow after the failed step.'],
  ['RESUME_EXECUTION', 'Resumes the workflow execution.'],
  ['CANCEL_EXECUTION', 'Cancels the workflow execution.'],
  ['REASSIGN', 'Assigns the lead or purchase to another member.'],
  ['MERGE', 'Merges the two leads.'],
  ['RELEASE_CLAIM', 'Ends the claim on the unit, which becomes available again.'],
  ['SEND_DRAFT', 'Sends the drafted message.'],
  ['REFUND', 'Refunds the payment.'],
  ['DISMISS', 'Closes the ticket without any effect.']
]);

select app_private.describe_enum('escalation_action_status',
  'Progress of the action chosen for an escalation ticket.', array[
  ['PENDING', 'Not executed yet.'],
  ['SUCCEEDED', 'Executed.'],
  ['FAILED', 'Could not be executed; the ticket can be resolved again.']
]);
