-- The prerequisites of accepting payments: an organization's account at the processor, and the people that the
-- processor verifies. The first representative opens the account; the processor verifies their identity, and lists
-- outstanding requirements.

comment on table app_private.payments_accounts is
  'Accounts of organizations at the payment processor, with their state there.';

create policy billing on app_public.organization_payments_representatives for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('org.billing'))::uuid[]));

select app_private.make_record('organization_payments_representatives', 'organization_payments_representative',
  'org.billing');

grant select on app_public.organization_payments_representatives to plat_user, plat_anonymous;

comment on table app_public.organization_payments_representatives is
  'A person whom the payment processor must verify before an organization can accept payments.';
comment on column app_public.organization_payments_representatives.kind is 'Relation to the organization.';
comment on column app_public.organization_payments_representatives.first_name is
  E'@personal contract\n\nGiven name, such as Ada.';
comment on column app_public.organization_payments_representatives.last_name is E'@personal contract\n\nFamily name.';
comment on column app_public.organization_payments_representatives.email is
  E'@personal contract\n\nAddress at which the payment processor can reach the person.';
comment on column app_public.organization_payments_representatives.phone is
  E'@personal contract\n\nPhone number in E.164, such as +14165550123.';
comment on column app_public.organization_payments_representatives.dob is
  E'@personal contract\n@secret\n@masked\n\nDate of birth.';
comment on column app_public.organization_payments_representatives.title is E'@personal contract\n\nPosition.';
comment on column app_public.organization_payments_representatives.ownership_percent is
  'Share of the organization that the person owns, in percent.';
comment on column app_public.organization_payments_representatives.address is
  E'@personal contract\n@secret\n\nPostal address.';
comment on column app_public.organization_payments_representatives.status is
  'Progress of the payment processor''s verification.';
comment on column app_public.organization_payments_representatives.requirements is
  E'@impersonal\n\nInformation that the processor still requires.';
comment on column app_public.organization_payments_representatives.processor_person_id is
  E'@impersonal\n\nId that the payment processor assigned to the person.';
comment on column app_public.organization_payments_representatives.verified_at is
  'When the payment processor verified the person.';
comment on constraint representatives_phone_e164 on app_public.organization_payments_representatives is
  'Not a valid phone number; use one with its country code, such as +1 416 555 0123.';
comment on constraint representatives_ownership_percent_range on app_public.organization_payments_representatives is
  'A percentage must be greater than 0 and at most 100, with at most 4 decimal places.';
comment on constraint representatives_owner_of_a_quarter on app_public.organization_payments_representatives is
  'A beneficial owner holds at least 25 percent; specify ownershipPercent.';
comment on constraint organization_payments_representatives_organization_id_fkey
  on app_public.organization_payments_representatives is
  E'@parent\n'
  '@fieldName organization\n'
  '@foreignFieldName paymentsRepresentatives\n'
  '@backwardPermission org.billing\n'
  '@backwardDescription Representatives registered with the payment processor; null without the permission '
  'org.billing.\n\n'
  'The organization.';
comment on index app_public.representatives_one_authorized is
  'The organization already has an authorized representative; remove that one first.';

create function app_private.tg_representatives__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  home text := (select (o.address).country from app_public.organizations o where o.id = new.organization_id);
begin
  new.email := lower(new.email);
  new.address := app_hidden.complete_address(new.address, home);
  new.phone := app_hidden.to_e164(new.phone, coalesce((new.address).country, home));
  if new.dob is not null and (tg_op = 'INSERT' or new.dob is distinct from old.dob)
    and (new.dob > current_date - interval '18 years' or new.dob < current_date - interval '120 years') then
    perform app_hidden.fail('BAD_USER_INPUT', 'A representative must be 18 to 120 years old.', '{"field": "dob"}');
  end if;
  if (select coalesce(sum(r.ownership_percent), 0) from app_public.organization_payments_representatives r
      where r.organization_id = new.organization_id and r.id <> new.id
        and r.status <> 'REJECTED') + coalesce(new.ownership_percent, 0) > 100 then
    perform app_hidden.fail('BAD_USER_INPUT', 'The owners would hold more than 100 percent in total.',
      '{"field": "ownershipPercent"}');
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update of email, address, phone, dob,
  ownership_percent on app_public.organization_payments_representatives
  for each row execute function app_private.tg_representatives__prepare();

-- Data that the service sends.
create function app_private.representative_facts(r app_public.organization_payments_representatives) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', r.id, 'organizationId', r.organization_id, 'accountId', a.processor_id, 'personId',
    r.processor_person_id,
    'kind', r.kind, 'firstName', r.first_name, 'lastName', r.last_name, 'email', r.email, 'phone', r.phone, 'dob',
      r.dob, 'title', r.title,
    'ownershipPercent', r.ownership_percent, 'address', to_jsonb(r.address), 'version', r.version,
    'organization', jsonb_build_object('name', o.name, 'slug', o.slug, 'email', o.email, 'phone', o.phone, 'url',
      o.website_url, 'address', to_jsonb(o.address),
      'country', coalesce((o.address).country, (r.address).country, 'US')))
  from app_public.organizations o left join app_private.payments_accounts a on a.organization_id = o.id
  where o.id = r.organization_id
$$;
comment on function app_private.representative_facts(app_public.organization_payments_representatives) is
  'Data of a representative and the organization for the processor.';

-- Members cannot see representatives, and a FORBIDDEN would reveal which ids exist.
create function app_hidden.begin_representative(operation text, input jsonb, repeat jsonb,
  takes_money boolean default false)
returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  home uuid;
  result app_public.organization_payments_representatives;
  attempt record;
  value_list jsonb;
begin
  perform app_hidden.require_viewer();
  if operation = 'updateOrganizationPaymentsRepresentative' then
    select r.* into result from app_public.organization_payments_representatives r
      where r.id = app_hidden.record_id('organization_payments_representatives', input ->> 'id')
        and r.organization_id = any ((select app_hidden.viewer_organizations('org.billing'))::uuid[]);
    if result.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such representative.', '{"field": "id"}');
    end if;
    home := result.organization_id;
  else
    home := app_hidden.record_id('organizations', input ->> 'organizationId', 'organizationId');
  end if;
  perform app_hidden.require_organization(home, 'org.billing');
  if takes_money and (select o.is_sandbox from app_public.organizations o where o.id = home) then
    perform app_hidden.fail('CONFLICT', 'A sandbox organization takes no real payments: use another organization, or '
      'a service without a payment processor.', '{"field": "organizationId"}');
  end if;
  attempt := app_private.claim_attempt(repeat);
  if attempt.answered then
    return '{"answered": true}';
  end if;
  -- Serialized, so that owners who add people concurrently see each other's.
  perform from app_public.organizations o where o.id = home for no key update;
  select coalesce(jsonb_object_agg(c.name, case when jsonb_typeof(i.value) = 'string'
    then coalesce(to_jsonb(nullif(btrim(i.value #>> '{}'), '')), 'null') else i.value end), '{}') into value_list
    from jsonb_each(input) i
    join (values ('kind', 'kind'), ('firstName', 'first_name'), ('lastName', 'last_name'), ('email', 'email'),
      ('phone', 'phone'), ('dob', 'dob'),
      ('title', 'title'), ('ownershipPercent', 'ownership_percent'), ('address', 'address')) c (member, name)
        on c.member = i.key;
  if jsonb_typeof(value_list -> 'address') = 'object' then
    value_list := jsonb_set(value_list, '{address}',
      (select coalesce(jsonb_object_agg(case key when 'administrativeArea' then 'administrative_area' when 'postalCode'
      then 'postal_code' else key end,
      value), '{}') from jsonb_each(value_list -> 'address')));
  end if;
  if operation = 'updateOrganizationPaymentsRepresentative' then
    if (input ->> 'expectedVersion')::int <> result.version then
      perform app_hidden.fail('VERSION_MISMATCH',
        'Somebody else has changed this record since you read it; read it again and repeat your change.',
        jsonb_build_object('currentVersion', result.version));
    end if;
    result := app_hidden.update_record(null::app_public.organization_payments_representatives,
      value_list || jsonb_build_object('id', result.id));
  else
    select r.* into result from app_public.organization_payments_representatives r
      where r.organization_id = home and r.email = lower(value_list ->> 'email') and r.kind = value_list ->> 'kind'
        and r.status <> 'REJECTED';
    if result.processor_person_id is not null then
      perform app_hidden.fail('CONFLICT', 'This representative already exists.',
        jsonb_build_object('existingId', result.id, 'field', 'email'));
    elsif result.id is null then
      if (select count(*) from app_public.organization_payments_representatives r where r.organization_id = home) >= 50
        then
        perform app_hidden.fail('LIMIT_EXCEEDED',
          'The organization has reached the limit of 50 representatives; remove one first.',
          '{"limit": 50}');
      end if;
      result := app_hidden.create_record(null::app_public.organization_payments_representatives,
        value_list || jsonb_build_object('organization_id', home, 'email', lower(value_list ->> 'email')));
    end if; -- else the processor was not told of them yet: it is now
  end if;
  return app_private.representative_facts(result) || jsonb_build_object('answered', false);
end $$;
comment on function app_hidden.begin_representative(text, jsonb, jsonb, boolean) is
  'Stores a representative before the processor is called; takes_money: whether the processor is not a sandbox.';
revoke execute on function app_hidden.begin_representative from plat_anonymous;

create function app_private.note_account(organization_id uuid, account jsonb) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  insert into app_private.payments_accounts as a (organization_id, processor_id, status, requirements)
    values (organization_id, account ->> 'id', account ->> 'status',
      array(select jsonb_array_elements_text(account -> 'requirements')))
    on conflict on constraint payments_accounts_pkey do update set
      -- Once it was enabled, missing data are a restriction.
      status = case when a.status in ('ENABLED', 'RESTRICTED')
        and excluded.status in ('ONBOARDING', 'PENDING_VERIFICATION') then 'RESTRICTED' else excluded.status end,
      requirements = excluded.requirements, updated_at = now()
    where a.processor_id = excluded.processor_id;
  return (select a.processor_id from app_private.payments_accounts a where a.organization_id = organization_id);
end $$;
comment on function app_private.note_account(uuid, jsonb) is
  E'@step It is what the processor says of the account.\n\nWhat the processor says of the account of an organization; '
  'the first account stays.';

create function app_private.note_representative(id uuid, person jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  update app_public.organization_payments_representatives r set processor_person_id = person ->> 'id',
    status = person ->> 'status',
      requirements = array(select jsonb_array_elements_text(person -> 'requirements')),
      verified_at = case when person ->> 'status' = 'VERIFIED' then coalesce(r.verified_at, now()) end
    where r.id = id and (r.processor_person_id is null or r.processor_person_id = person ->> 'id');
end $$;
comment on function app_private.note_representative(uuid, jsonb) is
  E'@step It is what the processor says of the representative.\n\nWhat the processor says of a representative.';
grant execute on function app_private.note_account, app_private.note_representative to plat_authenticator;

create function app_private.account_to_sync(account text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object('organizationId', a.organization_id, 'accountId', a.processor_id, 'people', coalesce((
    select jsonb_object_agg(r.processor_person_id, r.id) from app_public.organization_payments_representatives r
    where r.organization_id = a.organization_id and r.processor_person_id is not null), '{}'))
  from app_private.payments_accounts a where a.processor_id = account
$$;
comment on function app_private.account_to_sync(text) is
  'Whose account it is, and its people by their ids at the processor.';

comment on domain app_public.told_representative is
  E'@transform representative\n@given\n\nThe representative as sent to the processor.';

create function app_public.create_organization_payments_representative(
  told app_public.told_representative, organization_id uuid, kind app_public.representative_kind, first_name text,
    last_name text, email app_public.email_address,
  phone app_public.phone_number default null, dob date default null, title text default null,
    ownership_percent numeric default null,
  address app_public.address default null
) returns app_public.organization_payments_representatives
language sql volatile as $$
  select r.* from app_hidden.masked_organization_payments_representatives r where r.id = told::uuid
$$;

create function app_public.update_organization_payments_representative(
  told app_public.told_representative, id uuid, first_name text default null, last_name text default null,
    email app_public.email_address default null,
  phone app_public.phone_number default null, dob date default null, title text default null,
    ownership_percent numeric default null,
  address app_public.address default null, expected_version int default null
) returns app_public.organization_payments_representatives
language sql volatile as $$
  select r.* from app_hidden.masked_organization_payments_representatives r where r.id = told::uuid
$$;
comment on function app_public.create_organization_payments_representative is
  E'@arg organization_id Id of the organization whose payments account the person represents.\n@arg kind Authorized '
  'representative, owner of 25 percent or more, director or executive.\n@arg first_name Given name, such as '
  'Ada.\n@arg last_name Family name.\n@arg email Address at which the payment processor can reach the '
  'person.\n@arg phone Phone number, with its country code.\n@arg dob Date of birth.\n@arg title Position.\n@arg '
  'ownership_percent Share of the organization that the person owns, in percent.\n@arg address Postal address.\n\n'
  'Adds a person whom the payment processor must verify before the organization can accept payments. The first one '
  'opens the account; `requirements` lists what the processor still needs. Requires the permission org.billing.';
comment on function app_public.update_organization_payments_representative is
  E'@arg first_name Given name, such as Ada.\n@arg last_name Family name.\n@arg email Address at which the payment '
  'processor can reach the person.\n@arg phone Phone number, with its country code.\n@arg dob Date of birth.\n@arg '
  'title Position.\n@arg ownership_percent Share of the organization that the person owns, in percent.\n@arg '
  'address Postal address.\n@arg expected_version The `version` that the client read. If the record has changed '
  'since, the mutation is refused with VERSION_MISMATCH.\n\n'
  'Updates a representative with the information that the processor still requires. Omitted fields stay unchanged. '
  'Requires the permission org.billing.';

create function app_public.remove_organization_payments_representative(id uuid) returns
  app_public.organization_payments_representatives
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  result app_public.organization_payments_representatives;
begin
  perform app_hidden.require_viewer();
  select r.* into result from app_public.organization_payments_representatives r
    where r.id = remove_organization_payments_representative.id
      and r.organization_id = any ((select app_hidden.viewer_organizations('org.billing'))::uuid[]) for update;
  if result.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such representative.', '{"field": "id"}');
  end if;
  delete from app_public.organization_payments_representatives r where r.id = result.id;
  if result.processor_person_id is not null then
    perform app_private.add_job('representative__removed', jsonb_build_object('accountId',
      (select a.processor_id from app_private.payments_accounts a where a.organization_id = result.organization_id),
      'personId', result.processor_person_id));
  end if;
  return app_hidden.masked(result);
end $$;
comment on function app_public.remove_organization_payments_representative is
  'Removes a representative, also at the payment processor, which may restrict the payments account until there is '
  'another one. Requires the permission org.billing.';

create function app_public.organization_payments_representatives_dob(r app_public.organization_payments_representatives)
  returns date
language sql stable as $$ select case when app_hidden.organization_can(r.organization_id, 'org.billing')
  then r.dob end $$;

grant execute on function app_public.create_organization_payments_representative,
  app_public.update_organization_payments_representative, app_public.remove_organization_payments_representative,
  app_public.organization_payments_representatives_dob, app_public.organizations_payments_status,
  app_public.organizations_payments_requirements to plat_user, plat_anonymous;
comment on function app_public.organization_payments_representatives_dob is
  'Date of birth; null without the permission org.billing.';
grant execute on function app_private.account_to_sync, app_private.note_account, app_private.note_representative
  to plat_worker;

-- An account is deleted with its organization; nothing else deletes rows here.
create function app_private.tg_payments_accounts__removed() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.add_job('payments_account__removed', jsonb_build_object('accountId', old.processor_id));
  return null;
end $$;
comment on function app_private.tg_payments_accounts__removed() is 'Has the account closed at the processor.';
create trigger _600_removed after delete on app_private.payments_accounts
  for each row execute function app_private.tg_payments_accounts__removed();
