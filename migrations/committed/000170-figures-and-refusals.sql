--! Previous: sha1:a8b9d7ba41d4974f443f39d3c64153a72bfa2e77
--! Hash: sha1:b97e9a6ba042a737f29dc00df77ba58aeb71f6c6
--! Message: figures-and-refusals

-- What a matrix of everybody and everything of the outside world has found.

-- The policy of events shows more than the feed does, such as those of records of a project that one is affiliated with, and the
-- count of the feed counted them.
comment on table app_public.events is $$
@portfolio org.member
@publicRows
@defaultOrder organization_id asc, sequence asc
@foreignKey (organization_id) references organizations (id)|@fieldName organization|@backwardBehavior -*
@foreignKey (project_id) references projects (id)|@fieldName project|@backwardBehavior -*
@foreignKey (actor_id) references users (id)|@fieldName actor|@backwardBehavior -*
@foreignKey (caused_by_id) references events (id)|@fieldName causedBy|@backwardBehavior -*

Something that happened to a record; never changed, never deleted.$$;

-- Members do not see the representatives of their organization; being refused told them which ids there are.
create or replace function app_hidden.begin_representative(operation text, input jsonb, repeat jsonb) returns jsonb
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
        and r.organization_id = any (array(select app_hidden.viewer_organizations('org.billing')));
    if result.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such representative.', '{"field": "id"}');
    end if;
    home := result.organization_id;
  else
    home := app_hidden.record_id('organizations', input ->> 'organizationId', 'organizationId');
  end if;
  perform app_hidden.require_organization(home, 'org.billing');
  attempt := app_private.claim_attempt(repeat);
  if attempt.answered then
    return '{"answered": true}';
  end if;
  -- One after the other: owners who name people at once see each other's.
  perform from app_public.organizations o where o.id = home for no key update;
  select coalesce(jsonb_object_agg(c.name, case when jsonb_typeof(i.value) = 'string' then coalesce(to_jsonb(nullif(btrim(i.value #>> '{}'), '')), 'null') else i.value end), '{}') into value_list
    from jsonb_each(input) i
    join (values ('kind', 'kind'), ('firstName', 'first_name'), ('lastName', 'last_name'), ('email', 'email'), ('phone', 'phone'), ('dob', 'dob'),
      ('title', 'title'), ('ownershipPercent', 'ownership_percent'), ('address', 'address')) c (member, name) on c.member = i.key;
  if jsonb_typeof(value_list -> 'address') = 'object' then
    value_list := jsonb_set(value_list, '{address}', (select coalesce(jsonb_object_agg(case key when 'administrativeArea' then 'administrative_area' when 'postalCode' then 'postal_code' else key end,
      value), '{}') from jsonb_each(value_list -> 'address')));
  end if;
  if operation = 'updateOrganizationPaymentsRepresentative' then
    if (input ->> 'expectedVersion')::int <> result.version then
      perform app_hidden.fail('VERSION_MISMATCH', 'Somebody else changed this record meanwhile; read it again and repeat your change.',
        jsonb_build_object('currentVersion', result.version));
    end if;
    result := app_hidden.update_record(null::app_public.organization_payments_representatives, value_list || jsonb_build_object('id', result.id));
  else
    select r.* into result from app_public.organization_payments_representatives r
      where r.organization_id = home and r.email = lower(value_list ->> 'email') and r.kind = value_list ->> 'kind' and r.status <> 'REJECTED';
    if result.processor_person_id is not null then
      perform app_hidden.fail('CONFLICT', 'This representative is there already.', jsonb_build_object('existingId', result.id, 'field', 'email'));
    elsif result.id is null then
      if (select count(*) from app_public.organization_payments_representatives r where r.organization_id = home) >= 50 then
        perform app_hidden.fail('LIMIT_EXCEEDED', 'The organization has 50 representatives; remove some first.', '{"limit": 50}');
      end if;
      result := app_hidden.create_record(null::app_public.organization_payments_representatives,
        value_list || jsonb_build_object('organization_id', home, 'email', lower(value_list ->> 'email')));
    end if; -- else the processor was not told of them yet: it is now
  end if;
  return app_private.representative_facts(result) || jsonb_build_object('answered', false);
end $$;
create or replace function app_public.remove_organization_payments_representative(id uuid) returns app_public.organization_payments_representatives
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  result app_public.organization_payments_representatives;
begin
  perform app_hidden.require_viewer();
  select r.* into result from app_public.organization_payments_representatives r
    where r.id = remove_organization_payments_representative.id and r.organization_id = any (array(select app_hidden.viewer_organizations('org.billing'))) for update;
  if result.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such representative.', '{"field": "id"}');
  end if;
  delete from app_public.organization_payments_representatives r where r.id = result.id;
  if result.processor_person_id is not null then
    perform app_private.add_job('representative__removed', jsonb_build_object('accountId', (select a.processor_id from app_private.payments_accounts a where a.organization_id = result.organization_id),
      'personId', result.processor_person_id));
  end if;
  return result;
end $$;

-- Visitors see no appointments, and so no figures of their notes either, rather than a refusal.
grant execute on function app_public.appointments_notes, app_public.appointments_outcome_note to plat_anonymous;

-- A report that is PRIVATE is changed and deleted by whoever made it, as it is found by them only.
alter policy managers_update on app_public.custom_reports
  using (organization_id = any (array(select app_hidden.viewer_organizations('report.manage')))
    and (created_by_id = (select app_public.current_user_id()) or visibility <> 'PRIVATE'))
  with check (organization_id = any (array(select app_hidden.viewer_organizations('report.manage'))));
alter policy managers_delete on app_public.custom_reports
  using (organization_id = any (array(select app_hidden.viewer_organizations('report.manage')))
    and (created_by_id = (select app_public.current_user_id()) or visibility <> 'PRIVATE'));
