--! Previous: sha1:1ca6b99cab8d77a5ec3f4777e6a40ed3ed2e2090
--! Hash: sha1:255fcf5519baf2ffa3bf879d3af7a3cb39056b44
--! Message: refunds-of-deposits

-- What was given back of a deposit, and how much of a charge paid its deposit: the rest was more than was due and went
-- back by itself.
alter table app_public.deposits add column amount_refunded app_public.money not null default 0
  constraint deposits_refunded_within check (amount_refunded between 0 and amount_paid);
alter table app_public.processor_charges add column deposit_amount app_public.money;

alter table app_public.deposits disable trigger user;
with refunded as (
  select c.deposit_id, sum(greatest(0, c.amount_refunded - coalesce((
    select sum(r.amount) from app_public.processor_refunds r where r.charge_id = c.id and r.status = 'SUCCEEDED'
      and r.reason = 'DUPLICATE' and r.created_by_id is null and r.note = 'More than was due.'), 0))) as amount
  from app_public.processor_charges c where c.deposit_id is not null and c.amount_refunded > 0 group by c.deposit_id)
update app_public.deposits d set amount_refunded = least(r.amount, d.amount_paid),
    status = case when d.status = 'PAID' and r.amount > 0 then 'PARTIALLY_PAID' else d.status end
  from refunded r where r.deposit_id = d.id and d.status <> 'REFUNDED';
update app_public.deposits d set amount_refunded = d.amount_paid where d.status = 'REFUNDED';
alter table app_public.deposits enable trigger user;
