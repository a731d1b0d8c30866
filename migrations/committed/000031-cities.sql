--! Previous: sha1:72ada0f81a035ac0d5a389a32cc50f2443e877ea
--! Hash: sha1:beac48d84de4baeab06e2556699782c1f6ed2320
--! Message: cities

-- Cities, and where projects lie.

select app_private.create_enum('location_source', 'How a place was found.', array[
  ['IP', 'By the address of the request.'],
  ['FALLBACK', 'The address tells nothing: the city with most public projects.']]);

create table app_private.cities (
  id uuid primary key default uuidv7(),
  country app_public.country_code not null,
  administrative_area text not null,
  name text not null,
  latitude double precision,
  longitude double precision,
  looked_up_at timestamptz
);
create unique index cities_name
  on app_private.cities (country, app_hidden.fold(name), app_hidden.fold(administrative_area));
create index cities_new on app_private.cities (id) where looked_up_at is null;
alter table app_private.cities enable row level security;

create table app_private.project_cities (
  project_id uuid primary key references app_public.projects on delete cascade,
  city_id uuid not null references app_private.cities on delete restrict
);
create index project_cities_city on app_private.project_cities (city_id);
alter table app_private.project_cities enable row level security;

create type app_public.nearest_city as (
  id uuid,
  name text,
  slug text,
  administrative_area text,
  country app_public.country_code,
  latitude double precision,
  longitude double precision,
  distance_km double precision,
  time_zone text,
  project_count int,
  resolved_from app_public.location_source
);
