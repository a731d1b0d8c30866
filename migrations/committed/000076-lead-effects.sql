--! Previous: sha1:9366aa9bc302cde09e16a6d2d9ce2823700bead3
--! Hash: sha1:1a1a5a81f436352b982ebd067182110bd25be68c
--! Message: lead-effects

-- What calls, mails and appointments do to their lead, or to the lead that the buyer was:
--
--   the first outbound call, mail or agreed appointment   NEW → CONTACTED, firstResponseAt
--   messages, calls, appointments                         lastInteractionAt, which never goes back
--   a call with the outcome DO_NOT_CALL                   doNotContact
--
-- A call that was only queued, or failed or was given up before it rang through, reached nobody and does nothing.

create function app_private.lead_interaction(lead_id uuid, at timestamptz, is_response boolean) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- Nothing that is to come has happened yet.
  happened constant timestamptz := least(at, now());
begin
  update app_public.leads l set
      last_interaction_at = greatest(l.last_interaction_at, happened),
      first_response_at = case when is_response then coalesce(l.first_response_at, greatest(happened, l.registered_at)) else l.first_response_at end,
      status = case when is_response and l.status = 'NEW' then 'CONTACTED' else l.status end,
      status_before_deal = case when is_response and l.status_before_deal = 'NEW' then 'CONTACTED' else l.status_before_deal end
    where l.id = lead_interaction.lead_id and l.deleted_at is null
      and (l.last_interaction_at is null or l.last_interaction_at < happened
        or (is_response and (l.first_response_at is null or l.status = 'NEW' or l.status_before_deal = 'NEW')));
end $$;
comment on function app_private.lead_interaction(uuid, timestamptz, boolean) is
  'Somebody of the team was in touch with the lead; is_response where the team turned to the lead, by a call, mail or appointment.';

create function app_private.tg_phone_calls__lead() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  person uuid := coalesce(new.lead_id, (select b.lead_id from app_public.buyers b where b.id = new.buyer_id));
begin
  if person is null then
    return null;
  end if;
  if new.status not in ('QUEUED', 'FAILED', 'CANCELLED') then
    perform app_private.lead_interaction(person, new.started_at, new.direction = 'OUTBOUND');
  end if;
  if new.outcome = 'DO_NOT_CALL' then
    update app_public.leads l set do_not_contact = true where l.id = person and not l.do_not_contact and l.deleted_at is null;
  end if;
  return null;
end $$;
create trigger _500_lead_first after insert on app_public.phone_calls for each row execute function app_private.tg_phone_calls__lead();
create trigger _500_lead after update of status, outcome on app_public.phone_calls for each row
  when ((old.status, old.outcome) is distinct from (new.status, new.outcome)) execute function app_private.tg_phone_calls__lead();

create function app_private.tg_appointments__lead() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  person uuid := coalesce(new.lead_id, (select b.lead_id from app_public.buyers b where b.id = new.buyer_id));
begin
  -- Asking for one is the lead's doing; agreeing to it, or proposing one, is the team's. One that took place counts when it did.
  if person is not null and new.status in ('REQUESTED', 'SCHEDULED', 'CONFIRMED', 'COMPLETED') then
    perform app_private.lead_interaction(person, case when new.status = 'COMPLETED' then new.ends_at else now() end, new.status <> 'REQUESTED');
  end if;
  return null;
end $$;
create trigger _500_lead_first after insert on app_public.appointments for each row execute function app_private.tg_appointments__lead();
create trigger _500_lead after update of status on app_public.appointments for each row
  when (old.status is distinct from new.status) execute function app_private.tg_appointments__lead();
