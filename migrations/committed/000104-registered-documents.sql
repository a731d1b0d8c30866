--! Previous: sha1:ce97b3d8111a5e6976c091f1957f77c620938e8d
--! Hash: sha1:5aa8199fe2d3e5d7ddf2ac6cd7238367d90ea7fe
--! Message: registered-documents

-- Documents of GraphQL that programs ask for by their ids.

create table app_private.documents (
  id text primary key,
  text text not null,
  registered_at timestamptz not null default now(),
  constraint documents_id_form check (id ~ '^[A-Za-z0-9:_-]{1,128}$'),
  constraint documents_text_length check (length(text) between 1 and 100000)
);
alter table app_private.documents enable row level security;
