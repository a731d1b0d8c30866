-- Lease permits: the limited rights of a project to let its homes.

select app_private.make_project_table('lease_permits', 'lease_permit', read_permission => 'inventory.manage',
  write_permission => 'inventory.manage');
select app_private.make_state_machine('lease_permits', 'lease_permit',
  steps => array[
    ['AVAILABLE', 'RESERVED'], ['RESERVED', 'AVAILABLE'], ['RESERVED', 'ISSUED'], ['ISSUED', 'EXPIRED'],
    ['ISSUED', 'REVOKED']],
  initial => array['AVAILABLE', 'RESERVED', 'ISSUED']);

grant insert (project_id, title, number, price, issued_on, expires_on, notes, status),
  update (title, number, price, issued_on, expires_on, notes, status), delete on app_public.lease_permits to plat_user;
grant insert (unit_id), update (unit_id) on app_public.lease_permits to plat_user;
grant insert (buyer_id), update (buyer_id) on app_public.lease_permits to plat_user;

comment on table app_public.lease_permits is 'A permit to rent out a home of the project.';
comment on column app_public.lease_permits.title is E'@personal\n\nDisplay title.';
comment on column app_public.lease_permits.number is E'@personal\n\nNumber, unique in the project.';
comment on column app_public.lease_permits.status is E'@filter\n\nCurrent status.';
comment on column app_public.lease_permits.price is 'Price, in the currency of the project.';
comment on column app_public.lease_permits.issued_on is 'Date of issue; null until then.';
comment on column app_public.lease_permits.expires_on is 'End of validity.';
comment on column app_public.lease_permits.notes is E'@personal\n\nNotes of the team.';
comment on column app_public.lease_permits.unit_id is 'Id of the unit that may be rented out.';
comment on column app_public.lease_permits.buyer_id is 'The purchase that it belongs to.';
comment on constraint lease_permits_order on app_public.lease_permits is 'A permit must expire after it is issued.';
comment on constraint lease_permits_unit_id_fkey on app_public.lease_permits is
  E'@fieldName unit\n@backwardBehavior -*\n\nId of the unit that may be rented out.';
comment on constraint lease_permits_buyer_id_fkey on app_public.lease_permits is
  E'@fieldName buyer\n@backwardBehavior -*\n\nThe purchase that it belongs to.';
comment on index app_public.lease_permits_number is 'There is already a lease permit with this number in the project.';
comment on index app_public.lease_permits_unit is 'The unit already has a lease permit.';

create function app_private.tg_lease_permits__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project app_public.projects;
begin
  select * into project from app_public.projects p where p.id = new.project_id;
  new.price := app_hidden.to_money(new.price, project.currency, 'price');
  -- Issued without a date is issued today, where the project is.
  if new.status = 'ISSUED' and new.issued_on is null then
    new.issued_on := (now() at time zone project.time_zone)::date;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.lease_permits
  for each row execute function app_private.tg_lease_permits__prepare();

create function app_public.lease_permits_allowed_transitions(l app_public.lease_permits) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('lease_permit', to_jsonb(l)) $$;
grant execute on function app_public.lease_permits_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.lease_permits_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';

create function app_private.tg_lease_permits__unit() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_public.units u where u.id = new.unit_id and u.project_id = new.project_id
    and u.deleted_at is null) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such unit in this project.', '{"field": "unitId"}');
  end if;
  return new;
end $$;
create trigger _210_unit before insert or update of unit_id on app_public.lease_permits
  for each row when (new.unit_id is not null) execute function app_private.tg_lease_permits__unit();

create function app_private.tg_lease_permits__buyer() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_public.buyers b where b.id = new.buyer_id and b.project_id = new.project_id
    and b.deleted_at is null) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such buyer in this project.', '{"field": "buyerId"}');
  end if;
  return new;
end $$;
create trigger _220_buyer before insert or update of buyer_id on app_public.lease_permits
  for each row when (new.buyer_id is not null) execute function app_private.tg_lease_permits__buyer();
