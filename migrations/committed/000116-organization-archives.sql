--! Previous: sha1:bd88fec23a9d80b576b161cf2a7c2b3df6378796
--! Hash: sha1:0dc3bfea1cae144c756b046240e4787c6a1b5675
--! Message: organization-archives

-- All that an organization has, as one archive.

select app_private.add_enum_values('report_subject', array[
  ['ORGANIZATION', 'All that an organization has; exported by exportOrganization alone.']]);
select app_private.add_enum_values('export_format', array[
  ['ZIP', 'An archive with a JSONL file for each kind of record, and files; made by exportOrganization alone.']]);
