--! Previous: sha1:acb675685223b486a733f1c86b7e7ba9b6473cf4
--! Hash: sha1:357b1aefc350f518abde1f165c1310ac76a2cf29
--! Message: sandboxes-validated

-- The clock of every organization that is no sandbox is where it was.
alter table app_public.organizations validate constraint organizations_clock_of_sandboxes;
