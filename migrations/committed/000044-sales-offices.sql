--! Previous: sha1:56c39ebac7718fe88434d8566d7bc2dfc9171aaa
--! Hash: sha1:a3f65e29ea5fd7d10b5611af6752b96081f9b019
--! Message: sales-offices

-- The sales office of a project: where buyers go. Each project has exactly one, made with it.

create table app_public.sales_offices (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null constraint sales_offices_one_per_project unique,
  title app_public.short_text,
  address app_public.address,
  phone app_public.phone_number,
  email app_public.email_address,
  notes app_public.long_text,
  by_appointment_only boolean not null default false,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1
);
select app_private.make_public_table('sales_offices', 'sales_office', 'project.manage', 'salesOffice', 'Where buyers go.');
grant update (title, address, phone, email, notes, by_appointment_only) on app_public.sales_offices to plat_user;

create function app_private.tg_sales_offices__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project_country text := (select coalesce((p.address).country, 'US') from app_public.projects p where p.id = new.project_id);
begin
  new.address := app_hidden.with_country(new.address, new.project_id);
  new.email := lower(new.email);
  if new.phone is not null and (tg_op = 'INSERT' or new.phone is distinct from old.phone) then
    new.phone := app_hidden.to_e164(new.phone, project_country);
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.sales_offices
  for each row execute function app_private.tg_sales_offices__prepare();

create function app_private.tg_projects__sales_office() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_public.sales_offices (project_id) values (new.id);
  return null;
end $$;
create trigger _530_sales_office after insert on app_public.projects for each row execute function app_private.tg_projects__sales_office();
insert into app_public.sales_offices (project_id) select p.id from app_public.projects p where p.archived_at is null;

create function app_public.update_sales_office(input jsonb, project_id uuid, expected_version int default null) returns app_public.sales_offices
language plpgsql volatile as $$
declare
  office uuid;
begin
  perform app_hidden.refuse_anonymous();
  select o.id into office from app_public.sales_offices o where o.project_id = update_sales_office.project_id;
  if office is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  end if;
  return app_hidden.update_record(null::app_public.sales_offices, (input - 'project_id') || jsonb_build_object('id', office));
end $$;
grant execute on function app_public.update_sales_office to plat_user, plat_anonymous;
comment on function app_public.update_sales_office is $$
@withoutId
@arg projectId The project, by id or slug.
@arg expectedVersion The version that the caller has read; another present version is refused with VERSION_MISMATCH.

Changes the sales office of a project. Members that are left out stay as they are.$$;

comment on table app_public.sales_offices is 'Where the buyers of a project go.';
comment on column app_public.sales_offices.title is 'What it is called.';
comment on column app_public.sales_offices.address is 'Where it is; at the project where null.';
comment on column app_public.sales_offices.phone is 'Phone number.';
comment on column app_public.sales_offices.email is 'E-mail address.';
comment on column app_public.sales_offices.notes is 'What visitors should know, such as opening hours.';
comment on column app_public.sales_offices.by_appointment_only is 'Whether visitors need an appointment.';
