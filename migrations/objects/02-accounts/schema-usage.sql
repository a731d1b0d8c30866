-- The schema coordinates that the operations of an organization's members and access tokens use. Processes of the API
-- record them once a day for each document and user; `plat changes --used` compares them with the served schema.

comment on table app_private.schema_usage is
  'Schema coordinates that an organization used in the last 90 days, and on which day last.';

insert into app_private.retention (relation, over) values
  ('app_private.schema_usage', 'last_used_on < current_date - 90');

comment on type app_public.schema_usage is 'A part of the schema that the programs of an organization use.';
comment on column app_public.schema_usage.coordinate is
  E'@notNull\n\nSchema coordinate as the GraphQL specification writes it: `Type.field`, `Type.field(argument:)`, '
  '`InputType.field`, `Enum.VALUE`; an input type alone if a variable has that type.';
comment on column app_public.schema_usage.last_used_on is E'@notNull\n\nDay of the last use, in UTC.';

create function app_private.note_schema_usage(uses jsonb) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  insert into app_private.schema_usage (organization_id, coordinate, last_used_on)
    select distinct m.organization_id, c.coordinate, (now() at time zone 'UTC')::date
    from jsonb_to_recordset(uses) u (user_id uuid, organization_id uuid, coordinates text[])
    join app_public.organization_user_connections m on m.user_id = u.user_id
      and (u.organization_id is null or m.organization_id = u.organization_id)
    cross join lateral unnest(u.coordinates) c (coordinate)
    order by 1, 2
  on conflict (organization_id, coordinate) do update set last_used_on = excluded.last_used_on
    where schema_usage.last_used_on < excluded.last_used_on
$$;
comment on function app_private.note_schema_usage(jsonb) is
  'Notes which schema coordinates users have used: of the organization of their access token, or of all of which they '
  'are members.';
grant execute on function app_private.note_schema_usage to plat_authenticator;

create function app_public.organizations_schema_usage(o app_public.organizations, days int default 30)
returns app_public.schema_usage[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not app_hidden.organization_can(o.id, 'org.admin') then
    return '{}';
  end if;
  return array(select (s.coordinate, s.last_used_on)::app_public.schema_usage from app_private.schema_usage s
    where s.organization_id = o.id and s.last_used_on > (now() at time zone 'UTC')::date - coalesce(days, 30)
    order by s.coordinate);
end $$;
comment on function app_public.organizations_schema_usage is
  E'@arg days Number of days until today to include.\n\n'
  'Schema coordinates that operations of its members and access tokens used in the last `days` days (default: 30), '
  'of 90 that are kept. A minute may pass until a use is listed. Visible to admins; empty for others.';
grant execute on function app_public.organizations_schema_usage to plat_user, plat_anonymous;
