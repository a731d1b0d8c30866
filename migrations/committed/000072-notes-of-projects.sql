--! Previous: sha1:3e0cdef5d9be5d576a9ac0aad7db61b88ec6b14a
--! Hash: sha1:bad0e68c00eadf35d964e34c0a953080d705c80d
--! Message: notes-of-projects

-- The deletion of a project looks for its notes by a key that says nothing of whether they are deleted. A million rows
-- are indexed within a second.
-- squawk-ignore require-concurrent-index-creation
create index lead_notes_in_project on app_public.lead_notes (project_id, id desc);
-- squawk-ignore require-concurrent-index-deletion
drop index app_public.lead_notes_project;
