-- Operations of signers, signed in or with the link of their mail: read the document, request a code, sign, decline. A
-- code has six digits, is valid for ten minutes and five attempts, for one version of the file; only its SHA-256 is
-- stored. An attempt is counted in a separate transaction (try_signing_code), so that a later failure does not restore
-- it.

comment on domain app_public.signing_code is
  E'@transform proveSigningCode\n\nThe one-time code that requestSigningCode sent.';
comment on table app_private.agreement_codes is
  'The valid code of a signer, as SHA-256. proof is the value that a correct code was exchanged for.';

comment on type app_public.signing_request is 'An agreement to be signed, as visible to the signer.';
do $$
declare
  described record;
begin
  for described in select * from (values
    ('agreement_id', E'@notNull\n\nId of the agreement, which signers without an account cannot query.'),
    ('signer_id', E'@notNull\n\nId of the signer that the link belongs to.'),
    ('title', E'@notNull\n\nDisplay title.'), ('type', E'@notNull\n\nKind of the agreement.'),
    ('status', E'@notNull\n\nProgress of all signers together, from dispatch to countersignature.'),
    ('organization_name', E'@notNull\n\nName of the organization that requests the signature.'),
    ('project_title', E'@notNull\n\nTitle of the project that the agreement is about.'),
    ('signer_name', E'@notNull\n\nName of the signer on the agreement.'),
    ('role', E'@notNull\n\nCapacity in which the person signs.'),
    ('signer_status', E'@notNull\n\nProgress of this signer, from invitation to signature.'),
    ('can_sign', E'@notNull\n\nWhether the signer can sign, or decline, now.'),
    ('file_id', 'Id of the version to sign; null once the agreement was withdrawn or has expired.'),
    ('file_number', 'Number of the version to sign, from 1.'), ('filename', 'Filename for downloads.'),
    ('checksum', 'SHA-256 of the version to sign, in hexadecimal digits.'),
    ('url', 'Download URL; expires after a few minutes.'),
    ('certificate_url',
      'URL of the certificate that records who signed what, when and from where; null before all have signed.'),
    ('consent_text', E'@notNull\n\nDeclaration of consent that signing makes.'),
    ('code_sent_to', 'Masked recipient of the last code; null if none is valid.'),
    ('expires_at', 'Deadline for signing.'), ('signed_at', 'When the signer signed.')
  ) d (name, description)
  loop
    execute format('comment on column app_public.signing_request.%I is %L', described.name, described.description);
  end loop;
end $$;

create function app_private.shortened_address(address text) returns text
language sql immutable strict as $$
  select case when address like '%@%' then left(address, 1) || '…@' || split_part(address, '@', 2)
    else '… ' || right(address, 2) end
$$;
comment on function app_private.shortened_address(text) is
  'An address or number as its owner knows it again and nobody else learns it.';

create function app_private.signing_address(file app_public.agreement_files) returns app_public.file_address
language sql stable as $$
  select case when (file).id is not null then jsonb_build_object('key', (file).checksum, 'name', (file).filename,
    'record', null, 'expires', true, 'attachment', true) end
$$;
comment on function app_private.signing_address(app_public.agreement_files) is
  'Download URL of a file for a signer, who may have no account; always expires.';

create function app_private.signing_request(signer_id uuid) returns app_public.signing_request
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  result app_public.signing_request;
  agreement app_public.agreements;
  signer app_public.agreement_signers;
  file app_public.agreement_files;
  certificate app_public.agreement_files;
begin
  select * into signer from app_public.agreement_signers s where s.id = signing_request.signer_id;
  select * into agreement from app_public.agreements a where a.id = signer.agreement_id;
  if agreement.status in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED', 'SIGNED', 'EXECUTED') then
    file := app_private.present_file(agreement.id);
    select * into certificate from app_public.agreement_files f
      where f.agreement_id = agreement.id and f.kind = 'CERTIFICATE' and f.deleted_at is null
      order by f.number desc limit 1;
  end if;
  result.agreement_id := agreement.id;
  result.signer_id := signer.id;
  result.title := agreement.title;
  result.type := agreement.type;
  result.status := agreement.status;
  result.organization_name := (select o.name from app_public.organizations o where o.id = agreement.organization_id);
  result.project_title := (select p.title from app_public.projects p where p.id = agreement.project_id);
  result.signer_name := signer.name;
  result.role := signer.role;
  result.signer_status := signer.status;
  result.can_sign := agreement.signing_provider = 'EMBEDDED' and signer.status in ('INVITED', 'VIEWED')
    and agreement.status in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED', 'SIGNED')
    and (agreement.status = 'SIGNED' or coalesce(agreement.expires_at > now(), true));
  result.file_id := file.id;
  result.file_number := file.number;
  result.filename := file.filename;
  result.checksum := file.checksum;
  result.url := app_private.signing_address(file);
  result.certificate_url := app_private.signing_address(certificate);
  result.consent_text := app_private.signing_consent();
  result.code_sent_to := (select app_private.shortened_address(case c.channel when 'SMS' then signer.phone
      else signer.email end)
    from app_private.agreement_codes c where c.signer_id = signer.id
      and coalesce(c.expires_at, c.requested_at + interval '10 minutes') > now());
  result.expires_at := agreement.expires_at;
  result.signed_at := signer.signed_at;
  return result;
end $$;
comment on function app_private.signing_request(uuid) is
  'The signing request of a signer; the caller has authenticated the signer.';

create function app_public.signing_request(signer_id uuid default null, token text default null)
returns app_public.signing_request
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return app_private.signing_request(app_private.signer_of(signer_id, token));
end $$;
grant execute on function app_public.signing_request to plat_user, plat_anonymous;
comment on function app_public.signing_request(uuid, text) is
  E'@withoutViewer For signers without an account: the token of their mail says who they are.\n@arg signerId Id of '
  'the signer, if the viewer is signed in with the signer''s address or as the buyer of the purchase.\n@arg token '
  'Token from the link in the mail, for signers without an account.\n\n'
  'An agreement that the viewer is asked to sign, by the token of the link or the id of the signer.';

create function app_public.signing_requests() returns setof app_public.signing_request
language plpgsql stable security definer rows 10 set search_path = pg_catalog, pg_temp as $$
begin
  perform app_hidden.require_viewer();
  return query select r.*
    from app_public.agreement_signers s join app_public.agreements a on a.id = s.agreement_id and a.deleted_at is null
    cross join lateral app_private.signing_request(s.id) r
    where s.id = any (array(select app_hidden.viewer_signers())) and a.status <> 'DRAFT'
    order by s.status in ('INVITED', 'VIEWED') desc, s.id desc limit 100;
end $$;
grant execute on function app_public.signing_requests to plat_user;
comment on function app_public.signing_requests() is
  E'@ordered\n\nSigning requests of the viewer, open ones first, then latest first; at most 100.';

create function app_public.request_signing_code(signer_id uuid default null, token text default null,
  channel app_public.code_channel default 'EMAIL') returns app_public.signing_request
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.actor_type', true), '');
  turn app_private.turn := app_private.require_turn(app_private.signer_of(request_signing_code.signer_id, token));
  way text := coalesce(request_signing_code.channel, 'EMAIL');
begin
  if way = 'SMS' and (turn.signer).phone is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'This signer has no phone number; request the code by mail.',
      '{"field": "channel"}');
  end if;
  perform app_private.rate_limit('signing.code', (turn.signer).id::text);
  perform app_private.rate_limit('signing.network', app_private.network_of(app_hidden.setting('ip')));
  perform app_private.act_as_signer((turn.signer).role);
  insert into app_private.agreement_codes (signer_id, file_id, channel)
    values ((turn.signer).id, (turn.file).id, way)
    on conflict on constraint agreement_codes_pkey do update set file_id = excluded.file_id, channel = excluded.channel,
      code_sha256 = null, expires_at = null, tries = 0, proof = null, proof_expires_at = null, requested_at = now();
  perform app_private.add_job('signing_code__requested', jsonb_build_object('id', (turn.signer).id,
    'organization_id', (turn.agreement).organization_id), job_key => 'signing_code__requested ' || (turn.signer).id);
  perform app_private.mark_viewed(turn);
  perform set_config('plat.actor_type', before, true);
  return app_private.signing_request((turn.signer).id);
end $$;
grant execute on function app_public.request_signing_code to plat_user, plat_anonymous;
comment on function app_public.request_signing_code(uuid, text, app_public.code_channel) is
  E'@withoutViewer For signers without an account: the token of their mail says who they are.\n@arg signerId Id of '
  'the signer, if the viewer is signed in with the signer''s address or as the buyer of the purchase.\n@arg token '
  'Token from the link in the mail, for signers without an account.\n@arg channel Channel for the code: mail, or a '
  'text message to the signer''s phone number.\n\n'
  'Sends the signer a one-time code of six digits, which `signAgreement` and `declineAgreement` require. It is '
  'valid for ten minutes and five attempts, and replaces the previous one. The agreement counts as viewed by the '
  'signer.';

create function app_private.hash_of_code(signer_id uuid, code text) returns bytea
language sql immutable as $$
  select sha256(convert_to(signer_id || ' ' || regexp_replace(code, '[\s-]', '', 'g'), 'UTF8'))
$$;
comment on function app_private.hash_of_code(uuid, text) is 'What is kept of the code of a signer.';

create function app_hidden.try_signing_code(signer_id uuid, token text, code text) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  signer uuid := app_private.signer_of(signer_id, token);
  open app_private.agreement_codes;
  most constant int := 5;
  fresh constant uuid := gen_random_uuid();
begin
  if not app_private.is_within_limit('signing.try', signer::text) then
    return jsonb_build_object('retryAfterSeconds',
      (select app_private.seconds_to_wait(app_private.limit_key('signing.try', signer::text), l.most)
        from app_private.limit_of('signing.try') l));
  end if;
  select c.* into open from app_private.agreement_codes c where c.signer_id = signer for update;
  if open.code_sha256 is null or open.expires_at <= clock_timestamp() or open.tries >= most then
    perform app_private.return_use(app_private.limit_key('signing.try', signer::text));
    -- Left to the operation: a request that is sent again under its idempotency key gets its first answer.
    return jsonb_build_object('proof', '');
  elsif open.code_sha256 <> app_private.hash_of_code(signer, code) then
    update app_private.agreement_codes c set tries = c.tries + 1 where c.signer_id = signer;
    return jsonb_build_object('triesLeft', most - open.tries - 1);
  end if;
  -- A right one is no try.
  perform app_private.return_use(app_private.limit_key('signing.try', signer::text));
  update app_private.agreement_codes c set proof = fresh, proof_expires_at = clock_timestamp() + interval '1 minute'
    where c.signer_id = signer;
  return jsonb_build_object('proof', fresh);
end $$;
grant execute on function app_hidden.try_signing_code(uuid, text, text) to plat_user, plat_anonymous;
comment on function app_hidden.try_signing_code(uuid, text, text) is
  E'@withoutViewer For signers without an account: the token of their mail says who they are.\n\n'
  'Exchanges a correct code for {proof}, which is valid for a minute. A wrong one counts, and returns {triesLeft}, '
  'or {retryAfterSeconds} after too many. Raises nothing of its own, so that the try is kept.';

create function app_private.take_proof(turn app_private.turn, proof text) returns app_private.agreement_codes
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  result app_private.agreement_codes;
begin
  delete from app_private.agreement_codes c where c.signer_id = (turn.signer).id
      and c.proof::text = take_proof.proof and c.proof_expires_at > clock_timestamp()
    returning * into result;
  if result.signer_id is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'There is no valid code: none was sent, or it was used, is older than '
      'ten minutes, or was tried too often. Request a new one with requestSigningCode.', '{"field": "code"}');
  elsif result.file_id <> (turn.file).id then
    perform app_hidden.fail('CONFLICT',
      'The document has changed since the code was sent; read the new version and request a new code.',
      '{"field": "code"}');
  end if;
  return result;
end $$;
comment on function app_private.take_proof(app_private.turn, text) is
  'Uses a code up; refuses one that was sent for another version of the file.';

create function app_public.sign_agreement(code app_public.signing_code, consent boolean, file_id uuid default null,
  signer_id uuid default null, token text default null) returns app_public.signing_request
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.actor_type', true), '');
  turn app_private.turn := app_private.require_turn(app_private.signer_of(sign_agreement.signer_id, token));
  used app_private.agreement_codes;
begin
  if not coalesce(consent, false) then
    perform app_hidden.fail('BAD_USER_INPUT',
      'Signing requires consent: true, to the consentText of the signing request.',
      '{"field": "consent"}');
  elsif sign_agreement.file_id <> (turn.file).id then
    perform app_hidden.fail('CONFLICT', 'This is not the current version; read that one first.', '{"field": "fileId"}');
  end if;
  used := app_private.take_proof(turn, sign_agreement.code);
  perform app_private.act_as_signer((turn.signer).role);
  perform app_private.mark_viewed(turn);
  perform app_private.note_trail((turn.agreement).id, 'SIGNED', signer => turn.signer, file => turn.file,
    sent_to => case used.channel when 'SMS' then (turn.signer).phone else (turn.signer).email end,
    consent_text => app_private.signing_consent());
  perform app_private.note_signature((turn.signer).id, turn.file, now());
  perform set_config('plat.actor_type', before, true);
  return app_private.signing_request((turn.signer).id);
end $$;
grant execute on function app_public.sign_agreement to plat_user, plat_anonymous;
comment on function app_public.sign_agreement(app_public.signing_code, boolean, uuid, uuid, text) is
  E'@withoutViewer For signers without an account: the token of their mail says who they are.\n@arg code One-time '
  'code from `requestSigningCode`.\n@arg consent Whether the signer agrees to `consentText`; must be true.\n@arg '
  'fileId Id of the version that the signer read; refused with CONFLICT if there is a newer one.\n@arg signerId Id '
  'of the signer, if the viewer is signed in with the signer''s address or as the buyer of the purchase.\n@arg '
  'token Token from the link in the mail, for signers without an account.\n\n'
  'Signs the current version of an agreement. Its SHA-256, the consent, the time, the IP address and the user '
  'agent are recorded in the audit trail.';

create function app_public.decline_agreement(code app_public.signing_code, reason app_public.long_text,
  signer_id uuid default null, token text default null) returns app_public.signing_request
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.actor_type', true), '');
  turn app_private.turn := app_private.require_turn(app_private.signer_of(decline_agreement.signer_id, token));
  used app_private.agreement_codes;
begin
  if reason is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'Declining requires a reason.', '{"field": "reason"}');
  end if;
  used := app_private.take_proof(turn, decline_agreement.code);
  perform app_private.act_as_signer((turn.signer).role);
  perform app_private.mark_viewed(turn);
  perform app_private.note_trail((turn.agreement).id, 'DECLINED', signer => turn.signer, file => turn.file,
    sent_to => case used.channel when 'SMS' then (turn.signer).phone else (turn.signer).email end, note => reason);
  perform app_private.note_refusal((turn.signer).id, reason);
  perform set_config('plat.actor_type', before, true);
  return app_private.signing_request((turn.signer).id);
end $$;
grant execute on function app_public.decline_agreement to plat_user, plat_anonymous;
comment on function app_public.decline_agreement(app_public.signing_code, app_public.long_text, uuid, text) is
  E'@withoutViewer For signers without an account: the token of their mail says who they are.\n@arg code One-time '
  'code from `requestSigningCode`.\n@arg reason Reason, shown to the sender.\n@arg signerId Id of the signer, if '
  'the viewer is signed in with the signer''s address or as the buyer of the purchase.\n@arg token Token from the '
  'link in the mail, for signers without an account.\n\n'
  'Declines to sign an agreement. This ends the agreement for all signers.';

create function app_public.remind_agreement_signer(id uuid) returns app_public.agreement_signers
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  signer app_public.agreement_signers;
begin
  perform app_hidden.require_viewer();
  if not app_private.viewer_sees('app_public.agreement_signers', remind_agreement_signer.id) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such signer.', '{"field": "id"}');
  end if;
  select * into signer from app_public.agreement_signers s where s.id = remind_agreement_signer.id;
  if not app_hidden.may_write_agreement(signer.agreement_id) then
    perform app_hidden.fail('FORBIDDEN', 'You may not remind this signer.', '{"permission": "buyer.write"}');
  end if;
  perform app_private.remind_signer(signer.id, 'by hand');
  select * into signer from app_public.agreement_signers s where s.id = remind_agreement_signer.id;
  return app_hidden.masked(signer);
end $$;
grant execute on function app_public.remind_agreement_signer to plat_user, plat_anonymous;
comment on function app_public.remind_agreement_signer(uuid) is
  E'@arg id Id of a signer who was invited and has not signed.\n\n'
  'Sends a reminder email to a signer who has not signed yet; at most three in 24 hours.';

create function app_private.remind_signer(id uuid, why text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  agreement app_public.agreements;
  signer app_public.agreement_signers;
begin
  select a.* into agreement from app_public.agreements a
    where a.id = (select s.agreement_id from app_public.agreement_signers s where s.id = remind_signer.id)
    for no key update;
  select s.* into signer from app_public.agreement_signers s where s.id = remind_signer.id for no key update;
  if signer.status not in ('INVITED', 'VIEWED')
    or agreement.status not in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED', 'SIGNED') then
    perform app_hidden.fail('CONFLICT',
      'Only a signer who has been asked, and has neither signed nor declined, can be reminded.',
      '{"field": "id"}');
  end if;
  perform app_private.rate_limit('signing.reminder', signer.id::text);
  perform set_config('plat.service', 'on', true);
  update app_public.agreement_signers s set reminded_at = now(), invitation = s.invitation + 1
    where s.id = remind_signer.id returning * into signer;
  perform set_config('plat.service', before, true);
  perform app_private.note_trail(agreement.id, 'REMINDED', signer => signer, note => why);
  if agreement.signing_provider = 'EMBEDDED' then
    perform app_private.add_job('agreement_signer__invited',
      jsonb_build_object('id', signer.id, 'invitation', signer.invitation));
  else
    perform app_private.add_job('agreement__reminded', jsonb_build_object('id', agreement.id),
      job_key => 'agreement__reminded ' || agreement.id);
  end if;
end $$;
comment on function app_private.remind_signer(uuid, text) is
  'Sends a reminder to a signer; refused if the signer cannot sign.';
