--! Previous: sha1:044a3b64956be10296b74ea962bcfbcb1a866518
--! Hash: sha1:0a3f62cdf63895d3c5e904da315cec41f2cbb3e4
--! Message: deposits-of-offers

-- Deposits and the offers that they belong to: a deposit of a lead or buyer belongs to their accepted offer, also when it was
-- accepted later, unless it names another one of theirs.

alter table app_public.deposits
  add column offer_id uuid,
  add constraint deposits_offer_id_fkey foreign key (offer_id, project_id) references app_public.offers (id, project_id) on delete restrict;
create index deposits_offer on app_public.deposits (offer_id, sequence, id) where deleted_at is null;
grant insert (offer_id) on app_public.deposits to plat_user;

create function app_private.is_deposit_of(deposit app_public.deposits, offer app_public.offers) returns boolean
language sql stable as $$
  select deposit.lead_id = offer.lead_id or deposit.buyer_id = offer.buyer_id
    or exists (select from app_public.buyers b where b.id = deposit.buyer_id and b.lead_id = offer.lead_id and (b.unit_id is null or b.unit_id = offer.unit_id))
$$;
comment on function app_private.is_deposit_of(app_public.deposits, app_public.offers) is 'Whether a deposit is of the people who negotiated the offer.';

create function app_private.tg_deposits__offer() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.offer_id is null then
    select o.id into new.offer_id from app_public.offers o
      where o.status = 'ACCEPTED' and (o.reservation_id = new.reservation_id or new.reservation_id is null) and app_private.is_deposit_of(new, o)
        and (o.lead_id = new.lead_id or o.buyer_id = new.buyer_id
          or o.lead_id = (select b.lead_id from app_public.buyers b where b.id = new.buyer_id))
      order by o.id desc limit 1;
  elsif not coalesce((select app_private.is_deposit_of(new, o) from app_public.offers o where o.id = new.offer_id), false) then
    perform app_hidden.fail('BAD_USER_INPUT', 'The offer is not of this lead or buyer.', '{"field": "offerId"}');
  end if;
  return new;
end $$;
create trigger _210_offer before insert on app_public.deposits for each row execute function app_private.tg_deposits__offer();

create function app_private.tg_offers__deposits() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.deposits d set offer_id = new.id
    where (d.lead_id = new.lead_id or d.buyer_id = new.buyer_id or d.buyer_id = (select b.id from app_public.buyers b
        where b.lead_id = new.lead_id and b.unit_id = new.unit_id and b.status <> 'CANCELLED' and b.deleted_at is null))
      and d.offer_id is null and (d.reservation_id is null or d.reservation_id = new.reservation_id)
      and d.deleted_at is null and d.status not in ('CANCELLED', 'WAIVED', 'REFUNDED');
  return null;
end $$;
comment on function app_private.tg_offers__deposits() is 'Gives the deposits of whoever bought to the offer that was accepted.';
create trigger _500_deposits after update of status on app_public.offers for each row
  when (new.status = 'ACCEPTED' and old.status <> 'ACCEPTED') execute function app_private.tg_offers__deposits();

create function app_public.binding_offers_purchase_price_balance(b app_public.binding_offers) returns app_public.money
language sql stable as $$
  select greatest(0, b.price + app_private.personalization_total(b.unit_id, b.lead_id, b.buyer_id)
    - coalesce((select sum(d.amount_paid) from app_public.deposits d
      where d.offer_id = b.id and d.status in ('PARTIALLY_PAID', 'PAID', 'RELEASED') and d.deleted_at is null), 0))
$$;
grant execute on function app_public.binding_offers_purchase_price_balance to plat_user, plat_anonymous;
comment on function app_public.binding_offers_purchase_price_balance is E'@notNull\n\nThe total contract price less what was paid of its deposits.';

comment on table app_public.deposits is $$
@defaultOrder sequence asc, id asc
@foreignKey (offer_id) references binding_offers (id)|@forwardBehavior -*|@foreignFieldName deposits|@backwardDescription The deposits of whoever made it, in order.

What a lead or buyer pays before closing.$$;
comment on column app_public.deposits.offer_id is 'The offer that it belongs to: the accepted one where left out.';
comment on constraint deposits_offer_id_fkey on app_public.deposits is E'@fieldName offer\n@backwardBehavior -*\n\nThe offer that it belongs to.';
