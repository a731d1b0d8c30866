-- The specification of a home and the choices of buyers: categories, their elements, and the options of each. They are
-- public with the project; the developer's costs never are.
--
-- Also the links between project images and the catalogue: the options that an image shows, and the cover of a
-- collection.

-- The event of an option contains its cost, so it is restricted to viewers who may read that.
select app_private.make_public_table('spec_options', 'spec_option', 'inventory.manage', null, null, shown => 'active',
  event_permission => 'finance.read');

grant insert (element_id, title, description, sku, tier, kind, price, cost, max_quantity, active, sequence), update
  (title, description, sku, tier, kind, price, cost, max_quantity, active, sequence), delete on app_public.spec_options
  to plat_user;
grant insert (excluded_option_ids), update (excluded_option_ids) on app_public.spec_options to plat_user;

comment on table app_public.spec_options is
  E'@defaultOrder sequence asc, id asc\n\nAn option that a buyer can select for an element.';
comment on column app_public.spec_options.element_id is
  'Id of the element that the option is a choice for, such as the countertop.';
comment on column app_public.spec_options.title is 'Display name, such as Quartz.';
comment on column app_public.spec_options.description is 'Free-text description.';
comment on column app_public.spec_options.sku is 'Article number, unique in the project.';
comment on column app_public.spec_options.tier is E'@filter\n\nPricing of the option.';
comment on column app_public.spec_options.kind is E'@filter\n\nPart of the home that it changes.';
comment on column app_public.spec_options.price is 'Price for the buyer, per unit of quantity.';
comment on column app_public.spec_options.cost is E'@masked\n\nCost to the developer.';
comment on column app_public.spec_options.max_quantity is 'Maximum quantity per buyer; null for no limit.';
comment on column app_public.spec_options.active is
  E'@filter\n\nWhether it is offered for selection; existing uses are not affected.';
comment on column app_public.spec_options.sequence is 'Position in the list; lowest first.';
comment on column app_public.spec_options.excluded_option_ids is
  'Ids of options that cannot be combined with it.';
comment on constraint spec_options_max_quantity_range on app_public.spec_options is 'Must be from 1 to 10,000.';
comment on constraint spec_options_element_id_fkey on app_public.spec_options is
  E'@parent\n@fieldName element\n@foreignFieldName options\n@backwardDescription Selectable options; non-members '
  'see only active ones.\n\n'
  'The element.';
comment on constraint spec_options_excluded_number on app_public.spec_options is
  'An option can exclude at most 100 others.';
comment on index app_public.spec_options_sku is 'There is already an option with this article number in the project.';

select app_private.make_public_table('spec_categories', 'spec_category', 'inventory.manage', 'specCategories',
  'Categories of options that buyers can select.');

grant insert (project_id, title, description, sequence), update (title, description, sequence), delete
  on app_public.spec_categories to plat_user;

comment on table app_public.spec_categories is
  E'@defaultOrder sequence asc, id asc\n\nA part of the home with selectable elements, such as the kitchen.';
comment on column app_public.spec_categories.title is 'Display name, such as Kitchen.';
comment on column app_public.spec_categories.description is 'Free-text description.';
comment on column app_public.spec_categories.sequence is 'Position in the list; lowest first.';

select app_private.make_public_table('spec_elements', 'spec_element', 'inventory.manage', null, null);

grant insert (category_id, title, description, sequence, selection_mode, required, lock_phase), update (title,
  description, sequence, selection_mode, required, lock_phase), delete on app_public.spec_elements to plat_user;

comment on table app_public.spec_elements is
  E'@defaultOrder sequence asc, id asc\n\nA part of a home that has options, such as the countertop.';
comment on column app_public.spec_elements.category_id is 'Id of the `SpecCategory` under which it is listed.';
comment on column app_public.spec_elements.title is 'Display name, such as Countertop.';
comment on column app_public.spec_elements.description is 'Free-text description.';
comment on column app_public.spec_elements.sequence is 'Position in the list; lowest first.';
comment on column app_public.spec_elements.selection_mode is 'Number of options that a buyer can select.';
comment on column app_public.spec_elements.required is 'Whether a buyer must select an option.';
comment on column app_public.spec_elements.lock_phase is
  'Construction status from which options can no longer be selected.';
comment on constraint spec_elements_category_id_fkey on app_public.spec_elements is
  E'@parent\n@fieldName category\n@foreignFieldName elements\n@backwardDescription Elements of the category, such '
  'as the countertop.\n\n'
  'The category.';

create trigger _010_parent before insert on app_public.spec_elements
  for each row execute function app_private.tg__parent_project('spec_categories', 'category_id');
create trigger _010_parent before insert on app_public.spec_options
  for each row execute function app_private.tg__parent_project('spec_elements', 'element_id');

create function app_private.tg_spec_options__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  currency text := (select p.currency from app_public.projects p where p.id = new.project_id);
begin
  new.price := app_hidden.to_money(new.price, currency, 'price');
  new.cost := app_hidden.to_money(new.cost, currency, 'cost');
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.spec_options
  for each row execute function app_private.tg_spec_options__prepare();

create function app_public.spec_elements_standard_option(e app_public.spec_elements)
  returns setof app_public.spec_options
language sql stable rows 1 as $$
  select o.* from app_hidden.masked_spec_options o
  where o.element_id = e.id and o.tier = 'STANDARD' and o.active order by o.sequence, o.id limit 1
$$;

create function app_public.spec_options_cost(o app_public.spec_options) returns app_public.money
language sql stable as $$ select case when app_hidden.project_can(o.project_id, o.organization_id, 'finance.read')
  then o.cost end $$;

create function app_public.spec_options_currency(o app_public.spec_options) returns app_public.currency_code
language sql stable as $$ select p.currency from app_public.projects p where p.id = o.project_id $$;
grant execute on function app_public.spec_elements_standard_option, app_public.spec_options_cost,
  app_public.spec_options_currency to plat_user, plat_anonymous;
comment on function app_public.spec_elements_standard_option is
  'Default option if the buyer selects none: the first active one of the tier STANDARD.';
comment on function app_public.spec_options_cost is 'Cost to the developer; null without the permission finance.read.';
comment on function app_public.spec_options_currency is E'@notNull\n\nCurrency of its price, that of the project.';

create function app_private.tg_spec_options__excluded() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.excluded_option_ids := array(select distinct i from unnest(new.excluded_option_ids) i where i <> new.id
    order by i);
  if exists (select from unnest(new.excluded_option_ids) i (id) where not exists (
      select from app_public.spec_options o where o.id = i.id and o.project_id = new.project_id
        and o.deleted_at is null)) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such option in this project.', '{"field": "excludedOptionIds"}');
  end if;
  return new;
end $$;
create trigger _210_excluded before insert or update of excluded_option_ids on app_public.spec_options
  for each row when (new.excluded_option_ids <> '{}') execute function app_private.tg_spec_options__excluded();
