-- Lists of leads name the agents who bring them.

alter type app_public.lead_entry_input add attribute agent app_public.agent_input;
