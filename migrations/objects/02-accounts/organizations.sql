-- Organizations and their members. An organization always has an owner.

comment on type app_public.notification_settings is 'Which email notifications a member gets from one organization.';

comment on column app_public.notification_settings.new_lead is
  E'@notNull\n\nWhether to notify the member of new leads that no user of the team entered.';
comment on column app_public.notification_settings.lead_assigned is
  E'@notNull\n\nWhether to notify the member of leads that are assigned to them.';
comment on column app_public.notification_settings.contact_message is
  E'@notNull\n\nWhether to notify the member of messages to the sales office.';
comment on column app_public.notification_settings.appointment is
  E'@notNull\n\nWhether to notify the member when an appointment is scheduled or changed.';
comment on column app_public.notification_settings.reservation is
  E'@notNull\n\nWhether to notify the member when a reservation is created or changed.';
comment on column app_public.notification_settings.offer is
  E'@notNull\n\nWhether to notify the member of offers, and of responses to offers.';
comment on column app_public.notification_settings.task is
  E'@notNull\n\nWhether to notify the member of tasks that are due or were assigned to them.';
comment on column app_public.notification_settings.escalation is
  E'@notNull\n\nWhether to notify the member of new escalation tickets.';
comment on column app_public.notification_settings.export_ready is
  E'@notNull\n\nWhether to notify the member when their export is ready for download.';

create policy members on app_public.organizations for select to plat_user
  using (deleted_at is null and (id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[])
    or has_public_project
    or id = any (array(select app_hidden.partner_organizations()))));
create policy everybody on app_public.organizations for select to plat_anonymous
  using (deleted_at is null and has_public_project);
create policy admins on app_public.organizations for update to plat_user
  using (id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]));

select app_private.make_record('organizations', 'organization', 'org.admin', slug_from => 'name');

grant select on app_public.organizations to plat_user, plat_anonymous;
grant update (name, slug, kind, description, email, phone, website_url, address, time_zone, language)
  on app_public.organizations to plat_user;

comment on table app_public.organizations is 'A company (tenant), such as a developer, agency or lender.';
comment on column app_public.organizations.name is E'@impersonal\n\nName of the company.';
comment on column app_public.organizations.slug is 'Readable name for URLs, accepted wherever an id is.';
comment on column app_public.organizations.kind is 'Line of business.';
comment on column app_public.organizations.description is E'@impersonal\n\nDescription for the public page.';
comment on column app_public.organizations.email is E'@impersonal\n@masked\n\nEmail address for inquiries.';
comment on column app_public.organizations.phone is
  E'@impersonal\n@masked\n\nPhone number in E.164, such as +14165550123.';
comment on column app_public.organizations.address is E'@impersonal\n@masked\n\nPostal address.';
comment on column app_public.organizations.website_url is E'@impersonal\n\nAddress of its website.';
comment on column app_public.organizations.time_zone is 'IANA time zone of its office, such as America/Toronto.';
comment on column app_public.organizations.language is
  'Language of mails to people whose language is unknown, such as fr.';
comment on column app_public.organizations.has_public_project is E'@behavior -*\n\nWhether everybody sees its name.';
comment on constraint organizations_phone_e164 on app_public.organizations is
  'Not a valid phone number; use one with its country code, such as +1 416 555 0123.';
comment on index app_public.organizations_slug is 'This slug is taken; choose another.';

create policy members on app_public.organization_user_connections for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[]));

select app_private.make_record('organization_user_connections', 'member', 'org.owner');

grant select on app_public.organization_user_connections to plat_user, plat_anonymous;

comment on table app_public.organization_user_connections is 'The membership of a user in an organization.';
comment on column app_public.organization_user_connections.role is
  'Role of the member, which determines the permissions.';
comment on column app_public.organization_user_connections.title is E'@personal\n\nJob title in this organization.';
comment on column app_public.organization_user_connections.notifications is
  E'@impersonal\n@masked\n\nWhich mails the member gets.';
comment on column app_public.organization_user_connections.invited_by_id is
  E'@inert Members act for themselves.\n\nUser who invited the member.';
comment on column app_public.organization_user_connections.joined_at is 'When the user became a member.';
comment on column app_public.organization_user_connections.last_active_at is 'Time of the member''s last request.';
comment on constraint organization_user_connections_organization_id_fkey on app_public.organization_user_connections is
  E'@foreignFieldName members\n@backwardPermission org.member\n@backwardDescription Memberships, with roles; null '
  'for non-members.\n\n'
  'The organization.';
comment on constraint organization_user_connections_user_id_fkey on app_public.organization_user_connections is
  E'@backwardBehavior -*\n\nThe member.';
comment on constraint organization_user_connections_invited_by_id_fkey on app_public.organization_user_connections is
  E'@backwardBehavior -*\n\nUser who invited the member.';

create function app_private.tg_organization_user_connections__keep_owner() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if old.role = 'OWNER' and (tg_op = 'DELETE' or new.role <> 'OWNER') then
    -- Two owners who demote each other concurrently are serialized by the organization's row, so that the second sees
    -- the change of the first.
    perform from app_public.organizations o where o.id = old.organization_id for no key update;
    if not exists (select from app_public.organization_user_connections m
        where m.organization_id = old.organization_id and m.role = 'OWNER' and m.id <> old.id) then
      perform app_hidden.fail('CONFLICT',
        'This is the last owner of the organization; make somebody else an owner first.', '{"field": "role"}');
    end if;
  end if;
  return case when tg_op = 'DELETE' then old else new end;
end $$;
create trigger _200_keep_owner before update or delete on app_public.organization_user_connections
  for each row execute function app_private.tg_organization_user_connections__keep_owner();

create function app_public.organizations_viewer_role(o app_public.organizations) returns app_public.organization_role
language sql stable as $$
  select m.role from app_public.organization_user_connections m
  where m.organization_id = o.id and m.user_id = (select app_public.current_user_id())
$$;

create function app_public.organizations_email(o app_public.organizations) returns app_public.email_address
language sql stable as $$ select case when app_hidden.organization_can(o.id, 'org.member') then o.email end $$;

create function app_public.organizations_phone(o app_public.organizations) returns app_public.phone_number
language sql stable as $$ select case when app_hidden.organization_can(o.id, 'org.member') then o.phone end $$;

create function app_public.organizations_address(o app_public.organizations) returns app_public.address
language sql stable as $$
  -- Also a token that may change it without being a member's: it changes the parts that it names.
  select case when app_hidden.organization_can(o.id, 'org.member') or app_hidden.organization_can(o.id, 'org.admin')
    then o.address end
$$;
grant execute on function app_public.organizations_viewer_role, app_public.organizations_email,
  app_public.organizations_phone, app_public.organizations_address to plat_user, plat_anonymous;
comment on function app_public.organizations_viewer_role is
  'Role of the viewer; null for non-members.';
comment on function app_public.organizations_email is 'Email address for inquiries. Visible to members.';
comment on function app_public.organizations_phone is 'Phone number. Visible to members.';
comment on function app_public.organizations_address is
  'Postal address. Visible to members, and to tokens that may change it.';

create function app_public.organization_user_connections_notifications(m app_public.organization_user_connections)
  returns app_public.notification_settings
language sql stable as $$
  select case when m.user_id = (select app_public.current_user_id())
    or app_hidden.organization_can(m.organization_id, 'org.admin') then m.notifications end
$$;
grant execute on function app_public.organization_user_connections_notifications to plat_user, plat_anonymous;
comment on function app_public.organization_user_connections_notifications is
  'Mail notifications of the member. Visible to the member and to admins.';

-- Members who lack a required second factor see that they are refused, and by which organization.
create policy own_while_refused on app_public.organization_user_connections for select to plat_user
  using (user_id = (select app_public.current_user_id()) and second_factor_due_at <= now()
    and (select app_hidden.scopes_allow('org.member')) and organization_id =
      coalesce((select app_hidden.setting('organization_id')::uuid), organization_id));

create function app_hidden.own_organization_name(organization_id uuid) returns app_public.short_text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select o.name from app_public.organizations o where o.id = $1
    and exists (select from app_public.organization_user_connections m where m.organization_id = o.id
      and m.user_id = (select app_public.current_user_id()))
$$;
grant execute on function app_hidden.own_organization_name to plat_user, plat_anonymous;
comment on function app_hidden.own_organization_name(uuid) is
  'The name of an organization for its member, also while it refuses them everything else.';

-- The same membership, as the user sees it.
create view app_public.user_organization_connections with (security_barrier = true) as
  select m.id, m.user_id, m.organization_id, m.role, m.title,
    app_public.organization_user_connections_notifications(m) as notifications, m.joined_at,
    app_public.organization_user_connections_second_factor_due_at(m) as second_factor_due_at,
    app_hidden.own_organization_name(m.organization_id) as organization_name
  from app_public.organization_user_connections m
  where m.user_id = (select app_public.current_user_id());

alter view app_public.user_organization_connections owner to plat_masker;
grant select on app_public.user_organization_connections to plat_user, plat_anonymous;

comment on view app_public.user_organization_connections is $$
@primaryKey id
@foreignKey (user_id) references users (id)|@foreignFieldName organizations|@fieldName user
@foreignKey (organization_id) references organizations (id)|@fieldName organization|@backwardBehavior -*

The viewer's own membership in an organization.$$;

comment on column app_public.user_organization_connections.id is
  E'@notNull\n\nUUID of the membership; the same as in `OrganizationUserConnection`.';
comment on column app_public.user_organization_connections.role is
  E'@notNull\n\nRole of the viewer, which determines the permissions.';
comment on column app_public.user_organization_connections.title is 'Job title in this organization.';
comment on column app_public.user_organization_connections.notifications is
  E'@notNull\n\nEmail notifications that the viewer gets.';
comment on column app_public.user_organization_connections.second_factor_due_at is
  'When the viewer loses access to the organization unless they set up a second factor; null if they have one or '
  'it is not required.';
comment on column app_public.user_organization_connections.organization_name is
  E'@notNull\n\nName of the organization, readable even while the viewer lacks a required second factor.';
comment on column app_public.user_organization_connections.joined_at is E'@notNull\n\nWhen the user became a member.';

-- Here because the countries come after organizations and users.
create function app_private.tg_organizations__prepare() returns trigger
language plpgsql volatile as $$
begin
  new.address := app_hidden.complete_address(new.address, null);
  new.phone := app_hidden.to_e164(new.phone, (new.address).country);
  new.email := lower(new.email);
  return new;
end $$;
create trigger _200_prepare before insert or update of address, phone, email on app_public.organizations
  for each row execute function app_private.tg_organizations__prepare();

create function app_public.organizations_projects(o app_public.organizations) returns setof app_public.projects
language sql stable as $$
  select p.* from app_hidden.masked_projects p
  where p.organization_id = o.id
    and (p.visibility = 'PUBLIC' or app_hidden.project_can(p.id, p.organization_id, 'project.read'))
  order by p.updated_at desc, p.id desc
$$;
grant execute on function app_public.organizations_projects to plat_user, plat_anonymous;
comment on function app_public.organizations_projects is
  'The projects of the organization that the viewer may see, last updated first.';

create function app_public.organizations_avatar(o app_public.organizations)
  returns setof app_public.organization_avatars
language sql stable rows 1 as $$ select a.* from app_public.organization_avatars a where a.organization_id = o.id
  and a.deleted_at is null limit 1 $$;
grant execute on function app_public.organizations_avatar, app_public.projects_avatar, app_public.projects_hero to
  plat_user, plat_anonymous;
comment on function app_public.organizations_avatar is 'Logo of the organization.';

create trigger _500_unassign_deals after delete on app_public.organization_user_connections
  for each row execute function app_private.tg_members__unassign_deals();

create function app_private.tg_organizations__notification_progress() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_private.notification_progress (organization_id, last_sequence) values (new.id, 0);
  return null;
end $$;
create trigger _500_notification_progress after insert on app_public.organizations
  for each row execute function app_private.tg_organizations__notification_progress();

create function app_public.organizations_payments_status(o app_public.organizations) returns
  app_public.payments_account_status
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select case when app_hidden.organization_can(o.id, 'org.billing')
    then coalesce((select a.status from app_private.payments_accounts a where a.organization_id = o.id),
      'NOT_STARTED') end
$$;

create function app_public.organizations_payments_requirements(o app_public.organizations) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select case when app_hidden.organization_can(o.id, 'org.billing')
    then coalesce((select a.requirements from app_private.payments_accounts a where a.organization_id = o.id), '{}') end
$$;

comment on function app_public.organizations_payments_status is
  'Whether the organization can accept payments; null without the permission org.billing.';
comment on function app_public.organizations_payments_requirements is
  'Information that the payment processor still requires; null without the permission org.billing.';
