--! Previous: sha1:2d7ec19154f0676e52179a0eff3f8194567b8633
--! Hash: sha1:e98620caa4c1394b2497655279d0462ddbfbb9f1
--! Message: cancellation-reasons

-- Why a deal was called off is what the sales team writes down for itself, as it is for purchases: the buyer reads what they said
-- themselves. Whoever sells the deal, the seller of another organization for own leads too, reads it.

comment on column app_public.reservations.cancellation_reason is E'@masked\n\nWhy it was cancelled, in words.';
comment on column app_public.negotiations.cancellation_reason is E'@masked\n\nWhy it was called off; required for the status CANCELLED.';

create function app_private.is_reason_of_buyer(reservation_id uuid, reason text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from app_public.events e where e.subject_id = reservation_id and e.name = 'reservation.cancelled'
    and e.actor_type = 'BUYER' and e.actor_id = app_public.current_user_id() and e.data ->> 'cancellationReason' = reason)
$$;
comment on function app_private.is_reason_of_buyer(uuid, text) is 'Whether the viewer cancelled the reservation as its buyer, and said so.';

create function app_public.reservations_cancellation_reason(r app_public.reservations) returns app_public.long_text
language sql stable as $$
  select case when r.cancellation_reason is not null and (not app_hidden.is_viewers_reservation(r.id)
    or app_hidden.deal_can(r.organization_id, r.project_id, r.assignee_id, 'sale.read')
    or app_private.is_reason_of_buyer(r.id, r.cancellation_reason)) then r.cancellation_reason end
$$;
create function app_public.negotiations_cancellation_reason(n app_public.negotiations) returns app_public.long_text
language sql stable as $$
  select case when n.cancellation_reason is not null and app_hidden.deal_can(n.organization_id, n.project_id, n.assignee_id, 'sale.read') then n.cancellation_reason end
$$;
comment on function app_public.reservations_cancellation_reason is 'Why it was cancelled, in words; for the buyer where they cancelled it themselves.';
comment on function app_public.negotiations_cancellation_reason is 'Why it was called off; null without the permission sale.read.';

grant execute on function app_public.reservations_cancellation_reason, app_public.negotiations_cancellation_reason, app_private.is_reason_of_buyer to plat_user, plat_anonymous;
