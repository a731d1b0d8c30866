-- The search. A query is interpreted in several ways, the best one first: whole words; the last word as a prefix; all
-- words as prefixes, and digits anywhere in a number; finally with a typo. An interpretation is only tried if the
-- previous ones found too little, so that a frequent word costs no more than a rare one. Each scans the parts of the
-- index that the viewer may see, and no more rows than an answer has. The matches are then read with the viewer's
-- rights: the policies are applied again.
--
-- Reservations, offers and agreements are not indexed: they are found by number, with the unique index of each project,
-- with the viewer's rights.

comment on type app_private.search_scope is 'A part of search_texts that a viewer sees.';

comment on column app_private.search_scope.scopes is 'Condition for the index; null if the scope is selective enough.';
comment on column app_private.search_scope.organization_id is 'Only rows of this organization; null for all.';
comment on column app_private.search_scope.projects is 'Only rows of these projects; null for all.';
comment on column app_private.search_scope.ids is 'Single records.';
comment on column app_private.search_scope.agent_project is 'Only agents of leads or purchases there.';
comment on column app_private.search_scope.offered is 'Only rows that are offered.';

comment on type app_private.search_match is 'A record that was found, and the words that were found in it.';

create function app_private.search_parts_of(type text, organizations uuid[], projects uuid[], own uuid[],
  offered boolean) returns setof app_private.search_scope
language sql stable as $$
  select $1, app_private.search_realm($1, o), case when app_private.search_realm($1, o) = '' then array[o] end, o,
    null::uuid[], null::uuid[], null::uuid, $5
    from unnest(organizations) o
  union all
  -- PERF: few projects are looked up in the index one by one; for many, all entries of the organization are filtered.
  select $1, app_private.search_realm($1, p.organization_id), case when count(*) <= 8 then array_agg(p.id)
      when app_private.search_realm($1, p.organization_id) = '' then array[p.organization_id] end, p.organization_id,
        array_agg(p.id), null::uuid[], null::uuid, $5
    from app_public.projects p where p.id = any (projects) and p.organization_id <> all (organizations)
      group by p.organization_id
  union all
  select $1, app_private.search_realm($1, p.organization_id), array[app_public.current_user_id()], p.organization_id,
    array_agg(p.id), null::uuid[], null::uuid, $5
    from app_public.projects p where p.id = any (own) group by p.organization_id
$$;
comment on function app_private.search_parts_of(text, uuid[], uuid[], uuid[], boolean) is
  'The parts of search_texts with rows of these organizations, of these projects, and of those where the viewer sees '
  'their own leads only.';

create function app_private.search_scopes(types text[], only_project uuid) returns setof app_private.search_scope
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  everybody constant uuid := '00000000-0000-0000-0000-000000000000';
  owner uuid := (select p.organization_id from app_public.projects p where p.id = only_project);
  kind text;
  organizations uuid[];
  projects uuid[];
  own uuid[];
  ids uuid[];
begin
  foreach kind in array types loop
    own := '{}';
    ids := '{}';
    case kind
      when 'LEAD', 'BUYER' then
        organizations := app_hidden.viewer_organizations(lower(kind) || '.read');
        projects := app_hidden.viewer_projects(lower(kind) || '.read');
        own := app_hidden.viewer_own_projects(lower(kind) || '.read');
        if kind = 'BUYER' then
          ids := array(select app_hidden.viewer_purchases());
        end if;
      when 'BUYER_AGENT' then
        organizations := array(select unnest(app_hidden.viewer_organizations('org.member')) union
          select unnest(app_hidden.viewer_organizations('lead.read')));
        projects := '{}';
        ids := array(select app_hidden.viewer_deal_agents() union
          select l.agent_id from app_public.leads l where l.agent_id is not null and l.deleted_at is null
            and l.organization_id <> all (organizations)
            and (l.project_id = any ((select app_hidden.viewer_projects('lead.read'))::uuid[])
              or (l.assignee_id = app_public.current_user_id()
                and l.project_id = any ((select app_hidden.viewer_own_projects('lead.read'))::uuid[]))));
      when 'PROJECT' then
        organizations := app_hidden.viewer_organizations('project.read');
        projects := app_hidden.viewer_projects('project.read');
        ids := array(select app_hidden.viewer_purchase_projects());
      else
        organizations := app_hidden.viewer_organizations('inventory.read');
        projects := array(select unnest(app_hidden.viewer_projects('inventory.read')) union
          select unnest(app_hidden.viewer_projects('construction.write')));
        if kind = 'UNIT' then
          ids := array(select app_hidden.viewer_purchase_units());
        else
          ids := array(select app_hidden.viewer_purchase_floor_plans());
        end if;
    end case;

    if only_project is null then
      return query select * from app_private.search_parts_of(kind, organizations, projects, own, false);
    elsif kind = 'BUYER_AGENT' then
      if owner = any (organizations) then
        return next row(kind, app_private.search_realm(kind, owner), null, owner, null, null, only_project,
          false)::app_private.search_scope;
      end if;
    elsif owner = any (organizations) or only_project = any (projects) then
      return next row(kind, app_private.search_realm(kind, owner), array[only_project], owner, array[only_project],
        null, null, false)::app_private.search_scope;
    elsif only_project = any (own) then
      return query select * from app_private.search_parts_of(kind, '{}', '{}', array[only_project], false);
    end if;
    if ids <> '{}' then
      return next row(kind, null, null, null, case when kind <> 'BUYER_AGENT' and only_project is not null
        then array[only_project] end, ids,
        case when kind = 'BUYER_AGENT' then only_project end, false)::app_private.search_scope;
    end if;

    -- Data that are visible with the project.
    if kind in ('PROJECT', 'FLOOR_PLAN', 'UNIT') then
      if only_project is not null then
        if exists (select from app_public.projects p where p.id = only_project and p.deleted_at is null
          and ((p.visibility in ('PUBLIC', 'UNLISTED') and p.archived_at is null
            and p.id <> all (array(select app_hidden.viewer_bought_projects())))
            or p.organization_id = any ((select app_hidden.viewer_organizations('project.read'))::uuid[])
            or p.id = any ((select app_hidden.viewer_projects('project.read'))::uuid[]))) then
          return next row(kind, '', array[only_project], owner, array[only_project], null, null,
            true)::app_private.search_scope;
        end if;
      else
        return next row(kind, '', array[everybody], null, null, null, null, true)::app_private.search_scope;
        if kind <> 'PROJECT' then
          return query select * from app_private.search_parts_of(kind,
            array(select unnest(app_hidden.viewer_organizations('project.read')) except select unnest(organizations)),
            array(select unnest(app_hidden.viewer_projects('project.read')) except select unnest(projects)), '{}',
            true);
        end if;
      end if;
    end if;
  end loop;
end $$;
comment on function app_private.search_scopes(text[], uuid) is
  'The parts of search_texts that the viewer sees, of these types; of one project, where it is given.';

-- A reading is one pattern of LIKE for each word: `% word %` for a whole one, `% word%` for one that is begun, `%123%`
-- for digits within a number.
create function app_private.search_pattern(word text) returns text
language sql immutable parallel safe as $$
  -- A national number is written with a zero that its international form lacks.
  select case when word ~ '^[0-9]{3,}$' then '%' || case when length(word) > 4
    then regexp_replace(word, '^0+(?=[0-9]{4})', '') else word end || '%'
    else '% ' || word || '%' end
$$;
comment on function app_private.search_pattern(text) is 'The pattern of a word that is begun, or of digits.';

create function app_private.search_key(realm text, pattern text) returns text[]
language plpgsql immutable parallel safe as $$
declare
  word text := btrim(pattern, '% ');
  last int;
begin
  if right(pattern, 2) = ' %' then
    return array[realm || '=' || word];
  end if;
  if word ~ '^[a-z0-9]+$' then
    -- PERF: four trigrams spread over the word are nearly as rare as all of them, and the pattern decides.
    if left(pattern, 2) = '% ' then
      word := case when length(word) = 1 then '  ' else ' ' end || word;
    end if;
    last := length(word) - 2;
    return array(select distinct realm || substr(word, i, 3) from unnest(
      case when last <= 4 then array(select generate_series(1, last))
        else array[1, 1 + last / 3, 1 + 2 * last / 3, last] end) i);
  end if;
  return array[realm || '^' || left(word, 6)];
end $$;
comment on function app_private.search_key(text, text) is 'Keys that every row has that a pattern finds.';

create function app_private.search_score(names text, more text, patterns text[]) returns numeric
language sql immutable parallel safe as $$
  select round(0.9 * avg(case
      when names like '% ' || p.word || ' %' then 1
      when ' ' || more like '% ' || p.word || ' %' then 0.97
      when names like '% ' || p.word || '%' then 0.8
      when ' ' || more like '% ' || p.word || '%' then 0.75
      else 0.6 end)
    + case when names like '% ' || string_agg(p.word, ' ' order by p.n) || '%' then 0.05 else 0 end
    + 0.05 * least(1, sum(length(p.word) + 1)::numeric / greatest(1, length(names) - 1)), 4)
  from (select btrim(value, '% ') as word, n from unnest(patterns) with ordinality u (value, n)) p
$$;
comment on function app_private.search_score(text, text, text[]) is
  'How well a reading fits, up to 1: whole words before begun ones, names before other fields, words in their order '
  'and all of a name before a part of it.';

create function app_private.search_reading(scopes app_private.search_scope[], readings jsonb,
  amount int) returns setof app_private.search_match
language plpgsql stable security definer
  -- PERF: the planner does not know how many rows have a word of which viewer, and would read all rows where it hopes
  -- to find many.
  set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexscan = off
    set enable_indexonlyscan = off set jit = off
  set plan_cache_mode = force_generic_plan as $$
begin
  return query
    with asked as materialized (
      select s.*, r.patterns, r.weight,
        (select array_agg(distinct k) from unnest(r.patterns) p
          cross join lateral unnest(app_private.search_key(s.realm, p)) k) as keys
      from unnest(search_reading.scopes) s
      cross join lateral (select array(select jsonb_array_elements_text(e -> 'patterns')) as patterns,
        (e ->> 'weight')::numeric as weight
        from jsonb_array_elements(readings) e) r
    )
    select t.type, t.id, round(t.score * a.weight, 4), array(select btrim(p, '% ') from unnest(a.patterns) p)
      from asked a cross join lateral (
        select t.type, t.id, app_private.search_score(t.names, t.more, a.patterns) as score
          from app_private.search_texts t
        where t.type = a.type and t.scopes && a.scopes
          and app_private.search_keys(t.type, t.organization_id, t.names, t.more) @> a.keys
          and not t.is_deleted and t.names || t.more like all (a.patterns)
            and (a.projects is null or t.project_id = any (a.projects)) and (t.offered or not a.offered)
          and (a.organization_id is null or t.organization_id = a.organization_id)
        limit amount) t
      where a.scopes is not null
    union all
    select t.type, t.id, round(t.score * a.weight, 4), array(select btrim(p, '% ') from unnest(a.patterns) p)
      from asked a cross join lateral (
        select t.type, t.id, app_private.search_score(t.names, t.more, a.patterns) as score
          from app_private.search_texts t
        where t.type = a.type and app_private.search_keys(t.type, t.organization_id, t.names, t.more) @> a.keys
          and not t.is_deleted and t.names || t.more like all (a.patterns) and t.organization_id = a.organization_id
          and (a.projects is null or t.project_id = any (a.projects))
          and (a.agent_project is null or exists (select from app_public.leads l where l.agent_id = t.id
            and l.project_id = a.agent_project and l.deleted_at is null)
            or exists (select from app_public.buyers b where b.agent_id = t.id and b.project_id = a.agent_project
              and b.deleted_at is null))
        limit amount) t
      where a.scopes is null and a.ids is null
    union all
    select t.type, t.id, round(t.score * a.weight, 4), array(select btrim(p, '% ') from unnest(a.patterns) p)
      from asked a cross join lateral (
        select t.type, t.id, app_private.search_score(t.names, t.more, a.patterns) as score
          from app_private.search_texts t
        where t.type = a.type and t.id = any (a.ids) and not t.is_deleted and t.names || t.more like all (a.patterns)
          and (a.projects is null or t.project_id = any (a.projects))
          and (a.agent_project is null or exists (select from app_public.leads l where l.agent_id = t.id
            and l.project_id = a.agent_project and l.deleted_at is null)
            or exists (select from app_public.buyers b where b.agent_id = t.id and b.project_id = a.agent_project
              and b.deleted_at is null))
        limit amount) t
      where a.ids is not null;
end $$;
comment on function app_private.search_reading(app_private.search_scope[], jsonb, int) is
  'What readings {patterns, weight} find in parts of search_texts, up to an amount in each.';

create function app_private.search_typos(words text[]) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with recursive options as (
    select w.n, app_private.search_pattern(w.word) as pattern, 0 as typos, 0::bigint as place from unnest(words)
      with ordinality w (word, n)
    union all
    select w.n, '% ' || k.word || ' %', 1, k.place from unnest(words) with ordinality w (word, n)
      cross join lateral (
        select k.word, row_number() over (order by left(k.word, 1) = left(w.word, 1) desc,
          public.similarity(k.word, w.word) desc, k.word) as place
        from (select distinct k.word from app_private.search_words k
          where app_private.word_variants(k.word) && app_private.word_variants(w.word) and k.word <> w.word) k) k
      where length(w.word) between 4 and 24 and w.word !~ '[0-9]' and k.place <= 6
  ), readings as (
    select 0::bigint as n, '[]'::jsonb as patterns, 0 as typos, 0::numeric as place
    union all
    select o.n, r.patterns || to_jsonb(o.pattern), r.typos + o.typos, r.place + o.place from readings r
      join options o on o.n = r.n + 1
    where r.typos + o.typos <= 2
  )
  select jsonb_agg(jsonb_build_object('patterns', patterns, 'weight', case typos when 1 then 0.7 else 0.5 end))
  from (select r.* from readings r where r.n = cardinality(words) and r.typos > 0 order by r.typos, r.place, r.patterns
    limit 40) r
$$;
comment on function app_private.search_typos(text[]) is
  'Readings in which one or two words are names that differ by a letter.';

create function app_hidden.search_matches(words text[], types text[], only_project uuid,
  amount int) returns setof app_private.search_match
language plpgsql stable security definer rows 20 set search_path = pg_catalog,
  pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  scopes app_private.search_scope[] := array(select s from app_private.search_scopes(types, only_project) s);
  whole text[] := array(select '% ' || w || ' %' from unnest(words) with ordinality u (w, n) order by n);
  begun text[] := array(select app_private.search_pattern(w) from unnest(words) with ordinality u (w, n) order by n);
  readings text[][] := array[whole];
  matches app_private.search_match[] := '{}';
  found int := 0;
  step int;
begin
  perform app_private.stop_when_words_are_due(s.type, array_agg(s.organization_id)) from unnest(scopes) s
    group by s.type;
  for step in 1 .. 4 loop
    continue when step = 2 and cardinality(words) = 1;
    exit when found >= amount or (step = 4 and found >= 5);
    matches := matches || array(select m from app_private.search_reading(scopes,
      case when step = 4 then app_private.search_typos(words)
        else jsonb_build_array(jsonb_build_object('weight', 1, 'patterns',
        to_jsonb(case step when 1 then whole when 2 then whole[:cardinality(words) - 1] || begun[cardinality(words)]
          else begun end))) end,
      greatest(amount, 200)) m);
    select count(*) into found from (select distinct m.type, m.id from unnest(matches) m) m;
  end loop;
  return query select b.* from (select distinct on (m.type, m.id) m.* from unnest(matches) m order by m.type, m.id,
    m.score desc, m.words) b
    order by b.score desc, array_position(types, b.type), b.id limit amount;
end $$;
comment on function app_hidden.search_matches(text[], text[], uuid, int) is
  'The records that the viewer sees and that have all words, best first: each with its score and the words that were '
  'found.';

create function app_hidden.search_number_projects(permissions text[], only_project uuid) returns setof uuid
language plpgsql stable security definer rows 20 set search_path = pg_catalog, pg_temp as $$
declare
  organizations constant uuid[] := array(select o from unnest(permissions) n
    cross join unnest(app_hidden.viewer_organizations(n)) o);
begin
  return query select s.id from (
    select p.id from app_public.projects p where p.organization_id = any (organizations)
    union select p from unnest(permissions) n cross join unnest(app_hidden.viewer_projects(n)) p
    union select p from unnest(permissions) n cross join unnest(app_hidden.viewer_own_projects(n)) p
    union select b.project_id from app_public.buyers b where b.id = any (array(select app_hidden.viewer_purchases()))
    union select r.project_id from app_public.reservations r
      where r.id = any (array(select app_hidden.viewer_purchase_reservations()))) s
  where only_project is null or s.id = only_project;
end $$;
comment on function app_hidden.search_number_projects(text[], uuid) is
  E'@step It returns where to search; the policies decide what is visible there.\n\n'
  'The projects in which the viewer sees deals, with one of these permissions or as a buyer.';

create function app_hidden.search_numbers(words text[], types text[], only_project uuid)
returns setof app_private.search_match
-- As the viewer: text and uuid are compared by leakproof operators, so the index is used under row security too.
language plpgsql stable rows 20 set plan_cache_mode = force_generic_plan as $$
declare
  prefix constant text := case when cardinality(words) = 2 then upper(words[1]) end;
  digits constant text := ltrim(words[cardinality(words)], '0');
  -- Digits alone are rather a number of a home, or of a phone.
  score constant numeric := case when prefix is null then 0.5 else 1 end;
  kinds constant text[] := array(select k.type
    from (values ('RESERVATION', 'R'), ('OFFER', 'O'), ('AGREEMENT', 'A')) k (type, letter)
    where k.type = any (types) and k.letter = coalesce(prefix, k.letter));
  projects uuid[];
begin
  if cardinality(words) > 2 or digits !~ '^[0-9]{1,10}$' or cardinality(kinds) = 0
    or app_public.current_user_id() is null then
    return;
  end if;
  if kinds && '{RESERVATION, OFFER}' then
    projects := array(select app_hidden.search_number_projects('{sale.read}', only_project));
    if 'RESERVATION' = any (kinds) then
      return query select 'RESERVATION', r.id, score, words from app_public.reservations r
        where r.project_id = any (projects) and r.number = app_hidden.deal_number('R', digits)
          and r.deleted_at is null;
    end if;
    if 'OFFER' = any (kinds) then
      return query select 'OFFER', o.id, score, words from app_public.offers o
        where o.project_id = any (projects) and o.number = app_hidden.deal_number('O', digits);
    end if;
  end if;
  if 'AGREEMENT' = any (kinds) then
    projects := array(select app_hidden.search_number_projects('{lead.read, buyer.read}', only_project));
    return query select 'AGREEMENT', a.id, score, words from app_public.agreements a
      where a.project_id = any (projects) and a.number = app_hidden.deal_number('A', digits)
        and a.deleted_at is null;
  end if;
end $$;
comment on function app_hidden.search_numbers(text[], text[], uuid) is
  'The reservations, offers and agreements that the viewer sees with the number that the words are: R-000042, r42, or '
  '42 for any of them.';

comment on type app_public.search_result is
  E'@foreignKey (project_id) references projects (id)|@fieldName project|@backwardBehavior -*|@forwardDescription '
  'The project that it belongs to; null for agents.\n\n'
  'A record that matches the search text, with what a list of results displays.';

comment on column app_public.search_result.id is
  E'@notNull\n\nId of the found record, of the type in `type`.';
comment on column app_public.search_result.type is E'@notNull\n\nType of the found record.';
comment on column app_public.search_result.title is E'@notNull\n\nDisplay title.';
comment on column app_public.search_result.subtitle is 'Second line that distinguishes records with the same title.';
comment on column app_public.search_result.snippet is
  'Matching field other than title and subtitle, shortened to an excerpt if it is long.';
comment on column app_public.search_result.score is
  E'@notNull\n\nRelevance from 0 to 1; 1 for an exact match of the name.';
comment on column app_public.search_result.highlights is
  E'@notNull\n\nMatching words of title, subtitle and snippet, as they occur there.';
comment on column app_public.search_result.url is
  'Path to append to the URL of the application: /projects/<slug>/units/<id>.';
comment on column app_public.search_result.image_url is 'URL of a thumbnail.';
comment on column app_public.search_result.project_id is E'@behavior -*\n\nThe project that it belongs to.';

create function app_hidden.search_snippet(fields text[], words text[]) returns text
language sql immutable parallel safe as $$
  select case when length(f.value) <= 160 then f.value
    else case when f.place > 60 then '…'
      else '' end || btrim(substr(f.value, greatest(1, f.place - 60), 160)) || '…' end
  from (select u.value, u.n, (select max(position(w in u.folded)) from unnest(words) w) as place
    from (select v.value, v.n, app_hidden.fold(v.value) as folded from unnest(fields) with ordinality v (value, n)
      where v.value <> '') u) f
  where f.place > 0 order by f.n limit 1
$$;
comment on function app_hidden.search_snippet(text[], text[]) is
  'The first field with one of the words, or the part of it around the word.';

create function app_hidden.search_highlights(texts text, words text[]) returns text[]
language plpgsql immutable parallel safe as $$
declare
  between_pieces constant text := '[\s,;:()"<>@./·…-]+';
  pieces text[] := regexp_split_to_array(texts, between_pieces);
  -- PERF: all at once; one by one only where a letter became something with a separator in it.
  folded text[] := regexp_split_to_array(app_hidden.fold(texts), between_pieces);
begin
  if cardinality(folded) <> cardinality(pieces) then
    folded := array(select app_hidden.fold(p) from unnest(pieces) with ordinality u (p, n) order by n);
  end if;
  return array(select u.piece from unnest(pieces, folded) with ordinality u (piece, folded, n)
    where exists (select from unnest(words) w where u.folded like '%' || w || '%') group by u.piece order by min(u.n));
end $$;
comment on function app_hidden.search_highlights(text, text[]) is
  'The pieces of a text that have one of the words, as they are written.';

create function app_public.search(query text, types app_public.search_result_type[] default null,
  project_id app_public.id_or_slug default null, amount int default 100)
returns setof app_public.search_result
-- PERF: planned once for a connection, rather than for each query.
language plpgsql stable rows 20 set plan_cache_mode = force_generic_plan as $$
declare
  longest constant int := 200;
  -- In the order of equal scores; those from the seventh on are found by their number.
  kinds constant text[] := '{PROJECT, FLOOR_PLAN, UNIT, BUYER, BUYER_AGENT, LEAD, RESERVATION, OFFER, AGREEMENT}';
  only_project uuid;
  cleaned text;
  words text[];
begin
  if length(query) > longest then
    perform app_hidden.fail('LIMIT_EXCEEDED', format('A search text can have at most %s characters.', longest),
      jsonb_build_object('field', 'query', 'limit', longest));
  end if;
  cleaned := app_hidden.search_text(query);
  -- Digits alone, enough for a phone number, are one however they are grouped: +44 (0)20 7946 0958.
  if cleaned ~ '^[0-9 ]+$' and length(replace(cleaned, ' ', '')) >= 7 then
    cleaned := replace(replace(cleaned, ' 0 ', ' '), ' ', '');
  end if;
  words := array(select w.word from string_to_table(cleaned, ' ') with ordinality w (word, n) where w.word <> ''
    group by w.word order by min(w.n));
  if cardinality(words) = 0 or (cardinality(words) = 1 and words[1] ~ '^[a-z]$') then
    perform app_hidden.fail('BAD_USER_INPUT', 'A search text must have at least two letters, or be a number.',
      '{"field": "query"}');
  end if;
  if search.project_id is not null then
    only_project := app_hidden.record_id('projects', search.project_id, 'projectId');
    if only_project is null then
      return;
    end if;
  end if;
  return query
    with matches as materialized (
      select m.type, m.id, m.score, m.words from app_hidden.search_matches(words,
        array(select t from unnest(kinds[:6]) t
          where search.types is null or t = any (search.types::text[])), only_project, search.amount) m
      union all
      select m.type, m.id, m.score, m.words from app_hidden.search_numbers(words,
        array(select t from unnest(kinds[7:]) t
          where search.types is null or t = any (search.types::text[])), only_project) m
    ), records as (
      -- PERF: (… offset 0) looks each record up by its id, however many the planner expects.
      select m.*, r.* from matches m cross join lateral (
        select p.title::text, concat_ws(', ', (p.address).locality, (p.address).administrative_area) as subtitle,
          array[(p.address).thoroughfare, (p.address).postal_code, p.overview_headline, p.overview]::text[] as fields,
          '/projects/' || p.slug as url, p.id as project_id,
          coalesce((select app_public.project_avatars_thumbnail_url(a) from app_public.project_avatars a
            where a.project_id = p.id and a.deleted_at is null),
            (select app_public.project_images_thumbnail_url(i) from app_public.project_images i
              where i.project_id = p.id and i.deleted_at is null
              order by i.category = 'HERO' desc, i.sequence, i.id limit 1)) as image
        from app_public.projects p where p.id = m.id offset 0) r where m.type = 'PROJECT'
      union all
      select m.*, r.* from matches m cross join lateral (
        select f.title::text, concat_ws(' · ', f.code, f.subtitle), array[f.description]::text[],
          '/floor-plans/' || f.id, f.project_id,
          (select app_public.floor_plan_images_thumbnail_url(i) from app_public.floor_plan_images i
            where i.floor_plan_id = f.id and i.deleted_at is null
            order by i.sequence, i.id limit 1)
        from app_public.floor_plans f where f.id = m.id offset 0) r where m.type = 'FLOOR_PLAN'
      union all
      select m.*, r.* from matches m cross join lateral (
        select u.title::text, concat_ws(' · ', u.number, u.subtitle, u.building),
          array[(u.address).thoroughfare, u.phase, u.view, u.mls_id]::text[],
          '/units/' || u.id, u.project_id,
          (select app_public.unit_images_thumbnail_url(i) from app_public.unit_images i where i.unit_id = u.id
            and i.deleted_at is null
            order by i.sequence, i.id limit 1)
        from app_public.units u where u.id = m.id offset 0) r where m.type = 'UNIT'
      union all
      select m.*, r.* from matches m cross join lateral (
        select app_hidden.name_of_buyer(b.first_name, b.last_name, b.legal_name, b.company, b.email),
          concat_ws(' · ', b.company, b.email),
          array[b.phone, b.legal_name]::text[], '/buyers/' || b.id, b.project_id, null::jsonb
        from app_public.buyers b where b.id = m.id offset 0) r where m.type = 'BUYER'
      union all
      select m.*, r.* from matches m cross join lateral (
        select a.name::text, a.brokerage::text, array[a.email, a.phone, a.license_number]::text[], '/agents/' || a.id,
          null::uuid, null::jsonb
        from app_public.agents a where a.id = m.id offset 0) r where m.type = 'BUYER_AGENT'
      union all
      select m.*, r.* from matches m cross join lateral (
        select l.name::text, concat_ws(' · ', l.company, l.email),
          array[l.phone, l.legal_name, concat_ws(' ', l.first_name, l.last_name)]::text[],
          '/leads/' || l.id, l.project_id, null::jsonb
        from app_public.leads l where l.id = m.id offset 0) r where m.type = 'LEAD'
      union all
      select m.*, r.* from matches m cross join lateral (
        select d.number, concat_ws(' · ',
            coalesce(d.buyer_legal_name, (select l.name from app_public.leads l where l.id = d.lead_id)),
            coalesce((select coalesce(u.number, u.title) from app_public.units u where u.id = d.unit_id),
              (select coalesce(l.number, l.title) from app_public.lots l where l.id = d.lot_id))),
          '{}'::text[], '/reservations/' || d.id, d.project_id, null::jsonb
        from app_public.reservations d where d.id = m.id offset 0) r where m.type = 'RESERVATION'
      union all
      select m.*, r.* from matches m cross join lateral (
        select o.number, concat_ws(' · ', o.legal_name,
            (select coalesce(u.number, u.title) from app_public.units u where u.id = o.unit_id)),
          '{}'::text[], '/offers/' || o.id, o.project_id, null::jsonb
        from app_public.offers o where o.id = m.id offset 0) r where m.type = 'OFFER'
      union all
      select m.*, r.* from matches m cross join lateral (
        select a.number, concat_ws(' · ', a.title,
            (select l.name from app_public.leads l where l.id = a.lead_id),
            (select app_hidden.name_of_buyer(b.first_name, b.last_name, b.legal_name, b.company, b.email)
              from app_public.buyers b where b.id = a.buyer_id)),
          '{}'::text[], '/agreements/' || a.id, a.project_id, null::jsonb
        from app_public.agreements a where a.id = m.id offset 0) r where m.type = 'AGREEMENT'
    )
    select r.id, r.type::app_public.search_result_type, r.title, nullif(r.subtitle, ''), s.snippet,
      r.score::double precision,
      case when array_position(kinds, r.type) > 6 then array[r.title]
        else app_hidden.search_highlights(concat_ws(' ', r.title, r.subtitle, s.snippet), r.words) end,
      case when r.type <> 'PROJECT' and r.project_id is not null then '/projects/'
        || (select p.slug from app_public.projects p where p.id = r.project_id) || r.url else r.url end,
      r.image::app_public.file_address, r.project_id
    from records r
    cross join lateral (select app_hidden.search_snippet(r.fields, r.words) as snippet) s
    order by r.score desc, array_position(kinds, r.type), r.id limit search.amount;
end $$;
grant execute on function app_hidden.deal_number, app_hidden.search_number_projects, app_hidden.search_numbers,
  app_public.search to plat_user, plat_anonymous;
comment on function app_public.search is
  E'@arg query Words, prefixes of words, or digits of a phone number, all of which must match: at least two '
  'letters, at most 200 characters. Or the number of a reservation, offer or agreement, such as R-000042 or '
  'r42.\n@arg types Only results of these types. Default: all types.\n@arg projectId Id or slug of a project, to '
  'search only its records.\n@arg amount Maximum number of records, up to 1000. Default: 100.\n\n'
  'Full-text search over projects, floor plans, units, buyers, buyer''s agents and leads, and lookup of '
  'reservations, offers and agreements by number. The best match comes first.';
