--! Previous: sha1:d894df3bd9f773d3e8fec5aca3811e6ec3317519
--! Hash: sha1:349f48db6ce5b90475230694c463252c5b5836f1
--! Message: buyer-invites

-- Buyers as users: an invitation by e-mail, and what whoever accepted it sees. PENDING → ACCEPTED, EXPIRED, REVOKED; a purchase
-- has one pending invitation at most, and inviting again sends another link and voids the one before.
--
-- The buyer sees the own purchases and reservations with what hangs on them, and their project as outsiders see a public one;
-- but where it is not public, of units, lots and floor plans the own ones only. They know the people who serve their deal by
-- name, title and phone number.

create table app_hidden.buyer_invites (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  buyer_id uuid not null,
  email app_public.email_address not null constraint buyer_invites_email_lower check (email = lower(email)),
  message app_public.long_text,
  status app_public.invite_status not null default 'PENDING',
  invited_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  send_count int not null default 1,
  sent_at timestamptz,
  expires_at timestamptz not null default now() + interval '14 days',
  accepted_at timestamptz,
  accepted_by_id uuid references app_public.users on delete set null,
  inserted_at timestamptz not null default now(),
  constraint buyer_invites_accepted check ((status = 'ACCEPTED') = (accepted_at is not null)),
  constraint buyer_invites_buyer_id_fkey foreign key (buyer_id, project_id) references app_public.buyers (id, project_id) on delete cascade
);
create unique index buyer_invites_one_pending on app_hidden.buyer_invites (buyer_id) where status = 'PENDING';
create index buyer_invites_buyer on app_hidden.buyer_invites (buyer_id, id);
create index buyer_invites_invited_by on app_hidden.buyer_invites (invited_by_id);
create index buyer_invites_accepted_by on app_hidden.buyer_invites (accepted_by_id);
alter table app_hidden.buyer_invites enable row level security;
comment on table app_hidden.buyer_invites is 'Invitations of buyers to the service. Not read by the roles of the API.';

create table app_private.buyer_invite_tokens (
  invite_id uuid primary key references app_hidden.buyer_invites on delete cascade,
  token_hash bytea not null constraint buyer_invite_tokens_hash unique
);
alter table app_private.buyer_invite_tokens enable row level security;
comment on table app_private.buyer_invite_tokens is 'SHA-256 of the token in the mail that was sent last; the token itself is in that mail only.';

alter table app_public.buyers add column invited_at timestamptz;
comment on column app_public.buyers.invited_at is 'When the buyer was last invited to the service.';
insert into app_private.event_names (subject, column_name, value, name) values
  ('buyer', 'invited_at', null, 'invited'), ('buyer', 'user_id', null, 'invitation_accepted');

create or replace function app_hidden.known_scope(scope text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- purchase.own is nobody's by a role: whoever buys has it.
  select exists (select from app_private.role_permissions r where scope in (r.permission, split_part(r.permission, '.', 1) || '.*'))
    or scope in ('purchase.own', 'purchase.*')
$$;

--------------------------------------------------------------------------------------------------------

create function app_private.invite_buyer(buyer_id uuid, email text, message text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  buyer app_public.buyers;
  recipient text;
  invite app_hidden.buyer_invites;
begin
  select * into buyer from app_public.buyers b where b.id = invite_buyer.buyer_id for no key update;
  recipient := lower(coalesce(invite_buyer.email, buyer.email));
  if buyer.status = 'CANCELLED' then
    perform app_hidden.fail('CONFLICT', 'This purchase is cancelled.', '{"field": "buyerId"}');
  elsif buyer.user_id is not null then
    perform app_hidden.fail('CONFLICT', 'This buyer has accepted an invitation already.', jsonb_build_object('field', 'buyerId', 'existingId', buyer.user_id));
  elsif recipient is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'The buyer has no e-mail address; give one.', '{"field": "email"}');
  end if;
  perform app_private.rate_limit('invite.buyers', buyer.organization_id::text, 1000, interval '1 hour');
  perform app_private.rate_limit('invite.buyer', buyer.id::text, 5, interval '1 hour');
  perform app_private.rate_limit('invite.address', buyer.organization_id || ' ' || recipient, 10, interval '1 hour');
  update app_hidden.buyer_invites i set status = case when i.expires_at <= now() then 'EXPIRED' else 'REVOKED' end
    where i.buyer_id = buyer.id and i.status = 'PENDING' and (i.email <> recipient or i.expires_at <= now());
  insert into app_hidden.buyer_invites as i (organization_id, project_id, buyer_id, email, message)
    values (buyer.organization_id, buyer.project_id, buyer.id, recipient, invite_buyer.message)
    on conflict (buyer_id) where status = 'PENDING' do update
      set message = excluded.message, invited_by_id = excluded.invited_by_id, send_count = i.send_count + 1, expires_at = excluded.expires_at
    returning * into invite;
  delete from app_private.buyer_invite_tokens t using app_hidden.buyer_invites i where i.id = t.invite_id and i.buyer_id = buyer.id;
  update app_public.buyers b set email = coalesce(b.email, recipient), invited_at = now() where b.id = buyer.id;
  perform app_private.add_job('buyer_invite__created', jsonb_build_object('id', invite.id, 'send_count', invite.send_count));
end $$;
comment on function app_private.invite_buyer(uuid, text, text) is
  'Voids the former link of a purchase and enqueues the mail with a new one; refuses floods of mail. Callers have seen the purchase as the viewer, who may change it.';
grant execute on function app_private.invite_buyer to plat_user;

create function app_public.invite_buyer(buyer_id uuid, email app_public.email_address default null, message text default null) returns boolean
language plpgsql volatile as $$
declare
  buyer app_public.buyers;
begin
  perform app_hidden.require_viewer();
  select b.* into buyer from app_public.buyers b where b.id = invite_buyer.buyer_id;
  if buyer.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such buyer.', '{"field": "buyerId"}');
  elsif not app_hidden.deal_can(buyer.organization_id, buyer.project_id, buyer.assignee_id, 'buyer.write') then
    perform app_hidden.fail('FORBIDDEN', 'This takes the permission buyer.write.', '{"permission": "buyer.write"}');
  elsif length(message) > 2000 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Give a message of at most 2,000 characters.', '{"field": "message"}');
  elsif exists (select from app_public.projects p where p.id = buyer.project_id and p.archived_at is not null) then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; set its status back first.');
  end if;
  perform app_private.invite_buyer(buyer.id, email, nullif(btrim(message), ''));
  return true;
end $$;
grant execute on function app_public.invite_buyer to plat_user, plat_anonymous;
comment on function app_public.invite_buyer is $$
@arg buyerId The purchase.
@arg email The address to invite; that of the buyer where left out. Only an account with this address can accept.
@arg message A few words for the mail, 2,000 characters at most.

Invites a buyer to the service by e-mail, to follow the purchase and act on the buyer's side; again with a new link. Gives true.$$;

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
  select b.* into result from app_public.buyers b where b.id = invite.buyer_id and b.deleted_at is null for no key update;
  select i.* into invite from app_private.buyer_invite_tokens t join app_hidden.buyer_invites i on i.id = t.invite_id
    where t.token_hash = sha256(convert_to(left(token, 200), 'UTF8')) for update of i, t;
  if invite.id is null or result.id is null or invite.status <> 'PENDING' or invite.expires_at <= now()
    or result.status = 'CANCELLED' or result.user_id is not null then
    perform app_hidden.fail('BAD_USER_INPUT', 'This invitation is unknown, used, expired or revoked; ask for a new one.', '{"field": "token"}');
  end if;
  if not exists (select from app_hidden.user_identities i where i.user_id = viewer and i.email = invite.email) then
    perform app_hidden.fail('FORBIDDEN', 'This invitation is for another e-mail address; sign in with the account of the address it was sent to.',
      '{"field": "token"}');
  end if;
  -- A token that is restricted to an organization, or to scopes without purchases, does not widen itself.
  if not app_hidden.scopes_allow('purchase.own') or app_hidden.setting('organization_id') is not null then
    perform app_hidden.fail('FORBIDDEN', 'The access token does not reach purchases; sign in to accept.', '{"permission": "purchase.own"}');
  end if;
  perform set_config('plat.actor_type', 'BUYER', true);
  update app_hidden.buyer_invites i set status = 'ACCEPTED', accepted_at = now(), accepted_by_id = viewer where i.id = invite.id;
  delete from app_private.buyer_invite_tokens t where t.invite_id = invite.id;
  -- The link came to this address only.
  update app_public.users u set email_verified_at = now() where u.id = viewer and u.email_verified_at is null;
  update app_public.buyers b set user_id = viewer where b.id = result.id returning * into result;
  perform set_config('plat.actor_type', before, true);
  return result;
end $$;
grant execute on function app_public.accept_buyer_invite to plat_user, plat_anonymous;
comment on function app_public.accept_buyer_invite is $$
@arg token The token of the mail.

Makes the viewer the buyer of the purchase that the viewer's e-mail address was invited to, and marks that address as verified. A token works once, for fourteen days.$$;

create function app_private.tg_buyers__revoke_invites() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_hidden.buyer_invites i set status = 'REVOKED' where i.buyer_id = new.id and i.status = 'PENDING';
  delete from app_private.buyer_invite_tokens t using app_hidden.buyer_invites i where i.id = t.invite_id and i.buyer_id = new.id;
  return null;
end $$;
create trigger _520_revoke_invites after update of status, deleted_at on app_public.buyers for each row
  when (new.status = 'CANCELLED' or new.deleted_at is not null) execute function app_private.tg_buyers__revoke_invites();

-- For the task that sends the mail. The token exists in that process and in the mail, nowhere else.
create function app_private.issue_buyer_invite_token(invite_id uuid, send_count int) returns table (
  token text, email text, message text, expires_at timestamptz, project_title text, organization_name text, invited_by text
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  invite app_hidden.buyer_invites;
  secret text := 'plat_purchase_' || translate(rtrim(encode(public.gen_random_bytes(32), 'base64'), '='), '+/', '-_');
begin
  select i.* into invite from app_hidden.buyer_invites i where i.id = issue_buyer_invite_token.invite_id for update;
  -- Answered, revoked, over, or sent again meanwhile by a later job: nothing to send.
  if invite.id is null or invite.status <> 'PENDING' or invite.expires_at <= now() or invite.send_count <> issue_buyer_invite_token.send_count then
    return;
  end if;
  insert into app_private.buyer_invite_tokens as t (invite_id, token_hash) values (invite.id, sha256(convert_to(secret, 'UTF8')))
    on conflict (invite_id) do update set token_hash = excluded.token_hash;
  return query
    select secret, invite.email::text, invite.message::text, invite.expires_at, p.title::text, o.name::text, app_public.users_full_name(u)
    from app_public.projects p join app_public.organizations o on o.id = p.organization_id
      left join app_public.users u on u.id = invite.invited_by_id
    where p.id = invite.project_id and p.deleted_at is null;
end $$;
comment on function app_private.issue_buyer_invite_token(uuid, int) is
  'A new token (256 random bits) for a pending invitation of a buyer and what its mail says; replaces the former token; nothing when there is nothing to send.';

create function app_private.mark_buyer_invite_sent(invite_id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_hidden.buyer_invites i set sent_at = now() where i.id = invite_id
$$;

--------------------------------------------------------------------------------------------------------
-- What buyers see. Each of these answers once per statement, and at once for everybody who buys nothing.

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
        and p.organization_id <> all (array(select app_hidden.viewer_organizations('project.read')))
        and p.id <> all (array(select app_hidden.viewer_projects('project.read')));
  end if;
end $$;
comment on function app_hidden.viewer_bought_projects() is 'The projects that the viewer sees only because of buying there.';

create function app_hidden.viewer_purchase_units() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
  reservations uuid[] := array(select app_hidden.viewer_purchase_reservations());
begin
  if purchases <> '{}' or reservations <> '{}' then
    return query
      select b.unit_id from app_public.buyers b where b.id = any (purchases) and b.unit_id is not null and b.status <> 'CANCELLED'
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
      select u.lot_id from app_public.units u where u.id = any (array(select app_hidden.viewer_purchase_units())) and u.lot_id is not null
      union select b.lot_id from app_public.buyers b where b.id = any (purchases) and b.lot_id is not null and b.status <> 'CANCELLED'
      union select r.lot_id from app_public.reservations r
        where r.id = any (reservations) and r.lot_id is not null and r.status in ('PENDING', 'CONFIRMED');
  end if;
end $$;
comment on function app_hidden.viewer_purchase_lots() is 'The lots that the viewer buys or has reserved, and those that the own units stand on.';

create function app_hidden.viewer_purchase_floor_plans() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  units uuid[] := array(select app_hidden.viewer_purchase_units());
begin
  if units <> '{}' then
    return query select distinct u.floor_plan_id from app_public.units u where u.id = any (units) and u.floor_plan_id is not null;
  end if;
end $$;
comment on function app_hidden.viewer_purchase_floor_plans() is 'The floor plans that the viewer''s own units are built to.';

create function app_hidden.viewer_counterparts() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
  reservations uuid[] := array(select app_hidden.viewer_purchase_reservations());
begin
  if purchases <> '{}' or reservations <> '{}' then
    return query
      select b.assignee_id from app_public.buyers b where b.id = any (purchases) and b.assignee_id is not null
      union select r.assignee_id from app_public.reservations r where r.id = any (reservations) and r.assignee_id is not null
      union select a.host_id from app_public.appointments a where a.buyer_id = any (purchases) and a.host_id is not null and a.deleted_at is null
      union select a.host_id from app_public.appointments a
        where a.lead_id = any (array(select app_hidden.viewer_purchase_leads())) and a.host_id is not null and a.deleted_at is null;
  end if;
end $$;
comment on function app_hidden.viewer_counterparts() is 'The people who serve the viewer''s own purchases and reservations: to whom they are assigned, and the hosts of appointments.';

alter policy portfolio_and_public on app_public.projects
  using (deleted_at is null and (
    organization_id = any (array(select app_hidden.viewer_organizations('project.read')))
    or id = any (array(select app_hidden.viewer_projects('project.read')))
    or (visibility in ('PUBLIC', 'UNLISTED') and archived_at is null)
    or id = any (array(select app_hidden.viewer_purchase_projects()))));
alter policy team_and_public on app_public.units
  using (deleted_at is null and (
    organization_id = any (array(select app_hidden.viewer_organizations('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('construction.write')))
    or id = any (array(select app_hidden.viewer_purchase_units()))
    or (status <> 'UNRELEASED' and project_id <> all (array(select app_hidden.viewer_bought_projects()))
      and (select true from app_public.projects p where p.id = project_id))));
alter policy team_and_public on app_public.lots
  using (deleted_at is null and (
    organization_id = any (array(select app_hidden.viewer_organizations('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('construction.write')))
    or id = any (array(select app_hidden.viewer_purchase_lots()))
    or (status <> 'UNRELEASED' and project_id <> all (array(select app_hidden.viewer_bought_projects()))
      and (select true from app_public.projects p where p.id = project_id))));
alter policy team_and_public on app_public.floor_plans
  using (deleted_at is null and (
    organization_id = any (array(select app_hidden.viewer_organizations('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('inventory.read')))
    or project_id = any (array(select app_hidden.viewer_projects('construction.write')))
    or id = any (array(select app_hidden.viewer_purchase_floor_plans()))
    or (status <> 'DRAFT' and project_id <> all (array(select app_hidden.viewer_bought_projects()))
      and (select true from app_public.projects p where p.id = project_id))));

-- The numbers that are of units which such a buyer does not see.
create or replace function app_public.floor_plans_price_min(f app_public.floor_plans) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- Whoever sees the plan sees its AVAILABLE units, but for who sees it only as a buyer.
  select min(u.price) from app_public.units u where u.floor_plan_id = f.id and u.status = 'AVAILABLE' and u.deleted_at is null
    and f.project_id <> all (array(select app_hidden.viewer_bought_projects()))
$$;
create or replace function app_public.floor_plans_available_count(f app_public.floor_plans) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::int from app_public.units u where u.floor_plan_id = f.id and u.status = 'AVAILABLE' and u.deleted_at is null
    and f.project_id <> all (array(select app_hidden.viewer_bought_projects()))
$$;
alter function app_public.projects_abstract(app_public.projects) rename to project_abstract_of;
alter function app_public.project_abstract_of(app_public.projects) set schema app_private;
revoke execute on function app_private.project_abstract_of from plat_user, plat_anonymous;
create function app_public.projects_abstract(p app_public.projects) returns app_public.project_abstract
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.project_abstract_of(p) where p.id <> all (array(select app_hidden.viewer_bought_projects()))
$$;
grant execute on function app_public.projects_abstract to plat_user, plat_anonymous;
comment on function app_public.projects_abstract is 'Its units in numbers; null for a buyer in a project that is not public.';

-- People know each other by a deal too: the team the account of its buyer, the buyer who serves the deal.
alter policy self_and_colleagues on app_public.users
  using (deleted_at is null and (id = (select app_public.current_user_id()) or id = any (array(select app_hidden.colleague_ids()))
    or id = any (array(select app_hidden.viewer_counterparts()))
    or exists (select from app_public.buyers b where b.user_id = users.id and b.deleted_at is null)));
create function app_hidden.is_colleague(user_id uuid) returns boolean
language sql stable as $$ select user_id = app_public.current_user_id() or user_id = any (array(select app_hidden.colleague_ids())) $$;
comment on function app_hidden.is_colleague(uuid) is 'Whether this is the viewer or shares an organization with them.';
create function app_public.users_email_verified_at(u app_public.users) returns timestamptz
language sql stable as $$ select case when u.email_verified_at is not null and app_hidden.is_colleague(u.id) then u.email_verified_at end $$;
create function app_public.users_last_login_at(u app_public.users) returns timestamptz
language sql stable as $$ select case when u.last_login_at is not null and app_hidden.is_colleague(u.id) then u.last_login_at end $$;
grant execute on function app_public.users_email_verified_at, app_public.users_last_login_at to plat_user, plat_anonymous;
comment on function app_public.users_email_verified_at is 'When the user proved to own the e-mail address; seen by the user and by those who share an organization with them.';
comment on function app_public.users_last_login_at is 'The last sign-in; seen by the user and by those who share an organization with them.';
comment on column app_public.users.email_verified_at is E'@masked\n\nWhen the user proved to own the e-mail address.';
comment on column app_public.users.last_login_at is E'@masked\n\nThe last sign-in.';
