--! Previous: sha1:81fb11f0ec907402342baa39d1121f2e7ace63c7
--! Hash: sha1:eddaf7eede499c3479a6737583cdc00165978d4e
--! Message: affiliation

-- Affiliation: other organizations are invited to have a part in a project, and accept or decline.
--
-- A project has a few organizations: the index takes no time.
-- squawk-ignore-file require-concurrent-index-creation

alter table app_public.project_organizations add column permissions text[];
create index project_organizations_owner on app_public.project_organizations (owner_id, organization_id);
alter table app_hidden.record_types add column other_party name;

create type app_public.open_deals as (leads int, buyers int, holds int, reservations int, negotiations int,
  offers int, personalizations int, appointments int, tasks int);
create type app_public.delete_project_organization_payload as (id uuid, deleted boolean, project_id uuid,
  organization_id uuid, handed_over app_public.open_deals);

create table app_public.project_organization_invites (
  id uuid primary key default uuidv7(),
  project_id uuid not null,
  owner_id uuid not null references app_public.organizations on delete cascade,
  organization_id uuid references app_public.organizations on delete cascade,
  email app_public.email_address constraint project_organization_invites_email_lower check (email = lower(email)),
  role app_public.project_organization_role not null
    constraint project_organization_invites_not_owner check (role <> 'OWNER'),
  permissions text[],
  status app_public.invite_status not null default 'PENDING',
  message app_public.long_text,
  invited_by_id uuid references app_public.users on delete set null,
  principal_token_id uuid references app_public.access_tokens on delete set null,
  sent_at timestamptz not null default now(),
  send_count int not null default 1,
  expires_at timestamptz not null default now() + interval '14 days',
  answered_at timestamptz,
  answered_by_id uuid references app_public.users on delete set null,
  decline_reason app_public.long_text,
  revoked_at timestamptz,
  revoked_reason text,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint project_organization_invites_project_id_fkey foreign key (project_id, owner_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint project_organization_invites_recipient check (num_nonnulls(organization_id, email) = 1
    or status = 'ACCEPTED'),
  constraint project_organization_invites_not_oneself check (organization_id <> owner_id),
  constraint project_organization_invites_answered check ((status in ('ACCEPTED', 'DECLINED')) = (answered_at is not
    null)),
  constraint project_organization_invites_revoked check ((status = 'REVOKED') = (revoked_at is not null))
);
create unique index project_organization_invites_one_pending on app_public.project_organization_invites
  (project_id, coalesce(organization_id::text, email::text)) where status = 'PENDING';
create index project_organization_invites_project on app_public.project_organization_invites (project_id, id desc);
create index project_organization_invites_owner on app_public.project_organization_invites (owner_id, id desc);
create index project_organization_invites_organization on app_public.project_organization_invites
  (organization_id, id desc);
create index project_organization_invites_invited_by on app_public.project_organization_invites (invited_by_id);
create index project_organization_invites_principal_token on app_public.project_organization_invites
  (principal_token_id);
create index project_organization_invites_answered_by on app_public.project_organization_invites (answered_by_id);
alter table app_public.project_organization_invites enable row level security;

create table app_private.project_organization_invite_tokens (
  invite_id uuid primary key references app_public.project_organization_invites on delete cascade,
  token_hash bytea not null constraint project_organization_invite_tokens_hash unique
);
alter table app_private.project_organization_invite_tokens enable row level security;

-- Whose names an organization goes on reading at its deals after their part in a project has ended.
create table app_private.former_affiliates (
  owner_id uuid not null references app_public.organizations on delete cascade,
  user_id uuid not null references app_public.users on delete cascade,
  primary key (owner_id, user_id)
);
create index former_affiliates_user on app_private.former_affiliates (user_id);
alter table app_private.former_affiliates enable row level security;
