-- Merges leads of one person: one of them gets all records of the others, which are deleted and can be restored by
-- unmergeLead. The changes of a merge are stored without personal data: which records moved, by key; which columns
-- were
-- filled, whose values the merged lead still has; and times and consents before and after.

comment on table app_private.merged_leads is
  'Which lead another one became part of, and was deleted; always the one that lives.';
comment on column app_private.merged_leads.direct_into_id is
  'The lead that it was merged into, which may have been merged into another one since.';
comment on column app_private.merged_leads.filled is
  E'@impersonal\n\nColumns of the other lead that were null and got the value of this one.';
comment on column app_private.merged_leads.new_tags is 'Places of the tags of this lead that the other one got.';
comment on column app_private.merged_leads.facts is
  E'@impersonal\n\nConsents and times of the other lead: {column: [before, after]}.';
comment on column app_private.merged_leads.moved is
  E'@impersonal\n\nRecords that moved: {table: {column: [key]}}; of a table without an id, the digests of its key.';

comment on column app_public.leads.merged_into_id is
  E'@behavior -insert -update -attribute:aggregate -attribute:groupBy\n\n'
  'The lead that it was merged into; null if it was not merged. A merged lead is deleted.';
comment on constraint leads_merged_into_id_fkey on app_public.leads is
  E'@fieldName mergedInto\n@backwardBehavior -*\n\n'
  'The lead that it was merged into; null if it was not merged, or the viewer '
  'cannot see that lead.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('lead', 'merged_into_id', '', 'unmerged'),
  ('lead', 'merged_into_id', null, 'merged');

create function app_private.lead_references()
returns table (relation regclass, name name, key text, is_soft boolean)
language sql stable as $$
  with referring as (
    select c.conrelid as relation, a.attname as name from pg_constraint c
      join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
      where c.contype = 'f' and c.confrelid = 'app_public.leads'::regclass
    -- Of records that may outlive the lead.
    union select a.attrelid, a.attname from pg_attribute a join pg_class r on r.oid = a.attrelid
        and r.relkind in ('r', 'p') and not r.relispartition
      where a.attname = 'lead_id' and a.atttypid = 'uuid'::regtype and not a.attisdropped
        and r.relnamespace::regnamespace::text in ('app_public', 'app_private', 'app_hidden')
    -- The merge itself records which lead was merged.
    except values ('app_private.merged_leads'::regclass, 'lead_id'::name),
      ('app_public.leads'::regclass, 'merged_into_id'::name)
  )
  select r.relation::regclass, r.name,
    case when exists (select from pg_attribute i where i.attrelid = r.relation and i.attname = 'id'
      and not i.attisdropped) then 'r.id::text'
    else (select format('encode(sha256(convert_to(concat_ws(%L, %s), %L)), %L)', E'\n',
        string_agg(format('r.%I', k.attname), ', ' order by k.attnum), 'UTF8', 'hex')
      from pg_constraint p join pg_attribute k on k.attrelid = p.conrelid and k.attnum = any (p.conkey)
      where p.conrelid = r.relation and p.contype = 'p') end,
    exists (select from pg_attribute d where d.attrelid = r.relation and d.attname = 'deleted_at'
      and not d.attisdropped)
  from referring r
  order by r.relation::regclass::text, r.name
$$;
comment on function app_private.lead_references() is
  'Columns that refer to leads, whichever module added them; and what identifies a row of their tables.';

create function app_private.lock_leads_with_deals(ids uuid[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- In the order of locks.
  perform from app_public.reservations r where r.lead_id = any (ids) order by r.id for no key update;
  perform from app_public.negotiations n where n.lead_id = any (ids) order by n.id for no key update;
  perform from app_public.buyers b where b.lead_id = any (ids) order by b.id for no key update;
  perform from app_public.leads l where l.id = any (ids) order by l.id for no key update;
end $$;
comment on function app_private.lock_leads_with_deals(uuid[]) is 'Locks leads and their deals.';

create function app_private.merge_lead(kept_id uuid, gone_id uuid) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  service text := coalesce(current_setting('plat.service', true), '');
  kept app_public.leads;
  gone app_public.leads;
  merged app_public.leads;
  reference record;
  keys jsonb;
  moved jsonb := '{}';
begin
  perform app_private.lock_leads_with_deals(array[kept_id, gone_id]);
  select l.* into kept from app_public.leads l where l.id = kept_id and l.deleted_at is null;
  select l.* into gone from app_public.leads l where l.id = gone_id and l.deleted_at is null;
  if kept.id is null or gone.id is null then
    perform app_hidden.fail('CONFLICT', 'One of the two leads was deleted.');
  elsif gone.project_id <> kept.project_id then
    perform app_hidden.fail('CONFLICT', 'Only leads of the same project can be merged.');
  elsif gone.status = 'CONVERTED' and kept.status <> 'CONVERTED' then
    perform app_hidden.fail('CONFLICT', 'The lead to be merged has become a buyer: merge the other one into it.');
  elsif exists (select from app_public.negotiations n join app_public.negotiations o on o.unit_id = n.unit_id
      where n.lead_id = kept.id and o.lead_id = gone.id and n.status not in ('ACCEPTED', 'CANCELLED')
        and o.status not in ('ACCEPTED', 'CANCELLED')
        and n.deleted_at is null and o.deleted_at is null) then
    perform app_hidden.fail('CONFLICT',
      'Both leads negotiate about the same unit; cancel one of the negotiations first.');
  end if;
  if (select count(*) from app_public.buyers b where b.lead_id in (kept.id, gone.id) and b.unit_id is null
    and b.lot_id is null and b.status <> 'CANCELLED' and b.deleted_at is null) > 1 then
    perform app_hidden.fail('CONFLICT',
      'Both leads have a purchase without a home; cancel or delete one of these purchases first.');
  end if;
  for reference in select * from app_private.lead_references() loop
    execute format('with moved as (update %1$s r set %2$I = $1 where r.%2$I = $2%3$s returning %4$s as key)
      select jsonb_agg(m.key) from moved m', reference.relation, reference.name,
      case when reference.is_soft then ' and r.deleted_at is null' else '' end, reference.key)
      into keys using kept.id, gone.id;
    if keys is not null then
      moved := moved || jsonb_build_object(reference.relation::text,
        coalesce(moved -> reference.relation::text, '{}') || jsonb_build_object(reference.name, keys));
    end if;
  end loop;
  perform set_config('plat.service', 'on', true);
  update app_public.leads l set deleted_at = now(), merged_into_id = kept.id where l.id = gone.id;
  update app_public.leads l set email = coalesce(l.email, gone.email), phone = coalesce(l.phone, gone.phone),
    address = case when l.address is distinct from null then l.address else gone.address end,
    company = coalesce(l.company, gone.company),
    preferred_language = coalesce(l.preferred_language, gone.preferred_language),
    legal_name = coalesce(l.legal_name, gone.legal_name),
    agent_id = coalesce(l.agent_id, gone.agent_id), is_represented = coalesce(l.is_represented, gone.is_represented),
    assignee_id = coalesce(l.assignee_id, gone.assignee_id),
    source = coalesce(l.source, gone.source), source_id = coalesce(l.source_id, gone.source_id),
    preapproved = coalesce(l.preapproved, gone.preapproved),
    -- A consent withdrawn by one of the leads is withdrawn.
    subscribed = (l.subscribed or gone.subscribed) and l.unsubscribed_at is null and gone.unsubscribed_at is null,
    unsubscribed_at = greatest(l.unsubscribed_at, gone.unsubscribed_at),
    do_not_contact = l.do_not_contact or gone.do_not_contact,
    registered_at = least(l.registered_at, gone.registered_at),
    first_response_at = least(l.first_response_at, gone.first_response_at),
    last_interaction_at = greatest(l.last_interaction_at, gone.last_interaction_at),
    tags = coalesce((array(select distinct t from unnest(l.tags::text[] || gone.tags::text[]) t order by t))[1:50],
      '{}')
    where l.id = kept.id returning * into merged;
  perform app_private.hand_over_leads(array[kept.id]);
  perform set_config('plat.service', service, true);
  -- The links in mails to the one lead to the other.
  insert into app_private.merged_leads (lead_id, into_id, direct_into_id, merged_at, filled, new_tags, facts, moved)
    select gone.id, kept.id, kept.id, now(),
      array(select b.key from jsonb_each(to_jsonb(kept)) b join jsonb_each(to_jsonb(merged)) a on a.key = b.key
        where b.value = 'null' and a.value is distinct from b.value
          and b.key = any ('{email,phone,address,company,preferred_language,legal_name,agent_id,is_represented,
            assignee_id,source,source_id,preapproved}')),
      array(select t.place from unnest(gone.tags::text[]) with ordinality t (tag, place)
        where t.tag <> all (kept.tags::text[]) and t.tag = any (merged.tags::text[])),
      (select jsonb_object_agg(b.key, jsonb_build_array(b.value, a.value))
        from jsonb_each(to_jsonb(kept)) b join jsonb_each(to_jsonb(merged)) a on a.key = b.key
        where b.key = any ('{subscribed,unsubscribed_at,do_not_contact,registered_at,first_response_at,
          last_interaction_at}') and a.value is distinct from b.value),
      moved
    on conflict (lead_id) do update set into_id = excluded.into_id, direct_into_id = excluded.direct_into_id,
      merged_at = excluded.merged_at, filled = excluded.filled, new_tags = excluded.new_tags, facts = excluded.facts,
      moved = excluded.moved;
  perform app_private.follow_deals(array[kept.id]);
  return kept.id;
end $$;
comment on function app_private.merge_lead(uuid, uuid) is
  'Merges the second lead into the first one of the same project: that one gets whatever refers to the other, and what '
  'it lacks itself; the other is deleted.';

create function app_private.merge_duplicates(one_id uuid, other_id uuid) returns uuid
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  -- A lead with a purchase is kept, else an open one, else the earlier one.
  select app_private.merge_lead(k.id, case k.id when one_id then other_id else one_id end)
  from (select l.id from app_public.leads l where l.id in (one_id, other_id)
    order by l.status = 'CONVERTED' desc, l.status in ('LOST', 'UNQUALIFIED'), l.id limit 1) k
$$;
comment on function app_private.merge_duplicates(uuid, uuid) is
  'Merges two leads of a project: a buyer, else an open one, else the earlier stays. Returns which.';

create function app_private.require_writable_lead(id uuid, field text, merged boolean default false)
returns app_public.leads
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  found app_public.leads;
begin
  select l.* into found from app_public.leads l where l.id = require_writable_lead.id
    and (l.deleted_at is null) <> merged and (not merged or l.merged_into_id is not null)
    and app_hidden.deal_can(l.organization_id, l.project_id, l.assignee_id, 'lead.read');
  if found.id is null then
    perform app_hidden.fail('NOT_FOUND', case when merged then 'There is no such merged lead.'
      else 'There is no such lead.' end, jsonb_build_object('field', field));
  elsif not app_hidden.deal_can(found.organization_id, found.project_id, found.assignee_id, 'lead.write') then
    perform app_hidden.fail('FORBIDDEN', 'This requires the permission lead.write.',
      '{"permission": "lead.write"}');
  end if;
  return found;
end $$;
comment on function app_private.require_writable_lead(uuid, text, boolean) is
  'The lead, living or merged, for a viewer who may change it; NOT_FOUND, or FORBIDDEN for one who only sees it.';

create function app_private.merge_leads(into_id uuid, ids uuid[]) returns app_public.leads
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  id uuid;
  result app_public.leads;
begin
  perform app_private.require_writable_lead(into_id, 'intoId');
  foreach id in array ids loop
    perform app_private.require_writable_lead(id, 'ids');
  end loop;
  perform app_private.lock_leads_with_deals(into_id || ids);
  foreach id in array ids loop
    perform app_private.merge_lead(into_id, id);
  end loop;
  select l.* into result from app_public.leads l where l.id = into_id;
  return result;
end $$;
comment on function app_private.merge_leads(uuid, uuid[]) is
  'Merges leads into another one; the viewer must be able to update all of them.';
grant execute on function app_private.merge_leads to plat_user;

create function app_public.merge_leads(into_id uuid, ids uuid[]) returns app_public.leads
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  others constant uuid[] := array(select i.id from unnest(ids) with ordinality i (id, place)
    group by i.id order by min(i.place));
begin
  perform app_hidden.require_viewer();
  if cardinality(others) not between 1 and 20 or into_id = any (others) then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify 1 to 20 other leads to merge into this one.',
      '{"field": "ids", "limit": 20}');
  end if;
  return app_private.merge_leads(into_id, others);
end $$;
grant execute on function app_public.merge_leads to plat_user, plat_anonymous;
comment on function app_public.merge_leads is
  E'@arg intoId Id of the lead that is kept.\n@arg ids Ids of up to 20 leads of the same project that are merged '
  'into it.\n\n'
  'Merges leads of the same person into one of them. That lead gets the notes, tasks, messages, deals and other '
  'records of the others, and their values for its empty fields; the deals get its assignee. The others are deleted '
  'and refer to it as `mergedInto`; `unmergeLead` restores one. Refused with CONFLICT for leads of different '
  'projects, if a lead with a purchase would be merged into one without, and if two of the leads negotiate about the '
  'same unit. Writes the event lead.merged for each merged lead.';

create function app_private.unmerge_lead(id uuid) returns app_public.leads
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  service text := coalesce(current_setting('plat.service', true), '');
  gone app_public.leads := app_private.require_writable_lead(id, 'id', merged => true);
  merge app_private.merged_leads;
  kept app_public.leads;
  before app_public.leads;
  reference record;
begin
  select m.* into merge from app_private.merged_leads m where m.lead_id = id;
  perform app_private.lock_leads_with_deals(array[merge.into_id, id]);
  select m.* into merge from app_private.merged_leads m where m.lead_id = id;
  select l.* into kept from app_public.leads l where l.id = merge.into_id;
  if merge.moved is null then
    perform app_hidden.fail('CONFLICT', 'This lead was merged by an earlier version, which did not record what moved.');
  elsif merge.into_id <> merge.direct_into_id then
    perform app_hidden.fail('CONFLICT',
      'The lead that it was merged into has itself been merged: unmerge that one first.',
      jsonb_build_object('existingId', merge.direct_into_id));
  elsif kept.deleted_at is not null then
    perform app_hidden.fail('CONFLICT', 'The lead that it was merged into has been deleted.');
  end if;
  perform app_private.require_writable_lead(kept.id, 'id');
  -- Values that were changed since stay unchanged.
  before := kept;
  before := jsonb_populate_record(before, coalesce((
    select jsonb_object_agg(f.key, f.value -> 0) from jsonb_each(merge.facts) f
    where to_jsonb(kept) -> f.key = f.value -> 1), '{}'));
  before := jsonb_populate_record(before, coalesce((
    select jsonb_object_agg(f.name, null) from unnest(merge.filled) f (name)
    where to_jsonb(kept) -> f.name = to_jsonb(gone) -> f.name), '{}'));
  before.tags := array(select t.tag from unnest(kept.tags::text[]) with ordinality t (tag, place)
    where t.tag <> all (array(select (gone.tags::text[])[p] from unnest(merge.new_tags) p)) order by t.place);
  perform set_config('plat.service', 'on', true);
  update app_public.leads l set email = before.email, phone = before.phone, address = before.address,
    company = before.company, preferred_language = before.preferred_language, legal_name = before.legal_name,
    agent_id = before.agent_id, is_represented = before.is_represented, assignee_id = before.assignee_id,
    source = before.source, source_id = before.source_id, preapproved = before.preapproved,
    subscribed = before.subscribed, unsubscribed_at = before.unsubscribed_at,
    do_not_contact = before.do_not_contact, registered_at = before.registered_at,
    first_response_at = before.first_response_at, last_interaction_at = before.last_interaction_at,
    tags = before.tags
    where l.id = kept.id;
  -- A later unsubscription applies to both.
  update app_public.leads l set deleted_at = null, merged_into_id = null,
    subscribed = l.subscribed and (before.unsubscribed_at is null or before.unsubscribed_at < merge.merged_at),
    unsubscribed_at = case when before.unsubscribed_at >= merge.merged_at
      then greatest(l.unsubscribed_at, before.unsubscribed_at) else l.unsubscribed_at end
    where l.id = gone.id;
  perform set_config('plat.service', service, true);
  for reference in select * from app_private.lead_references() r
    where merge.moved -> r.relation::text ? r.name::text
  loop
    execute format('update %1$s r set %2$I = $1 where r.%2$I = $2 and %3$s = any ($3)', reference.relation,
      reference.name, reference.key)
      using gone.id, kept.id,
        array(select jsonb_array_elements_text(merge.moved -> reference.relation::text -> reference.name::text));
  end loop;
  perform set_config('plat.service', 'on', true);
  perform app_private.hand_over_leads(array[gone.id]);
  perform set_config('plat.service', service, true);
  delete from app_private.merged_leads m where m.lead_id = gone.id;
  perform app_private.follow_deals(array[kept.id, gone.id]);
  select l.* into gone from app_public.leads l where l.id = gone.id;
  return gone;
end $$;
comment on function app_private.unmerge_lead(uuid) is 'Restores a merged lead that the viewer may change.';
grant execute on function app_private.unmerge_lead to plat_user;

create function app_public.unmerge_lead(id uuid) returns app_public.leads
language plpgsql volatile as $$
begin
  perform app_hidden.require_viewer();
  return app_private.unmerge_lead(id);
end $$;
grant execute on function app_public.unmerge_lead to plat_user, plat_anonymous;
comment on function app_public.unmerge_lead is
  E'@arg id The lead that was merged.\n\n'
  'Restores a lead that was merged into another one, with the records that it had. Values that the other lead took '
  'over from it are removed there unless they were changed since; records that were added to the other lead since '
  'stay there. Refused with CONFLICT if the other lead was deleted, or was merged itself (`existingId`). Writes '
  'the event lead.unmerged.';
