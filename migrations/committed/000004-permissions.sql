--! Previous: sha1:24c62c070f063e71b486fa701dc88d0fa7e813ee
--! Hash: sha1:e197462323fe156fe583e12d99b56a0153c8bbd9
--! Message: permissions

-- Which role has which permission, and which column needs one of its own.

select app_private.create_enum('organization_role', 'What a member may do in an organization.', array[
  ['OWNER', 'Everything, members'' roles and the avatar included; each organization keeps at least one.'],
  ['ADMIN', 'Everything but members'' roles, their removal and the avatar.'],
  ['MEMBER', 'Sells: leads, buyers, reservations; reads the rest.']]);
select app_private.create_enum('project_organization_role', 'What an organization does in a project.', array[
  ['OWNER', 'Owns the project.'], ['SELLER', 'Sells units; sees its own leads.'],
  ['BUILDER', 'Builds; changes construction status and dates.'],
  ['AGENCY', 'Brings buyers; sees its own leads.'], ['BROKER', 'Brings buyers; sees its own leads.'],
  ['MARKETER', 'Advertises.'],
  ['LENDER', 'Finances buyers.'], ['TITLE', 'Closes purchases.'], ['VIEWER', 'Looks only.']]);

create table app_private.role_permissions (
  role text not null,
  permission text not null,
  reach text not null default 'ALL' check (reach in ('ALL', 'OWN_WHERE_PRIVATE', 'OWN')),
  in_affiliated boolean not null default false,
  primary key (role, permission, in_affiliated)
);
alter table app_private.role_permissions enable row level security;
