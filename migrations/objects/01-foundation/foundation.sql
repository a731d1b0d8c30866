-- Foundations: schemas and access to them, the viewer of a request, coded errors, scalar types, and the constructor of
-- enumerations.

comment on function app_public.current_user_id() is $$
@behavior -*

The user of the token in use, or null.$$;
grant execute on function app_public.current_user_id() to plat_user, plat_anonymous;

comment on table app_private.error_codes is 'The codes that extensions.code of an error may have.';

create function app_hidden.fail(code text, message text, details jsonb default '{}') returns void
language plpgsql volatile as $$
begin
  raise exception using
    errcode = 'PLAT0',
    message = message,
    detail = jsonb_build_object('code', code) || details;
end $$;
comment on function app_hidden.fail(text, text, jsonb) is
  'Ends the statement with a coded error for the caller; details become members of extensions.';

create function app_hidden.require_viewer() returns uuid
language plpgsql stable as $$
begin
  if app_public.current_user_id() is null then
    perform app_hidden.fail('UNAUTHENTICATED', 'Sign in first: send the header "Authorization: Bearer <token>".');
  end if;
  return app_public.current_user_id();
end $$;
comment on function app_hidden.require_viewer() is 'The user of the token in use; refuses a request without one.';

create function app_private.is_dry_run() returns boolean
language sql stable parallel safe as $$ select coalesce(app_hidden.setting('dry_run'), '') = 'on' $$;
comment on function app_private.is_dry_run() is
  'Whether the service rolls the transaction back in any case, once it has read what the transaction did.';

create function app_hidden.camel(name text) returns text
language sql immutable strict parallel safe as $$
  -- PERF: one expression, which PostgreSQL puts in the place of the call.
  select split_part(name, '_', 1) || replace(initcap(substr(name, length(split_part(name, '_', 1)) + 1)), '_', '')
$$;
comment on function app_hidden.camel(text) is 'The name of a column as the API spells it.';

comment on function app_private.create_enum(text, text[]) is
  'Creates the enumeration app_public.<name> with these values; describe_enum documents it.';

comment on function app_private.create_enum(text, text, text[]) is
  'Creates an enumeration from pairs of value and description, for old migrations; describe_enum replaces the texts.';

comment on function app_private.add_enum_values(text, text[]) is
  'Adds values to an enumeration; describe_enum documents them.';

create function app_private.describe_enum(
  name text, description text, value_list text[], not_available text[] default '{}') returns void
language plpgsql volatile as $$
declare
  type_name text := replace(initcap(replace(name, '_', ' ')), ' ', '');
  described text[] := array(select value_list[i][1] from generate_subscripts(value_list, 1) i);
  declared text[];
begin
  execute format('select array_agg(value) from app_public.%I', name || '_values') into declared;
  if not (declared @> described and described @> declared) then
    raise exception 'The enumeration % has the values %, but describe_enum describes %.', name, declared, described;
  elsif not (declared @> not_available) then
    raise exception 'The enumeration % has the values %, but describe_enum declares % as not available.',
      name, declared, not_available;
  end if;
  execute format('comment on table app_public.%I is %L', name || '_values',
    E'@enum\n@enumName ' || type_name || E'\n' || case when not_available <> '{}'
      then '@notAvailable ' || array_to_string(not_available, ' ') || E'\n' else '' end || E'\n' || description);
  execute format('comment on domain app_public.%I is %L', name, E'@enum ' || name || E'_values\n\n' || description);
  execute format('update app_public.%I v set description = $1[i][2] from generate_subscripts($1, 1) i
      where v.value = $1[i][1]', name || '_values')
    using value_list;
end $$;
comment on function app_private.describe_enum(text, text, text[], text[]) is
  'Documents an enumeration and each of its values; refuses a list that lacks a value or has another one. Values that '
  'are declared as not available are refused elsewhere, and error messages do not suggest them.';

comment on domain app_public.email_address is
  E'@scalar EmailAddress\n\nAn email address, such as ada@example.com. Case is ignored; stored in lower case.';

comment on constraint email_address_format on domain app_public.email_address is
  'Not a valid email address; use one such as ada@example.com.';

comment on domain app_public.phone_number is
  E'@scalar PhoneNumber\n\n'
  'A phone number, stored as E.164 (+14165550123). A number without a country code gets the country of its project.';

comment on constraint phone_number_format on domain app_public.phone_number is
  'Not a valid phone number; use digits with the country code, such as +1 416 555 0123.';

comment on domain app_public.currency_code is E'@scalar CurrencyCode\n\nA currency by ISO 4217, such as USD.';

comment on constraint currency_code_format on domain app_public.currency_code is
  'Not a valid currency code; use three letters of ISO 4217, such as USD.';

comment on domain app_public.country_code is E'@scalar CountryCode\n\nA country by ISO 3166-1, such as CA.';

comment on constraint country_code_format on domain app_public.country_code is
  'Not a valid country code; use two letters of ISO 3166-1, such as CA.';

comment on domain app_public.language_code is E'@scalar LanguageCode\n\nA language by BCP 47, such as en or fr-CA.';

comment on constraint language_code_format on domain app_public.language_code is
  'Not a valid language code; use one of BCP 47, such as en or fr-CA.';

comment on domain app_public.url is E'@scalar URL\n\nAn absolute address that starts with https:// or http://.';

comment on constraint url_format on domain app_public.url is
  'Not a valid URL; use one that starts with https:// and has no spaces.';

comment on domain app_public.id_or_slug is E'@scalar ID\n\nThe id of a record, or its slug.';

comment on domain app_public.slug is
  'A readable name in addresses: lower-case letters and digits joined by single hyphens.';

comment on constraint slug_format on domain app_public.slug is
  'A slug has lower-case letters, digits and single hyphens, at most 100 characters, and does not look like an id.';

comment on domain app_public.short_text is 'One line of text: 1 to 300 characters without space around.';

comment on constraint short_text_length on domain app_public.short_text is 'Must have 1 to 300 characters.';

comment on domain app_public.long_text is 'A longer text: 1 to 20,000 characters without space around.';

comment on constraint long_text_length on domain app_public.long_text is 'Must have 1 to 20,000 characters.';

comment on domain app_public.tags is 'Free-form tags, 50 at most.';

comment on constraint tags_size on domain app_public.tags is
  'Use at most 50 tags, with at most 2,500 characters in total.';

comment on domain app_public.money is
  E'@measures quantity\n\nAn amount of money, zero or more, in the currency of its record.';

comment on constraint money_range on domain app_public.money is 'The amount must be between 0 and 999,999,999,999.';

comment on domain app_public.time_zone is 'A time zone of the IANA database, such as America/Toronto.';

comment on constraint time_zone_known on domain app_public.time_zone is
  'This time zone is unknown; use a name of the IANA database, such as America/Toronto.';

comment on type app_public.address is 'A postal address.';

comment on column app_public.address.thoroughfare is 'Street and number.';
comment on column app_public.address.premise is 'Apartment or suite.';
comment on column app_public.address.locality is 'City.';
comment on column app_public.address.administrative_area is 'State or province.';
comment on column app_public.address.postal_code is 'Postal code in the format of the country, such as M5V 2T6.';
comment on column app_public.address.country is
  E'@notNull\n\nCountry. Default: the one of the project or organization.';
comment on column app_public.address.latitude is E'@behavior -insert -update\n\nDegrees north.';
comment on column app_public.address.longitude is E'@behavior -insert -update\n\nDegrees east.';
