--! Previous: sha1:005868f70a243508cd422e05698eadc702c3c907
--! Hash: sha1:0f740b05070318ff34575dcc87ee8082d0c83823
--! Message: report-charges

-- Charges as a subject of reports and exports.

select app_private.add_report_subject('CHARGES', 'processor_charges', '{finance.read}', 'charges');
select app_private.add_report_columns('CHARGES', '{id, processor_id, payment_intent_id, status, status_changed_at, amount, amount_refunded, amount_refundable, fee, net, currency,
    method, card_brand, card_last4, description, statement_descriptor, failure_code, failure_message, captured_at, last_refunded_at, disputed_at, dispute_status, metadata, inserted_at,
    updated_at, project_id, reservation_id, deposit_id, buyer_id, lead_id}',
    '{id, status, amount, amount_refunded, fee, net, currency, method, card_last4, description, captured_at}');
select app_private.add_report_links('CHARGES', array[
  ['project', 'project_id', 'projects', 'x.title', 'text', 'Title of the project.', ''],
  ['reservation', 'reservation_id', 'reservations', 'x.number', 'text', 'Number of the reservation.', 'sale.read'],
  ['deposit', 'deposit_id', 'deposits', 'x.title', 'text', 'Title of the deposit.', 'sale.read'],
  ['buyer', 'buyer_id', 'buyers', 'app_public.buyers_full_name(x)', 'text', 'Name of the buyer.', 'buyer.read'],
  ['payer', 'user_id', 'users', 'app_public.users_full_name(x)', 'text', 'Name of the payer, where the viewer may see it.', '']], '{project, buyer}');
