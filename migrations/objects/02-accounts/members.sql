-- Creating an organization, and managing its members.

create function app_public.create_organization(
  name text, slug text default null, kind app_public.organization_kind default null, description text default null,
  email app_public.email_address default null, phone app_public.phone_number default null,
    website_url app_public.url default null,
  address app_public.address default null, time_zone text default null,
  language app_public.language_code default null, is_sandbox boolean default false
) returns app_public.organizations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer uuid := app_hidden.require_viewer();
  result app_public.organizations;
begin
  -- A restricted access token does not found another organization.
  if not app_hidden.scopes_allow('org.admin') or app_hidden.setting('organization_id') is not null then
    perform app_hidden.fail('FORBIDDEN', 'This access token cannot create organizations; sign in to create one.',
      '{"permission": "org.admin"}');
  end if;
  perform app_private.rate_limit('organization.user', viewer::text);
  result := app_hidden.create_record(null::app_public.organizations, jsonb_build_object(
    'name', name, 'slug', slug, 'kind', kind, 'description', description, 'email', lower(email), 'phone', phone,
    'website_url', website_url, 'address', to_jsonb(address),
    'time_zone', coalesce(time_zone, (select u.time_zone from app_public.users u where u.id = viewer)),
    'language', coalesce(language, (select u.language from app_public.users u where u.id = viewer)),
    'is_sandbox', coalesce(is_sandbox, false)));
  insert into app_public.organization_user_connections (organization_id, user_id, role)
    values (result.id, viewer, 'OWNER');
  return app_hidden.masked(result);
end $$;
grant execute on function app_public.create_organization to plat_user, plat_anonymous;
comment on function app_public.create_organization is $$
@arg name Name of the company.
@arg slug Readable name for URLs. Default: derived from the name.
@arg kind Business of the company. Default: DEVELOPER.
@arg description Description for the public page.
@arg email Email address for inquiries.
@arg phone Phone number, with its country code.
@arg website_url Address of its website.
@arg address Postal address.
@arg time_zone Time zone of the office, such as America/Toronto. Default: the time zone of the founder.
@arg language Language of mails to people whose language is unknown, such as fr. Default: that of the founder.
@arg is_sandbox Creates a sandbox organization, to try out programs; cannot be changed later. Default: false.

Creates an organization with the viewer as its first owner. At most ten per day.$$;

create function app_private.require_member(organization_id uuid,
  user_id uuid) returns app_public.organization_user_connections
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  member app_public.organization_user_connections;
begin
  perform app_hidden.require_organization(organization_id, 'org.owner');
  -- Owners take turns, and the second one is still an owner when it is their turn.
  perform from app_public.organizations o where o.id = organization_id for no key update;
  perform app_hidden.require_organization(organization_id, 'org.owner');
  select m.* into member from app_public.organization_user_connections m
    where m.organization_id = organization_id and m.user_id = user_id for update;
  if member.id is null then
    perform app_hidden.fail('NOT_FOUND', 'This organization has no such member.', '{"field": "userId"}');
  end if;
  return member;
end $$;
comment on function app_private.require_member(uuid, uuid) is
  'A member, locked, for an owner of the organization; the organization is locked before, so that owners who remove or '
  'demote each other take turns.';

create function app_public.update_organization_member_role(organization_id uuid, user_id uuid,
  role app_public.organization_role)
returns app_public.organization_user_connections
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  member app_public.organization_user_connections := app_private.require_member(organization_id, user_id);
begin
  if role is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'role is required.', '{"field": "role"}');
  end if;
  perform app_private.require_role_within(organization_id, role, member.role);
  update app_public.organization_user_connections m set role = update_organization_member_role.role
    where m.id = member.id returning * into member;
  return app_hidden.masked(member);
end $$;
grant execute on function app_public.update_organization_member_role to plat_user, plat_anonymous;
comment on function app_public.update_organization_member_role is $$
@arg organization_id Id of the organization; the viewer must be an owner.
@arg user_id Id of the member's user account.
@arg role Role that the member gets.

Changes the role of a member. Requires the role OWNER; a restricted access token must have all permissions that the
role adds. Refused for the last owner of the organization.$$;

comment on type app_public.remove_organization_member_payload is 'Result of removing a member.';

comment on column app_public.remove_organization_member_payload.organization is
  'Id of the organization that it belongs to.';
comment on column app_public.remove_organization_member_payload."user" is 'User account of the former member.';
comment on column app_public.remove_organization_member_payload.removed_projects is
  'The projects of the organization, or that it is affiliated with, in which leads were assigned to the member.';
comment on column app_public.remove_organization_member_payload.reassigned_leads is
  E'@notNull\n\nNumber of leads that became unassigned.';

create function app_public.remove_organization_member(organization_id uuid,
  user_id uuid) returns app_public.remove_organization_member_payload
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  member app_public.organization_user_connections := app_private.require_member(organization_id, user_id);
  result app_public.remove_organization_member_payload;
  abroad uuid[];
begin
  -- In projects of others, whose deals the member leaves, too (tg_members__leave_affiliations).
  abroad := array(select l.id from app_public.leads l
    join app_public.project_organizations a on a.project_id = l.project_id and a.role <> 'OWNER'
      and a.organization_id = member.organization_id
    where l.assignee_id = member.user_id and l.deleted_at is null);
  select u into result."user" from app_public.users u where u.id = member.user_id;
  select o into result.organization from app_public.organizations o where o.id = member.organization_id;
  delete from app_public.organization_user_connections m where m.id = member.id;
  with own as (
    update app_public.leads l set assignee_id = null
    where l.organization_id = member.organization_id and l.assignee_id = member.user_id and l.deleted_at is null
    returning l.project_id
  ), unassigned as (
    select o.project_id from own o
    union all
    select l.project_id from app_public.leads l where l.id = any (abroad) and l.assignee_id is null
  )
  select coalesce((select array_agg(p order by p.id) from app_public.projects p
    where p.id in (select project_id from unassigned)), '{}'), count(*)
    into result.removed_projects, result.reassigned_leads from unassigned;
  return result;
end $$;
grant execute on function app_public.remove_organization_member to plat_user, plat_anonymous;
comment on function app_public.remove_organization_member is
  E'@arg organization_id Id of the organization; the viewer must be an owner.\n@arg user_id Id of the member''s '
  'user account.\n\n'
  'Removes a member. Their leads in the organization become unassigned, as do their open leads in projects that '
  'the organization is affiliated with. Requires the role OWNER, even to remove oneself; the last owner cannot be '
  'removed.';

create function app_public.update_organization_notifications(organization_id uuid,
  notifications app_public.notification_settings)
returns app_public.user_organization_connections
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  result app_public.user_organization_connections;
begin
  perform app_hidden.require_organization(organization_id, 'org.member');
  update app_public.organization_user_connections m
    set notifications = jsonb_populate_record(m.notifications,
      jsonb_strip_nulls(to_jsonb(update_organization_notifications.notifications)))
    where m.organization_id = organization_id and m.user_id = app_public.current_user_id();
  select c.* into result from app_public.user_organization_connections c where c.organization_id = organization_id;
  return result;
end $$;
grant execute on function app_public.update_organization_notifications to plat_user, plat_anonymous;
comment on function app_public.update_organization_notifications is $$
@arg organization_id Id of the organization that sends the notifications.
@arg notifications Notifications to enable or disable; omitted ones stay unchanged.

Enables or disables email notifications that the viewer gets from an organization. Omitted kinds stay unchanged.$$;
