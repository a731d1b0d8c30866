-- Personalizations: the options chosen for a unit, and their total. Current prices apply until approval; then prices
-- are fixed.

comment on type app_public.personalization_selection_input is 'An option to select, with its quantity.';

comment on column app_public.personalization_selection_input.option_id is
  E'@notNull\n\nId of a `SpecOption` that is offered for the unit.';
comment on column app_public.personalization_selection_input.quantity is 'Number of pieces. Default: 1.';
comment on column app_public.personalization_selection_input.note is 'Remark for the builder, such as a color.';

-- Permissions: the sales team for its deals; the buyer for their own purchase, until it is submitted.
select app_private.make_deal_table('personalizations', 'sale.read', 'sale.write', null, null,
  own => 'buyer_id = any (array(select app_hidden.viewer_purchases()))');

create policy buyers_insert on app_public.personalizations for insert to plat_user
  with check (buyer_id = any (array(select app_hidden.viewer_purchases())));
create policy buyers_update on app_public.personalizations for update to plat_user
  using (buyer_id = any (array(select app_hidden.viewer_purchases())));

select app_private.make_project_record('personalizations', 'personalization', 'sale.write');
select app_private.make_state_machine('personalizations', 'personalization',
  steps => array[
    ['DRAFT', 'SUBMITTED', 'hand', null], ['CHANGES_REQUESTED', 'SUBMITTED', 'hand', null],
    ['SUBMITTED', 'APPROVED', 'hand', 'sale.write'], ['SUBMITTED', 'CHANGES_REQUESTED', 'hand', 'sale.write'],
    ['APPROVED', 'SIGNED', 'hand', 'sale.write'], ['SIGNED', 'LOCKED', 'hand', 'sale.write'],
    ['APPROVED', 'SUPERSEDED', 'service', null],
    ['DRAFT', 'CANCELLED', 'hand', null], ['SUBMITTED', 'CANCELLED', 'hand', null],
    ['CHANGES_REQUESTED', 'CANCELLED', 'hand', null],
    ['APPROVED', 'CANCELLED', 'hand', 'sale.write']],
  initial => array['DRAFT']);

grant select on app_public.personalizations to plat_user, plat_anonymous;
grant insert (unit_id, lead_id, buyer_id, title, notes, due_on), update (status, title, notes, due_on), delete on
  app_public.personalizations to plat_user;
grant update (selections_changed_at) on app_public.personalizations to plat_user;

comment on table app_public.personalizations is 'A choice of options and upgrades for a unit.';
comment on column app_public.personalizations.assignee_id is
  E'@secret\n@behavior -*\n\nThe member who works on the deal.';
comment on column app_public.personalizations.unit_id is 'Id of the unit that is built with the selected options.';
comment on column app_public.personalizations.lead_id is
  'Id of the lead who selects the options. Set this or `buyerId`, or neither for a show home.';
comment on column app_public.personalizations.buyer_id is 'The purchase that it belongs to.';
comment on column app_public.personalizations.title is E'@personal\n\nDisplay title.';
comment on column app_public.personalizations.status is 'Current status.';
comment on column app_public.personalizations.status_changed_at is 'When the status last changed.';
comment on column app_public.personalizations.submitted_at is
  'When it was last submitted for approval; null if never.';
comment on column app_public.personalizations.approved_at is 'When the sales team approved it; null until then.';
comment on column app_public.personalizations.approved_by_id is 'The user who approved it.';
comment on column app_public.personalizations.signed_at is 'When the buyer signed it; null until then.';
comment on column app_public.personalizations.locked_at is
  'When it was locked, because construction started; null until then.';
comment on column app_public.personalizations.due_on is
  'Deadline for selecting options; set by the sales team.';
comment on column app_public.personalizations.notes is E'@personal\n\nNotes, visible to the buyer.';
comment on column app_public.personalizations.selections_changed_at is
  E'@behavior -insert -update\n\nWhen the selected options were last changed.';
comment on constraint personalizations_one_person on app_public.personalizations is
  'Specify the lead or the buyer, not both.';
comment on constraint personalizations_unit_id_fkey on app_public.personalizations is
  E'@fieldName unit\n@foreignFieldName personalizations\n@backwardPermission sale.read\n@backwardDescription '
  'Personalizations of the unit, newest first; null without the permission sale.read.\n\n'
  'The unit.';
comment on constraint personalizations_lead_id_fkey on app_public.personalizations is
  E'@fieldName lead\n@foreignFieldName personalizations\n@backwardDescription Personalizations of the lead, newest '
  'first.\n\n'
  'The lead who selects the options.';
comment on constraint personalizations_buyer_id_fkey on app_public.personalizations is
  E'@fieldName buyer\n'
  '@foreignFieldName personalizations\n'
  '@backwardDescription Personalizations of the purchase, newest first.\n\n'
  'The purchase that it belongs to.';
comment on constraint personalizations_assignee_id_fkey on app_public.personalizations is
  E'@behavior -*\n\nThe member who works on the deal.';
comment on constraint personalizations_approved_by_id_fkey on app_public.personalizations is
  E'@fieldName approvedBy\n@backwardBehavior -*\n\nThe user who approved it.';

-- Writing.
create function app_private.require_due_on(p app_public.personalizations) returns void
language plpgsql stable as $$
begin
  if app_public.current_user_id() is not null and not coalesce(app_hidden.is_service(), false)
    and not app_hidden.deal_can(p.organization_id, p.project_id, p.assignee_id, 'sale.write') then
    perform app_hidden.fail('FORBIDDEN', 'Only the sales team can set the deadline for choosing options.',
      '{"permission": "sale.write", "field": "dueOn"}');
  end if;
end $$;
comment on function app_private.require_due_on(app_public.personalizations) is
  'Refuses a buyer who sets the day by which they have to choose.';

create function app_private.elements_to_choose(p app_public.personalizations) returns setof app_public.spec_elements
language sql stable as $$
  select e.* from app_public.spec_elements e
  where e.project_id = p.project_id and e.required and e.deleted_at is null
    and not exists (select from app_public.personalization_selections s where s.personalization_id = p.id
      and s.element_id = e.id)
    -- Chosen in an earlier personalization that is in force.
    and not exists (select from app_public.personalizations o
      join app_public.personalization_selections s on s.personalization_id = o.id and s.element_id = e.id
      where o.unit_id = p.unit_id and o.id <> p.id and o.deleted_at is null
        and o.status in ('APPROVED', 'SIGNED', 'LOCKED')
        and o.lead_id is not distinct from p.lead_id and o.buyer_id is not distinct from p.buyer_id)
    -- There is something to choose, and still time.
    and exists (select from app_public.spec_options o where o.element_id = e.id and o.active and o.deleted_at is null)
    and not exists (select from app_public.units u where u.id = p.unit_id
      and app_private.construction_has_come_to(u.construction_status, e.lock_phase))
$$;
comment on function app_private.elements_to_choose(app_public.personalizations) is
  'The required elements that lack a choice which can still be made.';
grant execute on function app_private.elements_to_choose to plat_user, plat_anonymous;

create function app_private.tg_personalizations__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  buyer app_public.buyers;
  service text := coalesce(current_setting('plat.service', true), '');
  other app_public.personalizations;
  missing text;
  missing_ids jsonb;
begin
  if tg_op = 'INSERT' then
    select u.project_id, u.organization_id into new.project_id, new.organization_id from app_public.units u
      where u.id = new.unit_id and u.deleted_at is null;
    if new.lead_id is not null and new.buyer_id is not null then
      perform app_hidden.fail('BAD_USER_INPUT', 'Specify the lead or the buyer, not both.', '{"field": "leadId"}');
    elsif new.lead_id is not null then
      select l.assignee_id into new.assignee_id from app_public.leads l where l.id = new.lead_id
        and l.project_id = new.project_id and l.deleted_at is null;
      if not found then
        perform app_hidden.fail('NOT_FOUND', 'There is no such lead in the project of the unit.',
          '{"field": "leadId"}');
      end if;
    elsif new.buyer_id is not null then
      select * into buyer from app_public.buyers b where b.id = new.buyer_id and b.project_id = new.project_id
        and b.deleted_at is null;
      if buyer.id is null then
        perform app_hidden.fail('NOT_FOUND', 'There is no such buyer in the project of the unit.',
          '{"field": "buyerId"}');
      elsif buyer.unit_id is distinct from new.unit_id then
        perform app_hidden.fail('BAD_USER_INPUT', 'This is not the unit of the purchase.', '{"field": "unitId"}');
      elsif buyer.status = 'CANCELLED' then
        perform app_hidden.fail('CONFLICT', 'This purchase was cancelled.', '{"field": "buyerId"}');
      end if;
      new.assignee_id := buyer.assignee_id;
    else
      new.assignee_id := app_public.current_user_id();
    end if;
    if new.due_on is not null then
      perform app_private.require_due_on(new);
    end if;
    return new;
  end if;
  if new.due_on is distinct from old.due_on then
    perform app_private.require_due_on(old);
  end if;
  if new.status is distinct from old.status then
    case new.status
      when 'SUBMITTED' then
        if not exists (select from app_public.personalization_selections s where s.personalization_id = new.id) then
          perform app_hidden.fail('BAD_USER_INPUT', 'Choose at least one option before you submit.',
            '{"field": "selections"}');
        end if;
        select string_agg(format('"%s"', e.title), ', ' order by e.sequence, e.id),
            jsonb_agg(e.id order by e.sequence, e.id)
          into missing, missing_ids from app_private.elements_to_choose(new) e;
        if missing is not null then
          perform app_hidden.fail('BAD_USER_INPUT', format('Choose an option for %s before you submit.', missing),
            jsonb_build_object('field', 'selections', 'elementIds', missing_ids));
        end if;
        new.submitted_at := now();
      when 'APPROVED' then
        new.approved_at := now();
        new.approved_by_id := app_public.current_user_id();
        -- An element is sold once: an earlier, unsigned selection is replaced.
        for other in
          select distinct on (p.id) p.* from app_public.personalizations p
          join app_public.personalization_selections s on s.personalization_id = p.id
          join app_public.personalization_selections mine on mine.element_id = s.element_id
            and mine.personalization_id = new.id
          join app_public.spec_elements e on e.id = s.element_id
            and (e.selection_mode = 'SINGLE' or s.option_id = mine.option_id)
          where p.unit_id = new.unit_id and p.id <> new.id and p.deleted_at is null
            and p.status in ('APPROVED', 'SIGNED', 'LOCKED')
            and p.lead_id is not distinct from new.lead_id and p.buyer_id is not distinct from new.buyer_id
          order by p.id
        loop
          if other.status <> 'APPROVED' then
            perform app_hidden.fail('CONFLICT',
              'This personalization contains an option that was already signed for in another personalization of '
              'this unit.',
              jsonb_build_object('existingId', other.id));
          end if;
          perform set_config('plat.service', 'on', true);
          update app_public.personalizations p set status = 'SUPERSEDED' where p.id = other.id;
          perform set_config('plat.service', service, true);
        end loop;
        update app_public.personalization_selections s set unit_price = o.price
          from app_public.spec_options o where o.id = s.option_id and s.personalization_id = new.id;
        update app_public.personalization_discounts d set amount = app_private.discount_amount(d)
          where d.personalization_id = new.id and d.deleted_at is null;
      when 'SIGNED' then
        new.signed_at := now();
      when 'LOCKED' then
        new.locked_at := now();
      else
        null;
    end case;
  end if;
  return new;
end $$;
create function app_private.tg_personalizations__limit_buyer() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.limit_buyer('buyer.change', new.buyer_id);
  return new;
end $$;
comment on function app_private.tg_personalizations__limit_buyer() is
  'Each change makes an event, and may notify the team: a buyer makes a limited number of them.';
create trigger _005_limit_buyer before insert or update on app_public.personalizations for each row
  when (new.buyer_id is not null) execute function app_private.tg_personalizations__limit_buyer();
create trigger _010_prepare before insert on app_public.personalizations for each row
  execute function app_private.tg_personalizations__prepare();
create trigger _310_prepare before update on app_public.personalizations for each row
  when (old.status is distinct from new.status or old.due_on is distinct from new.due_on)
  execute function app_private.tg_personalizations__prepare();

create or replace trigger _900_touch before update on app_public.personalizations for each row
  execute function app_private.tg__touch('assignee_id');

insert into app_private.event_names (subject, column_name, value, name) values
  ('personalization', 'status', 'SUBMITTED', 'submitted'), ('personalization', 'status', 'APPROVED', 'approved'),
  ('personalization', 'status', 'SIGNED', 'signed'), ('personalization', 'status', 'LOCKED', 'locked'),
  ('personalization', 'status', 'CANCELLED', 'cancelled');

create function app_private.tg_personalizations__keep() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if old.status in ('APPROVED', 'SIGNED', 'LOCKED') then
    perform app_hidden.fail('CONFLICT',
      'An approved or signed personalization cannot be deleted; cancel it instead, as long as it is not signed.');
  end if;
  return old;
end $$;
create trigger _300_keep before delete on app_public.personalizations for each row
  execute function app_private.tg_personalizations__keep();

-- Reading.
create function app_public.personalizations_currency(p app_public.personalizations) returns app_public.currency_code
language sql stable as $$ select app_private.currency_for_viewer(p.project_id) $$;

create function app_public.personalizations_selections_total(p app_public.personalizations) returns app_public.money
language sql stable as $$ select (app_private.sums_of_personalization(p.id)).selections $$;

create function app_public.personalizations_credits_total(p app_public.personalizations) returns app_public.money
language sql stable as $$ select (app_private.sums_of_personalization(p.id)).credits $$;

create function app_public.personalizations_discounts_total(p app_public.personalizations) returns app_public.money
language sql stable as $$ select (app_private.sums_of_personalization(p.id)).discounts $$;

create function app_public.personalizations_total(p app_public.personalizations) returns app_public.money
language sql stable as $$ select (app_private.sums_of_personalization(p.id)).total $$;

create function app_public.personalizations_allowed_transitions(p app_public.personalizations) returns
  app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('personalization', to_jsonb(p)) $$;

create function app_public.personalizations_warnings(p app_public.personalizations) returns text[]
language sql stable as $$
  select coalesce(array_agg(w.text order by w.text), '{}') from (
    select format('Nothing is chosen for "%s", which is required.', e.title) as text
      from app_private.elements_to_choose(p) e
    union all
    select format('"%s" can no longer be changed: construction has reached %s.', e.title, u.construction_status)
      from app_public.personalization_selections s join app_public.spec_elements e on e.id = s.element_id
        join app_public.units u on u.id = p.unit_id
      where s.personalization_id = p.id and app_private.construction_has_come_to(u.construction_status, e.lock_phase)
        and p.status in ('DRAFT', 'SUBMITTED', 'CHANGES_REQUESTED')
    union all
    select format('"%s" and "%s" do not go together.', a.title, b.title)
      from app_public.personalization_selections s join app_public.spec_options a on a.id = s.option_id
      join app_public.personalization_selections t on t.personalization_id = s.personalization_id and t.id <> s.id
      join app_public.spec_options b on b.id = t.option_id
      where s.personalization_id = p.id and (b.id = any (a.excluded_option_ids) or a.id = any (b.excluded_option_ids))
        and row(a.title, a.id) < row(b.title, b.id)
    union all
    select 'The options were to be chosen by ' || p.due_on || '.'
      where p.status in ('DRAFT', 'CHANGES_REQUESTED')
        and p.due_on < (now() at time zone (select j.time_zone from app_public.projects j
          where j.id = p.project_id))::date
  ) w
  where p.status not in ('CANCELLED', 'SUPERSEDED')
$$;

grant execute on function app_public.personalizations_currency, app_public.personalizations_selections_total,
  app_public.personalizations_credits_total, app_public.personalizations_discounts_total,
  app_public.personalizations_total, app_public.personalizations_allowed_transitions,
  app_public.personalizations_warnings, app_public.personalization_selections_unit_price,
  app_public.personalization_selections_total, app_public.personalization_selections_locked,
  app_public.personalization_credits_currency, app_public.personalization_discounts_currency,
  app_public.personalization_discounts_amount to plat_user, plat_anonymous;
comment on function app_public.personalizations_currency is
  E'@notNull\n\nCurrency of its amounts, that of the project.';
comment on function app_public.personalizations_selections_total is
  E'@notNull\n\nTotal price of the selected options, before discounts and credits.';
comment on function app_public.personalizations_credits_total is E'@notNull\n\nTotal amount of the credits.';
comment on function app_public.personalizations_discounts_total is E'@notNull\n\nTotal amount of the discounts.';
comment on function app_public.personalizations_total is
  E'@notNull\n\n`selectionsTotal` less discounts and credits, but at least zero.';
comment on function app_public.personalizations_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';
comment on function app_public.personalizations_warnings is
  E'@notNull\n\n'
  'Warnings: required elements without a selection, incompatible options, options past their construction phase, a '
  'missed deadline.';
