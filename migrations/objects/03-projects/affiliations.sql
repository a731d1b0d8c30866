-- Affiliations: the participation of organizations in a project. The owner's is created with the project; others are
-- invited and accept (affiliation-invites.sql). The members of an affiliated organization have the permissions of its
-- role in role_permissions, or the subset that the owner grants them (permissions).
--
-- An affiliation ends with deleteProjectOrganization, called by the owner or by the organization itself, and with it
-- all access: every policy checks it. Assignees must be able to see their deals, so open records of members who would
-- lose access are handed over before, or the operation is refused with a list of them.

-- Which others have a part in a project is for its owner to know.
create policy portfolio on app_public.project_organizations for select to plat_user
  using (owner_id = any ((select app_hidden.viewer_organizations('project.read'))::uuid[])
    or organization_id = any ((select app_hidden.viewer_organizations('project.read'))::uuid[])
    or (role = 'OWNER' and project_id = any ((select app_hidden.viewer_projects('project.read'))::uuid[])));
create policy managers_update on app_public.project_organizations for update to plat_user
  using (role <> 'OWNER' and owner_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));
create policy both_delete on app_public.project_organizations for delete to plat_user
  using (role <> 'OWNER' and (owner_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[])
    or organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[])));

select app_private.make_record('project_organizations', 'affiliation', 'project.manage', other_party => 'owner_id');

grant select on app_public.project_organizations to plat_user, plat_anonymous;
grant update (role, permissions) on app_public.project_organizations to plat_user;
grant delete on app_public.project_organizations to plat_user;

comment on table app_public.project_organizations is 'The affiliation of an organization with a project.';
comment on column app_public.project_organizations.owner_id is
  E'@behavior -*\n\nThe organization that owns the project.';
comment on column app_public.project_organizations.role is
  'Role of the organization in the project, which determines what its members can see and do.';
comment on column app_public.project_organizations.permissions is
  'Permissions of its members, a subset of those of its role; null for all of them. Always includes project.read.';
comment on constraint project_organizations_project_id_fkey on app_public.project_organizations is
  E'@fieldName project\n'
  '@foreignFieldName organizations\n'
  '@backwardDescription Organizations affiliated with the project. An affiliated organization sees the owner and '
  'itself; other users see none.\n\n'
  'The project that it belongs to.';
comment on constraint project_organizations_organization_id_fkey on app_public.project_organizations is
  E'@foreignFieldName affiliations\n'
  '@backwardPermission org.member\n'
  '@backwardDescription Affiliations with projects, including own projects; null for non-members.\n\n'
  'The organization.';
comment on constraint project_organizations_one_owner on app_public.project_organizations is
  'A project has only one owner; use another role.';
comment on table app_private.former_affiliates is
  'Users of other organizations who worked on deals of an organization; their names stay visible to it after their '
  'affiliation has ended.';

-- Permissions to which a role can be restricted.
create function app_private.check_affiliate_permissions(role text, permissions text[]) returns text[]
language plpgsql stable as $$
declare
  wanted constant text[] := array(select distinct p from unnest(permissions || '{project.read}'::text[]) p order by p);
  unknown text;
  lacking text;
begin
  if permissions is null then
    return null;
  end if;
  select p into unknown from unnest(wanted) p where not exists (select from app_private.role_permissions r
    where r.role = check_affiliate_permissions.role and r.in_affiliated and r.permission = p) order by p limit 1;
  if unknown is not null or cardinality(permissions) > 100 then
    perform app_hidden.fail('BAD_USER_INPUT', format(
      'The role %s does not include the permission %s in a project; use some of: %s.',
      role, left(unknown, 100), (select string_agg(r.permission, ', ' order by r.permission)
        from app_private.role_permissions r where r.role = check_affiliate_permissions.role and r.in_affiliated)),
      '{"field": "permissions"}');
  end if;
  -- Nobody may change what they cannot read.
  select p into lacking from unnest(wanted) p
    where p like '%.write' and replace(p, '.write', '.read') <> all (wanted)
      and exists (select from app_private.role_permissions r where r.role = check_affiliate_permissions.role
        and r.in_affiliated and r.permission = replace(p, '.write', '.read')) order by p limit 1;
  if lacking is not null then
    perform app_hidden.fail('BAD_USER_INPUT',
      format('The permission %s requires %s; specify both.',
        lacking, replace(lacking, '.write', '.read')), '{"field": "permissions"}');
  end if;
  return wanted;
end $$;
comment on function app_private.check_affiliate_permissions(text, text[]) is
  'The permissions that a role is cut down to, project.read included, in order; refuses those that it does not have, '
  'and writing without reading. Null, for all, stays null.';

create function app_private.affiliate_role_lacks(owner_id uuid, role text, permissions text[]) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.permission from app_private.role_permissions r
  where r.role = affiliate_role_lacks.role and r.in_affiliated
    and (permissions is null or r.permission = any (permissions))
    and not app_hidden.organization_can(affiliate_role_lacks.owner_id, r.permission)
  order by r.permission limit 1
$$;
comment on function app_private.affiliate_role_lacks(uuid, text, text[]) is
  'A permission that an affiliated organization would have and the viewer does not have in the organization that owns '
  'the project; null where the viewer may give the role.';

create function app_private.require_affiliate_role(owner_id uuid, role text, permissions text[]) returns void
language plpgsql stable as $$
declare
  lacking constant text := app_private.affiliate_role_lacks(owner_id, role, permissions);
begin
  if lacking is not null then
    perform app_hidden.fail('FORBIDDEN',
      format('The role %s includes the permission %s, which you cannot grant because your token does not have it.',
        role, lacking), jsonb_build_object('permission', lacking));
  end if;
end $$;
comment on function app_private.require_affiliate_role(uuid, text, text[]) is
  'Refuses viewers who would grant an organization a permission that they do not have themselves, or that their '
  'token lacks.';

create function app_private.tg_project_organizations__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.role = 'OWNER' and (tg_op = 'INSERT' or old.role = 'OWNER') then
    return new;
  end if;
  if new.role = 'OWNER' then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The role of the owner of a project cannot be changed.', '{"field": "role"}');
  end if;
  new.permissions := app_private.check_affiliate_permissions(new.role, new.permissions);
  if tg_op = 'UPDATE' and app_public.current_user_id() is not null then
    perform app_private.require_affiliate_role(new.owner_id, new.role, new.permissions);
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.project_organizations for each row
  execute function app_private.tg_project_organizations__prepare();
create trigger _060_refuse_archived before insert or update on app_public.project_organizations for each row
  when (new.role <> 'OWNER') execute function app_private.tg__refuse_archived();

-- Users who work on deals.
create function app_private.sells_in(user_id uuid, project_id uuid, locks boolean default false) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from app_public.projects p
      join app_public.organization_user_connections m on m.organization_id = p.organization_id
      where p.id = sells_in.project_id and m.user_id = sells_in.user_id) then
    return true;
  end if;
  if locks then
    -- Waits for a concurrent end of the affiliation, or makes it wait.
    perform from app_public.project_organizations a
      join app_public.organization_user_connections m on m.organization_id = a.organization_id
      where a.project_id = sells_in.project_id and m.user_id = sells_in.user_id order by a.id for share of a;
  end if;
  return exists (select from app_private.affiliate_permissions a
    join app_public.organization_user_connections m on m.organization_id = a.organization_id
    where a.project_id = sells_in.project_id and m.user_id = sells_in.user_id and a.permission = 'lead.read');
end $$;
comment on function app_private.sells_in(uuid, uuid, boolean) is
  'Whether a user can work on deals of a project: a member of the organization that owns it, or of an affiliated one '
  'that may see its own leads there. locks: so that it stays so until the transaction ends.';

create function app_private.affiliate_sells(role text, permissions text[]) returns boolean
language sql stable as $$
  select (permissions is null or 'lead.read' = any (permissions)) and exists (
    select from app_private.role_permissions r where r.role = affiliate_sells.role and r.in_affiliated
      and r.permission = 'lead.read')
$$;
comment on function app_private.affiliate_sells(text, text[]) is
  'Whether an affiliated organization with this role and these permissions sees its own leads.';

create function app_private.people_losing_deals(affiliation app_public.project_organizations) returns uuid[]
language sql volatile as $$
  select array(select m.user_id from app_public.organization_user_connections m
    where m.organization_id = affiliation.organization_id
      and not app_private.sells_in(m.user_id, affiliation.project_id) order by 1)
$$;
comment on function app_private.people_losing_deals(app_public.project_organizations) is
  'The members of an affiliated organization who cannot work on deals of the project, as affiliations are now.';

-- Open records. Records of a lead or purchase have its assignee.
create function app_private.open_deals(project_id uuid, people uuid[]) returns app_public.open_deals
language sql stable as $$
  select row(
    (select count(*) from app_public.leads d where d.project_id = $1 and d.assignee_id = any ($2)
      and d.deleted_at is null and d.status not in ('CONVERTED', 'LOST', 'UNQUALIFIED')),
    (select count(*) from app_public.buyers d where d.project_id = $1 and d.assignee_id = any ($2)
      and d.deleted_at is null and d.status not in ('CLOSED', 'CANCELLED')),
    (select count(*) from app_public.unit_holds d where d.project_id = $1 and d.assignee_id = any ($2)
      and d.deleted_at is null and d.status = 'ACTIVE'),
    (select count(*) from app_public.reservations d where d.project_id = $1 and d.assignee_id = any ($2)
      and d.deleted_at is null and d.status in ('PENDING', 'CONFIRMED')),
    (select count(*) from app_public.negotiations d where d.project_id = $1 and d.assignee_id = any ($2)
      and d.deleted_at is null and d.status in ('OPEN', 'ACTIVE')),
    (select count(*) from app_public.offers d where d.project_id = $1 and d.assignee_id = any ($2)
      and d.status = 'PENDING'),
    (select count(*) from app_public.personalizations d where d.project_id = $1 and d.assignee_id = any ($2)
      and d.deleted_at is null and d.status in ('DRAFT', 'SUBMITTED', 'CHANGES_REQUESTED', 'APPROVED')),
    (select count(*) from app_public.appointments d where d.project_id = $1
      and (d.assignee_id = any ($2) or d.host_id = any ($2))
      and d.deleted_at is null and d.status in ('REQUESTED', 'SCHEDULED', 'CONFIRMED')),
    (select count(*) from app_public.tasks d where d.project_id = $1 and d.assignee_id = any ($2)
      and d.deleted_at is null and d.status in ('OPEN', 'IN_PROGRESS', 'WAITING')))::app_public.open_deals
$$;
comment on function app_private.open_deals(uuid, uuid[]) is
  'How much of a project is open with these people, of each kind.';

comment on type app_public.open_deals is
  'Number of open records assigned to the people of an organization in a project.';
comment on column app_public.open_deals.leads is E'@notNull\n\nNumber of leads that are neither converted nor lost.';
comment on column app_public.open_deals.buyers is
  E'@notNull\n\nNumber of purchases that are neither closed nor cancelled.';
comment on column app_public.open_deals.holds is E'@notNull\n\nNumber of active holds.';
comment on column app_public.open_deals.reservations is E'@notNull\n\nNumber of active reservations.';
comment on column app_public.open_deals.negotiations is E'@notNull\n\nNumber of negotiations in progress.';
comment on column app_public.open_deals.offers is E'@notNull\n\nNumber of pending offers.';
comment on column app_public.open_deals.personalizations is
  E'@notNull\n\nNumber of personalizations that are not signed.';
comment on column app_public.open_deals.appointments is
  E'@notNull\n\nNumber of upcoming appointments, including those that the user only hosts.';
comment on column app_public.open_deals.tasks is E'@notNull\n\nNumber of open tasks.';

create function app_private.hand_over_deals(project_id uuid, people uuid[], to_user uuid) returns app_public.open_deals
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  handed app_public.open_deals := app_private.open_deals(project_id, people);
  lead_ids uuid[] := array(select l.id from app_public.leads l where l.project_id = project_id
    and l.assignee_id = any (people) and l.deleted_at is null
    and l.status not in ('CONVERTED', 'LOST', 'UNQUALIFIED') order by l.id);
  buyer_ids uuid[] := array(select b.id from app_public.buyers b where b.project_id = project_id
    and b.assignee_id = any (people) and b.deleted_at is null and b.status not in ('CLOSED', 'CANCELLED')
    order by b.id);
begin
  -- In lock order: records of a deal before the deal.
  perform from app_public.reservations r where r.lead_id = any (lead_ids) or r.purchase_id = any (buyer_ids)
    order by r.id for no key update;
  perform from app_public.negotiations n where n.lead_id = any (lead_ids) or n.buyer_id = any (buyer_ids)
    order by n.id for no key update;
  perform from app_public.buyers b where b.id = any (buyer_ids) or b.lead_id = any (lead_ids)
    order by b.id for no key update;
  update app_public.buyers b set assignee_id = to_user where b.id = any (buyer_ids);
  update app_public.leads l set assignee_id = to_user where l.id = any (lead_ids);
  -- Open records that do not belong to an open lead or purchase.
  update app_public.unit_holds d set assignee_id = to_user where d.project_id = project_id
    and d.assignee_id = any (people) and d.deleted_at is null and d.status = 'ACTIVE';
  update app_public.reservations d set assignee_id = to_user where d.project_id = project_id
    and d.assignee_id = any (people) and d.deleted_at is null and d.status in ('PENDING', 'CONFIRMED');
  update app_public.negotiations d set assignee_id = to_user where d.project_id = project_id
    and d.assignee_id = any (people) and d.deleted_at is null and d.status in ('OPEN', 'ACTIVE');
  update app_public.offers d set assignee_id = to_user where d.project_id = project_id
    and d.assignee_id = any (people) and d.status = 'PENDING';
  update app_public.personalizations d set assignee_id = to_user where d.project_id = project_id
    and d.assignee_id = any (people) and d.deleted_at is null
    and d.status in ('DRAFT', 'SUBMITTED', 'CHANGES_REQUESTED', 'APPROVED');
  update app_public.appointments d set
      assignee_id = case when d.assignee_id = any (people) then to_user else d.assignee_id end,
      host_id = case when d.host_id = any (people) then app_private.free_host(to_user, d.id, d.starts_at, d.ends_at)
        else d.host_id end
    where d.project_id = project_id and (d.assignee_id = any (people) or d.host_id = any (people))
      and d.deleted_at is null and d.status in ('REQUESTED', 'SCHEDULED', 'CONFIRMED');
  update app_public.tasks d set assignee_id = to_user where d.project_id = project_id
    and d.assignee_id = any (people) and d.deleted_at is null and d.status in ('OPEN', 'IN_PROGRESS', 'WAITING');
  return handed;
end $$;
comment on function app_private.hand_over_deals(uuid, uuid[], uuid) is
  'Gives whatever of a project is open with these people to one user, or to nobody (null), and says how much that was. '
  'An appointment at a time at which that user receives somebody else has no host then.';

create function app_private.free_host(user_id uuid, appointment_id uuid, starts_at timestamptz,
  ends_at timestamptz) returns uuid
language sql stable as $$
  select user_id where not exists (select from app_public.appointments a
    where a.host_id = user_id and a.id <> appointment_id and a.deleted_at is null
      and a.status in ('SCHEDULED', 'CONFIRMED')
      and tstzrange(a.starts_at, a.ends_at) && tstzrange(free_host.starts_at, free_host.ends_at))
$$;
comment on function app_private.free_host(uuid, uuid, timestamptz, timestamptz) is
  'The user, where they receive nobody else at that time.';

create function app_private.remember_affiliates(owner_id uuid, project_id uuid, people uuid[]) returns void
language sql volatile as $$
  insert into app_private.former_affiliates (owner_id, user_id)
    select $1, p from unnest(people) p
    where exists (select from app_public.leads l where l.assignee_id = p and l.project_id = $2)
      or exists (select from app_public.buyers b where b.assignee_id = p and b.project_id = $2)
    on conflict do nothing
$$;
comment on function app_private.remember_affiliates(uuid, uuid, uuid[]) is
  'Keeps the names of those of the people readable for the owner of a project who have worked on its deals.';

-- Ending or restricting an affiliation: assignees must be able to see their deals afterwards.
create function app_private.tg_project_organizations__open_deals() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  people uuid[];
  still app_public.open_deals;
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if tg_op = 'UPDATE' and (not app_private.affiliate_sells(old.role, old.permissions)
    or app_private.affiliate_sells(new.role, new.permissions)) then
    return null;
  end if;
  people := app_private.people_losing_deals(old);
  perform app_private.remember_affiliates(old.owner_id, old.project_id, people) where tg_op = 'DELETE';
  -- An archived project is read-only, so nobody works on it.
  if exists (select from app_public.projects p where p.id = old.project_id
    and p.archived_at is null and p.deleted_at is null) then
    still := app_private.open_deals(old.project_id, people);
    if exists (select from jsonb_each(to_jsonb(still)) c where c.value <> '0') then
      perform app_hidden.fail('CONFLICT', format(
        'Members of this organization are assigned to open records of the project: %s. Use handOver with an '
        'assigneeId, or reassign the records first.',
        (select string_agg(format('%s %s', c.value, case when c.value = '1' then left(c.key, -1) else c.key end), ', '
          order by c.place) from json_each_text(row_to_json(still)) with ordinality c (key, value, place)
          where c.value <> '0')),
        jsonb_build_object('dependents', (select jsonb_object_agg(c.key, c.value) from jsonb_each(to_jsonb(still)) c
          where c.value <> '0')));
    end if;
  end if;
  return null;
end $$;
create trigger _500_open_deals after delete on app_public.project_organizations for each row
  when (old.role <> 'OWNER') execute function app_private.tg_project_organizations__open_deals();
create trigger _500_open_deals_again after update of role, permissions on app_public.project_organizations for each row
  when (old.role <> 'OWNER') execute function app_private.tg_project_organizations__open_deals();

-- Delayed actions created by the affiliated organization are limited to the permissions of their principal, so they
-- are checked again.
create function app_private.tg_project_organizations__review() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.review_principals(m.user_id, old.owner_id) from app_public.organization_user_connections m
    where m.organization_id = old.organization_id order by m.user_id;
  return null;
end $$;
create trigger _800_review after delete on app_public.project_organizations for each row
  when (old.role <> 'OWNER') execute function app_private.tg_project_organizations__review();
create trigger _800_review_again after update of role, permissions on app_public.project_organizations for each row
  when (old.role <> 'OWNER') execute function app_private.tg_project_organizations__review();

-- A user who no longer sees a deal leaves its open records to the new assignee.
create function app_private.tg__leave_deal() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lead constant uuid := case tg_argv[0] when 'lead_id' then new.id end;
  purchase constant uuid := case tg_argv[0] when 'buyer_id' then new.id end;
  tasks uuid[];
  appointments uuid[];
begin
  if exists (select from app_private.people_who_see(new.organization_id, new.project_id, null, tg_argv[1]) p
    where p.user_id = old.assignee_id) then
    return null;
  end if;
  -- PERF: OFFSET fences the deal in, so that its index finds them and not that of a person with many.
  tasks := array(select t.id from (
      select x.* from app_public.tasks x where x.lead_id = lead and x.deleted_at is null
      union all select x.* from app_public.tasks x where x.buyer_id = purchase and x.deleted_at is null offset 0) t
    where t.assignee_id = old.assignee_id and t.status in ('OPEN', 'IN_PROGRESS', 'WAITING'));
  appointments := array(select a.id from (
      select x.* from app_public.appointments x where x.lead_id = lead
      union all select x.* from app_public.appointments x where x.buyer_id = purchase offset 0) a
    where a.host_id = old.assignee_id and a.deleted_at is null
      and a.status in ('REQUESTED', 'SCHEDULED', 'CONFIRMED'));
  -- PERF: most deals have neither. Even an update of no row calls the triggers of its statement.
  if tasks <> '{}' then
    update app_public.tasks t set assignee_id = new.assignee_id
      where t.id = any (tasks) and t.assignee_id = old.assignee_id;
  end if;
  if appointments <> '{}' then
    update app_public.appointments a
      set host_id = app_private.free_host(new.assignee_id, a.id, a.starts_at, a.ends_at)
      where a.id = any (appointments) and a.host_id = old.assignee_id;
  end if;
  return null;
end $$;
comment on function app_private.tg__leave_deal() is
  'Gives open tasks and appointments of who was assigned a lead or purchase to the new assignee, where the former one '
  'sees own deals only. Arguments: the column that refers to it, the permission to read it.';
create trigger _410_leave after update of assignee_id on app_public.leads for each row
  when (old.assignee_id <> new.assignee_id or (old.assignee_id is not null and new.assignee_id is null))
  execute function app_private.tg__leave_deal('lead_id', 'lead.read');
create trigger _415_leave after update of assignee_id on app_public.buyers for each row
  when (old.assignee_id <> new.assignee_id or (old.assignee_id is not null and new.assignee_id is null))
  execute function app_private.tg__leave_deal('buyer_id', 'buyer.read');

-- A member who leaves an affiliated organization leaves its deals.
create function app_private.tg_members__leave_affiliations() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return null;
  end if;
  perform app_private.hand_over_deals(a.project_id, array[old.user_id], null),
    app_private.remember_affiliates(a.owner_id, a.project_id, array[old.user_id])
  from (select a.* from app_public.project_organizations a
    join app_public.projects p on p.id = a.project_id and p.archived_at is null and p.deleted_at is null
    where a.organization_id = old.organization_id and a.role <> 'OWNER' order by a.project_id) a
  where not app_private.sells_in(old.user_id, a.project_id);
  return null;
end $$;
create trigger _510_leave_affiliations after delete on app_public.organization_user_connections for each row
  execute function app_private.tg_members__leave_affiliations();

-- Operations.
create function app_private.hand_over_affiliation(id uuid, role text, permissions text[], hand_over boolean,
  assignee_id uuid) returns app_public.open_deals
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  affiliation app_public.project_organizations;
  losing uuid[];
begin
  select a.* into affiliation from app_public.project_organizations a where a.id = id and a.role <> 'OWNER'
    and (a.owner_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[])
      or (role is null and a.organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[])));
  -- Existence and permission are checked below.
  if affiliation.id is null or not (coalesce(hand_over, false) or assignee_id is not null)
    or (role is not null and (not app_private.affiliate_sells(affiliation.role, affiliation.permissions)
      or app_private.affiliate_sells(role, permissions)))
    or exists (select from app_public.projects p
      where p.id = affiliation.project_id and p.archived_at is not null) then
    return row(0, 0, 0, 0, 0, 0, 0, 0, 0);
  end if;
  -- Users who keep access through another organization keep their deals.
  losing := array(select m.user_id from app_public.organization_user_connections m
    where m.organization_id = affiliation.organization_id
      and not exists (select from app_public.organization_user_connections o where o.user_id = m.user_id
        and o.organization_id = affiliation.owner_id)
      and not exists (select from app_public.organization_user_connections o
        join app_private.affiliate_permissions p on p.organization_id = o.organization_id
          and p.project_id = affiliation.project_id and p.permission = 'lead.read'
        where o.user_id = m.user_id and o.organization_id <> affiliation.organization_id));
  if assignee_id is not null and (assignee_id = any (losing)
    or not app_private.viewer_sees('app_public.users', assignee_id)
    or not app_private.sells_in(assignee_id, affiliation.project_id)) then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The assignee must be a member of the organization that owns the project, or of another one that sells in it.',
        '{"field": "assigneeId"}');
  end if;
  return app_private.hand_over_deals(affiliation.project_id, losing, assignee_id);
end $$;
comment on function app_private.hand_over_affiliation(uuid, text, text[], boolean, uuid) is
  'Hands over open records of users who lose access to deals of the project when the affiliation ends or gets the '
  'given role and permissions; to a user, or unassigned. For those who may end or change it.';
grant execute on function app_private.hand_over_affiliation to plat_user;

create function app_public.update_project_organization(input jsonb, hand_over boolean default false,
  assignee_id uuid default null) returns app_public.project_organizations
language plpgsql volatile as $$
declare
  before app_public.project_organizations;
begin
  perform app_hidden.require_viewer();
  select a.* into before from app_public.project_organizations a
    where a.id = app_hidden.record_id('project_organizations', input ->> 'id');
  if before.role = 'OWNER' then
    perform app_hidden.fail('CONFLICT', 'This organization owns the project and cannot be removed from it.',
      '{"field": "id"}');
  end if;
  perform app_private.hand_over_affiliation(before.id, coalesce(input ->> 'role', before.role),
    case when not input ? 'permissions' then before.permissions when input -> 'permissions' <> 'null'
      then array(select jsonb_array_elements_text(input -> 'permissions')) end,
    hand_over, update_project_organization.assignee_id)
    where before.id is not null;
  return app_hidden.update_record(null::app_public.project_organizations, input);
end $$;
comment on function app_public.update_project_organization is
  E'@arg handOver Whether open records of its members are handed over to the organization that owns the project if '
  'the members lose access to them. Otherwise the mutation is refused with CONFLICT and lists them.\n@arg '
  'assigneeId Id of the member who takes over open leads and tasks. Default: they become unassigned.\n\n'
  'Changes the role of an affiliated organization in a project, or restricts its permissions. Requires '
  'project.manage in the organization that owns the project. The owners of the affiliated organization are '
  'notified by mail.';

create function app_public.delete_project_organization(id uuid, hand_over boolean default false,
  assignee_id uuid default null) returns app_public.delete_project_organization_payload
language plpgsql volatile as $$
declare
  affiliation app_public.project_organizations;
  handed app_public.open_deals;
begin
  perform app_hidden.require_viewer();
  select a.* into affiliation from app_public.project_organizations a where a.id = delete_project_organization.id;
  if affiliation.role = 'OWNER' then
    perform app_hidden.fail('CONFLICT', 'This organization owns the project and cannot be removed from it.',
      '{"field": "id"}');
  end if;
  handed := app_private.hand_over_affiliation(affiliation.id, null, null, hand_over,
    delete_project_organization.assignee_id);
  perform app_hidden.delete_record(null::app_public.project_organizations, delete_project_organization.id::text);
  return row(affiliation.id, true, affiliation.project_id, affiliation.organization_id, handed);
end $$;
comment on function app_public.delete_project_organization is
  E'@arg handOver Whether open records of its members are handed over to the organization that owns the project. '
  'Otherwise the mutation is refused with CONFLICT and lists them.\n@arg assigneeId Id of the member who takes '
  'over open leads and tasks. Default: they become unassigned.\n\n'
  'Ends the affiliation of an organization with a project, and immediately all its access to the project. Requires '
  'project.manage in the organization that owns the project, or org.admin in the affiliated one, which thereby '
  'leaves. The owners of the other organization are notified by mail. Closed deals keep the names of the people '
  'involved.';
grant execute on function app_public.update_project_organization, app_public.delete_project_organization to plat_user,
  plat_anonymous;

comment on type app_public.delete_project_organization_payload is
  E'@foreignKey (project_id) references projects (id)|@fieldName project\n@foreignKey (organization_id) references '
  'organizations (id)|@fieldName organization\n\n'
  'Result of ending an affiliation, with the number of handed-over records.';
comment on column app_public.delete_project_organization_payload.id is E'@notNull\n\nId of the ended affiliation.';
comment on column app_public.delete_project_organization_payload.deleted is
  E'@notNull\n\nAlways true; a refused request is an error.';
comment on column app_public.delete_project_organization_payload.project_id is
  E'@behavior -*\n\nThe project that it belongs to.';
comment on column app_public.delete_project_organization_payload.organization_id is
  E'@behavior -*\n\nThe organization that had a part in it.';
comment on column app_public.delete_project_organization_payload.handed_over is
  E'@notNull\n\nNumber of open records of its members that were handed over.';

-- Fields that both sides read.
create function app_public.project_organizations_open_deals(a app_public.project_organizations) returns
  app_public.open_deals
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select d.* from app_public.project_organizations p
  cross join lateral app_private.open_deals(p.project_id, array(select m.user_id
    from app_public.organization_user_connections m where m.organization_id = p.organization_id)) d
  where p.id = a.id
    and (p.owner_id = any ((select app_hidden.viewer_organizations('lead.read'))::uuid[])
      or (p.role <> 'OWNER'
        and p.organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[])))
$$;

create function app_hidden.people_of_affiliation(id uuid) returns setof uuid
language sql stable security definer rows 20 set search_path = pg_catalog, pg_temp as $$
  select m.user_id from app_public.project_organizations a
    join app_public.organization_user_connections m on m.organization_id = a.organization_id
    where a.id = people_of_affiliation.id
      and app_private.viewer_sees('app_public.project_organizations', people_of_affiliation.id)
$$;
comment on function app_hidden.people_of_affiliation(uuid) is
  'The members of an organization that has a part in a project, for those who see that it has.';
grant execute on function app_hidden.people_of_affiliation to plat_user, plat_anonymous;

create function app_public.project_organizations_people(a app_public.project_organizations) returns
  setof app_public.users
language sql stable rows 20 as $$
  -- Of them, those whom the viewer knows.
  select u.* from app_hidden.masked_users u
  where u.id = any (array(select app_hidden.people_of_affiliation(a.id)))
  order by lower(u.last_name), lower(u.first_name), u.id
$$;
grant execute on function app_public.project_organizations_open_deals, app_public.project_organizations_people to
  plat_user, plat_anonymous;
comment on function app_public.project_organizations_open_deals is
  'Number of open records of its members in the project. Visible to the owning organization for viewers who see '
  'all leads, and to admins of the affiliated one.';
comment on function app_public.project_organizations_people is
  E'@ordered\n\n'
  'People of the organization who work on the project, sorted by name, such as to assign leads to them. For other '
  'organizations without email addresses; empty for viewers who may not see them.';

create function app_private.organization_of_assignee(user_id uuid, project_id uuid) returns uuid
language sql stable as $$
  select a.organization_id from app_public.project_organizations a
    join app_public.organization_user_connections m on m.organization_id = a.organization_id
    where a.project_id = $2 and m.user_id = $1 order by a.role <> 'OWNER', a.id limit 1
$$;
comment on function app_private.organization_of_assignee(uuid, uuid) is
  'The organization by which a user has a part in a project; the one that owns it first.';

create function app_hidden.organization_of_lead(id uuid) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.organization_of_assignee(l.assignee_id, l.project_id) from app_public.leads l
  where l.id = $1 and app_hidden.deal_can(l.organization_id, l.project_id, l.assignee_id, 'lead.read')
$$;
comment on function app_hidden.organization_of_lead(uuid) is
  'The organization whose people work on a lead, for those who read the lead.';

create function app_hidden.organization_of_buyer(id uuid) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.organization_of_assignee(b.assignee_id, b.project_id) from app_public.buyers b
  where b.id = $1 and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.read')
$$;
comment on function app_hidden.organization_of_buyer(uuid) is
  'The organization whose people work on a purchase, for those of the team who read it.';
grant execute on function app_hidden.organization_of_lead, app_hidden.organization_of_buyer to plat_user,
  plat_anonymous;

create function app_public.leads_assignee_organization(l app_public.leads) returns setof app_public.organizations
language sql stable rows 1 as $$
  select o.* from app_hidden.masked_organizations o
  where l.assignee_id is not null and o.id = (select app_hidden.organization_of_lead(l.id))
  limit 1
$$;

create function app_public.buyers_assignee_organization(b app_public.buyers) returns setof app_public.organizations
language sql stable rows 1 as $$
  select o.* from app_hidden.masked_organizations o
  where b.assignee_id is not null and o.id = (select app_hidden.organization_of_buyer(b.id))
  limit 1
$$;
grant execute on function app_public.leads_assignee_organization, app_public.buyers_assignee_organization to plat_user,
  plat_anonymous;
comment on function app_public.leads_assignee_organization is
  'The organization that the assignee belongs to in the project; null if the lead is unassigned.';
comment on function app_public.buyers_assignee_organization is
  'The organization that the assignee belongs to in the project; null if unassigned, and for the buyer.';

create trigger _950_changes after insert or update or delete on app_private.former_affiliates
  for each row execute function app_private.tg__count_change('owner_id');
