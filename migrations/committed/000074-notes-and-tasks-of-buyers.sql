--! Previous: sha1:586883204b728aa33e211750354f0a088209648c
--! Hash: sha1:4c6d76791c8d76b115ca1be55bba4be2d331a402
--! Message: notes-and-tasks-of-buyers

-- Notes and tasks hang on a purchase as well as on a lead. The buyer reads neither.

alter table app_public.lead_notes
  alter column lead_id drop not null,
  add column buyer_id uuid,
  add constraint lead_notes_one_person check (num_nonnulls(lead_id, buyer_id) = 1),
  add constraint lead_notes_buyer_id_fkey foreign key (buyer_id, project_id) references app_public.buyers (id, project_id) on delete cascade;
create index lead_notes_buyer on app_public.lead_notes (buyer_id, pinned desc, id desc) where deleted_at is null;
grant insert (buyer_id) on app_public.lead_notes to plat_user;
comment on constraint lead_notes_one_person on app_public.lead_notes is 'Name either the lead or the buyer.';

create or replace function app_private.tg_lead_notes__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.text is distinct from old.text then
    new.edited_at := now();
  end if;
  return new;
end $$;
drop trigger _010_prepare on app_public.lead_notes;
create trigger _010_deal before insert on app_public.lead_notes for each row execute function app_private.tg__deal_child();
create trigger _010_prepare before update on app_public.lead_notes for each row execute function app_private.tg_lead_notes__prepare();

do $$
declare
  readers text := app_private.deal_child_condition('lead_notes', 'lead.read', 'buyer.read');
  writers text := app_private.deal_child_condition('lead_notes', 'lead.write', 'buyer.write');
begin
  drop policy readers on app_public.lead_notes;
  drop policy writers_insert on app_public.lead_notes;
  drop policy writers_update on app_public.lead_notes;
  drop policy writers_delete on app_public.lead_notes;
  execute format($s$create policy readers on app_public.lead_notes for select to plat_user using (deleted_at is null and (%s)
    and (visibility = 'TEAM'
      or author_id = (select app_public.current_user_id())
      or (visibility = 'ORGANIZATION' and organization_id = any (array(select app_hidden.viewer_organizations('org.member'))))
      or (visibility = 'ASSIGNEE' and case
        when lead_id is not null then (select d.assignee_id from app_public.leads d where d.id = lead_notes.lead_id) = (select app_public.current_user_id())
        else buyer_id = any (array(select app_hidden.viewer_assigned_buyers())) end)))$s$, readers);
  execute format($s$create policy writers_insert on app_public.lead_notes for insert to plat_user
    with check (author_id = (select app_public.current_user_id()) and (%s))$s$, writers);
  execute format($s$create policy writers_update on app_public.lead_notes for update to plat_user
    using ((author_id = (select app_public.current_user_id()) or organization_id = any (array(select app_hidden.viewer_organizations('org.admin')))) and (%s))$s$, writers);
  execute format($s$create policy writers_delete on app_public.lead_notes for delete to plat_user
    using ((author_id = (select app_public.current_user_id()) or organization_id = any (array(select app_hidden.viewer_organizations('org.admin')))) and (%s))$s$, writers);
end $$;

select app_private.make_buyer_list('lead_notes', 'notes', 'The notes, pinned first, then newest first', 'pinned desc, id desc');
comment on table app_public.lead_notes is E'@defaultOrder pinned desc, id desc\n\nA note on a lead or buyer.';
comment on column app_public.lead_notes.lead_id is 'The lead; either this or the buyer.';
comment on column app_public.lead_notes.buyer_id is 'The buyer; either this or the lead.';
comment on constraint lead_notes_lead_id_fkey on app_public.lead_notes is
  E'@fieldName lead\n@foreignFieldName notes\n@backwardDescription The notes, pinned first, then newest first.\n\nThe lead; null where it is on a buyer, or not the viewer''s to see.';
comment on constraint lead_notes_buyer_id_fkey on app_public.lead_notes is E'@fieldName buyer\n@backwardBehavior -*\n\nThe buyer; null where it is on a lead.';

--------------------------------------------------------------------------------------------------------

alter table app_public.tasks
  add column buyer_id uuid,
  add constraint tasks_one_person check (num_nonnulls(lead_id, buyer_id) <= 1),
  add constraint tasks_buyer_id_fkey foreign key (buyer_id, project_id) references app_public.buyers (id, project_id) on delete cascade;
create index tasks_buyer on app_public.tasks (buyer_id, due_at, id) where deleted_at is null;
grant insert (buyer_id) on app_public.tasks to plat_user;
comment on constraint tasks_one_person on app_public.tasks is 'Name the lead or the buyer, not both.';

create or replace function app_private.tg_tasks__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    if num_nonnulls(new.lead_id, new.buyer_id) > 1 then
      perform app_hidden.fail('BAD_USER_INPUT', 'Name the lead or the buyer, not both.', '{"field": "buyerId"}');
    elsif new.lead_id is not null then
      select l.project_id, l.organization_id into new.project_id, new.organization_id from app_public.leads l where l.id = new.lead_id;
    elsif new.buyer_id is not null then
      select b.project_id, b.organization_id into new.project_id, new.organization_id from app_public.buyers b where b.id = new.buyer_id;
    elsif new.project_id is not null then
      select p.organization_id into new.organization_id from app_public.projects p where p.id = new.project_id;
    elsif new.organization_id is null then
      perform app_hidden.fail('BAD_USER_INPUT', 'Name the lead, the buyer, the project or the organization that the task is for.', '{"field": "organizationId"}');
    end if;
  end if;
  if new.assignee_id is not null and (tg_op = 'INSERT' or new.assignee_id is distinct from old.assignee_id) and not exists (
    select from app_public.organization_user_connections m
    where m.user_id = new.assignee_id
      and (m.organization_id = new.organization_id
        or m.organization_id in (select p.organization_id from app_public.project_organizations p where p.project_id = new.project_id))) then
    perform app_hidden.fail('BAD_USER_INPUT', 'A task is assigned to a member of the organization, or of one with a part in the project.', '{"field": "assigneeId"}');
  end if;
  if tg_op = 'UPDATE' and new.status is distinct from old.status then
    new.started_at := case when new.status = 'OPEN' then null else coalesce(new.started_at, now()) end;
    new.completed_at := case when new.status = 'COMPLETED' then now() end;
    new.completed_by_id := case when new.status = 'COMPLETED' then app_public.current_user_id() end;
  end if;
  return new;
end $$;

do $$
declare
  -- Whoever sees the lead or the purchase on behalf of the team works on its tasks.
  workers text := format($s$case
    when num_nonnulls(lead_id, buyer_id) > 0 then %s
    else organization_id = any (array(select app_hidden.viewer_organizations('org.member'))) end$s$,
    app_private.deal_child_condition('tasks', 'lead.read', 'buyer.read'));
begin
  drop policy seers on app_public.tasks;
  drop policy workers_insert on app_public.tasks;
  drop policy workers_update on app_public.tasks;
  execute format('create policy seers on app_public.tasks for select to plat_user using (deleted_at is null and %s)', workers);
  execute format('create policy workers_insert on app_public.tasks for insert to plat_user with check (%s)', workers);
  execute format('create policy workers_update on app_public.tasks for update to plat_user using (%s)', workers);
end $$;

select app_private.make_buyer_list('tasks', 'tasks', 'What there is to do for the buyer, what is due first comes first', 'due_at asc, id asc');
comment on column app_public.tasks.buyer_id is 'The buyer that it is about.';
comment on column app_public.tasks.organization_id is E'@insertOptional\n\nThe organization; needed where neither a lead, a buyer nor a project is named.';
comment on constraint tasks_buyer_id_fkey on app_public.tasks is E'@fieldName buyer\n@backwardBehavior -*\n\nThe buyer that it is about.';
