--! Previous: sha1:2298a731bd440110910f73d39e598eb237353162
--! Hash: sha1:54743426d7fb3a3f64ac41833c0da9284822952a
--! Message: agreements

-- Agreements with leads and buyers.

select app_private.create_enum('agreement_type', 'The kind of an agreement.', array[
  ['RESERVATION', 'A reservation agreement.'], ['PURCHASE', 'The purchase contract.'],
  ['AMENDMENT', 'A change of a contract.'], ['ADDENDUM', 'An addition to a contract.'], ['DISCLOSURE', 'A disclosure.'],
  ['NDA', 'A promise of secrecy.'], ['AGENCY', 'An agency agreement.'], ['COMMISSION', 'An agreement on commission.'],
  ['CHANGE_ORDER', 'A change of options or of construction.'], ['RELEASE', 'A mutual release.'],
  ['OTHER', 'Something else.']]);
select app_private.create_enum('agreement_status', 'How far an agreement is.', array[
  ['DRAFT', 'Being prepared.'], ['SENT', 'Sent to be signed.'], ['VIEWED', 'Somebody opened it.'],
  ['PARTIALLY_SIGNED', 'Some have signed.'], ['SIGNED', 'All on the buyer''s side have signed.'],
  ['EXECUTED', 'Countersigned by the seller.'], ['DECLINED', 'Somebody refused to sign.'],
  ['EXPIRED', 'Not signed in time.'], ['VOIDED', 'Withdrawn.']]);

create table app_public.agreements (
  like app_private.project_record including all,
  lead_id uuid,
  buyer_id uuid,
  type app_public.agreement_type not null,
  title app_public.short_text not null,
  status app_public.agreement_status not null default 'DRAFT',
  status_changed_at timestamptz not null default now(),
  sent_at timestamptz,
  viewed_at timestamptz,
  signed_at timestamptz,
  executed_at timestamptz,
  declined_at timestamptz,
  expires_at timestamptz,
  void_reason app_public.long_text,
  constraint agreements_one_person check (num_nonnulls(lead_id, buyer_id) = 1),
  constraint agreements_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint agreements_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete restrict,
  constraint agreements_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete restrict
);
create index agreements_buyer on app_public.agreements (buyer_id, id desc) where deleted_at is null;
create index agreements_lead on app_public.agreements (lead_id, id desc) where deleted_at is null;
create index agreements_project on app_public.agreements (project_id, id desc) where deleted_at is null;
alter table app_public.agreements enable row level security;
