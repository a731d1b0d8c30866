--! Previous: sha1:0a3f62cdf63895d3c5e904da315cec41f2cbb3e4
--! Hash: sha1:553027f3c7074b4850090d8a852b5ad66d28c300
--! Message: personalizations

-- Personalizations: the options that somebody chooses for a unit, and what they come to. Prices are those of today until
-- the choice is approved; then they stay.

select app_private.create_enum('personalization_status', 'How far a personalization is.', array[
  ['DRAFT', 'Being chosen.'], ['SUBMITTED', 'Handed in.'], ['CHANGES_REQUESTED', 'Handed back for changes.'],
  ['APPROVED', 'Agreed; prices stay from now on.'], ['SIGNED', 'Signed.'], ['LOCKED', 'Being built.'],
  ['SUPERSEDED', 'Replaced by a later one.'], ['CANCELLED', 'Called off.']]);
select app_private.create_enum('discount_base', 'What a percentage discount is of.', array[
  ['SELECTIONS_TOTAL', 'The price of all options.'], ['PURCHASE_PRICE', 'The price of the home.'], ['CATEGORY', 'The price of the options of one category.']]);

create type app_public.personalization_selection_input as (option_id uuid, quantity numeric, note text);
comment on type app_public.personalization_selection_input is 'An option to choose.';
comment on column app_public.personalization_selection_input.option_id is E'@notNull\n\nThe option.';
comment on column app_public.personalization_selection_input.quantity is 'How many; 1 where left out.';
comment on column app_public.personalization_selection_input.note is 'A note on it.';

create table app_public.personalizations (
  like app_private.project_record including all,
  unit_id uuid not null,
  lead_id uuid,
  buyer_id uuid,
  assignee_id uuid references app_public.users on delete set null,
  title app_public.short_text,
  status app_public.personalization_status not null default 'DRAFT',
  status_changed_at timestamptz not null default now(),
  submitted_at timestamptz,
  approved_at timestamptz,
  approved_by_id uuid references app_public.users on delete set null,
  signed_at timestamptz,
  locked_at timestamptz,
  due_on date,
  notes app_public.long_text,
  selections_changed_at timestamptz,
  constraint personalizations_one_person check (num_nonnulls(lead_id, buyer_id) <= 1),
  unique (id, project_id),
  constraint personalizations_unit_id_fkey foreign key (unit_id, project_id) references app_public.units (id, project_id) on delete restrict,
  constraint personalizations_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id) on delete restrict,
  constraint personalizations_buyer_id_fkey foreign key (buyer_id, project_id) references app_public.buyers (id, project_id) on delete restrict
);
comment on constraint personalizations_one_person on app_public.personalizations is 'Name the lead or the buyer, not both.';
create index personalizations_unit on app_public.personalizations (unit_id, id desc) where deleted_at is null;
create index personalizations_lead on app_public.personalizations (lead_id, id desc) where deleted_at is null;
create index personalizations_buyer on app_public.personalizations (buyer_id, id desc) where deleted_at is null;
create index personalizations_approved_by on app_public.personalizations (approved_by_id);

create table app_public.personalization_selections (
  id uuid primary key default uuidv7(),
  project_id uuid not null,
  personalization_id uuid not null,
  element_id uuid not null,
  option_id uuid not null,
  quantity numeric(12, 2) not null default 1 constraint personalization_selections_quantity_range check (quantity > 0 and quantity <= 10000),
  unit_price app_public.money,
  note app_public.long_text,
  selected_at timestamptz not null default now(),
  selected_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  constraint personalization_selections_personalization_id_fkey foreign key (personalization_id, project_id)
    references app_public.personalizations (id, project_id) on delete cascade,
  constraint personalization_selections_element_id_fkey foreign key (element_id, project_id)
    references app_public.spec_elements (id, project_id) on delete restrict,
  constraint personalization_selections_option_id_fkey foreign key (option_id, project_id)
    references app_public.spec_options (id, project_id) on delete restrict
);
comment on constraint personalization_selections_quantity_range on app_public.personalization_selections is 'Give a quantity above 0, 10,000 at most.';
create unique index personalization_selections_once on app_public.personalization_selections (personalization_id, option_id);
comment on index app_public.personalization_selections_once is 'Name each option once, with its quantity.';
create index personalization_selections_element on app_public.personalization_selections (element_id);
create index personalization_selections_option on app_public.personalization_selections (option_id);
create index personalization_selections_selected_by on app_public.personalization_selections (selected_by_id);

create table app_public.personalization_credits (
  like app_private.project_record including all,
  personalization_id uuid not null,
  title app_public.short_text not null,
  amount app_public.money not null constraint personalization_credits_amount_some check (amount > 0),
  reason app_public.long_text,
  promotion_id uuid,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  constraint personalization_credits_personalization_id_fkey foreign key (personalization_id, project_id)
    references app_public.personalizations (id, project_id) on delete cascade,
  constraint personalization_credits_promotion_id_fkey foreign key (promotion_id, project_id)
    references app_public.promotions (id, project_id) on delete restrict
);
comment on constraint personalization_credits_amount_some on app_public.personalization_credits is 'A credit is an amount above zero.';
create index personalization_credits_personalization on app_public.personalization_credits (personalization_id, id) where deleted_at is null;
create index personalization_credits_promotion on app_public.personalization_credits (promotion_id) where deleted_at is null;
create index personalization_credits_created_by on app_public.personalization_credits (created_by_id);

create table app_public.personalization_discounts (
  like app_private.project_record including all,
  personalization_id uuid not null,
  title app_public.short_text not null,
  percent numeric not null constraint personalization_discounts_percent_range check (percent > 0 and percent <= 100 and scale(percent) <= 4),
  applies_to app_public.discount_base not null default 'SELECTIONS_TOTAL',
  category_id uuid,
  max_amount app_public.money constraint personalization_discounts_max_amount_some check (max_amount > 0),
  amount app_public.money,
  reason app_public.long_text,
  promotion_id uuid,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  constraint personalization_discounts_category check ((applies_to = 'CATEGORY') = (category_id is not null)),
  constraint personalization_discounts_personalization_id_fkey foreign key (personalization_id, project_id)
    references app_public.personalizations (id, project_id) on delete cascade,
  constraint personalization_discounts_category_id_fkey foreign key (category_id, project_id)
    references app_public.spec_categories (id, project_id) on delete restrict,
  constraint personalization_discounts_promotion_id_fkey foreign key (promotion_id, project_id)
    references app_public.promotions (id, project_id) on delete restrict
);
comment on constraint personalization_discounts_percent_range on app_public.personalization_discounts is
  'A discount is a percentage above 0, 100 at most, with 4 digits after the point at most.';
comment on constraint personalization_discounts_max_amount_some on app_public.personalization_discounts is 'Give an amount above zero.';
comment on constraint personalization_discounts_category on app_public.personalization_discounts is
  'A discount on a category names it in categoryId; others name none.';
create index personalization_discounts_personalization on app_public.personalization_discounts (personalization_id, id) where deleted_at is null;
create index personalization_discounts_category on app_public.personalization_discounts (category_id);
create index personalization_discounts_promotion on app_public.personalization_discounts (promotion_id) where deleted_at is null;
create index personalization_discounts_created_by on app_public.personalization_discounts (created_by_id);

-- Options that do not go together.
alter table app_public.spec_options add column excluded_option_ids uuid[] not null default '{}'
  constraint spec_options_excluded_number check (cardinality(excluded_option_ids) <= 100);
comment on constraint spec_options_excluded_number on app_public.spec_options is 'An option excludes 100 others at most.';
grant insert (excluded_option_ids), update (excluded_option_ids) on app_public.spec_options to plat_user;
comment on column app_public.spec_options.excluded_option_ids is 'Options of the project that do not go together with it.';

--------------------------------------------------------------------------------------------------------
-- Who may do what: the sales team for its deals; the buyer for the own purchase, up to handing it in.

select app_private.make_deal_table('personalizations', 'sale.read', 'sale.write', null, null,
  own => 'buyer_id = any (array(select app_hidden.viewer_purchases()))');
create policy buyers_insert on app_public.personalizations for insert to plat_user
  with check (buyer_id = any (array(select app_hidden.viewer_purchases())));
create policy buyers_update on app_public.personalizations for update to plat_user
  using (buyer_id = any (array(select app_hidden.viewer_purchases())));
grant select on app_public.personalizations to plat_user, plat_anonymous, plat_worker;
grant insert (unit_id, lead_id, buyer_id, title, notes, due_on), update (status, title, notes, due_on), delete on app_public.personalizations to plat_user;
grant update (selections_changed_at) on app_public.personalizations to plat_user;

create function app_hidden.may_choose(personalization_id uuid) returns boolean
language sql stable as $$
  select exists (select from app_public.personalizations p where p.id = $1
    and (p.buyer_id = any (array(select app_hidden.viewer_purchases()))
      or app_hidden.deal_can(p.organization_id, p.project_id, p.assignee_id, 'sale.write')))
$$;
comment on function app_hidden.may_choose(uuid) is 'Whether the viewer may choose the options: the sales team for its deals, the buyer for the own purchase.';
grant execute on function app_hidden.may_choose to plat_user;

alter table app_public.personalization_selections enable row level security;
create policy readers on app_public.personalization_selections for select to plat_user
  using (exists (select from app_public.personalizations p where p.id = personalization_id));
create policy writers_insert on app_public.personalization_selections for insert to plat_user
  with check (app_hidden.may_choose(personalization_id));
create policy writers_update on app_public.personalization_selections for update to plat_user
  using (app_hidden.may_choose(personalization_id));
create policy writers_delete on app_public.personalization_selections for delete to plat_user
  using (app_hidden.may_choose(personalization_id));
grant select on app_public.personalization_selections to plat_user, plat_anonymous, plat_worker;
grant insert (personalization_id, option_id, quantity, note), update (quantity, note), delete on app_public.personalization_selections to plat_user;

create function app_private.make_price_part(table_name text, subject text, list_name text, list_description text) returns void
language plpgsql volatile as $$
declare
  writers text := $s$exists (select from app_public.personalizations p where p.id = personalization_id
    and app_hidden.deal_can(p.organization_id, p.project_id, p.assignee_id, 'sale.write'))$s$;
begin
  execute format('alter table app_public.%I add constraint %I foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict', table_name, table_name || '_project_id_fkey');
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_project_id_fkey', table_name, E'@behavior -*\n\nThe project.');
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_personalization_id_fkey', table_name,
    format(E'@parent\n@fieldName personalization\n@foreignFieldName %s\n@backwardDescription %s\n\nThe personalization.', list_name, list_description));
  execute format('create index %I on app_public.%I (project_id)', table_name || '_project', table_name);
  execute format('alter table app_public.%I enable row level security', table_name);
  execute format('create policy readers on app_public.%I for select to plat_user
    using (deleted_at is null and exists (select from app_public.personalizations p where p.id = personalization_id))', table_name);
  execute format('create policy sellers_insert on app_public.%I for insert to plat_user with check (%s)', table_name, writers);
  execute format('create policy sellers_update on app_public.%I for update to plat_user using (%s)', table_name, writers);
  execute format('create policy sellers_delete on app_public.%I for delete to plat_user using (%s)', table_name, writers);
  execute format('grant select, delete on app_public.%I to plat_user', table_name);
  execute format('grant select on app_public.%I to plat_anonymous, plat_worker', table_name);
  execute format('create trigger _010_parent before insert on app_public.%I for each row execute function app_private.tg__parent_project(''personalizations'', ''personalization_id'')', table_name);
  perform app_private.make_project_record(table_name, subject, 'sale.write');
end $$;
select app_private.make_price_part('personalization_credits', 'personalization_credit', 'credits', 'What is taken off, in fixed amounts.');
select app_private.make_price_part('personalization_discounts', 'personalization_discount', 'discounts', 'What is taken off, in percentages.');
drop function app_private.make_price_part(text, text, text, text);
grant insert (personalization_id, title, amount, reason, promotion_id), update (title, amount, reason) on app_public.personalization_credits to plat_user;
grant insert (personalization_id, title, percent, applies_to, category_id, max_amount, reason, promotion_id), update (title, percent, max_amount, reason)
  on app_public.personalization_discounts to plat_user;

--------------------------------------------------------------------------------------------------------
-- What it comes to.

create function app_hidden.round_money(amount numeric, currency text) returns numeric
language sql stable as $$
  -- numeric rounds a half away from zero; these amounts are not negative
  select round(amount, coalesce((select c.digits from app_hidden.currencies c where c.code = currency), 2))
$$;
comment on function app_hidden.round_money(numeric, text) is 'An amount, not negative, with the digits of its currency, rounded half up.';

create function app_private.construction_has_come_to(status text, phase text) returns boolean
language sql immutable as $$
  select array_position(steps, status) >= array_position(steps, phase)
  from (select array['NOT_STARTED', 'PERMITTED', 'SITE_WORK', 'FOUNDATION', 'FRAMING', 'ROUGH_IN', 'INSULATION', 'DRYWALL', 'INTERIOR_FINISHES',
    'EXTERIOR_FINISHES', 'FINAL_INSPECTION', 'COMPLETED', 'DELIVERED'] as steps) s
$$;
comment on function app_private.construction_has_come_to(text, text) is 'Whether construction has come to a phase, or beyond; null where there is none.';

create type app_private.personalization_sums as (selections numeric, discounts numeric, credits numeric, total numeric);

create function app_private.discount_amount(d app_public.personalization_discounts) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(d.amount, least(d.max_amount, app_hidden.round_money(d.percent / 100 * case d.applies_to
      when 'PURCHASE_PRICE' then coalesce((select b.price from app_public.buyers b where b.id = p.buyer_id),
        (select r.price from app_public.reservations r where r.unit_id = p.unit_id and r.lead_id = p.lead_id and r.deleted_at is null
          and r.status in ('PENDING', 'CONFIRMED', 'CONVERTED') order by r.id desc limit 1),
        (select u.price from app_public.units u where u.id = p.unit_id), 0)
      else coalesce((select sum(round(coalesce(s.unit_price, o.price) * s.quantity, 3))
        from app_public.personalization_selections s
        join app_public.spec_options o on o.id = s.option_id
        join app_public.spec_elements e on e.id = s.element_id
        where s.personalization_id = p.id and (d.category_id is null or e.category_id = d.category_id)), 0) end, j.currency)))
  from app_public.personalizations p join app_public.projects j on j.id = p.project_id where p.id = d.personalization_id
$$;
comment on function app_private.discount_amount(app_public.personalization_discounts) is
  'What a discount takes off: its percentage of what it is of, rounded half up to the digits of the currency, its highest amount at most; what was agreed once it is approved.';

create function app_private.personalization_sums(p app_public.personalizations) returns app_private.personalization_sums
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select row(app_hidden.round_money(t.selections, t.currency), app_hidden.round_money(t.discounts, t.currency), app_hidden.round_money(t.credits, t.currency),
    app_hidden.round_money(greatest(0, t.selections - t.discounts - t.credits), t.currency))::app_private.personalization_sums
  from (
    select j.currency,
      coalesce((select sum(app_hidden.round_money(coalesce(s.unit_price, o.price) * s.quantity, j.currency))
        from app_public.personalization_selections s join app_public.spec_options o on o.id = s.option_id where s.personalization_id = p.id), 0) as selections,
      coalesce((select sum(app_private.discount_amount(d)) from app_public.personalization_discounts d
        where d.personalization_id = p.id and d.deleted_at is null), 0) as discounts,
      coalesce((select sum(c.amount) from app_public.personalization_credits c
        where c.personalization_id = p.id and c.deleted_at is null), 0) as credits
    from app_public.projects j where j.id = p.project_id
  ) t
$$;
comment on function app_private.personalization_sums(app_public.personalizations) is
  'The price of the options, less discounts, less credits, never below zero; each line rounded half up to the digits of the currency.';

create or replace function app_private.personalization_total(unit_id uuid, lead_id uuid, buyer_id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(sum((app_private.personalization_sums(p)).total), 0) from app_public.personalizations p
  where p.unit_id = $1 and (p.lead_id = $2 or p.buyer_id = $3) and p.status in ('APPROVED', 'SIGNED', 'LOCKED') and p.deleted_at is null
$$;

--------------------------------------------------------------------------------------------------------
-- Writing.

create function app_private.tg_personalizations__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  buyer app_public.buyers;
  service text := coalesce(current_setting('plat.service', true), '');
  other app_public.personalizations;
begin
  if tg_op = 'INSERT' then
    select u.project_id, u.organization_id into new.project_id, new.organization_id from app_public.units u where u.id = new.unit_id and u.deleted_at is null;
    if new.lead_id is not null and new.buyer_id is not null then
      perform app_hidden.fail('BAD_USER_INPUT', 'Name the lead or the buyer, not both.', '{"field": "leadId"}');
    elsif new.lead_id is not null then
      select l.assignee_id into new.assignee_id from app_public.leads l where l.id = new.lead_id and l.project_id = new.project_id and l.deleted_at is null;
      if not found then
        perform app_hidden.fail('NOT_FOUND', 'There is no such lead in the project of the unit.', '{"field": "leadId"}');
      end if;
    elsif new.buyer_id is not null then
      select * into buyer from app_public.buyers b where b.id = new.buyer_id and b.project_id = new.project_id and b.deleted_at is null;
      if buyer.id is null then
        perform app_hidden.fail('NOT_FOUND', 'There is no such buyer in the project of the unit.', '{"field": "buyerId"}');
      elsif buyer.unit_id is distinct from new.unit_id then
        perform app_hidden.fail('BAD_USER_INPUT', 'This is not the unit that the buyer buys.', '{"field": "unitId"}');
      elsif buyer.status = 'CANCELLED' then
        perform app_hidden.fail('CONFLICT', 'This purchase was cancelled.', '{"field": "buyerId"}');
      end if;
      new.assignee_id := buyer.assignee_id;
    else
      new.assignee_id := app_public.current_user_id();
    end if;
    return new;
  end if;
  if new.status is distinct from old.status then
    case new.status
      when 'SUBMITTED' then
        if not exists (select from app_public.personalization_selections s where s.personalization_id = new.id) then
          perform app_hidden.fail('BAD_USER_INPUT', 'Choose at least one option before you hand it in.', '{"field": "selections"}');
        end if;
        new.submitted_at := now();
      when 'APPROVED' then
        new.approved_at := now();
        new.approved_by_id := app_public.current_user_id();
        -- An element is sold once: an earlier choice that is not signed gives way.
        for other in
          select distinct on (p.id) p.* from app_public.personalizations p
          join app_public.personalization_selections s on s.personalization_id = p.id
          join app_public.personalization_selections mine on mine.element_id = s.element_id and mine.personalization_id = new.id
          join app_public.spec_elements e on e.id = s.element_id and (e.selection_mode = 'SINGLE' or s.option_id = mine.option_id)
          where p.unit_id = new.unit_id and p.id <> new.id and p.deleted_at is null and p.status in ('APPROVED', 'SIGNED', 'LOCKED')
            and p.lead_id is not distinct from new.lead_id and p.buyer_id is not distinct from new.buyer_id
          order by p.id
        loop
          if other.status <> 'APPROVED' then
            perform app_hidden.fail('CONFLICT', 'Something was chosen here that was signed for in another personalization of this unit.',
              jsonb_build_object('existingId', other.id));
          end if;
          perform set_config('plat.service', 'on', true);
          update app_public.personalizations p set status = 'SUPERSEDED' where p.id = other.id;
          perform set_config('plat.service', service, true);
        end loop;
        update app_public.personalization_selections s set unit_price = o.price
          from app_public.spec_options o where o.id = s.option_id and s.personalization_id = new.id;
        update app_public.personalization_discounts d set amount = app_private.discount_amount(d)
          where d.personalization_id = new.id and d.deleted_at is null;
      when 'SIGNED' then
        new.signed_at := now();
      when 'LOCKED' then
        new.locked_at := now();
      else
        null;
    end case;
  end if;
  return new;
end $$;
create trigger _010_prepare before insert on app_public.personalizations for each row execute function app_private.tg_personalizations__prepare();
create trigger _310_prepare before update on app_public.personalizations for each row
  when (old.status is distinct from new.status) execute function app_private.tg_personalizations__prepare();
select app_private.make_project_record('personalizations', 'personalization', 'sale.write');
comment on column app_public.personalizations.assignee_id is E'@secret\n@behavior -*\n\nThe member who works on the deal.';
drop trigger _900_touch on app_public.personalizations;
create trigger _900_touch before update on app_public.personalizations for each row execute function app_private.tg__touch('assignee_id');
select app_private.make_state_machine('personalizations', 'personalization',
  steps => array[
    ['DRAFT', 'SUBMITTED', 'hand', null], ['CHANGES_REQUESTED', 'SUBMITTED', 'hand', null],
    ['SUBMITTED', 'APPROVED', 'hand', 'sale.write'], ['SUBMITTED', 'CHANGES_REQUESTED', 'hand', 'sale.write'],
    ['APPROVED', 'SIGNED', 'hand', 'sale.write'], ['SIGNED', 'LOCKED', 'hand', 'sale.write'], ['APPROVED', 'SUPERSEDED', 'service', null],
    ['DRAFT', 'CANCELLED', 'hand', null], ['SUBMITTED', 'CANCELLED', 'hand', null], ['CHANGES_REQUESTED', 'CANCELLED', 'hand', null],
    ['APPROVED', 'CANCELLED', 'hand', 'sale.write']],
  initial => array['DRAFT']);
insert into app_private.event_names (subject, column_name, value, name) values
  ('personalization', 'status', 'SUBMITTED', 'submitted'), ('personalization', 'status', 'APPROVED', 'approved'),
  ('personalization', 'status', 'SIGNED', 'signed'), ('personalization', 'status', 'LOCKED', 'locked'),
  ('personalization', 'status', 'CANCELLED', 'cancelled');

create function app_private.tg_personalizations__keep() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if old.status in ('APPROVED', 'SIGNED', 'LOCKED') then
    perform app_hidden.fail('CONFLICT', 'What was agreed stays; cancel it instead, as long as it is not signed.');
  end if;
  return old;
end $$;
create trigger _300_keep before delete on app_public.personalizations for each row execute function app_private.tg_personalizations__keep();

create function app_private.tg_personalization_selections__check() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  personalization app_public.personalizations;
  option app_public.spec_options;
  element app_public.spec_elements;
  reached text;
begin
  select * into personalization from app_public.personalizations p
    where p.id = case when tg_op = 'DELETE' then old.personalization_id else new.personalization_id end for no key update;
  if personalization.id is null then
    return case when tg_op = 'DELETE' then old else new end; -- goes with its personalization, or is refused by its foreign key
  end if;
  if tg_op = 'UPDATE' and row(old.option_id, old.quantity, old.note) is not distinct from row(new.option_id, new.quantity, new.note) then
    return new; -- prices are frozen by the service
  end if;
  if personalization.status not in ('DRAFT', 'CHANGES_REQUESTED') then
    perform app_hidden.fail('CONFLICT', format('A personalization that is %s takes no other options%s.', personalization.status,
      case when personalization.status = 'SUBMITTED' then '; set it to CHANGES_REQUESTED first' else '' end), '{"field": "selections"}');
  end if;
  select * into option from app_public.spec_options o where o.id = case when tg_op = 'DELETE' then old.option_id else new.option_id end;
  select * into element from app_public.spec_elements e where e.id = option.element_id;
  select u.construction_status into reached from app_public.units u where u.id = personalization.unit_id;
  if app_private.construction_has_come_to(reached, element.lock_phase) then
    perform app_hidden.fail('CONFLICT', format('Nothing can be changed about "%s" any more: construction has come to %s.', element.title, reached),
      '{"field": "selections"}');
  end if;
  if tg_op = 'DELETE' then
    return old;
  end if;
  if option.id is null or option.project_id <> personalization.project_id or option.deleted_at is not null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such option in the project of the unit.', '{"field": "selections.optionId"}');
  elsif not option.active then
    perform app_hidden.fail('BAD_USER_INPUT', format('"%s" is not offered any more.', option.title), '{"field": "selections.optionId"}');
  elsif new.quantity > option.max_quantity then
    perform app_hidden.fail('BAD_USER_INPUT', format('"%s" is offered %s times at most.', option.title, option.max_quantity), '{"field": "selections.quantity"}');
  elsif element.selection_mode = 'SINGLE' and exists (select from app_public.personalization_selections s
      where s.personalization_id = new.personalization_id and s.element_id = element.id and s.option_id <> new.option_id) then
    perform app_hidden.fail('BAD_USER_INPUT', format('Choose one option for "%s".', element.title), '{"field": "selections"}');
  end if;
  new.project_id := personalization.project_id;
  new.element_id := element.id;
  return new;
end $$;
create trigger _200_check before insert or update or delete on app_public.personalization_selections
  for each row execute function app_private.tg_personalization_selections__check();

create function app_private.tg__price_part() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  personalization app_public.personalizations;
  promotion app_public.promotions;
  currency text;
  is_credit boolean := tg_table_name = 'personalization_credits';
  touched record := case when tg_op = 'DELETE' then old else new end;
begin
  select * into personalization from app_public.personalizations p where p.id = touched.personalization_id for no key update;
  if personalization.status in ('SIGNED', 'LOCKED', 'SUPERSEDED', 'CANCELLED') then
    perform app_hidden.fail('CONFLICT', format('A personalization that is %s keeps its price.', personalization.status), '{"field": "personalizationId"}');
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
    -- What was approved before has its amount; a discount that comes or changes later is agreed at once.
    if personalization.status = 'APPROVED' and (tg_op = 'INSERT' or row(new.percent, new.max_amount) is distinct from row(old.percent, old.max_amount)) then
      new.amount := null;
      new.amount := app_private.discount_amount(new);
    end if;
  end if;
  if tg_op = 'INSERT' and new.promotion_id is not null then
    select * into promotion from app_public.promotions p
      where p.id = new.promotion_id and p.project_id = personalization.project_id and p.deleted_at is null for no key update;
    if promotion.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such promotion in the project.', '{"field": "promotionId"}');
    elsif app_public.promotions_status(promotion) <> 'ACTIVE' then
      perform app_hidden.fail('CONFLICT', format('This promotion does not run: it is %s.', app_public.promotions_status(promotion)), '{"field": "promotionId"}');
    elsif not promotion.stackable and (
        exists (select from app_public.personalization_credits c where c.personalization_id = personalization.id and c.promotion_id is not null and c.deleted_at is null)
        or exists (select from app_public.personalization_discounts d where d.personalization_id = personalization.id and d.promotion_id is not null and d.deleted_at is null)) then
      perform app_hidden.fail('CONFLICT', 'This promotion does not go together with another.', '{"field": "promotionId"}');
    end if;
    update app_public.promotions p set usage_count = p.usage_count + 1 where p.id = promotion.id;
  end if;
  return new;
end $$;
comment on function app_private.tg__price_part() is 'Keeps credits and discounts right: as long as nothing is signed, in the currency of the project, by promotions that run.';
create trigger _200_price_part before insert or update or delete on app_public.personalization_credits
  for each row execute function app_private.tg__price_part();
create trigger _200_price_part before insert or update or delete on app_public.personalization_discounts
  for each row execute function app_private.tg__price_part();

create function app_private.tg__give_promotion_back() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.promotions p set usage_count = greatest(0, p.usage_count - 1) where p.id = new.promotion_id;
  return null;
end $$;
create trigger _500_give_back after update of deleted_at on app_public.personalization_credits for each row
  when (old.deleted_at is null and new.deleted_at is not null and new.promotion_id is not null) execute function app_private.tg__give_promotion_back();
create trigger _500_give_back after update of deleted_at on app_public.personalization_discounts for each row
  when (old.deleted_at is null and new.deleted_at is not null and new.promotion_id is not null) execute function app_private.tg__give_promotion_back();

create function app_private.tg_spec_options__excluded() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.excluded_option_ids := array(select distinct i from unnest(new.excluded_option_ids) i where i <> new.id order by i);
  if exists (select from unnest(new.excluded_option_ids) i (id) where not exists (
      select from app_public.spec_options o where o.id = i.id and o.project_id = new.project_id and o.deleted_at is null)) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such option in this project.', '{"field": "excludedOptionIds"}');
  end if;
  return new;
end $$;
create trigger _210_excluded before insert or update of excluded_option_ids on app_public.spec_options
  for each row when (new.excluded_option_ids <> '{}') execute function app_private.tg_spec_options__excluded();

create function app_hidden.choose_options(personalization_id uuid, selections app_public.personalization_selection_input[]) returns void
language plpgsql volatile as $$
declare
  choice app_public.personalization_selection_input;
begin
  if cardinality(selections) > 500 then
    perform app_hidden.fail('LIMIT_EXCEEDED', 'A personalization has 500 options at most.', '{"field": "selections", "limit": 500}');
  end if;
  foreach choice in array coalesce(selections, '{}') loop
    if choice.option_id is null then
      perform app_hidden.fail('BAD_USER_INPUT', 'Name the option.', '{"field": "selections.optionId"}');
    elsif coalesce(choice.quantity, 1) <> round(coalesce(choice.quantity, 1), 2) then
      perform app_hidden.fail('BAD_USER_INPUT', 'Give a quantity with 2 digits after the point at most.', '{"field": "selections.quantity"}');
    elsif not coalesce(choice.quantity, 1) between 0.01 and 10000 then
      perform app_hidden.fail('BAD_USER_INPUT', 'Give a quantity above 0, 10,000 at most.', '{"field": "selections.quantity"}');
    elsif not exists (select from app_public.spec_options o where o.id = choice.option_id) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such option in the project of the unit.', '{"field": "selections.optionId"}');
    elsif (select count(*) from unnest(selections) s where s.option_id = choice.option_id) > 1 then
      perform app_hidden.fail('BAD_USER_INPUT', 'Name each option once, with its quantity.', '{"field": "selections.optionId"}');
    end if;
  end loop;
  delete from app_public.personalization_selections s
    where s.personalization_id = choose_options.personalization_id and s.option_id <> all (array(select n.option_id from unnest(selections) n));
  insert into app_public.personalization_selections as s (personalization_id, option_id, quantity, note)
    select choose_options.personalization_id, n.option_id, coalesce(n.quantity, 1), nullif(btrim(n.note), '') from unnest(selections) n
    where not exists (select from app_public.personalization_selections x
      where x.personalization_id = choose_options.personalization_id and x.option_id = n.option_id);
  update app_public.personalization_selections s set quantity = coalesce(n.quantity, 1), note = nullif(btrim(n.note), '')
    from unnest(selections) n
    where s.personalization_id = choose_options.personalization_id and s.option_id = n.option_id
      and row(s.quantity, s.note) is distinct from row(coalesce(n.quantity, 1), nullif(btrim(n.note), ''));
  update app_public.personalizations p set selections_changed_at = now() where p.id = choose_options.personalization_id;
end $$;
comment on function app_hidden.choose_options(uuid, app_public.personalization_selection_input[]) is
  'Replaces the options of a personalization, as the viewer; what is locked may stay in the list but not change.';

create function app_public.create_personalization(input jsonb, selections app_public.personalization_selection_input[] default null)
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
@arg selections The options to begin with.

Begins the choice of options for a unit. A buyer does so for the own purchase.$$;

create function app_public.update_personalization(input jsonb, selections app_public.personalization_selection_input[] default null)
returns app_public.personalizations
language plpgsql volatile as $$
declare
  result app_public.personalizations;
begin
  perform app_hidden.require_viewer();
  -- One change after the other, and the version that was expected is compared with the one there is then.
  perform from app_public.personalizations p where p.id = app_hidden.record_id('personalizations', input ->> 'id') for no key update;
  if selections is not null then
    if (input ->> 'expected_version') is not null then
      perform app_hidden.update_record(null::app_public.personalizations, jsonb_build_object('id', input -> 'id', 'expected_version', input -> 'expected_version'));
    else
      perform app_hidden.update_record(null::app_public.personalizations, jsonb_build_object('id', input -> 'id'));
    end if;
    perform app_hidden.choose_options((input ->> 'id')::uuid, selections);
    input := input - 'expected_version';
  end if;
  result := app_hidden.update_record(null::app_public.personalizations, input);
  return result;
end $$;
comment on function app_public.update_personalization is $$
@arg selections Replaces the options; in DRAFT and CHANGES_REQUESTED only.

Changes a personalization or takes its next step. A buyer chooses, hands in and calls off; the rest is up to the sales team.$$;
grant execute on function app_public.create_personalization, app_public.update_personalization to plat_user, plat_anonymous;

--------------------------------------------------------------------------------------------------------
-- Reading.

create function app_public.personalizations_currency(p app_public.personalizations) returns app_public.currency_code
language sql stable as $$ select app_private.project_currency(p.project_id) $$;
create function app_public.personalizations_selections_total(p app_public.personalizations) returns app_public.money
language sql stable as $$ select (app_private.personalization_sums(p)).selections $$;
create function app_public.personalizations_credits_total(p app_public.personalizations) returns app_public.money
language sql stable as $$ select (app_private.personalization_sums(p)).credits $$;
create function app_public.personalizations_discounts_total(p app_public.personalizations) returns app_public.money
language sql stable as $$ select (app_private.personalization_sums(p)).discounts $$;
create function app_public.personalizations_total(p app_public.personalizations) returns app_public.money
language sql stable as $$ select (app_private.personalization_sums(p)).total $$;
create function app_public.personalizations_allowed_transitions(p app_public.personalizations) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('personalization', to_jsonb(p)) $$;
create function app_public.personalizations_warnings(p app_public.personalizations) returns text[]
language sql stable as $$
  select coalesce(array_agg(w.text order by w.text), '{}') from (
    select format('Nothing is chosen for "%s", which is required.', e.title) as text from app_public.spec_elements e
      where e.project_id = p.project_id and e.required and e.deleted_at is null
        and not exists (select from app_public.personalization_selections s where s.personalization_id = p.id and s.element_id = e.id)
    union all
    select format('"%s" can no longer be changed: construction has come to %s.', e.title, u.construction_status)
      from app_public.personalization_selections s join app_public.spec_elements e on e.id = s.element_id join app_public.units u on u.id = p.unit_id
      where s.personalization_id = p.id and app_private.construction_has_come_to(u.construction_status, e.lock_phase)
        and p.status in ('DRAFT', 'SUBMITTED', 'CHANGES_REQUESTED')
    union all
    select format('"%s" and "%s" do not go together.', a.title, b.title)
      from app_public.personalization_selections s join app_public.spec_options a on a.id = s.option_id
      join app_public.personalization_selections t on t.personalization_id = s.personalization_id and t.id <> s.id
      join app_public.spec_options b on b.id = t.option_id
      where s.personalization_id = p.id and (b.id = any (a.excluded_option_ids) or a.id = any (b.excluded_option_ids)) and row(a.title, a.id) < row(b.title, b.id)
    union all
    select 'The options were to be chosen by ' || p.due_on || '.'
      where p.status in ('DRAFT', 'CHANGES_REQUESTED')
        and p.due_on < (now() at time zone (select j.time_zone from app_public.projects j where j.id = p.project_id))::date
  ) w
  where p.status not in ('CANCELLED', 'SUPERSEDED')
$$;
create function app_public.personalization_selections_unit_price(s app_public.personalization_selections) returns app_public.money
language sql stable as $$ select coalesce(s.unit_price, (select o.price from app_public.spec_options o where o.id = s.option_id)) $$;
create function app_public.personalization_selections_total(s app_public.personalization_selections) returns app_public.money
language sql stable as $$ select app_hidden.round_money(app_public.personalization_selections_unit_price(s) * s.quantity, app_private.project_currency(s.project_id)) $$;
create function app_public.personalization_selections_locked(s app_public.personalization_selections) returns boolean
language sql stable as $$
  select coalesce(p.status in ('SIGNED', 'LOCKED') or app_private.construction_has_come_to(u.construction_status, e.lock_phase), false)
  from app_public.personalizations p join app_public.units u on u.id = p.unit_id join app_public.spec_elements e on e.id = s.element_id
  where p.id = s.personalization_id
$$;
create function app_public.personalization_credits_currency(c app_public.personalization_credits) returns app_public.currency_code
language sql stable as $$ select app_private.project_currency(c.project_id) $$;
create function app_public.personalization_discounts_currency(d app_public.personalization_discounts) returns app_public.currency_code
language sql stable as $$ select app_private.project_currency(d.project_id) $$;
create function app_public.personalization_discounts_amount(d app_public.personalization_discounts) returns app_public.money
language sql stable as $$ select app_private.discount_amount(d) $$;
grant execute on function app_private.personalization_sums(app_public.personalizations), app_private.discount_amount(app_public.personalization_discounts),
  app_private.construction_has_come_to(text, text), app_private.project_currency(uuid) to plat_user, plat_anonymous;
grant execute on function app_public.personalizations_currency, app_public.personalizations_selections_total, app_public.personalizations_credits_total,
  app_public.personalizations_discounts_total, app_public.personalizations_total, app_public.personalizations_allowed_transitions,
  app_public.personalizations_warnings, app_public.personalization_selections_unit_price, app_public.personalization_selections_total,
  app_public.personalization_selections_locked, app_public.personalization_credits_currency, app_public.personalization_discounts_currency,
  app_public.personalization_discounts_amount to plat_user, plat_anonymous;
comment on function app_public.personalizations_currency is E'@notNull\n\nCurrency of its amounts, that of the project.';
comment on function app_public.personalizations_selections_total is E'@notNull\n\nThe price of all options.';
comment on function app_public.personalizations_credits_total is E'@notNull\n\nThe sum of the credits.';
comment on function app_public.personalizations_discounts_total is E'@notNull\n\nThe sum of the discounts.';
comment on function app_public.personalizations_total is E'@notNull\n\nThe price of all options less discounts and credits, never below zero.';
comment on function app_public.personalizations_allowed_transitions is E'@notNull\n\nThe steps that it can take from its status.';
comment on function app_public.personalizations_warnings is
  E'@notNull\n\nWhat somebody should look at: required elements without a choice, options that do not go together, what construction has overtaken, a day that is over.';
comment on function app_public.personalization_selections_unit_price is E'@notNull\n\nThe price of one: that of today, or the one that was agreed.';
comment on function app_public.personalization_selections_total is E'@notNull\n\nThe price of one times the quantity.';
comment on function app_public.personalization_selections_locked is E'@notNull\n\nWhether it can no longer be changed.';
comment on function app_public.personalization_credits_currency is E'@notNull\n\nCurrency of the amount.';
comment on function app_public.personalization_discounts_currency is E'@notNull\n\nCurrency of the amount.';
comment on function app_public.personalization_discounts_amount is E'@notNull\n\nWhat it takes off, rounded half up to the digits of the currency.';

comment on table app_public.personalizations is 'The options that somebody chooses for a unit.';
comment on column app_public.personalizations.unit_id is 'The unit.';
comment on column app_public.personalizations.lead_id is 'The lead who chooses; either this, or the buyer, or nobody for a show home.';
comment on column app_public.personalizations.buyer_id is 'The purchase that it belongs to.';
comment on column app_public.personalizations.title is 'What it is called.';
comment on column app_public.personalizations.status is 'How far it is.';
comment on column app_public.personalizations.status_changed_at is 'Since when it has its status.';
comment on column app_public.personalizations.submitted_at is 'When it was handed in last.';
comment on column app_public.personalizations.approved_at is 'When it was agreed.';
comment on column app_public.personalizations.approved_by_id is 'Who agreed.';
comment on column app_public.personalizations.signed_at is 'When it was signed.';
comment on column app_public.personalizations.locked_at is 'Since when it is being built.';
comment on column app_public.personalizations.due_on is 'By when the options are to be chosen.';
comment on column app_public.personalizations.notes is 'Notes that the buyer reads too.';
comment on column app_public.personalizations.selections_changed_at is E'@behavior -insert -update\n\nWhen its options changed last.';
comment on constraint personalizations_unit_id_fkey on app_public.personalizations is
  E'@fieldName unit\n@foreignFieldName personalizations\n@backwardPermission sale.read\n@backwardDescription The choices of options, newest first; null without the permission sale.read.\n\nThe unit.';
comment on constraint personalizations_lead_id_fkey on app_public.personalizations is
  E'@fieldName lead\n@foreignFieldName personalizations\n@backwardDescription The options that the lead chose, newest first.\n\nThe lead who chooses.';
comment on constraint personalizations_buyer_id_fkey on app_public.personalizations is
  E'@fieldName buyer\n@foreignFieldName personalizations\n@backwardDescription The options chosen for the purchase, newest first.\n\nThe purchase that it belongs to.';
comment on constraint personalizations_assignee_id_fkey on app_public.personalizations is E'@behavior -*\n\nThe member who works on the deal.';
comment on constraint personalizations_approved_by_id_fkey on app_public.personalizations is E'@fieldName approvedBy\n@backwardBehavior -*\n\nWho agreed.';
comment on table app_public.personalization_selections is E'@behavior -operation\n@defaultOrder selected_at asc, id asc\n\nAn option that was chosen.';
comment on column app_public.personalization_selections.personalization_id is 'The personalization.';
comment on column app_public.personalization_selections.element_id is 'The element that it is for.';
comment on column app_public.personalization_selections.option_id is 'The option.';
comment on column app_public.personalization_selections.selected_by_id is 'Who chose it.';
comment on column app_public.personalization_selections.quantity is 'How many.';
comment on column app_public.personalization_selections.unit_price is E'@masked\n\nThe price of one.';
comment on column app_public.personalization_selections.note is 'A note on it.';
comment on column app_public.personalization_selections.selected_at is 'When it was chosen.';
comment on constraint personalization_selections_personalization_id_fkey on app_public.personalization_selections is
  E'@forwardBehavior -*\n@foreignFieldName selections\n@backwardDescription The options, in the order chosen.\n\nThe personalization.';
comment on constraint personalization_selections_element_id_fkey on app_public.personalization_selections is E'@fieldName element\n@backwardBehavior -*\n\nThe element that it is for.';
comment on constraint personalization_selections_option_id_fkey on app_public.personalization_selections is E'@fieldName option\n@backwardBehavior -*\n\nThe option.';
comment on constraint personalization_selections_selected_by_id_fkey on app_public.personalization_selections is E'@fieldName selectedBy\n@backwardBehavior -*\n\nWho chose it.';
comment on table app_public.personalization_credits is E'@defaultOrder id asc\n\nA fixed amount that is taken off.';
comment on column app_public.personalization_credits.created_by_id is 'Who gave it.';
comment on column app_public.personalization_credits.title is 'What it is called.';
comment on column app_public.personalization_credits.personalization_id is 'The personalization.';
comment on column app_public.personalization_credits.amount is 'The amount.';
comment on column app_public.personalization_credits.reason is 'Why it is given.';
comment on column app_public.personalization_credits.promotion_id is 'The promotion that gives it, which must run.';
comment on constraint personalization_credits_promotion_id_fkey on app_public.personalization_credits is E'@fieldName promotion\n@backwardBehavior -*\n\nThe promotion that gives it.';
comment on constraint personalization_credits_created_by_id_fkey on app_public.personalization_credits is E'@fieldName createdBy\n@backwardBehavior -*\n\nWho gave it.';
comment on table app_public.personalization_discounts is E'@defaultOrder id asc\n\nA percentage that is taken off.';
comment on column app_public.personalization_discounts.created_by_id is 'Who gave it.';
comment on column app_public.personalization_discounts.title is 'What it is called.';
comment on column app_public.personalization_discounts.personalization_id is 'The personalization.';
comment on column app_public.personalization_discounts.percent is 'The percentage, above 0 to 100.';
comment on column app_public.personalization_discounts.applies_to is 'What the percentage is of.';
comment on column app_public.personalization_discounts.category_id is 'The category whose options it is of, with CATEGORY only.';
comment on column app_public.personalization_discounts.max_amount is 'The most that it takes off.';
comment on column app_public.personalization_discounts.amount is E'@masked\n@behavior -insert -update\n\nWhat it takes off.';
comment on column app_public.personalization_discounts.reason is 'Why it is given.';
comment on column app_public.personalization_discounts.promotion_id is 'The promotion that gives it, which must run.';
comment on constraint personalization_discounts_category_id_fkey on app_public.personalization_discounts is E'@fieldName category\n@backwardBehavior -*\n\nThe category whose options it is of.';
comment on constraint personalization_discounts_promotion_id_fkey on app_public.personalization_discounts is E'@fieldName promotion\n@backwardBehavior -*\n\nThe promotion that gives it.';
comment on constraint personalization_discounts_created_by_id_fkey on app_public.personalization_discounts is E'@fieldName createdBy\n@backwardBehavior -*\n\nWho gave it.';

create function app_public.buyers_personalization(b app_public.buyers) returns app_public.personalizations
language sql stable as $$
  select p from app_public.personalizations p
  where p.unit_id = b.unit_id and (p.buyer_id = b.id or p.lead_id = b.lead_id) and p.status not in ('CANCELLED', 'SUPERSEDED')
  order by p.id desc limit 1
$$;
grant execute on function app_public.buyers_personalization to plat_user, plat_anonymous;
comment on function app_public.buyers_personalization is 'The options chosen last for the home.';
