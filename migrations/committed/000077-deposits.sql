--! Previous: sha1:1a1a5a81f436352b982ebd067182110bd25be68c
--! Hash: sha1:044a3b64956be10296b74ea962bcfbcb1a866518
--! Message: deposits

-- Deposits: what a lead or buyer pays before closing, an amount or a percentage of the price.
--
--   SCHEDULED → INVOICED → PROCESSING → PARTIALLY_PAID → PAID; paid, be it in part → RELEASED, REFUNDED, FORFEITED
--   nothing paid yet → WAIVED, CANCELLED
--
-- Writing down what was paid (amountPaid) makes the deposit PARTIALLY_PAID or PAID, from wherever it is. It only grows: what
-- is given back is a status, not a smaller amount. Who sells makes and invoices deposits; what was paid, released, refunded,
-- forfeited or waived is written down with the permission finance.write. Whether one is overdue is asked of the calendar of
-- the project at each read.

select app_private.create_enum('deposit_status', 'What became of a deposit.', array[
  ['SCHEDULED', 'To be paid.'], ['INVOICED', 'Asked for.'], ['PROCESSING', 'The payment is on its way.'], ['PARTIALLY_PAID', 'Paid in part.'],
  ['PAID', 'Paid.'], ['RELEASED', 'Handed to the seller.'], ['REFUNDED', 'Given back.'], ['FORFEITED', 'Kept by the seller.'],
  ['WAIVED', 'Not asked for any more.'], ['CANCELLED', 'The deal fell through before it was paid.']]);
select app_private.create_enum('deposit_holder', 'Who holds a deposit.', array[
  ['ESCROW', 'An escrow agent.'], ['LAWYER', 'A lawyer.'], ['TITLE_COMPANY', 'A title company.'], ['BROKER', 'A broker.'], ['DEVELOPER', 'The developer.']]);
select app_private.create_enum('payment_method', 'How something is paid.', array[
  ['CARD', 'By card.'], ['ACH', 'By direct debit or credit through the Automated Clearing House.'], ['WIRE', 'By wire.'], ['CHEQUE', 'By cheque.'],
  ['CASH', 'In cash.'], ['BANK_TRANSFER', 'By bank transfer.'], ['OTHER', 'In another way.']]);

create table app_public.deposits (
  like app_private.project_record including all,
  lead_id uuid,
  buyer_id uuid,
  reservation_id uuid,
  milestone_id uuid,
  title app_public.short_text not null,
  status app_public.deposit_status not null default 'SCHEDULED',
  status_changed_at timestamptz not null default now(),
  sequence int not null,
  amount app_public.money constraint deposits_amount_some check (amount > 0),
  percent numeric constraint deposits_percent_range check (percent > 0 and percent <= 100 and scale(percent) <= 4),
  percent_base app_public.percent_base,
  amount_fixed app_public.money,
  amount_paid app_public.money not null default 0,
  currency app_public.currency_code not null,
  due_at date,
  due_rule app_public.deposit_due_rule,
  due_offset_days int,
  paid_at timestamptz,
  method app_public.payment_method,
  reference app_public.short_text,
  held_by app_public.deposit_holder not null default 'ESCROW',
  sent_to_holder_at timestamptz,
  released_at timestamptz,
  refunded_at timestamptz,
  forfeited_at timestamptz,
  invoice_number app_public.short_text,
  notes app_public.long_text,
  constraint deposits_one_value check (num_nonnulls(amount, percent) = 1),
  constraint deposits_percent_base check ((percent is null) = (percent_base is null)),
  constraint deposits_reservation_id_fkey foreign key (reservation_id, project_id) references app_public.reservations (id, project_id) on delete restrict,
  constraint deposits_milestone_id_fkey foreign key (milestone_id, project_id)
    references app_public.deposit_schedule_milestones (id, project_id) on delete set null (milestone_id)
);
comment on constraint deposits_amount_some on app_public.deposits is 'Give an amount above zero.';
comment on constraint deposits_percent_range on app_public.deposits is 'Give a percentage above 0, 100 at most, with 4 digits after the point at most.';
comment on constraint deposits_one_value on app_public.deposits is 'Give either an amount or a percentage.';
create index deposits_reservation on app_public.deposits (reservation_id, sequence, id) where deleted_at is null;
create index deposits_milestone on app_public.deposits (milestone_id) where deleted_at is null;
select app_private.make_deal_child('deposits', 'deposit', 'deposits', 'The deposits, in order', list_order => 'sequence asc, id asc',
  lead_read => 'sale.read', lead_write => 'sale.write', buyer_read => 'sale.read', buyer_write => 'sale.write', own => 'true', on_delete => 'restrict');
grant insert (lead_id, buyer_id, reservation_id, milestone_id, title, sequence, amount, percent, percent_base, due_at, held_by, method, reference, invoice_number, notes),
  update (status, title, sequence, amount_paid, due_at, held_by, method, reference, sent_to_holder_at, invoice_number, notes), delete
  on app_public.deposits to plat_user;

select app_private.make_state_machine('deposits', 'deposit',
  steps => array[
    ['SCHEDULED', 'INVOICED', 'hand', null], ['INVOICED', 'PROCESSING', 'hand', null],
    ['PROCESSING', 'PARTIALLY_PAID', 'hand', 'finance.write'], ['PROCESSING', 'PAID', 'hand', 'finance.write'], ['PARTIALLY_PAID', 'PAID', 'hand', 'finance.write'],
    ['SCHEDULED', 'PARTIALLY_PAID', 'service', null], ['SCHEDULED', 'PAID', 'service', null],
    ['INVOICED', 'PARTIALLY_PAID', 'service', null], ['INVOICED', 'PAID', 'service', null],
    ['PARTIALLY_PAID', 'RELEASED', 'hand', 'finance.write'], ['PARTIALLY_PAID', 'REFUNDED', 'hand', 'finance.write'], ['PARTIALLY_PAID', 'FORFEITED', 'hand', 'finance.write'],
    ['PAID', 'RELEASED', 'hand', 'finance.write'], ['PAID', 'REFUNDED', 'hand', 'finance.write'], ['PAID', 'FORFEITED', 'hand', 'finance.write'],
    ['SCHEDULED', 'WAIVED', 'hand', 'finance.write'], ['INVOICED', 'WAIVED', 'hand', 'finance.write'], ['PROCESSING', 'WAIVED', 'hand', 'finance.write'],
    ['SCHEDULED', 'CANCELLED', 'hand', null], ['INVOICED', 'CANCELLED', 'hand', null], ['PROCESSING', 'CANCELLED', 'hand', null]],
  initial => array['SCHEDULED']);
insert into app_private.event_names (subject, column_name, value, name)
  select 'deposit', 'status', s, lower(s) from unnest(array['INVOICED', 'PAID', 'RELEASED', 'REFUNDED', 'FORFEITED', 'WAIVED', 'CANCELLED']) s;

--------------------------------------------------------------------------------------------------------
-- How much, and when.

create function app_private.selections_total(unit_id uuid, lead_id uuid, buyer_id uuid) returns numeric
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (select coalesce(sum((app_private.personalization_sums(p)).selections), 0) from app_public.personalizations p
    where p.unit_id = $1 and (p.lead_id = $2 or p.buyer_id = $3) and p.status in ('APPROVED', 'SIGNED', 'LOCKED') and p.deleted_at is null);
end $$;
comment on function app_private.selections_total(uuid, uuid, uuid) is 'Like personalization_total, before discounts and credits.';

create function app_private.deposit_price(deposit app_public.deposits) returns numeric
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  buyer app_public.buyers;
  reservation app_public.reservations;
  price numeric;
  unit uuid;
begin
  if deposit.buyer_id is not null then
    select * into buyer from app_public.buyers b where b.id = deposit.buyer_id;
    price := buyer.price;
    unit := buyer.unit_id;
  else
    -- The one that holds, or held last: what a lead has paid stays a percentage of it.
    select * into reservation from app_public.reservations r
      where case when deposit.reservation_id is not null then r.id = deposit.reservation_id else r.lead_id = deposit.lead_id and r.deleted_at is null end
      order by r.status in ('PENDING', 'CONFIRMED', 'CONVERTED') desc, r.id desc limit 1;
    price := reservation.price;
    unit := reservation.unit_id;
  end if;
  return price + case deposit.percent_base
    when 'PURCHASE_PRICE' then 0
    when 'GROSS_PURCHASE_PRICE' then app_private.selections_total(unit, coalesce(deposit.lead_id, buyer.lead_id), deposit.buyer_id)
    else app_private.personalization_total(unit, coalesce(deposit.lead_id, buyer.lead_id), deposit.buyer_id) end;
end $$;
comment on function app_private.deposit_price(app_public.deposits) is
  'What the percentage of a deposit is of: the price of the purchase, for a lead that of its reservation; with what was chosen on top, where its base says so: gross before, net after discounts and credits.';

create function app_public.deposits_amount_due(d app_public.deposits) returns app_public.money
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if d.amount is not null or d.amount_fixed is not null then
    return coalesce(d.amount_fixed, d.amount);
  end if;
  return round(coalesce(app_private.deposit_price(d), 0) * d.percent / 100,
    coalesce((select c.digits from app_hidden.currencies c where c.code = d.currency), 2));
end $$;
comment on function app_public.deposits_amount_due is E'@notNull\n\nWhat is to be paid: the amount, or the percentage of the price as it is now, rounded half up; fixed once it is asked for or paid.';

create function app_hidden.project_today(project_id uuid) returns date
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (now() at time zone p.time_zone)::date from app_public.projects p where p.id = $1
$$;
comment on function app_hidden.project_today(uuid) is 'The day it is in the time zone of the project.';

create function app_public.deposits_is_overdue(d app_public.deposits) returns boolean
language sql stable as $$
  select d.due_at is not null and d.status in ('SCHEDULED', 'INVOICED', 'PROCESSING', 'PARTIALLY_PAID') and d.due_at < app_hidden.project_today(d.project_id)
$$;
comment on function app_public.deposits_is_overdue is E'@notNull\n\nWhether its day is over, where the project is, and it is not paid in full.';

create function app_private.deposit_due_date(deposit app_public.deposits) returns date
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select case deposit.due_rule
      when 'ON_RESERVATION' then coalesce((r.inserted_at at time zone p.time_zone)::date, b.purchase_date)
      when 'ON_SIGNING' then b.purchase_date
      when 'DAYS_AFTER_SIGNING' then b.purchase_date
      when 'ON_FIRM' then b.purchase_firm_date
      when 'ON_CLOSING' then coalesce(b.closing_date, b.estimated_closing_date) end + coalesce(deposit.due_offset_days, 0)
  from app_public.projects p
  left join app_public.buyers b on b.id = deposit.buyer_id
  left join app_public.reservations r on r.id = coalesce(deposit.reservation_id, b.reservation_id,
    (select l.id from app_public.reservations l where l.lead_id = deposit.lead_id and l.status in ('PENDING', 'CONFIRMED', 'CONVERTED') and l.deleted_at is null order by l.id desc limit 1))
  where p.id = deposit.project_id
$$;
comment on function app_private.deposit_due_date(app_public.deposits) is
  'The day that the rule of a deposit means; null as long as nobody knows, and for CONSTRUCTION_PHASE, which the team knows.';

create function app_private.tg_deposits__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  milestone app_public.deposit_schedule_milestones;
  due numeric;
  result text;
begin
  if tg_op = 'INSERT' then
    if exists (select from app_public.buyers b where b.id = new.buyer_id and b.status = 'CANCELLED') then
      perform app_hidden.fail('CONFLICT', 'This purchase was cancelled.', '{"field": "buyerId"}');
    end if;
    new.currency := (select p.currency from app_public.projects p where p.id = new.project_id);
    if new.milestone_id is not null then
      select * into milestone from app_public.deposit_schedule_milestones m where m.id = new.milestone_id and m.project_id = new.project_id and m.deleted_at is null;
      if milestone.id is null then
        perform app_hidden.fail('NOT_FOUND', 'There is no such milestone in the deposit schedule of this project.', '{"field": "milestoneId"}');
      end if;
      if num_nonnulls(new.amount, new.percent) = 0 then
        new.amount := milestone.amount;
        new.percent := milestone.percent;
        new.percent_base := coalesce(new.percent_base, milestone.percent_base);
      end if;
      if new.due_at is null then
        new.due_rule := case when milestone.due_rule <> 'FIXED_DATE' then milestone.due_rule end;
        new.due_offset_days := milestone.due_offset_days;
        new.due_at := case when milestone.due_rule = 'FIXED_DATE' then milestone.due_date + coalesce(milestone.due_offset_days, 0)
          else app_private.deposit_due_date(new) end;
      end if;
    end if;
    if num_nonnulls(new.amount, new.percent) <> 1 then
      perform app_hidden.fail('BAD_USER_INPUT', 'Give either an amount or a percentage.',
        jsonb_build_object('field', case when new.amount is null then 'amount' else 'percent' end));
    end if;
    new.amount := app_hidden.to_money(new.amount, new.currency, 'amount');
    new.amount_paid := app_hidden.to_money(new.amount_paid, new.currency, 'amountPaid');
    new.percent_base := case when new.percent is not null then coalesce(new.percent_base, 'PURCHASE_PRICE') end;
    if new.reservation_id is not null and not exists (
      select from app_public.reservations r left join app_public.buyers b on b.id = new.buyer_id
      where r.id = new.reservation_id and r.deleted_at is null
        and (r.lead_id = new.lead_id or r.purchase_id = b.id or r.id = b.reservation_id or r.lead_id = b.lead_id)) then
      perform app_hidden.fail('BAD_USER_INPUT', 'The reservation is not of this lead or buyer.', '{"field": "reservationId"}');
    end if;
    if new.percent is not null and app_private.deposit_price(new) is null then
      perform app_hidden.fail('BAD_USER_INPUT', 'There is no price to take a percentage of yet; give an amount, or reserve a home first.', '{"field": "percent"}');
    end if;
    -- One after the other on each deal, so that each has its place.
    perform from app_public.buyers b where b.id = new.buyer_id for no key update;
    perform from app_public.leads l where l.id = new.lead_id for no key update;
    new.sequence := coalesce(new.sequence, milestone.sequence, (select coalesce(max(d.sequence), 0) + 1 from app_public.deposits d
      where (d.lead_id = new.lead_id or d.buyer_id = new.buyer_id) and d.deleted_at is null));
    return new;
  end if;

  if new.due_at is distinct from old.due_at and not coalesce(app_hidden.is_service(), false) then
    new.due_rule := null; -- set by hand: it follows the purchase no more
  end if;
  if new.status <> old.status and not coalesce(app_hidden.is_service(), false) then
    perform app_private.require_step('deposit', old.status, new.status);
  end if;
  due := app_public.deposits_amount_due(old);
  if new.amount_paid <> old.amount_paid then
    if not coalesce(app_hidden.is_service(), false) and app_public.current_user_id() is not null
      and not app_hidden.project_can(new.project_id, new.organization_id, 'finance.write') then
      perform app_hidden.fail('FORBIDDEN', 'This takes the permission finance.write.', '{"permission": "finance.write", "field": "amountPaid"}');
    end if;
    new.amount_paid := app_hidden.to_money(new.amount_paid, new.currency, 'amountPaid');
    if old.status not in ('SCHEDULED', 'INVOICED', 'PROCESSING', 'PARTIALLY_PAID') then
      perform app_hidden.fail('CONFLICT', format('A deposit that is %s takes no payment.', old.status), '{"field": "amountPaid"}');
    elsif new.amount_paid < old.amount_paid then
      perform app_hidden.fail('BAD_USER_INPUT', 'What was paid only grows; give a deposit back with the status REFUNDED.', '{"field": "amountPaid"}');
    elsif new.amount_paid > due then
      perform app_hidden.fail('BAD_USER_INPUT', format('That is more than is due, %s.', due), '{"field": "amountPaid"}');
    end if;
    result := case when new.amount_paid = due then 'PAID' else 'PARTIALLY_PAID' end;
    if new.status not in (old.status, result) then
      perform app_hidden.fail('BAD_USER_INPUT', format('With this amount the deposit is %s.', result), '{"field": "status"}');
    end if;
    if new.status = old.status and result <> old.status and not coalesce(app_hidden.is_service(), false) then
      -- A step of the service, from here to _310_paid.
      perform set_config('plat.service', 'on', true), set_config('plat.deposit_paid', 'on', true);
    end if;
    new.status := result;
  elsif new.status = 'PAID' and old.status in ('PROCESSING', 'PARTIALLY_PAID') then
    new.amount_paid := due;
  elsif new.status = 'PARTIALLY_PAID' and old.status = 'PROCESSING' then
    perform app_hidden.fail('BAD_USER_INPUT', 'Say how much was paid.', '{"field": "amountPaid"}');
  end if;
  if new.status <> old.status then
    -- What is asked for, or paid, does not change with the price any more.
    if new.percent is not null and old.status = 'SCHEDULED' and new.status not in ('WAIVED', 'CANCELLED') then
      new.amount_fixed := due;
    end if;
    new.paid_at := case when new.status = 'PAID' then now() else old.paid_at end;
    new.released_at := case when new.status = 'RELEASED' then now() end;
    new.refunded_at := case when new.status = 'REFUNDED' then now() end;
    new.forfeited_at := case when new.status = 'FORFEITED' then now() end;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.deposits for each row execute function app_private.tg_deposits__prepare();

create function app_private.tg_deposits__paid() returns trigger
language plpgsql volatile as $$
begin
  if app_hidden.setting('deposit_paid') = 'on' then
    perform set_config('plat.service', '', true), set_config('plat.deposit_paid', '', true);
  end if;
  return new;
end $$;
create trigger _310_paid before update of amount_paid on app_public.deposits for each row execute function app_private.tg_deposits__paid();

create function app_private.tg_deposits__keep() returns trigger
language plpgsql volatile as $$
begin
  if old.status not in ('SCHEDULED', 'WAIVED', 'CANCELLED') then
    perform app_hidden.fail('CONFLICT', format('A deposit that is %s is kept.', old.status));
  end if;
  return old;
end $$;
create trigger _200_keep before delete on app_public.deposits for each row execute function app_private.tg_deposits__keep();

--------------------------------------------------------------------------------------------------------
-- The schedule of the project: a purchase copies it, and the days follow the purchase until somebody sets one by hand.

create function app_private.copy_deposit_schedule(buyer_id uuid) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  amount int;
begin
  insert into app_public.deposits (buyer_id, milestone_id, title)
    select b.id, m.id, m.title
    from app_public.buyers b
    join app_public.deposit_schedule_milestones m on m.project_id = b.project_id and m.deleted_at is null
    where b.id = copy_deposit_schedule.buyer_id
      -- What the lead has paid, or is to pay, is not asked for twice.
      and not exists (select from app_public.deposits d
        where d.milestone_id = m.id and (d.buyer_id = b.id or d.lead_id = b.lead_id) and d.deleted_at is null and d.status not in ('WAIVED', 'CANCELLED', 'REFUNDED'))
    order by m.sequence, m.id;
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.copy_deposit_schedule(uuid) is
  'Gives a purchase the deposits of its project''s schedule that neither it nor its lead has yet; returns how many.';

create function app_private.tg_buyers__deposit_dates() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.deposits d set due_at = app_private.deposit_due_date(d)
    where d.buyer_id = new.id and d.due_rule is not null and d.due_rule <> 'CONSTRUCTION_PHASE' and d.status in ('SCHEDULED', 'INVOICED') and d.deleted_at is null
      and d.due_at is distinct from app_private.deposit_due_date(d);
  perform set_config('plat.service', before, true);
  return null;
end $$;
create trigger _510_deposit_dates after update of purchase_date, purchase_firm_date, estimated_closing_date, closing_date on app_public.buyers for each row
  when ((old.purchase_date, old.purchase_firm_date, old.estimated_closing_date, old.closing_date)
    is distinct from (new.purchase_date, new.purchase_firm_date, new.estimated_closing_date, new.closing_date))
  execute function app_private.tg_buyers__deposit_dates();

--------------------------------------------------------------------------------------------------------

-- Definer, because the balance is the same for whoever sees the purchase.
create or replace function app_public.buyers_net_purchase_price_balance(b app_public.buyers) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_public.buyers_net_purchase_price(b) - coalesce((
    select sum(d.amount_paid) from app_public.deposits d
    where (d.buyer_id = b.id or d.lead_id = b.lead_id) and d.status in ('PARTIALLY_PAID', 'PAID', 'RELEASED') and d.deleted_at is null), 0)
$$;

create function app_public.deposits_notes(d app_public.deposits) returns app_public.long_text
language sql stable as $$ select case when d.notes is not null and app_hidden.project_can(d.project_id, d.organization_id, 'sale.read') then d.notes end $$;
create function app_public.deposits_allowed_transitions(d app_public.deposits) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('deposit', jsonb_build_object('status', d.status)) $$;
grant execute on function app_public.deposits_amount_due, app_hidden.project_today, app_public.deposits_is_overdue, app_public.deposits_notes,
  app_public.deposits_allowed_transitions to plat_user;
comment on function app_public.deposits_notes is 'What the team should know; null for the buyer.';
comment on function app_public.deposits_allowed_transitions is E'@notNull\n\nThe steps that the deposit can take from its status.';

comment on table app_public.deposits is E'@defaultOrder sequence asc, id asc\n\nWhat a lead or buyer pays before closing.';
comment on column app_public.deposits.reservation_id is 'The reservation that it belongs to.';
comment on column app_public.deposits.milestone_id is 'The milestone of the project''s deposit schedule; says the amount or percentage, and the day, where they are left out.';
comment on column app_public.deposits.title is 'What it is called.';
comment on column app_public.deposits.status is 'What became of it.';
comment on column app_public.deposits.status_changed_at is 'Since when it has its status.';
comment on column app_public.deposits.sequence is E'@insertOptional\n\nPlace among the deposits of the deal; the next one where left out.';
comment on column app_public.deposits.amount is 'The amount; either this or a percentage.';
comment on column app_public.deposits.percent is 'The percentage; either this or an amount.';
comment on column app_public.deposits.percent_base is 'What the percentage is of; PURCHASE_PRICE where left out. Null with an amount.';
comment on column app_public.deposits.amount_fixed is E'@behavior -*\n\nWhat is due since it was asked for or paid, whatever becomes of the price.';
comment on column app_public.deposits.amount_paid is 'What was paid so far.';
comment on column app_public.deposits.currency is 'The currency of the project.';
comment on column app_public.deposits.due_at is 'The day by whose end it is to be paid, where the project is.';
comment on column app_public.deposits.due_rule is E'@behavior -*\n\nThe rule of the schedule that its day follows.';
comment on column app_public.deposits.due_offset_days is E'@behavior -*\n\nHow many days after what the rule names.';
comment on column app_public.deposits.paid_at is 'When it was paid in full.';
comment on column app_public.deposits.method is 'How it is paid.';
comment on column app_public.deposits.reference is 'Number of the cheque or wire.';
comment on column app_public.deposits.held_by is 'Who holds it.';
comment on column app_public.deposits.sent_to_holder_at is 'When it was sent to who holds it.';
comment on column app_public.deposits.released_at is 'When it was handed to the seller.';
comment on column app_public.deposits.refunded_at is 'When it was given back.';
comment on column app_public.deposits.forfeited_at is 'When it fell to the seller.';
comment on column app_public.deposits.invoice_number is 'Number of the invoice.';
comment on column app_public.deposits.notes is E'@masked\n\nWhat the team should know.';
comment on constraint deposits_reservation_id_fkey on app_public.deposits is
  E'@fieldName reservation\n@foreignFieldName deposits\n@backwardDescription The deposits, in order.\n\nThe reservation that it belongs to.';
comment on constraint deposits_milestone_id_fkey on app_public.deposits is E'@fieldName milestone\n@backwardBehavior -*\n\nThe milestone of the deposit schedule.';
comment on constraint deposits_project_id_fkey on app_public.deposits is
  E'@parent\n@fieldName project\n@foreignFieldName deposits\n@backwardPermission finance.read\n@backwardDescription The deposits of all leads and buyers; null without the permission finance.read.\n\nThe project.';
