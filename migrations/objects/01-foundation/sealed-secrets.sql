-- Secrets that have to be read again are sealed with a key that the database never sees. A module that keeps one
-- adds a row; a job seals with the present key what a former one sealed, so that the former can be taken away.

comment on table app_private.sealed_columns is
  'Columns that hold sealed texts, and the uuid column that their rows are known by.';

insert into app_private.sealed_columns (relation, name, key) values
  ('app_private.webhook_secrets', 'sealed', 'webhook_id'),
  ('app_private.webhook_secrets', 'previous_sealed', 'webhook_id'),
  ('app_private.integration_secrets', 'sealed', 'integration_id');

create function app_private.sealed_places() returns table (relation text, name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.relation::text, c.name::text from app_private.sealed_columns c order by c
$$;
comment on function app_private.sealed_places() is 'The columns that hold sealed texts.';

create function app_private.sealed_otherwise(relation text, name text, kid text, after uuid, batch int)
returns table (id uuid, sealed text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  place app_private.sealed_columns;
begin
  select c.* into strict place from app_private.sealed_columns c
    where c.relation = sealed_otherwise.relation and c.name = sealed_otherwise.name;
  -- The name of the key stands before the last dot.
  return query execute format(
    'select %1$I, %2$I from %3$s where %2$I is not null and left(%2$I, -1 - length(split_part(%2$I, ''.'', -1))) <> $1
       and (%1$I > $2 or $2 is null) order by %1$I limit $3', place.key, place.name, place.relation)
    using kid, after, batch;
end $$;
comment on function app_private.sealed_otherwise(text, text, text, uuid, int) is
  'Texts of a column that another key than this sealed, from a row on.';

create function app_private.seal_anew(relation text, name text, texts jsonb) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  place app_private.sealed_columns;
  amount int;
begin
  select c.* into strict place from app_private.sealed_columns c
    where c.relation = seal_anew.relation and c.name = seal_anew.name;
  -- What changed meanwhile was sealed with the present key.
  execute format(
    'update %3$s t set %2$I = n.sealed from jsonb_to_recordset($1) n (id uuid, former text, sealed text) where t.%1$I '
    '= n.id and t.%2$I = n.former',
    place.key, place.name, place.relation) using texts;
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.seal_anew(text, text, jsonb) is
  'Puts texts that are sealed anew in the place of the former ones; returns how many.';
grant execute on function app_private.sealed_places, app_private.seal_anew, app_private.sealed_otherwise to plat_worker;
