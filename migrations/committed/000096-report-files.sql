--! Previous: sha1:1d9df822d97745907d9ada12c6a5ac4c7a4b8c33
--! Hash: sha1:766ac7260d6c537c374cfe5817f1d2b5ddf84641
--! Message: report-files

-- The figures of a report become a file, as the rows of an export do. A report on commission is not offered yet.

-- squawk-ignore disallowed-unique-constraint, constraint-missing-not-valid
alter table app_public.custom_reports add constraint custom_reports_id_organization_id_key unique (id, organization_id);
alter table app_public.exports
  add column custom_report_id uuid,
  add column group_by text[];
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table app_public.exports add constraint exports_custom_report_id_fkey
  foreign key (custom_report_id, organization_id) references app_public.custom_reports (id, organization_id)
  on delete set null (custom_report_id);
-- squawk-ignore require-concurrent-index-creation
create index exports_custom_report on app_public.exports (custom_report_id, id desc);

update app_public.report_kind_values set description =
  'Not offered yet: what is due to agents. A report of this kind is refused until commissions are kept.'
  where value = 'COMMISSION';
