-- Secrets that must be read again are sealed with a key that the database never sees, each bound to its column and row.
-- A module with such a column adds a row; a job reseals with the current key, so that former keys can be removed, and
-- binds the values of earlier versions, until there are none left and unbound values are refused.

comment on table app_private.sealed_columns is
  'Columns that hold sealed texts, and the uuid column that their rows are known by.';

insert into app_private.sealed_columns (relation, name, key) values
  ('app_private.webhook_secrets', 'sealed', 'webhook_id'),
  ('app_private.webhook_secrets', 'previous_sealed', 'webhook_id'),
  ('app_private.integration_secrets', 'sealed', 'integration_id'),
  ('app_private.second_factors', 'sealed', 'user_id');

comment on table app_private.bound_columns is
  'Columns of sealed texts that had no text left which is bound to no row, and since when.';

create function app_private.sealed_places() returns table (relation text, name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.relation::text, c.name::text from app_private.sealed_columns c order by c
$$;
comment on function app_private.sealed_places() is 'The columns that hold sealed texts.';

create function app_private.sealed_otherwise(relation text, name text, mark text, after uuid, batch int)
returns table (id uuid, sealed text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  place app_private.sealed_columns;
begin
  select c.* into strict place from app_private.sealed_columns c
    where c.relation = sealed_otherwise.relation and c.name = sealed_otherwise.name;
  -- The version of the form and the name of the key stand before the last dot.
  return query execute format(
    'select %1$I, %2$I from %3$s where %2$I is not null and left(%2$I, -1 - length(split_part(%2$I, ''.'', -1))) <> $1
       and (%1$I > $2 or $2 is null) order by %1$I limit $3', place.key, place.name, place.relation)
    using mark, after, batch;
end $$;
comment on function app_private.sealed_otherwise(text, text, text, uuid, int) is
  'Texts of a column that another key than this sealed, or that are bound to no row, from a row on.';

create function app_private.seal_anew(relation text, name text, texts jsonb) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  place app_private.sealed_columns;
  amount int;
begin
  select c.* into strict place from app_private.sealed_columns c
    where c.relation = seal_anew.relation and c.name = seal_anew.name;
  -- A secret that changed meanwhile was sealed with the current key.
  execute format(
    'update %3$s t set %2$I = n.sealed from jsonb_to_recordset($1) n (id uuid, former text, sealed text) where t.%1$I '
    '= n.id and t.%2$I = n.former',
    place.key, place.name, place.relation) using texts;
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.seal_anew(text, text, jsonb) is
  'Replaces texts with resealed ones; returns how many.';

create function app_private.note_bound(relation text, name text) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  place app_private.sealed_columns;
  amount int;
begin
  select c.* into strict place from app_private.sealed_columns c
    where c.relation = note_bound.relation and c.name = note_bound.name;
  execute format('select count(*) from %s where not starts_with(%I, ''v2:'')', place.relation, place.name) into amount;
  if amount = 0 then
    insert into app_private.bound_columns (relation, name) values (place.relation, place.name) on conflict do nothing;
  end if;
  return amount;
end $$;
comment on function app_private.note_bound(text, text) is
  'How many texts of a column are bound to no row; remembers since when there is none.';

create function app_private.unbound_columns() returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.relation || '.' || c.name from app_private.sealed_columns c
  where not exists (select from app_private.bound_columns b where b.relation = c.relation and b.name = c.name
    -- For how long processes of an earlier version may run beside those of this one.
    and b.since < now() - interval '1 day')
$$;
comment on function app_private.unbound_columns() is
  'Columns of which a process that starts opens texts that are bound to no row, as earlier versions left them.';
grant execute on function app_private.unbound_columns to plat_authenticator;

create function app_private.seeded_id(seed text) returns uuid
language sql immutable strict as $$
  select (left(seed, 12) || '7' || left(h, 3) || '8' || substr(h, 4, 15))::uuid
  from encode(sha256(convert_to(seed, 'UTF8')), 'hex') h
$$;
comment on function app_private.seeded_id(text) is
  'The id of a row whose secret is sealed before the row is made. The milliseconds of the time, in 12 hexadecimal '
  'digits, begin the seed. The rest is hashed, since nobody finds a seed for an id: so none learns whether a row has '
  'it.';
grant execute on function app_private.sealed_places, app_private.seal_anew, app_private.sealed_otherwise,
  app_private.note_bound to plat_worker;
