-- Buyers are notified by mail of every cancellation of their purchase, with the result for their payments; except for
-- drafts without an invitation or reservation, of which they never heard.

create function app_private.tg_buyers__tell_cancelled() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.add_job('buyer__cancelled', jsonb_build_object('id', old.id,
    'charge_ids', array(select c.id from app_private.charges_of_purchase(old) c),
    'deposit_ids', array(select d.id from app_private.deposits_of_purchase(old) d)));
  return new;
end $$;
comment on function app_private.tg_buyers__tell_cancelled() is
  'Notifies the buyers that their purchase was cancelled. Before the row is: what the lead paid counts for another '
  'purchase of it afterwards.';
create trigger _800_tell_cancelled before update of status on app_public.buyers for each row
  when (old.status <> 'CANCELLED' and new.status = 'CANCELLED' and (old.status <> 'DRAFT' or old.user_id is not null
    or old.invited_at is not null or old.reservation_id is not null))
  execute function app_private.tg_buyers__tell_cancelled();

create function app_private.cancellation_mail(buyer_id uuid, charge_ids uuid[], deposit_ids uuid[])
returns table (recipients text[], organization_id uuid, organization text, project text, home text, currency text,
  refunded numeric, returned numeric, kept numeric)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select array(
      select coalesce(i.email, b.email)::text from (select) one left join app_hidden.user_identities i
        on i.user_id = b.user_id where coalesce(i.email, b.email) is not null
      union
      select c.email from app_public.contacts c where (c.buyer_id = b.id or c.lead_id = b.lead_id)
        and c.role = 'CO_BUYER' and c.email is not null and c.deleted_at is null
      order by 1),
    b.organization_id, o.name::text, p.title::text,
    coalesce((select u.title from app_public.units u where u.id = b.unit_id),
      (select l.title from app_public.lots l where l.id = b.lot_id))::text,
    b.currency::text, coalesce(charged.refunded, 0), coalesce(paid.returned, 0),
    coalesce(charged.kept, 0) + coalesce(paid.kept, 0)
  from app_public.buyers b
  join app_public.projects p on p.id = b.project_id
  join app_public.organizations o on o.id = b.organization_id and o.deleted_at is null
  cross join lateral (
    select sum(c.amount_refunding + c.amount_refunded) as refunded,
      sum(app_public.processor_charges_amount_refundable(c)) as kept
    from app_public.processor_charges c where c.id = any (charge_ids)) charged
  cross join lateral (
    select sum(d.amount_to_return + greatest(0, d.amount_refunded - d.by_card_back)) as returned,
      sum(case when d.status in ('PARTIALLY_PAID', 'PAID', 'RELEASED', 'FORFEITED')
        then d.amount_paid - d.amount_refunded - d.amount_to_return - d.by_card end) as kept
    from (
      select d.*, coalesce(c.by_card, 0) as by_card, coalesce(c.by_card_back, 0) as by_card_back
      from app_public.deposits d cross join lateral (
        select sum(c.deposit_amount - app_private.deposit_given_back(c)) as by_card,
          sum(app_private.deposit_given_back(c)) as by_card_back
        from app_public.processor_charges c where c.deposit_id = d.id and c.captured_at is not null) c
      where d.id = any (deposit_ids)) d) paid
  where b.id = cancellation_mail.buyer_id and b.status = 'CANCELLED'
$$;
comment on function app_private.cancellation_mail(uuid, uuid[], uuid[]) is
  'What the mail about a cancelled purchase says, and to whom: the buyer, and contacts who buy too. Of these charges '
  'and deposits: what went or goes back to cards, what is returned otherwise, and what stays with the seller.';
grant execute on function app_private.cancellation_mail to plat_worker;
