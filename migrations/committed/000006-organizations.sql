--! Previous: sha1:a9f0e54bdb025c5af63a0a2ddc7e613a7469d52e
--! Hash: sha1:3c3541bc472b53f5acceae85ab52050b9a71b613
--! Message: organizations

-- Organizations and their members. An organization always has an owner.

select app_private.create_enum('organization_kind', 'What an organization does.', array[
  ['DEVELOPER', 'Develops projects.'], ['BUILDER', 'Builds homes.'], ['BROKERAGE', 'Brokers sales.'], ['AGENCY', 'Sells for others.'],
  ['MARKETING', 'Advertises.'], ['LENDER', 'Lends.'], ['TITLE_COMPANY', 'Insures titles.'], ['LAW_FIRM', 'Practises law.'], ['OTHER', 'Something else.']]);

create type app_public.notification_settings as (
  new_lead boolean,
  lead_assigned boolean,
  lead_note boolean,
  contact_message boolean,
  appointment boolean,
  reservation boolean,
  offer boolean,
  task boolean,
  escalation boolean,
  export_ready boolean
);
comment on type app_public.notification_settings is 'Which e-mail notifications a member gets from one organization.';
comment on column app_public.notification_settings.new_lead is E'@notNull\n\nA new lead came in by itself.';
comment on column app_public.notification_settings.lead_assigned is E'@notNull\n\nA lead was assigned to the member.';
comment on column app_public.notification_settings.lead_note is E'@notNull\n\nSomebody wrote a note on a lead of the member.';
comment on column app_public.notification_settings.contact_message is E'@notNull\n\nA visitor wrote to the sales office.';
comment on column app_public.notification_settings.appointment is E'@notNull\n\nAn appointment was made or changed.';
comment on column app_public.notification_settings.reservation is E'@notNull\n\nA reservation was made or changed.';
comment on column app_public.notification_settings.offer is E'@notNull\n\nAn offer came in or was answered.';
comment on column app_public.notification_settings.task is E'@notNull\n\nA task is due or was assigned.';
comment on column app_public.notification_settings.escalation is E'@notNull\n\nAn escalation ticket was opened.';
comment on column app_public.notification_settings.export_ready is E'@notNull\n\nAn export is ready.';

create table app_public.organizations (
  id uuid primary key default uuidv7(),
  name app_public.short_text not null,
  slug app_public.slug not null,
  kind app_public.organization_kind not null default 'DEVELOPER',
  description app_public.long_text,
  email app_public.email_address,
  phone app_public.phone_number constraint organizations_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  website_url app_public.url,
  address app_public.address,
  time_zone app_public.time_zone not null default 'UTC',
  has_public_project boolean not null default false,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz
);
comment on constraint organizations_phone_e164 on app_public.organizations is 'This is no phone number; give one with its country code, such as +1 416 555 0123.';
create unique index organizations_slug on app_public.organizations (slug);

create table app_public.organization_user_connections (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  user_id uuid not null references app_public.users on delete restrict,
  role app_public.organization_role not null default 'MEMBER',
  title app_public.short_text,
  notifications app_public.notification_settings not null default row(true, true, true, true, true, true, true, true, true, true),
  joined_at timestamptz not null default now(),
  invited_by_id uuid references app_public.users on delete set null,
  last_active_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint organization_user_connections_once unique (organization_id, user_id)
);
create index organization_user_connections_user on app_public.organization_user_connections (user_id, organization_id);
create index organization_user_connections_invited_by on app_public.organization_user_connections (invited_by_id);

alter table app_public.organizations enable row level security;
create policy members on app_public.organizations for select to plat_user
  using (deleted_at is null and (id = any (array(select app_hidden.viewer_organizations('org.member'))) or has_public_project));
create policy everybody on app_public.organizations for select to plat_anonymous
  using (deleted_at is null and has_public_project);
create policy admins on app_public.organizations for update to plat_user
  using (id = any (array(select app_hidden.viewer_organizations('org.admin'))))
  with check (id = any (array(select app_hidden.viewer_organizations('org.admin'))));
grant select on app_public.organizations to plat_user, plat_anonymous, plat_worker;
grant update (name, slug, kind, description, email, phone, website_url, address, time_zone) on app_public.organizations to plat_user;

alter table app_public.organization_user_connections enable row level security;
create policy members on app_public.organization_user_connections for select to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('org.member'))));
grant select on app_public.organization_user_connections to plat_user, plat_anonymous, plat_worker;

select app_private.make_record('organizations', 'organization', 'org.admin', slug_from => 'name');
select app_private.make_record('organization_user_connections', 'member', 'org.owner');

--------------------------------------------------------------------------------------------------------

create function app_private.tg_organization_user_connections__keep_owner() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if old.role = 'OWNER' and (tg_op = 'DELETE' or new.role <> 'OWNER') then
    -- Two owners who demote each other at the same moment meet at the row of the organization; the second sees the first's result.
    perform from app_public.organizations o where o.id = old.organization_id for no key update;
    if not exists (select from app_public.organization_user_connections m
        where m.organization_id = old.organization_id and m.role = 'OWNER' and m.id <> old.id) then
      perform app_hidden.fail('CONFLICT', 'This is the last owner of the organization; make somebody else an owner first.', '{"field": "role"}');
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
language sql stable as $$ select case when app_hidden.organization_can(o.id, 'org.member') then o.address end $$;
grant execute on function app_public.organizations_viewer_role, app_public.organizations_email, app_public.organizations_phone,
  app_public.organizations_address to plat_user, plat_anonymous;
comment on function app_public.organizations_viewer_role is 'The role of the viewer; null for those who are no members.';
comment on function app_public.organizations_email is 'E-mail address for enquiries; seen by members.';
comment on function app_public.organizations_phone is 'Phone number; seen by members.';
comment on function app_public.organizations_address is 'Postal address; seen by members.';

comment on table app_public.organizations is 'A company: a developer, builder, brokerage or other party.';
comment on column app_public.organizations.name is 'Name of the company.';
comment on column app_public.organizations.slug is 'Readable name in addresses; accepted as id.';
comment on column app_public.organizations.kind is 'What the company does.';
comment on column app_public.organizations.description is 'What the public reads about it.';
comment on column app_public.organizations.email is E'@masked\n\nE-mail address for enquiries.';
comment on column app_public.organizations.phone is E'@masked\n\nPhone number.';
comment on column app_public.organizations.address is E'@masked\n\nPostal address.';
comment on column app_public.organizations.website_url is 'Address of its website.';
comment on column app_public.organizations.time_zone is 'Time zone of its office, such as America/Toronto.';
comment on column app_public.organizations.has_public_project is E'@behavior -*\n\nWhether everybody sees its name.';

comment on table app_public.organization_user_connections is 'The membership of a user in an organization.';
comment on column app_public.organization_user_connections.role is 'What the member may do.';
comment on column app_public.organization_user_connections.title is 'Position in this organization.';
comment on column app_public.organization_user_connections.notifications is E'@masked\n\nWhich mails the member gets.';
comment on column app_public.organization_user_connections.invited_by_id is 'Who invited the member.';
comment on column app_public.organization_user_connections.joined_at is 'Since when.';
comment on column app_public.organization_user_connections.last_active_at is 'The last request of the member.';
comment on constraint organization_user_connections_organization_id_fkey on app_public.organization_user_connections is
  E'@foreignFieldName members\n@backwardPermission org.member\n@backwardDescription The members; null for outsiders.\n\nThe organization.';
comment on constraint organization_user_connections_user_id_fkey on app_public.organization_user_connections is
  E'@backwardBehavior -*\n\nThe member.';
comment on constraint organization_user_connections_invited_by_id_fkey on app_public.organization_user_connections is
  E'@backwardBehavior -*\n\nWho invited the member.';

create function app_public.organization_user_connections_notifications(m app_public.organization_user_connections) returns app_public.notification_settings
language sql stable as $$
  select case when m.user_id = (select app_public.current_user_id()) or app_hidden.organization_can(m.organization_id, 'org.admin') then m.notifications end
$$;
grant execute on function app_public.organization_user_connections_notifications to plat_user;
comment on function app_public.organization_user_connections_notifications is 'Which mails the member gets; seen by the member and by admins.';

-- The same membership, as the user sees it.
create view app_public.user_organization_connections with (security_invoker = true, security_barrier = true) as
  select m.id, m.user_id, m.organization_id, m.role, m.title, m.notifications, m.joined_at
  from app_public.organization_user_connections m
  where m.user_id = (select app_public.current_user_id());
grant select on app_public.user_organization_connections to plat_user, plat_anonymous;
comment on view app_public.user_organization_connections is $$
@primaryKey id
@foreignKey (user_id) references users (id)|@foreignFieldName organizations|@fieldName user
@foreignKey (organization_id) references organizations (id)|@fieldName organization|@backwardBehavior -*

The viewer's own membership in an organization.$$;
comment on column app_public.user_organization_connections.id is E'@notNull\n\nThe id of the membership.';
comment on column app_public.user_organization_connections.role is E'@notNull\n\nWhat the viewer may do.';
comment on column app_public.user_organization_connections.title is 'Position in this organization.';
comment on column app_public.user_organization_connections.notifications is E'@notNull\n\nWhich mails the viewer gets.';
comment on column app_public.user_organization_connections.joined_at is E'@notNull\n\nSince when.';
