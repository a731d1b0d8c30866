-- Documents with which buyers prove their identity and funds. Only the buyer and viewers with the permission buyer.pii
-- read them; other users who work on the purchase only see which kinds exist. Buyers upload and delete their own; what
-- the team has uploaded for them, the team deletes.

select app_private.make_file_table('buyer_documents', 'buyer_document', parent => 'buyers',
  list => 'private_documents', settable => '{title, category}',
  readers => $$organization_id = any ((select app_hidden.viewer_organizations('buyer.pii'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('buyer.pii'))::uuid[])
    or buyer_id = any (array(select app_hidden.viewer_purchases()))$$,
  write_permission => 'buyer.pii', event_permission => 'buyer.pii');

drop policy everybody on app_public.buyer_documents;

create policy own_insert on app_public.buyer_documents for insert to plat_user
  with check (buyer_id = any (array(select app_hidden.viewer_purchases())));
create policy own_update on app_public.buyer_documents for update to plat_user
  using (buyer_id = any (array(select app_hidden.viewer_purchases()))
    and uploaded_by_id = (select app_public.current_user_id()));
create policy own_delete on app_public.buyer_documents for delete to plat_user
  using (buyer_id = any (array(select app_hidden.viewer_purchases()))
    and uploaded_by_id = (select app_public.current_user_id()));

comment on table app_public.buyer_documents is
  E'@file Document\n\nA private document of a buyer: proof of identity or of funds.';
comment on column app_public.buyer_documents.category is
  'Subject of the document: IDENTITY, PROOF_OF_FUNDS, PREAPPROVAL or OTHER.';
comment on constraint buyer_documents_kinds on app_public.buyer_documents is
  'The kind of a buyer''s private document must be IDENTITY, PROOF_OF_FUNDS, PREAPPROVAL or OTHER.';
comment on column app_public.buyer_documents.public is 'Always false: buyer documents are private.';
comment on column app_public.buyer_documents.file is
  E'@personal contract\n@writeOnly\n@secret\n\nA PDF, Office document, text, CSV or image of at most 50 MB.';
comment on column app_public.buyer_documents.title is
  E'@personal contract\n\nDisplay title, shown instead of the filename.';
comment on column app_public.buyer_documents.description is E'@personal contract\n\nFree-text description.';
comment on column app_public.buyer_documents.filename is E'@personal contract\n\nFilename for downloads.';
comment on column app_public.buyer_documents.checksum is
  E'@personal contract\n\nSHA-256 hash of the content, in hexadecimal digits.';
comment on column app_public.buyer_documents.filemime is
  E'@impersonal\n\nMedia type (MIME) detected from the content.';
comment on constraint buyer_documents_private on app_public.buyer_documents is
  'A buyer''s private document cannot be public.';

create function app_private.tg_buyer_documents__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  most constant int := 50;
begin
  if exists (select from app_public.buyers b where b.id = new.buyer_id and b.status = 'CANCELLED') then
    perform app_hidden.fail('CONFLICT', 'This purchase was cancelled.', '{"field": "buyerId"}');
  end if;
  -- They count against the quota of the organization, which a non-member must not use up.
  perform app_private.limit_buyer('buyer.document', new.buyer_id);
  if new.buyer_id = any (array(select app_hidden.viewer_purchases())) and (select count(*) from
      app_public.buyer_documents d where d.buyer_id = new.buyer_id and d.uploaded_by_id = app_public.current_user_id()
        and d.deleted_at is null) >= most then
    perform app_hidden.fail('LIMIT_EXCEEDED', format('A buyer can have at most %s documents per purchase; delete one '
      'that is no longer needed.', most), jsonb_build_object('field', 'file', 'limit', most));
  end if;
  return new;
end $$;
create trigger _200_prepare before insert on app_public.buyer_documents for each row
  execute function app_private.tg_buyer_documents__prepare();

create function app_private.kinds_on_file(buyer_id uuid) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg(distinct d.category::text order by d.category::text), '{}')
  from app_public.buyer_documents d join app_public.buyers b on b.id = d.buyer_id
  where d.buyer_id = $1 and d.deleted_at is null
    and (app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.read')
      or b.id = any (array(select app_hidden.viewer_purchases())))
$$;
comment on function app_private.kinds_on_file(uuid) is
  'The kinds of private documents that there are of a purchase that the viewer sees; none of others.';
grant execute on function app_private.kinds_on_file to plat_user, plat_anonymous;

create function app_public.buyers_documents_on_file(b app_public.buyers) returns app_public.document_category[]
language sql stable as $$ select app_private.kinds_on_file(b.id)::app_public.document_category[] $$;
grant execute on function app_public.buyers_documents_on_file to plat_user, plat_anonymous;
comment on function app_public.buyers_documents_on_file is
  E'@notNull\n\n'
  'Categories of the private documents on file. The documents themselves require the permission buyer.pii.';
