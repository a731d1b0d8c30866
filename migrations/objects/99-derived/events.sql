-- What viewers may not read of events is derived from the @masked comments of the columns of all records, and the
-- masking functions.

select app_private.make_event_masks();

-- Who may see an event follows the policies of the tables of all records.
select app_private.make_event_readers();

-- One policy, so that the record of an event is only asked for where the cheap answer is no. Leads have most events:
-- the query looks for them itself, by their key, in a thirtieth of the time that the function takes. Each further kind
-- would make each page of events begin a tenth of a millisecond or two later, whether or not it has such events.
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
        else app_hidden.sees_subject(subject_type, subject_id) end));

comment on policy auditors_and_seers_of_subject on app_public.events is
  '@perRow Events are found by their index first; what of them is seen depends on the record that each is about.';
