-- Trackers: links, codes and phone numbers that measure advertising. GET /t/<key> counts the visit and redirects.

create function app_private.new_tracker_key() returns text
language plpgsql volatile as $$
declare
  -- 32 letters and digits that are not mistaken for one another: 12 of them are 60 bits.
  letters text := 'abcdefghijkmnpqrstuvwxyz23456789';
  bytes bytea := public.gen_random_bytes(12);
begin
  return (select string_agg(substr(letters, get_byte(bytes, n) % 32 + 1, 1), '') from generate_series(0, 11) n);
end $$;

select app_private.make_project_table('trackers', 'tracker', read_permission => 'marketing.read',
  write_permission => 'marketing.manage');

grant insert (project_id, name, kind, destination_url, phone_number, lead_source_id, campaign, utm, active), update
  (name, destination_url, phone_number, lead_source_id, campaign, utm, active), delete on app_public.trackers to
  plat_user;

comment on table app_public.trackers is 'A link, code or number that attributes leads to an advertisement.';
comment on column app_public.trackers.name is E'@impersonal\n\nInternal name.';
comment on column app_public.trackers.kind is E'@filter\n\nKind of tracker, such as LINK or QR_CODE.';
comment on column app_public.trackers.key is
  E'@impersonal\n\n'
  'Public key: /t/<key> at this service counts the visit and redirects, with the key as the parameter "tracker". '
  'Leads with the key as their source are attributed to it.';
comment on column app_public.trackers.destination_url is
  E'@impersonal\n\nURL that it redirects to; null for the website of the project.';
comment on column app_public.trackers.phone_number is E'@impersonal\n\nPhone number, for the kind PHONE_NUMBER.';
comment on column app_public.trackers.lead_source_id is 'The lead source that it belongs to.';
comment on column app_public.trackers.campaign is E'@impersonal\n\nName of the advertising campaign.';
comment on column app_public.trackers.utm is
  E'@impersonal\n\nParameters for the destination, such as {"utm_source": "newsletter"}.';
comment on column app_public.trackers.active is E'@filter\n\nWhether it redirects and attributes leads.';
comment on constraint trackers_utm_object on app_public.trackers is
  'Must be an object such as {"utm_source": "newsletter"}, with at most 2,000 characters.';
comment on constraint trackers_lead_source_id_fkey on app_public.trackers is
  E'@fieldName leadSource\n@backwardBehavior -*\n\nThe lead source that it belongs to.';
comment on table app_private.tracker_hits is 'How often each tracker was hit.';

create function app_private.tg_trackers__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    new.key := app_private.new_tracker_key();
  end if;
  if new.phone_number is not null and (tg_op = 'INSERT' or new.phone_number is distinct from old.phone_number) then
    new.phone_number := app_hidden.to_e164(new.phone_number,
      (select coalesce((p.address).country, 'US') from app_public.projects p where p.id = new.project_id),
      'phoneNumber');
  end if;
  if new.lead_source_id is not null and (tg_op = 'INSERT' or new.lead_source_id is distinct from old.lead_source_id)
    and not exists (
    select from app_public.lead_sources s where s.id = new.lead_source_id and s.project_id = new.project_id
      and s.deleted_at is null) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead source in this project.', '{"field": "leadSourceId"}');
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.trackers
  for each row execute function app_private.tg_trackers__prepare();

create function app_private.hit_tracker(key text, counts boolean, out kind text, out destination text, out utm jsonb)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  with hit as (
    select t.id, t.kind, coalesce(t.destination_url, p.website_url) as destination, t.utm
    from app_public.trackers t
    join app_public.projects p on p.id = t.project_id and p.deleted_at is null
    where t.key = hit_tracker.key and t.active and t.deleted_at is null
  ), counted as (
    insert into app_private.tracker_hits as h (tracker_id, hit_count, last_hit_at)
    select hit.id, 1, now() from hit where hit_tracker.counts
    on conflict (tracker_id) do update set hit_count = h.hit_count + 1, last_hit_at = excluded.last_hit_at
  )
  select hit.kind, hit.destination, hit.utm from hit
$$;
comment on function app_private.hit_tracker(text, boolean) is
  'Says where the active tracker with the key leads, nulls if there is none, and counts the hit where `counts`.';
grant execute on function app_private.hit_tracker(text, boolean) to plat_authenticator;

create function app_public.trackers_hit_count(t app_public.trackers) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce((select h.hit_count from app_private.tracker_hits h
    where h.tracker_id = t.id and app_hidden.project_can(t.project_id, t.organization_id, 'marketing.read')), 0)
$$;

create function app_public.trackers_last_hit_at(t app_public.trackers) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select h.last_hit_at from app_private.tracker_hits h
  where h.tracker_id = t.id and app_hidden.project_can(t.project_id, t.organization_id, 'marketing.read')
$$;

create function app_public.trackers_lead_count(t app_public.trackers) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*)::int from app_public.leads l
  where l.project_id = t.project_id and l.source = t.key and l.deleted_at is null
    and app_hidden.project_can(t.project_id, t.organization_id, 'marketing.read')
$$;
grant execute on function app_public.trackers_hit_count, app_public.trackers_last_hit_at, app_public.trackers_lead_count
  to plat_user, plat_anonymous;
comment on function app_public.trackers_hit_count is E'@notNull\n\nNumber of times it was used.';
comment on function app_public.trackers_last_hit_at is 'Time of the last visit or contact; null if none.';
comment on function app_public.trackers_lead_count is
  E'@notNull\n\nNumber of leads of the project whose source is its key.';
