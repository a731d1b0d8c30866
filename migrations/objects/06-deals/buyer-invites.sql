-- Buyers as users: an invitation by email, and the access of those who accept. PENDING → ACCEPTED, EXPIRED, REVOKED; a
-- purchase has at most one pending invitation, and inviting again sends a new link and invalidates the previous one.
--
-- Buyers see their own purchases and reservations with related records, and their project like visitors of a public
-- one; if it is not public, only their own units, lots and floor plans. They see name, title and phone number of the
-- people who handle their deal.

comment on table app_hidden.buyer_invites is 'Invitations of buyers to the service. Not read by the roles of the API.';
comment on column app_hidden.buyer_invites.email is E'@personal\n\nThe address that was invited.';
comment on column app_hidden.buyer_invites.message is E'@personal\n\nWhat the invitation says besides.';
comment on table app_private.buyer_invite_tokens is
  'SHA-256 of the token in the mail that was sent last; the token itself is in that mail only.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('buyer', 'invited_at', null, 'invited'), ('buyer', 'user_id', null, 'invitation_accepted');

create function app_private.buyer_invite_lacks(i app_hidden.buyer_invites) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- Accepting grants access to the purchase and its deal.
  select p from unnest('{buyer.write, buyer.read, sale.read}'::text[]) with ordinality n (p, place)
  where not exists (select from app_public.buyers b where b.id = i.buyer_id
    and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, n.p))
  order by n.place limit 1
$$;
comment on function app_private.buyer_invite_lacks(app_hidden.buyer_invites) is
  'A permission that the viewer lacks to let a buyer see a purchase; null where they may.';

create function app_private.suspend_buyer_invite(id uuid, reason text) returns void
language sql volatile as $$
  update app_hidden.buyer_invites i set status = 'REVOKED'
    where i.id = suspend_buyer_invite.id and i.status = 'PENDING';
  delete from app_private.buyer_invite_tokens t where t.invite_id = suspend_buyer_invite.id;
$$;
comment on function app_private.suspend_buyer_invite(uuid, text) is 'Takes the invitation of a buyer back.';

select app_private.make_principal('app_hidden', 'buyer_invites', 'invited_by_id', 'invitation of a buyer', 'r.email',
  'r.status = ''PENDING'' and r.expires_at > now()', 'app_private.buyer_invite_lacks(app_hidden.buyer_invites)',
  'app_private.suspend_buyer_invite(uuid, text)', takes_over => 'old.send_count <> new.send_count');

create function app_private.invite_buyer(buyer_id uuid, email text, message text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  buyer app_public.buyers;
  recipient text;
  invite app_hidden.buyer_invites;
begin
  select * into buyer from app_public.buyers b where b.id = invite_buyer.buyer_id
    and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.write') for no key update;
  if buyer.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such buyer.', '{"field": "buyerId"}');
  end if;
  recipient := lower(coalesce(invite_buyer.email, buyer.email));
  if buyer.status = 'CANCELLED' then
    perform app_hidden.fail('CONFLICT', 'This purchase is cancelled.', '{"field": "buyerId"}');
  elsif buyer.user_id is not null then
    perform app_hidden.fail('CONFLICT', 'This buyer has already accepted an invitation.',
      jsonb_build_object('field', 'buyerId', 'existingId', buyer.user_id));
  elsif recipient is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'The buyer has no email address; specify one.', '{"field": "email"}');
  end if;
  perform app_private.rate_limit('invite.buyers', buyer.organization_id::text);
  perform app_private.rate_limit('invite.buyer', buyer.id::text);
  perform app_private.rate_limit('invite.buyer_address', buyer.organization_id || ' ' || recipient);
  perform app_private.admit_invitation(buyer.organization_id, recipient);
  update app_hidden.buyer_invites i set status = case when i.expires_at <= now() then 'EXPIRED' else 'REVOKED' end
    where i.buyer_id = buyer.id and i.status = 'PENDING' and (i.email <> recipient or i.expires_at <= now());
  insert into app_hidden.buyer_invites as i (organization_id, project_id, buyer_id, email, message)
    values (buyer.organization_id, buyer.project_id, buyer.id, recipient, invite_buyer.message)
    on conflict (buyer_id) where status = 'PENDING' do update
      set message = excluded.message, invited_by_id = excluded.invited_by_id,
        principal_token_id = excluded.principal_token_id, send_count = i.send_count + 1,
        expires_at = excluded.expires_at
    returning * into invite;
  delete from app_private.buyer_invite_tokens t using app_hidden.buyer_invites i where i.id = t.invite_id
    and i.buyer_id = buyer.id;
  update app_public.buyers b set email = coalesce(b.email, recipient), invited_at = now() where b.id = buyer.id;
  perform app_private.add_job('buyer_invite__created',
    jsonb_build_object('id', invite.id, 'send_count', invite.send_count));
end $$;
comment on function app_private.invite_buyer(uuid,text,text) is
  'Voids the former link of a purchase that the viewer may change, and enqueues the mail with a new one; refuses '
  'floods of mail.';
grant execute on function app_private.invite_buyer to plat_user;

create function app_public.invite_buyer(buyer_id uuid, email app_public.email_address default null,
  message text default null) returns boolean
language plpgsql volatile as $$
declare
  buyer app_public.buyers;
begin
  perform app_hidden.require_viewer();
  select b.* into buyer from app_hidden.masked_buyers b where b.id = invite_buyer.buyer_id;
  if buyer.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such buyer.', '{"field": "buyerId"}');
  elsif not app_hidden.deal_can(buyer.organization_id, buyer.project_id, buyer.assignee_id, 'buyer.write') then
    perform app_hidden.fail('FORBIDDEN', 'This requires the permission buyer.write.', '{"permission": "buyer.write"}');
  elsif length(message) > 2000 then
    perform app_hidden.fail('BAD_USER_INPUT', 'A message can have at most 2,000 characters.', '{"field": "message"}');
  elsif exists (select from app_public.projects p where p.id = buyer.project_id and p.archived_at is not null) then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  end if;
  perform app_private.invite_buyer(buyer.id, email, nullif(btrim(message), ''));
  return true;
end $$;
grant execute on function app_public.invite_buyer to plat_user, plat_anonymous;
comment on function app_public.invite_buyer is
  E'@arg buyerId The purchase.\n@arg email Email address to invite. Default: the address of the buyer. Only an '
  'account with this address can accept.\n@arg message Personal message in the invitation mail, at most 2,000 '
  'characters.\n\n'
  'Invites a buyer by email to follow the purchase and act on the buyer''s side. Calling it again sends a new '
  'link. Returns true.';

create function app_public.accept_buyer_invite(token text) returns app_public.buyers
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer uuid := app_hidden.require_viewer();
  invite app_hidden.buyer_invites;
  before text := coalesce(current_setting('plat.actor_type', true), '');
  result app_public.buyers;
begin
  select i.* into invite from app_private.buyer_invite_tokens t join app_hidden.buyer_invites i on i.id = t.invite_id
    where t.token_hash = sha256(convert_to(left(token, 200), 'UTF8'));
  -- In the order of locks that inviting has.
  select b.* into result from app_public.buyers b where b.id = invite.buyer_id and b.deleted_at is null for no key
    update;
  select i.* into invite from app_private.buyer_invite_tokens t join app_hidden.buyer_invites i on i.id = t.invite_id
    where t.token_hash = sha256(convert_to(left(token, 200), 'UTF8')) for update of i, t;
  if invite.id is null or result.id is null or invite.status <> 'PENDING' or invite.expires_at <= now()
    or result.status = 'CANCELLED' or result.user_id is not null then
    perform app_hidden.fail('BAD_USER_INPUT',
      'This invitation is unknown, used, expired or revoked; ask for a new one.', '{"field": "token"}');
  end if;
  -- The sender must still have the permission.
  if app_private.principal_fault('app_hidden.buyer_invites', invite.id) is not null then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The sender of this invitation may no longer invite to the purchase; ask for a new invitation.',
      '{"field": "token"}');
  end if;
  if not app_private.has_address(viewer, invite.email) then
    perform app_hidden.fail('FORBIDDEN',
      'This invitation is for another email address; sign in with the account of the address it was sent to.',
      '{"field": "token"}');
  end if;
  -- A token that is restricted to an organization, or to scopes without purchases, does not widen itself.
  if not app_hidden.scopes_allow('purchase.own') or app_hidden.setting('organization_id') is not null then
    perform app_hidden.fail('FORBIDDEN', 'This access token does not apply to purchases; sign in to accept.',
      '{"permission": "purchase.own"}');
  end if;
  perform set_config('plat.actor_type', 'BUYER', true);
  update app_hidden.buyer_invites i set status = 'ACCEPTED', accepted_at = now(), accepted_by_id = viewer
    where i.id = invite.id;
  delete from app_private.buyer_invite_tokens t where t.invite_id = invite.id;
  -- The link came to this address only.
  update app_public.users u set email_verified_at = now() where u.id = viewer and u.email_verified_at is null;
  update app_public.buyers b set user_id = viewer where b.id = result.id returning * into result;
  perform set_config('plat.actor_type', before, true);
  return app_hidden.masked(result);
end $$;
grant execute on function app_public.accept_buyer_invite to plat_user, plat_anonymous;
comment on function app_public.accept_buyer_invite is
  E'@arg token Token from the link in the email.\n\n'
  'Makes the viewer the buyer of the purchase that the viewer''s email address was invited to, and marks that '
  'address as verified. A token works once, for fourteen days.';

-- For the task that sends the mail. The token exists in that process and in the mail, nowhere else.
create function app_private.issue_buyer_invite_token(invite_id uuid, send_count int) returns table (
  token text, email text, message text, expires_at timestamptz, project_title text, organization_name text,
    invited_by text, organization_id uuid
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  invite app_hidden.buyer_invites;
  secret text := 'plat_purchase_' || translate(rtrim(encode(public.gen_random_bytes(32), 'base64'), '='), '+/', '-_');
begin
  select i.* into invite from app_hidden.buyer_invites i where i.id = issue_buyer_invite_token.invite_id for update;
  -- Answered, revoked, over, or sent again meanwhile by a later job: nothing to send.
  if invite.id is null or invite.status <> 'PENDING' or invite.expires_at <= now()
    or invite.send_count <> issue_buyer_invite_token.send_count then
    return;
  end if;
  insert into app_private.buyer_invite_tokens as t (invite_id, token_hash)
    values (invite.id, sha256(convert_to(secret, 'UTF8')))
    on conflict (invite_id) do update set token_hash = excluded.token_hash;
  return query
    select secret, invite.email::text, invite.message::text, invite.expires_at, p.title::text, o.name::text,
      app_public.users_full_name(u), o.id
    from app_public.projects p join app_public.organizations o on o.id = p.organization_id
      left join app_public.users u on u.id = invite.invited_by_id
    where p.id = invite.project_id and p.deleted_at is null;
end $$;
comment on function app_private.issue_buyer_invite_token(uuid, int) is
  'A new token (256 random bits) for a pending invitation of a buyer and what its mail says; replaces the former '
  'token; nothing when there is nothing to send.';

create function app_private.mark_buyer_invite_sent(invite_id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_hidden.buyer_invites i set sent_at = now() where i.id = invite_id
$$;

-- Sets of records that buyers see. Each is computed once per statement, and immediately empty for users who buy
-- nothing.
create function app_hidden.viewer_purchase_projects() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
  reservations uuid[] := array(select app_hidden.viewer_purchase_reservations());
begin
  if purchases <> '{}' then
    return query select distinct b.project_id from app_public.buyers b where b.id = any (purchases);
  end if;
  if reservations <> '{}' then
    return query select distinct r.project_id from app_public.reservations r where r.id = any (reservations);
  end if;
end $$;
comment on function app_hidden.viewer_purchase_projects() is 'The projects in which the viewer buys.';

create function app_hidden.viewer_bought_projects() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  projects uuid[] := array(select app_hidden.viewer_purchase_projects());
begin
  if projects <> '{}' then
    return query select p.id from app_public.projects p
      where p.id = any (projects) and not (p.visibility in ('PUBLIC', 'UNLISTED') and p.archived_at is null)
        and p.organization_id <> all ((select app_hidden.viewer_organizations('project.read'))::uuid[])
        and p.id <> all ((select app_hidden.viewer_projects('project.read'))::uuid[]);
  end if;
end $$;
comment on function app_hidden.viewer_bought_projects() is
  'The projects that the viewer sees only because of buying there.';

create function app_hidden.viewer_purchase_units() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
  reservations uuid[] := array(select app_hidden.viewer_purchase_reservations());
begin
  if purchases <> '{}' or reservations <> '{}' then
    return query
      select b.unit_id from app_public.buyers b where b.id = any (purchases) and b.unit_id is not null
        and b.status <> 'CANCELLED'
      union select r.unit_id from app_public.reservations r
        where r.id = any (reservations) and r.unit_id is not null and r.status in ('PENDING', 'CONFIRMED');
  end if;
end $$;
comment on function app_hidden.viewer_purchase_units() is 'The units that the viewer buys or has reserved.';

create function app_hidden.viewer_purchase_lots() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
  reservations uuid[] := array(select app_hidden.viewer_purchase_reservations());
begin
  if purchases <> '{}' or reservations <> '{}' then
    return query
      select u.lot_id from app_public.units u where u.id = any (array(select app_hidden.viewer_purchase_units()))
        and u.lot_id is not null
      union select b.lot_id from app_public.buyers b where b.id = any (purchases) and b.lot_id is not null
        and b.status <> 'CANCELLED'
      union select r.lot_id from app_public.reservations r
        where r.id = any (reservations) and r.lot_id is not null and r.status in ('PENDING', 'CONFIRMED');
  end if;
end $$;
comment on function app_hidden.viewer_purchase_lots() is
  'The lots that the viewer buys or has reserved, and those that the own units stand on.';

create function app_hidden.viewer_purchase_floor_plans() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  units uuid[] := array(select app_hidden.viewer_purchase_units());
begin
  if units <> '{}' then
    return query select distinct u.floor_plan_id from app_public.units u where u.id = any (units)
      and u.floor_plan_id is not null;
  end if;
end $$;
comment on function app_hidden.viewer_purchase_floor_plans() is
  'The floor plans that the viewer''s own units are built to.';

create function app_hidden.viewer_counterparts() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
  reservations uuid[] := array(select app_hidden.viewer_purchase_reservations());
begin
  if purchases <> '{}' or reservations <> '{}' then
    return query
      select b.assignee_id from app_public.buyers b where b.id = any (purchases) and b.assignee_id is not null
      union select r.assignee_id from app_public.reservations r where r.id = any (reservations)
        and r.assignee_id is not null
      union select a.host_id from app_public.appointments a
        where a.id in (select app_hidden.viewer_purchase_appointments()) and a.host_id is not null;
  end if;
end $$;

create function app_hidden.is_colleague(user_id uuid) returns boolean
language sql stable as $$ select user_id = app_public.current_user_id()
  or user_id = any (array(select app_hidden.colleague_ids())) $$;
comment on function app_hidden.is_colleague(uuid) is 'Whether this is the viewer or shares an organization with them.';

comment on function app_hidden.viewer_counterparts() is
  'The people who serve the viewer''s own purchases and reservations, or receive them.';
grant execute on function app_private.issue_buyer_invite_token, app_private.mark_buyer_invite_sent to plat_worker;
