--! Previous: sha1:d5c323e9adc9c58d6548e3d664f4d8d24865c355
--! Hash: sha1:1e1640792ed4e716697573588fb05bce3d16839a
--! Message: what-files-count-for

-- What a content counts for, and uploads of it that are not decided yet.
alter table app_private.stored_files
  add column organization_id uuid,
  add column stored_by_id uuid,
  add column pending int not null default 0;

create table app_private.storage_used (
  owner_id uuid primary key,
  bytes bigint not null default 0 check (bytes >= 0)
);
alter table app_private.storage_used enable row level security;

-- Stands for a content that has not been sent yet, where an upload is tried before it is read.
insert into app_private.stored_files (checksum, filemime, filesize, is_stored, check_at)
  values (repeat('0', 64), 'application/octet-stream', 1, true, 'infinity') on conflict do nothing;

-- Contents that are there count for the record that has had them longest.
do $$
declare
  file_table text;
begin
  for file_table in select t.table_name from app_private.file_tables t loop
    execute format('update app_private.stored_files s set organization_id = f.organization_id,
      stored_by_id = f.uploaded_by_id
      from (select distinct on (checksum) checksum, organization_id, uploaded_by_id from app_public.%I
        order by checksum, id) f
      where s.checksum = f.checksum and s.organization_id is null', file_table);
  end loop;
end $$;
insert into app_private.storage_used (owner_id, bytes)
  select o.id, sum(s.filesize) from app_private.stored_files s
  cross join lateral (values (s.organization_id), (s.stored_by_id)) o (id)
  where o.id is not null group by o.id
  on conflict (owner_id) do nothing;
