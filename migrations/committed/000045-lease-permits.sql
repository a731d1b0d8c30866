--! Previous: sha1:a3f65e29ea5fd7d10b5611af6752b96081f9b019
--! Hash: sha1:b86221e8889ce2f9d56274bbd87dfb378510a399
--! Message: lease-permits

-- Lease permits: rights to let a home that a project has a limited number of.

select app_private.create_enum('lease_permit_status', 'What became of a lease permit.', array[
  ['AVAILABLE', 'Nobody has it.'], ['RESERVED', 'Kept for somebody.'], ['ISSUED', 'Somebody has it.'], ['EXPIRED', 'Its time is over.'],
  ['REVOKED', 'It was taken back.']]);

create table app_public.lease_permits (
  like app_private.project_record including all,
  title app_public.short_text not null,
  number app_public.short_text,
  status app_public.lease_permit_status not null default 'AVAILABLE',
  price app_public.money,
  issued_on date,
  expires_on date,
  notes app_public.long_text,
  constraint lease_permits_order check (issued_on <= expires_on),
  unique (id, project_id)
);
comment on constraint lease_permits_order on app_public.lease_permits is 'A permit expires after it is issued.';
create unique index lease_permits_number on app_public.lease_permits (project_id, number) where deleted_at is null and number is not null;
comment on index app_public.lease_permits_number is 'There is a lease permit with this number in the project already.';

select app_private.make_project_table('lease_permits', 'lease_permit', read_permission => 'inventory.manage', write_permission => 'inventory.manage');
grant insert (project_id, title, number, price, issued_on, expires_on, notes, status),
  update (title, number, price, issued_on, expires_on, notes, status), delete on app_public.lease_permits to plat_user;

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
select app_private.make_state_machine('lease_permits', 'lease_permit',
  steps => array[
    ['AVAILABLE', 'RESERVED'], ['RESERVED', 'AVAILABLE'], ['RESERVED', 'ISSUED'], ['ISSUED', 'EXPIRED'], ['ISSUED', 'REVOKED']],
  initial => array['AVAILABLE', 'RESERVED', 'ISSUED']);

create function app_public.lease_permits_allowed_transitions(l app_public.lease_permits) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('lease_permit', to_jsonb(l)) $$;
grant execute on function app_public.lease_permits_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.lease_permits_allowed_transitions is E'@notNull\n\nThe steps that the permit can take from its status.';

comment on table app_public.lease_permits is 'A right to let a home of the project.';
comment on column app_public.lease_permits.title is 'What it is called.';
comment on column app_public.lease_permits.number is 'Its number, unique in the project.';
comment on column app_public.lease_permits.status is E'@filter\n\nWhat became of it.';
comment on column app_public.lease_permits.price is 'What it costs, in the currency of the project.';
comment on column app_public.lease_permits.issued_on is 'When it was issued.';
comment on column app_public.lease_permits.expires_on is 'Until when it holds.';
comment on column app_public.lease_permits.notes is 'Notes of the team.';
