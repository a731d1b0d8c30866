-- Reservations as they were at a time.

create function app_public.reservation_as_of(id uuid, at timestamptz) returns app_public.reservation_as_of
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- Only for records that the viewer may see, because the error reveals whether changes since that time are stored.
  select s.* from app_private.undone_changes('app_public.reservations', array(
    select r.id from app_public.reservations r where r.id = reservation_as_of.id
      and r.inserted_at <= reservation_as_of.at and app_private.viewer_sees_subject('reservation', r.id)),
    reservation_as_of.at) c
  join app_public.reservations r on r.id = c.record_id
  cross join lateral jsonb_populate_record(null::app_public.reservation_as_of,
    app_private.shown_as_of(r, c.former, app_hidden.masked_columns('app_public.reservations'))
      || jsonb_build_object('reservation_id', r.id)) s
  -- PERF: so that the index is used.
  where r.id = reservation_as_of.id
$$;
grant execute on function app_public.reservation_as_of to plat_user;
comment on function app_public.reservation_as_of is $$
@arg id Id of the reservation; the viewer must be able to see it now.
@arg at Point in time, not in the future. A change counts from the start of its transaction.

A reservation as it was at a given time, reconstructed from its events; null if it did not exist yet, if the viewer
cannot see it now, or without the permission sale.read. Personal data that were erased since are null. Fails with
BAD_USER_INPUT if changes since that time are no longer kept (see `Organization.retention`).$$;

comment on type app_public.reservation_as_of is
  'A reservation as it was at a given time. Fields that the viewer may not read now are null.';
