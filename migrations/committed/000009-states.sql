--! Previous: sha1:a58b2cafba110716ae302c0e33efe9eb2479b2b6
--! Hash: sha1:b11f3fd8a9a4c060faf47e48105f2092a079f39b
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
