--! Previous: sha1:b709ba93466d268d26c6ddb3857249078eacd0f8
--! Hash: sha1:05a4f00afeb0d96041337ef5ff9a4880d32171fc
--! Message: reports

-- Subjects of reports and exports, and their columns.

select app_private.create_enum('report_kind', 'What a report is for.', array[
  ['INVENTORY', 'What there is to sell.'], ['SALES', 'What was sold.'], ['TRAFFIC', 'Who came, and from where.'],
  ['PIPELINE', 'Who is how far.'], ['FALLOUT', 'What was lost, and why.'], ['PRICING', 'What things cost.'],
  ['DEPOSITS', 'What was paid, and is to be paid.'], ['COMMISSION', 'What is due to agents.'],
  ['ACTIVITY', 'What the team did.'], ['CUSTOM', 'Anything else.']]);
select app_private.create_enum('report_subject', 'What the rows of a report or export are.', array[
  ['LEADS', 'Leads.'], ['BUYERS', 'Buyers.'], ['UNITS', 'Units.'], ['LOTS', 'Lots.'], ['FLOOR_PLANS', 'Floor plans.'],
  ['RESERVATIONS', 'Reservations.'], ['OFFERS', 'Offers.'], ['DEPOSITS', 'Deposits.'],
  ['APPOINTMENTS', 'Appointments.'], ['PHONE_CALLS', 'Phone calls.'], ['TASKS', 'Tasks.'],
  ['PERSONALIZATIONS', 'Personalizations.'], ['EVENTS', 'Events.'], ['CHARGES', 'Charges.']]);
select app_private.create_enum('report_visibility', 'Who finds a report.', array[
  ['PRIVATE', 'Who created it.'], ['PROJECT', 'Everybody of the organization who sees its project.'],
  ['ORGANIZATION', 'Everybody of the organization.']]);
select app_private.create_enum('chart_type', 'How a report is drawn.', array[
  ['TABLE', 'Not at all.'], ['BAR', 'As bars.'], ['LINE', 'As a line.'], ['PIE', 'As a pie.'],
  ['FUNNEL', 'As a funnel.']]);

create table app_hidden.report_subjects (
  subject app_public.report_subject primary key references app_public.report_subject_values,
  table_name text not null,
  permissions text[] not null check (cardinality(permissions) > 0),
  filename text not null,
  latest text not null
);
alter table app_hidden.report_subjects enable row level security;

create table app_hidden.report_columns (
  subject app_public.report_subject not null references app_hidden.report_subjects on delete cascade,
  position int not null,
  name text not null,
  expression text not null,
  type text not null check (type in ('ID', 'TEXT', 'ENUM', 'INTEGER', 'DECIMAL', 'MONEY', 'BOOLEAN', 'DATE', 'DATETIME',
    'LIST', 'JSON')),
  sql_type text not null,
  permission text,
  is_default boolean not null default false,
  groupable boolean not null generated always as (type not in ('LIST', 'JSON')) stored,
  aggregatable boolean not null generated always as (type in ('INTEGER', 'DECIMAL', 'MONEY')) stored,
  description text not null,
  primary key (subject, name),
  unique (subject, position)
);
alter table app_hidden.report_columns enable row level security;

create type app_hidden.report_query as (
  relation text,      -- the table, as t
  columns jsonb,      -- what the answer has: [{name, type, …}]
  expressions text[], -- the SQL of each
  group_by text[],    -- the SQL of what is grouped by
  conditions text,
  ordering text,
  latest text,
  permissions text[], -- what decides what is in it
  time_zone text
);
