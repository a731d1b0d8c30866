-- Leads from CSV files: event lists, former systems, brokers. See lead-rows.sql for the processing of rows.

insert into app_hidden.imports (operation, table_name, permission) values ('importLeads', 'leads', 'project.manage');
insert into app_hidden.import_columns (operation, position, column_name, type, required, spellings, description)
  select 'importLeads', row_number() over (), c.* from (values
    ('external_id', 'app_public.external_id', false, '{External ID,Record ID,CRM ID}'::text[],
      'Id of the lead in the given system: which lead it is.'),
    ('name', null, false, '{Full Name,Lead,Lead Name,Contact,Contact Name}',
      'Full name. Default: made of first and last name.'),
    ('first_name', null, false, '{First,Given Name}', 'Given name.'),
    ('last_name', null, false, '{Last,Surname,Family Name}', 'Family name.'),
    ('legal_name', null, false, '{}', 'Legal name, as on contracts.'),
    ('email', null, false, '{Email,Email Address,Email Address}',
      'Email address: which lead it is, where no external id says so.'),
    ('phone', null, false, '{Telephone,Phone Number,Mobile,Cell}', 'Phone number in E.164, such as +14165550123.'),
    ('company', null, false, '{Organization,Firm}', 'Company that the person works or buys for.'),
    ('status', null, false, '{Lead Status,Stage}', 'How far the lead is. Default: NEW.'),
    ('origin', null, false, '{}', 'The technical way in. Default: IMPORT.'),
    ('source', null, false, '{Lead Source,Source Name,Channel}', 'Code or name of a lead source of the project.'),
    ('source_id', null, false, '{}', 'Id of a lead source of the project.'),
    ('is_agent', null, false, '{Agent}', 'yes or no: whether the lead is an agent.'),
    ('is_represented', null, false, '{Represented}', 'yes or no: whether an agent represents the lead.'),
    ('subscribed', null, false, '{Newsletter,Opt-in,Subscribe}',
      'yes or no: whether the lead follows marketing mail. Who withdrew from it stays so.'),
    ('do_not_contact', null, false, '{DNC,Do Not Call}', 'yes or no: whether the lead asked not to be contacted.'),
    ('preferred_language', null, false, '{Language}', 'Language to write in, such as fr.'),
    ('assignee', 'app_public.email_address', false, '{Sales Rep,Salesperson,Owner,Assigned To}',
      'Email address of the member who works on the lead.'),
    ('assignee_id', null, false, '{}', 'Id of the member who works on the lead.'),
    ('budget_min', null, false, '{Minimum Budget,Min Budget,Budget From}', 'Lower limit of the budget.'),
    ('budget_max', null, false, '{Maximum Budget,Max Budget,Budget To,Budget}', 'Upper limit of the budget.'),
    ('preapproved', null, false, '{Pre-approved,Mortgage Approved}', 'yes or no: whether a lender approved the lead.'),
    ('registered_at', null, false, '{Registered,Registration Date,Created,Created At,Date}',
      'When the lead registered, such as 2027-05-31 or 2027-05-31T10:15:00Z. Default: now.'),
    ('fallout_reason_id', null, false, '{}', 'Id of the reason why the lead was lost.'),
    ('fallout_note', null, false, '{}', 'Why the lead was lost, in words.'),
    ('tags', null, false, '{Tag,Labels}', 'Free-form tags, separated by commas or semicolons.'),
    ('agent_id', null, false, '{}', 'Id of the agent who brings the lead.'),
    ('agent_name', 'app_public.short_text', false, '{Broker,Broker Name}', 'Name of the agent who brings the lead.'),
    ('agent_email', 'app_public.email_address', false, '{Broker Email}',
      'Email address of the agent: one who is known by it, or is entered with the name.'),
    ('agent_phone', 'app_public.phone_number', false, '{Broker Phone}', 'Phone number of the agent.'),
    ('agent_brokerage', 'app_public.short_text', false, '{Brokerage}',
      'Name of the brokerage that the agent works for.'),
    ('agent_license_number', 'app_public.short_text', false, '{License Number}', 'Number of the agent''s licence.'),
    ('metadata', null, false, '{}', 'Free data of the organization''s own programs, as JSON.'),
    ('thoroughfare', 'app_public.short_text', false, '{Street,Address,Street Address}', 'Street and number.'),
    ('premise', 'app_public.short_text', false, '{}', 'Apartment or suite.'),
    ('locality', 'app_public.short_text', false, '{City,Town}', 'City.'),
    ('administrative_area', 'app_public.short_text', false, '{State,Province,Region}', 'State or province.'),
    ('postal_code', 'app_public.short_text', false, '{Zip,Zip Code,Postcode}', 'Postal code.'),
    ('country', 'app_public.country_code', false, '{}',
      'Country by ISO 3166-1, such as CA. Default: the one of the project.')
  ) as c (column_name, type, required, spellings, description);

comment on type app_public.import_leads_payload is 'Result of an import of leads.';
comment on column app_public.import_leads_payload.dry_run is
  E'@notNull\n\nTrue if nothing was changed, and the result shows what would happen.';
comment on column app_public.import_leads_payload.created_count is E'@notNull\n\nNumber of created leads.';
comment on column app_public.import_leads_payload.updated_count is E'@notNull\n\nNumber of updated leads.';
comment on column app_public.import_leads_payload.skipped_count is
  E'@notNull\n\n'
  'Number of rows without effect, because the lead exists and `updateExisting` is false, or because it already '
  'matches the row.';
comment on column app_public.import_leads_payload.failed_count is E'@notNull\n\nNumber of refused rows.';
comment on column app_public.import_leads_payload.duplicate_count is
  E'@notNull\n\nNumber of rows whose email address already belonged to an open lead.';
comment on column app_public.import_leads_payload.errors is 'Errors of refused rows, in order; at most 1,000.';
comment on column app_public.import_leads_payload.rows is
  E'@notNull\n\nResult of each row, in file order; at most 1,000.';
comment on column app_public.import_leads_payload.leads is
  'Created and updated leads, in file order; at most 1,000.';

create function app_public.import_leads(project_id uuid, file app_public.data_upload,
  system app_public.system_name default null, dry_run boolean default null, update_existing boolean default null)
returns app_public.import_leads_payload
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  project app_public.projects;
  party uuid;
  result app_public.import_leads_payload;
begin
  project := app_private.start_import('importLeads', project_id);
  if not app_hidden.organization_can(project.organization_id, 'lead.write') then
    perform app_hidden.fail('FORBIDDEN', 'This requires the permission lead.write in the project.',
      '{"permission": "lead.write"}');
  end if;
  if system is null and exists (select from pg_temp.import_header h where h.column_name = 'external_id') then
    perform app_hidden.fail('BAD_USER_INPUT', 'The file has external ids; specify the system that they belong to.',
      '{"field": "system"}');
  end if;
  party := (select o from app_private.viewer_parties(project.id) o limit 1);
  result.dry_run := coalesce(dry_run, false);
  create temp table import_cleared (row int not null, column_name text not null) on commit drop;
  begin
    perform app_private.judge_lead_rows(project, system, party, false,
      case when update_existing then 'SET' else 'RETURN_EXISTING' end, 'IMPORT');
    if not coalesce(update_existing, false) then
      insert into pg_temp.import_same select r.row from pg_temp.import_ready r
        where r.existing_id is not null and not exists (select from pg_temp.import_same s where s.row = r.row);
    end if;
    perform app_private.write_lead_rows(project, system, party);
    select count(*) filter (where r.existing_id is null), count(*) filter (where r.existing_id is not null
        and s.row is null), count(*) filter (where s.row is not null)
      into result.created_count, result.updated_count, result.skipped_count
      from pg_temp.import_ready r left join pg_temp.import_same s using (row);
    select count(distinct e.row) into result.failed_count from pg_temp.import_errors e;
    select count(*) into result.duplicate_count from pg_temp.import_leads m where m.id is not null and not m.is_linked;
    result.errors := app_private.import_errors();
    result.rows := app_private.lead_row_results(1000);
    result.leads := array(select l.record
      from (select r.row, coalesce(r.existing_id, r.new_id) as id from pg_temp.import_ready r
        where not exists (select from pg_temp.import_same s where s.row = r.row) order by r.row limit 1000) r
      cross join lateral (select l as record from app_public.leads l where l.id = r.id limit 1) l order by r.row);
    if dry_run then
      raise exception 'dry run' using errcode = 'PLATD';
    end if;
  exception when sqlstate 'PLATD' then
    null; -- undone, what would have been is in the result
  end;
  return result;
end $$;
grant execute on function app_public.import_leads to plat_user, plat_anonymous;
comment on function app_public.import_leads is
  E'@arg projectId Id of the project that all rows belong to.\n@arg file CSV file in UTF-8, separated by '
  'commas or semicolons, with column names in the first row. At most 50 MB and 200,000 rows.\n@arg system Name of '
  'the external system that the ids in the file come from, such as crm.\n@arg dryRun If true, returns what would '
  'happen, and changes nothing.\n@arg updateExisting Updates existing leads, matched by external id or email '
  'address; empty cells change nothing. If false, existing leads stay unchanged, except that they may get the '
  'external id.\n\n'
  'Imports leads from CSV: applies valid rows and reports errors of the others. Rows are matched to open leads by '
  'email address. With ROUND_ROBIN, new leads are assigned in turn. No notifications are sent, and withdrawn '
  'consent to marketing mail stays withdrawn.';
