-- Idempotency: the answer to a request with an idempotency key is stored for 24 hours, in the transaction of its
-- effect.

comment on table app_private.idempotency_keys is
  'Which requests were made under an idempotency key, and what they answered. Neither key nor body is kept: who sends '
  'the key again opens the answers with it.';
comment on column app_private.idempotency_keys.viewer is
  'Whose key it is: a user, a restricted access token, or a network address.';
comment on column app_private.idempotency_keys.body_hmac is 'HMAC-SHA-256 of the body under the key.';
comment on column app_private.idempotency_keys.answers is
  E'@personal\n\nPlace of a mutation field in the request → the row it answered, encrypted with the key.';

create function app_private.repeat_viewer() returns text
language sql stable as $$
  -- A stored response is not returned to a restricted access token that may not see it; visitors without a token are
  -- identified by their address.
  select case
    when app_public.current_user_id() is null
      then 'address ' || coalesce(app_private.network_of(app_hidden.setting('ip')), '')
    when app_hidden.setting('scopes') is null and app_hidden.setting('organization_id') is null
      then 'user ' || app_public.current_user_id()
    else 'token ' || app_hidden.setting('token_id') end
$$;
comment on function app_private.repeat_viewer() is 'Under whom an idempotency key of this request is kept.';

create function app_hidden.claim_answer(repeat jsonb, out id uuid, out answer jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  key text := repeat ->> 'key';
  body bytea := decode(repeat ->> 'body', 'hex');
  known app_private.idempotency_keys;
  longest constant text := current_setting('lock_timeout');
begin
  -- Waits for a running request with the same key, whose answer is returned. From here on, the row is locked.
  perform set_config('lock_timeout', '0', true);
  insert into app_private.idempotency_keys as k (viewer, key_sha256, body_hmac)
    values (app_private.repeat_viewer(), sha256(convert_to(key, 'UTF8')), body)
    on conflict on constraint idempotency_keys_once do update set
      body_hmac = case when k.inserted_at < now() - interval '24 hours' then excluded.body_hmac else k.body_hmac end,
      answers = case when k.inserted_at < now() - interval '24 hours' then '{}' else k.answers end,
      inserted_at = case when k.inserted_at < now() - interval '24 hours' then now() else k.inserted_at end
    returning k.* into known;
  perform set_config('lock_timeout', longest, true);
  if known.body_hmac <> body then
    perform app_hidden.fail('IDEMPOTENCY_MISMATCH',
      'This idempotency key was used for another request in the last 24 hours; use a new key for each request.');
  end if;
  id := known.id;
  answer := public.pgp_sym_decrypt(decode(known.answers ->> (repeat ->> 'place'), 'base64'), key)::jsonb;
  -- A repeat signs in only whom the password of then still opens the account to.
  if answer is not null and repeat ? 'becomes' and not exists (
    select from app_private.user_passwords p join app_public.users u on u.id = p.user_id
    where u.id = (answer #>> array['r', repeat ->> 'becomes'])::uuid and p.changed_at <= known.inserted_at
      and u.status = 'ACTIVE' and u.deleted_at is null) then
    perform app_hidden.fail('UNAUTHENTICATED', 'The account has changed since this request was first sent; sign in.');
  end if;
  -- For the header of the answer (src/admission/operationWork.ts).
  if answer is not null then
    raise notice using errcode = 'PLAT3', message = 'The field has the answer that was kept.';
  end if;
end $$;
comment on function app_hidden.claim_answer(jsonb) is
  'Claims the idempotency key repeat.key for this transaction; the answer that was kept at repeat.place as {"r": row}, '
  'null if the field is to be executed now.';

create function app_hidden.keep_answer(id uuid, repeat jsonb, answer anyelement) returns anyelement
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_private.idempotency_keys k
    set answers = k.answers || jsonb_build_object(repeat ->> 'place', encode(
      public.pgp_sym_encrypt(jsonb_build_object('r', to_jsonb(answer))::text, repeat ->> 'key', 'cipher-algo=aes256'),
        'base64'))
    where k.id = keep_answer.id;
  return answer;
end $$;
comment on function app_hidden.keep_answer(uuid,jsonb,anyelement) is
  E'@withoutViewer Keeps what claim_answer has claimed for the viewer in the same statement.\n\nKeeps the answer of a '
  'field under the key that claim_answer has claimed, and returns it.';

create function app_private.sweep_idempotency_keys(batch int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  amount int;
begin
  delete from app_private.idempotency_keys k where k.id = any (array(
    select s.id from app_private.idempotency_keys s where s.inserted_at < now() - interval '24 hours'
    order by s.inserted_at limit batch for update skip locked));
  get diagnostics amount = row_count;
  return amount;
end $$;
comment on function app_private.sweep_idempotency_keys(int) is
  'Deletes expired keys, at most a batch; returns their number.';
grant execute on function app_private.sweep_idempotency_keys to plat_worker;
