--! Previous: sha1:319c895bdd79cc07155d491010f20e502338d31d
--! Hash: sha1:56c39ebac7718fe88434d8566d7bc2dfc9171aaa
--! Message: marketing

-- What speaks for a project: testimonials of those who bought, and collections in which an organization shows several.

create table app_public.project_testimonials (
  like app_private.project_record including all,
  author app_public.short_text not null,
  author_title app_public.short_text,
  text app_public.long_text not null,
  rating int constraint project_testimonials_rating_range check (rating between 1 and 5),
  source app_public.short_text,
  published_on date,
  published boolean not null default false,
  sequence int not null default 0
);
comment on constraint project_testimonials_rating_range on app_public.project_testimonials is 'Give 1 to 5.';
create index project_testimonials_sequence on app_public.project_testimonials (project_id, sequence, id) where deleted_at is null;

select app_private.make_public_table('project_testimonials', 'project_testimonial', 'marketing.manage', 'testimonials',
  'What people say about it; outsiders see what is published.', shown => 'published');
grant insert (project_id, author, author_title, text, rating, source, published_on, published, sequence),
  update (author, author_title, text, rating, source, published_on, published, sequence), delete
  on app_public.project_testimonials to plat_user;

comment on table app_public.project_testimonials is E'@defaultOrder sequence asc, id asc\n\nWhat somebody says about a project.';
comment on column app_public.project_testimonials.author is 'Who says it.';
comment on column app_public.project_testimonials.author_title is 'Who that is, such as "Owner since 2024".';
comment on column app_public.project_testimonials.text is 'What they say.';
comment on column app_public.project_testimonials.rating is '1 to 5.';
comment on column app_public.project_testimonials.source is 'Where they said it.';
comment on column app_public.project_testimonials.published_on is 'When they said it.';
comment on column app_public.project_testimonials.published is E'@filter\n\nWhether everybody sees it who sees the project.';
comment on column app_public.project_testimonials.sequence is 'Place in the list.';

--------------------------------------------------------------------------------------------------------

create table app_public.project_collections (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete cascade,
  title app_public.short_text not null,
  slug app_public.slug not null,
  description app_public.long_text,
  public boolean not null default false,
  sequence int not null default 0,
  project_ids app_public.id_or_slug[] not null default '{}',
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz
);
-- Unique within the organization: a slug taken elsewhere would tell of what others keep to themselves.
create unique index project_collections_slug on app_public.project_collections (organization_id, slug) where deleted_at is null;
comment on index app_public.project_collections_slug is 'Another collection of the organization has this slug.';
create index project_collections_organization on app_public.project_collections (organization_id, sequence, id) where deleted_at is null;

alter table app_public.project_collections enable row level security;
create policy public_ones on app_public.project_collections for select to plat_anonymous
  using (deleted_at is null and public and exists (select from app_public.organizations o where o.id = organization_id));
create policy own_and_public_ones on app_public.project_collections for select to plat_user
  using (deleted_at is null and (organization_id = any (array(select app_hidden.viewer_organizations('project.read')))
    or (public and exists (select from app_public.organizations o where o.id = organization_id))));
create policy marketers_insert on app_public.project_collections for insert to plat_user
  with check (organization_id = any (array(select app_hidden.viewer_organizations('marketing.manage'))));
create policy marketers_update on app_public.project_collections for update to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('marketing.manage'))));
create policy marketers_delete on app_public.project_collections for delete to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('marketing.manage'))));
grant select on app_public.project_collections to plat_user, plat_anonymous, plat_worker;
grant insert (organization_id, title, slug, description, public, sequence, project_ids),
  update (title, slug, description, public, sequence, project_ids), delete on app_public.project_collections to plat_user;
select app_private.make_record('project_collections', 'project_collection', 'marketing.manage');

create function app_private.tg_project_collections__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  wanted uuid[];
  base text;
begin
  if new.slug is null then
    base := coalesce(nullif(app_hidden.slugify(new.title), ''), 'collection');
    new.slug := (
      select candidate from (select base || case when n > 1 then '-' || n else '' end as candidate, n from generate_series(1, 1000) n) names
      where not exists (select from app_public.project_collections c
        where c.organization_id = new.organization_id and c.slug = candidate and c.deleted_at is null)
      order by n limit 1);
  end if;
  if tg_op = 'INSERT' or new.project_ids is distinct from old.project_ids then
    wanted := array(select app_hidden.record_id('projects', i.id, 'projectIds') from unnest(new.project_ids) with ordinality i (id, n) order by i.n);
    if cardinality(wanted) > 1000 then
      perform app_hidden.fail('LIMIT_EXCEEDED', 'A collection has 1,000 projects at most.', '{"field": "projectIds", "limit": 1000}');
    elsif (select count(distinct w) from unnest(wanted) w) < cardinality(wanted) then
      perform app_hidden.fail('BAD_USER_INPUT', 'Name each project once.', '{"field": "projectIds"}');
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

create function app_public.project_collections_projects(c app_public.project_collections) returns setof app_public.projects
language sql stable as $$
  select p.* from unnest(c.project_ids) with ordinality i (id, n)
  join app_public.projects p on p.id = i.id::text::uuid
  where p.visibility = 'PUBLIC' or app_hidden.project_can(p.id, p.organization_id, 'project.read')
  order by i.n
$$;
create function app_public.projects_collections(p app_public.projects) returns setof app_public.project_collections
language sql stable as $$
  select c.* from app_public.project_collections c
  where c.organization_id = p.organization_id and p.id::text = any (c.project_ids::text[])
  order by c.sequence, c.id
$$;
grant execute on function app_public.project_collections_projects, app_public.projects_collections to plat_user, plat_anonymous;
comment on function app_public.project_collections_projects is E'@ordered\n\nIts projects that the viewer may see, in the order of the collection.';
comment on function app_public.projects_collections is 'The collections that it is in and the viewer may see.';

comment on table app_public.project_collections is E'@defaultOrder sequence asc, id asc\n\nProjects that an organization shows together.';
comment on column app_public.project_collections.organization_id is 'The organization.';
comment on column app_public.project_collections.title is 'What it is called.';
comment on column app_public.project_collections.slug is 'Readable name in addresses, unique in the organization; made from the title where left out.';
comment on column app_public.project_collections.description is 'What the projects have in common.';
comment on column app_public.project_collections.public is E'@filter\n\nWhether everybody sees it; of its projects they see the public ones.';
comment on column app_public.project_collections.sequence is 'Place in the list.';
comment on column app_public.project_collections.project_ids is E'@masked\n\nThe projects of the organization that it has, in order; replaces those it had.';
comment on constraint project_collections_organization_id_fkey on app_public.project_collections is
  E'@parent\n@fieldName organization\n@foreignFieldName collections\n@backwardDescription Its collections of projects; outsiders see the public ones.\n\nThe organization.';
