--! Previous: sha1:18802cfcb67f1ca5b50e9782e270f73315285868
--! Hash: sha1:5758009962ed1706c3572ffc6a04cb8eb9707ced
--! Message: deal-numbers

-- Offers and agreements have a number in their project, as reservations have, and the search finds all three by it.

select app_private.add_enum_values('search_result_type', array[
  ['RESERVATION', 'A reservation.'], ['OFFER', 'An offer.'], ['AGREEMENT', 'An agreement.']]);

create table app_private.offer_counters (
  project_id uuid primary key references app_public.projects on delete cascade,
  last_number int not null
);
alter table app_private.offer_counters enable row level security;

create table app_private.agreement_counters (
  project_id uuid primary key references app_public.projects on delete cascade,
  last_number int not null
);
alter table app_private.agreement_counters enable row level security;

alter table app_public.offers add column number text;
alter table app_public.agreements add column number text;

-- In the order in which they were made. It is no change that anybody has made: no version, no event.
alter table app_public.offers disable trigger user;
update app_public.offers o set number = 'O-' || lpad(n.place::text, greatest(6, length(n.place::text)), '0')
  from (select id, row_number() over (partition by project_id order by inserted_at, id) as place
    from app_public.offers) n
  where n.id = o.id;
alter table app_public.offers enable trigger user;
alter table app_public.agreements disable trigger user;
update app_public.agreements a set number = 'A-' || lpad(n.place::text, greatest(6, length(n.place::text)), '0')
  from (select id, row_number() over (partition by project_id order by inserted_at, id) as place
    from app_public.agreements) n
  where n.id = a.id;
alter table app_public.agreements enable trigger user;
insert into app_private.offer_counters (project_id, last_number)
  select o.project_id, count(*) from app_public.offers o group by o.project_id;
insert into app_private.agreement_counters (project_id, last_number)
  select a.project_id, count(*) from app_public.agreements a group by a.project_id;

-- squawk-ignore adding-not-nullable-field
alter table app_public.offers alter column number set not null;
-- squawk-ignore adding-not-nullable-field
alter table app_public.agreements alter column number set not null;
-- squawk-ignore require-concurrent-index-creation
create unique index offers_number on app_public.offers (project_id, number);
-- squawk-ignore require-concurrent-index-creation
create unique index agreements_number on app_public.agreements (project_id, number);
