-- The audit trail of an agreement: what happened, when, by whom and from where. Append-only. A signature is an entry:
-- the SHA-256 of the signed file, the accepted wording, time, network address and program.

create policy parties on app_public.agreement_trail_entries for select to plat_user
  using ((select true from app_public.agreements parent where parent.id = agreement_id));
grant select on app_public.agreement_trail_entries to plat_user, plat_anonymous;

comment on table app_public.agreement_trail_entries is
  E'@defaultOrder id asc\n\nAn entry of the audit trail of an agreement; never changed or deleted.';
comment on column app_public.agreement_trail_entries.agreement_id is E'@behavior -*\n\nThe agreement.';
comment on column app_public.agreement_trail_entries.kind is 'Kind of event.';
comment on column app_public.agreement_trail_entries.occurred_at is 'Time at which it happened.';
comment on column app_public.agreement_trail_entries.signer_id is
  E'@behavior -*\n\nThe signer that the entry refers to.';
comment on column app_public.agreement_trail_entries.signer_name is
  E'@personal contract\n\nName of the signer when the entry was written.';
comment on column app_public.agreement_trail_entries.file_id is
  E'@behavior -*\n\nThe version of the document that the entry refers to.';
comment on column app_public.agreement_trail_entries.checksum is
  E'@impersonal\n\nSHA-256 of the file that was sent, replaced or signed, in hexadecimal digits.';
comment on column app_public.agreement_trail_entries.actor_id is E'@behavior -*\n\nThe user who caused the entry.';
comment on column app_public.agreement_trail_entries.ip_address is
  E'@personal contract\n@masked\n\nThe network address that it came from.';
comment on column app_public.agreement_trail_entries.user_agent is
  E'@personal contract\n@masked\n\nThe program that it came from, as it '
  'says.';
comment on column app_public.agreement_trail_entries.sent_to is
  E'@personal contract\n@masked\n\nThe address or number that a mail or code went to.';
comment on column app_public.agreement_trail_entries.consent_text is
  E'@impersonal\n\nText of the consent that the signer accepted.';
comment on column app_public.agreement_trail_entries.note is
  E'@personal contract\n\nComment, such as the reason for declining.';
comment on constraint agreement_trail_entries_agreement_id_fkey on app_public.agreement_trail_entries is
  E'@parent\n'
  '@notNull\n'
  '@fieldName agreement\n'
  '@foreignFieldName trail\n'
  '@backwardDescription Audit trail of the agreement, in chronological order.\n\n'
  'The agreement that the entry is about.';
comment on constraint agreement_trail_entries_signer_id_fkey on app_public.agreement_trail_entries is
  E'@fieldName signer\n@backwardBehavior -*\n\nThe signer that the entry refers to.';
comment on constraint agreement_trail_entries_file_id_fkey on app_public.agreement_trail_entries is
  E'@fieldName file\n@backwardBehavior -*\n\nThe version of the document that the entry refers to.';
comment on constraint agreement_trail_entries_actor_id_fkey on app_public.agreement_trail_entries is
  E'@fieldName actor\n@backwardBehavior -*\n\nThe user who caused the entry.';
comment on constraint agreement_trail_entries_project_id_fkey on app_public.agreement_trail_entries is
  E'@behavior -*\n@backwardBehavior -*\n\nThe project that it belongs to.';

create function app_public.agreement_trail_entries_ip_address(e app_public.agreement_trail_entries) returns text
language sql stable as $$
  select case when e.ip_address is not null and app_hidden.organization_can(e.organization_id, 'buyer.pii')
    then e.ip_address end
$$;
create function app_public.agreement_trail_entries_user_agent(e app_public.agreement_trail_entries) returns text
language sql stable as $$
  select case when e.user_agent is not null and app_hidden.organization_can(e.organization_id, 'buyer.pii')
    then e.user_agent end
$$;
create function app_public.agreement_trail_entries_sent_to(e app_public.agreement_trail_entries) returns text
language sql stable as $$
  select case when e.sent_to is not null and app_hidden.organization_can(e.organization_id, 'buyer.pii')
    then e.sent_to end
$$;
grant execute on function app_public.agreement_trail_entries_ip_address, app_public.agreement_trail_entries_user_agent,
  app_public.agreement_trail_entries_sent_to to plat_user, plat_anonymous;
comment on function app_public.agreement_trail_entries_ip_address is
  'IP address of the client; null without the permission buyer.pii.';
comment on function app_public.agreement_trail_entries_user_agent is
  'User agent that the client sent; null without the permission buyer.pii.';
comment on function app_public.agreement_trail_entries_sent_to is
  'Address or phone number that the mail or code was sent to; null without the permission buyer.pii.';

create function app_private.tg_agreement_trail_entries__immutable() returns trigger
language plpgsql volatile as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  -- Whose account it was may be forgotten with the account.
  if tg_op = 'UPDATE' and new.actor_id is null and to_jsonb(new) - 'actor_id' = to_jsonb(old) - 'actor_id' then
    return new;
  end if;
  if tg_op = 'UPDATE' and app_private.is_erasing() then
    return new;
  end if;
  raise exception 'the trail of an agreement is never changed or deleted' using errcode = 'restrict_violation';
end $$;
create trigger _100_immutable before update or delete on app_public.agreement_trail_entries for each row
  execute function app_private.tg_agreement_trail_entries__immutable();
create trigger _100_no_truncate before truncate on app_public.agreement_trail_entries
  for each statement execute function app_private.tg_agreement_trail_entries__immutable();

create function app_private.note_trail(agreement_id uuid, kind text, signer app_public.agreement_signers default null,
  file app_public.agreement_files default null, sent_to text default null, consent_text text default null,
  note text default null) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  insert into app_public.agreement_trail_entries (organization_id, project_id, agreement_id, kind, signer_id,
      signer_name, file_id, checksum, actor_id, ip_address, user_agent, sent_to, consent_text, note)
    select a.organization_id, a.project_id, a.id, note_trail.kind, (note_trail.signer).id, (note_trail.signer).name,
      (note_trail.file).id, (note_trail.file).checksum, app_public.current_user_id(), app_hidden.setting('ip'),
      left(app_hidden.setting('user_agent'), 500), note_trail.sent_to, note_trail.consent_text, note_trail.note
    from app_public.agreements a where a.id = note_trail.agreement_id
$$;
comment on function app_private.note_trail is
  'Adds an entry to the audit trail of an agreement, with the actor of this transaction.';

create trigger _950_changes after insert or update or delete on app_public.agreement_trail_entries
  for each row execute function app_private.tg__count_change('organization_id');
