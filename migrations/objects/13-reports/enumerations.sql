-- Enumerations of reports and exports.

select app_private.describe_enum('report_kind', 'Business area of a report.', array[
  ['INVENTORY', 'Units and lots for sale.'],
  ['SALES', 'Units sold.'],
  ['TRAFFIC', 'Visits and inquiries, by source.'],
  ['PIPELINE', 'Leads and deals by stage.'],
  ['FALLOUT', 'Lost deals and their reasons.'],
  ['PRICING', 'Prices of units, options and discounts.'],
  ['DEPOSITS', 'Deposits received and outstanding.'],
  ['COMMISSION', 'Not available yet: commissions. Reports of this kind are refused.'],
  ['ACTIVITY', 'Activity of the sales team.'],
  ['CUSTOM', 'Any other area.']
], not_available => array['COMMISSION']);

select app_private.describe_enum('report_subject', 'Kind of record in the rows of a report or export.', array[
  ['LEADS', 'One row per lead.'],
  ['BUYERS', 'One row per purchase.'],
  ['UNITS', 'One row per unit.'],
  ['LOTS', 'One row per lot.'],
  ['FLOOR_PLANS', 'One row per floor plan.'],
  ['RESERVATIONS', 'One row per reservation.'],
  ['OFFERS', 'One row per offer.'],
  ['DEPOSITS', 'One row per deposit.'],
  ['APPOINTMENTS', 'One row per appointment.'],
  ['PHONE_CALLS', 'One row per phone call.'],
  ['TASKS', 'One row per task.'],
  ['PERSONALIZATIONS', 'One row per personalization.'],
  ['EVENTS', 'One row per event.'],
  ['CHARGES', 'One row per card charge.'],
  ['ORGANIZATION', 'All records of an organization; only for `exportOrganization`.']
]);

select app_private.describe_enum('report_visibility', 'Who can see a report.', array[
  ['PRIVATE', 'Its creator only.'],
  ['PROJECT', 'Members of the organization who can see its project.'],
  ['ORGANIZATION', 'All members of the organization.']
]);

select app_private.describe_enum('chart_type', 'Visualization of a report.', array[
  ['TABLE', 'Rows only, no chart.'],
  ['BAR', 'One bar per group, to compare amounts.'],
  ['LINE', 'Points connected in order, such as months.'],
  ['PIE', 'Each group''s share of the total.'],
  ['FUNNEL', 'Successive stages, each with how many of the previous stage remain.']
]);

select app_private.describe_enum('export_format', 'File format of an export.', array[
  ['CSV', 'Comma-separated values, in UTF-8 with a byte order mark.'],
  ['XLSX', 'A workbook for spreadsheet programs such as Excel.'],
  ['JSONL', 'JSON Lines: one JSON object per line.'],
  ['PDF', 'For printing: one page per floor plan, a table for any other subject.'],
  ['ZIP', 'An archive with one JSON Lines file per record type and the uploaded files; only for `exportOrganization`.']
]);

select app_private.describe_enum('export_status', 'Progress of an export.', array[
  ['PENDING', 'Waiting in the job queue.'],
  ['PROCESSING', 'The file is being written.'],
  ['COMPLETED', 'The file is ready for download.'],
  ['FAILED', 'No file was written; see `error`.'],
  ['CANCELLED', 'Stopped by a user.'],
  ['EXPIRED', 'The file was deleted after its retention period.']
]);
