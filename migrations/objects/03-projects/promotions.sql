-- Promotions: benefits for buyers, limited in time and number of uses. The column stores the decision of users (DRAFT,
-- PAUSED, ENDED, or ACTIVE), promotions_status computes the current status from it, the time and the uses.
--
-- Also the records that promotions apply to, and the units of lease permits: links between catalogue and inventory
-- within a project.

select app_private.make_public_table('promotions', 'promotion', 'marketing.manage', 'promotions',
  'Promotions, latest first; users outside the team see public ones that are neither DRAFT nor PAUSED.',
  shown => 'public and status in (''ACTIVE'', ''ENDED'')',
  -- Its events name the claimant, even after its release.
  event_permission => 'marketing.read');

grant insert (project_id, title, description, code, kind, amount, percent, max_amount, status, starts_at, ends_at,
  applies_to, stackable, usage_limit, terms, public), update (title, description, code, status, amount, percent,
  max_amount, starts_at, ends_at, stackable, usage_limit, terms, public), delete on app_public.promotions to plat_user;
grant insert (unit_ids, lot_ids, floor_plan_ids), update (unit_ids, lot_ids, floor_plan_ids) on app_public.promotions to
  plat_user;

comment on table app_public.promotions is
  E'@defaultOrder starts_at desc, id desc\n\n'
  'An incentive for buyers that is limited in time, such as a price reduction.';
comment on column app_public.promotions.title is 'Display title.';
comment on column app_public.promotions.description is 'Description of the benefit.';
comment on column app_public.promotions.code is
  'Promotion code for buyers; unique in the project, ignoring case.';
comment on column app_public.promotions.kind is E'@filter\n\nKind of benefit.';
comment on column app_public.promotions.amount is
  'Fixed amount in the currency of the project. Set either this or `percent`.';
comment on column app_public.promotions.percent is
  'Percentage, greater than 0 and at most 100. Set either this or `amount`.';
comment on column app_public.promotions.max_amount is 'Maximum amount of the percentage discount.';
comment on column app_public.promotions.status is
  E'@writeOnly\n\n'
  'DRAFT and PAUSED suspend it, ENDED ends it. With SCHEDULED or ACTIVE it runs from `startsAt` to `endsAt`, until '
  '`usageLimit` is reached.';
comment on column app_public.promotions.starts_at is
  E'@filter\n\nStart of the promotion, unless it is DRAFT or PAUSED.';
comment on column app_public.promotions.ends_at is 'End of the promotion; null if open-ended.';
comment on column app_public.promotions.applies_to is
  'Whether it covers the entire project or only the listed units, lots or floor plans.';
comment on column app_public.promotions.stackable is 'Whether it can be combined with other promotions.';
comment on column app_public.promotions.usage_limit is 'Maximum number of uses; null for no limit.';
comment on column app_public.promotions.usage_count is 'Number of times it was used.';
comment on column app_public.promotions.terms is 'Terms and conditions.';
comment on column app_public.promotions.public is 'Whether everyone who can see the project can see it.';
comment on column app_public.promotions.unit_ids is
  E'@writeOnly\n\nIds of the units, for the scope UNITS; replaces the previous ones.';
comment on column app_public.promotions.lot_ids is
  E'@writeOnly\n\nIds of the lots, for the scope LOTS; replaces the previous ones.';
comment on column app_public.promotions.floor_plan_ids is
  E'@writeOnly\n\nIds of the floor plans, for the scope FLOOR_PLANS; replaces the previous ones.';
comment on constraint promotions_code_format on app_public.promotions is
  'A code has 2 to 40 letters, digits, hyphens and underscores, such as SPRING-25.';
comment on constraint promotions_amount_some on app_public.promotions is 'The amount must be greater than zero.';
comment on constraint promotions_percent_range on app_public.promotions is
  'A percentage must be greater than 0 and at most 100, with at most 4 decimal places.';
comment on constraint promotions_max_amount_some on app_public.promotions is 'The amount must be greater than zero.';
comment on constraint promotions_usage_limit_some on app_public.promotions is
  'Must be greater than zero; omit it for no limit.';
comment on constraint promotions_usage_count_range on app_public.promotions is
  'The promotion has reached its usage limit.';
comment on constraint promotions_order on app_public.promotions is 'A promotion must end after it starts.';
comment on constraint promotions_cap on app_public.promotions is
  'A maximum amount can only be combined with a percentage.';
comment on constraint promotions_kept_status on app_public.promotions is
  'Only DRAFT, ACTIVE, PAUSED and ENDED can be set; other statuses follow from the time.';
comment on index app_public.promotions_code is 'There is already a promotion with this code in the project.';

insert into app_hidden.transitions (subject, from_state, to_state, by_service) values
  ('promotion', null, 'DRAFT', false), ('promotion', null, 'SCHEDULED', false), ('promotion', null, 'ACTIVE', false),
  ('promotion', 'DRAFT', 'SCHEDULED', false), ('promotion', 'DRAFT', 'ACTIVE', false),
  ('promotion', 'SCHEDULED', 'DRAFT', false), ('promotion', 'SCHEDULED', 'PAUSED', false),
  ('promotion', 'SCHEDULED', 'ENDED', false),
  ('promotion', 'ACTIVE', 'PAUSED', false), ('promotion', 'ACTIVE', 'ENDED', false),
  ('promotion', 'PAUSED', 'SCHEDULED', false), ('promotion', 'PAUSED', 'ACTIVE', false),
  ('promotion', 'PAUSED', 'ENDED', false),
  ('promotion', 'EXHAUSTED', 'ENDED', false),
  ('promotion', 'SCHEDULED', 'ACTIVE', true), ('promotion', 'ACTIVE', 'EXHAUSTED', true);

create function app_public.promotions_status(p app_public.promotions) returns app_public.promotion_status
language sql stable as $$
  select case
    when p.status = 'DRAFT' then 'DRAFT'
    when p.status = 'ENDED' or p.ends_at <= now() then 'ENDED'
    when p.usage_count >= p.usage_limit then 'EXHAUSTED'
    when p.status = 'PAUSED' then 'PAUSED'
    when p.starts_at > now() then 'SCHEDULED'
    else 'ACTIVE' end
$$;
grant execute on function app_public.promotions_status to plat_user, plat_anonymous;
comment on function app_public.promotions_status is
  E'@notNull\n\nStatus, derived from the one that the team set, from `startsAt` and `endsAt`, and from its usage.';

create function app_private.tg_promotions__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  currency text := (select p.currency from app_public.projects p where p.id = new.project_id);
  status_now text;
begin
  new.code := upper(new.code);
  new.amount := app_hidden.to_money(new.amount, currency, 'amount');
  new.max_amount := app_hidden.to_money(new.max_amount, currency, 'maxAmount');
  if new.amount is not null and new.percent is not null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either an amount or a percentage.', '{"field": "percent"}');
  elsif new.kind = 'PRICE_REDUCTION' and new.amount is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'A price reduction must be an amount.', '{"field": "amount"}');
  elsif new.kind in ('PERCENT_DISCOUNT', 'RATE_BUYDOWN') and new.percent is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'This kind of promotion must be a percentage.', '{"field": "percent"}');
  elsif new.kind = 'GIFT' and new.percent is not null then
    perform app_hidden.fail('BAD_USER_INPUT', 'A gift has no percentage; specify its value as an amount, or omit it.',
      '{"field": "percent"}');
  elsif new.kind <> 'GIFT' and new.amount is null and new.percent is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify an amount or a percentage.', '{"field": "amount"}');
  end if;
  if new.usage_limit < new.usage_count then
    perform app_hidden.fail('BAD_USER_INPUT',
      format('The promotion has already been used %s times; the limit cannot be lower.', new.usage_count),
      '{"field": "usageLimit"}');
  end if;
  if tg_op = 'INSERT' then
    if new.status in ('PAUSED', 'ENDED', 'EXHAUSTED') then
      perform app_private.require_step('promotion', null, new.status);
    end if;
  elsif new.status <> old.status then
    status_now := app_public.promotions_status(old);
    if new.status = status_now then
      new.status := old.status;
    else
      perform app_private.require_step('promotion', status_now, new.status);
    end if;
  end if;
  -- Whether it is scheduled or runs is up to the clock.
  if new.status = 'SCHEDULED' then
    new.status := 'ACTIVE';
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.promotions
  for each row execute function app_private.tg_promotions__prepare();

create policy with_promotion on app_hidden.promotion_targets for select to plat_user, plat_anonymous
  using ((select true from app_public.promotions p where p.id = promotion_id));

grant select on app_hidden.promotion_targets to plat_user, plat_anonymous;

comment on table app_hidden.promotion_targets is
  'The units, lots or floor plans that a promotion is for; none where it is for the whole project.';

create function app_private.tg_promotions__targets() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 5000;
  target record;
  ids uuid[];
  unknown boolean;
begin
  for target in select * from (values
    ('units', 'UNITS', 'unitIds', new.unit_ids), ('lots', 'LOTS', 'lotIds', new.lot_ids),
    ('floor_plans', 'FLOOR_PLANS', 'floorPlanIds', new.floor_plan_ids)) t (table_name, scope, field, given)
  loop
    ids := array(select distinct app_hidden.record_id(target.table_name, i, target.field)
      from unnest(target.given::text[]) i order by 1);
    if (ids <> '{}') and new.applies_to <> target.scope then
      perform app_hidden.fail('BAD_USER_INPUT',
        format('A promotion with appliesTo %s cannot have %s.', new.applies_to, target.field),
        jsonb_build_object('field', target.field));
    elsif ids = '{}' and new.applies_to = target.scope then
      perform app_hidden.fail('BAD_USER_INPUT',
        format('A promotion with appliesTo %s requires %s.', new.applies_to, target.field),
        jsonb_build_object('field', target.field));
    elsif cardinality(ids) > most then
      perform app_hidden.fail('LIMIT_EXCEEDED',
        'A promotion can list at most 5,000 records; use a floor plan or the project to cover all of its units.',
        jsonb_build_object('field', target.field, 'limit', most));
    end if;
    execute format('select exists (select from unnest($1) i (id) where not exists (
        select from app_public.%I r where r.id = i.id and r.project_id = $2 and r.deleted_at is null))',
          target.table_name)
      into unknown using ids, new.project_id;
    if unknown then
      perform app_hidden.fail('NOT_FOUND',
        format('There is no such %s in this project.', app_hidden.subject(target.table_name)),
        jsonb_build_object('field', target.field));
    end if;
    case target.table_name
      when 'units' then new.unit_ids := ids::text[];
      when 'lots' then new.lot_ids := ids::text[];
      else new.floor_plan_ids := ids::text[];
    end case;
  end loop;
  return new;
end $$;
create trigger _210_targets before insert or update of unit_ids, lot_ids, floor_plan_ids on app_public.promotions
  for each row execute function app_private.tg_promotions__targets();

create function app_private.tg_promotions__keep_targets() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'UPDATE' then
    delete from app_hidden.promotion_targets t where t.promotion_id = new.id;
  end if;
  insert into app_hidden.promotion_targets (promotion_id, project_id, unit_id)
    select new.id, new.project_id, i::uuid from unnest(new.unit_ids::text[]) i;
  insert into app_hidden.promotion_targets (promotion_id, project_id, lot_id)
    select new.id, new.project_id, i::uuid from unnest(new.lot_ids::text[]) i;
  insert into app_hidden.promotion_targets (promotion_id, project_id, floor_plan_id)
    select new.id, new.project_id, i::uuid from unnest(new.floor_plan_ids::text[]) i;
  return null;
end $$;
create trigger _500_keep_targets after insert on app_public.promotions
  for each row when (new.applies_to <> 'PROJECT') execute function app_private.tg_promotions__keep_targets();
create trigger _500_keep_new_targets after update on app_public.promotions
  for each row when (row(old.unit_ids, old.lot_ids, old.floor_plan_ids) is distinct
    from row(new.unit_ids, new.lot_ids, new.floor_plan_ids))
  execute function app_private.tg_promotions__keep_targets();

create function app_public.promotions_units(p app_public.promotions) returns setof app_public.units
language sql stable rows 20 as $$
  select u.* from app_hidden.promotion_targets t join app_hidden.masked_units u on u.id = t.unit_id
  where t.promotion_id = p.id
    order by u.id
$$;

create function app_public.promotions_lots(p app_public.promotions) returns setof app_public.lots
language sql stable rows 20 as $$
  select l.* from app_hidden.promotion_targets t join app_hidden.masked_lots l on l.id = t.lot_id
  where t.promotion_id = p.id
    order by l.id
$$;

create function app_public.promotions_floor_plans(p app_public.promotions) returns setof app_public.floor_plans
language sql stable rows 5 as $$
  select f.* from app_hidden.promotion_targets t join app_hidden.masked_floor_plans f on f.id = t.floor_plan_id
    where t.promotion_id = p.id
  order by f.sequence, f.id
$$;

grant execute on function app_public.promotions_units, app_public.promotions_lots, app_public.promotions_floor_plans,
  app_public.units_promotions to plat_user, plat_anonymous;
comment on function app_public.promotions_units is
  E'@ordered\n\nUnits that it applies to and that the viewer can see; only with the scope UNITS.';
comment on function app_public.promotions_lots is
  E'@ordered\n\nLots that it applies to and that the viewer can see; only with the scope LOTS.';
comment on function app_public.promotions_floor_plans is
  E'@ordered\n\nFloor plans that it applies to and that the viewer can see; only with the scope FLOOR_PLANS.';
