--! Previous: sha1:ecd554ec9a38472525fa1fc66556b79e0cac19a4
--! Hash: sha1:a9f0e54bdb025c5af63a0a2ddc7e613a7469d52e
--! Message: users

-- People. What colleagues see of each other is in users; e-mail and user name stand apart with a policy of their own;
-- passwords are out of reach for every role of the API.

select app_private.create_enum('user_status', 'Whether a user can sign in.', array[
  ['INVITED', 'Has an invitation, but no account yet.'], ['ACTIVE', 'Can sign in.'],
  ['SUSPENDED', 'Cannot sign in for now.'], ['DEACTIVATED', 'Has left.']]);

create table app_public.users (
  id uuid primary key default uuidv7(),
  slug app_public.slug not null,
  first_name app_public.short_text,
  last_name app_public.short_text,
  title app_public.short_text,
  phone app_public.phone_number constraint users_phone_e164 check (phone ~ '^\+[1-9][0-9]{6,14}$'),
  time_zone app_public.time_zone not null default 'UTC',
  language app_public.language_code not null default 'en',
  status app_public.user_status not null default 'ACTIVE',
  email_verified_at timestamptz,
  last_login_at timestamptz,
  inserted_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  version int not null default 1,
  deleted_at timestamptz
);
comment on constraint users_phone_e164 on app_public.users is 'This is no phone number; give one with its country code, such as +1 416 555 0123.';
create unique index users_slug on app_public.users (slug);

create table app_hidden.user_identities (
  user_id uuid primary key references app_public.users on delete cascade,
  email app_public.email_address not null constraint user_identities_email_lower check (email = lower(email)),
  username app_public.short_text constraint user_identities_username_format check (username ~ '^[A-Za-z0-9][A-Za-z0-9._-]{1,49}$'),
  constraint user_identities_email unique (email)
);
create unique index user_identities_username on app_hidden.user_identities (lower(username));
comment on constraint user_identities_username_format on app_hidden.user_identities is
  'A user name has 2 to 50 letters, digits, dots, hyphens and underscores, and no @.';
comment on constraint user_identities_email on app_hidden.user_identities is 'There is an account with this e-mail address already; sign in or reset its password.';
comment on index app_hidden.user_identities_username is 'This user name is taken; choose another.';

create table app_private.user_passwords (
  user_id uuid primary key references app_public.users on delete cascade,
  password_hash text not null,
  session_epoch int not null default 1,
  changed_at timestamptz not null default now()
);
alter table app_private.user_passwords enable row level security;
comment on table app_private.user_passwords is 'argon2id hashes; a higher session_epoch ends every login token issued before.';

alter table app_public.users enable row level security;
-- Anonymous too: whoever has just made an account is known for the rest of that statement.
create policy self_and_colleagues on app_public.users for select to plat_user, plat_anonymous
  using (deleted_at is null and (id = (select app_public.current_user_id()) or id = any (array(select app_hidden.colleague_ids()))));
create policy self on app_public.users for update to plat_user
  using (id = (select app_public.current_user_id())) with check (id = (select app_public.current_user_id()));
grant select on app_public.users to plat_user, plat_anonymous, plat_worker;
grant update (slug, first_name, last_name, title, phone, time_zone, language) on app_public.users to plat_user;

alter table app_hidden.user_identities enable row level security;
create policy self_and_colleagues on app_hidden.user_identities for select to plat_user, plat_anonymous
  using (user_id = (select app_public.current_user_id()) or user_id = any (array(select app_hidden.colleague_ids())));
create policy self on app_hidden.user_identities for update to plat_user
  using (user_id = (select app_public.current_user_id()));
grant select on app_hidden.user_identities to plat_user, plat_anonymous;
grant update (username) on app_hidden.user_identities to plat_user;

select app_private.make_record('users', 'user', slug_from => 'last_name');

create function app_public.users_email(u app_public.users) returns app_public.email_address
language sql stable as $$ select i.email from app_hidden.user_identities i where i.user_id = u.id $$;
create function app_public.users_username(u app_public.users) returns text
language sql stable as $$ select i.username from app_hidden.user_identities i where i.user_id = u.id $$;
create function app_public.users_full_name(u app_public.users) returns text
language sql stable as $$ select coalesce(nullif(concat_ws(' ', u.first_name, u.last_name), ''), u.slug) $$;
grant execute on function app_public.users_email, app_public.users_username, app_public.users_full_name to plat_user, plat_anonymous;
comment on function app_public.users_email is 'Seen by the user and by those who share an organization with them.';
comment on function app_public.users_username is 'Name for signing in; seen by the user and by those who share an organization with them.';
comment on function app_public.users_full_name is E'@notNull\n\nFirst and last name.';

create function app_public.viewer() returns app_public.users
language sql stable as $$ select u from app_public.users u where u.id = app_public.current_user_id() $$;
grant execute on function app_public.viewer to plat_user, plat_anonymous;
comment on function app_public.viewer is 'The user of the token in use; null without a token.';

comment on table app_hidden.user_identities is 'What a user signs in with: e-mail address and user name.';
comment on table app_public.users is 'A person who signs in.';
comment on column app_public.users.slug is 'Readable name in addresses; accepted as id.';
comment on column app_public.users.first_name is 'Given name.';
comment on column app_public.users.last_name is 'Family name.';
comment on column app_public.users.title is 'Position, such as Sales manager.';
comment on column app_public.users.phone is 'Phone number for work.';
comment on column app_public.users.time_zone is 'Time zone of mails and digests, such as America/Toronto.';
comment on column app_public.users.language is 'Language of mails.';
comment on column app_public.users.status is 'Whether the user can sign in.';
comment on column app_public.users.email_verified_at is 'When the user proved to own the e-mail address.';
comment on column app_public.users.last_login_at is 'The last sign-in.';
