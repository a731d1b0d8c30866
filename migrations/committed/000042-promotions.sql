--! Previous: sha1:8a792fcbab013daf4572412cf0d9797ba0e4bc53
--! Hash: sha1:319c895bdd79cc07155d491010f20e502338d31d
--! Message: promotions

-- Promotions: what buyers get on top, for a time and a number of uses. Clock and uses say whether one runs: the column
-- keeps what people decided (DRAFT, PAUSED, ENDED, or ACTIVE: as the clock says), promotions_status what follows.

select app_private.create_enum('promotion_kind', 'What a promotion gives.', array[
  ['PRICE_REDUCTION', 'An amount off the price.'], ['PERCENT_DISCOUNT', 'A percentage off the price.'],
  ['CLOSING_COST_CREDIT', 'A credit towards closing costs.'], ['OPTION_CREDIT', 'A credit towards options.'],
  ['RATE_BUYDOWN', 'Percentage points off the mortgage rate.'], ['HOA_CREDIT', 'A credit towards association fees.'],
  ['DEPOSIT_REDUCTION', 'A smaller deposit.'], ['AGENT_BONUS', 'A bonus for the agent.'], ['GIFT', 'A gift, described in words.']]);
select app_private.create_enum('promotion_status', 'Whether a promotion runs.', array[
  ['DRAFT', 'Being prepared; only the portfolio sees it.'], ['SCHEDULED', 'Begins later.'], ['ACTIVE', 'Runs.'],
  ['PAUSED', 'Does not run for now; only the portfolio sees it.'], ['ENDED', 'Over.'], ['EXHAUSTED', 'Used as often as it may be.']]);
select app_private.create_enum('promotion_scope', 'What a promotion is for.', array[
  ['PROJECT', 'Everything in the project.'], ['FLOOR_PLANS', 'Some floor plans.'], ['UNITS', 'Some units.'], ['LOTS', 'Some lots.']]);

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
  usage_count int not null default 0 constraint promotions_usage_count_range check (usage_count between 0 and coalesce(usage_limit, 2147483647)),
  terms app_public.long_text,
  public boolean not null default true,
  constraint promotions_order check (starts_at < ends_at),
  constraint promotions_kept_status check (status in ('DRAFT', 'ACTIVE', 'PAUSED', 'ENDED')),
  constraint promotions_cap check (percent is not null or max_amount is null),
  unique (id, project_id)
);
comment on constraint promotions_code_format on app_public.promotions is 'A code has 2 to 40 letters, digits, hyphens and underscores, such as SPRING-25.';
comment on constraint promotions_amount_some on app_public.promotions is 'Give an amount above zero.';
comment on constraint promotions_percent_range on app_public.promotions is 'Give a percentage above 0, 100 at most, with 4 digits after the point at most.';
comment on constraint promotions_max_amount_some on app_public.promotions is 'Give an amount above zero.';
comment on constraint promotions_usage_limit_some on app_public.promotions is 'Give a number above zero, or leave it out for no limit.';
comment on constraint promotions_usage_count_range on app_public.promotions is 'The promotion was used as often as it may be.';
comment on constraint promotions_order on app_public.promotions is 'A promotion ends after it starts.';
comment on constraint promotions_cap on app_public.promotions is 'A highest amount goes with a percentage only.';
create unique index promotions_code on app_public.promotions (project_id, code) where deleted_at is null and code is not null;
comment on index app_public.promotions_code is 'There is a promotion with this code in the project already.';
create index promotions_starts_at on app_public.promotions (project_id, starts_at desc, id desc) where deleted_at is null;

--------------------------------------------------------------------------------------------------------

select app_private.make_public_table('promotions', 'promotion', 'marketing.manage', 'promotions',
  'What buyers get on top, latest first; outsiders see the public ones that are neither drafts nor paused.',
  shown => 'public and status in (''ACTIVE'', ''ENDED'')');
grant insert (project_id, title, description, code, kind, amount, percent, max_amount, status, starts_at, ends_at, applies_to, stackable,
    usage_limit, terms, public),
  update (title, description, code, status, amount, percent, max_amount, starts_at, ends_at, stackable, usage_limit, terms, public),
  delete on app_public.promotions to plat_user;

insert into app_hidden.transitions (subject, from_state, to_state, by_service) values
  ('promotion', null, 'DRAFT', false), ('promotion', null, 'SCHEDULED', false), ('promotion', null, 'ACTIVE', false),
  ('promotion', 'DRAFT', 'SCHEDULED', false), ('promotion', 'DRAFT', 'ACTIVE', false),
  ('promotion', 'SCHEDULED', 'DRAFT', false), ('promotion', 'SCHEDULED', 'PAUSED', false), ('promotion', 'SCHEDULED', 'ENDED', false),
  ('promotion', 'ACTIVE', 'PAUSED', false), ('promotion', 'ACTIVE', 'ENDED', false),
  ('promotion', 'PAUSED', 'SCHEDULED', false), ('promotion', 'PAUSED', 'ACTIVE', false), ('promotion', 'PAUSED', 'ENDED', false),
  ('promotion', 'EXHAUSTED', 'ENDED', false),
  ('promotion', 'SCHEDULED', 'ACTIVE', true), ('promotion', 'ACTIVE', 'EXHAUSTED', true);

create function app_public.promotions_status(p app_public.promotions) returns app_public.promotion_status
language sql stable as $$
  select case
    when p.status = 'DRAFT' then 'DRAFT'
    when p.status = 'ENDED' or p.ends_at <= now() then 'ENDED'
    when p.usage_count >= p.usage_limit then 'EXHAUSTED'
    when p.status = 'PAUSED' then 'PAUSED'
    when p.starts_at > now() then 'SCHEDULED'
    else 'ACTIVE' end
$$;
grant execute on function app_public.promotions_status to plat_user, plat_anonymous;
comment on function app_public.promotions_status is E'@notNull\n\nWhether it runs: as its team, the clock and its uses say.';

create function app_private.tg_promotions__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  currency text := (select p.currency from app_public.projects p where p.id = new.project_id);
  status_now text;
begin
  new.code := upper(new.code);
  new.amount := app_hidden.to_money(new.amount, currency, 'amount');
  new.max_amount := app_hidden.to_money(new.max_amount, currency, 'maxAmount');
  if new.amount is not null and new.percent is not null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Give either an amount or a percentage.', '{"field": "percent"}');
  elsif new.kind = 'PRICE_REDUCTION' and new.amount is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'A price reduction is an amount.', '{"field": "amount"}');
  elsif new.kind in ('PERCENT_DISCOUNT', 'RATE_BUYDOWN') and new.percent is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'This kind of promotion is a percentage.', '{"field": "percent"}');
  elsif new.kind = 'GIFT' and new.percent is not null then
    perform app_hidden.fail('BAD_USER_INPUT', 'A gift has no percentage; give its value as an amount, or nothing.', '{"field": "percent"}');
  elsif new.kind <> 'GIFT' and new.amount is null and new.percent is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Give an amount or a percentage.', '{"field": "amount"}');
  end if;
  if new.usage_limit < new.usage_count then
    perform app_hidden.fail('BAD_USER_INPUT', format('The promotion was used %s times already; give that or more.', new.usage_count),
      '{"field": "usageLimit"}');
  end if;
  if tg_op = 'INSERT' then
    if new.status in ('PAUSED', 'ENDED', 'EXHAUSTED') then
      perform app_private.require_step('promotion', null, new.status);
    end if;
  elsif new.status <> old.status then
    status_now := app_public.promotions_status(old);
    if new.status = status_now then
      new.status := old.status;
    else
      perform app_private.require_step('promotion', status_now, new.status);
    end if;
  end if;
  -- Whether it is scheduled or runs is up to the clock.
  if new.status = 'SCHEDULED' then
    new.status := 'ACTIVE';
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.promotions
  for each row execute function app_private.tg_promotions__prepare();

comment on table app_public.promotions is E'@defaultOrder starts_at desc, id desc\n\nWhat buyers get on top for a time.';
comment on column app_public.promotions.title is 'What it is called.';
comment on column app_public.promotions.description is 'What it gives, in words.';
comment on column app_public.promotions.code is 'Code by which buyers name it, unique in the project whatever the case.';
comment on column app_public.promotions.kind is E'@filter\n\nWhat it gives.';
comment on column app_public.promotions.amount is 'The amount, in the currency of the project; either this or a percentage.';
comment on column app_public.promotions.percent is 'The percentage, above 0 to 100; either this or an amount.';
comment on column app_public.promotions.max_amount is 'The most that the percentage comes to.';
comment on column app_public.promotions.status is
  E'@masked\n\nDRAFT and PAUSED hold it back, ENDED ends it; with SCHEDULED or ACTIVE it runs from startsAt to endsAt until it is used up.';
comment on column app_public.promotions.starts_at is E'@filter\n\nFrom when it runs.';
comment on column app_public.promotions.ends_at is 'Until when it runs; open where null.';
comment on column app_public.promotions.applies_to is 'What it is for.';
comment on column app_public.promotions.stackable is 'Whether it goes together with others.';
comment on column app_public.promotions.usage_limit is 'How often it may be used; no limit where null.';
comment on column app_public.promotions.usage_count is 'How often it was used.';
comment on column app_public.promotions.terms is 'The small print.';
comment on column app_public.promotions.public is 'Whether everybody sees it who sees the project.';
