-- Deposits follow their charges: PROCESSING while one is pending, PARTIALLY_PAID or PAID by successful ones,
-- PARTIALLY_PAID again and REFUNDED by refunds (a chargeback counts too). An overpayment (two payments completed
-- concurrently, or one of a deposit that was cancelled) is refunded automatically. A disputed charge opens an
-- escalation ticket.
--
-- Disputes are decided by people: an escalation ticket of the kind PAYMENT_DISPUTE is opened immediately, because the
-- bank only waits for a few days. REFUND accepts the dispute, which refunds the payer; DISMISS leaves it to a response
-- to the bank.

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
    part := least(charge.amount, app_private.deposit_due(deposit) - deposit.amount_paid
      + deposit.amount_refunded);
  end if;
  update app_public.processor_charges c set deposit_amount = part where c.id = charge.id;
  if part > 0 then
    update app_public.deposits d set amount_paid = d.amount_paid + part, method = charge.method where d.id = deposit.id;
  end if;
  if part < charge.amount then
    insert into app_public.processor_refunds (organization_id, charge_id, amount, reason, note, created_by_id)
      values (charge.organization_id, charge.id, charge.amount - part, 'DUPLICATE', 'More than was due.', null)
        returning * into refund;
    perform app_private.add_job('processor_refund__owed', jsonb_build_object('id', refund.id));
  end if;
end $$;
comment on function app_private.pay_deposit(app_public.processor_charges) is
  'Records the part of a charge that pays its deposit, and refunds the rest.';

create function app_private.deposit_given_back(charge app_public.processor_charges) returns numeric
language sql immutable as $$
  select greatest(0, case when charge.dispute_status = 'LOST' then charge.amount else charge.amount_refunded end
    - (charge.amount - coalesce(charge.deposit_amount, charge.amount)))
$$;
comment on function app_private.deposit_given_back(app_public.processor_charges) is
  'Part of a charge''s payment of its deposit that was refunded; excess payments are refunded first.';

create function app_private.accept_dispute_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_public.processor_charges c where c.id = ticket.subject_id
    and c.dispute_status = 'OPEN') then
    perform app_hidden.fail('CONFLICT', 'The bank has already decided.');
  end if;
  perform app_private.add_job('dispute__accepted', jsonb_build_object('id', ticket.subject_id, 'ticket_id', ticket.id),
    job_key => 'dispute ' || ticket.id);
  return false;
end $$;
comment on function app_private.accept_dispute_by_ticket(app_public.escalation_tickets) is
  'Lets the processor accept the dispute, and the ticket end with its answer.';
insert into app_hidden.ticket_actions (action, kind, permission, perform)
  values ('REFUND', 'PAYMENT_DISPUTE', 'finance.write', 'app_private.accept_dispute_by_ticket');
