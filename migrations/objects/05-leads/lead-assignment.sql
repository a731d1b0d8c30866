-- Who works on a new lead, by the mode of its project:
--
--   MANUAL       whoever is named; nobody until then
--   ROUND_ROBIN  whoever is named, else the next in turn: those MEMBERs of the organization that owns the project;
--                where it has none, its owners and admins. Whoever joins or leaves is in or out from the next lead on
--   PRIVATE      whoever is named, or brings it; nobody else until an owner or admin assigns it. Members see their own
--                leads, so what nobody works on is seen by owners and admins
--
-- In every mode, who sees own leads only keeps the lead that they bring, and only others hand it on: nobody gives away
-- what they then could not see.

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
  'Who takes turns in getting the leads of a project, in the order of the turns; null where there is nobody.';

-- Nobody waits: leads that come at the same moment take the turns that nobody else is taking, which an advisory lock on
-- the number of the turn says until the end of the transaction. The turn of a lead that did not come about is left out.
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
    -- Looked at again under the lock, as whoever took the turn may have ended in between.
    exit when pg_try_advisory_xact_lock(hashtextextended('plat.turn ' || project_id || ' ' || turn, 0))
      and not exists (select from app_private.lead_turns t where t.project_id = project_id and t.turn >= turn);
  end loop;
  perform set_config('plat.turns_taken', (taken + 1)::text, true);
  -- From the one who was latest on, one further for each turn since, ended or not.
  chosen := members[((select count(*) from unnest(members) m where m <= latest.user_id)
    + turn - coalesce(latest.turn, 0) - 1) % cardinality(members) + 1];
  insert into app_private.lead_turns (project_id, turn, user_id) values (project_id, turn, chosen);
  delete from app_private.lead_turns t where t.id = any (array(select o.id from app_private.lead_turns o
    where o.project_id = project_id and o.turn < turn - 50 order by o.turn limit 5 for update skip locked));
  return chosen;
end $$;
comment on function app_private.next_in_turn(uuid) is
  'Whose turn it is to get a lead of the project; and it was theirs then.';

insert into app_private.event_names (subject, column_name, name) values ('lead', 'assignee_id', 'assigned');
