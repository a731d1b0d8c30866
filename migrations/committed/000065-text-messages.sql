--! Previous: sha1:448b89162c40adef3a4408631a7c65b5afdc7ee5
--! Hash: sha1:80cb648a049c67638ed3254d0170ae8f5c3f17da
--! Message: text-messages

-- Text messages, their statuses and answers.

create table app_private.message_rules (
  opens time not null,
  closes time not null,
  most_segments int not null,
  constraint message_rules_hours check (opens < closes)
);
create unique index message_rules_one on app_private.message_rules ((true));
alter table app_private.message_rules enable row level security;

create table app_private.message_words (
  word text primary key,
  meaning text not null constraint message_words_meaning check (meaning in ('STOP', 'START', 'HELP'))
);
alter table app_private.message_words enable row level security;

create table app_private.message_statuses (
  status text primary key,
  rank int not null,
  description text not null
);
alter table app_private.message_statuses enable row level security;

create table app_private.stopped_numbers (
  number text primary key,
  reason text not null,
  stopped_at timestamptz not null default now()
);
alter table app_private.stopped_numbers enable row level security;

create table app_private.text_messages (
  id uuid primary key default uuidv7(),
  execution_id uuid not null references app_public.workflow_executions on delete cascade,
  sequence int not null,
  lead_id uuid references app_public.leads on delete cascade,
  buyer_id uuid references app_public.buyers on delete cascade,
  user_id uuid references app_public.users on delete cascade,
  recipient text not null constraint text_messages_e164 check (recipient ~ '^\+[1-9][0-9]{6,14}$'),
  body text not null,
  status text not null default 'SENDING' references app_private.message_statuses,
  began_at timestamptz not null default now(),
  provider_id text constraint text_messages_provider_id unique,
  error text,
  constraint text_messages_once unique (execution_id, sequence),
  constraint text_messages_one_recipient check ((num_nonnulls(lead_id, buyer_id) > 0) <> (user_id is not null))
);
create index text_messages_recipient on app_private.text_messages (recipient, id desc);
create index text_messages_lead on app_private.text_messages (lead_id) where lead_id is not null;
create index text_messages_buyer on app_private.text_messages (buyer_id) where buyer_id is not null;
create index text_messages_user on app_private.text_messages (user_id) where user_id is not null;
alter table app_private.text_messages enable row level security;

create table app_private.message_answers (
  id text primary key,
  number text not null,
  meaning text,
  received_at timestamptz not null default now()
);
create index message_answers_received_at on app_private.message_answers (received_at);
alter table app_private.message_answers enable row level security;
