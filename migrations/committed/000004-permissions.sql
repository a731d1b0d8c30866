--! Previous: sha1:1b16b2dd99370e2938cf1a662073ced81368b5be
--! Hash: sha1:b13ca675bb136b92aef63f3bfebe2f726e51222a
--! Message: permissions

-- Which role has which permission, and which column needs one of its own.

select app_private.create_enum('organization_role', 'What a member may do in an organization.', array[
  ['OWNER', 'Everything, members'' roles and the avatar included; each organization keeps at least one.'],
  ['ADMIN', 'Everything but members'' roles, their removal and the avatar.'],
  ['MEMBER', 'Sells: leads, buyers, reservations; reads the rest.']]);
select app_private.create_enum('project_organization_role', 'What an organization does in a project.', array[
  ['OWNER', 'Owns the project.'], ['SELLER', 'Sells units; sees its own leads.'],
  ['BUILDER', 'Builds; changes construction status and dates.'], ['AGENCY', 'Brings buyers; sees its own leads.'],
  ['BROKER', 'Brings buyers; sees its own leads.'], ['MARKETER', 'Advertises.'], ['LENDER', 'Finances buyers.'],
  ['TITLE', 'Closes purchases.'], ['VIEWER', 'Looks only.']]);

create table app_private.role_permissions (
  role text not null,
  permission text not null,
  reach text not null default 'ALL' check (reach in ('ALL', 'OWN_WHERE_PRIVATE', 'OWN')),
  in_affiliated boolean not null default false,
  primary key (role, permission, in_affiliated)
);
alter table app_private.role_permissions enable row level security;
