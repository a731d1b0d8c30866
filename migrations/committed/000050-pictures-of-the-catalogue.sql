--! Previous: sha1:8b4acb2e2ed1037f1d8707f254d929beae339ef7
--! Hash: sha1:301ae66bd26abbd8d9540e94422194e665d89039
--! Message: pictures-of-the-catalogue

-- Where pictures of projects meet the catalogue: the options that a picture shows, and the cover of a collection.

alter table app_public.project_images add column spec_option_ids uuid[] not null default '{}'
  constraint project_images_spec_options_number check (cardinality(spec_option_ids) <= 100);
comment on constraint project_images_spec_options_number on app_public.project_images is 'A picture shows 100 options at most.';
comment on column app_public.project_images.spec_option_ids is E'@masked\n\nThe options that it shows, of its own project; replaces those it had.';
grant insert (spec_option_ids), update (spec_option_ids) on app_public.project_images to plat_user;

create function app_private.tg_project_images__spec_options() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.spec_option_ids := array(select i.id from unnest(new.spec_option_ids) with ordinality i (id, n) group by i.id order by min(i.n));
  if exists (select from unnest(new.spec_option_ids) i (id) where not exists (
      select from app_public.spec_options o where o.id = i.id and o.project_id = new.project_id and o.deleted_at is null)) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such option in this project.', '{"field": "specOptionIds"}');
  end if;
  return new;
end $$;
-- After the one that fills in the project.
create trigger _200_spec_options before insert or update of spec_option_ids on app_public.project_images
  for each row when (new.spec_option_ids <> '{}') execute function app_private.tg_project_images__spec_options();

create function app_public.project_images_spec_options(i app_public.project_images) returns setof app_public.spec_options
language sql stable as $$
  select o.* from unnest(i.spec_option_ids) with ordinality shown (id, n) join app_public.spec_options o on o.id = shown.id order by shown.n
$$;
create function app_public.project_collections_cover(c app_public.project_collections) returns app_public.project_images
language sql stable as $$
  select i.* from unnest(c.project_ids) with ordinality shown (id, n)
  join app_public.projects p on p.id = shown.id::text::uuid
  join app_public.project_images i on i.project_id = p.id and i.deleted_at is null
  where p.visibility = 'PUBLIC' or app_hidden.project_can(p.id, p.organization_id, 'project.read')
  order by shown.n, i.category = 'HERO' desc, i.sequence, i.id limit 1
$$;
grant execute on function app_public.project_images_spec_options, app_public.project_collections_cover to plat_user, plat_anonymous;
comment on function app_public.project_images_spec_options is E'@ordered\n\nThe options that it shows, as far as the viewer may see them.';
comment on function app_public.project_collections_cover is 'The picture that stands for it: the hero of its first project that has one and the viewer may see.';
