-- The signers of an agreement, and their order: those with the lowest sequence are asked first, those with the same one
-- at the same time.
--
--   WAITING → INVITED → VIEWED → SIGNED, DECLINED; back to WAITING when another version replaces the document
--
-- Only the service changes the status: see signing.sql. A signer is identified by the address that codes are sent to: a
-- user who is signed in with it, confirmed, or who has the link of the mail. The buyer of the purchase also acts for
-- its signer BUYER.

create function app_hidden.viewer_signers() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[];
begin
  if app_public.current_user_id() is null or app_hidden.setting('organization_id') is not null
    or not app_hidden.scopes_allow('purchase.own') then
    return;
  end if;
  purchases := array(select app_hidden.viewer_purchases());
  return query
    select s.id from app_hidden.user_identities i
      join app_public.users u on u.id = i.user_id and u.email_verified_at is not null
      join app_public.agreement_signers s on s.email = i.email and s.deleted_at is null and s.status <> 'WAITING'
      where i.user_id = app_public.current_user_id();
  if purchases <> '{}' then
    return query
      select s.id from app_public.agreements a
        join app_public.agreement_signers s on s.agreement_id = a.id and s.role = 'BUYER' and s.deleted_at is null
          and s.status <> 'WAITING'
        where a.buyer_id = any (purchases)
      union all
      select s.id from app_public.agreements a
        join app_public.agreement_signers s on s.agreement_id = a.id and s.role = 'BUYER' and s.deleted_at is null
          and s.status <> 'WAITING'
        where a.lead_id = any (array(select app_hidden.viewer_purchase_leads()));
  end if;
end $$;
comment on function app_hidden.viewer_signers() is
  'The signers that the viewer may act as, once they were asked to sign. A token with scopes needs purchase.own.';

create function app_hidden.viewer_signed_agreements() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  signers uuid[] := array(select app_hidden.viewer_signers());
begin
  if signers <> '{}' then
    return query select distinct s.agreement_id from app_public.agreement_signers s where s.id = any (signers);
  end if;
end $$;
comment on function app_hidden.viewer_signed_agreements() is 'The agreements that the viewer signs, or was to sign.';

create function app_hidden.viewer_party_agreements() returns setof uuid
language plpgsql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
declare
  purchases uuid[] := array(select app_hidden.viewer_purchases());
begin
  return query select app_hidden.viewer_signed_agreements();
  if purchases <> '{}' then
    return query select a.id from app_public.agreements a where a.buyer_id = any (purchases)
      union all select a.id from app_public.agreements a
        where a.lead_id = any (array(select app_hidden.viewer_purchase_leads()));
  end if;
end $$;
comment on function app_hidden.viewer_party_agreements() is
  'The agreements that the viewer is a party of on the buyer''s side, or signs.';
grant execute on function app_hidden.viewer_signers, app_hidden.viewer_signed_agreements,
  app_hidden.viewer_party_agreements to plat_user;

create policy signers on app_public.agreements for select to plat_user
  using (deleted_at is null and status <> 'DRAFT'
    and id = any (array(select app_hidden.viewer_signed_agreements())));

create policy parties on app_public.agreement_signers for select to plat_user
  using (deleted_at is null and (select true from app_public.agreements parent where parent.id = agreement_id));
create policy sellers_insert on app_public.agreement_signers for insert to plat_user
  with check (app_hidden.may_write_agreement(agreement_id));
create policy sellers_update on app_public.agreement_signers for update to plat_user
  using (app_hidden.may_write_agreement(agreement_id));
create policy sellers_delete on app_public.agreement_signers for delete to plat_user
  using (app_hidden.may_write_agreement(agreement_id));
comment on policy sellers_insert on app_public.agreement_signers is
  '@perRow An agreement has few signers, and says whose deal it is.';
comment on policy sellers_update on app_public.agreement_signers is
  '@perRow One signer is changed at a time, and the agreement says whose deal it is.';
comment on policy sellers_delete on app_public.agreement_signers is
  '@perRow One signer is deleted at a time, and the agreement says whose deal it is.';

grant select on app_public.agreement_signers to plat_user, plat_anonymous;
grant insert (agreement_id, role, name, email, phone, sequence), update (role, name, email, phone, sequence), delete
  on app_public.agreement_signers to plat_user;

create trigger _010_agreement before insert on app_public.agreement_signers for each row
  execute function app_private.tg_agreement_signers__agreement();
select app_private.make_project_record('agreement_signers', 'agreement_signer', 'buyer.write',
  event_permission => 'buyer.read');
select app_private.make_state_machine('agreement_signers', 'agreement_signer',
  steps => array[['WAITING', 'INVITED', 'service'], ['INVITED', 'VIEWED', 'service'],
    ['INVITED', 'SIGNED', 'service'], ['VIEWED', 'SIGNED', 'service'],
    ['INVITED', 'DECLINED', 'service'], ['VIEWED', 'DECLINED', 'service'],
    ['INVITED', 'WAITING', 'service'], ['VIEWED', 'WAITING', 'service'], ['SIGNED', 'WAITING', 'service']],
  initial => array['WAITING']);

insert into app_private.event_names (subject, column_name, value, name) values
  ('agreement_signer', 'status', 'INVITED', 'invited'), ('agreement_signer', 'status', 'VIEWED', 'viewed'),
  ('agreement_signer', 'status', 'SIGNED', 'signed'), ('agreement_signer', 'status', 'DECLINED', 'declined'),
  ('agreement_signer', 'reminded_at', null, 'reminded');

comment on table app_public.agreement_signers is
  E'@defaultOrder sequence asc, id asc\n\nA person who signs an agreement.';
comment on column app_public.agreement_signers.agreement_id is
  'Id of the agreement to sign, for signers who cannot query it as well.';
comment on column app_public.agreement_signers.role is 'Capacity in which the person signs.';
comment on column app_public.agreement_signers.name is E'@personal contract\n\nFull name as printed on the agreement.';
comment on column app_public.agreement_signers.email is
  E'@personal contract\n'
  '@masked\n\n'
  'Email address for the signing link and code. A user who is signed in with this address can sign without the '
  'link.';
comment on column app_public.agreement_signers.phone is
  E'@personal contract\n@masked\n\nMobile number for the code, if the signer wants it by text message.';
comment on column app_public.agreement_signers.sequence is
  'Position in the signing order, from 1. Signers with the same position sign in parallel. Default: 1.';
comment on column app_public.agreement_signers.status is 'Progress of this signer, from invitation to signature.';
comment on column app_public.agreement_signers.status_changed_at is 'When the status last changed.';
comment on column app_public.agreement_signers.invited_at is
  'When the signer was asked to sign the current version; null until then.';
comment on column app_public.agreement_signers.viewed_at is
  'When the signer first opened the agreement; null until then.';
comment on column app_public.agreement_signers.signed_at is 'When the signer signed; null until then.';
comment on column app_public.agreement_signers.declined_at is 'When the signer declined; null otherwise.';
comment on column app_public.agreement_signers.decline_reason is
  E'@personal\n\nExplanation that the signer gave; null if none.';
comment on column app_public.agreement_signers.reminded_at is 'When the signer was last reminded; null if never.';
comment on column app_public.agreement_signers.signed_file_id is E'@behavior -*\n\nThe version that the signer signed.';
comment on column app_public.agreement_signers.link_id is
  E'@behavior -*\n@secret\n\nWhat their link is known by; another one where their address changes.';
comment on column app_public.agreement_signers.invitation is
  E'@behavior -*\n@secret\n\nHow often they were asked; only the mail of the last time still goes out.';
comment on constraint agreement_signers_sequence_range on app_public.agreement_signers is
  'The sequence must be from 1 to 100.';
comment on constraint agreement_signers_signed_file on app_public.agreement_signers is
  'A signer who has signed must have a signed version.';
comment on constraint agreement_signers_agreement_id_fkey on app_public.agreement_signers is
  E'@parent\n@notNull\n@fieldName agreement\n@foreignFieldName signers\n@backwardDescription People who sign, in '
  'signing order.\n\n'
  'The agreement that they sign.';
comment on constraint agreement_signers_signed_file_id_fkey on app_public.agreement_signers is
  E'@fieldName signedFile\n@backwardBehavior -*\n\nThe version that the signer signed.';
comment on constraint agreement_signers_project_id_fkey on app_public.agreement_signers is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.';

create function app_public.agreement_signers_email(s app_public.agreement_signers) returns app_public.email_address
language sql stable as $$
  select case when app_hidden.organization_can(s.organization_id, 'buyer.read')
    or s.project_id = any ((select app_hidden.viewer_projects('buyer.read'))::uuid[])
    or s.project_id = any ((select app_hidden.viewer_own_projects('buyer.read'))::uuid[])
    or s.id = any (array(select app_hidden.viewer_signers())) then s.email end
$$;
create function app_public.agreement_signers_phone(s app_public.agreement_signers) returns app_public.phone_number
language sql stable as $$
  select case when s.phone is not null and (app_hidden.organization_can(s.organization_id, 'buyer.read')
    or s.project_id = any ((select app_hidden.viewer_projects('buyer.read'))::uuid[])
    or s.project_id = any ((select app_hidden.viewer_own_projects('buyer.read'))::uuid[])
    or s.id = any (array(select app_hidden.viewer_signers()))) then s.phone end
$$;
create function app_public.agreement_signers_allowed_transitions(s app_public.agreement_signers)
returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('agreement_signer', jsonb_build_object('status',
  s.status)) $$;
grant execute on function app_public.agreement_signers_email, app_public.agreement_signers_phone,
  app_public.agreement_signers_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.agreement_signers_email is
  'Address that receives the link and the code; null for viewers who neither have the permission buyer.read nor '
  'sign as this person.';
comment on function app_public.agreement_signers_phone is
  'Mobile number for codes by text message; null for viewers who neither have the permission buyer.read nor sign '
  'as this person.';
comment on function app_public.agreement_signers_allowed_transitions is
  E'@notNull\n\nAlways empty: the status follows from what the signer does.';

create function app_private.tg_agreement_signers__agreement() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  select a.project_id, a.organization_id into new.project_id, new.organization_id from app_public.agreements a
    where a.id = new.agreement_id;
  return new;
end $$;
comment on function app_private.tg_agreement_signers__agreement() is 'A signer is of the project of the agreement.';

create function app_private.tg_agreement_signers__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  agreement app_public.agreements;
  project_country text;
  most constant int := 20;
  is_new_address boolean;
begin
  new.email := lower(new.email);
  if new.phone is not null and (tg_op = 'INSERT' or new.phone is distinct from old.phone) then
    project_country := (select coalesce((p.address).country, 'US') from app_public.projects p
      where p.id = new.project_id);
    new.phone := app_hidden.to_e164(new.phone, project_country);
  end if;
  if coalesce(app_hidden.is_service(), false)
    or (tg_op = 'UPDATE' and row(new.role, new.name, new.email, new.phone, new.sequence)
      is not distinct from row(old.role, old.name, old.email, old.phone, old.sequence)) then
    return new;
  end if;
  select * into agreement from app_public.agreements a where a.id = new.agreement_id for no key update;
  if agreement.status = 'DRAFT' then
    if tg_op = 'INSERT' and (select count(*) from app_public.agreement_signers s where s.agreement_id = new.agreement_id
        and s.deleted_at is null) >= most then
      perform app_hidden.fail('LIMIT_EXCEEDED', format('An agreement can have at most %s signers.', most),
        jsonb_build_object('limit', most));
    end if;
    return new;
  end if;
  if tg_op = 'INSERT' then
    perform app_hidden.fail('CONFLICT',
      'Signers can only be added to a draft; this agreement has been sent. Void it and create another one.',
      '{"field": "agreementId"}');
  elsif agreement.status not in ('SENT', 'VIEWED', 'PARTIALLY_SIGNED', 'SIGNED')
    or new.status in ('SIGNED', 'DECLINED') then
    perform app_hidden.fail('CONFLICT', 'This signer has signed or declined and can no longer be changed.', '{"field": '
      '"id"}');
  elsif agreement.signing_provider <> 'EMBEDDED' then
    perform app_hidden.fail('CONFLICT',
      'The signers of an agreement at a provider cannot be changed; void it and create another one.',
      '{"field": "id"}');
  elsif row(new.role, new.sequence) is distinct from row(old.role, old.sequence) then
    perform app_hidden.fail('CONFLICT',
      'The agreement has been sent: only the name, address and phone number of a signer can still be changed.',
      jsonb_build_object('field', case when new.role <> old.role then 'role' else 'sequence' end));
  end if;
  is_new_address := new.email <> old.email;
  if row(new.name, new.email, new.phone) is distinct from row(old.name, old.email, old.phone) then
    -- Links and codes sent to the former address or number become invalid.
    delete from app_private.agreement_codes c where c.signer_id = new.id;
    perform app_private.note_trail(agreement.id, 'CHANGED', signer => new);
  end if;
  if is_new_address then
    new.link_id := gen_random_uuid();
    if new.status in ('INVITED', 'VIEWED') then
      new.invitation := new.invitation + 1;
      perform app_private.add_job('agreement_signer__invited',
        jsonb_build_object('id', new.id, 'invitation', new.invitation));
    end if;
  end if;
  return new;
end $$;
create trigger _300_prepare before insert or update on app_public.agreement_signers for each row
  execute function app_private.tg_agreement_signers__prepare();

create function app_private.tg_agreement_signers__keep() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if exists (select from app_public.agreements a where a.id = old.agreement_id and a.status <> 'DRAFT') then
    perform app_hidden.fail('CONFLICT',
      'The agreement has been sent, so signers cannot be removed; void it and create another one.');
  end if;
  return old;
end $$;
create trigger _200_keep before delete on app_public.agreement_signers for each row
  execute function app_private.tg_agreement_signers__keep();
