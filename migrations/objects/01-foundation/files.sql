-- Files of all kinds. Uploaded content is stored once, by its SHA-256, in the file store; a row of a table such as
-- project_images says where it belongs. app_private.make_file_table declares such a table.

comment on domain app_public.image_upload is
  E'@scalar Upload\n@transform storeImage\n\nA file: a part of a GraphQL multipart request, or a data URI such as '
  'data:image/png;base64,…';

comment on domain app_public.document_upload is
  E'@scalar Upload\n@transform storeDocument\n\nA file: a part of a GraphQL multipart request, or a data URI such as '
  'data:image/png;base64,…';

comment on domain app_public.file_address is
  'What the API signs into an address: content, name, and the record that has to be public or else a time to expire.';

comment on table app_private.stored_files is
  'The contents of the file store, by SHA-256; a picture''s thumbnail lies beside it.';
comment on column app_private.stored_files.is_stored is
  'Whether the content has arrived in the store; set by the API when it has.';
comment on column app_private.stored_files.check_at is
  'When the sweep looks whether a row still has it; an upload has a day to become a row.';
comment on table app_private.file_tables is 'The tables whose rows keep contents from being swept.';

comment on column app_private.stored_files.organization_id is 'The organization whose quota it counts for.';
comment on column app_private.stored_files.stored_by_id is 'The first sender, whose quota it counts towards.';
comment on column app_private.stored_files.pending is
  'Requests that have sent it and are not answered yet: as long as there are any, it stays.';
comment on table app_private.storage_used is
  'Bytes of the contents that count for an organization or a user, whose id is the key.';

create function app_hidden.may_upload(target text, input jsonb) returns uuid
language plpgsql volatile as $$
declare
  organization_id uuid;
begin
  perform app_hidden.require_viewer();
  if exists (select from app_hidden.imports i where i.operation = target) then
    return (app_hidden.require_import(target, input ->> 'projectId')).organization_id;
  end if;
  if not exists (select from app_hidden.record_types r where r.table_name = target) then
    raise exception 'Nothing says who may upload to %.', target;
  end if;
  begin
    execute format('select (app_hidden.create_record(null::app_public.%I, $1)).organization_id', target)
      into organization_id
      using (select coalesce(jsonb_object_agg(lower(regexp_replace(i.key, '([A-Z])', '_\1', 'g')), i.value), '{}')
          from jsonb_each(input) i)
        || jsonb_build_object('file', jsonb_build_object('checksum', repeat('0', 64), 'filename', 'upload'));
    raise exception 'Undoes what was tried.' using errcode = 'PLAT9';
  exception when sqlstate 'PLAT9' then
    return organization_id;
  end;
end $$;
comment on function app_hidden.may_upload(text, jsonb) is
  'Tries an upload without its content and undoes it: what it would be refused for is refused before the file is read. '
  'The target is a table of files, or the operation of an import; the input is that of the operation. Answers the '
  'organization that the file counts for.';
revoke execute on function app_hidden.may_upload from plat_anonymous;

create function app_private.require_storage(organization_id uuid, user_id uuid, bytes bigint, quota bigint)
returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from app_private.storage_used s where s.owner_id in (organization_id, user_id)
      and s.bytes + require_storage.bytes > quota) then
    perform app_private.refuse_storage(quota);
  end if;
end $$;
comment on function app_private.require_storage(uuid, uuid, bigint, bigint) is
  'Refuses an upload that would exceed the quota of the organization, or of the user who sends it.';

create function app_private.refuse_storage(quota bigint) returns void
language plpgsql stable as $$
begin
  perform app_hidden.fail('LIMIT_EXCEEDED',
    format('The storage limit of %s per organization and user is reached; delete files, which frees space after a '
      'week, or ask the operator of the service for more.', pg_size_pretty(quota)),
    jsonb_build_object('field', 'file', 'limit', quota));
end $$;

create function app_private.register_file(checksum text, filemime text, filesize int, width int default null,
  height int default null, organization_id uuid default null, stored_by_id uuid default null,
  quota bigint default null) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  is_stored boolean;
  is_new boolean;
  owner uuid;
  used bigint;
begin
  -- Waits for a sweep that is just deleting the same content.
  insert into app_private.stored_files as f (checksum, filemime, filesize, width, height, organization_id, stored_by_id,
      pending)
    values (checksum, filemime, filesize, width, height, organization_id, stored_by_id, 1)
    on conflict on constraint stored_files_pkey do update set check_at = now() + interval '1 day',
      pending = f.pending + 1
    returning f.is_stored, f.xmax = 0 into is_stored, is_new;
  if is_new then
    for owner in select o.id from unnest(array[organization_id, stored_by_id]) o (id) where o.id is not null order by 1
    loop
      insert into app_private.storage_used as s (owner_id, bytes) values (owner, filesize)
        on conflict on constraint storage_used_pkey do update set bytes = s.bytes + excluded.bytes
        returning s.bytes into used;
      if used > quota then
        perform app_private.refuse_storage(quota);
      end if;
    end loop;
  end if;
  return is_stored;
end $$;
comment on function app_private.register_file is
  'Announces a content before it is stored, and counts it; true where the store has it already. Refused with '
  'LIMIT_EXCEEDED above the quota.';

create function app_private.file_is_stored(checksum text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  update app_private.stored_files f set is_stored = true, check_at = now() + interval '1 day'
    where f.checksum = file_is_stored.checksum
$$;
comment on function app_private.file_is_stored is 'Says that a content has arrived in the store.';
grant execute on function app_private.register_file, app_private.file_is_stored, app_private.require_storage
  to plat_authenticator;

comment on table app_private.document_record is
  'Holds no rows: the columns of a document, for `create table ... (like app_private.document_record including all, '
  '...)`.';
comment on column app_private.document_record.file is
  E'@writeOnly\n@secret\n\nA PDF, Office document, text, CSV or image of at most 50 MB.';
comment on column app_private.document_record.title is 'Display title, shown instead of the filename.';
comment on column app_private.document_record.description is 'Free-text description.';
comment on column app_private.document_record.category is 'Subject of the file, such as BROCHURE or CONTRACT.';
comment on column app_private.document_record.public is 'Whether everyone who can see the record can see the file.';
comment on column app_private.document_record.filename is 'Filename for downloads.';
comment on column app_private.document_record.filemime is
  'Media type (MIME) detected from the content.';
comment on column app_private.document_record.filesize is 'Size in bytes.';
comment on column app_private.document_record.checksum is 'SHA-256 hash of the content, in hexadecimal digits.';
comment on column app_private.document_record.uploaded_by_id is E'@behavior -*\n\nWho uploaded it.';

comment on table app_private.image_record is
  'Holds no rows: the columns of a picture, for `create table ... (like app_private.image_record including all, ...)`.';
comment on column app_private.image_record.file is
  E'@writeOnly\n@secret\n\nA PNG, JPEG, WebP, GIF or AVIF image of at most 5 MB.';
comment on column app_private.image_record.title is 'Caption.';
comment on column app_private.image_record.alt is 'Alternative text for screen readers.';
comment on column app_private.image_record.sequence is
  E'@insertOptional\n\n'
  'Position among the images of the record; 0 is the first and the cover. Appended at the end if omitted.';
comment on column app_private.image_record.filename is 'Filename for downloads.';
comment on column app_private.image_record.filemime is
  'Media type (MIME) detected from the content.';
comment on column app_private.image_record.filesize is 'Size in bytes.';
comment on column app_private.image_record.width is 'Width in pixels, as displayed.';
comment on column app_private.image_record.height is 'Height in pixels, as displayed.';
comment on column app_private.image_record.checksum is 'SHA-256 hash of the content, in hexadecimal digits.';
comment on column app_private.image_record.uploaded_by_id is E'@behavior -*\n\nWho uploaded it.';
comment on constraint image_sequence_range on app_private.image_record is 'The sequence must be from 0 to 1,000,000.';

-- Plain SQL on purpose: signing is the API's (src/files/addresses.ts), whose key never reaches the database.
create function app_hidden.file_address(table_name text, id uuid, key text, filename text, may_be_public boolean,
  attachment boolean) returns app_public.file_address
language sql stable as $$
  -- Records visible without a token are visible to everyone; their URLs are valid while that is so.
  select jsonb_build_object('key', key, 'name', filename, 'record', case when may_be_public
    then table_name || '.' || id end,
    'expires', (select app_public.current_user_id()) is not null, 'attachment', attachment)
$$;
comment on function app_hidden.file_address is
  'What the address of a content says: which, under what name, and the record that everybody may have to see.';

create function app_hidden.file_is_public(table_name text, id uuid, checksum text) returns boolean
language plpgsql stable as $$
declare
  result boolean;
begin
  execute format('select exists (select from app_public.%I f where f.id = $1 and f.checksum = $2)', table_name)
    into result using id, checksum;
  return result;
end $$;
comment on function app_hidden.file_is_public is
  'Whether the viewer can see the record with that content; the API calls it as a visitor without a token.';

create function app_private.tg__let_go_of_file() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' or new.deleted_at is not null then
    update app_private.stored_files f set check_at = now() + interval '7 days' where f.checksum = old.checksum
      and f.check_at > now() + interval '7 days';
  end if;
  return null;
end $$;
comment on function app_private.tg__let_go_of_file() is
  'Schedules the sweep of a content a week after a row stopped referring to it.';

create function app_private.forget_files(checksums text[]) returns setof text
language plpgsql volatile as $$
declare
  file_table text;
  used text[] := '{}';
  found_used text[];
begin
  for file_table in select t.table_name from app_private.file_tables t loop
    execute format('select coalesce(array_agg(distinct f.checksum), ''{}'') from app_public.%I f
      where f.checksum = any ($1)
      and coalesce(f.deleted_at > now() - interval ''7 days'', true)', file_table) into found_used using checksums;
    used := used || found_used;
  end loop;
  used := used || array(select distinct r.checksum from app_private.retained_records r
    where r.checksum = any (checksums)) || array(select a.checksum from app_private.event_archives a
    where a.checksum = any (checksums) and a.recorded_at is not null);
  update app_private.stored_files f set check_at = now() + interval '90 days' where f.checksum = any (used);
  -- In the order in which uploads count them.
  perform from app_private.storage_used s
    where s.owner_id in (select o.id from app_private.stored_files f
      cross join lateral (values (f.organization_id), (f.stored_by_id)) o (id)
      where f.checksum = any (checksums) and f.checksum <> all (used))
    order by s.owner_id for update;
  return query
    with gone as (
      delete from app_private.stored_files f where f.checksum = any (checksums) and f.checksum <> all (used)
        returning f.checksum, f.filesize, f.organization_id, f.stored_by_id),
    counted as (
      update app_private.storage_used s set bytes = greatest(0, s.bytes - g.bytes)
        from (select o.id, sum(gone.filesize) as bytes from gone
          cross join lateral (values (gone.organization_id), (gone.stored_by_id)) o (id) group by o.id) g
        where s.owner_id = g.id)
    select gone.checksum from gone;
end $$;
comment on function app_private.forget_files(text[]) is
  'Removes those of the given contents, locked by the caller, that no row refers to, and returns them.';

create function app_private.sweep_files(batch int) returns setof text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query select app_private.forget_files(array(
    select s.checksum from app_private.stored_files s where s.check_at < now() order by s.check_at limit batch for
      update skip locked));
end $$;
comment on function app_private.sweep_files is
  'Removes due contents that no row refers to, and returns them; the caller deletes them from the store before the '
  'transaction commits.';

create function app_private.release_files(checksums text[]) returns setof text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from app_private.stored_files f where f.checksum = any (checksums) order by f.checksum for update;
  update app_private.stored_files f set pending = greatest(0, f.pending - r.times)
    from (select c.checksum, count(*)::int as times from unnest(checksums) c (checksum) group by c.checksum) r
    where f.checksum = r.checksum;
  return query select app_private.forget_files(array(
    select f.checksum from app_private.stored_files f where f.checksum = any (checksums) and f.pending = 0));
end $$;
comment on function app_private.release_files(text[]) is
  'Says that the requests that sent these contents are answered, each as often as it was sent; forgets and tells those '
  'that no row has, as sweep_files does.';
grant execute on function app_private.release_files to plat_authenticator;

create function app_private.tg__file() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  parent_table text := tg_argv[0];
  parent_column text := tg_argv[1];
  stored app_private.stored_files;
  parent_id uuid := (to_jsonb(new) ->> parent_column)::uuid;
  next_number int;
begin
  -- The lock prevents the sweep from deleting the content before the row exists.
  select * into stored from app_private.stored_files f where f.checksum = new.file ->> 'checksum'
    and f.is_stored for key share;
  if not found then
    perform app_hidden.fail('BAD_USER_INPUT', 'The file did not arrive; send it again.', '{"field": "file"}');
  end if;
  new.checksum := stored.checksum;
  new.filename := new.file ->> 'filename';
  new.filemime := stored.filemime;
  new.filesize := stored.filesize;
  if parent_table not in ('projects', 'organizations') then
    execute format('select project_id from app_public.%I where id = $1', parent_table) into new.project_id
      using parent_id;
  end if;
  if tg_argv[2] = 'Image' then
    new.width := stored.width;
    new.height := stored.height;
    if new.sequence is null then
      execute format('select coalesce(max(sequence) + 1, 0) from app_public.%I where %I = $1 and deleted_at is null',
        tg_table_name, parent_column)
        into next_number using parent_id;
      new.sequence := next_number;
    end if;
  end if;
  return new;
end $$;
comment on function app_private.tg__file() is
  'Fills a new row from the stored content and the record that it belongs to; arguments: table and column of that '
  'record, Image or Document.';

create function app_private.tg__only_file() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  execute format('select from app_public.%I where id = $1 for no key update', tg_argv[0])
    using (to_jsonb(new) ->> tg_argv[1])::uuid;
  execute format('update app_public.%I set deleted_at = now() where %I = $1 and deleted_at is null', tg_table_name,
    tg_argv[1])
    using (to_jsonb(new) ->> tg_argv[1])::uuid;
  return new;
end $$;
comment on function app_private.tg__only_file() is
  'A new file replaces the previous one; arguments: table and column of the record that it belongs to.';

create function app_private.make_file_table(
  table_name text, subject text, parent text, list text,
  settable text[] default '{}', only_one boolean default false,
  readers text default null, write_permission text default 'inventory.manage', event_permission text default null,
  writers text default null)
returns void
language plpgsql volatile as $$
declare
  parent_name text := (select r.subject from app_hidden.record_types r where r.table_name = make_file_table.parent);
  parent_column text := parent_name || '_id';
  is_image boolean := exists (select from pg_attribute a
    where a.attrelid = format('app_public.%I', table_name)::regclass and a.attname = 'sequence');
  interface text := case when is_image then 'Image' else 'Document' end;
  template regclass := case when is_image then 'app_private.image_record' else 'app_private.document_record' end;
  described record;
  -- PERF: (select true …) looks each record up by its id; exists (…) may be planned as a hash of all that there are.
  -- A picture is seen with its record. A document is so only where it is public, otherwise it requires the permission.
  sees_parent text := format('(select true from app_public.%I parent where parent.id = %I)', parent, parent_column);
  members text := 'organization_id = any ((select app_hidden.viewer_organizations(''inventory.read''))::uuid[]) or '
    'project_id = any ((select app_hidden.viewer_projects(''inventory.read''))::uuid[])';
  user_sees text := coalesce(readers, case when is_image then sees_parent
    else format('(public and %s) or %s', sees_parent, members) end);
  anybody_sees text := coalesce(readers, case when is_image then sees_parent
    else format('public and %s', sees_parent) end);
  may_write text := coalesce(writers, format('organization_id = any ((select '
    'app_hidden.viewer_organizations(%L))::uuid[])', write_permission)
    || case when parent = 'organizations' then ''
      else format(' or project_id = any ((select app_hidden.viewer_projects(%L))::uuid[])', write_permission) end);
  columns text[] := array[case when is_image then 'alt' else 'description' end] || settable;
begin
  insert into app_private.file_tables (table_name) values (table_name);
  for described in
    select a.attname, col_description(template, a.attnum) as description
    from pg_attribute a where a.attrelid = template and a.attnum > 0 and not a.attisdropped
      and col_description(template, a.attnum) is not null
  loop
    execute format('comment on column app_public.%I.%I is %L', table_name, described.attname, described.description);
  end loop;
  if is_image then
    execute format('comment on constraint image_sequence_range on app_public.%I is %L', table_name,
      (select obj_description(c.oid) from pg_constraint c where c.conrelid = template
        and c.conname = 'image_sequence_range'));
  end if;
  if parent not in ('organizations', 'projects') then
    execute format('comment on constraint %I on app_public.%I is %L', table_name || '_project_id_fkey', table_name,
      E'@behavior -*\n@backwardBehavior -*\n\nThe project that it belongs to.');
    execute format('comment on column app_public.%I.%I is %L', table_name, parent_column,
      E'@behavior -attribute:select\n\nThe ' || replace(parent_name, '_', ' ') || ' that it belongs to.');
  end if;
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_' || parent_column || '_fkey',
    table_name,
    E'@parent\n@fieldName ' || app_hidden.camel(parent_name) || E'\n'
    || case when is_image and readers is null then E'@notNull\n' else '' end
    || case when only_one then '@backwardBehavior -*'
      else '@foreignFieldName ' || app_hidden.camel(list) || E'\n@backwardDescription '
      || case when is_image then 'Images, in display order; the first is the cover.'
        else 'Files, in display order.' end end
    || E'\n\nThe ' || replace(parent_name, '_', ' ') || ' that it belongs to.');
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_uploaded_by_id_fkey', table_name,
    E'@fieldName uploadedBy\n@backwardBehavior -*\n\nThe user who uploaded the file; visible to members of the same '
    'organization.');

  execute format('create policy readers on app_public.%I for select to plat_user using (deleted_at is null and (%s))',
    table_name, user_sees);
  execute format('create policy everybody on app_public.%I for select to plat_anonymous using (deleted_at is null and '
    '(%s))', table_name, anybody_sees);
  execute format('create policy writers_insert on app_public.%I for insert to plat_user with check (%s)', table_name,
    may_write);
  execute format('create policy writers_update on app_public.%I for update to plat_user using (%s)', table_name,
    may_write);
  execute format('create policy writers_delete on app_public.%I for delete to plat_user using (%s)', table_name,
    may_write);
  execute format('grant select on app_public.%I to plat_user, plat_anonymous', table_name);
  execute format('grant insert (%I, file, %s) on app_public.%I to plat_user', parent_column,
    (select string_agg(quote_ident(c), ', ') from unnest(columns) c), table_name);
  execute format('grant update (%s), delete on app_public.%I to plat_user',
    (select string_agg(quote_ident(c), ', ') from unnest(columns) c), table_name);

  execute format('create trigger _040_file before insert on app_public.%I for each row execute function '
    'app_private.tg__file(%L, %L, %L)',
    table_name, parent, parent_column, interface);
  if only_one then
    execute format('create trigger _045_only_file before insert on app_public.%I for each row execute function '
      'app_private.tg__only_file(%L, %L)',
      table_name, parent, parent_column);
  end if;
  execute format('create trigger _500_let_go after delete or update of deleted_at on app_public.%I for each row '
    'execute function app_private.tg__let_go_of_file()', table_name);
  if parent = 'organizations' then
    perform app_private.make_record(table_name, subject, write_permission);
  else
    perform app_private.make_project_record(table_name, subject, write_permission, event_permission);
  end if;

  execute format('create function app_public.%1$I(f app_public.%2$I) returns app_public.file_address language sql stable
    as $f$
      select app_hidden.file_address(%2$L, f.id, f.checksum, f.filename, %3$s) $f$', table_name || '_url', table_name,
    case when is_image then 'true, false' else 'f.public, true' end);
  execute format('comment on function app_public.%I is %L', table_name || '_url',
    E'@notNull\n\nDownload URL. It expires after a few minutes unless the file is public.');
  execute format('grant execute on function app_public.%I to plat_user, plat_anonymous', table_name || '_url');
  if is_image then
    execute format('create function app_public.%1$I(f app_public.%2$I) returns app_public.file_address language sql
      stable as $f$
      select case when f.width is not null then app_hidden.file_address(%2$L, f.id, f.checksum || ''.thumbnail'',
        ''thumbnail.webp'', true, false) end $f$',
      table_name || '_thumbnail_url', table_name);
    execute format('comment on function app_public.%I is %L', table_name || '_thumbnail_url',
      'URL of a thumbnail of at most 480 × 480 pixels; expires like `url`.');
    execute format('grant execute on function app_public.%I to plat_user, plat_anonymous',
      table_name || '_thumbnail_url');
  end if;
end $$;
comment on function app_private.make_file_table is
  'Gives a table like app_private.image_record or document_record what it takes to be served: comments, row '
  'security, grants, triggers, addresses, events. `parent` is the table it belongs to, `list` the field there, '
  '`settable` further columns that callers give; `only_one` lets a new file replace the former; `readers` is a '
  'condition that replaces who sees it, `writers` one that replaces who writes it.';

comment on type app_public.delete_organization_avatar_payload is
  E'@foreignKey (organization_id) references organizations (id)|@fieldName organization\n\n'
  'Result of `deleteOrganizationAvatar`.';

comment on column app_public.delete_organization_avatar_payload.id is E'@notNull\n\nId of the deleted image.';
comment on column app_public.delete_organization_avatar_payload.deleted is
  E'@notNull\n\nAlways true; a refused deletion is an error.';
comment on column app_public.delete_organization_avatar_payload.organization_id is E'@behavior -*\n\nIts organization.';

comment on type app_public.delete_project_avatar_payload is
  E'@foreignKey (project_id) references projects (id)|@fieldName project\n\nResult of `deleteProjectAvatar`.';

comment on column app_public.delete_project_avatar_payload.id is E'@notNull\n\nId of the deleted image.';
comment on column app_public.delete_project_avatar_payload.deleted is
  E'@notNull\n\nAlways true; a refused deletion is an error.';
comment on column app_public.delete_project_avatar_payload.project_id is
  E'@behavior -*\n\nThe project that the schedule belongs to.';

create function app_public.delete_organization_avatar(organization_id uuid) returns
  app_public.delete_organization_avatar_payload
language plpgsql volatile as $$
declare
  avatar app_public.organization_avatars;
begin
  perform app_hidden.require_viewer();
  perform app_hidden.require_organization(organization_id, 'org.owner');
  select * into avatar from app_public.organization_avatars a
    where a.organization_id = delete_organization_avatar.organization_id;
  if avatar is null then
    perform app_hidden.fail('NOT_FOUND', 'This organization has no avatar.', '{"field": "organizationId"}');
  end if;
  perform app_hidden.delete_record(null::app_public.organization_avatars, avatar.id::text);
  return row(avatar.id, true, organization_id);
end $$;

create function app_public.delete_project_avatar(project_id uuid) returns app_public.delete_project_avatar_payload
language plpgsql volatile as $$
declare
  avatar app_public.project_avatars;
begin
  perform app_hidden.require_viewer();
  select * into avatar from app_public.project_avatars a where a.project_id = delete_project_avatar.project_id;
  if avatar is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project, or it has no avatar.', '{"field": "projectId"}');
  end if;
  perform app_hidden.delete_record(null::app_public.project_avatars, avatar.id::text);
  return row(avatar.id, true, project_id);
end $$;
grant execute on function app_public.delete_organization_avatar, app_public.delete_project_avatar to plat_user,
  plat_anonymous;
comment on function app_public.delete_organization_avatar is
  E'@arg organizationId Id of the organization; the viewer must be an owner.\n\n'
  'Deletes the avatar (logo) of an organization. Requires the role OWNER.';
comment on function app_public.delete_project_avatar is
  E'@arg projectId Id of the project whose logo is deleted.\n\nDeletes the avatar (logo) of a project.';
grant execute on function app_private.sweep_files to plat_worker;
