-- Buyers: purchases. A purchase of a unit or lot has the claim on it from the first draft on, and determines its
-- status:
--
--   DRAFT, OUT_FOR_SIGNATURE    the home is PENDING
--   signed, or firm             SOLD, depending on soldTrigger of the project: from IN_REVIEW on, or from FIRM on
--   CLOSED                      CLOSED
--   CANCELLED                   AVAILABLE at its list price; the lead is open again if this was its last purchase
--
-- The rescission period begins at the midnight after the signing, in the project's time zone. When it expires, the
-- purchase becomes CONDITIONAL with a financing contingency, else FIRM. If the project has no rescission days, users
-- make these transitions. A purchase can be created with any status but CANCELLED, because purchases made elsewhere are
-- entered late. Only drafts can be deleted; everything else is cancelled, with a reason.

select app_private.make_deal_table('buyers', 'buyer.read', 'buyer.write', 'buyers', 'Purchases, newest first',
  own => 'id = any (array(select app_hidden.viewer_purchases()))');
select app_private.make_project_record('buyers', 'buyer', 'buyer.write');
select app_private.make_state_machine('buyers', 'buyer',
  steps => (
    with steps (from_state, to_state, how) as (
      values ('DRAFT', 'OUT_FOR_SIGNATURE', 'hand'), ('OUT_FOR_SIGNATURE', 'IN_REVIEW', 'hand'),
        ('IN_REVIEW', 'CONDITIONAL', 'hand'),
        ('IN_REVIEW', 'FIRM', 'service'), ('CONDITIONAL', 'FIRM', 'hand'), ('FIRM', 'CLEAR_TO_CLOSE', 'hand'),
        ('CLEAR_TO_CLOSE', 'CLOSED', 'hand')
      union all
      select state, 'CANCELLED', 'hand'
        from unnest(array['DRAFT', 'OUT_FOR_SIGNATURE', 'IN_REVIEW', 'CONDITIONAL', 'FIRM', 'CLEAR_TO_CLOSE']) state
    )
    select array_agg(array[from_state, to_state, how]) from steps),
  initial => array['DRAFT', 'OUT_FOR_SIGNATURE', 'IN_REVIEW', 'CONDITIONAL', 'FIRM', 'CLEAR_TO_CLOSE', 'CLOSED'],
  requirements => array[['CANCELLED', 'fallout_reason_id', 'Cancelling a purchase requires a fallout reason.']]);
select app_private.make_deadline('rescission', 'app_public.buyers', 'rescission_ends_at', $$new.status = 'IN_REVIEW'
  and new.deleted_at is null$$,
  '{status,deleted_at}', 'app_private.end_rescission(uuid)');
select app_private.make_searchable('buyers', 'BUYER', 'concat_ws('' '', r.first_name, r.last_name, r.legal_name)',
  'concat_ws('' '', r.email, r.phone, r.company)', assignee => 'r.assignee_id');

grant select on app_public.buyers to plat_user, plat_anonymous;
grant insert (project_id, unit_id, lot_id, lead_id, reservation_id, first_name, last_name, legal_name, email, phone,
  dob, company, preferred_language, address, status, assignee_id, occupancy_type, occupancy_type_other, financing_type,
  financing_contingency, amount_financed, price, purchase_date, estimated_closing_date, closing_date, metadata) on
  app_public.buyers to plat_user;
grant update (status, first_name, last_name, legal_name, email, phone, dob, company, preferred_language, address,
  assignee_id, occupancy_type, occupancy_type_other, financing_type, financing_contingency, amount_financed, price,
  purchase_date, estimated_closing_date, closing_date, fallout_reason_id, cancellation_reason, metadata), delete on
  app_public.buyers to plat_user;

comment on index app_public.buyers_unit is 'There is already a purchase of this unit.';
comment on index app_public.buyers_lot is 'There is already a purchase of this lot.';
comment on index app_public.buyers_lead_without_home is 'This lead already has a purchase without a home.';

comment on table app_public.buyers is $$
@portfolio buyer.read
@ownFinder viewer_purchases
@defaultOrder inserted_at desc
@filterLists status

A purchase and the person or company who buys.$$;
comment on column app_public.buyers.dob is E'@personal contract\n@masked\n@secret\n\nDate of birth.';
comment on column app_public.buyers.search_text is E'@secret\n@behavior -*\n\nFor searching.';
comment on column app_public.buyers.project_id is E'@filter projectIds\n\nThe project that it belongs to.';
comment on column app_public.buyers.lead_id is 'The lead that became the buyer.';
comment on column app_public.buyers.user_id is 'User account of the buyer; set when the buyer accepts the invitation.';
comment on column app_public.buyers.unit_id is E'@filter unitIds\n\nThe purchased unit.';
comment on column app_public.buyers.lot_id is 'The lot, if the purchase is for land without a home.';
comment on column app_public.buyers.reservation_id is 'The reservation that became the purchase.';
comment on column app_public.buyers.assignee_id is E'@filter assigneeIds\n\nThe team member assigned to the purchase.';
comment on column app_public.buyers.agent_id is 'The agent who represents the buyer.';
comment on column app_public.buyers.first_name is E'@personal contract\n\nGiven name, such as Ada.';
comment on column app_public.buyers.last_name is E'@personal contract\n\nFamily name.';
comment on column app_public.buyers.legal_name is E'@personal contract\n\nLegal name, as on the contract.';
comment on column app_public.buyers.email is E'@personal\n\nEmail address; invitations to the service are sent there.';
comment on column app_public.buyers.phone is E'@personal\n\nPhone number in E.164, such as +14165550123.';
comment on column app_public.buyers.company is E'@personal contract\n\nCompany that the person works or buys for.';
comment on column app_public.buyers.preferred_language is 'Preferred language of emails, such as fr.';
comment on column app_public.buyers.address is E'@personal contract\n\nPostal address.';
comment on column app_public.buyers.status is E'@filter\n\nStage of the purchase, from draft to closing.';
comment on column app_public.buyers.status_changed_at is 'When the status last changed.';
comment on column app_public.buyers.source is E'@impersonal\n\nCode of the source, such as WEB_DIRECT.';
comment on column app_public.buyers.source_id is
  'The `LeadSource` through which the person found the project, such as a portal.';
comment on column app_public.buyers.occupancy_type is 'Intended use of the home.';
comment on column app_public.buyers.occupancy_type_other is
  E'@personal\n\nIntended use in words, if `occupancyType` is OTHER.';
comment on column app_public.buyers.financing_type is 'How the buyer finances the purchase.';
comment on column app_public.buyers.financing_contingency is
  'Whether the purchase is conditional on financing. If so, it becomes CONDITIONAL when the rescission period ends.';
comment on column app_public.buyers.amount_financed is 'Part of the price that is financed by a loan.';
comment on column app_public.buyers.price is 'Purchase price.';
comment on column app_public.buyers.currency is 'Currency of its amounts: the one of the project.';
comment on column app_public.buyers.contract_sent_at is 'When the contract was sent to the signers; null until then.';
comment on column app_public.buyers.purchase_date is E'@filter\n\nDate on which all parties had signed the contract.';
comment on column app_public.buyers.rescission_ends_at is
  'End of the rescission period, in which the buyer may withdraw: `rescissionDays` of the project, counted from '
  'midnight after `purchaseDate` in its time zone.';
comment on column app_public.buyers.purchase_firm_date is 'Date on which the purchase became firm: all conditions met.';
comment on column app_public.buyers.estimated_closing_date is 'Expected closing date.';
comment on column app_public.buyers.closing_date is E'@filter\n\nDate on which the purchase closed.';
comment on column app_public.buyers.cancellation_date is
  'Day on which the purchase was cancelled; null otherwise.';
comment on column app_public.buyers.cancellation_reason is
  E'@personal\n@masked\n\nReason for the cancellation, in words.';
comment on column app_public.buyers.fallout_reason_id is
  'Fallout reason of the cancellation; required for the status CANCELLED.';
comment on column app_public.buyers.metadata is
  E'@personal\n@masked\n\nArbitrary JSON for the organization''s own programs; not interpreted.';
comment on column app_public.buyers.updated_at is E'@filter\n\nWhen the record was last changed.';
comment on column app_public.buyers.invited_at is 'When the buyer was last invited to the service; null if never.';
comment on constraint buyers_one_thing on app_public.buyers is 'Specify the unit or the lot, not both.';
comment on constraint buyers_closing_order on app_public.buyers is 'A purchase must close after it was signed.';
comment on constraint buyers_reason on app_public.buyers is 'Cancelling a purchase requires a fallout reason.';
comment on constraint buyers_lead_id_fkey on app_public.buyers is
  E'@fieldName lead\n'
  '@foreignFieldName purchases\n'
  '@backwardDescription Purchases of the lead, latest first, including cancelled ones.\n\n'
  'The lead that became the buyer.';
comment on constraint buyers_user_id_fkey on app_public.buyers is
  E'@fieldName user\n'
  '@foreignFieldName purchases\n'
  '@backwardDescription Purchases of the user that the viewer can see.\n\n'
  'User account of the buyer; set when the buyer accepts the invitation.';
comment on constraint buyers_unit_id_fkey on app_public.buyers is
  E'@fieldName unit\n@backwardBehavior -*\n\nThe purchased unit.';
comment on constraint buyers_lot_id_fkey on app_public.buyers is
  E'@fieldName lot\n@backwardBehavior -*\n\nThe lot, if the purchase is for land without a home.';
comment on constraint buyers_reservation_id_fkey on app_public.buyers is
  E'@fieldName reservation\n@backwardBehavior -*\n\nThe reservation that became the purchase.';
comment on constraint buyers_assignee_id_fkey on app_public.buyers is
  E'@fieldName assignee\n@backwardBehavior -*\n\nThe team member assigned to the purchase.';
comment on constraint buyers_agent_id_fkey on app_public.buyers is
  E'@fieldName agent\n@backwardBehavior -*\n\nThe agent who represents the buyer.';
comment on constraint buyers_source_id_fkey on app_public.buyers is
  E'@fieldName leadSource\n@backwardBehavior -*\n\nThe lead source of the project.';
comment on constraint buyers_fallout_reason_id_fkey on app_public.buyers is
  E'@fieldName falloutReason\n@backwardBehavior -*\n\nFallout reason of the cancellation.';

create trigger _400_assignee after update of assignee_id on app_public.buyers for each row
  when (old.assignee_id is distinct from new.assignee_id) execute function app_private.tg__assignee_of_deal('buyer_id');

create trigger _410_assignee_of_reservation after update of assignee_id on app_public.buyers for each row
  when (old.assignee_id is distinct from new.assignee_id)
    execute function app_private.tg__assignee_of_deal('purchase_id');

-- Cancelling the purchase reverts the conversion of a lead.
insert into app_hidden.transitions (subject, from_state, to_state, by_service)
  select 'lead', 'CONVERTED', unnest(array['NEW', 'CONTACTED', 'COLD', 'WARM', 'HOT', 'LOST']), true;

-- Records of a lead are listed with each of its purchases; money belongs to one of them.
create function app_hidden.purchase_of_lead(lead_id uuid, reservation_id uuid) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select b.id from app_public.buyers b where b.lead_id = $1 and b.deleted_at is null
    -- Records of an open reservation, or of one that became another purchase, do not belong to this purchase.
    and (b.reservation_id is not distinct from $2 or not exists (select from app_public.reservations r where r.id = $2
      and r.status in ('PENDING', 'CONFIRMED', 'CONVERTED')))
  order by ($2 is not null and b.reservation_id is not distinct from $2) desc, b.status = 'CANCELLED', b.id limit 1
$$;
comment on function app_hidden.purchase_of_lead(uuid, uuid) is
  E'@withoutViewer Of ids that the caller knows it gives the id of a purchase, which says nothing about it.\n\n'
  'The purchase that a deposit or charge of a lead counts for: the one of the reservation, which as long as that is '
  'open is none; else the first in force, else the first.';
grant execute on function app_hidden.purchase_of_lead to plat_user, plat_anonymous;

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
  -- Referenced rows are deleted first.
  if tg_op = 'UPDATE' and app_private.is_removing() then
    return new;
  end if;
  select p.currency, p.time_zone, p.rescission_days, coalesce((p.address).country, 'US') as country into project
    from app_public.projects p where p.id = new.project_id;
  today := (now() at time zone project.time_zone)::date;

  if is_new then
    new.currency := project.currency;
    if new.reservation_id is not null then
      select * into reservation from app_public.reservations r where r.id = new.reservation_id
        and r.project_id = new.project_id and r.deleted_at is null;
    elsif new.lead_id is not null and num_nonnulls(new.unit_id, new.lot_id) = 1 then
      -- If its lead has reserved the home, the purchase refers to that reservation.
      select * into reservation from app_public.reservations r
        where r.lead_id = new.lead_id and r.project_id = new.project_id and r.deleted_at is null
          and r.status in ('PENDING', 'CONFIRMED')
          and (r.unit_id = new.unit_id or r.lot_id = new.lot_id) order by r.id limit 1;
    end if;
    if new.reservation_id is not null and reservation.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such reservation in this project.',
        '{"field": "reservationId"}');
    end if;
    if reservation.id is not null then
      if new.unit_id <> reservation.unit_id or new.lot_id <> reservation.lot_id
        or num_nonnulls(coalesce(new.unit_id, reservation.unit_id), coalesce(new.lot_id, reservation.lot_id)) > 1 then
        perform app_hidden.fail('BAD_USER_INPUT', 'The reservation is for another unit or lot.',
          jsonb_build_object('field', case when new.unit_id is not null then 'unitId' else 'lotId' end));
      elsif new.lead_id <> reservation.lead_id then
        perform app_hidden.fail('BAD_USER_INPUT', 'The reservation belongs to another lead.', '{"field": "leadId"}');
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
      perform app_hidden.fail('BAD_USER_INPUT', 'Specify the unit or the lot, not both.', '{"field": "lotId"}');
    elsif new.unit_id is not null and not exists (
      select from app_public.units u where u.id = new.unit_id and u.project_id = new.project_id
        and u.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such unit in this project.', '{"field": "unitId"}');
    elsif new.lot_id is not null and not exists (
      select from app_public.lots l where l.id = new.lot_id and l.project_id = new.project_id and l.deleted_at is null)
        then
      perform app_hidden.fail('NOT_FOUND', 'There is no such lot in this project.', '{"field": "lotId"}');
    end if;
    if new.lead_id is not null then
      select * into lead from app_public.leads l where l.id = new.lead_id and l.project_id = new.project_id
        and l.deleted_at is null;
      if lead.id is null then
        perform app_hidden.fail('NOT_FOUND', 'There is no such lead in this project.', '{"field": "leadId"}');
      end if;
      if num_nonnulls(new.first_name, new.last_name) = 0 then
        -- A name that cannot be taken apart stays whole.
        select coalesce(lead.first_name, n.given, case when coalesce(lead.last_name, n.family) is null
            then lead.name end), coalesce(lead.last_name, n.family) into new.first_name, new.last_name
          from app_hidden.split_name(lead.name) n;
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
    -- Viewers who only see own deals keep the purchases that they create.
    if new.assignee_id is null and app_public.current_user_id() is not null
      and not coalesce(app_hidden.is_service(), false) then
      -- PERF: as for leads.
      if new.organization_id <> all (app_hidden.viewer_organizations('buyer.write')) then
        if new.project_id = any ((select app_hidden.viewer_own_projects('buyer.write'))::uuid[]) then
          new.assignee_id := app_public.current_user_id();
        end if;
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
    perform app_hidden.fail('BAD_USER_INPUT', 'The date of birth cannot be in the future.', '{"field": "dob"}');
  end if;
  if new.assignee_id is not null and (is_new or new.assignee_id is distinct from old.assignee_id)
    and not app_private.sells_in(new.assignee_id, new.project_id, locks => true) then
    perform app_hidden.fail('BAD_USER_INPUT',
      'A purchase can only be assigned to a member of an organization that sells in its project.',
        '{"field": "assigneeId"}');
  end if;
  if new.fallout_reason_id is not null and (is_new or new.fallout_reason_id is distinct from old.fallout_reason_id) then
    select 'BUYER' = any (r.applies_to::text[]) into applies from app_public.fallout_reasons r
      where r.id = new.fallout_reason_id and r.project_id = new.project_id and r.deleted_at is null;
    if applies is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such fallout reason in this project.',
        '{"field": "falloutReasonId"}');
    elsif not applies then
      perform app_hidden.fail('BAD_USER_INPUT', 'This fallout reason does not apply to purchases.',
        '{"field": "falloutReasonId"}');
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
      new.purchase_firm_date := coalesce(new.purchase_firm_date,
        -- Imported purchases became buyers before today.
        case when app_hidden.setting('channel') = 'IMPORT' then new.purchase_date end,
        greatest(today, new.purchase_date));
    end if;
    if new.status = 'CLOSED' then
      new.closing_date := coalesce(new.closing_date, greatest(today, new.purchase_date));
    end if;
  elsif new.status = any (signed) and new.purchase_date is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'purchaseDate may not be null: the purchase is signed.',
      '{"field": "purchaseDate"}');
  elsif new.status = 'CLOSED' and new.closing_date is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'closingDate may not be null: the purchase is closed.',
      '{"field": "closingDate"}');
  end if;
  if new.status = 'IN_REVIEW' and (is_new or row(old.status, old.purchase_date) is distinct
    from row(new.status, new.purchase_date)) then
    new.rescission_ends_at := app_private.rescission_end(new.purchase_date, project.rescission_days, project.time_zone);
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.buyers for each row
  execute function app_private.tg_buyers__prepare();

create function app_private.tg_buyers__claim() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  claim app_hidden.claims;
  reservation app_public.reservations;
  existing_id uuid;
begin
  -- Viewers whom the policy will refuse learn nothing about claims.
  if app_public.current_user_id() is not null and not coalesce(app_hidden.is_service(), false)
    and not app_hidden.project_can(new.project_id, new.organization_id, 'buyer.write') then
    return new;
  end if;
  perform app_private.lock_deal(new.unit_id, new.lot_id, new.reservation_id, null);
  -- Several homes of one lead are several purchases; the same home is the same purchase.
  -- PERF: by the index of leads alone. In a table that has just grown, one of all purchases looks as good.
  select b.id into existing_id from (select x.* from app_public.buyers x where x.lead_id = new.lead_id offset 0) b
    where b.status <> 'CANCELLED' and b.deleted_at is null and b.unit_id is not distinct from new.unit_id
    and b.lot_id is not distinct from new.lot_id;
  if found then
    perform app_hidden.fail('CONFLICT', case when num_nonnulls(new.unit_id, new.lot_id) = 0
        then 'This lead already has a purchase without a home; specify the unit or lot of another one.'
        else 'This lead is already the buyer of this home.' end,
      jsonb_build_object('field', 'leadId', 'existingId', existing_id));
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
  -- The claim of the purchase's reservation, of an accepted negotiation of its lead, or of a hold for it is taken
  -- over.
  perform app_private.take_over_hold(new.unit_id, new.lot_id, new.lead_id, 'buyer', new.id);
  select c.* into claim from app_hidden.claims c
    where c.released_at is null and (c.unit_id = new.unit_id
      or (new.unit_id is null and c.unit_id is null and c.lot_id = new.lot_id))
      and not app_hidden.claim_is_over(c)
      and (c.subject_id = new.reservation_id or exists (
        select from app_public.negotiations n where n.id = c.subject_id and n.lead_id = new.lead_id
          and n.status = 'ACCEPTED' and n.deleted_at is null));
  if found then
    update app_hidden.claims c set subject_type = 'buyer', subject_id = new.id where c.id = claim.id;
  end if;
  perform app_private.take_claim(new.unit_id, new.lot_id, 'PURCHASE', 'buyer', new.id);
  return new;
end $$;
comment on function app_private.tg_buyers__claim() is
  'Takes the claim on the unit or lot before the purchase is inserted, so that the second of two concurrent calls '
  'gets the reason.';
create trigger _400_claim before insert on app_public.buyers for each row
  execute function app_private.tg_buyers__claim();

create function app_private.reopen_lead(purchase app_public.buyers) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lead app_public.leads;
  is_elsewhere boolean;
begin
  select * into lead from app_public.leads l where l.id = purchase.lead_id and l.status = 'CONVERTED'
    and l.deleted_at is null for no key update;
  if lead.id is null or exists (select from app_public.buyers b where b.lead_id = lead.id and b.id <> purchase.id
    and b.status <> 'CANCELLED' and b.deleted_at is null) then
    return;
  end if;
  is_elsewhere := exists (select from app_public.leads l where l.project_id = lead.project_id and l.email = lead.email
    and l.id <> lead.id and l.deleted_at is null and l.status not in ('LOST', 'UNQUALIFIED', 'CONVERTED'));
  if is_elsewhere and exists (select from app_public.reservations r where r.lead_id = lead.id
    and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null) then
    perform app_hidden.fail('CONFLICT', 'The lead of this purchase has an open reservation, and the person has '
      'registered again: cancel that reservation first.', jsonb_build_object('field', 'id', 'existingId', lead.id));
  end if;
  update app_public.leads l set converted_at = null,
      status = case when is_elsewhere then 'LOST'
        else coalesce(nullif(nullif(l.status_before_deal, 'RESERVED'), 'NEGOTIATING'), 'HOT') end,
      fallout_reason_id = case when is_elsewhere then app_private.fallout_reason_for(l.project_id, 'LEAD',
        purchase.fallout_reason_id) else l.fallout_reason_id end
    where l.id = lead.id;
end $$;
comment on function app_private.reopen_lead(app_public.buyers) is
  'A lead whose last purchase is cancelled is open again; it is LOST if the person has registered again in the '
  'project since, because that lead is worked on now.';

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
    update app_public.reservations r set status = 'CONVERTED', purchase_id = new.id where r.id = new.reservation_id
      and r.status in ('PENDING', 'CONFIRMED');
    update app_public.leads l set assignee_id = new.assignee_id where l.id = new.lead_id and l.assignee_id is distinct
      from new.assignee_id;
    if new.status <> 'CLOSED' then
      perform app_private.copy_deposit_schedule(new.id);
    end if;
  elsif is_over and not (old.status = 'CANCELLED' or old.deleted_at is not null) then
    claim := app_private.active_claim(new.id);
    if claim.id is not null then
      perform app_private.release_claim(claim.id, 'CANCELLED');
    end if;
    perform app_private.end_negotiations(buyer_id => new.id,
      reason => coalesce(new.cancellation_reason, 'The purchase was cancelled.'));
    -- Cancels unpaid deposits; the state machine of deposits defines which.
    update app_public.deposits d set status = 'CANCELLED'
      where (d.buyer_id = new.id or (d.reservation_id = new.reservation_id and d.lead_id = new.lead_id))
      and d.deleted_at is null
      and exists (select from app_hidden.transitions t where t.subject = 'deposit' and t.from_state = d.status
        and t.to_state = 'CANCELLED');
    perform app_private.reopen_lead(new);
  end if;
  perform set_config('plat.service', before, true);
  if new.lead_id is not null then
    perform app_private.follow_deals(array[new.lead_id]);
  end if;
  return null;
end $$;
comment on function app_private.tg_buyers__effects() is
  'Effects of a purchase on the status of the home, the reservation, the lead and the deposits.';
create trigger _500_effects_first after insert on app_public.buyers for each row
  execute function app_private.tg_buyers__effects();
create trigger _500_effects after update on app_public.buyers for each row
  when (row(old.status, old.price, old.deleted_at) is distinct from row(new.status, new.price, new.deleted_at))
  execute function app_private.tg_buyers__effects();

create function app_private.tg_buyers__keep() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if old.status <> 'DRAFT' then
    perform app_hidden.fail('CONFLICT',
      'Only a draft can be deleted; cancel the purchase with updateBuyer and a fallout reason.', '{"field": "id"}');
  end if;
  return old;
end $$;
create trigger _300_keep before delete on app_public.buyers for each row execute function app_private.tg_buyers__keep();

create function app_public.buyers_filter_query(b app_public.buyers, value text) returns boolean
language sql stable as $$ select b.id = any (array(select app_hidden.matching_buyers(value))) $$;

create function app_hidden.name_of_buyer(first_name text, last_name text, legal_name text, company text, email text)
returns text
language sql immutable as $$
  select coalesce(nullif(concat_ws(' ', first_name, last_name), ''), legal_name, company, email, 'Unnamed buyer')
$$;
comment on function app_hidden.name_of_buyer(text, text, text, text, text) is
  'Display name of a buyer, from the known names.';

create function app_public.buyers_full_name(b app_public.buyers) returns text
language sql stable as $$
  select app_hidden.name_of_buyer(b.first_name, b.last_name, b.legal_name, b.company, b.email)
$$;

create function app_public.buyers_dob(b app_public.buyers) returns date
language sql stable as $$ select case when b.dob is not null
  and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.pii') then b.dob end $$;

create function app_public.buyers_metadata(b app_public.buyers) returns jsonb
language sql stable as $$
  select case when b.metadata is not null
    and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.read') then b.metadata end
$$;

create function app_public.buyers_cancellation_reason(b app_public.buyers) returns app_public.long_text
language sql stable as $$
  select case when b.cancellation_reason is not null and app_hidden.deal_can(b.organization_id, b.project_id,
    b.assignee_id, 'buyer.read') then b.cancellation_reason end
$$;

create function app_public.buyers_net_purchase_price(b app_public.buyers) returns app_public.money
language sql stable as $$ select b.price + app_private.options_total(b.unit_id, b.lead_id, b.id) $$;

-- The balance is visible with the purchase; the deposits require more.
create function app_private.paid_of_purchase(buyer_id uuid) returns numeric
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce((
    select sum(d.amount_paid - d.amount_refunded) from app_public.deposits d
    where (d.buyer_id = b.id
        or (d.lead_id = b.lead_id and b.id = app_hidden.purchase_of_lead(d.lead_id, d.reservation_id)))
      and d.status in ('PARTIALLY_PAID', 'PAID', 'RELEASED') and d.deleted_at is null), 0)
  from app_public.buyers b where b.id = $1
    and (app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.read')
      or b.id = any (array(select app_hidden.viewer_purchases())))
$$;
comment on function app_private.paid_of_purchase(uuid) is
  'The amount paid for the deposits of a purchase minus refunds; null if the viewer cannot see the purchase.';
grant execute on function app_private.paid_of_purchase to plat_user, plat_anonymous;

create function app_public.buyers_net_purchase_price_balance(b app_public.buyers) returns numeric
language sql stable as $$ select app_public.buyers_net_purchase_price(b) - app_private.paid_of_purchase(b.id) $$;

create function app_public.buyers_ppsf(b app_public.buyers) returns numeric
language sql stable as $$ select round(b.price / nullif(u.effective_sqft, 0), 2) from app_public.units u
  where u.id = b.unit_id $$;

create function app_public.buyers_allowed_transitions(b app_public.buyers) returns app_public.transition[]
language sql stable as $$
  select case when app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.write')
    then app_hidden.transitions_from('buyer',
      jsonb_build_object('status', b.status, 'fallout_reason_id', b.fallout_reason_id)) else '{}' end
$$;

create function app_public.buyers_documents(b app_public.buyers) returns setof app_public.reservation_documents
language sql stable rows 5 as $$
  select d.* from app_public.reservation_documents d where d.reservation_id = b.reservation_id and d.deleted_at is null
    order by d.id desc
$$;

grant execute on function app_public.buyers_filter_query, app_public.buyers_full_name, app_public.buyers_dob,
  app_public.buyers_metadata, app_public.buyers_cancellation_reason, app_public.buyers_net_purchase_price,
  app_public.buyers_net_purchase_price_balance, app_public.buyers_ppsf, app_public.buyers_allowed_transitions,
  app_public.buyers_documents, app_public.units_buyer, app_public.lots_buyer, app_public.leads_buyer to plat_user,
  plat_anonymous;
comment on function app_public.buyers_filter_query is
  E'@filter query\n@finder matching_buyers\n\nFull-text search in name, email address, phone number and company.';
comment on function app_public.buyers_full_name is
  E'@notNull\n\nFirst and last name; if unknown, the legal name, company or email address.';
comment on function app_public.buyers_dob is 'Date of birth; null without the permission buyer.pii.';
comment on function app_public.buyers_metadata is
  'Arbitrary JSON for the organization''s own programs; not interpreted; null without the permission buyer.read.';
comment on function app_public.buyers_cancellation_reason is
  'Reason for the cancellation, in words; null without the permission buyer.read.';
comment on function app_public.buyers_net_purchase_price is
  E'@notNull\n\n`price` plus the total of the personalization.';
comment on function app_public.buyers_net_purchase_price_balance(app_public.buyers) is
  E'@measures quantity\n@notNull\n\n`netPurchasePrice` less the deposits that were paid and not refunded.';
comment on function app_public.buyers_ppsf is E'@measures ratio\n\nPrice per square foot.';
comment on function app_public.buyers_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';
comment on function app_public.buyers_documents is
  E'@ordered\n\n'
  'Documents of the reservation that became the purchase, newest first; the buyer sees those with `visibleToBuyer`.';

create function app_private.tg_buyers__revoke_invites() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_hidden.buyer_invites i set status = 'REVOKED' where i.buyer_id = new.id and i.status = 'PENDING';
  delete from app_private.buyer_invite_tokens t using app_hidden.buyer_invites i where i.id = t.invite_id
    and i.buyer_id = new.id;
  return null;
end $$;
create trigger _520_revoke_invites after update of status, deleted_at on app_public.buyers for each row
  when (new.status = 'CANCELLED' or new.deleted_at is not null)
    execute function app_private.tg_buyers__revoke_invites();

-- The negotiations of a lead continue after its conversion, as those of the buyer.
create function app_private.tg_buyers__negotiations() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.negotiations n set buyer_id = new.id
    where n.lead_id = new.lead_id and n.unit_id = new.unit_id and n.buyer_id is null and n.status <> 'CANCELLED'
      and n.deleted_at is null;
  return null;
end $$;
create trigger _450_negotiations after insert on app_public.buyers for each row
  when (new.lead_id is not null and new.unit_id is not null) execute function app_private.tg_buyers__negotiations();

create function app_public.buyers_negotiations(b app_public.buyers) returns setof app_public.negotiations
language sql stable rows 2 as $$
  select n.* from app_hidden.masked_negotiations n
  where (n.buyer_id = b.id or (n.lead_id = b.lead_id and n.buyer_id is null and n.unit_id = b.unit_id))
    and n.deleted_at is null order by n.id desc
$$;
comment on function app_public.buyers_negotiations is
  'Negotiations of the buyer, newest first, including those before the purchase.';

create function app_public.buyers_accepted_offer(b app_public.buyers) returns setof app_public.offers
language sql stable rows 1 as $$
  select o.* from app_public.offers o
  where (o.buyer_id = b.id or o.lead_id = b.lead_id) and o.unit_id = b.unit_id and o.status = 'ACCEPTED'
    order by o.id desc limit 1
$$;
comment on function app_public.buyers_accepted_offer is
  'The accepted offer that led to the purchase; null if there was none.';

create function app_private.tg_buyers__deposit_dates() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.deposits d set due_at = app_private.deposit_due_date(d)
    where d.buyer_id = new.id and d.due_rule is not null and d.due_rule <> 'CONSTRUCTION_PHASE'
      and d.status in ('SCHEDULED', 'INVOICED') and d.deleted_at is null
      and d.due_at is distinct from app_private.deposit_due_date(d);
  perform set_config('plat.service', before, true);
  return null;
end $$;
create trigger _510_deposit_dates after update of purchase_date, purchase_firm_date, estimated_closing_date,
  closing_date on app_public.buyers for each row
  when ((old.purchase_date, old.purchase_firm_date, old.estimated_closing_date, old.closing_date)
    is distinct from (new.purchase_date, new.purchase_firm_date, new.estimated_closing_date, new.closing_date))
  execute function app_private.tg_buyers__deposit_dates();

create function app_public.buyers_personalization(b app_public.buyers) returns setof app_public.personalizations
language sql stable rows 1 as $$
  select p.* from app_public.personalizations p
  where p.unit_id = b.unit_id and (p.buyer_id = b.id or p.lead_id = b.lead_id)
    and p.status not in ('CANCELLED', 'SUPERSEDED')
  order by p.id desc limit 1
$$;
grant execute on function app_public.buyers_personalization to plat_user, plat_anonymous;
comment on function app_public.buyers_personalization is 'Latest personalization of the home.';

-- Other conditions that end executions.
create function app_private.tg_buyers__cancel_executions() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- An execution whose step is being processed ends after it: the engine checks the purchase before each step. So
  -- neither waits for the other.
  perform app_private.cancel_executions(array(
    select e.id from app_public.workflow_executions e where e.buyer_id = new.id
      and e.status in ('PENDING', 'RUNNING', 'PAUSED')
      order by e.id for no key update skip locked), 'The purchase was cancelled.');
  return null;
end $$;
create trigger _700_cancel_executions after update of status, deleted_at on app_public.buyers for each row
  when ((new.status = 'CANCELLED' and old.status <> 'CANCELLED')
    or (new.deleted_at is not null and old.deleted_at is null))
  execute function app_private.tg_buyers__cancel_executions();

create function app_public.buyers_charges(b app_public.buyers) returns setof app_public.processor_charges
language sql stable rows 5 as $$
  select c.* from app_hidden.masked_processor_charges c
  where c.id = any (array(select k.id from app_public.processor_charges k where k.buyer_id = b.id
    union select k.id from app_public.processor_charges k where k.lead_id = b.lead_id
      and b.id = app_hidden.purchase_of_lead(k.lead_id, k.reservation_id)
    union select k.id from app_public.processor_charges k where k.reservation_id = b.reservation_id))
  order by c.id desc
$$;
comment on function app_public.buyers_charges is
  E'@ordered\n\n'
  'Card charges for the purchase, its lead and its reservation, latest first. Without the permission finance.read, '
  'only the viewer''s own charges.';
