-- All that an organization has, as one archive.

select app_private.add_enum_values('report_subject', array[
  ['ORGANIZATION', 'All that an organization has; exported by exportOrganization alone.']]);
select app_private.add_enum_values('export_format', array[
  ['ZIP', 'An archive with a JSONL file for each kind of record, and files; made by exportOrganization alone.']]);
