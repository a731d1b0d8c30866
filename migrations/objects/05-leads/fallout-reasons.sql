create policy sellers on app_public.fallout_reasons for select to plat_user
  using (deleted_at is null and (organization_id = any ((select app_hidden.viewer_organizations('lead.read'))::uuid[])
    or organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('lead.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_own_projects('lead.read'))::uuid[])));
create policy managers_insert on app_public.fallout_reasons for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));
create policy managers_update on app_public.fallout_reasons for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));
create policy managers_delete on app_public.fallout_reasons for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));

select app_private.make_project_record('fallout_reasons', 'fallout_reason', 'project.manage');

grant select on app_public.fallout_reasons to plat_user, plat_anonymous;
grant insert (project_id, name, applies_to, category, active, sequence), update (name, applies_to, category, active,
  sequence), delete on app_public.fallout_reasons to plat_user;

comment on table app_public.fallout_reasons is
  'A reason why leads, reservations, negotiations or purchases of a project fall through.';
comment on column app_public.fallout_reasons.name is
  'Name of the reason, such as Financing; unique in the project, ignoring case.';
comment on column app_public.fallout_reasons.applies_to is 'Kinds of records that the reason can be given for.';
comment on column app_public.fallout_reasons.category is 'Kind of the reason.';
comment on column app_public.fallout_reasons.active is
  'Whether it is offered for selection; existing uses are not affected.';
comment on column app_public.fallout_reasons.sequence is 'Position in the list; lowest first.';
comment on constraint fallout_reasons_applies_to_some on app_public.fallout_reasons is
  'Specify at least one kind of record that the reason applies to.';
comment on constraint fallout_reasons_project_id_fkey on app_public.fallout_reasons is
  E'@parent\n'
  '@fieldName project\n'
  '@foreignFieldName falloutReasons\n'
  '@backwardPermission lead.read\n'
  '@backwardDescription Fallout reasons that can be chosen in the project; null without the permission '
  'lead.read.\n\n'
  'The project that it belongs to.';
comment on index app_public.fallout_reasons_name is 'There is already a fallout reason with this name.';

create function app_public.fallout_reasons_usage_count(r app_public.fallout_reasons) returns int
language sql stable as $$
  select ((select count(*) from app_public.leads l where l.fallout_reason_id = r.id)
    + (select count(*) from app_public.reservations o where o.fallout_reason_id = r.id)
    + (select count(*) from app_public.buyers b where b.fallout_reason_id = r.id))::int
$$;
comment on function app_public.fallout_reasons_usage_count is
  E'@notNull\n\nNumber of records with this reason that the viewer may see.';
