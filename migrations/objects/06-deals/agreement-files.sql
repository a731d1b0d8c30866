-- Files of agreements: PDFs with versions. The latest version is signed; sent versions are never deleted. A version
-- with signatures is only replaced on explicit request (void_signatures): everybody is then asked to sign again.

create function app_hidden.may_write_agreement(agreement_id uuid) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- Also false for unknown ids, so that it does not reveal which ids exist.
  select coalesce((select case when a.lead_id is not null
      then (select app_hidden.deal_can(l.organization_id, l.project_id, l.assignee_id, 'lead.write')
        from app_public.leads l where l.id = a.lead_id)
      else (select app_hidden.deal_can(b.organization_id, b.project_id, b.assignee_id, 'buyer.write')
        from app_public.buyers b where b.id = a.buyer_id) end
    from app_public.agreements a where a.id = may_write_agreement.agreement_id and a.deleted_at is null), false)
$$;
grant execute on function app_hidden.may_write_agreement(uuid) to plat_user;
comment on function app_hidden.may_write_agreement(uuid) is
  'Whether the viewer may change the agreement, as one of the sales team.';

select app_private.make_file_table('agreement_files', 'agreement_file', parent => 'agreements', list => 'files',
  settable => '{title}',
  -- Unsent versions are only visible to the sales team, even if a member signs or buys.
  readers => $$(select true from app_public.agreements parent where parent.id = agreement_id)
    and (sent_at is not null or agreement_id <> all (array(select app_hidden.viewer_party_agreements()))
      or app_hidden.may_write_agreement(agreement_id))$$,
  write_permission => 'buyer.write', event_permission => 'buyer.read',
  writers => 'app_hidden.may_write_agreement(agreement_id)');
drop policy everybody on app_public.agreement_files;

grant insert (void_signatures) on app_public.agreement_files to plat_user;

comment on policy readers on app_public.agreement_files is
  '@perRow Asked of versions that were not sent, of agreements of which the viewer is a party: a few.';
comment on policy writers_insert on app_public.agreement_files is
  '@perRow Files are uploaded one by one, and the agreement says whose deal it is.';
comment on policy writers_update on app_public.agreement_files is
  '@perRow One file is changed at a time, and the agreement says whose deal it is.';
comment on policy writers_delete on app_public.agreement_files is
  '@perRow One file is deleted at a time, and the agreement says whose deal it is.';

comment on table app_public.agreement_files is
  E'@file Document\n\n'
  'A file of an agreement: a version of the document to sign, the signed document, or its certificate.';
comment on constraint agreement_files_agreement_id_fkey on app_public.agreement_files is
  E'@parent\n@fieldName agreement\n@notNull\n@foreignFieldName files\n@backwardDescription Versions of the document '
  'and its certificate, by version number.\n\n'
  'The agreement that it belongs to.';
comment on column app_public.agreement_files.file is
  E'@personal contract\n@writeOnly\n@secret\n\nA PDF of at most 50 MB.';
comment on column app_public.agreement_files.kind is 'Kind of file, such as the document to sign or its certificate.';
comment on column app_public.agreement_files.title is
  E'@personal contract\n\nDisplay title, shown instead of the filename.';
comment on column app_public.agreement_files.description is E'@personal contract\n\nFree-text description.';
comment on column app_public.agreement_files.filename is E'@personal contract\n\nFilename for downloads.';
comment on column app_public.agreement_files.checksum is
  E'@personal contract\n\nSHA-256 hash of the content, in hexadecimal digits.';
comment on column app_public.agreement_files.filemime is
  E'@impersonal\n\nMedia type (MIME) detected from the content.';
comment on column app_public.agreement_files.number is
  E'@insertOptional\n\nVersion number, from 1. The latest DOCUMENT is the version to sign.';
comment on column app_public.agreement_files.void_signatures is
  'Set to true to void the signatures on the previous version; required if somebody has signed it. All signers are '
  'then asked to sign again.';
comment on column app_public.agreement_files.sent_at is
  'When the version was first sent to the signers; null if it was not.';
comment on index app_public.agreement_files_number is
  'Somebody else has just uploaded a version; review it and try again.';

create function app_private.present_file(agreement_id uuid) returns app_public.agreement_files
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select f.* from app_public.agreement_files f
  where f.agreement_id = present_file.agreement_id and f.kind = 'DOCUMENT' and f.deleted_at is null
  order by f.number desc limit 1
$$;
comment on function app_private.present_file(uuid) is 'The version of an agreement that is signed; null where it has '
  'no file.';

create function app_private.tg_agreement_files__version() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  agreement app_public.agreements;
  signed int;
  is_signed_here boolean;
  -- Each makes mails to all signers.
  most constant int := 100;
begin
  select * into agreement from app_public.agreements a where a.id = new.agreement_id for no key update;
  select count(*) filter (where s.status = 'SIGNED'), count(*) > 0 into signed, is_signed_here
    from app_public.agreement_signers s where s.agreement_id = new.agreement_id and s.deleted_at is null;
  new.number := coalesce((select max(f.number) from app_public.agreement_files f
    where f.agreement_id = new.agreement_id and f.kind = new.kind), 0) + 1;
  if new.kind <> 'DOCUMENT' then
    new.sent_at := now();
    return new;
  end if;
  -- A content that is announced but not uploaded yet (app_hidden.may_upload) has no type.
  if new.filemime <> 'application/pdf' and new.checksum <> repeat('0', 64) then
    perform app_hidden.fail('UNSUPPORTED_FILE', 'Only PDF files can be signed.', '{"field": "file"}');
  elsif new.number > most then
    perform app_hidden.fail('LIMIT_EXCEEDED', format('An agreement can have at most %s versions; create another '
      'agreement.',
      most),
      jsonb_build_object('limit', most));
  elsif agreement.status in ('DECLINED', 'EXPIRED', 'VOIDED')
    or (is_signed_here and agreement.status in ('SIGNED', 'EXECUTED')) then
    perform app_hidden.fail('CONFLICT', format('This agreement has ended (%s) and accepts no further versions; '
      'create another agreement.', agreement.status), '{"field": "agreementId"}');
  elsif is_signed_here and agreement.signing_provider <> 'EMBEDDED' and agreement.status <> 'DRAFT' then
    perform app_hidden.fail('CONFLICT',
      'This agreement is being signed at its provider, which accepts no further versions; void it and create another '
      'one.',
      '{"field": "agreementId"}');
  elsif signed > 0 and not new.void_signatures then
    perform app_hidden.fail('CONFLICT', format('The current version has been signed (%s signatures), and signatures '
      'do not apply to another version. Use voidSignatures: true to void them and ask everybody to sign again.',
      signed),
      jsonb_build_object('field', 'voidSignatures', 'signatures', signed));
  end if;
  new.void_signatures := signed > 0;
  new.sent_at := case when agreement.status <> 'DRAFT' then now() end;
  return new;
end $$;
create trigger _300_version before insert on app_public.agreement_files for each row
  execute function app_private.tg_agreement_files__version();

create function app_private.tg_agreement_files__replaced() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  agreement app_public.agreements;
  before text := coalesce(current_setting('plat.service', true), '');
begin
  select * into agreement from app_public.agreements a where a.id = new.agreement_id;
  if agreement.status not in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED') or not exists (select
      from app_public.agreement_signers s where s.agreement_id = new.agreement_id and s.deleted_at is null) then
    return null;
  end if;
  perform app_private.note_trail(agreement.id, 'REPLACED', file => new, note => case when new.void_signatures
    then 'The signatures on the version before were given up.' end);
  perform set_config('plat.service', 'on', true);
  update app_public.agreement_signers s set status = 'WAITING', invited_at = null, viewed_at = null, signed_at = null,
      signed_file_id = null
    where s.agreement_id = agreement.id and s.status <> 'WAITING' and s.deleted_at is null;
  delete from app_private.agreement_codes c using app_public.agreement_signers s
    where s.id = c.signer_id and s.agreement_id = agreement.id;
  update app_public.agreements a set status = 'SENT', viewed_at = null, signed_at = null
    where a.id = agreement.id and a.status <> 'SENT';
  perform set_config('plat.service', before, true);
  perform app_private.invite_signers(agreement.id);
  return null;
end $$;
create trigger _510_replaced after insert on app_public.agreement_files for each row when (new.kind = 'DOCUMENT')
  execute function app_private.tg_agreement_files__replaced();

create function app_private.tg_agreement_files__keep() returns trigger
language plpgsql volatile as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if old.sent_at is not null then
    perform app_hidden.fail('CONFLICT', 'A sent version cannot be deleted; upload another version to replace it.');
  end if;
  return old;
end $$;
create trigger _200_keep before delete on app_public.agreement_files for each row
  execute function app_private.tg_agreement_files__keep();
