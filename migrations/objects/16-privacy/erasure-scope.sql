-- The records of a person: their leads and purchases, everything of the organization with their email address in a
-- personal column, and all records that refer to these by foreign keys. New tables are found by their keys and
-- comments.

create function app_private.erasure_edges() returns table (child regclass, name name, parent regclass, has_id boolean)
language sql stable as $$
  select k.conrelid::regclass, a.attname, k.confrelid::regclass,
    exists (select from pg_attribute i where i.attrelid = k.conrelid and i.attname = 'id' and i.atttypid =
      'uuid'::regtype
      and not i.attisdropped)
  from pg_constraint k
  join lateral unnest(k.conkey, k.confkey) pair (own, other) on true
  join pg_attribute a on a.attrelid = k.conrelid and a.attnum = pair.own
  join pg_attribute p on p.attrelid = k.confrelid and p.attnum = pair.other and p.attname = 'id'
  where k.contype = 'f' and k.confrelid <> all (array['app_public.users', 'app_public.projects',
    'app_public.organizations', 'app_public.units', 'app_public.lots', 'app_public.agents']::regclass[])
  order by k.conrelid::regclass::text, a.attname
$$;
comment on function app_private.erasure_edges() is
  'The columns that refer to a record about a person, by which its related records are found.';

create function app_private.ids_in(scope jsonb, relation regclass) returns uuid[]
language sql stable as $$
  select coalesce(array_agg(i.id::uuid), '{}') from jsonb_array_elements_text(scope -> relation::text) i (id)
$$;
comment on function app_private.ids_in(jsonb, regclass) is 'The rows of a table in the scope of an erasure.';

create function app_private.with_dependents(scope jsonb) returns jsonb
language plpgsql stable as $$
declare
  result jsonb := scope;
  before jsonb;
  edge record;
  added uuid[];
begin
  loop
    before := result;
    for edge in select e.* from app_private.erasure_edges() e where e.has_id loop
      continue when not result ? edge.parent::text;
      execute format('select array_agg(t.id) from %s t where t.%I = any ($1) and t.id <> all ($2)', edge.child,
        edge.name) into added using app_private.ids_in(result, edge.parent), app_private.ids_in(result, edge.child);
      if added is not null then
        result := result || jsonb_build_object(edge.child::text,
          to_jsonb(app_private.ids_in(result, edge.child) || added));
      end if;
    end loop;
    exit when result = before;
  end loop;
  return result;
end $$;
comment on function app_private.with_dependents(jsonb) is
  'A scope of rows by their tables, with all related records. As many statements as there are keys, whatever the '
  'number of rows.';

create function app_private.erasure_emails(scope jsonb) returns text[]
language sql stable as $$
  select coalesce(array_agg(distinct e.email), '{}') from (
    select l.email::text as email from app_public.leads l
      where l.id = any (app_private.ids_in(scope, 'app_public.leads'))
    union all select b.email::text from app_public.buyers b
      where b.id = any (app_private.ids_in(scope, 'app_public.buyers'))
    union all select a.email::text from app_public.agents a
      where a.id = any (app_private.ids_in(scope, 'app_public.agents'))) e
  where e.email is not null
$$;
comment on function app_private.erasure_emails(jsonb) is 'The addresses of the leads, purchases and agents of a scope.';

create function app_private.erasure_scope(organization_id uuid, roots jsonb) returns jsonb
language plpgsql stable as $$
declare
  scope jsonb := roots;
  emails constant text[] := app_private.erasure_emails(roots);
  addressed record;
  added uuid[];
begin
  for addressed in
    select p.relation, p.name from app_private.personal_columns() p
    join pg_attribute a on a.attrelid = p.relation and a.attname = p.name and a.atttypid =
      'app_public.email_address'::regtype
    join pg_class c on c.oid = p.relation and c.relnamespace = 'app_public'::regnamespace
    -- Representatives of the payments account and people of the team are not erased as customers.
    where p.relation <> all (array['app_public.organization_payments_representatives',
      'app_public.organization_invites',
        'app_public.project_organization_invites']::regclass[])
      and exists (select from pg_attribute o where o.attrelid = p.relation and o.attname = 'organization_id')
  loop
    execute format('select array_agg(t.id) from %s t where t.organization_id = $1 and t.%I = any ($2) and t.id <> all '
      '($3)', addressed.relation, addressed.name) into added
      using organization_id, emails, app_private.ids_in(scope, addressed.relation);
    if added is not null then
      scope := scope || jsonb_build_object(addressed.relation::text,
        to_jsonb(app_private.ids_in(scope, addressed.relation) || added));
    end if;
  end loop;
  return app_private.with_dependents(scope);
end $$;
comment on function app_private.erasure_scope(uuid, jsonb) is
  'The rows of an organization that are about the person of some leads, purchases or agents.';

-- Reasons to keep data: open deals must end first; contracts and payments are kept for years.
create function app_private.refuse_erasure_under_way(scope jsonb) returns void
language plpgsql stable as $$
declare
  active constant jsonb := jsonb_strip_nulls(jsonb_build_object(
    'buyers', (select nullif(count(*), 0) from app_public.buyers b
      where b.id = any (app_private.ids_in(scope, 'app_public.buyers')) and b.deleted_at is null
        and b.status not in ('CLOSED', 'CANCELLED')),
    'reservations', (select nullif(count(*), 0) from app_public.reservations r
      where r.id = any (app_private.ids_in(scope, 'app_public.reservations')) and r.deleted_at is null
        and r.status in ('PENDING', 'CONFIRMED')),
    'negotiations', (select nullif(count(*), 0) from app_public.negotiations n
      where n.id = any (app_private.ids_in(scope, 'app_public.negotiations')) and n.deleted_at is null
        and n.status in ('OPEN', 'ACTIVE'))));
begin
  if active <> '{}' then
    perform app_hidden.fail('CONFLICT', format('Data of this person is needed for open deals: %s. Close, cancel or '
      'end these first.', (select string_agg(a.value || ' ' || case when a.value = '1'
        then left(a.key, -1) else a.key end, ', ' order by a.key) from jsonb_each_text(active) a)),
      jsonb_build_object('dependents', active));
  end if;
end $$;
comment on function app_private.refuse_erasure_under_way(jsonb) is
  'Refuses to erase a person with a purchase, reservation or negotiation that is not over.';

create function app_private.contract_kept_until(organization_id uuid, scope jsonb) returns date
language sql stable as $$
  select (max(c.at) + make_interval(years => (select o.contract_retention_years from app_public.organizations o
    where o.id = contract_kept_until.organization_id)))::date
  from (
    select coalesce(b.closing_date, b.cancellation_date, b.purchase_date, b.updated_at::date)::timestamptz as at
      from app_public.buyers b where b.id = any (app_private.ids_in(scope, 'app_public.buyers'))
        and (b.status = 'CLOSED' or b.purchase_date is not null or b.contract_sent_at is not null)
    union all select coalesce(a.executed_at, a.signed_at, a.status_changed_at) from app_public.agreements a
      where a.status in ('PARTIALLY_SIGNED', 'SIGNED', 'EXECUTED')
        and (a.id = any (app_private.ids_in(scope, 'app_public.agreements'))
          or a.id in (select s.agreement_id from app_public.agreement_signers s
            where s.id = any (app_private.ids_in(scope, 'app_public.agreement_signers')) and s.status = 'SIGNED'))
    union all select coalesce(c.captured_at, c.inserted_at) from app_public.processor_charges c
      where c.id = any (app_private.ids_in(scope, 'app_public.processor_charges')) and c.status <> 'FAILED'
    union all select d.paid_at from app_public.deposits d
      where d.id = any (app_private.ids_in(scope, 'app_public.deposits')) and d.paid_at is not null
  ) c
$$;
comment on function app_private.contract_kept_until(uuid, jsonb) is
  'When retention of the contracts and payments of a person ends: a number of years after the last of them; null '
  'if there are none.';
