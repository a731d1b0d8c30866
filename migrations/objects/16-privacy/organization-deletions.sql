-- Deleting an organization, in two steps. An owner requests it with their password and second factor, and sees a
-- preview. For thirty days everything continues to work, all owners are reminded, and each of them can cancel. Then it
-- is final: access ends, and a job removes the rows in batches, so that others are not affected.
--
--   SCHEDULED → RUNNING → COMPLETED
--   SCHEDULED → CANCELLED
--
-- Its account at the payment processor is closed first. If the processor refuses because of a balance, the deletion
-- waits, and a ticket notifies the owners.
--
-- Records that the law requires (contracts and payments) are first copied into app_private.retained_records, which no
-- role of the API can read, and deleted after their retention period. The row of the organization remains without a
-- name. The accounts of its members are their own, and remain.

create policy owners on app_public.organization_deletions for select to plat_user
  using (deleted_at is null and (organization_id = any ((select app_hidden.viewer_organizations('org.owner'))::uuid[])
    -- When there are no members left, the requester still gets the certificate.
    or (requested_by_id = (select app_public.current_user_id()) and (select app_hidden.setting('token_id')) is null)));
grant select on app_public.organization_deletions to plat_user, plat_anonymous;
select app_private.make_record('organization_deletions', 'organization_deletion', 'org.owner');
insert into app_private.file_tables (table_name) values ('organization_deletions');
insert into app_private.event_names (subject, column_name, value, name) values
  ('organization_deletion', 'status', 'CANCELLED', 'cancelled');
insert into app_private.retention (relation, over) values
  ('app_private.retained_records', 'kept_until <= current_date');

comment on table app_public.organization_deletions is $$
@portfolio org.owner
@behavior -operation

A requested deletion of an organization: when it becomes final, what is deleted, what is retained, and why.$$;
comment on column app_public.organization_deletions.organization_id is E'@behavior -*\n\nThe organization.';
comment on column app_public.organization_deletions.status is 'Current status.';
comment on column app_public.organization_deletions.reason is 'Reason given in the request.';
comment on column app_public.organization_deletions.final_at is
  'When the deletion starts; until then it can be cancelled.';
comment on column app_public.organization_deletions.expected is
  'Data to be deleted at the time of the request: {record, count} for each kind of record; counts stop at 100,001.';
comment on column app_public.organization_deletions.removed is 'Deleted data: {record, count}.';
comment on column app_public.organization_deletions.kept is 'Retained data: {record, count, reason, until}.';
comment on column app_public.organization_deletions.kept_until is
  'When the last contracts and payments are deleted too; null if none are retained.';
comment on column app_public.organization_deletions.requested_by_id is
  E'@inert The requester entered their password, and every owner can cancel it.\n@behavior -*\n\nWho asked.';
comment on column app_public.organization_deletions.cancelled_by_id is
  E'@inert Only names the user who cancelled it.\n@behavior -*\n\nUser who cancelled the deletion.';
comment on column app_public.organization_deletions.cancel_reason is 'Reason for the cancellation, as free text.';
comment on column app_public.organization_deletions.cancelled_at is 'When an owner cancelled it; null otherwise.';
comment on column app_public.organization_deletions.started_at is
  'When the removal of records started; null until then.';
comment on column app_public.organization_deletions.completed_at is 'When the certificate was written.';
comment on column app_public.organization_deletions.checksum is E'@behavior -*\n\nSHA-256 of the certificate.';
comment on column app_public.organization_deletions.filename is E'@behavior -*\n\nThe name of the certificate.';
comment on constraint organization_deletions_organization_id_fkey on app_public.organization_deletions is
  E'@fieldName organization\n@foreignFieldName deletions\n@backwardPermission org.owner\n@backwardDescription '
  'Requested deletions of the organization, latest first; null without the permission org.owner.\n\n'
  'The organization; null once it is deleted.';
comment on constraint organization_deletions_requested_by_id_fkey on app_public.organization_deletions is
  E'@fieldName requestedBy\n@backwardBehavior -*\n\nUser who requested it.';
comment on constraint organization_deletions_cancelled_by_id_fkey on app_public.organization_deletions is
  E'@fieldName cancelledBy\n@backwardBehavior -*\n\nUser who cancelled the deletion.';
comment on index app_public.organization_deletions_one is
  'The deletion of the organization has already been requested.';
comment on table app_private.deletion_readers is
  'Former owners who still have to be notified of the deletion of their organization.';
comment on column app_private.deletion_readers.email is E'@personal\n\nTheir address.';
comment on column app_private.deletion_readers.organization is E'@impersonal\n\nWhat it was called.';
comment on table app_private.retained_records is
  'Contracts and payments of deleted organizations, retained as long as the law requires; not readable through the '
  'API.';
comment on column app_private.retained_records.data is
  'The record, without the personal data that contracts and payments do not need.';

create function app_public.organization_deletions_certificate_url(d app_public.organization_deletions)
  returns app_public.file_address
language sql stable as $$
  select case when d.checksum is not null
    then app_hidden.file_address('organization_deletions', d.id, d.checksum, d.filename, false, true) end
$$;
grant execute on function app_public.organization_deletions_certificate_url to plat_user, plat_anonymous;
comment on function app_public.organization_deletions_certificate_url is
  'Download URL of the certificate (PDF), valid for a few minutes; null until it is written.';

create function app_public.organizations_deletion_at(o app_public.organizations) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select d.final_at from app_public.organization_deletions d
  where d.organization_id = o.id and d.status = 'SCHEDULED' and app_hidden.organization_can(o.id, 'org.member')
$$;
grant execute on function app_public.organizations_deletion_at to plat_user, plat_anonymous;
comment on function app_public.organizations_deletion_at is
  'When the requested deletion becomes final; null if none was requested, and for non-members.';

-- Rows of an organization, found from the catalog: new tables are found by their column organization_id.
create function app_private.is_removing() returns boolean
language sql stable as $$ select coalesce(current_setting('plat.removing', true), '') = 'on' $$;
grant execute on function app_private.is_removing to plat_user;
comment on function app_private.is_removing() is
  'Whether an organization is being deleted, so that records that are otherwise immutable can be deleted.';

create function app_private.set_removing() returns void
language plpgsql volatile as $$
begin
  perform app_private.set_erasing(true);
  perform set_config('plat.removing', 'on', true);
end $$;
comment on function app_private.set_removing() is
  'Permits the rest of the transaction to delete records that are otherwise immutable.';

create function app_private.organization_relations() returns table (relation regclass, place int)
language plpgsql stable as $$
#variable_conflict use_variable
declare
  left_over regclass[] := array(select c.oid::regclass from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id' and not a.attisdropped
    where c.relkind in ('r', 'p') and not c.relispartition
      and c.relnamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace,
        'app_private'::regnamespace)
      -- Kept: the record of the deletion, data with a legal retention period, and contents of files, which other
      -- organizations may have as well.
      and c.oid <> all (array['app_public.organization_deletions', 'app_private.retained_records',
        'app_private.stored_files']::regclass[]) order by c.oid::regclass::text);
  ready regclass[];
begin
  place := 0;
  loop
    place := place + 1;
    -- Before the tables that they refer to; a purchase and its reservation refer to each other.
    ready := array(select t from unnest(left_over) t where not exists (select from pg_constraint k
      where k.contype = 'f' and k.confrelid = t and k.conrelid = any (left_over) and k.conrelid <> t
        and k.confdeltype in ('a', 'r', 'c')
        and (k.conrelid, t) <> ('app_public.buyers'::regclass, 'app_public.reservations'::regclass)));
    exit when ready = '{}';
    left_over := array(select t from unnest(left_over) t where t <> all (ready));
    foreach relation in array ready loop
      return next;
    end loop;
  end loop;
  if left_over <> '{}' then
    raise exception 'These tables refer to each other: %', left_over;
  end if;
end $$;
comment on function app_private.organization_relations() is
  'The tables whose rows belong to an organization, in an order in which they can be emptied. What has no column '
  'organization_id refers to these by keys that cascade.';

create function app_private.count_organization(organization_id uuid) returns jsonb
language plpgsql stable as $$
declare
  one record;
  amount int;
  result jsonb := '[]';
begin
  for one in select r.relation, c.relname from app_private.organization_relations() r
    join pg_class c on c.oid = r.relation and c.relnamespace = 'app_public'::regnamespace order by c.relname
  loop
    -- Counting stops somewhere, so that the answer does not wait for a large organization.
    execute format('select count(*) from (select from %s t where t.organization_id = $1 limit 100001) t', one.relation)
      into amount using organization_id;
    if amount > 0 then
      result := result || jsonb_build_object('record', app_hidden.camel(one.relname), 'count', amount);
    end if;
  end loop;
  return result;
end $$;
comment on function app_private.count_organization(uuid) is
  'How many records of each kind an organization has; counts end at 100,001.';

-- Data with a legal retention period, and data needed to interpret it.
create function app_private.retained_conditions() returns table (relation regclass, condition text)
language sql immutable as $$
  select r.relation::regclass, r.condition from (values
    ('app_public.projects', 'exists (select from app_public.buyers b where b.project_id = t.id)'),
    ('app_public.units', 'exists (select from app_public.buyers b where b.unit_id = t.id)'),
    ('app_public.lots', 'exists (select from app_public.buyers b where b.lot_id = t.id)'),
    ('app_public.buyers', 't.status = ''CLOSED'' or t.purchase_date is not null or t.contract_sent_at is not null'),
    ('app_public.buyer_documents', 'exists (select from app_public.buyers b where b.id = t.buyer_id and (b.status = '
      '''CLOSED'' or b.purchase_date is not null or b.contract_sent_at is not null))'),
    ('app_public.agreements', 't.status in (''PARTIALLY_SIGNED'', ''SIGNED'', ''EXECUTED'')'),
    ('app_public.agreement_files', 'exists (select from app_public.agreements a where a.id = t.agreement_id and '
      'a.status in (''PARTIALLY_SIGNED'', ''SIGNED'', ''EXECUTED''))'),
    ('app_public.agreement_signers', 'exists (select from app_public.agreements a where a.id = t.agreement_id and '
      'a.status in (''PARTIALLY_SIGNED'', ''SIGNED'', ''EXECUTED''))'),
    ('app_public.agreement_trail_entries', 'exists (select from app_public.agreements a where a.id = t.agreement_id '
      'and a.status in (''PARTIALLY_SIGNED'', ''SIGNED'', ''EXECUTED''))'),
    ('app_public.deposits', 't.paid_at is not null'),
    ('app_public.processor_charges', 't.status not in (''FAILED'', ''CANCELLED'')'),
    ('app_public.processor_refunds', 'true'),
    ('app_public.erasures', 'true')) r (relation, condition)
$$;
comment on function app_private.retained_conditions() is
  'Which records of an organization are kept when it is deleted: contracts, payments, certificates of erasures.';

create function app_private.retained_data(relation regclass, value jsonb) returns jsonb
language sql stable as $$
  select value - coalesce((select array_agg(p.name::text) from app_private.personal_columns(relation) p
    where p.kept <> 'contract'), '{}')
$$;
comment on function app_private.retained_data(regclass, jsonb) is
  'A record without the personal data that contracts and payments do not need.';

create function app_private.count_retained(organization_id uuid) returns jsonb
language plpgsql stable as $$
declare
  one record;
  amount int;
  years constant int := (select o.contract_retention_years from app_public.organizations o
    where o.id = count_retained.organization_id);
  result jsonb := '[]';
begin
  for one in select r.relation, r.condition, c.relname from app_private.retained_conditions() r
    join pg_class c on c.oid = r.relation order by c.relname
  loop
    execute format('select count(*) from (select from %s t where t.organization_id = $1 and (%s) limit 100001) t',
      one.relation, one.condition) into amount using organization_id;
    if amount > 0 then
      result := result || jsonb_build_object('record', app_hidden.camel(one.relname), 'count', amount, 'reason',
        'Contracts and payments are kept as long as the law asks for.', 'until',
        (now() + make_interval(years => years))::date);
    end if;
  end loop;
  return result;
end $$;
comment on function app_private.count_retained(uuid) is
  'What stays of an organization when it is deleted, and until when at most.';

-- Asking for it, and cancelling.
create function app_private.refuse_deletion_under_way(organization_id uuid) returns void
language plpgsql stable as $$
declare
  active constant jsonb := jsonb_strip_nulls(jsonb_build_object(
    'buyers', (select nullif(count(*), 0) from (select from app_public.buyers b
      where b.organization_id = refuse_deletion_under_way.organization_id and b.deleted_at is null
        and b.status not in ('CLOSED', 'CANCELLED') limit 1000) b),
    'reservations', (select nullif(count(*), 0) from (select from app_public.reservations r
      where r.organization_id = refuse_deletion_under_way.organization_id and r.deleted_at is null
        and r.status in ('PENDING', 'CONFIRMED') limit 1000) r),
    'payments', (select nullif(count(*), 0) from (select from app_public.processor_charges c
      where c.organization_id = refuse_deletion_under_way.organization_id
        and c.status in ('PENDING', 'REQUIRES_ACTION', 'DISPUTED') limit 1000) c)));
begin
  if active <> '{}' then
    perform app_hidden.fail('CONFLICT', format('Open deals of this organization involve others: %s. Close, cancel or '
      'end these first.', (select string_agg(a.value || ' ' || case when a.value = '1'
        then left(a.key, -1) else a.key end, ', ' order by a.key) from jsonb_each_text(active) a)),
      jsonb_build_object('dependents', active));
  end if;
end $$;
comment on function app_private.refuse_deletion_under_way(uuid) is
  'Refuses to delete an organization with purchases, reservations or payments that are not over.';

create function app_private.schedule_organization_deletion(organization_id uuid, reason text, dry_run boolean,
  requested_by_id uuid default null) returns app_public.organization_deletions
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  result app_public.organization_deletions;
begin
  perform from app_public.organizations o where o.id = organization_id and o.deleted_at is null for no key update;
  if not found then
    perform app_hidden.fail('NOT_FOUND', 'There is no such organization.', '{"field": "organizationId"}');
  end if;
  if exists (select from app_public.organization_deletions d where d.organization_id = organization_id
      and d.status in ('SCHEDULED', 'RUNNING')) then
    perform app_hidden.fail('CONFLICT', 'The deletion of the organization has already been requested.',
      '{"field": "organizationId"}');
  end if;
  perform app_private.refuse_deletion_under_way(organization_id);
  begin
    insert into app_public.organization_deletions (organization_id, reason, final_at, expected, kept, kept_until,
        requested_by_id)
      select organization_id, reason, now() + interval '30 days', app_private.count_organization(organization_id),
        k.kept, (select max((e.value ->> 'until')::date) from jsonb_array_elements(k.kept) e), requested_by_id
        from (select app_private.count_retained(organization_id) as kept) k
      returning * into result;
    if dry_run then
      raise exception 'Undoes what was tried.' using errcode = 'PLAT9';
    end if;
    perform app_private.add_job('organization_deletions__remind', job_key => 'organization deletion ' || result.id);
  exception when sqlstate 'PLAT9' then
    null;
  end;
  return result;
end $$;
comment on function app_private.schedule_organization_deletion(uuid, text, boolean, uuid) is
  'Schedules the deletion of an organization in 30 days; with dry_run, only returns what would be deleted. No user '
  'requested it if an operator of the service did; its owners are reminded and can cancel it as usual.';

create function app_public.request_organization_deletion(organization_id uuid, password app_public.password_proof,
  second_factor_code app_public.second_factor_code default null, reason app_public.long_text default null,
  dry_run boolean default false) returns app_public.organization_deletions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer constant uuid := app_hidden.require_whole_account();
begin
  perform app_hidden.require_organization(organization_id, 'org.owner');
  perform app_private.require_password(viewer, password);
  perform app_private.require_second_factor(viewer, second_factor_code);
  return app_private.schedule_organization_deletion(organization_id, reason, dry_run, viewer);
end $$;
grant execute on function app_public.request_organization_deletion to plat_user, plat_anonymous;
comment on function app_public.request_organization_deletion is $$
@eachTime
@arg organization_id Id of the organization to delete; the viewer must be an owner.
@arg password The password of the viewer's account.
@arg second_factor_code Code of the authenticator app, or a recovery code; required if the account has a second factor.
@arg reason Reason, as free text.
@arg dry_run If true, returns what would be deleted and retained, and changes nothing.

Schedules the deletion of an organization and all its data in 30 days; until then every owner can cancel it, and
all owners are reminded. Export its data before (`exportOrganization`). Contracts and payments are retained as long
as the law requires; the accounts of its members stay. Refused while a purchase, reservation or payment is in
progress. For signed-in owners only; access tokens are refused.$$;

create function app_private.end_scheduled_deletion(organization_id uuid, reason text, cancelled_by_id uuid default null)
  returns app_public.organization_deletions
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  result app_public.organization_deletions;
begin
  update app_public.organization_deletions d set status = 'CANCELLED', cancelled_at = now(), cancel_reason = reason,
      cancelled_by_id = cancelled_by_id
    where d.organization_id = organization_id and d.status = 'SCHEDULED' returning * into result;
  if result.id is null then
    perform app_hidden.fail('NOT_FOUND', 'The deletion of this organization has not been requested.',
      '{"field": "organizationId"}');
  end if;
  perform app_private.add_job('organization_deletions__remind', job_key => 'organization deletion ' || result.id);
  return result;
end $$;
comment on function app_private.end_scheduled_deletion(uuid, text, uuid) is
  'Cancels the deletion of an organization before it is final.';

create function app_public.cancel_organization_deletion(organization_id uuid, reason app_public.long_text default null)
returns app_public.organization_deletions
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_hidden.require_organization(organization_id, 'org.owner');
  return app_private.end_scheduled_deletion(organization_id, reason, app_public.current_user_id());
end $$;
grant execute on function app_public.cancel_organization_deletion to plat_user, plat_anonymous;
comment on function app_public.cancel_organization_deletion is $$
@arg organization_id Id of the organization whose deletion is cancelled; the viewer must be an owner.
@arg reason Reason, as free text.

Cancels the deletion of an organization before it is final and notifies all owners.
Requires the permission org.owner.$$;

create function app_private.deletion_mails(most int)
returns table (key text, email text, organization text, about text, final_at timestamptz, requested_by text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select k.key, r.email, r.organization, a.about, d.final_at,
    (select nullif(concat_ws(' ', u.first_name, u.last_name), '') from app_public.users u
    where u.id = coalesce(case when d.status = 'CANCELLED' then d.cancelled_by_id end, d.requested_by_id))
  from app_public.organization_deletions d
  cross join lateral (select case
    when d.status = 'CANCELLED' and d.cancelled_at > now() - interval '2 days' then 'CANCELLED'
    when d.status = 'COMPLETED' and d.completed_at > now() - interval '7 days' then 'COMPLETED'
    when d.status <> 'SCHEDULED' or d.final_at <= now() then null
    when d.final_at < now() + interval '1 day' then 'DAY'
    when d.final_at < now() + interval '7 days' then 'WEEK' else 'REQUESTED' end as about) a
  cross join lateral (
    select i.email::text, o.name::text as organization from app_public.organization_user_connections m
    join app_public.organizations o on o.id = m.organization_id
    join app_public.users u on u.id = m.user_id and u.status = 'ACTIVE' and u.deleted_at is null
    join app_hidden.user_identities i on i.user_id = u.id
    where m.organization_id = d.organization_id and m.role = 'OWNER' and d.status <> 'COMPLETED'
    union all select p.email, p.organization from app_private.deletion_readers p
    where p.deletion_id = d.id and d.status = 'COMPLETED') r
  cross join lateral (select format('organization deletion %s %s %s', d.id, a.about, md5(r.email)) as key) k
  where a.about is not null and not app_private.mail_is_done(k.key)
  order by d.id limit most
$$;
comment on function app_private.deletion_mails(int) is
  'Pending notices to owners about the deletion of their organization: requested, a week or a day left, cancelled, '
  'completed.';

-- Doing it.
create function app_private.queue_due_deletions() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.add_job('organization_deletion__due', jsonb_build_object('id', d.id),
      job_key => 'organization_deletion__due ' || d.id)
    from app_public.organization_deletions d where d.status in ('SCHEDULED', 'RUNNING') and d.final_at <= now()
    order by d.final_at limit 100;
  delete from app_private.deletion_readers r using app_public.organization_deletions d where d.id = r.deletion_id
    and d.completed_at < now() - interval '7 days';
end $$;
comment on function app_private.queue_due_deletions() is
  'Queues the deletions of organizations that are final, and those whose job was lost.';

create function app_private.due_deletion(deletion_id uuid) returns app_public.organization_deletions
language plpgsql volatile as $$
declare
  deletion app_public.organization_deletions;
begin
  select d.* into deletion from app_public.organization_deletions d where d.id = deletion_id
    and (d.status = 'RUNNING' or d.status = 'SCHEDULED' and d.final_at <= now()) for update;
  if deletion.status = 'SCHEDULED' then
    perform from app_public.organizations o where o.id = deletion.organization_id for update;
    begin
      perform app_private.refuse_deletion_under_way(deletion.organization_id);
    exception when sqlstate 'PLAT0' then
      -- Objects created since then are deleted first.
      update app_public.organization_deletions d set status = 'CANCELLED', cancelled_at = now(),
        cancel_reason = sqlerrm where d.id = deletion_id;
      return null;
    end;
  end if;
  return deletion;
end $$;
comment on function app_private.due_deletion(uuid) is
  'A deletion that is due or in progress; null if there is none. Where something has begun in the meantime, it is '
  'cancelled.';

-- An account with a balance is not closed, because nobody could pay it out once the organization is deleted.
create function app_private.account_to_close(deletion_id uuid) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  deletion constant app_public.organization_deletions := app_private.due_deletion(deletion_id);
begin
  return (select a.processor_id from app_private.payments_accounts a
    where a.organization_id = deletion.organization_id and deletion.status = 'SCHEDULED');
end $$;
comment on function app_private.account_to_close(uuid) is
  'The account at the payment processor that is closed before a deletion that is final begins; null if there is '
  'none.';

create function app_private.postpone_deletion(deletion_id uuid, reason text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  deletion app_public.organization_deletions;
begin
  update app_public.organization_deletions d set final_at = now() + interval '1 day'
    where d.id = deletion_id and d.status = 'SCHEDULED' and d.final_at <= now() returning * into deletion;
  if deletion.id is not null then
    perform app_private.open_ticket('OTHER', 'payments account', deletion.organization_id,
      'The payment account cannot be closed, so the organization is not deleted yet', '{DISMISS}',
      description => format('The payment processor says: %s Have what is on the account paid out. Closing is tried '
        'again every day, and the organization is deleted once it succeeds. To keep the organization, cancel its '
        'deletion.', reason), priority => 'URGENT', subject_type => 'organization_deletion', subject_id => deletion.id);
  end if;
end $$;
comment on function app_private.postpone_deletion(uuid, text) is
  'Puts a deletion off by a day as the payment processor does not close the account, and opens a ticket.';

create function app_private.end_organization_access(organization_id uuid) returns void
language plpgsql volatile as $$
begin
  perform app_private.revoke_access_tokens(array(select t.id from app_public.access_tokens t
    where t.organization_id = end_organization_access.organization_id and t.revoked_at is null));
  update app_public.projects p set deleted_at = now(), visibility = 'PRIVATE'
    where p.organization_id = end_organization_access.organization_id and p.deleted_at is null;
  delete from app_public.project_organizations a where a.organization_id = end_organization_access.organization_id
    or a.owner_id = end_organization_access.organization_id;
  delete from app_public.organization_user_connections m
    where m.organization_id = end_organization_access.organization_id;
  delete from app_public.webhooks w where w.organization_id = end_organization_access.organization_id;
  delete from app_private.workflow_triggers t where t.organization_id = end_organization_access.organization_id;
  update app_public.organizations o set deleted_at = now(), has_public_project = false
    where o.id = end_organization_access.organization_id;
end $$;
comment on function app_private.end_organization_access(uuid) is
  'From now on nobody gets into an organization, nothing of it is found, and nothing goes out.';

create function app_private.begin_deletion(deletion_id uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  deletion constant app_public.organization_deletions := app_private.due_deletion(deletion_id);
begin
  if deletion.status = 'RUNNING' then
    return true;
  elsif deletion.status is null then
    return false;
  end if;
  insert into app_private.deletion_readers (deletion_id, email, organization)
    select deletion_id, i.email, o.name from app_public.organization_user_connections m
    join app_public.organizations o on o.id = m.organization_id
    join app_hidden.user_identities i on i.user_id = m.user_id
    where m.organization_id = deletion.organization_id and m.role = 'OWNER' on conflict do nothing;
  perform app_private.set_removing();
  update app_public.organization_deletions d set status = 'RUNNING', started_at = now(), kept = '[]', removed = '[]'
    where d.id = deletion_id;
  perform app_private.end_organization_access(deletion.organization_id);
  return true;
end $$;
comment on function app_private.begin_deletion(uuid) is
  'Starts deleting an organization whose deletion is final: all access to it ends. False where there is nothing to '
  'do; if something has begun in the meantime, the deletion is cancelled.';

create function app_private.retain_records(deletion_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  organization app_public.organizations;
  one record;
  amount int;
  last date;
begin
  select o.* into organization from app_public.organizations o where o.id = (select d.organization_id
    from app_public.organization_deletions d where d.id = deletion_id and d.status = 'RUNNING' and d.kept = '[]');
  for one in select r.relation, r.condition, c.relname,
      exists (select from pg_attribute a where a.attrelid = r.relation and a.attname = 'checksum') as is_file,
      (select a.attname from pg_attribute a where a.attrelid = r.relation and not a.attisdropped
        and a.attname in ('updated_at', 'inserted_at', 'occurred_at') order by a.attname desc limit 1) as dated
    from app_private.retained_conditions() r join pg_class c on c.oid = r.relation
    where organization.id is not null order by c.relname
  loop
    execute format('insert into app_private.retained_records (organization_id, relation, record_id, data, checksum, '
      'kept_until) select t.organization_id, $2, t.id, app_private.retained_data(%L, to_jsonb(t)), %s, k.until '
      'from %s t cross join lateral (select (t.%I + make_interval(years => $3))::date as until) k '
      'where t.organization_id = $1 and k.until > current_date and (%s) on conflict do nothing',
      one.relation, case when one.is_file then 't.checksum' else 'null' end, one.relation, one.dated, one.condition)
      using organization.id, one.relation::text, organization.contract_retention_years;
    select count(*), max(r.kept_until) into amount, last from app_private.retained_records r
      where r.organization_id = organization.id and r.relation = one.relation::text;
    if amount > 0 then
      update app_public.organization_deletions d set kept = d.kept || jsonb_build_object('record',
          app_hidden.camel(one.relname), 'count', amount, 'reason',
          'Contracts and payments are kept as long as the law asks for.', 'until', last),
          kept_until = greatest(d.kept_until, last)
        where d.id = deletion_id;
    end if;
  end loop;
end $$;
comment on function app_private.retain_records(uuid) is
  'Copies what the law keeps of an organization, before its records are removed.';

create function app_private.release_references(relation regclass, ids uuid[]) returns void
language plpgsql volatile as $$
declare
  edge record;
begin
  for edge in
    select k.conrelid::regclass as child, a.attname, a.attnotnull from pg_constraint k
    join lateral unnest(k.conkey, k.confkey) pair (own, other) on true
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = pair.own
    join pg_attribute p on p.attrelid = k.confrelid and p.attnum = pair.other and p.attname = 'id'
    where k.contype = 'f' and k.confrelid = relation and k.conrelid <> relation and k.confdeltype in ('a', 'r')
  loop
    if edge.attnotnull then
      execute format('delete from %s t where t.%I = any ($1)', edge.child, edge.attname) using ids;
    else
      execute format('update %s t set %I = null where t.%I = any ($1)', edge.child, edge.attname, edge.attname)
        using ids;
    end if;
  end loop;
end $$;
comment on function app_private.release_references(regclass, uuid[]) is
  'Clears references to the given rows, such as those of other organizations'' executions to an event that started '
  'them.';

create function app_private.removed_relations() returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.relation::text from app_private.organization_relations() r order by r.place, r.relation::text
$$;
comment on function app_private.removed_relations() is
  'The tables from which the rows of an organization are removed, in their order.';

create function app_private.remove_organization_rows(deletion_id uuid, relation text, batch int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  target constant regclass := (select r.relation from app_private.organization_relations() r
    where r.relation::text = remove_organization_rows.relation);
  has_id constant boolean := exists (select from pg_attribute a where a.attrelid = target and a.attname = 'id'
    and a.atttypid = 'uuid'::regtype);
  addressed name;
  organization uuid;
  -- The table itself, or its partition: a ctid is only unique within one of them.
  place regclass;
  rows tid[];
  ids uuid[];
  emails text[];
  amount int;
begin
  select d.organization_id into organization from app_public.organization_deletions d
    where d.id = remove_organization_rows.deletion_id and d.status = 'RUNNING' for no key update;
  if organization is null or target is null then
    return 0;
  end if;
  perform app_private.set_removing();
  execute format('select t.tableoid::regclass from %s t where t.organization_id = $1 limit 1', target) into place
    using organization;
  if place is null then
    return 0;
  end if;
  -- The latest first where rows refer to earlier ones of the same table.
  execute format('select array_agg(t.ctid) from (select t.ctid from %s t where t.organization_id = $1 %s limit $2) t',
    place, case when exists (select from pg_constraint k where k.conrelid = target and k.confrelid = target
      and k.confdeltype in ('a', 'r')) then 'order by t.id desc' else '' end) into rows using organization, batch;
  if has_id then
    execute format('select array_agg(t.id) from %s t where t.ctid = any ($1)', place) into ids using rows;
    perform app_private.release_references(target, ids);
    if exists (select from pg_attribute a where a.attrelid = target and a.attname = 'slug') then
      delete from app_private.slugs s where s.record_id = any (ids) and s.table_name = (select c.relname
        from pg_class c where c.oid = target);
    end if;
    if target = 'app_public.organization_integrations'::regclass then
      delete from app_private.integration_secrets s where s.integration_id = any (ids);
    end if;
    -- That it was written to them.
    for addressed in select a.attname from pg_attribute a where a.attrelid = target
      and a.atttypid = 'app_public.email_address'::regtype and not a.attisdropped
    loop
      execute format('select array_agg(distinct t.%1$I::text) from %2$s t where t.ctid = any ($1) and t.%1$I is not '
        'null', addressed, place) into emails using rows;
      delete from app_private.mail_deliveries m where m.recipient = any (emails);
    end loop;
  end if;
  execute format('delete from %s t where t.ctid = any ($1)', place) using rows;
  get diagnostics amount = row_count;
  if target::text like 'app_public.%' then
    perform app_private.note_removed(deletion_id, app_hidden.camel(split_part(target::text, '.', 2)), amount);
  end if;
  return cardinality(rows);
end $$;
comment on function app_private.remove_organization_rows(uuid, text, int) is
  'Removes some rows of an organization from a table, with their related rows; returns how many it processed.';

create function app_private.note_removed(deletion_id uuid, record text, amount int) returns void
language sql volatile as $$
  update app_public.organization_deletions d set removed = (
    select jsonb_agg(jsonb_build_object('record', r.record, 'count', r.count) order by r.record) from (
      select r.record, sum(r.count) as count from (
        select e.value ->> 'record' as record, (e.value ->> 'count')::bigint as count
          from jsonb_array_elements(d.removed) e
        union all select note_removed.record, amount) r
      group by r.record) r)
  where d.id = deletion_id
$$;
comment on function app_private.note_removed(uuid, text, int) is 'Adds to the counts of deleted records.';

create function app_private.empty_organization(deletion_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  organization uuid;
begin
  select d.organization_id into organization from app_public.organization_deletions d
    where d.id = empty_organization.deletion_id and d.status = 'RUNNING' for update;
  if organization is null then
    return;
  end if;
  perform app_private.set_removing();
  update app_public.organizations o set name = 'Deleted organization', slug = 'deleted-' || o.id, description = null,
      email = null, phone = null, website_url = null, address = null
    where o.id = organization;
  delete from app_private.slugs s where s.table_name = 'organizations' and s.record_id = organization
    and s.slug <> 'deleted-' || organization;
  delete from app_private.event_counters c where c.stream_id = organization;
  perform graphile_worker.complete_jobs(array(select j.id from graphile_worker._private_jobs j
    where j.locked_at is null and j.payload #>> '{context,organizationId}' = organization::text));
  -- Deletes words of the search vocabulary that no record contains any longer.
  delete from app_private.search_words w where w.word not in (select n.word from app_private.search_texts t
    cross join lateral string_to_table(t.names, ' ') n (word));
  -- Contents that no other organization has are deleted immediately.
  update app_private.stored_files f set check_at = now(), organization_id = null where f.organization_id = organization;
  delete from app_private.storage_used s where s.owner_id = organization;
  perform app_private.add_job('files__sweep');
end $$;
comment on function app_private.empty_organization(uuid) is
  'Takes its name from an organization whose records are removed, and what else is known of it; has the contents of '
  'its files deleted.';

create function app_private.deletion_certificate(deletion_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object('id', d.id, 'title', 'Certificate of deletion', 'organization',
    coalesce((select r.organization from app_private.deletion_readers r where r.deletion_id = d.id limit 1), o.name),
    'language', o.language, 'timeZone', o.time_zone, 'requestedAt', d.inserted_at, 'reason', d.reason,
    'removed', d.removed, 'kept', d.kept, 'keptUntil', d.kept_until)
  from app_public.organization_deletions d join app_public.organizations o on o.id = d.organization_id
  where d.id = deletion_certificate.deletion_id and d.status = 'RUNNING'
$$;
comment on function app_private.deletion_certificate(uuid) is
  'What the certificate of the deletion of an organization says; null where it was written already.';

create function app_private.announce_deletion_certificate(checksum text, filesize int) returns boolean
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.register_file(announce_deletion_certificate.checksum, 'application/pdf',
    announce_deletion_certificate.filesize)
$$;
comment on function app_private.announce_deletion_certificate(text, int) is
  'Registers the certificate of a deletion before it is stored; returns true if the store already has it.';

create function app_private.complete_deletion(deletion_id uuid, checksum text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.file_is_stored(complete_deletion.checksum);
  perform app_private.set_removing();
  update app_public.organization_deletions d set status = 'COMPLETED', completed_at = now(),
      checksum = complete_deletion.checksum
    where d.id = complete_deletion.deletion_id and d.status = 'RUNNING';
  perform app_private.release_files(array[complete_deletion.checksum]);
  perform app_private.add_job('organization_deletions__remind', job_key => 'organization deletion ' || deletion_id);
end $$;
comment on function app_private.complete_deletion(uuid, text) is
  'Completes the deletion of an organization whose certificate is stored, and notifies the owners.';
grant execute on function app_private.deletion_mails, app_private.queue_due_deletions, app_private.account_to_close,
  app_private.postpone_deletion, app_private.begin_deletion, app_private.retain_records,
  app_private.removed_relations, app_private.remove_organization_rows, app_private.empty_organization,
  app_private.deletion_certificate, app_private.announce_deletion_certificate,
  app_private.complete_deletion to plat_worker;
