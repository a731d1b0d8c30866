--! Previous: sha1:3354674bef288fbc89469d8e89dc2a82e6abb154
--! Hash: sha1:58af57730cea70feb577497ffdb29382ac095f17
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
