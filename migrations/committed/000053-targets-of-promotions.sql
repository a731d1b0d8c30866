--! Previous: sha1:d91d577ccf4b42755199f498b04b01101e7bd256
--! Hash: sha1:747ac7ee045bb129724bec1005e23f86b7ada501
--! Message: targets-of-promotions

-- What promotions are for, and whose lease permit is whose: links between the catalogue and inventory, within a project.

create table app_hidden.promotion_targets (
  promotion_id uuid not null,
  project_id uuid not null,
  unit_id uuid,
  lot_id uuid,
  floor_plan_id uuid,
  constraint promotion_targets_one check (num_nonnulls(unit_id, lot_id, floor_plan_id) = 1),
  constraint promotion_targets_promotion_id_fkey foreign key (promotion_id, project_id) references app_public.promotions (id, project_id) on delete cascade,
  constraint promotion_targets_unit_id_fkey foreign key (unit_id, project_id) references app_public.units (id, project_id) on delete cascade,
  constraint promotion_targets_lot_id_fkey foreign key (lot_id, project_id) references app_public.lots (id, project_id) on delete cascade,
  constraint promotion_targets_floor_plan_id_fkey foreign key (floor_plan_id, project_id) references app_public.floor_plans (id, project_id) on delete cascade
);
create unique index promotion_targets_unit on app_hidden.promotion_targets (promotion_id, unit_id) where unit_id is not null;
create unique index promotion_targets_lot on app_hidden.promotion_targets (promotion_id, lot_id) where lot_id is not null;
create unique index promotion_targets_floor_plan on app_hidden.promotion_targets (promotion_id, floor_plan_id) where floor_plan_id is not null;
create index promotion_targets_of_unit on app_hidden.promotion_targets (unit_id) where unit_id is not null;
create index promotion_targets_of_lot on app_hidden.promotion_targets (lot_id) where lot_id is not null;
create index promotion_targets_of_floor_plan on app_hidden.promotion_targets (floor_plan_id) where floor_plan_id is not null;

-- Whoever sees the promotion learns what it is for; which of these records they see, the policies of those say.
alter table app_hidden.promotion_targets enable row level security;
create policy with_promotion on app_hidden.promotion_targets for select to plat_user, plat_anonymous
  using ((select true from app_public.promotions p where p.id = promotion_id));
grant select on app_hidden.promotion_targets to plat_user, plat_anonymous, plat_worker;
comment on table app_hidden.promotion_targets is 'The units, lots or floor plans that a promotion is for; none where it is for the whole project.';

-- What callers give; a trigger keeps the targets by it.
alter table app_public.promotions
  add column unit_ids app_public.id_or_slug[] not null default '{}',
  add column lot_ids app_public.id_or_slug[] not null default '{}',
  add column floor_plan_ids app_public.id_or_slug[] not null default '{}';
grant insert (unit_ids, lot_ids, floor_plan_ids), update (unit_ids, lot_ids, floor_plan_ids) on app_public.promotions to plat_user;
comment on column app_public.promotions.unit_ids is E'@masked\n\nThe units that a promotion of the scope UNITS is for; replaces those it had.';
comment on column app_public.promotions.lot_ids is E'@masked\n\nThe lots that a promotion of the scope LOTS is for; replaces those it had.';
comment on column app_public.promotions.floor_plan_ids is E'@masked\n\nThe floor plans that a promotion of the scope FLOOR_PLANS is for; replaces those it had.';

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
    ids := array(select distinct app_hidden.record_id(target.table_name, i, target.field) from unnest(target.given::text[]) i order by 1);
    if (ids <> '{}') and new.applies_to <> target.scope then
      perform app_hidden.fail('BAD_USER_INPUT', format('A promotion with appliesTo %s takes no %s.', new.applies_to, target.field),
        jsonb_build_object('field', target.field));
    elsif ids = '{}' and new.applies_to = target.scope then
      perform app_hidden.fail('BAD_USER_INPUT', format('A promotion with appliesTo %s needs %s.', new.applies_to, target.field),
        jsonb_build_object('field', target.field));
    elsif cardinality(ids) > most then
      perform app_hidden.fail('LIMIT_EXCEEDED', 'A promotion is for 5,000 records at most; a floor plan or the project stands for all of its units.',
        jsonb_build_object('field', target.field, 'limit', most));
    end if;
    execute format('select exists (select from unnest($1) i (id) where not exists (
        select from app_public.%I r where r.id = i.id and r.project_id = $2 and r.deleted_at is null))', target.table_name)
      into unknown using ids, new.project_id;
    if unknown then
      perform app_hidden.fail('NOT_FOUND', format('There is no such %s in this project.', app_hidden.subject(target.table_name)),
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
  for each row when (row(old.unit_ids, old.lot_ids, old.floor_plan_ids) is distinct from row(new.unit_ids, new.lot_ids, new.floor_plan_ids))
  execute function app_private.tg_promotions__keep_targets();

create function app_public.promotions_units(p app_public.promotions) returns setof app_public.units
language sql stable rows 20 as $$
  select u.* from app_hidden.promotion_targets t join app_public.units u on u.id = t.unit_id where t.promotion_id = p.id order by u.id
$$;
create function app_public.promotions_lots(p app_public.promotions) returns setof app_public.lots
language sql stable rows 20 as $$
  select l.* from app_hidden.promotion_targets t join app_public.lots l on l.id = t.lot_id where t.promotion_id = p.id order by l.id
$$;
create function app_public.promotions_floor_plans(p app_public.promotions) returns setof app_public.floor_plans
language sql stable rows 5 as $$
  select f.* from app_hidden.promotion_targets t join app_public.floor_plans f on f.id = t.floor_plan_id where t.promotion_id = p.id
  order by f.sequence, f.id
$$;
create function app_public.units_promotions(u app_public.units) returns setof app_public.promotions
language sql stable rows 3 as $$
  select p.* from app_public.promotions p
  where p.project_id = u.project_id and p.deleted_at is null and app_public.promotions_status(p) = 'ACTIVE'
    and (p.applies_to = 'PROJECT' or exists (select from app_hidden.promotion_targets t
      where t.promotion_id = p.id and (t.unit_id = u.id or t.lot_id = u.lot_id or t.floor_plan_id = u.floor_plan_id)))
  order by p.starts_at desc, p.id desc
$$;
grant execute on function app_public.promotions_units, app_public.promotions_lots, app_public.promotions_floor_plans, app_public.units_promotions
  to plat_user, plat_anonymous;
comment on function app_public.promotions_units is E'@ordered\n\nThe units that it is for, as far as the viewer may see them; none but with the scope UNITS.';
comment on function app_public.promotions_lots is E'@ordered\n\nThe lots that it is for, as far as the viewer may see them; none but with the scope LOTS.';
comment on function app_public.promotions_floor_plans is
  E'@ordered\n\nThe floor plans that it is for, as far as the viewer may see them; none but with the scope FLOOR_PLANS.';
comment on function app_public.units_promotions is
  E'@ordered\n\nThe promotions that run now and are for this unit, its lot, its floor plan or the whole project; outsiders see the public ones.';

--------------------------------------------------------------------------------------------------------

alter table app_public.lease_permits add column unit_id uuid,
  add constraint lease_permits_unit_id_fkey foreign key (unit_id, project_id) references app_public.units (id, project_id) on delete restrict;
create unique index lease_permits_unit on app_public.lease_permits (unit_id)
  where deleted_at is null and unit_id is not null and status not in ('EXPIRED', 'REVOKED');
comment on index app_public.lease_permits_unit is 'The unit has a lease permit already.';
create index lease_permits_of_unit on app_public.lease_permits (unit_id) where unit_id is not null;
grant insert (unit_id), update (unit_id) on app_public.lease_permits to plat_user;
comment on column app_public.lease_permits.unit_id is 'The unit that may be let.';
comment on constraint lease_permits_unit_id_fkey on app_public.lease_permits is E'@fieldName unit\n@backwardBehavior -*\n\nThe unit that may be let.';

create function app_private.tg_lease_permits__unit() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_public.units u where u.id = new.unit_id and u.project_id = new.project_id and u.deleted_at is null) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such unit in this project.', '{"field": "unitId"}');
  end if;
  return new;
end $$;
create trigger _210_unit before insert or update of unit_id on app_public.lease_permits
  for each row when (new.unit_id is not null) execute function app_private.tg_lease_permits__unit();

create function app_public.units_lease_permit(u app_public.units) returns app_public.lease_permits
language sql stable as $$
  select l from app_public.lease_permits l
  where l.unit_id = u.id and l.deleted_at is null and l.status not in ('EXPIRED', 'REVOKED')
$$;
grant execute on function app_public.units_lease_permit to plat_user, plat_anonymous;
comment on function app_public.units_lease_permit is 'The lease permit that it has, but for one that expired or was revoked; null without the permission inventory.manage.';

--------------------------------------------------------------------------------------------------------

-- The event of an option holds its cost: it is for those who may know that.
update app_hidden.record_types set event_permission = 'finance.read' where table_name = 'spec_options';
-- That of a promotion names what it is for, be it released or not.
update app_hidden.record_types set event_permission = 'marketing.read' where table_name = 'promotions';
