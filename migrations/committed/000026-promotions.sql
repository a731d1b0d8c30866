--! Previous: sha1:436ddc648092d351fa1ad6b330f397ef18f85307
--! Hash: sha1:e0be4d9fc91dc1478afbf176c59f2f3212591aa9
--! Message: promotions

-- Promotions and what they apply to.

select app_private.create_enum('promotion_kind', 'What a promotion gives.', array[
  ['PRICE_REDUCTION', 'An amount off the price.'], ['PERCENT_DISCOUNT', 'A percentage off the price.'],
  ['CLOSING_COST_CREDIT', 'A credit towards closing costs.'], ['OPTION_CREDIT', 'A credit towards options.'],
  ['RATE_BUYDOWN', 'Percentage points off the mortgage rate.'], ['HOA_CREDIT', 'A credit towards association fees.'],
  ['DEPOSIT_REDUCTION', 'A smaller deposit.'], ['AGENT_BONUS', 'A bonus for the agent.'],
  ['GIFT', 'A gift, described in words.']]);
select app_private.create_enum('promotion_status', 'Whether a promotion runs.', array[
  ['DRAFT', 'Being prepared; only the portfolio sees it.'], ['SCHEDULED', 'Begins later.'], ['ACTIVE', 'Runs.'],
  ['PAUSED', 'Does not run for now; only the portfolio sees it.'], ['ENDED', 'Over.'],
  ['EXHAUSTED', 'Used as often as it may be.']]);
select app_private.create_enum('promotion_scope', 'What a promotion is for.', array[
  ['PROJECT', 'Everything in the project.'], ['FLOOR_PLANS', 'Some floor plans.'], ['UNITS', 'Some units.'],
  ['LOTS', 'Some lots.']]);

create table app_public.promotions (
  like app_private.project_record including all,
  title app_public.short_text not null,
  description app_public.long_text,
  code text constraint promotions_code_format check (code ~ '^[A-Z0-9][A-Z0-9_-]{1,39}$'),
  kind app_public.promotion_kind not null,
  amount app_public.money constraint promotions_amount_some check (amount > 0),
  percent numeric constraint promotions_percent_range check (percent > 0 and percent <= 100 and scale(percent) <= 4),
  max_amount app_public.money constraint promotions_max_amount_some check (max_amount > 0),
  status app_public.promotion_status not null default 'ACTIVE',
  starts_at timestamptz not null,
  ends_at timestamptz,
  applies_to app_public.promotion_scope not null default 'PROJECT',
  stackable boolean not null default false,
  usage_limit int constraint promotions_usage_limit_some check (usage_limit > 0),
  usage_count int not null default 0 constraint promotions_usage_count_range check (usage_count between 0
    and coalesce(usage_limit, 2147483647)),
  terms app_public.long_text,
  public boolean not null default true,
  unit_ids app_public.id_or_slug[] not null default '{}',
  lot_ids app_public.id_or_slug[] not null default '{}',
  floor_plan_ids app_public.id_or_slug[] not null default '{}',
  constraint promotions_order check (starts_at < ends_at),
  constraint promotions_kept_status check (status in ('DRAFT', 'ACTIVE', 'PAUSED', 'ENDED')),
  constraint promotions_cap check (percent is not null or max_amount is null),
  unique (id, project_id),
  constraint promotions_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create unique index promotions_code on app_public.promotions (project_id, code) where deleted_at is null
  and code is not null;
create index promotions_starts_at on app_public.promotions (project_id, starts_at desc, id desc)
  where deleted_at is null;
create index promotions_clock_start on app_public.promotions (starts_at) where deleted_at is null;
create index promotions_clock_end on app_public.promotions (ends_at) where deleted_at is null;
create index promotions_organization on app_public.promotions (organization_id, id desc) where deleted_at is null;
create index promotions_project on app_public.promotions (project_id, id desc) where deleted_at is null;
alter table app_public.promotions enable row level security;

create table app_hidden.promotion_targets (
  promotion_id uuid not null,
  project_id uuid not null,
  unit_id uuid,
  lot_id uuid,
  floor_plan_id uuid,
  constraint promotion_targets_one check (num_nonnulls(unit_id, lot_id, floor_plan_id) = 1),
  constraint promotion_targets_promotion_id_fkey foreign key (promotion_id, project_id)
    references app_public.promotions (id, project_id) on delete cascade,
  constraint promotion_targets_unit_id_fkey foreign key (unit_id, project_id)
    references app_public.units (id, project_id) on delete cascade,
  constraint promotion_targets_lot_id_fkey foreign key (lot_id, project_id)
    references app_public.lots (id, project_id) on delete cascade,
  constraint promotion_targets_floor_plan_id_fkey foreign key (floor_plan_id, project_id)
    references app_public.floor_plans (id, project_id) on delete cascade
);
create unique index promotion_targets_unit on app_hidden.promotion_targets (promotion_id, unit_id)
  where unit_id is not null;
create unique index promotion_targets_lot on app_hidden.promotion_targets (promotion_id, lot_id)
  where lot_id is not null;
create unique index promotion_targets_floor_plan on app_hidden.promotion_targets (promotion_id, floor_plan_id)
  where floor_plan_id is not null;
create index promotion_targets_of_unit on app_hidden.promotion_targets (unit_id) where unit_id is not null;
create index promotion_targets_of_lot on app_hidden.promotion_targets (lot_id) where lot_id is not null;
create index promotion_targets_of_floor_plan on app_hidden.promotion_targets (floor_plan_id)
  where floor_plan_id is not null;

-- Whoever sees the promotion learns what it is for; which of these records they see, the policies of those say.
alter table app_hidden.promotion_targets enable row level security;
