-- The contact form of a project: every visitor of the project can send a message, which creates a lead, or is added to
-- the one with the same email address, also with concurrent messages. The sales team is notified by mail.
--
-- The sender is not authenticated. Changes to an existing lead remain on the message until the owner of the address
-- confirms them (by the link of a mail, or signed in with that confirmed address), or the team accepts them; news are
-- only sent after confirmation. Viewers who may not see the lead get the same answer whether it existed or not.

create policy seers_of_lead on app_public.project_contact_messages for select to plat_user
  using ((select true from app_public.leads l where l.id = lead_id));

select app_private.make_project_record('project_contact_messages', 'contact_message', 'lead.write');

grant select on app_public.project_contact_messages to plat_user, plat_anonymous;

comment on table app_public.project_contact_messages is 'An inquiry of a visitor to the sales office of a project.';
comment on column app_public.project_contact_messages.lead_id is
  E'@behavior -attribute:select -attribute:filterBy -attribute:orderBy\n\nThe lead that the message made or joined.';
comment on column app_public.project_contact_messages.lead_created is
  E'@behavior -attribute:select -attribute:filterBy -attribute:orderBy\n\nWhether the message made the lead; false '
  'where it joined one.';
comment on column app_public.project_contact_messages.agent is E'@personal\n@behavior -*\n\nTheir agent, as given.';
comment on column app_public.project_contact_messages.follow is 'Whether the sender asked for marketing mail.';
comment on column app_public.project_contact_messages.merged_at is
  E'@behavior -attribute:select -attribute:filterBy -attribute:orderBy\n\nWhen what they say was taken over into the '
  'lead: at once where the message made it; else when the owner of the '
  'address confirmed it, or the team accepted it; null until then.';
comment on column app_public.project_contact_messages.confirmed_at is
  E'@behavior -attribute:select -attribute:filterBy -attribute:orderBy\n\nWhen the owner of the address confirmed the '
  'message by the link of a mail.';
comment on column app_public.project_contact_messages.name is E'@personal\n\nFull name as given.';
comment on column app_public.project_contact_messages.email is
  E'@personal\n\nEmail address, as the sender entered it.';
comment on column app_public.project_contact_messages.phone is
  E'@personal\n\nPhone number in E.164, such as +14165550123.';
comment on column app_public.project_contact_messages.company is
  E'@personal\n\nCompany that the person works or buys for.';
comment on column app_public.project_contact_messages.text is E'@personal\n\nText of the inquiry.';
comment on column app_public.project_contact_messages.address is E'@personal\n\nPostal address.';
comment on column app_public.project_contact_messages.source is E'@impersonal\n\nCode of the source.';
comment on column app_public.project_contact_messages.is_agent is 'Whether the sender claims to be an agent.';
comment on column app_public.project_contact_messages.is_represented is
  'Whether the sender claims to be represented by an agent.';
comment on column app_public.project_contact_messages.agent_name is
  E'@personal\n\nName of the agent who represents the sender, as given.';
comment on column app_public.project_contact_messages.metadata is
  E'@personal\n\nArbitrary JSON of the website that sends the form; not interpreted.';
comment on column app_public.project_contact_messages.user_id is E'@behavior -*\n\nThe signed-in visitor.';
comment on constraint project_contact_messages_metadata_size on app_public.project_contact_messages is
  'metadata can have at most 20,000 characters.';
comment on constraint project_contact_messages_project_id_fkey on app_public.project_contact_messages is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint project_contact_messages_lead_id_fkey on app_public.project_contact_messages is
  E'@fieldName lead\n@foreignFieldName messages\n@backwardDescription Messages that the lead sent with the contact '
  'form, latest first.\n\n'
  'The lead that the message belongs to; null if the viewer may not see it.';
comment on constraint project_contact_messages_user_id_fkey on app_public.project_contact_messages is
  E'@behavior -*\n\nThe signed-in visitor.';

create function app_public.project_contact_messages_lead_id(m app_public.project_contact_messages) returns uuid
language sql stable as $$
  select coalesce((select l.id from app_public.leads l where l.id = m.lead_id), m.id)
$$;
comment on function app_public.project_contact_messages_lead_id is
  E'@notNull\n\n'
  'Id of the lead that the message created or was added to; the id of the message for viewers who may not see the '
  'lead.';

create function app_public.project_contact_messages_lead_created(m app_public.project_contact_messages) returns boolean
language sql stable as $$
  select m.lead_created or not exists (select from app_public.leads l where l.id = m.lead_id)
$$;
comment on function app_public.project_contact_messages_lead_created is
  E'@notNull\n\n'
  'Whether the message created the lead; false if it was added to an existing one. Always true for viewers who may '
  'not see the lead.';
create function app_public.project_contact_messages_merged_at(m app_public.project_contact_messages) returns timestamptz
language sql stable as $$
  select m.merged_at from app_public.leads l where l.id = m.lead_id
$$;
comment on function app_public.project_contact_messages_merged_at is
  'When the details were copied to the lead: immediately if the message created it, otherwise when the owner of '
  'the address confirmed them or the team accepted them. Null until then, and for viewers who may not see the lead.';

create function app_public.project_contact_messages_confirmed_at(m app_public.project_contact_messages)
returns timestamptz
language sql stable as $$
  select m.confirmed_at from app_public.leads l where l.id = m.lead_id
$$;
comment on function app_public.project_contact_messages_confirmed_at is
  'When the owner of the email address confirmed the message through the link in a mail; null if not confirmed, '
  'and for viewers who may not see the lead.';
grant execute on function app_public.project_contact_messages_merged_at,
  app_public.project_contact_messages_confirmed_at, app_public.project_contact_messages_lead_id,
  app_public.project_contact_messages_lead_created to plat_user, plat_anonymous;

create function app_private.viewer_owns_address(email text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from app_hidden.user_identities i join app_public.users u on u.id = i.user_id
    where i.user_id = app_public.current_user_id() and i.email = lower($1) and u.email_verified_at is not null
      and app_hidden.setting('scopes') is null)
$$;
comment on function app_private.viewer_owns_address(text) is
  'Whether it is the confirmed address of the viewer, who acts with all of their account.';

create function app_private.merge_message(message app_public.project_contact_messages) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lead app_public.leads;
begin
  select * into lead from app_public.leads l where l.id = message.lead_id and l.deleted_at is null for update;
  if lead.id is null then
    return;
  end if;
  perform app_hidden.update_record(null::app_public.leads, jsonb_build_object('id', lead.id)
    || (select coalesce(jsonb_object_agg(i.key, i.value), '{}') from jsonb_each(to_jsonb(message)) i
      where i.key in ('phone', 'company', 'address', 'is_represented') and i.value <> 'null'
        and to_jsonb(lead) ->> i.key is null));
  if message.agent is distinct from null and lead.agent_id is null then
    perform app_private.set_lead_agent(lead, message.agent);
  end if;
  update app_public.project_contact_messages m set merged_at = now() where m.id = message.id;
end $$;
comment on function app_private.merge_message(app_public.project_contact_messages) is
  'Fills what the lead lacks with what the message says. Callers have asked who may.';

create function app_private.check_agent(organization_id uuid, agent app_public.agent_input, country text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if agent.id is not null then
    perform app_private.agent_for(organization_id, agent, country);
  elsif nullif(btrim(agent.name), '') is null or length(agent.name) > 300 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Specify the name of the agent, at most 300 characters.',
      '{"field": "agent.name"}');
  elsif length(agent.brokerage) > 300 or length(agent.license_number) > 300 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Use at most 300 characters.', jsonb_build_object('field',
      case when length(agent.brokerage) > 300 then 'agent.brokerage' else 'agent.licenseNumber' end));
  end if;
  perform app_hidden.to_e164(agent.phone, country, 'agent.phone');
end $$;
comment on function app_private.check_agent(uuid, app_public.agent_input, text) is
  'Refuses an invalid agent in the same way whether or not records exist, so that a refusal reveals neither leads '
  'nor agents.';

create function app_private.take_project_message(project_id uuid, input jsonb,
  agent app_public.agent_input) returns app_public.project_contact_messages
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project app_public.projects;
  sender text := lower(btrim(input ->> 'email'));
  follows boolean := coalesce((input ->> 'follow')::boolean, false);
  -- Their own word, or that of the team, which may change the lead anyway.
  is_sender boolean := app_private.viewer_owns_address(sender);
  is_team boolean;
  lead app_public.leads;
  fields jsonb;
  source_row app_public.lead_sources;
  was_created boolean;
  message app_public.project_contact_messages;
begin
  if not app_private.viewer_sees('app_public.projects', project_id) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  end if;
  select * into project from app_public.projects p where p.id = take_project_message.project_id;
  is_team := app_hidden.project_can(project.id, project.organization_id, 'lead.write');
  if input ->> 'source_id' is not null then
    select * into source_row from app_public.lead_sources s
      where s.id = (input ->> 'source_id')::uuid and s.project_id = project.id and s.deleted_at is null;
    if source_row.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such lead source in this project.', '{"field": "sourceId"}');
    end if;
  else
    select * into source_row from app_public.lead_sources s
      where s.id = app_private.lead_source_named(project.id, coalesce(input ->> 'source', 'WEB_DIRECT'));
  end if;
  if agent is distinct from null then
    perform app_private.check_agent(project.organization_id, agent, coalesce((project.address).country, 'US'));
  end if;

  perform app_private.rate_limit('contact_project.network', app_private.network_of(app_hidden.setting('ip')));
  perform app_private.rate_limit('contact_project.sender', project.id || ' ' || sender);

  fields := input - 'source_id' - 'text' - 'metadata' - 'follow' || jsonb_build_object('project_id', project.id,
    'origin', 'CONTACT_PROJECT', 'source_id', source_row.id, 'source', coalesce(source_row.code, input ->> 'source'),
    'is_agent', coalesce((input ->> 'is_agent')::boolean, false), 'last_interaction_at', now());
  -- Two forms at the same moment: the second insert waits for the first, finds its lead and merges with it.
  loop
    select * into lead from app_public.leads l
      where l.project_id = project.id and l.email = sender and l.deleted_at is null
      order by l.status in ('LOST', 'UNQUALIFIED', 'CONVERTED'), l.id desc limit 1 for update;
    was_created := lead.id is null;
    exit when not was_created;
    begin
      lead := app_hidden.create_record(null::app_public.leads, fields || jsonb_build_object('email', sender));
      exit;
    exception when unique_violation then
      null; -- made meanwhile: merge with it
    end;
  end loop;
  if not was_created then
    begin
      -- For visitors the same work is done and rolled back, so that neither a refusal nor the time reveals whether
      -- the lead existed.
      if not is_team then
        perform app_hidden.create_record(null::app_public.leads,
          fields || jsonb_build_object('email', gen_random_uuid() || '@invalid.example'));
        raise exception using errcode = 'PLAT1';
      end if;
    exception when sqlstate 'PLAT1' then
      null;
    end;
    lead := app_hidden.update_record(null::app_public.leads,
      jsonb_build_object('id', lead.id, 'last_interaction_at', now()));
  elsif agent is distinct from null then
    perform app_private.set_lead_agent(lead, agent);
  end if;
  message := app_hidden.create_record(null::app_public.project_contact_messages, input - 'source'
    || jsonb_build_object('project_id', project.id, 'lead_id', lead.id, 'lead_created', was_created, 'email', sender,
      'phone', app_hidden.to_e164(input ->> 'phone', coalesce((project.address).country, 'US')),
      'source', coalesce(source_row.code, input ->> 'source'), 'agent_name', agent.name, 'agent', to_jsonb(agent),
      'merged_at', case when was_created then now() end));
  if is_sender or (is_team and not was_created) then
    perform app_private.merge_message(message);
  end if;
  if follows and is_sender then
    perform app_private.follow_news(lead.id);
  elsif follows then
    perform app_private.request_consent(project.organization_id, sender, 'NEWS', message.id);
  end if;
  select * into message from app_public.project_contact_messages m where m.id = message.id;
  return message;
end $$;
grant execute on function app_private.take_project_message(uuid, jsonb, app_public.agent_input) to plat_user,
  plat_anonymous;
comment on function app_private.take_project_message(uuid, jsonb, app_public.agent_input) is
  'Keeps a message to a project that the caller was seen to see; limited by network and sender.';

create function app_public.accept_contact_message(id uuid) returns app_public.project_contact_messages
language plpgsql volatile as $$
declare
  message app_public.project_contact_messages;
begin
  perform app_hidden.require_viewer();
  select m.* into message from app_public.project_contact_messages m where m.id = accept_contact_message.id;
  if message.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such message.', '{"field": "id"}');
  end if;
  return app_private.accept_message(message.id);
end $$;
comment on function app_public.accept_contact_message is
  E'@arg id Id of a contact message with details that its lead lacks.\n\n'
  'Copies details from a contact message into the lead where the lead has none: phone number, company, address and '
  'agent. Consent to marketing email is not copied. Requires the permission lead.write.';

create function app_private.accept_message(id uuid) returns app_public.project_contact_messages
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  message app_public.project_contact_messages;
  lead app_public.leads;
begin
  select m.* into message from app_public.project_contact_messages m where m.id = accept_message.id for no key update;
  select l.* into lead from app_public.leads l where l.id = message.lead_id and l.deleted_at is null;
  if lead.id is null or not app_hidden.deal_can(lead.organization_id, lead.project_id, lead.assignee_id, 'lead.write')
    then
    perform app_hidden.fail('FORBIDDEN', 'This requires the permission lead.write.', '{"permission": "lead.write"}');
  end if;
  if message.merged_at is null then
    perform app_private.merge_message(message);
    select m.* into message from app_public.project_contact_messages m where m.id = accept_message.id;
  end if;
  return message;
end $$;
comment on function app_private.accept_message(uuid) is
  'merge_message for viewers who may update the lead; idempotent.';
grant execute on function app_public.accept_contact_message to plat_user, plat_anonymous;
grant execute on function app_private.accept_message to plat_user;

create function app_public.contact_project(
  project_id uuid,
  name text,
  email app_public.email_address,
  phone app_public.phone_number default null,
  text text default null,
  address app_public.address default null,
  source_id uuid default null,
  source text default null,
  company text default null,
  agent app_public.agent_input default null,
  follow boolean default null,
  is_agent boolean default null,
  is_represented boolean default null,
  metadata jsonb default null
) returns app_public.project_contact_messages
language plpgsql volatile as $$
declare
  project app_public.projects;
begin
  -- As the viewer: anybody may write to a project that they see.
  select p.* into project from app_hidden.masked_projects p where p.id = contact_project.project_id;
  if project.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  end if;
  return app_private.take_project_message(project.id,
    jsonb_build_object('name', name, 'email', email, 'phone', phone, 'text', text, 'address', to_jsonb(address),
      'source_id', source_id,
      'source', source, 'company', company, 'follow', follow, 'is_agent', is_agent, 'is_represented', is_represented,
        'metadata', metadata),
    agent);
end $$;
grant execute on function app_public.contact_project to plat_user, plat_anonymous;
comment on function app_public.contact_project is
  E'@arg projectId Id of the project whose sales office receives the message.\n@arg name Full name.\n@arg '
  'email Email address for the reply. If an open lead has it, the message is added to that lead.\n@arg phone Phone '
  'number for the reply.\n@arg text The inquiry, at most 20,000 characters.\n@arg address Postal address of the '
  'sender.\n@arg sourceId Id of the lead source of the project.\n@arg source Code or name of the source, such as '
  'WEB_DIRECT. An unknown source is accepted and stored in `source` of the lead and the message.\n@arg company '
  'Employer or firm of the sender.\n@arg agent The agent who represents the sender.\n@arg follow Whether the '
  'sender asks for marketing mail; it starts after they confirm the link in a mail.\n@arg isAgent Whether the '
  'sender is an agent.\n@arg isRepresented Whether an agent represents the sender.\n@arg metadata Arbitrary JSON '
  'of the website that sends the form; not interpreted.\n\n'
  'Sends an inquiry to the sales office of a project: creates a lead, or adds a message to the lead with the same '
  'email address, and notifies the sales team. Details about a known lead stay on the message until the owner of '
  'the address confirms them or the team accepts them. Marketing mail is sent only after the owner of the address '
  'has confirmed the consent.';

create function app_public.public_project(id app_public.id_or_slug) returns app_public.projects
language sql stable as $$
  select p.* from app_hidden.masked_projects p
  where p.id = app_hidden.record_id('projects', public_project.id) and p.visibility in ('PUBLIC', 'UNLISTED')
    and p.archived_at is null
$$;
grant execute on function app_public.public_project to plat_user, plat_anonymous;
comment on function app_public.public_project is $$
@deprecated Use `project`. Removed after 2028-01-01.
@arg id Id, or current or former slug.

A public project by id or slug; null if there is none.$$;
