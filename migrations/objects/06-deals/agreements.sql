-- Agreements with leads or buyers, and their signing state.
--
--   DRAFT → SENT → VIEWED → PARTIALLY_SIGNED → SIGNED → EXECUTED
--   sent, but not fully signed → DECLINED, EXPIRED (at expiresAt); before EXECUTED → VOIDED (with a reason)
--
-- An agreement that was signed on paper may be entered as SIGNED or EXECUTED. Only drafts can be deleted; sent
-- agreements are voided. With signers, the status follows from their signatures: see signing.sql.

select app_private.make_deal_child('agreements', 'agreement', 'agreements',
  'Agreements, signed or to be signed, latest first',
  own => 'status <> ''DRAFT''');
select app_private.make_state_machine('agreements', 'agreement',
  steps => array[
    ['DRAFT', 'SENT', 'hand'], ['SENT', 'VIEWED', 'hand'],
    ['SENT', 'PARTIALLY_SIGNED', 'hand'], ['VIEWED', 'PARTIALLY_SIGNED', 'hand'],
    -- A single signer signs all of it.
    ['SENT', 'SIGNED', 'hand'], ['VIEWED', 'SIGNED', 'hand'], ['PARTIALLY_SIGNED', 'SIGNED', 'hand'],
    ['SIGNED', 'EXECUTED', 'hand'],
    -- A new version replaces one that is not completely signed, and everybody is asked to sign again.
    ['VIEWED', 'SENT', 'service'], ['PARTIALLY_SIGNED', 'SENT', 'service'],
    -- The seller does not countersign.
    ['SIGNED', 'DECLINED', 'service'],
    ['SENT', 'DECLINED', 'hand'], ['VIEWED', 'DECLINED', 'hand'], ['PARTIALLY_SIGNED', 'DECLINED', 'hand'],
    ['SENT', 'EXPIRED', 'service'], ['VIEWED', 'EXPIRED', 'service'], ['PARTIALLY_SIGNED', 'EXPIRED', 'service'],
    ['DRAFT', 'VOIDED', 'hand'], ['SENT', 'VOIDED', 'hand'], ['VIEWED', 'VOIDED', 'hand'],
    ['PARTIALLY_SIGNED', 'VOIDED', 'hand'],
    ['SIGNED', 'VOIDED', 'hand']],
  initial => array['DRAFT', 'SENT', 'SIGNED', 'EXECUTED'],
  requirements => array[['VOIDED', 'void_reason', 'Voiding an agreement requires a reason.']]);
select app_private.make_deadline('agreement', 'app_public.agreements', 'expires_at',
  'new.deleted_at is null and new.status in (''SENT'', ''VIEWED'', ''PARTIALLY_SIGNED'')', '{status,deleted_at}',
    'app_private.expire_agreement(uuid)');

grant insert (lead_id, buyer_id, type, title, status, expires_at, signing_provider, reminder_days),
  update (title, status, expires_at, void_reason, signing_provider, reminder_days),
    delete on app_public.agreements to plat_user;

comment on table app_public.agreements is
  'A document that a lead or buyer signs, such as a purchase contract. Buyers see the agreements of their purchase '
  'once sent.';
comment on column app_public.agreements.number is
  E'@impersonal\n@insertOptional\n\nNumber in the project, such as A-000042.';
comment on table app_private.agreement_counters is 'The last number of an agreement of each project.';
comment on column app_public.agreements.type is 'Kind of the agreement.';
comment on column app_public.agreements.title is E'@personal contract\n\nDisplay title.';
comment on column app_public.agreements.status is 'Current status.';
comment on column app_public.agreements.status_changed_at is 'When the status last changed.';
comment on column app_public.agreements.sent_at is 'When it was sent; null until then.';
comment on column app_public.agreements.viewed_at is 'When a signer first opened it; null until then.';
comment on column app_public.agreements.signed_at is 'When the last signer signed; null until all have.';
comment on column app_public.agreements.executed_at is 'When the seller countersigned; null until then.';
comment on column app_public.agreements.declined_at is 'When a signer declined; null otherwise.';
comment on column app_public.agreements.expires_at is
  'Deadline for signing; an agreement that was sent and is not signed by then becomes EXPIRED.';
comment on column app_public.agreements.signing_provider is
  'Service with which the signers sign. Default: EMBEDDED (this service). Can be changed only while the agreement '
  'is a draft.';
comment on column app_public.agreements.reminder_days is
  'Days after which signers are reminded, at most three times. Default: 3; null for no reminders.';
comment on constraint agreements_reminder_days_range on app_public.agreements is
  'Must be from 1 to 60 days, or null for never.';
comment on column app_public.agreements.void_reason is
  E'@personal\n\nReason for voiding it, as free text; required for the status VOIDED.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('agreement', 'status', 'SENT', 'sent'), ('agreement', 'status', 'SIGNED', 'signed'),
  ('agreement', 'status', 'EXECUTED', 'executed'),
  ('agreement', 'status', 'DECLINED', 'declined'), ('agreement', 'status', 'EXPIRED', 'expired'),
  ('agreement', 'status', 'VOIDED', 'voided');

create function app_private.tg_agreements__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.expires_at is not null and new.expires_at <= now()
    and (tg_op = 'INSERT' or new.expires_at is distinct from old.expires_at) then
    perform app_hidden.fail('BAD_USER_INPUT', 'The expiry of an agreement must be in the future.',
      '{"field": "expiresAt"}');
  end if;
  if tg_op = 'INSERT' or new.status is distinct from old.status then
    -- signedAt is the last signature.
    new.sent_at := case when new.status in ('SENT', 'SIGNED', 'EXECUTED') then coalesce(new.sent_at, now())
      else new.sent_at end;
    new.viewed_at := case when new.status = 'VIEWED' then now() else new.viewed_at end;
    new.signed_at := case when new.status in ('PARTIALLY_SIGNED', 'SIGNED') then now()
      when new.status = 'EXECUTED' then coalesce(new.signed_at, now()) else new.signed_at end;
    new.executed_at := case when new.status = 'EXECUTED' then now() end;
    new.declined_at := case when new.status = 'DECLINED' then now() end;
  end if;
  return new;
end $$;
create trigger _400_prepare before insert or update on app_public.agreements for each row
  execute function app_private.tg_agreements__prepare();
create trigger _800_number before insert on app_public.agreements for each row
  execute function app_private.tg__number('A', 'agreement_counters');

create function app_private.tg_agreements__keep() returns trigger
language plpgsql volatile as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if old.status <> 'DRAFT' then
    perform app_hidden.fail('CONFLICT', 'Only drafts can be deleted; set the status VOIDED, with a reason.');
  end if;
  return old;
end $$;
create trigger _200_keep before delete on app_public.agreements for each row
  execute function app_private.tg_agreements__keep();

create function app_private.expire_agreement(agreement_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
begin
  perform set_config('plat.service', 'on', true);
  update app_public.agreements a set status = 'EXPIRED'
    where a.id = agreement_id and a.status in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED')
      and a.expires_at <= clock_timestamp();
  perform set_config('plat.service', before, true);
end $$;
comment on function app_private.expire_agreement(uuid) is 'An agreement that was not signed in time has expired.';

create function app_public.agreements_allowed_transitions(a app_public.agreements) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('agreement',
  jsonb_build_object('status', a.status, 'void_reason', a.void_reason)) $$;
grant execute on function app_public.agreements_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.agreements_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make.';
