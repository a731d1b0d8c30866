-- An organization may require a second factor of its members. From second_factor_due_at of the membership on (the grace
-- period of the organization, counted from the requirement, from joining, or from the removal of the factor), members
-- without one cannot access any of its data, also not by access tokens; errors explain why and what to do. Automations
-- on their behalf lose their permissions as well.

comment on column app_public.organizations.second_factor_required_from is
  E'@masked\n\nFrom when on members without a second factor are refused its data; null where none is required.';
comment on column app_public.organizations.second_factor_grace_days is
  E'@masked\n\nHow many days members have to get a second factor.';
comment on constraint organizations_second_factor_grace on app_public.organizations is 'Must be at least 0 days.';
comment on column app_public.organization_user_connections.second_factor_due_at is
  E'@masked\n\nFrom when on the member is refused the data of the organization, unless they get a second factor.';
comment on column app_public.organization_user_connections.second_factor_reset_at is
  E'@masked\n\nWhen an administrator last took the second factor of the member away.';
comment on index app_public.organization_user_connections_second_factor_deadline is
  'Members whose time to get a second factor ends, in the order of when.';
comment on index app_public.organization_user_connections_second_factor_due is
  'Members without a second factor of organizations that require one.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('organization', 'second_factor_required_from', null, 'second_factor_required'),
  ('member', 'second_factor_reset_at', null, 'second_factor_reset');

create function app_public.organizations_second_factor_required_from(o app_public.organizations) returns timestamptz
language sql stable as $$
  select case when o.second_factor_required_from is not null and app_hidden.organization_can(o.id, 'org.member')
    then o.second_factor_required_from end
$$;
create function app_public.organizations_second_factor_grace_days(o app_public.organizations) returns int
language sql stable as $$
  select case when app_hidden.organization_can(o.id, 'org.member') then o.second_factor_grace_days end
$$;
create function app_public.organization_user_connections_second_factor_due_at(
  m app_public.organization_user_connections) returns timestamptz
language sql stable as $$
  select case when m.second_factor_due_at is not null and (m.user_id = (select app_public.current_user_id())
    or app_hidden.organization_can(m.organization_id, 'org.admin')) then m.second_factor_due_at end
$$;
create function app_public.organization_user_connections_second_factor_reset_at(
  m app_public.organization_user_connections) returns timestamptz
language sql stable as $$
  select case when m.second_factor_reset_at is not null and (m.user_id = (select app_public.current_user_id())
    or app_hidden.organization_can(m.organization_id, 'org.admin')) then m.second_factor_reset_at end
$$;
grant execute on function app_public.organizations_second_factor_required_from,
  app_public.organizations_second_factor_grace_days to plat_user, plat_anonymous;
grant execute on function app_public.organization_user_connections_second_factor_due_at,
  app_public.organization_user_connections_second_factor_reset_at to plat_user, plat_anonymous;
comment on function app_public.organizations_second_factor_required_from is
  'When members without a second factor lose access; null if none is required, and for non-members.';
comment on function app_public.organizations_second_factor_grace_days is
  'Number of days in which members must set up a second factor; null for non-members.';
comment on function app_public.organization_user_connections_second_factor_due_at is
  'When the member loses access unless they set up a second factor; null if they have one or it is not required. '
  'Visible to the member and to admins.';
comment on function app_public.organization_user_connections_second_factor_reset_at is
  'When an admin last removed the member''s second factor. Visible to the member and to admins.';

create function app_private.second_factor_due(organization_id uuid, user_id uuid, since timestamptz)
returns timestamptz
language sql stable as $$
  select greatest(o.second_factor_required_from, since + make_interval(days => o.second_factor_grace_days))
  from app_public.organizations o
  where o.id = $1 and o.second_factor_required_from is not null and not app_private.has_second_factor($2)
$$;
comment on function app_private.second_factor_due(uuid, uuid, timestamptz) is
  'From when on a member is refused who has no second factor since then; null where they have one, or need none.';

create function app_private.tg_members__second_factor_due() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.second_factor_due_at := app_private.second_factor_due(new.organization_id, new.user_id, now());
  return new;
end $$;
create trigger _200_second_factor_due before insert on app_public.organization_user_connections
  for each row execute function app_private.tg_members__second_factor_due();

create function app_private.tg_second_factors__members() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  account constant uuid := coalesce(new.user_id, old.user_id);
begin
  update app_public.organization_user_connections m
    set second_factor_due_at = app_private.second_factor_due(m.organization_id, account, now())
    where m.user_id = account;
  return null;
end $$;
create trigger _500_members_enabled after update on app_private.second_factors for each row
  when (old.confirmed_at is null and new.confirmed_at is not null)
  execute function app_private.tg_second_factors__members();
create trigger _500_members_removed after delete on app_private.second_factors for each row
  when (old.confirmed_at is not null) execute function app_private.tg_second_factors__members();

create function app_private.required_by(user_id uuid) returns text
language sql stable as $$
  select o.name from app_public.organization_user_connections m
  join app_public.organizations o on o.id = m.organization_id and o.deleted_at is null
  where m.user_id = $1 and o.second_factor_required_from is not null order by o.name limit 1
$$;
comment on function app_private.required_by(uuid) is
  'An organization of the user that requires a second factor; null if there is none.';

create function app_public.update_organization_second_factor(organization_id uuid, required boolean,
  grace_days int default null) returns app_public.organizations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  host constant uuid := update_organization_second_factor.organization_id;
  result app_public.organizations;
begin
  perform app_hidden.require_organization(host, 'org.owner');
  perform app_hidden.require_whole_account();
  if required is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'required is required.', '{"field": "required"}');
  elsif grace_days not between 0 and 90 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Must be from 0 to 90 days.', '{"field": "graceDays"}');
  elsif required and not app_private.has_second_factor(app_public.current_user_id()) then
    perform app_hidden.fail('FORBIDDEN',
      'Set up a second factor for your own account first (enrollSecondFactor), so that no owner is locked out.',
      '{"reason": "SECOND_FACTOR_REQUIRED"}');
  end if;
  update app_public.organizations o set
      second_factor_grace_days = coalesce(update_organization_second_factor.grace_days, o.second_factor_grace_days),
      second_factor_required_from = case when update_organization_second_factor.required then
        now() + make_interval(days => coalesce(update_organization_second_factor.grace_days,
          o.second_factor_grace_days)) end
    where o.id = host returning * into result;
  update app_public.organization_user_connections m
    set second_factor_due_at = app_private.second_factor_due(m.organization_id, m.user_id, now())
    where m.organization_id = host and (m.second_factor_due_at is not null
      or (update_organization_second_factor.required and not app_private.has_second_factor(m.user_id)));
  if required then
    perform app_private.add_job('second_factor__required', jsonb_build_object('id', host),
      job_key => 'second_factor__required ' || host);
  end if;
  return app_hidden.masked(result);
end $$;
comment on function app_public.update_organization_second_factor is $$
@arg organization_id Id of the organization; the viewer must be an owner.
@arg required Whether members must have a second factor.
@arg grace_days Days to set up a second factor, also for new members: 0 to 90. Default: the previous value, or 7.

Starts or stops requiring a second factor of all members of an organization. Members without one are notified by
mail and lose access after the grace period until they set one up. Requires the role OWNER and a second factor on
the viewer's own account.$$;

create function app_public.reset_member_second_factor(organization_id uuid, user_id uuid,
  password app_public.password_proof, second_factor_code app_public.second_factor_code default null)
returns app_public.organization_user_connections
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  host constant uuid := reset_member_second_factor.organization_id;
  viewer constant uuid := app_hidden.require_whole_account();
  member app_public.organization_user_connections;
begin
  perform app_hidden.require_organization(host, 'org.admin');
  select m.* into member from app_public.organization_user_connections m
    where m.organization_id = host and m.user_id = reset_member_second_factor.user_id;
  if member.id is null then
    perform app_hidden.fail('NOT_FOUND', 'This organization has no such member.', '{"field": "userId"}');
  elsif member.user_id = viewer then
    perform app_hidden.fail('BAD_USER_INPUT', 'Use disableSecondFactor to remove your own second factor.',
      '{"field": "userId"}');
  end if;
  -- Administrators take nothing from owners.
  perform app_private.require_role_within(host, member.role);
  perform app_private.require_password(viewer, password);
  perform app_private.require_second_factor(viewer, second_factor_code);
  perform from app_public.users u where u.id = member.user_id for no key update;
  if not app_private.has_second_factor(member.user_id) then
    perform app_hidden.fail('CONFLICT', 'This member has no second factor.', '{"field": "userId"}');
  end if;
  -- The account does not belong to the organization alone, so its administrators cannot weaken it.
  if exists (select from app_public.organization_user_connections o
      join app_public.organizations g on g.id = o.organization_id and g.deleted_at is null
      where o.user_id = member.user_id and not app_hidden.organization_can(o.organization_id, 'org.admin')) then
    perform app_hidden.fail('CONFLICT',
      'This member also belongs to organizations that you do not administer. They can sign in with a recovery code.',
      '{"field": "userId"}');
  end if;
  perform app_private.remove_second_factor(member.user_id, 'SECOND_FACTOR_RESET', jsonb_build_object(
    'organization', (select o.name from app_public.organizations o where o.id = host),
    'name', (select app_public.users_full_name(u) from app_public.users u where u.id = viewer)));
  perform app_private.end_sessions(member.user_id);
  update app_public.organization_user_connections m set second_factor_reset_at = now() where m.id = member.id
    returning m.* into member;
  return app_hidden.masked(member);
end $$;
comment on function app_public.reset_member_second_factor is $$
@arg organization_id Id of an organization in which the viewer is an admin.
@arg user_id Id of the member who lost access to the second factor.
@arg password The password of the viewer's own account.
@arg second_factor_code Code of the viewer's authenticator app, or a recovery code, if they have a second factor.

Removes the second factor of a member and ends their sessions. The member is notified by mail, signs in with the
password alone and sets up a new one. Requires the permission org.admin, the permissions of the member's role, and
that the viewer is an admin of all organizations of the member.$$;
grant execute on function app_public.update_organization_second_factor, app_public.reset_member_second_factor
  to plat_user, plat_anonymous;

-- The errors of requests of a refused member.
create function app_private.second_factor_withholds(user_id uuid, organization_id uuid default null) returns text
language sql stable as $$
  select case when exists (select from app_public.organization_user_connections m
      where m.user_id = $1 and m.second_factor_due_at <= now() and ($2 is null or m.organization_id = $2))
    then case when exists (select from app_public.organization_user_connections m
        where m.user_id = $1 and app_private.is_open(m.second_factor_due_at)
          and ($2 is null or m.organization_id = $2)) then 'SOME' else 'ALL' end end
$$;
comment on function app_private.second_factor_withholds(uuid, uuid) is
  'Whether organizations of the user, or the one named, refuse them because they have no second factor: SOME or ALL of '
  'them; null where none does.';

create function app_private.members_without_second_factor(organization_id uuid)
returns table (email text, organization text, due_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select i.email, o.name, m.second_factor_due_at
  from app_public.organization_user_connections m
  join app_public.organizations o on o.id = m.organization_id and o.deleted_at is null
  join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
  join app_hidden.user_identities i on i.user_id = u.id
  where m.organization_id = $1 and m.second_factor_due_at is not null
  order by i.email
$$;
comment on function app_private.members_without_second_factor(uuid) is
  'Whom to tell that an organization requires a second factor.';
grant execute on function app_private.members_without_second_factor to plat_worker;

create function app_private.second_factor_reminders(most int)
returns table (key text, email text, organization text, due_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select k.key, i.email, o.name, m.second_factor_due_at
  from app_public.organization_user_connections m
  join app_public.organizations o on o.id = m.organization_id and o.deleted_at is null
    -- Grace periods of up to one day were announced when they began.
    and o.second_factor_grace_days > 1
  join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
  join app_hidden.user_identities i on i.user_id = u.id
  cross join lateral (select format('second factor reminder %s %s', m.id,
    extract(epoch from m.second_factor_due_at)) as key) k
  where m.second_factor_due_at > now() and m.second_factor_due_at <= now() + interval '24 hours'
    and not app_private.mail_is_done(k.key)
  order by m.second_factor_due_at, m.id limit most
$$;
comment on function app_private.second_factor_reminders(int) is
  'Whom to remind that within a day they are refused for want of a second factor, the first to be refused first: those '
  'who were not, under the key of the mail.';
grant execute on function app_private.second_factor_reminders to plat_worker;
