-- GraphQL documents that programs send by id, registered with a release: see docs/queries.md.

comment on table app_private.documents is
  'Documents of GraphQL that programs ask for by their ids. The meaning of an id never changes, because clients of '
  'earlier releases keep using it.';
comment on column app_private.documents.id is 'What programs send as documentId.';
comment on column app_private.documents.text is 'The document.';
comment on column app_private.documents.registered_at is 'When it was registered first.';

create function app_private.document_text(document_id text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select d.text from app_private.documents d where d.id = document_id
$$;
comment on function app_private.document_text is
  E'@step Called by the API before an operation, as the viewer.\n\n'
  'The document of an id; null where none is registered.';
grant execute on function app_private.document_text to plat_authenticator;

create function app_private.register_document(document_id text, document text) returns boolean
language plpgsql volatile as $$
begin
  insert into app_private.documents (id, text) values (document_id, document) on conflict (id) do nothing;
  if found then
    return true;
  end if;
  return case when app_private.document_text(document_id) = document then false end;
end $$;
comment on function app_private.register_document is
  'Registers a document. Whether it is new; null where the id stands for another one, which stays.';
