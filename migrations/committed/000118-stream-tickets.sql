--! Previous: sha1:7920407d770bf66351c067bac8baea1fd67ae9a2
--! Hash: sha1:38560f35d030fe470088e34ef2545749d7411f86
--! Message: stream-tickets

-- Tickets that open an event stream where no header can be sent.

create table app_private.stream_tickets (
  ticket_sha256 bytea primary key,
  user_id uuid not null references app_public.users (id) on delete cascade,
  session_id uuid,
  token_sha256 bytea,
  token_expires_at timestamptz,
  expires_at timestamptz not null,
  constraint stream_tickets_one_token check (num_nonnulls(session_id, token_sha256) = 1)
);
create index stream_tickets_user on app_private.stream_tickets (user_id);
create index stream_tickets_expires_at on app_private.stream_tickets (expires_at);
alter table app_private.stream_tickets enable row level security;
