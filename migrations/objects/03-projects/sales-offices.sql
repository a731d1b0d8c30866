-- The sales office of a project, for buyers. Each project has exactly one, created with it.

select app_private.make_public_table('sales_offices', 'sales_office', 'project.manage', 'salesOffice',
  'The sales office, which visitors can go to; null if the project has none.', made_by_hand => false);

grant update (title, address, phone, email, notes, by_appointment_only) on app_public.sales_offices to plat_user;

comment on table app_public.sales_offices is 'The place where visitors of a project meet the sales team.';
comment on column app_public.sales_offices.title is E'@impersonal\n\nDisplay title.';
comment on column app_public.sales_offices.address is
  E'@impersonal\n\nAddress of the sales office; null if it is at the project.';
comment on column app_public.sales_offices.phone is E'@impersonal\n\nPhone number in E.164, such as +14165550123.';
comment on column app_public.sales_offices.email is E'@impersonal\n\nPublic address for inquiries by email.';
comment on column app_public.sales_offices.notes is E'@impersonal\n\nInformation for visitors, such as opening hours.';
comment on column app_public.sales_offices.by_appointment_only is 'Whether visitors need an appointment.';

create function app_private.tg_sales_offices__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project_country text := (select coalesce((p.address).country, 'US') from app_public.projects p
    where p.id = new.project_id);
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

create function app_public.update_sales_office(input jsonb, project_id uuid,
  expected_version int default null) returns app_public.sales_offices
language plpgsql volatile as $$
declare
  office uuid;
begin
  perform app_hidden.refuse_anonymous();
  select o.id into office from app_public.sales_offices o where o.project_id = update_sales_office.project_id;
  if office is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  end if;
  return app_hidden.update_record(null::app_public.sales_offices,
    (input - 'project_id') || jsonb_build_object('id', office));
end $$;
grant execute on function app_public.update_sales_office to plat_user, plat_anonymous;
comment on function app_public.update_sales_office is $$
@withoutId
@arg projectId Id or slug of the project.
@arg expectedVersion The `version` that the client read; if it has changed, refused with VERSION_MISMATCH.

Changes the sales office of a project. Omitted fields stay unchanged.$$;
