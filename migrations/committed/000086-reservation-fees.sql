--! Previous: sha1:dd9337e891c03d33d00230137f773fdb6a89b905
--! Hash: sha1:81fb11f0ec907402342baa39d1121f2e7ace63c7
--! Message: reservation-fees

-- The fee of a reservation is a deposit of it, also of one that names no lead.

alter table app_public.deposits add column is_reservation_fee boolean not null default false;

alter table app_public.deposits drop constraint deposits_one_person;
-- The table is locked by what stands above anyway.
-- squawk-ignore constraint-missing-not-valid
alter table app_public.deposits add constraint deposits_one_person check (num_nonnulls(lead_id, buyer_id) = 1
  or (num_nonnulls(lead_id, buyer_id) = 0 and reservation_id is not null));
-- squawk-ignore require-concurrent-index-creation
create unique index deposits_reservation_fee on app_public.deposits (reservation_id)
  where is_reservation_fee and deleted_at is null;
