--! Previous: sha1:481b87af5f0eca6a787141123eb3d231bf54a159
--! Hash: sha1:bde1b4e1f7ec1675b5dcd514cd09720ca9760f19
--! Message: sources-of-buyers

-- A lead source is deleted with its buyers moved as well.
alter type app_public.delete_lead_source_payload add attribute reassigned_buyers int;
