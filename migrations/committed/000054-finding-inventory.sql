--! Previous: sha1:747ac7ee045bb129724bec1005e23f86b7ada501
--! Hash: sha1:6c16330818fde0ededfbd5bcbbb005677da03d84
--! Message: finding-inventory

-- Finding among many: units of a portfolio by words, projects by how far away they are. Floor plans and lots are listed
-- within their project only, whose index leads to them.

-- PERF: beside the unit, not in it: a change of price or status has nothing to do with it. No foreign key, which would be
-- asked for each row of an import; a unit is never deleted but softly.
create table app_private.unit_texts (
  unit_id uuid primary key,
  organization_id uuid not null,
  project_id uuid not null,
  search_text text not null
);
alter table app_private.unit_texts enable row level security;
create index unit_texts_search on app_private.unit_texts using gin (organization_id, search_text gin_trgm_ops);
comment on table app_private.unit_texts is 'The text by which a unit is found, without case and accents; also of deleted ones, which no list shows.';

create function app_private.unit_text(title text, subtitle text, number text, building text, mls_id text, address app_public.address) returns text
language sql immutable as $$ select app_hidden.fold(concat_ws(' ', title, subtitle, number, building, mls_id, address.thoroughfare)) $$;
comment on function app_private.unit_text is 'The text by which a unit with these is found.';

insert into app_private.unit_texts (unit_id, organization_id, project_id, search_text)
  select u.id, u.organization_id, u.project_id, app_private.unit_text(u.title, u.subtitle, u.number, u.building, u.mls_id, u.address) from app_public.units u;

create function app_private.tg_units__text() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    insert into app_private.unit_texts (unit_id, organization_id, project_id, search_text)
      select u.id, u.organization_id, u.project_id, app_private.unit_text(u.title, u.subtitle, u.number, u.building, u.mls_id, u.address) from added u;
  else
    update app_private.unit_texts t
      set search_text = app_private.unit_text(new.title, new.subtitle, new.number, new.building, new.mls_id, new.address)
      where t.unit_id = new.id;
  end if;
  return null;
end $$;
create trigger _520_text after insert on app_public.units referencing new table as added
  for each statement execute function app_private.tg_units__text();
create trigger _520_new_text after update on app_public.units for each row
  when (row(old.title, old.subtitle, old.number, old.building, old.mls_id, old.address)
    is distinct from row(new.title, new.subtitle, new.number, new.building, new.mls_id, new.address))
  execute function app_private.tg_units__text();

-- Neither LIKE nor a trigram is leakproof, so under row security they reach no index: this looks first, in the viewer's
-- portfolio, and leaves the rest, such as unreleased units, to the policy.
create function app_hidden.units_with_words(words text) returns setof uuid
language plpgsql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[] := array(select app_hidden.viewer_organizations('project.read'));
  projects uuid[] := array(select app_hidden.viewer_projects('project.read'));
begin
  -- Written out, so that it is planned for its own words: a rare one by the index, a frequent one without.
  return query execute 'select t.unit_id from app_private.unit_texts t where t.organization_id = any ($1)
      and (t.organization_id = any ($2) or t.project_id = any ($3))'
      || coalesce((select string_agg(format(' and t.search_text like %L', '%' || regexp_replace(word, '([\\%_])', '\\\1', 'g') || '%'), '')
        from regexp_split_to_table(app_hidden.fold(btrim(words)), '\s+') word), '')
    using organizations || array(select distinct p.organization_id from app_public.projects p where p.id = any (projects)), organizations, projects;
end $$;
comment on function app_hidden.units_with_words(text) is 'Units of the viewer''s portfolio that contain every word.';
grant execute on function app_hidden.units_with_words to plat_user, plat_anonymous;
comment on function app_public.units_filter_query is E'@filter query\n@finder units_with_words\n\nWords in title, subtitle, number, building, MLS number or street.';

--------------------------------------------------------------------------------------------------------

create or replace function app_hidden.project_distances(latitude double precision, longitude double precision) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- PERF: once a city, and one object for the whole statement, instead of a function for each project.
  with distances as materialized (
    select c.id, app_hidden.distance_km(c.latitude, c.longitude, $1, $2) as km from app_private.cities c
  ), seen as (
    select p.id from app_public.projects p where p.visibility = 'PUBLIC' and p.archived_at is null and p.deleted_at is null
    union select p.id from app_public.projects p where p.organization_id = any (array(select app_hidden.viewer_organizations('project.read')))
    union select app_hidden.viewer_projects('project.read')
  )
  select jsonb_object_agg(c.project_id, d.km)
  from seen p
  join app_private.project_cities c on c.project_id = p.id
  join distances d on d.id = c.city_id
  where d.km is not null
$$;
comment on function app_hidden.project_distances is
  'Kilometres from a point to the city of each public project and each in the viewer''s portfolio, by the id of the project; those whose place is unknown are left out.';
update app_public.projects_sort_values
  set description = 'Nearest to the viewer first, whose place their IP address tells, by the city of the project; by service index where that tells nothing.'
  where value = 'DISTANCE';
