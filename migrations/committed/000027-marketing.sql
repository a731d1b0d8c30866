--! Previous: sha1:e0be4d9fc91dc1478afbf176c59f2f3212591aa9
--! Hash: sha1:0b6d01ede8e7114dd5736687c385e870edaf508a
--! Message: marketing

-- Testimonials and collections of projects.

create table app_public.project_testimonials (
  like app_private.project_record including all,
  author app_public.short_text not null,
  author_title app_public.short_text,
  text app_public.long_text not null,
  rating int constraint project_testimonials_rating_range check (rating between 1 and 5),
  source app_public.short_text,
  published_on date,
  published boolean not null default false,
  sequence int not null default 0,
  constraint project_testimonials_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index project_testimonials_sequence on app_public.project_testimonials (project_id, sequence, id)
  where deleted_at is null;
create index project_testimonials_organization on app_public.project_testimonials (organization_id, id desc)
  where deleted_at is null;
create index project_testimonials_project on app_public.project_testimonials (project_id, id desc)
  where deleted_at is null;
alter table app_public.project_testimonials enable row level security;

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
create unique index project_collections_slug on app_public.project_collections (organization_id, slug)
  where deleted_at is null;
create index project_collections_organization on app_public.project_collections (organization_id, sequence, id)
  where deleted_at is null;
alter table app_public.project_collections enable row level security;
