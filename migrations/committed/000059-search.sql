--! Previous: sha1:517f300e804c1fcec420d6da5a2dbadb61212f96
--! Hash: sha1:b709ba93466d268d26c6ddb3857249078eacd0f8
--! Message: search

-- The words that records are found by.

select app_private.create_enum('search_result_type', 'What was found.', array[
  ['PROJECT', 'A project.'], ['FLOOR_PLAN', 'A floor plan.'], ['UNIT', 'A unit.'], ['BUYER', 'A purchase.'],
  ['BUYER_AGENT', 'An agent who represents buyers.'], ['LEAD', 'A lead.']]);

create function app_private.search_keys(type text, organization_id uuid, names text, more text) returns text[]
language plpgsql immutable parallel safe as $$
declare
  realm text := app_private.search_realm(type, organization_id);
  texts text := btrim(names || more);
  keys text[];
begin
  -- PERF: functions on whole texts rather than a query over words; this runs for each row of an import.
  keys := string_to_array(realm || array_to_string(public.show_trgm(texts), '|' || realm) || '|' || realm || '='
    || replace(texts, ' ', '|' || realm || '='), '|');
  -- Whether a letter of another script has trigrams depends on the locale of the database.
  if octet_length(texts) > length(texts) then
    keys := keys || array(select realm || '^' || left(w, n) from string_to_table(texts, ' ') w
      cross join generate_series(1, 6) n
      where octet_length(w) > length(w) and n <= length(w));
  end if;
  return keys;
end $$;

create function app_private.word_variants(word text) returns text[]
language sql immutable parallel safe as $$
  select array_agg(distinct left(word, i) || substr(word, i + 2)) || word from generate_series(0, length(word) - 1) i
$$;

create table app_private.search_texts (
  id uuid not null,
  type text not null,
  organization_id uuid not null,
  project_id uuid,
  scopes uuid[] not null,
  offered boolean not null,
  is_deleted boolean not null,
  names text not null,
  more text not null
) partition by list (type);

-- PERF: what was just written waits in a list, which makes an import four times as fast; each search reads it, so it is
-- short.
create index search_texts_keys on app_private.search_texts
  using gin (scopes, app_private.search_keys(type, organization_id, names, more))
  with (fastupdate = on, gin_pending_list_limit = 1024);
alter table app_private.search_texts enable row level security;

-- PERF: the key is the id alone, in each partition: a key with the type in it looks, to a planner without statistics,
-- as good as the words.
create table app_private.search_projects partition of app_private.search_texts (primary key (id)) for
  values in ('PROJECT');
alter table app_private.search_projects enable row level security;

create table app_private.search_floor_plans partition of app_private.search_texts (primary key (id)) for
  values in ('FLOOR_PLAN');
alter table app_private.search_floor_plans enable row level security;

create table app_private.search_units partition of app_private.search_texts (primary key (id)) for values in ('UNIT');
alter table app_private.search_units enable row level security;

create table app_private.search_buyers partition of app_private.search_texts (primary key (id)) for values in ('BUYER');
alter table app_private.search_buyers enable row level security;

create table app_private.search_agents partition of app_private.search_texts (primary key (id)) for
  values in ('BUYER_AGENT');
alter table app_private.search_agents enable row level security;

create table app_private.search_leads partition of app_private.search_texts (primary key (id)) for values in ('LEAD');
alter table app_private.search_leads enable row level security;

-- The words of names, for those who mistype them: each by itself and with each one of its letters left out.
create table app_private.search_words (
  word text not null
);
create index search_words_word on app_private.search_words (word);
create index search_words_variants on app_private.search_words using gin (app_private.word_variants(word))
  with (fastupdate = on, gin_pending_list_limit = 256);
alter table app_private.search_words enable row level security;

create table app_private.searchable_tables (
  table_name text primary key,
  type text not null unique,
  texts text not null
);
alter table app_private.searchable_tables enable row level security;

create type app_private.search_scope as (
  type text, realm text, scopes uuid[], organization_id uuid, projects uuid[], ids uuid[], agent_project uuid,
    offered boolean
);

create type app_private.search_match as (type text, id uuid, score numeric, words text[]);

create type app_public.search_result as (
  id uuid, type app_public.search_result_type, title text, subtitle text, snippet text, score double precision,
    highlights text[], url text,
  image_url app_public.file_address, project_id uuid
);

create table app_private.search_backlog (
  id bigint generated always as identity primary key,
  type text not null,
  organization_id uuid not null,
  ids uuid[] not null
);
create index search_backlog_organization on app_private.search_backlog (organization_id, type);
alter table app_private.search_backlog enable row level security;
