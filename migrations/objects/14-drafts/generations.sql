-- Drafts of the drafting service, and what users do with them:
--
--   PENDING → COMPLETED, BLOCKED or FAILED, by the service; COMPLETED → ACCEPTED or DISCARDED, by users;
--           BLOCKED, FAILED → DISCARDED
--
-- The text is generated outside of a transaction: the row is PENDING before the provider is called, and completed
-- after. If the process dies, it becomes FAILED after a timeout. A BLOCKED draft has no text, so that it cannot be
-- sent. Nothing is sent automatically.
--
-- A draft is only sent when a user decides so, who is responsible for it. A sent draft counts as a response to the
-- lead.
--
-- A ticket may refer to a draft: resolving it may send the draft.

comment on type app_public.generation_fact is 'A fact that a draft uses, with its source.';

comment on column app_public.generation_fact.statement is E'@notNull\n\nThe fact, as a sentence.';
comment on column app_public.generation_fact.subject_type is
  E'@notNull\n\nType of the source record, such as unit.';
comment on column app_public.generation_fact.subject_id is E'@notNull\n\nId of the source record.';
comment on column app_public.generation_fact.field is E'@notNull\n\nField of the source record, such as price.';

create policy seers_of_lead on app_public.service_intelligence_generations for select to plat_user
  using (deleted_at is null and (select true from app_public.leads l where l.id = lead_id));

select app_private.make_project_record('service_intelligence_generations', 'generation', 'lead.write');
select app_private.make_state_machine('service_intelligence_generations', 'generation',
  steps => array[
    ['PENDING', 'COMPLETED', 'service'], ['PENDING', 'BLOCKED', 'service'], ['PENDING', 'FAILED', 'service'],
    ['COMPLETED', 'ACCEPTED', 'hand'], ['COMPLETED', 'DISCARDED', 'hand'], ['BLOCKED', 'DISCARDED', 'hand'],
    ['FAILED', 'DISCARDED', 'hand']],
  initial => array['PENDING']);
select app_private.make_deadline('generation', 'app_public.service_intelligence_generations', 'pending_until',
  'new.status = ''PENDING''', '{status}',
  'app_private.expire_generation(uuid)');

grant select on app_public.service_intelligence_generations to plat_user, plat_anonymous;

comment on table app_public.service_intelligence_generations is
  E'@defaultOrder id desc\n\nA text written by the drafting service for a person to review. Nothing is sent.';
comment on column app_public.service_intelligence_generations.lead_id is
  'Id of the lead that the text addresses; null for other texts.';
comment on column app_public.service_intelligence_generations.kind is 'Kind of text.';
comment on column app_public.service_intelligence_generations.status is E'@filter\n\nCurrent status.';
comment on column app_public.service_intelligence_generations.status_changed_at is 'When the status last changed.';
comment on column app_public.service_intelligence_generations.requested_by_id is
  E'@inert A draft is generated on request, and nothing is sent.\n\nUser who requested it; null if a workflow did.';
comment on column app_public.service_intelligence_generations.subject is
  E'@personal\n@secret\n\nSubject line of the mail.';
comment on column app_public.service_intelligence_generations.body is
  E'@personal\n@secret\n\nText of the draft, without markup.';
comment on column app_public.service_intelligence_generations.language is 'Language of the text, such as en.';
comment on column app_public.service_intelligence_generations.tone is 'Tone of the text.';
comment on column app_public.service_intelligence_generations.purpose is
  E'@personal\n\nPurpose, as given by the user who requested the draft.';
comment on column app_public.service_intelligence_generations.facts is
  E'@personal\n@secret\n\nFacts used in the text, each with its source record.';
comment on column app_public.service_intelligence_generations.warnings is
  E'@impersonal\n\nWarnings before use, such as missing consent, an unknown price, or why it was blocked.';
comment on column app_public.service_intelligence_generations.model is
  E'@impersonal\n\nProvider that generated it; `embedded` if the service composed it from facts.';
comment on column app_public.service_intelligence_generations.error is
  E'@impersonal\n\nReason why there is no text; null otherwise.';
comment on column app_public.service_intelligence_generations.pending_until is
  E'@secret\n@behavior -*\n\nWhen it is given up, unless it is completed.';
comment on column app_public.service_intelligence_generations.request_key is
  E'@secret\n@behavior -*\n\nDistinguishes a repeated request from a new one.';
comment on constraint generations_text on app_public.service_intelligence_generations is
  'A draft must have a subject, a body and the facts that it uses.';
comment on constraint service_intelligence_generations_project_id_fkey on app_public.service_intelligence_generations is
  E'@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.';
comment on constraint service_intelligence_generations_lead_id_fkey on app_public.service_intelligence_generations is
  E'@parent\n@fieldName lead\n@foreignFieldName generations\n@backwardDescription Drafts written for the lead, '
  'newest first.\n\n'
  'The lead that the text addresses.';
comment on constraint service_intelligence_generations_requested_by_id_fkey
  on app_public.service_intelligence_generations is
  E'@fieldName requestedBy\n@backwardBehavior -*\n\nUser who requested it; null if a workflow did.';

insert into app_private.event_names (subject, column_name, value, name) values
  ('generation', 'status', 'COMPLETED', 'completed'), ('generation', 'status', 'BLOCKED', 'blocked'),
  ('generation', 'status', 'FAILED', 'failed'),
  ('generation', 'status', 'ACCEPTED', 'accepted'), ('generation', 'status', 'DISCARDED', 'discarded');

create function app_private.complete_generation(id uuid,
  outcome jsonb) returns app_public.service_intelligence_generations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  generation app_public.service_intelligence_generations;
  service_before text := coalesce(current_setting('plat.service', true), '');
  actor_before text := coalesce(current_setting('plat.actor_type', true), '');
  clock_before text := coalesce(current_setting('plat.clock', true), '');
begin
  select g.* into generation from app_public.service_intelligence_generations g
    where g.id = complete_generation.id for no key update;
  if generation.status = 'PENDING' then
    perform set_config('plat.service', 'on', true);
    perform set_config('plat.actor_type', 'AI', true);
    -- A requested export completes even if its project was archived in the meantime.
    perform set_config('plat.clock', 'on', true);
    update app_public.service_intelligence_generations g set
        status = outcome ->> 'status', subject = outcome ->> 'subject', body = outcome ->> 'body',
          language = coalesce(outcome ->> 'language', g.language),
        model = outcome ->> 'model', error = outcome ->> 'error',
        -- A failed draft can be retried with the same idempotency key.
        request_key = case when outcome ->> 'status' <> 'FAILED' then g.request_key end,
        facts = array(select row(f.statement, f.subject_type, f.subject_id, f.field)::app_public.generation_fact
          from jsonb_to_recordset(coalesce(outcome -> 'facts', '[]')) f (statement text, subject_type text,
            subject_id uuid, field text)),
        warnings = array(select w from jsonb_array_elements_text(coalesce(outcome -> 'warnings', '[]')) w)
      where g.id = generation.id returning g.* into generation;
    perform set_config('plat.service', service_before, true);
    perform set_config('plat.actor_type', actor_before, true);
    perform set_config('plat.clock', clock_before, true);
  end if;
  return generation;
end $$;
comment on function app_private.complete_generation(uuid, jsonb) is
  'Notes what the drafting service made: {status, subject, body, language, facts, warnings, model, error}. One that is '
  'completed already stays as it is.';

create function app_private.expire_generation(id uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select app_private.complete_generation(id,
    '{"status": "FAILED", "error": "The service was interrupted while the draft was written; ask for another one."}')
$$;

-- Decisions of users.
create function app_private.require_generation(id uuid,
  expected_version int) returns app_public.service_intelligence_generations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  generation app_public.service_intelligence_generations;
  lead app_public.leads;
begin
  perform app_hidden.require_viewer();
  select g.* into generation from app_public.service_intelligence_generations g where g.id = require_generation.id
    and g.deleted_at is null for no key update;
  select l.* into lead from app_public.leads l where l.id = generation.lead_id and l.deleted_at is null;
  if lead.id is null or not app_hidden.deal_can(lead.organization_id, lead.project_id, lead.assignee_id, 'lead.read')
    then
    perform app_hidden.fail('NOT_FOUND', 'There is no such draft.', '{"field": "id"}');
  elsif not app_hidden.deal_can(lead.organization_id, lead.project_id, lead.assignee_id, 'lead.write') then
    perform app_hidden.refuse('service_intelligence_generations', 'change');
  elsif generation.version <> expected_version then
    perform app_hidden.fail('VERSION_MISMATCH',
      'Somebody else has changed this record since you read it; read it again and repeat your change.',
      jsonb_build_object('currentVersion', generation.version));
  end if;
  return generation;
end $$;
comment on function app_private.require_generation(uuid, int) is
  'The draft, locked; refuses viewers who cannot see or update its lead.';

create function app_public.accept_generation(id uuid, subject app_public.short_text default null,
  body app_public.long_text default null, expected_version int default null)
returns app_public.service_intelligence_generations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  generation app_public.service_intelligence_generations := app_private.require_generation(accept_generation.id,
    accept_generation.expected_version);
begin
  if generation.status = 'COMPLETED'
    and exists (select from app_public.leads l where l.id = generation.lead_id and l.do_not_contact) then
    perform app_hidden.fail('CONFLICT', 'The lead has asked not to be contacted; discard the draft.');
  end if;
  update app_public.service_intelligence_generations g set status = 'ACCEPTED',
      subject = coalesce(accept_generation.subject, g.subject), body = coalesce(accept_generation.body, g.body)
    where g.id = generation.id returning g.* into generation;
  return generation;
end $$;
comment on function app_public.accept_generation is
  E'@arg id Id of the draft; its status must be COMPLETED.\n@arg subject Edited subject; the subject of the draft '
  'is used if omitted.\n@arg body Edited text; the text of the draft is used if omitted.\n@arg expectedVersion The '
  '`version` that the client read. If the record has changed since, the mutation is refused with '
  'VERSION_MISMATCH.\n\n'
  'Accepts a draft, unchanged or edited. Nothing is sent. Refused with CONFLICT if the lead has asked not to be '
  'contacted.';

create function app_public.discard_generation(id uuid,
  expected_version int default null) returns app_public.service_intelligence_generations
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  generation app_public.service_intelligence_generations := app_private.require_generation(discard_generation.id,
    discard_generation.expected_version);
begin
  update app_public.service_intelligence_generations g set status = 'DISCARDED' where g.id = generation.id
    returning g.* into generation;
  return generation;
end $$;
comment on function app_public.discard_generation is $$
@arg id Id of the draft.
@arg expectedVersion The `version` that the client read; if it has changed, refused with VERSION_MISMATCH.

Discards a draft: its status becomes DISCARDED, and it can no longer be accepted.$$;

create function app_public.service_intelligence_generations_allowed_transitions(g
  app_public.service_intelligence_generations) returns app_public.transition[]
language sql stable as $$ select app_hidden.transitions_from('generation', jsonb_build_object('status', g.status)) $$;
grant execute on function app_public.accept_generation, app_public.discard_generation,
  app_public.service_intelligence_generations_allowed_transitions to plat_user, plat_anonymous;
comment on function app_public.service_intelligence_generations_allowed_transitions is
  E'@notNull\n\nStatus transitions that the viewer can make; others happen automatically.';

create function app_private.send_generation(generation_id uuid, sender_id uuid) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  generation app_public.service_intelligence_generations;
  lead app_public.leads;
begin
  select g.* into generation from app_public.service_intelligence_generations g where g.id = generation_id
    and g.deleted_at is null for no key update;
  select l.* into lead from app_public.leads l where l.id = generation.lead_id and l.deleted_at is null;
  if lead.id is null then
    perform app_hidden.fail('NOT_FOUND', 'There is no such draft.');
  elsif lead.do_not_contact then
    perform app_hidden.fail('CONFLICT', 'The lead has asked not to be contacted; discard the draft.');
  elsif lead.email is null then
    perform app_hidden.fail('CONFLICT', 'The lead has no email address.');
  end if;
  if generation.status <> 'ACCEPTED' then
    update app_public.service_intelligence_generations g set status = 'ACCEPTED' where g.id = generation.id;
  end if;
  perform app_private.add_job('generation__sent',
    jsonb_build_object('id', generation.id, 'senderId', sender_id, 'organization_id', lead.organization_id),
    job_key => 'generation ' || generation.id);
  perform app_private.lead_interaction(lead.id, now(), true);
end $$;
comment on function app_private.send_generation(uuid, uuid) is
  'Accepts a draft, if it was not accepted, and sends it to its lead, once; replies go to the sender. Refused for '
  'leads without address or that asked not to be contacted.';

create function app_private.send_draft_by_ticket(ticket app_public.escalation_tickets) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if ticket.generation_id is null then
    perform app_hidden.fail('CONFLICT', 'This ticket does not refer to a draft.');
  end if;
  perform app_private.send_generation(ticket.generation_id, ticket.resolved_by_id);
  return true;
end $$;
comment on function app_private.send_draft_by_ticket(app_public.escalation_tickets) is
  'Sends the draft of a ticket to its lead.';
insert into app_hidden.ticket_actions (action, permission, perform)
  values ('SEND_DRAFT', 'lead.write', 'app_private.send_draft_by_ticket');

create function app_private.generation_by_id(id uuid) returns app_public.service_intelligence_generations
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select g from app_public.service_intelligence_generations g where g.id = generation_by_id.id
$$;
comment on function app_private.generation_by_id(uuid) is 'A draft that was requested before.';
grant execute on function app_private.generation_by_id to plat_worker;
