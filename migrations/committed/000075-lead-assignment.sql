--! Previous: sha1:4c6d76791c8d76b115ca1be55bba4be2d331a402
--! Hash: sha1:9366aa9bc302cde09e16a6d2d9ce2823700bead3
--! Message: lead-assignment

-- Who works on a new lead, by the mode of its project:
--
--   MANUAL       whoever is named; nobody until then
--   ROUND_ROBIN  whoever is named, else the next in turn: those MEMBERs of the organization that owns the project; where it
--                has none, its owners and admins. Whoever joins or leaves is in or out from the next lead on
--   PRIVATE      whoever is named, or brings it; nobody else until an owner or admin assigns it. Members see their own
--                leads, so what nobody works on is seen by owners and admins
--
-- In every mode, who sees own leads only keeps the lead that they bring, and only others hand it on: nobody gives away
-- what they then could not see.

create table app_private.lead_turns (
  project_id uuid primary key references app_public.projects on delete cascade,
  user_id uuid not null
);
alter table app_private.lead_turns enable row level security;
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
        select from app_public.organization_user_connections o where o.organization_id = p.organization_id and o.role = 'MEMBER'));
  if members is null then
    return null;
  end if;
  -- The row is locked until the lead is there, so that leads that come at the same moment take turns too.
  insert into app_private.lead_turns as t (project_id, user_id) values (next_in_turn.project_id, members[1])
    on conflict on constraint lead_turns_pkey do update set user_id = coalesce((select m from unnest(members) m where m > t.user_id order by m limit 1), members[1])
    returning t.user_id into turn;
  return turn;
end $$;
comment on function app_private.next_in_turn(uuid) is 'Whose turn it is to get a lead of the project; and it was theirs then.';

create function app_private.tg_leads__assign() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if (select p.lead_assignment from app_public.projects p where p.id = new.project_id) = 'ROUND_ROBIN' then
    new.assignee_id := app_private.next_in_turn(new.project_id);
  end if;
  return new;
end $$;
-- After _200_prepare, which leaves a lead with those who see own leads only.
create trigger _400_assign before insert on app_public.leads for each row when (new.assignee_id is null) execute function app_private.tg_leads__assign();

insert into app_private.event_names (subject, column_name, name) values ('lead', 'assignee_id', 'assigned');
