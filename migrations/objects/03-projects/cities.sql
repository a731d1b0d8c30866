-- The cities of projects, and which one with public projects is nearest to a location. The service looks up the
-- location of a city for its first project; viewers are located by their IP address.

comment on table app_private.cities is 'Cities of projects; without coordinates where nobody knows them.';
comment on table app_private.project_cities is 'The city of each project whose address names one.';

create function app_private.cities_to_look_up() returns table (id uuid, name text, administrative_area text,
  country text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.id, c.name, c.administrative_area, c.country::text from app_private.cities c where c.looked_up_at is null
    order by c.id limit 1000
$$;

create function app_private.place_cities(places jsonb) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_private.cities c set latitude = p.latitude, longitude = p.longitude, looked_up_at = now()
  from jsonb_to_recordset(places) p (id uuid, latitude double precision, longitude double precision)
  where c.id = p.id
$$;
comment on function app_private.cities_to_look_up() is 'Cities whose coordinates nobody has looked for.';
comment on function app_private.place_cities(jsonb) is
  'Keeps the coordinates of cities, objects {id, latitude, longitude}; null where they are unknown.';
grant execute on function app_private.cities_to_look_up(), app_private.place_cities(jsonb) to plat_authenticator;

create function app_hidden.distance_km(latitude double precision, longitude double precision,
  other_latitude double precision,
  other_longitude double precision) returns double precision
language sql immutable parallel safe as $$
  -- Haversine on a sphere of 6,371 km; least() because rounding may pass 1. PERF: not strict, which would not be
  -- inlined.
  select case when latitude is not null and other_latitude is not null then
    2 * 6371 * asin(least(1, sqrt(sind((other_latitude - latitude) / 2) ^ 2
      + cosd(latitude) * cosd(other_latitude) * sind((other_longitude - longitude) / 2) ^ 2))) end
$$;
comment on function app_hidden.distance_km is 'Kilometres between two points, in degrees north and east.';

create function app_hidden.project_distances(latitude double precision, longitude double precision) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- PERF: once a city, and one object for the whole statement, instead of a function for each project.
  with distances as materialized (
    select c.id, app_hidden.distance_km(c.latitude, c.longitude, $1, $2) as km from app_private.cities c
  ), seen as (
    select p.id from app_public.projects p where p.visibility = 'PUBLIC' and p.archived_at is null
      and p.deleted_at is null
    union select p.id from app_public.projects p
      where p.organization_id = any ((select app_hidden.viewer_organizations('project.read'))::uuid[])
    union select unnest(app_hidden.viewer_projects('project.read'))
  )
  select jsonb_object_agg(c.project_id, d.km)
  from seen p
  join app_private.project_cities c on c.project_id = p.id
  join distances d on d.id = c.city_id
  where d.km is not null
$$;

comment on type app_public.nearest_city is 'A city with public projects.';

comment on column app_public.nearest_city.id is E'@notNull\n\nStable id of the city.';
comment on column app_public.nearest_city.name is E'@notNull\n\nCommon name, such as Toronto.';
comment on column app_public.nearest_city.slug is E'@notNull\n\nReadable name for URLs.';
comment on column app_public.nearest_city.administrative_area is 'State or province.';
comment on column app_public.nearest_city.country is E'@notNull\n\nISO 3166-1 code, such as CA.';
comment on column app_public.nearest_city.latitude is E'@notNull\n\nDegrees north.';
comment on column app_public.nearest_city.longitude is E'@notNull\n\nDegrees east.';
comment on column app_public.nearest_city.distance_km is
  'Distance from the viewer in kilometers; null if the viewer''s location is unknown.';
comment on column app_public.nearest_city.time_zone is E'@notNull\n\nIANA time zone of most of its projects.';
comment on column app_public.nearest_city.project_count is E'@notNull\n\nNumber of public projects in the city.';
comment on column app_public.nearest_city.resolved_from is E'@notNull\n\nHow the city was determined.';

create function app_public.nearest_city(latitude double precision,
  longitude double precision) returns app_public.nearest_city
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with open_cities as (
    select c.city_id, count(*)::int as projects, mode() within group (order by p.time_zone::text) as time_zone
    from app_public.projects p join app_private.project_cities c on c.project_id = p.id
    where p.visibility = 'PUBLIC' and p.archived_at is null and p.deleted_at is null
    group by c.city_id
  )
  select row(c.id, c.name, app_hidden.slugify(c.name || ' ' || c.administrative_area),
    nullif(c.administrative_area, ''), c.country,
    c.latitude, c.longitude, round(d.km::numeric, 1)::double precision, o.time_zone, o.projects,
    case when d.km is null then 'FALLBACK' else 'IP' end)::app_public.nearest_city
  from open_cities o
  join app_private.cities c on c.id = o.city_id and c.latitude is not null
  cross join lateral (select app_hidden.distance_km(c.latitude, c.longitude, nearest_city.latitude,
    nearest_city.longitude) as km) d
  order by d.km, o.projects desc, c.id
  limit 1
$$;
comment on function app_public.nearest_city(double precision,double precision) is
  E'@withoutViewer Cities are everybody''s to know.\n'
  '@arg latitude Degrees north of the equator, of the viewer.\n'
  '@arg longitude Degrees east of Greenwich, of the viewer.\n\n'
  'The city with public projects that is closest to the viewer, by IP address; the city with the most public '
  'projects if the location is unknown. IP geolocation by DB-IP.com.';
grant execute on function app_public.nearest_city(double precision, double precision) to plat_user, plat_anonymous;

comment on function app_hidden.project_distances is
  'Kilometres from a point to the city of each public project and each in the viewer''s portfolio, by the id of the '
  'project; those whose place is unknown are omitted.';

revoke execute on function app_hidden.distance_km from plat_user, plat_anonymous;
