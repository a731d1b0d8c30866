-- Erasing the viewer's own account: its data are deleted immediately. What organizations know of the person belongs to
-- them: they erase it with erasePerson.

comment on type app_public.account_erasure is 'Data that erasing an account removes and retains.';
comment on column app_public.account_erasure.erased_at is E'@notNull\n\nWhen the data was deleted.';
comment on column app_public.account_erasure.removed is
  E'@notNull\n\nData that were erased: a list of {record, count, fields} by kind of record.';
comment on column app_public.account_erasure.kept is
  E'@notNull\n\nRecords that are retained: a list of {record, count, reason}.';
comment on table app_private.account_erasures is 'Erased accounts, with the report that was returned then.';
comment on column app_private.account_erasures.erasure is
  E'@impersonal\n\nReport of the erasure, as returned to the user.';

create function app_private.account_scope(user_id uuid) returns jsonb
language plpgsql stable as $$
declare
  emails constant text[] := array(select i.email::text from app_hidden.user_identities i
    where i.user_id = account_scope.user_id);
  scope jsonb := jsonb_build_object('app_public.users', jsonb_build_array(user_id));
  one record;
  ids uuid[];
begin
  for one in
    select distinct p.relation, a.attname as name from app_private.personal_columns() p
    join pg_class c on c.oid = p.relation and c.relnamespace = 'app_public'::regnamespace
    join pg_constraint k on k.conrelid = p.relation and k.contype = 'f' and k.confrelid = 'app_public.users'::regclass
    join pg_attribute a on a.attrelid = p.relation and a.attnum = k.conkey[1] and a.attname = 'user_id'
    -- Records that organizations keep about the person belong to the organizations and are not affected.
    where p.relation <> all (array['app_public.buyers', 'app_public.reservations', 'app_public.unit_holds',
      'app_public.phone_calls', 'app_public.project_contact_messages']::regclass[])
  loop
    execute format('select array_agg(t.id) from %s t where t.%I = $1', one.relation, one.name) into ids using user_id;
    if ids is not null then
      scope := scope || jsonb_build_object(one.relation::text, to_jsonb(ids));
    end if;
  end loop;
  select array_agg(v.id) into ids from app_public.organization_invites v
    where v.email = any (emails) or v.accepted_by_id = account_scope.user_id;
  return scope || case when ids is null then '{}'
    else jsonb_build_object('app_public.organization_invites', to_jsonb(ids)) end;
end $$;
comment on function app_private.account_scope(uuid) is
  'The rows that are a user''s own, by their tables: by the columns user_id and the comments of personal columns.';

create function app_private.leave_organizations(user_id uuid) returns int
language plpgsql volatile as $$
declare
  amount int;
begin
  -- The last owner stays: the trigger of members refuses it.
  delete from app_public.organization_user_connections m where m.user_id = leave_organizations.user_id;
  get diagnostics amount = row_count;
  update app_public.leads l set assignee_id = null
    where l.assignee_id = leave_organizations.user_id and l.deleted_at is null;
  update app_public.buyers b set user_id = null where b.user_id = leave_organizations.user_id;
  return amount;
end $$;
comment on function app_private.leave_organizations(uuid) is
  'Ends all memberships of a user; leads that were assigned to them have nobody assigned then. Returns the number '
  'of ended ones.';

create function app_private.kept_of_account(user_id uuid, emails text[]) returns jsonb
language sql stable as $$
  select coalesce(jsonb_agg(jsonb_build_object('record', k.record, 'count', k.amount, 'reason', k.reason)
    order by k.record), '[]')
  from (
    select 'organizations' as record, count(distinct l.organization_id) as amount,
      'Organizations know the address of leads and purchases: ask them to erase it.' as reason
      from (select l.organization_id from app_public.leads l where l.email = any (emails)
        union all select b.organization_id from app_public.buyers b where b.email = any (emails)) l
    union all select 'processorCharges', count(*), 'Payments are kept as long as the law asks for.'
      from app_public.processor_charges c where c.user_id = kept_of_account.user_id
    union all select 'withdrawnAddresses', count(*), 'The address asked not to be written to: kept so that it is not.'
      from app_private.withdrawn_addresses w where w.email = any (emails)
  ) k
  where k.amount > 0
$$;
comment on function app_private.kept_of_account(uuid, text[]) is 'What erasing an account leaves, and why.';

create function app_private.erase_account(user_id uuid) returns app_public.account_erasure
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  emails constant text[] := array(select i.email::text from app_hidden.user_identities i where i.user_id = user_id);
  scope jsonb;
  one record;
  amount int;
  result app_public.account_erasure;
begin
  scope := app_private.account_scope(user_id);
  result.erased_at := now();
  result.kept := app_private.kept_of_account(user_id, emails);
  perform app_private.add_job('processor_card__removed', jsonb_build_object('id', c.id))
    from app_public.processor_cards c where c.user_id = user_id and c.removed_at is null;
  update app_public.processor_cards c set removed_at = now(), is_default = false
    where c.user_id = user_id and c.removed_at is null;
  perform app_private.end_access(user_id, 'ACCOUNT_ERASED', null, null, null, 'The account was erased.');
  perform app_private.leave_organizations(user_id);
  update app_public.users u set deleted_at = now(), status = 'DEACTIVATED' where u.id = user_id;
  perform app_private.set_erasing(true);
  select r.removed into result.removed from app_private.erase_rows(scope, 'infinity') r;
  delete from app_private.slugs s where s.table_name = 'users' and s.record_id = user_id
    and s.slug <> (select u.slug from app_public.users u where u.id = user_id);
  -- Internal rows of the account: identities, passwords, sessions, codes.
  for one in
    select k.conrelid::regclass as relation, c.relname from pg_constraint k
    join pg_class c on c.oid = k.conrelid and c.relnamespace <> 'app_public'::regnamespace
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1] and a.attname = 'user_id'
    where k.contype = 'f' and k.confrelid = 'app_public.users'::regclass and k.confdeltype = 'c'
      and k.conrelid <> all (array['app_private.account_erasures', 'app_private.processor_customers']::regclass[])
    order by 1
  loop
    execute format('delete from %s t where t.user_id = $1', one.relation) using user_id;
    get diagnostics amount = row_count;
    if amount > 0 then
      result.removed := result.removed || jsonb_build_object('record', app_hidden.camel(one.relname), 'count', amount);
    end if;
  end loop;
  delete from app_private.mail_deliveries d where d.recipient = any (emails);
  select coalesce(sum(e.amount), 0) into amount from (
    select app_private.erase_events_of(one_scope.key::regclass, array(select i.id::uuid
      from jsonb_array_elements_text(one_scope.value) i (id)), null) as amount from jsonb_each(scope) one_scope) e;
  perform app_private.set_erasing(false);
  if amount > 0 then
    result.removed := result.removed || jsonb_build_object('record', 'events', 'count', amount);
  end if;
  select count(*) into amount from jsonb_each(scope) s cross join lateral jsonb_array_elements_text(s.value) i (id)
    join app_public.events e on e.subject_id = i.id::uuid and e.archived_at is not null;
  if amount > 0 then
    result.kept := result.kept || jsonb_build_object('record', 'archivedEvents', 'count', amount, 'reason',
      'Nobody can read these values any longer; a job removes them from the files of the archive within moments.');
  end if;
  insert into app_private.account_erasures (user_id, erasure) values (user_id, result);
  return result;
end $$;
comment on function app_private.erase_account(uuid) is
  'Erases what is a user''s own: sign-in, sessions, tokens, integrations, memberships, cards, and the events about '
  'them.';

create function app_public.erase_account(password app_public.password_proof,
  second_factor_code app_public.second_factor_code default null, dry_run boolean default false)
returns app_public.account_erasure
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  viewer constant uuid := app_hidden.require_whole_account();
  result app_public.account_erasure;
begin
  perform from app_public.users u where u.id = viewer for no key update;
  perform app_private.require_password(viewer, password);
  perform app_private.require_second_factor(viewer, second_factor_code);
  begin
    result := app_private.erase_account(viewer);
    if dry_run then
      raise exception 'Undoes what was tried.' using errcode = 'PLAT9';
    end if;
  exception when sqlstate 'PLAT9' then
    null;
  end;
  return result;
end $$;
grant execute on function app_public.erase_account to plat_user, plat_anonymous;
comment on function app_public.erase_account is $$
@eachTime
@arg password Current password, to confirm the request.
@arg second_factor_code Code of the authenticator app, or a recovery code; required if the account has a second factor.
@arg dry_run If true, returns what would be removed and retained, and changes nothing.

Permanently erases the viewer's own account: all sessions end, memberships are removed, and the address cannot sign
in until it is registered again. The last owner of an organization must hand it over first. Records that
organizations keep about the person as a lead or buyer are not affected (see `erasePerson`).$$;
