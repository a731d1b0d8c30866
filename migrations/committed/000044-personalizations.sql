--! Previous: sha1:da8e07a523fbc215b024f84a8486db4d271a2ae8
--! Hash: sha1:01a8b31d2eea614d7c59f56d1154ae768e81400e
--! Message: personalizations

-- Selections of options for a unit, with credits and discounts.

select app_private.create_enum('personalization_status', 'How far a personalization is.', array[
  ['DRAFT', 'Being chosen.'], ['SUBMITTED', 'Handed in.'], ['CHANGES_REQUESTED', 'Handed back for changes.'],
  ['APPROVED', 'Agreed; prices stay from now on.'], ['SIGNED', 'Signed.'], ['LOCKED', 'Being built.'],
  ['SUPERSEDED', 'Replaced by a later one.'], ['CANCELLED', 'Called off.']]);
select app_private.create_enum('discount_base', 'What a percentage discount is of.', array[
  ['SELECTIONS_TOTAL', 'The price of all options.'], ['PURCHASE_PRICE', 'The price of the home.'],
  ['CATEGORY', 'The price of the options of one category.']]);
create type app_public.personalization_selection_input as (option_id uuid, quantity numeric, note text);

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
  constraint personalizations_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete restrict,
  constraint personalizations_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete restrict,
  constraint personalizations_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete restrict,
  constraint personalizations_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict
);
create index personalizations_unit on app_public.personalizations (unit_id, id desc) where deleted_at is null;
create index personalizations_lead on app_public.personalizations (lead_id, id desc) where deleted_at is null;
create index personalizations_buyer on app_public.personalizations (buyer_id, id desc) where deleted_at is null;
create index personalizations_approved_by on app_public.personalizations (approved_by_id);
create index personalizations_assignee on app_public.personalizations (assignee_id, project_id, id desc)
  where deleted_at is null;
create index personalizations_organization on app_public.personalizations (organization_id, id desc)
  where deleted_at is null;
create index personalizations_project on app_public.personalizations (project_id, id desc) where deleted_at is null;
alter table app_public.personalizations enable row level security;

create table app_public.personalization_selections (
  id uuid primary key default uuidv7(),
  project_id uuid not null,
  personalization_id uuid not null,
  element_id uuid not null,
  option_id uuid not null,
  quantity numeric(12, 2) not null default 1 constraint personalization_selections_quantity_range check (quantity > 0
    and quantity <= 10000),
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
create unique index personalization_selections_once
  on app_public.personalization_selections (personalization_id, option_id);
create index personalization_selections_element on app_public.personalization_selections (element_id);
create index personalization_selections_option on app_public.personalization_selections (option_id);
create index personalization_selections_selected_by on app_public.personalization_selections (selected_by_id);
alter table app_public.personalization_selections enable row level security;

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
    references app_public.promotions (id, project_id) on delete restrict,
  constraint personalization_credits_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict
);
create index personalization_credits_personalization on app_public.personalization_credits (personalization_id, id)
  where deleted_at is null;
create index personalization_credits_promotion on app_public.personalization_credits (promotion_id)
  where deleted_at is null;
create index personalization_credits_created_by on app_public.personalization_credits (created_by_id);
create index personalization_credits_project on app_public.personalization_credits (project_id);
alter table app_public.personalization_credits enable row level security;

create table app_public.personalization_discounts (
  like app_private.project_record including all,
  personalization_id uuid not null,
  title app_public.short_text not null,
  percent numeric not null constraint personalization_discounts_percent_range check (percent > 0 and percent <= 100
    and scale(percent) <= 4),
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
    references app_public.promotions (id, project_id) on delete restrict,
  constraint personalization_discounts_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict
);
create index personalization_discounts_personalization on app_public.personalization_discounts (personalization_id, id)
  where deleted_at is null;
create index personalization_discounts_category on app_public.personalization_discounts (category_id);
create index personalization_discounts_promotion on app_public.personalization_discounts (promotion_id)
  where deleted_at is null;
create index personalization_discounts_created_by on app_public.personalization_discounts (created_by_id);
create index personalization_discounts_project on app_public.personalization_discounts (project_id);
alter table app_public.personalization_discounts enable row level security;

create type app_private.personalization_sums as (selections numeric, discounts numeric, credits numeric, total numeric);
