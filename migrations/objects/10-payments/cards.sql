-- Cards of users, stored by the payment processor. The service only has what may be printed on a receipt: the
-- processor's id, brand, last four digits and expiry. It never receives a number: operations take a single-use token,
-- and the API refuses anything that looks like a card number before SQL sees it.
--
-- Calls to the processor have three steps (src/payments): a begin_… function checks everything with the viewer's rights
-- and commits the request; then the processor is called, while no transaction is open; a note_… function stores the
-- response. The operation itself only returns the record.

comment on domain app_public.card_token is
  E'@transform cardToken\n\nA single-use token that the processor''s client library made of a card; never a card '
  'number.';

comment on table app_private.processor_customers is 'How the payment processor calls the users who have cards.';
comment on column app_private.processor_customers.processor_id is
  E'@impersonal\n\nThe customer of the payment processor.';

create function app_hidden.viewer_payer() returns uuid
language sql stable as $$
  select case when app_hidden.setting('organization_id') is null and app_hidden.scopes_allow('purchase.own')
    then app_public.current_user_id() end
$$;
comment on function app_hidden.viewer_payer() is
  'The viewer as somebody who pays; null for a token of one organization, or with scopes without purchase.own.';

create function app_hidden.require_payer() returns uuid
language plpgsql stable as $$
begin
  perform app_hidden.require_viewer();
  if app_hidden.viewer_payer() is null then
    perform app_hidden.fail('FORBIDDEN', 'This access token does not apply to cards and payments; sign in to pay.',
      '{"permission": "purchase.own"}');
  end if;
  return app_public.current_user_id();
end $$;
comment on function app_hidden.require_payer() is
  'The viewer; refuses tokens that may not access the viewer''s cards.';

create policy own on app_public.processor_cards for select to plat_user
  using (user_id = (select app_hidden.viewer_payer()));

select app_private.make_record('processor_cards', 'processor_card');

grant select on app_public.processor_cards to plat_user, plat_anonymous;

comment on table app_public.processor_cards is 'A payment card of a user, stored by the payment processor.';
comment on column app_public.processor_cards.processor_id is
  E'@impersonal\n\nId that the payment processor assigned.';
comment on column app_public.processor_cards.brand is 'Card network, such as VISA.';
comment on column app_public.processor_cards.last4 is E'@personal\n\nLast four digits of the card number.';
comment on column app_public.processor_cards.exp_month is
  'Expiry month, from 1 to 12; the card can be charged until its end.';
comment on column app_public.processor_cards.exp_year is 'Expiry year, with four digits.';
comment on column app_public.processor_cards.funding is 'Source of the funds: credit, debit or prepaid.';
comment on column app_public.processor_cards.holder_name is E'@personal\n\nName of the cardholder, as printed.';
comment on column app_public.processor_cards.country is 'Country in which the card was issued.';
comment on column app_public.processor_cards.fingerprint is
  E'@personal\n\nFingerprint of the card number, equal for all users who add the same card.';
comment on column app_public.processor_cards.is_default is
  'Whether it is the default card, which is charged if no card is specified.';
comment on column app_public.processor_cards.removed_at is 'When the user removed the card; null if not removed.';
comment on constraint processor_cards_user_id_fkey on app_public.processor_cards is
  E'@fieldName user\n@backwardBehavior -*\n\nThe user who added the card.';
comment on constraint processor_cards_once on app_public.processor_cards is 'This card has already been added.';

-- A repeated request with the same idempotency key continues instead of starting again.
create function app_private.claim_attempt(repeat jsonb, out key text, out answered boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  claim record;
begin
  answered := false;
  if repeat is not null then
    claim := app_hidden.claim_answer(repeat);
    key := claim.id || ' ' || (repeat ->> 'place');
    answered := claim.answer is not null;
  end if;
end $$;
comment on function app_private.claim_attempt(jsonb) is
  'Under which key an operation is attempted, null without one, and whether it was answered already. Refuses the key '
  'with another body; two at once take turns.';

create function app_hidden.begin_card(repeat jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  payer uuid := app_hidden.require_payer();
  attempt record := app_private.claim_attempt(repeat);
begin
  if not attempt.answered then
    -- Trying many cards indicates card testing.
    perform app_private.rate_limit('cards', payer::text, 30, interval '1 hour');
    if (select count(*) from app_public.processor_cards c where c.user_id = payer and c.removed_at is null) >= 50 then
      perform app_hidden.fail('LIMIT_EXCEEDED',
        'You have reached the limit of 50 cards; remove one first.', '{"limit": 50}');
    end if;
  end if;
  return jsonb_build_object('answered', attempt.answered, 'key', attempt.key, 'userId', payer,
    'customerId', (select c.processor_id from app_private.processor_customers c where c.user_id = payer),
    'email', (select i.email from app_hidden.user_identities i where i.user_id = payer),
    'name', (select app_public.users_full_name(u) from app_public.users u where u.id = payer));
end $$;
comment on function app_hidden.begin_card(jsonb) is
  'Whether the viewer may add a card now, and who they are at the processor.';
revoke execute on function app_hidden.begin_card from plat_anonymous;

create function app_private.note_customer(user_id uuid, processor_id text) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  insert into app_private.processor_customers as c (user_id, processor_id)
    values (user_id, processor_id) on conflict on constraint processor_customers_pkey do nothing;
  return (select c.processor_id from app_private.processor_customers c where c.user_id = user_id);
end $$;
comment on function app_private.note_customer(uuid, text) is
  E'@step The user is the payer whom begin_card or begin_payment has asked for.\n\nHow the processor calls a user, '
  'once and for all.';

create function app_private.note_card(user_id uuid, card jsonb, holder_name text, make_default boolean) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  result uuid;
  is_first boolean;
begin
  -- Serialized, so that there is one default card.
  perform from app_private.processor_customers c where c.user_id = user_id for update;
  select c.id into result from app_public.processor_cards c where c.processor_id = card ->> 'id'
    and c.user_id = user_id;
  if result is not null then
    return result;
  end if;
  is_first := not exists (select from app_public.processor_cards c where c.user_id = user_id and c.removed_at is null);
  if make_default then
    update app_public.processor_cards c set is_default = false where c.user_id = user_id and c.is_default;
  end if;
  insert into app_public.processor_cards (user_id, processor_id, brand, last4, exp_month, exp_year, funding,
    holder_name, country, fingerprint, is_default)
    values (user_id, card ->> 'id', card ->> 'brand', card ->> 'last4', (card ->> 'expMonth')::int,
      (card ->> 'expYear')::int, card ->> 'funding',
      coalesce(left(nullif(btrim(holder_name), ''), 300), card ->> 'holderName'), card ->> 'country',
        card ->> 'fingerprint', is_first or coalesce(make_default, false))
    returning id into result;
  return result;
end $$;
comment on function app_private.note_card(uuid, jsonb, text, boolean) is
  'Writes down a card that the processor keeps now; the first of a user is the default.';
grant execute on function app_private.note_customer, app_private.note_card to plat_authenticator;

create function app_public.create_processor_card(token app_public.card_token, holder_name text default null,
  make_default boolean default null)
returns app_public.processor_cards
language sql volatile as $$
  select c from app_public.processor_cards c where c.id = token::uuid
$$;
comment on function app_public.create_processor_card(app_public.card_token,text,boolean) is
  E'@withoutViewer Its token is a card after app_hidden.begin_card has asked only.\n@arg token Single-use card '
  'token made by the processor''s client library; never a card number.\n@arg holder_name Name of the cardholder, '
  'as printed.\n@arg make_default Whether it becomes the default card. The first card is the default in any '
  'case.\n\n'
  'Stores a payment card for the viewer. Refused with BAD_USER_INPUT if the bank refuses the card.';

create function app_private.own_card(id uuid) returns app_public.processor_cards
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  payer uuid := app_hidden.require_payer();
  card app_public.processor_cards;
begin
  perform from app_private.processor_customers c where c.user_id = payer for update;
  select c.* into card from app_public.processor_cards c where c.id = own_card.id and c.user_id = payer
    and c.removed_at is null;
  if card.id is null then
    perform app_hidden.fail('NOT_FOUND', 'You have no such card.', '{"field": "id"}');
  end if;
  return card;
end $$;
comment on function app_private.own_card(uuid) is 'A card of the viewer, whose cards are locked; refuses any other.';

create function app_public.update_processor_card(id uuid, make_default boolean default null,
  holder_name text default null) returns app_public.processor_cards
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  card app_public.processor_cards := app_private.own_card(update_processor_card.id);
begin
  if make_default = false and card.is_default then
    perform app_hidden.fail('BAD_USER_INPUT',
      'The default card cannot be unset; make another card the default instead.', '{"field": "makeDefault"}');
  end if;
  if make_default then
    update app_public.processor_cards c set is_default = false where c.user_id = card.user_id and c.is_default
      and c.id <> card.id;
  end if;
  update app_public.processor_cards c set is_default = c.is_default or coalesce(make_default, false),
      holder_name = coalesce(app_hidden.checked(nullif(btrim(update_processor_card.holder_name), ''),
        'app_public.short_text', 'holderName'), c.holder_name)
    where c.id = card.id returning c.* into card;
  return card;
end $$;
comment on function app_public.update_processor_card is $$
@arg make_default If true, the card becomes the default card, which is charged if no card is specified.
@arg holder_name Name of the cardholder, as printed.

Updates the name of the holder of a card of the viewer, or makes it the default card.$$;

create function app_public.remove_processor_card(id uuid) returns app_public.processor_cards
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  card app_public.processor_cards := app_private.own_card(remove_processor_card.id);
begin
  update app_public.processor_cards c set removed_at = now(), is_default = false where c.id = card.id
    returning c.* into card;
  update app_public.processor_cards c set is_default = true
    where c.id = (select n.id from app_public.processor_cards n where n.user_id = card.user_id and n.removed_at is null
      order by n.is_default desc, n.id desc limit 1)
      and not c.is_default;
  perform app_private.add_job('processor_card__removed', jsonb_build_object('id', card.id));
  return card;
end $$;
comment on function app_public.remove_processor_card is
  'Removes a card of the viewer, also at the payment processor. Its charges are kept. If it was the default, the '
  'most recent other card becomes the default.';

create function app_public.processor_cards_status(c app_public.processor_cards) returns app_public.card_status
language sql stable as $$
  select case when c.removed_at is not null then 'REMOVED'
    when (now() at time zone 'UTC')::date >= make_date(c.exp_year, c.exp_month, 1) + interval '1 month' then 'EXPIRED'
      else 'ACTIVE' end
$$;

grant execute on function app_public.create_processor_card, app_public.update_processor_card,
  app_public.remove_processor_card, app_public.processor_cards_status, app_public.users_cards to plat_user,
  plat_anonymous;
comment on function app_public.processor_cards_status is E'@notNull\n\nWhether it can be charged.';

create function app_private.removed_card(id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.processor_id from app_public.processor_cards c where c.id = removed_card.id and c.removed_at is not null
$$;
comment on function app_private.removed_card(uuid) is
  'By what id the processor knows a card that its owner has removed; null for one that is there.';
grant execute on function app_private.removed_card to plat_worker;

revoke execute on function app_hidden.require_payer from plat_user, plat_anonymous;
