--! Previous: sha1:00c8db5e80d6ad8f32eec7e09c2322c521078153
--! Hash: sha1:b1504551a980d8dfa68741cc32fc1859f4108502
--! Message: states

-- The steps of each state machine and what a state requires.

create table app_hidden.transitions (
  subject text not null,
  from_state text,
  to_state text not null,
  by_service boolean not null default false,
  permission text,
  unique nulls not distinct (subject, from_state, to_state)
);
alter table app_hidden.transitions enable row level security;

create table app_hidden.transition_requirements (
  subject text not null,
  to_state text not null,
  column_name text not null,
  message text not null,
  primary key (subject, to_state, column_name)
);
alter table app_hidden.transition_requirements enable row level security;

create type app_public.transition as ("to" text, allowed boolean, blocked_by text[]);
