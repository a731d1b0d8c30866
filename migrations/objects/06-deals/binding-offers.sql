-- Binding offers: the offers across the portfolio, each with the home, the people and the components of the price. It
-- is the same row as the offer, combined with the negotiation; everything that a list needs is in the row itself.

comment on type app_public.offer_terms is
  E'@interface mode:union\n'
  '@behavior -query:interface:list -query:interface:connection\n\n'
  'Price and conditions of the offer.';

comment on column app_public.offer_terms.id is E'@notNull\n\nUUID; ascending ids are in order of creation.';
comment on column app_public.offer_terms.price is E'@notNull\n\nOffered purchase price, zero or more.';
comment on column app_public.offer_terms.currency is E'@notNull\n\nCurrency of its amounts: the one of the project.';
comment on column app_public.offer_terms.status is E'@notNull\n\nCurrent status. Every status but PENDING is final.';
comment on column app_public.offer_terms.expires_at is
  'Deadline for the response of the other side; the offer is EXPIRED afterwards.';
comment on column app_public.offer_terms.closing_date is 'Proposed closing date.';
comment on column app_public.offer_terms.earnest_money is
  'Earnest money: the deposit that the buyer offers as a sign of good faith.';
comment on column app_public.offer_terms.financing_type is 'How the buyer finances the purchase.';
comment on column app_public.offer_terms.financing_contingency is 'Whether the purchase is conditional on financing.';
comment on column app_public.offer_terms.amount_financed is 'Part of the price that is financed by a loan.';
comment on column app_public.offer_terms.occupancy_type is 'Intended use of the home.';
comment on column app_public.offer_terms.comments is 'Comments for the other side.';
comment on column app_public.offer_terms.inserted_at is E'@notNull\n\nWhen it was created.';

-- All rows of the table, so there is nothing to hide behind a barrier, and lists of it go along the indexes of the
-- table.
create view app_public.binding_offers with (security_invoker = true) as
  select o.id, o.organization_id, o.project_id, o.negotiation_id, o.unit_id, o.lead_id, o.buyer_id, o.reservation_id,
    o.assignee_id,
    o.legal_name, o.side, o.status, o.price, o.currency, o.closing_date, o.earnest_money, o.financing_type,
      o.financing_contingency, o.amount_financed,
    o.occupancy_type, o.occupancy_type_other, o.comments, o.expires_at, o.manual, o.inserted_at, o.updated_at,
    o.number
  from app_public.offers o;

grant select on app_public.binding_offers to plat_user, plat_anonymous;

comment on view app_public.binding_offers is
  E'@primaryKey id\n@listName offers\n@implements OfferTerms\n@portfolio sale.read\n@ownFinder '
  'viewer_purchase_offers\n@defaultOrder inserted_at desc, id desc\n@defaultFirst 1000\n@filterLists '
  'status\n@foreignKey (id) references offers (id)|@fieldName offer|@forwardDescription The offer '
  'itself.|@backwardBehavior -*\n@foreignKey (negotiation_id) references negotiations (id)|@fieldName '
  'negotiation|@forwardDescription The negotiation.|@backwardBehavior -*\n@foreignKey (project_id) references '
  'projects (id)|@fieldName project|@forwardDescription The project.|@foreignFieldName offers|@backwardPermission '
  'sale.read|@backwardDescription The offers, newest first; null without the permission sale.read.\n@foreignKey '
  '(unit_id) references units (id)|@fieldName unit|@forwardDescription The unit.|@backwardBehavior -*\n@foreignKey '
  '(lead_id) references leads (id)|@fieldName lead|@forwardDescription The lead on whose behalf the offer was made '
  'or received.|@backwardBehavior -*\n@foreignKey (buyer_id) references buyers (id)|@fieldName '
  'buyer|@forwardDescription The purchase.|@backwardBehavior -*\n@foreignKey (reservation_id) references '
  'reservations (id)|@fieldName reservation|@forwardDescription The reservation of the unit.|@backwardBehavior '
  '-*\n\n'
  'An offer together with its unit, buyer, deposits and total price.';

comment on column app_public.binding_offers.id is
  E'@notNull\n\nId of the offer, a UUID; ascending ids are in order of creation.';
comment on column app_public.binding_offers.number is
  E'@notNull\n\nNumber of the offer in the project, such as O-000042.';
comment on column app_public.binding_offers.organization_id is E'@behavior -*\n\nThe organization.';
comment on column app_public.binding_offers.project_id is
  E'@notNull\n@filter projectIds\n\nThe project that it belongs to.';
comment on column app_public.binding_offers.negotiation_id is
  E'@notNull\n\nThe negotiation that the offer belongs to.';
comment on column app_public.binding_offers.unit_id is
  E'@notNull\n@filter unitIds\n\nId of the unit that acceptance of the offer claims.';
comment on column app_public.binding_offers.lead_id is 'The lead on whose behalf the offer was made or received.';
comment on column app_public.binding_offers.buyer_id is 'The purchase.';
comment on column app_public.binding_offers.reservation_id is 'The reservation of the unit.';
comment on column app_public.binding_offers.assignee_id is E'@behavior -*\n\nThe member who has the deal.';
comment on column app_public.binding_offers.legal_name is 'Legal name of the buyer at the time of the offer.';
comment on column app_public.binding_offers.side is E'@notNull\n\nSide that made the offer.';
comment on column app_public.binding_offers.status is
  E'@notNull\n@indexed\n@filter\n\nCurrent status. Every status but PENDING is final.';
comment on column app_public.binding_offers.price is E'@notNull\n@filter\n\nOffered purchase price, zero or more.';
comment on column app_public.binding_offers.currency is E'@notNull\n\nCurrency of its amounts: the one of the project.';
comment on column app_public.binding_offers.closing_date is 'Proposed closing date.';
comment on column app_public.binding_offers.earnest_money is
  'Earnest money: the deposit that the buyer offers as a sign of good faith.';
comment on column app_public.binding_offers.financing_type is 'How the buyer finances the purchase.';
comment on column app_public.binding_offers.financing_contingency is
  'Whether the purchase is conditional on financing.';
comment on column app_public.binding_offers.amount_financed is 'Part of the price that is financed by a loan.';
comment on column app_public.binding_offers.occupancy_type is 'Intended use of the home.';
comment on column app_public.binding_offers.occupancy_type_other is
  'Intended use in words, if `occupancyType` is OTHER.';
comment on column app_public.binding_offers.comments is 'Comments for the other side.';
comment on column app_public.binding_offers.expires_at is
  'Deadline for the response of the other side; the offer is EXPIRED afterwards.';
comment on column app_public.binding_offers.manual is
  E'@notNull\n@filter\n\nWhether the team entered the offer on behalf of the buyer.';
comment on column app_public.binding_offers.inserted_at is E'@notNull\n@indexed\n@filter\n\nWhen it was created.';
comment on column app_public.binding_offers.updated_at is E'@notNull\n\nWhen it was last changed.';

create function app_hidden.viewer_purchase_offers() returns setof uuid
language plpgsql stable security definer rows 5 set search_path = pg_catalog, pg_temp as $$
declare
  negotiations uuid[] := array(select app_hidden.viewer_purchase_negotiations());
begin
  if negotiations <> '{}' then
    return query select o.id from app_public.offers o where o.negotiation_id = any (negotiations);
  end if;
end $$;
comment on function app_hidden.viewer_purchase_offers() is
  'The offers in the negotiations about the viewer''s own purchases and reservations.';

create function app_public.binding_offers_filter_side(b app_public.binding_offers,
  value app_public.party_side) returns boolean
language sql stable as $$ select b.side = value $$;

create function app_public.binding_offers_total_contract_price(b app_public.binding_offers) returns app_public.money
language sql stable as $$ select b.price + app_private.options_total(b.unit_id, b.lead_id, b.buyer_id) $$;

create function app_public.binding_offers_loan_to_value(b app_public.binding_offers) returns numeric
language sql stable as $$ select round(100 * b.amount_financed / nullif(b.price, 0), 2) $$;
grant execute on function app_public.binding_offers_filter_side, app_public.binding_offers_total_contract_price,
  app_public.binding_offers_loan_to_value to plat_user, plat_anonymous;
comment on function app_public.binding_offers_filter_side is E'@filter side\n\nSide that made the offer.';
comment on function app_public.binding_offers_total_contract_price is
  E'@notNull\n\n`price` plus the total of the personalization.';
comment on function app_public.binding_offers_loan_to_value is
  E'@measures ratio\n\nLoan-to-value ratio: part of the price that is financed by a loan, in percent.';
