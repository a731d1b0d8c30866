-- Who works on a new lead, by the mode of its project:
--
--   MANUAL       whoever is named; nobody until then
-- ROUND_ROBIN whoever is named, else the next in turn: those MEMBERs of the organization that owns the project; where
-- it
--                has none, its owners and admins. Whoever joins or leaves is in or out from the next lead on
--   PRIVATE      whoever is named, or brings it; nobody else until an owner or admin assigns it. Members see their own
--                leads, so what nobody works on is seen by owners and admins
--
-- In every mode, who sees own leads only keeps the lead that they bring, and only others hand it on: nobody gives away
-- what they then could not see.

comment on table app_private.lead_turns is 'Who got the last lead of a project whose members take turns.';

create function app_private.next_in_turn(project_id uuid) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  members uuid[];
  turn uuid;
begin
  select array_agg(m.user_id order by m.user_id) into members
    from app_public.projects p
    join app_public.organization_user_connections m on m.organization_id = p.organization_id
    where p.id = next_in_turn.project_id
      and (m.role = 'MEMBER' or not exists (
        select from app_public.organization_user_connections o where o.organization_id = p.organization_id
          and o.role = 'MEMBER'));
  if members is null then
    return null;
  end if;
  -- The row is locked until the lead is there, so that leads that come at the same moment take turns too.
  insert into app_private.lead_turns as t (project_id, user_id) values (next_in_turn.project_id, members[1])
    on conflict on constraint lead_turns_pkey do update
      set user_id = coalesce((select m from unnest(members) m where m > t.user_id order by m limit 1), members[1])
    returning t.user_id into turn;
  return turn;
end $$;
comment on function app_private.next_in_turn(uuid) is
  'Whose turn it is to get a lead of the project; and it was theirs then.';

insert into app_private.event_names (subject, column_name, name) values ('lead', 'assignee_id', 'assigned');
