-- The deposit schedule of a project: amounts that buyers pay before closing, and their due dates. Purchases copy it.

select app_private.make_public_table('deposit_schedule_milestones', 'deposit_schedule_milestone', 'project.manage',
  'depositSchedule',
  'Deposit schedule: the payments before closing, in order.');

grant insert (project_id, title, sequence, amount, percent, percent_base, due_rule, due_offset_days, due_date),
  update (title, sequence, amount, percent, percent_base, due_rule, due_offset_days, due_date), delete
  on app_public.deposit_schedule_milestones to plat_user;

comment on table app_public.deposit_schedule_milestones is
  E'@defaultOrder sequence asc, id asc\n\n'
  'One milestone of the deposit schedule: a payment that every buyer makes before closing.';
comment on column app_public.deposit_schedule_milestones.title is 'Display title.';
comment on column app_public.deposit_schedule_milestones.sequence is 'Position in the schedule.';
comment on column app_public.deposit_schedule_milestones.amount is
  'Fixed amount in the currency of the project. Set either this or `percent`.';
comment on column app_public.deposit_schedule_milestones.percent is
  'Percentage of `percentBase`. Set either this or `amount`.';
comment on column app_public.deposit_schedule_milestones.percent_base is
  'Amount that the percentage is calculated from.';
comment on column app_public.deposit_schedule_milestones.due_rule is 'Rule for the due date.';
comment on column app_public.deposit_schedule_milestones.due_offset_days is
  'Number of days after the event that `dueRule` names.';
comment on column app_public.deposit_schedule_milestones.due_date is 'Due date, if `dueRule` is FIXED_DATE.';
comment on constraint deposit_schedule_milestones_amount_some on app_public.deposit_schedule_milestones is
  'The amount must be greater than zero.';
comment on constraint deposit_schedule_milestones_percent_range on app_public.deposit_schedule_milestones is
  'A percentage must be greater than 0 and at most 100, with at most 4 decimal places.';
comment on constraint deposit_schedule_milestones_offset_range on app_public.deposit_schedule_milestones is
  'Must be from 0 to 3,650 days.';
comment on constraint deposit_schedule_milestones_one_value on app_public.deposit_schedule_milestones is
  'Specify either an amount or a percentage.';
comment on constraint deposit_schedule_milestones_offset on app_public.deposit_schedule_milestones is
  'Specify the number of days after signing.';
comment on constraint deposit_schedule_milestones_date on app_public.deposit_schedule_milestones is 'Specify the date.';

create function app_private.tg_deposit_schedule_milestones__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.amount := app_hidden.to_money(new.amount,
    (select p.currency from app_public.projects p where p.id = new.project_id), 'amount');
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.deposit_schedule_milestones
  for each row execute function app_private.tg_deposit_schedule_milestones__prepare();
