--! Previous: sha1:07879614f3004384c7f350b7898507fec3662d99
--! Hash: sha1:18802cfcb67f1ca5b50e9782e270f73315285868
--! Message: agents-of-lists

-- Lists of leads name the agents who bring them.

alter type app_public.lead_entry_input add attribute agent app_public.agent_input;
