-- Erases a person of an organization: requested by a user with the permission, and repeated by the service once
-- contracts no longer have to be retained.

create function app_private.erase(organization_id uuid, roots jsonb, reason text) returns app_public.erasures
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  leads uuid[];
  scope jsonb;
  kept_until date;
  rows_erased record;
  result app_public.erasures;
  texts text[];
  amount int;
begin
  -- Locked, so that nobody adds records to them meanwhile.
  perform from app_public.leads l where l.id = any (app_private.ids_in(roots, 'app_public.leads')) order by l.id for
    update;
  perform from app_public.buyers b where b.id = any (app_private.ids_in(roots, 'app_public.buyers')) order by b.id
    for update;
  scope := app_private.erasure_scope(organization_id, roots);
  perform app_private.refuse_erasure_under_way(scope);
  kept_until := app_private.contract_kept_until(organization_id, scope);
  if kept_until <= current_date then
    kept_until := null;
  end if;
  texts := app_private.texts_of_person(scope);
  perform app_private.check_files(scope);
  perform app_private.set_erasing(true);
  rows_erased := app_private.erase_rows(scope, kept_until);
  amount := app_private.erase_events(organization_id, scope, kept_until);
  if amount > 0 then
    rows_erased.removed := rows_erased.removed || jsonb_build_object('record', 'events', 'count', amount);
  end if;
  rows_erased.removed := rows_erased.removed || app_private.erase_effects(organization_id, scope, kept_until);
  perform app_private.set_erasing(false);
  amount := app_private.end_exports(organization_id);
  if amount > 0 then
    rows_erased.removed := rows_erased.removed || jsonb_build_object('record', 'exports', 'count', amount);
  end if;
  insert into app_public.erasures (organization_id, reason, lead_ids, buyer_ids, agent_id, removed, kept, kept_until,
      requested_by_id)
    values (organization_id, reason, app_private.ids_in(scope, 'app_public.leads'),
      app_private.ids_in(scope, 'app_public.buyers'), (app_private.ids_in(scope, 'app_public.agents'))[1],
      rows_erased.removed, rows_erased.kept || app_private.kept_elsewhere(organization_id, texts), kept_until,
      app_public.current_user_id())
    returning * into result;
  insert into app_private.erasure_texts (erasure_id, texts) values (result.id, texts);
  perform app_private.add_job('erasure__requested', jsonb_build_object('id', result.id));
  return result;
end $$;
comment on function app_private.erase(uuid, jsonb, text) is
  'Erases the person of some leads, purchases or an agent of an organization.';

create function app_private.kept_elsewhere(organization_id uuid, texts text[]) returns jsonb
language sql stable as $$
  select coalesce(jsonb_agg(jsonb_build_object('record', k.record, 'count', k.amount, 'reason', k.reason)
    order by k.record), '[]')
  from (
    select 'withdrawnAddresses' as record, count(*) as amount,
      'The address asked not to be written to: kept so that it is not.' as reason
      from app_private.withdrawn_addresses w
      where w.organization_id = kept_elsewhere.organization_id and w.email = any (texts)
    union all select 'stoppedNumbers', count(*), 'The number asked not to be written to: kept so that it is not.'
      from app_private.stopped_numbers n where n.number = any (texts)
    union all select 'users', count(*),
      'There is an account with this address. It is the person''s own: they erase it themselves, by eraseAccount.'
      from app_hidden.user_identities i where i.email = any (texts)
    union all select 'organizationInvites', count(*), 'The address was invited to the team.'
      from app_public.organization_invites v
      where v.organization_id = kept_elsewhere.organization_id and v.email = any (texts)
  ) k
  where k.amount > 0
$$;
comment on function app_private.kept_elsewhere(uuid, text[]) is
  'What an erasure leaves though it has the address or number, and why.';

create function app_private.erasure_roots(lead_id uuid, buyer_id uuid, agent_id uuid, out organization_id uuid,
  out roots jsonb)
language plpgsql stable as $$
#variable_conflict use_variable
declare
  person_id uuid;
begin
  if agent_id is not null then
    select a.organization_id, jsonb_build_object('app_public.agents', jsonb_build_array(a.id)) into organization_id,
      roots
      from app_public.agents a where a.id = agent_id;
    return;
  end if;
  select coalesce(l.organization_id, b.organization_id), coalesce(l.person_id, b.person_id)
    into organization_id, person_id
    from (values (1)) one (n) left join app_public.leads l on l.id = lead_id
      left join app_public.buyers b on b.id = buyer_id;
  if person_id is null and organization_id is null then
    return;
  end if;
  -- All that the organization knows the person by.
  select jsonb_object_agg(e.key, e.value) into roots from jsonb_each(jsonb_build_object(
    'app_public.leads', (select coalesce(jsonb_agg(l.id), '[]') from app_public.leads l
      where l.organization_id = organization_id and (l.id = lead_id or l.person_id = person_id)),
    'app_public.buyers', (select coalesce(jsonb_agg(b.id), '[]') from app_public.buyers b
      where b.organization_id = organization_id and (b.id = buyer_id or b.person_id = person_id)))) e
    where e.value <> '[]';
end $$;
comment on function app_private.erasure_roots(uuid, uuid, uuid) is
  'The organization of a lead, purchase or agent, and all leads and purchases of the same person.';

create function app_public.erase_person(lead_id uuid default null, buyer_id uuid default null,
  agent_id uuid default null, reason app_public.long_text default null, dry_run boolean default false)
returns app_public.erasures
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  found_roots record;
  result app_public.erasures;
begin
  perform app_hidden.require_viewer();
  if num_nonnulls(lead_id, buyer_id, agent_id) <> 1 then
    perform app_hidden.fail('BAD_USER_INPUT',
      'Specify exactly one of a lead, a buyer or an agent.', '{"field": "leadId"}');
  end if;
  found_roots := app_private.erasure_roots(lead_id, buyer_id, agent_id);
  if found_roots.organization_id is null
    or not app_hidden.organization_can(found_roots.organization_id, 'privacy.erase') then
    if coalesce(app_private.viewer_sees('app_public.leads', lead_id), false)
      or coalesce(app_private.viewer_sees('app_public.buyers', buyer_id), false)
      or coalesce(app_private.viewer_sees('app_public.agents', agent_id), false) then
      perform app_hidden.require_organization(found_roots.organization_id, 'privacy.erase');
    end if;
    perform app_hidden.fail('NOT_FOUND', 'There is no such person.', jsonb_build_object('field',
      case when lead_id is not null then 'leadId' when buyer_id is not null then 'buyerId' else 'agentId' end));
  end if;
  begin
    result := app_private.erase(found_roots.organization_id, found_roots.roots, reason);
    if dry_run then
      raise exception 'Undoes what was tried.' using errcode = 'PLAT9';
    end if;
  exception when sqlstate 'PLAT9' then
    null;
  end;
  return result;
end $$;
grant execute on function app_public.erase_person to plat_user, plat_anonymous;
comment on function app_public.erase_person is $$
@arg lead_id Id of a lead of the person, which may be deleted.
@arg buyer_id Id of a purchase of the person.
@arg agent_id Id of the person's entry in the address book of agents, if any.
@arg reason Reason, such as a request of the person. It is retained, so it must not contain names.
@arg dry_run If true, returns what would be removed and retained, and changes nothing.

Permanently erases a person's data in the organization: in all their leads and purchases, related records, events,
messages, files and exports. Contracts and payments are retained as long as the law requires. Refused while a
reservation, negotiation or purchase is in progress. Requires the permission privacy.erase.$$;

create function app_private.erase_expired_contracts(batch int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  one app_public.erasures;
  amount int := 0;
begin
  for one in select e.* from app_public.erasures e where e.kept_until <= current_date order by e.kept_until limit batch
    for update skip locked
  loop
    update app_public.erasures e set kept_until = null where e.id = one.id;
    perform app_private.erase(one.organization_id, jsonb_build_object('app_public.leads', to_jsonb(one.lead_ids),
      'app_public.buyers', to_jsonb(one.buyer_ids)), 'Contracts and payments need not be kept any longer.');
    amount := amount + 1;
  end loop;
  return amount;
end $$;
comment on function app_private.erase_expired_contracts(int) is
  'Erases retained contracts and payments of erased persons once they no longer have to be retained; returns the '
  'number of persons.';
