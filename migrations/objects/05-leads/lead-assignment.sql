-- The assignee of a new lead, by the mode of its project:
--
--   MANUAL       the given assignee; nobody by default
--   ROUND_ROBIN  the given assignee, else the next in turn: the MEMBERs of the organization that owns the project; if
--                it has none, its owners and admins. Joining and leaving take effect with the next lead
--   PRIVATE      the given assignee, or the creator; nobody else until an owner or admin assigns it. Members only see
--                their own leads, so unassigned ones are visible to owners and admins
--
-- In every mode, users who only see their own leads keep the leads that they create, or return them: the lead then has
-- no assignee, and users who see all leads are notified. Only these can reassign it: nobody assigns a record that they
-- would no longer see.

comment on table app_private.lead_turns is
  'Who got the latest leads of a project whose members take turns, by the number of the turn.';

create function app_private.turn_takers(project_id uuid) returns uuid[]
language sql stable as $$
  select array_agg(m.user_id order by m.user_id)
  from app_public.projects p
  join app_public.organization_user_connections m on m.organization_id = p.organization_id
  where p.id = turn_takers.project_id
    and (m.role = 'MEMBER' or not exists (
      select from app_public.organization_user_connections o where o.organization_id = p.organization_id
        and o.role = 'MEMBER'))
$$;
comment on function app_private.turn_takers(uuid) is
  'Members in the round robin of a project, in order; null if there are none.';

-- No waiting: concurrent leads take turns that no other transaction is taking. An advisory lock on the number of the
-- turn marks it until the end of the transaction. The turn of a lead that was rolled back is skipped.
create function app_private.next_in_turn(project_id uuid) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  -- Locks are few; a transaction that hands out more than that does so without, at the risk of the same turn twice.
  most constant int := 100;
  taken constant int := coalesce(app_hidden.setting('turns_taken')::int, 0);
  members constant uuid[] := app_private.turn_takers(project_id);
  latest app_private.lead_turns;
  turn bigint := 0;
  chosen uuid;
begin
  if members is null then
    return null;
  end if;
  loop
    select t.* into latest from app_private.lead_turns t where t.project_id = project_id order by t.turn desc limit 1;
    turn := greatest(turn, coalesce(latest.turn, 0)) + 1;
    exit when taken >= most;
    continue when not pg_try_advisory_xact_lock(hashtextextended('plat.turn ' || project_id || ' ' || turn, 0));
    -- Its previous owner may have committed since: read by a statement that begins under the lock.
    exit when not exists (select from app_private.lead_turns t where t.project_id = project_id and t.turn >= turn);
  end loop;
  perform set_config('plat.turns_taken', (taken + 1)::text, true);
  -- Starts at the latest assignee, and advances by one for each turn since, whether or not its transaction has ended.
  chosen := members[((select count(*) from unnest(members) m where m <= latest.user_id)
    + turn - coalesce(latest.turn, 0) - 1) % cardinality(members) + 1];
  insert into app_private.lead_turns (project_id, turn, user_id) values (project_id, turn, chosen);
  -- PERF: only just behind the latest, or each lead of a large transaction would read all turns that it has deleted.
  delete from app_private.lead_turns t where t.id = any (array(select o.id from app_private.lead_turns o
    where o.project_id = project_id and o.turn between turn - 100 and turn - 51 order by o.turn limit 5
    for update skip locked));
  return chosen;
end $$;
comment on function app_private.next_in_turn(uuid) is
  'Takes the next member from the round robin of the project.';

insert into app_private.event_names (subject, column_name, name) values ('lead', 'assignee_id', 'assigned');

create function app_private.gives_back(project_id uuid, assignee_id uuid, permission text, wanted text)
  returns boolean
language plpgsql stable as $$
begin
  -- Refused elsewhere, or returned by the viewer.
  if coalesce(assignee_id <> app_public.current_user_id(), true) or wanted = assignee_id::text
    or project_id <> all ((select app_hidden.viewer_own_projects(permission))::uuid[]) then
    return false;
  end if;
  if wanted is not null then
    perform app_hidden.fail('FORBIDDEN', 'You only see deals that are assigned to you: set assigneeId to null to '
      'return this one, so that somebody who sees all deals can assign it.',
      jsonb_build_object('permission', permission, 'field', 'assigneeId'));
  end if;
  return true;
end $$;
comment on function app_private.gives_back(uuid, uuid, text, text) is
  'Whether the viewer, who sees only assigned deals of the project, returns this one by unassigning it; refuses '
  'assigning it to somebody else.';

create function app_private.give_back_leads(ids uuid[]) returns setof app_public.leads
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lead app_public.leads;
begin
  perform app_private.lock_lead(l.id) from (select l.id from app_public.leads l where l.id = any (ids)
    and app_hidden.deal_can(l.organization_id, l.project_id, l.assignee_id, 'lead.write') order by l.id) l;
  for lead in
    update app_public.leads l set assignee_id = null where l.id = any (ids)
      and l.assignee_id = app_public.current_user_id() and l.deleted_at is null
      and app_hidden.deal_can(l.organization_id, l.project_id, l.assignee_id, 'lead.write')
      returning l.*
  loop
    perform app_private.tell_given_back(lead.project_id, lead.id, lead.name);
    return next lead;
  end loop;
end $$;
comment on function app_private.give_back_leads(uuid[]) is
  'Unassigns leads of the viewer, with their deals, and notifies members who see all leads.';

create function app_private.give_back_buyer(buyer_id uuid) returns app_public.buyers
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  result app_public.buyers;
  shown app_public.buyers;
begin
  perform app_private.lock_purchase(b.id) from app_public.buyers b where b.id = buyer_id
    and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.write');
  -- As they read it last.
  -- PERF: masked once, rather than for each column.
  select (m.whole).* into shown from app_public.buyers b
  cross join lateral (select app_hidden.masked(b) as whole offset 0) m where b.id = buyer_id
    and b.assignee_id = app_public.current_user_id() and b.deleted_at is null
    and app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.write');
  update app_public.buyers b set assignee_id = null where b.id = shown.id returning b.* into result;
  perform app_private.tell_given_back(result.project_id, result.lead_id,
    coalesce(result.legal_name, concat_ws(' ', result.first_name, result.last_name))) where result.id is not null;
  shown.assignee_id := null;
  shown.version := result.version;
  shown.updated_at := result.updated_at;
  return shown;
end $$;
comment on function app_private.give_back_buyer(uuid) is
  'Unassigns a purchase of the viewer, with its related records, and notifies members who see all deals.';
grant execute on function app_private.gives_back, app_private.give_back_leads, app_private.give_back_buyer to plat_user;

create function app_private.tell_given_back(project_id uuid, lead_id uuid, name text) returns void
language sql volatile as $$
  select app_private.notify_team(project_id, lead_id, format('%s was given back', coalesce(name, 'A deal')),
    format('%s has given %s back: nobody works on it now.', coalesce((select app_public.users_full_name(u)
      from app_public.users u where u.id = app_public.current_user_id()), 'Somebody'), coalesce(name, 'a deal')))
$$;
comment on function app_private.tell_given_back(uuid, uuid, text) is
  'Notifies members who see a lead or purchase that the viewer returned it.';
