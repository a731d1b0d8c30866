select app_private.make_project_record('lead_notes', 'lead_note', 'lead.write');
select app_private.make_buyer_list('lead_notes', 'notes', 'The notes, pinned first, then newest first',
  'pinned desc, id desc');

-- No condition for own leads is needed: viewers who may only write to own leads see no others.
grant select on app_public.lead_notes to plat_user, plat_anonymous;
grant insert (lead_id, text, pinned, visibility), update (text, pinned, visibility), delete on app_public.lead_notes to
  plat_user;
grant insert (buyer_id) on app_public.lead_notes to plat_user;

comment on table app_public.lead_notes is E'@defaultOrder pinned desc, id desc\n\nA note on a lead or buyer.';
comment on column app_public.lead_notes.text is E'@personal\n\nText of the note, without formatting.';
comment on column app_public.lead_notes.pinned is 'Whether the note is pinned to the top of the list.';
comment on column app_public.lead_notes.visibility is 'Who can read the note.';
comment on column app_public.lead_notes.author_id is 'The user who wrote the note.';
comment on column app_public.lead_notes.edited_at is 'When the text was last changed; null if never.';
comment on column app_public.lead_notes.lead_id is 'Id of the lead. Set either this or `buyerId`.';
comment on column app_public.lead_notes.buyer_id is 'Id of the buyer. Set either this or `leadId`.';
comment on constraint lead_notes_project_id_fkey on app_public.lead_notes is
  E'@behavior -*\n\nThe project that it belongs to.';
comment on constraint lead_notes_author_id_fkey on app_public.lead_notes is
  E'@fieldName author\n@backwardBehavior -*\n\nThe user who wrote the note.';
comment on constraint lead_notes_one_person on app_public.lead_notes is 'Specify either the lead or the buyer.';
comment on constraint lead_notes_lead_id_fkey on app_public.lead_notes is
  E'@fieldName lead\n'
  '@foreignFieldName notes\n'
  '@backwardDescription The notes, pinned first, then newest first.\n\n'
  'The lead; null if it belongs to a buyer, or if the viewer may not see the lead.';
comment on constraint lead_notes_buyer_id_fkey on app_public.lead_notes is
  E'@fieldName buyer\n@backwardBehavior -*\n\nThe buyer; null if it belongs to a lead.';

create function app_private.tg_lead_notes__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.text is distinct from old.text then
    new.edited_at := now();
  end if;
  return new;
end $$;

create trigger _010_deal before insert on app_public.lead_notes for each row
  execute function app_private.tg__deal_child();
create trigger _010_prepare before update on app_public.lead_notes for each row
  execute function app_private.tg_lead_notes__prepare();

do $$
declare
  readers text := app_private.deal_child_condition('lead_notes', 'lead.read', 'buyer.read');
  writers text := app_private.deal_child_condition('lead_notes', 'lead.write', 'buyer.write');
begin
  execute format($s$create policy readers on app_public.lead_notes for select to plat_user
    using (deleted_at is null and (%s)
    and (visibility = 'TEAM'
      or author_id = (select app_public.current_user_id())
      or (visibility = 'ORGANIZATION'
        and organization_id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[]))
      or (visibility = 'ASSIGNEE' and case
        when lead_id is not null then (select d.assignee_id from app_public.leads d
          where d.id = lead_notes.lead_id) = (select app_public.current_user_id())
        else buyer_id = any (array(select app_hidden.viewer_assigned_buyers('buyer.read'))) end)))$s$, readers);
  execute format($s$create policy writers_insert on app_public.lead_notes for insert to plat_user
    with check (author_id = (select app_public.current_user_id()) and (%s))$s$, writers);
  execute format($s$create policy writers_update on app_public.lead_notes for update to plat_user
    using ((author_id = (select app_public.current_user_id())
      or organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[])) and (%s))$s$, writers);
  execute format($s$create policy writers_delete on app_public.lead_notes for delete to plat_user
    using ((author_id = (select app_public.current_user_id())
      or organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[])) and (%s))$s$, writers);
end $$;
