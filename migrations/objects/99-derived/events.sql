-- What viewers may not read of events follows the @masked comments of the columns of all records, and the functions
-- that mask.

select app_private.make_event_masks();

-- Who may see an event follows the policies of the tables of all records.
select app_private.make_event_readers();

-- One policy, so that the record of an event is only asked for where the cheap answer is no. Of the records of which
-- there are most, the query looks for it itself, by its key; a function takes ten times as long for each event.
create policy auditors_and_seers_of_subject on app_public.events for select to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('audit.read'))::uuid[])
    -- Outside of an organization, events are of the user alone: colleagues do not read when somebody signed in.
    or (((stream_id = (select app_public.current_user_id()) and (select app_hidden.has_whole_account()))
        or organization_id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[])
        or project_id = any ((select app_hidden.viewer_projects('project.read'))::uuid[]))
      -- Which mails a colleague gets is not for colleagues to read.
      and subject_type <> 'member'
      -- Of what stands between two organizations, each reads its own copy.
      and (subject_type not in ('affiliation', 'affiliation_invite')
        or organization_id = any ((select app_hidden.viewer_organizations('org.member'))::uuid[]))
      and case subject_type
        when 'lead' then exists (select from app_public.leads r where r.id = subject_id)
        when 'lead_note' then exists (select from app_public.lead_notes r where r.id = subject_id)
        when 'task' then exists (select from app_public.tasks r where r.id = subject_id)
        when 'unit' then exists (select from app_public.units r where r.id = subject_id
          and (r.organization_id = any ((select app_hidden.viewer_organizations('inventory.read'))::uuid[])
            or r.project_id = any ((select app_hidden.viewer_projects('inventory.read'))::uuid[])))
        else app_hidden.sees_subject(subject_type, subject_id) end));

comment on policy auditors_and_seers_of_subject on app_public.events is
  '@perRow Events are found by their index first; what of them is seen depends on the record that each is about.';
