-- Documents of GraphQL that programs ask for by their ids.

create table app_private.documents (
  id text primary key,
  text text not null,
  registered_at timestamptz not null default now(),
  constraint documents_id_form check (id ~ '^[A-Za-z0-9:_-]{1,128}$'),
  constraint documents_text_length check (length(text) between 1 and 100000)
);
alter table app_private.documents enable row level security;
