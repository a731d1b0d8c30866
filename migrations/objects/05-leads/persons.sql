-- Persons: the people of leads and purchases. An organization knows each of them once, by email address, in whatever
-- projects they registered and whatever they bought. A purchase belongs to the person of its lead.
--
-- A person has no data of their own: name and address are columns of leads and purchases, where they are changed and
-- erased, and the viewer sees as much of a person as of these. The id is random, so that registering an address does
-- not reveal whether it was known. Only a digest of the address is stored, to find the person.

create policy seers_of_deals on app_public.persons for select to plat_user
  using (exists (select from app_public.leads l where l.person_id = persons.id)
    or exists (select from app_public.buyers b where b.person_id = persons.id));
comment on policy seers_of_deals on app_public.persons is
  '@perRow Persons are looked up by id, from a lead or a purchase.';

grant select on app_public.persons to plat_user, plat_anonymous;

comment on table app_public.persons is
  E'@behavior -operation\n\nA person with one or more leads or purchases in an organization.';
comment on column app_public.persons.id is 'Id of the person; ids are not in order of creation.';
comment on column app_public.persons.organization_id is
  E'@behavior -*\n\nThe organization that the person''s leads and purchases belong to.';
comment on column app_public.persons.email_digest is E'@secret\n@behavior -*\n\nSHA-256 of the email address.';
comment on constraint persons_organization_id_fkey on app_public.persons is
  E'@fieldName organization\n@backwardBehavior -*\n\n'
  'The organization that the person''s leads and purchases belong to.';
comment on index app_public.persons_email is 'There is already a person with this email address.';
comment on column app_public.leads.person_id is
  'The person behind the lead; leads and purchases of the same person share this record.';
comment on column app_public.buyers.person_id is
  'The person who buys; leads and purchases of the same person share this record.';
comment on constraint leads_person_id_fkey on app_public.leads is
  E'@fieldName person\n@foreignFieldName leads\n@backwardDescription Leads of the person in all projects that the '
  'viewer can see, latest first.\n\n'
  'The person behind the lead; leads and purchases of the same person share this record.';
comment on constraint buyers_person_id_fkey on app_public.buyers is
  E'@fieldName person\n@foreignFieldName purchases\n@backwardDescription Purchases in all projects that the viewer '
  'can see, latest first.\n\n'
  'The person who buys; leads and purchases of the same person share this record.';

create function app_public.persons_name(p app_public.persons) returns text
language sql stable as $$
  select coalesce(
    (select l.name from app_public.leads l where l.person_id = p.id order by l.id desc limit 1),
    (select app_hidden.name_of_buyer(b.first_name, b.last_name, b.legal_name, b.company, b.email)
      from app_public.buyers b where b.person_id = p.id order by b.id desc limit 1))
$$;
grant execute on function app_public.persons_name to plat_user, plat_anonymous;
comment on function app_public.persons_name is 'Name on the latest lead or purchase that the viewer can see.';

create function app_private.person_of(organization_id uuid, email text) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  digest constant bytea := sha256(convert_to(lower(email), 'UTF8'));
  result uuid;
begin
  loop
    select p.id into result from app_public.persons p
      where p.organization_id = organization_id and p.email_digest = digest;
    exit when result is not null;
    insert into app_public.persons (organization_id, email_digest) values (organization_id, digest)
      on conflict do nothing returning id into result;
    exit when result is not null;
  end loop;
  return result;
end $$;
comment on function app_private.person_of(uuid, text) is
  'The person whom an organization knows by an email address, from now on where it did not; without an address '
  'somebody new. Who registers one address at the same moment gets the same person.';

create function app_private.rename_person(person_id uuid, email text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.persons p set email_digest = sha256(convert_to(lower(email), 'UTF8'))
    where p.id = rename_person.person_id;
  return found;
exception when unique_violation then
  return false; -- somebody else is known by it
end $$;
comment on function app_private.rename_person(uuid, text) is
  'Changes the email address of a person; returns false and changes nothing if another person has it.';

-- A new address belongs to the same person, unless it is known as that of another one, or another lead or purchase of
-- the person keeps the former address.
create function app_private.other_person(before app_public.leads, after app_public.leads) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if after.email is null or (
    not exists (select from app_public.leads l where l.person_id = before.person_id and l.id <> before.id
      and l.email is not distinct from before.email)
    and not exists (select from app_public.buyers b where b.person_id = before.person_id and b.lead_id is null
      and b.email is not distinct from before.email)
    and app_private.rename_person(before.person_id, after.email)) then
    return null;
  end if;
  return app_private.person_of(after.organization_id, after.email);
end $$;

create function app_private.tg_leads__person_of_purchases() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.buyers b set person_id = new.person_id where b.lead_id = new.id and b.deleted_at is null
    and b.person_id is distinct from new.person_id;
  return null;
end $$;
create trigger _420_person_of_purchases after update of email on app_public.leads for each row
  when (old.person_id is distinct from new.person_id)
    execute function app_private.tg_leads__person_of_purchases();

create function app_private.tg_buyers__person() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.lead_id is not null then
    new.person_id := (select l.person_id from app_public.leads l where l.id = new.lead_id);
  elsif tg_op = 'INSERT' or (new.email is not null
    and (exists (select from app_public.leads l where l.person_id = old.person_id
        and l.email is not distinct from old.email)
      or exists (select from app_public.buyers b where b.person_id = old.person_id and b.id <> old.id
        and b.lead_id is null and b.email is not distinct from old.email)
      or not app_private.rename_person(old.person_id, new.email))) then
    new.person_id := app_private.person_of(new.organization_id, new.email);
  end if;
  return new;
end $$;
create trigger _210_person_first before insert on app_public.buyers for each row
  execute function app_private.tg_buyers__person();
create trigger _210_person before update of email, lead_id on app_public.buyers for each row
  when (row(old.email, old.lead_id) is distinct from row(new.email, new.lead_id))
    execute function app_private.tg_buyers__person();
comment on function app_private.other_person(app_public.leads, app_public.leads) is
  'Who else a lead is whose email address has changed; null where it is the same person as before.';
comment on function app_private.tg_leads__person_of_purchases() is
  'The purchases of a lead are of the person that the lead is.';
comment on function app_private.tg_buyers__person() is
  'Says who buys: the person of the lead, without one by the email address.';

-- Agreements that were signed after the buyer had accepted an invitation are visible to them immediately, under the
-- address of the invitation; so are their own reservations. A draft waits for its own invitation.
create function app_private.tg_buyers__account() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.user_id := coalesce(
    (select r.buyer_id from app_public.reservations r where r.id = new.reservation_id),
    (select b.user_id from app_public.buyers b
      join app_hidden.user_identities i on i.user_id = b.user_id and i.email = new.email
      where b.person_id = new.person_id and b.user_id is not null and b.deleted_at is null order by b.id desc limit 1));
  return new;
end $$;
create trigger _220_account before insert on app_public.buyers for each row
  when (new.user_id is null and new.status not in ('DRAFT', 'CANCELLED'))
    execute function app_private.tg_buyers__account();
comment on function app_private.tg_buyers__account() is
  'Shows a purchase to the account that sees the other purchases of the person.';
