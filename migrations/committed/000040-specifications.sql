--! Previous: sha1:48ab22d4e090a9cb3a05c8e45e43ea917e809f5b
--! Hash: sha1:8b587a6fca7de11a42df466cbffdcbb854852055
--! Message: specifications

-- What a home is made of and what buyers may choose: categories, their elements, the options of each. The public sees
-- them with the project, what they cost the developer never.

select app_private.create_enum('spec_selection_mode', 'How many options of an element a buyer takes.', array[
  ['SINGLE', 'One.'], ['MULTIPLE', 'Several.']]);
select app_private.create_enum('spec_option_tier', 'How an option is offered.', array[
  ['STANDARD', 'In the price of the home.'], ['UPGRADE', 'For its own price.'], ['CUSTOM', 'Made for one buyer.']]);
select app_private.create_enum('spec_option_kind', 'What an option changes.', array[
  ['STRUCTURAL', 'Walls, floors, openings.'], ['DESIGN', 'Surfaces and fixtures.'], ['APPLIANCE', 'Appliances.'],
  ['EXTERIOR', 'What is seen from outside.'], ['PACKAGE', 'Several at once.'], ['PARKING', 'Parking.'], ['STORAGE', 'Storage.'],
  ['OTHER', 'Anything else.']]);

create table app_public.spec_categories (
  like app_private.project_record including all,
  title app_public.short_text not null,
  description app_public.long_text,
  sequence int not null default 0,
  unique (id, project_id)
);
create table app_public.spec_elements (
  like app_private.project_record including all,
  category_id uuid not null,
  title app_public.short_text not null,
  description app_public.long_text,
  sequence int not null default 0,
  selection_mode app_public.spec_selection_mode not null default 'SINGLE',
  required boolean not null default false,
  lock_phase app_public.unit_construction_status,
  unique (id, project_id),
  constraint spec_elements_category_id_fkey foreign key (category_id, project_id)
    references app_public.spec_categories (id, project_id) on delete restrict
);
create table app_public.spec_options (
  like app_private.project_record including all,
  element_id uuid not null,
  title app_public.short_text not null,
  description app_public.long_text,
  sku app_public.short_text,
  tier app_public.spec_option_tier not null default 'STANDARD',
  kind app_public.spec_option_kind not null default 'DESIGN',
  price app_public.money not null default 0,
  cost app_public.money,
  max_quantity int constraint spec_options_max_quantity_range check (max_quantity between 1 and 10000),
  active boolean not null default true,
  sequence int not null default 0,
  unique (id, project_id),
  constraint spec_options_element_id_fkey foreign key (element_id, project_id)
    references app_public.spec_elements (id, project_id) on delete restrict
);
comment on constraint spec_options_max_quantity_range on app_public.spec_options is 'Give 1 to 10,000.';
create index spec_categories_sequence on app_public.spec_categories (project_id, sequence, id) where deleted_at is null;
create index spec_elements_category on app_public.spec_elements (category_id, sequence, id) where deleted_at is null;
create index spec_options_element on app_public.spec_options (element_id, sequence, id) where deleted_at is null;
create unique index spec_options_sku on app_public.spec_options (project_id, sku) where deleted_at is null and sku is not null;
comment on index app_public.spec_options_sku is 'There is an option with this article number in the project already.';

--------------------------------------------------------------------------------------------------------

select app_private.make_public_table('spec_categories', 'spec_category', 'inventory.manage', 'specCategories',
  'What the homes are made of, by category.');
select app_private.make_public_table('spec_elements', 'spec_element', 'inventory.manage', null, null);
select app_private.make_public_table('spec_options', 'spec_option', 'inventory.manage', null, null, shown => 'active');
grant insert (project_id, title, description, sequence), update (title, description, sequence), delete
  on app_public.spec_categories to plat_user;
grant insert (category_id, title, description, sequence, selection_mode, required, lock_phase),
  update (title, description, sequence, selection_mode, required, lock_phase), delete on app_public.spec_elements to plat_user;
grant insert (element_id, title, description, sku, tier, kind, price, cost, max_quantity, active, sequence),
  update (title, description, sku, tier, kind, price, cost, max_quantity, active, sequence), delete on app_public.spec_options to plat_user;

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

create function app_public.spec_elements_standard_option(e app_public.spec_elements) returns app_public.spec_options
language sql stable as $$
  select o from app_public.spec_options o
  where o.element_id = e.id and o.tier = 'STANDARD' and o.active order by o.sequence, o.id limit 1
$$;
create function app_public.spec_options_cost(o app_public.spec_options) returns app_public.money
language sql stable as $$ select case when app_hidden.project_can(o.project_id, o.organization_id, 'finance.read') then o.cost end $$;
create function app_public.spec_options_currency(o app_public.spec_options) returns app_public.currency_code
language sql stable as $$ select p.currency from app_public.projects p where p.id = o.project_id $$;
grant execute on function app_public.spec_elements_standard_option, app_public.spec_options_cost, app_public.spec_options_currency
  to plat_user, plat_anonymous;
comment on function app_public.spec_elements_standard_option is 'The option that a buyer gets who chooses nothing: the first active one of tier STANDARD.';
comment on function app_public.spec_options_cost is 'What it costs the developer; null without the permission finance.read.';
comment on function app_public.spec_options_currency is E'@notNull\n\nCurrency of its price, that of the project.';

--------------------------------------------------------------------------------------------------------

comment on table app_public.spec_categories is E'@defaultOrder sequence asc, id asc\n\nA group of what homes are made of, such as the kitchen.';
comment on column app_public.spec_categories.title is 'Name of the category.';
comment on column app_public.spec_categories.description is 'What it is about.';
comment on column app_public.spec_categories.sequence is 'Place in the list.';
comment on table app_public.spec_elements is E'@defaultOrder sequence asc, id asc\n\nA part of a home that has options, such as the countertop.';
comment on column app_public.spec_elements.category_id is 'The category.';
comment on column app_public.spec_elements.title is 'Name of the element.';
comment on column app_public.spec_elements.description is 'What it is.';
comment on column app_public.spec_elements.sequence is 'Place in the list.';
comment on column app_public.spec_elements.selection_mode is 'How many options a buyer takes.';
comment on column app_public.spec_elements.required is 'Whether a buyer has to choose.';
comment on column app_public.spec_elements.lock_phase is 'The construction status from which nothing can be chosen any more.';
comment on constraint spec_elements_category_id_fkey on app_public.spec_elements is
  E'@parent\n@fieldName category\n@foreignFieldName elements\n@backwardDescription What belongs to it.\n\nThe category.';
comment on table app_public.spec_options is E'@defaultOrder sequence asc, id asc\n\nWhat a buyer may choose for an element.';
comment on column app_public.spec_options.element_id is 'The element.';
comment on column app_public.spec_options.title is 'Name of the option.';
comment on column app_public.spec_options.description is 'What it is.';
comment on column app_public.spec_options.sku is 'Article number, unique in the project.';
comment on column app_public.spec_options.tier is E'@filter\n\nHow it is offered.';
comment on column app_public.spec_options.kind is E'@filter\n\nWhat it changes.';
comment on column app_public.spec_options.price is 'What a buyer pays for one.';
comment on column app_public.spec_options.cost is E'@masked\n\nWhat it costs the developer.';
comment on column app_public.spec_options.max_quantity is 'How many a buyer may take; no limit where null.';
comment on column app_public.spec_options.active is E'@filter\n\nWhether it is offered.';
comment on column app_public.spec_options.sequence is 'Place in the list.';
comment on constraint spec_options_element_id_fkey on app_public.spec_options is
  E'@parent\n@fieldName element\n@foreignFieldName options\n@backwardDescription What can be chosen; outsiders see what is offered.\n\nThe element.';
