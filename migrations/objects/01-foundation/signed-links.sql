-- Links in mails that work without signing in. Their keys are rows, separate from those of login tokens, and are kept
-- for as long as old mails may be opened: unsubscribing always works, however often other keys are rotated. To sign
-- with a new key: insert into app_private.link_keys default values.

comment on table app_private.link_keys is
  'The keys that links in mails are signed with: the newest that signs does, all of them open. Rows are never deleted: '
  'the links that they signed would die.';
comment on column app_private.link_keys.signs is
  'False for keys of former versions, which were derived from those of login tokens.';

create function app_private.link_key() returns bytea
language plpgsql volatile as $$
declare
  result bytea;
begin
  select k.key into result from app_private.link_keys k where k.signs order by k.id desc limit 1;
  if result is null then
    lock table app_private.link_keys in share row exclusive mode;
    select k.key into result from app_private.link_keys k where k.signs order by k.id desc limit 1;
    if result is null then
      insert into app_private.link_keys default values returning key into result;
    end if;
  end if;
  return result;
end $$;
comment on function app_private.link_key() is 'The key that signs; made if there is none yet.';

create function app_private.link_signature(text text, key bytea) returns text
language sql immutable strict as $$
  select translate(rtrim(encode(public.hmac(convert_to(text, 'UTF8'), key, 'sha256'), 'base64'), '='), '+/', '-_')
$$;

create function app_private.sign_link(kind text, reader_id uuid) returns text
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select t.text || '.' || app_private.link_signature(t.text, app_private.link_key())
  from (select kind || '.' || reader_id as text) t
$$;
comment on function app_private.sign_link(text, uuid) is
  'The last part of the address of a link: kind (marketing, or a kind of notifications), who gets such mails (a lead '
  'or purchase, a membership), signature.';
grant execute on function app_private.sign_link(text, uuid) to plat_worker;

create function app_private.open_link(token text, out kind text, out reader_id uuid)
language sql stable strict security definer set search_path = pg_catalog, pg_temp as $$
  select m[2], m[3]::uuid
  from regexp_matches(token,
    '^(([a-z_]{1,40})\.([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}))\.([A-Za-z0-9_-]{43})$')
    as m
  where exists (select from app_private.link_keys k
    -- Compares hashes, so that the duration does not reveal how much of two signatures agrees.
    where sha256(convert_to(app_private.link_signature(m[1], k.key), 'UTF8')) = sha256(convert_to(m[4], 'UTF8')))
$$;
comment on function app_private.open_link(text) is
  'What a link is good for; nulls for one that is forged or incomplete.';
grant execute on function app_private.open_link(text) to plat_authenticator;

create function app_private.keep_link_key(key bytea) returns void
language sql volatile as $$
  insert into app_private.link_keys (key, signs) values (keep_link_key.key, false)
    on conflict on constraint link_keys_key_key do nothing
$$;
comment on function app_private.keep_link_key(bytea) is
  'Keeps a key that a former version derived from one of login tokens, so that its links outlive that one.';
