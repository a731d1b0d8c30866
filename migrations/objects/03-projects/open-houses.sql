-- Open houses: when a project, or its model home, can be visited. ACTIVE and ENDED are computed from the current time;
-- users only cancel.

select app_private.make_public_table('open_houses', 'open_house', 'marketing.manage', 'openHouses',
  'Open houses, latest first; users outside the team see the public ones.', shown => 'public');

grant insert (project_id, title, description, format, starts_at, ends_at, time_zone, address, video_url, host_id,
  capacity, rsvp_required, public), update (title, description, format, status, starts_at, ends_at, time_zone, address,
  video_url, host_id, capacity, rsvp_required, public), delete on app_public.open_houses to plat_user;

comment on table app_public.open_houses is
  E'@defaultOrder starts_at desc, id desc\n\nA scheduled time at which visitors can view a project.';
comment on column app_public.open_houses.title is 'Display title.';
comment on column app_public.open_houses.description is 'Description for visitors, as free text.';
comment on column app_public.open_houses.status is
  E'@writeOnly\n\nCANCELED cancels it; other statuses follow from the time.';
comment on column app_public.open_houses.format is E'@filter\n\nHow visitors attend.';
comment on column app_public.open_houses.starts_at is E'@filter\n\nStart of the viewing; announced in `timeZone`.';
comment on column app_public.open_houses.ends_at is 'Scheduled end, after `startsAt`.';
comment on column app_public.open_houses.time_zone is
  E'@insertOptional\n\nTime zone for announcements. Default: the time zone of the project.';
comment on column app_public.open_houses.address is 'Address of the open house; null if it is at the project.';
comment on column app_public.open_houses.video_url is 'URL of the video stream.';
comment on column app_public.open_houses.host_id is 'The team member who receives visitors.';
comment on column app_public.open_houses.capacity is 'Maximum number of visitors.';
comment on column app_public.open_houses.rsvp_required is 'Whether visitors must register in advance.';
comment on column app_public.open_houses.public is 'Whether everyone who can see the project can see it.';
comment on constraint open_houses_capacity_range on app_public.open_houses is 'Must be from 1 to 100,000 people.';
comment on constraint open_houses_order on app_public.open_houses is 'An open house must end after it starts.';
comment on constraint open_houses_host_id_fkey on app_public.open_houses is
  E'@fieldName host\n@backwardBehavior -*\n\nThe team member who receives visitors.';
comment on constraint open_houses_kept_status on app_public.open_houses is
  'Only SCHEDULED and CANCELED can be set; other statuses follow from the time.';

insert into app_hidden.transitions (subject, from_state, to_state, by_service) values
  ('open_house', null, 'SCHEDULED', false), ('open_house', 'SCHEDULED', 'CANCELED', false),
  ('open_house', 'ACTIVE', 'CANCELED', false),
  ('open_house', 'SCHEDULED', 'ACTIVE', true), ('open_house', 'ACTIVE', 'ENDED', true);

create function app_public.open_houses_status(o app_public.open_houses) returns app_public.open_house_status
language sql stable as $$
  select case when o.status = 'CANCELED' then o.status when o.ends_at <= now() then 'ENDED' when o.starts_at <= now()
    then 'ACTIVE' else 'SCHEDULED' end
$$;
grant execute on function app_public.open_houses_status to plat_user, plat_anonymous;
comment on function app_public.open_houses_status is
  E'@notNull\n\nWhether it takes place; follows from the time unless cancelled.';

create function app_private.tg_open_houses__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  status_now text;
begin
  if new.time_zone is null then
    new.time_zone := (select p.time_zone from app_public.projects p where p.id = new.project_id);
  end if;
  new.address := app_hidden.with_country(new.address, new.project_id);
  if new.host_id is not null and (tg_op = 'INSERT' or new.host_id is distinct from old.host_id)
    and not app_private.has_part(new.host_id, new.project_id) then
    perform app_hidden.fail('BAD_USER_INPUT', 'The host must be a member of an organization that takes part in the '
      'project.',
      '{"field": "hostId"}');
  end if;
  if tg_op = 'UPDATE' and new.status <> old.status then
    status_now := app_public.open_houses_status(old);
    if new.status = status_now then
      new.status := old.status;
    else
      perform app_private.require_step('open_house', status_now, new.status);
    end if;
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.open_houses
  for each row execute function app_private.tg_open_houses__prepare();
