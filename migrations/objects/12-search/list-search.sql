-- Searching lists: units of a portfolio by words, projects by distance. Floor plans and lots are only listed within
-- their project, by its index.
--
-- Lists that filter by words use the index of the search, so that each record is indexed once, and a change of a lead's
-- status or of a price does not update it.

-- Neither LIKE nor a trigram is leakproof, so under row security they reach no index: this looks first, in the viewer's
-- portfolio, and leaves the rest, such as unreleased units, to the policy.
create function app_hidden.units_with_words(words text) returns setof uuid
language sql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
  select app_private.find_texts('UNIT', 'project.read', words,
    'app_hidden.fold(concat_ws('' '', r.title, r.subtitle, r.number, r.building, r.mls_id, (r.address).thoroughfare))')
$$;
comment on function app_hidden.units_with_words(text) is 'Units of the viewer''s portfolio that contain every word.';
grant execute on function app_hidden.units_with_words to plat_user, plat_anonymous;

-- Neither LIKE nor the operators of GIN indexes are leakproof, so they use no index under row security. This searches
-- first, among rows visible to the viewer, and leaves the rest, such as unreleased units and deleted records, to the
-- policy.
create function app_private.find_texts(type text, permission text, words text, raw_text text) returns setof uuid
language plpgsql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[] := app_hidden.viewer_organizations(permission);
  projects uuid[] := app_hidden.viewer_projects(permission);
  own_projects uuid[] := app_hidden.viewer_own_projects(permission);
  asked text[] := array(select w from regexp_split_to_table(app_hidden.fold(btrim(words)), '\s+') w where w <> '');
  -- Pieces of letters or of digits; a word of several is looked for in the record itself, too.
  pieces text[] := array(select distinct p from unnest(asked) w
    cross join lateral string_to_table(app_hidden.search_text(w), ' ') p where p <> '');
  condition text := concat(
    (select string_agg(format(' and t.names || t.more like %L', '%' || p || '%'), '') from unnest(pieces) p),
    (select format(' and exists (select from app_public.%I r where r.id = t.id and %s)', s.table_name,
        string_agg(format('%s like %L', raw_text, '%' || regexp_replace(w, '([\\%_])', '\\\1', 'g') || '%'), ' and '))
      from app_private.searchable_tables s, unnest(asked) w
      where s.type = find_texts.type and w <> app_hidden.search_text(w) group by s.table_name));
  organization uuid;
begin
  perform app_private.stop_when_words_are_due(type, organizations
    || array(select p.organization_id from app_public.projects p where p.id = any (projects || own_projects)));
  for organization in
    select unnest(organizations) union select p.organization_id from app_public.projects p
      where p.id = any (projects || own_projects)
  loop
    -- A literal, so that it is planned for its words: rare ones use the index, frequent ones do not.
    return query execute format('select t.id from app_private.search_texts t where t.type = %L and t.organization_id = '
      '%L', type, organization)
        || coalesce((select format(' and app_private.search_keys(t.type, t.organization_id, t.names, t.more) @> '
          '%L::text[]', array_agg(distinct k))
          from unnest(pieces) p cross join lateral unnest(app_private.search_key(app_private.search_realm(type,
            organization), '%' || p || '%')) k
          where p ~ '^[a-z0-9]{3,}$' having count(*) > 0), '')
        || condition
        || case when organization = any (organizations) then ''
          else ' and (t.project_id = any ($1) or (t.project_id = any ($2) and t.scopes @> array[$3]))' end
      using projects, own_projects, app_public.current_user_id();
  end loop;
end $$;
comment on function app_private.find_texts(text, text, text, text) is
  'Records of a type in the viewer''s portfolio that contain every word; raw_text is SQL for the text of a record r, '
  'for words with punctuation.';
