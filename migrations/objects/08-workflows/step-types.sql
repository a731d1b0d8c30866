comment on table app_hidden.workflow_step_types is
  'The types of steps: the kinds of subjects that have what one takes (null: all), and why one cannot be used at '
  'present.';

comment on column app_hidden.workflow_step_types.changes_records is
  'Whether it changes, or writes to, the lead or buyer of the subject.';

insert into app_hidden.workflow_step_types (type, changes_records, subjects, refusal)
select v.value,
  v.value in ('SEND_EMAIL', 'SEND_SMS', 'CREATE_TASK', 'CREATE_NOTE', 'ASSIGN', 'UPDATE_FIELD', 'ADD_TAG', 'REMOVE_TAG',
    'DRAFT_WITH_AI'),
  case when v.value in ('CREATE_NOTE', 'ASSIGN', 'ADD_TAG', 'REMOVE_TAG', 'SEND_SMS', 'DRAFT_WITH_AI')
    then array['LEAD', 'BUYER', 'RESERVATION', 'APPOINTMENT', 'TASK'] end,
  null
from app_public.workflow_step_type_values v;

comment on table app_hidden.workflow_step_members is
  'Allowed fields in the config of a step: name, kind, limits, and the field and value with which alone it is '
  'allowed (and required).';

insert into app_hidden.workflow_step_members (type, position, name, kind, required, least, most, choices, with_name,
  with_value, description) values
  ('SEND_EMAIL', 1, 'to', 'choice', false, null, null, '{PERSON,ASSIGNEE,MEMBER,ADDRESS}', null, null,
    'Recipient: the lead or buyer (default), their assignee, a member or an address.'),
  ('SEND_EMAIL', 2, 'memberId', 'member', false, null, null, null, 'to', 'MEMBER', 'The member.'),
  ('SEND_EMAIL', 3, 'address', 'email', false, null, null, null, 'to', 'ADDRESS', 'The address.'),
  ('SEND_EMAIL', 4, 'subject', 'template', true, null, 300, null, null, null, 'The subject.'),
  ('SEND_EMAIL', 5, 'body', 'template', true, null, 20000, null, null, null, 'The text.'),
  ('SEND_EMAIL', 6, 'html', 'template', false, null, 100000, null, null, null, 'The same as HTML; values are escaped.'),
  ('SEND_SMS', 1, 'to', 'choice', false, null, null, '{PERSON,ASSIGNEE,MEMBER}', null, null,
    'Recipient: the lead or buyer (default), their assignee, or a member.'),
  ('SEND_SMS', 2, 'memberId', 'member', false, null, null, null, 'to', 'MEMBER', 'The member.'),
  ('SEND_SMS', 3, 'body', 'template', true, null, 1000, null, null, null, 'The text, of 6 segments at most.'),
  ('CREATE_TASK', 1, 'title', 'template', true, null, 300, null, null, null, 'What to do, in a line.'),
  ('CREATE_TASK', 2, 'description', 'template', false, null, 20000, null, null, null,
    'Detailed description of the task.'),
  ('CREATE_TASK', 3, 'type', 'choice', false, null, null,
    array(select value from app_public.task_type_values order by value), null, null,
    'The kind of the task. Default: TODO.'),
  ('CREATE_TASK', 4, 'priority', 'choice', false, null, null,
    array(select value from app_public.task_priority_values order by value), null, null,
    'How urgent it is. Default: MEDIUM.'),
  ('CREATE_TASK', 5, 'assignee', 'choice', false, null, null, '{ASSIGNEE,MEMBER,NOBODY}', null, null,
    'Assignee: that of the lead or buyer (default), a member or nobody yet.'),
  ('CREATE_TASK', 6, 'memberId', 'member', false, null, null, null, 'assignee', 'MEMBER', 'The member.'),
  ('CREATE_TASK', 7, 'dueInSeconds', 'integer', false, 0, 31536000, null, null, null,
    'Until when, in seconds from then on.'),
  ('CREATE_NOTE', 1, 'text', 'template', true, null, 20000, null, null, null, 'The note.'),
  ('CREATE_NOTE', 2, 'pinned', 'boolean', false, null, null, null, null, null,
    'Whether the note is pinned to the top of the list.'),
  ('CREATE_NOTE', 3, 'visibility', 'choice', false, null, null,
    array(select value from app_public.note_visibility_values order by value), null, null,
    'Who reads it. Default: TEAM.'),
  ('ASSIGN', 1, 'to', 'choice', true, null, null, '{MEMBER,NEXT_IN_TURN}', null, null,
    'Whom: a member, or whose turn it is in the project.'),
  ('ASSIGN', 2, 'memberId', 'member', false, null, null, null, 'to', 'MEMBER', 'The member.'),
  ('UPDATE_FIELD', 1, 'record', 'choice', false, null, null, '{SUBJECT,LEAD,BUYER}', null, null,
    'Of which record: the subject (default), its lead or its buyer.'),
  ('UPDATE_FIELD', 2, 'field', 'field', true, null, null, null, null, null,
    'A field that the update operation of the record takes.'),
  ('UPDATE_FIELD', 3, 'value', 'value', true, null, 20000, null, null, null,
    'Its new value; a text may be a template; null clears it.'),
  ('ADD_TAG', 1, 'tag', 'template', true, null, 100, null, null, null, 'The tag.'),
  ('REMOVE_TAG', 1, 'tag', 'template', true, null, 100, null, null, null, 'The tag.'),
  ('WAIT', 1, 'until', 'time', false, null, null, null, null, null,
    'A variable that is a time, such as reservation.expiresAt; instead of waitSeconds.'),
  ('WAIT', 2, 'offsetSeconds', 'integer', false, -31536000, 31536000, null, null, null,
    'With until: how long after it, or before it where negative.'),
  ('WAIT_FOR_EVENT', 1, 'event', 'event', true, null, null, null, null, null,
    'An event of the subject or of a record that names it, such as appointment.created.'),
  ('WAIT_FOR_EVENT', 2, 'conditions', 'condition', false, null, null, null, null, null,
    'What must hold for the event to count.'),
  ('WAIT_FOR_EVENT', 3, 'timeoutSeconds', 'integer', true, 1, 31536000, null, null, null, 'How long it waits at most.'),
  ('WAIT_FOR_EVENT', 4, 'onTimeout', 'timeout', false, null, null, null, null, null,
    'What follows then: CONTINUE (default), STOP, or the sequence of a later step.'),
  ('BRANCH', 1, 'condition', 'condition', true, null, null, null, null, null, 'What decides.'),
  ('BRANCH', 2, 'then', 'sequence', false, null, null, null, null, null,
    'The `sequence` of the later step to continue with if it is met. Default: the next step.'),
  ('BRANCH', 3, 'else', 'sequence', false, null, null, null, null, null,
    'The `sequence` of the later step to continue with if it is not met. Default: the next step.'),
  ('CALL_WEBHOOK', 1, 'url', 'url', true, null, 2048, null, null, null,
    'URL to send events to: https, publicly reachable, port 443 or 8443.'),
  ('CALL_WEBHOOK', 2, 'body', 'templates', false, null, 20000, null, null, null,
    'What is sent, as JSON; the texts in it may be templates.'),
  ('NOTIFY_TEAM', 1, 'to', 'choice', false, null, null, '{ASSIGNEE,MEMBERS,TEAM}', null, null,
    'Who is notified: the assignee of the lead or buyer (default), the given members, or the whole sales team.'),
  ('NOTIFY_TEAM', 2, 'memberIds', 'members', false, 1, 50, null, 'to', 'MEMBERS', 'The members.'),
  ('NOTIFY_TEAM', 3, 'subject', 'template', false, null, 300, null, null, null,
    'The subject. Default: the name of the workflow.'),
  ('NOTIFY_TEAM', 4, 'message', 'template', true, null, 20000, null, null, null, 'Text of the notification.'),
  ('DRAFT_WITH_AI', 1, 'kind', 'choice', false, null, null, '{LEAD_EMAIL}', null, null,
    'What is drafted. Default: LEAD_EMAIL.'),
  ('DRAFT_WITH_AI', 2, 'instructions', 'template', false, null, 5000, null, null, null, 'What the draft is about.'),
  ('ESCALATE', 1, 'title', 'template', true, null, 300, null, null, null, 'What is wrong, in a line.'),
  ('ESCALATE', 2, 'description', 'template', false, null, 20000, null, null, null, 'What is wrong, at length.'),
  ('ESCALATE', 3, 'kind', 'choice', false, null, null, '{APPROVAL_REQUIRED,COMPLIANCE,NO_RESPONSE,OTHER}', null, null,
    'The kind of the ticket. Default: OTHER.'),
  ('ESCALATE', 4, 'priority', 'choice', false, null, null,
    array(select value from app_public.task_priority_values order by value), null, null,
    'How urgent it is. Default: MEDIUM.'),
  ('ESCALATE', 5, 'memberId', 'member', false, null, null, null, null, null, 'Who resolves it.'),
  ('ESCALATE', 6, 'dueInSeconds', 'integer', false, 0, 31536000, null, null, null,
    'Until when, in seconds from then on.'),
  ('STOP', 1, 'reason', 'text', false, null, 300, null, null, null, 'The reason, for readers of the execution.');

comment on table app_hidden.workflow_operators is
  'The operators that conditions may have, and how many arguments each takes.';

insert into app_hidden.workflow_operators (operator, least, most, description) values
  ('var', 1, 2, 'The value of a variable, or the second argument where there is none.'),
  ('missing', 1, 20, 'Those of the variables named that have no value.'),
  ('==', 2, 2, 'Equal, whether text or number.'), ('!=', 2, 2, 'Not equal.'),
  ('===', 2, 2, 'Equal and of the same type.'), ('!==', 2, 2, 'Not equal or of another type.'),
  ('>', 2, 3, 'Greater.'), ('>=', 2, 3, 'Greater or equal.'), ('<', 2, 3, 'Less; with three arguments: between.'),
  ('<=', 2, 3, 'Less or equal.'),
  ('!', 1, 1, 'Not.'), ('!!', 1, 1, 'Whether there is something.'), ('and', 1, 50, 'All hold.'),
  ('or', 1, 50, 'Any holds.'),
  ('if', 2, 50, 'If, then, else if, then … else.'), ('in', 2, 2, 'Whether a text or a list contains it.'),
  ('cat', 1, 20, 'Texts joined.'), ('substr', 2, 3, 'Part of a text.'),
  ('+', 1, 20, 'Sum.'), ('-', 1, 2, 'Difference.'), ('*', 1, 20, 'Product.'), ('/', 2, 2, 'Quotient.'),
  ('%', 2, 2, 'Remainder.'),
  ('min', 1, 20, 'The least.'), ('max', 1, 20, 'The greatest.'),
  ('some', 2, 2, 'Whether it holds for some element of a list; var "" is the element.'),
  ('all', 2, 2, 'Whether it holds for all elements.'), ('none', 2, 2, 'Whether it holds for no element.'),
  ('secondsSince', 1, 1, 'How long ago a time was, in seconds; negative where it is to come. Without a time no '
    'comparison with it holds.');

comment on table app_hidden.workflow_roots is
  'The variables of conditions and templates, and the table that one is a record of.';

insert into app_hidden.workflow_roots (root, position, table_name, description) values
  ('subject', 1, null, 'The record that the execution is about.'),
  ('lead', 2, 'leads', 'The lead that it is or that it names; the lead of the buyer.'),
  ('buyer', 3, 'buyers', 'The purchase that it is or that it names; the purchase of the lead.'),
  ('reservation', 4, 'reservations', 'The reservation that it is or that it names; the reservation of the purchase.'),
  ('unit', 5, 'units', 'The unit that it is or that it names; the unit of the reservation or purchase.'),
  ('project', 6, 'projects', 'The project of the subject.'),
  ('organization', 7, 'organizations', 'The organization of the workflow.'),
  ('assignee', 8, null, 'Who works on it: the assignee of the subject, of the buyer or of the lead.'),
  ('event', 9, null, 'The event that started the execution; in WAIT_FOR_EVENT the one that is looked at.'),
  ('steps', 10, null, 'The outputs of earlier steps by their sequence: steps[1].taskId in templates, steps.1.taskId in '
    'conditions.'),
  ('context', 11, null, 'What was given to createWorkflowExecution.'),
  ('now', 12, null, 'The present time.');
