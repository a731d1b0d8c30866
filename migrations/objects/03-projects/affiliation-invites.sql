-- Invitations of organizations to a project. PENDING → ACCEPTED, DECLINED, EXPIRED, REVOKED; valid for fourteen days,
-- with an expiry computed on read, like invitations to an organization (invitations.sql).
--
-- An existing organization is invited by id or slug: its administrators read and answer the invitation. A new one is
-- invited by email address: the recipient gets a token, once, and accepts for an organization that they administer.
-- Until then, neither side sees any data of the other except the invitation itself.
--
-- Inviting again while an invitation is pending sends it again: the same record, a new link, send_count + 1, fourteen
-- days from now, with the latest role, permissions and message.

create policy both_sides on app_public.project_organization_invites for select to plat_user
  using (owner_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[])
    or organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]));

select app_private.make_record('project_organization_invites', 'affiliation_invite', 'project.manage',
  other_party => 'owner_id');

grant select on app_public.project_organization_invites to plat_user, plat_anonymous;

comment on table app_public.project_organization_invites is 'An invitation of an organization to a project.';
comment on column app_public.project_organization_invites.owner_id is
  'Id of the organization that owns the project; visible before the invitation is accepted.';
comment on column app_public.project_organization_invites.email is
  E'@personal\n\nEmail address that the invitation was sent to; null if it names an organization.';
comment on column app_public.project_organization_invites.role is
  'Role of the organization in the project, which determines what its members can see and do.';
comment on column app_public.project_organization_invites.permissions is
  E'@impersonal\n\nPermissions of its members, a subset of those of the role; null for all of them.';
comment on column app_public.project_organization_invites.status is
  E'@behavior -attribute:select -attribute:filterBy -attribute:orderBy\n\nCurrent status.';
comment on column app_public.project_organization_invites.message is
  E'@personal\n\nPersonal message in the invitation mail.';
comment on column app_public.project_organization_invites.invited_by_id is 'User who sent the invitation.';
comment on column app_public.project_organization_invites.sent_at is
  'When the last invitation mail was accepted by the mail server; before that, when the invitation was created.';
comment on column app_public.project_organization_invites.send_count is 'Number of invitation mails sent.';
comment on column app_public.project_organization_invites.expires_at is 'When the invitation expires.';
comment on column app_public.project_organization_invites.answered_at is
  'When the invitation was accepted or declined; null until then.';
comment on column app_public.project_organization_invites.answered_by_id is 'User who accepted or declined.';
comment on column app_public.project_organization_invites.decline_reason is
  E'@personal\n\nReason given for declining; null if none was given.';
comment on column app_public.project_organization_invites.revoked_at is
  'When the offer was withdrawn; null otherwise.';
comment on column app_public.project_organization_invites.revoked_reason is
  E'@impersonal\n\nReason why the service revoked it; null if a user revoked it.';
comment on constraint project_organization_invites_project_id_fkey on app_public.project_organization_invites is
  E'@parent\n@fieldName project\n@foreignFieldName organizationInvites\n@backwardPermission '
  'project.manage\n@backwardDescription Invitations of other organizations to the project, latest first; null '
  'without the permission project.manage.\n\n'
  'The project; null for the recipient until they accept.';
comment on constraint project_organization_invites_owner_id_fkey on app_public.project_organization_invites is
  E'@fieldName owner\n@foreignFieldName sentProjectInvites\n@backwardPermission '
  'project.manage\n@backwardDescription Sent invitations to its own projects, latest first; null without the '
  'permission project.manage.\n\n'
  'The organization that owns the project. Null for the recipient until they accept, unless the organization is '
  'public.';
comment on constraint project_organization_invites_organization_id_fkey on app_public.project_organization_invites is
  E'@fieldName organization\n@foreignFieldName projectInvites\n@backwardPermission org.admin\n@backwardDescription '
  'Received invitations to projects of other organizations, latest first; null without the permission '
  'org.admin.\n\n'
  'The invited organization, or the one that accepted. Null for the sender until it is accepted, unless the '
  'organization is public.';
comment on constraint project_organization_invites_invited_by_id_fkey on app_public.project_organization_invites is
  E'@fieldName invitedBy\n@backwardBehavior -*\n\nUser who sent the invitation.';
comment on constraint project_organization_invites_answered_by_id_fkey on app_public.project_organization_invites is
  E'@fieldName answeredBy\n@backwardBehavior -*\n\nUser who accepted or declined.';
comment on constraint project_organization_invites_not_owner on app_public.project_organization_invites is
  'A project has only one owner; use another role.';
comment on constraint project_organization_invites_recipient on app_public.project_organization_invites is
  'Specify either an organization or an email address.';
comment on constraint project_organization_invites_not_oneself on app_public.project_organization_invites is
  'The organization already owns the project.';
comment on index app_public.project_organization_invites_one_pending is
  'This organization or address already has a pending invitation to the project.';
comment on table app_private.project_organization_invite_tokens is
  'SHA-256 of the token in the mail that was sent last; the token itself is in that mail only.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('affiliation_invite', 'sent_at', null, 'sent'), ('affiliation_invite', 'send_count', null, 'resent'),
  ('affiliation_invite', 'status', 'ACCEPTED', 'accepted'), ('affiliation_invite', 'status', 'DECLINED', 'declined'),
  ('affiliation_invite', 'status', 'REVOKED', 'revoked'), ('affiliation_invite', 'status', 'EXPIRED', 'expired');

create function app_public.project_organization_invites_status(i app_public.project_organization_invites) returns
  app_public.invite_status
language sql stable as $$
  select case when i.status = 'PENDING' and i.expires_at <= now() then 'EXPIRED' else i.status end
$$;

create function app_public.project_organization_invites_recipient(i app_public.project_organization_invites) returns
  text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(r.email, o.slug) from app_public.project_organization_invites r
    left join app_public.organizations o on o.id = r.organization_id
    where r.id = i.id and app_private.viewer_sees('app_public.project_organization_invites', i.id)
$$;

create function app_public.project_organization_invites_project_title(i app_public.project_organization_invites)
  returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select p.title from app_public.project_organization_invites r join app_public.projects p on p.id = r.project_id
    where r.id = i.id and app_private.viewer_sees('app_public.project_organization_invites', i.id)
$$;

create function app_public.project_organization_invites_owner_name(i app_public.project_organization_invites) returns
  text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select o.name from app_public.project_organization_invites r join app_public.organizations o on o.id = r.owner_id
    where r.id = i.id and app_private.viewer_sees('app_public.project_organization_invites', i.id)
$$;
grant execute on function app_public.project_organization_invites_status,
  app_public.project_organization_invites_recipient, app_public.project_organization_invites_project_title,
  app_public.project_organization_invites_owner_name to plat_user, plat_anonymous;
comment on function app_public.project_organization_invites_status is E'@notNull\n\nCurrent status.';
comment on function app_public.project_organization_invites_recipient is
  'Recipient: the email address, or the slug of the organization.';
comment on function app_public.project_organization_invites_project_title is
  'Title of the project; recipients see nothing else of it until they accept.';
comment on function app_public.project_organization_invites_owner_name is
  'Name of the owning organization, visible before the invitation is accepted.';

-- Its principal: the inviting user, while they may grant the role.
create function app_private.project_invite_lacks(i app_public.project_organization_invites) returns text
language sql stable as $$
  select coalesce(app_private.lacking_permission(i.owner_id, null, '{project.manage}'),
    app_private.affiliate_role_lacks(i.owner_id, i.role, i.permissions))
$$;
comment on function app_private.project_invite_lacks(app_public.project_organization_invites) is
  'A permission that the viewer lacks to give an organization the role of an invitation; null where they may.';

create function app_private.suspend_project_invite(id uuid, reason text) returns void
language sql volatile as $$
  update app_public.project_organization_invites i set status = 'REVOKED', revoked_at = now(), revoked_reason = reason
    where i.id = suspend_project_invite.id and i.status = 'PENDING';
  delete from app_private.project_organization_invite_tokens t where t.invite_id = suspend_project_invite.id;
$$;
comment on function app_private.suspend_project_invite(uuid, text) is 'Takes an invitation back for the reason.';

select app_private.make_principal('app_public', 'project_organization_invites', 'invited_by_id',
  'invitation to a project', 'coalesce(r.email, ''an organization'')',
  'r.status = ''PENDING'' and r.expires_at > now()',
  'app_private.project_invite_lacks(app_public.project_organization_invites)',
  'app_private.suspend_project_invite(uuid, text)', takes_over => 'old.send_count <> new.send_count',
  organization => 'owner_id', reads_token => 'app_hidden.organization_can(r.owner_id, ''project.manage'')');

create function app_private.send_project_invite(invite app_public.project_organization_invites) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  recipient constant text := coalesce(invite.email, invite.organization_id::text);
begin
  perform app_private.rate_limit('invite.affiliates', invite.owner_id::text);
  perform app_private.rate_limit('invite.affiliate', invite.owner_id || ' ' || recipient);
  -- An address gets few invitations in total; an organization is one of many that work with it.
  perform app_private.admit_invitation(invite.owner_id, invite.email);
  delete from app_private.project_organization_invite_tokens t where t.invite_id = invite.id;
  perform app_private.add_job('project_organization_invite__created',
    jsonb_build_object('id', invite.id, 'send_count', invite.send_count));
end $$;
comment on function app_private.send_project_invite(app_public.project_organization_invites) is
  'Voids the former link and enqueues the mail with a new one; refuses floods of mail.';

create function app_public.create_project_organization(project_id uuid, role app_public.project_organization_role,
  organization_id uuid default null, email app_public.email_address default null, permissions text[] default null,
  message text default null) returns app_public.project_organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  project app_public.projects;
  invited uuid := create_project_organization.organization_id;
  address text := lower(create_project_organization.email);
  offered text := create_project_organization.role;
  cut_down text[];
  part_id uuid;
  invite app_public.project_organization_invites;
begin
  perform app_hidden.require_viewer();
  select p.* into project from app_public.projects p where p.id = create_project_organization.project_id
    and app_private.viewer_sees('app_public.projects', p.id);
  if project.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  elsif not app_hidden.organization_can(project.organization_id, 'project.manage') then
    perform app_hidden.fail('FORBIDDEN',
      'This requires the permission project.manage in the organization that owns the project.',
      '{"permission": "project.manage"}');
  elsif project.archived_at is not null then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  elsif num_nonnulls(invited, address) <> 1 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either an organization or an email address.',
      '{"field": "organizationId"}');
  elsif offered is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'role is required.', '{"field": "role"}');
  elsif offered = 'OWNER' then
    perform app_hidden.fail('BAD_USER_INPUT', 'A project has only one owner; use another role.', '{"field": "role"}');
  elsif length(message) > 2000 then
    perform app_hidden.fail('BAD_USER_INPUT', 'A message can have at most 2,000 characters.', '{"field": "message"}');
  end if;
  cut_down := app_private.check_affiliate_permissions(offered, create_project_organization.permissions);
  if invited is not null then
    if not exists (select from app_public.organizations o where o.id = invited and o.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND',
        'There is no such organization; use an email address to invite one that has no account yet.',
        '{"field": "organizationId"}');
    end if;
    select a.id into part_id from app_public.project_organizations a
      where a.project_id = project.id and a.organization_id = invited;
    if part_id is not null then
      perform app_hidden.fail('CONFLICT', case when invited = project.organization_id
        then 'The organization already owns the project.'
        else 'The organization already takes part in the project; use updateProjectOrganization to change its role '
          'or permissions.' end,
        jsonb_build_object('field', 'organizationId', 'existingId', part_id));
    end if;
  end if;
  update app_public.project_organization_invites i set status = 'EXPIRED'
    where i.project_id = project.id and coalesce(i.organization_id::text, i.email) = coalesce(invited::text, address)
      and i.status = 'PENDING' and i.expires_at <= now();
  insert into app_public.project_organization_invites as i (project_id, owner_id, organization_id, email, role,
    permissions, message)
    values (project.id, project.organization_id, invited, address, offered, cut_down,
      nullif(btrim(create_project_organization.message), ''))
    on conflict (project_id, (coalesce(organization_id::text, email::text))) where status = 'PENDING' do update
      set role = excluded.role, permissions = excluded.permissions, message = excluded.message,
        invited_by_id = excluded.invited_by_id, principal_token_id = excluded.principal_token_id,
        send_count = i.send_count + 1, expires_at = excluded.expires_at
    returning * into invite;
  perform app_private.send_project_invite(invite);
  return invite;
end $$;
grant execute on function app_public.create_project_organization to plat_user, plat_anonymous;
comment on function app_public.create_project_organization is
  E'@withoutViewer Anybody may invite an organization by its slug, which is public.\n@arg projectId Id of the '
  'project to invite to.\n@arg organizationId The organization to invite, by id or slug.\n@arg email Instead of an '
  'organization, an email address to invite one that does not use the service yet. The recipient accepts for an '
  'organization that they create or administer.\n@arg role Role of the organization in the project, which '
  'determines what its members can see and do.\n@arg permissions Permissions of its members, a subset of those of '
  'the role, such as project.read and inventory.read. Default: all of them.\n@arg message Personal message in the '
  'invitation mail, at most 2,000 characters.\n\n'
  'Invites an organization to a project. It is affiliated once it accepts with `acceptProjectOrganizationInvite`. '
  'A pending invitation of the same organization or address is sent again, with the new role and permissions. '
  'Requires project.manage in the organization that owns the project, and every permission that is granted.';

create function app_private.require_project_invite(id uuid) returns app_public.project_organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  invite app_public.project_organization_invites;
begin
  perform app_hidden.require_viewer();
  select i.* into invite from app_public.project_organization_invites i where i.id = require_project_invite.id
    and i.owner_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]) for update;
  if invite.id is null then
    if app_private.viewer_sees('app_public.project_organization_invites', require_project_invite.id) then
      perform app_hidden.fail('FORBIDDEN', 'Only the inviting organization can do this; use '
        'acceptProjectOrganizationInvite or declineProjectOrganizationInvite to answer the invitation.',
        '{"permission": "project.manage"}');
    end if;
    perform app_hidden.fail('NOT_FOUND', 'There is no such invitation.', '{"field": "id"}');
  end if;
  if app_public.project_organization_invites_status(invite) <> 'PENDING' then
    perform app_hidden.fail('CONFLICT', 'This invitation is no longer pending; send another one.',
      jsonb_build_object('field', 'id'));
  end if;
  return invite;
end $$;
comment on function app_private.require_project_invite(uuid) is
  'The pending invitation, locked; refuses viewers other than the inviting side.';

create function app_public.resend_project_organization_invite(id uuid) returns app_public.project_organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  invite app_public.project_organization_invites := app_private.require_project_invite(id);
begin
  update app_public.project_organization_invites i set send_count = i.send_count + 1,
      expires_at = now() + interval '14 days'
    where i.id = invite.id returning * into invite;
  perform app_private.send_project_invite(invite);
  return invite;
end $$;
comment on function app_public.resend_project_organization_invite is $$
@arg id The invitation.

Resends a pending invitation to a project, with a new link if it was sent to an address, and extends it by fourteen
days. Requires project.manage in the organization that owns the project.$$;

create function app_public.revoke_project_organization_invite(id uuid) returns app_public.project_organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  invite app_public.project_organization_invites := app_private.require_project_invite(id);
begin
  update app_public.project_organization_invites i set status = 'REVOKED', revoked_at = now() where i.id = invite.id
    returning * into invite;
  delete from app_private.project_organization_invite_tokens t where t.invite_id = invite.id;
  return invite;
end $$;
comment on function app_public.revoke_project_organization_invite is $$
@arg id The invitation.

Revokes a pending invitation to a project. Requires project.manage in the organization that owns the project.$$;
grant execute on function app_public.resend_project_organization_invite,
  app_public.revoke_project_organization_invite to plat_user, plat_anonymous;

-- Answering. By id, for administrators of the invited organization; by the token of the mail, for the owner of
-- its address.
create function app_private.answer_project_invite(id uuid, token text) returns
  app_public.project_organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer uuid := app_hidden.require_viewer();
  field constant text := case when token is null then 'id' else 'token' end;
  invite app_public.project_organization_invites;
begin
  if num_nonnulls(id, token) <> 1 then
    perform app_hidden.fail('BAD_USER_INPUT',
      'Specify either the id of the invitation or the token of its mail.', '{"field": "id"}');
  end if;
  if token is null then
    select i.* into invite from app_public.project_organization_invites i where i.id = answer_project_invite.id
      and i.organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]) for update;
    if invite.id is null then
      if app_private.viewer_sees('app_public.project_organization_invites', answer_project_invite.id) then
        perform app_hidden.fail('FORBIDDEN', 'Only administrators of the invited organization can do this.',
          '{"permission": "org.admin"}');
      end if;
      perform app_hidden.fail('NOT_FOUND', 'There is no such invitation.', '{"field": "id"}');
    end if;
  else
    select i.* into invite from app_private.project_organization_invite_tokens t
      join app_public.project_organization_invites i on i.id = t.invite_id
      where t.token_hash = sha256(convert_to(left(token, 200), 'UTF8')) for update of i, t;
  end if;
  if invite.id is null or app_public.project_organization_invites_status(invite) <> 'PENDING'
    or not exists (select from app_public.projects p join app_public.organizations o on o.id = p.organization_id
      where p.id = invite.project_id and p.deleted_at is null and p.archived_at is null and o.deleted_at is null) then
    perform app_hidden.fail('BAD_USER_INPUT',
      'This invitation is unknown, answered, expired or revoked; ask for a new one.',
      jsonb_build_object('field', field));
  end if;
  if token is not null and not app_private.has_address(viewer, invite.email) then
    perform app_hidden.fail('FORBIDDEN',
      'This invitation is for another email address; sign in with the account of the address it was sent to.',
      '{"field": "token"}');
  end if;
  return invite;
end $$;
comment on function app_private.answer_project_invite(uuid, text) is
  'The pending invitation that the viewer may answer, locked; refuses others.';

create function app_public.accept_project_organization_invite(id uuid default null, token text default null,
  organization_id uuid default null) returns app_public.project_organizations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  invite app_public.project_organization_invites := app_private.answer_project_invite(
    accept_project_organization_invite.id, accept_project_organization_invite.token);
  accepting uuid := coalesce(accept_project_organization_invite.organization_id, invite.organization_id);
  result app_public.project_organizations;
begin
  -- The sender must still have the permission.
  if app_private.principal_fault('app_public.project_organization_invites', invite.id) is not null then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The sender of this invitation may no longer invite to the project; ask for a new invitation.',
      jsonb_build_object('field', case when invite.email is null then 'id' else 'token' end));
  elsif accepting is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify the organization that accepts; use createOrganization to '
      'create one if necessary.', '{"field": "organizationId"}');
  elsif accepting <> invite.organization_id then
    perform app_hidden.fail('BAD_USER_INPUT', 'Another organization was invited.', '{"field": "organizationId"}');
  end if;
  perform app_hidden.require_organization(accepting, 'org.admin');
  select a.* into result from app_public.project_organizations a
    where a.project_id = invite.project_id and a.organization_id = accepting;
  if result.id is not null then
    perform app_hidden.fail('CONFLICT', case when accepting = invite.owner_id
      then 'The organization already owns the project.'
      else 'The organization already takes part in the project.' end,
      jsonb_build_object('field', 'organizationId', 'existingId', result.id));
  end if;
  -- The link came to this address only.
  update app_public.users u set email_verified_at = now()
    where u.id = app_public.current_user_id() and u.email_verified_at is null and invite.email is not null;
  update app_public.project_organization_invites i set status = 'ACCEPTED', answered_at = now(),
      answered_by_id = app_public.current_user_id(), organization_id = accepting
    where i.id = invite.id;
  delete from app_private.project_organization_invite_tokens t where t.invite_id = invite.id;
  insert into app_public.project_organizations (project_id, owner_id, organization_id, role, permissions)
    values (invite.project_id, invite.owner_id, accepting, invite.role, invite.permissions)
    returning * into result;
  perform app_private.tell_affiliation('ACCEPTED', result.project_id, result.organization_id, result.role,
    invite.invited_by_id);
  return result;
end $$;
comment on function app_public.accept_project_organization_invite is
  E'@arg id Id of the invitation, for administrators of the invited organization. Give either this or the token.\n'
  '@arg token Token from the link in the email, for the owner of the invited address. Give either this or the id.\n'
  '@arg organizationId Required with a token: an organization that the viewer administers, which joins the '
  'project.\n\n'
  'Accepts an invitation to a project. From then on both organizations see each other''s name and, if they sell '
  'together, the names of their people. Requires org.admin in the invited organization. A token works once, for '
  'fourteen days, and marks the email address as verified.';

create function app_public.decline_project_organization_invite(id uuid default null, token text default null,
  reason text default null) returns app_public.project_organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  invite app_public.project_organization_invites := app_private.answer_project_invite(
    decline_project_organization_invite.id, decline_project_organization_invite.token);
begin
  if length(reason) > 2000 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify a reason of at most 2,000 characters.', '{"field": "reason"}');
  end if;
  update app_public.project_organization_invites i set status = 'DECLINED', answered_at = now(),
      answered_by_id = app_public.current_user_id(), decline_reason = nullif(btrim(reason), '')
    where i.id = invite.id returning * into invite;
  delete from app_private.project_organization_invite_tokens t where t.invite_id = invite.id;
  perform app_private.tell_affiliation('DECLINED', invite.project_id, invite.organization_id, invite.role,
    invite.invited_by_id, invite.email);
  return invite;
end $$;
comment on function app_public.decline_project_organization_invite is
  E'@arg id Id of the invitation, for administrators of the invited organization. Give either this or the token.\n'
  '@arg token Token from the link in the email, for the owner of the invited address. Give either this or the id.\n'
  '@arg reason Message to the sender of the invitation, at most 2,000 characters.\n\n'
  'Declines an invitation to a project. The person who invited is notified by email.';
grant execute on function app_public.accept_project_organization_invite,
  app_public.decline_project_organization_invite to plat_user, plat_anonymous;

-- For the task that sends the mail. A token exists in that process and in the mail, nowhere else.
create function app_private.issue_project_invite_token(invite_id uuid, send_count int) returns table (
  id uuid, token text, recipients text[], email text, role text, message text, expires_at timestamptz,
  organization_name text, project_title text, invited_by text, invited_organization text
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  invite app_public.project_organization_invites;
  secret text;
begin
  select i.* into invite from app_public.project_organization_invites i
    where i.id = issue_project_invite_token.invite_id for update;
  -- Answered, revoked, over, or sent again meanwhile by a later job: nothing to send.
  if invite.id is null or app_public.project_organization_invites_status(invite) <> 'PENDING'
    or invite.send_count <> issue_project_invite_token.send_count then
    return;
  end if;
  if invite.email is not null then
    secret := 'plat_project_' || translate(rtrim(encode(public.gen_random_bytes(32), 'base64'), '='), '+/', '-_');
    insert into app_private.project_organization_invite_tokens as t (invite_id, token_hash)
      values (invite.id, sha256(convert_to(secret, 'UTF8')))
      on conflict (invite_id) do update set token_hash = excluded.token_hash;
  end if;
  return query
    select invite.id, secret, app_private.administrator_addresses(invite.organization_id), invite.email::text,
      invite.role::text, invite.message::text, invite.expires_at, o.name::text, p.title::text,
      app_public.users_full_name(u), h.name::text
    from app_public.projects p
      join app_public.organizations o on o.id = p.organization_id and o.deleted_at is null
      left join app_public.organizations h on h.id = invite.organization_id
      left join app_public.users u on u.id = invite.invited_by_id
    where p.id = invite.project_id and p.deleted_at is null;
end $$;
comment on function app_private.issue_project_invite_token(uuid, int) is
  'What the mail of a pending invitation to a project says: to an address with a new token (256 random bits), which '
  'replaces the former one, or to those who administer an organization. Nothing when there is nothing to send.';

create function app_private.mark_project_invite_sent(invite_id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_public.project_organization_invites i set sent_at = now() where i.id = invite_id
$$;

create function app_private.administrator_addresses(organization_id uuid) returns text[]
language sql stable as $$
  select coalesce(array_agg(i.email::text order by i.email), '{}')
  from app_public.organization_user_connections m
  join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
  join app_hidden.user_identities i on i.user_id = u.id
  where m.organization_id = $1 and exists (select from app_private.role_permissions r where r.role = m.role
    and not r.in_affiliated and r.permission = 'org.admin')
$$;
comment on function app_private.administrator_addresses(uuid) is
  'The addresses of those who administer an organization.';
grant execute on function app_private.issue_project_invite_token, app_private.mark_project_invite_sent to plat_worker;

-- Notifies the other side of the outcome by mail.
create function app_private.tell_affiliation(what text, project_id uuid, organization_id uuid, role text,
  user_id uuid default null, email text default null) returns void
language sql volatile as $$
  select app_private.add_job('affiliation__changed', jsonb_build_object('what', what, 'projectId', project_id,
    'organizationId', organization_id, 'role', role, 'userId', user_id, 'email', email))
$$;
comment on function app_private.tell_affiliation(text, uuid, uuid, text, uuid, text) is
  'Notifies the other side: what is ACCEPTED or DECLINED (to the user who invited, where they still manage the '
  'project, else the owners), CHANGED or ENDED (to the owners of the organization), or LEFT (to those of the '
  'project).';

create function app_private.affiliation_notice(what text, project_id uuid, organization_id uuid, user_id uuid)
returns table (recipients text[], project text, owner text, organization text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select case when what in ('CHANGED', 'ENDED') then app_private.owner_addresses($3)
      else coalesce((select array[i.email::text] from app_hidden.user_identities i
          join app_public.users u on u.id = i.user_id and u.status = 'ACTIVE' and u.deleted_at is null
          join app_public.organization_user_connections m on m.user_id = u.id and m.organization_id = p.organization_id
          join app_private.role_permissions r on r.role = m.role and not r.in_affiliated
            and r.permission = 'project.manage'
          where i.user_id = $4), app_private.owner_addresses(p.organization_id)) end,
    -- The owner of the project can read the invitation of an organization that declined.
    p.title, o.name, case when what = 'DECLINED' then h.slug else h.name end
  from app_public.projects p join app_public.organizations o on o.id = p.organization_id
  left join app_public.organizations h on h.id = $3
  where p.id = $2
$$;
comment on function app_private.affiliation_notice(text, uuid, uuid, uuid) is
  'Recipients of a notice about an affiliation, with the names that they may see.';
grant execute on function app_private.affiliation_notice to plat_worker;

create function app_private.tg_project_organizations__tell() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Automatic changes, such as deleting a project, are reported elsewhere.
  if app_public.current_user_id() is not null then
    perform app_private.tell_affiliation(case when tg_op = 'UPDATE' then 'CHANGED'
      when old.owner_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]) then 'ENDED'
      else 'LEFT' end, old.project_id, old.organization_id, case when tg_op = 'UPDATE' then new.role else old.role end);
  end if;
  return null;
end $$;
create trigger _700_tell after delete on app_public.project_organizations for each row
  when (old.role <> 'OWNER') execute function app_private.tg_project_organizations__tell();
create trigger _700_tell_again after update of role, permissions on app_public.project_organizations for each row
  when (old.role <> 'OWNER' and row(old.role, old.permissions) is distinct from row(new.role, new.permissions))
  execute function app_private.tg_project_organizations__tell();
