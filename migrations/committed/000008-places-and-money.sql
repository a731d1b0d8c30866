--! Previous: sha1:f435961320eb5826c5a050d1c4c4d18142300774
--! Hash: sha1:658be64cc168b5c337876e5bdb75a6d2b27a1d54
--! Message: places-and-money

-- What the world says: the calling codes of countries (ITU-T E.164) and the digits of currencies (ISO 4217).

create table app_hidden.countries (
  code app_public.country_code primary key,
  calling_code text not null,
  trunk_prefix text
);
alter table app_hidden.countries enable row level security;
create policy everybody on app_hidden.countries for select to plat_user, plat_anonymous, plat_worker using (true);
grant select on app_hidden.countries to plat_user, plat_anonymous, plat_worker;
comment on table app_hidden.countries is 'Countries with their calling code and the prefix that is dialled before national numbers.';
insert into app_hidden.countries (code, calling_code, trunk_prefix) values
  ('AC', '247', null), ('AD', '376', null), ('AE', '971', '0'), ('AF', '93', '0'), ('AG', '1', '1'), ('AI', '1', '1'),
  ('AL', '355', '0'), ('AM', '374', '0'), ('AO', '244', null), ('AR', '54', '0'), ('AS', '1', '1'), ('AT', '43', '0'),
  ('AU', '61', '0'), ('AW', '297', null), ('AX', '358', '0'), ('AZ', '994', '0'), ('BA', '387', '0'), ('BB', '1', '1'),
  ('BD', '880', '0'), ('BE', '32', '0'), ('BF', '226', null), ('BG', '359', '0'), ('BH', '973', null), ('BI', '257', null),
  ('BJ', '229', null), ('BL', '590', '0'), ('BM', '1', '1'), ('BN', '673', null), ('BO', '591', '0'), ('BQ', '599', null),
  ('BR', '55', '0'), ('BS', '1', '1'), ('BT', '975', null), ('BW', '267', null), ('BY', '375', '8'), ('BZ', '501', null),
  ('CA', '1', '1'), ('CC', '61', '0'), ('CD', '243', '0'), ('CF', '236', null), ('CG', '242', null), ('CH', '41', '0'),
  ('CI', '225', null), ('CK', '682', null), ('CL', '56', null), ('CM', '237', null), ('CN', '86', '0'), ('CO', '57', '0'),
  ('CR', '506', null), ('CU', '53', '0'), ('CV', '238', null), ('CW', '599', null), ('CX', '61', '0'), ('CY', '357', null),
  ('CZ', '420', null), ('DE', '49', '0'), ('DJ', '253', null), ('DK', '45', null), ('DM', '1', '1'), ('DO', '1', '1'),
  ('DZ', '213', '0'), ('EC', '593', '0'), ('EE', '372', null), ('EG', '20', '0'), ('EH', '212', '0'), ('ER', '291', '0'),
  ('ES', '34', null), ('ET', '251', '0'), ('FI', '358', '0'), ('FJ', '679', null), ('FK', '500', null), ('FM', '691', null),
  ('FO', '298', null), ('FR', '33', '0'), ('GA', '241', null), ('GB', '44', '0'), ('GD', '1', '1'), ('GE', '995', '0'),
  ('GF', '594', '0'), ('GG', '44', '0'), ('GH', '233', '0'), ('GI', '350', null), ('GL', '299', null), ('GM', '220', null),
  ('GN', '224', null), ('GP', '590', '0'), ('GQ', '240', null), ('GR', '30', null), ('GT', '502', null), ('GU', '1', '1'),
  ('GW', '245', null), ('GY', '592', null), ('HK', '852', null), ('HN', '504', null), ('HR', '385', '0'), ('HT', '509', null),
  ('HU', '36', '06'), ('ID', '62', '0'), ('IE', '353', '0'), ('IL', '972', '0'), ('IM', '44', '0'), ('IN', '91', '0'),
  ('IO', '246', null), ('IQ', '964', '0'), ('IR', '98', '0'), ('IS', '354', null), ('IT', '39', null), ('JE', '44', '0'),
  ('JM', '1', '1'), ('JO', '962', '0'), ('JP', '81', '0'), ('KE', '254', '0'), ('KG', '996', '0'), ('KH', '855', '0'),
  ('KI', '686', '0'), ('KM', '269', null), ('KN', '1', '1'), ('KP', '850', '0'), ('KR', '82', '0'), ('KW', '965', null),
  ('KY', '1', '1'), ('KZ', '7', '8'), ('LA', '856', '0'), ('LB', '961', '0'), ('LC', '1', '1'), ('LI', '423', '0'),
  ('LK', '94', '0'), ('LR', '231', '0'), ('LS', '266', null), ('LT', '370', '0'), ('LU', '352', null), ('LV', '371', null),
  ('LY', '218', '0'), ('MA', '212', '0'), ('MC', '377', '0'), ('MD', '373', '0'), ('ME', '382', '0'), ('MF', '590', '0'),
  ('MG', '261', '0'), ('MH', '692', '1'), ('MK', '389', '0'), ('ML', '223', null), ('MM', '95', '0'), ('MN', '976', '0'),
  ('MO', '853', null), ('MP', '1', '1'), ('MQ', '596', '0'), ('MR', '222', null), ('MS', '1', '1'), ('MT', '356', null),
  ('MU', '230', null), ('MV', '960', null), ('MW', '265', '0'), ('MX', '52', null), ('MY', '60', '0'), ('MZ', '258', null),
  ('NA', '264', '0'), ('NC', '687', null), ('NE', '227', null), ('NF', '672', null), ('NG', '234', '0'), ('NI', '505', null),
  ('NL', '31', '0'), ('NO', '47', null), ('NP', '977', '0'), ('NR', '674', null), ('NU', '683', null), ('NZ', '64', '0'),
  ('OM', '968', null), ('PA', '507', null), ('PE', '51', '0'), ('PF', '689', null), ('PG', '675', null), ('PH', '63', '0'),
  ('PK', '92', '0'), ('PL', '48', null), ('PM', '508', '0'), ('PR', '1', '1'), ('PS', '970', '0'), ('PT', '351', null),
  ('PW', '680', null), ('PY', '595', '0'), ('QA', '974', null), ('RE', '262', '0'), ('RO', '40', '0'), ('RS', '381', '0'),
  ('RU', '7', '8'), ('RW', '250', '0'), ('SA', '966', '0'), ('SB', '677', null), ('SC', '248', null), ('SD', '249', '0'),
  ('SE', '46', '0'), ('SG', '65', null), ('SH', '290', null), ('SI', '386', '0'), ('SJ', '47', null), ('SK', '421', '0'),
  ('SL', '232', '0'), ('SM', '378', null), ('SN', '221', null), ('SO', '252', '0'), ('SR', '597', null), ('SS', '211', '0'),
  ('ST', '239', null), ('SV', '503', null), ('SX', '1', '1'), ('SY', '963', '0'), ('SZ', '268', null), ('TA', '290', null),
  ('TC', '1', '1'), ('TD', '235', null), ('TG', '228', null), ('TH', '66', '0'), ('TJ', '992', null), ('TK', '690', null),
  ('TL', '670', null), ('TM', '993', '8'), ('TN', '216', null), ('TO', '676', null), ('TR', '90', '0'), ('TT', '1', '1'),
  ('TV', '688', null), ('TW', '886', '0'), ('TZ', '255', '0'), ('UA', '380', '0'), ('UG', '256', '0'), ('US', '1', '1'),
  ('UY', '598', '0'), ('UZ', '998', null), ('VA', '39', null), ('VC', '1', '1'), ('VE', '58', '0'), ('VG', '1', '1'),
  ('VI', '1', '1'), ('VN', '84', '0'), ('VU', '678', null), ('WF', '681', null), ('WS', '685', null), ('XK', '383', '0'),
  ('YE', '967', '0'), ('YT', '262', '0'), ('ZA', '27', '0'), ('ZM', '260', '0'), ('ZW', '263', '0');

create function app_hidden.complete_address(address app_public.address, country text) returns app_public.address
language plpgsql stable as $$
begin
  if address is not distinct from null or to_jsonb(address) = jsonb_build_object() or num_nonnulls(address.thoroughfare, address.premise,
      address.locality, address.administrative_area, address.postal_code, address.country, address.latitude, address.longitude) = 0 then
    return null;
  end if;
  address.country := coalesce(address.country, complete_address.country, 'US');
  if not exists (select from app_hidden.countries c where c.code = address.country) then
    perform app_hidden.fail('BAD_USER_INPUT', 'This country is unknown; give a code of ISO 3166-1, such as CA.', '{"field": "address"}');
  end if;
  return address;
end $$;
comment on function app_hidden.complete_address(app_public.address, text) is
  'An address with its country, the given one where it has none; null for one without anything; an unknown country is refused.';

create table app_hidden.currencies (
  code app_public.currency_code primary key,
  digits int not null
);
alter table app_hidden.currencies enable row level security;
create policy everybody on app_hidden.currencies for select to plat_user, plat_anonymous, plat_worker using (true);
grant select on app_hidden.currencies to plat_user, plat_anonymous, plat_worker;
comment on table app_hidden.currencies is 'Currencies with the number of digits after the point.';
insert into app_hidden.currencies (code, digits) values
  ('AED', 2), ('AFN', 0), ('ALL', 0), ('AMD', 2), ('ANG', 2), ('AOA', 2), ('ARS', 2), ('AUD', 2), ('AWG', 2), ('AZN', 2),
  ('BAM', 2), ('BBD', 2), ('BDT', 2), ('BGN', 2), ('BHD', 3), ('BIF', 0), ('BMD', 2), ('BND', 2), ('BOB', 2), ('BRL', 2),
  ('BSD', 2), ('BTN', 2), ('BWP', 2), ('BYN', 2), ('BZD', 2), ('CAD', 2), ('CDF', 2), ('CHF', 2), ('CLP', 0), ('CNY', 2),
  ('COP', 0), ('CRC', 2), ('CUC', 2), ('CUP', 2), ('CVE', 2), ('CZK', 2), ('DJF', 0), ('DKK', 2), ('DOP', 2), ('DZD', 2),
  ('EGP', 2), ('ERN', 2), ('ETB', 2), ('EUR', 2), ('FJD', 2), ('FKP', 2), ('GBP', 2), ('GEL', 2), ('GHS', 2), ('GIP', 2),
  ('GMD', 2), ('GNF', 0), ('GTQ', 2), ('GYD', 2), ('HKD', 2), ('HNL', 2), ('HRK', 2), ('HTG', 2), ('HUF', 0), ('IDR', 0),
  ('ILS', 2), ('INR', 2), ('IQD', 0), ('IRR', 0), ('ISK', 0), ('JMD', 2), ('JOD', 3), ('JPY', 0), ('KES', 2), ('KGS', 2),
  ('KHR', 2), ('KMF', 0), ('KPW', 0), ('KRW', 0), ('KWD', 3), ('KYD', 2), ('KZT', 2), ('LAK', 0), ('LBP', 0), ('LKR', 2),
  ('LRD', 2), ('LSL', 2), ('LYD', 3), ('MAD', 2), ('MDL', 2), ('MGA', 0), ('MKD', 2), ('MMK', 0), ('MNT', 2), ('MOP', 2),
  ('MRU', 2), ('MUR', 2), ('MVR', 2), ('MWK', 2), ('MXN', 2), ('MYR', 2), ('MZN', 2), ('NAD', 2), ('NGN', 2), ('NIO', 2),
  ('NOK', 2), ('NPR', 2), ('NZD', 2), ('OMR', 3), ('PAB', 2), ('PEN', 2), ('PGK', 2), ('PHP', 2), ('PKR', 0), ('PLN', 2),
  ('PYG', 0), ('QAR', 2), ('RON', 2), ('RSD', 2), ('RUB', 2), ('RWF', 0), ('SAR', 2), ('SBD', 2), ('SCR', 2), ('SDG', 2),
  ('SEK', 2), ('SGD', 2), ('SHP', 2), ('SLE', 2), ('SLL', 0), ('SOS', 0), ('SRD', 2), ('SSP', 2), ('STN', 2), ('SVC', 2),
  ('SYP', 0), ('SZL', 2), ('THB', 2), ('TJS', 2), ('TMT', 2), ('TND', 3), ('TOP', 2), ('TRY', 2), ('TTD', 2), ('TWD', 2),
  ('TZS', 2), ('UAH', 2), ('UGX', 0), ('USD', 2), ('UYU', 2), ('UZS', 2), ('VES', 2), ('VND', 0), ('VUV', 0), ('WST', 2),
  ('XAF', 0), ('XCD', 2), ('XCG', 2), ('XDR', 2), ('XOF', 0), ('XPF', 0), ('XSU', 2), ('YER', 0), ('ZAR', 2), ('ZMW', 2),
  ('ZWG', 2), ('ZWL', 2);

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
      perform app_hidden.fail('BAD_USER_INPUT', 'Give the phone number with its country code, such as +1 416 555 0123.',
        jsonb_build_object('field', field));
    end if;
    if plan.trunk_prefix is not null and digits like plan.trunk_prefix || '%' and length(digits) > 7 then
      digits := substr(digits, length(plan.trunk_prefix) + 1);
    end if;
    digits := '+' || plan.calling_code || digits;
  end if;
  if digits !~ '^\+[1-9][0-9]{6,14}$' then
    perform app_hidden.fail('BAD_USER_INPUT', 'This is no phone number; give one such as +1 416 555 0123.', jsonb_build_object('field', field));
  end if;
  return digits;
end $$;
comment on function app_hidden.to_e164(text, text, text) is 'A phone number as E.164; one without a country code belongs to the country.';

create function app_hidden.to_money(amount numeric, currency text, field text) returns numeric
language plpgsql stable as $$
declare
  digits int := coalesce((select c.digits from app_hidden.currencies c where c.code = currency), 2);
begin
  if amount <> round(amount, digits) then
    perform app_hidden.fail('BAD_USER_INPUT', format('%s has %s digits after the point at most.', currency, digits), jsonb_build_object('field', field));
  end if;
  return round(amount, digits);
end $$;
comment on function app_hidden.to_money(numeric, text, text) is 'An amount with exactly the digits of its currency; one with more is refused.';
