--! Previous: sha1:4eaa494bd86cac8bc380f6ac2f1283d6a35769c8
--! Hash: sha1:295f4acffb2abb3a6ea538eea9ed0bf8776b4e6d
--! Message: workflow-definitions

-- What the definition of a workflow may contain.

create table app_hidden.workflow_step_types (
  type app_public.workflow_step_type primary key,
  subjects text[],
  refusal text
);
alter table app_hidden.workflow_step_types enable row level security;

create table app_hidden.workflow_step_members (
  type app_public.workflow_step_type not null references app_hidden.workflow_step_types,
  position int not null,
  name text not null,
  kind text not null constraint workflow_step_members_kind check (kind in ('text', 'template', 'templates', 'integer',
    'boolean', 'choice', 'member', 'members',
    'email', 'url', 'event', 'condition', 'sequence', 'timeout', 'time', 'field', 'value')),
  required boolean not null default false,
  least int,
  most int,
  choices text[],
  with_name text,
  with_value text,
  description text not null,
  primary key (type, name)
);
alter table app_hidden.workflow_step_members enable row level security;

create table app_hidden.workflow_operators (
  operator text primary key,
  least int not null,
  most int not null,
  description text not null
);
alter table app_hidden.workflow_operators enable row level security;

-- Variables: the columns of records, by the names of the API, and what else there is.
create table app_hidden.workflow_roots (
  root text primary key,
  position int not null,
  table_name text,
  description text not null
);
alter table app_hidden.workflow_roots enable row level security;

-- Operations.
create domain app_public.workflow_checks as jsonb;

create type app_public.workflow_step_input as (
  type app_public.workflow_step_type, name text, config jsonb, wait_seconds int, on_error app_public.step_error_policy
);

-- Many subjects.
create domain app_public.leads_filter as jsonb;

create type app_public.cancel_workflow_executions_payload as (workflow_id uuid, cancelled_count int,
  cancelled_at timestamptz);
