-- Verification of an email address: a code is sent to the address and entered by the signed-in user. Both are required:
-- the owner of an address who did not create the account cannot be tricked into confirming it, and somebody who used a
-- foreign address never sees the code. Until then, the account cannot send anything to third parties.

comment on table app_private.email_verifications is
  'The one open code of a user that confirms the address of the account; only its SHA-256 is kept.';

create function app_private.request_verification(user_id uuid) returns void
language sql volatile as $$
  select app_private.add_job('user__verification_requested', jsonb_build_object('user_id', user_id),
    job_key => 'user__verification_requested ' || user_id)
$$;

create function app_public.request_email_verification() returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer uuid := app_hidden.require_whole_account();
begin
  if exists (select from app_public.users u where u.id = viewer and u.email_verified_at is not null) then
    perform app_hidden.fail('CONFLICT', 'The email address of your account is already confirmed.');
  end if;
  perform app_private.rate_limit('verification.account', viewer::text);
  perform app_private.request_verification(viewer);
  return true;
end $$;
comment on function app_public.request_email_verification() is
  'Sends a code for `verifyEmail` to the email address of the viewer''s account. The code is valid for a day and '
  'replaces the previous one; `createAccount` sends the first. Returns true.';

create function app_public.verify_email(token text) returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer uuid := app_hidden.require_whole_account();
  result app_public.users;
begin
  delete from app_private.email_verifications v where v.user_id = viewer and v.expires_at > now()
    and v.code_sha256 = sha256(convert_to(btrim(token), 'UTF8'));
  if not found then
    perform app_hidden.fail('BAD_USER_INPUT',
      'This code is unknown, used, older than a day or for another account; request a new one.', '{"field": "token"}');
  end if;
  update app_public.users u set email_verified_at = now() where u.id = viewer and u.email_verified_at is null;
  select u.* into result from app_public.users u where u.id = viewer;
  return app_hidden.masked(result);
end $$;
comment on function app_public.verify_email is $$
@arg token Code from the mail that `createAccount` or `requestEmailVerification` sent.

Confirms that the email address of the account is the
  viewer's. Until then, nothing is sent to other people on behalf of the account.$$;
grant execute on function app_public.request_email_verification, app_public.verify_email to plat_user, plat_anonymous;

create function app_private.issue_verification(user_id uuid)
returns table (email text, code text, expires_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  select i.email, app_private.random_text(24), now() + interval '1 day' into email, code, expires_at
    from app_hidden.user_identities i join app_public.users u on u.id = i.user_id
    where u.id = issue_verification.user_id and u.status = 'ACTIVE' and u.deleted_at is null
      and u.email_verified_at is null;
  if not found then
    select d.email into email from app_hidden.duplicate_accounts d where d.user_id = issue_verification.user_id;
  end if;
  if email is null or not app_private.is_within_limit('verification.address', email) then
    return;
  end if;
  if code is not null then
    insert into app_private.email_verifications (user_id, code_sha256, expires_at)
      values (issue_verification.user_id, sha256(convert_to(issue_verification.code, 'UTF8')),
        issue_verification.expires_at)
      on conflict (user_id) do update set code_sha256 = excluded.code_sha256, expires_at = excluded.expires_at;
  end if;
  return next;
end $$;
comment on function app_private.issue_verification(uuid) is
  'Makes the code that confirms the address of an account (143 bits, a day, once). Without a code: somebody wanted an '
  'account with an address that has one. No row where there is nothing to send.';
grant execute on function app_private.issue_verification(uuid) to plat_worker;
