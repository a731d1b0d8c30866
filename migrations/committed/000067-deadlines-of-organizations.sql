--! Previous: sha1:154eab7667c58a2761303ef9aeb91bfdfd3287d4
--! Hash: sha1:e1f06c35d180ff65d93125aa6132841eac433c4b
--! Message: deadlines-of-organizations

-- Which organization a deadline belongs to, so that each settles its own. A process of the version before does not say.
alter table app_hidden.deadlines
  add column organization_id uuid not null default '00000000-0000-0000-0000-000000000000';
-- Few rows: what has not ended yet.
-- squawk-ignore require-concurrent-index-creation
create index deadlines_organization on app_hidden.deadlines (organization_id, due_at);
update app_hidden.deadlines d set organization_id = r.organization_id
  from (
    select 'claim' as kind, c.id, c.organization_id from app_hidden.claims c
    union all select 'offer', o.id, o.organization_id from app_public.offers o
    union all select 'rescission', b.id, b.organization_id from app_public.buyers b
    union all select 'agreement', a.id, a.organization_id from app_public.agreements a
    union all select 'escalation_ticket', t.id, t.organization_id from app_public.escalation_tickets t
    union all select 'export', e.id, e.organization_id from app_public.exports e
    union all select 'generation', g.id, g.organization_id from app_public.service_intelligence_generations g
  ) r
  where r.kind = d.kind and r.id = d.record_id;

-- A row for each of the latest turns, so that nobody waits for the turn before theirs to be over.
alter table app_private.lead_turns drop constraint lead_turns_pkey;
-- A row for each project whose members take turns.
alter table app_private.lead_turns
  -- squawk-ignore adding-field-with-default, adding-serial-primary-key-field
  add column id bigint generated always as identity primary key,
  add column turn bigint not null default 0;
-- squawk-ignore require-concurrent-index-creation
create index lead_turns_latest on app_private.lead_turns (project_id, turn);
