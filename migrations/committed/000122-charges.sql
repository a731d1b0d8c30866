--! Previous: sha1:e6182b14eb9e0cfca153019e5235348cf70310e1
--! Hash: sha1:29c61f9d94e4510397c9a79b2dfb900328422e0d
--! Message: charges

-- Charges and refunds. Money moves at the processor, and is written down before and after:
--
--   begin_payment commits the payment intent and its charge, PENDING → the processor is asked → note_payment writes down its answer
--   begin_refund  commits the refund, PENDING, which the charge has that much less for → likewise → note_refund
--
-- What happens in between is found out by whoever looks next: the same request under its idempotency key, an event of the
-- processor, or the job payments__reconcile. They all take the present state of the processor's object, so it does not matter in
-- which order they come, or how often. An intent is created at the processor first and confirmed when its id is written down here:
-- nothing that could have been charged is unknown, and what was not confirmed moves no money.
--
-- Charge: PENDING → REQUIRES_ACTION → SUCCEEDED, FAILED, CANCELLED; SUCCEEDED → PARTIALLY_REFUNDED → REFUNDED, and back where a refund
-- fails later; → DISPUTED, and back where the bank decides for the seller. All of it by the service.

select app_private.create_enum('charge_status', 'What became of a charge.', array[
  ['PENDING', 'The processor has not decided yet.'], ['REQUIRES_ACTION', 'The holder of the card has to confirm it at the bank.'],
  ['SUCCEEDED', 'Paid.'], ['FAILED', 'Refused; failureCode says why.'], ['CANCELLED', 'Given up before it was paid.'],
  ['PARTIALLY_REFUNDED', 'Given back in part.'], ['REFUNDED', 'Given back.'], ['DISPUTED', 'The holder of the card contests it at the bank.']]);
select app_private.create_enum('payment_intent_status', 'How far a payment is.', array[
  ['REQUIRES_PAYMENT_METHOD', 'It waits for a card: the first, or another after a refusal.'], ['REQUIRES_CONFIRMATION', 'It is not confirmed yet.'],
  ['REQUIRES_ACTION', 'The payer has to confirm it at the bank; see nextActionUrl.'], ['PROCESSING', 'The processor has not decided yet.'],
  ['REQUIRES_CAPTURE', 'Granted, but not taken.'], ['SUCCEEDED', 'Paid.'], ['CANCELED', 'Given up.']]);
select app_private.create_enum('refund_status', 'What became of a refund.', array[
  ['PENDING', 'On its way.'], ['REQUIRES_ACTION', 'The payer has to do something to get it.'], ['SUCCEEDED', 'Given back.'],
  ['FAILED', 'It could not be given back.'], ['CANCELLED', 'Given up.']]);
select app_private.create_enum('refund_reason', 'Why money is given back.', array[
  ['REQUESTED_BY_CUSTOMER', 'The payer asked for it.'], ['RESERVATION_REFUNDED', 'The reservation was refunded.'], ['DUPLICATE', 'It was paid twice, or more than was due.'],
  ['FRAUDULENT', 'Somebody else''s card.'], ['OTHER', 'Another reason.']]);

alter table app_public.deposits add constraint deposits_in_project unique (id, project_id);

create table app_public.payment_intents (
  id uuid primary key default uuidv7(),
  organization_id uuid not null references app_public.organizations on delete restrict,
  project_id uuid,
  reservation_id uuid,
  deposit_id uuid,
  lead_id uuid,
  buyer_id uuid,
  user_id uuid not null references app_public.users on delete restrict,
  created_by_id uuid not null default app_public.current_user_id() references app_public.users on delete restrict,
  card_id uuid,
  amount app_public.money not null check (amount > 0),
  currency app_public.currency_code not null,
  description app_public.short_text,
  status app_public.payment_intent_status not null,
  processor_id text unique,
  next_action_url app_public.url,
  attempt_key text,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint payment_intents_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete restrict,
  constraint payment_intents_card_of_payer foreign key (card_id, user_id) references app_public.processor_cards (id, user_id) on delete restrict,
  constraint payment_intents_of_project check (project_id is not null or num_nonnulls(reservation_id, deposit_id, lead_id, buyer_id) = 0),
  unique (id, user_id)
);
create index payment_intents_project on app_public.payment_intents (project_id, organization_id);
create index payment_intents_organization on app_public.payment_intents (organization_id);
create index payment_intents_user on app_public.payment_intents (user_id, attempt_key);
create index payment_intents_created_by on app_public.payment_intents (created_by_id, attempt_key);
create index payment_intents_card on app_public.payment_intents (card_id, user_id);
create index payment_intents_open on app_public.payment_intents (updated_at) where status not in ('SUCCEEDED', 'CANCELED');
alter table app_public.payment_intents enable row level security;
create policy payer on app_public.payment_intents for select to plat_user
  using (user_id = (select app_hidden.viewer_payer()) or created_by_id = (select app_hidden.viewer_payer()));
grant select on app_public.payment_intents to plat_user, plat_anonymous, plat_worker;

create table app_private.payment_intent_secrets (
  intent_id uuid primary key references app_public.payment_intents on delete cascade,
  client_secret text not null
);
alter table app_private.payment_intent_secrets enable row level security;
comment on table app_private.payment_intent_secrets is 'What the client of a payer completes a payment with; good for that one payment.';

create table app_public.processor_charges (
  id uuid primary key default uuidv7(),
  intent_id uuid not null,
  organization_id uuid not null references app_public.organizations on delete restrict,
  project_id uuid,
  reservation_id uuid,
  deposit_id uuid,
  lead_id uuid,
  buyer_id uuid,
  user_id uuid not null references app_public.users on delete restrict,
  card_id uuid,
  processor_id text not null constraint processor_charges_once unique,
  is_tentative boolean not null default true,
  payment_intent_id text,
  status app_public.charge_status not null default 'PENDING',
  status_changed_at timestamptz not null default now(),
  amount app_public.money not null check (amount > 0),
  amount_refunded app_public.money not null default 0,
  amount_refunding app_public.money not null default 0,
  fee app_public.money,
  net numeric,
  currency app_public.currency_code not null,
  method app_public.payment_method not null default 'CARD',
  card_brand app_public.card_brand,
  card_last4 text,
  description app_public.short_text,
  statement_descriptor text,
  receipt_url app_public.url,
  failure_code text,
  failure_message text,
  captured_at timestamptz,
  last_refunded_at timestamptz,
  disputed_at timestamptz,
  dispute_status text check (dispute_status in ('OPEN', 'WON', 'LOST')),
  metadata jsonb,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  constraint processor_charges_refunds_within check (amount_refunded + amount_refunding <= amount),
  constraint processor_charges_intent_id_fkey foreign key (intent_id, user_id) references app_public.payment_intents (id, user_id) on delete restrict,
  constraint processor_charges_card_id_fkey foreign key (card_id, user_id) references app_public.processor_cards (id, user_id) on delete restrict,
  constraint processor_charges_project_id_fkey foreign key (project_id, organization_id) references app_public.projects (id, organization_id) on delete restrict,
  constraint processor_charges_reservation_id_fkey foreign key (reservation_id, project_id) references app_public.reservations (id, project_id) on delete restrict,
  constraint processor_charges_deposit_id_fkey foreign key (deposit_id, project_id) references app_public.deposits (id, project_id) on delete restrict,
  constraint processor_charges_lead_id_fkey foreign key (lead_id, project_id) references app_public.leads (id, project_id) on delete restrict,
  constraint processor_charges_buyer_id_fkey foreign key (buyer_id, project_id) references app_public.buyers (id, project_id) on delete restrict,
  constraint processor_charges_of_project check (project_id is not null or num_nonnulls(reservation_id, deposit_id, lead_id, buyer_id) = 0),
  unique (id, organization_id)
);
comment on constraint processor_charges_refunds_within on app_public.processor_charges is 'Refunds are never above the charge.';
comment on constraint processor_charges_card_id_fkey on app_public.processor_charges is E'@fieldName card\n@backwardBehavior -*\n\nThe card; null for all but its user.';
create index processor_charges_organization on app_public.processor_charges (organization_id, id desc);
create index processor_charges_organization_status on app_public.processor_charges (organization_id, status, id desc);
create index processor_charges_project on app_public.processor_charges (project_id, id desc);
create index processor_charges_user on app_public.processor_charges (user_id, id desc);
create index processor_charges_intent on app_public.processor_charges (intent_id, id desc);
create unique index processor_charges_tentative on app_public.processor_charges (intent_id) where is_tentative;
create index processor_charges_reservation on app_public.processor_charges (reservation_id, id desc) where reservation_id is not null;
create index processor_charges_deposit on app_public.processor_charges (deposit_id, id desc) where deposit_id is not null;
create index processor_charges_lead on app_public.processor_charges (lead_id, id desc) where lead_id is not null;
create index processor_charges_buyer on app_public.processor_charges (buyer_id, id desc) where buyer_id is not null;
create index processor_charges_card on app_public.processor_charges (card_id, user_id) where card_id is not null;

create table app_public.processor_refunds (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  charge_id uuid not null,
  amount app_public.money not null check (amount > 0),
  status app_public.refund_status not null default 'PENDING',
  reason app_public.refund_reason not null default 'REQUESTED_BY_CUSTOMER',
  note app_public.long_text,
  processor_id text constraint processor_refunds_once unique,
  failure_message text,
  created_by_id uuid default app_public.current_user_id() references app_public.users on delete restrict,
  attempt_key text,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint processor_refunds_charge_id_fkey foreign key (charge_id, organization_id) references app_public.processor_charges (id, organization_id) on delete restrict
);
create index processor_refunds_charge on app_public.processor_refunds (charge_id, id);
create index processor_refunds_created_by on app_public.processor_refunds (created_by_id, attempt_key);
create index processor_refunds_open on app_public.processor_refunds (updated_at) where status in ('PENDING', 'REQUIRES_ACTION');

create function app_hidden.viewer_charges() returns setof uuid
language plpgsql stable security definer rows 5 set search_path = pg_catalog, pg_temp as $$
begin
  if app_hidden.viewer_payer() is null then
    return;
  end if;
  return query
    -- Those of the viewer's own organizations are among theirs anyway.
    select c.id from app_public.processor_charges c where c.user_id = app_public.current_user_id()
      and c.organization_id <> all (array(select app_hidden.viewer_organizations('finance.read')))
    union select c.id from app_public.processor_charges c where c.buyer_id = any (array(select app_hidden.viewer_purchases()))
    union select c.id from app_public.processor_charges c where c.lead_id = any (array(select app_hidden.viewer_purchase_leads()))
    union select c.id from app_public.processor_charges c where c.reservation_id = any (array(select app_hidden.viewer_purchase_reservations()));
end $$;
comment on function app_hidden.viewer_charges() is 'The charges that the viewer paid, and those of the viewer''s own purchases, beside those of the viewer''s organizations.';
grant execute on function app_hidden.viewer_charges() to plat_user;

alter table app_public.processor_charges enable row level security;
create policy finance on app_public.processor_charges for select to plat_user
  using (organization_id = any (array(select app_hidden.viewer_organizations('finance.read')))
    or project_id = any (array(select app_hidden.viewer_projects('finance.read')))
    or user_id = (select app_hidden.viewer_payer())
    or buyer_id = any (array(select app_hidden.viewer_purchases()))
    or lead_id = any (array(select app_hidden.viewer_purchase_leads()))
    or reservation_id = any (array(select app_hidden.viewer_purchase_reservations())));
grant select on app_public.processor_charges to plat_user, plat_anonymous, plat_worker;
alter table app_public.processor_refunds enable row level security;
create policy seers_of_charge on app_public.processor_refunds for select to plat_user
  using (exists (select from app_public.processor_charges c where c.id = processor_refunds.charge_id));
grant select on app_public.processor_refunds to plat_user, plat_anonymous, plat_worker;

--------------------------------------------------------------------------------------------------------

select app_private.make_record('processor_charges', 'charge', 'finance.write');
create trigger _060_refuse_archived before insert on app_public.processor_charges for each row execute function app_private.tg__refuse_archived();
update app_hidden.record_types set event_permission = 'finance.read' where table_name = 'processor_charges';
insert into app_private.event_names (subject, column_name, value, name) values
  ('charge', 'status', 'REQUIRES_ACTION', 'requires_action'), ('charge', 'status', 'FAILED', 'failed'), ('charge', 'status', 'CANCELLED', 'cancelled'),
  ('charge', 'status', 'DISPUTED', 'disputed'), ('charge', 'captured_at', null, 'succeeded'), ('charge', 'last_refunded_at', null, 'refunded');
select app_private.make_state_machine('processor_charges', 'charge',
  steps => array[
    ['PENDING', 'REQUIRES_ACTION', 'service'], ['PENDING', 'SUCCEEDED', 'service'], ['PENDING', 'FAILED', 'service'], ['PENDING', 'CANCELLED', 'service'],
    ['REQUIRES_ACTION', 'SUCCEEDED', 'service'], ['REQUIRES_ACTION', 'FAILED', 'service'], ['REQUIRES_ACTION', 'CANCELLED', 'service'],
    ['SUCCEEDED', 'PARTIALLY_REFUNDED', 'service'], ['SUCCEEDED', 'REFUNDED', 'service'], ['SUCCEEDED', 'DISPUTED', 'service'],
    ['PARTIALLY_REFUNDED', 'REFUNDED', 'service'], ['PARTIALLY_REFUNDED', 'SUCCEEDED', 'service'], ['PARTIALLY_REFUNDED', 'DISPUTED', 'service'],
    ['REFUNDED', 'PARTIALLY_REFUNDED', 'service'], ['REFUNDED', 'SUCCEEDED', 'service'], ['REFUNDED', 'DISPUTED', 'service'],
    ['DISPUTED', 'SUCCEEDED', 'service'], ['DISPUTED', 'PARTIALLY_REFUNDED', 'service'], ['DISPUTED', 'REFUNDED', 'service']],
  initial => array['PENDING', 'REQUIRES_ACTION', 'SUCCEEDED', 'FAILED']);

create function app_private.tg_processor_charges__keep() returns trigger
language plpgsql volatile as $$
begin
  raise exception 'charges are never deleted, nor is what they are about changed' using errcode = 'restrict_violation';
end $$;
create trigger _100_keep before delete on app_public.processor_charges for each row execute function app_private.tg_processor_charges__keep();
create trigger _100_same before update on app_public.processor_charges for each row
  when (row(old.id, old.intent_id, old.organization_id, old.project_id, old.reservation_id, old.deposit_id, old.lead_id, old.user_id, old.amount, old.currency)
    is distinct from row(new.id, new.intent_id, new.organization_id, new.project_id, new.reservation_id, new.deposit_id, new.lead_id, new.user_id, new.amount, new.currency))
  execute function app_private.tg_processor_charges__keep();
create trigger _100_keep before delete on app_public.processor_refunds for each row execute function app_private.tg_processor_charges__keep();
create trigger _100_same before update on app_public.processor_refunds for each row
  when (row(old.id, old.organization_id, old.charge_id, old.amount) is distinct from row(new.id, new.organization_id, new.charge_id, new.amount))
  execute function app_private.tg_processor_charges__keep();

create function app_private.charge_status(c app_public.processor_charges, refunded numeric) returns text
language sql stable as $$
  select case when c.captured_at is null then c.status when c.dispute_status in ('OPEN', 'LOST') then 'DISPUTED' when refunded = c.amount then 'REFUNDED'
    when refunded > 0 then 'PARTIALLY_REFUNDED' else 'SUCCEEDED' end
$$;
comment on function app_private.charge_status(app_public.processor_charges, numeric) is 'The status that disputes and so much refunded make of a charge that was paid.';

create function app_private.tg_processor_charges__begin() returns trigger
language plpgsql volatile as $$
begin
  -- Nothing yet, with the digits of the currency.
  new.amount_refunded := new.amount - new.amount;
  new.amount_refunding := new.amount - new.amount;
  return new;
end $$;
create trigger _200_begin before insert on app_public.processor_charges for each row execute function app_private.tg_processor_charges__begin();

-- By difference, so that those who wait for the row of the charge add to what the one before left: never more than the charge, whoever
-- writes refunds.
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
    update app_public.processor_charges c set amount_refunded = c.amount_refunded + given, amount_refunding = c.amount_refunding + on_its_way,
        last_refunded_at = case when given > 0 then clock_timestamp() else c.last_refunded_at end,
        status = app_private.charge_status(c, c.amount_refunded + given)
      where c.id = new.charge_id;
    perform set_config('plat.service', service, true);
  end if;
  return null;
end $$;
create trigger _500_count after insert or update of status on app_public.processor_refunds for each row execute function app_private.tg_processor_refunds__count();

--------------------------------------------------------------------------------------------------------
-- Beginning.

create function app_private.payment_facts(p app_public.payment_intents) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', p.id, 'processorId', p.processor_id, 'status', p.status, 'amount', p.amount::text, 'currency', p.currency,
    'description', p.description, 'confirm', p.card_id is not null, 'open', p.status not in ('SUCCEEDED', 'CANCELED'),
    'customerId', k.processor_id, 'cardId', c.processor_id, 'accountId', a.processor_id, 'url', null,
    'metadata', jsonb_strip_nulls(jsonb_build_object('plat_payment', p.id, 'plat_organization', p.organization_id, 'plat_project', p.project_id,
      'plat_reservation', p.reservation_id, 'plat_deposit', p.deposit_id)))
  from (select) x
  left join app_public.processor_cards c on c.id = p.card_id
  left join app_private.processor_customers k on k.user_id = c.user_id
  left join app_private.payments_accounts a on a.organization_id = p.organization_id
$$;
comment on function app_private.payment_facts(app_public.payment_intents) is 'What the processor is told of a payment, and how far it is.';

create function app_private.amount_of_payment(input jsonb, currency text) returns numeric
language plpgsql stable as $$
declare
  amount numeric := app_hidden.to_money(app_hidden.checked(input ->> 'amount', 'app_public.money', 'amount')::numeric, currency, 'amount');
begin
  if amount <= 0 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Give an amount above zero.', '{"field": "amount"}');
  elsif scale(amount) = 3 and amount <> round(amount, 2) then
    perform app_hidden.fail('BAD_USER_INPUT', format('Cards in %s are charged to the second digit after the point; let the third be 0.', currency), '{"field": "amount"}');
  end if;
  return amount;
end $$;

create function app_hidden.begin_payment(operation text, input jsonb, repeat jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  payer uuid := app_hidden.require_payer();
  attempt record;
  intent app_public.payment_intents;
  card app_public.processor_cards;
  deposit app_public.deposits;
  reservation app_public.reservations;
  wanted_currency text := upper(nullif(btrim(input ->> 'currency'), ''));
  currencies text[];
  due numeric;
  taken numeric;
  is_own boolean;
  actor text := coalesce(current_setting('plat.actor_type', true), '');
begin
  attempt := app_private.claim_attempt(repeat);
  if attempt.answered then
    return '{"answered": true}';
  end if;
  if attempt.key is not null then
    select p.* into intent from app_public.payment_intents p
      where p.created_by_id = payer and p.attempt_key = attempt.key and p.inserted_at > now() - interval '24 hours' order by p.id desc limit 1;
    if intent.id is not null then
      return app_private.payment_facts(intent) || '{"answered": false}';
    end if;
  end if;
  perform app_private.rate_limit('payments', payer::text, 120, interval '10 minutes');

  -- What is paid.
  if input ->> 'depositId' is not null then
    select d.* into deposit from app_public.deposits d
      where d.id = app_hidden.record_id('deposits', input ->> 'depositId', 'depositId') and d.deleted_at is null for no key update;
    is_own := coalesce(deposit.buyer_id = any (array(select app_hidden.viewer_purchases())), false)
      or coalesce(deposit.lead_id = any (array(select app_hidden.viewer_purchase_leads())), false)
      or coalesce(deposit.reservation_id = any (array(select app_hidden.viewer_purchase_reservations())), false);
    if deposit.id is null or not (is_own or app_hidden.deal_can(deposit.organization_id, deposit.project_id, coalesce(
        (select b.assignee_id from app_public.buyers b where b.id = deposit.buyer_id), (select l.assignee_id from app_public.leads l where l.id = deposit.lead_id)), 'sale.read')) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such deposit.', '{"field": "depositId"}');
    end if;
    intent.project_id := deposit.project_id;
    intent.reservation_id := deposit.reservation_id;
    intent.lead_id := deposit.lead_id;
    intent.buyer_id := deposit.buyer_id;
    intent.deposit_id := deposit.id;
    if input ->> 'reservationId' is not null and app_hidden.record_id('reservations', input ->> 'reservationId', 'reservationId') is distinct from deposit.reservation_id then
      perform app_hidden.fail('BAD_USER_INPUT', 'The deposit is not of this reservation; name one of the two.', '{"field": "reservationId"}');
    end if;
  elsif input ->> 'reservationId' is not null then
    select r.* into reservation from app_public.reservations r
      where r.id = app_hidden.record_id('reservations', input ->> 'reservationId', 'reservationId') and r.deleted_at is null;
    is_own := reservation.id = any (array(select app_hidden.viewer_purchase_reservations()));
    if reservation.id is null or not (is_own or app_hidden.deal_can(reservation.organization_id, reservation.project_id, reservation.assignee_id, 'sale.read')) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such reservation.', '{"field": "reservationId"}');
    end if;
    intent.project_id := reservation.project_id;
    intent.reservation_id := reservation.id;
    intent.lead_id := reservation.lead_id;
    intent.buyer_id := reservation.purchase_id;
  elsif input ->> 'organizationId' is not null then
    intent.organization_id := app_hidden.record_id('organizations', input ->> 'organizationId', 'organizationId');
    if not exists (select from app_public.organizations o where o.id = intent.organization_id and o.deleted_at is null
        and (o.has_public_project or o.id = any (array(select app_hidden.viewer_organizations('org.member'))))) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such organization.', '{"field": "organizationId"}');
    end if;
    is_own := true;
  else
    perform app_hidden.fail('BAD_USER_INPUT', 'Name the deposit, the reservation or the organization that is paid.', '{"field": "depositId"}');
  end if;
  if intent.project_id is not null then
    select p.organization_id, array[p.currency::text] into intent.organization_id, currencies from app_public.projects p where p.id = intent.project_id;
    if input ->> 'organizationId' is not null and app_hidden.record_id('organizations', input ->> 'organizationId', 'organizationId') <> intent.organization_id then
      perform app_hidden.fail('BAD_USER_INPUT', 'It is paid to the organization that sells; leave organizationId out.', '{"field": "organizationId"}');
    end if;
    if not is_own and not app_hidden.project_can(intent.project_id, intent.organization_id, 'finance.write') then
      perform app_hidden.fail('FORBIDDEN', 'This takes the permission finance.write, or to be the buyer.', '{"permission": "finance.write"}');
    end if;
    if exists (select from app_public.projects p where p.id = intent.project_id and p.archived_at is not null) then
      perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; set its status back first.');
    end if;
  else
    currencies := array(select distinct p.currency::text from app_public.projects p where p.organization_id = intent.organization_id and p.archived_at is null and p.deleted_at is null);
  end if;

  intent.currency := coalesce(wanted_currency, case when cardinality(currencies) = 1 then currencies[1] end);
  if intent.currency is null or intent.currency <> all (currencies) then
    perform app_hidden.fail('BAD_USER_INPUT', case when cardinality(currencies) = 0 then 'The organization has no project to pay for.'
      else format('It is paid in %s.', array_to_string(currencies, ' or ')) end, '{"field": "currency"}');
  end if;
  intent.amount := app_private.amount_of_payment(input, intent.currency);
  if not exists (select from app_private.payments_accounts a where a.organization_id = intent.organization_id and a.status = 'ENABLED') then
    perform app_hidden.fail('CONFLICT', 'The organization takes no payments yet: createOrganizationPaymentsRepresentative names whom the processor wants to know first.',
      '{"field": "organizationId"}');
  end if;
  if deposit.id is not null then
    due := app_public.deposits_amount_due(deposit);
    taken := (select coalesce(sum(c.amount), 0) from app_public.processor_charges c where c.deposit_id = deposit.id and c.status in ('PENDING', 'REQUIRES_ACTION'));
    if deposit.status not in ('SCHEDULED', 'INVOICED', 'PROCESSING', 'PARTIALLY_PAID') then
      perform app_hidden.fail('CONFLICT', format('A deposit that is %s takes no payment.', deposit.status), '{"field": "depositId"}');
    elsif intent.amount > due - deposit.amount_paid - taken then
      perform app_hidden.fail('BAD_USER_INPUT', format('That is more than is due, %s%s.', due - deposit.amount_paid - taken,
        case when taken > 0 then format('; %s is on its way', taken) else '' end), '{"field": "amount"}');
    end if;
  elsif reservation.id is not null then
    if reservation.status not in ('PENDING', 'CONFIRMED', 'CONVERTED') then
      perform app_hidden.fail('CONFLICT', format('A reservation that is %s takes no payment.', reservation.status), '{"field": "reservationId"}');
    elsif intent.amount > reservation.price then
      perform app_hidden.fail('BAD_USER_INPUT', format('That is more than the price, %s.', reservation.price), '{"field": "amount"}');
    end if;
  end if;

  -- Whose card: nobody's but the viewer's own.
  if input ->> 'cardId' is not null or operation = 'createProcessorCharge' then
    select c.* into card from app_public.processor_cards c
      where c.user_id = payer and case when input ->> 'cardId' is null then c.is_default and c.removed_at is null
        else c.id = app_hidden.record_id('processor_cards', input ->> 'cardId', 'cardId') end;
    if card.id is null then
      if input ->> 'cardId' is null then
        perform app_hidden.fail('BAD_USER_INPUT', 'You have no card yet; add one with createProcessorCard.', '{"field": "cardId"}');
      end if;
      perform app_hidden.fail('NOT_FOUND', 'You have no such card.', '{"field": "cardId"}');
    elsif app_public.processor_cards_status(card) <> 'ACTIVE' then
      perform app_hidden.fail('CONFLICT', format('This card is %s; take another.', app_public.processor_cards_status(card)), '{"field": "cardId"}');
    end if;
  end if;

  intent.user_id := case when is_own or card.id is not null then payer
    else coalesce((select b.user_id from app_public.buyers b where b.id = intent.buyer_id), payer) end;
  if is_own and intent.project_id is not null and not app_hidden.project_can(intent.project_id, intent.organization_id, 'sale.write') then
    perform set_config('plat.actor_type', 'BUYER', true);
  end if;
  insert into app_public.payment_intents (organization_id, project_id, reservation_id, deposit_id, lead_id, buyer_id, user_id, created_by_id, card_id, amount, currency, description,
      status, attempt_key)
    values (intent.organization_id, intent.project_id, intent.reservation_id, intent.deposit_id, intent.lead_id, intent.buyer_id, intent.user_id, payer, card.id, intent.amount,
      intent.currency, app_hidden.checked(nullif(btrim(input ->> 'description'), ''), 'app_public.short_text', 'description'),
      case when card.id is null then 'REQUIRES_PAYMENT_METHOD' else 'REQUIRES_CONFIRMATION' end, attempt.key)
    returning * into intent;
  if card.id is not null then
    insert into app_public.processor_charges (intent_id, organization_id, project_id, reservation_id, deposit_id, lead_id, buyer_id, user_id, card_id, processor_id, amount, currency,
        card_brand, card_last4, description)
      values (intent.id, intent.organization_id, intent.project_id, intent.reservation_id, intent.deposit_id, intent.lead_id, intent.buyer_id, intent.user_id, card.id, 'plat_' || intent.id,
        intent.amount, intent.currency, card.brand, card.last4, intent.description);
  end if;
  perform set_config('plat.actor_type', actor, true);
  return app_private.payment_facts(intent) || '{"answered": false}';
end $$;
comment on function app_hidden.begin_payment(text, jsonb, jsonb) is
  'Checks a payment as the viewer and writes it down, before the processor is asked. Under an idempotency key that it began with it goes on.';

create function app_private.refund_facts(r app_public.processor_refunds) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', r.id, 'chargeId', c.id, 'processorId', r.processor_id, 'processorChargeId', c.processor_id, 'amount', r.amount::text, 'currency', c.currency,
    'reason', r.reason, 'open', r.status in ('PENDING', 'REQUIRES_ACTION'), 'toAccount', exists (select from app_private.payments_accounts a where a.organization_id = c.organization_id))
  from app_public.processor_charges c where c.id = r.charge_id
$$;
comment on function app_private.refund_facts(app_public.processor_refunds) is 'What the processor is told of a refund, and how far it is.';

create function app_hidden.begin_refund(input jsonb, repeat jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  viewer uuid := app_hidden.require_viewer();
  attempt record;
  charge app_public.processor_charges;
  refund app_public.processor_refunds;
  rest numeric;
  wanted numeric;
begin
  select c.* into charge from app_public.processor_charges c
    where c.id = app_hidden.record_id('processor_charges', input ->> 'chargeId', 'chargeId')
      and (app_hidden.organization_can(c.organization_id, 'finance.read') or app_hidden.project_can(c.project_id, c.organization_id, 'finance.read')
        or c.id in (select app_hidden.viewer_charges()));
  if charge.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such charge.', '{"field": "chargeId"}');
  elsif not (app_hidden.organization_can(charge.organization_id, 'finance.write') or coalesce(app_hidden.project_can(charge.project_id, charge.organization_id, 'finance.write'), false)) then
    perform app_hidden.fail('FORBIDDEN', 'This takes the permission finance.write.', '{"permission": "finance.write"}');
  end if;
  attempt := app_private.claim_attempt(repeat);
  if attempt.answered then
    return '{"answered": true}';
  end if;
  if attempt.key is not null then
    select r.* into refund from app_public.processor_refunds r
      where r.created_by_id = viewer and r.attempt_key = attempt.key and r.inserted_at > now() - interval '24 hours' order by r.id desc limit 1;
    if refund.id is not null then
      return app_private.refund_facts(refund) || '{"answered": false}';
    end if;
  end if;
  perform app_private.rate_limit('refunds', viewer::text, 1000, interval '10 minutes');
  if exists (select from app_public.projects p where p.id = charge.project_id and p.archived_at is not null) then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; set its status back first.');
  end if;
  -- Those who refund it at once take turns from here.
  select c.* into charge from app_public.processor_charges c where c.id = charge.id for no key update;
  rest := charge.amount - charge.amount_refunded - charge.amount_refunding;
  if charge.status not in ('SUCCEEDED', 'PARTIALLY_REFUNDED') or rest = 0 then
    perform app_hidden.fail('CONFLICT', case when charge.status in ('PENDING', 'REQUIRES_ACTION') then 'This charge is not paid yet.'
      when charge.status = 'DISPUTED' then 'This charge is disputed: the bank decides about the money.'
      when charge.status in ('FAILED', 'CANCELLED') then format('A charge that is %s has nothing to give back.', charge.status)
      else 'This charge was refunded already.' end, '{"field": "chargeId"}');
  end if;
  wanted := case when input ->> 'amount' is null then rest else app_private.amount_of_payment(input, charge.currency) end;
  if wanted > rest then
    perform app_hidden.fail('BAD_USER_INPUT', format('That is more than can be given back, %s.', rest), '{"field": "amount"}');
  end if;
  insert into app_public.processor_refunds (organization_id, charge_id, amount, reason, note, created_by_id, attempt_key)
    values (charge.organization_id, charge.id, wanted, coalesce(input ->> 'reason', 'REQUESTED_BY_CUSTOMER'),
      app_hidden.checked(nullif(btrim(input ->> 'note'), ''), 'app_public.long_text', 'note'), viewer, attempt.key)
    returning * into refund;
  return app_private.refund_facts(refund) || '{"answered": false, "isNew": true}';
end $$;
comment on function app_hidden.begin_refund(jsonb, jsonb) is
  'Checks a refund as the viewer and writes it down, before the processor is asked: the charge has that much less to give from then on.';

--------------------------------------------------------------------------------------------------------
-- What the processor answered.

create function app_private.settle_charge(id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.processor_charges c set status = app_private.charge_status(c, c.amount_refunded)
    where c.id = settle_charge.id and c.status <> app_private.charge_status(c, c.amount_refunded);
end $$;
comment on function app_private.settle_charge(uuid) is 'Gives a charge that was paid the status that its refunds and disputes make.';

create function app_private.apply_refund(charge app_public.processor_charges, state jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  refund app_public.processor_refunds;
begin
  select r.* into refund from app_public.processor_refunds r
    where r.charge_id = charge.id and (r.processor_id = state ->> 'id' or (r.processor_id is null and r.id::text = state ->> 'ours')) for update;
  if refund.id is null then
    -- One that was made at the processor, by hand. Where it does not fit beside ours, those are refused there and there is room soon.
    begin
      insert into app_public.processor_refunds (organization_id, charge_id, amount, status, reason, processor_id, created_by_id)
        values (charge.organization_id, charge.id, (state ->> 'amount')::numeric, state ->> 'status', state ->> 'reason', state ->> 'id', null);
    exception when check_violation then
      null;
    end;
  elsif refund.status in ('FAILED', 'CANCELLED') or (refund.status = 'SUCCEEDED' and state ->> 'status' in ('PENDING', 'REQUIRES_ACTION')) then
    null; -- older than what is known
  elsif refund.processor_id is null or refund.status <> state ->> 'status' then
    update app_public.processor_refunds r set processor_id = state ->> 'id', status = state ->> 'status', failure_message = state ->> 'failureMessage', updated_at = now()
      where r.id = refund.id;
  end if;
end $$;
comment on function app_private.apply_refund(app_public.processor_charges, jsonb) is 'What the processor says of a refund of a charge that is locked.';

create function app_private.note_payment(id uuid, state jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  intent app_public.payment_intents;
  charge app_public.processor_charges;
  told jsonb := nullif(state -> 'charge', 'null');
  becomes text;
  service text := coalesce(current_setting('plat.service', true), '');
  refund jsonb;
begin
  select p.* into intent from app_public.payment_intents p where p.id = id for update;
  if intent.id is null or (intent.processor_id is not null and intent.processor_id <> state ->> 'id') then
    return '{"open": false}';
  end if;
  -- Money that moved is written down in archived projects too.
  perform set_config('plat.service', 'on', true), set_config('plat.clock', 'on', true);
  if state ->> 'clientSecret' is not null then
    insert into app_private.payment_intent_secrets as s (intent_id, client_secret) values (id, state ->> 'clientSecret') on conflict do nothing;
  end if;
  update app_public.payment_intents p set processor_id = state ->> 'id', next_action_url = case when state ->> 'status' = 'REQUIRES_ACTION' then state ->> 'nextActionUrl' end,
      status = case when p.status in ('SUCCEEDED', 'CANCELED') and state ->> 'status' <> 'SUCCEEDED' then p.status else state ->> 'status' end, updated_at = now()
    where p.id = id returning p.* into intent;

  if told is not null then
    select c.* into charge from app_public.processor_charges c
      where c.intent_id = id and (c.is_tentative or c.processor_id = told ->> 'id') order by c.processor_id = told ->> 'id' desc limit 1 for update;
    becomes := told ->> 'status';
    if charge.id is null then
      insert into app_public.processor_charges (intent_id, organization_id, project_id, reservation_id, deposit_id, lead_id, buyer_id, user_id, card_id, processor_id, payment_intent_id,
          amount, currency, description, status)
        values (intent.id, intent.organization_id, intent.project_id, intent.reservation_id, intent.deposit_id, intent.lead_id, intent.buyer_id, intent.user_id, intent.card_id,
          told ->> 'id', intent.processor_id, intent.amount, intent.currency, intent.description, 'PENDING')
        returning * into charge;
    end if;
  else
    select c.* into charge from app_public.processor_charges c where c.intent_id = id and c.is_tentative for update;
    becomes := case when state ->> 'status' = 'CANCELED' then 'CANCELLED' when state ->> 'status' = 'REQUIRES_ACTION' then 'REQUIRES_ACTION'
      when state ->> 'status' = 'REQUIRES_PAYMENT_METHOD' and state -> 'failure' <> 'null' then 'FAILED' end;
  end if;
  if charge.id is not null and (told is not null or becomes is not null) then
    -- A step that is not there is one that was taken before: this state is older than what is known.
    if not exists (select from app_hidden.transitions t where t.subject = 'charge' and t.from_state = charge.status and t.to_state = becomes)
      or charge.status not in ('PENDING', 'REQUIRES_ACTION') then
      becomes := null;
    end if;
    update app_public.processor_charges c set
        processor_id = coalesce(told ->> 'id', case when c.is_tentative then intent.processor_id else c.processor_id end), payment_intent_id = intent.processor_id,
        is_tentative = c.is_tentative and told is null and coalesce(becomes, '') not in ('FAILED', 'CANCELLED'),
        status = coalesce(becomes, c.status),
        captured_at = case when becomes = 'SUCCEEDED' then coalesce((told ->> 'capturedAt')::timestamptz, now()) else c.captured_at end,
        fee = coalesce((told ->> 'fee')::numeric, c.fee), net = coalesce((told ->> 'net')::numeric, c.net),
        method = coalesce(told ->> 'method', c.method), card_brand = coalesce(told ->> 'brand', c.card_brand), card_last4 = coalesce(told ->> 'last4', c.card_last4),
        statement_descriptor = coalesce(told ->> 'statementDescriptor', c.statement_descriptor), receipt_url = coalesce(told ->> 'receiptUrl', c.receipt_url),
        failure_code = case when becomes in ('FAILED', 'CANCELLED') then coalesce(told ->> 'failureCode', state -> 'failure' ->> 'code') else c.failure_code end,
        failure_message = case when becomes in ('FAILED', 'CANCELLED') then coalesce(told ->> 'failureMessage', state -> 'failure' ->> 'message') else c.failure_message end,
        disputed_at = coalesce(c.disputed_at, (told ->> 'disputedAt')::timestamptz),
        dispute_status = case when c.dispute_status in ('WON', 'LOST') then c.dispute_status else coalesce(told ->> 'disputeStatus', c.dispute_status) end
      where c.id = charge.id returning c.* into charge;
    for refund in select value from jsonb_array_elements(coalesce(told -> 'refunds', '[]')) loop
      perform app_private.apply_refund(charge, refund);
    end loop;
    perform app_private.settle_charge(charge.id);
  end if;
  perform set_config('plat.service', service, true), set_config('plat.clock', '', true);
  return app_private.payment_facts(intent);
end $$;
comment on function app_private.note_payment(uuid, jsonb) is
  'Writes down the state that a payment has at the processor: of its intent, its charge, refunds and disputes. Again, or an older state after a newer one, changes nothing.';

create function app_private.give_up_payment(id uuid, code text, message text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  service text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true), set_config('plat.clock', 'on', true);
  update app_public.payment_intents p set status = 'CANCELED', updated_at = now()
    where p.id = id and p.processor_id is null and p.status not in ('SUCCEEDED', 'CANCELED');
  if found then
    update app_public.processor_charges c set status = 'CANCELLED', is_tentative = false, failure_code = code, failure_message = message
      where c.intent_id = id and c.is_tentative;
  end if;
  perform set_config('plat.service', service, true), set_config('plat.clock', '', true);
end $$;
comment on function app_private.give_up_payment(uuid, text, text) is 'Ends a payment that never came to be at the processor, or was never confirmed there.';

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
    update app_public.processor_refunds r set status = 'FAILED', failure_message = state ->> 'failureMessage', updated_at = now()
      where r.id = id and r.processor_id is null and r.status = 'PENDING';
  else
    perform app_private.apply_refund(charge, state || jsonb_build_object('ours', id));
  end if;
  perform app_private.settle_charge(charge.id);
  perform set_config('plat.service', service, true), set_config('plat.clock', '', true);
end $$;
comment on function app_private.note_refund(uuid, jsonb) is 'Writes down what the processor says of a refund; without an id, that it refused it.';

create function app_private.payment_of_processor(processor_id text) returns jsonb
language sql stable as $$
  select app_private.payment_facts(p) from app_public.payment_intents p where p.processor_id = $1
$$;
comment on function app_private.payment_of_processor(text) is 'The payment that has that id at the processor; null for one that is not ours.';

create function app_private.payments_to_reconcile(most int) returns setof jsonb
language sql stable as $$
  (select app_private.payment_facts(p) || jsonb_build_object('kind', 'payment', 'abandon', p.card_id is not null and p.status in ('REQUIRES_CONFIRMATION', 'REQUIRES_PAYMENT_METHOD')
      or p.inserted_at < now() - interval '24 hours')
    from app_public.payment_intents p
    where p.status not in ('SUCCEEDED', 'CANCELED') and p.updated_at < now() - case when p.card_id is null or p.status = 'REQUIRES_ACTION' then interval '15 minutes' else interval '3 minutes' end
      and not (p.card_id is not null and p.status = 'REQUIRES_PAYMENT_METHOD' and p.inserted_at > now() - interval '24 hours')
    order by p.updated_at limit most)
  union all
  (select app_private.refund_facts(r) || '{"kind": "refund"}' from app_public.processor_refunds r
    where r.status in ('PENDING', 'REQUIRES_ACTION') and r.updated_at < now() - case when r.processor_id is null then interval '3 minutes' else interval '1 hour' end
    order by r.updated_at limit most)
  union all
  (select app_private.representative_facts(r) || '{"kind": "representative"}' from app_public.organization_payments_representatives r
    where r.processor_person_id is null and r.updated_at < now() - interval '3 minutes' order by r.updated_at limit most)
  union all
  -- The accounts of organizations tell by themselves, to those who are reachable.
  (select app_private.account_to_sync(a.processor_id) || '{"kind": "account"}' from app_private.payments_accounts a
    where a.status in ('ONBOARDING', 'PENDING_VERIFICATION', 'RESTRICTED') and a.updated_at < now() - interval '1 hour' order by a.updated_at limit most)
$$;
comment on function app_private.payments_to_reconcile(int) is
  'What was begun a while ago and of which no answer is known; abandon says that it was not confirmed and is not going to be.';

create function app_private.note_looked_at(kind text, id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  -- So that one that cannot be found out about does not keep the others waiting.
  if kind = 'payment' then
    update app_public.payment_intents p set updated_at = now() where p.id = id;
  elsif kind = 'refund' then
    update app_public.processor_refunds r set updated_at = now() where r.id = id;
  elsif kind = 'account' then
    update app_private.payments_accounts a set updated_at = now() where a.organization_id = id;
  end if;
end $$;

create function app_private.refund_to_make(id uuid) returns jsonb
language sql stable as $$ select app_private.refund_facts(r) from app_public.processor_refunds r where r.id = $1 $$;
comment on function app_private.refund_to_make(uuid) is 'What the processor is told of a refund.';
grant execute on function app_private.note_payment, app_private.give_up_payment, app_private.note_refund to plat_authenticator;

--------------------------------------------------------------------------------------------------------
-- Operations.

create domain app_public.made_payment as text;
comment on domain app_public.made_payment is E'@transform payment\n@given\n\nThe payment that the processor was asked for.';
create domain app_public.made_refund as text;
comment on domain app_public.made_refund is E'@transform refund\n@given\n\nThe charge of the refund that the processor was asked for.';

create function app_public.create_payment_intent(made app_public.made_payment, amount app_public.money, reservation_id uuid default null, deposit_id uuid default null,
  organization_id uuid default null, currency app_public.currency_code default null, card_id uuid default null, description text default null)
returns app_public.payment_intents
language sql volatile as $$
  select p from app_public.payment_intents p where p.id = made::uuid
$$;
create function app_public.create_processor_charge(made app_public.made_payment, amount app_public.money, card_id uuid default null, reservation_id uuid default null,
  deposit_id uuid default null, organization_id uuid default null, currency app_public.currency_code default null, description text default null)
returns app_public.processor_charges
language sql volatile as $$
  select c from app_public.processor_charges c where c.intent_id = made::uuid order by c.id desc limit 1
$$;
create function app_public.refund_processor_charge(made app_public.made_refund, charge_id uuid, amount app_public.money default null, reason app_public.refund_reason default null,
  note text default null)
returns app_public.processor_charges
language sql volatile as $$
  select c from app_public.processor_charges c where c.id = made::uuid
$$;
comment on function app_public.create_payment_intent is $$
@arg amount How much.
@arg reservation_id The reservation that it is for.
@arg deposit_id The deposit that is paid.
@arg organization_id The organization that is paid, where it is for neither.
@arg currency The currency of the project; may be left out where there is only one.
@arg card_id A card of the viewer that is charged at once. Without one, the client of the payer completes the payment with clientSecret.
@arg description What the payer reads about it.

Begins a payment by card. With a card it is charged at once: SUCCEEDED; REQUIRES_ACTION, where the bank asks the payer to confirm it at nextActionUrl; or REQUIRES_PAYMENT_METHOD with a charge that is FAILED, where the bank refuses it. Buyers pay their own deposits and reservations; others take the permission finance.write.$$;
comment on function app_public.create_processor_charge is $$
@deprecated Use `createPaymentIntent`.
@arg amount How much.
@arg card_id A card of the viewer; the default one where left out.
@arg reservation_id The reservation that it is for.
@arg deposit_id The deposit that is paid.
@arg organization_id The organization that is paid, where it is for neither.
@arg currency The currency of the project; may be left out where there is only one.
@arg description What the payer reads about it.

Charges a card of the viewer. A charge that the bank refuses is FAILED, and failureCode says why.$$;
comment on function app_public.refund_processor_charge is $$
@arg charge_id The charge.
@arg amount The whole refundable amount where left out.
@arg reason Why; REQUESTED_BY_CUSTOMER where left out.
@arg note What the team should know.

Gives back a charge, or a part of it, to the card it was paid with; all refunds together are never above the charge. Takes the permission finance.write.$$;

create function app_public.payment_intents_client_secret(p app_public.payment_intents) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select s.client_secret from app_private.payment_intent_secrets s
  where s.intent_id = p.id and app_hidden.viewer_payer() in (p.user_id, p.created_by_id)
$$;
create function app_public.payment_intents_charge(p app_public.payment_intents) returns app_public.processor_charges
language sql stable as $$
  select c from app_public.processor_charges c where c.intent_id = p.id order by c.id desc limit 1
$$;
create function app_public.processor_charges_amount_refundable(c app_public.processor_charges) returns app_public.money
language sql stable as $$
  select case when c.status in ('SUCCEEDED', 'PARTIALLY_REFUNDED') then c.amount - c.amount_refunded - c.amount_refunding else c.amount - c.amount end
$$;
create function app_hidden.sees_finance(project_id uuid, organization_id uuid) returns boolean
language sql stable as $$
  select organization_id = any (array(select app_hidden.viewer_organizations('finance.read')))
    or coalesce(project_id = any (array(select app_hidden.viewer_projects('finance.read'))), false)
$$;
comment on function app_hidden.sees_finance(uuid, uuid) is 'Whether the viewer sees the charges of the project, or of the organization where there is none, as one of its team.';
create function app_public.processor_charges_fee(c app_public.processor_charges) returns app_public.money
language sql stable as $$ select case when c.fee is not null and app_hidden.sees_finance(c.project_id, c.organization_id) then c.fee end $$;
create function app_public.processor_charges_net(c app_public.processor_charges) returns numeric
language sql stable as $$ select case when c.net is not null and app_hidden.sees_finance(c.project_id, c.organization_id) then c.net end $$;
create function app_public.processor_charges_metadata(c app_public.processor_charges) returns jsonb
language sql stable as $$ select case when c.metadata is not null and app_hidden.sees_finance(c.project_id, c.organization_id) then c.metadata end $$;
create function app_public.processor_charges_allowed_transitions(c app_public.processor_charges) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('charge', jsonb_build_object('status', c.status)) $$;
create function app_public.processor_refunds_note(r app_public.processor_refunds) returns app_public.long_text
language sql stable as $$ select case when r.note is not null and app_hidden.sees_finance(null, r.organization_id) then r.note end $$;
create function app_public.deposits_charge(d app_public.deposits) returns app_public.processor_charges
language sql stable as $$
  select c from app_public.processor_charges c where c.deposit_id = d.id order by c.status in ('FAILED', 'CANCELLED'), c.id desc limit 1
$$;
create function app_public.buyers_charges(b app_public.buyers) returns setof app_public.processor_charges
language sql stable rows 5 as $$
  select c.* from app_public.processor_charges c
  where c.id = any (array(select k.id from app_public.processor_charges k where k.buyer_id = b.id
    union select k.id from app_public.processor_charges k where k.lead_id = b.lead_id
    union select k.id from app_public.processor_charges k where k.reservation_id = b.reservation_id))
  order by c.id desc
$$;
grant execute on function app_public.create_payment_intent, app_public.create_processor_charge, app_public.refund_processor_charge,
  app_public.payment_intents_client_secret, app_public.payment_intents_charge, app_public.processor_charges_amount_refundable, app_public.processor_charges_fee,
  app_public.processor_charges_net, app_public.processor_charges_metadata, app_public.processor_charges_allowed_transitions, app_public.processor_refunds_note,
  app_public.deposits_charge, app_public.buyers_charges to plat_user, plat_anonymous;
comment on function app_public.payment_intents_client_secret is E'@notNull\n\nWhat the processor''s client library completes the payment with, on the payer''s device.';
comment on function app_public.payment_intents_charge is 'The last charge; null as long as no card was tried.';
comment on function app_public.processor_charges_amount_refundable is E'@notNull\n\nHow much can be given back yet.';
comment on function app_public.processor_charges_fee is 'What the processor keeps; null without the permission finance.read.';
comment on function app_public.processor_charges_net is 'What is left of it; null without the permission finance.read.';
comment on function app_public.processor_charges_metadata is 'Free data of the organization''s own programs; null without the permission finance.read.';
comment on function app_public.processor_charges_allowed_transitions is E'@notNull\n\nThe steps by hand from its status: none, money is refunded.';
comment on function app_public.processor_refunds_note is 'What the team should know; null without the permission finance.read.';
comment on function app_public.deposits_charge is 'The charge that paid it, the last where there are several; null without the permission finance.read, but for the buyer.';
comment on function app_public.buyers_charges is E'@ordered\n\nWhat was charged for the purchase, the lead and the reservation that it came from, latest first; those without the permission finance.read see what they paid themselves.';

comment on table app_public.payment_intents is 'A payment by card, from the wish to the charge.';
comment on column app_public.payment_intents.organization_id is E'@behavior -*\n\nWho is paid.';
comment on column app_public.payment_intents.project_id is E'@behavior -*\n\nThe project.';
comment on column app_public.payment_intents.reservation_id is E'@behavior -*\n\nThe reservation that it is for.';
comment on column app_public.payment_intents.deposit_id is E'@behavior -*\n\nThe deposit that it is for.';
comment on column app_public.payment_intents.lead_id is E'@behavior -*\n\nThe lead whose deposit or reservation it is.';
comment on column app_public.payment_intents.buyer_id is E'@behavior -*\n\nThe purchase whose deposit or reservation it is.';
comment on column app_public.payment_intents.created_by_id is E'@behavior -*\n\nWho asked for it.';
comment on column app_public.payment_intents.card_id is E'@behavior -*\n\nThe card that was named.';
comment on column app_public.payment_intents.user_id is E'@behavior -*\n\nWho pays.';
comment on column app_public.payment_intents.amount is 'How much.';
comment on column app_public.payment_intents.currency is 'In which currency.';
comment on column app_public.payment_intents.description is 'What the payer reads about it.';
comment on column app_public.payment_intents.status is 'How far it is.';
comment on column app_public.payment_intents.processor_id is 'Its id at the processor.';
comment on column app_public.payment_intents.next_action_url is 'Where the payer confirms it at the bank, while it is REQUIRES_ACTION.';
comment on column app_public.payment_intents.attempt_key is E'@behavior -*\n\nUnder which idempotency key it was asked for.';
comment on constraint payment_intents_organization_id_fkey on app_public.payment_intents is E'@forwardBehavior -*\n@backwardBehavior -*\n\nWho is paid.';
comment on constraint payment_intents_project_id_fkey on app_public.payment_intents is E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe project.';
comment on constraint payment_intents_user_id_fkey on app_public.payment_intents is E'@forwardBehavior -*\n@backwardBehavior -*\n\nWho pays.';
comment on constraint payment_intents_created_by_id_fkey on app_public.payment_intents is E'@forwardBehavior -*\n@backwardBehavior -*\n\nWho asked for it.';
comment on constraint payment_intents_card_of_payer on app_public.payment_intents is E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe card.';

comment on table app_public.processor_charges is $$
@portfolio finance.read
@ownFinder viewer_charges
@subject charge
@filterLists status

A charge to a card, at the payment processor.$$;
comment on column app_public.processor_charges.intent_id is E'@behavior -*\n\nThe payment that it is of.';
comment on column app_public.processor_charges.organization_id is E'@filter organizationId\n\nThe organization that is paid.';
comment on column app_public.processor_charges.project_id is E'@filter projectIds\n\nThe project.';
comment on column app_public.processor_charges.reservation_id is E'@filter reservationId\n\nThe reservation that it is for.';
comment on column app_public.processor_charges.deposit_id is E'@filter depositId\n\nThe deposit that it is for.';
comment on column app_public.processor_charges.lead_id is E'@behavior -*\n\nThe lead whose deposit or reservation it is.';
comment on column app_public.processor_charges.buyer_id is E'@filter buyerIds\n\nThe purchase that it is for.';
comment on column app_public.processor_charges.card_id is 'The card.';
comment on column app_public.processor_charges.processor_id is 'Its id at the processor; that of its payment, or the key that was asked under, before there is one.';
comment on column app_public.processor_charges.is_tentative is E'@secret\n@behavior -*\n\nWhether the processor has not made the charge yet.';
comment on column app_public.processor_charges.payment_intent_id is 'The id of its payment intent at the processor.';
comment on column app_public.processor_charges.status is E'@filter\n\nWhat became of it.';
comment on column app_public.processor_charges.status_changed_at is 'Since when it has its status.';
comment on column app_public.processor_charges.amount is 'How much.';
comment on column app_public.processor_charges.amount_refunded is 'How much of it was given back.';
comment on column app_public.processor_charges.amount_refunding is E'@secret\n\nHow much of it is on its way back.';
comment on column app_public.processor_charges.fee is E'@masked\n\nWhat the processor keeps.';
comment on column app_public.processor_charges.net is E'@masked\n\nWhat is left of it.';
comment on column app_public.processor_charges.currency is 'In which currency.';
comment on column app_public.processor_charges.method is 'How it was paid.';
comment on column app_public.processor_charges.card_brand is 'Whose card it was.';
comment on column app_public.processor_charges.card_last4 is 'The last four digits of the card.';
comment on column app_public.processor_charges.description is 'What the payer reads about it.';
comment on column app_public.processor_charges.statement_descriptor is 'What stands on the statement of the card.';
comment on column app_public.processor_charges.receipt_url is 'The receipt of the processor.';
comment on column app_public.processor_charges.failure_code is 'Why it was refused, in the words of the processor, such as card_declined.';
comment on column app_public.processor_charges.failure_message is 'Why it was refused, for people.';
comment on column app_public.processor_charges.captured_at is 'When it was paid.';
comment on column app_public.processor_charges.last_refunded_at is 'When something of it was given back last.';
comment on column app_public.processor_charges.disputed_at is 'When it was contested.';
comment on column app_public.processor_charges.dispute_status is 'How the bank decided: OPEN, WON or LOST; null where nobody contests it.';
comment on column app_public.processor_charges.metadata is E'@masked\n\nFree data of the organization''s own programs.';
comment on constraint processor_charges_organization_id_fkey on app_public.processor_charges is E'@fieldName organization\n@backwardBehavior -*\n\nThe organization that receives the money.';
comment on constraint processor_charges_user_id_fkey on app_public.processor_charges is E'@fieldName user\n@backwardBehavior -*\n\nWho paid.';
comment on constraint processor_charges_intent_id_fkey on app_public.processor_charges is E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe payment.';
comment on constraint processor_charges_project_id_fkey on app_public.processor_charges is
  E'@parent\n@fieldName project\n@foreignFieldName charges\n@backwardPermission finance.read\n@backwardDescription What was charged; null without the permission finance.read.\n\nThe project.';
comment on constraint processor_charges_reservation_id_fkey on app_public.processor_charges is
  E'@fieldName reservation\n@foreignFieldName charges\n@backwardDescription What was charged for it, which its refund leaves alone; those without the permission finance.read see what they paid themselves.\n\nThe reservation.';
comment on constraint processor_charges_deposit_id_fkey on app_public.processor_charges is E'@fieldName deposit\n@backwardBehavior -*\n\nThe deposit.';
comment on constraint processor_charges_lead_id_fkey on app_public.processor_charges is E'@forwardBehavior -*\n@backwardBehavior -*\n\nThe lead.';
comment on constraint processor_charges_buyer_id_fkey on app_public.processor_charges is E'@fieldName buyer\n@backwardBehavior -*\n\nThe purchase.';
comment on table app_public.processor_refunds is 'Money given back of a charge.';
comment on column app_public.processor_refunds.organization_id is E'@behavior -*\n\nWho gives it back.';
comment on column app_public.processor_refunds.charge_id is E'@behavior -*\n\nThe charge.';
comment on column app_public.processor_refunds.amount is 'How much.';
comment on column app_public.processor_refunds.status is 'What became of it.';
comment on column app_public.processor_refunds.reason is 'Why.';
comment on column app_public.processor_refunds.note is E'@masked\n\nWhat the team should know.';
comment on column app_public.processor_refunds.processor_id is 'Its id at the processor.';
comment on column app_public.processor_refunds.failure_message is 'Why it could not be given back.';
comment on column app_public.processor_refunds.created_by_id is 'Who gave it back; null for what was given back by the service, or at the processor.';
comment on column app_public.processor_refunds.attempt_key is E'@behavior -*\n\nUnder which idempotency key it was asked for.';
comment on constraint processor_refunds_charge_id_fkey on app_public.processor_refunds is E'@fieldName charge\n@foreignFieldName refunds\n@backwardDescription What was given back of it.\n\nThe charge.';
comment on constraint processor_refunds_created_by_id_fkey on app_public.processor_refunds is E'@fieldName createdBy\n@backwardBehavior -*\n\nWho gave it back.';
