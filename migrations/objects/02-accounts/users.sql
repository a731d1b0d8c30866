-- People. What colleagues see of each other is in users; email and user name are in a separate table with its own
-- policy; no role of the API can read passwords.

-- Also for visitors: after creating an account, the viewer is that user for the rest of the statement. The people of
-- a deal see each other as well: the team sees the account of its buyer, the buyer sees the team.
create policy self_and_colleagues on app_public.users for select to plat_user
  using (deleted_at is null and (id = (select app_public.current_user_id())
    or id = any (array(select app_hidden.colleague_ids()))
    or id = any (array(select app_hidden.viewer_counterparts()))
    or exists (select from app_public.buyers b where b.user_id = users.id)
    -- PERF: last, since this reads all deals of a viewer who sees own ones only.
    or id = any (array(select app_hidden.partner_ids()))));
create policy self on app_public.users for update to plat_user
  using (id = (select app_public.current_user_id()) and (select app_hidden.has_whole_account()));

select app_private.make_record('users', 'user', slug_from => 'last_name');

grant select on app_public.users to plat_user, plat_anonymous;
grant update (slug, first_name, last_name, title, phone, time_zone, language) on app_public.users to plat_user;
grant update (avatar_url) on app_public.users to plat_user;

comment on table app_public.users is 'An account of a person who uses the service.';
comment on column app_public.users.slug is E'@personal\n\nReadable name for URLs, accepted wherever an id is.';
comment on column app_public.users.first_name is E'@personal\n\nGiven name, such as Ada.';
comment on column app_public.users.last_name is E'@personal\n\nFamily name.';
comment on column app_public.users.title is E'@personal\n\nJob title, such as Sales manager.';
comment on column app_public.users.phone is E'@personal\n\nWork phone number.';
comment on column app_public.users.time_zone is 'IANA time zone for mails and digests, such as America/Toronto.';
comment on column app_public.users.language is
  'Language of messages and mails. Default: that of the browser with which the account was created.';
comment on column app_public.users.status is 'Whether the user can sign in.';
comment on column app_public.users.password_changed_at is E'@behavior -*\n\nWhen the password was last changed.';
comment on column app_public.users.email_verified_at is E'@masked\n\nWhen the user proved to own the email address.';
comment on column app_public.users.last_login_at is E'@masked\n\nThe last sign-in.';
comment on column app_public.users.avatar_url is
  E'@personal\n\nURL of a picture of the user, hosted anywhere.';
comment on constraint users_phone_e164 on app_public.users is
  'Not a valid phone number; use one with its country code, such as +1 416 555 0123.';
comment on index app_public.users_slug is 'This slug is taken; choose another.';

create policy self_and_colleagues on app_hidden.user_identities for select to plat_user, plat_anonymous
  using (user_id = (select app_public.current_user_id()) or user_id = any (array(select app_hidden.colleague_ids())));
create policy self on app_hidden.user_identities for update to plat_user
  using (user_id = (select app_public.current_user_id()) and (select app_hidden.has_whole_account()));

grant select on app_hidden.user_identities to plat_user, plat_anonymous;
grant update (username) on app_hidden.user_identities to plat_user;

comment on table app_hidden.user_identities is 'What a user signs in with: email address and user name.';
comment on column app_hidden.user_identities.email is E'@personal\n\nThe address that the account signs in with.';
comment on column app_hidden.user_identities.username is E'@personal\n\nThe name that the account signs in with.';
comment on constraint user_identities_username_format on app_hidden.user_identities is
  'A user name has 2 to 50 letters, digits, dots, hyphens and underscores, and no @.';
comment on column app_hidden.duplicate_accounts.email is E'@personal\n@personal\n\nThe address that was given.';
comment on column app_hidden.duplicate_accounts.username is E'@personal\n@personal\n\nThe name that was given.';
comment on constraint user_identities_username_format on app_hidden.duplicate_accounts is
  'A user name has 2 to 50 letters, digits, dots, hyphens and underscores, and no @.';
comment on index app_hidden.user_identities_username is 'This user name is taken; choose another.';
comment on column app_private.user_passwords.password_hash is
  E'@impersonal\n@impersonal\n\nIt reveals nothing about the password.';
comment on table app_private.user_passwords is
  'argon2id hashes; a higher session_epoch ends every login token issued before.';

create function app_public.users_email(u app_public.users) returns app_public.email_address
language sql stable as $$
  select coalesce((select i.email from app_hidden.user_identities i where i.user_id = u.id),
    (select d.email from app_hidden.duplicate_accounts d where d.user_id = u.id))
$$;

create function app_public.users_username(u app_public.users) returns text
language sql stable as $$
  select coalesce((select i.username from app_hidden.user_identities i where i.user_id = u.id),
    (select d.username from app_hidden.duplicate_accounts d where d.user_id = u.id))
$$;

create function app_public.users_full_name(u app_public.users) returns text
language sql stable as $$ select coalesce(nullif(concat_ws(' ', u.first_name, u.last_name), ''), u.slug) $$;
grant execute on function app_public.users_email, app_public.users_username, app_public.users_full_name to plat_user,
  plat_anonymous;
comment on function app_public.users_email is
  'Email address; visible to the user and to members of the same organizations.';
comment on function app_public.users_username is
  'User name for signing in; visible to the user and to members of the same organizations.';
comment on function app_public.users_full_name is E'@notNull\n\nFirst and last name.';

create function app_private.language_of(user_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select u.language from app_public.users u where u.id = $1
$$;
grant execute on function app_private.language_of(uuid) to plat_authenticator;
comment on function app_private.language_of(uuid) is
  E'@step The token is verified; its user is the one who asks.\n\nThe language that messages to a user are in.';

create function app_private.mail_language(email text, organization_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(
    (select u.language from app_hidden.user_identities i join app_public.users u on u.id = i.user_id
      where i.email = lower($1)),
    (select b.preferred_language from app_public.buyers b
      where b.organization_id = $2 and b.email = lower($1) and b.preferred_language is not null and b.deleted_at is null
      order by b.id desc limit 1),
    (select l.preferred_language from app_public.leads l
      where l.organization_id = $2 and l.email = lower($1) and l.preferred_language is not null and l.deleted_at is null
      order by l.id desc limit 1),
    (select o.language from app_public.organizations o where o.id = $2))
$$;
grant execute on function app_private.mail_language(text, uuid) to plat_worker;
comment on function app_private.mail_language(text, uuid) is
  'The language of a mail to an address, for an organization where there is one: that of its user, of the purchase or '
  'lead with this address, or of the organization; null where nothing is known.';

create function app_public.viewer() returns setof app_public.users
language sql stable rows 1 as $$
  select u.* from app_hidden.masked_users u where u.id = (select app_public.current_user_id()) limit 1
$$;
grant execute on function app_public.viewer to plat_user, plat_anonymous;
comment on function app_public.viewer is 'The user whose token authenticates the request; null without a token.';

create function app_private.tg_users__prepare() returns trigger
language plpgsql volatile as $$
begin
  new.phone := app_hidden.to_e164(new.phone, null);
  return new;
end $$;
create trigger _200_prepare before insert or update of phone on app_public.users
  for each row execute function app_private.tg_users__prepare();

create trigger _500_touch_user after update on app_hidden.user_identities
  for each row when (old is distinct from new) execute function app_private.tg_user_identities__touch_user();
create trigger _950_changes after insert or update or delete on app_hidden.user_identities
  for each row execute function app_private.tg__count_change('user_id');

create function app_public.users_permissions(u app_public.users,
  project_id app_public.id_or_slug default null) returns text[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  project uuid := app_hidden.record_id('projects', users_permissions.project_id, 'projectId');
begin
  -- Permissions of other people are not revealed.
  if u.id is distinct from app_public.current_user_id() then
    return '{}';
  end if;
  return array(
    select distinct r.permission from app_private.role_permissions r
    where case when project is null then app_hidden.viewer_organizations(r.permission) <> '{}'
      else exists (select from app_public.projects p where p.id = project and p.deleted_at is null
        and app_hidden.project_can(p.id, p.organization_id, r.permission)) end
    order by r.permission);
end $$;
grant execute on function app_public.users_permissions to plat_user, plat_anonymous;
comment on function app_public.users_permissions is $$
@notNull
@arg projectId Only permissions in this project. Default: permissions in at least one organization.

Permissions of the viewer; empty for other users.$$;

create function app_public.users_reservations(u app_public.users) returns setof app_public.reservations
language sql stable rows 5 as $$
  select r.* from app_hidden.masked_reservations r
  where r.id = any (array(select o.id from app_public.reservations o where o.buyer_id = u.id
      union select v.id from app_hidden.viewer_purchase_reservations() v (id)
        where u.id = (select app_public.current_user_id())))
  order by r.inserted_at desc, r.id desc
$$;
comment on function app_public.users_reservations is
  E'@ordered\n\n'
  'Reservations that the user made as a buyer and, for the user, those that led to their purchases, latest first.';

create function app_public.users_email_verified_at(u app_public.users) returns timestamptz
language sql stable as $$ select case when u.email_verified_at is not null and app_hidden.is_colleague(u.id)
  then u.email_verified_at end $$;

create function app_public.users_last_login_at(u app_public.users) returns timestamptz
language sql stable as $$ select case when u.last_login_at is not null and app_hidden.is_colleague(u.id)
  then u.last_login_at end $$;
grant execute on function app_public.users_email_verified_at, app_public.users_last_login_at to plat_user,
  plat_anonymous;
comment on function app_public.users_email_verified_at is
  'When the user verified the email address. Visible to the user and to members of the same organizations.';
comment on function app_public.users_last_login_at is
  'Last sign-in. Visible to the user and to members of the same organizations.';

create function app_public.users_cards(u app_public.users) returns setof app_public.processor_cards
language sql stable rows 5 as $$
  select c.* from app_public.processor_cards c where c.user_id = u.id and c.removed_at is null
    order by c.is_default desc, c.id desc
$$;
comment on function app_public.users_cards is
  E'@ordered\n\nPayment cards, the default card first; empty except for the user.';

create function app_public.users_integrations(u app_public.users) returns setof app_public.user_integrations
language sql stable rows 5 as $$
  select i.* from app_public.user_integrations i where i.user_id = u.id and i.deleted_at is null order by i.id desc
$$;
comment on function app_public.users_integrations is
  E'@ordered\n\nConnected applications, latest first; empty except for the user.';
