-- suggestLeadEmail, in three steps so that no transaction waits for the provider: begin_lead_email stores the request
-- as PENDING and collects the facts; the service calls the provider and checks its text against them (src/drafts); the
-- operation's own statement completes the row. Failures are stored by fail_lead_email, and the operation is refused
-- with PROVIDER_ERROR.

comment on domain app_public.composed_draft is
  E'@transform composeLeadEmail\n@given\n\nThe draft that the service has just composed and checked.';

create function app_private.start_generation(lead_id uuid, requested_by uuid, purpose text, tone text, language text,
  instructions text, request bytea,
  facts jsonb, quotes jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  lead app_public.leads;
  generation app_public.service_intelligence_generations;
  told text := app_hidden.checked(nullif(btrim(instructions), ''), 'app_public.long_text', 'instructions');
begin
  select l.* into lead from app_public.leads l where l.id = lead_id and l.deleted_at is null;
  if app_public.current_user_id() is not null and (requested_by is distinct from app_public.current_user_id()
    or not app_hidden.deal_can(lead.organization_id, lead.project_id, lead.assignee_id, 'lead.write')) then
    perform app_hidden.refuse('leads', 'change');
  end if;
  if length(told) > 2000 then
    perform app_hidden.fail('BAD_USER_INPUT', 'Use at most 2,000 characters.', '{"field": "instructions"}');
  end if;
  perform app_private.rate_limit('drafts.user', requested_by::text, 30, interval '1 hour');
  perform app_private.rate_limit('drafts.organization', lead.organization_id::text, 300, interval '1 hour');
  insert into app_public.service_intelligence_generations as g (project_id, lead_id, requested_by_id, purpose, tone,
    language, request_key)
    values (lead.project_id, lead.id, requested_by,
      app_hidden.checked(nullif(btrim(purpose), ''), 'app_public.short_text', 'purpose'),
      coalesce(tone, 'NEUTRAL'), app_hidden.checked(coalesce(nullif(btrim(language), ''), lead.preferred_language,
        'en'), 'app_public.language_code', 'language'), request)
    -- Its process may have died: the first one to complete it wins.
    on conflict (requested_by_id, request_key) where request_key is not null do
      update set pending_until = g.pending_until
    returning g.* into generation;
  return jsonb_build_object('id', generation.id, 'status', generation.status, 'doNotContact', lead.do_not_contact,
    'warnings', app_hidden.lead_email_warnings(lead, facts), 'language', generation.language, 'tone', generation.tone,
      'purpose', generation.purpose,
    'instructions', told)
    -- Data of a person who must not be contacted are not sent to the provider.
    || case when lead.do_not_contact then '{"facts": [], "quotes": []}'
      else jsonb_build_object('facts', facts, 'quotes', quotes) end;
end $$;
comment on function app_private.start_generation(uuid, uuid, text, text, text, text, bytea, jsonb, jsonb) is
  'Notes a draft as PENDING; at most 30 an hour for one user and 300 for an organization. Returns what the drafting '
  'service needs.';

create function app_private.known_generation(repeat jsonb) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Checked before the provider is called; claim_answer decides.
  if exists (select from app_private.idempotency_keys k
    where k.viewer = app_private.repeat_viewer() and k.key_sha256 = sha256(convert_to(repeat ->> 'key', 'UTF8'))
      and k.body_hmac <> decode(repeat ->> 'body', 'hex') and k.inserted_at > now() - interval '24 hours') then
    perform app_hidden.fail('IDEMPOTENCY_MISMATCH',
      'This idempotency key was used for another request in the last 24 hours; use a new key for each request.');
  end if;
  return (select jsonb_build_object('id', g.id, 'status', g.status, 'known', true)
    from app_public.service_intelligence_generations g
    where g.requested_by_id = app_public.current_user_id() and g.request_key = decode(repeat ->> 'request', 'hex')
      and g.inserted_at > now() - interval '24 hours');
end $$;
comment on function app_private.known_generation(jsonb) is
  'The viewer''s draft of this very request, where it was made before under its idempotency key.';
grant execute on function app_private.start_generation(uuid, uuid, text, text, text, text, bytea, jsonb, jsonb),
  app_private.known_generation(jsonb) to plat_user;

create function app_hidden.begin_lead_email(lead_id text, purpose text, tone text, language text, instructions text,
  repeat jsonb) returns jsonb
language plpgsql volatile as $$
#variable_conflict use_variable
declare
  lead app_public.leads;
  known jsonb;
begin
  perform app_hidden.require_viewer();
  select l.* into lead from app_public.leads l where l.id = app_hidden.record_id('leads', lead_id, 'leadId');
  if lead.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead.', '{"field": "leadId"}');
  end if;
  if repeat is not null then
    -- Two at the same moment: one makes the draft, the other waits for it.
    perform pg_advisory_xact_lock(hashtextextended('plat.draft ' || app_public.current_user_id()
      || (repeat ->> 'request'), 0));
    known := app_private.known_generation(repeat);
    if known is not null then
      return known;
    end if;
  end if;
  return app_private.start_generation(lead.id, app_public.current_user_id(), purpose, tone, language, instructions,
    decode(repeat ->> 'request', 'hex'),
    app_hidden.lead_email_facts(lead), app_hidden.lead_email_quotes(lead));
end $$;
comment on function app_hidden.begin_lead_email(text, text, text, text, text, jsonb) is
  'Begins a draft for a lead that the viewer may write to: {id, status, facts, quotes, warnings, …}, or {id, status, '
  'known} of a repeated request.';
revoke execute on function app_hidden.begin_lead_email from plat_anonymous;

create function app_private.begin_lead_email_for(lead_id uuid, purpose text default null, tone text default null,
  language text default null,
  instructions text default null, requested_by uuid default null, request text default null) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lead app_public.leads;
begin
  select l.* into lead from app_public.leads l where l.id = begin_lead_email_for.lead_id and l.deleted_at is null;
  if lead.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead.', '{"field": "leadId"}');
  end if;
  return app_private.start_generation(lead.id, requested_by, purpose, tone, language, instructions,
    sha256(convert_to(request, 'UTF8')),
    app_hidden.lead_email_facts(lead), app_hidden.lead_email_quotes(lead));
end $$;
comment on function app_private.begin_lead_email_for(uuid, text, text, text, text, uuid, text) is
  'Begins a draft for the service itself, such as a step of a workflow: what the organization may see, and of prices '
  'what is public. The same request (an execution and its step) gets the same draft, completed or not.';
grant execute on function app_private.begin_lead_email_for(uuid, text, text, text, text, uuid, text),
  app_private.complete_generation(uuid, jsonb) to plat_worker;

create function app_hidden.generation_status(id uuid) returns text
language sql stable as $$ select g.status from app_public.service_intelligence_generations g
  where g.id = generation_status.id $$;
comment on function app_hidden.generation_status(uuid) is 'The status of a draft that the viewer sees.';
revoke execute on function app_hidden.generation_status from plat_anonymous;

create function app_private.fail_lead_email(id uuid, error text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.complete_generation(g.id,
    jsonb_build_object('status', 'FAILED', 'error', left(fail_lead_email.error, 1000)))
    from app_public.service_intelligence_generations g where g.id = fail_lead_email.id
      and g.requested_by_id = app_public.current_user_id();
end $$;
comment on function app_private.fail_lead_email(uuid, text) is
  'Records that the drafting service failed for the viewer''s request.';
grant execute on function app_private.fail_lead_email(uuid, text) to plat_user;

create function app_public.suggest_lead_email(lead_id uuid, draft app_public.composed_draft,
  purpose app_public.short_text default null,
  tone app_public.generation_tone default null, language app_public.language_code default null,
    instructions app_public.long_text default null)
returns app_public.service_intelligence_generations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  generation app_public.service_intelligence_generations;
begin
  perform app_hidden.require_viewer();
  select g.* into generation from app_public.service_intelligence_generations g
    where g.id = (suggest_lead_email.draft ->> 'id')::uuid and g.lead_id = suggest_lead_email.lead_id
      and g.requested_by_id = app_public.current_user_id();
  if generation.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such lead.', '{"field": "leadId"}');
  end if;
  generation := app_private.complete_generation(generation.id, suggest_lead_email.draft);
  if generation.status = 'FAILED' then
    perform app_hidden.fail('PROVIDER_ERROR', generation.error, '{"provider": "AI", "retryable": true}');
  end if;
  return generation;
end $$;
grant execute on function app_public.suggest_lead_email to plat_user, plat_anonymous;
comment on function app_public.suggest_lead_email is
  E'@arg leadId Id of the lead to write to.\n@arg purpose Purpose of the mail, in a few words.\n@arg tone Tone of '
  'the text. Default: NEUTRAL.\n@arg language Language of the text. Default: that of the lead, otherwise '
  'English.\n@arg instructions Instructions for the text, at most 2,000 characters. Regardless of them, the text '
  'only states facts from the lead''s own records.\n\n'
  'Drafts an email to a lead from facts that the viewer can see, for review by a person; `facts` names the source '
  'record of each statement. A text with statements that no fact supports is BLOCKED. Nothing is sent. At most 30 '
  'per hour and user, and 300 per hour and organization.';
