-- A lead source is deleted with its buyers moved as well.
alter type app_public.delete_lead_source_payload add attribute reassigned_buyers int;
