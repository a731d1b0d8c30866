--! Previous: sha1:ff16131a0fdb4a1a98454c67d0ab2cf1a2bf545f
--! Hash: sha1:8efb225703701b2e32205d8c09e950691dd8ab8b
--! Message: buyers

-- Buyers: purchases. A purchase of a unit or lot has the claim on it from the first draft on, and moves it along:
--
--   DRAFT, OUT_FOR_SIGNATURE    the home is PENDING
--   signed, or firm             SOLD, as soldTrigger of the project says: from IN_REVIEW on, or from FIRM on
--   CLOSED                      CLOSED
--   CANCELLED                   AVAILABLE at the price it was listed at; the lead is open again
--
-- The rescission period begins with the midnight after the purchase was signed, where the project is, and ends by itself:
-- then the purchase is CONDITIONAL with a financing contingency, else FIRM. Where the project has no rescission days, people
-- take these steps by hand. A purchase is entered in any status but CANCELLED, because those made elsewhere are entered late.
-- Only drafts are deleted; everything else is cancelled, with a reason.

alter table app_public.buyers
  add column currency app_public.currency_code not null,
  add constraint buyers_one_thing check (num_nonnulls(unit_id, lot_id) <= 1),
  add constraint buyers_closing_order check (closing_date >= purchase_date),
  add constraint buyers_reason check (status <> 'CANCELLED' or fallout_reason_id is not null);
comment on constraint buyers_one_thing on app_public.buyers is 'Name the unit or the lot, not both.';
comment on constraint buyers_closing_order on app_public.buyers is 'A purchase closes after it was signed.';
comment on constraint buyers_reason on app_public.buyers is 'A purchase that is cancelled needs a fallout reason.';
-- PERF: not by id, whose own index looks as good for a project until that project turns out to be a small one among large ones.
create index buyers_organization_status on app_public.buyers (organization_id, status, inserted_at desc, id desc) where deleted_at is null;
create index buyers_project_status on app_public.buyers (project_id, status, inserted_at desc, id desc) where deleted_at is null;
create index buyers_search on app_public.buyers using gin (organization_id, search_text gin_trgm_ops);

grant select on app_public.buyers to plat_user, plat_anonymous, plat_worker;
grant insert (project_id, unit_id, lot_id, lead_id, reservation_id, first_name, last_name, legal_name, email, phone, company, address, status,
  assignee_id, occupancy_type, financing_type, financing_contingency, amount_financed, price, purchase_date, estimated_closing_date, metadata)
  on app_public.buyers to plat_user;
grant update (status, first_name, last_name, legal_name, email, phone, dob, company, preferred_language, address, assignee_id, occupancy_type,
  occupancy_type_other, financing_type, financing_contingency, amount_financed, price, purchase_date, estimated_closing_date, closing_date,
  fallout_reason_id, cancellation_reason, metadata), delete on app_public.buyers to plat_user;

-- The list of purchases asks for them, whoever asks; without a token there are none.
grant execute on function app_hidden.viewer_purchases to plat_anonymous;

comment on column app_public.buyers.dob is E'@masked\n@secret\n\nDay of birth.';
comment on column app_public.buyers.search_text is E'@secret\n@behavior -*\n\nFor searching.';
select app_private.make_project_record('buyers', 'buyer', 'buyer.write');
select app_private.make_state_machine('buyers', 'buyer',
  steps => (
    with steps (from_state, to_state, how) as (
      values ('DRAFT', 'OUT_FOR_SIGNATURE', 'hand'), ('OUT_FOR_SIGNATURE', 'IN_REVIEW', 'hand'), ('IN_REVIEW', 'CONDITIONAL', 'hand'),
        ('IN_REVIEW', 'FIRM', 'service'), ('CONDITIONAL', 'FIRM', 'hand'), ('FIRM', 'CLEAR_TO_CLOSE', 'hand'), ('CLEAR_TO_CLOSE', 'CLOSED', 'hand')
      union all
      select state, 'CANCELLED', 'hand' from unnest(array['DRAFT', 'OUT_FOR_SIGNATURE', 'IN_REVIEW', 'CONDITIONAL', 'FIRM', 'CLEAR_TO_CLOSE']) state
    )
    select array_agg(array[from_state, to_state, how]) from steps),
  initial => array['DRAFT', 'OUT_FOR_SIGNATURE', 'IN_REVIEW', 'CONDITIONAL', 'FIRM', 'CLEAR_TO_CLOSE', 'CLOSED'],
  requirements => array[['CANCELLED', 'fallout_reason_id', 'A purchase that is cancelled needs a fallout reason.']]);
-- Cancelling its purchase is what undoes the conversion of a lead.
insert into app_hidden.transitions (subject, from_state, to_state, by_service)
  select 'lead', 'CONVERTED', unnest(array['NEW', 'CONTACTED', 'COLD', 'WARM', 'HOT']), true;

--------------------------------------------------------------------------------------------------------

create function app_private.lock_deal(unit_id uuid, lot_id uuid, reservation_id uuid, buyer_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.lock_inventory(unit_id, lot_id);
  perform from app_hidden.claims c where c.released_at is null and c.subject_id in (reservation_id, buyer_id) order by c.id for update;
  perform from app_public.reservations r where r.id = lock_deal.reservation_id or r.purchase_id = lock_deal.buyer_id order by r.id for no key update;
  perform from app_public.negotiations n where n.buyer_id = lock_deal.buyer_id or n.reservation_id = lock_deal.reservation_id order by n.id for no key update;
end $$;
comment on function app_private.lock_deal(uuid, uuid, uuid, uuid) is
  'Locks what hangs on a reservation or purchase, in the order that is the same everywhere: lot, unit, claim, reservation, negotiation.';

create function app_private.lock_purchase(id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.lock_deal(b.unit_id, b.lot_id, b.reservation_id, b.id) from app_public.buyers b where b.id = lock_purchase.id;
  perform from app_public.buyers b where b.id = lock_purchase.id for no key update;
end $$;
comment on function app_private.lock_purchase(uuid) is 'Locks a purchase and, before it, what hangs on it. Callers have seen the purchase as the viewer.';
grant execute on function app_private.lock_purchase(uuid) to plat_user;

create function app_private.rescission_end(signed_on date, days int, time_zone text) returns timestamptz
language sql immutable as $$
  select case when days > 0 then (signed_on + 1 + days)::timestamp at time zone time_zone end
$$;
comment on function app_private.rescission_end(date, int, text) is
  'When a rescission period ends: so many days from the midnight after the day of signing, in the time zone; null without days.';

create function app_private.tg_buyers__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  signed constant text[] := '{IN_REVIEW,CONDITIONAL,FIRM,CLEAR_TO_CLOSE,CLOSED}';
  firm constant text[] := '{FIRM,CLEAR_TO_CLOSE,CLOSED}';
  is_new boolean := tg_op = 'INSERT';
  project record;
  lead app_public.leads;
  reservation app_public.reservations;
  today date;
  applies boolean;
begin
  select p.currency, p.time_zone, p.rescission_days, coalesce((p.address).country, 'US') as country into project
    from app_public.projects p where p.id = new.project_id;
  today := (now() at time zone project.time_zone)::date;

  if is_new then
    new.currency := project.currency;
    if new.reservation_id is not null then
      select * into reservation from app_public.reservations r where r.id = new.reservation_id and r.project_id = new.project_id and r.deleted_at is null;
    elsif new.lead_id is not null and num_nonnulls(new.unit_id, new.lot_id) = 1 then
      -- A purchase of what its lead has reserved comes from that reservation.
      select * into reservation from app_public.reservations r
        where r.lead_id = new.lead_id and r.project_id = new.project_id and r.deleted_at is null and r.status in ('PENDING', 'CONFIRMED')
          and (r.unit_id = new.unit_id or r.lot_id = new.lot_id) order by r.id limit 1;
    end if;
    if new.reservation_id is not null and reservation.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such reservation in this project.', '{"field": "reservationId"}');
    end if;
    if reservation.id is not null then
      if new.unit_id <> reservation.unit_id or new.lot_id <> reservation.lot_id
        or num_nonnulls(coalesce(new.unit_id, reservation.unit_id), coalesce(new.lot_id, reservation.lot_id)) > 1 then
        perform app_hidden.fail('BAD_USER_INPUT', 'The reservation is of something else.',
          jsonb_build_object('field', case when new.unit_id is not null then 'unitId' else 'lotId' end));
      elsif new.lead_id <> reservation.lead_id then
        perform app_hidden.fail('BAD_USER_INPUT', 'The reservation is of another lead.', '{"field": "leadId"}');
      end if;
      new.reservation_id := reservation.id;
      new.unit_id := reservation.unit_id;
      new.lot_id := reservation.lot_id;
      new.lead_id := coalesce(new.lead_id, reservation.lead_id);
      new.legal_name := coalesce(new.legal_name, reservation.buyer_legal_name);
      new.assignee_id := coalesce(new.assignee_id, reservation.assignee_id);
      new.occupancy_type := coalesce(new.occupancy_type, reservation.occupancy_type);
      new.occupancy_type_other := coalesce(new.occupancy_type_other, reservation.occupancy_type_other);
      new.financing_type := coalesce(new.financing_type, reservation.financing_type);
      new.financing_contingency := coalesce(new.financing_contingency, reservation.financing_contingency);
    end if;
    if num_nonnulls(new.unit_id, new.lot_id) > 1 then
      perform app_hidden.fail('BAD_USER_INPUT', 'Name the unit or the lot, not both.', '{"field": "lotId"}');
    elsif new.unit_id is not null and not exists (
      select from app_public.units u where u.id = new.unit_id and u.project_id = new.project_id and u.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such unit in this project.', '{"field": "unitId"}');
    elsif new.lot_id is not null and not exists (
      select from app_public.lots l where l.id = new.lot_id and l.project_id = new.project_id and l.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such lot in this project.', '{"field": "lotId"}');
    end if;
    if new.lead_id is not null then
      select * into lead from app_public.leads l where l.id = new.lead_id and l.project_id = new.project_id and l.deleted_at is null;
      if lead.id is null then
        perform app_hidden.fail('NOT_FOUND', 'There is no such lead in this project.', '{"field": "leadId"}');
      end if;
      if num_nonnulls(new.first_name, new.last_name) = 0 then
        new.first_name := coalesce(lead.first_name, case when lead.last_name is null then regexp_replace(lead.name, '\s+\S+$', '') end);
        new.last_name := coalesce(lead.last_name, case when lead.first_name is null then substring(lead.name from '\s(\S+)$') end);
      end if;
      new.legal_name := coalesce(new.legal_name, lead.legal_name);
      new.email := coalesce(new.email, lead.email);
      new.phone := coalesce(new.phone, lead.phone);
      if new.address is not distinct from null then
        new.address := lead.address;
      end if;
      new.company := coalesce(new.company, lead.company);
      new.preferred_language := coalesce(new.preferred_language, lead.preferred_language);
      new.source := coalesce(new.source, lead.source);
      new.source_id := coalesce(new.source_id, lead.source_id);
      new.agent_id := coalesce(new.agent_id, lead.agent_id);
      new.assignee_id := coalesce(new.assignee_id, lead.assignee_id);
    end if;
    -- Who sees own deals only keeps the purchase they bring.
    if new.assignee_id is null and app_public.current_user_id() is not null and not coalesce(app_hidden.is_service(), false) then
      if new.project_id = any (array(select app_hidden.viewer_own_projects('buyer.write'))) then
        new.assignee_id := app_public.current_user_id();
      end if;
    end if;
  end if;

  if new.email <> lower(new.email) then
    new.email := lower(new.email);
  end if;
  if new.phone is not null and (is_new or new.phone is distinct from old.phone) then
    new.phone := app_hidden.to_e164(new.phone, project.country);
  end if;
  if new.address is distinct from null then
    new.address := app_hidden.complete_address(new.address, project.country);
  end if;
  if is_new or new.price is distinct from old.price then
    new.price := app_hidden.to_money(new.price, new.currency, 'price');
  end if;
  if new.amount_financed is not null then
    new.amount_financed := app_hidden.to_money(new.amount_financed, new.currency, 'amountFinanced');
  end if;
  if new.dob > today then
    perform app_hidden.fail('BAD_USER_INPUT', 'Nobody was born in the future.', '{"field": "dob"}');
  end if;
  if new.assignee_id is not null and (is_new or new.assignee_id is distinct from old.assignee_id)
    and not app_private.has_part(new.assignee_id, new.project_id) then
    perform app_hidden.fail('BAD_USER_INPUT', 'A purchase is assigned to a member of an organization of its project.', '{"field": "assigneeId"}');
  end if;
  if new.fallout_reason_id is not null and (is_new or new.fallout_reason_id is distinct from old.fallout_reason_id) then
    select 'BUYER' = any (r.applies_to::text[]) into applies from app_public.fallout_reasons r
      where r.id = new.fallout_reason_id and r.project_id = new.project_id and r.deleted_at is null;
    if applies is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such fallout reason in this project.', '{"field": "falloutReasonId"}');
    elsif not applies then
      perform app_hidden.fail('BAD_USER_INPUT', 'This fallout reason does not apply to purchases.', '{"field": "falloutReasonId"}');
    end if;
  end if;

  if is_new or new.status is distinct from old.status then
    if new.status = 'OUT_FOR_SIGNATURE' then
      new.contract_sent_at := coalesce(new.contract_sent_at, now());
    elsif new.status = 'CANCELLED' then
      new.cancellation_date := coalesce(new.cancellation_date, today);
    end if;
    if new.status = any (signed) then
      new.purchase_date := coalesce(new.purchase_date, today);
    end if;
    if new.status = any (firm) then
      new.purchase_firm_date := coalesce(new.purchase_firm_date, greatest(today, new.purchase_date));
    end if;
    if new.status = 'CLOSED' then
      new.closing_date := coalesce(new.closing_date, greatest(today, new.purchase_date));
    end if;
  elsif new.status = any (signed) and new.purchase_date is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'purchaseDate may not be null: the purchase is signed.', '{"field": "purchaseDate"}');
  elsif new.status = 'CLOSED' and new.closing_date is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'closingDate may not be null: the purchase is closed.', '{"field": "closingDate"}');
  end if;
  if new.status = 'IN_REVIEW' and (is_new or row(old.status, old.purchase_date) is distinct from row(new.status, new.purchase_date)) then
    new.rescission_ends_at := app_private.rescission_end(new.purchase_date, project.rescission_days, project.time_zone);
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.buyers for each row execute function app_private.tg_buyers__prepare();

create function app_private.tg_buyers__claim() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  claim app_hidden.claims;
  reservation app_public.reservations;
  existing_id uuid;
begin
  -- Who may not, whom the policy refuses in a moment, is told nothing about what is claimed.
  if app_public.current_user_id() is not null and not coalesce(app_hidden.is_service(), false)
    and not app_hidden.project_can(new.project_id, new.organization_id, 'buyer.write') then
    return new;
  end if;
  perform app_private.lock_deal(new.unit_id, new.lot_id, new.reservation_id, null);
  select b.id into existing_id from app_public.buyers b where b.lead_id = new.lead_id and b.status <> 'CANCELLED' and b.deleted_at is null;
  if found then
    perform app_hidden.fail('CONFLICT', 'This lead is a buyer already.', jsonb_build_object('field', 'leadId', 'existingId', existing_id));
  end if;
  if num_nonnulls(new.unit_id, new.lot_id) = 0 then
    return new;
  end if;
  if new.reservation_id is not null then
    select * into reservation from app_public.reservations r where r.id = new.reservation_id and r.deleted_at is null;
    if coalesce(reservation.status, '') not in ('PENDING', 'CONFIRMED') then
      perform app_hidden.fail('CONFLICT', format('The reservation is %s.', coalesce(reservation.status, 'gone')),
        jsonb_strip_nulls(jsonb_build_object('field', 'reservationId', 'existingId', reservation.purchase_id)));
    end if;
  end if;
  -- What the reservation of the purchase has claimed, or the negotiation of its lead that ended in acceptance, is taken over.
  select c.* into claim from app_hidden.claims c
    where c.released_at is null and (c.unit_id = new.unit_id or (new.unit_id is null and c.unit_id is null and c.lot_id = new.lot_id))
      and not app_hidden.claim_is_over(c)
      and (c.subject_id = new.reservation_id or exists (
        select from app_public.negotiations n where n.id = c.subject_id and n.lead_id = new.lead_id and n.status = 'ACCEPTED' and n.deleted_at is null));
  if found then
    update app_hidden.claims c set subject_type = 'buyer', subject_id = new.id where c.id = claim.id;
  end if;
  perform app_private.take_claim(new.unit_id, new.lot_id, 'PURCHASE', 'buyer', new.id);
  return new;
end $$;
comment on function app_private.tg_buyers__claim() is 'Takes the claim on the unit or lot before the purchase is there, so that of two at once the second one learns why.';
create trigger _400_claim before insert on app_public.buyers for each row execute function app_private.tg_buyers__claim();

create function app_private.move_inventory(purchase app_public.buyers) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  ladder constant text[] := '{PENDING,SOLD,CLOSED}';
  claim app_hidden.claims := app_private.active_claim(purchase.id);
  present text;
  wanted text;
  step text;
begin
  if claim.id is null then
    return;
  end if;
  present := coalesce((select u.status from app_public.units u where u.id = claim.unit_id), (select l.status from app_public.lots l where l.id = claim.lot_id));
  wanted := case
    when purchase.status = 'CLOSED' then 'CLOSED'
    when purchase.status in ('FIRM', 'CLEAR_TO_CLOSE') then 'SOLD'
    when purchase.status in ('IN_REVIEW', 'CONDITIONAL') and (select p.sold_trigger = 'SIGNED' from app_public.projects p where p.id = purchase.project_id) then 'SOLD'
    else 'PENDING' end;
  foreach step in array ladder loop
    if array_position(ladder, step) > coalesce(array_position(ladder, present), 0) and array_position(ladder, step) <= array_position(ladder, wanted) then
      perform app_private.set_inventory(claim, step, sold_price => purchase.price);
    end if;
  end loop;
  update app_public.units u set sold_price = purchase.price where u.id = claim.unit_id and u.sold_price <> purchase.price;
end $$;
comment on function app_private.move_inventory(app_public.buyers) is
  'Gives the home of a purchase the status that the purchase makes, step by step, and the price that it was sold for.';

create function app_private.tg_buyers__effects() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  claim app_hidden.claims;
  is_over boolean := new.status = 'CANCELLED' or new.deleted_at is not null;
  is_signed boolean := not is_over and new.status not in ('DRAFT', 'OUT_FOR_SIGNATURE');
begin
  if not is_over then
    perform app_private.move_inventory(new);
  end if;
  -- With a purchase that is signed there is nothing left to negotiate.
  if is_signed and new.unit_id is not null and (tg_op = 'INSERT' or old.status in ('DRAFT', 'OUT_FOR_SIGNATURE')) then
    perform app_private.end_negotiations(unit_id => new.unit_id, reason => 'The home was sold.');
  end if;
  perform set_config('plat.service', 'on', true);
  if tg_op = 'INSERT' then
    update app_public.reservations r set status = 'CONVERTED', purchase_id = new.id where r.id = new.reservation_id and r.status in ('PENDING', 'CONFIRMED');
    update app_public.leads l set assignee_id = new.assignee_id where l.id = new.lead_id and l.assignee_id is distinct from new.assignee_id;
    if new.status <> 'CLOSED' then
      perform app_private.copy_deposit_schedule(new.id);
    end if;
  elsif is_over and not (old.status = 'CANCELLED' or old.deleted_at is not null) then
    claim := app_private.active_claim(new.id);
    if claim.id is not null then
      perform app_private.release_claim(claim.id, 'CANCELLED');
    end if;
    perform app_private.end_negotiations(buyer_id => new.id, reason => coalesce(new.cancellation_reason, 'The purchase was cancelled.'));
    -- What is due and not paid is due no more; the machine of deposits says which those are.
    update app_public.deposits d set status = 'CANCELLED' where d.buyer_id = new.id and d.deleted_at is null
      and exists (select from app_hidden.transitions t where t.subject = 'deposit' and t.from_state = d.status and t.to_state = 'CANCELLED');
    update app_public.leads l set status = coalesce(nullif(nullif(l.status_before_deal, 'RESERVED'), 'NEGOTIATING'), 'HOT'), converted_at = null
      where l.id = new.lead_id and l.status = 'CONVERTED' and l.deleted_at is null;
  end if;
  perform set_config('plat.service', before, true);
  if new.lead_id is not null then
    perform app_private.follow_deals(new.lead_id);
  end if;
  return null;
end $$;
comment on function app_private.tg_buyers__effects() is 'What a purchase brings about: the status of the home, of its reservation, its lead and its deposits.';
create trigger _500_effects_first after insert on app_public.buyers for each row execute function app_private.tg_buyers__effects();
create trigger _500_effects after update on app_public.buyers for each row
  when (row(old.status, old.price, old.deleted_at) is distinct from row(new.status, new.price, new.deleted_at))
  execute function app_private.tg_buyers__effects();

create function app_private.tg_buyers__keep() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if old.status <> 'DRAFT' then
    perform app_hidden.fail('CONFLICT', 'Only a draft is deleted; cancel the purchase with updateBuyer and a fallout reason.', '{"field": "id"}');
  end if;
  return old;
end $$;
create trigger _300_keep before delete on app_public.buyers for each row execute function app_private.tg_buyers__keep();

create function app_private.tg_members__unassign_deals() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  deal_table text;
begin
  for deal_table in select t.table_name from app_private.deal_tables t order by t.table_name loop
    execute format('update app_public.%I d set assignee_id = null where d.organization_id = $1 and d.assignee_id = $2 and d.deleted_at is null
      and not exists (select from app_public.projects p where p.id = d.project_id and p.archived_at is not null)', deal_table)
      using old.organization_id, old.user_id;
  end loop;
  return null;
end $$;
comment on function app_private.tg_members__unassign_deals() is 'Deals that a former member worked on have nobody assigned; those of leads follow their leads.';
create trigger _500_unassign_deals after delete on app_public.organization_user_connections
  for each row execute function app_private.tg_members__unassign_deals();

create function app_private.settle_rescission(buyer_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform app_private.lock_purchase(buyer_id);
  perform set_config('plat.service', 'on', true);
  -- Time goes on in archived projects too.
  perform set_config('plat.clock', 'on', true);
  update app_public.buyers b set
      status = case when b.financing_contingency then 'CONDITIONAL' else 'FIRM' end,
      purchase_firm_date = case when b.financing_contingency then b.purchase_firm_date else (b.rescission_ends_at at time zone p.time_zone)::date end
    from app_public.projects p
    where b.id = settle_rescission.buyer_id and p.id = b.project_id and b.deleted_at is null and b.status = 'IN_REVIEW' and b.rescission_ends_at <= clock_timestamp();
  perform set_config('plat.clock', '', true);
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.settle_rescission(uuid) is 'Ends the rescission period of a purchase when its time has come.';
select app_private.make_deadline('rescission', 'app_public.buyers', 'rescission_ends_at', $$new.status = 'IN_REVIEW' and new.deleted_at is null$$,
  '{status,deleted_at}', 'app_private.settle_rescission(uuid)');

create function app_private.cancel_purchase(buyer_id uuid, reason text, fallout_reason_id uuid default null) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  purchase app_public.buyers;
  fallout_id uuid := cancel_purchase.fallout_reason_id;
begin
  perform app_private.lock_purchase(cancel_purchase.buyer_id);
  select * into purchase from app_public.buyers b where b.id = cancel_purchase.buyer_id and b.deleted_at is null;
  if purchase.id is null or purchase.status = 'CANCELLED' then
    return;
  end if;
  -- What the service cancels has a reason of the project too: the one for other reasons, or the first that applies.
  if fallout_id is null or not exists (select from app_public.fallout_reasons r
      where r.id = fallout_id and r.project_id = purchase.project_id and r.deleted_at is null and 'BUYER' = any (r.applies_to::text[])) then
    select r.id into fallout_id from app_public.fallout_reasons r
      where r.project_id = purchase.project_id and r.deleted_at is null and 'BUYER' = any (r.applies_to::text[])
      order by r.category = 'OTHER' desc, r.active desc, r.sequence, r.id limit 1;
  end if;
  if fallout_id is null then
    insert into app_public.fallout_reasons (project_id, name, applies_to) values (purchase.project_id, 'Other reasons for purchases', '{BUYER}') returning id into fallout_id;
  end if;
  perform set_config('plat.service', 'on', true);
  update app_public.buyers b set status = 'CANCELLED', cancellation_reason = coalesce(cancel_purchase.reason, b.cancellation_reason), fallout_reason_id = fallout_id
    where b.id = purchase.id;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.cancel_purchase(uuid, text, uuid) is
  'Cancels a purchase as the service: releases its claim, opens its lead again, cancels its unpaid deposits. Nothing happens to one that is cancelled already; a closed one is refused.';

--------------------------------------------------------------------------------------------------------

create function app_private.set_buyer_agent(buyer app_public.buyers, agent app_public.agent_input) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Only for purchases that the viewer has just written: the callers did so as the viewer.
  update app_public.buyers b set agent_id = case when agent is distinct from null then app_private.agent_for(buyer.organization_id, agent,
      coalesce((select (p.address).country from app_public.projects p where p.id = buyer.project_id), 'US')) end
    where b.id = buyer.id;
end $$;
grant execute on function app_private.set_buyer_agent to plat_user;

create function app_public.create_buyer(input jsonb, agent app_public.agent_input default null) returns app_public.buyers
language plpgsql volatile as $$
declare
  buyer app_public.buyers;
begin
  perform app_hidden.require_viewer();
  buyer := app_hidden.create_record(null::app_public.buyers, input);
  if agent is distinct from null then
    perform app_private.set_buyer_agent(buyer, agent);
    select * into buyer from app_public.buyers b where b.id = buyer.id;
  end if;
  return buyer;
end $$;
comment on function app_public.create_buyer is $$
@arg agent The agent who represents the buyer; that of the lead where left out.

Creates a purchase and takes the claim on its unit or lot; what the lead has reserved is taken over. Begins as DRAFT where no status is given. What is not given of the person comes from the lead.$$;

create function app_public.update_buyer(input jsonb, agent app_public.agent_input default null) returns app_public.buyers
language plpgsql volatile as $$
declare
  buyer app_public.buyers;
begin
  perform app_hidden.require_viewer();
  if input ?| '{status,price,assignee_id}' then
    perform app_private.lock_purchase(b.id) from app_public.buyers b where b.id = app_hidden.record_id('buyers', input ->> 'id');
  end if;
  buyer := app_hidden.update_record(null::app_public.buyers, input);
  if input ? 'agent' then
    perform app_private.set_buyer_agent(buyer, agent);
    select * into buyer from app_public.buyers b where b.id = buyer.id;
  end if;
  return buyer;
end $$;
comment on function app_public.update_buyer is $$
@arg agent The agent who represents the buyer; null for none.

Changes a purchase. Its status moves the unit or lot along; CANCELLED, which needs a fallout reason, makes it AVAILABLE again.$$;
grant execute on function app_public.create_buyer, app_public.update_buyer to plat_user, plat_anonymous;

--------------------------------------------------------------------------------------------------------

create function app_hidden.matching_buyers(query text) returns setof uuid
language plpgsql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[] := array(select app_hidden.viewer_organizations('buyer.read'));
  projects uuid[] := array(select app_hidden.viewer_projects('buyer.read'));
  own_projects uuid[] := array(select app_hidden.viewer_own_projects('buyer.read'));
begin
  -- As for leads: no operator for words is leakproof, so they are looked up first, among what the viewer sees. Written out,
  -- so that it is planned for its own words.
  return query execute 'select b.id from app_public.buyers b where b.organization_id = any ($1) and ' || (
      select coalesce(string_agg(format('b.search_text like %L', '%' || regexp_replace(word, '([\\%_])', '\\\1', 'g') || '%'), ' and '), 'true')
      from regexp_split_to_table(app_hidden.fold(btrim(query)), '\s+') word) || '
    and (b.organization_id = any ($2) or b.project_id = any ($3) or (b.assignee_id = $4 and b.project_id = any ($5)))'
    using organizations || array(select distinct p.organization_id from app_public.projects p where p.id = any (projects || own_projects)),
      organizations, projects, app_public.current_user_id(), own_projects;
end $$;
comment on function app_hidden.matching_buyers(text) is 'Purchases that the viewer sees as a seller and that contain every word.';

create function app_public.buyers_filter_query(b app_public.buyers, value text) returns boolean
language sql stable as $$ select b.id = any (array(select app_hidden.matching_buyers(value))) $$;
create function app_public.buyers_full_name(b app_public.buyers) returns text
language sql stable as $$
  select coalesce(nullif(concat_ws(' ', b.first_name, b.last_name), ''), b.legal_name, b.company, b.email, 'Unnamed buyer')
$$;
create function app_public.buyers_dob(b app_public.buyers) returns date
language sql stable as $$ select case when b.dob is not null and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.pii') then b.dob end $$;
create function app_public.buyers_metadata(b app_public.buyers) returns jsonb
language sql stable as $$
  select case when b.metadata is not null and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.read') then b.metadata end
$$;
create function app_public.buyers_cancellation_reason(b app_public.buyers) returns app_public.long_text
language sql stable as $$
  select case when b.cancellation_reason is not null and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.read') then b.cancellation_reason end
$$;
create function app_public.buyers_net_purchase_price(b app_public.buyers) returns app_public.money
language sql stable as $$ select b.price + app_private.personalization_total(b.unit_id, b.lead_id, b.id) $$;
create function app_public.buyers_net_purchase_price_balance(b app_public.buyers) returns numeric
language sql stable as $$ select app_public.buyers_net_purchase_price(b)::numeric $$;
create function app_public.buyers_ppsf(b app_public.buyers) returns numeric
language sql stable as $$ select round(b.price / nullif(u.effective_sqft, 0), 2) from app_public.units u where u.id = b.unit_id $$;
create function app_public.buyers_allowed_transitions(b app_public.buyers) returns app_public.transition[]
language sql stable as $$
  select case when app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.write')
    then app_hidden.transitions_from('buyer', jsonb_build_object('status', b.status, 'fallout_reason_id', b.fallout_reason_id)) else '{}' end
$$;
create function app_public.buyers_documents(b app_public.buyers) returns setof app_public.reservation_documents
language sql stable rows 5 as $$
  select d.* from app_public.reservation_documents d where d.reservation_id = b.reservation_id and d.deleted_at is null order by d.id desc
$$;
create function app_public.units_buyer(u app_public.units) returns app_public.buyers
language sql stable as $$
  select b from app_public.buyers b where b.unit_id = u.id and b.deleted_at is null and b.status <> 'CANCELLED'
$$;
create function app_public.lots_buyer(l app_public.lots) returns app_public.buyers
language sql stable as $$
  select b from app_public.buyers b where b.lot_id = l.id and b.unit_id is null and b.deleted_at is null and b.status <> 'CANCELLED'
$$;
create function app_public.leads_buyer(l app_public.leads) returns app_public.buyers
language sql stable as $$
  select b from app_public.buyers b where b.lead_id = l.id and b.deleted_at is null and b.status <> 'CANCELLED'
$$;
grant execute on function app_public.buyers_filter_query, app_public.buyers_full_name, app_public.buyers_dob, app_public.buyers_metadata,
  app_public.buyers_cancellation_reason, app_public.buyers_net_purchase_price, app_public.buyers_net_purchase_price_balance, app_public.buyers_ppsf, app_public.buyers_allowed_transitions,
  app_public.buyers_documents, app_public.units_buyer, app_public.lots_buyer, app_public.leads_buyer to plat_user, plat_anonymous;
comment on function app_public.buyers_filter_query is E'@filter query\n@finder matching_buyers\n\nWords in name, e-mail address, phone number or company.';
comment on function app_public.buyers_full_name is E'@notNull\n\nGiven and family name; without them the name on the contract, the company or the e-mail address.';
comment on function app_public.buyers_dob is 'Day of birth; null without the permission buyer.pii.';
comment on function app_public.buyers_metadata is 'Free data of the organization''s own programs; null without the permission buyer.read.';
comment on function app_public.buyers_cancellation_reason is 'Why it was cancelled, in words; null without the permission buyer.read.';
comment on function app_public.buyers_net_purchase_price is E'@notNull\n\nThe price with everything that was chosen on top.';
comment on function app_public.buyers_net_purchase_price_balance is E'@notNull\n\nThe net purchase price less the deposits that are paid.';
comment on function app_public.buyers_ppsf is 'Price per square foot.';
comment on function app_public.buyers_allowed_transitions is E'@notNull\n\nThe steps that the viewer can take with the purchase from its status.';
comment on function app_public.buyers_documents is E'@ordered\n\nThe documents of the reservation that it came from, newest first; the buyer sees those that are meant for buyers.';
comment on function app_public.units_buyer is 'The purchase in force; null without the permission buyer.read.';
comment on function app_public.lots_buyer is 'The purchase in force of the lot by itself; null without the permission buyer.read.';
comment on function app_public.leads_buyer is 'The purchase in force that the lead became.';

alter table app_public.lease_permits add column buyer_id uuid,
  add constraint lease_permits_buyer_id_fkey foreign key (buyer_id, project_id) references app_public.buyers (id, project_id) on delete restrict;
create index lease_permits_buyer on app_public.lease_permits (buyer_id) where buyer_id is not null;
grant update (buyer_id) on app_public.lease_permits to plat_user;
comment on column app_public.lease_permits.buyer_id is 'The purchase that it belongs to.';
comment on constraint lease_permits_buyer_id_fkey on app_public.lease_permits is E'@fieldName buyer\n@backwardBehavior -*\n\nThe purchase that it belongs to.';

create function app_private.tg_lease_permits__buyer() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_public.buyers b where b.id = new.buyer_id and b.project_id = new.project_id and b.deleted_at is null) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such buyer in this project.', '{"field": "buyerId"}');
  end if;
  return new;
end $$;
create trigger _220_buyer before insert or update of buyer_id on app_public.lease_permits
  for each row when (new.buyer_id is not null) execute function app_private.tg_lease_permits__buyer();

comment on table app_public.buyers is $$
@portfolio buyer.read
@ownFinder viewer_purchases
@defaultOrder inserted_at desc
@filterLists status

A purchase, and who buys.$$;
comment on column app_public.buyers.project_id is E'@filter projectIds\n\nThe project.';
comment on column app_public.buyers.lead_id is 'The lead that became the buyer.';
comment on column app_public.buyers.user_id is 'The account of the buyer; set when the invitation is accepted.';
comment on column app_public.buyers.unit_id is E'@filter unitIds\n\nThe unit that is bought.';
comment on column app_public.buyers.lot_id is 'The lot that is bought by itself.';
comment on column app_public.buyers.reservation_id is 'The reservation that became the purchase.';
comment on column app_public.buyers.assignee_id is E'@filter assigneeIds\n\nThe member who works on the purchase.';
comment on column app_public.buyers.agent_id is 'The agent who represents the buyer.';
comment on column app_public.buyers.first_name is 'Given name.';
comment on column app_public.buyers.last_name is 'Family name.';
comment on column app_public.buyers.legal_name is 'Name on the contract.';
comment on column app_public.buyers.email is 'E-mail address; the invitation goes there.';
comment on column app_public.buyers.phone is 'Phone number.';
comment on column app_public.buyers.company is 'Company.';
comment on column app_public.buyers.preferred_language is 'Language to write in.';
comment on column app_public.buyers.address is 'Postal address.';
comment on column app_public.buyers.status is E'@filter\n\nHow far the purchase is.';
comment on column app_public.buyers.status_changed_at is 'Since when it has its status.';
comment on column app_public.buyers.source is 'Code of the source, such as WEB_DIRECT.';
comment on column app_public.buyers.source_id is 'The lead source.';
comment on column app_public.buyers.occupancy_type is 'What the home is bought for.';
comment on column app_public.buyers.occupancy_type_other is 'What the home is bought for, in words.';
comment on column app_public.buyers.financing_type is 'How the home is paid.';
comment on column app_public.buyers.financing_contingency is 'Whether the purchase depends on a loan; it is CONDITIONAL then when the rescission period ends.';
comment on column app_public.buyers.amount_financed is 'How much of it is a loan.';
comment on column app_public.buyers.price is 'Purchase price.';
comment on column app_public.buyers.currency is 'Currency of its amounts: the one of the project.';
comment on column app_public.buyers.contract_sent_at is 'When the contract was sent.';
comment on column app_public.buyers.purchase_date is E'@filter\n\nThe day on which all parties had signed.';
comment on column app_public.buyers.rescission_ends_at is 'Until when the buyer may withdraw: rescissionDays of the project from the midnight after purchaseDate, where the project is.';
comment on column app_public.buyers.purchase_firm_date is 'The day on which nothing was open any more.';
comment on column app_public.buyers.estimated_closing_date is 'When closing is expected.';
comment on column app_public.buyers.closing_date is E'@filter\n\nThe day of closing.';
comment on column app_public.buyers.cancellation_date is 'The day on which it was cancelled.';
comment on column app_public.buyers.cancellation_reason is E'@masked\n\nWhy it was cancelled, in words.';
comment on column app_public.buyers.fallout_reason_id is 'Why it was cancelled; required for the status CANCELLED.';
comment on column app_public.buyers.metadata is E'@masked\n\nFree data of the organization''s own programs.';
comment on column app_public.buyers.updated_at is E'@filter\n\nThe last change.';
comment on constraint buyers_lead_id_fkey on app_public.buyers is E'@fieldName lead\n@backwardBehavior -*\n\nThe lead that became the buyer.';
comment on constraint buyers_user_id_fkey on app_public.buyers is
  E'@fieldName user\n@foreignFieldName purchases\n@backwardDescription What the user buys, as far as the viewer may see it.\n\nThe account of the buyer; set when the invitation is accepted.';
comment on constraint buyers_unit_id_fkey on app_public.buyers is E'@fieldName unit\n@backwardBehavior -*\n\nThe unit that is bought.';
comment on constraint buyers_lot_id_fkey on app_public.buyers is E'@fieldName lot\n@backwardBehavior -*\n\nThe lot that is bought by itself.';
comment on constraint buyers_reservation_id_fkey on app_public.buyers is E'@fieldName reservation\n@backwardBehavior -*\n\nThe reservation that became the purchase.';
comment on constraint buyers_assignee_id_fkey on app_public.buyers is E'@fieldName assignee\n@backwardBehavior -*\n\nThe member who works on the purchase.';
comment on constraint buyers_agent_id_fkey on app_public.buyers is E'@fieldName agent\n@backwardBehavior -*\n\nThe agent who represents the buyer.';
comment on constraint buyers_source_id_fkey on app_public.buyers is E'@fieldName leadSource\n@backwardBehavior -*\n\nThe source as the project defines it.';
comment on constraint buyers_fallout_reason_id_fkey on app_public.buyers is E'@fieldName falloutReason\n@backwardBehavior -*\n\nWhy it was cancelled.';
