--! Previous: sha1:6267807a52cee91f5965ce2574c6dd8378314d29
--! Hash: sha1:6cfc3cf6f6ba994cf0e1a0c86cf96a8c700ac19a
--! Message: agreements-signed

-- Signing agreements: their files with versions, who signs, the trail of what happened, one-time codes, envelopes at a
-- provider of electronic signatures.

select app_private.create_enum('signing_provider', 'Where an agreement is signed.', array[
  ['EMBEDDED', 'Here: by a link and a one-time code.'],
  ['DOCUSIGN', 'At DocuSign, by the integration docusign of the organization.']]);
select app_private.create_enum('agreement_signer_role', 'What a signer of an agreement is.', array[
  ['BUYER', 'The buyer.'], ['CO_BUYER', 'Somebody who buys too.'], ['GUARANTOR', 'Somebody who answers for the buyer.'],
  ['WITNESS', 'A witness.'], ['SELLER_REPRESENTATIVE', 'Signs for the seller: the countersignature.'],
  ['OTHER', 'Somebody else.']]);
select app_private.create_enum('agreement_signer_status', 'How far a signer is.', array[
  ['WAITING', 'Not asked yet: the agreement was not sent, or others sign before.'],
  ['INVITED', 'Asked to sign.'], ['VIEWED', 'Opened the agreement.'], ['SIGNED', 'Signed.'],
  ['DECLINED', 'Refused to sign.']]);
select app_private.create_enum('code_channel', 'How a one-time code is sent.', array[
  ['EMAIL', 'By mail.'], ['SMS', 'As a text message.']]);
select app_private.create_enum('agreement_file_kind', 'What a file of an agreement is.', array[
  ['DOCUMENT', 'A version of what is to be signed.'], ['SIGNED', 'What was signed, as the provider keeps it.'],
  ['CERTIFICATE', 'Who signed what, when and from where.']]);
select app_private.create_enum('agreement_trail_kind', 'What happened to an agreement.', array[
  ['SENT', 'It was sent to be signed.'], ['INVITED', 'A signer was asked to sign.'],
  ['REMINDED', 'A signer was reminded.'], ['CODE_SENT', 'A one-time code was sent to a signer.'],
  ['VIEWED', 'A signer opened it.'], ['SIGNED', 'A signer signed.'], ['DECLINED', 'A signer refused to sign.'],
  ['REPLACED', 'Another version took the place of the one before.'], ['CHANGED', 'A signer has another address.'],
  ['COMPLETED', 'All have signed.'], ['EXECUTED', 'It was countersigned.'], ['VOIDED', 'It was withdrawn.'],
  ['EXPIRED', 'It was not signed in time.']]);

alter table app_public.agreements
  add column signing_provider app_public.signing_provider not null default 'EMBEDDED',
  add column reminder_days smallint default 3
    constraint agreements_reminder_days_range check (reminder_days between 1 and 60);
-- Agreements are few, and the index takes a moment.
-- squawk-ignore constraint-missing-not-valid, disallowed-unique-constraint
alter table app_public.agreements add constraint agreements_id_project_id_key unique (id, project_id);

create domain app_public.signing_code as text;

create table app_public.agreement_files (
  like app_private.document_record including all,
  agreement_id uuid not null,
  kind app_public.agreement_file_kind not null default 'DOCUMENT',
  number int not null,
  void_signatures boolean not null default false,
  sent_at timestamptz,
  constraint agreement_files_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint agreement_files_agreement_id_fkey foreign key (agreement_id, project_id)
    references app_public.agreements (id, project_id) on delete cascade,
  constraint agreement_files_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create index agreement_files_project on app_public.agreement_files (project_id, id);
create index agreement_files_checksum on app_public.agreement_files (checksum);
create index agreement_files_uploaded_by on app_public.agreement_files (uploaded_by_id);
create unique index agreement_files_number on app_public.agreement_files (agreement_id, kind, number);
alter table app_public.agreement_files enable row level security;

create table app_public.agreement_signers (
  like app_private.project_record including all,
  agreement_id uuid not null,
  role app_public.agreement_signer_role not null,
  name app_public.short_text not null,
  email app_public.email_address not null constraint agreement_signers_email_lower check (email = lower(email)),
  phone app_public.phone_number constraint agreement_signers_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  sequence smallint not null default 1 constraint agreement_signers_sequence_range check (sequence between 1 and 100),
  status app_public.agreement_signer_status not null default 'WAITING',
  status_changed_at timestamptz not null default now(),
  invited_at timestamptz,
  viewed_at timestamptz,
  signed_at timestamptz,
  declined_at timestamptz,
  decline_reason app_public.long_text,
  reminded_at timestamptz,
  signed_file_id uuid,
  link_id uuid not null default gen_random_uuid(),
  invitation int not null default 0,
  constraint agreement_signers_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint agreement_signers_agreement_id_fkey foreign key (agreement_id, project_id)
    references app_public.agreements (id, project_id) on delete cascade,
  constraint agreement_signers_signed_file_id_fkey foreign key (signed_file_id)
    references app_public.agreement_files on delete restrict,
  constraint agreement_signers_signed_file check ((status = 'SIGNED') = (signed_file_id is not null))
);
create index agreement_signers_project on app_public.agreement_signers (project_id, id);
create index agreement_signers_signers on app_public.agreement_signers (agreement_id, sequence, id)
  where deleted_at is null;
create index agreement_signers_email on app_public.agreement_signers (email) where deleted_at is null;
create unique index agreement_signers_link on app_public.agreement_signers (link_id);
create index agreement_signers_signed_file on app_public.agreement_signers (signed_file_id);
alter table app_public.agreement_signers enable row level security;

create table app_public.agreement_trail_entries (
  id uuid primary key default uuidv7(),
  organization_id uuid not null,
  project_id uuid not null,
  agreement_id uuid not null,
  kind app_public.agreement_trail_kind not null,
  occurred_at timestamptz not null default clock_timestamp(),
  signer_id uuid references app_public.agreement_signers on delete restrict,
  signer_name text,
  file_id uuid references app_public.agreement_files on delete restrict,
  checksum text,
  actor_id uuid references app_public.users on delete set null,
  ip_address text,
  user_agent text,
  sent_to text,
  consent_text text,
  note text,
  constraint agreement_trail_entries_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete restrict,
  constraint agreement_trail_entries_agreement_id_fkey foreign key (agreement_id, project_id)
    references app_public.agreements (id, project_id) on delete restrict
);
create index agreement_trail_entries_agreement on app_public.agreement_trail_entries (agreement_id, id);
create index agreement_trail_entries_project on app_public.agreement_trail_entries (project_id, id);
create index agreement_trail_entries_signer on app_public.agreement_trail_entries (signer_id);
create index agreement_trail_entries_file on app_public.agreement_trail_entries (file_id);
create index agreement_trail_entries_actor on app_public.agreement_trail_entries (actor_id);
alter table app_public.agreement_trail_entries enable row level security;

create table app_private.agreement_codes (
  signer_id uuid primary key references app_public.agreement_signers on delete cascade,
  file_id uuid not null references app_public.agreement_files on delete cascade,
  channel app_public.code_channel not null,
  code_sha256 bytea,
  expires_at timestamptz,
  tries int not null default 0,
  proof uuid,
  proof_expires_at timestamptz,
  requested_at timestamptz not null default now()
);
create index agreement_codes_file on app_private.agreement_codes (file_id);
alter table app_private.agreement_codes enable row level security;

create table app_private.agreement_envelopes (
  agreement_id uuid primary key references app_public.agreements on delete cascade,
  integration_id uuid not null references app_public.organization_integrations on delete restrict,
  transaction_id uuid not null default gen_random_uuid(),
  file_id uuid not null references app_public.agreement_files on delete restrict,
  envelope_id text unique,
  ended boolean not null default false,
  asked_at timestamptz not null default now()
);
create index agreement_envelopes_asked_at on app_private.agreement_envelopes (asked_at)
  where envelope_id is not null and not ended;
create index agreement_envelopes_integration on app_private.agreement_envelopes (integration_id);
create index agreement_envelopes_file on app_private.agreement_envelopes (file_id);
alter table app_private.agreement_envelopes enable row level security;

create type app_public.signing_request as (
  agreement_id uuid,
  signer_id uuid,
  title text,
  type app_public.agreement_type,
  status app_public.agreement_status,
  organization_name text,
  project_title text,
  signer_name text,
  role app_public.agreement_signer_role,
  signer_status app_public.agreement_signer_status,
  can_sign boolean,
  file_id uuid,
  file_number int,
  filename text,
  checksum text,
  url app_public.file_address,
  certificate_url app_public.file_address,
  consent_text text,
  code_sent_to text,
  expires_at timestamptz,
  signed_at timestamptz
);
