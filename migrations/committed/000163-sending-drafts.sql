--! Previous: sha1:708e41904c4bcc65c88c0815c1fdf457a0ea710b
--! Hash: sha1:cde223fbd4d018ea12933ee063308cef3adbee81
--! Message: sending-drafts

-- A draft goes out where a person decides so, who answers for it: nothing else calls this. What the lead was told counts as an answer.

create function app_private.send_generation(generation_id uuid, sender_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  generation app_public.service_intelligence_generations;
  lead app_public.leads;
begin
  select g.* into generation from app_public.service_intelligence_generations g where g.id = generation_id and g.deleted_at is null for no key update;
  select l.* into lead from app_public.leads l where l.id = generation.lead_id and l.deleted_at is null;
  if lead.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such draft.');
  elsif lead.do_not_contact then
    perform app_hidden.fail('CONFLICT', 'The lead has asked not to be contacted; discard the draft.');
  elsif lead.email is null then
    perform app_hidden.fail('CONFLICT', 'The lead has no e-mail address.');
  end if;
  if generation.status <> 'ACCEPTED' then
    update app_public.service_intelligence_generations g set status = 'ACCEPTED' where g.id = generation.id;
  end if;
  perform app_private.add_job('generation__sent', jsonb_build_object('id', generation.id, 'senderId', sender_id), job_key => 'generation ' || generation.id);
  perform app_private.lead_interaction(lead.id, now(), true);
end $$;
comment on function app_private.send_generation(uuid, uuid) is
  'Accepts a draft, unless it is, and has it sent to its lead, once; answers go to the sender. Refused for leads without address or that asked not to be contacted.';

create function app_private.generation_mail(generation_id uuid, sender_id uuid)
returns table (recipient text, subject text, body text, sender text, reply_to text, organization text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.email, g.subject, g.body, coalesce(nullif(concat_ws(' ', u.first_name, u.last_name), ''), o.name), coalesce(i.email, o.email), o.name
  from app_public.service_intelligence_generations g
  join app_public.leads l on l.id = g.lead_id and l.deleted_at is null and not l.do_not_contact and l.email is not null
  join app_public.organizations o on o.id = g.organization_id
  left join app_public.users u on u.id = generation_mail.sender_id
  left join app_hidden.user_identities i on i.user_id = u.id
  where g.id = generation_mail.generation_id and g.status = 'ACCEPTED' and g.deleted_at is null
$$;
comment on function app_private.generation_mail(uuid, uuid) is 'The mail of an accepted draft; none once its lead is not to be contacted.';
