-- Signing. An agreement with signers is sent by the status SENT; from then on, the status follows from the signers:
--
--   one opens it                           → VIEWED
--   one signs, others have not             → PARTIALLY_SIGNED
--   all on the buyer's side have signed    → SIGNED; final if the seller has no signer
--   the seller's signers have signed too   → EXECUTED
--   one declines                           → DECLINED
--
-- Signing and declining require a one-time code sent to the address (or the phone); the signature is stored in the
-- audit trail. Lock order: the agreement first, then its signers.

create function app_private.signing_consent() returns text
language sql immutable as $$
  select 'I have read this document. I agree to sign it electronically, and my electronic signature shall have the '
    'same effect as one by hand.'
$$;
comment on function app_private.signing_consent() is
  'Consent texts; each signature stores the text that applied.';

create function app_private.invite_signers(agreement_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  before text := coalesce(current_setting('plat.service', true), '');
  agreement app_public.agreements;
  signer app_public.agreement_signers;
begin
  select * into agreement from app_public.agreements a where a.id = agreement_id;
  perform set_config('plat.service', 'on', true);
  for signer in
    update app_public.agreement_signers s set status = 'INVITED', invited_at = now(), invitation = s.invitation + 1
    where s.agreement_id = invite_signers.agreement_id and s.status = 'WAITING' and s.deleted_at is null
      and s.sequence = (select min(o.sequence) from app_public.agreement_signers o
        where o.agreement_id = invite_signers.agreement_id and o.status <> 'SIGNED' and o.deleted_at is null)
    returning *
  loop
    if agreement.signing_provider = 'EMBEDDED' then
      perform app_private.add_job('agreement_signer__invited',
        jsonb_build_object('id', signer.id, 'invitation', signer.invitation));
      if agreement.reminder_days is not null then
        perform app_private.add_job('agreement_signer__reminded',
          jsonb_build_object('id', signer.id, 'invitation', signer.invitation, 'round', 1),
          run_at => now() + agreement.reminder_days * interval '1 day',
          job_key => 'agreement_signer__reminded ' || signer.id);
      end if;
    end if;
  end loop;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.invite_signers(uuid) is
  'Invites the next signers in the signing order.';

create function app_private.tg_agreements__signing_checks() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  has_signers boolean;
begin
  if tg_op = 'UPDATE' and new.signing_provider <> old.signing_provider and old.status <> 'DRAFT' then
    perform app_hidden.fail('CONFLICT', 'The signing provider can only be changed while the agreement is a draft.',
      '{"field": "signingProvider"}');
  end if;
  if tg_op = 'INSERT' or new.status = old.status or coalesce(app_hidden.is_service(), false) then
    return new;
  end if;
  has_signers := exists (select from app_public.agreement_signers s where s.agreement_id = new.id and
    s.deleted_at is null);
  if new.status = 'SENT' then
    if has_signers and (app_private.present_file(new.id)).id is null then
      perform app_hidden.fail('CONFLICT', 'There is no document to sign yet: upload the PDF with uploadAgreementFile.',
        '{"field": "status"}');
    elsif not has_signers and new.signing_provider <> 'EMBEDDED' then
      perform app_hidden.fail('CONFLICT', 'There are no signers yet: add them with createAgreementSigner.',
        '{"field": "status"}');
    elsif has_signers and new.signing_provider = 'DOCUSIGN'
      and app_private.signing_integration(new.organization_id, 'docusign') is null then
      perform app_hidden.fail('CONFLICT',
        'The organization has no working docusign integration: connect one, or use signingProvider: EMBEDDED.',
        '{"field": "signingProvider"}');
    end if;
  elsif has_signers and (new.status in ('VIEWED', 'PARTIALLY_SIGNED', 'SIGNED', 'DECLINED')
      or (new.status = 'EXECUTED' and exists (select from app_public.agreement_signers s where s.agreement_id = new.id
        and s.role = 'SELLER_REPRESENTATIVE' and s.deleted_at is null))) then
    perform app_hidden.fail('CONFLICT', format('The status %s follows from what the signers do; they sign or decline '
      'themselves.', new.status), '{"field": "status"}');
  end if;
  return new;
end $$;
comment on function app_private.tg_agreements__signing_checks() is
  'Refuses to send what cannot be signed, and statuses that only signers make.';
create trigger _300_signing_checks before insert or update of status, signing_provider on app_public.agreements
  for each row
  execute function app_private.tg_agreements__signing_checks();

create function app_private.tg_agreements__signing() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  file app_public.agreement_files := app_private.present_file(new.id);
  has_signers boolean := exists (select from app_public.agreement_signers s where s.agreement_id = new.id
    and s.deleted_at is null);
begin
  if old.status = 'DRAFT' and new.status <> 'VOIDED' then
    update app_public.agreement_files f set sent_at = now() where f.id = file.id and f.sent_at is null;
  end if;
  if not has_signers then
    return null;
  end if;
  if old.status = 'DRAFT' and new.status = 'SENT' then
    perform app_private.note_trail(new.id, 'SENT', file => file);
    if new.signing_provider <> 'EMBEDDED' then
      insert into app_private.agreement_envelopes (agreement_id, integration_id, file_id)
        values (new.id, app_private.signing_integration(new.organization_id, 'docusign'), file.id);
      perform app_private.add_job('agreement__sent', jsonb_build_object('id', new.id));
    end if;
    perform app_private.invite_signers(new.id);
  end if;
  if new.status in ('VOIDED', 'DECLINED', 'EXPIRED', 'EXECUTED') then
    update app_private.agreement_envelopes e set ended = true where e.agreement_id = new.id;
  end if;
  if new.status in ('VOIDED', 'DECLINED', 'EXPIRED') then
    if new.status <> 'DECLINED' then
      perform app_private.note_trail(new.id, new.status::text, note => new.void_reason);
    end if;
    delete from app_private.agreement_codes c using app_public.agreement_signers s
      where s.id = c.signer_id and s.agreement_id = new.id;
    if old.status <> 'DRAFT' then
      perform app_private.add_job('agreement__ended', jsonb_build_object('id', new.id));
    end if;
  elsif new.status = 'EXECUTED' then
    perform app_private.note_trail(new.id, 'EXECUTED');
  end if;
  return null;
end $$;
comment on function app_private.tg_agreements__signing() is
  'Begins the signing of an agreement that was sent, and ends it where it was voided, declined or has expired.';
create trigger _500_signing after update of status on app_public.agreements for each row
  when (old.status is distinct from new.status) execute function app_private.tg_agreements__signing();

create function app_private.signer_of(signer_id uuid, token text) returns uuid
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  result uuid;
begin
  if num_nonnulls(signer_id, nullif(btrim(token), '')) <> 1 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify either the signer, while signed in, or the token of the link.',
      '{"field": "signerId"}');
  end if;
  if signer_id is not null then
    perform app_hidden.require_viewer();
    select s into result from app_hidden.viewer_signers() s where s = signer_id;
    if result is null then
      perform app_hidden.fail('NOT_FOUND',
        'You are not such a signer; sign in with the email address that the request was sent to.',
        '{"field": "signerId"}');
    end if;
    return result;
  end if;
  select s.id into result from app_private.open_link(btrim(token)) l
    join app_public.agreement_signers s on l.kind = 'agreement' and s.link_id = l.reader_id and s.deleted_at is null
      and s.status <> 'WAITING'
    join app_public.agreements a on a.id = s.agreement_id and a.deleted_at is null and a.status <> 'DRAFT'
      -- Links in old mails do not work forever.
      and (a.status in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED') or a.status_changed_at > now() - interval '90 days');
  if result is null then
    perform app_hidden.fail('NOT_FOUND', 'This link is incomplete, expired or replaced by another one; use the link '
      'of the latest mail.', '{"field": "token"}');
  end if;
  return result;
end $$;
comment on function app_private.signer_of(uuid, text) is
  'The signer that somebody may act as: by the account that they are signed in with, or by the token of their link.';

create function app_private.require_turn(signer_id uuid) returns app_private.turn
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  result app_private.turn;
  agreement app_public.agreements;
  signer app_public.agreement_signers;
begin
  select a.* into agreement from app_public.agreements a
    where a.id = (select s.agreement_id from app_public.agreement_signers s where s.id = signer_id) for no key update;
  select s.* into signer from app_public.agreement_signers s where s.id = signer_id for no key update;
  if agreement.signing_provider <> 'EMBEDDED' then
    perform app_hidden.fail('CONFLICT',
      'This agreement is signed at its provider: use the link of the mail from the provider.', '{"field": "signerId"}');
  elsif agreement.status in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED') and agreement.expires_at <= clock_timestamp() then
    perform app_hidden.fail('CONFLICT', 'The time to sign this agreement has expired; ask for another one.',
      '{"field": "signerId"}');
  elsif agreement.status not in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED', 'SIGNED') or signer.status = 'DECLINED' then
    perform app_hidden.fail('CONFLICT', format('This agreement has ended (%s).', agreement.status),
      '{"field": "signerId"}');
  elsif signer.status = 'SIGNED' then
    perform app_hidden.fail('CONFLICT', 'You have already signed this agreement.', '{"field": "signerId"}');
  elsif signer.status not in ('INVITED', 'VIEWED') then
    perform app_hidden.fail('CONFLICT',
      'Other signers sign first; you will receive a mail when it is your turn.', '{"field": '
      '"signerId"}');
  elsif exists (select from app_public.projects p where p.id = agreement.project_id and p.archived_at is not null) then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; ask the sender of the '
      'agreement.');
  end if;
  result.agreement := agreement;
  result.signer := signer;
  result.file := app_private.present_file(agreement.id);
  return result;
end $$;
comment on function app_private.require_turn(uuid) is
  'Locks an agreement and one of its signers; refuses if the signer cannot sign or decline now.';

create function app_private.act_as_signer(role text) returns text
language sql volatile as $$
  select set_config('plat.actor_type', 'BUYER', true) where role in ('BUYER', 'CO_BUYER')
$$;
comment on function app_private.act_as_signer(text) is
  'Events name the buyer as the actor, also for buyers without an account.';

create function app_private.mark_viewed(turn app_private.turn) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  if (turn.signer).status <> 'INVITED' then
    return;
  end if;
  perform set_config('plat.service', 'on', true);
  update app_public.agreement_signers s set status = 'VIEWED', viewed_at = now() where s.id = (turn.signer).id;
  update app_public.agreements a set status = 'VIEWED' where a.id = (turn.agreement).id and a.status = 'SENT';
  perform set_config('plat.service', before, true);
  perform app_private.note_trail((turn.agreement).id, 'VIEWED', signer => turn.signer, file => turn.file);
end $$;
comment on function app_private.mark_viewed(app_private.turn) is 'A signer has opened the agreement.';

create function app_private.note_signature(signer_id uuid, file app_public.agreement_files, signed_at timestamptz)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  before text := coalesce(current_setting('plat.service', true), '');
  agreement_id uuid := (select s.agreement_id from app_public.agreement_signers s where s.id = signer_id);
  buyers int;
  sellers int;
  all_sellers int;
begin
  perform set_config('plat.service', 'on', true);
  update app_public.agreement_signers s set status = 'SIGNED', signed_at = note_signature.signed_at,
      viewed_at = coalesce(s.viewed_at, note_signature.signed_at), signed_file_id = file.id
    where s.id = signer_id;
  select count(*) filter (where s.status <> 'SIGNED' and s.role <> 'SELLER_REPRESENTATIVE'),
      count(*) filter (where s.status <> 'SIGNED' and s.role = 'SELLER_REPRESENTATIVE'),
      count(*) filter (where s.role = 'SELLER_REPRESENTATIVE')
    into buyers, sellers, all_sellers
    from app_public.agreement_signers s where s.agreement_id = agreement_id and s.deleted_at is null;
  update app_public.agreements a set status = case when buyers = 0 then 'SIGNED' else 'PARTIALLY_SIGNED' end,
      signed_at = note_signature.signed_at
    where a.id = agreement_id and a.status <> 'SIGNED';
  if buyers + sellers > 0 then
    perform app_private.invite_signers(agreement_id);
  else
    perform app_private.note_trail(agreement_id, 'COMPLETED', file => file);
    update app_private.agreement_envelopes e set ended = true where e.agreement_id = agreement_id;
    if all_sellers > 0 then
      update app_public.agreements a set status = 'EXECUTED' where a.id = agreement_id;
    end if;
    perform app_private.add_job('agreement__completed', jsonb_build_object('id', agreement_id));
  end if;
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.note_signature(uuid, app_public.agreement_files, timestamptz) is
  'What follows from a signature: the status of signer and agreement, who is asked next, what is done when all have '
  'signed.';

create function app_private.note_refusal(signer_id uuid, reason text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.agreement_signers s set status = 'DECLINED', declined_at = now(), decline_reason = reason
    where s.id = signer_id;
  update app_public.agreements a set status = 'DECLINED'
    where a.id = (select s.agreement_id from app_public.agreement_signers s where s.id = signer_id);
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.note_refusal(uuid, text) is 'Ends the agreement when a signer declines.';
