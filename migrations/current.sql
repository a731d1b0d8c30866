-- The deletion of a project looks for its notes by a key that says nothing of whether they are deleted. A million rows
-- are indexed within a second.
-- squawk-ignore require-concurrent-index-creation
create index lead_notes_in_project on app_public.lead_notes (project_id, id desc);
-- squawk-ignore require-concurrent-index-deletion
drop index app_public.lead_notes_project;
