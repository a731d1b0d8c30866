--! Previous: sha1:3ed571dc7da5b50dc48ddea0aa3eef80f2c7d735
--! Hash: sha1:034dcbb4086c0185612399dd84e198bf5677fef0
--! Message: invitations

-- Invitations to an organization.

select app_private.create_enum('invite_status', 'What became of an invitation.', array[
  ['PENDING', 'Sent and not answered yet.'], ['ACCEPTED', 'The invited has joined.'],
  ['DECLINED', 'The invited does not want to join.'], ['EXPIRED', 'Was not answered in time.'],
  ['REVOKED', 'Was taken back.']]);

create table app_public.organization_invites (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  email app_public.email_address not null constraint organization_invites_email_lower check (email = lower(email)),
  role app_public.organization_role not null default 'MEMBER',
  status app_public.invite_status not null default 'PENDING',
  invited_by_id uuid references app_public.users on delete set null,
  message app_public.long_text,
  sent_at timestamptz not null default now(),
  send_count int not null default 1,
  expires_at timestamptz not null default now() + interval '7 days',
  accepted_at timestamptz,
  accepted_by_id uuid references app_public.users on delete set null,
  revoked_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint organization_invites_accepted check ((status = 'ACCEPTED') = (accepted_at is not null)),
  constraint organization_invites_revoked check ((status = 'REVOKED') = (revoked_at is not null))
);
create unique index organization_invites_one_pending on app_public.organization_invites (organization_id, email)
  where status = 'PENDING';
create index organization_invites_organization on app_public.organization_invites (organization_id, id);
create index organization_invites_invited_by on app_public.organization_invites (invited_by_id);
create index organization_invites_accepted_by on app_public.organization_invites (accepted_by_id);
alter table app_public.organization_invites enable row level security;

create table app_private.organization_invite_tokens (
  invite_id uuid primary key references app_public.organization_invites on delete cascade,
  token_hash bytea not null constraint organization_invite_tokens_hash unique
);
alter table app_private.organization_invite_tokens enable row level security;
