-- The contact form of a project: anybody who sees the project may write; the message makes a lead, or joins the one
-- with the same e-mail address, also when two forms arrive at the same moment. The sales team is told by mail.

create policy seers_of_lead on app_public.project_contact_messages for select to plat_user
  using (exists (select from app_public.leads l where l.id = lead_id));

select app_private.make_project_record('project_contact_messages', 'contact_message', 'lead.write');

grant select on app_public.project_contact_messages to plat_user, plat_anonymous, plat_worker;

comment on table app_public.project_contact_messages is 'What a visitor wrote to the sales office of a project.';
comment on column app_public.project_contact_messages.lead_id is 'The lead that the message made or joined.';
comment on column app_public.project_contact_messages.lead_created is
  'Whether the message made the lead; false where it joined one.';
comment on column app_public.project_contact_messages.name is 'Full name as given.';
comment on column app_public.project_contact_messages.email is 'E-mail address as given.';
comment on column app_public.project_contact_messages.phone is 'Phone number.';
comment on column app_public.project_contact_messages.company is 'Company.';
comment on column app_public.project_contact_messages.text is 'What they wrote.';
comment on column app_public.project_contact_messages.address is 'Postal address.';
comment on column app_public.project_contact_messages.source is 'Code of the source.';
comment on column app_public.project_contact_messages.is_agent is 'Whether they say to be an agent.';
comment on column app_public.project_contact_messages.is_represented is
  'Whether they say to be represented by an agent.';
comment on column app_public.project_contact_messages.agent_name is 'Name of their agent.';
comment on column app_public.project_contact_messages.metadata is 'Free data of the website.';
comment on column app_public.project_contact_messages.user_id is E'@behavior -*\n\nThe signed-in visitor.';
comment on constraint project_contact_messages_metadata_size on app_public.project_contact_messages is
  'metadata takes 20,000 characters at most.';
comment on constraint project_contact_messages_project_id_fkey on app_public.project_contact_messages is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project.';
comment on constraint project_contact_messages_lead_id_fkey on app_public.project_contact_messages is
  E'@fieldName lead\n@foreignFieldName messages\n@backwardDescription What the lead wrote over the contact form, '
  'latest first.\n\nThe lead; null for those who may not see it.';
comment on constraint project_contact_messages_user_id_fkey on app_public.project_contact_messages is
  E'@behavior -*\n\nThe signed-in visitor.';

create function app_private.take_project_message(project_id uuid, input jsonb,
  agent app_public.agent_input) returns app_public.project_contact_messages
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  project app_public.projects;
  sender text := lower(btrim(input ->> 'email'));
  lead app_public.leads;
  source_row app_public.lead_sources;
  was_created boolean;
begin
  if not app_private.viewer_sees('app_public.projects', project_id) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such project.', '{"field": "projectId"}');
  end if;
  select * into project from app_public.projects p where p.id = take_project_message.project_id;
  if input ->> 'source_id' is not null then
    select * into source_row from app_public.lead_sources s
      where s.id = (input ->> 'source_id')::uuid and s.project_id = project.id and s.deleted_at is null;
    if source_row.id is null then
      perform app_hidden.fail('NOT_FOUND', 'There is no such lead source in this project.', '{"field": "sourceId"}');
    end if;
  else
    select * into source_row from app_public.lead_sources s
      where s.project_id = project.id and s.code = upper(coalesce(input ->> 'source', 'WEB_DIRECT'))
        and s.deleted_at is null;
  end if;

  perform app_private.rate_limit('contact_project.network', app_private.network_of(app_hidden.setting('ip')));
  perform app_private.rate_limit('contact_project.sender', project.id || ' ' || sender);

  -- Two forms at the same moment: the second insert waits for the first, finds its lead and merges with it.
  loop
    select * into lead from app_public.leads l
      where l.project_id = project.id and l.email = sender and l.deleted_at is null for update;
    was_created := lead.id is null;
    exit when not was_created;
    begin
      lead := app_hidden.create_record(null::app_public.leads, input - 'source_id' - 'text' - 'metadata'
        || jsonb_build_object('project_id', project.id, 'email', sender, 'origin', 'CONTACT_PROJECT', 'source_id',
          source_row.id,
          'source', coalesce(source_row.code, input ->> 'source'), 'subscribed',
            coalesce((input ->> 'follow')::boolean, false),
          'is_agent', coalesce((input ->> 'is_agent')::boolean, false), 'last_interaction_at', now()));
      exit;
    exception when unique_violation then
      null; -- made meanwhile: merge with it
    end;
  end loop;
  if not was_created then
    lead := app_hidden.update_record(null::app_public.leads,
      jsonb_build_object('id', lead.id, 'last_interaction_at', now())
      || case when (input ->> 'follow')::boolean then '{"subscribed": true}' else '{}'::jsonb end
      || (select coalesce(jsonb_object_agg(i.key, i.value), '{}') from jsonb_each(input) i
          where i.key in ('phone', 'company', 'address', 'is_represented') and i.value <> 'null'
            and to_jsonb(lead) ->> i.key is null));
  end if;
  if agent is distinct from null and lead.agent_id is null then
    perform app_private.set_lead_agent(lead, agent);
  end if;
  return app_hidden.create_record(null::app_public.project_contact_messages, input - 'source'
    || jsonb_build_object('project_id', project.id, 'lead_id', lead.id, 'lead_created', was_created, 'email', sender,
      'phone', app_hidden.to_e164(input ->> 'phone', coalesce((project.address).country, 'US')),
      'source', coalesce(source_row.code, input ->> 'source'), 'agent_name', agent.name));
end $$;
grant execute on function app_private.take_project_message(uuid, jsonb, app_public.agent_input) to plat_user,
  plat_anonymous;
comment on function app_private.take_project_message(uuid, jsonb, app_public.agent_input) is
  'Keeps a message to a project that the caller was seen to see; at most 60 an hour from one network address and 10 '
  'from one sender.';

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
  select p.* into project from app_public.projects p where p.id = contact_project.project_id;
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
  E'@arg projectId The project to write to.\n'
  '@arg name Full name.\n'
  '@arg email Where the answer goes; an existing lead with it takes the message.\n'
  '@arg phone Where to call back.\n'
  '@arg text What they want to know, 20,000 characters at most.\n'
  '@arg address Where they live.\n'
  '@arg sourceId Where they come from, as the project defines it.\n'
  '@arg source Code of the source, such as WEB_DIRECT.\n'
  '@arg company Company.\n'
  '@arg agent The agent who represents them.\n'
  '@arg follow Whether they want news by mail.\n'
  '@arg isAgent Whether they are an agent.\n'
  '@arg isRepresented Whether an agent represents them.\n'
  '@arg metadata Free data of the website.\n\n'
  'Contacts the sales office of a project: makes a lead, or joins the one with the same e-mail address, and '
  'tells the sales team.';

create function app_public.public_project(id app_public.id_or_slug) returns app_public.projects
language sql stable as $$
  select p.* from app_public.projects p
  where p.id = app_hidden.record_id('projects', public_project.id) and p.visibility in ('PUBLIC', 'UNLISTED')
    and p.archived_at is null
$$;
grant execute on function app_public.public_project to plat_user, plat_anonymous;
comment on function app_public.public_project is $$
@deprecated Use `project`.
@arg id The id, or a present or former slug.

One public project.$$;
