select app_private.make_file_table('project_avatars', 'project_avatar', parent => 'projects', list => 'avatar',
  only_one => true);

comment on table app_public.project_avatars is E'@file Image\n\nLogo of a project.';
comment on index app_public.project_avatars_avatar is
  'Somebody else has just uploaded an image; review it and try again.';

select app_private.make_file_table('project_images', 'project_image', parent => 'projects', list => 'images',
  settable => '{title, sequence, category}');

grant insert (spec_option_ids), update (spec_option_ids) on app_public.project_images to plat_user;

comment on table app_public.project_images is
  E'@file Image\n@defaultOrder sequence asc, id asc\n\nA picture of a project.';
comment on column app_public.project_images.category is 'Subject of the image.';
comment on column app_public.project_images.spec_option_ids is
  E'@writeOnly\n\nIds of options of the same project that the image shows; replaces the previous ones.';
comment on constraint project_images_spec_options_number on app_public.project_images is
  'An image can show at most 100 options.';

select app_private.make_file_table('project_documents', 'project_document', parent => 'projects', list => 'documents',
  settable => '{title, category, public}');

comment on table app_public.project_documents is
  E'@file Document\n\nA file attached to a project, such as a brochure or price list.';

select app_private.make_file_table('site_plans', 'site_plan', parent => 'projects', list => 'site_plans',
  settable => '{title, sequence, phase, is_primary}');

comment on table app_public.site_plans is
  E'@file Image\n@defaultOrder sequence asc, id asc\n\nA plan of the site of a project.';
comment on column app_public.site_plans.is_primary is
  'Whether it is shown first. The first plan of a project is primary until another one is made primary.';
comment on column app_public.site_plans.phase is 'Phase of the project that the plan shows.';

create function app_private.tg_site_plans__primary() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from app_public.projects p where p.id = new.project_id for no key update;
  if new.is_primary then
    update app_public.site_plans s set is_primary = false where s.project_id = new.project_id and s.is_primary
      and s.id <> new.id;
  elsif tg_op = 'INSERT' then
    new.is_primary := not exists (select from app_public.site_plans s where s.project_id = new.project_id
      and s.deleted_at is null);
  end if;
  return new;
end $$;
create trigger _200_primary before insert or update of is_primary on app_public.site_plans
  for each row execute function app_private.tg_site_plans__primary();

create function app_private.tg_project_images__spec_options() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.spec_option_ids := array(select i.id from unnest(new.spec_option_ids) with ordinality i (id, n) group by i.id
    order by min(i.n));
  if exists (select from unnest(new.spec_option_ids) i (id) where not exists (
      select from app_public.spec_options o where o.id = i.id and o.project_id = new.project_id
        and o.deleted_at is null)) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such option in this project.', '{"field": "specOptionIds"}');
  end if;
  return new;
end $$;

-- After the one that fills in the project.
create trigger _200_spec_options before insert or update of spec_option_ids on app_public.project_images
  for each row when (new.spec_option_ids <> '{}') execute function app_private.tg_project_images__spec_options();

create function app_public.project_images_spec_options(i app_public.project_images) returns setof
  app_public.spec_options
language sql stable as $$
  select o.* from unnest(i.spec_option_ids) with ordinality shown (id, n)
    join app_hidden.masked_spec_options o on o.id = shown.id order by shown.n
$$;
grant execute on function app_public.project_images_spec_options, app_public.project_collections_cover to plat_user,
  plat_anonymous;
comment on function app_public.project_images_spec_options is
  E'@ordered\n\nOptions shown in the image that the viewer can see.';
