create policy seers_of_charge on app_public.processor_refunds for select to plat_user
  using ((select true from app_public.processor_charges c where c.id = processor_refunds.charge_id));

grant select on app_public.processor_refunds to plat_user, plat_anonymous;

comment on table app_public.processor_refunds is 'A refund of a charge.';
comment on column app_public.processor_refunds.organization_id is E'@behavior -*\n\nWho gives it back.';
comment on column app_public.processor_refunds.charge_id is E'@behavior -*\n\nThe charge.';
comment on column app_public.processor_refunds.amount is 'Amount in the currency of the payment.';
comment on column app_public.processor_refunds.status is 'Current status.';
comment on column app_public.processor_refunds.reason is 'Reason, as free text.';
comment on column app_public.processor_refunds.note is E'@personal contract\n@masked\n\nInternal notes for the team.';
comment on column app_public.processor_refunds.processor_id is
  E'@impersonal\n\nId that the payment processor assigned.';
comment on column app_public.processor_refunds.failure_message is
  E'@impersonal\n\nReason for the failure, from the processor; null unless the status is FAILED.';
comment on column app_public.processor_refunds.created_by_id is
  E'@inert A refund is requested once, when it is created.\n\n'
  'User who made the refund; null if the service made it, or it was made at the processor.';
comment on column app_public.processor_refunds.attempt_key is
  E'@impersonal\n@behavior -*\n\nIdempotency key of the request.';
comment on constraint processor_refunds_charge_id_fkey on app_public.processor_refunds is
  E'@fieldName charge\n@notNull\n@foreignFieldName refunds\n@backwardDescription Refunds of the charge, in '
  'order.\n\n'
  'The refunded charge.';
comment on constraint processor_refunds_created_by_id_fkey on app_public.processor_refunds is
  E'@fieldName createdBy\n@backwardBehavior -*\n\nUser who made the refund.';

create trigger _100_keep before delete on app_public.processor_refunds for each row
  execute function app_private.tg_processor_charges__keep();
create trigger _100_same before update on app_public.processor_refunds for each row
  when (row(old.id, old.organization_id, old.charge_id, old.amount) is distinct
    from row(new.id, new.organization_id, new.charge_id, new.amount))
  execute function app_private.tg_processor_charges__keep();

-- Adds the difference, so that concurrent refunds, which wait for the row of the charge, never exceed the charge
-- together.
create function app_private.tg_processor_refunds__count() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  given numeric := new.amount * (new.status = 'SUCCEEDED')::int;
  on_its_way numeric := new.amount * (new.status in ('PENDING', 'REQUIRES_ACTION'))::int;
  service text := coalesce(current_setting('plat.service', true), '');
begin
  if tg_op = 'UPDATE' then
    given := given - old.amount * (old.status = 'SUCCEEDED')::int;
    on_its_way := on_its_way - old.amount * (old.status in ('PENDING', 'REQUIRES_ACTION'))::int;
  end if;
  if given <> 0 or on_its_way <> 0 then
    perform set_config('plat.service', 'on', true);
    update app_public.processor_charges c set amount_refunded = c.amount_refunded + given,
      amount_refunding = c.amount_refunding + on_its_way,
        last_refunded_at = case when given > 0 then clock_timestamp() else c.last_refunded_at end,
        status = app_private.charge_status(c, c.amount_refunded + given)
      where c.id = new.charge_id;
    perform set_config('plat.service', service, true);
  end if;
  return null;
end $$;
create trigger _500_count after insert or update of status on app_public.processor_refunds for each row
  execute function app_private.tg_processor_refunds__count();

create function app_private.refund_facts(r app_public.processor_refunds) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', r.id, 'chargeId', c.id, 'processorId', r.processor_id, 'processorChargeId',
    c.processor_id, 'amount', r.amount::text, 'currency', c.currency,
    'reason', r.reason, 'open', r.status in ('PENDING', 'REQUIRES_ACTION'), 'toAccount',
      exists (select from app_private.payments_accounts a where a.organization_id = c.organization_id))
  from app_public.processor_charges c where c.id = r.charge_id
$$;
comment on function app_private.refund_facts(app_public.processor_refunds) is
  'Data of a refund for the processor, and its status.';

create function app_private.open_refund(charge_id uuid, input jsonb, attempt_key text default null,
  path text default '') returns app_public.processor_refunds
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  charge app_public.processor_charges;
  refund app_public.processor_refunds;
  rest numeric;
  wanted numeric;
begin
  -- Concurrent refunds are serialized from here.
  select c.* into charge from app_public.processor_charges c where c.id = charge_id for no key update;
  rest := charge.amount - charge.amount_refunded - charge.amount_refunding;
  if charge.status not in ('SUCCEEDED', 'PARTIALLY_REFUNDED') or rest = 0 then
    perform app_hidden.fail('CONFLICT', case when charge.status in ('PENDING', 'REQUIRES_ACTION')
      then 'This charge has not been paid yet.'
      when charge.status = 'DISPUTED' then 'This charge is disputed: the bank decides the outcome.'
      when charge.status in ('FAILED', 'CANCELLED')
        then format('A charge with the status %s cannot be refunded.', charge.status)
      else 'This charge has already been refunded.' end, jsonb_build_object('field', path || 'chargeId'));
  end if;
  wanted := case when input ->> 'amount' is null then rest
    else app_private.amount_of_payment(input, charge.currency, path || 'amount') end;
  if wanted > rest then
    perform app_hidden.fail('BAD_USER_INPUT', format('The amount exceeds the refundable amount, %s.', rest),
      jsonb_build_object('field', path || 'amount'));
  end if;
  insert into app_public.processor_refunds (organization_id, charge_id, amount, reason, note, created_by_id,
    attempt_key)
    values (charge.organization_id, charge.id, wanted, coalesce(input ->> 'reason', 'REQUESTED_BY_CUSTOMER'),
      app_hidden.checked(nullif(btrim(input ->> 'note'), ''), 'app_public.long_text', 'note'),
      app_public.current_user_id(), attempt_key)
    returning * into refund;
  return refund;
end $$;
comment on function app_private.open_refund(uuid, jsonb, text, text) is
  'Writes a refund of a charge down, of the amount or of all that is left; the processor is to be asked then. '
  'Callers have checked finance.write. path: the position of the input in that of the caller, for errors.';

create function app_hidden.begin_refund(input jsonb, repeat jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  viewer uuid := app_hidden.require_viewer();
  attempt record;
  charge app_public.processor_charges;
  refund app_public.processor_refunds;
begin
  select c.* into charge from app_public.processor_charges c
    where c.id = app_hidden.record_id('processor_charges', input ->> 'chargeId', 'chargeId')
      and (app_hidden.organization_can(c.organization_id, 'finance.read')
        or app_hidden.project_can(c.project_id, c.organization_id, 'finance.read')
        or c.id in (select app_hidden.viewer_charges()));
  if charge.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such charge.', '{"field": "chargeId"}');
  elsif not (app_hidden.organization_can(charge.organization_id, 'finance.write')
    or coalesce(app_hidden.project_can(charge.project_id, charge.organization_id, 'finance.write'), false)) then
    perform app_hidden.fail('FORBIDDEN', 'This requires the permission finance.write.',
      '{"permission": "finance.write"}');
  end if;
  attempt := app_private.claim_attempt(repeat);
  if attempt.answered then
    return '{"answered": true}';
  end if;
  if attempt.key is not null then
    select r.* into refund from app_public.processor_refunds r
      where r.created_by_id = viewer and r.attempt_key = attempt.key and r.inserted_at > now() - interval '24 hours'
        order by r.id desc limit 1;
    if refund.id is not null then
      return app_private.refund_facts(refund) || '{"answered": false}';
    end if;
  end if;
  perform app_private.rate_limit('refunds', viewer::text, 1000, interval '10 minutes');
  if exists (select from app_public.projects p where p.id = charge.project_id and p.archived_at is not null) then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  end if;
  refund := app_private.open_refund(charge.id, input, attempt.key);
  return app_private.refund_facts(refund) || '{"answered": false, "isNew": true}';
end $$;
comment on function app_hidden.begin_refund(jsonb, jsonb) is
  'Checks a refund as the viewer and writes it down, before the processor is asked: the charge has that much less to '
  'give from then on.';
revoke execute on function app_hidden.begin_refund from plat_anonymous;

create function app_private.apply_refund(charge app_public.processor_charges, state jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  refund app_public.processor_refunds;
begin
  select r.* into refund from app_public.processor_refunds r
    where r.charge_id = charge.id and (r.processor_id = state ->> 'id'
      or (r.processor_id is null and r.id::text = state ->> 'ours')) for update;
  if refund.id is null then
    -- A refund made manually at the processor. If the sum exceeds the charge together with ours, the processor
    -- refuses ours, which frees the amount.
    begin
      insert into app_public.processor_refunds (organization_id, charge_id, amount, status, reason, processor_id,
        created_by_id)
        values (charge.organization_id, charge.id, (state ->> 'amount')::numeric, state ->> 'status',
          state ->> 'reason', state ->> 'id', null);
    exception when check_violation then
      null;
    end;
  elsif refund.status in ('FAILED', 'CANCELLED')
    or (refund.status = 'SUCCEEDED' and state ->> 'status' in ('PENDING', 'REQUIRES_ACTION')) then
    null; -- older than what is known
  elsif refund.processor_id is null or refund.status <> state ->> 'status' then
    update app_public.processor_refunds r set processor_id = state ->> 'id', status = state ->> 'status',
      failure_message = state ->> 'failureMessage', updated_at = now()
      where r.id = refund.id;
  end if;
end $$;
comment on function app_private.apply_refund(app_public.processor_charges, jsonb) is
  'What the processor says of a refund of a charge that is locked.';

create function app_private.note_refund(id uuid, state jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  charge app_public.processor_charges;
  service text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true), set_config('plat.clock', 'on', true);
  select c.* into charge from app_public.processor_charges c
    where c.id = (select r.charge_id from app_public.processor_refunds r where r.id = id) for no key update;
  if state ->> 'id' is null then
    update app_public.processor_refunds r set status = 'FAILED', failure_message = state ->> 'failureMessage',
      updated_at = now()
      where r.id = id and r.processor_id is null and r.status = 'PENDING';
  else
    perform app_private.apply_refund(charge, state || jsonb_build_object('ours', id));
  end if;
  perform app_private.update_charge_status(charge.id);
  perform set_config('plat.service', service, true), set_config('plat.clock', '', true);
end $$;
comment on function app_private.note_refund(uuid, jsonb) is
  E'@step It is what the processor says of the refund.\n\nWrites down what the processor says of a refund; without an '
  'id, that it refused it.';

create function app_private.refund_to_make(id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.refund_facts(r) from app_public.processor_refunds r where r.id = $1
$$;
comment on function app_private.refund_to_make(uuid) is 'Data of a refund for the processor.';

create function app_public.refund_processor_charge(made app_public.made_refund, charge_id uuid,
  amount app_public.money default null, reason app_public.refund_reason default null,
  note text default null)
returns app_public.processor_charges
language sql volatile as $$
  select c.* from app_hidden.masked_processor_charges c where c.id = made::uuid
$$;
comment on function app_public.refund_processor_charge is
  E'@arg charge_id Id of a paid charge that is not fully refunded.\n@arg amount Amount in the currency of the '
  'charge. Default: the whole refundable amount.\n@arg reason Reason of the refund. Default: '
  'REQUESTED_BY_CUSTOMER.\n@arg note Internal notes for the team.\n\n'
  'Refunds all or part of a charge to the card that was charged. The total of all refunds cannot exceed the '
  'charge. Requires the permission finance.write.';

create function app_public.processor_refunds_note(r app_public.processor_refunds) returns app_public.long_text
language sql stable as $$ select case when r.note is not null and app_hidden.sees_finance(null, r.organization_id)
  then r.note end $$;
comment on function app_public.processor_refunds_note is
  'Internal notes for the team; null without the permission finance.read.';
grant execute on function app_private.note_refund, app_private.refund_to_make to plat_worker;

create trigger _950_changes after insert or update or delete on app_public.processor_refunds
  for each row execute function app_private.tg__count_change('organization_id');
