--! Previous: sha1:978938d50f9c236ce2e562c35f31e407bb01896f
--! Hash: sha1:3ed571dc7da5b50dc48ddea0aa3eef80f2c7d735
--! Message: requests

-- Idempotency keys and rate limits.

create table app_private.rate_limits (
  bucket text not null,
  key_hash bytea not null,
  hits timestamptz[] not null,
  expires_at timestamptz not null,
  primary key (bucket, key_hash)
);
create index rate_limits_expires_at on app_private.rate_limits (expires_at);
alter table app_private.rate_limits enable row level security;

create table app_private.idempotency_keys (
  id uuid primary key default uuidv7(),
  viewer text not null,
  key_sha256 bytea not null,
  body_hmac bytea not null,
  answers jsonb not null default '{}',
  inserted_at timestamptz not null default now(),
  constraint idempotency_keys_once unique (viewer, key_sha256)
);
create index idempotency_keys_inserted_at on app_private.idempotency_keys (inserted_at);
alter table app_private.idempotency_keys enable row level security;
