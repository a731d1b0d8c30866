-- Members see the agents of their organization; members of affiliated organizations see those of the leads that they
-- see.
create policy sellers on app_public.agents for select to plat_user
  using (deleted_at is null and (organization_id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[])
    or organization_id = any ((select app_hidden.viewer_organizations('lead.read'))::uuid[])
    or exists (select from app_public.leads l where l.agent_id = agents.id)));

select app_private.make_record('agents', 'agent', 'lead.write');

create policy sellers_of_buyers on app_public.agents for select to plat_user
  using (deleted_at is null and id = any (array(select app_hidden.viewer_deal_agents())));
create policy sellers_insert on app_public.agents for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[])
    and (select app_hidden.scopes_allow('lead.write')));
create policy sellers_update on app_public.agents for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[])
    and (select app_hidden.scopes_allow('lead.write')));
create policy sellers_delete on app_public.agents for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('org.admin'))::uuid[]));

select app_private.make_searchable('agents', 'BUYER_AGENT', 'r.name',
  'concat_ws('' '', r.brokerage, r.license_number, r.email, r.phone)',
  project => 'null::uuid');

grant select on app_public.agents to plat_user, plat_anonymous;
grant insert (organization_id, name, email, phone, brokerage, license_number), update (name, email, phone, brokerage,
  license_number), delete on app_public.agents to plat_user;

comment on table app_public.agents is 'An agent who represents leads and buyers.';
comment on column app_public.agents.name is E'@personal\n\nFull name.';
comment on column app_public.agents.email is E'@personal\n\nAddress for email, such as ada@example.com.';
comment on column app_public.agents.phone is E'@personal\n\nPhone number in E.164, such as +14165550123.';
comment on column app_public.agents.brokerage is E'@personal\n\nName of the brokerage that the agent works for.';
comment on column app_public.agents.license_number is E'@personal\n\nLicence number of the agent.';
comment on constraint agents_organization_id_fkey on app_public.agents is
  E'@parent\n@fieldName organization\n@foreignFieldName agents\n@backwardPermission '
  'org.member\n@backwardDescription Agents in the organization''s address book; null for non-members.\n\n'
  'The organization whose address book contains the agent; null if the viewer may not see it.';
comment on index app_public.agents_email is 'There is already an agent with this email address.';

create function app_private.tg_agents__prepare() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.email := lower(new.email);
  if new.phone is not null and (tg_op = 'INSERT' or new.phone is distinct from old.phone) then
    new.phone := app_hidden.to_e164(new.phone,
      coalesce((select (o.address).country from app_public.organizations o where o.id = new.organization_id), 'US'));
  end if;
  return new;
end $$;
create trigger _200_prepare before insert or update on app_public.agents for each row
  execute function app_private.tg_agents__prepare();
