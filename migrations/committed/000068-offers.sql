--! Previous: sha1:a1025951029c701c38142c9c058453e2d48e8c89
--! Hash: sha1:48dacb7e8b0f6bd30093cb206604c84d96fb71d8
--! Message: offers

-- Offers and the answers to them. Within a round the sides take turns: who answers an offer with another makes the one
-- before COUNTERED. An offer ends once, and neither offers nor answers are changed or deleted afterwards.
--
-- An accepted offer is in force as long as the claim on the unit that it took or kept. A unit has one such claim, and a
-- claim one accepted offer.
--
-- Chosen where nothing else says so:
-- - Any side begins a round. Between rounds nobody is awaited.
-- - The team enters offers and answers for the buyer too (manual), because most buyers are no users; never an answer from the
--   side of the offer. Only a buyer who is a user is held to their own side.
-- - Below the floor price, an offer of the seller or an acceptance takes the permission sale.strategy: FORBIDDEN without it.
-- - Acceptance without reservation or purchase claims the unit for as long as a reservation of the project lasts.
-- - The accepted price is that of a purchase which is not signed yet, too.
-- - While a unit is somebody else's, no offer on it is made or accepted; what is pending may be rejected, or runs out.

select app_private.create_enum('offer_kind', 'Whether an offer answers another.', array[
  ['OFFER', 'Begins a round.'], ['COUNTER_OFFER', 'Answers the one before it.']]);
select app_private.create_enum('offer_status', 'What became of an offer.', array[
  ['PENDING', 'Waits for the answer of the other side.'], ['COUNTERED', 'Answered by another offer.'], ['ACCEPTED', 'Accepted.'],
  ['REJECTED', 'Rejected, or another offer on the unit was accepted.'], ['EXPIRED', 'Not answered in time.'], ['WITHDRAWN', 'Taken back by its side.']]);
select app_private.create_enum('offer_response_action', 'An answer to an offer.', array[
  ['ACCEPT', 'Takes it.'], ['REJECT', 'Declines it.']]);

create table app_public.offers (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  negotiation_id uuid not null,
  round int not null,
  sequence int not null,
  side app_public.party_side not null,
  kind app_public.offer_kind not null,
  status app_public.offer_status not null default 'PENDING',
  status_changed_at timestamptz not null default now(),
  price app_public.money not null,
  currency app_public.currency_code not null,
  delta numeric,
  closing_date date,
  earnest_money app_public.money,
  financing_type app_public.financing_type,
  financing_contingency boolean,
  amount_financed app_public.money,
  occupancy_type app_public.occupancy_type,
  occupancy_type_other app_public.short_text,
  requested_credits app_public.money,
  comments app_public.long_text,
  expires_at timestamptz not null,
  parent_id uuid,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  withdrawn_at timestamptz,
  manual boolean not null default false,
  legal_name app_public.short_text,
  unit_id uuid not null,
  lead_id uuid,
  buyer_id uuid,
  reservation_id uuid,
  assignee_id uuid references app_public.users on delete set null,
  claim_id uuid references app_hidden.claims on delete restrict,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  unique (id, project_id),
  constraint offers_place unique (negotiation_id, round, sequence),
  constraint offers_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete restrict,
  constraint offers_negotiation_id_fkey foreign key (negotiation_id, project_id) references app_public.negotiations (id, project_id) on delete restrict,
  constraint offers_parent_id_fkey foreign key (parent_id, project_id) references app_public.offers (id, project_id) on delete restrict,
  constraint offers_unit_id_fkey foreign key (unit_id, project_id) references app_public.units (id, project_id) on delete restrict,
  constraint offers_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id) on delete restrict,
  constraint offers_buyer_id_fkey foreign key (buyer_id, project_id) references app_public.buyers (id, project_id) on delete restrict,
  constraint offers_reservation_id_fkey foreign key (reservation_id, project_id) references app_public.reservations (id, project_id) on delete restrict
);
create unique index offers_pending on app_public.offers (negotiation_id) where status = 'PENDING';
create unique index offers_accepted on app_public.offers (claim_id) where status = 'ACCEPTED';
comment on index app_public.offers_pending is 'An offer is pending in this negotiation already.';
comment on index app_public.offers_accepted is 'An offer on this unit was accepted already.';
create index offers_organization on app_public.offers (organization_id, inserted_at desc, id desc);
create index offers_organization_status on app_public.offers (organization_id, status, inserted_at desc, id desc);
create index offers_project on app_public.offers (project_id, inserted_at desc, id desc);
create index offers_project_status on app_public.offers (project_id, status, inserted_at desc, id desc);
create index offers_assignee on app_public.offers (assignee_id, project_id, inserted_at desc, id desc);
create index offers_assignee_status on app_public.offers (assignee_id, project_id, status, inserted_at desc, id desc);
create index offers_negotiation on app_public.offers (negotiation_id, id desc);
create index offers_unit on app_public.offers (unit_id, inserted_at desc, id desc);
create index offers_unit_pending on app_public.offers (unit_id) where status = 'PENDING';
create unique index offers_parent on app_public.offers (parent_id);
create index offers_lead on app_public.offers (lead_id);
create index offers_buyer on app_public.offers (buyer_id);
create index offers_reservation on app_public.offers (reservation_id);
create index offers_created_by on app_public.offers (created_by_id);

create table app_public.offer_responses (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  offer_id uuid not null,
  action app_public.offer_response_action not null,
  side app_public.party_side not null,
  manual boolean not null default false,
  comments app_public.long_text,
  fallout_reason_id uuid,
  responded_by_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint offer_responses_once unique (offer_id),
  constraint offer_responses_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete restrict,
  constraint offer_responses_offer_id_fkey foreign key (offer_id, project_id) references app_public.offers (id, project_id) on delete restrict,
  constraint offer_responses_fallout_reason_id_fkey foreign key (fallout_reason_id, project_id) references app_public.fallout_reasons (id, project_id) on delete restrict
);
comment on constraint offer_responses_once on app_public.offer_responses is 'This offer was answered already.';
create index offer_responses_fallout_reason on app_public.offer_responses (fallout_reason_id);
create index offer_responses_responded_by on app_public.offer_responses (responded_by_id);
create index offer_responses_project on app_public.offer_responses (project_id);

alter table app_public.offers enable row level security;
create policy sellers on app_public.offers for select to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('sale.read')))
    or project_id = any (array(select app_hidden.viewer_projects('sale.read')))
    or (assignee_id = (select app_public.current_user_id()) and project_id = any (array(select app_hidden.viewer_own_projects('sale.read'))))
    or negotiation_id = any (array(select app_hidden.viewer_purchase_negotiations())));
grant select on app_public.offers to plat_user, plat_anonymous, plat_worker;
-- No policy lets anybody insert: create_offer does, and these are its members.
grant insert (negotiation_id, side, price, parent_id, closing_date, earnest_money, financing_type, financing_contingency, amount_financed,
  occupancy_type, requested_credits, comments, expires_at) on app_public.offers to plat_user;
alter table app_public.offer_responses enable row level security;
create policy sellers on app_public.offer_responses for select to plat_user
  using ((select true from app_public.offers o where o.id = offer_id));
grant select on app_public.offer_responses to plat_user, plat_anonymous, plat_worker;

insert into app_private.event_names (subject, column_name, value, name) values
  ('offer', 'status', 'COUNTERED', 'countered'), ('offer', 'status', 'ACCEPTED', 'accepted'), ('offer', 'status', 'REJECTED', 'rejected'),
  ('offer', 'status', 'EXPIRED', 'expired'), ('offer', 'status', 'WITHDRAWN', 'withdrawn');
comment on column app_public.offers.assignee_id is E'@secret\n@behavior -*\n\nThe member who has the lead or the purchase.';
comment on column app_public.offers.claim_id is E'@secret\n@behavior -*\n\nThe claim on the unit that the accepted offer took or kept; it is in force as long as that is.';

create function app_private.tg__final() returns trigger
language plpgsql volatile as $$
begin
  raise exception 'offers and answers are neither changed nor deleted' using errcode = 'restrict_violation';
end $$;
comment on function app_private.tg__final() is 'Refuses to change or delete what stands for good.';
create trigger _100_final before update on app_public.offers for each row
  when ((old.claim_id is not null and old.claim_id is distinct from new.claim_id)
    or row(old.id, old.organization_id, old.project_id, old.negotiation_id, old.round, old.sequence, old.side, old.kind, old.price, old.currency, old.delta,
      old.closing_date, old.earnest_money, old.financing_type, old.financing_contingency, old.amount_financed, old.occupancy_type, old.occupancy_type_other,
      old.requested_credits, old.comments, old.expires_at, old.parent_id, old.manual, old.legal_name, old.unit_id, old.inserted_at)
    is distinct from row(new.id, new.organization_id, new.project_id, new.negotiation_id, new.round, new.sequence, new.side, new.kind, new.price, new.currency, new.delta,
      new.closing_date, new.earnest_money, new.financing_type, new.financing_contingency, new.amount_financed, new.occupancy_type, new.occupancy_type_other,
      new.requested_credits, new.comments, new.expires_at, new.parent_id, new.manual, new.legal_name, new.unit_id, new.inserted_at))
  execute function app_private.tg__final();
create trigger _100_no_delete before delete on app_public.offers for each row execute function app_private.tg__final();
create trigger _100_no_truncate before truncate on app_public.offers for each statement execute function app_private.tg__final();
create trigger _100_final before update on app_public.offer_responses for each row
  when (row(old.id, old.organization_id, old.project_id, old.offer_id, old.action, old.side, old.manual, old.comments, old.fallout_reason_id, old.inserted_at)
    is distinct from row(new.id, new.organization_id, new.project_id, new.offer_id, new.action, new.side, new.manual, new.comments, new.fallout_reason_id, new.inserted_at))
  execute function app_private.tg__final();
create trigger _100_no_delete before delete on app_public.offer_responses for each row execute function app_private.tg__final();
create trigger _100_no_truncate before truncate on app_public.offer_responses for each statement execute function app_private.tg__final();

select app_private.make_project_record('offers', 'offer', 'sale.write');
drop trigger _900_touch on app_public.offers;
create trigger _900_touch before update on app_public.offers for each row execute function app_private.tg__touch('assignee_id');
select app_private.make_state_machine('offers', 'offer',
  steps => array[['PENDING', 'COUNTERED', 'service'], ['PENDING', 'ACCEPTED', 'service'], ['PENDING', 'REJECTED', 'service'],
    ['PENDING', 'EXPIRED', 'service'], ['PENDING', 'WITHDRAWN', 'service']],
  initial => array['PENDING']);
select app_private.make_project_record('offer_responses', 'offer_response', 'sale.write');

--------------------------------------------------------------------------------------------------------
-- How an offer ends. Each of these is called under the lock of the unit.

create function app_private.end_offer(offer_id uuid, offer_status text, negotiation_status text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  negotiation_id uuid;
begin
  perform set_config('plat.service', 'on', true);
  update app_public.offers o set status = end_offer.offer_status where o.id = end_offer.offer_id and o.status = 'PENDING'
    returning o.negotiation_id into negotiation_id;
  update app_public.negotiations n set status = end_offer.negotiation_status where n.id = negotiation_id and n.status = 'ACTIVE';
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.end_offer(uuid, text, text) is 'Ends a pending offer without agreement; its negotiation takes the status that matches.';

create function app_private.settle_offer(offer_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  negotiation app_public.negotiations;
  offer app_public.offers;
  reservation app_public.reservations;
begin
  negotiation := app_private.lock_negotiation((select o.negotiation_id from app_public.offers o where o.id = settle_offer.offer_id));
  select * into offer from app_public.offers o where o.id = settle_offer.offer_id and o.status = 'PENDING' and o.expires_at <= clock_timestamp();
  if offer.id is null then
    return;
  end if;
  -- Time goes on in archived projects too.
  perform set_config('plat.clock', 'on', true);
  perform app_private.end_offer(offer.id, 'EXPIRED', 'EXPIRED');
  -- The hours of the reservation count from the end of the offer, however late somebody looks.
  select * into reservation from app_public.reservations r where r.id = negotiation.reservation_id and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null;
  if reservation.id is not null then
    perform app_private.set_reservation_end(reservation, offer.expires_at + make_interval(hours => reservation.expiration), null);
  end if;
  perform set_config('plat.clock', '', true);
end $$;
comment on function app_private.settle_offer(uuid) is 'Lets an offer expire whose time is over.';
select app_private.make_deadline('offer', 'app_public.offers', 'expires_at', 'new.status = ''PENDING''', '{status}', 'app_private.settle_offer(uuid)');

create function app_private.accept_offer(offer app_public.offers, negotiation app_public.negotiations) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  claim app_hidden.claims := app_private.negotiable_claim(negotiation, 'offerId');
  other record;
begin
  -- Without reservation or purchase the unit is theirs for as long as a reservation of the project lasts.
  claim := app_private.take_claim(negotiation.unit_id, null, coalesce(claim.kind, 'RESERVATION'),
    coalesce(claim.subject_type, 'negotiation'), coalesce(claim.subject_id, negotiation.id),
    case when claim.id is not null then claim.expires_at
      else now() + (select make_interval(hours => p.reservation_expiration) from app_public.projects p where p.id = negotiation.project_id) end,
    'PENDING');
  perform set_config('plat.service', 'on', true);
  update app_public.offers o set status = 'ACCEPTED', claim_id = claim.id where o.id = offer.id;
  update app_public.offers o set status = 'REJECTED' where o.unit_id = negotiation.unit_id and o.status = 'PENDING';
  update app_public.buyers b set price = offer.price where b.id = negotiation.buyer_id and b.status in ('DRAFT', 'OUT_FOR_SIGNATURE');
  -- In the order of leads, whose rows the steps lock.
  for other in
    select n.id from app_public.negotiations n where n.unit_id = negotiation.unit_id and n.status = 'ACTIVE' and n.deleted_at is null
    order by n.lead_id nulls first, n.id
  loop
    update app_public.negotiations n set status = case when n.id = negotiation.id then 'ACCEPTED' else 'REJECTED' end where n.id = other.id;
  end loop;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.accept_offer(app_public.offers, app_public.negotiations) is
  'Accepts a pending offer: the unit is PENDING under a claim that is taken or kept, every other pending offer on it is REJECTED, and by the steps of the negotiations the reservation has the price and lasts from now.';

--------------------------------------------------------------------------------------------------------

create function app_private.tg_offers__make() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  negotiation app_public.negotiations := app_private.lock_negotiation(new.negotiation_id);
  pending app_public.offers;
begin
  select * into pending from app_public.offers o where o.negotiation_id = negotiation.id and o.status = 'PENDING';
  if pending.expires_at <= clock_timestamp() then
    perform app_private.settle_offer(pending.id);
    pending := null;
    select * into negotiation from app_public.negotiations n where n.id = negotiation.id;
  end if;
  if negotiation.status in ('ACCEPTED', 'CANCELLED') then
    perform app_hidden.fail('INVALID_TRANSITION', format('This negotiation is %s; no offer can be made in it any more.', negotiation.status),
      jsonb_build_object('from', negotiation.status, 'to', 'ACTIVE', 'field', 'negotiationId', 'allowedTransitions', jsonb_build_array()));
  elsif pending.side = new.side then
    perform app_hidden.fail('CONFLICT', 'An offer of this side is pending; the other side has the next word.',
      jsonb_build_object('field', 'side', 'existingId', pending.id));
  elsif new.parent_id <> pending.id or (new.parent_id is not null and pending.id is null) then
    perform app_hidden.fail('CONFLICT', 'That offer is not pending in this negotiation, so it cannot be countered.',
      jsonb_strip_nulls(jsonb_build_object('field', 'parentId', 'existingId', pending.id)));
  elsif new.expires_at <= now() then
    perform app_hidden.fail('BAD_USER_INPUT', 'An offer expires in the future.', '{"field": "expiresAt"}');
  elsif new.expires_at > now() + interval '1 year' then
    perform app_hidden.fail('BAD_USER_INPUT', 'An offer stands for a year at most.', '{"field": "expiresAt"}');
  end if;
  perform app_private.negotiable_claim(negotiation, 'negotiationId');
  new.price := app_hidden.to_money(new.price, negotiation.currency, 'price');
  new.earnest_money := app_hidden.to_money(new.earnest_money, negotiation.currency, 'earnestMoney');
  new.amount_financed := app_hidden.to_money(new.amount_financed, negotiation.currency, 'amountFinanced');
  new.requested_credits := app_hidden.to_money(new.requested_credits, negotiation.currency, 'requestedCredits');
  if new.side = 'SELLER' then
    perform app_private.require_floor_price(negotiation, new.price, 'price');
  end if;

  new.project_id := negotiation.project_id;
  new.currency := negotiation.currency;
  new.unit_id := negotiation.unit_id;
  new.lead_id := negotiation.lead_id;
  new.buyer_id := negotiation.buyer_id;
  new.reservation_id := negotiation.reservation_id;
  new.assignee_id := negotiation.assignee_id;
  new.parent_id := pending.id;
  new.kind := case when pending.id is null then 'OFFER' else 'COUNTER_OFFER' end;
  new.round := negotiation.round + case when pending.id is null and exists (
    select from app_public.offers o where o.negotiation_id = negotiation.id) then 1 else 0 end;
  new.sequence := coalesce(pending.sequence, 0) + 1;
  new.delta := new.price - (select o.price from app_public.offers o where o.negotiation_id = negotiation.id order by o.round desc, o.sequence desc limit 1);
  new.expires_at := coalesce(new.expires_at, now() + make_interval(hours => negotiation.offer_expiration_hours));
  new.manual := new.side = 'BUYER' and app_public.current_user_id() is not null
    and not negotiation.id = any (array(select app_hidden.viewer_purchase_negotiations()));
  select coalesce(r.buyer_legal_name, b.legal_name, nullif(concat_ws(' ', b.first_name, b.last_name), ''), l.legal_name, l.name),
      coalesce(new.occupancy_type, r.occupancy_type, b.occupancy_type),
      case when coalesce(new.occupancy_type, 'OTHER') = 'OTHER' then coalesce(r.occupancy_type_other, b.occupancy_type_other) end
    into new.legal_name, new.occupancy_type, new.occupancy_type_other
    from (select) one
    left join app_public.reservations r on r.id = negotiation.reservation_id
    left join app_public.buyers b on b.id = negotiation.buyer_id
    left join app_public.leads l on l.id = negotiation.lead_id;

  perform set_config('plat.service', 'on', true);
  update app_public.offers o set status = 'COUNTERED' where o.id = pending.id;
  perform set_config('plat.service', before, true);
  return new;
end $$;
create trigger _010_make before insert on app_public.offers for each row execute function app_private.tg_offers__make();

create function app_private.require_floor_price(negotiation app_public.negotiations, price numeric, field text) returns void
language plpgsql stable as $$
begin
  if price < negotiation.floor_price and app_public.current_user_id() is not null
    and not app_hidden.project_can(negotiation.project_id, negotiation.organization_id, 'sale.strategy') then
    perform app_hidden.fail('FORBIDDEN', 'A price this low takes the permission sale.strategy.',
      jsonb_build_object('permission', 'sale.strategy', 'field', field));
  end if;
end $$;
comment on function app_private.require_floor_price(app_public.negotiations, numeric, text) is
  'Refuses the seller a price below the floor price of the negotiation, unless they may set that.';

create function app_private.tg_offers__withdrawn() returns trigger
language plpgsql volatile as $$
begin
  new.withdrawn_at := now();
  return new;
end $$;
create trigger _200_withdrawn before update on app_public.offers for each row
  when (new.status = 'WITHDRAWN' and old.status <> 'WITHDRAWN') execute function app_private.tg_offers__withdrawn();

create function app_private.tg_offers__activate() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.negotiations n set status = 'ACTIVE', round = new.round, turn = case new.side when 'BUYER' then 'SELLER' else 'BUYER' end
    where n.id = new.negotiation_id;
  perform set_config('plat.service', before, true);
  return null;
end $$;
create trigger _500_activate after insert on app_public.offers for each row execute function app_private.tg_offers__activate();

create function app_private.tg_negotiations__parties_of_offers() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.offers o set lead_id = new.lead_id, buyer_id = new.buyer_id, reservation_id = new.reservation_id, assignee_id = new.assignee_id
    where o.negotiation_id = new.id;
  return null;
end $$;
comment on function app_private.tg_negotiations__parties_of_offers() is 'Offers say again what their negotiation says, so that lists of them go along an index.';
create trigger _400_parties_of_offers after update of lead_id, buyer_id, reservation_id, assignee_id on app_public.negotiations for each row
  when (row(old.lead_id, old.buyer_id, old.reservation_id, old.assignee_id) is distinct from row(new.lead_id, new.buyer_id, new.reservation_id, new.assignee_id))
  execute function app_private.tg_negotiations__parties_of_offers();

--------------------------------------------------------------------------------------------------------
-- What people do. The sales team acts for either side, what it enters for the buyer is manual; a buyer for themselves.

create function app_private.begin_deal(negotiation_id uuid, field text, out sells boolean, out buys boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  negotiation app_public.negotiations;
begin
  perform app_hidden.require_viewer();
  select * into negotiation from app_public.negotiations n where n.id = begin_deal.negotiation_id and n.deleted_at is null;
  sells := app_hidden.deal_can(negotiation.organization_id, negotiation.project_id, negotiation.assignee_id, 'sale.write');
  buys := coalesce(negotiation.id = any (array(select app_hidden.viewer_purchase_negotiations())), false);
  if not sells and not buys
    and not app_hidden.deal_can(negotiation.organization_id, negotiation.project_id, negotiation.assignee_id, 'sale.read') then
    perform app_hidden.fail('NOT_FOUND', format('There is no such %s.', case field when 'negotiationId' then 'negotiation' else 'offer' end),
      jsonb_build_object('field', field));
  end if;
  if buys and not sells then
    perform set_config('plat.actor_type', 'BUYER', true);
  end if;
end $$;
comment on function app_private.begin_deal(uuid, text) is 'For which side the viewer may act in a negotiation; refuses whoever does not see it.';

create function app_private.require_side(side text, sells boolean, buys boolean, message text) returns void
language plpgsql stable as $$
begin
  if not (sells or (buys and side = 'BUYER')) then
    perform app_hidden.fail('FORBIDDEN', message, '{"permission": "sale.write"}');
  end if;
end $$;
comment on function app_private.require_side(text, boolean, boolean, text) is 'Refuses to act for a side that is not the viewer''s: the team acts for both, a buyer for the buyer.';

create function app_public.create_offer(input jsonb) returns app_public.offers
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  negotiation_id uuid;
  rights record;
begin
  perform app_hidden.require_viewer();
  negotiation_id := app_hidden.record_id('negotiations', input ->> 'negotiation_id', 'negotiationId');
  select * into rights from app_private.begin_deal(negotiation_id, 'negotiationId');
  perform app_private.require_side(input ->> 'side', rights.sells, rights.buys, 'You may make offers for the side of the buyer only.');
  perform app_private.lock_negotiation(negotiation_id);
  return app_hidden.create_record(null::app_public.offers, input);
end $$;

create function app_public.withdraw_offer(id uuid) returns app_public.offers
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  offer app_public.offers;
  rights record;
begin
  select * into offer from app_public.offers o where o.id = withdraw_offer.id;
  select * into rights from app_private.begin_deal(offer.negotiation_id, 'id');
  perform app_private.require_side(offer.side, rights.sells, rights.buys, 'Only the side that made an offer withdraws it.');
  perform app_private.lock_negotiation(offer.negotiation_id);
  perform app_private.require_pending(offer.id, 'WITHDRAWN');
  perform app_private.end_offer(offer.id, 'WITHDRAWN', 'OPEN');
  select * into offer from app_public.offers o where o.id = withdraw_offer.id;
  return offer;
end $$;

create function app_private.require_pending(offer_id uuid, wanted text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  offer app_public.offers;
begin
  select * into offer from app_public.offers o where o.id = require_pending.offer_id;
  -- Whoever waited for the lock may meet an offer whose time ran out meanwhile.
  if offer.status = 'PENDING' and offer.expires_at <= clock_timestamp() then
    offer.status := 'EXPIRED';
  end if;
  if offer.status <> 'PENDING' then
    perform app_hidden.fail('INVALID_TRANSITION', format('This offer is %s, which is final.', offer.status),
      jsonb_build_object('from', offer.status, 'to', wanted, 'field', 'status', 'allowedTransitions', jsonb_build_array()));
  end if;
end $$;
comment on function app_private.require_pending(uuid, text) is 'Refuses to end an offer that has ended.';

create function app_public.create_offer_response(offer_id uuid, action app_public.offer_response_action, comments app_public.long_text default null,
  fallout_reason_id uuid default null) returns app_public.offer_responses
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  offer app_public.offers;
  negotiation app_public.negotiations;
  rights record;
  answering text;
  response app_public.offer_responses;
begin
  select * into offer from app_public.offers o where o.id = create_offer_response.offer_id;
  select * into rights from app_private.begin_deal(offer.negotiation_id, 'offerId');
  answering := case offer.side when 'BUYER' then 'SELLER' else 'BUYER' end;
  perform app_private.require_side(answering, rights.sells, rights.buys, 'Only the other side answers an offer.');
  if fallout_reason_id is not null then
    if create_offer_response.action <> 'REJECT' then
      perform app_hidden.fail('BAD_USER_INPUT', 'Only a rejection has a fallout reason.', '{"field": "falloutReasonId"}');
    elsif not rights.sells or not exists (select from app_public.fallout_reasons f
        where f.id = create_offer_response.fallout_reason_id and f.project_id = offer.project_id and f.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such fallout reason in this project.', '{"field": "falloutReasonId"}');
    elsif not exists (select from app_public.fallout_reasons f
        where f.id = create_offer_response.fallout_reason_id and 'NEGOTIATION' = any (f.applies_to::text[])) then
      perform app_hidden.fail('BAD_USER_INPUT', 'This fallout reason does not apply to negotiations.', '{"field": "falloutReasonId"}');
    end if;
  end if;
  negotiation := app_private.lock_negotiation(offer.negotiation_id);
  perform app_private.require_pending(offer.id, case create_offer_response.action when 'ACCEPT' then 'ACCEPTED' else 'REJECTED' end);
  if answering = 'SELLER' and create_offer_response.action = 'ACCEPT' then
    perform app_private.require_floor_price(negotiation, offer.price, 'offerId');
  end if;
  insert into app_public.offer_responses (project_id, offer_id, action, side, manual, comments, fallout_reason_id)
    values (offer.project_id, offer.id, create_offer_response.action, answering, answering = 'BUYER' and not rights.buys,
      create_offer_response.comments, create_offer_response.fallout_reason_id)
    returning * into response;
  if create_offer_response.action = 'ACCEPT' then
    perform app_private.accept_offer(offer, negotiation);
  else
    perform app_private.end_offer(offer.id, 'REJECTED', 'REJECTED');
  end if;
  return response;
end $$;
grant execute on function app_public.create_offer, app_public.withdraw_offer, app_public.create_offer_response to plat_user, plat_anonymous;
comment on function app_public.create_offer is
  'Makes an offer in a negotiation, or counters the pending one of the other side. The team makes offers for either side, a buyer for their own. It stands until expiresAt, without that for the offerExpirationHours of the negotiation.';
comment on function app_public.withdraw_offer is 'Takes a pending offer back, which only the side that made it may do; the negotiation is OPEN again.';
comment on function app_public.create_offer_response is $$
@arg offerId The offer, which is pending.
@arg action The answer.
@arg comments A word to it.
@arg falloutReasonId Why it is rejected: a fallout reason of the project that applies to negotiations.

Accepts or rejects a pending offer, for good. Only the other side answers: the team answers a buyer for the seller, and enters what a buyer said offline; a buyer answers the seller. With ACCEPT the unit is PENDING and every other pending offer on it REJECTED.$$;

--------------------------------------------------------------------------------------------------------

create function app_public.negotiations_current_offer(n app_public.negotiations) returns app_public.offers
language sql stable as $$ select o from app_public.offers o where o.negotiation_id = n.id and o.status = 'PENDING' $$;
create function app_public.negotiations_accepted_offer(n app_public.negotiations) returns app_public.offers
language sql stable as $$ select o from app_public.offers o where o.negotiation_id = n.id and o.status = 'ACCEPTED' $$;
create function app_public.buyers_accepted_offer(b app_public.buyers) returns app_public.offers
language sql stable as $$
  select o from app_public.offers o
  where (o.buyer_id = b.id or o.lead_id = b.lead_id) and o.unit_id = b.unit_id and o.status = 'ACCEPTED' order by o.id desc limit 1
$$;
grant execute on function app_public.negotiations_current_offer, app_public.negotiations_accepted_offer, app_public.buyers_accepted_offer
  to plat_user, plat_anonymous;
comment on function app_public.negotiations_current_offer is 'The offer that is pending; null when none is.';
comment on function app_public.negotiations_accepted_offer is 'The offer that was accepted.';
comment on function app_public.buyers_accepted_offer is 'The accepted offer that the purchase came from.';

comment on table app_public.offers is 'An offer or counter-offer in a negotiation.';
comment on column app_public.offers.negotiation_id is 'The negotiation.';
comment on column app_public.offers.round is 'The round of the negotiation.';
comment on column app_public.offers.sequence is 'Place in the round, from 1.';
comment on column app_public.offers.side is 'The side that makes it.';
comment on column app_public.offers.kind is 'Whether it answers another.';
comment on column app_public.offers.status is 'What became of it; everything but PENDING is final.';
comment on column app_public.offers.status_changed_at is 'Since when it has its status.';
comment on column app_public.offers.price is 'The price, zero or more.';
comment on column app_public.offers.currency is 'Currency of its amounts: the one of the project.';
comment on column app_public.offers.delta is 'The price less that of the offer before it; null for the first one.';
comment on column app_public.offers.closing_date is 'When the purchase is to be closed.';
comment on column app_public.offers.earnest_money is 'The deposit that shows the buyer means it.';
comment on column app_public.offers.financing_type is 'How the home is paid.';
comment on column app_public.offers.financing_contingency is 'Whether it depends on a loan.';
comment on column app_public.offers.amount_financed is 'How much of the price is a loan.';
comment on column app_public.offers.occupancy_type is 'What the home is bought for; that of the reservation or purchase where left out.';
comment on column app_public.offers.occupancy_type_other is 'What it is bought for, in words.';
comment on column app_public.offers.requested_credits is 'What the buyer wants the seller to pay towards the costs.';
comment on column app_public.offers.comments is 'A word to the other side.';
comment on column app_public.offers.expires_at is E'@insertOptional\n\nUntil when it stands.';
comment on column app_public.offers.parent_id is 'The offer it answers: the pending one, also where left out.';
comment on column app_public.offers.created_by_id is 'Who made it.';
comment on column app_public.offers.withdrawn_at is 'When it was taken back.';
comment on column app_public.offers.manual is 'Whether the team entered it for the buyer.';
comment on column app_public.offers.legal_name is 'The legal name of whoever buys, as it was when the offer was made.';
comment on column app_public.offers.unit_id is E'@behavior -*\n\nThe unit.';
comment on column app_public.offers.lead_id is E'@behavior -*\n\nThe lead.';
comment on column app_public.offers.buyer_id is E'@behavior -*\n\nThe buyer.';
comment on column app_public.offers.reservation_id is E'@behavior -*\n\nThe reservation.';
comment on constraint offers_project_id_fkey on app_public.offers is E'@fieldName project\n@backwardBehavior -*\n\nThe project.';
comment on constraint offers_negotiation_id_fkey on app_public.offers is
  E'@parent\n@fieldName negotiation\n@foreignFieldName offers\n@backwardDescription The offers, latest first.\n\nThe negotiation.';
comment on constraint offers_parent_id_fkey on app_public.offers is
  E'@fieldName parent\n@backwardBehavior -*\n\nThe offer it answers.';
comment on constraint offers_created_by_id_fkey on app_public.offers is E'@fieldName createdBy\n@backwardBehavior -*\n\nWho made it.';
comment on constraint offers_unit_id_fkey on app_public.offers is E'@behavior -*\n@backwardBehavior -*\n\nThe unit.';
comment on constraint offers_lead_id_fkey on app_public.offers is E'@behavior -*\n@backwardBehavior -*\n\nThe lead.';
comment on constraint offers_buyer_id_fkey on app_public.offers is E'@behavior -*\n@backwardBehavior -*\n\nThe buyer.';
comment on constraint offers_reservation_id_fkey on app_public.offers is E'@behavior -*\n@backwardBehavior -*\n\nThe reservation.';
comment on constraint offers_assignee_id_fkey on app_public.offers is E'@behavior -*\n@backwardBehavior -*\n\nThe member who has the deal.';

comment on table app_public.offer_responses is 'The answer to an offer, which is final.';
comment on column app_public.offer_responses.offer_id is 'The offer.';
comment on column app_public.offer_responses.action is 'The answer.';
comment on column app_public.offer_responses.side is 'The side that answers: never the one that made the offer.';
comment on column app_public.offer_responses.manual is 'Whether the team entered it for the buyer.';
comment on column app_public.offer_responses.comments is 'A word to it.';
comment on column app_public.offer_responses.fallout_reason_id is 'Why it was rejected.';
comment on column app_public.offer_responses.responded_by_id is 'Who answered.';
comment on constraint offer_responses_project_id_fkey on app_public.offer_responses is E'@behavior -*\n@backwardBehavior -*\n\nThe project.';
comment on constraint offer_responses_offer_id_fkey on app_public.offer_responses is
  E'@parent\n@fieldName offer\n@foreignFieldName response\n@backwardDescription The answer; null until there is one.\n\nThe offer.';
comment on constraint offer_responses_fallout_reason_id_fkey on app_public.offer_responses is E'@fieldName falloutReason\n@backwardBehavior -*\n\nWhy it was rejected.';
comment on constraint offer_responses_responded_by_id_fkey on app_public.offer_responses is E'@fieldName respondedBy\n@backwardBehavior -*\n\nWho answered.';
