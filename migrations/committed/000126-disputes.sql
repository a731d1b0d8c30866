--! Previous: sha1:2076a4ac8869637a16e1f24679bf01d1bb80e8b8
--! Hash: sha1:368cfe340efb4f6b4d418b9c0d9ee689a8374d62
--! Message: disputes

-- A disputed charge is for people to decide: an escalation ticket of the kind PAYMENT_DISPUTE says so, at once, because the bank waits for a
-- few days only. REFUND accepts the dispute, by which the payer gets the money back; DISMISS leaves it to whoever answers the bank.

create function app_private.tg_processor_charges__dispute() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.open_ticket('PAYMENT_DISPUTE', 'dispute:' || new.id, new.organization_id, format('A payment of %s %s is disputed', new.amount, new.currency),
    '{REFUND,DISMISS}', project_id => new.project_id, priority => 'HIGH', lead_id => case when new.buyer_id is null then new.lead_id end, buyer_id => new.buyer_id,
    subject_type => 'charge', subject_id => new.id,
    description => 'The holder of the card contests the payment at the bank. Answer at the payment processor in time, or accept the dispute: the payer then gets the money back.');
  return null;
end $$;
create trigger _510_dispute after update of status on app_public.processor_charges for each row
  when (new.status = 'DISPUTED' and old.status <> 'DISPUTED' and new.dispute_status = 'OPEN') execute function app_private.tg_processor_charges__dispute();

create function app_private.accept_dispute_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_public.processor_charges c where c.id = ticket.subject_id and c.dispute_status = 'OPEN') then
    perform app_hidden.fail('CONFLICT', 'The bank has decided already.');
  end if;
  perform app_private.add_job('dispute__accepted', jsonb_build_object('id', ticket.subject_id, 'ticket_id', ticket.id), job_key => 'dispute ' || ticket.id);
  return false;
end $$;
comment on function app_private.accept_dispute_by_ticket(app_public.escalation_tickets) is 'Lets the processor accept the dispute, and the ticket end with its answer.';
insert into app_hidden.ticket_actions (action, kind, permission, perform) values ('REFUND', 'PAYMENT_DISPUTE', 'finance.write', 'app_private.accept_dispute_by_ticket');
