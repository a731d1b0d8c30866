-- The same data as a team would keep it that has no more to do than what is measured: plain tables, one policy each, the tenant in
-- the token, and an index for each list. Made of the rows of app_public, so all contestants are asked for the same records.
create schema peers;
grant usage on schema peers to plat_user, plat_anonymous;

create function peers.organization_id() returns uuid language sql stable as
  $$ select nullif(pg_catalog.current_setting('peers.organization_id', true), '')::uuid $$;
create function peers.user_id() returns uuid language sql stable as
  $$ select nullif(pg_catalog.current_setting('peers.user_id', true), '')::uuid $$;

create table peers.users as
  select id, first_name::text, last_name::text, lower(first_name || '.' || last_name || '@example.com') as email from app_public.users;
create table peers.projects as
  select id, organization_id, title::text, slug::text, status::text, visibility::text from app_public.projects;
create table peers.floor_plans as
  select id, organization_id, project_id, title::text, bedrooms from app_public.floor_plans;
create table peers.lots as
  select id, organization_id, project_id, number::text from app_public.lots;
create table peers.leads as
  select id, organization_id, project_id, name::text, status::text, email::text, phone::text, registered_at from app_public.leads;
create table peers.units as
  select id, organization_id, project_id, floor_plan_id, lot_id, title::text, number::text, status::text, price::numeric
  from app_public.units;
create table peers.unit_images as
  select id, organization_id, unit_id, sequence, width, height from app_public.unit_images;
create table peers.reservations as
  select id, organization_id, unit_id, number::text, status::text, expires_at from app_public.reservations;
create table peers.buyers as
  select id, organization_id, project_id, unit_id, lead_id, assignee_id, first_name::text, last_name::text, email::text,
    status::text, price::numeric
  from app_public.buyers;
create table peers.deposits as
  select id, organization_id, buyer_id, title::text, amount::numeric, status::text, due_at, sequence from app_public.deposits;

do $$
declare
  of_tenant constant text[] := '{projects,floor_plans,lots,leads,units,unit_images,reservations,buyers,deposits}';
  name text;
begin
  foreach name in array of_tenant || '{users}' loop
    execute format('alter table peers.%I add primary key (id)', name);
    execute format('alter table peers.%I enable row level security', name);
    execute format('grant select on peers.%I to plat_user', name);
  end loop;
  foreach name in array of_tenant loop
    execute format('create policy of_organization on peers.%I to plat_user using (organization_id = (select peers.organization_id()))',
      name);
  end loop;
end $$;
create policy public on peers.projects for select to plat_anonymous using (visibility = 'PUBLIC');
create policy colleagues on peers.users for select to plat_user using (true);
grant select on peers.projects to plat_anonymous;
grant insert on peers.leads to plat_user;
alter table peers.leads alter id set default uuidv7(), alter status set default 'NEW', alter registered_at set default now(),
  alter organization_id set default peers.organization_id();

create index on peers.projects (organization_id);
create index on peers.projects (visibility, title, id);
create index on peers.projects (title, id);
create index on peers.leads (organization_id, status, registered_at desc, id desc);
create index on peers.leads (organization_id, registered_at desc, id desc);
create index on peers.leads (project_id);
create index on peers.units (organization_id, project_id, id);
create index on peers.unit_images (unit_id, sequence);
create index on peers.reservations (unit_id);
create index on peers.deposits (buyer_id, sequence);
alter table peers.units add foreign key (floor_plan_id) references peers.floor_plans, add foreign key (lot_id) references peers.lots;
alter table peers.unit_images add foreign key (unit_id) references peers.units;
alter table peers.buyers add foreign key (project_id) references peers.projects, add foreign key (unit_id) references peers.units,
  add foreign key (lead_id) references peers.leads, add foreign key (assignee_id) references peers.users;
alter table peers.deposits add foreign key (buyer_id) references peers.buyers;

-- For those that make their schema of the database.
create function peers.units_active_reservation(unit peers.units) returns peers.reservations language sql stable as
  $$ select r from peers.reservations r where r.unit_id = unit.id and r.status in ('PENDING', 'CONFIRMED') $$;
