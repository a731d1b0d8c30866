-- Texts of other records that name an erased person: a note about somebody else, the input of a ticket, an event. A job
-- processes them in batches. Addresses and numbers that are whole values are kept: they belong to another person who
-- shares them.

create function app_private.texts_of_person(scope jsonb) returns text[]
language sql stable as $$
  select coalesce(array_agg(distinct t.text), '{}') from (
    select unnest(array[l.email, l.phone, l.name, l.legal_name, l.first_name || ' ' || l.last_name]::text[]) as text
      from app_public.leads l where l.id = any (app_private.ids_in(scope, 'app_public.leads'))
    union all select unnest(array[b.email, b.phone, b.legal_name, b.first_name || ' ' || b.last_name]::text[])
      from app_public.buyers b where b.id = any (app_private.ids_in(scope, 'app_public.buyers'))
    union all select unnest(array[a.email, a.phone, a.name]::text[])
      from app_public.agents a where a.id = any (app_private.ids_in(scope, 'app_public.agents'))) t
  -- One word may be anything.
  where t.text like '%@%' or t.text ~ '^\+\d{7,}$' or t.text ~ '\S\s+\S'
$$;
comment on function app_private.texts_of_person(jsonb) is
  'By what the person of a scope is found in texts: addresses, numbers, names of two words.';

create function app_private.text_pattern(texts text[]) returns text
language sql immutable as $$
  -- In JSON, line breaks and the like end in a letter or digit.
  select format('(?<!")(%1$s)|(%1$s)(?!")', string_agg(format(case
      when t like '%@%' then '((?<![[:alnum:]._%%+-])|(?<=\\[bfnrt]|\\u[0-9a-f]{4}))%s(?![.]?[[:alnum:]-])'
      else '((?<![[:alnum:]])|(?<=\\[bfnrt]|\\u[0-9a-f]{4}))%s(?=s?([^[:alnum:]]|$))' end,
      regexp_replace(trim(both '"' from to_json(t)::text), '([][\\.^$*+?(){}|-])', '\\\1', 'g')),
    '|' order by length(t) desc, t)) from unnest(texts) t
  -- An empty pattern would match everywhere.
  having count(*) > 0
$$;
comment on function app_private.text_pattern(text[]) is
  'A regular expression for any of the texts as whole words, also in the genitive, and as whole addresses, but not '
  'where they are the whole of a JSON string.';

create function app_private.erasable_texts() returns table (relation regclass, name name, is_json boolean)
language sql stable as $$
  select p.relation, p.name, coalesce(nullif(t.typbasetype, 0), t.oid) = 'jsonb'::regtype
  from app_private.personal_columns() p
  join pg_class c on c.oid = p.relation and c.relnamespace = 'app_public'::regnamespace
  join pg_attribute a on a.attrelid = p.relation and a.attname = p.name
  join pg_type t on t.oid = a.atttypid and (t.typname in ('long_text', 'jsonb') or t.oid = 'text'::regtype)
  where p.kept = '' and exists (select from pg_attribute o where o.attrelid = p.relation and o.attname =
    'organization_id'
    and not o.attisdropped) and exists (select from pg_attribute i where i.attrelid = p.relation and i.attname = 'id')
$$;
comment on function app_private.erasable_texts() is 'The columns of longer texts that may name a person.';

create function app_private.erase_texts(erasure_id uuid, relation text, after_id uuid, batch int) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  target constant regclass := (select distinct t.relation from app_private.erasable_texts() t
    where t.relation::text = erase_texts.relation);
  erasure app_public.erasures;
  pattern text;
  last uuid;
  amount int;
  assigned text;
  matched text;
begin
  select * into strict erasure from app_public.erasures e where e.id = erase_texts.erasure_id for no key update;
  select app_private.text_pattern(t.texts) into pattern from app_private.erasure_texts t
    where t.erasure_id = erase_texts.erasure_id;
  if pattern is null or target is null then
    return null;
  end if;
  select string_agg(format('%1$I = regexp_replace(t.%1$I::text, $4, ''[erased]'', ''gi'')%2$s', t.name,
      case when t.is_json then '::jsonb' else '' end), ', '),
    string_agg(format('t.%I::text ~* $4', t.name), ' or ')
    into assigned, matched from app_private.erasable_texts() t where t.relation = target;
  execute format('select max(b.id::text)::uuid from (select t.id from %s t where t.organization_id = $1 and ($2 is '
    'null or t.id > $2) order by t.id limit $3) b', target) into last using erasure.organization_id, after_id, batch;
  if last is null then
    return null;
  end if;
  if target = 'app_public.events'::regclass then
    perform app_private.lock_event_archives(erasure.organization_id, true);
  end if;
  perform app_private.set_erasing(true);
  execute format('update %s t set %s%s where t.organization_id = $1 and ($2 is null or t.id > $2) and t.id <= $3 and '
    '(%s)',
    target, assigned, case when target = 'app_public.events'::regclass then ', erased_at = now()' else '' end, matched)
    using erasure.organization_id, after_id, last, pattern;
  get diagnostics amount = row_count;
  perform app_private.set_erasing(false);
  if amount > 0 then
    update app_public.erasures e set removed = e.removed || jsonb_build_object('record',
        app_hidden.camel((select c.relname from pg_class c where c.oid = target)), 'count', amount, 'fields',
        '["texts that named the person"]'::jsonb) where e.id = erasure.id;
  end if;
  return last;
end $$;
comment on function app_private.erase_texts(uuid, text, uuid, int) is
  'Replaces mentions of an erased person in the texts of a batch of rows of a table; returns the last id of the '
  'batch, null if there is none.';

create function app_private.erasure_relations() returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select distinct t.relation::text from app_private.erasable_texts() t order by 1
$$;
comment on function app_private.erasure_relations() is 'The tables whose texts an erasure goes through.';

create function app_private.erase_private_texts(erasure_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  of_person constant text[] := (select t.texts from app_private.erasure_texts t
    where t.erasure_id = erase_private_texts.erasure_id);
  words constant text[] := array(select distinct w.word from unnest(of_person) t (text)
    cross join lateral string_to_table(app_hidden.search_text(t.text), ' ') w (word));
begin
  delete from app_private.mail_deliveries d where d.recipient = any (of_person);
  delete from app_private.message_answers a where a.number = any (of_person);
  delete from app_private.contact_messages m where m.email = any (of_person);
  delete from app_private.consent_requests r where r.email = any (of_person) and r.organization_id = (
    select e.organization_id from app_public.erasures e where e.id = erase_private_texts.erasure_id);
  -- Deletes words of the search vocabulary that no record contains any longer.
  delete from app_private.search_words w where w.word = any (words) and not exists (
    select from app_private.search_texts t where t.names like '% ' || w.word || ' %');
end $$;
comment on function app_private.erase_private_texts(uuid) is
  'Deletes what the service itself noted by the address or number of an erased person.';

create function app_private.erasure_certificate(erasure_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object('id', e.id, 'organization', o.name, 'language', o.language, 'timeZone', o.time_zone,
    'requestedAt', e.inserted_at, 'reason', e.reason, 'removed', e.removed, 'kept', e.kept, 'keptUntil', e.kept_until,
    'leads', cardinality(e.lead_ids), 'buyers', cardinality(e.buyer_ids))
  from app_public.erasures e join app_public.organizations o on o.id = e.organization_id
  where e.id = erasure_certificate.erasure_id and e.status = 'RUNNING'
$$;
comment on function app_private.erasure_certificate(uuid) is
  'What the certificate of an erasure says; null where it was written already.';

create function app_private.announce_erasure_certificate(erasure_id uuid, checksum text, filesize int) returns boolean
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.register_file(announce_erasure_certificate.checksum, 'application/pdf',
    announce_erasure_certificate.filesize, organization_id => e.organization_id)
  from app_public.erasures e where e.id = announce_erasure_certificate.erasure_id
$$;
comment on function app_private.announce_erasure_certificate(uuid, text, int) is
  'Registers the certificate of an erasure before it is stored; returns true if the store already has it.';

create function app_private.complete_erasure(erasure_id uuid, checksum text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.file_is_stored(complete_erasure.checksum);
  delete from app_private.erasure_texts t where t.erasure_id = complete_erasure.erasure_id;
  update app_public.erasures e set status = 'COMPLETED', completed_at = now(), checksum = complete_erasure.checksum
    where e.id = complete_erasure.erasure_id and e.status = 'RUNNING';
  perform app_private.release_files(array[complete_erasure.checksum]);
end $$;
comment on function app_private.complete_erasure(uuid, text) is
  'Ends an erasure whose certificate is stored; by what the person was found is forgotten.';
grant execute on function app_private.erase_texts, app_private.erasure_relations, app_private.erase_private_texts,
  app_private.erasure_certificate, app_private.announce_erasure_certificate, app_private.complete_erasure,
  app_private.erase_expired_contracts to plat_worker;
