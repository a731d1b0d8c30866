--! Previous: sha1:22a440b39c543163b4babb316843eccac280b7d7
--! Hash: sha1:6297e271aaf7c1ccd14c5cb53ca4dff0f904156b
--! Message: deals

-- Deals: what leads to a sale. Here are the tables that refer to each other (purchases, reservations, negotiations), who
-- sees them, and what they have in common: one assignee, and the status of the lead. What each does has its own chapter.

select app_private.create_enum('buyer_status', 'How far a purchase is.', array[
  ['DRAFT', 'Being prepared.'], ['OUT_FOR_SIGNATURE', 'The contract was sent.'], ['IN_REVIEW', 'Signed; the buyer may still withdraw.'],
  ['CONDITIONAL', 'Signed; conditions such as financing are open.'], ['FIRM', 'Nothing is open.'],
  ['CLEAR_TO_CLOSE', 'Everything for closing is there.'], ['CLOSED', 'The buyer owns the home.'], ['CANCELLED', 'It fell through.']]);
select app_private.create_enum('reservation_status', 'What became of a reservation.', array[
  ['PENDING', 'Entered, not confirmed.'], ['CONFIRMED', 'Confirmed by the sales team.'], ['CONVERTED', 'Became a purchase.'],
  ['EXPIRED', 'Its time ran out.'], ['CANCELLED', 'Called off.'], ['REFUNDED', 'Undone: the home is for sale again.']]);
select app_private.create_enum('negotiation_status', 'Where a negotiation stands.', array[
  ['OPEN', 'Nobody has made an offer.'], ['ACTIVE', 'An offer is pending.'], ['ACCEPTED', 'An offer was accepted.'],
  ['REJECTED', 'The last offer was rejected.'], ['EXPIRED', 'The last offer ran out.'], ['CANCELLED', 'Called off.']]);
select app_private.create_enum('party_side', 'A side of a deal.', array[
  ['BUYER', 'Whoever buys.'], ['SELLER', 'Whoever sells.']]);
select app_private.create_enum('occupancy_type', 'What a home is bought for.', array[
  ['PRIMARY_RESIDENCE', 'To live in.'], ['SECONDARY_RESIDENCE', 'To live in at times.'], ['INVESTMENT', 'To let or sell.'],
  ['FAMILY_MEMBER', 'For a member of the family.'], ['OTHER', 'Something else.']]);
select app_private.create_enum('financing_type', 'How a home is paid.', array[
  ['CASH', 'Without a loan.'], ['CONVENTIONAL', 'A conventional loan.'], ['FHA', 'A loan insured by the Federal Housing Administration.'],
  ['VA', 'A loan guaranteed by the Department of Veterans Affairs.'], ['USDA', 'A loan backed by the Department of Agriculture.'],
  ['JUMBO', 'A loan above the conforming limit.'], ['CONSTRUCTION', 'A construction loan.'], ['PRIVATE', 'A private loan.'],
  ['OTHER', 'Something else.'], ['UNKNOWN', 'Not known yet.']]);

create table app_public.buyers (
  like app_private.project_record including all,
  lead_id uuid,
  user_id uuid references app_public.users on delete set null,
  unit_id uuid,
  lot_id uuid,
  reservation_id uuid,
  assignee_id uuid references app_public.users on delete set null,
  agent_id uuid,
  first_name app_public.short_text,
  last_name app_public.short_text,
  legal_name app_public.short_text,
  email app_public.email_address constraint buyers_email_lower check (email = lower(email)),
  phone app_public.phone_number constraint buyers_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  dob date,
  company app_public.short_text,
  preferred_language app_public.language_code,
  address app_public.address,
  status app_public.buyer_status not null default 'DRAFT',
  status_changed_at timestamptz not null default now(),
  source app_public.short_text,
  source_id uuid,
  occupancy_type app_public.occupancy_type,
  occupancy_type_other app_public.short_text,
  financing_type app_public.financing_type,
  financing_contingency boolean,
  amount_financed app_public.money,
  price app_public.money not null,
  contract_sent_at timestamptz,
  purchase_date date,
  rescission_ends_at timestamptz,
  purchase_firm_date date,
  estimated_closing_date date,
  closing_date date,
  cancellation_date date,
  cancellation_reason app_public.long_text,
  fallout_reason_id uuid,
  metadata jsonb,
  search_text text generated always as (app_hidden.fold(coalesce(first_name, '') || ' ' || coalesce(last_name, '') || ' ' || coalesce(legal_name, '')
    || ' ' || coalesce(email, '') || ' ' || coalesce(phone, '') || ' ' || coalesce(company, ''))) stored,
  unique (id, project_id),
  constraint buyers_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id) on delete restrict,
  constraint buyers_unit_id_fkey foreign key (unit_id, project_id) references app_public.units (id, project_id) on delete restrict,
  constraint buyers_lot_id_fkey foreign key (lot_id, project_id) references app_public.lots (id, project_id) on delete restrict,
  constraint buyers_agent_id_fkey foreign key (agent_id, organization_id) references app_public.agents (id, organization_id) on delete restrict,
  constraint buyers_source_id_fkey foreign key (source_id, project_id) references app_public.lead_sources (id, project_id) on delete restrict,
  constraint buyers_fallout_reason_id_fkey foreign key (fallout_reason_id, project_id) references app_public.fallout_reasons (id, project_id) on delete restrict
);
-- A home has one purchase in force, and a lead becomes a buyer once.
create unique index buyers_unit on app_public.buyers (unit_id) where deleted_at is null and status <> 'CANCELLED' and unit_id is not null;
create unique index buyers_lot on app_public.buyers (lot_id) where deleted_at is null and status <> 'CANCELLED' and lot_id is not null and unit_id is null;
create unique index buyers_lead on app_public.buyers (lead_id) where deleted_at is null and status <> 'CANCELLED' and lead_id is not null;
comment on index app_public.buyers_unit is 'There is a purchase of this unit already.';
comment on index app_public.buyers_lot is 'There is a purchase of this lot already.';
comment on index app_public.buyers_lead is 'This lead is a buyer already.';
create index buyers_unit_history on app_public.buyers (unit_id, id desc);
create index buyers_lot_history on app_public.buyers (lot_id, id desc);
create index buyers_lead_history on app_public.buyers (lead_id, id desc);
create index buyers_user on app_public.buyers (user_id) where deleted_at is null and user_id is not null;
create index buyers_reservation on app_public.buyers (reservation_id);
create index buyers_agent on app_public.buyers (agent_id);
create index buyers_source on app_public.buyers (source_id);
create index buyers_fallout_reason on app_public.buyers (fallout_reason_id);

create table app_public.reservations (
  like app_private.project_record including all,
  unit_id uuid,
  lot_id uuid,
  lead_id uuid,
  buyer_id uuid references app_public.users on delete set null,
  purchase_id uuid,
  user_id uuid default app_public.current_user_id() references app_public.users on delete set null,
  assignee_id uuid references app_public.users on delete set null,
  status app_public.reservation_status not null default 'PENDING',
  status_changed_at timestamptz not null default now(),
  number text not null,
  buyer_legal_name app_public.short_text,
  price app_public.money not null,
  list_price_snapshot app_public.money not null,
  premium_snapshot app_public.money,
  fee app_public.money,
  cancellation_fee app_public.money,
  occupancy_type app_public.occupancy_type,
  occupancy_type_other app_public.short_text,
  financing_type app_public.financing_type,
  financing_contingency boolean,
  preapproved boolean,
  accepted_terms boolean not null,
  accepted_terms_at timestamptz,
  purchase_authorization boolean,
  expiration int not null constraint reservations_expiration_range check (expiration between 1 and 8760),
  expires_at timestamptz,
  extended_count int not null default 0,
  executed_at timestamptz,
  cancelled_at timestamptz,
  cancellation_reason app_public.long_text,
  fallout_reason_id uuid,
  refunded_at timestamptz,
  transaction_id app_public.short_text,
  notes app_public.long_text,
  metadata jsonb,
  constraint reservations_one_thing check (num_nonnulls(unit_id, lot_id) = 1),
  constraint reservations_refunded check (status <> 'REFUNDED' or purchase_id is null),
  unique (id, project_id),
  constraint reservations_unit_id_fkey foreign key (unit_id, project_id) references app_public.units (id, project_id) on delete restrict,
  constraint reservations_lot_id_fkey foreign key (lot_id, project_id) references app_public.lots (id, project_id) on delete restrict,
  constraint reservations_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id) on delete restrict,
  constraint reservations_purchase_id_fkey foreign key (purchase_id, project_id) references app_public.buyers (id, project_id) on delete restrict,
  constraint reservations_fallout_reason_id_fkey foreign key (fallout_reason_id, project_id) references app_public.fallout_reasons (id, project_id) on delete restrict
);
comment on constraint reservations_one_thing on app_public.reservations is 'Name either the unit or the lot.';
comment on constraint reservations_refunded on app_public.reservations is 'A refunded reservation has no purchase.';
comment on constraint reservations_expiration_range on app_public.reservations is 'Give 1 to 8,760 hours.';
create unique index reservations_number on app_public.reservations (project_id, number);
create index reservations_unit on app_public.reservations (unit_id, inserted_at desc, id desc) where deleted_at is null;
create index reservations_lot on app_public.reservations (lot_id, inserted_at desc, id desc) where deleted_at is null;
create index reservations_lead on app_public.reservations (lead_id, inserted_at desc, id desc) where deleted_at is null;
create index reservations_buyer on app_public.reservations (buyer_id) where deleted_at is null and buyer_id is not null;
create index reservations_purchase on app_public.reservations (purchase_id);
create index reservations_user on app_public.reservations (user_id);
create index reservations_fallout_reason on app_public.reservations (fallout_reason_id);
alter table app_public.buyers add constraint buyers_reservation_id_fkey
  foreign key (reservation_id, project_id) references app_public.reservations (id, project_id) on delete restrict;

create table app_public.negotiations (
  like app_private.project_record including all,
  unit_id uuid not null,
  lead_id uuid,
  buyer_id uuid,
  reservation_id uuid,
  assignee_id uuid references app_public.users on delete set null,
  status app_public.negotiation_status not null default 'OPEN',
  status_changed_at timestamptz not null default now(),
  round int not null default 1,
  turn app_public.party_side,
  list_price app_public.money not null,
  floor_price app_public.money,
  offer_expiration_hours int not null default 48 constraint negotiations_offer_expiration_hours_range check (offer_expiration_hours between 1 and 8760),
  opened_at timestamptz not null default now(),
  closed_at timestamptz,
  cancellation_reason app_public.long_text,
  notes app_public.long_text,
  constraint negotiations_somebody check (num_nonnulls(lead_id, buyer_id) >= 1),
  unique (id, project_id),
  constraint negotiations_unit_id_fkey foreign key (unit_id, project_id) references app_public.units (id, project_id) on delete restrict,
  constraint negotiations_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id) on delete restrict,
  constraint negotiations_buyer_id_fkey foreign key (buyer_id, project_id) references app_public.buyers (id, project_id) on delete restrict,
  constraint negotiations_reservation_id_fkey foreign key (reservation_id, project_id) references app_public.reservations (id, project_id) on delete restrict
);
comment on constraint negotiations_offer_expiration_hours_range on app_public.negotiations is 'Give 1 to 8,760 hours.';
comment on constraint negotiations_somebody on app_public.negotiations is 'Name the lead or the buyer who negotiates.';
create index negotiations_unit on app_public.negotiations (unit_id, id desc) where deleted_at is null;
create index negotiations_lead on app_public.negotiations (lead_id, id desc) where deleted_at is null;
create index negotiations_buyer on app_public.negotiations (buyer_id, id desc) where deleted_at is null;
create index negotiations_reservation on app_public.negotiations (reservation_id, id desc) where deleted_at is null;

--------------------------------------------------------------------------------------------------------
-- Who sees them. Besides the sales team: the buyer who accepted an invitation, what is theirs.

create function app_hidden.viewer_purchases() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
begin
  if app_public.current_user_id() is null or app_hidden.setting('organization_id') is not null or not app_hidden.scopes_allow('purchase.own') then
    return;
  end if;
  return query select b.id from app_public.buyers b where b.user_id = app_public.current_user_id() and b.deleted_at is null;
end $$;
comment on function app_hidden.viewer_purchases() is 'The purchases that the viewer makes: those whose invitation they accepted. A token with scopes needs purchase.own.';

create function app_hidden.viewer_purchase_reservations() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
begin
  if app_public.current_user_id() is null or app_hidden.setting('organization_id') is not null or not app_hidden.scopes_allow('purchase.own') then
    return;
  end if;
  return query
    select r.id from app_public.reservations r where r.buyer_id = app_public.current_user_id() and r.deleted_at is null
    union select b.reservation_id from app_public.buyers b where b.id = any (purchases) and b.reservation_id is not null;
end $$;
comment on function app_hidden.viewer_purchase_reservations() is 'The reservations that the viewer made as a buyer, and those that their purchases came from.';

create function app_hidden.viewer_purchase_negotiations() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
  reservations uuid[] := array(select app_hidden.viewer_purchase_reservations());
begin
  return query
    select n.id from app_public.negotiations n where n.buyer_id = any (purchases) and n.deleted_at is null
    union select n.id from app_public.negotiations n where n.reservation_id = any (reservations) and n.deleted_at is null
    union select n.id from app_public.buyers b join app_public.negotiations n on n.lead_id = b.lead_id and n.deleted_at is null
      where b.id = any (purchases) and n.unit_id is not distinct from b.unit_id;
end $$;
comment on function app_hidden.viewer_purchase_negotiations() is 'The negotiations about the viewer''s own purchases and reservations.';
grant execute on function app_hidden.viewer_purchases, app_hidden.viewer_purchase_reservations, app_hidden.viewer_purchase_negotiations to plat_user;

create table app_private.deal_tables (
  table_name text primary key
);
alter table app_private.deal_tables enable row level security;
comment on table app_private.deal_tables is 'The tables whose assignee is that of their lead or purchase.';

create function app_private.make_deal_table(table_name text, read_permission text, write_permission text, list_name text, list_description text,
  list_order text default 'id desc', own text default 'false') returns void
language plpgsql volatile as $$
declare
  scopes text := $s$organization_id = any (array(select app_hidden.viewer_organizations(%1$L)))
    or project_id = any (array(select app_hidden.viewer_projects(%1$L)))
    or (assignee_id = (select app_public.current_user_id()) and project_id = any (array(select app_hidden.viewer_own_projects(%1$L))))$s$;
  readers text := format(scopes, read_permission);
  writers text := format(scopes, write_permission);
begin
  execute format('alter table app_public.%I add constraint %I foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict', table_name, table_name || '_project_id_fkey');
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_project_id_fkey', table_name,
    case when list_name is null then E'@parent\n@fieldName project\n@backwardBehavior -*\n\nThe project.'
      else format(E'@parent\n@fieldName project\n@foreignFieldName %s\n@backwardPermission %s\n@backwardDescription %s; null without the permission %2$s.\n\nThe project.',
        list_name, read_permission, list_description) end);
  execute format('create index %I on app_public.%I (organization_id, %s) where deleted_at is null', table_name || '_organization', table_name, list_order);
  execute format('create index %I on app_public.%I (project_id, %s) where deleted_at is null', table_name || '_project', table_name, list_order);
  execute format('create index %I on app_public.%I (assignee_id, project_id, %s) where deleted_at is null', table_name || '_assignee', table_name, list_order);
  execute format('alter table app_public.%I enable row level security', table_name);
  execute format('create policy sellers on app_public.%I for select to plat_user using (deleted_at is null and (%s or %s))', table_name, readers, own);
  execute format('create policy sellers_insert on app_public.%I for insert to plat_user with check (%s)', table_name, writers);
  execute format('create policy sellers_update on app_public.%I for update to plat_user using (%s)', table_name, writers);
  execute format('create policy sellers_delete on app_public.%I for delete to plat_user using (%s)', table_name, writers);
  insert into app_private.deal_tables (table_name) values (make_deal_table.table_name);
end $$;
comment on function app_private.make_deal_table(text, text, text, text, text, text, text) is
  'Gives a table with project_id, organization_id and assignee_id its foreign key, indexes and policies: whoever has the permission, be it for the deals assigned to them only, and who the condition `own` is true for. Grants and make_project_record follow.';

select app_private.make_deal_table('buyers', 'buyer.read', 'buyer.write', 'buyers', 'The purchases, newest first',
  list_order => 'inserted_at desc, id desc', own => 'id = any (array(select app_hidden.viewer_purchases()))');
select app_private.make_deal_table('reservations', 'sale.read', 'sale.write', 'reservations', 'The reservations, newest first',
  list_order => 'inserted_at desc, id desc', own => 'id = any (array(select app_hidden.viewer_purchase_reservations()))');
select app_private.make_deal_table('negotiations', 'sale.read', 'sale.write', 'negotiations', 'The negotiations, newest first',
  own => 'id = any (array(select app_hidden.viewer_purchase_negotiations()))');

--------------------------------------------------------------------------------------------------------
-- A deal has one assignee: whoever is assigned the lead or the purchase has everything that hangs on it.

create function app_private.tg__assignee_of_deal() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  deal_table text;
begin
  -- tg_argv[0]: the column by which the others refer to this record.
  for deal_table in
    select t.table_name from app_private.deal_tables t
    where exists (select from pg_attribute a
      where a.attrelid = format('app_public.%I', t.table_name)::regclass and a.attname = tg_argv[0] and not a.attisdropped)
      and not (t.table_name = 'reservations' and tg_argv[0] = 'buyer_id') -- there it is the user
    order by t.table_name
  loop
    execute format('update app_public.%I set assignee_id = $1 where %I = $2 and assignee_id is distinct from $1 and deleted_at is null', deal_table, tg_argv[0])
      using new.assignee_id, new.id;
  end loop;
  if tg_table_name = 'buyers' then
    update app_public.leads l set assignee_id = new.assignee_id
      where l.id = (to_jsonb(new) ->> 'lead_id')::uuid and l.assignee_id is distinct from new.assignee_id and l.deleted_at is null;
  end if;
  return null;
end $$;
comment on function app_private.tg__assignee_of_deal() is 'Hands what belongs to a lead or purchase over to its new assignee.';
create trigger _400_assignee after update of assignee_id on app_public.leads for each row
  when (old.assignee_id is distinct from new.assignee_id) execute function app_private.tg__assignee_of_deal('lead_id');
create trigger _400_assignee after update of assignee_id on app_public.buyers for each row
  when (old.assignee_id is distinct from new.assignee_id) execute function app_private.tg__assignee_of_deal('buyer_id');

--------------------------------------------------------------------------------------------------------
-- The status of a lead follows what happens, and goes back to what it was when that ends.

alter table app_public.leads add column status_before_deal app_public.lead_status;
comment on column app_public.leads.status_before_deal is E'@secret\n@behavior -*\n\nThe status before the reservation or negotiation that it has now.';

create function app_private.follow_deals(lead_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lead app_public.leads;
  wanted text;
  before text := coalesce(current_setting('plat.service', true), '');
begin
  select * into lead from app_public.leads l where l.id = follow_deals.lead_id for no key update;
  if lead.id is null or lead.status in ('CONVERTED', 'LOST', 'UNQUALIFIED') then
    return;
  end if;
  wanted := case
    when exists (select from app_public.reservations r where r.lead_id = lead.id and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null) then 'RESERVED'
    when exists (select from app_public.negotiations n where n.lead_id = lead.id and n.status = 'ACTIVE' and n.deleted_at is null) then 'NEGOTIATING'
    else coalesce(lead.status_before_deal, lead.status) end;
  if wanted = lead.status then
    return;
  end if;
  perform set_config('plat.service', 'on', true);
  update app_public.leads l set status = wanted,
      status_before_deal = case when wanted in ('RESERVED', 'NEGOTIATING') then
        coalesce(l.status_before_deal, case when l.status not in ('RESERVED', 'NEGOTIATING') then l.status end) end
    where l.id = lead.id;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.follow_deals(uuid) is
  'Gives a lead the status that its reservations and negotiations make, or the earlier one back when the last of them ended.';

create function app_private.lock_inventory(unit_id uuid, lot_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from app_public.lots l where l.id = coalesce(lock_inventory.lot_id, (select u.lot_id from app_public.units u where u.id = lock_inventory.unit_id))
    and (lock_inventory.lot_id is not null or not l.multi_unit) for no key update;
  perform from app_public.units u where u.id = lock_inventory.unit_id for no key update;
end $$;
comment on function app_private.lock_inventory(uuid, uuid) is
  'Locks what a deal is about before anything else of it. The order of locks is the same everywhere: lot, unit, claim, reservation, negotiation, offer, purchase, lead.';

comment on table app_public.buyers is 'A purchase, and who buys.';
comment on table app_public.reservations is 'A reservation of a unit or lot.';
comment on table app_public.negotiations is 'A negotiation about a unit.';
