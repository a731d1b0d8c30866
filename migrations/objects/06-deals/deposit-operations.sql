-- Amounts and due dates of deposits.
create function app_private.selections_total(unit_id uuid, lead_id uuid, buyer_id uuid) returns numeric
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (select coalesce(sum((app_private.personalization_sums(p)).selections), 0) from app_public.personalizations p
    where p.unit_id = $1 and (p.lead_id = $2 or p.buyer_id = $3) and p.status in ('APPROVED', 'SIGNED', 'LOCKED')
      and p.deleted_at is null);
end $$;
comment on function app_private.selections_total(uuid, uuid, uuid) is
  'Like personalization_total, before discounts and credits.';

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
    -- The active reservation, or the last one: an earlier payment of a lead remains a percentage of its price.
    select * into reservation from app_public.reservations r
      where case when deposit.reservation_id is not null then r.id = deposit.reservation_id
        else r.lead_id = deposit.lead_id and r.deleted_at is null end
      order by r.status in ('PENDING', 'CONFIRMED', 'CONVERTED') desc, r.id desc limit 1;
    price := reservation.price;
    unit := reservation.unit_id;
  end if;
  return price + case deposit.percent_base
    when 'PURCHASE_PRICE' then 0
    when 'GROSS_PURCHASE_PRICE' then app_private.selections_total(unit, coalesce(deposit.lead_id, buyer.lead_id),
      deposit.buyer_id)
    else app_private.personalization_total(unit, coalesce(deposit.lead_id, buyer.lead_id), deposit.buyer_id) end;
end $$;
comment on function app_private.deposit_price(app_public.deposits) is
  'Base amount of a percentage deposit: the price of the purchase, or for a lead that of its reservation; '
  'depending on percentBase, with options before (gross) or after (net) discounts and credits.';

create function app_hidden.project_today(project_id uuid) returns date
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (now() at time zone p.time_zone)::date from app_public.projects p
    where p.id = $1 and app_private.has_part_in(p.id)
$$;
comment on function app_hidden.project_today(uuid) is
  'The day it is in the time zone of a project in which the viewer has a part.';

create function app_private.deposit_due_date(deposit app_public.deposits) returns date
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select case deposit.due_rule
      when 'ON_RESERVATION' then coalesce((r.inserted_at at time zone p.time_zone)::date, b.purchase_date)
      when 'ON_SIGNING' then b.purchase_date
      when 'DAYS_AFTER_SIGNING' then b.purchase_date
      when 'ON_FIRM' then b.purchase_firm_date
      when 'ON_CLOSING' then coalesce(b.closing_date, b.estimated_closing_date) end + coalesce(deposit.due_offset_days,
        0)
  from app_public.projects p
  left join app_public.buyers b on b.id = deposit.buyer_id
  left join app_public.reservations r on r.id = coalesce(deposit.reservation_id, b.reservation_id,
    (select l.id from app_public.reservations l where l.lead_id = deposit.lead_id
      and l.status in ('PENDING', 'CONFIRMED', 'CONVERTED') and l.deleted_at is null order by l.id desc limit 1))
  where p.id = deposit.project_id
$$;
comment on function app_private.deposit_due_date(app_public.deposits) is
  'The day that the rule of a deposit means; null as long as nobody knows, and for CONSTRUCTION_PHASE, which the team '
  'knows.';

-- The schedule of the project: a purchase copies it, and due dates follow the purchase until they are set manually.
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
      -- Amounts that the lead has paid, or has to pay, are not charged twice.
      and not exists (select from app_public.deposits d
        where d.milestone_id = m.id and (d.buyer_id = b.id
            or (d.lead_id = b.lead_id and b.id = app_hidden.purchase_of_lead(d.lead_id, d.reservation_id)))
          and d.deleted_at is null
          and d.status not in ('WAIVED', 'CANCELLED', 'REFUNDED'))
    order by m.sequence, m.id;
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.copy_deposit_schedule(uuid) is
  'Creates the deposits of the project''s schedule that neither the purchase nor its lead has yet; returns their '
  'number.';

create function app_private.tg_reservations__deposits_first() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_public.deposits (reservation_id, title, amount, is_reservation_fee, sequence, due_at, reference,
      held_by)
    select new.id, 'Reservation fee', new.fee, true, 0, (new.inserted_at at time zone p.time_zone)::date,
      new.transaction_id, 'DEVELOPER'
    from app_public.projects p where p.id = new.project_id and new.fee > 0;
  insert into app_public.deposits (reservation_id, milestone_id, title)
    select new.id, m.id, m.title from app_public.deposit_schedule_milestones m
    where m.project_id = new.project_id and m.due_rule = 'ON_RESERVATION' and m.deleted_at is null
    order by m.sequence, m.id;
  return null;
end $$;
comment on function app_private.tg_reservations__deposits_first() is
  'Creates the fee and the scheduled deposits of a new reservation.';
create trigger _450_deposits_first after insert on app_public.reservations for each row
  execute function app_private.tg_reservations__deposits_first();

create function app_private.tg_reservations__deposits() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  ended constant uuid[] := array(select n.id from new_rows n full join old_rows o using (id)
    where case when n.status in ('EXPIRED', 'CANCELLED', 'REFUNDED') then n.status is distinct from o.status
      else false end);
begin
  if exists (select from new_rows n where n.status = 'CONVERTED') then
    update app_public.deposits d set buyer_id = c.purchase_id
      from (select n.id, n.purchase_id from new_rows n full join old_rows o using (id)
        where case when n.status = 'CONVERTED' then o.status <> 'CONVERTED' else false end offset 0) c
      where d.reservation_id = c.id and d.lead_id is null and d.buyer_id is null and d.deleted_at is null;
  end if;
  if ended <> '{}' then
    perform set_config('plat.service', 'on', true);
    update app_public.deposits d set status = 'CANCELLED'
      where d.reservation_id = any (ended) and d.deleted_at is null
        and exists (select from app_hidden.transitions t where t.subject = 'deposit' and t.from_state = d.status
          and t.to_state = 'CANCELLED');
    perform set_config('plat.service', before, true);
  end if;
  return null;
end $$;
comment on function app_private.tg_reservations__deposits() is
  'Moves deposits of converted reservations to the purchase, and cancels unpaid deposits of reservations that ended.';
create trigger _390_deposits after update on app_public.reservations
  referencing old table as old_rows new table as new_rows for each statement
  execute function app_private.tg_reservations__deposits();

-- Where the fee was paid elsewhere, its deposit says so too.
create function app_private.tg_reservations__fee_reference() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select n.id, n.transaction_id from new_rows n except select o.id, o.transaction_id from old_rows o) then
    update app_public.deposits d set reference = c.after
      from (select n.id, n.transaction_id as after, o.transaction_id as before
        from new_rows n full join old_rows o using (id)
        where case when n.id is null then false else n.transaction_id is distinct from o.transaction_id end offset 0) c
      where d.reservation_id = c.id and d.is_reservation_fee
        and d.deleted_at is null and d.reference is not distinct from c.before;
  end if;
  return null;
end $$;
create trigger _450_fee_reference after update on app_public.reservations
  referencing old table as old_rows new table as new_rows for each statement
  execute function app_private.tg_reservations__fee_reference();

create function app_public.reservations_fee_deposit(r app_public.reservations) returns setof app_public.deposits
language sql stable rows 1 as $$
  select d.* from app_hidden.masked_deposits d where d.reservation_id = r.id and d.is_reservation_fee
    and d.deleted_at is null
  limit 1
$$;
comment on function app_public.reservations_fee_deposit is
  'Deposit for the reservation fee, which the buyer pays with `createPaymentIntent`; null without a fee.';
grant execute on function app_public.reservations_fee_deposit to plat_user, plat_anonymous;

create function app_private.is_deposit_of(deposit app_public.deposits, offer app_public.offers) returns boolean
language sql stable as $$
  select deposit.lead_id = offer.lead_id or deposit.buyer_id = offer.buyer_id
    or exists (select from app_public.buyers b where b.id = deposit.buyer_id and b.lead_id = offer.lead_id
      and (b.unit_id is null or b.unit_id = offer.unit_id))
$$;
comment on function app_private.is_deposit_of(app_public.deposits, app_public.offers) is
  'Whether a deposit is of the people who negotiated the offer.';

create function app_public.binding_offers_purchase_price_balance(b app_public.binding_offers) returns app_public.money
language sql stable as $$
  select greatest(0, b.price + app_private.options_total(b.unit_id, b.lead_id, b.buyer_id)
    - coalesce((select sum(d.amount_paid - d.amount_refunded) from app_public.deposits d
      where d.offer_id = b.id and d.status in ('PARTIALLY_PAID', 'PAID', 'RELEASED') and d.deleted_at is null), 0))
$$;
grant execute on function app_public.binding_offers_purchase_price_balance to plat_user, plat_anonymous;
comment on function app_public.binding_offers_purchase_price_balance is
  E'@notNull\n\n`totalContractPrice` less the deposits that were paid and not refunded.';

