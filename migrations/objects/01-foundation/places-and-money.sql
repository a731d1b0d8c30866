-- Reference data: the calling codes of countries (ITU-T E.164) and the decimal digits of currencies (ISO 4217).

create policy everybody on app_hidden.countries for select to plat_user, plat_anonymous using (true);

grant select on app_hidden.countries to plat_user, plat_anonymous;

comment on table app_hidden.countries is
  'Countries with their calling code and the prefix that is dialled before national numbers.';

create function app_hidden.complete_address(address app_public.address, country text) returns app_public.address
language plpgsql stable as $$
begin
  if address is not distinct from null or to_jsonb(address) = jsonb_build_object()
    or num_nonnulls(address.thoroughfare, address.premise,
      address.locality, address.administrative_area, address.postal_code, address.country, address.latitude,
        address.longitude) = 0 then
    return null;
  end if;
  address.country := coalesce(address.country, complete_address.country, 'US');
  if not exists (select from app_hidden.countries c where c.code = address.country) then
    perform app_hidden.fail('BAD_USER_INPUT', 'This country is unknown; use an ISO 3166-1 code, such as CA.',
      '{"field": "address"}');
  end if;
  return address;
end $$;
comment on function app_hidden.complete_address(app_public.address, text) is
  'An address with its country, the given one where it has none; null for one without anything; an unknown country is '
  'refused.';

create policy everybody on app_hidden.currencies for select to plat_user, plat_anonymous using (true);

grant select on app_hidden.currencies to plat_user, plat_anonymous;

comment on table app_hidden.currencies is 'Currencies with the number of digits after the point.';

create function app_hidden.to_e164(phone text, country text, field text default 'phone') returns text
language plpgsql stable as $$
declare
  digits text := regexp_replace(phone, '[^0-9+]', '', 'g');
  plan record;
begin
  if phone is null then
    return null;
  end if;
  if digits like '00%' then
    digits := '+' || substr(digits, 3);
  end if;
  if digits not like '+%' then
    select * into plan from app_hidden.countries c where c.code = country;
    if plan is null then
      perform app_hidden.fail('BAD_USER_INPUT',
        'Specify the phone number with its country code, such as +1 416 555 0123.',
        jsonb_build_object('field', field));
    end if;
    if plan.trunk_prefix is not null and digits like plan.trunk_prefix || '%' and length(digits) > 7 then
      digits := substr(digits, length(plan.trunk_prefix) + 1);
    end if;
    digits := '+' || plan.calling_code || digits;
  end if;
  if digits !~ '^\+[1-9][0-9]{6,14}$' then
    perform app_hidden.fail('BAD_USER_INPUT', 'Not a valid phone number; use one such as +1 416 555 0123.',
      jsonb_build_object('field', field));
  end if;
  return digits;
end $$;
comment on function app_hidden.to_e164(text, text, text) is
  'A phone number as E.164; one without a country code belongs to the country.';

create function app_hidden.to_money(amount numeric, currency text, field text) returns numeric
language plpgsql stable as $$
declare
  digits int := coalesce((select c.digits from app_hidden.currencies c where c.code = currency), 2);
begin
  if amount <> round(amount, digits) then
    perform app_hidden.fail('BAD_USER_INPUT', format('%s can have at most %s decimal places.', currency, digits),
      jsonb_build_object('field', field));
  end if;
  return round(amount, digits);
end $$;
comment on function app_hidden.to_money(numeric, text, text) is
  'An amount with exactly the digits of its currency; one with more is refused.';

revoke execute on function app_hidden.complete_address, app_hidden.to_e164 from plat_anonymous;
revoke execute on function app_hidden.to_money from plat_user, plat_anonymous;
