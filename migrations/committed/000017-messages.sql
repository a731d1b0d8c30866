--! Previous: sha1:aba67683f777f253043b530df28dea8794d77cf4
--! Hash: sha1:62016000d434d6269bf2f5816e8903ee0d1d8234
--! Message: messages

-- What was mailed, so that it is mailed once, and messages from the contact form.

create table app_private.mail_deliveries (
  key text primary key,
  recipient text not null,
  outcome text not null check (outcome in ('SENT', 'REFUSED')),
  detail text,
  at timestamptz not null default now()
);
create index mail_deliveries_at on app_private.mail_deliveries (at);
alter table app_private.mail_deliveries enable row level security;

create table app_private.contact_messages (
  id uuid primary key default uuidv7(),
  organization_id uuid references app_public.organizations on delete cascade,
  name app_public.short_text not null,
  email app_public.email_address not null,
  phone app_public.phone_number,
  message app_public.long_text not null,
  user_id uuid default app_public.current_user_id(),
  inserted_at timestamptz not null default now()
);
create index contact_messages_organization on app_private.contact_messages (organization_id, id);
alter table app_private.contact_messages enable row level security;
