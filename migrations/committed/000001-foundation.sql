--! Previous: -
--! Hash: sha1:428f1f9443f9ae00f78101b2e1e07490ec817893
--! Message: foundation

-- Schemas, who may use them, the codes of errors, the maker of enumerations, and the scalar types.

create extension if not exists pg_trgm;
create extension if not exists unaccent;
create extension if not exists pgcrypto;
create extension if not exists btree_gist;
create extension if not exists btree_gin;

create schema app_public;  -- what GraphQL shows
create schema app_hidden;  -- used by it, not shown
create schema app_private; -- secrets and internals

comment on schema app_public is 'Everything the API shows.';
comment on schema app_hidden is 'Helpers that policies and functions of the API call; not shown.';
comment on schema app_private is 'Secrets and internals; out of reach for the roles of the API.';

grant usage on schema app_public, app_hidden to plat_user, plat_anonymous, plat_worker;
grant usage on schema app_private to plat_authenticator, plat_worker;

-- A function is callable only where it is granted, except the helpers of app_hidden.
alter default privileges revoke execute on functions from public;
alter default privileges in schema app_hidden grant execute on functions to plat_user, plat_anonymous, plat_worker;

-- Who is asking: settings of the transaction, sent by the API with every statement.
create function app_hidden.setting(name text) returns text
language sql stable parallel safe as $$
  -- A pooled connection reads '' instead of null once a setting was used on it.
  select nullif(current_setting('plat.' || name, true), '')
$$;

create function app_public.current_user_id() returns uuid
language sql stable parallel safe as $$
  select nullif(current_setting('plat.user_id', true), '')::uuid
$$;

-- Enumerations: a lookup table that says which values exist and what they mean, and a domain that columns and
-- arguments use. The domain is over text, so that its comparisons are leakproof and indexes work under row security.
create function app_private.create_enum(name text, description text, value_list text[]) returns void
language plpgsql volatile as $$
declare
  type_name text := replace(initcap(replace(name, '_', ' ')), ' ', '');
begin
  execute format('create table app_public.%I (value text primary key, description text not null)', name || '_values');
  execute format('alter table app_public.%I enable row level security', name || '_values');
  execute format('create policy everybody on app_public.%I for select to plat_user, plat_anonymous, plat_worker using '
    '(true)', name || '_values');
  execute format('grant select on app_public.%I to plat_user, plat_anonymous, plat_worker', name || '_values');
  execute format('comment on table app_public.%I is %L', name || '_values',
    E'@enum\n@enumName ' || type_name || E'\n\n' || description);
  execute format('create domain app_public.%I as text', name);
  execute format('comment on domain app_public.%I is %L', name,
    E'@enum ' || name || E'_values\n\n' || description);
  perform app_private.add_enum_values(name, value_list);
end $$;

create function app_private.add_enum_values(name text, value_list text[]) returns void
language plpgsql volatile as $$
declare
  all_values text;
begin
  execute format('insert into app_public.%I (value, description) select v[1], v[2] from (
      select array[$1[i][1], $1[i][2]] as v from generate_subscripts($1, 1) i) pairs', name || '_values')
    using value_list;
  execute format('select string_agg(quote_literal(value), '', '') from app_public.%I', name || '_values')
    into all_values;
  execute format('alter domain app_public.%I drop constraint if exists %I', name, name || '_value');
  execute format('alter domain app_public.%I add constraint %I check (value in (%s))', name, name || '_value',
    all_values);
end $$;

create function app_hidden.is_time_zone(name text) returns boolean
language plpgsql immutable strict parallel safe as $$
begin
  -- Names only ("America/Toronto", "UTC"): offsets such as "+3" are read with the opposite sign by POSIX.
  if name !~ '^[A-Za-z][A-Za-z0-9_+/-]*$' then return false; end if;
  perform timezone(name, timestamptz 'epoch');
  return true;
exception when invalid_parameter_value then
  return false;
end $$;

-- Errors for the caller: one SQLSTATE, the code and its details as JSON in DETAIL.
create table app_private.error_codes (
  code text primary key,
  description text not null
);
alter table app_private.error_codes enable row level security;

insert into app_private.error_codes (code, description) values
  ('UNAUTHENTICATED', 'The token is missing, unknown, expired or revoked, or the name and password do not match.'),
  ('FORBIDDEN', 'The viewer may see the record but not do that.'),
  ('NOT_FOUND', 'The record of a mutation does not exist for this viewer.'),
  ('BAD_USER_INPUT', 'A value that cannot be: format, range, missing, both of two.'),
  ('CONFLICT', 'Refused because of what depends on it or already stands.'),
  ('INVALID_TRANSITION', 'The state machine has no such step from here.'),
  ('INVENTORY_UNAVAILABLE', 'The unit or lot is claimed.'),
  ('VERSION_MISMATCH', 'The record was changed by somebody else meanwhile.'),
  ('IDEMPOTENCY_MISMATCH', 'The idempotency key was used with another body.'),
  ('LIMIT_EXCEEDED', 'A list, the depth or the cost of a query is over its limit.'),
  ('PAYLOAD_TOO_LARGE', 'The body of the request is over its limit.'),
  ('UNSUPPORTED_FILE', 'The content of the file is of no accepted type.'),
  ('RATE_LIMITED', 'Too many tries; wait retryAfterSeconds.'),
  ('PROJECT_ARCHIVED', 'A write in an archived project.'),
  ('PROVIDER_ERROR', 'An outside party failed: payment processor, mail server or other.'),
  ('INTERNAL', 'A fault of the service; logged with the request id.');

-- Scalars. The comment of a constraint is what the caller reads when it refuses a value.
create domain app_public.email_address as text
  constraint email_address_format check (
    length(value) <= 254
    and value ~ '^[^\s@"<>(),;:\\\[\]]+@[^\s@"<>(),;:\\\[\]]+\.[^\s@"<>(),;:\\\[\]]{2,}$'
  );

create domain app_public.phone_number as text
  constraint phone_number_format check (value ~ '^\+?[0-9 ().\-/]{4,30}$');

create domain app_public.currency_code as text
  constraint currency_code_format check (value ~ '^[A-Z]{3}$');

create domain app_public.country_code as text
  constraint country_code_format check (value ~ '^[A-Z]{2}$');

create domain app_public.language_code as text
  constraint language_code_format check (value ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$');

create domain app_public.url as text
  constraint url_format check (length(value) <= 2048 and value ~ '^https?://[^\s/$.?#][^\s<>"]*$');

create domain app_public.id_or_slug as text;

create domain app_public.slug as text
  constraint slug_format check (
    length(value) <= 100
    and value ~ '^[a-z0-9]+(-[a-z0-9]+)*$'
    and value !~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
  );

create domain app_public.short_text as text
  constraint short_text_length check (length(value) between 1 and 300 and value = btrim(value));

create domain app_public.long_text as text
  constraint long_text_length check (length(value) between 1 and 20000 and value = btrim(value));

create domain app_public.tags as text[]
  constraint tags_size check (
    cardinality(value) <= 50 and array_position(value, null) is null and length(array_to_string(value, '')) <= 2500
  );

create domain app_public.money as numeric
  constraint money_range check (value between 0 and 999999999999);

create domain app_public.time_zone as text
  constraint time_zone_known check (app_hidden.is_time_zone(value));

create type app_public.address as (
  thoroughfare app_public.short_text,
  premise app_public.short_text,
  locality app_public.short_text,
  administrative_area app_public.short_text,
  postal_code app_public.short_text,
  country app_public.country_code,
  latitude double precision,
  longitude double precision
);
