--! Previous: sha1:987914ad0ea01006f006d2c46149f5ec0eedb40f
--! Hash: sha1:74fd138560138d087a2fa6f357607c7a2df18388
--! Message: account-erasure

-- What erasing an account tells, and what is kept of it: that it was, without a name.

create type app_public.account_erasure as (
  erased_at timestamptz,
  removed jsonb,
  kept jsonb
);

create table app_private.account_erasures (
  user_id uuid primary key references app_public.users on delete cascade,
  erasure app_public.account_erasure not null
);
alter table app_private.account_erasures enable row level security;
