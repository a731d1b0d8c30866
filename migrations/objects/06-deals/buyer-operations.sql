create function app_private.lock_deal(unit_id uuid, lot_id uuid, reservation_id uuid, buyer_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.lock_inventory(unit_id, lot_id);
  perform from app_hidden.claims c where c.released_at is null and c.subject_id in (reservation_id, buyer_id)
    order by c.id for update;
  perform from app_public.reservations r where r.id = lock_deal.reservation_id or r.purchase_id = lock_deal.buyer_id
    order by r.id for no key update;
  perform from app_public.negotiations n where n.buyer_id = lock_deal.buyer_id
    or n.reservation_id = lock_deal.reservation_id order by n.id for no key update;
end $$;
comment on function app_private.lock_deal(uuid, uuid, uuid, uuid) is
  'Locks the records of a reservation or purchase, in the order that is the same everywhere: lot, unit, claim, '
  'reservation, negotiation.';

create function app_private.lock_purchase(id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.lock_deal(b.unit_id, b.lot_id, b.reservation_id, b.id) from app_public.buyers b
    where b.id = lock_purchase.id;
  perform from app_public.buyers b where b.id = lock_purchase.id for no key update;
end $$;
comment on function app_private.lock_purchase(uuid) is
  'Locks a purchase and, before it, its records.';

create function app_private.rescission_end(signed_on date, days int, time_zone text) returns timestamptz
language sql immutable as $$
  select case when days > 0 then (signed_on + 1 + days)::timestamp at time zone time_zone end
$$;
comment on function app_private.rescission_end(date, int, text) is
  'End of a rescission period: the given number of days after the midnight that follows the day of signing, in the '
  'time zone; null without days.';

create function app_private.move_inventory(purchase app_public.buyers) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  ladder constant text[] := '{PENDING,SOLD,CLOSED}';
  claim app_hidden.claims := app_private.active_claim(purchase.id);
  present text;
  wanted text;
  step text;
  project app_public.projects;
begin
  if claim.id is null then
    return;
  end if;
  present := coalesce((select u.status from app_public.units u where u.id = claim.unit_id),
    (select l.status from app_public.lots l where l.id = claim.lot_id));
  select * into project from app_public.projects p where p.id = purchase.project_id;
  wanted := case
    when purchase.status = 'CLOSED' then 'CLOSED'
    when purchase.status in ('FIRM', 'CLEAR_TO_CLOSE') then 'SOLD'
    when purchase.status in ('IN_REVIEW', 'CONDITIONAL')
      and project.sold_trigger = 'SIGNED' then 'SOLD'
    else 'PENDING' end;
  foreach step in array ladder loop
    if array_position(ladder, step) > coalesce(array_position(ladder, present), 0)
      and array_position(ladder, step) <= array_position(ladder, wanted) then
      perform app_private.set_inventory(array[claim], step, sold_price => purchase.price,
        -- An imported sale keeps its days: it was not sold today.
        at => case when app_hidden.setting('channel') = 'IMPORT' then least(now(), (case
          when step = 'CLOSED' then purchase.closing_date
          else coalesce(purchase.purchase_firm_date, purchase.purchase_date) end)::timestamp
            at time zone project.time_zone) end);
    end if;
  end loop;
  update app_public.units u set sold_price = purchase.price where u.id = claim.unit_id
    and u.sold_price <> purchase.price;
end $$;
comment on function app_private.move_inventory(app_public.buyers) is
  'Moves the home of a purchase to the status that follows from the purchase, transition by transition, and sets '
  'its sale price.';

create function app_private.tg_members__unassign_deals() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  deal_table text;
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return null;
  end if;
  for deal_table in select t.table_name from app_private.deal_tables t order by t.table_name loop
    execute format('update app_public.%I d set assignee_id = null where d.organization_id = $1 and d.assignee_id = $2
      and d.deleted_at is null
      and not exists (select from app_public.projects p where p.id = d.project_id and p.archived_at is not null)',
        deal_table)
      using old.organization_id, old.user_id;
  end loop;
  return null;
end $$;
comment on function app_private.tg_members__unassign_deals() is
  'Deals that a former member worked on have nobody assigned; those of leads follow their leads.';

create function app_private.end_rescission(buyer_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform app_private.lock_purchase(buyer_id);
  perform set_config('plat.service', 'on', true);
  -- Deadlines also expire in archived projects.
  perform set_config('plat.clock', 'on', true);
  update app_public.buyers b set
      status = case when b.financing_contingency then 'CONDITIONAL' else 'FIRM' end,
      purchase_firm_date = case when b.financing_contingency then b.purchase_firm_date
        else (b.rescission_ends_at at time zone p.time_zone)::date end
    from app_public.projects p
    where b.id = end_rescission.buyer_id and p.id = b.project_id and b.deleted_at is null and b.status = 'IN_REVIEW'
      and b.rescission_ends_at <= clock_timestamp();
  perform set_config('plat.clock', '', true);
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.end_rescission(uuid) is
  'Ends the rescission period of a purchase when its time has come.';

create function app_private.fallout_reason_for(project_id uuid, applies_to text, wanted_id uuid) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  result uuid;
begin
  select r.id into result from app_public.fallout_reasons r
    where r.project_id = fallout_reason_for.project_id and r.deleted_at is null
      and fallout_reason_for.applies_to = any (r.applies_to::text[])
    order by r.id = wanted_id desc nulls last, r.category = 'OTHER' desc, r.active desc, r.sequence, r.id limit 1;
  if result is null then
    insert into app_public.fallout_reasons (project_id, name, applies_to)
      values (fallout_reason_for.project_id, case fallout_reason_for.applies_to when 'BUYER'
        then 'Other reasons for purchases' else 'Other reasons for leads' end, array[fallout_reason_for.applies_to])
      returning id into result;
  end if;
  return result;
end $$;
comment on function app_private.fallout_reason_for(uuid, text, uuid) is
  'A reason of the project for what the service ends: the wanted one where it applies, else the one for other reasons, '
  'or the first that applies.';

create function app_private.cancel_purchase(buyer_id uuid, reason text,
  fallout_reason_id uuid default null) returns void
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
  fallout_id := app_private.fallout_reason_for(purchase.project_id, 'BUYER', fallout_id);
  perform set_config('plat.service', 'on', true);
  update app_public.buyers b set status = 'CANCELLED',
    cancellation_reason = coalesce(cancel_purchase.reason, b.cancellation_reason), fallout_reason_id = fallout_id
    where b.id = purchase.id;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.cancel_purchase(uuid, text, uuid) is
  'Cancels a purchase as the service: releases its claim, opens its lead again, cancels its unpaid deposits. Nothing '
  'happens to one that is cancelled already; a closed one is refused.';

create function app_private.set_agent_of_buyer(buyer_id uuid, agent app_public.agent_input) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.buyers b set agent_id = case when agent is distinct from null
    then app_private.agent_for(b.organization_id, agent,
      coalesce((select (p.address).country from app_public.projects p where p.id = b.project_id), 'US')) end
    where b.id = set_agent_of_buyer.buyer_id
      and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.write');
end $$;
comment on function app_private.set_agent_of_buyer(uuid, app_public.agent_input) is
  'Sets or clears the agent of a purchase that the viewer may update.';
grant execute on function app_private.set_agent_of_buyer to plat_user;

create function app_public.create_buyer(input jsonb,
  agent app_public.agent_input default null) returns app_public.buyers
language plpgsql volatile as $$
declare
  buyer app_public.buyers;
begin
  perform app_hidden.require_viewer();
  buyer := app_hidden.create_record(null::app_public.buyers, input);
  if agent is distinct from null then
    perform app_private.set_agent_of_buyer(buyer.id, agent);
    select b.* into buyer from app_hidden.masked_buyers b where b.id = buyer.id;
  end if;
  return buyer;
end $$;
comment on function app_public.create_buyer is
  E'@arg agent The agent who represents the buyer. Default: the agent of the lead.\n\n'
  'Creates a purchase and claims its unit or lot, taking over the lead''s reservation. The default status is '
  'DRAFT. Omitted personal details are copied from the lead.';

create function app_private.correct_as_buyer(input jsonb) returns app_public.buyers
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  corrected constant text[] := '{email,phone,address,preferred_language}';
  buyer app_public.buyers;
  other text;
  before text := coalesce(current_setting('plat.actor_type', true), '');
begin
  select b.* into buyer from app_public.buyers b where b.id = (input ->> 'id')::uuid
    and b.id = any (array(select app_hidden.viewer_purchases()));
  select k into other from jsonb_object_keys(input - '{id,expected_version}'::text[] - corrected) k order by k limit 1;
  if buyer.id is null or other is not null then
    perform app_hidden.fail('FORBIDDEN',
      'Buyers can only change their own email, phone, address and preferredLanguage; the sales team changes '
      'everything else.',
      jsonb_strip_nulls(jsonb_build_object('permission', 'buyer.write', 'field', app_hidden.camel(other))));
  elsif buyer.status = 'CANCELLED' then
    perform app_hidden.fail('CONFLICT', 'This purchase is cancelled.', '{"field": "id"}');
  elsif input ? 'email' and not app_private.viewer_owns_address(coalesce(btrim(input ->> 'email'), '')) then
    -- Mails about the purchase go there.
    perform app_hidden.fail('BAD_USER_INPUT',
      'Use the confirmed email address of your account; to use another one, change the address of your account first.',
      '{"field": "email"}');
  end if;
  perform set_config('plat.actor_type', 'BUYER', true);
  buyer := app_hidden.update_record(null::app_public.buyers, input);
  perform set_config('plat.actor_type', before, true);
  return app_hidden.masked(buyer);
end $$;
comment on function app_private.correct_as_buyer(jsonb) is
  'Updates the viewer''s contact details as a buyer; any other field of the purchase is refused. buyer.updated '
  'contains the changes, with the buyer as the actor.';
grant execute on function app_private.correct_as_buyer to plat_user;

create function app_public.update_buyer(input jsonb,
  agent app_public.agent_input default null) returns app_public.buyers
language plpgsql volatile as $$
declare
  buyer app_public.buyers;
  gives_back boolean := false;
begin
  perform app_hidden.require_viewer();
  select b.* into buyer from app_hidden.masked_buyers b where b.id = app_hidden.record_id('buyers', input ->> 'id');
  if buyer.user_id = app_public.current_user_id()
    and not app_hidden.deal_can(buyer.organization_id, buyer.project_id, buyer.assignee_id, 'buyer.write') then
    return app_private.correct_as_buyer(input || jsonb_build_object('id', buyer.id));
  end if;
  if input ?| '{status,price,assignee_id}' then
    perform app_hidden.lock_seen('app_public.buyers', b.id) from app_public.buyers b
      where b.id = app_hidden.record_id('buyers', input ->> 'id');
  end if;
  if input ? 'assignee_id' then
    select b.* into buyer from app_hidden.masked_buyers b where b.id = app_hidden.record_id('buyers', input ->> 'id');
    gives_back := app_private.gives_back(buyer.project_id, buyer.assignee_id, 'buyer.write',
      nullif(btrim(input ->> 'assignee_id'), ''));
  end if;
  buyer := app_hidden.update_record(null::app_public.buyers, case when gives_back then input - 'assignee_id' else input
    end);
  if input ? 'agent' then
    perform app_private.set_agent_of_buyer(buyer.id, agent);
    select b.* into buyer from app_hidden.masked_buyers b where b.id = buyer.id;
  end if;
  if gives_back then
    buyer := app_private.give_back_buyer(buyer.id);
  end if;
  return buyer;
end $$;
comment on function app_public.update_buyer is
  E'@arg agent The agent who represents the buyer; null for none.\n\n'
  'Updates a purchase. Its status also changes that of the unit or lot; CANCELLED requires a fallout reason and '
  'makes it AVAILABLE again. Viewers who only see their own deals return one with the `assigneeId` null. Buyers '
  'who accepted an invitation can correct their own email (to that of their account), phone, address and '
  'preferredLanguage.';
grant execute on function app_public.create_buyer, app_public.update_buyer to plat_user, plat_anonymous;

create function app_hidden.matching_buyers(query text) returns setof uuid
language sql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
  select app_private.find_texts('BUYER', 'buyer.read', query, 'r.search_text')
$$;
comment on function app_hidden.matching_buyers(text) is
  'Purchases that the viewer sees as a seller and that contain every word.';
