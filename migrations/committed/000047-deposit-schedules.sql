--! Previous: sha1:3819f6d4a1be5fac7ae71a91545f49fd3812c9d4
--! Hash: sha1:551d05d2c09a1cd9dc16bb288d761420a3b7fd44
--! Message: deposit-schedules

-- The deposit schedule of a project: what buyers pay when, before they close. Purchases copy it.

select app_private.create_enum('percent_base', 'What a percentage is of.', array[
  ['PURCHASE_PRICE', 'The price of the home.'], ['GROSS_PURCHASE_PRICE', 'The price with everything on top.'],
  ['NET_PURCHASE_PRICE', 'The price less credits and discounts.']])
where to_regtype('app_public.percent_base') is null;
select app_private.create_enum('deposit_due_rule', 'When a deposit is due.', array[
  ['ON_RESERVATION', 'With the reservation.'], ['ON_SIGNING', 'When the purchase is signed.'], ['ON_FIRM', 'When the purchase is firm.'],
  ['DAYS_AFTER_SIGNING', 'So many days after signing.'], ['CONSTRUCTION_PHASE', 'When construction has come so far.'],
  ['FIXED_DATE', 'On a day.'], ['ON_CLOSING', 'At closing.']])
where to_regtype('app_public.deposit_due_rule') is null;

create table app_public.deposit_schedule_milestones (
  like app_private.project_record including all,
  title app_public.short_text not null,
  sequence int not null default 0,
  amount app_public.money constraint deposit_schedule_milestones_amount_some check (amount > 0),
  percent numeric constraint deposit_schedule_milestones_percent_range check (percent > 0 and percent <= 100 and scale(percent) <= 4),
  percent_base app_public.percent_base not null default 'PURCHASE_PRICE',
  due_rule app_public.deposit_due_rule not null default 'ON_SIGNING',
  due_offset_days int constraint deposit_schedule_milestones_offset_range check (due_offset_days between 0 and 3650),
  due_date date,
  constraint deposit_schedule_milestones_one_value check (num_nonnulls(amount, percent) = 1),
  constraint deposit_schedule_milestones_offset check (due_rule <> 'DAYS_AFTER_SIGNING' or due_offset_days is not null),
  constraint deposit_schedule_milestones_date check (due_rule <> 'FIXED_DATE' or due_date is not null),
  unique (id, project_id)
);
comment on constraint deposit_schedule_milestones_amount_some on app_public.deposit_schedule_milestones is 'Give an amount above zero.';
comment on constraint deposit_schedule_milestones_percent_range on app_public.deposit_schedule_milestones is
  'Give a percentage above 0, 100 at most, with 4 digits after the point at most.';
comment on constraint deposit_schedule_milestones_offset_range on app_public.deposit_schedule_milestones is 'Give 0 to 3,650 days.';
comment on constraint deposit_schedule_milestones_one_value on app_public.deposit_schedule_milestones is 'Give either an amount or a percentage.';
comment on constraint deposit_schedule_milestones_offset on app_public.deposit_schedule_milestones is 'Say how many days after signing.';
comment on constraint deposit_schedule_milestones_date on app_public.deposit_schedule_milestones is 'Say on which day.';
create index deposit_schedule_milestones_sequence on app_public.deposit_schedule_milestones (project_id, sequence, id) where deleted_at is null;

select app_private.make_public_table('deposit_schedule_milestones', 'deposit_schedule_milestone', 'project.manage', 'depositSchedule',
  'What buyers pay before they close, in order.');
grant insert (project_id, title, sequence, amount, percent, percent_base, due_rule, due_offset_days, due_date),
  update (title, sequence, amount, percent, percent_base, due_rule, due_offset_days, due_date), delete
  on app_public.deposit_schedule_milestones to plat_user;

create function app_private.tg_deposit_schedule_milestones__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.amount := app_hidden.to_money(new.amount, (select p.currency from app_public.projects p where p.id = new.project_id), 'amount');
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.deposit_schedule_milestones
  for each row execute function app_private.tg_deposit_schedule_milestones__prepare();

comment on table app_public.deposit_schedule_milestones is E'@defaultOrder sequence asc, id asc\n\nA payment that buyers make before they close.';
comment on column app_public.deposit_schedule_milestones.title is 'What it is called.';
comment on column app_public.deposit_schedule_milestones.sequence is 'Place in the schedule.';
comment on column app_public.deposit_schedule_milestones.amount is 'The amount, in the currency of the project; either this or a percentage.';
comment on column app_public.deposit_schedule_milestones.percent is 'The percentage; either this or an amount.';
comment on column app_public.deposit_schedule_milestones.percent_base is 'What the percentage is of.';
comment on column app_public.deposit_schedule_milestones.due_rule is 'When it is due.';
comment on column app_public.deposit_schedule_milestones.due_offset_days is 'How many days after what the rule names.';
comment on column app_public.deposit_schedule_milestones.due_date is 'The day, for the rule FIXED_DATE.';
