create policy public_ones on app_public.project_collections for select to plat_anonymous
  using (deleted_at is null and public
    and exists (select from app_public.organizations o where o.id = organization_id));
create policy own_and_public_ones on app_public.project_collections for select to plat_user
  using (deleted_at is null
    and (organization_id = any ((select app_hidden.viewer_organizations('project.read'))::uuid[])
    or (public and exists (select from app_public.organizations o where o.id = organization_id))));
create policy marketers_insert on app_public.project_collections for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('marketing.manage'))::uuid[]));
create policy marketers_update on app_public.project_collections for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('marketing.manage'))::uuid[]));
create policy marketers_delete on app_public.project_collections for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('marketing.manage'))::uuid[]));

select app_private.make_record('project_collections', 'project_collection', 'marketing.manage');

grant select on app_public.project_collections to plat_user, plat_anonymous;
grant insert (organization_id, title, slug, description, public, sequence, project_ids), update (title, slug,
  description, public, sequence, project_ids), delete on app_public.project_collections to plat_user;

comment on index app_public.project_collections_slug is 'Another collection of the organization uses this slug.';

comment on table app_public.project_collections is
  E'@defaultOrder sequence asc, id asc\n\nA collection of projects that an organization shows together.';
comment on column app_public.project_collections.organization_id is 'Id of the organization that it belongs to.';
comment on column app_public.project_collections.title is 'Display title.';
comment on column app_public.project_collections.slug is
  'Readable name for URLs, unique in the organization. Default: derived from the title.';
comment on column app_public.project_collections.description is 'Description of what the projects have in common.';
comment on column app_public.project_collections.public is
  E'@filter\n\nWhether it is public; visitors then see its public projects.';
comment on column app_public.project_collections.sequence is 'Position in the list; lowest first.';
comment on column app_public.project_collections.project_ids is
  E'@writeOnly\n\nIds of projects of the organization, in display order; replaces the previous ones.';
comment on constraint project_collections_organization_id_fkey on app_public.project_collections is
  E'@parent\n'
  '@fieldName organization\n'
  '@foreignFieldName collections\n'
  '@backwardDescription Project collections; non-members see the public ones.\n\n'
  'The organization.';

create function app_private.tg_project_collections__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  wanted uuid[];
  base text;
begin
  if new.slug is null then
    base := coalesce(nullif(app_hidden.slugify(new.title), ''), 'collection');
    new.slug := (
      select candidate from (select base || case when n > 1 then '-' || n else '' end as candidate, n
        from generate_series(1, 1000) n) names
      where not exists (select from app_public.project_collections c
        where c.organization_id = new.organization_id and c.slug = candidate and c.deleted_at is null)
      order by n limit 1);
  end if;
  if tg_op = 'INSERT' or new.project_ids is distinct from old.project_ids then
    wanted := array(select app_hidden.record_id('projects', i.id, 'projectIds') from unnest(new.project_ids)
      with ordinality i (id, n) order by i.n);
    if cardinality(wanted) > 1000 then
      perform app_hidden.fail('LIMIT_EXCEEDED', 'A collection can have at most 1,000 projects.',
        '{"field": "projectIds", "limit": 1000}');
    elsif (select count(distinct w) from unnest(wanted) w) < cardinality(wanted) then
      perform app_hidden.fail('BAD_USER_INPUT', 'List each project only once.', '{"field": "projectIds"}');
    elsif exists (select from unnest(wanted) w where not exists (select from app_public.projects p
        where p.id = w and p.organization_id = new.organization_id and p.deleted_at is null)) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such project in this organization.', '{"field": "projectIds"}');
    end if;
    new.project_ids := wanted::text[];
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.project_collections
  for each row execute function app_private.tg_project_collections__prepare();

create function app_public.project_collections_projects(c app_public.project_collections) returns setof
  app_public.projects
language sql stable as $$
  select p.* from unnest(c.project_ids) with ordinality i (id, n)
  join app_hidden.masked_projects p on p.id = i.id::text::uuid
  where p.visibility = 'PUBLIC' or app_hidden.project_can(p.id, p.organization_id, 'project.read')
  order by i.n
$$;
grant execute on function app_public.project_collections_projects, app_public.projects_collections to plat_user,
  plat_anonymous;
comment on function app_public.project_collections_projects is
  E'@ordered\n\nProjects of the collection that the viewer may see, in its order.';

create function app_public.project_collections_cover(c app_public.project_collections)
  returns setof app_public.project_images
language sql stable rows 1 as $$
  select i.* from unnest(c.project_ids) with ordinality shown (id, n)
  join app_public.projects p on p.id = shown.id::text::uuid
  join app_public.project_images i on i.project_id = p.id and i.deleted_at is null
  where p.visibility = 'PUBLIC' or app_hidden.project_can(p.id, p.organization_id, 'project.read')
  order by shown.n, i.category = 'HERO' desc, i.sequence, i.id limit 1
$$;
comment on function app_public.project_collections_cover is
  'Cover image: the hero image of its first project that has one and that the viewer can see.';
