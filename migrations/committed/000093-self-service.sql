--! Previous: sha1:e0f9045804a731eeb4c8903754f23554bd3f08dd
--! Hash: sha1:e237a81326ec82dfcb3e7b8e7606f2214f60456d
--! Message: self-service

-- What visitors and buyers do for themselves: reserve a home of a project that allows it, and send the documents that
-- show who they are and that they can pay.

select app_private.add_enum_values('lead_origin', array[['RESERVATION', 'A reservation that they made themselves.']]);

alter table app_public.projects
  add column public_reservations boolean not null default false,
  add column public_reservation_fee_required boolean not null default true,
  add column public_hold_expiration int not null default 1
    constraint projects_public_hold_expiration_range check (public_hold_expiration between 1 and 72);
alter table app_public.unit_holds add column is_self_service boolean not null default false;
alter table app_public.unit_holds add column held_price app_public.money;
alter table app_public.reservations add column is_self_service boolean not null default false;

create table app_public.buyer_documents (
  like app_private.document_record including all,
  buyer_id uuid not null,
  constraint buyer_documents_kinds check (category in ('IDENTITY', 'PROOF_OF_FUNDS', 'PREAPPROVAL', 'OTHER')),
  constraint buyer_documents_private check (not public),
  constraint buyer_documents_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade,
  constraint buyer_documents_buyer_id_fkey foreign key (buyer_id, project_id)
    references app_public.buyers (id, project_id) on delete cascade,
  constraint buyer_documents_uploaded_by_id_fkey foreign key (uploaded_by_id)
    references app_public.users on delete set null
);
create index buyer_documents_checksum on app_public.buyer_documents (checksum);
create index buyer_documents_documents on app_public.buyer_documents (buyer_id, id) where deleted_at is null;
create index buyer_documents_project on app_public.buyer_documents (project_id, id);
create index buyer_documents_uploaded_by on app_public.buyer_documents (uploaded_by_id);
alter table app_public.buyer_documents enable row level security;
