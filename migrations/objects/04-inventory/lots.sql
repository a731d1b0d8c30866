-- Lots: the land of homes, sold alone or with a home.

create policy team_and_public on app_public.lots for select to plat_user
  using (deleted_at is null and (
    organization_id = any ((select app_hidden.viewer_organizations('inventory.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('inventory.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('construction.write'))::uuid[])
    or id = any (array(select app_hidden.viewer_purchase_lots()))
    or (status <> 'UNRELEASED' and project_id <> all (array(select app_hidden.viewer_bought_projects()))
      and (select true from app_public.projects p where p.id = project_id))));
create policy everybody on app_public.lots for select to plat_anonymous
  using (deleted_at is null and status <> 'UNRELEASED'
    and (select true from app_public.projects p where p.id = project_id));
create policy managers_insert on app_public.lots for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('inventory.manage'))::uuid[]));
create policy managers_update on app_public.lots for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('inventory.manage'))::uuid[]));
create policy managers_delete on app_public.lots for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('inventory.manage'))::uuid[]));

select app_private.make_project_record('lots', 'lot', 'inventory.manage',
  event_permission => 'inventory.read');
select app_private.make_state_machine('lots', 'lot', steps => app_private.inventory_steps(),
  initial => array['UNRELEASED', 'AVAILABLE', 'OFF_MARKET'],
  requirements => array[['AVAILABLE', 'price', 'A lot that is for sale must have a price.']]);

grant select on app_public.lots to plat_user, plat_anonymous;
grant insert (project_id, number, title, block, phase, status, price, premium, address, area_sqft, orientation,
  features, parcel_number, multi_unit, metadata) on app_public.lots to plat_user;
grant update (number, title, block, phase, status, price, premium, address, area_sqft, orientation, features,
  parcel_number, multi_unit, metadata), delete on app_public.lots to plat_user;

comment on table app_public.lots is E'@defaultOrder id asc\n\nA piece of land that is sold alone or with a home.';
comment on column app_public.lots.title is E'@insertOptional\n\nName of the lot. Default: derived from its number.';
comment on column app_public.lots.number is 'Number, unique in the project.';
comment on column app_public.lots.block is 'Block of the plan of subdivision that the lot is in.';
comment on column app_public.lots.phase is 'Phase of the project.';
comment on column app_public.lots.status is E'@filter\n\nSales status.';
comment on column app_public.lots.status_changed_at is 'When the status last changed.';
comment on column app_public.lots.price is
  E'@masked\n\nPrice of the land; null if it is sold only together with a home.';
comment on column app_public.lots.premium is
  E'@masked\n\nLot premium: amount that the lot adds to the price of the home.';
comment on column app_public.lots.currency is 'Currency of its amounts: the one of the project.';
comment on column app_public.lots.address is 'Postal address.';
comment on column app_public.lots.area_sqft is E'@filter\n\nArea in square feet.';
comment on column app_public.lots.orientation is 'Compass direction that it faces.';
comment on column app_public.lots.features is E'@filter\n\nNotable characteristics, such as CORNER or WATERFRONT.';
comment on column app_public.lots.parcel_number is 'Parcel number in the land register.';
comment on column app_public.lots.multi_unit is
  'Whether several units stand on the lot. If so, reserving or selling a unit does not claim the lot.';
comment on column app_public.lots.metadata is
  E'@masked\n\nArbitrary JSON for the organization''s own programs; not interpreted.';
comment on constraint lots_area_sqft_range on app_public.lots is 'Must be from 1 to 2,000,000,000 square feet.';
comment on constraint lots_priced on app_public.lots is 'A lot that is for sale must have a price.';
comment on constraint lots_project_id_fkey on app_public.lots is
  E'@parent\n'
  '@fieldName project\n'
  '@foreignFieldName lots\n'
  '@backwardDescription Lots; for non-members only released ones.\n\n'
  'The project that it belongs to.';
comment on index app_public.lots_number is 'There is already a lot with this number in the project.';

insert into app_private.event_names (subject, column_name, value, name) values ('lot', 'price', null, 'price_changed');

-- The transitions of inventory: by users until it is claimed, then by the service with the claim.
create function app_private.inventory_steps() returns text[]
language sql immutable as $$
  select array[
    ['UNRELEASED', 'AVAILABLE', 'hand'], ['UNRELEASED', 'OFF_MARKET', 'hand'], ['OFF_MARKET', 'UNRELEASED', 'hand'],
    ['AVAILABLE', 'OFF_MARKET', 'hand'], ['OFF_MARKET', 'AVAILABLE', 'hand'],
    ['AVAILABLE', 'HELD', 'service'], ['AVAILABLE', 'RESERVED', 'service'], ['AVAILABLE', 'PENDING', 'service'],
    ['HELD', 'RESERVED', 'service'], ['HELD', 'PENDING', 'service'], ['RESERVED', 'PENDING', 'service'],
    ['PENDING', 'SOLD', 'service'], ['SOLD', 'CLOSED', 'service'],
    ['HELD', 'AVAILABLE', 'service'], ['RESERVED', 'AVAILABLE', 'service'], ['PENDING', 'AVAILABLE', 'service'],
    ['SOLD', 'AVAILABLE', 'service']]
$$;
comment on function app_private.inventory_steps() is 'The steps of units and lots.';

create function app_private.tg_lots__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project record;
begin
  if tg_op = 'INSERT' then
    select p.currency, (p.address).country as country into project from app_public.projects p
      where p.id = new.project_id;
    new.currency := project.currency;
  end if;
  if new.address is distinct from null and (new.address).country is null then
    new.address.country := coalesce((select (p.address).country from app_public.projects p where p.id = new.project_id),
      'US');
  end if;
  if new.title is null then
    new.title := left('Lot ' || new.number, 300);
  end if;
  if new.price is not null and (tg_op = 'INSERT' or new.price is distinct from old.price) then
    new.price := app_hidden.to_money(new.price, new.currency, 'price');
  end if;
  if new.premium is not null and (tg_op = 'INSERT' or new.premium is distinct from old.premium) then
    new.premium := app_hidden.to_money(new.premium, new.currency, 'premium');
  end if;
  if new.price is null and new.status not in ('UNRELEASED', 'OFF_MARKET') then
    perform app_hidden.fail('BAD_USER_INPUT', 'A lot that is for sale must have a price.', '{"field": "price"}');
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.lots for each row
  execute function app_private.tg_lots__prepare();

create function app_public.lots_price(l app_public.lots) returns app_public.money
language sql stable as $$
  select case when l.price is not null and (l.status = 'AVAILABLE' or app_hidden.project_can(l.project_id,
    l.organization_id, 'inventory.read')) then l.price end
$$;

create function app_public.lots_premium(l app_public.lots) returns app_public.money
language sql stable as $$
  select case when l.premium is not null and (l.status = 'AVAILABLE' or app_hidden.project_can(l.project_id,
    l.organization_id, 'inventory.read')) then l.premium end
$$;

create function app_public.lots_metadata(l app_public.lots) returns jsonb
language sql stable as $$ select case when l.metadata is not null
  and app_hidden.project_can(l.project_id, l.organization_id, 'inventory.read') then l.metadata end $$;

create function app_public.lots_allowed_transitions(l app_public.lots) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('lot',
  jsonb_build_object('status', l.status, 'price', l.price)) $$;

create function app_public.lots_filter_price(l app_public.lots, value numrange) returns boolean
language sql stable as $$
  select coalesce(l.price::numeric <@ value, false)
$$;

create function app_public.lots_filter_phase(l app_public.lots, value text[]) returns boolean
language sql stable as $$ select l.phase = any (value) $$;

create function app_public.lots_filter_query(l app_public.lots, value text) returns boolean
language sql stable as $$ select app_hidden.contains_words(concat_ws(' ', l.title, l.number, l.block,
  (l.address).thoroughfare), value) $$;
grant execute on function app_public.lots_price, app_public.lots_premium, app_public.lots_metadata,
  app_public.lots_allowed_transitions, app_public.lots_filter_price, app_public.lots_filter_phase,
  app_public.lots_filter_query to plat_user, plat_anonymous;
comment on function app_public.lots_price is
  'Price of the land; null if it is sold only with a home. Visible to non-members while the lot is AVAILABLE.';
comment on function app_public.lots_premium is
  'Amount that the lot adds to the price of the home. Visible to non-members while the lot is AVAILABLE.';
comment on function app_public.lots_metadata is
  'Arbitrary JSON for the organization''s own programs; not interpreted; null without the permission inventory.read.';
comment on function app_public.lots_allowed_transitions is
  E'@notNull\n@reads price\n\nStatus transitions that the viewer can make; others follow from deals.';
comment on function app_public.lots_filter_price is
  E'@filter price\n@reads price\n\nPrice as the viewer sees it. Both ends included.';
comment on function app_public.lots_filter_phase is E'@filter phase\n\nAny of these phases.';
comment on function app_public.lots_filter_query is
  E'@filter query\n\nWords that occur in title, number, block or street.';
comment on function app_public.lots_events is
  E'@permission audit.read\n'
  '@by subject_id\n\n'
  'Events of the record, latest first; null without the permission audit.read.';

create trigger _310_claimed before update on app_public.lots for each row
  when (old.status is distinct from new.status or old.multi_unit is distinct from new.multi_unit)
    execute function app_private.tg__claimed();

create trigger _300_claimed before delete on app_public.lots for each row execute function app_private.tg__claimed();

create function app_public.lots_price_history(l app_public.lots) returns setof app_public.price_changes
language sql stable rows 5 as $$ select c.* from app_public.price_changes c where c.subject_id = l.id
  order by c.event_id desc $$;
comment on function app_public.lots_price_history is
  E'@permission inventory.read\n@by subject_id\n\n'
  'Price changes, latest first; null without the permission inventory.read.';

create function app_public.lots_buyer(l app_public.lots) returns setof app_public.buyers
language sql stable rows 1 as $$
  select b.* from app_hidden.masked_buyers b where b.lot_id = l.id and b.unit_id is null and b.deleted_at is null
    and b.status <> 'CANCELLED'
  limit 1
$$;
comment on function app_public.lots_buyer is
  'Active purchase of the lot without a home; null without the permission buyer.read.';
