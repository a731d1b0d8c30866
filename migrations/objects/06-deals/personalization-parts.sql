create policy readers on app_public.personalization_selections for select to plat_user
  using ((select true from app_public.personalizations p where p.id = personalization_id));
create policy writers_insert on app_public.personalization_selections for insert to plat_user
  with check (app_hidden.may_choose(personalization_id));
create policy writers_update on app_public.personalization_selections for update to plat_user
  using (app_hidden.may_choose(personalization_id));
create policy writers_delete on app_public.personalization_selections for delete to plat_user
  using (app_hidden.may_choose(personalization_id));

grant select on app_public.personalization_selections to plat_user, plat_anonymous;
grant insert (personalization_id, option_id, quantity, note), update (quantity, note), delete on
  app_public.personalization_selections to plat_user;

comment on table app_public.personalization_selections is
  E'@behavior -operation\n@defaultOrder selected_at asc, id asc\n@partOf personalization_id\n\n'
  'A selected option of a personalization.';
comment on column app_public.personalization_selections.personalization_id is
  'The personalization to which the selected option belongs.';
comment on column app_public.personalization_selections.element_id is
  'The `SpecElement` of which the option is a variant.';
comment on column app_public.personalization_selections.option_id is 'The selected `SpecOption`.';
comment on column app_public.personalization_selections.selected_by_id is 'The user who selected the option.';
comment on column app_public.personalization_selections.quantity is 'Number of pieces.';
comment on column app_public.personalization_selections.unit_price is E'@writeOnly\n\nThe price of one.';
comment on column app_public.personalization_selections.note is
  E'@personal\n\nRemark for the builder, such as a color.';
comment on column app_public.personalization_selections.selected_at is 'When the option was selected.';
comment on constraint personalization_selections_quantity_range on app_public.personalization_selections is
  'A quantity must be greater than 0 and at most 10,000.';
comment on constraint personalization_selections_personalization_id_fkey on app_public.personalization_selections is
  E'@forwardBehavior -*\n@foreignFieldName selections\n@backwardDescription Selected options, in the order of '
  'selection.\n\n'
  'The personalization.';
comment on constraint personalization_selections_element_id_fkey on app_public.personalization_selections is
  E'@fieldName element\n@backwardBehavior -*\n\nThe element that the option belongs to.';
comment on constraint personalization_selections_option_id_fkey on app_public.personalization_selections is
  E'@fieldName option\n@backwardBehavior -*\n\nThe option.';
comment on constraint personalization_selections_selected_by_id_fkey on app_public.personalization_selections is
  E'@fieldName selectedBy\n@backwardBehavior -*\n\nThe user who selected the option.';
comment on index app_public.personalization_selections_once is 'List each option only once, with its quantity.';

select app_private.make_price_part('personalization_credits', 'personalization_credit', 'credits',
  'Credits: fixed amounts that reduce the total.');

grant insert (personalization_id, title, amount, reason, promotion_id), update (title, amount, reason) on
  app_public.personalization_credits to plat_user;

comment on table app_public.personalization_credits is
  E'@defaultOrder id asc\n\nA fixed amount that reduces the total of a personalization.';
comment on column app_public.personalization_credits.created_by_id is
  E'@inert A credit triggers no action.\n\nThe user who granted it.';
comment on column app_public.personalization_credits.title is E'@impersonal\n\nDisplay title.';
comment on column app_public.personalization_credits.personalization_id is
  'Id of the personalization whose total it reduces.';
comment on column app_public.personalization_credits.amount is
  'Credited amount, in the currency of the project.';
comment on column app_public.personalization_credits.reason is E'@personal\n\nReason for granting it, as free text.';
comment on column app_public.personalization_credits.promotion_id is
  'Id of the promotion that grants it, which must be ACTIVE.';
comment on constraint personalization_credits_amount_some on app_public.personalization_credits is
  'A credit must be greater than zero.';
comment on constraint personalization_credits_promotion_id_fkey on app_public.personalization_credits is
  E'@fieldName promotion\n@backwardBehavior -*\n\nThe promotion that grants it.';
comment on constraint personalization_credits_created_by_id_fkey on app_public.personalization_credits is
  E'@fieldName createdBy\n@backwardBehavior -*\n\nThe user who granted it.';

select app_private.make_price_part('personalization_discounts', 'personalization_discount', 'discounts',
  'Discounts: percentages that reduce the total.');

grant insert (personalization_id, title, percent, applies_to, category_id, max_amount, reason, promotion_id), update
  (title, percent, max_amount, reason) on app_public.personalization_discounts to plat_user;

comment on table app_public.personalization_discounts is
  E'@defaultOrder id asc\n\nA percentage that reduces the total of a personalization.';
comment on column app_public.personalization_discounts.created_by_id is
  E'@inert A discount triggers no action.\n\nThe user who granted it.';
comment on column app_public.personalization_discounts.title is E'@impersonal\n\nDisplay title.';
comment on column app_public.personalization_discounts.personalization_id is
  'Id of the personalization whose total it reduces.';
comment on column app_public.personalization_discounts.percent is 'Percentage, greater than 0 and at most 100.';
comment on column app_public.personalization_discounts.applies_to is 'Amount that the percentage is calculated from.';
comment on column app_public.personalization_discounts.category_id is
  'Id of the category whose options it applies to; only with the base CATEGORY.';
comment on column app_public.personalization_discounts.max_amount is 'Maximum amount of the discount.';
comment on column app_public.personalization_discounts.amount is
  E'@writeOnly\n@behavior -insert -update\n\nWhat it takes off.';
comment on column app_public.personalization_discounts.reason is E'@personal\n\nReason for granting it, as free text.';
comment on column app_public.personalization_discounts.promotion_id is
  'Id of the promotion that grants it, which must be ACTIVE.';
comment on constraint personalization_discounts_percent_range on app_public.personalization_discounts is
  'A discount must be a percentage greater than 0 and at most 100, with at most 4 decimal places.';
comment on constraint personalization_discounts_max_amount_some on app_public.personalization_discounts is
  'The amount must be greater than zero.';
comment on constraint personalization_discounts_category on app_public.personalization_discounts is
  'Only a discount on a category has a categoryId, and requires it.';
comment on constraint personalization_discounts_category_id_fkey on app_public.personalization_discounts is
  E'@fieldName category\n@backwardBehavior -*\n\nThe category whose options it applies to.';
comment on constraint personalization_discounts_promotion_id_fkey on app_public.personalization_discounts is
  E'@fieldName promotion\n@backwardBehavior -*\n\nThe promotion that grants it.';
comment on constraint personalization_discounts_created_by_id_fkey on app_public.personalization_discounts is
  E'@fieldName createdBy\n@backwardBehavior -*\n\nThe user who granted it.';

create function app_private.tg_personalization_selections__check() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  personalization app_public.personalizations;
  option app_public.spec_options;
  element app_public.spec_elements;
  reached text;
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  select * into personalization from app_public.personalizations p
    where p.id = case when tg_op = 'DELETE' then old.personalization_id else new.personalization_id end for no key
      update;
  if personalization.id is null then
    -- deleted with its personalization, or refused by its foreign key
    return case when tg_op = 'DELETE' then old else new end;
  end if;
  if tg_op = 'UPDATE' and row(old.option_id, old.quantity, old.note) is not distinct
    from row(new.option_id, new.quantity, new.note) then
    return new; -- prices are frozen by the service
  end if;
  if personalization.status not in ('DRAFT', 'CHANGES_REQUESTED') then
    perform app_hidden.fail('CONFLICT',
      format('The options of a personalization with the status %s cannot be changed%s.', personalization.status,
      case when personalization.status = 'SUBMITTED' then '; set it to CHANGES_REQUESTED first' else '' end),
        '{"field": "selections"}');
  end if;
  select * into option from app_public.spec_options o where o.id = case when tg_op = 'DELETE' then old.option_id
    else new.option_id end;
  select * into element from app_public.spec_elements e where e.id = option.element_id;
  select u.construction_status into reached from app_public.units u where u.id = personalization.unit_id;
  if app_private.construction_has_come_to(reached, element.lock_phase) then
    perform app_hidden.fail('CONFLICT',
      format('"%s" can no longer be changed: construction has reached %s.', element.title, reached),
      '{"field": "selections"}');
  end if;
  if tg_op = 'DELETE' then
    return old;
  end if;
  if option.id is null or option.project_id <> personalization.project_id or option.deleted_at is not null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such option in the project of the unit.',
      '{"field": "selections.optionId"}');
  elsif not option.active then
    perform app_hidden.fail('BAD_USER_INPUT', format('"%s" is no longer offered.', option.title),
      '{"field": "selections.optionId"}');
  elsif new.quantity > option.max_quantity then
    perform app_hidden.fail('BAD_USER_INPUT', format('"%s" can be selected at most %s times.', option.title,
      option.max_quantity), '{"field": "selections.quantity"}');
  elsif element.selection_mode = 'SINGLE' and exists (select from app_public.personalization_selections s
      where s.personalization_id = new.personalization_id and s.element_id = element.id
        and s.option_id <> new.option_id) then
    perform app_hidden.fail('BAD_USER_INPUT', format('Choose one option for "%s".', element.title),
      '{"field": "selections"}');
  end if;
  new.project_id := personalization.project_id;
  new.element_id := element.id;
  return new;
end $$;
create trigger _200_check before insert or update or delete on app_public.personalization_selections
  for each row execute function app_private.tg_personalization_selections__check();

create trigger _200_price_part before insert or update or delete on app_public.personalization_credits
  for each row execute function app_private.tg__price_part();
create trigger _200_price_part before insert or update or delete on app_public.personalization_discounts
  for each row execute function app_private.tg__price_part();

create trigger _500_give_back after update of deleted_at on app_public.personalization_credits for each row
  when (old.deleted_at is null and new.deleted_at is not null and new.promotion_id is not null)
    execute function app_private.tg__give_promotion_back();
create trigger _500_give_back after update of deleted_at on app_public.personalization_discounts for each row
  when (old.deleted_at is null and new.deleted_at is not null and new.promotion_id is not null)
    execute function app_private.tg__give_promotion_back();

create function app_public.personalization_selections_unit_price(s app_public.personalization_selections) returns
  app_public.money
language sql stable as $$ select coalesce(s.unit_price,
  (select o.price from app_public.spec_options o where o.id = s.option_id)) $$;

create function app_public.personalization_selections_total(s app_public.personalization_selections) returns
  app_public.money
language sql stable as $$ select app_hidden.round_money(app_public.personalization_selections_unit_price(s) *
  s.quantity, app_private.currency_for_viewer(s.project_id)) $$;

create function app_public.personalization_selections_locked(s app_public.personalization_selections) returns boolean
language sql stable as $$
  select coalesce(p.status in ('SIGNED', 'LOCKED')
    or app_private.construction_has_come_to(u.construction_status, e.lock_phase), false)
  from app_public.personalizations p join app_public.units u on u.id = p.unit_id
    join app_public.spec_elements e on e.id = s.element_id
  where p.id = s.personalization_id
$$;

create function app_public.personalization_credits_currency(c app_public.personalization_credits) returns
  app_public.currency_code
language sql stable as $$ select app_private.currency_for_viewer(c.project_id) $$;

create function app_public.personalization_discounts_currency(d app_public.personalization_discounts) returns
  app_public.currency_code
language sql stable as $$ select app_private.currency_for_viewer(d.project_id) $$;

create function app_public.personalization_discounts_amount(d app_public.personalization_discounts) returns
  app_public.money
language sql stable as $$ select app_private.amount_of_discount(d.id) $$;

comment on function app_public.personalization_selections_unit_price is
  E'@notNull\n\nPrice per piece: the current one, or the agreed one once the personalization is approved.';
comment on function app_public.personalization_selections_total is E'@notNull\n\n`unitPrice` times `quantity`.';
comment on function app_public.personalization_selections_locked is
  E'@notNull\n\nWhether the selection can no longer be changed, because of the construction phase.';
comment on function app_public.personalization_credits_currency is E'@notNull\n\nCurrency of the amount.';
comment on function app_public.personalization_discounts_currency is E'@notNull\n\nCurrency of the amount.';
comment on function app_public.personalization_discounts_amount is
  E'@notNull\n\nAmount of the discount, rounded half up to the decimals of the currency.';
