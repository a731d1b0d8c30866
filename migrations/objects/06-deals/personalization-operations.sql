create function app_hidden.may_choose(personalization_id uuid) returns boolean
language sql stable as $$
  select exists (select from app_public.personalizations p where p.id = $1
    and (p.buyer_id = any (array(select app_hidden.viewer_purchases()))
      or app_hidden.deal_can(p.organization_id, p.project_id, p.assignee_id, 'sale.write')))
$$;
comment on function app_hidden.may_choose(uuid) is
  'Whether the viewer may choose the options: the sales team for its deals, the buyer for the own purchase.';
grant execute on function app_hidden.may_choose to plat_user;

create function app_private.make_price_part(table_name text, subject text, list_name text,
  list_description text) returns void
language plpgsql volatile as $$
declare
  writers text := $s$exists (select from app_public.personalizations p where p.id = personalization_id
    and app_hidden.deal_can(p.organization_id, p.project_id, p.assignee_id, 'sale.write'))$s$;
begin
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_project_id_fkey', table_name,
    E'@behavior -*\n\nThe project that it belongs to.');
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_personalization_id_fkey',
    table_name,
    format(E'@parent\n@fieldName personalization\n@notNull\n@foreignFieldName %s\n@backwardDescription %s\n\nThe '
      'personalization whose total it reduces.', list_name, list_description));
  execute format('create policy readers on app_public.%I for select to plat_user
    using (deleted_at is null and (select true from app_public.personalizations p where p.id = personalization_id))',
      table_name);
  execute format('create policy sellers_insert on app_public.%I for insert to plat_user with check (%s)', table_name,
    writers);
  execute format('create policy sellers_update on app_public.%I for update to plat_user using (%s)', table_name,
    writers);
  execute format('create policy sellers_delete on app_public.%I for delete to plat_user using (%s)', table_name,
    writers);
  execute format('grant select, delete on app_public.%I to plat_user', table_name);
  execute format('grant select on app_public.%I to plat_anonymous', table_name);
  execute format('create trigger _010_parent before insert on app_public.%I for each row execute function '
    'app_private.tg__parent_project(''personalizations'', ''personalization_id'')', table_name);
  perform app_private.make_project_record(table_name, subject, 'sale.write');
end $$;

-- Resulting amount.
create function app_hidden.round_money(amount numeric, currency text) returns numeric
language sql stable as $$
  -- numeric rounds a half away from zero; these amounts are not negative
  select round(amount, coalesce((select c.digits from app_hidden.currencies c where c.code = currency), 2))
$$;
comment on function app_hidden.round_money(numeric, text) is
  'An amount, not negative, with the digits of its currency, rounded half up.';

create function app_private.construction_has_come_to(status text, phase text) returns boolean
language sql immutable as $$
  select array_position(steps, status) >= array_position(steps, phase)
  from (select array['NOT_STARTED', 'PERMITTED', 'SITE_WORK', 'FOUNDATION', 'FRAMING', 'ROUGH_IN', 'INSULATION',
    'DRYWALL', 'INTERIOR_FINISHES',
    'EXTERIOR_FINISHES', 'FINAL_INSPECTION', 'COMPLETED', 'DELIVERED'] as steps) s
$$;
comment on function app_private.construction_has_come_to(text, text) is
  'Whether construction has come to a phase, or beyond; null if there is none.';

create function app_private.discount_amount(d app_public.personalization_discounts) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(d.amount, least(d.max_amount, app_hidden.round_money(d.percent / 100 * case d.applies_to
      when 'PURCHASE_PRICE' then coalesce((select b.price from app_public.buyers b where b.id = p.buyer_id),
        (select r.price from app_public.reservations r where r.unit_id = p.unit_id and r.lead_id = p.lead_id
          and r.deleted_at is null
          and r.status in ('PENDING', 'CONFIRMED', 'CONVERTED') order by r.id desc limit 1),
        (select u.price from app_public.units u where u.id = p.unit_id), 0)
      else coalesce((select sum(round(coalesce(s.unit_price, o.price) * s.quantity, 3))
        from app_public.personalization_selections s
        join app_public.spec_options o on o.id = s.option_id
        join app_public.spec_elements e on e.id = s.element_id
        where s.personalization_id = p.id and (d.category_id is null or e.category_id = d.category_id)), 0) end,
          j.currency)))
  from app_public.personalizations p join app_public.projects j on j.id = p.project_id where p.id = d.personalization_id
$$;
comment on function app_private.discount_amount(app_public.personalization_discounts) is
  'Amount of a discount: its percentage of its base, rounded half up to the digits of the currency, at most its '
  'maximum; once approved, the agreed amount.';

create function app_private.personalization_sums(p app_public.personalizations) returns app_private.personalization_sums
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select row(app_hidden.round_money(t.selections, t.currency), app_hidden.round_money(t.discounts, t.currency),
    app_hidden.round_money(t.credits, t.currency),
    app_hidden.round_money(greatest(0, t.selections - t.discounts - t.credits),
      t.currency))::app_private.personalization_sums
  from (
    select j.currency,
      coalesce((select sum(app_hidden.round_money(coalesce(s.unit_price, o.price) * s.quantity, j.currency))
        from app_public.personalization_selections s join app_public.spec_options o on o.id = s.option_id
          where s.personalization_id = p.id), 0) as selections,
      coalesce((select sum(app_private.discount_amount(d)) from app_public.personalization_discounts d
        where d.personalization_id = p.id and d.deleted_at is null), 0) as discounts,
      coalesce((select sum(c.amount) from app_public.personalization_credits c
        where c.personalization_id = p.id and c.deleted_at is null), 0) as credits
    from app_public.projects j where j.id = p.project_id
  ) t
$$;
comment on function app_private.personalization_sums(app_public.personalizations) is
  'The price of the options, less discounts, less credits, never below zero; each line rounded half up to the digits '
  'of the currency.';

create function app_private.sees_personalization(p app_public.personalizations) returns boolean
language sql stable as $$
  select app_hidden.deal_can(p.organization_id, p.project_id, p.assignee_id, 'sale.read')
    or app_hidden.deal_can(p.organization_id, p.project_id, p.assignee_id, 'buyer.read')
    or p.buyer_id = any (array(select app_hidden.viewer_purchases()))
    or p.lead_id = any (array(select app_hidden.viewer_purchase_leads()))
$$;
comment on function app_private.sees_personalization(app_public.personalizations) is
  'Whether the viewer has a part in the deal of a personalization, and so knows what its options come to.';

-- PERF: the row is read again by its key, because SQL callers can pass any row.
create function app_private.sums_of_personalization(id uuid) returns app_private.personalization_sums
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.personalization_sums(p) from app_public.personalizations p
  where p.id = $1 and app_private.sees_personalization(p)
$$;
comment on function app_private.sums_of_personalization(uuid) is
  'The sums of a personalization that the viewer has a part in; null of others.';

create function app_private.amount_of_discount(id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.discount_amount(d) from app_public.personalization_discounts d
  join app_public.personalizations p on p.id = d.personalization_id
  where d.id = $1 and app_private.sees_personalization(p)
$$;
comment on function app_private.amount_of_discount(uuid) is
  'Amount of a discount in a personalization that the viewer can see; null for others.';

create function app_private.tg__price_part() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  personalization app_public.personalizations;
  promotion app_public.promotions;
  currency text;
  is_credit boolean := tg_table_name = 'personalization_credits';
  touched record := case when tg_op = 'DELETE' then old else new end;
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if app_private.is_turning() then
    return new;
  end if;
  select * into personalization from app_public.personalizations p where p.id = touched.personalization_id for no key
    update;
  if personalization.status in ('SIGNED', 'LOCKED', 'SUPERSEDED', 'CANCELLED') then
    perform app_hidden.fail('CONFLICT', format('The price of a personalization with the status %s is fixed.',
      personalization.status),
      '{"field": "personalizationId"}');
  end if;
  if tg_op = 'DELETE' then
    return old;
  end if;
  currency := app_private.project_currency(personalization.project_id);
  if is_credit then
    new.amount := app_hidden.to_money(new.amount, currency, 'amount');
  else
    new.max_amount := app_hidden.to_money(new.max_amount, currency, 'maxAmount');
    if new.category_id is not null and not exists (select from app_public.spec_categories c
        where c.id = new.category_id and c.project_id = personalization.project_id and c.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such category in the project.', '{"field": "categoryId"}');
    end if;
    -- Approved discounts keep their amount; those added or changed later are approved immediately.
    if personalization.status = 'APPROVED'
      and (tg_op = 'INSERT' or row(new.percent, new.max_amount) is distinct from row(old.percent, old.max_amount)) then
      new.amount := null;
      new.amount := app_private.discount_amount(new);
    end if;
  end if;
  if tg_op = 'INSERT' and new.promotion_id is not null then
    select * into promotion from app_public.promotions p
      where p.id = new.promotion_id and p.project_id = personalization.project_id and p.deleted_at is null for no key
        update;
    if promotion.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such promotion in the project.', '{"field": "promotionId"}');
    elsif app_public.promotions_status(promotion) <> 'ACTIVE' then
      perform app_hidden.fail('CONFLICT', format('This promotion is not running: it is %s.',
        app_public.promotions_status(promotion)), '{"field": "promotionId"}');
    elsif not promotion.stackable and (
        exists (select from app_public.personalization_credits c where c.personalization_id = personalization.id
          and c.promotion_id is not null and c.deleted_at is null)
        or exists (select from app_public.personalization_discounts d where d.personalization_id = personalization.id
          and d.promotion_id is not null and d.deleted_at is null)) then
      perform app_hidden.fail('CONFLICT', 'This promotion cannot be combined with another one.',
        '{"field": "promotionId"}');
    end if;
    update app_public.promotions p set usage_count = p.usage_count + 1 where p.id = promotion.id;
  end if;
  return new;
end $$;
comment on function app_private.tg__price_part() is
  'Keeps credits and discounts right: as long as nothing is signed, in the currency of the project, by promotions that '
  'run.';

create function app_private.tg__give_promotion_back() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.promotions p set usage_count = greatest(0, p.usage_count - 1) where p.id = new.promotion_id;
  return null;
end $$;

create function app_hidden.choose_options(personalization_id uuid,
  selections app_public.personalization_selection_input[]) returns void
language plpgsql volatile as $$
declare
  choice app_public.personalization_selection_input;
begin
  if cardinality(selections) > 500 then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'A personalization can have at most 500 options.',
      '{"field": "selections", "limit": 500}');
  end if;
  foreach choice in array coalesce(selections, '{}') loop
    if choice.option_id is null then
      perform app_hidden.fail('BAD_USER_INPUT', 'Specify the option.', '{"field": "selections.optionId"}');
    elsif coalesce(choice.quantity, 1) <> round(coalesce(choice.quantity, 1), 2) then
      perform app_hidden.fail('BAD_USER_INPUT', 'A quantity can have at most 2 decimal places.',
        '{"field": "selections.quantity"}');
    elsif not coalesce(choice.quantity, 1) between 0.01 and 10000 then
      perform app_hidden.fail('BAD_USER_INPUT', 'A quantity must be greater than 0 and at most 10,000.',
        '{"field": "selections.quantity"}');
    elsif not exists (select from app_public.spec_options o where o.id = choice.option_id) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such option in the project of the unit.',
        '{"field": "selections.optionId"}');
    elsif (select count(*) from unnest(selections) s where s.option_id = choice.option_id) > 1 then
      perform app_hidden.fail('BAD_USER_INPUT', 'List each option only once, with its quantity.',
        '{"field": "selections.optionId"}');
    end if;
  end loop;
  delete from app_public.personalization_selections s
    where s.personalization_id = choose_options.personalization_id
      and s.option_id <> all (array(select n.option_id from unnest(selections) n));
  insert into app_public.personalization_selections as s (personalization_id, option_id, quantity, note)
    select choose_options.personalization_id, n.option_id, coalesce(n.quantity, 1), nullif(btrim(n.note), '')
      from unnest(selections) n
    where not exists (select from app_public.personalization_selections x
      where x.personalization_id = choose_options.personalization_id and x.option_id = n.option_id);
  update app_public.personalization_selections s set quantity = coalesce(n.quantity, 1),
    note = nullif(btrim(n.note), '')
    from unnest(selections) n
    where s.personalization_id = choose_options.personalization_id and s.option_id = n.option_id
      and row(s.quantity, s.note) is distinct from row(coalesce(n.quantity, 1), nullif(btrim(n.note), ''));
  update app_public.personalizations p set selections_changed_at = now() where p.id = choose_options.personalization_id;
end $$;
comment on function app_hidden.choose_options(uuid, app_public.personalization_selection_input[]) is
  'Replaces the options of a personalization, as the viewer; what is locked may stay in the list but not change.';

create function app_public.create_personalization(input jsonb,
  selections app_public.personalization_selection_input[] default null)
returns app_public.personalizations
language plpgsql volatile as $$
declare
  result app_public.personalizations;
begin
  perform app_hidden.require_viewer();
  result := app_hidden.create_record(null::app_public.personalizations, input);
  if selections is not null then
    perform app_hidden.choose_options(result.id, selections);
    select * into result from app_public.personalizations p where p.id = result.id;
  end if;
  return result;
end $$;
comment on function app_public.create_personalization is $$
@arg selections Initially selected options.

Creates a personalization: a choice of options for a unit. Buyers can create one for their own purchase.$$;

create function app_public.update_personalization(input jsonb,
  selections app_public.personalization_selection_input[] default null)
returns app_public.personalizations
language plpgsql volatile as $$
declare
  result app_public.personalizations;
begin
  perform app_hidden.require_viewer();
  -- One change after the other, and the version that was expected is compared with the one there is then.
  perform from app_public.personalizations p
    where p.id = app_hidden.record_id('personalizations', input ->> 'id') for no key update;
  if selections is not null then
    if (input ->> 'expected_version') is not null then
      perform app_hidden.update_record(null::app_public.personalizations,
        jsonb_build_object('id', input -> 'id', 'expected_version', input -> 'expected_version'));
    else
      perform app_hidden.update_record(null::app_public.personalizations, jsonb_build_object('id', input -> 'id'));
    end if;
    perform app_hidden.choose_options((input ->> 'id')::uuid, selections);
    input := input - 'expected_version';
  end if;
  result := app_hidden.update_record(null::app_public.personalizations, input);
  return result;
end $$;
comment on function app_public.update_personalization is
  E'@arg selections Selected options; replaces the previous ones. Only in the status DRAFT or CHANGES_REQUESTED.\n\n'
  'Updates a personalization or its status. Buyers can select options, submit and cancel; all other changes are '
  'made by the sales team.';
grant execute on function app_public.create_personalization, app_public.update_personalization to plat_user,
  plat_anonymous;

grant execute on function app_private.sums_of_personalization(uuid), app_private.amount_of_discount(uuid),
  app_private.construction_has_come_to(text, text) to plat_user, plat_anonymous;
