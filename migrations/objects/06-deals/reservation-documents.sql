-- Documents of reservations. The sales team sees all of them, the buyer only those shared with them.

select app_private.make_file_table('reservation_documents', 'reservation_document', parent => 'reservations',
  list => 'documents',
  settable => '{title, category, visible_to_buyer}',
  readers => $$organization_id = any ((select app_hidden.viewer_organizations('sale.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('sale.read'))::uuid[])
    or (project_id = any ((select app_hidden.viewer_own_projects('sale.read'))::uuid[])
      and (select r.assignee_id from app_public.reservations r
        where r.id = reservation_id) = (select app_public.current_user_id()))
    or (visible_to_buyer and reservation_id = any (array(select app_hidden.viewer_purchase_reservations())))$$,
  write_permission => 'sale.write', event_permission => 'sale.read');

drop policy everybody on app_public.reservation_documents;

-- Viewers who may only write to own deals may write to their documents.
create policy own_insert on app_public.reservation_documents for insert to plat_user
  with check (project_id = any ((select app_hidden.viewer_own_projects('sale.write'))::uuid[])
    and (select r.assignee_id from app_public.reservations r
      where r.id = reservation_id) = (select app_public.current_user_id()));
create policy own_update on app_public.reservation_documents for update to plat_user
  using (project_id = any ((select app_hidden.viewer_own_projects('sale.write'))::uuid[])
    and (select r.assignee_id from app_public.reservations r
      where r.id = reservation_id) = (select app_public.current_user_id()));
create policy own_delete on app_public.reservation_documents for delete to plat_user
  using (project_id = any ((select app_hidden.viewer_own_projects('sale.write'))::uuid[])
    and (select r.assignee_id from app_public.reservations r
      where r.id = reservation_id) = (select app_public.current_user_id()));

comment on table app_public.reservation_documents is
  E'@file Document\n\nA file attached to a reservation, such as a signed form.';
comment on column app_public.reservation_documents.file is
  E'@personal contract\n@writeOnly\n@secret\n\nA PDF, Office document, text, CSV or image of at most 50 MB.';
comment on column app_public.reservation_documents.title is
  E'@personal contract\n\nDisplay title, shown instead of the filename.';
comment on column app_public.reservation_documents.description is E'@personal contract\n\nFree-text description.';
comment on column app_public.reservation_documents.filename is E'@personal contract\n\nFilename for downloads.';
comment on column app_public.reservation_documents.checksum is
  E'@personal contract\n\nSHA-256 hash of the content, in hexadecimal digits.';
comment on column app_public.reservation_documents.filemime is
  E'@impersonal\n\nMedia type (MIME) detected from the content.';
comment on column app_public.reservation_documents.visible_to_buyer is
  'Whether the buyer can see the document. Default: false.';
