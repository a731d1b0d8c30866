-- Invitations to an organization, sent by email. PENDING → ACCEPTED, EXPIRED, REVOKED (DECLINED is reserved for a
-- refusal by the invited person). An invitation is valid for seven days; its expiry is computed on read, without a job:
-- a row that is PENDING after expires_at reads as EXPIRED, and is updated by the next invitation of the address.
--
-- Inviting an address again while its invitation is pending sends it again: the same record, a new link (the previous
-- one becomes invalid), send_count + 1, seven days from now, with the latest role and message.

create policy admins on app_public.organization_invites for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]));

select app_private.make_record('organization_invites', 'organization_invite', 'org.admin');

grant select on app_public.organization_invites to plat_user, plat_anonymous;

comment on index app_public.organization_invites_one_pending is
  'There is already a pending invitation for this address.';

comment on table app_public.organization_invites is 'An invitation to join an organization.';
comment on column app_public.organization_invites.email is E'@personal\n\nAddress that the invitation is sent to.';
comment on column app_public.organization_invites.role is 'Role of the new member.';
comment on column app_public.organization_invites.status is
  E'@behavior -attribute:select -attribute:filterBy -attribute:orderBy\n\nCurrent status.';
comment on column app_public.organization_invites.invited_by_id is 'User who sent the invitation.';
comment on column app_public.organization_invites.accepted_by_id is 'User who joined.';
comment on column app_public.organization_invites.message is E'@personal\n\nPersonal message in the invitation mail.';
comment on column app_public.organization_invites.sent_at is
  'When the last invitation mail was accepted by the mail server; before that, when the invitation was created.';
comment on column app_public.organization_invites.send_count is 'Number of invitation mails sent.';
comment on column app_public.organization_invites.expires_at is 'When the invitation expires.';
comment on column app_public.organization_invites.accepted_at is 'When the recipient joined; null until then.';
comment on column app_public.organization_invites.revoked_at is 'When the offer was withdrawn; null otherwise.';
comment on column app_public.organization_invites.revoked_reason is
  E'@impersonal\n\nReason why the service revoked it; null if a user revoked it.';
comment on constraint organization_invites_organization_id_fkey on app_public.organization_invites is
  E'@foreignFieldName invites\n@backwardPermission org.admin\n@backwardDescription Invitations to join the '
  'organization; null without the permission org.admin.\n\n'
  'Id of the organization to join.';
comment on constraint organization_invites_invited_by_id_fkey on app_public.organization_invites is
  E'@backwardBehavior -*\n\nUser who sent the invitation.';
comment on constraint organization_invites_accepted_by_id_fkey on app_public.organization_invites is
  E'@backwardBehavior -*\n\nUser who joined.';
comment on table app_private.organization_invite_tokens is
  'SHA-256 of the token in the mail that was sent last; the token itself is in that mail only.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('organization_invite', 'sent_at', null, 'sent'), ('organization_invite', 'send_count', null, 'resent');

create function app_public.organization_invites_status(i app_public.organization_invites) returns
  app_public.invite_status
language sql stable as $$
  select case when i.status = 'PENDING' and i.expires_at <= now() then 'EXPIRED' else i.status end
$$;
grant execute on function app_public.organization_invites_status to plat_user, plat_anonymous;
comment on function app_public.organization_invites_status is E'@notNull\n\nCurrent status.';

create function app_private.send_invite(invite app_public.organization_invites) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.rate_limit('invite.organization', invite.organization_id::text);
  perform app_private.rate_limit('invite.address', invite.organization_id || ' ' || invite.email);
  perform app_private.admit_invitation(invite.organization_id, invite.email);
  delete from app_private.organization_invite_tokens t where t.invite_id = invite.id;
  perform app_private.add_job('organization_invite__created',
    jsonb_build_object('id', invite.id, 'send_count', invite.send_count));
end $$;
comment on function app_private.send_invite(app_public.organization_invites) is
  'Voids the former link and enqueues the mail with a new one; refuses floods of mail.';

create function app_public.create_organization_invite(
  organization_id uuid, email app_public.email_address,
  role app_public.organization_role default 'MEMBER', message text default null
) returns app_public.organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  host uuid := organization_id;
  address text := lower(email);
  offered text := coalesce(role, 'MEMBER');
  member_id uuid;
  invite app_public.organization_invites;
begin
  perform app_hidden.require_organization(host, 'org.admin');
  if address is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'email is required.', '{"field": "email"}');
  end if;
  if length(message) > 2000 then
    perform app_hidden.fail('BAD_USER_INPUT', 'A message can have at most 2,000 characters.', '{"field": "message"}');
  end if;
  select m.id into member_id from app_public.organization_user_connections m
    join app_hidden.user_identities i on i.user_id = m.user_id
    where m.organization_id = host and i.email = address;
  if member_id is not null then
    perform app_hidden.fail('CONFLICT', 'This person is already a member of the organization.',
      jsonb_build_object('field', 'email', 'existingId', member_id));
  end if;
  update app_public.organization_invites i set status = 'EXPIRED'
    where i.organization_id = host and i.email = address and i.status = 'PENDING' and i.expires_at <= now();
  insert into app_public.organization_invites as i (organization_id, email, role, message, invited_by_id)
    values (host, address, offered, nullif(btrim(create_organization_invite.message), ''), app_public.current_user_id())
    on conflict (organization_id, email) where status = 'PENDING' do update
      set role = excluded.role, message = excluded.message, invited_by_id = excluded.invited_by_id,
        principal_token_id = excluded.principal_token_id, send_count = i.send_count + 1,
        expires_at = excluded.expires_at
      where i.role <> 'OWNER' or app_hidden.organization_can(i.organization_id, 'org.owner')
    returning * into invite;
  -- The role must be one that the viewer may grant (invite_lacks). Nobody may change an owner's offer, either.
  if invite.id is null then
    perform app_hidden.require_organization(host, 'org.owner');
  end if;
  perform app_private.send_invite(invite);
  return invite;
end $$;
grant execute on function app_public.create_organization_invite to plat_user, plat_anonymous;
comment on function app_public.create_organization_invite is
  E'@arg organization_id Id of the organization to join.\n@arg email Email address of the recipient; only an '
  'account with this address can accept.\n@arg role Role of the new member; only an owner can invite an '
  'owner.\n@arg message Personal message in the invitation mail, at most 2,000 characters.\n\n'
  'Invites a person to the organization by email. If an invitation to the address is pending, it is sent again '
  'with a new link. Requires the role OWNER or ADMIN.';

create function app_private.invite_lacks(i app_public.organization_invites) returns text
language sql stable as $$
  select coalesce(app_private.lacking_permission(i.organization_id, null, '{org.admin}'),
    app_private.role_lacks(i.organization_id, i.role))
$$;
comment on function app_private.invite_lacks(app_public.organization_invites) is
  'A permission that the viewer lacks to give the role of an invitation; null where they may.';

create function app_private.suspend_invite(id uuid, reason text) returns void
language sql volatile as $$
  update app_public.organization_invites i set status = 'REVOKED', revoked_at = now(), revoked_reason = reason
    where i.id = suspend_invite.id and i.status = 'PENDING';
  delete from app_private.organization_invite_tokens t where t.invite_id = suspend_invite.id;
$$;
comment on function app_private.suspend_invite(uuid, text) is 'Takes an invitation back for the reason.';

select app_private.make_principal('app_public', 'organization_invites', 'invited_by_id', 'invitation', 'r.email',
  'r.status = ''PENDING'' and r.expires_at > now()', 'app_private.invite_lacks(app_public.organization_invites)',
  'app_private.suspend_invite(uuid, text)', takes_over => 'old.send_count <> new.send_count');

create function app_private.require_invite(id uuid) returns app_public.organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  invite app_public.organization_invites;
begin
  perform app_hidden.require_viewer();
  select i.* into invite from app_public.organization_invites i where i.id = require_invite.id
    and i.organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]) for update;
  if invite.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such invitation.', '{"field": "id"}');
  end if;
  if app_public.organization_invites_status(invite) <> 'PENDING' then
    perform app_hidden.fail('CONFLICT', 'This invitation is no longer pending; invite the address again.',
      jsonb_build_object('field', 'id'));
  end if;
  return invite;
end $$;
comment on function app_private.require_invite(uuid) is
  'The pending invitation, locked; refuses those who may not see it.';

create function app_public.resend_organization_invite(id uuid) returns app_public.organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  invite app_public.organization_invites := app_private.require_invite(id);
begin
  -- The sender becomes its principal, and must have the permissions of the role (invite_lacks).
  update app_public.organization_invites i set send_count = i.send_count + 1, expires_at = now() + interval '7 days'
    where i.id = invite.id returning * into invite;
  perform app_private.send_invite(invite);
  return invite;
end $$;
grant execute on function app_public.resend_organization_invite to plat_user, plat_anonymous;
comment on function app_public.resend_organization_invite is $$
@arg id The invitation.

Resends a pending invitation with a new link and extends it by seven days. Requires the role OWNER or ADMIN.$$;

create function app_public.revoke_organization_invite(id uuid) returns app_public.organization_invites
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  invite app_public.organization_invites := app_private.require_invite(id);
begin
  update app_public.organization_invites i set status = 'REVOKED', revoked_at = now() where i.id = invite.id
    returning * into invite;
  delete from app_private.organization_invite_tokens t where t.invite_id = invite.id;
  return invite;
end $$;
grant execute on function app_public.revoke_organization_invite to plat_user, plat_anonymous;
comment on function app_public.revoke_organization_invite is $$
@arg id The invitation.

Revokes a pending invitation; its link becomes invalid. Requires the role OWNER or ADMIN.$$;

create function app_public.accept_organization_invite(token text) returns app_public.user_organization_connections
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer uuid := app_hidden.require_viewer();
  invite app_public.organization_invites;
  result app_public.user_organization_connections;
begin
  select i.* into invite from app_private.organization_invite_tokens t
    join app_public.organization_invites i on i.id = t.invite_id
    join app_public.organizations o on o.id = i.organization_id and o.deleted_at is null
    where t.token_hash = sha256(convert_to(left(token, 200), 'UTF8')) for update of i, t;
  if invite.id is null or app_public.organization_invites_status(invite) <> 'PENDING' then
    perform app_hidden.fail('BAD_USER_INPUT',
      'This invitation is unknown, used, expired or revoked; ask for a new one.', '{"field": "token"}');
  end if;
  -- The sender must still have the permission.
  if app_private.principal_fault('app_public.organization_invites', invite.id) is not null then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The sender of this invitation may no longer invite to the organization; ask for a new invitation.',
      '{"field": "token"}');
  end if;
  if not app_private.has_address(viewer, invite.email) then
    perform app_hidden.fail('FORBIDDEN',
      'This invitation is for another email address; sign in with the account of the address it was sent to.',
      '{"field": "token"}');
  end if;
  -- A token that is restricted to another organization, or to scopes without membership, does not widen itself.
  if not app_hidden.scopes_allow('org.member') or app_hidden.setting('organization_id')::uuid <> invite.organization_id
    then
    perform app_hidden.fail('FORBIDDEN', 'This access token does not apply to this organization; sign in to accept.',
      '{"permission": "org.member"}');
  end if;
  update app_public.organization_invites i set status = 'ACCEPTED', accepted_at = now(), accepted_by_id = viewer
    where i.id = invite.id;
  delete from app_private.organization_invite_tokens t where t.invite_id = invite.id;
  -- The link came to this address only.
  update app_public.users u set email_verified_at = now() where u.id = viewer and u.email_verified_at is null;
  insert into app_public.organization_user_connections (organization_id, user_id, role, invited_by_id)
    values (invite.organization_id, viewer, invite.role, invite.invited_by_id)
    on conflict on constraint organization_user_connections_once do nothing;
  select c.* into result from app_public.user_organization_connections c
    where c.organization_id = invite.organization_id;
  return result;
end $$;
grant execute on function app_public.accept_organization_invite to plat_user, plat_anonymous;
comment on function app_public.accept_organization_invite is
  E'@arg token Token from the link in the email.\n\n'
  'Joins the organization that invited the viewer''s email address, and marks that address as verified. A token '
  'works once, for seven days.';

-- For the task that sends the mail. The token exists in that process and in the mail, nowhere else.
create function app_private.issue_invite_token(invite_id uuid, send_count int) returns table (
  token text, email text, role text, message text, expires_at timestamptz, organization_name text, invited_by text,
  organization_id uuid
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  invite app_public.organization_invites;
  secret text := 'plat_invite_' || translate(rtrim(encode(public.gen_random_bytes(32), 'base64'), '='), '+/', '-_');
begin
  select i.* into invite from app_public.organization_invites i where i.id = issue_invite_token.invite_id for update;
  -- Answered, revoked, over, or sent again meanwhile by a later job: nothing to send.
  if invite.id is null or app_public.organization_invites_status(invite) <> 'PENDING'
    or invite.send_count <> issue_invite_token.send_count then
    return;
  end if;
  insert into app_private.organization_invite_tokens as t (invite_id, token_hash)
    values (invite.id, sha256(convert_to(secret, 'UTF8')))
    on conflict (invite_id) do update set token_hash = excluded.token_hash;
  return query
    select secret, invite.email::text, invite.role::text, invite.message::text, invite.expires_at, o.name::text,
      app_public.users_full_name(u), o.id
    from app_public.organizations o left join app_public.users u on u.id = invite.invited_by_id
    where o.id = invite.organization_id and o.deleted_at is null;
end $$;
comment on function app_private.issue_invite_token(uuid, int) is
  'A new token (256 random bits) for a pending invitation and what its mail says; replaces the former token; nothing '
  'when there is nothing to send.';

create function app_private.mark_invite_sent(invite_id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_public.organization_invites i set sent_at = now() where i.id = invite_id
$$;

create function app_public.organization_invites_projects(i app_public.organization_invites) returns setof
  app_public.projects
language sql stable rows 10 as $$
  select p.* from app_hidden.masked_projects p where p.organization_id = i.organization_id and p.archived_at is null
    order by p.updated_at desc, p.id desc
$$;
grant execute on function app_public.organization_invites_projects to plat_user, plat_anonymous;
comment on function app_public.organization_invites_projects is
  E'@ordered\n\nProjects that the recipient will see, last updated first.';
grant execute on function app_private.issue_invite_token, app_private.mark_invite_sent to plat_worker;
