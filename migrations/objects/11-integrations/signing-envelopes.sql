-- Agreements that are signed at a provider: what is sent there (an envelope), and its state. The agreement follows that
-- state with the same transitions as one that is signed here; a job reads the state after a notification, or after an
-- hour without one.

comment on table app_private.agreement_envelopes is
  'What an agreement is called at its provider: transaction_id finds it again where nobody knows whether it was taken.';
comment on column app_private.agreement_envelopes.envelope_id is E'@impersonal\n\nWhat the provider calls it.';

create function app_private.signing_integration(organization_id uuid, app_key text) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select i.id from app_public.organization_integrations i
    join app_public.integration_apps a on a.id = i.app_id and a.key = signing_integration.app_key
  where i.organization_id = signing_integration.organization_id and i.status = 'ENABLED' and i.deleted_at is null
  order by i.id desc limit 1
$$;
comment on function app_private.signing_integration(uuid, text) is
  'What the organization has agreements signed by: the integration that it connected last; null where none works.';

create function app_private.envelope_of(agreement_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object('integrationId', e.integration_id, 'envelopeId', e.envelope_id)
  from app_private.agreement_envelopes e where e.agreement_id = envelope_of.agreement_id
$$;
comment on function app_private.envelope_of(uuid) is
  'By which integration an agreement is signed, and what it is called there; null for one that is signed here.';

create function app_private.envelope_to_send(agreement_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object('transactionId', e.transaction_id, 'agreementId', a.id, 'title', a.title, 'organization',
    o.name,
    'expiresAt', a.expires_at, 'reminderDays', a.reminder_days,
    'document', jsonb_build_object('filename', f.filename, 'size', f.filesize, 'checksum', f.checksum),
    'signers', (select jsonb_agg(jsonb_build_object('id', s.id, 'name', s.name, 'email', s.email, 'sequence',
      s.sequence,
        'role', s.role) order by s.sequence, s.id)
      from app_public.agreement_signers s where s.agreement_id = a.id and s.deleted_at is null))
  from app_private.agreement_envelopes e
    join app_public.agreements a on a.id = e.agreement_id and a.deleted_at is null
    join app_public.agreement_files f on f.id = e.file_id
    join app_public.organizations o on o.id = a.organization_id
  where e.agreement_id = envelope_to_send.agreement_id and e.envelope_id is null
    and a.status in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED')
$$;
comment on function app_private.envelope_to_send(uuid) is
  'Data of an agreement for the provider; null if they were sent before, or if the agreement has ended.';

create function app_private.note_envelope(agreement_id uuid, envelope_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from app_public.agreements a where a.id = note_envelope.agreement_id for no key update;
  update app_private.agreement_envelopes e set envelope_id = note_envelope.envelope_id, asked_at = now()
    where e.agreement_id = note_envelope.agreement_id;
  -- It was cancelled in the meantime.
  if exists (select from app_public.agreements a where a.id = note_envelope.agreement_id
    and a.status in ('VOIDED', 'EXPIRED', 'DECLINED')) then
    perform app_private.add_job('agreement__ended', jsonb_build_object('id', note_envelope.agreement_id));
  end if;
end $$;
comment on function app_private.note_envelope(uuid, text) is 'The provider has taken an agreement.';

create function app_private.refuse_envelope(agreement_id uuid, reason text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.agreements a set status = 'VOIDED', void_reason = left(refuse_envelope.reason, 2000)
    where a.id = refuse_envelope.agreement_id and a.status in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED');
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.refuse_envelope(uuid, text) is
  'The provider does not take an agreement: it is voided, and says why.';

create function app_private.end_of_agreement(agreement_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(a.void_reason::text, case a.status when 'EXPIRED' then 'It was not signed in time.'
    else 'It was declined.' end)
  from app_public.agreements a where a.id = end_of_agreement.agreement_id
$$;
comment on function app_private.end_of_agreement(uuid) is
  'Reason, for the provider, why an agreement can no longer be signed.';

create function app_private.follow_envelope(agreement_id uuid, state jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  before text := coalesce(current_setting('plat.service', true), '');
  agreement app_public.agreements;
  signer app_public.agreement_signers;
  file app_public.agreement_files;
  told jsonb;
  what text;
begin
  perform set_config('plat.clock', 'on', true);
  select a.* into agreement from app_public.agreements a where a.id = agreement_id for no key update;
  update app_private.agreement_envelopes e set asked_at = now() where e.agreement_id = follow_envelope.agreement_id;
  select f.* into file from app_private.agreement_envelopes e join app_public.agreement_files f on f.id = e.file_id
    where e.agreement_id = follow_envelope.agreement_id;
  for told in select t from jsonb_array_elements(state -> 'signers') t
    join app_public.agreement_signers s on s.id::text = t ->> 'id' and s.agreement_id = follow_envelope.agreement_id
    order by t ->> 'status' <> 'SIGNED', s.sequence, s.id
  loop
    what := told ->> 'status';
    select s.* into signer from app_public.agreement_signers s where s.id::text = told ->> 'id' for no key update;
    select a.* into agreement from app_public.agreements a where a.id = agreement_id;
    exit when agreement.status not in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED', 'SIGNED');
    continue when signer.status in ('SIGNED', 'DECLINED') or what not in ('VIEWED', 'SIGNED', 'DECLINED');
    perform set_config('plat.service', 'on', true);
    if signer.status = 'WAITING' then
      update app_public.agreement_signers s set status = 'INVITED', invited_at = now() where s.id = signer.id
        returning * into signer;
    end if;
    perform set_config('plat.service', before, true);
    perform app_private.act_as_signer(signer.role);
    if what = 'VIEWED' then
      perform app_private.mark_viewed(row(agreement, signer, file)::app_private.turn);
    elsif what = 'SIGNED' then
      perform app_private.note_trail(agreement.id, 'SIGNED', signer => signer, file => file, sent_to => signer.email,
        note => 'At the provider, on ' || (told ->> 'at'));
      perform app_private.note_signature(signer.id, file, coalesce((told ->> 'at')::timestamptz, now()));
    else
      perform app_private.note_trail(agreement.id, 'DECLINED', signer => signer, file => file, note => told ->>
        'reason');
      perform app_private.note_refusal(signer.id, coalesce(told ->> 'reason', 'No reason was given at the provider.'));
    end if;
    perform set_config('plat.actor_type', '', true);
  end loop;
  if state ->> 'status' = 'VOIDED' then
    perform app_private.refuse_envelope(agreement_id,
      coalesce('At the provider: ' || nullif(state ->> 'reason', ''), 'It was voided at the provider.'));
  end if;
  perform set_config('plat.clock', '', true);
end $$;
comment on function app_private.follow_envelope(uuid, jsonb) is
  'Has an agreement and its signers follow what the provider says: {status, reason, signers: [{id, status, at, '
  'reason}]}.';

create function app_private.sync_envelopes(batch int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  due uuid;
begin
  for due in
    update app_private.agreement_envelopes e set asked_at = now()
    where e.agreement_id in (select o.agreement_id from app_private.agreement_envelopes o
      where o.envelope_id is not null and not o.ended and o.asked_at < now() - interval '1 hour'
      order by o.asked_at limit batch for update skip locked)
    returning e.agreement_id
  loop
    perform app_private.add_job('agreement__synced', jsonb_build_object('id', due),
      job_key => 'agreement__synced ' || due);
  end loop;
end $$;
comment on function app_private.sync_envelopes(int) is 'Has agreements asked after of which nothing was heard for an '
  'hour.';
grant execute on function app_private.envelope_of, app_private.envelope_to_send, app_private.note_envelope,
  app_private.refuse_envelope, app_private.end_of_agreement, app_private.follow_envelope, app_private.sync_envelopes
  to plat_worker;

create function app_private.integration_of_envelope(agreement_id uuid) returns uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select e.integration_id from app_private.agreement_envelopes e
  where e.agreement_id = integration_of_envelope.agreement_id
$$;
comment on function app_private.integration_of_envelope(uuid) is
  E'@step It only returns whose key verifies a notice.\n\n'
  'The integration that an agreement is signed by; null for none.';

create function app_private.take_envelope_notice(agreement_id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.add_job('agreement__synced', jsonb_build_object('id', e.agreement_id),
    job_key => 'agreement__synced ' || e.agreement_id)
  from app_private.agreement_envelopes e where e.agreement_id = take_envelope_notice.agreement_id
$$;
comment on function app_private.take_envelope_notice(uuid) is
  E'@step The signature of the notice was looked at before.\n\nThe provider says that something changed: it is asked '
    'what.';
grant execute on function app_private.integration_of_envelope, app_private.take_envelope_notice to plat_authenticator;
