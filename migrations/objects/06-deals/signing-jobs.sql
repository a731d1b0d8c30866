-- Functions for the jobs of signing. Links and codes are created here when their mail is written, so that they are in
-- no payload.

create function app_private.signer_invitation(signer_id uuid, invitation int)
returns table (token text, email text, name text, title text, organization_id uuid, organization_name text,
  project_title text, expires_at timestamptz, is_reminder boolean)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.sign_link('agreement', s.link_id), s.email::text, s.name::text, a.title::text, a.organization_id,
    o.name::text, p.title::text, a.expires_at, s.reminded_at > s.invited_at
  from app_public.agreement_signers s
    join app_public.agreements a on a.id = s.agreement_id and a.deleted_at is null
    join app_public.projects p on p.id = a.project_id
    join app_public.organizations o on o.id = a.organization_id
  where s.id = signer_invitation.signer_id and s.invitation = signer_invitation.invitation
    and s.status in ('INVITED', 'VIEWED') and a.status in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED', 'SIGNED')
$$;
comment on function app_private.signer_invitation(uuid, int) is
  'Content of the mail that asks a signer to sign, with the token of the link; null if a newer mail was queued, or '
  'the signature is no longer needed.';

create function app_private.note_invited(signer_id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.note_trail(s.agreement_id, 'INVITED', signer => s, sent_to => s.email)
  from app_public.agreement_signers s where s.id = note_invited.signer_id
$$;
comment on function app_private.note_invited(uuid) is 'A signer was written to.';

create function app_private.remind_signer_by_itself(signer_id uuid, invitation int, round int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  most constant int := 3;
  days smallint;
  invited int;
begin
  select a.reminder_days, s.invitation into days, invited from app_public.agreement_signers s
    join app_public.agreements a on a.id = s.agreement_id
    join app_public.projects p on p.id = a.project_id and p.archived_at is null
    where s.id = signer_id and s.status in ('INVITED', 'VIEWED')
      and a.status in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED', 'SIGNED') and coalesce(a.expires_at > now(), true);
  -- A manual reminder or a new invitation restarts the interval.
  if days is null then
    return;
  end if;
  if invited = invitation then
    perform app_private.remind_signer(signer_id, 'by itself');
    round := round + 1;
    invited := invited + 1;
  end if;
  if round <= most then
    perform app_private.add_job('agreement_signer__reminded',
      jsonb_build_object('id', signer_id, 'invitation', invited, 'round', round),
      run_at => now() + days * interval '1 day', job_key => 'agreement_signer__reminded ' || signer_id);
  end if;
end $$;
comment on function app_private.remind_signer_by_itself(uuid, int, int) is
  'Reminds a signer who has not signed since they were asked, and says when to look again: three times at most.';

create function app_private.issue_signing_code(signer_id uuid)
returns table (code text, channel text, email text, phone text, message_id uuid, title text, organization_id uuid,
  organization_name text, expires_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  digits constant text := lpad((('x' || encode(public.gen_random_bytes(6), 'hex'))::bit(48)::bigint
    % 1000000)::text, 6, '0');
  until_when constant timestamptz := now() + interval '10 minutes';
  home uuid;
  s_number text;
  way text;
begin
  update app_private.agreement_codes c set code_sha256 = app_private.hash_of_code(c.signer_id, digits),
      expires_at = until_when, tries = 0, proof = null
    where c.signer_id = issue_signing_code.signer_id and c.requested_at > now() - interval '10 minutes'
    returning c.channel into way;
  if not found then
    return;
  end if;
  select s.organization_id, s.phone into home, s_number from app_public.agreement_signers s
    where s.id = issue_signing_code.signer_id;
  -- Where no text message may go out now, a mail does.
  if way = 'SMS' and (not app_private.owner_is_confirmed(home)
      or exists (select from app_public.organizations o where o.id = home and o.is_sandbox)
      or exists (select from app_private.stopped_numbers n where n.number = s_number)
      or not app_private.is_within_limit('sms.recipient', s_number)
      or app_private.reserve_sending(home, 'SMS', 1) = 0) then
    way := 'EMAIL';
  end if;
  return query
    select digits, way, s.email::text, s.phone::text, gen_random_uuid(), a.title::text, o.id, o.name::text, until_when
    from app_public.agreement_signers s
      join app_public.agreements a on a.id = s.agreement_id
      join app_public.organizations o on o.id = a.organization_id
    where s.id = issue_signing_code.signer_id;
end $$;
comment on function app_private.issue_signing_code(uuid) is
  'Creates the code that a signer requested; only its SHA-256 is stored. Null if nobody waits for one any longer.';

create function app_private.note_code_sent(signer_id uuid, channel text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_private.agreement_codes c set channel = note_code_sent.channel
    where c.signer_id = note_code_sent.signer_id;
  perform app_private.note_trail(s.agreement_id, 'CODE_SENT', signer => s,
      sent_to => case note_code_sent.channel when 'SMS' then s.phone else s.email end)
    from app_public.agreement_signers s where s.id = note_code_sent.signer_id;
end $$;
comment on function app_private.note_code_sent(uuid, text) is 'A code went out, by the channel.';

create function app_private.signing_certificate(agreement_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object('title', a.title, 'agreementId', a.id, 'agreementNumber', a.number,
    'language', o.language, 'organizationId', a.organization_id,
    'organization', o.name, 'project', p.title, 'timeZone', p.time_zone, 'status', a.status,
    'filename', (f).filename, 'filesize', (f).filesize, 'checksum', (f).checksum, 'number', (f).number,
    'signers', (select jsonb_agg(jsonb_build_object('name', s.name, 'role', r.description, 'email', s.email,
        'signedAt', s.signed_at, 'consent', e.consent_text, 'ip', e.ip_address, 'userAgent', e.user_agent,
        'sentTo', e.sent_to) order by s.signed_at, s.sequence, s.id)
      from app_public.agreement_signers s
        join app_public.agreement_signer_role_values r on r.value = s.role
        left join lateral (select t.* from app_public.agreement_trail_entries t where t.agreement_id = a.id
          and t.signer_id = s.id and t.kind = 'SIGNED' and t.file_id = s.signed_file_id
          order by t.id desc limit 1) e on true
      where s.agreement_id = a.id and s.deleted_at is null),
    'trail', (select jsonb_agg(jsonb_build_object('at', t.occurred_at, 'what', k.description, 'who', t.signer_name,
        'ip', t.ip_address, 'note', t.note, 'checksum', t.checksum) order by t.id)
      from app_public.agreement_trail_entries t join app_public.agreement_trail_kind_values k on k.value = t.kind
      where t.agreement_id = a.id))
  from app_public.agreements a
    join app_public.organizations o on o.id = a.organization_id
    join app_public.projects p on p.id = a.project_id
    cross join lateral app_private.present_file(a.id) f
  where a.id = signing_certificate.agreement_id and a.status in ('SIGNED', 'EXECUTED') and a.deleted_at is null
    and not exists (select from app_public.agreement_files c where c.agreement_id = a.id and c.kind = 'CERTIFICATE'
      and c.deleted_at is null)
$$;
comment on function app_private.signing_certificate(uuid) is
  'What the certificate of an agreement says that all have signed; null where it is there already.';

create function app_private.announce_agreement_file(agreement_id uuid, checksum text, filesize int) returns boolean
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.register_file(announce_agreement_file.checksum, 'application/pdf',
    announce_agreement_file.filesize, organization_id => a.organization_id)
  from app_public.agreements a where a.id = announce_agreement_file.agreement_id
$$;
comment on function app_private.announce_agreement_file(uuid, text, int) is
  'Registers a PDF of an agreement before it is stored; returns true if the store already has it.';

create function app_private.keep_agreement_file(agreement_id uuid, kind text, checksum text, filename text)
returns setof text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  perform app_private.file_is_stored(checksum);
  perform from app_public.agreements a where a.id = agreement_id for no key update;
  if not exists (select from app_public.agreement_files f where f.agreement_id = keep_agreement_file.agreement_id
      and f.kind = keep_agreement_file.kind and f.deleted_at is null) then
    perform set_config('plat.clock', 'on', true);
    insert into app_public.agreement_files (agreement_id, kind, title, file)
      values (agreement_id, kind, case kind when 'CERTIFICATE' then 'Certificate' else 'Signed' end,
        jsonb_build_object('checksum', checksum, 'filename', filename));
    perform set_config('plat.clock', '', true);
  end if;
  return query select app_private.release_files(array[checksum]);
end $$;
comment on function app_private.keep_agreement_file(uuid, text, text, text) is
  'Attaches a stored PDF to the agreement, once per kind; returns contents that are no longer referenced, for the '
  'caller to delete.';

create function app_private.agreement_recipients(agreement_id uuid)
returns table (signer_id uuid, token text, email text, name text, status text, title text, agreement_status text,
  organization_id uuid, organization_name text, project_title text, reason text)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select s.id, app_private.sign_link('agreement', s.link_id), s.email::text, s.name::text, s.status::text,
    a.title::text,
    a.status::text, a.organization_id, o.name::text, p.title::text, case a.status when 'VOIDED' then
      a.void_reason::text end
  from app_public.agreements a
    join app_public.agreement_signers s on s.agreement_id = a.id and s.deleted_at is null and s.status <> 'WAITING'
    join app_public.projects p on p.id = a.project_id
    join app_public.organizations o on o.id = a.organization_id
  where a.id = agreement_recipients.agreement_id and a.deleted_at is null
  order by s.sequence, s.id
$$;
comment on function app_private.agreement_recipients(uuid) is
  'Signers who were invited, to notify that an agreement is complete or has ended, with the token of their link.';
grant execute on function app_private.signer_invitation, app_private.note_invited, app_private.remind_signer_by_itself,
  app_private.issue_signing_code, app_private.note_code_sent, app_private.signing_certificate,
  app_private.announce_agreement_file, app_private.keep_agreement_file, app_private.agreement_recipients to plat_worker;
