--! Previous: sha1:2865c6ba4cb3749c0a3a63f02207c08b351b1762
--! Hash: sha1:72ada0f81a035ac0d5a389a32cc50f2443e877ea
--! Message: deposit-schedules

-- Milestones of deposit schedules.

select app_private.create_enum('percent_base', 'What a percentage is of.', array[
  ['PURCHASE_PRICE', 'The price of the home.'], ['GROSS_PURCHASE_PRICE', 'The price with everything on top.'],
  ['NET_PURCHASE_PRICE', 'The price less credits and discounts.']])
where to_regtype('app_public.percent_base') is null;
select app_private.create_enum('deposit_due_rule', 'When a deposit is due.', array[
  ['ON_RESERVATION', 'With the reservation.'], ['ON_SIGNING', 'When the purchase is signed.'],
  ['ON_FIRM', 'When the purchase is firm.'],
  ['DAYS_AFTER_SIGNING', 'So many days after signing.'], ['CONSTRUCTION_PHASE', 'When construction has come so far.'],
  ['FIXED_DATE', 'On a day.'], ['ON_CLOSING', 'At closing.']])
where to_regtype('app_public.deposit_due_rule') is null;

create table app_public.deposit_schedule_milestones (
  like app_private.project_record including all,
  title app_public.short_text not null,
  sequence int not null default 0,
  amount app_public.money constraint deposit_schedule_milestones_amount_some check (amount > 0),
  percent numeric constraint deposit_schedule_milestones_percent_range check (percent > 0 and percent <= 100
    and scale(percent) <= 4),
  percent_base app_public.percent_base not null default 'PURCHASE_PRICE',
  due_rule app_public.deposit_due_rule not null default 'ON_SIGNING',
  due_offset_days int constraint deposit_schedule_milestones_offset_range check (due_offset_days between 0 and 3650),
  due_date date,
  constraint deposit_schedule_milestones_one_value check (num_nonnulls(amount, percent) = 1),
  constraint deposit_schedule_milestones_offset check (due_rule <> 'DAYS_AFTER_SIGNING' or due_offset_days is not null),
  constraint deposit_schedule_milestones_date check (due_rule <> 'FIXED_DATE' or due_date is not null),
  unique (id, project_id),
  constraint deposit_schedule_milestones_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
create index deposit_schedule_milestones_sequence on app_public.deposit_schedule_milestones (project_id, sequence, id)
  where deleted_at is null;
create index deposit_schedule_milestones_organization
  on app_public.deposit_schedule_milestones (organization_id, id desc) where deleted_at is null;
create index deposit_schedule_milestones_project on app_public.deposit_schedule_milestones (project_id, id desc)
  where deleted_at is null;
alter table app_public.deposit_schedule_milestones enable row level security;
