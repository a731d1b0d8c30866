-- What records of exactly one lead or purchase have in common (contacts, agreements, appointments, calls, deposits),
-- and the contacts. A conversion moves nothing: the lists of a purchase show its own rows and those of its lead.

create function app_hidden.viewer_purchase_leads() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
begin
  return query select b.lead_id from app_public.buyers b where b.id = any (array(select app_hidden.viewer_purchases()))
    and b.lead_id is not null;
end $$;
grant execute on function app_hidden.viewer_purchase_leads() to plat_user;
comment on function app_hidden.viewer_purchase_leads() is 'The leads that the viewer''s own purchases came from.';

create function app_hidden.viewer_assigned_buyers(permission text) returns setof uuid
language sql stable security definer rows 20 set search_path = pg_catalog, pg_temp as $$
  select b.id from app_public.buyers b where b.assignee_id = app_public.current_user_id() and b.deleted_at is null
    and (b.organization_id = any ((select app_hidden.viewer_organizations(permission))::uuid[])
      or b.project_id = any ((select app_hidden.viewer_projects(permission))::uuid[])
      or b.project_id = any ((select app_hidden.viewer_own_projects(permission))::uuid[]))
$$;
grant execute on function app_hidden.viewer_assigned_buyers(text) to plat_user;
comment on function app_hidden.viewer_assigned_buyers(text) is
  'The purchases that are assigned to the viewer, where they have the permission.';

create function app_private.lock_lead_or_buyer(lead_id uuid, buyer_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from app_public.buyers b where b.id = lock_lead_or_buyer.buyer_id for no key update;
  perform from app_public.leads l
    where l.id = coalesce(lock_lead_or_buyer.lead_id,
      (select b.lead_id from app_public.buyers b where b.id = lock_lead_or_buyer.buyer_id)) for no key update;
end $$;
comment on function app_private.lock_lead_or_buyer(uuid,uuid) is
  'Locks a purchase and its lead, before their records.';

create function app_private.tg__deal_child() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_argv[0] = 'reservation' and num_nonnulls(new.lead_id, new.buyer_id) = 0 then
    if new.reservation_id is not null then
      select r.lead_id, case when r.lead_id is null then r.purchase_id end, r.project_id, r.organization_id
        into new.lead_id, new.buyer_id, new.project_id, new.organization_id
        from app_public.reservations r where r.id = new.reservation_id and r.deleted_at is null;
      return new;
    end if;
  end if;
  if num_nonnulls(new.lead_id, new.buyer_id) <> 1 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either the lead or the buyer.', '{"field": "leadId"}');
  end if;
  if tg_argv[0] = 'assignee' then
    -- Serialized with a concurrent reassignment, so that no row keeps the previous assignee.
    perform app_private.lock_lead_or_buyer(new.lead_id, new.buyer_id);
    new.assignee_id := coalesce((select l.assignee_id from app_public.leads l where l.id = new.lead_id),
      (select b.assignee_id from app_public.buyers b where b.id = new.buyer_id));
  end if;
  if new.lead_id is not null then
    select l.project_id, l.organization_id into new.project_id, new.organization_id from app_public.leads l
      where l.id = new.lead_id;
  else
    select b.project_id, b.organization_id into new.project_id, new.organization_id from app_public.buyers b
      where b.id = new.buyer_id;
  end if;
  return new;
end $$;
comment on function app_private.tg__deal_child() is
  'A row belongs to a lead or a purchase of the same project; with the argument `assignee`, it has the same '
  'assignee too, and with `reservation` it may name a reservation instead, whose lead or purchase it then has.';

create function app_private.deal_child_condition(table_name text, lead_permission text, buyer_permission text,
  has_assignee boolean default false) returns text
language plpgsql immutable as $$
declare
  branch constant text := $s$organization_id = any ((select app_hidden.viewer_organizations(%1$L))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects(%1$L))::uuid[])
    or (project_id = any ((select app_hidden.viewer_own_projects(%1$L))::uuid[]) and %2$s)$s$;
  mine constant text := 'assignee_id = (select app_public.current_user_id())';
begin
  -- An agent has many leads, so each is looked up; and few purchases, so all are known before.
  return format('case when lead_id is not null then %s else %s end',
    format(branch, lead_permission, case when has_assignee then mine
      else format('(select d.assignee_id from app_public.leads d where d.id = %I.lead_id) = (select '
        'app_public.current_user_id())', table_name) end),
    format(branch, buyer_permission, case when has_assignee then mine
      else format('buyer_id = any (array(select app_hidden.viewer_assigned_buyers(%L)))', buyer_permission) end));
end $$;
comment on function app_private.deal_child_condition(text, text, text, boolean) is
  'Condition of a policy: the viewer has the permission in the project of the lead or purchase, or has it for '
  'assigned deals and is the assignee.';

create function app_private.make_deal_child(
  table_name text, subject text, list_name text, list_description text, list_order text default 'id desc',
  lead_read text default 'lead.read', lead_write text default 'lead.write', buyer_read text default 'buyer.read',
    buyer_write text default 'buyer.write',
  own text default null, has_assignee boolean default false, of_lead text default null
) returns void
language plpgsql volatile as $$
declare
  readers text := app_private.deal_child_condition(table_name, lead_read, buyer_read, has_assignee)
    || case when own is not null then format($s$ or ((buyer_id = any (array(select app_hidden.viewer_purchases()))
      or lead_id = any (array(select app_hidden.viewer_purchase_leads()))) and %s)$s$, own) else '' end;
  writers text := app_private.deal_child_condition(table_name, lead_write, buyer_write, has_assignee);
begin
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_one_person', table_name,
    'Specify either the lead or the buyer.');
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_lead_id_fkey', table_name,
    format(E'@fieldName lead\n@foreignFieldName %s\n@backwardDescription %s.\n\nThe lead; null where it is of a buyer, '
      'or not the viewer''s to see.', list_name, list_description));
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_buyer_id_fkey', table_name,
    E'@fieldName buyer\n@backwardBehavior -*\n\nThe buyer; null if it belongs to a lead.');
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_project_id_fkey', table_name,
    E'@parent\n@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.');
  execute format('comment on column app_public.%I.lead_id is %L', table_name,
    'Id of the lead. Set either this or `buyerId`.');
  execute format('comment on column app_public.%I.buyer_id is %L', table_name,
    'Id of the buyer. Set either this or `leadId`.');
  execute format('create policy sellers on app_public.%I for select to plat_user using (deleted_at is null and (%s))',
    table_name, readers);
  execute format('create policy sellers_insert on app_public.%I for insert to plat_user with check (%s)', table_name,
    writers);
  execute format('create policy sellers_update on app_public.%I for update to plat_user using (%s)', table_name,
    writers);
  execute format('create policy sellers_delete on app_public.%I for delete to plat_user using (%s)', table_name,
    writers);
  execute format('grant select on app_public.%I to plat_user, plat_anonymous', table_name);

  execute format('create trigger _010_deal before insert on app_public.%I for each row execute function '
    'app_private.tg__deal_child(%s)',
    table_name, case when has_assignee then '''assignee''' else '' end);
  -- A buyer who sees some of the rows cannot read their events.
  perform app_private.make_project_record(table_name, subject, lead_write,
    event_permission => case when own is not null then lead_read end);
  if has_assignee then
    execute format('comment on column app_public.%I.assignee_id is %L', table_name,
      E'@secret\n@behavior -*\n\nWho is assigned the lead or the purchase.');
    -- Handing over a deal does not change visible fields of the row.
    execute format('create or replace trigger _900_touch before update on app_public.%I for each row execute function '
      'app_private.tg__touch(''assignee_id'')', table_name);
    insert into app_private.deal_tables (table_name) values (make_deal_child.table_name);
  end if;
  perform app_private.make_buyer_list(table_name, list_name, list_description, list_order, of_lead);
end $$;
comment on function app_private.make_deal_child is
  'Sets up a table like app_private.project_record with lead_id and buyer_id: row-level security by the '
  'permissions for leads and buyers, lists on both, and make_project_record. `own`: which rows the buyer who '
  'accepted an invitation sees; has_assignee: for root lists, along the column assignee_id; of_lead: see '
  'make_buyer_list.';

create function app_private.make_buyer_list(table_name text, list_name text, list_description text,
  list_order text, of_lead text default null) returns void
language plpgsql volatile as $$
declare
  function_name text := 'buyers_' || regexp_replace(list_name, '([A-Z])', '_\1', 'g');
begin
  execute format('create function app_public.%I(b app_public.buyers) returns setof app_public.%I language sql stable
    rows 5 as
    $f$ select c.* from %s c where (c.buyer_id = b.id or %s)
      and c.deleted_at is null order by %s $f$',
    lower(function_name), table_name,
    app_hidden.source_of(format('app_public.%I', table_name)::regclass),
    case when of_lead is null then 'c.lead_id = b.lead_id' else format('(c.lead_id = b.lead_id and %s)', of_lead) end,
    list_order);
  execute format('grant execute on function app_public.%I to plat_user, plat_anonymous', lower(function_name));
  execute format('comment on function app_public.%I is %L', lower(function_name),
    format(E'@ordered\n\n%s; those of the lead that the buyer was among them.', list_description));
end $$;
comment on function app_private.make_buyer_list(text, text, text, text, text) is
  'The records of a purchase, or of the lead it came from. of_lead: which rows c of the lead are '
  'those of the purchase b, where a lead may have several.';

select app_private.make_deal_child('contacts', 'contact', 'contacts', 'Other people involved, latest first');

grant insert (lead_id, buyer_id, role, name, first_name, last_name, legal_name, email, phone, address, company,
  is_signer, ownership_percent, notes), update (role, name, first_name, last_name, legal_name, email, phone, address,
  company, is_signer, ownership_percent, notes), delete on app_public.contacts to plat_user;

comment on table app_public.contacts is
  'A person related to a lead or buyer, such as a co-buyer, guarantor, lender or lawyer.';
comment on column app_public.contacts.role is 'Relation to the lead or buyer, such as SPOUSE or LOAN_OFFICER.';
comment on column app_public.contacts.name is E'@personal contract\n\nFull name as given.';
comment on column app_public.contacts.first_name is E'@personal contract\n\nGiven name, such as Ada.';
comment on column app_public.contacts.last_name is E'@personal contract\n\nFamily name.';
comment on column app_public.contacts.legal_name is E'@personal contract\n\nLegal name, as on contracts.';
comment on column app_public.contacts.email is E'@personal\n\nAddress for email, such as ada@example.com.';
comment on column app_public.contacts.phone is E'@personal\n\nPhone number in E.164, such as +14165550123.';
comment on column app_public.contacts.address is E'@personal contract\n\nPostal address.';
comment on column app_public.contacts.company is E'@personal\n\nCompany that the person works or buys for.';
comment on column app_public.contacts.is_signer is 'Whether the contact signs the contract.';
comment on column app_public.contacts.ownership_percent is 'Share of the ownership of the home, in percent.';
comment on column app_public.contacts.notes is E'@personal\n\nInternal notes for the team.';
comment on constraint contacts_ownership_percent_range on app_public.contacts is
  'A percentage must be greater than 0 and at most 100, with at most 4 decimal places.';

create function app_private.tg_contacts__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project_country text := (select coalesce((p.address).country, 'US') from app_public.projects p
    where p.id = new.project_id);
begin
  new.email := lower(new.email);
  if new.phone is not null and (tg_op = 'INSERT' or new.phone is distinct from old.phone) then
    new.phone := app_hidden.to_e164(new.phone, project_country);
  end if;
  if new.address is distinct from null then
    new.address := app_hidden.complete_address(new.address, project_country);
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.contacts for each row
  execute function app_private.tg_contacts__prepare();

-- Agents bring leads and buyers. They come with those (see agent_for), or are entered by themselves.
create function app_hidden.viewer_deal_agents() returns setof uuid
language sql stable security definer rows 20 set search_path = pg_catalog, pg_temp as $$
  select b.agent_id from app_public.buyers b where b.agent_id is not null
    and (b.id = any (array(select app_hidden.viewer_assigned_buyers('buyer.read')))
      or b.id = any (array(select app_hidden.viewer_purchases())))
$$;
grant execute on function app_hidden.viewer_deal_agents() to plat_user;
comment on function app_hidden.viewer_deal_agents() is
  'The agents of the purchases that the viewer makes, or that are assigned to them where they have buyer.read.';
