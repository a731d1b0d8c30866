--! Previous: sha1:cde223fbd4d018ea12933ee063308cef3adbee81
--! Hash: sha1:a8b9d7ba41d4974f443f39d3c64153a72bfa2e77
--! Message: tickets-about-drafts

-- A ticket may be about a draft: whoever resolves it may send the draft.

alter table app_public.escalation_tickets add constraint escalation_tickets_generation_id_fkey
  foreign key (generation_id) references app_public.service_intelligence_generations on delete set null;
comment on constraint escalation_tickets_generation_id_fkey on app_public.escalation_tickets is
  E'@fieldName generation\n@backwardBehavior -*\n\nThe draft that it is about.';

create function app_private.send_draft_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if ticket.generation_id is null then
    perform app_hidden.fail('CONFLICT', 'This ticket is about no draft.');
  end if;
  perform app_private.send_generation(ticket.generation_id, ticket.resolved_by_id);
  return true;
end $$;
comment on function app_private.send_draft_by_ticket(app_public.escalation_tickets) is 'Sends the draft of a ticket to its lead.';
insert into app_hidden.ticket_actions (action, permission, perform) values ('SEND_DRAFT', 'lead.write', 'app_private.send_draft_by_ticket');
