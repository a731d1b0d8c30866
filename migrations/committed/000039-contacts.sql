--! Previous: sha1:ecaed216c24fe1e8a747da16fbaec141ec468d16
--! Hash: sha1:2298a731bd440110910f73d39e598eb237353162
--! Message: contacts

-- Contacts of leads and buyers.

select app_private.create_enum('contact_role', 'What somebody is to a lead or buyer.', array[
  ['CO_BUYER', 'Buys too.'], ['SPOUSE', 'The spouse.'], ['GUARANTOR', 'Answers for the loan.'],
  ['BUYER_ATTORNEY', 'Lawyer of the buyer.'], ['SELLER_ATTORNEY', 'Lawyer of the seller.'],
  ['LOAN_OFFICER', 'Arranges the loan.'], ['BUYER_AGENT', 'Agent of the buyer.'],
  ['TITLE_OFFICER', 'Sees to the title.'], ['POWER_OF_ATTORNEY', 'Signs for the buyer.'], ['FAMILY', 'Of the family.'],
  ['ASSISTANT', 'Assists the buyer.'], ['FINANCIAL_PLANNER', 'Plans the finances.'],
  ['HOME_INSPECTOR', 'Inspects the home.'], ['INSURANCE', 'Insures the home.'], ['OTHER', 'Somebody else.']]);

create table app_public.contacts (
  like app_private.project_record including all,
  lead_id uuid,
  buyer_id uuid,
  role app_public.contact_role not null default 'OTHER',
  name app_public.short_text not null,
  first_name app_public.short_text,
  last_name app_public.short_text,
  legal_name app_public.short_text,
  email app_public.email_address constraint contacts_email_lower check (email = lower(email)),
  phone app_public.phone_number constraint contacts_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  address app_public.address,
  company app_public.short_text,
  is_signer boolean not null default false,
  ownership_percent numeric constraint contacts_ownership_percent_range
    check (ownership_percent > 0 and ownership_percent <= 100 and scale(ownership_percent) <= 4),
  notes app_public.long_text,
  constraint contacts_one_person check (num_nonnulls(lead_id, buyer_id) = 1),
  constraint contacts_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint contacts_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete cascade,
  constraint contacts_lead_id_fkey foreign key (lead_id, project_id)
    references app_public.leads (id, project_id) on delete cascade
);
create index contacts_buyer on app_public.contacts (buyer_id, id desc) where deleted_at is null;
create index contacts_lead on app_public.contacts (lead_id, id desc) where deleted_at is null;
create index contacts_project on app_public.contacts (project_id, id desc) where deleted_at is null;
alter table app_public.contacts enable row level security;
