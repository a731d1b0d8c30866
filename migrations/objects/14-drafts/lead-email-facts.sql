-- The facts that a mail to a lead may state, from the lead's own records, read with the rights of the requester, so
-- that policies and masks apply. A fact has its record and field, and a value that a text can be checked against. What
-- a mail does not need is not included: no address, number or birthday of anybody, no other lead, no price that is not
-- public.

create function app_hidden.fact(statement text, subject_type text, subject_id uuid, field text, kind text, value text,
  more jsonb default '{}') returns jsonb
language sql immutable as $$
  select case when value is not null then jsonb_strip_nulls(jsonb_build_object('statement', statement, 'subjectType',
    subject_type, 'subjectId', subject_id,
    'field', field, 'kind', kind, 'value', value) || more) end
$$;
comment on function app_hidden.fact(text, text, uuid, text, text, text, jsonb) is
  'A fact: what it says, its record and field, its kind (person, name, place, link, unit, money, percent, count, time, '
  'month, state, or choice: why these homes) and its value; null without a value.';

create function app_hidden.address_line(address app_public.address) returns text
language sql immutable as $$
  select nullif(concat_ws(', ', address.thoroughfare, address.premise, address.locality,
    nullif(concat_ws(' ', address.administrative_area, address.postal_code), '')), '')
$$;
comment on function app_hidden.address_line(app_public.address) is 'A postal address on one line, without its country.';

create function app_hidden.spoken_time(at timestamptz, time_zone text) returns text
language sql stable as $$ select to_char(at at time zone time_zone, 'FMDay, FMDD FMMonth YYYY, HH24:MI') $$;

create function app_hidden.without_contacts(value text, most int) returns text
language sql immutable as $$
  -- A note must not reveal contact data of others.
  select left(regexp_replace(regexp_replace(regexp_replace(btrim(value),
    '[^\s@]+@[^\s@]+', '[address]', 'g'), '(https?://|www\.)\S+', '[link]', 'gi'), '\+?[0-9][0-9 ()./-]{5,}[0-9]',
      '[number]', 'g'), most)
$$;
comment on function app_hidden.without_contacts(text, int) is
  'A text without email addresses, links, phone numbers and dates, truncated to the given length.';

create function app_hidden.bedrooms_in(words text) returns int[]
language sql immutable as $$
  with read as (
    select app_hidden.fold(words) as text,
      '([0-9]|one|two|three|four|five)' as number,
      '(?:br|bd|bdr|bdrms?|beds?|bedrooms?|chambres?|dormitorios?|habitacion(?:es)?|schlafzimmer)' as rooms,
      '(?:studios?|bachelors?|estudios?)\M' as studio
  ), found as (
    -- 2br, 2-3 beds, 3+ bedrooms, two or three bedrooms, 2+den bed
    select m[1] as lowest, coalesce(m[2], m[1]) as highest, m[3] is not null as or_more
    from read r, regexp_matches(r.text, '\m' || r.number || '(?:\s*\+\s*(?:1|den))?\s*'
      || '(?:(?:-|–|/|to|or|and|a|ou|bis|oder|o|y)\s*' || r.number || '\s*)?'
      || '(\+|plus|or more|ou plus|o mas|oder mehr)?\s*-?\s*' || r.rooms || '\M', 'g') m
  )
  select array(
    select distinct n from (
      select 0 as n from read r where r.text ~ ('\m' || r.studio)
        and r.text !~ ('\m(?:no|not|never|without|pas de|sin|keine?|ohne)\s+(?:an?\s+|any\s+)?' || r.studio)
      union all
      select generate_series(app_hidden.small_number(f.lowest), case when f.or_more then 9
        else app_hidden.small_number(f.highest) end) from found f) wanted
    order by n)
$$;
comment on function app_hidden.bedrooms_in(text) is
  'How many bedrooms somebody looks for by their words, such as 2br, 2-3 beds, 3+ bedrooms, studio: each number that '
  'fits, 0 for a studio; none where the words say nothing of it.';

create function app_hidden.small_number(word text) returns int
language sql immutable as $$
  select coalesce(array_position(array['one', 'two', 'three', 'four', 'five'], word),
    case when word ~ '^[0-9]$' then word::int end)
$$;
comment on function app_hidden.small_number(text) is 'A digit, or a number from one to five as an English word.';

create function app_hidden.lead_words(lead app_public.leads)
returns table (subject_type text, subject_id uuid, field text, words text)
language sql stable as $$
  select 'lead', (lead).id, 'tags', array_to_string((lead).tags::text[], ', ') where (lead).tags <> '{}'
  union all
  (select 'lead_note', n.id, 'text', n.text from app_public.lead_notes n where n.lead_id = (lead).id
    and n.visibility = 'TEAM' and n.deleted_at is null order by n.id desc limit 5)
  union all
  (select 'contact_message', m.id, 'text', m.text from app_public.project_contact_messages m
    where m.lead_id = (lead).id and m.text is not null order by m.id desc limit 2)
$$;
comment on function app_hidden.lead_words(app_public.leads) is
  'What is written of what a lead looks for: tags, the last notes that the whole team reads, the last messages. What '
  'comes first counts most.';

create function app_hidden.lead_units_at_hand(lead app_public.leads) returns uuid[]
language sql stable as $$
  select array(
    select i.unit_id from (
      select r.unit_id, 1 as rank, r.id from app_public.reservations r
        where r.lead_id = (lead).id and r.unit_id is not null and r.status in ('PENDING', 'CONFIRMED')
          and r.deleted_at is null
      union all
      select n.unit_id, 2, n.id from app_public.negotiations n where n.lead_id = (lead).id
        and n.status in ('OPEN', 'ACTIVE') and n.deleted_at is null) i
    group by i.unit_id order by min(i.rank), max(i.id::text) desc limit 3)
$$;
comment on function app_hidden.lead_units_at_hand(app_public.leads) is
  'The units that a lead has reserved or negotiates about.';

create function app_hidden.lead_units_for_sale(lead app_public.leads, bedrooms int[]) returns uuid[]
language plpgsql stable as $$
declare
  words text := ' ' || (select string_agg(w.words, E'\n') from app_hidden.lead_words(lead) w) || ' ';
  result uuid[];
begin
  -- Those that are named in words, then those that fit; the cheaper first.
  execute format('select array(select u.id from %s u left join app_public.floor_plans f on f.id = u.floor_plan_id
    cross join lateral (select coalesce(
        position(lower(%2$L || u.number || %2$L) in lower(translate($5, %3$L, %4$L))) > 0
          and u.number ~ ''.{3}|[A-Za-z]'', false) as unit_named,
      coalesce(position(lower(f.title) in lower($5)) > 0 and length(f.title) > 3, false) as plan_named) n
    where u.project_id = $1 and u.status = ''AVAILABLE'' and u.deleted_at is null
      and (n.unit_named or (($2 is null or u.price >= $2) and ($3 is null or u.price <= $3)
        and ($4 = ''{}'' or u.effective_bedrooms = any ($4))))
    order by n.unit_named desc, n.plan_named desc, u.price, u.id limit 3)',
    app_hidden.readable_source('app_public.units'), ' ', E',.;:!?()#"''\n', repeat(' ', 12))
    into result using lead.project_id, lead.budget_min, lead.budget_max, bedrooms, coalesce(words, '');
  return result;
end $$;
comment on function app_hidden.lead_units_for_sale(app_public.leads, int[]) is
  'Up to three units for sale for a lead: those that its tags, notes or messages name by number, else those with so '
  'many bedrooms (any where none are given) within its budget, of a floor plan that is named first.';

create function app_hidden.lead_email_facts(lead app_public.leads) returns jsonb
language plpgsql stable as $$
declare
  project record;
  home record;
  office app_public.sales_offices;
  sender record;
  event record;
  unit record;
  offer record;
  price text;
  facts jsonb[] := '{}';
  wish record;
  units uuid[] := app_hidden.lead_units_at_hand(lead);
  plans uuid[];
begin
  if units = '{}' then
    select w.subject_type, w.subject_id, w.field, app_hidden.bedrooms_in(w.words) as bedrooms into wish
      from app_hidden.lead_words(lead) w where app_hidden.bedrooms_in(w.words) <> '{}' limit 1;
    units := app_hidden.lead_units_for_sale(lead, coalesce(wish.bedrooms, '{}'));
    facts := array[
      app_hidden.fact(format('The homes are chosen by the bedrooms that the lead looks for: %s.',
        replace(array_to_string(wish.bedrooms, ' or '), '0', 'studio')), wish.subject_type, wish.subject_id, wish.field,
        'choice', array_to_string(wish.bedrooms, ','), jsonb_build_object('homes', cardinality(units))),
      case when num_nonnulls(lead.budget_min, lead.budget_max) > 0 then
        app_hidden.fact('The homes are chosen within the budget of the lead.', 'lead', lead.id,
          case when lead.budget_max is not null then 'budgetMax' else 'budgetMin' end, 'choice', 'budget',
          jsonb_build_object('homes', cardinality(units))) end];
  end if;
  plans := array(select u.floor_plan_id from app_public.units u where u.id = any (units)
    and u.floor_plan_id is not null);
  select p.id, p.title, p.address, p.website_url, p.currency, p.time_zone into project
    from app_public.projects p where p.id = lead.project_id;
  select o.id, o.name into home from app_public.organizations o where o.id = lead.organization_id;
  select o.* into office from app_public.sales_offices o where o.project_id = lead.project_id;
  select u.id, u.first_name, u.last_name into sender from app_public.users u where u.id = app_public.current_user_id();
  facts := facts || array[
    -- A name is arbitrary text from a form: digits or special characters exclude it from greetings.
    app_hidden.fact(format('The lead is called %s.', lead.name), 'lead', lead.id, 'name', 'person',
      case when length(lead.name) <= 80 and concat(lead.name, lead.first_name) !~ '[0-9<>@:/\\{}|_=+*^%$#!?;"()\[\]]'
        then coalesce(lead.first_name, (app_hidden.split_name(lead.name)).given, lead.name) end),
    app_hidden.fact(format('The project is called %s.', project.title), 'project', project.id, 'title', 'name',
      project.title),
    app_hidden.fact(format('%s is in %s.', project.title, coalesce(app_hidden.address_line(project.address), '')),
      'project', project.id, 'address', 'place',
      app_hidden.address_line(project.address)),
    app_hidden.fact(format('The website of %s is %s.', project.title, project.website_url), 'project', project.id,
      'websiteUrl', 'link', project.website_url),
    app_hidden.fact(format('The seller is called %s.', home.name), 'organization', home.id, 'name', 'name', home.name),
    app_hidden.fact(format('The mail is from %s.', concat_ws(' ', sender.first_name, sender.last_name)), 'user',
      sender.id, 'fullName', 'person',
      nullif(concat_ws(' ', sender.first_name, sender.last_name), '')),
    app_hidden.fact(format('The sales office is called %s.', office.title), 'sales_office', office.id, 'title', 'name',
      office.title),
    app_hidden.fact(format('The sales office is at %s.', app_hidden.address_line(office.address)), 'sales_office',
      office.id, 'address', 'place',
      app_hidden.address_line(office.address)),
    case when office.by_appointment_only then
      app_hidden.fact('The sales office receives visitors by appointment only.', 'sales_office', office.id,
        'byAppointmentOnly', 'state', 'true') end];

  -- The public part of a price, for every requester.
  price := nullif(app_hidden.lowest_price(project.id), 'infinity')::text;
  facts := facts || app_hidden.fact(format('Homes in %s that are for sale start at %s %s.', project.title,
    project.currency, price), 'project', project.id,
    'abstract.priceMin', 'money', price, jsonb_build_object('currency', project.currency));
  for unit in
    execute format('select u.*, coalesce(u.number, u.title) as label, f.id as plan_id, f.title as plan_title,
      u.estimated_delivery_date as delivery,
      exists (select from app_public.reservations r where r.lead_id = $2 and r.unit_id = u.id
        and r.status in (''PENDING'', ''CONFIRMED'') and r.deleted_at is null) as reserved
    from unnest($1) with ordinality i (id, place) join %s u on u.id = i.id
    left join app_public.floor_plans f on f.id = u.floor_plan_id
    order by i.place', app_hidden.readable_source('app_public.units')) using units, lead.id
  loop
    price := case when unit.status = 'AVAILABLE' then unit.price::text end;
    facts := facts || array[
      app_hidden.fact(case when unit.reserved then format('The lead has reserved unit %s.', unit.label)
          when unit.status = 'AVAILABLE' then format('Unit %s is for sale.', unit.label)
            else format('Unit %s is not for sale now.', unit.label) end,
        'unit', unit.id, 'status', 'unit', unit.label,
        jsonb_build_object('available', unit.status = 'AVAILABLE', 'reserved', unit.reserved, 'priced',
          price is not null)),
      app_hidden.fact(format('Unit %s costs %s %s.', unit.label, unit.currency, price), 'unit', unit.id, 'price',
        'money', price,
        jsonb_build_object('currency', unit.currency, 'unit', unit.label)),
      app_hidden.fact(format('Unit %s has %s bedrooms.', unit.label, unit.effective_bedrooms), 'unit', unit.id,
        'bedrooms', 'count', unit.effective_bedrooms::text,
        jsonb_build_object('unit', unit.label)),
      app_hidden.fact(format('Unit %s has %s baths.', unit.label, unit.effective_baths), 'unit', unit.id, 'baths',
        'count', unit.effective_baths::text,
        jsonb_build_object('unit', unit.label)),
      app_hidden.fact(format('Unit %s has %s square feet.', unit.label, unit.effective_sqft), 'unit', unit.id, 'sqft',
        'count', unit.effective_sqft::text,
        jsonb_build_object('unit', unit.label)),
      app_hidden.fact(format('Unit %s is expected to be handed over in %s.', unit.label,
        to_char(unit.delivery, 'FMMonth YYYY')), 'unit', unit.id,
        'estimatedDeliveryDate', 'month', to_char(unit.delivery, 'YYYY-MM'), jsonb_build_object('unit', unit.label)),
      app_hidden.fact(format('Unit %s is built to the floor plan %s.', unit.label, unit.plan_title), 'floor_plan',
        unit.plan_id, 'title', 'name', unit.plan_title,
        jsonb_build_object('unit', unit.label))];
  end loop;

  for event in
    (select a.id, a.type, a.starts_at, a.time_zone, a.location, a.video_url, 'next' as place
      from app_public.appointments a where a.lead_id = lead.id and a.status in ('SCHEDULED', 'CONFIRMED')
      and a.starts_at > now() and a.deleted_at is null order by a.starts_at limit 1)
    union all
    (select a.id, a.type, a.starts_at, a.time_zone, a.location, a.video_url, 'last'
      from app_public.appointments a where a.lead_id = lead.id and a.status = 'COMPLETED'
      and a.deleted_at is null order by a.starts_at desc limit 1)
  loop
    facts := facts || array[
      app_hidden.fact(format(case event.place when 'next' then 'The lead has an appointment (%s) on %s.'
        else 'The lead was at an appointment (%s) on %s.' end,
          lower(replace(event.type, '_', ' ')), app_hidden.spoken_time(event.starts_at, event.time_zone)),
        'appointment', event.id, 'startsAt', 'time',
          to_char(event.starts_at at time zone event.time_zone, 'YYYY-MM-DD"T"HH24:MI'),
        jsonb_build_object('when', event.place)),
      case when event.place = 'next' then app_hidden.fact(format('The appointment is at %s.', event.location),
        'appointment', event.id, 'location', 'place', event.location) end,
      case when event.place = 'next' then app_hidden.fact(format('The appointment is by video at %s.', event.video_url),
        'appointment', event.id, 'videoUrl', 'link', event.video_url) end];
  end loop;
  select o.* into event from app_public.open_houses o
    where o.project_id = project.id and o.public and o.status = 'SCHEDULED' and o.format <> 'BROKER_PREVIEW'
      and o.starts_at > now() and o.deleted_at is null
    order by o.starts_at limit 1;
  if event.id is not null then
    facts := facts || array[
      app_hidden.fact(format('There is an open house on %s.', app_hidden.spoken_time(event.starts_at, event.time_zone)),
        'open_house', event.id, 'startsAt', 'time',
        to_char(event.starts_at at time zone event.time_zone, 'YYYY-MM-DD"T"HH24:MI')),
      app_hidden.fact(format('The open house ends on %s.', app_hidden.spoken_time(event.ends_at, event.time_zone)),
        'open_house', event.id, 'endsAt', 'time',
        to_char(event.ends_at at time zone event.time_zone, 'YYYY-MM-DD"T"HH24:MI')),
      app_hidden.fact(format('The open house is at %s.', app_hidden.address_line(event.address)), 'open_house',
        event.id, 'address', 'place', app_hidden.address_line(event.address))];
  end if;
  for offer in
    select p.* from app_public.promotions p
    where p.project_id = project.id and p.public and app_public.promotions_status(p) = 'ACTIVE' and p.deleted_at is null
      and (p.applies_to = 'PROJECT' or exists (select from app_hidden.promotion_targets t
        where t.promotion_id = p.id and (t.unit_id = any (units) or t.floor_plan_id = any (plans))))
    order by p.starts_at desc, p.id limit 2
  loop
    facts := facts || array[
      app_hidden.fact(format('There is a promotion: %s (%s).', offer.title, lower(replace(offer.kind, '_', ' '))),
        'promotion', offer.id, 'title', 'name', offer.title),
      app_hidden.fact(format('The promotion %s gives %s %s.', offer.title, project.currency, offer.amount), 'promotion',
        offer.id, 'amount', 'money', offer.amount::text,
        jsonb_build_object('currency', project.currency)),
      app_hidden.fact(format('The promotion %s gives %s %%.', offer.title, offer.percent), 'promotion', offer.id,
        'percent', 'percent', offer.percent::text),
      app_hidden.fact(format('The promotion %s ends on %s.', offer.title,
        app_hidden.spoken_time(offer.ends_at, project.time_zone)), 'promotion', offer.id, 'endsAt', 'time',
        to_char(offer.ends_at at time zone project.time_zone, 'YYYY-MM-DD"T"HH24:MI')),
      app_hidden.fact(format('The code of the promotion %s is %s.', offer.title, offer.code), 'promotion', offer.id,
        'code', 'name', offer.code)];
  end loop;
  facts := facts || app_hidden.fact(format('The last contact with the lead was on %s.',
    app_hidden.spoken_time(lead.last_interaction_at, project.time_zone)), 'lead',
    lead.id, 'lastInteractionAt', 'time',
      to_char(lead.last_interaction_at at time zone project.time_zone, 'YYYY-MM-DD"T"HH24:MI'));
  return (select coalesce(jsonb_agg(f || jsonb_build_object('key', 'f' || n) order by n), '[]')
    from (select f, row_number() over () as n from unnest(array_remove(facts, null)) f) numbered);
end $$;
comment on function app_hidden.lead_email_facts(app_public.leads) is
  'Facts that a mail to the lead may state, as the viewer sees them.';

create function app_hidden.lead_email_quotes(lead app_public.leads) returns jsonb
language sql stable as $$
  select coalesce(jsonb_agg(q.quote order by q.id desc), '[]') from (
    (select m.id, jsonb_build_object('from', 'the lead, over the contact form', 'text',
      app_hidden.without_contacts(m.text, 1000)) as quote
      from app_public.project_contact_messages m where m.lead_id = (lead).id and m.text is not null order by m.id desc
        limit 1)
    union all
    (select (lead).id, jsonb_build_object('from', 'tags that the sales team gave the lead', 'text',
      app_hidden.without_contacts(array_to_string((lead).tags::text[], ', '), 400)) where (lead).tags <> '{}')
    union all
    (select n.id, jsonb_build_object('from', 'a note of the sales team', 'text',
      app_hidden.without_contacts(n.text, 400))
      from app_public.lead_notes n where n.lead_id = (lead).id and n.visibility = 'TEAM' and n.deleted_at is null
        order by n.id desc limit 2)) q
$$;
comment on function app_hidden.lead_email_quotes(app_public.leads) is
  'What the lead wrote last, and the last notes that the whole team reads: words of people, which no statement may '
  'rest on.';

create function app_hidden.lead_email_warnings(lead app_public.leads, facts jsonb) returns text[]
language sql stable as $$
  select array_remove(array[
    case when (lead).email is null then 'The lead has no email address.' end,
    case when not (lead).subscribed
      then 'The lead has not agreed to marketing mail; write only in answer to what they asked.' end,
    case when (lead).is_represented or (lead).agent_id is not null
      then 'An agent represents the lead; write to both, or to the agent.' end,
    case when (lead).status in ('LOST', 'UNQUALIFIED') then 'The lead is ' || (lead).status || '.' end,
    (select format('No public price is known of unit %s.', string_agg(f ->> 'value', ', '))
      from jsonb_array_elements(facts) f
      where f ->> 'kind' = 'unit' and not (f ->> 'priced')::boolean having count(*) > 0),
    (select 'No home for sale fits what the lead looks for: ' || string_agg(case f ->> 'value'
        when 'budget' then 'their budget' when '0' then 'a studio'
        else replace(replace(f ->> 'value', ',', ' or '), '0', 'studio') || ' bedrooms' end, ', ') || '.'
      from jsonb_array_elements(facts) f
      where f ->> 'kind' = 'choice' and (f ->> 'homes')::int = 0 having count(*) > 0)], null)
$$;
comment on function app_hidden.lead_email_warnings(app_public.leads, jsonb) is
  'What to know before writing to the lead.';

revoke execute on function app_hidden.lead_email_warnings from plat_user, plat_anonymous;
