--! Previous: sha1:29c61f9d94e4510397c9a79b2dfb900328422e0d
--! Hash: sha1:e3c3c03db93ea289a3e66042d9eb12b55f02e200
--! Message: what-follows-charges

-- Deposits follow the charges that pay them: PROCESSING while one is on its way, PARTIALLY_PAID or PAID by those that succeed, REFUNDED
-- when all that was paid by card was given back. What is paid beyond what is due (two payments that were completed at once, or one
-- of a deposit that was cancelled meanwhile) goes back by itself. A disputed charge opens an escalation ticket where there are such.

insert into app_hidden.transitions (subject, from_state, to_state, by_service) values
  ('deposit', 'SCHEDULED', 'PROCESSING', true), ('deposit', 'PROCESSING', 'INVOICED', true);

create function app_private.pay_deposit(charge app_public.processor_charges) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  deposit app_public.deposits;
  part numeric := 0;
  refund app_public.processor_refunds;
begin
  select d.* into deposit from app_public.deposits d where d.id = charge.deposit_id for no key update;
  if deposit.deleted_at is null and deposit.status in ('SCHEDULED', 'INVOICED', 'PROCESSING', 'PARTIALLY_PAID') then
    part := least(charge.amount, app_public.deposits_amount_due(deposit) - deposit.amount_paid);
  end if;
  if part > 0 then
    update app_public.deposits d set amount_paid = d.amount_paid + part, method = charge.method where d.id = deposit.id;
  end if;
  if part < charge.amount then
    insert into app_public.processor_refunds (organization_id, charge_id, amount, reason, note, created_by_id)
      values (charge.organization_id, charge.id, charge.amount - part, 'DUPLICATE', 'More than was due.', null) returning * into refund;
    perform app_private.add_job('processor_refund__owed', jsonb_build_object('id', refund.id));
  end if;
end $$;
comment on function app_private.pay_deposit(app_public.processor_charges) is 'Writes down what a charge pays of its deposit, and gives the rest back.';

create function app_private.tg_processor_charges__follow() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  service text := coalesce(current_setting('plat.service', true), '');
  clock text := coalesce(current_setting('plat.clock', true), '');
  deposit app_public.deposits;
begin
  if tg_op = 'UPDATE' and new.status = old.status then
    return null;
  end if;
  perform set_config('plat.service', 'on', true);
  if new.deposit_id is not null then
    if new.status in ('PENDING', 'REQUIRES_ACTION') then
      update app_public.deposits d set status = 'PROCESSING', method = 'CARD'
        where d.id = new.deposit_id and d.status in ('SCHEDULED', 'INVOICED') and d.deleted_at is null;
    elsif new.status in ('FAILED', 'CANCELLED') then
      update app_public.deposits d set status = 'INVOICED'
        where d.id = new.deposit_id and d.status = 'PROCESSING' and d.deleted_at is null and d.amount_paid = 0
          and not exists (select from app_public.processor_charges c where c.deposit_id = d.id and c.status in ('PENDING', 'REQUIRES_ACTION'));
    elsif new.status = 'SUCCEEDED' and (tg_op = 'INSERT' or old.captured_at is null) then
      perform app_private.pay_deposit(new);
    elsif new.status = 'REFUNDED' then
      select d.* into deposit from app_public.deposits d where d.id = new.deposit_id for no key update;
      -- Given back is what was paid by card, so nothing else may have paid it.
      if deposit.status in ('PARTIALLY_PAID', 'PAID') and deposit.deleted_at is null and deposit.amount_paid <= (
          select coalesce(sum(c.amount_refunded), 0) from app_public.processor_charges c where c.deposit_id = deposit.id and c.captured_at is not null)
        and not exists (select from app_public.processor_charges c where c.deposit_id = deposit.id and c.status in ('SUCCEEDED', 'PARTIALLY_REFUNDED', 'DISPUTED')) then
        update app_public.deposits d set status = 'REFUNDED' where d.id = deposit.id;
      end if;
    end if;
  end if;
  perform set_config('plat.service', service, true), set_config('plat.clock', clock, true);
  return null;
end $$;
create trigger _500_follow after insert or update of status on app_public.processor_charges for each row execute function app_private.tg_processor_charges__follow();
