-- Deals: the tables that refer to each other (purchases, reservations, negotiations), who sees them, and what they have
-- in common: one assignee, and the status of the lead.
--
-- The reason for a cancelled deal is an internal note of the sales team; buyers only read what they entered themselves.
-- The seller of the deal, also of another organization for own leads, reads it.

-- Visibility. In addition to the sales team: buyers who accepted an invitation, for their own records.
create function app_hidden.viewer_purchases() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
begin
  if app_public.current_user_id() is null or app_hidden.setting('organization_id') is not null
    or not app_hidden.scopes_allow('purchase.own') then
    return;
  end if;
  return query select b.id from app_public.buyers b where b.user_id = app_public.current_user_id()
    and b.deleted_at is null;
end $$;
comment on function app_hidden.viewer_purchases() is
  'The purchases that the viewer makes: those whose invitation they accepted. A token with scopes needs purchase.own.';

create function app_private.limit_buyer(name text, buyer_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if limit_buyer.buyer_id = any (array(select app_hidden.viewer_purchases())) then
    perform app_private.rate_limit(limit_buyer.name, app_public.current_user_id()::text);
  end if;
end $$;
comment on function app_private.limit_buyer(text, uuid) is
  'Counts a buyer''s actions on their own purchase, which use storage and attention of the organization: '
  'RATE_LIMITED above the limit. The assignee of the purchase is not limited.';

create function app_hidden.viewer_purchase_reservations() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
begin
  if app_public.current_user_id() is null or app_hidden.setting('organization_id') is not null
    or not app_hidden.scopes_allow('purchase.own') then
    return;
  end if;
  return query
    select r.id from app_public.reservations r where r.buyer_id = app_public.current_user_id() and r.deleted_at is null
    union select b.reservation_id from app_public.buyers b where b.id = any (purchases)
      and b.reservation_id is not null;
end $$;
comment on function app_hidden.viewer_purchase_reservations() is
  'The reservations that the viewer made as a buyer, and those that their purchases came from.';

create function app_hidden.viewer_purchase_negotiations() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
  reservations uuid[] := array(select app_hidden.viewer_purchase_reservations());
begin
  return query
    select n.id from app_public.negotiations n where n.buyer_id = any (purchases) and n.deleted_at is null
    union select n.id from app_public.negotiations n where n.reservation_id = any (reservations)
      and n.deleted_at is null
    union select n.id from app_public.buyers b join app_public.negotiations n on n.lead_id = b.lead_id
      and n.deleted_at is null
      where b.id = any (purchases) and n.unit_id is not distinct from b.unit_id;
end $$;
comment on function app_hidden.viewer_purchase_negotiations() is
  'The negotiations about the viewer''s own purchases and reservations.';
grant execute on function app_hidden.viewer_purchases, app_hidden.viewer_purchase_reservations,
  app_hidden.viewer_purchase_negotiations to plat_user;

comment on table app_private.deal_tables is 'The tables whose assignee is that of their lead or purchase.';

create function app_private.make_deal_table(table_name text, read_permission text, write_permission text,
  list_name text, list_description text,
  own text default 'false', deletable boolean default true) returns void
language plpgsql volatile as $$
declare
  scopes text := $s$organization_id = any ((select app_hidden.viewer_organizations(%1$L))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects(%1$L))::uuid[])
    or (assignee_id = (select app_public.current_user_id())
      and project_id = any ((select app_hidden.viewer_own_projects(%1$L))::uuid[]))$s$;
  readers text := format(scopes, read_permission);
  writers text := format(scopes, write_permission);
begin
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_project_id_fkey', table_name,
    case when list_name is null
      then E'@parent\n@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.'
      else format(E'@parent\n@fieldName project\n@foreignFieldName %s\n@backwardPermission %s\n@backwardDescription '
        '%s; null without the permission %2$s.\n\nThe project that it belongs to.',
        list_name, read_permission, list_description) end);
  execute format('create policy sellers on app_public.%I for select to plat_user using (deleted_at is null and (%s or '
    '%s))', table_name, readers, own);
  execute format('create policy sellers_insert on app_public.%I for insert to plat_user with check (%s)', table_name,
    writers);
  execute format('create policy sellers_update on app_public.%I for update to plat_user using (%s)', table_name,
    writers);
  if deletable then
    execute format('create policy sellers_delete on app_public.%I for delete to plat_user using (%s)', table_name,
      writers);
  end if;
  insert into app_private.deal_tables (table_name) values (make_deal_table.table_name);
end $$;
comment on function app_private.make_deal_table is
  'Creates the policies of a table with project_id, organization_id and assignee_id: for viewers with the '
  'permission (for all deals, or for assigned deals only), and those for whom the condition `own` is true. '
  'deletable: whether callers delete rows. Grants and make_project_record follow.';

create function app_hidden.deal_number(letter text, digits text) returns text
language sql immutable parallel safe as $$ select letter || '-' || lpad(digits, greatest(6, length(digits)), '0') $$;
comment on function app_hidden.deal_number(text, text) is
  'A number of a deal, such as R-000042, of its letter and its digits without leading zeros.';

create function app_private.tg__number() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  next_number int;
begin
  -- One after the other from here to the end of the transaction, so that no number is missing.
  execute format('insert into app_private.%I as c (project_id, last_number) values ($1, 1) on conflict (project_id)
    do update set last_number = c.last_number + 1 returning c.last_number', tg_argv[1])
    into next_number using new.project_id;
  new.number := app_hidden.deal_number(tg_argv[0], next_number::text);
  return new;
end $$;
comment on function app_private.tg__number() is
  'Gives a new record the next number of its kind in the project. Arguments: the letter that numbers of the kind begin '
  'with, the table of the last numbers. The last trigger before the insert, since the next record of the kind in the '
  'project waits from here on.';

-- A deal has one assignee: that of the lead or the purchase is also that of all its records.
create function app_private.tg__assignee_of_deal() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  deal_table text;
begin
  -- tg_argv[0]: the column by which the others refer to this record.
  for deal_table in
    select t.table_name from app_private.deal_tables t
    where exists (select from pg_attribute a
      where a.attrelid = format('app_public.%I', t.table_name)::regclass and a.attname = tg_argv[0]
        and not a.attisdropped)
      and not (t.table_name = 'reservations' and tg_argv[0] = 'buyer_id') -- there it is the user
    order by t.table_name
  loop
    execute format('update app_public.%I set assignee_id = $1 where %I = $2 and assignee_id is distinct from $1 and '
      'deleted_at is null', deal_table, tg_argv[0])
      using new.assignee_id, new.id;
  end loop;
  if tg_table_name = 'buyers' then
    update app_public.leads l set assignee_id = new.assignee_id
      where l.id = (to_jsonb(new) ->> 'lead_id')::uuid and l.assignee_id is distinct from new.assignee_id
        and l.deleted_at is null;
  end if;
  return null;
end $$;
comment on function app_private.tg__assignee_of_deal() is
  'Hands what belongs to a lead or purchase over to its new assignee.';

create function app_private.follow_deals(lead_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  if lead_ids = '{}' then
    return;
  end if;
  -- The next statement sees the changes of transactions that were waited for.
  perform from app_public.leads l where l.id = any (lead_ids) order by l.id for no key update;
  perform set_config('plat.service', 'on', true);
  with followed as (
    select l.id, case
      when exists (select from app_public.reservations r where r.lead_id = l.id
        and r.status in ('PENDING', 'CONFIRMED') and r.deleted_at is null) then 'RESERVED'
      when exists (select from app_public.negotiations n where n.lead_id = l.id and n.status = 'ACTIVE'
        and n.deleted_at is null) then 'NEGOTIATING'
      else coalesce(l.status_before_deal, l.status) end as wanted
    from app_public.leads l
    where l.id = any (lead_ids) and l.status not in ('CONVERTED', 'LOST', 'UNQUALIFIED')
  )
  update app_public.leads l set status = f.wanted,
      status_before_deal = case when f.wanted in ('RESERVED', 'NEGOTIATING') then
        coalesce(l.status_before_deal, case when l.status not in ('RESERVED', 'NEGOTIATING') then l.status end) end
    from followed f where l.id = f.id and l.status <> f.wanted;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.follow_deals(uuid[]) is
  'Sets the status of leads that follows from their reservations and negotiations, or restores the earlier one '
  'when the last of them has ended.';

create function app_private.lock_inventory(unit_id uuid, lot_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from app_public.lots l where l.id = coalesce(lock_inventory.lot_id,
    (select u.lot_id from app_public.units u where u.id = lock_inventory.unit_id))
    and (lock_inventory.lot_id is not null or not l.multi_unit) for no key update;
  perform from app_public.units u where u.id = lock_inventory.unit_id for no key update;
end $$;
comment on function app_private.lock_inventory(uuid, uuid) is
  'Locks the unit or lot of a deal before its other records. The order of locks is the same everywhere: lot, unit, '
  'claim, reservation, negotiation, offer, purchase, lead.';

-- Evaluated for every list of reservations; empty without a token.
grant execute on function app_hidden.viewer_purchase_reservations to plat_anonymous;

-- Evaluated for every list of purchases; empty without a token.
grant execute on function app_hidden.viewer_purchases to plat_anonymous;

create function app_private.is_reason_of_buyer(reservation_id uuid, reason text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from app_public.events e where e.subject_id = reservation_id
    and e.name = 'reservation.cancelled'
    and e.actor_type = 'BUYER' and e.actor_id = app_public.current_user_id()
      and e.data ->> 'cancellationReason' = reason)
$$;
comment on function app_private.is_reason_of_buyer(uuid, text) is
  'Whether the viewer cancelled the reservation as its buyer, and said so.';
