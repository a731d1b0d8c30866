--! Previous: sha1:0b6d01ede8e7114dd5736687c385e870edaf508a
--! Hash: sha1:4d2b76a5ef84f281a7b5c1ef916eb848b3c4d23e
--! Message: sales-offices

-- Sales offices.

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
  version int not null default 1,
  constraint sales_offices_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index sales_offices_organization on app_public.sales_offices (organization_id, id desc);
create index sales_offices_project on app_public.sales_offices (project_id, id desc);
alter table app_public.sales_offices enable row level security;
